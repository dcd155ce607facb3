/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_posix_acl.c - access control lists: of a caller, in the kernel's layout, and back
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include <linux/posix_acl.h>

#include "posix_acl.h"

#define U(p) { ACL_USER_OBJ, 0, p }
#define G(p) { ACL_GROUP_OBJ, 0, p }
#define M(p) { ACL_MASK, 0, p }
#define O(p) { ACL_OTHER, 0, p }

static struct statx file(uint16_t mode)
{
	return (struct statx){ .stx_mode = mode, .stx_uid = 1001, .stx_gid = 1002 };
}

static int to(const aclent *v, uint32_t n, struct acl_xattr *x)
{
	x->bytes = 12345;
	return acl_to_xattr(v, n, false, x);
}

/* the layout of linux/posix_acl_xattr.h, byte by byte */
static void layout(void **state)
{
	static const uint8_t want[] = {
		2, 0, 0, 0, /* version */
		1, 0, 6, 0, 0xff, 0xff, 0xff, 0xff, /* the owner */
		2, 0, 7, 0, 0xd2, 4, 0, 0,	    /* 1234 */
		4, 0, 4, 0, 0xff, 0xff, 0xff, 0xff,
		8, 0, 5, 0, 0x78, 0x56, 0x34, 0x12,
		16, 0, 5, 0, 0xff, 0xff, 0xff, 0xff,
		32, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
	};
	static const aclent v[] = { /* in no order, and the ids of those that have none do not count */
		O(0), { ACL_GROUP, 0x12345678, 5 }, { ACL_USER_OBJ, 77, 6 }, { ACL_MASK, 5, 0x4d },
		{ ACL_USER, 1234, 7 }, G(4),
	};
	struct statx stx = file(0);
	aclent back[NFS_ACL_MAX_ENTRIES];
	struct acl_xattr x;
	uint32_t n;

	(void)state;
	assert_int_equal(to(v, 6, &x), 0);
	assert_int_equal(x.bytes, sizeof(want));
	assert_memory_equal(x.data, want, sizeof(want));
	assert_int_equal(acl_from_xattr(&x, &stx, false, back, &n), 0);
	assert_int_equal(n, 6);
	assert_memory_equal(&back[0], (&(aclent){ ACL_USER_OBJ, 1001, 6 }), sizeof(aclent));
	assert_memory_equal(&back[1], &v[4], sizeof(aclent));
	assert_memory_equal(&back[2], (&(aclent){ ACL_GROUP_OBJ, 1002, 4 }), sizeof(aclent));
	assert_memory_equal(&back[3], &v[1], sizeof(aclent));
	assert_memory_equal(&back[4], (&(aclent)M(5)), sizeof(aclent));
	assert_memory_equal(&back[5], (&(aclent)O(0)), sizeof(aclent));
	/* the default list says in each entry that it is */
	assert_int_equal(acl_from_xattr(&x, &stx, true, back, &n), 0);
	for (uint32_t i = 0; i < n; i++)
		assert_true(back[i].type & NFS_ACL_DEFAULT);
	assert_int_equal(acl_to_xattr(back, n, true, &x), 0);
	assert_memory_equal(x.data, want, sizeof(want));
	assert_int_equal(acl_to_xattr(back, n, false, &x), -EINVAL);
}

static void three_are_four(void **state)
{
	static const aclent three[] = { U(6), G(4), O(1) }, four[] = { U(6), G(4), M(4), O(1) },
			    masked[] = { U(6), G(4), M(0), O(1) };
	struct statx stx = file(0100641);
	aclent back[NFS_ACL_MAX_ENTRIES];
	struct acl_xattr x, y;
	uint32_t n;

	(void)state;
	assert_int_equal(to(three, 3, &x), 0);
	assert_int_equal(x.bytes, 4 + 3 * 8);
	assert_int_equal(to(four, 4, &y), 0);
	assert_int_equal(y.bytes, x.bytes);
	assert_memory_equal(y.data, x.data, x.bytes);
	assert_int_equal(acl_from_xattr(&x, &stx, false, back, &n), 0);
	assert_int_equal(n, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(back[i].type, four[i].type);
		assert_int_equal(back[i].perm, four[i].perm);
	}
	/* a mask that takes something away is one */
	assert_int_equal(to(masked, 4, &x), 0);
	assert_int_equal(x.bytes, 4 + 4 * 8);
	/* mode bits say the same */
	assert_int_equal(acl_from_mode(&stx, back), 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(back[i].type, four[i].type);
		assert_int_equal(back[i].perm, four[i].perm);
	}
	assert_int_equal(back[0].id, 1001);
	assert_int_equal(back[1].id, 1002);
}

static void no_lists(void **state)
{
	static const struct {
		const char *what;
		uint32_t n;
		aclent v[6];
	} bad[] = {
		{ "one", 1, { U(7) } },
		{ "no owner", 2, { G(7), O(7) } },
		{ "no group", 2, { U(7), O(7) } },
		{ "no others", 2, { U(7), G(7) } },
		{ "a name without a mask", 4, { U(7), { ACL_USER, 1, 7 }, G(7), O(7) } },
		{ "a group without a mask", 4, { U(7), G(7), { ACL_GROUP, 1, 7 }, O(7) } },
		{ "two owners", 4, { U(7), U(6), G(7), O(7) } },
		{ "two masks", 5, { U(7), G(7), M(7), M(5), O(7) } },
		{ "a user twice", 6,
		  { U(7), { ACL_USER, 1, 7 }, { ACL_USER, 1, 6 }, G(7), M(7), O(7) } },
		{ "type 0", 4, { U(7), { 0, 0, 7 }, G(7), O(7) } },
		{ "two types in one", 4, { U(7), { 3, 0, 7 }, G(7), O(7) } },
		{ "a type of 17 bits", 4, { U(7), { 0x10000 | ACL_USER, 1, 7 }, G(7), O(7) } },
		{ "default", 3, { { NFS_ACL_DEFAULT | ACL_USER_OBJ, 0, 7 }, G(7), O(7) } },
		{ "rights that there are not", 3, { U(8), G(7), O(7) } },
		{ "rights of 32 bits", 3, { U(7), G(0x80000007), O(7) } },
		{ "nobody", 5, { U(7), { ACL_USER, UINT32_MAX, 7 }, G(7), M(7), O(7) } },
	};
	struct acl_xattr x;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (to(bad[i].v, bad[i].n, &x) != -EINVAL)
			fail_msg("%s is a list", bad[i].what);
	}
	assert_int_equal(to(NULL, 0, &x), 0);
	assert_int_equal(x.bytes, 0);
}

static void as_many_as_there_may_be(void **state)
{
	static aclent v[NFS_ACL_MAX_ENTRIES + 1], back[NFS_ACL_MAX_ENTRIES];
	struct statx stx = file(0);
	struct acl_xattr x;
	uint32_t n;

	(void)state;
	v[0] = (aclent)U(7);
	v[1] = (aclent)G(7);
	v[2] = (aclent)M(7);
	v[3] = (aclent)O(7);
	for (uint32_t i = 4; i <= NFS_ACL_MAX_ENTRIES; i++)
		v[i] = (aclent){ ACL_USER, 100000 - i, 5 };
	assert_int_equal(to(v, NFS_ACL_MAX_ENTRIES + 1, &x), -EINVAL);
	assert_int_equal(to(v, NFS_ACL_MAX_ENTRIES, &x), 0);
	assert_int_equal(x.bytes, ACL_XATTR_MAX);
	assert_int_equal(acl_from_xattr(&x, &stx, false, back, &n), 0);
	assert_int_equal(n, NFS_ACL_MAX_ENTRIES);
	assert_int_equal(back[1].id, 100001 - NFS_ACL_MAX_ENTRIES);
	/* what is cut is no list */
	for (size_t cut = 1; cut < 12; cut++) {
		struct acl_xattr y = x;

		y.bytes -= cut;
		if (cut != 8)
			assert_int_equal(acl_from_xattr(&y, &stx, false, back, &n), -EIO);
	}
	x.bytes = 3;
	assert_int_equal(acl_from_xattr(&x, &stx, false, back, &n), -EIO);
	x.bytes = ACL_XATTR_MAX;
	x.data[0] = 1;
	assert_int_equal(acl_from_xattr(&x, &stx, false, back, &n), -EIO);
	x.bytes = 0;
	assert_int_equal(acl_from_xattr(&x, &stx, false, back, &n), 0);
	assert_int_equal(n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout),
		cmocka_unit_test(three_are_four),
		cmocka_unit_test(no_lists),
		cmocka_unit_test(as_many_as_there_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
