/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leatds.h - the processes of a striped volume: stripe servers and a manager, which can be killed, stopped and cut off
 */
#ifndef TESTS_TUMBLE_LEATDS_H
#define TESTS_TUMBLE_LEATDS_H

#include "fleet.h"

struct leatds {
	char dir[200], url[256];   /* url: of the volume */
	const char *leatd;
	bool tcp;
	unsigned n;                /* stripe servers; the manager is number n */
	pid_t pids[FLEET_SERVERS_MAX + 1];
	uint16_t ports[FLEET_SERVERS_MAX + 1];
	struct relay *relay;       /* NULL: not tcp */
	uint64_t unit, patience_ms;
	char why[256];
};

/** leatds_start - makes the volume in the new directory @dir, and starts all; Return: 0; -errno with ret->why */
int leatds_start(struct leatds *l, const char *dir, const char *leatd, const char *scheme, const struct fleet_opts *o);

/** leatds_end - ends all; Return: 0; -EIO: one did not end as it should */
int leatds_end(struct leatds *l);

int leatds_fail(struct leatds *l, unsigned server, enum fleet_fault fault);
int leatds_heal(struct leatds *l, unsigned server, enum fleet_fault fault);

/** leatds_queued - bytes that clients have sent and servers have not got yet */
uint64_t leatds_queued(const struct leatds *l);

/** leatds_check - has one ended by itself? Return: 0; -EIO with why */
int leatds_check(struct leatds *l);

/** leatds_is_settled - is nothing in pending/ of the manager? */
bool leatds_is_settled(const struct leatds *l);

#endif
