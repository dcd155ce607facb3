/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_attach.c - ATTACH and DETACH: a volume gets a holder, and loses it
 *
 * Operation: One of them at a time on each volume; the others wait. The one whose turn it is fences the attachments that
 *            have to end: those of other holders, if it may take their place, and the earlier one of its own name. Then
 *            it waits until their operations have ended, has a worker save the holders, and replies. So when an ATTACH
 *            is acknowledged, nothing of the old holder is in progress, nothing of it begins any more, and a restart of
 *            the server changes neither.
 *            Each call has 30 seconds from its arrival on, for its turn and for the operations. When it has waited for the
 *            operations for 2 seconds, it closes the connections by which they came: then only the disk is waited
 *            for. A client that shares such a connection connects again, and loses nothing.
 *            What is fenced stays so if the operations do not end in time: that is saved, too, and a repeated ATTACH
 *            waits for them again. If the connection is lost while the call waits, what it has fenced stays so, a job
 *            of the volume saves that, then the turn ends, and the client sends the call again. If it is lost behind
 *            that, the new attachment exists, and the client's next ATTACH replaces it.
 * Memory:    The new attachment belongs to the volume from the time on when it is made.
 * Threads:   The reactor's, except block_attach_save(); the volume's lock.
 * Errors:    -EBUSY with the holder; -EACCES: must not take over; -ESRCH: no such victim; -ETIMEDOUT; -EIO: the holders cannot be saved.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "block_handle.h"
#include "block_service.h"
#include "block_state.h"
#include "client.h"

#define FLAGS_ALL ((u_int)(BLOCK_RDONLY | BLOCK_TAKE_OVER))

/* ---- whose place ---------------------------------------------------------------------------- */

static void note_other(struct block_call *call, const struct block_attachment *a)
{
	block_describe_holder(a, &call->other, &call->res.attach.BLOCKATTACHres_u.holder);
}

/* May the call take the place of @a, of another name? */
static int check_other(const struct req *r, const struct block_attachment *a)
{
	struct block_call *call = block_call(r);
	const BLOCKATTACHargs *args = &call->args.attach;
	bool meant = !*args->victim || !strcmp(args->victim, a->name);

	if (args->flags & BLOCK_TAKE_OVER && meant)
		return block_entry_may_take_over(call->entry, &r->conn->peer) ? 0 : -EACCES;
	if (block_is_silent(a, clock_now_ns()))
		return 0;
	note_other(call, a);
	return -EBUSY;
}

static int check_exclusive(const struct req *r)
{
	struct block_call *call = block_call(r);
	const BLOCKATTACHargs *args = &call->args.attach;

	list_for_each(node, &call->entry->vol->holders) {
		const struct block_attachment *a = list_entry(node, struct block_attachment, link);
		int err = strcmp(a->name, args->holder) ? check_other(r, a) : 0;

		if (err)
			return err;
	}
	return 0;
}

/* A client may have as many holders as places are free, so that there is always one for another client. */
static bool has_place(const struct block_volume *v, const struct rpcrdma_client_id *client)
{
	unsigned own = 0;

	list_for_each(node, &v->holders)
		own += client_id_same(&list_entry(node, struct block_attachment, link)->client, client);
	return own + v->nholders < BLOCK_HOLDERS_MAX;
}

/* The holder that has been silent for longest: any, if all places are taken, else one of the client's own */
static struct block_attachment *find_silent(const struct block_volume *v, const struct rpcrdma_client_id *client)
{
	struct block_attachment *best = NULL;

	list_for_each(node, &v->holders) {
		struct block_attachment *a = list_entry(node, struct block_attachment, link);

		if (block_is_silent(a, clock_now_ns()) && (!best || a->silent_ns < best->silent_ns) &&
		    (v->nholders >= BLOCK_HOLDERS_MAX || client_id_same(&a->client, client)))
			best = a;
	}
	return best;
}

/* @ret_out: the holder whose place it takes, or NULL */
static int check_shared(const struct req *r, struct block_attachment **ret_out)
{
	struct block_call *call = block_call(r);
	const BLOCKATTACHargs *args = &call->args.attach;
	struct block_volume *v = call->entry->vol;
	struct block_attachment *out = NULL;
	struct rpcrdma_client_id client;

	rpcrdma_client_id_of(&r->conn->peer, &client);
	if (args->flags & BLOCK_TAKE_OVER) {
		if (!block_entry_may_take_over(call->entry, &r->conn->peer))
			return -EACCES;
		out = block_find(v, args->victim);
	}
	/* a victim that is fenced already leaves no place: another call may have taken it */
	if (!out && !block_find(v, args->holder) && !has_place(v, &client)) {
		out = find_silent(v, &client);
		if (!out) {
			note_other(call, list_first_entry(&v->holders, struct block_attachment, link));
			return -EBUSY;
		}
	}
	*ret_out = out;
	return 0;
}

/* Under the lock. Return: 0: nothing stands in the way; @ret_out: shared: the holder that has to leave, or NULL */
static int check_place(const struct req *r, struct block_attachment **ret_out)
{
	struct block_call *call = block_call(r);
	const BLOCKATTACHargs *args = &call->args.attach;
	struct block_volume *v = call->entry->vol;
	const struct block_attachment *me = block_find(v, args->holder);

	*ret_out = NULL;
	if (v->leaving)
		return -ENOENT;
	if (me && block_is_older(me, &args->lane, block_peer(r->conn)->conn))
		return -ECONNABORTED;
	if (block_is_forgotten(v, &args->lane, block_peer(r->conn)->conn)) {
		block_count(r->reactor, block_old_lanes);
		return -EAGAIN;
	}
	if (block_was_seen(v, &args->lane, block_peer(r->conn)->conn))
		return -ECONNABORTED;
	if (call->entry->conf.ro && !(args->flags & BLOCK_RDONLY))
		return -EROFS;
	if (args->flags & BLOCK_TAKE_OVER && *args->victim && !block_find(v, args->victim) &&
	    block_drained(v, args->victim)) /* it is not there, nor does an operation of it still run */
		return -ESRCH;
	if (call->entry->conf.share == BLOCK_CONF_EXCLUSIVE)
		return check_exclusive(r);
	if (args->flags & BLOCK_TAKE_OVER && !*args->victim)
		return -EINVAL; /* which one? */
	return check_shared(r, ret_out);
}

static void fence(struct req *r, struct block_attachment *a)
{
	struct block_call *call = block_call(r);
	struct block_volume *v = call->entry->vol;

	if (strcmp(a->name, call->args.attach.holder)) {
		block_count(r->reactor, block_take_overs);
		if (log_limit_ok(&v->turns))
			log_info("block %s: %s (%s, %s) takes the place of %s (%s, %s)%s", v->name, call->args.attach.holder,
				 r->conn->peer.text, call->args.attach.app, a->name, a->peer, a->app,
				 a->conns ? "" : ", which has no connection");
	}
	block_fence(v, a);
}

/* ---- turns ---------------------------------------------------------------------------------- */

static void on_time_out(struct rpcrdma_timer *t)
{
	struct block_call *call = container_of(t, struct block_call, attach.timer);

	call->attach.timed_out = true;
	if (req_unwait(&call->entry->vol->lock, &call->waiter))
		req_resume(call->req);
}

/* Under the lock. The time of a call begins with its first wait, for its turn or for operations. */
static enum prog_begin wait(struct block_call *call)
{
	struct rpcrdma_timer *t = &call->attach.timer;

	list_add_tail(&call->entry->vol->waiters, &call->waiter.link);
	if (!t->fn) {
		t->fn = on_time_out;
		rpcrdma_timer_set(call->req->reactor->loop.engine, t, block_times.drain_ns);
	}
	return PROG_WAIT;
}

/* The peer of an old operation may never move its data. */
static void on_close_time(struct rpcrdma_timer *t)
{
	struct block_call *call = container_of(t, struct block_call, attach.close_timer);
	struct block_volume *v = call->entry->vol;

	pthread_mutex_lock(&v->lock);
	block_cut(v);
	pthread_mutex_unlock(&v->lock);
	if (log_limit_ok(&v->turns))
		log_info("block %s: operations of a holder that has to leave do not end: its connections are closed", v->name);
}

/* Under the lock: waits for operations, unless the time is up. Return: PROG_WAIT; PROG_REPLY: they have not ended in time */
static enum prog_begin wait_in_turn(struct block_call *call)
{
	if (!call->attach.close_timer.fn) {
		call->attach.close_timer.fn = on_close_time;
		rpcrdma_timer_set(call->req->reactor->loop.engine, &call->attach.close_timer, block_times.close_ns);
	}
	call->attach.in_vain = call->attach.timed_out;
	return call->attach.in_vain ? PROG_REPLY : wait(call);
}

/* Under the lock. */
static void take_turn(struct req *r)
{
	struct block_call *call = block_call(r);

	call->attach.turn = call->attach.unsaved = call->entry->vol->attaching = true;
	call->attach.step = BLOCK_DRAINING;
}

static int save_holders(struct block_volume *v)
{
	int err = block_state_save(v->state, v);

	if (err && log_limit_ok(&v->turns))
		log_err("block %s: its holders cannot be saved: %s", v->name, strerror(-err));
	return err;
}

static void next_turn(struct block_volume *v)
{
	pthread_mutex_lock(&v->lock);
	v->attaching = false;
	req_wake(&v->waiters);
	pthread_mutex_unlock(&v->lock);
}

static void run_save(struct worker_job *job)
{
	(void)save_holders(container_of(job, struct block_volume, save)); /* no call waits for it */
}

static void on_saved(struct worker_job *job)
{
	struct block_volume *v = container_of(job, struct block_volume, save);
	struct served_use *use = v->saver;

	next_turn(v);
	use->reactor->loop.flushing--;
	served_use_put(use);
}

/* The connection of a call has ended before a worker has saved the holders. The turn of the call goes to a job of the
 * volume: what was fenced stays so after a restart, although no call may come for it any more. */
static void save_without_call(struct served_use *use, struct block_volume *v)
{
	struct loop *l = &use->reactor->loop;

	v->saver = served_use_hold(use);
	v->save = (struct worker_job){ .run = run_save, .done = on_saved, .prompt = true };
	l->flushing++;
	if (l->stop) { /* on_saved() would not run */
		run_save(&v->save);
		on_saved(&v->save);
		return;
	}
	loop_submit(l, &v->save);
}

void block_attach_release(struct req *r)
{
	struct block_call *call = block_call(r);

	rpcrdma_timer_cancel(r->reactor->loop.engine, &call->attach.timer);
	rpcrdma_timer_cancel(r->reactor->loop.engine, &call->attach.close_timer);
	if (!call->attach.turn)
		return;
	call->attach.turn = false;
	if (call->attach.unsaved && call->entry->vol->state)
		save_without_call(call->use, call->entry->vol);
	else
		next_turn(call->entry->vol);
}

static enum prog_begin end_turn(struct req *r, int err)
{
	block_attach_release(r);
	return err ? block_now(r, err) : PROG_REPLY;
}

void block_attach_save(struct req *r)
{
	struct block_call *call = block_call(r);

	call->attach.unsaved = false;
	call->err = save_holders(call->entry->vol);
}

/* All operations of what was fenced have ended. Return: the next step */
static enum prog_begin save(struct req *r, enum prog_begin (*saved)(struct req *r))
{
	block_call(r)->attach.step = BLOCK_SAVING;
	return block_call(r)->entry->vol->state ? PROG_OPEN : saved(r);
}

/* ---- ATTACH ------------------------------------------------------------------------------- */

static int check_args(struct req *r)
{
	struct block_call *call = block_call(r);
	BLOCKATTACHargs *a = &call->args.attach;
	int err = block_find_named(r, a->volume);

	if (err)
		return err;
	text_clean(a->app); /* it is printed and saved */
	if (!block_conf_name_ok(a->holder) || (*a->victim && !block_conf_name_ok(a->victim)) || a->flags & ~FLAGS_ALL ||
	    a->lane.slot >= BLOCK_LANES_MAX || !a->lane.incarnation)
		return -EINVAL;
	return block_reserve(block_peer(r->conn)->conn);
}

/* Under the lock: it is this call's turn, and the place is free. */
static void fence_all(struct req *r, struct block_attachment *out)
{
	struct block_call *call = block_call(r);
	struct block_volume *v = call->entry->vol;
	struct block_attachment *me = block_find(v, call->args.attach.holder);

	call->id.number = me ? me->number : 0;
	if (call->entry->conf.share == BLOCK_CONF_EXCLUSIVE) {
		list_for_each_safe(node, &v->holders)
			fence(r, list_entry(node, struct block_attachment, link));
		return;
	}
	if (out && out != me) {
		memcpy(call->victim, out->name, sizeof(out->name));
		fence(r, out);
	}
	if (me)
		fence(r, me);
}

static enum prog_begin drain_attach(struct req *r);

static enum prog_begin first_attach(struct req *r)
{
	struct block_call *call = block_call(r);
	struct block_attachment *out;
	struct block_volume *v;
	int err = check_args(r);

	call->victim[0] = '\0';
	if (!rpcrdma_req_conn_alive(r->rpc)) /* it waited for its turn, and its client may send it again elsewhere */
		err = -EAGAIN;
	if (err)
		return block_now(r, err);
	v = call->entry->vol;
	pthread_mutex_lock(&v->lock);
	if (v->attaching && !call->attach.timed_out) {
		enum prog_begin next = wait(call);

		pthread_mutex_unlock(&v->lock);
		return next;
	}
	err = v->attaching ? -ETIMEDOUT : check_place(r, &out);
	if (!err) {
		take_turn(r);
		fence_all(r, out);
	}
	pthread_mutex_unlock(&v->lock);
	if (err == -EBUSY) {
		block_count(r->reactor, block_busy);
		call->res.status = BLOCK_ERR_BUSY;
		return PROG_REPLY;
	}
	return err ? block_now(r, err) : drain_attach(r);
}

static bool is_drained(const struct block_call *call)
{
	const struct block_volume *v = call->entry->vol;

	if (call->entry->conf.share == BLOCK_CONF_EXCLUSIVE)
		return block_drained(v, NULL);
	return block_drained(v, call->args.attach.holder) && (!*call->victim || block_drained(v, call->victim)) &&
	       (!*call->args.attach.victim || block_drained(v, call->args.attach.victim));
}

static void fill_attachment(const struct req *r, struct block_attachment *a)
{
	struct block_call *call = block_call(r);
	const BLOCKATTACHargs *args = &call->args.attach;
	struct block_volume *v = call->entry->vol;

	(void)snprintf(a->name, sizeof(a->name), "%s", args->holder);
	(void)snprintf(a->app, sizeof(a->app), "%s", args->app);
	(void)snprintf(a->peer, sizeof(a->peer), "%s", r->conn->peer.text);
	text_clean(a->peer);
	rpcrdma_client_id_of(&r->conn->peer, &a->client);
	a->number = call->id.number ? call->id.number : ++v->numbers;
	a->generation = ++v->generations;
	a->instance = args->lane.instance;
	a->since = (uint64_t)time(NULL);
	a->rdonly = args->flags & BLOCK_RDONLY || call->entry->conf.ro;
	call->id = (struct block_id){ v->id, a->number, a->generation };
}

static enum prog_begin saved_attach(struct req *r)
{
	struct block_call *call = block_call(r);
	BLOCKATTACHresok *ok = &call->res.attach.BLOCKATTACHres_u.resok;
	struct block_volume *v = call->entry->vol;

	if (call->attach.in_vain)
		return end_turn(r, -ETIMEDOUT);
	if (call->err) { /* it was never acknowledged */
		struct block_attachment *a;

		pthread_mutex_lock(&v->lock);
		a = block_find_number(v, call->id.number);
		if (a && a->generation == call->id.generation)
			block_fence(v, a);
		pthread_mutex_unlock(&v->lock);
		return end_turn(r, -EIO);
	}
	block_count(r->reactor, block_attaches);
	if (log_limit_ok(&v->turns))
		log_info("block %s: attached by %s (%s, %s)%s", v->name, call->args.attach.holder, r->conn->peer.text,
			 call->args.attach.app, call->args.attach.flags & BLOCK_RDONLY ? ", to read" : "");
	call->res.status = BLOCK_OK;
	block_handle_make(&block_server(r->srv)->keys, &call->id, ok->handle);
	block_describe(call->entry, &ok->info);
	if (call->args.attach.flags & BLOCK_RDONLY)
		ok->info.flags |= BLOCK_RDONLY;
	ok->verf = atomic_load(&v->verf);
	return end_turn(r, 0);
}

static enum prog_begin drain_attach(struct req *r)
{
	struct block_call *call = block_call(r);
	struct block_volume *v = call->entry->vol;
	struct block_attachment *a = block_attachment_new();
	int err = a ? block_reserve(block_peer(r->conn)->conn) : -EAGAIN;

	if (err) {
		free(a);
		return end_turn(r, err);
	}
	pthread_mutex_lock(&v->lock);
	if (!is_drained(call)) {
		enum prog_begin next = wait_in_turn(call);

		pthread_mutex_unlock(&v->lock);
		free(a);
		return next == PROG_WAIT ? next : save(r, saved_attach); /* what is fenced stays so after a restart */
	}
	fill_attachment(r, a);
	block_add(v, a);
	block_bind(v, a, &call->args.attach.lane, block_peer(r->conn)->conn);
	pthread_mutex_unlock(&v->lock);
	return save(r, saved_attach);
}

enum prog_begin block_attach_begin(struct req *r)
{
	switch (block_call(r)->attach.step) {
	case BLOCK_FIRST:
		break;
	case BLOCK_DRAINING:
		return drain_attach(r);
	case BLOCK_SAVING:
		return saved_attach(r);
	}
	return first_attach(r);
}

/* ---- DETACH ------------------------------------------------------------------------------- */

static enum prog_begin saved_detach(struct req *r)
{
	struct block_call *call = block_call(r);

	if (call->attach.in_vain)
		return end_turn(r, -ETIMEDOUT);
	if (call->err)
		return end_turn(r, -EIO);
	call->res.status = BLOCK_OK;
	return end_turn(r, 0);
}

static enum prog_begin drain_detach(struct req *r)
{
	struct block_call *call = block_call(r);
	struct block_volume *v = call->entry->vol;
	enum prog_begin next = PROG_REPLY;

	pthread_mutex_lock(&v->lock);
	if (!block_drained(v, call->victim))
		next = wait_in_turn(call);
	pthread_mutex_unlock(&v->lock);
	return next == PROG_WAIT ? next : save(r, saved_detach);
}

/* Under the lock. A DETACH that was executed, but whose reply was lost, or which did not wait for long enough, sets the holder
 * whose operations have to end. */
static bool was_detached(struct block_call *call)
{
	const struct block_volume *v = call->entry->vol;

	for (unsigned i = 0; i < BLOCK_DETACHED_MAX; i++) {
		if (v->detached[i].generation == call->id.generation && v->detached[i].number == call->id.number) {
			memcpy(call->victim, v->detached[i].name, sizeof(call->victim));
			return call->id.generation;
		}
	}
	return false;
}

static void note_detached(struct block_volume *v, const struct block_attachment *a)
{
	unsigned i = v->detached_next++ % BLOCK_DETACHED_MAX;

	v->detached[i].number = a->number;
	v->detached[i].generation = a->generation;
	memcpy(v->detached[i].name, a->name, sizeof(a->name));
}

static enum prog_begin first_detach(struct req *r)
{
	struct block_call *call = block_call(r);
	const block_lane *lane = &call->args.at.at.lane;
	struct block_volume *v = call->entry->vol;
	struct block_attachment *a;
	int err = 0;

	call->victim[0] = '\0';
	if (lane->slot >= BLOCK_LANES_MAX || !lane->incarnation)
		return block_now(r, -EINVAL);
	if (!rpcrdma_req_conn_alive(r->rpc))
		return block_now(r, -EAGAIN);
	pthread_mutex_lock(&v->lock);
	a = block_find_number(v, call->id.number);
	if (a && a->generation != call->id.generation)
		a = NULL;
	if (!a && !was_detached(call))
		err = -ESTALE;
	else if (a && a->instance != lane->instance)
		err = -EINVAL;
	else if (a && block_is_older(a, lane, block_peer(r->conn)->conn))
		err = -ECONNABORTED;
	else if (v->attaching)
		err = call->attach.timed_out ? -ETIMEDOUT : -EINPROGRESS;
	else if (block_was_seen(v, lane, block_peer(r->conn)->conn))
		err = -ECONNABORTED;
	if (err == -EINPROGRESS) {
		(void)wait(call);
	} else if (!err) {
		take_turn(r);
		if (a) {
			if (log_limit_ok(&v->turns))
				log_info("block %s: detached by %s", v->name, a->name);
			memcpy(call->victim, a->name, sizeof(a->name));
			note_detached(v, a);
			block_fence(v, a);
		}
	}
	pthread_mutex_unlock(&v->lock);
	if (err == -EINPROGRESS)
		return PROG_WAIT;
	return err ? block_now(r, err) : drain_detach(r);
}

enum prog_begin block_detach_begin(struct req *r)
{
	switch (block_call(r)->attach.step) {
	case BLOCK_FIRST:
		break;
	case BLOCK_DRAINING:
		return drain_detach(r);
	case BLOCK_SAVING:
		return saved_detach(r);
	}
	return first_detach(r);
}
