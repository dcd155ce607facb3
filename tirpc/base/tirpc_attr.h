/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tirpc_attr.h - attributes that a program passes
 */
#ifndef RT_TIRPC_ATTR_H
#define RT_TIRPC_ATTR_H

#include "base/util.h"
#include "rpcrdma_tirpc.h"

#define RT_MAX_BYTES ((size_t)16 << 20) /* default of max_bytes */

/** rt_attr_get - copies the attributes of a program that was built with this or another release, and sets max_bytes and
 * credits if they are 0
 * @attr: NULL for the defaults
 *
 * Return: 0; -E2BIG: a member that this library does not know is set; -EINVAL: a value is out of bounds.
 */
must_check int rt_attr_get(const struct rpcrdma_tirpc_attr *attr, struct rpcrdma_tirpc_attr *ret);

#endif
