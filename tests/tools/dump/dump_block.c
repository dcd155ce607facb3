/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump_block.c - parses the calls and replies of block volumes (xdr/block.x)
 *
 * Operation:  All fields are parsed, since all of them have rules: the first one that breaks its rule is kept as
 *             dump_rpc.flaw. Handles, names and texts are not printed.
 * Memory:     None.
 * Threads:    Pure.
 * Errors:     If the bytes end early, the remaining fields stay unset.
 * See:        xdr/block.x; doc/protocol.md section 10.
 */
#include "block.h"
#include "block_status.h"
#include "dump_fields.h"

#define HANDLE_BYTES ((size_t)BLOCK_HANDLE_BYTES)

bool dump_is_block(const struct dump_rpc *r)
{
	return r->prog == LEAT_BLOCK && r->vers == LEAT_BLOCK_V1;
}

/* ---- fields ---------------------------------------------------------------------------------------- */

static void take_string(struct wire_get *g, struct dump_rpc *r, uint32_t min, uint32_t max, const char *flaw)
{
	uint32_t n = wire_get_u32(g);

	dump_must(g, r, n >= min && n <= max, flaw);
	(void)wire_get_bytes(g, round_up4(n));
}

static uint32_t take_flags(struct wire_get *g, struct dump_rpc *r, int all)
{
	uint32_t v = wire_get_u32(g);

	dump_must(g, r, !(v & ~(uint32_t)all), "unknown flags");
	return v;
}

static void take_range(struct wire_get *g, struct dump_rpc *r)
{
	dump_take_offset(g, r);
	r->length = wire_get_u64(g);
	r->has_length = wire_get_ok(g);
}

/* ---- calls ----------------------------------------------------------------------------------------- */

static void take_at(struct wire_get *g, struct dump_rpc *r)
{
	dump_take_handle(g, r, HANDLE_BYTES);
	dump_take_lane(g, r, BLOCK_LANES_MAX);
}

static void attach_args(struct wire_get *g, struct dump_rpc *r)
{
	take_string(g, r, 1, BLOCK_NAME_MAX, "the volume's name");
	take_string(g, r, 1, BLOCK_NAME_MAX, "the holder's name");
	take_string(g, r, 0, BLOCK_NAME_MAX, "the victim's name");
	take_string(g, r, 0, BLOCK_NAME_MAX, "the program's name");
	(void)take_flags(g, r, BLOCK_RDONLY | BLOCK_TAKE_OVER);
	dump_take_lane(g, r, BLOCK_LANES_MAX);
}

static void take_args(struct wire_get *g, const uint8_t *start, struct dump_rpc *r)
{
	switch (r->proc) {
	case BLOCKPROC_LIST:
		take_string(g, r, 0, BLOCK_NAME_MAX, "the name to begin after");
		break;
	case BLOCKPROC_INFO:
		take_string(g, r, 1, BLOCK_NAME_MAX, "the volume's name");
		take_string(g, r, 0, BLOCK_NAME_MAX, "the name to begin after");
		break;
	case BLOCKPROC_ATTACH:
		attach_args(g, r);
		break;
	case BLOCKPROC_DETACH:
	case BLOCKPROC_FLUSH:
		take_at(g, r);
		break;
	case BLOCKPROC_READ:
		take_at(g, r);
		dump_take_offset(g, r);
		r->count = wire_get_u32(g);
		r->has_count = wire_get_ok(g);
		break;
	case BLOCKPROC_WRITE:
		take_at(g, r);
		dump_take_offset(g, r);
		r->fua = dump_take_bool(g, r);
		dump_take_data(g, start, r, BLOCK_IO_MAX);
		break;
	case BLOCKPROC_DISCARD:
	case BLOCKPROC_EXTENTS:
		take_at(g, r);
		take_range(g, r);
		break;
	case BLOCKPROC_ZERO:
		take_at(g, r);
		take_range(g, r);
		(void)dump_take_bool(g, r); /* keep */
		break;
	default:
		break;
	}
}

void dump_block_args(struct wire_get *g, const uint8_t *start, struct dump_rpc *r)
{
	take_args(g, start, r);
	dump_end_at(g, start, r);
}

/* ---- replies --------------------------------------------------------------------------------------- */

static void take_info(struct wire_get *g, struct dump_rpc *r)
{
	uint64_t size;
	uint32_t block;

	take_string(g, r, 1, BLOCK_NAME_MAX, "the volume's name");
	size = wire_get_u64(g);
	block = wire_get_u32(g);
	dump_must(g, r, block && !(block & (block - 1)), "a block size that is no power of two");
	dump_must(g, r, !block || size % block == 0, "a size of part of a block");
	(void)wire_get_u32(g); /* preferred */
	(void)take_flags(g, r, BLOCK_RDONLY | BLOCK_SHARED | BLOCK_CAN_DISCARD | BLOCK_FAST_ZERO | BLOCK_CAN_EXTENTS |
				       BLOCK_DURABLE);
	(void)wire_get_u32(g); /* holders */
}

static void take_holder(struct wire_get *g, struct dump_rpc *r)
{
	take_string(g, r, 1, BLOCK_NAME_MAX, "a holder's name");
	take_string(g, r, 0, BLOCK_TEXT_MAX, "a holder's host");
	take_string(g, r, 0, BLOCK_NAME_MAX, "a holder's program");
	(void)wire_get_bytes(g, 8 + 4 + 4); /* since, connections, silent */
	(void)dump_take_bool(g, r);		    /* read-only */
}

static void take_extents(struct wire_get *g, struct dump_rpc *r)
{
	uint32_t n = dump_take_entries(g, r, 1, BLOCK_EXTENTS_MAX);

	while (n-- && wire_get_ok(g)) {
		uint64_t length = wire_get_u64(g);
		uint32_t kind = wire_get_u32(g);

		dump_must(g, r, length && length <= BLOCK_RANGE_MAX, "an extent of this length");
		dump_must(g, r, kind <= BLOCK_ZERO, "an extent of an unknown kind");
		if (wire_get_ok(g))
			r->length += length; /* no sum of so few overflows */
	}
	r->has_length = wire_get_ok(g);
}

static void take_results(struct wire_get *g, const uint8_t *start, struct dump_rpc *r)
{
	uint32_t n;

	switch (r->proc) {
	case BLOCKPROC_LIST:
		for (n = dump_take_entries(g, r, 0, BLOCK_LIST_MAX); n && wire_get_ok(g); n--)
			take_info(g, r);
		r->eof = dump_take_bool(g, r);
		r->has_eof = wire_get_ok(g);
		break;
	case BLOCKPROC_INFO:
		take_info(g, r);
		for (n = dump_take_entries(g, r, 0, BLOCK_LIST_MAX); n && wire_get_ok(g); n--)
			take_holder(g, r);
		r->eof = dump_take_bool(g, r);
		r->has_eof = wire_get_ok(g);
		break;
	case BLOCKPROC_ATTACH:
		dump_take_handle(g, r, HANDLE_BYTES);
		take_info(g, r);
		(void)wire_get_u64(g); /* verf */
		break;
	case BLOCKPROC_READ:
		dump_take_data(g, start, r, BLOCK_IO_MAX);
		break;
	case BLOCKPROC_WRITE:
	case BLOCKPROC_DISCARD:
	case BLOCKPROC_FLUSH:
	case BLOCKPROC_ZERO:
		(void)wire_get_u64(g); /* verf */
		break;
	case BLOCKPROC_EXTENTS:
		take_extents(g, r);
		break;
	default:
		break;
	}
}

void dump_block_results(struct wire_get *g, const uint8_t *start, struct dump_rpc *r)
{
	if (r->proc != BLOCKPROC_NULL && r->proc <= BLOCKPROC_EXTENTS) {
		r->status = wire_get_u32(g);
		r->has_status = wire_get_ok(g);
		dump_must(g, r, block_status_name(r->status)[0] != '?', "an unknown status");
		if (r->status == BLOCK_OK)
			take_results(g, start, r);
		else if (r->status == BLOCK_ERR_BUSY && r->proc == BLOCKPROC_ATTACH)
			take_holder(g, r);
	}
	dump_end_at(g, start, r);
}
