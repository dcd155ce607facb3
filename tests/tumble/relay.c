/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * relay.c - TCP connections that can be held up: what was sent arrives late, or not at all
 *
 * Operation:  A thread accepts connections for each server, connects to it, and passes data on. A connection that is held
 *             still takes what its two ends send, and their ends. When it is released, all that is delivered in order. So a
 *             call that its client has given up long ago reaches the server after newer ones.
 * Memory:     A queue for each direction. One that is not held takes no more than QUEUE_BYTES.
 * Threads:    One of its own; functions may be called by one other.
 * Errors:     A connection that fails ends at both sides.
 */
#include "relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "base/util.h"

#define QUEUE_BYTES (256u << 10)
#define SERVERS_MAX 16u
#define PIPES_MAX 1024u

/* From one end to the other */
struct flow {
	uint8_t *v;
	size_t n, room;
	bool ended;  /* the sender has closed */
	bool passed; /* and so has this side towards the receiver */
};

struct pipe_pair {
	struct list link;
	unsigned server;
	bool held;
	int fd[2];           /* of the client, of the server */
	struct flow flow[2]; /* that fd[i] receives */
};

struct relay {
	pthread_t thread;
	pthread_mutex_t lock; /* over the pairs */
	struct list pairs;
	unsigned n;
	int listeners[SERVERS_MAX];
	uint16_t ports[SERVERS_MAX];
	int wake[2];
	bool stop;
};

static struct sockaddr_in address(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

/* ---- pairs ------------------------------------------------------------------------------- */

static void free_pair(struct pipe_pair *p)
{
	list_del(&p->link);
	for (unsigned i = 0; i < 2; i++) {
		close(p->fd[i]);
		free(p->flow[i].v);
	}
	free(p);
}

static void accept_one(struct relay *r, unsigned server)
{
	struct sockaddr_in to = address(r->ports[server]);
	int client = accept4(r->listeners[server], NULL, NULL, SOCK_CLOEXEC), fd, on = 1;
	struct pipe_pair *p;

	if (client < 0)
		return;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	p = calloc(1, sizeof(*p));
	if (fd < 0 || !p || connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		if (fd >= 0)
			close(fd);
		close(client);
		free(p);
		return;
	}
	p->server = server;
	p->fd[0] = client;
	p->fd[1] = fd;
	for (unsigned i = 0; i < 2; i++) {
		(void)setsockopt(p->fd[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		(void)fcntl(p->fd[i], F_SETFL, O_NONBLOCK);
	}
	list_add_tail(&r->pairs, &p->link);
}

/* Return: false: the connection is broken */
static bool receive(struct flow *f, int fd)
{
	ssize_t n;

	if (f->n == f->room) {
		size_t room = f->room ? f->room * 2 : QUEUE_BYTES;
		uint8_t *v = realloc(f->v, room);

		if (!v)
			return false;
		f->v = v;
		f->room = room;
	}
	n = recv(fd, f->v + f->n, f->room - f->n, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	f->ended = !n;
	f->n += (size_t)n;
	return true;
}

static bool deliver(struct flow *f, int fd)
{
	ssize_t n = f->n ? send(fd, f->v, f->n, MSG_NOSIGNAL) : 0;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	memmove(f->v, f->v + n, f->n - (size_t)n);
	f->n -= (size_t)n;
	if (f->ended && !f->n && !f->passed) {
		f->passed = true;
		(void)shutdown(fd, SHUT_WR); /* an end that is gone already is fine */
	}
	return true;
}

static short wanted(const struct pipe_pair *p, unsigned i)
{
	const struct flow *in = &p->flow[!i], *out = &p->flow[i];
	short events = 0;

	if (!in->ended && (p->held || in->n < QUEUE_BYTES))
		events |= POLLIN;
	if (!p->held && out->n)
		events |= POLLOUT;
	return events;
}

/* fd[@i] is ready. Return: false: the pair is over */
static bool serve(struct pipe_pair *p, unsigned i, short events)
{
	struct flow *in = &p->flow[!i];
	bool good = true;

	if (events & (POLLIN | POLLHUP | POLLERR) && !in->ended)
		good = receive(in, p->fd[i]);
	if (!p->held)
		good = good && deliver(&p->flow[0], p->fd[0]) && deliver(&p->flow[1], p->fd[1]);
	else if (!good) { /* a reset by one end: what it sent before is kept */
		in->ended = good = true;
	}
	return good && !(p->flow[0].passed && p->flow[1].passed);
}

/* ---- the thread -------------------------------------------------------------------------- */

static nfds_t prepare(struct relay *r, struct pollfd *v)
{
	nfds_t n = 0;

	v[n++] = (struct pollfd){ .fd = r->wake[0], .events = POLLIN };
	for (unsigned i = 0; i < r->n; i++)
		v[n++] = (struct pollfd){ .fd = r->listeners[i], .events = POLLIN };
	list_for_each(node, &r->pairs) {
		const struct pipe_pair *p = list_entry(node, struct pipe_pair, link);

		for (unsigned i = 0; i < 2 && n + 1 < PIPES_MAX; i++) {
			short events = wanted(p, i);

			v[n++] = (struct pollfd){ .fd = events ? p->fd[i] : -1, .events = events };
		}
	}
	return n;
}

static void serve_all(struct relay *r, const struct pollfd *v, nfds_t n)
{
	nfds_t at = 1 + r->n;

	list_for_each_safe(node, &r->pairs) {
		struct pipe_pair *p = list_entry(node, struct pipe_pair, link);
		bool good = true;

		for (unsigned i = 0; i < 2 && at < n; i++, at++)
			good = good && serve(p, i, v[at].revents);
		if (!good)
			free_pair(p);
	}
	for (unsigned i = 0; i < r->n; i++)
		if (v[1 + i].revents)
			accept_one(r, i);
}

static void *run(void *arg)
{
	static struct pollfd v[PIPES_MAX];
	struct relay *r = arg;
	char bytes[64];

	for (;;) {
		nfds_t n;

		pthread_mutex_lock(&r->lock);
		n = prepare(r, v);
		pthread_mutex_unlock(&r->lock);
		(void)poll(v, n, -1);
		pthread_mutex_lock(&r->lock);
		if (r->stop)
			break;
		if (v[0].revents)
			(void)!read(r->wake[0], bytes, sizeof(bytes)); /* then the pairs are not those of @v any more */
		else
			serve_all(r, v, n);
		pthread_mutex_unlock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---- commands ---------------------------------------------------------------------------- */

static void wake(struct relay *r)
{
	(void)!write(r->wake[1], "", 1);
}

static void hold(struct relay *r, unsigned server, bool held)
{
	pthread_mutex_lock(&r->lock);
	list_for_each(node, &r->pairs) {
		struct pipe_pair *p = list_entry(node, struct pipe_pair, link);

		if (p->server != server)
			continue;
		p->held = held;
		if (!held) { /* also what has ended meanwhile */
			(void)deliver(&p->flow[0], p->fd[0]);
			(void)deliver(&p->flow[1], p->fd[1]);
		}
	}
	wake(r);
	pthread_mutex_unlock(&r->lock);
}

void relay_hold(struct relay *r, unsigned i)
{
	hold(r, i, true);
}

uint64_t relay_queued(struct relay *r)
{
	uint64_t n = 0;

	pthread_mutex_lock(&r->lock);
	list_for_each(node, &r->pairs)
		n += list_entry(node, struct pipe_pair, link)->flow[1].n;
	pthread_mutex_unlock(&r->lock);
	return n;
}

void relay_release(struct relay *r, unsigned i)
{
	hold(r, i, false);
}

void relay_break(struct relay *r, unsigned i)
{
	pthread_mutex_lock(&r->lock);
	list_for_each_safe(node, &r->pairs) {
		struct pipe_pair *p = list_entry(node, struct pipe_pair, link);

		if (p->server == i)
			free_pair(p);
	}
	wake(r);
	pthread_mutex_unlock(&r->lock);
}

static int listen_at(uint16_t *ret_port)
{
	struct sockaddr_in at = address(0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&at, len) || listen(fd, 64) || getsockname(fd, (struct sockaddr *)&at, &len)) {
		int err = -errno;

		close(fd);
		return err;
	}
	*ret_port = ntohs(at.sin_port);
	return fd;
}

int relay_create(const uint16_t *ports, unsigned n, uint16_t *ret_ports, struct relay **ret)
{
	struct relay *r = calloc(1, sizeof(*r));
	int rc = 0;

	if (!r)
		return -ENOMEM;
	list_init(&r->pairs);
	pthread_mutex_init(&r->lock, NULL);
	memcpy(r->ports, ports, n * sizeof(*ports));
	for (; r->n < n && rc >= 0; r->n += rc >= 0) {
		rc = listen_at(&ret_ports[r->n]);
		r->listeners[r->n] = rc;
	}
	if (rc >= 0)
		rc = pipe2(r->wake, O_CLOEXEC) ? -errno : -pthread_create(&r->thread, NULL, run, r);
	if (rc) { /* the program ends */
		free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

void relay_destroy(struct relay *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	wake(r);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	list_for_each_safe(node, &r->pairs)
		free_pair(list_entry(node, struct pipe_pair, link));
	for (unsigned i = 0; i < r->n; i++)
		close(r->listeners[i]);
	close(r->wake[0]);
	close(r->wake[1]);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
