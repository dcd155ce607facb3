/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * choose.h - selects the transport to the server
 */
#ifndef LT_CHOOSE_H
#define LT_CHOOSE_H

#include "handle.h"

/** lt_choose_connect - connects as the URL says
 * Sets m->clnt[0], m->addr, m->chosen and m->server. For local URLs it reduces m->url.path to the part after the
 * socket.
 * @why: an error message (one line) on failure
 *
 * Return: 0 or -errno.
 */
must_check int lt_choose_connect(struct leat *m, char *why, size_t cap);

/** lt_choose_more - opens the other connections of conns=N; Return: 0 or -errno */
must_check int lt_choose_more(struct leat *m, char *why, size_t cap);

/** lt_choose_open - opens one connection to @addr and verifies it with a NULL call of @prog
 * Return: 0 or -errno. */
must_check int lt_choose_open(struct leat *m, const struct rpcrdma_addr *addr, uint32_t prog,
			      uint32_t vers, struct rpcrdma_clnt **ret, char *why, size_t cap);

#endif
