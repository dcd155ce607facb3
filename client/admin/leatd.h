/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leatd.h - sends queries to a leatd
 */
#ifndef LT_LEATD_H
#define LT_LEATD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "ctl.h"

struct leat;

union lt_leatd_answer {
	ctl_info info;
	ctl_stats stats;
	ctl_answer answer;
	ctl_where where;
	ctl_pieces pieces;
};

struct lt_leatd_question {
	uint32_t proc, reply_max; /* reply_max: bytes of the longest reply */
	xdrproc_t decode;
	const char *verb; /* for leat_error() */
	bool changes;     /* as lt_call_changes() */
};

/** lt_leatd_ask - makes one call without arguments; waits
 *
 * Return: 0, and the caller frees @ret with xdr_free(); -EOPNOTSUPP: not a leatd; -ENOMEM, -EDEADLK; the error of the
 * call.
 */
int must_check lt_leatd_ask(struct leat *m, const struct lt_leatd_question *q,
			    union lt_leatd_answer *ret);

#endif
