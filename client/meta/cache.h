/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cache.h - what was heard of the server's files, and how long it may be believed
 *
 * All functions take NULL for a cache: nothing is kept, nothing is known.
 */
#ifndef LT_CACHE_H
#define LT_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "call.h"
#include "nfs3.h"

#define LT_CACHE_ENTRIES 16384u /* handles, and names as many */

/* How long attributes are believed: as long as they have not changed, within these bounds. */
#define LT_CACHE_FILE_MIN_S 3u
#define LT_CACHE_DIR_MIN_S 30u
#define LT_CACHE_MAX_S 60u      /* of both, and of names, unless acmax= says otherwise */

struct lt_cache;

/* Where a reply comes from. */
struct lt_cache_call {
	uint64_t stamp; /* lt_cache_stamp() when it was sent */
	uint64_t ns;    /* the time then: the reply is at least as new */
	bool ours;      /* it changes what it is about */
};

enum lt_cache_answer { LT_CACHE_UNKNOWN, LT_CACHE_THERE, LT_CACHE_MISSING };

/** lt_cache_create - an empty one
 * @max_s: longest time anything is believed; 0: LT_CACHE_MAX_S
 *
 * Return: 0 or -ENOMEM.
 */
must_check int lt_cache_create(uint32_t max_s, struct lt_cache **ret);
void lt_cache_destroy(struct lt_cache *c);

/** lt_cache_stamp - the next number: whatever takes one later has a larger one */
uint64_t lt_cache_stamp(struct lt_cache *c);

/* ---- what replies say: cache_feed.c calls these ---- */

/** lt_cache_take_attr - attributes of @fh in the reply to @call
 * @a: NULL: the reply has none; if the call was ours, what was known is not true any more
 * @before: as they were just before the change of ours, or NULL
 *
 * Return: whether they are what is known now; if not, something newer is, or nothing.
 */
bool lt_cache_take_attr(struct lt_cache *c, nfs_fh3 fh, const fattr3 *a, const wcc_attr *before,
			const struct lt_cache_call *call);

/** lt_cache_take_name - what @name in @dir is; lt_cache_take_attr() of @dir was just called
 * @fh: for LT_CACHE_THERE
 */
void lt_cache_take_name(struct lt_cache *c, nfs_fh3 dir, const char *name,
			enum lt_cache_answer answer, const nfs_fh3 *fh,
			const struct lt_cache_call *call);

/** lt_cache_doubt - what is known of @fh may not be true any more: it is asked for when needed */
void lt_cache_doubt(struct lt_cache *c, nfs_fh3 fh);

/** lt_cache_doubt_name - the same for what @name is, before we take it from there: it has one name
 * less, or another one
 */
void lt_cache_doubt_name(struct lt_cache *c, nfs_fh3 dir, const char *name, uint64_t now);

/* ---- what is known ---- */

/** lt_cache_attr - attributes of @fh that may still be believed; Return: are there any? */
bool lt_cache_attr(struct lt_cache *c, nfs_fh3 fh, uint64_t now, fattr3 *ret);

/** lt_cache_name - what @name in @dir is; LT_CACHE_THERE: @ret */
enum lt_cache_answer lt_cache_name(struct lt_cache *c, nfs_fh3 dir, const char *name, uint64_t now,
				   struct lt_fh *ret);

/** lt_cache_data - a number that changes when the contents of @fh are seen to have changed */
uint64_t lt_cache_data(struct lt_cache *c, nfs_fh3 fh);

/** lt_cache_data_holds - may data that was asked for at @asked, when lt_cache_data() was @data, be
 * handed out at @now? */
bool lt_cache_data_holds(struct lt_cache *c, nfs_fh3 fh, uint64_t data, uint64_t asked,
			 uint64_t now);

/* ---- cache_feed.c ---- */

/** lt_cache_sent - @call is about to be sent: its place in the order of things */
void lt_cache_sent(struct lt_call *call);

/** lt_cache_reply - take what is in the results of @call; @err: of the RPC itself */
void lt_cache_reply(struct lt_call *call, int err);

#endif
