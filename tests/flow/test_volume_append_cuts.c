/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_append_cuts.c - clients append to files of a striped volume which others cut
 *
 * The range of an append is reserved before it is written, and a cut may come between.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "leat.h"
#include "leat_volume.h"
#include "stripes.h"
#include "volume_rig.h"

LOG_DEFINE("test_volume_append_cuts");

#define UNIT 65536u
#define NAME "log"
#define LEFT 5u /* bytes that a cut leaves */

static struct leat *m, *other;
static struct leat_file *f, *g; /* of @m; of @other */
static uint8_t mem[192 * UNIT], data[96 * UNIT];
static const char theirs[] = "theirs, which is behind the cut";

/* ---- what happens between a range and its writes -------------------------------------------- */

static void (*behind_range)(void); /* runs when a range is there, before its writes are sent */
static void (*before_write)(void); /* once, when the write number @which of a client is about to be sent */
static atomic_uint which;

struct lt_range;
int __real_lt_io_write_range(struct leat_file *file, const void *buf, size_t len, const struct lt_range *r, struct leat_cb cb);
int __wrap_lt_io_write_range(struct leat_file *file, const void *buf, size_t len, const struct lt_range *r, struct leat_cb cb);
bool_t __real_xdr_STRIPEWRITEargs(XDR *xdrs, STRIPEWRITEargs *a);
bool_t __wrap_xdr_STRIPEWRITEargs(XDR *xdrs, STRIPEWRITEargs *a);

int __wrap_lt_io_write_range(struct leat_file *file, const void *buf, size_t len, const struct lt_range *r, struct leat_cb cb)
{
	if (file == f && behind_range)
		behind_range();
	return __real_lt_io_write_range(file, buf, len, r, cb);
}

bool_t __wrap_xdr_STRIPEWRITEargs(XDR *xdrs, STRIPEWRITEargs *a)
{
	if (xdrs->x_op == XDR_ENCODE && atomic_load(&which) && atomic_fetch_sub(&which, 1) == 1)
		before_write();
	return __real_xdr_STRIPEWRITEargs(xdrs, a);
}

/* ---- helpers -------------------------------------------------------------------------------- */

static void append(struct leat_file *file, const void *bytes, size_t n)
{
	ssize_t rc = leat_write(file, bytes, n);

	if (rc != (ssize_t)n)
		fail_msg("%zd of %zu", rc, n);
}

static uint64_t size_of_file(void)
{
	struct stat st;

	assert_int_equal(stat(tmp_dir_path(&volume_rig.dir, "m/files/" NAME), &st), 0);
	return (uint64_t)st.st_size;
}

/* Two clients have the file, which is longer than a cut leaves it. */
static void begin(const char *options)
{
	m = volume_rig_mount(options);
	other = volume_rig_mount(NULL);
	f = volume_rig_open(m, NAME, O_RDWR | O_CREAT | O_TRUNC | O_APPEND);
	g = volume_rig_open(other, NAME, O_RDWR | O_APPEND);
	append(f, data, LEFT + 10);
}

static void end(void)
{
	behind_range = NULL;
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_close(g), 0);
	leat_umount(m);
	leat_umount(other);
}

/* ---- one cut -------------------------------------------------------------------------------- */

static unsigned cuts;

static void cut_and_append(void)
{
	cuts++;
	assert_int_equal(leat_ftruncate(g, LEFT), 0);
	append(g, theirs, sizeof(theirs));
}

static void cut_and_append_once(void)
{
	behind_range = NULL;
	cut_and_append();
}

/* The client that appends learns of the cut before it writes. */
static void cut_and_read(void)
{
	cut_and_append_once();
	assert_int_equal(leat_pread(f, mem, 1, 0), 1);
}

/* The last record has @n bytes, behind what the other client has appended since the last cut. */
static void check_file(size_t n)
{
	size_t bytes = LEFT + sizeof(theirs) + n;

	assert_int_equal(size_of_file(), bytes);
	assert_int_equal(leat_pread(f, mem, sizeof(mem), 0), bytes);
	assert_memory_equal(mem, data, LEFT);
	assert_memory_equal(mem + LEFT, theirs, sizeof(theirs));
	assert_memory_equal(mem + LEFT + sizeof(theirs), data, n);
	assert_int_equal(leat_lseek(f, 0, SEEK_CUR), bytes);
}

static void before_all_writes(void **state)
{
	static void (*const hooks[])(void) = { cut_and_append_once, cut_and_read };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
		begin(NULL);
		behind_range = hooks[i];
		append(f, data, 3 * UNIT);
		check_file(3 * UNIT);
		end();
	}
}

/* Some writes were accepted, the others are refused. */
static void between_writes(void **state)
{
	(void)state;
	if (getenv("LEAT_TEST_CHAOS"))
		skip(); /* the engine of a client stands still meanwhile */
	begin("budget=1M"); /* one write at once */
	cuts = 0;
	before_write = cut_and_append;
	atomic_store(&which, 3);
	append(f, data, sizeof(data));
	assert_int_equal(cuts, 1);
	check_file(sizeof(data));
	end();
}

static void grow_and_cut(void)
{
	behind_range = NULL;
	assert_int_equal(leat_ftruncate(g, 20 * UNIT), 0);
	assert_int_equal(leat_ftruncate(g, 10 * UNIT), 0);
}

/* The range is in front of the cut. It stays, without a record. */
static void beyond_the_range(void **state)
{
	static uint8_t zeroes[10 * UNIT];

	(void)state;
	begin(NULL);
	behind_range = grow_and_cut;
	append(f, data, 3 * UNIT);
	assert_int_equal(leat_pread(f, mem, sizeof(mem), 0), 13 * UNIT);
	assert_memory_equal(mem, data, LEFT + 10);
	assert_memory_equal(mem + LEFT + 10, zeroes, 10 * UNIT - LEFT - 10);
	assert_memory_equal(mem + 10 * UNIT, data, 3 * UNIT);
	end();
}

/* Not for ever. */
static void each_time(void **state)
{
	(void)state;
	begin(NULL);
	cuts = 0;
	behind_range = cut_and_append;
	assert_int_equal(leat_write(f, data, UNIT), -ESTALE);
	assert_in_range(cuts, 3, 100);
	assert_non_null(strstr(leat_error(m), "cut"));
	behind_range = NULL;
	append(f, data, UNIT);
	check_file(UNIT);
	end();
}

/* ---- many of them --------------------------------------------------------------------------- */

#define WRITERS 3u
#define RECORDS 30u
#define RECORD_MAX (2 * UNIT)

/* It took place at some time between. */
struct event {
	uint64_t begin, end; /* ns */
	uint64_t from, to;   /* of a record; a cut to @from */
};

static struct event records[WRITERS][RECORDS], truncates[WRITERS * RECORDS];
static unsigned ntruncates;
static sem_t written; /* records */

static uint32_t length_of(unsigned writer, unsigned record)
{
	return 12 + (record * 7919u + writer * 104729u) % (RECORD_MAX - 12);
}

static uint32_t make_record(unsigned writer, unsigned record, uint8_t *ret)
{
	uint32_t head[3] = { htonl(length_of(writer, record)), htonl(writer), htonl(record) };

	memcpy(ret, head, sizeof(head));
	memset(ret + sizeof(head), (int)(1 + writer * RECORDS + record), length_of(writer, record) - sizeof(head));
	return length_of(writer, record);
}

/* Return: NULL: all is written */
static void *append_all(void *arg)
{
	unsigned writer = *(const unsigned *)arg;
	uint8_t *record = malloc(RECORD_MAX);
	struct leat *mine = volume_rig_mount(NULL);
	struct leat_file *file = volume_rig_open(mine, "many", O_WRONLY | O_CREAT | O_APPEND);
	bool good = record != NULL;

	for (unsigned i = 0; good && i < RECORDS; i++) {
		uint32_t n = make_record(writer, i, record);
		struct event *e = &records[writer][i];

		e->begin = clock_now_ns();
		good = leat_write(file, record, n) == (ssize_t)n;
		e->end = clock_now_ns();
		e->to = (uint64_t)leat_lseek(file, 0, SEEK_CUR);
		e->from = e->to - n;
		(void)sem_post(&written);
	}
	for (unsigned i = 0; i < RECORDS && !good; i++)
		(void)sem_post(&written); /* the others do not wait for it */
	good = !leat_close(file) && good;
	leat_umount(mine);
	free(record);
	return good ? NULL : arg;
}

/* After each third record, cuts the file to somewhere in its last part. Return: NULL: good */
static void *cut_all(void *arg)
{
	struct leat *mine = volume_rig_mount(NULL);
	struct leat_file *file = volume_rig_open(mine, "many", O_WRONLY | O_CREAT);
	unsigned seed = 1;
	bool good = true;

	for (unsigned i = 1; good && i < WRITERS * RECORDS; i++) {
		struct event *e = &truncates[ntruncates];
		uint64_t bytes = (uint64_t)rand_r(&seed) % (2 * RECORD_MAX);
		struct stat st;

		while (sem_wait(&written))
			;
		if (i % 3)
			continue;
		ntruncates++;
		good = !leat_fstat(file, &st);
		e->from = (uint64_t)st.st_size - MIN((uint64_t)st.st_size, bytes);
		e->begin = clock_now_ns();
		good = good && !leat_ftruncate(file, e->from);
		e->end = clock_now_ns();
	}
	good = !leat_close(file) && good;
	leat_umount(mine);
	return good ? NULL : arg;
}

/* Must it be there: no cut that may have come later has reached it? Must it not: a later cut has? Return: 1, -1; 0: neither */
static int is_there(const struct event *r)
{
	int may = 1;

	for (unsigned i = 0; i < ntruncates; i++) {
		const struct event *c = &truncates[i];

		if (c->end < r->begin || c->from >= r->to)
			continue;
		if (c->begin > r->end && c->from <= r->from)
			return -1;
		may = 0;
	}
	return may;
}

static void check_record(unsigned writer, unsigned record, ssize_t bytes)
{
	static uint8_t want[RECORD_MAX];
	const struct event *r = &records[writer][record];
	size_t n = make_record(writer, record, want);
	int there = is_there(r);

	if (there > 0 && (r->to > (uint64_t)bytes || memcmp(mem + r->from, want, n) != 0))
		fail_msg("record %u of writer %u is not at %llu", record, writer, (unsigned long long)r->from);
	if (there < 0 && r->to <= (uint64_t)bytes && !memcmp(mem + r->from, want, 12))
		fail_msg("record %u of writer %u was cut, and is at %llu", record, writer, (unsigned long long)r->from);
}

static void appenders_and_a_cutter(void **state)
{
	static unsigned writers[WRITERS];
	pthread_t threads[WRITERS], thread;
	void *failed;
	ssize_t n;

	(void)state;
	assert_int_equal(sem_init(&written, 0, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, cut_all, writers), 0);
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, append_all, &writers[i]), 0);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	m = volume_rig_mount(NULL);
	f = volume_rig_open(m, "many", O_RDONLY);
	n = leat_pread(f, mem, sizeof(mem), 0);
	for (unsigned i = 0; i < WRITERS * RECORDS; i++)
		check_record(i / RECORDS, i % RECORDS, n);
	assert_int_equal(leat_close(f), 0);
	leat_umount(m);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_all_writes), cmocka_unit_test(between_writes), cmocka_unit_test(beyond_the_range),
		cmocka_unit_test(each_time),	     cmocka_unit_test(appenders_and_a_cutter),
	};

	(void)alarm(120); /* a client that waits for a manager may wait for ever */
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(1 + i % 251);
	return cmocka_run_group_tests(tests, volume_rig_setup, volume_rig_teardown);
}
