/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_close.c - closes the descriptors that untrusted peers passed to the local fabric
 *
 * Operation:  A peer may pass any descriptor, and close() of some descriptors sleeps for as long as
 *             the peer wants: a TCP socket that lingers over unsent data, or a file on a file system
 *             that the peer serves. The same holds for a UNIX socket with such a descriptor in its
 *             queue. The threads of connection managers and completion queues therefore never close
 *             such descriptors. Closer threads do it, one per user that passed unexpected
 *             descriptors, so a sleeping close() does not delay other users.
 *             A socket never sleeps long: a thread takes it into its own descriptor table and exits,
 *             and no socket lingers for an exiting task. A large memfd does not sleep either, but
 *             takes time to free. So a user's sockets and memfds have one thread each, separate from
 *             its other descriptors. Connections and listeners share one thread for all users.
 *             Callers never wait. The backlog is bounded: while rr_local_closer_full() for a user,
 *             nothing more is read from its connections, and they end (rr_local_sock_recv()); new
 *             connections are closed unread (local_cm.c).
 * Memory:     A growing array of descriptors for each queue, closed in order. If a thread is stuck, all
 *             of it outlives the fabric; the last thread frees it.
 * Threads:    Any thread may pass descriptors. lock: all of struct local_closer except `queued`.
 * Errors:     Without memory for the array the descriptor stays open: a leak, but no hang.
 *             Without a thread it stays queued, and the next descriptor tries again.
 */
#include <errno.h>
#include <linux/close_range.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cond.h"
#include "base/thread.h"
#include "local_int.h"

#define LINE_FULL 64u  /* per user; a connection can bring another 253 */
#define OURS_FULL 512u /* a user's sockets or memfds, or all connections: these close soon */
#define STUCK_S 2 /* closing a fabric waits at most this long for a sleeping close() */

/* A queue of descriptors that one thread closes in order. It is freed after its last descriptor. */
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
	pthread_cond_t ended; /* signals the fabric that a thread has ended */
	struct list lines;
	unsigned running;
	bool orphan;
	_Atomic size_t queued; /* in all queues */
};

/** rr_local_closer_new - creates a closer without threads
 *
 * Return: 0 or -ENOMEM.
 */
int rr_local_closer_new(struct local_closer **ret)
{
	struct local_closer *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	if (cond_init(&c->ended)) {
		free(c);
		return -ENOMEM;
	}
	pthread_mutex_init(&c->lock, NULL);
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

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len); /* involves no file system */
}

struct grave {
	int fd;
	sem_t taken;
};

/* Exits with the socket in a descriptor table that only this thread has. */
static void *grave_main(void *arg)
{
	struct grave *g = arg;

	if (!syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE)) {
		int self = (int)syscall(SYS_pidfd_open, getpid(), 0u);

		(void)syscall(SYS_pidfd_getfd, self, g->fd, 0u); /* if this fails, the closer sleeps */
	}
	sem_post(&g->taken);
	return NULL;
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
	if (!thread_start(&thread, NULL, grave_main, &g)) {
		while (sem_wait(&g.taken))
			;
		close(fd); /* not the last reference */
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
		int fd = l->fds[0]; /* stays queued, and counted, until it is closed */

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

	if (l->running || !l->n || thread_start(&thread, NULL, line_main, l))
		return;
	pthread_detach(thread);
	l->running = true;
	l->closer->running++;
}

/* The lock is held. Return: NULL if the owner has no queue. */
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

/** rr_local_closer_free - the fabric is closed: closes queued descriptors, with a time limit */
void rr_local_closer_free(struct local_closer *c)
{
	uint64_t until_ns = clock_now_ns() + STUCK_S * NS_PER_S;
	bool ended;

	pthread_mutex_lock(&c->lock);
	list_for_each(node, &c->lines)
		line_start(list_entry(node, struct line, node));
	while (c->running && cond_wait_until(&c->ended, &c->lock, until_ns))
		;
	ended = !c->running;
	c->orphan = !ended;
	pthread_mutex_unlock(&c->lock);
	if (ended)
		closer_delete(c); /* otherwise the last thread frees it */
}

/** rr_local_closer_full - true if too many descriptors of @owner are queued to accept more */
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

/** rr_local_close_later - closes a descriptor in the background, because close() may sleep
 * @owner: uid of the user that passed it, plus LOCAL_MEMORY if it is known to be a memfd; or LOCAL_OURS
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

/* Every message carries its sender's credentials, even an empty one with descriptors. MSG_PEEK without room for
 * descriptors installs none of them. */
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

/** rr_local_close_sock - ends a connection; the peer sees a hang-up at once
 *
 * After the shutdown nothing more is queued, so an empty socket can be closed here.
 */
void rr_local_close_sock(struct local_closer *c, int sock)
{
	(void)shutdown(sock, SHUT_RDWR); /* -ENOTCONN: the peer closed first */
	if (queue_is_empty(sock))
		close(sock);
	else
		rr_local_close_later(c, LOCAL_OURS, sock);
}
