/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_monitor_notes.h - a user of the monitor that keeps notes of memory, for its tests
 *
 * What is kept here is no registration but a note of what the pages were: each page of an arena has an
 * identity, which changes whenever the page is lost, and whatever is looked up must name those of now.
 */
#ifndef TEST_MONITOR_NOTES_H
#define TEST_MONITOR_NOTES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "kernel_has.h"
#include "monitor.h"

#define PAGE ((size_t)4096)
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static struct rr_monitor *m;

/* ---- the user that keeps notes ---- */

#define NOTES 64
#define NOTE_PAGES 16u

static struct note {
	uintptr_t start, end;
	bool alive;
	unsigned long ids[NOTE_PAGES];
} notes[NOTES];
static unsigned long told;
static bool deaf; /* is not told: what a cache without a monitor would be */

static void on_gone(struct rr_monitor_user *u, uintptr_t start, uintptr_t end)
{
	(void)u;
	told++;
	for (struct note *n = notes; n < notes + NOTES && !deaf; n++)
		if (n->alive && n->start < end && start < n->end)
			n->alive = false;
}

static bool does_keep(struct rr_monitor_user *u, uintptr_t start, uintptr_t end)
{
	(void)u;
	for (struct note *n = notes; n < notes + NOTES; n++)
		if (n->alive && n->start < end && start < n->end)
			return true;
	return false;
}

static struct rr_monitor_user user = { .gone = on_gone, .keeps = does_keep };

static int set_up(void **state)
{
	(void)state;
	memset(notes, 0, sizeof(notes));
	told = 0;
	deaf = false;
	if (rr_monitor_get(&m))
		return -1;
	rr_monitor_add(m, &user);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	rr_monitor_del(m, &user);
	rr_monitor_put(m);
	return 0;
}

static void insert(const void *start, size_t bytes)
{
	rr_monitor_lock(m);
	notes[0] = (struct note){ (uintptr_t)start, (uintptr_t)start + bytes, true, { 0 } };
	rr_monitor_unlock(m);
}

static void keep(const void *start, size_t bytes)
{
	assert_int_equal(rr_monitor_watch(m, (uintptr_t)start, (uintptr_t)start + bytes), 0);
	insert(start, bytes);
}

static bool is_kept(void)
{
	bool alive;

	rr_monitor_lock(m);
	alive = rr_monitor_settle(m) && notes[0].alive;
	rr_monitor_unlock(m);
	return alive;
}

/* Return: how often anything was told since the last question */
static inline unsigned long was_told(void)
{
	unsigned long n;

	rr_monitor_lock(m); /* the thread that caused an event may continue before the callback */
	n = told;
	told = 0;
	rr_monitor_unlock(m);
	return n;
}

static uint8_t *map_pages(size_t pages)
{
	uint8_t *p = mmap(NULL, pages * PAGE, RW, ANON, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, 1, pages * PAGE);
	return p;
}

static void unmap_pages(uint8_t *p, size_t pages)
{
	assert_int_equal(munmap(p, pages * PAGE), 0);
}

#define WITH_USER(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
