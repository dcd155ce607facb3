/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_assemble.c - a file from directories of stripes: what records of objects say, and what is missing
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "leat_volume.h"
#include "tests/lib/tmp_dir.h"
#include "xdr/stripe_record.h"

#define UNIT (64u << 10)
#define VOLUME UINT64_C(0x1122334455667788)
#define NAME(stripe) "objects/ab/ab000000000000000000000000000000." stripe

static struct tmp_dir dir;
static char why[512], text[4 * UNIT], got[4 * UNIT];
static struct leat_volume_stripe stripes[2] = { { .server = 5 }, { .server = 3 } };
static const struct leat_volume_stripe *const list[] = { &stripes[0], &stripes[1] };
static struct leat_volume_layout l = { .object = { 0xab }, .epoch = 1, .bytes = 3 * UNIT + 10, .stripe = UNIT, .nstripes = 2,
				       .stripes = list };

static const char *dirs[2];
static char first[300], second[300];

static void put(const char *name, const char *bytes, size_t n)
{
	int fd = open(tmp_dir_path(&dir, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
}

/* Return: false: the file system has no such attributes */
static bool set_record(const char *name, const struct stripe_record *r)
{
	uint8_t bytes[STRIPE_RECORD_BYTES];

	stripe_record_encode(r, bytes);
	return !setxattr(tmp_dir_path(&dir, name), "user.leat", bytes, sizeof(bytes), 0);
}

static void make_server(const char *name, unsigned id)
{
	char path[100], marker[120];

	tmp_dir_mkdir(&dir, name);
	(void)snprintf(path, sizeof(path), "%s/objects", name);
	tmp_dir_mkdir(&dir, path);
	(void)snprintf(path, sizeof(path), "%s/objects/ab", name);
	tmp_dir_mkdir(&dir, path);
	(void)snprintf(path, sizeof(path), "%s/leat-stripes", name);
	(void)snprintf(marker, sizeof(marker), "leat-stripes 1\nvolume = %016llx\nserver = %u\nrecord = user.leat\n",
		       (unsigned long long)VOLUME, id);
	tmp_dir_write(&dir, path, marker);
}

static int assemble(void)
{
	why[0] = '\0';
	(void)unlink(tmp_dir_path(&dir, "out"));
	return leat_volume_assemble(&l, VOLUME, dirs, 2, tmp_dir_path(&dir, "out"), why, sizeof(why));
}

/* Refused, with this reason, and nothing is left. */
static void refused(int err, const char *reason)
{
	assert_int_equal(assemble(), err);
	if (!strstr(why, reason))
		fail_msg("'%s' instead of '%s'", why, reason);
	assert_int_equal(access(tmp_dir_path(&dir, "out"), F_OK), -1);
}

/* The result has @n bytes of @want; the rest up to the size are zeroes */
static void is(const char *want, size_t n)
{
	FILE *f;

	if (assemble())
		fail_msg("%s", why);
	memset(got, 1, sizeof(got));
	f = fopen(tmp_dir_path(&dir, "out"), "re");
	assert_non_null(f);
	assert_int_equal(fread(got, 1, sizeof(got), f), l.bytes);
	fclose(f);
	assert_memory_equal(got, want, n);
	for (size_t i = n; i < l.bytes; i++)
		assert_int_equal(got[i], 0);
}

static void whole(void **state)
{
	(void)state;
	put("a/" NAME("0"), text, UNIT);
	put("b/" NAME("1"), text + UNIT, UNIT);
	is(text, 2 * UNIT);
	/* more, of both; the last unit is longer than the file says */
	put("a/" NAME("0"), text, UNIT);
	assert_int_equal(truncate(tmp_dir_path(&dir, "a/" NAME("0")), 2 * UNIT), 0);
	is(text, 2 * UNIT);
	put("b/" NAME("1"), text, 2 * UNIT);
	assert_int_equal(assemble(), 0);
	/* an object that does not exist is a hole */
	assert_int_equal(unlink(tmp_dir_path(&dir, "b/" NAME("1"))), 0);
	is(text, UNIT);
}

static void records(void **state)
{
	struct stripe_record r = stripe_record_none();

	(void)state;
	put("a/" NAME("0"), text, UNIT);
	put("b/" NAME("1"), text + UNIT, UNIT);
	r.cut = 100;
	if (!set_record("b/" NAME("1"), &r))
		skip();
	is(text, UNIT + 100);
	r = stripe_record_none();
	r.epoch = 2;
	assert_true(set_record("b/" NAME("1"), &r));
	refused(-ESTALE, "it has epoch 2, and the file 1");
	l.epoch = 2;
	refused(-ESTALE, "it has epoch 1, and the file 2");
	assert_true(set_record("a/" NAME("0"), &r));
	is(text, 2 * UNIT);
	assert_int_equal(unlink(tmp_dir_path(&dir, "a/" NAME("0"))), 0);
	refused(-ESTALE, "it does not exist, and the file has epoch 2");
	put("a/" NAME("0"), text, UNIT);
	l.epoch = 1;
	r = stripe_record_none();
	r.removed = true;
	assert_true(set_record("b/" NAME("1"), &r));
	refused(-ESTALE, "it was removed");
	assert_int_equal(setxattr(tmp_dir_path(&dir, "b/" NAME("1")), "user.leat", "x", 1, 0), 0);
	refused(-EBADMSG, "its record");
	assert_int_equal(unlink(tmp_dir_path(&dir, "b/" NAME("1"))), 0);
}

static void other_directories(void **state)
{
	(void)state;
	put("a/" NAME("0"), text, UNIT);
	stripes[1].server = 4;
	refused(-ENOENT, "no directory is that of server 4");
	stripes[1].server = 3;
	dirs[1] = dir.path;
	refused(-ENOENT, "No such file");
	dirs[1] = second;
	tmp_dir_write(&dir, "b/leat-stripes", "leat-stripes 2\n");
	refused(-EINVAL, "not a directory of stripes");
	tmp_dir_write(&dir, "b/leat-stripes", "leat-stripes 1\nvolume = 1\nserver = 3\nrecord = user.leat\n");
	refused(-EINVAL, "it is of volume 0000000000000001");
	tmp_dir_write(&dir, "b/leat-stripes",
		      "leat-stripes 1\nvolume = 1122334455667788\nserver = 3\nrecord = user.leat\n");
	assert_int_equal(rmdir(tmp_dir_path(&dir, "b/objects/ab")), 0);
	is(text, UNIT); /* a directory is made with its first object */
	assert_int_equal(rmdir(tmp_dir_path(&dir, "b/objects")), 0);
	refused(-EINVAL, "it lacks its directory objects");
	tmp_dir_mkdir(&dir, "b/objects");
	tmp_dir_mkdir(&dir, "b/objects/ab");
	tmp_dir_mkdir(&dir, "b/" NAME("1"));
	refused(-EINVAL, "Invalid argument");
	assert_int_equal(rmdir(tmp_dir_path(&dir, "b/" NAME("1"))), 0);
	is(text, UNIT);
	assert_int_equal(leat_volume_assemble(&l, VOLUME, dirs, 2, tmp_dir_path(&dir, "out"), why, sizeof(why)), -EEXIST);
}

static int set_up(void **state)
{
	(void)state;
	tmp_dir_create(&dir);
	make_server("a", 5);
	make_server("b", 3);
	(void)snprintf(first, sizeof(first), "%s", tmp_dir_path(&dir, "a"));
	(void)snprintf(second, sizeof(second), "%s", tmp_dir_path(&dir, "b"));
	dirs[0] = first;
	dirs[1] = second;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(1 + i % 251);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tmp_dir_destroy(&dir);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(whole), cmocka_unit_test(records),
					    cmocka_unit_test(other_directories) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
