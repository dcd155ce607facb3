/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma_lab.h - for measurements and tests: simulated costs, capture, older designs, hooks
 */
#ifndef RPCRDMA_LAB_H
#define RPCRDMA_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- older designs -------------------------------------------------------------------------- */

/* Data transfer modes other than RFC 8166, modeled on older designs, for comparison. They work over RDMA and the
 * local fabric, on connections where both sides request them; other connections are not affected. They let the peer
 * access memory of the responder that belongs to that connection only. */
enum rpcrdma_mode {
	RPCRDMA_READ_READ = 1u << 0,  /* results: the requester reads them from where the responder says */
	RPCRDMA_FAST_WRITE = 1u << 1, /* arguments of some KiB: written with the call, into slots */
	RPCRDMA_HYBRID = 1u << 2,     /* larger arguments: written to where the responder says, before the call */
};
#define RPCRDMA_MODES_ALL 7u
#define RPCRDMA_FAST_WRITE_MAX (64u << 10) /* maximum payload of one fast write */
#define RPCRDMA_MODES_TEXT 40              /* enough for all names */

/** rpcrdma_modes_parse - parses any subset of "read-read, fast-write, hybrid", or "none"
 * Return: 0; -EINVAL: unknown name, or empty */
int rpcrdma_modes_parse(const char *text, unsigned *ret);

/** rpcrdma_modes_print - the inverse; Return: @buf */
char *rpcrdma_modes_print(unsigned modes, char *buf, size_t cap);

/* ---- attributes ----------------------------------------------------------------------------- */

struct rr_local_attr;

/* Simulated cost of memory registration on the local fabric, for benchmarks; it has no real cost there. The
 * registering thread is kept busy for this time. */
struct rpcrdma_reg_cost {
	uint32_t reg_ns, reg_page_ns;     /* per registration, and per page */
	uint32_t dereg_ns, dereg_page_ns;
};

/* What rpcrdma_domain_attr.lab, rpcrdma_clnt_attr.lab and rpcrdma_svc_attr.lab may point to; each uses its own members
 * and ignores the others. */
struct rpcrdma_lab {
	size_t size;                   /* sizeof(struct rpcrdma_lab), or 0: see rpcrdma.h */

	/* domain */
	const char *capture;           /* file for a pcap, as RoCEv2, of all traffic of this process over the local
	                                * fabric; NULL: none */
	bool unsafe_inv;               /* remote invalidation in both directions even on soft RoCE, where a faulty peer
	                                * can crash the kernel of its host */
	struct rpcrdma_reg_cost reg_cost;

	/* client and service */
	bool no_private_data;          /* act without RFC 8797: a service uses 1024 bytes, whatever its inline_bytes is */
	unsigned modes;                /* enum rpcrdma_mode. Client: -ENOPROTOOPT if the responder lacks them; -EINVAL
	                                * with TCP or registration by windows. Service: offered to peers that request
	                                * them; their memory is pinned on request, at most as much for all connections
	                                * as for the pool. Requests in these modes need buffers of
	                                * rpcrdma_req_buf_get() */

	/* client */
	bool force_chunks;             /* use chunks even for payload that fits inline */
	uint32_t fast_write_bytes;     /* maximum payload of a fast write, <= RPCRDMA_FAST_WRITE_MAX; 0: that maximum */

	/* domain: hooks of the local fabric, for the tests of the library itself; NULL: plain */
	const struct rr_local_attr *local;
};

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
