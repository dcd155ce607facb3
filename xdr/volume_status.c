/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_status.c - maps the statuses of volumes.x to errno, and names them
 *
 * Operation:  One table.
 * Memory:     None.
 * Threads:    Any.
 * Errors:     None.
 */
#include <errno.h>
#include <stddef.h>

#include "base/util.h"
#include "volume_status.h"
#include "volumes.h"

static const struct {
	int err;
	const char *name;
} map[] = {
#define MAP(status, err) [status] = { err, #status }
	MAP(VOLUME_OK, 0),
	MAP(VOLUME_ERR_ACCES, EACCES),
	MAP(VOLUME_ERR_STALE, ESTALE),
	MAP(VOLUME_ERR_NOTVOLUME, EINVAL),
	MAP(VOLUME_ERR_LAYOUT, EIO),
	MAP(VOLUME_ERR_OLDEPOCH, ESTALE),
	MAP(VOLUME_ERR_INVAL, EINVAL),
	MAP(VOLUME_ERR_NOSPC, ENOSPC),
	MAP(VOLUME_ERR_FBIG, EFBIG),
	MAP(VOLUME_ERR_ROFS, EROFS),
	MAP(VOLUME_ERR_IO, EIO),
	MAP(VOLUME_ERR_LATER, EAGAIN),
	MAP(VOLUME_ERR_EXIST, EEXIST),
#undef MAP
};

int volume_errno(uint32_t status)
{
	return status < ARRAY_SIZE(map) ? -map[status].err : -EREMOTEIO;
}

const char *volume_status_name(uint32_t status)
{
	return status < ARRAY_SIZE(map) ? map[status].name : "?";
}
