/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dir_ctime.h - whether a directory's ctime identifies one state for clients
 *
 * Operation: dir_watch.c uses this. One ctime may stand for several states of a directory, because changes
 *            within one tick of the clock share it. struct dir_run records which clients may know a state
 *            other than the present one. For a directory without a struct dir_run, only the latest ctime
 *            that a client received during its tick is known.
 * Memory:    a static table of hashed directories. It serves all servers of the process, because they may
 *            have the same clients.
 * Threads:   any, except that a struct dir_run has one user at a time.
 * Errors:    none.
 */
#ifndef LEAT_SERVER_DIR_CTIME_H
#define LEAT_SERVER_DIR_CTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"

/* A thread may be delayed between reading the clock and storing the value as a ctime. Outside of the directory's
 * lock, this margin allows for it. */
#define TICK_NS_MAX (50 * NS_PER_MS)

#define CLIENT_MANY UINT64_MAX /* more than one client; no client has this number */

/* The states of a directory that clients may have seen with its present ctime. */
struct dir_run {
	bool known;
	uint64_t ctime_ns;
	uint64_t client; /* 0: one state has this ctime; otherwise the states after the first were made by this
	                  * client, or by several (CLIENT_MANY) */
};

static inline uint64_t dir_ctime_hash(uint64_t dev, uint64_t ino)
{
	uint64_t h = (dev ^ ino * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);

	return h >> 32;
}

/** dir_ctime_ns - returns the ctime in nanoseconds; UINT64_MAX for one that is out of range */
uint64_t dir_ctime_ns(const struct statx *stx);

/** dir_ctime_tick - reads the clock of ctimes, at its last tick */
static inline uint64_t dir_ctime_tick(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_REALTIME_COARSE, &ts) || ts.tv_sec < 0)
		return 0;
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/** dir_ctime_note - records that a client may receive @ctime of this directory while other changes may still get the
 * same one
 */
void dir_ctime_note(uint64_t dev, uint64_t ino, uint64_t ctime);

/** dir_ctime_was_told - returns false if dir_ctime_note() was not called with this ctime or a later one */
bool dir_ctime_was_told(uint64_t dev, uint64_t ino, uint64_t ctime);

/** dir_run_allows - may @client be told that @before is the state before the change? */
bool dir_run_allows(const struct dir_run *r, uint64_t client, uint64_t before);

/** dir_run_go_on - adds a change by @client, or an attempt at one; there was no other event from @before to @after */
void dir_run_go_on(struct dir_run *r, uint64_t client, bool changed, uint64_t before, uint64_t after);

#endif
