/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_path.c - checks whether a local socket is safe to connect to if the user did not configure its path
 *
 * Operation:  A client of leat:// learns socket paths from the server, and any process can copy a
 *             server's instance id. So a trusted user must have created the socket.
 *             rr_local_path_open() walks the path one name at a time with openat(O_PATH |
 *             O_NOFOLLOW). It checks each directory and entry on the descriptor with which it
 *             continues. Nothing is looked up twice, so a rename causes no race. It resolves
 *             symbolic links itself, under the same rule.
 *             local_sock.c checks the user that listens on the socket after connect(2), by SO_PEERCRED.
 * Memory:     One descriptor at a time, and a path on the stack.
 * Threads:    Any.
 * Errors:     -errno; rr_trust.why for refusals.
 * See:        doc/security.md.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "local_path.h"

#define LINKS_MAX 40 /* as in the kernel */
#define NAME_TOLD_MAX 46u /* bytes of a path in a reason */
/* The kernel shows this uid for every user that a user namespace does not map: it identifies no user. */
#define OVERFLOW_UID 65534u

void rr_trust_init(struct rr_trust *t, uid_t other)
{
	uid_t self = geteuid();

	*t = (struct rr_trust){ .uids = { 0 }, .nuids = 1 };
	if (self && self != OVERFLOW_UID)
		t->uids[t->nuids++] = self;
	if (other)
		t->uids[t->nuids++] = other;
}

const char *rr_trust_print_uid(uid_t uid, char buf[RR_TRUST_UID_BYTES])
{
	snprintf(buf, RR_TRUST_UID_BYTES, "uid %u%s", (unsigned)uid,
		 uid == OVERFLOW_UID ? " (nobody, or unmapped here)" : "");
	return buf;
}

bool rr_trust_has(const struct rr_trust *t, uid_t uid)
{
	for (unsigned i = 0; i < t->nuids; i++) {
		if (t->uids[i] == uid)
			return true;
	}
	return false;
}

/* An access control list cannot grant more than the group bits, which are its mask. */
enum rr_dir_safety rr_dir_judge(const struct rr_trust *t, const struct stat *st)
{
	if (!rr_trust_has(t, st->st_uid))
		return RR_DIR_OWNER; /* the owner may change its mode at any time */
	if (!(st->st_mode & (S_IWGRP | S_IWOTH)))
		return RR_DIR_SAFE;
	return st->st_mode & S_ISVTX ? RR_DIR_STICKY : RR_DIR_WRITABLE;
}

struct walk {
	struct rr_trust *trust;
	int dir;             /* current directory */
	bool sticky;         /* other users may add their own entries there */
	unsigned links;
	char rest[PATH_MAX]; /* rest of the path */
};

/* Returns the path of a descriptor, for messages. */
static const char *name_of(int fd, char *buf, size_t cap)
{
	char link[40];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", fd);
	n = readlink(link, buf, cap - 1);
	if (n < 0)
		return "a part of its path";
	buf[n] = '\0';
	return buf;
}

static printf_like(3, 4) int refuse(struct walk *w, int fd, const char *fmt, ...)
{
	char text[77], buf[PATH_MAX];
	const char *name = name_of(fd, buf, sizeof(buf));
	size_t len = strlen(name);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(w->trust->why, sizeof(w->trust->why), "%s %s%.46s", text,
		 len > NAME_TOLD_MAX ? "..." : "",
		 len > NAME_TOLD_MAX ? name + len - NAME_TOLD_MAX : name);
	return -EPERM;
}

static int refuse_owner(struct walk *w, int fd, const struct stat *st)
{
	char uid[RR_TRUST_UID_BYTES];

	return refuse(w, fd, "%s could replace the socket, as owner of",
		      rr_trust_print_uid(st->st_uid, uid));
}

/* Continues in directory @fd, and takes ownership of it. */
static int enter_dir(struct walk *w, int fd)
{
	enum rr_dir_safety safety;
	struct stat st;

	if (w->dir >= 0)
		close(w->dir);
	w->dir = fd;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	safety = rr_dir_judge(w->trust, &st);
	w->sticky = safety == RR_DIR_STICKY;
	if (safety == RR_DIR_OWNER)
		return refuse_owner(w, fd, &st);
	if (safety == RR_DIR_WRITABLE)
		return refuse(w, fd, "others could replace the socket, by mode %04o of",
			      (unsigned)st.st_mode & 07777);
	return 0;
}

static int enter_root(struct walk *w)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : enter_dir(w, fd);
}

/* Inserts the target of the symbolic link @fd before the rest of the path. */
static int follow_link(struct walk *w, int fd)
{
	char path[2 * PATH_MAX];
	ssize_t n;

	if (++w->links > LINKS_MAX)
		return -ELOOP;
	n = readlinkat(fd, "", path, PATH_MAX);
	if (n < 0)
		return -errno;
	if (!n)
		return -ENOENT;
	snprintf(path + n, sizeof(path) - (size_t)n, "/%s", w->rest);
	if (strlen(path) >= sizeof(w->rest))
		return -ENAMETOOLONG;
	memcpy(w->rest, path, strlen(path) + 1);
	return path[0] == '/' ? enter_root(w) : 0;
}

/* Takes the next name from the rest of the path. Return: false at its end. */
static bool next_name(struct walk *w, char name[NAME_MAX + 2])
{
	const char *at = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(at, "/");

	snprintf(name, NAME_MAX + 2, "%.*s", (int)MIN(len, (size_t)NAME_MAX + 1), at);
	at += len;
	at += strspn(at, "/");
	memmove(w->rest, at, strlen(at) + 1);
	return len > 0;
}

/* Walks one name. Return: 0; 1: *@ret_fd is the socket; or -errno. */
static int walk_name(struct walk *w, const char *name, int *ret_fd)
{
	int rc, fd = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	rc = fstat(fd, &st) ? -errno : 0;
	if (!rc && w->sticky && !rr_trust_has(w->trust, st.st_uid))
		rc = refuse_owner(w, fd, &st);
	if (!rc && S_ISLNK(st.st_mode)) {
		rc = follow_link(w, fd);
	} else if (!rc && !w->rest[0]) {
		rc = S_ISSOCK(st.st_mode) ? 1 : -ENOTSOCK;
	} else if (!rc) {
		return enter_dir(w, fd);
	}
	if (rc == 1)
		*ret_fd = fd;
	else
		close(fd);
	return rc;
}

int rr_local_path_open(const char *path, struct rr_trust *t, int *ret_fd)
{
	struct walk w = { .trust = t, .dir = -1 };
	char name[NAME_MAX + 2];
	int rc;

	t->why[0] = '\0';
	if (path[0] != '/')
		return -EINVAL;
	if (strlen(path) >= sizeof(w.rest))
		return -ENAMETOOLONG;
	strcpy(w.rest, path);
	rc = enter_root(&w);
	while (!rc) {
		if (!next_name(&w, name))
			rc = -ENOTSOCK; /* the path ends in a directory */
		else
			rc = walk_name(&w, name, ret_fd);
	}
	if (w.dir >= 0)
		close(w.dir);
	return rc == 1 ? 0 : rc;
}
