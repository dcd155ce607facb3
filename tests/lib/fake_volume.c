/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fake_volume.c - a server of one block volume in memory
 *
 * Operation:  Each procedure is a handler of a table (rpcrdma_prog.h): it serves the call, then serve() lets the test
 *             change the results, hold the call, or put it off.
 * Memory:     The caller's structure; results refer to static memory.
 * Threads:    Handlers run on the thread of the server, under the lock.
 * Errors:     Asserted with cmocka.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "fake_volume.h"
#include "leat_flow.h"
#include "nfs3.h"

/* ---- the procedures ------------------------------------------------------------------------ */

static block_info describe(const struct fake_volume *r, char *name)
{
	return (block_info){ .name = name, .size = r->size, .block = r->block, .preferred = 65536, .flags = r->flags,
			     .nholders = r->holder[0] ? 1 : 0 };
}

static bool fits(const struct fake_volume *r, uint64_t off, uint64_t len)
{
	return off <= r->size && len <= r->size - off;
}

/* Return: BLOCK_OK, or why a call of this attachment is refused */
static block_status admit(struct fake_volume *r, const block_at *at)
{
	uint32_t generation;

	memcpy(&generation, at->handle, sizeof(generation));
	if (!generation || memcmp(at->handle + 4, "a handle of the tests' block", 28) != 0)
		return BLOCK_ERR_BADHANDLE;
	return generation == r->generation && r->holder[0] ? BLOCK_OK : BLOCK_ERR_FENCED;
}

static block_status take_lane(struct fake_volume *r, const block_lane *lane)
{
	for (unsigned i = 0; i < r->nlanes; i++) {
		struct block_lane *known = &r->lanes[i];

		if (known->instance != lane->instance || known->slot != lane->slot)
			continue;
		if (lane->incarnation < known->incarnation) {
			r->old_lanes++;
			return BLOCK_ERR_OLD_LANE;
		}
		known->incarnation = lane->incarnation;
		return BLOCK_OK;
	}
	assert_true(r->nlanes < FAKE_VOLUME_LANES && lane->incarnation);
	r->lanes[r->nlanes++] = *lane;
	return BLOCK_OK;
}

static block_status enter(struct fake_volume *r, const block_at *at)
{
	block_status s = admit(r, at);

	return s == BLOCK_OK ? take_lane(r, &at->lane) : s;
}

static void list(struct fake_volume *r, struct rpcrdma_task *t)
{
	static block_info volumes[BLOCK_LIST_MAX];
	static char names[BLOCK_LIST_MAX][16];
	const BLOCKLISTargs *a = t->args;
	BLOCKLISTresok *ok = &((BLOCKLISTres *)t->res)->BLOCKLISTres_u.resok;
	unsigned n = 0, i = 0;
	char name[16];

	for (; i <= r->volumes && n < BLOCK_LIST_MAX; i++) {
		snprintf(name, sizeof(name), r->volumes ? "vol%03u" : "vol%u", i);
		if (strcmp(name, a->after) <= 0)
			continue;
		strcpy(names[n], name);
		volumes[n] = describe(r, names[n]);
		n++;
	}
	ok->volumes.volumes_val = volumes;
	ok->volumes.volumes_len = n;
	ok->eof = i > r->volumes;
}

static block_holder holder(struct fake_volume *r)
{
	return (block_holder){ .name = r->holder, .peer = (char *)(uintptr_t)"10.0.0.7", .app = r->app,
			       .since = 1700000000, .conns = 1 };
}

static void info(struct fake_volume *r, struct rpcrdma_task *t)
{
	static block_holder holders[1];
	const BLOCKINFOargs *a = t->args;
	BLOCKINFOres *res = t->res;
	BLOCKINFOresok *ok = &res->BLOCKINFOres_u.resok;

	snprintf(r->after, sizeof(r->after), "%s", a->after);
	if (strcmp(a->volume, "vol0") != 0) {
		res->status = BLOCK_ERR_NOENT;
		return;
	}
	holders[0] = holder(r);
	ok->info = describe(r, (char *)(uintptr_t)"vol0");
	ok->holders.holders_val = holders;
	ok->holders.holders_len = r->holder[0] && strcmp(r->holder, a->after) > 0;
	ok->eof = TRUE;
}

static void attach(struct fake_volume *r, struct rpcrdma_task *t)
{
	const BLOCKATTACHargs *a = t->args;
	BLOCKATTACHres *res = t->res;
	BLOCKATTACHresok *ok = &res->BLOCKATTACHres_u.resok;

	r->attach_flags = a->flags;
	snprintf(r->victim, sizeof(r->victim), "%s", a->victim);
	if (strcmp(a->volume, "vol0") != 0) {
		res->status = BLOCK_ERR_NOENT;
		return;
	}
	if (a->flags & BLOCK_TAKE_OVER && a->victim[0] && strcmp(a->victim, r->holder) != 0) {
		res->status = BLOCK_ERR_NOHOLDER;
		return;
	}
	if (r->holder[0] && strcmp(r->holder, a->holder) != 0 && !(a->flags & BLOCK_TAKE_OVER)) {
		res->status = BLOCK_ERR_BUSY;
		res->BLOCKATTACHres_u.holder = holder(r);
		return;
	}
	res->status = take_lane(r, &a->lane);
	if (res->status != BLOCK_OK)
		return;
	snprintf(r->holder, sizeof(r->holder), "%s", a->holder);
	snprintf(r->app, sizeof(r->app), "%s", a->app);
	r->generation++;
	memcpy(ok->handle, &r->generation, 4);
	memcpy(ok->handle + 4, "a handle of the tests' block", 28);
	ok->info = describe(r, (char *)(uintptr_t)"vol0");
	ok->verf = r->verf;
}

static void detach(struct fake_volume *r, struct rpcrdma_task *t)
{
	const BLOCKATargs *a = t->args;
	BLOCKDETACHres *res = t->res;

	res->status = enter(r, &a->at);
	if (res->status == BLOCK_OK)
		r->holder[0] = '\0';
}

static void read_data(struct fake_volume *r, struct rpcrdma_task *t)
{
	const BLOCKREADargs *a = t->args;
	BLOCKREADres *res = t->res;

	res->status = enter(r, &a->at);
	if (res->status == BLOCK_OK && (!fits(r, a->offset, a->count) || (a->offset | a->count) % r->block))
		res->status = BLOCK_ERR_INVAL;
	if (res->status != BLOCK_OK)
		return;
	assert_true(a->count <= t->data_bytes);
	if (a->count)
		memcpy(t->data, r->disk + a->offset, a->count);
	res->BLOCKREADres_u.data.length = a->count;
}

static void changed(struct fake_volume *r, BLOCKCHANGEres *res)
{
	res->BLOCKCHANGEres_u.verf = r->verf;
}

static void write_data(struct fake_volume *r, struct rpcrdma_task *t)
{
	const BLOCKWRITEargs *a = t->args;
	BLOCKCHANGEres *res = t->res;

	res->status = enter(r, &a->at);
	if (res->status == BLOCK_OK && !fits(r, a->offset, a->data.length))
		res->status = BLOCK_ERR_NOSPC;
	if (res->status == BLOCK_OK && (a->offset | a->data.length) % r->block)
		res->status = BLOCK_ERR_INVAL;
	if (res->status != BLOCK_OK)
		return;
	if (a->data.length)
		memcpy(r->disk + a->offset, a->data.iov[0].iov_base, a->data.length);
	r->fua += a->fua != FALSE;
	changed(r, res);
}

static void flush(struct fake_volume *r, struct rpcrdma_task *t)
{
	BLOCKCHANGEres *res = t->res;

	res->status = enter(r, &((const BLOCKATargs *)t->args)->at);
	changed(r, res);
}

static void change_range(struct fake_volume *r, const block_at *at, uint64_t off, uint64_t len, int byte, BLOCKCHANGEres *res)
{
	res->status = enter(r, at);
	if (res->status == BLOCK_OK && len > BLOCK_RANGE_MAX)
		res->status = BLOCK_ERR_INVAL;
	if (res->status == BLOCK_OK && !fits(r, off, len))
		res->status = BLOCK_ERR_NOSPC;
	if (res->status != BLOCK_OK)
		return;
	if (off < FAKE_VOLUME_ROOM) /* a large volume has no memory beyond */
		memset(r->disk + off, byte, MIN(len, FAKE_VOLUME_ROOM - off));
	changed(r, res);
}

static void discard(struct fake_volume *r, struct rpcrdma_task *t)
{
	const BLOCKRANGEargs *a = t->args;

	change_range(r, &a->at, a->offset, a->length, 0xdd, t->res);
	if (!(r->flags & BLOCK_CAN_DISCARD))
		((BLOCKCHANGEres *)t->res)->status = BLOCK_ERR_NOTSUPP;
}

static void zero(struct fake_volume *r, struct rpcrdma_task *t)
{
	const BLOCKZEROargs *a = t->args;

	change_range(r, &a->at, a->offset, a->length, 0, t->res);
}

/* Each 64 KiB is of another kind; a reply has three extents at most. */
static void extents(struct fake_volume *r, struct rpcrdma_task *t)
{
	static block_extent all[3];
	const BLOCKRANGEargs *a = t->args;
	BLOCKEXTENTSres *res = t->res;
	BLOCKEXTENTSresok *ok = &res->BLOCKEXTENTSres_u.resok;
	uint64_t off = a->offset, end = a->offset + a->length;
	unsigned n = 0;

	res->status = enter(r, &a->at);
	if (res->status == BLOCK_OK && (!fits(r, a->offset, a->length) || a->length > BLOCK_RANGE_MAX))
		res->status = BLOCK_ERR_INVAL;
	if (res->status != BLOCK_OK)
		return;
	for (; off < end && n < ARRAY_SIZE(all); n++) {
		uint64_t stop = MIN(end, (off | 0xffff) + 1);

		all[n] = (block_extent){ stop - off, (block_kind)(off >> 16) % 3 };
		off = stop;
	}
	ok->extents.extents_val = all;
	ok->extents.extents_len = n;
}

/* ---- the service ---------------------------------------------------------------------------- */

static int serve(struct rpcrdma_task *t, uint32_t proc, void (*fn)(struct fake_volume *r, struct rpcrdma_task *t))
{
	struct fake_volume *r = t->ctx;
	int rc = 0;

	pthread_mutex_lock(&r->lock);
	r->calls[proc]++;
	if (r->later) {
		r->later--;
		*(block_status *)t->res = BLOCK_ERR_LATER;
	} else {
		fn(r, t);
	}
	if (r->odd)
		r->odd(r, proc, t->args, t->res);
	if (r->hold) {
		assert_true(r->nheld < FAKE_VOLUME_HELD);
		r->held[r->nheld++] = t;
		rc = RPCRDMA_PENDING;
	}
	pthread_mutex_unlock(&r->lock);
	return rc;
}

#define HANDLER(name, proc, fn)                                                                              \
	static int name(struct rpcrdma_task *t)                                                              \
	{                                                                                                    \
		return serve(t, proc, fn);                                                                   \
	}

HANDLER(on_list, BLOCKPROC_LIST, list)
HANDLER(on_info, BLOCKPROC_INFO, info)
HANDLER(on_attach, BLOCKPROC_ATTACH, attach)
HANDLER(on_detach, BLOCKPROC_DETACH, detach)
HANDLER(on_read, BLOCKPROC_READ, read_data)
HANDLER(on_write, BLOCKPROC_WRITE, write_data)
HANDLER(on_discard, BLOCKPROC_DISCARD, discard)
HANDLER(on_flush, BLOCKPROC_FLUSH, flush)
HANDLER(on_zero, BLOCKPROC_ZERO, zero)
HANDLER(on_extents, BLOCKPROC_EXTENTS, extents)

static uint32_t read_bytes(struct rpcrdma_task *t)
{
	return ((const BLOCKREADargs *)t->args)->count;
}

#define ROW(PROC, fn, in, out)                                                                               \
	.proc = BLOCKPROC_##PROC, .handler = fn, RPCRDMA_ARGS(xdr_BLOCK##in##args, BLOCK##in##args),             \
	RPCRDMA_RES(xdr_BLOCK##out##res, BLOCK##out##res)

static const struct rpcrdma_proc block_procs[] = {
	{ ROW(LIST, on_list, LIST, LIST) },
	{ ROW(INFO, on_info, INFO, INFO) },
	{ ROW(ATTACH, on_attach, ATTACH, ATTACH) },
	{ ROW(DETACH, on_detach, AT, DETACH) },
	{ ROW(READ, on_read, READ, READ), RPCRDMA_RES_DATA(BLOCKREADres, BLOCKREADres_u.data, BLOCK_IO_MAX),
	  .res_data_bytes = read_bytes },
	{ ROW(WRITE, on_write, WRITE, CHANGE), RPCRDMA_ARGS_DATA(BLOCKWRITEargs, data, BLOCK_IO_MAX) },
	{ ROW(DISCARD, on_discard, RANGE, CHANGE) },
	{ ROW(FLUSH, on_flush, AT, CHANGE) },
	{ ROW(ZERO, on_zero, ZERO, CHANGE) },
	{ ROW(EXTENTS, on_extents, RANGE, EXTENTS) },
};

static int no_nfs(struct rpcrdma_task *t)
{
	(void)t;
	return -EOPNOTSUPP;
}

/* The procedure 0 of each program is the library's. */
static const struct rpcrdma_proc nfs_procs[] = { { .proc = NFSPROC3_GETATTR, .handler = no_nfs } };

static const struct rpcrdma_prog progs[] = {
	{ .prog = LEAT_BLOCK, .vers = LEAT_BLOCK_V1, .procs = block_procs, .nprocs = ARRAY_SIZE(block_procs) },
	{ .prog = NFS_PROGRAM, .vers = NFS_V3, .procs = nfs_procs, .nprocs = ARRAY_SIZE(nfs_procs) },
};

static void *thread_main(void *arg)
{
	struct fake_volume *r = arg;

	while (!r->stop)
		(void)rpcrdma_engine_wait(r->engine, -1);
	return NULL;
}

static void stop_thread(struct rpcrdma_msg *msg)
{
	container_of(msg, struct fake_volume, msg)->stop = true;
}

static void listen_at(struct fake_volume *r, struct rpcrdma_addr *addr)
{
	const struct rpcrdma_addr *used;

	assert_int_equal(rpcrdma_service_listen(r->service, addr, &used), 0);
	*addr = *used;
}

void fake_volume_start(struct fake_volume *r)
{
	const struct rpcrdma_service_attr attr = { .progs = progs, .nprogs = ARRAY_SIZE(progs), .ctx = r };
	struct rpcrdma_addr local = { .transport = RPCRDMA_LOCAL };

	snprintf(local.host, sizeof(local.host), "%s/sock", r->dir.path);
	assert_int_equal(rpcrdma_domain_create(NULL, &r->domain), 0);
	assert_int_equal(rpcrdma_engine_create(r->domain, NULL, &r->engine), 0);
	assert_int_equal(rpcrdma_service_create(r->engine, &attr, &r->service), 0);
	listen_at(r, &local);
	listen_at(r, &r->tcp);
	r->stop = false;
	assert_int_equal(pthread_create(&r->thread, NULL, thread_main, r), 0);
	snprintf(r->local_server, sizeof(r->local_server), "local://%s/sock", r->dir.path);
	snprintf(r->local_url, sizeof(r->local_url), "local://%s/sock/block/vol0", r->dir.path);
	snprintf(r->tcp_url, sizeof(r->tcp_url), "tcp://127.0.0.1:%u/block/vol0", r->tcp.port);
}

void fake_volume_stop(struct fake_volume *r)
{
	r->msg.fn = stop_thread;
	rpcrdma_engine_post(r->engine, &r->msg);
	assert_int_equal(pthread_join(r->thread, NULL), 0);
	fake_volume_release(r);
	assert_int_equal(rpcrdma_service_destroy(r->service), 0);
	rpcrdma_engine_destroy(r->engine);
	rpcrdma_domain_destroy(r->domain);
}

void fake_volume_open(struct fake_volume *r)
{
	*r = (struct fake_volume){
		.size = 1u << 20,
		.block = 512,
		.flags = BLOCK_CAN_DISCARD | BLOCK_CAN_EXTENTS,
		.verf = 1,
		.tcp = { .transport = RPCRDMA_TCP, .host = "127.0.0.1" },
		.disk = malloc(FAKE_VOLUME_ROOM),
	};
	assert_non_null(r->disk);
	leat_flow_fill(r->disk, FAKE_VOLUME_ROOM, 1);
	pthread_mutex_init(&r->lock, NULL);
	tmp_dir_create(&r->dir);
	fake_volume_start(r);
}

void fake_volume_close(struct fake_volume *r)
{
	fake_volume_stop(r);
	tmp_dir_destroy(&r->dir);
	pthread_mutex_destroy(&r->lock);
	free(r->disk);
}

bool fake_volume_holds(struct fake_volume *r, unsigned n)
{
	bool holds;

	pthread_mutex_lock(&r->lock);
	holds = r->nheld >= n;
	pthread_mutex_unlock(&r->lock);
	return holds;
}

void fake_volume_release(struct fake_volume *r)
{
	pthread_mutex_lock(&r->lock);
	r->hold = false;
	for (unsigned i = 0; i < r->nheld; i++)
		(void)rpcrdma_task_finish(r->held[i], r->result);
	r->nheld = 0;
	pthread_mutex_unlock(&r->lock);
}

unsigned fake_volume_calls(struct fake_volume *r, uint32_t proc)
{
	unsigned n;

	pthread_mutex_lock(&r->lock);
	n = r->calls[proc];
	pthread_mutex_unlock(&r->lock);
	return n;
}

uint32_t fake_volume_incarnation(struct fake_volume *r, uint32_t slot)
{
	uint32_t newest = 0;

	pthread_mutex_lock(&r->lock);
	for (unsigned i = 0; i < r->nlanes; i++)
		if (r->lanes[i].slot == slot)
			newest = MAX(newest, r->lanes[i].incarnation);
	pthread_mutex_unlock(&r->lock);
	return newest;
}
