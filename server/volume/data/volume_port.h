/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_port.h - how a reactor of the manager reaches the stripes of a volume: a session of libleat
 *
 * Threads: the reactor's; volume_port_put() also any thread when that one has ended.
 */
#ifndef LEAT_SERVER_VOLUME_PORT_H
#define LEAT_SERVER_VOLUME_PORT_H

#include "base/util.h"
#include "leat.h"
#include "store.h"
#include "volume_unstable.h"

struct volume_manager;
struct volume_port;

/* An open file: store_file.use. */
struct volume_use {
	struct store_use use;
	struct volume_port *port;
	const struct store_file *file;
	struct leat_file *f;
	struct volume_unstable *unstable;
};

/** volume_port_get - finds or creates the session of @loop for the volume of @m; drop it with volume_port_put()
 * @heals: files without contents may get a layout
 *
 * Return: 0, -ENOMEM, -errno of creating a session.
 */
int must_check volume_port_get(struct loop *loop, struct volume_manager *m, bool heals, struct volume_port **ret);
void volume_port_put(struct volume_port *p); /* NULL is fine */

/** volume_port_manager - from now on @m's map and keys apply; Return: 0 or -errno */
int must_check volume_port_manager(struct volume_port *p, struct volume_manager *m);

/** volume_port_open - sets file->use; @fsyncs: as volume_unstable_get(). Return: 0, -ENOMEM */
int must_check volume_port_open(struct volume_port *p, struct store_file *file, const struct fsync_batch *fsyncs);

/** volume_port_kick - an operation was started: the session is polled soon */
void volume_port_kick(struct volume_port *p);

#endif
