/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_status.c - maps the statuses of block.x to errno, and names them
 *
 * Operation:  One table. Each status has an errno of its own, except that what is not there is ENOENT, volume or holder.
 * Memory:     None.
 * Threads:    Any.
 * Errors:     None.
 */
#include <errno.h>
#include <stddef.h>

#include "base/util.h"
#include "block.h"
#include "block_status.h"

static const struct {
	int err;
	const char *name;
} map[] = {
#define MAP(status, err) [status] = { err, #status }
	MAP(BLOCK_OK, 0),
	MAP(BLOCK_ERR_ACCES, EACCES),
	MAP(BLOCK_ERR_NOENT, ENOENT),
	MAP(BLOCK_ERR_BUSY, EBUSY),
	MAP(BLOCK_ERR_BADHANDLE, EBADF),
	MAP(BLOCK_ERR_GONE, ENXIO),
	MAP(BLOCK_ERR_FENCED, ESTALE),
	MAP(BLOCK_ERR_OLD_LANE, ECONNABORTED),
	MAP(BLOCK_ERR_INVAL, EINVAL),
	MAP(BLOCK_ERR_NOSPC, ENOSPC),
	MAP(BLOCK_ERR_ROFS, EROFS),
	MAP(BLOCK_ERR_IO, EIO),
	MAP(BLOCK_ERR_NOTSUPP, EOPNOTSUPP),
	MAP(BLOCK_ERR_TIMEDOUT, ETIMEDOUT),
	MAP(BLOCK_ERR_LATER, EAGAIN),
	MAP(BLOCK_ERR_NOHOLDER, ENOENT),
#undef MAP
};

int block_errno(uint32_t status)
{
	return status < ARRAY_SIZE(map) ? -map[status].err : -EREMOTEIO;
}

const char *block_status_name(uint32_t status)
{
	return status < ARRAY_SIZE(map) ? map[status].name : "?";
}
