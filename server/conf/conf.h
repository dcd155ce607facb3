/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * conf.h - the configuration of leatd, from command line and file
 */
#ifndef LEAT_SERVER_CONF_H
#define LEAT_SERVER_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/log.h"
#include "base/util.h"
#include "block_conf.h"
#include "export.h"
#include "rpcrdma.h"
#include "stripes_conf.h"

#define CONF_EXPORTS_MAX 256
#define CONF_BLOCKS_MAX 256
#define CONF_STRIPES_MAX 64
#define CONF_LISTEN_MAX 32

/* Owned by the caller of conf_init(); conf_fini() frees its members. */
struct conf {
	struct export_conf exports[CONF_EXPORTS_MAX];
	size_t nexports;
	struct block_conf blocks[CONF_BLOCKS_MAX];
	size_t nblocks;
	struct stripes_conf stripes[CONF_STRIPES_MAX];
	size_t nstripes;
	struct rpcrdma_addr listen[CONF_LISTEN_MAX];
	size_t nlisten;	   /* 0: all transports that the machine supports */
	unsigned reactors; /* 0: one per core */
	unsigned workers;  /* 0: twice the cores, at least 4 */
	enum rpcrdma_poll poll;
	uint32_t inline_bytes;
	uint32_t credits;
	bool srq;              /* connections share their receives */
	bool no_private_data;  /* neither send nor use RFC 8797 thresholds: 1024 bytes */
	unsigned modes;	       /* enum rpcrdma_mode: other data transfer modes, for clients that request them */
	uint32_t drc_entries;  /* limit of the duplicate request cache; 0: no cache */
	uint32_t drc_bytes;
	size_t pinned_max;     /* limit of buffer memory */
	size_t messages_max;   /* memory for messages of connections */
	size_t shared_max;     /* memory shared with clients on this host */
	bool arena;            /* allocate pinned_max and messages_max at once, as one region */
	unsigned max_connections; /* of all clients together */
	char *capture;	       /* NULL: none */
	bool unsigned_handles; /* handles by name only, without a signature */
	char *state_dir;       /* keeps the state that makes handles survive a restart; NULL: not kept */
	bool state_dir_usual;  /* it is the default directory: it may be unusable */
	bool everyone;	       /* not root: also admit other users of this host, with this user's rights */
	bool rpcbind;	       /* register with the local rpcbind */
	bool unsafe_inv;       /* remote invalidation over soft RoCE, too */
	bool manage_gids;      /* use the groups in this host's database instead of those in the call */
	enum log_level log_level;
};

/** conf_init - sets the defaults */
void conf_init(struct conf *c);

/** conf_fini - frees the members */
void conf_fini(struct conf *c);

/** conf_take_served - moves exports, block volumes and stripes of @from to @to, after freeing its own */
void conf_take_served(struct conf *to, struct conf *from);

/** conf_unrestricted - finds an export, a block volume or stripes without clients=, which is for this host only
 *
 * Return: its name, and in @ret_section what it is; NULL: none has this.
 */
const char *conf_unrestricted(const struct conf *c, const char **ret_section);

#define CONF_WHY_BYTES 512

/** conf_file - reads an INI file: sections [server], [export NAME], [block NAME], [stripes NAME] and [volume NAME], with the names of the options
 * @why: receives "FILE:LINE: reason" on failure
 *
 * Return: 0, -EINVAL, or the errno of opening it.
 */
int must_check conf_file(struct conf *c, const char *path, char why[CONF_WHY_BYTES]);

enum conf_todo { CONF_RUN, CONF_HELP, CONF_VERSION, CONF_USAGE, CONF_BAD };

/** conf_args - reads the command line, and the file that it names; options on the command line take precedence
 *
 * Return: CONF_RUN; CONF_HELP, CONF_VERSION: requested; CONF_USAGE: usage error, described in @why (exit status 2);
 * CONF_BAD: invalid values (exit status 1).
 */
enum conf_todo must_check conf_args(struct conf *c, int argc, char **argv,
				    char why[CONF_WHY_BYTES]);

/** conf_help - prints the options of the command line */
void conf_help(FILE *to);

/** conf_check - checks the configuration as a whole
 *
 * Return: 0, -EINVAL with @why.
 */
int must_check conf_check(const struct conf *c, char why[CONF_WHY_BYTES]);

#endif
