/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpc_msg.h - ONC RPC call and reply headers (RFC 5531 section 9)
 *
 * Decoded bodies point into the message and are valid as long as it is.
 */
#ifndef RR_RPC_MSG_H
#define RR_RPC_MSG_H

#include "base/wire.h"
#include "base/util.h"
#include "proto.h"

struct rr_auth {
	uint32_t flavor;
	uint32_t len; /* <= RR_AUTH_BYTES_MAX */
	const uint8_t *body;
};

struct rr_rpc_call {
	uint32_t xid, rpcvers, prog, vers, proc;
	struct rr_auth cred, verf;
};

struct rr_rpc_reply {
	uint32_t xid;
	enum rr_reply_stat stat;
	uint32_t accept;         /* enum rr_accept_stat when accepted */
	uint32_t reject;         /* enum rr_reject_stat when denied */
	uint32_t low, high;      /* PROG_MISMATCH, RPC_MISMATCH */
	uint32_t why;            /* AUTH_ERROR: enum rr_auth_stat */
	struct rr_auth verf;
};

/** rr_rpc_put_call - encodes a call header; uses all fields, including rpcvers */
void rr_rpc_put_call(struct wire_put *p, const struct rr_rpc_call *c);

/** rr_rpc_get_call - parses a call header and leaves the cursor at the arguments
 *
 * Return: 0; -EBADMSG when it is not a call, is truncated, or a credential exceeds 400 bytes (the fields before
 * it are set); -EPROTONOSUPPORT when rpcvers is not 2 (xid is set; the rest is not parsed, since its meaning may differ
 * in another version).
 */
must_check int rr_rpc_get_call(struct wire_get *g, struct rr_rpc_call *c);

/** rr_rpc_put_reply - encodes a reply header, denied, or accepted with its verifier; results follow RR_SUCCESS */
void rr_rpc_put_reply(struct wire_put *p, const struct rr_rpc_reply *r);

/** rr_rpc_get_reply - parses a reply header and leaves the cursor at the results
 *
 * Return: 0, whatever the status in the reply (an unknown one is well-formed), or -EBADMSG when it is not a well-formed
 * reply.
 */
must_check int rr_rpc_get_reply(struct wire_get *g, struct rr_rpc_reply *r);

/** rr_rpc_errno - maps a reply header to an errno, as no other function does: 0 for success,
 * -EPROTONOSUPPORT (PROG_UNAVAIL, PROG_MISMATCH, RPC_MISMATCH), -EOPNOTSUPP (PROC_UNAVAIL),
 * -EINVAL (GARBAGE_ARGS), -EREMOTEIO (SYSTEM_ERR, anything unknown), -EACCES (AUTH_ERROR) */
int rr_rpc_errno(const struct rr_rpc_reply *r);

/** rr_rpc_strerror - maps a reply header to text, e.g. "program unavailable" */
const char *rr_rpc_strerror(const struct rr_rpc_reply *r);

/* AUTH_SYS body (RFC 5531 appendix A) */
struct rr_auth_sys {
	uint32_t stamp, uid, gid, ngids;
	uint32_t gids[16];
	uint32_t machine_len;
	char machine[256];
};

/** rr_rpc_put_auth_sys - encodes the body of an AUTH_SYS credential, without flavor and length
 * @s: uses machine_len bytes of machine
 * @cap: RR_AUTH_BYTES_MAX is always enough
 *
 * Return: its length, or -EMSGSIZE if @cap is too small, the name too long or the groups too many.
 */
must_check int rr_rpc_put_auth_sys(const struct rr_auth_sys *s, void *buf, size_t cap);

#endif
