/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * enc.h - an XDR stream that encodes a message of unknown length, and leaves its bulk item where it is
 *
 * Operation:  A filter writes into a buffer that grows. The filter runs once: it may read a database or print. If
 *             `item` is set, the stream counts items: a word followed at once by x_putbytes() of as many bytes, as
 *             xdr_bytes() and xdr_string() write them. An empty item is not visible and does not count. An opaque of
 *             fixed length whose preceding word happens to equal its length counts. The item with that number is not
 *             copied if it has at least `threshold` bytes: `bulk` describes it, and its pad is left out too.
 *
 *             XDR positions are positions in the buffer, so of the reduced message.
 * Memory:     The first buffer is the caller's. grow() replaces it. The memory of the bulk item stays the caller's, and
 *             must stay unchanged until the message was sent: a filter that frees it before it returns must not be named
 *             in a table.
 * Threads:    One at a time.
 * Errors:     Filters return FALSE. `err` gives the reason; 0: the filter itself refused.
 */
#ifndef RT_ENC_H
#define RT_ENC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rpc/types.h>
#include <rpc/xdr.h>

#include "base/util.h"

/* The item that is not in the buffer. */
struct rt_enc_bulk {
	const void *base; /* NULL: none */
	uint32_t bytes;
	size_t pos;       /* behind its length word */
};

struct rt_enc {
	XDR xdr;         /* pass &e->xdr to filters */
	uint8_t *buf;    /* the message: `len` bytes */
	size_t cap, pos, len;
	size_t max;      /* longest message without the bulk item */
	int err;         /* -EMSGSIZE: longer than max; or what grow() returned */

	/* Replaces buf by one of at least @bytes with the same first `len` bytes, and sets cap. Return: 0 or -errno. */
	int (*grow)(struct rt_enc *e, size_t bytes);
	void *ctx;       /* of grow() */
	void *heap;      /* of rt_enc_grow_heap() */

	uint32_t item;      /* number of the item that may be bulk data, from 1; 0: none */
	uint32_t threshold; /* its least length */
	uint32_t items;     /* met so far */
	struct rt_enc_bulk bulk;

	/* private */
	size_t word_end; /* where the last word ended, if nothing followed; SIZE_MAX */
	uint32_t pad;    /* pad bytes of the bulk item that are still to come */
};

/** rt_enc_init - starts a message in @buf, which is aligned to 8 bytes and has @cap bytes
 * @max: at most UINT_MAX
 * @grow: NULL: rt_enc_grow_heap() */
void rt_enc_init(struct rt_enc *e, void *buf, size_t cap, size_t max, int (*grow)(struct rt_enc *, size_t), void *ctx);

/** rt_enc_want_bulk - leaves item @item out, if it has at least @threshold bytes; before the first filter */
void rt_enc_want_bulk(struct rt_enc *e, uint32_t item, uint32_t threshold);

/** rt_enc_grow_heap - grows into memory of malloc(), doubling it; rt_enc_fini() frees it */
int rt_enc_grow_heap(struct rt_enc *e, size_t bytes);

/** rt_enc_run - runs a filter
 *
 * Return: 0; -EINVAL: it refused, or wrote no pad behind the bulk item; else `err` of the stream.
 */
must_check int rt_enc_run(struct rt_enc *e, xdrproc_t filter, const void *data);

/** rt_enc_bytes - returns the length of the message with its bulk item and pad */
static inline size_t rt_enc_bytes(const struct rt_enc *e)
{
	return e->len + (e->bulk.base ? round_up4(e->bulk.bytes) : 0);
}

/** rt_enc_fini - frees what rt_enc_grow_heap() allocated */
void rt_enc_fini(struct rt_enc *e);

#endif
