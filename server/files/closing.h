/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * closing.h - descriptors that workers close for a reactor, in batches
 *
 * Invariants: a reactor closes descriptors itself only without memory and at its end, because close() may block: the
 * last close() of a removed file frees its blocks. File systems do not wait for each other.
 * Threads:    the reactor's. Creation and destruction while that thread does not run.
 */
#ifndef LEAT_SERVER_CLOSING_H
#define LEAT_SERVER_CLOSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

#define CLOSING_BATCH 64u /* descriptors per worker job */

struct closing;
struct loop;
struct store_file;

/** closing_create - creates the queue of one reactor
 * @loop: of the reactor, with its engine and workers
 * @closed: called with @ctx and the number of descriptors when a batch has been closed
 * @ret: owned by the caller, until closing_destroy()
 *
 * Return: 0 or -ENOMEM.
 */
int must_check closing_create(struct loop *loop, void (*closed)(void *ctx, size_t n), void *ctx, struct closing **ret);

/** closing_destroy - closes all remaining descriptors; no worker may run, the engine must exist. NULL is fine. */
void closing_destroy(struct closing *c);

/** closing_has_room - may a caller open more files of a file system that it adds here soon after?
 * @fs: its st_dev, as backing.dev
 *
 * closing_add() does not depend on the result.
 *
 * Return: false: the file system is slow to close files, or hangs.
 */
bool closing_has_room(const struct closing *c, uint64_t fs);

/** closing_count - counts the descriptors of a file system that are not closed yet, those at workers included
 * @fs: its st_dev, as backing.dev
 * @all: set to the number for all file systems
 */
size_t closing_count(const struct closing *c, uint64_t fs, size_t *all);

/** closing_hurry - submits the descriptors collected for a file system, without waiting for the timer
 * @fs: its st_dev, as backing.dev
 *
 * Does nothing while a worker has a batch of this file system.
 */
void closing_hurry(struct closing *c, uint64_t fs);

/** closing_add - closes @fd soon, on a worker; without memory at once, on this thread
 * @fs: the file system of @fd
 * @fd: owned by @c from now on
 */
void closing_add(struct closing *c, uint64_t fs, int fd);

/** closing_file - calls closing_add() for all descriptors of @f */
void closing_file(struct closing *c, const struct store_file *f);

#endif
