/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_sim_cache.h - the volatile cache of a modelled disk
 *
 * The files always have the latest data. For every byte that is not stable, the cache has the previous contents, so
 * that a cut can restore them.
 */
#ifndef LEAT_SERVER_STORE_SIM_CACHE_H
#define LEAT_SERVER_STORE_SIM_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/util.h"

#define SIM_CACHE_BYTES (64u << 20) /* beyond that, the oldest data is written back */
#define SIM_CACHE_FILES 256u

/* The owner locks it. */
struct sim_cache {
	struct list files; /* in order of their first write */
	size_t nfiles, bytes, bytes_max;
};

/** sim_cache_init - starts with an empty cache; beyond @bytes_max the oldest data is written back */
void sim_cache_init(struct sim_cache *c, size_t bytes_max);

/** sim_cache_fini - treats all data as written back: the contents of the files stay */
void sim_cache_fini(struct sim_cache *c);

/** sim_cache_write - saves what an unstable write will overwrite; call it before the write
 * @fd: open for reading and writing
 *
 * Return: 0, -ENOMEM, or the -errno of reading.
 */
int must_check sim_cache_write(struct sim_cache *c, int fd, uint64_t dev, uint64_t ino,
			       uint64_t off, uint32_t len);

/** sim_cache_stable - records a stable write of these bytes, and of no others */
void sim_cache_stable(struct sim_cache *c, uint64_t dev, uint64_t ino, uint64_t off, uint32_t len);

/** sim_cache_sync - records that the whole file is stable */
void sim_cache_sync(struct sim_cache *c, uint64_t dev, uint64_t ino);

/** sim_cache_cut - simulates a power cut: removes all data from the files that was not stable
 *
 * Return: number of bytes that were lost.
 */
size_t sim_cache_cut(struct sim_cache *c);

#endif
