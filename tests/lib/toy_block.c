/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * toy_block.c - a block program; the first request on a reactor opens its file, on a worker, and others wait for it
 */
#include "toy_block.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf.h"
#include "conn.h"
#include "req.h"
#include "server_int.h"

struct toy {
	struct backing backing;
	struct data_conf data;
	int fd;
	uint64_t bytes;
	atomic_uint written;
};

struct toy_reactor {
	struct store *store;
	struct store_file file; /* fd < 0: not open */
	struct req *opener;
	struct list waiting; /* toy_call.link */
};

struct toy_call {
	struct list link;
	struct req *req;
	struct toy_msg args, res;
};

atomic_bool toy_hold;

#define TOY(srv) ((struct toy *)(srv)->service[SERVICE_NFS])
#define REACTOR(r) ((struct toy_reactor *)(r)->reactor->service[SERVICE_NFS])
#define CALL(r) ((struct toy_call *)(void *)(uintptr_t)(r)->call)

bool_t toy_xdr(XDR *x, struct toy_msg *m)
{
	return xdr_uint64_t(x, &m->off) && xdr_uint32_t(x, &m->bytes) && xdr_uint32_t(x, &m->stable) &&
	       xdr_uint32_t(x, &m->status);
}

bool_t toy_xdr_data(XDR *x, struct toy_msg *m)
{
	return toy_xdr(x, m) && rpcrdma_xdr_payload(x, &m->data, TOY_IO_MAX);
}

static void init(struct req *r)
{
	CALL(r)->req = r;
	list_init(&CALL(r)->link);
}

static void fail(struct req *r, int err)
{
	CALL(r)->res = (struct toy_msg){ .status = err == -ERANGE ? TOY_BAD_RANGE :
						   err == -EAGAIN ? TOY_TRY_LATER : TOY_DISK_FAILED };
}

static bool undone(const struct req *r)
{
	return CALL(r)->res.status == TOY_BAD_RANGE || CALL(r)->res.status == TOY_TRY_LATER;
}

static void end_opening(struct toy_reactor *re)
{
	struct list *n;

	re->opener = NULL;
	while (!re->opener && (n = list_pop(&re->waiting)) != NULL)
		req_resume(list_entry(n, struct toy_call, link)->req);
}

static void release(struct req *r)
{
	if (REACTOR(r)->opener == r) /* its connection was lost before open_file() */
		end_opening(REACTOR(r));
}

static bool cancel(struct req *r)
{
	bool waits = list_is_linked(&CALL(r)->link);

	list_del(&CALL(r)->link);
	return waits;
}

static void open_file(struct req *r)
{
	struct backing *b = &TOY(r->srv)->backing;

	while (atomic_load(&toy_hold))
		sched_yield();
	store_open(store_of(b), b, dup(TOY(r->srv)->fd), true, &REACTOR(r)->file);
	REACTOR(r)->file.dev = b->dev;
	REACTOR(r)->file.ino = b->ino;
}

static int payload(struct req *r)
{
	struct toy_msg *a = &CALL(r)->args;
	uint64_t bytes = TOY(r->srv)->bytes;

	r->plan = (struct place_plan){
		.store = REACTOR(r)->store, .data = &a->data, .off = a->off, .bytes = a->bytes,
		.file = &REACTOR(r)->file, .client = &r->conn->client->workers,
		.op = STORE_SYNC, .stable = a->stable ? STORE_FILE_SYNC : STORE_UNSTABLE,
	};
	return a->off > bytes || a->bytes > MIN(bytes - a->off, TOY_IO_MAX) ||
	       (r->proc->move == PLACE_WRITE && a->bytes != a->data.length) ? -ERANGE : 0;
}

static enum prog_begin begin(struct req *r)
{
	struct toy_reactor *re = REACTOR(r);
	int err = payload(r);

	if (re->opener == r) {
		end_opening(re);
	} else if (re->opener) {
		list_add_tail(&re->waiting, &CALL(r)->link);
		return PROG_WAIT;
	} else if (re->file.fd < 0) {
		re->opener = r;
		return PROG_OPEN;
	}
	if (err || re->file.fd < 0) {
		fail(r, err);
		return PROG_REPLY;
	}
	if (r->proc->move == PLACE_READ && !r->rpc->by_chunk)
		r->plan.bytes = MIN(r->plan.bytes, (uint32_t)rpcrdma_domain_reply_max(r->srv->domain) - 64);
	return PROG_MOVE;
}

static void finish(struct req *r)
{
	struct toy_msg *res = &CALL(r)->res;

	res->bytes = res->data.length = r->place.good;
	res->off = r->proc->once ? ++TOY(r->srv)->written : 0;
	res->status = TOY_OK;
	if (r->place.err)
		fail(r, r->place.err);
}

#define MOVES(in, out, kind)                                                                                           \
	.decode = (xdrproc_t)(in), .encode = (xdrproc_t)(out), .args_bytes = sizeof(struct toy_msg),                   \
	.res_bytes = sizeof(struct toy_msg), .move = (kind), .begin = begin, .open = open_file, .finish = finish

static const struct prog_proc procs[TOY_PROCS] = {
	[TOY_NULL] = PROG_NULL,
	[TOY_READ] = { .name = "READ", MOVES(toy_xdr, toy_xdr_data, PLACE_READ) },
	[TOY_WRITE] = { .name = "WRITE", MOVES(toy_xdr_data, toy_xdr, PLACE_WRITE), .payload = payload, .once = true },
	[TOY_SYNC] = { .name = "SYNC", MOVES(toy_xdr, toy_xdr, PLACE_STORE) },
};

static const struct prog prog_toy = {
	.number = TOY_PROGRAM, .vers = TOY_VERSION, .name = "TOY", .procs = procs, .nprocs = TOY_PROCS,
	.call_bytes = sizeof(struct toy_call), .args_at = offsetof(struct toy_call, args), .res_at = offsetof(struct toy_call, res),
	.init = init, .cancel = cancel, .fail = fail, .undone = undone, .release = release,
};

static int create(struct server *srv, const struct conf *conf, unsigned nreactors)
{
	struct toy *t = srv->service[SERVICE_NFS] = calloc(1, sizeof(*t));
	struct stat st;

	(void)nreactors;
	t->fd = open(conf->exports[0].path, O_RDWR | O_CLOEXEC);
	if (fstat(t->fd, &st))
		return -errno;
	t->data = conf->exports[0].data;
	t->backing = (struct backing){ .name = "toy", .data = &t->data, .dev = st.st_dev, .ino = st.st_ino };
	t->bytes = (uint64_t)st.st_size;
	return 0;
}

static void destroy(struct server *srv)
{
	close(TOY(srv)->fd);
	free(TOY(srv));
}

static int create_reactor(struct reactor *r)
{
	struct store_env env = { .loop = &r->loop, .counters = &r->counters.store };
	struct toy_reactor *re = r->service[SERVICE_NFS] = calloc(1, sizeof(*re));

	re->file.fd = -1;
	list_init(&re->waiting);
	return store_make(&env, &TOY(r->srv)->backing, &re->store);
}

static void destroy_reactor(struct reactor *r)
{
	struct toy_reactor *re = r->service[SERVICE_NFS];

	if (re->file.fd >= 0)
		store_close(&re->file);
	store_destroy(re->store);
	free(re);
}

const struct service toy_service = {
	.progs = (const struct prog *const[]){ &prog_toy, NULL }, .create = create, .destroy = destroy,
	.create_reactor = create_reactor, .destroy_reactor = destroy_reactor,
};
