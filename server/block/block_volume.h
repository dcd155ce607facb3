/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_volume.h - a block volume: its file or device, its attachments, and its write verifier
 *
 * Invariants: A volume outlives changes of its options. Nothing of an attachment begins after block_fence(), and an
 * operation that began before is counted until it has ended.
 */
#ifndef LEAT_SERVER_BLOCK_VOLUME_H
#define LEAT_SERVER_BLOCK_VOLUME_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/log.h"
#include "base/util.h"
#include "block.h"
#include "block_seen.h"
#include "lane.h"
#include "rpcrdma.h"
#include "worker.h"

struct block_conf;
struct block_conn;
struct block_state;
struct fsync_batch;
struct reactor;
struct served_use;

#define BLOCK_HOLDERS_MAX 256u
#define BLOCK_DETACHED_MAX 32u

/* How long things last; tests shorten them before they start a server. */
struct block_times {
	uint64_t silence_ns; /* a holder without a connection keeps its volume for as long */
	uint64_t close_ns;   /* ... and after this time the connections of the operations of before are closed */
	uint64_t drain_ns;   /* ATTACH and DETACH wait for as long, for operations of before and for each other */
};
extern struct block_times block_times;

struct block_attachment {
	struct list link; /* volume->holders, by name, or volume->ending */
	struct block_attachment *next; /* in volume->by_number */
	char name[BLOCK_NAME_MAX + 1], app[BLOCK_NAME_MAX + 1], peer[BLOCK_TEXT_MAX + 1];
	uint64_t number; /* of the holder's name, from its first ATTACH on */
	uint64_t generation; /* of this ATTACH: grows with each of the volume */
	uint64_t instance;   /* of the client's process */
	struct rpcrdma_client_id client; /* in whose share it is */
	uint64_t since;	     /* seconds since 1970 */
	bool rdonly;
	bool fenced;
	unsigned conns;	    /* lanes whose connection is up */
	uint64_t silent_ns; /* when the last connection ended, or the server started */
	unsigned live;	    /* operations that have begun and not ended */
	struct list waiters; /* calls that wait for changes of older connections */
	struct lane lanes[BLOCK_LANES_MAX];
};

/* Counted; freed by its last holder. */
struct block_volume {
	atomic_uint refs;
	atomic_uint sets; /* configurations that have it; block_volume_leave() */
	char *name;
	uint64_t id; /* hash of name, path and file: part of each handle */
	int lock_fd; /* keeps others from using the file or device; syncs use it */
	uint64_t dev, ino; /* of struct store_file */
	_Atomic uint64_t bytes; /* whole size when it was looked at last */
	_Atomic uint64_t looked_ns; /* when a WRITE looked at it last, CLOCK_MONOTONIC */
	uint32_t sector;   /* bytes: of the device; 512 for a file */
	struct fsync_batch *fsyncs;
	_Atomic uint64_t verf; /* changes when acknowledged data may be lost */
	struct block_state *state; /* NULL: attachments end with the server */

	pthread_mutex_t lock; /* over the rest */
	struct log_limit losses; /* failed syncs: a client can ask for as many as it likes */
	struct log_limit turns;  /* ATTACHs and DETACHs, too; by the call that has the turn */
	struct list holders, ending; /* struct block_attachment */
	struct block_attachment *by_number[BLOCK_HOLDERS_MAX]; /* heads: holders by number modulo it */
	unsigned nholders;
	uint64_t generations, numbers; /* given so far; a volume without saved holders begins with its time */
	bool attaching;		 /* an ATTACH or DETACH is in progress: the next one waits */
	bool leaving;		 /* a reload is about to remove it: there is no ATTACH any more */
	struct block_seen seen;	 /* lanes of ATTACH and DETACH */
	struct {
		uint64_t number, generation;
		char name[BLOCK_NAME_MAX + 1];
	} detached[BLOCK_DETACHED_MAX]; /* attachments that DETACH has ended lately: the call may be sent again */
	unsigned detached_next;
	struct list waiters;	 /* ATTACHs and DETACHs */

	/* Of the call whose turn it is, not locked: a job in its place saves the holders (block_attach.c). It holds the
	 * volumes in force for the call, so that the state stays open. */
	struct worker_job save;
	struct served_use *saver;
};

/** block_volume_open - opens the file or device of @c, and finds what is known of it
 * @state_dir: NULL: keeps nothing
 * @why: gets the reason of a failure
 *
 * Return: 0; -EBUSY: in use by another process, or a mount; -errno. block_volume_put() releases it.
 */
int must_check block_volume_open(const struct block_conf *c, const char *state_dir, struct block_volume **ret, char *why,
				 size_t why_bytes);

/** block_volume_hold, block_volume_put - any thread; the last put closes it, and may block. put accepts NULL. */
struct block_volume *block_volume_hold(struct block_volume *v);
void block_volume_put(struct block_volume *v);

/** block_volume_enter, block_volume_leave - a configuration has the volume, and has it no longer. After the last of them
 * the file or device is free for others, although connections may still refer to the structure. May block. */
void block_volume_enter(struct block_volume *v);
void block_volume_leave(struct block_volume *v);

/** block_volume_id - computes the id of the volume that @c names; 0: its file cannot be accessed */
uint64_t block_volume_id(const struct block_conf *c);

/** block_volume_look - looks at the size again; may block. Return: 0 or -errno */
int block_volume_look(struct block_volume *v);

/** block_volume_look_again - the same before a WRITE, 10 ms after the last of these looks or later; any thread */
void block_volume_look_again(struct block_volume *v);

/** block_volume_lost - data that was acknowledged may be lost: changes the verifier; any thread */
void block_volume_lost(struct block_volume *v);

#endif
