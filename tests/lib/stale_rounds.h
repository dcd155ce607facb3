/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stale_rounds.h - reads and writes of memory that keeps losing its pages, each compared
 */
#ifndef STALE_ROUNDS_H
#define STALE_ROUNDS_H

#include "leat.h"

struct stale_counts {
	unsigned long reads, writes; /* done */
	unsigned long lost;          /* times that memory had other pages afterwards */
	unsigned long stale;         /* reads that did not arrive, writes of what was there before */
};

/** stale_rounds - @rounds of them, the same for the same seed
 * @f: a file of 128 KiB at least, open for both
 * @fd: the same file, past leat
 *
 * Return: 0, or -errno if a read or write fails, which none should.
 */
int stale_rounds(struct leat_file *f, int fd, unsigned long rounds, uint64_t seed,
		 struct stale_counts *ret);

#endif
