/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fdcache.h - open files by handle, and what their callers may do with them
 *
 * Invariants: at most one entry answers for a handle. An entry that somebody holds (pins > 0) is
 * neither closed nor freed; one that was dropped meanwhile goes with its last holder. A dirty entry
 * (unstable writes not yet committed) is never just closed: the descriptor that was open when the
 * data went in is the one to which the kernel tells their loss. It is synced first, on a worker. Nor is a
 * descriptor closed here: the last one of a removed file waits for its file system.
 */
#ifndef LEAT_SERVER_FDCACHE_H
#define LEAT_SERVER_FDCACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/util.h"
#include "creds.h"
#include "fh.h"
#include "fs_limits.h"
#include "store.h"
#include "worker.h"

#define FDCACHE_PERMS 4

struct fdcache;

/* What someone was found to be allowed, true while the file's ctime stays what it was. */
struct fdcache_perm {
	uint64_t who; /* creds_hash(); 0: free */
	int64_t ctime_s;
	uint32_t ctime_ns;
	bool read, write;     /* by READ and WRITE */
	uint8_t asked, rights; /* R_OK, W_OK, X_OK: the kernel was asked for these, and said so */
};

/* Owned by the cache; lent by _find() and _insert() until fdcache_put(). */
struct fdcache_entry {
	struct fdcache *cache;
	struct fdcache_entry *hash_next;
	struct list lru;
	struct fh fh;
	struct store_file file;
	uint64_t dev, ino;
	unsigned pins;
	bool dropped; /* not in the table any more */
	bool retired; /* answers for no handle; goes as soon as nobody needs it */
	bool dirty;
	bool flushing;
	uint64_t dirty_seq; /* counts unstable writes that ended */
	unsigned writing;   /* unstable writes under way */
	uint64_t dirty_from, dirty_end; /* where they were, while dirty */
	uint64_t dirty_ns;              /* when the last one ended */
	uint64_t used_ns;
	struct list writable; /* of those that can be written by; wrote_ns: when one was last asked for */
	struct list unsynced; /* of dirty ones that are not flushing */
	uint64_t wrote_ns;
	struct fdcache_perm perms[FDCACHE_PERMS];
	unsigned perm_next;
	bool touching; /* nfs3_atime.c: its access time is being set, */
	uint64_t touch_failed_ns; /* or could not be, then */
	void *dirtier; /* fdcache_dirtied(), while dirty */
};

struct fdcache_ops {
	/* Have a dirty entry synced and call fdcache_flushed(), later. It is pinned meanwhile. */
	void (*flush)(void *ctx, struct fdcache_entry *e);
	/* Have the descriptors of @f closed; now or later. They are the cache's no longer. */
	void (*close)(void *ctx, const struct store_file *f);
	/* What @dirtier wrote is on disk, or is not wanted there any more. */
	void (*cleaned)(void *ctx, void *dirtier);
};

int must_check fdcache_create(size_t max, const struct fdcache_ops *ops, void *ctx,
			      struct fdcache **ret);

/** fdcache_destroy - nobody holds an entry; all are closed, dirty ones too. NULL is fine. */
void fdcache_destroy(struct fdcache *c);

/** fdcache_find - the entry of a handle, held for the caller; or NULL
 * @write: one that can be written by
 */
struct fdcache_entry *fdcache_find(struct fdcache *c, const void *fh, uint32_t len, bool write);

/** fdcache_insert - take over an open file and hold it for the caller
 *
 * If the handle has an entry that serves as well, that one is returned and @file is closed; one
 * that cannot be written by gives way to one that can.
 *
 * Return: the entry; NULL without memory: @file is closed.
 */
struct fdcache_entry *fdcache_insert(struct fdcache *c, const struct fh *fh,
				     const struct store_file *file, uint64_t dev, uint64_t ino);

/** fdcache_put - the caller is through with it */
void fdcache_put(struct fdcache_entry *e);

/** fdcache_drop_file - the file is gone: let go of it */
void fdcache_drop_file(struct fdcache *c, uint64_t dev, uint64_t ino);

/** fdcache_retire - let go of every file of which @gone is true; what is dirty is synced first
 *
 * From now on their handles find nothing here.
 */
void fdcache_retire(struct fdcache *c, bool (*gone)(void *ctx, const struct fh *fh), void *ctx);

/* What is left when some have expired: only so many are closed at once, since closing takes its time. */
enum fdcache_left {
	FDCACHE_NONE,
	FDCACHE_LATER, /* some that have not expired yet */
	FDCACHE_NOW,   /* some that have: call again soon */
};

/** fdcache_expire - close what nobody used since @before_ns, flush what is dirty */
enum fdcache_left fdcache_expire(struct fdcache *c, uint64_t before_ns);

/** fdcache_expire_writable - close what can be written by, is clean, and nobody wanted to write by since @before_ns
 *
 * Linux executes no file that somebody has open for writing, and grants no lease on it. What is held at
 * that moment is closed with its last holder.
 *
 * Return: what is left of those that can be written by
 */
enum fdcache_left fdcache_expire_writable(struct fdcache *c, uint64_t before_ns);

/** fdcache_flushed - the answer to fdcache_ops.flush
 * @seq: dirty_seq when the sync began
 */
void fdcache_flushed(struct fdcache_entry *e, uint64_t seq);

/** fdcache_dirtied - an unstable write of @bytes begins
 * @dirtier: for fdcache_ops.cleaned
 *
 * Return: the entry was clean, and @dirtier is remembered.
 */
bool fdcache_dirtied(struct fdcache_entry *e, uint64_t off, uint32_t bytes, void *dirtier);

/** fdcache_dirty - how many entries are dirty */
size_t fdcache_dirty(const struct fdcache *c);

/** fdcache_flush_one - has the first dirty entry synced that is not being synced yet; none is fine */
void fdcache_flush_one(struct fdcache *c);

/** fdcache_wrote - one ended, well or not */
void fdcache_wrote(struct fdcache_entry *e);

/** fdcache_sync_seq - a sync of a range begins; @bytes is 0: of all of the file
 *
 * Return: what fdcache_cleaned() wants to be told when it went well
 */
uint64_t fdcache_sync_seq(const struct fdcache_entry *e, uint64_t off, uint32_t bytes);

/** fdcache_cleaned - what was written up to @seq is on disk */
void fdcache_cleaned(struct fdcache_entry *e, uint64_t seq);

/** fdcache_synced - all of a file was synced by another descriptor, from @began_ns on
 *
 * What was written before that is on disk, through whichever descriptor it came.
 */
void fdcache_synced(struct fdcache *c, uint64_t dev, uint64_t ino, uint64_t began_ns);

/** fdcache_may - is it known that @who may? False: ask */
bool fdcache_may(const struct fdcache_entry *e, uint64_t who, const struct statx *stx, bool write);

/** fdcache_learn - @who was found to be allowed while the file was as in @stx
 * @looked: fdcache_look(), from before @stx was taken
 *
 * A file that changed so lately that its next change may bear the same time teaches nothing.
 */
void fdcache_learn(struct fdcache_entry *e, uint64_t who, const struct timespec *looked,
		   const struct statx *stx, bool write);

/** fdcache_look - the clock that files of @fs take their times from, in the steps of those */
struct timespec fdcache_look(const struct fs_limits *fs);

/** fdcache_rights - what the kernel said of @who and all of @mask; Return: whether it was asked */
bool fdcache_rights(const struct fdcache_entry *e, uint64_t who, const struct statx *stx,
		    unsigned mask, unsigned *ret);

/** fdcache_learn_rights - it was asked for @asked, and granted @rights of them; see fdcache_learn() */
void fdcache_learn_rights(struct fdcache_entry *e, uint64_t who, const struct timespec *looked,
			  const struct statx *stx, unsigned asked, unsigned rights);

/** fdcache_count - entries in the table */
size_t fdcache_count(const struct fdcache *c);

#endif
