/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs.h - the verbs fabric: how to open it
 *
 * verbs.c describes how it works. A fabric is one RDMA device: InfiniBand, RoCE or iWARP, in
 * hardware or in software (rxe). rr_verbs_device_of() finds the device of an address. Callers need
 * no header of libibverbs.
 */
#ifndef RR_VERBS_H
#define RR_VERBS_H

#include <stdbool.h>
#include <stddef.h>

#include "fabric.h"

struct rr_verbs_attr {
	const char *device;   /* "mlx5_0"; NULL: the first with an active port, hardware first */
	bool unsafe_inv;      /* tests: allow remote invalidation in both directions, even where an
	                       * error crashes the kernel of the memory's owner (rxe) */
	/* A listener on all addresses got a request through another device: returns that device's fabric. Called by
	 * cm_process; NULL: the peer is refused. */
	int (*sibling)(void *ctx, const char *device, struct rr_fabric **ret);
	void *ctx;
};

/** rr_verbs_open - opens an RDMA device
 * @attr: copied
 * @ret: close it with rr_fabric_close() when nothing uses it
 *
 * Fast, silent and without side effects if there is no device.
 *
 * Return: 0; -ENODEV: there is no device (of that name); -EACCES: there is one, but it may not be opened;
 * -ENOMEM; errors of the device.
 */
must_check int rr_verbs_open(const struct rr_verbs_attr *attr, struct rr_fabric **ret);

/** rr_verbs_any_device - true if there is an RDMA device */
bool rr_verbs_any_device(void);

/** rr_verbs_device_of - finds the device that has an address, or a route to it
 * @addr: "host:port", as for listen() and qp_dial(); a name is resolved, which blocks
 * @passive: it is an address of this host; else that of a peer
 * @device: receives the name; "" for a passive address that stands for all addresses
 *
 * Return: 0; -ENODEV: there is no RDMA device; -ENXIO: no device has it, or a route to it;
 * -EHOSTUNREACH for an unknown name, -ENETUNREACH without a route, -EADDRNOTAVAIL if no interface
 * has it; -EINVAL, -ENOMEM, -EMFILE.
 */
must_check int rr_verbs_device_of(const char *addr, bool passive, char *device, size_t cap);

#endif
