/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump_volumes.c - parses the calls and replies of the manager of a striped volume (xdr/volumes.x)
 *
 * Operation:  All fields are parsed, since all of them have rules: the first one that breaks its rule is kept as
 *             dump_rpc.flaw. Handles, commands, objects, names and URLs are not printed.
 * Memory:     None.
 * Threads:    Pure.
 * Errors:     If the bytes end early, the remaining fields stay unset.
 * See:        xdr/volumes.x; doc/protocol.md section 12.
 */
#include "dump_fields.h"
#include "volume_status.h"
#include "volumes.h"

#define UNIT_MIN 65536u
#define UNIT_MAX 16777216u

bool dump_is_volumes(const struct dump_rpc *r)
{
	return r->prog == LEAT_VOLUME && r->vers == LEAT_VOLUME_V1;
}

/* At most @max bytes, padded */
static void take_opaque(struct wire_get *g, struct dump_rpc *r, uint32_t max, const char *flaw)
{
	uint32_t len = wire_get_u32(g);

	dump_must(g, r, len <= max, flaw);
	(void)wire_get_bytes(g, round_up4(MIN(len, max)));
}

static void take_fh(struct wire_get *g, struct dump_rpc *r)
{
	take_opaque(g, r, VOLUME_FH_MAX, "a file handle of this length");
}

static void take_length(struct wire_get *g, struct dump_rpc *r)
{
	r->length = wire_get_u64(g);
	r->has_length = wire_get_ok(g);
}

static void take_lease(struct wire_get *g, struct dump_rpc *r)
{
	uint64_t instance = wire_get_u64(g);

	(void)wire_get_u64(g); /* number */
	r->lease = instance && wire_get_ok(g);
}

static void take_layout(struct wire_get *g, struct dump_rpc *r)
{
	r->unit = wire_get_u32(g);
	r->width = wire_get_u32(g);
	r->has_layout = wire_get_ok(g);
}

static bool is_unit(uint32_t unit)
{
	return unit >= UNIT_MIN && unit <= UNIT_MAX && !(unit & (unit - 1));
}

/* Of a reply. @may_be_0: it may stand for what the volume says */
static void check_layout(const struct wire_get *g, struct dump_rpc *r, bool may_be_0)
{
	dump_must(g, r, is_unit(r->unit) || (may_be_0 && !r->unit), "a stripe unit that cannot be");
	dump_must(g, r, r->width <= VOLUME_SERVERS_MAX && (r->width || may_be_0), "a width that cannot be");
}

static void take_args(struct wire_get *g, struct dump_rpc *r)
{
	switch (r->proc) {
	case VOLUMEPROC_MAP:
	case VOLUMEPROC_SERVERS:
		take_fh(g, r);
		break;
	case VOLUMEPROC_LAYOUT:
		take_fh(g, r);
		r->rights = wire_get_u32(g);
		r->has_rights = wire_get_ok(g);
		dump_must(g, r, !(r->rights & ~(uint32_t)(STRIPE_MAY_READ | STRIPE_MAY_WRITE)), "rights that do not exist");
		take_lease(g, r);
		break;
	case VOLUMEPROC_REPORT:
		take_fh(g, r);
		dump_take_handle(g, r, STRIPE_HANDLE_BYTES);
		take_lease(g, r);
		r->flags = wire_get_u32(g);
		dump_must(g, r, !(r->flags & ~(uint32_t)(VOLUME_REPORT_WROTE | VOLUME_REPORT_LAST)), "flags that do not exist");
		take_length(g, r);
		break;
	case VOLUMEPROC_RESERVE:
		take_fh(g, r);
		dump_take_handle(g, r, STRIPE_HANDLE_BYTES);
		(void)wire_get_u64(g); /* instance */
		dump_take_offset(g, r);
		take_length(g, r);
		dump_must(g, r, r->length, "an empty range");
		break;
	case VOLUMEPROC_SET:
		take_fh(g, r);
		(void)wire_get_u32(g); /* what changes */
		take_layout(g, r);
		break;
	case VOLUMEPROC_CREATE:
		take_fh(g, r);
		take_opaque(g, r, VOLUME_NAME_MAX, "a name of this length");
		(void)wire_get_u32(g); /* mode */
		take_layout(g, r);
		break;
	case VOLUMEPROC_CHECK:
		take_fh(g, r);
		dump_take_handle(g, r, STRIPE_COMMAND_BYTES);
		(void)wire_get_bytes(g, STRIPE_OBJECT_BYTES);
		(void)dump_take_bool(g, r); /* first */
		break;
	default:
		break;
	}
}

void dump_volumes_args(struct wire_get *g, const uint8_t *start, struct dump_rpc *r)
{
	take_args(g, r);
	dump_end_at(g, start, r);
}

/* ---- replies --------------------------------------------------------------------------------------- */

static void take_map(struct wire_get *g, struct dump_rpc *r)
{
	uint32_t n;

	dump_must(g, r, wire_get_u64(g), "volume 0");
	dump_must(g, r, wire_get_u64(g), "version 0 of the map");
	take_layout(g, r);
	check_layout(g, r, true);
	n = dump_take_entries(g, r, 1, VOLUME_SERVERS_MAX);
	for (; n && wire_get_ok(g); n--) {
		dump_must(g, r, wire_get_u32(g), "server 0");
		dump_must(g, r, wire_get_u32(g) <= VOLUME_SERVER_OUT, "a state that does not exist");
		take_opaque(g, r, VOLUME_URL_MAX, "a URL of this length");
	}
}

static void take_stripes(struct wire_get *g, struct dump_rpc *r)
{
	uint32_t n;

	(void)wire_get_u64(g); /* version of the map */
	(void)wire_get_bytes(g, STRIPE_OBJECT_BYTES);
	r->epoch = wire_get_u64(g);
	r->has_epoch = wire_get_ok(g);
	dump_must(g, r, r->epoch, "epoch 0");
	r->unit = wire_get_u32(g);
	(void)wire_get_u32(g); /* lifetime */
	r->lease = wire_get_u32(g);
	take_length(g, r);
	n = dump_take_entries(g, r, 1, VOLUME_SERVERS_MAX);
	r->width = r->entries;
	r->has_layout = wire_get_ok(g);
	r->has_entries = false; /* that is the width */
	check_layout(g, r, false);
	for (; n && wire_get_ok(g); n--) {
		dump_must(g, r, wire_get_u32(g), "server 0");
		dump_take_handle(g, r, STRIPE_HANDLE_BYTES);
	}
}

static void take_pending(struct wire_get *g, struct dump_rpc *r)
{
	uint32_t n;

	(void)dump_take_bool(g, r); /* deposed */
	(void)wire_get_bytes(g, 4 + 8 + 8); /* lifetime, moves */
	n = dump_take_entries(g, r, 0, VOLUME_CHECK_MAX);
	for (; n && wire_get_ok(g); n--) {
		(void)wire_get_bytes(g, STRIPE_OBJECT_BYTES);
		dump_must(g, r, wire_get_u32(g) <= VOLUME_TODO_DAMAGED, "pending work that does not exist");
	}
	r->eof = dump_take_bool(g, r);
	r->has_eof = wire_get_ok(g);
}

static void take_seen(struct wire_get *g, struct dump_rpc *r)
{
	uint32_t n = dump_take_entries(g, r, 1, VOLUME_SERVERS_MAX);

	for (; n && wire_get_ok(g); n--) {
		dump_must(g, r, wire_get_u32(g), "server 0");
		dump_must(g, r, wire_get_u32(g) <= VOLUME_SEEN_AWAY, "a state that does not exist");
		(void)wire_get_u64(g); /* since when */
	}
}

static void take_results(struct wire_get *g, struct dump_rpc *r)
{
	switch (r->proc) {
	case VOLUMEPROC_MAP:
		take_map(g, r);
		break;
	case VOLUMEPROC_LAYOUT:
		take_stripes(g, r);
		break;
	case VOLUMEPROC_REPORT:
		take_length(g, r);
		r->lease = wire_get_u32(g);
		break;
	case VOLUMEPROC_RESERVE:
		dump_take_offset(g, r);
		break;
	case VOLUMEPROC_SET:
	case VOLUMEPROC_CREATE:
		take_layout(g, r);
		check_layout(g, r, r->proc == VOLUMEPROC_SET);
		break;
	case VOLUMEPROC_CHECK:
		take_pending(g, r);
		break;
	case VOLUMEPROC_SERVERS:
		take_seen(g, r);
		break;
	default:
		break;
	}
	dump_must(g, r, r->length <= INT64_MAX, "a file of this length");
}

void dump_volumes_results(struct wire_get *g, const uint8_t *start, struct dump_rpc *r)
{
	if (r->proc != VOLUMEPROC_NULL && r->proc <= VOLUMEPROC_SERVERS) {
		r->status = wire_get_u32(g);
		r->has_status = wire_get_ok(g);
		dump_must(g, r, volume_status_name(r->status)[0] != '?', "an unknown status");
		if (r->status == VOLUME_OK)
			take_results(g, r);
	}
	dump_end_at(g, start, r);
}
