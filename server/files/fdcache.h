/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fdcache.h - cache of open files by handle, with the access rights of callers
 *
 * Invariants: fdcache_find() finds at most one entry for a handle. A held entry (pins > 0) is neither closed
 * nor freed; if it was dropped, its last fdcache_put() frees it. A dirty entry (unstable writes not yet
 * committed) is synced on a worker before it is closed, unless its file was removed or the cache is destroyed:
 * the kernel reports a loss of data to the descriptor that was open when the data was written. The cache passes
 * descriptors to fdcache_ops.close, because the last close() of a removed file may block.
 * Threads:    the reactor's, except for fdcache_look(). Creation and destruction while that thread does not run.
 * Units:      members and parameters *_ns are CLOCK_MONOTONIC; offsets and lengths are bytes.
 */
#ifndef LEAT_SERVER_FDCACHE_H
#define LEAT_SERVER_FDCACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/util.h"
#include "creds.h"
#include "fh.h"
#include "fs_limits.h"
#include "store.h"
#include "worker.h"

#define FDCACHE_PERMS 4

/* Rights, besides R_OK, W_OK and X_OK: to READ and WRITE, which owners may always do (vfs_may_io()) */
#define FDCACHE_READ 8u
#define FDCACHE_WRITE 16u

struct fdcache;

/* Known access rights of one set of credentials; valid while the file's ctime is unchanged. */
struct fdcache_perm {
	uint64_t user; /* nfs3_user(), from creds_hash(); 0: free */
	int64_t ctime_s;
	uint32_t ctime_ns;
	uint8_t asked, rights; /* masks: rights that are known, and that the user has */
};

/* Owned by the cache. fdcache_find() and fdcache_insert() return it held, until fdcache_put(). */
struct fdcache_entry {
	struct fdcache *cache;
	struct hash_node node; /* cache->by_fh */
	struct list lru;
	struct fh fh;
	struct store_file file;
	unsigned pins;
	bool dropped; /* no longer in the table */
	bool retired; /* not found any more; dropped when it is clean and not held */
	bool dirty;
	bool flushing;
	uint64_t dirty_seq; /* number of unstable writes that have ended */
	unsigned writing;   /* unstable writes in progress */
	uint64_t dirty_from, dirty_end; /* while dirty: the range of the unstable writes */
	uint64_t dirty_ns;              /* when the last unstable write ended */
	uint64_t used_ns;
	struct list writable; /* in cache->writable, if the descriptor is writable */
	struct list unsynced; /* in cache->unsynced, while dirty and not flushing */
	uint64_t wrote_ns; /* when fdcache_find() or fdcache_insert() last returned it for writing */
	struct fdcache_perm perms[FDCACHE_PERMS];
	unsigned perm_next;
	bool touching; /* nfs3_atime.c: a worker sets its access time */
	uint64_t touch_failed_ns; /* when setting it last failed; 0: it has not */
	void *dirtier; /* of fdcache_dirtied(), while dirty */
};

struct fdcache_ops {
	/* Syncs a dirty entry and calls fdcache_flushed(), now or later. The entry is held until then. */
	void (*flush)(void *ctx, struct fdcache_entry *e);
	/* Closes the descriptors of @f, now or later. The callee owns them. */
	void (*close)(void *ctx, const struct store_file *f);
	/* The entry is clean, or is closed without a sync. It no longer refers to @dirtier. */
	void (*cleaned)(void *ctx, void *dirtier);
};

/** fdcache_create - creates an empty cache
 * @max: limit of entries; held and dirty entries may exceed it
 * @ops, @ctx: must exist as long as the cache; @ctx is passed to each operation
 * @ret: owned by the caller, until fdcache_destroy()
 *
 * Return: 0, -ENOMEM, -EIO (no random numbers).
 */
int must_check fdcache_create(size_t max, const struct fdcache_ops *ops, void *ctx,
			      struct fdcache **ret);

/** fdcache_destroy - closes all entries, dirty ones too; no entry may be held. NULL is fine. */
void fdcache_destroy(struct fdcache *c);

/** fdcache_find - finds the entry of a handle
 * @len: bytes of @fh
 * @write: the descriptor must be writable
 *
 * Return: the entry, held for the caller, or NULL.
 */
struct fdcache_entry *fdcache_find(struct fdcache *c, const void *fh, uint32_t len, bool write);

/** fdcache_insert - adds an open file
 * @file: copied, with dev and ino set; the cache owns its descriptors, even on failure
 *
 * If the handle has an entry for the same file, and it is writable or @file is not, that entry is returned and
 * @file is closed. A writable @file replaces a read-only entry. An entry for another file is retired.
 *
 * Return: the entry, held for the caller; NULL: no memory, @file is closed.
 */
struct fdcache_entry *fdcache_insert(struct fdcache *c, const struct fh *fh, const struct store_file *file);

/** fdcache_put - ends the hold of a caller; the last one closes a dropped entry, and a retired one once it is clean */
void fdcache_put(struct fdcache_entry *e);

/** fdcache_drop_file - drops all entries of a removed file, dirty ones without a sync */
void fdcache_drop_file(struct fdcache *c, uint64_t dev, uint64_t ino);

/** fdcache_retire - retires the entries of all handles for which @gone returns true
 * @ctx: passed to @gone
 *
 * fdcache_find() does not find these entries from now on. Dirty ones are synced before they are closed.
 */
void fdcache_retire(struct fdcache *c, bool (*gone)(void *ctx, const struct fh *fh), void *ctx);

/* The entries left after one round of expiry. A round closes a limited number, because closing takes time. */
enum fdcache_left {
	FDCACHE_NONE,
	FDCACHE_LATER, /* entries that have not expired */
	FDCACHE_NOW,   /* expired entries: call again soon */
};

/** fdcache_expire - closes entries that are not held and were last used before @before_ns; flushes dirty ones
 *
 * Return: the entries left, without expired ones that are held or were flushed.
 */
enum fdcache_left fdcache_expire(struct fdcache *c, uint64_t before_ns);

/** fdcache_expire_writable - closes clean writable entries that were last returned for writing before @before_ns
 *
 * Linux does not execute a file that is open for writing, and grants no lease on it. A held entry is retired: its last
 * fdcache_put() closes it.
 *
 * Return: the writable entries left.
 */
enum fdcache_left fdcache_expire_writable(struct fdcache *c, uint64_t before_ns);

/** fdcache_flushed - completes fdcache_ops.flush and ends its hold of the entry
 * @seq: dirty_seq when the sync began; dirty_seq - 1 if there was no sync: the entry stays dirty
 */
void fdcache_flushed(struct fdcache_entry *e, uint64_t seq);

/** fdcache_dirtied - notes that an unstable write begins; fdcache_wrote() must follow
 * @off, @bytes: its range
 * @dirtier: for fdcache_ops.cleaned
 *
 * Return: true: the entry was clean, and refers to @dirtier until fdcache_ops.cleaned; false: @dirtier is not used.
 */
bool fdcache_dirtied(struct fdcache_entry *e, uint64_t off, uint32_t bytes, void *dirtier);

/** fdcache_dirty - returns the number of dirty entries */
size_t fdcache_dirty(const struct fdcache *c);

/** fdcache_flush_one - flushes the dirty entry that has waited longest for a sync, if any */
void fdcache_flush_one(struct fdcache *c);

/** fdcache_wrote - notes that an unstable write ended, successfully or not */
void fdcache_wrote(struct fdcache_entry *e);

/** fdcache_sync_seq - call when a sync begins
 * @off, @bytes: its range; @bytes 0: the whole file
 *
 * Return: the argument for fdcache_cleaned() if the sync succeeds.
 */
uint64_t fdcache_sync_seq(const struct fdcache_entry *e, uint64_t off, uint32_t bytes);

/** fdcache_cleaned - marks the entry clean after a successful sync, unless a write ended since, or is in progress
 * @seq: of fdcache_sync_seq()
 */
void fdcache_cleaned(struct fdcache_entry *e, uint64_t seq);

/** fdcache_synced - marks entries clean after a sync of the whole file through another descriptor
 * @began_ns: when the sync began
 *
 * The sync wrote all data written before @began_ns to disk, through any descriptor.
 */
void fdcache_synced(struct fdcache *c, uint64_t dev, uint64_t ino, uint64_t began_ns);

/** fdcache_look - reads the clock that file times come from, rounded down to the granularity of @fs; any thread
 *
 * Return: CLOCK_REALTIME_COARSE; 0 on error: then fdcache_learn_rights() notes nothing.
 */
struct timespec fdcache_look(const struct fs_limits *fs);

/** fdcache_rights - returns what is known of the rights of @user
 * @user: nfs3_user(), not 0
 * @stx: current attributes of the file
 * @mask: of R_OK, W_OK, X_OK, FDCACHE_READ, FDCACHE_WRITE
 * @ret: those of @mask that the user has
 *
 * Return: false: not known for all of @mask, ask the kernel, on a worker; @ret is not set.
 */
bool fdcache_rights(const struct fdcache_entry *e, uint64_t user, const struct statx *stx,
		    unsigned mask, unsigned *ret);

/** fdcache_learn_rights - notes that of the rights @asked the user has @rights
 * @looked: result of fdcache_look(), called before @stx was read
 * @stx: attributes of the file when the kernel was asked
 *
 * Notes nothing if the file changed so recently that its next change could get the same ctime.
 */
void fdcache_learn_rights(struct fdcache_entry *e, uint64_t user, const struct timespec *looked,
			  const struct statx *stx, unsigned asked, unsigned rights);

/** fdcache_may - is @user known to be allowed to read the file, or with @write to write it? Arguments as above */
static inline bool fdcache_may(const struct fdcache_entry *e, uint64_t user, const struct statx *stx, bool write)
{
	unsigned got;

	return fdcache_rights(e, user, stx, write ? FDCACHE_WRITE : FDCACHE_READ, &got) && got;
}

/** fdcache_learn - notes that @user may read the file, or write it if @write; arguments as above */
static inline void fdcache_learn(struct fdcache_entry *e, uint64_t user, const struct timespec *looked,
				 const struct statx *stx, bool write)
{
	unsigned right = write ? FDCACHE_WRITE : FDCACHE_READ;

	fdcache_learn_rights(e, user, looked, stx, right, right);
}

/** fdcache_count - returns the number of entries in the table */
size_t fdcache_count(const struct fdcache *c);

#endif
