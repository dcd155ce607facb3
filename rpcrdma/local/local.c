/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local.c - the local fabric: RDMA between processes of one host, without a device or privileges
 *
 * Operation:  Implements the contract of a NIC (fabric.h) by four means:
 *             - a UNIX SOCK_SEQPACKET socket (local_sock.c, local_cm.c) for rendezvous, private data,
 *               the peer's credentials from the kernel, and descriptor passing. Afterwards it is
 *               the doorbell of a sleeping peer, and its hang-up signals the peer's death;
 *             - a memfd that the passive side creates and seals (local_ring.c): a ring of messages
 *               and a key table for each direction. While both sides poll, they need no system
 *               call;
 *             - keys (local_mem.c): the owner's private table is authoritative, the peer reads the
 *               shared one. A peer marks an entry busy, checks the key, moves bytes, and removes the
 *               mark. After the owner has cleared the key no access begins. The mark shows
 *               whether one is still in progress (qp_withdraw); nothing waits for it;
 *             - three ways to move bytes (local_move.c). The choice is per key and depends on what the
 *               accessing side can do, as announced in the handshake. Memory of the side that
 *               accepted the connection always uses the agent:
 *               slab:  memory inside a sealed memfd; the peer receives its descriptor;
 *               vm:    process_vm_readv/writev, within one process, or between equal uids if this
 *                      process has no CAP_SYS_PTRACE (with it the kernel would also permit access to
 *                      a peer that has since executed a setuid program);
 *               agent: otherwise a request in shared memory asks the owner to copy through a
 *                      bounce area while it polls. A message is delivered after all preceding
 *                      requests, so a Send arrives after the Writes before it.
 *               local_qp.c and local_cq.c contain the queues, completions and the engine that carries
 *               out work requests.
 *             Per-user threads close what untrusted peers pass to us (local_close.c).
 * Memory:     qp_setup and the connect allocate the memory of a connection. The data path allocates only
 *             bounce areas (at the first use) and mappings of slabs. Shared pages are sealed against
 *             resizing. A peer's slab is accessed only by system calls, never by loads or stores, so a
 *             hole punched into it causes an error or zeroes, not a signal. All shared memory is charged
 *             to the peer's user with its full size, and each user has a limited share (local_map.c).
 *             Slabs and bounce areas count against mapped_bytes_max. Rings and the smallest bounce area
 *             count against ring_bytes_max, so every connection gets one.
 * Threads:    See fabric.h. Lock order: pd->lock, fabric->lock; cq->lock alone.
 *             Counters are kept per queue pair and summed on request.
 * Errors:     Data from a peer is checked when it is read. A peer that breaks a rule loses its
 *             connection, without other effects (counters.hostile). Unfinished handshakes
 *             are limited in number and time (handshakes_max, handshakes_uid_max, handshake_ms).
 * See:        doc/design.md; doc/testing.md for what this cannot show.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "local_int.h"

#define DEFAULT_KEYS 4096u
#define DEFAULT_QP_WR 16384u
#define DEFAULT_RD_ATOM 128u
#define DEFAULT_MAPPED (UINT64_C(4) << 30)
#define DEFAULT_RINGS (UINT64_C(4) << 30)
#define DEFAULT_REGIONS (UINT64_C(1) << 30)
#define DEFAULT_CONNS 65536u
#define DEFAULT_HANDSHAKES 256u
#define DEFAULT_HANDSHAKES_UID 64u
#define DEFAULT_HANDSHAKE_MS 5000u
#define DEFAULT_BOUNCE (UINT64_C(32) << 20)

/** rr_local_link_due - returns the end of a transfer of @bytes that starts now
 *
 * Each fabric models one link with the rate of its attributes, as a NIC has: transfers of all its queue pairs are
 * serialised.
 *
 * Return: a time of clock_now_ns().
 */
uint64_t rr_local_link_due(struct local_fabric *f, uint64_t bytes)
{
	const struct rr_local_link *link = &f->attr.link;
	uint64_t ns = link->op_ns, now, due;

	if (link->rate_bytes_s)
		ns += (uint64_t)((double)bytes * (double)NS_PER_S / (double)link->rate_bytes_s);
	now = clock_now_ns();
	pthread_mutex_lock(&f->lock);
	f->link_free_ns = MAX(f->link_free_ns, now) + ns;
	due = f->link_free_ns;
	pthread_mutex_unlock(&f->lock);
	return due;
}

static void local_close(struct rr_fabric *fabric)
{
	struct local_fabric *f = to_fabric(fabric);

	assert(list_is_empty(&f->qps) && list_is_empty(&f->maps));
	rr_local_closer_free(f->closer);
	rr_clients_fini(&f->own_clients);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static void local_abandon(struct rr_fabric *fabric)
{
	(void)fabric; /* a connection is its socket, which an engine watches */
}

static const struct rr_fabric_ops fabric_local_ops = {
	.name = "local",
	.close = local_close,
	.abandon = local_abandon,
	.pd_create = rr_local_pd_create,
	.pd_destroy = rr_local_pd_destroy,
	.mr_reg = rr_local_mr_reg,
	.mr_dereg = rr_local_mr_dereg,
	.mw_create = rr_local_mw_create,
	.mw_destroy = rr_local_mw_destroy,
	.cq_create = rr_local_cq_create,
	.cq_destroy = rr_local_cq_destroy,
	.cq_poll = rr_local_cq_poll,
	.cq_arm = rr_local_cq_arm,
	.srq_create = rr_local_srq_create,
	.srq_destroy = rr_local_srq_destroy,
	.srq_post = rr_local_srq_post,
	.cm_create = rr_local_cm_create,
	.cm_destroy = rr_local_cm_destroy,
	.cm_process = rr_local_cm_process,
	.listen = rr_local_listen,
	.unlisten = rr_local_unlisten,
	.qp_dial = rr_local_qp_dial,
	.qp_setup = rr_local_qp_setup,
	.qp_connect = rr_local_qp_connect,
	.qp_accept = rr_local_qp_accept,
	.qp_reject = rr_local_qp_reject,
	.qp_disconnect = rr_local_qp_disconnect,
	.qp_destroy = rr_local_qp_destroy,
	.post_send = rr_local_post_send,
	.post_recv = rr_local_post_recv,
	.qp_direct = rr_local_qp_direct,
	.qp_direct_end = rr_local_qp_direct_end,
	.qp_withdraw = rr_local_qp_withdraw,
	.qp_is_over = rr_local_qp_is_over,
};

static void fill_limits(struct local_fabric *f)
{
	struct rr_local_limits *l = &f->attr.limits;

	l->sq_max = l->sq_max ? l->sq_max : DEFAULT_QP_WR;
	l->rq_max = l->rq_max ? l->rq_max : DEFAULT_QP_WR;
	l->rd_atom_max = l->rd_atom_max ? l->rd_atom_max : DEFAULT_RD_ATOM;
	l->keys_max = l->keys_max ? MIN(l->keys_max, LOCAL_KEYS_MAX) : DEFAULT_KEYS;
	l->mapped_bytes_max = l->mapped_bytes_max ? l->mapped_bytes_max : DEFAULT_MAPPED;
	l->ring_bytes_max = l->ring_bytes_max ? l->ring_bytes_max : DEFAULT_RINGS;
	l->region_bytes_max = l->region_bytes_max ? l->region_bytes_max : DEFAULT_REGIONS;
	l->conns_max = l->conns_max ? l->conns_max : DEFAULT_CONNS;
	l->handshakes_max = l->handshakes_max ? l->handshakes_max : DEFAULT_HANDSHAKES;
	l->handshakes_uid_max = l->handshakes_uid_max ? l->handshakes_uid_max
						      : DEFAULT_HANDSHAKES_UID;
	l->handshake_ms = l->handshake_ms ? l->handshake_ms : DEFAULT_HANDSHAKE_MS;
	/* room for at least two requests in flight, page-aligned */
	l->bounce_bytes = l->bounce_bytes ? l->bounce_bytes : DEFAULT_BOUNCE;
	l->bounce_bytes = MAX(l->bounce_bytes & ~(uint64_t)4095, UINT64_C(2) * LOCAL_REQ_BYTES);
	f->base.attr = (struct rr_fabric_attr){
		.qp_wr_max = MIN(l->sq_max, l->rq_max),
		.srq_wr_max = l->rq_max,
		.quiet_polls = true,
		.rd_atom_max = l->rd_atom_max,
		.msg_bytes_max = 1u << 30,
		.windows = true,
		.send_inv = true,
		.remote_inv = true,
		.client_direct = true,
		.device = "local",
	};
}

/* A sandbox may forbid the system call that all writes to shared memory use (local_map.c). */
static bool may_copy(void)
{
	char from = 1, to = 0;

	return rr_local_vm_copy(getpid(), &from, (uintptr_t)&to, 1, true) && to == from;
}

int rr_local_open(const struct rr_local_attr *attr, struct rr_fabric **ret)
{
	struct local_fabric *f = calloc(1, sizeof(*f));
	uint32_t start;
	int rc;

	if (!f)
		return -ENOMEM;
	if (!may_copy()) {
		rc = -EOPNOTSUPP;
		goto out_free;
	}
	f->base.ops = &fabric_local_ops;
	if (attr)
		f->attr = *attr;
	fill_limits(f);
	if (getrandom(&f->id, sizeof(f->id), 0) != sizeof(f->id)) {
		rc = -errno;
		goto out_free;
	}
	/* random start values: keys of two fabrics, or of a restarted peer, shall differ */
	start = (uint32_t)(f->id >> 32);
	atomic_init(&f->next_salt, start);
	atomic_init(&f->next_qpn, 0x11 + (start & 0xffff00));
	atomic_init(&f->next_region, 1);
	list_init(&f->qps);
	list_init(&f->maps);
	rc = rr_local_closer_new(&f->closer);
	if (rc)
		goto out_free;
	pthread_mutex_init(&f->lock, NULL);
	rr_clients_init(&f->own_clients);
	f->clients = f->attr.clients ? f->attr.clients : &f->own_clients;
	f->clients->budgets[RR_SHARE_REGION].max = f->attr.limits.mapped_bytes_max;
	f->clients->budgets[RR_SHARE_RING].max = f->attr.limits.ring_bytes_max;
	f->clients->budgets[RR_SHARE_RING].kept = 4;
	rc = f->attr.filters ? f->attr.filters->push(&f->base, f->attr.filters) : 0;
	if (rc)
		rr_fabric_close(&f->base);
	else
		*ret = &f->base;
	return rc;

out_free:
	free(f);
	return rc;
}

struct rr_local_attr *rr_local_attr(struct rr_fabric *fabric)
{
	return &to_fabric(fabric)->attr;
}

/* The struct contains only uint64_t, so the sum uses indices. */
_Static_assert(sizeof(struct rr_local_counters) % sizeof(uint64_t) == 0, "only uint64_t counters");

static void add_counters(struct rr_local_counters *to, const struct rr_local_counters *n)
{
	uint64_t *sum = (uint64_t *)to;
	const uint64_t *from = (const uint64_t *)n;

	for (size_t i = 0; i < sizeof(*to) / sizeof(*sum); i++)
		sum[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

/** rr_local_qp_counted - keeps the counters of a queue pair that is about to be freed */
void rr_local_qp_counted(struct local_qp *qp)
{
	struct local_fabric *f = to_fabric(qp->base.fabric);

	pthread_mutex_lock(&f->lock);
	list_del(&qp->fabric_node);
	add_counters(&f->gone, &qp->n);
	pthread_mutex_unlock(&f->lock);
}

struct rr_local_counters rr_local_counters(const struct rr_fabric *fabric)
{
	struct rr_local_counters sum;
	struct local_fabric *f = to_fabric(fabric);

	pthread_mutex_lock(&f->lock);
	sum = f->gone;
	sum.regs = atomic_load(&f->regs);
	sum.deregs = atomic_load(&f->deregs);
	list_for_each(node, &f->qps)
		add_counters(&sum, &list_entry(node, struct local_qp, fabric_node)->n);
	pthread_mutex_unlock(&f->lock);
	return sum;
}

void rr_local_cut(struct rr_qp *qp)
{
	rr_local_qp_kill(to_qp(qp));
}
