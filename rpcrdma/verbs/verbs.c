/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs.c - the verbs fabric: an RDMA device, used through libibverbs and librdmacm
 *
 * Operation:  Implements fabric.h, which resembles verbs. Most of it is a thin layer over
 *             reliable-connected queue pairs in the port space RDMA_PS_TCP. It adds:
 *             - a mapping from completions to requests by slot, generation and index, never by a
 *               pointer that a device keeps (verbs_cq.c). The same counters refuse posts that would
 *               overrun a queue, which not every device detects;
 *             - an event channel of the fabric's own thread for established connections
 *               (verbs_events.c). When a peer or the device ends, the thread moves the queue pair to
 *               the error state. The posted receives then complete as flushed, which is the only
 *               notification that the owner gets;
 *             - the quirks of rxe, listed in verbs_int.h.
 *
 *             One fabric is one device. A caller that opens it by name has found the device of an
 *             address with rr_verbs_device_of(). A listener without a specific address also gets
 *             requests through other devices. These belong to a sibling: the fabric of that device,
 *             which the code that opened this fabric finds or opens.
 *
 *             A fabric opens the device itself. librdmacm opens each device once and keeps it open until the
 *             process ends, in children of fork() too. But rxe posts by write(2) to the device's descriptor, and
 *             the kernel refuses that (EACCES) unless the thread has the very credentials with which it was
 *             opened: a child has others, and so has a thread that changed its identity. A device with queues in
 *             mapped memory would find the parent's there. librdmacm's context serves to find the device alone.
 * Memory:     Objects belong to their creator. The device list of librdmacm lives as long as the fabric: it keeps the
 *             protection domain that librdmacm allocates for identifiers, also for a child.
 * Threads:    See fabric.h; verbs_int.h for the locks.
 * Errors:     Negated errno of the libraries. Without a device no library function is called: a check
 *             of /sys decides, so the libraries cannot print, load modules or wait.
 * See:        registration.md for what devices can and cannot do, design.md section 2 for the fabric interface.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_int.h"

#define SYS_DEVICES "/sys/class/infiniband"
#define RXE_VENDOR_ID 0xffffffu
#define QP_WR_MAX 16384u
#define RD_ATOM_MAX 128u /* the connection manager has eight bits for it */

int rr_verbs_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

/* ---- protection domains --------------------------------------------------------------------- */

static int verbs_pd_create(struct rr_fabric *fabric, struct rr_pd **ret)
{
	struct verbs_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return -ENOMEM;
	pd->base.fabric = fabric;
	pd->pd = ibv_alloc_pd(to_fabric(fabric)->ctx);
	if (!pd->pd) {
		int rc = verbs_err(errno);

		free(pd);
		return rc;
	}
	*ret = &pd->base;
	return 0;
}

static void verbs_pd_destroy(struct rr_pd *base)
{
	struct verbs_pd *pd = to_pd(base);

	(void)ibv_dealloc_pd(pd->pd); /* fails if the kernel still has an object in it */
	free(pd);
}

/* ---- what a NIC cannot do -------------------------------------------------------------------- */

static unsigned verbs_qp_withdraw(struct rr_qp *qp, uint32_t rkey)
{
	(void)qp;
	(void)rkey;
	return 0; /* deregistration and queue pair destruction wait for the device */
}

/* The event thread hears of the peer's end. */
static bool verbs_qp_is_over(struct rr_qp *qp, bool look)
{
	(void)look;
	return atomic_load(&to_qp(qp)->over);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void verbs_close(struct rr_fabric *fabric)
{
	struct verbs_fabric *f = to_fabric(fabric);

	rr_verbs_events_stop(f);
	assert(list_is_empty(&f->cqs));
	pthread_mutex_destroy(&f->lock);
	(void)ibv_close_device(f->ctx);
	rdma_free_devices(f->devices);
	free(f);
}

static const struct rr_fabric_ops fabric_verbs_ops = {
	.name = "verbs",
	.close = verbs_close,
	.abandon = rr_verbs_events_abandon,
	.pd_create = verbs_pd_create,
	.pd_destroy = verbs_pd_destroy,
	.mr_reg = rr_verbs_mr_reg,
	.mr_dereg = rr_verbs_mr_dereg,
	.mw_create = rr_verbs_mw_create,
	.mw_destroy = rr_verbs_mw_destroy,
	.cq_create = rr_verbs_cq_create,
	.cq_destroy = rr_verbs_cq_destroy,
	.cq_poll = rr_verbs_cq_poll,
	.cq_arm = rr_verbs_cq_arm,
	.srq_create = rr_verbs_srq_create,
	.srq_destroy = rr_verbs_srq_destroy,
	.srq_post = rr_verbs_srq_post,
	.cm_create = rr_verbs_cm_create,
	.cm_destroy = rr_verbs_cm_destroy,
	.cm_process = rr_verbs_cm_process,
	.listen = rr_verbs_listen,
	.unlisten = rr_verbs_unlisten,
	.qp_dial = rr_verbs_qp_dial,
	.qp_setup = rr_verbs_qp_setup,
	.qp_connect = rr_verbs_qp_connect,
	.qp_accept = rr_verbs_qp_accept,
	.qp_reject = rr_verbs_qp_reject,
	.qp_disconnect = rr_verbs_qp_disconnect,
	.qp_destroy = rr_verbs_qp_destroy,
	.post_send = rr_verbs_post_send,
	.post_recv = rr_verbs_post_recv,
	.qp_withdraw = verbs_qp_withdraw,
	.qp_is_over = verbs_qp_is_over,
};

/** rr_verbs_any_device - true if there is a device; checks /sys, since the libraries load modules and print */
bool rr_verbs_any_device(void)
{
	DIR *dir = opendir(SYS_DEVICES);
	const struct dirent *e;
	bool found = false;

	if (!dir)
		return false;
	while (!found && (e = readdir(dir)) != NULL)
		found = e->d_name[0] != '.';
	closedir(dir);
	return found;
}

/* Software devices are under /sys/devices/virtual. */
static bool is_software(const char *name)
{
	char path[sizeof(SYS_DEVICES) + IBV_SYSFS_NAME_MAX], real[PATH_MAX];

	snprintf(path, sizeof(path), SYS_DEVICES "/%s", name);
	return realpath(path, real) && strstr(real, "/virtual/");
}

static uint8_t active_port(struct ibv_context *ctx, const struct ibv_device_attr *dev)
{
	struct ibv_port_attr port;

	for (uint8_t i = 1; i <= dev->phys_port_cnt; i++)
		if (!ibv_query_port(ctx, i, &port) && port.state == IBV_PORT_ACTIVE)
			return i;
	return 0;
}

/* How good a choice the device is; 0: it cannot be used. */
static unsigned points_of(struct ibv_context *ctx)
{
	struct ibv_device_attr dev;

	if (ibv_query_device(ctx, &dev))
		return 0;
	return 1u + (active_port(ctx, &dev) ? 2 : 0) + (is_software(ibv_get_device_name(ctx->device)) ? 0 : 1);
}

/* Opens the device called @name; NULL: the best one. Return: 0, -ENODEV, or why the last one was not opened. */
static int open_device(struct ibv_context **devices, const char *name, struct ibv_context **ret)
{
	struct ibv_context *best = NULL;
	unsigned best_points = 0;
	int rc = -ENODEV;

	for (struct ibv_context **at = devices; *at; at++) {
		struct ibv_context *ctx;
		unsigned points = 1;

		if (name && strcmp(name, ibv_get_device_name((*at)->device)) != 0)
			continue;
		errno = 0;
		ctx = ibv_open_device((*at)->device);
		if (!ctx) {
			rc = verbs_err(errno);
			continue;
		}
		if (!name)
			points = points_of(ctx);
		if (points <= best_points) {
			(void)ibv_close_device(ctx);
			continue;
		}
		if (best)
			(void)ibv_close_device(best);
		best = ctx;
		best_points = points;
	}
	if (!best)
		return rc;
	*ret = best;
	return 0;
}

/* True if type 2B windows work, as far as a test allocation shows. */
static bool windows_work(const struct verbs_fabric *f, const struct ibv_device_attr *dev)
{
	struct ibv_pd *pd;
	struct ibv_mw *mw;

	if (!(dev->device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) || dev->max_mw <= 0)
		return false;
	pd = ibv_alloc_pd(f->ctx);
	if (!pd)
		return false;
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	if (mw)
		ibv_dealloc_mw(mw);
	ibv_dealloc_pd(pd);
	return mw != NULL;
}

static unsigned limit(int of_device, unsigned ours)
{
	return of_device > 0 ? MIN((unsigned)of_device, ours) : 1;
}

static int fill_attr(struct verbs_fabric *f, bool unsafe_inv)
{
	const char *name = ibv_get_device_name(f->ctx->device);
	struct ibv_device_attr dev;
	struct ibv_port_attr port;
	uint8_t active;
	bool inv_ok;
	int rc;

	rc = ibv_query_device(f->ctx, &dev);
	if (rc)
		return verbs_err(rc);
	active = active_port(f->ctx, &dev);
	rc = ibv_query_port(f->ctx, active ? active : 1, &port);
	if (rc)
		return verbs_err(rc);
	f->iwarp = f->ctx->device->transport_type == IBV_TRANSPORT_IWARP;
	if (dev.vendor_id == RXE_VENDOR_ID || !strncmp(name, "rxe", 3))
		f->quirks = QUIRK_WITH_INV_IS_4 | QUIRK_UNSAFE_INV;
	inv_ok = !(f->quirks & QUIRK_UNSAFE_INV) || unsafe_inv;
	f->base.attr = (struct rr_fabric_attr){
		.qp_wr_max = limit(dev.max_qp_wr, QP_WR_MAX),
		.srq_wr_max = dev.max_srq > 0 && !f->iwarp ? limit(dev.max_srq_wr, QP_WR_MAX) : 0,
		.rd_atom_max = limit(MIN(dev.max_qp_rd_atom, dev.max_qp_init_rd_atom), RD_ATOM_MAX),
		.msg_bytes_max = port.max_msg_sz,
		.windows = windows_work(f, &dev),
		.send_inv = inv_ok && (dev.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS),
		.remote_inv = inv_ok,
		.client_direct = false,
	};
	snprintf(f->base.attr.device, sizeof(f->base.attr.device), "%s", name);
	return 0;
}

int rr_verbs_open(const struct rr_verbs_attr *attr, struct rr_fabric **ret)
{
	struct verbs_fabric *f;
	int rc;

	if (!rr_verbs_any_device())
		return -ENODEV;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->base.ops = &fabric_verbs_ops;
	list_init(&f->cqs);
	pthread_mutex_init(&f->lock, NULL);
	f->sibling = attr->sibling;
	f->sibling_ctx = attr->ctx;
	errno = 0;
	f->devices = rdma_get_devices(NULL);
	if (!f->devices) {
		rc = errno == EACCES || errno == EPERM ? -EACCES : -ENODEV;
		goto out_free;
	}
	rc = open_device(f->devices, attr->device, &f->ctx);
	if (rc)
		goto out_devices;
	rc = fill_attr(f, attr->unsafe_inv);
	if (!rc)
		rc = rr_verbs_events_start(f);
	if (rc)
		goto out_ctx;
	*ret = &f->base;
	return 0;
out_ctx:
	(void)ibv_close_device(f->ctx);
out_devices:
	rdma_free_devices(f->devices);
out_free:
	pthread_mutex_destroy(&f->lock);
	free(f);
	return rc;
}
