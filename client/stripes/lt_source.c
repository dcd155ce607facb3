/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lt_source.c - a mount without a manager's server: calls to it ask the program
 *
 * Operation:  call.c sends calls to the server of the mount here. A LAYOUT becomes a question to the program. Its reply is
 *             turned into results as a manager would send them, with handles that are signed here. There is no other
 *             way to end such a call: one that is cancelled ends with the reply.
 * Memory:     The question is the call. Stripes of the results are allocated, as by the codec.
 * Threads:    The owner's.
 * Errors:     Those of the program; -EOPNOTSUPP of other calls.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "handle.h"
#include "lt_key.h"
#include "lt_source.h"
#include "lt_sized.h"

/* What lt_source_fh() makes */
struct source_fh {
	void *file;
	uint64_t number; /* a later file may have the same address */
};

_Static_assert(sizeof(struct source_fh) <= NFS3_FHSIZE, "a handle has room for it");

void lt_source_fh(struct lt_source *s, void *file, struct lt_fh *ret)
{
	const struct source_fh fh = { .file = file, .number = ++s->files };

	ret->len = sizeof(fh);
	memcpy(ret->data, &fh, sizeof(fh));
}

int lt_source_call(struct lt_call *c)
{
	const VOLLAYOUTargs *a = c->rpc.args;
	struct source_fh fh;
	int rc;

	if (c->rpc.prog != LEAT_VOLUME || c->rpc.proc != VOLUMEPROC_LAYOUT)
		return -EOPNOTSUPP;
	memcpy(&fh, a->fh.volume_fh_val, sizeof(fh));
	rc = c->m->source->layout(fh.file, (struct leat_volume_question *)c);
	c->asks = !rc;
	return rc;
}

static int fill_layout(const struct lt_call *c, const struct leat_volume_answer *a)
{
	const struct leat_volume_key *key = c->m->source->key;
	struct stripe_handle h = { .volume = key->volume, .epoch = a->epoch, .expiry = (uint64_t)time(NULL) + STRIPE_LIFETIME_S,
				   .term = a->term };
	VOLLAYOUTres *res = c->rpc.res;
	VOLLAYOUTresok *ok = &res->VOLLAYOUTres_u.resok;

	if (lt_sized_check(a) || !a->nstripes || a->nstripes > VOLUME_SERVERS_MAX)
		return -EINVAL;
	h.rights = ((const VOLLAYOUTargs *)c->rpc.args)->rights;
	ok->stripes.stripes_val = calloc(a->nstripes, sizeof(*ok->stripes.stripes_val));
	if (!ok->stripes.stripes_val)
		return -ENOMEM;
	ok->stripes.stripes_len = a->nstripes;
	ok->epoch = a->epoch;
	ok->unit = a->stripe;
	ok->lifetime = STRIPE_LIFETIME_S;
	ok->bytes = INT64_MAX; /* reads end nowhere */
	ok->lease = 2 * STRIPE_LIFETIME_S * 1000; /* none is needed while the handles are valid */
	memcpy(ok->object, a->object, sizeof(ok->object));
	memcpy(h.name.object, a->object, sizeof(h.name.object));
	for (uint32_t i = 0; i < a->nstripes; i++) {
		volume_stripe *s = &ok->stripes.stripes_val[i];

		h.server = s->server = a->servers[i];
		h.name.stripe = i;
		stripe_handle_make(&key->keys, &h, s->handle);
	}
	return 0;
}

void leat_volume_reply(struct leat_volume_question *q, int err, const struct leat_volume_answer *a)
{
	struct lt_call *c = (struct lt_call *)q;

	c->asks = false;
	if (c->cancelled)
		err = -ECANCELED;
	if (!err)
		err = fill_layout(c, a);
	c->done(&c->rpc, err);
}
