/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_status.c - names the statuses of volumes.x
 *
 * Operation:  One table.
 * Memory:     None.
 * Threads:    Any.
 * Errors:     None.
 */
#include "base/util.h"
#include "volume_status.h"
#include "volumes.h"

const char *volume_status_name(uint32_t status)
{
	static const char *const names[] = {
#define NAME(status) [status] = #status
		NAME(VOLUME_OK),	 NAME(VOLUME_ERR_ACCES), NAME(VOLUME_ERR_STALE),    NAME(VOLUME_ERR_NOTVOLUME),
		NAME(VOLUME_ERR_LAYOUT), NAME(VOLUME_ERR_OLDEPOCH), NAME(VOLUME_ERR_INVAL), NAME(VOLUME_ERR_NOSPC),
		NAME(VOLUME_ERR_FBIG),	 NAME(VOLUME_ERR_ROFS), NAME(VOLUME_ERR_IO),	    NAME(VOLUME_ERR_LATER),
#undef NAME
	};

	return status < ARRAY_SIZE(names) ? names[status] : "?";
}
