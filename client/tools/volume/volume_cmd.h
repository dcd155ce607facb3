/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_cmd.h - the parts of `leat volume`
 */
#ifndef LEAT_TOOL_VOLUME_CMD_H
#define LEAT_TOOL_VOLUME_CMD_H

#include "tool.h"

#define VOLUME_WHY_BYTES 512

/* `leat volume status ...`, df, show, set, add-server with set-url and set-state, fsck, assemble */
extern const struct tool_cmd cmd_volume_status, cmd_volume_show, cmd_volume_set, cmd_volume_add_server, cmd_volume_fsck, cmd_volume_assemble;

#endif
