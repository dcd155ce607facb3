/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * bench.c - leat bench: throughput, latency and cost
 *
 * Operation:  Prepares a file (bench_file.c), starts the jobs, samples the costs of both sides before and
 *             after, prints. The server's costs come from leat_server_stats() of a leatd. They are unknown
 *             for other servers, and for a leatd that was restarted in between. Of a striped volume they are left out:
 *             the manager is asked, and the stripe servers have done the work.
 * Memory:     The jobs.
 * Threads:    main prepares and measures on its own mount, and meets the jobs (bench_job.c) at three
 *             barriers: all are ready; go; all have finished.
 * Errors:     The error of the first failed job is reported; status 1.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/machine.h"
#include "leat_admin.h"
#include "leat_volume.h"
#include "bench.h"
#include "bench_reg.h"
#include "signals.h"

#define GIB ((double)(1u << 30))

/* Costs of a run. */
struct costs {
	uint64_t ns;
	uint64_t client_us, server_us, machine_us;
	uint64_t server_copied;
	struct bench_counters client; /* as of bench_add_counters() */
	bool has_server;
	uint64_t server[2]; /* instance id */
};

struct results {
	struct hist hist;
	uint64_t ops, bytes;
	struct costs costs;
	char transport[8];
	bool is_striped;
	bool lost; /* a job has given up, because the server does not reply */
};

static int prepare_file(struct leat *m, struct bench_plan *plan, const char *path)
{
	const struct bench_need need = {
		.url = plan->url,
		.path = path,
		.writes = plan->kind->writes,
		.overwrite = plan->overwrite,
		.fill = true,
		.min = plan->block,
		.size = plan->size,
	};
	int rc = bench_file_prepare(m, &need, &plan->file);

	plan->size = plan->file.size;
	return rc;
}

static int prepare_dir(struct leat *m, const struct bench_plan *plan)
{
	struct stat st;
	int rc = leat_stat(m, plan->file.path, &st);

	return rc ? rc : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

static bool is_striped(struct leat *m)
{
	struct leat_volume_map *map;

	if (leat_volume_map(m, &map))
		return false;
	leat_volume_map_free(map);
	return true;
}

/* @m: NULL: do not ask the server */
static void take_costs(struct leat *m, struct costs *ret)
{
	struct leat_server_stats s = { .size = sizeof(s) };

	ret->has_server = m && !leat_server_stats(m, &s);
	ret->server[0] = s.instance[0];
	ret->server[1] = s.instance[1];
	ret->server_us = s.cpu_us;
	ret->server_copied = s.bytes_copied;
	ret->client_us = machine_own_cpu_us();
	ret->machine_us = machine_cpu_us();
	ret->ns = clock_now_ns();
}

static int run_jobs(struct leat *m, const struct bench_plan *plan, struct results *res)
{
	pthread_barrier_t step;
	struct bench_job *jobs = calloc(plan->jobs, sizeof(*jobs));
	struct costs before, after;
	int rc = TOOL_OK;
	unsigned started;

	if (!jobs)
		return tool_fail(NULL, plan->url, -ENOMEM);
	pthread_barrier_init(&step, NULL, plan->jobs + 1);
	for (started = 0; started < plan->jobs; started++) {
		struct bench_job *job = &jobs[started];

		job->plan = plan;
		job->number = started;
		job->step = &step;
		rc = pthread_create(&job->thread, NULL, bench_job_run, job);
		if (rc) { /* running jobs wait at a barrier that will never open */
			bench_file_remove(m, &plan->file, false);
			exit(tool_fail(NULL, "cannot start a thread", -rc));
		}
	}
	pthread_barrier_wait(&step); /* all are ready */
	take_costs(res->is_striped ? NULL : m, &before);
	pthread_barrier_wait(&step); /* go */
	pthread_barrier_wait(&step); /* all have finished */
	after.ns = clock_now_ns(); /* before the query to the server */
	res->costs.ns = after.ns - before.ns;
	res->costs.machine_us = machine_cpu_us() - before.machine_us;
	for (unsigned i = 0; i < started; i++)
		res->lost |= jobs[i].busy > 0 || jobs[i].lost;
	/* after an interrupt, do not wait for the server */
	take_costs(res->is_striped || res->lost || tool_interrupted() ? NULL : m, &after);
	res->costs.client_us = after.client_us - before.client_us;
	/* the counters of a restarted leatd begin at its own start */
	res->costs.has_server = before.has_server && after.has_server &&
				before.server[0] == after.server[0] &&
				before.server[1] == after.server[1];
	res->costs.server_us = after.server_us - before.server_us;
	res->costs.server_copied = after.server_copied - before.server_copied;

	for (unsigned i = 0; i < started; i++) {
		pthread_join(jobs[i].thread, NULL);
		if (jobs[i].err && rc == TOOL_OK) {
			log_err("%s: %s", plan->url, jobs[i].why);
			rc = TOOL_FAILED;
		}
		hist_merge(&res->hist, &jobs[i].hist);
		res->ops += jobs[i].ops;
		res->bytes += jobs[i].bytes;
		bench_add_counters(&res->costs.client, &(struct bench_counters){ 0 }, &jobs[i].n);
	}
	pthread_barrier_destroy(&step);
	if (!res->lost)
		free(jobs);
	return rc;
}

static double percentile_us(const struct results *r, double part)
{
	return tool_us(hist_percentile(&r->hist, part));
}

/* A count for each operation, and for each byte */
static double per_op(uint64_t n, const struct results *r)
{
	return tool_ratio((double)n, (double)r->ops);
}

static double per_byte(uint64_t n, const struct results *r)
{
	return tool_ratio((double)n, (double)r->bytes);
}

/* Processor time @us in seconds for each GiB */
static double per_gib(uint64_t us, const struct results *r)
{
	return tool_ratio((double)us / 1e6, (double)r->bytes / GIB);
}

static void print_cpu(const char *whose, uint64_t us, const struct bench_plan *plan, const struct results *r)
{
	if (plan->kind->data)
		printf("%s %.3f s/GiB", whose, per_gib(us, r));
	else
		printf("%s %.2f us/op", whose, per_op(us, r));
}

static void print_text(const struct bench_plan *plan, const struct results *r)
{
	const struct costs *c = &r->costs;
	double s = (double)c->ns / (double)NS_PER_S;
	char size[16];

	printf("%s over %s, ", plan->kind->name, r->transport);
	if (plan->kind->data)
		printf("%s blocks, ", tool_print_size(plan->block, size));
	printf("qd %u, %u job%s, %.1f s\n", plan->qd, plan->jobs, tool_plural(plan->jobs), s);
	if (plan->kind->data)
		printf("  %-10s %.1f MB/s\n", "throughput", tool_ratio((double)r->bytes / 1e6, s));
	printf("  %-10s %.0f op/s\n", "rate", tool_ratio((double)r->ops, s));
	printf("  %-10s p50 %.1f us, p99 %.1f us, p99.9 %.1f us\n", "latency", percentile_us(r, 0.5),
	       percentile_us(r, 0.99), percentile_us(r, 0.999));
	printf("  %-10s ", "CPU");
	print_cpu("client", c->client_us, plan, r);
	if (c->has_server)
		print_cpu(", server", c->server_us, plan, r);
	else if (!r->is_striped)
		printf(", server not known");
	print_cpu(", this machine", c->machine_us, plan, r);
	putchar('\n');
	if (!plan->kind->data)
		return;
	printf("  %-10s client %.3f", "copied", per_byte(c->client.bytes_copied, r));
	if (c->has_server)
		printf(" + server %.3f", per_byte(c->server_copied, r));
	printf(" bytes per byte\n");
	if (strcmp(r->transport, "tcp") != 0)
		printf("  %-10s %.3f times per operation, ended %.3f, %.3f of that aside; %s kept\n",
		       "registered", per_op(c->client.regs, r),
		       per_op(c->client.deregs, r), per_op(c->client.reg_reaped, r),
		       tool_print_size(c->client.reg_pinned, size));
}

static void print_json(const struct bench_plan *plan, const struct results *r)
{
	const struct costs *c = &r->costs;
	double s = (double)c->ns / (double)NS_PER_S;

	printf("{\"kind\":\"%s\",\"transport\":\"%s\",\"bs\":%" PRIu64 ",\"qd\":%u,\"jobs\":%u,"
	       "\"buf\":\"%s\",\"seconds\":%.3f,\"bytes\":%" PRIu64 ",\"ops\":%" PRIu64 ",",
	       plan->kind->name, r->transport, plan->kind->data ? plan->block : 0, plan->qd, plan->jobs,
	       plan->malloc_buf ? "malloc" : "leat", s, r->bytes, r->ops);
	printf("\"mb_s\":%.1f,\"ops_s\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,",
	       tool_ratio((double)r->bytes / 1e6, s), tool_ratio((double)r->ops, s), percentile_us(r, 0.5),
	       percentile_us(r, 0.99), percentile_us(r, 0.999));
	printf("\"client_cpu_s\":%.6f,\"client_cpu_s_gib\":%.4f,\"client_copied_per_byte\":%.4f",
	       (double)c->client_us / 1e6, per_gib(c->client_us, r),
	       per_byte(c->client.bytes_copied, r));
	printf(",\"machine_cpu_s\":%.6f,\"machine_cpu_s_gib\":%.4f", (double)c->machine_us / 1e6,
	       per_gib(c->machine_us, r));
	printf(",\"regs_per_op\":%.4f,\"deregs_per_op\":%.4f,\"reaped_per_op\":%.4f,"
	       "\"reg_pinned\":%" PRIu64, per_op(c->client.regs, r),
	       per_op(c->client.deregs, r), per_op(c->client.reg_reaped, r),
	       c->client.reg_pinned);
	if (c->has_server)
		printf(",\"server_cpu_s\":%.6f,\"server_cpu_s_gib\":%.4f,"
		       "\"server_copied_per_byte\":%.4f,\"copied_per_byte\":%.4f",
		       (double)c->server_us / 1e6, per_gib(c->server_us, r),
		       per_byte(c->server_copied, r),
		       per_byte(c->client.bytes_copied + c->server_copied, r));
	printf("}\n");
}

/* A volume has no files, which meta would create and remove. */
static const struct bench_kind *find_kind(const char *name, bool on_volume)
{
	for (size_t i = 0; i < bench_kinds_count; i++) {
		if (!strcmp(bench_kinds[i].name, name) && !(on_volume && !strcmp(name, "meta")))
			return &bench_kinds[i];
	}
	return NULL;
}

static bool parse(const struct tool_cmd *self, struct bench_plan *plan, int argc, char **argv)
{
	if (tool_options(self, argc, argv, plan) < 0 || argc - optind != 2)
		return false;
	plan->kind = find_kind(argv[optind], plan->on_volume);
	plan->url = argv[optind + 1];
	if (!plan->kind) {
		log_err("%s: no such kind: read, write, randread, randwrite%s are known", argv[optind],
			plan->on_volume ? " and null" : ", null, meta and registration");
		return false;
	}
	if (plan->size < plan->block)
		log_err("size=%" PRIu64 ": must be at least a block", plan->size);
	return plan->size >= plan->block;
}

static int bench_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct bench_plan plan = { 0 };
	const struct tool_cmd *verb = argc > 1 ? tool_verb(self, argv[1]) : NULL;
	struct tool_target t = { 0 };
	struct results *res;
	int rc = TOOL_FAILED, err = 0;

	if (verb)
		return verb->run(verb, argc - 1, argv + 1);
	if (!parse(self, &plan, argc, argv))
		return tool_usage(self);
	if (tool_attach(plan.url, &t))
		return TOOL_FAILED;
	(void)signals_hold(); /* an interrupt prints the results so far */
	res = calloc(1, sizeof(*res));
	if (!res) {
		rc = tool_fail(NULL, plan.url, -ENOMEM);
		goto out;
	}
	(void)leat_describe(t.m, LEAT_TEXT_TRANSPORT, 0, res->transport, sizeof(res->transport));
	res->is_striped = is_striped(t.m);
	snprintf(plan.file.path, sizeof(plan.file.path), "%s", t.path);
	if (plan.kind->data) {
		rc = prepare_file(t.m, &plan, t.path);
	} else if (plan.kind->writes) {
		err = getrandom(&plan.mark, sizeof(plan.mark), 0) < 0 ? -errno : 0;
		if (!err)
			err = prepare_dir(t.m, &plan);
		rc = err ? tool_fail(t.m, t.path, err) : TOOL_OK;
	} else {
		rc = TOOL_OK;
	}
	if (rc != TOOL_OK)
		goto out;
	rc = run_jobs(t.m, &plan, res);
	err = bench_file_remove(t.m, &plan.file, res->lost);
	if (!tool_interrupted()) /* else the results so far are printed */
		rc = MAX(rc, err);
	if (rc == TOOL_OK && plan.json)
		print_json(&plan, res);
	else if (rc == TOOL_OK)
		print_text(&plan, res);
out:
	free(res);
	signals_release();
	tool_detach(&t);
	return rc;
}

/* ---- leat block bench ---- */

/* Does the benchmark fit the volume, and may it write there? */
static int check_volume(struct leat_block *b, struct bench_plan *plan)
{
	struct leat_block_info info = { .size = sizeof(info) };
	int rc = leat_block_info(b, &info);

	if (rc)
		return volume_fail(b, plan->url, rc);
	plan->size = MIN(plan->size, info.bytes);
	if (!plan->kind->data)
		return TOOL_OK;
	if (plan->block % info.block)
		log_err("%s: bs=%" PRIu64 " is not a multiple of the volume's block size, %u", plan->url, plan->block,
			info.block);
	else if (plan->size < plan->block)
		log_err("%s: the volume has %" PRIu64 " bytes, less than the %" PRIu64 " needed", plan->url, info.bytes,
			plan->block);
	else if (plan->kind->writes && !plan->overwrite)
		log_err("%s: use --overwrite to lose the volume's content", plan->url);
	else
		return TOOL_OK;
	return TOOL_FAILED;
}

static int run_on_volume(struct leat_block *b, struct bench_plan *plan)
{
	struct leat *m = leat_block_handle(b);
	struct results *res = calloc(1, sizeof(*res));
	int rc;

	if (!res)
		return tool_fail(NULL, plan->url, -ENOMEM);
	(void)leat_describe(m, LEAT_TEXT_TRANSPORT, 0, res->transport, sizeof(res->transport));
	rc = check_volume(b, plan);
	if (!rc)
		rc = run_jobs(m, plan, res);
	if (rc == TOOL_OK && plan->json)
		print_json(plan, res);
	else if (rc == TOOL_OK)
		print_text(plan, res);
	free(res);
	return rc;
}

int bench_block_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct bench_plan plan = { .on_volume = true, .jobs = 1 };
	struct leat_block *b;
	int rc;

	if (!parse(self, &plan, argc, argv))
		return tool_usage(self);
	if (volume_attach(NULL, plan.url, LEAT_BLOCK_LOOK, &b))
		return TOOL_FAILED;
	(void)signals_hold(); /* an interrupt prints the results so far */
	rc = run_on_volume(b, &plan);
	signals_release();
	(void)volume_detach(b);
	return rc;
}

#define AT(member) OPT_AT(struct bench_plan, member)

#define DATA_OPTS                                                                                            \
	{ "bs", "BYTES", "1M", "size of a block", NULL, OPT_SIZE, 0, AT(block), .min = 8, .max = 1u << 30 },       \
	{ "qd", "N", "8", "requests in flight for each job", NULL, OPT_NUMBER, 0, AT(qd), .min = 1,                \
	  .max = 4096 },                                                                                     \
	{ "size", "BYTES", "1G", "part of it that is used", NULL, OPT_SIZE, 0, AT(size), .max = UINT64_MAX },      \
	{ "seconds", "TIME", "5s", "how long to run", NULL, OPT_TIME, 0, AT(seconds), .min = 1, .max = 86400,      \
	  .unit = NS_PER_S, .bare = NS_PER_S },                                                              \
	{ "buf", "HOW", "leat", "buffers of leat_buf_alloc(leat_session()), or of the C library", "leat malloc",   \
	  OPT_WORD, 0, AT(malloc_buf) },                                                                     \
	TOOL_FLAG(0, "sync", struct bench_plan, sync, "each write is stable on its own"),                          \
	TOOL_FLAG(0, "json", struct bench_plan, json, "all of it as one line")

const struct opt bench_block_opts[BENCH_BLOCK_OPTS] = {
	DATA_OPTS,
	TOOL_FLAG(0, "overwrite", struct bench_plan, overwrite, "permit overwriting the volume"),
};

static const struct opt opts[] = {
	DATA_OPTS,
	{ "jobs", "N", "1", "threads, each with its own mount", NULL, OPT_NUMBER, 0, AT(jobs), .min = 1, .max = 256 },
	TOOL_FLAG(0, "overwrite", struct bench_plan, overwrite, "permit overwriting an existing file"),
};

const struct tool_cmd cmd_bench = {
	"bench",
	"{read|write|randread|randwrite|null|meta} URL [OPTION]...\n"
	"       leat bench registration URL [OPTION]...",
	"throughput, latency, CPU and copies",
	bench_run,
	opts,
	ARRAY_SIZE(opts),
	.mixed = true,
	.also = &cmd_bench_reg,
};
