/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_conf.c - which files and devices are block volumes, and for which peers
 *
 * Operation: conf.c collects struct block_conf from the command line and the file. Whether a file is free is found when
 *            the server opens it.
 * Memory:    Strings belong to their block_conf.
 * Threads:   One, before any other, and the one that reloads.
 * Errors:    A text for the user; nothing is logged here.
 */
#include "block_conf.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "block.h"

#define PW_BYTES 16384

/* "yes" or "no", or networks: these contain a dot or a colon. Networks may be given in several options. */
static int set_take_over(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	struct block_conf *c = to;
	bool yes = false, networks = value && strpbrk(value, ".:");
	const struct opt flag = { .name = o->name, .type = OPT_FLAG, .size = sizeof(yes), .max = 1 };
	enum block_conf_take_over which = BLOCK_CONF_TAKE_OVER_SOME;

	if (!networks) {
		if (opt_set(&flag, &yes, value, why, why_bytes))
			return opt_refuse(o, value, why, why_bytes);
		which = yes ? BLOCK_CONF_TAKE_OVER_ALL : BLOCK_CONF_TAKE_OVER_NONE;
	}
	if (c->given & BLOCK_CONF_GIVEN_TAKE_OVER && c->take_over != which)
		return opt_fail(-EINVAL, why, why_bytes, "%s: contradicts an option before it", o->name);
	c->given |= BLOCK_CONF_GIVEN_TAKE_OVER;
	c->take_over = which;
	return networks ? peers_add(&c->take_over_peers, value, o->name, why, why_bytes) : 0;
}

/* Return: false: there is no such user */
static bool find_user(const char *text, uid_t *ret)
{
	char mem[PW_BYTES], *end;
	struct passwd pw, *found = NULL;
	unsigned long n;

	if (!strcmp(text, "me")) {
		*ret = geteuid();
		return true;
	}
	if (!getpwnam_r(text, &pw, mem, sizeof(mem), &found) && found) {
		*ret = pw.pw_uid;
		return true;
	}
	errno = 0;
	n = strtoul(text, &end, 10);
	*ret = (uid_t)n;
	return text[0] >= '0' && text[0] <= '9' && !*end && !errno && n < UINT32_MAX;
}

static int set_users(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	struct block_conf *c = to;
	char *copy = strdup(value ? value : ""), *save = NULL;
	size_t before = c->nusers;
	int err = copy ? 0 : -ENOMEM;

	for (char *t = copy ? strtok_r(copy, ": ,\t", &save) : NULL; t && !err; t = strtok_r(NULL, ": ,\t", &save)) {
		if (c->nusers == BLOCK_CONF_USERS_MAX)
			err = opt_fail(-E2BIG, why, why_bytes, "%s: more than %d", o->name, BLOCK_CONF_USERS_MAX);
		else if (!find_user(t, &c->users[c->nusers]))
			err = opt_fail(-EINVAL, why, why_bytes, "%s: there is no user '%s'", o->name, t);
		else
			c->nusers++;
	}
	free(copy);
	if (!err && c->nusers == before)
		err = opt_fail(-EINVAL, why, why_bytes, "%s: no user given", o->name);
	return err;
}

static int set_block(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	struct block_conf *c = to;
	uint64_t n;

	if (!value || !opt_parse_size(value, &n) || (n != 512 && n != 4096))
		return opt_refuse(o, value ? value : "", why, why_bytes);
	if (c->given & BLOCK_CONF_GIVEN_BLOCK && c->block != n)
		return opt_fail(-EINVAL, why, why_bytes, "%s: contradicts an option before it", o->name);
	c->given |= BLOCK_CONF_GIVEN_BLOCK;
	c->block = (uint32_t)n;
	return 0;
}

#define FLAG(...) SPEC_FLAG(struct block_conf, __VA_ARGS__)

static const struct opt opts[] = {
	FLAG("ro", NULL, "clients may change nothing", ro, 1, 0, BLOCK_CONF_GIVEN_RO),
	FLAG("rw", "yes", "clients may change the volume", ro, 0, 1, BLOCK_CONF_GIVEN_RO),
	{ "share", "HOW", "exclusive", "how many holders it may have at once: one, or any number", "exclusive shared",
	  OPT_WORD, 0, OPT_AT(struct block_conf, share), .given = BLOCK_CONF_GIVEN_SHARE },
	{ "block", "BYTES", NULL, "least block size; that of a device may be larger (512)", "512 or 4096", OPT_OTHER,
	  .set = set_block },
	{ "users", "NAMES", NULL, "users of this host that may attach over a local socket: names or ids with colons, me "
	  "for leatd's own; without it leatd's own and root", NULL, OPT_OTHER, .set = set_users },
	{ "take_over", "WHICH", "yes", "which of those that may attach may take it over from another holder",
	  "yes, no, or networks", OPT_OTHER, .set = set_take_over },
};

static void init(void *conf)
{
	struct block_conf *c = conf;

	memset(c, 0, sizeof(*c));
	opt_init(opts, ARRAY_SIZE(opts), c);
	c->block = 512;
	peers_init(&c->peers);
	data_conf_init(&c->data);
	/* Its clients may write any bytes to it. A change meanwhile gives a block that the client could have
	 * written. */
	c->data.trust_clients = true;
	/* the user of a volume has a cache of its own */
#ifdef HAVE_AIO
	c->data.read = DATA_READ_DIRECT;
	c->data.write = DATA_WRITE_DIRECT;
#endif
}

void block_conf_fini(struct block_conf *c)
{
	free(c->name);
	free(c->path);
	c->name = c->path = NULL;
}

bool block_conf_name_ok(const char *name)
{
	size_t n = strlen(name);

	for (const char *p = name; *p; p++) {
		if (*p == '/' || (unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
	}
	return n && n <= BLOCK_NAME_MAX;
}

static int finish(void *conf, char *why, size_t why_bytes)
{
	struct block_conf *c = conf;
	struct stat st;
	int err;

	if (!strcmp(c->name, ".") || !strcmp(c->name, ".."))
		return opt_fail(-EINVAL, why, why_bytes, "block '%s': no name: programs remove it from URLs", c->name);
	if (!block_conf_name_ok(c->name))
		return opt_fail(-EINVAL, why, why_bytes,
				"block '%.80s': a name has 1 to %d printable bytes and no slash", c->name, BLOCK_NAME_MAX);
	if (!c->path || !*c->path)
		return opt_fail(-EINVAL, why, why_bytes, "block %s: no path given", c->name);
	err = spec_resolve(&c->path, &st);
	if (err)
		return opt_fail(err, why, why_bytes, "block %s: %s: %s", c->name, c->path, strerror(-err));
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return opt_fail(-EINVAL, why, why_bytes, "block %s: %s: neither a file nor a block device", c->name,
				c->path);
	if (S_ISREG(st.st_mode) && st.st_size < (off_t)c->block)
		return opt_fail(-EINVAL, why, why_bytes, "block %s: %s: smaller than a block; truncate(1) can make it larger",
				c->name, c->path);
	c->dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	c->ino = S_ISBLK(st.st_mode) ? 0 : st.st_ino;
	if (c->data.store.kind != STORE_KIND_FILE && !(c->data.given & (DATA_GIVEN_READ | DATA_GIVEN_WRITE))) {
		c->data.read = DATA_READ_CACHED;
		c->data.write = DATA_WRITE_CACHED;
	}
	return data_conf_check(&c->data, why, why_bytes);
}

const struct spec_kind block_conf_kind = {
	.section = "block",
	.what = "block volume",
	.named = true,
	.opts = opts,
	.nopts = ARRAY_SIZE(opts),
	.init = init,
	.finish = finish,
	SPEC_MEMBERS(struct block_conf),
};
