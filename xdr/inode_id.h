/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * inode_id.h - the inode that the layout of a striped file is signed for
 */
#ifndef LEAT_INODE_ID_H
#define LEAT_INODE_ID_H

#include <stdint.h>

#include "base/util.h"
#include "file_layout.h"

/** inode_id_find - finds the generation of a file, which tells it from a later one with the same number
 * @fd: of the file, O_PATH or not
 * @ino: its number
 *
 * A file system without handles has no generation: it is 0. Return: 0; -errno of another failure.
 */
int must_check inode_id_find(int fd, uint64_t ino, struct inode_id *ret);

#endif
