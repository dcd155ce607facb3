/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_spec.h - the option `store`: what stores the contents of an export's files
 */
#ifndef LEAT_SERVER_STORE_SPEC_H
#define LEAT_SERVER_STORE_SPEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "store_sim_model.h"

enum store_kind {
	STORE_KIND_FILE, /* the files themselves */
	STORE_KIND_SIM,	 /* the files on a modelled disk */
	STORE_KIND_RATE, /* the files at a constant rate: a simple modelled disk */
	STORE_KIND_NULL, /* nothing */
};

/* Part of struct export_data: plain data. */
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

/** store_spec_warning - returns a warning for the administrator, or NULL */
const char *store_spec_warning(const struct store_spec *s);

#endif
