/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * write_verf.h - the write verifier of each file system
 *
 * Invariants: WRITE and COMMIT get the same verifier for all files of one file system until a loss is reported there.
 * A loss in one file system does not change the verifiers of others, unless more than WRITE_VERF_SLOTS file systems
 * have lost data.
 */
#ifndef LEAT_SERVER_WRITE_VERF_H
#define LEAT_SERVER_WRITE_VERF_H

#include <stdatomic.h>
#include <stdint.h>

#define WRITE_VERF_SLOTS 64u

struct write_verf {
	_Atomic uint64_t start; /* verifier of file systems that have lost nothing */
	struct {
		_Atomic uint64_t key;	 /* of a file system that has lost data; 0: free */
		_Atomic uint64_t losses; /* added to start; 1 in a free slot, see write_verf_change() */
	} slots[WRITE_VERF_SLOTS];
};

/** write_verf_init - initialises @w; call it before other threads use @w
 * @start: random, because a restart may have lost data
 */
void write_verf_init(struct write_verf *w, uint64_t start);

/** write_verf_of - returns the current verifier of the file system @dev (st_dev); any thread */
uint64_t write_verf_of(const struct write_verf *w, uint64_t dev);

/** write_verf_change - changes the verifier of a file system that may have lost uncommitted data; any thread
 * @dev: its st_dev
 *
 * From then on write_verf_of() returns a verifier for @dev that it has not returned before.
 */
void write_verf_change(struct write_verf *w, uint64_t dev);

#endif
