/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_peer.h - a client over the verbs fabric that sends exactly what the test wants, to a leatd elsewhere
 *
 * What tests/lib/raw_peer.h is over the local fabric; here the server is another process, and every
 * wait has a deadline and looks at what it waits for. A peer is a connection with a protection domain
 * of its own; the calls it makes are encoded here, byte for byte.
 */
#ifndef VERBS_PEER_H
#define VERBS_PEER_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/wire.h"
#include "hdr.h"
#include "rpc_msg.h"
#include "verbs.h"

#define MSG_BYTES 4096u
#define RECVS 64u
#define SENDS 512u
#define DATA_BYTES (2u << 20)
#define PATIENCE (100 * NS_PER_S)

static struct rr_fabric *fabric;
static const char *server, *doing = "?";

struct peer_opts {
	unsigned recvs;      /* posted; 0: RECVS, PEER_DEAF: none */
	bool no_priv;        /* nothing is said about sizes: 1024 */
	bool half;           /* asks in, and never hears the answer */
};
#define PEER_DEAF (~0u)

struct peer {
	struct rr_pd *pd;
	struct rr_cq *cq;
	struct rr_cm *cm;
	struct rr_qp *qp;
	struct rr_mr *msgs, *readable, *writable; /* the last two: the same memory */
	uint8_t *mem, *data;
	struct rr_done recv[RECVS], send;
	const struct peer_opts *opts;
	bool asked, up, failed, dead;
	unsigned sent, ended, posted;
	unsigned got[RECVS], got_len[RECVS], ngot, taken;
};

static inline _Noreturn printf_like(1, 2) void die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "verbs_hostile: %s: ", doing);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

#define must(what)                                                                             \
	do {                                                                                   \
		if (!(what))                                                                   \
			die("line %d: not so: %s", __LINE__, #what);                           \
	} while (0)

/* ---- the connection ---- */

static inline void on_recv(struct rr_done *done, const struct rr_wc *wc)
{
	(void)done;
	(void)wc; /* told from sends by address: turn() */
}

static inline void post_recv(struct peer *p, unsigned i)
{
	struct rr_recv r = { .done = &p->recv[i],
			     .sge = { p->mem + i * MSG_BYTES, MSG_BYTES, p->msgs } };

	p->recv[i].fn = on_recv;
	if (rr_post_recv(p->qp, &r) == 0)
		p->posted++;
}

static inline unsigned turn(struct peer *p)
{
	struct rr_wc wc[16];
	int n = rr_cq_poll(p->cq, wc, 16);

	if (!p->opts->half || !p->asked)
		rr_cm_process(p->cm);
	for (int i = 0; i < n; i++) {
		bool is_send = wc[i].done == &p->send;

		p->dead |= wc[i].status != RR_WC_OK;
		if (is_send) {
			p->ended++;
			continue;
		}
		p->posted--;
		if (wc[i].status == RR_WC_OK) {
			unsigned at = p->ngot++ % RECVS;

			p->got[at] = (unsigned)(wc[i].done - p->recv);
			p->got_len[at] = wc[i].byte_len;
		}
	}
	return (unsigned)n;
}

#define until(p, what)                                                                         \
	do {                                                                                   \
		uint64_t give_up_ = clock_now_ns() + PATIENCE;                                 \
		while (!(what)) {                                                              \
			turn(p);                                                               \
			if (clock_now_ns() > give_up_)                                         \
				die("line %d: never: %s", __LINE__, #what);                    \
		}                                                                              \
	} while (0)

static inline void on_cm(void *ctx, const struct rr_cm_event *ev)
{
	const struct rr_priv mine = { .present = true, .send_bytes = MSG_BYTES, .recv_bytes = MSG_BYTES };
	struct rr_conn_param param = { .responder_resources = 16 };
	struct rr_qp_attr attr = { .sq_depth = SENDS, .rq_depth = RECVS, .recv_bytes = MSG_BYTES };
	uint8_t priv[RR_PRIV_BYTES];
	struct peer *p = ctx;

	switch (ev->type) {
	case RR_CM_ROUTED:
		attr.pd = p->pd;
		attr.cq = p->cq;
		must(rr_qp_setup(p->qp, &attr) == 0);
		for (unsigned i = 0; p->opts->recvs != PEER_DEAF && i < RECVS; i++)
			post_recv(p, i);
		rr_priv_encode(&mine, priv);
		param.priv = priv;
		param.priv_len = p->opts->no_priv ? 0 : sizeof(priv);
		must(rr_qp_connect(p->qp, &param) == 0);
		p->asked = true;
		break;
	case RR_CM_ESTABLISHED:
		p->up = true;
		break;
	case RR_CM_FAILED:
		p->failed = true;
		break;
	case RR_CM_REQUEST:
	case RR_CM_REFUSED:
		die("a request, from whom?");
	}
}

static inline struct rr_mr *reg(struct peer *p, void *mem, size_t len, unsigned access)
{
	struct rr_mr_attr attr = { .addr = mem, .len = len, .access = access, .fd = -1 };
	struct rr_mr *mr;

	must(rr_mr_reg(p->pd, &attr, &mr) == 0);
	return mr;
}

/* Memory that is shared out: 0xee where it was not written. */
static inline void peer_open(struct peer *p, const struct peer_opts *opts)
{
	static const struct peer_opts plain;

	memset(p, 0, sizeof(*p));
	p->opts = opts ? opts : &plain;
	must(rr_pd_create(fabric, &p->pd) == 0);
	must(rr_cq_create(fabric, &p->cq) == 0);
	must(rr_cm_create(fabric, on_cm, p, &p->cm) == 0);
	p->mem = calloc(RECVS + 1, MSG_BYTES);
	p->data = p->opts->half ? NULL : aligned_alloc(4096, DATA_BYTES);
	must(p->mem && (p->data || p->opts->half));
	p->msgs = reg(p, p->mem, (RECVS + 1) * MSG_BYTES, RR_ACCESS_LOCAL_WRITE);
	if (p->data) {
		memset(p->data, 0xee, DATA_BYTES);
		p->readable = reg(p, p->data, DATA_BYTES, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_READ);
		p->writable = reg(p, p->data, DATA_BYTES, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE);
	}
	must(rr_qp_dial(p->cm, server, NULL, &p->qp) == 0);
	until(p, p->opts->half ? p->asked : p->up || p->failed);
	must(p->opts->half || p->up);
}

static inline void peer_close(struct peer *p)
{
	rr_qp_disconnect(p->qp);
	until(p, !p->posted && p->ended == p->sent);
	rr_qp_destroy(p->qp);
	rr_mr_dereg(p->msgs);
	rr_mr_dereg(p->readable);
	rr_mr_dereg(p->writable);
	rr_cm_destroy(p->cm);
	rr_cq_destroy(p->cq);
	rr_pd_destroy(p->pd);
	free(p->mem);
	free(p->data);
}

/* Post, and do not wait: false once the connection is gone. */
static inline bool peer_post(struct peer *p, uint8_t *mem, size_t len)
{
	struct rr_wr wr = { .done = &p->send, .op = RR_WR_SEND, .flags = RR_WR_SIGNALED,
			    .sge = { mem, (uint32_t)len, p->msgs } };

	p->send.fn = on_recv;
	if (rr_post_send(p->qp, &wr))
		return false;
	p->sent++;
	return true;
}

static inline void peer_send(struct peer *p, const void *msg, size_t len)
{
	uint8_t *buf = p->mem + RECVS * MSG_BYTES;

	must(len <= MSG_BYTES);
	memcpy(buf, msg, len);
	must(peer_post(p, buf, len));
	until(p, p->ended == p->sent);
}

/* The next message, valid until its buffer is posted again by the call after; it has to come. */
static inline const uint8_t *peer_hear(struct peer *p, uint32_t *ret_len)
{
	unsigned at = p->taken % RECVS;

	if (p->taken)
		post_recv(p, p->got[(p->taken - 1) % RECVS]);
	until(p, p->taken < p->ngot || p->dead);
	if (p->taken == p->ngot)
		die("the connection ended instead of an answer");
	p->taken++;
	*ret_len = p->got_len[at];
	return p->mem + p->got[at] * MSG_BYTES;
}

/* ---- calls ---- */

#define XID 0x5eed0000u

struct said {
	struct rr_hdr hdr;
	uint8_t rpc[2048], raw[MSG_BYTES];
	struct wire_put put;
	size_t raw_len;
	uint32_t xid;
};

static struct said m;
static uint32_t calls;

struct fh {
	uint32_t len;
	uint8_t bytes[64];
};

static struct fh root, file, link_fh, big;

static inline void begin(uint32_t hdr_proc, uint32_t prog, uint32_t proc)
{
	struct rr_rpc_call c = { .rpcvers = 2, .prog = prog, .vers = 3, .proc = proc };
	struct rr_auth_sys sys = { .machine = "hostile", .machine_len = 7 };
	uint8_t cred[64];
	int len = rr_rpc_put_auth_sys(&sys, cred, sizeof(cred));

	must(len > 0);
	m.xid = c.xid = XID + ++calls;
	c.cred = (struct rr_auth){ .flavor = RR_AUTH_SYS, .len = (uint32_t)len, .body = cred };
	rr_hdr_init(&m.hdr, m.xid, 8, hdr_proc);
	wire_put_init(&m.put, m.rpc, sizeof(m.rpc));
	rr_rpc_put_call(&m.put, &c);
}

#define NFS 100003u
#define MOUNT 100005u
enum { P_NULL = 0, P_GETATTR = 1, P_LOOKUP = 3, P_READLINK = 5, P_READ = 6, P_WRITE = 7 };

static inline void arg(uint32_t v)
{
	wire_put_u32(&m.put, v);
}

static inline void arg_bytes(const void *p, uint32_t len)
{
	static const uint8_t pad[4];

	wire_put_u32(&m.put, len);
	wire_put_bytes(&m.put, p, len);
	wire_put_bytes(&m.put, pad, (4 - len % 4) % 4);
}

static inline uint32_t at(void)
{
	return (uint32_t)wire_put_len(&m.put);
}

static inline void finish(void)
{
	must(wire_put_ok(&m.put));
	must(rr_hdr_encode(&m.hdr, m.raw, sizeof(m.raw), &m.raw_len) == 0);
	if (m.hdr.proc == RR_MSG) {
		must(m.raw_len + at() <= sizeof(m.raw));
		memcpy(m.raw + m.raw_len, m.rpc, at());
		m.raw_len += at();
	}
}

static inline void say(struct peer *p)
{
	finish();
	peer_send(p, m.raw, m.raw_len);
}

static inline struct rr_segment seg(const struct rr_mr *mr, size_t off, size_t len)
{
	return (struct rr_segment){ .handle = mr->rkey, .length = (uint32_t)len,
				    .offset = (uint64_t)(uintptr_t)mr->addr + off };
}

static inline void offer_read(uint32_t position, struct rr_segment s)
{
	m.hdr.reads[m.hdr.nreads++] = (struct rr_read_seg){ position, s };
}

static inline void offer_write(struct rr_segment s)
{
	m.hdr.nwrites = 1;
	m.hdr.writes[0].nsegs = 1;
	m.hdr.writes[0].segs[0] = s;
}

static inline void offer_reply(struct rr_segment s)
{
	m.hdr.has_reply = true;
	m.hdr.reply.nsegs = 1;
	m.hdr.reply.segs[0] = s;
}

static inline void read_call(const struct fh *fh, uint64_t off, uint32_t count)
{
	begin(RR_MSG, NFS, P_READ);
	arg_bytes(fh->bytes, fh->len);
	wire_put_u64(&m.put, off);
	arg(count);
}

/* WRITE up to its data. Return: the position of the data. */
static inline uint32_t write_call(uint32_t hdr_proc, const struct fh *fh, uint64_t off, uint32_t count)
{
	begin(hdr_proc, NFS, P_WRITE);
	arg_bytes(fh->bytes, fh->len);
	wire_put_u64(&m.put, off);
	arg(count);
	arg(0); /* UNSTABLE */
	arg(count);
	return at();
}

/* ---- answers ---- */

static struct rr_hdr heard;
static const uint8_t *body;
static uint32_t body_len, heard_len;

/* A well-formed message that answers the last call. */
static inline void hear(struct peer *p)
{
	const uint8_t *got = peer_hear(p, &heard_len);
	size_t hdr_len;

	must(rr_hdr_decode(got, heard_len, &heard, &hdr_len) == 0);
	must(heard.xid == m.xid);
	must(heard.credits > 0);
	body = got + hdr_len;
	body_len = heard_len - (uint32_t)hdr_len;
}

/* Word @i of the results, which follow 24 bytes of RPC header */
static inline uint32_t result(unsigned i)
{
	must(body_len >= 24 + 4 * (i + 1));
	return get_be32(body + 24 + 4 * i);
}

static inline void hear_accepted(struct peer *p, uint32_t stat)
{
	hear(p);
	must(heard.proc == RR_MSG && body_len >= 24);
	must(get_be32(body) == m.xid && get_be32(body + 4) == RR_RPC_REPLY);
	must(get_be32(body + 8) == RR_ACCEPTED && get_be32(body + 20) == stat);
}

/* The answer byte for byte: 20 bytes, of which only the grant is the server's choice. */
static inline void hear_err_chunk(struct peer *p)
{
	const uint8_t *got = peer_hear(p, &heard_len);

	must(heard_len == RR_ERR_CHUNK_BYTES);
	must(get_be32(got) == m.xid && get_be32(got + 4) == 1 && get_be32(got + 8) > 0);
	must(get_be32(got + 12) == RR_ERROR && get_be32(got + 16) == RR_ERR_CHUNK);
}

static inline void still_serves(struct peer *p)
{
	begin(RR_MSG, NFS, P_NULL);
	say(p);
	hear_accepted(p, RR_SUCCESS); /* and nothing else came before it: hear() wants its XID */
	must(heard_len == 52);
}

static inline void take_fh(struct fh *fh)
{
	must(result(0) == 0);
	fh->len = result(1);
	must(fh->len <= sizeof(fh->bytes) && body_len >= 32 + fh->len);
	memcpy(fh->bytes, body + 32, fh->len);
}

static inline void look_up(struct peer *p, const char *name, struct fh *ret)
{
	begin(RR_MSG, NFS, P_LOOKUP);
	arg_bytes(root.bytes, root.len);
	arg_bytes(name, (uint32_t)strlen(name));
	say(p);
	hear_accepted(p, RR_SUCCESS);
	take_fh(ret);
}

static inline void mount_it(struct peer *p, const char *export)
{
	begin(RR_MSG, MOUNT, 1);
	arg_bytes(export, (uint32_t)strlen(export));
	say(p);
	hear_accepted(p, RR_SUCCESS);
	take_fh(&root);
}

#endif
