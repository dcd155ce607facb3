/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_area.h - memory of a single connection, lent in pages
 */
#ifndef RR_MODE_AREA_H
#define RR_MODE_AREA_H

#include "srv_int.h"

#define RR_AREA_PAGE 4096u

struct rr_area {
	struct rr_own_zone zone;         /* how others see it */
	struct rpcrdma_conn *conn;
	struct rr_extent x;              /* its memory */
	struct rr_ranges pages;          /* lent parts of it */
	struct rr_buf *bufs;             /* one per page; a buffer uses that of its first page */
	struct rr_waiters waiters;
	struct rpcrdma_msg msg;
	bool msg_out;
};

/** rr_area_init - allocates, populates and registers @bytes
 * @a: zeroed
 * @buf_max: size of the largest buffer
 * @access: of the registration; with RR_ACCESS_REMOTE, this connection's peer reaches all of it, with
 * RR_ACCESS_MW_BIND only the parts that windows are bound to
 *
 * Return: 0, -ENOMEM, errors of the device. On failure the area holds nothing, and rr_area_fini() is allowed.
 */
must_check int rr_area_init(struct rr_area *a, struct rpcrdma_conn *c, struct rr_pd *pd, size_t bytes,
			    size_t buf_max, unsigned access);

/** rr_area_fini - frees the area; call after all buffers are returned and the queue pair is destroyed */
void rr_area_fini(struct rr_area *a);

/** rr_area_get - rr_own_ops.get: allocates @bytes of the area of @zone, in whole pages
 * Return: 0; -ENOBUFS: none free now, wait; -EMSGSIZE: larger than buf_max; -ENOMEM */
must_check int rr_area_get(struct rr_own_zone *zone, size_t bytes, struct rpcrdma_buf **ret);

/** rr_area_wait - rr_own_ops.wait: after -ENOBUFS, w->fn runs when a retry may succeed, in FIFO order */
void rr_area_wait(struct rr_own_zone *zone, struct rpcrdma_buf_waiter *w);

#endif
