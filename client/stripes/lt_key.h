/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lt_key.h - the key of a volume, with its id
 */
#ifndef LT_KEY_H
#define LT_KEY_H

#include <stdint.h>

#include "stripe_handle.h"

struct leat_volume_key {
	uint64_t volume;
	struct stripe_keys keys;
};

#endif
