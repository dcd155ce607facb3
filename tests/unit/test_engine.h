/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_engine.h - an engine, and messages whose order is kept
 */
#ifndef TEST_ENGINE_H
#define TEST_ENGINE_H

#include "engine_int.h"

static struct rpcrdma_domain *d;
static struct rpcrdma_engine *e;

static inline int set_up(void **state)
{
	(void)state;
	return rpcrdma_domain_create(NULL, &d) || rpcrdma_engine_create(d, NULL, &e);
}

static inline int tear_down(void **state)
{
	(void)state;
	rpcrdma_engine_destroy(e);
	rpcrdma_domain_destroy(d);
	return 0;
}

struct note {
	struct rpcrdma_msg msg;
	int n;
};

static int seen[64], nseen;

static inline void on_note(struct rpcrdma_msg *msg)
{
	seen[nseen++] = container_of(msg, struct note, msg)->n;
}

#endif
