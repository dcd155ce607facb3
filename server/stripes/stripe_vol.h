/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_vol.h - the stripes of a volume that this server keeps: objects in use, operations in progress, and terms
 *
 * Invariants:
 * - Nothing of an epoch begins after the record of a newer one is in memory. It gets there behind the durable record,
 *   and nothing of the object begins while the record is being written (the turn).
 * - An operation that has begun is in the list of its object until it has ended (ops): of the object's epoch or an older one.
 * - A pending cut is done before an operation of its epoch begins, and after those of older epochs have ended.
 * - While an object is in use, its file is neither closed nor replaced.
 * - Nothing of an older term begins after a newer one was obeyed, and nothing of that before what had begun has ended.
 * One lock protects objects and terms: whether an operation may begin, and that it has begun, are one step.
 */
#ifndef LEAT_SERVER_STRIPE_VOL_H
#define LEAT_SERVER_STRIPE_VOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/log.h"
#include "base/siphash.h"
#include "rpcrdma.h"
#include "store.h"
#include "stripe_dir.h"
#include "stripe_ops.h"
#include "stripe_record.h"

struct fsync_batch;
struct reactor;

#define STRIPE_FILES_IDLE 4096u /* descriptors of objects that stay open without a call, about */

/* How long things last; tests shorten them before they start a server. */
struct stripe_times {
	uint64_t close_ns; /* after this time of waiting for operations their connections are closed */
	/* FENCE and REMOVE wait for operations that have begun for as long. The manager gives up earlier, after stripe_timeo of
	 * the volume, which is not known here: 10 s by default. When it sends the command again, the record is there already,
	 * and only the wait is left. So this bounds how long a call stays that no one waits for, if a disk hangs */
	uint64_t drain_ns;
	uint64_t sweep_ns; /* expired tombstones of one of the 256 directories of objects are removed as often */
};
extern struct stripe_times stripe_times;

/* Under the lock of its volume. What the turn protects is touched by its holder only, on a worker too. */
struct stripe_object {
	struct hash_node node;	/* vol->objects */
	struct list idle;	/* vol->idle, without references */
	stripe_name name;
	unsigned refs;
	bool busy;		/* a call has the turn */
	struct list waiters;	/* struct req_waiter: for the turn, or for operations to end */
	struct stripe_ops ops;	/* in progress; the era counts changes of rec.epoch and rec.removed */
	bool written;		/* data was written that a sync is to report the loss of */
	uint64_t writes;	/* WRITEs that have begun */
	/* the turn's: */
	bool loaded;		/* the next ones are known */
	bool doubtful;		/* not loaded: a record may be on disk, or in memory only */
	bool exists;
	bool named;		/* its name is durable */
	struct stripe_record rec; /* durable */
	int fd;			/* of records, cuts and syncs before it is closed; -1: it does not exist, or is not loaded */
	struct store_file *files[]; /* by reactor: for its stores; NULL: not open yet */
};

/* Counted; freed by its last holder. */
struct stripe_vol {
	atomic_uint refs;
	char *name;
	struct stripe_dir dir;
	unsigned nreactors;
	struct fsync_batch *fsyncs;
	_Atomic uint64_t verf; /* changes when acknowledged data may be lost */
	atomic_bool fans_durable[STRIPE_DIR_FANOUT]; /* objects/XX: its own name is */

	pthread_mutex_t lock; /* over the rest */
	struct log_limit losses, damages;
	struct siphash_key hash_key; /* names are a client's choice */
	struct hash objects;
	struct list idle;     /* struct stripe_object: the one used longest ago first */
	size_t nidle, idle_max;
	struct stripe_ops manager; /* its commands and WRITEs in progress; the era is the newest term that was obeyed, durable */
	bool term_busy;	      /* a call makes a newer one durable */
	struct list term_waiters; /* struct req_waiter */
};

/** stripe_vol_open - opens the directory @path of server @server; the caller holds the result
 * Return: 0; -errno with @why
 */
int must_check stripe_vol_open(const char *name, const char *path, uint64_t volume, uint32_t server, unsigned nreactors,
			       struct stripe_vol **ret, char *why, size_t why_bytes);

/** stripe_vol_hold, stripe_vol_put - any thread; the last put closes all files and unlocks the directory, and may block.
 * put accepts NULL. */
struct stripe_vol *stripe_vol_hold(struct stripe_vol *v);
void stripe_vol_put(struct stripe_vol *v);

/* ---- objects; under the lock ---- */

/** stripe_object_get - finds an object, which need not exist, and holds it; Return: NULL: no memory */
struct stripe_object *stripe_object_get(struct stripe_vol *v, const stripe_name *name);

/** stripe_object_put - ends a hold of stripe_object_get() */
void stripe_object_put(struct stripe_vol *v, struct stripe_object *o);

/** stripe_object_pop_idle - takes an object out of the table that is idle, if there are too many; the caller frees it behind
 * stripe_disk_close() */
struct stripe_object *stripe_object_pop_idle(struct stripe_vol *v);

/** stripe_object_release - the call that had the turn has it no longer */
void stripe_object_release(struct stripe_object *o);

/** stripe_object_set - the durable record has changed */
void stripe_object_set(struct stripe_object *o, const struct stripe_record *rec);

/* ---- objects; not under the lock ---- */

/** stripe_object_try - holds an object and takes its turn, if nothing works on it; Return: NULL: it is in use */
struct stripe_object *stripe_object_try(struct stripe_vol *v, const stripe_name *name);

/** stripe_object_done - ends both */
void stripe_object_done(struct stripe_vol *v, struct stripe_object *o);

/** stripe_now - seconds since 1970 */
uint64_t stripe_now(void);

/* ---- the disk's part (stripe_disk.c): on a worker, by the holder of the turn; blocks ---- */

/** stripe_disk_load - finds out whether the object exists, and its record; a tombstone whose time is up is removed
 * Return: 0; -EBADMSG: its record is damaged; -errno.
 */
int must_check stripe_disk_load(struct stripe_vol *v, struct stripe_object *o);

/** stripe_disk_create - creates the file of an object that does not exist; its name is not durable yet */
int must_check stripe_disk_create(struct stripe_vol *v, struct stripe_object *o);

/** stripe_disk_open - opens the file for the stores of @reactor */
int must_check stripe_disk_open(struct stripe_vol *v, struct stripe_object *o, struct backing *backing, unsigned reactor);

/** stripe_disk_sync_name - makes the name of the file durable */
int must_check stripe_disk_sync_name(struct stripe_vol *v, struct stripe_object *o);

/** stripe_disk_record - makes @rec durable, and then has it in memory; the file is created if it does not exist
 *
 * After an error the object has to be loaded again.
 */
int must_check stripe_disk_record(struct stripe_vol *v, struct stripe_object *o, const struct stripe_record *rec);

/** stripe_disk_cut - does the pending cut of o->rec, durably; no operation is in progress */
int must_check stripe_disk_cut(struct stripe_vol *v, struct stripe_object *o);

/** stripe_disk_set_aside - moves the file to lost+found/, and leaves a tombstone until @until; no operation is in progress
 * @mtime: of the file: -ESTALE if it has another one
 */
int must_check stripe_disk_set_aside(struct stripe_vol *v, struct stripe_object *o, uint64_t mtime, uint64_t until);

/** stripe_disk_stat - describes the object */
int must_check stripe_disk_stat(const struct stripe_object *o, stripe_stat *ret);

/** stripe_disk_trim - closes idle objects, as long as there are too many, but only a few */
void stripe_disk_trim(struct stripe_vol *v);

/** stripe_disk_close - closes the files of an object, which no operation uses, behind a sync if data was written */
void stripe_disk_close(struct stripe_vol *v, struct stripe_object *o);

/** stripe_disk_list - finds the objects behind @after, in their order, with what STAT says of each
 * @after: NULL: from the beginning
 * @n: in: room of @ret; out: entries
 * @ret_eof: there are no more
 *
 * Files that are no objects are skipped. The epoch of an object whose record is damaged is 0. Tombstones whose time is up
 * are removed. The caller has no turn.
 */
int must_check stripe_disk_list(struct stripe_vol *v, const stripe_name *after, stripe_entry *ret, unsigned *n,
				bool *ret_eof);

/** stripe_disk_sweep - removes the tombstones of one directory whose time is up */
void stripe_disk_sweep(struct stripe_vol *v, unsigned fan);

#endif
