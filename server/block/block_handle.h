/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_handle.h - signed handles of attachments
 */
#ifndef LEAT_SERVER_BLOCK_HANDLE_H
#define LEAT_SERVER_BLOCK_HANDLE_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"
#include "base/wire.h"
#include "block.h"
#include "block_lanes.h"
#include "fh.h"

/* Eight bytes that no handle of a file begins with, then volume, number and generation: what is signed. */
#define BLOCK_HANDLE_TAG "leatblk1"
#define BLOCK_HANDLE_SIGNED 32u

static inline void block_handle_body(const struct block_id *id, uint8_t ret[BLOCK_HANDLE_SIGNED])
{
	memcpy(ret, BLOCK_HANDLE_TAG, 8);
	put_be64(ret + 8, id->volume);
	put_be64(ret + 16, id->number);
	put_be64(ret + 24, id->generation);
}

/** block_handle_make - signs a handle with the newest key */
static inline void block_handle_make(const struct fh_keys *keys, const struct block_id *id,
				     char ret[BLOCK_HANDLE_BYTES])
{
	uint8_t body[BLOCK_HANDLE_SIGNED];

	block_handle_body(id, body);
	memcpy(ret, body + 8, 24);
	put_be64(ret + 24, siphash(&keys->v[0], body, sizeof(body)));
}

/** block_handle_read - checks the signature; Return: 0, -EBADF */
static inline int must_check block_handle_read(const struct fh_keys *keys, const char handle[BLOCK_HANDLE_BYTES],
					       struct block_id *ret)
{
	struct block_id id = { get_be64(handle), get_be64(handle + 8), get_be64(handle + 16) };
	uint8_t body[BLOCK_HANDLE_SIGNED];

	block_handle_body(&id, body);
	for (unsigned i = 0; i < keys->n; i++) {
		if (get_be64(handle + 24) == siphash(&keys->v[i], body, sizeof(body))) {
			*ret = id;
			return 0;
		}
	}
	return -EBADF;
}

#endif
