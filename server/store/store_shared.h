/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_shared.h - state that the stores of one directory share between reactors
 */
#ifndef LEAT_SERVER_STORE_SHARED_H
#define LEAT_SERVER_STORE_SHARED_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/util.h"

struct backing;

#define STORE_SHARED_HOW_BYTES 192

/* First member of a shared structure. */
struct store_shared {
	struct list link;
	const struct store_shared_kind *kind;
	uint64_t dev, ino; /* of the directory */
	unsigned holders;
	char how[STORE_SHARED_HOW_BYTES];
};

struct store_shared_kind {
	size_t bytes; /* of the structure that begins with a struct store_shared */
	/* @s is zeroed after its struct store_shared; Return: 0 or -errno */
	int (*init)(struct store_shared *s, const struct backing *b);
	void (*fini)(struct store_shared *s);
};

/** store_shared_get - gets the structure of this kind for the directory of @b with configuration @how
 *
 * It is held for the caller, and created if none exists. One that is in use is found again whenever the backings
 * are replaced. Any thread.
 *
 * Return: 0, or -errno.
 */
int must_check store_shared_get(const struct store_shared_kind *kind, const struct backing *b,
				const char *how, struct store_shared **ret);

/** store_shared_put - releases it; any thread. NULL is fine. */
void store_shared_put(struct store_shared *s);

/** store_shared_each - runs @fn for each structure of a directory, while they are held
 *
 * @fn must not call functions of this file. Return: how many there are.
 */
unsigned store_shared_each(const struct store_shared_kind *kind, uint64_t dev, uint64_t ino,
			   void (*fn)(struct store_shared *s, void *ctx), void *ctx);

#endif
