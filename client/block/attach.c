/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * attach.c - attaches to volumes and detaches from them; fences holders by hand
 *
 * Operation:  An attachment owns a mount without an export (connect_only): that has the connections, which it may share
 *             with other mounts of the session, and the last error. leat_block_attach() makes it and sends ATTACH;
 *             leat_block_detach() waits for operations, sends DETACH and ends it.
 *             leat_block_take_over() attaches under a name of its own, which ends the attachment of the other holder,
 *             and detaches.
 * Memory:     struct leat_block, and its mount.
 * Threads:    The caller's; blocks.
 * Errors:     leat_error(NULL) has the reason if attaching fails.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/text.h"
#include "lt_block.h"
#include "lt_mount.h"
#include "opts.h"
#include "sync.h"

#define PREFIX "/block"
#define RANDOM_NAME_BYTES 17u

/* ---- names ---- */

static void random_name(char ret[RANDOM_NAME_BYTES])
{
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = clock_now_ns() ^ (uint64_t)getpid() << 32;
	snprintf(ret, RANDOM_NAME_BYTES, "%016" PRIx64, random);
}

static char process_name[RANDOM_NAME_BYTES];

static void renew_process_name(void)
{
	random_name(process_name);
}

static void make_process_name(void)
{
	renew_process_name();
	(void)pthread_atfork(NULL, NULL, renew_process_name); /* a child is another holder */
}

static const char *default_holder(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, make_process_name);
	return process_name;
}

static int refuse_url(const char *url, const char *why)
{
	snprintf(lt_thread_error(), LT_ERROR_BYTES, "%.250s: %s", url, why);
	return -EINVAL;
}

/* Takes the name of the volume from the path /block/NAME. */
static int take_name(struct leat_block *b, const char *url)
{
	const char *path = b->m->url.path, *name = path + strlen(PREFIX);
	size_t len;

	if (b->flags & LEAT_BLOCK_LOOK && (!strcmp(path, "/") || !strcmp(path, PREFIX) || !strcmp(path, PREFIX "/")))
		return 0;
	if (strncmp(path, PREFIX "/", strlen(PREFIX "/")) != 0)
		return refuse_url(url, "not the URL of a volume: its path does not begin with " PREFIX "/");
	len = strlen(++name);
	if (!len || len > BLOCK_NAME_MAX || strchr(name, '/'))
		return refuse_url(url, "the name of a volume has 1 to 63 bytes, and no slash");
	memcpy(b->name, name, len + 1);
	return 0;
}

/* ---- ATTACH ---- */

static void explain_busy(struct lt_op *op, const block_holder *h)
{
	time_t since = (time_t)MIN(h->since, (uint64_t)INT32_MAX);
	char when[32] = "";
	struct tm tm;

	text_clean(h->name);
	text_clean(h->peer);
	text_clean(h->app);
	if (gmtime_r(&since, &tm))
		(void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm);
	lt_task_explain(&op->task, -EBUSY, "ATTACH", "holder %.20s has it: %.25s on %.40s, since %s", h->name,
			h->app[0] ? h->app : "a program", h->peer, when);
}

static void explain_take_over(struct lt_op *op, int err)
{
	const char *victim = op->args.block_attach.victim;

	if (op->call.status == BLOCK_ERR_INVAL && !*victim)
		lt_task_explain(&op->task, err, "ATTACH", "the volume is shared: name the holder");
	else if (op->call.status == BLOCK_ERR_ACCES)
		lt_task_explain(&op->task, err, "ATTACH", "this user or host may not use the volume, or not take it over");
}

/* Explains a failed ATTACH further. */
static void explain(struct lt_op *op, int err)
{
	const block_holder *h = &op->res.block_attach.BLOCKATTACHres_u.holder;

	if (err == -EBUSY && op->call.status == BLOCK_ERR_BUSY && h->name && h->peer && h->app)
		explain_busy(op, h);
	else if (err == -EPROTONOSUPPORT)
		lt_task_explain(&op->task, err, "ATTACH", "the server has no block volumes");
	else if (op->args.block_attach.flags & BLOCK_TAKE_OVER)
		explain_take_over(op, err);
}

static void attached(struct lt_op *op, int err)
{
	const BLOCKATTACHresok *ok = &op->res.block_attach.BLOCKATTACHres_u.resok;
	struct leat_block *b = op->block.of;

	if (err) {
		explain(op, err);
	} else {
		err = lt_block_note(b, &ok->info);
		if (err)
			lt_task_explain(&op->task, err, "ATTACH", LT_BLOCK_IMPOSSIBLE);
		memcpy(b->handle, ok->handle, sizeof(b->handle));
	}
	lt_op_end_results(op, err);
}

static void call_attach(struct lt_op *op, const char *holder, const char *victim, unsigned flags, lt_op_step next)
{
	static const char no_app[] = "";
	const char *app = program_invocation_short_name;

	op->args.block_attach = (BLOCKATTACHargs){
		.volume = op->block.of->name,
		.holder = (char *)(uintptr_t)holder,
		.victim = (char *)(uintptr_t)victim,
		.app = (char *)(uintptr_t)(app && strlen(app) <= BLOCK_NAME_MAX ? app : no_app),
		.flags = flags,
	};
	lt_op_call_block(op, BLOCKPROC_ATTACH, &op->args.block_attach.lane, next);
}

static void attach_start(struct lt_op *op, int err)
{
	const struct leat_block *b = op->block.of;

	(void)err; /* a first step */
	call_attach(op, b->holder, "", (b->flags & LEAT_BLOCK_RDONLY ? (unsigned)BLOCK_RDONLY : 0) |
		    (b->flags & LEAT_BLOCK_TAKE_OVER ? (unsigned)BLOCK_TAKE_OVER : 0), attached);
}

static int submit_attach(struct leat_block *b, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_block_op(b, true, "attach", cb, &op);

	return rc ? rc : lt_op_submit(op, attach_start);
}

/* ---- the handle ---- */

static int copy_error(const struct leat *m, int rc)
{
	snprintf(lt_thread_error(), LT_ERROR_BYTES, "%s", leat_error(m));
	return rc;
}

/* Without an attachment, a failure to describe the volume is one of the functions that ask for it. */
static int attach(struct leat_block *b)
{
	int rc;

	if (b->flags & LEAT_BLOCK_LOOK)
		return 0;
	rc = (int)LT_WAIT_FOR_AS(b->m, "attach", submit_attach(b, w.cb));
	return rc ? copy_error(b->m, rc) : 0;
}

static int fill_block(struct leat_block *b, const char *url)
{
	const char *holder = b->m->url.holder;

	snprintf(b->holder, sizeof(b->holder), "%s", holder[0] ? holder : default_holder());
	return take_name(b, url);
}

static int open_block(struct leat_session *s, const char *url, const struct leat_opts *opts, unsigned flags,
		      struct leat_block **ret)
{
	struct leat_block *b;
	int rc;

	if (flags & ~(LEAT_BLOCK_RDONLY | LEAT_BLOCK_TAKE_OVER | LEAT_BLOCK_LOOK)) {
		snprintf(lt_thread_error(), LT_ERROR_BYTES, "cannot attach: an unknown flag");
		return -EINVAL;
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->flags = flags;
	atomic_init(&b->bytes, 0);
	atomic_init(&b->block, 1);
	atomic_init(&b->rdonly, false);
	rc = lt_mount_connect(s, url, opts, &b->m);
	if (!rc)
		rc = fill_block(b, url);
	if (!rc)
		rc = attach(b);
	if (rc) {
		leat_umount(b->m);
		free(b);
		return rc;
	}
	if (!(flags & LEAT_BLOCK_LOOK))
		(void)lt_sync_run(b->m->session, lt_block_keep, b, NULL);
	*ret = b;
	return 0;
}

int leat_block_attach(const char *url, const struct leat_opts *opts, unsigned flags, struct leat_block **ret)
{
	return open_block(NULL, url, opts, flags, ret);
}

int leat_session_attach(struct leat_session *s, const char *url, const struct leat_opts *opts, unsigned flags,
			struct leat_block **ret)
{
	return s ? open_block(s, url, opts, flags, ret) : -EINVAL;
}

struct leat *leat_block_handle(const struct leat_block *b)
{
	return b ? b->m : NULL;
}

const char *leat_block_holder_name(const struct leat_block *b)
{
	return b ? b->holder : "";
}

/* ---- DETACH ---- */

static void detached(struct lt_op *op, int err)
{
	lt_op_finish(op, err);
}

static void detach_start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	lt_block_set_at(op->block.of, &op->args.block_at.at);
	lt_op_call_block(op, BLOCKPROC_DETACH, &op->args.block_at.at.lane, detached);
}

static int submit_detach(struct leat_block *b, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_block_op(b, true, "detach", cb, &op);

	return rc ? rc : lt_op_submit(op, detach_start);
}

static void note_result(void *user_data, int64_t result)
{
	*(int *)user_data = (int)result;
}

static int left_ms(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();

	if (!until_ns)
		return -1;
	return until_ns > now_ns ? (int)((until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS) : 0;
}

static void stop_keeping(struct leat_block *b)
{
	struct lt_wait w;

	if (lt_sync_begin(&w, b->m->session))
		return;
	(void)lt_sync_run(b->m->session, lt_block_keep_stop, b, &w.cb);
	(void)lt_sync_end(&w, 0);
}

/* The end of the mount waits for DETACH, which ends when the server has replied or the time is up. */
int leat_block_detach_within(struct leat_block *b, int timeout_ms)
{
	uint64_t until_ns = timeout_ms < 0 ? 0 : clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	int rc, refused = 0, result = 0; /* another thread sets the result, possibly before submit_detach() returns */

	if (!b)
		return 0;
	rc = lt_session_check(b->m->session);
	if (!rc)
		rc = lt_sync_drain(b->m, until_ns);
	if (rc == -EDEADLK)
		return rc;
	if (rc != -EOWNERDEAD && !(b->flags & LEAT_BLOCK_LOOK))
		stop_keeping(b);
	if (!rc && !(b->flags & LEAT_BLOCK_LOOK))
		refused = submit_detach(b, (struct leat_cb){ .fn = note_result, .user_data = &result });
	rc = leat_umount_within(b->m, rc == -ETIMEDOUT ? 0 : left_ms(until_ns));
	if (rc == -EOWNERDEAD)
		return rc;
	free(b);
	return rc ? rc : refused ? refused : result;
}

int leat_block_detach(struct leat_block *b)
{
	return leat_block_detach_within(b, -1);
}

/* ---- fencing by hand ---- */

/* The next user may have taken it over already. */
static void left(struct lt_op *op, int err)
{
	lt_op_finish(op, err == -ESTALE ? 0 : err);
}

static void took_over(struct lt_op *op, int err)
{
	if (err) {
		explain(op, err);
	} else { /* leave: the volume belongs to its next user */
		memcpy(op->args.block_at.at.handle, op->res.block_attach.BLOCKATTACHres_u.resok.handle,
		       BLOCK_HANDLE_BYTES);
	}
	lt_op_free_results(op);
	if (err)
		lt_op_finish(op, err);
	else
		lt_op_call_block(op, BLOCKPROC_DETACH, &op->args.block_at.at.lane, left);
}

static void take_over_start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	random_name(op->name2);
	call_attach(op, op->name2, op->block.ret, BLOCK_TAKE_OVER | BLOCK_RDONLY, took_over);
}

static int submit_take_over(struct leat_block *b, const char *holder, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_block_op(b, false, "take over", cb, &op);

	if (rc)
		return rc;
	op->block.ret = (char *)(uintptr_t)holder;
	return lt_op_submit(op, take_over_start);
}

static int check_victim(struct leat_block *b, const char *name)
{
	if (name && strlen(name) <= BLOCK_NAME_MAX && !strchr(name, '/'))
		return 0;
	if (b && !lt_session_check(b->m->session))
		lt_handle_tell(b->m, NULL, NULL, "take over", -EINVAL,
			       "the name of a holder has 1 to 63 bytes, and no slash");
	return -EINVAL;
}

int leat_block_take_over(struct leat_block *b, const char *holder)
{
	int rc = lt_block_check_name(b, "take over");

	if (!rc)
		rc = check_victim(b, holder);
	return rc ? rc : (int)LT_WAIT_FOR(leat_block_handle(b), submit_take_over(b, holder, w.cb));
}
