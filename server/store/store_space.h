/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_space.h - space of a file or device: DISCARD, ZERO, EXTENTS
 */
#ifndef LEAT_SERVER_STORE_SPACE_H
#define LEAT_SERVER_STORE_SPACE_H

#include "store.h"

/** store_space_submit - executes DISCARD, ZERO or EXTENTS on workers; Return: as store_ops.submit */
int must_check store_space_submit(struct store *s, struct store_io *io);

/** store_space_all_data - the result of EXTENTS where nothing is known: all of the range is data */
void store_space_all_data(struct store_io *io);

#endif
