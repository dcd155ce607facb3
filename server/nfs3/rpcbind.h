/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcbind.h - registers the ports of NFS and MOUNT with the local rpcbind
 */
#ifndef LEAT_SERVER_RPCBIND_H
#define LEAT_SERVER_RPCBIND_H

#include <stddef.h>

#include "base/util.h"
#include "rpcrdma.h"

struct rpcbind;

/** rpcbind_start - registers NFS 3 and MOUNT 3 at each kind of address, in its own thread
 * @addrs, @n: where this server listens; copied
 *
 * Does not wait for the result, which is logged: a missing rpcbind causes only a warning.
 *
 * Return: 0, -ENOMEM, -EAGAIN (no more threads).
 */
int must_check rpcbind_start(const struct rpcrdma_addr *addrs, size_t n, struct rpcbind **ret);

/** rpcbind_stop - unregisters what was registered; takes a few seconds at most. NULL is fine. */
void rpcbind_stop(struct rpcbind *rb);

#define RPCBIND_UADDR_BYTES 80

/** rpcbind_uaddr - prints an address in rpcbind's format: h1.h2.h3.h4.p1.p2 (RFC 1833, RFC 5665)
 * @ret_netid: "tcp", "tcp6", "rdma" or "rdma6"
 *
 * Return: 0; -EAFNOSUPPORT: a local socket; -EINVAL: no literal address.
 */
int must_check rpcbind_uaddr(const struct rpcrdma_addr *addr, char uaddr[RPCBIND_UADDR_BYTES],
			     const char **ret_netid);

#endif
