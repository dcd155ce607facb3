/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_volume_admin.c - procedures of volumes (xdr/volumes.x) for their administration: CHECK
 *
 * Operation: CHECK is for holders of the key, with any credentials. It changes nothing.
 * Memory:    Entries of CHECK are in r->scratch.
 * Threads:   Workers.
 * Errors:    As statuses in the results.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "nfs.h"
#include "nfs3_volume.h"
#include "stripe_handle.h"
#include "volume_check.h"
#include "volume_manager.h"

static struct volume_manager *manager_of(const struct req *r)
{
	return nfs_call(r)->exp->manager;
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
	struct volume_manager *m = manager_of(r);
	int err = check_command(m, a);

	if (!err)
		err = volume_check(m, a->first ? NULL : a->after, r->scratch, &nfs_call(r)->res.volcheck.VOLCHECKres_u.resok);
	if (err)
		nfs3_volume_fail(r, err);
}
