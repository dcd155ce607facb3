/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_reserve.c - RESERVE of the program of volumes: a range at the end of a file, for a client that appends
 *
 * Operation: A worker reserves the range, unless another client has a lease of the file: then the thread of pending work asks
 *            the stripe servers for the size first. The request waits for that without a worker and without a slot, since
 *            one of the servers may be this leatd. Requests for one file that wait are served by one question; one that
 *            comes when the question is on its way needs another one.
 *            How many requests wait has a bound, and each client a share of it: client_begin_wait().
 * Memory:    r->scratch.
 * Threads:   begin() on the reactor, open() on a worker, report_size() on the thread of pending work. Reactors stay until
 *            report_size() has ended: loop->asking counts it.
 * Errors:    As statuses in the results. A request whose connection is lost while it waits gets its range nevertheless.
 */
#include <errno.h>

#include "admit.h"
#include "client.h"
#include "nfs.h"
#include "nfs_reserve.h"
#include "volume_calls.h"
#include "volume_manager.h"
#include "volume_pending.h"

/* What the request does next. */
enum phase {
	RESERVE_FIRST, /* a worker looks whether the servers must be asked, and reserves the range if not */
	RESERVE_ASK,   /* they must be */
	RESERVE_ASKED, /* they were */
	RESERVE_TAKE,  /* a worker reserves the range */
	RESERVE_REPLY,
};

struct reserve {
	struct req *req;
	struct rpcrdma_msg msg;
	struct volume_asker asker;
	enum phase phase;
};

_Static_assert(sizeof(struct reserve) <= NFS_RESERVE_BYTES, "of r->scratch");

/* Return: 0; 1: the servers must be asked first; -errno */
static int take_range(struct req *r, struct reserve *v)
{
	const VOLRESERVEargs *a = &nfs_call(r)->args.volreserve;
	VOLRESERVEresok *ok = &nfs_call(r)->res.volreserve.VOLRESERVEres_u.resok;
	struct volume_range range = { .instance = a->instance, .after = a->after, .bytes = a->bytes, .creds = &r->creds };
	uint64_t off = 0;
	struct fh_obj o;
	int rc;

	if (!a->bytes)
		return -EINVAL;
	if (stripe_handle_read(&nfs_manager(r)->keys, a->handle, &range.handle))
		return -EACCES;
	rc = nfs_open_type(r, S_IFREG, &o);
	if (rc)
		return rc;
	if (v->phase == RESERVE_FIRST)
		rc = volume_reserve_asks(&o, &range, v->asker.of.object);
	if (!rc)
		rc = volume_reserve(&o, &range, &off);
	ok->offset = off;
	fh_close(&o);
	return rc;
}

void nfs_reserve_open(struct req *r)
{
	struct reserve *v = r->scratch;
	int rc = take_range(r, v);

	v->phase = rc == 1 ? RESERVE_ASK : RESERVE_REPLY;
	if (rc < 0)
		r->prog->fail(r, rc);
}

static void on_reported(struct rpcrdma_msg *msg)
{
	req_resume(container_of(msg, struct reserve, msg)->req);
}

static void report_size(struct volume_asker *a)
{
	struct reserve *v = container_of(a, struct reserve, asker);
	const struct loop *l = &v->req->reactor->loop;
	atomic_uint *asking = l->asking;

	rpcrdma_engine_post(l->engine, &v->msg); /* the request may end before this returns */
	atomic_fetch_sub(asking, 1);
}

static enum prog_begin ask(struct req *r, struct reserve *v)
{
	if (!client_begin_wait(r->conn->client)) {
		r->prog->fail(r, -EAGAIN);
		return PROG_REPLY;
	}
	v->req = r;
	v->msg.fn = on_reported;
	v->asker.done = report_size;
	v->asker.file = NULL;
	v->asker.of.fh = nfs_fh_stripped(r);
	v->phase = RESERVE_ASKED;
	admit_leave(r);
	atomic_fetch_add(r->reactor->loop.asking, 1);
	volume_pending_queue(nfs_manager(r)->dir->pending, &v->asker);
	return PROG_WAIT;
}

/* Without the lengths of all objects, another client's data might be where the range begins. */
static enum prog_begin go_on(struct req *r, struct reserve *v)
{
	int err = v->asker.err;

	client_end_wait(r->conn->client);
	admit_now(r);
	if (!err) {
		v->phase = RESERVE_TAKE;
		return PROG_OPEN;
	}
	r->prog->fail(r, err == -EAGAIN || err == -ESTALE ? err : -EIO);
	return PROG_REPLY;
}

enum prog_begin nfs_reserve_begin(struct req *r)
{
	struct reserve *v = r->scratch;

	switch (v->phase) {
	case RESERVE_FIRST:
		return PROG_OPEN;
	case RESERVE_ASK:
		return ask(r, v);
	case RESERVE_ASKED:
		return go_on(r, v);
	case RESERVE_TAKE:
	case RESERVE_REPLY:
		break;
	}
	return PROG_REPLY;
}
