/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode.h - the other ways of moving data, for connections whose two ends ask for them
 *
 * Operation:  Read-Write, where the responder starts every transfer and no peer reaches its memory, is
 *             what connections do. Three older designs can be had instead, for comparison, by a
 *             suffix of the private data (mode_suffix.c) that both ends must send:
 *
 *               read-read   results: the responder offers them as Read chunks of its reply, the
 *                           requester reads them and says RDMA_DONE (mode_offer.c, mode_pull.c)
 *               fast-write  arguments of some KiB: call and payload by one RDMA Write with immediate
 *                           into a slot of the responder's (mode_fast.c, mode_put.c)
 *               hybrid      larger arguments: the requester asks for room, writes them there, and
 *                           sends the call (mode_grant.c, mode_put.c)
 *
 *             Procedures of the transport header beside RFC 8166's, on such connections only:
 *
 *               RR_WANT   u32 bytes              requester: room for so much, for the call of this XID
 *               RR_GRANT  handle length offset   responder: here it is; length 0: do as usual
 *               RR_HERE   as RDMA_MSG            its Read chunk lies in memory of the responder's
 *               RDMA_DONE                        requester: what this XID was given is free again
 *
 * Memory:     A responder's connection with a mode has a protection domain of its own and memory that
 *             no other connection ever uses (area.c): what its peer reaches is its own data. What
 *             it writes to is under memory windows where there are any (mode_window.c), so that room for
 *             one call is reached for as long as that call wants it, and can be taken back.
 *             What is parsed is never parsed where a peer can write.
 * Threads:    The connection's engine; made by the one that accepts.
 * Errors:     A peer that breaks these rules loses its connection, at once and alone. One that keeps
 *             what it was given for longer than stall_ms loses that, if it is room under a window, and
 *             else its connection, too.
 */
#ifndef RR_MODE_H
#define RR_MODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "hdr.h"
#include "rpcrdma.h"

enum rr_mode_proc { RR_WANT = 64, RR_GRANT = 65, RR_HERE = 66 };
#define RR_WANT_BYTES (RR_HDR_FIXED + 4u)
#define RR_GRANT_BYTES (RR_HDR_FIXED + RR_SEGMENT_BYTES)

/* Of a slot: room for a call without its payload, so that the payload begins on a page. */
#define RR_SLOT_HEAD 4096u
#define RR_SLOTS_MAX 64u

/* ---- mode_suffix.c: what is agreed ----------------------------------------------------------- */

#define RR_SUFFIX_BYTES 32u

enum rr_suffix_status { RR_SUFFIX_OK, RR_SUFFIX_NOT_OFFERED, RR_SUFFIX_NO_MEMORY };

struct rr_suffix {
	unsigned modes;          /* enum rpcrdma_mode: wanted; or granted */
	uint8_t status;          /* why not all that was wanted */
	uint32_t slot_bytes;     /* payload that a slot holds, */
	uint16_t slots;          /* and how many there are: wanted; or granted */
	uint32_t handle;         /* granted: where they are */
	uint64_t offset;
	uint32_t grant_max;      /* granted: the most that is given for one RR_WANT */
};

void rr_suffix_encode(const struct rr_suffix *s, uint8_t out[RR_SUFFIX_BYTES]);

/** rr_suffix_decode - of private data, behind the bytes of RFC 8797
 * Return: false when there is none, or none that we understand: as if there were none */
must_check bool rr_suffix_decode(const void *priv, size_t len, struct rr_suffix *ret);

#endif
