/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tumble.h - the parts of the random tester: options, operations, back ends, the model
 */
#ifndef TESTS_TUMBLE_TUMBLE_H
#define TESTS_TUMBLE_TUMBLE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define TUMBLE_DEPTH_MAX 64u
#define TUMBLE_PIECES_MAX 6
#define TUMBLE_BYTES_MAX ((uint64_t)1 << 30)

struct tumble_opts {
	uint64_t seed, count;
	uint64_t size_max;         /* the file never grows beyond */
	uint64_t len_max;          /* no operation moves more */
	unsigned depth;            /* operations at once, where the back end can */
	uint64_t check_every;      /* operations between two looks at the whole */
	bool direct, map;          /* use O_DIRECT, mmap as well */
	uint32_t direct_align;
	bool restarts;             /* the server may be killed: a reported loss is repaired */
	bool verbose;
	const char *log;           /* where the log of a failure goes; NULL: nowhere */
	const volatile sig_atomic_t *stop;
};

/* ---- random.c: numbers, and bytes that can be told apart --------------------------------- */

struct rnd {
	uint64_t state;
};

uint64_t rnd_mix(uint64_t a, uint64_t b);
uint64_t rnd_next(struct rnd *r);
uint64_t rnd_below(struct rnd *r, uint64_t n);
bool rnd_chance(struct rnd *r, unsigned percent);
uint64_t rnd_size(struct rnd *r, uint64_t max);
uint64_t rnd_place(struct rnd *r, uint64_t size, uint64_t max);
void pattern_fill(uint8_t *p, size_t len, uint64_t key, uint64_t off);
uint8_t pattern_byte(uint64_t key, uint64_t off);

/* ---- op.c: operations on a file, as numbers and as words --------------------------------- */

enum op_kind { OP_READ, OP_WRITE, OP_TRUNCATE, OP_STAT, OP_FSYNC, OP_REOPEN, OP_CHECK, OP_KINDS };

/* In which way; bits of struct op.how. A back end says which it can. */
#define HOW_DIRECT (1u << 0)       /* O_DIRECT */
#define HOW_MAP (1u << 1)          /* mmap, and msync after a write */
#define HOW_PATH (1u << 2)         /* truncate and stat by name */
#define HOW_VECTOR (1u << 3)       /* in pieces */
#define HOW_SEQ (1u << 4)          /* at the file's own position: read-ahead */
#define HOW_POOL (1u << 5)         /* the back end's own memory */
#define HOW_SYNC (1u << 6)         /* reopen: O_SYNC */
#define HOW_DSYNC (1u << 7)        /* reopen: O_DSYNC */
#define HOW_BUSY (1u << 8)         /* reopen: while others are still in flight */
#define HOW_ALL 0x1ffu

struct op {
	uint64_t number;           /* seeds what it writes and how it is cut */
	enum op_kind kind;
	unsigned how;
	uint64_t off, len;         /* truncate: len is the new size */
};

struct oplog {
	struct op *ops;
	size_t count, room;
};

struct chooser {
	struct rnd rnd;
	uint64_t seq_end;          /* where the last read at the file's own position has ended */
};

void op_choose(struct chooser *c, const struct tumble_opts *o, unsigned can, uint64_t size,
	       struct op *ret);
int op_print(FILE *out, const struct op *op);
int op_parse(const char *line, struct op *ret);
int oplog_add(struct oplog *log, const struct op *op);
void oplog_fini(struct oplog *log);
int oplog_save(const struct oplog *log, const char *path, const struct tumble_opts *o);
int oplog_load(const char *path, struct tumble_opts *o, struct oplog *ret, char *why, size_t room);

/* ---- back ends --------------------------------------------------------------------------- */

/* One operation on its way. The memory is the tester's, and stays in place until `done`. */
struct back_io {
	const struct op *op;
	struct iovec iov[TUMBLE_PIECES_MAX];
	int iovcnt;                /* 1 without HOW_VECTOR */
	struct stat st;            /* OP_STAT */
	int64_t result;            /* bytes, 0, or -errno */
	bool done;
};

struct back;

/* Every member is there; all return 0 or -errno. */
struct back_ops {
	const char *name;
	bool async;                /* start() may return before the end */
	/* opens the file for reading and writing; @flags beyond that: O_CREAT, O_TRUNC, O_SYNC ... */
	int (*open)(struct back *b, int flags);
	/* waits for what is in flight; the file is closed even if this fails */
	int (*close)(struct back *b);
	/* any of OP_READ to OP_FSYNC; `done` is set then or in wait() */
	int (*start)(struct back *b, struct back_io *io);
	/* until something has got done, or a signal came */
	int (*wait)(struct back *b);
	int (*unlink)(struct back *b);
	int (*alloc)(struct back *b, size_t bytes, void **ret);
	void (*free)(struct back *b, void *mem);
	/* more about the last error */
	const char *(*why)(struct back *b);
	/* is @err, of close or OP_FSYNC, the news that a server has lost unstable data? */
	bool (*is_loss)(struct back *b, int err);
	uint64_t (*reconnects)(struct back *b);
	void (*destroy)(struct back *b);
};

struct back {
	const struct back_ops *ops;
	unsigned can;              /* HOW_ bits */
};

int back_posix_create(const char *path, const struct tumble_opts *o, struct back **ret, char *why,
		      size_t room);
int back_leat_create(const char *url, struct back **ret, char *why, size_t room);
bool back_is_url(const char *target);
int back_leat_split(const char *url, char **ret_dir, char **ret_name);

/* ---- model.c: what the file has to be ---------------------------------------------------- */

struct model {
	uint8_t *bytes;            /* zero from size to max */
	uint64_t size, max;
};

int model_init(struct model *m, uint64_t max);
void model_fini(struct model *m);
void model_write(struct model *m, uint64_t off, const uint8_t *p, uint64_t len);
void model_truncate(struct model *m, uint64_t size);
uint64_t model_readable(const struct model *m, uint64_t off, uint64_t len);
void model_explain(const struct model *m, const struct oplog *log, uint64_t seed, uint64_t off,
		   const uint8_t *got, uint64_t len, FILE *out);
int model_save(const struct model *m, const char *path);

/* ---- file.c ------------------------------------------------------------------------------ */

struct tumble_sum {
	uint64_t ops[OP_KINDS], bytes_read, bytes_written, reconnects, losses;
};

/* @replay: instead of random operations; may be NULL. @ret_model, if set, is the caller's to end. */
int tumble_file(struct back *b, const struct tumble_opts *o, const struct oplog *replay, FILE *out,
		struct tumble_sum *ret_sum, struct model *ret_model);

#endif
