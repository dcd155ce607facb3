/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_close.c - the local fabric's closer: letting go of what a stranger has handed us
 *
 * Operation:  A peer may pass any descriptor it likes, and close() of some of them sleeps for as
 *             long as the peer wants: a TCP socket that lingers over unsent data, a file of a file
 *             system it serves itself. The same is true of a UNIX socket in whose queue such a
 *             descriptor waits. So nothing of that kind is closed by a connection manager's thread
 *             or a completion queue's, but by threads of our own, one for each user who has passed
 *             what he should not have: what sleeps there holds up nothing of others.
 *             A socket never sleeps long. A thread takes it into a descriptor table of its own and
 *             ends: no socket lingers for a task that is exiting. What is known to be a large memfd does
 *             not sleep either, but to free it takes time. So a user's sockets and its memfds have a
 *             thread each, apart from what else that user passed. Connections and listeners have one
 *             for all users.
 *             Who hands something over never waits. What may pile up is bounded: while
 *             rr_local_closer_full() for a user, nothing more is read from its connections, and they
 *             end (rr_local_sock_recv()); its new ones are hung up on unread (local_cm.c).
 * Memory:     A growing array of descriptors for each line, first come, first closed. All of it outlives
 *             the fabric if a thread is stuck: the last of them frees it.
 * Threads:    Any may hand over. lock: all of struct local_closer, save the counter `queued`.
 * Errors:     Without memory for the array the descriptor stays open: a leak, but no standstill.
 *             Without a thread it stays queued, and the next one tries again.
 */
#include <errno.h>
#include <linux/close_range.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "local_int.h"

#define LINE_FULL 64u  /* descriptors of one user; a connection can bring another 253 */
#define OURS_FULL 512u /* of sockets or of memory of one user, or of connections: these do not stay */
#define STUCK_S 2 /* a fabric's close waits that long for a close() that sleeps */

/* What is closed one after the other. It ends with the last descriptor in it. */
struct line {
	struct list node; /* closer->lines */
	struct local_closer *closer;
	uint64_t owner;
	bool running;
	int *fds;
	size_t n, room;
};

struct local_closer {
	pthread_mutex_t lock;
	pthread_cond_t ended; /* the fabric: a thread has */
	struct list lines;
	unsigned running;
	bool orphan;
	_Atomic size_t queued; /* in all lines */
};

/** rr_local_closer_new - a closer without threads
 *
 * Return: 0 or -ENOMEM.
 */
int rr_local_closer_new(struct local_closer **ret)
{
	struct local_closer *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;
	int rc;

	if (!c)
		return -ENOMEM;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	rc = pthread_cond_init(&c->ended, &attr);
	pthread_condattr_destroy(&attr);
	if (rc) {
		free(c);
		return -ENOMEM;
	}
	rr_local_mutex_init(&c->lock);
	list_init(&c->lines);
	*ret = c;
	return 0;
}

/* The lock is held. */
static void line_delete(struct line *l)
{
	list_del(&l->node);
	free(l->fds);
	free(l);
}

static void closer_delete(struct local_closer *c)
{
	list_for_each_safe(node, &c->lines)
		line_delete(list_entry(node, struct line, node));
	pthread_cond_destroy(&c->ended);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static bool is_socket(int fd)
{
	int type;
	socklen_t len = sizeof(type);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len); /* asks no file system */
}

struct grave {
	int fd;
	sem_t taken;
};

/* Ends with the socket in a table of descriptors that only this thread has. */
static void *grave_main(void *arg)
{
	struct grave *g = arg;

	if (!syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE)) {
		int self = (int)syscall(SYS_pidfd_open, getpid(), 0u);

		(void)syscall(SYS_pidfd_getfd, self, g->fd, 0u); /* where it cannot, the closer sleeps */
	}
	sem_post(&g->taken);
	return NULL;
}

static int start_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
	rc = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static void close_fd(int fd)
{
	struct grave g = { .fd = fd };
	pthread_t thread;

	if (!is_socket(fd)) {
		close(fd); /* may sleep for hours */
		return;
	}
	(void)sem_init(&g.taken, 0, 0);
	if (!start_thread(&thread, grave_main, &g)) {
		while (sem_wait(&g.taken))
			;
		close(fd); /* not the last one */
		pthread_join(thread, NULL);
	} else {
		close(fd);
	}
	sem_destroy(&g.taken);
}

static void *line_main(void *arg)
{
	struct line *l = arg;
	struct local_closer *c = l->closer;
	bool orphan;

	pthread_mutex_lock(&c->lock);
	while (l->n) {
		int fd = l->fds[0]; /* stays there, and counts, until it is closed */

		pthread_mutex_unlock(&c->lock);
		close_fd(fd);
		pthread_mutex_lock(&c->lock);
		memmove(l->fds, l->fds + 1, --l->n * sizeof(*l->fds));
		atomic_fetch_sub(&c->queued, 1);
	}
	line_delete(l);
	c->running--;
	orphan = c->orphan && !c->running;
	pthread_cond_broadcast(&c->ended);
	pthread_mutex_unlock(&c->lock);
	if (orphan)
		closer_delete(c);
	return NULL;
}

/* The lock is held. */
static void line_start(struct line *l)
{
	pthread_t thread;

	if (l->running || !l->n || start_thread(&thread, line_main, l))
		return;
	pthread_detach(thread);
	l->running = true;
	l->closer->running++;
}

/* The lock is held. Return: NULL if there is none. */
static struct line *line_find(struct local_closer *c, uint64_t owner)
{
	list_for_each(node, &c->lines) {
		struct line *l = list_entry(node, struct line, node);

		if (l->owner == owner)
			return l;
	}
	return NULL;
}

/* The lock is held. */
static size_t line_length(struct local_closer *c, uint64_t owner)
{
	const struct line *l = line_find(c, owner);

	return l ? l->n : 0;
}

/* The lock is held. Return: NULL without memory. */
static struct line *line_make(struct local_closer *c, uint64_t owner)
{
	struct line *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->closer = c;
	l->owner = owner;
	list_add_tail(&c->lines, &l->node);
	return l;
}

/** rr_local_closer_free - the fabric is closed: close what waits, but not for ever */
void rr_local_closer_free(struct local_closer *c)
{
	struct timespec until;
	bool ended;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += STUCK_S;
	pthread_mutex_lock(&c->lock);
	list_for_each(node, &c->lines)
		line_start(list_entry(node, struct line, node));
	while (c->running)
		if (pthread_cond_timedwait(&c->ended, &c->lock, &until) == ETIMEDOUT)
			break;
	ended = !c->running;
	c->orphan = !ended;
	pthread_mutex_unlock(&c->lock);
	if (ended)
		closer_delete(c); /* else it is the last thread's */
}

/** rr_local_closer_full - does so much of @owner wait that nothing more of it should be taken? */
bool rr_local_closer_full(struct local_closer *c, uint64_t owner)
{
	bool full;

	if (likely(atomic_load_explicit(&c->queued, memory_order_relaxed) < LINE_FULL))
		return false;
	pthread_mutex_lock(&c->lock);
	if (owner == LOCAL_OURS)
		full = line_length(c, owner) >= OURS_FULL;
	else
		full = line_length(c, owner) >= LINE_FULL ||
		       line_length(c, owner | LOCAL_MEMORY) >= OURS_FULL ||
		       line_length(c, owner | LOCAL_SOCKET) >= OURS_FULL;
	pthread_mutex_unlock(&c->lock);
	return full;
}

/** rr_local_close_later - close a descriptor whose close() may sleep
 * @owner: uid of whoever passed it, with LOCAL_MEMORY if it is known to be a memfd; or LOCAL_OURS
 */
void rr_local_close_later(struct local_closer *c, uint64_t owner, int fd)
{
	struct line *l;

	if (owner != LOCAL_OURS && is_socket(fd))
		owner |= LOCAL_SOCKET;
	pthread_mutex_lock(&c->lock);
	l = line_find(c, owner);
	if (!l)
		l = line_make(c, owner);
	if (!l)
		goto out_unlock;
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 16;
		int *fds = reallocarray(l->fds, room, sizeof(*fds));

		if (!fds && !l->n)
			line_delete(l);
		if (!fds)
			goto out_unlock;
		l->fds = fds;
		l->room = room;
	}
	l->fds[l->n++] = fd;
	atomic_fetch_add(&c->queued, 1);
	line_start(l);
out_unlock:
	pthread_mutex_unlock(&c->lock);
}

/* Every message brings its sender's credentials, even an empty one that brings descriptors. What is only
 * looked at installs none of them. */
static bool queue_is_empty(int sock)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(struct ucred))];
	} ctl;
	struct msghdr mh = { .msg_control = ctl.buf, .msg_controllen = sizeof(ctl.buf) };
	int on = 1;

	return !setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) &&
	       recvmsg(sock, &mh, MSG_PEEK | MSG_DONTWAIT) == 0 && !mh.msg_controllen;
}

/** rr_local_close_sock - end a connection: the peer sees a hang-up at once
 *
 * After the shutdown nothing more gets into its queue, so an empty one is safe to close here.
 */
void rr_local_close_sock(struct local_closer *c, int sock)
{
	(void)shutdown(sock, SHUT_RDWR); /* -ENOTCONN: the peer was first */
	if (queue_is_empty(sock))
		close(sock);
	else
		rr_local_close_later(c, LOCAL_OURS, sock);
}
