/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * raw_server.h - a responder that says and does exactly what a test tells it to, over the local
 *                fabric, or verbs
 *
 * The counterpart of raw_peer.h: it listens, takes one connection at a time, keeps what comes, and
 * sends, writes and reads what the test asks for. One thread runs both ends: the client's engine is pumped
 * while the server waits. raw_server_until() is bounded by a clock, for a client may be waiting for
 * one; raw_server_settle() by what can still happen.
 */
#ifndef TESTS_RAW_SERVER_H
#define TESTS_RAW_SERVER_H

#include "fabric.h"
#include "hdr.h"
#include "rpcrdma.h"

#define RAW_SERVER_RECVS 128u
#define RAW_SERVER_BYTES 65536u
#define RAW_SERVER_LOG 4096u

struct raw_server_opts {
	const void *priv;       /* private data as it goes out; NULL: none */
	size_t priv_len;
	uint32_t msg_bytes;     /* of a receive buffer; 0: 4096 */
	bool reject;            /* reject all connections */
	struct rr_fabric *fabric; /* the caller's, verbs; NULL: a local one of its own */
};

struct raw_server {
	struct rpcrdma_engine *client;   /* pumped in every wait */
	struct raw_server_opts opts;
	struct rr_fabric *fabric;        /* NULL: closed */
	struct rr_pd *pd;
	struct rr_cq *cq;
	struct rr_cm *cm;
	struct rr_listener *listener;
	struct rr_qp *qp;                /* the present connection, or NULL */
	struct rr_mr *mr;
	uint8_t *mem;                    /* receive buffers, a send buffer, a buffer for payload */
	struct rr_done done[RAW_SERVER_RECVS], op_done;
	struct {
		uint32_t len;
		unsigned conn;           /* on the how-manieth connection it came */
		uint8_t *bytes;
	} got[RAW_SERVER_LOG];           /* messages, in order of arrival */
	unsigned ngot, taken, posted;
	unsigned conns;                  /* accepted so far */
	unsigned refused;
	unsigned lost;                   /* connections that ended */
	bool up, op_ended;
	enum rr_wc_status op_status;

	/* what the last one that came said of itself */
	struct rr_priv client_priv;
	size_t client_priv_len;
	unsigned reads_offered;          /* RDMA Reads that it lets us have outstanding */
	unsigned reads_wanted;           /* ... and wants to have outstanding itself */
};

/** raw_server_open - listen on the socket @path, or the address of that fabric; asserts that it works */
void raw_server_open(struct raw_server *s, struct rpcrdma_engine *client, const char *path,
		     const struct raw_server_opts *opts);
void raw_server_close(struct raw_server *s);

/** raw_server_poll - one pass over both ends; Return: how much ran */
int raw_server_poll(struct raw_server *s);

/** raw_server_until - poll until *@count reaches @want; fails the test after twenty seconds */
void raw_server_until(struct raw_server *s, const unsigned *count, unsigned want);

/** raw_server_settle - poll until nothing has moved for a while */
void raw_server_settle(struct raw_server *s);

/** raw_server_recv - the next message; NULL when none comes and nothing moves any more */
const uint8_t *raw_server_recv(struct raw_server *s, uint32_t *ret_len);

/** raw_server_send - one Send of @len bytes, whatever they are; the client is not pumped */
enum rr_wc_status raw_server_send(struct raw_server *s, const void *msg, size_t len);

/** raw_server_send_inv - the same, and @rkey of the client is invalidated, whatever that is */
enum rr_wc_status raw_server_send_inv(struct raw_server *s, const void *msg, size_t len,
				      uint32_t rkey);

/** raw_server_write, raw_server_read - RDMA Write or Read of @len bytes at @off of @seg, whatever
 * the segment's own length; the client is pumped until it is over */
enum rr_wc_status raw_server_write(struct raw_server *s, const struct rr_segment *seg, uint64_t off,
				   const void *data, size_t len);
enum rr_wc_status raw_server_read(struct raw_server *s, const struct rr_segment *seg, uint64_t off,
				  void *data, size_t len);

/** raw_server_hang_up - end the connection that stands */
void raw_server_hang_up(struct raw_server *s);

/** raw_server_alive - does the connection still stand? (settles first) */
bool raw_server_alive(struct raw_server *s);

#endif
