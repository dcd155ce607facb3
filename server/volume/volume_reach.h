/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_reach.h - which stripe servers of a volume are in reach of its manager
 *
 * A thread per directory asks all servers of the map at once (INFO), every 5 seconds, or every half of a stripe_timeo that is
 * less than 10 seconds, and keeps the connections. A server that replies is in reach. One that does not reply within
 * stripe_timeo, or replies nonsense, is away, and so is one that did not reply to a command. Of a server that was not asked
 * yet nothing is known: it counts as in reach. When a server is back, the thread of pending work is woken.
 *
 * Any thread.
 */
#ifndef LEAT_SERVER_VOLUME_REACH_H
#define LEAT_SERVER_VOLUME_REACH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "volumes.h"

struct volume_dir;
struct volume_manager;
struct volume_map;
struct volume_reach;

/** volume_reach_create - starts the thread, without a manager; Return: 0 or -errno */
int must_check volume_reach_create(struct volume_dir *d, struct volume_reach **ret);

/** volume_reach_stop - ends the thread, and what waits for it; what is known stays. NULL is fine
 * volume_reach_destroy - the rest */
void volume_reach_stop(struct volume_reach *r);
void volume_reach_destroy(struct volume_reach *r);

/** volume_reach_use - from now on the servers in the map of @m are asked, with its key */
void volume_reach_use(struct volume_reach *r, struct volume_manager *m);

/** volume_reach_is_away - is server @id away? */
bool volume_reach_is_away(struct volume_reach *r, uint32_t id);

/** volume_reach_failed - server @id did not reply to a command, or with nonsense: it is away; @why: for the log */
void volume_reach_failed(struct volume_reach *r, uint32_t id, const char *why);

/** volume_reach_pick - drops the servers that are away from a list of indices in @map
 * If all are away, the list stays: they may be in reach of clients.
 * @room: gets the free bytes of each; 0: not known
 *
 * Return: how many are left.
 */
unsigned volume_reach_pick(struct volume_reach *r, const struct volume_map *map, unsigned *list, unsigned n, uint64_t *room);

/** volume_reach_term - asks all servers now, and waits until each has replied, or is away
 * @ret: the newest term that one of them has obeyed
 *
 * Return: 0; -ESHUTDOWN: the thread ends; -ENOMEM, -errno: it could not ask.
 */
int must_check volume_reach_term(struct volume_reach *r, uint64_t *ret);

/* Bytes of file systems, added up. */
struct volume_space {
	uint64_t bytes, bytes_used, bytes_free;
};

/** volume_reach_space - adds up what the servers have said last; one that is away has no free bytes
 * Two servers on one file system count twice. Return: false: none has replied yet */
bool volume_reach_space(struct volume_reach *r, struct volume_space *ret);

/** volume_reach_list - what is known of the servers in @map; Return: how many, in @ret */
unsigned volume_reach_list(struct volume_reach *r, const struct volume_map *map, volume_seen ret[VOLUME_SERVERS_MAX]);

#endif
