/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lt_mount.h - mounts for other parts of the library
 */
#ifndef LT_MOUNT_H
#define LT_MOUNT_H

#include "base/util.h"
#include "leat.h"

/** lt_mount_connect - as leat_session_mount() with connect_only, for a volume: messages name it by the path of the URL
 * @s: NULL: a private session, as leat_mount()
 */
must_check int lt_mount_connect(struct leat_session *s, const char *url, const struct leat_opts *opts, struct leat **ret);

#endif
