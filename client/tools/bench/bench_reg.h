/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * bench_reg.h - `leat bench registration`: cost of each strategy
 */
#ifndef LEAT_TOOL_BENCH_REG_H
#define LEAT_TOOL_BENCH_REG_H

#include "bench_file.h"

/* Settings common to all runs. */
struct reg_plan {
	const char *url;
	struct bench_file file;       /* used by all runs */
	bool reads;                   /* read into the buffers; else write from them */
	unsigned entries;             /* of the caches, all jobs together */
	uint64_t ms;                  /* at most, of one run */
	bool has_cost;
	struct reg_cost {
		uint32_t reg_ns, reg_page_ns; /* per registration, and per page of it */
		uint32_t dereg_ns, dereg_page_ns;
	} cost;
};

/* One run. */
struct reg_cell {
	const char *strategy;
	uint64_t block;
	unsigned buffers, reuse, jobs;
};

struct reg_result {
	uint64_t ns, ops, cpu_us;
	struct bench_counters n; /* only the registration counters */
	uint32_t most;       /* maximum bytes of one request */
};

/** reg_cell_bytes - total size of the buffers of a run */
uint64_t reg_cell_bytes(const struct reg_cell *cell);

/** reg_cell_run - executes one run
 * @why: room for REG_WHY_MAX bytes: receives the reason of a failure
 *
 * Return: 0 or -errno.
 */
#define REG_WHY_MAX 768
must_check int reg_cell_run(const struct reg_plan *plan, const struct reg_cell *cell,
			    struct reg_result *ret, char *why);

extern const struct tool_cmd cmd_bench_reg; /* `leat bench registration ...` */

#endif
