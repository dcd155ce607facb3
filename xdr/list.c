/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * list.c - XDR lists (node, "one more follows", node, ...) without recursion
 *
 * Operation:  rpcgen's filter for a linked list calls itself for each node, so the sender of the list
 *             controls the stack depth of the receiver. These filters iterate. If a list ends early,
 *             decoding leaves the nodes read so far correctly linked, for xdr_free() of the whole.
 * Memory:     Decoding allocates each node (zeroed) and what its filter allocates; XDR_FREE frees them.
 *             Encoding only reads: nodes may be in any memory. The message limits the number of nodes,
 *             because each takes at least 4 bytes of it.
 * Threads:    Any.
 * Errors:     FALSE: the stream ended, a node was invalid, or no memory.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "mount3.h"
#include "nfs3.h"

struct node_type {
	size_t bytes, next_off;
	bool_t (*body)(XDR *xdrs, void *node); /* everything except the link */
};

/* A link, or the head of a list, is a pointer to the node's own type. memcpy is used because void * must not alias it. */
static void *get_link(const void *at)
{
	void *node;

	memcpy(&node, at, sizeof(node));
	return node;
}

static void set_link(void *at, void *node)
{
	memcpy(at, &node, sizeof(node));
}

static void *link_of(const struct node_type *t, void *node)
{
	return (char *)node + t->next_off;
}

static bool_t encode_list(XDR *xdrs, const void *head, const struct node_type *t)
{
	bool_t more = TRUE;

	for (void *node = get_link(head); node; node = get_link(link_of(t, node))) {
		if (!xdr_bool(xdrs, &more) || !t->body(xdrs, node))
			return FALSE;
	}
	more = FALSE;
	return xdr_bool(xdrs, &more);
}

static bool_t decode_list(XDR *xdrs, void *head, const struct node_type *t)
{
	void *at = head, *node;
	bool_t more;

	set_link(head, NULL);
	for (;;) {
		if (!xdr_bool(xdrs, &more))
			return FALSE;
		if (!more)
			return TRUE;
		node = calloc(1, t->bytes);
		if (!node)
			return FALSE;
		set_link(at, node);
		at = link_of(t, node);
		if (!t->body(xdrs, node))
			return FALSE;
	}
}

static bool_t free_list(XDR *xdrs, void *head, const struct node_type *t)
{
	for (void *node; (node = get_link(head)) != NULL;) {
		set_link(head, get_link(link_of(t, node)));
		(void)t->body(xdrs, node); /* freeing cannot fail */
		free(node);
	}
	return TRUE;
}

/* @head: points to the pointer to the first node */
static bool_t code_list(XDR *xdrs, void *head, const struct node_type *t)
{
	switch (xdrs->x_op) {
	case XDR_ENCODE:
		return encode_list(xdrs, head, t);
	case XDR_DECODE:
		return decode_list(xdrs, head, t);
	case XDR_FREE:
		return free_list(xdrs, head, t);
	}
	return FALSE;
}

static bool_t code_entry3(XDR *xdrs, void *node)
{
	entry3 *e = node;

	return xdr_fileid3(xdrs, &e->fileid) && xdr_filename3(xdrs, &e->name) &&
	       xdr_cookie3(xdrs, &e->cookie);
}

static const struct node_type entry3_type = {
	sizeof(entry3), offsetof(entry3, nextentry), code_entry3,
};

/** xdr_dirlist3 - READDIR's dirlist3: entry3 *entries; bool eof (RFC 1813 section 3.3.16) */
bool_t xdr_dirlist3(XDR *xdrs, dirlist3 *list)
{
	return code_list(xdrs, &list->entries, &entry3_type) && xdr_bool(xdrs, &list->eof);
}

static bool_t code_entryplus3(XDR *xdrs, void *node)
{
	entryplus3 *e = node;

	return xdr_fileid3(xdrs, &e->fileid) && xdr_filename3(xdrs, &e->name) &&
	       xdr_cookie3(xdrs, &e->cookie) && xdr_post_op_attr(xdrs, &e->name_attributes) &&
	       xdr_post_op_fh3(xdrs, &e->name_handle);
}

static const struct node_type entryplus3_type = {
	sizeof(entryplus3), offsetof(entryplus3, nextentry), code_entryplus3,
};

/** xdr_dirlistplus3 - READDIRPLUS's dirlistplus3 (RFC 1813 section 3.3.17) */
bool_t xdr_dirlistplus3(XDR *xdrs, dirlistplus3 *list)
{
	return code_list(xdrs, &list->entries, &entryplus3_type) && xdr_bool(xdrs, &list->eof);
}

static bool_t code_mountbody(XDR *xdrs, void *node)
{
	struct mountbody *b = node;

	return xdr_mountname(xdrs, &b->ml_hostname) && xdr_dirpath(xdrs, &b->ml_directory);
}

static const struct node_type mountbody_type = {
	sizeof(struct mountbody), offsetof(struct mountbody, ml_next), code_mountbody,
};

/** xdr_mountlist - clients and their mounts: DUMP (RFC 1813 section 5.2.2) */
bool_t xdr_mountlist(XDR *xdrs, mountlist *list)
{
	return code_list(xdrs, list, &mountbody_type);
}

static bool_t code_groupnode(XDR *xdrs, void *node)
{
	struct groupnode *g = node;

	return xdr_mountname(xdrs, &g->gr_name);
}

static const struct node_type groupnode_type = {
	sizeof(struct groupnode), offsetof(struct groupnode, gr_next), code_groupnode,
};

/** xdr_mountgroups - the clients of an export */
bool_t xdr_mountgroups(XDR *xdrs, mountgroups *list)
{
	return code_list(xdrs, list, &groupnode_type);
}

static bool_t code_exportnode(XDR *xdrs, void *node)
{
	struct exportnode *e = node;

	return xdr_dirpath(xdrs, &e->ex_dir) && xdr_mountgroups(xdrs, &e->ex_groups);
}

static const struct node_type exportnode_type = {
	sizeof(struct exportnode), offsetof(struct exportnode, ex_next), code_exportnode,
};

/** xdr_mountexports - exports of the server: EXPORT (RFC 1813 section 5.2.5) */
bool_t xdr_mountexports(XDR *xdrs, mountexports *list)
{
	return code_list(xdrs, list, &exportnode_type);
}
