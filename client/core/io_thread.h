/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * io_thread.h - additional threads of a session, each with an engine and connections of its own
 */
#ifndef LT_IO_THREAD_H
#define LT_IO_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/util.h"
#include "rpcrdma.h"

struct lt_io_thread {
	struct rpcrdma_engine *engine;
	pthread_t thread;
	bool runs;                  /* the owner's */
	bool stop;                  /* the thread's */
	struct rpcrdma_msg msg;
};

/** lt_io_thread_start - creates an engine and a thread that runs it until lt_io_thread_stop()
 *
 * Return: 0, -ENOMEM, -EAGAIN: no thread, or the errno of creating a descriptor. Call lt_io_thread_stop() in any case.
 */
must_check int lt_io_thread_start(struct lt_io_thread *t, struct rpcrdma_domain *d,
				  const struct rpcrdma_engine_attr *attr);

/** lt_io_thread_stop - ends the thread and destroys the engine, whose connections must be closed */
void lt_io_thread_stop(struct lt_io_thread *t);

#endif
