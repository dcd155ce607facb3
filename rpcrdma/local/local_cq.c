/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_cq.c - the local fabric's completion queues: polling and sleeping
 *
 * Operation:  A queue pair is *active* (every poll reads its peer's line of the shared area) or
 *             *dormant* (its `asleep` flag is set, its socket wakes us). With few connections all
 *             stay active. With many, those that are idle for long become dormant, so a poll
 *             costs only the active ones. Arming makes all dormant, then checks once more. A send makes a dormant one
 *             active, because a reply is expected, which then rings no doorbell.
 *             Its descriptor is an epoll instance over the sockets (doorbells and hang-ups), an eventfd and a
 *             timer. Through the eventfd this process wakes itself (a completion while armed, a queue
 *             pair from a connection manager's thread). The timer serves rates and retries
 *             against a busy agent. For a caller that never sleeps, every FDS_EVERY-th poll
 *             checks the epoll instance.
 *             Queue pairs with completions are in `ready` and are served in turn.
 * Memory:     Completions are in the rings of the queue pairs.
 * Threads:    One owner. Another thread may call rr_local_cq_add() (lock: incoming).
 * Errors:     None; a queue pair that cannot be watched dies.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/epoll.h"
#include "local_int.h"

#define FDS_EVERY 1024u
#define FDS_AT_ONCE 64
#define IDLE_POLLS 2048u
#define ACTIVE_KEPT 8u
#define TICK_NS NS_PER_MS /* interval for conditions without notification */

/** rr_local_cq_create - creates a completion queue
 *
 * Return: 0, -ENOMEM, -EMFILE.
 */
int rr_local_cq_create(struct rr_fabric *fabric, struct rr_cq **ret)
{
	struct local_cq *cq = calloc(1, sizeof(*cq));
	int rc;

	if (!cq)
		return -ENOMEM;
	cq->base.fabric = fabric;
	list_init(&cq->active);
	list_init(&cq->dormant);
	list_init(&cq->ready);
	list_init(&cq->work);
	list_init(&cq->incoming);
	pthread_mutex_init(&cq->lock, NULL);
	cq->base.fd = epoll_create1(EPOLL_CLOEXEC);
	cq->selffd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	cq->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (cq->base.fd < 0 || cq->selffd < 0 || cq->timerfd < 0)
		rc = -errno;
	else
		rc = epoll_add(cq->base.fd, cq->selffd, EPOLLIN, &cq->selffd);
	if (!rc)
		rc = epoll_add(cq->base.fd, cq->timerfd, EPOLLIN, &cq->timerfd);
	if (rc) {
		rr_local_cq_destroy(&cq->base);
		return rc;
	}
	*ret = &cq->base;
	return 0;
}

/** rr_local_cq_destroy - destroys a queue after its queue pairs */
void rr_local_cq_destroy(struct rr_cq *base)
{
	struct local_cq *cq = to_cq(base);

	assert(list_is_empty(&cq->active) && list_is_empty(&cq->dormant));
	assert(list_is_empty(&cq->ready) && list_is_empty(&cq->incoming));
	if (cq->base.fd >= 0)
		close(cq->base.fd);
	if (cq->selffd >= 0)
		close(cq->selffd);
	if (cq->timerfd >= 0)
		close(cq->timerfd);
	pthread_mutex_destroy(&cq->lock);
	free(cq);
}

static void kick(struct local_cq *cq)
{
	(void)eventfd_write(cq->selffd, 1); /* a full counter is readable too, which is sufficient */
}

/** rr_local_cq_signal - owner only: outside a poll, there is something to poll for */
void rr_local_cq_signal(struct local_cq *cq)
{
	if (likely(!cq->armed) || cq->signalled)
		return;
	cq->signalled = true;
	kick(cq);
}

/** rr_local_cq_add - hands a connected queue pair over to the owner; any thread may call */
void rr_local_cq_add(struct local_cq *cq, struct local_qp *qp)
{
	pthread_mutex_lock(&cq->lock);
	list_add_tail(&cq->incoming, &qp->cq_node);
	atomic_store(&cq->has_incoming, 1);
	kick(cq);
	pthread_mutex_unlock(&cq->lock);
}

static void make_active(struct local_cq *cq, struct local_qp *qp)
{
	qp->idle = 0;
	if (qp->is_active)
		return;
	atomic_store(&qp->me->asleep, 0);
	qp->is_active = true;
	qp->is_dormant = false;
	cq->nactive++;
	list_del(&qp->cq_node);
	list_add_tail(&cq->active, &qp->cq_node);
}

void rr_local_cq_wake(struct local_cq *cq, struct local_qp *qp)
{
	make_active(cq, qp);
	rr_local_cq_signal(cq);
}

void rr_local_cq_expect(struct local_cq *cq, struct local_qp *qp)
{
	if (unlikely(qp->is_dormant) && !cq->armed)
		make_active(cq, qp);
}

static void make_dormant(struct local_cq *cq, struct local_qp *qp)
{
	qp->is_active = false;
	qp->is_dormant = true;
	cq->nactive--;
	list_del(&qp->cq_node);
	list_add_tail(&cq->dormant, &qp->cq_node);
	atomic_store(&qp->me->asleep, 1);
}

static void take_incoming(struct local_cq *cq)
{
	struct list all = LIST_INIT(all);

	pthread_mutex_lock(&cq->lock);
	list_splice_tail(&all, &cq->incoming);
	atomic_store(&cq->has_incoming, 0);
	pthread_mutex_unlock(&cq->lock);
	for (;;) {
		struct local_qp *qp = list_first_entry(&all, struct local_qp, cq_node);

		if (!qp)
			break;
		make_active(cq, qp);
		if (qp->phase == PHASE_UP && epoll_add(cq->base.fd, qp->sock, EPOLLIN | EPOLLRDHUP, qp))
			rr_local_qp_kill(qp); /* no memory to watch it: its peer's end would stay unnoticed */
	}
}

/** rr_local_cq_unwatch - a queue pair has died: stops watching its socket */
void rr_local_cq_unwatch(struct local_cq *cq, struct local_qp *qp)
{
	/* -ENOENT if it is still in `incoming` */
	(void)epoll_ctl(cq->base.fd, EPOLL_CTL_DEL, qp->sock, NULL);
}

/** rr_local_cq_remove - removes a dead queue pair and its unpolled completions */
void rr_local_cq_remove(struct local_cq *cq, struct local_qp *qp)
{
	pthread_mutex_lock(&cq->lock);
	list_del(&qp->cq_node);
	pthread_mutex_unlock(&cq->lock);
	if (qp->is_active)
		cq->nactive--;
	qp->is_active = qp->is_dormant = false;
	list_del(&qp->ready_node);
	list_del(&qp->work_node);
	qp->cqe_tail = qp->cqe_head;
}

/* Handles doorbells, hang-ups, kicks and ticks. One round only: the kernel reports others next time, so peers that ring
 * endlessly cannot keep the owner here. */
static void look_at_fds(struct local_cq *cq)
{
	struct epoll_event ev[FDS_AT_ONCE];
	int n = epoll_wait(cq->base.fd, ev, ARRAY_SIZE(ev), 0);

	for (int i = 0; i < n; i++) {
		void *ptr = ev[i].data.ptr;
		struct local_qp *qp = ptr;
		uint64_t count;

		if (ptr == &cq->selffd || ptr == &cq->timerfd) {
			ssize_t got = read(*(int *)ptr, &count, sizeof(count));

			(void)got; /* only to clear readability */
			continue;
		}
		if (!rr_local_move_drain(qp) || ev[i].events & (EPOLLHUP | EPOLLERR))
			qp->peer_gone = true;
		make_active(cq, qp);
		if (qp->peer_gone)
			rr_local_cq_unwatch(cq, qp);
	}
	cq->fds_left = n == (int)ARRAY_SIZE(ev);
}

static void disarm(struct local_cq *cq)
{
	cq->armed = cq->signalled = false;
	if (cq->timer_set) {
		struct itimerspec off = { { 0, 0 }, { 0, 0 } };

		(void)timerfd_settime(cq->timerfd, 0, &off, NULL);
		cq->timer_set = false;
	}
	look_at_fds(cq);
}

/* Runs every queue pair with incomplete sends. */
static void run_work(struct local_cq *cq)
{
	struct list todo = LIST_INIT(todo);

	list_splice_tail(&todo, &cq->work);
	for (;;) {
		struct list *node = list_pop(&todo);

		if (!node)
			break;
		list_add_tail(&cq->work, node);
		rr_local_qp_run(list_entry(node, struct local_qp, work_node));
	}
}

static int deliver(struct local_cq *cq, struct rr_wc *wc, int max)
{
	int n = 0;

	while (n < max) {
		struct list *node = list_first(&cq->ready);
		struct local_qp *qp;

		if (!node)
			break;
		qp = list_entry(node, struct local_qp, ready_node);
		/* a limited run per queue pair, so that none starves the others */
		for (int run = 0; run < 16 && n < max && qp->cqe_tail != qp->cqe_head; run++) {
			const struct local_cqe *c = &qp->cqe[qp->cqe_tail++ & qp->cqe_mask];

			wc[n++] = c->wc;
			qp->sq_used -= c->sq_free;
			if (qp->base.srq)
				rr_local_qp_expect(qp, c->rq_free);
			else
				qp->rq_used -= c->rq_free;
		}
		list_del(node);
		if (qp->cqe_tail != qp->cqe_head)
			list_add_tail(&cq->ready, node);
	}
	return n;
}

static void pull_active(struct local_cq *cq)
{
	list_for_each_safe(node, &cq->active) {
		struct local_qp *qp = list_entry(node, struct local_qp, cq_node);

		if (qp->phase != PHASE_UP)
			continue;
		if (rr_local_ring_pull(qp)) {
			qp->idle = 0;
			continue;
		}
		if (likely(++qp->idle < IDLE_POLLS || cq->nactive <= ACTIVE_KEPT))
			continue;
		make_dormant(cq, qp);
		if (!rr_local_ring_idle(qp))
			make_active(cq, qp);
	}
}

/** rr_local_cq_poll - takes up to @max completions; without work it makes no system call
 *
 * Return: their number; in order per queue pair.
 */
int rr_local_cq_poll(struct rr_cq *base, struct rr_wc *wc, int max)
{
	struct local_cq *cq = to_cq(base);

	if (unlikely(atomic_load_explicit(&cq->has_incoming, memory_order_acquire)))
		take_incoming(cq);
	if (unlikely(cq->armed))
		disarm(cq);
	else if (unlikely(cq->fds_left || ++cq->polls % FDS_EVERY == 0))
		look_at_fds(cq);
	if (!list_is_empty(&cq->work))
		run_work(cq);
	pull_active(cq);
	return deliver(cq, wc, max);
}

/* Returns the time when the oldest unfinished send of a queue pair may proceed without a doorbell. */
static uint64_t next_due(const struct local_qp *qp, uint64_t now)
{
	uint64_t due = UINT64_MAX;

	for (uint32_t i = qp->sq_tail; i != qp->sq_head; i++) {
		const struct local_sqe *e = &qp->sqe[i & qp->sq_mask];

		if (e->reqs)
			continue; /* the reply rings */
		if (e->due_ns > now)
			due = MIN(due, e->due_ns);
		else if (e->state != SQE_MOVED)
			due = MIN(due, now + TICK_NS);
	}
	return due;
}

static void set_timer(struct local_cq *cq)
{
	uint64_t now = clock_now_ns(), due = UINT64_MAX;
	struct itimerspec its = { { 0, 0 }, { 0, 0 } };

	list_for_each(node, &cq->work)
		due = MIN(due, next_due(list_entry(node, struct local_qp, work_node), now));
	if (due == UINT64_MAX)
		return;
	its.it_value.tv_sec = (time_t)(due / NS_PER_S);
	its.it_value.tv_nsec = (long)(due % NS_PER_S);
	(void)timerfd_settime(cq->timerfd, TFD_TIMER_ABSTIME, &its, NULL);
	cq->timer_set = true;
}

/** rr_local_cq_arm - prepares to sleep on the descriptor
 *
 * Return: 0: sleep; 1: something arrived meanwhile, poll again.
 */
int rr_local_cq_arm(struct rr_cq *base)
{
	struct local_cq *cq = to_cq(base);

	if (atomic_load(&cq->has_incoming) || !list_is_empty(&cq->ready))
		return 1;
	list_for_each_safe(node, &cq->active) {
		struct local_qp *qp = list_entry(node, struct local_qp, cq_node);

		if (qp->phase != PHASE_UP)
			continue;
		make_dormant(cq, qp);
		if (!rr_local_ring_idle(qp)) {
			make_active(cq, qp);
			return 1;
		}
	}
	if (!list_is_empty(&cq->work))
		set_timer(cq);
	cq->armed = true;
	return 0;
}
