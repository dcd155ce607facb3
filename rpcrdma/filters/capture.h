/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * capture.h - writes a pcap file with the packets that a RoCEv2 network would carry
 *
 * Several threads may write to one capture; a connection's state belongs to the thread that owns the connection.
 */
#ifndef RR_CAPTURE_H
#define RR_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

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

/** rr_capture_open - creates a capture file that only its owner can read; replaces an existing one
 * @ret: release it with rr_capture_close()
 *
 * Return: 0; -ENOMEM; -ELOOP for a symbolic link; the errno of opening or writing @path; -EIO.
 */
must_check int rr_capture_open(const char *path, struct rr_capture **ret);

/** rr_capture_close - closes the file and frees @c, which no other thread uses; NULL is ignored */
void rr_capture_close(struct rr_capture *c);

/** rr_capture_cm - writes a datagram of the connection manager
 * @what: REQ and RTU come from the side that dialled, REP from the other side
 * @priv: the sender's private data, @priv_len bytes
 */
void rr_capture_cm(struct rr_capture *c, const struct rr_capture_conn *conn,
		   enum rr_capture_cm what, const void *priv, size_t priv_len);

/** rr_capture_send - writes the packets of a Send
 * @out: this side sent it
 * @data: the message, @len bytes
 * @inv_rkey: the key that it invalidates, if @with_inv
 */
void rr_capture_send(struct rr_capture *c, struct rr_capture_conn *conn, bool out, const void *data, size_t len,
		     bool with_inv, uint32_t inv_rkey);

/** rr_capture_write - writes the packets of an RDMA Write by this side
 * @data: @len bytes
 * @raddr: destination offset; @rkey: key of the destination
 * @imm: immediate data at its end, or NULL
 */
void rr_capture_write(struct rr_capture *c, struct rr_capture_conn *conn, const void *data, size_t len, uint64_t raddr,
		      uint32_t rkey, const uint32_t *imm);

/** rr_capture_read - writes the packets of an RDMA Read by this side: its request and the responses
 * @data: that was read, @len bytes
 * @raddr: source offset; @rkey: key of the source
 */
void rr_capture_read(struct rr_capture *c, struct rr_capture_conn *conn, const void *data, size_t len, uint64_t raddr,
		     uint32_t rkey);

#endif
