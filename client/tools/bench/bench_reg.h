/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * bench_reg.h - `leat bench registration`: what each strategy costs
 */
#ifndef LEAT_TOOL_BENCH_REG_H
#define LEAT_TOOL_BENCH_REG_H

#include "bench_file.h"

/* What is the same in all of its runs. */
struct reg_plan {
	const char *url;
	struct bench_file file;       /* that all of it goes to */
	bool reads;                   /* into the buffers; else out of them */
	unsigned entries;             /* of the caches, all jobs together */
	uint64_t ms;                  /* of one run, at most */
	bool has_cost;
	struct leat_reg_cost cost;
};

/* One run. */
struct reg_cell {
	const char *strategy;
	uint64_t block;
	unsigned buffers, reuse, jobs;
};

struct reg_result {
	uint64_t ns, ops, cpu_us;
	struct leat_stats n; /* the counters about registration, and of those only */
	uint32_t most;       /* bytes that one request moves at most */
};

/** reg_cell_bytes - what the buffers of a run come to */
uint64_t reg_cell_bytes(const struct reg_cell *cell);

/** reg_cell_run - do it
 * @why: room for WHY_MAX bytes: what went wrong, if something did
 *
 * Return: 0 or -errno.
 */
#define REG_WHY_MAX 768
must_check int reg_cell_run(const struct reg_plan *plan, const struct reg_cell *cell,
			    struct reg_result *ret, char *why);

/** bench_reg_run - `leat bench registration ...`; Return: exit status */
int bench_reg_run(const struct tool_cmd *self, int argc, char **argv);

#endif
