/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * sync.h - the blocking functions of this library
 */
#ifndef LT_SYNC_H
#define LT_SYNC_H

#include <semaphore.h>

#include "handle.h"

/* One caller that waits for one result. On its stack. */
struct lt_wait {
	struct leat_session *session;
	struct leat_cb cb;  /* passed to the asynchronous call */
	bool service;       /* another thread delivers the result */
	bool done;
	bool interrupted;   /* owner's thread, until done: cancelled by leat_interrupt() */
	int64_t result;
	sem_t ended;
	atomic_bool posted; /* set before `ended`: the thread sanitizer does not know sem_clockwait() */
	bool seen;          /* the waiter's: `ended` has been taken */
};

/** lt_sync_in_callback - must this thread not wait, because it runs a callback of the session? */
bool lt_sync_in_callback(const struct leat_session *s);

/** lt_sync_begin - prepares @w, before the asynchronous call
 * @s: that of the handle; NULL: no handle
 *
 * Return: 0; -EINVAL: no handle; -EOWNERDEAD; -EDEADLK: inside a callback, where a wait would never end.
 */
must_check int lt_sync_begin(struct lt_wait *w, struct leat_session *s);

/** lt_sync_end - waits if @rc of the asynchronous call is 0. Return: the result. */
int64_t lt_sync_end(struct lt_wait *w, int rc);

struct lt_task;

/** lt_sync_waits_for - does a synchronous call wait for @t? */
bool lt_sync_waits_for(const struct lt_task *t);

/** lt_sync_begin_call - as lt_sync_begin(), for a call that leat_interrupt() can end
 * Return: as lt_sync_begin(); -EINTR: it has been called already.
 */
must_check int lt_sync_begin_call(struct lt_wait *w, struct leat *m);

/** LT_WAIT_FOR - starts an asynchronous call and waits for it
 * @m: the mount, or NULL
 * @start: the call, with the callback w.cb
 *
 * The value is the result of the call, or the error of lt_sync_begin() or of @start.
 */
#define LT_WAIT_FOR(m, start) LT_WAIT_FOR_AS(m, __func__, start)

/** LT_WAIT_FOR_AS - as LT_WAIT_FOR(), if the function that the program called is not the one that waits
 * @name: that function, for leat_error()
 */
#define LT_WAIT_FOR_AS(m, name, start)                                                                       \
	__extension__({                                                                                      \
		struct lt_wait w;                                                                            \
		struct leat *m_ = (m);                                                                       \
		int refused = lt_sync_begin_call(&w, m_);                                                    \
		refused ? lt_sync_refused(m_, name, refused) : lt_sync_end_call(&w, m_, name, start);        \
	})

/** lt_sync_end_call - as lt_sync_end(); if @rc, also as lt_sync_refused() */
int64_t lt_sync_end_call(struct lt_wait *w, struct leat *m, const char *name, int rc);

/** lt_sync_refused - sets the text of leat_error(@m) if a function returns the error @rc and none has set it
 * @m: NULL: sets none
 * @name: the function; lt_sync_begin_call() came before, or lt_handle_untold()
 *
 * Return: @rc.
 */
int lt_sync_refused(struct leat *m, const char *name, int rc);

/* A call made during the mount. */
struct lt_rpc {
	struct rpcrdma_call call;
	uint32_t patience_ms; /* 0: timeo of the server's first mount */
	/* private */
	struct rpcrdma_clnt *clnt;
	struct rpcrdma_msg msg;
	struct lt_wait wait;
};

/* A value of struct lt_rpc. Without arguments or results, the filter is lt_call_xdr_nothing(), with NULL.
 * @reply_max: bytes of the longest results
 */
#define LT_RPC(prog_, vers_, proc_, encode_, args_, decode_, res_, reply_max_)                               \
	{                                                                                                    \
		.call = {                                                                                    \
			.prog = prog_,                                                                       \
			.vers = vers_,                                                                       \
			.proc = proc_,                                                                       \
			.encode = (xdrproc_t)(encode_),                                                      \
			.args = args_,                                                                       \
			.decode = (xdrproc_t)(decode_),                                                      \
			.res = res_,                                                                         \
			.reply_max = reply_max_,                                                             \
		},                                                                                           \
	}

/** lt_sync_rpc - makes rpc->call on @c, a connection to @server, and waits for it, for up to rpc->patience_ms
 * Return: the argument of done(), or the error of starting the call or of lt_sync_begin(). */
int lt_sync_rpc(struct lt_server *server, struct rpcrdma_clnt *c, struct lt_rpc *rpc);

/** lt_sync_run - runs fn(of, arg) on the owner's thread and waits for it to return
 * Return: 0; -EOWNERDEAD: it did not run. */
int lt_sync_run(struct leat_session *s, void (*fn)(void *of, void *arg), void *of, void *arg);

/** lt_sync_flush - waits until all messages have run that were posted to the owner's thread before */
void lt_sync_flush(struct leat_session *s);

/** lt_sync_run_at - runs fn(of, arg) on the thread of engine @e of the session, and waits for it to return
 * Return: as lt_sync_run(). */
int lt_sync_run_at(struct leat_session *s, struct rpcrdma_engine *e, void (*fn)(void *of, void *arg), void *of,
		   void *arg);

/** lt_sync_drain - waits until no operation of @m is in flight
 * @until_ns: time limit, of clock_now_ns(); 0: no limit
 *
 * Return: 0, -ETIMEDOUT, or an error of lt_sync_begin().
 */
int lt_sync_drain(struct leat *m, uint64_t until_ns);

/** lt_sync_interrupt - ends the synchronous calls of the mount that @msg belongs to: the message of leat_interrupt() */
void lt_sync_interrupt(struct rpcrdma_msg *msg);

/** lt_sync_interrupt_now - ends those of @of, a mount, if leat_interrupt() has been called; for lt_sync_run() */
void lt_sync_interrupt_now(void *of, void *arg);

#endif
