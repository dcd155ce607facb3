/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_races.c - holders of block volumes, reloads, restarts and syncs that meet at the wrong moment
 *
 * Writes wait in a worker while held_writes.h holds them; the report of a failed sync waits while `slow_report` is set.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "block_rig.h"
#include "block_volume.h"
#include "held_writes.h"
#include "inside.h"

#define PLAIN "read=cached,write=cached"

static uint8_t data[4096], mem[4096];

/* ---- what is held ---- */

static atomic_int fail_next; /* syncs */
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

int __wrap_fdatasync(int fd)
{
	if (atomic_load(&fail_next) && atomic_fetch_sub(&fail_next, 1) > 0) {
		errno = EIO;
		return -1;
	}
	return __real_fdatasync(fd);
}

/* A failed sync makes a new verifier of random numbers. */
static atomic_bool slow_report;
static atomic_int reports;
static sem_t report;
ssize_t __real_getrandom(void *p, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags);

ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags)
{
	if (atomic_exchange(&slow_report, false)) {
		atomic_fetch_add(&reports, 1);
		while (sem_wait(&report))
			;
	}
	return __real_getrandom(p, n, flags);
}

static bool is_reporting(void *arg)
{
	(void)arg;
	return atomic_load(&reports) > 0;
}

static bool both_sync(void *arg)
{
	(void)arg;
	return server_counters(block_rig.srv, "block_syncs") == 2;
}

/* A WRITE of @c that does not end before let_write_go() */
static void hold_a_write(struct block_client *c, struct block_rig_call *call)
{
	int n = 1;

	held_writes_begin();
	block_write_begin_at(c, call, 0, data, sizeof(data), false);
	block_run_until(held_writes_are, &n);
}

static void let_write_go(struct block_rig_call *call)
{
	held_writes_end(1);
	(void)block_end(call);
}

static void start(const char *spec)
{
	assert_int_equal(block_rig_start((const char *const[]){ spec, NULL }), 0);
}

static void close_both(struct block_client *a, struct block_client *b)
{
	block_close(a);
	block_close(b);
	block_rig_stop();
}

/* ---- take-overs ---- */

/* A take-over that names the holder, and is called again, waits again. */
static void again_by_name(const char *spec)
{
	struct block_times times = block_times;
	struct block_rig_call old;
	struct block_client a, b;

	block_times.drain_ns = 50 * NS_PER_MS;
	start(spec);
	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	hold_a_write(&a, &old);
	assert_int_equal(block_attach(&b, "vol", "second", BLOCK_TAKE_OVER, "first"), BLOCK_ERR_TIMEDOUT);
	assert_int_equal(block_attach(&b, "vol", "second", BLOCK_TAKE_OVER, "first"), BLOCK_ERR_TIMEDOUT);
	let_write_go(&old);
	assert_int_equal(block_attach(&b, "vol", "second", BLOCK_TAKE_OVER, "first"), BLOCK_ERR_NOHOLDER);
	assert_int_equal(block_attach(&b, "vol", "second", 0, NULL), BLOCK_OK);
	close_both(&a, &b);
	block_times = times;
}

static void again_by_name_shared(void **state)
{
	(void)state;
	again_by_name("vol=a,share=shared," PLAIN);
}

static void again_by_name_exclusive(void **state)
{
	(void)state;
	again_by_name("vol=a," PLAIN);
}

/* An ATTACH that waits for its turn has its own time: it does not begin with the turn. */
static void own_time(void **state)
{
	struct block_rig_call old, attach = { .args.attach = { .volume = (char *)(uintptr_t)"vol",
							       .holder = (char *)(uintptr_t)"second",
							       .victim = (char *)(uintptr_t)"",
							       .app = (char *)(uintptr_t)"",
							       .flags = BLOCK_TAKE_OVER } };
	struct block_times times = block_times;
	struct block_client a, a2, b, c;

	(void)state;
	block_times.drain_ns = 3600 * NS_PER_S;
	start("vol=a," PLAIN);
	block_connect(&a, 1, 0);
	block_connect(&a2, 1, 1);
	block_connect(&b, 2, 0);
	block_connect(&c, 3, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	memcpy(a2.handle, a.handle, sizeof(a.handle));
	hold_a_write(&a, &old);
	block_begin(&b, &attach, BLOCKPROC_ATTACH, NULL, 0);
	while (block_read(&a2, 0, mem, 512) != BLOCK_ERR_FENCED)
		;
	block_times.drain_ns = 20 * NS_PER_MS;
	assert_int_equal(block_attach(&c, "vol", "third", BLOCK_TAKE_OVER, NULL), BLOCK_ERR_TIMEDOUT);
	assert_false(attach.done);
	let_write_go(&old);
	assert_int_equal(block_end(&attach), BLOCK_OK); /* it was not fenced by the third */
	memcpy(b.handle, attach.res.attach.BLOCKATTACHres_u.resok.handle, sizeof(b.handle));
	xdr_free((xdrproc_t)xdr_BLOCKATTACHres, (char *)&attach.res.attach);
	assert_int_equal(block_read(&b, 0, mem, 512), BLOCK_OK);
	block_close(&a2);
	block_close(&c);
	close_both(&a, &b);
	block_times = times;
}

/* A holder that was fenced by a take-over in vain does not come back by a restart. */
static void stays_out(void **state)
{
	struct block_times times = block_times;
	struct block_rig_call old;
	struct block_client a, b;

	(void)state;
	block_times.drain_ns = 50 * NS_PER_MS;
	start("vol=a," PLAIN);
	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	hold_a_write(&a, &old);
	assert_int_equal(block_attach(&b, "vol", "second", BLOCK_TAKE_OVER, NULL), BLOCK_ERR_TIMEDOUT);
	let_write_go(&old);
	block_rig_restart(NULL);
	block_reconnect(&a, NULL);
	assert_int_equal(block_write(&a, 0, data, sizeof(data), false), BLOCK_ERR_FENCED);
	close_both(&a, &b);
	block_times = times;
}

/* An ATTACH of an older connection arrives when the newer one has attached, detached, and another holder has come. */
static void late_attach(void **state)
{
	struct block_client a, old, b;

	(void)state;
	start("vol=a");
	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	block_reconnect(&a, &old);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	assert_int_equal(block_detach(&a), BLOCK_OK);
	assert_int_equal(block_attach(&b, "vol", "second", 0, NULL), BLOCK_OK);
	assert_int_equal(block_attach(&old, "vol", "first", BLOCK_TAKE_OVER, NULL), BLOCK_ERR_OLD_LANE);
	assert_int_equal(block_write(&b, 0, data, sizeof(data), false), BLOCK_OK);
	block_close(&old);
	close_both(&a, &b);
}

static bool is_decided(void)
{
	return server_counters(block_rig.srv, "block_old_lanes") || server_counters(block_rig.srv, "block_take_overs");
}

/* As late_attach(), but so many other lanes have attached since that nothing is known of its lane. */
static void forgotten_lane(void **state)
{
	struct block_rig_call late = { .args.attach = { .volume = (char *)(uintptr_t)"vol",
							.holder = (char *)(uintptr_t)"first",
							.victim = (char *)(uintptr_t)"",
							.app = (char *)(uintptr_t)"",
							.flags = BLOCK_TAKE_OVER } };
	struct block_client a, old, idle, many, b;
	block_status status;

	(void)state;
	if (getenv("LEAT_TEST_CHAOS")) {
		print_message("skipped: a call that the fabric delays is sent only while the client's engine runs\n");
		skip();
	}
	start("vol=a");
	block_connect(&a, 1, 0);
	block_connect(&idle, 4, 0);
	assert_int_equal(block_read(&a, 0, mem, 512), BLOCK_ERR_BADHANDLE); /* they are connected now */
	assert_int_equal(block_read(&idle, 0, mem, 512), BLOCK_ERR_BADHANDLE);
	block_reconnect(&a, &old);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	assert_int_equal(block_detach(&a), BLOCK_OK);
	block_connect(&many, 100, 0);
	for (unsigned i = 0; i < BLOCK_SEEN_MAX; i++, many.lane.instance++)
		assert_int_equal(block_attach(&many, "vol", "many", 0, NULL), BLOCK_OK);
	many.lane.instance--;
	assert_int_equal(block_detach(&many), BLOCK_OK);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&b, "vol", "second", 0, NULL), BLOCK_OK);
	block_begin(&old, &late, BLOCKPROC_ATTACH, NULL, 0);
	while (!is_decided()) /* the engine does not run: its client would connect again */
		sched_yield();
	block_close(&old);
	assert_int_equal(block_write(&b, 0, data, sizeof(data), false), BLOCK_OK);
	/* a client that has not attached yet is served, by a new connection */
	do
		status = block_attach(&idle, "vol", "idle", BLOCK_TAKE_OVER, NULL);
	while (status == BLOCK_ERR_LATER);
	assert_int_equal(status, BLOCK_OK);
	assert_int_equal(block_read(&idle, 0, mem, 512), BLOCK_OK);
	block_close(&many);
	block_close(&idle);
	close_both(&a, &b);
}

/* Many lanes of one client are no matter to another one: its first ATTACH by an old connection succeeds at once. */
static void lanes_of_another(void **state)
{
	struct block_client many, other;

	(void)state;
	if (!block_rig_is_local())
		skip();
	block_rig_second_url = "tcp://127.0.0.1:0";
	start("vol=a,clients=0.0.0.0/0,insecure");
	block_connect(&other, 1, 0);
	assert_int_equal(block_read(&other, 0, mem, 512), BLOCK_ERR_BADHANDLE); /* it is connected now */
	block_rig_use(1);
	block_connect(&many, 100, 0);
	for (unsigned i = 0; i < BLOCK_SEEN_MAX + 2; i++, many.lane.instance++)
		assert_int_equal(block_attach(&many, "vol", "many", 0, NULL), BLOCK_OK);
	many.lane.instance--;
	assert_int_equal(block_detach(&many), BLOCK_OK);
	assert_int_equal(block_attach(&other, "vol", "other", 0, NULL), BLOCK_OK);
	assert_int_equal(block_read(&other, 0, mem, 512), BLOCK_OK);
	block_close(&many);
	block_close(&other);
	block_rig_stop();
	block_rig_second_url = NULL;
}

/* The reply to a DETACH is lost, and the call sent again. */
static void detach_again(void **state)
{
	struct block_client a, old;

	(void)state;
	start("vol=a");
	block_connect(&a, 1, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	assert_int_equal(block_detach(&a), BLOCK_OK);
	block_reconnect(&a, &old);
	assert_int_equal(block_detach(&a), BLOCK_OK);
	assert_int_equal(block_read(&a, 0, mem, 512), BLOCK_ERR_FENCED);
	close_both(&a, &old);
}

/* Nor does it fill the log. */
static void attach_often(void **state)
{
	int err = dup(STDERR_FILENO), fd, c;
	FILE *log = tmpfile();
	struct block_client a;
	unsigned lines = 0;

	(void)state;
	assert_non_null(log);
	fd = fileno(log);
	start("vol=a");
	block_connect(&a, 1, 0);
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	log_set_level(LOG_LEVEL_INFO);
	for (int i = 0; i < 1200; i++)
		assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	log_set_level(LOG_LEVEL_ERR);
	assert_int_equal(dup2(err, STDERR_FILENO), STDERR_FILENO);
	close(err);
	rewind(log);
	while ((c = getc(log)) != EOF)
		lines += c == '\n';
	fclose(log);
	assert_in_range(lines, 1, 600);
	assert_int_equal(block_read(&a, 0, mem, 512), BLOCK_OK);
	block_close(&a);
	block_rig_stop();
}

/* An idle holder whose connection is up says so by a READ of nothing; then it is not silent. */
static void idle_holder(void **state)
{
	struct block_times times = block_times;
	struct block_client a, b;

	(void)state;
	start("vol=a");
	block_connect(&a, 1, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	block_rig_restart(NULL);
	block_reconnect(&a, NULL);
	assert_int_equal(block_read(&a, 0, mem, 0), BLOCK_OK);
	block_times.silence_ns = 0;
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&b, "vol", "second", 0, NULL), BLOCK_ERR_BUSY);
	close_both(&a, &b);
	block_times = times;
}

static void read_only(void **state)
{
	struct block_client a;

	(void)state;
	start("vol=a,ro");
	block_connect(&a, 1, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_ERR_ROFS);
	assert_int_equal(block_attach(&a, "vol", "first", BLOCK_RDONLY, NULL), BLOCK_OK);
	block_close(&a);
	block_rig_stop();
}

/* ---- a holder that is frozen ---- */

/* The holder: writes until it may not. */
static void hold_until_fenced(const int ready[2])
{
	struct block_client c;
	block_status status;
	char byte;

	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		_exit(1);
	block_rig_dial();
	block_connect(&c, 1, 0);
	if (block_attach(&c, "vol", "first", 0, NULL) != BLOCK_OK)
		_exit(1);
	memset(mem, 1, 4096);
	do
		status = block_write(&c, 0, mem, 4096, false);
	while (status == BLOCK_OK);
	_exit(status == BLOCK_ERR_FENCED ? 0 : 1);
}

static void frozen_holder(void **state)
{
	struct block_client b;
	uint8_t byte = 0;
	int ready[2], status, fd;
	pid_t pid;

	(void)state;
	if (!block_rig_is_local())
		skip();
	block_rig_make_dir();
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid)
		hold_until_fenced(ready);
	start("vol=a," PLAIN);
	assert_int_equal(write(ready[1], "", 1), 1);
	fd = block_rig_open("a");
	while (byte != 1)
		assert_int_equal(pread(fd, &byte, 1, 0), 1);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&b, "vol", "second", BLOCK_TAKE_OVER, NULL), BLOCK_OK);
	memset(mem, 2, 4096);
	assert_int_equal(block_write(&b, 0, mem, 4096, false), BLOCK_OK);
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(pread(fd, &byte, 1, 0), 1);
	assert_int_equal(byte, 2);
	close(fd);
	close(ready[0]);
	close(ready[1]);
	block_close(&b);
	block_rig_stop();
}

/* ---- reloads ---- */

/* A volume that was removed is free, although its former holder is still connected. */
static void back_again(void **state)
{
	static const char *const both[] = { "vol=a", "more=b", NULL }, *const one[] = { "more=b", NULL };
	struct block_client a;
	char why[256] = "";

	(void)state;
	assert_int_equal(block_rig_start(both), 0);
	block_connect(&a, 1, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	assert_int_equal(block_detach(&a), BLOCK_OK);
	assert_int_equal(block_rig_reload(one, why, sizeof(why)), 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_ERR_NOENT);
	assert_int_equal(block_rig_reload(both, why, sizeof(why)), 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	block_close(&a);
	block_rig_stop();
}

/* A reload that gives an idle volume another name, or its name to another file, says what to do. */
static void other_names(void **state)
{
	struct block_client a;
	char why[256] = "";

	(void)state;
	start("vol=a");
	assert_int_equal(block_rig_reload((const char *const[]){ "other=a", NULL }, why, sizeof(why)), -EBUSY);
	assert_non_null(strstr(why, "its file is that of vol until now"));
	assert_int_equal(block_rig_reload((const char *const[]){ "vol=b", NULL }, why, sizeof(why)), -EBUSY);
	assert_non_null(strstr(why, "it was another file until now"));
	/* nothing has changed */
	block_connect(&a, 1, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	block_close(&a);
	block_rig_stop();
}

/* A take-over waits for an operation of the old holder, when a reload would remove the volume. */
static void reload_meets_take_over(void **state)
{
	struct block_rig_call old, attach = { .args.attach = { .volume = (char *)(uintptr_t)"vol",
							       .holder = (char *)(uintptr_t)"second",
							       .victim = (char *)(uintptr_t)"",
							       .app = (char *)(uintptr_t)"",
							       .flags = BLOCK_TAKE_OVER } };
	struct block_client a, a2, b;
	char why[256] = "";

	(void)state;
	assert_int_equal(block_rig_start((const char *const[]){ "vol=a," PLAIN, "more=b", NULL }), 0);
	block_connect(&a, 1, 0);
	block_connect(&a2, 1, 1);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	memcpy(a2.handle, a.handle, sizeof(a.handle));
	hold_a_write(&a, &old);
	block_begin(&b, &attach, BLOCKPROC_ATTACH, NULL, 0);
	while (block_read(&a2, 0, mem, 512) != BLOCK_ERR_FENCED)
		;
	assert_int_equal(block_rig_reload((const char *const[]){ "more=b", NULL }, why, sizeof(why)), -EBUSY);
	let_write_go(&old);
	assert_int_equal(block_end(&attach), BLOCK_OK);
	memcpy(b.handle, attach.res.attach.BLOCKATTACHres_u.resok.handle, sizeof(b.handle));
	xdr_free((xdrproc_t)xdr_BLOCKATTACHres, (char *)&attach.res.attach);
	assert_int_equal(block_read(&b, 0, mem, 512), BLOCK_OK);
	block_close(&a2);
	close_both(&a, &b);
}

/* ---- syncs ---- */

/* A sync has failed on one reactor, and the verifier is yet to change, when another reactor syncs: that must not succeed with
 * the old verifier. */
static void sync_beside_failed_sync(void **state)
{
	struct block_rig_call failed = { .args.at.at = { .handle = "" } }, other = { .args.at.at = { .handle = "" } };
	struct block_client a, b, b2;
	block_status status;
	bool early;

	(void)state;
	if (getenv("LEAT_TEST_CHAOS")) {
		print_message("a reactor stands still, and a connection that comes again may be its own: skipped\n");
		skip();
	}
	start("vol=a,share=shared");
	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	assert_int_equal(block_attach(&b, "vol", "second", 0, NULL), BLOCK_OK);
	block_connect(&b2, 2, 1);
	memcpy(b2.handle, b.handle, sizeof(b.handle));
	assert_int_equal(block_write(&b, 0, data, sizeof(data), false), BLOCK_OK);
	atomic_store(&reports, 0);
	atomic_store(&slow_report, true);
	atomic_store(&fail_next, 1);
	block_begin(&a, &failed, BLOCKPROC_FLUSH, NULL, 0);
	block_run_until(is_reporting, NULL);
	block_begin(&b, &other, BLOCKPROC_FLUSH, NULL, 0);
	block_run_until(both_sync, NULL);
	for (int i = 0; i < 50; i++) /* a FLUSH that does not wait is done before the 50th READ */
		assert_int_equal(block_read(&b2, 0, mem, 512), BLOCK_OK);
	early = other.done;
	sem_post(&report);
	assert_int_equal(block_end(&failed), BLOCK_ERR_IO);
	status = block_end(&other);
	assert_false(early);
	assert_true(status == BLOCK_ERR_IO || other.res.change.BLOCKCHANGEres_u.verf != b.verf);
	block_close(&b2);
	close_both(&a, &b);
}

static void shrunk(void **state)
{
	struct block_client a;
	int fd;

	(void)state;
	start("vol=a," PLAIN);
	block_connect(&a, 1, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	fd = block_rig_open("a");
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(block_write(&a, 1 << 20, data, sizeof(data), false), BLOCK_ERR_NOSPC);
	assert_int_equal(lseek(fd, 0, SEEK_END), 4096);
	close(fd);
	block_close(&a);
	block_rig_stop();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(again_by_name_shared), cmocka_unit_test(again_by_name_exclusive),
		cmocka_unit_test(own_time), cmocka_unit_test(stays_out), cmocka_unit_test(late_attach), cmocka_unit_test(forgotten_lane), cmocka_unit_test(lanes_of_another),
		cmocka_unit_test(detach_again),
		cmocka_unit_test(attach_often), cmocka_unit_test(idle_holder), cmocka_unit_test(read_only),
		cmocka_unit_test(frozen_holder), cmocka_unit_test(back_again), cmocka_unit_test(other_names), cmocka_unit_test(reload_meets_take_over),
		cmocka_unit_test(sync_beside_failed_sync), cmocka_unit_test(shrunk),
	};

	sem_init(&report, 0, 0);
	return cmocka_run_group_tests_name("block races", tests, NULL, NULL);
}
