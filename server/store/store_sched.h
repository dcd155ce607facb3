/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_sched.h - the order in which a disk gets the waiting requests
 */
#ifndef LEAT_SERVER_STORE_SCHED_H
#define LEAT_SERVER_STORE_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/treap.h"
#include "base/util.h"

/* At most this many new requests may join the current sweep; the others wait for the next one. */
#define STORE_SCHED_JOIN_MAX 64u
/* After a late request, the disk gets requests in order of place: this many, the late one included, until deadlines are
 * checked again. */
#define STORE_SCHED_BATCH 16u

/* A waiting request; embedded in the operation. The first members are the caller's. */
struct sched_node {
	uint64_t dev, ino, off; /* where it is */
	uint64_t end;		/* where the disk will be after it: off + bytes */
	bool write;
	bool late; /* it went before its turn, as its deadline had passed */
	/* private from here */
	uint64_t sweep, serial, due_ns;
	struct treap_node tree;
	struct list fifo;
};

/* Reads, or writes, or both. */
struct sched_set {
	struct treap places; /* by place */
	struct list fifo;    /* by age */
};

struct sched_place {
	uint64_t sweep, dev, ino, off, serial;
};

/* The owner locks it. */
struct store_sched {
	uint64_t read_ns, write_ns; /* longest wait; both 0: no deadlines */
	struct sched_set sets[2];   /* reads or all; writes */
	struct sched_set *at;	    /* the set of the last request */
	struct sched_place pos;	    /* where that one ended */
	unsigned joined;	    /* requests that have joined the current sweep */
	unsigned batch;		    /* requests left in order of place until deadlines are checked */
	unsigned n;		    /* waiting requests */
	uint64_t added;
};

/** store_sched_init - mode `sorted` if both times are 0, else `deadline` */
void store_sched_init(struct store_sched *s, uint64_t read_ns, uint64_t write_ns);

/** store_sched_add - adds a waiting request */
void store_sched_add(struct store_sched *s, struct sched_node *n, uint64_t now_ns);

/** store_sched_take - removes and returns the next request; NULL if none waits */
struct sched_node *must_check store_sched_take(struct store_sched *s, uint64_t now_ns);

/** store_sched_pass - records a request that did not have to wait: the disk is where it ends */
void store_sched_pass(struct store_sched *s, struct sched_node *n);

#endif
