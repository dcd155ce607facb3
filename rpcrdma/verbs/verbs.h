/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs.h - the verbs fabric: how it is opened
 *
 * What it is and how it works: verbs.c. A fabric is one RDMA device: InfiniBand, RoCE or iWARP, in
 * hardware or in software (rxe). Which one an address belongs to, or is reached by, says
 * rr_verbs_device_of(). No header of libibverbs is needed to use this one.
 */
#ifndef RR_VERBS_H
#define RR_VERBS_H

#include <stdbool.h>
#include <stddef.h>

#include "fabric.h"

struct rr_verbs_attr {
	const char *device;   /* "mlx5_0"; NULL: the first with an active port, hardware first */
	bool unsafe_inv;      /* tests: peers may invalidate, and so may we for them, also where a
	                       * mistake crashes the kernel of whose memory it is (rxe) */
	/* A listener at no address in particular was asked by way of another device: whose fabric
	 * is that? Called by cm_process; NULL: there is none, and the peer is turned away. */
	int (*sibling)(void *ctx, const char *device, struct rr_fabric **ret);
	void *ctx;
};

/** rr_verbs_open - open an RDMA device
 * @attr: may be NULL for the defaults; copied
 * @ret: closed with rr_fabric_close() when nothing of it is in use
 *
 * Quick, silent and without a trace where there is no device.
 *
 * Return: 0; -ENODEV: there is none (of that name); -EACCES: there is one and it may not be opened;
 * -ENOMEM; what the device said.
 */
must_check int rr_verbs_open(const struct rr_verbs_attr *attr, struct rr_fabric **ret);

/** rr_verbs_device_of - the device that has an address, or that leads to one
 * @addr: "host:port", as listen() and qp_dial() take it; a name is looked up, which blocks
 * @passive: it is an address of this host; else that of a peer
 * @device: receives the name; "" for a passive address that is all of them
 *
 * Return: 0; -ENODEV: there is no RDMA device at all; -ENXIO: none has it, or leads there;
 * -EHOSTUNREACH for an unknown name, -ENETUNREACH without a route, -EADDRNOTAVAIL if no interface
 * has it; -EINVAL, -ENOMEM, -EMFILE.
 */
must_check int rr_verbs_device_of(const char *addr, bool passive, char *device, size_t cap);

#endif
