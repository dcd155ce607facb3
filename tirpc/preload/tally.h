/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tally.h - which calls and requests went which way, for RPCRDMA_RUN_REPORT
 */
#ifndef RT_TALLY_H
#define RT_TALLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "map.h"

/* One program on one host by one way */
struct rt_tally {
	struct rt_tally *next;
	char host[RT_HOST_BYTES]; /* "": requests of a service */
	char way[RT_URL_BYTES];   /* a URL, or "original" */
	uint32_t prog, vers;
	_Atomic uint64_t handles, calls, failed;
	_Atomic uint64_t refused; /* handles that could not be created */
	char why[128];            /* of the last of these */
};

#define RT_WAY_ORIGINAL "original"

/** rt_tally_init - reads RPCRDMA_RUN_REPORT; before any other */
void rt_tally_init(void);

/** rt_tally_is_on - is there to be a report? */
bool rt_tally_is_on(void);

/** rt_tally_get - finds or creates a tally; NULL: no memory, or no report. Any thread. It is never freed. */
struct rt_tally *rt_tally_get(const char *host, uint32_t prog, uint32_t vers, const char *way);

/** rt_tally_refuse - counts a handle that could not be created; @t may be NULL */
void rt_tally_refuse(struct rt_tally *t, const char *why);

/** rt_tally_add - counts; @n may be NULL */
static inline void rt_tally_add(_Atomic uint64_t *n)
{
	if (n)
		atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

/** rt_tally_print - prints the report */
void rt_tally_print(void);

#endif
