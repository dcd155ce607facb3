/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_inside.h - is a file in its export now?
 */
#ifndef LEAT_SERVER_FH_INSIDE_H
#define LEAT_SERVER_FH_INSIDE_H

#include "base/util.h"
#include "export.h"

/** fh_inside_open - what fh_inside() looks with; Return: a descriptor to be closed, or -errno */
int must_check fh_inside_open(void);

/** fh_inside - is what was found as @name in the directory @dir, or @dir itself if @fd is that, in @exp?
 * @proc_fd: of fh_inside_open()
 * @name: NULL for @dir itself
 *
 * A directory that a local process moved out still has its handle and its descriptor, and what is in
 * it is not the clients' business any more. It is asked of the file itself: the directory may have
 * been back in time, and what was in it outside have been taken away.
 *
 * Return: 0, -ESTALE: it is not, or the errno of looking.
 */
int must_check fh_inside(int proc_fd, const struct export *exp, int dir, int fd, const char *name);

#endif
