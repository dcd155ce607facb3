/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leat_flow.c - a leatd in this process, a directory that it exports, and a mount of it
 *
 * Operation:  leat_flow_create() before a group of tests, leat_flow_destroy() after it.
 * Memory:     Caller's structure; the server is server.h's.
 * Threads:    The server has its own; these functions belong to the test's.
 * Errors:     Asserted with cmocka.
 */
#include <errno.h>
#include <ftw.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "leat_flow.h"
#include "server.h"

#define STOP_MS 20000
#define RDMA_PORT 20070u /* and up: two test programs at once have others */

const char *leat_flow_rdma(void)
{
	return getenv("LEAT_FLOW_RDMA");
}

unsigned leat_flow_fewer(unsigned n)
{
	return leat_flow_rdma() ? n / 8 : n;
}

void leat_flow_skip_rdma(const char *why)
{
	if (!leat_flow_rdma())
		return;
	print_message("not over RDMA: %s\n", why);
	skip();
}

struct start {
	const struct conf *conf;
	struct server **ret;
	int rc;
};

static void *start_server(void *arg)
{
	struct start *s = arg;

	s->rc = server_start(s->conf, s->ret);
	return NULL;
}

int leat_flow_start_aside(const struct conf *conf, struct server **ret)
{
	struct start s = { conf, ret, 0 };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, start_server, &s), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return s.rc;
}

void leat_flow_start(struct leat_flow *f)
{
	static struct conf conf; /* too large for a stack */
	static unsigned servers;
	char export[256], tcp[64], local[128], keys[96], rdma[96], why[CONF_WHY_BYTES] = "";
	char *argv[] = { (char[]){ "leatd" }, (char[]){ "--export" }, export, (char[]){ "--listen" },
			 tcp, (char[]){ "--listen" }, local, (char[]){ "--state-dir" }, keys,
			 (char[]){ "--listen" }, rdma, NULL };
	const char *rdma_host = leat_flow_rdma();
	int rc;

	snprintf(export, sizeof(export), "/x=%s,rw,no_root_squash%s%s%s", f->export,
		 rdma_host ? ",clients=127.0.0.1,clients=" : "", rdma_host ? rdma_host : "", f->options ? f->options : "");
	snprintf(tcp, sizeof(tcp), "tcp://127.0.0.1:%u", f->port);
	snprintf(local, sizeof(local), "local://%s/sock", f->dir);
	snprintf(keys, sizeof(keys), "%s/state", f->dir); /* handles survive a restart */
	if (!f->rdma_port)
		f->rdma_port = RDMA_PORT + (unsigned)getpid() % 700 * 16 + servers++;
	snprintf(rdma, sizeof(rdma), "rdma://%s:%u", rdma_host ? rdma_host : "", f->rdma_port);
	conf_init(&conf);
	if (conf_args(&conf, (int)ARRAY_SIZE(argv) - (rdma_host ? 1 : 3), argv, why) != CONF_RUN || conf_check(&conf, why))
		fail_msg("configuration: %s", why);
	conf.reactors = 2;
	conf.log_level = LOG_LEVEL_ERR;
	log_state.level = LOG_LEVEL_ERR;
	rc = leat_flow_start_aside(&conf, &f->server);
	if (rc)
		fail_msg("server_start: %s", strerror(-rc));
	conf_fini(&conf);
	for (size_t i = 0; i < server_listeners(f->server); i++) {
		if (server_listener(f->server, i)->transport == RPCRDMA_TCP)
			f->port = server_listener(f->server, i)->port;
	}
	assert_int_not_equal(f->port, 0);
	snprintf(f->tcp_url, sizeof(f->tcp_url), "tcp://127.0.0.1:%u/x", f->port);
	snprintf(f->leat_url, sizeof(f->leat_url), "leat://127.0.0.1:%u/x", f->port);
	snprintf(f->local_url, sizeof(f->local_url), "local://%s/sock/x", f->dir);
	if (rdma_host) {
		snprintf(f->tcp_url, sizeof(f->tcp_url), "%s/x", rdma);
		snprintf(f->local_url, sizeof(f->local_url), "%s/x", rdma);
	}
}

void leat_flow_stop(struct leat_flow *f)
{
	assert_int_equal(server_stop(f->server, STOP_MS), 0);
	f->server = NULL;
}

void leat_flow_create(struct leat_flow *f)
{
	const char *tmp = getenv("TMPDIR");
	char state[96];

	mallopt(M_PERTURB, 0xa5); /* memory that is not set is not zero by chance */
	memset(f, 0, sizeof(*f));
	snprintf(f->dir, sizeof(f->dir), "%s/leat-flow.XXXXXX",
		 tmp && strlen(tmp) < 32 ? tmp : "/tmp");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->export, sizeof(f->export), "%s/export", f->dir);
	snprintf(f->twin, sizeof(f->twin), "%s/twin", f->dir);
	umask(0); /* modes go over the wire as they are; the local twin shall do the same */
	assert_int_equal(mkdir(f->export, 0755), 0);
	assert_int_equal(mkdir(f->twin, 0755), 0);
	snprintf(state, sizeof(state), "%s/state", f->dir);
	assert_int_equal(mkdir(state, 0700), 0);
	leat_flow_start(f);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

void leat_flow_remove(const char *path)
{
	assert_int_equal(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

void leat_flow_destroy(struct leat_flow *f)
{
	if (f->server)
		leat_flow_stop(f);
	leat_flow_remove(f->dir);
}

struct leat *leat_flow_mount(const char *base, const char *options)
{
	char url[512];
	struct leat *m;

	snprintf(url, sizeof(url), "%s%s%s", base, options ? "?" : "", options ? options : "");
	if (leat_mount(url, NULL, &m))
		fail_msg("%s", leat_error(NULL));
	return m;
}

const char *leat_flow_text(struct leat *m, enum leat_text what, size_t index)
{
	static _Thread_local char text[4096];

	if (leat_describe(m, what, index, text, sizeof(text)) < 0)
		fail_msg("no text %d of index %zu", (int)what, index);
	return text;
}

uint64_t leat_flow_stat(struct leat *m, const char *name)
{
	uint64_t v = 0;

	if (leat_stat_value(m, name, &v))
		fail_msg("no counter %s", name);
	return v;
}

void leat_flow_fill(void *buf, size_t len, unsigned seed)
{
	uint8_t *p = buf;
	uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;

	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p[i] = (uint8_t)(x >> 32);
	}
}
