/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * menu_sock.c - attacks at the local fabric's socket: the handshake, and descriptors
 *
 * Operation:  Datagrams by hand, on sockets of our own or on that of a mount of the library's.
 * Memory:     r->count descriptors at most; the memfds are holes.
 * Threads:    One; local-connects has more.
 * Errors:     A socket that is refused or cut is opened again until the deadline.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hostile.h"
#include "local_int.h"
#include "shm_map.h"

#define RIGHTS_MAX 253
#define HELLO_MS 200
#define FLOODERS 8u

static int dial(const struct attack_run *r)
{
	int fd;

	return rr_local_sock_dial(r->sock, &fd) ? -1 : fd;
}

/* What leatd says next is not looked at. */
static void drop_message(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct hs_msg hs;

	if (poll(&p, 1, ms) == 1)
		(void)recv(fd, &hs, sizeof(hs), MSG_DONTWAIT);
}

static void make_message(struct attack_run *r, struct hs_msg *hs, uint32_t type)
{
	memset(hs, 0, sizeof(*hs));
	hs->magic = HS_MAGIC;
	hs->version = HS_VERSION;
	hs->type = type;
	hs->rq_depth = 32;
	hs->recv_bytes = 4096;
	hs->keys = 64;
	hs->region_bytes = 1u << 20;
	hs->initiator_depth = hs->responder_resources = 4;
	hs->region = 1;
	hs->size = 1u << 20;
	for (unsigned n = run_rand(r, 3); n; n--) {
		uint32_t value = run_word(r);

		memcpy((uint8_t *)hs + run_rand(r, sizeof(*hs) / 4) * 4u, &value, 4);
	}
}

/* @n descriptors of one kind go along; Return: false when the connection is gone. */
static bool send_rights(int sock, const struct hs_msg *hs, int fd, unsigned n)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)hs, .iov_len = sizeof(*hs) };
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(RIGHTS_MAX * sizeof(int))];
	} ctl = { 0 };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n && fd >= 0) {
		struct cmsghdr *c;

		mh.msg_control = ctl.buf;
		mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		for (unsigned i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
	}
	return sendmsg(sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno == EAGAIN ||
	       errno == ETOOMANYREFS;
}

/* Handshakes that never go on. */
static void attack_silent(struct attack_run *r)
{
	unsigned n = 0;

	while (!run_over(r)) {
		int fd = n < r->count ? dial(r) : -1;

		if (fd < 0)
			run_nap(r, 20);
		else
			n++; /* it stays open until the end */
	}
	snprintf(r->said, sizeof(r->said), "%u sockets on which nothing was said", n);
}

static int some_memfd(struct attack_run *r)
{
	static const uint64_t sizes[] = { 4096, 1u << 20, 64u << 20, 1u << 30, UINT64_C(16) << 30 };
	int fd = rr_shm_create("evil", sizes[run_rand(r, ARRAY_SIZE(sizes))]);

	return fd < 0 ? -1 : fd;
}

struct flooder {
	pthread_t thread;
	const struct attack_run *r;
	unsigned n;
};

static void *flood(void *arg)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct flooder *f = arg;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", f->r->sock);
	while (!run_over(f->r)) {
		/* it blocks, and is first in line when there is a place */
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		if (fd < 0)
			break;
		f->n += !connect(fd, (struct sockaddr *)&sun, sizeof(sun));
		close(fd);
	}
	return NULL;
}

/* Connections that end at once: what fills the queue in which all users wait to be accepted. */
static void attack_connects(struct attack_run *r)
{
	struct flooder f[FLOODERS] = { 0 };
	unsigned n = 0;

	for (unsigned i = 0; i < FLOODERS; i++) {
		f[i].r = r;
		if (pthread_create(&f[i].thread, NULL, flood, &f[i]))
			die("no thread");
	}
	for (unsigned i = 0; i < FLOODERS; i++) {
		pthread_join(f[i].thread, NULL);
		n += f[i].n;
	}
	snprintf(r->said, sizeof(r->said), "%u connections that ended at once", n);
}

/* Requests with words that make no sense, messages out of turn, bytes that are no message. */
static void attack_handshakes(struct attack_run *r)
{
	unsigned n = 0;

	while (!run_over(r)) {
		int fd = dial(r);
		struct hs_msg hs;

		if (fd < 0) {
			run_nap(r, 5);
			continue;
		}
		n++;
		drop_message(fd, HELLO_MS);
		for (unsigned i = 1 + run_rand(r, 4); i; i--) {
			int memfd = run_rand(r, 2) ? some_memfd(r) : -1;

			make_message(r, &hs, run_rand(r, 3) ? HS_REQ : run_rand(r, 9));
			if (!run_rand(r, 6))
				(void)send(fd, &hs, run_rand(r, sizeof(hs)), MSG_DONTWAIT | MSG_NOSIGNAL);
			else
				(void)send_rights(fd, &hs, memfd, 1 + run_rand(r, 3));
			if (memfd >= 0)
				close(memfd);
		}
		if (run_rand(r, 2))
			drop_message(fd, 1 + (int)run_rand(r, HELLO_MS));
		close(fd);
	}
	snprintf(r->said, sizeof(r->said), "%u handshakes", n);
}

static int some_fd(struct attack_run *r)
{
	int pair[2];

	switch (run_rand(r, 5)) {
	case 0:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 1:
		if (pipe2(pair, O_CLOEXEC))
			return -1;
		close(pair[1]);
		return pair[0];
	case 2: /* a socket that lingers when it is closed, and has descriptors in it */
		if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair))
			return -1;
		{
			struct hs_msg hs = { 0 };

			(void)send_rights(pair[1], &hs, pair[0], 4);
		}
		close(pair[1]);
		return pair[0];
	case 3:
		return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	default:
		return some_memfd(r);
	}
}

static struct leat *mount_here(const struct attack_run *r)
{
	char url[600];
	struct leat *m = NULL;

	snprintf(url, sizeof(url), "local://%s%s?retry=soft&timeo=1000", r->sock, r->export);
	return leat_mount(url, NULL, &m) ? NULL : m;
}

/* Datagrams full of descriptors, in the handshake and on connections that are up. */
static void attack_descriptors(struct attack_run *r)
{
	unsigned datagrams = 0;

	while (!run_over(r)) {
		struct leat *m = run_rand(r, 2) ? mount_here(r) : NULL;
		int own = m ? -1 : dial(r), sock = m ? tamper_sock() : own;
		bool alive = sock >= 0;

		if (!alive)
			run_nap(r, 5);
		for (unsigned i = run_rand(r, 32); i && alive && !run_over(r); i--) {
			struct hs_msg hs;
			int fd = some_fd(r);

			make_message(r, &hs, m ? HS_REGION + run_rand(r, 3) : HS_REQ);
			alive = send_rights(sock, &hs, fd, run_rand(r, 2) ? RIGHTS_MAX : 2);
			datagrams++;
			if (fd >= 0)
				close(fd);
		}
		leat_umount(m);
		if (own >= 0)
			close(own);
	}
	snprintf(r->said, sizeof(r->said), "%u datagrams with descriptors", datagrams);
}

/* Memory that is offered and never used, as much as there can be. */
static void attack_offers(struct attack_run *r)
{
	unsigned regions = 0, mounts = 0;

	while (!run_over(r) && mounts < r->count) {
		struct leat *m = mount_here(r);

		if (!m) {
			run_nap(r, 50);
			continue;
		}
		mounts++;
		for (uint64_t id = 1000; id < 1000 + LOCAL_REGIONS_MAX && !run_over(r); id++) {
			struct hs_msg hs;
			uint64_t size = UINT64_C(1) << (20 + run_rand(r, 10));
			int fd = rr_shm_create("evil", size);

			if (fd < 0)
				break;
			memset(&hs, 0, sizeof(hs));
			hs.magic = HS_MAGIC;
			hs.version = HS_VERSION;
			hs.type = HS_REGION;
			hs.region = id;
			hs.size = size;
			regions += send_rights(tamper_sock(), &hs, fd, 1);
			close(fd);
		}
		(void)leat_null(m);
	}
	while (!run_over(r))
		run_nap(r, 100);
	snprintf(r->said, sizeof(r->said), "%u memfds on %u mounts", regions, mounts);
}

const struct attack attacks_sock[] = {
	{ "silent", attack_silent },
	{ "local-connects", attack_connects },
	{ "handshakes", attack_handshakes },
	{ "descriptors", attack_descriptors },
	{ "offers", attack_offers },
	{ 0 },
};
