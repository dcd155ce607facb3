/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * text.h - text of others on its way to a terminal or a log
 */
#ifndef LEAT_BASE_TEXT_H
#define LEAT_BASE_TEXT_H

#include <stdbool.h>

/** text_is_control - is @c a control character, of ASCII or of the upper set, bare or in UTF-8?
 * @last: the byte before it, 0 at the beginning
 */
static inline bool text_is_control(unsigned char c, unsigned char last)
{
	bool upper = c >= 0x80 && c < 0xa0 && (last < 0x80 || last == 0xc2);

	return c < 0x20 || c == 0x7f || upper;
}

/** text_clean - replace control characters by '?': what a terminal obeys, and what ends a log line */
static inline void text_clean(char *text)
{
	unsigned char last = 0;

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (text_is_control(c, last))
			*text = '?';
		last = c;
	}
}

#endif
