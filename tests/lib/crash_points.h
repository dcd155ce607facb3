/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * crash_points.h - kills a server or a client of this process at its Nth message or change of the disk
 *
 * For programs that are linked with $(CRASH_POINTS) of tests/build.mk, over TCP. A party is a server or a client. A thread is
 * of the party of the thread that created it, so one that joins a party before server_start() or leat_mount() takes along
 * all threads of that server or client.
 *
 * Points are changes and syncs of files, calls, and replies. What is killed at a point does not do what it was to do there,
 * nor at any later point: no change has an effect any more, and connections end at the next reply. The test ends the server
 * then, and starts another one. What is written to the log of file handles is not looked at.
 */
#ifndef CRASH_POINTS_H
#define CRASH_POINTS_H

#include <stdbool.h>

#define CRASH_PARTIES 16u
#define CRASH_NOBODY 0u /* of threads that have not joined one: it has no points */

/** crash_points_join - from now on the calling thread is of @party, 1 to 15 */
void crash_points_join(unsigned party);

/** crash_points_arm - counts the points of parties @first to @last from now on, and kills the one that comes to point @n + 1
 * CRASH_NOBODY: counts none. Any thread. Parties that were killed before live again, so their threads have ended.
 */
void crash_points_arm(unsigned first, unsigned last, unsigned long n);

/** crash_points_killed - Return: the party that was killed since it was armed; CRASH_NOBODY: none yet */
unsigned crash_points_killed(void);

/** crash_points_disarm - counts no more, and kills no one; what was killed stays so */
void crash_points_disarm(void);

/** crash_points_revive - no party is killed any more; its threads have ended */
void crash_points_revive(void);

#endif
