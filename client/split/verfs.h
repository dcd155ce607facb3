/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verfs.h - the verifiers of changes that no flush covers yet: has the server lost any of them?
 *
 * Each acknowledged change (WRITE without FUA, DISCARD, ZERO) returns the verifier that was in force before the server
 * took it. The reply of a FLUSH, or of a WRITE with FUA, returns a verifier too. A change is safe if both are equal.
 * Changes are numbered in the order of their acknowledgements. A FLUSH covers those up to the number that there was when
 * it was sent.
 */
#ifndef LT_VERFS_H
#define LT_VERFS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

#define LT_VERFS_MAX 4u

/* Unflushed changes with the same verifier. Those between first and last may include flushed ones. */
struct lt_verf_range {
	uint64_t verf;
	uint64_t first, last; /* numbers */
};

/* Zero-initialized: no changes. */
struct lt_verfs {
	uint64_t count;       /* acknowledged changes */
	struct lt_verf_range of[LT_VERFS_MAX];
	unsigned n;           /* more than one: the server has lost changes, unless a FLUSH in flight says otherwise */
	bool lost;            /* never cleared: the next attachment has other verifiers */
};

/** lt_verfs_changed - a change was acknowledged with @verf */
void lt_verfs_changed(struct lt_verfs *v, uint64_t verf);

/** lt_verfs_synced - a FLUSH or a WRITE with FUA was acknowledged with @verf
 * @upto: v->count when it was sent
 * @flush: it was a FLUSH: changes up to @upto are on stable storage
 *
 * Return: 0; -EIO: changes up to @upto are lost, or earlier ones were.
 */
must_check int lt_verfs_synced(struct lt_verfs *v, uint64_t verf, uint64_t upto, bool flush);

#endif
