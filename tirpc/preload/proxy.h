/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * proxy.h - the CLIENT that a program gets from librpcrdma-preload.so
 */
#ifndef RT_PROXY_H
#define RT_PROXY_H

#include <stdbool.h>
#include <rpc/rpc.h>

#include "route.h"
#include "tally.h"

/* What the program asked for */
struct rt_asked {
	uint32_t prog, vers;
	bool is_datagram; /* it expects what a UDP handle can do */
	int fd;           /* its socket, or one in place of the one that it expects; -1: none */
	bool closes_fd;   /* clnt_destroy() closes it */
	const void *addr; /* of the server as the program knows it, copied; NULL: none */
	size_t addr_bytes;
};

/** rt_proxy_create - creates a handle around @inner
 * @way: how @inner was made; NULL: it is an original of libtirpc, to be counted only
 * @tally: counters of its calls, or NULL
 *
 * clnt_destroy() destroys @inner as well. Return: NULL: no memory; @inner is left alone.
 */
CLIENT *rt_proxy_create(CLIENT *inner, const struct rt_way *way, const struct rt_asked *asked, struct rt_tally *tally);

/** rt_proxy_init - once, before threads */
void rt_proxy_init(void);

#endif
