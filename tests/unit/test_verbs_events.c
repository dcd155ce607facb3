/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_verbs_events.c - how queue pairs of the verbs fabric go, with libraries that are fakes
 *
 * With a device, and in all the ways in which a connection ends: tests/interop/verbs_fabric.c.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifndef HAVE_VERBS

int main(void)
{
	printf("no libibverbs and librdmacm in this build\n");
	return 77;
}

#else

#include "rpcrdma/verbs/verbs_events.c"

/* ---- the libraries ---- */

static struct verbs_fabric fabric;
static struct rdma_event_channel channel;
static struct ibv_qp device_qp;
static struct rdma_cm_id id;
static struct rdma_cm_event event;
static struct ibv_cq device_cq;
static struct ibv_comp_channel *rings;
static unsigned events, acked, moved, destroyed, ids_destroyed;
static int answer; /* of the kernel, when it is to destroy something */

int __wrap_rdma_get_cm_event(struct rdma_event_channel *ch, struct rdma_cm_event **ret);
int __wrap_rdma_ack_cm_event(struct rdma_cm_event *ev);
int __wrap_rdma_destroy_id(struct rdma_cm_id *of);
int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int __wrap_ibv_destroy_qp(struct ibv_qp *qp);
int __wrap_ibv_destroy_cq(struct ibv_cq *cq);
struct ibv_comp_channel *__wrap_ibv_create_comp_channel(struct ibv_context *ctx);
int __wrap_ibv_destroy_comp_channel(struct ibv_comp_channel *ch);

int __wrap_rdma_get_cm_event(struct rdma_event_channel *ch, struct rdma_cm_event **ret)
{
	assert_ptr_equal(ch, &channel);
	if (!events) {
		errno = EAGAIN;
		return -1;
	}
	events--;
	*ret = &event;
	return 0;
}

int __wrap_rdma_ack_cm_event(struct rdma_cm_event *ev)
{
	assert_ptr_equal(ev, &event);
	acked++;
	return 0;
}

int __wrap_ibv_destroy_qp(struct ibv_qp *qp)
{
	assert_ptr_equal(qp, &device_qp);
	assert_int_equal(ids_destroyed, 1); /* librdmacm may have its hands on it until then */
	destroyed++;
	return answer;
}

int __wrap_ibv_destroy_cq(struct ibv_cq *cq)
{
	assert_ptr_equal(cq, &device_cq);
	return answer;
}

struct ibv_comp_channel *__wrap_ibv_create_comp_channel(struct ibv_context *ctx)
{
	(void)ctx;
	rings = calloc(1, sizeof(*rings));
	assert_non_null(rings);
	rings->fd = eventfd(0, EFD_CLOEXEC);
	assert_true(rings->fd >= 0);
	return rings;
}

int __wrap_ibv_destroy_comp_channel(struct ibv_comp_channel *ch)
{
	assert_ptr_equal(ch, rings);
	close(ch->fd);
	free(ch);
	return 0;
}

int __wrap_rdma_destroy_id(struct rdma_cm_id *of)
{
	assert_ptr_equal(of, &id);
	ids_destroyed++;
	return 0;
}

int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	assert_ptr_equal(qp, &device_qp);
	assert_int_equal(attr->qp_state, IBV_QPS_ERR);
	assert_int_equal(mask, IBV_QP_STATE);
	moved++;
	return 0;
}

static struct verbs_qp *qp_of_device(void)
{
	struct verbs_qp *qp;

	acked = moved = destroyed = ids_destroyed = 0;
	id = (struct rdma_cm_id){ .qp = &device_qp };
	assert_int_equal(rr_verbs_qp_new(&fabric.base, &id, &qp), 0);
	device_qp.qp_context = qp;
	return qp;
}

/* ---- tests ---- */

static void the_identifier_goes_first(void **state)
{
	struct verbs_qp *qp = qp_of_device();

	(void)state;
	event = (struct rdma_cm_event){ .id = &id, .event = RDMA_CM_EVENT_REJECTED };
	events = 1;
	assert_true(take_cm_events(&fabric));
	assert_int_equal(moved, 1);
	assert_int_equal(acked, 1);
	rr_verbs_qp_destroy(&qp->base);
	assert_int_equal(destroyed, 1);
	assert_int_equal(ids_destroyed, 1);
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* What has gone here and not at the device: its events find what they name. */
static void what_the_kernel_keeps(void **state)
{
	struct ibv_async_event fatal = { .event_type = IBV_EVENT_QP_FATAL,
					 .element = { .qp = &device_qp } };
	struct ibv_async_event overrun = { .event_type = IBV_EVENT_CQ_ERR,
					   .element = { .cq = &device_cq } };
	struct verbs_qp *qp = qp_of_device();
	struct rr_cq *cq;

	(void)state;
	assert_int_equal(rr_verbs_cq_create(&fabric.base, &cq), 0);
	to_cq(cq)->parts[0].cq = &device_cq;
	atomic_store(&to_cq(cq)->nparts, 1);
	device_cq.cq_context = to_cq(cq);

	answer = EBUSY;
	rr_verbs_qp_destroy(&qp->base);
	assert_int_equal(destroyed, 1);
	assert_int_equal(ids_destroyed, 1);
	async_event(&fabric, &fatal);
	assert_int_equal(moved, 0);

	rr_verbs_cq_destroy(cq);
	assert_true(list_is_empty(&fabric.cqs));
	assert_false(is_readable(cq->fd));
	async_event(&fabric, &overrun);
	assert_true(is_readable(cq->fd));

	answer = 0;
	rr_verbs_cq_destroy(cq);
	free(qp);
}

static int init(void **state)
{
	(void)state;
	list_init(&fabric.cqs);
	pthread_mutex_init(&fabric.lock, NULL);
	fabric.up_channel = &channel;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_identifier_goes_first),
		cmocka_unit_test(what_the_kernel_keeps),
	};

	return cmocka_run_group_tests(tests, init, NULL);
}

#endif
