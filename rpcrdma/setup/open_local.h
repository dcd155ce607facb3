/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * open_local.h - opens the local fabric with the filters that its attributes ask for
 */
#ifndef RR_OPEN_LOCAL_H
#define RR_OPEN_LOCAL_H

#include "local.h"

/** rr_open_local - rr_local_open(), and filters in front of it for attr->hooks and attr->capture
 * @attr: NULL for the plain fabric; copied
 * @ret: close it with rr_fabric_close() when nothing uses it
 *
 * Return: as rr_local_open(), or the errno of creating the capture file.
 */
must_check int rr_open_local(const struct rr_local_attr *attr, struct rr_fabric **ret);

#endif
