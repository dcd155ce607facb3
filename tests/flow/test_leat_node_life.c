/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_node_life.c - how long nodes live: references, operations in flight, stale objects, ended mounts, threads
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "leat_flow.h"

LOG_DEFINE("test_leat_node_life");

static struct leat_flow flow;

static const char *at(const char *name)
{
	static char paths[4][200];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", flow.export, name);
	return path;
}

static struct leat_node *get(struct leat *m, const char *path)
{
	struct leat_node *n = NULL;

	if (leat_node_get(m, path, &n))
		fail_msg("%s", leat_error(m));
	return n;
}

/* ---- results of asynchronous calls ---- */

struct outcome {
	sem_t done;
	int64_t result;
	unsigned freed;
};

static void on_done(void *arg, int64_t result)
{
	struct outcome *o = arg;

	o->result = result;
	sem_post(&o->done);
}

static void on_free(void *arg)
{
	((struct outcome *)arg)->freed++;
}

static struct leat_cb to(struct outcome *o)
{
	*o = (struct outcome){ .result = 1 };
	sem_init(&o->done, 0, 0);
	return (struct leat_cb){ .fn = on_done, .user_data = o, .free = on_free };
}

static int64_t result_of(struct outcome *o)
{
	while (sem_wait(&o->done))
		assert_int_equal(errno, EINTR);
	return o->result;
}

/* ---- operations hold their nodes ---- */

static sem_t holding, hold;

/* A callback that keeps the service thread until the test lets it go. */
static void keep_thread(void *arg, int64_t result)
{
	(void)arg;
	(void)result;
	sem_post(&holding);
	while (sem_wait(&hold))
		continue;
}

/* The service thread waits, so operations started now begin after their nodes were dropped by the test. */
static void dropped_in_flight(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL);
	struct leat_node *d, *e, *f, *found = NULL, *reuse[8];
	struct outcome looked_up, renamed, linked;
	uint8_t bytes[LEAT_NODE_EXPORT_MAX];
	struct stat st, want;
	ssize_t len;

	(void)state;
	assert_int_equal(mkdir(at("d"), 0755), 0);
	assert_int_equal(mkdir(at("e"), 0755), 0);
	assert_int_equal(mkdir(at("d/x"), 0755), 0);
	assert_int_equal(mkdir(at("d/y"), 0755), 0);
	assert_int_equal(mknod(at("e/f"), S_IFREG | 0644, 0), 0);
	assert_int_equal(stat(at("d/x"), &want), 0);
	d = get(m, "/");
	len = leat_node_export(d, bytes, sizeof(bytes));
	leat_node_put(d);
	d = get(m, "d");
	e = get(m, "e");
	f = get(m, "e/f");
	assert_int_equal(leat_service_start(leat_session(m)), 0);
	assert_int_equal(leat_aio_null(m, (struct leat_cb){ .fn = keep_thread }), 0);
	sem_wait(&holding);
	assert_int_equal(leat_aio_node_lookup(d, "x", &found, &st, to(&looked_up)), 0);
	assert_int_equal(leat_aio_node_rename(d, "y", e, "z", to(&renamed)), 0);
	assert_int_equal(leat_aio_node_link(f, d, "hard", to(&linked)), 0);
	leat_node_put(d);
	leat_node_put(e);
	leat_node_put(f);
	/* memory of nodes freed too early would have other contents now */
	for (size_t i = 0; i < ARRAY_SIZE(reuse); i++)
		assert_int_equal(leat_node_import(m, bytes, (size_t)len, &reuse[i]), 0);
	sem_post(&hold);
	assert_int_equal(result_of(&looked_up), 0);
	assert_int_equal(st.st_ino, want.st_ino);
	assert_int_equal(result_of(&renamed), 0);
	assert_int_equal(stat(at("e/z"), &st), 0);
	assert_int_equal(result_of(&linked), 0);
	assert_int_equal(stat(at("d/hard"), &st), 0);
	assert_int_equal(st.st_nlink, 2);
	for (size_t i = 0; i < ARRAY_SIZE(reuse); i++)
		leat_node_put(reuse[i]);
	assert_int_equal(leat_node_getattr(found, NULL, &st), 0);
	assert_int_equal(st.st_ino, want.st_ino);
	leat_node_put(found);
	leat_umount(m);
	leat_flow_remove(at("d"));
	leat_flow_remove(at("e"));
}

/* All asynchronous functions at once */
static void asynchronous(void **state)
{
	enum { GET, LOOKUP, OPEN, CREATE, MKDIR, SYMLINK, MKNOD, LINK, RENAME, READLINK, GETATTR, SETATTR, ACCESS, STATVFS,
	       OPENDIR, ACL_GET, ACL_SET, UNLINK, RMDIR, ALL };
	const struct leat_setattr set = { .size = sizeof(set), .mask = LEAT_SET_MODE, .mode = 0700 };
	struct leat *m = leat_flow_mount(flow.tcp_url, NULL);
	struct leat_node *d, *f, *made[6] = { NULL };
	struct leat_acl_entry acl[8], mode[3] = { { LEAT_ACL_USER_OBJ, 7, 0 }, { LEAT_ACL_GROUP_OBJ, 5, 0 },
						  { LEAT_ACL_OTHER, 5, 0 } };
	struct outcome o[ALL];
	struct leat_file *files[2];
	struct leat_dir *dir;
	struct statvfs vfs;
	struct stat st[6];
	char target[8];

	(void)state;
	assert_int_equal(mkdir(at("d"), 0755), 0);
	assert_int_equal(mkdir(at("d/old"), 0755), 0);
	assert_int_equal(symlink("target", at("d/s")), 0);
	assert_int_equal(mknod(at("d/f"), S_IFREG | 0644, 0), 0);
	assert_int_equal(link(at("d/f"), at("d/g")), 0);
	assert_int_equal(link(at("d/f"), at("d/h")), 0);
	d = get(m, "d");
	f = get(m, "d/f");
	assert_int_equal(leat_service_start(leat_session(m)), 0);
	assert_int_equal(leat_aio_node_get(m, "d/s", &made[0], to(&o[GET])), 0);
	assert_int_equal(leat_aio_node_lookup(d, "s", &made[1], &st[0], to(&o[LOOKUP])), 0);
	assert_int_equal(leat_aio_node_open(f, NULL, O_RDONLY, 0, &files[0], to(&o[OPEN])), 0);
	assert_int_equal(leat_aio_node_create(d, "new", O_RDWR | O_EXCL, 0600, &made[2], &st[1], &files[1],
					      to(&o[CREATE])), 0);
	assert_int_equal(leat_aio_node_mkdir(d, "dir", 0755, &made[3], &st[2], to(&o[MKDIR])), 0);
	assert_int_equal(leat_aio_node_symlink(d, "x", "link", &made[4], &st[3], to(&o[SYMLINK])), 0);
	assert_int_equal(leat_aio_node_mknod(d, "fifo", S_IFIFO | 0600, 0, &made[5], &st[4], to(&o[MKNOD])), 0);
	assert_int_equal(leat_aio_node_link(f, d, "hard", to(&o[LINK])), 0);
	assert_int_equal(leat_aio_node_rename(d, "g", d, "moved", to(&o[RENAME])), 0);
	assert_int_equal(leat_aio_node_readlink(d, "s", target, 8, to(&o[READLINK])), 0);
	assert_int_equal(leat_aio_node_getattr(d, NULL, &st[5], to(&o[GETATTR])), 0);
	assert_int_equal(leat_aio_node_setattr(d, NULL, &set, NULL, to(&o[SETATTR])), 0);
	assert_int_equal(leat_aio_node_access(d, NULL, R_OK, to(&o[ACCESS])), 0);
	assert_int_equal(leat_aio_node_statvfs(d, NULL, &vfs, to(&o[STATVFS])), 0);
	assert_int_equal(leat_aio_node_opendir(d, NULL, &dir, to(&o[OPENDIR])), 0);
	assert_int_equal(leat_aio_node_acl_get(d, NULL, acl, 8, to(&o[ACL_GET])), 0);
	assert_int_equal(leat_aio_node_acl_set(f, NULL, mode, 3, to(&o[ACL_SET])), 0);
	assert_int_equal(leat_aio_node_unlink(d, "h", to(&o[UNLINK])), 0);
	assert_int_equal(leat_aio_node_rmdir(d, "old", to(&o[RMDIR])), 0);
	leat_node_put(d);
	leat_node_put(f);
	for (int i = 0; i < ALL; i++) {
		int64_t want = i == GET ? -ENOENT : i == READLINK ? 6 : i == ACL_GET ? 3 : 0, got = result_of(&o[i]);

		if (got != want)
			fail_msg("%d: %lld", i, (long long)got);
	}
	assert_null(made[0]);
	for (int i = 1; i < 6; i++)
		leat_node_put(made[i]);
	leat_closedir(dir);
	assert_int_equal(leat_close(files[0]), 0);
	leat_umount(m); /* closes the other one */
	for (int i = 0; i < ALL; i++)
		assert_int_equal(o[i].freed, 1);
	leat_flow_remove(at("d"));
}

/* ---- what is refused ---- */

static void stale(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL);
	struct leat_node *d, *n = NULL;
	struct leat_file *f;
	struct stat st;

	(void)state;
	assert_int_equal(mkdir(at("d"), 0755), 0);
	d = get(m, "d");
	assert_int_equal(rmdir(at("d")), 0);
	assert_int_equal(mkdir(at("d"), 0755), 0); /* another one */
	assert_int_equal(leat_node_mkdir(d, "x", 0755, &n, &st), -ESTALE);
	assert_int_equal(leat_node_lookup(d, "x", &n, &st), -ESTALE);
	assert_int_equal(leat_node_open(d, NULL, O_RDONLY, 0, &f), -ESTALE);
	assert_int_equal(leat_node_statvfs(d, NULL, &(struct statvfs){ 0 }), -ESTALE);
	assert_null(n);
	assert_int_equal(rmdir(at("d")), 0); /* nothing was created in it */
	leat_node_put(d);
	leat_umount(m);
}

/* A name that the cache has, and which belongs to another object by now, is looked up again at the node. */
static void stale_name(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL);
	struct leat_node *d, *n;
	struct stat st, want;

	(void)state;
	assert_int_equal(mkdir(at("d"), 0755), 0);
	assert_int_equal(mkdir(at("d/e"), 0755), 0);
	d = get(m, "d");
	assert_int_equal(leat_node_lookup(d, "e", NULL, NULL), 0);
	assert_int_equal(rename(at("d"), at("moved")), 0);
	assert_int_equal(rmdir(at("moved/e")), 0);
	assert_int_equal(mkdir(at("moved/e"), 0755), 0);
	assert_int_equal(leat_node_mkdir(d, "e/new", 0755, &n, &st), 0);
	assert_int_equal(stat(at("moved/e/new"), &want), 0);
	assert_int_equal(st.st_ino, want.st_ino);
	leat_node_put(n);
	leat_node_put(d);
	leat_umount(m);
	leat_flow_remove(at("moved"));
}

static void two_mounts(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL), *m2 = leat_flow_mount(flow.tcp_url, NULL);
	struct leat_node *a = get(m, ""), *b = get(m2, "");
	struct outcome o;

	(void)state;
	assert_int_equal(mkdir(at("d"), 0755), 0);
	assert_int_equal(leat_node_rename(a, "d", b, "e"), -EXDEV);
	assert_int_equal(leat_node_link(a, b, "e"), -EXDEV);
	assert_int_equal(leat_aio_node_rename(b, "d", a, "e", to(&o)), -EXDEV);
	assert_int_equal(o.freed, 1);
	assert_int_equal(rmdir(at("d")), 0);
	leat_umount(m2);
	assert_int_equal(leat_node_rename(a, "d", b, "e"), -ESTALE);
	assert_int_equal(leat_node_rename(b, "d", a, "e"), -ESTALE);
	leat_node_put(b);
	leat_node_put(a);
	leat_umount(m);
}

/* The nodes of a mount end with it, though its session and the other mounts of it go on. */
static void one_session(void **state)
{
	struct leat_node *a, *b, *c;
	struct leat_session *s;
	struct leat *m, *m2;
	struct stat st;

	(void)state;
	assert_int_equal(leat_session_create(NULL, &s), 0);
	assert_int_equal(leat_session_mount(s, flow.local_url, NULL, &m), 0);
	assert_int_equal(leat_session_mount(s, flow.local_url, NULL, &m2), 0);
	assert_int_equal(leat_service_start(s), 0);
	a = get(m, "");
	b = get(m2, "");
	assert_int_equal(leat_node_rename(a, "x", b, "y"), -EXDEV);
	leat_umount(m2);
	assert_int_equal(leat_node_getattr(b, NULL, &st), -ESTALE);
	assert_int_equal(leat_node_mkdir(a, "d", 0755, &c, &st), 0);
	assert_int_equal(leat_node_rmdir(a, "d"), 0);
	assert_int_equal(leat_node_mkdir(c, "x", 0755, NULL, NULL), -ESTALE);
	leat_umount(m);
	assert_int_equal(leat_session_free(s), 0);
	assert_int_equal(leat_node_getattr(c, NULL, &st), -ESTALE);
	leat_node_put(c);
	leat_node_put(b);
	leat_node_put(a);
}

static void after_umount(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL);
	struct leat_setattr set = { .size = sizeof(set) };
	struct leat_node *n = get(m, ""), *ret = NULL;
	uint8_t bytes[LEAT_NODE_EXPORT_MAX];
	struct leat_file *f = NULL;
	struct leat_acl_entry v[4] = { { 0 } };
	struct leat_dir *dir = NULL;
	struct outcome o;
	struct stat st;

	(void)state;
	leat_umount(m);
	assert_ptr_equal(leat_node_ref(n), n);
	leat_node_put(n);
	assert_int_equal(leat_node_lookup(n, "x", &ret, &st), -ESTALE);
	assert_int_equal(leat_node_open(n, "x", O_RDONLY, 0, &f), -ESTALE);
	assert_int_equal(leat_node_create(n, "x", O_RDWR, 0600, &ret, &st, &f), -ESTALE);
	assert_int_equal(leat_node_mkdir(n, "x", 0755, &ret, &st), -ESTALE);
	assert_int_equal(leat_node_symlink(n, "x", "x", &ret, &st), -ESTALE);
	assert_int_equal(leat_node_mknod(n, "x", S_IFIFO, 0, &ret, &st), -ESTALE);
	assert_int_equal(leat_node_link(n, n, "x"), -ESTALE);
	assert_int_equal(leat_node_unlink(n, "x"), -ESTALE);
	assert_int_equal(leat_node_rmdir(n, "x"), -ESTALE);
	assert_int_equal(leat_node_rename(n, "x", n, "y"), -ESTALE);
	assert_int_equal(leat_node_readlink(n, "x", (char *)bytes, 8), -ESTALE);
	assert_int_equal(leat_node_getattr(n, NULL, &st), -ESTALE);
	assert_int_equal(leat_node_setattr(n, NULL, &set, &st), -ESTALE);
	assert_int_equal(leat_node_access(n, NULL, 0), -ESTALE);
	assert_int_equal(leat_node_statvfs(n, NULL, &(struct statvfs){ 0 }), -ESTALE);
	assert_int_equal(leat_node_opendir(n, NULL, &dir), -ESTALE);
	assert_int_equal(leat_node_acl_get(n, NULL, v, 4), -ESTALE);
	assert_int_equal(leat_node_acl_set(n, NULL, v, 3), -ESTALE);
	assert_int_equal(leat_node_export(n, bytes, sizeof(bytes)), -ESTALE);
	assert_int_equal(leat_aio_node_getattr(n, NULL, &st, to(&o)), -ESTALE);
	assert_int_equal(o.freed, 1);
	assert_int_equal(o.result, 1);
	assert_null(ret);
	assert_null(f);
	assert_null(dir);
	leat_node_put(n);
	leat_node_put(NULL);
}

/* In a callback, the synchronous functions do not wait. */
static void from_callback(void *arg, int64_t result)
{
	struct leat_node *n = arg;
	struct stat st;

	assert_int_equal(result, 0);
	assert_int_equal(leat_node_getattr(n, NULL, &st), -EDEADLK);
	leat_node_put(n);
}

static void in_callback(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL);
	struct leat_node *n = get(m, "");

	(void)state;
	assert_int_equal(leat_aio_node_access(n, NULL, 0, (struct leat_cb){ .fn = from_callback, .user_data = n }), 0);
	leat_umount(m);
}

/* ---- threads ---- */

#define THREADS 4
#define ROUNDS 200

static struct leat_node *shared;

static void *use_node(void *arg)
{
	const unsigned *id = arg;
	char name[32];

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct leat_node *mine = leat_node_ref(shared), *made = NULL;
		struct stat st;

		snprintf(name, sizeof(name), "t%u-%u", *id, i);
		assert_int_equal(leat_node_mkdir(mine, name, 0755, &made, &st), 0);
		leat_node_put(mine);
		assert_int_equal(leat_node_getattr(made, NULL, &st), 0);
		leat_node_put(made);
		assert_int_equal(leat_node_rmdir(shared, name), 0);
	}
	return NULL;
}

static void threads(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL);
	pthread_t thread[THREADS];
	unsigned id[THREADS];

	(void)state;
	shared = get(m, "");
	assert_int_equal(leat_service_start(leat_session(m)), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		id[i] = i;
		assert_int_equal(pthread_create(&thread[i], NULL, use_node, &id[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	leat_umount(m);
	leat_node_put(shared);
}

static int setup(void **state)
{
	(void)state;
	sem_init(&holding, 0, 0);
	sem_init(&hold, 0, 0);
	leat_flow_create(&flow);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_flow_destroy(&flow);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dropped_in_flight), cmocka_unit_test(asynchronous), cmocka_unit_test(stale),
		cmocka_unit_test(stale_name),	     cmocka_unit_test(two_mounts),   cmocka_unit_test(one_session),
		cmocka_unit_test(after_umount),	     cmocka_unit_test(in_callback),  cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
