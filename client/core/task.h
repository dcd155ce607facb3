/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * task.h - an asynchronous operation as its caller sees it: one start, one callback
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
	/* for error messages */
	const char *verb;                     /* static */
	const char *path, *path2;             /* valid as long as the task; or NULL */
	int explained;                        /* the error that `what` and `cause` explain, or 0 */
	char what[48];                        /* "LOOKUP", "WRITE at offset 4096" */
	char cause[160];                      /* "NFS3ERR_NOENT", "" if unknown */
	void (*start)(struct lt_task *t);     /* runs on the owner's thread */
	void (*release)(struct lt_task *t);   /* frees everything; runs before the callback */
	int64_t result;
	bool starting;                        /* inside start(), called directly from the caller's function */
	struct rpcrdma_msg msg;
};

/** lt_task_submit - starts @t on the thread that owns the handle, directly or by a message
 * The task owns itself from here on; it may be freed before this returns.
 */
void lt_task_submit(struct lt_task *t);

/** lt_task_finish - ends the operation; the task is freed now or soon after */
void lt_task_finish(struct lt_task *t, int64_t result);

/** lt_task_explain - records why the task may fail with @err
 * @what: the procedure that was refused; NULL: the operation as a whole
 */
void lt_task_explain(struct lt_task *t, int err, const char *what, const char *fmt, ...)
	printf_like(4, 5);

/** lt_task_refuse - fails an asynchronous function at once: consumes its callback
 * Return: @err
 */
int lt_task_refuse(struct leat_cb cb, int err);

#endif
