/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfsacl.c - NFSACL version 3: GETACL and SETACL (xdr/nfsacl.x)
 *
 * Operation: Finds the file, gets or sets its lists (vfs_acl.c), and converts them (posix_acl.c). On a file system
 *            without lists, GETACL returns the list that is equivalent to the mode bits. SETACL returns NOTSUPP,
 *            which Linux's setfacl reports to its user. All of the new lists are checked before any is set.
 * Memory:    Room for two full lists. Those of a SETACL are in req_scratch(), allocated before decoding, as decoding
 *            allocates nothing. Those of a GETACL's results are in r->room.
 * Threads:   Workers, except preset_setacl().
 * Errors:    As statuses in the results.
 */
#include <errno.h>
#include <stdlib.h>

#include "nfs.h"
#include "nfs3_conv.h"
#include "nfs3_meta.h"
#include "posix_acl.h"

/* r->room, r->scratch */
struct lists {
	aclent access[NFS_ACL_MAX_ENTRIES], dflt[NFS_ACL_MAX_ENTRIES];
};

/* ---- GETACL ------------------------------------------------------------------------------- */

static int get_one(const struct fh_obj *o, bool dflt, aclent *v, uint32_t *ret_n)
{
	struct acl_xattr x;
	int err = vfs_get_acl(o, dflt, &x);

	if (err == -EOPNOTSUPP)
		x.bytes = 0;
	else if (err)
		return err;
	err = acl_from_xattr(&x, &o->stx, dflt, v, ret_n);
	if (!err && !*ret_n && !dflt)
		*ret_n = acl_from_mode(&o->stx, v);
	return err;
}

static int get_both(const struct fh_obj *o, struct lists *l, secattr *ret)
{
	uint32_t n = 0;
	int err = 0;

	if (ret->mask & (NFS_ACL | NFS_ACLCNT))
		err = get_one(o, false, l->access, &n);
	ret->aclcnt = n;
	ret->acl.acl_val = l->access;
	ret->acl.acl_len = ret->mask & NFS_ACL ? n : 0;
	n = 0;
	if (!err && ret->mask & (NFS_DFACL | NFS_DFACLCNT) && S_ISDIR(o->stx.stx_mode))
		err = get_one(o, true, l->dflt, &n);
	ret->dfaclcnt = n;
	ret->dfacl.dfacl_val = l->dflt;
	ret->dfacl.dfacl_len = ret->mask & NFS_DFACL ? n : 0;
	return err;
}

_Static_assert(DRC_ARGS_MAX >= 128 + sizeof(struct lists), "the longest arguments: two lists after a handle");
_Static_assert(sizeof(struct lists) <= RPCRDMA_BUF_LEAST, "no room is less");

static size_t getacl_room(const struct req *r)
{
	(void)r;
	return sizeof(struct lists);
}

static void getacl(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const GETACL3args *a = &call->args.getacl;
	GETACL3resok *ok = &call->res.getacl.GETACL3res_u.resok;
	struct fh_obj o;
	int err = 0;

	if (!nfs3_open(r, &a->object, &o))
		return;
	ok->acl.mask = a->mask;
	if (a->mask & ~(uint32_t)NFS_ACL_MASK_ALL)
		err = -EINVAL;
	if (!err)
		err = get_both(&o, r->room->addr, &ok->acl);
	nfs3_set_status(r, err);
	nfs3_conv_post_op(&o.stx, &ok->obj_attributes); /* both results have it at the same place */
	fh_close(&o);
}

/* ---- SETACL ------------------------------------------------------------------------------- */

static void preset_setacl(struct req *r)
{
	struct lists *l = r->scratch;
	SETACL3args *a = &nfs_call(r)->args.setacl;

	a->acl.acl.acl_val = l->access;
	a->acl.dfacl.dfacl_val = l->dflt;
}

/* The lists that a SETACL sets. */
struct wanted {
	const struct acl_xattr *access, *dflt; /* NULL: unchanged */
	struct acl_xattr room[2];
};

/* Converts the lists. A count that differs from the length of its list is an error. */
static int convert(const secattr *s, struct wanted *ret)
{
	int err = 0;

	ret->access = ret->dflt = NULL;
	if (s->mask & ~(uint32_t)NFS_ACL_MASK_ALL)
		return -EINVAL;
	if (s->mask & NFS_ACL) {
		if (s->aclcnt != s->acl.acl_len)
			return -EINVAL;
		err = acl_to_xattr(s->acl.acl_val, s->acl.acl_len, false, &ret->room[0]);
		ret->access = &ret->room[0];
	}
	if (!err && s->mask & NFS_DFACL) {
		if (s->dfaclcnt != s->dfacl.dfacl_len)
			return -EINVAL;
		err = acl_to_xattr(s->dfacl.dfacl_val, s->dfacl.dfacl_len, true, &ret->room[1]);
		ret->dflt = &ret->room[1];
	}
	return err;
}

static void setacl(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const SETACL3args *a = &call->args.setacl;
	struct wanted want;
	struct fh_obj o;
	int err;

	if (!nfs3_open(r, &a->object, &o))
		return;
	err = convert(&a->acl, &want);
	if (!err)
		err = vfs_set_acl(&o, want.access, want.dflt, &r->creds);
	nfs3_set_status(r, err);
	/* both results have it at the same place */
	nfs3_post_op(&o, &call->res.setacl.SETACL3res_u.resok.obj_attributes);
	fh_close(&o);
}

/* ---- the table ---------------------------------------------------------------------------- */

static const struct prog_proc procs[] = {
	[NFSACLPROC3_NULL] = PROG_NULL,
	[NFSACLPROC3_GETACL] = {
		.name = "GETACL",
		PROG_CODECS(GETACL3args, GETACL3res),
		.room = getacl_room,
		.work = getacl,
	},
	[NFSACLPROC3_SETACL] = {
		.name = "SETACL",
		PROG_CODECS(SETACL3args, SETACL3res),
		.scratch_bytes = sizeof(struct lists),
		.preset = preset_setacl,
		.modifies = true,
		.once = true,
		.work = setacl,
	},
};

const struct prog prog_nfsacl = {
	.number = NFSACL_PROGRAM,
	.vers = NFSACL_V3,
	.name = "NFSACL",
	.procs = procs,
	.nprocs = ARRAY_SIZE(procs),
	NFS_CALL,
	.authorize = nfs_authorize,
	.fail = nfs3_fail,
	.undone = nfs3_undone,
};
