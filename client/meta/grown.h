/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * grown.h - files of a striped volume that this client has extended, and whose manager does not know yet
 *
 * client/stripes keeps the list of a mount. Whatever shows the size of a file to the program looks there.
 */
#ifndef LT_GROWN_H
#define LT_GROWN_H

#include "base/list.h"
#include "handle.h"

struct lt_grown {
	struct list link; /* in m->grown */
	struct lt_fh fh;
	uint64_t bytes;   /* end of what was written */
};

/** lt_grown_size - the size of a file for which the server says @size */
static inline uint64_t lt_grown_size(const struct leat *m, const struct lt_fh *fh, uint64_t size)
{
	list_for_each(node, &m->grown) {
		const struct lt_grown *g = list_entry(node, struct lt_grown, link);

		if (lt_fh_is_equal(&g->fh, fh))
			return MAX(size, g->bytes);
	}
	return size;
}

/** lt_grown_cut - this client has set the size of a file to @size */
static inline void lt_grown_cut(const struct leat *m, const struct lt_fh *fh, uint64_t size)
{
	list_for_each(node, &m->grown) {
		struct lt_grown *g = list_entry(node, struct lt_grown, link);

		if (lt_fh_is_equal(&g->fh, fh))
			g->bytes = MIN(g->bytes, size);
	}
}

#endif
