/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_record.h - the record of an object: an extended attribute of its file
 *
 * 36 bytes, numbers with the highest byte first:
 *
 *	0	"leatobj1"
 *	8	epoch (8)
 *	16	cut (8): the length that the file is still to be cut to; all ones: none
 *	24	until (8): seconds since 1970, of a tombstone
 *	32	flags (4): 1: tombstone
 *
 * A file without a record has epoch 1.
 */
#ifndef LEAT_STRIPE_RECORD_H
#define LEAT_STRIPE_RECORD_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"
#include "base/wire.h"

#define STRIPE_RECORD_BYTES 36u
#define STRIPE_RECORD_TAG "leatobj1"
#define STRIPE_REMOVED 1u
#define STRIPE_NO_CUT UINT64_MAX

struct stripe_record {
	uint64_t epoch;
	uint64_t cut; /* STRIPE_NO_CUT: nothing is pending */
	uint64_t until;
	bool removed;
};

/** stripe_record_none - of an object without a record */
static inline struct stripe_record stripe_record_none(void)
{
	return (struct stripe_record){ .epoch = 1, .cut = STRIPE_NO_CUT };
}

static inline void stripe_record_encode(const struct stripe_record *r, uint8_t ret[STRIPE_RECORD_BYTES])
{
	memcpy(ret, STRIPE_RECORD_TAG, 8);
	put_be64(ret + 8, r->epoch);
	put_be64(ret + 16, r->cut);
	put_be64(ret + 24, r->until);
	put_be32(ret + 32, r->removed ? STRIPE_REMOVED : 0);
}

/** stripe_record_decode - Return: 0; -EBADMSG: it is no record */
static inline int must_check stripe_record_decode(const uint8_t *bytes, size_t n, struct stripe_record *ret)
{
	struct stripe_record r;

	if (n != STRIPE_RECORD_BYTES || memcmp(bytes, STRIPE_RECORD_TAG, 8))
		return -EBADMSG;
	r = (struct stripe_record){ .epoch = get_be64(bytes + 8), .cut = get_be64(bytes + 16),
				    .until = get_be64(bytes + 24), .removed = get_be32(bytes + 32) & STRIPE_REMOVED };
	if (!r.epoch || get_be32(bytes + 32) & ~STRIPE_REMOVED || (r.cut != STRIPE_NO_CUT && r.cut > INT64_MAX))
		return -EBADMSG;
	*ret = r;
	return 0;
}

#endif
