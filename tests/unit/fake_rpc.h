/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fake_rpc.h - the functions of rpcrdma.h that libleat calls, without a transport beneath
 *
 * For a test program to include: its definitions take the place of librpcrdma's. Calls wait in an
 * array until the engine is run; then one of them, the oldest or by `fake.pick` any other, is
 * answered by `fake.answer`, which sees arguments and results as the structures they are. Messages
 * come before calls, calls before timers, which are due at once, except those of an hour or more: they wait for
 * fake_hours_later(). An engine with nothing left to
 * run fails the test: a task waits for ever.
 */
#ifndef FAKE_RPC_H
#define FAKE_RPC_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "file.h"
#include "handle.h"
#include "nfs3.h"
#include "op.h"
#include "rpcrdma.h"
#include "sync.h"

#define FAKE_CALLS_MAX 4096

struct fake {
	/* to be set by the test */
	int (*answer)(struct rpcrdma_call *call); /* Return: the error for done() */
	unsigned (*pick)(unsigned count);         /* which of the waiting calls; NULL: the oldest */
	int refuse_calls;                         /* rpcrdma_clnt_call() fails so */
	bool early;                               /* answered at once, but told later */
	bool silent;                              /* no call is answered */
	bool unsent;                              /* calls wait at the client */
	struct rpcrdma_clnt *created;             /* by rpcrdma_clnt_open(), which else fails */
	int next_fails;                           /* cancelling a call lets the next one fail with this error */
	/* what happened */
	unsigned calls, most_waiting, timers_fired;
	uint64_t last_delay_ns;
	struct rpcrdma_clnt_attr attr;            /* of the last connection that was created */
	uint32_t deadline_ms;                     /* of the last call */
	unsigned by_proc[22];
	unsigned by_clnt[16];
	/* private */
	struct fake_waiting {
		struct rpcrdma_call *call;
		bool answered;
		int err;
	} waiting[FAKE_CALLS_MAX];
	unsigned count;
	struct rpcrdma_msg *msgs, **msgs_tail;
	struct rpcrdma_timer *timers, *slow_timers;
};

static struct fake fake;

struct rpcrdma_domain {
	int unused;
};

struct rpcrdma_engine {
	int unused;
};

struct rpcrdma_clnt {
	unsigned index;
};

static struct rpcrdma_domain fake_domain;
static struct rpcrdma_engine fake_engine;
static struct rpcrdma_clnt fake_clnts[16];

int rpcrdma_domain_create(const struct rpcrdma_domain_attr *attr, struct rpcrdma_domain **ret)
{
	(void)attr;
	*ret = &fake_domain;
	return 0;
}

void rpcrdma_domain_destroy(struct rpcrdma_domain *d)
{
	(void)d;
}

void rpcrdma_domain_stats_sized(struct rpcrdma_domain *d, struct rpcrdma_stats *ret, size_t bytes)
{
	(void)d;
	memset(ret, 0, bytes);
}

int rpcrdma_mem_alloc(struct rpcrdma_domain *d, size_t bytes, void **ret)
{
	(void)d;
	*ret = malloc(bytes);
	return *ret ? 0 : -ENOMEM;
}

void rpcrdma_mem_free(struct rpcrdma_domain *d, void *mem)
{
	(void)d;
	free(mem);
}

const char *rpcrdma_registration(size_t n)
{
	return n ? NULL : "auto";
}

size_t rpcrdma_reg_bytes_default(void)
{
	return 1 << 20;
}

int rpcrdma_mem_register(struct rpcrdma_domain *d, void *mem, size_t bytes)
{
	(void)d;
	(void)mem;
	(void)bytes;
	return 0;
}

int rpcrdma_mem_unregister(struct rpcrdma_domain *d, void *mem)
{
	(void)d;
	(void)mem;
	return 0;
}

int rpcrdma_engine_create(struct rpcrdma_domain *d, const struct rpcrdma_engine_attr *attr,
			  struct rpcrdma_engine **ret)
{
	(void)d;
	(void)attr;
	*ret = &fake_engine;
	return 0;
}

void rpcrdma_engine_destroy(struct rpcrdma_engine *e)
{
	(void)e;
}

void rpcrdma_engine_abandon(struct rpcrdma_engine *e)
{
	(void)e;
}

int rpcrdma_engine_fd(const struct rpcrdma_engine *e)
{
	(void)e;
	return -1;
}

int rpcrdma_engine_arm(struct rpcrdma_engine *e)
{
	(void)e;
	return 0;
}

/* It has no thread that could sleep. */
bool rpcrdma_engine_enter(struct rpcrdma_engine *e)
{
	(void)e;
	return false;
}

bool rpcrdma_engine_is_visited(const struct rpcrdma_engine *e)
{
	(void)e;
	return false;
}

void rpcrdma_engine_linger(struct rpcrdma_engine *e, const bool *done)
{
	(void)e;
	(void)done;
}

void rpcrdma_engine_leave(struct rpcrdma_engine *e)
{
	(void)e;
}

void rpcrdma_count_copied(struct rpcrdma_engine *e, uint64_t bytes)
{
	(void)e;
	(void)bytes;
}

void rpcrdma_engine_post(struct rpcrdma_engine *e, struct rpcrdma_msg *msg)
{
	(void)e;
	msg->next = NULL;
	if (!fake.msgs)
		fake.msgs_tail = &fake.msgs;
	*fake.msgs_tail = msg;
	fake.msgs_tail = &msg->next;
}

void rpcrdma_timer_set(struct rpcrdma_engine *e, struct rpcrdma_timer *t, uint64_t delay_ns)
{
	(void)e;
	if (delay_ns >= 3600 * NS_PER_S) {
		t->left = fake.slow_timers;
		fake.slow_timers = t;
		return;
	}
	fake.last_delay_ns = delay_ns;
	t->left = fake.timers;
	fake.timers = t;
}

int rpcrdma_clnt_open(struct rpcrdma_engine *e, const struct rpcrdma_clnt_attr *attr,
		      struct rpcrdma_clnt **ret)
{
	(void)e;
	if (!fake.created)
		return -EOPNOTSUPP;
	fake.attr = *attr;
	*ret = fake.created;
	return 0;
}

struct rpcrdma_engine *rpcrdma_clnt_engine(const struct rpcrdma_clnt *c)
{
	(void)c;
	return &fake_engine;
}

void rpcrdma_clnt_destroy(struct rpcrdma_clnt *c)
{
	(void)c;
}

void rpcrdma_clnt_info_sized(const struct rpcrdma_clnt *c, struct rpcrdma_clnt_info *ret, size_t bytes)
{
	(void)c;
	memset(ret, 0, bytes);
	ret->state = RPCRDMA_CLNT_UP;
}

int rpcrdma_clnt_call(struct rpcrdma_clnt *c, struct rpcrdma_call *call)
{
	if (fake.refuse_calls)
		return fake.refuse_calls;
	assert_true(fake.count < FAKE_CALLS_MAX);
	fake.waiting[fake.count++] = (struct fake_waiting){
		.call = call,
		.answered = fake.early,
		.err = fake.early ? fake.answer(call) : 0,
	};
	fake.calls++;
	fake.deadline_ms = call->deadline_ms;
	call->sent = !fake.unsent;
	fake.by_clnt[c->index]++;
	if (call->prog == NFS_PROGRAM)
		fake.by_proc[call->proc]++;
	fake.most_waiting = MAX(fake.most_waiting, fake.count);
	return 0;
}

/* As when the place of a cancelled call goes to one that cannot be sent. */
static void fake_fail_next(unsigned i)
{
	struct rpcrdma_call *call = fake.waiting[i].call;

	memmove(&fake.waiting[i], &fake.waiting[i + 1], (fake.count - i - 1) * sizeof(fake.waiting[0]));
	fake.count--;
	call->done(call, fake.next_fails);
}

void rpcrdma_clnt_reconnect(struct rpcrdma_clnt *c, const char *why)
{
	(void)c;
	(void)why;
}

void rpcrdma_clnt_cancel(struct rpcrdma_clnt *c, struct rpcrdma_call *call)
{
	(void)c;
	for (unsigned i = 0; i < fake.count; i++) {
		if (fake.waiting[i].call != call)
			continue;
		memmove(&fake.waiting[i], &fake.waiting[i + 1], (fake.count - i - 1) * sizeof(fake.waiting[0]));
		fake.count--;
		call->done(call, -ECANCELED);
		if (fake.next_fails && i < fake.count)
			fake_fail_next(i);
		return;
	}
}

static void fake_unlink_timer(struct rpcrdma_timer **at, struct rpcrdma_timer *t)
{
	while (*at && *at != t)
		at = &(*at)->left;
	if (*at)
		*at = t->left;
}

void rpcrdma_timer_cancel(struct rpcrdma_engine *e, struct rpcrdma_timer *t)
{
	(void)e;
	fake_unlink_timer(&fake.timers, t);
	fake_unlink_timer(&fake.slow_timers, t);
}

/* Fires the slow timers, each once. Return: their number */
static inline unsigned fake_hours_later(void)
{
	struct rpcrdma_timer *t = fake.slow_timers;
	unsigned n = 0;

	fake.slow_timers = NULL;
	for (struct rpcrdma_timer *next; t; t = next, n++) {
		next = t->left;
		t->fn(t);
	}
	return n;
}

static void fake_answer_one(void)
{
	unsigned i = fake.pick ? fake.pick(fake.count) : 0;
	struct fake_waiting w = fake.waiting[i];

	memmove(&fake.waiting[i], &fake.waiting[i + 1],
		(fake.count - i - 1) * sizeof(fake.waiting[0]));
	fake.count--;
	w.call->done(w.call, w.answered ? w.err : fake.answer(w.call));
}

int rpcrdma_engine_poll(struct rpcrdma_engine *e)
{
	(void)e;
	if (fake.msgs) {
		struct rpcrdma_msg *msg = fake.msgs;

		fake.msgs = msg->next;
		msg->fn(msg);
		return 1;
	}
	if (fake.count && !fake.silent) {
		fake_answer_one();
		return 1;
	}
	if (fake.timers) {
		struct rpcrdma_timer *t = fake.timers;

		fake.timers = t->left;
		fake.timers_fired++;
		t->fn(t);
		return 1;
	}
	return 0;
}

int rpcrdma_engine_wait(struct rpcrdma_engine *e, int timeout_ms)
{
	int n = rpcrdma_engine_poll(e);

	if (!n && timeout_ms < 0)
		fail_msg("nothing is left to happen, and someone waits");
	return n;
}

/* A mount with @conns connections, as leat_mount() would have left it. */
static struct leat *fake_mount(unsigned conns)
{
	const struct rpcrdma_addr named = { .transport = RPCRDMA_TCP, .host = "fake" };
	struct leat_session *session;
	struct leat *m;
	char why[256];
	struct lt_url url;

	memset(&fake, 0, sizeof(fake));
	assert_int_equal(lt_url_parse("tcp://fake/export", NULL, &url, why, sizeof(why)), 0);
	assert_int_equal(lt_session_create(&url, NULL, &session), 0);
	assert_int_equal(lt_handle_create(session, &url, &named, NULL, &m), 0);
	session->is_private = true;
	for (unsigned i = 0; i < conns; i++) {
		fake_clnts[i].index = i;
		m->server->clnt[i] = &fake_clnts[i];
	}
	m->server->clnts = conns;
	m->rsize = m->wsize = 4096;
	m->dirsize = 65536;
	m->root.len = 4;
	memcpy(m->root.data, "root", 4);
	strcpy(m->given_url, "tcp://fake:2049/export");
	return m;
}

/* A file opened on it, without any call. */
static inline struct leat_file *fake_open(struct leat *m, int flags)
{
	struct leat_file *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->m = m;
	f->flags = flags;
	f->path = strdup("/file");
	f->fh.len = 4;
	memcpy(f->fh.data, "file", 4);
	f->sequential_pos = UINT64_MAX;
	pthread_mutex_init(&f->pos_lock, NULL);
	list_add_tail(&m->files, &f->link);
	return f;
}

#endif
