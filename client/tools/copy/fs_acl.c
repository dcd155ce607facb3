/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fs_acl.c - access control lists of local files and files on a server
 *
 * Operation:  libleat accesses lists on a server. Local lists are extended attributes of the kernel
 *             (<linux/posix_acl_xattr.h>): little-endian entries in the order of their tags.
 * Memory:     The caller's.
 * Threads:    Any.
 * Errors:     0 or -errno, never logged here.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include <linux/posix_acl_xattr.h>

#include "fs.h"

#define ATTR "system.posix_acl_access"

struct bytes {
	struct posix_acl_xattr_header head;
	struct posix_acl_xattr_entry v[LEAT_ACL_MAX];
};

static bool is_named(uint16_t tag)
{
	return tag == LEAT_ACL_USER || tag == LEAT_ACL_GROUP;
}

void fs_acl_from_mode(mode_t mode, struct fs_acl *ret)
{
	ret->n = 3;
	ret->v[0] = (struct leat_acl_entry){ LEAT_ACL_USER_OBJ, (uint16_t)(mode >> 6 & 7), 0 };
	ret->v[1] = (struct leat_acl_entry){ LEAT_ACL_GROUP_OBJ, (uint16_t)(mode >> 3 & 7), 0 };
	ret->v[2] = (struct leat_acl_entry){ LEAT_ACL_OTHER, (uint16_t)(mode & 7), 0 };
}

mode_t fs_acl_mode(const struct fs_acl *acl)
{
	uint16_t mask = 7;
	mode_t mode = 0;

	for (size_t i = 0; i < acl->n; i++) {
		if (acl->v[i].tag == LEAT_ACL_MASK)
			mask = acl->v[i].perm;
	}
	for (size_t i = 0; i < acl->n; i++) {
		const struct leat_acl_entry *e = &acl->v[i];

		if (e->tag == LEAT_ACL_USER_OBJ)
			mode |= (mode_t)e->perm << 6;
		else if (e->tag == LEAT_ACL_GROUP_OBJ)
			mode |= (mode_t)(e->perm & mask) << 3;
		else if (e->tag == LEAT_ACL_OTHER)
			mode |= e->perm;
	}
	return mode;
}

/* @n: result of getxattr(), with errno still set */
static int decode(const struct bytes *b, ssize_t n, mode_t mode, struct fs_acl *ret)
{
	size_t count;

	if (n < 0) {
		if (errno != ENODATA && errno != EOPNOTSUPP)
			return tool_errno("getxattr");
		fs_acl_from_mode(mode, ret);
		return 0;
	}
	count = ((size_t)n - sizeof(b->head)) / sizeof(b->v[0]);
	if ((size_t)n < sizeof(b->head) || le32toh(b->head.a_version) != POSIX_ACL_XATTR_VERSION ||
	    (size_t)n != sizeof(b->head) + count * sizeof(b->v[0]))
		return -EIO;
	for (size_t i = 0; i < count; i++) {
		struct leat_acl_entry *e = &ret->v[i];

		e->tag = le16toh(b->v[i].e_tag);
		e->perm = le16toh(b->v[i].e_perm);
		e->id = is_named(e->tag) ? le32toh(b->v[i].e_id) : 0;
	}
	ret->n = count;
	return 0;
}

static size_t encode(const struct fs_acl *acl, struct bytes *ret)
{
	ret->head.a_version = htole32(POSIX_ACL_XATTR_VERSION);
	for (size_t i = 0; i < acl->n; i++) {
		const struct leat_acl_entry *e = &acl->v[i];

		ret->v[i].e_tag = htole16(e->tag);
		ret->v[i].e_perm = htole16(e->perm);
		ret->v[i].e_id = htole32(is_named(e->tag) ? e->id : (uint32_t)ACL_UNDEFINED_ID);
	}
	return sizeof(ret->head) + acl->n * sizeof(ret->v[0]);
}

static int compare(const void *a, const void *b)
{
	const struct leat_acl_entry *x = a, *y = b;

	if (x->tag != y->tag)
		return x->tag < y->tag ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* Sorts a list from a server; the kernel requires the order of the tags. */
static int take(ssize_t n, struct fs_acl *ret)
{
	if (n < 0)
		return (int)n;
	ret->n = (size_t)n;
	qsort(ret->v, ret->n, sizeof(ret->v[0]), compare);
	return 0;
}

int fs_facl_get(struct fs_file *f, struct fs_acl *ret)
{
	char path[FS_PROC_BYTES];
	struct bytes bytes;
	struct stat st;
	ssize_t n;

	if (f->m)
		return take(leat_facl_get(f->remote, ret->v, LEAT_ACL_MAX), ret);
	if (fstat(f->fd, &st))
		return -errno;
	n = f->is_object ? getxattr(fs_proc_path(f, path), ATTR, &bytes, sizeof(bytes)) :
			   fgetxattr(f->fd, ATTR, &bytes, sizeof(bytes));
	return decode(&bytes, n, st.st_mode, ret);
}

static int set_local(struct fs_file *f, const struct fs_acl *acl)
{
	char path[FS_PROC_BYTES];
	struct bytes bytes;
	size_t len = encode(acl, &bytes);
	int rc = f->is_object ? setxattr(fs_proc_path(f, path), ATTR, &bytes, len, 0) :
				fsetxattr(f->fd, ATTR, &bytes, len, 0);

	return rc ? tool_errno("setxattr") : 0;
}

int fs_facl_set(struct fs_file *f, const struct fs_acl *acl)
{
	int rc = f->m ? leat_facl_set(f->remote, acl->v, acl->n) : set_local(f, acl);

	/* without list support, the mode suffices for a list of three entries */
	return rc == -EOPNOTSUPP && acl->n == 3 ? fs_fchmod(f, fs_acl_mode(acl)) : rc;
}
