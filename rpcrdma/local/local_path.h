/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_path.h - checks whether a local socket is safe to connect to if the user did not configure its path
 */
#ifndef RR_LOCAL_PATH_H
#define RR_LOCAL_PATH_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/util.h"

/* Users that may listen on a socket, and that may own or change any part of its path. */
struct rr_trust {
	uid_t uids[3];
	unsigned nuids;
	char why[128];   /* receives the reason of a refusal */
};

#define RR_TRUST_UID_BYTES 40

/* What other users can do to the entries of a directory. */
enum rr_dir_safety {
	RR_DIR_SAFE,     /* nothing */
	RR_DIR_STICKY,   /* add entries, and remove or replace their own */
	RR_DIR_OWNER,    /* its owner is not trusted and can replace any entry */
	RR_DIR_WRITABLE, /* others can replace any entry */
};

/** rr_trust_init - trusts root, the process's effective user unless it is the overflow uid 65534, and @other
 * @other: 0: no other user
 */
void rr_trust_init(struct rr_trust *t, uid_t other);

/** rr_trust_print_uid - prints "uid N"; marks the overflow uid 65534, which also stands for all users that a user
 * namespace does not map. Return: @buf */
const char *rr_trust_print_uid(uid_t uid, char buf[RR_TRUST_UID_BYTES]);

/** rr_trust_has - returns whether @uid is trusted */
bool rr_trust_has(const struct rr_trust *t, uid_t uid);

/** rr_dir_judge - returns what users outside @t can do to entries of the directory @st */
enum rr_dir_safety rr_dir_judge(const struct rr_trust *t, const struct stat *st);

/** rr_local_path_open - opens the socket at @path, if no user outside @t can replace an entry of the path
 * @path: absolute
 * @ret_fd: the socket file, O_PATH; connect to /proc/thread-self/fd/N reaches this file even if the path
 *          changes
 *
 * Every directory from the root on, including those of symbolic link targets, must be RR_DIR_SAFE. It may
 * be RR_DIR_STICKY if a user of @t owns the entry that is used.
 *
 * Return: 0; -EPERM: another user could replace an entry (@t->why names the user and the place); -ENOTSOCK;
 * -ENOENT, -ENOTDIR, -EACCES, -ELOOP, -ENAMETOOLONG, -EMFILE, ...: from open(); -EINVAL: @path is
 * relative.
 */
must_check int rr_local_path_open(const char *path, struct rr_trust *t, int *ret_fd);

#endif
