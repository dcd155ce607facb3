/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripes_conf.h - which directories keep stripes of volumes, and for which peers
 */
#ifndef LEAT_SERVER_STRIPES_CONF_H
#define LEAT_SERVER_STRIPES_CONF_H

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "data_conf.h"
#include "peers.h"
#include "spec.h"

/* The configuration of the stripes of a volume; plain data, owned by the parser, freed by stripes_conf_fini(). */
struct stripes_conf {
	char *name;
	char *path;	/* absolute: of the directory */
	char *key;	/* absolute: of the volume's key file */
	uint32_t id;	/* of this server in the volume; 0: not given */
	unsigned line;	/* of its section in the file; 0: command line */
	unsigned given; /* options set so far, to detect contradictions */
	struct peers peers; /* over a network */
	struct data_conf data;
};

/** stripes_conf_fini - frees the strings in @c; calling it again is harmless */
void stripes_conf_fini(struct stripes_conf *c);

/** stripes_conf_kind - for spec.h, with the table of its own options */
extern const struct spec_kind stripes_conf_kind;

/** stripes_conf_parse - parses "NAME=PATH,key=FILE,id=N[,option...]"
 * @ret: on success the caller frees it with stripes_conf_fini()
 *
 * Return: as spec_parse().
 */
static inline int must_check stripes_conf_parse(const char *arg, struct stripes_conf *ret, char *why, size_t why_bytes)
{
	int err = spec_parse(&stripes_conf_kind, arg, ret, why, why_bytes);

	if (err)
		stripes_conf_fini(ret);
	return err;
}

#endif
