/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * random.h - a sequence of numbers that spreads load and balances trees; not for secrets
 */
#ifndef LEAT_BASE_RANDOM_H
#define LEAT_BASE_RANDOM_H

#include <stdint.h>

/** random_next - the next number of the sequence that @state is in; any first state will do (splitmix64) */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

#endif
