/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_sim.h - test interface of a modelled disk
 */
#ifndef LEAT_SERVER_STORE_SIM_H
#define LEAT_SERVER_STORE_SIM_H

#include <stddef.h>

#include "base/util.h"

/** store_sim_cut - simulates a power cut of the modelled disk that holds @dir, a directory, file or device
 *
 * Its files lose the data that was not stable. Requests in flight continue.
 * @ret_bytes: number of bytes that were lost
 *
 * Return: 0; -ENOENT: there is no such disk in use, or its cache is not volatile; or the errno of opening @dir.
 */
int must_check store_sim_cut(const char *dir, size_t *ret_bytes);

#endif
