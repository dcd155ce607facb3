/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * write_verf.h - the write verifier of each file system
 *
 * The contract: WRITE and COMMIT get the same verifier for all files of one file system until a loss is
 * reported there. A loss in one file system leaves the verifiers of the others, unless more than
 * WRITE_VERF_SLOTS file systems have lost something.
 */
#ifndef LEAT_SERVER_WRITE_VERF_H
#define LEAT_SERVER_WRITE_VERF_H

#include <stdatomic.h>
#include <stdint.h>

#define WRITE_VERF_SLOTS 64u

struct write_verf {
	_Atomic uint64_t start; /* of file systems that have lost nothing */
	struct {
		_Atomic uint64_t key;	 /* of a file system that has lost something; 0: free */
		_Atomic uint64_t losses; /* added to start; 1 in a free slot, see write_verf_change() */
	} slots[WRITE_VERF_SLOTS];
};

/** write_verf_init - before other threads use @w
 * @start: random, since a restart may have lost data
 */
void write_verf_init(struct write_verf *w, uint64_t start);

/** write_verf_of - returns the verifier in force for the file system @dev (st_dev); any thread */
uint64_t write_verf_of(const struct write_verf *w, uint64_t dev);

/** write_verf_change - data of the file system @dev that was not committed may be lost; any thread
 *
 * From then on write_verf_of() returns a verifier for @dev that it has not returned before.
 */
void write_verf_change(struct write_verf *w, uint64_t dev);

#endif
