/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stage.c - buffers between nbdkit and a server on this host
 *
 * Operation:  A server on this host copies twice between its page cache and memory of nbdkit, one of these copies by system calls
 *             that walk page tables. It reads and writes memory of leat_buf_alloc() directly, because both have it mapped. So a
 *             copy by the plugin replaces the more expensive one. RDMA needs no copy: there are no buffers then. The
 *             buffer that was used last is taken first, because the processor has it in its cache.
 * Memory:     One allocation, divided into SLOTS.
 * Threads:    Any.
 * Errors:     Without memory, or if all buffers are in use, requests go without.
 */
#include "stage.h"

#include <pthread.h>
#include <stddef.h>

#include "leat.h"
#include "leat_block.h"

#define SLOT_BYTES (1u << 20)
#define SLOTS 32u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct leat_session *session;
static void *memory;
static void *free_slots[SLOTS]; /* lock */
static unsigned nfree;          /* lock */

void stage_start(struct leat_block *b)
{
	struct leat_info info = { .size = sizeof(info) };

	if (leat_info(leat_block_handle(b), &info) || info.transport != LEAT_TRANSPORT_LOCAL)
		return;
	session = leat_session(leat_block_handle(b));
	if (leat_buf_alloc(session, (size_t)SLOTS * SLOT_BYTES, &memory))
		return;
	for (nfree = 0; nfree < SLOTS; nfree++)
		free_slots[nfree] = (char *)memory + (size_t)(SLOTS - 1 - nfree) * SLOT_BYTES;
}

void stage_end(void)
{
	nfree = 0;
	leat_buf_free(session, memory);
	memory = NULL;
}

void *stage_take(uint32_t bytes)
{
	void *buf = NULL;

	if (!memory || bytes > SLOT_BYTES)
		return NULL;
	pthread_mutex_lock(&lock);
	if (nfree)
		buf = free_slots[--nfree];
	pthread_mutex_unlock(&lock);
	return buf;
}

void stage_put(void *buf)
{
	pthread_mutex_lock(&lock);
	free_slots[nfree++] = buf;
	pthread_mutex_unlock(&lock);
}
