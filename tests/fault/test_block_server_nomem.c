/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_server_nomem.c - the Nth allocation of a server of block volumes fails, for N from 1 until none is left to fail
 *
 * While it serves, allocations of its threads are counted; while it starts or reloads, those of the thread that does so.
 * A call gets no reply, or LATER, and is sent again; an ATTACH or DETACH may fail with IO, and is repeated. Then everything
 * works, and nothing is lost: the sanitizers see to that.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "block_rig.h"
#include "nomem_server.h"

#define TEXT(s) ((char *)(uintptr_t)(s))
#define PLAIN "read=cached,write=cached"

/* ---- starting and reloading ---- */

static const char *const specs[] = { "vol=a," PLAIN, "other=b,ro,users=me", NULL };

static void starting(void **state)
{
	unsigned long n = 0;
	int err;

	(void)state;
	do {
		nomem_server_at_start(++n);
		err = block_rig_start(specs);
		nomem_server_at_start(0);
		assert_true(!err || nomem_server_failed());
		if (err) /* it has let go of the files */
			block_rig_retry();
		block_rig_stop();
	} while (nomem_server_failed());
	print_message("%lu allocations\n", n - 1);
	assert_true(n > 50);
}

static void reloading(void **state)
{
	struct block_client c;
	uint8_t mem[512];
	unsigned long n = 0;
	char why[256];
	int err;

	(void)state;
	assert_int_equal(block_rig_start((const char *const[]){ "vol=a," PLAIN, NULL }), 0);
	block_connect(&c, 1, 0);
	assert_int_equal(block_attach(&c, "vol", "me", 0, NULL), BLOCK_OK);
	do {
		nomem_server_at_start(++n);
		err = block_rig_reload(specs, why, sizeof(why));
		nomem_server_at_start(0);
		assert_true(!err || (nomem_server_failed() && why[0]));
		assert_int_equal(block_read(&c, 0, mem, 512), BLOCK_OK);
		assert_int_equal(block_rig_reload((const char *const[]){ "vol=a," PLAIN, NULL }, why, sizeof(why)), 0);
	} while (nomem_server_failed());
	print_message("%lu allocations\n", n - 1);
	assert_true(n > 10);
	block_close(&c);
	block_rig_stop();
}

/* ---- serving ---- */

static uint8_t data[65536], mem[65536];
static struct block_client client;

static bool is_done(void *arg)
{
	return ((struct block_rig_call *)arg)->done;
}

/* Makes the call until it has been served. A new connection has a new incarnation. */
static void call(uint32_t proc, struct block_rig_call *call, void *sink, uint32_t bytes)
{
	struct block_rig_call once;
	block_status status;

	for (;;) {
		once = *call;
		if (proc == BLOCKPROC_WRITE)
			once.args.write.data.iov = &once.iov;
		block_begin(&client, &once, proc, sink, bytes);
		block_run_until(is_done, &once);
		status = once.res.status;
		if (once.err || status == BLOCK_ERR_OLD_LANE) /* it was refused, or connected again */
			block_reconnect(&client, NULL);
		else if (status != BLOCK_ERR_LATER && !(status == BLOCK_ERR_IO && proc <= BLOCKPROC_DETACH))
			break;
	}
	if (proc == BLOCKPROC_DETACH && status == BLOCK_ERR_FENCED) /* the reply, or the holders' file, was lost */
		status = BLOCK_OK;
	if (status != BLOCK_OK)
		fail_msg("procedure %u: %u", proc, status);
	*call = once;
}

static void free_results(xdrproc_t fn, struct block_rig_call *c)
{
	xdr_free(fn, (char *)&c->res);
}

static void everything(void)
{
	struct block_rig_call list = { .args.list.after = TEXT("") };
	struct block_rig_call info = { .args.info = { .volume = TEXT("vol"), .after = TEXT("") } };
	struct block_rig_call attach = { .args.attach = { .volume = TEXT("vol"), .holder = TEXT("me"), .victim = TEXT(""),
							  .app = TEXT("app") } };
	struct block_rig_call write = { .iov = { data, sizeof(data) },
					.args.write = { .fua = TRUE, .data = { .length = sizeof(data), .iovcnt = 1 } } };
	struct block_rig_call small = { .iov = { data, 512 }, .args.write = { .data = { .length = 512, .iovcnt = 1 } } };
	struct block_rig_call read = { .args.read.count = sizeof(mem) };
	struct block_rig_call range = { .args.zero = { .offset = 1 << 20, .length = 4096 } };
	struct block_rig_call extents = { .args.range = { .offset = 0, .length = 1 << 20 } };
	struct block_rig_call at = { .args.at.at = { .handle = "" } };

	block_connect(&client, 1, 0);
	call(BLOCKPROC_LIST, &list, NULL, 0);
	assert_int_equal(list.res.list.BLOCKLISTres_u.resok.volumes.volumes_len, 2);
	free_results((xdrproc_t)xdr_BLOCKLISTres, &list);
	call(BLOCKPROC_ATTACH, &attach, NULL, 0);
	memcpy(client.handle, attach.res.attach.BLOCKATTACHres_u.resok.handle, sizeof(client.handle));
	free_results((xdrproc_t)xdr_BLOCKATTACHres, &attach);
	call(BLOCKPROC_INFO, &info, NULL, 0);
	assert_int_equal(info.res.info.BLOCKINFOres_u.resok.holders.holders_len, 1);
	free_results((xdrproc_t)xdr_BLOCKINFOres, &info);
	call(BLOCKPROC_WRITE, &write, NULL, 0);
	call(BLOCKPROC_WRITE, &small, NULL, 0);
	memset(mem, 0, sizeof(mem));
	call(BLOCKPROC_READ, &read, mem, sizeof(mem));
	assert_memory_equal(mem, data, sizeof(mem));
	read.args.read.count = 512;
	call(BLOCKPROC_READ, &read, mem, 512);
	call(BLOCKPROC_FLUSH, &at, NULL, 0);
	call(BLOCKPROC_ZERO, &range, NULL, 0);
	call(BLOCKPROC_EXTENTS, &extents, NULL, 0);
	free_results((xdrproc_t)xdr_BLOCKEXTENTSres, &extents);
	call(BLOCKPROC_DETACH, &at, NULL, 0);
	block_close(&client);
}

static void serving(const char *url)
{
	static const char *const tcp[] = { "vol=a," PLAIN ",clients=127.0.0.1,insecure", "other=b,clients=127.0.0.1,insecure",
					   NULL };
	unsigned long n = 0;

	block_rig_url = url;
	block_rig_timeout_ms = 50; /* of calls that are dropped */
	do {
		assert_int_equal(block_rig_start(url ? tcp : specs), 0);
		nomem_server_serving(++n);
		everything();
		nomem_server_serving(0);
		everything();
		block_rig_stop();
	} while (nomem_server_failed());
	block_rig_timeout_ms = 0;
	block_rig_url = NULL;
	print_message("%lu allocations\n", n - 1);
	assert_true(n > 10);
}

static void serving_local(void **state)
{
	(void)state;
	serving(NULL);
}

static void serving_tcp(void **state)
{
	(void)state;
	serving("tcp://127.0.0.1:0");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(starting), cmocka_unit_test(reloading), cmocka_unit_test(serving_local),
		cmocka_unit_test(serving_tcp),
	};

	nomem_server_init();
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 509);
	return cmocka_run_group_tests_name("block server nomem", tests, NULL, NULL);
}
