/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * conf.c - what leatd was asked to do, by command line and file
 *
 * Operation: one table of options serves both: --NAME VALUE on the command line is NAME = VALUE in
 *            the [server] section, --NAME alone is NAME = yes, and --no-NAME is NAME = no. Exports
 *            are an option there and sections here. The file is read line by line, so that every
 *            complaint has a line number, also about a section that has no keys.
 * Memory:    struct conf owns its strings.
 * Threads:   one, before any other.
 * Errors:    a text for the person who wrote it. Nothing is ignored: what is not understood is an
 *            error.
 */
#include "conf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <ini.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "drc.h"

#define LINE_BYTES 1024
#define PINNED_MAX ((size_t)1 << 40)
#define CONNECTIONS_DEFAULT 1024
#define CONNECTIONS_MAX 65536
#define STATE_DIR_ROOT "/var/lib/leat"

static printf_like(2, 3) int say(char *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, CONF_WHY_BYTES, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/** conf_init - see conf.h */
void conf_init(struct conf *c)
{
	memset(c, 0, sizeof(*c));
	c->poll = RPCRDMA_POLL_ADAPTIVE;
	c->log_level = LOG_LEVEL_INFO;
	c->drc_entries = DRC_ENTRIES_DEFAULT;
	c->drc_bytes = DRC_BYTES_DEFAULT;
	c->max_connections = CONNECTIONS_DEFAULT;
}

/** conf_fini - free what it points at */
void conf_fini(struct conf *c)
{
	for (size_t i = 0; i < c->nexports; i++)
		export_conf_fini(&c->exports[i]);
	c->nexports = 0;
	free(c->capture);
	free(c->state_dir);
	c->capture = c->state_dir = NULL;
}

/* ---- the options -------------------------------------------------------------------------- */

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
		return say(why, "%s: '%s' is neither auto nor a number from 1 to %u", name, value,
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
		return say(why, "poll: '%s' is none of adaptive, busy, event", value);
	return 0;
}

static int set_inline(struct conf *c, const char *value, char *why)
{
	unsigned long v;

	if (parse_number(value, 1024, 65536, &v) || v % 1024)
		return say(why, "inline: '%s' is not a multiple of 1024 from 1024 to 65536", value);
	c->inline_bytes = (uint32_t)v;
	return 0;
}

static int set_credits(struct conf *c, const char *value, char *why)
{
	unsigned long v;

	if (parse_number(value, 1, 4096, &v))
		return say(why, "credits: '%s' is not a number from 1 to 4096", value);
	c->credits = (uint32_t)v;
	return 0;
}

static int set_private_data(struct conf *c, const char *value, char *why)
{
	if (value && strcmp(value, "yes") && strcmp(value, "no"))
		return say(why, "private-data: '%s' is neither yes nor no", value);
	c->no_private_data = !value || !strcmp(value, "no");
	return 0;
}

static int set_modes(struct conf *c, const char *value, char *why)
{
	if (rpcrdma_modes_parse(value, &c->modes))
		return say(why, "modes: '%s' is neither none nor names out of read-read, "
				"fast-write, hybrid", value);
	return 0;
}

static int set_sign_handles(struct conf *c, const char *value, char *why)
{
	if (strcmp(value, "yes") && strcmp(value, "no"))
		return say(why, "sign-handles: '%s' is neither yes nor no", value);
	c->unsigned_handles = !strcmp(value, "no");
	return 0;
}

static int set_drc_entries(struct conf *c, const char *value, char *why)
{
	unsigned long v;

	if (parse_number(value, 0, DRC_ENTRIES_MAX, &v))
		return say(why, "drc-entries: '%s' is not a number from 0 to %u", value,
			   DRC_ENTRIES_MAX);
	c->drc_entries = (uint32_t)v;
	return 0;
}

static int set_drc_bytes(struct conf *c, const char *value, char *why)
{
	unsigned long v;

	if (parse_number(value, DRC_BYTES_MIN, DRC_BYTES_MAX, &v))
		return say(why, "drc-bytes: '%s' is not a number from %u to %u", value,
			   DRC_BYTES_MIN, DRC_BYTES_MAX);
	c->drc_bytes = (uint32_t)v;
	return 0;
}

static int set_bytes(const char *name, const char *value, size_t min, size_t *ret, char *why)
{
	unsigned long v;

	if (parse_number(value, min, PINNED_MAX, &v))
		return say(why, "%s: '%s' is not a number of bytes from %zu to %zu", name, value,
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

static int set_registration(struct conf *c, const char *value, char *why)
{
	if (strcmp(value, "slab") != 0 && strcmp(value, "arena") != 0)
		return say(why, "registration: '%s' is neither slab nor arena", value);
	c->arena = value[0] == 'a';
	return 0;
}

static int set_max_connections(struct conf *c, const char *value, char *why)
{
	unsigned long v;

	if (parse_number(value, 1, CONNECTIONS_MAX, &v))
		return say(why, "max-connections: '%s' is not a number from 1 to %d", value,
			   CONNECTIONS_MAX);
	c->max_connections = (unsigned)v;
	return 0;
}

static int set_text(char **text, const char *name, const char *value, char *why)
{
	char *copy;

	if (!*value)
		return say(why, "%s: empty", name);
	copy = strdup(value);
	if (!copy)
		return say(why, "out of memory");
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

static int add_listen(struct conf *c, const char *value, char *why)
{
	int err;

	if (c->nlisten == CONF_LISTEN_MAX)
		return say(why, "more than %d listeners", CONF_LISTEN_MAX);
	err = rpcrdma_addr_parse(value, &c->listen[c->nlisten]);
	if (err)
		return say(why,
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
		return strcmp(value, "no") ? say(why, "%s: '%s' is neither yes nor no", name, value)
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

/* a flag: on the command line it has no value */
static int set_yes(bool *ret, const char *name, const char *value, char *why)
{
	if (value && strcmp(value, "yes") && strcmp(value, "no"))
		return say(why, "%s: '%s' is neither yes nor no", name, value);
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

static const struct conf_option {
	const char *name;
	char letter;
	bool flag;
	int (*set)(struct conf *c, const char *value, char *why);
} options[] = {
	{ "listen", 'l', false, add_listen },  { "reactors", 0, false, set_reactors },
	{ "workers", 0, false, set_workers },  { "poll", 0, false, set_poll },
	{ "inline", 0, false, set_inline },    { "credits", 0, false, set_credits },
	{ "modes", 0, false, set_modes },     { "drc-entries", 0, false, set_drc_entries },
	{ "drc-bytes", 0, false, set_drc_bytes },
	{ "pinned-max", 0, false, set_pinned_max },
	{ "messages-max", 0, false, set_messages_max },
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

/* what the file says to it */
static const char *key_of(const struct conf_option *o)
{
	return strncmp(o->name, "no-", 3) ? o->name : o->name + 3;
}

static const struct conf_option *find_option(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (!strcmp(key_of(&options[i]), key))
			return &options[i];
	}
	return NULL;
}

static int add_export(struct conf *c, const char *value, char *why)
{
	int err;

	if (c->nexports == CONF_EXPORTS_MAX)
		return say(why, "more than %d exports", CONF_EXPORTS_MAX);
	err = export_conf_parse(value, &c->exports[c->nexports], why, CONF_WHY_BYTES);
	if (!err)
		c->nexports++;
	return err;
}

/* ---- the file ----------------------------------------------------------------------------- */

struct file_reader {
	struct conf *conf;
	FILE *f;
	unsigned line;
	unsigned bad_line; /* 0: none so far */
	bool in_server;
	struct export_conf *exp; /* of the [export NAME] section we are in */
	unsigned exp_line;
	char *why;
};

static void complain(struct file_reader *r, unsigned line)
{
	if (!r->bad_line)
		r->bad_line = line;
}

static void begin_export(struct file_reader *r, const char *name)
{
	struct conf *c = r->conf;

	for (size_t i = 0; i < c->nexports; i++) {
		if (c->exports[i].name && !strcmp(c->exports[i].name, name)) {
			(void)say(r->why, "export %s: there is one already", name);
			complain(r, r->line);
			return;
		}
	}
	if (c->nexports == CONF_EXPORTS_MAX) {
		(void)say(r->why, "more than %d exports", CONF_EXPORTS_MAX);
		complain(r, r->line);
		return;
	}
	r->exp = &c->exports[c->nexports++];
	r->exp_line = r->line;
	export_conf_init(r->exp);
	r->exp->name = strdup(name);
	if (!r->exp->name) {
		(void)say(r->why, "out of memory");
		complain(r, r->line);
	}
}

static void end_export(struct file_reader *r)
{
	if (r->exp && !r->bad_line && export_conf_finish(r->exp, r->why, CONF_WHY_BYTES))
		complain(r, r->exp_line);
	r->exp = NULL;
}

static char *trim(char *s)
{
	char *end = s + strlen(s);

	while (*s == ' ' || *s == '\t')
		s++;
	while (end > s && strchr(" \t\r\n", end[-1]))
		end--;
	*end = '\0';
	return s;
}

static void begin_section(struct file_reader *r, char *text)
{
	char *name = trim(text);

	end_export(r);
	r->in_server = !strcmp(name, "server");
	if (r->in_server || r->bad_line)
		return;
	if (!strncmp(name, "export", 6) && (name[6] == ' ' || name[6] == '\t') && *trim(name + 6)) {
		begin_export(r, trim(name + 6));
		return;
	}
	(void)say(r->why, "no such section: [%s]; there are [server] and [export NAME]", name);
	complain(r, r->line);
}

/* What inih would refuse without a word, or not refuse. */
static void look_at_line(struct file_reader *r, char *at)
{
	char *end = strchr(at, ']'), *after;

	if (*at == '\0' || *at == ';' || *at == '#')
		return;
	if (*at != '[') {
		if (!strpbrk(at, "=:")) {
			(void)say(r->why, "'%s' is neither a section nor key = value", at);
			complain(r, r->line);
		}
		return;
	}
	after = end ? trim(end + 1) : NULL;
	if (!end) {
		(void)say(r->why, "'%s' lacks its ']'", at);
		complain(r, r->line);
	} else if (*after && *after != ';' && *after != '#') {
		(void)say(r->why, "'%s' stands behind the ']'", after);
		complain(r, r->line);
	} else {
		*end = '\0';
		begin_section(r, at + 1);
	}
}

/* inih asks for lines here, which is how we know where it is, and see sections without keys */
static char *read_line(char *buf, int cap, void *stream)
{
	struct file_reader *r = stream;
	char copy[LINE_BYTES], *at;
	size_t n;

	cap = MIN(cap, (int)sizeof(copy));
	if (r->bad_line || !fgets(buf, cap, r->f))
		return NULL;
	r->line++;
	n = strlen(buf);
	if ((!n || buf[n - 1] != '\n') && !feof(r->f)) {
		if ((int)n < cap - 1)
			(void)say(r->why, "a NUL in the line");
		else
			(void)say(r->why, "line longer than %d bytes", cap - 2);
		complain(r, r->line);
		return NULL;
	}
	memcpy(copy, buf, n + 1);
	at = trim(copy);
	/* inih would take what is indented for more of the value before it */
	memmove(buf, buf + (at - copy), n + 1 - (size_t)(at - copy));
	look_at_line(r, at);
	return r->bad_line ? NULL : buf;
}

static int on_key(void *user, const char *section, const char *key, const char *value)
{
	struct file_reader *r = user;
	const struct conf_option *o;
	int err;

	if (r->bad_line)
		return 0;
	if (r->exp) {
		err = export_conf_option(r->exp, key, value, r->why, CONF_WHY_BYTES);
	} else if (!r->in_server) {
		err = say(r->why, "'%s' stands in no section", key);
	} else {
		o = find_option(key);
		err = o ? o->set(r->conf, value, r->why)
			: say(r->why, "no such key in [%s]: '%s'", section, key);
	}
	if (err)
		complain(r, r->line);
	return !err;
}

/** conf_file - see conf.h */
int conf_file(struct conf *c, const char *path, char why[CONF_WHY_BYTES])
{
	char reason[CONF_WHY_BYTES] = "neither a section nor key = value";
	struct file_reader r = { .conf = c, .f = fopen(path, "re"), .why = reason };
	int line;

	if (!r.f) {
		int err = -errno;

		(void)say(why, "%s: %s", path, strerror(errno));
		return err;
	}
	line = ini_parse_stream(read_line, &r, on_key, &r);
	end_export(&r);
	fclose(r.f);
	if (!r.bad_line && line)
		r.bad_line = line > 0 ? (unsigned)line : r.line;
	if (!r.bad_line)
		return 0;
	(void)snprintf(why, CONF_WHY_BYTES, "%.200s:%u: %.280s", path, r.bad_line, reason);
	return -EINVAL;
}

/* ---- the command line --------------------------------------------------------------------- */

enum { OPT_FIRST = 256, OPT_HELP = 500, OPT_VERSION, OPT_EXPORT };

static const char short_options[] = "+:c:e:l:vqhV";

static void build_long(struct option v[ARRAY_SIZE(options) + 5])
{
	size_t n = 0;

	for (; n < ARRAY_SIZE(options); n++)
		v[n] = (struct option){ options[n].name,
					options[n].flag ? no_argument : required_argument, NULL,
					(int)(OPT_FIRST + n) };
	v[n++] = (struct option){ "config", required_argument, NULL, 'c' };
	v[n++] = (struct option){ "export", required_argument, NULL, OPT_EXPORT };
	v[n++] = (struct option){ "help", no_argument, NULL, OPT_HELP };
	v[n++] = (struct option){ "version", no_argument, NULL, OPT_VERSION };
	v[n] = (struct option){ 0 };
}

static const struct conf_option *option_of(int opt)
{
	if (opt >= OPT_FIRST && opt < OPT_FIRST + (int)ARRAY_SIZE(options))
		return &options[opt - OPT_FIRST];
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (options[i].letter && options[i].letter == opt)
			return &options[i];
	}
	return NULL;
}

/* One pass over the command line: the first finds the file, the second applies the rest over it. */
static enum conf_todo pass(struct conf *c, int argc, char **argv, const char **ret_file, char *why)
{
	struct option longs[ARRAY_SIZE(options) + 5];
	bool apply = !ret_file, listens = false;
	int opt;

	build_long(longs);
	optind = 1;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, short_options, longs, NULL)) != -1) {
		const struct conf_option *o = option_of(opt);
		int err = 0;

		if (opt == '?' || opt == ':') {
			(void)say(why, opt == '?' ? "no such option: %s" : "%s needs a value",
				  argv[optind - 1]);
			return CONF_USAGE;
		}
		if (opt == OPT_HELP || opt == 'h')
			return CONF_HELP;
		if (opt == OPT_VERSION || opt == 'V')
			return CONF_VERSION;
		if (opt == 'c' && !apply)
			*ret_file = optarg;
		if (!apply)
			continue;
		if (o && o->set == add_listen && !listens) {
			c->nlisten = 0; /* the command line's are instead of the file's */
			listens = true;
		}
		if (o)
			err = o->set(c, optarg, why);
		else if (opt == OPT_EXPORT || opt == 'e')
			err = add_export(c, optarg, why);
		/* a wrong URL or export is no misuse of the command line */
		if (err)
			return o && o->set != add_listen ? CONF_USAGE : CONF_BAD;
	}
	if (optind < argc) {
		(void)say(why, "unexpected argument: %s", argv[optind]);
		return CONF_USAGE;
	}
	return CONF_RUN;
}

/* Root's, or in the user's own place for such things; Return: NULL: there is none */
static char *usual_state_dir(void)
{
	const char *base = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *dir = NULL;
	int n;

	if (geteuid() == 0)
		return strdup(STATE_DIR_ROOT);
	if (base && *base == '/')
		n = asprintf(&dir, "%s/leat", base);
	else if (home && *home == '/')
		n = asprintf(&dir, "%s/.local/state/leat", home);
	else
		return NULL;
	return n < 0 ? NULL : dir;
}

/** conf_args - see conf.h */
enum conf_todo conf_args(struct conf *c, int argc, char **argv, char why[CONF_WHY_BYTES])
{
	const char *file = NULL;
	enum conf_todo todo = pass(c, argc, argv, &file, why);

	if (todo != CONF_RUN)
		return todo;
	if (file && conf_file(c, file, why))
		return CONF_BAD;
	todo = pass(c, argc, argv, NULL, why);
	if (todo != CONF_RUN)
		return todo;
	if (!c->state_dir) {
		c->state_dir = usual_state_dir(); /* without any: a key for this run */
		c->state_dir_usual = true;
	}
	if (!c->nexports) {
		(void)say(why, "nothing to export: say --export DIR");
		return CONF_USAGE;
	}
	return conf_check(c, why) ? CONF_BAD : CONF_RUN;
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* would others than this host reach it? What cannot be resolved fails later, with its reason */
static bool is_reachable(const struct rpcrdma_addr *addr)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *list, *a;
	bool reachable = false;

	if (addr->transport == RPCRDMA_LOCAL)
		return false;
	if (!*addr->host)
		return true;
	if (getaddrinfo(addr->host, NULL, &hints, &list))
		return true;
	for (a = list; a; a = a->ai_next)
		reachable |= !export_addr_is_loopback(a->ai_addr);
	freeaddrinfo(list);
	return reachable;
}

/** conf_check - see conf.h */
int conf_check(const struct conf *c, char why[CONF_WHY_BYTES])
{
	char url[300];

	if (c->modes && c->no_private_data)
		return say(why, "modes: are agreed by private data, of which there is to be none");
	for (size_t i = 0; i < c->nexports; i++) {
		for (size_t k = 0; k < i; k++) {
			if (!strcmp(c->exports[i].name, c->exports[k].name))
				return say(why, "export %s: there is one already",
					   c->exports[i].name);
		}
	}
	for (size_t i = 0; i < c->nlisten; i++) {
		if (!is_reachable(&c->listen[i]))
			continue;
		for (size_t k = 0; k < c->nexports; k++) {
			if (!c->exports[k].nclients)
				return say(why,
					   "%s would be reached by other hosts, but export %s has "
					   "no clients=: say who they are, or listen on a "
					   "loopback address",
					   rpcrdma_addr_print(&c->listen[i], url, sizeof(url)),
					   c->exports[k].name);
		}
	}
	return 0;
}
