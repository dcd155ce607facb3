/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_room.c - memory for the results of a call, whose length the client cannot know
 *
 * Operation:  A call offers room for the longest results that it accepts: the table's reply_max, or max_bytes. The memory is
 *             registered already, so the offer costs nothing. A call without results, or with results of a known size that
 *             fit a Send, offers none.
 *
 *             If the table names an item of the results, there is memory for that item, too: that of the caller, if it has
 *             preset a pointer and a length of at least the table's threshold, or else ours. A peer that does not know the table sends the item with the rest,
 *             so the room is for both.
 * Memory:     One segment for all of it (cl_mem.c).
 */
#include <errno.h>

#include "base/clock.h"
#include "cl_int.h"

#define PAGE ((size_t)4096)
#define UNKNOWN UINT32_MAX

/* Results of libtirpc's filters, which rpcgen passes by themselves. */
static uint32_t known_bytes(xdrproc_t filter)
{
	static const struct {
		void (*filter)(void);
		uint32_t bytes;
	} known[] = {
		{ (void (*)(void))xdr_void, 0 }, { (void (*)(void))xdr_int, 4 }, { (void (*)(void))xdr_u_int, 4 },
		{ (void (*)(void))xdr_bool, 4 }, { (void (*)(void))xdr_enum, 4 }, { (void (*)(void))xdr_long, 4 },
		{ (void (*)(void))xdr_u_long, 4 }, { (void (*)(void))xdr_hyper, 8 }, { (void (*)(void))xdr_double, 8 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if ((void (*)(void))filter == known[i].filter)
			return known[i].bytes;
	return UNKNOWN;
}

/* Finds the caller's memory for the item. Return: longest item; 0: no item is wanted */
static size_t find_item(struct rt_call *c, xdrproc_t xres, const void *res)
{
	const struct rpcrdma_bulk *row = c->row;
	size_t bytes = 0;
	void *preset;

	if (!row || !row->results)
		return 0;
	preset = rt_bulk_preset(xres, res, row->results, &bytes);
	if (!preset)
		return row->data_max;
	c->preset = preset;
	c->preset_bytes = bytes;
	bytes = MIN(bytes, (size_t)row->data_max);
	if (bytes >= row->threshold)
		c->sink = (struct iovec){ preset, bytes };
	return bytes;
}

/* The wait is part of the call's time-out. Return: as rt_mem_get() */
static int get_memory(struct rt_call *c, size_t bytes, uint64_t until_ns)
{
	const struct rpcrdma_addr *server = &c->handle->attr.addr;
	int rc = rt_mem_get(bytes, server, 0, &c->mem);
	uint64_t now;

	if (rc != -ETIMEDOUT)
		return rc;
	rt_cl_reclaim();
	if (rt_cl_args_to_heap(c))
		return -ENOMEM;
	rc = rt_mem_get(bytes, server, c->call.deadline_ms ? until_ns : UINT64_MAX, &c->mem);
	now = clock_now_ns();
	if (c->call.deadline_ms)
		c->call.deadline_ms = until_ns > now ? (uint32_t)((until_ns - now) / NS_PER_MS) + 1 : 1;
	return rc;
}

enum clnt_stat rt_cl_room(struct rt_call *c, xdrproc_t xres, const void *res, uint64_t until_ns, struct rt_outcome *o)
{
	struct rt_handle *h = c->handle;
	uint32_t known = xres ? known_bytes(xres) : 0;
	size_t rest = known < UNKNOWN ? known : c->row ? c->row->reply_max : h->max_bytes;
	size_t item = known < UNKNOWN ? 0 : find_item(c, xres, res);
	size_t whole = rest + (item ? 4 + round_up4(item) : 0), own = item && !c->sink.iov_base ? item : 0;
	size_t first = whole + RPCRDMA_ROOM_HEAD;
	int rc;

	c->call.reply_max = (uint32_t)whole;
	if (!own && first <= rt_small_bytes(h)) {
		c->room.mem = (uint8_t *)c->small + h->inline_bytes;
		c->room.bytes = rt_small_bytes(h);
		return RPC_SUCCESS;
	}
	if (own)
		first = round_up_pow2(first, PAGE);
	rc = get_memory(c, whole + (own ? PAGE + own : 0), until_ns);
	if (rc)
		return rt_cl_fail(o, rc == -ETIMEDOUT ? RPC_TIMEDOUT : RPC_SYSTEMERROR, rc,
				  rc == -ETIMEDOUT ? "calls of this process use all of mem_bytes" : "no memory for the results");
	c->room.mem = c->mem->addr;
	c->room.bytes = first;
	if (own)
		c->sink = (struct iovec){ (uint8_t *)c->mem->addr + first, own };
	return RPC_SUCCESS;
}
