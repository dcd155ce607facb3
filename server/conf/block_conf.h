/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_conf.h - which files and devices are block volumes, and for which peers
 */
#ifndef LEAT_SERVER_BLOCK_CONF_H
#define LEAT_SERVER_BLOCK_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/util.h"
#include "data_conf.h"
#include "peers.h"
#include "spec.h"

#define BLOCK_CONF_USERS_MAX 64

enum block_conf_share { BLOCK_CONF_EXCLUSIVE, BLOCK_CONF_SHARED };

enum block_conf_take_over {
	BLOCK_CONF_TAKE_OVER_ALL,  /* all that may attach */
	BLOCK_CONF_TAKE_OVER_NONE,
	BLOCK_CONF_TAKE_OVER_SOME, /* peers of the networks, and peers on this host */
};

enum { /* struct block_conf.given */
       BLOCK_CONF_GIVEN_RO = 1u << 0,
       BLOCK_CONF_GIVEN_SHARE = 1u << 2,
       BLOCK_CONF_GIVEN_BLOCK = 1u << 3,
       BLOCK_CONF_GIVEN_TAKE_OVER = 1u << 4,
};

/* The configuration of a volume; plain data, owned by the parser, freed by block_conf_fini(). */
struct block_conf {
	char *name;
	char *path;	/* absolute: of the file or device */
	uint64_t dev, ino; /* of the file; of a device its number, and 0 */
	unsigned line;	/* of its section in the file; 0: command line */
	unsigned given; /* options set so far, to detect contradictions */
	bool ro;
	enum block_conf_share share;
	uint32_t block; /* least block size, in bytes */
	struct peers peers; /* over a network */
	uid_t users[BLOCK_CONF_USERS_MAX]; /* over the local fabric */
	size_t nusers; /* 0: leatd's own user, and root */
	enum block_conf_take_over take_over;
	struct peers take_over_peers; /* SOME */
	struct data_conf data;
};

/** block_conf_fini - frees the strings in @c; calling it again is harmless */
void block_conf_fini(struct block_conf *c);

/** block_conf_kind - for spec.h, with the table of its own options; defaults: read and write, exclusive, this host only,
 * direct I/O, only reserved ports if leatd runs as root */
extern const struct spec_kind block_conf_kind;

/** block_conf_parse - parses "NAME=PATH[,option...]"
 * @ret: on success the caller frees it with block_conf_fini()
 *
 * Return: as spec_parse().
 */
static inline int must_check block_conf_parse(const char *arg, struct block_conf *ret, char *why, size_t why_bytes)
{
	return spec_parse(&block_conf_kind, arg, ret, why, why_bytes);
}

/** block_conf_name_ok - may a volume, or a holder of one, have this name? 1 to 63 bytes, printable, without a slash */
bool block_conf_name_ok(const char *name);

#endif
