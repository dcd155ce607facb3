/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * place.h - moves the payload of one request between store and transport, in units
 */
#ifndef LEAT_SERVER_PLACE_H
#define LEAT_SERVER_PLACE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"
#include "split.h"
#include "latency.h"
#include "rpcrdma.h"
#include "store.h"

struct creds;
struct worker_client;

#define PLACE_DEPTH 64u /* units of one request in flight at once */
#define PLACE_IOV_MAX 64 /* segments of the client's memory that a payload may lie in */

enum place_kind {
	PLACE_NONE,
	PLACE_READ,  /* store to client */
	PLACE_WRITE, /* client to store */
	PLACE_PULL,  /* client to memory: arguments that are needed as a whole */
	PLACE_STORE, /* no payload; one operation of the store */
};

/* What a program moves, and how; its hooks fill it in (prog.h). */
struct place_plan {
	/* before the payload of the arguments is pulled */
	struct store *store;	      /* all but PULL; its backing says how the data travels */
	struct rpcrdma_payload *data; /* WRITE, PULL: of the arguments */
	uint64_t off;  /* in the file, of the first byte */
	/* Of payload; STORE: of the operation (store.h). READ: more than r->rpc->room is rejected; unless
	 * r->rpc->by_chunk, payload and results together fit rpcrdma_domain_reply_max() */
	uint32_t bytes;
	/* before data moves to or from the store */
	struct store_file *file;
	uint64_t size_hint;	  /* READ: the file's recent size */
	enum store_op op;	  /* STORE: neither STORE_READ nor STORE_WRITE */
	enum store_stable stable; /* WRITE; STORE: of the operation, */
	bool keep;		  /* as these are */
	struct store_extents *extents;
	const struct creds *creds; /* WRITE: credentials to write with (quota); NULL: the server's own */
	struct worker_client *client; /* the client it is for: &r->conn->client->workers; NULL: the server itself */
};

enum place_phase {
	PLACE_PULLS,	/* the payload of the arguments is pulled; WRITE: and held */
	PLACE_MOVES,	/* data moves between store and client */
	PLACE_DISCARDS, /* WRITE: what was pulled is discarded */
};

enum unit_state {
	UNIT_NEED_BUF, /* needs a buffer, unless the client's memory can be used directly */
	UNIT_WAIT_BUF, /* waits for one in the pool's queue */
	UNIT_TO_PULL, /* to be pulled from the client */
	UNIT_PULLING,	/* the transport pulls it */
	UNIT_PULLED,	/* waits for place_move() */
	UNIT_TO_DISK,	/* to be submitted to the store */
	UNIT_AT_DISK,	/* the store has it */
	UNIT_TURN,	/* waits until all units before it were put */
	UNIT_TO_PUT,	/* to be put to the client */
	/* it takes no further step: */
	UNIT_PUTTING, /* the transport puts it, and frees it then */
	UNIT_LENT,    /* the transport has it and its buffer until the reply has been sent */
	UNIT_DONE,
};

struct io_unit {
	struct list ready; /* place->ready: it can continue */
	struct list link;  /* place->units, or place_pool.free */
	enum unit_state state;
	uint32_t off, len; /* within the payload */
	unsigned stream;
	struct place *place;
	struct rpcrdma_buf *buf; /* its own; NULL: a part of place->buf, or the client's memory */
	struct rpcrdma_buf_waiter waiter;
	struct rpcrdma_xfer xfer;
	struct store_io io;
	int iovcnt;
	struct iovec *iov; /* &here, or place->iov */
	struct iovec here;
};

/* Of one reactor. */
struct place_pool {
	struct rpcrdma_engine *engine;
	struct list free; /* recycled units */
};

/* Part of a request. Owned by the reactor. */
struct place {
	enum place_kind kind;
	enum place_phase phase;
	const struct place_plan *plan;
	struct place_pool *pool;
	struct rpcrdma_req *rpc;
	struct latency *latency;
	void (*wake)(struct place *pl); /* something has ended: call place_run() */
	struct split split;	 /* the part that has not begun */
	uint32_t total;
	bool overlap;	 /* units move independently; otherwise there is one unit for all */
	bool in_order;	 /* READ: units are put in file order */
	uint32_t turn;	 /* in_order: offset of the next unit to be put */
	uint32_t good;	 /* length of the prefix of the payload that was moved correctly; STORE: result of the operation */
	int err;	 /* why it ends there */
	bool short_read; /* the file ended before the payload did */
	bool theirs;	 /* WRITE: the data is still in the client's memory */
	bool lost;	 /* WRITE: the connection failed before all data was pulled */
	bool sync_failed;
	bool by_unit;	  /* no memory for the whole: each unit has its own buffer */
	bool starved;	  /* a unit waits for a buffer: the next one begins when it has got it */
	unsigned out;	  /* units in flight */
	unsigned busy;	  /* of them, those with an operation in flight: WAIT_BUF, PULLING, AT_DISK */
	unsigned putting; /* units that the transport holds; place_run() does not wait for them */
	size_t shift;	  /* offset of the payload's first byte in a buffer, for the store's alignment */
	struct rpcrdma_buf *buf; /* for the whole payload */
	struct list units;	 /* all that are not free, `first` included */
	struct list ready;	 /* those that can continue */
	struct io_unit first; /* the unit of byte 0; reused for others when that has ended */
	struct iovec iov[PLACE_IOV_MAX];
};

/** place_init - initializes @pl without a payload
 * @pool: of the reactor
 * @rpc: the request; must exist until place_settle() returns true
 * @latency: of the request
 * @wake: called when an operation has ended, never inside a function of this file
 */
void place_init(struct place *pl, struct place_pool *pool, struct rpcrdma_req *rpc, struct latency *latency,
		void (*wake)(struct place *pl));

/** place_pull - begins to pull the payload of the arguments; place_run() continues
 * @kind: PLACE_WRITE: place_move() or place_discard() follows; PLACE_PULL: it is needed as a whole
 * @plan: must exist until place_fini()
 */
void place_pull(struct place *pl, enum place_kind kind, const struct place_plan *plan);

/** place_move - begins to move data between store and client; place_run() continues
 * @kind: PLACE_READ, PLACE_STORE, or PLACE_WRITE after place_pull()
 * @plan: complete; must exist until place_fini()
 */
void place_move(struct place *pl, enum place_kind kind, const struct place_plan *plan);

/** place_run - runs the units until they have to wait
 *
 * Return: true: no unit is in flight, and none is left to begin.
 */
bool place_run(struct place *pl);

/** place_pulled - PLACE_WRITE, not moving: has enough arrived to identify the request for the duplicate check?
 *
 * That is the whole payload, or the first unit if transfer and disk overlap.
 */
bool place_pulled(const struct place *pl);

/** place_rejected - has the client provided too little room for the results? Nothing was placed. */
static inline bool place_rejected(const struct place *pl)
{
	return pl->kind == PLACE_READ && pl->err == -EMSGSIZE;
}

/** place_discard - PLACE_WRITE, not moving: discards the payload, because the original request writes it
 *
 * The units go on until they hold nothing that other requests may wait for. A payload with one buffer for the whole
 * waits for nothing, and keeps it. May be called again.
 *
 * Return: true: the payload is discarded, and place_move() is no longer possible.
 */
bool place_discard(struct place *pl);

/** place_settle - ends the payload: no further unit begins
 *
 * If a unit waits for a buffer, units of a WRITE that will not be executed release theirs: it may wait for those.
 *
 * Return: false: an operation is in flight; place->wake runs when it has ended.
 */
bool place_settle(struct place *pl);

/** place_data - PLACE_PULL: returns the bytes */
const void *place_data(const struct place *pl);

/** place_head - PLACE_WRITE, not moving: copies the first bytes of the data; they are in one unit
 *
 * Memory that the client has unmapped meanwhile reads as zeroes.
 */
void place_head(const struct place *pl, void *to, uint32_t bytes);

/** place_fini - releases the buffers after the reply has been sent */
void place_fini(struct place *pl);

/** place_pool_fini - frees the recycled units of a reactor */
void place_pool_fini(struct place_pool *pool);

#endif
