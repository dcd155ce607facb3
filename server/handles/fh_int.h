/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_int.h - shared by fh.c and fh_set.c
 */
#ifndef LEAT_SERVER_FH_INT_H
#define LEAT_SERVER_FH_INT_H

#include <fcntl.h>

#include "base/util.h"
#include "fh.h"

#define FH_HEAD_BYTES 8u
#define FH_MAC_BYTES 8u
#define FH_BODY_MAX (FH_MAX - FH_HEAD_BYTES - FH_MAC_BYTES)
#define FH_KERNEL_MAX (FH_BODY_MAX - 4u)

#define FH_WALK_FLAGS (O_PATH | O_NOFOLLOW | O_CLOEXEC)

struct fh_set {
	struct export_table *exports;
	struct fh_keys keys;
	uint8_t key_ids[ARRAY_SIZE(((struct fh_keys *)0)->v)];
	struct fh_map *map;
	char *map_dir; /* NULL: in memory only */
	int proc_fd; /* for fh_inside() */
	bool is_view; /* all members above, except the exports, belong to another set */
};

#endif
