/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_cm.c - the local fabric's connection manager
 *
 * Operation:  active                          passive
 *             qp_dial: connect         ----->  accept(2)
 *             ROUTED                  <-----   HELLO (cookie)
 *             qp_connect: REQ (sizes, cookie, private data) -----> REQUEST
 *             ESTABLISHED             <-----   qp_accept: ACCEPT (sizes, private data, memfd)
 *             FAILED                  <-----   qp_reject: REJECT, or a hang-up
 *             With the cookies each side tests whether it may use process_vm_* on the other. It
 *             announces the result (REQ.vm, ACCEPT.vm), which determines how the owner publishes its
 *             keys. The passive side is up when qp_accept returns.
 *             Sockets are in the manager's epoll instance until the queue pair is up or its REQUEST
 *             is delivered. Once the queue pair is up, its completion queue watches the socket.
 *             Untrusted peers cannot keep the manager busy. An accepted socket must send its REQ within
 *             handshake_ms, and the number of handshakes is limited, in total and per uid. A
 *             listener that cannot accept (no descriptors, no memory, closer backlog) rests until the
 *             next tick of the manager's timer, and its owner gets the reason. The timer runs only
 *             while there are handshakes or resting listeners. All users share one accept queue, so a
 *             process that connects and hangs up can fill it. Such connections are closed before any
 *             allocation, many are accepted at once, and the owner gets a report if there are many.
 * Memory:     The manager frees queue pairs that it has not reported.
 * Threads:    One thread per manager. The same thread, or the one that received the queue pair from it,
 *             calls connect, accept and reject.
 * Errors:     A peer that sends an unexpected message is disconnected.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/epoll.h"
#include "local_int.h"

#define EVENTS_PER_PROCESS 128 /* then the caller can do other work */
#define TICK_NS (100 * NS_PER_MS)
#define ACCEPTS_AT_ONCE 64 /* then other handshakes proceed */
/* The owner gets a report when this many connections end without a REQ in this time: they delay others. */
#define LEFT_TOLD 64u
#define LEFT_NS NS_PER_S

static struct local_cm *to_cm(struct rr_cm *cm)
{
	return container_of(cm, struct local_cm, base);
}

static int cm_watch(struct local_cm *cm, int fd, void *ptr)
{
	return epoll_add(cm->base.fd, fd, EPOLLIN | EPOLLRDHUP, ptr);
}

static void cm_free(struct local_cm *cm)
{
	if (cm->timerfd >= 0)
		close(cm->timerfd);
	if (cm->base.fd >= 0)
		close(cm->base.fd);
	free(cm);
}

/** rr_local_cm_create - creates a source of connection events
 *
 * Return: 0, -ENOMEM, -EMFILE.
 */
int rr_local_cm_create(struct rr_fabric *fabric, rr_cm_fn fn, void *ctx, struct rr_cm **ret)
{
	struct local_cm *cm = calloc(1, sizeof(*cm));
	int rc;

	if (!cm)
		return -ENOMEM;
	cm->base = (struct rr_cm){ .fabric = fabric, .fn = fn, .ctx = ctx };
	list_init(&cm->listeners);
	list_init(&cm->qps);
	cm->timerfd = -1;
	cm->base.fd = epoll_create1(EPOLL_CLOEXEC);
	if (cm->base.fd < 0) {
		rc = -errno;
		goto out_close;
	}
	cm->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	rc = cm->timerfd < 0 ? -errno : cm_watch(cm, cm->timerfd, &cm->timerfd);
	if (rc)
		goto out_close;
	*ret = &cm->base;
	return 0;

out_close:
	cm_free(cm);
	return rc;
}

/** rr_local_cm_destroy - the listeners are closed; the user destroys the queue pairs that were reported */
void rr_local_cm_destroy(struct rr_cm *base)
{
	struct local_cm *cm = to_cm(base);

	assert(list_is_empty(&cm->listeners));
	list_for_each_safe(node, &cm->qps) {
		struct local_qp *qp = list_entry(node, struct local_qp, cm_node);

		if (qp->passive)
			rr_local_qp_destroy(&qp->base); /* not announced yet */
		else
			rr_local_cm_forget(qp);
	}
	cm_free(cm);
}

/** rr_local_cm_forget - removes @qp from the manager; may be repeated */
void rr_local_cm_forget(struct local_qp *qp)
{
	if (!list_is_linked(&qp->cm_node))
		return;
	list_del(&qp->cm_node);
	(void)epoll_ctl(qp->cm->base.fd, EPOLL_CTL_DEL, qp->sock, NULL);
}

/** rr_local_listen - listens at a socket path
 *
 * Return: 0, -EADDRINUSE if a process already serves it, -ENAMETOOLONG, -EACCES, ..., -ENOMEM.
 */
int rr_local_listen(struct rr_cm *base, const char *addr, void *ctx, struct rr_listener **ret)
{
	struct local_cm *cm = to_cm(base);
	mode_t mode = to_fabric(base->fabric)->attr.socket_mode;
	struct local_listener *l = calloc(1, sizeof(*l));
	struct stat st;
	int rc;

	if (!l)
		return -ENOMEM;
	l->base = (struct rr_listener){ .cm = base, .ctx = ctx };
	rc = rr_local_sock_listen(addr, mode ? mode : 0666, &l->fd);
	if (rc)
		goto out_free;
	memcpy(l->path, addr, strlen(addr)); /* fits, since bind() succeeded */
	if (!lstat(addr, &st)) {
		l->dev = st.st_dev;
		l->ino = st.st_ino;
	}
	rc = cm_watch(cm, l->fd, l);
	if (rc)
		goto out_close;
	list_add_tail(&cm->listeners, &l->node);
	*ret = &l->base;
	return 0;

out_close:
	(void)unlink(l->path);
	rr_local_close_later(to_fabric(base->fabric)->closer, LOCAL_OURS, l->fd);
out_free:
	free(l);
	return rc;
}

/** rr_local_unlisten - stops listening; unlinks the path unless another socket is there now */
void rr_local_unlisten(struct rr_listener *base)
{
	struct local_listener *l = container_of(base, struct local_listener, base);
	struct stat st;

	if (!lstat(l->path, &st) && st.st_dev == l->dev && st.st_ino == l->ino)
		(void)unlink(l->path);
	if (!l->resting)
		(void)epoll_ctl(base->cm->fd, EPOLL_CTL_DEL, l->fd, NULL);
	/* peers in the accept queue may have sent any descriptor */
	(void)shutdown(l->fd, SHUT_RDWR);
	rr_local_close_later(to_fabric(base->cm->fabric)->closer, LOCAL_OURS, l->fd);
	list_del(&l->node);
	free(l);
}

static void hs_init(struct local_qp *qp, struct hs_msg *hs, enum hs_type type)
{
	const struct local_fabric *f = to_fabric(qp->base.fabric);

	memset(hs, 0, sizeof(*hs));
	hs->magic = HS_MAGIC;
	hs->version = HS_VERSION;
	hs->type = type;
	hs->qpn = qp->base.qpn;
	hs->fabric_id = f->id;
	hs->cookie_addr = (uintptr_t)qp->cookie;
	memcpy(hs->cookie, qp->cookie, sizeof(hs->cookie));
}

static void hs_param(struct local_qp *qp, struct hs_msg *hs, const struct rr_conn_param *param)
{
	hs->rq_depth = qp->rq_depth;
	hs->recv_bytes = qp->my_recv_bytes;
	hs->keys = to_pd(qp->base.pd)->nkeys;
	hs->vm = qp->my_vm;
	hs->region_bytes = to_fabric(qp->base.fabric)->attr.limits.region_bytes_max;
	hs->initiator_depth = param->initiator_depth;
	hs->responder_resources = param->responder_resources;
	hs->priv_len = (uint32_t)param->priv_len;
	if (param->priv_len)
		memcpy(hs->priv, param->priv, param->priv_len);
}

/* Finds the client that is charged for this connection. */
static int find_client(struct local_qp *qp)
{
	struct rpcrdma_client_id id = { .kind = RPCRDMA_CLIENT_UNKNOWN };

	if (qp->peer.has_cred) {
		id.kind = RPCRDMA_CLIENT_USER;
		id.key = qp->peer.uid;
	}
	return rr_client_get(to_fabric(qp->base.fabric)->clients, &id, &qp->client);
}

static int make_cookie(struct local_qp *qp)
{
	return getrandom(qp->cookie, sizeof(qp->cookie), 0) == sizeof(qp->cookie) ? 0 : -EIO;
}

/** rr_local_qp_dial - connects to a socket path; ROUTED or FAILED follows
 * @trust: users that may serve the socket; NULL: any
 *
 * Return: 0, -ECONNREFUSED if no process listens there, -EAGAIN if the accept queue is full, -EPERM if @trust
 * forbids it, -EACCES, -ENAMETOOLONG, -EMFILE, -ENOMEM.
 */
int rr_local_qp_dial(struct rr_cm *base, const char *addr, struct rr_trust *trust,
		     struct rr_qp **ret)
{
	struct local_cm *cm = to_cm(base);
	struct local_qp *qp;
	int rc = rr_local_qp_new(base->fabric, &qp);

	if (rc)
		return rc;
	rc = make_cookie(qp);
	if (!rc)
		rc = trust ? rr_local_sock_dial_trusted(addr, trust, &qp->sock) :
			     rr_local_sock_dial(addr, &qp->sock);
	if (!rc) {
		rr_local_sock_peer(qp->sock, &qp->peer);
		rc = find_client(qp);
	}
	if (!rc)
		rc = cm_watch(cm, qp->sock, qp);
	if (rc) {
		rr_local_qp_destroy(&qp->base);
		return rc;
	}
	qp->cm = cm;
	qp->phase = PHASE_HELLO;
	list_add_tail(&cm->qps, &qp->cm_node);
	*ret = &qp->base;
	return 0;
}

/* Reads that a side may have outstanding: the smaller of what one side requests and the other grants. */
static unsigned depth_of(const struct local_qp *qp, unsigned mine, unsigned theirs)
{
	return MIN(MIN(mine, theirs), to_fabric(qp->base.fabric)->attr.limits.rd_atom_max);
}

/* The kernel lets a peer access this process's memory by itself if it has the same user. Another one that says so would
 * have marked keys in use for as long as it likes. (Root could, but rr_local_sock_try_vm() does not use that.) */
static bool may_have_access(const struct local_qp *qp)
{
	return qp->peer.has_cred && qp->peer.uid == geteuid();
}

static void take_peer_hs(struct local_qp *qp, const struct hs_msg *hs)
{
	const struct local_fabric *f = to_fabric(qp->base.fabric);

	qp->hs = *hs;
	qp->base.peer_qpn = hs->qpn & 0xffffff;
	qp->peer_vm = hs->vm && may_have_access(qp);
	qp->base.reach = qp->peer_vm ? RPCRDMA_REACH_PROCESS_VM : RPCRDMA_REACH_BOUNCE;
	qp->peer_takes_bytes = hs->region_bytes;
	qp->base.loopback = hs->fabric_id == f->id;
}

/** rr_local_qp_connect - sends a REQ to the dialled peer; ESTABLISHED or FAILED follows
 *
 * Return: 0, -ENOTCONN if it is not routed, -ECONNRESET or -EPIPE if the peer has gone.
 */
int rr_local_qp_connect(struct rr_qp *base, const struct rr_conn_param *param)
{
	struct local_qp *qp = to_qp(base);
	struct hs_msg hs;
	int rc;

	if (qp->phase != PHASE_ROUTED || qp->passive)
		return -ENOTCONN;
	hs_init(qp, &hs, HS_REQ);
	hs_param(qp, &hs, param);
	qp->read_depth = param->initiator_depth;
	rc = rr_local_sock_send(qp->sock, &hs, NULL, 0);
	if (!rc)
		qp->phase = PHASE_CONNECT;
	return rc;
}

/** rr_local_qp_accept - accepts a REQUEST; the queue pair is up when this returns 0
 *
 * Return: 0, -ENOTCONN if it was accepted or rejected already, -ECONNRESET or -EPIPE if the peer has gone,
 * -ENOMEM, -EMFILE, -EDQUOT if the peer's user has used its share of rings.
 */
int rr_local_qp_accept(struct rr_qp *base, const struct rr_conn_param *param)
{
	struct local_qp *qp = to_qp(base);
	struct hs_msg hs;
	int rc;

	if (qp->phase != PHASE_ROUTED || !qp->passive)
		return -ENOTCONN;
	rc = rr_local_ring_create(qp);
	if (rc)
		return rc;
	hs_init(qp, &hs, HS_ACCEPT);
	hs_param(qp, &hs, param);
	qp->read_depth = depth_of(qp, param->initiator_depth, qp->hs.responder_resources);
	/* publish the receives that are posted already before the peer gets the memory */
	atomic_store(&qp->me->posted, qp->rq_posted);
	rc = rr_local_sock_send(qp->sock, &hs, &qp->rings->fd, 1);
	rr_local_map_close_fd(qp->rings);
	if (rc) {
		rr_local_ring_unmap(qp);
		qp->phase = PHASE_DEAD;
		return rc;
	}
	rr_local_qp_attach(qp);
	return 0;
}

/** rr_local_qp_reject - rejects a REQUEST
 *
 * Return: 0, -ENOTCONN if it was accepted or rejected already.
 */
int rr_local_qp_reject(struct rr_qp *base)
{
	struct local_qp *qp = to_qp(base);
	struct hs_msg hs;

	if (qp->phase != PHASE_ROUTED || !qp->passive)
		return -ENOTCONN;
	hs_init(qp, &hs, HS_REJECT);
	(void)rr_local_sock_send(qp->sock, &hs, NULL, 0); /* the peer has gone, or is informed */
	qp->phase = PHASE_DEAD;
	return 0;
}

static void tell(struct local_cm *cm, struct local_qp *qp, enum rr_cm_event_type type, int status)
{
	struct rr_cm_event ev = { .type = type, .qp = &qp->base, .status = status,
				  .listener_ctx = qp->listener_ctx, .peer = &qp->peer };

	if (type == RR_CM_REQUEST || type == RR_CM_ESTABLISHED) {
		ev.priv = qp->hs.priv;
		ev.priv_len = qp->hs.priv_len;
		ev.initiator_depth = depth_of(qp, UINT_MAX, qp->hs.responder_resources);
		ev.responder_resources = depth_of(qp, UINT_MAX, qp->hs.initiator_depth);
	}
	cm->base.fn(cm->base.ctx, &ev);
}

/* @peer: NULL if it is unknown */
static void tell_refused(struct local_cm *cm, void *listener_ctx, const struct rr_peer *peer, int status)
{
	static const struct rr_peer unknown = { .text = "a local peer" };
	struct rr_cm_event ev = { .type = RR_CM_REFUSED, .status = status, .listener_ctx = listener_ctx,
				  .peer = peer ? peer : &unknown };

	cm->base.fn(cm->base.ctx, &ev);
}

/* Counts a connection that ended without a REQ. Return: true if that is to be reported. */
static bool count_left(struct local_cm *cm)
{
	uint64_t now = clock_now_ns();

	if (now - cm->left_since_ns > LEFT_NS) {
		cm->left_since_ns = now;
		cm->left = 0;
	}
	if (++cm->left < LEFT_TOLD)
		return false;
	cm->left = 0;
	return true;
}

/* Destroys a queue pair that was not reported to the user of the manager. */
static void drop_unconnected(struct local_cm *cm, struct local_qp *qp)
{
	struct rr_peer peer = qp->peer;
	void *ctx = qp->listener_ctx;

	rr_local_qp_destroy(&qp->base);
	if (count_left(cm))
		tell_refused(cm, ctx, &peer, -ESHUTDOWN);
}

static void fail(struct local_cm *cm, struct local_qp *qp, int status)
{
	rr_local_cm_forget(qp);
	if (qp->passive) {
		drop_unconnected(cm, qp);
		return;
	}
	qp->phase = PHASE_DEAD;
	tell(cm, qp, RR_CM_FAILED, status);
}

static bool vm_ok(struct local_qp *qp, const struct hs_msg *hs)
{
	enum rr_local_vm mode = to_fabric(qp->base.fabric)->attr.vm;

	qp->my_vm = rr_local_sock_try_vm(mode, &qp->peer, hs);
	return qp->my_vm || mode != RR_LOCAL_VM_ALWAYS;
}

static void active_accepted(struct local_cm *cm, struct local_qp *qp, const struct hs_msg *hs,
			    int *fd)
{
	int rc;

	take_peer_hs(qp, hs);
	rc = *fd >= 0 && rr_local_ring_check(hs, to_fabric(qp->base.fabric))
		     ? rr_local_ring_map(qp, *fd)
		     : -EPROTO;
	if (rc) {
		fail(cm, qp, rc);
		return;
	}
	*fd = -1;
	qp->read_depth = depth_of(qp, qp->read_depth, hs->responder_resources);
	rr_local_cm_forget(qp);
	rr_local_qp_attach(qp);
	tell(cm, qp, RR_CM_ESTABLISHED, 0);
}

/* The only reader of a peer's messages before the connection is up. */
static void hear(struct local_cm *cm, struct local_qp *qp)
{
	struct local_closer *closer = to_fabric(cm->base.fabric)->closer;
	uint64_t owner = peer_owner(qp);
	struct hs_msg hs;
	int fd, rc;

	rc = rr_local_sock_recv(closer, owner, qp->sock, &hs, &fd);
	if (rc == -EAGAIN)
		return;
	if (rc) {
		rc = qp->phase == PHASE_HELLO && rc == -ECONNRESET ? -ECONNREFUSED : rc;
		fail(cm, qp, rc);
	} else if (!qp->passive && qp->phase == PHASE_HELLO && hs.type == HS_HELLO) {
		take_peer_hs(qp, &hs);
		if (vm_ok(qp, &hs)) {
			qp->phase = PHASE_ROUTED;
			tell(cm, qp, RR_CM_ROUTED, 0);
		} else {
			fail(cm, qp, -EPERM);
		}
	} else if (!qp->passive && qp->phase == PHASE_CONNECT && hs.type == HS_ACCEPT) {
		active_accepted(cm, qp, &hs, &fd);
	} else if (!qp->passive && qp->phase == PHASE_CONNECT && hs.type == HS_REJECT) {
		fail(cm, qp, -ECONNREFUSED);
	} else if (qp->passive && qp->phase == PHASE_HELLO && hs.type == HS_REQ &&
		   rr_local_ring_check(&hs, to_fabric(qp->base.fabric)) && vm_ok(qp, &hs)) {
		take_peer_hs(qp, &hs);
		rr_local_cm_forget(qp);
		qp->phase = PHASE_ROUTED;
		tell(cm, qp, RR_CM_REQUEST, 0);
	} else {
		fail(cm, qp, -EPROTO);
	}
	if (fd >= 0)
		rr_local_close_later(closer, owner, fd);
}

/* ---- untrusted peers ---- */

static void tick(struct local_cm *cm, bool on)
{
	struct timespec every = { .tv_nsec = on ? (long)TICK_NS : 0 };
	struct itimerspec its = { .it_interval = every, .it_value = every };

	if (cm->ticking == on)
		return;
	cm->ticking = on;
	(void)timerfd_settime(cm->timerfd, 0, &its, NULL); /* cannot fail: all arguments are valid */
}

static void rest(struct local_cm *cm, struct local_listener *l)
{
	(void)epoll_ctl(cm->base.fd, EPOLL_CTL_DEL, l->fd, NULL);
	l->resting = true;
	tick(cm, true);
}

/* Ends late handshakes; makes resting listeners try again. */
static void look_after(struct local_cm *cm)
{
	uint64_t count, now = clock_now_ns();
	ssize_t got = read(cm->timerfd, &count, sizeof(count));
	bool more = false;

	(void)got; /* only to clear readability */
	list_for_each_safe(node, &cm->qps) {
		struct local_qp *qp = list_entry(node, struct local_qp, cm_node);

		if (!qp->passive)
			continue;
		if (now >= qp->deadline_ns)
			fail(cm, qp, -ETIMEDOUT);
		else
			more = true;
	}
	list_for_each(node, &cm->listeners) {
		struct local_listener *l = list_entry(node, struct local_listener, node);

		if (l->resting && !cm_watch(cm, l->fd, l))
			l->resting = false;
		more = more || l->resting;
	}
	tick(cm, more);
}

/* True if another handshake may begin. There are few enough of them to count. */
static bool may_enter(struct local_cm *cm, const struct rr_peer *peer)
{
	const struct local_fabric *f = to_fabric(cm->base.fabric);
	unsigned all = 0, same = 0;

	list_for_each(node, &cm->qps) {
		const struct local_qp *qp = list_entry(node, struct local_qp, cm_node);

		all += qp->passive;
		same += qp->passive && qp->peer.uid == peer->uid;
	}
	/* limited by what is still free, so that the next user finds some as well (account.h) */
	return all < f->attr.limits.handshakes_max && same < f->attr.limits.handshakes_max - all &&
	       same < f->attr.limits.handshakes_uid_max &&
	       atomic_load(&f->conns) < f->attr.limits.conns_max;
}

static void shake_hands(struct local_cm *cm, struct local_listener *l, int fd)
{
	struct local_fabric *f = to_fabric(cm->base.fabric);
	struct rr_peer peer;
	struct local_qp *qp;
	struct hs_msg hs;
	bool gone = rr_local_sock_gone(fd);
	int rc;

	if (gone && !count_left(cm)) {
		rr_local_close_sock(f->closer, fd);
		return;
	}
	rr_local_sock_peer(fd, &peer);
	rc = gone ? -ESHUTDOWN : 0;
	if (!rc)
		rc = may_enter(cm, &peer) ? rr_local_qp_new(cm->base.fabric, &qp) : -EBUSY;
	if (rc) {
		rr_local_close_sock(f->closer, fd);
		tell_refused(cm, l->base.ctx, &peer, rc);
		return;
	}
	qp->sock = fd;
	qp->passive = true;
	qp->phase = PHASE_HELLO;
	qp->listener_ctx = l->base.ctx;
	qp->peer = peer;
	qp->deadline_ns = clock_now_ns() + f->attr.limits.handshake_ms * NS_PER_MS;
	rc = make_cookie(qp);
	if (!rc)
		rc = find_client(qp);
	if (!rc)
		rc = cm_watch(cm, fd, qp);
	if (rc) {
		rr_local_qp_destroy(&qp->base);
		tell_refused(cm, l->base.ctx, &peer, rc);
		return;
	}
	qp->cm = cm;
	list_add_tail(&cm->qps, &qp->cm_node);
	tick(cm, true);
	hs_init(qp, &hs, HS_HELLO);
	if (rr_local_sock_send(fd, &hs, NULL, 0))
		drop_unconnected(cm, qp);
}

static struct local_listener *find_listener(struct local_cm *cm, const void *ptr)
{
	list_for_each(node, &cm->listeners) {
		struct local_listener *l = list_entry(node, struct local_listener, node);

		if (l == ptr)
			return l;
	}
	return NULL;
}

/* Accepts connections; those that cannot be accepted stay queued. Return: false if nothing more is to be done now. */
static bool welcome(struct local_cm *cm, struct local_listener *l)
{
	/* the callback for a refusal may close the listener */
	for (int i = 0; i < ACCEPTS_AT_ONCE && find_listener(cm, l); i++) {
		bool full = rr_local_closer_full(to_fabric(cm->base.fabric)->closer, LOCAL_OURS);
		int fd = full ? -1 : accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		int err = full ? EXFULL : errno;

		if (fd >= 0) {
			shake_hands(cm, l, fd);
		} else if (err == EAGAIN || err == EWOULDBLOCK) {
			return i > 0;
		} else if (err != ECONNABORTED && err != EINTR) {
			rest(cm, l); /* no descriptor or no memory: the socket would stay readable */
			tell_refused(cm, l->base.ctx, NULL, -err);
			return false;
		}
	}
	return true;
}

/** rr_local_cm_process - handles pending events; runs the callback */
void rr_local_cm_process(struct rr_cm *base)
{
	struct local_cm *cm = to_cm(base);

	/* one at a time: a callback may destroy the objects of later events */
	for (int i = 0; i < EVENTS_PER_PROCESS; i++) {
		struct epoll_event ev;
		struct local_listener *l;

		if (epoll_wait(cm->base.fd, &ev, 1, 0) != 1)
			return;
		if (ev.data.ptr == &cm->timerfd) {
			look_after(cm);
			continue;
		}
		l = find_listener(cm, ev.data.ptr);
		if (!l)
			hear(cm, ev.data.ptr);
		else if (!welcome(cm, l))
			return;
	}
}
