/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_sim.h - what a test can do to a modelled disk
 */
#ifndef LEAT_SERVER_STORE_SIM_H
#define LEAT_SERVER_STORE_SIM_H

#include <stddef.h>

#include "base/util.h"

/** store_sim_cut - the power of the modelled disk below @dir goes and comes back
 *
 * What was not stable is not in its files any more. Requests that are under way go on.
 * @ret_bytes: how much was forgotten
 *
 * Return: 0; -ENOENT: there is no such disk in use, or its cache is not volatile; or the errno of
 * looking at the directory.
 */
int must_check store_sim_cut(const char *dir, size_t *ret_bytes);

#endif
