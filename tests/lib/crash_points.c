/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * crash_points.c - kills a server or a client of this process at its Nth message or change of the disk
 *
 * Operation: Each function that is wrapped asks whether its thread's party lives, and has another point.
 * Memory:    Static.
 * Threads:   Any; one lock.
 * Errors:    What is killed sees EIO of files, ENETDOWN of calls and ECONNRESET of replies.
 */
#include "crash_points.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "rpcrdma.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned from, to; /* parties that are counted; 0: none */
static unsigned long left;
static unsigned killed;
static bool dead[CRASH_PARTIES];

static _Thread_local unsigned party;

void crash_points_join(unsigned of)
{
	party = of;
}

void crash_points_revive(void)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < CRASH_PARTIES; i++)
		dead[i] = false;
	pthread_mutex_unlock(&lock);
}

void crash_points_arm(unsigned first, unsigned last, unsigned long n)
{
	crash_points_revive();
	pthread_mutex_lock(&lock);
	from = first;
	to = last;
	left = n;
	killed = CRASH_NOBODY;
	pthread_mutex_unlock(&lock);
}

void crash_points_disarm(void)
{
	pthread_mutex_lock(&lock);
	from = to = CRASH_NOBODY;
	pthread_mutex_unlock(&lock);
}

unsigned crash_points_killed(void)
{
	unsigned who;

	pthread_mutex_lock(&lock);
	who = killed;
	pthread_mutex_unlock(&lock);
	return who;
}

/* At a point. Return: does the thread's party live on? */
static bool lives(void)
{
	bool on;

	if (party == CRASH_NOBODY)
		return true;
	pthread_mutex_lock(&lock);
	if (from && party >= from && party <= to && !killed) {
		if (left) {
			left--;
		} else {
			dead[party] = true;
			killed = party;
		}
	}
	on = !dead[party];
	pthread_mutex_unlock(&lock);
	if (!on)
		errno = EIO;
	return on;
}

/* ---- threads -------------------------------------------------------------------------------- */

struct start {
	unsigned party;
	void *(*fn)(void *arg);
	void *arg;
};

int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg);

static void *run(void *arg)
{
	struct start s = *(struct start *)arg;

	free(arg);
	party = s.party;
	return s.fn(s.arg);
}

int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg)
{
	struct start *s = malloc(sizeof(*s));
	int rc;

	if (!s)
		return EAGAIN;
	*s = (struct start){ party, fn, arg };
	rc = __real_pthread_create(ret, attr, run, s);
	if (rc)
		free(s);
	return rc;
}

/* ---- messages ------------------------------------------------------------------------------- */

int __real_rpcrdma_clnt_call(struct rpcrdma_clnt *clnt, struct rpcrdma_call *call);
int __wrap_rpcrdma_clnt_call(struct rpcrdma_clnt *clnt, struct rpcrdma_call *call);
ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);

/* A call that was taken is sent. */
int __wrap_rpcrdma_clnt_call(struct rpcrdma_clnt *clnt, struct rpcrdma_call *call)
{
	return lives() ? __real_rpcrdma_clnt_call(clnt, call) : -ENETDOWN;
}

/* Calls have MSG_DONTWAIT, replies have not. */
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	if (flags & MSG_DONTWAIT || lives())
		return __real_sendmsg(fd, m, flags);
	(void)shutdown(fd, SHUT_RDWR);
	errno = ECONNRESET;
	return -1;
}

/* ---- files ---------------------------------------------------------------------------------- */

#define WRAP(type, name, parameters, arguments)         \
	type __real_##name parameters;                  \
	type __wrap_##name parameters;                  \
	type __wrap_##name parameters                   \
	{                                               \
		return lives() ? __real_##name arguments : -1; \
	}

WRAP(int, fchownat, (int dir, const char *name, uid_t uid, gid_t gid, int flags), (dir, name, uid, gid, flags))
WRAP(int, fdatasync, (int fd), (fd))
WRAP(int, fsetxattr, (int fd, const char *name, const void *value, size_t n, int flags), (fd, name, value, n, flags))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, ftruncate, (int fd, off_t length), (fd, length))
WRAP(int, linkat, (int from_dir, const char *name, int to_dir, const char *new, int flags), (from_dir, name, to_dir, new, flags))
WRAP(int, mkdirat, (int dir, const char *name, mode_t mode), (dir, name, mode))
WRAP(ssize_t, pwritev2, (int fd, const struct iovec *iov, int n, off_t off, int flags), (fd, iov, n, off, flags))
WRAP(int, renameat, (int from_dir, const char *name, int to_dir, const char *new), (from_dir, name, to_dir, new))
WRAP(int, renameat2, (int from_dir, const char *name, int to_dir, const char *new, unsigned flags),
     (from_dir, name, to_dir, new, flags))
WRAP(int, setxattr, (const char *path, const char *name, const void *value, size_t n, int flags), (path, name, value, n, flags))
WRAP(int, symlinkat, (const char *target, int dir, const char *name), (target, dir, name))
WRAP(int, syncfs, (int fd), (fd))
WRAP(int, truncate, (const char *path, off_t length), (path, length))
WRAP(int, unlinkat, (int dir, const char *name, int flags), (dir, name, flags))
WRAP(int, utimensat, (int dir, const char *path, const struct timespec times[2], int flags), (dir, path, times, flags))

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);

int __wrap_openat(int dir, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return !(flags & O_CREAT) || lives() ? __real_openat(dir, path, flags, mode) : -1;
}
