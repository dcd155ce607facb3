/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_space.h - a store, a file or device, and a model of one byte per byte
 *
 * Linked with --wrap of fallocate() and lseek(), which count, and refuse what the test says.
 */
#ifndef TEST_STORE_SPACE_H
#define TEST_STORE_SPACE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "store_rig.h"

#define PUNCH_MODE (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define ZERO_MODE (FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE)
#define CAN_PUNCH 1u
#define CAN_ZERO 2u
#define CAN_BOTH (CAN_PUNCH | CAN_ZERO)

static struct store_rig g;
static pthread_t reactor;

/* ---- a file system that can do what the test says ---- */

static unsigned can_really = CAN_BOTH; /* the real one */
static unsigned can = CAN_BOTH;
static int refusal = EOPNOTSUPP; /* what it says to the rest */
static bool pretends;		 /* does nothing, at once */
static unsigned busy;		 /* calls from now on that it refuses with EBUSY */
static unsigned busy_seen;	 /* calls that were refused so by a real one */
static unsigned punches, zeroings, on_reactor;
static uint64_t covered;	 /* end of the last call, if all followed each other */
static uint32_t longest;
static bool in_order;

int __real_fallocate(int fd, int mode, off_t off, off_t len);
int __wrap_fallocate(int fd, int mode, off_t off, off_t len);

int __wrap_fallocate(int fd, int mode, off_t off, off_t len)
{
	bool known = mode == PUNCH_MODE ? can & CAN_PUNCH : mode == ZERO_MODE ? can & CAN_ZERO : false;

	on_reactor += pthread_equal(pthread_self(), reactor) != 0;
	punches += mode == PUNCH_MODE;
	zeroings += mode == ZERO_MODE;
	in_order &= !covered || covered == (uint64_t)off;
	covered = (uint64_t)(off + len);
	longest = MAX(longest, (uint32_t)len);
	if (!known || busy) {
		errno = known ? EBUSY : refusal;
		busy -= busy > 0;
		return -1;
	}
	if (pretends || !__real_fallocate(fd, mode, off, len))
		return 0;
	busy_seen += errno == EBUSY;
	return -1;
}

static inline bool can_punch_now(void)
{
	return can & can_really & CAN_PUNCH;
}

static void forget_calls(void)
{
	punches = zeroings = on_reactor = longest = busy_seen = 0;
	covered = 0;
	in_order = true;
}

/* ---- operations ---- */

static int32_t run_op(struct store_io *io)
{
	store_rig_begin(&g, io);
	store_rig_wait(&g, io);
	return io->res;
}

static inline int32_t change_as(enum store_op op, uint64_t off, uint32_t bytes, bool keep, enum store_stable stable)
{
	struct store_io io = { .op = op, .off = off, .bytes = bytes, .keep = keep, .stable = stable };

	forget_calls();
	return run_op(&io);
}

static inline int32_t zero(uint64_t off, uint32_t bytes, bool keep)
{
	return change_as(STORE_ZERO, off, bytes, keep, STORE_UNSTABLE);
}

static inline int32_t discard(uint64_t off, uint32_t bytes)
{
	return change_as(STORE_DISCARD, off, bytes, false, STORE_UNSTABLE);
}

static inline int32_t extents(uint64_t off, uint32_t bytes, struct store_extents *ret)
{
	struct store_io io = { .op = STORE_EXTENTS, .off = off, .bytes = bytes, .extents = ret };

	memset(ret, 0xff, sizeof(*ret));
	return run_op(&io);
}

static void move_bytes(enum store_op op, uint64_t off, uint8_t *mem, uint32_t bytes)
{
	struct iovec iov = { mem, bytes };
	struct store_io io = { .op = op, .off = off, .iov = &iov, .iovcnt = 1, .bytes = bytes, .size_hint = UINT64_MAX };

	assert_int_equal(run_op(&io), bytes);
}

/* ---- at random, beside a model ---- */

#define PAGE 4096u
#define MODEL_PAGES 6u
#define MODEL_ROOM (MODEL_PAGES * PAGE)

static struct {
	uint32_t size, unit; /* bytes; offsets and lengths are multiples of unit */
	uint64_t random;
	uint8_t is[MODEL_ROOM];
	bool undefined[MODEL_ROOM];
	uint8_t *seen; /* of whole pages */
	int direct_fd; /* or -1 */
} model;

static inline uint8_t *model_mem(void)
{
	void *mem = NULL;

	assert_int_equal(posix_memalign(&mem, PAGE, MODEL_ROOM), 0);
	return mem;
}

static uint32_t pick(uint32_t below)
{
	return (uint32_t)(random_next(&model.random) % below);
}

/* Return: an offset up to the end that is likely to be near the edge of a page or sector */
static uint32_t pick_place(void)
{
	static const uint32_t edges[] = { 1, 512, PAGE };
	uint32_t edge = edges[pick(3)], at = pick(model.size / edge + 1) * edge + pick(3) - 1;

	at -= at % model.unit;
	return at > model.size ? model.size : at; /* -1 is beyond it, too */
}

static void model_check(const char *what)
{
	for (uint32_t i = 0; i < model.size; i++) {
		if (!model.undefined[i] && model.seen[i] != model.is[i])
			fail_msg("%s: byte %u is %02x instead of %02x", what, i, model.seen[i], model.is[i]);
	}
}

static void model_compare(void)
{
	uint32_t from = pick_place(), to = pick_place();
	ssize_t n;

	memcpy(model.seen, model.is, model.size);
	if (from < to)
		move_bytes(STORE_READ, from, model.seen + from, to - from);
	model_check("read by the store");
	if (pick(3) == 0) {
		move_bytes(STORE_READ, 0, model.seen, model.size);
		model_check("all of it read by the store");
	}
	if (pick(3) == 0 && model.direct_fd >= 0) {
		n = pread(model.direct_fd, model.seen, MODEL_ROOM, 0);
		assert_true(n >= (ssize_t)model.size);
		model_check("read directly");
	}
}

/* What is said to read as zeroes does, also if it is not on disk yet. */
static void model_extents(void)
{
	static struct store_extents x;
	uint32_t from = pick_place(), to = pick_place(), at = from;

	if (from >= to)
		return;
	assert_int_equal(extents(from, to - from, &x), to - from);
	for (unsigned i = 0; i < x.n; i++) {
		for (uint64_t k = 0; k < x.v[i].length; k++, at++) {
			if (x.v[i].kind != STORE_DATA_EXTENT && !model.undefined[at] && model.is[at])
				fail_msg("byte %u is %02x and said to be in a hole", at, model.is[at]);
		}
	}
	assert_int_equal(at, to);
}

static void model_step(void)
{
	uint32_t from = pick_place(), to = pick_place(), bytes = to - from;
	enum store_op op = (enum store_op[]){ STORE_WRITE, STORE_WRITE, STORE_ZERO, STORE_ZERO, STORE_DISCARD }[pick(5)];
	uint8_t fill = (uint8_t)(1 + pick(255));

	if (from >= to)
		return;
	if (op == STORE_WRITE) {
		memset(model.seen, fill, bytes);
		move_bytes(STORE_WRITE, from, model.seen, bytes);
		memset(model.is + from, fill, bytes);
	} else if (op == STORE_ZERO) {
		assert_int_equal(zero(from, bytes, pick(2)), bytes);
		memset(model.is + from, 0, bytes);
	} else {
		int32_t res = discard(from, bytes);

		if (res != (int32_t)bytes && (res != -EOPNOTSUPP || can_punch_now()))
			fail_msg("DISCARD [%u, %u): %d", from, to, res);
		if (res == -EOPNOTSUPP)
			return;
	}
	assert_int_equal(on_reactor, 0);
	memset(model.undefined + from, op == STORE_DISCARD, bytes);
}

/** model_run - does @steps operations at random on g.file, which has @size bytes; the seed is $SPACE_SEED or printed */
static inline void model_run(uint32_t size, uint32_t unit, unsigned steps)
{
	char path[64];
	const char *env = getenv("SPACE_SEED");

	forget_calls();
	memset(&model, 0, sizeof(model));
	model.size = size;
	model.unit = unit;
	if (env)
		model.random = strtoull(env, NULL, 0);
	else
		assert_int_equal(getrandom(&model.random, sizeof(model.random), 0), sizeof(model.random));
	print_message("SPACE_SEED=%#llx\n", (unsigned long long)model.random);
	model.seen = model_mem();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", g.file.fd);
	model.direct_fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	memset(model.is, 0xa5, size);
	memset(model.seen, 0xa5, size);
	move_bytes(STORE_WRITE, 0, model.seen, size);
	for (unsigned i = 0; i < steps; i++) {
		model_step();
		model_compare();
		model_extents();
	}
	if (model.direct_fd >= 0)
		close(model.direct_fd);
	free(model.seen);
}

#endif
