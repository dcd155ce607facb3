/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * place.h - moves the payload of one request between store and transport, in pieces
 */
#ifndef LEAT_SERVER_PLACE_H
#define LEAT_SERVER_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"
#include "cut.h"
#include "rpcrdma.h"
#include "store.h"

struct req;

#define PLACE_WINDOW 64u /* pieces of one request in flight at once */
#define PLACE_IOV_MAX 64 /* segments of the client's memory that a payload may lie in */

enum place_kind {
	PLACE_NONE,
	PLACE_READ,  /* store to client */
	PLACE_WRITE, /* client to store */
	PLACE_PULL,  /* client to memory: arguments that are needed as a whole */
	PLACE_SYNC,  /* no payload; the store syncs */
};

enum place_state {
	PLACE_NEED_BUF, /* waits for a buffer, unless the client's memory can be used directly */
	PLACE_PULLING,	/* from the client */
	PLACE_PULLED,	/* waits for place_open() */
	PLACE_DISK,	/* to or from the store */
	PLACE_TURN,	/* waits until all pieces before it were put */
	PLACE_PUTTING,	/* to the client */
	PLACE_DONE,
};

struct place_piece {
	struct list ready; /* place->ready: it can continue */
	struct list link;  /* place->pieces, or reactor->free_pieces */
	enum place_state state;
	bool busy;	   /* an operation is in flight; its completion resumes the piece */
	bool started;	   /* the operation of this state was begun */
	bool lent;	   /* the transport holds it and its buffer until the reply has been sent */
	uint32_t off, len; /* within the payload */
	unsigned stream;
	struct req *req;
	struct rpcrdma_buf *buf; /* its own; NULL: a part of place->buf, or the client's memory */
	struct rpcrdma_buf_waiter waiter;
	struct rpcrdma_piece xfer;
	struct store_io io;
	uint64_t turn_ns; /* when its disk operation got its turn; 0: it still waits for that */
	int iovcnt;
	struct iovec *iov; /* &here, or place->iov */
	struct iovec here;
};

/* Part of a request. Owned by the reactor. */
struct place {
	enum place_kind kind;
	struct cut cut;	 /* the part that has not begun */
	uint32_t total;
	bool overlap;	 /* pieces move independently; otherwise there is one piece for all */
	bool in_order;	 /* READ: pieces are put in file order */
	uint32_t turn;	 /* in_order: offset of the next piece to be put */
	uint32_t good;	 /* length of the prefix of the payload that was moved correctly */
	int err;	 /* why it ends there */
	bool short_read; /* the file ended before the payload did */
	bool no_room;	 /* the client has provided too little room */
	bool theirs;	 /* WRITE: the data is still in the client's memory */
	bool open;	 /* WRITE: the pulled data may go to the store */
	bool lost;	 /* WRITE: the connection failed before all data was pulled */
	bool sync_failed;
	bool piecewise;	  /* no memory for the whole: each piece has its own buffer */
	bool starved;	  /* a piece waits for a buffer: the next one begins when it has got it */
	bool forsaken;	  /* WRITE: the pulled data is discarded */
	unsigned out;	  /* pieces in flight */
	unsigned busy;	  /* of them, those with an operation in flight */
	unsigned putting; /* pieces that the transport holds; place_run() does not wait for them */
	size_t shift;	  /* offset of the payload's first byte in a buffer, for the store's alignment */
	struct rpcrdma_buf *buf; /* for the whole payload */
	struct list pieces;	 /* all that are not free, `first` included */
	struct list ready;	 /* those that can continue */
	struct place_piece first; /* the piece of byte 0; reused for others when that has ended */
	struct iovec iov[PLACE_IOV_MAX];
};

/** place_start - begins a payload
 * @off: of the first byte in the file
 * @total: bytes of payload
 */
void place_start(struct req *r, enum place_kind kind, uint64_t off, uint32_t total);

/** place_run - runs the pieces until they have to wait
 *
 * Return: true: no piece is in flight, and none is left to begin.
 */
bool place_run(struct req *r);

/** place_pulled - PLACE_WRITE, not open: has enough arrived to identify the request for the duplicate check?
 *
 * That is the whole payload, or the first piece if transfer and disk overlap.
 */
bool place_pulled(const struct req *r);

/** place_open - PLACE_WRITE: the file is open; place_run() writes the data to it */
void place_open(struct req *r);

/** place_forsake - PLACE_WRITE, not open: discards the payload, because the original request writes it
 *
 * The pieces go on until they hold nothing that other requests may wait for. A payload with one buffer for the whole
 * waits for nothing, and keeps it. May be called again.
 *
 * Return: true: the payload is discarded, and place_open() is no longer possible.
 */
bool place_forsake(struct req *r);

/** place_settle - ends the payload: no further piece begins
 *
 * Return: false: an operation is in flight; the request runs again when it has ended.
 */
bool place_settle(struct req *r);

/** place_data - PLACE_PULL: returns the bytes */
const void *place_data(const struct req *r);

/** place_head - PLACE_WRITE, not open: copies the first bytes of the data; they are in one piece
 *
 * Memory that the client has unmapped meanwhile reads as zeroes.
 */
void place_head(const struct req *r, void *to, uint32_t bytes);

/** place_payload - returns the payload of arguments that have one, or NULL */
struct rpcrdma_payload *place_payload(struct req *r);

/** place_fini - releases the buffers after the reply has been sent */
void place_fini(struct req *r);

struct reactor;

/** place_pool_fini - frees the recycled pieces of a reactor */
void place_pool_fini(struct reactor *re);

#endif
