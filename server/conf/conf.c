/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * conf.c - reads the configuration of leatd from command line and file
 *
 * Operation: one table of options (conf_options.c) serves both: --NAME VALUE on the command line is NAME =
 *            VALUE in the [server] section, --NAME alone is NAME = yes, and --no-NAME is NAME = no.
 *            Exports are an option on the command line and sections in the file. The file is read line by
 *            line, so that every error message has a line number, even for a section without keys.
 * Memory:    struct conf owns its strings.
 * Threads:   one, before any other.
 * Errors:    a text for the administrator. Nothing is ignored: unknown input is an error.
 */
#include "conf_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <ini.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/text.h"

#define LINE_BYTES 1024
#define STATE_DIR_ROOT "/var/lib/leat"

void conf_init(struct conf *c)
{
	memset(c, 0, sizeof(*c));
	c->log_level = LOG_LEVEL_INFO;
	opt_init(conf_opts, CONF_OPTS, c);
}

static void fini_served(struct conf *c)
{
	for (size_t i = 0; i < c->nexports; i++)
		export_conf_fini(&c->exports[i]);
	c->nexports = 0;
	for (size_t i = 0; i < c->nblocks; i++)
		block_conf_fini(&c->blocks[i]);
	c->nblocks = 0;
	for (size_t i = 0; i < c->nstripes; i++)
		stripes_conf_fini(&c->stripes[i]);
	c->nstripes = 0;
}

void conf_fini(struct conf *c)
{
	fini_served(c);
	free(c->capture);
	free(c->state_dir);
	c->capture = c->state_dir = NULL;
}

void conf_take_served(struct conf *to, struct conf *from)
{
	fini_served(to);
	memcpy(to->exports, from->exports, sizeof(to->exports));
	to->nexports = from->nexports;
	memcpy(to->blocks, from->blocks, sizeof(to->blocks));
	to->nblocks = from->nblocks;
	memcpy(to->stripes, from->stripes, sizeof(to->stripes));
	to->nstripes = from->nstripes;
	from->nexports = from->nblocks = from->nstripes = 0;
}

/* The exports or the volumes of a configuration */
struct conf_list {
	char *v;
	size_t *n, max;
};

static struct conf_list list_of(struct conf *c, const struct spec_kind *k)
{
	if (k == &export_conf_kind || k == &volume_conf_kind)
		return (struct conf_list){ (char *)c->exports, &c->nexports, CONF_EXPORTS_MAX };
	if (k == &stripes_conf_kind)
		return (struct conf_list){ (char *)c->stripes, &c->nstripes, CONF_STRIPES_MAX };
	return (struct conf_list){ (char *)c->blocks, &c->nblocks, CONF_BLOCKS_MAX };
}

/* Return: the next element, not initialised; NULL: there are too many, with @why */
static void *add_element(struct conf *c, const struct spec_kind *k, char *why)
{
	struct conf_list l = list_of(c, k);

	if (*l.n < l.max)
		return l.v + (*l.n)++ * k->bytes;
	(void)conf_say(why, "more than %zu %ss", l.max, k->what);
	return NULL;
}

static const struct {
	char letter; /* of its option on the command line */
	const struct spec_kind *kind;
} kinds[] = {
	{ 'e', &export_conf_kind }, { 'b', &block_conf_kind }, { 's', &stripes_conf_kind }, { 'm', &volume_conf_kind },
};

/* Return: NULL: it is another option */
static const struct spec_kind *kind_of(char letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].letter == letter)
			return kinds[i].kind;
	return NULL;
}

static int add_spec(struct conf *c, const struct spec_kind *k, const char *value, char *why)
{
	void *element = add_element(c, k, why);

	return element ? spec_parse(k, value, element, why, CONF_WHY_BYTES) : -EINVAL;
}

/* ---- the file ----------------------------------------------------------------------------- */

struct file_reader {
	struct conf *conf;
	FILE *f;
	unsigned line;
	unsigned bad_line; /* 0: none so far */
	bool in_server;
	const struct spec_kind *kind; /* of the section; NULL: another one */
	void *element;
	unsigned begin_line;     /* of the section */
	char *why;
};

/* @err: the error that r->why describes, or 0 */
static void complain(struct file_reader *r, unsigned line, int err)
{
	if (err && !r->bad_line)
		r->bad_line = line;
}

static int begin_spec(struct file_reader *r, const struct spec_kind *k, const char *name)
{
	struct conf_list l = list_of(r->conf, k);

	for (char *e = l.v; e < l.v + *l.n * k->bytes; e += k->bytes)
		if (!strcmp(*spec_name(k, e), name))
			return conf_say(r->why, "%s %s: there is one already", k->section, name);
	r->element = add_element(r->conf, k, r->why);
	if (!r->element)
		return -EINVAL;
	r->kind = k;
	k->init(r->element);
	if (k == &block_conf_kind)
		((struct block_conf *)r->element)->line = r->line;
	else if (k == &stripes_conf_kind)
		((struct stripes_conf *)r->element)->line = r->line;
	*spec_name(k, r->element) = strdup(name);
	return *spec_name(k, r->element) ? 0 : conf_say(r->why, "out of memory");
}

static void end_section(struct file_reader *r)
{
	if (r->kind && !r->bad_line)
		complain(r, r->begin_line, spec_finish(r->kind, r->element, r->why, CONF_WHY_BYTES));
	r->kind = NULL;
}

/* Is it "@kind NAME"? */
static bool named(char *section, const char *kind, char **ret_name)
{
	size_t n = strlen(kind);

	if (strncmp(section, kind, n) || (section[n] != ' ' && section[n] != '\t') || !*text_trim(section + n))
		return false;
	*ret_name = text_trim(section + n);
	return true;
}

static int begin_section(struct file_reader *r, char *text)
{
	char *name = text_trim(text);

	end_section(r);
	r->in_server = !strcmp(name, "server");
	r->begin_line = r->line;
	if (r->in_server || r->bad_line)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (named(name, kinds[i].kind->section, &name))
			return begin_spec(r, kinds[i].kind, name);
	return conf_say(r->why, "no such section: [%s]; there are [server], [export NAME], [block NAME], [stripes NAME] and "
				"[volume NAME]", name);
}

/* Checks for input that inih would reject without a message, or accept wrongly. */
static int check_line(struct file_reader *r, char *at)
{
	char *end = strchr(at, ']'), *after;

	if (*at == '\0' || *at == ';' || *at == '#')
		return 0;
	if (*at != '[')
		return strpbrk(at, "=:") ? 0 : conf_say(r->why, "'%s' is neither a section nor key = value", at);
	if (!end)
		return conf_say(r->why, "'%s' lacks its ']'", at);
	after = text_trim(end + 1);
	if (*after && *after != ';' && *after != '#')
		return conf_say(r->why, "'%s' stands behind the ']'", after);
	*end = '\0';
	return begin_section(r, at + 1);
}

/* inih calls this for each line; it is used to count lines and to find sections without keys */
static char *read_line(char *buf, int cap, void *stream)
{
	struct file_reader *r = stream;
	char copy[LINE_BYTES], *at;
	size_t n;
	int err;

	cap = MIN(cap, (int)sizeof(copy));
	if (r->bad_line || !fgets(buf, cap, r->f))
		return NULL;
	r->line++;
	n = strlen(buf);
	if ((n && buf[n - 1] == '\n') || feof(r->f)) {
		memcpy(copy, buf, n + 1);
		at = text_trim(copy);
		/* inih would append an indented line to the value before it */
		memmove(buf, buf + (at - copy), n + 1 - (size_t)(at - copy));
		err = check_line(r, at);
	} else if ((int)n < cap - 1) {
		err = conf_say(r->why, "a NUL in the line");
	} else {
		err = conf_say(r->why, "line longer than %d bytes", cap - 2);
	}
	complain(r, r->line, err);
	return r->bad_line ? NULL : buf;
}

static int unknown_key(struct file_reader *r, const char *section, const char *key)
{
	char hint[OPT_HINT_BYTES] = "";

	opt_hint(conf_opts, CONF_OPTS, key, hint);
	return conf_say(r->why, "no such key in [%s]: '%s'%s", section, key, hint);
}

static int on_key(void *user, const char *section, const char *key, const char *value)
{
	struct file_reader *r = user;
	const struct opt *o;
	int err;

	if (r->bad_line)
		return 0;
	if (r->kind) {
		err = spec_option(r->kind, r->element, key, value, r->why, CONF_WHY_BYTES);
	} else if (!r->in_server) {
		err = conf_say(r->why, "'%s' stands in no section", key);
	} else {
		o = conf_opt_find(key);
		err = o ? opt_set(o, r->conf, value, r->why, CONF_WHY_BYTES)
			: unknown_key(r, section, key);
	}
	complain(r, r->line, err);
	return !err;
}

int conf_file(struct conf *c, const char *path, char why[CONF_WHY_BYTES])
{
	char reason[CONF_WHY_BYTES] = "neither a section nor key = value";
	struct file_reader r = { .conf = c, .f = fopen(path, "re"), .why = reason };
	int line;

	if (!r.f)
		return opt_fail(-errno, why, CONF_WHY_BYTES, "%s: %s", path, strerror(errno));
	line = ini_parse_stream(read_line, &r, on_key, &r);
	end_section(&r);
	fclose(r.f);
	if (!r.bad_line && line)
		r.bad_line = line > 0 ? (unsigned)line : r.line;
	if (!r.bad_line)
		return 0;
	return conf_say(why, "%.200s:%u: %.280s", path, r.bad_line, reason);
}

/* ---- the command line --------------------------------------------------------------------- */

/* One pass over the command line: the first finds the file, the second applies the other options over it. */
static enum conf_todo pass(struct conf *c, int argc, char **argv, const char **ret_file, char *why)
{
	bool apply = !ret_file, listens = false;
	const struct spec_kind *kind;
	const struct opt *o;
	const char *value;
	int rc, err;

	optind = 0;
	while ((rc = opt_next(conf_opts, CONF_OPTS, argc, argv, false, &o, &value, why, CONF_WHY_BYTES)) > 0) {
		if (o->letter == 'h')
			return CONF_HELP;
		if (o->letter == 'V')
			return CONF_VERSION;
		if (o->letter == 'c' && !apply)
			*ret_file = value;
		if (!apply || o->letter == 'c')
			continue;
		if (o->letter == 'l' && !listens) {
			c->nlisten = 0; /* the command line's replace the file's */
			listens = true;
		}
		kind = kind_of(o->letter);
		err = kind ? add_spec(c, kind, value, why) : opt_set(o, c, value, why, CONF_WHY_BYTES);
		/* a wrong URL, export or volume is not a usage error */
		if (err)
			return kind || o->letter == 'l' ? CONF_BAD : CONF_USAGE;
	}
	if (rc)
		return CONF_USAGE;
	if (optind < argc) {
		(void)conf_say(why, "unexpected argument: %s", argv[optind]);
		return CONF_USAGE;
	}
	return CONF_RUN;
}

void conf_help(FILE *to)
{
	size_t peers_n, data_n;
	const struct opt *peers = peers_opts(&peers_n), *data = data_conf_opts(&data_n);

	fputs("usage: leatd [OPTION]... {--export SPEC | --block SPEC | --stripes SPEC | --volume SPEC}...\n\n", to);
	opt_help(to, conf_opts, CONF_OPTS, 2, false);
	fputs("\nOptions of an export; on the command line a bare name is NAME=yes:\n\n", to);
	opt_help(to, export_conf_kind.opts, export_conf_kind.nopts, 2, true);
	fputs("\nOptions of a block volume:\n\n", to);
	opt_help(to, block_conf_kind.opts, block_conf_kind.nopts, 2, true);
	fputs("\nOptions of stripes of a volume:\n\n", to);
	opt_help(to, stripes_conf_kind.opts, stripes_conf_kind.nopts, 2, true);
	fputs("\nOptions of a volume, besides those of an export:\n\n", to);
	opt_help(to, volume_conf_kind.opts + export_conf_kind.nopts, volume_conf_kind.nopts - export_conf_kind.nopts, 2, true);
	fputs("\nOptions of all of them, which clients may use it:\n\n", to);
	opt_help(to, peers, peers_n, 2, true);
	fputs("\nOptions of all of them, for how data travels; a block volume has read=direct, write=direct\n"
	      "and trust_clients=yes:\n\n", to);
	opt_help(to, data, data_n, 2, true);
	fputs("\nSizes take K, M, G and T, times ns, us, ms and s.\n", to);
}

/* Return: the default directory, root's or the user's own; NULL: none */
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

/* leatd leaves the current directory, and opens the path again when a reload adds a volume. Return: 0 or -errno */
static int make_absolute(char **path)
{
	char *cwd, *all = NULL;
	int n;

	if (!*path || **path == '/')
		return 0;
	cwd = getcwd(NULL, 0);
	if (!cwd)
		return -errno;
	n = asprintf(&all, "%s/%s", cwd, *path);
	free(cwd);
	if (n < 0)
		return -ENOMEM;
	free(*path);
	*path = all;
	return 0;
}

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
		c->state_dir = usual_state_dir(); /* without one: a key for this run */
		c->state_dir_usual = true;
	}
	if (make_absolute(&c->state_dir)) {
		(void)conf_say(why, "state-dir: %s", strerror(errno));
		return CONF_BAD;
	}
	if (!c->nexports && !c->nblocks && !c->nstripes) {
		(void)conf_say(why, "nothing to export: say --export DIR, --block NAME=PATH, --stripes NAME=PATH,key=FILE,id=N, "
				   "or --volume NAME=DIR,key=FILE,map=FILE");
		return CONF_USAGE;
	}
	return conf_check(c, why) ? CONF_BAD : CONF_RUN;
}

/* ---- checks --------------------------------------------------------------------------------- */

/* Can other hosts reach it? A name that cannot be resolved fails later, with its reason. */
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
		reachable |= !peer_is_loopback(a->ai_addr);
	freeaddrinfo(list);
	return reachable;
}

static int say_same(const struct block_conf *a, const struct block_conf *b, char why[CONF_WHY_BYTES])
{
	char line[24] = "";

	if (b->line)
		(void)snprintf(line, sizeof(line), " (line %u)", b->line);
	return conf_say(why, "block %s and block %s%s are the same, %s", a->name, b->name, line, b->path);
}

/* Is @path that of @dir, or below it? Both are absolute, without links. */
static bool is_inside(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/' || dir[n - 1] == '/');
}

const char *conf_unrestricted(const struct conf *c, const char **ret_section)
{
	*ret_section = export_conf_kind.section;
	for (size_t i = 0; i < c->nexports; i++)
		if (!c->exports[i].peers.n)
			return c->exports[i].name;
	*ret_section = block_conf_kind.section;
	for (size_t i = 0; i < c->nblocks; i++)
		if (!c->blocks[i].peers.n)
			return c->blocks[i].name;
	*ret_section = stripes_conf_kind.section;
	for (size_t i = 0; i < c->nstripes; i++)
		if (!c->stripes[i].peers.n)
			return c->stripes[i].name;
	return NULL;
}

int conf_check(const struct conf *c, char why[CONF_WHY_BYTES])
{
	const char *section, *name = conf_unrestricted(c, &section);
	char url[300];

	if (c->modes && c->no_private_data)
		return conf_say(why, "modes: are agreed by private data, of which there is to be none");
	for (size_t i = 0; i < c->nexports; i++) {
		for (size_t k = 0; k < i; k++) {
			if (!strcmp(c->exports[i].name, c->exports[k].name))
				return conf_say(why, "export %s: there is one already",
					   c->exports[i].name);
			/* beside its manager nothing may change the files of a volume */
			if ((c->exports[i].key || c->exports[k].key) && (is_inside(c->exports[i].path, c->exports[k].path) ||
									is_inside(c->exports[k].path, c->exports[i].path)))
				return conf_say(why, "%s and %s: one is inside of the other, and one is the directory of a volume",
						c->exports[k].name, c->exports[i].name);
		}
		/* URLs of volumes begin with this name */
		if (c->nblocks && (!strcmp(c->exports[i].name, "/block") || !strncmp(c->exports[i].name, "/block/", 7)))
			return conf_say(why, "export %s: there are block volumes, whose URLs begin so",
					c->exports[i].name);
	}
	for (size_t i = 0; i < c->nblocks; i++) {
		for (size_t k = 0; k < i; k++) {
			if (!strcmp(c->blocks[i].name, c->blocks[k].name))
				return conf_say(why, "block %s: there is one already", c->blocks[i].name);
			if (c->blocks[i].dev == c->blocks[k].dev && c->blocks[i].ino == c->blocks[k].ino)
				return say_same(&c->blocks[k], &c->blocks[i], why);
		}
	}
	for (size_t i = 0; i < c->nstripes; i++) {
		for (size_t k = 0; k < i; k++) {
			if (!strcmp(c->stripes[i].name, c->stripes[k].name))
				return conf_say(why, "stripes %s: there is one already", c->stripes[i].name);
			if (!strcmp(c->stripes[i].path, c->stripes[k].path))
				return conf_say(why, "stripes %s and stripes %s are the same, %s", c->stripes[k].name,
						c->stripes[i].name, c->stripes[i].path);
		}
	}
	for (size_t i = 0; i < c->nlisten; i++) {
		if (name && is_reachable(&c->listen[i]))
			return conf_say(why, "%s would be reached by other hosts, but %s %s has no clients=: "
					     "name the allowed hosts, or listen on a loopback address",
					rpcrdma_addr_print(&c->listen[i], url, sizeof(url)), section, name);
	}
	return 0;
}
