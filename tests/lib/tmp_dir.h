/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tmp_dir.h - a directory for one test
 */
#ifndef TMP_DIR_H
#define TMP_DIR_H

#include <stdbool.h>
#include <stddef.h>

struct tmp_dir {
	char path[128];
};

/** tmp_dir_create - mode 0755, below $TMPDIR; whatever fails is asserted */
void tmp_dir_create(struct tmp_dir *t);

/** tmp_dir_destroy - with all that is in it */
void tmp_dir_destroy(struct tmp_dir *t);

/** tmp_dir_path - "PATH/@name"; Return: one of a few static buffers */
const char *tmp_dir_path(const struct tmp_dir *t, const char *name);

/** tmp_dir_write - a file with @text in it */
void tmp_dir_write(const struct tmp_dir *t, const char *name, const char *text);

/** tmp_dir_mkdir - a directory, mode 0755 */
void tmp_dir_mkdir(const struct tmp_dir *t, const char *name);

/** tmp_dir_open_below - how many descriptors of this process lead to @path, or below it? Absolute, without links. */
unsigned tmp_dir_open_below(const char *path);

/** tmp_dir_has_direct - can files below $TMPDIR be opened with O_DIRECT? Prints a line if not. */
bool tmp_dir_has_direct(void);

#endif
