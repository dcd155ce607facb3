/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_monitor.c - memory that loses its pages: all users are notified before the call returns
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lose_pages.h"
#include "test_monitor_notes.h"

/* ---- each way to lose pages ---- */

static void what_touches_only_is_kept(void **state)
{
	uint8_t *p = map_pages(4);
	int fds[2];

	(void)state;
	keep(p, 4 * PAGE);
	memset(p, 2, 4 * PAGE);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], p, PAGE), PAGE);
	assert_int_equal(read(fds[0], p + PAGE, PAGE), PAGE);
	assert_int_equal(mprotect(p, PAGE, PROT_READ), 0);
	assert_int_equal(madvise(p, 4 * PAGE, MADV_COLD), 0);
	assert_true(is_kept());
	assert_int_equal(was_told(), 0);
	close(fds[0]);
	close(fds[1]);
	unmap_pages(p, 4);
	assert_false(is_kept());
}

static void a_hole_in_the_middle(void **state)
{
	uint8_t *p = map_pages(8);

	(void)state;
	keep(p, 8 * PAGE);
	unmap_pages(p + 3 * PAGE, 1);
	assert_false(is_kept());
	unmap_pages(p, 8);
}

static void next_to_it_is_another_matter(void **state)
{
	uint8_t *p = map_pages(8);

	(void)state;
	keep(p + 2 * PAGE, 4 * PAGE);
	unmap_pages(p, 2);
	unmap_pages(p + 6 * PAGE, 2);
	assert_true(is_kept());
	assert_int_equal(was_told(), 0);
	unmap_pages(p, 8);
}

static void something_mapped_over(void **state)
{
	uint8_t *p = map_pages(4);

	(void)state;
	keep(p, 4 * PAGE);
	assert_ptr_equal(mmap(p + PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0), p + PAGE);
	assert_false(is_kept());
	unmap_pages(p, 4);
}

static void moved_and_shrunk(void **state)
{
	uint8_t *p = map_pages(4), *room = map_pages(8), *to;

	(void)state;
	keep(p, 4 * PAGE);
	to = mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room);
	assert_ptr_equal(to, room);
	assert_false(is_kept());
	keep(to, 4 * PAGE); /* where it went it is watched as well */
	assert_ptr_equal(mremap(to, 4 * PAGE, 2 * PAGE, 0), to);
	assert_false(is_kept());
	keep(to, PAGE);
	/* moved onto it */
	p = map_pages(2);
	assert_ptr_equal(mremap(p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
	assert_false(is_kept());
	/* moved, and the range stays */
	keep(to, PAGE);
	p = mremap(to, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_false(is_kept());
	unmap_pages(p, 1);
	unmap_pages(room, 8);
}

static void advised_away(void **state)
{
	static const int advice[] = { MADV_DONTNEED, MADV_FREE };
	uint8_t *p = map_pages(4);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(advice); i++) {
		keep(p, 4 * PAGE);
		assert_int_equal(madvise(p + 3 * PAGE, PAGE, advice[i]), 0);
		assert_false(is_kept());
	}
	unmap_pages(p, 4);
}

static void the_heap_shrinks(void **state)
{
	uint8_t *top;

	(void)state;
	top = sbrk(0);
	if (sbrk(8 * (intptr_t)PAGE) != top) {
		print_message("SKIP: no heap by brk here\n");
		skip();
	}
	assert_int_equal(rr_monitor_watch(m, (uintptr_t)top, (uintptr_t)top + PAGE), 0);
	insert(top, PAGE);
	assert_int_equal(brk(top), 0);
	assert_false(is_kept());
}

static void freed(void **state)
{
	const size_t bytes = (size_t)64 << 20; /* too much for any allocator to hold back */
	uint8_t *p = malloc(bytes);

	(void)state;
	assert_non_null(p);
	memset(p, 1, bytes);
	keep(p + PAGE, bytes - PAGE);
	free(p);
#ifdef __SANITIZE_ADDRESS__
	print_message("SKIP: the sanitizer keeps what is freed\n");
	skip();
#endif
	assert_false(is_kept());
}

static void no_longer_watched(void **state)
{
	uint8_t *p = map_pages(4);

	(void)state;
	keep(p, 4 * PAGE);
	for (int kept = 1; kept >= 0; kept--) {
		rr_monitor_lock(m);
		notes[0].alive = kept; /* then it stays as it is */
		rr_monitor_unwatch(m, (uintptr_t)p + 2 * PAGE, (uintptr_t)p + 3 * PAGE);
		rr_monitor_unlock(m);
		assert_int_equal(madvise(p + 2 * PAGE, PAGE, MADV_DONTNEED), 0);
		assert_int_equal(was_told(), kept);
	}
	assert_int_equal(was_told(), 0);
	assert_int_equal(madvise(p, PAGE, MADV_DONTNEED), 0);
	assert_int_equal(was_told(), 1);
	unmap_pages(p, 4);
}

/* ---- threads ---- */

static void *unmap_one(void *p)
{
	unmap_pages(p, 1);
	return NULL;
}

/* One thread unmaps and is held; another gets the address and looks it up. */
static void given_to_another_thread(void **state)
{
	uint8_t *p = map_pages(1);
	bool before, after;
	pthread_t t;

	(void)state;
	keep(p, PAGE);
	rr_monitor_lock(m); /* no other thread reads events now */
	assert_int_equal(pthread_create(&t, NULL, unmap_one, p), 0);
	while (mmap(p, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) != p)
		sched_yield();
	before = notes[0].alive;
	/* settled or not: that depends on whether the thread has run on yet */
	after = rr_monitor_settle(m) && notes[0].alive;
	rr_monitor_unlock(m);
	pthread_join(t, NULL);
	assert_true(before);
	assert_false(after);
	assert_false(is_kept());
	unmap_pages(p, 1);
}

#define ROUNDS_THREADS 3000

static unsigned long found, unsettled;

static void *map_and_unmap(void *arg)
{
	struct note *n = arg;

	for (int i = 0; i < ROUNDS_THREADS; i++) {
		uint8_t *p = mmap(NULL, PAGE, RW, ANON, -1, 0);
		uintptr_t at = (uintptr_t)p;

		if (p == MAP_FAILED)
			return NULL;
		rr_monitor_lock(m);
		if (!rr_monitor_settle(m))
			unsettled++;
		else
			for (struct note *k = notes; k < notes + 4; k++)
				found += k->alive && k->start == at;
		rr_monitor_unlock(m);
		if (!rr_monitor_watch(m, at, at + PAGE)) {
			rr_monitor_lock(m);
			*n = (struct note){ at, at + PAGE, true, { 0 } };
			rr_monitor_unlock(m);
		}
		munmap(p, PAGE);
	}
	return n;
}

/* New mappings were never kept before. */
static void threads_share_addresses(void **state)
{
	pthread_t t[4];
	void *end;

	(void)state;
	found = unsettled = 0;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, map_and_unmap, &notes[i]), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(t[i], &end), 0);
		assert_ptr_equal(end, &notes[i]);
	}
	print_message("%d rounds in 4 threads: %lu found, %lu not settled\n", ROUNDS_THREADS, found,
		      unsettled);
	assert_int_equal(found, 0);
	assert_true(unsettled < 4 * ROUNDS_THREADS);
}

/* ---- 20,000 rounds ---- */

#define ROUNDS 20000
#define ARENA 64u

static unsigned long ids[ARENA];
static uint8_t *arena;

/* Whatever it is, [first, first + n) has other pages after it. */
static void lose(unsigned how, unsigned first, unsigned n)
{
	assert_true(lose_pages(arena + first * PAGE, n * PAGE, (enum lose_how)how));
	for (unsigned i = first; i < first + n; i++)
		ids[i]++;
}

/* Return: the note that covers pages [first, first + n), if there is one */
static struct note *look_up(unsigned first, unsigned n)
{
	uintptr_t start = (uintptr_t)(arena + first * PAGE), end = start + n * PAGE;

	for (struct note *k = notes; k < notes + NOTES; k++)
		if (k->alive && k->start <= start && end <= k->end)
			return k;
	return NULL;
}

static bool is_stale(const struct note *k)
{
	size_t first = (k->start - (uintptr_t)arena) / PAGE, n = (k->end - k->start) / PAGE;

	return memcmp(k->ids, ids + first, n * sizeof(ids[0])) != 0;
}

static void random_rounds(unsigned long *ret_hits, unsigned long *ret_stale)
{
	unsigned long hits = 0, stale = 0;
	uint64_t seed = 42;

	arena = map_pages(ARENA);
	memset(ids, 0, sizeof(ids));
	for (int i = 0; i < ROUNDS; i++) {
		unsigned n = 1 + lose_rand(&seed, NOTE_PAGES);
		unsigned first = lose_rand(&seed, ARENA - n);
		uintptr_t at = (uintptr_t)(arena + first * PAGE);
		struct note *k;
		bool settled;

		rr_monitor_lock(m);
		settled = rr_monitor_settle(m);
		k = look_up(first, n);
		hits += k != NULL;
		stale += k && is_stale(k);
		rr_monitor_unlock(m);
		assert_true(settled);
		if (!k) {
			assert_int_equal(rr_monitor_watch(m, at, at + n * PAGE), 0);
			rr_monitor_lock(m);
			k = &notes[lose_rand(&seed, NOTES)];
			*k = (struct note){ at, at + n * PAGE, true, { 0 } };
			memcpy(k->ids, ids + first, n * sizeof(ids[0]));
			rr_monitor_unlock(m);
		}
		if (lose_rand(&seed, 3))
			lose(lose_rand(&seed, LOSE_WAYS), lose_rand(&seed, ARENA - 3),
			     1 + lose_rand(&seed, 3));
	}
	unmap_pages(arena, ARENA);
	*ret_hits = hits;
	*ret_stale = stale;
}

static void nothing_stale_is_found(void **state)
{
	unsigned long hits, stale;

	(void)state;
	random_rounds(&hits, &stale);
	print_message("%d rounds: %lu found, %lu stale, %lu times told\n", ROUNDS, hits, stale,
		      was_told());
	assert_true(hits > ROUNDS / 100);
	assert_int_equal(stale, 0);
	deaf = true; /* and would it be noticed? */
	random_rounds(&hits, &stale);
	assert_true(stale > hits / 2);
}


int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_USER(what_touches_only_is_kept),
		WITH_USER(a_hole_in_the_middle),
		WITH_USER(next_to_it_is_another_matter),
		WITH_USER(something_mapped_over),
		WITH_USER(moved_and_shrunk),
		WITH_USER(advised_away),
		WITH_USER(the_heap_shrinks),
		WITH_USER(freed),
		WITH_USER(no_longer_watched),
		WITH_USER(given_to_another_thread),
		WITH_USER(threads_share_addresses),
		WITH_USER(nothing_stale_is_found),
	};

	if (!kernel_has_uffd())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
