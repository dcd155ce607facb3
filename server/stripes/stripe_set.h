/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_set.h - the stripes in service, with their options
 */
#ifndef LEAT_SERVER_STRIPE_SET_H
#define LEAT_SERVER_STRIPE_SET_H

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "served.h"
#include "stripe_handle.h"
#include "stripe_vol.h"
#include "stripes_conf.h"

struct conf;

/* The stripes of a volume, with options. Read-only. */
struct stripe_member {
	struct stripe_vol *vol; /* a reference */
	struct stripes_conf conf;
	struct stripe_keys keys;
	struct backing backing; /* what its stores serve */
	unsigned idx;
};

/* Those of one configuration. Shared, read-only. */
struct stripe_set {
	struct served served;
	struct stripe_member v[]; /* served.n */
};

/** stripe_set_create - opens the directories of @conf; the caller holds the result: served_put()
 * @old: directories that it has, too, are taken over from there; NULL: none
 * @why: gets the reason of a failure
 *
 * Return: 0 or -errno.
 */
int must_check stripe_set_create(const struct conf *conf, const struct stripe_set *old, unsigned nreactors,
				 struct served **ret, char *why, size_t why_bytes);

/** stripe_set_announce - logs what is new, or no longer served; @old: NULL: none */
void stripe_set_announce(const struct stripe_set *old, const struct stripe_set *now);

/** stripe_set_from - returns the stripes of which @s is a part; NULL: NULL */
static inline struct stripe_set *stripe_set_from(struct served *s)
{
	return s ? container_of(s, struct stripe_set, served) : NULL;
}

/** stripe_set_of - returns the stripes that a request, or a reactor, uses */
static inline struct stripe_set *stripe_set_of(const struct served_use *u)
{
	return container_of(u->served, struct stripe_set, served);
}

/** stripe_set_find - finds the stripes of a volume by its id; NULL: not served */
struct stripe_member *stripe_set_find(struct stripe_set *s, uint64_t volume);

#endif
