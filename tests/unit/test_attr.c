/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_attr.c - attributes between NFS and the C library
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "attr.h"
#include "base/util.h"

static void types(void **state)
{
	static const struct {
		ftype3 type;
		mode_t bits;
	} rows[] = {
		{ NF3REG, S_IFREG }, { NF3DIR, S_IFDIR }, { NF3BLK, S_IFBLK }, { NF3CHR, S_IFCHR },
		{ NF3LNK, S_IFLNK }, { NF3SOCK, S_IFSOCK }, { NF3FIFO, S_IFIFO },
		{ (ftype3)0, 0 }, { (ftype3)8, 0 }, { (ftype3)-1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const fattr3 a = { .type = rows[i].type, .mode = 0106755 };
		struct stat st;

		lt_attr_stat(&a, 4096, &st);
		assert_int_equal(st.st_mode, rows[i].bits | 06755);
	}
}

static void numbers(void **state)
{
	const fattr3 a = {
		.type = NF3CHR,
		.nlink = 3,
		.uid = 4,
		.gid = 5,
		.size = 6,
		.used = 1025,
		.rdev = { 8, 9 },
		.fsid = 0x1234,
		.fileid = UINT64_MAX,
		.atime = { 1, 2 },
		.mtime = { UINT32_MAX, 999999999 },
		.ctime = { 5, UINT32_MAX }, /* a peer's nonsense */
	};
	struct stat st;

	(void)state;
	lt_attr_stat(&a, 65536, &st);
	assert_int_equal(st.st_nlink, 3);
	assert_int_equal(st.st_uid, 4);
	assert_int_equal(st.st_gid, 5);
	assert_int_equal(st.st_size, 6);
	assert_int_equal(st.st_blocks, 3);
	assert_int_equal(st.st_blksize, 65536);
	assert_int_equal(major(st.st_rdev), 8);
	assert_int_equal(minor(st.st_rdev), 9);
	assert_true(st.st_ino == UINT64_MAX);
	assert_int_equal(st.st_atim.tv_sec, 1);
	assert_int_equal(st.st_atim.tv_nsec, 2);
	assert_true(st.st_mtim.tv_sec == UINT32_MAX);
	assert_int_equal(st.st_mtim.tv_nsec, 999999999);
	assert_int_equal(st.st_ctim.tv_nsec, 999999999);
}

static void huge_size(void **state)
{
	const fattr3 a = { .type = NF3REG, .size = UINT64_MAX, .used = UINT64_MAX };
	struct stat st;

	(void)state;
	lt_attr_stat(&a, 4096, &st);
	assert_true(st.st_size == INT64_MAX);
	assert_true(st.st_blocks > 0);
}

static void setting(void **state)
{
	sattr3 s = lt_attr_mode(S_IFREG | 04711);

	(void)state;
	assert_true(s.mode.set_it && s.mode.set_mode3_u.mode == 04711);
	assert_false(s.uid.set_it || s.gid.set_it || s.size.set_it);
	assert_int_equal(s.atime.set_it, DONT_CHANGE);
	s = lt_attr_size(1ull << 40);
	assert_true(s.size.set_it && s.size.set_size3_u.size == 1ull << 40);
	assert_false(s.mode.set_it);
	s = lt_attr_owner(7, (gid_t)-1);
	assert_true(s.uid.set_it && s.uid.set_uid3_u.uid == 7 && !s.gid.set_it);
	s = lt_attr_owner((uid_t)-1, 8);
	assert_true(!s.uid.set_it && s.gid.set_it && s.gid.set_gid3_u.gid == 8);
}

static void times(void **state)
{
	struct timespec t[2] = { { .tv_sec = 10, .tv_nsec = 20 }, { .tv_nsec = UTIME_OMIT } };
	sattr3 s;

	(void)state;
	assert_int_equal(lt_attr_times(t, &s), 0);
	assert_int_equal(s.atime.set_it, SET_TO_CLIENT_TIME);
	assert_int_equal(s.atime.set_atime_u.atime.seconds, 10);
	assert_int_equal(s.atime.set_atime_u.atime.nseconds, 20);
	assert_int_equal(s.mtime.set_it, DONT_CHANGE);
	t[1].tv_nsec = UTIME_NOW;
	assert_int_equal(lt_attr_times(t, &s), 0);
	assert_int_equal(s.mtime.set_it, SET_TO_SERVER_TIME);
	assert_int_equal(lt_attr_times(NULL, &s), 0);
	assert_int_equal(s.atime.set_it, SET_TO_SERVER_TIME);
	assert_int_equal(s.mtime.set_it, SET_TO_SERVER_TIME);
	t[0].tv_sec = UINT32_MAX;
	assert_int_equal(lt_attr_times(t, &s), 0);
	t[0].tv_sec = (time_t)UINT32_MAX + 1;
	assert_int_equal(lt_attr_times(t, &s), -EOVERFLOW);
	t[0].tv_sec = -1;
	assert_int_equal(lt_attr_times(t, &s), -EOVERFLOW);
	t[0].tv_sec = 0;
	t[0].tv_nsec = 1000000000;
	assert_int_equal(lt_attr_times(t, &s), -EINVAL);
	t[0].tv_nsec = -1;
	assert_int_equal(lt_attr_times(t, &s), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types),
		cmocka_unit_test(numbers),
		cmocka_unit_test(huge_size),
		cmocka_unit_test(setting),
		cmocka_unit_test(times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
