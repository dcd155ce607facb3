/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * resv_ports.h - the order in which a requester tries reserved ports
 *
 * Operation:  Servers trust calls from a port below 1024 as sent by root. Ports below 665 are well-known services and
 *             are left out. Each of the others comes once, from a start that the time selects.
 * Threads:    Those of the caller.
 */
#ifndef RPCRDMA_CORE_RESV_PORTS_H
#define RPCRDMA_CORE_RESV_PORTS_H

#include <stdint.h>

#define RR_RESV_PORT_LOW 665u
#define RR_RESV_PORT_HIGH 1023u

struct rr_resv_ports {
	unsigned start, used;
};

/* Starts an order, and gives its next port: each once, then 0. */
void rr_resv_ports_init(struct rr_resv_ports *p, uint64_t now_ns);
uint16_t rr_resv_ports_next(struct rr_resv_ports *p);

#endif
