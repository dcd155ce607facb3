/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dec.h - an XDR stream that decodes a message whose bulk item lies elsewhere
 *
 * Operation:  Filters see the whole message: the bytes before the bulk item, the item, its pad, and the rest. Positions
 *             are positions in the whole message. The item is number `item` of the message, counted as enc.h
 *             does (rt_dec_expect()). xdr_bytes() with a preset pointer to the item's own memory copies nothing.
 * Memory:     The message and the item stay the caller's. A filter that would overwrite the item before it reads the item
 *             is refused.
 * Threads:    One at a time.
 * Errors:     Filters return FALSE. `why` gives the reason; NULL: the filter itself refused, or the message is too short.
 */
#ifndef RT_DEC_H
#define RT_DEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rpc/types.h>
#include <rpc/xdr.h>

#include "base/util.h"

struct rt_dec {
	XDR xdr;            /* pass &d->xdr to filters */
	const uint8_t *buf; /* the message without the bulk item and its pad: `len` bytes */
	size_t len;
	size_t pos;         /* in the whole message */

	const uint8_t *bulk; /* NULL: none, or it is in buf */
	uint32_t bulk_bytes;
	size_t bulk_pos;    /* SIZE_MAX: not found yet */
	uint32_t item;      /* its number, from 1; 0: none */
	uint32_t items;     /* met so far */

	const void *preset; /* memory that the caller presets for an item, NULL: none; ... */
	size_t preset_bytes; /* ... an item that is longer is refused, not written past its end */

	size_t copied;      /* bytes of the bulk item that were copied */
	const char *why;

	/* private */
	size_t word_end;    /* where the last word ended, if nothing followed; SIZE_MAX */
};

/** rt_dec_init - starts a message that is in @buf completely */
void rt_dec_init(struct rt_dec *d, const void *buf, size_t len);

/** rt_dec_expect - says that item @item of the message is not in it, but at @bulk; before the first filter */
void rt_dec_expect(struct rt_dec *d, uint32_t item, const void *bulk, uint32_t bytes);

/** rt_dec_is_complete - after the filter: has the message had the item that rt_dec_expect() named? Sets `why` if not */
bool rt_dec_is_complete(struct rt_dec *d);

/** rt_dec_run - runs a filter, and checks that the message had the item that rt_dec_expect() named
 * Return: 0; -EBADMSG, with `why` or without. */
must_check int rt_dec_run(struct rt_dec *d, xdrproc_t filter, void *data);

#endif
