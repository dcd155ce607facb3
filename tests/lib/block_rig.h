/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_rig.h - a server of block volumes in this process, and clients that speak its protocol themselves
 *
 * Include it behind <cmocka.h>. One server at a time. A test runs on one thread, which runs the clients' engine while it
 * waits.
 */
#ifndef BLOCK_RIG_H
#define BLOCK_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "block.h"
#include "rpcrdma.h"
#include "tmp_dir.h"

#define BLOCK_RIG_BYTES (4u << 20) /* of each volume */

struct server;

/* Where the server listens: "tcp://127.0.0.1:0"; NULL: over the RDMA device whose address LEAT_FLOW_RDMA is, else on the
 * local fabric. Over a network all volumes admit all clients. */
extern const char *block_rig_url;

/* Where it listens, too; or NULL. block_rig_use() says which of both clients dial. */
extern const char *block_rig_second_url;
void block_rig_use(unsigned listener);

/** block_rig_is_local - does the next server listen on the local fabric? */
bool block_rig_is_local(void);

/** block_rig_addr - returns where the server listens */
const struct rpcrdma_addr *block_rig_addr(void);

/* Start servers without a state directory */
extern bool block_rig_stateless;
/* Time after which clients send a call again by a new connection; 0: the default */
extern uint32_t block_rig_timeout_ms;

/* A file that gets the traffic of the local fabric, as pcap; or NULL */
extern const char *block_rig_capture;

/* They export the directory, too, with these options: "/files" */
extern const char *block_rig_export;

/* Limit of their buffer memory; 0: the default */
extern size_t block_rig_pinned;

/* The running server, its directory and its state directory */
extern struct block_rig {
	struct tmp_dir dir;
	struct server *srv;
	struct rpcrdma_domain *domain;
	struct rpcrdma_engine *engine;
} block_rig;

struct block_client {
	struct rpcrdma_clnt *clnt;
	block_lane lane;
	char handle[BLOCK_HANDLE_BYTES];
	uint64_t verf;	  /* of the last change */
	char other[BLOCK_NAME_MAX + 1]; /* that has the volume, after BLOCK_ERR_BUSY */
	block_info info;  /* after ATTACH; without strings */
};

struct block_rig_call {
	struct rpcrdma_call call;
	struct block_client *client;
	union {
		BLOCKLISTargs list;
		BLOCKINFOargs info;
		BLOCKATTACHargs attach;
		BLOCKATargs at;
		BLOCKREADargs read;
		BLOCKWRITEargs write;
		BLOCKRANGEargs range;
		BLOCKZEROargs zero;
	} args;
	union {
		block_status status;
		BLOCKLISTres list;
		BLOCKINFOres info;
		BLOCKATTACHres attach;
		BLOCKDETACHres detach;
		BLOCKREADres read;
		BLOCKCHANGEres change;
		BLOCKEXTENTSres extents;
	} res;
	struct iovec iov;
	bool done;
	int err;
};

/** block_rig_start - creates the files "a" and "b" of BLOCK_RIG_BYTES and starts a server
 * @specs: each "NAME=FILE,option..." with a file of the directory; ends with NULL
 *
 * Return: 0, or what server_start() returned; block_rig_stop() follows in any case
 */
int block_rig_start(const char *const specs[]);

/** block_rig_make_dir - creates the directory with its files, for a block_rig_start() that follows */
void block_rig_make_dir(void);

/** block_rig_start_child - as block_rig_start(), with the server in a child of this process
 *
 * Return: its process; block_rig_restart() starts the next one here, after the child was killed.
 */
pid_t block_rig_start_child(const char *const specs[]);

/** block_rig_dial - in a child that was made before the server started: gets ready to connect to it */
void block_rig_dial(void);

/** block_rig_reload - gives the server other volumes; Return: as server_reload() */
int block_rig_reload(const char *const specs[], char *why, size_t why_bytes);

/** block_rig_restart - ends the server and starts it again, with the same files and state directory
 * @specs: NULL: the same volumes
 */
void block_rig_restart(const char *const specs[]);

/** block_rig_try_restart - as block_rig_restart(NULL), but the server may not start; Return: as server_start() */
int block_rig_try_restart(void);

/** block_rig_retry - starts the server that block_rig_start() could not start */
void block_rig_retry(void);

void block_rig_stop(void);

/** block_rig_open - opens a file of the directory; the caller closes it */
int block_rig_open(const char *name);

/** block_connect - connects a client, with a lane of incarnation 1; block_close() closes it */
void block_connect(struct block_client *c, uint64_t instance, uint32_t slot);
void block_close(struct block_client *c);

/** block_connect_lane - connects a client that has no connection, with the lane that it has */
void block_connect_lane(struct block_client *c);

/** block_reconnect - a new connection with the next incarnation; @old: gets the older one, or NULL: it is closed */
void block_reconnect(struct block_client *c, struct block_client *old);

/** block_begin - starts a call; the caller has filled in @call->args, but not its handle and lane
 * @sink: of READ, of @bytes
 */
void block_begin(struct block_client *c, struct block_rig_call *call, uint32_t proc, void *sink, uint32_t bytes);

/** block_end - waits for the reply; Return: status */
block_status block_end(struct block_rig_call *call);

/** block_run_until - runs the clients' engine until @done is true */
void block_run_until(bool (*done)(void *arg), void *arg);

/* Whole calls; Return: status */
block_status block_attach(struct block_client *c, const char *volume, const char *holder, unsigned flags,
			  const char *victim);
block_status block_detach(struct block_client *c);
block_status block_read(struct block_client *c, uint64_t off, void *to, uint32_t bytes);
block_status block_write(struct block_client *c, uint64_t off, const void *from, uint32_t bytes, bool fua);
block_status block_flush(struct block_client *c);

/** block_write_begin - starts a WRITE; block_end() ends it */
void block_write_begin_at(struct block_client *c, struct block_rig_call *call, uint64_t off, const void *from,
			  uint32_t bytes, bool fua);

#endif
