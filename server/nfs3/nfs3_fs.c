/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_fs.c - FSSTAT, FSINFO, PATHCONF (RFC 1813 sections 3.3.18 to 3.3.20)
 *
 * Operation: Returns what the file system reports (of a volume: those of its stripe servers), the limits found when the
 *            export was opened (fs_limits.c), and the transfer limits of this server.
 * Memory:    None.
 * Threads:   Workers: statfs() of a network file system may block.
 * Errors:    As statuses in the results.
 */
#include <errno.h>
#include <sys/statvfs.h>

#include "nfs.h"
#include "nfs3_conv.h"
#include "nfs3_io.h"
#include "nfs3_meta.h"
#include "nfs3_volume.h"

/* Finds the file and fills in the attributes that all three results begin with. */
static bool open_fs(struct req *r, struct fh_obj *o)
{
	struct nfs_call *call = nfs_call(r);

	if (!nfs3_open(r, &call->args.fh, o))
		return false;
	nfs3_conv_post_op(&o->stx, &call->res.fsstat.FSSTAT3res_u.resfail.obj_attributes);
	return true;
}

void nfs3_fsstat(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	FSSTAT3resok *ok = &call->res.fsstat.FSSTAT3res_u.resok;
	struct statvfs vfs;
	struct fh_obj o;

	if (!open_fs(r, &o))
		return;
	if (fstatvfs(o.fd, &vfs)) {
		nfs3_set_status(r, -errno);
	} else {
		ok->tbytes = vfs.f_blocks * vfs.f_frsize;
		ok->fbytes = vfs.f_bfree * vfs.f_frsize;
		ok->abytes = vfs.f_bavail * vfs.f_frsize;
		ok->tfiles = vfs.f_files;
		ok->ffiles = vfs.f_ffree;
		ok->afiles = vfs.f_favail;
		ok->invarsec = 0; /* other processes use this file system too */
		nfs3_volume_space(r, ok);
	}
	fh_close(&o);
}

void nfs3_fsinfo(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	FSINFO3resok *ok = &call->res.fsinfo.FSINFO3res_u.resok;
	const struct fs_limits *lim = &call->exp->backing.limits;
	struct fh_obj o;

	if (!open_fs(r, &o))
		return;
	ok->rtmax = ok->rtpref = NFS3_IO_MAX;
	ok->wtmax = ok->wtpref = NFS3_IO_MAX;
	ok->rtmult = ok->wtmult = 4096;
	ok->dtpref = call->re->inline_max;
	ok->maxfilesize = lim->file_max_bytes;
	ok->time_delta = (nfstime3){ .seconds = lim->time_s, .nseconds = lim->time_ns };
	/* an export is one file system: requests do not cross a mount */
	ok->properties = FSF3_HOMOGENEOUS | FSF3_CANSETTIME;
	if (lim->has_links)
		ok->properties |= FSF3_LINK;
	if (lim->has_symlinks)
		ok->properties |= FSF3_SYMLINK;
	fh_close(&o);
}

void nfs3_pathconf(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	PATHCONF3resok *ok = &call->res.pathconf.PATHCONF3res_u.resok;
	struct statvfs vfs;
	struct fh_obj o;

	if (!open_fs(r, &o))
		return;
	ok->linkmax = call->exp->backing.limits.links_max;
	ok->name_max = VFS_NAME_MAX;
	if (!fstatvfs(o.fd, &vfs) && vfs.f_namemax && vfs.f_namemax < VFS_NAME_MAX)
		ok->name_max = (uint32_t)vfs.f_namemax;
	ok->no_trunc = TRUE;
	ok->chown_restricted = TRUE;
	ok->case_insensitive = call->exp->backing.limits.ignores_case;
	ok->case_preserving = TRUE;
	fh_close(&o);
}
