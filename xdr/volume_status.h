/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_status.h - maps the statuses of volumes.x to errno, and names them
 */
#ifndef LEAT_VOLUME_STATUS_H
#define LEAT_VOLUME_STATUS_H

#include <stdint.h>

/** volume_errno - converts a status; Return: 0 or -errno; -EREMOTEIO: unknown */
int volume_errno(uint32_t status);

/** volume_status_name - "VOLUME_ERR_LAYOUT", ...; "?" for a number without a name */
const char *volume_status_name(uint32_t status);

#endif
