/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * vfs_acl.c - reads and sets the access control lists of a file
 *
 * Operation: through /proc/self/fd, since no system call accepts an O_PATH descriptor. A caller that may
 *            read attributes may read lists. The kernel allows only the owner to change them, and keeps
 *            mode bits and list consistent.
 * Memory:    the caller's.
 * Threads:   workers.
 * Errors:    -errno. If the access list was set and the default list then finds no space, the access list stays set.
 */
#include <errno.h>
#include <sys/xattr.h>

#include "vfs_int.h"

static const char *name_of(bool dflt)
{
	return dflt ? "system.posix_acl_default" : "system.posix_acl_access";
}

int vfs_get_acl(const struct fh_obj *o, bool dflt, struct acl_xattr *ret)
{
	char buf[VFS_PROC_PATH];
	ssize_t n;

	if (S_ISLNK(o->stx.stx_mode))
		return -EOPNOTSUPP;
	n = getxattr(vfs_proc_path(o->fd, buf), name_of(dflt), ret->data, sizeof(ret->data));
	if (n < 0 && errno != ENODATA)
		return errno == ERANGE || errno == E2BIG ? -EIO : -errno;
	ret->bytes = n < 0 ? 0 : (size_t)n;
	return 0;
}

static int set_one(const struct fh_obj *o, bool dflt, const struct acl_xattr *x)
{
	char buf[VFS_PROC_PATH];
	const char *path = vfs_proc_path(o->fd, buf);

	if (x->bytes)
		return setxattr(path, name_of(dflt), x->data, x->bytes, 0) ? -errno : 0;
	/* without lists there is nothing to remove, which is no error */
	return removexattr(path, name_of(dflt)) && errno != ENODATA ? -errno : 0;
}

int vfs_set_acl(const struct fh_obj *o, const struct acl_xattr *access,
		const struct acl_xattr *dflt, const struct creds *cr)
{
	int err;

	if (S_ISLNK(o->stx.stx_mode))
		return -EOPNOTSUPP;
	if (dflt && !S_ISDIR(o->stx.stx_mode)) {
		if (dflt->bytes)
			return -EINVAL;
		dflt = NULL;
	}
	err = creds_assume(cr);
	if (err)
		return err;
	if (access) {
		vfs_lock_modes(); /* it sets the mode, too */
		err = set_one(o, false, access);
		vfs_unlock_modes();
	}
	if (!err && dflt)
		err = set_one(o, true, dflt);
	creds_resume();
	return err ? err : vfs_sync(o);
}
