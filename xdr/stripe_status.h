/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_status.h - maps the statuses of stripes.x to errno, and names them
 */
#ifndef LEAT_STRIPE_STATUS_H
#define LEAT_STRIPE_STATUS_H

#include <stdint.h>

/** stripe_errno - converts a status; Return: 0 or -errno; -EREMOTEIO: unknown */
int stripe_errno(uint32_t status);

/** stripe_status_name - "STRIPE_ERR_FENCED", ...; "?" for a number without a name */
const char *stripe_status_name(uint32_t status);

#endif
