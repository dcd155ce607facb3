/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_frozen.c - a writer and a stripe server of a volume that stop during a cut, and go on later, and a manager that is
 * killed: nothing of the old epoch is written, and nothing late overwrites something newer. All are processes
 *
 * A relay (tests/tumble/relay.h) is between all clients and each server. What it holds is under way: it arrives when the cut is
 * long over. The counters of the server tell that it has arrived.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "leat.h"
#include "leat_admin.h"
#include "nfs_peer.h"
#include "tests/tumble/leatds.h"
#include "tmp_dir.h"

LOG_DEFINE("test");

#define SERVERS 4u
#define UNIT 65536u
#define BYTES (8 * UNIT)
#define HASTY "stripe_timeo=300ms"
#define PATIENT "stripe_timeo=60s"

static struct tmp_dir dir;
static struct leatds servers;
static uint8_t data[BYTES], other[BYTES], mem[BYTES];

static int setup(void **state)
{
	const struct fleet_opts o = { .servers = SERVERS, .unit = UNIT, .patience_ms = 100 };
	const char *leatd = getenv("LEATD");
	char path[100];

	(void)state;
	tmp_dir_create(&dir);
	(void)snprintf(path, sizeof(path), "%.80s/v", dir.path);
	if (leatds_start(&servers, path, leatd ? leatd : "build/leatd", "tcp", &o))
		fail_msg("%s", servers.why);
	for (size_t i = 0; i < BYTES; i++) {
		data[i] = (uint8_t)(1 + i % 251);
		other[i] = (uint8_t)(1 + i % 199);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (leatds_end(&servers))
		fail_msg("%s", servers.why);
	tmp_dir_destroy(&dir);
	return 0;
}

/* ---- clients ----------------------------------------------------------------------------- */

static struct leat *mount_volume(const char *options)
{
	char url[400];
	struct leat *m;

	(void)snprintf(url, sizeof(url), "%s?cache=none&%s", servers.url, options);
	if (leat_mount(url, NULL, &m))
		fail_msg("%s", leat_error(NULL));
	return m;
}

static struct leat_file *open_file(struct leat *m, const char *name, int flags)
{
	struct leat_file *f;

	if (leat_open(m, name, flags, 0644, &f))
		fail_msg("%s: %s", name, leat_error(m));
	return f;
}

/* A file of BYTES, of data or without any object */
static void make_file(const char *name, bool objects)
{
	struct leat *m = mount_volume(PATIENT);
	struct leat_file *f = open_file(m, name, O_RDWR | O_CREAT | O_TRUNC);

	if (objects)
		assert_int_equal(leat_pwrite(f, data, BYTES, 0), BYTES);
	else
		assert_int_equal(leat_ftruncate(f, BYTES), 0);
	assert_int_equal(leat_close(f), 0);
	leat_umount(m);
}

/* Opens a file by a client that has handles to write and connections to all servers then, and nothing to report. */
static struct leat_file *open_connected(struct leat *m, const char *name, bool objects)
{
	struct leat_file *f = open_file(m, name, O_RDWR);
	uint64_t until = clock_now_ns() + 60 * NS_PER_S;

	while (leat_pread(f, mem, BYTES, 0) != BYTES && clock_now_ns() < until)
		;
	while (leat_pwrite(f, objects ? data : mem, 1, 0) != 1 && clock_now_ns() < until)
		;
	assert_int_equal(leat_fsync(f), 0);
	return f;
}

static void settle(void)
{
	uint64_t until = clock_now_ns() + 60 * NS_PER_S;

	while (!leatds_is_settled(&servers) && clock_now_ns() < until)
		(void)poll(NULL, 0, 1);
	assert_true(leatds_is_settled(&servers));
}

static void cut(const char *name, uint64_t bytes)
{
	struct leat *m = mount_volume(PATIENT);
	struct leat_file *f = open_file(m, name, O_RDWR);

	if (leat_ftruncate(f, bytes))
		fail_msg("%s", leat_error(m));
	assert_int_equal(leat_close(f), 0);
	leat_umount(m);
}

/* The first @good bytes of the file are those of @want, and those behind are zeroes when it has grown again. */
static void check_file(const char *name, const uint8_t *want, size_t good)
{
	struct leat *m = mount_volume(PATIENT);
	struct leat_file *f = open_file(m, name, O_RDWR);
	struct stat st;

	assert_int_equal(leat_fstat(f, &st), 0);
	assert_true(st.st_size <= BYTES);
	assert_int_equal(leat_ftruncate(f, BYTES), 0);
	memset(mem, 0xee, BYTES);
	assert_int_equal(leat_pread(f, mem, BYTES, 0), BYTES);
	assert_memory_equal(mem, want, good);
	for (size_t i = good; i < BYTES; i++)
		if (mem[i])
			fail_msg("%s: byte %zu is %02x", name, i, mem[i]);
	assert_int_equal(leat_close(f), 0);
	leat_umount(m);
}

/* ---- servers ----------------------------------------------------------------------------- */

static void add_refusals(void *ctx, const char *name, uint64_t value)
{
	if (!strcmp(name, "stripe_fenced") || !strcmp(name, "stripe_old_lanes") || !strcmp(name, "stripe_old_terms"))
		*(uint64_t *)ctx += value;
}

/* Calls of an older epoch, connection or manager that the servers have refused */
static uint64_t count_refusals(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < SERVERS; i++) {
		struct leat_opts *o = leat_opts_create();
		char url[64];
		struct leat *m;

		assert_int_equal(leat_set(o, "connect_only", "yes"), 0);
		(void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%u", servers.ports[i]);
		assert_int_equal(leat_mount(url, o, &m), 0);
		leat_opts_destroy(o);
		assert_int_equal(leat_server_counters(m, add_refusals, &n), 0);
		leat_umount(m);
	}
	return n;
}

static void wait_for_refusals(uint64_t n)
{
	uint64_t until = clock_now_ns() + 60 * NS_PER_S;

	while (count_refusals() < n && clock_now_ns() < until)
		(void)poll(NULL, 0, 1);
	assert_true(count_refusals() >= n);
}

static void fail_all(enum fleet_fault fault)
{
	for (unsigned i = 0; i < SERVERS; i++)
		assert_int_equal(leatds_fail(&servers, i, fault), 0);
}

static void heal_all(enum fleet_fault fault)
{
	for (unsigned i = 0; i < SERVERS; i++)
		assert_int_equal(leatds_heal(&servers, i, fault), 0);
}

/* ---- the servers stop -------------------------------------------------------------------- */

/* Server @i stops before a write and a cut. It finds both when it goes on, in whatever order. */
static void freeze_server(const char *name, bool objects, unsigned i)
{
	struct leat *m = mount_volume(HASTY);
	struct leat_file *f;

	make_file(name, objects);
	f = open_connected(m, name, objects);
	assert_int_equal(leatds_fail(&servers, i, FLEET_STOP), 0);
	assert_true(leat_pwrite(f, other + 1, SERVERS * UNIT, 1) < SERVERS * UNIT);
	cut(name, 0);
	assert_int_equal(leatds_heal(&servers, i, FLEET_STOP), 0);
	settle();
	(void)leat_close(f); /* what failed was told */
	leat_umount(m);
	check_file(name, data, 0);
}

static void frozen_server(void **state)
{
	(void)state;
	freeze_server("frozen-1", true, 0);
	freeze_server("frozen-2", true, 2);
	freeze_server("none-1", false, 1);
	freeze_server("none-2", false, 3);
}

/* All that was held gets there. The servers may have closed the connections already. */
static void deliver_held(void)
{
	uint64_t until = clock_now_ns() + 60 * NS_PER_S;

	heal_all(FLEET_HOLD);
	while (leatds_queued(&servers) && clock_now_ns() < until)
		(void)poll(NULL, 0, 1);
	assert_int_equal(leatds_queued(&servers), 0);
	(void)count_refusals(); /* a round trip to each server */
}

/* Writes that were given up arrive behind a cut. */
static void late_behind_a_cut(const char *name, bool objects)
{
	struct leat *m = mount_volume(HASTY);
	struct leat_file *f;

	make_file(name, objects);
	f = open_connected(m, name, objects);
	fail_all(FLEET_HOLD);
	assert_int_equal(leat_pwrite(f, other, SERVERS * UNIT, 0), -EIO);
	cut(name, 0);
	settle();
	deliver_held();
	(void)leat_close(f);
	leat_umount(m);
	check_file(name, data, 0);
}

static void late_write_and_cut(void **state)
{
	(void)state;
	late_behind_a_cut("late", true);
	late_behind_a_cut("late-none", false);
}

/* Writes that were given up arrive behind later ones of the same client, by other connections. */
static void late_write_and_newer(void **state)
{
	uint64_t until = clock_now_ns() + 60 * NS_PER_S;
	struct leat *m = mount_volume(HASTY);
	struct leat_file *f;

	(void)state;
	make_file("newer", true);
	f = open_connected(m, "newer", true);
	fail_all(FLEET_HOLD);
	assert_int_equal(leat_pwrite(f, other, SERVERS * UNIT, 0), -EIO);
	while (leat_pwrite(f, data, BYTES, 0) != BYTES && clock_now_ns() < until)
		;
	deliver_held();
	(void)leat_close(f);
	leat_umount(m);
	check_file("newer", data, BYTES);
}

/* ---- the manager is killed --------------------------------------------------------------- */

static void connect_nfs(struct nfs_peer *p)
{
	const struct rpcrdma_addr at = { .transport = RPCRDMA_TCP, .host = "127.0.0.1", .port = servers.ports[SERVERS] };

	nfs_peer_join(p, &at, "/v");
}

static void write_until_ok(struct nfs_peer *p, const struct nfs_fh *fh)
{
	uint64_t until = clock_now_ns() + 60 * NS_PER_S;
	nfsstat3 status;

	do
		status = nfs_peer_write(p, fh, 0, data, SERVERS * UNIT, FILE_SYNC, NULL);
	while (status == NFS3ERR_IO && clock_now_ns() < until);
	assert_int_equal(status, NFS3_OK);
}

/* What it has sent to the stripe servers for an NFS client arrives behind what the next manager sends for that client. */
static void killed_manager(void **state)
{
	struct nfs_fh fh;
	struct nfs_peer p;
	uint64_t before;

	(void)state;
	make_file("killed", true);
	connect_nfs(&p);
	assert_int_equal(nfs_peer_lookup(&p, &p.root, "killed", &fh), NFS3_OK);
	write_until_ok(&p, &fh); /* it has connections */
	before = count_refusals();
	fail_all(FLEET_HOLD);
	assert_int_equal(nfs_peer_write(&p, &fh, 0, other, SERVERS * UNIT, FILE_SYNC, NULL), NFS3ERR_IO);
	assert_true(leatds_queued(&servers) > 0);
	nfs_peer_leave(&p);
	assert_int_equal(leatds_fail(&servers, SERVERS, FLEET_KILL), 0);
	assert_int_equal(leatds_heal(&servers, SERVERS, FLEET_KILL), 0);
	connect_nfs(&p);
	write_until_ok(&p, &fh);
	deliver_held();
	nfs_peer_leave(&p);
	check_file("killed", data, BYTES);
	wait_for_refusals(before + 1);
}

/* ---- the writer stops -------------------------------------------------------------------- */

/* A process that writes one unit for each byte that it is sent, and replies whether it has. */
struct writer {
	pid_t pid;
	int ask, reply;
};

static void run_writer(const char *name, int ask, int reply)
{
	struct leat_file *f;
	struct leat *m;
	char url[400];
	uint8_t unit;

	(void)snprintf(url, sizeof(url), "%s?cache=none&%s", servers.url, PATIENT);
	if (leat_mount(url, NULL, &m) || leat_open(m, name, O_RDWR, 0, &f) || leat_pread(f, mem, BYTES, 0) != BYTES ||
	    leat_pwrite(f, data, 1, 0) != 1 || leat_fsync(f) || write(reply, "", 1) != 1)
		_exit(1);
	while (read(ask, &unit, 1) == 1) {
		int64_t n = leat_pwrite(f, other, UNIT, unit * UNIT);
		int8_t result = (int8_t)(n == UNIT ? 0 : n < 0 ? -n : 1);

		if (write(reply, &result, 1) != 1)
			_exit(1);
	}
	_exit(leat_close(f) ? 2 : 0);
}

static struct writer start_writer(const char *name)
{
	int ask[2], reply[2];
	struct writer w;
	char byte;

	assert_int_equal(pipe2(ask, O_CLOEXEC), 0);
	assert_int_equal(pipe2(reply, O_CLOEXEC), 0);
	w = (struct writer){ .pid = fork(), .ask = ask[1], .reply = reply[0] };
	assert_true(w.pid >= 0);
	if (!w.pid) {
		close(ask[1]);
		run_writer(name, ask[0], reply[1]);
	}
	close(ask[0]);
	close(reply[1]);
	assert_int_equal(read(w.reply, &byte, 1), 1); /* it has handles and connections */
	return w;
}

static int8_t get_reply(const struct writer *w)
{
	int8_t result;

	assert_int_equal(read(w->reply, &result, 1), 1);
	return result;
}

/* Return: its exit status */
static int end_writer(struct writer *w)
{
	int status;

	close(w->ask);
	close(w->reply);
	kill(w->pid, SIGCONT);
	assert_int_equal(waitpid(w->pid, &status, 0), w->pid);
	return status;
}

static void freeze(const struct writer *w)
{
	int status;

	kill(w->pid, SIGSTOP);
	assert_int_equal(waitpid(w->pid, &status, WUNTRACED), w->pid);
	assert_true(WIFSTOPPED(status));
}

/* It stops with a call under way. That arrives behind the cut, while the writer is still stopped; then the writer ends. */
static void freeze_in_flight(const char *name, bool objects)
{
	uint8_t unit = 1;
	struct writer w;
	uint64_t before;

	make_file(name, objects);
	w = start_writer(name);
	before = count_refusals();
	fail_all(FLEET_HOLD);
	assert_int_equal(write(w.ask, &unit, 1), 1);
	while (leatds_queued(&servers) < UNIT)
		(void)poll(NULL, 0, 1);
	freeze(&w);
	cut(name, 0);
	settle();
	heal_all(FLEET_HOLD);
	wait_for_refusals(before + 1);
	check_file(name, data, 0);
	kill(w.pid, SIGKILL);
	(void)end_writer(&w);
	check_file(name, data, 0);
}

static void frozen_writer(void **state)
{
	(void)state;
	freeze_in_flight("writer", true);
	freeze_in_flight("writer-none", false);
}

/* It stops between two calls. The next one is refused, and then made as one of the new epoch; or it fails, if the file is gone. */
static void frozen_writer_goes_on(void **state)
{
	struct leat *m = mount_volume(PATIENT);
	uint8_t unit = 1;
	struct writer w;
	uint64_t before;

	(void)state;
	make_file("goes-on", true);
	w = start_writer("goes-on");
	before = count_refusals();
	freeze(&w);
	cut("goes-on", 0);
	assert_int_equal(write(w.ask, &unit, 1), 1);
	kill(w.pid, SIGCONT);
	assert_int_equal(get_reply(&w), 0);
	assert_true(count_refusals() > before);

	freeze(&w);
	memset(data, 0, UNIT);
	memcpy(data + UNIT, other, UNIT);
	check_file("goes-on", data, 2 * UNIT);
	assert_int_equal(leat_unlink(m, "goes-on"), 0);
	settle();
	assert_int_equal(write(w.ask, &unit, 1), 1);
	kill(w.pid, SIGCONT);
	assert_int_equal(get_reply(&w), ESTALE);
	(void)end_writer(&w);
	leat_umount(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frozen_server),
		cmocka_unit_test(late_write_and_cut),
		cmocka_unit_test(late_write_and_newer),
		cmocka_unit_test(killed_manager),
		cmocka_unit_test(frozen_writer),
		cmocka_unit_test(frozen_writer_goes_on),
	};

	if (getenv("LEAT_TEST_VARIANT") || getenv("LEAT_TEST_CHAOS")) {
		puts("the processes of this test have no variants");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
