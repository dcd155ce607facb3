/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_cmd.h - the parts of `leat block`
 */
#ifndef LEAT_TOOL_BLOCK_CMD_H
#define LEAT_TOOL_BLOCK_CMD_H

#include "tool.h"

extern const struct tool_cmd cmd_block_cp; /* `leat block cp ...` */

#endif
