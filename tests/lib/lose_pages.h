/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lose_pages.h - the ways in which an address comes to have other pages than it had
 */
#ifndef LOSE_PAGES_H
#define LOSE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define LOSE_PAGE ((size_t)4096)

enum lose_how {
	LOSE_MUNMAP,   /* and something else is mapped there */
	LOSE_MMAP,     /* over it */
	LOSE_MREMAP,   /* something moves onto it */
	LOSE_MOVE,     /* it moves away */
	LOSE_FREE,     /* MADV_FREE, which is as good as */
	LOSE_DONTNEED,
	LOSE_WAYS,
};

static inline void *lose_map(void *at, size_t len, int flags)
{
	return mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/* Away with it, and page by page, for it need not be one mapping. */
static inline bool lose_move(uint8_t *at, size_t len)
{
	uint8_t *to = lose_map(NULL, len, 0);
	bool ok = to != MAP_FAILED;

	for (size_t off = 0; ok && off < len; off += LOSE_PAGE)
		ok = mremap(at + off, LOSE_PAGE, LOSE_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			    to + off) == to + off;
	return ok && !munmap(to, len) && lose_map(at, len, MAP_FIXED_NOREPLACE) == at;
}

/* All of [at, at + len), whole pages of private memory that may be written, has other pages on return.
 * Return: false: it did not go as it should */
static inline bool lose_pages(uint8_t *at, size_t len, enum lose_how how)
{
	void *from;

	switch (how) {
	case LOSE_MUNMAP:
		return !munmap(at, len) && lose_map(at, len, MAP_FIXED_NOREPLACE) == at;
	case LOSE_MMAP:
		return lose_map(at, len, MAP_FIXED) == at;
	case LOSE_MREMAP:
		from = lose_map(NULL, len, 0);
		return from != MAP_FAILED &&
		       mremap(from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at;
	case LOSE_MOVE:
		return lose_move(at, len);
	case LOSE_FREE:
		return !madvise(at, len, MADV_FREE);
	default:
		return !madvise(at, len, MADV_DONTNEED);
	}
}

/* The next of a sequence of numbers below @n; it is the same again for the same seed. */
static inline unsigned lose_rand(uint64_t *seed, unsigned n)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((*seed >> 33) % n);
}

#endif
