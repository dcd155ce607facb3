/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * place.h - moving the payload of one request between store and transport, in pieces
 */
#ifndef LEAT_SERVER_PLACE_H
#define LEAT_SERVER_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "rpcrdma.h"
#include "store.h"

struct req;

#define PLACE_PIECES 4	 /* of one request under way at once */
#define PLACE_IOV_MAX 64 /* parts of a caller's memory that one piece may lie in */

enum place_kind {
	PLACE_NONE,
	PLACE_READ,  /* store, then caller */
	PLACE_WRITE, /* caller, then store */
	PLACE_PULL,  /* caller, into memory: arguments that are needed whole */
	PLACE_SYNC,  /* nothing moves; the store syncs */
};

enum place_state {
	PLACE_IDLE,	/* no piece */
	PLACE_NEED_BUF, /* waits for memory, unless the caller's own can be used */
	PLACE_PULLING,	/* from the caller */
	PLACE_PULLED,	/* waits for place_open() */
	PLACE_DISK,	/* to or from the store */
	PLACE_PUTTING,	/* to the caller */
	PLACE_DONE,
};

struct place_piece {
	enum place_state state;
	bool busy;	   /* its operation is out; the completion goes on with it */
	bool started;	   /* the operation of this state was begun */
	uint32_t off, len; /* within the payload */
	struct req *req;
	struct rpcrdma_buf *buf;
	struct rpcrdma_buf_waiter waiter;
	struct rpcrdma_piece xfer;
	struct store_io io;
	int iovcnt;
	struct iovec iov[PLACE_IOV_MAX];
};

/* Part of a request. Owned by the reactor. */
struct place {
	enum place_kind kind;
	uint32_t total, next_off;
	uint32_t grain;	 /* bytes of a piece: today the whole */
	uint32_t good;	 /* the prefix of the payload that is as it should be */
	int err;	 /* why it ends there */
	bool short_read; /* the file ended before the payload did */
	bool no_room;	 /* the caller left too little room */
	bool open;	 /* WRITE: what was pulled may go to the store */
	bool sync_failed;
	unsigned out; /* pieces under way */
	struct place_piece pieces[PLACE_PIECES];
};

/** place_start - begin
 * @total: bytes of payload
 */
void place_start(struct req *r, enum place_kind kind, uint32_t total);

/** place_run - go on as far as it goes
 *
 * Return: true: nothing is under way any more and nothing is left to begin.
 */
bool place_run(struct req *r);

/** place_pulled - PLACE_WRITE, not open: is all there that can be before place_open()? */
bool place_pulled(const struct req *r);

/** place_open - PLACE_WRITE: the file is there; place_run() takes the data to it */
void place_open(struct req *r);

/** place_data - PLACE_PULL: the bytes; PLACE_WRITE, not open: the first of them */
const void *place_data(const struct req *r);

/** place_payload - the payload of arguments that have one, or NULL */
struct rpcrdma_payload *place_payload(struct req *r);

/** place_fini - the reply is out: give the buffers back */
void place_fini(struct req *r);

#endif
