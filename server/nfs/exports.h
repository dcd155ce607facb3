/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * exports.h - the exports in service, and what happens to open files when others replace them (served.h)
 */
#ifndef LEAT_SERVER_EXPORTS_H
#define LEAT_SERVER_EXPORTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "export.h"
#include "fh.h"
#include "served.h"
#include "services.h"

struct conf;
struct reactor;

/* The exports of one configuration. Shared, read-only. */
struct exports {
	struct served served; /* one backing per export */
	struct export_table table;
	struct fh_set *fhs; /* handles of these exports */
};

/** exports_from - returns the exports of which @s is a part; NULL: NULL */
static inline struct exports *exports_from(struct served *s)
{
	return s ? container_of(s, struct exports, served) : NULL;
}

/** exports_of - returns the exports that a request, or a reactor, uses */
static inline struct exports *exports_of(const struct served_use *u)
{
	return container_of(u->served, struct exports, served);
}

/** exports_create - the hook of the service, serve: opens the directories and sets up file handles
 * @srv: provides what handles are made with, which is decided when the server starts
 * @why: gets the reason of a failure
 *
 * Return: 0 or -errno.
 */
int must_check exports_create(struct server *srv, const struct conf *conf, struct served *old, struct served **ret,
			      char *why, size_t why_bytes);

/** exports_current - returns the exports in force, held for the caller; any thread */
static inline struct exports *exports_current(struct server *srv)
{
	return exports_from(service_current(srv, SERVICE_NFS));
}

/** exports_change_over - the hook of the service: new requests on @re use @now, without disturbing exports that stay
 *
 * Files that are open in an export that was removed, or now has another directory, are closed when their last request
 * ends, after their unwritten data is synced.
 */
void exports_change_over(struct reactor *re, const struct served_use *old, const struct served_use *now);

/** exports_announce - logs which exports are new or changed, and which are no longer served
 * @old: the exports before, or NULL
 */
void exports_announce(const struct exports *old, const struct exports *now);

#endif
