/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_srv.h - a responder's connection that has a mode: mode.h
 *
 *   mode_srv.c  agreed, watched, ended    mode_offer.c  read-read    mode_fast.c  fast-write
 *   mode_grant.c  hybrid    mode_window.c  keys of what the last two are written to
 *
 * A connection without one has c->mode == NULL, and none of this runs.
 */
#ifndef RR_MODE_SRV_H
#define RR_MODE_SRV_H

#include "mode.h"
#include "area.h"
#include "reg_window.h"
#include "srv_rdma.h"

/* Requests for a call beside its answer's: RR_GRANT and its bind, the invalidation. */
#define RR_MODE_SQ_MORE 3u

struct rr_plan_reply;

/* What a peer is told that it may write by. */
struct rr_mode_key {
	uint32_t key;
	struct rr_window *window;      /* whose it is; NULL: of the area's registration */
};

struct rr_mode {
	struct rr_rconn *conn;
	unsigned modes;
	struct rr_pd *pd;              /* its own: no other connection's key is good in it */
	size_t bytes;                  /* of memory, charged to its client */
	struct rr_area zones[RR_ZONE_FAR]; /* in place of the pool's, messages included */
	struct rpcrdma_timer timer;    /* for the oldest of what the peer owes */

	/* read-read: rr_mode_req.link, oldest first: their RDMA_DONE has not come */
	struct list offers;

	struct rr_windows *windows;    /* NULL: keys are those of registrations */
	bool started;                  /* ... and the first is bound, or on its way */

	/* fast-write */
	struct rr_area inbox;          /* slots, which the peer writes to, by ... */
	struct rr_mode_key inbox_key;
	struct rr_post inbox_bind;
	uint32_t slot_bytes;
	unsigned nslots;
	uint64_t slots_busy;

	/* hybrid */
	struct rr_area room;           /* which the peer writes to where it was given some */
	struct list grants;            /* rr_grant: asked for, or given and not used yet */
	struct list revoked;           /* ... not used in time, the longest ago first */
	struct list free_grants;
	unsigned ngrants, nrevoked;    /* not over, of which calls have some; revoked */

	/* of the message that is being looked at: its payload is here already */
	enum { RR_HEARD_PLAIN, RR_HEARD_SLOT, RR_HEARD_GRANT } heard;
	unsigned heard_slot;
	uint32_t heard_bytes;          /* payload that came to the slot */
};

/* mode_srv.c */

/** rr_mode_create - what a peer asks for, as far as it is offered and there is memory
 * @recvs: that it will have at most
 * @want: its suffix
 * @give: ours, in answer
 *
 * Return: 0, also if nothing is given (c->mode is NULL then); -errno: the peer cannot be served */
must_check int rr_mode_create(struct rr_rconn *c, struct rr_dev *dev, unsigned recvs,
			      const struct rr_suffix *want, struct rr_suffix *give);

/** rr_mode_disarm - before the queue pair goes: what is bound to it goes first */
void rr_mode_disarm(struct rr_rconn *c);

/** rr_mode_destroy - the queue pair is gone, or was never set up */
void rr_mode_destroy(struct rr_rconn *c);

/** rr_mode_hear - a message, before anything else looks at it; @rc holds what is to be parsed
 * Return: was that all? (@rc is given back then) */
bool rr_mode_hear(struct rr_rconn *c, struct rr_recv_ctx *rc, const struct rr_wc *wc);

/** rr_mode_claim - @rr was made of that message: take what it says is here
 * Return: false: it is not what was given to this peer */
must_check bool rr_mode_claim(struct rr_rreq *rr);

/** rr_mode_area - rr_area_init(), of what all connections with a mode may have together: once more what the
 * pool may
 * Return: likewise; -ENOMEM also when they have it all */
must_check int rr_mode_area(struct rr_mode *m, struct rr_area *a, size_t bytes, size_t buf_max,
			    unsigned access);

/** rr_mode_release - @rr is at its end: what it took is free */
void rr_mode_release(struct rr_rreq *rr);

/** rr_mode_room - payload of results that needs no Write chunk of the peer's */
static inline uint64_t rr_mode_room(const struct rr_mode *m)
{
	return m->modes & RPCRDMA_READ_READ ? m->zones[RR_ZONE_DATA].buf_max : 0;
}

/** rr_mode_dead - nothing more will come from the peer: what it owes is written off */
void rr_mode_dead(struct rr_rconn *c);

/** rr_mode_is_owed - the peer has been given something: it has until stall_ms from now */
void rr_mode_is_owed(struct rr_mode *m);

/** rr_mode_cut - the peer broke a rule */
void rr_mode_cut(struct rr_mode *m);

/* mode_offer.c */

/** rr_mode_answer - send the reply with its payload on offer, where that is how it has to go
 * @msg, @len: head of the reply; in rr->sc, behind room for its header without a Read list, or in
 * rr->reply_buf if that is there
 *
 * Return: 0: sent; 1: it goes another way; -ENOBUFS: wait for memory of the zone of answers */
must_check int rr_mode_answer(struct rr_rreq *rr, const struct rr_plan_reply *plan,
			      const struct rr_stream *s, uint8_t *msg, size_t len);
bool rr_mode_offer_done(struct rr_mode *m, uint32_t xid);
void rr_mode_offers_end(struct rr_mode *m);

/* mode_fast.c */
must_check int rr_mode_fast_init(struct rr_mode *m, const struct rr_suffix *want,
				 struct rr_suffix *give);
bool rr_mode_fast_hear(struct rr_mode *m, struct rr_recv_ctx *rc, const struct rr_wc *wc);
bool rr_mode_fast_claim(struct rr_mode *m, struct rr_rreq *rr, const struct rr_segment *seg);

/* mode_grant.c */
must_check int rr_mode_grant_init(struct rr_mode *m, struct rr_suffix *give);
bool rr_mode_grant_want(struct rr_mode *m, uint32_t xid, uint32_t bytes);
bool rr_mode_grant_claim(struct rr_mode *m, struct rr_rreq *rr, const struct rr_segment *seg);
bool rr_mode_grant_done(struct rr_mode *m, uint32_t xid);
void rr_mode_grant_release(struct rr_grant *g);
/** rr_mode_grant_oldest - since when the oldest that was given waits to be used; 0: there is none
 *
 * The first of the list: room, and then a send buffer, is had in the order in which it was asked for. */
uint64_t rr_mode_grant_oldest(const struct rr_mode *m);
/** rr_mode_grants_expire - take back what was given @stall_ns before @now_ns and is not used
 * Return: false: there is some, and no way to take it back */
must_check bool rr_mode_grants_expire(struct rr_mode *m, uint64_t now_ns, uint64_t stall_ns);
void rr_mode_grants_end(struct rr_mode *m);
void rr_mode_grant_fini(struct rr_mode *m);

/* mode_window.c */

/** rr_mode_windows_init - have windows, if the modes and the device are for them; Return: 0, -ENOMEM */
must_check int rr_mode_windows_init(struct rr_mode *m, struct rr_dev *dev);
void rr_mode_windows_fini(struct rr_mode *m);

/** rr_mode_write_access - of the registration of memory that the peer is to write to */
static inline unsigned rr_mode_write_access(const struct rr_mode *m)
{
	return m->windows ? RR_ACCESS_MW_BIND : RR_ACCESS_REMOTE_WRITE;
}

/** rr_mode_key_get - a key to write to [addr, addr+len) of @area by
 * Return: 0; -ENOMEM, what the device said: no window is to be had */
must_check int rr_mode_key_get(struct rr_mode *m, const struct rr_area *area, void *addr, size_t len,
			       struct rr_mode_key *ret);

/** rr_mode_key_post - post @post, which tells the peer of @k; what makes the key good goes before it
 * @alone: for a bind by itself; lasts as long as @post */
void rr_mode_key_post(struct rr_mode *m, const struct rr_mode_key *k, struct rr_post *alone,
		      struct rr_post *post);

/** rr_mode_windows_start - the peer was heard: before anything is posted, what it was told becomes good */
void rr_mode_windows_start(struct rr_mode *m);

/** rr_mode_key_take_back - once; @closing is counted up, and down when the key is dead
 * Without a window, or on a dead connection, nothing is done. */
void rr_mode_key_take_back(struct rr_mode *m, const struct rr_mode_key *k,
			   struct rr_reg_closing *closing);

/** rr_mode_key_put - the window goes back; nothing is reached through it on return */
void rr_mode_key_put(struct rr_mode *m, struct rr_mode_key *k);

#endif
