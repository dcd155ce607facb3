/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_move.c - the local fabric's memory, on the initiator's side: RDMA Read and Write
 *
 * Operation:  rr_local_move() marks the peer's key entry busy, compares the key, copies the entry,
 *             checks bounds and rights, moves the bytes, and removes the mark. It moves bytes by a
 *             system call on a slab's descriptor or on the peer's process. If neither is possible, it
 *             sends a request to the peer (the agent), which carries it out while it polls. Writes go
 *             into the bounce area first; Reads come out of it after the reply
 *             (rr_local_move_replies). rr_local_move_serve() is the agent's side.
 *             rr_local_qp_direct() maps a slab for the kernel, to read a disk into it.
 * Memory:     The initiator creates the bounce area at the first use, and uses it as a ring. Slabs of
 *             the peer are accepted up to the bytes announced in the handshake (region_bytes_max) and
 *             up to its user's share (local_map.c), holes included, since our accesses fill them.
 *             The agent serves slabs that are not accepted. Slabs are mapped page by page, when the
 *             kernel accesses them: a large slab must not block us.
 * Threads:    The owner of the queue pair.
 * Errors:     A wrong key, bound or right is RR_WC_REM_ACCESS; a peer that is gone is RR_WC_LOST.
 */
#include <errno.h>
#include <unistd.h>

#include "local_int.h"

#define DRAIN_MAX 128 /* datagrams per call, so a flooding peer cannot keep us here */
#define STAGE_MIN (UINT64_C(2) * LOCAL_REQ_BYTES)

/* ---- memory received from the peer ---- */

static void region_close(struct local_qp *qp, struct peer_region *r)
{
	rr_local_map_put(to_fabric(qp->base.fabric), r->map);
	*r = (struct peer_region){ .map = NULL };
}

static struct peer_region *region_find(struct local_qp *qp, uint64_t id)
{
	for (unsigned i = 0; i < LOCAL_REGIONS_MAX; i++)
		if (qp->region[i].map && qp->region[i].id == id)
			return &qp->region[i];
	return NULL;
}

/* A slab beyond the client's share, or one that cannot be mapped, is not accepted: the owner moves its data. Return:
 * false if the peer broke a rule. */
static bool region_add(struct local_qp *qp, const struct hs_msg *hs, int *fd)
{
	struct local_fabric *f = to_fabric(qp->base.fabric);
	struct peer_region *r = qp->region;
	int rc;

	if (region_find(qp, hs->region) ||
	    !range_fits(qp->region_bytes, hs->size, f->attr.limits.region_bytes_max))
		return false;
	while (r < qp->region + LOCAL_REGIONS_MAX && r->map)
		r++;
	if (r == qp->region + LOCAL_REGIONS_MAX)
		return false;
	rc = rr_local_map_get(qp, RR_SHARE_REGION, *fd, hs->size, &r->map);
	if (rc == -EPROTO)
		return false;
	if (rc) {
		rr_local_map_close(f, peer_owner(qp), *fd, hs->size);
	} else {
		r->id = hs->region;
		qp->region_bytes += hs->size;
	}
	*fd = -1;
	return true;
}

/* The smallest area is charged like the rings, a share that keeps some for each client. */
static enum rr_share stage_share(uint64_t size)
{
	return size > STAGE_MIN ? RR_SHARE_REGION : RR_SHARE_RING;
}

static bool stage_add(struct local_qp *qp, const struct hs_msg *hs, int *fd)
{
	if (qp->peer_stage || hs->size > LOCAL_STAGE_MAX ||
	    rr_local_map_get(qp, stage_share(hs->size), *fd, hs->size, &qp->peer_stage))
		return false;
	*fd = -1;
	return true;
}

static bool hear(struct local_qp *qp, const struct hs_msg *hs, int *fd)
{
	struct peer_region *r;

	switch (hs->type) {
	case 0: /* a doorbell: waking up is sufficient */
		return true;
	case HS_REGION:
		return *fd >= 0 && region_add(qp, hs, fd);
	case HS_BOUNCE:
		return *fd >= 0 && stage_add(qp, hs, fd);
	case HS_REGION_GONE:
		r = region_find(qp, hs->region);
		if (!r)
			return true; /* it was not accepted */
		if (!r->gone)
			qp->region_bytes -= r->map->size;
		r->gone = true;
		if (!r->refs)
			region_close(qp, r);
		return true;
	default:
		return false;
	}
}

/** rr_local_move_drain - reads the datagrams in the socket: doorbells, slabs, a bounce area
 *
 * Return: false if the peer has hung up. After an invalid datagram the connection is dead.
 */
bool rr_local_move_drain(struct local_qp *qp)
{
	struct local_closer *closer = to_fabric(qp->base.fabric)->closer;

	for (int i = 0; i < DRAIN_MAX; i++) {
		struct hs_msg hs;
		int fd, rc;
		bool ok;

		rc = rr_local_sock_recv(closer, peer_owner(qp), qp->sock, &hs, &fd);
		ok = !rc && hear(qp, &hs, &fd);
		if (fd >= 0) {
			rr_local_close_later(closer, peer_owner(qp), fd); /* of unknown kind */
			ok = false;
		}
		if (rc == -EAGAIN)
			return true;
		if (rc == -ECONNRESET)
			return false;
		if (!ok) {
			rr_local_qp_hostile(qp);
			return true;
		}
	}
	return true;
}

/* Finds the slab of a key; it may still be in the socket. */
static struct peer_region *region_get(struct local_qp *qp, uint64_t id)
{
	struct peer_region *r = region_find(qp, id);

	if (!r && rr_local_move_drain(qp))
		r = region_find(qp, id);
	return r;
}

/* ---- access to a key ---- */

struct reach {
	struct shm_key *entry;
	uint32_t mark; /* BUSY_* */
	enum local_place place;
	uint64_t region, off; /* SLAB: where raddr is in it */
};

static void reach_end(struct reach *r)
{
	atomic_fetch_sub(&r->entry->busy, r->mark);
}

/* If it returns true, the caller holds the busy mark of the entry. */
static bool reach_begin(struct local_qp *qp, uint32_t key, uint64_t raddr, uint64_t len,
			unsigned need, uint32_t mark, struct reach *ret)
{
	uint32_t slot = key >> 8 & qp->peer_key_mask;
	const volatile struct shm_key *v;
	uint64_t addr, size, off, into;
	unsigned access;

	if (!slot || slot >= qp->peer_nkeys)
		return false;
	ret->entry = &qp->peer_keys[slot];
	ret->mark = mark;
	atomic_fetch_add(&ret->entry->busy, mark);
	if (atomic_load(&ret->entry->key) != key)
		goto out_end;
	v = ret->entry; /* a correct owner does not change it while it is busy; each word is read once */
	addr = v->addr;
	size = v->len;
	access = v->access;
	off = v->off;
	ret->region = v->region;
	ret->place = (enum local_place)v->place;
	if (!(access & need) || !sub_u64(raddr, addr, &into) || !range_fits(into, len, size) ||
	    !add_u64(off, into, &ret->off))
		goto out_end;
	return true;

out_end:
	reach_end(ret);
	return false;
}

/* Local memory of a request, from @off on */
static void *mem_at(const struct local_sqe *e, uint32_t off)
{
	return (uint8_t *)e->wr.sge.addr + off;
}

/* ---- requests to the agent ---- */

/* As large as the client's share allows, but large enough for a few requests. */
static int stage_open(struct local_qp *qp)
{
	struct hs_msg hs = { .magic = HS_MAGIC, .version = HS_VERSION, .type = HS_BOUNCE };
	int rc;

	if (qp->stage)
		return 0;
	hs.size = to_fabric(qp->base.fabric)->attr.limits.bounce_bytes;
	while ((rc = rr_local_map_make(qp, stage_share(hs.size), "leat-bounce", hs.size, &qp->stage)) ==
		       -EDQUOT &&
	       hs.size > STAGE_MIN)
		hs.size = MAX(hs.size / 2 & ~(uint64_t)4095, STAGE_MIN);
	if (rc)
		return rc;
	rc = rr_local_sock_send(qp->sock, &hs, &qp->stage->fd, 1);
	if (rc) {
		rr_local_map_put(to_fabric(qp->base.fabric), qp->stage);
		qp->stage = NULL;
	}
	return rc;
}

/* Allocates @len contiguous bytes of the ring. Return: false until replies free some. */
static bool stage_alloc(struct local_qp *qp, uint32_t len, uint64_t *ret_off)
{
	uint64_t head = qp->stage_head, at = head % qp->stage->size;

	if (at + len > qp->stage->size) { /* skip the rest of this lap */
		head += qp->stage->size - at;
		at = 0;
	}
	if (head + len - qp->stage_tail > qp->stage->size)
		return false;
	qp->stage_head = head + len;
	*ret_off = at;
	return true;
}

/* Sends requests for the bytes from e->handed on to the agent, as far as there is room; sets *ret_again if not all. */
static enum rr_wc_status ask_agent(struct local_qp *qp, struct local_sqe *e, bool *ret_again)
{
	bool write = e->wr.op != RR_WR_READ, asked = false;
	enum rr_wc_status status = RR_WC_OK;
	int rc = stage_open(qp);

	*ret_again = rc == -EAGAIN;
	if (rc)
		return rc == -EAGAIN ? RR_WC_OK : RR_WC_LOST;
	while (e->handed < e->wr.sge.len) {
		uint32_t part = MIN(e->wr.sge.len - e->handed, LOCAL_REQ_BYTES), at = e->handed;
		struct shm_req *r = &qp->me->req[qp->req_head % LOCAL_REQS];
		uint64_t stage;

		if (qp->req_head - qp->req_acked == LOCAL_REQS || !stage_alloc(qp, part, &stage)) {
			*ret_again = true;
			break;
		}
		if (write && !rr_local_map_write(qp->stage, mem_at(e, at), part, stage)) {
			status = RR_WC_LOCAL;
			break;
		}
		r->write = write;
		r->key = e->wr.rkey;
		r->addr = e->wr.raddr + at;
		r->off = stage;
		r->len = part;
		qp->req[qp->req_head % LOCAL_REQS] = (struct local_req){
			.sqe = (uint32_t)(e - qp->sqe), .off = at, .len = part,
			.stage_end = qp->stage_head };
		e->handed += part;
		e->reqs++;
		asked = true;
		rr_local_count(qp, bytes_copied, part);
		atomic_store(&qp->me->req_head, ++qp->req_head);
	}
	if (asked)
		rr_local_ring_bell(qp);
	return status;
}

/** rr_local_move_replies - processes the agent's replies */
void rr_local_move_replies(struct local_qp *qp)
{
	uint32_t done = atomic_load(&qp->other->req_done);

	if (done - qp->req_acked > qp->req_head - qp->req_acked) {
		rr_local_qp_hostile(qp);
		return;
	}
	for (; qp->req_acked != done; qp->req_acked++) {
		const struct local_req *q = &qp->req[qp->req_acked % LOCAL_REQS];
		struct shm_req *r = &qp->me->req[qp->req_acked % LOCAL_REQS];
		struct local_sqe *e = &qp->sqe[q->sqe];
		uint32_t status = atomic_load_explicit(&r->status, memory_order_relaxed);

		if (status == RR_WC_OK && e->wr.op == RR_WR_READ) {
			uint64_t at = (q->stage_end - q->len) % qp->stage->size;

			if (!rr_local_map_read(qp->stage, mem_at(e, q->off), q->len, at))
				status = RR_WC_LOCAL;
			rr_local_count(qp, bytes_copied, q->len);
		}
		if (status != RR_WC_OK && !e->status)
			e->status = RR_WC_REM_ACCESS;
		rr_local_count(qp, bounce_bytes, q->len);
		qp->stage_tail = q->stage_end;
		e->reqs--;
	}
}

/** rr_local_move_serve - as the agent, carries out the peer's requests before number @until
 *
 * Return: false if one was refused; then the connection is dead, as with a NIC.
 */
bool rr_local_move_serve(struct local_qp *qp, uint32_t until)
{
	bool served = qp->req_taken != until;

	while (qp->req_taken != until) {
		struct shm_req *r = &qp->other->req[qp->req_taken % LOCAL_REQS];
		const volatile struct shm_req *v = r; /* read each word once: the peer may change it */
		struct shm_req q = { .write = v->write, .key = v->key, .addr = v->addr,
				     .off = v->off, .len = v->len };
		enum rr_wc_status status = RR_WC_REM_ACCESS;

		if (!qp->peer_stage)
			(void)rr_local_move_drain(qp); /* checked below */
		if (qp->phase != PHASE_UP)
			return false;
		if (!qp->peer_stage || q.len > LOCAL_REQ_BYTES ||
		    !range_fits(q.off, q.len, qp->peer_stage->size)) {
			rr_local_qp_hostile(qp);
			return false;
		}
		status = rr_local_mem_serve(qp, &q, qp->peer_stage);
		rr_local_count(qp, bytes_copied, q.len);
		atomic_store_explicit(&r->status, status, memory_order_relaxed);
		atomic_store(&qp->me->req_done, ++qp->req_taken);
		if (status != RR_WC_OK) {
			rr_local_qp_kill(qp); /* this rings */
			return false;
		}
	}
	if (served)
		rr_local_ring_bell(qp);
	return true;
}

/* ---- moving ---- */

/** rr_local_move - moves the bytes of an RDMA Read or Write
 * @qp: up
 * @e: the request; its SGE is checked; without bytes nothing is checked, as on a NIC
 * @ret_again: set if not all requests could be sent yet: call again
 *
 * Return: RR_WC_OK (e->reqs is the number of replies that are outstanding), RR_WC_REM_ACCESS,
 * RR_WC_LOST, RR_WC_LOCAL.
 */
enum rr_wc_status rr_local_move(struct local_qp *qp, struct local_sqe *e, bool *ret_again)
{
	bool write = e->wr.op != RR_WR_READ, ok = false;
	enum rr_wc_status status = RR_WC_REM_ACCESS;
	void *mem = e->wr.sge.addr;
	uint32_t len = e->wr.sge.len;
	struct peer_region *region;
	struct reach r;

	if (!len)
		return RR_WC_OK;
	if (!reach_begin(qp, e->wr.rkey, e->wr.raddr, len, write ? RR_ACCESS_REMOTE_WRITE : RR_ACCESS_REMOTE_READ,
			 BUSY_COPY, &r))
		return RR_WC_REM_ACCESS;
	region = r.place == PLACE_SLAB ? region_get(qp, r.region) : NULL;
	if (qp->phase != PHASE_UP) { /* the socket contained an invalid datagram */
		reach_end(&r);
		return RR_WC_LOST;
	}
	/* a transfer that began through the agent continues through it */
	if (e->handed || r.place == PLACE_AGENT || (r.place == PLACE_SLAB && !region)) {
		reach_end(&r); /* the agent checks the key itself */
		return ask_agent(qp, e, ret_again);
	}
	if (region) {
		ok = range_fits(r.off, len, region->map->size) &&
		     (write ? rr_local_map_write(region->map, mem, len, r.off)
			    : rr_local_map_read(region->map, mem, len, r.off));
		if (ok)
			rr_local_count(qp, slab_bytes, len);
	} else if (r.place == PLACE_VM && qp->my_vm) {
		/* another process may have a dead peer's pid; while the socket is connected the pid is the peer's */
		if (rr_local_sock_gone(qp->sock))
			status = RR_WC_LOST;
		else
			ok = rr_local_vm_copy(qp->peer.pid, mem, e->wr.raddr, len, write);
		if (ok)
			rr_local_count(qp, vm_bytes, len);
	}
	reach_end(&r);
	if (!ok)
		return status;
	rr_local_count(qp, bytes_copied, len);
	return RR_WC_OK;
}

/* ---- mapping ---- */

/* Makes room for more tokens. Return: false: no memory, or too many are in use */
static bool grow_direct(struct local_qp *qp)
{
	uint32_t room = qp->direct_room ? 2 * qp->direct_room : LOCAL_DIRECT_FIRST;
	struct local_direct *more;

	if (room > LOCAL_DIRECT_MAX)
		return false;
	more = realloc(qp->direct, room * sizeof(*more));
	if (!more)
		return false;
	for (uint32_t i = qp->direct_room; i < room; i++)
		more[i] = (struct local_direct){ .next = i + 1 < room ? i + 2 : 0 };
	qp->direct_free = qp->direct_room + 1;
	qp->direct = more;
	qp->direct_room = room;
	return true;
}

/** rr_local_qp_direct - maps peer memory for the kernel to write or read (fabric.h)
 *
 * Return: 0, -ENOTCONN, -EACCES if the key does not allow it, -EOPNOTSUPP if it is not in an accepted slab,
 * is not whole pages of it, or too many tokens are in use.
 */
int rr_local_qp_direct(struct rr_qp *base, uint32_t rkey, uint64_t raddr, uint32_t len,
		       unsigned access, void **ret_addr, uint32_t *ret_token)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct local_qp *qp = to_qp(base);
	struct peer_region *region;
	struct reach r;
	uint32_t slot;

	if (qp->phase != PHASE_UP)
		return -ENOTCONN;
	if (!qp->direct_free && !grow_direct(qp))
		return -EOPNOTSUPP;
	if (!reach_begin(qp, rkey, raddr, len, access, BUSY_PAGES, &r))
		return -EACCES;
	region = r.place == PLACE_SLAB ? region_get(qp, r.region) : NULL;
	/* during a disk operation the owner can replace only whole pages */
	if (!region || !range_fits(r.off, len, region->map->size) || (r.off | len) % page) {
		reach_end(&r);
		return -EOPNOTSUPP;
	}
	slot = qp->direct_free - 1;
	qp->direct_free = qp->direct[slot].next;
	region->refs++;
	qp->ndirect++;
	qp->direct[slot] = (struct local_direct){ .key = r.entry, .region = region };
	*ret_addr = (uint8_t *)region->map->addr + r.off;
	*ret_token = slot;
	return 0;
}

/** rr_local_qp_direct_end - the kernel no longer uses a mapping */
void rr_local_qp_direct_end(struct rr_qp *base, uint32_t token)
{
	struct local_qp *qp = to_qp(base);
	struct local_direct *d = &qp->direct[token];

	assert(token < qp->direct_room && d->key);
	atomic_fetch_sub(&d->key->busy, BUSY_PAGES);
	if (!--d->region->refs && d->region->gone)
		region_close(qp, d->region);
	d->key = NULL;
	d->next = qp->direct_free;
	qp->direct_free = token + 1;
	qp->ndirect--;
}

/** rr_local_move_fini - releases all memory received from the peer, and our bounce area */
void rr_local_move_fini(struct local_qp *qp)
{
	struct local_fabric *f = to_fabric(qp->base.fabric);

	assert(!qp->ndirect); /* the kernel may still be writing there */
	free(qp->direct);
	for (unsigned i = 0; i < LOCAL_REGIONS_MAX; i++)
		region_close(qp, &qp->region[i]);
	rr_local_map_put(f, qp->stage);
	rr_local_map_put(f, qp->peer_stage);
}

/** rr_local_qp_is_over - true if the peer has closed the connection, or its process has ended
 * @look: asks the kernel, too, which alone knows about a process that was killed
 */
bool rr_local_qp_is_over(struct rr_qp *base, bool look)
{
	const struct local_qp *qp = to_qp(base);

	return qp->phase != PHASE_UP || qp->peer_gone || atomic_load(&qp->other->closed) ||
	       (look && rr_local_sock_gone(qp->sock));
}
