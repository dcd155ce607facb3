/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_rig.c - a store by itself: an engine, workers, an export without a server, and a file
 *
 * Operation:  create, begin and wait for operations, destroy.
 * Memory:     The caller's structure.
 * Threads:    One, and the workers.
 * Errors:     Asserted with cmocka.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fsync_batch.h"
#include "store_rig.h"

#define RIG_DEV 77u /* the device that the file would name when a loss is reported */

static void on_lost(void *ctx, uint64_t dev)
{
	struct store_rig *g = ctx;

	if (dev == RIG_DEV)
		__atomic_fetch_add(&g->lost, 1, __ATOMIC_RELAXED);
}

static void set_options(struct data_conf *d, const char *options)
{
	char text[128], why[128] = "", *save, *key;

	data_conf_init(d);
	snprintf(text, sizeof(text), "%s", options);
	for (key = strtok_r(text, ",", &save); key; key = strtok_r(NULL, ",", &save)) {
		char *value = strchr(key, '=');

		*value++ = '\0';
		assert_int_equal(data_conf_option(d, key, value, why, sizeof(why)), 0);
	}
	assert_int_equal(data_conf_check(d, why, sizeof(why)), 0);
}

void store_rig_create(struct store_rig *g, const char *options)
{
	int fd;

	memset(g, 0, sizeof(*g));
	tmp_dir_create(&g->dir);
	snprintf(g->path, sizeof(g->path), "%s", tmp_dir_path(&g->dir, "file"));
	set_options(&g->exp.conf.data, options);
	g->exp.conf.name = (char *)(uintptr_t)"/rig";
	g->exp.conf.path = g->dir.path;
	assert_int_equal(fsync_batch_create(on_lost, g, &g->exp.backing.fsyncs), 0);
	assert_int_equal(rpcrdma_domain_create(NULL, &g->domain), 0);
	assert_int_equal(rpcrdma_engine_create(g->domain, NULL, &g->reactor.loop.engine), 0);
	assert_int_equal(worker_pool_create(3, &g->reactor.loop.workers), 0);
	fd = open(g->dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	fs_limits_find(fd, true, &g->exp.backing.limits);
	close(fd);
	g->exp.backing.name = g->exp.conf.name;
	g->exp.backing.path = g->exp.conf.path;
	g->exp.backing.data = &g->exp.conf.data;
	g->ops = store_of(&g->exp.backing);
	g->env = (struct store_env){ .loop = &g->reactor.loop, .counters = &g->reactor.counters.store };
	assert_int_equal(store_create(g->ops, &g->env, &g->exp.backing, &g->store), 0);
	fd = open(g->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	store_adopt(&g->exp.backing, fd, true, &g->file);
	g->file.dev = RIG_DEV;
}

void store_rig_destroy(struct store_rig *g)
{
	store_close(&g->file);
	store_destroy(g->store);
	worker_pool_destroy(g->reactor.loop.workers);
	rpcrdma_engine_destroy(g->reactor.loop.engine);
	rpcrdma_domain_destroy(g->domain);
	fsync_batch_destroy(g->exp.backing.fsyncs);
	tmp_dir_destroy(&g->dir);
}

static void on_done(struct store_io *io)
{
	io->done = NULL;
}

void store_rig_begin(struct store_rig *g, struct store_io *io)
{
	static const struct creds root;

	io->done = on_done;
	if (!io->file)
		io->file = &g->file;
	if (!io->creds)
		io->creds = &root;
	if (store_submit(g->store, io))
		io->done = NULL;
	else
		assert_non_null(io->done); /* never inside store_submit() */
}

bool store_rig_is_done(const struct store_io *io)
{
	return !io->done;
}

void store_rig_wait(struct store_rig *g, const struct store_io *io)
{
	while (!store_rig_is_done(io))
		(void)rpcrdma_engine_wait(g->reactor.loop.engine, -1);
}
