/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * capture.h - writes a pcap file with the packets that a RoCEv2 network would carry
 *
 * All functions accept a NULL capture and then do nothing. Several threads may write to one capture;
 * a connection's state belongs to the thread that owns the connection.
 */
#ifndef RR_CAPTURE_H
#define RR_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/util.h"

struct rr_capture;

/* State for the frames of one connection. */
struct rr_capture_conn {
	bool active;            /* this side dialled */
	uint32_t qpn, peer_qpn; /* 24 bits each */
	uint32_t psn, peer_psn; /* next packet sequence number, per direction */
	uint32_t msn, peer_msn;
};

enum rr_capture_cm { RR_CAPTURE_REQ, RR_CAPTURE_REP, RR_CAPTURE_RTU };

must_check int rr_capture_open(const char *path, struct rr_capture **ret);
void rr_capture_close(struct rr_capture *c);
void rr_capture_cm(struct rr_capture *c, const struct rr_capture_conn *conn,
		   enum rr_capture_cm what, const void *priv, size_t priv_len);
void rr_capture_send(struct rr_capture *c, struct rr_capture_conn *conn, bool out,
		     const struct iovec *iov, int n, bool with_inv, uint32_t inv_rkey);
void rr_capture_write(struct rr_capture *c, struct rr_capture_conn *conn,
		      const struct iovec *iov, int n, uint64_t raddr, uint32_t rkey,
		      const uint32_t *imm);
void rr_capture_read(struct rr_capture *c, struct rr_capture_conn *conn,
		     const struct iovec *iov, int n, uint64_t raddr, uint32_t rkey);

#endif
