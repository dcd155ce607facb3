/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_rig.h - a striped volume in this process: its manager, four stripe servers, and mounts of it
 *
 * LEAT_FLOW_RDMA (leat_flow.h): all servers listen at that host instead.
 * Include it behind <cmocka.h>. The program that uses it says LOG_DEFINE("name") itself. One volume at a time. Servers
 * have ids 1 to 4 and keep their stripes in DIR/s1 to s4.
 */
#ifndef VOLUME_RIG_H
#define VOLUME_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "leat.h"
#include "tmp_dir.h"

#define VOLUME_RIG_SERVERS 4u

struct server;

extern struct volume_rig {
	struct tmp_dir dir;
	bool tcp;                                  /* else the local fabric */
	const char *volume;                        /* options of the volume: "stripe=64K" */
	struct server *manager, *server[VOLUME_RIG_SERVERS];
	char url[200];                             /* of the volume */
	char server_url[VOLUME_RIG_SERVERS][160];
} volume_rig;

/* Changes the configuration of the manager before it starts; NULL: does not */
struct conf;
extern void (*volume_rig_tune)(struct conf *conf);

/** volume_rig_start - makes the directories, and starts all servers; whatever fails is asserted
 * @volume: options of the volume, or NULL
 */
void volume_rig_start(bool tcp, const char *volume);
void volume_rig_stop(void);

/** volume_rig_end_server, volume_rig_start_server - one stripe server, 0 to 3, with the same address and directory; after
 * server_url[i][0] = 0 with another address */
void volume_rig_end_server(unsigned i);
void volume_rig_start_server(unsigned i);

/** volume_rig_end_manager, volume_rig_start_manager - the manager, with the same address and directory */
void volume_rig_end_manager(void);
void volume_rig_start_manager(void);

/** volume_rig_setup, volume_rig_teardown - for groups of tests: volume_rig_start(false, "stripe=64K"), and volume_rig_stop() */
int volume_rig_setup(void **state);
int volume_rig_teardown(void **state);

/** volume_rig_new_map - gives the manager a newer map, with the present addresses of the stripe servers */
void volume_rig_new_map(void);

/** volume_rig_mount - mounts the volume; @options of the URL, or NULL
 * Unless they name another stripe_timeo, servers have a minute: a disk may be busy for longer than the default. */
struct leat *volume_rig_mount(const char *options);

/** volume_rig_open - opens a file of a mount; whatever fails is asserted */
struct leat_file *volume_rig_open(struct leat *m, const char *name, int flags);

/** volume_rig_entries - counts what is in a directory of the rig: "m/pending", "m/writers" of the manager
 * volume_rig_settle - waits until nothing is pending */
unsigned volume_rig_entries(const char *dir);
void volume_rig_settle(void);

/** volume_rig_objects - the bytes in the objects of stripe server @i
 * @ret_n: how many there are, tombstones too; or NULL
 */
uint64_t volume_rig_objects(unsigned i, unsigned *ret_n);

#endif
