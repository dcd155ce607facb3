/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leat_block_flow.h - libleat on a volume of fake_volume.h: what the flow tests of leat_block.h share
 *
 * Each test has a fresh server. Functions assert what may fail.
 */
#ifndef TESTS_LEAT_BLOCK_FLOW_H
#define TESTS_LEAT_BLOCK_FLOW_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "fake_volume.h"
#include "leat_block.h"
#include "leat_flow.h"

extern struct fake_volume rig;

/* Members of the rig, and what its thread reads besides: under its lock. */
#define LOCKED(...)                                                                                      \
	do {                                                                                                 \
		pthread_mutex_lock(&rig.lock);                                                               \
		__VA_ARGS__;                                                                                 \
		pthread_mutex_unlock(&rig.lock);                                                             \
	} while (0)
#define SET(member, value)                                                                                   \
	do {                                                                                                 \
		__typeof__(rig.member) n_ = (value); /* may lock, too */                                     \
		LOCKED(rig.member = n_);                                                                     \
	} while (0)
#define GET(member)                                                                                          \
	__extension__({                                                                                      \
		__typeof__(rig.member) v_;                                                                   \
		LOCKED(v_ = rig.member);                                                                     \
		v_;                                                                                          \
	})
#define GET_TEXT(member) block_flow_text(rig.member)

/* A row of the tests */
#define TEST(name) cmocka_unit_test_setup_teardown(name, block_flow_setup, block_flow_teardown)

/** block_flow_setup, block_flow_teardown - open and close the rig */
int block_flow_setup(void **state);
int block_flow_teardown(void **state);

/** block_flow_text - a copy of a text of the rig, for GET_TEXT(); the next call overwrites it */
const char *block_flow_text(const char *member);

/** disk - a copy of the volume's content; the next call overwrites it */
const uint8_t *disk(void);

/** attach - attaches to the volume of @url; @options: "NAME=VALUE&...", or NULL */
struct leat_block *attach(const char *url, const char *options, unsigned flags);

/** detach - detaches, which succeeds */
void detach(struct leat_block *b);

/** stat_of - a counter of leat_stats() */
uint64_t stat_of(struct leat_block *b, const char *name);

/** use_volume - writes, flushes and reads the rig's volume by an attachment that is the only one */
void use_volume(struct leat_block *b);

/** refuse_attach - attaches in vain, with the error @want and @said in the text of leat_error(NULL) */
void refuse_attach(const char *url, unsigned flags, int want, const char *said);

/** await_held - polls until the server holds @n calls */
void await_held(struct leat_block *b, unsigned n);

#endif
