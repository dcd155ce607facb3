/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * overlap.c - disk and network side by side: what a request costs, beside what it must cost
 *
 *     overlap [-d MB/s] [-m MEMBERS] [-c CHUNK_KIB] [-s SECONDS] [-r ROUNDS] [-p POOL_KIB] [-t WHAT]...
 *
 * A leatd in this process, its local fabric with a rate (the modelled network, n) and exports on a
 * modelled disk of MEMBERS (the rate of all of them together: d) that differ in how they overlap. A
 * request of l bytes in pieces of g takes, with one of them under way at once, at least
 *
 *     off        l/d + l/n
 *     ordered    m c/d + (l-c)/min(d,n) + c/n       (as the papers have it, in chunks; pieces do better)
 *     streams    max(l/d + m g/n, m g/d + l/n)      all members fill their first piece at once
 *
 * (for l < m c only l/c members are at work, each at its own rate), and with q of them at least
 * l/min(d,n) of each. The rate that follows is printed as `bound`, what was measured as a part of it.
 * Processor time is that of the whole process: client, server, modelled disk and modelled network.
 *
 * WHAT: matrix (lengths, depths, rates), grain (of one request: from 4 KiB), write, pool (-p), rate (a
 * constant-rate source), block (volumes beside files); all of them by default.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "conf.h"
#include "leat.h"
#include "leat_block.h"
#include "local.h"
#include "server.h"

LOG_DEFINE("overlap");

#define KIB UINT64_C(1024)
#define FILE_BYTES (32 * KIB * KIB)
#define QD_MAX 8
#define ROUNDS_MAX 15
#define FABRICS_MAX 16

static struct rr_fabric *fabrics[FABRICS_MAX];
static unsigned nfabrics;

static double d_rate = 100e6;
static unsigned members = 8, rounds = 3, pool_kib;
static uint32_t chunk = 64 * 1024;
static double seconds = 0.4;
static char dir[64];
static struct server *server;
static void *bufs[QD_MAX];

int __real_rr_local_open(const struct rr_local_attr *attr, struct rr_fabric **ret);
int __wrap_rr_local_open(const struct rr_local_attr *attr, struct rr_fabric **ret);

int __wrap_rr_local_open(const struct rr_local_attr *attr, struct rr_fabric **ret)
{
	int err = __real_rr_local_open(attr, ret);

	if (!err && nfabrics < FABRICS_MAX)
		fabrics[nfabrics++] = *ret;
	return err;
}

static void die(const char *what, const char *why)
{
	fprintf(stderr, "overlap: %s: %s\n", what, why);
	exit(1);
}

/* The server's fabric is the first one; nothing is under way. */
static void set_network(double n)
{
	rr_local_attr(fabrics[0])->link.rate_bytes_s = (uint64_t)n;
}

/* ---- a leatd, and a file --------------------------------------------------------------------- */

static struct export_how {
	const char *name, *options;
	enum export_kind { OFF, ORDERED, STREAMS } kind;
	uint32_t grain;
} exports[] = {
	{ "off", "overlap=off", OFF, 0 },
	{ "ordered", "overlap=ordered,grain=16K", ORDERED, 16 << 10 },
	{ "streams-4k", "overlap=streams,grain=4K", STREAMS, 4 << 10 }, /* as by default with 8 members */
	{ "streams-8k", "overlap=streams,grain=8K", STREAMS, 8 << 10 },
	{ "streams", "overlap=streams,grain=16K", STREAMS, 16 << 10 },
	{ "streams-32k", "overlap=streams,grain=32K", STREAMS, 32 << 10 },
	{ "streams-64k", "overlap=streams,grain=64K", STREAMS, 64 << 10 },
};

#define N_EXPORTS ARRAY_SIZE(exports)

/* Of these there are volumes, too */
static const char *const volumes[] = { "off", "ordered", "streams" };
#define OF_BLOCKS "block-"

static const struct export_how *how_of(const char *name)
{
	for (size_t i = 0; i < N_EXPORTS; i++) {
		if (!strcmp(exports[i].name, name))
			return &exports[i];
	}
	abort();
}

static void add_export(struct conf *conf, const struct export_how *h, bool constant)
{
	char arg[512], why[256], store[128];

	if (constant)
		snprintf(store, sizeof(store), "rate:%.0f", d_rate);
	else
		snprintf(store, sizeof(store), "sim:members=%u:chunk=%u:rate=%.0f", members, chunk,
			 d_rate / members);
	snprintf(arg, sizeof(arg), "/%s%s=%s,no_root_squash,store=%s,%s%s", constant ? "rate-" : "",
		 h->name, dir, store, h->options, "");
	if (h->kind != OFF && !constant)
		snprintf(arg + strlen(arg), sizeof(arg) - strlen(arg), ",streams=%u,chunk=%u",
			 members, chunk);
	if (export_conf_parse(arg, &conf->exports[conf->nexports], why, sizeof(why)))
		die(arg, why);
	conf->nexports++;
}

/* A volume of its own with the options of @h: "block-NAME" */
static void add_volume(struct conf *conf, const struct export_how *h)
{
	char arg[512], why[256];

	snprintf(arg, sizeof(arg), "%s=%s/%s,store=sim:members=%u:chunk=%u:rate=%.0f,%s", h->name, dir, h->name, members,
		 chunk, d_rate / members, h->options);
	if (h->kind != OFF)
		snprintf(arg + strlen(arg), sizeof(arg) - strlen(arg), ",streams=%u,chunk=%u", members, chunk);
	if (block_conf_parse(arg, &conf->blocks[conf->nblocks], why, sizeof(why)))
		die(arg, why);
	conf->nblocks++;
}

static void start(void)
{
	static struct conf conf; /* too large for the stack */
	char url[128];

	conf_init(&conf);
	for (size_t i = 0; i < ARRAY_SIZE(volumes); i++)
		add_volume(&conf, how_of(volumes[i]));
	for (size_t i = 0; i < N_EXPORTS; i++)
		add_export(&conf, &exports[i], false);
	add_export(&conf, how_of("streams-4k"), true);
	snprintf(url, sizeof(url), "local://%s/sock", dir);
	if (rpcrdma_addr_parse(url, &conf.listen[0]))
		die(url, "no address");
	conf.nlisten = 1;
	conf.reactors = 1;
	conf.poll = RPCRDMA_POLL_BUSY;
	conf.pinned_max = pool_kib * KIB;
	if (server_start(&conf, &server))
		die("leatd", "does not start");
	conf_fini(&conf);
}

static void fill_file(const char *name)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_WRONLY, 0644);
	for (uint64_t at = 0; at < FILE_BYTES; at += 4 * KIB * KIB) {
		if (pwrite(fd, bufs[0], 4 * KIB * KIB, (off_t)at) != (ssize_t)(4 * KIB * KIB))
			die(path, strerror(errno));
	}
	close(fd);
}

static void make_files(void)
{
	snprintf(dir, sizeof(dir), "%s/leat-overlap.XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(dir))
		die(dir, strerror(errno));
	for (unsigned i = 0; i < QD_MAX; i++) {
		if (posix_memalign(&bufs[i], 4096, 4 * KIB * KIB))
			die("memory", "none");
		memset(bufs[i], 'a' + (int)i, 4 * KIB * KIB);
	}
	fill_file("f");
	for (size_t i = 0; i < ARRAY_SIZE(volumes); i++)
		fill_file(volumes[i]);
}

static void clean_up(void)
{
	char path[96];

	if (!dir[0])
		return;
	snprintf(path, sizeof(path), "%s/f", dir);
	unlink(path);
	for (size_t i = 0; i < ARRAY_SIZE(volumes); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, volumes[i]);
		unlink(path);
	}
	rmdir(dir);
}

/* ---- a run ----------------------------------------------------------------------------------- */

struct run {
	struct leat_file *f;  /* or */
	struct leat_block *b;
	bool write;
	uint32_t len;
	uint64_t next, done, end_ns;
	unsigned out;
};

struct slot {
	struct run *run;
	void *buf;
};

static void begin(struct slot *s);

static void on_done(void *user_data, int64_t result)
{
	struct slot *s = user_data;
	struct run *r = s->run;

	if (result != (int64_t)r->len)
		die(r->write ? "write" : "read", result < 0 ? strerror((int)-result) : "short");
	r->done += r->len;
	r->out--;
	if (clock_now_ns() < r->end_ns)
		begin(s);
}

static void begin(struct slot *s)
{
	struct run *r = s->run;
	struct leat_cb cb = { .fn = on_done, .user_data = s };
	uint64_t off = r->next;
	int err;

	r->next = (r->next + r->len) % FILE_BYTES;
	r->out++;
	if (r->b)
		err = r->write ? leat_aio_block_pwrite(r->b, s->buf, r->len, off, 0, cb)
			       : leat_aio_block_pread(r->b, s->buf, r->len, off, cb);
	else
		err = r->write ? leat_aio_pwrite(r->f, s->buf, r->len, off, cb)
			       : leat_aio_pread(r->f, s->buf, r->len, off, cb);
	if (err)
		die("request", strerror(-err));
}

struct result {
	double rate, cpu_s_gib;
};

static double cpu_now(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
	       (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
}

/* Return: the mount, or the handle of the volume */
static struct leat *open_contender(const char *name, struct run *r)
{
	struct leat *m;
	char url[160];

	if (!strncmp(name, OF_BLOCKS, strlen(OF_BLOCKS))) {
		snprintf(url, sizeof(url), "local://%s/sock/block/%s?poll=busy", dir, name + strlen(OF_BLOCKS));
		if (leat_block_attach(url, NULL, 0, &r->b))
			die(url, leat_error(NULL));
		return leat_block_handle(r->b);
	}
	snprintf(url, sizeof(url), "local://%s/sock/%s?poll=busy&readahead=0&wsize=1M&rsize=1M", dir, name);
	if (leat_mount(url, NULL, &m))
		die(url, leat_error(NULL));
	if (leat_open(m, "f", O_RDWR, 0, &r->f))
		die(url, leat_error(m));
	return m;
}

static void close_contender(struct leat *m, struct run *r)
{
	if (r->b) {
		(void)leat_block_detach(r->b);
		return;
	}
	(void)leat_close(r->f);
	leat_umount(m);
}

static struct result run_once(const char *name, uint32_t len, unsigned qd, bool write)
{
	struct slot slots[QD_MAX];
	struct run r = { .len = len, .write = write };
	struct leat *m = open_contender(name, &r);
	uint64_t start_ns;
	double cpu;

	for (unsigned warm = 0; warm < 2; warm++) {
		r.next = r.done = 0;
		start_ns = clock_now_ns();
		cpu = cpu_now();
		/* one of each to warm up; then as long as is wanted */
		r.end_ns = warm ? start_ns + (uint64_t)(seconds * 1e9) : start_ns;
		for (unsigned i = 0; i < qd; i++) {
			slots[i] = (struct slot){ .run = &r, .buf = bufs[i] };
			begin(&slots[i]);
		}
		while (r.out)
			(void)leat_poll(leat_session(m), -1);
	}
	cpu = cpu_now() - cpu;
	start_ns = clock_now_ns() - start_ns;
	close_contender(m, &r);
	/* both ends spin: run at a real-time priority on a busy machine, they must rest in time for
	 * the kernel not to make them (sched_rt_runtime_us) */
	usleep((useconds_t)(seconds * 1e6 / 5));
	return (struct result){ .rate = (double)r.done / ((double)start_ns / 1e9),
				.cpu_s_gib = cpu / ((double)r.done / (double)(1 << 30)) };
}

static int by_rate(const void *a, const void *b)
{
	double x = ((const struct result *)a)->rate, y = ((const struct result *)b)->rate;

	return (x > y) - (x < y);
}

/* ---- what it must cost ----------------------------------------------------------------------- */

static double min(double a, double b)
{
	return a < b ? a : b;
}

static double max(double a, double b)
{
	return a > b ? a : b;
}

/* bytes per second; a request of more than 1 MiB goes as several that are under way at once */
static double bound(const struct export_how *h, uint32_t len, unsigned qd, double n, bool constant)
{
	double l = min(len, 1 << 20), c = chunk, g = h->grain, m = constant ? 1 : min(members, l / c);
	double d = constant ? d_rate : d_rate / members * m, t;
	unsigned q = qd * (unsigned)max(1, len / l);

	switch (h->kind) {
	case OFF:
		t = l / d + l / n;
		break;
	case ORDERED:
		c = min(c, l);
		t = m * c / d + (l - c) / min(d, n) + c / n;
		break;
	default:
		t = max(l / d + m * g / n, m * g / d + l / n);
		break;
	}
	return min(min(d_rate, n), q * l / t);
}

/* Contenders take turns. */
static void compare(const char *const *names, unsigned count, uint32_t len, unsigned qd, double n,
		    bool write)
{
	struct result res[8][ROUNDS_MAX];

	set_network(n);
	for (unsigned r = 0; r < rounds; r++) {
		for (unsigned i = 0; i < count; i++)
			res[i][r] = run_once(names[i], len, qd, write);
	}
	for (unsigned i = 0; i < count; i++) {
		bool constant = !strncmp(names[i], "rate-", 5), block = !strncmp(names[i], OF_BLOCKS, strlen(OF_BLOCKS));
		const struct export_how *h = how_of(names[i] + (constant ? 5 : block ? strlen(OF_BLOCKS) : 0));
		double b = bound(h, len, qd, n, constant), rate;

		qsort(res[i], rounds, sizeof(res[i][0]), by_rate);
		rate = res[i][rounds / 2].rate;
		printf("%-6s %5u KiB  QD %u  n = %.1f d  %-16s %6.1f MB/s  bound %6.1f  %.3f of it  "
		       "%.3f of min(d,n)  %5.2f CPU s/GiB\n",
		       write ? "write" : "read", len / 1024, qd, n / d_rate, names[i], rate / 1e6,
		       b / 1e6, rate / b, rate / min(d_rate, n), res[i][rounds / 2].cpu_s_gib);
	}
	fflush(stdout);
	set_network(0);
}

static const double ns[] = { 0.5, 1, 2 };

static void matrix(void)
{
	static const char *const names[] = { "off", "ordered", "streams-4k", "streams" };
	static const uint32_t lens[] = { 64, 256, 1024, 4096 };

	for (size_t n = 0; n < ARRAY_SIZE(ns); n++) {
		for (size_t l = 0; l < ARRAY_SIZE(lens); l++) {
			for (unsigned qd = 1; qd <= 4; qd *= 2)
				compare(names, ARRAY_SIZE(names), lens[l] * 1024, qd, ns[n] * d_rate,
					false);
		}
	}
}

static void grains(void)
{
	static const char *const names[] = { "off",	"streams-4k",  "streams-8k",
					     "streams", "streams-32k", "streams-64k" };

	compare(names, ARRAY_SIZE(names), 1 << 20, 1, d_rate, false);
}

static void writes(void)
{
	static const char *const names[] = { "off", "streams-4k", "streams" };

	for (size_t n = 0; n < ARRAY_SIZE(ns); n++)
		compare(names, ARRAY_SIZE(names), 1 << 20, 1, ns[n] * d_rate, true);
}

static void constant_rate(void)
{
	static const char *const names[] = { "rate-streams-4k" };

	compare(names, ARRAY_SIZE(names), 1 << 20, 1, d_rate, false);
}

/* Each volume behind the file with the same options */
static void blocks(void)
{
	static const char *const names[] = { "off", "block-off", "ordered", "block-ordered", "streams", "block-streams" };
	static const uint32_t lens[] = { 256, 1024 };

	for (size_t l = 0; l < ARRAY_SIZE(lens); l++) {
		for (unsigned qd = 1; qd <= 4; qd *= 4) {
			compare(names, ARRAY_SIZE(names), lens[l] * 1024, qd, d_rate, false);
			compare(names, ARRAY_SIZE(names), lens[l] * 1024, qd, d_rate, true);
		}
	}
}

static void pool(void)
{
	static const char *const names[] = { "off", "streams-4k", "streams" };
	static const uint32_t lens[] = { 256, 512, 1024 };

	for (size_t l = 0; l < ARRAY_SIZE(lens); l++)
		compare(names, ARRAY_SIZE(names), lens[l] * 1024, 1, d_rate, false);
}

static const struct what {
	const char *name;
	void (*run)(void);
} whats[] = {
	{ "grain", grains }, { "matrix", matrix },	 { "write", writes },
	{ "rate", constant_rate },  { "pool", pool }, { "block", blocks },
};

int main(int argc, char **argv)
{
	unsigned wanted = 0;
	int opt;

	while ((opt = getopt(argc, argv, "d:m:c:s:r:p:t:")) != -1) {
		switch (opt) {
		case 'd':
			d_rate = atof(optarg) * 1e6;
			break;
		case 'm':
			members = (unsigned)atoi(optarg);
			break;
		case 'c':
			chunk = (uint32_t)atoi(optarg) * 1024;
			break;
		case 's':
			seconds = atof(optarg);
			break;
		case 'r':
			rounds = (unsigned)atoi(optarg);
			break;
		case 'p':
			pool_kib = (unsigned)atoi(optarg);
			break;
		case 't':
			for (size_t i = 0; i < ARRAY_SIZE(whats); i++)
				wanted |= strcmp(whats[i].name, optarg) ? 0 : 1u << i;
			break;
		default:
			die("usage", "overlap [-d MB/s] [-m MEMBERS] [-c CHUNK_KIB] [-s SECONDS] "
				     "[-r ROUNDS] [-p POOL_KIB] [-t WHAT]...");
		}
	}
	if (d_rate < 1e6 || !members || members > 32 || !chunk || seconds <= 0 || !rounds ||
	    rounds > ROUNDS_MAX)
		die("usage", "a number is out of its range");
	log_set_level(LOG_LEVEL_WARN);
	make_files();
	atexit(clean_up);
	start();
	printf("d = %.0f MB/s of %u members, chunk %u KiB; medians of %u runs of %.1f s\n", d_rate / 1e6,
	       members, chunk / 1024, rounds, seconds);
	for (size_t i = 0; i < ARRAY_SIZE(whats); i++) {
		if (!wanted || wanted & 1u << i)
			whats[i].run();
	}
	return server_stop(server, 1000) ? 1 : 0;
}
