/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verfs.c - the verifiers of changes that no flush covers yet
 *
 * Operation:  Usually all unflushed changes have the same verifier: one range. Replies come in any order, and a change
 *             may be acknowledged with a new verifier while a FLUSH that covers the earlier ones is in flight, so
 *             several ranges are kept until their FLUSH replies. No FLUSH can have the verifier of all of many ranges:
 *             when they do not fit, changes are lost for certain.
 * Memory:     The caller's.
 * Threads:    The caller's.
 * Errors:     -EIO, from the first loss on.
 */
#include <errno.h>

#include "verfs.h"

void lt_verfs_changed(struct lt_verfs *v, uint64_t verf)
{
	v->count++;
	for (unsigned i = 0; i < v->n; i++) {
		if (v->of[i].verf == verf) {
			v->of[i].last = v->count;
			return;
		}
	}
	if (v->n == LT_VERFS_MAX) {
		v->lost = true;
		return;
	}
	v->of[v->n++] = (struct lt_verf_range){ .verf = verf, .first = v->count, .last = v->count };
}

int lt_verfs_synced(struct lt_verfs *v, uint64_t verf, uint64_t upto, bool flush)
{
	unsigned left = 0;

	for (unsigned i = 0; i < v->n; i++) {
		struct lt_verf_range r = v->of[i];

		if (r.first <= upto && r.verf != verf)
			v->lost = true;
		if (flush && r.last <= upto)
			continue;
		if (flush && r.first <= upto)
			r.first = upto + 1;
		v->of[left++] = r;
	}
	v->n = left;
	return v->lost ? -EIO : 0;
}
