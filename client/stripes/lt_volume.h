/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lt_volume.h - the striped volume that a mount is of: its map, and its stripe servers
 */
#ifndef LT_VOLUME_H
#define LT_VOLUME_H

#include "handle.h"
#include "lt_bulk.h"

/* A server of the map. It stays until the mount ends, because calls refer to its connections. */
struct lt_stripe_server {
	struct list link;          /* in volume->servers */
	uint32_t id;
	bool current;              /* false: a newer map has another URL, or no such server */
	char *url;
	struct lt_server *server;  /* NULL: not used yet */
	struct lt_budget share;    /* of the budget: a server that is slow does not use up that of others */
};

/* Owner's thread only. */
struct lt_volume {
	struct leat *m;
	uint64_t id, map;          /* map: version */
	uint64_t instance;         /* of the leases of the file that was opened last: random at first */
	uint64_t number;           /* of the last call that says something of a lease */
	struct list servers;
	unsigned changes;          /* servers that newer maps have brought */
	struct list nodes;         /* struct lt_striped: files in use */
	struct lt_budget budget;
	struct rpcrdma_timer timer; /* of reports: striped.c */
	bool is_armed;
};

/** lt_volume_find - asks the server of a mount whether its export is a striped volume; if so, sets m->volume
 * For the mount, on its thread; blocks.
 * @why: an error message (one line) on failure
 *
 * Return: 0, also if it is none; -EREMOTEIO, -ENOMEM, or an errno of the call.
 */
must_check int lt_volume_find(struct leat *m, char *why, size_t cap);

/** lt_volume_create - sets m->volume, to a volume with this map; Return: as lt_volume_take_map() */
must_check int lt_volume_create(struct leat *m, const VOLMAPresok *ok);

/** lt_volume_destroy - drops the servers; on the owner's thread, without operations. NULL is fine */
void lt_volume_destroy(struct lt_volume *v);

/** lt_volume_take_map - takes over what a MAP returned
 * Return: 0; -EREMOTEIO: of another volume, with URLs that no map has, or more changes than a manager makes; -ENOMEM.
 */
must_check int lt_volume_take_map(struct lt_volume *v, const VOLMAPresok *ok);

/** lt_volume_server - finds a server, and starts to connect it if it was not used yet
 * @why: cause of an error
 *
 * Return: 0; -EIO: the map has no such server, or it cannot be connected; -ENOMEM
 */
must_check int lt_volume_server(struct lt_volume *v, uint32_t id, struct lt_server **ret, char *why, size_t cap);

/** lt_volume_share - the budget of a server that lt_volume_server() has found */
struct lt_budget *lt_volume_share(const struct lt_volume *v, uint32_t id);

/** lt_volume_url - the URL of a server, for messages; "an unknown server" */
const char *lt_volume_url(const struct lt_volume *v, uint32_t id);

#endif
