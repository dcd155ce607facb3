/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * expect.c - what must be found after a power cut
 *
 * Operation: the records of one thread, in their order, make a picture of its names and files. The
 *            beginning of an operation weakens what is expected (a record may be newer, a file
 *            shorter), its end with NFS3_OK strengthens it. Changes of names count at their end; while
 *            one is open, both pictures are right, and of a rename at least one name leads to the file.
 * Memory:    files of a thread grow in an array.
 * Threads:   one per struct cut_expect.
 * Errors:    a log that makes no sense is -EPROTO.
 */
#include "cut.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "nfs3.h"

#define MAGIC 0x43555431u /* CUT1 */
#define ANY_MODE UINT32_MAX

static uint64_t sum_of(const void *data, size_t bytes)
{
	const uint8_t *p = data;
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < bytes; i++)
		h = (h ^ p[i]) * UINT64_C(1099511628211);
	return h;
}

void cut_seal(struct cut_op *op)
{
	op->magic = MAGIC;
	op->sum = sum_of(op, offsetof(struct cut_op, sum));
}

/** cut_expect_init - nothing is there */
void cut_expect_init(struct cut_expect *e, unsigned thread)
{
	memset(e, 0, sizeof(*e));
	e->thread = thread;
}

void cut_expect_fini(struct cut_expect *e)
{
	free(e->files);
	e->files = NULL;
}

const char *cut_dir(unsigned i)
{
	return i % 2 ? "B" : "A";
}

void cut_path(unsigned thread, uint32_t slot, char ret[32])
{
	(void)snprintf(ret, 32, "%s/t%u_%u", cut_dir(slot), thread % 100, slot % 100);
}

/** cut_target - short ones lie in the inode, long ones in a block of their own */
void cut_target(unsigned thread, uint32_t serial, char ret[128])
{
	(void)snprintf(ret, 128, "%0*u/%u", serial % 2 ? 90 : 8, serial, thread);
}

void cut_fill(unsigned thread, uint32_t file, uint32_t record, uint32_t serial,
	      uint8_t ret[CUT_RECORD_BYTES])
{
	uint32_t head[4] = { thread + 1, file, record, serial };
	uint64_t sum;

	for (uint32_t i = 0; i < CUT_RECORD_BYTES; i++)
		ret[i] = (uint8_t)(serial * 31 + i * (record + 7));
	memcpy(ret, head, sizeof(head));
	sum = sum_of(ret, CUT_RECORD_BYTES - sizeof(sum));
	memcpy(ret + CUT_RECORD_BYTES - sizeof(sum), &sum, sizeof(sum));
}

/* ---- the picture -------------------------------------------------------------------------- */

static struct cut_file *file_at(struct cut_expect *e, uint32_t slot)
{
	const struct cut_name *n = &e->names[slot];

	return n->type == CUT_FILE ? &e->files[n->what] : NULL;
}

static int add_file(struct cut_expect *e)
{
	if (e->nfiles == e->room) {
		uint32_t room = e->room ? e->room * 2 : 16;
		struct cut_file *v = realloc(e->files, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		e->files = v;
		e->room = room;
	}
	e->files[e->nfiles++] = (struct cut_file){ .mode = ANY_MODE };
	return 0;
}

static bool makes_file(uint32_t kind)
{
	return kind == CUT_CREATE || kind == CUT_GUARDED || kind == CUT_EXCLUSIVE;
}

static int begin(struct cut_expect *e, const struct cut_op *op)
{
	struct cut_file *f = file_at(e, op->slot);
	int err;

	if (e->is_open || op->serial != e->serial + 1 || op->kind >= CUT_KINDS ||
	    op->record > CUT_RECORDS)
		return -EPROTO;
	e->serial = op->serial;
	e->open = *op;
	e->is_open = true;
	if (makes_file(op->kind)) {
		err = add_file(e);
		if (err)
			return err;
	}
	if (op->kind < CUT_WRITE)
		return 0;
	if (!f || (op->kind == CUT_WRITE && op->record == CUT_RECORDS))
		return -EPROTO;
	switch (op->kind) {
	case CUT_WRITE:
		f->exclusive = false;
		f->rec[op->record].last = op->serial;
		f->max = MAX(f->max, op->record + 1);
		break;
	case CUT_SIZE:
		f->exclusive = false;
		f->min = MIN(f->min, op->record);
		f->max = MAX(f->max, op->record);
		for (uint32_t i = op->record; i < CUT_RECORDS; i++)
			f->rec[i].stable = f->rec[i].pending = 0;
		break;
	case CUT_MODE:
		f->mode = ANY_MODE;
		break;
	default:
		break;
	}
	return 0;
}

static void is_stable(struct cut_file *f, uint32_t i, uint32_t serial)
{
	f->rec[i].stable = serial;
	f->rec[i].pending = 0;
	f->min = MAX(f->min, i + 1);
}

static void end_io(struct cut_file *f, const struct cut_op *op, const struct cut_op *end)
{
	struct cut_record *r;

	switch (op->kind) {
	case CUT_WRITE:
		r = &f->rec[op->record];
		if (op->stable != UNSTABLE) {
			is_stable(f, op->record, op->serial);
		} else {
			r->pending = op->serial;
			r->verf = end->verf;
		}
		break;
	case CUT_COMMIT:
		for (uint32_t i = 0; i < CUT_RECORDS; i++) {
			r = &f->rec[i];
			if (r->pending && r->verf == end->verf)
				is_stable(f, i, r->pending);
			r->pending = 0; /* another verifier: it would have to be sent again */
		}
		break;
	case CUT_SIZE:
		f->min = f->max = op->record;
		for (uint32_t i = op->record; i < CUT_RECORDS; i++)
			f->rec[i].last = 0;
		break;
	default:
		f->mode = op->mode;
		break;
	}
}

/* what a change of names that went well leaves */
static void apply(const struct cut_expect *e, const struct cut_op *op, struct cut_name *names)
{
	struct cut_name *n = &names[op->slot];

	switch (op->kind) {
	case CUT_CREATE:
	case CUT_GUARDED:
	case CUT_EXCLUSIVE:
		*n = (struct cut_name){ CUT_FILE, e->nfiles - 1 };
		break;
	case CUT_MKDIR:
		*n = (struct cut_name){ CUT_DIR, 0 };
		break;
	case CUT_SYMLINK:
		*n = (struct cut_name){ CUT_LINKED, op->serial };
		break;
	case CUT_MKNOD:
		*n = (struct cut_name){ CUT_FIFO, 0 };
		break;
	case CUT_LINK:
		names[op->to] = *n;
		break;
	case CUT_RENAME:
		names[op->to] = *n;
		*n = (struct cut_name){ CUT_ABSENT, 0 };
		break;
	case CUT_REMOVE:
	case CUT_RMDIR:
		*n = (struct cut_name){ CUT_ABSENT, 0 };
		break;
	default:
		break;
	}
}

static int end(struct cut_expect *e, const struct cut_op *end)
{
	const struct cut_op *op = &e->open;

	if (!e->is_open || end->serial != op->serial || end->kind != op->kind)
		return -EPROTO;
	if (end->status != NFS3_OK) {
		/* a name may be there or not, for good: that is what an open operation stands for */
		e->broken = op->kind < CUT_WRITE;
		e->is_open = e->broken;
		return 0;
	}
	if (op->kind >= CUT_WRITE)
		end_io(file_at(e, op->slot), op, end);
	apply(e, op, e->names);
	if (makes_file(op->kind)) {
		struct cut_file *f = &e->files[e->nfiles - 1];

		f->exclusive = op->kind == CUT_EXCLUSIVE;
		f->create_verf = op->verf;
		f->mode = f->exclusive ? ANY_MODE : op->mode;
	}
	e->is_open = false;
	e->acked++;
	return 0;
}

int cut_expect_take(struct cut_expect *e, const struct cut_op *op)
{
	if (op->magic != MAGIC || op->sum != sum_of(op, offsetof(struct cut_op, sum)) ||
	    op->thread != e->thread || e->broken || op->slot >= CUT_SLOTS || op->to >= CUT_SLOTS)
		return -EPROTO;
	return op->phase == CUT_BEGIN ? begin(e, op) : end(e, op);
}

/* ---- looking ------------------------------------------------------------------------------ */

struct look {
	struct cut_expect *e;
	const char *root;
	char *why;
	uint32_t slot;
	unsigned broken;
};

__attribute__((format(printf, 2, 3))) static bool miss(struct look *l, const char *fmt, ...)
{
	char path[32];
	va_list ap;
	int n;

	cut_path(l->e->thread, l->slot, path);
	n = snprintf(l->why, CUT_WHY_BYTES, "%s: ", path);
	va_start(ap, fmt);
	(void)vsnprintf(l->why + n, CUT_WHY_BYTES - (size_t)n, fmt, ap);
	va_end(ap);
	return false;
}

static bool record_is_right(struct look *l, uint32_t file, uint32_t i, const uint8_t *data)
{
	const struct cut_record *r = &l->e->files[file].rec[i];
	uint8_t want[CUT_RECORD_BYTES];
	uint32_t head[4];

	memcpy(head, data, sizeof(head));
	if (head[0])
		cut_fill(l->e->thread, file, i, head[3], want);
	else
		memset(want, 0, sizeof(want));
	if (memcmp(want, data, sizeof(want)))
		return miss(l, "record %u of file %u is damaged (thread %u, file %u, record %u, "
			       "operation %u)", i, file, head[0] - 1, head[1], head[2], head[3]);
	if (head[3] < r->stable)
		return miss(l, "record %u of file %u is of operation %u, that of %u was stable", i,
			    file, head[3], r->stable);
	if (head[3] > r->last)
		return miss(l, "record %u of file %u is of operation %u, expected at most %u", i,
			    file, head[3], r->last);
	return true;
}

static bool file_is_right(struct look *l, uint32_t file, int fd, const struct stat *st)
{
	struct cut_file *f = &l->e->files[file];
	uint64_t size = (uint64_t)st->st_size;
	uint8_t data[CUT_RECORD_BYTES];
	bool sure;

	if (f->mode != ANY_MODE && (st->st_mode & 07777u) != f->mode)
		return miss(l, "mode %o, not %o", st->st_mode & 07777u, f->mode);
	if (size % CUT_RECORD_BYTES || size < (uint64_t)f->min * CUT_RECORD_BYTES ||
	    size > (uint64_t)f->max * CUT_RECORD_BYTES)
		return miss(l, "file %u has %llu bytes, expected %u to %u records", file,
			    (unsigned long long)size, f->min, f->max);
	/* a name that may lead to either of two files says nothing about other names */
	sure = !l->e->is_open || (l->slot != l->e->open.slot && l->slot != l->e->open.to);
	if (sure && f->ino && f->ino != st->st_ino)
		return miss(l, "is another file than the other name of it");
	for (uint32_t i = 0; i < size / CUT_RECORD_BYTES; i++) {
		if (pread(fd, data, sizeof(data), i * CUT_RECORD_BYTES) != (ssize_t)sizeof(data))
			return miss(l, "cannot be read: %s", strerror(errno));
		if (!record_is_right(l, file, i, data))
			return false;
	}
	if (sure)
		f->ino = st->st_ino;
	return true;
}

static bool open_and_look(struct look *l, uint32_t file, const char *path, const struct stat *st)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool right;

	if (fd < 0)
		return miss(l, "cannot be opened: %s", strerror(errno));
	right = file_is_right(l, file, fd, st);
	close(fd);
	return right;
}

static bool link_is_right(struct look *l, uint32_t serial, const char *path)
{
	char have[256], want[128];
	ssize_t n = readlink(path, have, sizeof(have) - 1);

	cut_target(l->e->thread, serial, want);
	have[n > 0 ? n : 0] = '\0';
	return !strcmp(have, want) || miss(l, "leads to '%s'", have);
}

static bool is_there(struct look *l, uint32_t slot, const struct cut_name *want)
{
	static const mode_t types[] = {
		[CUT_FILE] = S_IFREG,
		[CUT_DIR] = S_IFDIR,
		[CUT_LINKED] = S_IFLNK,
		[CUT_FIFO] = S_IFIFO,
	};
	char name[32], path[4096];
	struct stat st;

	l->slot = slot;
	cut_path(l->e->thread, slot, name);
	(void)snprintf(path, sizeof(path), "%s/%s", l->root, name);
	if (lstat(path, &st)) {
		if (errno != ENOENT)
			return miss(l, "%s", strerror(errno));
		return want->type == CUT_ABSENT || miss(l, "is not there");
	}
	if (want->type == CUT_ABSENT)
		return miss(l, "is there again");
	if ((st.st_mode & S_IFMT) != types[want->type])
		return miss(l, "is of another type, %o", st.st_mode);
	if (want->type == CUT_FILE)
		return open_and_look(l, want->what, path, &st);
	return want->type != CUT_LINKED || link_is_right(l, want->what, path);
}

unsigned cut_verify(struct cut_expect *e, const char *root, char why[CUT_WHY_BYTES])
{
	char first[CUT_WHY_BYTES] = "";
	struct look l = { .e = e, .root = root, .why = why };
	struct cut_name then[CUT_SLOTS];

	memcpy(then, e->names, sizeof(then));
	if (e->is_open)
		apply(e, &e->open, then);
	for (uint32_t i = 0; i < CUT_SLOTS; i++) {
		bool moved = e->is_open && e->open.kind == CUT_RENAME && i == e->open.slot;

		if (is_there(&l, i, &e->names[i]))
			continue;
		if (e->is_open && is_there(&l, i, &then[i]) &&
		    (!moved || is_there(&l, e->open.to, &then[e->open.to])))
			continue;
		if (!l.broken++)
			memcpy(first, why, sizeof(first));
	}
	if (l.broken)
		memcpy(why, first, sizeof(first));
	return l.broken;
}
