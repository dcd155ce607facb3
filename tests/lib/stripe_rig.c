/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_rig.c - a server of stripes in this process, its manager, and clients that speak its protocol themselves
 *
 * Operation: The server has its own threads; the clients' engine runs while a call waits.
 * Memory:    Static.
 * Threads:   One.
 * Errors:    Asserted with cmocka.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "base/util.h"
#include "conf.h"
#include "leat_flow.h"
#include "server.h"
#include "stripe_dir.h"
#include "stripe_rig.h"

#define STOP_MS 20000

const char *stripe_rig_url, *stripe_rig_capture;
uint32_t stripe_rig_timeout_ms;
size_t stripe_rig_pinned;
struct stripe_rig stripe_rig;

static struct rpcrdma_addr addr;

/* ---- the server ---------------------------------------------------------------------------- */

static const char *network(void)
{
	static char url[100];
	const char *rdma = leat_flow_rdma();

	if (stripe_rig_url || !rdma)
		return stripe_rig_url;
	(void)snprintf(url, sizeof(url), "rdma://%s:0", rdma);
	return url;
}

static struct conf *make_conf(const char *options)
{
	struct conf *conf = malloc(sizeof(*conf));
	char text[1024], why[256], url[300];

	assert_non_null(conf);
	conf_init(conf);
	(void)snprintf(text, sizeof(text), "vol=%s/s,key=%s/key,id=%d%s%s%s", stripe_rig.dir.path, stripe_rig.dir.path,
		       STRIPE_RIG_ID, *options ? "," : "", options, !network() ? "" : strstr(options, "clients") ? ",insecure" : ",clients=0.0.0.0/0,insecure");
	if (stripes_conf_parse(text, &conf->stripes[conf->nstripes++], why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	(void)snprintf(url, sizeof(url), "local://%s/sock", stripe_rig.dir.path);
	assert_int_equal(rpcrdma_addr_parse(network() ? network() : url, &conf->listen[0]), 0);
	conf->nlisten = 1;
	conf->reactors = 2;
	if (stripe_rig_pinned)
		conf->pinned_max = stripe_rig_pinned;
	conf->capture = stripe_rig_capture ? strdup(stripe_rig_capture) : NULL;
	return conf;
}

static void parse_key(const char *hex, struct stripe_keys *ret)
{
	unsigned long long k0, k1;

	assert_int_equal(sscanf(hex, "%16llx%16llx", &k0, &k1), 2);
	*ret = (struct stripe_keys){ .v = { { k0, k1 } }, .n = 1 };
}

void stripe_rig_write_key(const char *text, unsigned mode)
{
	char usual[200];

	(void)snprintf(usual, sizeof(usual), "# a test's\nvolume = %016llx\nkey = " STRIPE_RIG_KEY "\n",
		       (unsigned long long)STRIPE_RIG_VOLUME);
	tmp_dir_write(&stripe_rig.dir, "key", text ? text : usual);
	assert_int_equal(chmod(tmp_dir_path(&stripe_rig.dir, "key"), mode), 0);
}

static void make_dir(void)
{
	if (stripe_rig.dir.path[0])
		return;
	tmp_dir_create(&stripe_rig.dir);
	tmp_dir_mkdir(&stripe_rig.dir, "s");
	stripe_rig_write_key(NULL, 0600);
	parse_key(STRIPE_RIG_KEY, &stripe_rig.keys);
	parse_key(STRIPE_RIG_OLD_KEY, &stripe_rig.old_keys);
	stripe_rig.term = 1;
	stripe_rig.server = STRIPE_RIG_ID;
	assert_int_equal(rpcrdma_domain_create(NULL, &stripe_rig.domain), 0);
	assert_int_equal(rpcrdma_engine_create(stripe_rig.domain, NULL, &stripe_rig.engine), 0);
	log_state.level = LOG_LEVEL_ERR;
}

int stripe_rig_start(const char *options)
{
	struct conf *conf;
	int err;

	make_dir();
	conf = make_conf(options);
	err = leat_flow_start_aside(conf, &stripe_rig.srv);
	if (err)
		stripe_rig.srv = NULL;
	else
		addr = *server_listener(stripe_rig.srv, 0);
	conf_fini(conf);
	free(conf);
	return err;
}

int stripe_rig_reload(const char *options, char *why, size_t why_bytes)
{
	struct conf *conf = make_conf(options);
	int err = server_reload(stripe_rig.srv, conf, why, why_bytes);

	conf_fini(conf);
	free(conf);
	return err;
}

void stripe_rig_end_server(void)
{
	if (stripe_rig.srv)
		assert_int_equal(server_stop(stripe_rig.srv, STOP_MS), 0);
	stripe_rig.srv = NULL;
}

void stripe_rig_stop(void)
{
	stripe_rig_end_server();
	rpcrdma_engine_destroy(stripe_rig.engine);
	rpcrdma_domain_destroy(stripe_rig.domain);
	tmp_dir_destroy(&stripe_rig.dir);
	stripe_rig.dir.path[0] = '\0';
}

uint16_t stripe_rig_port(void)
{
	return addr.port;
}

const char *stripe_rig_server(char *buf, size_t cap)
{
	return rpcrdma_addr_print(&addr, buf, cap);
}

const char *stripe_rig_path(const stripe_name *name)
{
	char path[STRIPE_PATH_BYTES], below[STRIPE_PATH_BYTES + 16];

	stripe_dir_path(name, path);
	(void)snprintf(below, sizeof(below), "s/objects/%s", path);
	return tmp_dir_path(&stripe_rig.dir, below);
}

stripe_name stripe_rig_name(uint8_t first, uint8_t last)
{
	stripe_name name = { .stripe = 0 };

	name.object[0] = (char)first;
	name.object[STRIPE_OBJECT_BYTES - 1] = (char)last;
	return name;
}

/* ---- clients ------------------------------------------------------------------------------- */

static void dial(struct stripe_client *c)
{
	const struct rpcrdma_clnt_attr attr = { .addr = addr, .cred.machine = "stripes", .backoff_ms = 1,
						.timeout_ms = stripe_rig_timeout_ms };

	assert_int_equal(rpcrdma_clnt_open(stripe_rig.engine, &attr, &c->clnt), 0);
}

void stripe_connect(struct stripe_client *c, uint64_t instance, uint32_t slot, const stripe_name *name)
{
	*c = (struct stripe_client){ .lane = { .instance = instance, .slot = slot, .incarnation = 1 },
				     .handle = { .volume = STRIPE_RIG_VOLUME, .server = STRIPE_RIG_ID, .name = *name, .epoch = 1,
						 .rights = STRIPE_MAY_READ | STRIPE_MAY_WRITE,
						 .expiry = (uint64_t)time(NULL) + 600 } };
	dial(c);
}

void stripe_close(struct stripe_client *c)
{
	rpcrdma_clnt_destroy(c->clnt);
	c->clnt = NULL;
}

void stripe_reconnect(struct stripe_client *c, struct stripe_client *old)
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
	struct stripe_rig_call *call = container_of(rpc, struct stripe_rig_call, call);

	call->done = true;
	call->err = err;
}

static const struct {
	xdrproc_t encode, decode;
} codecs[] = {
#define ROW(proc, in, out) [STRIPEPROC_##proc] = { (xdrproc_t)xdr_STRIPE##in##args, (xdrproc_t)xdr_STRIPE##out##res }
	ROW(INFO, INFO, INFO), ROW(READ, READ, READ),	 ROW(WRITE, WRITE, CHANGE), ROW(COMMIT, COMMIT, CHANGE),
	ROW(STAT, STAT, STAT), ROW(FENCE, FENCE, STAT), ROW(REMOVE, REMOVE, STAT), ROW(LIST, LIST, LIST),
	[STRIPEPROC_SET_ASIDE] = { (xdrproc_t)xdr_STRIPEASIDEargs, (xdrproc_t)xdr_STRIPESTATres },
};

static struct stripe_order order_of(const struct stripe_rig_call *call, uint32_t proc)
{
	struct stripe_order o = { .proc = proc };

	if (proc == STRIPEPROC_STAT) {
		o.name = call->args.stat.name;
	} else if (proc == STRIPEPROC_FENCE) {
		o = (struct stripe_order){ .proc = proc, .name = call->args.fence.name, .value = call->args.fence.epoch,
					   .flag = call->args.fence.cut, .bytes = call->args.fence.bytes };
	} else if (proc == STRIPEPROC_REMOVE) {
		o = (struct stripe_order){ .proc = proc, .name = call->args.remove.name, .value = call->args.remove.until };
	} else if (proc == STRIPEPROC_SET_ASIDE) {
		o = (struct stripe_order){ .proc = proc, .name = call->args.aside.name, .value = call->args.aside.until,
					   .bytes = call->args.aside.mtime };
	} else if (proc == STRIPEPROC_LIST) {
		o = (struct stripe_order){ .proc = proc, .name = call->args.list.after, .flag = call->args.list.first };
	}
	return o;
}

void stripe_sign(struct stripe_client *c, struct stripe_rig_call *call, uint32_t proc)
{
	const struct stripe_command command = { .volume = STRIPE_RIG_VOLUME, .server = stripe_rig.server, .term = stripe_rig.term,
						.expiry = (uint64_t)time(NULL) + 60, .number = 5 };
	struct stripe_order order = order_of(call, proc);

	if (proc == STRIPEPROC_READ || proc == STRIPEPROC_WRITE || proc == STRIPEPROC_COMMIT) {
		stripe_handle_make(&stripe_rig.keys, &c->handle, call->args.at.handle);
		call->args.at.lane = c->lane;
	} else {
		stripe_command_make(&stripe_rig.keys, &command, &order, call->args.info.command);
	}
}

void stripe_send(struct stripe_client *c, struct stripe_rig_call *call, uint32_t proc, void *sink, uint32_t bytes)
{
	call->done = false;
	if (sink)
		call->iov = (struct iovec){ sink, bytes };
	memset(&call->res, 0, sizeof(call->res));
	call->call = (struct rpcrdma_call){
		.prog = LEAT_STRIPES, .vers = LEAT_STRIPES_V1, .proc = proc, .args = &call->args, .res = &call->res,
		.encode = codecs[proc].encode, .decode = codecs[proc].decode,
		.sink = sink ? &call->iov : NULL, .sinkcnt = sink ? 1 : 0,
		.reply_max = proc == STRIPEPROC_LIST ? 32768 : 128, .deadline_ms = 60000, .done = on_done,
	};
	assert_int_equal(rpcrdma_clnt_call(c->clnt, &call->call), 0);
}

void stripe_begin(struct stripe_client *c, struct stripe_rig_call *call, uint32_t proc, void *sink, uint32_t bytes)
{
	stripe_sign(c, call, proc);
	stripe_send(c, call, proc, sink, bytes);
}

stripe_status stripe_end(struct stripe_rig_call *call)
{
	while (!call->done)
		(void)rpcrdma_engine_wait(stripe_rig.engine, -1);
	if (call->err)
		fail_msg("procedure %u: %s", call->call.proc, call->call.why ? call->call.why : strerror(-call->err));
	return call->res.status;
}

void stripe_run_until(bool (*done)(void *arg), void *arg)
{
	while (!done(arg))
		(void)rpcrdma_engine_wait(stripe_rig.engine, 1);
}

stripe_status stripe_read(struct stripe_client *c, uint64_t off, void *to, uint32_t count, uint32_t *ret_bytes, bool *ret_eof)
{
	struct stripe_rig_call call = { .args.read = { .offset = off, .count = count } };
	stripe_status status;

	stripe_begin(c, &call, STRIPEPROC_READ, to, count);
	status = stripe_end(&call);
	if (status == STRIPE_OK) {
		*ret_bytes = call.res.read.STRIPEREADres_u.resok.data.length;
		*ret_eof = call.res.read.STRIPEREADres_u.resok.eof;
	}
	return status;
}

void stripe_write_begin_at(struct stripe_client *c, struct stripe_rig_call *call, uint64_t off, const void *from, uint32_t bytes,
			   bool sync)
{
	*call = (struct stripe_rig_call){ .args.write = { .offset = off, .sync = sync } };
	call->iov = (struct iovec){ (void *)(uintptr_t)from, bytes };
	call->args.write.data = (struct rpcrdma_payload){ .length = bytes, .iov = &call->iov, .iovcnt = 1 };
	stripe_begin(c, call, STRIPEPROC_WRITE, NULL, 0);
}

static stripe_status end_change(struct stripe_client *c, struct stripe_rig_call *call)
{
	stripe_status status = stripe_end(call);

	if (status == STRIPE_OK)
		c->verf = call->res.change.STRIPECHANGEres_u.verf;
	return status;
}

stripe_status stripe_write(struct stripe_client *c, uint64_t off, const void *from, uint32_t bytes, bool sync)
{
	struct stripe_rig_call call;

	stripe_write_begin_at(c, &call, off, from, bytes, sync);
	return end_change(c, &call);
}

stripe_status stripe_commit(struct stripe_client *c)
{
	struct stripe_rig_call call = { .err = 0 };

	stripe_begin(c, &call, STRIPEPROC_COMMIT, NULL, 0);
	return end_change(c, &call);
}

stripe_status stripe_info(struct stripe_client *c, STRIPEINFOresok *ret)
{
	struct stripe_rig_call call = { .err = 0 };
	stripe_status status;

	stripe_begin(c, &call, STRIPEPROC_INFO, NULL, 0);
	status = stripe_end(&call);
	if (ret && status == STRIPE_OK)
		*ret = call.res.info.STRIPEINFOres_u.resok;
	return status;
}

static stripe_status end_stat(struct stripe_rig_call *call, stripe_stat *ret)
{
	stripe_status status = stripe_end(call);

	if (ret && status == STRIPE_OK)
		*ret = call->res.stat.STRIPESTATres_u.stat;
	if (status == STRIPE_ERR_OLDTERM)
		stripe_rig.told_term = call->res.stat.STRIPESTATres_u.term;
	return status;
}

stripe_status stripe_stat_of(struct stripe_client *c, const stripe_name *name, stripe_stat *ret)
{
	struct stripe_rig_call call = { .args.stat.name = *name };

	stripe_begin(c, &call, STRIPEPROC_STAT, NULL, 0);
	return end_stat(&call, ret);
}

stripe_status stripe_fence(struct stripe_client *c, const stripe_name *name, uint64_t epoch, const uint64_t *cut, stripe_stat *ret)
{
	struct stripe_rig_call call = { .args.fence = { .name = *name, .epoch = epoch, .cut = cut != NULL, .bytes = cut ? *cut : 0 } };

	stripe_begin(c, &call, STRIPEPROC_FENCE, NULL, 0);
	return end_stat(&call, ret);
}

stripe_status stripe_remove(struct stripe_client *c, const stripe_name *name, uint64_t until, stripe_stat *ret)
{
	struct stripe_rig_call call = { .args.remove = { .name = *name, .until = until } };

	stripe_begin(c, &call, STRIPEPROC_REMOVE, NULL, 0);
	return end_stat(&call, ret);
}

stripe_status stripe_set_aside(struct stripe_client *c, const stripe_name *name, uint64_t until, uint64_t mtime, stripe_stat *ret)
{
	struct stripe_rig_call call = { .args.aside = { .name = *name, .until = until, .mtime = mtime } };

	stripe_begin(c, &call, STRIPEPROC_SET_ASIDE, NULL, 0);
	return end_stat(&call, ret);
}

stripe_status stripe_list(struct stripe_client *c, const stripe_name *after, stripe_entry *ret, unsigned *ret_n, bool *ret_eof)
{
	struct stripe_rig_call call = { .args.list = { .first = !after } };
	const STRIPELISTresok *ok = &call.res.list.STRIPELISTres_u.resok;
	stripe_status status;

	if (after)
		call.args.list.after = *after;
	stripe_begin(c, &call, STRIPEPROC_LIST, NULL, 0);
	status = stripe_end(&call);
	if (status == STRIPE_OK) {
		*ret_n = ok->entries.entries_len;
		*ret_eof = ok->eof;
		if (*ret_n)
			memcpy(ret, ok->entries.entries_val, *ret_n * sizeof(*ret));
	}
	if (status == STRIPE_ERR_OLDTERM)
		stripe_rig.told_term = call.res.list.STRIPELISTres_u.term;
	xdr_free((xdrproc_t)xdr_STRIPELISTres, (char *)&call.res.list);
	return status;
}
