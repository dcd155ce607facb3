/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * req.c - the spine: what happens to a request, from its arrival to the end of its reply
 *
 * Operation: A request is a state machine and its own continuation. No thread waits for it: the code that completes
 *            something for it calls req_run() on its reactor. Each state is a function that does what can be done
 *            now. It returns the next state, or the same one if the request must wait. req_run() loops until
 *            the state does not change.
 *
 *                              (idempotent)
 *     call --> NEW --> ADMITTED -------------------------------> execute() <----------+
 *               |       |    |                                    ^  | | |            | (the file
 *               |       |    +--(non-idempotent)---> ENTERING ----+  | | +--> RUNNING-+  was opened)
 *               |       |                                ^  |  (new) | |        |
 *               |       +--(has payload)--> MOVING ------+  |        | +--> MOVING
 *               |                              | (pulled)   |        |        ||
 *               |                       (lost) |            | (dupli-|        ||
 *               |                              |            | cate)  |        ||
 *               +--(refused, garbage)----------+------------+--------+--------++--> REPLYING --> FREE
 *
 *     from      to        by               when
 *     NEW       NEW       state_new        arguments incomplete (TCP), the groups of its user are being looked
 *                                          up, or no slot is free
 *     NEW       ADMITTED  state_new        decoded, permitted, and it has a slot or gets one later
 *     NEW       REPLYING  state_new        refused: the reply is an error
 *     ADMITTED  ADMITTED  state_admitted   no memory for long results, or no slot
 *     ADMITTED  MOVING    state_admitted   WRITE, SYMLINK: the payload must be pulled first
 *     ADMITTED  ENTERING  state_admitted   non-idempotent, and complete
 *     MOVING    ENTERING  state_moving     WRITE, SYMLINK: the payload is complete, or (overlap) its first piece is
 *     MOVING    REPLYING  state_moving     all operations have ended, or the pull failed
 *     ENTERING  ENTERING  state_entering   no slot, or the original request is being executed and this one has
 *                                          joined it
 *     ENTERING  REPLYING  state_entering   duplicate: it gets the original reply
 *     RUNNING   REPLYING  state_running    the worker has the results
 *     ADMITTED, ENTERING, RUNNING, by execute():
 *               RUNNING                    a file must be opened (openers: after others are closed) or its
 *                                          permissions checked; or work
 *               MOVING                     the file is open, payload can move: place.c
 *               REPLYING                   no need to wait, as cached objects suffice, or refused
 *     any before REPLYING req_conn_lost    it waited (groups, slot, duplicate, descriptor, worker), and its
 *                                          connection is lost: not executed, no reply
 *     REPLYING  REPLYING  state_replying   payload of a WRITE that is not executed is still being pulled
 *     REPLYING  FREE      state_replying   the transport uses no memory of the request any more
 *
 *     true in   slot        memory held                      waits in
 *     NEW       no          args                             transport, then groups.c (FIFO of that user),
 *                                                            then reactor->admission (fair.h)
 *     ADMITTED  yes/no      args, room for long results      pool (fair shares), then reactor->admission
 *     MOVING    COMMIT      file, pieces and their buffers   pool (fair shares), transport, store
 *     ENTERING  yes/no      args, pieces' buffers            reactor->admission, then the cache's entry
 *                                                            (FIFO; drc.c)
 *     RUNNING   yes         args, pieces' buffers; worker    worker pool (worker.c), or files->waiting
 *                           owns res
 *     REPLYING  no          res, pieces' buffers             transport
 *     FREE      no          none                             -
 *
 *            A slot stands for work of the server itself. A request that waits for its peer (for payload, for the
 *            end of its reply, for buffers of its connection's share) holds none. So a slow peer delays only its
 *            own requests. Slots are shared fairly between clients, and between the connections of a client.
 *
 *            A request that leaves ENTERING to be executed owns an entry of the duplicate request cache. It
 *            releases the entry when it enters REPLYING, executed or not: joined requests may wait for it.
 *            Shortage is never an error: the queues above have counters (reactor_counters, worker_stats,
 *            rpcrdma_stats.buf_waits) for how often and how long requests waited.
 * Memory:    Requests are recycled per reactor; arguments are decoded into the request itself. Each rpcrdma_req
 *            is ended exactly once, in state_replying(), or by req_call() if there is no request for it.
 * Threads:   The reactor's; work() of a procedure runs on a worker.
 * Errors:    An error of a client gets an error reply, at worst a refusal; no assert depends on client input.
 * See:       doc/tour.md; once.c and drc.c for duplicates; prog.h for the tables; RFC 5531 section 9; RFC 1813.
 */
#include "req.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/trace.h"
#include "admit.h"
#include "conn.h"
#include "nfs3_conv.h"
#include "nfs3_io.h"
#include "nfs3_meta.h"
#include "once.h"
#include "reactor.h"
#include "server_int.h"

static enum req_state state_new(struct req *r);
static enum req_state state_admitted(struct req *r);
static enum req_state state_moving(struct req *r);
static enum req_state state_entering(struct req *r);
static enum req_state state_running(struct req *r);
static enum req_state state_replying(struct req *r);

static enum req_state (*const states[])(struct req *r) = {
	[REQ_NEW] = state_new,	       [REQ_ADMITTED] = state_admitted, [REQ_MOVING] = state_moving,
	[REQ_ENTERING] = state_entering, [REQ_RUNNING] = state_running,
	[REQ_REPLYING] = state_replying,
};

const char *req_state_name(enum req_state s)
{
	static const char *const names[] = {
		[REQ_NEW] = "NEW",	     [REQ_ADMITTED] = "ADMITTED", [REQ_MOVING] = "MOVING",
		[REQ_ENTERING] = "ENTERING", [REQ_RUNNING] = "RUNNING",
		[REQ_REPLYING] = "REPLYING", [REQ_FREE] = "FREE",
	};

	return (unsigned)s < ARRAY_SIZE(names) ? names[s] : "?";
}

_Static_assert(REQ_FREE == LATENCY_STATES, "a histogram for each state but the last");

static enum latency_kind kind_of(const struct req *r)
{
	switch (r->place.kind) {
	case PLACE_READ:
		return LATENCY_READ;
	case PLACE_WRITE:
		return LATENCY_WRITE;
	default:
		return LATENCY_OTHER;
	}
}

static void on_moved(struct place *pl)
{
	req_run(container_of(pl, struct req, place));
}

/* ---- allocation --------------------------------------------------------------------------- */

static struct req *req_get(struct conn *c, struct rpcrdma_req *rpc)
{
	struct reactor *re = c->reactor;
	struct list *n = list_pop(&re->free_reqs);
	struct req *r = n ? list_entry(n, struct req, link) : calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	re->nreqs += !n;
	list_init(&r->link);
	list_add_tail(&c->reqs, &r->of_conn);
	list_init(&r->groups_wait.link);
	list_init(&r->opener.link);
	r->state = REQ_NEW;
	r->reactor = re;
	r->srv = re->srv;
	r->conn = c;
	r->rpc = rpc;
	r->xid = rpc->xid;
	r->prog = NULL;
	r->proc = NULL;
	r->understood = r->identified = r->partial = r->admitted = r->running = r->replied = r->lost = r->open_tried = r->cached = false;
	r->exports = NULL;
	r->exp = NULL;
	r->file = NULL;
	r->found.fd = r->opened.fd = r->made.fd = r->made.obj.fd = -1;
	r->err = 0;
	r->asked = r->rights = 0;
	r->scratch = NULL;
	r->scratch_bytes = 0;
	r->room = NULL;
	r->room_waits = false;
	r->end = REQ_END_REPLY;
	r->plan = (struct place_plan){ .data = NULL };
	place_init(&r->place, &re->pieces, rpc, &r->latency, on_moved);
	once_init(&r->once);
	latency_begin(&r->latency, &re->latency, &c->peer);
	re->taken++;
	re->taken_most = MAX(re->taken_most, re->taken);
	reactor_count(re, reqs);
	return r;
}

static void req_put(struct req *r)
{
	struct reactor *re = r->reactor;

	admit_leave(r);
	latency_end(&r->latency, kind_of(r), r->place.good);
	place_fini(&r->place);
	if (r->file)
		fdcache_put(r->file);
	assert(r->found.fd < 0 && r->opened.fd < 0 && r->made.fd < 0 && r->made.obj.fd < 0);
	client_scratch_put(r->conn->client, r->scratch, r->scratch_bytes);
	if (r->room)
		rpcrdma_buf_put(re->loop.engine, r->room);
	exports_use_put(r->exports);
	re->taken--;
	list_del(&r->of_conn);
	list_add_head(&re->free_reqs, &r->link);
}

void req_call(struct conn *c, struct rpcrdma_req *rpc)
{
	struct req *r = rpc->user;

	if (!r) {
		r = c->reactor->draining ? NULL : req_get(c, rpc);
		if (!r) { /* the client retransmits it, to the server that runs then */
			rpcrdma_req_drop(rpc, NULL, NULL);
			return;
		}
		rpc->user = r;
	}
	req_run(r);
}

void req_run(struct req *r)
{
	struct reactor *re = r->reactor;
	unsigned had = re->live;

	for (;;) {
		bool moot = r->lost && r->state < REQ_REPLYING;
		enum req_state next = moot ? REQ_REPLYING : states[r->state](r);

		if (next == r->state)
			break;
		TRACE3(req_state, r->xid, r->state, next);
		latency_state(&r->latency, r->state, next == REQ_REPLYING);
		r->state = next;
		if (next == REQ_FREE) {
			req_put(r);
			break;
		}
	}
	if (re->live < had)
		admit_next(re);
}

/* Takes @r out of the queue in which it waits to begin. Return: false: it is in no queue */
static bool leave_queue(struct req *r)
{
	if (r->running) {
		r->running = !files_leave(&r->opener) && !worker_cancel(r->reactor->loop.workers, &r->job);
		return !r->running;
	}
	if (list_is_linked(&r->groups_wait.link)) {
		groups_leave(&r->groups_wait);
		return true;
	}
	return admit_cancel(r) || once_leave(r);
}

/* Requests in progress continue. The others are dropped, so the client may retransmit them over another connection.
 * The end of a request may make others run and end, including requests of this connection. */
void req_conn_lost(struct conn *c)
{
	struct list reqs = LIST_INIT(reqs), *n;

	list_splice_tail(&reqs, &c->reqs);
	while ((n = list_pop(&reqs)) != NULL) {
		struct req *r = list_entry(n, struct req, of_conn);

		list_add_tail(&c->reqs, n);
		if (!leave_queue(r))
			continue;
		r->lost = true;
		r->end = REQ_END_DROP;
		req_run(r);
	}
}

/* ---- NEW ---------------------------------------------------------------------------------- */

static enum req_state end_error(struct req *r, enum rpcrdma_accept_stat stat)
{
	r->end = REQ_END_ERROR;
	r->end_code = (uint32_t)stat;
	return REQ_REPLYING;
}

void req_fail(struct req *r, nfsstat3 status)
{
	memset(&r->res, 0, r->proc->res_bytes);
	r->res.status = status;
}

static enum req_state end_fail(struct req *r, nfsstat3 status)
{
	req_fail(r, status);
	return REQ_REPLYING;
}

/* Finds the procedure, or sets the error to reply with. */
static bool find_proc(struct req *r)
{
	static const enum rpcrdma_accept_stat stats[] = {
		[PROG_NO_PROG] = RPCRDMA_PROG_UNAVAIL,
		[PROG_NO_VERS] = RPCRDMA_PROG_MISMATCH,
		[PROG_NO_PROC] = RPCRDMA_PROC_UNAVAIL,
	};
	enum prog_found found = prog_find(r->rpc->prog, r->rpc->vers, r->rpc->proc, &r->prog,
					  &r->proc, &r->end_low, &r->end_high);

	if (found != PROG_FOUND)
		(void)end_error(r, stats[found]);
	return found == PROG_FOUND;
}

static bool find_caller(struct req *r)
{
	enum creds_auth_stat why = creds_of_call(r->rpc, &r->creds);

	if (why != CREDS_AUTH_OK) {
		r->end = REQ_END_AUTH;
		r->end_code = why;
	}
	return why == CREDS_AUTH_OK;
}

/* An NFS request refers to a file, and so to an export: is the client admitted there, and may it modify the export? */
static nfsstat3 check_export(struct req *r)
{
	const nfs_fh3 *fh = &r->args.fh;
	int err = fh_export(r->exports->exports->fhs, fh->data.data_val, fh->data.data_len, &r->exp);

	if (err)
		return err == -EBADF ? NFS3ERR_BADHANDLE : NFS3ERR_STALE;
	if (!conn_admits(r->conn, r->exports->exports, r->exp)) {
		reactor_count(r->reactor, refused);
		return NFS3ERR_ACCES;
	}
	if (r->proc->modifies && r->exp->conf.ro)
		return NFS3ERR_ROFS;
	return NFS3_OK;
}

static void on_groups(struct groups_wait *w)
{
	req_run(container_of(w, struct req, groups_wait));
}

/* Groups matter where file permissions are checked: in requests about a file, and on the path walk of MNT. */
static bool needs_groups(const struct req *r)
{
	if (!r->reactor->groups || !r->creds.claimed)
		return false;
	if (r->exp)
		return r->exp->conf.squash != EXPORT_SQUASH_ALL;
	return r->prog == &prog_mount3 && r->rpc->proc == MOUNTPROC3_MNT;
}

/* Determines the request's rights. An export's squash rules apply to groups too, so groups are looked up first. MNT
 * learns its export later (mount3.c). Return: false: the user's groups are being looked up. */
static bool identify(struct req *r)
{
	r->groups_wait.fn = on_groups;
	if (needs_groups(r) &&
	    !groups_of(r->reactor->groups, clock_now_ns(), r->conn->client, &r->creds, &r->groups_wait)) {
		reactor_count(r->reactor, group_waits);
		return false;
	}
	if (r->exp)
		creds_squash(&r->creds, &r->exp->conf);
	r->identified = true;
	return true;
}

/* The rest of a request may never arrive; the shutdown does not wait for it. */
static void note_partial(struct req *r, bool partial)
{
	if (partial && !r->partial)
		r->reactor->partial++;
	if (!partial && r->partial)
		r->reactor->partial--;
	r->partial = partial;
}

void *req_scratch(struct req *r, size_t bytes)
{
	r->scratch = client_scratch_get(r->conn->client, bytes);
	r->scratch_bytes = r->scratch ? bytes : 0;
	if (!r->scratch)
		r->end = REQ_END_DROP;
	return r->scratch;
}

int req_args_init(struct req *r)
{
	const struct prog_proc *proc = r->proc;

	memset(&r->args, 0, proc->args_bytes);
	if (proc->scratch_bytes) {
		if (!req_scratch(r, proc->scratch_bytes))
			return -ENOMEM;
	}
	if (proc->preset)
		proc->preset(r);
	return 0;
}

static enum req_state understand(struct req *r)
{
	nfsstat3 status;
	int err;

	if (!r->proc) {
		if (!find_proc(r) || !find_caller(r))
			return REQ_REPLYING;
		if (req_args_init(r))
			return REQ_REPLYING;
	}
	err = rpcrdma_req_decode(r->rpc, r->proc->decode, &r->args);
	note_partial(r, err == -EAGAIN);
	if (err == -EAGAIN)
		return REQ_NEW;
	if (err)
		return end_error(r, RPCRDMA_GARBAGE_ARGS);
	memset(&r->res, 0, r->proc->res_bytes);
	r->exports = exports_use_hold(r->reactor->exports);
	if (r->prog->is_nfs && r->proc->args_bytes) {
		status = check_export(r);
		if (status != NFS3_OK)
			return end_fail(r, status);
	}
	r->understood = true;
	return REQ_ADMITTED;
}

/* A request with a payload gets its slot when the payload is here, one with long results when it has memory for them:
 * until then it waits for its peer. */
static bool admitted_later(const struct req *r)
{
	return r->proc->move == PLACE_WRITE || r->proc->move == PLACE_PULL || r->proc->room;
}

static enum req_state state_new(struct req *r)
{
	if (!r->understood) {
		enum req_state next = understand(r);

		if (next != REQ_ADMITTED)
			return next;
	}
	if (!r->identified && !identify(r))
		return REQ_NEW;
	return admitted_later(r) || admit_enter(r) ? REQ_ADMITTED : REQ_NEW;
}

/* ---- ADMITTED ----------------------------------------------------------------------------- */

static void work_run(struct worker_job *job)
{
	struct req *r = container_of(job, struct req, job);

	r->proc->work(r);
	nfs3_quick_drop(r);
}

static void work_done(struct worker_job *job)
{
	struct req *r = container_of(job, struct req, job);

	r->running = false;
	req_run(r);
}

/* Return: st_dev of the file system that its worker may block in, or 0 */
static uint64_t dev_of(const struct req *r)
{
	const struct export *exp = r->exp;
	const char *rest;

	if (!exp && r->prog == &prog_mount3 && r->rpc->proc == MOUNTPROC3_MNT)
		exp = export_find_path(&r->exports->exports->table, r->args.mnt, &rest);
	return exp ? exp->volume.dev : 0;
}

static enum req_state to_worker(struct req *r, void (*run)(struct worker_job *job))
{
	r->running = true;
	r->job.run = run;
	r->job.done = work_done;
	r->job.client = &r->conn->client->workers;
	r->job.dev = dev_of(r);
	r->keeps = r->exp && !r->cached && files_may_open(&r->reactor->files, r->exp->volume.dev);
	reactor_count(r->reactor, run_waits);
	worker_submit(r->reactor->loop.workers, r->reactor->loop.engine, &r->job);
	return REQ_RUNNING;
}

static enum req_state finish(struct req *r)
{
	if (r->proc->finish)
		r->proc->finish(r);
	return REQ_REPLYING;
}

static void on_may_open(struct files_waiter *w)
{
	struct req *r = container_of(w, struct req, opener);

	r->running = false;
	req_run(r);
}

/* Executes @r: its arguments and payload are here, and it is not a duplicate. */
static enum req_state execute(struct req *r)
{
	switch (r->proc->move) {
	case PLACE_READ:
	case PLACE_WRITE:
	case PLACE_SYNC:
		switch (nfs3_io_begin(r)) {
		case NFS3_IO_READY:
			if (r->proc->move != PLACE_SYNC) /* buffers of the pool have shares of their own */
				admit_leave(r);
			return REQ_MOVING;
		case NFS3_IO_OPEN:
			return to_worker(r, nfs3_io_open);
		case NFS3_IO_WAIT:
			r->running = true;
			r->opener.fs = r->exp->volume.dev;
			r->opener.resume = on_may_open;
			files_wait(&r->reactor->files, &r->opener);
			return REQ_RUNNING;
		case NFS3_IO_ANSWERED:
			break;
		}
		return REQ_REPLYING;
	case PLACE_PULL:
	case PLACE_NONE:
		break;
	}
	if (r->proc->quick && r->proc->quick(r)) {
		reactor_count(r->reactor, quick);
		return finish(r);
	}
	return r->proc->work ? to_worker(r, work_run) : finish(r);
}

static void on_room(struct rpcrdma_buf_waiter *w)
{
	struct req *r = container_of(w, struct req, room_waiter);

	r->room_waits = false;
	req_run(r);
}

/* Allocates memory for long results. Return: 0; -EINPROGRESS: @r waits for it; -errno */
static int get_room(struct req *r)
{
	size_t bytes = r->proc->room(r);
	int err;

	if (r->room || !bytes)
		return 0;
	if (r->room_waits)
		return -EINPROGRESS;
	err = rpcrdma_req_buf_get(r->rpc, MIN(bytes, r->rpc->buf_max), &r->room);
	if (err != -ENOBUFS)
		return err;
	r->room_waits = true;
	r->room_waiter.fn = on_room;
	rpcrdma_req_buf_wait(r->rpc, &r->room_waiter);
	return -EINPROGRESS;
}

static enum req_state state_admitted(struct req *r)
{
	nfsstat3 status;
	int err;

	switch (r->proc->move) {
	case PLACE_WRITE:
		status = nfs3_io_write_check(r);
		if (status != NFS3_OK)
			return end_fail(r, status);
		r->plan = (struct place_plan){
			.store = r->exports->stores[r->exp->idx],
			.data = &r->args.write.data,
			.off = r->args.write.offset,
			.bytes = r->args.write.count,
		};
		place_pull(&r->place, PLACE_WRITE, &r->plan);
		return REQ_MOVING;
	case PLACE_PULL:
		r->plan.data = &r->args.symlink.symlink.symlink_data;
		r->plan.bytes = r->plan.data->length;
		place_pull(&r->place, PLACE_PULL, &r->plan);
		return REQ_MOVING;
	default:
		err = r->proc->room ? get_room(r) : 0;
		if (err && err != -EINPROGRESS)
			return end_fail(r, NFS3ERR_JUKEBOX);
		if (err || !admit_enter(r))
			return REQ_ADMITTED;
		return r->proc->once ? REQ_ENTERING : execute(r);
	}
}

/* ---- MOVING, RUNNING ---------------------------------------------------------------------- */

/* The arguments' payload is here, or its transfer has failed. */
static enum req_state pulled(struct req *r)
{
	return r->place.err ? end_fail(r, nfs3_conv_status(r, r->place.err)) : REQ_ENTERING;
}

static enum req_state state_moving(struct req *r)
{
	bool through = place_run(&r->place);

	if (r->place.phase == PLACE_PULLS && r->place.kind != PLACE_PULL)
		return place_pulled(&r->place) ? pulled(r) : REQ_MOVING;
	if (!through)
		return REQ_MOVING;
	if (r->place.kind == PLACE_PULL)
		return pulled(r);
	if (place_rejected(&r->place)) {
		r->end = REQ_END_REJECT;
		return REQ_REPLYING;
	}
	(void)finish(r);
	if (r->place.lost) /* executed in part: a retransmission must not get this reply */
		r->end = REQ_END_DROP;
	return REQ_REPLYING;
}

static enum req_state state_running(struct req *r)
{
	if (r->running)
		return REQ_RUNNING;
	/* only the opening of a file returns here to continue */
	return r->proc->work ? finish(r) : execute(r);
}

/* ---- ENTERING ----------------------------------------------------------------------------- */

static enum req_state state_entering(struct req *r)
{
	if (!r->once.asked && !admit_enter(r))
		return REQ_ENTERING;
	switch (once_enter(r)) {
	case DRC_EXECUTE:
		if (r->place.phase != PLACE_DISCARDS) {
			if (!r->admitted)
				admit_now(r); /* it waited for the original request */
			return execute(r);
		}
		/* the request it joined was not executed, and its own payload is dropped: the client retransmits it */
		r->end = REQ_END_DROP;
		return REQ_REPLYING;
	case DRC_REPLAY:
		return REQ_REPLYING;
	case DRC_JOINED:
		admit_leave(r);
		(void)place_discard(&r->place); /* the original request may wait for its memory */
		return REQ_ENTERING;
	case DRC_NO_MEMORY:
		break;
	}
	return end_fail(r, NFS3ERR_JUKEBOX);
}

/* ---- REPLYING ----------------------------------------------------------------------------- */

static void on_replied(void *arg)
{
	struct req *r = arg;

	r->replied = true;
	req_run(r);
}

static void send_end(struct req *r)
{
	struct rpcrdma_req *rpc = r->rpc;

	r->rpc = NULL; /* invalid when these return */
	admit_leave(r); /* from here on it waits for its peer only */
	switch (r->end) {
	case REQ_END_REPLY:
		rpcrdma_req_reply(rpc, r->proc->encode, &r->res, on_replied, r);
		return;
	case REQ_END_KEPT:
		rpcrdma_req_reply(rpc, (xdrproc_t)once_encode, &r->once, on_replied, r);
		return;
	case REQ_END_ERROR:
		rpcrdma_req_reply_error(rpc, (enum rpcrdma_accept_stat)r->end_code, r->end_low,
					r->end_high, on_replied, r);
		return;
	case REQ_END_AUTH:
		rpcrdma_req_reply_auth(rpc, r->end_code, on_replied, r);
		return;
	case REQ_END_REJECT:
		rpcrdma_req_reject(rpc, on_replied, r);
		return;
	case REQ_END_DROP:
		rpcrdma_req_drop(rpc, on_replied, r);
		return;
	}
}

static enum req_state state_replying(struct req *r)
{
	if (r->rpc) {
		if (!place_settle(&r->place)) /* the client may reuse its memory once it has the reply */
			return REQ_REPLYING;
		if (once_end(r))
			r->end = REQ_END_KEPT;
		send_end(r);
	}
	return r->replied ? REQ_FREE : REQ_REPLYING;
}
