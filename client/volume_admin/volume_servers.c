/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_servers.c - which stripe servers the manager of a volume can reach
 *
 * Operation: One call to the manager. Its results are copied, so that the program may make calls itself.
 * Memory:    The list is on the stack of the caller.
 * Threads:   As functions of leat.h.
 * Errors:    -errno; leat_error() has the reason.
 */
#include <errno.h>

#include "handle.h"
#include "leat_volume.h"
#include "volume_maps.h"

struct seen_list {
	volume_seen servers[VOLUME_SERVERS_MAX];
	unsigned n;
};

_Static_assert((int)VOLUME_SEEN_AWAY == (int)LEAT_VOLUME_AWAY && (int)VOLUME_SEEN_IN_REACH == (int)LEAT_VOLUME_IN_REACH,
	       "the same numbers");

static void take_servers(struct lt_op *op, int err)
{
	const VOLSERVERSresok *ok = &op->res.volservers.VOLSERVERSres_u.resok;
	struct seen_list *l = op->ret_any;

	if (!err) {
		l->n = ok->servers.servers_len;
		for (unsigned i = 0; i < l->n; i++) {
			l->servers[i] = ok->servers.servers_val[i];
			if (l->servers[i].state > VOLUME_SEEN_AWAY)
				err = -EREMOTEIO;
		}
		if (err)
			lt_task_explain(&op->task, err, "SERVERS", "not a possible state of a server");
	}
	lt_op_end_results(op, err);
}

static void ask_servers(struct lt_op *op, int err)
{
	struct leat *m = op->task.m;

	(void)err; /* a first step */
	op->args.volservers.fh = (volume_fh){ m->root.len, m->root.data };
	lt_op_call_volume(op, VOLUMEPROC_SERVERS, take_servers);
}

int leat_volume_servers(struct leat *m, leat_volume_seen_fn fn, void *ctx)
{
	struct seen_list l = { .n = 0 };
	int rc = lt_volume_check(m, "SERVERS");

	if (!rc)
		rc = lt_volume_run(m, __func__, ask_servers, &l);
	for (unsigned i = 0; i < l.n && !rc; i++) {
		const volume_seen *s = &l.servers[i];
		const struct leat_volume_seen seen = { .size = sizeof(seen), .server = s->server, .for_ms = s->ms,
						       .reach = (enum leat_volume_reach)s->state };

		rc = fn(ctx, &seen);
	}
	return rc;
}
