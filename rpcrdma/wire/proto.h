/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * proto.h - constants of RPC-over-RDMA version 1 (RFC 8166), its private data (RFC 8797), ONC RPC (RFC 5531),
 * and our limits for a peer
 */
#ifndef RR_PROTO_H
#define RR_PROTO_H

#define RR_VERS 1u

enum rr_proc { RR_MSG = 0, RR_NOMSG = 1, RR_MSGP = 2, RR_DONE = 3, RR_ERROR = 4 };
enum rr_err { RR_ERR_VERS = 1, RR_ERR_CHUNK = 2 };

#define RR_HDR_MIN 28u            /* fixed part and three empty lists */
#define RR_HDR_FIXED 16u
#define RR_ERR_CHUNK_BYTES 20u
#define RR_ERR_VERS_BYTES 28u
#define RR_SEGMENT_BYTES 16u
#define RR_READ_SEG_BYTES 24u     /* discriminator, position, segment */
#define RR_CHUNK_HEAD_BYTES 8u    /* discriminator, count: Write chunk or Reply chunk */

#define RR_PORT 20049u
#define RR_INLINE_DEFAULT 1024u   /* RFC 8166 section 3.3.2: without private data */
#define RR_INLINE_MIN 1024u
#define RR_INLINE_MAX 65536u      /* a byte of private data can express up to 256 KiB */

/* RFC 8797 section 4 */
#define RR_PRIV_BYTES 8u
#define RR_PRIV_MORE_BYTES 32u /* upper bound of private data between peers of ours, which follows */
#define RR_PRIV_MAGIC 0xf6ab0e18u
#define RR_PRIV_VERSION 1u
#define RR_PRIV_REMOTE_INV 0x01u

/* Limits of one message from a peer; more is ERR_CHUNK before any transfer. */
#define RR_READ_SEGS_MAX 64u
#define RR_CHUNK_SEGS_MAX 64u
#define RR_WRITE_CHUNKS_MAX 2u
#define RR_CALL_BYTES_MAX (1048576u + 4096u + 4096u) /* un-reduced call: 1 MiB, credentials, slack */

/* RFC 5531 */
enum rr_rpc_dir { RR_RPC_CALL = 0, RR_RPC_REPLY = 1 };
enum rr_reply_stat { RR_ACCEPTED = 0, RR_DENIED = 1 };
enum rr_accept_stat {
	RR_SUCCESS = 0,
	RR_PROG_UNAVAIL = 1,
	RR_PROG_MISMATCH = 2,
	RR_PROC_UNAVAIL = 3,
	RR_GARBAGE_ARGS = 4,
	RR_SYSTEM_ERR = 5,
};
enum rr_reject_stat { RR_RPC_MISMATCH = 0, RR_AUTH_ERROR = 1 };
enum rr_auth_stat {
	RR_AUTH_OK = 0,
	RR_AUTH_BADCRED = 1,
	RR_AUTH_REJECTEDCRED = 2,
	RR_AUTH_BADVERF = 3,
	RR_AUTH_REJECTEDVERF = 4,
	RR_AUTH_TOOWEAK = 5,
};
enum rr_auth_flavor { RR_AUTH_NONE = 0, RR_AUTH_SYS = 1 };

#define RR_RPC_VERS 2u
#define RR_MARK_BYTES 4u           /* over TCP, section 11: mark in front of a fragment of a record ... */
#define RR_MARK_LAST 0x80000000u   /* ... and that of the last one */
#define RR_AUTH_BYTES_MAX 400u
#define RR_RPC_REPLY_HDR_BYTES 24u /* accepted, AUTH_NONE verifier, status */

#endif
