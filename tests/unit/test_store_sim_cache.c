/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_sim_cache.c - what is left of a file after a cut: exactly what was stable
 *
 * The last test does at random what the others do on purpose, beside a model of one byte per byte.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store_sim_cache.h"
#include "tmp_dir.h"

#define INO 7u

static struct tmp_dir dir;
static struct sim_cache cache;

static int setup(void **state)
{
	(void)state;
	tmp_dir_create(&dir);
	sim_cache_init(&cache, SIM_CACHE_BYTES);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sim_cache_fini(&cache);
	assert_int_equal(cache.bytes, 0);
	assert_int_equal(cache.nfiles, 0);
	tmp_dir_destroy(&dir);
	return 0;
}

static int file(const char *name, const char *text)
{
	int fd;

	tmp_dir_write(&dir, name, text);
	fd = open(tmp_dir_path(&dir, name), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void put(int fd, uint64_t off, const char *text)
{
	ssize_t n = pwrite(fd, text, strlen(text), (off_t)off);

	assert_int_equal(n, strlen(text));
}

static void unstable(int fd, unsigned ino, uint64_t off, const char *text)
{
	assert_int_equal(sim_cache_write(&cache, fd, 1, ino, off, (uint32_t)strlen(text)), 0);
	put(fd, off, text);
}

static void stable(int fd, unsigned ino, uint64_t off, const char *text)
{
	sim_cache_stable(&cache, 1, ino, off, (uint32_t)strlen(text));
	put(fd, off, text);
}

static void expect(int fd, const char *text, size_t len)
{
	char now[128];

	assert_int_equal(pread(fd, now, sizeof(now), 0), len);
	assert_memory_equal(now, text, len);
}

#define EXPECT(fd, text) expect(fd, text, sizeof(text) - 1)

static void forgets(void **state)
{
	int fd = file("f", "0123456789");

	(void)state;
	unstable(fd, INO, 2, "ab");
	unstable(fd, INO, 3, "cde");
	unstable(fd, INO, 8, "f");
	EXPECT(fd, "01acde67f9");
	assert_int_equal(sim_cache_cut(&cache), 5); /* what was not written is not counted */
	EXPECT(fd, "0123456789");
	assert_int_equal(sim_cache_cut(&cache), 0); /* once */
	close(fd);
}

static void keeps_what_was_synced(void **state)
{
	int fd = file("f", "0123456789"), other = file("g", "0123456789");

	(void)state;
	unstable(fd, INO, 0, "abc");
	unstable(other, INO + 1, 0, "abc");
	sim_cache_sync(&cache, 1, INO);
	unstable(fd, INO, 1, "xy");
	sim_cache_cut(&cache);
	EXPECT(fd, "abc3456789");
	EXPECT(other, "0123456789"); /* another file's sync is none of its own */
	close(fd);
	close(other);
}

static void stable_is_its_own_range(void **state)
{
	int fd = file("f", "0123456789");

	(void)state;
	unstable(fd, INO, 1, "abcdefgh");
	stable(fd, INO, 3, "XY");
	EXPECT(fd, "0abXYefgh9");
	unstable(fd, INO, 4, "z"); /* over what is stable by now */
	sim_cache_cut(&cache);
	EXPECT(fd, "012XY56789");
	close(fd);
}

static void sizes(void **state)
{
	int fd = file("f", "0123");

	(void)state;
	unstable(fd, INO, 2, "abcdef"); /* grows, and shrinks back */
	sim_cache_cut(&cache);
	EXPECT(fd, "0123");
	unstable(fd, INO, 4, "abcd");
	stable(fd, INO, 6, "XY"); /* the size is stable with it, what is in between is not */
	unstable(fd, INO, 8, "zz");
	sim_cache_cut(&cache);
	EXPECT(fd, "0123\0\0XY");
	/* truncated by another process: the cache follows, above and below */
	unstable(fd, INO, 0, "abcdefghij");
	assert_int_equal(ftruncate(fd, 2), 0);
	sim_cache_cut(&cache);
	EXPECT(fd, "01");
	unstable(fd, INO, 0, "abcd");
	assert_int_equal(ftruncate(fd, 6), 0);
	sim_cache_cut(&cache);
	EXPECT(fd, "01\0\0\0\0");
	unstable(fd, INO, 0, "abcdefgh");
	assert_int_equal(ftruncate(fd, 1), 0);
	unstable(fd, INO, 4, "x");
	sim_cache_cut(&cache);
	EXPECT(fd, "0");
	close(fd);
}

static void unlinked_and_closed(void **state)
{
	int fd = file("f", "0123456789"), again;

	(void)state;
	unstable(fd, INO, 0, "abc");
	close(fd);
	again = open(tmp_dir_path(&dir, "f"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(unlink(tmp_dir_path(&dir, "f")), 0);
	sim_cache_cut(&cache);
	EXPECT(again, "0123456789");
	close(again);
}

static void writes_back(void **state)
{
	int a = file("a", "0123456789"), b = file("b", "0123456789");

	(void)state;
	cache.bytes_max = 12;
	unstable(a, INO, 0, "abcdefgh");
	unstable(b, INO + 1, 0, "abcdefgh");
	assert_int_equal(cache.nfiles, 1); /* the older one made room */
	sim_cache_cut(&cache);
	EXPECT(a, "abcdefgh89");
	EXPECT(b, "0123456789");
	cache.bytes_max = 4;
	unstable(a, INO, 2, "XY");
	unstable(a, INO, 0, "ABCDEFGH"); /* never fits, and goes after what was there */
	assert_int_equal(cache.bytes, 0);
	assert_int_equal(cache.nfiles, 0);
	for (unsigned i = 0; i < SIM_CACHE_FILES + 3; i++)
		unstable(b, 100 + i, 0, "");
	assert_int_equal(cache.nfiles, SIM_CACHE_FILES);
	close(a);
	close(b);
}

#define BYTES 96u

static void at_random(void **state)
{
	char lasts[BYTES] = { 0 }, now[BYTES];
	int fd = file("f", "");
	unsigned x = 1;

	(void)state;
	assert_int_equal(ftruncate(fd, BYTES), 0);
	for (int i = 0; i < 20000; i++) {
		char text[BYTES + 1];
		unsigned off, len;

		x = x * 1103515245 + 12345;
		off = (x >> 16) % BYTES;
		len = 1 + (x >> 8) % 24;
		if (len > BYTES - off)
			len = BYTES - off;
		memset(text, 'a' + i % 26, len);
		text[len] = '\0';
		switch ((x >> 4) % 16) {
		case 0:
			sim_cache_sync(&cache, 1, INO);
			assert_int_equal(pread(fd, lasts, BYTES, 0), BYTES);
			break;
		case 1:
			sim_cache_cut(&cache);
			assert_int_equal(pread(fd, now, BYTES, 0), BYTES);
			assert_memory_equal(now, lasts, BYTES);
			break;
		case 2:
		case 3:
		case 4:
			stable(fd, INO, off, text);
			memcpy(lasts + off, text, len);
			break;
		default:
			unstable(fd, INO, off, text);
		}
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(forgets, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_what_was_synced, setup, teardown),
		cmocka_unit_test_setup_teardown(stable_is_its_own_range, setup, teardown),
		cmocka_unit_test_setup_teardown(sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(unlinked_and_closed, setup, teardown),
		cmocka_unit_test_setup_teardown(writes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(at_random, setup, teardown),
	};

	return cmocka_run_group_tests_name("store_sim_cache", tests, NULL, NULL);
}
