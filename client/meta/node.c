/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * node.c - nodes: counted references to files and directories; their lookup, export and import
 *
 * Operation:  A node keeps a file handle. An operation that begins at a node walks from this handle (walk.c), so it
 *             reaches the same object after a rename. Two lookups of one object return two nodes. There is no list of
 *             nodes, so a mount does not know how many exist.
 * Memory:     One allocation for each node: 16 bytes, the handle, and the end of its path for error messages. A
 *             node points to its mount through struct lt_mount_ref, and thus remains valid after leat_umount().
 * Threads:    leat_node_ref(), _put(), _export() and _import(): any. Each operation holds its nodes from its creation
 *             until it is freed.
 * Errors:     -ESTALE: the mount has ended, or the server has no object with this handle any more. There is no second
 *             attempt by path, because a node has none.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attr.h"
#include "base/wire.h"
#include "handle.h"
#include "node.h"
#include "sync.h"

#define MAGIC 0x6c746e01u /* "ltn", version 1 */
#define EXPORT_BYTES(fh_len) (4u + 8u + 1u + (fh_len) + 4u)

_Static_assert(EXPORT_BYTES(NFS3_FHSIZE) <= LEAT_NODE_EXPORT_MAX, "a node with the longest handle fits");
_Static_assert(offsetof(struct leat_node, data) < 16, "programs keep a million of them");
_Static_assert(NFS3_FHSIZE <= UINT8_MAX && LT_NODE_TEXT_MAX <= UINT8_MAX, "their lengths are bytes");

/* ---- nodes ---- */

/* Finds the part of @path to keep: without '/' at either end; of a long path, the last components. */
static const char *cut_text(const char *path, size_t *ret_len)
{
	const char *slash;
	size_t len;

	path += strspn(path, "/");
	len = strlen(path);
	while (len && path[len - 1] == '/')
		len--;
	if (len > LT_NODE_TEXT_MAX) {
		path += len - LT_NODE_TEXT_MAX;
		len = LT_NODE_TEXT_MAX;
		slash = memchr(path, '/', len);
		if (slash) {
			len -= (size_t)(slash + 1 - path);
			path = slash + 1;
		}
	}
	*ret_len = len;
	return path;
}

static int create_node(struct leat *m, const struct lt_fh *fh, ftype3 type, const char *path, struct leat_node **ret)
{
	struct leat_node *n;
	size_t len;

	path = cut_text(path, &len);
	n = malloc(offsetof(struct leat_node, data) + fh->len + len + 1);
	if (!n)
		return -ENOMEM;
	n->mount = lt_mount_ref_get(m->ref);
	atomic_init(&n->refs, 1);
	n->type = (uint8_t)type;
	n->fh_len = (uint8_t)fh->len;
	n->text_len = (uint8_t)len;
	memcpy(n->data, fh->data, fh->len);
	memcpy(n->data + fh->len, path, len);
	n->data[fh->len + len] = '\0';
	*ret = n;
	return 0;
}

struct leat_node *leat_node_ref(struct leat_node *n)
{
	if (n)
		atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
	return n;
}

void leat_node_put(struct leat_node *n)
{
	if (!n || atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1)
		return;
	lt_mount_ref_put(n->mount);
	free(n);
}

/* ---- operations that begin at a node ---- */

/* Return: "/A/B", the path for messages of @path below @n; NULL: no memory */
static char *join_text(const struct leat_node *n, const char *path)
{
	size_t cap = n->text_len + strlen(path) + 3;
	char *text = path[0] == '/' ? strdup(path) : malloc(cap);

	if (text && path[0] != '/')
		snprintf(text, cap, "/%s%s%s", lt_node_text(n), n->text_len && path[0] ? "/" : "", path);
	return text;
}

static int fail_creation(struct lt_op *op, int err)
{
	struct leat_cb cb = op->task.cb;

	lt_op_free(op);
	return lt_task_refuse(cb, err);
}

int lt_op_create_from(struct lt_from from, const char *verb, const char *path, const char *path2,
		      struct leat_cb cb, struct lt_op **ret)
{
	struct lt_op *op;
	int rc;

	if (from.node && !from.m)
		return lt_task_refuse(cb, -ESTALE);
	rc = lt_op_create(from.m, verb, from.node && !path ? "" : path, path2, cb, &op);
	if (rc)
		return rc;
	if (from.node) {
		op->node = leat_node_ref(from.node);
		op->place = join_text(op->node, op->path_copy);
		if (!op->place)
			return fail_creation(op, -ENOMEM);
		op->task.path = op->place;
	}
	*ret = op;
	return 0;
}

int lt_op_set_target(struct lt_op *op, struct lt_from to)
{
	op->task.path2 = op->path2_copy;
	if (!op->node)
		return 0;
	if (!to.node)
		return fail_creation(op, -EINVAL);
	if (to.m != op->task.m)
		return fail_creation(op, to.m ? -EXDEV : -ESTALE);
	op->node2 = leat_node_ref(to.node);
	op->place2 = join_text(op->node2, op->path2_copy);
	if (!op->place2)
		return fail_creation(op, -ENOMEM);
	op->task.path2 = op->place2;
	return 0;
}

int lt_node_of_walk(const struct lt_op *op, struct leat_node **ret)
{
	const struct leat *m = op->task.m;
	const struct lt_walk *w = &op->walk;
	const char *base = m->has_cwd ? m->cwd_path : m->path;
	char *joined = NULL;
	int rc = 0;

	if (!op->place && op->path_copy[0] != '/')
		rc = lt_path_join(base, op->path_copy, &joined);
	if (rc)
		return rc;
	rc = create_node(op->task.m, &w->fh, w->has_attr ? w->attr.type : 0,
			 op->place ? op->place : joined ? joined : op->path_copy, ret);
	free(joined);
	return rc;
}

static void return_node(struct lt_op *op, int err)
{
	if (!err && op->ret_node)
		err = lt_node_of_walk(op, op->ret_node);
	if (!err && op->ret_st)
		lt_attr_stat_of(op->task.m, &op->walk.fh, &op->walk.attr, op->ret_st);
	lt_op_finish(op, err);
}

void lt_node_return(struct lt_op *op, int err)
{
	if (!err && op->ret_st)
		lt_walk_getattr(op, return_node);
	else
		return_node(op, err);
}

int lt_node_submit_lookup(struct lt_from from, const char *verb, const char *path, enum lt_walk_mode mode,
			  struct leat_node **ret_node, struct stat *ret_st, struct leat_cb cb)
{
	struct lt_op *op;
	int rc;

	rc = lt_op_create_from(from, verb, path, NULL, cb, &op);
	if (rc)
		return rc;
	op->ret_node = ret_node;
	op->ret_st = ret_st;
	return lt_walk_submit_typed(op, mode, lt_node_return);
}

int leat_aio_node_get(struct leat *m, const char *path, struct leat_node **ret_node, struct leat_cb cb)
{
	return lt_node_submit_lookup(lt_from_mount(m), "get", path, LT_WALK_FOLLOW, ret_node, NULL, cb);
}

int leat_aio_node_lookup(struct leat_node *at, const char *path, struct leat_node **ret_node, struct stat *ret_st,
			 struct leat_cb cb)
{
	return lt_node_submit_lookup(lt_from_node(at), "lookup", path, LT_WALK_NOFOLLOW, ret_node, ret_st, cb);
}

/* ---- export and import ---- */

static uint64_t fnv1a(const void *mem, size_t len)
{
	const uint8_t *p = mem;
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

static uint32_t checksum(const void *mem, size_t len)
{
	uint64_t h = fnv1a(mem, len);

	return (uint32_t)(h ^ h >> 32);
}

static uint64_t hash_export(const struct leat *m)
{
	return fnv1a(m->root.data, m->root.len);
}

ssize_t leat_node_export(const struct leat_node *n, void *buf, size_t cap)
{
	struct wire_put p;
	struct leat *m;
	size_t len;
	int rc;

	if (!n)
		return -EINVAL;
	m = lt_node_mount(n);
	len = EXPORT_BYTES(n->fh_len);
	if (!m)
		return -ESTALE;
	rc = lt_session_check(m->session);
	if (rc)
		return rc;
	if (!cap)
		return (ssize_t)len;
	lt_handle_untold();
	if (!buf || cap < len)
		return lt_sync_refused(m, __func__, buf ? -ERANGE : -EINVAL);
	wire_put_init(&p, buf, len);
	wire_put_u32(&p, MAGIC);
	wire_put_u64(&p, hash_export(m));
	wire_put_bytes(&p, &n->fh_len, 1);
	wire_put_bytes(&p, n->data, n->fh_len);
	wire_put_u32(&p, checksum(buf, wire_put_len(&p)));
	return (ssize_t)len;
}

/* Return: 0; -EINVAL: not the bytes of a node; -EXDEV: of another export. */
static int parse_export(const struct leat *m, const void *buf, size_t len, struct lt_fh *ret)
{
	struct wire_get g;
	const uint8_t *fh_len, *fh;
	uint32_t magic;
	uint64_t hash;

	wire_get_init(&g, buf, len);
	magic = wire_get_u32(&g);
	hash = wire_get_u64(&g);
	fh_len = wire_get_bytes(&g, 1);
	if (!fh_len || magic != MAGIC || !*fh_len || *fh_len > NFS3_FHSIZE || len != EXPORT_BYTES(*fh_len))
		return -EINVAL;
	fh = wire_get_bytes(&g, *fh_len);
	if (!fh || checksum(buf, len - 4) != wire_get_u32(&g) || !wire_get_ok(&g))
		return -EINVAL;
	if (hash != hash_export(m))
		return -EXDEV;
	ret->len = *fh_len;
	memcpy(ret->data, fh, *fh_len);
	return 0;
}

int leat_node_import(struct leat *m, const void *buf, size_t len, struct leat_node **ret_node)
{
	struct lt_fh fh;
	int rc;

	if (!m || (!buf && len) || !ret_node)
		return -EINVAL;
	rc = lt_session_check(m->session);
	if (rc)
		return rc;
	rc = parse_export(m, buf, len, &fh);
	if (!rc)
		rc = create_node(m, &fh, 0, "(imported node)", ret_node);
	lt_handle_untold();
	return lt_sync_refused(m, __func__, rc);
}
