/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_mem.c - the local fabric's memory, on the owner's side: keys, registrations, windows
 *
 * Operation:  A protection domain has one key space. A key consists of the slot, the domain's salt, and
 *             eight bits that change with every use of the slot. So a key of one domain is invalid in
 *             another, and a freed key is not reused before all other slots.
 *             pd->keys is authoritative. Peers read a copy in the shared area of each queue pair
 *             (publish); a window is published to its one queue pair only.
 *             Invalidating a key: mark it invalid here, clear the copies. After that no access by it
 *             begins. mr_dereg, LOCAL_INV and a peer's invalidation all do this. An access in progress
 *             is marked busy in the copy. A correct peer ends it before it replies to the call, so
 *             only memory of a call without a reply has to be checked: rr_local_qp_withdraw().
 *             Nothing here waits for a mark: a peer's disk may take hours.
 *             The side that accepted the connection does not let its peer access its memory: it copies
 *             by itself, as the agent. So a server does not depend on the marks of its clients.
 *             rr_local_mem_serve() is the other access path: the peer requests a copy.
 * Memory:     Registrations hold no reference on the user's pages.
 *             A memfd slab is duplicated once per domain. A peer receives it when its first key is
 *             published there, unless that exceeds the bytes that the peer accepts: then it is
 *             ordinary memory for that peer.
 * Threads:    pd->lock covers all of it. Serving copies under the lock, so a deregistration by
 *             another thread waits.
 * Errors:     A peer that sets a false mark delays only the calls of its own connection.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "local_int.h"

/* ---- keys ---- */

static uint32_t key_slot(const struct local_pd *pd, uint32_t key)
{
	return key >> 8 & ((1u << pd->key_bits) - 1);
}

static struct local_key *find_key(struct local_pd *pd, uint32_t key)
{
	uint32_t slot = key_slot(pd, key);

	if (!slot || slot >= pd->nkeys || !pd->keys[slot].valid || pd->keys[slot].key != key)
		return NULL;
	return &pd->keys[slot];
}

static int take_slot(struct local_pd *pd, uint32_t *ret_slot)
{
	uint32_t slot = pd->free_head;
	struct local_key *k;

	if (!slot)
		return -ENOMEM;
	k = &pd->keys[slot];
	pd->free_head = k->next_free;
	if (!pd->free_head)
		pd->free_tail = 0;
	k->key = rr_mw_next_rkey(k->key);
	*ret_slot = slot;
	return 0;
}

static void give_slot(struct local_pd *pd, uint32_t slot)
{
	struct local_key *k = &pd->keys[slot];

	*k = (struct local_key){ .key = k->key };
	if (pd->free_tail)
		pd->keys[pd->free_tail].next_free = slot;
	else
		pd->free_head = slot;
	pd->free_tail = slot;
}

/** rr_local_pd_create - creates a protection domain with an empty key space
 *
 * Return: 0 or -ENOMEM.
 */
int rr_local_pd_create(struct rr_fabric *fabric, struct rr_pd **ret)
{
	struct local_fabric *f = to_fabric(fabric);
	struct local_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return -ENOMEM;
	pd->base.fabric = fabric;
	pd->nkeys = f->attr.limits.keys_max + 1; /* slot 0 is unused: no key is 0 */
	while (1u << pd->key_bits < pd->nkeys)
		pd->key_bits++;
	pd->keys = calloc(pd->nkeys, sizeof(*pd->keys));
	if (!pd->keys) {
		free(pd);
		return -ENOMEM;
	}
	pthread_mutex_init(&pd->lock, NULL);
	list_init(&pd->qps);
	list_init(&pd->mrs);
	pd->salt = atomic_fetch_add(&f->next_salt, 1);
	for (unsigned i = 0; i < LOCAL_REGIONS_MAX; i++)
		pd->region[i].fd = -1;
	for (uint32_t slot = 1; slot < pd->nkeys; slot++) {
		pd->keys[slot].key = (pd->salt << pd->key_bits | slot) << 8 | (pd->salt & 0xff);
		give_slot(pd, slot);
	}
	*ret = &pd->base;
	return 0;
}

/** rr_local_pd_destroy - destroys a domain after its registrations and queue pairs */
void rr_local_pd_destroy(struct rr_pd *base)
{
	struct local_pd *pd = to_pd(base);

	assert(list_is_empty(&pd->qps) && list_is_empty(&pd->mrs));
	for (unsigned i = 0; i < LOCAL_REGIONS_MAX; i++)
		assert(pd->region[i].fd < 0);
	pthread_mutex_destroy(&pd->lock);
	free(pd->keys);
	free(pd);
}

/* ---- slabs ---- */

static int get_region(struct local_pd *pd, const struct rr_mr_attr *attr, unsigned *ret)
{
	struct local_fabric *f = to_fabric(pd->base.fabric);
	unsigned at = LOCAL_REGIONS_MAX;
	struct statfs fs;
	struct stat st;

	*ret = LOCAL_REGIONS_MAX;
	/* memory of huge pages is not a slab: it is ordinary memory for peers */
	if (!fstatfs(attr->fd, &fs) && fs.f_type == HUGETLBFS_MAGIC)
		return 0;
	if (fstat(attr->fd, &st) || !rr_local_memfd_ok(attr->fd, (uint64_t)st.st_size) ||
	    !range_fits(attr->fd_off, attr->len, (uint64_t)st.st_size))
		return -EINVAL;
	for (unsigned i = 0; i < LOCAL_REGIONS_MAX; i++) {
		struct local_region *r = &pd->region[i];

		if (r->fd < 0) {
			at = MIN(at, i);
		} else if (r->dev == st.st_dev && r->ino == st.st_ino) {
			r->refs++;
			*ret = i;
			return 0;
		}
	}
	if (at == LOCAL_REGIONS_MAX) /* too many slabs: also ordinary memory */
		return 0;
	*ret = at;
	pd->region[at] = (struct local_region){
		.fd = fcntl(attr->fd, F_DUPFD_CLOEXEC, 0),
		.id = atomic_fetch_add(&f->next_region, 1),
		.dev = st.st_dev, .ino = st.st_ino, .size = (uint64_t)st.st_size, .refs = 1,
	};
	return pd->region[at].fd < 0 ? -errno : 0;
}

static bool tell_region(struct local_qp *qp, const struct local_region *r, enum hs_type type)
{
	struct hs_msg hs = { .magic = HS_MAGIC, .version = HS_VERSION, .type = type,
			     .region = r->id, .size = r->size };

	return !rr_local_sock_send(qp->sock, &hs, &r->fd, type == HS_REGION ? 1 : 0);
}

static void put_region(struct local_pd *pd, unsigned idx)
{
	struct local_region *r = &pd->region[idx];

	if (idx == LOCAL_REGIONS_MAX || --r->refs)
		return;
	list_for_each(node, &pd->qps) {
		struct local_qp *qp = list_entry(node, struct local_qp, pd_node);

		/* a peer that cannot be informed still counts it against our limit */
		if (qp->regions_sent >> idx & 1 && tell_region(qp, r, HS_REGION_GONE))
			qp->regions_sent_bytes -= r->size;
		qp->regions_sent &= ~(UINT64_C(1) << idx);
	}
	close(r->fd);
	r->fd = -1;
}

/* ---- the copies that peers read ---- */

/* True if the peer has the slab or can receive it. */
static bool share_region(struct local_qp *qp, const struct local_region *r, unsigned idx)
{
	if (qp->regions_sent >> idx & 1)
		return true;
	if (!range_fits(qp->regions_sent_bytes, r->size, qp->peer_takes_bytes) ||
	    !tell_region(qp, r, HS_REGION))
		return false;
	qp->regions_sent |= UINT64_C(1) << idx;
	qp->regions_sent_bytes += r->size;
	return true;
}

static void publish(struct local_pd *pd, struct local_qp *qp, uint32_t slot)
{
	const struct local_key *k = &pd->keys[slot];
	struct shm_key *s = &qp->my_keys[slot];
	unsigned idx = k->mr->region;

	s->addr = k->addr;
	s->len = k->len;
	s->access = k->access;
	s->place = qp->peer_vm && !qp->passive && !to_fabric(pd->base.fabric)->attr.copy ? PLACE_VM : PLACE_AGENT;
	if (idx != LOCAL_REGIONS_MAX && !qp->passive && share_region(qp, &pd->region[idx], idx)) {
		s->place = PLACE_SLAB;
		s->region = pd->region[idx].id;
		s->off = k->mr->off + (k->addr - (uintptr_t)k->mr->base.addr);
	}
	atomic_store(&s->key, k->key);
}

/* After this no access by the entry of @slot begins. */
static void withdraw(struct local_qp *qp, uint32_t slot)
{
	atomic_store(&qp->my_keys[slot].key, 0);
}

/** rr_local_qp_withdraw - withdraws a key from a queue pair (fabric.h)
 *
 * Reads the place from the shared entry. A peer that forges it gains nothing: without any key it has the file
 * or access by address.
 *
 * Return: the accesses in progress.
 */
unsigned rr_local_qp_withdraw(struct rr_qp *base, uint32_t rkey)
{
	struct local_qp *qp = to_qp(base);
	const struct local_pd *pd = to_pd(base->pd);
	uint32_t slot = pd ? key_slot(pd, rkey) : 0, want = rkey, busy;
	const volatile struct shm_key *v;
	struct shm_key *s;

	if (!qp->attached || !slot || slot >= qp->my_nkeys)
		return 0;
	s = &qp->my_keys[slot];
	(void)atomic_compare_exchange_strong(&s->key, &want, 0); /* the slot may have a new key */
	busy = atomic_load(&s->busy);
	if (!busy || rr_local_sock_gone(qp->sock)) /* a process that has ended has no accesses */
		return 0;
	v = s;
	return RR_REACH_NOW | (v->place == PLACE_SLAB ? RR_REACH_FILE : 0u) |
	       (busy % BUSY_PAGES ? 0u : RR_REACH_PAGES);
}

static void end_window(struct local_pd *pd, struct local_key *k)
{
	k->valid = false;
	k->mr->windows--;
	withdraw(k->qp, (uint32_t)(k - pd->keys));
	k->mr = NULL;
	k->qp = NULL;
}

/** rr_local_mem_attach - a connection is up: publishes the existing registrations to its peer */
void rr_local_mem_attach(struct local_qp *qp)
{
	struct local_pd *pd = to_pd(qp->base.pd);

	pthread_mutex_lock(&pd->lock);
	list_add_tail(&pd->qps, &qp->pd_node);
	list_for_each(node, &pd->mrs)
		publish(pd, qp, list_entry(node, struct local_mr, node)->slot);
	pthread_mutex_unlock(&pd->lock);
}

/** rr_local_mem_detach - a connection ends: withdraws published keys, ends its windows */
void rr_local_mem_detach(struct local_qp *qp)
{
	struct local_pd *pd = to_pd(qp->base.pd);

	pthread_mutex_lock(&pd->lock);
	for (uint32_t slot = 1; slot < pd->nkeys; slot++) {
		struct local_key *k = &pd->keys[slot];

		if (!k->valid)
			continue;
		if (!k->mw)
			withdraw(qp, slot);
		else if (k->qp == qp)
			end_window(pd, k);
	}
	list_del(&qp->pd_node);
	pthread_mutex_unlock(&pd->lock);
}

/* ---- registrations ---- */

/* Checks what a NIC's driver finds by pinning: the range is mapped, and writable if necessary. */
static int check_range(const struct rr_mr_attr *attr)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)attr->addr & ~(page - 1), end;
	/* windows may be for writing, so the kernel requires writable memory where windows may be bound */
	int how = attr->access & (RR_ACCESS_LOCAL_WRITE | RR_ACCESS_MW_BIND) ? MADV_POPULATE_WRITE :
									       MADV_POPULATE_READ;

	if (__builtin_add_overflow((uintptr_t)attr->addr, attr->len, &end))
		return -EFAULT;
	end = (end - 1) & ~(page - 1);
	/* msync() fails for a hole in the middle; madvise() also checks both ends for being writable */
	if (msync((void *)start, end - start + page, MS_ASYNC) ||
	    madvise((void *)start, page, how) || madvise((void *)end, page, how))
		return -EFAULT;
	return 0;
}

/** rr_local_mr_reg - registers memory
 *
 * Return: 0, -ENOMEM (also when the key space is full), -EFAULT if the range is not
 * mapped or not writable, -EINVAL if attr->fd is not a sealed memfd that covers it, -EOPNOTSUPP for
 * a dma-buf: here the CPU moves data, and it must not access a dma-buf.
 */
int rr_local_mr_reg(struct rr_pd *base, const struct rr_mr_attr *attr, struct rr_mr **ret)
{
	struct local_pd *pd = to_pd(base);
	struct local_mr *mr;
	int rc;

	if (attr->dmabuf)
		return -EOPNOTSUPP;
	rc = check_range(attr);
	if (rc)
		return rc;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->base = (struct rr_mr){ .pd = base, .addr = attr->addr, .len = attr->len,
				   .access = attr->access };
	mr->region = LOCAL_REGIONS_MAX;
	mr->off = attr->fd_off;
	list_init(&mr->node);
	pthread_mutex_lock(&pd->lock);
	if (attr->access & (RR_ACCESS_REMOTE | RR_ACCESS_MW_BIND)) {
		if (attr->fd >= 0)
			rc = get_region(pd, attr, &mr->region);
		if (rc)
			goto out_unlock;
	}
	if (attr->access & RR_ACCESS_REMOTE) {
		struct local_key *k;

		rc = take_slot(pd, &mr->slot);
		if (rc) {
			put_region(pd, mr->region);
			goto out_unlock;
		}
		k = &pd->keys[mr->slot];
		k->addr = (uintptr_t)attr->addr;
		k->len = attr->len;
		k->access = attr->access;
		k->mr = mr;
		k->valid = true;
		mr->base.rkey = k->key;
		list_add_tail(&pd->mrs, &mr->node);
		list_for_each(node, &pd->qps)
			publish(pd, list_entry(node, struct local_qp, pd_node), mr->slot);
	}
	pthread_mutex_unlock(&pd->lock);
	atomic_fetch_add(&to_fabric(base->fabric)->regs, 1);
	*ret = &mr->base;
	return 0;

out_unlock:
	pthread_mutex_unlock(&pd->lock);
	free(mr);
	return rc;
}

/** rr_local_mr_dereg - deregisters memory; no access begins after it has returned
 *
 * Return: 0, -EBUSY while a window is bound over it.
 */
int rr_local_mr_dereg(struct rr_mr *base)
{
	struct local_mr *mr = to_mr(base);
	struct local_pd *pd = to_pd(base->pd);

	pthread_mutex_lock(&pd->lock);
	if (mr->windows) {
		pthread_mutex_unlock(&pd->lock);
		return -EBUSY;
	}
	if (mr->slot) {
		pd->keys[mr->slot].valid = false;
		list_for_each(node, &pd->qps)
			withdraw(list_entry(node, struct local_qp, pd_node), mr->slot);
		list_del(&mr->node);
		give_slot(pd, mr->slot);
	}
	put_region(pd, mr->region);
	pthread_mutex_unlock(&pd->lock);
	atomic_fetch_add(&to_fabric(pd->base.fabric)->deregs, 1);
	free(mr);
	return 0;
}

/* ---- windows ---- */

/** rr_local_mw_create - creates a window that is not bound
 *
 * Return: 0, -ENOMEM (also when the key space is full), -EOPNOTSUPP.
 */
int rr_local_mw_create(struct rr_pd *base, struct rr_mw **ret)
{
	struct local_pd *pd = to_pd(base);
	struct local_mw *mw;
	int rc;

	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	mw->base.pd = base;
	pthread_mutex_lock(&pd->lock);
	rc = take_slot(pd, &mw->slot);
	if (!rc) {
		pd->keys[mw->slot].mw = mw;
		mw->base.rkey = pd->keys[mw->slot].key;
	}
	pthread_mutex_unlock(&pd->lock);
	if (rc) {
		free(mw);
		return rc;
	}
	*ret = &mw->base;
	return 0;
}

/** rr_local_mw_destroy - destroys a window; invalidates a key that is still bound */
void rr_local_mw_destroy(struct rr_mw *base)
{
	struct local_mw *mw = to_mw(base);
	struct local_pd *pd = to_pd(base->pd);

	pthread_mutex_lock(&pd->lock);
	if (pd->keys[mw->slot].valid)
		end_window(pd, &pd->keys[mw->slot]);
	give_slot(pd, mw->slot);
	pthread_mutex_unlock(&pd->lock);
	free(mw);
}

static bool bind_ok(const struct local_pd *pd, const struct local_key *k, const struct rr_wr *wr)
{
	const struct rr_mr *mr = wr->bind.mr;
	const struct local_mw *mw = to_mw(wr->bind.mw);
	unsigned access = wr->bind.access;
	uint64_t off;

	if (k->valid || k->mw != mw || key_slot(pd, wr->rkey) != mw->slot || (wr->rkey ^ k->key) >> 8)
		return false;
	if (mr->pd != &pd->base || !(mr->access & RR_ACCESS_MW_BIND) ||
	    !(access & RR_ACCESS_REMOTE) || access & ~(unsigned)RR_ACCESS_REMOTE ||
	    (access & RR_ACCESS_REMOTE_WRITE && !(mr->access & RR_ACCESS_LOCAL_WRITE)))
		return false;
	return wr->bind.len && sub_u64((uintptr_t)wr->bind.addr, (uintptr_t)mr->addr, &off) &&
	       range_fits(off, wr->bind.len, mr->len);
}

/** rr_local_mem_bind - executes a BIND of @qp's send queue
 *
 * Return: RR_WC_OK, or RR_WC_LOCAL: still bound, or beyond the region or its rights.
 */
enum rr_wc_status rr_local_mem_bind(struct local_qp *qp, const struct rr_wr *wr)
{
	struct local_pd *pd = to_pd(qp->base.pd);
	uint32_t slot = to_mw(wr->bind.mw)->slot;
	enum rr_wc_status status = RR_WC_LOCAL;
	struct local_key *k;

	if (wr->bind.mw->pd != &pd->base)
		return RR_WC_LOCAL;
	pthread_mutex_lock(&pd->lock);
	k = &pd->keys[slot];
	if (bind_ok(pd, k, wr)) {
		k->key = wr->rkey;
		k->mr = to_mr(wr->bind.mr);
		k->qp = qp;
		k->addr = (uintptr_t)wr->bind.addr;
		k->len = wr->bind.len;
		k->access = wr->bind.access;
		k->valid = true;
		k->mr->windows++;
		publish(pd, qp, slot);
		status = RR_WC_OK;
	}
	pthread_mutex_unlock(&pd->lock);
	return status;
}

/** rr_local_mem_invalidate - ends the bind of @key, on our request or the peer's
 *
 * Return: true if it was the valid key of a window bound to @qp; anything else is an error.
 */
bool rr_local_mem_invalidate(struct local_qp *qp, uint32_t key)
{
	struct local_pd *pd = to_pd(qp->base.pd);
	struct local_key *k;
	bool ok;

	pthread_mutex_lock(&pd->lock);
	k = find_key(pd, key);
	ok = k && k->mw && k->qp == qp;
	if (ok)
		end_window(pd, k);
	pthread_mutex_unlock(&pd->lock);
	return ok;
}

/* Copies to or from the current pages of an address. */
static bool copy_mr(const struct local_pd *pd, const struct local_mr *mr, const struct shm_req *req,
		    const struct local_map *stage)
{
	const struct rr_local_attr *attr = &to_fabric(pd->base.fabric)->attr;
	void *mem = (void *)(uintptr_t)req->addr;

	if (unlikely(attr->copy))
		return attr->copy(&mr->base, stage->fd, req->addr, req->off, req->len, req->write);
	return req->write ? rr_local_map_read(stage, mem, req->len, req->off)
			  : rr_local_map_write(stage, mem, req->len, req->off);
}

/** rr_local_mem_serve - copies between our memory and the bounce area for the peer
 * @qp: of the peer that sent the request
 * @req: a private copy; off and len are checked
 * @stage: the peer's bounce area
 *
 * Return: RR_WC_OK or RR_WC_REM_ACCESS, for the peer.
 */
enum rr_wc_status rr_local_mem_serve(struct local_qp *qp, const struct shm_req *req,
				     const struct local_map *stage)
{
	struct local_pd *pd = to_pd(qp->base.pd);
	enum rr_wc_status status = RR_WC_REM_ACCESS;
	unsigned need = req->write ? RR_ACCESS_REMOTE_WRITE : RR_ACCESS_REMOTE_READ;
	const struct local_key *k;
	uint64_t off;

	pthread_mutex_lock(&pd->lock);
	k = find_key(pd, req->key);
	if (k && (!k->mw || k->qp == qp) && k->access & need &&
	    sub_u64(req->addr, k->addr, &off) && range_fits(off, req->len, k->len) &&
	    copy_mr(pd, k->mr, req, stage))
		status = RR_WC_OK;
	pthread_mutex_unlock(&pd->lock);
	return status;
}
