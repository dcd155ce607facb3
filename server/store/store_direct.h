/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_direct.h - direct I/O: a second descriptor that bypasses the page cache, and how to use it
 */
#ifndef LEAT_SERVER_STORE_DIRECT_H
#define LEAT_SERVER_STORE_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

#include "store.h"

#define STORE_PART_MIN (64u << 10) /* minimum of part_bytes */

/** store_direct_open - opens a second, direct descriptor of the file that @f has open; on a worker
 * @reads: reads use it, too
 * @ret: state is STORE_DIRECT_OPEN, or STORE_DIRECT_NONE
 *
 * Return: 0, or why it was not opened: -EOPNOTSUPP, or the errno of opening it.
 */
int must_check store_direct_open(const struct store_file *f, bool reads,
				 struct store_direct *ret);

/** store_direct_fits - checks whether all of @io, a read, can be one direct operation
 *
 * If so, sets ext_head and ext_tail to the bytes that are read in addition, so that the read begins and ends at the
 * device's alignment.
 */
bool must_check store_direct_fits(const struct store_direct *d, struct store_io *io);

/** store_direct_rest - converts @end, the bytes done of those that store_direct_fits() named, and clears the extension
 *
 * Return: bytes of @io that are done.
 */
uint32_t must_check store_direct_rest(struct store_io *io, uint32_t end);

/** store_direct_move_all - as store_file_move_all(), by io->direct: unaligned ends go through the page cache, the part
 * in between directly; blocks */
int32_t store_direct_move_all(struct store_io *io);

/** store_direct_resident - checks whether these bytes are in the page cache, without loading them
 *
 * False if the kernel cannot tell. A kernel that tells the truth only about the process's own files reports those of
 * others as resident.
 */
bool must_check store_direct_resident(int fd, uint64_t off, uint32_t bytes);

#endif
