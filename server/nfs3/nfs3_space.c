/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_space.c - ALLOCATE and SEEK (xdr/space.x)
 *
 * Operation: Finds the file, changes its space or finds data or a hole (vfs_space.c). A retransmitted ALLOCATE gets
 *            the original reply, because it could undo a WRITE that the client has made since. A change can take
 *            seconds, so its range and the number of changes in progress are bounded.
 * Memory:    None.
 * Threads:   Workers.
 * Errors:    As statuses in the results. NOTSUPP: the file system does not support the change. JUKEBOX: too many
 *            changes are in progress.
 */
#include <errno.h>
#include <fcntl.h>

#include "nfs.h"
#include "nfs3_conv.h"
#include "nfs3_meta.h"
#include "nfs3_volume.h"
#include "space.h"

static int mode_of(space_change change, int *ret)
{
	static const int modes[] = {
		[SPACE_ALLOCATE] = 0,
		[SPACE_ALLOCATE_KEEP] = FALLOC_FL_KEEP_SIZE,
		[SPACE_PUNCH] = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		[SPACE_ZERO] = FALLOC_FL_ZERO_RANGE,
		[SPACE_ZERO_KEEP] = FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
	};

	if ((unsigned)change >= ARRAY_SIZE(modes))
		return -EINVAL;
	*ret = modes[change];
	return 0;
}

static bool is_too_long(const ALLOCATE3args *a)
{
	return a->change != SPACE_PUNCH && a->length > SPACE_BYTES_MAX;
}

static void change_object(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const ALLOCATE3args *a = &call->args.allocate;
	struct fh_obj o;
	int mode, err;

	if (!nfs3_open(r, &a->object, &o))
		return;
	err = is_too_long(a) ? -EINVAL : mode_of(a->change, &mode);
	if (!err)
		err = vfs_allocate(&o, mode, a->offset, a->length, &r->creds);
	nfs3_set_status(r, err);
	/* both results have it at the same place */
	nfs3_post_op(&o, &call->res.allocate.ALLOCATE3res_u.resok.obj_wcc.after);
	fh_close(&o);
}

static void change_space(struct req *r)
{
	struct client *c = r->conn->client;
	int err = nfs3_volume_refuse(r);

	if (err) {
		nfs3_fail(r, err);
		return;
	}
	if (!client_begin_long(c)) {
		nfs3_fail_status(r, NFS3ERR_JUKEBOX);
		return;
	}
	change_object(r);
	client_end_long(c);
}

static void seek(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const SEEK3args *a = &call->args.seek;
	SEEK3resok *ok = &call->res.seek.SEEK3res_u.resok;
	struct fh_obj o;
	uint64_t at = 0;
	int err = nfs3_volume_refuse(r);

	if (err) {
		nfs3_fail(r, err);
		return;
	}
	if (!nfs3_open(r, &a->object, &o))
		return;
	err = vfs_seek(&o, a->hole, a->offset, &r->creds, &at);
	nfs3_set_status(r, err);
	nfs3_conv_post_op(&o.stx, &ok->obj_attributes); /* both results have it at the same place */
	if (!err)
		ok->offset = at;
	fh_close(&o);
}

static const struct prog_proc procs[] = {
	[SPACEPROC_NULL] = PROG_NULL,
	[SPACEPROC_ALLOCATE] = {
		.name = "ALLOCATE",
		PROG_CODECS(ALLOCATE3args, ALLOCATE3res),
		.modifies = true,
		.once = true,
		.work = change_space,
	},
	[SPACEPROC_SEEK] = {
		.name = "SEEK",
		PROG_CODECS(SEEK3args, SEEK3res),
		.work = seek,
	},
};

const struct prog prog_space = {
	.number = LEAT_SPACE,
	.vers = LEAT_SPACE_V1,
	.name = "SPACE",
	.procs = procs,
	.nprocs = ARRAY_SIZE(procs),
	NFS_CALL,
	.authorize = nfs_authorize,
	.fail = nfs3_fail,
	.undone = nfs3_undone,
};
