/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_cancel.c - operations that are cancelled at random, from everywhere, while the server's disk is slow
 *
 * `make check` runs some thousand operations. LEAT_TEST_CANCELS=100000 sets their number for each test.
 * cancel_ops.h says what must hold.
 */
#include <sched.h>
#include <signal.h>
#include <sys/time.h>

#include "cancel_ops.h"
#include "inside.h"
#include "tcp_proxy.h"
#include "test_leat_mount.h"

LOG_DEFINE("test_leat_cancel");

#define OPS 2000u
#define VARIANT_OPS 400u /* test_variant_*.sh */
#define SLOW_DISK ",store=sim:members=2:chunk=64K:rate=400M:latency=200us"

static unsigned ops_wanted(void)
{
	const char *value = getenv("LEAT_TEST_CANCELS");

	if (value)
		return (unsigned)strtoul(value, NULL, 10);
	return getenv("LEAT_TEST_VARIANT") ? VARIANT_OPS : OPS;
}

static int setup_with(const char *options)
{
	leat_flow_create(&flow);
	leat_flow_stop(&flow);
	flow.options = options;
	leat_flow_start(&flow);
	return 0;
}

/* For this thread only: a handler in a thread of the server could still run when the mount has ended. */
static void mask_ticks(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	assert_int_equal(pthread_sigmask(how, &set, NULL), 0);
}

/* A server with a slow disk: calls are in flight inside it. */
static int setup_slow(void **state)
{
	(void)state;
	mask_ticks(SIG_BLOCK);
	return setup_with(SLOW_DISK);
}

static int setup_proxy(void **state)
{
	(void)state;
	return setup_with(",insecure");
}

/* Stops the server while operations are in flight, lets the clients go on without it, and starts it again. */
static void restart_server(struct cancel_test *t)
{
	unsigned started;

	atomic_store(&t->restarted, true);
	leat_flow_stop(&flow);
	started = atomic_load(&t->started);
	atomic_fetch_add(&t->may_cancel, 4 * (int)CANCEL_SLOTS);
	while (atomic_load(&t->started) < started + CANCEL_SLOTS && atomic_load(&t->started) < t->ops_max)
		sched_yield();
	leat_flow_start(&flow);
}

static void run(const char *url, const char *threads, const char *first, const char *second)
{
	const char *const options[CANCEL_MOUNTS] = { first, second };
	struct cancel_test *t;

	t = cancel_test_create(url, options, flow.export, threads, ops_wanted());
	cancel_test_run(t, restart_server);
	cancel_test_check(t);
	cancel_test_destroy(t);
}

static void local(void **state)
{
	(void)state;
	run(flow.local_url, "1", "conns=3&rsize=64k&wsize=64k", "cache=none&credits=8");
}

static void local_registrations(void **state)
{
	(void)state;
	run(flow.local_url, "1", "registration=window&bounce=0&rsize=256k&wsize=64k", "registration=dynamic&conns=2");
}

static void local_caches(void **state)
{
	(void)state;
	run(flow.local_url, "1", "registration=cache&bounce=0&rsize=32k", "registration=batch&conns=2&wsize=32k");
}

static void tcp(void **state)
{
	(void)state;
	run(flow.tcp_url, "1", "conns=3&rsize=64k&wsize=64k", "cache=none&credits=8");
}

/* ---- a signal handler that interrupts synchronous calls ---- */

#define TICK_US 1500
#define SYNC_BYTES ((size_t)256 << 10)

static struct leat *signal_m;
static atomic_uint interrupts;

static void on_signal(int sig)
{
	(void)sig;
	atomic_fetch_add(&interrupts, 1);
	leat_interrupt(signal_m);
}

static void set_ticks(suseconds_t us)
{
	const struct itimerval it = { .it_interval = { .tv_usec = us }, .it_value = { .tv_usec = us } };

	assert_int_equal(setitimer(ITIMER_REAL, &it, NULL), 0);
}

static void check_poison(const uint8_t *mem, size_t len)
{
	assert_int_equal(mem[0], 0xdb);
	assert_memory_equal(mem, mem + 1, len - 1);
}

/* Return: whether the call was interrupted */
static bool interrupted(int64_t result, bool may_be_executed)
{
	if (result == -EINTR || (may_be_executed && result == -EINPROGRESS))
		return true;
	if (result < 0)
		fail_msg("result %lld", (long long)result);
	return false;
}

/* Reads, also sequential ones with readahead, and checks that memory stays as it is after them. */
static unsigned read_once(struct leat_file *f, uint8_t *mem, const uint8_t *want, unsigned i)
{
	size_t len = i % 5 ? SYNC_BYTES : 3000;
	int64_t n, at;

	if (i % 3 == 0) {
		n = leat_pread(f, mem, len, 0);
		at = 0;
	} else {
		at = leat_lseek(f, 0, SEEK_CUR);
		if (at + (int64_t)len > (int64_t)(4 * SYNC_BYTES))
			at = leat_lseek(f, 0, SEEK_SET);
		n = leat_read(f, mem, len);
	}
	if (!interrupted(n, false))
		assert_memory_equal(mem, want + at, (size_t)n);
	memset(mem, 0xdb, len);
	return n < 0;
}

/* Return: how many of the calls were interrupted */
static unsigned change_once(struct leat *m, unsigned i, bool *ret_certain)
{
	char name[32], path[256];
	int64_t n;
	bool there;

	snprintf(name, sizeof(name), "sync%u", i);
	n = leat_mkdir(m, name, 0700);
	snprintf(path, sizeof(path), "%s/%s", flow.export, name);
	there = access(path, F_OK) == 0;
	*ret_certain = n == -EINPROGRESS || there == !n;
	return interrupted(n, true);
}

static void run_signals(const char *url, bool serve)
{
	static uint8_t want[4 * SYNC_BYTES], mem[SYNC_BYTES];
	struct leat *m = leat_flow_mount(url, "rsize=32k&readahead=256k");
	unsigned rounds = MAX(ops_wanted() / 10, leat_flow_fewer(100)), n = 0;
	struct leat_file *f;
	struct stat st;
	bool certain;

	leat_flow_fill(want, sizeof(want), 5);
	assert_int_equal(leat_open(m, "sync", O_RDWR | O_CREAT | O_TRUNC, 0600, &f), 0);
	assert_int_equal(leat_pwrite(f, want, sizeof(want), 0), sizeof(want));
	memset(mem, 0xdb, sizeof(mem));
	if (serve)
		assert_int_equal(leat_service_start(leat_session(m)), 0);
	signal_m = m;
	mask_ticks(SIG_UNBLOCK);
	set_ticks(TICK_US);
	for (unsigned i = 0; i < rounds; i++) {
		check_poison(mem, sizeof(mem));
		n += read_once(f, mem, want, i);
		n += interrupted(leat_stat(m, "sync", &st), false);
		n += change_once(m, serve * rounds + i, &certain);
		assert_true(certain);
	}
	set_ticks(0);
	mask_ticks(SIG_BLOCK);
	while (leat_null(m) == -EINTR)
		;
	check_poison(mem, sizeof(mem));
	assert_int_equal(leat_close(f), 0);
	print_message("%u of %u calls interrupted by %u signals\n", n, 3 * rounds, atomic_load(&interrupts));
	assert_true(n > 0);
	leat_umount(m);
}

static void signals(void **state)
{
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	(void)state;
	assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
	run_signals(flow.local_url, false);
	run_signals(flow.tcp_url, true);
}

/* ---- a connection that takes no more ---- */

#define HELD 32u
#define HELD_BYTES ((size_t)1 << 20)

static struct count held[HELD];

/* Cancels the writes from @first on and fills their memory; no byte of it may be sent any more. */
static void cancel_held(struct leat *m, uint8_t *mem, unsigned first, unsigned last)
{
	for (unsigned i = first; i < last; i++) {
		(void)leat_cancel(m, &held[i]);
		while (!held[i].free)
			assert_true(leat_poll(leat_session(m), 1) >= 0);
		memset(mem + i * HELD_BYTES, 0xdb, HELD_BYTES);
	}
}

static void check_held(struct leat_file *f, unsigned i, uint8_t *got)
{
	uint8_t old = 1, new = 2;

	assert_int_equal(leat_pread(f, got, HELD_BYTES, i * HELD_BYTES), HELD_BYTES);
	if (held[i].result == -ECANCELED)
		new = old;
	for (size_t at = 0; at < HELD_BYTES; at++) {
		if (got[at] != old && got[at] != new)
			fail_msg("byte %zu of write %u is %#x", at, i, got[at]);
	}
}

/* Writes that the connection has taken in part or not at all: the latter change nothing, and return their credits. */
static void full_socket(void **state)
{
	const struct rpcrdma_addr server = { .transport = RPCRDMA_TCP, .host = "127.0.0.1", .port = (uint16_t)flow.port };
	uint8_t *mem = malloc(HELD * HELD_BYTES), *got = malloc(HELD_BYTES);
	static struct tcp_proxy proxy; /* outlives a failed test */
	struct leat_file *f;
	struct leat *m;
	unsigned unsent = 0;
	char url[128];

	(void)state;
	assert_non_null(mem);
	assert_non_null(got);
	memset(mem, 1, HELD * HELD_BYTES);
	tcp_proxy_start(&proxy, &server);
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%u/x", proxy.addr.port);
	m = leat_flow_mount(url, "wsize=1M");
	assert_int_equal(leat_open(m, "held", O_RDWR | O_CREAT, 0600, &f), 0);
	assert_int_equal(leat_pwrite(f, mem, HELD * HELD_BYTES, 0), HELD * HELD_BYTES);
	memset(mem, 2, HELD * HELD_BYTES);
	atomic_store(&proxy.cut, TCP_PROXY_HOLD);
	for (unsigned i = 0; i < HELD; i++) {
		held[i] = (struct count){ 0 };
		assert_int_equal(leat_aio_pwrite(f, mem + i * HELD_BYTES, HELD_BYTES, i * HELD_BYTES,
						 (struct leat_cb){ count_fn, &held[i], count_free }), 0);
	}
	while (leat_poll(leat_session(m), 20) > 0)
		;
	assert_int_equal(leat_credits_out(m), HELD);
	cancel_held(m, mem, HELD / 2, HELD);
	for (unsigned i = HELD / 2; i < HELD; i++)
		unsent += held[i].result == -ECANCELED;
	assert_true(unsent > 0);
	assert_int_equal(leat_credits_out(m), HELD - unsent);
	cancel_held(m, mem, 0, HELD / 2);
	atomic_store(&proxy.cut, TCP_PROXY_NONE);
	for (unsigned i = 0; i < HELD; i++)
		check_held(f, i, got);
	assert_int_equal(leat_close(f), 0);
	leat_umount(m);
	tcp_proxy_stop(&proxy);
	free(mem);
	free(got);
}

/* Connections of further threads: calls are cancelled there, too. */
static void more_threads(void **state)
{
	(void)state;
	run(flow.local_url, "3", "conns=4&rsize=64k&wsize=64k", "conns=2&cache=none&credits=8");
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(local, setup_slow, teardown),
	cmocka_unit_test_setup_teardown(local_registrations, setup_slow, teardown),
	cmocka_unit_test_setup_teardown(local_caches, setup_slow, teardown),
	cmocka_unit_test_setup_teardown(tcp, setup_slow, teardown),
	cmocka_unit_test_setup_teardown(more_threads, setup_slow, teardown),
	cmocka_unit_test_setup_teardown(signals, setup_slow, teardown),
	cmocka_unit_test_setup_teardown(full_socket, setup_proxy, teardown),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
