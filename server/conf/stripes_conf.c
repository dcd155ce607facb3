/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripes_conf.c - which directories keep stripes of volumes, and for which peers
 *
 * Operation: conf.c collects struct stripes_conf from the command line and the file. The server reads the key file and
 *            the directory.
 * Memory:    Strings belong to their stripes_conf.
 * Threads:   One, before any other, and the one that reloads.
 * Errors:    A text for the user; nothing is logged here.
 */
#include "stripes_conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "block_conf.h"

static const struct opt opts[] = {
	{ "key", "FILE", NULL, "the key file of the volume", NULL, OPT_TEXT, 0, OPT_AT(struct stripes_conf, key) },
	{ "id", "N", NULL, "the number of this server in the volume", NULL, OPT_NUMBER, 0, OPT_AT(struct stripes_conf, id),
	  .min = 1, .max = UINT32_MAX },
};

static void init(void *conf)
{
	struct stripes_conf *c = conf;

	memset(c, 0, sizeof(*c));
	peers_init(&c->peers);
	data_conf_init(&c->data);
}

void stripes_conf_fini(struct stripes_conf *c)
{
	free(c->name);
	free(c->path);
	free(c->key);
	c->name = c->path = c->key = NULL;
}

static int finish(void *conf, char *why, size_t why_bytes)
{
	struct stripes_conf *c = conf;
	struct stat st;
	int err;

	if (!block_conf_name_ok(c->name))
		return opt_fail(-EINVAL, why, why_bytes, "stripes '%.80s': a name has 1 to 63 printable bytes and no slash",
				c->name);
	if (!c->path || !*c->path)
		return opt_fail(-EINVAL, why, why_bytes, "stripes %s: no path given", c->name);
	if (!c->key)
		return opt_fail(-EINVAL, why, why_bytes, "stripes %s: no key given", c->name);
	if (!c->id)
		return opt_fail(-EINVAL, why, why_bytes, "stripes %s: no id given", c->name);
	err = spec_resolve(&c->path, &st);
	if (err)
		return opt_fail(err, why, why_bytes, "stripes %s: %s: %s", c->name, c->path, strerror(-err));
	if (!S_ISDIR(st.st_mode))
		return opt_fail(-ENOTDIR, why, why_bytes, "stripes %s: %s: not a directory", c->name, c->path);
	err = spec_resolve(&c->key, &st);
	if (err)
		return opt_fail(err, why, why_bytes, "stripes %s: key %s: %s", c->name, c->key, strerror(-err));
	return data_conf_check(&c->data, why, why_bytes);
}

const struct spec_kind stripes_conf_kind = {
	.section = "stripes",
	.what = "stripes section",
	.named = true,
	.opts = opts,
	.nopts = ARRAY_SIZE(opts),
	.init = init,
	.finish = finish,
	SPEC_MEMBERS(struct stripes_conf),
};
