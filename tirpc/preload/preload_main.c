/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * preload_main.c - the begin and the end of librpcrdma-preload.so in a program
 *
 * Operation:  It reads the environment before main(), as the program may change its directory and its user, and prints
 *             the report when the program exits. In a set-user-id program the environment is that of another user: it
 *             is not used, and all calls go to the originals.
 * Memory:     What it reads stays.
 * Threads:    One, as main() has not begun.
 * Errors:     Messages on standard error.
 */
#include "proxy.h"
#include "route.h"
#include "tally.h"

static void __attribute__((constructor)) preload_init(void)
{
	/* getaddrinfo() may call RPC programs */
	if (!rt_enter())
		return;
	rt_tally_init();
	rt_proxy_init();
	rt_route_init();
	rt_leave();
}

static void __attribute__((destructor)) preload_fini(void)
{
	rt_tally_print();
}
