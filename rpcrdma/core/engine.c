/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * engine.c - one thread's event loop: completions, descriptors, timers, messages
 *
 * Operation:  rpcrdma_engine_poll() is one pass: own deferred messages, the inbox, the completion queues, then
 *             the descriptors (not in every pass, since that is a system call), then timers. Pollers run last,
 *             so that they see all work started before. engine_wait.c repeats the pass, spins and sleeps.
 * Memory:     Messages, watches and timers are embedded in their owners' structures.
 * Threads:    The owner's, except for rpcrdma_engine_post().
 * Errors:     None while running; creation may lack descriptors or memory.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/epoll.h"
#include "base/log.h"
#include "ep.h"

#define SPIN_US_DEFAULT 50
#define WC_BATCH 32
/* Longest time that a device may take to flush the last connections. */
#define DRAIN_NS (5 * NS_PER_S)

static void on_bell(struct rpcrdma_watch *w, uint32_t events)
{
	eventfd_t n;

	(void)events;
	(void)eventfd_read(w->fd, &n); /* EAGAIN: an earlier ring was seen already; every pass checks the inbox */
}

static void on_alarm(struct rpcrdma_watch *w, uint32_t events)
{
	struct rpcrdma_engine *e = container_of(w, struct rpcrdma_engine, alarm);
	uint64_t n;

	(void)events;
	e->alarm_ns = 0;
	if (read(w->fd, &n, sizeof(n)) < 0)
		return;
}

/* Every pass polls the queue itself; this only ends the sleep. */
static void on_cq(struct rpcrdma_watch *w, uint32_t events)
{
	(void)w;
	(void)events;
}

static int create(struct rpcrdma_domain *d, const struct rpcrdma_engine_attr *attr, struct rpcrdma_engine **ret)
{
	struct rpcrdma_engine *e = calloc(1, sizeof(*e));
	int rc;

	if (!e)
		return -ENOMEM;
	rc = RR_SIZED_IN(&e->attr, attr, spin_us);
	if (rc) {
		free(e);
		return rc;
	}
	rc = -ENOMEM;
	e->domain = d;
	pthread_mutex_init(&e->shared_lock, NULL);
	pthread_mutex_init(&e->door, NULL);
	list_init(&e->link);
	list_init(&e->conns);
	list_init(&e->shares);
	if (!e->attr.spin_us)
		e->attr.spin_us = SPIN_US_DEFAULT;
	e->spin_ns = e->attr.spin_us * NS_PER_US;
	e->doze.ns = RR_DOZE_NS;
	e->yield_after = RR_YIELD_AFTER_MAX;
	e->deferred_tail = &e->deferred;
	rr_buf_cache_init(e);
	e->bell = (struct rpcrdma_watch){ .fd = -1, .fn = on_bell };
	e->alarm = (struct rpcrdma_watch){ .fd = -1, .fn = on_alarm };
	e->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (e->epfd < 0) {
		rc = -errno;
		goto fail;
	}
	e->ready = calloc(RR_READY_MAX, sizeof(*e->ready));
	if (!e->ready)
		goto fail;
	e->bell.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e->alarm.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (e->bell.fd < 0 || e->alarm.fd < 0) {
		rc = -errno;
		goto fail;
	}
	rc = rpcrdma_engine_watch(e, &e->bell, EPOLLIN);
	if (!rc)
		rc = rpcrdma_engine_watch(e, &e->alarm, EPOLLIN);
	if (rc)
		goto fail;
	rr_domain_add_engine(d, e);
	*ret = e;
	return 0;
fail:
	rpcrdma_engine_destroy(e);
	return rc;
}

int rpcrdma_engine_create(struct rpcrdma_domain *d, const struct rpcrdma_engine_attr *attr,
			  struct rpcrdma_engine **ret)
{
	struct rpcrdma_domain *own = NULL;
	int rc = d ? 0 : rpcrdma_domain_create(NULL, &own);

	if (rc)
		return rc;
	rc = create(d ? d : own, attr, ret);
	if (rc)
		rpcrdma_domain_destroy(own);
	else
		(*ret)->own_domain = own;
	return rc;
}

/* Runs only the messages present at the start; those deferred meanwhile wait for the next pass. */
int rr_engine_run_deferred(struct rpcrdma_engine *e)
{
	unsigned n = e->ndeferred;

	if (!n)
		return 0;
	while (n-- > 0 && e->deferred) {
		struct rpcrdma_msg *m = e->deferred;

		rr_engine_undefer(e, m);
		m->fn(m); /* may free it */
	}
	return 1;
}

static int run_inbox(struct rpcrdma_engine *e)
{
	struct rpcrdma_msg *m, *fifo = NULL;

	if (!atomic_load_explicit(&e->inbox, memory_order_relaxed))
		return 0;
	m = atomic_exchange_explicit(&e->inbox, NULL, memory_order_acquire);
	/* pushed as a stack, run as a queue */
	while (m) {
		struct rpcrdma_msg *next = m->next;

		m->next = fifo;
		fifo = m;
		m = next;
	}
	while (fifo) {
		m = fifo;
		fifo = m->next;
		m->fn(m); /* may free it, or post it again */
	}
	return 1;
}

void rpcrdma_engine_destroy(struct rpcrdma_engine *e)
{
	uint64_t give_up_ns = clock_now_ns() + DRAIN_NS;

	if (!e)
		return;
	/* messages deferred or posted by the last destroyed objects, and the last completions of their connections */
	while (e->epfd >= 0 && (rr_engine_run_deferred(e) || run_inbox(e) ||
				(e->qps > 0 && clock_now_ns() < give_up_ns)))
		rpcrdma_engine_poll(e);
	rr_shared_fini(e);
	rr_pool_drain(e);
	pthread_mutex_destroy(&e->shared_lock);
	pthread_mutex_destroy(&e->door);
	for (unsigned i = 0; i < RR_DEVS_MAX; i++)
		rr_cq_destroy(atomic_load(&e->cq[i]));
	if (list_is_linked(&e->link))
		rr_domain_del_engine(e->domain, e);
	if (e->alarm.fd >= 0)
		close(e->alarm.fd);
	if (e->bell.fd >= 0)
		close(e->bell.fd);
	if (e->epfd >= 0)
		close(e->epfd);
	free(e->ready);
	rpcrdma_domain_destroy(e->own_domain);
	free(e);
}

struct rpcrdma_domain *rpcrdma_engine_domain(const struct rpcrdma_engine *e)
{
	return e->domain;
}

int rpcrdma_engine_fd(const struct rpcrdma_engine *e)
{
	return e->epfd;
}

int rr_engine_cq(struct rpcrdma_engine *e, struct rr_dev *dev, struct rr_cq **ret)
{
	struct rpcrdma_watch *w = &e->cq_watch[dev->idx];
	struct rr_cq *cq;
	int rc = 0;

	pthread_mutex_lock(&e->domain->lock);
	cq = atomic_load(&e->cq[dev->idx]);
	if (!cq) {
		rc = rr_cq_create(dev->fabric, &cq);
		if (rc)
			goto out;
		*w = (struct rpcrdma_watch){ .fd = cq->fd, .fn = on_cq };
		rc = rpcrdma_engine_watch(e, w, EPOLLIN);
		if (rc) {
			rr_cq_destroy(cq);
			goto out;
		}
		atomic_store(&e->cq[dev->idx], cq);
		atomic_store(&e->ncqs, MAX(atomic_load(&e->ncqs), dev->idx + 1));
	}
	*ret = cq;
out:
	pthread_mutex_unlock(&e->domain->lock);
	return rc;
}

void rr_engine_defer(struct rpcrdma_engine *e, struct rpcrdma_msg *msg)
{
	msg->next = NULL;
	*e->deferred_tail = msg;
	e->deferred_tail = &msg->next;
	e->ndeferred++;
}

void rr_engine_undefer(struct rpcrdma_engine *e, struct rpcrdma_msg *msg)
{
	struct rpcrdma_msg **at = &e->deferred;

	while (*at && *at != msg)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = msg->next;
	if (!*at)
		e->deferred_tail = at;
	e->ndeferred--;
}

void rr_engine_ring(struct rpcrdma_engine *e)
{
	(void)eventfd_write(e->bell.fd, 1); /* fails if the counter is full: the bell is already ringing */
}

void rpcrdma_engine_post(struct rpcrdma_engine *e, struct rpcrdma_msg *msg)
{
	struct rpcrdma_msg *head = atomic_load_explicit(&e->inbox, memory_order_relaxed);

	do
		msg->next = head;
	while (!atomic_compare_exchange_weak_explicit(&e->inbox, &head, msg, memory_order_seq_cst,
						      memory_order_relaxed));
	if (atomic_load(&e->sleeping))
		rr_engine_ring(e);
}

/* ---- descriptors ---- */

int rpcrdma_engine_watch(struct rpcrdma_engine *e, struct rpcrdma_watch *w, uint32_t events)
{
	return epoll_add(e->epfd, w->fd, events, w);
}

int rpcrdma_engine_rewatch(struct rpcrdma_engine *e, struct rpcrdma_watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	return epoll_ctl(e->epfd, EPOLL_CTL_MOD, w->fd, &ev) < 0 ? -errno : 0;
}

void rpcrdma_engine_unwatch(struct rpcrdma_engine *e, struct rpcrdma_watch *w)
{
	epoll_ctl(e->epfd, EPOLL_CTL_DEL, w->fd, NULL);
	for (int i = e->at_ready; i < e->nready; i++)
		if (e->ready[i].data.ptr == w)
			e->ready[i].data.ptr = NULL;
}

/* Runs the @n events in e->ready. */
int rr_engine_run_events(struct rpcrdma_engine *e, int n)
{
	int ran = 0;

	if (n <= 0)
		return 0;
	e->nready = n;
	for (e->at_ready = 0; e->at_ready < e->nready;) {
		struct epoll_event *ev = &e->ready[e->at_ready++];
		struct rpcrdma_watch *w = ev->data.ptr;
		void (*fn)(struct rpcrdma_watch *w, uint32_t events) = w ? w->fn : NULL;

		if (!fn)
			continue;
		fn(w, ev->events); /* may free it */
		/* the engine's own watches are not work: the work they announce is counted */
		ran += fn != on_bell && fn != on_cq && fn != on_alarm;
	}
	e->nready = 0;
	return ran;
}

static int run_ready(struct rpcrdma_engine *e)
{
	return rr_engine_run_events(e, epoll_wait(e->epfd, e->ready, RR_READY_MAX, 0));
}

/* ---- timers ---- */

void rpcrdma_timer_cancel(struct rpcrdma_engine *e, struct rpcrdma_timer *t)
{
	(void)e;
	rr_timers_del(t);
}

void rpcrdma_timer_set(struct rpcrdma_engine *e, struct rpcrdma_timer *t, uint64_t delay_ns)
{
	rr_timers_del(t);
	t->due_ns = clock_now_ns() + delay_ns;
	rr_timers_add(&e->timers, t);
}

static int run_timers(struct rpcrdma_engine *e)
{
	uint64_t now;
	int ran = 0;

	if (!e->timers.first)
		return 0;
	now = clock_now_ns();
	while (e->timers.first && e->timers.first->due_ns <= now) {
		struct rpcrdma_timer *t = e->timers.first;

		rr_timers_del(t);
		t->fn(t);
		ran++;
	}
	return ran;
}

/* ---- the pass ---- */

int rr_engine_run_cqs(struct rpcrdma_engine *e)
{
	struct rr_wc wc[WC_BATCH];
	int ran = 0;

	e->looks++;
	for (unsigned i = 0; i < atomic_load_explicit(&e->ncqs, memory_order_acquire); i++) {
		struct rr_cq *cq = atomic_load_explicit(&e->cq[i], memory_order_acquire);
		int n;

		if (!cq)
			continue;
		n = rr_cq_poll(cq, wc, WC_BATCH);
		for (int k = 0; k < n; k++)
			wc[k].done->fn(wc[k].done, &wc[k]);
		if (n)
			rr_count(e, completions, n);
		ran += n;
	}
	return ran;
}

/* ---- pollers ---- */

void rpcrdma_engine_add_poller(struct rpcrdma_engine *e, struct rpcrdma_poller *p)
{
	if (p->link)
		return;
	p->next = e->pollers;
	p->link = &e->pollers;
	if (p->next)
		p->next->link = &p->next;
	e->pollers = p;
}

void rpcrdma_engine_del_poller(struct rpcrdma_engine *e, struct rpcrdma_poller *p)
{
	if (!p->link)
		return;
	if (e->poller_next == p)
		e->poller_next = p->next;
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	p->link = NULL;
}

static int run_pollers(struct rpcrdma_engine *e)
{
	int ran = 0;

	for (struct rpcrdma_poller *p = e->pollers; p; p = e->poller_next) {
		e->poller_next = p->next;
		ran += p->fn(p); /* may free it */
	}
	return ran;
}

/* In this order: a connection from the inbox exists before its completions arrive. (C does not define the order
 * of a sum's terms.) */
static int run_sources(struct rpcrdma_engine *e)
{
	int ran = rr_engine_run_deferred(e);

	ran += run_inbox(e);
	ran += rr_engine_run_cqs(e);
	return ran;
}

bool rpcrdma_engine_is_running(const struct rpcrdma_engine *e)
{
	return e->running;
}

static bool is_look_due(struct rpcrdma_engine *e)
{
	uint64_t now;

	if (!e->qps)
		return true;
	if (++e->passes < RR_LOOK_PASSES)
		return false;
	e->passes = 0;
	now = clock_now_ns();
	if (now - e->looked_ns < RR_LOOK_NS)
		return false;
	e->looked_ns = now;
	return true;
}

int rpcrdma_engine_poll(struct rpcrdma_engine *e)
{
	bool nested = e->running;
	int ran;

	e->running = true;
	ran = run_sources(e);
	if (is_look_due(e)) {
		ran += run_ready(e);
		ran += run_timers(e);
	}
	ran += rr_engine_run_deferred(e);
	ran += run_pollers(e);
	e->running = nested;
	return ran;
}

int rr_engine_run_awake(struct rpcrdma_engine *e)
{
	int ran = run_sources(e);

	ran += run_timers(e);
	ran += rr_engine_run_deferred(e);
	ran += run_pollers(e);
	return ran;
}

void rpcrdma_count_copied(struct rpcrdma_engine *e, uint64_t bytes)
{
	rr_count(e, bytes_copied, bytes);
}
