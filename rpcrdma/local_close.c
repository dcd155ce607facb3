/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_close.c - the local fabric's closer: letting go of what a stranger has handed us
 *
 * Operation:  A peer may pass any descriptor it likes, and close() of some of them sleeps for as
 *             long as the peer wants: a TCP socket that lingers over unsent data, a file of a file
 *             system it serves itself. The same is true of a UNIX socket in whose queue such a
 *             descriptor waits. So nothing of that kind is closed by a connection manager's thread
 *             or a completion queue's: it goes to a thread that does only this, made when it is
 *             first needed.
 *             Who hands something over never waits. How much may pile up is bounded at the door:
 *             while rr_local_closer_full(), no connection is accepted (local_cm.c), and those that
 *             there are lose their right to speak with the first wrong descriptor.
 * Memory:     A growing array of descriptors, first come, first closed. It outlives the fabric if
 *             the thread is stuck: the last of the two frees it.
 * Threads:    Any may hand over. lock: all of struct local_closer.
 * Errors:     Without memory for the array the descriptor stays open: a leak, but no standstill.
 *             Without a thread it stays queued, and the next one tries again.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "local_int.h"

#define BACKLOG_FULL 512u
#define STUCK_S 2 /* a fabric's close waits that long for a close() that sleeps */

struct local_closer {
	pthread_mutex_t lock;
	pthread_cond_t wake; /* the thread: something to do; the fabric: the thread has ended */
	pthread_t thread;
	bool running, stop, ended, orphan;
	int *fds;
	size_t n, room;
};

/** rr_local_closer_new - a closer without a thread
 *
 * Return: 0 or -ENOMEM.
 */
int rr_local_closer_new(struct local_closer **ret)
{
	struct local_closer *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	if (pthread_cond_init(&c->wake, NULL)) {
		free(c);
		return -ENOMEM;
	}
	rr_local_mutex_init(&c->lock);
	*ret = c;
	return 0;
}

static void closer_delete(struct local_closer *c)
{
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c->fds);
	free(c);
}

static void *closer_main(void *arg)
{
	struct local_closer *c = arg;
	bool orphan;

	pthread_mutex_lock(&c->lock);
	while (c->n || !c->stop) {
		int fd;

		if (!c->n) {
			pthread_cond_wait(&c->wake, &c->lock);
			continue;
		}
		fd = c->fds[0]; /* stays there, and counts, until it is closed */
		pthread_mutex_unlock(&c->lock);
		close(fd); /* may sleep for hours */
		pthread_mutex_lock(&c->lock);
		memmove(c->fds, c->fds + 1, --c->n * sizeof(*c->fds));
	}
	c->ended = true;
	orphan = c->orphan;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->lock);
	if (orphan)
		closer_delete(c);
	return NULL;
}

static bool closer_start(struct local_closer *c)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
	c->running = !pthread_create(&c->thread, NULL, closer_main, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return c->running;
}

/** rr_local_closer_free - the fabric is closed: close what waits, but not for ever */
void rr_local_closer_free(struct local_closer *c)
{
	struct timespec until;
	bool ended;

	pthread_mutex_lock(&c->lock);
	c->stop = true;
	if (!c->running && (!c->n || !closer_start(c))) {
		pthread_mutex_unlock(&c->lock);
		closer_delete(c);
		return;
	}
	pthread_cond_broadcast(&c->wake);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += STUCK_S;
	while (!c->ended)
		if (pthread_cond_timedwait(&c->wake, &c->lock, &until) == ETIMEDOUT)
			break;
	ended = c->ended;
	c->orphan = !ended;
	if (!ended)
		pthread_detach(c->thread);
	pthread_mutex_unlock(&c->lock);
	if (!ended)
		return; /* the thread's now */
	pthread_join(c->thread, NULL);
	closer_delete(c);
}

/** rr_local_closer_full - does so much wait that we should take nothing new? */
bool rr_local_closer_full(struct local_closer *c)
{
	bool full;

	pthread_mutex_lock(&c->lock);
	full = c->n >= BACKLOG_FULL;
	pthread_mutex_unlock(&c->lock);
	return full;
}

/** rr_local_close_later - close a descriptor whose close() may sleep */
void rr_local_close_later(struct local_closer *c, int fd)
{
	pthread_mutex_lock(&c->lock);
	if (c->n == c->room) {
		size_t room = c->room ? 2 * c->room : 16;
		int *fds = reallocarray(c->fds, room, sizeof(*fds));

		if (!fds)
			goto out_unlock;
		c->fds = fds;
		c->room = room;
	}
	c->fds[c->n++] = fd;
	if (c->running || closer_start(c))
		pthread_cond_signal(&c->wake);
out_unlock:
	pthread_mutex_unlock(&c->lock);
}

/** rr_local_close_sock - end a connection: the peer sees a hang-up at once
 *
 * After the shutdown nothing more gets into its queue, so an empty one is safe to close here.
 */
void rr_local_close_sock(struct local_closer *c, int sock)
{
	int queued = 0;

	(void)shutdown(sock, SHUT_RDWR); /* -ENOTCONN: the peer was first */
	if (!ioctl(sock, SIOCINQ, &queued) && !queued)
		close(sock);
	else
		rr_local_close_later(c, sock);
}
