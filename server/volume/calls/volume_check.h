/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_check.h - what the manager of a volume tells a check: names that have moved, and what is pending
 */
#ifndef LEAT_SERVER_VOLUME_CHECK_H
#define LEAT_SERVER_VOLUME_CHECK_H

#include "base/util.h"
#include "volumes.h"

struct volume_manager;

/** volume_check - describes the manager, and what is pending behind @after
 * @after: an object; NULL: from the beginning
 * @room: gets the entries; the result refers to it
 *
 * Blocks, and does not run inside of creds_assume(). Return: 0, -errno.
 */
int must_check volume_check(struct volume_manager *m, const char *after, volume_pending_entry room[VOLUME_CHECK_MAX],
			    VOLCHECKresok *ret);

#endif
