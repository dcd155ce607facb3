/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_server.c - libFuzzer harness: a whole leatd, and peers that say whatever the input says
 *
 * Operation:  A leatd runs in this process, on a directory of its own, with one listener on the local
 *             fabric. The input is a script for up to four connections:
 *
 *               0 c         (re)connect c                     2 c len bytes   Send these bytes
 *               1 c         disconnect c                      3 c             wait for its answers
 *               4 c len at n bytes   Send, with the handle and offset of region n put at `at`
 *
 *             so that chunk lists may point at memory that exists. At the end of each script a
 *             well-behaved peer makes a NULL call and must be answered: nobody's nonsense is another
 *             one's trouble.
 * Memory:     Each connection offers two regions, one to be read and one to be written.
 * Threads:    leatd has its own; waiting here is polling until an answer or the end of the
 *             connection.
 * Errors:     abort() if the last peer is not served.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/wire.h"
#include "rpcrdma/hdr.h"
#include "rpcrdma/local.h"
#include "server.h"

#define CONNS 4
#define MSG_BYTES 4096u
#define RECVS 16u
#define REGION_BYTES 65536u
#define PATIENCE_NS (10 * NS_PER_S)

LOG_DEFINE("fuzz");

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

struct peer {
	struct rr_pd *pd;
	struct rr_cq *cq;
	struct rr_cm *cm;
	struct rr_qp *qp;
	struct rr_mr *mr, *region[2];
	uint8_t *mem;            /* receive buffers, a send buffer, two regions */
	struct rr_done recv_done[RECVS], send_done;
	unsigned posted, answers;
	bool routed, up, over, sent;
};

static struct rr_fabric *fabric;
static char sock[128];
static struct peer peers[CONNS + 1];

static void must(bool promise)
{
	if (!promise)
		abort();
}

static void on_recv(struct rr_done *done, const struct rr_wc *wc)
{
	(void)done;
	(void)wc;
}

static void post_recv(struct peer *p, unsigned i)
{
	struct rr_recv r = { .done = &p->recv_done[i],
			     .sge = { p->mem + i * MSG_BYTES, MSG_BYTES, p->mr } };

	p->recv_done[i].fn = on_recv;
	if (!rr_post_recv(p->qp, &r))
		p->posted++;
}

static void poll_peer(struct peer *p)
{
	struct rr_wc wc[8];
	int n;

	rr_cm_process(p->cm);
	n = rr_cq_poll(p->cq, wc, 8);
	for (int i = 0; i < n; i++) {
		if (wc[i].done == &p->send_done) {
			p->sent = true;
			p->over |= wc[i].status != RR_WC_OK;
			continue;
		}
		p->posted--;
		if (wc[i].status != RR_WC_OK) {
			p->over = true;
			continue;
		}
		p->answers++;
		post_recv(p, (unsigned)(wc[i].done - p->recv_done));
	}
	if (!n)
		sched_yield();
}

#define wait_for(p, cond)                                                                      \
	for (uint64_t until_ = clock_now_ns() + PATIENCE_NS;                                   \
	     !(cond) && clock_now_ns() < until_;)                                              \
	poll_peer(p)

static void on_cm(void *ctx, const struct rr_cm_event *ev)
{
	struct peer *p = ctx;

	p->routed |= ev->type == RR_CM_ROUTED;
	p->up |= ev->type == RR_CM_ESTABLISHED;
	p->over |= ev->type == RR_CM_FAILED;
}

static void hang_up(struct peer *p)
{
	if (!p->cm)
		return;
	if (p->qp) {
		rr_qp_disconnect(p->qp);
		if (p->up)
			wait_for(p, !p->posted);
		rr_qp_destroy(p->qp);
	}
	for (int i = 0; i < 2; i++)
		rr_mr_dereg(p->region[i]);
	rr_mr_dereg(p->mr);
	rr_cm_destroy(p->cm);
	rr_cq_destroy(p->cq);
	rr_pd_destroy(p->pd);
	free(p->mem);
	memset(p, 0, sizeof(*p));
}

static void reg(struct peer *p, size_t off, size_t len, unsigned access, struct rr_mr **ret)
{
	struct rr_mr_attr a = { .addr = p->mem + off, .len = len, .access = access, .fd = -1 };

	must(!rr_mr_reg(p->pd, &a, ret));
}

static void dial(struct peer *p)
{
	static const struct rr_priv mine = { true, true, MSG_BYTES, MSG_BYTES };
	struct rr_qp_attr qa = { .sq_depth = 16, .rq_depth = RECVS, .sge_max = 1,
				 .recv_bytes = MSG_BYTES };
	struct rr_conn_param cp = { .responder_resources = 4 };
	size_t msgs = (RECVS + 1) * (size_t)MSG_BYTES;
	uint8_t priv[RR_PRIV_BYTES];

	hang_up(p);
	p->mem = calloc(1, msgs + 2 * REGION_BYTES);
	must(p->mem && !rr_pd_create(fabric, &p->pd) && !rr_cq_create(fabric, 256, &p->cq) &&
	     !rr_cm_create(fabric, on_cm, p, &p->cm));
	reg(p, 0, msgs, RR_ACCESS_LOCAL_WRITE, &p->mr);
	reg(p, msgs, REGION_BYTES, RR_ACCESS_REMOTE_READ, &p->region[0]);
	reg(p, msgs + REGION_BYTES, REGION_BYTES, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE,
	    &p->region[1]);
	if (rr_qp_dial(p->cm, sock, &p->qp)) {
		p->over = true;
		return;
	}
	wait_for(p, p->routed || p->over);
	qa.pd = p->pd;
	qa.cq = p->cq;
	if (p->over || rr_qp_setup(p->qp, &qa)) {
		p->over = true;
		return;
	}
	for (unsigned i = 0; i < RECVS; i++)
		post_recv(p, i);
	rr_priv_encode(&mine, priv);
	cp.priv = priv;
	cp.priv_len = sizeof(priv);
	p->over |= rr_qp_connect(p->qp, &cp) != 0;
	wait_for(p, p->up || p->over);
}

static void say(struct peer *p, const uint8_t *msg, size_t len)
{
	struct rr_sge sge = { .len = (uint32_t)len, .mr = p->mr };
	struct rr_wr wr = { .done = &p->send_done, .op = RR_WR_SEND, .flags = RR_WR_SIGNALED,
			    .sge = &sge, .nsge = 1 };

	if (!p->up || p->over || len > MSG_BYTES)
		return;
	sge.addr = p->mem + RECVS * (size_t)MSG_BYTES;
	memcpy(sge.addr, msg, len);
	p->sent = false;
	if (rr_post_send(p->qp, &wr))
		return;
	wait_for(p, p->sent || p->over);
}

/* A NULL call of NFS; the answer tells that everything in front of it has been looked at. */
static bool null_call(struct peer *p)
{
	static const uint32_t words[] = { 1, 1, 4, 0, 0, 0, 0, 1, 0, 2, 100003, 3, 0, 0, 0, 0, 0 };
	uint8_t msg[sizeof(words)];
	unsigned before = p->answers;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		put_be32(msg + 4 * i, words[i]);
	say(p, msg, sizeof(msg));
	if (!p->up || p->over)
		return false;
	wait_for(p, p->answers > before || p->over);
	return p->answers > before;
}

static void say_with_region(struct peer *p, uint8_t *msg, size_t len, size_t at, unsigned n)
{
	const struct rr_mr *mr = p->region[n & 1];

	at = at * 4;
	if (!mr || len < 16 || at > len - 16)
		return;
	put_be32(msg + at, mr->rkey);
	put_be64(msg + at + 8, (uint64_t)(uintptr_t)mr->addr);
	say(p, msg, len);
}

static uint8_t next_byte(struct wire_get *g)
{
	const uint8_t *b = wire_get_bytes(g, 1);

	return b ? *b : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_get g;

	wire_get_init(&g, data, size);
	while (wire_get_left(&g) >= 2) {
		uint8_t op = next_byte(&g) % 5;
		struct peer *p = &peers[next_byte(&g) % CONNS];
		uint8_t msg[MSG_BYTES];
		const uint8_t *bytes;
		uint8_t at = 0, n = 0;
		size_t len;

		switch (op) {
		case 0:
			dial(p);
			continue;
		case 1:
			hang_up(p);
			continue;
		case 3:
			(void)null_call(p);
			continue;
		case 4:
			at = next_byte(&g);
			n = next_byte(&g);
			break;
		}
		len = (size_t)next_byte(&g) * 4;
		len = MIN(len, wire_get_left(&g));
		bytes = wire_get_bytes(&g, len);
		if (!bytes)
			break;
		memcpy(msg, bytes, len);
		if (op == 4)
			say_with_region(p, msg, len, at, n);
		else
			say(p, msg, len);
	}
	for (int i = 0; i < CONNS; i++)
		hang_up(&peers[i]);
	dial(&peers[CONNS]);
	must(null_call(&peers[CONNS]));
	hang_up(&peers[CONNS]);
	return 0;
}

static struct server *server;
static char dir[64];

static void clean_up(void)
{
	char cmd[96];

	rr_fabric_close(fabric);
	if (server_stop(server, 5000))
		_exit(1);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	if (system(cmd))
		_exit(1);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static struct conf conf;
	char why[CONF_WHY_BYTES], spec[160], url[160], path[96];
	char argv0[] = "leatd", exp[] = "--export", listen[] = "--listen", reactors[] = "--reactors=1",
	     workers[] = "--workers=2";
	char *args[] = { argv0, exp, spec, listen, url, reactors, workers, NULL };

	(void)argc;
	(void)argv;
	log_state.level = LOG_LEVEL_ERR;
	snprintf(dir, sizeof(dir), "/tmp/leat-fuzz-XXXXXX");
	must(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/export", dir);
	must(!mkdir(path, 0777));
	snprintf(sock, sizeof(sock), "%s/sock", dir);
	snprintf(spec, sizeof(spec), "/fuzz=%s,no_root_squash", path);
	snprintf(url, sizeof(url), "local://%s", sock);
	conf_init(&conf);
	must(conf_args(&conf, 7, args, why) == CONF_RUN);
	conf.drc_entries = 4; /* not what another input was answered, unless it has just been */
	must(!server_start(&conf, &server));
	conf_fini(&conf);
	must(!rr_local_open(NULL, &fabric));
	atexit(clean_up);
	return 0;
}
