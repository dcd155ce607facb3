/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_lease_table.c - the table of leases of a volume: whose they are, how many, and what their markers say
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/volume/volume_leases.c"
#include "tests/lib/nomem.h"
#include "tests/lib/tmp_dir.h"

static struct tmp_dir dir;
static int fd;
static struct volume_leases *t;

static void load(void)
{
	volume_leases_destroy(t);
	assert_int_equal(volume_leases_create(fd, &t), 0);
}

static int setup(void **state)
{
	(void)state;
	volume_times.lease_ns = NS_PER_S * 3600;
	tmp_dir_create(&dir);
	fd = open(dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	t = NULL;
	load();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	volume_leases_destroy(t);
	close(fd);
	tmp_dir_destroy(&dir);
	return 0;
}

static const char *name_of(unsigned object)
{
	static char name[STRIPE_OBJECT_BYTES];

	memset(name, 0xa5, sizeof(name));
	memcpy(name, &object, sizeof(object));
	return name;
}

static struct volume_lessee by(uint64_t instance, uint64_t number, uint64_t client)
{
	return (struct volume_lessee){ .instance = instance, .number = number, .client.key = client, .fh = { 3, { 1, 0xab, 0xff } } };
}

static int take(unsigned object, uint64_t instance, uint64_t number)
{
	struct volume_lessee l = by(instance, number, 1);

	return volume_lease_take(t, name_of(object), &l);
}

static void end(unsigned object, uint64_t instance, uint64_t number)
{
	struct volume_lessee l = by(instance, number, 1);

	volume_lease_end(t, name_of(object), &l);
}

static bool has_marker(unsigned object)
{
	char name[VOLUME_OBJECT_TEXT], text[16] = "";

	volume_object_text(name_of(object), name);
	if (readlinkat(fd, name, text, sizeof(text)) < 0)
		return false;
	assert_string_equal(text, "01abff");
	return true;
}

/* Leases that are renewed from now on lapse at once. */
static void hurry(void)
{
	volume_times.lease_ns = 1;
}

static unsigned lapse(void)
{
	(void)volume_leases_lapse(t);
	return volume_leases_due(t);
}

static void settle(unsigned object)
{
	struct volume_due due;

	memcpy(due.object, name_of(object), sizeof(due.object));
	volume_leases_settle(t, &due);
}

/* ---- tests ---- */

static void begin_and_end(void **state)
{
	(void)state;
	assert_int_equal(take(1, 7, 1), 1);
	assert_int_equal(take(2, 7, 2), 0);
	assert_true(has_marker(1));
	assert_int_equal(take(1, 8, 1), 0);
	end(1, 7, 3);
	assert_true(has_marker(1)); /* of the other one */
	end(1, 9, 3);
	end(1, 8, 3);
	assert_false(has_marker(1));
	assert_true(has_marker(2));
	end(2, 7, 3);
	assert_int_equal(t->n, 0);
	assert_int_equal(t->objects.n, 0);
}

static struct volume_leases_stats count(void)
{
	struct volume_leases_stats s = { 0 };

	volume_leases_count(t, &s);
	return s;
}

static void counters(void **state)
{
	struct volume_leases_stats s;

	(void)state;
	(void)take(1, 7, 1);
	(void)take(1, 7, 2); /* renewed */
	(void)take(2, 7, 3);
	end(2, 7, 4);
	s = count();
	assert_true(s.now == 1 && s.given == 2 && !s.lapsed && !s.refused);
	hurry();
	(void)take(1, 7, 5);
	assert_int_equal(lapse(), 1);
	settle(1);
	s = count();
	assert_true(!s.now && s.given == 2 && s.lapsed == 1 && !s.refused);
}

/* The last report comes behind a layout that was asked for later. */
static void late_end(void **state)
{
	(void)state;
	(void)take(1, 7, 5);
	(void)take(1, 7, 4);
	end(1, 7, 4);
	assert_true(has_marker(1));
	end(1, 7, 5);
	assert_false(has_marker(1));
}

static void others(void **state)
{
	(void)state;
	assert_false(volume_lease_others(t, name_of(1), 7));
	(void)take(1, 7, 1);
	assert_false(volume_lease_others(t, name_of(1), 7));
	assert_true(volume_lease_others(t, name_of(1), 8));
	assert_true(volume_lease_others(t, name_of(1), 0));
	(void)take(1, 8, 1);
	assert_true(volume_lease_others(t, name_of(1), 7));
	assert_true(volume_lease_others(t, name_of(1), 8));
}

/* One that is renewed while the servers are asked stays; the others have ended. */
static void lapses(void **state)
{
	struct volume_due due;

	(void)state;
	hurry();
	(void)take(1, 8, 1);
	(void)take(1, 9, 1);
	(void)take(2, 8, 2);
	volume_times.lease_ns = NS_PER_S * 3600;
	(void)take(1, 7, 1);
	assert_int_equal(lapse(), 2);
	assert_true(volume_leases_next(t, &due));
	assert_memory_equal(due.object, name_of(1), sizeof(due.object));
	assert_int_equal(due.fh.len, 3);
	assert_true(volume_leases_next(t, &due));
	assert_memory_equal(due.object, name_of(2), sizeof(due.object));
	assert_true(volume_leases_next(t, &due)); /* again, since nothing was settled */
	assert_memory_equal(due.object, name_of(1), sizeof(due.object));
	(void)take(1, 8, 2);
	assert_int_equal(volume_leases_due(t), 2);
	settle(1);
	assert_int_equal(t->n, 3); /* 7, 8; and 8 of the other object */
	assert_false(volume_leases_next(t, &due) && due.object[0] == name_of(1)[0]);
	end(2, 8, 2); /* the client has told by itself */
	assert_int_equal(volume_leases_due(t), 0);
	assert_false(has_marker(2));
	assert_true(has_marker(1));
}

/* A manager that starts takes markers for leases. What is no marker is left alone. */
static void restarts(void **state)
{
	static const char *const odd[] = { "0102030405060708090a0b0c0d0e0f1x", "01", "0102030405060708090a0b0c0d0e0f10" };

	(void)state;
	(void)take(1, 7, 1);
	assert_int_equal(symlinkat("01", fd, odd[0]), 0);
	assert_int_equal(symlinkat("01", fd, odd[1]), 0);
	assert_int_equal(symlinkat("012", fd, odd[2]), 0);
	hurry();
	load();
	assert_int_equal(t->n, 1);
	assert_true(volume_lease_others(t, name_of(1), 7));
	assert_int_equal(lapse(), 1);
	(void)take(1, 7, 2);
	end(1, 7, 3);
	assert_true(has_marker(1)); /* the unknown client may be another one */
	settle(1);
	assert_false(has_marker(1));
	for (unsigned i = 0; i < ARRAY_SIZE(odd); i++)
		assert_int_equal(unlinkat(fd, odd[i], 0), 0);
}

/* An object with too many leases keeps one for all clients that are not known any more. */
static void many_of_one(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 10 * VOLUME_LEASES_OBJECT; i++)
		assert_true(take(1, 100 + i, 1) >= 0);
	assert_in_range(t->n, VOLUME_LEASES_OBJECT, VOLUME_LEASES_OBJECT + 1);
	assert_int_equal(t->used[UNKNOWN], 0);
	for (unsigned i = 0; i < 10 * VOLUME_LEASES_OBJECT; i++)
		end(1, 100 + i, 1);
	assert_int_equal(t->n, 1);
	assert_true(has_marker(1));
}

/* Return: leases that the client gets */
static unsigned take_all(uint64_t client, unsigned object)
{
	for (unsigned n = 0;; n++) {
		struct volume_lessee l = by(1000 + n, 1, client);

		if (volume_lease_take(t, name_of(object + n / VOLUME_LEASES_OBJECT), &l) < 0)
			return n;
	}
}

/* Leases that were merged count against the client whose call did so, and leave the others their share. */
static void merged_ones(void **state)
{
	const struct rpcrdma_client_id first = { .key = 1 };
	struct rpcrdma_client_id other = { .key = 2 };
	unsigned object = 1;

	(void)state;
	while (bucket_of(t, &other) == bucket_of(t, &first))
		other.key++;
	for (int rc = 0; rc >= 0; object++) {
		for (unsigned i = 1; i <= VOLUME_LEASES_OBJECT + 1 && rc >= 0; i++)
			rc = take(object, i, 1);
		for (unsigned i = 1; i <= VOLUME_LEASES_OBJECT + 1; i++)
			end(object, i, 1);
		assert_true(object < VOLUME_LEASES_MAX);
	}
	assert_in_range(t->n, VOLUME_LEASES_MAX / 2 - VOLUME_LEASES_OBJECT - 1, VOLUME_LEASES_MAX / 2);
	assert_in_range(take_all(other.key, 100000), VOLUME_LEASES_MAX / 4, VOLUME_LEASES_MAX / 4 + VOLUME_LEASES_OBJECT);
}

static void shares(void **state)
{
	const struct rpcrdma_client_id first = { .key = 1 };
	struct rpcrdma_client_id other = { .key = 2 };
	struct volume_lessee l = by(1000, 2, 1);

	(void)state;
	while (bucket_of(t, &other) == bucket_of(t, &first))
		other.key++;
	assert_int_equal(take_all(1, 0), VOLUME_LEASES_MAX / 2);
	assert_int_equal(take_all(other.key, 100000), VOLUME_LEASES_MAX / 4);
	assert_int_equal(take_all(1, 200000), 0);
	assert_int_equal(volume_lease_take(t, name_of(0), &l), 0); /* it may renew what it has */
	l.instance = 1;
	assert_int_equal(volume_lease_take(t, name_of(0), &l), -EAGAIN);
	end(0, 1000, 2);
	assert_int_equal(volume_lease_take(t, name_of(0), &l), -EAGAIN); /* half of what is free now is not one more */
	assert_true(count().refused >= 2);
}

/* The Nth allocation of a call fails. */
static int take_without(unsigned long nth, unsigned object, uint64_t instance)
{
	int rc;

	nomem_countdown = nth;
	rc = take(object, instance, 1);
	nomem_countdown = 0;
	return rc;
}

/* A call without memory leaves nothing behind. */
static void no_memory(void **state)
{
	(void)state;
	for (unsigned long nth = 1; take_without(nth, 1, 7) < 0; nth++) {
		assert_true(nth < 3);
		assert_int_equal(t->n, 0);
		assert_int_equal(t->objects.n, 0);
		assert_false(has_marker(1));
	}
	for (unsigned i = 1; i < VOLUME_LEASES_OBJECT; i++)
		assert_int_equal(take(1, 7 + i, 1), 0);
	assert_int_equal(take_without(1, 1, 1000), -ENOMEM); /* no lease for those of unknown clients */
	assert_int_equal(t->n, VOLUME_LEASES_OBJECT);
	assert_int_equal(take(1, 1000, 1), 0);
	assert_int_equal(take_without(1, 1, 1001), -ENOMEM);
	assert_int_equal(take(1, 1001, 1), 0);
	(void)take(2, 7, 1);
	nomem_countdown = 3;
	volume_leases_destroy(t);
	t = NULL;
	for (unsigned long nth = 1;; nth++) {
		int err;

		nomem_countdown = nth;
		err = volume_leases_create(fd, &t);
		nomem_countdown = 0;
		if (!err)
			break;
		assert_int_equal(err, -ENOMEM);
		assert_true(nth < 10);
	}
	assert_int_equal(t->n, 2);
	assert_true(has_marker(1) && has_marker(2));
}

/* Without a marker there is no lease. */
static void no_marker(void **state)
{
	(void)state;
	close(fd);
	assert_int_equal(take(1, 7, 1), -EBADF);
	assert_int_equal(t->n, 0);
	assert_int_equal(t->objects.n, 0);
	fd = open(dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(begin_and_end), TEST(counters), TEST(late_end), TEST(others), TEST(lapses), TEST(restarts), TEST(many_of_one), TEST(shares),
		TEST(merged_ones),
		TEST(no_memory), TEST(no_marker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
