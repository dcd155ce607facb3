/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_inside.h - checks whether a file is inside its export now
 */
#ifndef LEAT_SERVER_FH_INSIDE_H
#define LEAT_SERVER_FH_INSIDE_H

#include "base/util.h"
#include "export.h"

/** fh_inside_open - opens the descriptor that fh_inside() needs; Return: the descriptor, to be closed by the caller,
 * or -errno
 */
int must_check fh_inside_open(void);

/** fh_inside_now - is the file @fd, found as @name, in @exp now?
 * @proc_fd: of fh_inside_open()
 * @name: NULL for a directory that was not looked up
 *
 * A directory that a local process moved out still has its handle and its descriptor, but clients must not access its
 * content any more. The file itself is checked, not its directory: the directory may have been moved back in time,
 * while the file was taken from it outside.
 *
 * Takes a bounded time. It accesses no file system other than that of @fd, and according to @exp's limits the
 * attributes of that are in memory. For reactors.
 *
 * Return: 0; -ESTALE: it is not; -EAGAIN: call fh_inside(); or the errno of checking.
 */
int must_check fh_inside_now(int proc_fd, const struct export *exp, int fd, const char *name);

/** fh_inside - as fh_inside_now(), for workers: also handles paths that are too long for the system
 * @dir: directory in which it was found, or @fd itself
 *
 * Return: 0; -ESTALE: it is not, or it is too deep to check; or the errno of checking.
 */
int must_check fh_inside(int proc_fd, const struct export *exp, int dir, int fd, const char *name);

#endif
