/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * siphash.h - SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed 64-bit hash
 *
 * For hash tables with keys that a peer chooses, and as the signature in file handles: without the key a peer
 * can neither collide keys into one bucket nor forge a handle.
 */
#ifndef LEAT_SIPHASH_H
#define LEAT_SIPHASH_H

#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "base/util.h"

struct siphash_key {
	uint64_t k0, k1;
};

/** siphash_key_random - creates a key; Return: 0; -EIO: the kernel gives no random numbers */
static inline int must_check siphash_key_random(struct siphash_key *ret)
{
	struct siphash_key key;

	if (getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key))
		return -EIO;
	*ret = key;
	return 0;
}

static inline uint64_t siphash_rotl(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static inline void siphash_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = siphash_rotl(v[1], 13) ^ v[0];
	v[3] = siphash_rotl(v[3], 16) ^ v[2];
	v[0] = siphash_rotl(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = siphash_rotl(v[1], 17) ^ v[2];
	v[3] = siphash_rotl(v[3], 21) ^ v[0];
	v[2] = siphash_rotl(v[2], 32);
}

static inline uint64_t siphash(const struct siphash_key *key, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t v[4] = {
		key->k0 ^ UINT64_C(0x736f6d6570736575),
		key->k1 ^ UINT64_C(0x646f72616e646f6d),
		key->k0 ^ UINT64_C(0x6c7967656e657261),
		key->k1 ^ UINT64_C(0x7465646279746573),
	};
	uint64_t m, last = (uint64_t)len << 56;
	size_t left = len;

	for (; left >= 8; left -= 8, p += 8) {
		memcpy(&m, p, 8);
		m = le64toh(m);
		v[3] ^= m;
		siphash_round(v);
		siphash_round(v);
		v[0] ^= m;
	}
	for (size_t i = 0; i < left; i++)
		last |= (uint64_t)p[i] << (8 * i);
	v[3] ^= last;
	siphash_round(v);
	siphash_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		siphash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
