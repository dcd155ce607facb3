/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * hdr.h - the transport header and its chunk lists as host structures (RFC 8166 section 4)
 *
 * These structures are not overlaid on wire bytes. A decoded header is bounds-checked: counts are within the
 * arrays, booleans were 0 or 1, positions are multiples of four, every list ends inside the message. Lengths,
 * capacities and eligibility are not checked yet: see chunk.h.
 */
#ifndef RR_HDR_H
#define RR_HDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "proto.h"

struct rr_segment {
	uint32_t handle;
	uint32_t length;
	uint64_t offset; /* opaque: copied, added to, never interpreted */
};

struct rr_read_seg {
	uint32_t position;
	struct rr_segment seg;
};

/* A Write chunk or a Reply chunk. */
struct rr_chunk {
	uint32_t nsegs;
	struct rr_segment segs[RR_CHUNK_SEGS_MAX];
};

struct rr_hdr {
	uint32_t xid, vers, credits, proc;

	/* RR_MSG, RR_NOMSG */
	uint32_t nreads;
	uint32_t nwrites;
	bool has_reply;
	struct rr_read_seg reads[RR_READ_SEGS_MAX];
	struct rr_chunk writes[RR_WRITE_CHUNKS_MAX];
	struct rr_chunk reply;

	/* RR_ERROR */
	uint32_t err, vers_low, vers_high;
};

/** rr_hdr_init - sets the fixed part and empties all lists (does not clear the arrays); the caller adds the rest */
void rr_hdr_init(struct rr_hdr *h, uint32_t xid, uint32_t credits, uint32_t proc);

/** rr_hdr_decode - parses the transport header at the start of a message
 * @buf, @len: the received message; reads at most @len bytes
 * @h: filled; on failure the lists are empty, and xid, vers, credits and proc are set as far as they were received (0
 * otherwise)
 * @ret_len: length of the header; the RPC message follows (RR_MSG)
 *
 * Return: 0;
 *  -ENODATA      shorter than the fixed part of 16 bytes but at least 8: xid and vers are set
 *  -EMSGSIZE     under 8 bytes: no reply is possible
 *  -EPROTONOSUPPORT  version is not 1: ERR_VERS
 *  -EOPNOTSUPP   RDMA_MSGP or unknown procedure: ERR_CHUNK
 *  -EBADMSG      lists malformed, over our limits, or longer than the message: ERR_CHUNK
 */
must_check int rr_hdr_decode(const void *buf, size_t len, struct rr_hdr *h, size_t *ret_len);

/** rr_hdr_encode - encodes one of our own headers: RDMA_MSG, RDMA_NOMSG, RDMA_DONE, RDMA_ERROR
 * @h: counts within the arrays, positions multiples of four (asserted)
 *
 * Return: 0 with *ret_len set; -EMSGSIZE if it does not fit @cap (@buf is then undefined).
 */
must_check int rr_hdr_encode(const struct rr_hdr *h, void *buf, size_t cap, size_t *ret_len);

/** rr_hdr_bytes - returns the size on the wire of @h, which is our own or came from rr_hdr_decode() */
size_t rr_hdr_bytes(const struct rr_hdr *h);

/** rr_hdr_encode_error - encodes the reply to a bad header: 20 bytes (ERR_CHUNK) or 28 (ERR_VERS)
 * @vers: copied from the offending call, as the XID is (RFC 8166 section 4.5), so that a sender of another version can
 * match the reply
 * @credits: current grant; an error takes part in the credit protocol like any reply
 * @err: ERR_VERS reports versions 1 to 1
 *
 * Return: 0 with *ret_len set; -EMSGSIZE if @cap is too small.
 */
must_check int rr_hdr_encode_error(uint32_t xid, uint32_t vers, uint32_t credits, enum rr_err err,
				   void *buf, size_t cap, size_t *ret_len);

/* RFC 8797: the connection manager's private data of each side */
struct rr_priv {
	bool present;            /* false: the defaults apply */
	bool remote_inv;
	uint32_t send_bytes;     /* largest Send this side will post */
	uint32_t recv_bytes;     /* size of its receive buffers */
};

/** rr_priv_encode - encodes RR_PRIV_BYTES into @out; sizes are multiples of 1024 in 1024..262144. Ignores
 * p->present. */
void rr_priv_encode(const struct rr_priv *p, uint8_t out[RR_PRIV_BYTES]);

/** rr_priv_decode - decodes; absent, foreign or short data is no error: 1024 both ways, no flags
 * @data, @len: of the connection manager's event, which pads it with zeros to 56 or 196 bytes; NULL, 0: absent */
void rr_priv_decode(const void *data, size_t len, struct rr_priv *ret);

/** rr_hdr_print - formats a header as one line for logs and for tests of captures, e.g.
 * "RDMA_MSG xid=0x1 cred=32 hdr=52 READ[pos=112: 131072+4] WRITE[1: 4096] REPLY[2: 124+65536]"
 * @cap: at least 1
 *
 * Return: @buf.
 */
char *rr_hdr_print(const struct rr_hdr *h, char *buf, size_t cap);

#endif
