/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * conf.h - what leatd was asked to do, by command line and file
 */
#ifndef LEAT_SERVER_CONF_H
#define LEAT_SERVER_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/util.h"
#include "export.h"
#include "rpcrdma.h"

#define CONF_EXPORTS_MAX 256
#define CONF_LISTEN_MAX 32

/* Owned by whoever called conf_init(); conf_fini() frees what it points at. */
struct conf {
	struct export_conf exports[CONF_EXPORTS_MAX];
	size_t nexports;
	struct rpcrdma_addr listen[CONF_LISTEN_MAX];
	size_t nlisten;	   /* 0: whatever the machine has */
	unsigned reactors; /* 0: one per core */
	unsigned workers;  /* 0: twice the cores, at least 4 */
	enum rpcrdma_poll poll;
	uint32_t inline_bytes; /* 0: the library's default */
	uint32_t credits;      /* 0: the library's default */
	bool srq;              /* connections share their receives */
	bool no_private_data;  /* tell and believe no thresholds: 1024 bytes */
	unsigned modes;	       /* enum rpcrdma_mode: other ways of moving data, for who asks */
	uint32_t drc_entries;  /* of the duplicate request cache; 0: none */
	uint32_t drc_bytes;
	size_t pinned_max;     /* buffer memory; 0: the library's default */
	size_t messages_max;   /* memory for messages of connections; 0: likewise */
	size_t shared_max;     /* memory shared with clients on this host; 0: likewise */
	bool arena;            /* all of pinned_max and messages_max at once, as one region */
	unsigned max_connections; /* of all clients together */
	char *capture;	       /* NULL: none */
	bool unsigned_handles; /* by name only, without a signature */
	char *state_dir;       /* keeps what makes handles outlive a restart; NULL: nothing does */
	bool state_dir_usual;  /* nobody asked for that one: it may be unusable */
	bool everyone;	       /* not root: let other users of this host in, too, as ourselves */
	bool rpcbind;	       /* register with the local one */
	bool unsafe_inv;       /* invalidate for peers over soft RoCE, too */
	bool manage_gids;      /* groups are what this host knows of a user, not what he says */
	enum log_level log_level;
};

/** conf_init - the defaults */
void conf_init(struct conf *c);
void conf_fini(struct conf *c);

#define CONF_WHY_BYTES 512

/** conf_file - read an INI file: [server] and [export NAME] sections, the names of the options
 * @why: gets "FILE:LINE: reason" on failure
 *
 * Return: 0, -EINVAL, or the errno of opening it.
 */
int must_check conf_file(struct conf *c, const char *path, char why[CONF_WHY_BYTES]);

enum conf_todo { CONF_RUN, CONF_HELP, CONF_VERSION, CONF_USAGE, CONF_BAD };

/** conf_args - the command line, and the file that it names; options on it win over the file
 *
 * Return: CONF_RUN; CONF_HELP, CONF_VERSION: that is asked for; CONF_USAGE: @why tells what the
 * command line lacks (exit status 2); CONF_BAD: what it says cannot be (exit status 1).
 */
enum conf_todo must_check conf_args(struct conf *c, int argc, char **argv,
				    char why[CONF_WHY_BYTES]);

/** conf_check - does it make sense as a whole?
 *
 * Return: 0, -EINVAL with @why.
 */
int must_check conf_check(const struct conf *c, char why[CONF_WHY_BYTES]);

#endif
