/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * files.h - the open files of one reactor: two caches, their limits, and what waits for room in them
 *
 * Threads: the reactor's, unless a function says otherwise. Creation and destruction while that thread does not run.
 * Units:   times in ns are CLOCK_MONOTONIC.
 */
#ifndef LEAT_SERVER_FILES_H
#define LEAT_SERVER_FILES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/util.h"
#include "client.h"
#include "closing.h"
#include "fdcache.h"
#include "loop.h"

/* Waits in files->waiting until files_may_open() allows one more file. Embedded in what waits. */
struct files_waiter {
	struct list link;
	uint64_t fs; /* as backing.dev */
	void (*resume)(struct files_waiter *w); /* it is not linked any more */
};

struct files {
	struct loop *loop;
	void (*flush)(void *ctx, struct fdcache_entry *e);
	void *ctx;
	unsigned reactor;	 /* index of its client_admission in each client */
	size_t max;		 /* limit of both caches together; held, dirty and closing files may exceed it */
	struct fdcache *io;	 /* files open for reading or writing */
	struct fdcache *paths;	 /* files and directories open with O_PATH; never dirty */
	struct closing *closer; /* descriptors to be closed */
	struct list waiting;	 /* files_waiter.link */
	unsigned touching;	 /* jobs that set the access time of a file: nfs3_atime.c */
	struct rpcrdma_timer expire;
	struct rpcrdma_timer expire_writable; /* set while files are open for writing */
	atomic_bool has_writable; /* read by other reactors: if false, they send no message about syncs */
};

/** files_create - initializes @f with empty caches
 * @loop: of the reactor, with its engine and workers; outlives @f
 * @reactor: its index
 * @max: limit of open files
 * @flush: fdcache_ops.flush, which gets @ctx
 *
 * Return: 0, -ENOMEM, -EIO. After an error the caller calls files_destroy() as well.
 */
int must_check files_create(struct files *f, struct loop *loop, unsigned reactor, size_t max,
			    void (*flush)(void *ctx, struct fdcache_entry *e), void *ctx);

/** files_start - starts the timer that closes files that were not used for a while; on the reactor's thread */
void files_start(struct files *f);

/** files_stop - stops the timers; on the reactor's thread, before it ends */
void files_stop(struct files *f);

/** files_destroy - closes all files; nothing may hold or wait for one. A zeroed @f is fine. */
void files_destroy(struct files *f);

/** files_keep - fdcache_insert() into f->io; starts the timer that closes writable files */
struct fdcache_entry *files_keep(struct files *f, const struct fh *fh, const struct store_file *file);

/** files_may_open - may more files of a file system be opened for a cache?
 * @fs: its st_dev, as backing.dev
 *
 * A file system may have max / 2 descriptors that wait to be closed. All file systems together may have max, but this
 * limit does not apply to a file system with CLOSING_BATCH of them or fewer.
 *
 * Return: false: the file system is slow to close files, or hangs.
 */
bool files_may_open(const struct files *f, uint64_t fs);

/** files_wait - queues @w until files_may_open() allows one more file of w->fs; has waiting descriptors closed now */
void files_wait(struct files *f, struct files_waiter *w);

/** files_leave - ends the wait of @w; Return: false: it does not wait */
bool files_leave(struct files_waiter *w);

/** files_resume - resumes what waits to open files
 * @closed: number of descriptors that were closed
 *
 * Up to @closed waiters resume for each file system that files_may_open() allows; all of them if it has no descriptors
 * left to close.
 */
void files_resume(struct files *f, size_t closed);

/** files_may_dirty - may @c have one more dirty file? Its descriptor waits for a sync.
 *
 * All clients together may have max / 2 dirty files. One client may have no more of them than are left free.
 */
bool files_may_dirty(const struct files *f, const struct client *c);

/** files_dirtied - fdcache_dirtied() for a call of @c; the file counts against @c until it is clean
 * @off, @bytes: range of the write
 *
 * The file does not count against another client that writes to it while it is dirty. When many files are dirty, each
 * call that makes one more dirty flushes one of them first, so that files that no client commits, as in an async
 * export, do not use up the shares.
 */
void files_dirtied(struct files *f, struct fdcache_entry *e, struct client *c, uint64_t off, uint32_t bytes);

/** files_tell_synced - posts fdcache_synced() to another reactor, if it has files open for writing; any thread
 * @began_ns: when the sync of the whole file began
 *
 * Without memory for the message, that reactor syncs the file again before it closes it.
 */
void files_tell_synced(struct files *f, uint64_t dev, uint64_t ino, uint64_t began_ns);

/** files_tell_removed - posts fdcache_drop_file() to a reactor; any thread
 *
 * Without memory for the message, that reactor closes the file when it has not been used for a while.
 */
void files_tell_removed(struct files *f, uint64_t dev, uint64_t ino);

#endif
