/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_local.c - libFuzzer harness: the local fabric with a peer that writes into the shared memory
 *
 * Operation:  Byte 0 chooses how the two meet, then come steps of one byte and its arguments. The
 *             victim is a queue pair with memory to be read, memory to be written, and memory that is
 *             not registered. The attacker is a process that knows the protocol: here another
 *             fabric's queue pair, whose half of the shared area, key table and ring are written to
 *             behind its back, and whose socket says more than it should. Or, for the handshake, a
 *             bare socket that sends what the input says, to a victim that listens or that dials.
 * Memory:     Neither may reach the other's address space (RR_LOCAL_VM_NEVER): it is the same one, and
 *             a lie about an address would hit this program instead of the attacker.
 * Threads:    One, and the fabrics' closers.
 * Errors:     abort() if posted work does not end with the connection, or if memory changes that
 *             is not registered for remote writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/wire.h"
#include "local_int.h"
#include "shm_map.h"

#define RECVS 8u
#define MSG_BYTES 1000u /* so that a ring has several pages */
#define AREA_BYTES 12288u
#define OPS_MAX 64u /* posted at once, at most */
#define IDLE_ROUNDS 200000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum area { AREA_MSGS, AREA_READABLE, AREA_WRITABLE, AREA_SECRET, AREAS };

struct end {
	struct rr_fabric *f;
	uint8_t *mem;         /* AREAS areas, all of memfd */
	int memfd;
	struct rr_pd *pd;
	struct rr_cq *cq;
	struct rr_cm *cm;
	struct rr_listener *l;
	struct rr_qp *qp;
	struct rr_mr *mr[AREAS];
	struct rr_done done;
	unsigned recvs, ops;  /* posted and not yet completed */
	uint32_t token;
	bool has_token, routed, up, failed;
};

static char path[80];
static struct end victim, attacker;
static bool shared; /* keys are for memory that the other may map */

static void must(bool promise)
{
	if (!promise)
		abort();
}

static uint8_t *area(const struct end *e, enum area a)
{
	return e->mem + (size_t)a * AREA_BYTES;
}

static void on_done(struct rr_done *done, const struct rr_wc *wc)
{
	(void)done;
	(void)wc;
}

static struct rr_done recv_done = { .fn = on_done };

/* ---- an end ------------------------------------------------------------------------------- */

static void post_recv(struct end *e)
{
	struct rr_recv r = { .done = &recv_done,
			     .sge = { area(e, AREA_MSGS) + e->recvs * MSG_BYTES, MSG_BYTES,
				      e->mr[AREA_MSGS] } };

	if (e->recvs < RECVS && !rr_post_recv(e->qp, &r))
		e->recvs++;
}

static int poll_end(struct end *e)
{
	struct rr_wc wc[8];
	int n;

	rr_cm_process(e->cm);
	n = rr_cq_poll(e->cq, wc, 8);
	for (int i = 0; i < n; i++) {
		if (wc[i].done != &recv_done) {
			e->ops--;
			continue;
		}
		must(wc[i].status != RR_WC_OK || wc[i].byte_len <= MSG_BYTES);
		e->recvs--;
		if (wc[i].status == RR_WC_OK)
			post_recv(e);
	}
	return n;
}

static void set_up(struct end *e, struct rr_qp *qp)
{
	struct rr_qp_attr qa = { .pd = e->pd, .cq = e->cq, .sq_depth = OPS_MAX,
				 .rq_depth = RECVS, .recv_bytes = MSG_BYTES };

	e->qp = qp;
	must(!rr_qp_setup(qp, &qa));
	while (e->recvs < RECVS)
		post_recv(e);
}

static void on_cm(void *ctx, const struct rr_cm_event *ev)
{
	struct rr_conn_param param = { .initiator_depth = 4, .responder_resources = 4 };
	struct end *e = ctx;

	switch (ev->type) {
	case RR_CM_ROUTED:
		e->routed = true;
		set_up(e, ev->qp);
		e->failed |= rr_qp_connect(ev->qp, &param) != 0;
		break;
	case RR_CM_REQUEST:
		if (e->qp) {
			(void)rr_qp_reject(ev->qp);
			rr_qp_destroy(ev->qp);
			break;
		}
		set_up(e, ev->qp);
		e->up = !rr_qp_accept(ev->qp, &param);
		e->failed |= !e->up;
		break;
	case RR_CM_ESTABLISHED:
		e->up = true;
		break;
	case RR_CM_FAILED:
		e->failed = true;
		break;
	case RR_CM_REFUSED: /* a connection ended before its request */
		break;
	}
}

static void open_end(struct end *e)
{
	static const unsigned access[AREAS] = {
		[AREA_MSGS] = RR_ACCESS_LOCAL_WRITE,
		[AREA_READABLE] = RR_ACCESS_REMOTE_READ,
		[AREA_WRITABLE] = RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE,
		[AREA_SECRET] = RR_ACCESS_LOCAL_WRITE,
	};
	struct rr_fabric *f = e->f;

	*e = (struct end){ .f = f, .mem = e->mem, .memfd = e->memfd, .done = { on_done } };
	must(!rr_pd_create(f, &e->pd) && !rr_cq_create(f, &e->cq) &&
	     !rr_cm_create(f, on_cm, e, &e->cm));
	for (int i = 0; i < AREAS; i++) {
		struct rr_mr_attr ma = { .addr = area(e, (enum area)i), .len = AREA_BYTES,
					 .access = access[i], .fd = -1 };

		if (shared && access[i] & RR_ACCESS_REMOTE) {
			ma.fd = e->memfd;
			ma.fd_off = (uint64_t)i * AREA_BYTES;
		}

		memset(ma.addr, 0x5a, ma.len);
		must(!rr_mr_reg(e->pd, &ma, &e->mr[i]));
	}
}

static void close_end(struct end *e)
{
	if (e->has_token)
		rr_qp_direct_end(e->qp, e->token);
	if (e->qp) {
		rr_qp_disconnect(e->qp);
		/* what was posted before the connection came up goes with the queue pair */
		for (int i = 0; (e->up || e->ops) && e->recvs + e->ops && i < IDLE_ROUNDS; i++)
			poll_end(e);
		must(!e->up || !(e->recvs + e->ops));
		rr_qp_destroy(e->qp);
	}
	rr_unlisten(e->l);
	for (int i = 0; i < AREAS; i++)
		must(!rr_mr_dereg(e->mr[i]));
	rr_cm_destroy(e->cm);
	rr_cq_destroy(e->cq);
	rr_pd_destroy(e->pd);
}

static void check_memory(void)
{
	for (size_t i = 0; i < AREA_BYTES; i++) {
		must(area(&victim, AREA_READABLE)[i] == 0x5a);
		must(area(&victim, AREA_SECRET)[i] == 0x5a);
	}
}

/* ---- input -------------------------------------------------------------------------------- */

static uint8_t byte(struct wire_get *g)
{
	const uint8_t *b = wire_get_bytes(g, 1);

	return b ? *b : 0;
}

static uint32_t half(struct wire_get *g)
{
	uint32_t hi = byte(g);

	return hi << 8 | byte(g);
}

/* ---- the socket --------------------------------------------------------------------------- */

/* Descriptors that a peer might send along. */
static int some_fd(uint8_t kind, size_t bytes)
{
	int fd;

	switch (kind % 5) {
	case 1:
		return rr_shm_create("leat-fuzz", bytes);
	case 2:
		fd = memfd_create("leat-fuzz", MFD_CLOEXEC); /* may shrink under its user */
		must(fd >= 0 && !ftruncate(fd, (off_t)bytes));
		return fd;
	case 3:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 4:
		return eventfd(0, EFD_CLOEXEC);
	default:
		return -1;
	}
}

/* A message of the handshake, or of later, with one of its words replaced. */
static void send_hs(int sock, struct hs_msg *hs, struct wire_get *g)
{
	uint8_t kind = byte(g), word = byte(g);
	uint32_t value = half(g) << 16;
	int fds[3], n = 0;

	value |= half(g);
	if (word && (size_t)word * 4 <= sizeof(*hs))
		memcpy((uint8_t *)hs + (size_t)(word - 1) * 4, &value, sizeof(value));
	if (kind % 5) {
		fds[0] = some_fd(kind, (size_t)1 << (12 + (kind >> 4)));
		if (fds[0] >= 0)
			n = 1;
		while (n && n < 1 + (kind >> 3 & 1) * 2) {
			fds[n] = dup(fds[0]);
			n++;
		}
	}
	(void)rr_local_sock_send(sock, hs, fds, n);
	while (n-- > 0)
		close(fds[n]);
}

static void hs_of(struct hs_msg *hs, uint32_t type)
{
	memset(hs, 0, sizeof(*hs));
	hs->magic = HS_MAGIC;
	hs->version = HS_VERSION;
	hs->type = type;
	hs->rq_depth = RECVS;
	hs->recv_bytes = MSG_BYTES;
	hs->keys = 64;
	hs->region_bytes = 1u << 20;
	hs->initiator_depth = hs->responder_resources = 4;
	hs->region = 1;
	hs->size = AREA_BYTES;
}

/* ---- both ends up ------------------------------------------------------------------------- */

static void poke(void *base, size_t words, struct wire_get *g)
{
	size_t at = half(g) % words;
	uint32_t value = half(g) << 16;

	value |= half(g);
	memcpy((uint8_t *)base + at * 4, &value, sizeof(value));
}

/* Little numbers are what counters and lengths mostly hold. */
static void poke_little(void *base, size_t words, struct wire_get *g)
{
	size_t at = byte(g) % words;
	uint32_t value = byte(g);

	memcpy((uint8_t *)base + at * 4, &value, sizeof(value));
}

static void post(struct end *e, const struct end *to, struct wire_get *g)
{
	uint8_t op = byte(g), how = byte(g);
	uint32_t off = half(g), len = half(g);
	const struct rr_mr *there = to->mr[1 + (op >> 4) % 3];
	struct rr_wr wr = { .done = &e->done, .flags = RR_WR_SIGNALED,
			    .sge = { area(e, AREA_MSGS) + RECVS * MSG_BYTES,
				     len % (AREA_BYTES - RECVS * MSG_BYTES + 1), e->mr[AREA_MSGS] },
			    .raddr = (uint64_t)(uintptr_t)there->addr + off,
			    .rkey = there->rkey + (how & 3 ? 0 : how >> 2) };

	switch (op % 4) {
	case 0:
		wr.op = RR_WR_SEND;
		wr.sge.len %= MSG_BYTES + 1;
		break;
	case 1:
		wr.op = RR_WR_SEND_INV;
		wr.sge.len %= MSG_BYTES + 1;
		break;
	case 2:
		wr.op = RR_WR_WRITE;
		break;
	default:
		wr.op = RR_WR_READ;
	}
	if (e->up && e->ops < OPS_MAX && !rr_post_send(e->qp, &wr))
		e->ops++;
}

static void direct(struct end *e, const struct end *to, struct wire_get *g)
{
	uint32_t off = byte(g), len = half(g);
	void *addr;

	if (!e->up || e->has_token)
		return;
	e->has_token = !rr_qp_direct(e->qp, to->mr[AREA_WRITABLE]->rkey,
				     (uint64_t)(uintptr_t)to->mr[AREA_WRITABLE]->addr + off, len,
				     RR_ACCESS_REMOTE_WRITE, &addr, &e->token);
}

static void step(struct wire_get *g)
{
	struct local_qp *q = to_qp(attacker.qp);
	uint8_t op = byte(g) % 14;
	struct hs_msg hs;
	const uint8_t *junk;
	size_t len;

	switch (op) {
	case 0:
		poke(q->me, sizeof(*q->me) / 4, g);
		break;
	case 1:
		poke(q->my_keys, q->my_nkeys * sizeof(*q->my_keys) / 4, g);
		break;
	case 2:
		poke(q->peer_ring.base, q->peer_ring.bytes / 4, g);
		break;
	case 3:
		poke_little(q->me, sizeof(*q->me) / 4, g);
		break;
	case 4:
		poke_little(q->peer_ring.base, q->peer_ring.bytes / 4, g);
		break;
	case 5:
		poke_little(q->my_keys, q->my_nkeys * sizeof(*q->my_keys) / 4, g);
		break;
	case 6:
		hs_of(&hs, HS_REGION + byte(g) % 3);
		send_hs(q->sock, &hs, g);
		break;
	case 7:
		len = byte(g);
		len = MIN(len, wire_get_left(g));
		junk = wire_get_bytes(g, len);
		if (junk)
			(void)send(q->sock, junk, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		break;
	case 8:
		post(&victim, &attacker, g);
		break;
	case 9:
		post(&attacker, &victim, g);
		break;
	case 10:
		for (int i = byte(g) % 32; i >= 0; i--)
			poll_end(&victim);
		break;
	case 11:
		for (int i = byte(g) % 32; i >= 0; i--)
			poll_end(&attacker);
		break;
	case 12:
		direct(&victim, &attacker, g);
		break;
	default:
		rr_local_ring_bell(q);
	}
}

/* All inputs run as the same user. The fabric refuses users with too many descriptors that wait to be closed. */
static void wait_closed(const struct end *e)
{
	struct local_closer *closer = to_fabric(e->f)->closer;

	while (rr_local_closer_full(closer, geteuid()) || rr_local_closer_full(closer, LOCAL_OURS))
		(void)poll(NULL, 0, 1);
}

static void play(bool attacker_dials, struct wire_get *g)
{
	struct end *active = attacker_dials ? &attacker : &victim;
	struct end *passive = attacker_dials ? &victim : &attacker;

	wait_closed(&victim);
	wait_closed(&attacker);
	open_end(&attacker);
	must(!rr_listen(passive->cm, path, NULL, &passive->l));
	must(!rr_qp_dial(active->cm, path, NULL, &active->qp));
	for (int i = 0; !(active->up && passive->up) && i < IDLE_ROUNDS; i++) {
		poll_end(active);
		poll_end(passive);
	}
	must(active->up && passive->up);
	while (wire_get_ok(g) && wire_get_left(g))
		step(g);
	for (int i = 0; i < 8; i++) {
		poll_end(&victim);
		poll_end(&attacker);
	}
	close_end(&victim);
	close_end(&attacker);
}

/* ---- handshakes --------------------------------------------------------------------------- */

static void raw_client(struct wire_get *g)
{
	struct hs_msg hs;
	int sock;

	must(!rr_listen(victim.cm, path, NULL, &victim.l));
	must(!rr_local_sock_dial(path, &sock));
	for (int i = 0; wire_get_ok(g) && i < 8; i++) {
		hs_of(&hs, byte(g) % 8);
		send_hs(sock, &hs, g);
		poll_end(&victim);
	}
	for (int i = 0; i < 4; i++)
		poll_end(&victim);
	close(sock);
	close_end(&victim);
}

static void raw_server(struct wire_get *g)
{
	struct hs_msg hs;
	int sock = -1, fd;

	must(!rr_local_sock_listen(path, 0600, &fd));
	must(!rr_qp_dial(victim.cm, path, NULL, &victim.qp));
	sock = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	must(sock >= 0);
	hs_of(&hs, HS_HELLO);
	send_hs(sock, &hs, g);
	poll_end(&victim);
	for (int i = 0; wire_get_ok(g) && i < 8; i++) {
		hs_of(&hs, byte(g) % 8);
		send_hs(sock, &hs, g);
		for (int k = 0; k < 4; k++)
			poll_end(&victim);
	}
	close(sock);
	close(fd);
	unlink(path);
	for (int i = 0; i < 4; i++)
		poll_end(&victim);
	close_end(&victim);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_get g;

	if (!size)
		return 0;
	wire_get_init(&g, data + 1, size - 1);
	shared = data[0] & 4;
	open_end(&victim);
	switch (data[0] % 4) {
	case 0:
		raw_client(&g);
		break;
	case 1:
		raw_server(&g);
		break;
	default:
		play(data[0] % 4 == 2, &g);
	}
	check_memory();
	return 0;
}

static void clean_up(void)
{
	rr_fabric_close(victim.f);
	rr_fabric_close(attacker.f);
	munmap(victim.mem, AREAS * AREA_BYTES);
	munmap(attacker.mem, AREAS * AREA_BYTES);
	close(victim.memfd);
	close(attacker.memfd);
}

static void make_memory(struct end *e)
{
	e->memfd = rr_shm_create("leat-fuzz", AREAS * AREA_BYTES);
	must(e->memfd >= 0);
	e->mem = mmap(NULL, AREAS * AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, e->memfd, 0);
	must(e->mem != MAP_FAILED);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct rr_local_attr attr = {
		.vm = RR_LOCAL_VM_NEVER,
		.limits = { .keys_max = 64, .region_bytes_max = 1u << 20, .bounce_bytes = 1u << 16 },
	};

	(void)argc;
	(void)argv;
	snprintf(path, sizeof(path), "/tmp/leat-fuzz-local-%d", (int)getpid());
	make_memory(&victim);
	make_memory(&attacker);
	must(!rr_local_open(&attr, &victim.f) && !rr_local_open(&attr, &attacker.f));
	atexit(clean_up);
	return 0;
}
