/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * replay.c - makes the disk that a power cut would have left, from a log of record.c
 *
 *     replay count LOG                                      prints the number of records; on stderr what they are
 *     replay make LOG MOMENT SEED IMAGE BYTES [forget]      the first MOMENT records have happened
 *
 * Operation:  A write is on the disk if it had ended when a sync began that has ended, or if it was durable itself and
 *             has ended. Of all others, any subset of their blocks of 4 KiB: SEED selects which part of them, and which.
 *             They are applied in the order in which they began. With "forget", no sync has happened.
 * Memory:     The log, mapped.
 * Errors:     Reported; exit status 2.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "replay.h"

#define BLOCK UINT64_C(4096)

struct op {
	struct replay_record r;
	const uint8_t *data;
	uint64_t begun, ended; /* numbers of records, from 1; ended 0: not, or it failed */
};

static struct op *ops;
static size_t nops;
static uint64_t records;

static int fail(const char *what)
{
	fprintf(stderr, "replay: %s: %s\n", what, strerror(errno));
	return 2;
}

/* The newest are the likeliest. */
static struct op *find(uint64_t id)
{
	for (size_t i = nops; i-- > 0;) {
		if (ops[i].r.id == id)
			return &ops[i];
	}
	return NULL;
}

static int add(const struct replay_record *r, const uint8_t *data)
{
	if (!(nops & (nops - 1))) {
		struct op *more = realloc(ops, (nops ? 2 * nops : 1) * sizeof(*ops));

		if (!more)
			return -ENOMEM;
		ops = more;
	}
	ops[nops++] = (struct op){ .r = *r, .data = data, .begun = records };
	return 0;
}

static int take(const struct replay_record *r, const uint8_t *data)
{
	struct op *of;

	records++;
	if (r->kind != REPLAY_END)
		return add(r, data);
	of = find(r->id);
	if (!of)
		return -EINVAL;
	if (!r->failed)
		of->ended = records;
	return 0;
}

/* A process that was killed may have left the beginning of a record at the end. */
static int parse(const uint8_t *log, size_t bytes)
{
	struct replay_record r;
	int rc = 0;

	for (size_t at = 0; !rc && bytes - at >= sizeof(r);) {
		memcpy(&r, log + at, sizeof(r));
		at += sizeof(r);
		if (r.magic != REPLAY_MAGIC)
			return -EINVAL;
		if (r.kind == REPLAY_WRITE && r.len > bytes - at)
			return 0;
		rc = take(&r, log + at);
		at += r.kind == REPLAY_WRITE ? r.len : 0;
	}
	return rc;
}

static int load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;
	struct stat st;
	void *map;

	if (fd < 0 || fstat(fd, &st))
		return fail(path);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return fail(path);
	rc = parse(map, (size_t)st.st_size);
	errno = -rc;
	return rc ? fail(path) : 0;
}

static int count(void)
{
	uint64_t n[4] = { 0 }, bytes = 0, durable = 0;

	for (size_t i = 0; i < nops; i++) {
		n[ops[i].r.kind & 3]++;
		bytes += ops[i].r.kind == REPLAY_WRITE ? ops[i].r.len : 0;
		durable += ops[i].r.durable;
	}
	printf("%" PRIu64 "\n", records);
	fprintf(stderr, "%" PRIu64 " writes of %" PRIu64 " KiB (%" PRIu64 " durable), %" PRIu64 " zeroed or discarded, %" PRIu64
		" syncs\n", n[REPLAY_WRITE], bytes >> 10, durable, n[REPLAY_ZERO], n[REPLAY_SYNC]);
	return 0;
}

/* ---- making a disk ---- */

static uint64_t seed;

static uint64_t draw(void) /* splitmix64 */
{
	uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Return: the latest begin of a sync that has ended at @moment; 0: none */
static uint64_t last_sync(uint64_t moment)
{
	uint64_t last = 0;

	for (size_t i = 0; i < nops; i++) {
		if (ops[i].r.kind == REPLAY_SYNC && ops[i].ended && ops[i].ended <= moment)
			last = MAX(last, ops[i].begun);
	}
	return last;
}

static int put(int fd, const struct op *op, uint64_t at, uint64_t len)
{
	static const uint8_t zeroes[BLOCK];
	const uint8_t *from = op->r.kind == REPLAY_WRITE ? op->data + at : zeroes;

	return pwrite(fd, from, len, (off_t)(op->r.off + at)) == (ssize_t)len ? 0 : -1;
}

/* @percent of the blocks. A server may try what its file system can do by an operation behind the end. */
static int apply(int fd, const struct op *op, uint64_t bytes, uint64_t percent)
{
	uint64_t end = op->r.off < bytes ? MIN(op->r.len, bytes - op->r.off) : 0, len;

	for (uint64_t at = 0; at < end; at += len) {
		len = MIN(end - at, BLOCK - (op->r.off + at) % BLOCK);
		if ((percent >= 100 || draw() % 100 < percent) && put(fd, op, at, len))
			return -1;
	}
	return 0;
}

static int make(uint64_t moment, const char *image, uint64_t bytes, bool forget)
{
	static const uint64_t percents[] = { 0, 10, 50, 50, 90, 100 };
	uint64_t percent = percents[draw() % ARRAY_SIZE(percents)], synced = forget ? 0 : last_sync(moment);
	int fd = open(image, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		return fail(image);
	for (size_t i = 0; i < nops && ops[i].begun <= moment; i++) {
		const struct op *op = &ops[i];
		bool ended = op->ended && op->ended <= moment;
		bool stays = ended && !forget && (op->ended < synced || op->r.durable);

		if (op->r.kind != REPLAY_SYNC && apply(fd, op, bytes, stays ? 100 : percent))
			return fail(image);
	}
	return close(fd) ? fail(image) : 0;
}

int main(int argc, char **argv)
{
	bool makes = argc >= 7 && !strcmp(argv[1], "make");

	if (!makes && !(argc == 3 && !strcmp(argv[1], "count"))) {
		fprintf(stderr, "usage: replay count LOG\n       replay make LOG MOMENT SEED IMAGE BYTES [forget]\n");
		return 2;
	}
	if (load(argv[2]))
		return 2;
	if (!makes)
		return count();
	seed = strtoull(argv[4], NULL, 0);
	return make(strtoull(argv[3], NULL, 0), argv[5], strtoull(argv[6], NULL, 0), argc > 7);
}
