/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_node_export.c - nodes as bytes: for another mount, for another process, and bytes that are none
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "leat_flow.h"

LOG_DEFINE("test_leat_node_export");

static struct leat_flow flow, other;

/* Exports the file "d/f" of the first export; returns the length. */
static size_t export_file(struct leat *m, uint8_t *buf, size_t cap)
{
	struct leat_node *n;
	ssize_t len;

	assert_int_equal(leat_node_get(m, "/d/f", &n), 0);
	len = leat_node_export(n, buf, cap);
	assert_in_range(len, 18, LEAT_NODE_EXPORT_MAX);
	leat_node_put(n);
	return (size_t)len;
}

static void assert_is_file(struct leat *m, const uint8_t *buf, size_t len)
{
	struct leat_node *n;
	struct leat_file *f;
	struct stat st, want;
	char text[8] = "", path[128];

	snprintf(path, sizeof(path), "%s/d/f", flow.export);
	assert_int_equal(stat(path, &want), 0);
	assert_int_equal(leat_node_import(m, buf, len, &n), 0);
	assert_int_equal(leat_node_getattr(n, NULL, &st), 0);
	assert_int_equal(st.st_ino, want.st_ino);
	assert_int_equal(leat_node_open(n, NULL, O_RDONLY, 0, &f), 0);
	assert_int_equal(leat_pread(f, text, sizeof(text), 0), 4);
	assert_string_equal(text, "text");
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_node_unlink(n, "x"), -ENOTDIR); /* its type is not known, so the server says so */
	leat_node_put(n);
}

static void other_mounts(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL), *tcp = leat_flow_mount(flow.tcp_url, "cache=none");
	uint8_t buf[LEAT_NODE_EXPORT_MAX], again[LEAT_NODE_EXPORT_MAX];
	char url[256];
	struct leat *sub;
	struct leat_node *n;
	size_t len = export_file(m, buf, sizeof(buf));

	(void)state;
	assert_is_file(m, buf, len);
	assert_is_file(tcp, buf, len);
	/* the path of the URL makes no difference */
	snprintf(url, sizeof(url), "%s/d", flow.tcp_url);
	sub = leat_flow_mount(url, NULL);
	assert_is_file(sub, buf, len);
	/* the same bytes again; their number, and too small a buffer */
	assert_int_equal(leat_node_import(tcp, buf, len, &n), 0);
	assert_int_equal(leat_node_export(n, NULL, 0), len);
	assert_int_equal(leat_node_export(n, again, len - 1), -ERANGE);
	assert_int_equal(leat_node_export(n, NULL, len), -EINVAL);
	assert_int_equal(leat_node_export(NULL, again, len), -EINVAL);
	assert_int_equal(leat_node_export(n, again, len), len);
	assert_memory_equal(buf, again, len);
	leat_umount(sub);
	leat_umount(tcp);
	assert_int_equal(leat_node_export(n, again, len), -ESTALE);
	leat_node_put(n);
	leat_umount(m);
}

static void other_process(void **state)
{
	uint8_t buf[LEAT_NODE_EXPORT_MAX];
	struct leat *m;
	size_t len;
	int fds[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		ssize_t n = read(fds[0], buf, sizeof(buf));

		m = leat_flow_mount(flow.tcp_url, NULL);
		assert_is_file(m, buf, (size_t)n);
		leat_umount(m);
		_exit(0);
	}
	m = leat_flow_mount(flow.local_url, NULL);
	len = export_file(m, buf, sizeof(buf));
	assert_int_equal(write(fds[1], buf, len), len);
	close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	close(fds[0]);
	leat_umount(m);
}

static void other_export(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL), *another = leat_flow_mount(other.tcp_url, NULL);
	uint8_t buf[LEAT_NODE_EXPORT_MAX];
	struct leat_node *n = NULL;
	size_t len = export_file(m, buf, sizeof(buf));

	(void)state;
	assert_int_equal(leat_node_import(another, buf, len, &n), -EXDEV);
	assert_null(n);
	leat_umount(another);
	leat_umount(m);
}

static void restarted_server(void **state)
{
	struct leat *m = leat_flow_mount(flow.tcp_url, NULL);
	uint8_t buf[LEAT_NODE_EXPORT_MAX];
	size_t len = export_file(m, buf, sizeof(buf));

	(void)state;
	leat_umount(m);
	leat_flow_stop(&flow);
	leat_flow_start(&flow);
	m = leat_flow_mount(flow.tcp_url, NULL);
	assert_is_file(m, buf, len);
	leat_umount(m);
}

/* An object that is gone, though the bytes are right. */
static void gone(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL);
	uint8_t buf[LEAT_NODE_EXPORT_MAX];
	struct leat_node *n;
	struct stat st;
	ssize_t len;

	(void)state;
	assert_int_equal(leat_mkdir(m, "gone", 0755), 0);
	assert_int_equal(leat_node_get(m, "gone", &n), 0);
	len = leat_node_export(n, buf, sizeof(buf));
	leat_node_put(n);
	assert_int_equal(leat_rmdir(m, "gone"), 0);
	assert_int_equal(leat_node_import(m, buf, (size_t)len, &n), 0);
	assert_int_equal(leat_node_getattr(n, NULL, &st), -ESTALE);
	assert_int_equal(leat_node_mkdir(n, "x", 0755, NULL, NULL), -ESTALE);
	assert_int_equal(leat_node_lookup(n, "x", NULL, NULL), -ESTALE);
	leat_node_put(n);
	leat_umount(m);
}

static void assert_refused(struct leat *m, const uint8_t *buf, size_t len)
{
	uint8_t *exact = malloc(len ? len : 1); /* a sanitizer sees a read beyond the end */
	struct leat_node *n = NULL;

	assert_non_null(exact);
	memcpy(exact, buf, len);
	assert_int_equal(leat_node_import(m, exact, len, &n), -EINVAL);
	assert_null(n);
	free(exact);
}

static void damaged(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL);
	uint8_t buf[2 * LEAT_NODE_EXPORT_MAX], random[65];
	size_t len = export_file(m, buf, LEAT_NODE_EXPORT_MAX);
	struct leat_node *n;

	(void)state;
	for (size_t i = 0; i < len; i++)
		assert_refused(m, buf, i);
	buf[len] = 0;
	assert_refused(m, buf, len + 1);
	for (size_t bit = 0; bit < 8 * len; bit++) {
		buf[bit / 8] ^= 1 << bit % 8;
		assert_refused(m, buf, len);
		buf[bit / 8] ^= 1 << bit % 8;
	}
	for (unsigned i = 0; i <= sizeof(random); i++) {
		leat_flow_fill(random, sizeof(random), i);
		assert_refused(m, random, i);
		memcpy(random, buf, MIN(4, i)); /* the version is right, the rest is not */
		assert_refused(m, random, i);
	}
	/* lengths of a handle that there cannot be */
	for (unsigned n_fh = 0; n_fh < 256; n_fh += n_fh ? 63 : 64) {
		leat_flow_fill(buf + 13, LEAT_NODE_EXPORT_MAX, n_fh);
		buf[12] = (uint8_t)(n_fh ? n_fh + 1 : 0);
		assert_refused(m, buf, 17 + (size_t)n_fh % 100);
	}
	assert_int_equal(leat_node_import(m, NULL, 0, &n), -EINVAL);
	assert_int_equal(leat_node_import(m, NULL, 20, &n), -EINVAL);
	assert_int_equal(leat_node_import(NULL, buf, len, &n), -EINVAL);
	assert_int_equal(leat_node_import(m, buf, len, NULL), -EINVAL);
	leat_umount(m);
}

static int setup(void **state)
{
	struct leat *m;
	struct leat_file *f;

	(void)state;
	leat_flow_create(&flow);
	leat_flow_create(&other);
	m = leat_flow_mount(flow.local_url, NULL);
	assert_int_equal(leat_mkdir(m, "d", 0755), 0);
	assert_int_equal(leat_creat(m, "d/f", 0644, &f), 0);
	assert_int_equal(leat_pwrite(f, "text", 4, 0), 4);
	assert_int_equal(leat_close(f), 0);
	leat_umount(m);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_flow_destroy(&other);
	leat_flow_destroy(&flow);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_mounts), cmocka_unit_test(other_process), cmocka_unit_test(other_export),
		cmocka_unit_test(gone),		cmocka_unit_test(damaged),	 cmocka_unit_test(restarted_server),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
