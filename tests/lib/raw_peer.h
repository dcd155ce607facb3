/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * raw_peer.h - a peer that says exactly what a test tells it to, over the local fabric
 *
 * One thread runs both ends: the server's engine is pumped while the peer waits. Every wait is
 * bounded by what can still happen, not by time: it gives up after many idle rounds.
 */
#ifndef TESTS_RAW_PEER_H
#define TESTS_RAW_PEER_H

#include "fabric.h"
#include "hdr.h"
#include "rpcrdma.h"

#define RAW_RECVS 64u

struct raw_peer {
	struct rpcrdma_engine *server;   /* pumped in every wait */
	struct rr_fabric *fabric;
	struct rr_pd *pd;
	struct rr_cq *cq;
	struct rr_cm *cm;
	struct rr_qp *qp;
	struct rr_mr *mr;
	uint8_t *mem;                    /* receive buffers, then one send buffer */
	uint32_t msg_bytes;
	struct rr_done done[RAW_RECVS], send_done;
	struct {
		uint32_t len;
		bool with_inv;
		uint32_t inv_rkey;
		uint8_t bytes[65536];
	} got[RAW_RECVS];                /* messages, in order of arrival */
	unsigned ngot, taken, posted;
	struct rr_priv server_priv;
	uint8_t server_raw[RR_PRIV_MAX]; /* its private data as it came */
	size_t server_raw_len;
	unsigned reads_of_server;        /* RDMA Reads it says it will have outstanding */
	unsigned reads_by_server;        /* ... and lets us have */
	bool up, failed, flushed, sent;
	enum rr_wc_status send_status;
};

struct raw_opts {
	uint32_t msg_bytes;         /* receive buffers and room for a Send; 0: 4096 */
	const struct rr_priv *priv; /* NULL: no private data */
	unsigned recvs;             /* posted at first; 0: 8 */
	bool no_reads;              /* offer no RDMA Reads */
	unsigned reads;             /* ... or this number; 0: 16 */
	const void *suffix;         /* private data behind that of @priv, */
	size_t suffix_len;          /* and RDMA Reads of our own are wanted */
};

/** raw_open - connect to the socket @path; Return: 0, or -errno when refused */
int raw_open(struct raw_peer *p, struct rpcrdma_engine *server, const char *path,
	     const struct raw_opts *opts);
void raw_close(struct raw_peer *p);

/** raw_send - one Send of @len bytes, whatever they are; waits for its completion */
enum rr_wc_status raw_send(struct raw_peer *p, const void *msg, size_t len);

/** raw_send_inv - the same, and @rkey of the server is invalidated, whatever that is */
enum rr_wc_status raw_send_inv(struct raw_peer *p, const void *msg, size_t len, uint32_t rkey);

/** raw_send_blind - the same without letting the server run meanwhile */
enum rr_wc_status raw_send_blind(struct raw_peer *p, const void *msg, size_t len);

/** raw_rdma - an RDMA operation of our own: WRITE, WRITE_IMM (with @imm) or READ of @len bytes at @data */
enum rr_wc_status raw_rdma(struct raw_peer *p, enum rr_wr_op op, void *data, size_t len, uint64_t raddr,
			   uint32_t rkey, uint32_t imm);

/** raw_bind - put a window with a new key over [addr, addr+len) of @mr; asserts nothing
 * Return: status of the bind; @mw->rkey is the key */
enum rr_wc_status raw_bind(struct raw_peer *p, struct rr_mw *mw, struct rr_mr *mr, void *addr,
			   size_t len, unsigned access);

/** raw_recv - the next message; NULL when none comes and nothing moves any more
 * @ret_len: its length */
const uint8_t *raw_recv(struct raw_peer *p, uint32_t *ret_len);

/** raw_last_inv - the message that raw_recv() gave out last: was something invalidated with it? */
bool raw_last_inv(const struct raw_peer *p, uint32_t *ret_rkey);

/** raw_settle - pump both sides until nothing moves */
void raw_settle(struct raw_peer *p);

/** raw_alive - is the connection still up? (settles first) */
bool raw_alive(struct raw_peer *p);

#endif
