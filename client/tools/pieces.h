/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * pieces.h - leat trace: prints a request and its pieces as text
 */
#ifndef LEAT_TOOL_TRACE_H
#define LEAT_TOOL_TRACE_H

#include <stdint.h>
#include <stdio.h>

#include "base/util.h"
#include "leat_admin.h"

#define TRACE_CHART_COLUMNS 48

/** trace_chart - draws a piece as columns of time; Return: @buf */
char *trace_chart(const struct leat_trace *t, const struct leat_trace_piece *p,
		  char buf[TRACE_CHART_COLUMNS + 1]);

/* How long disk and network were busy with any piece of a request. */
struct trace_busy {
	uint64_t disk_ns, net_ns, both_ns;
};

/** trace_busy - computes it for the whole request; Return: 0, -ENOMEM */
int must_check trace_busy(const struct leat_trace *t, struct trace_busy *ret);

/** trace_print - prints the request, with pieces in the order in which the disk finished them
 *
 * Return: 0, -ENOMEM.
 */
int must_check trace_print(FILE *to, struct leat_trace *t);

#endif
