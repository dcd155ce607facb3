/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * task.h - an asynchronous operation as its caller sees it: one start, one callback
 */
#ifndef LT_TASK_H
#define LT_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/util.h"
#include "leat.h"
#include "rpcrdma.h"

/* Embedded in struct lt_op (metadata) and struct lt_bulk (data). */
struct lt_task {
	struct leat *m;
	struct leat_cb cb;
	struct leat_file *file;               /* on which it operates, or NULL; by it, leat_aio_close() finds its task */
	/* for error messages */
	const char *verb;                     /* static */
	const char *path, *path2;             /* valid as long as the task; or NULL */
	int explained;                        /* the error that `what` and `cause` explain, or 0 */
	char what[48];                        /* "LOOKUP", "WRITE at offset 4096" */
	char cause[160];                      /* "NFS3ERR_NOENT", "" if unknown */
	void (*stop)(struct lt_task *t);      /* cancels what is in flight, after `cancelled` has been set */
	void (*step)(struct lt_task *t);      /* start or release, which a message runs */
	struct list link;                     /* in m->tasks */
	int64_t result;
	bool deferred;                        /* inside start(): its end must wait for a message */
	bool cancelled;                       /* starts no further call */
	bool background;                      /* has no caller; leat_umount() cancels it at once */
	bool internal;                        /* its callback is one of this library: it runs on a visitor, too */
	bool ended;                           /* a message will run its callback */
	struct rpcrdma_msg msg;
};

/** lt_task_begin - returns true if this thread owns the handle; otherwise start() runs there */
must_check bool lt_task_begin(struct lt_task *t, void (*start)(struct lt_task *t));

/** lt_task_submit - runs start() on the thread that owns the handle, directly or by a message
 * The task owns itself from here on; it may be freed before this returns.
 */
static inline void lt_task_submit(struct lt_task *t, void (*start)(struct lt_task *t))
{
	if (!lt_task_begin(t, start))
		return;
	start(t);
	/* start() never completes a task, so @t is still valid */
	t->deferred = false;
}

/** lt_task_end - returns true if the task may end now; otherwise it ends by a message */
must_check bool lt_task_end(struct lt_task *t, int64_t result, void (*release)(struct lt_task *t));

/** lt_task_call_back - runs the callback of a task that has been released */
void lt_task_call_back(struct leat *m, struct leat_cb cb, int64_t result);

/** lt_task_finish - ends the operation: release() frees the task, now or soon; then its callback runs */
static inline void lt_task_finish(struct lt_task *t, int64_t result, void (*release)(struct lt_task *t))
{
	struct leat *m = t->m;
	struct leat_cb cb = t->cb;

	if (!lt_task_end(t, result, release))
		return;
	release(t);
	lt_task_call_back(m, cb, result);
}

/** lt_task_cancel - cancels the operations of @m for which match(t, arg) is true; without @match, all
 * Their callbacks run later. Return: the number of operations.
 */
size_t lt_task_cancel(struct leat *m, bool (*match)(const struct lt_task *t, const void *arg), const void *arg);

/** lt_task_stop_background - cancels the tasks of @of, a mount, that have no caller; no others may be started
 * @arg: unused. For lt_sync_run(); does nothing in a callback.
 */
void lt_task_stop_background(void *of, void *arg);

/** lt_task_is_of_file - a match of lt_task_cancel(): is it an operation on the file @arg? */
bool lt_task_is_of_file(const struct lt_task *t, const void *arg);

/** lt_task_has_data - a match of lt_task_cancel(): is @arg the user_data of the callback? */
bool lt_task_has_data(const struct lt_task *t, const void *arg);

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
