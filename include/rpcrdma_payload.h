/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma_payload.h - how a codec marks the bulk item of a message
 *
 * The upper layer marks the payload; the transport decides how to move it: inline, by Read chunk, by Write
 * chunk, inside a long call or a Reply chunk (RFC 8166 section 3.4, RFC 8267). In a .x file the item is a
 * type with a filter that calls rpcrdma_xdr_payload(), for instance
 *
 *     %#define payload3 struct rpcrdma_payload
 *     %extern bool_t xdr_payload3(XDR *, payload3 *);
 *
 * The same generated codec then serves RDMA and TCP. A procedure has at most one payload in its arguments
 * and one in its results; everything else moves with the message itself.
 */
#ifndef RPCRDMA_PAYLOAD_H
#define RPCRDMA_PAYLOAD_H

#include <stdint.h>
#include <sys/uio.h>

#include <rpc/types.h>
#include <rpc/xdr.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A bulk opaque<>: `length` bytes in memory, or not yet in memory.
 *
 * Encoding: the caller sets length. It also sets iov/iovcnt with a sum >= length, unless the bytes were passed to the
 * transport already (rpcrdma_req_place). The memory stays the caller's and must be valid until the message is
 * complete.
 *
 * Decoding: length is set. If the bytes came with the message and are contiguous there, iovcnt is 1, iov points at
 * `here`, and they are valid as long as the message. Otherwise iovcnt is 0: a server pulls them (rpcrdma_req_pull), a
 * client finds them in the call's sink.
 */
struct rpcrdma_payload {
	uint32_t length;
	int iovcnt;
	const struct iovec *iov;
	struct iovec here;
};

/** rpcrdma_xdr_payload - XDR filter of a payload: length word, bytes, pad (RFC 4506 section 4.10)
 * @xdrs: a stream of this library, or any other XDR stream
 * @p: see above
 * @max: maximum length
 *
 * On a stream of another kind (xdrmem and such) decoding copies into @p->iov, which must have room, and encoding
 * gathers from it. Nothing is ever allocated, so XDR_FREE does nothing.
 *
 * Return: TRUE, or FALSE if length exceeds @max or the stream is at its end.
 */
bool_t rpcrdma_xdr_payload(XDR *xdrs, struct rpcrdma_payload *p, uint32_t max);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
