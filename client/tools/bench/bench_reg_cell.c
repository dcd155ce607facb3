/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * bench_reg_cell.c - one run of `leat bench registration`
 *
 * Operation:  Each job has a mount, an equal part of the buffers and of the cache, and one request in
 *             flight. The reuse percentage of requests goes to one of the last few buffers, which are
 *             still in any cache. The rest cycle through the buffers in order, so that a cache with fewer
 *             entries than buffers has evicted each one by then. The job first runs until the cache is
 *             full, then for the requested time.
 * Memory:     The buffers. In the program's own memory, all pages are touched before timing, and a gap
 *             page separates buffers, because neighbors are registered together. With `slab`
 *             leat_buf_register(leat_session()) registers them beforehand, with `arena` they come from leat_buf_alloc(leat_session()).
 * Threads:    One per job, synchronized at two barriers. Each measures the time and the processor time of
 *             the whole process itself, because a thread that waits for the jobs may wake late.
 * Errors:     A failed job still passes its barriers; the reason of the first one is reported.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/machine.h"
#include "base/random.h"
#include "bench_reg.h"

#define PAGE ((uint64_t)4096)
#define RECENT 8u
#define OPS_MIN 50u /* with fewer, percentages mean nothing */
#define SPARE_BYTES ((uint64_t)4 << 20)

struct reg_job {
	const struct reg_plan *plan;
	const struct reg_cell *cell;
	unsigned number, buffers, entries;
	pthread_t thread;
	pthread_barrier_t *step;

	struct leat *m;
	struct leat_file *f;
	uint8_t *mem;
	uint64_t mem_bytes;
	bool is_leat_mem;  /* from leat_buf_alloc(leat_session()) */

	uint64_t random;
	unsigned next, recent[RECENT], nrecent, at;

	uint64_t ops, start_ns, end_ns, start_cpu_us, end_cpu_us;
	struct bench_counters before, after;
	uint32_t most;
	int err;
	char why[REG_WHY_MAX];
};

static void job_fail(struct reg_job *job, int err)
{
	if (job->err)
		return;
	job->err = err;
	snprintf(job->why, sizeof(job->why), "%s: %s", job->cell->strategy,
		 bench_file_explain(job->m, err));
}

static uint64_t stride(const struct reg_cell *cell)
{
	return round_up_pow2(cell->block, PAGE) + PAGE;
}

uint64_t reg_cell_bytes(const struct reg_cell *cell)
{
	return cell->buffers * stride(cell);
}

static bool is_strategy(const struct reg_job *job, const char *name)
{
	return !strcmp(job->cell->strategy, name);
}

/* ---- set up ---- */

static int get_memory(struct reg_job *job)
{
	int rc = 0;

	if (is_strategy(job, "arena")) {
		rc = leat_buf_alloc(leat_session(job->m), job->mem_bytes, (void **)&job->mem);
		job->is_leat_mem = !rc;
	} else {
		job->mem = mmap(NULL, job->mem_bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (job->mem == MAP_FAILED) {
			job->mem = NULL;
			rc = -ENOMEM;
		}
	}
	if (rc)
		return rc;
	memset(job->mem, (int)job->number + 1, job->mem_bytes);
	if (is_strategy(job, "slab"))
		rc = leat_buf_register(leat_session(job->m), job->mem, job->mem_bytes);
	return rc;
}

static void put_memory(struct reg_job *job)
{
	if (!job->mem)
		return;
	if (job->is_leat_mem) {
		leat_buf_free(leat_session(job->m), job->mem);
		return;
	}
	if (is_strategy(job, "slab"))
		(void)leat_buf_unregister(leat_session(job->m), job->mem); /* may not be registered */
	munmap(job->mem, job->mem_bytes);
}

static int set_up(struct reg_job *job)
{
	const struct reg_cell *cell = job->cell;
	const struct reg_cost *cost = &job->plan->cost;
	struct leat_info info = { .size = sizeof(info) };
	char opts[256];
	int rc;

	job->random = (uint64_t)job->number << 40; /* sequences that overlap after 2^40 numbers at the earliest */
	job->mem_bytes = job->buffers * stride(cell);
	/* the limit here is entries, not bytes */
	snprintf(opts, sizeof(opts), "cache=none&registration=%s&bounce=0&reg_entries=%u&reg_bytes=%" PRIu64 "&"
		 "reg_cost=%u&reg_page_cost=%u&dereg_cost=%u&dereg_page_cost=%u", cell->strategy, job->entries,
		 job->mem_bytes + SPARE_BYTES, cost->reg_ns, cost->reg_page_ns, cost->dereg_ns, cost->dereg_page_ns);
	rc = tool_mount(job->plan->url, opts, &job->m);
	if (rc)
		return rc;
	rc = bench_file_open(job->m, &job->plan->file, job->plan->reads ? O_RDONLY : O_RDWR, &job->f);
	if (rc)
		return rc;
	leat_info(job->m, &info);
	job->most = job->plan->reads ? info.rsize : info.wsize;
	return get_memory(job);
}

static void take_down(struct reg_job *job)
{
	put_memory(job);
	if (job->f) {
		int rc = leat_close(job->f);

		if (rc)
			job_fail(job, rc);
	}
	tool_umount(job->m);
}

/* ---- work ---- */

static uint64_t next_random(struct reg_job *job)
{
	return random_next(&job->random) >> 11;
}

static unsigned next_buffer(struct reg_job *job)
{
	if (job->nrecent && next_random(job) % 100 < job->cell->reuse)
		return job->recent[next_random(job) % job->nrecent];
	job->next = (job->next + 1) % job->buffers;
	job->recent[job->at] = job->next;
	job->at = (job->at + 1) % RECENT;
	job->nrecent = MAX(job->nrecent, job->at ? job->at : RECENT);
	return job->next;
}

static void one(struct reg_job *job)
{
	uint64_t block = job->cell->block, off = job->number * block;
	uint8_t *buf = job->mem + next_buffer(job) * stride(job->cell);
	ssize_t n;

	if (job->plan->reads)
		n = leat_pread(job->f, buf, block, off);
	else
		n = leat_pwrite(job->f, buf, block, off);
	if (n != (ssize_t)block && !tool_interrupted())
		job_fail(job, n < 0 ? (int)n : -EIO);
}

/* Runs at least @ops requests and at least @ns. */
static void work(struct reg_job *job, uint64_t ops, uint64_t ns)
{
	uint64_t end = clock_now_ns() + ns;

	for (job->ops = 0; !job->err && !tool_interrupted(); job->ops++) {
		if (job->ops >= ops && clock_now_ns() >= end)
			break;
		one(job);
	}
}

static void *run_job(void *arg)
{
	struct reg_job *job = arg;
	int rc = set_up(job);

	if (rc)
		job_fail(job, rc);
	/* until the cache is full and evicts, or holds all buffers */
	work(job, MAX(job->entries * 2 * 100 / (101 - MIN(job->cell->reuse, 99u)), job->buffers),
	     0);
	if (job->m)
		bench_get_counters(job->m, &job->before);
	pthread_barrier_wait(job->step);
	job->start_ns = clock_now_ns();
	job->start_cpu_us = machine_own_cpu_us();
	work(job, OPS_MIN, job->plan->ms * NS_PER_MS);
	job->end_ns = clock_now_ns();
	job->end_cpu_us = machine_own_cpu_us();
	pthread_barrier_wait(job->step);
	if (job->m)
		bench_get_counters(job->m, &job->after);
	take_down(job);
	return NULL;
}

/* ---- all jobs ---- */

/* The @i-th of @n parts of @all, at least 1. */
static unsigned share(unsigned all, unsigned n, unsigned i)
{
	unsigned part = all / n + (i < all % n);

	return MAX(part, 1u);
}

int reg_cell_run(const struct reg_plan *plan, const struct reg_cell *cell, struct reg_result *ret,
		 char *why)
{
	struct reg_job *jobs = calloc(cell->jobs, sizeof(*jobs));
	struct reg_result sum = { 0 };
	pthread_barrier_t step;
	uint64_t start = UINT64_MAX, cpu = UINT64_MAX, end = 0, end_cpu = 0;
	int rc = 0;

	if (!jobs) {
		snprintf(why, REG_WHY_MAX, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	pthread_barrier_init(&step, NULL, cell->jobs);
	for (unsigned i = 0; i < cell->jobs; i++) {
		jobs[i] = (struct reg_job){ .plan = plan, .cell = cell, .number = i, .step = &step,
					    .buffers = share(cell->buffers, cell->jobs, i),
					    .entries = share(plan->entries, cell->jobs, i) };
		rc = pthread_create(&jobs[i].thread, NULL, run_job, &jobs[i]);
		if (rc) /* running jobs wait at a barrier that will never open */
			exit(tool_fail(NULL, "cannot start a thread", -rc));
	}
	for (unsigned i = 0; i < cell->jobs; i++) {
		pthread_join(jobs[i].thread, NULL);
		sum.ops += jobs[i].ops;
		sum.most = jobs[i].most;
		bench_add_counters(&sum.n, &jobs[i].before, &jobs[i].after);
		start = MIN(start, jobs[i].start_ns);
		cpu = MIN(cpu, jobs[i].start_cpu_us);
		end = MAX(end, jobs[i].end_ns);
		end_cpu = MAX(end_cpu, jobs[i].end_cpu_us);
		if (jobs[i].err && !rc) {
			rc = jobs[i].err;
			snprintf(why, REG_WHY_MAX, "%s", jobs[i].why);
		}
	}
	sum.ns = end - start;
	sum.cpu_us = end_cpu - cpu;
	pthread_barrier_destroy(&step);
	free(jobs);
	*ret = sum;
	return rc;
}
