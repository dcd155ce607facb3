/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leftovers.h - temporary files of copies that were killed
 */
#ifndef LEAT_TOOL_LEFTOVERS_H
#define LEAT_TOOL_LEFTOVERS_H

#include <stdbool.h>

/** leftovers_remove - remove the leftovers of this user in a directory and say which
 * @arg: URL, or a directory of this machine
 * @recursive: and in those below
 *
 * Return: exit status.
 */
int leftovers_remove(const char *arg, bool recursive);

#endif
