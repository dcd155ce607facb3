/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_size.h - the size of a file whose writer may be gone
 */
#ifndef LEAT_SERVER_VOLUME_SIZE_H
#define LEAT_SERVER_VOLUME_SIZE_H

#include "base/util.h"

struct volume_file;
struct volume_send;

/** volume_size_ask - asks the stripe servers of a file, and raises its size to what they have, durably; never lowers it
 * Also sets the time of the last change if an object was written after the last change of the inode. For the thread of
 * pending work; blocks as volume_send.h does.
 *
 * Return: 0, also if the file was removed, or has no layout; -EAGAIN: it was cut meanwhile;
 * -EHOSTDOWN: a server is away, what the others have counts; -EPERM: another manager is at work; -errno.
 */
int must_check volume_size_ask(struct volume_send *s, const struct volume_file *f);

#endif
