/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_hostile.c - clients of block volumes that do as they like: bad handles, lanes, names, arguments and ranges
 *
 * After each attack another client is served, and nothing has been written that was refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "base/wire.h"
#include "block_odd.h"
#include "inside.h"
/* ---- handles and lanes ---- */

static void handles(void **state)
{
	struct block_client a, b;

	(void)state;
	odd_start("vol=a," PLAIN, NULL);
	block_connect(&a, 1, 0);
	block_connect(&b, 1, 1);
	odd_attach(&a, "me", 0);
	odd_each(&b, BLOCK_ERR_BADHANDLE); /* of zeroes */
	for (size_t i = 0; i < sizeof(b.handle); i++) {
		memcpy(b.handle, a.handle, sizeof(b.handle));
		b.handle[i] = (char)(b.handle[i] ^ 1 << i % 8);
		odd_each(&b, BLOCK_ERR_BADHANDLE);
	}
	assert_int_equal(server_counters(block_rig.srv, "block_bad_handles"),
			 (sizeof(b.handle) + 1) * 7u);
	odd_untouched();
	/* the same handle in another process */
	memcpy(b.handle, a.handle, sizeof(b.handle));
	b.lane.instance = 2;
	odd_each(&b, BLOCK_ERR_INVAL);
	odd_untouched();
	assert_int_equal(odd_one(&a, BLOCKPROC_READ, 0, 4096), BLOCK_OK);
	/* one that was valid before */
	b.lane.instance = 1;
	odd_attach(&a, "me", 0);
	odd_each(&b, BLOCK_ERR_FENCED);
	odd_untouched();
	assert_int_equal(odd_one(&a, BLOCKPROC_READ, 0, 4096), BLOCK_OK);
	odd_served();
	odd_each(&a, BLOCK_ERR_FENCED);
	block_close(&a);
	block_close(&b);
	odd_end();
}

/* A server without a state directory signs with a key of its own. */
static void handle_of_another_server(void **state)
{
	struct block_client a;

	(void)state;
	block_rig_stateless = true;
	odd_start("vol=a," PLAIN, NULL);
	block_connect(&a, 1, 0);
	odd_attach(&a, "me", 0);
	block_rig_restart(NULL);
	block_reconnect(&a, NULL);
	odd_each(&a, BLOCK_ERR_BADHANDLE);
	block_close(&a);
	odd_end();
	block_rig_stateless = false;
}

static void lanes(void **state)
{
	static const uint32_t slots[] = { BLOCK_LANES_MAX, BLOCK_LANES_MAX + 1, 1u << 31, UINT32_MAX };
	struct block_client a, b;

	(void)state;
	odd_start("vol=a," PLAIN, NULL);
	block_connect(&a, 1, 0);
	block_connect(&b, 1, 0);
	odd_attach(&a, "me", 0);
	memcpy(b.handle, a.handle, sizeof(b.handle));
	for (size_t i = 0; i < ARRAY_SIZE(slots); i++) {
		b.lane.slot = slots[i];
		odd_each(&b, BLOCK_ERR_INVAL);
		assert_int_equal(block_attach(&b, "vol", "me", 0, NULL), BLOCK_ERR_INVAL);
	}
	b.lane = (block_lane){ .instance = 1, .slot = 1, .incarnation = 0 };
	odd_each(&b, BLOCK_ERR_INVAL);
	/* the lane of another connection */
	b.lane = a.lane;
	odd_each(&b, BLOCK_ERR_OLD_LANE);
	assert_int_equal(block_attach(&b, "vol", "me", 0, NULL), BLOCK_ERR_OLD_LANE);
	assert_int_equal(odd_one(&a, BLOCKPROC_READ, 0, 512), BLOCK_OK);
	/* all lanes by one connection */
	for (b.lane.slot = 1; b.lane.slot < BLOCK_LANES_MAX; b.lane.slot++)
		assert_int_equal(odd_one(&b, BLOCKPROC_READ, 0, 512), BLOCK_OK);
	/* the last incarnation: no newer one can come */
	b.lane.slot = 0;
	b.lane.incarnation = UINT32_MAX;
	assert_int_equal(odd_one(&b, BLOCKPROC_READ, 0, 512), BLOCK_OK);
	b.lane.incarnation = UINT32_MAX - 1;
	odd_each(&b, BLOCK_ERR_OLD_LANE);
	b.lane.incarnation = 1;
	odd_each(&b, BLOCK_ERR_OLD_LANE);
	/* the connection that had the lane was closed; its client connects again */
	odd_each(&a, BLOCK_ERR_OLD_LANE);
	odd_untouched();
	odd_served();
	block_close(&a);
	block_close(&b);
	odd_end();
}

/* One client may take half of the places for holders of a volume; the others stay free for other clients. */
static void many_holders(void **state)
{
	const unsigned most = 128; /* then 128 of the 256 places are free */
	struct block_client a, b;
	char name[32];
	unsigned n;

	(void)state;
	odd_start("vol=a," PLAIN ",share=shared,take_over=no", NULL);
	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	for (n = 0; n < 512; n++) {
		(void)snprintf(name, sizeof(name), "holder %u", n);
		if (block_attach(&a, "vol", name, 0, NULL) != BLOCK_OK)
			break;
	}
	assert_int_equal(n, most);
	assert_int_equal(block_attach(&a, "vol", name, 0, NULL), BLOCK_ERR_BUSY);
	assert_int_equal(odd_one(&a, BLOCKPROC_READ, 0, 512), BLOCK_OK);
	assert_int_equal(block_attach(&a, "vol", "holder 3", 0, NULL), BLOCK_OK); /* it has that */
	assert_int_equal(block_detach(&a), BLOCK_OK);
	assert_int_equal(block_attach(&a, "vol", name, 0, NULL), BLOCK_OK);
	assert_int_equal(a.info.nholders, most);
	/* those that a restart has brought back count, too */
	block_rig_restart(NULL);
	block_reconnect(&a, NULL);
	assert_int_equal(block_attach(&a, "vol", "another", 0, NULL), BLOCK_ERR_BUSY);
	assert_int_equal(block_attach(&a, "vol", "holder 4", 0, NULL), BLOCK_OK);
	block_close(&a);
	block_close(&b);
	odd_end();
}

/* A connection may have many lanes of many attachments; with no room for more, those that it has are served. */
static void many_lanes(void **state)
{
	struct block_client a, kept;
	unsigned full = 0;
	char name[32];

	(void)state;
	odd_start("vol=a," PLAIN ",share=shared", NULL);
	block_connect(&a, 1, 0);
	for (unsigned n = 0; n < 40 && !full; n++) {
		(void)snprintf(name, sizeof(name), "holder %u", n);
		a.lane.slot = 0;
		if (block_attach(&a, "vol", name, 0, NULL) != BLOCK_OK) {
			full = n;
			break;
		}
		for (a.lane.slot = 1; a.lane.slot < BLOCK_LANES_MAX; a.lane.slot++)
			assert_int_equal(odd_one(&a, BLOCKPROC_READ, 0, 512), BLOCK_OK);
		kept = a;
	}
	assert_int_equal(full, 32);
	kept.lane.slot = 0;
	assert_int_equal(odd_one(&kept, BLOCKPROC_READ, 0, 512), BLOCK_OK);
	/* lanes of attachments that have ended need no room */
	assert_int_equal(block_detach(&kept), BLOCK_OK);
	for (unsigned n = 0; n < 1000; n++)
		odd_attach(&kept, n % 2 ? "one" : "two", 0);
	assert_int_equal(odd_one(&kept, BLOCKPROC_READ, 0, 512), BLOCK_OK);
	block_close(&a);
	odd_end();
}

/* ---- names ---- */

static void names(void **state)
{
	static char full[BLOCK_NAME_MAX + 1], text[BLOCK_NAME_MAX + 1];
	static const char *const bad[] = { "", "a/b", "/", "line\nbreak", "\x01", "tab\tbed", "\x7f" };
	struct block_rig_call info = { .args.info = { .volume = TEXT("vol"), .after = TEXT("") } };
	struct block_rig_call call = { .args.attach = { .volume = TEXT("vol"), .holder = full, .victim = TEXT(""), .app = text } };
	const BLOCKINFOresok *ok = &info.res.info.BLOCKINFOres_u.resok;
	struct block_client a;

	(void)state;
	memset(full, 'n', BLOCK_NAME_MAX);
	memset(text, '\n', BLOCK_NAME_MAX);
	odd_start("vol=a," PLAIN, NULL);
	block_connect(&a, 1, 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(block_attach(&a, "vol", bad[i], 0, NULL), BLOCK_ERR_INVAL);
		if (*bad[i])
			assert_int_equal(block_attach(&a, "vol", "me", BLOCK_TAKE_OVER, bad[i]), BLOCK_ERR_INVAL);
		assert_int_equal(block_attach(&a, bad[i], "me", 0, NULL), BLOCK_ERR_NOENT);
	}
	assert_int_equal(block_attach(&a, full, "me", 0, NULL), BLOCK_ERR_NOENT);
	assert_int_equal(block_attach(&a, "vol", "me", BLOCK_TAKE_OVER, full), BLOCK_ERR_NOHOLDER);
	/* names of full length, and a text that would break lines */
	block_begin(&a, &call, BLOCKPROC_ATTACH, NULL, 0);
	assert_int_equal(block_end(&call), BLOCK_OK);
	memcpy(a.handle, call.res.attach.BLOCKATTACHres_u.resok.handle, sizeof(a.handle));
	xdr_free((xdrproc_t)xdr_BLOCKATTACHres, (char *)&call.res.attach);
	block_begin(&a, &info, BLOCKPROC_INFO, NULL, 0);
	assert_int_equal(block_end(&info), BLOCK_OK);
	assert_int_equal(ok->holders.holders_len, 1);
	assert_string_equal(ok->holders.holders_val[0].name, full);
	assert_int_equal(strlen(ok->holders.holders_val[0].app), BLOCK_NAME_MAX);
	assert_int_equal(strspn(ok->holders.holders_val[0].app, "?"), BLOCK_NAME_MAX);
	xdr_free((xdrproc_t)xdr_BLOCKINFOres, (char *)&info.res.info);
	block_rig_restart(NULL); /* they were saved */
	block_reconnect(&a, NULL);
	assert_int_equal(odd_one(&a, BLOCKPROC_READ, 0, 512), BLOCK_OK);
	odd_served();
	block_close(&a);
	odd_end();
}

/* ---- arguments as bytes ---- */

static struct {
	u_int len;
	char bytes[512];
} raw;

static bool_t xdr_raw(XDR *xdrs, void *arg)
{
	(void)arg;
	return xdr_opaque(xdrs, raw.bytes, raw.len);
}

static bool_t xdr_nothing(XDR *xdrs, void *arg)
{
	(void)xdrs;
	(void)arg;
	return TRUE;
}

static void on_raw(struct rpcrdma_call *rpc, int err)
{
	struct block_rig_call *call = container_of(rpc, struct block_rig_call, call);

	call->done = true;
	call->err = err;
}

/* Return: of the RPC: -EINVAL: arguments not understood */
static int send_raw(struct block_client *c, uint32_t proc)
{
	static struct block_rig_call call;

	call.done = false;
	call.call = (struct rpcrdma_call){ .prog = LEAT_BLOCK, .vers = LEAT_BLOCK_V1, .proc = proc, .args = &raw,
					   .res = &raw, .encode = (xdrproc_t)xdr_raw, .decode = (xdrproc_t)xdr_nothing,
					   .reply_max = 32768, .deadline_ms = 60000, .done = on_raw };
	assert_int_equal(rpcrdma_clnt_call(c->clnt, &call.call), 0);
	while (!call.done)
		(void)rpcrdma_engine_wait(block_rig.engine, -1);
	return call.err;
}

static void encode(xdrproc_t fn, void *args)
{
	XDR x;

	xdrmem_create(&x, raw.bytes, sizeof(raw.bytes), XDR_ENCODE);
	assert_true(((bool_t(*)(XDR *, void *))fn)(&x, args));
	raw.len = xdr_getpos(&x);
	xdr_destroy(&x);
}

/* Complete arguments of each procedure that has some; their data are inline. */
static void fill_raw(uint32_t proc, const struct block_client *c)
{
	BLOCKLISTargs list = { .after = TEXT("some") };
	BLOCKINFOargs info = { .volume = TEXT("vol"), .after = TEXT("me") };
	BLOCKATTACHargs at = { .volume = TEXT("vol"), .holder = TEXT("h"), .victim = TEXT("v"), .app = TEXT("app"), .lane = c->lane };
	BLOCKZEROargs zero = { .at.lane = c->lane, .offset = 0, .length = 0 };
	BLOCKWRITEargs w = { .at.lane = c->lane };
	BLOCKREADargs r = { .at.lane = c->lane };

	switch (proc) {
	case BLOCKPROC_LIST:
		encode((xdrproc_t)xdr_BLOCKLISTargs, &list);
		return;
	case BLOCKPROC_INFO:
		encode((xdrproc_t)xdr_BLOCKINFOargs, &info);
		return;
	case BLOCKPROC_ATTACH:
		encode((xdrproc_t)xdr_BLOCKATTACHargs, &at);
		return;
	case BLOCKPROC_READ:
		encode((xdrproc_t)xdr_BLOCKREADargs, &r);
		break;
	case BLOCKPROC_WRITE: /* the length of the data, and the data */
		w.data.length = 0;
		encode((xdrproc_t)xdr_BLOCKWRITEargs, &w);
		put_be32(raw.bytes + raw.len - 4, 16);
		memset(raw.bytes + raw.len, 'd', 16);
		raw.len += 16;
		break;
	case BLOCKPROC_DISCARD:
	case BLOCKPROC_EXTENTS:
		encode((xdrproc_t)xdr_BLOCKRANGEargs, &zero);
		break;
	case BLOCKPROC_ZERO:
		encode((xdrproc_t)xdr_BLOCKZEROargs, &zero);
		break;
	default:
		encode((xdrproc_t)xdr_BLOCKATargs, &zero);
	}
	memcpy(raw.bytes, c->handle, sizeof(c->handle));
}

static void arguments(void **state)
{
	struct block_client a;

	(void)state;
	odd_start("vol=a," PLAIN, NULL);
	block_connect(&a, 1, 0);
	odd_attach(&a, "me", 0);
	for (uint32_t proc = BLOCKPROC_LIST; proc <= BLOCKPROC_EXTENTS; proc++) {
		u_int len;

		fill_raw(proc, &a);
		len = raw.len;
		for (raw.len = 0; raw.len < len; raw.len += 4) {
			if (send_raw(&a, proc) != -EINVAL)
				fail_msg("procedure %u of %u bytes of %u", proc, raw.len, len);
		}
	}
	/* strings that are too long, and a boolean of 2 */
	for (uint32_t proc = BLOCKPROC_LIST; proc <= BLOCKPROC_ATTACH; proc++) {
		fill_raw(proc, &a);
		put_be32(raw.bytes, BLOCK_NAME_MAX + 1);
		memset(raw.bytes + 4, 'x', sizeof(raw.bytes) - 4);
		raw.len = 200;
		assert_int_equal(send_raw(&a, proc), -EINVAL);
		put_be32(raw.bytes, UINT32_MAX);
		assert_int_equal(send_raw(&a, proc), -EINVAL);
	}
	fill_raw(BLOCKPROC_WRITE, &a);
	put_be32(raw.bytes + 48 + 12, UINT32_MAX); /* data */
	assert_int_equal(send_raw(&a, BLOCKPROC_WRITE), -EINVAL);
	put_be32(raw.bytes + 48 + 12, BLOCK_IO_MAX + 1);
	assert_int_equal(send_raw(&a, BLOCKPROC_WRITE), -EINVAL);
	odd_untouched();
	assert_int_equal(odd_one(&a, BLOCKPROC_READ, 0, 512), BLOCK_OK);
	odd_served();
	block_close(&a);
	odd_end();
}

/* ---- ranges ---- */

#define SIZE ((uint64_t)BLOCK_RIG_BYTES)
#define TOP UINT64_MAX

static void ranges(void **state)
{
	enum { OK = BLOCK_OK, INV = BLOCK_ERR_INVAL, NOS = BLOCK_ERR_NOSPC };
	static const struct {
		uint64_t off, bytes;
		int read, write, range, extents; /* range: DISCARD and ZERO */
	} rows[] = {
		{ 0, 0, OK, OK, INV, INV },
		{ 512, 0, OK, OK, INV, INV },
		{ SIZE, 0, OK, OK, INV, INV },
		{ SIZE + 512, 0, INV, NOS, INV, INV },
		{ TOP - 511, 0, INV, NOS, INV, INV },
		{ 1, 512, INV, INV, INV, INV },
		{ 0, 1, INV, INV, INV, INV },
		{ 0, 513, INV, INV, INV, INV },
		{ 511, 513, INV, INV, INV, INV },
		{ SIZE, 512, INV, NOS, NOS, INV },
		{ SIZE - 512, 1024, INV, NOS, NOS, INV },
		{ SIZE - 512, 1 << 20, INV, NOS, NOS, INV },
		{ TOP - 511, 512, INV, NOS, NOS, INV },
		{ TOP - 511, 1024, INV, NOS, NOS, INV }, /* it wraps */
		{ TOP, 512, INV, NOS, INV, INV }, /* a WRITE is beyond the end whatever else it is */
		{ (uint64_t)INT64_MAX + 1, 512, INV, NOS, NOS, INV },
		{ (uint64_t)INT64_MAX - 511, 512, INV, NOS, NOS, INV },
	};
	static const struct {
		uint64_t off, bytes;
		int want;
	} longer[] = {
		{ 0, SIZE + 512, 0 }, { 0, 1 << 30, 0 }, { 0, (1 << 30) + 512, INV }, { 0, TOP - 511, INV },
		{ 512, TOP - 511, INV }, { 512, TOP - 1023, INV }, { TOP - 511, TOP - 511, INV }, { 0, 1ull << 32, INV },
	};
	struct block_client a;

	(void)state;
	odd_start("vol=a", NULL);
	block_connect(&a, 1, 0);
	odd_attach(&a, "me", 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t off = rows[i].off, bytes = rows[i].bytes;

		print_message("range %zu\n", i);
		assert_int_equal(odd_one(&a, BLOCKPROC_READ, off, bytes), rows[i].read);
		assert_int_equal(odd_one(&a, BLOCKPROC_WRITE, off, bytes), rows[i].write);
		assert_int_equal(odd_one(&a, BLOCKPROC_ZERO, off, bytes), rows[i].range);
		assert_int_equal(odd_one(&a, BLOCKPROC_EXTENTS, off, bytes), rows[i].extents);
		if (a.info.flags & BLOCK_CAN_DISCARD)
			assert_int_equal(odd_one(&a, BLOCKPROC_DISCARD, off, bytes), rows[i].range);
	}
	for (size_t i = 0; i < ARRAY_SIZE(longer); i++) {
		uint64_t off = longer[i].off, bytes = longer[i].bytes;

		print_message("longer range %zu\n", i);
		assert_int_equal(odd_one(&a, BLOCKPROC_ZERO, off, bytes), longer[i].want ? INV : NOS);
		assert_int_equal(odd_one(&a, BLOCKPROC_EXTENTS, off, bytes), INV);
		if (a.info.flags & BLOCK_CAN_DISCARD)
			assert_int_equal(odd_one(&a, BLOCKPROC_DISCARD, off, bytes), longer[i].want ? INV : NOS);
	}
	odd_untouched();
	odd_served();
	block_close(&a);
	odd_end();
}

static uint32_t read_some(struct block_client *c, uint32_t count, uint32_t room, block_status want)
{
	struct block_rig_call call = { .args.read = { .offset = 0, .count = count } };

	block_begin(c, &call, BLOCKPROC_READ, odd_mem, room);
	assert_int_equal(block_end(&call), want);
	return want ? 0 : call.res.read.BLOCKREADres_u.data.length;
}

/* More than one READ moves, and nothing */
static void counts(void **state)
{
	struct block_client a;
	uint32_t n;

	(void)state;
	odd_start("vol=a," PLAIN, NULL);
	block_connect(&a, 1, 0);
	odd_attach(&a, "me", 0);
	assert_int_equal(block_write(&a, 0, odd_data, sizeof(odd_data), false), BLOCK_OK);
	assert_int_equal(read_some(&a, 0, 4096, BLOCK_OK), 0);
	n = read_some(&a, BLOCK_IO_MAX + 512, sizeof(odd_mem), BLOCK_OK);
	assert_true(n >= 512 && n <= BLOCK_IO_MAX && n % 512 == 0);
	assert_memory_equal(odd_mem, odd_data, n);
	n = read_some(&a, 2 << 20, sizeof(odd_mem), BLOCK_OK);
	assert_true(n >= 512 && n <= BLOCK_IO_MAX);
	assert_memory_equal(odd_mem, odd_data, n);
	(void)read_some(&a, UINT32_MAX, sizeof(odd_mem), BLOCK_ERR_INVAL);
	n = read_some(&a, UINT32_MAX - 511, sizeof(odd_mem), BLOCK_OK);
	assert_true(n >= 512 && n <= BLOCK_IO_MAX);
	odd_served();
	block_close(&a);
	odd_end();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ODD_BOTH(handles),    ODD_BOTH(handle_of_another_server), ODD_BOTH(lanes),
		ODD_BOTH(many_holders), ODD_BOTH(many_lanes),		  ODD_BOTH(names),
		ODD_BOTH(arguments),  ODD_BOTH(ranges),			  ODD_BOTH(counts),
	};

	return cmocka_run_group_tests_name("block hostile", tests, NULL, NULL);
}
