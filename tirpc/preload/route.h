/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * route.h - where the calls of a program go, and where its services also listen
 */
#ifndef RT_ROUTE_H
#define RT_ROUTE_H

#include <stdbool.h>
#include <stdint.h>
#include <rpc/rpc.h>

#include "hosts.h"
#include "map.h"

/* A way to a program on a host. The table in @attr lives as long as the process. */
struct rt_way {
	char host[RT_HOST_BYTES]; /* as the program named it, for reports */
	char url[RT_URL_BYTES];
	struct rpcrdma_tirpc_attr attr;
	struct timeval limit; /* for creating a handle, if the program gives none; 0: the default */
};

/** rt_route_init - reads the environment; once, before threads. Errors are printed, and their setting is not used. */
void rt_route_init(void);

/** rt_enter - begins a function that the program called; Return: false: it is libtirpc or this library that calls */
bool rt_enter(void);

/** rt_leave - ends what a successful rt_enter() began */
void rt_leave(void);

/** rt_route_concerns - may calls of @prog go another way? If not, nothing needs to be looked up. */
bool rt_route_concerns(uint32_t prog);

/** rt_route_by_name - finds the way to a program on a host; may resolve names; Return: false: the original */
bool rt_route_by_name(const char *host, uint32_t prog, struct rt_way *ret);

/** rt_route_by_addr - the same for an address */
bool rt_route_by_addr(const struct rt_ip *ip, uint32_t prog, struct rt_way *ret);

/** rt_route_open - creates a handle; @limit may be NULL; Return: NULL: the original, counted */
CLIENT *rt_route_open(const struct rt_way *way, uint32_t prog, uint32_t vers, const struct timeval *limit);

/** rt_route_urls - where services also listen; ->n is 0 if nowhere */
const struct rt_urls *rt_route_urls(void);

/** rt_route_attr - attributes of services */
const struct rpcrdma_tirpc_attr *rt_route_attr(void);

#endif
