/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * hostile.c - a server that answers as a script says
 *
 * Operation:  See hostile.h.
 * Memory:     One message each way; up to TCP_CONNS connections, and one of the local fabric.
 * Threads:    One while a script runs; it owns everything here then.
 * Errors:     What the harness itself needs and does not get: abort().
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/wire.h"
#include "chunk.h"
#include "hdr.h"
#include "hostile.h"
#include "local.h"
#include "nfs3.h"

#define MSG_BYTES 4096u
#define RECORD_MAX 65536u
#define RECVS 32u
#define TCP_CONNS 4
#define MARK_LAST 0x80000000u
#define ANSWER_BYTES 8192u
#define XID_WORD 0xf1d0f1d0u

struct tcp_conn {
	int fd; /* -1: none */
	uint8_t in[RECORD_MAX];
	size_t len;
};

static struct {
	/* for good */
	struct rr_fabric *fabric;
	char path[108];
	uint8_t *mem; /* receive buffers, a send buffer, data of two messages' length */
	int listen_fd, stop_fd;
	unsigned port;

	/* while a script runs */
	pthread_t thread;
	struct wire_get script;
	struct rr_pd *pd;
	struct rr_cq *cq;
	struct rr_cm *cm;
	struct rr_listener *listener;
	struct rr_mr *mr;
	struct rr_qp *qp;
	struct rr_done recv_done[RECVS], op_done;
	unsigned posted;
	unsigned char heard[RECVS]; /* receives whose message waits to be answered; first to last */
	uint32_t heard_len[RECVS];
	unsigned nheard;
	bool op_ended;
	struct tcp_conn tcp[TCP_CONNS];
} h;

/* A call that was heard, and where its answer goes. */
struct call {
	struct tcp_conn *tcp; /* NULL: the local fabric */
	struct rr_hdr hdr;
	uint32_t xid, prog, proc;
	const uint8_t *args;
	size_t args_len;
};

static void must(bool promise)
{
	if (!promise)
		abort();
}

/* What has to come inline, with what is around it. */
static uint32_t inline_room(const struct call *c)
{
	return c->tcp || c->hdr.nwrites ? ANSWER_BYTES : MSG_BYTES / 2;
}

/* ---- sending ------------------------------------------------------------------------------ */

static uint8_t *slot(unsigned i)
{
	return h.mem + (size_t)i * MSG_BYTES;
}

static void poll_cq(void);

static void post(enum rr_wr_op op, size_t len, uint64_t raddr, uint32_t rkey)
{
	struct rr_wr wr = { .done = &h.op_done, .op = op, .flags = RR_WR_SIGNALED, .raddr = raddr, .rkey = rkey,
			    .sge = { slot(RECVS + (op == RR_WR_WRITE)), (uint32_t)len, h.mr } };

	h.op_ended = false;
	if (rr_post_send(h.qp, &wr))
		return;
	/* what does not end by itself does when the script's end takes the connection down */
	for (unsigned i = 0; !h.op_ended && i < 100000; i++)
		poll_cq();
}

static void hang_up(const struct call *c)
{
	if (!c->tcp) {
		if (h.qp)
			rr_qp_disconnect(h.qp);
	} else if (c->tcp->fd >= 0) {
		close(c->tcp->fd);
		c->tcp->fd = -1;
		c->tcp->len = 0;
	}
}

static void send_bytes(const struct call *c, const uint8_t *msg, size_t len)
{
	if (c->tcp) {
		if (c->tcp->fd >= 0 && len)
			(void)!send(c->tcp->fd, msg, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		return;
	}
	if (!h.qp || len > MSG_BYTES)
		return;
	memcpy(slot(RECVS), msg, len);
	post(RR_WR_SEND, len, 0, 0);
}

static void send_message(const struct call *c, const uint8_t *msg, size_t len)
{
	static uint8_t record[4 + ANSWER_BYTES];

	if (!c->tcp) {
		send_bytes(c, msg, len);
		return;
	}
	put_be32(record, MARK_LAST | (uint32_t)len);
	memcpy(record + 4, msg, len);
	send_bytes(c, record, 4 + len); /* in one piece: two would wait for each other's ACK */
}

/* The transport header of an answer that comes inline; a chunk's share of it has been written. */
static size_t put_header(const struct call *c, size_t placed, uint8_t *msg)
{
	static struct rr_hdr reply;
	size_t len = 0;

	if (c->tcp)
		return 0;
	rr_hdr_init(&reply, c->xid, RECVS / 2, RR_MSG);
	reply.nwrites = c->hdr.nwrites;
	for (uint32_t i = 0; i < reply.nwrites; i++)
		rr_chunk_return(&c->hdr.writes[i], i ? 0 : placed, &reply.writes[i]);
	reply.has_reply = c->hdr.has_reply;
	if (reply.has_reply)
		rr_chunk_return(&c->hdr.reply, 0, &reply.reply);
	must(!rr_hdr_encode(&reply, msg, MSG_BYTES, &len));
	return len;
}

static size_t put_accepted(const struct call *c, uint32_t stat, uint8_t *msg)
{
	struct wire_put w;

	wire_put_init(&w, msg, 24);
	wire_put_u32(&w, c->xid);
	wire_put_u32(&w, 1);
	for (int i = 0; i < 3; i++)
		wire_put_u32(&w, 0);
	wire_put_u32(&w, stat);
	return 24;
}

static size_t put_right_answer(const struct call *c, uint8_t msg[ANSWER_BYTES])
{
	static uint8_t body[ANSWER_BYTES - 512];
	const char *data = NULL;
	const struct hostile_call nfs = { c->prog, c->proc, c->args, c->args_len, inline_room(c) };
	const struct rr_chunk *chunk = !c->tcp && c->hdr.nwrites ? &c->hdr.writes[0] : NULL;
	size_t len, n = 0, placed = 0;
	struct wire_put w;

	wire_put_init(&w, body, sizeof(body));
	hostile_results(&w, &nfs, &data);
	must(wire_put_ok(&w));
	if (data)
		n = get_be32(body + wire_put_len(&w) - 4);
	if (n && chunk && chunk->nsegs && chunk->segs[0].length >= n) {
		memcpy(slot(RECVS + 1), data, n);
		post(RR_WR_WRITE, n, chunk->segs[0].offset, chunk->segs[0].handle);
		placed = n;
	} else if (n) {
		wire_put_bytes(&w, data, n);
		wire_put_bytes(&w, "\0\0\0", round_up4(n) - n);
	}
	len = put_header(c, placed, msg);
	len += put_accepted(c, 0, msg + len);
	must(wire_put_ok(&w) && len + wire_put_len(&w) <= ANSWER_BYTES);
	memcpy(msg + len, body, wire_put_len(&w));
	return len + wire_put_len(&w);
}

static void refuse(const struct call *c)
{
	uint8_t msg[MSG_BYTES];
	size_t len = put_header(c, 0, msg);

	len += put_accepted(c, 5, msg + len); /* SYSTEM_ERR */
	send_message(c, msg, len);
}

/* ---- the script --------------------------------------------------------------------------- */

static uint8_t next_byte(void)
{
	const uint8_t *b = wire_get_bytes(&h.script, 1);

	return b ? *b : 0;
}

/* With XID_WORD become the XID of @c. */
static size_t next_words(const struct call *c, uint8_t *to, size_t room)
{
	size_t len = (size_t)next_byte() * 4;
	const uint8_t *from;

	len = MIN(len, room);
	len = MIN(len, wire_get_left(&h.script));
	from = wire_get_bytes(&h.script, len);
	if (!from)
		return 0;
	memcpy(to, from, len);
	for (size_t i = 0; i + 4 <= len; i += 4)
		if (get_be32(to + i) == XID_WORD)
			put_be32(to + i, c->xid);
	return len;
}

/* "Not now" would have the client wait; there is nothing to be learnt from that. */
static void no_jukebox(uint8_t *msg, size_t len, size_t at)
{
	if (len >= at + 4 && get_be32(msg + at) == NFS3ERR_JUKEBOX)
		put_be32(msg + at, NFS3ERR_SERVERFAULT);
}

/* The right answer the long way: in a Reply chunk, or in fragments of @bytes. */
static void send_long(const struct call *c, size_t bytes)
{
	static uint8_t msg[ANSWER_BYTES], part[4 + ANSWER_BYTES];
	static struct rr_hdr reply;
	size_t len = put_right_answer(c, msg), hdr = 0, n;

	if (c->tcp) {
		for (size_t at = 0; at < len; at += n) {
			n = MIN(len - at, bytes);
			put_be32(part, (uint32_t)n | (at + n == len ? MARK_LAST : 0));
			memcpy(part + 4, msg + at, n);
			send_bytes(c, part, 4 + n);
		}
		return;
	}
	must(!rr_hdr_decode(msg, len, &reply, &hdr));
	n = len - hdr;
	if (!c->hdr.has_reply || c->hdr.reply.segs[0].length < n) {
		send_message(c, msg, len);
		return;
	}
	memcpy(slot(RECVS + 1), msg + hdr, n);
	post(RR_WR_WRITE, n, c->hdr.reply.segs[0].offset, c->hdr.reply.segs[0].handle);
	reply.proc = RR_NOMSG;
	rr_chunk_return(&c->hdr.reply, n, &reply.reply);
	must(!rr_hdr_encode(&reply, part, sizeof(part), &len));
	send_message(c, part, len);
}

static void answer(const struct call *c)
{
	uint8_t msg[ANSWER_BYTES];
	size_t len = 0, hdr = c->tcp ? 0 : put_header(c, 0, msg), at;
	uint8_t step = next_byte() % 9, word[4];
	const uint8_t *with;

	if (!wire_get_ok(&h.script)) {
		refuse(c);
		return;
	}
	switch (step) {
	case 1:
		len = put_right_answer(c, msg);
		at = (size_t)next_byte() * 4;
		with = wire_get_bytes(&h.script, sizeof(word));
		if (with && at + sizeof(word) <= len)
			memcpy(msg + at, with, sizeof(word));
		break;
	case 2:
		len = hdr + put_accepted(c, 0, msg + hdr);
		len += next_words(c, msg + len, MSG_BYTES - len);
		break;
	case 3:
		put_be32(msg, c->xid);
		len = 4 + next_words(c, msg + 4, MSG_BYTES - 4);
		break;
	case 4:
		hang_up(c);
		return;
	case 5:
		len = put_right_answer(c, msg);
		at = (size_t)next_byte() * 4;
		len = MIN(len, at);
		break;
	case 6:
		len = next_words(c, msg, MSG_BYTES);
		send_bytes(c, msg, len);
		hang_up(c);
		return;
	case 7:
		len = put_header(c, 0, msg);
		len += put_accepted(c, 0, msg + len);
		put_be32(msg, c->xid + 77);
		send_message(c, msg, len);
		len = put_right_answer(c, msg);
		break;
	case 8:
		send_long(c, 4 * (1 + (size_t)next_byte()));
		return;
	default:
		len = put_right_answer(c, msg);
		break;
	}
	no_jukebox(msg, len, hdr + 24);
	send_message(c, msg, len);
	if (step)
		refuse(c);
}

/* ---- hearing ------------------------------------------------------------------------------ */

static void hear(struct call *c, const uint8_t *msg, size_t len)
{
	struct wire_get g;
	uint32_t n;

	wire_get_init(&g, msg, len);
	c->xid = wire_get_u32(&g);
	(void)wire_get_u64(&g); /* CALL, version */
	c->prog = wire_get_u32(&g);
	(void)wire_get_u32(&g);
	c->proc = wire_get_u32(&g);
	for (int i = 0; i < 2; i++) {
		(void)wire_get_u32(&g);
		n = wire_get_u32(&g);
		(void)wire_get_bytes(&g, round_up4(n));
	}
	must(wire_get_ok(&g)); /* our own client's */
	c->args_len = wire_get_left(&g);
	c->args = wire_get_bytes(&g, c->args_len);
	answer(c);
}

static void hear_local(const uint8_t *msg, size_t len)
{
	static struct call c;
	size_t hdr;

	must(!rr_hdr_decode(msg, len, &c.hdr, &hdr));
	if (c.hdr.proc == RR_MSG)
		hear(&c, msg + hdr, len - hdr);
	else
		hang_up(&c); /* too long to come inline */
}

static void hear_tcp(struct tcp_conn *t)
{
	static struct call c;
	ssize_t n = recv(t->fd, t->in + t->len, sizeof(t->in) - t->len, MSG_DONTWAIT);

	c.tcp = t;
	if (n <= 0) {
		hang_up(&c);
		return;
	}
	t->len += (size_t)n;
	while (t->fd >= 0 && t->len >= 4) {
		static uint8_t record[RECORD_MAX];
		size_t len = get_be32(t->in) & ~MARK_LAST;

		must(len <= sizeof(t->in) - 4);
		if (t->len < 4 + len)
			return;
		memcpy(record, t->in + 4, len);
		t->len -= 4 + len;
		memmove(t->in, t->in + 4 + len, t->len);
		hear(&c, record, len);
	}
}

static void post_recv(unsigned i)
{
	struct rr_recv r = { .done = &h.recv_done[i], .sge = { slot(i), MSG_BYTES, h.mr } };

	if (!rr_post_recv(h.qp, &r))
		h.posted++;
}

static void poll_cq(void)
{
	struct rr_wc wc;

	while (rr_cq_poll(h.cq, &wc, 1) == 1) {
		if (wc.done == &h.op_done) {
			h.op_ended = true;
			continue;
		}
		h.posted--;
		if (wc.status != RR_WC_OK)
			continue;
		h.heard[h.nheard] = (unsigned char)(wc.done - h.recv_done);
		h.heard_len[h.nheard++] = wc.byte_len;
	}
}

/* Answering polls, too, so what is heard meanwhile queues up. */
static void hear_all(void)
{
	static uint8_t msg[MSG_BYTES];

	while (h.nheard) {
		unsigned i = h.heard[0], len = h.heard_len[0];

		h.nheard--;
		memmove(h.heard, h.heard + 1, h.nheard * sizeof(h.heard[0]));
		memmove(h.heard_len, h.heard_len + 1, h.nheard * sizeof(h.heard_len[0]));
		memcpy(msg, slot(i), len);
		post_recv(i);
		hear_local(msg, len);
	}
}

static void drop_qp(void)
{
	if (!h.qp)
		return;
	rr_qp_disconnect(h.qp);
	while (h.posted)
		poll_cq();
	h.nheard = 0;
	rr_qp_destroy(h.qp);
	h.qp = NULL;
}

static void on_cm(void *ctx, const struct rr_cm_event *ev)
{
	static const struct rr_priv mine = { true, false, MSG_BYTES, MSG_BYTES };
	struct rr_qp_attr qa = { .pd = h.pd, .cq = h.cq, .sq_depth = 16, .rq_depth = RECVS,
				 .recv_bytes = MSG_BYTES };
	struct rr_conn_param param = { .initiator_depth = ev->initiator_depth };
	uint8_t priv[RR_PRIV_BYTES];

	(void)ctx;
	if (ev->type != RR_CM_REQUEST)
		return;
	drop_qp();
	h.qp = ev->qp;
	must(!rr_qp_setup(h.qp, &qa));
	for (unsigned i = 0; i < RECVS; i++)
		post_recv(i);
	rr_priv_encode(&mine, priv);
	param.priv = priv;
	param.priv_len = sizeof(priv);
	if (rr_qp_accept(h.qp, &param))
		rr_qp_disconnect(h.qp); /* gone already */
}

static void accept_tcp(void)
{
	int fd = accept4(h.listen_fd, NULL, NULL, SOCK_CLOEXEC);

	for (int i = 0; fd >= 0 && i < TCP_CONNS; i++) {
		if (h.tcp[i].fd < 0) {
			h.tcp[i].fd = fd;
			h.tcp[i].len = 0;
			return;
		}
	}
	if (fd >= 0)
		close(fd);
}

static void *serve(void *arg)
{
	(void)arg;
	for (;;) {
		struct pollfd fds[4 + TCP_CONNS] = {
			{ h.stop_fd, POLLIN, 0 },
			{ h.listen_fd, POLLIN, 0 },
			{ h.cm->fd, POLLIN, 0 },
			{ h.cq->fd, POLLIN, 0 },
		};

		for (int i = 0; i < TCP_CONNS; i++)
			fds[4 + i] = (struct pollfd){ h.tcp[i].fd, POLLIN, 0 };
		poll_cq();
		hear_all();
		(void)poll(fds, ARRAY_SIZE(fds), rr_cq_arm(h.cq) ? 0 : -1);
		if (fds[0].revents)
			return NULL;
		if (fds[1].revents)
			accept_tcp();
		if (fds[2].revents)
			rr_cm_process(h.cm);
		for (int i = 0; i < TCP_CONNS; i++)
			if (fds[4 + i].revents && h.tcp[i].fd >= 0)
				hear_tcp(&h.tcp[i]);
	}
}

/* ---- life --------------------------------------------------------------------------------- */

static void on_done(struct rr_done *done, const struct rr_wc *wc)
{
	/* poll_cq() goes by their addresses */
	(void)done;
	(void)wc;
}

void hostile_init(const char *path)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);

	must(strlen(path) < sizeof(h.path));
	strcpy(h.path, path);
	h.mem = calloc(RECVS + 3, MSG_BYTES);
	h.stop_fd = eventfd(0, EFD_CLOEXEC);
	h.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(h.mem && h.stop_fd >= 0 && h.listen_fd >= 0);
	must(!bind(h.listen_fd, (struct sockaddr *)&sin, sizeof(sin)) && !listen(h.listen_fd, 16) &&
	     !getsockname(h.listen_fd, (struct sockaddr *)&sin, &len));
	h.port = ntohs(sin.sin_port);
	must(!rr_local_open(NULL, &h.fabric));
	for (unsigned i = 0; i < RECVS; i++)
		h.recv_done[i].fn = on_done;
	h.op_done.fn = on_done;
	for (int i = 0; i < TCP_CONNS; i++)
		h.tcp[i].fd = -1;
}

unsigned hostile_port(void)
{
	return h.port;
}

void hostile_start(const uint8_t *script, size_t len)
{
	struct rr_mr_attr ma = { .addr = h.mem, .len = (RECVS + 3) * (size_t)MSG_BYTES,
				 .access = RR_ACCESS_LOCAL_WRITE, .fd = -1 };

	wire_get_init(&h.script, script, len);
	must(!rr_pd_create(h.fabric, &h.pd) && !rr_cq_create(h.fabric, &h.cq) &&
	     !rr_cm_create(h.fabric, on_cm, NULL, &h.cm) && !rr_mr_reg(h.pd, &ma, &h.mr) &&
	     !rr_listen(h.cm, h.path, NULL, &h.listener));
	must(!pthread_create(&h.thread, NULL, serve, NULL));
}

void hostile_stop(void)
{
	uint64_t one = 1;

	must(write(h.stop_fd, &one, sizeof(one)) == sizeof(one));
	must(!pthread_join(h.thread, NULL));
	must(read(h.stop_fd, &one, sizeof(one)) == sizeof(one));
	for (int i = 0; i < TCP_CONNS; i++) {
		if (h.tcp[i].fd >= 0)
			close(h.tcp[i].fd);
		h.tcp[i].fd = -1;
	}
	drop_qp();
	rr_unlisten(h.listener);
	rr_mr_dereg(h.mr);
	rr_cm_destroy(h.cm);
	rr_cq_destroy(h.cq);
	rr_pd_destroy(h.pd);
}

void hostile_fini(void)
{
	rr_fabric_close(h.fabric);
	close(h.listen_fd);
	close(h.stop_fd);
	free(h.mem);
}
