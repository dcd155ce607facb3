/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_service.h - the stripe service: what its program keeps per server, reactor, connection and request
 *
 * The spine keeps these structures as `service` and `call` and does not look inside (prog.h).
 */
#ifndef LEAT_SERVER_STRIPE_SERVICE_H
#define LEAT_SERVER_STRIPE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "conf.h"
#include "conn.h"
#include "reactor.h"
#include "req.h"
#include "server_int.h"
#include "stripe_handle.h"
#include "stripe_lanes.h"
#include "stripe_set.h"
#include "stripe_vol.h"
#include "stripes.h"

/* Of the server. Written before the threads start and after they end; the lanes have a lock. */
struct stripe_server {
	unsigned nreactors;
	struct stripe_lanes lanes;
};

/* Counters of one reactor, which are added up over the reactors.
 *
 *   stripe_bad_handles  calls with a handle or a command that no key of the volume has signed, or for another server
 *   stripe_expired      calls whose handle or command has expired
 *   stripe_fenced       calls of an older epoch than the object's, or of an object that was removed
 *   stripe_not_ready    calls of a newer epoch than the object's
 *   stripe_old_terms    commands, and calls with handles, of an older manager
 *   stripe_old_lanes    calls by a connection that a newer one has replaced
 *   stripe_lane_waits   calls that waited for changes of an older connection
 *   stripe_fences       FENCE, REMOVE and SET_ASIDE that changed a record
 *   stripe_fence_waits  of them, those that waited for operations to end
 *   stripe_withheld     connections closed because operations that a FENCE, a REMOVE or a newer term waited for did not end
 *   stripe_term_waits   times that a call of the manager waited for a newer term, or for commands and WRITEs of older ones
 *   stripe_works        times that a worker opened, changed or looked at something for a call */
#define STRIPE_COUNTERS(SUM)                                                                                        \
	SUM(stripe_bad_handles) SUM(stripe_expired) SUM(stripe_fenced) SUM(stripe_not_ready) SUM(stripe_old_terms)  \
	SUM(stripe_old_lanes) SUM(stripe_lane_waits) SUM(stripe_fences) SUM(stripe_fence_waits) SUM(stripe_withheld) \
	SUM(stripe_term_waits) SUM(stripe_works)

/* Only the thread of the reactor writes; any thread may read. */
struct stripe_counters {
	STRIPE_COUNTERS(STORE_COUNTER)
};

/* Of a reactor. Owned by its thread. */
struct stripe_reactor {
	struct stripe_counters counters;
	struct reactor *reactor;
	uint32_t inline_max;	/* longest data of a READ that is sent inside the reply: a multiple of 4096 */
	struct {		/* of tombstones; on the first reactor */
		struct rpcrdma_timer timer;
		struct worker_job job;
		struct served_use *use; /* held while the job runs; NULL: it does not */
		unsigned fan;		/* directory of objects that comes next */
	} sweep;
};

/* Of a connection, on its reactor. */
struct stripe_peer {
	struct served_verdicts verdicts; /* enum peer_verdict */
	struct stripe_conn *conn;
};

union stripe_args {
	char first[STRIPE_COMMAND_BYTES]; /* a handle or a command: both begin with the volume */
	stripe_at at;
	STRIPEINFOargs info;
	STRIPEREADargs read;
	STRIPEWRITEargs write;
	STRIPECOMMITargs commit;
	STRIPESTATargs stat;
	STRIPEFENCEargs fence;
	STRIPEREMOVEargs remove;
	STRIPELISTargs list;
	STRIPEASIDEargs aside;
};

union stripe_res {
	stripe_status status; /* results begin with it */
	STRIPEINFOres info;
	STRIPEREADres read;
	STRIPECHANGEres change;
	STRIPESTATres stat;
	STRIPELISTres list;
};

/* What a worker is to do for a call; bits. It does them in the order of their values: stripe_turn_work() */
enum stripe_work {
	STRIPE_WORK_TERM = 1u << 0,   /* makes the call's term durable; alone */
	/* with the turn of the object: */
	STRIPE_WORK_LOAD = 1u << 1,
	STRIPE_WORK_RECORD = 1u << 2, /* call->next */
	STRIPE_WORK_CUT = 1u << 3,    /* the cut that is pending then */
	STRIPE_WORK_CREATE = 1u << 4,
	STRIPE_WORK_OPEN = 1u << 5,
	STRIPE_WORK_NAME = 1u << 6,
	STRIPE_WORK_STAT = 1u << 7,
	STRIPE_WORK_ASIDE = 1u << 8,
	/* without it: */
	STRIPE_WORK_INFO = 1u << 9,
	STRIPE_WORK_LIST = 1u << 10,
};

/* Of a request. Cleared before it is decoded. */
struct stripe_call {
	struct req *req;
	struct stripe_reactor *re;
	struct served_use *use; /* in force when it was decoded: held */
	struct stripe_member *member;
	struct stripe_vol *vol; /* of it */
	struct stripe_object *o; /* a reference, or NULL */
	struct req_waiter waiter; /* for the object's turn or operations, for a lane, or for a term */
	bool turn;	/* of the object */
	unsigned work;	/* for the worker: enum stripe_work */
	unsigned done;	/* what it has done without an error */
	int err;	/* of the worker */

	struct store_file *file; /* of the operation; NULL: its object does not exist, so there is nothing to do */
	bool begun;	/* the operation is in progress: */
	struct stripe_op op;
	struct stripe_pass pass;
	uint64_t verf;
	uint64_t covers; /* of a COMMIT: object->writes, if all of them had ended; else UINT64_MAX */

	bool is_command; /* its member of the union is command */
	bool managed;	 /* it is the manager's, and in progress: a command that a worker executes, or a WRITE */
	struct stripe_op manager_op;
	bool term_turn; /* vol->term_busy is this call's */
	struct rpcrdma_timer timer, close_timer; /* run if they have fn */
	bool timed_out;
	bool overdue; /* it has waited for operations until close_ns */
	struct stripe_record next;
	stripe_stat stat;

	union { /* what the signature has proved */
		struct stripe_handle handle;
		struct stripe_command command;
	};
	union stripe_args args;
	union stripe_res res;
};

/** stripe_service - the hooks of the stripe service, and its program */
extern const struct service stripe_service;

extern const struct prog prog_stripes;

static inline struct stripe_server *stripe_server(const struct server *srv)
{
	return srv->service[SERVICE_STRIPES];
}

static inline struct stripe_reactor *stripe_reactor(const struct reactor *re)
{
	return re->service[SERVICE_STRIPES];
}

static inline struct stripe_peer *stripe_peer(const struct conn *c)
{
	return c->service[SERVICE_STRIPES];
}

static inline struct stripe_call *stripe_call(const struct req *r)
{
	return (struct stripe_call *)(void *)(uintptr_t)r->call;
}

#define stripe_count(re, field)                                                                    \
	atomic_fetch_add_explicit(&stripe_reactor(re)->counters.field, 1, memory_order_relaxed)

/** stripe_refuse - sets the results to the status for @err, -errno */
void stripe_refuse(struct req *r, int err);

/** stripe_reply - stripe_refuse(); Return: PROG_REPLY */
enum prog_begin stripe_reply(struct req *r, int err);

/** stripe_order_of - what a command is to do, by its arguments */
struct stripe_order stripe_order_of(const struct req *r);

/* ---- under the lock of the volume (stripe_turn.c) ---- */

/** stripe_turn_end - begin() runs again behind a worker: the turn ends
 *
 * Return: what the worker returned, once; 0: no worker has run.
 */
int must_check stripe_turn_end(struct stripe_call *call);

/** stripe_turn_object - holds the object of @name for the call, once, and takes its turn if it is not loaded
 *
 * Return: PROG_MOVE: it is loaded, and no other call has the turn; PROG_WAIT; PROG_OPEN: a worker has to run;
 * PROG_REPLY: no memory.
 */
enum prog_begin must_check stripe_turn_object(struct stripe_call *call, const stripe_name *name);

/** stripe_turn_term - may a call of the manager begin, by its term? Makes a newer one durable
 * Return: PROG_MOVE: it may; PROG_WAIT; PROG_OPEN: a worker has to run; PROG_REPLY: -EOWNERDEAD, in @ret_err, its term is old.
 */
enum prog_begin must_check stripe_turn_term(struct stripe_call *call, int *ret_err);

/** stripe_op_enter - an operation begins on the call's object; stripe_op_end() follows */
void stripe_op_enter(struct stripe_call *call, bool changes);

/** stripe_turn_take - takes the turn, which is free, for @work; Return: PROG_OPEN */
enum prog_begin stripe_turn_take(struct stripe_call *call, unsigned work);

/** stripe_turn_drain - waits until @waiters are resumed, for older operations of the call's object, or of older terms: closes
 * their connections if they do not end soon; Return: PROG_WAIT */
enum prog_begin stripe_turn_drain(struct stripe_call *call, struct list *waiters);

/* ---- not under it ---- */

/** stripe_turn_work - prog_proc.open: runs call->work on a worker */
void stripe_turn_work(struct req *r);

/** stripe_turn_release - ends what the call holds, whatever it has come to */
void stripe_turn_release(struct stripe_call *call);

/** stripe_op_end - the operation of a call, if it has begun, has ended */
void stripe_op_end(struct stripe_call *call);

/** stripe_unwait - the call does not wait any more; Return: false: it did not wait */
bool stripe_unwait(struct stripe_call *call);

/* Hooks of the procedures (prog.h) */
enum prog_begin stripe_read_begin(struct req *r);
void stripe_read_finish(struct req *r);
int stripe_write_payload(struct req *r);
enum prog_begin stripe_write_begin(struct req *r);
void stripe_change_finish(struct req *r);
enum prog_begin stripe_commit_begin(struct req *r);
enum prog_begin stripe_info_begin(struct req *r);
enum prog_begin stripe_stat_begin(struct req *r);
enum prog_begin stripe_fence_begin(struct req *r);
enum prog_begin stripe_remove_begin(struct req *r);
enum prog_begin stripe_list_begin(struct req *r);
enum prog_begin stripe_aside_begin(struct req *r);

#endif
