/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_spec.h - the option `store`: what stores the contents of an export's files
 */
#ifndef LEAT_SERVER_STORE_SPEC_H
#define LEAT_SERVER_STORE_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

#define SIM_MEMBERS_MAX 32u

/* What is modelled; plain data. */
struct sim_spec {
	uint32_t members;    /* 1 to SIM_MEMBERS_MAX */
	uint32_t chunk;	     /* bytes of a file on one member before the next member's turn */
	uint64_t rate;	     /* bytes per second of one member */
	uint64_t latency_ns; /* before a request that does not follow the member's last one */
	uint64_t jitter_ns;  /* upper bound of the random extra time per request and member */
	uint64_t seed;	     /* of the random generator */
	uint64_t fail;	     /* number of the request that fails; 0: none */
	bool forgets;	     /* its cache is volatile: store_sim_cut() */
};

struct opt;

enum store_kind {
	STORE_KIND_FILE, /* the files themselves */
	STORE_KIND_SIM,	 /* the files on a modelled disk */
	STORE_KIND_RATE, /* the files at a constant rate: a simple modelled disk */
	STORE_KIND_NULL, /* nothing */
};

/* Part of struct data_conf: plain data. */
struct store_spec {
	enum store_kind kind;
	struct sim_spec sim; /* SIM, RATE */
};

/** store_spec_init - sets the default: files */
void store_spec_init(struct store_spec *s);

/** store_spec_parse - parses "file", "null", "rate:400M" or "sim:members=8:chunk=64K:latency=100us:..."
 * @why: gets a text on failure; @ret is unchanged then
 *
 * Return: 0, -EINVAL.
 */
int must_check store_spec_parse(const char *text, struct store_spec *ret, char *why,
				size_t why_bytes);

#define STORE_SPEC_PRINT_BYTES 192

/** store_spec_print - prints the format of store_spec_parse(), the same text for the same meaning; Return: @buf */
const char *store_spec_print(const struct store_spec *s, char *buf, size_t bytes);

/** store_spec_opts - the table of the words of "sim:"; @ret_n: their number */
const struct opt *store_spec_opts(size_t *ret_n);

/** store_spec_warning - returns a warning for the administrator, or NULL */
const char *store_spec_warning(const struct store_spec *s);

#endif
