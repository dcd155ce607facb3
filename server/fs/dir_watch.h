/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dir_watch.h - proves the attributes of a directory before and after a change of its names
 *
 * The contract: a struct dir_wcc is `proved` only under two conditions. Nothing except the caller's own
 * change happened to the directory's names, owner, mode and lists between `before` and `after`. Every
 * client that holds the ctime of `before` has seen the directory in the state of `before`, or has changed
 * it itself since.
 */
#ifndef LEAT_SERVER_DIR_WATCH_H
#define LEAT_SERVER_DIR_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/util.h"

struct dir_watch;   /* directories of one file system */
struct dir_watches; /* all of a server */
struct fh_obj;
struct watched_dir;

/* Requested by the caller of a change (fh_obj.wcc), filled in by the function that makes the change. */
struct dir_wcc {
	uint64_t client; /* the client that makes the change, not 0: a connection's number */
	bool changed;	 /* the change was made, whatever the result of the call */
	bool proved;	 /* the next two are valid */
	struct statx before, after;
};

/* What a change does to one directory, as inotify(7) reports it. */
struct dir_step {
	const struct fh_obj *dir;
	uint32_t event; /* IN_CREATE, IN_DELETE, IN_MOVED_FROM, IN_MOVED_TO; with IN_ISDIR for a directory's name */
	const char *name;
	const struct fh_obj *moved; /* IN_MOVED_TO: what is moved */
};

#define DIR_WATCH_STEPS 2 /* of one change: RENAME has two */

/* One directory of a change in progress. */
struct dir_part {
	struct watched_dir *dir; /* its turn is taken */
	const struct fh_obj *obj;
	bool good; /* no other event was seen so far */
	struct statx before, after;
};

/* A change in progress, on its worker's stack. */
struct dir_turn {
	struct dir_watch *watch; /* NULL: not requested, or this file system is not watched */
	unsigned nsteps, nparts;
	struct dir_step steps[DIR_WATCH_STEPS];
	struct dir_part parts[DIR_WATCH_STEPS];
	struct dir_part *part_of[DIR_WATCH_STEPS]; /* part of each step, or NULL: not watched */
};

/** dir_watches_create - creates the watches of one server
 * @no_past: no client has a handle from an earlier run, and so no attributes either
 * @max: limit of watched directories per file system
 *
 * Return: 0, -ENOMEM.
 */
int must_check dir_watches_create(bool no_past, unsigned max, struct dir_watches **ret);

/** dir_watches_destroy - no change may be in progress. NULL is fine. */
void dir_watches_destroy(struct dir_watches *all);

/** dir_watch_get - gets the watch of file system @dev (st_dev), for an export; one thread at a time
 *
 * Drops file systems without exports. That may wait for them, so reactors must not call this.
 *
 * Return: 0; -ENOMEM; the error of inotify_init1().
 */
int must_check dir_watch_get(struct dir_watches *all, uint64_t dev, struct dir_watch **ret);

/** dir_watch_put - releases the watch of an export that has no change in progress; any thread. NULL is fine. */
void dir_watch_put(struct dir_watch *w);

/** dir_watch_begin - call before changing names; waits for other changes of the same directories
 * @steps: the changes if the operation succeeds; names must stay valid until dir_watch_end()
 * @nsteps: 1 or 2; two steps may be in one directory
 *
 * Uses the server's own rights. Must be followed by dir_watch_end() in every case.
 */
void dir_watch_begin(struct dir_turn *t, const struct dir_step *steps, unsigned nsteps);

/** dir_watch_end - call after the change succeeded or failed; fills in fh_obj.wcc of its directories
 * @changed: all steps happened; otherwise none did
 */
void dir_watch_end(struct dir_turn *t, bool changed);

/** dir_watch_statx - statx() for attributes that may be sent to a client; any thread
 *
 * For a directory it records a ctime with an unfinished tick, because other changes may still get the same one. That
 * is decided here, not when the reply is sent, which may be much later.
 *
 * Return: 0 or -errno.
 */
int must_check dir_watch_statx(int dir, const char *name, int flags, struct statx *ret);

#endif
