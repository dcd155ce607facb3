/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leat_admin.h - state and administration of a leatd: counters, latency breakdown, reload, drain
 *
 *     leat_set(opts, "connect_only", "yes");
 *     if (leat_mount("local:///run/leat/leatd.sock", opts, &m) < 0) ...
 *     if (leat_server_reload(m, said, sizeof(said)) < 0) ...
 *
 * Operation: Each function makes one call and waits for the reply. leat.h describes mounts.
 * Growth:    Structures that the library allocates, and those that begin with their size, get members at the end in
 *            later releases. So lists are lists of pointers. A program does not copy elements or compute their size.
 * Threads:   As functions of leat.h. Functions of the program run before the library function returns.
 * Errors:    -EOPNOTSUPP: the server is no leatd, or an older one. -EDEADLK: inside a callback. -ENOMEM. Those of the
 *            connection. leat_error() has details.
 */
#ifndef LEAT_ADMIN_H
#define LEAT_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- counters and listeners ---------------------------------------------------------------- */

/* Sums of a whole leatd since its start */
struct leat_server_stats {
	size_t size;               /* set by the caller: sizeof(struct leat_server_stats) */
	uint64_t cpu_us;           /* user and system time of the whole process */
	uint64_t bytes_in, bytes_out, bytes_copied, bytes_placed, bytes_pulled, bytes_direct;
	uint64_t calls, conns;
	uint64_t instance[2];      /* random; if it differs, the server was restarted and its counters began at zero */
};

/** leat_server_stats - gets the counters that most programs need
 * @ret: size is set; as for leat_info() the program gets the members that it knows
 *
 * Return: 0; -EINVAL: impossible size.
 */
int leat_server_stats(struct leat *m, struct leat_server_stats *ret);

/** leat_server_counters - calls @fn for each counter of a leatd */
int leat_server_counters(struct leat *m,
			 void (*fn)(void *ctx, const char *name, uint64_t value), void *ctx);

/** leat_server_listeners - calls @fn for each URL on which a leatd listens */
int leat_server_listeners(struct leat *m, void (*fn)(void *ctx, const char *url), void *ctx);

/* ---- latency breakdown of a leatd ---------------------------------------------------------- */

/* The state of a request; it is in exactly one at any time. Over TCP and inline, payload is part of the message and
 * its transfer counts as FINISH. If the server reads a file directly into this process's memory, the transfer counts
 * as DISK. */
enum leat_where_part {
	LEAT_WHERE_WAITING, /* waits for its turn, memory, a thread */
	LEAT_WHERE_DISK,    /* waits for the disk only */
	LEAT_WHERE_NET,     /* waits for the network only */
	LEAT_WHERE_BOTH,    /* disk and network both work for it */
	LEAT_WHERE_FINISH,  /* its reply is being sent */
	LEAT_WHERE_PARTS
};

struct leat_where_kind {
	uint64_t requests, bytes;
	uint64_t ns[LEAT_WHERE_PARTS]; /* the last member: later releases may add parts */
};

/* Does not grow: it is an element of an array. */
struct leat_where_bucket {
	uint64_t ns;               /* lower bound of the bucket; the upper bound is less than 1/32 higher */
	uint64_t count;            /* number of requests */
};

/* Durations of a state, over requests of any kind */
struct leat_where_state {
	const char *name;
	size_t nbuckets;
	const struct leat_where_bucket *buckets; /* only non-empty ones, in ascending order */
};

/* Sums since the start of the server, over the requests that it timed: all requests that were moved in pieces, with
 * disk and network in parallel, and one in 16 of the others. */
struct leat_where {
	uint64_t instance[2];      /* as in struct leat_server_stats */
	const struct leat_where_kind *read, *write, *other;
	size_t nstates;
	const struct leat_where_state *const *states;
};

/** leat_server_where - gets these sums from a leatd
 * @ret: the caller frees it with leat_where_free()
 *
 * Return: as leat_server_stats(); -EPROTO: invalid reply.
 */
int leat_server_where(struct leat *m, struct leat_where **ret);
void leat_where_free(struct leat_where *w); /* NULL is fine */

/* Times of a piece */
struct leat_trace_piece {
	uint32_t off, len;         /* within the payload */
	uint64_t disk_begin_ns, disk_end_ns, net_begin_ns, net_end_ns;
};

/* One request that was moved in pieces. Times are relative to its arrival; 0: the event did not occur. */
struct leat_trace {
	uint32_t xid;
	bool is_write;
	uint32_t bytes;
	uint64_t total_ns;         /* until its reply was sent */
	size_t npieces;            /* in the order in which they began; at most 1024 */
	const struct leat_trace_piece **pieces; /* the program may change their order */
};

/** leat_server_pieces - takes the last trace of a leatd, and makes it trace the next request that is moved in pieces
 * @ret: the caller frees it with leat_trace_free()
 *
 * Return: as leat_server_stats(); -EAGAIN: there was no such request since the last call of this function.
 */
int leat_server_pieces(struct leat *m, struct leat_trace **ret);
void leat_trace_free(struct leat_trace *t); /* NULL is fine */

/* ---- commands to a leatd -------------------------------------------------------------------- */

/* Only for root and the user of the leatd itself, and only over local: -EPERM for others. A leatd inside a program
 * may not support them: -EOPNOTSUPP. */

/** leat_server_reload - makes a leatd read its configuration again
 * @said: receives its message, in @cap bytes
 *
 * Return: 0: the new exports are in force; -EINVAL: the configuration is invalid (leat_error() has the reason) and
 * nothing has changed.
 */
int leat_server_reload(struct leat *m, char *said, size_t cap);

/** leat_server_drain - makes a leatd shut down: it accepts no new work and replies to pending requests
 *
 * Return: 0 when the shutdown has begun.
 */
int leat_server_drain(struct leat *m);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
