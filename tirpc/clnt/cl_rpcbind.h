/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_rpcbind.h - the port of a program, from rpcbind
 */
#ifndef RT_CL_RPCBIND_H
#define RT_CL_RPCBIND_H

#include <stdint.h>
#include <sys/socket.h>

#include "base/util.h"
#include "rpcrdma_addr.h"
#include "rpcrdma_tirpc.h"

/** rt_cl_find_port - asks rpcbind at an address
 * @host: its port is not used
 * @transport: RPCRDMA_RDMA: netid "rdma" or "rdma6"; RPCRDMA_TCP: "tcp" or "tcp6"
 * @until_ns: when to give up
 *
 * Return: RPC_SUCCESS; RPC_PROGNOTREGISTERED; RPC_RPCBFAILURE: rpcbind does not reply, with the reason in rpc_createerr
 */
must_check enum clnt_stat rt_cl_find_port(const struct sockaddr *host, enum rpcrdma_transport transport, uint32_t prog,
					  uint32_t vers, uint64_t until_ns, uint16_t *ret);

#endif
