/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * forgetful.h - a disk that forgets what was not synced, under a server in this process
 *
 * For programs linked with --wrap=fsync,--wrap=fdatasync,--wrap=syncfs,--wrap=pwritev2,--wrap=renameat.
 * The server works in an ordinary directory; beside it this keeps what would be left of it after a
 * power cut, and is stricter than any file system:
 *
 * - data that was written lasts from the fsync(), fdatasync() or syncfs() that began afterwards; of a
 *   write with RWF_SYNC or RWF_DSYNC its own bytes last, and nothing else of the file;
 * - attributes last by fsync() of the file (RWF_SYNC, syncfs());
 * - names last by fsync() of their directory, taken as they are when it begins; a file whose name lasts
 *   and which was never synced is there as it was made, and empty: journals have both in one
 *   transaction;
 * - a name that moves between directories lasts in the one before it is gone from the other, if
 *   another process syncs the other directory meanwhile: no server can prevent that, and journals
 *   have both in one transaction. The server that moves a name has to sync the new directory first;
 * - what is lost when a sync fails is lost for good: only that one caller gets the error, and the next sync
 *   succeeds, as on Linux.
 *
 * What a file system would keep beyond that is luck, and not needed here.
 */
#ifndef TESTS_FLOW_FORGETFUL_H
#define TESTS_FLOW_FORGETFUL_H

#include <stdbool.h>
#include <stdint.h>

/** forgetful_start - from now on; what is below @root lasts
 * @syncs: the power goes when sync number @syncs + 1 from now begins
 * @fail: one in @fail syncs of a file with unsynced data loses that data; 0: none
 */
void forgetful_start(const char *root, unsigned syncs, unsigned fail, uint64_t seed);

/** forgetful_do - run @fn unless the power is off; nothing that lasts changes meanwhile
 * Return: whether it ran */
bool forgetful_do(void (*fn)(void *arg), void *arg);

/** forgetful_cut - the power goes now, if it has not */
void forgetful_cut(void);

/** forgetful_restore - what has lasted, in @to, which does not exist yet */
void forgetful_restore(const char *to);

/** forgetful_stop - an ordinary disk again */
void forgetful_stop(void);

/** forgetful_syncs - how many began since the start; _failed: how many lost something */
unsigned forgetful_syncs(void);
unsigned forgetful_failed(void);

#endif
