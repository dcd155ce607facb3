/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * closing.h - descriptors that workers close for a reactor, many at a time
 *
 * Invariants: no reactor closes a descriptor of an exported file. The last one of a removed file frees its blocks, and
 * waits where the file system hangs. No file system waits for another one.
 */
#ifndef LEAT_SERVER_CLOSING_H
#define LEAT_SERVER_CLOSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

#define CLOSING_BATCH 64u /* descriptors that go to a worker together */

struct closing;
struct reactor;
struct store_file;

/** closing_create - for one reactor, which has an engine and workers
 *
 * Return: 0 or -ENOMEM.
 */
int must_check closing_create(struct reactor *r, struct closing **ret);

/** closing_destroy - closes what is left; no worker runs. NULL is fine. */
void closing_destroy(struct closing *c);

/** closing_has_room - is it worth opening more files of a file system, only to close them here?
 * @fs: st_dev of the export
 *
 * False: it is slow, or hangs. What is open already may be added all the same.
 */
bool closing_has_room(const struct closing *c, uint64_t fs);

/** closing_count - how many descriptors of a file system are still to be closed
 * @all: those of all file systems
 */
size_t closing_count(const struct closing *c, uint64_t fs, size_t *all);

/** closing_hurry - do not wait for the timer with what is to be closed of a file system
 *
 * Unless some of it is under way already, what was collected is begun with.
 */
void closing_hurry(struct closing *c, uint64_t fs);

/** closing_add - have @fd closed soon
 * @fs: st_dev of its export
 *
 * The reactor's thread. Without memory it is closed at once.
 */
void closing_add(struct closing *c, uint64_t fs, int fd);

/** closing_file - have all descriptors of @f closed soon; as closing_add() */
void closing_file(struct closing *c, const struct store_file *f);

#endif
