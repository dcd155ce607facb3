/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * drc.h - the duplicate request cache: what a call that comes again was answered the first time
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

#define DRC_RES_MAX 288	 /* longest results: CREATE's, with everything in them, have 280 bytes */
#define DRC_CRED_MAX 400 /* RFC 5531 section 8.2 */

/* What one may ask for. All of the default bytes are used only by credentials of full length. */
#define DRC_ENTRIES_DEFAULT 32768u
#define DRC_ENTRIES_MAX (1u << 24)
#define DRC_BYTES_DEFAULT (32u << 20)
#define DRC_BYTES_MIN (64u << 10)
#define DRC_BYTES_MAX (1u << 31)

struct drc;
struct drc_entry;

/* How long a client that is silent keeps its entries while others need room. WRITEs are many and large
 * in sum, and to execute one again is harmless unless a later one wrote the same bytes. */
#define DRC_KEEP_NS (3600 * NS_PER_S)
#define DRC_KEEP_WRITE_NS (120 * NS_PER_S) /* no WRITE is replayed after that, as by Linux's server */

struct drc_attr {
	size_t entries, bytes; /* most that it keeps; at least one entry */
	uint64_t keep_ns;      /* the entries of a client that is silent for so long give way first */
	bool ends;	       /* an entry that is so old is not replayed any more */
};

/* What makes two calls the same one, but for the credential. Compared as bytes: no padding. */
struct drc_key {
	uint8_t host[16]; /* network: his address, IPv4 as ::ffff:a.b.c.d; local fabric: zero */
	uint32_t local;	  /* 1: the local fabric */
	uint32_t who[2];  /* local fabric: process and user; network: the address's scope */
	uint32_t xid, prog, vers, proc;
	uint32_t args_bytes;
	uint64_t args_hash; /* drc_hash() of them */
	uint32_t cred_flavor, cred_bytes;
};

enum drc_verdict {
	DRC_EXECUTE,   /* new: execute it, then drc_done() or drc_abandon() */
	DRC_REPLAY,    /* done before: res holds what it was answered */
	DRC_JOINED,    /* being executed: wake() comes, and verdict is one of the others */
	DRC_NO_MEMORY, /* not entered: it must not be executed */
};

/* A call on its way through the cache. The caller's; while joined it must stay where it is, and
 * nothing of it be touched. */
struct drc_call {
	struct drc_key key;
	struct rpcrdma_client_id client; /* whose share its entry is part of */
	const uint8_t *cred; /* key.cred_bytes */
	/* The verdict on a joined call is there; on the thread of whoever executed the first one. */
	void (*wake)(struct drc_call *c);
	enum drc_verdict verdict; /* valid after wake() */

	struct drc_entry *entry; /* the cache's: ours to end, or NULL */
	struct list link;	 /* joined: in the entry's line */
	uint32_t res_bytes;
	uint8_t res[DRC_RES_MAX];
};

/** drc_create - an empty cache
 *
 * Return: 0, -ENOMEM, -EIO (no randomness).
 */
int must_check drc_create(const struct drc_attr *attr, struct drc **ret);

/** drc_destroy - nothing is in progress. NULL is fine. */
void drc_destroy(struct drc *d);

/** drc_hash - the keyed hash that args_hash is */
uint64_t drc_hash(const struct drc *d, const void *data, size_t bytes);

/** drc_key_peer - fill in who is calling: his address without port, or what the kernel says of him */
void drc_key_peer(struct drc_key *key, const struct rpcrdma_peer *peer);

/** drc_enter - before a call is executed; any thread
 *
 * Return: the verdict; after DRC_JOINED, c->wake() has run, runs, or will run.
 */
enum drc_verdict must_check drc_enter(struct drc *d, struct drc_call *c);

/** drc_leave - a joined call waits no longer
 *
 * Return: false: its verdict was there before, and wake() has run, runs, or will run.
 */
bool must_check drc_leave(struct drc *d, struct drc_call *c);

/** drc_done - it was executed, and c->res is what it is answered: for those who joined, too */
void drc_done(struct drc *d, struct drc_call *c);

/** drc_abandon - it was not executed after all: the first of those who joined is, or nobody */
void drc_abandon(struct drc *d, struct drc_call *c);

/* Sums over all shards. */
struct drc_stats {
	uint64_t hits;	    /* answered with what is kept */
	uint64_t joins;	    /* came while the first was being executed */
	uint64_t evictions; /* kept answers that gave way to others */
	uint64_t entries;   /* now */
	uint64_t clients;   /* that have any; one may be counted in each shard */
	uint64_t executing; /* of them: in progress */
	uint64_t bytes;	    /* that all of them take */
};

/** drc_stats - adds the numbers so far to *@ret; any thread, of no one moment. A NULL @d adds nothing. */
void drc_stats(struct drc *d, struct drc_stats *ret);

#endif
