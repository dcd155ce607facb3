/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * node.h - counted references to files and directories, and where the path of an operation begins
 *
 * A node in bytes, as leat_node_export() writes it; numbers are big-endian:
 *
 *     offset  bytes
 *      0       4     "ltn" and the version, 1
 *      4       8     hash of the file handle of the export's root
 *     12       1     n, the length of the handle: 1 to 64
 *     13       n     the handle
 *     13 + n   4     hash of the bytes above
 *
 * Both hashes are FNV-1a. They detect mistakes and are no protection against forgery: the server checks every handle.
 */
#ifndef LT_NODE_H
#define LT_NODE_H

#include <stdatomic.h>

#include "mount_ref.h"
#include "op.h"

#define LT_NODE_TEXT_MAX 255u /* of a longer path only the end is kept */

struct leat_node {
	struct lt_mount_ref *mount;
	atomic_uint refs;
	uint8_t type;     /* ftype3; 0: unknown */
	uint8_t fh_len, text_len;
	char data[];      /* the handle; then, NUL-terminated, the path at which it was found, for error messages */
};

/** lt_node_mount - the mount of @n; NULL: it has ended */
static inline struct leat *lt_node_mount(const struct leat_node *n)
{
	return atomic_load_explicit(&n->mount->m, memory_order_acquire);
}

/** lt_node_text - the path at which @n was found, without '/' at either end */
static inline const char *lt_node_text(const struct leat_node *n)
{
	return n->data + n->fh_len;
}

static inline struct lt_fh lt_node_fh(const struct leat_node *n)
{
	struct lt_fh fh = { .len = n->fh_len };

	memcpy(fh.data, n->data, n->fh_len);
	return fh;
}

/* Where a path begins: at a node or, without one, at the path of the mount's URL or the directory of leat_fchdir().
 * Absolute paths begin at the root of the export in both cases. */
struct lt_from {
	struct leat *m;
	struct leat_node *node;
};

static inline struct lt_from lt_from_mount(struct leat *m)
{
	return (struct lt_from){ .m = m };
}

static inline struct lt_from lt_from_node(struct leat_node *n)
{
	return (struct lt_from){ .m = n ? lt_node_mount(n) : NULL, .node = n };
}

/** lt_op_create_from - as lt_op_create(), for an operation whose @path begins at @from and which holds its node
 * @path: NULL: the node itself
 *
 * Return: also -ESTALE: the mount of the node has ended.
 */
must_check int lt_op_create_from(struct lt_from from, const char *verb, const char *path, const char *path2,
				 struct leat_cb cb, struct lt_op **ret);

/** lt_op_set_target - lets the second path of @op, which is not submitted, begin at @to
 * On failure @op has been freed and its callback consumed.
 *
 * Return: 0; -EXDEV: a node of another mount; -ESTALE: its mount has ended; -EINVAL: no node; -ENOMEM.
 */
must_check int lt_op_set_target(struct lt_op *op, struct lt_from to);

/** lt_node_of_walk - creates a node for the object at which the walk of @op has arrived; Return: 0, -ENOMEM */
must_check int lt_node_of_walk(const struct lt_op *op, struct leat_node **ret);

/** lt_node_return - last step: sets op->ret_node to the object of the walk and op->ret_st to its attributes
 * Either may be NULL.
 */
void lt_node_return(struct lt_op *op, int err);

/** lt_node_submit_lookup - walks to @path; then as lt_node_return()
 * Return: as lt_op_create_from() and lt_walk_submit().
 */
int lt_node_submit_lookup(struct lt_from from, const char *verb, const char *path, enum lt_walk_mode mode,
			  struct leat_node **ret_node, struct stat *ret_st, struct leat_cb cb);

#endif
