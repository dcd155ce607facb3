/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leftovers.h - temporary files of killed copies, hidden names of crashed programs
 */
#ifndef LEAT_TOOL_LEFTOVERS_H
#define LEAT_TOOL_LEFTOVERS_H

#include <stdbool.h>

/** leftovers_remove - removes the leftovers of this user in a directory and prints them
 * @arg: URL, or a local directory
 * @recursive: also in directories below
 *
 * Return: exit status.
 */
int leftovers_remove(const char *arg, bool recursive);

#endif
