/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * choose.h - selects the transport to the server
 */
#ifndef LT_CHOOSE_H
#define LT_CHOOSE_H

#include "handle.h"

/** lt_choose_address - finds the address that the URL names
 * For local URLs it reduces u->path to the part after the socket.
 * @why: an error message (one line) on failure
 *
 * Return: 0 or -errno.
 */
must_check int lt_choose_address(struct lt_url *u, struct rpcrdma_addr *ret, char *why, size_t cap);

/** lt_choose_connect - connects a new server as its URL says; sets clnt[0], addr, chosen, name and the like
 * @why: an error message (one line) on failure
 *
 * Return: 0 or -errno.
 */
must_check int lt_choose_connect(struct lt_server *s, char *why, size_t cap);

/** lt_choose_more - opens the other connections of conns=N; Return: 0 or -errno */
must_check int lt_choose_more(struct lt_server *s, char *why, size_t cap);

/** lt_choose_open - opens one connection to @addr and verifies it with a NULL call of @prog
 * @index: which connection of the server it will be; LT_CONN_OTHER: to another service
 * @patience_ms: at most this for the connection, and for the call; 0: timeo of the server's first mount
 * Return: 0 or -errno; close it with lt_server_close(). */
must_check int lt_choose_open(struct lt_server *s, unsigned index, const struct rpcrdma_addr *addr, uint32_t prog,
			      uint32_t vers, uint32_t patience_ms, struct rpcrdma_clnt **ret, char *why, size_t cap);

#endif
