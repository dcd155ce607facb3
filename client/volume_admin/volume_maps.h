/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_maps.h - maps of volumes for programs
 */
#ifndef LT_VOLUME_MAPS_H
#define LT_VOLUME_MAPS_H

#include <stdint.h>

#include "base/util.h"
#include "leat_volume.h"
#include "volumes.h"

/** lt_volume_map_make - copies a map; leat_volume_map_free() frees it
 *
 * Return: 0, -ENOMEM.
 */
int must_check lt_volume_map_make(uint64_t volume, uint64_t version, const volume_server *servers, unsigned n,
				  struct leat_volume_map **ret);

#endif
