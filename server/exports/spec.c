/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * spec.c - the options of exports and of block volumes
 *
 * Operation: Options that the table of the kind does not have are those of peers.c or data_conf.c. On the command line
 *            they are separated by commas, as are the networks of a list.
 * Memory:    Name and path belong to the configuration.
 * Threads:   Any.
 * Errors:    A text for the user.
 */
#include "spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data_conf.h"
#include "peers.h"

static void *member(void *conf, size_t at)
{
	return (char *)conf + at;
}

static int set_path(char **path, const char *value, char *why, size_t why_bytes)
{
	if (*path)
		return opt_fail(-EINVAL, why, why_bytes, "path: there is one already, %s", *path);
	*path = strdup(value ? value : "");
	return *path ? 0 : -ENOMEM;
}

static int unknown_option(const struct spec_kind *k, const char *key, char *why, size_t why_bytes)
{
	char hint[OPT_HINT_BYTES] = "";
	size_t npeers, ndata;
	const struct opt *peers = peers_opts(&npeers), *data = data_conf_opts(&ndata);

	opt_hint(k->opts, k->nopts, key, hint);
	opt_hint(peers, npeers, key, hint);
	opt_hint(data, ndata, key, hint);
	return opt_fail(-ENOENT, why, why_bytes, "no such %s option: '%s'%s", k->what, key, hint);
}

int spec_option(const struct spec_kind *k, void *conf, const char *key, const char *value, char *why, size_t why_bytes)
{
	const struct opt *o = opt_find(k->opts, k->nopts, key);
	int err;

	if (o)
		return opt_set_once(o, conf, member(conf, k->given), value, why, why_bytes);
	if (!strcmp(key, "path"))
		return set_path(member(conf, k->path), value, why, why_bytes);
	err = peers_option(member(conf, k->peers), key, value, why, why_bytes);
	if (err == -ENOENT)
		err = data_conf_option(member(conf, k->data), key, value, why, why_bytes);
	return err == -ENOENT ? unknown_option(k, key, why, why_bytes) : err;
}

/* On the command line the path is no option. */
static int set_option(const struct spec_kind *k, void *conf, const char *key, const char *value, char *why,
		      size_t why_bytes)
{
	if (!strcmp(key, "path"))
		return opt_fail(-ENOENT, why, why_bytes, "no such %s option: 'path'", k->what);
	return spec_option(k, conf, key, value, why, why_bytes);
}

/* @options: changed */
static int set_options(const struct spec_kind *k, void *conf, char *options, char *why, size_t why_bytes)
{
	const char *list = NULL; /* the option whose networks may continue */
	char *save = NULL;
	int err = 0;

	for (char *t = strtok_r(options, ",", &save); t && !err; t = strtok_r(NULL, ",", &save)) {
		char *value = strchr(t, '=');
		struct peer_net net;

		if (list && !peer_net_parse(t, &net)) {
			err = set_option(k, conf, list, t, why, why_bytes);
			continue;
		}
		if (value)
			*value++ = '\0';
		list = value && !peer_net_parse(value, &net) ? t : NULL;
		err = set_option(k, conf, t, value, why, why_bytes);
	}
	return err;
}

/* @text: changed */
static int parse(const struct spec_kind *k, char *text, void *conf, char *why, size_t why_bytes)
{
	char *comma = strchr(text, ','), *path = text, *eq;
	int err;

	if (comma)
		*comma++ = '\0';
	eq = strchr(text, '=');
	if (!eq && k->named)
		return opt_fail(-EINVAL, why, why_bytes, "%s: '%s' is not NAME=PATH", k->section, text);
	if (eq) {
		*eq = '\0';
		path = eq + 1;
		*spec_name(k, conf) = strdup(text);
		if (!*spec_name(k, conf))
			return -ENOMEM;
	}
	err = spec_option(k, conf, "path", path, why, why_bytes);
	return err || !comma ? err : set_options(k, conf, comma, why, why_bytes);
}

int spec_finish(const struct spec_kind *k, void *conf, char *why, size_t why_bytes)
{
	int err = k->finish(conf, why, why_bytes);

	return err == -ENOMEM ? opt_fail(err, why, why_bytes, "out of memory") : err;
}

int spec_parse(const struct spec_kind *k, const char *arg, void *conf, char *why, size_t why_bytes)
{
	char *copy = strdup(arg), **name = spec_name(k, conf), **path = member(conf, k->path);
	int err;

	k->init(conf);
	err = copy ? parse(k, copy, conf, why, why_bytes) : -ENOMEM;
	if (err == -ENOMEM)
		(void)opt_fail(err, why, why_bytes, "out of memory");
	if (!err)
		err = spec_finish(k, conf, why, why_bytes);
	if (err) {
		free(*name);
		free(*path);
		*name = *path = NULL;
	}
	free(copy);
	return err;
}

int spec_resolve(char **path, struct stat *ret)
{
	char *real = realpath(*path, NULL);

	if (!real || stat(real, ret)) {
		int err = -errno;

		free(real);
		return err;
	}
	free(*path);
	*path = real;
	return 0;
}
