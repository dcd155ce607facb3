/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nomem_server.c - lets the Nth allocation of a server in this process fail
 */
#include "nomem_server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "conf.h"
#include "nomem.h"
#include "server.h"

static atomic_ulong countdown; /* 0: nothing fails */
static atomic_bool failed;
static _Thread_local bool is_ours; /* a thread of the test, or one that starts a server */
static bool counts_ours;	   /* allocations of such a thread, instead of the server's */
static unsigned long at_start;

static bool decide(void)
{
	unsigned long n = atomic_load(&countdown);

	if (!n || is_ours != counts_ours)
		return false;
	while (n && !atomic_compare_exchange_weak(&countdown, &n, n - 1))
		;
	if (n == 1)
		atomic_store(&failed, true);
	return n == 1;
}

void nomem_server_init(void)
{
	is_ours = true;
	nomem_decide = decide;
}

void nomem_server_at_start(unsigned long n)
{
	if (n)
		atomic_store(&failed, false);
	at_start = n;
}

void nomem_server_serving(unsigned long n)
{
	if (n)
		atomic_store(&failed, false);
	atomic_store(&countdown, n);
}

bool nomem_server_failed(void)
{
	return atomic_load(&failed);
}

/* ---- io_destroy(), which waits for a grace period of the kernel: hundreds of servers need not ---- */

struct io_context;
int __real_io_destroy(struct io_context *ctx);
int __wrap_io_destroy(struct io_context *ctx);

static void *destroy(void *ctx)
{
	(void)__real_io_destroy(ctx);
	return NULL;
}

int __wrap_io_destroy(struct io_context *ctx)
{
	pthread_t t;

	if (pthread_create(&t, NULL, destroy, ctx))
		return __real_io_destroy(ctx);
	return -pthread_detach(t);
}

/* ---- starting and reloading ---- */

int __real_server_start(const struct conf *conf, struct server **ret);
int __wrap_server_start(const struct conf *conf, struct server **ret);
int __real_server_reload(struct server *s, const struct conf *conf, char *why, size_t why_bytes);
int __wrap_server_reload(struct server *s, const struct conf *conf, char *why, size_t why_bytes);

static void begin(void)
{
	is_ours = true;
	counts_ours = at_start != 0;
	atomic_store(&countdown, at_start);
}

static void end(void)
{
	atomic_store(&countdown, 0);
	counts_ours = false;
}

int __wrap_server_start(const struct conf *conf, struct server **ret)
{
	int err;

	begin();
	err = __real_server_start(conf, ret);
	end();
	return err;
}

int __wrap_server_reload(struct server *s, const struct conf *conf, char *why, size_t why_bytes)
{
	int err;

	begin();
	err = __real_server_reload(s, conf, why, why_bytes);
	end();
	return err;
}
