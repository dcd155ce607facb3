/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fake_volume.h - a server of one block volume in memory, in a thread of this process, that also replies what a test wants
 *
 * It serves block.x as doc/protocol.md says, without promises of durability. Beside it there are NFS and nothing else
 * that a client needs to connect. Members that the server writes are read under the lock, or when no call is in flight.
 */
#ifndef TESTS_FAKE_VOLUME_H
#define TESTS_FAKE_VOLUME_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "block.h"
#include "rpcrdma.h"
#include "tmp_dir.h"

#define FAKE_VOLUME_ROOM (4u << 20) /* bytes of memory: the volume may grow up to that */
#define FAKE_VOLUME_PROCS 11u
#define FAKE_VOLUME_HELD 64u
#define FAKE_VOLUME_LANES 4096u /* each process of a client, and each connection, has its own */

struct fake_volume {
	struct tmp_dir dir;
	char local_url[200], tcp_url[200]; /* of the volume: .../block/vol0 */
	char local_server[200];            /* of the server alone */
	struct rpcrdma_addr tcp;

	pthread_mutex_t lock;
	/* set by the test */
	uint64_t size;
	uint32_t block, flags;             /* flags: of block_info */
	uint64_t verf;
	/* Runs after each call has been served, under the lock; may change the results. NULL: none */
	void (*odd)(struct fake_volume *r, uint32_t proc, const void *args, void *res);
	unsigned later;                    /* as many calls are put off with BLOCK_ERR_LATER */
	bool hold;                         /* calls wait until fake_volume_release() */
	unsigned volumes;                  /* of LIST: vol0 to vol@volumes */

	/* set by the server */
	uint8_t *disk;
	unsigned calls[FAKE_VOLUME_PROCS];   /* that came, by procedure */
	unsigned fua;                      /* WRITEs with FUA */
	unsigned old_lanes;
	char holder[BLOCK_NAME_MAX + 1];   /* "": none */
	char victim[BLOCK_NAME_MAX + 1], app[BLOCK_NAME_MAX + 1];
	char after[BLOCK_NAME_MAX + 1];    /* of the last INFO */
	uint32_t attach_flags;
	uint32_t generation;
	struct block_lane lanes[FAKE_VOLUME_LANES]; /* with the newest incarnation of each */
	unsigned nlanes;
	struct rpcrdma_task *held[FAKE_VOLUME_HELD];
	unsigned nheld;
	int result;                        /* with which held calls end */

	/* private */
	struct rpcrdma_domain *domain;
	struct rpcrdma_engine *engine;
	struct rpcrdma_service *service;
	struct rpcrdma_msg msg;
	pthread_t thread;
	bool stop;
};

/** fake_volume_open - starts a server with a volume of 1 MiB, vol0, of random bytes; whatever fails is asserted */
void fake_volume_open(struct fake_volume *r);
void fake_volume_close(struct fake_volume *r);

/** fake_volume_stop, fake_volume_start - the server alone, at the same addresses: connections break */
void fake_volume_stop(struct fake_volume *r);
void fake_volume_start(struct fake_volume *r);

/** fake_volume_holds - are at least @n calls held? */
bool fake_volume_holds(struct fake_volume *r, unsigned n);

/** fake_volume_release - lets held calls end: they were served when they came */
void fake_volume_release(struct fake_volume *r);

/** fake_volume_calls - how many calls of @proc have come; fake_volume_incarnation - the newest of connection @slot, or 0 */
unsigned fake_volume_calls(struct fake_volume *r, uint32_t proc);
uint32_t fake_volume_incarnation(struct fake_volume *r, uint32_t slot);

#endif
