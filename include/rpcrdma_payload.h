/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma_payload.h - how a codec marks the one bulk item of a message
 *
 * The upper layer MARKS the payload, the transport DECIDES how it moves: inline, by Read chunk, by
 * Write chunk, inside a long call or a Reply chunk (RFC 8166 section 3.4, RFC 8267). In a .x file
 * the item is a type whose filter calls rpcrdma_xdr_payload(), for instance
 *
 *     %#define payload3 struct rpcrdma_payload
 *     %extern bool_t xdr_payload3(XDR *, payload3 *);
 *
 * The same generated codec then serves RDMA and TCP. At most one payload in the arguments and one
 * in the results of a procedure; all else is moved with the message itself.
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

/* A bulk opaque<>: `length` bytes somewhere in memory, or not in memory yet.
 *
 * Encoding: the caller sets length and, unless the bytes were handed to the transport already
 * (rpcrdma_req_place), iov/iovcnt whose sum is >= length. The memory stays the caller's and must be
 * valid until the message is done with.
 *
 * Decoding: length is set. If the bytes came with the message and lie in one piece there, iovcnt
 * is 1, iov points at `here`, and they are valid as long as the message. Otherwise iovcnt is 0: a
 * server pulls them (rpcrdma_req_pull), a client finds them in the call's sink.
 */
struct rpcrdma_payload {
	uint32_t length;
	int iovcnt;
	const struct iovec *iov;
	struct iovec here;
};

/** rpcrdma_xdr_payload - XDR filter of a payload: length word, bytes, pad (RFC 4506 section 4.10)
 * @xdrs: a stream of this library, or any other XDR stream: there the bytes are simply copied
 * @p: see above
 * @max: longest length allowed
 *
 * On a stream of another kind (xdrmem and such) decoding copies into @p->iov, which must then have
 * room, and encoding gathers from it; nothing is ever allocated, so XDR_FREE does nothing.
 *
 * Return: TRUE, or FALSE if length exceeds @max or the stream is at its end.
 */
bool_t rpcrdma_xdr_payload(XDR *xdrs, struct rpcrdma_payload *p, uint32_t max);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
