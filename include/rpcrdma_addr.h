/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma_addr.h - addresses, and the version of the library
 */
#ifndef RPCRDMA_ADDR_H
#define RPCRDMA_ADDR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define RPCRDMA_VERSION_MAJOR 0 /* of these headers */
#define RPCRDMA_VERSION_MINOR 1

/** rpcrdma_version - version of the library that the program runs with, "0.1.0" */
const char *rpcrdma_version(void);

enum rpcrdma_transport { RPCRDMA_TCP, RPCRDMA_LOCAL, RPCRDMA_RDMA };

struct rpcrdma_addr {
	enum rpcrdma_transport transport;
	char host[256]; /* TCP, RDMA: name or literal address; LOCAL: path of the socket */
	uint16_t port;  /* TCP, RDMA */
};

/** rpcrdma_transport_name - "tcp", "local", "rdma" */
const char *rpcrdma_transport_name(enum rpcrdma_transport t);

/** rpcrdma_addr_parse - "tcp://HOST[:PORT]", "rdma://HOST[:PORT]", "local:///PATH"
 * A literal IPv6 address stands in brackets. Ports default to 2049 and 20049.
 *
 * Return: 0, or -EINVAL (scheme, port or brackets), -ENAMETOOLONG.
 */
int rpcrdma_addr_parse(const char *url, struct rpcrdma_addr *ret);

/** rpcrdma_addr_print - the inverse; Return: @buf */
char *rpcrdma_addr_print(const struct rpcrdma_addr *a, char *buf, size_t cap);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
