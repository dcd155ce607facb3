/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * engine_fork.c - what a child of fork() does with an engine of its parent: it closes its copies of the sockets
 *
 * Operation:  A peer notices the end of the parent only when no process has the connection's socket open any more; over
 *             RDMA, the event channel of its identifier. The engine's epoll descriptor, and those that it watches,
 *             lead to all sockets and to the channels of connections that are not established; that of a fabric leads
 *             to the channel of the others. The kernel lists them in fdinfo. The child may have closed descriptors and opened others with their numbers, so each one is
 *             checked: the engine's by the address of its bell in the list, the others by kcmp(2), and sockets by
 *             their inode where a process may not use kcmp(2).
 * Memory:     That of the engine and its connections stays as it was copied.
 * Threads:    The only one of the child.
 * Errors:     What cannot be checked stays open until exec() or exit().
 * See:        epoll(7), proc(5), kcmp(2).
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine_int.h"
#include "fork.h"

#define NESTED_MAX 4u /* epoll descriptors inside one another */
#define CM_DEVICES "/dev/infiniband/"

/* An entry of an epoll descriptor. */
struct entry {
	int fd;
	uint64_t data; /* epoll_event.data */
	unsigned long ino;
};

static FILE *open_list(int epfd)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", epfd);
	return fopen(path, "re");
}

/* Reads the next entry. What is no epoll descriptor has none. */
static bool next_entry(FILE *list, struct entry *ret)
{
	char line[256];

	while (fgets(line, sizeof(line), list)) {
		const char *data = strstr(line, "data:"), *ino = strstr(line, "ino:");

		if (data && ino && sscanf(line, "tfd: %d", &ret->fd) == 1 &&
		    sscanf(data, "data: %" SCNx64, &ret->data) == 1 && sscanf(ino, "ino:%lx", &ret->ino) == 1)
			return true;
	}
	return false;
}

/* Is this still the parent's descriptor? No other has an entry with this data. */
static bool has_mark(int epfd, const void *mark)
{
	FILE *list = open_list(epfd);
	struct entry x;
	bool found = false;

	while (list && !found && next_entry(list, &x))
		found = x.data == (uintptr_t)mark;
	if (list)
		fclose(list);
	return found;
}

/* Is this an event channel of the RDMA connection manager? The kernel ends its connections when no process has it. */
static bool is_cm_channel(int fd, const struct stat *st)
{
	char path[48], name[64];
	ssize_t len;

	if (!S_ISCHR(st->st_mode))
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, name, sizeof(name));
	return len > (ssize_t)strlen(CM_DEVICES) && !strncmp(name, CM_DEVICES, strlen(CM_DEVICES));
}

/* Is the descriptor of @x still the file that @epfd watches? Return: 1, 0; -errno: the process may not ask. */
static int is_watched(int epfd, const struct entry *x)
{
	struct kcmp_epoll_slot slot = { .efd = (uint32_t)epfd, .tfd = (uint32_t)x->fd };
	long rc = syscall(SYS_kcmp, getpid(), getpid(), KCMP_EPOLL_TFD, x->fd, &slot);

	return rc < 0 ? -errno : rc == 0;
}

static void close_watched(int epfd, unsigned depth)
{
	FILE *list = depth ? open_list(epfd) : NULL;
	struct entry x;

	while (list && next_entry(list, &x)) {
		int watched = is_watched(epfd, &x);
		struct stat st;

		if (!watched || fstat(x.fd, &st))
			continue;
		if (S_ISSOCK(st.st_mode) && st.st_ino == x.ino)
			(void)close(x.fd);
		else if (watched > 0 && is_cm_channel(x.fd, &st))
			(void)close(x.fd);
		else if (watched > 0)
			close_watched(x.fd, depth - 1);
	}
	if (list)
		fclose(list);
}

void rr_fork_close(int epfd, const void *mark)
{
	if (has_mark(epfd, mark))
		close_watched(epfd, NESTED_MAX);
}

void rpcrdma_engine_abandon(struct rpcrdma_engine *e)
{
	const struct rpcrdma_domain *d = e->domain;

	rr_fork_close(e->epfd, &e->bell);
	/* without the lock: a thread that had it at the fork is not in this process */
	for (unsigned i = 0; i < d->ndevs; i++)
		rr_fabric_abandon(d->devs[i].fabric);
}
