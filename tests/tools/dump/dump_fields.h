/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump_fields.h - fields that calls and replies of leat's own programs have in common
 *
 * Each takes a field from the bytes that were captured. The first one that breaks its rule is kept as dump_rpc.flaw. What
 * has not been captured breaks no rule, and stays unset.
 */
#ifndef DUMP_FIELDS_H
#define DUMP_FIELDS_H

#include "base/util.h"
#include "base/wire.h"
#include "dump.h"

/** dump_must - notes a flaw, unless @good */
static inline void dump_must(const struct wire_get *g, struct dump_rpc *r, bool good, const char *flaw)
{
	if (!good && wire_get_ok(g) && !r->flaw)
		r->flaw = flaw;
}

static inline bool dump_take_bool(struct wire_get *g, struct dump_rpc *r)
{
	uint32_t v = wire_get_u32(g);

	dump_must(g, r, v <= 1, "a bool that is neither 0 nor 1");
	return v;
}

/** dump_take_lane - instance, slot below @slots, incarnation */
static inline void dump_take_lane(struct wire_get *g, struct dump_rpc *r, uint32_t slots)
{
	(void)wire_get_u64(g); /* instance */
	r->slot = wire_get_u32(g);
	r->incarnation = wire_get_u32(g);
	r->has_lane = wire_get_ok(g);
	dump_must(g, r, r->slot < slots, "a lane beyond the last");
	dump_must(g, r, r->incarnation, "incarnation 0");
}

/** dump_take_handle - @bytes that are not all zero */
static inline void dump_take_handle(struct wire_get *g, struct dump_rpc *r, size_t bytes)
{
	const uint8_t *h = wire_get_bytes(g, bytes);
	bool any = false;

	for (size_t i = 0; h && i < bytes; i++)
		any |= h[i];
	dump_must(g, r, any, "a handle of zeroes");
}

static inline void dump_take_offset(struct wire_get *g, struct dump_rpc *r)
{
	r->offset = wire_get_u64(g);
	r->has_offset = wire_get_ok(g);
}

/** dump_take_data - the item that may move by chunk, of at most @max bytes */
static inline void dump_take_data(struct wire_get *g, const uint8_t *start, struct dump_rpc *r, uint32_t max)
{
	r->item_bytes = wire_get_u32(g);
	r->has_item = wire_get_ok(g);
	r->item_at = (size_t)(g->at - start);
	dump_must(g, r, r->item_bytes <= max, "more data than one call may move");
}

/** dump_take_entries - the length of a list; Return: at most @max */
static inline uint32_t dump_take_entries(struct wire_get *g, struct dump_rpc *r, uint32_t min, uint32_t max)
{
	r->entries = wire_get_u32(g);
	r->has_entries = wire_get_ok(g);
	dump_must(g, r, r->entries >= min && r->entries <= max, "a list of this length");
	return r->has_entries ? MIN(r->entries, max) : 0;
}

/** dump_end_at - notes the end of a message without such an item */
static inline void dump_end_at(const struct wire_get *g, const uint8_t *start, struct dump_rpc *r)
{
	r->has_end = wire_get_ok(g) && !r->has_item;
	r->end_at = (size_t)(g->at - start);
}

#endif
