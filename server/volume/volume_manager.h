/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_manager.h - the manager of a volume: its keys, its map, and its directory
 *
 * An export whose configuration has a key has a manager (struct export). A reload opens a new one, which shares struct
 * volume_dir with the old one while both exist.
 */
#ifndef LEAT_SERVER_VOLUME_MANAGER_H
#define LEAT_SERVER_VOLUME_MANAGER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/util.h"
#include "stripe_handle.h"
#include "volume_map.h"

struct export_table;

#define VOLUME_LOCKS 16u

/* The directory that has the names of a volume. Counted; its last holder unlocks it. */
struct volume_dir {
	atomic_uint refs;
	int fd; /* locked with flock(): one manager per directory */
	uint64_t dev, ino;
	uint64_t volume;
	const char *attribute; /* name of the extended attribute of layouts and defaults */
	atomic_uint turn;      /* counts new files: they begin at different servers */
	pthread_mutex_t locks[VOLUME_LOCKS]; /* by inode: over a look at the size or mode of a file and its change */
	pthread_mutex_t log_lock; /* over the next */
	struct log_limit refusals, damages;
};

/* Of one configuration. Read-only, except what volume_dir says; any thread. */
struct volume_manager {
	struct volume_dir *dir;
	struct stripe_keys keys;
	struct volume_map map;
	uint32_t unit, width; /* of new files */
	char *name;	      /* of the export, for messages */
};

/** volume_managers_open - opens the managers of the volumes in @now
 * @old: exports whose directories may be shared; NULL: none
 * @why: gets the reason of a failure
 *
 * Blocks. Return: 0; -errno: volume_managers_close() follows in any case.
 */
int must_check volume_managers_open(struct export_table *now, const struct export_table *old, char *why, size_t why_bytes);

/** volume_managers_close - closes them; tables without managers are fine */
void volume_managers_close(struct export_table *t);

/** volume_manager_full - the servers that new files may use; Return: how many; @ret: their indices in the map */
unsigned volume_manager_full(const struct volume_manager *m, unsigned ret[VOLUME_SERVERS_MAX]);

#endif
