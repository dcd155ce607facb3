/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * text.h - makes foreign text safe for a terminal or a log
 */
#ifndef LEAT_BASE_TEXT_H
#define LEAT_BASE_TEXT_H

#include <stdbool.h>

/* Decoder state. Zero at the beginning of a text. */
struct text_state {
	unsigned owed; /* remaining bytes of a UTF-8 sequence */
	bool upper;    /* ... the next one may complete a C1 control character */
};

/** text_is_control - is the next byte a control character, C0 or C1, bare or in UTF-8?
 *
 * A byte of 0x80 to 0x9f is one unless it is part of a UTF-8 sequence: a terminal that does not decode UTF-8, or
 * gives up on a broken sequence, executes it.
 */
static inline bool text_is_control(unsigned char c, struct text_state *s)
{
	bool next = c >= 0x80 && c < 0xc0, upper = next && c < 0xa0 && (!s->owed || s->upper);

	s->upper = c == 0xc2;
	if (next)
		s->owed -= s->owed != 0;
	else
		s->owed = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0;
	return c < 0x20 || c == 0x7f || upper;
}

/** text_clean - replaces control characters with '?': terminal controls and line ends */
static inline void text_clean(char *text)
{
	struct text_state s = { 0 };

	for (; *text; text++)
		if (text_is_control((unsigned char)*text, &s))
			*text = '?';
}

#endif
