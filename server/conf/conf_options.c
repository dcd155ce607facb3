/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * conf_options.c - the options of leatd, on the command line and in the file
 *
 * Operation: the table declares each option once, for the command line, the file, --help and reload.c. A function
 *            parses what is neither a number, a word nor a text.
 * Memory:    struct conf owns its strings.
 * Threads:   one, before any other.
 * Errors:    a text for the administrator, and -EINVAL.
 */
#include "conf_int.h"

#include <errno.h>
#include <string.h>

#include "drc.h"
#include "rpcrdma_lab.h"

#define MEMORY_MAX (UINT64_C(1) << 40)
#define AT(member) OPT_AT(struct conf, member)

static int set_modes(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	struct conf *c = to;

	return rpcrdma_modes_parse(value, &c->modes) ? opt_refuse(o, value, why, why_bytes) : 0;
}

static int add_listen(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	struct conf *c = to;
	int err;

	if (c->nlisten == CONF_LISTEN_MAX)
		return opt_fail(-EINVAL, why, why_bytes, "more than %d listeners", CONF_LISTEN_MAX);
	err = rpcrdma_addr_parse(value, &c->listen[c->nlisten]);
	if (err == -ENAMETOOLONG)
		return opt_fail(-EINVAL, why, why_bytes, "listen: '%.200s' is too long", value);
	if (err)
		return opt_refuse(o, value, why, why_bytes);
	c->nlisten++;
	return 0;
}

static int set_level(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	struct conf *c = to;
	bool yes = false;
	const struct opt flag = { .name = o->name, .type = OPT_FLAG, .size = sizeof(yes), .max = 1 };
	int err = opt_set(&flag, &yes, value, why, why_bytes);

	if (yes)
		c->log_level = o->letter == 'v' ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN;
	return err;
}

const struct opt conf_opts[CONF_OPTS] = {
	{ "config", "FILE", NULL, "read FILE first: sections [server], [export /NAME], [block NAME], [stripes NAME] and [volume NAME]", NULL, OPT_OTHER, .letter = 'c' },
	{ "export", "SPEC", NULL, "serve a directory: DIR or /NAME=DIR, and options after commas, see below", NULL,
	  OPT_OTHER, .letter = 'e' },
	{ "block", "SPEC", NULL, "serve a file or a block device as a volume: NAME=PATH, and options after commas, see below",
	  NULL, OPT_OTHER, .letter = 'b' },
	{ "stripes", "SPEC", NULL, "keep the stripes of a volume in a directory: NAME=PATH, and options after commas, see below",
	  NULL, OPT_OTHER, .letter = 's' },
	{ "volume", "SPEC", NULL, "manage a volume of striped files: NAME=DIR, and options after commas, see below", NULL, OPT_OTHER,
	  .letter = 'm' },
	{ "listen", "URL", NULL, "accept connections there; without any: whatever this machine has, for this host",
	  "a URL like tcp://HOST:PORT, local:///PATH or rdma://HOST:PORT", OPT_OTHER, 'l', .set = add_listen },
	{ "reactors", "N", "auto", "threads that serve connections; auto: one per core", "auto", OPT_NUMBER, 0,
	  AT(reactors), .min = 1, .max = 1024 },
	{ "workers", "N", "auto", "threads for calls that block; auto: four per core, 16 at least", "auto", OPT_NUMBER,
	  0, AT(workers), .min = 1, .max = 4096 },
	{ "poll", "HOW", "adaptive", "how reactors wait", "adaptive busy event", OPT_WORD, 0, AT(poll) },
	{ "inline", "BYTES", "4K", "largest message without chunks", NULL, OPT_SIZE, 0, AT(inline_bytes), .min = 1024,
	  .max = 65536, .step = 1024 },
	{ "credits", "N", "64", "calls of one connection at once", NULL, OPT_NUMBER, 0, AT(credits), .min = 1,
	  .max = 4096 },
	{ "no-private-data", NULL, NULL, "send no sizes to peers and ignore theirs: messages of 1024 bytes", NULL,
	  OPT_FLAG, 0, AT(no_private_data), .min = true },
	{ "modes", "NAMES", "none", "other ways of moving data, for clients that request them",
	  "none or names among read-read, fast-write, hybrid", OPT_OTHER, 0, AT(modes), .set = set_modes },
	{ "drc-entries", "N", "32768", "replies kept for retransmitted calls; 0: none", NULL, OPT_NUMBER, 0,
	  AT(drc_entries), .max = DRC_ENTRIES_MAX },
	{ "drc-bytes", "BYTES", "32M", "memory for them", NULL, OPT_SIZE, 0, AT(drc_bytes), .min = DRC_BYTES_MIN,
	  .max = DRC_BYTES_MAX },
	{ "pinned-max", "BYTES", "256M", "buffer memory", NULL, OPT_SIZE, 0, AT(pinned_max),
	  .min = RPCRDMA_POOL_BYTES_MIN, .max = MEMORY_MAX },
	{ "messages-max", "BYTES", "64M", "memory for the messages of connections", NULL, OPT_SIZE, 0,
	  AT(messages_max), .min = RPCRDMA_MSG_BYTES_MIN, .max = MEMORY_MAX },
	{ "shared-max", "BYTES", "8G", "memory shared with clients on this host", NULL, OPT_SIZE, 0, AT(shared_max),
	  .min = RPCRDMA_SHARED_BYTES_MIN, .max = MEMORY_MAX },
	{ "registration", "HOW", "slab", "register memory as needed, or all of pinned-max and messages-max at start",
	  "slab arena", OPT_WORD, 0, AT(arena) },
	{ "max-connections", "N", "1024", "of all clients together", NULL, OPT_NUMBER, 0, AT(max_connections), .min = 1,
	  .max = 65536 },
	{ "srq", "yes|no", "no", "connections share their receives", NULL, OPT_FLAG, 0, AT(srq), .max = true },
	{ "capture", "FILE", NULL, "write the traffic of the local fabric, as RoCEv2, to a pcap file", NULL, OPT_TEXT,
	  0, AT(capture) },
	{ "state-dir", "DIR", NULL, "state that keeps file handles valid after a restart (root: /var/lib/leat; "
	  "others: ~/.local/state/leat)", NULL, OPT_TEXT, 0, AT(state_dir) },
	{ "sign-handles", "yes|no", "yes", "no: handles by name only, without a signature", NULL, OPT_FLAG, 0,
	  AT(unsigned_handles), .min = true },
	{ "everyone", NULL, NULL, "not run by root: admit other users of this host, too; their requests run as the "
	  "user that runs leatd", NULL, OPT_FLAG, 0, AT(everyone), .max = true },
	{ "manage-gids", NULL, NULL, "over a network, use the groups in this host's user database", NULL, OPT_FLAG, 0,
	  AT(manage_gids), .max = true },
	{ "unsafe-inv", NULL, NULL, "invalidate memory of peers on soft RoCE too (leatd(8))", NULL, OPT_FLAG, 0,
	  AT(unsafe_inv), .max = true },
	{ "rpcbind", NULL, NULL, "register NFS and MOUNT with this host's rpcbind", NULL, OPT_FLAG, 0, AT(rpcbind),
	  .max = true },
	{ "verbose", NULL, NULL, "log more", NULL, OPT_OTHER, 'v', .set = set_level },
	{ "quiet", NULL, NULL, "log warnings and errors only", NULL, OPT_OTHER, 'q', .set = set_level },
	{ "help", NULL, NULL, "this text", NULL, OPT_OTHER, .letter = 'h' },
	{ "version", NULL, NULL, "which leatd this is", NULL, OPT_OTHER, .letter = 'V' },
};

const struct opt *conf_opt_find(const char *key)
{
	const struct opt *o = opt_find(conf_opts, CONF_OPTS, key);

	return o && o->type == OPT_OTHER && !o->set ? NULL : o;
}
