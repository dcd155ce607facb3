/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leat_flow.h - a leatd in this process, a directory that it exports, and a mount of it
 *
 * The program that uses it says LOG_DEFINE("name") itself. All lies in a temporary directory:
 * export/ is served as /x, twin/ is for comparison, and the local socket is there too.
 *
 * LEAT_FLOW_RDMA=HOST in the environment: the server listens there as well, and tcp_url and local_url are of RDMA. So
 * tests that need no certain transport run over a device (tests/interop/objects.sh). Others skip, and print why.
 */
#ifndef LEAT_FLOW_H
#define LEAT_FLOW_H

#include <stddef.h>

#include "leat.h"

struct server;

struct leat_flow {
	char dir[64];               /* the temporary directory */
	char export[96], twin[96];
	char tcp_url[160];          /* tcp://127.0.0.1:PORT/x */
	char leat_url[160];         /* leat://127.0.0.1:PORT/x */
	char local_url[160];        /* local:///DIR/sock/x */
	unsigned port, rdma_port;
	const char *options;        /* of the export, such as ",store=sim:...", from the next start on; or NULL */
	struct server *server;
	struct leat *m;             /* of the test that runs, or NULL */
};

/** leat_flow_rdma - the host of LEAT_FLOW_RDMA, or NULL */
const char *leat_flow_rdma(void);

/** leat_flow_skip_rdma - over RDMA skips the test, which needs what @why says */
void leat_flow_skip_rdma(const char *why);

/** leat_flow_fewer - @n, or over RDMA an eighth: there each packet passes an emulated machine */
unsigned leat_flow_fewer(unsigned n);

/** leat_flow_create - directories and a server; whatever fails is asserted */
void leat_flow_create(struct leat_flow *f);

/** leat_flow_destroy - ends the server, removes everything */
void leat_flow_destroy(struct leat_flow *f);

struct conf;

/** leat_flow_start_aside - server_start() on a thread of its own, whose credentials and capabilities it changes
 * Those of the test's thread stay as they were when it opened its device: the kernel refuses others (verbs.c).
 */
int leat_flow_start_aside(const struct conf *conf, struct server **ret);

/** leat_flow_start, leat_flow_stop - the server alone; a port once given is kept */
void leat_flow_start(struct leat_flow *f);
void leat_flow_stop(struct leat_flow *f);

/** leat_flow_mount - mount "@base?@options" (options may be NULL) */
struct leat *leat_flow_mount(const char *base, const char *options);

/** leat_flow_text - leat_describe() in a buffer of the calling thread, until the next call */
const char *leat_flow_text(struct leat *m, enum leat_text what, size_t index);

/** leat_flow_stat - the value of a counter; the test fails if there is none of that name */
uint64_t leat_flow_stat(struct leat *m, const char *name);

/** leat_flow_remove - rm -r */
void leat_flow_remove(const char *path);

/** leat_flow_fill - @len bytes that depend on @seed and on nothing else */
void leat_flow_fill(void *buf, size_t len, unsigned seed);

#endif
