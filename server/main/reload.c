/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reload.c - reads the configuration again, while a server runs
 *
 * Operation: the configuration is read and checked as at start, by the same functions, from the directory
 *            in which leatd was started. Exports, volumes and the log level change. Other options that differ from
 *            those in force are listed, and stay unchanged until a restart.
 * Memory:    owns no copy: it updates the configuration of the start.
 * Threads:   any, one at a time: parsing options (getopt) has global state.
 * Errors:    one line with the reason, with file and line number if it is in the file.
 */
#include "reload.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "conf_int.h"

#define COUNTS_BYTES 80
#define OTHERS_BYTES 400 /* enough for the names of all options */

struct reload {
	pthread_mutex_t lock; /* protects the members below */
	struct conf *conf;    /* in force */
	int argc;
	char **argv;
	struct server *srv;
	char start_dir[PATH_MAX];
};

int reload_create(struct conf *conf, int argc, char **argv, struct server *s, struct reload **ret)
{
	struct reload *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	if (!getcwd(r->start_dir, sizeof(r->start_dir))) {
		int err = -errno;

		free(r);
		return err;
	}
	pthread_mutex_init(&r->lock, NULL);
	r->conf = conf;
	r->argc = argc;
	r->argv = argv;
	r->srv = s;
	*ret = r;
	return 0;
}

static bool same_listen(const struct conf *a, const struct conf *b)
{
	char text_a[300], text_b[300];
	bool same = a->nlisten == b->nlisten;

	for (size_t i = 0; i < a->nlisten && same; i++)
		same = !strcmp(rpcrdma_addr_print(&a->listen[i], text_a, sizeof(text_a)),
			       rpcrdma_addr_print(&b->listen[i], text_b, sizeof(text_b)));
	return same;
}

/* Return: names of the changed options that need a restart, or "" */
static const char *name_others(const struct conf *a, const struct conf *b, char buf[OTHERS_BYTES])
{
	size_t n = 0;

	buf[0] = '\0';
	for (const struct opt *o = conf_opts; o < conf_opts + CONF_OPTS; o++) {
		if (o->letter == 'l' ? !same_listen(a, b) : o->size && !opt_same(o, a, b))
			n += (size_t)snprintf(buf + n, OTHERS_BYTES - n, "%s%s", n ? ", " : "", opt_key(o));
	}
	return buf;
}

/* Resolves relative paths as at start. No other code in this process uses the current directory. */
static enum conf_todo read_there(struct reload *r, struct conf *c, char *why)
{
	enum conf_todo todo;

	if (chdir(r->start_dir))
		log_warn("%s: %s; relative paths start at /", r->start_dir, strerror(errno));
	todo = conf_args(c, r->argc, r->argv, why);
	if (chdir("/"))
		log_debug("chdir: %s", strerror(errno));
	return todo;
}

static void count(const struct conf *c, char buf[COUNTS_BYTES])
{
	int n = snprintf(buf, COUNTS_BYTES, "%zu export%s", c->nexports, c->nexports == 1 ? "" : "s");

	if (c->nblocks)
		n += snprintf(buf + n, COUNTS_BYTES - (size_t)n, ", %zu block volume%s", c->nblocks,
			      c->nblocks == 1 ? "" : "s");
	if (c->nstripes)
		(void)snprintf(buf + n, COUNTS_BYTES - (size_t)n, ", stripes of %zu volume%s", c->nstripes,
			       c->nstripes == 1 ? "" : "s");
}

static int apply(struct reload *r, struct conf *c, char *said, size_t said_bytes)
{
	char why[CONF_WHY_BYTES] = "", others[OTHERS_BYTES] = "", counts[COUNTS_BYTES];
	int err = -EINVAL;

	if (read_there(r, c, why) == CONF_RUN) {
		name_others(r->conf, c, others);
		/* these listeners stay, whatever the file says now */
		memcpy(c->listen, r->conf->listen, sizeof(c->listen));
		c->nlisten = r->conf->nlisten;
		err = conf_check(c, why);
	}
	if (!err)
		err = server_reload(r->srv, c, why, sizeof(why));
	if (err) {
		(void)snprintf(said, said_bytes, "%s", why);
		log_err("nothing is changed: %s", why);
		return err;
	}
	count(c, counts);
	(void)snprintf(said, said_bytes, "%s%s%s", counts, *others ? "; as they were until a restart: " : "", others);
	conf_take_served(r->conf, c); /* all that may change, and: */
	r->conf->log_level = c->log_level;
	log_set_level(c->log_level);
	log_info("configuration read again: %s", counts);
	if (*others)
		log_warn("these stay as they were until a restart: %s", others);
	return 0;
}

int reload_run(struct reload *r, char *said, size_t said_bytes)
{
	struct conf *c = malloc(sizeof(*c)); /* too large for the stack */
	int err;

	if (!c) {
		(void)snprintf(said, said_bytes, "out of memory");
		return -ENOMEM;
	}
	conf_init(c);
	pthread_mutex_lock(&r->lock);
	err = apply(r, c, said, said_bytes);
	pthread_mutex_unlock(&r->lock);
	conf_fini(c);
	free(c);
	return err;
}

void reload_destroy(struct reload *r)
{
	if (!r)
		return;
	pthread_mutex_destroy(&r->lock);
	free(r);
}
