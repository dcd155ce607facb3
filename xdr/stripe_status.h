/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_status.h - names the statuses of stripes.x
 */
#ifndef LEAT_STRIPE_STATUS_H
#define LEAT_STRIPE_STATUS_H

#include <stdint.h>

/** stripe_status_name - "STRIPE_ERR_FENCED", ...; "?" for a number without a name */
const char *stripe_status_name(uint32_t status);

#endif
