/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_view.h - the map of a manager, as libleat takes it
 */
#ifndef LEAT_SERVER_VOLUME_VIEW_H
#define LEAT_SERVER_VOLUME_VIEW_H

#include "leat_volume.h"
#include "volume_manager.h"

struct volume_view {
	struct leat_volume_map map;
	struct leat_volume_server servers[VOLUME_SERVERS_MAX];
	const struct leat_volume_server *at[VOLUME_SERVERS_MAX];
};

/** volume_view_map - Return: the map, in @v; as long as the manager exists */
static inline const struct leat_volume_map *volume_view_map(const struct volume_manager *m, struct volume_view *v)
{
	for (unsigned i = 0; i < m->map.n; i++) {
		v->servers[i] = (struct leat_volume_server){ .id = m->map.servers[i].id, .url = m->map.servers[i].url };
		v->at[i] = &v->servers[i];
	}
	v->map = (struct leat_volume_map){ .volume = m->map.volume, .version = m->map.version, .nservers = m->map.n,
					   .servers = v->at };
	return &v->map;
}

#endif
