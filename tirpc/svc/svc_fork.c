/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * svc_fork.c - dispatch functions that fork, and programs that become daemons after they have registered
 *
 * Operation:  The engine and its connections belong to the parent.
 *             - A fork() in a dispatch function makes a socket pair. What the child replies passes through it as ready bytes,
 *               long ones in a memfd. The parent keeps the request until a reply or the end of file arrives. The first
 *               reply counts, also if the parent replies itself.
 *             - Any child finds a timer in place of the descriptor of the transport handle. It is readable: so if the child
 *               runs a loop, as after daemon(), xp_recv() is called, and takes the service over. The child listens as soon
 *               as the parent, which still has the addresses, has ended.
 * Memory:     struct rt_child of the request, until its end. In the child everything stays as it was copied.
 * Threads:    fork() in another thread than the loop's gives a child that cannot reply.
 * Errors:     No descriptors at fork(): logged, the child cannot reply.
 * See:        pthread_atfork(3).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "svc_int.h"

#define RETRY_NS_LEAST (2 * NS_PER_MS)
#define RETRY_NS_MOST (NS_PER_S)
#define TELL_NS (5 * NS_PER_S) /* a parent that ends has ended by then */

/* A process that may reply. */
struct rt_child {
	struct list link; /* rt_req.children */
	struct rt_req *r;
	struct rpcrdma_watch w;
};

/* What a child sends. Both ends are the same program. */
struct message {
	struct rt_end end;
	uint64_t bytes;                    /* of results; in a memfd that comes along, if they do not fit here: */
	char small[RT_SMALL_BYTES];
};

static bool is_child;                      /* and has not taken the service over */
static struct rt_child *forking;           /* between the handlers of fork() ... */
static int pair[2];
static int to_parent = -1;                 /* in a child: for the reply to ... */
static struct rt_req *to_reply;

bool rt_fork_is_child(void)
{
	return is_child;
}

/* ---- the parent ---- */

static void forget_child(struct rt_child *c)
{
	list_del(&c->link);
	rpcrdma_engine_unwatch(rt_svc.engine, &c->w);
	close(c->w.fd);
	free(c);
}

void rt_fork_forget(struct rt_req *r)
{
	list_for_each_safe(node, &r->children)
		forget_child(list_entry(node, struct rt_child, link));
}

/* Return: bytes of the message; 0: the child has ended; -errno */
static ssize_t receive(int fd, struct message *m, int *ret_memfd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { m, sizeof(*m) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c;

	*ret_memfd = -1;
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&h);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(ret_memfd, CMSG_DATA(c), sizeof(*ret_memfd));
	return n;
}

static int read_all(int fd, uint8_t *to, size_t bytes)
{
	size_t at = 0;

	while (at < bytes) {
		ssize_t n = pread(fd, to + at, bytes - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EBADMSG;
		at += (size_t)n;
	}
	return 0;
}

/* A child may run as another user, or be in the hands of one. */
static bool is_valid(const struct message *m, ssize_t n, int memfd)
{
	const struct rt_end *e = &m->end;

	if (n != sizeof(*m) || e->verf_bytes > sizeof(e->verf))
		return false;
	if (e->kind != RT_END_RESULTS)
		return e->kind == RT_END_ERROR || e->kind == RT_END_AUTH;
	if (m->bytes <= sizeof(m->small))
		return true;
	/* only a memfd has seals: reading it does not block */
	return m->bytes <= RPCRDMA_TIRPC_MAX_BYTES && memfd >= 0 && fcntl(memfd, F_GET_SEALS) >= 0;
}

/* Makes the reply of a child the reply of the request. */
static int take_results(struct rt_req *r, const struct message *m, int memfd)
{
	int rc;

	r->end = m->end;
	if (m->end.kind != RT_END_RESULTS)
		return 0;
	rt_enc_init(&r->enc, r->small, sizeof(r->small), r->conn->at->max_bytes, NULL, NULL);
	if (m->bytes <= sizeof(m->small)) {
		memcpy(r->enc.buf, m->small, m->bytes);
	} else {
		rc = rt_enc_grow_heap(&r->enc, m->bytes);
		if (!rc)
			rc = read_all(memfd, r->enc.buf, m->bytes);
		if (rc)
			return rc;
	}
	r->enc.len = m->bytes;
	return 0;
}

static void on_child(struct rpcrdma_watch *w, uint32_t events)
{
	struct rt_child *c = container_of(w, struct rt_child, w);
	struct rt_req *r = c->r;
	struct message m;
	int memfd, rc;
	ssize_t n = receive(w->fd, &m, &memfd);

	(void)events;
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0) {
		forget_child(c);
		if (list_is_empty(&r->children) && !r->on_stack)
			rt_req_end(r, RT_END_DROP, 0);
		return;
	}
	rc = is_valid(&m, n, memfd) ? take_results(r, &m, memfd) : -EBADMSG;
	if (memfd >= 0)
		close(memfd);
	if (rc)
		rt_req_end(r, RT_END_ERROR, SYSTEM_ERR);
	else
		rt_req_finish(r);
}

/* ---- fork() ---- */

static void before_fork(void)
{
	struct rt_req *r = rt_svc.top;

	if (!rt_loop_is_here())
		return;
	forking = NULL;
	if (is_child || !r || !r->req || r->is_detached)
		return;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		rt_svc_log("no socket pair for a child of fork(), which cannot reply: %s", strerror(errno));
		return;
	}
	forking = calloc(1, sizeof(*forking));
	if (!forking) {
		close(pair[0]);
		close(pair[1]);
	}
}

/* Also if fork() has failed: then the end of file follows at once. */
static void after_fork_in_parent(void)
{
	struct rt_child *c = rt_loop_is_here() ? forking : NULL;

	if (!c)
		return;
	close(pair[1]);
	c->r = rt_svc.top;
	c->w = (struct rpcrdma_watch){ .fd = pair[0], .fn = on_child };
	list_add_tail(&c->r->children, &c->link);
	if (rpcrdma_engine_watch(rt_svc.engine, &c->w, EPOLLIN)) {
		rt_svc_log("no memory for a child of fork(), which cannot reply");
		forget_child(c);
	}
}

/* A timer in place of the engine's descriptor, due in @ns. */
static void set_timer(uint64_t ns)
{
	struct itimerspec due = { .it_value = { .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) } };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0)
		return;
	(void)timerfd_settime(fd, 0, &due, NULL); /* its arguments are right */
	(void)dup3(fd, rt_svc.fd, O_CLOEXEC);     /* likewise */
	close(fd);
}

static void after_fork_in_child(void)
{
	if (forking && rt_loop_is_here()) {
		close(pair[0]);
		to_parent = pair[1];
		to_reply = rt_svc.top;
	}
	if (!is_child)
		set_timer(1);
	is_child = true;
}

void rt_fork_watch(void)
{
	static bool watches;

	if (!watches)
		(void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
	watches = true;
}

/* ---- a child that replies ---- */

/* Return: 0, and a memfd with the results; or -errno */
static int write_memfd(const struct rt_enc *e, int *ret)
{
	int fd = memfd_create("rpcrdma reply", MFD_CLOEXEC), rc = 0;
	size_t at = 0;

	if (fd < 0)
		return -errno;
	while (at < e->len && !rc) {
		ssize_t n = write(fd, e->buf + at, e->len - at);

		if (n > 0)
			at += (size_t)n;
		else if (errno != EINTR)
			rc = -errno;
	}
	if (rc)
		close(fd);
	else
		*ret = fd;
	return rc;
}

static int send_message(const struct message *m, int memfd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { (void *)(uintptr_t)m, sizeof(*m) }; /* only read */
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (memfd >= 0) {
		memcpy(CMSG_DATA(&control.head), &memfd, sizeof(memfd));
		h.msg_control = &control;
		h.msg_controllen = sizeof(control);
	}
	do
		n = sendmsg(to_parent, &h, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static void end_child(void)
{
	if (to_parent >= 0)
		close(to_parent);
	to_parent = -1;
	to_reply = NULL;
}

bool_t rt_fork_reply(struct rt_req *r)
{
	struct message m = { .end = r->end };
	int memfd = -1, rc = 0;

	if (r != to_reply || to_parent < 0) {
		rt_svc_log("a child of fork() replied twice, or to a request of its parent: reply dropped");
		return FALSE;
	}
	if (r->end.kind == RT_END_RESULTS) {
		m.bytes = r->enc.len;
		if (m.bytes <= sizeof(m.small))
			memcpy(m.small, r->enc.buf, m.bytes);
		else
			rc = write_memfd(&r->enc, &memfd);
	}
	if (!rc)
		rc = send_message(&m, memfd);
	if (memfd >= 0)
		close(memfd);
	if (rc) {
		rt_svc_log("reply of a child of fork() dropped: %s", strerror(-rc));
		return FALSE;
	}
	end_child();
	return TRUE;
}

void rt_fork_leave(struct rt_req *r)
{
	if (r != to_reply)
		return;
	if (r->encode_failed) {
		r->end = (struct rt_end){ .kind = RT_END_ERROR, .stat = SYSTEM_ERR };
		(void)rt_fork_reply(r); /* logs */
	}
	end_child();
}

/* ---- a child that takes over ---- */

static struct rpcrdma_timer retry;
static bool is_due;
static uint64_t retry_ns, tell_ns;

static void on_retry(struct rpcrdma_timer *t)
{
	(void)t;
	is_due = true; /* a host name is not resolved in callbacks */
}

static void listen_again(void)
{
	bool tell = tell_ns && clock_now_ns() > tell_ns, left = false;

	is_due = false;
	list_for_each(node, &rt_svc.listens) {
		struct rt_listen *l = list_entry(node, struct rt_listen, link);
		bool is_new = !l->listener;
		int rc = is_new ? rt_svc_listen(l) : 0;

		left |= rc != 0;
		if (!rc && is_new)
			rt_bind_again(l);
		if (rc && (tell || rc != -EADDRINUSE))
			rt_svc_log("%s: cannot listen in this process: %s", l->url, strerror(-rc));
	}
	if (tell)
		tell_ns = 0;
	if (!left)
		return;
	retry.fn = on_retry;
	rpcrdma_timer_set(rt_svc.engine, &retry, retry_ns);
	retry_ns = MIN(2 * retry_ns, RETRY_NS_MOST);
}

/* Leaves all that is the parent's. */
static void abandon(struct rt_svc *s)
{
	end_child();
	if (s->engine)
		rpcrdma_engine_abandon(s->engine);
	s->engine = NULL;
	if (s->kick_fd >= 0)
		close(s->kick_fd);
	s->kick_fd = -1;
	list_init(&s->turns);
	list_init(&s->clients);
	s->reply_bytes = 0;
	s->top = NULL;
	s->main.r = NULL;
	list_for_each(node, &s->listens)
		list_entry(node, struct rt_listen, link)->listener = NULL;
}

int rt_fork_take_over(void)
{
	int rc = 0;

	if (is_child) {
		abandon(&rt_svc);
		rc = rt_svc_open();
		if (rc) {
			rt_svc_log("cannot serve in this process: %s", strerror(-rc));
			set_timer(NS_PER_S);
			return rc;
		}
		is_child = false;
		is_due = true;
		retry_ns = RETRY_NS_LEAST;
		tell_ns = clock_now_ns() + TELL_NS;
	}
	return 0;
}

void rt_fork_listen(void)
{
	if (is_due)
		listen_again();
}
