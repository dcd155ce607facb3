/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * inside.h - what flow tests see of the inside of a client or server in this process, without its headers
 */
#ifndef INSIDE_H
#define INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hooks.h"
#include "leat.h"

struct rpcrdma_clnt;
struct rpcrdma_domain;
struct server;

/** server_counter - a counter of one reactor, by its name in REACTOR_COUNTERS or STORE_COUNTERS; whatever fails is
 * asserted
 */
uint64_t server_counter(const struct server *s, unsigned reactor, const char *name);

/** server_counters - the same, of all reactors together */
uint64_t server_counters(const struct server *s, const char *name);

/** server_reactors - how many threads serve connections */
unsigned server_reactors(const struct server *s);

/** server_files_max - how many files the caches of one reactor may hold open */
size_t server_files_max(const struct server *s);

/** server_domain - for rpcrdma_domain_stats(); belongs to the server */
struct rpcrdma_domain *server_domain(const struct server *s);

/** clnt_next_xid - the next call has this XID: as if the client had sent it before */
void clnt_next_xid(struct rpcrdma_clnt *clnt, uint32_t xid);

/** clnt_disconnect - breaks the connection of a client; its calls go again */
void clnt_disconnect(struct rpcrdma_clnt *clnt);

/** leat_credits_out - how many credits the calls of a mount's connections use, also those that were cancelled and have no
 * reply yet */
unsigned leat_credits_out(const struct leat *m);

/** leat_drain - waits until no operation of a mount is in flight, as its end does */
int leat_drain(struct leat *m);

/** leat_aio_read_at - starts a read as leat_read() does, at @pos; one at a time for each file */
int leat_aio_read_at(struct leat_file *f, void *buf, size_t len, uint64_t pos, struct leat_cb cb);

/** leat_admits_away - marks the server of a mount as away while the service thread sleeps; does that thread still admit
 * visitors? */
bool leat_admits_away(struct leat *m);

/** local_fabric - the local fabric of a domain, for faults_of(); belongs to the domain; whatever fails is asserted */
struct rr_fabric *local_fabric(struct rpcrdma_domain *d);

#endif
