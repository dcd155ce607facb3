/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_status.c - maps the statuses of stripes.x to errno, and names them
 *
 * Operation:  One table. For a program, a handle that is not accepted is a stale one, whatever the reason.
 * Memory:     None.
 * Threads:    Any.
 * Errors:     None.
 */
#include <errno.h>
#include <stddef.h>

#include "base/util.h"
#include "stripe_status.h"
#include "stripes.h"

static const struct {
	int err;
	const char *name;
} map[] = {
#define MAP(status, err) [status] = { err, #status }
	MAP(STRIPE_OK, 0),
	MAP(STRIPE_ERR_ACCES, EACCES),
	MAP(STRIPE_ERR_BADHANDLE, ESTALE),
	MAP(STRIPE_ERR_EXPIRED, ESTALE),
	MAP(STRIPE_ERR_NOVOLUME, EIO),
	MAP(STRIPE_ERR_FENCED, ESTALE),
	MAP(STRIPE_ERR_NOTREADY, EAGAIN),
	MAP(STRIPE_ERR_OLDLANE, ECONNABORTED),
	MAP(STRIPE_ERR_OLDTERM, EIO),
	MAP(STRIPE_ERR_INVAL, EINVAL),
	MAP(STRIPE_ERR_NOSPC, ENOSPC),
	MAP(STRIPE_ERR_FBIG, EFBIG),
	MAP(STRIPE_ERR_IO, EIO),
	MAP(STRIPE_ERR_TIMEDOUT, ETIMEDOUT),
	MAP(STRIPE_ERR_LATER, EAGAIN),
#undef MAP
};

int stripe_errno(uint32_t status)
{
	return status < ARRAY_SIZE(map) ? -map[status].err : -EREMOTEIO;
}

const char *stripe_status_name(uint32_t status)
{
	return status < ARRAY_SIZE(map) ? map[status].name : "?";
}
