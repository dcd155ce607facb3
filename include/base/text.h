/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * text.h - text of others on its way to a terminal or a log
 */
#ifndef LEAT_BASE_TEXT_H
#define LEAT_BASE_TEXT_H

#include <stdbool.h>

/* What the bytes so far have announced. Zero at the beginning of a text. */
struct text_state {
	unsigned owed; /* so many bytes of a UTF-8 sequence are still to come */
	bool upper;    /* ... and the next one would be a control character of the upper set */
};

/** text_is_control - is the next byte a control character, of ASCII or of the upper set, bare or in UTF-8?
 *
 * A byte of 0x80 to 0x9f is one unless a UTF-8 sequence needs it: a terminal that does not read UTF-8, or gives up on
 * a broken sequence, obeys it.
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

/** text_clean - replace control characters by '?': what a terminal obeys, and what ends a log line */
static inline void text_clean(char *text)
{
	struct text_state s = { 0 };

	for (; *text; text++)
		if (text_is_control((unsigned char)*text, &s))
			*text = '?';
}

#endif
