/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_prog.c - the procedures of NFS version 3
 *
 * Operation: One row per procedure; prog.h describes a row, req.c executes it.
 * Memory:    nfs_init() and the preset functions point the arguments' pointers at the request's own memory, so that the
 *            decoders allocate nothing (see xdr/nfs3.x).
 * Threads:   Constant.
 * Errors:    None.
 */
#include "nfs.h"
#include "nfs3_conv.h"
#include "nfs3_io.h"
#include "nfs3_meta.h"

/* LOOKUP, CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR: the arguments begin with directory and name. */
static void preset_dirop(struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	call->args.lookup.what.name = call->mem.name[0];
}

static void preset_rename(struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	preset_dirop(r);
	call->args.rename.to.dir.data.data_val = call->mem.fh[1];
	call->args.rename.to.name = call->mem.name[1];
}

static void preset_link(struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	call->args.link.link.dir.data.data_val = call->mem.fh[1];
	call->args.link.link.name = call->mem.name[0];
}

#define PROC(proc) .name = #proc, PROG_CODECS(proc##3args, proc##3res)

#define PROC_DIR(proc)                                                                                                 \
	.name = #proc, .decode = (xdrproc_t)xdr_##proc##3args, .encode = (xdrproc_t)nfs3_encode_dir,                   \
	.args_bytes = sizeof(proc##3args), .res_bytes = sizeof(struct nfs_dir_res)

static const struct prog_proc procs[] = {
	[NFSPROC3_NULL] = PROG_NULL,
	[NFSPROC3_GETATTR] = {
		PROC(GETATTR),
		.fast = nfs3_getattr_fast,
		.work = nfs3_getattr,
		.finish = nfs3_fast_keep,
	},
	[NFSPROC3_SETATTR] = {
		PROC(SETATTR),
		.modifies = true,
		.once = true,
		.work = nfs3_setattr,
	},
	[NFSPROC3_LOOKUP] = {
		PROC(LOOKUP),
		.preset = preset_dirop,
		.fast = nfs3_lookup_fast,
		.work = nfs3_lookup,
		.finish = nfs3_fast_keep,
	},
	[NFSPROC3_ACCESS] = {
		PROC(ACCESS),
		.fast = nfs3_access_fast,
		.work = nfs3_access,
		.finish = nfs3_fast_keep,
	},
	[NFSPROC3_READLINK] = {
		PROC(READLINK),
		.work = nfs3_readlink,
	},
	[NFSPROC3_READ] = {
		PROC(READ),
		.move = PLACE_READ,
		.begin = nfs3_io_read_begin,
		.open = nfs3_io_open,
		.finish = nfs3_io_read_finish,
	},
	[NFSPROC3_WRITE] = {
		PROC(WRITE),
		.move = PLACE_WRITE,
		.modifies = true,
		.once = true,
		.payload = nfs3_io_write_payload,
		.begin = nfs3_io_write_begin,
		.open = nfs3_io_open,
		.finish = nfs3_io_write_finish,
	},
	[NFSPROC3_CREATE] = {
		PROC(CREATE),
		.preset = preset_dirop,
		.modifies = true,
		.once = true,
		.fast = nfs3_create_fast,
		.work = nfs3_create,
		.finish = nfs3_create_finish,
	},
	[NFSPROC3_MKDIR] = {
		PROC(MKDIR),
		.preset = preset_dirop,
		.modifies = true,
		.once = true,
		.work = nfs3_mkdir,
	},
	[NFSPROC3_SYMLINK] = {
		PROC(SYMLINK),
		.preset = preset_dirop,
		.move = PLACE_PULL,
		.modifies = true,
		.once = true,
		.payload = nfs3_symlink_payload,
		.work = nfs3_symlink,
	},
	[NFSPROC3_MKNOD] = {
		PROC(MKNOD),
		.preset = preset_dirop,
		.modifies = true,
		.once = true,
		.work = nfs3_mknod,
	},
	[NFSPROC3_REMOVE] = {
		PROC(REMOVE),
		.preset = preset_dirop,
		.modifies = true,
		.once = true,
		.work = nfs3_remove,
	},
	[NFSPROC3_RMDIR] = {
		PROC(RMDIR),
		.preset = preset_dirop,
		.modifies = true,
		.once = true,
		.work = nfs3_rmdir,
	},
	[NFSPROC3_RENAME] = {
		PROC(RENAME),
		.preset = preset_rename,
		.modifies = true,
		.once = true,
		.work = nfs3_rename,
	},
	[NFSPROC3_LINK] = {
		PROC(LINK),
		.preset = preset_link,
		.modifies = true,
		.once = true,
		.work = nfs3_link,
	},
	[NFSPROC3_READDIR] = {
		PROC_DIR(READDIR),
		.room = nfs3_readdir_room,
		.work = nfs3_readdir,
	},
	[NFSPROC3_READDIRPLUS] = {
		PROC_DIR(READDIRPLUS),
		.room = nfs3_readdirplus_room,
		.work = nfs3_readdirplus,
	},
	[NFSPROC3_FSSTAT] = {
		PROC(FSSTAT),
		.work = nfs3_fsstat,
	},
	[NFSPROC3_FSINFO] = {
		PROC(FSINFO),
		.work = nfs3_fsinfo,
	},
	[NFSPROC3_PATHCONF] = {
		PROC(PATHCONF),
		.work = nfs3_pathconf,
	},
	[NFSPROC3_COMMIT] = {
		PROC(COMMIT),
		.move = PLACE_STORE,
		.modifies = true,
		.begin = nfs3_io_commit_begin,
		.open = nfs3_io_open,
		.finish = nfs3_io_commit_finish,
	},
};

const struct prog prog_nfs3 = {
	.number = NFS_PROGRAM,
	.vers = NFS_V3,
	.name = "NFS",
	.procs = procs,
	.nprocs = ARRAY_SIZE(procs),
	NFS_CALL,
	.authorize = nfs3_io_authorize,
	.fail = nfs3_fail,
	.undone = nfs3_undone,
};
