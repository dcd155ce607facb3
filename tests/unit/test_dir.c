/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_dir.c - directories are read whole, from servers of every temper
 */
#include "fake_rpc.h"

#define PER_REPLY 7

static struct leat *m;
static unsigned entries;       /* in the directory */
static bool no_plus;           /* READDIRPLUS is not supported */
static unsigned bad_cookies;   /* the number of replies that say BAD_COOKIE */
static const char *odd_name;   /* of entry 3 */
static bool stuck;             /* cookies do not move */
static bool empty_replies;
static uint32_t counts[64];    /* bytes asked for, of the first calls */
static unsigned asked;

static char *name_of(unsigned i)
{
	char name[64];

	snprintf(name, sizeof(name), "entry-%u", i);
	return strdup(i == 3 && odd_name ? odd_name : name);
}

static nfsstat3 refuse(uint64_t cookie)
{
	if (cookie && bad_cookies) {
		bad_cookies--;
		return NFS3ERR_BAD_COOKIE;
	}
	return NFS3_OK;
}

static void answer_plus(const READDIRPLUS3args *a, READDIRPLUS3res *r)
{
	entryplus3 **link = &r->READDIRPLUS3res_u.resok.reply.entries;

	if (asked < ARRAY_SIZE(counts))
		counts[asked++] = a->maxcount;
	r->status = no_plus ? NFS3ERR_NOTSUPP : refuse(a->cookie);
	if (r->status)
		return;
	if (a->cookie)
		assert_memory_equal(a->cookieverf, "verifier", 8);
	memcpy(r->READDIRPLUS3res_u.resok.cookieverf, "verifier", 8);
	for (uint64_t i = a->cookie; i < entries && i < a->cookie + PER_REPLY && !empty_replies;
	     i++) {
		entryplus3 *e = calloc(1, sizeof(*e));

		e->fileid = 1000 + i;
		e->name = name_of((unsigned)i);
		e->cookie = stuck ? 1 : i + 1;
		e->name_attributes.attributes_follow = i % 2;
		e->name_attributes.post_op_attr_u.attributes.type = NF3REG;
		e->name_attributes.post_op_attr_u.attributes.size = i;
		*link = e;
		link = &e->nextentry;
	}
	r->READDIRPLUS3res_u.resok.reply.eof = a->cookie + PER_REPLY >= entries;
}

static void answer_plain(const READDIR3args *a, READDIR3res *r)
{
	entry3 **link = &r->READDIR3res_u.resok.reply.entries;

	r->status = refuse(a->cookie);
	if (r->status)
		return;
	memcpy(r->READDIR3res_u.resok.cookieverf, "verifier", 8);
	for (uint64_t i = a->cookie; i < entries && i < a->cookie + PER_REPLY; i++) {
		entry3 *e = calloc(1, sizeof(*e));

		e->fileid = 1000 + i;
		e->name = name_of((unsigned)i);
		e->cookie = i + 1;
		*link = e;
		link = &e->nextentry;
	}
	r->READDIR3res_u.resok.reply.eof = a->cookie + PER_REPLY >= entries;
}

static int answer(struct rpcrdma_call *call)
{
	if (call->proc == NFSPROC3_GETATTR) {
		((GETATTR3res *)call->res)->GETATTR3res_u.resok.obj_attributes.type = NF3DIR;
	} else if (call->proc == NFSPROC3_READDIRPLUS) {
		answer_plus(call->args, call->res);
	} else {
		assert_int_equal(call->proc, NFSPROC3_READDIR);
		answer_plain(call->args, call->res);
	}
	return 0;
}

static int setup(void **state)
{
	(void)state;
	m = fake_mount(1);
	fake.answer = answer;
	entries = bad_cookies = asked = 0;
	no_plus = stuck = empty_replies = false;
	odd_name = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_umount(m);
	return 0;
}

static void check(unsigned n, bool stats)
{
	struct leat_dir *d;

	entries = n;
	assert_int_equal(leat_opendir(m, "/", &d), 0);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < n; i++) {
			const struct leat_dirent *e = leat_readdir(d);
			char *name = name_of(i);

			assert_non_null(e);
			assert_string_equal(e->name, name);
			assert_int_equal(e->ino, 1000 + i);
			assert_int_equal(e->cookie, i + 1);
			assert_int_equal(e->has_stat, stats && i % 2);
			if (e->has_stat)
				assert_int_equal(e->st.st_size, i);
			free(name);
		}
		assert_null(leat_readdir(d));
		assert_null(leat_readdir(d));
		leat_rewinddir(d);
	}
	leat_closedir(d);
}

static void sizes(void **state)
{
	(void)state;
	check(0, true);
	check(1, true);
	check(PER_REPLY, true);
	check(PER_REPLY + 1, true);
	asked = 0;
	check(5000, true);
	assert_int_equal(counts[0], 32768); /* the first is small, */
	assert_int_equal(counts[1], 65536); /* as most directories are */
}

static void without_plus(void **state)
{
	(void)state;
	no_plus = true;
	check(100, false);
	assert_int_equal(fake.by_proc[NFSPROC3_READDIRPLUS], 1);
}

static void cookies_disowned(void **state)
{
	struct leat_dir *d;

	(void)state;
	bad_cookies = 3;
	check(50, true);
	bad_cookies = 4;
	assert_int_equal(leat_opendir(m, "/", &d), -ESTALE);
	assert_non_null(strstr(leat_error(m), "BAD_COOKIE"));
}

static void nonsense(void **state)
{
	static char long_name[300];
	struct leat_dir *d;

	(void)state;
	entries = 20;
	memset(long_name, 'x', 256);
	odd_name = "../../etc/passwd";
	assert_int_equal(leat_opendir(m, "/", &d), -EREMOTEIO);
	odd_name = "";
	assert_int_equal(leat_opendir(m, "/", &d), -EREMOTEIO);
	odd_name = long_name;
	assert_int_equal(leat_opendir(m, "/", &d), -EREMOTEIO);
	odd_name = NULL;
	stuck = true;
	assert_int_equal(leat_opendir(m, "/", &d), -EREMOTEIO);
	stuck = false;
	empty_replies = true;
	assert_int_equal(leat_opendir(m, "/", &d), -EREMOTEIO);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(sizes),
		TEST(without_plus),
		TEST(cookies_disowned),
		TEST(nonsense),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
