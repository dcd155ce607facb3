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

union fh_kernel {
	struct file_handle h;
	uint8_t room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
};

/** fh_kernel_get - gets the kernel's handle of @name in @fd, or of @fd itself if @name is ""
 * @ret_mount: receives the id of its mount
 *
 * Return: 0 or -errno.
 */
int must_check fh_kernel_get(int fd, const char *name, union fh_kernel *ret, int *ret_mount);

#endif
