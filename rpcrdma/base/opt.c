/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * opt.c - options, each declared once: parsing, defaults, error messages, help
 *
 * Operation: a value is parsed into a 64-bit number, checked against the range, and stored in a member of 1 to 8
 *            bytes. The description of the range in error messages and help texts is computed from the same fields.
 * Memory:    members of the caller; copies of TEXT belong to the caller's structure.
 * Threads:   any, except opt_next(): getopt() has global state.
 * Errors:    -EINVAL, and a line for the user.
 */
#include "base/opt.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define OPTIONS_MAX 64
#define OPT_NAME_MAX 32 /* of a name with a hint */
#define LONGS 256 /* what getopt_long() returns for the first option; less: a letter */
#define AMOUNT_BYTES 32
#define HELP_COLUMN 21 /* of the text; from the left of the option */
#define HELP_WIDTH 98

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit sizes[] = {
	{ "T", UINT64_C(1) << 40 }, { "G", 1u << 30 }, { "M", 1u << 20 }, { "K", 1u << 10 }, { NULL, 1 }
};
static const struct unit times[] = {
	{ "s", NS_PER_S }, { "ms", NS_PER_MS }, { "us", NS_PER_US }, { "ns", 1 }, { NULL, 1 }
};

int opt_fail(int err, char *why, size_t why_bytes, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, why_bytes, fmt, ap);
	va_end(ap);
	return err;
}

/* ---- numbers ---- */

/* Parses decimal digits. Return: false: none, or too large */
static bool parse_digits(const char **text, uint64_t *ret)
{
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	v = strtoull(*text, &end, 10);
	*text = end;
	*ret = v;
	return !errno;
}

bool opt_parse_size(const char *text, uint64_t *ret)
{
	const struct unit *u = sizes;
	uint64_t v;

	if (!parse_digits(&text, &v))
		return false;
	while (u->name && strcasecmp(u->name, text) != 0)
		u++;
	return (u->name || !*text) && mul_u64(v, u->factor, ret);
}

/* Parses "250ns", "100us", "5ms", "2s", "0.25s".
 * @bare: nanoseconds in the unit of a number without a unit; 0: only 0 needs no unit
 * Return: false: invalid, too large, or not a whole number of nanoseconds */
static bool parse_time(const char *text, uint64_t bare, uint64_t *ret_ns)
{
	uint64_t v = 0, part = 0, power = 1, factor;
	const struct unit *u = times;
	bool digits = *text != '.';

	if (digits && !parse_digits(&text, &v))
		return false;
	if (*text == '.') {
		if (!isdigit((unsigned char)*++text))
			return false;
		for (; isdigit((unsigned char)*text); text++) {
			if (power >= NS_PER_S)
				return false;
			power *= 10;
			part = part * 10 + (uint64_t)(*text - '0');
		}
	}
	while (u->name && strcmp(u->name, text) != 0)
		u++;
	factor = u->name ? u->factor : bare;
	if (!u->name && (*text || (!bare && (v || part))))
		return false;
	/* at most 10^9 times 10^9 */
	if (part * factor % power || !mul_u64(v, factor, &v))
		return false;
	return add_u64(v, part * factor / power, ret_ns);
}

/* ---- members ---- */

static uint64_t get_number(const struct opt *o, const void *from)
{
	const char *at = (const char *)from + o->at;
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	switch (o->size) {
	case 1:
		return *(const uint8_t *)at;
	case 2:
		memcpy(&v2, at, 2);
		return v2;
	case 4:
		memcpy(&v4, at, 4);
		return v4;
	default:
		memcpy(&v8, at, 8);
		return v8;
	}
}

static const char *get_text(const struct opt *o, const void *from)
{
	const char *text;

	memcpy(&text, (const char *)from + o->at, sizeof(text));
	return text;
}

static void put_number(const struct opt *o, void *to, uint64_t v)
{
	uint32_t v4 = (uint32_t)v;
	uint16_t v2 = (uint16_t)v;
	uint8_t v1 = (uint8_t)v;

	memcpy((char *)to + o->at, o->size == 1 ? (void *)&v1 : o->size == 2 ? (void *)&v2 :
	       o->size == 4 ? (void *)&v4 : (void *)&v, o->size);
}

static bool is_number(const struct opt *o)
{
	return o->type != OPT_TEXT && o->type != OPT_OTHER;
}

/* ---- words ---- */

/* Return: length of the next word at @at, past blanks; 0: no more */
static size_t next_word(const char **at)
{
	*at += strspn(*at, " ");
	return strcspn(*at, " ");
}

static bool find_word(const char *words, const char *text, uint64_t *ret)
{
	size_t len;

	for (uint64_t i = 0; (len = next_word(&words)); i++, words += len) {
		if (strlen(text) == len && !strncmp(words, text, len)) {
			*ret = i;
			return true;
		}
	}
	return false;
}

static bool parse_flag(const struct opt *o, const char *value, uint64_t *ret)
{
	uint64_t i;

	if (!value)
		value = o->name && !strncmp(o->name, "no-", 3) ? "no" : "yes";
	if (!find_word("no yes false true off on 0 1", value, &i))
		return false;
	*ret = i & 1 ? o->max : o->min;
	return true;
}

/* ---- description of values ---- */

/* Appends to @buf what fits. */
static printf_like(2, 3) void append(char buf[OPT_LIMITS_BYTES], const char *fmt, ...)
{
	size_t n = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(buf + n, OPT_LIMITS_BYTES - n, fmt, ap);
	va_end(ap);
}

static char *print_amount(const struct opt *o, uint64_t v, char *buf, size_t bytes)
{
	const struct unit *u = o->type == OPT_TIME ? times : sizes;

	if (o->type == OPT_TIME)
		v *= o->unit;
	while (u->name && (o->type == OPT_NUMBER || !v || v % u->factor))
		u++;
	(void)snprintf(buf, bytes, "%" PRIu64 "%s", v / u->factor, u->name ? u->name : "");
	return buf;
}

static const char *unit_name(uint64_t ns)
{
	const struct unit *u = times;

	while (u->factor != ns)
		u++;
	return u->name;
}

static char *limits_of_number(const struct opt *o, char buf[OPT_LIMITS_BYTES])
{
	static const char *const nouns[] = { [OPT_NUMBER] = "number", [OPT_SIZE] = "size", [OPT_TIME] = "time" };
	char amount[AMOUNT_BYTES];

	if (o->words)
		append(buf, "%s or ", o->words);
	if (o->step > 1)
		append(buf, "a multiple of %s", print_amount(o, o->step, amount, sizeof(amount)));
	else
		append(buf, "a %s", nouns[o->type]);
	if (o->min || o->max != UINT64_MAX)
		append(buf, " from %s", print_amount(o, o->min, amount, sizeof(amount)));
	if (o->max != UINT64_MAX)
		append(buf, " to %s", print_amount(o, o->max, amount, sizeof(amount)));
	if (o->type == OPT_TIME && o->bare)
		append(buf, " (default unit %s)", unit_name(o->bare));
	return buf;
}

/* "a", "a or b", "a, b or c" */
static char *limits_of_word(const char *words, char buf[OPT_LIMITS_BYTES])
{
	for (size_t len = next_word(&words), next_len; len; len = next_len) {
		const char *next = words + len;

		next_len = next_word(&next);
		append(buf, "%s%.*s", !*buf ? "" : next_len ? ", " : " or ", (int)len, words);
		words = next;
	}
	return buf;
}

char *opt_limits(const struct opt *o, char buf[OPT_LIMITS_BYTES])
{
	buf[0] = '\0';
	switch (o->type) {
	case OPT_FLAG:
		return limits_of_word("yes no", buf);
	case OPT_WORD:
		return limits_of_word(o->words, buf);
	case OPT_TEXT:
	case OPT_OTHER:
		append(buf, "%s", o->words ? o->words : "");
		return buf;
	default:
		return limits_of_number(o, buf);
	}
}

char *opt_remark(const struct opt *o, char buf[OPT_LIMITS_BYTES])
{
	char limits[OPT_LIMITS_BYTES];
	const char *preset = o->preset ? o->preset : "";

	opt_limits(o, limits);
	if (o->type == OPT_FLAG && !o->arg)
		limits[0] = '\0';
	buf[0] = '\0';
	if (*limits || *preset)
		(void)snprintf(buf, OPT_LIMITS_BYTES, "(%.130s%s%s%.50s)", limits, *limits && *preset ? "; " : "",
			       *preset ? "default " : "", preset);
	return buf;
}

char *opt_print(const struct opt *o, const void *from, char *buf, size_t bytes)
{
	const char *words = o->words;
	uint64_t v = is_number(o) ? get_number(o, from) : 0;

	switch (o->type) {
	case OPT_OTHER:
		(void)snprintf(buf, bytes, "%s", "");
		break;
	case OPT_TEXT:
		(void)snprintf(buf, bytes, "%s", get_text(o, from) ? get_text(o, from) : "");
		break;
	case OPT_FLAG:
		(void)snprintf(buf, bytes, "%s", v == o->max ? "yes" : "no");
		break;
	case OPT_WORD:
		for (size_t len; (len = next_word(&words)) && v; v--)
			words += len;
		(void)snprintf(buf, bytes, "%.*s", (int)strcspn(words, " "), words);
		break;
	default:
		if (!v && o->words)
			(void)snprintf(buf, bytes, "%s", o->words);
		else
			(void)print_amount(o, v, buf, bytes);
	}
	return buf;
}

/* ---- setting ---- */

int opt_refuse(const struct opt *o, const char *value, char *why, size_t why_bytes)
{
	char limits[OPT_LIMITS_BYTES];
	const char letter[] = { o->letter, '\0' };

	return opt_fail(-EINVAL, why, why_bytes, "%s=%.200s: must be %s", o->name ? opt_key(o) : letter, value,
			opt_limits(o, limits));
}

/* Return: false: invalid, or out of range */
static bool parse_value(const struct opt *o, const char *value, uint64_t *ret)
{
	uint64_t v;

	if (o->type == OPT_FLAG)
		return parse_flag(o, value, ret);
	if (!value)
		return false;
	if (o->words && find_word(o->words, value, ret))
		return true;
	if (o->type == OPT_WORD)
		return false;
	if (o->type == OPT_TIME) {
		if (!parse_time(value, o->bare, &v) || v % o->unit)
			return false;
		v /= o->unit;
	} else if (!opt_parse_size(value, &v)) {
		return false;
	}
	if (v < o->min || v > o->max || (o->step > 1 && v % o->step)) /* 0 is allowed by its word only */
		return false;
	*ret = v;
	return true;
}

static int set_text(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	char *copy, *old;

	if (!value || !*value)
		return opt_fail(-EINVAL, why, why_bytes, "%s: empty", opt_key(o));
	copy = strdup(value);
	if (!copy)
		return opt_fail(-ENOMEM, why, why_bytes, "out of memory");
	memcpy(&old, (char *)to + o->at, sizeof(old));
	free(old);
	memcpy((char *)to + o->at, &copy, sizeof(copy));
	return 0;
}

int opt_set_once(const struct opt *o, void *to, unsigned *given, const char *value, char *why, size_t why_bytes)
{
	uint64_t v;

	if (o->type == OPT_TEXT)
		return set_text(o, to, value, why, why_bytes);
	if (o->type == OPT_OTHER)
		return o->set(o, to, value, why, why_bytes);
	if (!parse_value(o, value, &v))
		return opt_refuse(o, value ? value : "", why, why_bytes);
	if (*given & o->given && v != get_number(o, to))
		return opt_fail(-EINVAL, why, why_bytes, "%s: contradicts an option before it", opt_key(o));
	*given |= o->given;
	put_number(o, to, v);
	return 0;
}

int opt_set(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	unsigned given = 0;

	return opt_set_once(o, to, &given, value, why, why_bytes);
}

void opt_init(const struct opt *v, size_t n, void *to)
{
	uint64_t value;

	for (const struct opt *o = v; n; n--, o++) {
		if (o->preset && is_number(o) && parse_value(o, o->preset, &value))
			put_number(o, to, value);
	}
}

bool opt_same(const struct opt *o, const void *a, const void *b)
{
	const char *text_a, *text_b;

	if (o->type != OPT_TEXT)
		return !memcmp((const char *)a + o->at, (const char *)b + o->at, o->size);
	text_a = get_text(o, a);
	text_b = get_text(o, b);
	return text_a && text_b ? !strcmp(text_a, text_b) : text_a == text_b;
}

/* ---- tables ---- */

const char *opt_key(const struct opt *o)
{
	return strncmp(o->name, "no-", 3) ? o->name : o->name + 3;
}

const struct opt *opt_find(const struct opt *v, size_t n, const char *name)
{
	for (const struct opt *o = v; n; n--, o++) {
		if (o->name && !strcmp(opt_key(o), name))
			return o;
	}
	return NULL;
}

/* Can @edits changes make @b of @a? A change inserts, removes or replaces a letter, or swaps two neighbours. */
static bool is_near(const char *a, const char *b, unsigned edits)
{
	while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
		a++;
		b++;
	}
	if (!*a && !*b)
		return true;
	if (!edits--)
		return false;
	return (*a && is_near(a + 1, b, edits)) || (*b && is_near(a, b + 1, edits)) ||
	       (*a && *b && is_near(a + 1, b + 1, edits)) ||
	       (*a && *b && a[0] == b[1] && a[1] == b[0] && is_near(a + 2, b + 2, edits));
}

/* @key: as in a file, where only some options can be set; otherwise as on a command line */
static const char *find_near(const struct opt *v, size_t n, const char *name, bool key)
{
	unsigned most = ((unsigned)strnlen(name, 5) + 1) / 3; /* 2: of five letters or more */

	for (unsigned edits = 1; edits <= most; edits++) {
		for (const struct opt *o = v; o < v + n; o++) {
			bool hidden = !o->name || !o->help || (key && o->type == OPT_OTHER && !o->set);
			const char *candidate = hidden ? NULL : key ? opt_key(o) : o->name;

			if (candidate && is_near(name, candidate, edits))
				return candidate;
		}
	}
	return NULL;
}

void opt_hint(const struct opt *v, size_t n, const char *name, char buf[OPT_HINT_BYTES])
{
	const char *near = *buf ? NULL : find_near(v, n, name, true);

	if (near)
		(void)snprintf(buf, OPT_HINT_BYTES, " (did you mean \"%.32s\"?)", near);
}

/* Prints @text in lines of HELP_WIDTH; the first one begins at column @now, all at @column. */
static void print_wrapped(FILE *to, const char *text, int now, int column)
{
	size_t len;
	bool first = true;

	if (now + 1 >= column) {
		fputc('\n', to);
		now = 0;
	}
	for (; (len = next_word(&text)); text += len) {
		if (!first && now + 1 + (int)len > HELP_WIDTH) {
			fputc('\n', to);
			now = 0;
			first = true;
		}
		now += fprintf(to, "%*s%.*s", first ? column - now : 1, "", (int)len, text);
		first = false;
	}
	fputc('\n', to);
}

void opt_help(FILE *to, const struct opt *v, size_t n, int indent, bool key)
{
	char remark[OPT_LIMITS_BYTES], text[2 * OPT_LIMITS_BYTES];

	for (const struct opt *o = v; n; n--, o++) {
		const char *arg = o->arg ? o->arg : "", *before_arg = !o->arg ? "" : key ? "=" : " ";
		const char letter[] = { '-', o->letter, '\0' };
		int now;

		if (!o->help)
			continue;
		if (key)
			now = fprintf(to, "%*s%s%s%s", indent, "", o->name, before_arg, arg);
		else if (o->name)
			now = fprintf(to, "%*s%s%s--%s%s%s", indent, "", o->letter ? letter : "  ",
				      o->letter ? ", " : "  ", o->name, before_arg, arg);
		else
			now = fprintf(to, "%*s%s%s%s", indent, "", letter, before_arg, arg);
		opt_remark(o, remark);
		(void)snprintf(text, sizeof(text), "%s%s%s", o->help, *remark ? " " : "", remark);
		print_wrapped(to, text, now, indent + HELP_COLUMN);
	}
}

/* @arg: the unknown option as given, "--NAME" or "--NAME=VALUE" */
static int unknown_option(const struct opt *v, size_t n, const char *arg, char *why, size_t why_bytes)
{
	size_t len = strcspn(arg, "=");
	char name[OPT_NAME_MAX + 3];
	const char *near;

	(void)snprintf(name, sizeof(name), "%.*s", (int)MIN(len, sizeof(name) - 1), arg);
	near = len > 2 ? find_near(v, n, name + 2, false) : NULL;
	return opt_fail(-EINVAL, why, why_bytes, "no such option: %.200s%s%.32s%s", arg, near ? " (did you mean --" : "",
			near ? near : "", near ? "?)" : "");
}

int opt_next(const struct opt *v, size_t n, int argc, char **argv, bool mixed, const struct opt **ret,
	     const char **ret_value, char *why, size_t why_bytes)
{
	char letters[2 * OPTIONS_MAX + 3], *p = letters;
	struct option longs[OPTIONS_MAX + 1], *l = longs;
	size_t index = 0;
	int opt;

	if (!mixed)
		*p++ = '+';
	*p++ = ':';
	for (size_t i = 0; i < n && i < OPTIONS_MAX; i++) {
		if (v[i].letter)
			*p++ = v[i].letter;
		if (v[i].letter && v[i].arg)
			*p++ = ':';
		if (v[i].name)
			*l++ = (struct option){ v[i].name, v[i].arg ? required_argument : no_argument, NULL,
						LONGS + (int)i };
	}
	*p = '\0';
	*l = (struct option){ 0 };
	opterr = 0;
	opt = getopt_long(argc, argv, letters, longs, NULL);
	if (opt == -1)
		return 0;
	if (opt == '?' && !optopt)
		return unknown_option(v, n, argv[optind - 1], why, why_bytes);
	if (opt == '?' && optopt < LONGS) /* perhaps one of several letters: then optind is still that of all of them */
		return opt_fail(-EINVAL, why, why_bytes, "no such option: -%c", optopt);
	if (opt == ':' && optopt < LONGS)
		return opt_fail(-EINVAL, why, why_bytes, "-%c needs a value", optopt);
	if (opt == '?' || opt == ':')
		return opt_fail(-EINVAL, why, why_bytes, "--%s %s", v[optopt - LONGS].name,
				opt == '?' ? "takes no value" : "needs a value");
	while (opt < LONGS && v[index].letter != opt)
		index++;
	*ret = &v[opt < LONGS ? index : (size_t)opt - LONGS];
	*ret_value = optarg;
	return 1;
}
