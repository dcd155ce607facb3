/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dir_watch.h - what a directory was like before and after a change of its names, where that is proved
 *
 * The contract: a struct dir_wcc is `proved` only if nothing but the caller's own change happened to the
 * directory's names, owner, mode and lists between `before` and `after`, and if every client that holds
 * the ctime of `before` has seen the directory in the state of `before`, or has changed it itself since.
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
	uint64_t client; /* whose change it is, not 0: a connection's number */
	bool changed;	 /* it was made, whatever came of the call afterwards */
	bool proved;	 /* the next two are valid */
	struct statx before, after;
};

/* What a change does to one directory, as inotify(7) reports it. */
struct dir_step {
	const struct fh_obj *dir;
	uint32_t event; /* IN_CREATE, IN_DELETE, IN_MOVED_FROM, IN_MOVED_TO; with IN_ISDIR for a directory's name */
	const char *name;
	uint64_t ino; /* IN_MOVED_TO: of what is moved */
};

#define DIR_WATCH_STEPS 2 /* of one change: RENAME has two */

/* One directory of a change under way. */
struct dir_part {
	struct watched_dir *dir; /* its turn is taken */
	const struct fh_obj *obj;
	bool good; /* nothing is known against it so far */
	struct statx before, after;
};

/* A change under way, on its worker's stack. */
struct dir_turn {
	struct dir_watch *watch; /* NULL: nobody asked, or this file system is not watched */
	unsigned nsteps, nparts;
	struct dir_step steps[DIR_WATCH_STEPS];
	struct dir_part parts[DIR_WATCH_STEPS];
	struct dir_part *part_of[DIR_WATCH_STEPS]; /* each step's, or NULL: not watched */
};

/** dir_watches_create - for one server
 * @no_past: no client has a handle from before now, and so no attributes either
 * @max: directories of a file system that are watched at once
 *
 * Return: 0, -ENOMEM.
 */
int must_check dir_watches_create(bool no_past, unsigned max, struct dir_watches **ret);

/** dir_watches_destroy - no change is under way. NULL is fine. */
void dir_watches_destroy(struct dir_watches *all);

/** dir_watch_get - what watches file system @dev (st_dev), for an export; one thread at a time
 *
 * Forgets the file systems that no export uses any more. That may wait for them, so no reactor calls this.
 *
 * Return: 0; -ENOMEM; what inotify_init1() says.
 */
int must_check dir_watch_get(struct dir_watches *all, uint64_t dev, struct dir_watch **ret);

/** dir_watch_put - the export is gone, and no change of it is under way; any thread. NULL is fine. */
void dir_watch_put(struct dir_watch *w);

/** dir_watch_begin - the thread is about to change names; waits for others that change the same directories
 * @steps: what will happen if it succeeds; names stay until dir_watch_end()
 * @nsteps: 1 or 2; two steps may be of one directory
 *
 * With the server's own rights. dir_watch_end() follows, whatever happens.
 */
void dir_watch_begin(struct dir_turn *t, const struct dir_step *steps, unsigned nsteps);

/** dir_watch_end - the change was made, or was not; fills in fh_obj.wcc of its directories
 * @changed: all steps happened; else none did
 */
void dir_watch_end(struct dir_turn *t, bool changed);

/** dir_watch_statx - statx() of what a client may be told; any thread
 *
 * Of a directory it notes a ctime whose tick is not over yet: other changes may still get the same one. That is
 * decided here and not when the client is told, which may be much later.
 *
 * Return: 0 or -errno.
 */
int must_check dir_watch_statx(int dir, const char *name, int flags, struct statx *ret);

#endif
