/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * posix_acl.h - converts POSIX access control lists between NFSACL and extended attributes
 */
#ifndef LEAT_SERVER_ACL_H
#define LEAT_SERVER_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/util.h"
#include "nfsacl.h"

/* struct posix_acl_xattr_header and an entry of 8 bytes each, of <linux/posix_acl_xattr.h> */
#define ACL_XATTR_MAX (4u + 8u * NFS_ACL_MAX_ENTRIES)

/* A list in the format of the kernel's extended attribute. */
struct acl_xattr {
	size_t bytes; /* 0: no list */
	uint8_t data[ACL_XATTR_MAX];
};

/** acl_to_xattr - converts entries from an untrusted caller to the kernel's format
 * @v, @n: in any order; 0 entries: no list
 * @dflt: a default list; its entries may carry NFS_ACL_DEFAULT or not
 *
 * Return: 0; -EINVAL: unknown type, invalid rights or ids, duplicate entries, or a missing mandatory entry.
 */
int must_check acl_to_xattr(const aclent *v, uint32_t n, bool dflt, struct acl_xattr *ret);

/** acl_from_xattr - converts the kernel's format to entries
 * @stx: attributes of the file, for the ids in the owner's entries
 * @v: room for NFS_ACL_MAX_ENTRIES
 *
 * Return: 0; -EIO: the attribute is invalid, or has too many entries.
 */
int must_check acl_from_xattr(const struct acl_xattr *x, const struct statx *stx, bool dflt,
			      aclent *v, uint32_t *ret_n);

/** acl_from_mode - makes the entries of a file that has only mode bits
 * @v: room for four
 *
 * Return: their number.
 */
uint32_t acl_from_mode(const struct statx *stx, aclent *v);

#endif
