/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump_rpc.c - parses ONC RPC, and the parts of NFS version 3 that fit on a line; prints them
 *
 * Operation:  Calls are parsed up to their offset and count, replies up to their status. READ, WRITE,
 *             READLINK and SYMLINK are parsed up to their bulk item, because the rules about chunks need
 *             its position and length. Names and paths are not printed.
 * Memory:     None.
 * Threads:    Pure.
 * Errors:     If the bytes end early, the remaining fields stay unset.
 * See:        RFC 5531 section 9; RFC 1813; doc/protocol.md section 4.5.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/wire.h"
#include "block.h"
#include "block_status.h"
#include "dump.h"
#include "nfs3.h"
#include "nfs3_names.h"
#include "stripe_status.h"
#include "stripes.h"
#include "volume_status.h"
#include "volumes.h"

#define NFSACL_PROGRAM 100227u
#define MOUNT_PROGRAM_NUMBER 100005u
#define FATTR_BYTES 84u

static void skip_opaque(struct wire_get *g)
{
	(void)wire_get_bytes(g, round_up4(wire_get_u32(g)));
}

static void skip_optional(struct wire_get *g, size_t bytes)
{
	if (wire_get_u32(g))
		(void)wire_get_bytes(g, bytes);
}

static void skip_sattr(struct wire_get *g)
{
	skip_optional(g, 4); /* mode, uid, gid */
	skip_optional(g, 4);
	skip_optional(g, 4);
	skip_optional(g, 8); /* size */
	for (int i = 0; i < 2; i++) {
		if (wire_get_u32(g) == SET_TO_CLIENT_TIME)
			(void)wire_get_bytes(g, 8);
	}
}

static void take_item(struct wire_get *g, const uint8_t *start, struct dump_rpc *r)
{
	r->item_bytes = wire_get_u32(g);
	r->has_item = wire_get_ok(g);
	r->item_at = (size_t)(g->at - start);
}

static void take_count(struct wire_get *g, struct dump_rpc *r)
{
	r->count = wire_get_u32(g);
	r->has_count = wire_get_ok(g);
}

static void take_range(struct wire_get *g, struct dump_rpc *r)
{
	r->offset = wire_get_u64(g);
	r->has_offset = wire_get_ok(g);
	take_count(g, r);
}

static bool is_nfs(const struct dump_rpc *r)
{
	return r->prog == NFS_PROGRAM && r->vers == NFS_V3;
}

static void nfs_args(struct wire_get *g, const uint8_t *start, struct dump_rpc *r)
{
	skip_opaque(g); /* all procedures of interest begin with a handle */
	switch (r->proc) {
	case NFSPROC3_READ:
	case NFSPROC3_COMMIT:
		take_range(g, r);
		break;
	case NFSPROC3_WRITE:
		take_range(g, r);
		(void)wire_get_u32(g); /* stable_how */
		take_item(g, start, r);
		break;
	case NFSPROC3_SYMLINK:
		skip_opaque(g);
		skip_sattr(g);
		take_item(g, start, r);
		break;
	case NFSPROC3_READDIR:
		(void)wire_get_bytes(g, 16); /* cookie and its verifier */
		take_count(g, r);
		break;
	case NFSPROC3_READDIRPLUS:
		(void)wire_get_bytes(g, 16 + 4); /* and dircount */
		take_count(g, r);
		break;
	default:
		break;
	}
}

void dump_rpc_call(const uint8_t *p, size_t len, struct dump_rpc *ret)
{
	struct dump_rpc r = { .call = true };
	struct wire_get g;

	wire_get_init(&g, p, len);
	r.xid = wire_get_u32(&g);
	if (wire_get_u32(&g) == RR_RPC_CALL && wire_get_u32(&g) == RR_RPC_VERS) {
		r.prog = wire_get_u32(&g);
		r.vers = wire_get_u32(&g);
		r.proc = wire_get_u32(&g);
		r.known = wire_get_ok(&g);
	}
	if (r.known && (is_nfs(&r) || dump_is_block(&r) || dump_is_stripes(&r) || dump_is_volumes(&r))) {
		for (int i = 0; i < 2; i++) { /* credential, verifier */
			(void)wire_get_u32(&g);
			skip_opaque(&g);
		}
		if (is_nfs(&r))
			nfs_args(&g, p, &r);
		else if (dump_is_stripes(&r))
			dump_stripes_args(&g, p, &r);
		else if (dump_is_volumes(&r))
			dump_volumes_args(&g, p, &r);
		else
			dump_block_args(&g, p, &r);
	}
	*ret = r;
}

static void nfs_results(struct wire_get *g, const uint8_t *start, struct dump_rpc *r)
{
	if (r->proc == NFSPROC3_NULL)
		return;
	r->status = wire_get_u32(g);
	r->has_status = wire_get_ok(g);
	if (r->status != NFS3_OK)
		return;
	switch (r->proc) {
	case NFSPROC3_READ:
		skip_optional(g, FATTR_BYTES);
		take_count(g, r);
		r->eof = wire_get_u32(g) != 0;
		r->has_eof = wire_get_ok(g);
		take_item(g, start, r);
		break;
	case NFSPROC3_READLINK:
		skip_optional(g, FATTR_BYTES);
		take_item(g, start, r);
		break;
	case NFSPROC3_WRITE:
		skip_optional(g, 24); /* attributes before and after */
		skip_optional(g, FATTR_BYTES);
		take_count(g, r);
		break;
	default:
		break;
	}
}

void dump_rpc_reply(const uint8_t *p, size_t len, const struct dump_rpc *call,
		    struct dump_rpc *ret)
{
	struct dump_rpc r = { 0 };
	struct wire_get g;

	if (call && call->known) {
		r.prog = call->prog;
		r.vers = call->vers;
		r.proc = call->proc;
	}
	wire_get_init(&g, p, len);
	r.xid = wire_get_u32(&g);
	if (wire_get_u32(&g) == RR_RPC_REPLY) {
		r.denied = wire_get_u32(&g) != RR_ACCEPTED;
		if (!r.denied) {
			(void)wire_get_u32(&g); /* verifier */
			skip_opaque(&g);
		}
		r.accept = wire_get_u32(&g);
		r.known = wire_get_ok(&g);
	}
	if (r.known && !r.denied && r.accept == RR_SUCCESS) {
		if (is_nfs(&r)) {
			nfs_results(&g, p, &r);
		} else if (dump_is_block(&r)) {
			dump_block_results(&g, p, &r);
		} else if (dump_is_stripes(&r)) {
			dump_stripes_results(&g, p, &r);
		} else if (dump_is_volumes(&r)) {
			dump_volumes_results(&g, p, &r);
		} else if (r.proc && (r.prog == MOUNT_PROGRAM_NUMBER || r.prog == NFSACL_PROGRAM)) {
			r.status = wire_get_u32(&g);
			r.has_status = wire_get_ok(&g);
		}
	}
	*ret = r;
}

/* ---- in words -------------------------------------------------------------------------------------- */

static const char *accept_name(uint32_t status)
{
	static const char *const names[] = {
		[RR_SUCCESS] = "SUCCESS",
		[RR_PROG_UNAVAIL] = "PROG_UNAVAIL",
		[RR_PROG_MISMATCH] = "PROG_MISMATCH",
		[RR_PROC_UNAVAIL] = "PROC_UNAVAIL",
		[RR_GARBAGE_ARGS] = "GARBAGE_ARGS",
		[RR_SYSTEM_ERR] = "SYSTEM_ERR",
	};

	return status < ARRAY_SIZE(names) ? names[status] : "accept=?";
}

static int print_proc(const struct dump_rpc *r, char *buf, size_t cap)
{
	static const char *const acl[] = { "NULL", "GETACL", "SETACL" };
	const char *prog = nfs3_prog_name(r->prog), *proc = nfs3_proc_name(r->prog, r->proc);

	if (!r->prog)
		return snprintf(buf, cap, "answer to ?");
	if (r->prog == NFSACL_PROGRAM && r->proc < ARRAY_SIZE(acl))
		return snprintf(buf, cap, "NFSACL %s", acl[r->proc]);
	if (proc[0] == '?' || (r->prog == NFS_PROGRAM && r->vers != NFS_V3) ||
	    (r->prog == LEAT_BLOCK && r->vers != LEAT_BLOCK_V1) || (r->prog == LEAT_STRIPES && !dump_is_stripes(r)) ||
	    (r->prog == LEAT_VOLUME && !dump_is_volumes(r)))
		return snprintf(buf, cap, "prog=%u vers=%u proc=%u", r->prog, r->vers, r->proc);
	return snprintf(buf, cap, "%s %s", prog, proc);
}

static const char *outcome(const struct dump_rpc *r)
{
	if (r->denied)
		return r->accept == RR_AUTH_ERROR ? "AUTH_ERROR" : "RPC_MISMATCH";
	if (r->accept != RR_SUCCESS || !r->has_status)
		return accept_name(r->accept);
	if (dump_is_stripes(r))
		return stripe_status_name(r->status);
	if (dump_is_volumes(r))
		return volume_status_name(r->status);
	return dump_is_block(r) ? block_status_name(r->status) : nfs3_stat_name(r->status);
}

/* What only leat's own programs have */
static int print_own(const struct dump_rpc *r, char *buf, size_t cap)
{
	int n = 0;

	if (r->has_length)
		n += snprintf(buf + n, cap - (size_t)n, " length=%" PRIu64, r->length);
	if (r->has_lane)
		n += snprintf(buf + n, cap - (size_t)n, " lane=%u/%u", r->slot, r->incarnation);
	if (r->has_entries)
		n += snprintf(buf + n, cap - (size_t)n, " entries=%u", r->entries);
	if (r->fua)
		n += snprintf(buf + n, cap - (size_t)n, " fua");
	if (r->sync)
		n += snprintf(buf + n, cap - (size_t)n, " sync");
	if (r->has_epoch)
		n += snprintf(buf + n, cap - (size_t)n, " epoch=%" PRIu64, r->epoch);
	if (r->has_layout)
		n += snprintf(buf + n, cap - (size_t)n, " unit=%u width=%u", r->unit, r->width);
	if (r->has_rights)
		n += snprintf(buf + n, cap - (size_t)n, " rights=%s%s", r->rights & STRIPE_MAY_READ ? "r" : "",
			      r->rights & STRIPE_MAY_WRITE ? "w" : "");
	if (r->lease)
		n += snprintf(buf + n, cap - (size_t)n, " lease");
	if (r->flags & VOLUME_REPORT_WROTE)
		n += snprintf(buf + n, cap - (size_t)n, " wrote");
	if (r->flags & VOLUME_REPORT_LAST)
		n += snprintf(buf + n, cap - (size_t)n, " last");
	return n;
}

const char *dump_rpc_print(const struct dump_rpc *r, char *buf, size_t cap)
{
	char numbers[240] = "";
	int n = 0;

	if (!r->known) {
		snprintf(buf, cap, "RPC ?");
		return buf;
	}
	if (r->has_offset)
		n = snprintf(numbers, sizeof(numbers), " offset=%" PRIu64, r->offset);
	if (r->has_count)
		n += snprintf(numbers + n, sizeof(numbers) - (size_t)n, " count=%u", r->count);
	if (r->has_item && !r->has_count)
		n += snprintf(numbers + n, sizeof(numbers) - (size_t)n, " length=%u", r->item_bytes);
	if (dump_is_block(r) || dump_is_stripes(r) || dump_is_volumes(r))
		n += print_own(r, numbers + n, sizeof(numbers) - (size_t)n);
	if (r->has_eof)
		snprintf(numbers + n, sizeof(numbers) - (size_t)n, " eof=%d", r->eof);
	n = print_proc(r, buf, cap);
	if (n >= 0 && (size_t)n < cap)
		snprintf(buf + n, cap - (size_t)n, "%s%s%s", r->call ? "" : " ",
			 r->call ? "" : outcome(r), numbers);
	return buf;
}
