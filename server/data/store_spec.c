/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_spec.c - the option `store`: what stores the contents of an export's files
 *
 * Operation: A kind, and its parameters after a colon. The parameters of `sim` are separated by colons, since commas
 *            separate an export's options.
 * Memory:    Plain data of the caller.
 * Threads:   Any.
 * Errors:    A text that names the wrong parameter.
 */
#include "store_spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/opt.h"

#define CHUNK_UNIT 4096u
#define RATE_MIN 4096u
#define RATE_MAX (UINT64_C(1) << 40)
#define TIME_MAX (10 * NS_PER_S)
#define AT(member) OPT_AT(struct sim_spec, member)

static const struct opt words[] = {
	{ "members", "N", "1", "disks", NULL, OPT_NUMBER, 0, AT(members), .min = 1, .max = SIM_MEMBERS_MAX },
	{ "chunk", "BYTES", "64K", "contiguous bytes of a file on one disk", NULL, OPT_SIZE, 0, AT(chunk),
	  .min = CHUNK_UNIT, .max = 1u << 30, .step = CHUNK_UNIT },
	{ "rate", "BYTES", "100M", "bytes per second of one disk", NULL, OPT_SIZE, 0, AT(rate), .min = RATE_MIN,
	  .max = RATE_MAX },
	{ "latency", "TIME", "0", "delay of a request that is not sequential to the last one", NULL, OPT_TIME, 0,
	  AT(latency_ns), .max = TIME_MAX, .unit = 1 },
	{ "jitter", "TIME", "0", "maximum random additional time", NULL, OPT_TIME, 0, AT(jitter_ns), .max = TIME_MAX,
	  .unit = 1 },
	{ "seed", "N", "1", "of the random numbers", NULL, OPT_NUMBER, 0, AT(seed), .max = UINT64_MAX },
	{ "fail", "N", NULL, "the request of this number fails", NULL, OPT_NUMBER, 0, AT(fail), .min = 1,
	  .max = UINT64_MAX },
	{ "volatile", NULL, NULL, "unstable writes are lost in a power failure", NULL, OPT_FLAG, 0, AT(forgets),
	  .max = true },
};

const struct opt *store_spec_opts(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(words);
	return words;
}

void store_spec_init(struct store_spec *s)
{
	memset(s, 0, sizeof(*s));
	opt_init(words, ARRAY_SIZE(words), &s->sim);
}

static void unknown_word(const char *word, char *why, size_t why_bytes)
{
	char hint[OPT_HINT_BYTES] = "";

	opt_hint(words, ARRAY_SIZE(words), word, hint);
	(void)snprintf(why, why_bytes, "'%s' is not a word of it%s", word, hint);
}

/* Modifies @word. */
static int parse_word(struct sim_spec *s, char *word, unsigned *given, char *why, size_t why_bytes)
{
	char *value = strchr(word, '='), reason[OPT_LIMITS_BYTES + STORE_SPEC_PRINT_BYTES];
	const struct opt *o;
	unsigned bit;

	if (value)
		*value++ = '\0';
	o = opt_find(words, ARRAY_SIZE(words), word);
	bit = o ? 1u << (o - words) : 0;
	if (!o)
		unknown_word(word, reason, sizeof(reason));
	else if (*given & bit)
		(void)snprintf(reason, sizeof(reason), "%s is given twice", word);
	else if (!opt_set(o, s, value, reason, sizeof(reason)))
		return *given |= bit, 0;
	return opt_fail(-EINVAL, why, why_bytes, "store: sim: %s", reason);
}

static int parse_sim(const char *text, struct sim_spec *s, char *why, size_t why_bytes)
{
	char copy[STORE_SPEC_PRINT_BYTES], *at = copy, *word;
	unsigned given = 0;
	int err = 0;

	if (strlen(text) >= sizeof(copy))
		return opt_fail(-EINVAL, why, why_bytes, "store: sim: more than %zu bytes", sizeof(copy) - 1);
	strcpy(copy, text);
	while (!err && (word = strsep(&at, ":")))
		err = parse_word(s, word, &given, why, why_bytes);
	return err;
}

/* Parses "KIND:..."; Return: the text after the colon, or NULL */
static const char *behind(const char *text, const char *kind)
{
	size_t n = strlen(kind);

	return !strncmp(text, kind, n) && text[n] == ':' ? text + n + 1 : NULL;
}

int store_spec_parse(const char *text, struct store_spec *ret, char *why, size_t why_bytes)
{
	char reason[OPT_LIMITS_BYTES + STORE_SPEC_PRINT_BYTES];
	struct store_spec s;
	const char *rest;
	int err = 0;

	store_spec_init(&s);
	if (!strcmp(text, "file")) {
		s.kind = STORE_KIND_FILE;
	} else if (!strcmp(text, "null")) {
		s.kind = STORE_KIND_NULL;
	} else if (!strcmp(text, "sim")) {
		s.kind = STORE_KIND_SIM;
	} else if ((rest = behind(text, "sim"))) {
		s.kind = STORE_KIND_SIM;
		err = parse_sim(rest, &s.sim, why, why_bytes);
	} else if ((rest = behind(text, "rate"))) {
		s.kind = STORE_KIND_RATE;
		err = opt_set(opt_find(words, ARRAY_SIZE(words), "rate"), &s.sim, rest, reason, sizeof(reason));
		if (err)
			(void)opt_fail(err, why, why_bytes, "store: %s", reason);
	} else {
		err = opt_fail(-EINVAL, why, why_bytes, "store: '%s' is none of file sim sim:... null rate:SPEED",
			       text);
	}
	if (!err)
		*ret = s;
	return err;
}

const char *store_spec_print(const struct store_spec *s, char *buf, size_t bytes)
{
	static const char *const kinds[] = {
		[STORE_KIND_FILE] = "file", [STORE_KIND_NULL] = "null", [STORE_KIND_RATE] = "rate",
		[STORE_KIND_SIM] = "sim"
	};
	size_t n = (size_t)snprintf(buf, bytes, "%s", kinds[s->kind]);
	char value[32];

	if (s->kind == STORE_KIND_RATE)
		(void)snprintf(buf, bytes, "rate:%s", opt_print(opt_find(words, ARRAY_SIZE(words), "rate"), &s->sim,
							       value, sizeof(value)));
	for (const struct opt *o = words; s->kind == STORE_KIND_SIM && o < words + ARRAY_SIZE(words); o++) {
		if (o->type == OPT_FLAG ? !s->sim.forgets : !o->preset && !s->sim.fail)
			continue;
		n += (size_t)snprintf(buf + n, bytes - n, ":%s%s%s", o->name, o->type == OPT_FLAG ? "" : "=",
				      o->type == OPT_FLAG ? "" : opt_print(o, &s->sim, value, sizeof(value)));
	}
	return buf;
}

const char *store_spec_warning(const struct store_spec *s)
{
	switch (s->kind) {
	case STORE_KIND_FILE:
		return NULL;
	case STORE_KIND_SIM:
		return "its files are behind a modelled disk, for tests and figures only";
	case STORE_KIND_RATE:
		return "its files come and go at a constant rate, for tests and figures only";
	case STORE_KIND_NULL:
		return "what is read from its files is zeroes and WHAT IS WRITTEN TO THEM IS LOST, "
		       "for tests and figures only";
	}
	return NULL;
}
