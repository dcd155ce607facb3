/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * drc.h - the duplicate request cache: returns the first reply to a retransmitted call
 */
#ifndef LEAT_SERVER_DRC_H
#define LEAT_SERVER_DRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/util.h"
#include "rpcrdma.h"

#define DRC_RES_MAX 288	 /* longest results: CREATE's, with all optional parts, have 280 bytes */
#define DRC_CRED_MAX 400 /* RFC 5531 section 8.2 */

/* Limits of the options. The default bytes are used up only by credentials of full length. */
#define DRC_ENTRIES_MAX (1u << 24)
#define DRC_BYTES_MIN (64u << 10)
#define DRC_BYTES_MAX (1u << 31)

struct drc;
struct drc_entry;

/* How long an idle client keeps its entries while others need room. WRITEs are many and large in total, and executing
 * one again is harmless unless a later one wrote the same bytes. */
#define DRC_KEEP_NS (3600 * NS_PER_S)
#define DRC_KEEP_WRITE_NS (120 * NS_PER_S) /* no WRITE is replayed after that, as in the Linux server */

struct drc_attr {
	size_t entries, bytes; /* limits; at least one entry */
	uint64_t keep_ns;      /* entries of clients that are idle for this time are evicted first */
	bool ends;	       /* entries older than keep_ns are not replayed any more */
};

/* Identity of a call, except for the credential. Compared as bytes: no padding. */
struct drc_key {
	uint8_t host[16]; /* network: the client's address, IPv4 as ::ffff:a.b.c.d; local fabric: zero */
	uint32_t local;	  /* 1: the local fabric */
	uint32_t local_id[2];  /* local fabric: process and user; network: the address's scope */
	uint32_t xid, prog, vers, proc;
	uint32_t args_bytes;
	uint64_t args_hash; /* drc_hash() of the arguments */
	uint32_t cred_flavor, cred_bytes;
};

enum drc_verdict {
	DRC_EXECUTE,   /* new: execute it, then drc_done() or drc_abandon() */
	DRC_REPLAY,    /* done before: res has the results */
	DRC_JOINED,    /* in progress: wake() will run, and verdict is one of the others */
	DRC_NO_MEMORY, /* not entered: it must not be executed */
};

/* A call in the cache. Owned by the caller; while joined it must not be moved or accessed. */
struct drc_call {
	struct drc_key key;
	struct rpcrdma_client_id client; /* the client that its entry is charged to */
	const uint8_t *cred; /* key.cred_bytes */
	/* The verdict on a joined call is available; runs on the thread that executed the first call. */
	void (*wake)(struct drc_call *c);
	enum drc_verdict verdict; /* valid after wake() */

	struct drc_entry *entry; /* set by the cache: the entry that this call must end, or NULL */
	struct list link;	 /* joined: in the entry's list */
	uint32_t res_bytes;
	uint8_t res[DRC_RES_MAX];
};

/** drc_create - creates an empty cache
 *
 * Return: 0, -ENOMEM, -EIO (no random numbers).
 */
int must_check drc_create(const struct drc_attr *attr, struct drc **ret);

/** drc_destroy - no call may be in progress. NULL is fine. */
void drc_destroy(struct drc *d);

/** drc_hash - computes the keyed hash for args_hash */
uint64_t drc_hash(const struct drc *d, const void *data, size_t bytes);

/** drc_key_peer - fills in the caller: its address without port, or its identity from the kernel */
void drc_key_peer(struct drc_key *key, const struct rpcrdma_peer *peer);

/** drc_enter - call before executing a call; any thread
 *
 * Return: the verdict; after DRC_JOINED, c->wake() has run, runs, or will run.
 */
enum drc_verdict must_check drc_enter(struct drc *d, struct drc_call *c);

/** drc_leave - ends the wait of a joined call
 *
 * Return: false: its verdict was available before, and wake() has run, runs, or will run.
 */
bool must_check drc_leave(struct drc *d, struct drc_call *c);

/** drc_done - the call was executed with results c->res; they are also copied to joined calls */
void drc_done(struct drc *d, struct drc_call *c);

/** drc_abandon - the call was not executed after all: the first joined call is executed instead, if any */
void drc_abandon(struct drc *d, struct drc_call *c);

/* Counters, sums over all shards: `leat ctl stats` prints them as drc_NAME.
 *
 *   hits       replies from the cache
 *   joins      duplicates of calls in progress
 *   evictions  entries evicted for others
 *   entries    now
 *   executing  part of entries: in progress
 *   bytes      memory of all entries */
#define DRC_COUNTERS(X) X(hits) X(joins) X(evictions) X(entries) X(executing) X(bytes)

#define DRC_COUNTER(name) uint64_t name;

struct drc_stats {
	DRC_COUNTERS(DRC_COUNTER)
	uint64_t clients; /* clients with entries; one may be counted in each shard */
};

/** drc_stats - adds the counters to *@ret; any thread; not an atomic snapshot. A NULL @d adds nothing. */
void drc_stats(struct drc *d, struct drc_stats *ret);

#endif
