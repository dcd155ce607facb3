/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_removed.c - files removed while they are open, on a server that refuses or fails as told; and what earlier
 *                  mounts have left behind
 */
#include <stdio.h>
#include <time.h>

#include "fake_rpc.h"
#include "removed.h"

#define DAY 86400

static struct leat *m;
static char history[4096];           /* calls with the names they change: "LOOKUP f;REMOVE f;" */
static char made[LT_REMOVED_BYTES];  /* the last hidden name */
static uint32_t nlink;
static bool no_attributes, is_gone;
static struct {
	uint32_t proc;
	nfsstat3 status;
	int err;                     /* of the RPC */
} failure;                           /* of the next call of that procedure */
static unsigned long countdown;      /* to the allocation that fails; 0: none does */
static bool failed;

/* what a listing shows */
static const char *listed;
static ftype3 listed_type;
static uint32_t listed_age, listed_ctime, server_now; /* in seconds; the server's time when it is asked */
static bool guard_fails, bare;
static unsigned many;                /* entries */

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n)
{
	if (!countdown || --countdown)
		return __real_malloc(n);
	failed = true;
	return NULL;
}

static void note(const char *what, const char *name)
{
	size_t len = strlen(history);
	bool is_hidden = !strncmp(name, LT_REMOVED_PREFIX, 14) && (!listed || strcmp(name, listed) != 0);

	if (is_hidden)
		snprintf(made, sizeof(made), "%s", name);
	snprintf(history + len, sizeof(history) - len, "%s %s;", what, is_hidden ? "hidden" : name);
}

static void give_attr(post_op_attr *a)
{
	a->attributes_follow = !no_attributes;
	a->post_op_attr_u.attributes.type = NF3REG;
	a->post_op_attr_u.attributes.nlink = nlink;
}

static void give_handle(nfs_fh3 *fh, const char *bytes)
{
	fh->data.data_len = 4;
	memcpy(fh->data.data_val, bytes, 4);
}

static void answer_lookup(const LOOKUP3args *a, LOOKUP3res *r)
{
	note("LOOKUP", a->what.name);
	if (is_gone) {
		r->status = NFS3ERR_NOENT;
		return;
	}
	give_handle(&r->LOOKUP3res_u.resok.object, a->what.name[0] == 'o' ? "othr" : "file");
	give_attr(&r->LOOKUP3res_u.resok.obj_attributes);
}

static void add_listed(READDIRPLUS3resok *ok)
{
	entryplus3 *e = calloc(1, sizeof(*e));
	fattr3 *a = &e->name_attributes.post_op_attr_u.attributes;

	e->nextentry = ok->reply.entries;
	ok->reply.entries = e;
	ok->reply.eof = TRUE;
	e->name = strdup(listed);
	e->cookie = 1;
	e->name_attributes.attributes_follow = !bare;
	a->type = listed_type;
	a->ctime.seconds = listed_ctime = (uint32_t)time(NULL) - listed_age;
	e->name_handle.handle_follows = TRUE;
	e->name_handle.post_op_fh3_u.handle.data.data_val = malloc(4);
	give_handle(&e->name_handle.post_op_fh3_u.handle, "left");
}

static void answer_list(READDIRPLUS3res *r)
{
	for (unsigned i = 0; i < many; i++)
		add_listed(&r->READDIRPLUS3res_u.resok);
}

/* All others wait until nothing else does. */
static unsigned listing_first(unsigned calls)
{
	for (unsigned i = 0; i < calls; i++) {
		uint32_t proc = fake.waiting[i].call->proc;

		if (proc != NFSPROC3_SETATTR && proc != NFSPROC3_REMOVE)
			return i;
	}
	return 0;
}

static void answer_setattr(const SETATTR3args *a, SETATTR3res *r)
{
	post_op_attr *after = &r->SETATTR3res_u.resok.obj_wcc.after;

	note("SETATTR", a->guard.check ? "guarded" : "");
	assert_int_equal(a->new_attributes.atime.set_it, SET_TO_SERVER_TIME);
	assert_int_equal(a->new_attributes.mtime.set_it, DONT_CHANGE);
	if (!a->guard.check) {
		assert_memory_equal(a->object.data.data_val, "file", 4);
		return;
	}
	assert_int_equal(a->guard.sattrguard3_u.obj_ctime.seconds, listed_ctime);
	if (guard_fails) {
		r->status = NFS3ERR_NOT_SYNC;
		return;
	}
	after->attributes_follow = TRUE;
	after->post_op_attr_u.attributes.type = listed_type;
	after->post_op_attr_u.attributes.ctime.seconds = server_now;
}

static void answer_call(struct rpcrdma_call *call)
{
	const RENAME3args *rename = call->args;

	switch (call->proc) {
	case NFSPROC3_LOOKUP:
		answer_lookup(call->args, call->res);
		break;
	case NFSPROC3_GETATTR:
		((GETATTR3res *)call->res)->GETATTR3res_u.resok.obj_attributes.type = listed ? NF3DIR : NF3REG;
		((GETATTR3res *)call->res)->GETATTR3res_u.resok.obj_attributes.nlink = nlink;
		break;
	case NFSPROC3_ACCESS:
		note("ACCESS", "");
		((ACCESS3res *)call->res)->ACCESS3res_u.resok.access = ((const ACCESS3args *)call->args)->access;
		break;
	case NFSPROC3_RENAME:
		note("RENAME", rename->from.name);
		note("to", rename->to.name);
		break;
	case NFSPROC3_LINK:
		note("LINK", ((const LINK3args *)call->args)->link.name);
		break;
	case NFSPROC3_REMOVE:
		note("REMOVE", ((const REMOVE3args *)call->args)->object.name);
		break;
	case NFSPROC3_SETATTR:
		answer_setattr(call->args, call->res);
		break;
	case NFSPROC3_READDIRPLUS:
		answer_list(call->res);
		break;
	default:
		fail_msg("procedure %u", call->proc);
	}
}

static int answer(struct rpcrdma_call *call)
{
	unsigned long left = countdown;

	countdown = 0; /* the server does not fail */
	answer_call(call);
	countdown = left;
	if (call->proc != failure.proc)
		return 0;
	failure.proc = 0;
	memcpy(call->res, &failure.status, sizeof(failure.status));
	return failure.err;
}

static int setup(void **state)
{
	(void)state;
	m = fake_mount(1);
	fake.answer = answer;
	history[0] = made[0] = '\0';
	nlink = 1;
	no_attributes = is_gone = guard_fails = bare = false;
	failure.proc = 0;
	listed = NULL;
	many = 1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_umount(m);
	return 0;
}

static void expect(const char *want)
{
	assert_string_equal(history, want);
	history[0] = '\0';
}

static void fail_next(uint32_t proc, nfsstat3 status, int err)
{
	failure.proc = proc;
	failure.status = status;
	failure.err = err;
}

static void hidden_until_close(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY), *g = fake_open(m, O_RDONLY);

	(void)state;
	assert_int_equal(leat_unlink(m, "/f"), 0);
	expect("LOOKUP f;SETATTR ;RENAME f;to hidden;");
	assert_int_equal(leat_close(f), 0);
	expect("");
	assert_int_equal(leat_close(g), 0);
	expect("REMOVE hidden;");
	assert_int_equal(leat_unlink(m, "/f"), 0);
	expect("REMOVE f;");
}

static void not_the_last(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);

	(void)state;
	assert_int_equal(leat_unlink(m, "/other"), 0);
	expect("LOOKUP other;REMOVE other;");
	nlink = 2;
	assert_int_equal(leat_unlink(m, "/f"), 0);
	expect("LOOKUP f;REMOVE f;");
	no_attributes = true; /* they are asked for */
	assert_int_equal(leat_unlink(m, "/f"), 0);
	expect("LOOKUP f;REMOVE f;");
	nlink = 1;
	assert_int_equal(leat_unlink(m, "/f"), 0);
	expect("LOOKUP f;SETATTR ;RENAME f;to hidden;");
	assert_int_equal(leat_close(f), 0);
	expect("REMOVE hidden;");
}

/* A server that refuses the hidden name: as without one. */
static void refused(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);

	(void)state;
	fail_next(NFSPROC3_RENAME, NFS3ERR_ACCES, 0);
	assert_int_equal(leat_unlink(m, "/f"), 0);
	expect("LOOKUP f;SETATTR ;RENAME f;to hidden;REMOVE f;");
	fail_next(NFSPROC3_LINK, NFS3ERR_NOTSUPP, 0);
	assert_int_equal(leat_rename(m, "/g", "/f"), 0);
	expect("LOOKUP f;SETATTR ;LINK hidden;RENAME g;to f;");
	/* the rename itself: the hidden name goes */
	fail_next(NFSPROC3_RENAME, NFS3ERR_NOTDIR, 0);
	assert_int_equal(leat_rename(m, "/g", "/f"), -ENOTDIR);
	expect("LOOKUP f;SETATTR ;LINK hidden;RENAME g;to f;REMOVE hidden;");
	fail_next(NFSPROC3_LOOKUP, NFS3ERR_ACCES, 0);
	assert_int_equal(leat_unlink(m, "/f"), 0);
	expect("LOOKUP f;REMOVE f;");
	assert_int_equal(leat_close(f), 0);
	expect("");
}

/* A server that could hide the file at another time: the file stays as it is. */
static void failed_once(void **state)
{
	static const nfsstat3 statuses[] = { NFS3ERR_NOSPC, NFS3ERR_DQUOT, NFS3ERR_IO, NFS3ERR_SERVERFAULT };
	struct leat_file *f = fake_open(m, O_RDONLY);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		fail_next(NFSPROC3_LOOKUP, statuses[i], 0);
		assert_true(leat_unlink(m, "/f") < 0);
		expect("LOOKUP f;");
		fail_next(NFSPROC3_SETATTR, statuses[i], 0);
		assert_true(leat_unlink(m, "/f") < 0);
		expect("LOOKUP f;SETATTR ;");
		fail_next(NFSPROC3_RENAME, statuses[i], 0);
		assert_true(leat_unlink(m, "/f") < 0);
		expect("LOOKUP f;SETATTR ;RENAME f;to hidden;");
		fail_next(NFSPROC3_LINK, statuses[i], 0);
		assert_true(leat_rename(m, "/g", "/f") < 0);
		expect("LOOKUP f;SETATTR ;LINK hidden;");
	}
	assert_int_equal(leat_close(f), 0);
	expect("");
}

/* No sweep may take it for left behind, because its ctime does not move. */
static void not_touched(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);

	(void)state;
	fail_next(NFSPROC3_SETATTR, NFS3ERR_PERM, 0);
	assert_int_equal(leat_unlink(m, "/f"), 0);
	expect("LOOKUP f;SETATTR ;RENAME f;to hidden;");
	assert_string_equal(made + 30, "-keep");
	assert_int_equal(leat_close(f), 0);
	expect("REMOVE hidden;");
}

static void run_all(void)
{
	while (leat_poll(leat_session(m), 0) > 0)
		;
}

/* As long as the mount lives, the ctime of its files moves. */
static void touched_for_ever(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);

	(void)state;
	assert_int_equal(leat_unlink(m, "/f"), 0);
	assert_int_equal(strlen(made), 30);
	history[0] = '\0';
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(fake_hours_later(), 1);
		fail_next(NFSPROC3_SETATTR, NFS3ERR_IO, 0); /* once is no danger */
		run_all();
		expect("SETATTR ;");
	}
	assert_string_equal(leat_error(m), "");
	assert_int_equal(leat_close(f), 0);
	expect("REMOVE hidden;");
	assert_int_equal(fake_hours_later(), 1);
	run_all();
	expect("");
	assert_int_equal(fake_hours_later(), 0);
}

/* A server that does not reply for days: the calls do not pile up. */
static void touched_in_vain(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);

	(void)state;
	assert_int_equal(leat_unlink(m, "/f"), 0);
	fake.silent = true;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(fake_hours_later(), 1);
		run_all();
		assert_int_equal(fake.count, 1);
	}
	fake.silent = false;
	run_all();
	history[0] = '\0';
	assert_int_equal(fake_hours_later(), 1);
	run_all();
	expect("SETATTR ;");
	assert_int_equal(leat_close(f), 0);
	expect("REMOVE hidden;");
}

/* Nobody knows whether the hidden name exists: the last close removes it. */
static void in_transit(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);

	(void)state;
	fail_next(NFSPROC3_RENAME, NFS3_OK, -ETIMEDOUT);
	assert_int_equal(leat_unlink(m, "/f"), -ETIMEDOUT);
	expect("LOOKUP f;SETATTR ;RENAME f;to hidden;");
	fail_next(NFSPROC3_REMOVE, NFS3ERR_NOENT, 0);
	assert_int_equal(leat_close(f), 0);
	expect("REMOVE hidden;");

	f = fake_open(m, O_RDONLY);
	fail_next(NFSPROC3_LINK, NFS3_OK, -ETIMEDOUT);
	assert_int_equal(leat_rename(m, "/g", "/f"), -ETIMEDOUT);
	expect("LOOKUP f;SETATTR ;LINK hidden;");
	assert_int_equal(leat_close(f), 0);
	expect("REMOVE hidden;");

	f = fake_open(m, O_RDONLY);
	fail_next(NFSPROC3_RENAME, NFS3_OK, -ETIMEDOUT);
	assert_int_equal(leat_rename(m, "/g", "/f"), -ETIMEDOUT);
	expect("LOOKUP f;SETATTR ;LINK hidden;RENAME g;to f;");
	assert_int_equal(leat_close(f), 0);
	expect("REMOVE hidden;");
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

static void run(const struct told *a, const struct told *b)
{
	while (!a->times || !b->times)
		leat_poll(leat_session(m), 0);
}

/* The server takes its time for ACCESS. */
static unsigned access_last(unsigned calls)
{
	for (unsigned i = 0; i < calls; i++) {
		if (fake.waiting[i].call->proc != NFSPROC3_ACCESS)
			return i;
	}
	return 0;
}

/* A file that is being opened counts as open; also one of which the open fails. */
static void opened_meanwhile(void **state)
{
	struct told opened = { 0 }, removed = { 0 };
	struct leat_file *f;

	(void)state;
	assert_int_equal(leat_aio_open(m, "/f", O_RDONLY, 0, &f, (struct leat_cb){ tell, &opened, NULL }), 0);
	assert_int_equal(leat_aio_unlink(m, "/f", (struct leat_cb){ tell, &removed, NULL }), 0);
	run(&opened, &removed);
	assert_int_equal(opened.result, 0);
	assert_int_equal(removed.result, 0);
	expect("LOOKUP f;LOOKUP f;ACCESS ;SETATTR ;RENAME f;to hidden;");
	assert_int_equal(leat_close(f), 0);
	expect("REMOVE hidden;");

	opened.times = removed.times = 0;
	fail_next(NFSPROC3_ACCESS, NFS3ERR_ACCES, 0);
	assert_int_equal(leat_aio_open(m, "/f", O_RDONLY, 0, &f, (struct leat_cb){ tell, &opened, NULL }), 0);
	assert_int_equal(leat_aio_unlink(m, "/f", (struct leat_cb){ tell, &removed, NULL }), 0);
	run(&opened, &removed);
	assert_int_equal(opened.result, -EACCES);
	assert_int_equal(removed.result, 0);
	expect("LOOKUP f;LOOKUP f;ACCESS ;SETATTR ;RENAME f;to hidden;REMOVE hidden;");

	opened.times = removed.times = 0;
	fake.pick = access_last;
	fail_next(NFSPROC3_ACCESS, NFS3ERR_ACCES, 0);
	assert_int_equal(leat_aio_open(m, "/f", O_RDONLY, 0, &f, (struct leat_cb){ tell, &opened, NULL }), 0);
	assert_int_equal(leat_aio_unlink(m, "/f", (struct leat_cb){ tell, &removed, NULL }), 0);
	run(&opened, &removed);
	assert_int_equal(opened.result, -EACCES);
	assert_int_equal(removed.result, 0);
	expect("LOOKUP f;LOOKUP f;SETATTR ;RENAME f;to hidden;ACCESS ;REMOVE hidden;");
}

/* Closed before the hidden name exists. */
static void closed_meanwhile(void **state)
{
	struct told closed = { 0 }, removed = { 0 };
	struct leat_file *f = fake_open(m, O_RDONLY);

	(void)state;
	assert_int_equal(leat_aio_unlink(m, "/f", (struct leat_cb){ tell, &removed, NULL }), 0);
	while (!fake.by_proc[NFSPROC3_RENAME])
		leat_poll(leat_session(m), 0);
	assert_int_equal(leat_aio_close(f, (struct leat_cb){ tell, &closed, NULL }), 0);
	run(&closed, &removed);
	assert_int_equal(removed.result, 0);
	expect("LOOKUP f;SETATTR ;RENAME f;to hidden;REMOVE hidden;");
}

static void run_one(const struct told *t)
{
	while (!t->times)
		leat_poll(leat_session(m), 0);
	while (leat_poll(leat_session(m), 0) > 0)
		;
}

/* A close that is cancelled while it removes the hidden name: another operation does so. If that one is cancelled as
 * well, the name stays. */
static void cancelled(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);
	struct told told = { 0 };
	struct leat_cb cb = { tell, &told, NULL };

	(void)state;
	assert_int_equal(leat_unlink(m, "/f"), 0);
	expect("LOOKUP f;SETATTR ;RENAME f;to hidden;");
	assert_int_equal(leat_aio_close(f, cb), 0);
	assert_int_equal(leat_cancel(m, &told), 0);
	run_one(&told);
	assert_int_equal(told.result, 0);
	expect("REMOVE hidden;");

	f = fake_open(m, O_RDONLY);
	told.times = 0;
	assert_int_equal(leat_unlink(m, "/f"), 0);
	expect("LOOKUP f;SETATTR ;RENAME f;to hidden;");
	assert_int_equal(leat_aio_close(f, cb), 0);
	assert_int_equal(leat_cancel_all(m), 0);
	run_one(&told);
	expect("");
}

static void no_memory(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);
	unsigned n = 0;

	(void)state;
	do {
		int rc;

		history[0] = '\0';
		failed = false;
		countdown = ++n;
		rc = leat_unlink(m, "/f");
		countdown = 0;
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		assert_null(strstr(history, "REMOVE"));
	} while (failed);
	assert_true(n > 1);
	assert_int_equal(leat_close(f), 0);
}

/* ---- left behind ---- */

static void list_only(const char *name, ftype3 type, uint32_t age)
{
	struct leat_dir *d;

	listed = name;
	listed_type = type;
	listed_age = age;
	assert_int_equal(leat_opendir(m, "/", &d), 0);
	leat_closedir(d);
}

static void list(const char *name, ftype3 type, uint32_t age, const char *want)
{
	m->hides = true;
	list_only(name, type, age);
	(void)lt_sync_drain(m, 0);
	expect(want);
}

#define OLD_NAME ".leat-removed-00000000deadbeef"

static void left_behind(void **state)
{
	(void)state;
	server_now = (uint32_t)time(NULL);
	list(OLD_NAME, NF3REG, DAY + 60, "SETATTR guarded;REMOVE " OLD_NAME ";");
	list(OLD_NAME, NF3REG, DAY - 60, "");
	list(OLD_NAME, NF3DIR, DAY + 60, "");
	list(OLD_NAME, NF3LNK, DAY + 60, "");
	/* nearly the pattern */
	list(".leat-removed-00000000deadbee", NF3REG, 9 * DAY, "");
	list(".leat-removed-00000000deadbeef0", NF3REG, 9 * DAY, "");
	list(".leat-removed-00000000DEADBEEF", NF3REG, 9 * DAY, "");
	list(".leat-removed-00000000deadbeeg", NF3REG, 9 * DAY, "");
	list("leat-removed-00000000deadbeef", NF3REG, 9 * DAY, "");
	list(".leat-removed-", NF3REG, 9 * DAY, "");
	list(OLD_NAME "-keep", NF3REG, 9 * DAY, "");
	/* without attributes nothing is known */
	bare = true;
	list(OLD_NAME, NF3REG, 9 * DAY, "");
}

/* The clock of the client is ahead, or the file has changed since it was listed. */
static void not_old(void **state)
{
	(void)state;
	server_now = (uint32_t)time(NULL) - 2 * DAY;
	list(OLD_NAME, NF3REG, 2 * DAY + 60, "SETATTR guarded;");
	server_now = (uint32_t)time(NULL);
	guard_fails = true;
	list(OLD_NAME, NF3REG, 2 * DAY, "SETATTR guarded;");
	assert_string_equal(leat_error(m), "");
}

/* This mount has it open: whatever its age. */
static void in_use(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);

	(void)state;
	memcpy(f->fh.data, "left", 4);
	server_now = (uint32_t)time(NULL);
	list(OLD_NAME, NF3REG, 9 * DAY, "");
	assert_int_equal(leat_close(f), 0);
	list(OLD_NAME, NF3REG, 9 * DAY, "SETATTR guarded;REMOVE " OLD_NAME ";");
}

/* A mount that has hidden nothing removes nothing. */
static void only_reads(void **state)
{
	(void)state;
	server_now = (uint32_t)time(NULL);
	list_only(OLD_NAME, NF3REG, 9 * DAY);
	run_all();
	expect("");
}

/* Another mount of the session has it open. */
static void in_use_next_door(void **state)
{
	struct leat_session *s = leat_session(m);
	struct leat *other;
	struct leat_file *f;

	(void)state;
	server_now = (uint32_t)time(NULL);
	lt_server_share(m->server);
	s->is_private = false;
	assert_int_equal(lt_handle_create(s, &m->url, &m->server->named, NULL, &other), 0);
	assert_ptr_equal(other->server, m->server);
	f = fake_open(other, O_RDONLY);
	memcpy(f->fh.data, "left", 4);
	list(OLD_NAME, NF3REG, 9 * DAY, "");
	assert_int_equal(leat_close(f), 0);
	list(OLD_NAME, NF3REG, 9 * DAY, "SETATTR guarded;REMOVE " OLD_NAME ";");
	leat_umount(other);
	s->is_private = true;
}

/* The server chooses how many names it lists, not how many operations are in flight. */
static void bounded(void **state)
{
	(void)state;
	server_now = (uint32_t)time(NULL);
	m->hides = true;
	many = 40;
	fake.pick = listing_first;
	list_only(OLD_NAME, NF3REG, 9 * DAY);
	assert_int_equal(fake.count, 16);
	fake.pick = NULL;
	run_all();
	assert_int_equal(fake.by_proc[NFSPROC3_REMOVE], 16);
	history[0] = '\0';
	list_only(OLD_NAME, NF3REG, 9 * DAY);
	run_all();
	assert_int_equal(fake.by_proc[NFSPROC3_REMOVE], 32);
}

/* Operations without a caller do not delay the end of the mount, not even of a server that is silent. */
static void unmounted(void **state)
{
	struct told told = { 0 };
	struct leat_file *f = fake_open(m, O_RDONLY);

	(void)state;
	assert_int_equal(leat_unlink(m, "/f"), 0);
	assert_int_equal(leat_aio_close(f, (struct leat_cb){ tell, &told, NULL }), 0);
	assert_int_equal(leat_cancel(m, &told), 0);
	while (!told.times)
		leat_poll(leat_session(m), 0);
	server_now = (uint32_t)time(NULL);
	fake.pick = listing_first;
	list_only(OLD_NAME, NF3REG, 9 * DAY);
	assert_int_equal(fake.count, 2);
	fake.silent = true;
	history[0] = '\0';
	leat_umount(m);
	expect("");
	m = fake_mount(1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(hidden_until_close), TEST(not_the_last), TEST(refused),     TEST(in_transit),
		TEST(opened_meanwhile),   TEST(closed_meanwhile), TEST(no_memory), TEST(left_behind),
		TEST(not_old),            TEST(in_use),           TEST(cancelled),
		TEST(failed_once),        TEST(not_touched),      TEST(touched_for_ever), TEST(only_reads),
		TEST(in_use_next_door),   TEST(bounded),          TEST(unmounted),        TEST(touched_in_vain),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
