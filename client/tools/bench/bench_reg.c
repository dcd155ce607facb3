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

static bool parse_list(const char *text, uint64_t min, uint64_t max, struct numbers *ret)
{
	char copy[128], *save = NULL, *word;

	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	ret->n = 0;
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		uint64_t v;

		if (ret->n == LIST_MAX || !tool_parse_size(word, &v) || v < min || v > max)
			return false;
		ret->v[ret->n++] = v;
	}
	return ret->n > 0;
}

static bool is_known(const char *name)
{
	const char *known;

	for (size_t i = 0; (known = leat_registration(i)); i++)
		if (!strcmp(known, name))
			return true;
	return false;
}

static bool parse_strategies(struct matrix *x, const char *text)
{
	char *save = NULL, *word;

	if (strlen(text) >= sizeof(x->names))
		return false;
	strcpy(x->names, text);
	x->nstrategies = 0;
	for (word = strtok_r(x->names, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (x->nstrategies == STRATEGIES_MAX || !is_known(word))
			return false;
		x->strategies[x->nstrategies++] = word;
	}
	return x->nstrategies > 0;
}

static void all_strategies(struct matrix *x)
{
	const char *name;

	for (x->nstrategies = 0; x->nstrategies < STRATEGIES_MAX &&
				 (name = leat_registration(x->nstrategies)); x->nstrategies++)
		x->strategies[x->nstrategies] = name;
}

/* "20,0.1,8,0.05": microseconds, at most a million each */
static bool parse_cost(const char *text, struct leat_reg_cost *ret)
{
	uint32_t *to[] = { &ret->reg_ns, &ret->reg_page_ns, &ret->dereg_ns, &ret->dereg_page_ns };

	for (size_t i = 0; i < ARRAY_SIZE(to); i++) {
		char *end;
		double us;

		if (*text < '0' || *text > '9')
			return false;
		us = strtod(text, &end);
		if (!(us <= 1e6) || *end != (i + 1 < ARRAY_SIZE(to) ? ',' : '\0'))
			return false;
		*to[i] = (uint32_t)(us * 1000 + 0.5);
		text = end + 1;
	}
	return true;
}

static bool check(bool good, const char *option, const char *value, const char *allowed)
{
	if (!good)
		log_err("%s %s: must be %s", option, value, allowed);
	return good;
}

static bool parse_option(struct matrix *x, int opt, const char *value)
{
	switch (opt) {
	case 's':
		return check(parse_strategies(x, value), "--strategies", value,
			     "names that registration= takes, with commas between");
	case 'b':
		return check(parse_list(value, 1, 64u << 20, &x->blocks), "--bs", value,
			     "sizes from 1 to 64M, eight at most");
	case 'n':
		return check(parse_list(value, 1, 100000, &x->buffers), "--buffers", value,
			     "numbers from 1 to 100000, eight at most");
	case 'u':
		return check(parse_list(value, 0, 100, &x->reuses), "--reuse", value,
			     "numbers from 0 to 100, eight at most");
	case 'j':
		return check(parse_list(value, 1, 64, &x->jobs), "--jobs", value,
			     "numbers from 1 to 64, eight at most");
	case 'e':
		return check(tool_parse_count(value, 1, 65536, &x->plan.entries), "--entries", value,
			     "a number from 1 to 65536");
	case 'c':
		x->plan.has_cost = true;
		return check(parse_cost(value, &x->plan.cost), "--cost", value,
			     "four numbers of microseconds with commas between");
	case 't':
		return check(tool_parse_seconds(value, &x->plan.ms), "--seconds", value,
			     "a number from 0.001 to 86400");
	case 'r':
		return check(tool_parse_count(value, 1, ROUNDS_MAX, &x->rounds), "--rounds", value,
			     "a number from 1 to 15");
	case 'm':
		return check(tool_parse_size(value, &x->memory), "--memory", value, "a size");
	case 'R':
		x->plan.reads = true;
		return true;
	case 'J':
		x->json = true;
		return true;
	case 'o':
		x->overwrite = true;
		return true;
	default:
		return false; /* getopt has printed a message */
	}
}

static bool parse(struct matrix *x, int argc, char **argv)
{
	static const struct option options[] = {
		{ "strategies", required_argument, NULL, 's' },
		{ "bs", required_argument, NULL, 'b' },
		{ "buffers", required_argument, NULL, 'n' },
		{ "reuse", required_argument, NULL, 'u' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "entries", required_argument, NULL, 'e' },
		{ "cost", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 't' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "memory", required_argument, NULL, 'm' },
		{ "read", no_argument, NULL, 'R' },
		{ "json", no_argument, NULL, 'J' },
		{ "overwrite", no_argument, NULL, 'o' },
		{ 0 },
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (!parse_option(x, opt, optarg))
			return false;
	}
	if (argc - optind != 1)
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
	return r->ns ? (double)r->ops * (double)NS_PER_S / (double)r->ns : 0;
}

static double each(uint64_t n, const struct reg_result *r)
{
	return r->ops ? (double)n / (double)r->ops : 0;
}

/* Predicted requests per second, where @slab is the result without registrations; 0: no prediction, as for memory
 * other than the program's own, which is transferred differently */
static double expected(const struct reg_plan *plan, const struct reg_cell *cell,
		       const struct reg_result *r, const struct reg_result *slab)
{
	double pages = (double)(MIN(cell->block, (uint64_t)r->most) + PAGE - 1) / PAGE, ns;
	const struct leat_reg_cost *c = &plan->cost;

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
	       each(r->n.deregs, r), each(r->n.reg_reaped, r), each(r->n.reg_binds, r),
	       each(r->n.reg_local_invs, r), each(r->n.reg_bounced, r), r->n.reg_pinned,
	       each(r->cpu_us, r));
}

static void print_text(const struct reg_cell *cell, const struct reg_result *r, double model)
{
	char size[16], wanted[24] = "-";

	if (model > 0)
		snprintf(wanted, sizeof(wanted), "%.0f", model);
	printf("  %-8s %8.0f %9s %7.3f %7.3f %7.3f %7.3f %7.3f %7.3f %8s %9.2f\n", cell->strategy,
	       rate(r), wanted, each(r->n.regs, r), each(r->n.deregs, r), each(r->n.reg_reaped, r),
	       each(r->n.reg_binds, r), each(r->n.reg_local_invs, r), each(r->n.reg_bounced, r),
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
		       cell->buffers == 1 ? "" : "s");
		if (cell->buffers > 1)
			printf("%u %% reused, ", cell->reuse);
		printf("%u job%s\n", cell->jobs, cell->jobs == 1 ? "" : "s");
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

int bench_reg_run(const struct tool_cmd *self, int argc, char **argv)
{
	static struct matrix x = {
		.plan = { .entries = 100, .ms = 250 },
		.blocks = { 4, { 4096, 65536, 1u << 20, 4u << 20 } },
		.buffers = { 3, { 1, 100, 1000 } },
		.reuses = { 2, { 20, 80 } },
		.jobs = { 2, { 1, 8 } },
		.rounds = 1, .memory = 1u << 30,
	};
	struct tool_target t = { 0 };
	struct leat_info *info;
	int rc;

	all_strategies(&x);
	if (!parse(&x, argc, argv))
		return tool_usage(self);
	if (tool_attach(x.plan.url, &t))
		return TOOL_FAILED;
	(void)signals_hold(); /* an interrupt prints the results so far */
	info = malloc(sizeof(*info));
	if (!info) {
		signals_release();
		tool_detach(&t);
		return tool_fail(NULL, x.plan.url, -ENOMEM);
	}
	leat_info(t.m, info);
	if (!strcmp(info->transport, "tcp")) {
		log_err("%s: nothing is registered over TCP", x.plan.url);
		x.status = TOOL_FAILED;
	} else if (prepare_file(&x, t.m, t.path)) {
		x.status = TOOL_FAILED;
	} else {
		all_groups(&x, info->transport);
		rc = bench_file_remove(t.m, &x.plan.file, false);
		x.status = MAX(x.status, rc);
	}
	free(info);
	signals_release();
	tool_detach(&t);
	return x.status;
}
