/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_mem.c - regions and type 2B windows of the verbs fabric
 *
 * Operation:  A region is ibv_reg_mr(). A window pins nothing: it is a key over a region. The key lives
 *             from a posted bind to a posted (or remote) invalidation:
 *
 *                 free --(bind posted)--> bound --(LOCAL_INV posted | receive with_inv)--> free
 *
 *             The state changes at the post, since a queue pair carries out its requests in order.
 *             A second invalidation of one bind is refused here, because some kernels do not survive
 *             it (QUIRK_UNSAFE_INV). A user of windows must not post one while the peer may still
 *             send its own.
 * Memory:     A bound window is on its queue pair's list, by key, and is deallocated with it.
 * Threads:    Regions: any. Windows: the owner of the queue pair that they are bound to.
 * Errors:     The errno of the kernel: ENOMEM is also the limit of locked memory, EFAULT an unmapped or
 *             read-only page.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "verbs_int.h"

/* Converts our access rights to those of the library.
 *
 * On iWARP the peer writes to the sink of an RDMA Read (RFC 5040): LOCAL_WRITE implies REMOTE_WRITE there.
 */
static unsigned access_flags(const struct verbs_fabric *f, unsigned access)
{
	unsigned flags = 0;

	if (access & RR_ACCESS_LOCAL_WRITE)
		flags |= IBV_ACCESS_LOCAL_WRITE | (f->iwarp ? IBV_ACCESS_REMOTE_WRITE : 0u);
	if (access & RR_ACCESS_REMOTE_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	if (access & RR_ACCESS_REMOTE_WRITE)
		flags |= IBV_ACCESS_REMOTE_WRITE;
	if (access & RR_ACCESS_MW_BIND)
		flags |= IBV_ACCESS_MW_BIND;
	return flags;
}

static int reg(struct verbs_mr *mr, const struct rr_mr_attr *attr, unsigned access)
{
	unsigned flags = access_flags(to_fabric(mr->base.pd->fabric), access);

	mr->mr = attr->dmabuf ? ibv_reg_dmabuf_mr(to_pd(mr->base.pd)->pd, attr->fd_off, attr->len,
						  (uintptr_t)attr->addr, attr->fd, (int)flags)
			      : ibv_reg_mr(to_pd(mr->base.pd)->pd, attr->addr, attr->len, flags);
	if (!mr->mr)
		return verbs_err(errno);
	mr->base.access = access;
	return 0;
}

/** rr_verbs_mr_reg - registers memory; blocks while pages are pinned
 *
 * Memory that the peer only reads may be read-only: if that prevents the registration, it is registered
 * without LOCAL_WRITE; mr->access shows this.
 *
 * Return: 0, -ENOMEM, -EFAULT, -EOPNOTSUPP (dma-buf), errors of the device.
 */
int rr_verbs_mr_reg(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret)
{
	struct verbs_mr *mr = calloc(1, sizeof(*mr));
	int rc;

	if (!mr)
		return -ENOMEM;
	mr->base.pd = pd;
	mr->base.addr = attr->addr;
	mr->base.len = attr->len;
	rc = reg(mr, attr, attr->access);
	if (rc == -EFAULT && (attr->access & RR_ACCESS_LOCAL_WRITE) &&
	    (attr->access & RR_ACCESS_REMOTE) == RR_ACCESS_REMOTE_READ)
		rc = reg(mr, attr, attr->access & ~(unsigned)RR_ACCESS_LOCAL_WRITE);
	if (rc) {
		free(mr);
		return rc;
	}
	mr->base.rkey = attr->access & RR_ACCESS_REMOTE ? mr->mr->rkey : 0;
	*ret = &mr->base;
	return 0;
}

/** rr_verbs_mr_dereg - deregisters memory; after the return nothing accesses it
 *
 * Return: 0, -EBUSY while a window is bound over it.
 */
int rr_verbs_mr_dereg(struct rr_mr *base)
{
	struct verbs_mr *mr = to_mr(base);

	if (ibv_dereg_mr(mr->mr))
		return -EBUSY; /* some providers return EINVAL for this; there is no other reason */
	free(mr);
	return 0;
}

/** rr_verbs_mw_create - creates a window that is not bound
 *
 * Return: 0, -EOPNOTSUPP, -ENOMEM, errors of the device.
 */
int rr_verbs_mw_create(struct rr_pd *pd, struct rr_mw **ret)
{
	struct verbs_mw *mw;

	if (!pd->fabric->attr.windows)
		return -EOPNOTSUPP;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	mw->base.pd = pd;
	list_init(&mw->node);
	mw->mw = ibv_alloc_mw(to_pd(pd)->pd, IBV_MW_TYPE_2);
	if (!mw->mw) {
		int rc = verbs_err(errno);

		free(mw);
		return rc;
	}
	mw->base.rkey = mw->mw->rkey;
	*ret = &mw->base;
	return 0;
}

static void mw_dealloc(struct verbs_mw *mw)
{
	if (mw->mw)
		ibv_dealloc_mw(mw->mw);
	mw->mw = NULL;
	list_del(&mw->node);
}

/** rr_verbs_mw_destroy - destroys a window; invalidates a key that is still bound */
void rr_verbs_mw_destroy(struct rr_mw *base)
{
	struct verbs_mw *mw = to_mw(base);

	mw_dealloc(mw);
	free(mw);
}

static struct list *bucket(struct verbs_qp *qp, uint32_t rkey)
{
	return &qp->bound[(rkey >> 8) % VERBS_MW_BUCKETS];
}

/** rr_verbs_mw_find - returns the window that is bound to @qp under @rkey, or NULL */
struct verbs_mw *rr_verbs_mw_find(struct verbs_qp *qp, uint32_t rkey)
{
	list_for_each(node, bucket(qp, rkey)) {
		struct verbs_mw *mw = list_entry(node, struct verbs_mw, node);

		if (mw->base.rkey == rkey)
			return mw;
	}
	return NULL;
}

/** rr_verbs_mw_bind - fills in a bind request and marks the window as bound
 *
 * Return: 0, -EINVAL if it is bound already, was deallocated, or its new key is not the next one.
 */
int rr_verbs_mw_bind(struct verbs_qp *qp, const struct rr_wr *wr, struct ibv_send_wr *out)
{
	struct verbs_mw *mw = to_mw(wr->bind.mw);

	/* mw->rkey is the key that the device knows; it changes when the batch is posted, so a batch cannot contain two
	 * binds of one window */
	if (!mw->mw || list_is_linked(&mw->node) || mw->mw->rkey != mw->base.rkey ||
	    (wr->rkey & 0xffffff00u) != (mw->base.rkey & 0xffffff00u) || wr->rkey == mw->base.rkey)
		return -EINVAL;
	out->bind_mw.mw = mw->mw;
	out->bind_mw.rkey = wr->rkey;
	out->bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = to_mr(wr->bind.mr)->mr,
		.addr = (uintptr_t)wr->bind.addr,
		.length = wr->bind.len,
		.mw_access_flags = access_flags(to_fabric(qp->base.fabric), wr->bind.access) &
				   (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE),
	};
	mw->base.rkey = wr->rkey;
	list_add_tail(bucket(qp, wr->rkey), &mw->node);
	return 0;
}

/** rr_verbs_mw_free_all - deallocates bound windows, before their queue pair is destroyed */
void rr_verbs_mw_free_all(struct verbs_qp *qp)
{
	for (unsigned i = 0; i < VERBS_MW_BUCKETS; i++)
		list_for_each_safe(node, &qp->bound[i])
			mw_dealloc(list_entry(node, struct verbs_mw, node));
}
