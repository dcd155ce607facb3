/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * svc_share.c - memory of replies that their clients have not taken yet
 *
 * Operation:  Arguments are in memory of the transport, which has limits of its own. Replies are made by programs, and their
 *             length is known only then. So a request is taken from a queue if its client may have one more reply: a
 *             client may hold twice what is free of attr.mem_bytes, and one reply if anything is free. A single client
 *             gets two thirds, and clients that do not take their replies leave the rest to others. Each client has a queue,
 *             and they take turns: what one of them has sent holds no other one up.
 * Memory:     A struct rt_client while it has a connection or a reply on its way. mem_bytes is exceeded by one reply per
 *             request in service at most.
 * Threads:    The thread that runs the engine.
 * Errors:     None: requests wait in order.
 */
#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "svc_int.h"

struct rt_client *rt_share_get(const struct rpcrdma_peer *peer)
{
	struct rpcrdma_client_id id;
	struct rt_client *c;

	rpcrdma_client_id_of(peer, &id);
	list_for_each(node, &rt_svc.clients) {
		c = list_entry(node, struct rt_client, link);
		if (!memcmp(&c->id, &id, sizeof(id))) {
			c->refs++;
			return c;
		}
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->id = id;
	c->refs = 1;
	list_init(&c->queue);
	list_init(&c->turn);
	list_add_tail(&rt_svc.clients, &c->link);
	return c;
}

void rt_share_put(struct rt_client *c)
{
	if (--c->refs)
		return;
	list_del(&c->link);
	list_del(&c->turn);
	free(c);
}

void rt_share_charge(struct rt_req *r)
{
	size_t bytes = (r->enc.buf == (uint8_t *)r->small ? 0 : r->enc.cap) + (r->item ? r->enc.bulk.bytes : 0);

	if (!bytes)
		return;
	r->charged = r->conn->client;
	r->charged->refs++;
	r->charged_bytes = bytes;
	r->charged->bytes += r->charged_bytes;
	rt_svc.reply_bytes += r->charged_bytes;
}

void rt_share_uncharge(struct rt_req *r)
{
	if (!r->charged)
		return;
	r->charged->bytes -= r->charged_bytes;
	rt_svc.reply_bytes -= r->charged_bytes;
	rt_share_put(r->charged);
	r->charged = NULL;
}

static bool may_have_more(const struct rt_client *c, size_t free_bytes)
{
	return c->bytes ? c->bytes / 2 < free_bytes : free_bytes > 0;
}

void rt_share_queue(struct rt_req *r)
{
	struct rt_client *c = r->conn->client;

	list_add_tail(&c->queue, &r->link);
	if (!list_is_linked(&c->turn))
		list_add_tail(&rt_svc.turns, &c->turn);
}

struct rt_req *rt_share_next(void)
{
	size_t limit = rt_svc.attr.mem_bytes ? rt_svc.attr.mem_bytes : RT_MEM_BYTES;
	size_t free_bytes = limit > rt_svc.reply_bytes ? limit - rt_svc.reply_bytes : 0;

	list_for_each_safe(node, &rt_svc.turns) {
		struct rt_client *c = list_entry(node, struct rt_client, turn);

		if (list_is_empty(&c->queue)) /* its requests ended otherwise */
			list_del(&c->turn);
		else if (may_have_more(c, free_bytes))
			return list_first_entry(&c->queue, struct rt_req, link);
	}
	return NULL;
}

void rt_share_take(struct rt_req *r)
{
	struct rt_client *c = r->conn->client;

	list_del(&r->link);
	list_del(&c->turn);
	if (!list_is_empty(&c->queue))
		list_add_tail(&rt_svc.turns, &c->turn);
}
