/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * call.c - starts all calls and converts their results to errnos
 *
 * Operation:  lt_call_start(), call_block.c or call_stripes.c looks the procedure up in a table of codecs, sizes and what else
 *             differs, picks the next connection of the server, and passes the call to librpcrdma. The RPC error or
 *             status of the reply becomes an errno.
 *             NFS3ERR_JUKEBOX, or BLOCK_ERR_LATER, means that the server did nothing and that the client should
 *             retry. The call is retried after 100 ms, doubling to 5 s, with a new XID because it is a new call. A call
 *             that names its lane stays on its connection, others take the next one. This
 *             holds for synchronous and asynchronous operations. With retry=soft, timeo limits the
 *             retries, counted from the first attempt; the last attempt is made when timeo has passed,
 *             then the call fails with -EAGAIN.
 *             A cancelled call fails with -ECANCELED. If it changes something and has been sent, it fails with
 *             -EINPROGRESS: a server cannot be told to forget a call.
 * Memory:     The caller's. Handles in results are decoded into fh_room, so these results need no freeing;
 *             only those of READDIR and READDIRPLUS (dir.c frees them), BLOCK and VOLUME (lt_call_free)
 *             allocate.
 * Threads:    The mount's owner. A call on a connection of an additional thread is with that thread from the message
 *             that takes it there until the one that brings it back; its arguments and results do not change meanwhile.
 * Errors:     -errno of nfs_errno.c or of rpcrdma_clnt_call(). If a call cannot be started, its done() runs with
 *             the error from a timer, so that callers handle errors in one place.
 * See:        doc/tour.md, the life of a READ.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "cache.h"
#include "call.h"
#include "handle.h"
#include "nfs3_names.h"
#include "nfs_errno.h"

#define JUKEBOX_FIRST_MS 100u
#define JUKEBOX_MAX_MS 5000u

/* XDR bytes of parts of results (RFC 1813 section 2.5), with every option present */
#define FATTR_BYTES 84u
#define POA_BYTES (4u + FATTR_BYTES)
#define WCC_BYTES (4u + 24u + POA_BYTES)
#define FH_BYTES (4u + NFS3_FHSIZE)
#define CREATED_BYTES (4u + FH_BYTES + POA_BYTES + WCC_BYTES)
#define ACL_BYTES (4u + 2 * 8u + 12u * NFS_ACL_MAX_ENTRIES) /* each call requests one list */

static int errno_of_nfs(uint32_t status)
{
	return nfs3_errno((nfsstat3)status);
}

static bool is_jukebox(uint32_t status)
{
	return status == NFS3ERR_JUKEBOX;
}

#define NFS_STATUSES .is_later = is_jukebox, .to_errno = errno_of_nfs, .name = nfs3_stat_name, .feeds = true

static const struct lt_program nfs = { NFS_PROGRAM, NFS_V3, NFS_STATUSES };
static const struct lt_program nfsacl = { NFSACL_PROGRAM, NFSACL_V3, NFS_STATUSES };
static const struct lt_program space = { LEAT_SPACE, LEAT_SPACE_V1, NFS_STATUSES };

#define READS(name, max) LT_PROC(name, name, max, .changes = LT_READS, .program = &nfs)
#define CHANGES(name, max) LT_PROC(name, name, max, .changes = LT_CHANGES, .program = &nfs)

static const struct lt_proc procs[] = {
	[NFSPROC3_NULL] = { .encode = (xdrproc_t)lt_call_xdr_nothing, .decode = (xdrproc_t)lt_call_xdr_nothing,
			    .program = &nfs },
	[NFSPROC3_GETATTR] = READS(GETATTR3, FATTR_BYTES),
	[NFSPROC3_SETATTR] = CHANGES(SETATTR3, WCC_BYTES),
	[NFSPROC3_LOOKUP] = READS(LOOKUP3, FH_BYTES + 2 * POA_BYTES),
	[NFSPROC3_ACCESS] = READS(ACCESS3, POA_BYTES + 4),
	[NFSPROC3_READLINK] = READS(READLINK3, POA_BYTES + 4),
	[NFSPROC3_READ] = LT_PROC(READ3, READ3, POA_BYTES + 12, .moves_data = true, .program = &nfs),
	[NFSPROC3_WRITE] = LT_PROC(WRITE3, WRITE3, WCC_BYTES + 8 + NFS3_WRITEVERFSIZE, .changes = LT_CHANGES,
				   .moves_data = true, .program = &nfs),
	[NFSPROC3_CREATE] = CHANGES(CREATE3, CREATED_BYTES),
	[NFSPROC3_MKDIR] = CHANGES(MKDIR3, CREATED_BYTES),
	[NFSPROC3_SYMLINK] = CHANGES(SYMLINK3, CREATED_BYTES),
	[NFSPROC3_MKNOD] = CHANGES(MKNOD3, CREATED_BYTES),
	[NFSPROC3_REMOVE] = CHANGES(REMOVE3, WCC_BYTES),
	[NFSPROC3_RMDIR] = CHANGES(RMDIR3, WCC_BYTES),
	[NFSPROC3_RENAME] = CHANGES(RENAME3, 2 * WCC_BYTES),
	[NFSPROC3_LINK] = CHANGES(LINK3, POA_BYTES + WCC_BYTES),
	[NFSPROC3_READDIR] = READS(READDIR3, POA_BYTES + NFS3_COOKIEVERFSIZE + 8),
	[NFSPROC3_READDIRPLUS] = READS(READDIRPLUS3, POA_BYTES + NFS3_COOKIEVERFSIZE + 8),
	[NFSPROC3_FSSTAT] = READS(FSSTAT3, POA_BYTES + 52),
	[NFSPROC3_COMMIT] = READS(COMMIT3, WCC_BYTES + NFS3_WRITEVERFSIZE),
};

const struct lt_proc lt_acl_procs[] = {
	[NFSACLPROC3_GETACL] = LT_PROC(GETACL3, GETACL3, POA_BYTES + ACL_BYTES, .program = &nfsacl),
	[NFSACLPROC3_SETACL] = LT_PROC(SETACL3, SETACL3, POA_BYTES, .changes = LT_CHANGES, .program = &nfsacl),
};

const struct lt_proc lt_space_procs[] = {
	[SPACEPROC_ALLOCATE] = LT_PROC(ALLOCATE3, ALLOCATE3, WCC_BYTES, .changes = LT_CHANGES, .program = &space),
	[SPACEPROC_SEEK] = LT_PROC(SEEK3, SEEK3, POA_BYTES + 8, .program = &space),
};

static void send_call(struct lt_call *c);
static void send_there(struct lt_call *c);

static void prepare_lists(struct lt_call *c)
{
	GETACL3res *res = c->rpc.res;

	if (c->rpc.proc != NFSACLPROC3_GETACL)
		return;
	res->GETACL3res_u.resok.acl.acl.acl_val = c->acl_room->access;
	res->GETACL3res_u.resok.acl.dfacl.dfacl_val = c->acl_room->dflt;
}

bool_t lt_call_xdr_nothing(XDR *xdrs, void *nothing)
{
	(void)xdrs;
	(void)nothing;
	return TRUE;
}

/* Clears the results and points their handle or lists, if any, at the call's memory. */
static void prepare_results(struct lt_call *c)
{
	void *res = c->rpc.res;

	memset(res, 0, c->proc->res_bytes);
	if (c->rpc.prog == NFSACL_PROGRAM)
		prepare_lists(c);
	if (c->rpc.prog != NFS_PROGRAM)
		return;
	switch (c->rpc.proc) {
	case NFSPROC3_LOOKUP:
		((LOOKUP3res *)res)->LOOKUP3res_u.resok.object.data.data_val = c->fh_room;
		break;
	case NFSPROC3_CREATE:
	case NFSPROC3_MKDIR:
	case NFSPROC3_SYMLINK:
	case NFSPROC3_MKNOD: /* the results have the same layout: cache_feed.c checks it */
		((CREATE3res *)res)->CREATE3res_u.resok.obj.post_op_fh3_u.handle.data.data_val = c->fh_room;
		break;
	default:
		break;
	}
}

static void failed_at_start(struct rpcrdma_timer *t)
{
	struct lt_call *c = container_of(t, struct lt_call, timer);

	c->waits = false;
	c->done(&c->rpc, c->err);
}

static void ask_again(struct rpcrdma_timer *t)
{
	struct lt_call *c = container_of(t, struct lt_call, timer);

	c->waits = false;
	if (c->laned.lane.instance) /* an earlier copy may still be on its way by an older connection of the lane */
		send_there(c);
	else
		send_call(c);
}

/* Runs fn() after @ns. */
static void wait_ns(struct lt_call *c, void (*fn)(struct rpcrdma_timer *t), uint64_t ns)
{
	c->waits = true;
	c->timer.fn = fn;
	rpcrdma_timer_set(c->m->session->engine, &c->timer, ns);
}

static bool wait_for_jukebox(struct lt_call *c)
{
	uint64_t now = lt_handle_now(c->m), delay;

	c->m->counters.jukebox_retries++;
	if (c->give_up_ns && now >= c->give_up_ns)
		return false;
	c->delay_ms = c->delay_ms ? MIN(c->delay_ms * 2, JUKEBOX_MAX_MS) : JUKEBOX_FIRST_MS;
	delay = c->delay_ms * NS_PER_MS;
	if (c->give_up_ns)
		delay = MIN(delay, c->give_up_ns - now);
	c->rpc.sent = false; /* the server did nothing */
	wait_ns(c, ask_again, delay);
	return true;
}

static bool has_status(const struct lt_call *c)
{
	return c->proc->res_bytes != 0;
}

bool lt_call_changes(const struct lt_call *c)
{
	return c->proc->changes;
}

/* ---- lanes ---- */

static const atomic_uint *incarnation_of(const struct lt_call *c)
{
	return &c->server->incarnation[c->conn];
}

/* Sets the lane and encodes the arguments. */
static bool_t encode_laned(XDR *xdrs, struct lt_call *c)
{
	const struct lt_lane *lane = &c->laned.lane;

	if (lane->instance) {
		*lane->instance = c->server->lane_instance;
		*lane->slot = c->conn;
		*lane->incarnation = atomic_load_explicit(incarnation_of(c), memory_order_relaxed);
	}
	return c->proc->encode(xdrs, (void *)(uintptr_t)c->laned.args);
}

/* Was a call with this status refused because its lane has a newer connection than that by which it was sent? Then it is
 * sent again on its lane: on another one it might overtake an earlier copy of itself. */
static bool lane_has_moved(const struct lt_call *c, uint32_t status)
{
	return c->laned.lane.instance && status == c->proc->program->old_lane &&
	       *c->laned.lane.incarnation != atomic_load_explicit(incarnation_of(c), memory_order_relaxed);
}

void lt_call_retire_lane(const struct lt_call *c)
{
	if (*c->laned.lane.incarnation == atomic_load_explicit(incarnation_of(c), memory_order_relaxed))
		rpcrdma_clnt_reconnect(c->clnt, "a call timed out");
}

/* The first attempt to connect fails all calls that wait for it; later ones do not. */
static bool may_connect_later(const struct lt_call *c, int err)
{
	if (!c->is_patient || c->rpc.sent || c->cancelled)
		return false;
	return err == -ECONNREFUSED || err == -ECONNRESET || err == -EHOSTUNREACH || err == -ENETUNREACH || err == -EPIPE;
}

/* A call ended with @status, not 0. Return: true: it is made again, or asks for the holder */
static bool goes_on(struct lt_call *c, uint32_t status)
{
	if (c->proc->program->is_later(status))
		return wait_for_jukebox(c);
	if (c->cancelled)
		return false;
	if (lane_has_moved(c, status)) {
		send_there(c);
		return true;
	}
	return lt_call_ask_holder(c, status);
}

struct lt_call *lt_call_ended(struct rpcrdma_call *rpc, int *err)
{
	struct lt_call *c = container_of(rpc, struct lt_call, rpc);
	const struct lt_program *program = c->proc->program;
	uint32_t status = 0;

	if (unlikely(c->ask)) {
		c->status = lt_call_told(c, *err);
		*err = program->to_errno(c->status);
		return c;
	}
	c->status = 0;
	c->has_why = false;
	if (*err == -ECANCELED && rpc->sent && lt_call_changes(c))
		*err = -EINPROGRESS;
	if (unlikely(*err) && may_connect_later(c, *err) && wait_for_jukebox(c))
		return NULL;
	if (!has_status(c))
		return c;
	if (!*err)
		memcpy(&status, rpc->res, sizeof(status));
	if (unlikely(status) && c->cancelled && program->is_later(status)) {
		*err = -ECANCELED;
		status = 0;
	}
	if (unlikely(status) && goes_on(c, status))
		return NULL;
	c->status = status;
	if (program->feeds)
		lt_cache_reply(c, *err);
	if (status)
		*err = program->to_errno(status);
	return c;
}

/* ---- calls on connections of additional threads ---- */

/* The call is back on the session's thread. */
static void come_back(struct rpcrdma_msg *msg)
{
	struct lt_call *c = container_of(msg, struct lt_call, msg);

	c->replied = true;
	if (!c->cancelling)
		c->done(&c->rpc, c->err);
}

static void send_back(struct lt_call *c, int err)
{
	c->err = err;
	if (c->rpc.why) {
		snprintf(c->why, sizeof(c->why), "%s", c->rpc.why);
		c->rpc.why = c->why;
	}
	c->msg.fn = come_back;
	rpcrdma_engine_post(c->m->session->engine, &c->msg);
}

static void done_there(struct rpcrdma_call *rpc, int err)
{
	send_back(container_of(rpc, struct lt_call, rpc), err);
}

static void call_there(struct rpcrdma_msg *msg)
{
	struct lt_call *c = container_of(msg, struct lt_call, msg);
	int err = rpcrdma_clnt_call(c->clnt, &c->rpc);

	if (err)
		send_back(c, err);
}

/* The other thread does not touch the call any more. Its reply came first: messages keep their order. */
static void cancelled_here(struct rpcrdma_msg *msg)
{
	struct lt_call *c = container_of(msg, struct lt_call, cancel_msg);

	c->cancelling = false;
	c->done(&c->rpc, c->err);
}

static void cancel_there(struct rpcrdma_msg *msg)
{
	struct lt_call *c = container_of(msg, struct lt_call, cancel_msg);

	rpcrdma_clnt_cancel(c->clnt, &c->rpc);
	msg->fn = cancelled_here;
	rpcrdma_engine_post(c->m->session->engine, msg);
}

/* ---- sending ---- */

/* Picks the next connection of the server. Only data is worth the way to another thread. */
static void pick_connection(struct lt_call *c)
{
	struct lt_server *s = c->server;
	bool data = c->proc->moves_data;

	do {
		c->conn = s->clnt_next;
		c->clnt = s->clnt[s->clnt_next];
		c->engine = s->engine[s->clnt_next];
		if (++s->clnt_next >= s->clnts)
			s->clnt_next = 0;
	} while (unlikely(c->engine) && !data); /* the first one is the session's */
}

/* Sends it over the connection that was picked. */
static void send_there(struct lt_call *c)
{
	if (has_status(c)) {
		prepare_results(c);
		lt_cache_sent(c);
	}
	c->rpc.why = NULL;
	if (unlikely(c->m->make_call) && c->server == c->m->server) {
		c->err = c->m->make_call(c);
		if (c->err)
			wait_ns(c, failed_at_start, 0);
		return;
	}
	if (unlikely(c->engine)) {
		c->rpc.done = done_there;
		c->replied = false;
		c->msg.fn = call_there;
		rpcrdma_engine_post(c->engine, &c->msg);
		return;
	}
	c->rpc.done = c->done;
	c->err = rpcrdma_clnt_call(c->clnt, &c->rpc);
	if (c->err)
		wait_ns(c, failed_at_start, 0);
}

static void send_call(struct lt_call *c)
{
	pick_connection(c);
	send_there(c);
}

void lt_call_init(struct lt_call *c, struct leat *m, char *fh_room)
{
	memset(c, 0, sizeof(*c));
	c->m = m;
	c->server = m->server;
	c->fh_room = fh_room;
}

void lt_call_prog(struct lt_call *c, uint32_t proc, const struct lt_proc *p, uint32_t patience_ms)
{
	if (!patience_ms && c->m->url.soft)
		patience_ms = c->m->timeo_ms;
	c->delay_ms = 0;
	c->cancelled = false;
	c->is_patient = c->server != c->m->server;
	c->give_up_ns = patience_ms ? lt_handle_now(c->m) + patience_ms * NS_PER_MS : 0;
	c->rpc.deadline_ms = patience_ms;
	c->rpc.prog = p->program->prog;
	c->rpc.vers = p->program->vers;
	c->rpc.proc = proc;
	c->proc = p;
	c->rpc.encode = p->has_lane ? (xdrproc_t)encode_laned : p->encode;
	c->rpc.decode = p->decode;
	c->rpc.reply_max += p->reply_max;
	send_call(c);
}

void lt_call_start(struct lt_call *c, uint32_t proc, const void *args, void *res,
		   uint32_t reply_extra, const struct iovec *sink, int sinkcnt,
		   lt_call_done done)
{
	c->rpc = (struct rpcrdma_call){
		.args = args,
		.res = res,
		.sink = sink,
		.sinkcnt = sinkcnt,
		.reply_max = reply_extra,
	};
	c->server = c->m->server;
	c->done = done;
	lt_call_prog(c, proc, &procs[proc], 0);
}

void lt_call_start_of(struct lt_call *c, const struct lt_proc *table, uint32_t proc, const void *args, void *res,
		      lt_call_done done)
{
	c->rpc = (struct rpcrdma_call){ .args = args, .res = res };
	c->laned = (struct lt_call_laned){ 0 };
	c->server = c->m->server;
	c->sent_ns = lt_handle_now(c->m);
	c->done = done;
	lt_call_prog(c, proc, &table[proc], 0);
}

void lt_call_cancel(struct lt_call *c)
{
	c->cancelled = true;
	if (unlikely(c->asks))
		return;
	if (!c->waits && c->engine) {
		if (c->replied || c->cancelling)
			return;
		c->cancelling = true;
		c->cancel_msg.fn = cancel_there;
		rpcrdma_engine_post(c->engine, &c->cancel_msg);
		return;
	}
	if (!c->waits) {
		rpcrdma_clnt_cancel(c->clnt, &c->rpc);
		return;
	}
	rpcrdma_timer_cancel(c->m->session->engine, &c->timer);
	c->waits = false;
	c->rpc.why = "cancelled";
	c->done(&c->rpc, -ECANCELED);
}

void lt_call_free(struct lt_call *c)
{
	if (c->proc->allocates)
		xdr_free(c->proc->decode, c->rpc.res);
}

const char *lt_call_name(const struct lt_call *c)
{
	return nfs3_proc_name(c->rpc.prog, c->rpc.proc);
}

const char *lt_call_cause(const struct lt_call *c)
{
	if (c->status == NFS3ERR_NOTSUPP && c->m->volume && c->proc->program->feeds)
		return "NFS3ERR_NOTSUPP: not yet possible for files of a striped volume";
	if (c->status)
		return c->has_why ? c->why : c->proc->program->name(c->status);
	return c->rpc.why ? c->rpc.why : "";
}
