/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump_session.h - a conversation, captured without a network, that a test may spoil in one place
 *
 * session_make() plays a client and a server that keep all rules and has rpcrdma/filters/capture.c write down
 * what a wire would have carried. A doctor sees each message and transfer before that, and may change
 * it; the image can be changed afterwards.
 */
#ifndef TEST_DUMP_SESSION_H
#define TEST_DUMP_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/tools/dump/dump.h"

enum step {
	STEP_CM,         /* private data of both */
	STEP_NULL_CALL, STEP_NULL_REPLY,
	STEP_READ_CALL,  /* 5000 bytes wanted, a Write chunk of 3000 + 2000 */
	STEP_READ_DATA, STEP_READ_DATA_2,
	STEP_READ_REPLY, /* 4001 came; 0x11 is invalidated */
	STEP_WRITE_CALL, /* 5001 bytes by Read chunk, in two segments */
	STEP_WRITE_PULL, STEP_WRITE_PULL_2,
	STEP_WRITE_REPLY,
	STEP_LINK_CALL,  /* READLINK with a Reply chunk of 120 + 4096 + 4 */
	STEP_LINK_DATA, STEP_LINK_DATA_2,
	STEP_LINK_REPLY, /* a long reply, path of 1001 bytes */
	STEP_LONG_CALL,  /* GETATTR, all of it at position 0 in two segments */
	STEP_LONG_PULL, STEP_LONG_PULL_2,
	STEP_LONG_REPLY,
	STEP_PAIR_CALL, STEP_PAIR_CALL_2, /* two READs of 101 bytes inline at once */
	STEP_PAIR_REPLY, STEP_PAIR_REPLY_2,
	STEP_END,        /* nothing: for what comes in addition */
};

struct said {
	struct rr_hdr hdr;
	uint8_t rpc[8192]; /* behind the header */
	size_t rpc_bytes;
	bool inv;
	uint32_t inv_rkey;
};

struct moved {
	bool write, by_client;
	uint32_t rkey;
	uint64_t va;
	uint8_t *bytes;
	size_t len;
};

struct session;

/* What a doctor gets: one of the three. */
struct patient {
	struct session *s;
	enum step step;
	struct rr_priv *dialled, *listened;
	struct said *said;
	struct moved *moved;
};

typedef void (*doctor_fn)(struct patient *p);

/* A pcap file in memory. */
struct image {
	uint8_t *bytes;
	size_t len;
};

/** session_make - play it; @doctor may be NULL. image_fini() to come. */
void session_make(doctor_fn doctor, struct image *ret);

/* For doctors: what comes before that which they are shown. */
void session_say(struct session *s, bool from_client, const struct said *m);
void session_move(struct session *s, const struct moved *m);
/** said_null - a NULL call, or the reply to it that grants @credits */
void said_null(struct said *m, uint32_t xid, bool call, uint32_t credits);

void image_fini(struct image *i);
/** image_record - the @nth record: offset of its bytes, whose head of 16 is in front; 0 at the end */
size_t image_record(const struct image *i, unsigned nth, size_t *ret_len);
/** image_insert - @len bytes at @at; image_remove - take them away */
void image_insert(struct image *i, size_t at, const void *bytes, size_t len);
void image_remove(struct image *i, size_t at, size_t len);

/** image_dump - run leat dump's insides over it; Return: the text, malloc()ed
 * @ret_rc: of the last call of dump_file_next(), or of dump_file_init()
 * @ret: its counts; may be NULL
 */
char *image_dump(const struct image *i, const struct dump_options *options, int *ret_rc,
		 struct dump *ret);

#endif
