/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * exports.h - the exports in service, and their replacement
 *
 * Invariants: The exports that a request was decoded under stay until the request ends. A table of exports never
 * changes. A new table replaces it, on each reactor between two requests.
 */
#ifndef LEAT_SERVER_EXPORTS_H
#define LEAT_SERVER_EXPORTS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "export.h"
#include "fh.h"
#include "worker.h"

struct conf;
struct reactor;
struct nfs_server;
struct store;

/* The exports of one configuration. Shared, read-only; freed by its last holder. */
struct exports {
	struct export_table table;
	struct fh_set *fhs; /* handles of these exports */
	uint64_t serial;    /* unique for each configuration */
	atomic_uint refs;
	struct worker_job end; /* job of the last reactor that held it */
	struct reactor *last;
};

/* The exports as one reactor uses them. Only for its thread; freed by the last holder: a request, or on replacement. */
struct exports_use {
	struct exports *exports;
	struct reactor *reactor;
	unsigned holders;
	struct store *stores[]; /* by index of the export */
};

/** exports_create - opens the directories and sets up file handles; the caller holds the result
 * @srv: provides what handles are made with, which is decided when the server starts
 * @why: gets the reason of a failure
 *
 * Return: 0 or -errno.
 */
int must_check exports_create(struct nfs_server *srv, const struct conf *conf, struct exports **ret,
			      char *why, size_t why_bytes);

/** exports_current - returns the exports in force, held for the caller; any thread */
struct exports *exports_current(struct nfs_server *srv);

/** exports_put - releases @e; any thread but a reactor's. NULL is fine. */
void exports_put(struct exports *e);

/** exports_use_create - creates the stores for a reactor, held for the caller; any thread, before it is used
 *
 * Return: 0 or -errno.
 */
int must_check exports_use_create(struct reactor *r, struct exports *e, struct exports_use **ret);

/** exports_use_hold, exports_use_put - take and release a reference; reactor's thread only. put accepts NULL. */
static inline struct exports_use *exports_use_hold(struct exports_use *u)
{
	u->holders++;
	return u;
}

/** exports_use_free - the last reference was released */
void exports_use_free(struct exports_use *u);

static inline void exports_use_put(struct exports_use *u)
{
	if (u && !--u->holders)
		exports_use_free(u);
}

/** exports_replace - replaces the exports by those of @conf, without disturbing exports that stay
 *
 * When this returns, every new request uses the new exports. Requests that arrived earlier finish with the old ones.
 * Not from a reactor's thread; one call at a time.
 *
 * Return: 0; -ESHUTDOWN: the server is stopping; or an error of exports_create(). On an error nothing has changed,
 * and @why has the reason.
 */
int must_check exports_replace(struct nfs_server *srv, const struct conf *conf, char *why,
			       size_t why_bytes);

/** exports_announce - logs which exports are new or changed, and which are no longer served
 * @old: the exports before, or NULL
 */
void exports_announce(const struct exports *old, const struct exports *now);

#endif
