/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_service.h - the block service: what its program keeps per server, reactor, connection and request
 *
 * The spine keeps these structures as `service` and `call` and does not look inside (prog.h).
 */
#ifndef LEAT_SERVER_BLOCK_SERVICE_H
#define LEAT_SERVER_BLOCK_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "block.h"
#include "block_holders.h"
#include "block_lanes.h"
#include "block_set.h"
#include "conf.h"
#include "conn.h"
#include "fh.h"
#include "reactor.h"
#include "req.h"
#include "server_int.h"

/* Of the server. Written before the threads start and after they end, or before reactors use the first volumes. */
struct block_server {
	struct fh_keys keys; /* sign handles */
	char *state_dir;     /* or NULL: attachments end with the server */
};

/* Counters of one reactor, which are added up over the reactors.
 *
 *   block_attaches     attachments, of them:
 *   block_take_overs   taken over from another holder
 *   block_busy         ATTACH of a volume that another holder has
 *   block_bad_handles  calls with a handle that this server has not given
 *   block_gone         calls with a handle of a volume that is no longer served
 *   block_fenced       calls of an attachment that has ended
 *   block_old_lanes    calls by a connection that a newer one has, or may have, replaced
 *   block_lane_waits   calls that waited for changes of an older connection
 *   block_syncs        FLUSH and WRITE with FUA */
#define BLOCK_COUNTERS(SUM)                                                                                   \
	SUM(block_attaches) SUM(block_take_overs) SUM(block_busy) SUM(block_bad_handles) SUM(block_gone)      \
	SUM(block_fenced) SUM(block_old_lanes) SUM(block_lane_waits) SUM(block_syncs)

/* Only the thread of the reactor writes; any thread may read. */
struct block_counters {
	BLOCK_COUNTERS(STORE_COUNTER)
};

/* Of a reactor. Owned by its thread. */
struct block_reactor {
	struct block_counters counters;
	uint32_t inline_max;	/* longest data of a READ that is sent inside the reply: a multiple of 4096 */
};

/* Of a connection, on its reactor. */
struct block_peer {
	struct served_verdicts verdicts; /* enum peer_verdict */
	struct block_conn *conn;
};

union block_args {
	BLOCKLISTargs list;
	BLOCKINFOargs info;
	BLOCKATTACHargs attach;
	BLOCKATargs at;
	BLOCKREADargs read;
	BLOCKWRITEargs write;
	BLOCKRANGEargs range;
	BLOCKZEROargs zero;
};

union block_res {
	block_status status; /* results begin with it */
	BLOCKLISTres list;
	BLOCKINFOres info;
	BLOCKATTACHres attach;
	BLOCKDETACHres detach;
	BLOCKREADres read;
	BLOCKCHANGEres change;
	BLOCKEXTENTSres extents;
};

/* Memory of an EXTENTS, of which one block more than was found may be told */
struct block_extents_mem {
	struct store_extents found;
	block_extent told[BLOCK_EXTENTS_MAX];
};

/* Where an ATTACH or a DETACH is. */
enum block_step {
	BLOCK_FIRST,	/* it waits for its turn */
	BLOCK_DRAINING, /* it waits for operations of attachments that it has fenced */
	BLOCK_SAVING,	/* a worker saves the holders */
};

/* What an ATTACH or a DETACH needs */
struct block_attach_call {
	enum block_step step;
	bool turn; /* volume->attaching is this call's */
	bool unsaved; /* the holders have changed in this turn */
	bool timed_out; /* it has waited for long enough */
	bool in_vain;	/* ... and operations of before have not ended */
	struct rpcrdma_timer timer, close_timer; /* run if they have fn */
};

/* Of a request. All but its texts is cleared before it is decoded. */
struct block_call {
	struct req *req;
	struct block_reactor *re;
	struct served_use *use; /* in force when it was decoded: held */
	const struct block_entry *entry;
	struct block_id id;
	struct req_waiter waiter;
	int err; /* of a worker */

	struct block_pass pass; /* all that begin */
	bool looked; /* a worker has looked at the size */
	bool syncs;  /* it is noted that a sync is in progress */
	bool is_long; /* client_begin_long() */
	uint64_t verf;

	struct block_attach_call attach;

	union block_args args;
	union block_res res;
	char names[4][BLOCK_NAME_MAX + 1]; /* memory for strings of the arguments */
	char victim[BLOCK_NAME_MAX + 1]; /* ATTACH, DETACH: another holder whose operations have to end; "": none */
	struct block_holder_text other;  /* ATTACH: of the holder that it was refused for */
};

/** block_service - the hooks of the block service, and its program */
extern const struct service block_service;

extern const struct prog prog_block;

static inline struct block_server *block_server(const struct server *srv)
{
	return srv->service[SERVICE_BLOCK];
}

static inline struct block_reactor *block_reactor(const struct reactor *re)
{
	return re->service[SERVICE_BLOCK];
}

static inline struct block_peer *block_peer(const struct conn *c)
{
	return c->service[SERVICE_BLOCK];
}

static inline struct block_call *block_call(const struct req *r)
{
	return (struct block_call *)(void *)(uintptr_t)r->call;
}

#define block_count(re, field)                                                                     \
	atomic_fetch_add_explicit(&block_reactor(re)->counters.field, 1, memory_order_relaxed)

/** block_refuse - sets the results to the status for @err, -errno */
void block_refuse(struct req *r, int err);

/** block_now - block_refuse(); Return: PROG_REPLY */
enum prog_begin block_now(struct req *r, int err);

/** block_find_named - sets call->entry to a volume that the client may use; Return: 0, -ENOENT, -EACCES */
int must_check block_find_named(struct req *r, const char *name);

/** block_describe - fills in the description of a volume; its strings belong to @e */
void block_describe(const struct block_entry *e, block_info *ret);

/* Hooks of the procedures (prog.h) */
void block_list(struct req *r);
void block_info_of(struct req *r);
enum prog_begin block_attach_begin(struct req *r);
void block_attach_save(struct req *r);
enum prog_begin block_detach_begin(struct req *r);
void block_attach_release(struct req *r);
enum prog_begin block_read_begin(struct req *r);
void block_read_finish(struct req *r);
int block_write_payload(struct req *r);
enum prog_begin block_write_begin(struct req *r);
void block_change_finish(struct req *r);
enum prog_begin block_flush_begin(struct req *r);
void block_flush_finish(struct req *r);
enum prog_begin block_discard_begin(struct req *r);
enum prog_begin block_zero_begin(struct req *r);
enum prog_begin block_extents_begin(struct req *r);
void block_extents_finish(struct req *r);
void block_look(struct req *r);

/** block_io_end - the operation of @r, if it has begun, has ended */
void block_io_end(struct req *r);

#endif
