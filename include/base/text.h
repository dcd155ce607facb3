/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * text.h - foreign text: makes it safe for a terminal or a log; recognises names and numbers
 */
#ifndef LEAT_BASE_TEXT_H
#define LEAT_BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

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

/** text_is_hex_name - is @name the text @prefix and 16 hexadecimal digits, as "%016" PRIx64 prints them? */
static inline bool text_is_hex_name(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return !strncmp(name, prefix, len) && strspn(name + len, "0123456789abcdef") == 16 && !name[len + 16];
}

/** text_without_url - a reason that begins with "@url: ", without that; others as they are: a message has the URL once */
static inline const char *text_without_url(const char *reason, const char *url)
{
	size_t len = strlen(url);

	return len && !strncmp(reason, url, len) && !strncmp(reason + len, ": ", 2) ? reason + len + 2 : reason;
}

/** text_put_hex - prints @n bytes in hexadecimal digits, and a NUL; @ret: has room for 2 * @n + 1 */
static inline void text_put_hex(const void *bytes, size_t n, char *ret)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *b = bytes;

	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = digits[b[i] >> 4];
		ret[2 * i + 1] = digits[b[i] & 15];
	}
	ret[2 * n] = '\0';
}

/** text_take_hex - reads @n bytes of hexadecimal digits, as text_put_hex() prints them
 * @text: of 2 * @n digits at least, which it need not end behind
 *
 * Return: false: not these digits
 */
static inline bool text_take_hex(const char *text, size_t n, void *ret)
{
	unsigned char *b = ret;

	for (size_t i = 0; i < 2 * n; i++) {
		char c = text[i];
		bool digit = c >= '0' && c <= '9';

		if (!digit && (c < 'a' || c > 'f'))
			return false;
		b[i / 2] = (unsigned char)(b[i / 2] << 4 | (digit ? c - '0' : c - 'a' + 10));
	}
	return true;
}

/** text_parse_hex - text_take_hex() of a text that has nothing else */
static inline bool text_parse_hex(const char *text, size_t n, void *ret)
{
	return strlen(text) == 2 * n && text_take_hex(text, n, ret);
}

/** text_trim - removes blanks, tabs and line ends from both ends; Return: the new beginning, inside @text */
static inline char *text_trim(char *text)
{
	char *end;

	text += strspn(text, " \t\r\n");
	end = text + strlen(text);
	while (end > text && strchr(" \t\r\n", end[-1]))
		end--;
	*end = '\0';
	return text;
}

#endif
