/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * pieces.h - leat trace: a request in pieces, as text
 */
#ifndef LEAT_TOOL_TRACE_H
#define LEAT_TOOL_TRACE_H

#include <stdint.h>
#include <stdio.h>

#include "base/util.h"
#include "leat.h"

#define TRACE_CHART_COLUMNS 48

/** trace_chart - a piece in columns of time; Return: @buf */
char *trace_chart(const struct leat_trace *t, const struct leat_trace_piece *p,
		  char buf[TRACE_CHART_COLUMNS + 1]);

/* How long something was at work for any piece of a request. */
struct trace_busy {
	uint64_t disk_ns, net_ns, both_ns;
};

/** trace_busy - of the whole request; Return: 0, -ENOMEM */
int must_check trace_busy(const struct leat_trace *t, struct trace_busy *ret);

/** trace_print - all of it, the pieces in the order in which the disk was through with them
 *
 * Return: 0, -ENOMEM.
 */
int must_check trace_print(FILE *to, struct leat_trace *t);

#endif
