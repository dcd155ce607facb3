/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_events.c - the verbs fabric's own thread: ends of connections and of the device
 *
 * Operation:  Sleeps on the event channel of all established connections, on the device's
 *             asynchronous events, and on a descriptor that stops it. It never calls the user: events
 *             become flushed completions. If a peer disconnects or the device fails a queue pair, the
 *             thread moves the queue pair to the error state. If a completion queue was overrun or the
 *             device is gone, it marks the queue as broken, and the queue's owner generates the
 *             missing completions. A port that goes down ends nothing: it may come back before the
 *             retries are used up.
 * Memory:     None of its own. The object of an event exists until the event is acknowledged: the
 *             libraries' destructors wait for that.
 * Threads:    One per fabric, from open to close.
 * Errors:     A source that fails permanently is not polled again.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/epoll.h"
#include "base/thread.h"
#include "fork.h"
#include "verbs_int.h"

static void disconnect(struct verbs_qp *qp)
{
	pthread_mutex_lock(&qp->lock);
	if (!qp->gone)
		(void)rdma_disconnect(qp->id);
	pthread_mutex_unlock(&qp->lock);
}

/* Handles an event of an established connection. */
static void up_event(struct verbs_qp *qp, enum rdma_cm_event_type event)
{
	switch (event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		/* passive: its owner may have closed it before */
		if (atomic_load(&qp->leaving))
			disconnect(qp);
		return;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		break;
	default: /* address change, end of time-wait */
		return;
	}
	rr_verbs_qp_to_error(qp);
	if (event == RDMA_CM_EVENT_DISCONNECTED)
		disconnect(qp); /* the peer waits for it */
}

static bool take_cm_events(struct verbs_fabric *f)
{
	struct rdma_cm_event *ev;

	while (!rdma_get_cm_event(f->up_channel, &ev)) {
		up_event(ev->id->context, ev->event);
		rdma_ack_cm_event(ev);
	}
	return errno == EAGAIN || errno == EINTR;
}

static void device_lost(struct verbs_fabric *f)
{
	pthread_mutex_lock(&f->lock);
	list_for_each(cq, &f->cqs)
		rr_verbs_cq_break(list_entry(cq, struct verbs_cq, node));
	pthread_mutex_unlock(&f->lock);
}

/* The peer's first message arrived before the last message of its handshake. */
static void established(struct verbs_qp *qp)
{
	pthread_mutex_lock(&qp->lock);
	if (!qp->gone)
		(void)rdma_notify(qp->id, IBV_EVENT_COMM_EST);
	pthread_mutex_unlock(&qp->lock);
}

static void async_event(struct verbs_fabric *f, const struct ibv_async_event *ev)
{
	switch (ev->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED: /* it has no posted receives that could be flushed */
		rr_verbs_qp_to_error(ev->element.qp->qp_context);
		break;
	case IBV_EVENT_COMM_EST:
		established(ev->element.qp->qp_context);
		break;
	case IBV_EVENT_CQ_ERR:
		rr_verbs_cq_break(ev->element.cq->cq_context);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		device_lost(f);
		break;
	default:
		break;
	}
}

static bool take_async_events(struct verbs_fabric *f)
{
	struct ibv_async_event ev;

	while (!ibv_get_async_event(f->ctx, &ev)) {
		async_event(f, &ev);
		ibv_ack_async_event(&ev);
	}
	return errno == EAGAIN || errno == EINTR;
}

static void *events_main(void *arg)
{
	struct verbs_fabric *f = arg;
	struct epoll_event ev;

	for (;;) {
		if (epoll_wait(f->epfd, &ev, 1, -1) < 1)
			continue; /* EINTR: all signals are blocked, but a debugger may attach */
		if (ev.data.ptr == &f->stopfd)
			return NULL;
		if (ev.data.ptr == &f->up_channel && !take_cm_events(f))
			(void)epoll_ctl(f->epfd, EPOLL_CTL_DEL, f->up_channel->fd, NULL);
		if (ev.data.ptr == f->ctx && !take_async_events(f)) {
			(void)epoll_ctl(f->epfd, EPOLL_CTL_DEL, f->ctx->async_fd, NULL);
			device_lost(f); /* it was unplugged */
		}
	}
}

/** rr_verbs_events_start - starts the thread; afterwards connections of @f may be established
 *
 * Return: 0, -ENOMEM, -EMFILE, -ENODEV without a connection manager in the kernel, -EAGAIN.
 */
int rr_verbs_events_start(struct verbs_fabric *f)
{
	int rc = rr_verbs_nonblock(f->ctx->async_fd);

	if (rc)
		return rc;
	f->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (f->epfd < 0)
		return -errno;
	f->stopfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (f->stopfd < 0) {
		rc = -errno;
		goto out_epfd;
	}
	rc = rr_verbs_channel(&f->up_channel);
	if (rc)
		goto out_stopfd;
	rc = epoll_add(f->epfd, f->stopfd, EPOLLIN, &f->stopfd);
	if (!rc)
		rc = epoll_add(f->epfd, f->up_channel->fd, EPOLLIN, &f->up_channel);
	if (!rc)
		rc = epoll_add(f->epfd, f->ctx->async_fd, EPOLLIN, f->ctx);
	if (!rc)
		rc = thread_start(&f->thread, NULL, events_main, f);
	if (!rc)
		return 0;
	rdma_destroy_event_channel(f->up_channel);
out_stopfd:
	close(f->stopfd);
out_epfd:
	close(f->epfd);
	return rc;
}

/** rr_verbs_events_stop - stops the thread, after all queue pairs of @f are destroyed */
void rr_verbs_events_stop(struct verbs_fabric *f)
{
	int rc = eventfd_write(f->stopfd, 1);

	assert(!rc);
	(void)rc;
	pthread_join(f->thread, NULL);
	rdma_destroy_event_channel(f->up_channel);
	close(f->stopfd);
	close(f->epfd);
}

/** rr_verbs_events_abandon - in a child of fork(): closes its copy of the channel of established connections
 *
 * When the parent has ended too, the kernel disconnects them. The device's own descriptor stays open in the child: what
 * libibverbs has mapped of it keeps it as well. So the queue pairs remain in the kernel until the child ends.
 */
void rr_verbs_events_abandon(struct rr_fabric *fabric)
{
	struct verbs_fabric *f = to_fabric(fabric);

	rr_fork_close(f->epfd, &f->stopfd);
}
