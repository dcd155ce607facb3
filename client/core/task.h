/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * task.h - an asynchronous operation as its caller sees it: started, then one callback
 */
#ifndef LT_TASK_H
#define LT_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "leat.h"
#include "rpcrdma.h"

/* Embedded in struct lt_op (metadata) and struct lt_io (data). */
struct lt_task {
	struct leat *m;
	struct leat_cb cb;
	/* for error texts */
	const char *verb;                     /* static */
	const char *path, *path2;             /* live as long as the task; or NULL */
	int explained;                        /* the error that the following are about, or 0 */
	char what[48];                        /* "LOOKUP", "WRITE at offset 4096" */
	char cause[160];                      /* "NFS3ERR_NOENT", "" if unknown */
	void (*start)(struct lt_task *t);     /* on the owner's thread */
	void (*release)(struct lt_task *t);   /* frees everything; runs before the callback */
	int64_t result;
	bool starting;                        /* inside start(), called straight from the user */
	struct rpcrdma_msg msg;
};

/** lt_task_submit - have @t started on the thread that owns the handle: now, or by a message
 * The task belongs to itself from here on; it may be gone when this returns.
 */
void lt_task_submit(struct lt_task *t);

/** lt_task_finish - the operation is over; the task is gone afterwards, or soon */
void lt_task_finish(struct lt_task *t, int64_t result);

/** lt_task_explain - note why the task may be about to fail with @err
 * @what: was refused; NULL: the operation as a whole
 */
void lt_task_explain(struct lt_task *t, int err, const char *what, const char *fmt, ...)
	printf_like(4, 5);

/** lt_task_refuse - an asynchronous function fails at once: consume its callback
 * Return: @err
 */
int lt_task_refuse(struct leat_cb cb, int err);

#endif
