/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_seen.h - the lanes by which ATTACHes and DETACHes of a volume came
 */
#ifndef LEAT_SERVER_BLOCK_SEEN_H
#define LEAT_SERVER_BLOCK_SEEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "block.h"
#include "rpcrdma_svc.h"

#define BLOCK_SEEN_MAX 256u
#define BLOCK_FORGOTTEN_MAX 32u

/* A table of a volume, under its lock. Zeroes are an empty one. */
struct block_seen {
	struct block_seen_lane {
		block_lane lane; /* with its newest incarnation; 0: free */
		struct rpcrdma_client_id client; /* of its connection */
		uint64_t serial; /* of its connection */
		uint64_t turn;	 /* grows with each call */
	} lanes[BLOCK_SEEN_MAX];
	unsigned used;
	uint64_t turns;
	/* For each client the newest connection of the lanes that were forgotten. Serial 0: free */
	struct block_forgotten {
		struct rpcrdma_client_id client;
		uint64_t serial;
	} forgotten[BLOCK_FORGOTTEN_MAX];
	uint64_t forgotten_serial; /* the same of all clients for which there was no room */
};

/** block_seen_note - has a call come by a newer connection of this lane? Else it is noted as the newest.
 * @client, @serial: of the connection; a client's later connections have greater serials
 */
bool block_seen_note(struct block_seen *s, const block_lane *lane, const struct rpcrdma_client_id *client,
		     uint64_t serial);

/** block_seen_lacks - may a call have come by a newer connection of this lane, which has been forgotten since? */
bool must_check block_seen_lacks(const struct block_seen *s, const block_lane *lane,
				 const struct rpcrdma_client_id *client, uint64_t serial);

#endif
