/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * latency.h - breakdown of the time of requests
 */
#ifndef LEAT_SERVER_WHERE_H
#define LEAT_SERVER_WHERE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hist.h"
#include "base/util.h"
#include "rpcrdma.h"

struct req;

/* What a request that moves data is doing: exactly one of these at any time. */
enum where_part {
	WHERE_WAITING, /* for admission, a worker, memory or its turn */
	WHERE_DISK,    /* for the disk only */
	WHERE_NET,     /* for the network only */
	WHERE_BOTH,    /* disk and network work in parallel */
	WHERE_FINISH,  /* its reply is being sent, inline data included */
	WHERE_PARTS,
};

enum where_kind { WHERE_READ, WHERE_WRITE, WHERE_OTHER, WHERE_KINDS };

#define WHERE_STATES 6	      /* states of req.c except FREE */
#define WHERE_ONE_IN 16u      /* on average, one in this many requests of one piece is sampled */
#define WHERE_PIECES_MAX 1024 /* of a trace */

/** where_part_name - returns the name to print */
const char *where_part_name(enum where_part part);

/* Of one reactor. Only its thread writes; any thread may read. */
struct where_stats {
	struct {
		_Atomic uint64_t requests; /* that were sampled */
		_Atomic uint64_t bytes;
		_Atomic uint64_t ns[WHERE_PARTS];
	} kinds[WHERE_KINDS];
	_Atomic uint64_t states[WHERE_STATES][HIST_BUCKETS]; /* time spent in each state */
};

/* Begin and end of the operations of a piece, in ns since its request arrived. 0: has not happened. */
struct where_piece {
	uint32_t off, len;
	uint32_t disk_begin, disk_end, net_begin, net_end;
};

/* Source of a request for a trace. */
enum where_asker { WHERE_ASKER_ADMIN, WHERE_ASKER_CLIENT, WHERE_ASKERS };

/* The pieces of one request. */
struct where_trace {
	uint32_t xid;
	bool is_write;
	uint32_t bytes, total_ns;
	uint32_t n;
	enum where_asker asker;
	struct where_piece pieces[WHERE_PIECES_MAX];
};

/* The last trace for each kind of asker, and whether another one is wanted; shared by the reactors of a server.
 * A client sees traces of its own requests only, and cannot take a trace that an administrator asked for. */
struct where_tracer {
	pthread_mutex_t lock; /* over the slots, except wanted */
	struct {
		atomic_bool wanted;
		struct rpcrdma_client_id client; /* its requests are wanted; for WHERE_ASKER_CLIENT */
		struct rpcrdma_client_id of;	 /* the client that sent the request of @last */
		struct where_trace *last;
	} slots[WHERE_ASKERS];
};

/** where_tracer_init - starts without traces, and with none wanted */
void where_tracer_init(struct where_tracer *t);

/** where_tracer_fini - frees the traces that were not taken; no thread uses @t */
void where_tracer_fini(struct where_tracer *t);

/** where_tracer_take - takes the last trace that the asker may see, and requests another one
 * @client: only its requests are traced; NULL for an administrator: those of all clients
 *
 * Return: the trace, which the caller frees; NULL: no new trace since the last call.
 */
struct where_trace *where_tracer_take(struct where_tracer *t, const struct rpcrdma_client_id *client);

/* Part of a request. Owned by the reactor. */
struct where {
	bool on;
	uint64_t came_ns, last_ns, state_ns;
	unsigned disk, net; /* operations in progress */
	uint64_t ns[WHERE_PARTS];
	struct where_trace *trace;
};

/** where_begin - starts the timing of a new request, if it is sampled (one in WHERE_ONE_IN on average) */
void where_begin(struct req *r);

/** where_pieces - @r is processed in pieces: starts its timing in any case */
void where_pieces(struct req *r);

/** where_state - accounts the time in the current state, which @r is about to leave */
void where_state(struct req *r);

/** where_disk, where_net - an operation begins (@by = 1) or ends (@by = -1)
 * @off: offset of its piece, as given to where_piece_begin()
 */
void where_disk(struct req *r, int by, uint32_t off);
void where_net(struct req *r, int by, uint32_t off);

/** where_now - returns the time; reuses the time that where_disk() or where_net() has just read */
uint64_t where_now(const struct req *r);

/** where_piece_begin - adds a piece to the trace */
void where_piece_begin(struct req *r, uint32_t off, uint32_t len);

/** where_end - the request has ended: adds its times to the statistics and publishes its trace */
void where_end(struct req *r);

#endif
