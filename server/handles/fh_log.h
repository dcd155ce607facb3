/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_log.h - the journal of fh_map.c: what it knows outlives the process
 *
 * Invariants: replaying all records in their order gives the map; replaying some of the last ones
 * again changes nothing. Ids are the map's.
 */
#ifndef LEAT_SERVER_FH_LOG_H
#define LEAT_SERVER_FH_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "fh_map.h"

enum fh_log_type {
	FH_LOG_NODE = 1, /* id is file key */
	FH_LOG_NAME = 2, /* name in parent leads to id */
	FH_LOG_DROP = 3, /* it does not any more */
	FH_LOG_GONE = 4, /* id is gone */
};

enum {			      /* struct fh_log_rec.flags */
       FH_LOG_ROOT = 1u << 0, /* of a NODE */
       FH_LOG_DIR = 1u << 1,  /* of a NAME */
};

struct fh_log_rec {
	enum fh_log_type type;
	unsigned flags;
	uint64_t id;
	uint64_t parent;       /* NAME, DROP */
	struct fh_map_key key; /* NODE */
	uint64_t serial;       /* NODE */
	const char *name;      /* NAME, DROP; not terminated */
	size_t name_len;
};

struct fh_log;
struct fh_log_buf;

/* Whose journal it is. */
struct fh_log_owner {
	void *ctx;
	/* one record, while fh_log_open() runs; an error ends it */
	int (*replay)(void *ctx, const struct fh_log_rec *rec);
	/* all that is alive, with fh_log_put(); called by any thread, takes the owner's lock */
	int (*snapshot)(void *ctx, struct fh_log_buf *buf);
};

/** fh_log_open - replay @dir/handles.map, made if it is not there, and be ready for more
 * @dir: made (mode 0700) if it does not exist
 *
 * What cannot be read is told, and kept in @dir/handles.map.bad.
 *
 * Return: 0; -EBUSY: another process has it; -EINVAL: not a map; -ENOMEM; or the errno of what
 * failed.
 */
int must_check fh_log_open(const char *dir, const struct fh_log_owner *owner, struct fh_log **ret);

/** fh_log_user - returns the process whose use of @dir made fh_log_open() return -EBUSY; 0: it is not known */
long fh_log_user(const char *dir);

/** fh_log_close - write and sync what is there. NULL is fine. */
void fh_log_close(struct fh_log *log);

/** fh_log_append - for the next fh_log_flush(); called under the owner's lock, in order */
void fh_log_append(struct fh_log *log, const struct fh_log_rec *rec);

/** fh_log_flush - what was appended has been written: the end of this process cannot lose it
 *
 * Called without the owner's lock. A disk that is full is told, and what could not be written is
 * written when it has room again.
 */
void fh_log_flush(struct fh_log *log);

/** fh_log_put - one record more into a snapshot; Return: 0, -ENOMEM */
int must_check fh_log_put(struct fh_log_buf *buf, const struct fh_log_rec *rec);

#endif
