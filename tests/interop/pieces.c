/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * pieces.c - pieces URL: files written from, and read into, many pieces of memory at odd places
 *
 * Each piece of an iov is a registration and a segment of its own, so this is how chunks come to
 * have several. Sources are also of memory that may not be written. Then every length around the
 * edges of messages, pages and requests, at offsets that are aligned to nothing, whole and in nine
 * segments (what an unaligned megabyte is to a peer that registers in steps of 128 KiB).
 * Exit status 0: all was right.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "leat.h"

#define AREA ((size_t)4 << 20)
#define PIECES_MAX 16
#define AROUND 9
#define SEGMENTS 9

static uint32_t seed = 1;

static uint32_t rnd(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

static void fill(uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)rnd(256);
}

/* Cuts @total into @n pieces of an area, in places that do not overlap, and in no order of size. */
static size_t cut(uint8_t *area, int n, size_t most, struct iovec *iov)
{
	size_t at = 0, sum = 0;

	for (int i = 0; i < n; i++) {
		at += 1 + rnd(300);
		iov[i].iov_base = area + at;
		iov[i].iov_len = rnd(8) ? 1 + rnd((uint32_t)most) : 0; /* some are empty */
		at += iov[i].iov_len;
		sum += iov[i].iov_len;
	}
	return sum;
}

static void gather(const struct iovec *iov, int n, uint8_t *to)
{
	for (int i = 0; i < n; i++) {
		memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

static int fail(const char *what, int round, ssize_t rc)
{
	fprintf(stderr, "pieces: round %d: %s: %s\n", round, what,
		rc < 0 ? strerror((int)-rc) : "wrong count or data");
	return 1;
}

static int one_round(struct leat_file *f, int round, uint8_t *from, uint8_t *to, uint8_t *want,
		     uint8_t *got, bool read_only)
{
	struct iovec out[PIECES_MAX], in[PIECES_MAX];
	int nout = 1 + (int)rnd(PIECES_MAX), nin = 1 + (int)rnd(PIECES_MAX);
	uint64_t off = rnd(2) ? rnd(5000) : 4096u * rnd(4);
	size_t len = cut(from, nout, round % 3 ? 9000 : 200000, out), room;
	ssize_t rc;

	if (read_only)
		mprotect(from, AREA, PROT_READ);
	gather(out, nout, want);
	rc = leat_pwritev(f, out, nout, off);
	mprotect(from, AREA, PROT_READ | PROT_WRITE);
	if (rc != (ssize_t)len)
		return fail("pwritev", round, rc);
	memset(to, 0xee, AREA);
	room = cut(to, nin, round % 3 ? 9000 : 200000, in);
	room = room < len ? room : len;
	for (size_t left = room, i = 0; i < (size_t)nin; i++) {
		in[i].iov_len = in[i].iov_len < left ? in[i].iov_len : left;
		left -= in[i].iov_len;
	}
	rc = leat_preadv(f, in, nin, off);
	if (rc != (ssize_t)room)
		return fail("preadv", round, rc);
	gather(in, nin, got);
	if (memcmp(got, want, room) != 0)
		return fail("data", round, 0);
	/* nothing beside the pieces was touched */
	for (int i = 0; i < nin; i++)
		memset(in[i].iov_base, 0xee, in[i].iov_len);
	if (to[0] != 0xee || memcmp(to, to + 1, AREA - 1) != 0)
		return fail("memory beside a piece", round, 0);
	return 0;
}

/* [p, p + len) in nine pieces, none of a length that is a multiple of anything. */
static int in_nine(uint8_t *p, size_t len, struct iovec *iov)
{
	size_t step = len / SEGMENTS, at = 0;

	if (step < 2)
		return iov[0] = (struct iovec){ p, len }, 1;
	for (int i = 0; i < SEGMENTS; i++) {
		size_t n = i == SEGMENTS - 1 ? len - at : i % 2 ? step - 1 : step;

		iov[i] = (struct iovec){ p + at, n };
		at += n;
	}
	return SEGMENTS;
}

/* One length at one offset: out of an odd address, into another; what lies around it stays. */
static int one_length(struct leat_file *f, uint8_t *from, uint8_t *to, size_t len, uint64_t off,
		      bool nine)
{
	struct iovec out[SEGMENTS], in[SEGMENTS];
	int nout = 1, nin = 1;
	ssize_t rc;

	out[0] = (struct iovec){ from + 1, len };
	in[0] = (struct iovec){ to + 3, len };
	if (nine) {
		nout = in_nine(from + 1, len, out);
		nin = in_nine(to + 3, len, in);
	}
	memset(to, 0xee, len + 8);
	rc = leat_pwritev(f, out, nout, off);
	if (rc != (ssize_t)len)
		return fail("pwritev", (int)len, rc);
	rc = leat_preadv(f, in, nin, off);
	if (rc != (ssize_t)len)
		return fail("preadv", (int)len, rc);
	if (memcmp(to + 3, from + 1, len) != 0 || to[2] != 0xee || to[len + 3] != 0xee)
		return fail("data", (int)len, 0);
	return 0;
}

static int lengths(struct leat_file *f, uint8_t *from, uint8_t *to)
{
	static const size_t edges[] = { 0, 1024, 4096, 1 << 20 };
	static const uint64_t offsets[] = { 0, 1, 4093, 1048573 };

	for (size_t e = 0; e < sizeof(edges) / sizeof(edges[0]); e++) {
		for (size_t n = edges[e] ? edges[e] - AROUND : 0; n <= edges[e] + AROUND; n++) {
			for (unsigned o = 0; o < 4; o++) {
				/* each megabyte once, the others at every offset */
				if (edges[e] > 4096 && o != n % 4)
					continue;
				fill(from, 64);
				if (one_length(f, from, to, n, offsets[o], (n + o) % 2))
					return 1;
			}
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	uint8_t *from, *to, *want, *got;
	struct leat_file *f;
	struct leat *m;
	int rc;

	if (argc != 2) {
		fprintf(stderr, "usage: pieces URL\n");
		return 2;
	}
	from = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	to = malloc(AREA);
	want = malloc(AREA);
	got = malloc(AREA);
	if (from == MAP_FAILED || !to || !want || !got)
		return 1;
	rc = leat_mount(argv[1], NULL, &m);
	if (rc) {
		fprintf(stderr, "pieces: %s\n", leat_error(NULL));
		return 1;
	}
	rc = leat_open(m, "pieces", O_RDWR | O_CREAT | O_TRUNC, 0644, &f);
	if (rc)
		return fail("open", 0, rc);
	fill(from, AREA);
	for (int round = 0; round < 60; round++)
		if (one_round(f, round, from, to, want, got, round % 2))
			return 1;
	if (lengths(f, from, to))
		return 1;
	rc = leat_close(f);
	if (rc)
		return fail("close", 0, rc);
	rc = leat_unlink(m, "pieces");
	leat_umount(m);
	return rc ? fail("unlink", 0, rc) : 0;
}
