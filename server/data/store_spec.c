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
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/size.h"

#define CHUNK_UNIT 4096u
#define RATE_MIN 4096u
#define RATE_MAX (UINT64_C(1) << 40)
#define TIME_MAX (10 * NS_PER_S)

void store_spec_init(struct store_spec *s)
{
	*s = (struct store_spec){
		.kind = STORE_KIND_FILE,
		.sim = { .members = 1, .chunk = 64u << 10, .rate = 100u << 20, .seed = 1 },
	};
}

static bool parse_size(const char *value, uint64_t min, uint64_t max, uint64_t multiple,
		       uint64_t *ret)
{
	uint64_t v;

	if (!size_parse(value, &v) || v < min || v > max || v % multiple)
		return false;
	*ret = v;
	return true;
}

static bool set_members(struct sim_spec *s, const char *value)
{
	uint64_t v;
	bool ok = parse_size(value, 1, SIM_MEMBERS_MAX, 1, &v);

	if (ok)
		s->members = (uint32_t)v;
	return ok;
}

static bool set_chunk(struct sim_spec *s, const char *value)
{
	uint64_t v;
	bool ok = parse_size(value, CHUNK_UNIT, 1u << 30, CHUNK_UNIT, &v);

	if (ok)
		s->chunk = (uint32_t)v;
	return ok;
}

static bool set_rate(struct sim_spec *s, const char *value)
{
	return parse_size(value, RATE_MIN, RATE_MAX, 1, &s->rate);
}

static bool parse_time(const char *value, uint64_t *ret)
{
	uint64_t v;

	if (!duration_parse(value, &v) || v > TIME_MAX)
		return false;
	*ret = v;
	return true;
}

static bool set_latency(struct sim_spec *s, const char *value)
{
	return parse_time(value, &s->latency_ns);
}

static bool set_jitter(struct sim_spec *s, const char *value)
{
	return parse_time(value, &s->jitter_ns);
}

static bool set_seed(struct sim_spec *s, const char *value)
{
	return parse_size(value, 0, UINT64_MAX, 1, &s->seed);
}

static bool set_fail(struct sim_spec *s, const char *value)
{
	return parse_size(value, 1, UINT64_MAX, 1, &s->fail);
}

static bool set_volatile(struct sim_spec *s, const char *value)
{
	s->forgets = true;
	return !value;
}

static const struct word {
	const char *key;
	bool (*set)(struct sim_spec *s, const char *value); /* NULL value: it was given without one */
	const char *wants;
} words[] = {
	{ "members", set_members, "a number from 1 to 32" },
	{ "chunk", set_chunk, "a multiple of 4096 up to 1G" },
	{ "rate", set_rate, "bytes per second from 4K to 1T" },
	{ "latency", set_latency, "a time up to 10s, such as 100us" },
	{ "jitter", set_jitter, "a time up to 10s, such as 20us" },
	{ "seed", set_seed, "a number" },
	{ "fail", set_fail, "the number of a request, from 1" },
	{ "volatile", set_volatile, "no value" },
};

/* Modifies @word. */
static int parse_word(struct sim_spec *s, char *word, unsigned *given, char *why, size_t why_bytes)
{
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const struct word *w = &words[i];

		if (strcmp(w->key, word))
			continue;
		if (*given & 1u << i) {
			(void)snprintf(why, why_bytes, "store: sim: %s is given twice", word);
			return -EINVAL;
		}
		*given |= 1u << i;
		if ((value || w->set == set_volatile) && w->set(s, value))
			return 0;
		(void)snprintf(why, why_bytes, "store: sim: %s wants %s, not '%s'", word, w->wants,
			       value ? value : "");
		return -EINVAL;
	}
	(void)snprintf(why, why_bytes, "store: sim: '%s' is not a word of it", word);
	return -EINVAL;
}

static int parse_sim(const char *text, struct sim_spec *s, char *why, size_t why_bytes)
{
	char copy[STORE_SPEC_PRINT_BYTES], *at = copy, *word;
	unsigned given = 0;
	int err = 0;

	if (strlen(text) >= sizeof(copy)) {
		(void)snprintf(why, why_bytes, "store: sim: more than %zu bytes", sizeof(copy) - 1);
		return -EINVAL;
	}
	strcpy(copy, text);
	while (!err && (word = strsep(&at, ":")))
		err = parse_word(s, word, &given, why, why_bytes);
	return err;
}

static int parse_rate(const char *text, struct sim_spec *s, char *why, size_t why_bytes)
{
	if (set_rate(s, text))
		return 0;
	(void)snprintf(why, why_bytes, "store: rate: '%s' is not bytes per second from 4K to 1T",
		       text);
	return -EINVAL;
}

/* Parses "KIND:..."; Return: the text after the colon, or NULL */
static const char *behind(const char *text, const char *kind)
{
	size_t n = strlen(kind);

	return !strncmp(text, kind, n) && text[n] == ':' ? text + n + 1 : NULL;
}

int store_spec_parse(const char *text, struct store_spec *ret, char *why, size_t why_bytes)
{
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
		err = parse_rate(rest, &s.sim, why, why_bytes);
	} else {
		(void)snprintf(why, why_bytes,
			       "store: '%s' is none of file sim sim:... null rate:SPEED", text);
		err = -EINVAL;
	}
	if (!err)
		*ret = s;
	return err;
}

const char *store_spec_print(const struct store_spec *s, char *buf, size_t bytes)
{
	const struct sim_spec *m = &s->sim;

	switch (s->kind) {
	case STORE_KIND_FILE:
		(void)snprintf(buf, bytes, "file");
		break;
	case STORE_KIND_NULL:
		(void)snprintf(buf, bytes, "null");
		break;
	case STORE_KIND_RATE:
		(void)snprintf(buf, bytes, "rate:%" PRIu64, m->rate);
		break;
	case STORE_KIND_SIM:
		(void)snprintf(buf, bytes,
			       "sim:members=%u:chunk=%u:rate=%" PRIu64 ":latency=%" PRIu64
			       "ns:jitter=%" PRIu64 "ns:seed=%" PRIu64,
			       m->members, m->chunk, m->rate, m->latency_ns, m->jitter_ns, m->seed);
		if (m->fail) {
			size_t n = strlen(buf);

			(void)snprintf(buf + n, bytes - n, ":fail=%" PRIu64, m->fail);
		}
		if (m->forgets) {
			size_t n = strlen(buf);

			(void)snprintf(buf + n, bytes - n, ":volatile");
		}
		break;
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
