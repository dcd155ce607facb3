/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * map_text.h - lines and words of the files of rpcrdma-run
 */
#ifndef RT_MAP_TEXT_H
#define RT_MAP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "map.h"

#define ETC_RPC "/etc/rpc"
#define RT_WORDS_MAX 16 /* of a line */

/* A text while it is read line by line */
struct rt_text {
	const char *name; /* for messages */
	const char *at, *end;
	unsigned line;    /* the current one, from 1 on */
	char buf[RT_LINE_BYTES_MAX];
	char *word[RT_WORDS_MAX]; /* words of the line, in @buf */
	int words;
	char *why;        /* RT_WHY_BYTES */
};

/** rt_text_init - begins to read @text */
void rt_text_init(struct rt_text *t, const char *text, size_t bytes, const char *name, char why[RT_WHY_BYTES]);

/** rt_text_next - reads the words of the next line that has any; "#" begins a comment
 * Return: 1; 0: no more lines; -EINVAL with a message.
 */
must_check int rt_text_next(struct rt_text *t);

/** rt_text_fail - prints a message with the number of the line; Return: -EINVAL */
printf_like(2, 3) int rt_text_fail(struct rt_text *t, const char *fmt, ...);

/** rt_text_number - a decimal number, at most @max; Return: false: another text */
must_check bool rt_text_number(const char *word, uint32_t max, uint32_t *ret);

/** rt_text_value - the value of "NAME=VALUE", or NULL if @word has another name */
const char *rt_text_value(const char *word, const char *name);

/** rt_text_read - reads a regular file of at most RT_TEXT_BYTES_MAX bytes; free() the text
 * Return: 0, or -errno with a message in @why.
 */
must_check int rt_text_read(const char *path, char **ret, size_t *ret_bytes, char why[RT_WHY_BYTES]);

#endif
