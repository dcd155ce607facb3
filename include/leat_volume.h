/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leat_volume.h - administration of striped volumes
 *
 *     const char *urls[] = { "tcp://10.0.0.1", "tcp://10.0.0.2" };
 *     struct leat_volume_plan plan = { .size = sizeof(plan), .name = "big", .servers = urls, .nservers = 2,
 *                                      .clients = "10.0.0.0/24", .listen = "tcp://10.0.0.9" };
 *     if (leat_volume_create("/srv/big", &plan, &id, why, sizeof(why)) < 0) ...
 *
 * Files in a volume are read and written with leat.h: a mount finds out by itself that its export is a volume.
 *
 * Growth:    Structures begin with their size, and get members at the end in later releases.
 * Threads:   Any.
 * Errors:    @why gets a text for the administrator, of at most @why_bytes bytes with its NUL.
 */
#ifndef LEAT_VOLUME_H
#define LEAT_VOLUME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- a new volume --------------------------------------------------------------------------- */

struct leat_volume_plan {
	size_t size;                /* set by the caller: sizeof(struct leat_volume_plan) */
	const char *name;           /* clients mount /NAME: 1 to 63 bytes, no slash */
	const char *const *servers; /* URLs at which the stripe servers are to listen; server N is the Nth one, from 1 */
	size_t nservers;            /* 1 to 256 */
	const char *listen;         /* URL at which the manager is to listen; NULL: local://DIR/sock */
	const char *clients;        /* option of leatd.conf; needed if a URL is not local */
	uint32_t stripe;            /* bytes of a stripe unit: a power of two from 64 KiB to 16 MiB; 0: 1 MiB */
	uint32_t width;             /* stripes of a file, at most @nservers; 0: all servers */
};

/** leat_volume_create - creates the directory @dir with what the servers of a new volume need
 * @dir: must not exist; its parent must
 * @ret_volume: gets the id of the volume; may be NULL
 *
 *     names/            the directory that the manager exports, with mode 0755
 *     key               the key of the volume, with mode 0600: it permits everything
 *     map               the first map: all servers
 *     manager.conf      configuration of the manager's leatd
 *     server-N.conf     configuration of the leatd of server N
 *     stripes-N/        for the stripes of server N, with mode 0700; only if its URL is local
 *
 * A server on another machine needs its own server-N.conf, the key and an empty directory, at the same paths there.
 * Nothing that exists is changed. If the function fails, it removes what it has created.
 *
 * Return: 0; -EINVAL: not a possible plan; -EEXIST: @dir exists; -ENOMEM; -errno of a file operation.
 */
int leat_volume_create(const char *dir, const struct leat_volume_plan *plan, uint64_t *ret_volume, char *why,
		       size_t why_bytes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
