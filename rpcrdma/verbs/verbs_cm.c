/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_cm.c - the verbs fabric's connection manager, using librdmacm
 *
 * Operation:  active                                   passive
 *             qp_dial: reserved port; resolve          listen
 *             address, then route
 *             ROUTED
 *             qp_connect: rdma_connect       ----->    REQUEST
 *             ESTABLISHED                    <-----    qp_accept: rdma_accept
 *             FAILED                         <-----    qp_reject
 *
 *             A queue pair's events arrive on its manager's channel until it is established. Then it
 *             moves to the fabric's channel (verbs_events.c), which has its own thread. After that the
 *             manager may be destroyed, like that of a listener, and its connections live on.
 *
 *             An event is copied and acknowledged before the callback runs. The callback may destroy
 *             the event's object, and the library's destructor waits for acknowledgements.
 * Memory:     The callback's owner destroys a queue pair that was reported to it.
 * Threads:    The manager's.
 * Errors:     Errors of the network as errno: refused, unreachable, timed out. A peer behind another
 *             device than the fabric's is -ENXIO; a request through another device goes to its fabric.
 * See:        RFC 8166 section 5; protocol.md section 3.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_int.h"

#define EVENTS_PER_PROCESS 64
#define RESOLVE_MS 5000
#define BACKLOG 128
#define RETRIES 7 /* of a lost packet; after about that time the path is lost */

/** rr_verbs_channel - creates a non-blocking event channel
 *
 * Return: 0, -ENODEV if the kernel has no user-space connection manager, -EMFILE, -ENOMEM.
 */
int rr_verbs_channel(struct rdma_event_channel **ret)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int rc;

	if (!channel)
		return errno == ENOENT ? -ENODEV : verbs_err(errno);
	rc = rr_verbs_nonblock(channel->fd);
	if (rc) {
		rdma_destroy_event_channel(channel);
		return rc;
	}
	*ret = channel;
	return 0;
}

/** rr_verbs_cm_create - creates a source of connection events
 *
 * Return: 0, -ENOMEM, -EMFILE.
 */
int rr_verbs_cm_create(struct rr_fabric *fabric, rr_cm_fn fn, void *ctx, struct rr_cm **ret)
{
	struct verbs_cm *cm = calloc(1, sizeof(*cm));
	int rc;

	if (!cm)
		return -ENOMEM;
	cm->base = (struct rr_cm){ .fabric = fabric, .fn = fn, .ctx = ctx };
	list_init(&cm->qps);
	rc = rr_verbs_channel(&cm->channel);
	if (rc) {
		free(cm);
		return rc;
	}
	cm->base.fd = cm->channel->fd;
	*ret = &cm->base;
	return 0;
}

static int move_up(struct verbs_qp *qp)
{
	if (rdma_migrate_id(qp->id, to_fabric(qp->base.fabric)->up_channel))
		return verbs_err(errno);
	list_del(&qp->cm_node);
	return 0;
}

/** rr_verbs_cm_destroy - the listeners are closed; queue pairs that are not established can only be destroyed */
void rr_verbs_cm_destroy(struct rr_cm *base)
{
	struct verbs_cm *cm = to_cm(base);

	list_for_each_safe(node, &cm->qps) {
		struct verbs_qp *qp = list_entry(node, struct verbs_qp, cm_node);

		qp->phase = PHASE_OVER;
		(void)move_up(qp);
		list_del(&qp->cm_node);
	}
	rdma_destroy_event_channel(cm->channel);
	free(cm);
}

/* ---- listening and dialling ------------------------------------------------------------------------ */

static void describe(struct rdma_cm_id *id, struct rr_peer *peer)
{
	const struct sockaddr *sa = rdma_get_peer_addr(id);

	memcpy(&peer->addr, sa, sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	rr_addr_print_socket(&peer->addr, peer->text, sizeof(peer->text));
}

/** rr_verbs_listen - listens at an address of a device, or at all addresses; port 0: selects a free one
 *
 * Return: 0, -EADDRINUSE, -EADDRNOTAVAIL or -ENODEV for an address that no device has, -EINVAL.
 */
int rr_verbs_listen(struct rr_cm *base, const char *addr, void *ctx, struct rr_listener **ret)
{
	struct verbs_cm *cm = to_cm(base);
	struct verbs_listener *l;
	struct sockaddr_storage ss;
	int rc, on = 1;

	rc = rr_verbs_addr_parse(addr, true, &ss);
	if (rc)
		return rc;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->base = (struct rr_listener){ .cm = base, .ctx = ctx };
	if (rdma_create_id(cm->channel, &l->id, l, RDMA_PS_TCP)) {
		rc = verbs_err(errno);
		free(l);
		return rc;
	}
	/* optional: without the first a restart must wait, without the second one socket serves IPv4 and IPv6 */
	(void)rdma_set_option(l->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on));
	if (ss.ss_family == AF_INET6)
		(void)rdma_set_option(l->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on));
	if (rdma_bind_addr(l->id, (struct sockaddr *)&ss) || rdma_listen(l->id, BACKLOG)) {
		rc = verbs_err(errno);
		rr_verbs_unlisten(&l->base);
		return rc;
	}
	l->base.port = ntohs(rdma_get_src_port(l->id));
	l->base.any_device = rr_verbs_addr_is_any(&ss);
	*ret = &l->base;
	return 0;
}

/** rr_verbs_unlisten - stops listening; rejects requests that were not reported yet */
void rr_verbs_unlisten(struct rr_listener *base)
{
	struct verbs_listener *l = container_of(base, struct verbs_listener, base);

	(void)rdma_destroy_id(l->id);
	free(l);
}

/** rr_verbs_qp_dial - starts to resolve a route to "host:port"; ROUTED or FAILED follows
 *
 * Return: 0, -EINVAL, -EHOSTUNREACH for an unknown name, -ENODEV if no device has a route, -ENOMEM.
 */
int rr_verbs_qp_dial(struct rr_cm *base, const char *addr, struct rr_trust *trust,
		     struct rr_qp **ret)
{
	struct verbs_cm *cm = to_cm(base);
	struct sockaddr_storage ss;
	struct rdma_cm_id *id;
	struct verbs_qp *qp;
	int rc = rr_verbs_addr_parse(addr, false, &ss);

	(void)trust; /* only for UNIX sockets */
	if (rc)
		return rc;
	if (rdma_create_id(cm->channel, &id, NULL, RDMA_PS_TCP))
		return verbs_err(errno);
	rc = rr_verbs_qp_new(base->fabric, id, &qp);
	if (rc) {
		(void)rdma_destroy_id(id);
		return rc;
	}
	qp->phase = PHASE_RESOLVING;
	list_add_tail(&cm->qps, &qp->cm_node);
	rr_verbs_bind_resv(id, &ss);
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&ss, RESOLVE_MS)) {
		rc = verbs_err(errno);
		rr_verbs_qp_destroy(&qp->base);
		return rc;
	}
	*ret = &qp->base;
	return 0;
}

/* ---- handshake ---------------------------------------------------------------------------------------- */

static void fill_param(const struct verbs_qp *qp, const struct rr_conn_param *in,
		       struct rdma_conn_param *out)
{
	*out = (struct rdma_conn_param){
		.private_data = in->priv,
		.private_data_len = (uint8_t)in->priv_len,
		.initiator_depth = (uint8_t)MIN(in->initiator_depth, 255u),
		.responder_resources = (uint8_t)MIN(in->responder_resources, 255u),
		.retry_count = RETRIES,
		/* each side tells the other how often to retry: credits guarantee a posted receive, but a shared queue
		 * may be empty for a while. 7 is unlimited */
		.rnr_retry_count = qp->base.srq ? 7 : 0,
		.srq = qp->base.srq != NULL,
	};
}

/** rr_verbs_qp_connect - sends a request to the dialled peer; ESTABLISHED or FAILED follows
 *
 * Return: 0, -ENOTCONN if it is not routed, errors of the device.
 */
int rr_verbs_qp_connect(struct rr_qp *base, const struct rr_conn_param *param)
{
	struct verbs_qp *qp = to_qp(base);
	struct rdma_conn_param cp;

	if (qp->phase != PHASE_ROUTED || qp->passive)
		return -ENOTCONN;
	fill_param(qp, param, &cp);
	if (rdma_connect(qp->id, &cp))
		return verbs_err(errno);
	qp->phase = PHASE_ASKED;
	return 0;
}

static void set_up(struct verbs_qp *qp)
{
	atomic_store(&qp->up, true);
	atomic_fetch_sub(&to_cq(qp->base.cq)->unconnected, 1);
}

/** rr_verbs_qp_accept - accepts a REQUEST; messages may complete before this returns
 *
 * Return: 0, -ENOTCONN if it was accepted or rejected already, errors of the device, also if the peer has gone.
 */
int rr_verbs_qp_accept(struct rr_qp *base, const struct rr_conn_param *param)
{
	struct verbs_qp *qp = to_qp(base);
	struct rdma_conn_param cp;
	int rc;

	if (qp->phase != PHASE_ROUTED || !qp->passive)
		return -ENOTCONN;
	fill_param(qp, param, &cp);
	rc = move_up(qp);
	if (rc)
		return rc;
	/* completions wait for the lock: after a failed accept none may be delivered. After the unlock the owner has
	 * the queue pair, and may destroy it */
	pthread_mutex_lock(&qp->lock);
	qp->phase = PHASE_OVER;
	if (rdma_accept(qp->id, &cp))
		rc = verbs_err(errno);
	else
		set_up(qp);
	pthread_mutex_unlock(&qp->lock);
	return rc;
}

/** rr_verbs_qp_reject - rejects a REQUEST
 *
 * Return: 0, -ENOTCONN if it was accepted or rejected already, errors of the device.
 */
int rr_verbs_qp_reject(struct rr_qp *base)
{
	struct verbs_qp *qp = to_qp(base);

	if (qp->phase != PHASE_ROUTED || !qp->passive)
		return -ENOTCONN;
	qp->phase = PHASE_OVER;
	return rdma_reject(qp->id, NULL, 0) ? verbs_err(errno) : 0;
}

/* ---- events ------------------------------------------------------------------------------------------- */

/* Copy of an event, used after its acknowledgement. */
struct copy {
	enum rdma_cm_event_type event;
	struct rdma_cm_id *id, *listen_id;
	int status;
	unsigned initiator_depth, responder_resources;
	size_t priv_len;
	uint8_t priv[VERBS_PRIV_MAX];
};

static void take_copy(const struct rdma_cm_event *ev, struct copy *c)
{
	c->event = ev->event;
	c->id = ev->id;
	c->listen_id = ev->listen_id;
	c->status = ev->status;
	c->initiator_depth = ev->param.conn.initiator_depth;
	c->responder_resources = ev->param.conn.responder_resources;
	c->priv_len = 0;
	if (ev->event != RDMA_CM_EVENT_CONNECT_REQUEST && ev->event != RDMA_CM_EVENT_ESTABLISHED)
		return;
	c->priv_len = MIN((size_t)ev->param.conn.private_data_len, sizeof(c->priv));
	if (c->priv_len)
		memcpy(c->priv, ev->param.conn.private_data, c->priv_len);
}

static int status_of(const struct copy *c)
{
	switch (c->event) {
	case RDMA_CM_EVENT_REJECTED:
		return -ECONNREFUSED; /* status is the reason: no listener, or rejected */
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -ENODEV;
	default: /* no address, no route, no reply: status is an errno, or a reason code of the protocol */
		return c->status < 0 ? c->status : -EHOSTUNREACH;
	}
}

static void report(struct verbs_cm *cm, struct verbs_qp *qp, enum rr_cm_event_type type, int status,
		   const struct copy *c)
{
	struct rr_cm_event ev = {
		.type = type,
		.qp = &qp->base,
		.listener_ctx = qp->listener_ctx,
		.status = status,
		.priv = c->priv,
		.priv_len = c->priv_len,
		.initiator_depth = c->initiator_depth,
		.responder_resources = c->responder_resources,
		.peer = &qp->peer,
	};

	cm->base.fn(cm->base.ctx, &ev);
}

static void fail(struct verbs_cm *cm, struct verbs_qp *qp, int status, const struct copy *c)
{
	qp->phase = PHASE_OVER;
	report(cm, qp, RR_CM_FAILED, status, c);
}

/* Finds the fabric of the device that a request came through: a listener on all addresses gets all requests. */
static int fabric_of(const struct verbs_fabric *f, const struct rdma_cm_id *id, struct rr_fabric **ret)
{
	struct rr_fabric *sibling;
	int rc;

	if (!f->sibling || !id->verbs)
		return -ENXIO;
	rc = f->sibling(f->sibling_ctx, ibv_get_device_name(id->verbs->device), &sibling);
	if (!rc && !is_device_of(to_fabric(sibling), id))
		rc = -ENXIO; /* the device was replaced by another one with its name */
	if (!rc)
		*ret = sibling;
	return rc;
}

static void refuse(struct verbs_cm *cm, struct verbs_listener *l, const struct copy *c, int status)
{
	struct rr_peer peer = { 0 };
	const struct rr_cm_event ev = {
		.type = RR_CM_REFUSED,
		.listener_ctx = l->base.ctx,
		.status = status,
		.peer = &peer,
	};

	describe(c->id, &peer);
	(void)rdma_reject(c->id, NULL, 0); /* it may have ended already */
	(void)rdma_destroy_id(c->id);
	cm->base.fn(cm->base.ctx, &ev);
}

static void on_request(struct verbs_cm *cm, const struct copy *c)
{
	struct verbs_listener *l = c->listen_id->context;
	struct rr_fabric *fabric = cm->base.fabric;
	struct verbs_qp *qp;
	int rc = 0;

	/* its context and channel are those of the listener */
	if (!is_device_of(to_fabric(fabric), c->id))
		rc = fabric_of(to_fabric(fabric), c->id, &fabric);
	if (!rc)
		rc = rr_verbs_qp_new(fabric, c->id, &qp);
	if (rc) {
		refuse(cm, l, c, rc);
		return;
	}
	qp->passive = true;
	qp->phase = PHASE_ROUTED;
	qp->listener_ctx = l->base.ctx;
	describe(c->id, &qp->peer);
	list_add_tail(&cm->qps, &qp->cm_node);
	report(cm, qp, RR_CM_REQUEST, 0, c);
}

static void on_active(struct verbs_cm *cm, struct verbs_qp *qp, const struct copy *c)
{
	int rc = 0;

	if (c->event == RDMA_CM_EVENT_ADDR_RESOLVED && qp->phase == PHASE_RESOLVING) {
		if (!is_device_of(to_fabric(cm->base.fabric), c->id))
			rc = -ENXIO; /* the route has changed since the device was chosen */
		else if (rdma_resolve_route(c->id, RESOLVE_MS))
			rc = verbs_err(errno);
		if (rc)
			fail(cm, qp, rc, c);
	} else if (c->event == RDMA_CM_EVENT_ROUTE_RESOLVED && qp->phase == PHASE_RESOLVING) {
		qp->phase = PHASE_ROUTED;
		describe(c->id, &qp->peer);
		report(cm, qp, RR_CM_ROUTED, 0, c);
	} else if (c->event == RDMA_CM_EVENT_ESTABLISHED && qp->phase == PHASE_ASKED) {
		rc = move_up(qp);
		if (rc) {
			fail(cm, qp, rc, c);
			return;
		}
		qp->phase = PHASE_OVER;
		set_up(qp);
		report(cm, qp, RR_CM_ESTABLISHED, 0, c);
	} else {
		fail(cm, qp, status_of(c), c);
	}
}

static bool is_noise(enum rdma_cm_event_type event)
{
	return event == RDMA_CM_EVENT_TIMEWAIT_EXIT || event == RDMA_CM_EVENT_ADDR_CHANGE;
}

/** rr_verbs_cm_process - handles pending events; runs the callback */
void rr_verbs_cm_process(struct rr_cm *base)
{
	struct verbs_cm *cm = to_cm(base);

	for (int i = 0; i < EVENTS_PER_PROCESS; i++) {
		struct rdma_cm_event *ev;
		struct verbs_qp *qp;
		struct copy c;

		if (rdma_get_cm_event(cm->channel, &ev))
			return;
		take_copy(ev, &c);
		rdma_ack_cm_event(ev);
		if (c.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			on_request(cm, &c);
			continue;
		}
		qp = NULL;
		list_for_each(node, &cm->qps)
			if (list_entry(node, struct verbs_qp, cm_node)->id == c.id)
				qp = list_entry(node, struct verbs_qp, cm_node);
		/* other events concern the listener itself, or a queue pair that is over: nothing to report */
		if (qp && !qp->passive && qp->phase != PHASE_OVER && !is_noise(c.event))
			on_active(cm, qp, &c);
	}
}
