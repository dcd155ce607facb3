/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * hist.h - histogram of durations with buckets 1/32 wide
 *
 * A time of 2^e to 2^(e+1) nanoseconds falls into one of 32 buckets of that octave. So a percentile is
 * accurate to 3 % whatever its size, and adding a time allocates no memory.
 */
#ifndef LEAT_BASE_HIST_H
#define LEAT_BASE_HIST_H

#include <stddef.h>
#include <stdint.h>

#define HIST_SUB_BITS 5
#define HIST_BUCKETS ((64 - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
	uint64_t count;
	uint64_t bucket[HIST_BUCKETS];
};

static inline size_t hist_index(uint64_t ns)
{
	unsigned octave;

	if (ns < 1u << HIST_SUB_BITS)
		return (size_t)ns;
	octave = 63u - (unsigned)__builtin_clzll(ns) - HIST_SUB_BITS;
	return ((size_t)octave << HIST_SUB_BITS) + (size_t)(ns >> octave);
}

/** hist_floor - the smallest time in bucket @i */
static inline uint64_t hist_floor(size_t i)
{
	size_t octave = i >> HIST_SUB_BITS;
	uint64_t sub = i & ((1u << HIST_SUB_BITS) - 1);

	return octave < 2 ? i : (sub + (1u << HIST_SUB_BITS)) << (octave - 1);
}

static inline void hist_add(struct hist *h, uint64_t ns)
{
	h->count++;
	h->bucket[hist_index(ns)]++;
}

static inline void hist_merge(struct hist *to, const struct hist *from)
{
	to->count += from->count;
	for (size_t i = 0; i < HIST_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
}

/** hist_percentile - the time in ns that the fraction @part (0 to 1) of all entries stays below; 0 if empty */
static inline uint64_t hist_percentile(const struct hist *h, double part)
{
	uint64_t want = (uint64_t)(part * (double)h->count), seen = 0;

	for (size_t i = 0; i < HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen > want || (seen && seen == h->count))
			return hist_floor(i);
	}
	return 0;
}

#endif
