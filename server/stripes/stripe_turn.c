/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_turn.c - what a call waits for and holds: the turn of its object, its operation, its term
 *
 * Operation: begin() of a procedure runs again after each step: behind a worker, and when what it waits for may have
 *            happened. It first ends the turn that the worker had, then looks at everything from the beginning, and decides
 *            under one lock what comes next. So nothing that was true before a wait is relied on.
 * Memory:    Part of the request.
 * Threads:   The reactor's, except stripe_turn_work().
 * Errors:    -errno of the worker, which begin() gets once.
 */
#include <errno.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "small_file.h"
#include "stripe_service.h"

/* ---- the turn ------------------------------------------------------------------------------- */

static uint64_t term_of(const struct stripe_call *call)
{
	return call->is_command ? call->command.term : call->handle.term;
}

/* The manager's command, or WRITE, begins. */
static void begin_managed(struct stripe_call *call)
{
	call->managed = true;
	stripe_op_begin(&call->vol->manager, &call->manager_op, call->req->conn);
}

static void end_managed(struct stripe_call *call)
{
	if (call->managed)
		stripe_op_finish(&call->vol->manager, &call->manager_op, &call->vol->term_waiters);
	call->managed = false;
}

int stripe_turn_end(struct stripe_call *call)
{
	int err = call->err;

	call->err = 0;
	if (call->turn)
		stripe_object_release(call->o);
	call->turn = false;
	end_managed(call);
	if (call->term_turn) {
		call->vol->term_busy = false;
		if (call->done & STRIPE_WORK_TERM)
			call->vol->manager.era = term_of(call);
		req_wake(&call->vol->term_waiters);
	}
	call->term_turn = false;
	return err;
}

static enum prog_begin wait_for(struct stripe_call *call, struct list *waiters)
{
	list_add_tail(waiters, &call->waiter.link);
	return PROG_WAIT;
}

static void close_older(const struct stripe_call *call)
{
	unsigned n = stripe_ops_close(&call->vol->manager);

	if (call->o)
		n += stripe_ops_close(&call->o->ops);

	if (n)
		atomic_fetch_add_explicit(&call->re->counters.stripe_withheld, n, memory_order_relaxed);
}

static void on_close_time(struct rpcrdma_timer *t)
{
	struct stripe_call *call = container_of(t, struct stripe_call, close_timer);

	call->overdue = true;
	pthread_mutex_lock(&call->vol->lock);
	close_older(call);
	pthread_mutex_unlock(&call->vol->lock);
}

enum prog_begin stripe_turn_drain(struct stripe_call *call, struct list *waiters)
{
	if (!call->close_timer.fn) {
		call->close_timer.fn = on_close_time;
		rpcrdma_timer_set(call->req->reactor->loop.engine, &call->close_timer, stripe_times.close_ns);
	}
	if (call->overdue)
		close_older(call);
	return wait_for(call, waiters);
}

enum prog_begin stripe_turn_term(struct stripe_call *call, int *ret_err)
{
	struct stripe_vol *v = call->vol;
	uint64_t term = term_of(call);

	if (term < v->manager.era) {
		*ret_err = -EOWNERDEAD;
		return PROG_REPLY;
	}
	if (term > v->manager.era && !v->term_busy)
		return stripe_turn_take(call, STRIPE_WORK_TERM);
	if (term == v->manager.era && !stripe_ops_older(&v->manager))
		return PROG_MOVE;
	stripe_count(call->req->reactor, stripe_term_waits);
	return stripe_turn_drain(call, &v->term_waiters);
}

void stripe_op_enter(struct stripe_call *call, bool changes)
{
	stripe_op_begin(&call->o->ops, &call->op, call->req->conn);
	call->begun = true;
	if (changes && call->handle.term)
		begin_managed(call);
}

enum prog_begin stripe_turn_take(struct stripe_call *call, unsigned work)
{
	call->work = work;
	call->done = 0;
	if (call->o)
		call->turn = call->o->busy = true;
	if (work & STRIPE_WORK_TERM)
		call->term_turn = call->vol->term_busy = true;
	if (work & (STRIPE_WORK_RECORD | STRIPE_WORK_CUT | STRIPE_WORK_ASIDE) && call->is_command)
		begin_managed(call);
	stripe_count(call->req->reactor, stripe_works);
	return PROG_OPEN;
}

enum prog_begin stripe_turn_object(struct stripe_call *call, const stripe_name *name)
{
	if (!call->o)
		call->o = stripe_object_get(call->vol, name);
	if (!call->o)
		return PROG_REPLY;
	if (call->o->busy)
		return wait_for(call, &call->o->waiters);
	if (!call->o->loaded)
		return stripe_turn_take(call, STRIPE_WORK_LOAD);
	return PROG_MOVE;
}

/* ---- the worker's part ---------------------------------------------------------------------- */

static int work_open(struct stripe_call *call)
{
	unsigned reactor = call->req->reactor->idx;

	if (call->o->files[reactor])
		return 0;
	return stripe_disk_open(call->vol, call->o, &call->member->backing, reactor);
}

static int work_load(struct stripe_call *call)
{
	stripe_disk_trim(call->vol);
	return stripe_disk_load(call->vol, call->o);
}

static int work_cut(struct stripe_call *call)
{
	return call->o->rec.cut == STRIPE_NO_CUT ? 0 : stripe_disk_cut(call->vol, call->o);
}

static int work_info(struct stripe_call *call)
{
	STRIPEINFOresok *ok = &call->res.info.STRIPEINFOres_u.resok;
	struct statvfs fs;

	if (fstatvfs(call->vol->dir.objects, &fs))
		return -errno;
	ok->server = call->vol->dir.server;
	ok->bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
	ok->bytes_free = (uint64_t)fs.f_bavail * fs.f_frsize;
	ok->bytes_used = (uint64_t)(fs.f_blocks - MIN(fs.f_bfree, fs.f_blocks)) * fs.f_frsize;
	ok->now = clock_real_ns() / NS_PER_MS;
	return 0;
}

static int work_list(struct stripe_call *call)
{
	STRIPELISTresok *ok = &call->res.list.STRIPELISTres_u.resok;
	const STRIPELISTargs *a = &call->args.list;
	unsigned n = STRIPE_LIST_MAX;
	bool eof = false;
	int err;

	ok->entries.entries_val = call->req->scratch;
	err = stripe_disk_list(call->vol, a->first ? NULL : &a->after, ok->entries.entries_val, &n, &eof);
	ok->entries.entries_len = err ? 0 : n;
	ok->eof = eof;
	return err;
}

static int work_step(struct stripe_call *call, unsigned step)
{
	switch ((enum stripe_work)step) {
	case STRIPE_WORK_TERM:
		return term_save(call->vol->dir.fd, term_of(call));
	case STRIPE_WORK_LOAD:
		return work_load(call);
	case STRIPE_WORK_RECORD:
		return stripe_disk_record(call->vol, call->o, &call->next);
	case STRIPE_WORK_CUT:
		return work_cut(call);
	case STRIPE_WORK_CREATE:
		return stripe_disk_create(call->vol, call->o);
	case STRIPE_WORK_OPEN:
		return work_open(call);
	case STRIPE_WORK_NAME:
		return stripe_disk_sync_name(call->vol, call->o);
	case STRIPE_WORK_STAT:
		return stripe_disk_stat(call->o, &call->stat);
	case STRIPE_WORK_ASIDE:
		return stripe_disk_set_aside(call->vol, call->o, call->args.aside.mtime, call->args.aside.until);
	case STRIPE_WORK_INFO:
		return work_info(call);
	case STRIPE_WORK_LIST:
		return work_list(call);
	}
	return -EINVAL;
}

void stripe_turn_work(struct req *r)
{
	struct stripe_call *call = stripe_call(r);

	for (unsigned step = 1; step <= call->work && !call->err; step <<= 1) {
		if (call->work & step)
			call->err = work_step(call, step);
		if (call->work & step && !call->err)
			call->done |= step;
	}
}

/* ---- the end -------------------------------------------------------------------------------- */

void stripe_op_end(struct stripe_call *call)
{
	if (!call->begun)
		return;
	call->begun = false;
	stripe_lane_leave(&stripe_server(call->req->srv)->lanes, &call->pass);
	pthread_mutex_lock(&call->vol->lock);
	stripe_op_finish(&call->o->ops, &call->op, &call->o->waiters);
	end_managed(call);
	pthread_mutex_unlock(&call->vol->lock);
}

void stripe_turn_release(struct stripe_call *call)
{
	if (!call->vol)
		return;
	rpcrdma_timer_cancel(call->req->reactor->loop.engine, &call->timer);
	rpcrdma_timer_cancel(call->req->reactor->loop.engine, &call->close_timer);
	stripe_op_end(call);
	pthread_mutex_lock(&call->vol->lock);
	(void)!stripe_turn_end(call);
	if (call->o)
		stripe_object_put(call->vol, call->o);
	call->o = NULL;
	pthread_mutex_unlock(&call->vol->lock);
	call->vol = NULL;
}

bool stripe_unwait(struct stripe_call *call)
{
	bool waits;

	if (!call->vol)
		return false;
	pthread_mutex_lock(&call->vol->lock); /* it may wait in a list of either lock */
	waits = req_unwait(&stripe_server(call->req->srv)->lanes.lock, &call->waiter);
	pthread_mutex_unlock(&call->vol->lock);
	return waits;
}
