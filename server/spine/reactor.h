/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reactor.h - a thread with an engine, and what its connections share
 */
#ifndef LEAT_SERVER_REACTOR_H
#define LEAT_SERVER_REACTOR_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "exports.h"
#include "fair.h"
#include "fdcache.h"
#include "groups.h"
#include "rpcrdma.h"
#include "store.h"
#include "latency.h"
#include "worker.h"

struct client;
struct closing;
struct server;

/* One writer, the reactor; anyone may read. */
struct reactor_counters {
	_Atomic uint64_t reqs;		 /* calls taken */
	_Atomic uint64_t admit_waits;	 /* calls that waited for admission */
	_Atomic uint64_t admit_wait_max; /* most that waited at once */
	_Atomic uint64_t run_waits;	 /* calls that visited a worker */
	_Atomic uint64_t quick;		 /* calls that need not, although their like does */
	_Atomic uint64_t group_waits;	 /* calls that waited for their user's groups */
	_Atomic uint64_t file_hits,
		file_misses; /* READ and WRITE: descriptor and permission known? */
	_Atomic uint64_t store_now,
		store_worker, store_aio; /* disk operations done on the spot, by a worker, directly */
	_Atomic uint64_t aio_submits; /* system calls for those */
	_Atomic uint64_t aio_again;   /* of those, such as a worker had to go on with */
	_Atomic uint64_t
		submit_blocked;	      /* store_submit() calls that took longer than they should */
	_Atomic uint64_t sync_failed; /* the write verifier changed */
	_Atomic uint64_t refused;     /* calls by peers whom the export does not admit */
	_Atomic uint64_t sched_waits;	 /* disk operations that waited for their turn */
	_Atomic uint64_t sched_wait_max; /* most that waited at once, of all reactors */
	_Atomic uint64_t sched_late;	 /* that waited too long, and went before their turn */
	_Atomic uint64_t sim_requests, sim_seeks; /* of modelled disks; a RAID's members seek apart */
};

#define reactor_count_n(r, field, n)                                                               \
	atomic_fetch_add_explicit(&(r)->counters.field, n, memory_order_relaxed)
#define reactor_count(r, field) reactor_count_n(r, field, 1)

/* Owned by its own thread from reactor_create() to the end of that thread, counters excepted. */
struct reactor {
	struct server *srv;
	unsigned idx;
	struct rpcrdma_engine *engine;
	struct worker_pool *workers;
	size_t files_max;	     /* that both caches keep open when nothing waits for a disk */
	struct fdcache *files;	     /* open for reading or writing */
	struct fdcache *paths;	     /* O_PATH: to be looked at; nothing in it is ever dirty */
	struct closing *closer;	     /* descriptors that are used no longer */
	struct groups *groups; /* of users; NULL: they have those that they say */
	struct exports_use *exports; /* of calls that come */
	struct list free_reqs;	 /* recycled requests */
	struct list free_pieces; /* and pieces of their payloads */
	struct list openers;	 /* requests that wait for reactor_may_open() */
	struct fair admission;	 /* requests waiting for a slot */
	unsigned nadmission;
	unsigned live;		 /* slots held: requests that the server itself works on */
	unsigned taken;		 /* requests not free, admitted or not */
	unsigned taken_most;	 /* ... most at once since reactor_trim() */
	unsigned nreqs;		 /* requests there are, free or not */
	unsigned partial;	 /* of them, those whose call is not all here yet */
	unsigned touching;	 /* files whose access time is being set: nfs3_atime.c */
	unsigned flushing;	 /* jobs of workers for no call: syncs, batches of files to close, access times, ended exports */
	_Atomic unsigned nconns; /* counted up by the listener's thread when it promises one */
	bool admitting;		 /* inside admit_next() */
	bool draining;		 /* takes no further calls */
	bool closing;		 /* its connections were told to close */
	bool stop;
	struct rpcrdma_timer expire;
	struct rpcrdma_timer expire_writable; /* set while files are open for writing */
	atomic_bool has_writable; /* others look, to know whether it is worth a message */
	struct rpcrdma_timer drain;
	struct rpcrdma_msg stop_msg;
	uint64_t drain_until_ns;
	struct reactor_counters counters;
	unsigned where_turn; /* requests until the next that is looked at */
	uint32_t where_seed; /* of chance */
	struct where_stats where;
	pthread_t thread;
	bool running;
	sem_t ended; /* posted by the thread when it is through */
};

/** reactor_create - engine, caches and stores; no thread yet
 * @manage_gids: with a cache of users' groups
 */
int must_check reactor_create(struct server *srv, unsigned idx, enum rpcrdma_poll poll,
			      size_t files_max, bool manage_gids, struct reactor **ret);

/** reactor_run - start its thread */
int must_check reactor_run(struct reactor *r);

/** reactor_stop - ask it to drain and end; any thread
 * @until_ns: CLOCK_MONOTONIC, when to close connections whatever still runs
 */
void reactor_stop(struct reactor *r, uint64_t until_ns);

/** reactor_join - wait for its thread to end
 *
 * Return: 0, -ETIMEDOUT: something that cannot be cancelled still runs.
 */
int must_check reactor_join(struct reactor *r, uint64_t until_ns);

/** reactor_trim - frees recycled requests that were not needed since it was called last */
void reactor_trim(struct reactor *r);

/** reactor_destroy - its thread has ended, or never ran; no worker runs. NULL is fine. */
void reactor_destroy(struct reactor *r);

/** reactor_keep_file - fdcache_insert() into its open files; what can be written by is closed in time */
struct fdcache_entry *reactor_keep_file(struct reactor *r, const struct fh *fh,
					const struct store_file *file, uint64_t dev, uint64_t ino);

/** reactor_may_open - may more files of an export be opened to be kept?
 *
 * False where its file system is slow to close others, or hangs. Each has half as many descriptors for those as there
 * may be files in use, and those that have many share as many as that.
 */
bool reactor_may_open(const struct reactor *r, const struct export *exp);

/** reactor_run_openers - resumes requests that wait to open files
 * @closed: descriptors that were closed
 *
 * Of each file system that has room, up to @closed requests resume; all of them if it has no descriptors left to close.
 */
void reactor_run_openers(struct reactor *r, size_t closed);

/** reactor_may_dirty - may @c have one more file whose descriptor waits for a sync?
 *
 * All clients together have half of the descriptors for those, and one of them no more than is left free.
 */
bool reactor_may_dirty(const struct reactor *r, const struct client *c);

/** reactor_dirtied - fdcache_dirtied() by a call of @c's, which it counts against until the file is clean
 *
 * Another client that writes to the file while it is dirty is not charged. When many files are dirty, each call first
 * has one of them synced, so that files that no client commits, as in an async export, do not use up the shares.
 */
void reactor_dirtied(struct reactor *r, struct fdcache_entry *e, struct client *c, uint64_t off, uint32_t bytes);

/** reactor_file_synced - tell the other reactors that all of a file was synced, from @began_ns on */
void reactor_file_synced(struct reactor *r, uint64_t dev, uint64_t ino, uint64_t began_ns);

/** reactor_drop_file - tell all reactors of a server that a file is gone; any thread */
void reactor_drop_file(struct server *srv, uint64_t dev, uint64_t ino);

#endif
