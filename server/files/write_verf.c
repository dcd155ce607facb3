/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * write_verf.c - the write verifier of each file system
 *
 * Operation: A verifier is a random number chosen when the server starts, plus the number of losses of its
 *            file system. A file system gets a slot with its first loss. Slots are never freed: if a device
 *            number is reused for another file system, that one continues with the verifier of the first.
 *            When all slots are taken, a loss in a further file system changes the random number, and so
 *            the verifiers of all file systems: clients retransmit more data than necessary.
 * Memory:    The caller's structure.
 * Threads:   Any, without a lock. Writing the key of a slot publishes the first loss, because the count of
 *            a free slot is already 1.
 * Errors:    None.
 */
#include "write_verf.h"

#include <stddef.h>

#include "base/util.h"

/* Return: never 0; no file system has st_dev -1 */
static uint64_t key_of(uint64_t dev)
{
	return MAX(dev + 1, 1);
}

void write_verf_init(struct write_verf *w, uint64_t start)
{
	atomic_init(&w->start, start);
	for (size_t i = 0; i < WRITE_VERF_SLOTS; i++) {
		atomic_init(&w->slots[i].key, 0);
		atomic_init(&w->slots[i].losses, 1);
	}
}

uint64_t write_verf_of(const struct write_verf *w, uint64_t dev)
{
	uint64_t start = atomic_load(&w->start), key = key_of(dev), has;

	for (size_t i = 0; i < WRITE_VERF_SLOTS && (has = atomic_load(&w->slots[i].key)); i++) {
		if (has == key)
			return start + atomic_load(&w->slots[i].losses);
	}
	return start;
}

void write_verf_change(struct write_verf *w, uint64_t dev)
{
	uint64_t key = key_of(dev);

	for (size_t i = 0; i < WRITE_VERF_SLOTS; i++) {
		uint64_t has = 0;

		if (atomic_compare_exchange_strong(&w->slots[i].key, &has, key))
			return;
		if (has == key) {
			atomic_fetch_add(&w->slots[i].losses, 1);
			return;
		}
	}
	atomic_fetch_add(&w->start, 1);
}
