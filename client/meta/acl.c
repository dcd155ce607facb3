/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * acl.c - access control lists, by NFSACL version 3 (xdr/nfsacl.x)
 *
 * Operation:  get: walk the path, then GETACL. set: walk the path, then SETACL. The Linux server removes a
 *             list that SETACL omits. So for a directory, the default list is read first and sent back.
 *             Solaris requires a mask in every list. Where three entries suffice, the wire carries a mask
 *             as well, equal to the group's entry. This file adds and removes it.
 * Memory:     Both lists of a call lie in op->acl, allocated with the operation.
 * Threads:    The public functions any (task.h); the steps the owner's.
 * Errors:     -EOPNOTSUPP: the server has no NFSACL, or the file system has no lists.
 */
#include <errno.h>
#include <stdlib.h>

#include "file.h"
#include "handle.h"
#include "node.h"
#include "op.h"
#include "sync.h"

static void finish(struct lt_op *op, int64_t result)
{
	lt_file_finish(op, result == -EPROTONOSUPPORT ? -EOPNOTSUPP : result); /* "program unavailable" */
}

/* ---- get ---- */

static bool is_known(uint32_t tag)
{
	return tag == LEAT_ACL_USER_OBJ || tag == LEAT_ACL_USER || tag == LEAT_ACL_GROUP_OBJ ||
	       tag == LEAT_ACL_GROUP || tag == LEAT_ACL_MASK || tag == LEAT_ACL_OTHER;
}

/* Return: index of the mask in a list of four entries, if it does not restrict the group; else @n. */
static uint32_t find_idle_mask(const aclent *v, uint32_t n)
{
	uint32_t mask = n, group = n;

	for (uint32_t i = 0; n == 4 && i < n; i++) {
		if (v[i].type == LEAT_ACL_MASK)
			mask = i;
		else if (v[i].type == LEAT_ACL_GROUP_OBJ)
			group = i;
	}
	return mask < n && group < n && v[mask].perm == v[group].perm ? mask : n;
}

static int64_t take_list(struct lt_op *op)
{
	const secattr *s = &op->res.getacl.GETACL3res_u.resok.acl;
	uint32_t n = s->acl.acl_len, skip = find_idle_mask(s->acl.acl_val, n);
	size_t count = n - (skip < n), at = 0;

	if (count > op->cap)
		return -ERANGE;
	for (uint32_t i = 0; i < n; i++) {
		const aclent *e = &s->acl.acl_val[i];

		if (!is_known(e->type) || e->perm & ~7u) {
			lt_task_explain(&op->task, -EREMOTEIO, "GETACL", "an entry that there cannot be");
			return -EREMOTEIO;
		}
		if (i == skip)
			continue;
		op->acl_entries[at++] = (struct leat_acl_entry){
			.tag = (uint16_t)e->type,
			.perm = (uint16_t)e->perm,
			.id = e->type == LEAT_ACL_USER || e->type == LEAT_ACL_GROUP ? e->id : 0,
		};
	}
	return (int64_t)count;
}

static void get_done(struct lt_op *op, int err)
{
	finish(op, err ? err : take_list(op));
}

static void get_walked(struct lt_op *op, int err)
{
	if (err) {
		finish(op, err);
		return;
	}
	op->args.getacl.object = lt_fh_wire(&op->walk.fh);
	op->args.getacl.mask = NFS_ACL | NFS_ACLCNT;
	lt_op_call_of(op, lt_acl_procs, NFSACLPROC3_GETACL, get_done);
}

/* ---- set ---- */

static void set_done(struct lt_op *op, int err)
{
	finish(op, err);
}

static void set_call(struct lt_op *op, uint32_t mask, uint32_t ndflt)
{
	SETACL3args *a = &op->args.setacl;

	a->object = lt_fh_wire(&op->walk.fh);
	a->acl.mask = mask;
	a->acl.aclcnt = a->acl.acl.acl_len = (uint32_t)op->acl_count;
	a->acl.acl.acl_val = op->acl->access;
	a->acl.dfaclcnt = a->acl.dfacl.dfacl_len = ndflt;
	a->acl.dfacl.dfacl_val = op->acl->dflt;
	lt_op_call_of(op, lt_acl_procs, NFSACLPROC3_SETACL, set_done);
}

static void set_got_default(struct lt_op *op, int err)
{
	uint32_t n = err ? 0 : op->res.getacl.GETACL3res_u.resok.acl.dfacl.dfacl_len;

	if (err)
		finish(op, err);
	else
		set_call(op, NFS_ACL | NFS_DFACL, n);
}

static void set_typed(struct lt_op *op, int err)
{
	if (err) {
		finish(op, err);
	} else if (op->walk.attr.type != NF3DIR) {
		set_call(op, NFS_ACL, 0);
	} else {
		op->args.getacl.object = lt_fh_wire(&op->walk.fh);
		op->args.getacl.mask = NFS_DFACL | NFS_DFACLCNT;
		lt_op_call_of(op, lt_acl_procs, NFSACLPROC3_GETACL, set_got_default);
	}
}

static void set_walked(struct lt_op *op, int err)
{
	if (err)
		finish(op, err);
	else
		lt_walk_getattr(op, set_typed);
}

/* Converts the entries to wire format, with the mask that Solaris requires. */
static int convert(struct lt_op *op, const struct leat_acl_entry *v, size_t n)
{
	aclent *to = op->acl->access, mask = { .type = LEAT_ACL_MASK };
	bool has_group = false;

	for (size_t i = 0; i < n; i++) {
		if (!is_known(v[i].tag) || v[i].perm & ~7u)
			return -EINVAL;
		to[i] = (aclent){ .type = v[i].tag, .id = v[i].id, .perm = v[i].perm };
		if (v[i].tag == LEAT_ACL_GROUP_OBJ) {
			mask.perm = v[i].perm;
			has_group = true;
		}
	}
	if (n == 3 && has_group)
		to[n++] = mask;
	op->acl_count = n;
	return 0;
}

/* ---- the operations ---- */

/* The walk to a file that is open already */
static void take_file(struct lt_op *op, int err)
{
	lt_file_hold(op->task.file);
	op->walk.fh = op->task.file->fh;
	op->walked_next(op, err);
}

static int submit(struct lt_op *op, lt_op_step walked)
{
	if (!op->task.file)
		return lt_walk_submit(op, LT_WALK_FOLLOW, walked);
	op->walked_next = walked;
	return lt_op_submit(op, take_file);
}

/* @f: a file that is open, or NULL: the object at @path */
static int create_acl_op(struct lt_from from, struct leat_file *f, const char *path, const char *verb,
			 struct leat_cb cb, struct lt_op **ret)
{
	struct lt_op *op = NULL;
	int rc = f ? lt_file_op(f, verb, cb, &op) : lt_op_create_from(from, verb, path, NULL, cb, &op);

	if (rc)
		return rc;
	op->acl = malloc(sizeof(*op->acl));
	if (!op->acl) {
		lt_op_free(op);
		return lt_task_refuse(cb, -ENOMEM);
	}
	op->call.acl_room = op->acl;
	*ret = op;
	return 0;
}

static int submit_get(struct lt_from from, struct leat_file *f, const char *path, struct leat_acl_entry *v,
		      size_t cap, struct leat_cb cb)
{
	struct lt_op *op = NULL;
	int rc;

	rc = create_acl_op(from, f, path, "getacl", cb, &op);
	if (rc)
		return rc;
	op->acl_entries = v;
	op->cap = cap;
	return submit(op, get_walked);
}

static int submit_set(struct lt_from from, struct leat_file *f, const char *path,
		      const struct leat_acl_entry *v, size_t n, struct leat_cb cb)
{
	struct lt_op *op = NULL;
	int rc;

	if (!v || !n || n > LEAT_ACL_MAX)
		return lt_task_refuse(cb, -EINVAL);
	rc = create_acl_op(from, f, path, "setacl", cb, &op);
	if (rc)
		return rc;
	rc = convert(op, v, n);
	if (rc) {
		lt_op_free(op);
		return lt_task_refuse(cb, rc);
	}
	return submit(op, set_walked);
}

int leat_aio_acl_get(struct leat *m, const char *path, struct leat_acl_entry *v, size_t cap,
		     struct leat_cb cb)
{
	return submit_get(lt_from_mount(m), NULL, path, v, cap, cb);
}

int leat_aio_node_acl_get(struct leat_node *at, const char *path, struct leat_acl_entry *v, size_t cap,
			  struct leat_cb cb)
{
	return submit_get(lt_from_node(at), NULL, path, v, cap, cb);
}

int leat_aio_acl_set(struct leat *m, const char *path, const struct leat_acl_entry *v, size_t n,
		     struct leat_cb cb)
{
	return submit_set(lt_from_mount(m), NULL, path, v, n, cb);
}

int leat_aio_node_acl_set(struct leat_node *at, const char *path, const struct leat_acl_entry *v, size_t n,
			  struct leat_cb cb)
{
	return submit_set(lt_from_node(at), NULL, path, v, n, cb);
}

int leat_aio_facl_get(struct leat_file *f, struct leat_acl_entry *v, size_t cap, struct leat_cb cb)
{
	return f ? submit_get(lt_from_mount(f->m), f, NULL, v, cap, cb) : lt_task_refuse(cb, -EBADF);
}

int leat_aio_facl_set(struct leat_file *f, const struct leat_acl_entry *v, size_t n, struct leat_cb cb)
{
	return f ? submit_set(lt_from_mount(f->m), f, NULL, v, n, cb) : lt_task_refuse(cb, -EBADF);
}

ssize_t leat_acl_get(struct leat *m, const char *path, struct leat_acl_entry *v, size_t cap)
{
	return (ssize_t)LT_WAIT_FOR(m, leat_aio_acl_get(m, path, v, cap, w.cb));
}

int leat_acl_set(struct leat *m, const char *path, const struct leat_acl_entry *v, size_t n)
{
	return (int)LT_WAIT_FOR(m, leat_aio_acl_set(m, path, v, n, w.cb));
}

ssize_t leat_facl_get(struct leat_file *f, struct leat_acl_entry *v, size_t cap)
{
	return (ssize_t)LT_WAIT_FOR(f ? f->m : NULL, leat_aio_facl_get(f, v, cap, w.cb));
}

int leat_facl_set(struct leat_file *f, const struct leat_acl_entry *v, size_t n)
{
	return (int)LT_WAIT_FOR(f ? f->m : NULL, leat_aio_facl_set(f, v, n, w.cb));
}
