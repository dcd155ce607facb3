/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * toy_rig.c - a server of the toy block program in this process, and a client that calls it, over any transport
 *
 * Operation: The server has its own threads; the client's engine runs while a call waits.
 * Memory:    One volume of VOLUME bytes, and as much for what is read from it.
 * Threads:   One.
 * Errors:    Asserted with cmocka.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "conf.h"
#include "inside.h"
#include "rpcrdma.h"
#include "server.h"
#include "tmp_dir.h"
#include "toy_block.h"
#include "toy_rig.h"

#define VOLUME (8u << 20)
#define GRAIN (16u << 10)
#define CALLS 8
#define STOP_MS 20000
#define XID 0x70000u

#define OVERLAP "overlap=streams,streams=4,chunk=64K,grain=16K,"
#define DISK "store=sim:members=4:chunk=64K:rate=200M"

const char *toy_rig_url;

struct toy_call {
	struct rpcrdma_call call;
	struct toy_msg args, res;
	struct iovec iov;
	bool done;
	int err;
};

/* of the running test */
static struct {
	struct tmp_dir dir;
	struct server *srv;
	struct rpcrdma_addr addr;
	struct rpcrdma_domain *domain;
	struct rpcrdma_engine *engine;
	struct rpcrdma_clnt *clnt;
} rig;
static uint8_t data[VOLUME], mem[VOLUME];

/* ---- server and client ---- */

static void dial(void)
{
	const struct rpcrdma_clnt_attr attr = { .addr = rig.addr, .cred.machine = "toy", .backoff_ms = 1 };

	assert_int_equal(rpcrdma_clnt_open(rig.engine, &attr, &rig.clnt), 0);
}

static void dial_again(void)
{
	rpcrdma_clnt_destroy(rig.clnt);
	dial();
}

static void make_volume(const char *path)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(mem, 1, VOLUME, f), VOLUME);
	assert_int_equal(fclose(f), 0);
}

/* @options: of the data path; @pinned: limit of memory for payload, 0: the default */
static void start(const char *options, size_t pinned)
{
	static const struct service *const services[] = { &toy_service, NULL };
	struct conf *conf = malloc(sizeof(*conf));
	char text[512], why[256];

	assert_non_null(conf);
	assert_null(rig.srv); /* a failed test does not clean up */
	for (uint32_t i = 0; i < VOLUME; i++)
		data[i] = (uint8_t)(i * 11 + i / 4099);
	memset(mem, 0, VOLUME);
	atomic_store(&toy_hold, false);
	tmp_dir_create(&rig.dir);
	make_volume(tmp_dir_path(&rig.dir, "volume"));
	conf_init(conf);
	(void)snprintf(text, sizeof(text), "/toy=%s,%s", rig.dir.path, options);
	if (export_conf_parse(text, &conf->exports[0], why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	conf->nexports = 1;
	free(conf->exports[0].path);
	conf->exports[0].path = strdup(tmp_dir_path(&rig.dir, "volume"));
	(void)snprintf(text, sizeof(text), "local://%s/sock", rig.dir.path);
	assert_int_equal(rpcrdma_addr_parse(toy_rig_url ? toy_rig_url : text, &conf->listen[0]), 0);
	conf->nlisten = 1;
	conf->reactors = 1;
	if (pinned)
		conf->pinned_max = pinned;
	log_state.level = LOG_LEVEL_ERR;
	assert_int_equal(server_start_services(conf, services, &rig.srv), 0);
	conf_fini(conf);
	free(conf);
	rig.addr = *server_listener(rig.srv, 0);
	assert_int_equal(rpcrdma_domain_create(NULL, &rig.domain), 0);
	assert_int_equal(rpcrdma_engine_create(rig.domain, NULL, &rig.engine), 0);
	dial();
}

static void stop(void)
{
	rpcrdma_clnt_destroy(rig.clnt);
	rpcrdma_engine_destroy(rig.engine);
	rpcrdma_domain_destroy(rig.domain);
	assert_int_equal(server_stop(rig.srv, STOP_MS), 0);
	rig.srv = NULL;
	tmp_dir_destroy(&rig.dir);
}

/* ---- calls ---- */

static void on_done(struct rpcrdma_call *call, int err)
{
	struct toy_call *c = container_of(call, struct toy_call, call);

	c->done = true;
	c->err = err;
}

static bool_t xdr_nothing(XDR *x, void *nothing)
{
	(void)x;
	(void)nothing;
	return TRUE;
}

/* READ goes to @bytes of memory, and WRITE comes from there. */
static void begin(struct toy_call *c, enum toy_proc proc, uint64_t off, void *at, uint32_t bytes)
{
	bool reads = proc == TOY_READ, writes = proc == TOY_WRITE;

	*c = (struct toy_call){ .args = { .off = off, .bytes = bytes }, .iov = { at, bytes } };
	if (writes)
		c->args.data = (struct rpcrdma_payload){ .length = bytes, .iov = &c->iov, .iovcnt = 1 };
	c->call = (struct rpcrdma_call){
		.prog = TOY_PROGRAM, .vers = TOY_VERSION, .proc = proc, .args = &c->args, .res = &c->res,
		.encode = (xdrproc_t)(writes ? toy_xdr_data : toy_xdr),
		.decode = (xdrproc_t)(reads ? toy_xdr_data : toy_xdr),
		.sink = reads ? &c->iov : NULL, .sinkcnt = reads, .reply_max = 256, .deadline_ms = 20000,
		.done = on_done,
	};
	if (proc == TOY_NULL)
		c->call.encode = c->call.decode = (xdrproc_t)xdr_nothing;
	assert_int_equal(rpcrdma_clnt_call(rig.clnt, &c->call), 0);
}

static void end(struct toy_call *c)
{
	while (!c->done)
		(void)rpcrdma_engine_wait(rig.engine, -1);
	if (c->err)
		fail_msg("procedure %u, %u bytes: %s", c->call.proc, c->args.bytes, c->call.why);
}

/* Return: status */
static uint32_t run(enum toy_proc proc, uint64_t off, void *at, uint32_t bytes)
{
	struct toy_call c;

	begin(&c, proc, off, at, bytes);
	end(&c);
	if (c.res.status == TOY_OK && proc != TOY_SYNC)
		assert_int_equal(c.res.bytes, bytes);
	return c.res.status;
}

static uint64_t disk_operations(void)
{
	return server_counters(rig.srv, "store_now") + server_counters(rig.srv, "store_worker") +
	       server_counters(rig.srv, "store_aio");
}

/* ---- tests ---- */

/* Unaligned payloads, some inline and some of many units. */
static void round_trips(void)
{
	static const uint32_t lengths[] = { 0, 1, 3, 100, 1000, 4096, 5001, 65536, 262147, TOY_IO_MAX };
	static const uint32_t offs[] = { 0, 4095, 65536 * 3 + 7 };

	for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint32_t off = offs[i % ARRAY_SIZE(offs)], bytes = lengths[i];

		assert_int_equal(run(TOY_WRITE, off, data + off, bytes), TOY_OK);
		memset(mem, 0xee, VOLUME);
		assert_int_equal(run(TOY_READ, off, mem + off, bytes), TOY_OK);
		assert_memory_equal(mem + off, data + off, bytes);
		assert_int_equal(mem[off + bytes], 0xee);
	}
	assert_int_equal(run(TOY_SYNC, 4096, NULL, 4096), TOY_OK);
	assert_int_equal(run(TOY_NULL, 0, NULL, 0), 0);
}

/* One call at a time: the queue of the disk holds its own units only. A stream carries no chunks, so there a payload is
 * one unit. */
static void overlaps(enum toy_proc proc, bool on)
{
	uint64_t before = server_counters(rig.srv, "sim_requests");
	uint64_t waits = server_counters(rig.srv, "sched_waits");

	assert_int_equal(run(proc, 0, proc == TOY_WRITE ? data : mem, TOY_IO_MAX), TOY_OK);
	before = server_counters(rig.srv, "sim_requests") - before;
	waits = server_counters(rig.srv, "sched_waits") - waits;
	if (!on)
		assert_int_equal(waits, 0);
	else if (before < (TOY_IO_MAX) / GRAIN || !waits)
		fail_msg("%u requests, of which %u waited", (unsigned)before, (unsigned)waits);
}

static void whole(void **state)
{
	(void)state;
	start("rw,overlap=off", 0);
	round_trips();
	stop();
}

static void in_pieces(void **state)
{
	(void)state;
	start("rw," OVERLAP DISK ",sched=sorted,depth=4", 0);
	round_trips();
	overlaps(TOY_WRITE, rig.addr.transport != RPCRDMA_TCP);
	overlaps(TOY_READ, rig.addr.transport != RPCRDMA_TCP);
	assert_memory_equal(mem, data, TOY_IO_MAX);
	stop();
}

/* Another client writes in between, so a second execution would show in the file. */
static void once(const char *options)
{
	struct toy_call first, again;
	uint64_t operations;
	int fd;

	start(options, 0);
	fd = open(tmp_dir_path(&rig.dir, "volume"), O_RDWR);
	clnt_next_xid(rig.clnt, XID);
	begin(&first, TOY_WRITE, 4096, data, TOY_IO_MAX);
	end(&first);
	assert_int_equal(first.res.status, TOY_OK);
	assert_int_equal(pwrite(fd, "other", 5, 4096), 5);
	operations = disk_operations();
	dial_again();
	clnt_next_xid(rig.clnt, XID);
	begin(&again, TOY_WRITE, 4096, data, TOY_IO_MAX);
	end(&again);
	assert_int_equal(again.call.xid, first.call.xid);
	assert_int_equal(again.res.status, TOY_OK);
	assert_int_equal(again.res.bytes, TOY_IO_MAX);
	assert_int_equal(again.res.off, first.res.off); /* the number of its execution */
	assert_int_equal(disk_operations(), operations);
	assert_int_equal(pread(fd, mem, 6, 4096), 6);
	assert_memory_equal(mem, "other", 5);
	assert_int_equal(mem[5], data[5]);
	/* other data is another call */
	dial_again();
	clnt_next_xid(rig.clnt, XID);
	begin(&again, TOY_WRITE, 4096, data + 1, TOY_IO_MAX);
	end(&again);
	assert_int_equal(again.res.off, first.res.off + 1);
	close(fd);
	stop();
}

static void once_whole(void **state)
{
	(void)state;
	once("rw,overlap=off");
}

static void once_in_pieces(void **state)
{
	(void)state;
	once("rw," OVERLAP "store=file");
}

/* In a stream a payload is one unit. */
static void disk_fails(const char *options, enum toy_proc proc)
{
	bool fails;

	start(options, 0);
	fails = strstr(options, ":fail=1") || rig.addr.transport != RPCRDMA_TCP;
	assert_int_equal(run(proc, 0, data, TOY_IO_MAX), fails ? TOY_DISK_FAILED : TOY_OK);
	assert_int_equal(run(proc, 0, data, TOY_IO_MAX), TOY_OK);
	stop();
}

static void read_fails(void **state)
{
	(void)state;
	disk_fails("rw,overlap=off," DISK ":fail=1", TOY_READ);
}

static void read_fails_in_pieces(void **state)
{
	(void)state;
	disk_fails("rw," OVERLAP DISK ":fail=5", TOY_READ);
}

static void write_fails(void **state)
{
	(void)state;
	disk_fails("rw,overlap=off," DISK ":fail=1", TOY_WRITE);
}

static void write_fails_in_pieces(void **state)
{
	(void)state;
	disk_fails("rw," OVERLAP DISK ":fail=5", TOY_WRITE);
}

/* Ranges beyond the end, too long, and with an end that overflows. */
static void bad_ranges(void **state)
{
	(void)state;
	start("rw," OVERLAP DISK, 0);
	for (enum toy_proc p = TOY_READ; p < TOY_PROCS; p++) {
		assert_int_equal(run(p, VOLUME - 99, mem, 100), TOY_BAD_RANGE);
		assert_int_equal(run(p, UINT64_MAX - 1, mem, 100), TOY_BAD_RANGE);
		assert_int_equal(run(p, VOLUME + 1, mem, 0), TOY_BAD_RANGE);
	}
	assert_int_equal(run(TOY_READ, 0, mem, TOY_IO_MAX + 1), TOY_BAD_RANGE);
	assert_int_equal(disk_operations(), 0);
	stop();
}

static void shortage(const char *options)
{
	struct rpcrdma_stats stats;
	struct toy_call *calls = calloc(CALLS, sizeof(*calls));

	start(options, 2u << 20);
	assert_non_null(calls);
	for (unsigned i = 0; i < CALLS; i++)
		begin(&calls[i], TOY_WRITE, i << 20, data + (i << 20), TOY_IO_MAX);
	for (unsigned i = 0; i < CALLS; i++) {
		end(&calls[i]);
		assert_int_equal(calls[i].res.status, TOY_OK);
	}
	for (unsigned i = 0; i < CALLS; i++)
		begin(&calls[i], TOY_READ, i << 20, mem + (i << 20), TOY_IO_MAX);
	for (unsigned i = 0; i < CALLS; i++) {
		end(&calls[i]);
		assert_int_equal(calls[i].res.status, TOY_OK);
		assert_true(calls[i].res.bytes == TOY_IO_MAX || rig.addr.transport == RPCRDMA_TCP); /* one buffer */
		assert_memory_equal(mem + (i << 20), data + (i << 20), calls[i].res.bytes);
	}
	rpcrdma_domain_stats(server_domain(rig.srv), &stats);
	assert_true(stats.buf_waits > 0);
	free(calls);
	stop();
}

static void no_buffer(void **state)
{
	(void)state;
	shortage("rw,overlap=off," DISK);
}

static void no_buffer_for_pieces(void **state)
{
	(void)state;
	shortage("rw," OVERLAP DISK);
}

/* A client gets more than one credit with its first reply. */
static void begin_held(struct toy_call *calls, unsigned n)
{
	uint64_t reqs = server_counters(rig.srv, "reqs") + 1 + n;

	assert_int_equal(run(TOY_NULL, 0, NULL, 0), 0);
	atomic_store(&toy_hold, true);
	for (unsigned i = 0; i < n; i++)
		begin(&calls[i], i ? TOY_READ : TOY_WRITE, 4096, i ? mem : data, 100);
	while (server_counters(rig.srv, "reqs") < reqs) {
		(void)rpcrdma_engine_poll(rig.engine);
		assert_false(calls[0].done); /* it would time out without the other calls */
	}
}

/* The reactor begins all calls before it gets the message that the volume is open. */
static void waits_for_open(void **state)
{
	struct toy_call calls[3];

	(void)state;
	start("rw,overlap=off", 0);
	begin_held(calls, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_false(calls[i].done);
	atomic_store(&toy_hold, false);
	for (unsigned i = 0; i < 3; i++) {
		end(&calls[i]);
		assert_int_equal(calls[i].res.status, TOY_OK);
	}
	assert_int_equal(run(TOY_READ, 4096, mem, 100), TOY_OK);
	assert_memory_equal(mem, data, 100);
	stop();
}

static void dropped_while_opening(void **state)
{
	struct toy_call calls[3];

	(void)state;
	start("rw,overlap=off", 0);
	begin_held(calls, 3);
	dial_again(); /* ends the calls of the old connection */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(calls[i].err, -ECANCELED);
	begin_held(calls, 1);
	atomic_store(&toy_hold, false);
	end(&calls[0]);
	assert_int_equal(calls[0].res.status, TOY_OK);
	stop();
}

const struct CMUnitTest toy_rig_tests[TOY_RIG_TESTS] = {
	cmocka_unit_test(whole),
	cmocka_unit_test(in_pieces),
	cmocka_unit_test(once_whole),
	cmocka_unit_test(once_in_pieces),
	cmocka_unit_test(read_fails),
	cmocka_unit_test(read_fails_in_pieces),
	cmocka_unit_test(write_fails),
	cmocka_unit_test(write_fails_in_pieces),
	cmocka_unit_test(bad_ranges),
	cmocka_unit_test(no_buffer),
	cmocka_unit_test(no_buffer_for_pieces),
	cmocka_unit_test(waits_for_open),
	cmocka_unit_test(dropped_while_opening),
};
