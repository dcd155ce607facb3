/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_sim.c - stores for tests: contents, order, failures, what is forgotten
 *
 * With a real engine, but a clock that stands still until something is waited for, and then jumps to
 * when the next timer is due (linked with --wrap of those two calls).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "export.h"
#include "reactor.h"
#include "store.h"
#include "store_sim.h"
#include "tmp_dir.h"

LOG_DEFINE("test_store_sim");

#define MEMORY "/dev/shm"
#define BYTES 65536u
#define IOS 64
#define LOOKS_MAX 2000000 /* a worker does what it has to in far fewer */

static struct tmp_dir dir;
static struct rpcrdma_domain *domain;
static struct reactor reactors[2];
static const struct store_env envs[2] = {
	{ .loop = &reactors[0].loop, .counters = &reactors[0].counters.store },
	{ .loop = &reactors[1].loop, .counters = &reactors[1].counters.store },
};
static struct export_table table;
static struct store *stores[2];
static struct store_file file;
static char data[BYTES], mem[BYTES];
static struct creds creds;

struct test_io {
	struct store_io io;
	struct iovec iov;
};

static struct test_io ios[IOS];
static unsigned order[IOS], ndone;
static bool ended;

/* ---- the clock ---- */

static _Atomic uint64_t now_ns = NS_PER_S; /* workers read it */
static uint64_t alarms[64]; /* by descriptor; 0: none */

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	ts->tv_sec = (time_t)(now_ns / NS_PER_S);
	ts->tv_nsec = (long)(now_ns % NS_PER_S);
	return 0;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old)
{
	assert_true(fd < (int)ARRAY_SIZE(alarms));
	assert_int_equal(flags, TFD_TIMER_ABSTIME);
	assert_null(old);
	alarms[fd] = (uint64_t)at->it_value.tv_sec * NS_PER_S + (uint64_t)at->it_value.tv_nsec;
	return 0;
}

static void jump(void)
{
	static const struct itimerspec at_once = { .it_value.tv_nsec = 1 };
	int first = -1;

	for (int fd = 0; fd < (int)ARRAY_SIZE(alarms); fd++) {
		if (alarms[fd] && (first < 0 || alarms[fd] < alarms[first]))
			first = fd;
	}
	if (first < 0)
		return;
	now_ns = MAX(now_ns, alarms[first]);
	alarms[first] = 0;
	assert_int_equal(__real_timerfd_settime(first, 0, &at_once, NULL), 0);
}

/* ---- an export, its stores, a file ---- */

static void on_done(struct store_io *io)
{
	order[ndone++] = (unsigned)(container_of(io, struct test_io, io) - ios);
}

static int setup(void **state)
{
	(void)state;
	for (unsigned i = 0; i < BYTES; i++)
		data[i] = (char)(i * 7 + i / 251);
	if (rpcrdma_domain_create(NULL, &domain))
		return -1;
	for (unsigned i = 0; i < 2; i++) {
		if (rpcrdma_engine_create(domain, NULL, &reactors[i].loop.engine) ||
		    worker_pool_create(1, &reactors[i].loop.workers))
			return -1;
	}
	return 0;
}

/* A test that failed leaves all it had behind: it may not be touched any more. */
static int teardown(void **state)
{
	(void)state;
	memset(alarms, 0, sizeof(alarms));
	if (!ended)
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		worker_pool_destroy(reactors[i].loop.workers);
		rpcrdma_engine_destroy(reactors[i].loop.engine);
	}
	rpcrdma_domain_destroy(domain);
	return 0;
}

static void open_file(void)
{
	struct stat st;
	int fd = open(tmp_dir_path(&dir, "f"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, BYTES, 0), BYTES);
	assert_int_equal(fstat(fd, &st), 0);
	store_adopt(&table.v[0].backing, fd, true, &file);
	file.dev = st.st_dev;
	file.ino = st.st_ino;
}

/* an export with this store, a file in it that holds `data`, a store for each reactor */
static void begin(const char *how)
{
	char arg[256], why[128] = "";
	struct export_conf conf;

	ended = false;
	tmp_dir_create(&dir);
	(void)snprintf(arg, sizeof(arg), "/x=%s,store=%s", dir.path, how);
	if (export_conf_parse(arg, &conf, why, sizeof(why)) ||
	    export_table_open(&conf, 1, &table, why, sizeof(why)))
		fail_msg("%s", why);
	export_conf_fini(&conf);
	for (unsigned i = 0; i < 2; i++) {
		memset(&reactors[i].counters, 0, sizeof(reactors[i].counters));
		assert_int_equal(
			store_create(store_of(&table.v[0].backing), &envs[i], &table.v[0].backing, &stores[i]),
			0);
	}
	open_file();
	memset(ios, 0, sizeof(ios));
	ndone = 0;
}

static void end(void)
{
	close(file.fd);
	for (unsigned i = 0; i < 2; i++)
		store_destroy(stores[i]);
	export_table_close(&table);
	tmp_dir_destroy(&dir);
	ended = true;
}

/* number @n, of reactor @r; READs go to `mem`, WRITEs come from @from, both at @off */
static int submit(unsigned n, unsigned r, enum store_op op, char *from, uint32_t off, uint32_t len)
{
	struct test_io *t = &ios[n];

	t->iov = (struct iovec){ op == STORE_READ ? mem + off : from, len };
	t->io.op = op;
	t->io.file = &file;
	t->io.iov = &t->iov;
	t->io.iovcnt = op == STORE_READ || op == STORE_WRITE;
	t->io.off = off;
	t->io.bytes = op == STORE_SYNC ? 0 : len;
	t->io.size_hint = BYTES;
	t->io.creds = &creds;
	t->io.done = on_done;
	return store_submit(stores[r], &t->io);
}

static void wait_for(unsigned n)
{
	for (unsigned looks = 0; ndone < n; looks++) {
		assert_true(looks < LOOKS_MAX);
		jump();
		for (unsigned i = 0; i < 2; i++)
			while (rpcrdma_engine_poll(reactors[i].loop.engine))
				;
		sched_yield(); /* where there is no tmpfs a worker has to come to it */
	}
	assert_int_equal(ndone, n);
}

static void run_one(enum store_op op, char *from, uint32_t off, uint32_t len)
{
	ndone = 0;
	assert_int_equal(submit(0, 0, op, from, off, len), 0);
	wait_for(1);
}

/* ---- contents ---- */

static void contents(void **state)
{
	char word[] = "mill", seen[5] = "";

	(void)state;
	begin("sim:members=4:chunk=4K:rate=100M:latency=10us:jitter=50us");
	memset(mem, 0, BYTES);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(submit(i, i % 2, STORE_READ, NULL, i * 4096, 4096), 0);
	for (unsigned i = 0; i < BYTES; i++)
		assert_int_equal(mem[i], 0); /* nothing is there before it is due */
	wait_for(16);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(ios[i].io.res, 4096);
	assert_memory_equal(mem, data, BYTES);
	run_one(STORE_WRITE, word, 5000, 4);
	assert_int_equal(ios[0].io.res, 4);
	assert_int_equal(pread(file.fd, seen, 4, 5000), 4);
	assert_string_equal(seen, word);
	run_one(STORE_READ, NULL, BYTES - 100, 100);
	assert_int_equal(ios[0].io.res, 100);
	assert_int_equal(ftruncate(file.fd, BYTES - 30), 0);
	run_one(STORE_READ, NULL, BYTES - 100, 100);
	assert_int_equal(ios[0].io.res, 70);
	run_one(STORE_SYNC, NULL, 0, 0);
	assert_int_equal(ios[0].io.res, 0);
	end();
}

/* Each member has its own line, in which both reactors stand: the first member is given 3 requests,
 * the second one, which overtakes; a sync is for all of them. 4 KiB take 4000 us here. */
static void order_of_members(void **state)
{
	static const struct {
		unsigned reactor;
		enum store_op op;
		uint32_t off, len, due_us;
	} rows[] = {
		{ 0, STORE_READ, 0, 4096, 4000 + 500 },
		{ 1, STORE_READ, 8192, 4096, 8000 + 500 },
		{ 0, STORE_READ, 16384, 4096, 12000 + 500 },
		{ 0, STORE_READ, 4096, 2048, 2000 + 500 },
		{ 0, STORE_SYNC, 0, 0, 12000 + 500 },
		{ 1, STORE_READ, 6144, 2048, 4000 + 500 },
	};
	static const unsigned in_order[] = { 3, 0, 5, 1, 2, 4 };
	uint64_t start = now_ns;

	(void)state;
	begin("sim:members=2:chunk=4K:rate=1024000:latency=500us");
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(
			submit(i, rows[i].reactor, rows[i].op, NULL, rows[i].off, rows[i].len), 0);
		assert_int_equal(ios[i].io.sim.due_ns - start, rows[i].due_us * NS_PER_US);
	}
	wait_for(ARRAY_SIZE(rows));
	assert_int_equal(atomic_load(&reactors[0].counters.store.sim_requests), 3);
	assert_int_equal(atomic_load(&reactors[1].counters.store.sim_requests), 2);
	assert_int_equal(atomic_load(&reactors[0].counters.store.sim_seeks), 2);
	assert_int_equal(atomic_load(&reactors[1].counters.store.sim_seeks), 0);
	if (!file.in_memory)
		print_message("order_of_members: TMPDIR is no tmpfs: order is not looked at\n");
	else
		assert_memory_equal(order, in_order, sizeof(in_order));
	end();
}

/* What is due at once is delivered in one go, and the alarm is set once for it. */
static void all_at_once(void **state)
{
	(void)state;
	begin("sim:members=8:chunk=4K:rate=1M");
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(submit(i, 0, STORE_READ, NULL, i * 4096, 4096), 0);
	jump();
	while (file.in_memory && rpcrdma_engine_poll(reactors[0].loop.engine))
		;
	assert_int_equal(ndone, file.in_memory ? 8 : 0);
	wait_for(16);
	assert_memory_equal(mem, data, BYTES);
	end();
}

static void fails(void **state)
{
	char word[] = "mill";

	(void)state;
	begin("sim:rate=1G:fail=2");
	memset(mem, 'x', BYTES);
	run_one(STORE_READ, NULL, 0, 100);
	assert_int_equal(ios[0].io.res, 100);
	run_one(STORE_READ, NULL, 4096, 100);
	assert_int_equal(ios[0].io.res, -EIO);
	assert_int_equal(mem[4096], 'x');
	run_one(STORE_READ, NULL, 4096, 100);
	assert_int_equal(ios[0].io.res, 100);
	end();
	begin("sim:rate=1G:fail=1");
	run_one(STORE_SYNC, NULL, 0, 0); /* is none of those that are counted */
	assert_int_equal(ios[0].io.res, 0);
	run_one(STORE_WRITE, word, 0, 4);
	assert_int_equal(ios[0].io.res, -EIO);
	assert_int_equal(pread(file.fd, mem, 4, 0), 4);
	assert_memory_equal(mem, data, 4);
	end();
}

/* ---- forgetting ---- */

static void write_as(enum store_stable how, const char *word, uint32_t off)
{
	char copy[16];

	ios[0].io.stable = how;
	(void)snprintf(copy, sizeof(copy), "%s", word);
	run_one(STORE_WRITE, copy, off, (uint32_t)strlen(word));
	assert_int_equal(ios[0].io.res, strlen(word));
}

static void forgets(void **state)
{
	size_t bytes;
	char now[16];

	(void)state;
	begin("sim:rate=1G:volatile");
	write_as(STORE_UNSTABLE, "aaaa", 0);
	run_one(STORE_SYNC, NULL, 0, 0);
	write_as(STORE_UNSTABLE, "bbbb", 2);
	write_as(STORE_DATA_SYNC, "cc", 4);
	run_one(STORE_READ, NULL, 0, 8); /* everyone sees what was written last */
	assert_memory_equal(mem, "aabbccdd", 6);
	assert_int_equal(store_sim_cut(dir.path, &bytes), 0);
	assert_int_equal(bytes, 2);
	assert_int_equal(pread(file.fd, now, 8, 0), 8);
	assert_memory_equal(now, "aaaacc", 6);
	assert_memory_equal(now + 6, data + 6, 2);
	write_as(STORE_UNSTABLE, "eeee", 0);
	end(); /* no cut: it stays */
	begin("sim:rate=1G");
	assert_int_equal(store_sim_cut(dir.path, &bytes), -ENOENT);
	assert_int_equal(store_sim_cut("/nowhere", &bytes), -ENOENT);
	end();
}

/* ---- operations that move no data ---- */

static struct store_extents extents;

static void begin_range(unsigned n, enum store_op op, enum store_stable how, uint32_t off, uint32_t len)
{
	ios[n].io.stable = how;
	ios[n].io.extents = &extents;
	assert_int_equal(submit(n, 0, op, NULL, off, len), 0);
}

static void run_range(enum store_op op, enum store_stable how, uint32_t off, uint32_t len)
{
	ndone = 0;
	begin_range(0, op, how, off, len);
	wait_for(1);
	assert_int_equal(ios[0].io.res, len);
	ios[0].io.stable = STORE_UNSTABLE;
}

/* DISCARD and ZERO are writes without a transfer. EXTENTS is none of the disk's requests. A sync is for them, too. */
static void ranges_take_time(void **state)
{
	static const char zeroes[100];
	uint64_t start = now_ns;

	(void)state;
	begin("sim:rate=1M:latency=500us:fail=3");
	begin_range(0, STORE_ZERO, STORE_UNSTABLE, 4096, 8192);
	assert_int_equal(ios[0].io.sim.due_ns - start, 500 * NS_PER_US);
	begin_range(1, STORE_EXTENTS, STORE_UNSTABLE, 0, BYTES);
	assert_int_equal(ios[1].io.sim.due_ns, start);
	begin_range(2, STORE_DISCARD, STORE_UNSTABLE, 0, 4096);
	assert_int_equal(ios[2].io.sim.due_ns - start, 1000 * NS_PER_US);
	assert_int_equal(submit(3, 0, STORE_SYNC, NULL, 0, 0), 0);
	assert_int_equal(ios[3].io.sim.due_ns - start, 1000 * NS_PER_US);
	assert_int_equal(pread(file.fd, mem, BYTES, 0), BYTES);
	assert_memory_equal(mem, data, BYTES); /* nothing happens before it is due */
	begin_range(4, STORE_ZERO, STORE_UNSTABLE, 20000, 100);
	assert_int_equal(ios[4].io.sim.due_ns - start, 1500 * NS_PER_US);
	wait_for(5);
	assert_int_equal(ios[0].io.res, 8192);
	assert_int_equal(ios[1].io.res, BYTES);
	assert_int_equal(ios[2].io.res, 4096);
	assert_int_equal(ios[4].io.res, -EIO);
	assert_int_equal(atomic_load(&reactors[0].counters.store.sim_requests), 3);
	assert_int_equal(pread(file.fd, mem, BYTES, 0), BYTES);
	assert_memory_equal(mem + 4096, zeroes, sizeof(zeroes));
	assert_memory_equal(mem + 4096 + 8192, data + 4096 + 8192, BYTES - 4096 - 8192);
	end();
}

static void forgets_ranges(void **state)
{
	static const char zeroes[100];
	char now[300];
	size_t bytes;

	(void)state;
	for (int op = STORE_DISCARD; op <= STORE_ZERO; op++) {
		begin("sim:rate=1G:volatile");
		run_range((enum store_op)op, STORE_UNSTABLE, 0, 100);
		run_range((enum store_op)op, STORE_DATA_SYNC, 100, 100);
		run_range((enum store_op)op, STORE_UNSTABLE, 200, 100);
		run_range(STORE_EXTENTS, STORE_UNSTABLE, 0, BYTES); /* changes nothing */
		assert_int_equal(pread(file.fd, now, 300, 0), 300);
		assert_memory_equal(now, zeroes, 100); /* as files do */
		assert_int_equal(store_sim_cut(dir.path, &bytes), 0);
		assert_int_equal(bytes, 200);
		assert_int_equal(pread(file.fd, now, 300, 0), 300);
		assert_memory_equal(now, data, 100);
		assert_memory_equal(now + 100, zeroes, 100);
		assert_memory_equal(now + 200, data + 200, 100);
		run_range((enum store_op)op, STORE_UNSTABLE, 0, 50);
		run_one(STORE_SYNC, NULL, 0, 0);
		assert_int_equal(store_sim_cut(dir.path, &bytes), 0);
		assert_int_equal(bytes, 0);
		/* longer than what a reactor may copy, even in memory */
		assert_int_equal(ftruncate(file.fd, 5 << 20), 0);
		write_as(STORE_DATA_SYNC, "x", 4 << 20);
		run_range((enum store_op)op, STORE_UNSTABLE, 0, 5 << 20);
		assert_int_equal(store_sim_cut(dir.path, &bytes), 0);
		assert_int_equal(bytes, 5 << 20);
		assert_int_equal(pread(file.fd, now, 1, 4 << 20), 1);
		assert_int_equal(now[0], 'x');
		end();
	}
}

/* The disk stays the same one while exports are replaced: what is not stable is known on. */
static void outlives_exports(void **state)
{
	struct store *other;
	size_t bytes;

	(void)state;
	begin("sim:rate=1G:volatile:fail=3");
	write_as(STORE_UNSTABLE, "aaaa", 0);
	assert_int_equal(store_create(&store_sim_ops, &envs[0], &table.v[0].backing, &other), 0);
	store_destroy(stores[0]);
	store_destroy(stores[1]);
	stores[0] = other;
	stores[1] = NULL;
	write_as(STORE_UNSTABLE, "bbbb", 4);
	assert_int_equal(store_sim_cut(dir.path, &bytes), 0);
	assert_int_equal(bytes, 8);
	run_one(STORE_READ, NULL, 0, 8); /* and counts on */
	assert_int_equal(ios[0].io.res, -EIO);
	end();
}

/* As when the last request of exports that were replaced ends. */
static void destroy_it(struct store_io *io)
{
	on_done(io);
	store_destroy(stores[0]);
	stores[0] = NULL;
}

static void ends_with_its_last(void **state)
{
	(void)state;
	begin("sim:rate=1M");
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(submit(i, 0, STORE_READ, NULL, i * 100, 100), 0);
	ios[2].io.done = destroy_it;
	wait_for(3);
	for (int i = 0; i < 100; i++)
		rpcrdma_engine_poll(reactors[0].loop.engine);
	end();
}

/* ---- the others ---- */

static void null(void **state)
{
	char word[] = "mill", seen[4];

	(void)state;
	begin("null");
	memset(mem, 'x', BYTES);
	assert_int_equal(submit(0, 0, STORE_READ, NULL, 100, 100), 1);
	assert_int_equal(ios[0].io.res, 100);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(mem[100 + i], 0); /* and not what an earlier request left there */
	assert_int_equal(mem[99], 'x');
	assert_int_equal(mem[200], 'x');
	ios[1].io.size_hint = 50;
	assert_int_equal(submit(1, 0, STORE_READ, NULL, BYTES - 10, 10), 1);
	assert_int_equal(ios[1].io.res, 10);
	assert_int_equal(submit(2, 0, STORE_WRITE, word, 0, 4), 1);
	assert_int_equal(ios[2].io.res, 4);
	assert_int_equal(pread(file.fd, seen, 4, 0), 4);
	assert_memory_equal(seen, data, 4);
	if (!submit(3, 0, STORE_SYNC, NULL, 0, 0))
		wait_for(1);
	assert_int_equal(ios[3].io.res, 0);
	end();
}

static void null_knows_the_end(void **state)
{
	struct store_io io = { .op = STORE_READ,
			       .off = 90,
			       .bytes = 20,
			       .size_hint = 100,
			       .iovcnt = 2,
			       .done = on_done };
	struct iovec iov[2] = { { mem, 6 }, { mem + 6, 14 } };

	(void)state;
	begin("null");
	memset(mem, 'x', BYTES);
	io.file = &file;
	io.iov = iov;
	assert_int_equal(store_submit(stores[0], &io), 1);
	assert_int_equal(io.res, 10);
	assert_int_equal(mem[9], 0);
	assert_int_equal(mem[10], 'x');
	io.off = 101;
	assert_int_equal(store_submit(stores[0], &io), 1);
	assert_int_equal(io.res, 0);
	/* a client's memory may be gone: that is an error, and no signal */
	iov[0].iov_base = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(iov[0].iov_base, MAP_FAILED);
	io.off = 0;
	assert_int_equal(store_submit(stores[0], &io), 1);
	assert_int_equal(io.res, -EFAULT);
	munmap(iov[0].iov_base, 4096);
	end();
}

/* One line for all, in the order of coming; no latency. */
static void constant_rate(void **state)
{
	(void)state;
	begin("rate:10M");
	memset(mem, 0, BYTES);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(submit(i, 0, STORE_READ, NULL, (7 - i) * 8192, 8192), 0);
	for (unsigned i = 1; i < 8; i++)
		assert_int_equal(ios[i].io.sim.due_ns - ios[i - 1].io.sim.due_ns, 781250);
	wait_for(8);
	assert_memory_equal(mem, data, BYTES);
	end();
}

#define sim_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		sim_test(contents),
		sim_test(order_of_members),
		sim_test(all_at_once),
		sim_test(fails),
		sim_test(forgets),
		sim_test(ranges_take_time),
		sim_test(forgets_ranges),
		sim_test(outlives_exports),
		sim_test(ends_with_its_last),
		sim_test(null),
		sim_test(null_knows_the_end),
		sim_test(constant_rate),
	};

	struct statfs st;
	int failed;

	failed = cmocka_run_group_tests_name("store_sim", tests, NULL, NULL);
	if (failed || statfs(MEMORY, &st) || st.f_type != TMPFS_MAGIC || access(MEMORY, W_OK))
		return failed;
	setenv("TMPDIR", MEMORY, 1); /* once more where nothing needs a worker */
	return cmocka_run_group_tests_name("store_sim_memory", tests, NULL, NULL);
}
