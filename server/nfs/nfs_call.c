/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_call.c - the file service's part of a request: its export, its rights, its end
 *
 * Operation: Hooks of struct prog. The exports in force when a request was decoded apply until it ends. A handle leads
 *            to its export, whose rules are checked for every request. The supplementary groups of the caller may
 *            have to be looked up; then the request waits.
 * Memory:    Part of the request.
 * Threads:   The reactor's; nfs_open_type() and nfs_fh_stripped() any.
 * Errors:    -EBADF: not a handle; -ESTALE: of no export; -EACCES: the export does not admit the client; -EROFS.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "nfs.h"

static void on_groups(struct groups_wait *w)
{
	req_resume(container_of(w, struct nfs_call, groups_wait)->req);
}

void nfs_init(struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	call->req = r;
	call->re = nfs_reactor(r->reactor);
	list_init(&call->groups_wait.link);
	call->groups_wait.fn = on_groups;
	list_init(&call->opener.link);
	call->exports = NULL;
	call->exp = NULL;
	call->file = NULL;
	call->found.fd = call->opened.fd = call->made.fd = call->made.obj.fd = -1;
	call->asked = call->rights = 0;
	list_init(&call->room.link);
	call->room.bytes = 0;
	call->room.held = call->authorized = false;
	call->open_tried = call->cached = call->keeps = false;
	call->err = 0;
	call->args.fh.data.data_val = call->mem.fh[0]; /* most arguments begin with a handle */
}

void nfs_release(struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	nfs_room_leave(r);
	if (call->file)
		fdcache_put(call->file);
	assert(call->found.fd < 0 && call->opened.fd < 0 && call->made.fd < 0 && call->made.obj.fd < 0);
	served_use_put(call->exports);
}

void nfs_hold_exports(struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	if (!call->exports)
		call->exports = served_use_hold(r->reactor->uses[SERVICE_NFS]);
}

/* Is the client admitted to the export of the handle, and may it modify the export? */
static int find_export(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const nfs_fh3 *fh = &call->args.fh;
	int err = fh_export(nfs_handles(r), fh->data.data_val, fh->data.data_len, &call->exp);

	if (err)
		return err == -EBADF ? -EBADF : -ESTALE;
	if (served_verdict(&nfs_conn(r->conn)->verdicts, call->exports->served, &r->conn->peer, call->exp->idx) != PEER_ADMITTED) {
		nfs_count(r->reactor, refused);
		return -EACCES;
	}
	r->dev = call->exp->backing.dev;
	return r->proc->modifies && call->exp->conf.ro ? -EROFS : 0;
}

int nfs_open_type(struct req *r, unsigned type, struct fh_obj *ret)
{
	const nfs_fh3 *fh = &nfs_call(r)->args.fh;
	int err = fh_open(nfs_handles(r), fh->data.data_val, fh->data.data_len, ret);

	if (!err && (ret->stx.stx_mode & S_IFMT) != type) {
		fh_close(ret);
		err = -ENXIO;
	}
	return err;
}

struct fh nfs_fh_stripped(const struct req *r)
{
	const nfs_fh3 *fh = &nfs_call(r)->args.fh;
	struct fh whole = { .len = fh->data.data_len }, ret;

	memcpy(whole.data, fh->data.data_val, whole.len);
	fh_strip(&whole, &ret);
	return ret;
}

int nfs_find_groups(struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	if (!call->re->groups || !r->creds.claimed)
		return 0;
	if (groups_of(call->re->groups, clock_now_ns(), r->conn->client, &r->creds, &call->groups_wait))
		return 0;
	nfs_count(r->reactor, group_waits);
	return -EINPROGRESS;
}

/* The export's squash rules apply to groups too, so groups are looked up first. */
int nfs_authorize(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	int err = 0;

	nfs_hold_exports(r);
	if (!r->proc->args_bytes) /* NULL */
		return 0;
	if (!call->exp)
		err = find_export(r);
	if (!err && call->exp->conf.squash != EXPORT_SQUASH_ALL)
		err = nfs_find_groups(r);
	if (!err)
		creds_squash(&r->creds, &call->exp->conf);
	return err;
}

bool nfs_cancel(struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	if (list_is_linked(&call->groups_wait.link)) {
		groups_leave(&call->groups_wait);
		return true;
	}
	return nfs_room_cancel(r) || files_leave(&call->opener);
}
