/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * conf_options.c - the options of leatd, on the command line and in the file
 *
 * Operation: a function for each option checks the value and sets the member.
 * Memory:    struct conf owns its strings.
 * Threads:   one, before any other.
 * Errors:    a text for the administrator, and -EINVAL.
 */
#include "conf_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "drc.h"

#define PINNED_MAX ((size_t)1 << 40)
#define CONNECTIONS_MAX 65536

static int parse_number(const char *value, unsigned long min, unsigned long max, unsigned long *ret)
{
	unsigned long v;
	char *end;

	if (*value < '0' || *value > '9')
		return -EINVAL;
	errno = 0;
	v = strtoul(value, &end, 10);
	if (errno || *end || v < min || v > max)
		return -EINVAL;
	*ret = v;
	return 0;
}

static int set_count(const char *name, const char *value, unsigned max, unsigned *ret, char *why)
{
	unsigned long v = 0;

	if (strcmp(value, "auto") && parse_number(value, 1, max, &v))
		return conf_say(why, "%s: '%s' is neither auto nor a number from 1 to %u", name, value,
			   max);
	*ret = (unsigned)v;
	return 0;
}

static int set_reactors(struct conf *c, const char *value, char *why)
{
	return set_count("reactors", value, 1024, &c->reactors, why);
}

static int set_workers(struct conf *c, const char *value, char *why)
{
	return set_count("workers", value, 4096, &c->workers, why);
}

static int set_poll(struct conf *c, const char *value, char *why)
{
	if (!strcmp(value, "adaptive"))
		c->poll = RPCRDMA_POLL_ADAPTIVE;
	else if (!strcmp(value, "busy"))
		c->poll = RPCRDMA_POLL_BUSY;
	else if (!strcmp(value, "event"))
		c->poll = RPCRDMA_POLL_EVENT;
	else
		return conf_say(why, "poll: '%s' is none of adaptive, busy, event", value);
	return 0;
}

static int set_inline(struct conf *c, const char *value, char *why)
{
	unsigned long v;

	if (parse_number(value, 1024, 65536, &v) || v % 1024)
		return conf_say(why, "inline: '%s' is not a multiple of 1024 from 1024 to 65536", value);
	c->inline_bytes = (uint32_t)v;
	return 0;
}

static int set_credits(struct conf *c, const char *value, char *why)
{
	unsigned long v;

	if (parse_number(value, 1, 4096, &v))
		return conf_say(why, "credits: '%s' is not a number from 1 to 4096", value);
	c->credits = (uint32_t)v;
	return 0;
}

static int set_private_data(struct conf *c, const char *value, char *why)
{
	if (value && strcmp(value, "yes") && strcmp(value, "no"))
		return conf_say(why, "private-data: '%s' is neither yes nor no", value);
	c->no_private_data = !value || !strcmp(value, "no");
	return 0;
}

static int set_modes(struct conf *c, const char *value, char *why)
{
	if (rpcrdma_modes_parse(value, &c->modes))
		return conf_say(why, "modes: '%s' is neither none nor names out of read-read, "
				"fast-write, hybrid", value);
	return 0;
}

static int set_sign_handles(struct conf *c, const char *value, char *why)
{
	if (strcmp(value, "yes") && strcmp(value, "no"))
		return conf_say(why, "sign-handles: '%s' is neither yes nor no", value);
	c->unsigned_handles = !strcmp(value, "no");
	return 0;
}

static int set_drc_entries(struct conf *c, const char *value, char *why)
{
	unsigned long v;

	if (parse_number(value, 0, DRC_ENTRIES_MAX, &v))
		return conf_say(why, "drc-entries: '%s' is not a number from 0 to %u", value,
			   DRC_ENTRIES_MAX);
	c->drc_entries = (uint32_t)v;
	return 0;
}

static int set_drc_bytes(struct conf *c, const char *value, char *why)
{
	unsigned long v;

	if (parse_number(value, DRC_BYTES_MIN, DRC_BYTES_MAX, &v))
		return conf_say(why, "drc-bytes: '%s' is not a number from %u to %u", value,
			   DRC_BYTES_MIN, DRC_BYTES_MAX);
	c->drc_bytes = (uint32_t)v;
	return 0;
}

static int set_bytes(const char *name, const char *value, size_t min, size_t *ret, char *why)
{
	unsigned long v;

	if (parse_number(value, min, PINNED_MAX, &v))
		return conf_say(why, "%s: '%s' is not a number of bytes from %zu to %zu", name, value,
			   min, PINNED_MAX);
	*ret = v;
	return 0;
}

static int set_pinned_max(struct conf *c, const char *value, char *why)
{
	return set_bytes("pinned-max", value, RPCRDMA_POOL_BYTES_MIN, &c->pinned_max, why);
}

static int set_messages_max(struct conf *c, const char *value, char *why)
{
	return set_bytes("messages-max", value, RPCRDMA_MSG_BYTES_MIN, &c->messages_max, why);
}

static int set_shared_max(struct conf *c, const char *value, char *why)
{
	return set_bytes("shared-max", value, RPCRDMA_SHARED_BYTES_MIN, &c->shared_max, why);
}

static int set_registration(struct conf *c, const char *value, char *why)
{
	if (strcmp(value, "slab") != 0 && strcmp(value, "arena") != 0)
		return conf_say(why, "registration: '%s' is neither slab nor arena", value);
	c->arena = value[0] == 'a';
	return 0;
}

static int set_max_connections(struct conf *c, const char *value, char *why)
{
	unsigned long v;

	if (parse_number(value, 1, CONNECTIONS_MAX, &v))
		return conf_say(why, "max-connections: '%s' is not a number from 1 to %d", value,
			   CONNECTIONS_MAX);
	c->max_connections = (unsigned)v;
	return 0;
}

static int set_text(char **text, const char *name, const char *value, char *why)
{
	char *copy;

	if (!*value)
		return conf_say(why, "%s: empty", name);
	copy = strdup(value);
	if (!copy)
		return conf_say(why, "out of memory");
	free(*text);
	*text = copy;
	return 0;
}

static int set_capture(struct conf *c, const char *value, char *why)
{
	return set_text(&c->capture, "capture", value, why);
}

static int set_state_dir(struct conf *c, const char *value, char *why)
{
	return set_text(&c->state_dir, "state-dir", value, why);
}

int conf_add_listen(struct conf *c, const char *value, char *why)
{
	int err;

	if (c->nlisten == CONF_LISTEN_MAX)
		return conf_say(why, "more than %d listeners", CONF_LISTEN_MAX);
	err = rpcrdma_addr_parse(value, &c->listen[c->nlisten]);
	if (err)
		return conf_say(why,
			   "listen: '%s' is not a URL like tcp://HOST:PORT, local:///PATH or "
			   "rdma://HOST:PORT%s",
			   value, err == -ENAMETOOLONG ? ": too long" : "");
	c->nlisten++;
	return 0;
}

static int set_level(struct conf *c, const char *value, enum log_level level, const char *name,
		     char *why)
{
	if (value && strcmp(value, "yes"))
		return strcmp(value, "no") ? conf_say(why, "%s: '%s' is neither yes nor no", name, value)
					   : 0;
	c->log_level = level;
	return 0;
}

static int set_verbose(struct conf *c, const char *value, char *why)
{
	return set_level(c, value, LOG_LEVEL_DEBUG, "verbose", why);
}

static int set_quiet(struct conf *c, const char *value, char *why)
{
	return set_level(c, value, LOG_LEVEL_WARN, "quiet", why);
}

/* Sets a flag, which has no value on the command line. */
static int set_yes(bool *ret, const char *name, const char *value, char *why)
{
	if (value && strcmp(value, "yes") && strcmp(value, "no"))
		return conf_say(why, "%s: '%s' is neither yes nor no", name, value);
	*ret = !value || !strcmp(value, "yes");
	return 0;
}

static int set_srq(struct conf *c, const char *value, char *why)
{
	return set_yes(&c->srq, "srq", value, why);
}

static int set_everyone(struct conf *c, const char *value, char *why)
{
	return set_yes(&c->everyone, "everyone", value, why);
}

static int set_rpcbind(struct conf *c, const char *value, char *why)
{
	return set_yes(&c->rpcbind, "rpcbind", value, why);
}

static int set_manage_gids(struct conf *c, const char *value, char *why)
{
	return set_yes(&c->manage_gids, "manage-gids", value, why);
}

static int set_unsafe_inv(struct conf *c, const char *value, char *why)
{
	return set_yes(&c->unsafe_inv, "unsafe-inv", value, why);
}

const struct conf_option conf_options[CONF_OPTIONS] = {
	{ "listen", 'l', false, conf_add_listen }, { "reactors", 0, false, set_reactors },
	{ "workers", 0, false, set_workers },  { "poll", 0, false, set_poll },
	{ "inline", 0, false, set_inline },    { "credits", 0, false, set_credits },
	{ "modes", 0, false, set_modes },     { "drc-entries", 0, false, set_drc_entries },
	{ "drc-bytes", 0, false, set_drc_bytes },
	{ "pinned-max", 0, false, set_pinned_max },
	{ "messages-max", 0, false, set_messages_max },
	{ "shared-max", 0, false, set_shared_max },
	{ "registration", 0, false, set_registration },
	{ "max-connections", 0, false, set_max_connections },
	{ "srq", 0, false, set_srq },
	{ "capture", 0, false, set_capture },  { "state-dir", 0, false, set_state_dir },
	{ "sign-handles", 0, false, set_sign_handles },
	{ "verbose", 'v', true, set_verbose }, { "quiet", 'q', true, set_quiet },
	{ "everyone", 0, true, set_everyone }, { "no-private-data", 0, true, set_private_data },
	{ "rpcbind", 0, true, set_rpcbind },   { "manage-gids", 0, true, set_manage_gids },
	{ "unsafe-inv", 0, true, set_unsafe_inv },
};

/* Return: the key of the option in the file */
static const char *key_of(const struct conf_option *o)
{
	return strncmp(o->name, "no-", 3) ? o->name : o->name + 3;
}

const struct conf_option *conf_option_find(const char *key)
{
	for (size_t i = 0; i < CONF_OPTIONS; i++) {
		if (!strcmp(key_of(&conf_options[i]), key))
			return &conf_options[i];
	}
	return NULL;
}
