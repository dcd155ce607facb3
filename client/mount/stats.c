/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stats.c - counters of a mount, by name and index
 *
 * Operation:  The counters of librpcrdma, in the order of RPCRDMA_COUNTERS, and then those of libleat, in the order
 *             of LT_COUNTERS. A counter of libleat is added to this list, which makes the member that counts, and
 *             described in leat.h and in leat_stats(3).
 * Memory:     None.
 * Threads:    With the service thread any (the service thread reads the state), else the owner's.
 * Errors:     -ENOENT: no such counter. In a child of the process that mounted, the counters are zero.
 */
#include <errno.h>
#include <string.h>

#include "sync.h"

#define NAME(name) #name,

static const char *const names[] = { RPCRDMA_COUNTERS(NAME, NAME) LT_COUNTERS(NAME) };

struct counters {
	struct rpcrdma_stats rpc;
	struct lt_counters own;
};

#define COUNTERS ARRAY_SIZE(names)

_Static_assert(sizeof(struct counters) == COUNTERS * sizeof(uint64_t), "one name for each");

const char *leat_stat_name(size_t i)
{
	return i < COUNTERS ? names[i] : NULL;
}

static void look_stats(void *of, void *arg)
{
	struct leat *m = of;
	struct counters *c = arg;

	rpcrdma_domain_stats(m->session->domain, &c->rpc);
	c->own = m->counters;
}

size_t leat_stats(struct leat *m, uint64_t *values, size_t n)
{
	struct counters c = { 0 };

	(void)lt_sync_run(leat_session(m), look_stats, m, &c);
	if (n)
		memcpy(values, &c, MIN(n, COUNTERS) * sizeof(*values));
	return COUNTERS;
}

int leat_stat_value(struct leat *m, const char *name, uint64_t *ret)
{
	uint64_t v[COUNTERS];
	int rc = m ? lt_session_check(m->session) : -EINVAL;

	if (rc)
		return rc;
	for (size_t i = 0; i < COUNTERS; i++) {
		if (!strcmp(names[i], name)) {
			leat_stats(m, v, COUNTERS);
			*ret = v[i];
			return 0;
		}
	}
	lt_handle_untold();
	return lt_sync_refused(m, __func__, -ENOENT);
}
