/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_write_verf.c - a loss changes the write verifier of its own file system
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>

#include <cmocka.h>

#include "base/util.h"

#include "server/files/write_verf.c"

#define START 1000u

static struct write_verf w;

static int setup(void **state)
{
	(void)state;
	write_verf_init(&w, START);
	return 0;
}

static void one_file_system(void **state)
{
	static const uint64_t devs[] = { 0, 1, 0x801, UINT64_MAX - 1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(devs); i++) {
		uint64_t before = write_verf_of(&w, devs[i]), first;

		assert_int_equal(before, START);
		write_verf_change(&w, devs[i]);
		first = write_verf_of(&w, devs[i]);
		assert_int_not_equal(first, before);
		assert_int_equal(write_verf_of(&w, devs[i]), first);
		write_verf_change(&w, devs[i]);
		assert_int_not_equal(write_verf_of(&w, devs[i]), before);
		assert_int_not_equal(write_verf_of(&w, devs[i]), first);
		assert_int_equal(write_verf_of(&w, 77), START);
	}
}

/* More of them than there are slots: file systems without a slot share a verifier. */
static void many_file_systems(void **state)
{
	uint64_t was[WRITE_VERF_SLOTS + 3];

	(void)state;
	for (uint64_t dev = 0; dev < WRITE_VERF_SLOTS; dev++)
		write_verf_change(&w, dev);
	for (uint64_t dev = 0; dev < ARRAY_SIZE(was); dev++)
		was[dev] = write_verf_of(&w, dev);
	write_verf_change(&w, 3);
	for (uint64_t dev = 0; dev < ARRAY_SIZE(was); dev++)
		assert_int_equal(write_verf_of(&w, dev) != was[dev], dev == 3);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t before = write_verf_of(&w, WRITE_VERF_SLOTS + 1);

		write_verf_change(&w, WRITE_VERF_SLOTS + 1);
		assert_int_not_equal(write_verf_of(&w, WRITE_VERF_SLOTS + 1), before);
	}
	assert_int_not_equal(write_verf_of(&w, 5), was[5]);
}

#define LOSSES 1000u
#define FILE_SYSTEMS 8u

static void *lose(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < LOSSES; i++) {
		uint64_t dev = i % FILE_SYSTEMS, before = write_verf_of(&w, dev);

		write_verf_change(&w, dev);
		assert_int_not_equal(write_verf_of(&w, dev), before);
	}
	return NULL;
}

/* Each loss counts exactly once, whichever thread claims the slots first. */
static void many_threads(void **state)
{
	pthread_t t[4];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, lose, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		pthread_join(t[i], NULL);
	for (uint64_t dev = 0; dev < FILE_SYSTEMS; dev++)
		assert_int_equal(write_verf_of(&w, dev),
				 START + ARRAY_SIZE(t) * LOSSES / FILE_SYSTEMS);
	assert_int_equal(write_verf_of(&w, FILE_SYSTEMS), START);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_file_system, setup),
		cmocka_unit_test_setup(many_file_systems, setup),
		cmocka_unit_test_setup(many_threads, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
