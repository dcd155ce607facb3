/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_lanes.h - the connections by which calls come, so that nothing late is executed
 *
 * A lane is a slot of a client's process (instance). Its calls come by one connection at a time, the newest incarnation.
 * When a newer one comes, the older connection is closed, and calls of the newer one wait until the changes that had begun
 * on the older ones have ended. Calls of an older one are refused.
 *
 * A lane is remembered while it has a connection or a change in progress; of those that have neither the newest ones are
 * remembered, with a share for each client.
 *
 * Threads: any. The lock inside may be taken under the lock of a struct stripe_vol, not the other way round.
 */
#ifndef LEAT_SERVER_STRIPE_LANES_H
#define LEAT_SERVER_STRIPE_LANES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/siphash.h"
#include "base/util.h"
#include "lane.h"
#include "req.h"
#include "stripes.h"

#define STRIPE_LANES_MAX 16384u	   /* remembered, of all clients */
#define STRIPE_LANES_CLIENT 1024u  /* of one client */
#define STRIPE_LANES_BUCKETS 256u
#define STRIPE_LANES_SLOTS 1024u   /* slots of an instance */

/* A client's connection. */
struct stripe_conn;

struct stripe_lane_state;

/* Of a server. */
struct stripe_lanes {
	pthread_mutex_t lock;
	struct siphash_key key; /* instances and slots are a client's choice */
	struct hash table;
	struct {
		unsigned n;	  /* lanes */
		struct list idle; /* without connection and changes: the one that became so longest ago first */
	} buckets[STRIPE_LANES_BUCKETS]; /* by client; a few clients may share one */
};

/* A change that has begun. */
struct stripe_pass {
	struct stripe_lane_state *lane; /* NULL: none */
	uint32_t incarnation;
};

/** stripe_lanes_init - Return: 0, -ENOMEM, -EIO (no random numbers) */
int must_check stripe_lanes_init(struct stripe_lanes *l);

/** stripe_lanes_fini - all connections and changes have ended; a zeroed @l is fine */
void stripe_lanes_fini(struct stripe_lanes *l);

/** stripe_conn_new - a connection without lanes; NULL: no memory */
struct stripe_conn *stripe_conn_new(const struct stripe_lanes *l, struct conn *conn);

/** stripe_conn_end - the connection has ended; frees it. NULL is fine. */
void stripe_conn_end(struct stripe_lanes *l, struct stripe_conn *c);

/** stripe_lane_enter - may a call by @conn begin?
 * @changes: it is a change: it counts until stripe_lane_leave()
 * @w: is queued, if it has to wait
 *
 * Return: 0, and @ret is set; -EINPROGRESS: @w is queued; -ECONNABORTED: a newer incarnation exists; -EINVAL: slot or
 * incarnation; -EAGAIN: too many lanes.
 */
int must_check stripe_lane_enter(struct stripe_lanes *l, const stripe_lane *lane, struct stripe_conn *conn, bool changes,
				 struct req_waiter *w, struct stripe_pass *ret);

/** stripe_lane_leave - a change has ended; @pass is cleared. Without one nothing happens. */
void stripe_lane_leave(struct stripe_lanes *l, struct stripe_pass *pass);

#endif
