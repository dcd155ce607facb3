/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_server.c - libFuzzer harness: a whole leatd, and peers that say whatever the input says
 *
 * Operation:  A leatd runs in this process, on a directory of its own, and listens on the local fabric
 *             and on TCP. The input is a script for up to four connections:
 *
 *               0 c         (re)connect c, local               2 c len bytes   one message
 *               1 c         disconnect c                       3 c             wait for its answers
 *               4 c at n len bytes           one message, with the key and address of region n put
 *                                            at word `at`
 *               5 c         (re)connect c, TCP                 6 c len bytes   these bytes, no record
 *                                                              7 c n           n KiB more of them
 *
 *             so that chunk lists may point at memory that exists. In a message the word FILE_WORD + n
 *             stands for the handle of file n, so that calls may, too; BLOCK_WORD for that of an
 *             attachment of a block volume, of instance 0; OBJECT_WORD + n for the name of an object of stripes,
 *             HANDLE_WORD + n for a handle of it (+ 4: with the term of a manager), COMMAND_WORD + p for the command of procedure p, signed with the arguments
 *             behind it; MARK_WORD + n in front of
 *             bytes without a record, for the mark of one that has them and n KiB more. A message is
 *             a Send, or a record with its mark. At the end of each script a well-behaved
 *             peer of each kind makes a NULL call and must get a reply: a hostile connection does
 *             not disturb the others.
 * Memory:     Each local connection offers two regions, one to be read and one to be written. What a
 *             script did to the exported directory is undone after it.
 * Threads:    leatd has its own; waiting here is polling until an answer or the end of the
 *             connection.
 * Errors:     abort() if the last peers are not served, or if a connection outlives its peer.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/wire.h"
#include "rpcrdma/wire/hdr.h"
#include "rpcrdma/local/local.h"
#include "reactor.h"
#include "server_int.h"
#include "stripe_handle.h"
#include "stripe_key.h"
#include "volumes.h"

#define CONNS 4
#define MSG_BYTES 4096u
#define RECVS 16u
#define REGION_BYTES 65536u
#define PATIENCE_NS (10 * NS_PER_S)
#define MARK_LAST 0x80000000u
#define FILES 6
#define FILE_WORD 0xf17e0000u
#define MARK_WORD 0xf17f0000u
#define BLOCK_WORD 0xf17d0000u
#define BLOCK_BYTES 32u
#define HANDLE_WORD 0xf17c0000u
#define COMMAND_WORD 0xf17b0000u
#define COMMAND_CHECK 0x17u /* of the manager */
#define OBJECT_WORD 0xf17a0000u
#define OBJECTS 4u
#define KEY_TEXT "volume = 0000000000000001\nkey = 00112233445566778899aabbccddeeff\n"

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
	int status;              /* of a connect that failed */
	uint8_t *answer;         /* the last one; in mem */
	size_t answer_bytes;

	bool tcp, raw;           /* raw: bytes were sent that need not be a record */
	int fd;
	uint8_t mark[4];         /* of the record that is being read */
	size_t mark_len;
	uint32_t record_left;
};

/* A file handle as it travels: length, bytes, pad. */
struct handle {
	uint8_t xdr[68];
	size_t bytes;
};

static struct rr_fabric *fabric;
static struct server *server;
static char dir[64], sock[128], export_path[96], names_path[96], files_path[104];
static struct sockaddr_in tcp_addr;
static struct peer peers[CONNS + 2];
static struct handle handles[FILES]; /* the root, a file, a directory, a link; root and file of a volume */
static bool has_handles, dirty;
static uint8_t block_handle[BLOCK_BYTES];
static bool has_block;
static struct stripe_keys keys;
static uint32_t run; /* objects that a script has removed are not those of the next one */

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
		p->answer = p->mem + (size_t)(wc[i].done - p->recv_done) * MSG_BYTES;
		p->answer_bytes = wc[i].byte_len;
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
	if (ev->type == RR_CM_FAILED)
		p->status = ev->status;
}

static void hang_up(struct peer *p)
{
	if (p->tcp) {
		close(p->fd);
		memset(p, 0, sizeof(*p));
	}
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
	p->status = rr_qp_dial(p->cm, sock, &p->qp);
	if (p->status) {
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
	p->status = rr_qp_connect(p->qp, &cp);
	p->over |= p->status != 0;
	wait_for(p, p->up || p->over);
}

/* ---- TCP ---- */

static void dial_tcp(struct peer *p)
{
	hang_up(p);
	p->tcp = true;
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(p->fd >= 0);
	p->up = !connect(p->fd, (struct sockaddr *)&tcp_addr, sizeof(tcp_addr));
	p->over = !p->up;
}

/* Counts the records that came; what is in them is the server's business. */
static void count_answers(struct peer *p, const uint8_t *at, size_t n)
{
	while (n) {
		size_t step;

		if (!p->record_left) {
			p->mark[p->mark_len++] = *at++;
			n--;
			if (p->mark_len == sizeof(p->mark)) {
				p->record_left = get_be32(p->mark) & ~MARK_LAST;
				p->mark_len = 0;
			}
			continue;
		}
		step = MIN(n, p->record_left);
		p->record_left -= (uint32_t)step;
		p->answers += !p->record_left;
		at += step;
		n -= step;
	}
}

static void poll_tcp(struct peer *p, int timeout_ms)
{
	struct pollfd fd = { .fd = p->fd, .events = POLLIN };
	uint8_t buf[16384];
	ssize_t n;

	if (poll(&fd, 1, timeout_ms) <= 0)
		return;
	n = recv(p->fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (n > 0)
		count_answers(p, buf, (size_t)n);
	else if (!n || errno != EAGAIN)
		p->over = true;
}

/* What cannot be sent for want of a reader is not sent: a server that is not read may wait. */
static void say_tcp(struct peer *p, const uint8_t *msg, size_t len, bool record)
{
	uint8_t out[4 + MSG_BYTES];
	size_t n = record ? 4 : 0;

	if (!p->up || p->over)
		return;
	put_be32(out, MARK_LAST | (uint32_t)len);
	memcpy(out + n, msg, len);
	n += len; /* in one piece: two would wait for each other's ACK */
	if (send(p->fd, out, n, MSG_NOSIGNAL | MSG_DONTWAIT) < (ssize_t)n)
		p->over = true;
	p->raw |= !record;
}

/* ---- messages ---- */

static void say(struct peer *p, const uint8_t *msg, size_t len)
{
	struct rr_sge sge = { .len = (uint32_t)len, .mr = p->mr };
	struct rr_wr wr = { .done = &p->send_done, .op = RR_WR_SEND, .flags = RR_WR_SIGNALED,
			    .sge = &sge, .nsge = 1 };

	if (p->tcp) {
		say_tcp(p, msg, len, true);
		return;
	}
	if (!p->up || p->over || len > MSG_BYTES)
		return;
	sge.addr = p->mem + RECVS * (size_t)MSG_BYTES;
	memcpy(sge.addr, msg, len);
	p->sent = false;
	if (rr_post_send(p->qp, &wr))
		return;
	wait_for(p, p->sent || p->over);
}

/* In front of a message over RDMA: what says that all of it is here. */
static const uint32_t rdma_words[] = { 1, 1, 4, 0, 0, 0, 0 };

static void say_words(struct peer *p, const uint32_t *words, size_t n, const struct handle *fh,
		      const char *name)
{
	uint8_t msg[512];
	struct wire_put w;

	wire_put_init(&w, msg, sizeof(msg));
	for (size_t i = 0; !p->tcp && i < ARRAY_SIZE(rdma_words); i++)
		wire_put_u32(&w, rdma_words[i]);
	for (size_t i = 0; i < n; i++)
		wire_put_u32(&w, words[i]);
	if (fh)
		wire_put_bytes(&w, fh->xdr, fh->bytes);
	if (name) {
		wire_put_u32(&w, (uint32_t)strlen(name));
		wire_put_bytes(&w, name, strlen(name));
		wire_put_bytes(&w, "\0\0\0", round_up4(strlen(name)) - strlen(name));
	}
	must(wire_put_ok(&w));
	say(p, msg, wire_put_len(&w));
}

/* One more than before; the end of a TCP connection where nothing else can be waited for. */
static bool wait_for_answer(struct peer *p, unsigned before)
{
	uint64_t until = clock_now_ns() + PATIENCE_NS;

	if (!p->up || p->over)
		return false;
	if (!p->tcp) {
		wait_for(p, p->answers > before || p->over);
		return p->answers > before;
	}
	if (p->raw)
		(void)shutdown(p->fd, SHUT_WR);
	while (!p->over && (p->raw || p->answers == before) && clock_now_ns() < until)
		poll_tcp(p, 100);
	return p->answers > before;
}

/* A NULL call of NFS; the answer tells that everything in front of it has been looked at. */
static bool null_call(struct peer *p)
{
	static const uint32_t words[] = { 1, 0, 2, 100003, 3, 0, 0, 0, 0, 0 };
	unsigned before = p->answers;

	say_words(p, words, ARRAY_SIZE(words), NULL, NULL);
	return wait_for_answer(p, before);
}

/* ---- files ---- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	if (ftw->level)
		(void)remove(path);
	return 0;
}

static void empty_dir(const char *path)
{
	(void)chmod(path, 0777);
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_files(void)
{
	char path[128];
	int fd;

	empty_dir(export_path);
	empty_dir(files_path);
	snprintf(path, sizeof(path), "%s/f", files_path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	must(fd >= 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/f", export_path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	must(fd >= 0 && write(fd, "sixteen bytes...", 16) == 16);
	close(fd);
	snprintf(path, sizeof(path), "%s/d", export_path);
	must(!mkdir(path, 0777));
	snprintf(path, sizeof(path), "%s/l", export_path);
	must(!symlink("f", path));
	dirty = has_handles = false;
}

/* From the results of MNT and of LOOKUP alike: status, handle. */
static void take_handle(struct peer *p, unsigned before, struct handle *ret)
{
	const size_t head = 4 * ARRAY_SIZE(rdma_words) + 24;
	uint32_t len;

	must(wait_for_answer(p, before) && p->answer_bytes > head + 8);
	must(!get_be32(p->answer + head));
	len = get_be32(p->answer + head + 4);
	ret->bytes = 4 + round_up4(len);
	must(ret->bytes <= sizeof(ret->xdr) && head + 4 + ret->bytes <= p->answer_bytes);
	memcpy(ret->xdr, p->answer + head + 4, ret->bytes);
}

static void get_handles(void)
{
	static const char *const names[FILES] = { "/fuzz", "f", "d", "l", "/fv", "f" };
	static const uint32_t mnt[] = { 1, 0, 2, 100005, 3, 1, 1, 20, 0, 0, 0, 0, 0, 0, 0 };
	static const uint32_t lookup[] = { 1, 0, 2, 100003, 3, 3, 1, 20, 0, 0, 0, 0, 0, 0, 0 };
	struct peer *p = &peers[CONNS];
	struct handle *root = NULL;

	if (has_handles)
		return;
	dial(p);
	for (int i = 0; i < FILES; i++) {
		bool is_root = names[i][0] == '/';
		unsigned before = p->answers;

		say_words(p, is_root ? mnt : lookup, ARRAY_SIZE(mnt), is_root ? NULL : root, names[i]);
		take_handle(p, before, &handles[i]);
		if (is_root)
			root = &handles[i];
	}
	hang_up(p);
	has_handles = true;
}

/* Attaches the volume with take-over, and keeps its handle. */
static void get_block(void)
{
	static uint32_t holder;
	const size_t head = 4 * ARRAY_SIZE(rdma_words) + 24;
	const uint32_t words[] = { 1, 0, 2, 0x20c5f003, 1, 3, 1, 20, 0, 0, 0, 0, 0, 0, 0, /* ATTACH */
				   3, 0x766f6c00, 4, 0x61616161 + (++holder & 0x0f0f0f0f), 0, 0, /* "vol", a holder */
				   2, 0, 0, 31, 1 }; /* to take over; the lane */
	struct peer *p = &peers[CONNS];
	unsigned before;

	if (has_block)
		return;
	dial(p);
	before = p->answers;
	say_words(p, words, ARRAY_SIZE(words), NULL, NULL);
	must(wait_for_answer(p, before) && p->answer_bytes >= head + 4 + BLOCK_BYTES && !get_be32(p->answer + head));
	memcpy(block_handle, p->answer + head + 4, BLOCK_BYTES);
	hang_up(p);
	has_block = true;
}

/* ---- scripts ---- */

static void put_region(struct peer *p, uint8_t *msg, size_t len, size_t at, unsigned n)
{
	const struct rr_mr *mr = p->region[n & 1];

	at = at * 4;
	if (!mr || len < 16 || at > len - 16)
		return;
	put_be32(msg + at, mr->rkey);
	put_be64(msg + at + 8, (uint64_t)(uintptr_t)mr->addr);
}

static stripe_name object_of(uint32_t n)
{
	stripe_name name = { .stripe = 0 };

	put_be32(name.object, run);
	put_be32(name.object + 4, n);
	return name;
}

/* What stands for @word. Return: its bytes; 0: nothing */
static size_t put_stripe_word(uint8_t *to, size_t room, uint32_t word)
{
	struct stripe_handle h = { .volume = 1, .server = 1, .rights = STRIPE_MAY_READ | STRIPE_MAY_WRITE, .epoch = 1,
				   .expiry = UINT32_MAX };

	if (word - OBJECT_WORD < OBJECTS && room >= STRIPE_OBJECT_BYTES) {
		memcpy(to, object_of(word - OBJECT_WORD).object, STRIPE_OBJECT_BYTES);
		return STRIPE_OBJECT_BYTES;
	}
	if (word - HANDLE_WORD < 2 * OBJECTS && room >= STRIPE_HANDLE_BYTES) {
		h.name = object_of((word - HANDLE_WORD) % OBJECTS);
		h.term = (word - HANDLE_WORD) / OBJECTS;
		stripe_handle_make(&keys, &h, (char *)to);
		return STRIPE_HANDLE_BYTES;
	}
	if (word - COMMAND_WORD <= COMMAND_CHECK && room >= STRIPE_COMMAND_BYTES) {
		memset(to, 0, STRIPE_COMMAND_BYTES); /* signed when its arguments are there */
		return STRIPE_COMMAND_BYTES;
	}
	return 0;
}

/* With the arguments of procedure @proc, which are behind it */
static void sign_command(uint8_t *command, uint32_t proc, const uint8_t *args, size_t len)
{
	bool checks = proc == COMMAND_CHECK;
	struct stripe_command c = { .volume = 1, .server = !checks, .term = !checks, .expiry = UINT32_MAX, .number = 1 };
	struct stripe_order o = { .proc = checks ? VOLUMEPROC_CHECK : proc };
	const uint8_t *object;
	struct wire_get g;

	wire_get_init(&g, args, len);
	object = proc == STRIPEPROC_INFO ? NULL : wire_get_bytes(&g, STRIPE_OBJECT_BYTES);
	if (object)
		memcpy(o.name.object, object, STRIPE_OBJECT_BYTES);
	if (object && !checks)
		o.name.stripe = wire_get_u32(&g);
	if (proc == STRIPEPROC_FENCE || proc == STRIPEPROC_REMOVE || proc == STRIPEPROC_SET_ASIDE)
		o.value = wire_get_u64(&g);
	if (proc == STRIPEPROC_FENCE || proc == STRIPEPROC_LIST || checks)
		o.flag = wire_get_u32(&g);
	if (proc == STRIPEPROC_FENCE || proc == STRIPEPROC_SET_ASIDE)
		o.bytes = wire_get_u64(&g);
	stripe_command_make(&keys, &c, &o, (char *)command);
}

/* @src with its words for files replaced; Return: length */
static size_t put_handles(uint8_t *msg, const uint8_t *src, size_t len)
{
	size_t at = 0, command = 0, stripe;
	uint32_t proc = 0;

	for (size_t i = 0; i < len; i += 4) {
		size_t n = MIN(len - i, (size_t)4);
		uint32_t file = n == 4 ? get_be32(src + i) - FILE_WORD : FILES;

		if (n == 4 && get_be32(src + i) == BLOCK_WORD && at + BLOCK_BYTES + (len - i) <= MSG_BYTES) {
			get_block();
			memcpy(msg + at, block_handle, BLOCK_BYTES);
			at += BLOCK_BYTES;
			continue;
		}
		stripe = n == 4 ? put_stripe_word(msg + at, MSG_BYTES - at - (len - i), get_be32(src + i)) : 0;
		if (stripe == STRIPE_COMMAND_BYTES) {
			command = at + stripe;
			proc = get_be32(src + i) - COMMAND_WORD;
		}
		if (stripe) {
			at += stripe;
			continue;
		}
		if (file >= FILES) {
			memcpy(msg + at, src + i, n);
			at += n;
			continue;
		}
		get_handles();
		dirty = true;
		if (at + handles[file].bytes + (len - i) > MSG_BYTES)
			continue;
		memcpy(msg + at, handles[file].xdr, handles[file].bytes);
		at += handles[file].bytes;
	}
	if (command)
		sign_command(msg + command - STRIPE_COMMAND_BYTES, proc, msg + command, at - command);
	return at;
}

static void put_mark(uint8_t *msg, size_t len)
{
	uint32_t kib = len < 4 ? UINT32_MAX : get_be32(msg) - MARK_WORD;

	if (kib <= 255)
		put_be32(msg, MARK_LAST | ((uint32_t)len - 4 + kib * 1024));
}

static uint8_t next_byte(struct wire_get *g)
{
	const uint8_t *b = wire_get_bytes(g, 1);

	return b ? *b : 0;
}

static void run_step(struct wire_get *g)
{
	uint8_t op = next_byte(g) % 8;
	struct peer *p = &peers[next_byte(g) % CONNS];
	uint8_t msg[MSG_BYTES];
	const uint8_t *bytes;
	uint8_t at = 0, n = 0;
	size_t len;

	switch (op) {
	case 0:
		dial(p);
		return;
	case 1:
		hang_up(p);
		return;
	case 3:
		(void)null_call(p);
		return;
	case 4:
		at = next_byte(g);
		n = next_byte(g);
		break;
	case 5:
		dial_tcp(p);
		return;
	case 7:
		memset(msg, 'f', 1024);
		for (n = next_byte(g); n && p->tcp; n--)
			say_tcp(p, msg, 1024, false);
		return;
	}
	len = (size_t)next_byte(g) * 4;
	len = MIN(len, wire_get_left(g));
	bytes = wire_get_bytes(g, len);
	if (!len || !bytes)
		return;
	len = put_handles(msg, bytes, len);
	if (op == 4)
		put_region(p, msg, len, at, n);
	if (op == 6 && p->tcp) {
		put_mark(msg, len);
		say_tcp(p, msg, len, false);
	} else {
		say(p, msg, len);
	}
}

static unsigned conns_left(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < server->nreactors; i++)
		n += atomic_load(&server->reactors[i]->nconns);
	return n;
}

static void must_serve(struct peer *p)
{
	if (!null_call(p)) {
		fprintf(stderr, "%s peer not served: routed %d, up %d, over %d (%s), %u answers; %u "
			"connections\n",
			p->tcp ? "TCP" : "local", p->routed, p->up, p->over, strerror(-p->status),
			p->answers, conns_left());
		abort();
	}
	hang_up(p);
}

static void wait_for_the_end(void)
{
	uint64_t until = clock_now_ns() + PATIENCE_NS;

	while (conns_left() && clock_now_ns() < until)
		sched_yield();
	must(!conns_left());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peer *good = &peers[CONNS], *good_tcp = &peers[CONNS + 1];
	struct wire_get g;

	run++;
	wire_get_init(&g, data, size);
	while (wire_get_left(&g) >= 2)
		run_step(&g);
	for (int i = 0; i < CONNS; i++)
		hang_up(&peers[i]);
	dial(good);
	must_serve(good);
	dial_tcp(good_tcp);
	must_serve(good_tcp);
	wait_for_the_end();
	if (dirty)
		make_files();
	has_block = false;
	return 0;
}

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

/* Chooses a port that is free now; another program is unlikely to bind it before leatd does. */
static void choose_port(void)
{
	socklen_t len = sizeof(tcp_addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	tcp_addr = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	must(fd >= 0 && !bind(fd, (struct sockaddr *)&tcp_addr, sizeof(tcp_addr)) &&
	     !getsockname(fd, (struct sockaddr *)&tcp_addr, &len));
	close(fd);
}

/* Writes the file @name below dir. */
static void write_text(const char *name, const char *text)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static struct conf conf;
	char why[CONF_WHY_BYTES], spec[160], url[160], tcp[64], volume[96], vol[224], names[400], path[112];
	char argv0[] = "leatd", exp[] = "--export", listen[] = "--listen", reactors[] = "--reactors=1",
	     workers[] = "--workers=2", event[] = "--poll=event", state[96], block[] = "--block", managed[] = "--volume",
	     kept[] = "--stripes", stripes[400];
	char *args[] = { argv0, exp,	 spec,	  listen, url,	 listen,
			 tcp,	reactors, workers, event,	state, block, vol, managed, names, kept, stripes, NULL };
	int fd;

	(void)argc;
	(void)argv;
	log_state.level = LOG_LEVEL_ERR;
	snprintf(dir, sizeof(dir), "/tmp/leat-fuzz-XXXXXX");
	must(mkdtemp(dir));
	snprintf(export_path, sizeof(export_path), "%s/export", dir);
	must(!mkdir(export_path, 0777));
	snprintf(names_path, sizeof(names_path), "%s/names", dir);
	must(!mkdir(names_path, 0777));
	snprintf(files_path, sizeof(files_path), "%s/files", names_path);
	must(!mkdir(files_path, 0777));
	snprintf(path, sizeof(path), "%s/pending", names_path);
	must(!mkdir(path, 0700));
	write_text("key", KEY_TEXT);
	must(!stripe_key_parse((char[]){ KEY_TEXT }, &(uint64_t){ 0 }, &keys, why, sizeof(why)));
	write_text("map", "volume = 0000000000000001\nversion = 1\n[server 1]\nurl = tcp://127.0.0.1:1\n[server 2]\nurl = tcp://127.0.0.1:2\n");
	snprintf(names, sizeof(names), "fv=%s,key=%s/key,map=%s/map,no_root_squash,insecure,clients=127.0.0.0/8", names_path, dir,
		 dir);
	snprintf(path, sizeof(path), "%s/stripes", dir);
	must(!mkdir(path, 0700));
	snprintf(stripes, sizeof(stripes), "fs=%s,key=%s/key,id=1,insecure,clients=127.0.0.0/8", path, dir);
	make_files();
	snprintf(volume, sizeof(volume), "%s/volume", dir);
	fd = open(volume, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	must(fd >= 0 && !ftruncate(fd, 1 << 20));
	close(fd);
	snprintf(vol, sizeof(vol), "vol=%s,write=cached,read=cached,insecure,clients=127.0.0.0/8", volume);
	choose_port();
	snprintf(sock, sizeof(sock), "%s/sock", dir);
	snprintf(spec, sizeof(spec), "/fuzz=%s,no_root_squash,insecure,clients=127.0.0.0/8", export_path);
	snprintf(state, sizeof(state), "--state-dir=%s/state", dir);
	snprintf(url, sizeof(url), "local://%s", sock);
	snprintf(tcp, sizeof(tcp), "tcp://127.0.0.1:%u", (unsigned)ntohs(tcp_addr.sin_port));
	conf_init(&conf);
	must(conf_args(&conf, (int)ARRAY_SIZE(args) - 1, args, why) == CONF_RUN);
	conf.drc_entries = 4; /* not what another input was answered, unless it has just been */
	must(!server_start(&conf, &server));
	conf_fini(&conf);
	must(!rr_local_open(NULL, &fabric));
	atexit(clean_up);
	return 0;
}
