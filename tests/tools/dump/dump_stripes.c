/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump_stripes.c - parses the calls and replies of stripes (xdr/stripes.x)
 *
 * Operation:  All fields are parsed, since all of them have rules: the first one that breaks its rule is kept as
 *             dump_rpc.flaw. Handles, commands and names are not printed.
 * Memory:     None.
 * Threads:    Pure.
 * Errors:     If the bytes end early, the remaining fields stay unset.
 * See:        xdr/stripes.x; doc/protocol.md section 11.
 */
#include "dump_fields.h"
#include "stripe_status.h"
#include "stripes.h"

#define SLOTS 1024u
#define NAME_BYTES ((size_t)STRIPE_OBJECT_BYTES + 4)

bool dump_is_stripes(const struct dump_rpc *r)
{
	return r->prog == LEAT_STRIPES && r->vers == LEAT_STRIPES_V1;
}

static void take_at(struct wire_get *g, struct dump_rpc *r)
{
	dump_take_handle(g, r, STRIPE_HANDLE_BYTES);
	dump_take_lane(g, r, SLOTS);
}

static void take_args(struct wire_get *g, const uint8_t *start, struct dump_rpc *r)
{
	bool cuts;

	switch (r->proc) {
	case STRIPEPROC_INFO:
		dump_take_handle(g, r, STRIPE_COMMAND_BYTES);
		break;
	case STRIPEPROC_READ:
		take_at(g, r);
		dump_take_offset(g, r);
		r->count = wire_get_u32(g);
		r->has_count = wire_get_ok(g);
		break;
	case STRIPEPROC_WRITE:
		take_at(g, r);
		dump_take_offset(g, r);
		r->sync = dump_take_bool(g, r);
		dump_take_data(g, start, r, STRIPE_IO_MAX);
		break;
	case STRIPEPROC_COMMIT:
		take_at(g, r);
		break;
	case STRIPEPROC_STAT:
		dump_take_handle(g, r, STRIPE_COMMAND_BYTES);
		(void)wire_get_bytes(g, NAME_BYTES);
		break;
	case STRIPEPROC_FENCE:
		dump_take_handle(g, r, STRIPE_COMMAND_BYTES);
		(void)wire_get_bytes(g, NAME_BYTES);
		r->epoch = wire_get_u64(g);
		r->has_epoch = wire_get_ok(g);
		dump_must(g, r, r->epoch > 1, "an epoch below 2");
		cuts = dump_take_bool(g, r);
		r->length = wire_get_u64(g);
		r->has_length = cuts && wire_get_ok(g);
		break;
	case STRIPEPROC_REMOVE:
		dump_take_handle(g, r, STRIPE_COMMAND_BYTES);
		(void)wire_get_bytes(g, NAME_BYTES + 8); /* and until */
		break;
	case STRIPEPROC_SET_ASIDE:
		dump_take_handle(g, r, STRIPE_COMMAND_BYTES);
		(void)wire_get_bytes(g, NAME_BYTES + 8 + 8); /* until, mtime */
		break;
	case STRIPEPROC_LIST:
		dump_take_handle(g, r, STRIPE_COMMAND_BYTES);
		(void)wire_get_bytes(g, NAME_BYTES);
		(void)dump_take_bool(g, r); /* first */
		break;
	default:
		break;
	}
}

void dump_stripes_args(struct wire_get *g, const uint8_t *start, struct dump_rpc *r)
{
	take_args(g, start, r);
	dump_end_at(g, start, r);
}

/* ---- replies --------------------------------------------------------------------------------------- */

static void take_stat(struct wire_get *g, struct dump_rpc *r)
{
	uint64_t bytes = wire_get_u64(g);
	bool exists;

	(void)wire_get_bytes(g, 8); /* used */
	r->epoch = wire_get_u64(g);
	(void)wire_get_bytes(g, 8); /* mtime */
	exists = dump_take_bool(g, r);
	r->has_epoch = wire_get_ok(g);
	dump_must(g, r, exists || !bytes, "bytes of an object that does not exist");
	dump_must(g, r, !dump_take_bool(g, r) || exists, "a tombstone that does not exist");
	dump_must(g, r, exists || r->epoch == 1, "an epoch of an object that does not exist");
	dump_must(g, r, bytes <= INT64_MAX, "an object of this length");
}

static void take_list(struct wire_get *g, struct dump_rpc *r)
{
	uint32_t n = dump_take_entries(g, r, 0, STRIPE_LIST_MAX);

	for (; n && wire_get_ok(g); n--) {
		(void)wire_get_bytes(g, NAME_BYTES);
		take_stat(g, r);
	}
	r->has_epoch = false; /* of which one? */
	r->eof = dump_take_bool(g, r);
	r->has_eof = wire_get_ok(g);
}

static void take_results(struct wire_get *g, const uint8_t *start, struct dump_rpc *r)
{
	uint64_t bytes;

	switch (r->proc) {
	case STRIPEPROC_INFO:
		dump_must(g, r, wire_get_u32(g), "server 0");
		(void)wire_get_bytes(g, 8 + 8); /* term, verf */
		bytes = wire_get_u64(g);
		dump_must(g, r, wire_get_u64(g) <= bytes, "more free bytes than bytes");
		dump_must(g, r, wire_get_u64(g) <= bytes, "more used bytes than bytes");
		(void)wire_get_u64(g); /* now */
		break;
	case STRIPEPROC_READ:
		r->eof = dump_take_bool(g, r);
		r->has_eof = wire_get_ok(g);
		dump_take_data(g, start, r, STRIPE_IO_MAX);
		break;
	case STRIPEPROC_WRITE:
	case STRIPEPROC_COMMIT:
		(void)wire_get_u64(g); /* verf */
		break;
	case STRIPEPROC_STAT:
	case STRIPEPROC_FENCE:
	case STRIPEPROC_REMOVE:
	case STRIPEPROC_SET_ASIDE:
		take_stat(g, r);
		break;
	case STRIPEPROC_LIST:
		take_list(g, r);
		break;
	default:
		break;
	}
}

static bool tells_term(uint32_t proc)
{
	return proc == STRIPEPROC_STAT || proc == STRIPEPROC_FENCE || proc == STRIPEPROC_REMOVE || proc == STRIPEPROC_LIST ||
	       proc == STRIPEPROC_SET_ASIDE;
}

void dump_stripes_results(struct wire_get *g, const uint8_t *start, struct dump_rpc *r)
{
	if (r->proc != STRIPEPROC_NULL && r->proc <= STRIPEPROC_SET_ASIDE) {
		r->status = wire_get_u32(g);
		r->has_status = wire_get_ok(g);
		dump_must(g, r, stripe_status_name(r->status)[0] != '?', "an unknown status");
		if (r->status == STRIPE_OK)
			take_results(g, start, r);
		else if (r->status == STRIPE_ERR_OLDTERM && tells_term(r->proc))
			(void)wire_get_u64(g); /* the newest */
	}
	dump_end_at(g, start, r);
}
