/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode.h - modes: other ways of transferring data, for connections that negotiate them
 *
 * Operation:  Connections normally use Read-Write: the responder initiates every transfer, and no peer
 *             accesses its memory. Three older ones are available for comparison, by a suffix
 *             of the private data (mode_suffix.c) that both ends must send:
 *
 *               read-read   results: the responder offers them as Read chunks of its reply; the
 *                           requester reads them and sends RDMA_DONE (mode_offer.c, mode_pull.c)
 *               fast-write  arguments of some KiB: one RDMA Write with immediate carries call and
 *                           payload into a slot of the responder (mode_fast.c, mode_put.c)
 *               hybrid      larger arguments: the requester requests a buffer, writes them there, and
 *                           sends the call (mode_grant.c, mode_put.c)
 *
 *             Such connections use these transport header procedures in addition to RFC 8166's:
 *
 *               RR_WANT   u32 bytes              requester: requests a buffer of this size for the call of this XID
 *               RR_GRANT  handle length offset   responder: announces the buffer; length 0: use a Read chunk
 *               RR_HERE   as RDMA_MSG            requester: the Read chunk is in memory of the responder
 *               RDMA_DONE                        requester: the memory announced for this XID is free
 *
 * Memory:     A responder's connection with a mode has its own protection domain and memory that no
 *             other connection ever uses (mode_area.c): its peer accesses only its own data. If the device
 *             has memory windows (mode_window.c), they cover the memory that the peer writes to. The
 *             peer can then write to a call's buffer only until the call arrives or the key is
 *             invalidated. No data is parsed in memory that a peer can write to.
 * Threads:    The connection's engine; the accepting engine creates the mode.
 * Errors:     A peer that breaks these rules loses its connection, without effect on others. If it
 *             keeps announced memory longer than stall_ms, it loses a buffer under a window, otherwise
 *             its connection.
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

/* Part of a slot: room for a call without its payload, so that the payload begins on a page. */
#define RR_SLOT_HEAD 4096u
#define RR_SLOTS_MAX 64u

/** rr_slot_stride - returns the distance of two slots for @bytes of payload each */
static inline size_t rr_slot_stride(uint32_t bytes)
{
	return (size_t)RR_SLOT_HEAD + bytes;
}

extern const struct rr_clnt_modes rr_mode_requester; /* mode_clnt.c: clnt_mode_ops.h */
extern const struct rr_srv_modes rr_mode_responder;   /* mode_srv.c: srv_mode_ops.h */

/* ---- mode_suffix.c: negotiation ------------------------------------------------------------- */

#define RR_SUFFIX_BYTES 32u
_Static_assert(RR_SUFFIX_BYTES <= RR_PRIV_MORE_BYTES, "a suffix fits");

enum rr_suffix_status { RR_SUFFIX_OK, RR_SUFFIX_NOT_OFFERED, RR_SUFFIX_NO_MEMORY };

struct rr_suffix {
	unsigned modes;          /* enum rpcrdma_mode: requested, or granted */
	uint8_t status;          /* reason if not all requested modes are granted */
	uint32_t slot_bytes;     /* maximum payload of a slot */
	uint16_t slots;          /* number of slots: requested, or granted */
	uint32_t handle;         /* granted: key and address of the slots */
	uint64_t offset;
	uint32_t grant_max;      /* granted: maximum size of an announced buffer */
};

/** rr_suffix_encode - encodes @s, which follows the RFC 8797 bytes of private data */
void rr_suffix_encode(const struct rr_suffix *s, uint8_t out[RR_SUFFIX_BYTES]);

/** rr_suffix_decode - decodes the suffix behind the RFC 8797 bytes of private data
 * Return: false if there is no suffix, or an unknown one */
must_check bool rr_suffix_decode(const void *priv, size_t len, struct rr_suffix *ret);

#endif
