/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * pieces_print.c - leat trace pieces: prints one request, a line for each of its pieces
 *
 * Operation:  Lines are in the order in which the disk finished the pieces, which shows whether it keeps
 *             their order. Each line shows when disk and network worked on the piece.
 * Memory:     The start and end times of all pieces, sorted, while they are summed.
 * Threads:    One.
 * Errors:     -ENOMEM. Skips entries with an end before their start.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pieces.h"
#include "tool.h"

static bool was(uint64_t begin, uint64_t end)
{
	return begin && end >= begin;
}

/* ---- the chart ---------------------------------------------------------------------------- */

static unsigned column(const struct leat_trace *t, uint64_t ns)
{
	double part = t->total_ns ? (double)ns / (double)t->total_ns : 0;

	return (unsigned)(MIN(part, 1.0) * (TRACE_CHART_COLUMNS - 1) + 0.5);
}

static void draw(const struct leat_trace *t, uint64_t begin, uint64_t end, char letter, char *buf)
{
	if (!was(begin, end))
		return;
	for (unsigned i = column(t, begin); i <= column(t, end); i++)
		buf[i] = buf[i] == '.' || buf[i] == letter ? letter : 'B';
}

char *trace_chart(const struct leat_trace *t, const struct leat_trace_piece *p,
		  char buf[TRACE_CHART_COLUMNS + 1])
{
	memset(buf, '.', TRACE_CHART_COLUMNS);
	buf[TRACE_CHART_COLUMNS] = '\0';
	draw(t, p->disk_begin_ns, p->disk_end_ns, 'D', buf);
	draw(t, p->net_begin_ns, p->net_end_ns, 'N', buf);
	return buf;
}

/* ---- the sums ----------------------------------------------------------------------------- */

/* The start or the end of an interval. */
struct edge {
	uint64_t at_ns;
	int disk, net;
};

static int compare_edges(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

static size_t add_edges(struct edge *e, uint64_t begin, uint64_t end, int disk, int net)
{
	if (!was(begin, end))
		return 0;
	e[0] = (struct edge){ begin, disk, net };
	e[1] = (struct edge){ end, -disk, -net };
	return 2;
}

int trace_busy(const struct leat_trace *t, struct trace_busy *ret)
{
	struct edge *e = calloc(4 * t->npieces + 1, sizeof(*e));
	struct trace_busy busy = { 0 };
	int disk = 0, net = 0;
	size_t n = 0;

	if (!e)
		return -ENOMEM;
	for (size_t i = 0; i < t->npieces; i++) {
		const struct leat_trace_piece *p = t->pieces[i];

		n += add_edges(e + n, p->disk_begin_ns, p->disk_end_ns, 1, 0);
		n += add_edges(e + n, p->net_begin_ns, p->net_end_ns, 0, 1);
	}
	qsort(e, n, sizeof(*e), compare_edges);
	for (size_t i = 0; i + 1 < n; i++) {
		uint64_t ns = e[i + 1].at_ns - e[i].at_ns;

		disk += e[i].disk;
		net += e[i].net;
		busy.disk_ns += disk > 0 ? ns : 0;
		busy.net_ns += net > 0 ? ns : 0;
		busy.both_ns += disk > 0 && net > 0 ? ns : 0;
	}
	free(e);
	*ret = busy;
	return 0;
}

/* ---- the whole ---------------------------------------------------------------------------- */

static int compare_pieces(const void *a, const void *b)
{
	const struct leat_trace_piece *x = *(const struct leat_trace_piece *const *)a;
	const struct leat_trace_piece *y = *(const struct leat_trace_piece *const *)b;
	bool on_x = was(x->disk_begin_ns, x->disk_end_ns), on_y = was(y->disk_begin_ns, y->disk_end_ns);

	if (on_x != on_y)
		return on_x ? -1 : 1;
	if (on_x && x->disk_end_ns != y->disk_end_ns)
		return x->disk_end_ns > y->disk_end_ns ? 1 : -1;
	return (x->off > y->off) - (x->off < y->off);
}

static void print_times(FILE *to, uint64_t begin, uint64_t end)
{
	if (was(begin, end))
		fprintf(to, " %10.1f %10.1f", tool_us(begin), tool_us(end));
	else
		fprintf(to, " %10s %10s", "-", "-");
}

static void print_piece(FILE *to, const struct leat_trace *t, const struct leat_trace_piece *p)
{
	char chart[TRACE_CHART_COLUMNS + 1];

	fprintf(to, "%10" PRIu32 " %8" PRIu32, p->off, p->len);
	print_times(to, p->disk_begin_ns, p->disk_end_ns);
	print_times(to, p->net_begin_ns, p->net_end_ns);
	fprintf(to, "  %s\n", trace_chart(t, p, chart));
}

int trace_print(FILE *to, struct leat_trace *t)
{
	uint64_t told = 0, lesser;
	struct trace_busy busy;
	int rc = trace_busy(t, &busy);

	if (rc)
		return rc;
	if (t->npieces)
		qsort(t->pieces, t->npieces, sizeof(*t->pieces), compare_pieces);
	fprintf(to, "%s of %" PRIu32 " bytes in %zu pieces, xid %08" PRIx32 "; us since it came\n",
		t->is_write ? "WRITE" : "READ", t->bytes, t->npieces, t->xid);
	fprintf(to, "%10s %8s %10s %10s %10s %10s  D disk, N network, B both\n", "offset", "length",
		"disk", "until", "network", "until");
	for (size_t i = 0; i < t->npieces; i++) {
		print_piece(to, t, t->pieces[i]);
		told += t->pieces[i]->len;
	}
	if (told < t->bytes)
		fprintf(to, "%" PRIu64 " bytes more\n", t->bytes - told);
	lesser = MIN(busy.disk_ns, busy.net_ns);
	fprintf(to, "total %.1f: disk %.1f, network %.1f, both at once %.1f (%.0f %% of the lesser)\n",
		tool_us(t->total_ns), tool_us(busy.disk_ns), tool_us(busy.net_ns), tool_us(busy.both_ns),
		lesser ? 100 * (double)busy.both_ns / (double)lesser : 0);
	return 0;
}
