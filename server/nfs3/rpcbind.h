/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcbind.h - tell the local rpcbind which ports NFS and MOUNT are at
 */
#ifndef LEAT_SERVER_RPCBIND_H
#define LEAT_SERVER_RPCBIND_H

#include <stddef.h>

#include "base/util.h"
#include "rpcrdma.h"

struct rpcbind;

/** rpcbind_start - register NFS 3 and MOUNT 3 at each kind of address, from a thread of its own
 * @addrs, @n: where this server listens; copied
 *
 * Nobody waits for it, and what comes of it is logged: a missing rpcbind is no more than a warning.
 *
 * Return: 0, -ENOMEM, -EAGAIN (no more threads).
 */
int must_check rpcbind_start(const struct rpcrdma_addr *addrs, size_t n, struct rpcbind **ret);

/** rpcbind_stop - take back what was registered; a few seconds at most. NULL is fine. */
void rpcbind_stop(struct rpcbind *rb);

#define RPCBIND_UADDR_BYTES 80

/** rpcbind_uaddr - an address as rpcbind writes it: h1.h2.h3.h4.p1.p2 (RFC 1833, RFC 5665)
 * @ret_netid: "tcp", "tcp6", "rdma" or "rdma6"
 *
 * Return: 0; -EAFNOSUPPORT: a local socket; -EINVAL: no literal address.
 */
int must_check rpcbind_uaddr(const struct rpcrdma_addr *addr, char uaddr[RPCBIND_UADDR_BYTES],
			     const char **ret_netid);

#endif
