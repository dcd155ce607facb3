/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ctl_where.h - latency breakdown of requests (xdr/ctl.x)
 */
#ifndef LEAT_SERVER_CTL_WHERE_H
#define LEAT_SERVER_CTL_WHERE_H

#include <stdbool.h>
#include <stdint.h>

#include "ctl.h"
#include "req.h"

struct rpcrdma_peer;

/* The part of a request that belongs to this program. */
struct ctl_call {
	ctl_path args; /* WHOAMI: points to @path */
	union {
		ctl_info info;
		ctl_stats stats;
		ctl_answer answer;
		ctl_where where;
		ctl_pieces pieces;
		ctl_whoami whoami;
	} res;
	char path[CTL_PATH_MAX + 1];
};

static inline struct ctl_call *ctl_call(const struct req *r)
{
	return (struct ctl_call *)(void *)(uintptr_t)r->call;
}

/** ctl_is_admin - is the peer root or leatd's own user, as identified by the kernel? Only over the local fabric.
 * (ctl_prog.c)
 */
bool ctl_is_admin(const struct rpcrdma_peer *peer);

/** ctl_where_sums - WHERE: returns the sums of all reactors */
void ctl_where_sums(struct req *r);

/** ctl_where_pieces - PIECES: returns the last trace that the caller may see, and requests another one */
void ctl_where_pieces(struct req *r);

#endif
