/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dir_ctime.h - which states of a directory clients may know by its ctime
 *
 * Operation: dir_watch.c uses this. A ctime may stand for several states of a directory, as changes of one tick of
 *            the clock share it. struct dir_run tells which clients may know another state than the present one.
 *            What is known of a directory without a struct dir_run is the latest ctime that a client was told
 *            during its tick.
 * Memory:    a static table of hashed directories. It serves all servers of the process: their clients may
 *            be the same.
 * Threads:   any, except that a struct dir_run has one user at a time.
 * Errors:    none.
 */
#ifndef LEAT_SERVER_DIR_CTIME_H
#define LEAT_SERVER_DIR_CTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* A thread may be delayed between reading its clock and storing what it read as a ctime; outside of the
 * directory's lock only this allows for it. */
#define TICK_NS_MAX (50 * NS_PER_MS)

#define CLIENT_MANY UINT64_MAX /* more than one client; no client has this number */

/* Which states of a directory a client may have seen with its present ctime. */
struct dir_run {
	bool known;
	uint64_t ctime_ns;
	uint64_t client; /* 0: one state has this ctime; else the states after the first were made by this client,
			  * or by several (CLIENT_MANY) */
};

static inline uint64_t dir_ctime_hash(uint64_t dev, uint64_t ino)
{
	uint64_t h = (dev ^ ino * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);

	return h >> 32;
}

/** dir_ctime_ns - returns the ctime in nanoseconds; UINT64_MAX for one that is out of range */
uint64_t dir_ctime_ns(const struct statx *stx);

/** dir_ctime_tick - reads the clock that ctimes are taken from, to its last tick */
uint64_t dir_ctime_tick(void);

/** dir_ctime_note - a client may be told @ctime of this directory while other changes may still get it */
void dir_ctime_note(uint64_t dev, uint64_t ino, uint64_t ctime);

/** dir_ctime_was_told - returns false if dir_ctime_note() had no such ctime, nor a later one */
bool dir_ctime_was_told(uint64_t dev, uint64_t ino, uint64_t ctime);

/** dir_run_allows - may @client be told that @before is what the directory was like? */
bool dir_run_allows(const struct dir_run *r, uint64_t client, uint64_t before);

/** dir_run_go_on - adds a change by @client, or an attempt at one; nothing else happened from @before to
 * @after
 */
void dir_run_go_on(struct dir_run *r, uint64_t client, bool changed, uint64_t before, uint64_t after);

#endif
