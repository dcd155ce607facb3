/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * names.c - random operations on a tree of names, every answer compared with a model
 *
 * Operation:  The model is a tree of nodes; a file with several names is one node. An operation takes
 *             one or two places, a directory and one of a few names, so that it often meets what is
 *             there already: whether it has to succeed is asked of the model first, and every
 *             error number that may be told then is noted. After it, what lies at its places is
 *             looked at, and from time to time everything is: names, kinds, modes, counts of
 *             links, sizes, times that were set, targets, and that a name's inode is its node's.
 *             Links are never followed: their targets are nowhere.
 * Memory:     Nodes of a fixed array. A node is free when it has no name.
 * Threads:    One.
 * Errors:     1 when something was wrong, which has been told on @out; -errno if the root could not
 *             be made.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "tree.h"

#define NODES 200
#define NAMES 10
#define DEPTH_MAX 5
#define TOLD 20u
#define LINE_MAX_BYTES 320

enum kind { FREE, REG, DIRECTORY, LNK };

struct node {
	enum kind kind;
	unsigned names;            /* that it has */
	mode_t mode;
	uint64_t size;
	int64_t mtime;             /* -1: not set by us since the last change */
	ino_t ino;                 /* 0: not yet known */
	unsigned target;
	struct node *up, *down[NAMES]; /* of a directory */
};

struct place {
	struct node *dir;
	unsigned name;
};

struct names {
	struct tree *t;
	const struct tumble_opts *o;
	FILE *out;
	struct rnd rnd;
	struct node nodes[NODES];
	char name[NAMES][256];
	uint64_t number;
	char told[TOLD][LINE_MAX_BYTES];
	int may[8];                /* errors that the model expects; none: success */
	unsigned may_count;
	bool failed;
	uint64_t *done;
};

static void path_of(const struct names *n, const struct node *dir, int name, char *ret)
{
	char tail[PATH_MAX] = "";

	if (name >= 0)
		snprintf(tail, sizeof(tail), "%s", n->name[name]);
	for (; dir->up; dir = dir->up) {
		char longer[PATH_MAX];
		unsigned i = 0;

		while (dir->up->down[i] != dir)
			i++;
		if ((size_t)snprintf(longer, sizeof(longer), "%s%s%s", n->name[i], *tail ? "/" : "",
				     tail) >= sizeof(longer))
			abort(); /* DEPTH_MAX names fit by far */
		memcpy(tail, longer, sizeof(tail));
	}
	memcpy(ret, tail, sizeof(tail));
}

static void printf_like(2, 3) fail(struct names *n, const char *fmt, ...)
{
	va_list ap;

	if (n->failed)
		return;
	n->failed = true;
	fprintf(n->out, "tumble: WRONG in operation %s\n  ", n->told[n->number % TOLD]);
	va_start(ap, fmt);
	vfprintf(n->out, fmt, ap);
	va_end(ap);
	fprintf(n->out, "\n  the last of %" PRIu64 " operations, seed %" PRIu64 ":\n", n->number,
		n->o->seed);
	for (uint64_t i = n->number >= TOLD ? n->number - TOLD + 1 : 1; i <= n->number; i++)
		fprintf(n->out, "    %s\n", n->told[i % TOLD]);
}

/* ---- looking ----------------------------------------------------------------------------- */

static void look_at_node(struct names *n, struct node *x, const char *path, const struct stat *st)
{
	static const mode_t types[] = { [REG] = S_IFREG, [DIRECTORY] = S_IFDIR, [LNK] = S_IFLNK };
	char target[64], want[64];
	int rc;

	if ((st->st_mode & S_IFMT) != types[x->kind])
		fail(n, "%s: a type of %o instead of %o", path, st->st_mode & S_IFMT,
		     types[x->kind]);
	else if (x->ino && st->st_ino != x->ino)
		fail(n, "%s: inode %ju instead of %ju", path, (uintmax_t)st->st_ino,
		     (uintmax_t)x->ino);
	else if (x->kind != LNK && (st->st_mode & 07777) != x->mode)
		fail(n, "%s: mode %o instead of %o", path, st->st_mode & 07777, x->mode);
	else if (x->kind != DIRECTORY && st->st_nlink != x->names)
		fail(n, "%s: %ju names instead of %u", path, (uintmax_t)st->st_nlink, x->names);
	else if (x->kind == REG && (uint64_t)st->st_size != x->size)
		fail(n, "%s: size %ju instead of %" PRIu64, path, (uintmax_t)st->st_size, x->size);
	else if (x->kind == REG && x->mtime >= 0 && st->st_mtim.tv_sec != x->mtime)
		fail(n, "%s: time %jd instead of %" PRId64, path, (intmax_t)st->st_mtim.tv_sec,
		     x->mtime);
	x->ino = st->st_ino;
	if (x->kind != LNK || n->failed)
		return;
	rc = n->t->ops->readlink(n->t, path, target, sizeof(target));
	snprintf(want, sizeof(want), "nowhere/%u", x->target);
	if (rc || strcmp(target, want) != 0)
		fail(n, "%s: readlink: %s", path, rc ? strerror(-rc) : target);
}

static void look(struct names *n, struct place p)
{
	struct node *x = p.dir->down[p.name];
	char path[PATH_MAX];
	struct stat st;
	int rc;

	path_of(n, p.dir, (int)p.name, path);
	rc = n->t->ops->lstat(n->t, path, &st);
	if (!x && rc != -ENOENT)
		fail(n, "%s: stat says '%s' of what is not there", path,
		     rc ? strerror(-rc) : "yes");
	else if (x && rc)
		fail(n, "%s: stat: %s", path, strerror(-rc));
	else if (x)
		look_at_node(n, x, path, &st);
}

struct listing {
	struct names *n;
	unsigned seen[NAMES], strange;
};

static void each_name(void *arg, const char *name)
{
	struct listing *l = arg;
	unsigned i = 0;

	while (i < NAMES && strcmp(name, l->n->name[i]) != 0)
		i++;
	if (i < NAMES)
		l->seen[i]++;
	else
		l->strange++;
}

static void look_at_all(struct names *n)
{
	char path[PATH_MAX];

	for (unsigned d = 0; d < NODES && !n->failed; d++) {
		struct listing l = { .n = n };
		struct node *dir = &n->nodes[d];
		int rc;

		if (dir->kind != DIRECTORY)
			continue;
		path_of(n, dir, -1, path);
		rc = n->t->ops->list(n->t, path, each_name, &l);
		if (rc || l.strange)
			fail(n, "'%s': list: %s", path,
			     rc ? strerror(-rc) : "names that nobody made");
		for (unsigned i = 0; i < NAMES && !n->failed; i++) {
			if (l.seen[i] != (dir->down[i] ? 1 : 0))
				fail(n, "'%s': %s is listed %u times", path, n->name[i], l.seen[i]);
			else
				look(n, (struct place){ dir, i });
		}
	}
}

/* ---- the model --------------------------------------------------------------------------- */

static unsigned depth(const struct node *dir)
{
	unsigned d = 0;

	for (; dir->up; dir = dir->up)
		d++;
	return d;
}

static bool is_empty(const struct node *dir)
{
	for (unsigned i = 0; i < NAMES; i++) {
		if (dir->down[i])
			return false;
	}
	return true;
}

static bool is_below(const struct node *x, const struct node *top)
{
	for (; x; x = x->up) {
		if (x == top)
			return true;
	}
	return false;
}

static void may(struct names *n, bool wrong, int err)
{
	if (wrong)
		n->may[n->may_count++] = -err;
}

static void put(struct place p, struct node *x)
{
	p.dir->down[p.name] = x;
	x->names++;
	if (x->kind == DIRECTORY)
		x->up = p.dir;
}

static void drop(struct place p)
{
	struct node *x = p.dir->down[p.name];

	p.dir->down[p.name] = NULL;
	if (x && --x->names == 0)
		*x = (struct node){ 0 };
}

static struct node *new_node(struct names *n, enum kind kind, mode_t mode)
{
	struct node *x = n->nodes;

	while (x->kind != FREE)
		x++; /* choose_place() has left one free */
	*x = (struct node){
		.kind = kind, .mode = mode, .mtime = -1, .target = (unsigned)n->number
	};
	return x;
}

static bool is_full(const struct names *n)
{
	for (unsigned i = 0; i < NODES; i++) {
		if (n->nodes[i].kind == FREE)
			return false;
	}
	return true;
}

static struct place choose_place(struct names *n)
{
	struct node *dir;

	do
		dir = &n->nodes[rnd_below(&n->rnd, NODES)];
	while (dir->kind != DIRECTORY);
	return (struct place){ dir, (unsigned)rnd_below(&n->rnd, NAMES) };
}

/* ---- operations -------------------------------------------------------------------------- */

enum verb {
	CREATE,
	CREATE_EXCL,
	MKDIR,
	SYMLINK,
	LINK,
	RENAME,
	UNLINK,
	RMDIR,
	CHMOD,
	SET_MTIME,
	TRUNCATE,
	VERBS
};

static const char *const verbs[VERBS] = {
	"create", "create_excl", "mkdir", "symlink",   "link",	   "rename",
	"unlink", "rmdir",	 "chmod", "set_mtime", "truncate",
};

/* What the model has against it. */
static void expect(struct names *n, enum verb verb, struct place a, struct place b)
{
	const struct node *x = a.dir->down[a.name], *y = b.dir->down[b.name];
	bool is_dir = x && x->kind == DIRECTORY, to_dir = y && y->kind == DIRECTORY;

	n->may_count = 0;
	switch (verb) {
	case CREATE:
		may(n, is_dir, EISDIR);
		break;
	case CREATE_EXCL:
	case MKDIR:
	case SYMLINK:
		may(n, x, EEXIST);
		break;
	case LINK:
		may(n, !x, ENOENT);
		may(n, y, EEXIST);
		may(n, is_dir, EPERM);
		may(n, is_dir, EISDIR); /* what NFS servers say */
		break;
	case RENAME:
		may(n, !x, ENOENT);
		if (!x || x == y)
			break;
		may(n, is_dir && is_below(b.dir, x), EINVAL);
		may(n, is_dir && y && !to_dir, ENOTDIR);
		may(n, !is_dir && to_dir, EISDIR);
		may(n, to_dir && !is_empty(y), ENOTEMPTY);
		break;
	case UNLINK:
		may(n, !x, ENOENT);
		may(n, is_dir, EISDIR);
		break;
	case RMDIR:
		may(n, !x, ENOENT);
		may(n, x && !is_dir, ENOTDIR);
		may(n, is_dir && !is_empty(x), ENOTEMPTY);
		break;
	case TRUNCATE:
		may(n, is_dir, EISDIR);
		may(n, !x, ENOENT);
		break;
	default:
		may(n, !x, ENOENT);
		break;
	}
}

/* It has succeeded: so do it here. */
static void apply(struct names *n, enum verb verb, struct place a, struct place b, uint64_t value)
{
	struct node *x = a.dir->down[a.name];

	switch (verb) {
	case CREATE:
	case CREATE_EXCL:
		if (!x)
			put(a, new_node(n, REG, 0644));
		break;
	case MKDIR:
		put(a, new_node(n, DIRECTORY, 0755));
		break;
	case SYMLINK:
		put(a, new_node(n, LNK, 0777));
		break;
	case LINK:
		put(b, x);
		break;
	case RENAME:
		if (x == b.dir->down[b.name])
			break; /* two names of one file: nothing is done */
		drop(b);
		put(b, x);
		drop(a);
		break;
	case UNLINK:
	case RMDIR:
		drop(a);
		break;
	case CHMOD:
		x->mode = (mode_t)value;
		break;
	case SET_MTIME:
		x->mtime = (int64_t)value;
		break;
	default:
		x->size = value;
		x->mtime = -1;
		break;
	}
}

static int carry_out(struct names *n, enum verb verb, const char *a, const char *b, uint64_t value)
{
	const struct tree_ops *ops = n->t->ops;
	char target[64];

	switch (verb) {
	case CREATE:
	case CREATE_EXCL:
		return ops->create(n->t, a, verb == CREATE_EXCL);
	case MKDIR:
		return ops->mkdir(n->t, a);
	case SYMLINK:
		snprintf(target, sizeof(target), "nowhere/%u", (unsigned)n->number);
		return ops->symlink(n->t, target, a);
	case LINK:
		return ops->link(n->t, a, b);
	case RENAME:
		return ops->rename(n->t, a, b);
	case UNLINK:
		return ops->unlink(n->t, a);
	case RMDIR:
		return ops->rmdir(n->t, a);
	case CHMOD:
		return ops->chmod(n->t, a, (mode_t)value);
	case SET_MTIME:
		return ops->set_mtime(n->t, a, (int64_t)value);
	default:
		return ops->truncate(n->t, a, value);
	}
}

static void judge(struct names *n, int rc)
{
	for (unsigned i = 0; i < n->may_count; i++) {
		if (rc == n->may[i])
			return;
	}
	if (rc)
		fail(n, "it failed: %s; %s%s", strerror(-rc),
		     n->may_count ? "expected was " : "nothing was in its way",
		     n->may_count ? strerror(-n->may[0]) : "");
	else if (n->may_count)
		fail(n, "it succeeded; expected was %s", strerror(-n->may[0]));
}

static void do_op(struct names *n, enum verb verb, struct place a, struct place b)
{
	char from[PATH_MAX], to[PATH_MAX];
	uint64_t value = rnd_below(&n->rnd, 100000);
	int rc;

	if (verb == CHMOD)
		value = 0700 | (value & 077);
	path_of(n, a.dir, (int)a.name, from);
	path_of(n, b.dir, (int)b.name, to);
	/* names may be long; their beginnings tell enough */
	snprintf(n->told[n->number % TOLD], LINE_MAX_BYTES, "%" PRIu64 " %s %.120s %.120s %" PRIu64,
		 n->number, verbs[verb], from, verb == LINK || verb == RENAME ? to : "", value);
	expect(n, verb, a, b);
	rc = carry_out(n, verb, from, to, value);
	judge(n, rc);
	n->done[rc ? 1 : 0]++;
	if (n->failed)
		return;
	if (!rc)
		apply(n, verb, a, b, value);
	look(n, a);
	if (verb == LINK || verb == RENAME)
		look(n, b);
}

/* Things that the model has no answer to, or no room for. */
static bool is_possible(const struct names *n, enum verb verb, struct place a, struct place b)
{
	const struct node *x = a.dir->down[a.name];

	switch (verb) {
	case CREATE:
	case CHMOD:
	case SET_MTIME:
	case TRUNCATE:
		return !(x && x->kind == LNK) && !is_full(n); /* links are not followed */
	case MKDIR:
		return depth(a.dir) < DEPTH_MAX && !is_full(n);
	case RENAME:
		/* what moves may take others along, deeper than they were */
		return !(x && x->kind == DIRECTORY) || depth(b.dir) < 2;
	default:
		return !is_full(n);
	}
}

static void one(struct names *n)
{
	enum verb verb = (enum verb)rnd_below(&n->rnd, VERBS);
	struct place a = choose_place(n), b = choose_place(n);

	/* half of the operations that want something take something */
	for (unsigned i = 0; i < 4 && verb >= LINK && !a.dir->down[a.name]; i++)
		a = choose_place(n);
	if (verb == RENAME && depth(b.dir) >= 2 && rnd_chance(&n->rnd, 50))
		b.dir = n->nodes;
	n->told[n->number % TOLD][0] = '\0';
	if (is_possible(n, verb, a, b))
		do_op(n, verb, a, b);
	else if (is_full(n) && !a.dir->down[a.name])
		n->number--; /* nothing came of it */
	else if (a.dir->down[a.name])
		do_op(n, a.dir->down[a.name]->kind == DIRECTORY ? RMDIR : UNLINK, a, b);
}

static void name_names(struct names *n)
{
	for (unsigned i = 0; i < NAMES; i++)
		snprintf(n->name[i], sizeof(n->name[i]), "%c", 'a' + (int)i);
	memset(n->name[1], 'n', 255);
	snprintf(n->name[2], sizeof(n->name[2]), "odd name\t\001\xff%%20");
	snprintf(n->name[3], sizeof(n->name[3]), "...");
}

static void remove_all(struct names *n, struct node *dir)
{
	for (unsigned i = 0; i < NAMES && !n->failed; i++) {
		struct place p = { dir, i };

		if (!dir->down[i])
			continue;
		n->number++;
		if (dir->down[i]->kind == DIRECTORY)
			remove_all(n, dir->down[i]);
		if (!n->failed)
			do_op(n, dir->down[i]->kind == DIRECTORY ? RMDIR : UNLINK, p, p);
	}
}

/** tumble_names - run, and tell
 * @t: its root is made; removed if all was well
 * @ret_done: how many operations have succeeded, and how many have failed as they should
 *
 * Return: 0; 1: something was wrong, and @out has it; -ENOMEM, or why the root cannot be made.
 */
int tumble_names(struct tree *t, const struct tumble_opts *o, FILE *out, uint64_t ret_done[2])
{
	struct names *n = calloc(1, sizeof(*n));
	int rc;

	if (!n)
		return -ENOMEM;
	*n = (struct names){
		.t = t, .o = o, .out = out, .rnd = { .state = o->seed }, .done = ret_done
	};
	ret_done[0] = ret_done[1] = 0;
	name_names(n);
	n->nodes[0] = (struct node){ .kind = DIRECTORY, .names = 1, .mode = 0755 };
	rc = t->ops->mkdir(t, "");
	while (!rc && n->number < o->count && !n->failed && !(o->stop && *o->stop)) {
		n->number++;
		one(n);
		if (n->number % o->check_every == 0)
			look_at_all(n);
	}
	if (!rc && !n->failed)
		look_at_all(n);
	if (!rc && !n->failed)
		remove_all(n, n->nodes);
	if (!rc && !n->failed) {
		rc = t->ops->rmdir(t, "");
		if (rc)
			fail(n, "rmdir of the root: %s", strerror(-rc));
		rc = 0;
	}
	if (!rc)
		rc = n->failed;
	free(n);
	return rc;
}
