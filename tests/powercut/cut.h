/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cut.h - the power cut tester: clients that log what they were promised, and what must be there then
 *
 * Each thread has CUT_SLOTS names, half of them in either of two directories, and does one operation at
 * a time: a record that says what it is about to ask goes to the log, the call is made, and a record
 * that says what was answered follows. The log survives the cut. Whatever order the threads ran in, a
 * thread's own records tell what must be found afterwards: all that was answered, and of the one
 * operation that was not either all or nothing.
 */
#ifndef TESTS_POWERCUT_CUT_H
#define TESTS_POWERCUT_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpcrdma.h"

#define CUT_SLOTS 12u
#define CUT_RECORDS 8u /* of a file, one after the other from its start */
#define CUT_RECORD_BYTES 512u
#define CUT_THREADS_MAX 16u
#define CUT_WHY_BYTES 512u

enum cut_kind {
	CUT_CREATE,
	CUT_GUARDED,
	CUT_EXCLUSIVE,
	CUT_MKDIR,
	CUT_SYMLINK,
	CUT_MKNOD,
	CUT_LINK,   /* slot to slot */
	CUT_RENAME, /* slot to slot, which may be taken */
	CUT_REMOVE,
	CUT_RMDIR,
	CUT_WRITE,
	CUT_COMMIT,
	CUT_SIZE, /* to a number of records */
	CUT_MODE,
	CUT_KINDS,
};

enum cut_phase { CUT_BEGIN = 1, CUT_END };

/* One record of the log. */
struct cut_op {
	uint32_t magic, serial;
	uint32_t thread, phase, kind;
	uint32_t slot, to;
	uint32_t record;  /* WRITE; SIZE: how many are left */
	uint32_t stable;  /* WRITE: as in the call */
	uint32_t mode;	  /* MODE */
	uint32_t status;  /* END: nfsstat3 */
	uint32_t unused;
	uint64_t verf;	  /* EXCLUSIVE: of the create; END of WRITE, COMMIT: of the answer */
	uint64_t sum;	  /* of all before */
};

enum cut_type { CUT_ABSENT, CUT_FILE, CUT_DIR, CUT_LINKED, CUT_FIFO };

struct cut_name {
	enum cut_type type;
	uint32_t what; /* FILE: which; LINKED: of which operation */
};

/* A record carries the serial of the operation that wrote it; 0: none did. */
struct cut_record {
	uint32_t stable;  /* at least this one must be found */
	uint32_t last;	  /* at most this one */
	uint32_t pending; /* unstable, answered with verf; 0: none */
	uint64_t verf;
};

struct cut_file {
	bool exclusive; /* made so, and not changed since */
	uint64_t create_verf;
	uint32_t mode; /* UINT32_MAX: any */
	uint32_t min, max; /* records */
	uint64_t ino;  /* as found */
	struct cut_record rec[CUT_RECORDS];
};

/* What one thread was promised. */
struct cut_expect {
	unsigned thread;
	struct cut_name names[CUT_SLOTS];
	struct cut_file *files;
	uint32_t nfiles, room;
	uint32_t serial; /* of the last operation */
	struct cut_op open; /* begun and not ended */
	bool is_open;
	bool broken; /* an operation on names failed: nothing may follow */
	uint64_t acked;
};

void cut_expect_init(struct cut_expect *e, unsigned thread);
void cut_expect_fini(struct cut_expect *e);

/** cut_seal - fill in magic and sum */
void cut_seal(struct cut_op *op);

/** cut_expect_take - the next record of this thread's log
 *
 * Return: 0; -EPROTO: makes no sense after what came before; -ENOMEM.
 */
int cut_expect_take(struct cut_expect *e, const struct cut_op *op);

/** cut_path - "A/t0_3" */
void cut_path(unsigned thread, uint32_t slot, char ret[32]);

/** cut_dir - of the two directories, which */
const char *cut_dir(unsigned i);

/** cut_target - what the symbolic link made by this operation points to */
void cut_target(unsigned thread, uint32_t serial, char ret[128]);

/** cut_fill - a record of a file's contents */
void cut_fill(unsigned thread, uint32_t file, uint32_t record, uint32_t serial,
	      uint8_t ret[CUT_RECORD_BYTES]);

/** cut_verify - look at what is below @root
 * @why: what was missing first; also gets a word on success
 *
 * Return: how many promises were broken.
 */
unsigned cut_verify(struct cut_expect *e, const char *root, char why[CUT_WHY_BYTES]);

/* ---- the clients -------------------------------------------------------------------------- */

/* Where the records go. */
struct cut_log {
	/* Return: false: the power is off; nothing was logged */
	bool (*put)(struct cut_log *log, const struct cut_op *op);
};

struct cut_conn;

/** cut_connect - mount /@export of a leatd; makes the two directories if they are not there
 *
 * Return: 0 or -errno.
 */
int cut_connect(const char *url, const char *export, unsigned stamp, struct cut_conn **ret);
void cut_disconnect(struct cut_conn *c);

/** cut_drive - random operations until @ops are done, the log says stop, or something fails
 * @may_fail: answers other than OK are possible (of WRITE, COMMIT, SETATTR)
 *
 * Return: 0, or -EPROTO: an answer that cannot be; @why tells.
 */
int cut_drive(struct cut_conn *c, struct cut_expect *e, struct cut_log *log, uint64_t seed,
	      unsigned ops, bool may_fail, char why[CUT_WHY_BYTES]);

/** cut_recheck - after the restart, by NFS: exclusive creates again, and COMMIT of what was pending
 *
 * Where the server says by its verifier that nothing was lost, that is expected from then on. Comes
 * before cut_verify().
 *
 * Return: how many promises were broken.
 */
unsigned cut_recheck(struct cut_conn *c, struct cut_expect *e, char why[CUT_WHY_BYTES]);

#endif
