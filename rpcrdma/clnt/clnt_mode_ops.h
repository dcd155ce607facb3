/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_mode_ops.h - what the requester asks another mode of data transfer (rpcrdma/modes) to do
 *
 * Operation:  Connections use Read-Write, unless the client requests another mode and the server agrees.
 *             rpcrdma_domain_create() registers the modes with the domain. `request` and `agree` run during
 *             the connect; agree may set rr_link.mode, which stays set until free. Without a mode the
 *             pointer is NULL, as is rr_rcall.mode, and nothing else in this file runs.
 * Memory:     A mode embeds struct rr_clnt_mode in its state of the link, which it owns. Its state of a call
 *             begins with struct rr_call_mode; the link frees it with the call, by free().
 * Threads:    The engine's.
 * Errors:     A peer that breaks the rules of a mode loses its link: rr_link_fail().
 */
#ifndef RR_CLNT_MODE_OPS_H
#define RR_CLNT_MODE_OPS_H

#include "ep.h"
#include "hdr.h"
#include "plan.h"
#include "stream.h"

struct rpcrdma_clnt;
struct rpcrdma_clnt_info;
struct rr_link;
struct rr_rcall;

/* How the arguments of a call travel. */
enum rr_how {
	RR_HOW_PLAIN,  /* as without a mode */
	RR_HOW_COPIED, /* the payload is copied to memory of the mode, whose post sends it with the call */
	RR_HOW_LATER,  /* another message goes first; the peer has not been sent the call, and cannot reply */
	RR_HOW_PUT,    /* the mode's post writes the payload from the offered memory, then sends the call */
};

/* Head of a mode's state of a call. */
struct rr_call_mode {
	enum rr_how how;
	/* The mode's own work requests use the memory of the call, which is not recycled meanwhile.
	 * rr_link_pulled() follows, even if the call is cancelled. */
	bool busy;
	struct rr_segment there;   /* COPIED, PUT: where the payload is then, for the call's Read chunk */
	uint8_t *copy;             /* COPIED: where to copy it */
};

struct rr_clnt_mode_ops {
	const char *name;
	/* Initialises rc->mode of a new or recycled call. Return: 0, -ENOMEM */
	int (*init)(struct rr_rcall *rc);
	/* Chooses how the arguments of @rc travel. rc->send_buf is its send buffer; no memory is offered yet.
	 * Return: 0; else the length of the message in the send buffer that goes first (RR_HOW_LATER): the
	 * mode sends the call later, by rr_rcall_resume() */
	size_t (*choose)(struct rr_rcall *rc, const struct rr_plan_call *p, const struct rr_stream *s);
	/* Posts the call, RR_HOW_COPIED or RR_HOW_PUT: @len bytes in the send buffer, by rc->post. */
	void (*post)(struct rr_rcall *rc, size_t len);
	/* The Send of @rc has completed. Return: true: the mode keeps the send buffer */
	bool (*sent)(struct rr_rcall *rc, enum rr_wc_status status);
	/* Return: true: RR_HOW_LATER, and the call waits for registrations that other calls hold */
	bool (*waits)(const struct rr_rcall *rc);
	/* A send buffer or registrations may be free: continues calls that wait for them. May end the link. */
	void (*go_on)(struct rr_link *l);
	/* The call is given up.
	 * @no_reply: in: no reply is expected; set if the call itself has not been sent
	 * Return: true: the connection must end before the call's memory is free */
	bool (*cancel)(struct rr_rcall *rc, bool *no_reply);
	/* The call has ended: frees what it holds. While it is busy, rr_link_pulled() comes later. */
	void (*detach)(struct rr_rcall *rc);

	/* Handles a message before it is parsed. Return: true: consumed, and @recv is reposted */
	bool (*recv)(struct rr_link *l, struct rr_recv_ctx *recv);
	/* A reply to @rc has a Read list: starts to read the payload to the sink. If the call is busy afterwards,
	 * the mode keeps @recv until rr_link_pulled(). Otherwise rc->verdict has the error.
	 * @msg: behind the header of @h */
	void (*pull)(struct rr_rcall *rc, struct rr_recv_ctx *recv, const struct rr_hdr *h, uint8_t *msg,
		     size_t msg_bytes);
	/* A reply to no call: frees what the peer or the mode holds for @xid. May end the link.
	 * @has_reads: it is valid, and has a Read list */
	void (*stray)(struct rr_link *l, uint32_t xid, bool has_reads);

	/* The endpoint is dead; called once. Ends work that is not posted yet. */
	void (*dead)(struct rr_link *l);
	/* Frees the state and resets l->mode, when the queue pair is destroyed and no call exists. */
	void (*free)(struct rr_link *l);
	/* Fills in the members about the mode. */
	void (*info)(const struct rr_link *l, struct rpcrdma_clnt_info *ret);
};

/* Head of a mode's state of a link. */
struct rr_clnt_mode {
	const struct rr_clnt_mode_ops *ops;
	bool result_read;          /* results that do not fit into a reply are read from the server: rr_plan_call */
};

struct rr_clnt_modes {
	/* Return: number of receives that one credit of @c may need */
	unsigned (*recvs_per_credit)(const struct rpcrdma_clnt *c);
	/* The link connects: requests the modes that the client wants.
	 * @ea, @param: of the endpoint and of the connect: adapted to them
	 * @priv: RR_PRIV_MORE_BYTES for the private data that follows that of RFC 8797
	 * Return: bytes of it; 0: none is wanted */
	size_t (*request)(const struct rr_link *l, struct rr_ep_attr *ea, struct rr_conn_param *param,
			  uint8_t *priv);
	/* The peer has accepted: checks its private data, and sets l->mode if a mode was requested.
	 * Return: 0; -errno: the link has failed, with the reason */
	int (*agree)(struct rr_link *l, const void *priv, size_t len);
};

#endif
