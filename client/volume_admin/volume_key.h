/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_key.h - commands that are signed with the key of a volume
 */
#ifndef LT_VOLUME_KEY_H
#define LT_VOLUME_KEY_H

#include <stdint.h>

#include "base/util.h"
#include "leat_volume.h"
#include "lt_key.h"

/** lt_volume_sign - signs a command for a minute
 * @server: id; 0: the manager
 *
 * Return: 0; -EIO: no random numbers.
 */
int must_check lt_volume_sign(const struct leat_volume_key *key, uint32_t server, uint64_t term, const struct stripe_order *o,
			      char ret[STRIPE_COMMAND_BYTES]);

#endif
