/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * small_file.h - small files that leatd keeps for itself
 *
 * They are of mode 0600, and a symbolic link is none of them. Functions block.
 */
#ifndef LEAT_SERVER_SMALL_FILE_H
#define LEAT_SERVER_SMALL_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

/** small_file_read - reads the text of file @name in directory @dir
 * @text: gets it, with a NUL; has room for @bytes
 *
 * Return: 0; -ENOENT; -EINVAL: it has no room, or contains a NUL, so that it is no text; -errno.
 */
int must_check small_file_read(int dir, const char *name, char *text, size_t bytes);

/** small_file_replace - makes @data the contents of file @name in directory @dir, durably; the file need not exist
 * A crash leaves the old contents or the new ones, and perhaps a file NAME.new. One caller at a time.
 *
 * Return: 0; -errno: the old contents are still there, unless only the directory could not be synced.
 */
int must_check small_file_replace(int dir, const char *name, const void *data, size_t bytes);

/** term_load - reads the file "term" of a directory: the newest term of a manager that was obeyed there, decimal
 * Return: 0; without such a file, with 0 in @ret; -EBADMSG: it is damaged; -errno.
 */
int must_check term_load(int dir, uint64_t *ret);

/** term_save - makes it durable; one caller at a time. Return: 0 or -errno */
int must_check term_save(int dir, uint64_t term);

#endif
