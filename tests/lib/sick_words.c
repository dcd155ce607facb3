/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * sick_words.c - a captured conversation of one program, of which single words are changed
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "base/wire.h"
#include "sick_words.h"

void sick_words_load(const char *path, struct image *ret)
{
	FILE *f = fopen(path, "re");
	long len;

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	len = ftell(f);
	rewind(f);
	*ret = (struct image){ malloc((size_t)len), (size_t)len };
	assert_non_null(ret->bytes);
	assert_int_equal(fread(ret->bytes, 1, ret->len, f), ret->len);
	fclose(f);
}

void sick_words_lines(const struct image *i, const char *const *lines, size_t n)
{
	static const struct dump_options all = { .lines = true, .check = true };
	struct dump d;
	char *text;
	int rc;

	text = image_dump(i, &all, &rc, &d);
	assert_int_equal(rc, 0);
	if (d.broken)
		print_error("%s", text);
	assert_int_equal(d.broken, 0);
	for (size_t k = 0; k < n; k++) {
		if (!strstr(text, lines[k]))
			fail_msg("no '%s' in:\n%s", lines[k], text);
	}
	free(text);
}

/* Offset of the program's number in the @nth call of @proc */
static size_t find_call(const struct image *i, uint32_t prog, uint32_t proc, unsigned nth)
{
	uint8_t head[12];

	put_be32(head, prog);
	put_be32(head + 4, 1);
	put_be32(head + 8, proc);
	for (size_t at = 12; at + 64 < i->len; at++) {
		if (!memcmp(i->bytes + at, head, sizeof(head)) && !nth--)
			return at;
	}
	fail_msg("no call of %u", proc);
	return 0;
}

/* Offset of the status */
static size_t find_reply(const struct image *i, uint32_t prog, uint32_t proc, unsigned nth)
{
	uint8_t head[24] = { 0 };
	size_t at = find_call(i, prog, proc, nth);

	memcpy(head, i->bytes + at - 12, 4); /* XID */
	put_be32(head + 4, 1);
	for (; at + sizeof(head) < i->len; at++) {
		if (!memcmp(i->bytes + at, head, sizeof(head)))
			return at + sizeof(head);
	}
	fail_msg("no reply of %u", proc);
	return 0;
}

static size_t find_word(const struct image *i, uint32_t prog, const struct sick_word *s)
{
	size_t at;

	if (s->place == SICK_RESULTS)
		return find_reply(i, prog, s->proc, s->nth) + s->at;
	at = find_call(i, prog, s->proc, s->nth) + 8;
	if (s->place == SICK_PROC)
		return at;
	at += 4 + 8 + round_up4(get_be32(i->bytes + at + 8)) + 8; /* credential, and an empty verifier */
	if (s->place == SICK_BEHIND_FH)
		at += 4 + round_up4(get_be32(i->bytes + at));
	return at + s->at;
}

/* Expects that every BROKEN line begins with @rule or @also ("": any), and at least one with @rule. */
static bool found(const char *text, const char *rule, const char *also)
{
	static const char word[] = "BROKEN ";
	bool is_there = false, others = false;

	for (const char *p = strstr(text, word); p; p = strstr(p, word)) {
		p += strlen(word);
		if (!strncmp(p, rule, strlen(rule)))
			is_there = true;
		else if (!also || strncmp(p, also, strlen(also)))
			others = true;
	}
	if (!is_there || others)
		print_error("%s, %s:\n%s", rule, is_there ? "and more" : "not found", text);
	return is_there && !others;
}

static bool is_found(const struct image *of, uint32_t prog, const struct sick_word *s)
{
	static const struct dump_options check = { .check = true };
	struct image i = { malloc(of->len), of->len };
	char *text;
	bool is;
	int rc;

	assert_non_null(i.bytes);
	memcpy(i.bytes, of->bytes, of->len);
	put_be32(i.bytes + find_word(of, prog, s), s->value);
	text = image_dump(&i, &check, &rc, NULL);
	assert_int_equal(rc, 0);
	is = found(text, s->rule, s->also);
	free(text);
	image_fini(&i);
	return is;
}

void sick_words_found(const struct image *i, uint32_t prog, const struct sick_word *v, size_t n)
{
	unsigned wrong = 0;

	for (size_t k = 0; k < n; k++) {
		if (is_found(i, prog, &v[k]))
			continue;
		print_error("that was change %zu\n", k);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}
