/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * walk.c - resolves a path to a file handle
 *
 * Operation:  One LOOKUP per component, unless the cache has the name (cache.h). "." is skipped. ".." is
 *             looked up at the server, but ignored at the root of the export. A symbolic link in the
 *             middle (or at the end, if the operation follows links) is read and replaced by its target;
 *             an absolute target starts at the root of the export. If the operation is `fresh`, the last
 *             component is looked up at the server. After ESTALE, all components are; a relative path,
 *             too, is then walked from the root, unless leat_fchdir() set its start. A path that starts at a
 *             node is always walked from that node.
 *
 *             advance() -> LOOKUP -> looked_up() -> [GETATTR] -> arrived() -> advance() ...
 *                    `-> the cache ---------------------^    `-> READLINK -> got_target() -^
 * Memory:     walk.text: the path yet to be walked, replaced when a link is followed.
 * Threads:    The owner's.
 * Errors:     As path_resolution(7): ENOENT, ENOTDIR, ELOOP after 40 links, ENAMETOOLONG; and those of the server.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "handle.h"
#include "node.h"
#include "op.h"

#define LINKS_MAX 40u

static void advance(struct lt_op *op);

static void walk_done(struct lt_op *op, int err)
{
	op->walk.next(op, err);
}

void lt_walk_set_attr(struct lt_walk *w, const post_op_attr *a)
{
	w->has_attr = a->attributes_follow;
	if (w->has_attr)
		w->attr = a->post_op_attr_u.attributes;
}

static void got_target(struct lt_op *op, int err)
{
	struct lt_walk *w = &op->walk;
	bool alone = w->part.last && !w->part.slash;
	char *text;

	if (!err)
		err = lt_path_join(op->link_text, alone ? NULL : w->text + w->at, &text);
	if (err) {
		walk_done(op, err);
		return;
	}
	free(w->text);
	w->text = text;
	w->at = 0;
	/* w->fh is the link: return to the directory that its target is relative to */
	w->fh = text[0] == '/' ? op->task.m->root : w->dir;
	w->has_attr = false;
	advance(op);
}

/* Checks the component just looked up: w->fh and w->attr are its, w->dir is its directory.
 *
 * Return: 0: continue from there; -EINPROGRESS: a link is being read; or the error.
 */
static int judge(struct lt_op *op)
{
	struct lt_walk *w = &op->walk;
	bool follow = w->mode == LT_WALK_FOLLOW || !w->part.last || w->part.slash;

	if (w->attr.type == NF3LNK && follow) {
		if (++w->links > LINKS_MAX)
			return -ELOOP;
		lt_op_call_readlink(op, &w->fh, got_target);
		return -EINPROGRESS;
	}
	return w->part.slash && w->attr.type != NF3DIR ? -ENOTDIR : 0;
}

static void arrived(struct lt_op *op, int err)
{
	if (!err)
		err = judge(op);
	if (err == -EINPROGRESS)
		return;
	if (err)
		walk_done(op, err);
	else
		advance(op);
}

static void looked_up(struct lt_op *op, int err)
{
	struct lt_walk *w = &op->walk;
	const LOOKUP3resok *ok = &op->res.lookup.LOOKUP3res_u.resok;

	if (err) {
		w->missing = err == -ENOENT && w->part.last;
		walk_done(op, err);
		return;
	}
	w->dir = w->fh;
	lt_fh_take(&w->fh, &ok->object);
	lt_walk_set_attr(w, &ok->obj_attributes);
	lt_walk_getattr(op, arrived);
}

/* Looks the next component up in the cache.
 *
 * Return: 0: found, with attributes; -EINPROGRESS: its attributes are being requested, or a link is being read;
 * -EAGAIN: not cached; or the error.
 */
static int find_cached(struct lt_op *op)
{
	struct leat *m = op->task.m;
	struct lt_walk *w = &op->walk;
	struct lt_fh fh;

	if (op->again || w->part.kind != LT_PATH_NAME || (op->fresh && w->part.last))
		return -EAGAIN;
	switch (lt_cache_name(m->cache, lt_fh_wire(&w->fh), w->part.name, lt_handle_now(m), &fh)) {
	case LT_CACHE_UNKNOWN:
		return -EAGAIN;
	case LT_CACHE_MISSING:
		w->missing = w->part.last;
		lt_task_explain(&op->task, -ENOENT, "LOOKUP", "NFS3ERR_NOENT, cached");
		return -ENOENT;
	case LT_CACHE_THERE:
		break;
	}
	w->dir = w->fh;
	w->fh = fh;
	w->has_attr = lt_cache_attr(m->cache, lt_fh_wire(&fh), lt_handle_now(m), &w->attr);
	if (w->has_attr)
		return judge(op);
	lt_walk_getattr(op, arrived);
	return -EINPROGRESS;
}

static void advance(struct lt_op *op)
{
	struct lt_walk *w = &op->walk;
	int err;

	for (;;) {
		err = lt_path_next(w->text, w->at, &w->part);
		if (err)
			break;
		if (w->part.kind == LT_PATH_END)
			break;
		if (w->mode == LT_WALK_PARENT && w->part.last)
			break;
		err = w->has_attr && w->attr.type != NF3DIR ? -ENOTDIR : 0;
		if (err)
			break;
		w->at = w->part.next;
		if (w->part.kind == LT_PATH_DOT)
			continue;
		if (w->part.kind == LT_PATH_DOTDOT &&
		    lt_fh_is_equal(&w->fh, &op->task.m->root))
			continue;
		err = find_cached(op);
		if (!err)
			continue;
		if (err == -EINPROGRESS)
			return;
		if (err != -EAGAIN)
			break;
		op->args.lookup.what.dir = lt_fh_wire(&w->fh);
		op->args.lookup.what.name = w->part.name;
		lt_op_call(op, NFSPROC3_LOOKUP, looked_up);
		return;
	}
	walk_done(op, err);
}

static void got_attr(struct lt_op *op, int err)
{
	struct lt_walk *w = &op->walk;

	if (!err) {
		w->attr = op->res.getattr.GETATTR3res_u.resok.obj_attributes;
		w->has_attr = true;
	}
	w->after_attr(op, err);
}

void lt_walk_getattr(struct lt_op *op, lt_op_step next)
{
	if (!op->walk.has_attr)
		op->walk.has_attr = lt_op_attr(op, &op->walk.fh, &op->walk.attr);
	if (op->walk.has_attr) {
		next(op, 0);
		return;
	}
	op->walk.after_attr = next;
	op->args.getattr.object = lt_fh_wire(&op->walk.fh);
	lt_op_call(op, NFSPROC3_GETATTR, got_attr);
}

/* A relative path without a node */
static int start_at_base(struct lt_op *op, const char *path)
{
	struct leat *m = op->task.m;
	struct lt_walk *w = &op->walk;

	if (op->again)
		m->has_base = false;
	w->fh = m->has_cwd ? m->cwd : m->has_base ? m->base : m->root;
	if (!m->has_cwd && !m->has_base)
		return lt_path_join(m->path, path[0] ? path : NULL, &w->text);
	return lt_path_join(path, NULL, &w->text);
}

static int start_at_node(struct lt_op *op, const struct leat_node *node, const char *path)
{
	if (path[0] && node->type && node->type != NF3DIR)
		return -ENOTDIR;
	op->walk.fh = lt_node_fh(node);
	return lt_path_join(path, NULL, &op->walk.text);
}

static void start_walk(struct lt_op *op, const struct leat_node *node, const char *path, enum lt_walk_mode mode,
		       lt_op_step next)
{
	struct lt_walk *w = &op->walk;
	int err;

	free(w->text);
	memset(w, 0, sizeof(*w));
	w->mode = mode;
	w->next = next;
	op->walked |= !node || path[0];
	if (path[0] != '/') {
		err = node ? start_at_node(op, node, path) : start_at_base(op, path);
	} else {
		w->fh = op->task.m->root;
		err = lt_path_join(path, NULL, &w->text);
	}
	if (err)
		walk_done(op, err);
	else
		advance(op);
}

void lt_walk_start(struct lt_op *op, enum lt_walk_mode mode, lt_op_step next)
{
	start_walk(op, op->node, op->path_copy, mode, next);
}

void lt_walk_start_second(struct lt_op *op, enum lt_walk_mode mode, lt_op_step next)
{
	start_walk(op, op->node2, op->path2_copy, mode, next);
}

static void made_looked_up(struct lt_op *op, int err)
{
	const LOOKUP3resok *ok = &op->res.lookup.LOOKUP3res_u.resok;

	if (!err) {
		lt_fh_take(&op->walk.fh, &ok->object);
		lt_walk_set_attr(&op->walk, &ok->obj_attributes);
	}
	walk_done(op, err);
}

/* The results of MKDIR, SYMLINK and MKNOD have the layout of those of CREATE: cache_feed.c checks it. */
void lt_walk_made(struct lt_op *op, lt_op_step next)
{
	const CREATE3resok *ok = &op->res.create.CREATE3res_u.resok;
	struct lt_walk *w = &op->walk;

	op->created = true;
	w->next = next;
	w->has_attr = false;
	if (!ok->obj.handle_follows) {
		op->args.lookup.what.dir = lt_fh_wire(&w->fh);
		op->args.lookup.what.name = w->part.name;
		lt_op_call(op, NFSPROC3_LOOKUP, made_looked_up);
		return;
	}
	lt_fh_take(&w->fh, &ok->obj.post_op_fh3_u.handle);
	lt_walk_set_attr(w, &ok->obj_attributes);
	walk_done(op, 0);
}

static void walk_own_path(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	lt_walk_start(op, op->first_mode, op->walked_next);
}

int lt_walk_submit(struct lt_op *op, enum lt_walk_mode mode, lt_op_step next)
{
	struct leat_cb cb = op->task.cb;

	if (!op->path_copy) {
		lt_op_free(op);
		return lt_task_refuse(cb, -EINVAL);
	}
	op->first_mode = mode;
	op->walked_next = next;
	return lt_op_submit(op, walk_own_path);
}

static void get_type(struct lt_op *op, int err)
{
	if (err)
		op->typed_next(op, err);
	else
		lt_walk_getattr(op, op->typed_next); /* LOOKUP returned the attributes, except for the root */
}

int lt_walk_submit_typed(struct lt_op *op, enum lt_walk_mode mode, lt_op_step next)
{
	op->typed_next = next;
	return lt_walk_submit(op, mode, get_type);
}
