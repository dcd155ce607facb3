/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * creds.h - who is calling, and acting as he would
 */
#ifndef LEAT_SERVER_CREDS_H
#define LEAT_SERVER_CREDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "export.h"
#include "rpcrdma.h"

/* AUTH_SYS has 16 and struct rpcrdma_peer RPCRDMA_GROUPS_MAX; those that look groups up (groups.h) may find more. No
 * token of Active Directory has more than 1015. */
#define CREDS_GROUPS_MAX 1024

/* What is beyond @ngroups is never looked at, and not set: this is large, and there is one per call. */
struct creds {
	bool anon;    /* said nothing about himself: the export's anonymous user */
	bool claimed; /* said it himself, by AUTH_SYS; nobody else did */
	uint32_t uid, gid;
	uint32_t ngroups;
	uint32_t groups[CREDS_GROUPS_MAX];
};

enum creds_flavor { /* RFC 5531 section 8.2 */
		    CREDS_AUTH_NONE = 0,
		    CREDS_AUTH_SYS = 1,
};

enum creds_auth_stat { /* RFC 5531 section 9: auth_stat, as far as we use it */
		       CREDS_AUTH_OK = 0,
		       CREDS_AUTH_BADCRED = 1,
		       CREDS_AUTH_REJECTEDCRED = 2,
		       CREDS_AUTH_TOOWEAK = 5,
};

/** creds_init - find out, once, before any other thread runs, whether calls can run as their callers
 *
 * Root may, and must be able to change the ids that file systems look at: whoever serves as root
 * without that would serve everybody as root.
 *
 * Return: 0; -EPERM: we are root and cannot (CAP_SETUID and CAP_SETGID are missing).
 */
int creds_init(void);

/** creds_can_assume - did creds_init() find that they can? Otherwise all is done as our own user */
bool creds_can_assume(void);

/** creds_parse_sys - the body of an AUTH_SYS credential (RFC 5531 appendix A)
 *
 * Return: 0; -EBADMSG: @ret is not to be looked at.
 */
int must_check creds_parse_sys(const uint8_t *body, uint32_t len, struct creds *ret);

/** creds_of_call - the caller before any squashing
 *
 * On the local fabric the kernel has said who is there. Only root may then speak for somebody else
 * by AUTH_SYS: whoever can become anyone may say so. On a network AUTH_SYS is believed, which is
 * all that AUTH_SYS is; export rules go by address.
 *
 * Return: CREDS_AUTH_OK, or why not
 */
enum creds_auth_stat must_check creds_of_call(const struct rpcrdma_req *req, struct creds *ret);

/** creds_squash - as the export sees him
 *
 * What is no id is nobody's: such a group is left out, and who claims to be such a user is anonymous.
 */
void creds_squash(struct creds *c, const struct export_conf *exp);

/** creds_has_group - is @gid his primary or one of the others? */
bool creds_has_group(const struct creds *c, uint32_t gid);

/** creds_hash - a keyed hash for caches of what he may do */
uint64_t creds_hash(const struct creds *c);

/** creds_stay - this thread is not to become anybody: creds_assume() only for who it is
 *
 * The kernel lets only those credentials use an RDMA device that opened it, and a thread that was somebody
 * else for a moment has others ever after, though they say the same.
 */
void creds_stay(void);

/** creds_assume - from here on file systems see this thread as @c; a worker's matter of some calls
 *
 * Without creds_can_assume() it does nothing.
 *
 * Return: 0; -EPERM: it did not work, and the thread is itself.
 */
int must_check creds_assume(const struct creds *c);

/** creds_has_cap - does this thread have a capability in effect, as who it is now? False if unknown */
bool creds_has_cap(unsigned cap);

/** creds_are_own - would creds_assume() change nothing? What the kernel grants this thread it grants @c */
bool creds_are_own(const struct creds *c);

/** creds_resume - be the server again, with errno as it was */
void creds_resume(void);

#endif
