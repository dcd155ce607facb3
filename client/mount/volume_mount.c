/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_mount.c - mounts of the program that manages a volume: leat_volume_mount()
 *
 * Operation:  The mount has a server without connections, to which no call is made (stripes/lt_source.c), and the map that the
 *             program gives it. The rest is as in any mount of a volume.
 * Memory:     The map is copied.
 * Threads:    The owner's.
 * Errors:     leat_error(NULL) has the reason why a mount failed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "handle.h"
#include "leat_volume.h"
#include "lt_key.h"
#include "lt_sized.h"
#include "lt_source.h"
#include "lt_volume.h"
#include "opts.h"

#define NOWHERE "local:///leat" /* of a server that is never connected */

static int take_map(struct leat *m, const struct leat_volume_map *map)
{
	VOLMAPresok ok = { .volume = map->volume, .map = map->version };
	int rc;

	if (map->nservers > VOLUME_SERVERS_MAX || map->volume != m->source->key->volume)
		return -EREMOTEIO;
	ok.servers.servers_val = calloc(map->nservers + 1, sizeof(*ok.servers.servers_val));
	if (!ok.servers.servers_val)
		return -ENOMEM;
	ok.servers.servers_len = (u_int)map->nservers;
	for (size_t i = 0; i < map->nservers; i++) {
		const struct leat_volume_server *s = map->servers[i];

		ok.servers.servers_val[i] = (volume_server){ .id = s->id, .url = (char *)(uintptr_t)s->url };
	}
	rc = m->volume ? lt_volume_take_map(m->volume, &ok) : lt_volume_create(m, &ok);
	free(ok.servers.servers_val);
	return rc;
}

static int fill_mount(struct leat *m, const struct leat_volume_source *src, const struct leat_volume_map *map,
		      const struct leat_volume_key *key)
{
	m->source = calloc(1, sizeof(*m->source));
	if (!m->source)
		return -ENOMEM;
	m->source->layout = src->layout;
	m->source->key = key;
	m->make_call = lt_source_call;
	m->no_background = true;
	m->rsize = m->wsize = STRIPE_IO_MAX;
	(void)snprintf(m->given_url, sizeof(m->given_url), "volume %016" PRIx64, map->volume);
	return take_map(m, map);
}

int leat_volume_mount(struct leat_session *s, const struct leat_volume_source *src, const struct leat_volume_map *map,
		      const struct leat_volume_key *key, const struct leat_opts *opts, struct leat **ret)
{
	struct rpcrdma_addr nowhere;
	struct lt_url u;
	struct leat *m;
	int rc = lt_session_check(s);

	if (!rc && (!src || lt_sized_check(src) || !map || !key))
		rc = -EINVAL;
	if (!rc)
		rc = lt_url_parse(NOWHERE, opts ? opts : &s->opts, &u, lt_thread_error(), LT_ERROR_BYTES);
	if (!rc && lt_session_conflict(s, &u, opts))
		rc = -EINVAL;
	if (!rc)
		rc = rpcrdma_addr_parse(NOWHERE, &nowhere);
	if (rc)
		return rc;
	u.no_cache = true;
	rc = lt_handle_create(s, &u, &nowhere, opts, &m);
	if (rc)
		return rc;
	rc = fill_mount(m, src, map, key);
	if (rc)
		lt_handle_destroy(m);
	else
		*ret = m;
	return rc;
}

int leat_volume_use(struct leat *m, const struct leat_volume_map *map, const struct leat_volume_key *key)
{
	int rc;

	if (!m || !m->source)
		return -EINVAL;
	rc = take_map(m, map);
	if (!rc)
		m->source->key = key;
	return rc;
}

int leat_volume_open(struct leat *m, void *file, struct leat_volume_unstable *u, struct leat_file **ret)
{
	struct leat_file *f;

	if (!m || !m->source || !u)
		return -EINVAL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->path = strdup("/");
	if (!f->path || pthread_mutex_init(&f->pos_lock, NULL)) {
		free(f->path);
		free(f);
		return -ENOMEM;
	}
	f->m = m;
	lt_source_fh(m->source, file, &f->fh);
	f->flags = O_RDWR;
	f->sequential_pos = UINT64_MAX;
	f->unstable = u;
	list_add_tail(&m->files, &f->link);
	*ret = f;
	return 0;
}
