/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs.h - the verbs fabric: how it is opened
 *
 * What it is and how it works: verbs.c. A fabric is one RDMA device: InfiniBand, RoCE or iWARP, in
 * hardware or in software (rxe). No header of libibverbs is needed to use this one.
 */
#ifndef RR_VERBS_H
#define RR_VERBS_H

#include <stdbool.h>

#include "fabric.h"

struct rr_verbs_attr {
	const char *device;   /* "mlx5_0"; NULL: the first with an active port, hardware first */
	bool unsafe_inv;      /* tests: windows and Send-With-Invalidate also where a mistake of
	                       * either end crashes the host's kernel (rxe) */
};

/** rr_verbs_open - open an RDMA device
 * @attr: may be NULL for the defaults; copied
 * @ret: closed with rr_fabric_close() when nothing of it is in use
 *
 * Quick, silent and without a trace where there is no device.
 *
 * Return: 0; -ENODEV: there is none (of that name); -EACCES: there is one and it may not be opened;
 * -ENOMEM; what the device said.
 */
must_check int rr_verbs_open(const struct rr_verbs_attr *attr, struct rr_fabric **ret);

#endif
