/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_pool.c - the pool of data buffers: classes, limits, the line of waiters, idling
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "hooks.h"
#include "local.h"
#include "pool.h"
#include "lab.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define DATA (&d->pools[RR_ZONE_DATA])
#define CLASS_1M 4

void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int __real_madvise(void *addr, size_t len, int advice);
int __wrap_madvise(void *addr, size_t len, int advice);

/* Huge pages that this machine has set aside, in segments; and is the touch of the next one refused? */
static int huge_left;
static bool huge_fails;
static bool no_memory;
static void *last_huge;

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (no_memory && flags & MAP_ANONYMOUS) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (!(flags & MAP_HUGETLB))
		return __real_mmap(addr, len, prot, flags, fd, off);
	if (huge_left <= 0) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	huge_left--;
	flags &= ~(MAP_HUGETLB | (int)(63u << MAP_HUGE_SHIFT));
	return last_huge = __real_mmap(addr, len, prot, flags, fd, off);
}

int __wrap_madvise(void *addr, size_t len, int advice)
{
	if (huge_fails && advice == MADV_POPULATE_WRITE && addr == last_huge) {
		errno = EFAULT;
		return -1;
	}
	return __real_madvise(addr, len, advice);
}

static struct rpcrdma_domain *d;
static struct rpcrdma_engine *e, *e2;

static void open_pool(size_t bytes, const struct rr_local_attr *local)
{
	struct rpcrdma_domain_attr attr = { .pool_bytes_max = bytes, .lab = LAB(.local = local) };

	assert_int_equal(rpcrdma_domain_create(&attr, &d), 0);
	assert_int_equal(rpcrdma_engine_create(d, NULL, &e), 0);
	assert_int_equal(rpcrdma_engine_create(d, NULL, &e2), 0);
}

static void close_pool(void)
{
	rpcrdma_engine_destroy(e);
	rpcrdma_engine_destroy(e2);
	rpcrdma_domain_destroy(d);
}

/* 6 MiB of it for data: six buffers of 1 MiB, which is the largest that it bears several of */
static int set_up(void **state)
{
	(void)state;
	open_pool(8 * MIB, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close_pool();
	return 0;
}

static void poll_both(void)
{
	while (rpcrdma_engine_poll(e) + rpcrdma_engine_poll(e2))
		;
}

/* all there are of 1 MiB; Return: how many */
static int take_all(struct rpcrdma_engine *of, struct rpcrdma_buf **b)
{
	int n = 0;

	while (rpcrdma_buf_get(of, MIB, &b[n]) == 0)
		n++;
	return n;
}

static void smallest_class_that_fits(void **state)
{
	static const size_t sizes[][2] = { { 1, 4096 }, { 4096, 4096 }, { 4097, 16384 },
					   { 65536, 65536 }, { 65537, 262144 },
					   { MIB, MIB }, { MIB + 1, 4 * MIB }, { 4 * MIB, 4 * MIB } };

	(void)state;
	close_pool();
	open_pool(32 * MIB, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct rpcrdma_buf *b;

		assert_int_equal(rpcrdma_buf_get(e, sizes[i][0], &b), 0);
		assert_int_equal(b->bytes, sizes[i][1]);
		assert_int_equal((uintptr_t)b->addr % 4096, 0);
		assert_false(b->far);
		memset(b->addr, 0x5a, b->bytes);
		rpcrdma_buf_put(e, b);
		rr_pool_drain(e);
	}
	assert_int_equal(rpcrdma_buf_get(e, 4 * MIB + 1, &(struct rpcrdma_buf *){ NULL }), -EMSGSIZE);
}

static void buffers_do_not_overlap(void **state)
{
	struct rpcrdma_buf *b[64];

	(void)state;
	for (int i = 0; i < 64; i++) {
		assert_int_equal(rpcrdma_buf_get(i % 2 ? e : e2, 65536, &b[i]), 0);
		memset(b[i]->addr, i, b[i]->bytes);
	}
	for (int i = 0; i < 64; i++) {
		const uint8_t *p = b[i]->addr;

		for (size_t k = 0; k < b[i]->bytes; k++)
			if (p[k] != i)
				fail_msg("buffer %d byte %zu", i, k);
		rpcrdma_buf_put(e, b[i]); /* on any engine */
	}
}

/* The limit holds, and free memory of one class serves another. */
static void the_limit_holds(void **state)
{
	struct rpcrdma_buf *b[16], *more;
	int n = take_all(e, b);

	(void)state;
	assert_int_equal(n, 6);
	assert_int_equal(rpcrdma_buf_get(e2, 4096, &more), -ENOBUFS);
	assert_true(DATA->bytes <= DATA->bytes_max);
	while (n > 0)
		rpcrdma_buf_put(e, b[--n]);
	rr_pool_drain(e);
	assert_int_equal(rpcrdma_buf_get(e2, 4096, &more), 0);
	assert_true(DATA->bytes <= DATA->bytes_max);
	assert_int_equal(DATA->given_back, 1);
	rpcrdma_buf_put(e2, more);
}

/* Of the least there may be, every use still has one buffer of 64 KiB, and none what would be all. */
static void little_memory(void **state)
{
	static const size_t limits[] = { RPCRDMA_POOL_BYTES_MIN, 700 * KIB, 4 * MIB - 1 };
	struct rpcrdma_domain_attr attr = { .pool_bytes_max = RPCRDMA_POOL_BYTES_MIN - 1 };
	struct rpcrdma_domain *none;

	(void)state;
	assert_int_equal(rpcrdma_domain_create(&attr, &none), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct rpcrdma_buf *b[RR_ZONES][64];
		unsigned n[RR_ZONES];
		size_t sum = 0;

		close_pool();
		open_pool(limits[i], NULL);
		for (unsigned z = 0; z < RR_ZONE_FAR; z++) {
			for (n[z] = 0; n[z] < ARRAY_SIZE(b[z]) && !rr_zone_is_msgs((enum rr_zone)z) &&
				       !rr_buf_get(e, (enum rr_zone)z, 64 * KIB, &b[z][n[z]]);)
				sum += b[z][n[z]++]->bytes;
			assert_true(n[z] >= (z == RR_ZONE_DATA ? 4 : !rr_zone_is_msgs((enum rr_zone)z)));
			sum = 0;
			for (unsigned k = 0; k <= z; k++)
				sum += d->pools[k].msgs ? 0 : d->pools[k].bytes;
			assert_true(sum <= limits[i]);
		}
		for (unsigned z = 0; z < RR_ZONE_FAR; z++)
			while (n[z] > 0)
				rpcrdma_buf_put(e, b[z][--n[z]]);
		if (limits[i] <= 700 * KIB)
			assert_int_equal(rpcrdma_buf_get(e, 64 * KIB + 1, &b[0][0]), -EMSGSIZE);
	}
}

/* However many messages there are, they take nothing of what is for data, nor data of theirs. */
static void messages_are_beside_it(void **state)
{
	struct rpcrdma_domain_attr attr = { .pool_bytes_max = RPCRDMA_POOL_BYTES_MIN,
					    .msg_bytes_max = RPCRDMA_MSG_BYTES_MIN - 1 };
	struct rpcrdma_buf *b[2][300], *data;
	struct rpcrdma_pool_stats s;
	struct rpcrdma_domain *dom;
	struct rpcrdma_engine *eng;
	unsigned n[2] = { 0, 0 };

	(void)state;
	assert_int_equal(rpcrdma_domain_create(&attr, &dom), -EINVAL);
	attr.msg_bytes_max++;
	for (size_t bytes = 4096; bytes <= 64 * KIB; bytes *= 16) {
		assert_int_equal(rpcrdma_domain_create(&attr, &dom), 0);
		assert_int_equal(rpcrdma_engine_create(dom, NULL, &eng), 0);
		while (!rr_buf_get(eng, RR_ZONE_RECVS, bytes, &b[0][n[0]]))
			n[0]++;
		while (!rr_buf_get(eng, RR_ZONE_SENDS, bytes, &b[1][n[1]]))
			n[1]++;
		assert_int_equal(n[0], 768 * KIB / bytes); /* 12 of the longest: one connection */
		assert_int_equal(n[1], 256 * KIB / bytes);
		rpcrdma_domain_pool_stats(dom, &s);
		assert_int_equal(s.msgs, RPCRDMA_MSG_BYTES_MIN);
		assert_int_equal(s.msgs_limit, RPCRDMA_MSG_BYTES_MIN);
		assert_int_equal(s.pinned, 0);
		assert_int_equal(rpcrdma_buf_get(eng, 64 * KIB, &data), 0);
		rpcrdma_buf_put(eng, data);
		for (unsigned k = 0; k < 2; k++)
			while (n[k] > 0)
				rpcrdma_buf_put(eng, b[k][--n[k]]);
		dom->pool_idle_ns = 0; /* whole segments go back, and what is in no magazine */
		pthread_mutex_lock(&dom->lock);
		(void)!rr_pool_trim(dom);
		pthread_mutex_unlock(&dom->lock);
		rpcrdma_domain_pool_stats(dom, &s);
		assert_true(s.msgs <= RR_MAGAZINE_SENDS * MAX(bytes, 32 * KIB));
		assert_int_equal(s.msgs_most, RPCRDMA_MSG_BYTES_MIN);
		rpcrdma_engine_destroy(eng);
		rpcrdma_domain_destroy(dom);
	}
}

/* Full segments stand behind those that have a buffer left: the search ends with the first. */
static void full_segments_stand_last(void **state)
{
	struct rpcrdma_buf *b[64], *again;

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(rr_buf_get(e, RR_ZONE_RECVS, 4096, &b[i]), 0);
	rpcrdma_buf_put(e, b[3]); /* of a segment that was full */
	rr_pool_drain(e);
	assert_int_equal(rr_buf_get(e, RR_ZONE_RECVS, 4096, &again), 0);
	assert_ptr_equal(again, b[3]);
	for (unsigned i = 0; i < 64; i++)
		rpcrdma_buf_put(e, b[i]);
}

/* Other classes cannot use the idle part of a segment of which one buffer is held. So half of the zone is not split:
 * a buffer of that half keeps only its own bytes from others. */
static void half_is_not_cut(void **state)
{
	static struct rpcrdma_buf *small[800], *large[64];
	const size_t zone = 48 * MIB, segment = 2 * MIB;
	unsigned n = 0, m = 0;

	(void)state;
	close_pool();
	open_pool(64 * MIB, NULL);
	while (!rpcrdma_buf_get(e, 64 * KIB, &small[n]))
		n++;
	assert_int_equal(n, zone / (64 * KIB)); /* all of it can be allocated */
	assert_int_equal(DATA->bytes_split, zone / 2);
	assert_int_equal(DATA->shares->idle, 0);
	for (unsigned i = 0; i < n; i++) /* one is kept of each segment's worth */
		if (i % 32)
			rpcrdma_buf_put(e, small[i]);
	rr_pool_drain(e);
	assert_int_equal(DATA->shares->idle, zone / 2 / segment * (segment - 64 * KIB));
	while (!rpcrdma_buf_get(e, MIB, &large[m]))
		m++;
	assert_int_equal(m, (zone / 2 - zone / 2 / segment * 64 * KIB) / MIB);
	assert_true(DATA->bytes <= DATA->bytes_max);
	while (m > 0)
		rpcrdma_buf_put(e, large[--m]);
	for (unsigned i = 0; i < n; i += 32)
		rpcrdma_buf_put(e, small[i]);
	rr_pool_drain(e);
	assert_int_equal(DATA->shares->idle, 0);
}

/* What is kept for clients with little is not split: one small buffer of each would take a segment of it. */
static void what_is_kept_is_not_cut(void **state)
{
	struct rpcrdma_buf *large[10], *mib, *small;

	(void)state;
	close_pool();
	open_pool(64 * MIB, NULL); /* 48 MiB, of which 6 are kept */
	for (unsigned i = 0; i < ARRAY_SIZE(large); i++)
		assert_int_equal(rpcrdma_buf_get(e, 4 * MIB, &large[i]), 0);
	assert_int_equal(rpcrdma_buf_get(e, MIB, &mib), 0);
	assert_int_equal(DATA->bytes_split, 2 * MIB);
	assert_int_equal(rpcrdma_buf_get(e, 4096, &small), 0);
	assert_int_equal(DATA->bytes, 42 * MIB + 4096);
	for (unsigned i = 0; i < ARRAY_SIZE(large); i++)
		rpcrdma_buf_put(e, large[i]);
	rpcrdma_buf_put(e, mib);
	rpcrdma_buf_put(e, small);
}

/* Where there is no room for a segment any more there may be some for a buffer. */
static void a_last_one_fits(void **state)
{
	struct rpcrdma_domain_attr attr = { .pool_bytes_max = RPCRDMA_POOL_BYTES_MIN, .msg_bytes_max = 1056 * KIB };
	struct rpcrdma_buf *large[12], *small;
	struct rpcrdma_domain *dom;
	struct rpcrdma_engine *eng;

	(void)state;
	assert_int_equal(rpcrdma_domain_create(&attr, &dom), 0); /* 792 KiB for receives, in segments of 32 */
	assert_int_equal(rpcrdma_engine_create(dom, NULL, &eng), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(large); i++)
		assert_int_equal(rr_buf_get(eng, RR_ZONE_RECVS, 64 * KIB, &large[i]), 0);
	assert_int_equal(rr_buf_get(eng, RR_ZONE_RECVS, 4096, &small), 0);
	assert_int_equal(dom->pools[RR_ZONE_RECVS].bytes, 772 * KIB);
	for (unsigned i = 0; i < ARRAY_SIZE(large); i++)
		rpcrdma_buf_put(eng, large[i]);
	rpcrdma_buf_put(eng, small);
	rpcrdma_engine_destroy(eng);
	rpcrdma_domain_destroy(dom);
}

/* A single buffer that is free is taken where a segment would be, but cannot be had. */
static void no_memory_for_a_segment(void **state)
{
	static struct rpcrdma_buf *b[400], *large[11], *none;
	const unsigned in_half = 24 * MIB / (64 * KIB);
	struct rpcrdma_buf *single;

	(void)state;
	close_pool();
	open_pool(64 * MIB, NULL);
	for (unsigned i = 0; i < in_half; i++)
		assert_int_equal(rpcrdma_buf_get(e, 64 * KIB, &b[i]), 0);
	assert_int_equal(rpcrdma_buf_get(e, 64 * KIB, &single), 0);
	for (unsigned i = 0; i < in_half; i++)
		rpcrdma_buf_put(e, b[i]);
	rpcrdma_buf_put(e, single);
	rr_pool_drain(e);
	for (unsigned i = 0; i < ARRAY_SIZE(large); i++) /* in place of all segments but one */
		assert_int_equal(rpcrdma_buf_get(e, 4 * MIB, &large[i]), 0);
	for (unsigned i = 0; i <= 32; i++) /* the last one is single */
		assert_int_equal(rpcrdma_buf_get(e, 64 * KIB, &b[i]), 0);
	assert_int_equal(DATA->bytes_split, 2 * MIB);
	for (unsigned i = 0; i < 2; i++)
		rpcrdma_buf_put(e, large[i]);
	rr_pool_drain(e);
	d->pool_idle_ns = 0;
	pthread_mutex_lock(&d->lock);
	assert_int_equal(rr_pool_trim(d), 0); /* so there is room for a segment */
	pthread_mutex_unlock(&d->lock);
	rpcrdma_buf_put(e, b[32]);
	rr_pool_drain(e);
	no_memory = true;
	assert_int_equal(rpcrdma_buf_get(e, 64 * KIB, &b[32]), 0);
	assert_int_equal(rpcrdma_buf_get(e, 64 * KIB, &none), -ENOMEM);
	no_memory = false;
	for (unsigned i = 0; i <= 32; i++)
		rpcrdma_buf_put(e, b[i]);
	for (unsigned i = 2; i < ARRAY_SIZE(large); i++)
		rpcrdma_buf_put(e, large[i]);
}

/* However many segments there are, one look gives back a few, and the next comes soon. */
static void many_go_back_by_and_by(void **state)
{
	static struct rpcrdma_buf *b[6144 + 600];
	unsigned looks = 0;

	(void)state;
	close_pool();
	open_pool(64 * MIB, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(b); i++)
		assert_int_equal(rpcrdma_buf_get(e, 4 * KIB, &b[i]), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(b); i++)
		rpcrdma_buf_put(e, b[i]);
	rr_pool_drain(e);
	d->pool_idle_ns = 0;
	pthread_mutex_lock(&d->lock);
	while (rr_pool_trim(d))
		looks++;
	pthread_mutex_unlock(&d->lock);
	assert_int_equal(looks, 2); /* 256 each */
	assert_int_equal(DATA->bytes, 0);
}

struct waiter {
	struct rpcrdma_buf_waiter w;
	struct rpcrdma_engine *e;
	struct rpcrdma_buf *buf;
	int order;
};

static int turns;

static void on_turn(struct rpcrdma_buf_waiter *w)
{
	struct waiter *me = container_of(w, struct waiter, w);

	if (rpcrdma_buf_get(me->e, MIB, &me->buf))
		rpcrdma_buf_wait(me->e, w);
	else
		me->order = ++turns;
}

static void wait_at(struct waiter *w, struct rpcrdma_engine *at)
{
	*w = (struct waiter){ .e = at, .w.fn = on_turn };
	rpcrdma_buf_wait(at, &w->w);
}

static void shortage_is_a_queue(void **state)
{
	struct rpcrdma_buf *b[8];
	struct waiter w[6];
	int n = take_all(e, b);

	(void)state;
	turns = 0;
	for (int i = 0; i < 6; i++)
		wait_at(&w[i], e);
	poll_both();
	assert_int_equal(turns, 0);
	rpcrdma_buf_unwait(e, &w[2].w);
	for (int i = 0; i < 5; i++) {
		rpcrdma_buf_put(i % 2 ? e : e2, b[i]); /* each serves exactly one */
		poll_both();
		assert_int_equal(turns, i + 1);
	}
	assert_int_equal(w[0].order, 1);
	assert_int_equal(w[1].order, 2);
	assert_int_equal(w[2].order, 0);
	assert_int_equal(w[3].order, 3);
	assert_int_equal(w[4].order, 4);
	assert_int_equal(w[5].order, 5);
	assert_int_equal(DATA->waiting, 0);
	assert_int_equal(e->stats.buf_waits, 6); /* a second try is no second wait */
	for (int i = 0; i < 6; i++)
		if (w[i].buf)
			rpcrdma_buf_put(e, w[i].buf);
	for (int i = 5; i < n; i++)
		rpcrdma_buf_put(e, b[i]);
}

/* Engines take turns. While one engine waits, callers of the other do not get returned buffers. */
static void engines_take_turns(void **state)
{
	struct rpcrdma_buf *b[8], *other;
	struct waiter w[6];
	int n = take_all(e, b);

	(void)state;
	turns = 0;
	for (int i = 0; i < 4; i++)
		wait_at(&w[i], e);
	rpcrdma_buf_put(e, b[--n]);
	assert_int_equal(rpcrdma_buf_get(e2, MIB, &other), -ENOBUFS);
	assert_int_equal(rpcrdma_buf_get(e2, 4096, &other), -ENOBUFS);
	wait_at(&w[4], e2);
	wait_at(&w[5], e2);
	while (n > 0)
		rpcrdma_buf_put(e2, b[--n]);
	poll_both();
	assert_int_equal(turns, 6);
	assert_int_equal(w[0].order, 1);
	assert_int_equal(w[4].order, 2);
	assert_int_equal(w[1].order, 3);
	assert_int_equal(w[5].order, 4);
	assert_int_equal(w[2].order, 5);
	assert_int_equal(w[3].order, 6);
	for (int i = 0; i < 6; i++)
		rpcrdma_buf_put(e, w[i].buf);
}

static void on_vain_turn(struct rpcrdma_buf_waiter *w)
{
	rpcrdma_buf_wait(container_of(w, struct waiter, w)->e, w);
}

static void *come_and_go(void *arg)
{
	struct waiter w = { .e = arg, .w.fn = on_vain_turn };

	for (int i = 0; i < 2000; i++) {
		rpcrdma_buf_wait(w.e, &w.w);
		(void)rpcrdma_engine_poll(w.e);
		rpcrdma_buf_unwait(w.e, &w.w);
	}
	return NULL;
}

/* Each on its own thread, neighbours in the line: what they share, the thread sanitizer sees (VARIANT=tsan). */
static void engines_are_in_line_by_themselves(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, come_and_go, e2), 0);
	(void)come_and_go(e);
	assert_int_equal(pthread_join(thread, NULL), 0);
	poll_both();
	assert_int_equal(DATA->waiting, 0);
	assert_true(list_is_empty(&DATA->line));
}

/* Buffers in the magazine of another engine go to waiters. */
static void magazines_are_given_up(void **state)
{
	struct rpcrdma_buf *b[8];
	struct waiter w;
	int n = take_all(e, b);

	(void)state;
	turns = 0;
	rpcrdma_buf_put(e, b[--n]);
	assert_int_equal(e->buf_caches[RR_ZONE_DATA].in_magazine[CLASS_1M], 1);
	assert_int_equal(rpcrdma_buf_get(e2, MIB, &b[n]), -ENOBUFS);
	wait_at(&w, e2);
	poll_both();
	assert_int_equal(turns, 1);
	assert_int_equal(e->buf_caches[RR_ZONE_DATA].in_magazine[CLASS_1M], 0);
	rpcrdma_buf_put(e2, w.buf);
	while (n > 0)
		rpcrdma_buf_put(e, b[--n]);
}

/* A buffer for a long reply is available while all data memory is held by calls that wait for that reply. */
static void uses_do_not_wait_for_each_other(void **state)
{
	struct rpcrdma_buf *b[8], *answer, *call;
	struct waiter w;
	int n = take_all(e, b);

	(void)state;
	wait_at(&w, e);
	poll_both();
	assert_int_equal(rr_buf_get(e, RR_ZONE_REPLIES, MIB, &answer), 0);
	assert_int_equal(rr_buf_get(e, RR_ZONE_CALLS, MIB, &call), 0);
	assert_null(w.buf);
	rpcrdma_buf_put(e, answer);
	rpcrdma_buf_put(e, call);
	poll_both();
	assert_null(w.buf); /* that is no memory for data */
	rpcrdma_buf_unwait(e, &w.w);
	while (n > 0)
		rpcrdma_buf_put(e, b[--n]);
}

/* A burst does not pin memory for ever: memory that was not used since the previous trim is freed. */
static void idle_memory_goes_back(void **state)
{
	struct rpcrdma_pool_stats s;
	struct rpcrdma_buf *b[8];
	int n;

	(void)state;
	d->pool_idle_ns = 1;
	n = take_all(e, b);
	rpcrdma_domain_pool_stats(d, &s);
	assert_int_equal(s.pinned, 6 * MIB);
	assert_int_equal(s.most, 6 * MIB);
	assert_int_equal(s.limit, 8 * MIB);
	assert_int_equal(s.classes[CLASS_1M].used, 6);
	assert_int_equal(s.classes[CLASS_1M].bytes, MIB);
	while (n > 1)
		rpcrdma_buf_put(e, b[--n]);
	while (rpcrdma_engine_wait(e, 0))
		;
	for (int i = 0; i < 4; i++) /* looks: it was used; nothing was; it is old */
		rpcrdma_engine_wait(e, 20);
	rpcrdma_domain_pool_stats(d, &s);
	assert_int_equal(s.pinned, MIB); /* one is still in use */
	assert_int_equal(s.most, 6 * MIB);
	assert_int_equal(s.classes[CLASS_1M].used, 1);
	assert_int_equal(s.given_back, 5);
	rpcrdma_buf_put(e, b[0]);
}

/* What cannot be registered is no memory, and is not counted; the next may be. */
static void registration_fails(void **state)
{
	struct rr_local_attr local = { .filters = HOOKS(.fail_reg = 1) };
	struct rpcrdma_buf *b;
	struct rr_dev *dev;

	(void)state;
	close_pool();
	open_pool(8 * MIB, &local);
	assert_int_equal(rr_domain_dev(d, RPCRDMA_LOCAL, &dev), 0);
	assert_int_equal(rpcrdma_buf_get(e, 4096, &b), -ENOMEM);
	assert_int_equal(DATA->bytes, 0);
	assert_int_equal(rpcrdma_buf_get(e, 4096, &b), 0);
	assert_int_equal(rr_buf_mr(b, dev)->access, RR_ACCESS_LOCAL_WRITE);
	assert_int_equal(rr_buf_mr(b, dev)->rkey, 0); /* no remote access */
	rpcrdma_buf_put(e, b);
}

/* ... nor is a device, and then nothing of it is left behind. */
static void registration_with_a_new_device_fails(void **state)
{
	struct rr_local_attr local = { .filters = HOOKS(.fail_reg = 2) };
	struct rpcrdma_buf *b, *c;
	struct rr_dev *dev;

	(void)state;
	close_pool();
	open_pool(8 * MIB, &local);
	assert_int_equal(rpcrdma_buf_get(e, 4096, &b), 0);
	assert_int_equal(rpcrdma_buf_get(e, MIB, &c), 0);
	assert_int_equal(rr_domain_dev(d, RPCRDMA_LOCAL, &dev), -ENOMEM);
	assert_int_equal(d->ndevs, 0);
	assert_int_equal(rr_domain_dev(d, RPCRDMA_LOCAL, &dev), -ENOMEM); /* the hook is the fabric's */
	rpcrdma_buf_put(e, b);
	rpcrdma_buf_put(e, c);
}

/* Reserved huge pages are used while there are any, and counted as such. If a huge page exists but cannot be
 * allocated (a limit that applies at the first access), small pages are used. */
static void huge_pages(void **state)
{
	struct rpcrdma_pool_stats s;
	struct rpcrdma_buf *b[5];

	(void)state;
	huge_left = 3;
	close_pool();
	open_pool(256 * MIB, NULL);
	for (int i = 0; i < 5; i++) {
		huge_fails = i == 1;
		assert_int_equal(rpcrdma_buf_get(e, 4 * MIB, &b[i]), 0);
		memset(b[i]->addr, i, b[i]->bytes);
	}
	rpcrdma_domain_pool_stats(d, &s);
	assert_int_equal(s.pinned, 20 * MIB);
	assert_int_equal(s.huge, 8 * MIB);
	for (int i = 0; i < 5; i++)
		rpcrdma_buf_put(e, b[i]);
	rr_pool_drain(e);
	d->pool_idle_ns = 0;
	pthread_mutex_lock(&d->lock);
	assert_int_equal(rr_pool_trim(d), 0);
	pthread_mutex_unlock(&d->lock);
	rpcrdma_domain_pool_stats(d, &s);
	assert_int_equal(s.pinned, 0);
	assert_int_equal(s.huge, 0);
}

#define pool_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		pool_test(smallest_class_that_fits),
		pool_test(buffers_do_not_overlap),
		pool_test(the_limit_holds),
		pool_test(little_memory),
		pool_test(shortage_is_a_queue),
		pool_test(engines_take_turns),
		pool_test(engines_are_in_line_by_themselves),
		pool_test(messages_are_beside_it),
		pool_test(full_segments_stand_last),
		pool_test(half_is_not_cut),
		pool_test(what_is_kept_is_not_cut),
		pool_test(a_last_one_fits),
		pool_test(no_memory_for_a_segment),
		pool_test(many_go_back_by_and_by),
		pool_test(magazines_are_given_up),
		pool_test(uses_do_not_wait_for_each_other),
		pool_test(idle_memory_goes_back),
		pool_test(registration_fails),
		pool_test(registration_with_a_new_device_fails),
		pool_test(huge_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
