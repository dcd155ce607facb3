/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * posix_acl.h - POSIX access control lists: NFSACL's entries and the kernel's extended attribute
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

/* A list as the kernel keeps it in an attribute. */
struct acl_xattr {
	size_t bytes; /* 0: there is none */
	uint8_t data[ACL_XATTR_MAX];
};

/** acl_to_xattr - entries of a caller, whom nobody trusts, as the kernel wants them
 * @v, @n: in any order; none at all is no list
 * @dflt: a default list; its entries may carry NFS_ACL_DEFAULT or not
 *
 * Return: 0; -EINVAL: an unknown type, rights or ids that there are not, two for the same, or one of
 * those missing that every list has.
 */
int must_check acl_to_xattr(const aclent *v, uint32_t n, bool dflt, struct acl_xattr *ret);

/** acl_from_xattr - and back
 * @stx: whose list it is: the owner's entries name him
 * @v: room for NFS_ACL_MAX_ENTRIES
 *
 * Return: 0; -EIO: the attribute is none that the kernel could have made, or has too many entries.
 */
int must_check acl_from_xattr(const struct acl_xattr *x, const struct statx *stx, bool dflt,
			      aclent *v, uint32_t *ret_n);

/** acl_from_mode - the entries of a file that has nothing but mode bits
 * @v: room for four
 *
 * Return: how many.
 */
uint32_t acl_from_mode(const struct statx *stx, aclent *v);

#endif
