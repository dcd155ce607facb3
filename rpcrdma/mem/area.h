/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * area.h - memory of one connection alone, lent by the page
 */
#ifndef RR_MODE_AREA_H
#define RR_MODE_AREA_H

#include "engine_int.h"

#define RR_AREA_PAGE 4096u

struct rr_area {
	struct rpcrdma_conn *conn;
	uint8_t *mem;                    /* NULL: there is none */
	size_t bytes, buf_max;
	struct rr_mr *mr;
	struct rr_buf *bufs;             /* one per page; that of its first page is the buffer's */
	uint64_t *used;                  /* a bit per page */
	unsigned npages, nused;
	struct rpcrdma_buf_waiter *waiters, **waiters_tail;
	const struct rpcrdma_buf_waiter *retry; /* whose turn it is; only compared */
	struct rpcrdma_msg msg;
	bool msg_out;
};

/** rr_area_init - map, touch and register @bytes
 * @a: zeroed
 * @buf_max: the largest buffer
 * @access: of the registration; what has RR_ACCESS_REMOTE in it, this connection's peer reaches, and with
 * RR_ACCESS_MW_BIND as much of it as windows are bound over
 *
 * Return: 0, -ENOMEM, what the device said. On failure nothing is held, and rr_area_fini() is fine.
 */
must_check int rr_area_init(struct rr_area *a, struct rpcrdma_conn *c, struct rr_pd *pd, size_t bytes,
			    size_t buf_max, unsigned access);

/** rr_area_fini - everything is back, and the queue pair is gone */
void rr_area_fini(struct rr_area *a);

/** rr_area_get - @bytes, in whole pages
 * Return: 0; -ENOBUFS: not now, wait; -EMSGSIZE: never */
must_check int rr_area_get(struct rr_area *a, size_t bytes, struct rpcrdma_buf **ret);

/** rr_area_put - the reverse; by rpcrdma_buf_put() */
void rr_area_put(struct rr_area *a, struct rr_buf *b);

/** rr_area_wait - after -ENOBUFS: w->fn runs when it is worth another try; first come, first served */
void rr_area_wait(struct rr_area *a, struct rpcrdma_buf_waiter *w);
void rr_area_unwait(struct rr_area *a, struct rpcrdma_buf_waiter *w);

#endif
