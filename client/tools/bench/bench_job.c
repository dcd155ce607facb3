/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * bench_job.c - one job of `leat bench`
 *
 * Operation:  A slot is one request in flight with its buffer. When the request ends, its callback records
 *             the latency and starts the next one, until the deadline. A meta slot repeats create, close,
 *             stat, unlink with its own file names; close is not counted.
 * Memory:     Buffers from leat_buf_alloc(leat_session()) or malloc(), as requested.
 * Threads:    One per job; the job's data belongs to that thread until it ends.
 * Errors:     The first is kept in the job with its text. The job then waits for requests in flight and
 *             still passes its barriers, so that other threads do not hang. If the user interrupts it and
 *             the server is gone, it abandons requests in flight and its mount.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/random.h"
#include "bench.h"
#include "signals.h"

#define LOOK_MS 100               /* interval of checks for an interrupt */
#define NAME_STEP UINT64_C(0x9e3779b97f4a7c15)
#define GIVE_UP_NS (2 * NS_PER_S) /* time limit for requests in flight after an interrupt */

struct bench_slot {
	struct bench_job *job;
	void *buf;
	uint64_t start_ns;
	/* meta */
	int (*step)(struct bench_slot *s);
	struct leat_file *made;
	struct stat st;
	char path[TOOL_PATH_MAX + 64];
};

static void job_fail(struct bench_job *job, int err)
{
	if (job->err || job->lost)
		return;
	job->err = err;
	snprintf(job->why, sizeof(job->why), "%s", bench_file_explain(job->m, err));
}

static void start(struct bench_slot *s)
{
	struct bench_job *job = s->job;
	int rc;

	s->start_ns = clock_now_ns();
	if (job->err || s->start_ns >= job->deadline_ns || tool_interrupted())
		return;
	job->busy++;
	rc = job->plan->kind->start(s);
	if (rc) {
		job->busy--;
		job_fail(job, rc);
	}
}

static void on_done(void *user_data, int64_t result)
{
	struct bench_slot *s = user_data;
	struct bench_job *job = s->job;

	job->busy--;
	if (result < 0) {
		job_fail(job, (int)result);
		return;
	}
	hist_add(&job->hist, clock_now_ns() - s->start_ns);
	job->ops++;
	if (job->plan->kind->data)
		job->bytes += (uint64_t)result;
	start(s);
}

static uint64_t next_offset(struct bench_job *job)
{
	const struct bench_plan *plan = job->plan;
	uint64_t blocks = plan->size / plan->block;

	if (plan->kind->random)
		return random_next(&job->random) % blocks * plan->block;
	return job->next_off++ % blocks * plan->block;
}

static struct leat_cb callback(struct bench_slot *s, void (*fn)(void *user_data, int64_t result))
{
	return (struct leat_cb){ .fn = fn, .user_data = s };
}

static int start_read(struct bench_slot *s)
{
	struct bench_job *job = s->job;

	if (job->volume)
		return leat_aio_block_pread(job->volume, s->buf, job->plan->block, next_offset(job), callback(s, on_done));
	return leat_aio_pread(job->file, s->buf, job->plan->block, next_offset(job), callback(s, on_done));
}

static int start_write(struct bench_slot *s)
{
	struct bench_job *job = s->job;

	if (job->volume)
		return leat_aio_block_pwrite(job->volume, s->buf, job->plan->block, next_offset(job),
					     job->plan->sync ? LEAT_BLOCK_FUA : 0, callback(s, on_done));
	return leat_aio_pwrite(job->file, s->buf, job->plan->block, next_offset(job), callback(s, on_done));
}

static int start_null(struct bench_slot *s)
{
	return leat_aio_null(s->job->m, callback(s, on_done));
}

static int meta_create(struct bench_slot *s);
static int meta_close(struct bench_slot *s);

static int meta_unlink(struct bench_slot *s)
{
	s->step = meta_create;
	return leat_aio_unlink(s->job->m, s->path, callback(s, on_done));
}

static int meta_stat(struct bench_slot *s)
{
	s->step = meta_unlink;
	return leat_aio_stat(s->job->m, s->path, &s->st, callback(s, on_done));
}

static void on_closed(void *user_data, int64_t result)
{
	struct bench_slot *s = user_data;

	s->job->busy--;
	if (result < 0)
		job_fail(s->job, (int)result);
	start(s);
}

static int meta_close(struct bench_slot *s)
{
	s->step = meta_stat;
	return leat_aio_close(s->made, callback(s, on_closed));
}

static void on_created(void *user_data, int64_t result)
{
	struct bench_slot *s = user_data;

	if (result < 0)
		s->step = meta_create; /* nothing to close or remove */
	on_done(s, result);
}

static int meta_create(struct bench_slot *s)
{
	struct bench_job *job = s->job;
	uint64_t mark;
	int n;

	/* a unique mark for each file: the step is odd, so none repeats and no two jobs collide */
	mark = job->plan->mark + (job->serial++ * job->plan->jobs + job->number) * NAME_STEP;
	n = snprintf(s->path, sizeof(s->path), "%s/" TOOL_TEMP_NAME_FMT, job->plan->file.path, mark);
	if (n < 0 || (size_t)n >= sizeof(s->path))
		return -ENAMETOOLONG;
	s->step = meta_close;
	return leat_aio_open(job->m, s->path, O_CREAT | O_EXCL | O_WRONLY, 0600, &s->made, callback(s, on_created));
}

static int start_meta(struct bench_slot *s)
{
	return s->step(s);
}

/* Cleans up wherever the deadline interrupted the sequence. */
static void meta_finish(struct bench_slot *s)
{
	if (s->step == meta_close)
		(void)leat_close(s->made); /* an empty file: nothing to lose */
	if (s->step && s->step != meta_create)
		(void)TOOL_AGAIN(leat_unlink(s->job->m, s->path));
}

const struct bench_kind bench_kinds[] = {
	{ "read", true, false, false, start_read },
	{ "write", true, true, false, start_write },
	{ "randread", true, false, true, start_read },
	{ "randwrite", true, true, true, start_write },
	{ "null", false, false, false, start_null },
	{ "meta", false, true, false, start_meta },
};
const size_t bench_kinds_count = ARRAY_SIZE(bench_kinds);

/* One block, so that it lies in huge pages whatever the block size. */
static int alloc_mem(struct bench_job *job)
{
	size_t bytes;

	job->stride = (job->plan->block + 4095) & ~(size_t)4095;
	if (!mul_size(job->plan->qd, job->stride, &bytes))
		return -ENOMEM;
	return leat_buf_alloc(leat_session(job->m), bytes, &job->mem);
}

static int alloc_slots(struct bench_job *job)
{
	const struct bench_plan *plan = job->plan;
	int rc = 0;

	job->slots = calloc(plan->qd, sizeof(*job->slots));
	if (!job->slots)
		return -ENOMEM;
	if (plan->kind->data && !plan->malloc_buf)
		rc = alloc_mem(job);
	for (unsigned i = 0; i < plan->qd && !rc; i++) {
		struct bench_slot *s = &job->slots[i];

		s->job = job;
		s->step = meta_create;
		if (!plan->kind->data)
			continue;
		if (plan->malloc_buf)
			rc = -posix_memalign(&s->buf, 64, plan->block);
		else
			s->buf = (char *)job->mem + i * job->stride;
		if (!rc && plan->kind->writes) {
			uint64_t *word = s->buf;

			for (size_t w = 0; w < plan->block / sizeof(*word); w++)
				word[w] = random_next(&job->random);
		}
	}
	return rc;
}

static void free_slots(struct bench_job *job)
{
	if (!job->slots)
		return;
	for (unsigned i = 0; job->plan->malloc_buf && i < job->plan->qd; i++)
		free(job->slots[i].buf);
	leat_buf_free(leat_session(job->m), job->mem);
	free(job->slots);
}

static int prepare_volume(struct bench_job *job)
{
	const struct bench_plan *plan = job->plan;
	int rc = leat_block_attach(plan->url, NULL, plan->kind->writes ? 0 : LEAT_BLOCK_RDONLY, &job->volume);

	if (rc)
		return rc;
	job->m = leat_block_handle(job->volume);
	signals_mount_add(job->m);
	return 0;
}

static int prepare_file(struct bench_job *job)
{
	const struct bench_plan *plan = job->plan;
	int rc, flags = !plan->kind->writes ? O_RDONLY : plan->sync ? O_RDWR | O_SYNC : O_RDWR;

	rc = tool_mount(plan->url, "cache=none", &job->m); /* measure the server, not the cache */
	if (!rc && plan->kind->data)
		rc = bench_file_open(job->m, &plan->file, flags, &job->file);
	return rc;
}

static int prepare(struct bench_job *job)
{
	const struct bench_plan *plan = job->plan;
	int rc;

	job->random = (uint64_t)job->number << 40; /* sequences that overlap after 2^40 numbers at the earliest */
	if (plan->kind->data)
		job->next_off = plan->size / plan->block / plan->jobs * job->number;
	rc = plan->on_volume ? prepare_volume(job) : prepare_file(job);
	return rc ? rc : alloc_slots(job);
}

/* Written data counts when it is stable. */
static void make_stable(struct bench_job *job)
{
	int rc = job->volume ? TOOL_AGAIN(leat_block_flush(job->volume)) : TOOL_AGAIN(leat_fsync(job->file));

	job->lost = tool_is_interruption(rc);
	if (rc)
		job_fail(job, rc);
}

static void work(struct bench_job *job)
{
	const struct bench_plan *plan = job->plan;
	uint64_t give_up_ns = 0;
	int rc;

	job->deadline_ns = clock_now_ns() + plan->seconds * NS_PER_S;
	for (unsigned i = 0; i < plan->qd; i++)
		start(&job->slots[i]);
	while (job->busy) {
		rc = leat_poll(leat_session(job->m), LOOK_MS);
		if (rc < 0) {
			job_fail(job, rc);
			break;
		}
		if (!tool_interrupted())
			continue;
		/* start nothing new; cancel requests in flight that do not complete, because the server is gone */
		if (!give_up_ns)
			give_up_ns = clock_now_ns() + GIVE_UP_NS;
		if (job->busy && !job->lost && clock_now_ns() >= give_up_ns) {
			job->lost = true;
			(void)leat_cancel_all(job->m);
		}
	}
	if (!job->err && !job->lost && plan->kind->data && plan->kind->writes)
		make_stable(job);
}

void *bench_job_run(void *arg)
{
	struct bench_job *job = arg;
	struct bench_counters before, after;
	int rc;

	rc = prepare(job);
	if (rc)
		job_fail(job, rc);
	pthread_barrier_wait(job->step);
	pthread_barrier_wait(job->step);
	if (!job->err) {
		bench_get_counters(job->m, &before);
		work(job);
		bench_get_counters(job->m, &after);
		bench_add_counters(&job->n, &before, &after);
	}
	pthread_barrier_wait(job->step);

	if (job->busy)
		return NULL; /* the mount is unusable */
	if (job->slots && !job->lost && !job->plan->kind->data && job->plan->kind->writes) {
		for (unsigned i = 0; i < job->plan->qd; i++)
			meta_finish(&job->slots[i]);
	}
	if (job->file) {
		rc = leat_close(job->file);
		if (rc && !tool_is_interruption(rc))
			job_fail(job, rc);
	}
	free_slots(job);
	if (job->volume)
		(void)volume_detach(job->volume); /* what was written is stable */
	else
		tool_umount(job->m);
	return NULL;
}
