/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_status.c - names the statuses of stripes.x
 *
 * Operation:  One table.
 * Memory:     None.
 * Threads:    Any.
 * Errors:     None.
 */
#include "base/util.h"
#include "stripe_status.h"
#include "stripes.h"

const char *stripe_status_name(uint32_t status)
{
	static const char *const names[] = {
#define NAME(status) [status] = #status
		NAME(STRIPE_OK),	   NAME(STRIPE_ERR_ACCES),    NAME(STRIPE_ERR_BADHANDLE), NAME(STRIPE_ERR_EXPIRED),
		NAME(STRIPE_ERR_NOVOLUME), NAME(STRIPE_ERR_FENCED),   NAME(STRIPE_ERR_NOTREADY),  NAME(STRIPE_ERR_OLDLANE),
		NAME(STRIPE_ERR_OLDTERM),  NAME(STRIPE_ERR_INVAL),    NAME(STRIPE_ERR_NOSPC),	  NAME(STRIPE_ERR_FBIG),
		NAME(STRIPE_ERR_IO),	   NAME(STRIPE_ERR_TIMEDOUT), NAME(STRIPE_ERR_LATER),
#undef NAME
	};

	return status < ARRAY_SIZE(names) ? names[status] : "?";
}
