/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_file.h - common code of the stores that keep files in a file system
 */
#ifndef LEAT_SERVER_STORE_FILE_H
#define LEAT_SERVER_STORE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "store.h"

#define STORE_FILE_IOV 64 /* memory in more segments takes more than one system call */

/** store_file_iov - finds the part of @io's memory that holds [@skip, @skip + @len)
 * Bytes of @io are counted from the first that is read: from ext_head before io->off.
 *
 * Return: entries in @out; they hold fewer than @len bytes if @max entries do not suffice.
 */
int store_file_iov(const struct store_io *io, uint32_t skip, uint32_t len, struct iovec *out,
		   int max);

/** store_file_move - moves the bytes [@skip, @skip + @len) of @io by descriptor @fd, in one system call
 * @flags: RWF_*
 *
 * Return: bytes or -errno.
 */
ssize_t store_file_move(int fd, const struct store_io *io, uint32_t skip, uint32_t len, int flags);

/** store_file_by_steps - moves from @at to the end of @io or of its file
 * @step: moves bytes from @at on, in one system call; Return: bytes or -errno
 *
 * Return: bytes of @io that are done, those before @at included; or -errno.
 */
int32_t store_file_by_steps(struct store_io *io, uint32_t at, ssize_t (*step)(struct store_io *io, uint32_t at));

/** store_file_through_cache - moves up to @len bytes from @at on and counts them as copied; Return: bytes or -errno */
ssize_t store_file_through_cache(struct store_io *io, uint32_t at, uint32_t len);

/** store_file_move_all - moves from io->head to its end or the file's, through the page cache; blocks
 *
 * Return: bytes of @io that are done, those before io->head included; or -errno.
 */
int32_t store_file_move_all(struct store_io *io);

/** store_file_write - executes a WRITE, or a stride of DISCARD or ZERO, with its credentials and stability; on a worker
 * @move: as store_file_move_all(); its result is less than io->bytes before the last stride
 *
 * Sets io->res and io->sync_failed.
 */
void store_file_write(struct store_io *io, int32_t (*move)(struct store_io *io));

/** store_file_sync - executes STORE_SYNC; on a worker, or on the reactor if it does not block */
void store_file_sync(struct store_io *io);

/** store_file_run - has a worker run @run, and then the reactor @done; NULL: io->done() */
void store_file_run(struct store_io *io, void (*run)(struct worker_job *), void (*done)(struct worker_job *));

/** store_file_is_complete - checks whether a READ of @n bytes got all bytes, or reached the end of the file */
bool store_file_is_complete(const struct store_io *io, uint32_t n);

#endif
