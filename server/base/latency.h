/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * latency.h - breakdown of the time of requests
 */
#ifndef LEAT_SERVER_LATENCY_H
#define LEAT_SERVER_LATENCY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hist.h"
#include "base/util.h"
#include "rpcrdma.h"

/* What a request that moves data is doing: exactly one of these at any time. */
enum latency_part {
	LATENCY_WAITING, /* for admission, a worker, memory or its turn */
	LATENCY_DISK,    /* for the disk only */
	LATENCY_NET,     /* for the network only */
	LATENCY_BOTH,    /* disk and network work in parallel */
	LATENCY_FINISH,  /* its reply is being sent, inline data included */
	LATENCY_PARTS,
};

enum latency_kind { LATENCY_READ, LATENCY_WRITE, LATENCY_OTHER, LATENCY_KINDS };

#define LATENCY_STATES 8	/* of a request, the last one excepted */
#define LATENCY_ONE_IN 16u      /* on average, one in this many requests of one unit is sampled */
#define LATENCY_UNITS_MAX 1024 /* of a trace */

/** latency_part_name - returns the name to print */
const char *latency_part_name(enum latency_part part);

/* Of one reactor. Only its thread writes; any thread may read. */
struct latency_stats {
	struct {
		_Atomic uint64_t requests; /* that were sampled */
		_Atomic uint64_t bytes;
		_Atomic uint64_t ns[LATENCY_PARTS];
	} kinds[LATENCY_KINDS];
	_Atomic uint64_t states[LATENCY_STATES][HIST_BUCKETS]; /* time spent in each state */
};

/* Begin and end of the operations of a unit, in ns since its request arrived. 0: has not happened. */
struct latency_unit {
	uint32_t off, len;
	uint32_t disk_begin, disk_end, net_begin, net_end;
};

/* Source of a request for a trace. */
enum latency_asker { LATENCY_ASKER_ADMIN, LATENCY_ASKER_CLIENT, LATENCY_ASKERS };

/* The units of one request. */
struct latency_trace {
	uint32_t xid;
	bool is_write;
	uint32_t bytes, total_ns;
	uint32_t n;
	enum latency_asker asker;
	struct latency_unit units[LATENCY_UNITS_MAX];
};

/* The last trace for each kind of asker, and whether another one is wanted; shared by the reactors of a server.
 * A client sees traces of its own requests only, and cannot take a trace that an administrator asked for. */
struct latency_tracer {
	pthread_mutex_t lock; /* over the slots, except wanted */
	struct {
		atomic_bool wanted;
		struct rpcrdma_client_id client; /* its requests are wanted; for LATENCY_ASKER_CLIENT */
		struct rpcrdma_client_id of;	 /* the client that sent the request of @last */
		struct latency_trace *last;
	} slots[LATENCY_ASKERS];
};

/** latency_tracer_init - starts without traces, and with none wanted */
void latency_tracer_init(struct latency_tracer *t);

/** latency_tracer_fini - frees the traces that were not taken; no thread uses @t */
void latency_tracer_fini(struct latency_tracer *t);

/** latency_tracer_take - takes the last trace that the asker may see, and requests another one
 * @client: only its requests are traced; NULL for an administrator: those of all clients
 *
 * Return: the trace, which the caller frees; NULL: no new trace since the last call.
 */
struct latency_trace *latency_tracer_take(struct latency_tracer *t, const struct rpcrdma_client_id *client);

/* Of one reactor. Only its thread uses it; any thread may read @stats. */
struct latency_reactor {
	struct latency_stats stats;
	struct latency_tracer *tracer;
	unsigned turn; /* requests until the next sample */
	uint64_t seed; /* state of the random numbers for @turn */
};

/* Part of a request. Owned by the reactor. */
struct latency {
	struct latency_reactor *reactor;
	const struct rpcrdma_peer *peer; /* its client */
	bool on;
	bool sending; /* its reply is being sent */
	uint64_t came_ns, last_ns, state_ns;
	unsigned disk, net; /* operations in progress */
	uint64_t ns[LATENCY_PARTS];
	struct latency_trace *trace;
};

/** latency_begin - starts the timing of a new request, if it is sampled (one in LATENCY_ONE_IN on average)
 * @peer: its client; must exist until latency_end()
 */
void latency_begin(struct latency *l, struct latency_reactor *re, const struct rpcrdma_peer *peer);

/** latency_units - the request is processed in units: starts its timing in any case
 * @bytes: of its payload
 */
void latency_units(struct latency *l, uint32_t xid, bool is_write, uint32_t bytes);

/** latency_state - accounts the time in a state, which the request is about to leave
 * @state: below LATENCY_STATES
 * @sends: in the next one its reply is sent
 */
void latency_state(struct latency *l, unsigned state, bool sends);

/** latency_disk, latency_net - an operation begins (@by = 1) or ends (@by = -1)
 * @off: offset of its unit, as given to latency_unit_begin()
 */
void latency_disk(struct latency *l, int by, uint32_t off);
void latency_net(struct latency *l, int by, uint32_t off);

/** latency_now - returns the time; reuses the time that latency_disk() or latency_net() has just read */
uint64_t latency_now(const struct latency *l);

/** latency_unit_begin - adds a unit to the trace */
void latency_unit_begin(struct latency *l, uint32_t off, uint32_t len);

/** latency_end - the request has ended: adds its times to the statistics and publishes its trace
 * @bytes: of payload that it has moved; those of LATENCY_OTHER do not count
 */
void latency_end(struct latency *l, enum latency_kind kind, uint32_t bytes);

#endif
