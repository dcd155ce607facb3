/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * exports.h - the exports in service, and how others take their place
 *
 * Invariants: what was there when a call was understood stays until that call has ended. A table of
 * exports never changes; a new one takes its place, for each reactor between two calls.
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
struct server;
struct store;

/* The exports of one configuration. Shared, read-only; freed by its last holder. */
struct exports {
	struct export_table table;
	struct fh_set *fhs; /* handles of these exports */
	uint64_t serial;    /* of this configuration, no other has it */
	atomic_uint refs;
	struct worker_job end; /* of the last reactor that had it, */
	struct reactor *last;
};

/* What one reactor has of them. Its thread's alone; freed by the last of its calls, or by the next. */
struct exports_use {
	struct exports *exports;
	struct reactor *reactor;
	unsigned holders;
	struct store *stores[]; /* by index of the export */
};

/** exports_create - open directories, find out about handles; held for the caller
 * @srv: has what handles are made with, which is decided at its start
 * @why: tells what failed
 *
 * Return: 0 or -errno.
 */
int must_check exports_create(struct server *srv, const struct conf *conf, struct exports **ret,
			      char *why, size_t why_bytes);

/** exports_current - those in force, held for the caller; any thread */
struct exports *exports_current(struct server *srv);

/** exports_put - let go of them; any thread but a reactor's. NULL is fine. */
void exports_put(struct exports *e);

/** exports_use_create - stores for a reactor, held for the caller; any thread, before it is used
 *
 * Return: 0 or -errno.
 */
int must_check exports_use_create(struct reactor *r, struct exports *e, struct exports_use **ret);

/** exports_use_hold, exports_use_put - the reactor's thread only. NULL may be put. */
struct exports_use *exports_use_hold(struct exports_use *u);
void exports_use_put(struct exports_use *u);

/** exports_replace - serve what @conf says from now on, without a disturbance of those who stay
 *
 * When this returns, every call that comes is seen by the new rules. What came before goes on with
 * the old ones. Not from a reactor's thread; one at a time.
 *
 * Return: 0; -ESHUTDOWN: the server is ending; or what exports_create() says. Then nothing has
 * changed, and @why tells.
 */
int must_check exports_replace(struct server *srv, const struct conf *conf, char *why,
			       size_t why_bytes);

/** exports_announce - log what is served now, and what is not any more
 * @old: what was served before, or NULL
 */
void exports_announce(const struct exports *old, const struct exports *now);

#endif
