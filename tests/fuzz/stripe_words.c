/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_words.c - words of a script that stand for names, handles and commands of stripes
 *
 * Operation:  Of a volume 1 whose server 1 has objects; commands are those of term 1, and do not expire.
 * Memory:     Static.
 * Threads:    One.
 * Errors:     What has no room is not put.
 */
#include <stdbool.h>
#include <string.h>

#include "base/wire.h"
#include "stripe_handle.h"
#include "stripe_key.h"
#include "stripe_words.h"
#include "volumes.h"

#define OBJECTS 4u
#define COMMAND_CHECK 0x17u /* of the manager */

static struct stripe_keys keys;
static uint32_t script;

int stripe_words_start(void)
{
	char text[] = STRIPE_WORDS_KEY, why[256];
	uint64_t volume;

	return stripe_key_parse(text, &volume, &keys, why, sizeof(why));
}

void stripe_words_next_script(void)
{
	script++;
}

static stripe_name object_of(uint32_t n)
{
	stripe_name name = { .stripe = 0 };

	put_be32(name.object, script);
	put_be32(name.object + 4, n);
	return name;
}

size_t stripe_words_put(uint8_t *to, size_t room, uint32_t word)
{
	struct stripe_handle h = { .volume = 1, .server = 1, .rights = STRIPE_MAY_READ | STRIPE_MAY_WRITE, .epoch = 1,
				   .expiry = UINT32_MAX };

	if (word - STRIPE_WORDS_OBJECT < OBJECTS && room >= STRIPE_OBJECT_BYTES) {
		memcpy(to, object_of(word - STRIPE_WORDS_OBJECT).object, STRIPE_OBJECT_BYTES);
		return STRIPE_OBJECT_BYTES;
	}
	if (word - STRIPE_WORDS_HANDLE < 2 * OBJECTS && room >= STRIPE_HANDLE_BYTES) {
		h.name = object_of((word - STRIPE_WORDS_HANDLE) % OBJECTS);
		h.term = (word - STRIPE_WORDS_HANDLE) / OBJECTS;
		stripe_handle_make(&keys, &h, (char *)to);
		return STRIPE_HANDLE_BYTES;
	}
	if (word - STRIPE_WORDS_COMMAND <= COMMAND_CHECK && room >= STRIPE_COMMAND_BYTES) {
		memset(to, 0, STRIPE_COMMAND_BYTES); /* signed when its arguments are there */
		return STRIPE_COMMAND_BYTES;
	}
	return 0;
}

void stripe_words_sign(uint8_t *command, uint32_t proc, const uint8_t *args, size_t len)
{
	bool checks = proc == COMMAND_CHECK;
	struct stripe_command c = { .volume = 1, .server = !checks, .term = !checks, .expiry = UINT32_MAX, .number = 1 };
	struct stripe_order o = { .proc = checks ? VOLUMEPROC_CHECK : proc };
	const uint8_t *object;
	struct wire_get g;

	wire_get_init(&g, args, len);
	object = proc == STRIPEPROC_INFO ? NULL : wire_get_bytes(&g, STRIPE_OBJECT_BYTES);
	if (object)
		memcpy(o.name.object, object, STRIPE_OBJECT_BYTES);
	if (object && !checks)
		o.name.stripe = wire_get_u32(&g);
	if (proc == STRIPEPROC_FENCE || proc == STRIPEPROC_REMOVE || proc == STRIPEPROC_SET_ASIDE)
		o.value = wire_get_u64(&g);
	if (proc == STRIPEPROC_FENCE || proc == STRIPEPROC_LIST || checks)
		o.flag = wire_get_u32(&g);
	if (proc == STRIPEPROC_FENCE || proc == STRIPEPROC_SET_ASIDE)
		o.bytes = wire_get_u64(&g);
	stripe_command_make(&keys, &c, &o, (char *)command);
}
