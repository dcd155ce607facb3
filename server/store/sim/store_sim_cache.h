/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_sim_cache.h - the volatile cache of a modelled disk
 *
 * The files always have what was written last. This remembers, of every byte that is not stable, what
 * was there before, so that a cut can take it back.
 */
#ifndef LEAT_SERVER_STORE_SIM_CACHE_H
#define LEAT_SERVER_STORE_SIM_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/util.h"

#define SIM_CACHE_BYTES (64u << 20) /* beyond that, what came first is written back */
#define SIM_CACHE_FILES 256u

/* Whoever owns it has the lock. */
struct sim_cache {
	struct list files; /* the one first written to first */
	size_t nfiles, bytes, bytes_max;
};

void sim_cache_init(struct sim_cache *c, size_t bytes_max);

/** sim_cache_fini - all is written back: what is in the files stays */
void sim_cache_fini(struct sim_cache *c);

/** sim_cache_write - before a write that is not stable: remember what it overwrites
 * @fd: open for reading and writing
 *
 * Return: 0, -ENOMEM, or the -errno of reading.
 */
int must_check sim_cache_write(struct sim_cache *c, int fd, uint64_t dev, uint64_t ino,
			       uint64_t off, uint32_t len);

/** sim_cache_stable - a stable write of these bytes, and of no others */
void sim_cache_stable(struct sim_cache *c, uint64_t dev, uint64_t ino, uint64_t off, uint32_t len);

/** sim_cache_sync - all of this file is stable */
void sim_cache_sync(struct sim_cache *c, uint64_t dev, uint64_t ino);

/** sim_cache_cut - the power goes: no file has what was not stable
 *
 * Return: bytes that were forgotten.
 */
size_t sim_cache_cut(struct sim_cache *c);

#endif
