/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * export_data.c - options that control the data path of an export
 *
 * Operation: a table of sizes and a table of words; export.c passes options here that are not its own.
 * Memory:    plain data of the caller's.
 * Threads:   any.
 * Errors:    a text for the user.
 */
#include "export_data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/size.h"

struct word {
	const char *key;
	unsigned bit;
	size_t at; /* offset of an enum in struct export_data */
	const char *values[4];
};

#define WORD(k, b, field, ...)                                                                 \
	{                                                                                      \
		.key = k, .bit = b, .at = offsetof(struct export_data, field),                 \
		.values = { __VA_ARGS__ },                                                     \
	}

static const struct word words[] = {
	WORD("overlap", DATA_GIVEN_OVERLAP, overlap, "off", "ordered", "streams"),
	WORD("read", DATA_GIVEN_READ, read, "cached", "direct", "auto"),
	WORD("write", DATA_GIVEN_WRITE, write, "cached", "direct"),
	WORD("trust_clients", DATA_GIVEN_TRUST, trust_clients, "no", "yes"),
	WORD("sched", DATA_GIVEN_SCHED, sched, "none", "sorted", "deadline"),
};

struct size {
	const char *key;
	unsigned bit;
	size_t at; /* offset of a uint32_t in struct export_data */
	uint32_t min, max;
	uint32_t multiple; /* the value must be a multiple of this */
};

#define SIZE(k, b, field, lo, hi, m)                                                           \
	{                                                                                      \
		.key = k, .bit = b, .at = offsetof(struct export_data, field), .min = lo,      \
		.max = hi, .multiple = m,                                                      \
	}

static const struct size sizes[] = {
	SIZE("grain", DATA_GIVEN_GRAIN, grain, DATA_ALIGN, DATA_GRAIN_MAX, DATA_ALIGN),
	SIZE("streams", DATA_GIVEN_STREAMS, streams, 1, DATA_STREAMS_MAX, 1),
	SIZE("chunk", DATA_GIVEN_CHUNK, chunk, DATA_ALIGN, 1u << 30, DATA_ALIGN),
	SIZE("depth", DATA_GIVEN_DEPTH, depth, 1, DATA_DEPTH_MAX, 1),
};

void export_data_init(struct export_data *d)
{
	*d = (struct export_data){
		.streams = 1,
		.chunk = DATA_CHUNK_DEFAULT,
		.depth = DATA_DEPTH_DEFAULT,
		.deadline_ns = DATA_DEADLINE_DEFAULT_NS,
	};
	store_spec_init(&d->store);
}

static int contradicts(const char *key, char *why, size_t why_bytes)
{
	(void)snprintf(why, why_bytes, "%s: contradicts an option before it", key);
	return -EINVAL;
}

static int set_word(struct export_data *d, const struct word *w, const char *value, char *why,
		    size_t why_bytes)
{
	unsigned *at = (unsigned *)(void *)((char *)d + w->at);
	unsigned i = 0;

	while (i < ARRAY_SIZE(w->values) && w->values[i] && strcmp(w->values[i], value))
		i++;
	if (i == ARRAY_SIZE(w->values) || !w->values[i]) {
		int n = snprintf(why, why_bytes, "%s: '%s' is none of", w->key, value);

		for (i = 0; i < ARRAY_SIZE(w->values) && w->values[i]; i++) {
			if (n >= 0 && (size_t)n < why_bytes)
				n += snprintf(why + n, why_bytes - (size_t)n, " %s", w->values[i]);
		}
		return -EINVAL;
	}
	if (d->given & w->bit && *at != i)
		return contradicts(w->key, why, why_bytes);
	d->given |= w->bit;
	*at = i;
	return 0;
}

static int set_size(struct export_data *d, const struct size *s, const char *value, char *why,
		    size_t why_bytes)
{
	uint32_t *at = (uint32_t *)(void *)((char *)d + s->at);
	uint64_t v;

	if (!size_parse(value, &v) || v < s->min || v > s->max || v % s->multiple) {
		(void)snprintf(why, why_bytes, "%s: '%s' is not a %s from %u to %u", s->key, value,
			       s->multiple == 1 ? "number" : "multiple of 4096", s->min, s->max);
		return -EINVAL;
	}
	if (d->given & s->bit && *at != v)
		return contradicts(s->key, why, why_bytes);
	d->given |= s->bit;
	*at = (uint32_t)v;
	return 0;
}

static int set_store(struct export_data *d, const char *value, char *why, size_t why_bytes)
{
	char said[2][STORE_SPEC_PRINT_BYTES];
	struct store_spec spec;
	int err = store_spec_parse(value, &spec, why, why_bytes);

	if (err)
		return err;
	if (d->given & DATA_GIVEN_STORE &&
	    strcmp(store_spec_print(&d->store, said[0], sizeof(said[0])),
		   store_spec_print(&spec, said[1], sizeof(said[1]))))
		return contradicts("store", why, why_bytes);
	d->given |= DATA_GIVEN_STORE;
	d->store = spec;
	return 0;
}

static int set_deadline(struct export_data *d, const char *value, char *why, size_t why_bytes)
{
	uint64_t ns;

	if (!duration_parse(value, &ns) || ns < NS_PER_MS || ns > 60 * NS_PER_S) {
		(void)snprintf(why, why_bytes, "deadline: '%s' is not a time from 1ms to 60s",
			       value);
		return -EINVAL;
	}
	if (d->given & DATA_GIVEN_DEADLINE && d->deadline_ns != ns)
		return contradicts("deadline", why, why_bytes);
	d->given |= DATA_GIVEN_DEADLINE;
	d->deadline_ns = ns;
	return 0;
}

int export_data_option(struct export_data *d, const char *key, const char *value, char *why,
		       size_t why_bytes)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strcmp(key, words[i].key))
			return set_word(d, &words[i], value ? value : "yes", why, why_bytes);
	}
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (!strcmp(key, sizes[i].key))
			return set_size(d, &sizes[i], value ? value : "", why, why_bytes);
	}
	if (!strcmp(key, "store"))
		return set_store(d, value ? value : "", why, why_bytes);
	if (!strcmp(key, "deadline"))
		return set_deadline(d, value ? value : "", why, why_bytes);
	return -ENOENT;
}

#ifdef HAVE_AIO
#define HERE_AIO true
#else
#define HERE_AIO false
#endif

int export_data_check(const struct export_data *d, char *why, size_t why_bytes)
{
	unsigned pieces = DATA_GIVEN_GRAIN | DATA_GIVEN_STREAMS | DATA_GIVEN_CHUNK;

	if (d->overlap == DATA_OVERLAP_OFF && d->given & pieces) {
		(void)snprintf(why, why_bytes,
			       "grain, streams and chunk mean nothing without overlap");
		return -EINVAL;
	}
	if (d->given & DATA_GIVEN_CHUNK && d->streams == 1) {
		(void)snprintf(why, why_bytes, "chunk means nothing without streams");
		return -EINVAL;
	}
	if (d->grain && d->chunk % d->grain && d->streams > 1) {
		(void)snprintf(why, why_bytes, "chunk %u is not a multiple of grain %u", d->chunk,
			       d->grain);
		return -EINVAL;
	}
	if (d->store.kind != STORE_KIND_FILE && d->given & (DATA_GIVEN_READ | DATA_GIVEN_WRITE)) {
		(void)snprintf(why, why_bytes, "read and write mean nothing with another store "
					       "than files");
		return -EINVAL;
	}
	if (!HERE_AIO && (d->read != DATA_READ_CACHED || d->write != DATA_WRITE_CACHED)) {
		(void)snprintf(why, why_bytes, "read and write are cached: this leatd was built "
					       "without libaio");
		return -EINVAL;
	}
	if (d->given & DATA_GIVEN_DEPTH && d->sched == DATA_SCHED_NONE) {
		(void)snprintf(why, why_bytes, "depth means nothing without sched");
		return -EINVAL;
	}
	if (d->given & DATA_GIVEN_DEADLINE && d->sched != DATA_SCHED_DEADLINE) {
		(void)snprintf(why, why_bytes, "deadline means nothing without sched deadline");
		return -EINVAL;
	}
	return 0;
}

bool export_data_same(const struct export_data *a, const struct export_data *b)
{
	char said[2][EXPORT_DATA_PRINT_BYTES];

	return !strcmp(export_data_print(a, said[0], sizeof(said[0])),
		       export_data_print(b, said[1], sizeof(said[1])));
}

const char *export_data_print(const struct export_data *d, char *buf, size_t bytes)
{
	size_t n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		unsigned v = *(const unsigned *)(const void *)((const char *)d + words[i].at);

		if (d->given & words[i].bit && n < bytes)
			n += (size_t)snprintf(buf + n, bytes - n, ", %s %s", words[i].key,
					      words[i].values[v]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint32_t v = *(const uint32_t *)(const void *)((const char *)d + sizes[i].at);

		if (d->given & sizes[i].bit && n < bytes)
			n += (size_t)snprintf(buf + n, bytes - n, ", %s %u", sizes[i].key, v);
	}
	if (d->given & DATA_GIVEN_STORE && n < bytes) {
		char said[STORE_SPEC_PRINT_BYTES];

		n += (size_t)snprintf(buf + n, bytes - n, ", store %s",
				      store_spec_print(&d->store, said, sizeof(said)));
	}
	if (d->given & DATA_GIVEN_DEADLINE && n < bytes)
		(void)snprintf(buf + n, bytes - n, ", deadline %" PRIu64 "us",
			       d->deadline_ns / NS_PER_US);
	return buf;
}
