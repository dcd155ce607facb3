/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tamper.c - an honest library whose shared memory and calls another thread writes to
 *
 * Operation:  The program is linked with --wrap of the functions below, so the connections of the library
 *             are known here. A thread writes to the shared memory of all of them while the library uses it.
 * Memory:     The queue pairs are the library's; the lock keeps them from going away.
 * Threads:    One of its own; the functions that are wrapped run on the library's.
 * Errors:     The process may crash: it writes to its own end, too.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile.h"
#include "local_int.h"

#define QPS_MAX 256u
#define PAGE 4096u
#define MESSAGE_MAX 65536u

int __real_rr_local_ring_map(struct local_qp *qp, int fd);
int __wrap_rr_local_ring_map(struct local_qp *qp, int fd);
void __real_rr_local_ring_unmap(struct local_qp *qp);
void __wrap_rr_local_ring_unmap(struct local_qp *qp);
void __real_rr_local_ring_send(struct local_qp *qp, const struct local_sqe *e);
void __wrap_rr_local_ring_send(struct local_qp *qp, const struct local_sqe *e);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct local_qp *qps[QPS_MAX];
static unsigned nqps, tampering;
static struct attack_run run; /* of the thread, and of calls: its random numbers are under the lock */

int __wrap_rr_local_ring_map(struct local_qp *qp, int fd)
{
	int rc = __real_rr_local_ring_map(qp, fd);

	pthread_mutex_lock(&lock);
	if (!rc && nqps < QPS_MAX)
		qps[nqps++] = qp;
	pthread_mutex_unlock(&lock);
	return rc;
}

void __wrap_rr_local_ring_unmap(struct local_qp *qp)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < nqps; i++) {
		if (qps[i] == qp) {
			qps[i] = qps[--nqps];
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	__real_rr_local_ring_unmap(qp);
}

int tamper_sock(void)
{
	int fd;

	pthread_mutex_lock(&lock);
	fd = nqps ? qps[nqps - 1]->sock : -1;
	pthread_mutex_unlock(&lock);
	return fd;
}

static void put_word(void *base, size_t words, uint32_t value)
{
	memcpy((uint8_t *)base + run_rand(&run, (uint32_t)words) * 4u, &value, 4);
}

/* Most words of the rings are never looked at: those of the two sides, of keys and of messages are. */
static void change_words(struct local_qp *qp)
{
	uint32_t value = run_word(&run);

	switch (run_rand(&run, 6)) {
	case 0:
		put_word(qp->me, 3 * LOCAL_LINE / 4, value); /* all but the requests */
		break;
	case 1:
		put_word(qp->me, sizeof(*qp->me) / 4, value);
		break;
	case 2:
		put_word(qp->my_keys, qp->my_nkeys * sizeof(*qp->my_keys) / 4, value);
		break;
	case 3:
		put_word(qp->peer_ring.base, qp->peer_ring.bytes / 4, value);
		break;
	case 4:
		put_word(qp->other, 3 * LOCAL_LINE / 4, value);
		break;
	default:
		put_word(qp->rings->addr, qp->rings->size / 4, value);
	}
	rr_local_ring_bell(qp);
}

static void make_busy(struct local_qp *qp)
{
	for (uint32_t i = 0; i < qp->peer_nkeys; i++)
		atomic_fetch_or(&qp->peer_keys[i].busy, 1);
}

static void punch_holes(struct local_qp *qp)
{
	uint32_t pages = (uint32_t)(qp->rings->size / PAGE), first, n;

	if (!pages)
		return;
	first = run_rand(&run, pages);
	n = run_rand(&run, 4) ? 1 : run_rand(&run, pages - first);
	(void)madvise((uint8_t *)qp->rings->addr + (size_t)first * PAGE, (size_t)n * PAGE, MADV_REMOVE);
}

static void *tamper_on(void *arg)
{
	(void)arg;
	for (;;) {
		unsigned ms = 1;

		pthread_mutex_lock(&lock);
		for (unsigned i = 0; i < nqps; i++) {
			if (tampering & TAMPER_WORDS)
				change_words(qps[i]);
			if (tampering & TAMPER_BUSY)
				make_busy(qps[i]);
			if (tampering & TAMPER_HOLES)
				punch_holes(qps[i]);
		}
		/* rare enough that a connection gets somewhere before it is cut */
		if (!(tampering & TAMPER_BUSY))
			ms += run_rand(&run, 20);
		pthread_mutex_unlock(&lock);
		run_nap(&run, ms);
	}
	return NULL;
}

void tamper_start(struct attack_run *r, unsigned what)
{
	pthread_t thread;

	run = *r;
	tampering = what;
	if (pthread_create(&thread, NULL, tamper_on, NULL))
		die("no thread");
	pthread_detach(thread);
}

/* Another message, at most as long as the peer's buffers, so that it gets there. */
static uint32_t change_message(uint8_t *bytes, uint32_t len, uint32_t most)
{
	uint32_t words = len / 4;

	for (unsigned n = 1 + run_rand(&run, 3); n && words; n--) {
		uint32_t at = run_rand(&run, 2) ? run_rand(&run, words) : run_rand(&run, MIN(words, 24u));
		uint32_t value = run_word(&run);

		value = run_rand(&run, 2) ? value : __builtin_bswap32(value);
		memcpy(bytes + at * 4u, &value, 4);
	}
	if (!run_rand(&run, 4))
		len = run_rand(&run, len + 1);
	else if (!run_rand(&run, 8))
		len = most;
	return len;
}

void __wrap_rr_local_ring_send(struct local_qp *qp, const struct local_sqe *e)
{
	static uint8_t bytes[MESSAGE_MAX];
	struct local_sqe changed = *e;
	uint32_t len = e->wr.sge.len;

	pthread_mutex_lock(&lock);
	if (!(tampering & TAMPER_CALLS) || e->wr.op == RR_WR_WRITE_IMM || len > sizeof(bytes) ||
	    run_rand(&run, 8)) {
		pthread_mutex_unlock(&lock);
		__real_rr_local_ring_send(qp, e);
		return;
	}
	memcpy(bytes, e->wr.sge.addr, len);
	changed.wr.sge.addr = bytes;
	changed.wr.sge.len = change_message(bytes, len, MIN(qp->peer_recv_bytes, MESSAGE_MAX));
	__real_rr_local_ring_send(qp, &changed);
	pthread_mutex_unlock(&lock);
}
