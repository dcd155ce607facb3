/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * open_local.c - opens the local fabric with the filters that its attributes ask for
 *
 * Operation:  Without hooks and capture the fabric stays as it is.
 * Memory:     The fabric's.
 * Threads:    Any.
 * Errors:     Returned; then there is no fabric.
 */
#include "open_local.h"

#include "filter.h"

int rr_open_local(const struct rr_local_attr *attr, struct rr_fabric **ret)
{
	struct rr_fabric *fabric;
	int rc = rr_local_open(attr, &fabric);

	if (!rc && attr) {
		rc = rr_filters_add(fabric, &attr->hooks, attr->capture);
		if (rc)
			rr_fabric_close(fabric);
	}
	if (!rc)
		*ret = fabric;
	return rc;
}
