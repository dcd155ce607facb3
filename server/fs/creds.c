/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * creds.c - determines the caller's credentials, and runs system calls with them
 *
 * Operation: req.c calls creds_of_call() once for each call, and its program creds_squash(). Workers bracket the
 *            system calls that need the caller's rights with creds_assume()/_resume(). So the kernel itself
 *            applies mode bits, ACLs, quotas and capabilities, and sets the owner of new files; this file
 *            does not copy its rules.
 * Memory:    the caller's only.
 * Threads:   in Linux, identity is a property of a thread. `assumed` says whether this thread has an
 *            identity other than its own. glibc's setuid() family changes all threads of a process, so raw
 *            system calls are used. Leaving fsuid 0 removes the file system capabilities from the
 *            effective set, returning restores them (capabilities(7)); so handles are opened before
 *            creds_assume(). CAP_SYS_RESOURCE, which overrides quotas and file system reserves, is not one
 *            of these. Threads drop it, and have it only while they act as root.
 * Errors:    setfsuid() cannot report failure; a second call reads the result back.
 */
#include "creds.h"

#include <assert.h>
#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/siphash.h"
#include "base/wire.h"

#define MACHINE_NAME_MAX 255
#define SYS_GROUPS_MAX 16

static bool can_assume;
static gid_t own_gid;
static _Thread_local bool assumed, exceeding, stays;
static struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3]; /* of this process, at the start */
static struct siphash_key hash_key;

/* May this thread exceed quotas? */
static bool exceed(bool may)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3], *d;

	memcpy(data, caps, sizeof(data));
	d = &data[CAP_TO_INDEX(CAP_SYS_RESOURCE)];
	d->effective &= ~CAP_TO_MASK(CAP_SYS_RESOURCE);
	if (may)
		d->effective |= d->permitted & CAP_TO_MASK(CAP_SYS_RESOURCE);
	return !syscall(SYS_capset, &hdr, data);
}

int creds_init(void)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct creds other = {
		.uid = EXPORT_ANON_ID,
		.gid = EXPORT_ANON_ID,
	};
	gid_t groups[65536 / sizeof(gid_t)];
	int n;

	if (getrandom(&hash_key, sizeof(hash_key), 0) != (ssize_t)sizeof(hash_key))
		memset(&hash_key, 0x5a, sizeof(hash_key)); /* early boot: weaker, not broken */
	can_assume = false;
	own_gid = getegid();
	if (geteuid() != 0)
		return 0;
	n = getgroups((int)ARRAY_SIZE(groups), groups);
	can_assume = true;
	can_assume = creds_assume(&other) == 0;
	creds_resume();
	if (n >= 0) /* only this thread was changed; the others inherit from it */
		(void)syscall(SYS_setgroups, (size_t)n, groups);
	can_assume = can_assume && !syscall(SYS_capget, &hdr, caps) && exceed(false);
	return can_assume ? 0 : -EPERM;
}

bool creds_can_assume(void)
{
	return can_assume;
}

int creds_parse_sys(const uint8_t *body, uint32_t len, struct creds *ret)
{
	struct wire_get g;
	uint32_t n;

	wire_get_init(&g, body, len);
	(void)wire_get_u32(&g); /* stamp */
	n = wire_get_u32(&g);
	if (n > MACHINE_NAME_MAX)
		return -EBADMSG;
	(void)wire_get_bytes(&g, round_up4(n));
	ret->anon = false;
	ret->claimed = true;
	ret->uid = wire_get_u32(&g);
	ret->gid = wire_get_u32(&g);
	ret->ngroups = wire_get_u32(&g);
	if (!wire_get_ok(&g) || ret->ngroups > SYS_GROUPS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < ret->ngroups; i++)
		ret->groups[i] = wire_get_u32(&g);
	return wire_get_ok(&g) && !wire_get_left(&g) ? 0 : -EBADMSG;
}

static void from_kernel(const struct rpcrdma_peer *peer, struct creds *c)
{
	c->anon = c->claimed = false;
	c->uid = peer->uid;
	c->gid = peer->gid;
	_Static_assert(RPCRDMA_GROUPS_MAX <= CREDS_GROUPS_MAX, "all of them fit");
	c->ngroups = peer->ngroups;
	for (uint32_t i = 0; i < c->ngroups; i++)
		c->groups[i] = peer->groups[i];
}

enum creds_auth_stat creds_of_call(const struct rpcrdma_req *req, struct creds *ret)
{
	const struct rpcrdma_peer *peer = req->peer;

	switch (req->cred_flavor) {
	case CREDS_AUTH_NONE:
		if (req->cred_len)
			return CREDS_AUTH_BADCRED;
		ret->anon = true;
		ret->claimed = false;
		ret->uid = ret->gid = UINT32_MAX; /* creds_squash() replaces them */
		ret->ngroups = 0;
		break;
	case CREDS_AUTH_SYS:
		if (creds_parse_sys(req->cred_body, req->cred_len, ret))
			return CREDS_AUTH_BADCRED;
		break;
	default:
		return CREDS_AUTH_REJECTEDCRED;
	}
	if (peer->has_cred && (peer->uid != 0 || ret->anon))
		from_kernel(peer, ret);
	return CREDS_AUTH_OK;
}

void creds_squash(struct creds *c, const struct export_conf *exp)
{
	/* (uint32_t)-1 is not an id: setfsuid() would keep the server's own */
	bool bogus = c->uid == UINT32_MAX || c->gid == UINT32_MAX;
	uint32_t n = 0;

	if (c->anon || bogus || exp->squash == EXPORT_SQUASH_ALL) {
		c->anon = true;
		c->uid = exp->anonuid;
		c->gid = exp->anongid;
		c->ngroups = 0;
		return;
	}
	for (uint32_t i = 0; i < c->ngroups; i++) {
		if (c->groups[i] != UINT32_MAX)
			c->groups[n++] = c->groups[i];
	}
	c->ngroups = n;
	if (exp->squash == EXPORT_SQUASH_NONE)
		return;
	if (c->uid == 0)
		c->uid = exp->anonuid;
	if (c->gid == 0)
		c->gid = exp->anongid;
	for (uint32_t i = 0; i < c->ngroups; i++) {
		if (c->groups[i] == 0)
			c->groups[i] = exp->anongid;
	}
}

bool creds_has_group(const struct creds *c, uint32_t gid)
{
	if (c->gid == gid)
		return true;
	for (uint32_t i = 0; i < c->ngroups; i++) {
		if (c->groups[i] == gid)
			return true;
	}
	return false;
}

_Static_assert(sizeof(struct creds) == offsetof(struct creds, uid) + 4 * (3 + CREDS_GROUPS_MAX),
	       "uid, gid, number of groups and groups lie one behind the other");

uint64_t creds_hash(const struct creds *c)
{
	size_t from = offsetof(struct creds, uid), head = offsetof(struct creds, groups) - from;

	return siphash(&hash_key, (const uint8_t *)c + from, head + c->ngroups * sizeof(c->groups[0]));
}

bool creds_has_cap(unsigned cap)
{
	return caps_has(cap, false);
}

bool creds_are_own(const struct creds *c)
{
	/* root in the server's own group is the server's identity, which needs no supplementary groups */
	return !can_assume || (c->uid == 0 && c->gid == own_gid);
}

void creds_stay(void)
{
	stays = true;
}

int creds_assume(const struct creds *c)
{
	if (stays && creds_are_own(c))
		return 0;
	assert(!stays);
	if (can_assume && c->uid == 0)
		exceeding = exceed(true);
	if (creds_are_own(c))
		return 0;
	if (!syscall(SYS_setgroups, (size_t)c->ngroups, c->groups)) {
		assumed = true;
		(void)syscall(SYS_setfsgid, c->gid);
		(void)syscall(SYS_setfsuid, c->uid);
		if (syscall(SYS_setfsuid, -1) == (long)c->uid &&
		    syscall(SYS_setfsgid, -1) == (long)c->gid)
			return 0;
	}
	creds_resume();
	return -EPERM;
}

void creds_resume(void)
{
	int saved = errno;

	if (assumed) {
		/* the supplementary groups may stay: fsuid 0 does not need any */
		(void)syscall(SYS_setfsuid, 0);
		(void)syscall(SYS_setfsgid, own_gid);
		assumed = false;
	}
	if (exceeding)
		exceeding = !exceed(false);
	errno = saved;
}
