/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_reload.c - exports come, go and change while clients are at work
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "leat_admin.h"
#include "leat_flow.h"
#include "server.h"
#include "tmp_dir.h"

LOG_DEFINE("test_server_reload");

#define RELOADS 100
#define BLOCK 65536
#define BLOCKS 32

static struct leat_flow flow;
static char y_dir[96], z_dir[96];

/* @exports: as on the command line, the last one NULL */
static int reload_with(const char *const *exports, char *why)
{
	static struct conf conf; /* too large for a stack */
	char leatd[] = "leatd", option[] = "--export", text[4][256];
	char *argv[12] = { leatd };
	int argc = 1, rc;

	for (size_t i = 0; exports[i]; i++) {
		snprintf(text[i], sizeof(text[i]), "%s", exports[i]);
		argv[argc++] = option;
		argv[argc++] = text[i];
	}
	conf_init(&conf);
	assert_int_equal(conf_args(&conf, argc, argv, why), CONF_RUN);
	rc = server_reload(flow.server, &conf, why, CONF_WHY_BYTES);
	conf_fini(&conf);
	return rc;
}

static void reload(const char *a, const char *b)
{
	const char *exports[] = { a, b, NULL };
	char why[CONF_WHY_BYTES] = "";

	if (reload_with(exports, why))
		fail_msg("reload: %s", why);
}

static char *x_with(const char *options)
{
	static char text[200];

	snprintf(text, sizeof(text), "/x=%s,no_root_squash%s", flow.export, options);
	return text;
}

static char *y_at(const char *dir)
{
	static char text[200];

	snprintf(text, sizeof(text), "/y=%s,no_root_squash", dir);
	return text;
}

static void url_of_y(char url[160], const char *base)
{
	snprintf(url, 160, "%s", base);
	url[strlen(url) - 1] = 'y';
}

static void put_file(const char *dir, const char *name, const char *text)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* ---- at work ------------------------------------------------------------------------------ */

struct work {
	const char *url;
	atomic_uint rounds;
	atomic_bool stop, ended;
	int err;
	uint64_t reconnects;
};

static int work_round(struct leat *m, struct leat_file *f, unsigned n, uint8_t *out, uint8_t *in)
{
	uint64_t off = (uint64_t)(n % BLOCKS) * BLOCK;
	struct stat st;

	leat_flow_fill(out, BLOCK, n);
	if (leat_pwrite(f, out, BLOCK, off) != BLOCK || leat_pread(f, in, BLOCK, off) != BLOCK)
		return -EIO;
	if (memcmp(out, in, BLOCK) != 0)
		return -EBADMSG;
	return n % 8 ? leat_stat(m, "work", &st) : leat_fsync(f);
}

static void *work_main(void *arg)
{
	struct work *w = arg;
	uint8_t *out = malloc(BLOCK), *in = malloc(BLOCK);
	struct leat_file *f = NULL;
	struct leat_info info = { .size = sizeof(info) };
	struct leat *m = NULL;

	w->err = leat_mount(w->url, NULL, &m);
	if (!w->err)
		w->err = leat_open(m, "work", O_RDWR | O_CREAT, 0644, &f);
	while (!w->err && !atomic_load(&w->stop)) {
		w->err = work_round(m, f, atomic_load(&w->rounds), out, in);
		atomic_fetch_add(&w->rounds, 1);
	}
	if (f && !w->err)
		w->err = leat_close(f);
	if (m) {
		leat_info(m, &info);
		w->reconnects = info.reconnects;
	}
	leat_umount(m);
	free(out);
	free(in);
	atomic_store(&w->ended, true); /* ends the wait for this thread */
	return NULL;
}

static void under_work(const char *url)
{
	/* the last ones change under open files how their bytes travel */
	static const char *const changes[] = {
		"", ",anonuid=77",
#ifdef HAVE_AIO
		",read=direct,write=direct", ",read=auto", ",overlap=streams,write=direct",
#endif
	};
	struct work w = { .url = url };
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, work_main, &w), 0);
	for (unsigned i = 0; i < RELOADS; i++) {
		unsigned seen = atomic_load(&w.rounds);

		/* at least one round has begun and ended since the last */
		while (atomic_load(&w.rounds) < seen + 2 && !atomic_load(&w.ended))
			sched_yield();
		reload(x_with(changes[i % ARRAY_SIZE(changes)]), i % 2 ? y_at(y_dir) : NULL);
	}
	atomic_store(&w.stop, true);
	pthread_join(t, NULL);
	assert_int_equal(w.err, 0);
	assert_int_equal(w.reconnects, 0);
	assert_true(atomic_load(&w.rounds) >= 2 * RELOADS);
	reload(x_with(""), NULL);
}

static void undisturbed_tcp(void **state)
{
	(void)state;
	under_work(flow.tcp_url);
}

static void undisturbed_local(void **state)
{
	(void)state;
	under_work(flow.local_url);
}

/* ---- gone and back ------------------------------------------------------------------------ */

static void gone_and_back(const char *base)
{
	struct leat *m, *x = leat_flow_mount(base, NULL);
	struct leat_file *f, *g;
	struct leat_info info = { .size = sizeof(info) };
	char url[160], buf[8];

	put_file(y_dir, "f", "first");
	reload(x_with(""), y_at(y_dir));
	url_of_y(url, base);
	m = leat_flow_mount(url, "readahead=0");
	assert_int_equal(leat_open(m, "f", O_RDONLY, 0, &f), 0);
	assert_int_equal(leat_pread(f, buf, 5, 0), 5);
	/* not committed: to be synced by the close */
	assert_int_equal(leat_open(m, "g", O_RDWR | O_CREAT, 0644, &g), 0);
	assert_int_equal(leat_pwrite(g, "kept", 4, 0), 4);
	assert_true(tmp_dir_open_below(y_dir) > 0);

	reload(x_with(""), NULL);
	assert_int_equal(leat_pread(f, buf, 5, 0), -ESTALE);
	/* while calls go on, the last descriptor is closed; the test's limit ends one that is not */
	while (tmp_dir_open_below(y_dir))
		assert_int_equal(leat_null(x), 0);

	reload(x_with(""), y_at(y_dir));
	assert_int_equal(leat_pread(f, buf, 5, 0), 5);
	assert_memory_equal(buf, "first", 5);
	assert_int_equal(leat_fsync(g), 0);
	assert_int_equal(leat_pread(g, buf, 4, 0), 4);
	assert_memory_equal(buf, "kept", 4);
	leat_info(m, &info);
	assert_int_equal(info.reconnects, 0);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_close(g), 0);
	leat_umount(m);
	leat_umount(x);
	reload(x_with(""), NULL);
}

static void gone_and_back_tcp(void **state)
{
	(void)state;
	gone_and_back(flow.tcp_url);
}

static void gone_and_back_local(void **state)
{
	(void)state;
	gone_and_back(flow.local_url);
}

/* The same name for another directory: an open file is not one of it, and no old byte is read. */
static void moved(void **state)
{
	char url[160], buf[8];
	struct leat_file *f;
	struct leat *m;
	ssize_t n;

	(void)state;
	put_file(y_dir, "f", "first");
	put_file(z_dir, "f", "other");
	reload(x_with(""), y_at(y_dir));
	url_of_y(url, flow.tcp_url);
	m = leat_flow_mount(url, "readahead=0");
	assert_int_equal(leat_open(m, "f", O_RDONLY, 0, &f), 0);
	assert_int_equal(leat_pread(f, buf, 5, 0), 5);
	reload(x_with(""), y_at(z_dir));
	/* the kernel's handles find a file wherever it lies in its file system; it is not opened again
	 * from what was open in the export as it was */
	while (tmp_dir_open_below(y_dir)) /* the last call's, perhaps, for a moment */
		assert_int_equal(leat_null(m), 0);
	n = leat_pread(f, buf, 5, 0);
	assert_true(n == -ESTALE || n == 5);
	leat_close(f);
	leat_umount(m);
	m = leat_flow_mount(url, NULL);
	assert_int_equal(leat_open(m, "f", O_RDONLY, 0, &f), 0);
	assert_int_equal(leat_pread(f, buf, 5, 0), 5);
	assert_memory_equal(buf, "other", 5);
	assert_int_equal(leat_close(f), 0);
	leat_umount(m);
	reload(x_with(""), NULL);
}

/* ---- other rules -------------------------------------------------------------------------- */

/* A connection that stands is asked by the new rules at its next call. */
static void clients(void **state)
{
	struct leat *m = leat_flow_mount(flow.tcp_url, "cache=none");
	struct leat *local = leat_flow_mount(flow.local_url, NULL);
	struct leat_info info = { .size = sizeof(info) };
	struct leat_file *f;
	struct stat st;
	char buf[5];

	(void)state;
	put_file(flow.export, "c", "hello");
	assert_int_equal(leat_open(m, "c", O_RDWR, 0, &f), 0);
	assert_int_equal(leat_pread(f, buf, 5, 0), 5);
	for (int i = 0; i < 3; i++) {
		reload(x_with(",clients=192.0.2.0/24"), NULL);
		assert_int_equal(leat_pread(f, buf, 5, 0), -EACCES);
		assert_int_equal(leat_lstat(m, "c", &st), -EACCES);
		assert_int_equal(leat_lstat(local, "c", &st), 0);
		reload(x_with(",clients=192.0.2.0/24,127.0.0.0/8"), NULL);
		assert_int_equal(leat_pread(f, buf, 5, 0), 5);
	}
	reload(x_with(",ro"), NULL);
	assert_int_equal(leat_mkdir(m, "d", 0755), -EROFS);
	assert_int_equal(leat_pread(f, buf, 5, 0), 5);
	reload(x_with(""), NULL);
	assert_int_equal(leat_mkdir(m, "d", 0755), 0);
	assert_int_equal(leat_rmdir(m, "d"), 0);
	leat_info(m, &info);
	assert_int_equal(info.reconnects, 0);
	assert_int_equal(leat_close(f), 0);
	leat_umount(m);
	leat_umount(local);
}

/* the door, and MNT behind it */
static void door(void **state)
{
	struct leat_opts *once = leat_opts_create();
	struct leat *m;

	(void)state;
	reload(x_with(",clients=192.0.2.0/24"), NULL);
	assert_int_equal(leat_set(once, "timeo", "500ms"), 0);
	assert_int_equal(leat_set(once, "retry", "soft"), 0);
	assert_true(leat_mount(flow.tcp_url, once, &m) < 0);
	leat_opts_destroy(once);
	reload(x_with(",clients=192.0.2.0/24"), y_at(y_dir));
	assert_int_equal(leat_mount(flow.tcp_url, NULL, &m), -EACCES); /* y admits this client, x does not */
	reload(x_with(""), NULL);
	assert_int_equal(leat_mount(flow.tcp_url, NULL, &m), 0);
	leat_umount(m);
}

/* What cannot be opened leaves everything as it was. */
static void refused(void **state)
{
	const char *twice[] = { x_with(",ro"), y_at(y_dir), NULL };
	struct leat *m = leat_flow_mount(flow.tcp_url, NULL);
	static struct conf conf;
	char why[CONF_WHY_BYTES] = "";

	(void)state;
	conf_init(&conf);
	for (int i = 0; twice[i]; i++)
		assert_int_equal(export_conf_parse(twice[i], &conf.exports[conf.nexports++], why,
						   sizeof(why)), 0);
	leat_flow_remove(z_dir);
	free(conf.exports[1].path);
	conf.exports[1].path = strdup(z_dir);
	assert_int_equal(server_reload(flow.server, &conf, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, z_dir));
	conf_fini(&conf);
	assert_int_equal(mkdir(z_dir, 0755), 0);
	assert_int_equal(leat_mkdir(m, "d", 0755), 0);
	assert_int_equal(leat_rmdir(m, "d"), 0);
	leat_umount(m);
}

/* A server inside a program has no manager that reads files for it; a manager that is set is called. */
static int asked_reload(const struct server_manager *m, char *said, size_t said_bytes)
{
	(void)m;
	snprintf(said, said_bytes, "%s", "some words");
	return 0;
}

static atomic_uint drains;

static void asked_drain(const struct server_manager *m)
{
	(void)m;
	atomic_fetch_add(&drains, 1);
}

static void managed(void **state)
{
	static const struct server_manager manager = { asked_reload, asked_drain };
	struct leat *local = leat_flow_mount(flow.local_url, NULL);
	struct leat *tcp = leat_flow_mount(flow.tcp_url, NULL);
	char said[64] = "";

	(void)state;
	assert_int_equal(leat_server_reload(local, said, sizeof(said)), -EOPNOTSUPP);
	assert_int_equal(leat_server_drain(local), -EOPNOTSUPP);
	server_set_manager(flow.server, &manager);
	assert_int_equal(leat_server_reload(local, said, sizeof(said)), 0);
	assert_string_equal(said, "some words");
	assert_int_equal(leat_server_drain(local), 0);
	assert_int_equal(atomic_load(&drains), 1);
	assert_int_equal(leat_server_reload(tcp, said, sizeof(said)), -EPERM);
	assert_non_null(strstr(leat_error(tcp), "own user"));
	assert_int_equal(leat_server_drain(tcp), -EPERM);
	assert_int_equal(atomic_load(&drains), 1);
	leat_umount(local);
	leat_umount(tcp);
}

static int group_setup(void **state)
{
	(void)state;
	leat_flow_create(&flow);
	snprintf(y_dir, sizeof(y_dir), "%s/y", flow.dir);
	snprintf(z_dir, sizeof(z_dir), "%s/z", flow.dir);
	assert_int_equal(mkdir(y_dir, 0755), 0);
	assert_int_equal(mkdir(z_dir, 0755), 0);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	leat_flow_destroy(&flow);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(undisturbed_tcp),   cmocka_unit_test(undisturbed_local),
		cmocka_unit_test(gone_and_back_tcp), cmocka_unit_test(gone_and_back_local),
		cmocka_unit_test(moved),	     cmocka_unit_test(clients),
		cmocka_unit_test(door),		     cmocka_unit_test(refused),
		cmocka_unit_test(managed),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
