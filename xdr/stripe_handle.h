/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_handle.h - signed handles of stripes, and signed commands (xdr/stripes.x has both formats)
 *
 * Pure: no state and no clock. The manager of a volume makes them, a stripe server reads them. Which of the keys signed
 * takes the same time to find out, and so does how many bytes of a wrong signature are right.
 */
#ifndef LEAT_STRIPE_HANDLE_H
#define LEAT_STRIPE_HANDLE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/siphash.h"
#include "base/util.h"
#include "base/wire.h"
#include "stripes.h"

#define STRIPE_KEYS_MAX 2u
#define STRIPE_LIFETIME_S 600u /* of handles that a manager signs; tombstones last longer */
#define STRIPE_SKEW_S 30u /* clocks of a volume's servers may differ by as much */

/* The keys of a volume: the first one signs. */
struct stripe_keys {
	struct siphash_key v[STRIPE_KEYS_MAX];
	unsigned n;
};

struct stripe_handle {
	uint64_t volume;
	uint32_t server; /* its id in the volume */
	stripe_name name;
	uint32_t rights;
	uint64_t epoch;
	uint64_t expiry; /* seconds since 1970 */
	uint64_t term;	 /* of the manager that uses it itself; 0: a client does */
};

/* What is signed of a command besides its arguments. */
struct stripe_command {
	uint64_t volume;
	uint32_t server; /* its id in the volume */
	uint64_t term;
	uint64_t expiry; /* seconds since 1970 */
	uint64_t number;
};

/* What a command is to do; members that its procedure has no argument for are 0. */
struct stripe_order {
	uint32_t proc;
	stripe_name name;
	uint64_t value; /* epoch, until */
	bool flag;	/* cut, first */
	uint64_t bytes;
};

#define STRIPE_HANDLE_TAG "leatstr1"
#define STRIPE_HANDLE_BODY 68u /* tag and handle, without the signature */
#define STRIPE_COMMAND_TAG "leatcmd1"
#define STRIPE_COMMAND_BODY 88u /* tag, command without signature, order */

/** stripe_name_compare - Return: less than, equal to or greater than 0, by the order of LIST */
static inline int stripe_name_compare(const stripe_name *a, const stripe_name *b)
{
	int c = memcmp(a->object, b->object, STRIPE_OBJECT_BYTES);

	return c ? c : a->stripe < b->stripe ? -1 : a->stripe > b->stripe;
}

/* Is it signed with one of the keys? All of them are tried, and whole numbers compared. */
static inline bool stripe_signed(const struct stripe_keys *keys, const uint8_t *body, size_t bytes, uint64_t signature)
{
	uint64_t found = 0;

	for (unsigned i = 0; i < keys->n; i++) {
		uint64_t differs = siphash(&keys->v[i], body, bytes) ^ signature;

		found |= ((differs | (0 - differs)) >> 63) ^ 1; /* 1 if it is 0 */
	}
	return found;
}

static inline void stripe_handle_body(const char *handle, uint8_t ret[STRIPE_HANDLE_BODY])
{
	memcpy(ret, STRIPE_HANDLE_TAG, 8);
	memcpy(ret + 8, handle, STRIPE_HANDLE_BYTES - 8);
}

/** stripe_handle_make - signs a handle with the first key */
static inline void stripe_handle_make(const struct stripe_keys *keys, const struct stripe_handle *h,
				      char ret[STRIPE_HANDLE_BYTES])
{
	uint8_t body[STRIPE_HANDLE_BODY];

	put_be64(ret, h->volume);
	memcpy(ret + 8, h->name.object, STRIPE_OBJECT_BYTES);
	put_be32(ret + 24, h->server);
	put_be32(ret + 28, h->name.stripe);
	put_be32(ret + 32, h->rights);
	put_be64(ret + 36, h->epoch);
	put_be64(ret + 44, h->expiry);
	put_be64(ret + 52, h->term);
	stripe_handle_body(ret, body);
	put_be64(ret + 60, siphash(&keys->v[0], body, sizeof(body)));
}

/** stripe_volume_of - the volume that a handle or a command names, which is not checked yet */
static inline uint64_t stripe_volume_of(const char *bytes)
{
	return get_be64(bytes);
}

/** stripe_handle_read - checks the signature; Return: 0, -EBADF */
static inline int must_check stripe_handle_read(const struct stripe_keys *keys, const char handle[STRIPE_HANDLE_BYTES],
						struct stripe_handle *ret)
{
	uint8_t body[STRIPE_HANDLE_BODY];

	stripe_handle_body(handle, body);
	if (!stripe_signed(keys, body, sizeof(body), get_be64(handle + 60)))
		return -EBADF;
	ret->volume = get_be64(handle);
	memcpy(ret->name.object, handle + 8, STRIPE_OBJECT_BYTES);
	ret->server = get_be32(handle + 24);
	ret->name.stripe = get_be32(handle + 28);
	ret->rights = get_be32(handle + 32);
	ret->epoch = get_be64(handle + 36);
	ret->expiry = get_be64(handle + 44);
	ret->term = get_be64(handle + 52);
	return 0;
}

static inline void stripe_command_body(const char *command, const struct stripe_order *o, uint8_t ret[STRIPE_COMMAND_BODY])
{
	memcpy(ret, STRIPE_COMMAND_TAG, 8);
	memcpy(ret + 8, command, STRIPE_COMMAND_BYTES - 8);
	put_be32(ret + 44, o->proc);
	memcpy(ret + 48, o->name.object, STRIPE_OBJECT_BYTES);
	put_be32(ret + 64, o->name.stripe);
	put_be64(ret + 68, o->value);
	put_be32(ret + 76, o->flag);
	put_be64(ret + 80, o->bytes);
}

/** stripe_command_make - signs a command with the first key */
static inline void stripe_command_make(const struct stripe_keys *keys, const struct stripe_command *c,
				       const struct stripe_order *o, char ret[STRIPE_COMMAND_BYTES])
{
	uint8_t body[STRIPE_COMMAND_BODY];

	put_be64(ret, c->volume);
	put_be32(ret + 8, c->server);
	put_be64(ret + 12, c->term);
	put_be64(ret + 20, c->expiry);
	put_be64(ret + 28, c->number);
	stripe_command_body(ret, o, body);
	put_be64(ret + 36, siphash(&keys->v[0], body, sizeof(body)));
}

/** stripe_command_read - checks the signature
 * @o: what the arguments of the call say
 *
 * Return: 0, -EBADF.
 */
static inline int must_check stripe_command_read(const struct stripe_keys *keys, const char command[STRIPE_COMMAND_BYTES],
						 const struct stripe_order *o, struct stripe_command *ret)
{
	uint8_t body[STRIPE_COMMAND_BODY];

	stripe_command_body(command, o, body);
	if (!stripe_signed(keys, body, sizeof(body), get_be64(command + 36)))
		return -EBADF;
	*ret = (struct stripe_command){ .volume = get_be64(command), .server = get_be32(command + 8),
					.term = get_be64(command + 12), .expiry = get_be64(command + 20),
					.number = get_be64(command + 28) };
	return 0;
}

/** stripe_expired - is the time up, for a clock that may be ahead of the signer's? @now: seconds since 1970 */
static inline bool stripe_expired(uint64_t expiry, uint64_t now)
{
	return now >= STRIPE_SKEW_S && expiry < now - STRIPE_SKEW_S;
}

#endif
