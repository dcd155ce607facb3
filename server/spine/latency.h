/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * latency.h - where the time of requests goes
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

/* What a request that moves data is doing, at each moment one of these. */
enum where_part {
	WHERE_WAITING, /* for admission, a worker, memory, its turn */
	WHERE_DISK,    /* for the disk only */
	WHERE_NET,     /* for the network only */
	WHERE_BOTH,    /* disk and network are at work side by side */
	WHERE_FINISH,  /* its answer is on the way; what travels inside it, too */
	WHERE_PARTS,
};

enum where_kind { WHERE_READ, WHERE_WRITE, WHERE_OTHER, WHERE_KINDS };

#define WHERE_STATES 6	      /* of req.c, but FREE */
#define WHERE_ONE_IN 16u      /* requests of one piece whose times are taken, on average */
#define WHERE_PIECES_MAX 1024 /* of a trace */

/** where_part_name - for people */
const char *where_part_name(enum where_part part);

/* One reactor's; it alone writes, anyone may read. */
struct where_stats {
	struct {
		_Atomic uint64_t requests; /* of those whose times were taken */
		_Atomic uint64_t bytes;
		_Atomic uint64_t ns[WHERE_PARTS];
	} kinds[WHERE_KINDS];
	_Atomic uint64_t states[WHERE_STATES][HIST_BUCKETS]; /* how long they stayed in each */
};

/* When a piece began and ended what, in ns since its request came. 0: it did not. */
struct where_piece {
	uint32_t off, len;
	uint32_t disk_begin, disk_end, net_begin, net_end;
};

/* Who asks for a trace. */
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

/* The last trace for each kind of asker, and whether another one is wanted; shared by the reactors of a
 * server. A client asks for requests of its own only, and cannot take what an administrator asked for. */
struct where_tracer {
	pthread_mutex_t lock; /* over the slots, but for wanted */
	struct {
		atomic_bool wanted;
		struct rpcrdma_client_id client; /* whose request is wanted; ASKER_CLIENT */
		struct rpcrdma_client_id of;	 /* whose request @last is */
		struct where_trace *last;
	} slots[WHERE_ASKERS];
};

void where_tracer_init(struct where_tracer *t);
void where_tracer_fini(struct where_tracer *t);

/** where_tracer_take - takes the last trace that the asker may see, and asks for another one
 * @client: whose requests may be seen; NULL for an administrator, who may see all
 *
 * Return: the trace, the caller's to free; NULL: none has come since the last was taken.
 */
struct where_trace *where_tracer_take(struct where_tracer *t, const struct rpcrdma_client_id *client);

/* Part of a request. Owned by the reactor. */
struct where {
	bool on;
	uint64_t came_ns, last_ns, state_ns;
	unsigned disk, net; /* operations out */
	uint64_t ns[WHERE_PARTS];
	struct where_trace *trace;
};

/** where_begin - a request has come; one in so many is looked at */
void where_begin(struct req *r);

/** where_pieces - it goes in pieces: it is looked at whatever it is */
void where_pieces(struct req *r);

/** where_state - it leaves the state in which it is */
void where_state(struct req *r);

/** where_disk, where_net - an operation begins (+1) or ends (-1)
 * @off: of its piece, which where_piece_begin() was told of
 */
void where_disk(struct req *r, int by, uint32_t off);
void where_net(struct req *r, int by, uint32_t off);

/** where_now - the time; if that was taken just now, by one of the two above, not again */
uint64_t where_now(const struct req *r);

/** where_piece_begin - a piece there is, for the trace */
void where_piece_begin(struct req *r, uint32_t off, uint32_t len);

/** where_end - it is over */
void where_end(struct req *r);

#endif
