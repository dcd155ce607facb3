/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * creds.h - determines the caller's credentials, and runs system calls with them
 */
#ifndef LEAT_SERVER_CREDS_H
#define LEAT_SERVER_CREDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "export.h"
#include "rpcrdma.h"

/* Limit of groups. AUTH_SYS has 16 and struct rpcrdma_peer RPCRDMA_GROUPS_MAX; group lookups (groups.h) may find
 * more. Active Directory tokens have at most 1015. */
#define CREDS_GROUPS_MAX 1024

/* Groups beyond @ngroups are never read or set, because this structure is large and exists once per call. */
struct creds {
	bool anon;    /* no identity given: the export's anonymous user */
	bool claimed; /* identity only claimed by AUTH_SYS, not verified */
	uint32_t uid, gid;
	uint32_t ngroups;
	uint32_t groups[CREDS_GROUPS_MAX];
};

enum creds_flavor { /* RFC 5531 section 8.2 */
		    CREDS_AUTH_NONE = 0,
		    CREDS_AUTH_SYS = 1,
};

enum creds_auth_stat { /* RFC 5531 section 9: auth_stat, the values used here */
		       CREDS_AUTH_OK = 0,
		       CREDS_AUTH_BADCRED = 1,
		       CREDS_AUTH_REJECTEDCRED = 2,
		       CREDS_AUTH_TOOWEAK = 5,
};

/** creds_init - determines, once, before any other thread runs, whether requests can run with the caller's uid and gid
 *
 * They can if this process is root. Root must then be able to change the ids that file systems check; otherwise all
 * requests would run as root.
 *
 * Return: 0; -EPERM: running as root without CAP_SETUID and CAP_SETGID.
 */
int creds_init(void);

/** creds_can_assume - did creds_init() find that they can? Otherwise all requests run as the server's own user */
bool creds_can_assume(void);

/** creds_parse_sys - parses the body of an AUTH_SYS credential (RFC 5531 appendix A)
 *
 * Return: 0; -EBADMSG: @ret is invalid.
 */
int must_check creds_parse_sys(const uint8_t *body, uint32_t len, struct creds *ret);

/** creds_of_call - gets the caller's credentials before any squashing
 *
 * On the local fabric the kernel identifies the peer. Only root may then use AUTH_SYS to act as another user, because
 * root can become any user anyway. On a network AUTH_SYS is believed without proof; export rules go by address.
 *
 * Return: CREDS_AUTH_OK, or the reason of a refusal
 */
enum creds_auth_stat must_check creds_of_call(const struct rpcrdma_req *req, struct creds *ret);

/** creds_squash - maps the credentials as the export requires
 *
 * The invalid id -1 is not passed on: such a group is removed, and a caller that claims to be such a user becomes
 * anonymous.
 */
void creds_squash(struct creds *c, const struct export_conf *exp);

/** creds_has_group - is @gid the primary or a supplementary group? */
bool creds_has_group(const struct creds *c, uint32_t gid);

/** creds_hash - a keyed hash of the credentials, for caches of access rights */
uint64_t creds_hash(const struct creds *c);

/** creds_stay - forbids this thread to change its identity: creds_assume() then works only for the thread's own
 *
 * The kernel lets an RDMA device be used only with the credentials that opened it. A thread that changed its identity
 * has different credentials ever after, even with the same ids.
 */
void creds_stay(void);

/** creds_assume - from here on file systems see this thread as @c; for workers
 *
 * Without creds_can_assume() it does nothing.
 *
 * Return: 0; -EPERM: it failed, and the thread has its own identity.
 */
int must_check creds_assume(const struct creds *c);

/** creds_has_cap - does this thread have a capability in effect, with its current identity? False if unknown */
bool creds_has_cap(unsigned cap);

/** creds_are_own - would creds_assume() change nothing? Then @c has the same rights as this thread */
bool creds_are_own(const struct creds *c);

/** creds_resume - restores the server's identity; keeps errno */
void creds_resume(void);

#endif
