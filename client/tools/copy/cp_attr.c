/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cp_attr.c - owner, mode, access control list and times of copies made by leat cp
 *
 * Operation:  Without -p, a file that is replaced keeps its owner, group, mode and list, except for the
 *             set-id bits, because they were given to the old content. With -p, a copy gets those of its
 *             source, as far as the user may set them, and set-id bits only together with the owner.
 *             Attributes are read from and set on open objects: in a directory of another user, a name may
 *             refer to another object by then. An object that was created or checked by name is compared
 *             after opening.
 * Memory:     A list on the stack.
 * Threads:    Any, each with its own struct cp.
 * Errors:     -errno; an attribute that cannot be kept is a warning if that is not a failure.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "cp.h"

#define SET_ID ((mode_t)(S_ISUID | S_ISGID))

/* Is @rc an errno of chown that a copy may ignore? */
static bool is_denied(int rc)
{
	return rc == -EPERM || rc == -EACCES || rc == -EINVAL || rc == -EOPNOTSUPP;
}

mode_t cp_new_mode(const struct cp *cp, const struct stat *st)
{
	/* data read from a pipe or device goes to a file with the default mode */
	if (!S_ISREG(st->st_mode) && (!cp->recursive || cp->from_std))
		return 0666 & ~cp->mask;
	return cp->preserve ? st->st_mode & 07777 : st->st_mode & 0777 & ~cp->mask;
}

/* Sets owner and group of @out to those of @st. Return: do they match now? */
static bool give_owner(struct fs_file *out, const struct stat *st)
{
	struct stat now;

	if (fs_fstat(out, &now))
		return false;
	if (now.st_uid == st->st_uid && now.st_gid == st->st_gid)
		return true;
	if (fs_fchown(out, now.st_uid == st->st_uid ? (uid_t)-1 : st->st_uid,
		      now.st_gid == st->st_gid ? (gid_t)-1 : st->st_gid))
		return false;
	/* a server may succeed and map the owner to another user */
	return !fs_fstat(out, &now) && now.st_uid == st->st_uid && now.st_gid == st->st_gid;
}

/* Reads the list of @f if its attributes match @st; closes @f. */
static int take_list(struct fs_file *f, const struct stat *st, struct fs_acl *ret)
{
	struct stat now;
	int rc;

	rc = fs_fstat(f, &now);
	if (!rc && (now.st_dev != st->st_dev || now.st_ino != st->st_ino || !S_ISREG(now.st_mode)))
		rc = -ESTALE;
	if (!rc)
		rc = fs_facl_get(f, ret);
	fs_drop(f);
	return rc;
}

/* Reads the list of the file @name if its attributes match @st. */
static int get_list(struct fs_base b, const char *name, const struct stat *st, struct fs_acl *ret)
{
	struct fs_file f;
	int rc;

	rc = fs_open_object(b, name, &f);
	if (!rc)
		rc = take_list(&f, st, ret);
	if (rc != -ENOENT || b.m)
		return rc;
	/* without /proc, reading the list needs a file open for reading */
	b.no_links = true;
	rc = fs_open(b, name, O_RDONLY | O_NONBLOCK, 0, &f);
	return rc ? rc : take_list(&f, st, ret);
}

bool cp_keep_attributes(const struct cp *cp, const char *name, const struct stat *old,
			struct fs_file *out)
{
	struct fs_acl acl;
	struct stat now;

	/* a server that does not return a list may still have one */
	if (get_list(cp->to_base, name, old, &acl) || !give_owner(out, old) || fs_facl_set(out, &acl))
		return false;
	if (old->st_mode & S_ISVTX && fs_fchmod(out, old->st_mode & 07777 & ~SET_ID))
		return false;
	return !fs_fstat(out, &now) && (now.st_mode & 07777) == (old->st_mode & 07777 & ~SET_ID);
}

bool cp_take_owner(struct fs_file *out, const struct stat *st, const struct stat *old)
{
	struct stat now;

	if (give_owner(out, st))
		return true;
	return !old || (!fs_fstat(out, &now) && now.st_uid == old->st_uid && now.st_gid == old->st_gid);
}

int cp_clear_set_id(struct fs_file *out, bool last)
{
	struct stat st;
	int rc;

	rc = fs_fstat(out, &st);
	/* without group execute, the set-gid bit means mandatory locking and grants nothing */
	if (rc || !S_ISREG(st.st_mode) ||
	    !(st.st_mode & S_ISUID || (st.st_mode & S_ISGID && st.st_mode & S_IXGRP)))
		return rc;
	rc = fs_fchmod(out, st.st_mode & 07777 & ~SET_ID);
	/* if this user may not do it, writing clears the bits */
	return last ? rc : 0;
}

/* NFS version 3 stores seconds as unsigned 32 bits. */
static bool can_store(const struct cp *cp, const struct timespec *t)
{
	return !cp->to_t.m || (t->tv_sec >= 0 && t->tv_sec <= (time_t)UINT32_MAX);
}

/* Selects the times that can be set; Return: is there any? */
static bool choose_times(struct cp *cp, const struct stat *st, struct timespec ret[2])
{
	const struct timespec omit = { .tv_nsec = UTIME_OMIT };
	bool atime = can_store(cp, &st->st_atim), mtime = can_store(cp, &st->st_mtim);

	ret[0] = atime ? st->st_atim : omit;
	ret[1] = mtime ? st->st_mtim : omit;
	if (!atime || !mtime)
		cp_say(cp, COPY_TO, "times before 1970 or after 2106 are not kept, NFS version 3 cannot store them");
	return atime || mtime;
}

/* The target has no list support: restricts @mode to what the list of the source grants. */
static void limit_mode(struct cp *cp, const struct fs_acl *acl, mode_t *mode)
{
	*mode = (*mode & ~(mode_t)0777) | fs_acl_mode(acl);
	cp_say(cp, COPY_TO, "the access control list is not kept, there are none");
}

int cp_preserve(struct cp *cp, struct fs_file *in, struct fs_file *out, const struct stat *st,
		enum copy_side *side)
{
	mode_t mode = st->st_mode & 07777;
	struct timespec times[2];
	struct fs_acl acl;
	int rc;

	if (!give_owner(out, st))
		mode &= ~SET_ID; /* not for another owner */
	rc = fs_facl_get(in, &acl);
	if (rc == -EOPNOTSUPP) {
		fs_acl_from_mode(mode, &acl);
		rc = 0;
	}
	*side = rc ? COPY_FROM : COPY_TO;
	if (rc)
		return rc;
	rc = fs_facl_set(out, &acl);
	if (rc == -EOPNOTSUPP) {
		limit_mode(cp, &acl, &mode);
		rc = fs_fchmod(out, mode);
	} else if (!rc && (S_ISDIR(st->st_mode) || mode & ~(mode_t)0777)) {
		/* a directory may inherit set-id bits from its parent */
		rc = fs_fchmod(out, mode);
	}
	if (!rc && choose_times(cp, st, times))
		rc = fs_futimens(out, times);
	return rc;
}

/* An object with several names may have existed before; some file systems do not count links. */
static bool is_made(const struct stat *now, const struct stat *st)
{
	return (now->st_mode & S_IFMT) == (st->st_mode & S_IFMT) && now->st_nlink <= 1 &&
	       (!(S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode)) || now->st_rdev == st->st_rdev);
}

static int preserve_opened(struct cp *cp, struct fs_file *out, const struct stat *st)
{
	struct timespec times[2];
	struct stat now;
	int rc;

	rc = fs_fstat(out, &now);
	if (!rc && !is_made(&now, st))
		rc = -ESTALE;
	if (rc)
		return rc;
	rc = fs_fchown(out, st->st_uid, st->st_gid);
	if (is_denied(rc))
		rc = 0;
	if (!rc && !S_ISLNK(st->st_mode))
		rc = fs_fchmod(out, st->st_mode & 07777 & ~SET_ID);
	if (!rc && choose_times(cp, st, times))
		rc = fs_futimens(out, times);
	return rc;
}

int cp_preserve_other(struct cp *cp, const char *name, const struct stat *st)
{
	struct fs_file f;
	int rc;

	rc = fs_open_object(cp->to_base, name, &f);
	if (rc)
		return rc;
	rc = preserve_opened(cp, &f, st);
	fs_drop(&f);
	return rc;
}
