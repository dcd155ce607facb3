/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mntsvc.h - the MOUNT service: from a path to the handle of an export
 */
#ifndef LT_MNTSVC_H
#define LT_MNTSVC_H

#include "handle.h"

/** lt_mntsvc_mount - mounts the export that contains m->url.path: sets m->root, m->export, m->path
 * @why: an error message (one line) on failure
 *
 * Return: 0 or -errno.
 */
must_check int lt_mntsvc_mount(struct leat *m, char *why, size_t cap);

/** lt_mntsvc_umount - tells the service that this mount ends; the last call of the handle
 * @until_ns: time limit, of clock_now_ns(); 0: no limit of the caller. With a limit, no connection is made for it
 */
void lt_mntsvc_umount(struct leat *m, uint64_t until_ns);

#endif
