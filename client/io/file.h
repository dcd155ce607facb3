/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * file.h - an open file and its unstable writes
 */
#ifndef LT_FILE_H
#define LT_FILE_H

#include <fcntl.h>
#include <pthread.h>

#include "base/list.h"
#include "call.h"
#include "leat.h"

struct lt_readahead;
struct lt_op;
struct lt_striped;
struct lt_verfs;

struct leat_file {
	/* constant while open */
	struct leat *m;
	struct lt_fh fh;
	char *path;                 /* for error messages */
	int flags;
	bool is_dir;

	/* owner's thread only */
	struct list link;           /* in m->files */
	unsigned busy;              /* operations in flight on the file, except close */
	bool is_closing;
	struct lt_op *close_op;     /* waits until busy is 0 */
	bool has_unstable;          /* written but not committed; verf identifies the server instance */
	bool lost;                  /* the server lost written data; never cleared */
	char verf[NFS3_WRITEVERFSIZE];
	uint64_t unstable_seq;      /* counts unstable writes */
	struct lt_striped *striped; /* of a striped volume, from the first use on */
	struct lt_verfs *verfs;     /* ... of each stripe, from the first unstable write on */
	struct leat_volume_unstable *unstable; /* of leat_volume_open(): instead of verfs and lost. NULL: of another one */
	struct lt_readahead *readahead;
	uint64_t sequential_pos;    /* offset at which the last leat_read() ended */

	pthread_mutex_t pos_lock;   /* of leat_read, leat_write, leat_lseek; held during their I/O */
	uint64_t pos;
};

/** lt_file_drop - frees a file without operations in flight; the server does not learn that it is closed */
void lt_file_drop(struct leat_file *f);

/** lt_file_close_later - the last operation has ended: the close continues by a message, so that the callback of that
 * operation runs before the callback of close */
void lt_file_close_later(struct leat_file *f);

/** lt_file_hold, lt_file_release - bracket each operation on the file; close waits for them */
static inline void lt_file_hold(struct leat_file *f)
{
	f->busy++;
}

static inline void lt_file_release(struct leat_file *f)
{
	if (!--f->busy && f->close_op)
		lt_file_close_later(f);
}

/** lt_file_wrote - records the result of a WRITE
 * @asked: the requested stability
 *
 * Return: 0, or -EIO: the server promised less than requested.
 */
must_check int lt_file_wrote(struct leat_file *f, stable_how asked, const WRITE3resok *ok);

/** lt_file_op - as lt_op_create(), for an operation on an open file; Return: also -EBADF: no file */
must_check int lt_file_op(struct leat_file *f, const char *verb, struct leat_cb cb, struct lt_op **ret);

/** lt_file_finish - ends an operation that holds its file; without a file, as lt_op_finish() */
void lt_file_finish(struct lt_op *op, int64_t result);

/** lt_file_stat_now - leat_aio_fstat() that bypasses the cache */
int lt_file_stat_now(struct leat_file *f, struct stat *ret_st, struct leat_cb cb);

static inline bool lt_file_can_read(const struct leat_file *f)
{
	return !(f->flags & O_PATH) && (f->flags & O_ACCMODE) != O_WRONLY;
}

static inline bool lt_file_can_write(const struct leat_file *f)
{
	return (f->flags & O_ACCMODE) != O_RDONLY;
}

#endif
