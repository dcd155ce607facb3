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

#include "base/list.h"
#include "cut.h"
#include "rpcrdma.h"
#include "store.h"

struct req;

#define PLACE_WINDOW 64u /* pieces of one request under way at once */
#define PLACE_IOV_MAX 64 /* parts of a caller's memory that a payload may lie in */

enum place_kind {
	PLACE_NONE,
	PLACE_READ,  /* store, then caller */
	PLACE_WRITE, /* caller, then store */
	PLACE_PULL,  /* caller, into memory: arguments that are needed whole */
	PLACE_SYNC,  /* nothing moves; the store syncs */
};

enum place_state {
	PLACE_NEED_BUF, /* waits for memory, unless the caller's own can be used */
	PLACE_PULLING,	/* from the caller */
	PLACE_PULLED,	/* waits for place_open() */
	PLACE_DISK,	/* to or from the store */
	PLACE_TURN,	/* waits until all before it was put */
	PLACE_PUTTING,	/* to the caller */
	PLACE_DONE,
};

struct place_piece {
	struct list ready; /* place->ready: can go on */
	struct list link;  /* place->pieces, or reactor->free_pieces */
	enum place_state state;
	bool busy;	   /* its operation is out; the completion goes on with it */
	bool started;	   /* the operation of this state was begun */
	bool lent;	   /* the transport has it and its buffer until the reply is out */
	uint32_t off, len; /* within the payload */
	unsigned stream;
	struct req *req;
	struct rpcrdma_buf *buf; /* its own; NULL: a part of place->buf, or the caller's memory */
	struct rpcrdma_buf_waiter waiter;
	struct rpcrdma_piece xfer;
	struct store_io io;
	uint64_t turn_ns; /* when that began; 0: it waits for its turn */
	int iovcnt;
	struct iovec *iov; /* &here, or place->iov */
	struct iovec here;
};

/* Part of a request. Owned by the reactor. */
struct place {
	enum place_kind kind;
	struct cut cut;	 /* what has not begun */
	uint32_t total;
	bool overlap;	 /* pieces go their own ways; otherwise one piece is the whole */
	bool in_order;	 /* READ: they are put as a prefix that grows */
	uint32_t turn;	 /* in_order: where the next piece to be put begins */
	uint32_t good;	 /* the prefix of the payload that is as it should be */
	int err;	 /* why it ends there */
	bool short_read; /* the file ended before the payload did */
	bool no_room;	 /* the caller left too little room */
	bool theirs;	 /* WRITE: the data is in the caller's memory still */
	bool open;	 /* WRITE: what was pulled may go to the store */
	bool lost;	 /* WRITE: the caller went away before all of it was pulled */
	bool sync_failed;
	bool piecewise;	  /* no memory for the whole: each piece has a buffer of its own */
	bool starved;	  /* one of them waits for it: the next begins when that one has it */
	bool forsaken;	  /* WRITE: what was pulled is not wanted any more */
	unsigned out;	  /* pieces under way */
	unsigned busy;	  /* of them, those whose operation is out */
	unsigned putting; /* pieces that the transport has, and that are not waited for */
	size_t shift;	  /* of the payload's first byte in a buffer: as the store likes it */
	struct rpcrdma_buf *buf; /* for all of the payload */
	struct list pieces;	 /* all that are not free, `first` included */
	struct list ready;	 /* those that can go on */
	struct place_piece first; /* of byte 0, and of whatever else when that is done */
	struct iovec iov[PLACE_IOV_MAX];
};

/** place_start - begin
 * @off: of the first byte in the file
 * @total: bytes of payload
 */
void place_start(struct req *r, enum place_kind kind, uint64_t off, uint32_t total);

/** place_run - go on as far as it goes
 *
 * Return: true: nothing need be waited for any more, and nothing is left to begin.
 */
bool place_run(struct req *r);

/** place_pulled - PLACE_WRITE, not open: is there what is needed to know which call it is?
 *
 * That is all of it, or, where transfer and disk overlap, the first piece.
 */
bool place_pulled(const struct req *r);

/** place_open - PLACE_WRITE: the file is there; place_run() takes the data to it */
void place_open(struct req *r);

/** place_forsake - PLACE_WRITE, not open: somebody else does it; go on until nothing is held that
 * others may wait for
 *
 * What has one buffer for the whole waits for no more, and keeps it. May be called again.
 *
 * Return: was there anything to give up? It cannot be opened then.
 */
bool place_forsake(struct req *r);

/** place_settle - it ends here: nothing more is begun
 *
 * Return: false: something is out still; the request is run again when that has ended.
 */
bool place_settle(struct req *r);

/** place_data - PLACE_PULL: the bytes */
const void *place_data(const struct req *r);

/** place_head - PLACE_WRITE, not open: copy the first bytes of the data; they are in one piece
 *
 * What a caller has taken away meanwhile reads as zeroes.
 */
void place_head(const struct req *r, void *to, uint32_t bytes);

/** place_payload - the payload of arguments that have one, or NULL */
struct rpcrdma_payload *place_payload(struct req *r);

/** place_fini - the reply is out: give the buffers back */
void place_fini(struct req *r);

struct reactor;

/** place_pool_fini - free the recycled pieces of a reactor */
void place_pool_fini(struct reactor *re);

#endif
