/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * resv_ports.c - the order in which a requester tries reserved ports
 *
 * Operation:  pure.
 * Memory:     none.
 * Threads:    any.
 */
#include "base/clock.h"
#include "resv_ports.h"

#define PORTS (RR_RESV_PORT_HIGH - RR_RESV_PORT_LOW + 1)

/** rr_resv_ports_init - starts an order
 * @now_ns: any clock; another microsecond starts with another port
 */
void rr_resv_ports_init(struct rr_resv_ports *p, uint64_t now_ns)
{
	*p = (struct rr_resv_ports){ .start = (unsigned)(now_ns / NS_PER_US % PORTS) };
}

/** rr_resv_ports_next - returns the next port, and 0 after the last */
uint16_t rr_resv_ports_next(struct rr_resv_ports *p)
{
	if (p->used == PORTS)
		return 0;
	return (uint16_t)(RR_RESV_PORT_LOW + (p->start + p->used++) % PORTS);
}
