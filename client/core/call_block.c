/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * call_block.c - calls of block volumes
 *
 * Operation:  As NFS calls (call.c). In addition, the arguments name the connection of the call: its lane.
 *             If the attachment of a call has ended, the call asks for the present holder before it fails.
 * Memory:     Results of LIST, INFO, ATTACH and EXTENTS are allocated by the codec.
 * Threads:    As call.c. The arguments are encoded on the thread of the connection.
 * Errors:     -errno of block_status.c.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "call.h"
#include "handle.h"
#include "block_status.h"

#define SEGS_MAX 64u /* of a chunk: every leatd accepts that */

/* XDR bytes of parts of results, at their longest */
#define NAME_BYTES (4u + BLOCK_NAME_MAX + 1u)
#define TEXT_BYTES (4u + BLOCK_TEXT_MAX + 1u)
#define INFO_BYTES (NAME_BYTES + 8u + 4u * 4u)
#define HOLDER_BYTES (2 * NAME_BYTES + TEXT_BYTES + 8u + 3 * 4u)

/* The name of a status; with an explanation if the errno alone misleads, or does not say what it is about */
static const char *explain_status(uint32_t status)
{
	switch (status) {
	case BLOCK_ERR_NOENT:
		return "BLOCK_ERR_NOENT: the server has no such volume";
	case BLOCK_ERR_NOHOLDER:
		return "BLOCK_ERR_NOHOLDER: the volume has no such holder";
	case BLOCK_ERR_ACCES:
		return "BLOCK_ERR_ACCES: the volume does not admit this user or host";
	case BLOCK_ERR_ROFS:
		return "BLOCK_ERR_ROFS: the volume is read-only";
	case BLOCK_ERR_GONE:
		return "BLOCK_ERR_GONE: the server has removed the volume";
	case BLOCK_ERR_FENCED:
		return "BLOCK_ERR_FENCED: another holder took over, or this one attached again";
	default:
		return block_status_name(status);
	}
}

static bool is_later(uint32_t status)
{
	return status == BLOCK_ERR_LATER;
}

static const struct lt_program block = { LEAT_BLOCK, LEAT_BLOCK_V1, .is_later = is_later, .old_lane = BLOCK_ERR_OLD_LANE,
					 .to_errno = block_errno, .name = explain_status };

#define PROC(in, out, kind, max)                                                                             \
	LT_PROC(BLOCK##in, BLOCK##out, max, .changes = LT_##kind, .has_lane = true, .allocates = true, .program = &block)
#define DATA(in, out, kind, max)                                                                             \
	LT_PROC(BLOCK##in, BLOCK##out, max, .changes = LT_##kind, .moves_data = true, .has_lane = true, .allocates = true, \
		.program = &block)

static const struct lt_proc procs[] = {
	[BLOCKPROC_LIST] = PROC(LIST, LIST, READS, 4u + BLOCK_LIST_MAX * INFO_BYTES + 4u),
	[BLOCKPROC_INFO] = PROC(INFO, INFO, READS, INFO_BYTES + 4u + BLOCK_LIST_MAX * HOLDER_BYTES + 4u),
	[BLOCKPROC_ATTACH] = PROC(ATTACH, ATTACH, CHANGES, MAX(BLOCK_HANDLE_BYTES + INFO_BYTES + 8u, HOLDER_BYTES)),
	[BLOCKPROC_DETACH] = PROC(AT, DETACH, CHANGES, 0),
	[BLOCKPROC_READ] = DATA(READ, READ, READS, 4u),
	[BLOCKPROC_WRITE] = DATA(WRITE, CHANGE, CHANGES, 8u),
	[BLOCKPROC_DISCARD] = PROC(RANGE, CHANGE, CHANGES, 8u),
	[BLOCKPROC_FLUSH] = PROC(AT, CHANGE, READS, 8u),
	[BLOCKPROC_ZERO] = PROC(ZERO, CHANGE, CHANGES, 8u),
	[BLOCKPROC_EXTENTS] = PROC(RANGE, EXTENTS, READS, 4u + BLOCK_EXTENTS_MAX * 12u),
};

void lt_call_start_block(struct lt_call *c, uint32_t proc, const void *args, block_lane *lane, void *res,
			 const struct iovec *sink, int sinkcnt, lt_call_done done)
{
	c->laned = (struct lt_call_laned){ args, lane ? LT_LANE(lane) : LT_NO_LANE };
	c->rpc = (struct rpcrdma_call){ .args = c, .res = res, .sink = sink, .sinkcnt = sinkcnt, .segs_max = SEGS_MAX };
	c->done = done;
	lt_call_prog(c, proc, &procs[proc], 0);
}

/* ---- the present holder ---- */

struct lt_call_ask {
	BLOCKINFOargs args;
	BLOCKINFOres res;
	/* of the call that failed */
	struct rpcrdma_call rpc;
	struct lt_call_laned laned;
	const struct lt_proc *proc;
};

bool lt_call_ask_holder(struct lt_call *c, uint32_t status)
{
	static const char prefix[] = "/block/", from_the_first[] = "";
	char *path = c->m->url.path; /* it names the volume */
	struct lt_call_ask *ask;

	if (c->rpc.prog != LEAT_BLOCK || status != BLOCK_ERR_FENCED || strncmp(path, prefix, strlen(prefix)) != 0)
		return false;
	ask = calloc(1, sizeof(*ask));
	if (!ask)
		return false;
	ask->args = (BLOCKINFOargs){ .volume = path + strlen(prefix), .after = (char *)(uintptr_t)from_the_first };
	ask->rpc = c->rpc;
	ask->laned = c->laned;
	ask->proc = c->proc;
	c->ask = ask;
	lt_call_start_block(c, BLOCKPROC_INFO, &ask->args, NULL, &ask->res, NULL, 0, c->done);
	return true;
}

static void explain_fenced(struct lt_call *c, const BLOCKINFOresok *ok)
{
	const block_holder *h = ok->holders.holders_val;

	c->has_why = ok->holders.holders_len == 1 && !(ok->info.flags & BLOCK_SHARED); /* of many, none is the one */
	if (!c->has_why)
		return;
	text_clean(h->name);
	text_clean(h->app);
	text_clean(h->peer);
	(void)snprintf(c->why, sizeof(c->why), "BLOCK_ERR_FENCED: holder %.20s has the volume now: %.20s on %.40s", h->name,
		       h->app[0] ? h->app : "a program", h->peer);
}

uint32_t lt_call_told(struct lt_call *c, int err)
{
	struct lt_call_ask *ask = c->ask;

	if (!err && ask->res.status == BLOCK_OK)
		explain_fenced(c, &ask->res.BLOCKINFOres_u.resok);
	lt_call_free(c);
	c->rpc = ask->rpc;
	c->laned = ask->laned;
	c->proc = ask->proc;
	c->ask = NULL;
	free(ask);
	return BLOCK_ERR_FENCED;
}
