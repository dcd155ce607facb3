/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * map_text.c - lines and words of the files of rpcrdma-run
 *
 * Operation:  A line is copied and split at blanks. Control characters other than tabs are refused, since messages
 *             repeat words.
 * Memory:     rt_text_read() allocates; words lie in struct rt_text until the next line.
 * Threads:    Any.
 * Errors:     -EINVAL with a message that has the name of the text and the number of the line.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "map_text.h"

void rt_text_init(struct rt_text *t, const char *text, size_t bytes, const char *name, char why[RT_WHY_BYTES])
{
	t->name = name;
	t->at = text;
	t->end = text + bytes;
	t->line = 0;
	t->words = 0;
	t->why = why;
}

int rt_text_fail(struct rt_text *t, const char *fmt, ...)
{
	int n = snprintf(t->why, RT_WHY_BYTES, "%.200s:%u: ", t->name, t->line);
	va_list ap;

	va_start(ap, fmt);
	if (n > 0 && n < RT_WHY_BYTES)
		(void)vsnprintf(t->why + n, RT_WHY_BYTES - (size_t)n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Copies the next line. Return: false: it is too long, or has control characters. */
static bool copy_line(struct rt_text *t)
{
	const char *end = memchr(t->at, '\n', (size_t)(t->end - t->at));
	struct text_state s = { 0 };
	size_t n;

	t->line++;
	n = (size_t)((end ? end : t->end) - t->at);
	if (n >= sizeof(t->buf))
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = t->at[i];

		if (c != '\t' && text_is_control((unsigned char)c, &s))
			return false;
		t->buf[i] = c;
	}
	t->buf[n] = '\0';
	t->at += n + (end != NULL);
	return true;
}

int rt_text_next(struct rt_text *t)
{
	while (t->at < t->end) {
		char *save = NULL;

		if (!copy_line(t))
			return rt_text_fail(t, "the line is longer than %d bytes, or has control characters",
					    RT_LINE_BYTES_MAX - 1);
		t->words = 0;
		for (char *w = strtok_r(t->buf, " \t", &save); w && *w != '#'; w = strtok_r(NULL, " \t", &save)) {
			if (t->words == RT_WORDS_MAX)
				return rt_text_fail(t, "more than %d words", RT_WORDS_MAX);
			t->word[t->words++] = w;
		}
		if (t->words)
			return 1;
	}
	return 0;
}

bool rt_text_number(const char *word, uint32_t max, uint32_t *ret)
{
	uint64_t n = 0;

	if (!*word)
		return false;
	for (; *word; word++) {
		if (*word < '0' || *word > '9')
			return false;
		n = n * 10 + (uint64_t)(*word - '0');
		if (n > max)
			return false;
	}
	*ret = (uint32_t)n;
	return true;
}

const char *rt_text_value(const char *word, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(word, name, n) && word[n] == '=' ? word + n + 1 : NULL;
}

static int fail(const char *path, const char *reason, int err, char why[RT_WHY_BYTES])
{
	(void)snprintf(why, RT_WHY_BYTES, "%.300s: %s", path, reason);
	text_clean(why);
	return err;
}

int rt_text_read(const char *path, char **ret, size_t *ret_bytes, char why[RT_WHY_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	size_t n = 0;
	char *text;

	if (fd < 0)
		return fail(path, strerror(errno), -errno, why);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return fail(path, "not a regular file", -EINVAL, why);
	}
	text = malloc(RT_TEXT_BYTES_MAX + 1);
	while (text && n <= RT_TEXT_BYTES_MAX) {
		ssize_t got = read(fd, text + n, RT_TEXT_BYTES_MAX + 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			n = got ? SIZE_MAX : n;
			break;
		}
		n += (size_t)got;
	}
	close(fd);
	if (!text)
		return fail(path, "out of memory", -ENOMEM, why);
	if (n > RT_TEXT_BYTES_MAX) {
		free(text);
		return n == SIZE_MAX ? fail(path, "cannot be read", -EIO, why) :
				       fail(path, "longer than 1 MiB", -EINVAL, why);
	}
	*ret = text;
	*ret_bytes = n;
	return 0;
}
