/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * file.h - an open file, and what of it is not stable yet
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

struct leat_file {
	/* constant while open */
	struct leat *m;
	struct lt_fh fh;
	char *path;                 /* for error texts */
	int flags;
	bool is_dir;

	/* the owner's thread */
	struct list link;           /* in m->files */
	unsigned busy;              /* operations in flight on it, close not among them */
	struct lt_op *close_op;     /* waits for busy to become 0 */
	bool has_unstable;          /* written but not committed: verf says by which server life */
	bool lost;                  /* the server forgot some of it; stays so */
	char verf[NFS3_WRITEVERFSIZE];
	uint64_t unstable_seq;      /* counts unstable writes */
	struct lt_readahead *readahead;
	uint64_t sequential_pos;    /* where a leat_read() would continue the last one */

	pthread_mutex_t pos_lock;   /* of leat_read, leat_write, leat_lseek; held while they wait */
	uint64_t pos;
};

/** lt_file_hold, lt_file_release - around each operation, so that close waits for it */
void lt_file_hold(struct leat_file *f);
void lt_file_release(struct leat_file *f);

/** lt_file_wrote - account for a WRITE reply
 * @asked: the stability that was asked for
 *
 * Return: 0, or -EIO: the server promised less than it was asked.
 */
must_check int lt_file_wrote(struct leat_file *f, stable_how asked, const WRITE3resok *ok);

/** lt_file_stat_now - leat_aio_fstat() on the server's word, whatever is cached */
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
