/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cancel_ops.h - random operations that are cancelled at random, and what must hold of each of them
 *
 * Every operation has its own struct cancel_op, which is never used again: it counts the runs of its callback. It also
 * is the user_data by which the operation is cancelled. A slot runs one operation at a time, in its own memory and its
 * own region of a file. When a callback has run, the memory is filled with a pattern:
 *     - of a read: it must not change until the next operation, because no server may write to it any more;
 *     - of a write: the pattern must not appear in the file, because no server may read from it any more.
 */
#ifndef CANCEL_OPS_H
#define CANCEL_OPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat.h"

#define CANCEL_SLOTS 16u
#define CANCEL_MOUNTS 2u

struct cancel_test;
struct cancel_slot;

struct cancel_op {
	struct cancel_slot *slot;
	uint8_t kind;
	atomic_uchar fn, freed;
	atomic_bool cancelled;        /* leat_cancel() has been called, or is about to be */
	unsigned cancels;             /* calls of leat_cancel_all() that had returned when it started */
	int64_t result;
};

/* A write that has changed, or may change, a part of the region. */
struct cancel_write {
	uint64_t off;
	uint32_t len, version;
};

struct cancel_slot {
	struct cancel_test *t;
	struct leat *m;
	struct leat_file *f;          /* read and written; the region of the slot begins at `base` */
	uint64_t base;
	uint8_t *mem;
	size_t cap;
	bool is_buf;                  /* leat_buf memory */
	uint64_t random;
	atomic_bool busy;
	_Atomic(struct cancel_op *) op;
	size_t len, poisoned;         /* bytes of `mem` that hold the pattern since the last operation */
	uint64_t off;
	uint32_t version;             /* of the last write */
	uint16_t *certain;            /* for each byte of the region: the last write with a known outcome */
	struct cancel_write *maybe;   /* writes that may be executed, now or later */
	size_t maybes, maybes_max;
	struct leat_file *opened;
	struct leat_dir *dir;
	struct stat st;
};

struct cancel_test {
	struct leat_session *session;
	struct leat *m[CANCEL_MOUNTS];
	struct leat_file *f[CANCEL_MOUNTS];
	const char *export;           /* the directory that the server exports */
	struct cancel_slot slots[CANCEL_SLOTS];
	struct cancel_op *ops;
	unsigned ops_max;
	atomic_uint started;
	atomic_int may_cancel;        /* half operations: so that operations also end by themselves */
	atomic_uint all_begun, all_done; /* calls of leat_cancel_all() */
	atomic_bool restarted;        /* the server has been: it has forgotten its replies */
	atomic_uint wrong;            /* broken rules; the first few are printed */
	atomic_uint ends[3];          /* operations that ended with a result, -ECANCELED, -EINPROGRESS */
};

/** cancel_test_create - a session with mounts of @url with the options @options, and everything the slots need
 * @threads: of the session
 * @ops_max: operations of the test
 */
struct cancel_test *cancel_test_create(const char *url, const char *const options[CANCEL_MOUNTS], const char *export,
				       const char *threads, unsigned ops_max);

/** cancel_test_start - starts a random operation in a slot that is not busy
 * Return: false: all operations of the test have been started.
 */
bool cancel_test_start(struct cancel_slot *s);

/** cancel_test_cancel - cancels the operation of a slot, if any, unless too many have been cancelled already; any thread
 * that may use the mount */
void cancel_test_cancel(struct cancel_slot *s);

/** cancel_test_cancel_all - cancels all operations of a mount, with the same exception */
void cancel_test_cancel_all(struct cancel_test *t, struct leat *m);

/** cancel_test_run - runs all operations of the test: half of them on this thread, which runs the loop, the rest on two
 * threads beside the service thread, all of which cancel
 * @midway: runs a few times on this thread during the second half; or NULL
 */
void cancel_test_run(struct cancel_test *t, void (*midway)(struct cancel_test *t));

/** cancel_test_is_busy - is an operation of any slot in flight? */
bool cancel_test_is_busy(struct cancel_test *t);

/** cancel_test_check - when no operation is in flight: are all rules kept? Compares the file with what was written. */
void cancel_test_check(struct cancel_test *t);

/** cancel_test_destroy - unmounts and frees */
void cancel_test_destroy(struct cancel_test *t);

/** cancel_random - a number below @n */
uint32_t cancel_random(uint64_t *state, uint32_t n);

#endif
