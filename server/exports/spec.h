/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * spec.h - the options of exports and of block volumes, of the command line ("NAME=PATH,ro,clients=10.0.0.0/8,fd00::/8")
 * and of a section of the file
 */
#ifndef LEAT_SERVER_SPEC_H
#define LEAT_SERVER_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/opt.h"
#include "base/util.h"

/* A kind of configuration: struct export_conf or struct block_conf */
struct spec_kind {
	const char *section;    /* [SECTION NAME] of the file */
	const char *what;       /* what messages call one of it */
	bool named;             /* on the command line it needs a name */
	size_t bytes;           /* of the structure */
	const struct opt *opts; /* its own; those of peers_opts() and data_conf_opts() are added */
	size_t nopts;
	/* offsets of members */
	size_t name, path;      /* char *, NULL: not given */
	size_t given;           /* unsigned: options set so far */
	size_t peers, data;     /* struct peers, struct data_conf */
	void (*init)(void *conf); /* sets the defaults */
	/* checks a complete configuration; Return: 0, or -errno with @why, except for -ENOMEM */
	int (*finish)(void *conf, char *why, size_t why_bytes);
};

#define SPEC_MEMBERS(type)                                                                                     \
	.bytes = sizeof(type), .name = offsetof(type, name), .path = offsetof(type, path),                  \
	.given = offsetof(type, given), .peers = offsetof(type, peers), .data = offsetof(type, data)

/* A row of @opts. Two options with one bit have one member: the second one may not contradict the first. */
#define SPEC_FLAG(type_, name_, preset_, help_, member, yes, no, bit)                                          \
	{                                                                                                    \
		.name = name_, .preset = preset_, .help = help_, .type = OPT_FLAG, .min = no, .max = yes,    \
		.given = bit, OPT_AT(type_, member),                                                         \
	}

/** spec_option - applies one option to @conf
 * @key: also "path"
 * @value: NULL for a bare flag
 *
 * Return: 0; -ENOENT: no such option; -EINVAL: also if it contradicts an earlier one; -ENOMEM; -E2BIG. @why has the
 * reason, except for -ENOMEM.
 */
int must_check spec_option(const struct spec_kind *k, void *conf, const char *key, const char *value, char *why,
			   size_t why_bytes);

/** spec_name - the name of @conf; NULL: none was given */
static inline char **spec_name(const struct spec_kind *k, void *conf)
{
	return (char **)(void *)((char *)conf + k->name);
}

/** spec_finish - call after the last option of a section: checks the configuration, and makes its path absolute
 *
 * Return: 0; -EINVAL; -ENOMEM; or the errno of accessing the path. @why has the reason.
 */
int must_check spec_finish(const struct spec_kind *k, void *conf, char *why, size_t why_bytes);

/** spec_parse - initialises @conf, applies "[NAME=]PATH[,option...]" of the command line to it, and finishes it
 * A network after an option whose value was a network continues its list.
 *
 * Return: as spec_option() and spec_finish(); @why always has the reason. Name and path are freed after a failure.
 */
int must_check spec_parse(const struct spec_kind *k, const char *arg, void *conf, char *why, size_t why_bytes);

/** spec_resolve - makes the path absolute, without links; Return: 0, and @ret is set; or -errno */
int must_check spec_resolve(char **path, struct stat *ret);

#endif
