/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * posix_acl.c - converts POSIX access control lists between NFSACL and extended attributes
 *
 * Operation: the kernel stores lists under system.posix_acl_access in a layout defined by its headers
 *            (<linux/posix_acl_xattr.h>): little-endian entries in the order of their tags. libacl would
 *            parse the same bytes into its own type with an accessor per entry, and opens files only by
 *            path; so this code is shorter without it.
 *            Solaris requires a mask in every list. A list of three entries is sent with a fourth, a mask
 *            equal to the group's entry. A list received in that form is stored as three entries, because
 *            chmod would otherwise change the mask instead of the group.
 * Memory:    the caller's.
 * Threads:   any.
 * Errors:    -EINVAL for data from a caller, -EIO for data from a file system.
 */
#include "posix_acl.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>

#define PERMS 7u

_Static_assert(sizeof(struct posix_acl_xattr_header) == 4 &&
		       sizeof(struct posix_acl_xattr_entry) == 8,
	       "ACL_XATTR_MAX");

static uint32_t tag_of(const struct posix_acl_xattr_entry *e)
{
	return le16toh(e->e_tag);
}

/* the numbers of the tags have the order that the kernel requires */
static int compare(const void *a, const void *b)
{
	const struct posix_acl_xattr_entry *x = a, *y = b;
	uint32_t xid = le32toh(x->e_id), yid = le32toh(y->e_id);

	if (tag_of(x) != tag_of(y))
		return tag_of(x) < tag_of(y) ? -1 : 1;
	return xid < yid ? -1 : xid > yid;
}

static bool has_id(uint32_t tag)
{
	return tag == ACL_USER || tag == ACL_GROUP;
}

static int convert(const aclent *in, bool dflt, struct posix_acl_xattr_entry *out)
{
	uint32_t tag = dflt ? in->type & ~(uint32_t)NFS_ACL_DEFAULT : in->type;
	uint32_t perm = in->perm;
	uint32_t id = (uint32_t)ACL_UNDEFINED_ID;

	switch (tag) {
	case ACL_USER:
	case ACL_GROUP:
		id = in->id;
		if (id == (uint32_t)ACL_UNDEFINED_ID)
			return -EINVAL;
		break;
	case ACL_MASK:
		perm &= PERMS; /* Solaris sets other bits there, without meaning */
		break;
	case ACL_USER_OBJ:
	case ACL_GROUP_OBJ:
	case ACL_OTHER:
		break;
	default:
		return -EINVAL;
	}
	if (perm & ~PERMS)
		return -EINVAL;
	out->e_tag = htole16((uint16_t)tag);
	out->e_perm = htole16((uint16_t)perm);
	out->e_id = htole32(id);
	return 0;
}

/* Requires sorted entries: each list has the three basic entries, named entries require a mask, and there are no
 * duplicates. */
static bool is_whole(const struct posix_acl_xattr_entry *e, uint32_t n)
{
	uint32_t seen = 0, need = ACL_USER_OBJ | ACL_GROUP_OBJ | ACL_OTHER;

	for (uint32_t i = 0; i < n; i++) {
		if (i && !compare(&e[i - 1], &e[i]))
			return false;
		seen |= tag_of(&e[i]);
	}
	if (seen & (ACL_USER | ACL_GROUP))
		need |= ACL_MASK;
	return (seen & need) == need;
}

/* user, group, mask, other, with a mask that does not restrict the group */
static bool has_idle_mask(const struct posix_acl_xattr_entry *e, uint32_t n)
{
	return n == 4 && tag_of(&e[2]) == ACL_MASK && tag_of(&e[1]) == ACL_GROUP_OBJ &&
	       e[1].e_perm == e[2].e_perm;
}

int acl_to_xattr(const aclent *v, uint32_t n, bool dflt, struct acl_xattr *ret)
{
	const struct posix_acl_xattr_header head = { htole32(POSIX_ACL_XATTR_VERSION) };
	struct posix_acl_xattr_entry e[NFS_ACL_MAX_ENTRIES];

	if (n > NFS_ACL_MAX_ENTRIES)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		int err = convert(&v[i], dflt, &e[i]);

		if (err)
			return err;
	}
	ret->bytes = 0;
	if (!n)
		return 0;
	qsort(e, n, sizeof(e[0]), compare);
	if (!is_whole(e, n))
		return -EINVAL;
	if (has_idle_mask(e, n)) {
		e[2] = e[3];
		n--;
	}
	memcpy(ret->data, &head, sizeof(head));
	memcpy(ret->data + sizeof(head), e, n * sizeof(e[0]));
	ret->bytes = sizeof(head) + n * sizeof(e[0]);
	return 0;
}

/* Solaris requires the id in the owner's entries, although it is redundant */
static aclent entry_of(const struct posix_acl_xattr_entry *e, const struct statx *stx, bool dflt)
{
	uint32_t tag = tag_of(e), id = 0;

	if (tag == ACL_USER_OBJ)
		id = stx->stx_uid;
	else if (tag == ACL_GROUP_OBJ)
		id = stx->stx_gid;
	else if (has_id(tag))
		id = le32toh(e->e_id);
	return (aclent){
		.type = tag | (dflt ? NFS_ACL_DEFAULT : 0),
		.id = id,
		.perm = le16toh(e->e_perm) & PERMS,
	};
}

static uint32_t with_mask(aclent *v, uint32_t n, bool dflt)
{
	if (n != 3)
		return n;
	v[3] = v[2];
	v[2] = v[1];
	v[2].type = ACL_MASK | (dflt ? NFS_ACL_DEFAULT : 0u);
	v[2].id = 0;
	return 4;
}

int acl_from_xattr(const struct acl_xattr *x, const struct statx *stx, bool dflt, aclent *v,
		   uint32_t *ret_n)
{
	struct posix_acl_xattr_header head;
	struct posix_acl_xattr_entry e[NFS_ACL_MAX_ENTRIES];
	size_t n;

	if (!x->bytes) {
		*ret_n = 0;
		return 0;
	}
	if (x->bytes < sizeof(head) || x->bytes > sizeof(x->data) ||
	    (x->bytes - sizeof(head)) % sizeof(e[0]))
		return -EIO;
	memcpy(&head, x->data, sizeof(head));
	if (le32toh(head.a_version) != POSIX_ACL_XATTR_VERSION)
		return -EIO;
	n = (x->bytes - sizeof(head)) / sizeof(e[0]);
	memcpy(e, x->data + sizeof(head), n * sizeof(e[0]));
	for (size_t i = 0; i < n; i++)
		v[i] = entry_of(&e[i], stx, dflt);
	*ret_n = with_mask(v, (uint32_t)n, dflt);
	return 0;
}

uint32_t acl_from_mode(const struct statx *stx, aclent *v)
{
	v[0] = (aclent){ ACL_USER_OBJ, stx->stx_uid, stx->stx_mode >> 6 & PERMS };
	v[1] = (aclent){ ACL_GROUP_OBJ, stx->stx_gid, stx->stx_mode >> 3 & PERMS };
	v[2] = (aclent){ ACL_OTHER, 0, stx->stx_mode & PERMS };
	return with_mask(v, 3, false);
}
