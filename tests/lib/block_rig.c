/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_rig.c - a server of block volumes in this process, and clients that speak its protocol themselves
 *
 * Operation: The server has its own threads; the clients' engine runs while a call waits.
 * Memory:    Static.
 * Threads:   One.
 * Errors:    Asserted with cmocka.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "block_rig.h"
#include "conf.h"
#include "leat_flow.h"
#include "server.h"

#define STOP_MS 20000
#define SPECS_MAX 8

const char *block_rig_url, *block_rig_second_url, *block_rig_capture;
bool block_rig_stateless;
uint32_t block_rig_timeout_ms;
size_t block_rig_pinned;
const char *block_rig_export;
struct block_rig block_rig;

static struct rpcrdma_addr addr;
static const char *now[SPECS_MAX + 1];

/* ---- the server ---------------------------------------------------------------------------- */

static void make_file(const char *name)
{
	int fd = open(tmp_dir_path(&block_rig.dir, name), O_RDWR | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, BLOCK_RIG_BYTES), 0);
	close(fd);
}

int block_rig_open(const char *name)
{
	int fd = open(tmp_dir_path(&block_rig.dir, name), O_RDWR);

	assert_true(fd >= 0);
	return fd;
}

/* Return: NULL: the local fabric */
static const char *network(void)
{
	static char url[100];
	const char *rdma = leat_flow_rdma();

	if (block_rig_url || !rdma)
		return block_rig_url;
	(void)snprintf(url, sizeof(url), "rdma://%s:0", rdma);
	return url;
}

bool block_rig_is_local(void)
{
	return !network();
}

const struct rpcrdma_addr *block_rig_addr(void)
{
	return &addr;
}

void block_rig_use(unsigned listener)
{
	addr = *server_listener(block_rig.srv, listener);
}

static void add_volume(struct conf *conf, const char *spec)
{
	const char *eq = strchr(spec, '=');
	char text[512], why[256];

	(void)snprintf(text, sizeof(text), "%.*s%s/%s%s", (int)(eq + 1 - spec), spec, block_rig.dir.path, eq + 1,
		       block_rig_is_local() ? "" : ",clients=0.0.0.0/0,insecure");
	if (block_conf_parse(text, &conf->blocks[conf->nblocks++], why, sizeof(why)))
		fail_msg("%s: %s", text, why);
}

static void add_export(struct conf *conf)
{
	char text[512], why[256];

	(void)snprintf(text, sizeof(text), "/files=%s,%s", block_rig.dir.path, block_rig_export);
	if (export_conf_parse(text, &conf->exports[conf->nexports++], why, sizeof(why)))
		fail_msg("%s: %s", text, why);
}

static struct conf *make_conf(const char *const specs[])
{
	struct conf *conf = malloc(sizeof(*conf));
	char url[300];

	assert_non_null(conf);
	conf_init(conf);
	for (size_t i = 0; specs[i]; i++)
		add_volume(conf, specs[i]);
	(void)snprintf(url, sizeof(url), "local://%s/sock", block_rig.dir.path);
	assert_int_equal(rpcrdma_addr_parse(network() ? network() : url, &conf->listen[0]), 0);
	conf->nlisten = 1;
	if (block_rig_second_url)
		assert_int_equal(rpcrdma_addr_parse(block_rig_second_url, &conf->listen[conf->nlisten++]), 0);
	conf->reactors = 2;
	if (block_rig_export)
		add_export(conf);
	if (block_rig_pinned)
		conf->pinned_max = block_rig_pinned;
	if (!block_rig_stateless)
		conf->state_dir = strdup(tmp_dir_path(&block_rig.dir, "state"));
	conf->capture = block_rig_capture ? strdup(block_rig_capture) : NULL;
	return conf;
}

static int start_server(const char *const specs[])
{
	struct conf *conf = make_conf(specs);
	size_t n = 0;
	int err = leat_flow_start_aside(conf, &block_rig.srv);

	if (err)
		block_rig.srv = NULL;
	else
		addr = *server_listener(block_rig.srv, 0);
	for (; specs != now && specs[n]; n++)
		now[n] = specs[n];
	if (specs != now)
		now[n] = NULL;
	conf_fini(conf);
	free(conf);
	return err;
}

void block_rig_make_dir(void)
{
	if (block_rig.dir.path[0])
		return;
	tmp_dir_create(&block_rig.dir);
	make_file("a");
	make_file("b");
	log_state.level = LOG_LEVEL_ERR;
}

static void make_engine(void)
{
	assert_int_equal(rpcrdma_domain_create(NULL, &block_rig.domain), 0);
	assert_int_equal(rpcrdma_engine_create(block_rig.domain, NULL, &block_rig.engine), 0);
}

int block_rig_start(const char *const specs[])
{
	block_rig_make_dir();
	make_engine();
	return start_server(specs);
}

void block_rig_dial(void)
{
	char url[300];

	make_engine();
	(void)snprintf(url, sizeof(url), "local://%s/sock", block_rig.dir.path);
	assert_int_equal(rpcrdma_addr_parse(url, &addr), 0);
}

static void serve_until_killed(const char *const specs[], int ready)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (start_server(specs) || write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

pid_t block_rig_start_child(const char *const specs[])
{
	int ready[2];
	char byte;
	size_t n = 0;
	pid_t pid;

	block_rig_make_dir();
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		serve_until_killed(specs, ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	block_rig_dial();
	for (; specs[n]; n++)
		now[n] = specs[n];
	now[n] = NULL;
	return pid;
}

int block_rig_reload(const char *const specs[], char *why, size_t why_bytes)
{
	struct conf *conf = make_conf(specs);
	int err = server_reload(block_rig.srv, conf, why, why_bytes);

	conf_fini(conf);
	free(conf);
	return err;
}

void block_rig_restart(const char *const specs[])
{
	if (block_rig.srv)
		assert_int_equal(server_stop(block_rig.srv, STOP_MS), 0);
	assert_int_equal(start_server(specs ? specs : now), 0);
}

int block_rig_try_restart(void)
{
	if (block_rig.srv)
		assert_int_equal(server_stop(block_rig.srv, STOP_MS), 0);
	block_rig.srv = NULL;
	return start_server(now);
}

void block_rig_retry(void)
{
	assert_int_equal(start_server(now), 0);
}

void block_rig_stop(void)
{
	if (block_rig.srv)
		assert_int_equal(server_stop(block_rig.srv, STOP_MS), 0);
	block_rig.srv = NULL;
	rpcrdma_engine_destroy(block_rig.engine);
	rpcrdma_domain_destroy(block_rig.domain);
	tmp_dir_destroy(&block_rig.dir);
	block_rig.dir.path[0] = '\0';
}

/* ---- clients ------------------------------------------------------------------------------- */

static void dial(struct block_client *c)
{
	const struct rpcrdma_clnt_attr attr = { .addr = addr, .cred.machine = "block", .backoff_ms = 1, .timeout_ms = block_rig_timeout_ms };

	assert_int_equal(rpcrdma_clnt_open(block_rig.engine, &attr, &c->clnt), 0);
}

void block_connect(struct block_client *c, uint64_t instance, uint32_t slot)
{
	*c = (struct block_client){ .lane = { .instance = instance, .slot = slot, .incarnation = 1 } };
	dial(c);
}

void block_connect_lane(struct block_client *c)
{
	dial(c);
}

void block_close(struct block_client *c)
{
	rpcrdma_clnt_destroy(c->clnt);
	c->clnt = NULL;
}

void block_reconnect(struct block_client *c, struct block_client *old)
{
	if (old)
		*old = *c;
	else
		rpcrdma_clnt_destroy(c->clnt);
	c->lane.incarnation++;
	dial(c);
}

static void on_done(struct rpcrdma_call *rpc, int err)
{
	struct block_rig_call *call = container_of(rpc, struct block_rig_call, call);

	call->done = true;
	call->err = err;
}

static const struct {
	xdrproc_t encode, decode;
} codecs[] = {
#define ROW(proc, in, out) [BLOCKPROC_##proc] = { (xdrproc_t)xdr_BLOCK##in##args, (xdrproc_t)xdr_BLOCK##out##res }
	ROW(LIST, LIST, LIST),	  ROW(INFO, INFO, INFO),      ROW(ATTACH, ATTACH, ATTACH), ROW(DETACH, AT, DETACH),
	ROW(READ, READ, READ),	  ROW(WRITE, WRITE, CHANGE),  ROW(DISCARD, RANGE, CHANGE), ROW(FLUSH, AT, CHANGE),
	ROW(ZERO, ZERO, CHANGE),  ROW(EXTENTS, RANGE, EXTENTS),
};

void block_begin(struct block_client *c, struct block_rig_call *call, uint32_t proc, void *sink, uint32_t bytes)
{
	call->client = c;
	call->done = false;
	if (sink)
		call->iov = (struct iovec){ sink, bytes };
	memset(&call->res, 0, sizeof(call->res));
	if (proc == BLOCKPROC_ATTACH) {
		call->args.attach.lane = c->lane;
	} else if (proc > BLOCKPROC_ATTACH) {
		memcpy(call->args.at.at.handle, c->handle, sizeof(c->handle));
		call->args.at.at.lane = c->lane;
	}
	call->call = (struct rpcrdma_call){
		.prog = LEAT_BLOCK, .vers = LEAT_BLOCK_V1, .proc = proc, .args = &call->args, .res = &call->res,
		.encode = codecs[proc].encode, .decode = codecs[proc].decode,
		.sink = sink ? &call->iov : NULL, .sinkcnt = sink ? 1 : 0,
		.reply_max = proc == BLOCKPROC_READ ? 64 : 32768, .deadline_ms = 60000, .done = on_done,
	};
	assert_int_equal(rpcrdma_clnt_call(c->clnt, &call->call), 0);
}

block_status block_end(struct block_rig_call *call)
{
	while (!call->done)
		(void)rpcrdma_engine_wait(block_rig.engine, -1);
	if (call->err)
		fail_msg("procedure %u: %s", call->call.proc, call->call.why ? call->call.why : strerror(-call->err));
	return call->res.status;
}

void block_run_until(bool (*done)(void *arg), void *arg)
{
	while (!done(arg))
		(void)rpcrdma_engine_wait(block_rig.engine, 1);
}

block_status block_attach(struct block_client *c, const char *volume, const char *holder, unsigned flags,
			  const char *victim)
{
	struct block_rig_call call = { .args.attach = {
					       .volume = (char *)(uintptr_t)volume,
					       .holder = (char *)(uintptr_t)holder,
					       .victim = (char *)(uintptr_t)(victim ? victim : ""),
					       .app = (char *)(uintptr_t)"test",
					       .flags = flags,
				       } };
	BLOCKATTACHresok *ok = &call.res.attach.BLOCKATTACHres_u.resok;
	block_status status;

	block_begin(c, &call, BLOCKPROC_ATTACH, NULL, 0);
	status = block_end(&call);
	if (status == BLOCK_OK) {
		memcpy(c->handle, ok->handle, sizeof(c->handle));
		c->verf = ok->verf;
		c->info = ok->info;
		c->info.name = NULL;
	} else if (status == BLOCK_ERR_BUSY) {
		(void)snprintf(c->other, sizeof(c->other), "%s", call.res.attach.BLOCKATTACHres_u.holder.name);
	}
	xdr_free((xdrproc_t)xdr_BLOCKATTACHres, (char *)&call.res.attach);
	return status;
}

block_status block_detach(struct block_client *c)
{
	struct block_rig_call call = { .args.at.at = { .handle = "" } };

	block_begin(c, &call, BLOCKPROC_DETACH, NULL, 0);
	return block_end(&call);
}

block_status block_read(struct block_client *c, uint64_t off, void *to, uint32_t bytes)
{
	struct block_rig_call call = { .args.read = { .offset = off, .count = bytes } };
	block_status status;

	block_begin(c, &call, BLOCKPROC_READ, to, bytes);
	status = block_end(&call);
	if (status == BLOCK_OK)
		assert_int_equal(call.res.read.BLOCKREADres_u.data.length, bytes);
	return status;
}

void block_write_begin_at(struct block_client *c, struct block_rig_call *call, uint64_t off, const void *from,
			  uint32_t bytes, bool fua)
{
	*call = (struct block_rig_call){ .args.write = { .offset = off, .fua = fua } };
	call->iov = (struct iovec){ (void *)(uintptr_t)from, bytes };
	call->args.write.data = (struct rpcrdma_payload){ .length = bytes, .iov = &call->iov, .iovcnt = 1 };
	block_begin(c, call, BLOCKPROC_WRITE, NULL, 0);
}

static block_status end_change(struct block_client *c, struct block_rig_call *call)
{
	block_status status = block_end(call);

	if (status == BLOCK_OK)
		c->verf = call->res.change.BLOCKCHANGEres_u.verf;
	return status;
}

block_status block_write(struct block_client *c, uint64_t off, const void *from, uint32_t bytes, bool fua)
{
	struct block_rig_call call = { .args.write = { .offset = off, .fua = fua } };
	struct iovec iov = { (void *)(uintptr_t)from, bytes };

	call.args.write.data = (struct rpcrdma_payload){ .length = bytes, .iov = &iov, .iovcnt = 1 };
	block_begin(c, &call, BLOCKPROC_WRITE, NULL, 0);
	return end_change(c, &call);
}

block_status block_flush(struct block_client *c)
{
	struct block_rig_call call = { .args.at.at = { .handle = "" } };

	block_begin(c, &call, BLOCKPROC_FLUSH, NULL, 0);
	return end_change(c, &call);
}
