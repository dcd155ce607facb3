/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_names.c - LIST and INFO: the volumes, and their holders
 *
 * Operation: Both look at the current size, which may block. Long lists are paged by name.
 * Memory:    Scratch memory of the request.
 * Threads:   Workers; the volume's lock.
 * Errors:    A peer sees the volumes that it may use.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "block_service.h"

/* Strings of results are never written to. */
static char *text(const char *s)
{
	return (char *)(uintptr_t)s;
}

void block_describe(const struct block_entry *e, block_info *ret)
{
	bool rdonly = e->conf.ro;

	pthread_mutex_lock(&e->vol->lock);
	ret->nholders = e->vol->nholders;
	pthread_mutex_unlock(&e->vol->lock);
	ret->name = text(e->conf.name);
	ret->size = block_entry_bytes(e);
	ret->block = e->block;
	ret->preferred = MAX(e->block, 4096u);
	ret->flags = (rdonly ? BLOCK_RDONLY : 0) | (e->conf.share == BLOCK_CONF_SHARED ? BLOCK_SHARED : 0) |
		     (e->caps.discard && !rdonly ? BLOCK_CAN_DISCARD : 0) |
		     (e->caps.fast_zero && e->caps.fast_keep && !rdonly ? BLOCK_FAST_ZERO : 0) |
		     (e->caps.extents ? BLOCK_CAN_EXTENTS : 0) | (e->vol->state ? BLOCK_DURABLE : 0);
}

void block_list(struct req *r)
{
	struct block_call *call = block_call(r);
	const struct block_set *set = block_set_of(call->use);
	BLOCKLISTresok *ok = &call->res.list.BLOCKLISTres_u.resok;
	block_info *v = req_scratch(r, BLOCK_LIST_MAX * sizeof(*v));
	u_int n = 0;

	if (!v)
		return;
	ok->eof = TRUE;
	for (size_t i = 0; i < set->served.n; i++) {
		const struct block_entry *e = &set->v[i];

		if (strcmp(e->conf.name, call->args.list.after) <= 0 || !block_entry_admits(e, &r->conn->peer))
			continue;
		if (n == BLOCK_LIST_MAX) {
			ok->eof = FALSE;
			break;
		}
		(void)block_volume_look(e->vol); /* if it fails, the size is the last that was seen */
		block_describe(e, &v[n++]);
	}
	ok->volumes.volumes_val = v;
	ok->volumes.volumes_len = n;
}

/* The holders of a page, with their texts */
struct holders {
	block_holder v[BLOCK_LIST_MAX];
	struct block_holder_text text[BLOCK_LIST_MAX];
};

static void list_holders(struct block_volume *v, const char *after, struct holders *h, BLOCKINFOresok *ok)
{
	u_int n = 0;

	ok->eof = TRUE;
	pthread_mutex_lock(&v->lock);
	list_for_each(node, &v->holders) {
		const struct block_attachment *a = list_entry(node, struct block_attachment, link);

		if (strcmp(a->name, after) <= 0)
			continue;
		if (n == BLOCK_LIST_MAX) {
			ok->eof = FALSE;
			break;
		}
		block_describe_holder(a, &h->text[n], &h->v[n]);
		n++;
	}
	pthread_mutex_unlock(&v->lock);
	ok->holders.holders_val = h->v;
	ok->holders.holders_len = n;
}

void block_info_of(struct req *r)
{
	struct block_call *call = block_call(r);
	BLOCKINFOresok *ok = &call->res.info.BLOCKINFOres_u.resok;
	int err = block_find_named(r, call->args.info.volume);
	struct holders *h;

	if (!err)
		err = block_volume_look(call->entry->vol);
	if (err) {
		block_refuse(r, err);
		return;
	}
	h = req_scratch(r, sizeof(*h));
	if (!h)
		return;
	block_describe(call->entry, &ok->info);
	list_holders(call->entry->vol, call->args.info.after, h, ok);
}
