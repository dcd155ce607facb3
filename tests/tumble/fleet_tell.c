/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fleet_tell.c - the tester of striped volumes tells what is wrong, and the way there
 *
 * Operation:  The last events are kept; all of them go to the log, if there is one. Each byte that is written tells its
 *             operation, so a wrong byte names the client and the number.
 * Memory:     None.
 * Threads:    One.
 * Errors:     None.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "fleet_int.h"

void fleet_note(struct fleet *fl, const struct fleet_op *op, const char *what, int64_t result)
{
	char *line = fl->lines[fl->nlines++ % FLEET_LINES];
	FILE *f = fmemopen(line, FLEET_LINE_BYTES, "w");

	if (!f)
		return;
	fprintf(f, "%" PRIu64 ": ", fl->clock);
	fleet_print(f, op);
	fprintf(f, " %s", what);
	if (!strcmp(what, "=") && result < 0)
		fprintf(f, " %s", strerror((int)-result));
	else if (!strcmp(what, "="))
		fprintf(f, " %" PRId64, result);
	fclose(f);
	if (fl->log)
		fprintf(fl->log, "%s\n", line);
}

static void tell_writer(struct fleet *fl, uint64_t key)
{
	for (size_t i = fl->nhistory; i-- > 0;) {
		const struct wrote *w = &fl->history[i];

		if (rnd_mix(fl->o->seed, w->number) != key)
			continue;
		fprintf(fl->out, "%" PRIu64 " of client %u, file #%" PRIu64 ", %" PRIu64 " %" PRIu64, w->number, w->client, w->body,
			w->off, w->len);
		return;
	}
}

/* Whose bytes are these? */
void fleet_tell_origin(struct fleet *fl, uint64_t off, const uint8_t *got, uint64_t len)
{
	fprintf(fl->out, "  got     ");
	for (uint64_t i = 0; i < MIN(len, (uint64_t)8); i++)
		fprintf(fl->out, " %02x", got[i]);
	if (!got[0])
		fprintf(fl->out, ", as in a hole");
	for (size_t i = fl->nhistory; i-- > 0;) {
		const struct wrote *w = &fl->history[i];
		uint64_t key = rnd_mix(fl->o->seed, w->number), n = 0;

		while (n < len && n < 8 && got[n] == pattern_byte(key, off + n))
			n++;
		if (n < MIN(len, (uint64_t)4))
			continue;
		fprintf(fl->out, ", as written by ");
		tell_writer(fl, key);
		break;
	}
	fprintf(fl->out, "\n");
}

void fleet_tell_candidates(struct fleet *fl, const struct shared *f, uint64_t off)
{
	size_t i = 0;

	while (i + 1 < f->spans.n && f->spans.v[i + 1].from <= off)
		i++;
	for (unsigned k = 0; k < f->spans.v[i].n; k++) {
		const struct candidate *v = &f->spans.v[i].v[k];

		fprintf(fl->out, "  possible: ");
		if (v->by->zero)
			fprintf(fl->out, "zeroes");
		else
			tell_writer(fl, v->by->key);
		fprintf(fl->out, ", from %" PRIu64 " to %" PRId64 ", failed %" PRId64 ", replaced %" PRId64 "\n", v->by->start,
			(int64_t)v->by->end, (int64_t)v->by->failed, (int64_t)v->dead);
	}
}

void fleet_tell_way(struct fleet *fl)
{
	for (unsigned i = 0; i < fl->o->depth; i++) {
		if (!fl->slots[i].busy)
			continue;
		fprintf(fl->out, "  in flight: ");
		fleet_print(fl->out, &fl->slots[i].io.op);
		fprintf(fl->out, "\n");
	}
	fprintf(fl->out, "  seed %" PRIu64 ", %" PRIu64 " ops; the last events:\n", fl->o->seed, fl->number);
	for (uint64_t i = fl->nlines > FLEET_LINES ? fl->nlines - FLEET_LINES : 0; i < fl->nlines; i++)
		fprintf(fl->out, "    %s\n", fl->lines[i % FLEET_LINES]);
}

/* The first finding ends the run: what follows may be its consequence. */
bool fleet_begin_failure(struct fleet *fl, const struct fleet_op *op)
{
	if (fl->failed)
		return false;
	fl->failed = true;
	fprintf(fl->out, "tumble: WRONG in operation ");
	fleet_print(fl->out, op);
	fprintf(fl->out, "\n  ");
	return true;
}

void printf_like(3, 4) fleet_fail(struct fleet *fl, const struct fleet_op *op, const char *fmt, ...)
{
	va_list ap;

	if (!fleet_begin_failure(fl, op))
		return;
	va_start(ap, fmt);
	vfprintf(fl->out, fmt, ap);
	va_end(ap);
	fprintf(fl->out, "\n");
	fleet_tell_way(fl);
}

void fleet_give_up(struct fleet *fl, int rc)
{
	fl->rc = fl->rc ? fl->rc : rc;
	fl->failed = true;
}
