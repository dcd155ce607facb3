/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * req.c - the spine: what happens to a request, from its arrival to the end of its reply
 *
 * Operation: A request is a state machine and its own continuation. No thread waits for it: the code that completes
 *            something for it calls req_run() or req_resume() on its reactor. Each state is a function that does what
 *            can be done now. It returns the next state, or the same one if the request must wait. advance()
 *            goes on until the state does not change. What a state needs to know about the program is in the row of
 *            the procedure (prog.h).
 *
 *     call --> NEW --> IDENTIFYING --> ADMITTING ----------(idempotent)----------> execute() <------+
 *               |        |    |           |  |                                      | | |           | (opened,
 *               |        |    |           |  +--(non-idempotent)--> DUPCHECK ------>+ | +--> RUNNING   waited)
 *               |        |    |           |                            ^  |  (new)    |        |
 *               |        |    +--(payload)+-------> PULLING -----------+  |           +-> MOVING
 *               |        |                            |           (dup-   |                |   |
 *               |        |                            | (lost)    licate) |                |   |
 *               +--------+--(refused, garbage)--------+-------------------+----------------+---+--> REPLYING --> FREE
 *
 *     from         to           by                when
 *     NEW          NEW          state_new         arguments incomplete (TCP)
 *     NEW          IDENTIFYING  state_new         decoded
 *     NEW          REPLYING     state_new         refused: the reply is an error
 *     IDENTIFYING  IDENTIFYING  state_identifying the groups of its user are being looked up
 *     IDENTIFYING  PULLING      state_identifying permitted; WRITE, SYMLINK: the payload must be pulled first
 *     IDENTIFYING  ADMITTING    state_identifying permitted
 *     IDENTIFYING  REPLYING     state_identifying refused
 *     ADMITTING    ADMITTING    state_admitting   no memory for long results, or no slot
 *     ADMITTING    DUPCHECK     state_admitting   non-idempotent
 *     ADMITTING    REPLYING     state_admitting   no memory for long results, now or later
 *     PULLING      PULLING      state_pulling     the payload is on its way, or waits for a buffer
 *     PULLING      DUPCHECK     state_pulling     the payload is complete, or (overlap) its first unit is
 *     PULLING      REPLYING     state_pulling     the pull failed
 *     DUPCHECK     DUPCHECK     state_dupcheck    no slot, or the original request is being executed and this one has
 *                                                 joined it
 *     DUPCHECK     REPLYING     state_dupcheck    duplicate: it gets the original reply, or none if the original was not
 *                                                 executed and its own payload is gone; or no memory for its entry
 *     RUNNING      REPLYING     on_worked         the worker has the results
 *     MOVING       MOVING       state_moving      operations are in flight
 *     MOVING       REPLYING     state_moving      all operations have ended: results, a refusal, or no reply if its
 *                                                 payload was lost with the connection
 *     ADMITTING, DUPCHECK, RUNNING, by execute():
 *                  RUNNING                        work; or begin() needs a worker (a file must be opened), or waits
 *                                                 (until other files are closed)
 *                  MOVING                         r->plan is complete: place.c
 *                  REPLYING                       no need to wait, as cached objects suffice, or refused
 *     any before REPLYING       req_conn_lost     it waited (groups, slot, duplicate, descriptor, worker), and its
 *                                                 connection is lost: not executed, no reply
 *     REPLYING     REPLYING     state_replying    payload of a WRITE that is not executed is still being pulled
 *     REPLYING     FREE         on_replied        the transport uses no memory of the request any more
 *
 *     true in      slot        memory held                      waits in
 *     NEW          no          args                             transport
 *     IDENTIFYING  no          args                             program: groups.c (FIFO of that user)
 *     ADMITTING    no          args, room for long results      pool (fair shares), then reactor->admission (fair.h)
 *     PULLING      no          units and their buffers         pool (fair shares), transport
 *     DUPCHECK     yes/no      args, units' buffers            reactor->admission, then the cache's entry
 *                                                               (FIFO; drc.c)
 *     RUNNING      yes         args, units' buffers; worker    worker pool (worker.c), or program: files->waiting
 *                              owns results
 *     MOVING       COMMIT      file, units and their buffers   pool (fair shares), transport, store
 *     REPLYING     no          results, units' buffers         transport
 *     FREE         no          none                             -
 *
 *            A slot stands for work of the server itself. A request that waits for its peer (for payload, for the
 *            end of its reply, for buffers of its connection's share) holds none. So a slow peer delays only its
 *            own requests. Slots are shared fairly between clients, and between the connections of a client.
 *
 *            A request that leaves DUPCHECK to be executed owns an entry of the duplicate request cache. It
 *            releases the entry when it enters REPLYING, executed or not: joined requests may wait for it.
 *            Shortage is never an error: the queues above have counters (reactor_counters, worker_stats,
 *            rpcrdma_stats.buf_waits) for how often and how long requests waited.
 *            A unit of a payload may end in any state from PULLING on; only those that move payload go on then.
 * Memory:    Requests are recycled per reactor; arguments are decoded into the request itself. Each rpcrdma_req
 *            is ended exactly once, in state_replying(), or by req_call() if there is no request for it.
 * Threads:   The reactor's; work() and open() of a procedure run on a worker.
 * Errors:    An error of a client gets an error reply, at worst a refusal; no assert depends on client input.
 * See:       doc/tour.md; drc_check.c and drc.c for duplicates; prog.h for the tables; RFC 5531 section 9.
 */
#include "req.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/trace.h"
#include "admit.h"
#include "client.h"
#include "conn.h"
#include "reactor.h"
#include "server_int.h"
#include "services.h"

const char *req_state_name(enum req_state s)
{
	static const char *const names[] = {
		[REQ_NEW] = "NEW",	     [REQ_IDENTIFYING] = "IDENTIFYING", [REQ_ADMITTING] = "ADMITTING",
		[REQ_PULLING] = "PULLING",   [REQ_DUPCHECK] = "DUPCHECK",	[REQ_RUNNING] = "RUNNING",
		[REQ_MOVING] = "MOVING",     [REQ_REPLYING] = "REPLYING",	[REQ_FREE] = "FREE",
	};

	return (unsigned)s < ARRAY_SIZE(names) ? names[s] : "?";
}

_Static_assert(REQ_FREE == LATENCY_STATES, "a histogram for each state but the last");

/* ---- allocation --------------------------------------------------------------------------- */

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

static struct req *req_get(struct conn *c, struct rpcrdma_req *rpc)
{
	struct reactor *re = c->reactor;
	struct list *n = list_pop(&re->free_reqs);
	struct req *r = n ? list_entry(n, struct req, link) : calloc(1, re->req_bytes);

	if (!r)
		return NULL;
	re->nreqs += !n;
	list_init(&r->link);
	list_init(&r->job.link); /* leave_queue() asks about it, also if it has never been submitted */
	list_add_tail(&c->reqs, &r->of_conn);
	r->state = REQ_NEW;
	r->reactor = re;
	r->srv = re->srv;
	r->conn = c;
	if (!c->transport)
		c->transport = rpc->conn;
	r->rpc = rpc;
	r->xid = rpc->xid;
	r->prog = NULL;
	r->proc = NULL;
	r->admitted = false;
	r->dev = 0;
	r->scratch = NULL;
	r->scratch_bytes = 0;
	r->room = NULL;
	r->end = REQ_END_REPLY;
	r->plan = (struct place_plan){ .data = NULL };
	latency_begin(&r->latency, &re->latency, &c->peer);
	place_init(&r->place, &re->units, rpc, &r->latency, on_moved);
	r->check.asked = false;
	r->check.call.entry = NULL;
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
	if (r->prog && r->prog->release)
		r->prog->release(r);
	if (r->scratch)
		client_scratch_put(r->conn->client, r->scratch, r->scratch_bytes);
	if (r->room)
		rpcrdma_buf_put(re->loop.engine, r->room);
	re->taken--;
	list_del(&r->of_conn);
	list_add_head(&re->free_reqs, &r->link);
}

/* ---- calls and connections ---------------------------------------------------------------- */

static void advance(struct req *r, unsigned had, enum req_state next);

/* At shutdown, requests in progress may need calls of this server to itself. */
static bool is_dropped(const struct conn *c, const struct rpcrdma_req *rpc)
{
	const struct prog *p = c->reactor->draining ? service_prog(c->srv, rpc->prog) : NULL;

	return c->reactor->draining && !(p && p->for_servers && atomic_load(&c->srv->asking));
}

void req_call(void *conn, struct rpcrdma_req *rpc)
{
	struct conn *c = conn;
	struct req *r = rpc->user;

	if (!r) {
		r = is_dropped(c, rpc) ? NULL : req_get(c, rpc);
		if (!r) { /* the client retransmits it, to the server that runs then */
			rpcrdma_req_drop(rpc, NULL, NULL);
			return;
		}
		rpc->user = r;
	}
	req_run(r);
}

static bool cancel(struct req *r)
{
	return r->prog->cancel && r->prog->cancel(r);
}

/* Takes @r out of the queue in which it waits to begin. Return: false: it is in no queue */
static bool leave_queue(struct req *r)
{
	switch (r->state) {
	case REQ_IDENTIFYING:
		return cancel(r);
	case REQ_ADMITTING:
		return admit_cancel(r);
	case REQ_DUPCHECK:
		return admit_cancel(r) || drc_check_leave(r);
	case REQ_RUNNING:
		return cancel(r) || worker_cancel(r->reactor->loop.workers, &r->job);
	default:
		return false;
	}
}

static enum req_state drop(struct req *r)
{
	r->end = REQ_END_DROP;
	return REQ_REPLYING;
}

/* Requests in progress continue. The others are dropped, so the client may retransmit them over another connection.
 * The end of a request may make others run and end, including requests of this connection. */
void req_conn_lost(void *conn)
{
	struct list reqs = LIST_INIT(reqs), *n;
	struct conn *c = conn;

	list_splice_tail(&reqs, &c->reqs);
	while ((n = list_pop(&reqs)) != NULL) {
		struct req *r = list_entry(n, struct req, of_conn);
		unsigned had = r->reactor->live;

		list_add_tail(&c->reqs, n);
		if (leave_queue(r))
			advance(r, had, drop(r));
	}
}

/* ---- NEW ---------------------------------------------------------------------------------- */

static enum req_state end_error(struct req *r, enum rpcrdma_accept_stat stat)
{
	r->end = REQ_END_ERROR;
	r->end_code = (uint32_t)stat;
	return REQ_REPLYING;
}

static enum req_state end_fail(struct req *r, int err)
{
	r->prog->fail(r, err);
	return REQ_REPLYING;
}

/* Finds the program and the procedure, or sets the error to reply with (RFC 5531 section 9). */
static bool find_proc(struct req *r)
{
	/* all programs use the same port, so a client needs no rpcbind */
	const struct prog *p = service_prog(r->srv, r->rpc->prog);
	uint32_t proc = r->rpc->proc;

	if (!p) {
		(void)end_error(r, RPCRDMA_PROG_UNAVAIL);
	} else if (p->vers != r->rpc->vers) {
		r->end_vers = p->vers;
		(void)end_error(r, RPCRDMA_PROG_MISMATCH);
	} else if (proc >= p->nprocs || !p->procs[proc].name) {
		(void)end_error(r, RPCRDMA_PROC_UNAVAIL);
	} else {
		r->prog = p;
		r->proc = &p->procs[proc];
		memset(req_args(r), 0, r->proc->args_bytes);
		if (p->init)
			p->init(r);
	}
	return r->proc;
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

	if (proc->scratch_bytes && !req_scratch(r, proc->scratch_bytes))
		return -ENOMEM;
	if (proc->preset)
		proc->preset(r);
	return 0;
}

/* The rest of a request that stays here may never arrive; the shutdown does not wait for it: reactor->partial. */
static enum req_state state_new(struct req *r)
{
	int err;

	if (r->proc)
		r->reactor->partial--;
	else if (!find_proc(r) || !find_caller(r) || req_args_init(r))
		return REQ_REPLYING;
	err = rpcrdma_req_decode(r->rpc, r->proc->decode, req_args(r));
	if (err == -EAGAIN) {
		r->reactor->partial++;
		return REQ_NEW;
	}
	if (err)
		return end_error(r, RPCRDMA_GARBAGE_ARGS);
	memset(req_res(r), 0, r->proc->res_bytes);
	return REQ_IDENTIFYING;
}

/* ---- IDENTIFYING -------------------------------------------------------------------------- */

static enum req_state state_identifying(struct req *r)
{
	int err = r->prog->authorize ? r->prog->authorize(r) : 0;

	if (err == -EINPROGRESS)
		return REQ_IDENTIFYING;
	if (!err && r->proc->payload)
		err = r->proc->payload(r);
	if (err)
		return end_fail(r, err);
	if (!r->proc->payload)
		return REQ_ADMITTING;
	place_pull(&r->place, r->proc->move, &r->plan);
	return REQ_PULLING;
}

/* ---- RUNNING ------------------------------------------------------------------------------ */

static enum req_state finish(struct req *r)
{
	if (r->proc->finish)
		r->proc->finish(r);
	return REQ_REPLYING;
}

static void run_work(struct worker_job *job)
{
	struct req *r = container_of(job, struct req, job);

	r->proc->work(r);
}

static void on_worked(struct worker_job *job)
{
	struct req *r = container_of(job, struct req, job);
	unsigned had = r->reactor->live;

	advance(r, had, finish(r));
}

static void run_open(struct worker_job *job)
{
	struct req *r = container_of(job, struct req, job);

	r->proc->open(r);
}

static enum req_state execute(struct req *r);

static void on_opened(struct worker_job *job)
{
	struct req *r = container_of(job, struct req, job);
	unsigned had = r->reactor->live;

	advance(r, had, execute(r));
}

static enum req_state to_worker(struct req *r, void (*work)(struct worker_job *job),
				void (*done)(struct worker_job *job))
{
	r->job.run = work;
	r->job.done = done;
	r->job.client = &r->conn->client->workers;
	r->job.dev = r->dev;
	reactor_count(r->reactor, run_waits);
	loop_submit(&r->reactor->loop, &r->job);
	return REQ_RUNNING;
}

static enum req_state begin(struct req *r)
{
	switch (r->proc->begin(r)) {
	case PROG_MOVE:
		if (r->proc->move != PLACE_STORE) /* buffers of the pool have shares of their own */
			admit_leave(r);
		place_move(&r->place, r->proc->move, &r->plan);
		return REQ_MOVING;
	case PROG_OPEN:
		return to_worker(r, run_open, on_opened);
	case PROG_WAIT:
		return REQ_RUNNING;
	case PROG_REPLY:
		break;
	}
	return REQ_REPLYING;
}

/* Executes @r: its arguments and payload are here, and it is not a duplicate. */
static enum req_state execute(struct req *r)
{
	if (r->proc->begin)
		return begin(r);
	if (r->proc->fast && r->proc->fast(r)) {
		reactor_count(r->reactor, quick);
		return finish(r);
	}
	return r->proc->work ? to_worker(r, run_work, on_worked) : finish(r);
}

/* ---- requests that wait for others -------------------------------------------------------- */

static void on_woken(struct rpcrdma_msg *msg)
{
	req_resume(container_of(msg, struct req_waiter, msg)->req);
}

void req_waiter_init(struct req_waiter *w, struct req *r)
{
	list_init(&w->link);
	w->req = r;
	w->msg.fn = on_woken;
}

void req_wake(struct list *waiters)
{
	struct list *n;

	while ((n = list_pop(waiters)) != NULL) {
		struct req_waiter *w = list_entry(n, struct req_waiter, link);

		rpcrdma_engine_post(w->req->reactor->loop.engine, &w->msg);
	}
}

bool req_unwait(pthread_mutex_t *lock, struct req_waiter *w)
{
	bool waits;

	pthread_mutex_lock(lock);
	waits = list_is_linked(&w->link);
	list_del(&w->link);
	pthread_mutex_unlock(lock);
	return waits;
}

/* ---- ADMITTING ---------------------------------------------------------------------------- */

static void on_room(struct rpcrdma_buf_waiter *w)
{
	req_run(container_of(w, struct req, room_waiter));
}

/* Allocates memory for long results. Return: 0; -EINPROGRESS: @r waits for it; -errno */
static int get_room(struct req *r)
{
	size_t bytes = r->proc->room ? r->proc->room(r) : 0;
	int err;

	if (r->room || !bytes)
		return 0;
	err = rpcrdma_req_buf_get(r->rpc, MIN(bytes, r->rpc->buf_max), &r->room);
	if (err != -ENOBUFS)
		return err;
	r->room_waiter.fn = on_room;
	rpcrdma_req_buf_wait(r->rpc, &r->room_waiter);
	return -EINPROGRESS;
}

/* A request with long results gets its slot when it has memory for them: until then it waits for its peer. */
static enum req_state state_admitting(struct req *r)
{
	int err = get_room(r);

	if (err && err != -EINPROGRESS)
		return end_fail(r, -EAGAIN);
	if (err || !admit_enter(r))
		return REQ_ADMITTING;
	return r->proc->once ? REQ_DUPCHECK : execute(r);
}

/* ---- PULLING, MOVING ---------------------------------------------------------------------- */

/* A request with a payload gets its slot when enough of the payload is here: until then it waits for its peer. */
static enum req_state state_pulling(struct req *r)
{
	bool all = place_run(&r->place);

	if (!(r->proc->move == PLACE_PULL ? all : place_pulled(&r->place)))
		return REQ_PULLING;
	return r->place.err ? end_fail(r, r->place.err) : REQ_DUPCHECK;
}

static enum req_state state_moving(struct req *r)
{
	if (!place_run(&r->place))
		return REQ_MOVING;
	if (place_rejected(&r->place)) {
		r->end = REQ_END_REJECT;
		return REQ_REPLYING;
	}
	(void)finish(r);
	return r->place.lost ? drop(r) : REQ_REPLYING; /* executed in part: a retransmission must not get this reply */
}

/* ---- DUPCHECK ----------------------------------------------------------------------------- */

static enum req_state state_dupcheck(struct req *r)
{
	if (!r->check.asked && !admit_enter(r))
		return REQ_DUPCHECK;
	switch (r->proc->once ? drc_check_enter(r) : DRC_EXECUTE) {
	case DRC_EXECUTE:
		/* the request it joined was not executed, and its own payload is dropped: the client retransmits it */
		if (r->place.phase == PLACE_DISCARDS)
			return drop(r);
		if (!r->admitted)
			admit_now(r); /* it waited for the original request */
		return execute(r);
	case DRC_REPLAY:
		return REQ_REPLYING;
	case DRC_JOINED:
		admit_leave(r);
		(void)place_discard(&r->place); /* the original request may wait for its memory */
		return REQ_DUPCHECK;
	case DRC_NO_MEMORY:
		break;
	}
	return end_fail(r, -EAGAIN);
}

/* ---- REPLYING ----------------------------------------------------------------------------- */

static void on_replied(void *arg)
{
	struct req *r = arg;

	advance(r, r->reactor->live, REQ_FREE);
}

static void send_end(struct req *r)
{
	struct rpcrdma_req *rpc = r->rpc;

	r->rpc = NULL; /* invalid when these return */
	admit_leave(r); /* from here on it waits for its peer only */
	switch (r->end) {
	case REQ_END_REPLY:
		rpcrdma_req_reply(rpc, r->proc->encode, req_res(r), on_replied, r);
		return;
	case REQ_END_KEPT:
		rpcrdma_req_reply(rpc, (xdrproc_t)drc_check_encode, &r->check, on_replied, r);
		return;
	case REQ_END_ERROR:
		rpcrdma_req_reply_error(rpc, (enum rpcrdma_accept_stat)r->end_code, r->end_vers, r->end_vers, on_replied, r);
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
	if (r->rpc && place_settle(&r->place)) { /* the client may reuse its memory once it has the reply */
		if (r->check.asked && drc_check_end(r))
			r->end = REQ_END_KEPT;
		send_end(r);
	}
	return r->state;
}

/* ---- from state to state ------------------------------------------------------------------ */

/* Return: the next state; the same one: it waits for on_worked(), on_opened(), req_resume() or on_replied() */
static enum req_state take_step(struct req *r)
{
	switch (r->state) {
	case REQ_NEW:
		return state_new(r);
	case REQ_IDENTIFYING:
		return state_identifying(r);
	case REQ_ADMITTING:
		return state_admitting(r);
	case REQ_PULLING:
		return state_pulling(r);
	case REQ_DUPCHECK:
		return state_dupcheck(r);
	case REQ_MOVING:
		return state_moving(r);
	case REQ_REPLYING:
		return state_replying(r);
	case REQ_RUNNING:
	case REQ_FREE:
		break;
	}
	return r->state;
}

/* Enters @next, and the states that follow, until the request has to wait or has ended.
 * @had: slots held before the step that led to @next */
static void advance(struct req *r, unsigned had, enum req_state next)
{
	struct reactor *re = r->reactor;

	for (; next != r->state; next = take_step(r)) {
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

void req_run(struct req *r)
{
	unsigned had = r->reactor->live;

	advance(r, had, take_step(r));
}

void req_resume(struct req *r)
{
	unsigned had = r->reactor->live;

	advance(r, had, r->state == REQ_RUNNING ? execute(r) : take_step(r));
}
