/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_set.c - the stripes in service, with their options
 *
 * Operation: A directory stays open through a reload if its path, volume and server id stay; keys and options may change.
 * Memory:    struct stripe_set, by served.c.
 * Threads:   That of server_start(), or a reload; on reactors the set is read-only.
 * Errors:    A text for the user; nothing is changed then.
 */
#include "stripe_set.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/opt.h"
#include "conf.h"
#include "stripe_key.h"

struct stripe_member *stripe_set_find(struct stripe_set *s, uint64_t volume)
{
	for (size_t i = 0; i < s->served.n; i++) {
		if (s->v[i].vol->dir.volume == volume)
			return &s->v[i];
	}
	return NULL;
}

static struct backing *backing_of(struct served *s, size_t i)
{
	return &container_of(s, struct stripe_set, served)->v[i].backing;
}

static unsigned judge(struct served *s, size_t i, const struct rpcrdma_peer *peer)
{
	return peers_admit(&stripe_set_from(s)->v[i].conf.peers, peer);
}

static void close_set(struct served *served)
{
	struct stripe_set *s = container_of(served, struct stripe_set, served);

	for (size_t i = 0; i < s->served.n; i++) {
		stripe_vol_put(s->v[i].vol);
		stripes_conf_fini(&s->v[i].conf);
		explicit_bzero(&s->v[i].keys, sizeof(s->v[i].keys));
	}
}

static int copy_conf(const struct stripes_conf *from, struct stripes_conf *to)
{
	*to = *from;
	to->name = strdup(from->name);
	to->path = strdup(from->path);
	to->key = strdup(from->key);
	return to->name && to->path && to->key ? 0 : -ENOMEM;
}

static struct stripe_vol *find_open(const struct stripe_set *s, const char *path)
{
	for (size_t i = 0; s && i < s->served.n; i++) {
		if (!strcmp(s->v[i].conf.path, path))
			return s->v[i].vol;
	}
	return NULL;
}

static int open_vol(const struct stripe_set *old, unsigned nreactors, uint64_t volume, struct stripe_member *m, char *why,
		    size_t why_bytes)
{
	const struct stripes_conf *c = &m->conf;
	struct stripe_vol *same = find_open(old, c->path);

	if (!same)
		return stripe_vol_open(c->name, c->path, volume, c->id, nreactors, &m->vol, why, why_bytes);
	if (same->dir.volume != volume || same->dir.server != c->id)
		return opt_fail(-EBUSY, why, why_bytes, "%s: until now it is of server %" PRIu32 " of volume %016" PRIx64, c->path,
				same->dir.server, same->dir.volume);
	m->vol = stripe_vol_hold(same);
	return 0;
}

static int open_member(const struct stripes_conf *c, const struct stripe_set *s, const struct stripe_set *old,
		       unsigned nreactors, struct stripe_member *m, char *why, size_t why_bytes)
{
	uint64_t volume = 0;
	int err = copy_conf(c, &m->conf);

	if (err)
		return err;
	err = stripe_key_load(c->key, &volume, &m->keys, why, why_bytes);
	if (err)
		return err;
	for (size_t i = 0; i < s->served.n; i++) {
		if (&s->v[i] != m && s->v[i].vol->dir.volume == volume)
			return opt_fail(-EINVAL, why, why_bytes, "stripes %s are of the same volume, %016" PRIx64,
					s->v[i].conf.name, volume);
	}
	err = open_vol(old, nreactors, volume, m, why, why_bytes);
	if (err)
		return err;
	m->backing = (struct backing){ .name = m->conf.name, .path = m->conf.path, .data = &m->conf.data,
				      .dev = m->vol->dir.dev, .ino = m->vol->dir.ino, .fsyncs = m->vol->fsyncs };
	fs_limits_find(m->vol->dir.objects, true, &m->backing.limits);
	return 0;
}

static void explain(const struct stripes_conf *c, int err, const char *reason, char *why, size_t why_bytes)
{
	char line[24] = "";

	if (c->line)
		(void)snprintf(line, sizeof(line), " (line %u)", c->line);
	(void)opt_fail(err, why, why_bytes, "stripes %s%s: %s", c->name, line, *reason ? reason : strerror(-err));
}

static int open_members(const struct conf *conf, const struct stripe_set *old, unsigned nreactors, struct stripe_set *s,
			char *why, size_t why_bytes)
{
	char reason[CONF_WHY_BYTES] = "";
	int err = 0;

	for (size_t i = 0; i < conf->nstripes && !err; i++) {
		struct stripe_member *m = &s->v[i];

		m->idx = (unsigned)i;
		err = open_member(&conf->stripes[i], s, old, nreactors, m, reason, sizeof(reason));
		s->served.n = i + 1;
		if (err)
			explain(&conf->stripes[i], err, reason, why, why_bytes);
	}
	return err;
}

int stripe_set_create(const struct conf *conf, const struct stripe_set *old, unsigned nreactors, struct served **ret,
		      char *why, size_t why_bytes)
{
	struct stripe_set *s = calloc(1, sizeof(*s) + conf->nstripes * sizeof(s->v[0]));
	int err;

	if (!s)
		return opt_fail(-ENOMEM, why, why_bytes, "out of memory");
	served_init(&s->served, 0, backing_of, close_set);
	s->served.judge = judge;
	err = open_members(conf, old, nreactors, s, why, why_bytes);
	if (err)
		served_put(&s->served);
	else
		*ret = &s->served;
	return err;
}

void stripe_set_announce(const struct stripe_set *old, const struct stripe_set *now)
{
	for (size_t i = 0; old && i < old->served.n; i++) {
		if (!find_open(now, old->v[i].conf.path))
			log_info("stripes %s: not served any more", old->v[i].conf.name);
	}
	for (size_t i = 0; i < now->served.n; i++) {
		const struct stripe_member *m = &now->v[i];
		const char *warning = store_spec_warning(&m->conf.data.store);
		char how[DATA_CONF_PRINT_BYTES];

		if (find_open(old, m->conf.path))
			continue;
		log_info("stripes %s: %s, server %" PRIu32 " of volume %016" PRIx64 "%s%s", m->conf.name, m->conf.path,
			 m->conf.id, m->vol->dir.volume, data_conf_print(&m->conf.data, how, sizeof(how)),
			 m->conf.peers.secure ? "" : ", from any port");
		if (warning)
			log_warn("stripes %s: %s", m->conf.name, warning);
	}
}
