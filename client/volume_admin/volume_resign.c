/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_resign.c - signs layouts again in the directory of a manager: behind a restore, or for a new key
 *
 * Operation: All files are visited twice: first to see which objects several files have, then to sign. Each inode is handled once,
 *            whatever number of names it has. A file whose layout is valid keeps its object, also if copies
 *            of the layout exist. If the first visit could not read everything, a copy may be that of a file which it has not
 *            seen, so copies are not signed. What is signed again stays as it is otherwise.
 * Memory:    32 bytes for each file with a layout; the table grows to twice its size.
 * Threads:   Any.
 * Errors:    -errno with a text for the administrator. The program gets what concerns one file only.
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/opt.h"
#include "file_layout.h"
#include "inode_id.h"
#include "leat_volume.h"
#include "volume_key.h"

#define PROC_PATH 40

/* Whose layout it is. */
enum signer { SIGNED_FIRST, SIGNED_OLD, SIGNED_NOT };

struct entry {
	char object[STRIPE_OBJECT_BYTES];
	uint64_t ino;
	enum signer signer;
	bool done;
};

struct resign {
	const char *dir;
	const struct leat_volume_key *key;
	bool repair;
	bool unread; /* by the first visit: some file or directory */
	leat_volume_resign_fn fn;
	void *ctx;
	const char *attribute;
	size_t root_len; /* of @dir with its slash */
	struct entry *v;
	size_t n, room;
};

/* ---- one layout ------------------------------------------------------------------------------ */

static const char *proc_path(int fd, char buf[PROC_PATH])
{
	(void)snprintf(buf, PROC_PATH, "/proc/self/fd/%d", fd);
	return buf;
}

/* A file that was opened, and its layout. */
struct file {
	int fd;
	struct inode_id inode;
	struct file_layout l;
	enum signer signer;
};

static enum signer find_signer(const struct resign *r, const struct inode_id *inode, const uint8_t *bytes, size_t n)
{
	struct file_layout l;

	for (unsigned i = 0; i < r->key->keys.n; i++) {
		const struct stripe_keys one = { .v = { r->key->keys.v[i] }, .n = 1 };

		if (!file_layout_decode(&one, r->key->volume, inode, bytes, n, &l))
			return i ? SIGNED_OLD : SIGNED_FIRST;
	}
	return SIGNED_NOT;
}

static int read_file(const struct resign *r, int fd, struct file *ret)
{
	uint8_t bytes[FILE_LAYOUT_MAX];
	char path[PROC_PATH];
	struct stat st;
	ssize_t n;
	int err;

	if (fstat(fd, &st))
		return -errno;
	n = getxattr(proc_path(fd, path), r->attribute, bytes, sizeof(bytes));
	if (n < 0)
		return errno == ERANGE ? -EBADMSG : errno == ENODATA && !st.st_size ? -ENOENT : -errno;
	err = inode_id_find(fd, st.st_ino, &ret->inode);
	if (!err)
		err = file_layout_parse(r->key->volume, bytes, (size_t)n, &ret->l);
	if (!err)
		ret->signer = find_signer(r, &ret->inode, bytes, (size_t)n);
	return err;
}

/* Return: 0, the caller closes ret->fd; -ENOENT: nothing is to be done; -EBADMSG, -ENODATA; -errno */
static int open_file(const struct resign *r, const FTSENT *e, struct file *ret)
{
	int err;

	ret->fd = open(e->fts_accpath, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (ret->fd < 0)
		return -errno;
	err = read_file(r, ret->fd, ret);
	if (err)
		close(ret->fd);
	return err;
}

static int sign(const struct resign *r, const struct file *f)
{
	uint8_t bytes[FILE_LAYOUT_MAX];
	char path[PROC_PATH];
	size_t n = file_layout_encode(&r->key->keys, &f->inode, &f->l, bytes);

	return setxattr(proc_path(f->fd, path), r->attribute, bytes, n, XATTR_REPLACE) ? -errno : 0;
}

/* ---- the objects of all files ---------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c = memcmp(x->object, y->object, sizeof(x->object));

	return c ? c : x->ino < y->ino ? -1 : x->ino > y->ino;
}

static int add_entry(struct resign *r, const struct file *f)
{
	size_t room = r->room ? 2 * r->room : 256;
	struct entry *v;

	if (r->n == r->room) {
		v = reallocarray(r->v, room, sizeof(*v));
		if (!v)
			return -ENOMEM;
		r->v = v;
		r->room = room;
	}
	r->v[r->n] = (struct entry){ .ino = f->inode.ino, .signer = f->signer };
	memcpy(r->v[r->n++].object, f->l.object, STRIPE_OBJECT_BYTES);
	return 0;
}

static struct entry *find_entry(const struct resign *r, const struct file *f)
{
	struct entry key = { .ino = f->inode.ino };

	memcpy(key.object, f->l.object, sizeof(key.object));
	return r->n ? bsearch(&key, r->v, r->n, sizeof(key), compare) : NULL;
}

/* Does another inode have the object of @e, which is in the table? Its neighbours may be the same inode. */
static bool is_shared(const struct resign *r, const struct entry *e)
{
	for (const struct entry *x = e; x >= r->v && !memcmp(x->object, e->object, sizeof(e->object)); x--)
		if (x->ino != e->ino)
			return true;
	for (const struct entry *x = e; x < r->v + r->n && !memcmp(x->object, e->object, sizeof(e->object)); x++)
		if (x->ino != e->ino)
			return true;
	return false;
}

/* ---- visits ---------------------------------------------------------------------------------- */

static int tell(const struct resign *r, const FTSENT *e, enum leat_volume_layout_state state, int err)
{
	return r->fn(r->ctx, e->fts_path + r->root_len, state, err);
}

static int collect(struct resign *r, const FTSENT *e)
{
	struct file f;
	int err = open_file(r, e, &f);

	if (err) {
		r->unread |= err != -ENOENT && err != -ENODATA && err != -EBADMSG;
		return 0; /* the second visit tells */
	}
	err = add_entry(r, &f);
	close(f.fd);
	return err;
}

static int treat_layout(const struct resign *r, const FTSENT *e, const struct file *f)
{
	struct entry *known = find_entry(r, f);
	enum leat_volume_layout_state state = f->signer == SIGNED_OLD ? LEAT_VOLUME_LAYOUT_OLD_KEY : LEAT_VOLUME_LAYOUT_COPIED;
	int err;

	if (!known || known->done) /* new, or another name of it */
		return 0;
	known->done = true;
	if (f->signer == SIGNED_FIRST)
		return 0;
	if (f->signer == SIGNED_NOT && is_shared(r, known))
		return tell(r, e, LEAT_VOLUME_LAYOUT_SHARED, -EKEYREJECTED);
	if (f->signer == SIGNED_NOT && r->unread)
		return tell(r, e, LEAT_VOLUME_LAYOUT_UNSURE, -EKEYREJECTED);
	err = r->repair ? sign(r, f) : 0;
	return tell(r, e, err ? LEAT_VOLUME_LAYOUT_UNREAD : state, err);
}

static int treat(struct resign *r, const FTSENT *e)
{
	struct file f;
	int err = open_file(r, e, &f);

	if (err == -ENOENT)
		return 0;
	if (err == -EBADMSG)
		return tell(r, e, LEAT_VOLUME_LAYOUT_DAMAGED, err);
	if (err == -ENODATA)
		return tell(r, e, LEAT_VOLUME_LAYOUT_MISSING, err);
	if (err)
		return tell(r, e, LEAT_VOLUME_LAYOUT_UNREAD, err);
	err = treat_layout(r, e, &f);
	close(f.fd);
	return err;
}

static bool is_unread(const FTSENT *e)
{
	return e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS;
}

/* @tells: the program gets what cannot be read */
static int visit(struct resign *r, FTS *fts, int (*fn)(struct resign *r, const FTSENT *e), bool tells)
{
	FTSENT *e;
	int rc = 0;

	for (errno = 0; !rc && (e = fts_read(fts)) != NULL; errno = 0) {
		if (e->fts_info == FTS_F)
			rc = fn(r, e);
		else if (is_unread(e) && tells)
			rc = tell(r, e, LEAT_VOLUME_LAYOUT_UNREAD, -e->fts_errno);
		else
			r->unread |= is_unread(e);
	}
	return rc ? rc : -errno;
}

static int visit_all(struct resign *r, int (*fn)(struct resign *r, const FTSENT *e), bool tells)
{
	char files[4096], pending[4096], *paths[] = { files, pending, NULL };
	int rc;
	FTS *fts;

	if (snprintf(files, sizeof(files), "%s/files", r->dir) >= (int)sizeof(files) ||
	    snprintf(pending, sizeof(pending), "%s/pending", r->dir) >= (int)sizeof(pending))
		return -ENAMETOOLONG;
	fts = fts_open(paths, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
	if (!fts)
		return -errno;
	rc = visit(r, fts, fn, tells);
	fts_close(fts);
	return rc;
}

/* ---- the directory --------------------------------------------------------------------------- */

/* Only root can have set the first one, so it counts, as for the manager. */
static int find_attribute(struct resign *r, int dir)
{
	int fd = openat(dir, "files", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), err = 0;

	if (fd < 0)
		return -errno;
	if (fgetxattr(fd, FILE_LAYOUT_ROOT, NULL, 0) >= 0)
		r->attribute = FILE_LAYOUT_ROOT;
	else if (fgetxattr(fd, FILE_LAYOUT_USER, NULL, 0) >= 0)
		r->attribute = FILE_LAYOUT_USER;
	else
		err = -ENOENT;
	close(fd);
	return err;
}

static int run(struct resign *r, int dir)
{
	int rc = visit_all(r, collect, false);

	if (!rc && r->n)
		qsort(r->v, r->n, sizeof(*r->v), compare);
	if (!rc)
		rc = visit_all(r, treat, true);
	if (r->repair && syncfs(dir) && !rc)
		rc = -errno;
	return rc;
}

int leat_volume_resign(const char *dir, const struct leat_volume_key *key, bool repair, leat_volume_resign_fn fn, void *ctx,
		       char *why, size_t why_bytes)
{
	struct resign r = { .dir = dir, .key = key, .repair = repair, .fn = fn, .ctx = ctx, .root_len = strlen(dir) + 1 };
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return opt_fail(-errno, why, why_bytes, "%s: %s", dir, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB))
		rc = opt_fail(-EBUSY, why, why_bytes, "%s: %s", dir, errno == EWOULDBLOCK ? "a leatd manages it: end it first" : strerror(errno));
	if (!rc) {
		rc = find_attribute(&r, fd);
		if (rc)
			(void)opt_fail(rc, why, why_bytes, "%s: it is not the directory of a manager, or its attributes were not restored", dir);
	}
	if (!rc) {
		rc = run(&r, fd);
		if (rc < 0)
			(void)opt_fail(rc, why, why_bytes, "%s: %s", dir, strerror(-rc));
	}
	free(r.v);
	close(fd);
	return rc;
}
