/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_mode_ops.h - what the responder asks another mode of data transfer (rpcrdma/modes) to do
 *
 * Operation:  Connections use Read-Write, unless the peer requests another mode in its private data and the
 *             service allows it. rpcrdma_domain_create() registers the modes with the domain. During the
 *             accept, rr_srv_modes.accept may set rr_rconn.mode, which stays set until free. Without
 *             a mode the pointer is NULL, and nothing in this file runs.
 * Memory:     A mode embeds struct rr_srv_mode in its own state of the connection, and owns that state.
 *             A request has room for the mode's state of it: struct rr_mode_req, zero between requests.
 * Threads:    The connection's engine. The engine that accepts: accept; disarm and free of a connection that was
 *             never adopted.
 */
#ifndef RR_SRV_MODE_OPS_H
#define RR_SRV_MODE_OPS_H

#include "ep.h"
#include "stream.h"

struct rr_plan_reply;
struct rr_rconn;
struct rr_rreq;

struct rr_srv_mode_ops {
	/* Handles a message before it is parsed. It may replace the bytes in @rc by those to parse.
	 * Return: true: consumed, and @rc is reposted. After a violation the connection is being closed. */
	bool (*recv)(struct rr_rconn *c, struct rr_recv_ctx *rc, const struct rr_wc *wc);
	/* The message that recv has just let pass is the call @rr, with valid chunk lists. If its payload is in the
	 * mode's memory already, sets rr->mode.payload and args_local. The memory is in use until release.
	 * Return: false: the Read chunk is not what the peer was given; the caller releases @rr and closes the
	 * connection */
	bool (*claim)(struct rr_rreq *rr);
	/* Sends the reply of @rr, if its payload travels by this mode. rr->send_buf is the buffer of the Send.
	 * @plan: form of the reply without a mode
	 * @msg, @len: head of the reply: in rr->send_buf, behind the space for its header; or in rr->reply_buf if that is
	 * set
	 * Return: 0: sent, or will be; 1: use the form of @plan; -ENOBUFS: call again after waiting for memory of
	 * RR_ZONE_REPLIES */
	int (*reply)(struct rr_rreq *rr, const struct rr_plan_reply *plan, const struct rr_stream *s,
		      uint8_t *msg, size_t len);
	/* Frees what claim set, if anything. Called before the Send of the reply is posted, because the peer may use
	 * the memory as soon as it has the reply, and once more at the end of the request. */
	void (*release)(struct rr_rreq *rr);
	/* The connection is dead; called once. Ends every transfer that only the peer could end
	 * (rr_srv_op_ended()). */
	void (*dead)(struct rr_rconn *c);
	/* Invalidates the keys that the peer has. Called before the queue pair is destroyed, when no work request is
	 * outstanding. */
	void (*disarm)(struct rr_rconn *c);
	/* Frees the mode's state, and resets c->mode and c->base.own. Called after disarm, when the queue pair
	 * is destroyed and no request exists. */
	void (*free)(struct rr_rconn *c);
};

/* Head of a mode's state of a connection. */
struct rr_srv_mode {
	const struct rr_srv_mode_ops *ops;
	struct rr_pd *pd;             /* of the connection's endpoint, instead of the device's */
	uint32_t room;                /* largest result payload that needs no Write chunk; 0: as without a mode */
};

/* A mode's state of a request. */
struct rr_mode_req {
	uint8_t *payload;             /* of the arguments, if the peer has written it already; else NULL */
	/* the rest is the mode's own */
	void *place;                  /* owner of @payload */
	struct list link;             /* while the peer has to react, and since when */
	uint64_t since_ns;
};

struct rr_srv_modes {
	/* A peer connects, and this end uses private data. Sets c->mode and c->base.own if the peer requests a
	 * mode that the service allows, and memory suffices.
	 * @ea, @param: of the endpoint and of the accept: adapted to the mode
	 * @priv: RR_PRIV_MORE_BYTES for the private data that follows that of RFC 8797
	 * @ret_len: bytes of it; 0: the peer did not ask
	 *
	 * Return: 0, also without a mode; -errno: the peer cannot be served. On failure c->mode is NULL. */
	int (*accept)(struct rr_rconn *c, struct rr_dev *dev, const struct rr_cm_event *ev,
		      struct rr_ep_attr *ea, struct rr_conn_param *param, uint8_t *priv, size_t *ret_len);
};

#endif
