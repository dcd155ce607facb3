/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_node_nomem.c - the Nth allocation of a function of nodes, directories, open files, options, sessions or
 * leat_admin.h fails, for N from 1 until none is left to fail
 *
 * Only allocations of this thread, the client's, are counted: the server has threads of its own. Each function returns
 * success or -ENOMEM; it sets its outputs on success only; and the mount works afterwards. The sanitizers find leaks.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "leat_admin.h"
#include "leat_flow.h"
#include "nomem.h"

LOG_DEFINE("test_node_nomem");

static struct leat_flow flow;
static struct leat *m;
static struct leat_node *top, *file;
static const char *base_url;

/* What a function may return. */
struct got {
	struct leat_node *node;
	struct leat_file *file;
	struct leat_dir *dir;
};

static int64_t do_get(struct got *g)
{
	return leat_node_get(m, "f", &g->node);
}

static int64_t do_lookup(struct got *g)
{
	return leat_node_lookup(top, "l", &g->node, NULL);
}

static int64_t do_open(struct got *g)
{
	return leat_node_open(top, "l", O_RDWR, 0, &g->file);
}

static int64_t do_create(struct got *g)
{
	struct stat st;

	return leat_node_create(top, "new", O_RDWR, 0600, &g->node, &st, &g->file);
}

static int64_t do_create_excl(struct got *g)
{
	return leat_node_create(top, "new", O_RDWR | O_EXCL, 0600, &g->node, NULL, &g->file);
}

static int64_t do_mkdir(struct got *g)
{
	return leat_node_mkdir(top, "newdir", 0755, &g->node, NULL);
}

static int64_t do_symlink(struct got *g)
{
	return leat_node_symlink(top, "target", "new", &g->node, NULL);
}

static int64_t do_mknod(struct got *g)
{
	return leat_node_mknod(top, "new", S_IFIFO | 0600, 0, &g->node, NULL);
}

static int64_t do_link(struct got *g)
{
	(void)g;
	return leat_node_link(file, top, "new");
}

static int64_t do_rename(struct got *g)
{
	(void)g;
	return leat_node_rename(top, "old", top, "new");
}

static int64_t do_unlink(struct got *g)
{
	(void)g;
	return leat_node_unlink(top, "old");
}

static int64_t do_rmdir(struct got *g)
{
	(void)g;
	return leat_node_rmdir(top, "olddir");
}

static int64_t do_readlink(struct got *g)
{
	char buf[8];

	(void)g;
	return leat_node_readlink(top, "l", buf, sizeof(buf)) > 0 ? 0 : -ENOMEM;
}

static int64_t do_attrs(struct got *g)
{
	const struct leat_setattr set = { .size = sizeof(set), .mask = LEAT_SET_MODE, .mode = 0644 };
	struct stat st;
	int rc = leat_node_getattr(top, "f", &st);

	(void)g;
	if (!rc)
		rc = leat_node_access(top, "l", R_OK);
	return rc ? rc : leat_node_setattr(file, NULL, &set, &st);
}

static int64_t do_statvfs(struct got *g)
{
	struct statvfs vfs;

	(void)g;
	return leat_node_statvfs(file, NULL, &vfs);
}

static int64_t do_opendir(struct got *g)
{
	return leat_node_opendir(top, NULL, &g->dir);
}

static int64_t do_acl(struct got *g)
{
	struct leat_acl_entry v[4];
	ssize_t n = leat_node_acl_get(file, NULL, v, 4);

	(void)g;
	return n < 0 ? n : leat_node_acl_set(file, NULL, v, (size_t)n);
}

static int64_t do_import(struct got *g)
{
	uint8_t buf[LEAT_NODE_EXPORT_MAX];
	ssize_t len = leat_node_export(file, buf, sizeof(buf));

	return leat_node_import(m, buf, (size_t)len, &g->node);
}

static int64_t do_options(struct got *g)
{
	struct leat_opts *o = leat_opts_create();
	int rc = leat_set(o, "capture", "/tmp/f");

	(void)g;
	if (!rc)
		rc = leat_set(o, "capture", "/tmp/another");
	leat_opts_destroy(o);
	return rc;
}

static int64_t do_admin(struct got *g)
{
	struct leat_server_stats stats = { .size = sizeof(stats) };
	struct leat_where *w = NULL;
	int rc = leat_server_where(m, &w);

	(void)g;
	if (!rc)
		rc = leat_server_stats(m, &stats);
	leat_where_free(w);
	return rc;
}

static int64_t do_pages(struct got *g)
{
	const struct leat_dirent *e;
	struct leat_dir *d;
	int rc = leat_opendir(m, "", &d);

	(void)g;
	if (rc)
		return rc;
	rc = leat_readdir(d, &e);
	if (rc >= 0)
		rc = leat_rewinddir(d);
	while (!rc && (rc = leat_readdir(d, &e)) > 0)
		rc = 0;
	leat_closedir(d);
	return rc;
}

/* Closes the file without a failure: it would be left open. */
static int64_t end_file(struct leat_file *f, int64_t rc)
{
	nomem_countdown = 0;
	assert_int_equal(leat_close(f), 0);
	return rc;
}

/* The name is gone or is not; the file can be read until it is closed. */
static int64_t do_unlink_open(struct got *g)
{
	struct leat_file *f;
	int64_t rc = leat_open(m, "old", O_RDWR, 0, &f);
	char c;

	(void)g;
	if (rc)
		return rc;
	rc = leat_unlink(m, "old");
	if (!rc)
		rc = leat_pread(f, &c, 1, 0);
	return end_file(f, rc);
}

static int64_t do_space(struct got *g)
{
	struct leat_file *f;
	int64_t rc = leat_open(m, "f", O_RDWR, 0, &f);

	(void)g;
	if (rc)
		return rc;
	rc = leat_fallocate(f, 0, 0, 4096);
	if (!rc)
		rc = leat_seek_data(f, 0);
	if (!rc || rc == -ENXIO) /* all of it is a hole */
		rc = leat_seek_hole(f, 0);
	return end_file(f, rc < 0 ? rc : 0);
}

static int64_t do_session(struct got *g)
{
	struct leat_session *s = NULL;
	struct leat *own = NULL;
	struct leat_opts *o = leat_opts_create();
	int rc = leat_set(o, "threads", "2");
	void *mem = NULL;

	(void)g;
	if (!rc)
		rc = leat_session_create(o, &s);
	if (!rc)
		rc = leat_buf_alloc(s, 1 << 20, &mem);
	if (!rc)
		rc = leat_session_mount(s, base_url, NULL, &own);
	if (!rc)
		rc = leat_null(own);
	leat_umount(own);
	if (mem)
		leat_buf_free(s, mem);
	nomem_countdown = 0;
	assert_int_equal(leat_session_free(s), 0);
	leat_opts_destroy(o);
	return rc;
}

static int64_t do_info(struct got *g)
{
	struct leat_info info = { .size = sizeof(info) };
	uint64_t calls;
	char text[256];
	int rc = leat_info(m, &info);

	(void)g;
	if (!rc && leat_describe(m, LEAT_TEXT_SERVER, 0, text, sizeof(text)) < 0)
		rc = -ENOMEM;
	return rc ? rc : leat_stat_value(m, "calls", &calls);
}

static void prepare(void)
{
	static const char *const names[] = { "new", "newdir", "old", "olddir" };
	char path[128];

	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", flow.export, names[i]);
		(void)remove(path);
		if (i == 2)
			assert_int_equal(mknod(path, S_IFREG | 0600, 0), 0);
		if (i == 3)
			assert_int_equal(mkdir(path, 0700), 0);
	}
}

static void release(const struct got *g)
{
	leat_node_put(g->node);
	if (g->file)
		assert_int_equal(leat_close(g->file), 0);
	if (g->dir)
		leat_closedir(g->dir);
}

/* The decoders of lists allocate, and cannot tell why they failed. */
static bool is_expected(int64_t rc, int64_t (*fn)(struct got *))
{
	return !rc || (nomem_failed && (rc == -ENOMEM || (rc == -EBADMSG && (fn == do_opendir || fn == do_admin || fn == do_pages))));
}

/* Return: number of failures */
static unsigned long until_nothing_fails(const char *name, int64_t (*fn)(struct got *))
{
	unsigned long n = 0;

	do {
		struct got g = { 0 };
		int64_t rc;

		prepare();
		nomem_failed = false;
		nomem_countdown = ++n;
		rc = fn(&g);
		nomem_countdown = 0;
		if (!is_expected(rc, fn) || (rc && (g.node || g.file || g.dir)))
			fail_msg("%s, allocation %lu: %lld", name, n, (long long)rc);
		release(&g);
		assert_in_range(n, 1, 500);
	} while (nomem_failed);
	return n - 1;
}

static void each(const char *base)
{
	static const struct {
		const char *name;
		int64_t (*fn)(struct got *);
		unsigned long least;
	} rows[] = {
#define ROW(name, least) { #name, do_##name, least }
		ROW(get, 3), ROW(lookup, 4), ROW(open, 5), ROW(create, 6), ROW(create_excl, 6), ROW(mkdir, 4),
		ROW(symlink, 4), ROW(mknod, 4), ROW(link, 5), ROW(rename, 6), ROW(unlink, 3), ROW(rmdir, 3),
		ROW(readlink, 4), ROW(attrs, 6), ROW(statvfs, 3), ROW(opendir, 4), ROW(acl, 6), ROW(import, 1),
		ROW(options, 3), ROW(admin, 3), ROW(pages, 4), ROW(unlink_open, 6), ROW(space, 5), ROW(session, 10),
		ROW(info, 0),
	};

	/* without the cache: its allocations may fail unnoticed, and a name that is cached wrongly hides what exists */
	base_url = base;
	m = leat_flow_mount(base, "cache=none&readahead=0");
	assert_int_equal(leat_node_get(m, "", &top), 0);
	assert_int_equal(leat_node_get(m, "f", &file), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned long n = until_nothing_fails(rows[i].name, rows[i].fn);

		if (n < rows[i].least)
			fail_msg("%s: %lu allocations", rows[i].name, n);
	}
	leat_node_put(file);
	leat_node_put(top);
	leat_umount(m);
}

static void over_local(void **state)
{
	(void)state;
	each(flow.local_url);
}

static void over_tcp(void **state)
{
	(void)state;
	each(flow.tcp_url);
}

static int setup(void **state)
{
	char path[128];

	(void)state;
	leat_flow_create(&flow);
	snprintf(path, sizeof(path), "%s/f", flow.export);
	assert_int_equal(mknod(path, S_IFREG | 0644, 0), 0);
	snprintf(path, sizeof(path), "%s/l", flow.export);
	assert_int_equal(symlink("f", path), 0);
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
		cmocka_unit_test(over_local),
		cmocka_unit_test(over_tcp),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
