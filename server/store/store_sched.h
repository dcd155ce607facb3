/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_sched.h - in which order a disk is given what waits for it
 */
#ifndef LEAT_SERVER_STORE_SCHED_H
#define LEAT_SERVER_STORE_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/util.h"

/* So many that come while a sweep is under way may join it, the others wait for the next one. */
#define STORE_SCHED_JOIN_MAX 64u
/* One whose time is up and those that are next by place: so many before times are looked at again. */
#define STORE_SCHED_BATCH 16u

/* A request that waits; embedded in what it is about. The first lines are the caller's. */
struct sched_node {
	uint64_t dev, ino, off; /* where it is */
	uint64_t end;		/* where the disk will be after it: off + bytes */
	bool write;
	bool late; /* it went before its turn, since its time was up */
	/* private from here */
	uint64_t sweep, serial, due_ns, weight;
	struct sched_node *left, *right;
	struct list fifo;
};

/* Reads, or writes, or both. */
struct sched_set {
	struct sched_node *root; /* by place; a heap by weight: that is chance, and keeps it flat */
	struct list fifo;	 /* by age */
};

struct sched_place {
	uint64_t sweep, dev, ino, off, serial;
};

/* Whoever owns it has the lock. */
struct store_sched {
	uint64_t read_ns, write_ns; /* longest wait; both 0: time is not looked at */
	struct sched_set sets[2];   /* reads or all; writes */
	struct sched_set *at;	    /* the set of the last one */
	struct sched_place pos;	    /* where that one ended */
	unsigned joined;	    /* the sweep, since it began */
	unsigned batch;		    /* so many more go by place before times are looked at */
	unsigned n;		    /* that wait */
	uint64_t added;
};

/** store_sched_init - sorted, if both times are 0, or deadline */
void store_sched_init(struct store_sched *s, uint64_t read_ns, uint64_t write_ns);

/** store_sched_add - it waits from now on */
void store_sched_add(struct store_sched *s, struct sched_node *n, uint64_t now_ns);

/** store_sched_take - the next one, which waits no more; or NULL */
struct sched_node *must_check store_sched_take(struct store_sched *s, uint64_t now_ns);

/** store_sched_pass - nobody waits, and this one need not: the disk is where it ends */
void store_sched_pass(struct store_sched *s, struct sched_node *n);

#endif
