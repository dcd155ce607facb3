/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cache.h - cache of attributes and names, and how long entries stay valid
 *
 * A NULL cache is valid in all functions: it keeps nothing.
 */
#ifndef LT_CACHE_H
#define LT_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "call.h"
#include "nfs3.h"

#define LT_CACHE_ENTRIES 16384u /* limit of handles, and of names */

/* Lifetime of attributes: the time for which they had not changed, within these bounds. */
#define LT_CACHE_FILE_MIN_S 3u
#define LT_CACHE_DIR_MIN_S 30u
#define LT_CACHE_MAX_S 60u      /* of both, and of names, unless set by acmax= */

struct lt_cache;

/* The call that a reply belongs to. */
struct lt_cache_call {
	uint64_t stamp; /* lt_cache_stamp() when it was sent */
	uint64_t ns;    /* time of sending: the reply is at least as new */
	bool ours;      /* the call changes its object */
};

enum lt_cache_answer { LT_CACHE_UNKNOWN, LT_CACHE_THERE, LT_CACHE_MISSING };

/** lt_cache_create - creates an empty cache
 * @max_s: longest validity in seconds; 0: LT_CACHE_MAX_S
 *
 * Return: 0, -ENOMEM; -EIO: no random numbers.
 */
must_check int lt_cache_create(uint32_t max_s, struct lt_cache **ret);
void lt_cache_destroy(struct lt_cache *c);

/** lt_cache_stamp - the next stamp; stamps increase */
uint64_t lt_cache_stamp(struct lt_cache *c);

/* ---- updates from replies: called by cache_feed.c ---- */

/** lt_cache_take_attr - stores attributes of @fh from the reply to @call
 * @a: NULL: the reply has none; if the call changed @fh, the cached attributes become invalid
 * @before: attributes just before this client's change, or NULL
 *
 * Return: true: @a is now the cached state; false: the cache has newer attributes, or none.
 */
bool lt_cache_take_attr(struct lt_cache *c, nfs_fh3 fh, const fattr3 *a, const wcc_attr *before,
			const struct lt_cache_call *call);

/** lt_cache_take_name - stores a lookup of @name in @dir; call lt_cache_take_attr() for @dir first */
void lt_cache_take_name(struct lt_cache *c, nfs_fh3 dir, const char *name,
			enum lt_cache_answer answer, const nfs_fh3 *fh,
			const struct lt_cache_call *call);

/** lt_cache_doubt - invalidates what is cached of @fh */
void lt_cache_doubt(struct lt_cache *c, nfs_fh3 fh);

/** lt_cache_doubt_name - invalidates the object that @name refers to, before this client removes or replaces the name
 */
void lt_cache_doubt_name(struct lt_cache *c, nfs_fh3 dir, const char *name, uint64_t now);

/* ---- queries ---- */

/** lt_cache_attr - gets valid attributes of @fh; Return: are there any? */
bool lt_cache_attr(struct lt_cache *c, nfs_fh3 fh, uint64_t now, fattr3 *ret);

/** lt_cache_name - looks up @name in @dir; with LT_CACHE_THERE, @ret is set */
enum lt_cache_answer lt_cache_name(struct lt_cache *c, nfs_fh3 dir, const char *name, uint64_t now,
				   struct lt_fh *ret);

/** lt_cache_data - a number that changes when a change of the contents of @fh is seen */
uint64_t lt_cache_data(struct lt_cache *c, nfs_fh3 fh);

/** lt_cache_data_holds - is data still valid at @now, if it was requested at @asked with lt_cache_data() == @data? */
bool lt_cache_data_holds(struct lt_cache *c, nfs_fh3 fh, uint64_t data, uint64_t asked,
			 uint64_t now);

/* ---- cache_feed.c ---- */

/** lt_cache_sent - stamps @call; call just before sending */
void lt_cache_sent(struct lt_call *call);

/** lt_cache_reply - stores what the results of @call contain; @err: of the RPC itself */
void lt_cache_reply(struct lt_call *call, int err);

#endif
