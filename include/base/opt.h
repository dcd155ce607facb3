/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * opt.h - options, each declared once: name, type, range, default, unit and help text
 *
 * Operation: a table of struct opt describes the options of a program, of a section of a file, of an export or of a
 *            URL. Parsing, defaults, error messages and help texts come from it. opt.c of librpcrdma implements it;
 *            libleat.so contains a copy.
 * Memory:    a table is constant. Values go into members of a structure of the caller.
 * Threads:   any, except opt_next(), which uses getopt(), so one at a time.
 * Errors:    -EINVAL and a line "NAME=VALUE: must be ..." for the user.
 */
#ifndef LEAT_BASE_OPT_H
#define LEAT_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/util.h"

enum opt_type {
	OPT_FLAG,   /* "yes" or "no": the member gets @max or @min; also "true", "on", "1", "false", "off", "0" */
	OPT_WORD,   /* one of @words: the member gets its index */
	OPT_NUMBER, /* @min to @max, a multiple of @step */
	OPT_SIZE,   /* the same, in bytes */
	OPT_TIME,   /* the same, in @unit */
	OPT_TEXT,   /* not empty: the member is a char *, which is freed and replaced by a copy */
	OPT_OTHER,  /* @set parses it */
};

/* Numbers and sizes take K, M, G and T, powers of 1024; times take ns, us, ms and s, and fractions. */
struct opt {
	const char *name;   /* --NAME, NAME =, NAME=; NULL: @letter only. "no-X" of a file is the flag "X" */
	const char *arg;    /* name of the value in help texts; NULL: a flag that has no value on a command line */
	const char *preset; /* the default, as the user would write it; NULL: none, or @help explains it */
	const char *help;   /* NULL: another name of an option, not printed */
	const char *words;  /* WORD: separated by blanks; NUMBER: a word for 0; OTHER: text for opt_limits() */
	enum opt_type type;
	char letter;        /* -LETTER; 0: none */
	uint8_t size;       /* of the member, in bytes; 0: none */
	uint32_t at;        /* its offset */
	uint64_t min, max, step; /* @step 0: 1 */
	uint64_t unit;      /* TIME: of the member, of @min, @max and @step, in nanoseconds */
	uint64_t bare;      /* TIME: the unit of a number without one; 0: only the number 0 needs none */
	unsigned given;     /* for opt_set_once(): bits of the options that must not contradict each other */
	/* OTHER: sets what @value says in @to. @value: NULL for a bare flag. Return: 0, or -errno with @why */
	int (*set)(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes);
};

/* The member of a row */
#define OPT_AT(type_, member) .at = offsetof(type_, member), .size = sizeof(((type_ *)0)->member)

/* A macro's number as text: for @preset */
#define OPT_STR(number) OPT_STR_(number)
#define OPT_STR_(number) #number

/** opt_parse_size - "4096", "64K", "1m", "2G", "1T" (powers of 1024)
 *
 * Return: false: invalid, or too large; @ret is unchanged.
 */
must_check bool opt_parse_size(const char *text, uint64_t *ret);

/** opt_find - finds the option @name of a file or a URL
 * "no-X" of the table is found as "X".
 *
 * Return: the option, or NULL
 */
const struct opt *opt_find(const struct opt *v, size_t n, const char *name);

#define OPT_HINT_BYTES 64

/** opt_hint - prints ` (did you mean "NAME"?)` for the message on the unknown option @name of a file or a URL, if the
 * table has a name that differs by at most two letters
 * @buf: "" before the first call; unchanged if there is no such name, or if it has a hint from another table
 */
void opt_hint(const struct opt *v, size_t n, const char *name, char buf[OPT_HINT_BYTES]);

/** opt_key - the name of an option in a file: without the "no-" of the command line */
const char *opt_key(const struct opt *o);

/** opt_init - sets the members of @to to the defaults; options without one, TEXT and OTHER are left alone */
void opt_init(const struct opt *v, size_t n, void *to);

/** opt_set - sets an option
 * @value: NULL: none was given, which is "yes" for a flag, or "no" if its name begins with "no-"
 * @why: receives an error message
 *
 * Return: 0; -EINVAL, or an error of @o->set.
 */
must_check int opt_set(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes);

/** opt_set_once - opt_set() that refuses a value that differs from an earlier one
 * @given: the bits of the options given so far. Two options with equal bits have a common member.
 * TEXT and OTHER are always set.
 */
must_check int opt_set_once(const struct opt *o, void *to, unsigned *given, const char *value, char *why,
			    size_t why_bytes);

/** opt_fail - prints a message for the user; Return: @err */
printf_like(4, 5) int opt_fail(int err, char *why, size_t why_bytes, const char *fmt, ...);

/** opt_refuse - says that @value is not among the allowed values; Return: -EINVAL */
int opt_refuse(const struct opt *o, const char *value, char *why, size_t why_bytes);

/** opt_same - have @a and @b equal values? OTHER: equal bytes of the member */
bool opt_same(const struct opt *o, const void *a, const void *b);

/** opt_print - prints a value as the user would write it; "" for OTHER; Return: @buf */
char *opt_print(const struct opt *o, const void *from, char *buf, size_t bytes);

#define OPT_LIMITS_BYTES 200

/** opt_limits - prints the allowed values, "a number from 1 to 4096"; "" if any is allowed; Return: @buf */
char *opt_limits(const struct opt *o, char buf[OPT_LIMITS_BYTES]);

/** opt_remark - prints allowed values and default, "(a number from 1 to 4096; default 64)", as help texts and man pages
 * do; Return: @buf
 */
char *opt_remark(const struct opt *o, char buf[OPT_LIMITS_BYTES]);

/** opt_help - prints the list of options
 * @indent: columns to the left
 * @key: as "NAME=ARG" of a URL or an export instead of "-L, --NAME ARG"
 */
void opt_help(FILE *to, const struct opt *v, size_t n, int indent, bool key);

/** opt_next - parses the next option of a command line
 * @mixed: options may follow operands, which getopt() then moves behind them
 * @ret: the option; @ret_value: its value, or NULL
 * Set optind to 0 before the first call. After the last one it is the index of the first operand.
 *
 * Return: 1; 0: no more options; -EINVAL with @why.
 */
must_check int opt_next(const struct opt *v, size_t n, int argc, char **argv, bool mixed, const struct opt **ret,
			const char **ret_value, char *why, size_t why_bytes);

#endif
