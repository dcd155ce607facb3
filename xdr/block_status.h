/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_status.h - maps the statuses of block.x to errno, and names them
 */
#ifndef LEAT_BLOCK_STATUS_H
#define LEAT_BLOCK_STATUS_H

#include <stdint.h>

/** block_errno - converts a status of a server to an errno
 * @status: from the wire; any number at all
 *
 * Return: 0 for BLOCK_OK, else -errno; -EREMOTEIO for a status that block.x does not have.
 */
int block_errno(uint32_t status);

/** block_status_name - "BLOCK_ERR_NOENT", ...; "?" for a number without a name */
const char *block_status_name(uint32_t status);

#endif
