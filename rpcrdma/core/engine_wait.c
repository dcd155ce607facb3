/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * engine_wait.c - how an engine waits: it spins, sleeps, and lets other threads in while it sleeps
 *
 * Operation:  rpcrdma_engine_wait() repeats the pass of engine.c. It spins while the last event is recent and a queue
 *             pair is worth spinning for, and then sleeps in epoll. It learns from its sleeps how long to spin: longer
 *             while pollers wait for a device, shorter if spinning is in vain. It yields while it spins; when a yield
 *             costs another thread's time slice, it sleeps for a while instead. While many replies are due it dozes.
 *
 *             No wakeup is lost: `sleeping` is set before the last check of the inbox and before the queues are
 *             armed. A later push rings the bell, and a later completion makes the queue's descriptor readable.
 *
 *             While the owner sleeps in rpcrdma_engine_wait(), another thread may take its place for a moment
 *             (rpcrdma_engine_enter()), so that the start of work wakes no thread. `door` is held during such a visit.
 *             The owner closes the door before it touches anything after a sleep.
 * Memory:     None.
 * Threads:    The owner's, except for rpcrdma_engine_enter() and what may follow it until rpcrdma_engine_leave().
 * Errors:     None.
 */
#include <sched.h>
#include <time.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "ep.h"

/* Spinning must not keep the peer off a shared CPU. A yield that brings work halves the number of passes until
 * the next yield; one that brings none doubles it. */
#define YIELD_AFTER_MIN 2u
/* A visitor that still finds completions leaves them to the owner. */
#define LEAVE_PASSES 4u

/* Return: false: completions arrived meanwhile */
static bool arm_cqs(struct rpcrdma_engine *e)
{
	bool work = false;

	for (unsigned i = 0; !work && i < atomic_load(&e->ncqs); i++) {
		struct rr_cq *cq = atomic_load(&e->cq[i]);

		work = cq && rr_cq_arm(cq);
	}
	return !work;
}

/* Arms everything that can wake the engine, then checks once more. */
static bool prepare_sleep(struct rpcrdma_engine *e)
{
	bool work = e->deferred != NULL;

	atomic_store(&e->sleeping, true);
	atomic_thread_fence(memory_order_seq_cst);
	work |= atomic_load(&e->inbox) != NULL;
	work = work || !arm_cqs(e);
	if (work)
		atomic_store(&e->sleeping, false);
	return !work;
}

static void set_alarm(struct rpcrdma_engine *e, uint64_t due_ns)
{
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(due_ns / NS_PER_S),
					       .tv_nsec = (long)(due_ns % NS_PER_S) } };

	e->alarm_ns = due_ns;
	timerfd_settime(e->alarm.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

int rpcrdma_engine_arm(struct rpcrdma_engine *e)
{
	const struct rpcrdma_timer *first = e->timers.first;

	if (!prepare_sleep(e))
		return 1;
	/* the next pass follows because the engine's descriptor is readable */
	e->passes = RR_LOOK_PASSES;
	e->looked_ns = 0;
	/* `sleeping` stays set: the next push rings, which costs only a system call */
	if (first && e->alarm_ns != first->due_ns)
		set_alarm(e, first->due_ns);
	return first && first->due_ns <= clock_now_ns();
}

/* Returns how long epoll may sleep, rounded up. */
static int sleep_ms(uint64_t now, uint64_t until)
{
	uint64_t ns;

	if (until == UINT64_MAX)
		return -1;
	ns = until > now ? until - now : 0;
	return (int)MIN((ns + NS_PER_MS - 1) / NS_PER_MS, UINT64_C(3600000));
}

/* ---- spinning ---- */

static uint64_t usual_spin_ns(const struct rpcrdma_engine *e)
{
	return e->attr.spin_us * NS_PER_US;
}

/* Returns how long to spin without an event. A visitor knows that a reply is due. */
static uint64_t spin_ns(const struct rpcrdma_engine *e)
{
	return e->pollers || e->visited ? MAX(e->spin_ns, usual_spin_ns(e)) : MIN(e->spin_ns, usual_spin_ns(e));
}

/* Descriptors alone (TCP) are not worth spinning for: each check is a system call. */
static bool is_worth_spinning(const struct rpcrdma_engine *e, uint64_t idle_ns)
{
	return e->attr.poll == RPCRDMA_POLL_BUSY ||
	       (e->attr.poll == RPCRDMA_POLL_ADAPTIVE && e->qps > 0 && !e->contention.left && idle_ns < spin_ns(e));
}

static void yield(struct rpcrdma_engine *e, uint64_t now)
{
	sched_yield();
	rr_contention_yielded(&e->contention, clock_now_ns() - now);
}

/* Sleeps for some microseconds while many replies are due, without the thread's timer slack, which is longer than that.
 * A real-time thread, which has none, does not doze: it is there for latency.
 * Return: replies due at its beginning; 0: it has not dozed */
static unsigned doze(struct rpcrdma_engine *e, uint64_t now)
{
	struct timespec at = { .tv_nsec = (long)e->doze.ns };
	unsigned awaited = e->awaited;
	int slack;

	if (e->attr.poll != RPCRDMA_POLL_ADAPTIVE || e->pollers || !rr_doze_is_due(&e->doze, awaited))
		return 0;
	slack = prctl(PR_GET_TIMERSLACK);
	if (slack <= 0 || prctl(PR_SET_TIMERSLACK, 1))
		return 0;
	clock_nanosleep(CLOCK_MONOTONIC, 0, &at, NULL);
	prctl(PR_SET_TIMERSLACK, slack);
	rr_contention_yielded(&e->contention, clock_now_ns() - now);
	return awaited;
}

/* ---- visits by other threads while the owner sleeps ---- */

/* Without that, the completion of a visitor's own Send wakes the owner, which then waits for the visitor. */
static bool are_polls_quiet(struct rpcrdma_engine *e)
{
	for (unsigned i = 0; i < atomic_load(&e->ncqs); i++) {
		const struct rr_cq *cq = atomic_load(&e->cq[i]);

		if (cq && !cq->fabric->attr.quiet_polls)
			return false;
	}
	return true;
}

bool rpcrdma_engine_enter(struct rpcrdma_engine *e)
{
	if (!atomic_load_explicit(&e->open, memory_order_relaxed) || pthread_mutex_trylock(&e->door))
		return false;
	/* a message posted earlier must run first */
	if (!atomic_load(&e->open) || atomic_load(&e->inbox) || (e->qps && !are_polls_quiet(e))) {
		pthread_mutex_unlock(&e->door);
		return false;
	}
	e->visits++;
	e->visited = true;
	e->visitor_polls = false;
	return true;
}

bool rpcrdma_engine_is_visited(const struct rpcrdma_engine *e)
{
	return e->visited;
}

/* The owner has woken up, or messages wait for it. */
static bool is_owner_needed(struct rpcrdma_engine *e)
{
	return !atomic_load_explicit(&e->open, memory_order_relaxed) ||
	       atomic_load_explicit(&e->inbox, memory_order_relaxed);
}

/* The first pass disarms the queues, so that completions of the visit wake no thread. */
void rpcrdma_engine_linger(struct rpcrdma_engine *e, const bool *done)
{
	uint64_t start = clock_now_ns(), now = start;
	unsigned spins = 0;

	if (!e->qps)
		return;
	e->visitor_polls = true;
	do {
		if (rr_engine_run_cqs(e) + rr_engine_run_deferred(e)) {
			start = now;
			continue;
		}
		if (++spins % e->yield_after == 0)
			yield(e, now);
		now = clock_now_ns();
	} while (!*done && !is_owner_needed(e) && is_worth_spinning(e, now - start));
}

/* Processes the completions of the visit, and arms the queues again. Return: false: there is work for the owner */
static bool may_sleep_on(struct rpcrdma_engine *e)
{
	bool armed = !e->visitor_polls;

	for (unsigned i = 0; i < LEAVE_PASSES && !armed; i++) {
		(void)rr_engine_run_cqs(e);
		(void)rr_engine_run_deferred(e);
		armed = arm_cqs(e);
	}
	return armed && !e->deferred;
}

/* The owner sleeps until the timer that was the first one then. An earlier one is left to the alarm. */
void rpcrdma_engine_leave(struct rpcrdma_engine *e)
{
	const struct rpcrdma_timer *first = e->timers.first;

	if (first && first->due_ns < e->sleep_until_ns && (!e->alarm_ns || e->alarm_ns > first->due_ns))
		set_alarm(e, first->due_ns);
	if (!may_sleep_on(e))
		rr_engine_ring(e);
	e->visited = false;
	pthread_mutex_unlock(&e->door);
}

/* Sleeps, and lets other threads in meanwhile. */
static int sleep_open(struct rpcrdma_engine *e, uint64_t now, uint64_t limit_ns)
{
	unsigned visits = e->visits;
	int n;

	e->sleep_until_ns = e->timers.first ? MIN(limit_ns, e->timers.first->due_ns) : limit_ns;
	atomic_store(&e->open, true);
	n = epoll_wait(e->epfd, e->ready, RR_READY_MAX, sleep_ms(now, e->sleep_until_ns));
	atomic_store(&e->open, false); /* before the lock, so that visitors cannot keep the owner out */
	pthread_mutex_lock(&e->door);
	pthread_mutex_unlock(&e->door);
	if (visits != e->visits && n > 0) /* a visitor may have ended a watch that is among these events */
		n = epoll_wait(e->epfd, e->ready, RR_READY_MAX, 0);
	return rr_engine_run_events(e, n);
}

int rpcrdma_engine_wait(struct rpcrdma_engine *e, int timeout_ms)
{
	uint64_t start = 0, now, limit = UINT64_MAX;
	bool yielded = false, polled, nested = e->running;
	unsigned spins = 0, visits, dozed = 0;
	int ran;

	for (;;) {
		ran = rpcrdma_engine_poll(e);
		if (dozed)
			rr_doze_ended(&e->doze, dozed, (unsigned)ran);
		dozed = 0;
		if (yielded)
			e->yield_after = ran ? MAX(e->yield_after / 2, YIELD_AFTER_MIN)
					     : MIN(e->yield_after * 2, RR_YIELD_AFTER_MAX);
		yielded = false;
		if (ran) {
			e->busy = true;
			if (spins)
				e->spin_ns = MAX(e->spin_ns, usual_spin_ns(e));
			rr_count(e, spins, 1);
			return ran;
		}
		/* a pass with work does not need the time, which may be expensive to read */
		now = clock_now_ns();
		if (e->busy)
			e->last_event_ns = now;
		e->busy = false;
		if (!start) {
			start = now;
			if (timeout_ms >= 0)
				limit = start + (uint64_t)timeout_ms * NS_PER_MS;
		}
		if (now >= limit)
			return 0;
		if (is_worth_spinning(e, now - MAX(e->last_event_ns, start))) {
			dozed = doze(e, now);
			spins++;
			yielded = !dozed && spins % e->yield_after == 0;
			if (yielded)
				yield(e, now);
			continue;
		}
		e->contention.left -= e->contention.left > 0;
		if (!prepare_sleep(e))
			continue;
		rr_count(e, sleeps, 1);
		polled = e->pollers != NULL;
		visits = e->visits;
		e->running = true;
		ran = sleep_open(e, now, limit);
		if (polled || visits == e->visits) /* visitors see events that do not end a sleep */
			e->spin_ns = rr_spin_learnt(e->spin_ns, usual_spin_ns(e), polled,
						    clock_now_ns() - MAX(e->last_event_ns, start));
		atomic_store(&e->sleeping, false);
		e->passes = 0;
		ran += rr_engine_run_awake(e);
		e->running = nested;
		e->busy = true;
		if (ran || (limit != UINT64_MAX && clock_now_ns() >= limit))
			return ran;
	}
}
