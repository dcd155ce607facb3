/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_volume_admin.c - procedures of volumes (xdr/volumes.x) for their administration: SET, CREATE, CHECK, SERVERS
 *
 * Operation: SET and CREATE have the rules of SETATTR and CREATE of NFS. CHECK is for holders of the key, with any credentials. It changes nothing.
 * Memory:    Entries of CHECK and SERVERS are in r->scratch.
 * Threads:   Workers.
 * Errors:    As statuses in the results.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "nfs.h"
#include "nfs3_meta.h"
#include "nfs3_volume.h"
#include "stripe_handle.h"
#include "volume_check.h"
#include "volume_defaults.h"
#include "volume_layout.h"
#include "volume_manager.h"
#include "volume_reach.h"

/* ---- SET ------------------------------------------------------------------------------------ */

_Static_assert(FILENAME3_ROOM > VOLUME_NAME_MAX, "names fit");

static int set_defaults(const struct req *r, const struct fh_obj *dir, struct dir_defaults *ret)
{
	const VOLSETargs *a = &nfs_call(r)->args.volset;
	const struct dir_defaults to = { a->to.unit, a->to.width };

	if (a->set & ~(uint32_t)(VOLUME_SET_UNIT | VOLUME_SET_WIDTH))
		return -EINVAL;
	if (a->set)
		return dir->exp->conf.ro ? -EROFS : volume_defaults_set(dir, a->set, &to, &r->creds, ret);
	*ret = volume_defaults_get(dir);
	return 0;
}

void nfs3_volume_set(struct req *r)
{
	volume_defaults *now = &nfs_call(r)->res.volset.VOLSETres_u.now;
	struct dir_defaults d;
	struct fh_obj dir;
	int err = nfs_open_type(r, S_IFDIR, &dir);

	if (!err) {
		err = set_defaults(r, &dir, &d);
		fh_close(&dir);
	}
	if (err)
		nfs3_volume_fail(r, err);
	else
		*now = (volume_defaults){ d.unit, d.width };
}

/* ---- CREATE --------------------------------------------------------------------------------- */

static int create(struct req *r, const struct fh_obj *dir, volume_defaults *ret)
{
	const VOLCREATEargs *a = &nfs_call(r)->args.volcreate;
	const struct dir_defaults how = { a->layout.unit, a->layout.width };
	struct vfs_sattr sa = { .set = VFS_SET_MODE, .mode = a->mode & 07777u, .how = &how };
	struct vfs_made made = { .obj.fd = -1, .fd = -1 };
	struct file_layout l;
	uint64_t bytes;
	int err = volume_defaults_check(dir, &how);

	if (!err)
		err = vfs_create(nfs_handles(r), dir, a->name, VFS_GUARDED, &sa, NULL, &r->creds, &made);
	if (!err)
		err = volume_layout_for_client(&made.obj, &(struct volume_lessee){ .instance = 0 }, &l, &bytes);
	if (!err)
		*ret = (volume_defaults){ l.at.unit, l.at.width };
	vfs_made_close(&made);
	return err;
}

void nfs3_volume_create(struct req *r)
{
	volume_defaults made = { 0, 0 };
	struct fh_obj dir;
	int err = nfs_open_type(r, S_IFDIR, &dir);

	if (!err) {
		err = create(r, &dir, &made);
		fh_close(&dir);
	}
	if (err)
		nfs3_volume_fail(r, err);
	else
		nfs_call(r)->res.volcreate.VOLCREATEres_u.made = made;
}

/* ---- CHECK ---------------------------------------------------------------------------------- */

/* Return: 0; -EACCES: the caller has not the key, or its clock differs too much */
static int check_command(const struct volume_manager *m, const VOLCHECKargs *a)
{
	struct stripe_order o = { .proc = VOLUMEPROC_CHECK, .flag = a->first };
	struct stripe_command c;

	memcpy(o.name.object, a->after, sizeof(o.name.object));
	if (stripe_command_read(&m->keys, a->command, &o, &c))
		return -EACCES;
	if (c.volume != m->dir->volume || c.server || stripe_expired(c.expiry, (uint64_t)time(NULL)))
		return -EACCES;
	return 0;
}

void nfs3_volume_check(struct req *r)
{
	const VOLCHECKargs *a = &nfs_call(r)->args.volcheck;
	struct volume_manager *m = nfs_manager(r);
	int err = check_command(m, a);

	if (!err)
		err = volume_check(m, a->first ? NULL : a->after, r->scratch, &nfs_call(r)->res.volcheck.VOLCHECKres_u.resok);
	if (err)
		nfs3_volume_fail(r, err);
}

/* ---- SERVERS -------------------------------------------------------------------------------- */

void nfs3_volume_servers(struct req *r)
{
	VOLSERVERSresok *ok = &nfs_call(r)->res.volservers.VOLSERVERSres_u.resok;
	const struct volume_manager *m = nfs_manager(r);

	ok->servers.servers_val = r->scratch;
	ok->servers.servers_len = volume_reach_list(m->dir->reach, &m->map, ok->servers.servers_val);
}
