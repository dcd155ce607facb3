/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_path.h - which local sockets are safe to connect to without having been told their path
 */
#ifndef RR_LOCAL_PATH_H
#define RR_LOCAL_PATH_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/util.h"

/* The users who may listen on a socket, and who may own or change any part of its path. */
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
	RR_DIR_OWNER,    /* its owner, who is not trusted, can replace any */
	RR_DIR_WRITABLE, /* others can replace any */
};

/** rr_trust_init - trusts root, the process's effective user unless it is 65534 (nobody), and @other
 * @other: 0 for no one else
 */
void rr_trust_init(struct rr_trust *t, uid_t other);

/** rr_trust_print_uid - print "uid N"; of the uid that stands for nobody, and for every user whom a user
 * namespace does not map, it says that. Return: @buf */
const char *rr_trust_print_uid(uid_t uid, char buf[RR_TRUST_UID_BYTES]);

/** rr_trust_has - is @uid one of them? */
bool rr_trust_has(const struct rr_trust *t, uid_t uid);

/** rr_dir_judge - what can users outside @t do to entries of the directory @st? */
enum rr_dir_safety rr_dir_judge(const struct rr_trust *t, const struct stat *st);

/** rr_local_path_open - find the socket at @path, if nobody outside @t can replace an entry of the path
 * @path: absolute
 * @ret_fd: the socket file, O_PATH; connect to /proc/thread-self/fd/N reaches this file whatever
 *          happens to the path
 *
 * Every directory from the root on, also of the targets of symbolic links, must be RR_DIR_SAFE, or
 * RR_DIR_STICKY and the entry that is used in it owned by a user of @t.
 *
 * Return: 0; -EPERM: somebody else could replace an entry (@t->why says who and where); -ENOTSOCK;
 * -ENOENT, -ENOTDIR, -EACCES, -ELOOP, -ENAMETOOLONG, -EMFILE, ...: as open() says; -EINVAL: @path is
 * relative.
 */
must_check int rr_local_path_open(const char *path, struct rr_trust *t, int *ret_fd);

#endif
