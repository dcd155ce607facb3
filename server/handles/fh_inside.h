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

/** fh_inside_now - is the file @fd, found as @name, in @exp now?
 * @proc_fd: of fh_inside_open()
 * @name: NULL for a directory that was not looked up
 *
 * A directory that a local process moved out still has its handle and its descriptor, and what is in
 * it is not the clients' business any more. It is asked of the file itself: the directory may have
 * been back in time, and what was in it outside have been taken away.
 *
 * Takes a bounded time, and asks no file system but that of @fd, whose attributes are in memory as @exp's
 * limits say. For reactors.
 *
 * Return: 0, -ESTALE: it is not; -EAGAIN: fh_inside() can tell; or the errno of looking.
 */
int must_check fh_inside_now(int proc_fd, const struct export *exp, int fd, const char *name);

/** fh_inside - as fh_inside_now(), for workers: paths that are too long for the system are climbed
 * @dir: where it was found, or @fd itself
 *
 * Return: 0, -ESTALE: it is not, or it is too deep to say; or the errno of looking.
 */
int must_check fh_inside(int proc_fd, const struct export *exp, int dir, int fd, const char *name);

#endif
