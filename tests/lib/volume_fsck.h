/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_fsck.h - leat volume fsck in this process; the program is linked with libtools.a (tests/build.mk)
 */
#ifndef VOLUME_FSCK_H
#define VOLUME_FSCK_H

#include <stddef.h>

/** volume_fsck - checks the volume of the rig, or what @target names: a directory of a manager
 * @options: of the command line, separated by blanks
 * @out: gets what it prints, of at most @cap bytes with its NUL
 *
 * Return: its exit status. What fails otherwise is asserted.
 */
int volume_fsck(const char *options, const char *target, char *out, size_t cap);

#endif
