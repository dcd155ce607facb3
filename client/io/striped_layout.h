/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * striped_layout.h - asks the manager for the layout of a file of a striped volume, and for its map if that is newer
 */
#ifndef LT_STRIPED_LAYOUT_H
#define LT_STRIPED_LAYOUT_H

#include "op.h"
#include "striped.h"

/* What follows a LAYOUT. */
enum lt_layout_next {
	LT_LAYOUT_GOOD,
	LT_LAYOUT_AGAIN, /* another LAYOUT */
	LT_LAYOUT_MAP,   /* a MAP: the layout may name servers that the present map does not have */
};

/** lt_layout_take - takes over what a LAYOUT returned, and says what follows
 * For lt_layout_refresh(), and for operations that are no struct lt_op.
 * @sent_ns: when the LAYOUT was sent
 * @asked_again: of the operation, false at first
 * @why: the cause of an error
 *
 * Return: enum lt_layout_next; -ESTALE: it is older than one that came first, also the second time; -EREMOTEIO, -ENOMEM.
 */
must_check int lt_layout_take(struct lt_striped *s, enum lt_striped_use use, const VOLLAYOUTresok *ok, uint64_t sent_ns,
			      bool *asked_again, const char **why);

/** lt_layout_take_map - takes over what a MAP returned; Return: as lt_volume_take_map(), with @why */
must_check int lt_layout_take_map(struct lt_striped *s, const VOLMAPresok *ok, const char **why);

/** lt_layout_refresh - gets new handles for the file of @op: LAYOUT, and MAP if that is newer
 * next(0): the handles are good; next(-errno): explained, as of lt_layout_take() and lt_layout_take_map(), or of the calls.
 */
void lt_layout_refresh(struct lt_op *op, enum lt_striped_use use, lt_op_step next);

#endif
