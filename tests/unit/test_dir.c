/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_dir.c - directories are read in pages, from servers of every temper
 */
#include <stdio.h>

#include "cache.h"
#include "fake_rpc.h"

#define PER_REPLY 7
#define MANY 1000000u

static struct leat *m;
static unsigned entries;       /* in the directory */
static unsigned per_reply;
static unsigned long countdown; /* to the allocation of the client that fails; 0: none does */
static bool failed;
static bool no_plus;           /* READDIRPLUS is not supported */
static unsigned bad_cookies;   /* the number of replies that say BAD_COOKIE */
static const char *odd_name;   /* of entry 3 */
static bool stuck;             /* cookies do not move */
static bool zero_cookies;
static bool with_handles;
static bool empty_replies;
static uint32_t cancel_in;     /* procedure during which the operation is cancelled; its reply comes nevertheless */
static uint32_t counts[64];    /* bytes asked for, of the first calls */
static unsigned asked;

static char *name_of(unsigned i)
{
	char name[64];

	snprintf(name, sizeof(name), "entry-%u", i);
	return strdup(i == 3 && odd_name ? odd_name : name);
}

static bool fails(void)
{
	if (!countdown || --countdown)
		return false;
	failed = true;
	return true;
}

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes)
{
	return fails() ? NULL : __real_calloc(n, bytes);
}

void *__real_reallocarray(void *mem, size_t n, size_t bytes);
void *__wrap_reallocarray(void *mem, size_t n, size_t bytes);
void *__wrap_reallocarray(void *mem, size_t n, size_t bytes)
{
	return fails() ? NULL : __real_reallocarray(mem, n, bytes);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : __real_strdup(text);
}

static nfsstat3 refuse(uint64_t cookie)
{
	if (cookie > entries)
		return NFS3ERR_BAD_COOKIE;
	if (cookie && bad_cookies) {
		bad_cookies--;
		return NFS3ERR_BAD_COOKIE;
	}
	return NFS3_OK;
}

static void give_attr(post_op_attr *a, ftype3 type)
{
	a->attributes_follow = TRUE;
	if (cancel_in) /* no pointer of other results at the same place is NULL */
		memset(&a->post_op_attr_u, 0x5a, sizeof(a->post_op_attr_u));
	a->post_op_attr_u.attributes.type = type;
}

static void give_handle(entryplus3 *e)
{
	nfs_fh3 *fh = &e->name_handle.post_op_fh3_u.handle;

	e->name_handle.handle_follows = TRUE;
	fh->data.data_len = sizeof(e->fileid);
	fh->data.data_val = malloc(sizeof(e->fileid));
	memcpy(fh->data.data_val, &e->fileid, sizeof(e->fileid));
	give_attr(&e->name_attributes, NF3REG);
}

static void answer_lookup(LOOKUP3resok *ok)
{
	ok->object.data.data_len = cancel_in ? 1 : 4; /* 1: TRUE in other results */
	memcpy(ok->object.data.data_val, "file", 4);
	give_attr(&ok->obj_attributes, cancel_in ? NF3DIR : NF3REG);
	give_attr(&ok->dir_attributes, NF3DIR);
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
	if (with_handles)
		give_attr(&r->READDIRPLUS3res_u.resok.dir_attributes, NF3DIR);
	for (uint64_t i = a->cookie; i < entries && i < a->cookie + per_reply && !empty_replies;
	     i++) {
		entryplus3 *e = calloc(1, sizeof(*e));

		e->fileid = 1000 + i;
		e->name = name_of((unsigned)i);
		e->cookie = zero_cookies ? 0 : stuck ? 1 : i + 1;
		e->name_attributes.attributes_follow = i % 2;
		e->name_attributes.post_op_attr_u.attributes.type = NF3REG;
		e->name_attributes.post_op_attr_u.attributes.size = i;
		if (with_handles)
			give_handle(e);
		*link = e;
		link = &e->nextentry;
	}
	r->READDIRPLUS3res_u.resok.reply.eof = a->cookie + per_reply >= entries;
}

static void answer_plain(const READDIR3args *a, READDIR3res *r)
{
	entry3 **link = &r->READDIR3res_u.resok.reply.entries;

	r->status = refuse(a->cookie);
	if (r->status)
		return;
	memcpy(r->READDIR3res_u.resok.cookieverf, "verifier", 8);
	for (uint64_t i = a->cookie; i < entries && i < a->cookie + per_reply; i++) {
		entry3 *e = calloc(1, sizeof(*e));

		e->fileid = 1000 + i;
		e->name = name_of((unsigned)i);
		e->cookie = i + 1;
		*link = e;
		link = &e->nextentry;
	}
	r->READDIR3res_u.resok.reply.eof = a->cookie + per_reply >= entries;
}

static int answer(struct rpcrdma_call *call)
{
	unsigned long left = countdown;

	countdown = 0; /* the server does not fail */
	if (call->proc == cancel_in)
		assert_int_equal(leat_cancel_all(m), 0);
	if (call->proc == NFSPROC3_GETATTR) {
		((GETATTR3res *)call->res)->GETATTR3res_u.resok.obj_attributes.type = NF3DIR;
	} else if (call->proc == NFSPROC3_LOOKUP) {
		answer_lookup(&((LOOKUP3res *)call->res)->LOOKUP3res_u.resok);
	} else if (call->proc == NFSPROC3_READDIRPLUS) {
		answer_plus(call->args, call->res);
	} else {
		assert_int_equal(call->proc, NFSPROC3_READDIR);
		answer_plain(call->args, call->res);
	}
	countdown = left;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	m = fake_mount(1);
	fake.answer = answer;
	entries = bad_cookies = asked = cancel_in = 0;
	per_reply = PER_REPLY;
	no_plus = stuck = zero_cookies = with_handles = empty_replies = false;
	odd_name = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_umount(m);
	return 0;
}

static void check_entry(const struct leat_dirent *e, unsigned i, bool stats)
{
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

/* Reads on from entry @i to the end, twice. */
static void check_rest(struct leat_dir *d, unsigned i, bool stats)
{
	const struct leat_dirent *e;

	for (; i < entries; i++) {
		assert_int_equal(leat_readdir(d, &e), 1);
		check_entry(e, i, stats);
	}
	assert_int_equal(leat_readdir(d, &e), 0);
	assert_int_equal(leat_readdir(d, &e), 0);
}

static void check(unsigned n, bool stats)
{
	struct leat_dir *d;

	entries = n;
	assert_int_equal(leat_opendir(m, "/", &d), 0);
	check_rest(d, 0, stats);
	assert_int_equal(leat_rewinddir(d), 0);
	check_rest(d, 0, stats);
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

/* Pages by cookie: the first needs no call, and the end is known. */
static void pages(void **state)
{
	const unsigned *calls = &fake.by_proc[NFSPROC3_READDIRPLUS];
	struct leat_dir *d;
	unsigned n = 0;
	ssize_t got;

	(void)state;
	entries = 5 * PER_REPLY + 3;
	assert_int_equal(leat_opendir(m, "/", &d), 0);
	assert_int_equal(leat_dir_read(d, 0), PER_REPLY);
	assert_int_equal(*calls, 1);
	for (uint64_t cookie = 0; (got = leat_dir_read(d, cookie)) > 0;) {
		for (size_t i = 0; i < (size_t)got; i++) {
			check_entry(leat_dir_entry(d, i), n++, true);
			cookie = leat_dir_entry(d, i)->cookie;
		}
		assert_null(leat_dir_entry(d, (size_t)got));
	}
	assert_int_equal(got, 0);
	assert_null(leat_dir_entry(d, 0));
	assert_int_equal(n, entries);
	assert_int_equal(*calls, 7);

	/* one from the middle; leat_readdir() goes on from there, whatever it had read */
	assert_int_equal(leat_dir_read(d, 10), PER_REPLY);
	check_entry(leat_dir_entry(d, 0), 10, true);
	check_rest(d, 10, true);
	assert_int_equal(leat_dir_read(d, 20), PER_REPLY);
	check_entry(leat_dir_entry(d, PER_REPLY - 1), 20 + PER_REPLY - 1, true);
	check_rest(d, 20, true);
	assert_int_equal(leat_dir_read(d, 0), PER_REPLY);
	check_rest(d, 0, true);
	leat_closedir(d);
}

static void without_plus(void **state)
{
	(void)state;
	no_plus = true;
	check(100, false);
	assert_int_equal(fake.by_proc[NFSPROC3_READDIRPLUS], 1);
}

/* What was read stays valid for the caller; the position too. */
static void cookies_disowned(void **state)
{
	const struct leat_dirent *e;
	struct leat_dir *d;

	(void)state;
	entries = 50;
	assert_int_equal(leat_opendir(m, "/", &d), 0);
	for (unsigned i = 0; i < PER_REPLY; i++)
		assert_int_equal(leat_readdir(d, &e), 1);
	bad_cookies = 2;
	assert_int_equal(leat_readdir(d, &e), -ESTALE);
	assert_non_null(strstr(leat_error(m), "BAD_COOKIE"));
	assert_int_equal(leat_readdir(d, &e), -ESTALE);
	check_rest(d, PER_REPLY, true);
	bad_cookies = 1;
	assert_int_equal(leat_dir_read(d, 5), -ESTALE);
	assert_null(leat_dir_entry(d, 0));
	assert_int_equal(leat_dir_read(d, 1u << 30), -ESTALE); /* never was */
	assert_int_equal(leat_dir_read(d, UINT64_MAX), -ESTALE);
	assert_int_equal(leat_rewinddir(d), 0);
	check_rest(d, 0, true);
	leat_closedir(d);
}

static void nonsense(void **state)
{
	static char long_name[300];
	const struct leat_dirent *e;
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
	zero_cookies = true;
	assert_int_equal(leat_opendir(m, "/", &d), -EREMOTEIO);
	zero_cookies = false;
	stuck = true;
	assert_int_equal(leat_opendir(m, "/", &d), 0);
	for (unsigned i = 0; i < PER_REPLY; i++)
		assert_int_equal(leat_readdir(d, &e), 1);
	assert_int_equal(leat_readdir(d, &e), -EREMOTEIO);
	leat_closedir(d);
	stuck = false;
	assert_int_equal(leat_opendir(m, "/", &d), 0);
	zero_cookies = true;
	assert_int_equal(leat_dir_read(d, PER_REPLY), -EREMOTEIO);
	zero_cookies = false;
	leat_closedir(d);
	empty_replies = true;
	assert_int_equal(leat_opendir(m, "/", &d), -EREMOTEIO);
}

static void nothing(void **state)
{
	const struct leat_dirent *e;

	(void)state;
	assert_int_equal(leat_dir_read(NULL, 0), -EBADF);
	assert_int_equal(leat_aio_dir_read(NULL, 0, (struct leat_cb){ 0 }), -EBADF);
	assert_int_equal(leat_readdir(NULL, &e), -EBADF);
	assert_int_equal(leat_rewinddir(NULL), -EBADF);
	assert_null(leat_dir_entry(NULL, 0));
	leat_closedir(NULL);
}

struct told {
	unsigned times;
	int64_t result;
};

static void tell(void *arg, int64_t result)
{
	struct told *t = arg;

	t->times++;
	t->result = result;
}

/* One read at a time; the page is the read's until it ends. */
static void in_flight(void **state)
{
	struct told told = { 0 };
	struct leat_cb cb = { .fn = tell, .user_data = &told };
	const struct leat_dirent *e;
	struct leat_dir *d;

	(void)state;
	entries = 50;
	assert_int_equal(leat_opendir(m, "/", &d), 0);
	assert_int_equal(leat_aio_dir_read(d, 7, cb), 0);
	assert_int_equal(leat_aio_dir_read(d, 7, cb), -EBUSY);
	assert_int_equal(leat_readdir(d, &e), -EBUSY);
	assert_int_equal(leat_rewinddir(d), -EBUSY);
	assert_null(leat_dir_entry(d, 0));
	assert_int_equal(told.times, 0);
	while (!told.times)
		leat_poll(leat_session(m), 0);
	assert_int_equal(told.result, PER_REPLY);
	check_entry(leat_dir_entry(d, 0), 7, true);

	/* closed while a call is in flight, or the end only not told yet */
	assert_int_equal(leat_aio_dir_read(d, 14, cb), 0);
	leat_closedir(d);
	while (told.times < 2)
		leat_poll(leat_session(m), 0);
	assert_int_equal(told.result, -ECANCELED);
	assert_int_equal(leat_opendir(m, "/", &d), 0);
	assert_int_equal(leat_aio_dir_read(d, 0, cb), 0);
	leat_closedir(d);
	while (told.times < 3)
		leat_poll(leat_session(m), 0);
	assert_int_equal(told.times, 3);
}

/* Between two calls, with the results of the first in the memory of those of the second; and during a read. */
static void cancelled(void **state)
{
	struct told told = { 0 };
	struct leat_dir *d;

	(void)state;
	entries = 50;
	cancel_in = NFSPROC3_LOOKUP;
	assert_int_equal(leat_opendir(m, "/dir", &d), -ECANCELED);
	cancel_in = NFSPROC3_GETATTR;
	assert_int_equal(leat_opendir(m, "/", &d), -ECANCELED);
	cancel_in = 0;
	assert_int_equal(fake.by_proc[NFSPROC3_READDIRPLUS], 0);
	assert_int_equal(leat_opendir(m, "/", &d), 0);
	assert_int_equal(leat_aio_dir_read(d, 7, (struct leat_cb){ tell, &told, NULL }), 0);
	assert_int_equal(leat_cancel(m, &told), 0);
	while (!told.times)
		leat_poll(leat_session(m), 0);
	assert_int_equal(told.result, -ECANCELED);
	check_rest(d, 7, true); /* from where the read was to begin */
	leat_closedir(d);
}

/* A directory outlives its mount, and can only be closed then. */
static void unmounted(void **state)
{
	const struct leat_dirent *e;
	struct leat_dir *d[3];

	(void)state;
	entries = 50;
	for (unsigned i = 0; i < ARRAY_SIZE(d); i++)
		assert_int_equal(leat_opendir(m, "/", &d[i]), 0);
	leat_closedir(d[1]);
	leat_umount(m);
	m = NULL;
	assert_int_equal(leat_readdir(d[0], &e), -ESTALE);
	assert_int_equal(leat_dir_read(d[0], 0), -ESTALE);
	assert_int_equal(leat_aio_dir_read(d[0], 0, (struct leat_cb){ 0 }), -ESTALE);
	leat_closedir(d[0]);
	leat_closedir(d[2]);
}

/* Lists all, and goes on after a failure. Return: failures */
static unsigned list_all(void)
{
	const struct leat_dirent *e;
	unsigned n = 0, failures = 0;
	struct leat_dir *d;
	int rc;

	for (; (rc = leat_opendir(m, "/", &d)) != 0; failures++)
		assert_int_equal(rc, -ENOMEM);
	while ((rc = leat_readdir(d, &e)) != 0) {
		assert_true(rc == 1 || rc == -ENOMEM);
		if (rc == 1)
			assert_int_equal(e->ino, 1000 + n++);
		else
			failures++;
	}
	leat_closedir(d);
	assert_int_equal(n, entries);
	return failures;
}

/* Each allocation fails once; only the cache can do without. */
static void no_memory(void **state)
{
	unsigned n = 0, failures = 0;

	(void)state;
	entries = 200;
	per_reply = 100;
	do {
		unsigned now;

		failed = false;
		countdown = ++n;
		now = list_all();
		countdown = 0;
		assert_true(now <= failed);
		failures += now;
	} while (failed);
	assert_true(failures > 8);
	print_message("%u allocations, %u failures\n", n, failures);
}

/* A long listing evicts nothing from the cache. */
static void cached(void **state)
{
	const unsigned *lookups = &fake.by_proc[NFSPROC3_LOOKUP];
	const struct leat_dirent *e;
	struct leat_dir *d;
	struct stat st;

	(void)state;
	entries = 2 * LT_CACHE_ENTRIES;
	per_reply = 100;
	with_handles = true;
	assert_int_equal(leat_stat(m, "/kept", &st), 0);
	assert_int_equal(leat_opendir(m, "/", &d), 0);
	while (leat_readdir(d, &e) == 1)
		;
	leat_closedir(d);
	assert_int_equal(*lookups, 1);
	assert_int_equal(leat_stat(m, "/kept", &st), 0);
	assert_int_equal(leat_stat(m, "/entry-1", &st), 0);
	assert_int_equal(*lookups, 1);
	assert_int_equal(leat_stat(m, "/entry-30000", &st), 0);
	assert_int_equal(*lookups, 2);
}

/* Peak of this process in KiB. */
static unsigned long peak_kib(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	unsigned long kib = 0;
	char line[128];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		(void)sscanf(line, "VmHWM: %lu", &kib);
	fclose(f);
	assert_true(kib > 0);
	return kib;
}

/* A listing of any length needs the memory of a page. Sanitizers keep freed memory. */
static void many(void **state)
{
	const struct leat_dirent *e;
	struct leat_dir *d;
	unsigned n = 0;
	unsigned long before;

	(void)state;
	entries = MANY;
	per_reply = 400;
	before = peak_kib();
	assert_int_equal(leat_opendir(m, "/", &d), 0);
	while (leat_readdir(d, &e) == 1)
		n++;
	assert_int_equal(n, MANY);
	leat_closedir(d);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	print_message("%u entries: %lu KiB\n", n, peak_kib() - before);
	assert_true(peak_kib() - before < 4096);
#else
	(void)before;
#endif
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(sizes),
		TEST(pages),
		TEST(without_plus),
		TEST(cookies_disowned),
		TEST(nonsense),
		TEST(nothing),
		TEST(in_flight),
		TEST(cancelled),
		TEST(unmounted),
		TEST(no_memory),
		TEST(many),
		TEST(cached),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
