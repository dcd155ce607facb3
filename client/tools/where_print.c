/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * where_print.c - leat stat --latency: prints the difference between two samples
 *
 * Operation:  For READ and for WRITE a bar shows the parts of an average request; its length does not
 *             depend on the duration. Each part is also printed in microseconds. If disk and network
 *             always work one after the other, a request achieves 1 / (1 / disk + 1 / network). If they
 *             always work in parallel, it achieves the lesser of the two. Efficiency is the ratio to the
 *             latter.
 * Memory:     Caller's.
 * Threads:    One.
 * Errors:     None. Values from the server are not trusted: decreasing numbers become 0, names are sanitized.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "tool.h"
#include "where.h"

static const struct {
	char letter;
	const char *name, *json;
} parts[LEAT_WHERE_PARTS] = {
	[LEAT_WHERE_WAITING] = { 'w', "waiting", "waiting" },
	[LEAT_WHERE_DISK] = { 'D', "disk only", "disk" },
	[LEAT_WHERE_NET] = { 'N', "network only", "network" },
	[LEAT_WHERE_BOTH] = { 'B', "both at once", "both" },
	[LEAT_WHERE_FINISH] = { 'f', "finish", "finish" },
};

/* ---- arithmetic --------------------------------------------------------------------------- */

static uint64_t since(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

/* a server may report an absurd rate */
static char *rate(double bytes_s, char buf[16])
{
	return tool_print_size(bytes_s < 1e19 ? (uint64_t)bytes_s : UINT64_MAX, buf);
}

static double us(double ns)
{
	return ns / (double)NS_PER_US;
}

static double total_ns(const struct leat_where_kind *k)
{
	double ns = 0; /* double: sums from a hostile server cannot overflow it */

	for (unsigned i = 0; i < LEAT_WHERE_PARTS; i++)
		ns += (double)k->ns[i];
	return ns;
}

bool where_is_same(const struct where_sample *a, const struct where_sample *b)
{
	return !memcmp(a->where->instance, b->where->instance, sizeof(a->where->instance));
}

static void kind_between(const struct leat_where_kind *a, const struct leat_where_kind *b,
			 struct leat_where_kind *ret)
{
	ret->requests = since(a->requests, b->requests);
	ret->bytes = since(a->bytes, b->bytes);
	for (unsigned i = 0; i < LEAT_WHERE_PARTS; i++)
		ret->ns[i] = since(a->ns[i], b->ns[i]);
}

static const struct leat_where_state *find(const struct leat_where *w, const char *name)
{
	for (unsigned i = 0; i < w->nstates; i++) {
		if (!strcmp(w->states[i]->name, name))
			return w->states[i];
	}
	return NULL;
}

static void state_between(const struct leat_where_state *a, const struct leat_where_state *b,
			  struct where_state *ret)
{
	struct hist *h = &ret->times;

	memset(h, 0, sizeof(*h));
	snprintf(ret->name, sizeof(ret->name), "%s", b->name);
	for (char *c = ret->name; *c; c++)
		*c = isgraph((unsigned char)*c) && *c != '"' && *c != '\\' ? *c : '?';
	for (size_t i = 0; i < b->nbuckets; i++)
		h->bucket[hist_index(b->buckets[i].ns)] = b->buckets[i].count;
	for (size_t i = 0; a && i < a->nbuckets; i++) {
		uint64_t *n = &h->bucket[hist_index(a->buckets[i].ns)];

		*n = since(a->buckets[i].count, *n);
	}
	for (size_t i = 0; i < HIST_BUCKETS; i++)
		h->count += h->bucket[i];
}

void where_between(const struct where_sample *a, const struct where_sample *b,
		   struct where_span *ret)
{
	ret->seconds = (double)since(a->at_ns, b->at_ns) / (double)NS_PER_S;
	ret->bytes_in = since(a->bytes_in, b->bytes_in);
	ret->bytes_out = since(a->bytes_out, b->bytes_out);
	ret->bytes_copied = since(a->bytes_copied, b->bytes_copied);
	ret->submit_blocked = since(a->submit_blocked, b->submit_blocked);
	kind_between(a->where->read, b->where->read, &ret->read);
	kind_between(a->where->write, b->where->write, &ret->write);
	ret->nstates = (unsigned)MIN(b->where->nstates, ARRAY_SIZE(ret->states));
	for (unsigned i = 0; i < ret->nstates; i++) {
		const struct leat_where_state *s = b->where->states[i];

		state_between(find(a->where, s->name), s, &ret->states[i]);
	}
}

struct where_rates where_rates(const struct leat_where_kind *k)
{
	double both = (double)k->ns[LEAT_WHERE_BOTH], bytes = (double)k->bytes * (double)NS_PER_S;
	struct where_rates r = {
		.achieved = tool_ratio(bytes, total_ns(k)),
		.disk = tool_ratio(bytes, both + (double)k->ns[LEAT_WHERE_DISK]),
		.net = tool_ratio(bytes, both + (double)k->ns[LEAT_WHERE_NET]),
	};

	if (r.disk > 0 && r.net > 0)
		r.efficiency = r.achieved / MIN(r.disk, r.net);
	return r;
}

char *where_bar(const struct leat_where_kind *k, char buf[WHERE_BAR_COLUMNS + 1])
{
	double all = total_ns(k), until = 0;
	unsigned at = 0;

	for (unsigned i = 0; i < LEAT_WHERE_PARTS; i++) {
		until += (double)k->ns[i];
		/* round the end of each part, not its length, so that the parts add up */
		while (at < WHERE_BAR_COLUMNS &&
		       at < (unsigned)(tool_ratio(until, all) * WHERE_BAR_COLUMNS + 0.5))
			buf[at++] = parts[i].letter;
	}
	buf[at] = '\0';
	return buf;
}

/* ---- for people --------------------------------------------------------------------------- */

static void print_rates(FILE *to, const struct leat_where_kind *k)
{
	struct where_rates r = where_rates(k);
	char achieved[16], disk[16], net[16];

	if (!k->bytes)
		return;
	fprintf(to, "  %s/s during a request: ", rate(r.achieved, achieved));
	if (r.efficiency > 0)
		fprintf(to, "%.2f of the lesser of disk %s/s and network %s/s\n", r.efficiency,
			rate(r.disk, disk), rate(r.net, net));
	else if (r.disk > 0)
		fprintf(to, "disk %s/s; no transfer apart from it and from the reply\n",
			rate(r.disk, disk));
	else
		fprintf(to, "no disk\n");
}

static void print_kind(FILE *to, const char *name, const struct leat_where_kind *k)
{
	double all = total_ns(k), n = (double)k->requests;
	char bar[WHERE_BAR_COLUMNS + 1], size[16];

	if (!k->requests) {
		fprintf(to, "%-6s none was sampled\n", name);
		return;
	}
	fprintf(to, "%-6s %s  %.1f us each, %" PRIu64 " sampled, %s\n", name, where_bar(k, bar),
		us(all) / n, k->requests, tool_print_size(k->bytes, size));
	for (unsigned i = 0; i < LEAT_WHERE_PARTS; i++)
		fprintf(to, "  %c %-13s %5.1f %% %12.1f us\n", parts[i].letter, parts[i].name,
			100 * tool_ratio((double)k->ns[i], all), us((double)k->ns[i]) / n);
	print_rates(to, k);
}

static void print_states(FILE *to, const struct where_span *s)
{
	fprintf(to, "%-13s %12s %12s %12s\n", "state", "p50 us", "p99 us", "sampled");
	for (unsigned i = 0; i < s->nstates; i++) {
		const struct hist *h = &s->states[i].times;

		if (h->count)
			fprintf(to, "%-13s %12.1f %12.1f %12" PRIu64 "\n", s->states[i].name,
				us((double)hist_percentile(h, 0.5)),
				us((double)hist_percentile(h, 0.99)), h->count);
	}
}

static double copied_per_byte(const struct where_span *s)
{
	return tool_ratio((double)s->bytes_copied, (double)s->bytes_in + (double)s->bytes_out);
}

void where_print(FILE *to, const struct where_span *s)
{
	char in[16], out[16];

	if (!s->bytes_in && !s->bytes_out && !s->read.requests && !s->write.requests) {
		fprintf(to, "nothing moved in %.1f s: no file was read or written meanwhile\n",
			s->seconds);
		return;
	}
	fprintf(to, "%.1f s: read %s/s, wrote %s/s, copied %.3f per byte, %" PRIu64 " submits blocked\n",
		s->seconds, rate(tool_ratio((double)s->bytes_out, s->seconds), out),
		rate(tool_ratio((double)s->bytes_in, s->seconds), in),
		copied_per_byte(s), s->submit_blocked);
	print_kind(to, "READ", &s->read);
	print_kind(to, "WRITE", &s->write);
	print_states(to, s);
}

/* ---- for programs ------------------------------------------------------------------------- */

static void json_kind(FILE *to, const char *name, const struct leat_where_kind *k)
{
	struct where_rates r = where_rates(k);

	fprintf(to, ",\"%s_looked_at\":%" PRIu64 ",\"%s_bytes\":%" PRIu64, name, k->requests, name,
		k->bytes);
	for (unsigned i = 0; i < LEAT_WHERE_PARTS; i++)
		fprintf(to, ",\"%s_%s_us\":%.3f", name, parts[i].json,
			tool_ratio(us((double)k->ns[i]), (double)k->requests));
	fprintf(to, ",\"%s_bytes_s\":%.0f,\"%s_disk_bytes_s\":%.0f,\"%s_net_bytes_s\":%.0f"
		    ",\"%s_efficiency\":%.4f", name, r.achieved, name, r.disk, name, r.net, name,
		r.efficiency);
}

void where_print_json(FILE *to, const struct where_span *s)
{
	fprintf(to, "{\"seconds\":%.3f,\"bytes_in\":%" PRIu64 ",\"bytes_out\":%" PRIu64
		    ",\"copied_per_byte\":%.4f,\"submit_blocked\":%" PRIu64, s->seconds, s->bytes_in,
		s->bytes_out, copied_per_byte(s), s->submit_blocked);
	json_kind(to, "read", &s->read);
	json_kind(to, "write", &s->write);
	for (unsigned i = 0; i < s->nstates; i++) {
		const struct where_state *t = &s->states[i];

		fprintf(to, ",\"%s_p50_us\":%.3f,\"%s_p99_us\":%.3f", t->name,
			us((double)hist_percentile(&t->times, 0.5)), t->name,
			us((double)hist_percentile(&t->times, 0.99)));
	}
	fprintf(to, "}\n");
}
