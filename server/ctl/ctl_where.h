/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ctl_where.h - latency breakdown of requests (xdr/ctl.x)
 */
#ifndef LEAT_SERVER_CTL_WHERE_H
#define LEAT_SERVER_CTL_WHERE_H

#include <stdbool.h>

struct req;
struct rpcrdma_peer;

/** ctl_is_admin - is the peer root or leatd's own user, as identified by the kernel? Only over the local fabric.
 * (ctl_prog.c)
 */
bool ctl_is_admin(const struct rpcrdma_peer *peer);

/** ctl_where_sums - WHERE: returns the sums of all reactors */
void ctl_where_sums(struct req *r);

/** ctl_where_pieces - PIECES: returns the last trace that the caller may see, and requests another one */
void ctl_where_pieces(struct req *r);

#endif
