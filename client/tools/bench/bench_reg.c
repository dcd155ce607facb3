/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * bench_reg.c - leat bench registration: compares registration strategies
 *
 * Operation:  Runs come in groups: one block size, one number of buffers, one reuse rate, one number of
 *             jobs, and all strategies. The strategies take turns once per round; the median by rate is
 *             printed. If registration has a simulated cost (--cost), a model's prediction is printed as
 *             well: the time of `slab`, which registers nothing, plus the cost of the counted
 *             registrations. There is no prediction for several jobs: they share processors, which the
 *             model ignores.
 * Memory:     A group's results. Groups that need more than --memory are skipped with a message.
 * Threads:    main; bench_reg_cell.c has others.
 * Errors:     A failed strategy is reported in its line; status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench_reg.h"
#include "signals.h"

#define LIST_MAX 8u
#define STRATEGIES_MAX 16u
#define ROUNDS_MAX 15u
#define PAGE 4096u

struct numbers {
	unsigned n;
	uint64_t v[LIST_MAX];
};

struct matrix {
	struct reg_plan plan;
	unsigned nstrategies;
	const char *strategies[STRATEGIES_MAX];
	char names[128]; /* `strategies` points into this if some were named */
	struct numbers blocks, buffers, reuses, jobs;
	unsigned rounds;
	uint64_t memory;
	bool json, overwrite;
	int status;
};

/* ---- options ---- */

/* Sets a list of numbers, "1,100,1000". */
static int set_list(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	struct numbers *list = (struct numbers *)(void *)((char *)to + o->at);
	char copy[128], *save = NULL, *word;

	if (strlen(value) >= sizeof(copy))
		return opt_refuse(o, value, why, why_bytes);
	strcpy(copy, value);
	list->n = 0;
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		uint64_t v;

		if (list->n == LIST_MAX || !opt_parse_size(word, &v) || v < o->min || v > o->max)
			return opt_refuse(o, value, why, why_bytes);
		list->v[list->n++] = v;
	}
	return list->n ? 0 : opt_refuse(o, value, why, why_bytes);
}

static bool is_known(const char *name)
{
	const char *known;

	for (size_t i = 0; (known = leat_registration(i)); i++)
		if (!strcmp(known, name))
			return true;
	return false;
}

static int set_strategies(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	struct matrix *x = to;
	char *save = NULL, *word;

	if (strlen(value) >= sizeof(x->names))
		return opt_refuse(o, value, why, why_bytes);
	strcpy(x->names, value);
	x->nstrategies = 0;
	for (word = strtok_r(x->names, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (x->nstrategies == STRATEGIES_MAX || !is_known(word))
			return opt_refuse(o, value, why, why_bytes);
		x->strategies[x->nstrategies++] = word;
	}
	return x->nstrategies ? 0 : opt_refuse(o, value, why, why_bytes);
}

static void all_strategies(struct matrix *x)
{
	const char *name;

	for (x->nstrategies = 0; x->nstrategies < STRATEGIES_MAX &&
				 (name = leat_registration(x->nstrategies)); x->nstrategies++)
		x->strategies[x->nstrategies] = name;
}

/* "20,0.1,8,0.05": microseconds, at most a million each */
static int set_cost(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	struct matrix *x = to;
	struct reg_cost *c = &x->plan.cost;
	uint32_t *const parts[] = { &c->reg_ns, &c->reg_page_ns, &c->dereg_ns, &c->dereg_page_ns };
	const char *at = value;

	x->plan.has_cost = true;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		char *end;
		double us;

		if (*at < '0' || *at > '9')
			return opt_refuse(o, value, why, why_bytes);
		us = strtod(at, &end);
		if (!(us <= 1e6) || *end != (i + 1 < ARRAY_SIZE(parts) ? ',' : '\0'))
			return opt_refuse(o, value, why, why_bytes);
		*parts[i] = (uint32_t)(us * 1000 + 0.5);
		at = end + 1;
	}
	return 0;
}

#define AT(member) OPT_AT(struct matrix, member)

static const struct opt opts[] = {
	{ "strategies", "NAME,...", NULL, "what is compared; without it all", "names that registration= takes",
	  OPT_OTHER, .set = set_strategies },
	{ "bs", "BYTES,...", "4K,64K,1M,4M", "sizes of a block", "sizes from 1 to 64M, eight at most", OPT_OTHER, 0,
	  AT(blocks), .min = 1, .max = 64u << 20, .set = set_list },
	{ "buffers", "N,...", "1,100,1000", "numbers of buffers", "numbers from 1 to 100000, eight at most", OPT_OTHER,
	  0, AT(buffers), .min = 1, .max = 100000, .set = set_list },
	{ "reuse", "PERCENT,...", "20,80", "requests that use one of the last eight buffers",
	  "numbers from 0 to 100, eight at most", OPT_OTHER, 0, AT(reuses), .max = 100, .set = set_list },
	{ "jobs", "N,...", "1,8", "threads", "numbers from 1 to 64, eight at most", OPT_OTHER, 0, AT(jobs), .min = 1,
	  .max = 64, .set = set_list },
	{ "entries", "N", "100", "size of the cache", NULL, OPT_NUMBER, 0, AT(plan.entries), .min = 1, .max = 65536 },
	TOOL_FLAG(0, "read", struct matrix, plan.reads, "read into the buffers instead of writing from them"),
	{ "cost", "US,US,US,US", NULL, "simulated cost of registration: for each, for each page, and of deregistration",
	  "four numbers of microseconds with commas between", OPT_OTHER, .set = set_cost },
	{ "seconds", "TIME", "0.25", "of each combination", NULL, OPT_TIME, 0, AT(plan.ms), .min = 1, .max = 86400000,
	  .unit = NS_PER_MS, .bare = NS_PER_S },
	{ "rounds", "N", "1", "of which the median is printed", NULL, OPT_NUMBER, 0, AT(rounds), .min = 1,
	  .max = ROUNDS_MAX },
	{ "memory", "BYTES", "1G", "combinations with larger buffers are skipped", NULL, OPT_SIZE, 0, AT(memory),
	  .max = UINT64_MAX },
	TOOL_FLAG(0, "json", struct matrix, json, "one line for each result"),
	TOOL_FLAG(0, "overwrite", struct matrix, overwrite, "permit overwriting an existing file"),
};

static bool parse(const struct tool_cmd *self, struct matrix *x, int argc, char **argv)
{
	if (tool_options(self, argc, argv, x) < 0 || argc - optind != 1)
		return false;
	x->plan.url = argv[optind];
	return true;
}

/* ---- the file ---- */

/* A file long enough for each job to have its own range. */
static int prepare_file(struct matrix *x, struct leat *m, const char *path)
{
	struct bench_need need = {
		.url = x->plan.url,
		.path = path,
		.writes = !x->plan.reads,
		.overwrite = x->overwrite,
	};
	uint64_t jobs = 0;

	for (unsigned i = 0; i < x->blocks.n; i++)
		need.min = MAX(need.min, x->blocks.v[i]);
	for (unsigned i = 0; i < x->jobs.n; i++)
		jobs = MAX(jobs, x->jobs.v[i]);
	need.min *= jobs;
	need.size = need.min;
	return bench_file_prepare(m, &need, &x->plan.file);
}

/* ---- results ---- */

static double rate(const struct reg_result *r)
{
	return tool_ratio((double)r->ops * (double)NS_PER_S, (double)r->ns);
}

static double each(uint64_t n, const struct reg_result *r)
{
	return tool_ratio((double)n, (double)r->ops);
}

/* Predicted requests per second, where @slab is the result without registrations; 0: no prediction, as for memory
 * other than the program's own, which is transferred differently */
static double expected(const struct reg_plan *plan, const struct reg_cell *cell,
		       const struct reg_result *r, const struct reg_result *slab)
{
	double pages = (double)(MIN(cell->block, (uint64_t)r->most) + PAGE - 1) / PAGE, ns;
	const struct reg_cost *c = &plan->cost;

	if (!plan->has_cost || cell->jobs > 1 || !strcmp(cell->strategy, "arena") || !slab ||
	    !slab->ops || !r->ops)
		return 0;
	ns = (double)slab->ns / (double)slab->ops;
	ns += each(r->n.regs, r) * (c->reg_ns + (double)(uint64_t)pages * c->reg_page_ns);
	ns += each(r->n.deregs - MIN(r->n.reg_reaped, r->n.deregs), r) *
	      (c->dereg_ns + (double)(uint64_t)pages * c->dereg_page_ns);
	return (double)NS_PER_S / ns;
}

static void print_json(const struct matrix *x, const struct reg_cell *cell, const char *transport,
		       const struct reg_result *r, double model)
{
	printf("{\"kind\":\"registration\",\"transport\":\"%s\",\"strategy\":\"%s\",\"writes\":%s,"
	       "\"bs\":%" PRIu64 ",\"buffers\":%u,\"reuse\":%u,\"jobs\":%u,\"entries\":%u,"
	       "\"ops\":%" PRIu64 ",\"ops_s\":%.0f,\"expected_ops_s\":%.0f,", transport, cell->strategy,
	       x->plan.reads ? "false" : "true", cell->block, cell->buffers, cell->reuse, cell->jobs,
	       x->plan.entries, r->ops, rate(r), model);
	printf("\"regs_per_op\":%.4f,\"deregs_per_op\":%.4f,\"reaped_per_op\":%.4f,"
	       "\"binds_per_op\":%.4f,\"local_invs_per_op\":%.4f,\"bounced_per_op\":%.4f,"
	       "\"reg_pinned\":%" PRIu64 ",\"client_cpu_us_op\":%.2f}\n", each(r->n.regs, r),
	       each(r->n.deregs, r), each(r->n.reg_reaped, r), each(r->n.binds, r),
	       each(r->n.local_invs, r), each(r->n.reg_bounced, r), r->n.reg_pinned,
	       each(r->cpu_us, r));
}

static void print_text(const struct reg_cell *cell, const struct reg_result *r, double model)
{
	char size[16], wanted[24] = "-";

	if (model > 0)
		snprintf(wanted, sizeof(wanted), "%.0f", model);
	printf("  %-8s %8.0f %9s %7.3f %7.3f %7.3f %7.3f %7.3f %7.3f %8s %9.2f\n", cell->strategy,
	       rate(r), wanted, each(r->n.regs, r), each(r->n.deregs, r), each(r->n.reg_reaped, r),
	       each(r->n.binds, r), each(r->n.local_invs, r), each(r->n.reg_bounced, r),
	       tool_print_size(r->n.reg_pinned, size), each(r->cpu_us, r));
}

static int by_rate(const void *a, const void *b)
{
	double x = rate(a), y = rate(b);

	return x < y ? -1 : x > y;
}

/* ---- the matrix ---- */

static void run_group(struct matrix *x, struct reg_cell cell, const char *transport)
{
	static struct reg_result runs[STRATEGIES_MAX][ROUNDS_MAX];
	int failed[STRATEGIES_MAX] = { 0 };
	const struct reg_result *slab = NULL;
	char why[REG_WHY_MAX];

	for (unsigned round = 0; round < x->rounds; round++) {
		for (unsigned i = 0; i < x->nstrategies && !tool_interrupted(); i++) {
			cell.strategy = x->strategies[i];
			if (failed[i])
				continue;
			failed[i] = reg_cell_run(&x->plan, &cell, &runs[i][round], why);
			if (failed[i]) {
				log_err("%s: %s", x->plan.url, why);
				x->status = TOOL_FAILED;
			}
		}
	}
	for (unsigned i = 0; i < x->nstrategies; i++) {
		qsort(runs[i], x->rounds, sizeof(runs[i][0]), by_rate);
		if (!strcmp(x->strategies[i], "slab") && !failed[i])
			slab = &runs[i][x->rounds / 2];
	}
	for (unsigned i = 0; i < x->nstrategies && !tool_interrupted(); i++) {
		const struct reg_result *r = &runs[i][x->rounds / 2];
		double model;

		if (failed[i])
			continue;
		cell.strategy = x->strategies[i];
		model = expected(&x->plan, &cell, r, slab);
		if (x->json)
			print_json(x, &cell, transport, r, model);
		else
			print_text(&cell, r, model);
	}
	fflush(stdout);
}

static void group(struct matrix *x, const struct reg_cell *cell, const char *transport)
{
	char size[16], much[16], most[16];
	uint64_t bytes = reg_cell_bytes(cell);

	if (!x->json) {
		printf("%s %s, %u buffer%s, ", tool_print_size(cell->block, size),
		       x->plan.reads ? "reads" : "writes", cell->buffers,
		       tool_plural(cell->buffers));
		if (cell->buffers > 1)
			printf("%u %% reused, ", cell->reuse);
		printf("%u job%s\n", cell->jobs, tool_plural(cell->jobs));
	}
	if (bytes <= x->memory)
		run_group(x, *cell, transport);
	else if (!x->json)
		printf("  left out: these are %s, and --memory is %s\n",
		       tool_print_size(bytes, much), tool_print_size(x->memory, most));
}

static void all_groups(struct matrix *x, const char *transport)
{
	struct reg_cell cell;

	if (!x->json) {
		printf("registration over %s, caches of %u entries", transport, x->plan.entries);
		if (x->plan.has_cost)
			printf("; a registration takes %.1f us and %.2f a page, its end %.1f and %.2f",
			       x->plan.cost.reg_ns / 1e3, x->plan.cost.reg_page_ns / 1e3,
			       x->plan.cost.dereg_ns / 1e3, x->plan.cost.dereg_page_ns / 1e3);
		printf("\n  %-8s %8s %9s %7s %7s %7s %7s %7s %7s %8s %9s\n", "", "op/s", "expected",
		       "reg/op", "ended", "aside", "bound", "taken", "copied", "kept", "CPU us/op");
	}
	for (unsigned b = 0; b < x->blocks.n; b++)
		for (unsigned n = 0; n < x->buffers.n; n++)
			/* one buffer is always reused */
			for (unsigned u = 0; u < (x->buffers.v[n] > 1 ? x->reuses.n : 1); u++)
				for (unsigned j = 0; j < x->jobs.n && !tool_interrupted(); j++) {
					cell = (struct reg_cell){
						.block = x->blocks.v[b],
						.buffers = (unsigned)x->buffers.v[n],
						.reuse = (unsigned)x->reuses.v[u],
						.jobs = (unsigned)x->jobs.v[j],
					};
					group(x, &cell, transport);
				}
}

static int bench_reg_run(const struct tool_cmd *self, int argc, char **argv)
{
	static struct matrix x;
	char why[256];
	struct tool_target t = { 0 };
	char transport[8];
	int rc;

	all_strategies(&x);
	for (const struct opt *o = opts; o < opts + ARRAY_SIZE(opts); o++) {
		if (o->type == OPT_OTHER && o->preset && opt_set(o, &x, o->preset, why, sizeof(why)))
			return TOOL_FAILED;
	}
	if (!parse(self, &x, argc, argv))
		return tool_usage(self);
	if (tool_attach(x.plan.url, &t))
		return TOOL_FAILED;
	(void)signals_hold(); /* an interrupt prints the results so far */
	(void)leat_describe(t.m, LEAT_TEXT_TRANSPORT, 0, transport, sizeof(transport));
	if (!strcmp(transport, "tcp")) {
		log_err("%s: nothing is registered over TCP", x.plan.url);
		x.status = TOOL_FAILED;
	} else if (prepare_file(&x, t.m, t.path)) {
		x.status = TOOL_FAILED;
	} else {
		all_groups(&x, transport);
		rc = bench_file_remove(t.m, &x.plan.file, false);
		x.status = MAX(x.status, rc);
	}
	signals_release();
	tool_detach(&t);
	return x.status;
}

const struct tool_cmd cmd_bench_reg = { "bench registration", "URL [OPTION]...", "compares strategies of registration",
					bench_reg_run, opts, ARRAY_SIZE(opts), .mixed = true };
