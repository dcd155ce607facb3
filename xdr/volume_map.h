/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_map.h - the map of a striped volume: its stripe servers
 *
 * A file in the format of leatd.conf. Lines that are blank or begin with # or ; are comments:
 *
 *	volume = 0123456789abcdef	the id of the volume, 16 hexadecimal digits, not 0
 *	version = 1			grows with each change of the map; at least 1
 *
 *	[server 1]			its id in the volume; at least 1, never used again for another server
 *	url = tcp://10.0.0.1		leat://HOST[:PORT], rdma://..., tcp://... or local:///PATH; no options
 *	state = full			new files get stripes there (the default); out: they get none
 *
 * Ids and URLs are unique. There are 1 to 256 servers. Their order is the order in which new files use them.
 *
 * All functions are pure apart from malloc().
 */
#ifndef LEAT_VOLUME_MAP_H
#define LEAT_VOLUME_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "volumes.h"

#define VOLUME_MAP_FILE_MAX (512u << 10) /* bytes */

struct volume_map {
	uint64_t volume, version;
	unsigned n;
	volume_server servers[VOLUME_SERVERS_MAX]; /* the map owns their URLs */
};

/** volume_map_parse - reads and checks the text of a map
 * @ret: on success the caller frees it with volume_map_fini()
 * @why: gets the reason of a failure, with the number of the line
 *
 * Return: 0; -EINVAL: it is not a valid map; -ENOMEM.
 */
int must_check volume_map_parse(const char *text, size_t bytes, struct volume_map *ret, char *why, size_t why_bytes);

/** volume_map_print - the text of a map, which volume_map_parse() accepts
 * @ret: on success the caller frees it with free()
 *
 * Return: 0, -ENOMEM.
 */
int must_check volume_map_print(const struct volume_map *m, char **ret);

/** volume_map_is_url - may a map have this URL of a server? For what comes from a peer; the parser has checked the others */
bool volume_map_is_url(const char *url);

/** volume_map_find - finds a server by its id; NULL: the map has none of that id */
const volume_server *volume_map_find(const struct volume_map *m, uint32_t id);

/** volume_map_fini - frees the URLs; calling it again is harmless */
void volume_map_fini(struct volume_map *m);

#endif
