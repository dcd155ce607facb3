/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_srv.h - a responder's connection with a mode: mode.h
 *
 *   mode_srv.c  negotiation, timeouts, end    mode_offer.c  read-read    mode_fast.c  fast-write
 *   mode_grant.c  hybrid    mode_window.c  keys of the memory that fast-write and hybrid write to
 *
 * srv_mode_ops.h is the interface; rr_mode_responder (mode.h) and its table of functions are in mode_srv.c.
 */
#ifndef RR_MODE_SRV_H
#define RR_MODE_SRV_H

#include "mode.h"
#include "mode_area.h"
#include "window.h"
#include "srv_rdma.h"

struct rr_plan_reply;

/* Key that the peer gets to write by. */
struct rr_mode_key {
	uint32_t key;
	struct rr_window *window;      /* window of the key; NULL: the area's registration */
};

struct rr_mode {
	struct rr_srv_mode head;   /* its pd is its own: keys of other connections are invalid in it */
	struct rr_rconn *conn;
	unsigned modes;
	size_t bytes;                  /* memory charged to its client */
	struct rr_area zones[RR_ZONE_FAR]; /* instead of the pool's, messages included ... */
	struct rr_own_zone *own[RR_ZONE_FAR];   /* ... as its connection sees them */
	struct rpcrdma_timer timer;    /* deadline of the oldest outstanding offer or grant */

	/* read-read: rr_mode_req.link, oldest first: RDMA_DONE is outstanding */
	struct list offers;

	struct rr_windows *windows;    /* NULL: keys are those of registrations */
	bool started;                  /* ... and the first one is bound, or its bind is posted */

	/* fast-write */
	struct rr_area inbox;          /* slots that the peer writes to */
	struct rr_mode_key inbox_key;
	struct rr_post inbox_bind;
	uint32_t slot_bytes;
	unsigned nslots;
	uint64_t slots_busy;

	/* hybrid */
	struct rr_area room;           /* the peer writes to announced buffers in it */
	struct list grants;            /* rr_grant: requested, or announced and not used yet */
	struct list revoked;           /* rr_grant: not used in time, oldest revocation first */
	struct list free_grants;
	unsigned ngrants, nrevoked;    /* neither over nor revoked, including those of calls; revoked */

	/* for the current message: where its payload is already */
	enum { RR_ARRIVED_PLAIN, RR_ARRIVED_SLOT, RR_ARRIVED_GRANT } arrived;
	unsigned arrived_slot;
	uint32_t arrived_bytes;        /* payload bytes in the slot */
};

struct rr_grant;

/** rr_mode_of - returns the mode of a connection that has one */
static inline struct rr_mode *rr_mode_of(const struct rr_rconn *c)
{
	return container_of(c->mode, struct rr_mode, head);
}

/* mode_srv.c */

/** rr_mode_area - as rr_area_init(), charged to the budget of all connections with a mode, which is as large
 * as the pool's limit
 * Return: as rr_area_init(); -ENOMEM also if the budget is used up */
must_check int rr_mode_area(struct rr_mode *m, struct rr_area *a, size_t bytes, size_t buf_max,
			    unsigned access);

/** rr_mode_is_owed - starts the timer for an offer or grant: the peer must react within stall_ms */
void rr_mode_is_owed(struct rr_mode *m);

/* mode_offer.c */

/** rr_mode_reply - rr_srv_mode_ops.reply: sends the payload of a reply as an offer, if that is the form for it */
must_check int rr_mode_reply(struct rr_rreq *rr, const struct rr_plan_reply *plan,
			      const struct rr_stream *s, uint8_t *msg, size_t len);

/** rr_mode_offer_done - handles RDMA_DONE; Return: false if there is no offer for @xid */
bool rr_mode_offer_done(struct rr_mode *m, uint32_t xid);

/** rr_mode_offers_end - ends all offers: the peer can no longer read them */
void rr_mode_offers_end(struct rr_mode *m);

/* mode_fast.c */
/** rr_mode_fast_init - creates the requested number of slots, within limits
 *
 * Return: 0, -EINVAL (none requested), -ENOMEM, errors of the device.
 */
must_check int rr_mode_fast_init(struct rr_mode *m, const struct rr_suffix *want,
				 struct rr_suffix *give);

/** rr_mode_fast_recv - handles an RDMA Write with immediate: its head becomes the message
 *
 * Return: false: it is invalid.
 */
bool rr_mode_fast_recv(struct rr_mode *m, struct rr_recv_ctx *rc, const struct rr_wc *wc);

/** rr_mode_fast_claim - checks that the call's Read chunk is the payload in the slot */
bool rr_mode_fast_claim(struct rr_mode *m, struct rr_rreq *rr, const struct rr_segment *seg);

/** rr_mode_fast_release - makes the slot that contains @payload available again */
void rr_mode_fast_release(struct rr_mode *m, const uint8_t *payload);

/* mode_grant.c */
/** rr_mode_grant_init - creates the area of the buffers; Return: 0, -ENOMEM, errors of the device */
must_check int rr_mode_grant_init(struct rr_mode *m, struct rr_suffix *give);

/** rr_mode_grant_want - handles RR_WANT; Return: false if it is not allowed */
bool rr_mode_grant_want(struct rr_mode *m, uint32_t xid, uint32_t bytes);

/** rr_mode_grant_claim - checks that the call's Read chunk is within its grant */
bool rr_mode_grant_claim(struct rr_mode *m, struct rr_rreq *rr, const struct rr_segment *seg);

/** rr_mode_grant_done - handles RDMA_DONE; Return: false if no grant was announced for @xid */
bool rr_mode_grant_done(struct rr_mode *m, uint32_t xid);

/** rr_mode_grant_over - ends a grant: its call is over, its buffer is free, or it had none
 * Its message may still be in flight; the peer need not know. */
void rr_mode_grant_over(struct rr_grant *g);

/** rr_mode_grant_oldest - returns the time when the oldest unused grant was announced; 0: no grant is unused
 *
 * It is the first in the list: memory and send buffers are assigned in the order of the requests. */
uint64_t rr_mode_grant_oldest(const struct rr_mode *m);

/** rr_mode_grants_expire - revokes grants that were announced @stall_ns before @now_ns and are unused
 * Return: false if a grant has expired and cannot be revoked */
must_check bool rr_mode_grants_expire(struct rr_mode *m, uint64_t now_ns, uint64_t stall_ns);
void rr_mode_grants_end(struct rr_mode *m);
void rr_mode_grant_fini(struct rr_mode *m);

/* mode_window.c */

/** rr_mode_windows_init - creates windows, if the modes need and the device permits them; Return: 0, -ENOMEM */
must_check int rr_mode_windows_init(struct rr_mode *m, struct rr_dev *dev);
void rr_mode_windows_fini(struct rr_mode *m);

/** rr_mode_write_access - returns the access of a registration that the peer writes to */
static inline unsigned rr_mode_write_access(const struct rr_mode *m)
{
	return m->windows ? RR_ACCESS_MW_BIND : RR_ACCESS_REMOTE_WRITE;
}

/** rr_mode_key_get - gets a key for writes to [addr, addr+len) of @area
 * Return: 0; -ENOMEM, errors of the device: no window is available */
must_check int rr_mode_key_get(struct rr_mode *m, const struct rr_area *area, void *addr, size_t len,
			       struct rr_mode_key *ret);

/** rr_mode_key_post - posts @post, which tells the peer @k; a bind of the key precedes it
 * @alone: for a separate bind; lives as long as @post */
void rr_mode_key_post(struct rr_mode *m, const struct rr_mode_key *k, struct rr_post *alone,
		      struct rr_post *post);

/** rr_mode_windows_start - on the peer's first message, before any post: binds the announced window of the slots */
void rr_mode_windows_start(struct rr_mode *m);

/** rr_mode_key_invalidate - invalidates a key, once; @closing counts up, and down when the key is invalid
 * Does nothing without a window, or on a dead connection. */
void rr_mode_key_invalidate(struct rr_mode *m, const struct rr_mode_key *k,
			    struct rr_closing *closing);

/** rr_mode_key_put - returns the window; afterwards nothing is accessed through it */
void rr_mode_key_put(struct rr_mode *m, struct rr_mode_key *k);

#endif
