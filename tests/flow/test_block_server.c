/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_server.c - the block program of leatd: procedures, attachments, fencing and lanes
 *
 * Writes to a volume with write=cached wait in a worker while held_writes.h holds them.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "block_rig.h"
#include "block_volume.h"
#include "held_writes.h"
#include "inside.h"

#define PLAIN "read=cached,write=cached"

static uint8_t data[(1 << 20) + 4], mem[1 << 20]; /* moves_data() begins at each of the first bytes */

/* ---- held writes ---- */

static void wait_held(int n)
{
	block_run_until(held_writes_are, &n);
}

static uint64_t waits_before;

static bool has_waited(void *arg)
{
	(void)arg;
	return server_counters(block_rig.srv, "block_lane_waits") > waits_before;
}

static bool has_waited_or_begun(void *arg)
{
	return has_waited(arg) || held_writes() > 1;
}

/* ---- files ---- */

static void see_file(const char *name, uint64_t off, uint8_t byte)
{
	int fd = block_rig_open(name);
	uint8_t got;

	assert_int_equal(pread(fd, &got, 1, (off_t)off), 1);
	assert_int_equal(got, byte);
	close(fd);
}

static void start(const char *spec)
{
	const char *const specs[] = { spec, NULL };

	assert_int_equal(block_rig_start(specs), 0);
}

/* ---- data ---- */

static void moves_data(const char *spec)
{
	static const uint32_t lengths[] = { 512, 4096, 65536, 1 << 20 };
	struct block_client c;

	start(spec);
	block_connect(&c, 1, 0);
	assert_int_equal(block_attach(&c, "vol", "me", 0, NULL), BLOCK_OK);
	assert_int_equal(c.info.size, BLOCK_RIG_BYTES);
	for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint64_t off = 512 * (i + 3);

		assert_int_equal(block_write(&c, off, data + i, lengths[i], i & 1), BLOCK_OK);
		memset(mem, 0xee, sizeof(mem));
		assert_int_equal(block_read(&c, off, mem, lengths[i]), BLOCK_OK);
		assert_memory_equal(mem, data + i, MIN(lengths[i], (uint32_t)sizeof(data) - i));
	}
	assert_int_equal(block_flush(&c), BLOCK_OK);
	see_file("a", 512 * 6, data[3]);
	assert_int_equal(block_detach(&c), BLOCK_OK);
	assert_int_equal(block_read(&c, 0, mem, 512), BLOCK_ERR_FENCED);
	block_close(&c);
	block_rig_stop();
}

static void moves_direct(void **state)
{
	(void)state;
	moves_data("vol=a");
}

static void moves_cached(void **state)
{
	(void)state;
	moves_data("vol=a," PLAIN);
}

static void moves_in_pieces(void **state)
{
	(void)state;
	moves_data("vol=a,overlap=streams,streams=4,chunk=64K,grain=16K,sched=sorted,depth=4");
}

static void bad_ranges(void **state)
{
	struct block_client c;
	int fd;

	(void)state;
	start("vol=a," PLAIN ",block=4096");
	block_connect(&c, 1, 0);
	assert_int_equal(block_attach(&c, "vol", "me", 0, NULL), BLOCK_OK);
	assert_int_equal(c.info.block, 4096);
	assert_int_equal(block_read(&c, 512, mem, 4096), BLOCK_ERR_INVAL);
	assert_int_equal(block_read(&c, 0, mem, 512), BLOCK_ERR_INVAL);
	assert_int_equal(block_write(&c, 512, data, 4096, false), BLOCK_ERR_INVAL);
	assert_int_equal(block_read(&c, BLOCK_RIG_BYTES - 4096, mem, 8192), BLOCK_ERR_INVAL);
	assert_int_equal(block_write(&c, BLOCK_RIG_BYTES - 4096, data, 8192, false), BLOCK_ERR_NOSPC);
	assert_int_equal(block_write(&c, UINT64_MAX - 4095, data, 4096, false), BLOCK_ERR_NOSPC);
	assert_int_equal(block_read(&c, UINT64_MAX - 4095, mem, 4096), BLOCK_ERR_INVAL);
	see_file("a", BLOCK_RIG_BYTES - 1, 0); /* nothing is clipped */
	/* a volume that grew is seen, and one that shrank ends in errors */
	fd = block_rig_open("a");
	assert_int_equal(ftruncate(fd, BLOCK_RIG_BYTES + 4096 + 100), 0);
	assert_int_equal(block_write(&c, BLOCK_RIG_BYTES, data, 4096, false), BLOCK_OK);
	assert_int_equal(block_write(&c, BLOCK_RIG_BYTES + 4096, data, 4096, false), BLOCK_ERR_NOSPC);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(block_read(&c, 8192, mem, 4096), BLOCK_ERR_IO);
	assert_int_equal(block_read(&c, 0, mem, 4096), BLOCK_OK);
	close(fd);
	block_close(&c);
	block_rig_stop();
}

static block_status change_range(struct block_client *c, uint32_t proc, uint64_t off, uint64_t bytes, bool keep)
{
	struct block_rig_call call = { .args.zero = { .offset = off, .length = bytes, .keep = keep } };

	block_begin(c, &call, proc, NULL, 0);
	return block_end(&call);
}

static void discards_and_zeroes(void **state)
{
	struct block_rig_call call = { .args.range = { .offset = 0, .length = 1 << 20 } };
	const BLOCKEXTENTSresok *ok = &call.res.extents.BLOCKEXTENTSres_u.resok;
	struct block_client c;
	uint64_t sum = 0;

	(void)state;
	start("vol=a");
	block_connect(&c, 1, 0);
	assert_int_equal(block_attach(&c, "vol", "me", 0, NULL), BLOCK_OK);
	assert_int_equal(block_write(&c, 0, data, 1 << 20, false), BLOCK_OK);
	assert_int_equal(change_range(&c, BLOCKPROC_ZERO, 4096, 8192, false), BLOCK_OK);
	assert_int_equal(change_range(&c, BLOCKPROC_ZERO, 65536 + 512, 512, true), BLOCK_OK);
	assert_int_equal(block_read(&c, 0, mem, 131072), BLOCK_OK);
	memset(data + 4096, 0, 8192);
	memset(data + 65536 + 512, 0, 512);
	assert_memory_equal(mem, data, 131072);
	assert_int_equal(change_range(&c, BLOCKPROC_ZERO, 0, (1 << 30) + 512, false), BLOCK_ERR_INVAL);
	assert_int_equal(change_range(&c, BLOCKPROC_ZERO, 0, 0, false), BLOCK_ERR_INVAL);
	assert_int_equal(change_range(&c, BLOCKPROC_ZERO, BLOCK_RIG_BYTES, 512, false), BLOCK_ERR_NOSPC);
	assert_int_equal(change_range(&c, BLOCKPROC_DISCARD, 1 << 19, 1 << 18, false),
			 c.info.flags & BLOCK_CAN_DISCARD ? BLOCK_OK : BLOCK_ERR_NOTSUPP);
	assert_int_equal(block_read(&c, 0, mem, 1 << 19), BLOCK_OK);
	assert_memory_equal(mem, data, 1 << 19);
	assert_int_equal(block_read(&c, 3 << 18, mem, 1 << 18), BLOCK_OK);
	assert_memory_equal(mem, data + (3 << 18), 1 << 18);
	block_begin(&c, &call, BLOCKPROC_EXTENTS, NULL, 0);
	assert_int_equal(block_end(&call), BLOCK_OK);
	assert_true(ok->extents.extents_len > 0);
	for (u_int i = 0; i < ok->extents.extents_len; i++) {
		const block_extent *e = &ok->extents.extents_val[i];

		assert_true(e->length && e->length % 512 == 0);
		if (e->kind != BLOCK_DATA) {
			assert_int_equal(block_read(&c, sum, mem, (uint32_t)e->length), BLOCK_OK);
			for (uint64_t k = 0; k < e->length; k++)
				assert_int_equal(mem[k], 0);
		}
		sum += e->length;
	}
	assert_true(sum <= 1 << 20);
	if (c.info.flags & BLOCK_CAN_EXTENTS)
		assert_true(ok->extents.extents_len >= 3);
	xdr_free((xdrproc_t)xdr_BLOCKEXTENTSres, (char *)&call.res.extents);
	block_close(&c);
	block_rig_stop();
}

/* ---- attachments ---- */

static void one_holder(void **state)
{
	struct block_client a, b;

	(void)state;
	start("vol=a," PLAIN);
	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	assert_int_equal(block_attach(&b, "vol", "second", 0, NULL), BLOCK_ERR_BUSY);
	assert_string_equal(b.other, "first");
	assert_int_equal(block_attach(&b, "none", "second", 0, NULL), BLOCK_ERR_NOENT);
	assert_int_equal(block_attach(&b, "vol", "a/b", 0, NULL), BLOCK_ERR_INVAL);
	assert_int_equal(block_attach(&b, "vol", "", 0, NULL), BLOCK_ERR_INVAL);
	assert_int_equal(block_attach(&b, "vol", "second", 64, NULL), BLOCK_ERR_INVAL);
	/* a handle that nobody gave */
	memcpy(b.handle, a.handle, sizeof(b.handle));
	b.handle[8] ^= 1;
	assert_int_equal(block_read(&b, 0, mem, 512), BLOCK_ERR_BADHANDLE);
	/* another process */
	memcpy(b.handle, a.handle, sizeof(b.handle));
	assert_int_equal(block_read(&b, 0, mem, 512), BLOCK_ERR_INVAL);
	assert_int_equal(block_read(&a, 0, mem, 512), BLOCK_OK);
	assert_int_equal(block_detach(&a), BLOCK_OK);
	assert_int_equal(block_attach(&b, "vol", "second", BLOCK_RDONLY, NULL), BLOCK_OK);
	assert_int_equal(block_write(&b, 0, data, 512, false), BLOCK_ERR_ROFS);
	assert_int_equal(block_read(&a, 0, mem, 512), BLOCK_ERR_FENCED);
	assert_int_equal(server_counters(block_rig.srv, "block_bad_handles"), 1);
	assert_int_equal(server_counters(block_rig.srv, "block_fenced"), 1);
	assert_int_equal(server_counters(block_rig.srv, "block_busy"), 1);
	block_close(&a);
	block_close(&b);
	block_rig_stop();
}

/* Another connection of the same holder: a WRITE that is held may keep the only credit of the first one. */
static void connect_too(const struct block_client *of, struct block_client *c)
{
	block_connect(c, of->lane.instance, of->lane.slot + 1);
	memcpy(c->handle, of->handle, sizeof(c->handle));
}

/* The first WRITE of the old holder is in progress when another one takes the volume over. Its second one comes later. */
static void take_over(void **state)
{
	struct block_rig_call old, attach = { .args.attach = { .volume = (char *)(uintptr_t)"vol",
							       .holder = (char *)(uintptr_t)"second",
							       .victim = (char *)(uintptr_t)"first",
							       .app = (char *)(uintptr_t)"",
							       .flags = BLOCK_TAKE_OVER } };
	struct block_client a, a2, b;

	(void)state;
	start("vol=a," PLAIN);
	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	connect_too(&a, &a2);
	assert_int_equal(block_attach(&b, "vol", "second", BLOCK_TAKE_OVER, "other"), BLOCK_ERR_NOHOLDER);
	held_writes_begin();
	memset(mem, 1, 4096);
	block_write_begin_at(&a, &old, 0, mem, 4096, false);
	wait_held(1);
	block_begin(&b, &attach, BLOCKPROC_ATTACH, NULL, 0);
	/* from when on the ATTACH waits, nothing of the old holder begins */
	while (block_read(&a2, 0, data, 512) != BLOCK_ERR_FENCED)
		;
	assert_false(attach.done);
	held_writes_end(1);
	assert_int_equal(block_end(&attach), BLOCK_OK);
	assert_int_equal(block_end(&old), BLOCK_OK);
	memcpy(b.handle, attach.res.attach.BLOCKATTACHres_u.resok.handle, sizeof(b.handle));
	xdr_free((xdrproc_t)xdr_BLOCKATTACHres, (char *)&attach.res.attach);
	memset(mem, 2, 4096);
	assert_int_equal(block_write(&a, 0, mem, 4096, false), BLOCK_ERR_FENCED);
	see_file("a", 0, 1);
	assert_int_equal(block_write(&b, 0, mem, 4096, false), BLOCK_OK);
	see_file("a", 0, 2);
	block_close(&a);
	block_close(&a2);
	block_close(&b);
	block_rig_stop();
}

/* Operations that do not end: the ATTACH gives up, the old holder stays out, and the next ATTACH waits again. */
static void take_over_in_vain(void **state)
{
	struct block_times times = block_times;
	struct block_rig_call old;
	struct block_client a, a2, b;

	(void)state;
	block_times.drain_ns = 50 * NS_PER_MS;
	start("vol=a," PLAIN);
	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	connect_too(&a, &a2);
	held_writes_begin();
	block_write_begin_at(&a, &old, 0, data, 4096, false);
	wait_held(1);
	assert_int_equal(block_attach(&b, "vol", "second", BLOCK_TAKE_OVER, NULL), BLOCK_ERR_TIMEDOUT);
	assert_int_equal(block_read(&a2, 0, mem, 512), BLOCK_ERR_FENCED);
	assert_int_equal(block_attach(&b, "vol", "second", 0, NULL), BLOCK_ERR_TIMEDOUT);
	held_writes_end(1);
	assert_int_equal(block_end(&old), BLOCK_OK);
	assert_int_equal(block_attach(&b, "vol", "second", 0, NULL), BLOCK_OK);
	block_close(&a);
	block_close(&a2);
	block_close(&b);
	block_rig_stop();
	block_times = times;
}

static void who_may_take_over(void **state)
{
	struct block_client a, b;

	(void)state;
	start("vol=a," PLAIN ",take_over=no");
	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	assert_int_equal(block_attach(&b, "vol", "second", BLOCK_TAKE_OVER, NULL), BLOCK_ERR_ACCES);
	assert_int_equal(block_read(&a, 0, mem, 512), BLOCK_OK);
	block_close(&a);
	block_close(&b);
	block_rig_stop();
}

static bool is_attached(void *arg)
{
	return block_attach(arg, "vol", "second", 0, NULL) == BLOCK_OK;
}

/* A holder whose connections have ended keeps its volume for a while. */
static void silent_holder(void **state)
{
	struct block_times times = block_times;
	struct block_client a, b;

	(void)state;
	start("vol=a," PLAIN);
	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	block_times.silence_ns = 0; /* as long as it is connected it is not silent */
	assert_int_equal(block_attach(&b, "vol", "second", 0, NULL), BLOCK_ERR_BUSY);
	block_close(&a);
	block_run_until(is_attached, &b);
	block_times = times;
	block_close(&b);
	block_connect(&b, 3, 0);
	assert_int_equal(block_attach(&b, "vol", "second", 0, NULL), BLOCK_OK); /* the same name needs not wait */
	block_close(&b);
	block_rig_stop();
}

static void many_holders(void **state)
{
	struct block_client a, b, c;

	(void)state;
	start("vol=a," PLAIN ",share=shared");
	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	block_connect(&c, 3, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	assert_int_equal(block_attach(&b, "vol", "second", 0, NULL), BLOCK_OK);
	assert_int_equal(block_attach(&c, "vol", "third", BLOCK_TAKE_OVER, NULL), BLOCK_ERR_INVAL);
	assert_int_equal(block_attach(&c, "vol", "third", BLOCK_TAKE_OVER, "first"), BLOCK_OK);
	assert_int_equal(block_read(&a, 0, mem, 512), BLOCK_ERR_FENCED);
	assert_int_equal(block_read(&b, 0, mem, 512), BLOCK_OK);
	assert_int_equal(block_read(&c, 0, mem, 512), BLOCK_OK);
	assert_true(c.info.flags & BLOCK_SHARED);
	assert_int_equal(c.info.nholders, 2);
	block_close(&a);
	block_close(&b);
	block_close(&c);
	block_rig_stop();
}

/* The same name again: the earlier attachment ends, after its operations. */
static void again(void **state)
{
	struct block_rig_call old;
	struct block_client a, b;

	(void)state;
	start("vol=a," PLAIN);
	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&a, "vol", "me", 0, NULL), BLOCK_OK);
	held_writes_begin();
	block_write_begin_at(&a, &old, 0, data, 4096, false);
	wait_held(1);
	held_writes_end(1);
	assert_int_equal(block_attach(&b, "vol", "me", 0, NULL), BLOCK_OK);
	assert_int_equal(block_end(&old), BLOCK_OK);
	assert_int_equal(block_write(&a, 0, data, 512, false), BLOCK_ERR_FENCED);
	assert_int_equal(block_write(&b, 0, data, 512, false), BLOCK_OK);
	block_close(&a);
	block_close(&b);
	block_rig_stop();
}

static void outlives_the_server(void **state)
{
	struct block_client a, b;
	uint64_t verf;

	(void)state;
	start("vol=a");
	block_connect(&a, 1, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	assert_true(a.info.flags & BLOCK_DURABLE);
	assert_int_equal(block_write(&a, 0, data, 512, false), BLOCK_OK);
	verf = a.verf;
	block_rig_restart(NULL);
	block_reconnect(&a, NULL);
	assert_int_equal(block_write(&a, 0, data, 512, true), BLOCK_OK);
	assert_int_equal(a.verf, verf);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&b, "vol", "second", 0, NULL), BLOCK_ERR_BUSY);
	assert_string_equal(b.other, "first");
	/* a newer generation is not forgotten either */
	assert_int_equal(block_attach(&b, "vol", "second", BLOCK_TAKE_OVER, NULL), BLOCK_OK);
	block_rig_restart(NULL);
	block_reconnect(&a, NULL);
	block_reconnect(&b, NULL);
	assert_int_equal(block_read(&a, 0, mem, 512), BLOCK_ERR_FENCED);
	assert_int_equal(block_read(&b, 0, mem, 512), BLOCK_OK);
	assert_int_equal(block_detach(&b), BLOCK_OK);
	block_rig_restart(NULL);
	block_reconnect(&a, NULL);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	block_close(&a);
	block_close(&b);
	block_rig_stop();
}

/* ---- lanes ---- */

/* A WRITE of the older connection is held back in the store. The client sends it again, and then writes something newer. */
static void late_copy(void **state)
{
	struct block_rig_call old, copy, newer;
	struct block_client a, before;
	static uint8_t one[4096], two[4096];

	(void)state;
	memset(one, 1, sizeof(one));
	memset(two, 2, sizeof(two));
	start("vol=a," PLAIN);
	block_connect(&a, 1, 0);
	assert_int_equal(block_attach(&a, "vol", "me", 0, NULL), BLOCK_OK);
	waits_before = server_counters(block_rig.srv, "block_lane_waits");
	held_writes_begin();
	block_write_begin_at(&a, &old, 0, one, 4096, false);
	wait_held(1);
	block_reconnect(&a, &before);
	block_write_begin_at(&a, &copy, 0, one, 4096, false);
	block_run_until(has_waited_or_begun, NULL);
	assert_int_equal(held_writes(), 1); /* the copy has not begun */
	held_writes_end(1);
	assert_int_equal(block_end(&copy), BLOCK_OK);
	block_write_begin_at(&a, &newer, 0, two, 4096, false);
	assert_int_equal(block_end(&newer), BLOCK_OK);
	see_file("a", 0, 2);
	/* a copy that arrives now, by an older connection */
	block_reconnect(&before, NULL);
	before.lane.incarnation = 1;
	assert_int_equal(block_write(&before, 0, one, 4096, false), BLOCK_ERR_OLD_LANE);
	see_file("a", 0, 2);
	/* nor by another connection of the same incarnation */
	before.lane.incarnation = 2;
	assert_int_equal(block_write(&before, 0, one, 4096, false), BLOCK_ERR_OLD_LANE);
	/* the client of the connection that was closed may have sent its WRITE once more, too */
	assert_true(server_counters(block_rig.srv, "block_old_lanes") >= 2);
	block_close(&before);
	block_close(&a);
	block_rig_stop();
}

/* The same with WRITEs that wait for buffers, or for their turn, when the newer connection comes. */
static void late_copies_without_buffers(void **state)
{
	static struct block_rig_call old[24];
	struct block_rig_call newer;
	struct block_client a, before;
	static uint8_t one[1 << 20];

	(void)state;
	if (getenv("LEAT_TEST_MODES")) /* their slots take the memory that is scarce here */
		skip();
	memset(one, 1, sizeof(one));
	memset(mem, 2, sizeof(mem));
	block_rig_pinned = 8 << 20;
	start("vol=a," PLAIN);
	block_connect(&a, 1, 0);
	assert_int_equal(block_attach(&a, "vol", "me", 0, NULL), BLOCK_OK);
	waits_before = server_counters(block_rig.srv, "block_lane_waits");
	held_writes_begin();
	for (unsigned i = 0; i < ARRAY_SIZE(old); i++)
		block_write_begin_at(&a, &old[i], 0, one, sizeof(one), false);
	wait_held(1);
	block_reconnect(&a, &before);
	block_write_begin_at(&a, &newer, 0, mem, 4096, false);
	block_run_until(has_waited, NULL);
	rpcrdma_clnt_destroy(before.clnt);
	held_writes_end((int)ARRAY_SIZE(old));
	assert_int_equal(block_end(&newer), BLOCK_OK);
	see_file("a", 0, 2);
	block_rig_restart(NULL); /* it completes all requests first */
	see_file("a", 0, 2);
	held_writes_forget();
	block_close(&a);
	block_rig_stop();
	block_rig_pinned = 0;
}

static void bad_lanes(void **state)
{
	struct block_client a;

	(void)state;
	start("vol=a," PLAIN);
	block_connect(&a, 1, 0);
	a.lane.incarnation = 0;
	assert_int_equal(block_attach(&a, "vol", "me", 0, NULL), BLOCK_ERR_INVAL);
	a.lane.incarnation = 1;
	a.lane.slot = BLOCK_LANES_MAX;
	assert_int_equal(block_attach(&a, "vol", "me", 0, NULL), BLOCK_ERR_INVAL);
	a.lane.slot = BLOCK_LANES_MAX - 1;
	assert_int_equal(block_attach(&a, "vol", "me", 0, NULL), BLOCK_OK);
	a.lane.slot = BLOCK_LANES_MAX;
	assert_int_equal(block_read(&a, 0, mem, 512), BLOCK_ERR_INVAL);
	a.lane.slot = 0;
	a.lane.incarnation = 0;
	assert_int_equal(block_read(&a, 0, mem, 512), BLOCK_ERR_INVAL);
	block_close(&a);
	block_rig_stop();
}

/* ---- the server ---- */

static void keeps_others_out(void **state)
{
	const char *const specs[] = { "vol=a", NULL };
	int fd;

	(void)state;
	assert_int_equal(block_rig_start(specs), 0);
	fd = block_rig_open("a");
	assert_int_not_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
	block_rig_stop();
	block_rig_start((const char *const[]){ "vol=b", NULL });
	fd = block_rig_open("a");
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_not_equal(block_rig_reload((const char *const[]){ "vol=b", "other=a", NULL }, (char *)mem, 256), 0);
	assert_non_null(strstr((char *)mem, "in use by another process"));
	close(fd);
	assert_int_equal(block_rig_reload((const char *const[]){ "vol=b", "other=a", NULL }, (char *)mem, 256), 0);
	block_rig_stop();
}

static void reloads(void **state)
{
	struct block_client a, b;
	char why[256];

	(void)state;
	start("vol=a," PLAIN);
	block_connect(&a, 1, 0);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	/* options change under a holder, and a volume comes */
	assert_int_equal(block_rig_reload((const char *const[]){ "vol=a,ro", "more=b", NULL }, why, sizeof(why)), 0);
	assert_int_equal(block_write(&a, 0, data, 512, false), BLOCK_ERR_ROFS);
	assert_int_equal(block_read(&a, 0, mem, 512), BLOCK_OK);
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&b, "more", "second", 0, NULL), BLOCK_OK);
	/* a volume in use does not go, also if only its file is another one */
	assert_int_equal(block_rig_reload((const char *const[]){ "more=b", NULL }, why, sizeof(why)), -EBUSY);
	assert_non_null(strstr(why, "vol: in use by first"));
	assert_non_null(strstr(why, "; detach it, or end it by leat block take-over"));
	assert_int_equal(block_read(&a, 0, mem, 512), BLOCK_OK);
	assert_int_equal(block_detach(&a), BLOCK_OK);
	assert_int_equal(block_rig_reload((const char *const[]){ "more=b", NULL }, why, sizeof(why)), 0);
	assert_int_equal(block_read(&a, 0, mem, 512), BLOCK_ERR_GONE);
	assert_int_equal(block_write(&b, 0, data, 512, false), BLOCK_OK);
	assert_int_equal(server_counters(block_rig.srv, "block_gone"), 1);
	block_close(&a);
	block_close(&b);
	block_rig_stop();
}

static void lists(void **state)
{
	struct block_rig_call list = { .args.list.after = (char *)(uintptr_t)"" };
	struct block_rig_call info = { .args.info = { .volume = (char *)(uintptr_t)"one",
						      .after = (char *)(uintptr_t)"" } };
	const BLOCKLISTresok *l = &list.res.list.BLOCKLISTres_u.resok;
	const BLOCKINFOresok *i = &info.res.info.BLOCKINFOres_u.resok;
	struct block_client c;

	(void)state;
	assert_int_equal(block_rig_start((const char *const[]){ "two=b,ro", "one=a,share=shared", NULL }), 0);
	block_connect(&c, 1, 0);
	assert_int_equal(block_attach(&c, "one", "me", 0, NULL), BLOCK_OK);
	block_begin(&c, &list, BLOCKPROC_LIST, NULL, 0);
	assert_int_equal(block_end(&list), BLOCK_OK);
	assert_int_equal(l->volumes.volumes_len, 2);
	assert_true(l->eof);
	assert_string_equal(l->volumes.volumes_val[0].name, "one");
	assert_int_equal(l->volumes.volumes_val[0].nholders, 1);
	assert_string_equal(l->volumes.volumes_val[1].name, "two");
	assert_true(l->volumes.volumes_val[1].flags & BLOCK_RDONLY);
	xdr_free((xdrproc_t)xdr_BLOCKLISTres, (char *)&list.res.list);
	list.args.list.after = (char *)(uintptr_t)"one";
	block_begin(&c, &list, BLOCKPROC_LIST, NULL, 0);
	assert_int_equal(block_end(&list), BLOCK_OK);
	assert_int_equal(l->volumes.volumes_len, 1);
	xdr_free((xdrproc_t)xdr_BLOCKLISTres, (char *)&list.res.list);
	block_begin(&c, &info, BLOCKPROC_INFO, NULL, 0);
	assert_int_equal(block_end(&info), BLOCK_OK);
	assert_int_equal(i->holders.holders_len, 1);
	assert_string_equal(i->holders.holders_val[0].name, "me");
	assert_string_equal(i->holders.holders_val[0].app, "test");
	assert_int_equal(i->holders.holders_val[0].conns, 1);
	assert_true(i->eof);
	xdr_free((xdrproc_t)xdr_BLOCKINFOres, (char *)&info.res.info);
	block_close(&c);
	block_rig_stop();
}

static void other_users(void **state)
{
	struct block_client c;

	(void)state;
	if (!block_rig_is_local())
		skip();
	assert_int_equal(block_rig_start((const char *const[]){ "vol=a,users=65533", "mine=b,users=me", NULL }), 0);
	block_connect(&c, 1, 0);
	assert_int_equal(block_attach(&c, "vol", "me", 0, NULL), BLOCK_ERR_ACCES);
	assert_int_equal(block_attach(&c, "mine", "me", 0, NULL), BLOCK_OK);
	block_close(&c);
	block_rig_stop();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves_direct), cmocka_unit_test(moves_cached), cmocka_unit_test(moves_in_pieces),
		cmocka_unit_test(bad_ranges), cmocka_unit_test(discards_and_zeroes),
		cmocka_unit_test(one_holder), cmocka_unit_test(take_over), cmocka_unit_test(take_over_in_vain),
		cmocka_unit_test(who_may_take_over), cmocka_unit_test(silent_holder), cmocka_unit_test(many_holders),
		cmocka_unit_test(again), cmocka_unit_test(outlives_the_server), cmocka_unit_test(late_copy),
		cmocka_unit_test(late_copies_without_buffers),
		cmocka_unit_test(bad_lanes), cmocka_unit_test(keeps_others_out), cmocka_unit_test(reloads),
		cmocka_unit_test(lists), cmocka_unit_test(other_users),
	};

	int failed;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 11 + i / 4099);
	failed = cmocka_run_group_tests_name("block server", tests, NULL, NULL);
	if (!block_rig_is_local()) /* an RDMA device */
		return failed;
	block_rig_url = "tcp://127.0.0.1:0";
	return failed + cmocka_run_group_tests_name("block server over TCP", tests, NULL, NULL);
}
