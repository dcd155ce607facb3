/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_direct.h - past the page cache: a second descriptor, what it can move, and moving it
 */
#ifndef LEAT_SERVER_STORE_DIRECT_H
#define LEAT_SERVER_STORE_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

#include "store.h"

#define STORE_PART_MIN (64u << 10) /* part_bytes is not less */

/** store_direct_open - a second way into the file that @f has open; on a worker
 * @reads: reads go that way, too
 * @ret: state is STORE_DIRECT_OPEN, or STORE_DIRECT_NONE
 *
 * Return: 0, or why there is none: -EOPNOTSUPP, or the errno of opening it.
 */
int must_check store_direct_open(const struct store_file *f, bool reads,
				 struct store_direct *ret);

/** store_direct_fits - can all of @io, a read, go directly, in one operation?
 *
 * If so ext_head and ext_tail say how much more is read, so that it begins and ends where the device
 * can.
 */
bool must_check store_direct_fits(const struct store_direct *d, struct store_io *io);

/** store_direct_rest - the operation ended after @end bytes of those that store_direct_fits() named
 *
 * Return: of how many bytes of @io that is; it is now of its own length again.
 */
uint32_t must_check store_direct_rest(struct store_io *io, uint32_t end);

/** store_direct_move_all - as store_file_move_all(), by io->direct: what is not aligned at both ends
 * goes through the page cache, what is between them directly; blocks */
int32_t store_direct_move_all(struct store_io *io);

/** store_direct_resident - are these bytes in the page cache? Looking brings none there
 *
 * Where the kernel does not say so, they are not; where it says so only of one's own files, those
 * of others are said to be.
 */
bool must_check store_direct_resident(int fd, uint64_t off, uint32_t bytes);

#endif
