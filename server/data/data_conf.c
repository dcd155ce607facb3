/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * data_conf.c - how the data of an export or a volume is stored and travels: its options
 *
 * Operation: one table; export.c passes options here that are not its own.
 * Memory:    plain data of the caller's.
 * Threads:   any.
 * Errors:    a text for the user.
 */
#include "data_conf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/opt.h"

#define AT(member) OPT_AT(struct data_conf, member)

static int set_store(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	char said[2][STORE_SPEC_PRINT_BYTES];
	struct data_conf *d = to;
	struct store_spec spec;
	int err = store_spec_parse(value ? value : "", &spec, why, why_bytes);

	if (err)
		return err;
	if (d->given & o->given &&
	    strcmp(store_spec_print(&d->store, said[0], sizeof(said[0])),
		   store_spec_print(&spec, said[1], sizeof(said[1]))))
		return opt_fail(-EINVAL, why, why_bytes, "store: contradicts an option before it");
	d->given |= o->given;
	d->store = spec;
	return 0;
}

static const struct opt opts[] = {
	{ "overlap", "HOW", "off", "overlap disk and network in one request: pieces in any order, or in order",
	  "off ordered streams", OPT_WORD, 0, AT(overlap), .given = DATA_GIVEN_OVERLAP },
	{ "read", "HOW", "cached", "read through the page cache, from the disk, or from where the data is",
	  "cached direct auto", OPT_WORD, 0, AT(read), .given = DATA_GIVEN_READ },
	{ "write", "HOW", "cached", "write to the page cache or to the disk", "cached direct", OPT_WORD, 0, AT(write),
	  .given = DATA_GIVEN_WRITE },
	{ "trust_clients", "yes|no", "no", "trust local clients not to change the data of a WRITE before its reply",
	  NULL, OPT_FLAG, 0, AT(trust_clients), .max = true, .given = DATA_GIVEN_TRUST },
	{ "sched", "ORDER", "none", "order of reads and writes at the disk", "none sorted deadline", OPT_WORD, 0,
	  AT(sched), .given = DATA_GIVEN_SCHED },
	{ "grain", "BYTES", NULL, "bytes of a piece; without it a 32nd of the data for each member of the disk", NULL,
	  OPT_SIZE, 0, AT(grain), .min = DATA_ALIGN, .max = DATA_GRAIN_MAX, .step = DATA_ALIGN,
	  .given = DATA_GIVEN_GRAIN },
	{ "streams", "N", "1", "members of the disk that work in parallel", NULL, OPT_NUMBER, 0, AT(streams), .min = 1,
	  .max = DATA_STREAMS_MAX, .given = DATA_GIVEN_STREAMS },
	{ "chunk", "BYTES", "64K", "stripe unit: contiguous bytes on one member", NULL, OPT_SIZE, 0, AT(chunk),
	  .min = DATA_ALIGN, .max = 1u << 30, .step = DATA_ALIGN, .given = DATA_GIVEN_CHUNK },
	{ "depth", "N", "32", "with sched: reads and writes at the disk at once", NULL, OPT_NUMBER, 0, AT(depth),
	  .min = 1, .max = DATA_DEPTH_MAX, .given = DATA_GIVEN_DEPTH },
	{ "store", "KIND", "file", "what stores the data, for tests: file, null, rate:SPEED, sim:WORD:...", NULL,
	  OPT_OTHER, 0, AT(store), .given = DATA_GIVEN_STORE, .set = set_store },
	{ "deadline", "TIME", "500ms", "with sched=deadline: how long a read may wait", NULL, OPT_TIME, 0,
	  AT(deadline_ns), .min = NS_PER_MS, .max = 60 * NS_PER_S, .unit = 1, .given = DATA_GIVEN_DEADLINE },
};

void data_conf_init(struct data_conf *d)
{
	memset(d, 0, sizeof(*d));
	opt_init(opts, ARRAY_SIZE(opts), d);
	store_spec_init(&d->store);
}

int data_conf_option(struct data_conf *d, const char *key, const char *value, char *why,
		       size_t why_bytes)
{
	const struct opt *o = opt_find(opts, ARRAY_SIZE(opts), key);

	return o ? opt_set_once(o, d, &d->given, value, why, why_bytes) : -ENOENT;
}

const struct opt *data_conf_opts(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(opts);
	return opts;
}

#ifdef HAVE_AIO
#define HERE_AIO true
#else
#define HERE_AIO false
#endif

int data_conf_check(const struct data_conf *d, char *why, size_t why_bytes)
{
	unsigned pieces = DATA_GIVEN_GRAIN | DATA_GIVEN_STREAMS | DATA_GIVEN_CHUNK;

	if (d->overlap == DATA_OVERLAP_OFF && d->given & pieces)
		return opt_fail(-EINVAL, why, why_bytes, "grain, streams and chunk mean nothing without overlap");
	if (d->given & DATA_GIVEN_CHUNK && d->streams == 1)
		return opt_fail(-EINVAL, why, why_bytes, "chunk means nothing without streams");
	if (d->grain && d->chunk % d->grain && d->streams > 1)
		return opt_fail(-EINVAL, why, why_bytes, "chunk %u is not a multiple of grain %u", d->chunk, d->grain);
	if (d->store.kind != STORE_KIND_FILE && d->given & (DATA_GIVEN_READ | DATA_GIVEN_WRITE))
		return opt_fail(-EINVAL, why, why_bytes,
				"read and write mean nothing with another store than files");
	if (!HERE_AIO && (d->read != DATA_READ_CACHED || d->write != DATA_WRITE_CACHED))
		return opt_fail(-EINVAL, why, why_bytes,
				"read and write are cached: this leatd was built without libaio");
	if (d->given & DATA_GIVEN_DEPTH && d->sched == DATA_SCHED_NONE)
		return opt_fail(-EINVAL, why, why_bytes, "depth means nothing without sched");
	if (d->given & DATA_GIVEN_DEADLINE && d->sched != DATA_SCHED_DEADLINE)
		return opt_fail(-EINVAL, why, why_bytes, "deadline means nothing without sched deadline");
	return 0;
}

bool data_conf_same(const struct data_conf *a, const struct data_conf *b)
{
	char said[2][DATA_CONF_PRINT_BYTES];

	return !strcmp(data_conf_print(a, said[0], sizeof(said[0])),
		       data_conf_print(b, said[1], sizeof(said[1])));
}

const char *data_conf_print(const struct data_conf *d, char *buf, size_t bytes)
{
	size_t n = 0;

	buf[0] = '\0';
	for (const struct opt *o = opts; o < opts + ARRAY_SIZE(opts) && n < bytes; o++) {
		char said[STORE_SPEC_PRINT_BYTES];

		if (!(d->given & o->given))
			continue;
		if (o->type == OPT_OTHER)
			(void)store_spec_print(&d->store, said, sizeof(said));
		else
			(void)opt_print(o, d, said, sizeof(said));
		n += (size_t)snprintf(buf + n, bytes - n, ", %s %s", o->name, said);
	}
	return buf;
}
