/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_leases.c - the size of a file whose writer ends without its last report
 *
 * Such a writer is a mount whose reports are not sent any more.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "conf.h"
#include "leat.h"
#include "leat_admin.h"
#include "leat_volume.h"
#include "volume_pending.h"
#include "volume_rig.h"
#include "volume_watch.h"
#include "volumes.h"

LOG_DEFINE("test_volume_leases");

#define UNIT 65536u
#define BYTES (5 * UNIT + 1000)
#define SHORT_NS (50 * NS_PER_MS)
#define LONG_NS (60 * NS_PER_S)

static struct leat *m;
static uint8_t data[BYTES], mem[BYTES];

/* ---- helpers -------------------------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	volume_times.lease_ns = SHORT_NS;
	atomic_store(&volume_watch.is_silent, false);
	atomic_store(&volume_watch.stats, 0);
	m = volume_rig_mount(NULL);
	return 0;
}

static int setup_long(void **state)
{
	int err = setup(state);

	volume_times.lease_ns = LONG_NS;
	return err;
}

static int teardown(void **state)
{
	(void)state;
	leat_umount(m);
	return 0;
}

static struct leat_file *open_file(struct leat *from, const char *name, int flags)
{
	struct leat_file *f;

	if (leat_open(from, name, flags, 0644, &f))
		fail_msg("%s: %s", name, leat_error(from));
	return f;
}

static void write_at(struct leat_file *f, size_t bytes, uint64_t off)
{
	assert_int_equal(leat_pwrite(f, data, bytes, off), bytes);
}

/* A mount that has written, and ends without a report. */
static void write_and_go(const char *name, size_t bytes, uint64_t off)
{
	struct leat *writer = volume_rig_mount(NULL);
	struct leat_file *f = open_file(writer, name, O_WRONLY | O_CREAT);

	atomic_store(&volume_watch.is_silent, true);
	write_at(f, bytes, off);
	leat_umount(writer);
	atomic_store(&volume_watch.is_silent, false);
}

static void write_file(const char *name, size_t bytes)
{
	struct leat_file *f = open_file(m, name, O_WRONLY | O_CREAT);

	write_at(f, bytes, 0);
	assert_int_equal(leat_close(f), 0);
}

static struct stat stat_of(const char *name)
{
	struct stat st;
	char path[32];

	(void)snprintf(path, sizeof(path), "m/files/%s", name);
	assert_int_equal(stat(tmp_dir_path(&volume_rig.dir, path), &st), 0);
	return st;
}

/* What is asynchronous ends some time. */
#define WAIT_FOR(condition)                                                                            \
	do {                                                                                           \
		uint64_t until = clock_now_ns() + 20 * NS_PER_S;                                       \
                                                                                                       \
		while (!(condition) && clock_now_ns() < until)                                         \
			(void)poll(NULL, 0, 1);                                                        \
		assert_true(condition);                                                                \
	} while (0)

static void wait_for_size(const char *name, off_t bytes)
{
	WAIT_FOR(stat_of(name).st_size == bytes);
}

static void wait_for_markers(void)
{
	WAIT_FOR(!volume_rig_entries("m/writers"));
}

/* The clock by which the kernel sets times of files has advanced. */
static void wait_for_clock(void)
{
	struct timespec from, now;

	clock_gettime(CLOCK_REALTIME_COARSE, &from);
	do
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	while (now.tv_sec == from.tv_sec && now.tv_nsec == from.tv_nsec);
}

static void check_data(const char *name, size_t bytes)
{
	struct leat *other = volume_rig_mount(NULL);
	struct leat_file *f = open_file(other, name, O_RDONLY);

	memset(mem, 0, sizeof(mem));
	assert_int_equal(leat_pread(f, mem, BYTES, 0), bytes);
	assert_memory_equal(mem, data, bytes);
	assert_int_equal(leat_close(f), 0);
	leat_umount(other);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void writer_vanishes(void **state)
{
	(void)state;
	write_and_go("af", BYTES, 0);
	wait_for_size("af", BYTES);
	wait_for_markers();
	check_data("af", BYTES);
	write_and_go("ag", 1, 11 * UNIT); /* the other stripes have nothing */
	wait_for_size("ag", 11 * UNIT + 1);
	assert_int_equal(leat_truncate(m, "af", 20 * UNIT), 0);
	write_and_go("af", 1, 7); /* a size is not lowered */
	wait_for_markers();
	assert_int_equal(stat_of("af").st_size, 20 * UNIT);
}

/* What servers in reach have counts at once, and the rest when the other one is back. */
static void server_is_away(void **state)
{
	(void)state;
	volume_times.lease_ns = LONG_NS;
	write_and_go("bf", 4 * UNIT, 0);
	volume_rig_end_manager();
	volume_rig_end_server(3); /* files begin at different servers: one of all has no part of f's end */
	volume_times.lease_ns = SHORT_NS;
	volume_rig_start_manager();
	WAIT_FOR(stat_of("bf").st_size >= 3 * (off_t)UNIT);
	assert_int_equal(volume_rig_entries("m/writers"), 1);
	volume_rig_start_server(3);
	wait_for_size("bf", 4 * UNIT);
	wait_for_markers();
}

static void manager_restarts(void **state)
{
	(void)state;
	write_and_go("cf", BYTES, 0);
	assert_int_equal(volume_rig_entries("m/writers"), 1);
	assert_int_equal(stat_of("cf").st_size, 0);
	volume_rig_end_manager();
	volume_times.lease_ns = SHORT_NS;
	volume_rig_start_manager();
	wait_for_size("cf", BYTES);
	wait_for_markers();
}

static void use_another_state(struct conf *conf)
{
	free(conf->state_dir);
	conf->state_dir = strdup(tmp_dir_path(&volume_rig.dir, "another"));
}

/* Leases outlive the state directory, with its keys for file handles. */
static void another_state(void **state)
{
	(void)state;
	if (geteuid())
		skip(); /* handles of an ordinary user are in the state directory */
	tmp_dir_mkdir(&volume_rig.dir, "another");
	write_and_go("sf", BYTES, 0);
	volume_rig_end_manager();
	volume_times.lease_ns = SHORT_NS;
	volume_rig_tune = use_another_state;
	volume_rig_start_manager();
	wait_for_size("sf", BYTES);
	wait_for_markers();
	volume_rig_end_manager();
	volume_rig_tune = NULL;
	volume_rig_start_manager();
}

/* The only marker says something that this leatd does not understand. */
static void make_marker_odd(void)
{
	char path[300], text[200] = "01";
	const struct dirent *e;
	DIR *d = opendir(tmp_dir_path(&volume_rig.dir, "m/writers"));

	assert_non_null(d);
	do
		e = readdir(d);
	while (e && *e->d_name == '.');
	assert_non_null(e);
	assert_true(readlinkat(dirfd(d), e->d_name, text, sizeof(text) - 1) > 2);
	text[0] = '0'; /* as old markers, and those of handles of another kind */
	(void)snprintf(path, sizeof(path), "%s", e->d_name);
	assert_int_equal(unlinkat(dirfd(d), path, 0), 0);
	assert_int_equal(symlinkat(text, dirfd(d), path), 0);
	assert_int_equal(closedir(d), 0);
}

/* A file whose marker this leatd does not understand stays due, until it is written again. */
static void odd_marker(void **state)
{
	(void)state;
	write_and_go("of", BYTES, 0);
	volume_rig_end_manager();
	make_marker_odd();
	volume_times.lease_ns = SHORT_NS;
	volume_rig_start_manager();
	for (unsigned i = 0; i < 2; i++) { /* by the end of the second one the first look at all that is due is complete */
		write_and_go(i ? "oh" : "og", BYTES, 0);
		wait_for_size(i ? "oh" : "og", BYTES);
	}
	WAIT_FOR(volume_rig_entries("m/writers") <= 1);
	assert_int_equal(volume_rig_entries("m/writers"), 1);
	assert_int_equal(stat_of("of").st_size, 0);
	write_file("of", 10);
	wait_for_size("of", BYTES);
	wait_for_markers();
}

/* Another one that writes and reports does not hide it. */
static void one_of_two_vanishes(void **state)
{
	struct leat_file *f = open_file(m, "df", O_WRONLY | O_CREAT);

	(void)state;
	write_at(f, 10, 0);
	assert_int_equal(leat_fsync(f), 0);
	write_and_go("df", BYTES, 0);
	while (stat_of("df").st_size != BYTES) {
		write_at(f, 10, 0);
		assert_int_equal(leat_fsync(f), 0);
	}
	assert_int_equal(leat_close(f), 0);
	wait_for_markers();
}

/* The last close costs no question to the servers, whether it has something to report or not. */
static void last_report(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct leat_file *f, *g;

	(void)state;
	write_file("ef", BYTES);
	assert_int_equal(volume_rig_entries("m/writers"), 0);
	f = open_file(m, "ef", O_WRONLY);
	g = open_file(m, "ef", O_WRONLY);
	write_at(f, 100, 0);
	assert_int_equal(volume_rig_entries("m/writers"), 1);
	assert_int_equal(leat_fsync(f), 0);
	assert_int_equal(volume_rig_entries("m/writers"), 1);
	write_at(g, 100, 0);
	assert_int_equal(leat_close(f), 0); /* g is still open */
	assert_int_equal(volume_rig_entries("m/writers"), 1);
	write_at(g, 100, 0);
	assert_int_equal(leat_fsync(g), 0);
	assert_int_equal(leat_close(g), 0);
	wait_for_markers();
	f = open_file(m, "ef", O_WRONLY);
	write_at(f, 100, 0);
	assert_int_equal(leat_futimens(f, old), 0);
	assert_int_equal(leat_close(f), 0); /* it has written nothing since */
	wait_for_markers();
	assert_int_equal(stat_of("ef").st_mtim.tv_sec, 1000);
	f = open_file(m, "ef", O_RDONLY); /* readers have none */
	assert_int_equal(leat_pread(f, mem, 10, 0), 10);
	assert_int_equal(volume_rig_entries("m/writers"), 0);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(atomic_load(&volume_watch.stats), 0);
}

/* The lease of a file that is not written for long lapses. The next write gets another one first. */
static void idle_writer(void **state)
{
	struct leat *writer = volume_rig_mount(NULL);
	struct leat_file *f = open_file(writer, "hf", O_WRONLY | O_CREAT);

	(void)state;
	write_at(f, 10, 0);
	assert_int_equal(leat_fsync(f), 0);
	wait_for_markers();
	assert_true(atomic_load(&volume_watch.stats) >= 4);
	atomic_store(&volume_watch.is_silent, true);
	write_at(f, BYTES, 0);
	leat_umount(writer);
	atomic_store(&volume_watch.is_silent, false);
	wait_for_size("hf", BYTES);
	wait_for_markers();
}

/* A client that cannot report goes on writing, and reports when the manager is back. */
static void writes_go_on(void **state)
{
	struct leat *hasty = volume_rig_mount("retry=soft&timeo=5s");
	struct leat_file *f = open_file(hasty, "if", O_WRONLY | O_CREAT);

	(void)state;
	write_at(f, 10, 0);
	volume_rig_end_manager();
	for (unsigned i = 0; i < 3; i++) {
		uint64_t until = clock_now_ns() + SHORT_NS;

		while (clock_now_ns() < until) /* writes do not wait for a manager */
			write_at(f, BYTES, 0);
	}
	volume_rig_start_manager();
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(stat_of("if").st_size, BYTES);
	leat_umount(hasty);
	wait_for_markers();
}

/* Cuts, and files that are gone: the lease ends some time, and changes nothing. */
static void cut_or_removed(void **state)
{
	struct leat *writer = volume_rig_mount(NULL);
	struct leat_file *f = open_file(writer, "jf", O_WRONLY | O_CREAT), *g;

	(void)state;
	write_file("jg", BYTES);
	g = open_file(writer, "jg", O_WRONLY);
	atomic_store(&volume_watch.is_silent, true);
	write_at(f, BYTES, 0);
	write_at(g, BYTES, 0);
	assert_int_equal(leat_truncate(m, "jg", 10), 0);
	assert_int_equal(leat_unlink(m, "jf"), 0);
	leat_umount(writer);
	atomic_store(&volume_watch.is_silent, false);
	wait_for_markers();
	assert_int_equal(stat_of("jg").st_size, 10);
}

/* What a client has written and not reported is cut by another one, and does not come back. */
/* The same while an earlier cut is pending, since a server is away: of those in reach nothing is left. */
static void cut_between_cuts(void **state)
{
	static const char byte = 'x';
	struct leat *writer = volume_rig_mount(NULL), *other;
	struct leat_file *f = open_file(writer, "lc", O_RDWR | O_CREAT), *g;
	struct leat_volume_layout *l;
	uint32_t stripe;

	(void)state;
	write_at(f, BYTES, 0);
	assert_int_equal(leat_fsync(f), 0);
	assert_int_equal(leat_volume_layout(m, "lc", &l), 0);
	stripe = l->stripes[0]->server == 1 ? 1 : 0; /* not that of the server which goes */
	leat_volume_layout_free(l);
	volume_rig_end_server(0);
	assert_int_equal(leat_truncate(m, "lc", 10), 0);
	assert_int_equal(volume_rig_entries("m/pending"), 1);
	atomic_store(&volume_watch.is_silent, true);
	while (leat_pwrite(f, &byte, 1, stripe * UNIT + 4 * UNIT + 5) != 1) /* the file may count as lost for a while */
		(void)poll(NULL, 0, 1);
	assert_int_equal(leat_truncate(m, "lc", UNIT), 0); /* the manager knew of 10 bytes */
	atomic_store(&volume_watch.is_silent, false);
	volume_rig_start_server(0);
	volume_rig_settle();
	(void)leat_close(f);
	leat_umount(writer);
	assert_int_equal(stat_of("lc").st_size, UNIT);
	assert_int_equal(leat_truncate(m, "lc", BYTES), 0);
	other = volume_rig_mount(NULL);
	g = open_file(other, "lc", O_RDONLY);
	assert_int_equal(leat_pread(g, mem, BYTES, 0), BYTES);
	for (size_t i = 10; i < BYTES; i++)
		assert_int_equal(mem[i], 0);
	assert_int_equal(leat_close(g), 0);
	leat_umount(other);
}

static void cut_above_the_size(void **state)
{
	struct leat *writer = volume_rig_mount(NULL), *other;
	struct leat_file *f = open_file(writer, "lf", O_WRONLY | O_CREAT), *g;

	(void)state;
	atomic_store(&volume_watch.is_silent, true);
	write_at(f, BYTES, 0);
	assert_int_equal(leat_truncate(m, "lf", 2 * UNIT), 0); /* the manager knew of no byte */
	assert_int_equal(stat_of("lf").st_size, 2 * UNIT);
	assert_int_equal(leat_truncate(m, "lf", BYTES), 0);
	leat_umount(writer);
	other = volume_rig_mount(NULL);
	g = open_file(other, "lf", O_RDONLY);
	assert_int_equal(leat_pread(g, mem, BYTES, 0), BYTES);
	assert_memory_equal(mem, data, 2 * UNIT);
	for (size_t i = 2 * UNIT; i < BYTES; i++)
		assert_int_equal(mem[i], 0);
	assert_int_equal(leat_close(g), 0);
	leat_umount(other);
	atomic_store(&volume_watch.is_silent, false);
}

static bool is_later(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* The time of a write that was not reported counts, unless a client has set one after it. */
static void times(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct leat *writer = volume_rig_mount(NULL);
	struct leat_file *f;
	struct stat before, st;

	(void)state;
	write_file("kf", BYTES);
	assert_int_equal(leat_utimens(m, "kf", old), 0);
	before = stat_of("kf");
	wait_for_clock();
	write_and_go("kf", 10, 0);
	WAIT_FOR(is_later(stat_of("kf").st_mtim, before.st_ctim));
	wait_for_markers();
	f = open_file(writer, "kf", O_WRONLY);
	write_at(f, 10, 0);
	assert_int_equal(leat_futimens(f, old), 0);
	wait_for_markers();
	st = stat_of("kf");
	assert_int_equal(st.st_mtim.tv_sec, 1000);
	assert_int_equal(st.st_size, BYTES);
	assert_int_equal(leat_close(f), 0);
	leat_umount(writer);
}

struct wanted {
	const char *name;
	uint64_t value;
	bool found;
};

static void see_counter(void *ctx, const char *name, uint64_t value)
{
	struct wanted *w = ctx;

	if (strcmp(name, w->name) != 0)
		return;
	w->value = value;
	w->found = true;
}

static uint64_t counter(const char *name)
{
	struct wanted w = { .name = name };

	assert_int_equal(leat_server_counters(m, see_counter, &w), 0);
	assert_true(w.found);
	return w.value;
}

/* What leat ctl stats says */
static void counters(void **state)
{
	static const char *const names[] = { "volume_leases", "volume_leases_given", "volume_leases_lapsed", "volume_ranges",
					     "volume_length_queries" };
	uint64_t was[ARRAY_SIZE(names)], is[ARRAY_SIZE(names)];
	struct leat_file *f;

	(void)state;
	wait_for_markers();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		was[i] = counter(names[i]);
	assert_int_equal(was[0], 0);
	write_and_go("mf", BYTES, 0);
	wait_for_size("mf", BYTES);
	wait_for_markers();
	volume_times.lease_ns = LONG_NS;
	f = open_file(m, "mf", O_WRONLY | O_APPEND);
	assert_int_equal(leat_write(f, data, 10), 10);
	write_at(f, 10, 0);
	assert_int_equal(leat_fsync(f), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		is[i] = counter(names[i]);
	assert_int_equal(is[0], 1);
	assert_int_equal(is[1], was[1] + 2);
	assert_int_equal(is[2], was[2] + 1);
	assert_int_equal(is[3], was[3] + 1);
	assert_true(is[4] > was[4]);
	assert_int_equal(leat_close(f), 0);
	wait_for_markers(); /* nothing was left to report: close does not wait for the end of the lease */
	assert_int_equal(counter("volume_leases"), 0);
	assert_int_equal(counter("volume_leases_refused"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define LONG(name) cmocka_unit_test_setup_teardown(name, setup_long, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(writer_vanishes), TEST(server_is_away), LONG(manager_restarts), LONG(another_state), LONG(odd_marker), TEST(one_of_two_vanishes),
		LONG(last_report),     TEST(idle_writer),    TEST(writes_go_on),     TEST(cut_or_removed),
		TEST(times),	       TEST(counters),
		LONG(cut_between_cuts),
		LONG(cut_above_the_size), /* last, since its lease does not lapse */
	};

	volume_times = (struct volume_times){ .server = "300ms", .probe_ns = 20 * NS_PER_MS, .retry_ns = 10 * NS_PER_MS };
	(void)alarm(120); /* a client that waits for a manager may wait for ever */
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (uint8_t)(1 + i % 251);
	return cmocka_run_group_tests(tests, volume_rig_setup, volume_rig_teardown);
}
