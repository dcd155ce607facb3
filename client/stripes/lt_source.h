/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lt_source.h - a mount without a manager's server: the program has the layouts (leat_volume_mount())
 */
#ifndef LT_SOURCE_H
#define LT_SOURCE_H

#include "call.h"
#include "leat_volume.h"

/* Of a mount; the owner's thread. */
struct lt_source {
	int (*layout)(void *file, struct leat_volume_question *q);
	const struct leat_volume_key *key; /* the program's */
	uint64_t files;                    /* opened so far */
};

/** lt_source_fh - a handle for a file of the program, which no other file of the mount gets */
void lt_source_fh(struct lt_source *s, void *file, struct lt_fh *ret);

/** lt_source_call - makes a call to the server of such a mount: LAYOUT asks the program, others fail
 * Return: 0: leat_volume_reply() runs its done(); -errno
 */
must_check int lt_source_call(struct lt_call *c);

#endif
