/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_log.h - the journal of fh_map.c: keeps the map across restarts
 *
 * Invariants: replaying all records in order gives the map; replaying some of the last ones again changes
 *             nothing. Ids are the map's.
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
	FH_LOG_DROP = 3, /* name in parent does not lead to id any more */
	FH_LOG_GONE = 4, /* node id is removed */
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

/* The owner of a journal. */
struct fh_log_owner {
	void *ctx;
	/* called per record, while fh_log_open() runs; an error ends it */
	int (*replay)(void *ctx, const struct fh_log_rec *rec);
	/* writes everything live with fh_log_put(); called by any thread, takes the owner's lock */
	int (*snapshot)(void *ctx, struct fh_log_buf *buf);
};

/** fh_log_open - replays @dir/handles.map, which is created if missing, and opens it for appending
 * @dir: created (mode 0700) if it does not exist
 *
 * If a part cannot be read, this is logged and the file kept as @dir/handles.map.bad.
 *
 * Return: 0; -EBUSY: another process uses it; -EINVAL: not a map; -ENOMEM; or the errno of the failure.
 */
int must_check fh_log_open(const char *dir, const struct fh_log_owner *owner, struct fh_log **ret);

/** fh_log_user - id of the process that uses @dir if fh_log_open() returned -EBUSY; 0: unknown */
long fh_log_user(const char *dir);

/** fh_log_close - writes and syncs pending records. NULL is fine. */
void fh_log_close(struct fh_log *log);

/** fh_log_append - queues a record for the next fh_log_flush(); call under the owner's lock, in order */
void fh_log_append(struct fh_log *log, const struct fh_log_rec *rec);

/** fh_log_flush - writes the queued records; then the end of this process cannot lose them
 *
 * Call without the owner's lock. If the disk is full, this is logged, and the records are written when it has room
 * again.
 */
void fh_log_flush(struct fh_log *log);

/** fh_log_put - adds a record to a snapshot; Return: 0; -ENOMEM; -ENAMETOOLONG: a name over 1024 bytes */
int must_check fh_log_put(struct fh_log_buf *buf, const struct fh_log_rec *rec);

#endif
