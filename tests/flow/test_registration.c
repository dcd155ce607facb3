/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_registration.c - what each strategy costs in registrations, and what becomes of a call whose
 * memory is not there, or that there is no registration for
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel_has.h"
#include "leat_flow.h"
#include "rpc_pair.h"
#include "lab.h"

LOG_DEFINE("test_registration");

#define BYTES 100000u
#define ROOM (128u << 10) /* of one buffer, with a gap to the next */

struct rr_monitor;
int __real_rr_monitor_get(struct rr_monitor **ret);
int __wrap_rr_monitor_get(struct rr_monitor **ret);

static int refused_monitor; /* what a kernel or a seccomp filter says to userfaultfd(2), or 0 */

int __wrap_rr_monitor_get(struct rr_monitor **ret)
{
	return refused_monitor ? refused_monitor : __real_rr_monitor_get(ret);
}

/* Memory with nothing on either side. */
static uint8_t *map_one(void)
{
	uint8_t *mem = mmap(NULL, 2 * ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(mem, MAP_FAILED);
	assert_int_equal(mprotect(mem, ROOM, PROT_READ | PROT_WRITE), 0);
	return mem;
}

static void unmap_one(void *mem)
{
	assert_int_equal(munmap(mem, 2 * ROOM), 0);
}

/* ---- calls into memory of our choice -------------------------------------------------------- */

static void call_into(struct rpc_pair *p, struct rpcrdma_clnt *clnt, struct echo_call *c, uint8_t *mem,
		      size_t bytes)
{
	echo_init(c, p, ECHO_SOURCE, 0, bytes, (uint32_t)bytes, 0);
	free(c->sink);
	free(c->arg);
	c->arg = NULL;
	c->own = false;
	c->sink = mem;
	mem[bytes] = 0xee;
	echo_cut(c, SIZE_MAX);
	if (clnt == p->clnt)
		echo_start(c);
	else
		assert_int_equal(rpcrdma_clnt_call(clnt, &c->call), 0);
}

static void read_into(struct rpc_pair *p, uint8_t *mem)
{
	struct echo_call c;

	call_into(p, p->clnt, &c, mem, BYTES);
	rpc_pair_until(p, &c.done, 1);
	echo_check(&c, 0);
	echo_fini(&c);
}

/* ---- counts --------------------------------------------------------------------------------- */

static void steady_state(void **state)
{
	static const struct {
		const char *name;
		bool slab;
		unsigned regs; /* of each read */
	} how[] = {
		{ "dynamic", false, 1 }, { "cache", false, 0 }, { "batch", false, 0 },
		{ "auto", false, 0 },    { "slab", true, 0 },   { "slab", false, 0 },
		{ "auto", true, 0 },     { "cache", true, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL,
					   .clnt.registration = how[i].name };
		struct rpc_pair *p = rpc_pair_create(&a);
		struct rpcrdma_stats before, s;
		uint8_t *mine = map_one();
		void *mem = mine;

		if (how[i].slab)
			assert_int_equal(rpcrdma_mem_alloc(p->clnt_domain, BYTES + 1, &mem), 0);
		read_into(p, mem);
		before = rpc_pair_clnt_stats(p);
		for (int n = 0; n < 20; n++)
			read_into(p, mem);
		s = rpc_pair_clnt_stats(p);
		if (kernel_has_uffd() || how[i].slab || !strcmp(how[i].name, "slab")) {
			assert_int_equal(s.regs - before.regs, 20 * how[i].regs);
			assert_int_equal(s.deregs - before.deregs, 20 * how[i].regs);
		} else {
			print_message("SKIP: %s, for there is no userfaultfd here\n", how[i].name);
		}
		assert_int_equal(s.reg_bounced - before.reg_bounced,
				 !strcmp(how[i].name, "slab") && !how[i].slab ? 20 : 0);
		if (how[i].slab)
			rpcrdma_mem_free(p->clnt_domain, mem);
		rpc_pair_destroy(p);
		unmap_one(mine);
	}
}

/* Without a monitor only memory whose owner promised to keep it is cached, and the info says so. */
static void no_monitor(void **state)
{
	static const char *const names[] = { "cache", "batch", "auto" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL,
					   .clnt.registration = names[i] };
		struct rpcrdma_clnt_info info;
		uint8_t *mem = map_one();
		struct rpc_pair *p;

		refused_monitor = -EPERM;
		p = rpc_pair_create(&a);
		for (int n = 0; n < 3; n++)
			read_into(p, mem);
		assert_int_equal(rpc_pair_clnt_stats(p).regs, 3);
		assert_int_equal(rpc_pair_clnt_stats(p).reg_misses, 0);
		rpcrdma_clnt_info(p->clnt, &info);
		assert_non_null(strstr(info.kept, "no monitor"));
		assert_non_null(strstr(info.kept, strerror(EPERM)));
		assert_int_equal(rpcrdma_mem_register(p->clnt_domain, mem, BYTES + 1), 0);
		for (int n = 0; n < 3; n++)
			read_into(p, mem);
		assert_int_equal(rpc_pair_clnt_stats(p).regs, 4);
		rpc_pair_destroy(p);
		refused_monitor = 0;
		unmap_one(mem);
	}
}

/* One in five buffers is used again, and ten are kept: no call waits for what has to go. */
static void batch_defers(void **state)
{
	struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL, .clnt.registration = "batch",
				   .clnt.monitor = "none", .clnt.reg_entries = 10 };
	struct rpc_pair *p = rpc_pair_create(&a);
	uint64_t start_ns = clock_now_ns();
	struct rpcrdma_stats s;
	uint8_t *mem[50];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mem); i++)
		mem[i] = map_one();
	for (unsigned i = 0; i < 400; i++)
		read_into(p, mem[i % 5 == 4 ? (i - 1) % ARRAY_SIZE(mem) : i % ARRAY_SIZE(mem)]);
	s = rpc_pair_clnt_stats(p);
	assert_int_equal(s.reg_hits, 80);
	assert_int_equal(s.reg_misses, 320);
	assert_int_equal(s.reg_evicted, 310);
	assert_int_equal(s.reg_deferred, 310);
	assert_int_equal(s.deregs, s.reg_reaped);
	/* in lots, not one by one: of 32, or of all that has gathered in 100 ms */
	assert_in_range(s.reg_flushes, 0,
			310 / 32 + (clock_now_ns() - start_ns) / (100 * NS_PER_MS) + 1);
	rpc_pair_destroy(p);

	/* `cache` does it at once */
	a.clnt.registration = "cache";
	p = rpc_pair_create(&a);
	for (unsigned i = 0; i < 100; i++)
		read_into(p, mem[i % ARRAY_SIZE(mem)]);
	s = rpc_pair_clnt_stats(p);
	assert_int_equal(s.reg_evicted, 90);
	assert_int_equal(s.deregs, 90);
	assert_int_equal(s.reg_reaped, 0);
	rpc_pair_destroy(p);
	for (size_t i = 0; i < ARRAY_SIZE(mem); i++)
		unmap_one(mem[i]);
}

static void small_is_copied(void **state)
{
	struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL, .clnt.registration = "dynamic",
				   .clnt.bounce_bytes = 20000, .clnt.lab = LAB(.force_chunks = true) };
	struct rpc_pair *p = rpc_pair_create(&a);
	struct rpcrdma_stats s;

	(void)state;
	echo_run(p, 19999, 0);
	s = rpc_pair_clnt_stats(p);
	assert_int_equal(s.reg_bounced, 2); /* there and back */
	echo_run(p, 20000, 0);
	s = rpc_pair_clnt_stats(p);
	assert_int_equal(s.reg_bounced, 2);
	rpc_pair_destroy(p);

	/* what it is copied through is registered once, but for `dynamic` */
	a.clnt.registration = "cache";
	p = rpc_pair_create(&a);
	echo_run(p, 19999, 0);
	s = rpc_pair_clnt_stats(p);
	for (int i = 0; i < 10; i++)
		echo_run(p, 19999, 0);
	assert_int_equal(rpc_pair_clnt_stats(p).reg_bounced, 22);
	assert_int_equal(rpc_pair_clnt_stats(p).regs, s.regs);
	rpc_pair_destroy(p);
}

static unsigned descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Many copies at once: each with memory of its own, which does not cost descriptors without end. */
static void many_are_copied(void **state)
{
	struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL, .clnt.registration = "slab" };
	struct rpc_pair *p = rpc_pair_create(&a);
	struct echo_call c[50];
	uint64_t regs = 0;
	unsigned before = 0;

	(void)state;
	for (int round = -10; round < 2; round++) { /* at first small ones, for credits */
		uint32_t bytes = round < 0 ? 100 : 30000;

		if (!round)
			before = descriptors();
		p->hold = round >= 0;
		p->nheld = 0;
		for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
			echo_init(&c[i], p, ECHO_SOURCE, 0, bytes, bytes, 0);
			echo_cut(&c[i], SIZE_MAX);
			echo_start(&c[i]);
		}
		rpc_pair_settle(p);
		if (round >= 0)
			assert_in_range(p->nheld, 20, ARRAY_SIZE(c));
		rpc_pair_release(p);
		for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
			rpc_pair_until(p, &c[i].done, 1);
			echo_check(&c[i], 0);
			echo_fini(&c[i]);
		}
		if (round > 0)
			assert_int_equal(rpc_pair_clnt_stats(p).regs, regs);
		regs = rpc_pair_clnt_stats(p).regs;
	}
	assert_int_equal(rpc_pair_clnt_stats(p).reg_bounced, 2 * ARRAY_SIZE(c));
	assert_in_range(descriptors() - before, 1, 16 * 4); /* both ends are here */
	rpc_pair_destroy(p);
}

/* ---- memory that is not there --------------------------------------------------------------- */

static void not_mapped(void **state)
{
	static const char *const names[] = { "dynamic", "cache", "batch", "auto", "slab", "auto" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL,
					   .clnt.registration = names[i],
					   .clnt.bounce_bytes = i == 5 ? 1u << 20 : 0 };
		struct rpc_pair *p = rpc_pair_create(&a);
		uint8_t *good = map_one(), *bad = map_one();
		struct echo_call other, c;

		p->hold = true;
		call_into(p, p->clnt, &other, good, BYTES);
		rpc_pair_until(p, &p->nheld, 1);
		assert_int_equal(munmap(bad + 65536, 4096), 0);
		echo_init(&c, p, ECHO_SOURCE, 0, BYTES, BYTES, 0);
		c.sink_iov[0].iov_base = bad;
		assert_int_equal(rpcrdma_clnt_call(p->clnt, &c.call), 0); /* waits for a credit */
		rpc_pair_release(p);
		rpc_pair_until(p, &other.done, 1);
		echo_check(&other, 0);
		rpc_pair_until(p, &c.done, 1);
		assert_int_equal(c.err, -EFAULT);
		read_into(p, good);
		assert_int_equal(rpc_pair_clnt_stats(p).reconnects, 0);
		c.done = 0;
		assert_int_equal(rpcrdma_clnt_call(p->clnt, &c.call), -EFAULT); /* at once */
		echo_fini(&c);
		echo_init(&c, p, ECHO_SINK, BYTES, 0, 0, 0); /* to be read from */
		c.arg_iov[0].iov_base = bad;
		assert_int_equal(rpcrdma_clnt_call(p->clnt, &c.call), -EFAULT);
		echo_fini(&other);
		echo_fini(&c);
		rpc_pair_destroy(p);
		unmap_one(good);
		assert_int_equal(munmap(bad, 2 * ROOM), 0);
	}
}

/* The one whose memory goes fails, the other does not, and the client goes on. */
static void unmapped_in_mid_call(void **state)
{
	static const char *const names[] = { "dynamic", "cache", "auto", "slab" };

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(names); i++) {
		struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL,
					   .clnt.registration = names[i / 2],
					   .clnt_local.filters = HOOKS(.pin = i % 2) }; /* as for a device */
		struct rpc_pair *p = rpc_pair_create(&a);
		uint8_t *good = map_one(), *bad = map_one();
		struct echo_call other, c;

		read_into(p, good); /* more than one credit */
		p->hold = true;
		call_into(p, p->clnt, &other, good, BYTES);
		call_into(p, p->clnt, &c, bad, BYTES);
		rpc_pair_until(p, &p->nheld, 2);
		assert_int_equal(munmap(bad + 8192, 4096), 0);
		rpc_pair_release(p);
		rpc_pair_until(p, &other.done, 1);
		echo_check(&other, 0);
		rpc_pair_until(p, &c.done, 1);
		assert_int_equal(c.err, -EFAULT);
		if (i % 2) /* where only the client detects it, only the call fails */
			assert_int_equal(rpc_pair_clnt_stats(p).reconnects, 0);
		read_into(p, good);
		echo_fini(&other);
		c.sink = NULL;
		echo_fini(&c);
		rpc_pair_destroy(p);
		unmap_one(good);
		assert_int_equal(munmap(bad, 2 * ROOM), 0);
	}
}

/* New pages under the call: it was answered into the old ones, which only the monitor can tell. */
static void replaced_in_mid_call(void **state)
{
	struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL, .clnt.registration = "cache" };
	struct rpc_pair *p;
	struct echo_call c;
	uint8_t *mem;

	(void)state;
	if (!kernel_has_uffd())
		skip();
	p = rpc_pair_create(&a);
	mem = map_one();
	p->hold = true;
	call_into(p, p->clnt, &c, mem, BYTES);
	rpc_pair_until(p, &p->nheld, 1);
	assert_int_equal(madvise(mem + 4096, 4096, MADV_DONTNEED), 0);
	rpc_pair_release(p);
	rpc_pair_until(p, &c.done, 1);
	assert_int_equal(c.err, -EFAULT);
	assert_int_equal(rpc_pair_clnt_stats(p).reg_invalidated, 1);
	read_into(p, mem);
	read_into(p, mem);
	assert_int_equal(rpc_pair_clnt_stats(p).reg_misses, 2);
	assert_int_equal(rpc_pair_clnt_stats(p).reconnects, 0);
	echo_fini(&c);
	rpc_pair_destroy(p);
	unmap_one(mem);
}

/* ---- shortage ------------------------------------------------------------------------------- */

/* While others of the connection are out a call waits for what they have; else its data is copied. */
static void queued_then_copied(void **state)
{
	struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL, .clnt.registration = "cache",
				   .clnt.monitor = "none", .clnt.reg_bytes = 40 * 4096 };
	struct rpc_pair *p = rpc_pair_create(&a);
	struct rpcrdma_clnt_attr ca = p->attr.clnt;
	struct rpcrdma_clnt *second;
	struct echo_call c[3], other;
	uint8_t *mem[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		mem[i] = map_one();
	read_into(p, mem[0]);
	p->hold = true;
	for (int i = 0; i < 3; i++)
		call_into(p, p->clnt, &c[i], mem[i], BYTES); /* room for one */
	rpc_pair_settle(p);
	assert_int_equal(p->nheld, 1);
	rpc_pair_release(p);
	for (int i = 0; i < 3; i++) {
		rpc_pair_until(p, &c[i].done, 1);
		echo_check(&c[i], 0);
		echo_fini(&c[i]);
	}
	assert_int_equal(rpc_pair_clnt_stats(p).reg_bounced, 0);

	/* the cache is two connections', and one has none of it out */
	ca.addr = p->addr;
	ca.state = NULL;
	assert_int_equal(rpcrdma_clnt_open(p->clnt_engine, &ca, &second), 0);
	p->hold = true;
	p->nheld = 0;
	call_into(p, p->clnt, &c[0], mem[0], BYTES);
	rpc_pair_until(p, &p->nheld, 1);
	call_into(p, second, &other, mem[1], BYTES);
	rpc_pair_settle(p);
	assert_int_equal(p->nheld, 2);
	assert_int_equal(rpc_pair_clnt_stats(p).reg_bounced, 1);
	rpc_pair_release(p);
	rpc_pair_until(p, &c[0].done, 1);
	rpc_pair_until(p, &other.done, 1);
	echo_check(&c[0], 0);
	echo_check(&other, 0);
	echo_fini(&c[0]);
	echo_fini(&other);
	rpcrdma_clnt_destroy(second);
	rpc_pair_settle(p);
	rpc_pair_destroy(p);
	for (int i = 0; i < 4; i++)
		unmap_one(mem[i]);
}

/* One connection that ends does not take from another what they share. */
static void the_other_goes_on(void **state)
{
	struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL, .clnt.registration = "cache",
				   .clnt.monitor = "none" };
	struct rpc_pair *p = rpc_pair_create(&a);
	struct rpcrdma_clnt_attr ca = p->attr.clnt;
	struct rpcrdma_clnt *second;
	struct echo_call c, other;
	uint8_t *mem = map_one();

	(void)state;
	read_into(p, mem);
	ca.addr = p->addr;
	ca.state = NULL;
	assert_int_equal(rpcrdma_clnt_open(p->clnt_engine, &ca, &second), 0);
	p->hold = true;
	call_into(p, second, &other, mem, BYTES);
	rpc_pair_until(p, &p->nheld, 1);
	assert_int_equal(rpc_pair_clnt_stats(p).regs, 1); /* the same one */
	rpcrdma_conn_close(p->last_conn);
	rpc_pair_settle(p);
	call_into(p, p->clnt, &c, mem, BYTES);
	rpc_pair_release(p);
	rpc_pair_until(p, &c.done, 1);
	rpc_pair_until(p, &other.done, 1); /* over its next connection */
	echo_check(&c, 0);
	echo_check(&other, 0);
	assert_int_equal(p->downs, 0);
	echo_fini(&c);
	echo_fini(&other);
	rpcrdma_clnt_destroy(second);
	rpc_pair_settle(p);
	rpc_pair_destroy(p);
	unmap_one(mem);
}

/* ---- a mount -------------------------------------------------------------------------------- */

static struct leat_flow flow;

static void refused(const char *options, const char *why)
{
	char url[256];
	struct leat *m;

	snprintf(url, sizeof(url), "%s?%s", flow.local_url, options);
	assert_int_equal(leat_mount(url, NULL, &m), -EINVAL);
	if (!strstr(leat_error(NULL), why))
		fail_msg("%s", leat_error(NULL));
}

static void other_up(void *ctx, enum rpcrdma_clnt_state state, const char *why)
{
	(void)why;
	*(unsigned *)ctx += state == RPCRDMA_CLNT_UP;
}

/* Of two clients that connect at once, one finds that the first bind on the device fails, the other that it works. */
static void windows_fail_for_one(void **state)
{
	struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL, .clnt.registration = "window",
				   .clnt_local.filters = HOOKS(.fail_bind = 1) };
	struct rpc_pair *p = rpc_pair_create(&a);
	unsigned ups = 0;
	struct rpcrdma_clnt_attr more = { .registration = "window", .addr = p->addr, .state = other_up,
					     .ctx = &ups };
	struct rpcrdma_clnt *without = p->clnt, *with;
	struct rpcrdma_clnt_info info;
	struct echo_call c;

	(void)state;
	assert_int_equal(rpcrdma_clnt_open(p->clnt_engine, &more, &with), 0);
	rpc_pair_until(p, &p->ups, 1);
	rpc_pair_until(p, &ups, 1);
	rpcrdma_clnt_info(without, &info);
	assert_string_equal(info.registration, "auto");
	rpcrdma_clnt_info(with, &info);
	assert_string_equal(info.registration, "window");
	p->clnt = with;
	p->hold = true;
	echo_init(&c, p, ECHO_BOTH, 30000, 30000, 1, 0);
	echo_start(&c);
	rpc_pair_until(p, &p->nheld, 1);
	rpcrdma_conn_close(p->last_conn);
	rpc_pair_settle(p);
	rpc_pair_release(p);
	rpc_pair_until(p, &c.done, 1);
	echo_check(&c, 0);
	rpcrdma_clnt_info(with, &info);
	assert_int_equal(info.reconnects, 1);
	echo_fini(&c);
	rpcrdma_clnt_destroy(without);
	rpc_pair_destroy(p);
}

static void limits_at_mount(void **state)
{
	(void)state;
	refused("registration=cache&reg_bytes=64k", "at least 1056768");
	refused("registration=arena&reg_bytes=1m", "at least 1056768");
	refused("reg_bytes=64k&rsize=32k", "at least 1056768");
	flow.m = leat_flow_mount(flow.local_url, "registration=cache&reg_bytes=64k&rsize=32k&wsize=32k");
	leat_umount(flow.m);
	flow.m = leat_flow_mount(flow.local_url, "registration=dynamic&reg_bytes=64k");
	leat_umount(flow.m);
	flow.m = leat_flow_mount(flow.tcp_url, "registration=cache&reg_bytes=64k");
	leat_umount(flow.m);
	flow.m = NULL;
}

/* The same bytes whatever the strategy, and how many registrations it takes to move them again. */
static void strategies(void **state)
{
	static const struct {
		const char *options;
		bool again; /* registered for each operation */
	} how[] = {
		{ "registration=dynamic", true },
		{ "registration=cache&monitor=none", false },
		{ "registration=batch&monitor=none", false },
		{ "registration=cache&monitor=explicit&bounce=0", true },
		{ "registration=slab", false },
		{ "registration=arena", false },
		{ "registration=arena&reg_bytes=3m", false },
		{ "bounce=16m", false },
		{ "registration=cache&monitor=none&conns=3", false },
	};
	static uint8_t data[3u << 20], back[sizeof(data)];

	(void)state;
	leat_flow_fill(data, sizeof(data), 3);
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		struct leat *m = flow.m = leat_flow_mount(flow.local_url, how[i].options);
		uint64_t before, after;
		struct leat_file *f;

		assert_int_equal(leat_open(m, "bytes", O_RDWR | O_CREAT | O_TRUNC, 0600, &f), 0);
		assert_int_equal(leat_pwrite(f, data, sizeof(data), 0), sizeof(data));
		assert_int_equal(leat_pread(f, back, sizeof(back), 0), sizeof(back));
		assert_memory_equal(data, back, sizeof(data));
		for (int n = 0; n < 3; n++) { /* modes that cache registrations have them all by now */
			before = leat_flow_stat(m, "regs");
			memset(back, 0, sizeof(back));
			assert_int_equal(leat_pread(f, back, sizeof(back), 0), sizeof(back));
			assert_memory_equal(data, back, sizeof(data));
			after = leat_flow_stat(m, "regs");
		}
		assert_int_equal(after - before, how[i].again ? 3 : 0);
		assert_int_equal(leat_close(f), 0);
		leat_umount(m);
		flow.m = NULL;
	}
}

static void on_read(void *arg, int64_t result)
{
	*(int64_t *)arg = result;
}

/* Memory of the program's own, registered once; it cannot be taken back under a call. */
static void registered_memory(void **state)
{
	static uint8_t data[ROOM];

	(void)state;
	leat_flow_fill(data, sizeof(data), 4);
	for (int service = 0; service < 2; service++) {
		struct leat *m = flow.m = leat_flow_mount(flow.local_url, "registration=slab");
		uint8_t *mem = map_one();
		uint64_t before;
		struct leat_file *f;
		int64_t result = -1;

		if (service)
			assert_int_equal(leat_service_start(leat_session(m)), 0);
		assert_int_equal(leat_buf_register(leat_session(NULL), mem, ROOM), -EINVAL);
		assert_int_equal(leat_buf_register(leat_session(m), mem, 0), -EINVAL);
		assert_int_equal(leat_buf_register(leat_session(m), mem, ROOM), 0);
		assert_int_equal(leat_buf_register(leat_session(m), mem + 5, 1), -EEXIST);
		assert_int_equal(leat_open(m, "mine", O_RDWR | O_CREAT | O_TRUNC, 0600, &f), 0);
		before = leat_flow_stat(m, "regs");
		memcpy(mem, data, ROOM);
		assert_int_equal(leat_pwrite(f, mem, ROOM, 0), ROOM);
		memset(mem, 0, ROOM);
		assert_int_equal(leat_pread(f, mem, ROOM, 0), ROOM);
		assert_memory_equal(mem, data, ROOM);
		assert_int_equal(leat_flow_stat(m, "regs") - before, 1);
		assert_int_equal(leat_flow_stat(m, "reg_bounced"), 0);
		memset(mem, 0, ROOM);
		assert_int_equal(leat_aio_pread(f, mem, ROOM, 0,
						(struct leat_cb){ on_read, &result, NULL }), 0);
		assert_int_equal(leat_buf_unregister(leat_session(m), mem), 0);
		assert_memory_equal(mem, data, ROOM); /* it has waited for them, if not for the callback */
		while (!service && result < 0)
			leat_poll(leat_session(m), -1);
		assert_int_equal(leat_close(f), 0);
		assert_int_equal(result, ROOM);
		assert_int_equal(leat_buf_unregister(leat_session(m), mem), -ENOENT);
		assert_int_equal(leat_buf_unregister(leat_session(NULL), mem), -EINVAL);
		leat_umount(m);
		flow.m = NULL;
		unmap_one(mem);
	}
}

static int set_up(void **state)
{
	(void)state;
	leat_flow_create(&flow);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	leat_umount(flow.m);
	leat_flow_destroy(&flow);
	return 0;
}

int main(void)
{
	const struct CMUnitTest calls[] = {
		cmocka_unit_test(steady_state),
		cmocka_unit_test(no_monitor),
		cmocka_unit_test(batch_defers),
		cmocka_unit_test(small_is_copied),
		cmocka_unit_test(many_are_copied),
		cmocka_unit_test(not_mapped),
		cmocka_unit_test(unmapped_in_mid_call),
		cmocka_unit_test(replaced_in_mid_call),
		cmocka_unit_test(queued_then_copied),
		cmocka_unit_test(the_other_goes_on),
		cmocka_unit_test(windows_fail_for_one),
	};
	const struct CMUnitTest mounts[] = {
		cmocka_unit_test(limits_at_mount),
		cmocka_unit_test(strategies),
		cmocka_unit_test(registered_memory),
	};
	int failed = cmocka_run_group_tests_name("calls", calls, NULL, NULL);

	return failed + cmocka_run_group_tests_name("mounts", mounts, set_up, tear_down);
}
