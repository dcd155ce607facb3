/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_creds.c - credentials of a call: parsing, which of them to trust, squashing, assuming them
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/wire.h"
#include "creds.h"
#include "tmp_dir.h"

static bool might_exceed; /* a container's root may have no such capability to lose */

struct body {
	uint8_t bytes[512];
	uint32_t len;
};

static struct body auth_sys(const char *machine, uint32_t uid, uint32_t gid, uint32_t ngids)
{
	static const uint8_t zero[4];
	struct body b;
	struct wire_put p;
	size_t n = strlen(machine);

	wire_put_init(&p, b.bytes, sizeof(b.bytes));
	wire_put_u32(&p, 0x1234);
	wire_put_u32(&p, (uint32_t)n);
	wire_put_bytes(&p, machine, n);
	wire_put_bytes(&p, zero, round_up4(n) - n);
	wire_put_u32(&p, uid);
	wire_put_u32(&p, gid);
	wire_put_u32(&p, ngids);
	for (uint32_t i = 0; i < ngids; i++)
		wire_put_u32(&p, 100 + i);
	assert_true(wire_put_ok(&p));
	b.len = (uint32_t)wire_put_len(&p);
	return b;
}

static void parse(void **state)
{
	struct body b = auth_sys("machine", 1000, 1001, 16);
	struct creds c;

	(void)state;
	assert_int_equal(creds_parse_sys(b.bytes, b.len, &c), 0);
	assert_int_equal(c.uid, 1000);
	assert_int_equal(c.gid, 1001);
	assert_int_equal(c.ngroups, 16);
	assert_int_equal(c.groups[15], 115);
	assert_false(c.anon);
	for (uint32_t len = 0; len < b.len; len++) {
		uint8_t *exact = malloc(len ? len : 1); /* so that a sanitizer sees the end */

		memcpy(exact, b.bytes, len);
		assert_int_equal(creds_parse_sys(exact, len, &c), -EBADMSG);
		free(exact);
	}
	assert_int_equal(creds_parse_sys(b.bytes, b.len + 4, &c), -EBADMSG);
	b = auth_sys("machine", 1, 1, 17);
	assert_int_equal(creds_parse_sys(b.bytes, b.len, &c), -EBADMSG);
	put_be32(b.bytes + 4, 0xfffffffd);
	assert_int_equal(creds_parse_sys(b.bytes, b.len, &c), -EBADMSG);
}

static void whom_to_believe(void **state)
{
	struct body b = auth_sys("m", 1000, 1000, 1);
	struct rpcrdma_peer net = { .transport = RPCRDMA_TCP };
	struct rpcrdma_peer user = { .transport = RPCRDMA_LOCAL,
				     .has_cred = true,
				     .uid = 7,
				     .gid = 8,
				     .ngroups = 2,
				     .groups = { 8, 9 } };
	struct rpcrdma_peer root = { .transport = RPCRDMA_LOCAL, .has_cred = true };
	struct rpcrdma_req r = { .cred_flavor = CREDS_AUTH_SYS,
				 .cred_body = b.bytes,
				 .cred_len = b.len };
	struct creds c;

	(void)state;
	r.peer = &net;
	assert_int_equal(creds_of_call(&r, &c), CREDS_AUTH_OK);
	assert_int_equal(c.uid, 1000);
	assert_true(c.claimed);
	r.peer = &user; /* the kernel knows better */
	assert_int_equal(creds_of_call(&r, &c), CREDS_AUTH_OK);
	assert_int_equal(c.uid, 7);
	assert_false(c.claimed);
	assert_int_equal(c.ngroups, 2);
	assert_true(creds_has_group(&c, 9));
	assert_false(creds_has_group(&c, 1000));
	r.peer = &root; /* root may claim any uid */
	assert_int_equal(creds_of_call(&r, &c), CREDS_AUTH_OK);
	assert_int_equal(c.uid, 1000);
	assert_true(c.claimed);

	r.cred_flavor = CREDS_AUTH_NONE;
	assert_int_equal(creds_of_call(&r, &c), CREDS_AUTH_BADCRED);
	r.cred_len = 0;
	assert_int_equal(creds_of_call(&r, &c), CREDS_AUTH_OK);
	assert_false(c.anon);
	assert_false(c.claimed);
	assert_int_equal(c.uid, 0);
	r.peer = &user;
	assert_int_equal(creds_of_call(&r, &c), CREDS_AUTH_OK);
	assert_int_equal(c.uid, 7);
	r.peer = &net;
	assert_int_equal(creds_of_call(&r, &c), CREDS_AUTH_OK);
	assert_true(c.anon);
	assert_false(c.claimed);
	r.cred_flavor = 6; /* RPCSEC_GSS */
	assert_int_equal(creds_of_call(&r, &c), CREDS_AUTH_REJECTEDCRED);
	r.cred_flavor = CREDS_AUTH_SYS;
	assert_int_equal(creds_of_call(&r, &c), CREDS_AUTH_BADCRED);
}

/* credentials, and what an export with the anonymous ids 11 and 12 makes of them */
static const struct {
	const char *who;
	struct creds in;
	struct seen {
		uint32_t uid, gid, ngroups, groups[3];
	} none, root, all;
} squashes[] = {
	{ "a user",
	  { .uid = 5, .gid = 6, .ngroups = 2, .groups = { 7, 8 } },
	  { 5, 6, 2, { 7, 8 } },
	  { 5, 6, 2, { 7, 8 } },
	  { 11, 12, 0, { 0 } } },
	{ "root",
	  { .uid = 0, .gid = 0, .ngroups = 2, .groups = { 0, 5 } },
	  { 0, 0, 2, { 0, 5 } },
	  { 11, 12, 2, { 12, 5 } },
	  { 11, 12, 0, { 0 } } },
	{ "root with a group of users",
	  { .uid = 0, .gid = 6 },
	  { 0, 6, 0, { 0 } },
	  { 11, 6, 0, { 0 } },
	  { 11, 12, 0, { 0 } } },
	{ "a user with root's group",
	  { .uid = 5, .gid = 0 },
	  { 5, 0, 0, { 0 } },
	  { 5, 12, 0, { 0 } },
	  { 11, 12, 0, { 0 } } },
	{ "a user with root's group among others",
	  { .uid = 5, .gid = 6, .ngroups = 3, .groups = { 7, 0, 8 } },
	  { 5, 6, 3, { 7, 0, 8 } },
	  { 5, 6, 3, { 7, 12, 8 } },
	  { 11, 12, 0, { 0 } } },
	{ "nobody: who says nothing, also where root may be root",
	  { .anon = true },
	  { 11, 12, 0, { 0 } },
	  { 11, 12, 0, { 0 } },
	  { 11, 12, 0, { 0 } } },
	{ "a uid that is none",
	  { .uid = UINT32_MAX, .gid = 6, .ngroups = 1, .groups = { 7 } },
	  { 11, 12, 0, { 0 } },
	  { 11, 12, 0, { 0 } },
	  { 11, 12, 0, { 0 } } },
	{ "a gid that is none",
	  { .uid = 5, .gid = UINT32_MAX, .ngroups = 1, .groups = { 7 } },
	  { 11, 12, 0, { 0 } },
	  { 11, 12, 0, { 0 } },
	  { 11, 12, 0, { 0 } } },
	{ "groups that are none: setgroups() would refuse all of them",
	  { .uid = 5, .gid = 6, .ngroups = 3, .groups = { UINT32_MAX, 7, UINT32_MAX } },
	  { 5, 6, 1, { 7 } },
	  { 5, 6, 1, { 7 } },
	  { 11, 12, 0, { 0 } } },
};

static void check_squash(const char *who, const struct creds *in, const struct export_conf *e,
			 const struct seen *want)
{
	struct creds c = *in;

	creds_squash(&c, e);
	if (c.uid != want->uid || c.gid != want->gid || c.ngroups != want->ngroups ||
	    memcmp(c.groups, want->groups, want->ngroups * sizeof(c.groups[0])) != 0)
		fail_msg("%s is %u:%u with %u groups at squash %d", who, c.uid, c.gid, c.ngroups,
			 (int)e->squash);
}

static void squash(void **state)
{
	struct creds root = { 0 };
	struct export_conf e;

	(void)state;
	export_conf_init(&e);
	assert_int_equal(e.squash, EXPORT_SQUASH_ROOT);
	creds_squash(&root, &e);
	assert_int_equal(root.uid, EXPORT_ANON_ID);
	assert_int_equal(root.gid, EXPORT_ANON_ID);
	e.anonuid = 11;
	e.anongid = 12;
	for (size_t i = 0; i < ARRAY_SIZE(squashes); i++) {
		e.squash = EXPORT_SQUASH_NONE;
		check_squash(squashes[i].who, &squashes[i].in, &e, &squashes[i].none);
		e.squash = EXPORT_SQUASH_ROOT;
		check_squash(squashes[i].who, &squashes[i].in, &e, &squashes[i].root);
		e.squash = EXPORT_SQUASH_ALL;
		check_squash(squashes[i].who, &squashes[i].in, &e, &squashes[i].all);
	}
	/* an export may map users to root */
	e.anonuid = e.anongid = 0;
	check_squash("anybody", &squashes[0].in, &e, &(struct seen){ 0, 0, 0, { 0 } });
}

static void hash(void **state)
{
	struct creds a = { .uid = 5, .gid = 6, .ngroups = 1, .groups = { 7 } }, b = a;

	(void)state;
	b.groups[1] = 99; /* beyond ngroups: nothing */
	assert_true(creds_hash(&a) == creds_hash(&b));
	b.groups[0] = 8;
	assert_true(creds_hash(&a) != creds_hash(&b));
	b = a;
	b.uid++;
	assert_true(creds_hash(&a) != creds_hash(&b));
	b = a;
	b.gid++;
	assert_true(creds_hash(&a) != creds_hash(&b));
	b = a;
	b.ngroups = CREDS_GROUPS_MAX;
	a = b;
	assert_true(creds_hash(&a) == creds_hash(&b));
	b.groups[CREDS_GROUPS_MAX - 1]++;
	assert_true(creds_hash(&a) != creds_hash(&b));
}

static void act(void **state)
{
	struct creds c = { .uid = 12345, .gid = 54321, .ngroups = CREDS_GROUPS_MAX };
	struct tmp_dir t;
	struct stat st;
	int fd;

	(void)state;
	if (geteuid())
		skip();
	for (uint32_t i = 0; i < CREDS_GROUPS_MAX; i++)
		c.groups[i] = 777 + CREDS_GROUPS_MAX - 1 - i;
	tmp_dir_create(&t);
	assert_int_equal(chmod(t.path, 0777), 0);
	tmp_dir_write(&t, "roots", "secret");
	assert_int_equal(chmod(tmp_dir_path(&t, "roots"), 0600), 0);
	tmp_dir_write(&t, "groups", "shared");
	assert_int_equal(chown(tmp_dir_path(&t, "groups"), 0, 777), 0);
	assert_int_equal(chmod(tmp_dir_path(&t, "groups"), 0640), 0);

	assert_int_equal(creds_assume(&c), 0);
	fd = open(tmp_dir_path(&t, "mine"), O_CREAT | O_EXCL | O_WRONLY, 0644);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(open(tmp_dir_path(&t, "roots"), O_RDONLY), -1);
	assert_int_equal(errno, EACCES);
	fd = open(tmp_dir_path(&t, "groups"), O_RDONLY);
	assert_true(fd >= 0);
	close(fd);
	creds_resume();

	fd = open(tmp_dir_path(&t, "roots"), O_RDONLY);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(stat(tmp_dir_path(&t, "mine"), &st), 0);
	assert_int_equal(st.st_uid, 12345);
	assert_int_equal(st.st_gid, 54321);
	tmp_dir_destroy(&t);
}

static bool may_exceed(void)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	assert_int_equal(syscall(SYS_capget, &hdr, data), 0);
	return data[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective & CAP_TO_MASK(CAP_SYS_RESOURCE);
}

/* CAP_SYS_RESOURCE overrides quotas: requests of root have it, others do not */
static void quotas(void **state)
{
	struct creds root = { .uid = 0, .gid = 0 }, groups = { .uid = 0, .gid = 777 },
		     other = { .uid = 12345, .gid = 54321 };

	(void)state;
	if (geteuid() || !might_exceed)
		skip();
	assert_false(may_exceed());
	assert_int_equal(creds_assume(&other), 0);
	assert_false(may_exceed());
	creds_resume();
	assert_false(may_exceed());
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(creds_assume(i ? &groups : &root), 0);
		assert_true(may_exceed());
		creds_resume();
		assert_false(may_exceed());
	}
	groups.ngroups = 1u << 17; /* more than the kernel accepts */
	assert_int_equal(creds_assume(&groups), -EPERM);
	assert_false(may_exceed());
	(void)creds_init(); /* a second server of this process */
	assert_int_equal(creds_assume(&root), 0);
	assert_true(may_exceed());
	creds_resume();
}

static int setup(void **state)
{
	(void)state;
	might_exceed = may_exceed();
	creds_init();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse),  cmocka_unit_test(whom_to_believe),
		cmocka_unit_test(squash), cmocka_unit_test(hash),
		cmocka_unit_test(act),	  cmocka_unit_test(quotas),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
