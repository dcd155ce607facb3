/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * choose.h - which way to the server, and why
 */
#ifndef LT_CHOOSE_H
#define LT_CHOOSE_H

#include "handle.h"

/** lt_choose_connect - connect as the URL says: m->clnt[0], m->addr, m->chosen, m->server, and
 * for local URLs m->url.path cut down to what follows the socket
 * @why: a line for people on failure
 *
 * Return: 0 or -errno.
 */
must_check int lt_choose_connect(struct leat *m, char *why, size_t cap);

/** lt_choose_more - the other connections of conns=N; Return: 0 or -errno */
must_check int lt_choose_more(struct leat *m, char *why, size_t cap);

/** lt_choose_open - one connection to @addr, proved by a NULL call of @prog
 * Return: 0 or -errno. */
must_check int lt_choose_open(struct leat *m, const struct rpcrdma_addr *addr, uint32_t prog,
			      uint32_t vers, struct rpcrdma_clnt **ret, char *why, size_t cap);

#endif
