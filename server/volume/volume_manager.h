/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_manager.h - the manager of a volume: its keys, its map, and its directory
 *
 * An export whose configuration has a key has a manager (struct export). A reload opens a new one, which shares struct
 * volume_dir with the old one while both exist. The directory of a volume has
 *
 *	files		what clients see: the root of the export
 *	pending		links of files that are to be cut or removed on stripe servers (volume_pending.h)
 *	writers		markers of objects that clients may be writing (volume_leases.h)
 *	term		the newest term of a manager here, decimal
 */
#ifndef LEAT_SERVER_VOLUME_MANAGER_H
#define LEAT_SERVER_VOLUME_MANAGER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/util.h"
#include "stripe_handle.h"
#include "volume_map.h"

struct export_table;
struct fh_set;
struct leat_volume_key;
struct volume_leases;
struct volume_pending;
struct volume_reach;

#define VOLUME_LOCKS 64u

/* The directory of a volume. Counted; its last holder ends the threads of pending work and of questions, and unlocks it.
 *
 * Order of locks, the first one first:
 *   1. open_lock of pending work (a file is opened by its handle), or locks[] of an inode, never both
 *   2. the locks of pending work, of leases and of reach, and log_lock: one of them
 * Two inodes are locked by volume_file_lock_both(). Disk operations run under the locks of 1; links in writers/ are made and
 * removed under that of leases, too. Messages to stripe servers are sent without a lock. */
struct volume_dir {
	atomic_uint refs;
	int fd;		/* locked with flock(): one manager per directory */
	int pending_fd, writers_fd;
	uint64_t dev, ino; /* of files */
	uint64_t volume;
	const char *attribute; /* name of the extended attribute of layouts and defaults */
	_Atomic uint64_t term; /* of this manager; 0: not taken yet (volume_send.h) */
	atomic_uint turn;      /* counts new files: they begin at different servers */
	struct volume_leases *leases;
	struct volume_pending *pending;
	struct volume_reach *reach;
	_Atomic uint64_t ranges, length_queries; /* given by RESERVE; of the stripe servers, for the size of a file */
	_Atomic uint64_t moves_begun, moves_ended; /* of names; from a random number, so that a restart is seen */
	/* Recursive; by inode: over a look at size, mode, layout or links of a file, and a change of them */
	pthread_mutex_t locks[VOLUME_LOCKS];
	pthread_mutex_t log_lock; /* over the next */
	struct log_limit refusals, damages;
	struct log_limit sizes; /* the thread's of pending work */
};

/* Of one configuration. Read-only, except what volume_dir says; any thread. Counted: an export holds it, and pending work
 * while it runs. The export holds @dir, too: pending work does not. */
struct volume_manager {
	atomic_uint refs;
	struct volume_dir *dir;
	struct stripe_keys keys;
	struct volume_map map;
	uint32_t unit, width; /* of new files */
	bool start_free;      /* new files begin where bytes are free: */
	uint32_t stripe_timeo_ms;
	char *name;	      /* of the export, for messages */
	struct leat_volume_key *key; /* for commands */
	bool async;	      /* no reply waits for the disk */
};

/** volume_managers_open - opens the managers of the volumes in @now
 * @old: exports whose directories may be shared; NULL: none
 * @why: gets the reason of a failure
 *
 * Blocks. Return: 0; -errno: volume_managers_close() follows in any case.
 */
int must_check volume_managers_open(struct export_table *now, const struct export_table *old, char *why, size_t why_bytes);

/** volume_managers_use - the managers in @t are in force now: pending work is done by them
 * @fhs: handles of the exports in @t; it stays until volume_managers_close()
 */
void volume_managers_use(const struct export_table *t, struct fh_set *fhs);

/** volume_manager_put - ends a hold of a manager */
void volume_manager_put(struct volume_manager *m);

/* Since leatd started, but those that exist now */
#define VOLUME_COUNTERS(ADD) \
	ADD(leases) ADD(leases_given) ADD(leases_lapsed) ADD(leases_refused) ADD(ranges) ADD(length_queries)

#define VOLUME_COUNTER(name) uint64_t name;
struct volume_counts {
	VOLUME_COUNTERS(VOLUME_COUNTER)
};
#undef VOLUME_COUNTER

/** volume_managers_count - adds up the counters of the managers in @t; any thread */
void volume_managers_count(const struct export_table *t, struct volume_counts *ret);

/** volume_managers_close - closes them; tables without managers are fine */
void volume_managers_close(struct export_table *t);

/** volume_manager_full - the servers that new files may use; Return: how many; @ret: their indices in the map */
unsigned volume_manager_full(const struct volume_manager *m, unsigned ret[VOLUME_SERVERS_MAX]);

#endif
