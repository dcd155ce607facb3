/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_retune.c - overlap, grain, streams and chunk changed while requests run
 *
 * Not one of the test_server_*, which are run again with one credit and with late messages: here two calls
 * are out while the client does not poll.
 *
 * A request goes to its end as it was cut when it came; one that comes later is cut by the new words.
 * The server may not reach the client's memory by itself, so that nothing moves while the client does
 * not poll: what is under way is under way when the exports change.
 */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "conf.h"
#include "nfs_peer.h"
#include "server.h"
#include "server_int.h"
#include "inside.h"

LOG_DEFINE("test_retune");

#define LEN (1u << 20)
#define ROUNDS 24u
#define DISK "rw,no_root_squash,store=sim:members=4:chunk=64K:rate=1G"

static const struct setting {
	const char *options;
	uint32_t pieces;
	uint32_t first[3]; /* where the first ones begin; of pieces there is always more than one */
} settings[] = {
	{ DISK, 1, { 0 } },
	{ DISK ",overlap=streams,streams=4,chunk=64K,grain=16K", 64, { 0, 64u << 10, 128u << 10 } },
	{ DISK ",overlap=streams,streams=2,chunk=128K,grain=32K", 32, { 0, 128u << 10, 32u << 10 } },
	{ DISK ",overlap=ordered,grain=16K", 64, { 0, 16u << 10, 32u << 10 } },
	{ DISK ",overlap=streams,streams=4,chunk=32K,grain=4K", 256, { 0, 32u << 10, 64u << 10 } },
	{ DISK ",overlap=streams", 32, { 0, 32u << 10, 64u << 10 } },
	{ DISK ",overlap=streams,streams=4,chunk=16K,grain=16K", 64, { 0, 16u << 10, 32u << 10 } },
};

static struct nfs_peer peer;
static const struct setting *now = settings; /* in force */
static uint8_t out[LEN], in[LEN], old[LEN];

static void retune(const struct setting *s)
{
	static struct conf conf; /* too large for a stack */
	char why[CONF_WHY_BYTES] = "", arg[512];

	conf_init(&conf);
	(void)snprintf(arg, sizeof(arg), "/e0=%s/e0,%s", peer.dir.path, s->options);
	if (export_conf_parse(arg, &conf.exports[0], why, sizeof(why)))
		fail_msg("%s: %s", arg, why);
	conf.nexports = 1;
	if (server_reload(peer.srv, &conf, why, sizeof(why)))
		fail_msg("reload: %s", why);
	conf_fini(&conf);
	now = s;
}

struct waiting {
	struct rpcrdma_call call;
	struct iovec iov;
	union {
		READ3args read;
		WRITE3args write;
	} args;
	union {
		READ3res read;
		WRITE3res write;
	} res;
	bool done;
	int err;
};

static void on_done(struct rpcrdma_call *call, int err)
{
	struct waiting *w = container_of(call, struct waiting, call);

	w->done = true;
	w->err = err;
}

/* as far as it goes until the client polls again; the server has it then */
static void begin(struct waiting *w, uint32_t proc, const struct nfs_fh *fh, void *mem)
{
	uint64_t before = server_counters(peer.srv, "reqs");
	const bool write = proc == NFSPROC3_WRITE;

	memset(w, 0, sizeof(*w));
	w->iov = (struct iovec){ .iov_base = mem, .iov_len = LEN };
	if (write)
		w->args.write = (WRITE3args){ .file = nfs_peer_fh(fh),
					      .count = LEN,
					      .stable = UNSTABLE,
					      .data = { .length = LEN, .iov = &w->iov, .iovcnt = 1 } };
	else
		w->args.read = (READ3args){ .file = nfs_peer_fh(fh), .count = LEN };
	w->call = (struct rpcrdma_call){
		.prog = NFS_PROGRAM, .vers = NFS_V3, .proc = proc, .cred = &peer.cred,
		.encode = write ? (xdrproc_t)xdr_WRITE3args : (xdrproc_t)xdr_READ3args,
		.args = &w->args,
		.decode = write ? (xdrproc_t)xdr_WRITE3res : (xdrproc_t)xdr_READ3res,
		.res = &w->res, .sink = write ? NULL : &w->iov, .sinkcnt = write ? 0 : 1,
		.reply_max = LEN + 4096, .deadline_ms = 20000, .done = on_done,
	};
	assert_int_equal(rpcrdma_clnt_call(peer.clnt, &w->call), 0);
	while (server_counters(peer.srv, "reqs") == before && !w->done)
		sched_yield();
	assert_false(w->done);
}

/* of a request that was armed for it: it is over when its answer is out, or a little later */
static struct latency_trace *trace_of_it(void)
{
	struct latency_trace *t;

	while (!(t = latency_tracer_take(&peer.srv->tracer, NULL)))
		sched_yield();
	return t;
}

static void is_cut_as(const struct setting *s)
{
	struct latency_trace *t = trace_of_it();

	assert_true(t->is_write);
	assert_int_equal(t->n, s->pieces);
	for (unsigned i = 0; i < ARRAY_SIZE(s->first); i++)
		assert_int_equal(t->units[i].off, s->first[i]);
	for (unsigned i = 0; i < t->n; i++)
		assert_int_equal(t->units[i].len, LEN / s->pieces);
	free(t);
}

static void is_in_file(const uint8_t *what)
{
	static uint8_t got[LEN];
	FILE *f = fopen(tmp_dir_path(&peer.dir, "e0/w"), "r");

	assert_non_null(f);
	assert_int_equal(fread(got, 1, LEN, f), LEN);
	assert_int_equal(fclose(f), 0);
	assert_memory_equal(got, what, LEN);
}

static void fill(uint8_t *p, unsigned seed)
{
	for (uint32_t i = 0; i < LEN; i++)
		p[i] = (uint8_t)(i * (2 * seed + 1) + i / 4099 + seed);
}

static void while_requests_run(void **state)
{
	const char *options[] = { DISK, NULL };
	static struct waiting w, r;
	struct nfs_fh written, read;
	WRITE3resok ok;

	(void)state;
	nfs_peer_create(&peer, RPCRDMA_LOCAL, options);
	assert_int_equal(nfs_peer_create_file(&peer, &peer.root, "w", &written), NFS3_OK);
	assert_int_equal(nfs_peer_create_file(&peer, &peer.root, "r", &read), NFS3_OK);
	fill(old, 77);
	assert_int_equal(nfs_peer_write(&peer, &read, 0, old, LEN, UNSTABLE, &ok), NFS3_OK);
	for (unsigned round = 0; round < ROUNDS; round++) {
		const struct setting *first = now;
		uint64_t before = server_counters(peer.srv, "sim_requests");
		unsigned step = 1 + round % (ARRAY_SIZE(settings) - 1), reloads = 0;

		fill(out, round);
		memset(in, 0, LEN);
		free(latency_tracer_take(&peer.srv->tracer, NULL));
		begin(&w, NFSPROC3_WRITE, &written, out);
		begin(&r, NFSPROC3_READ, &read, in);
		do {
			retune(&settings[(size_t)(now - settings + step) % ARRAY_SIZE(settings)]);
			/* before the first poll nothing was brought here to be written */
			assert_true(reloads || server_counters(peer.srv, "sim_requests") - before <= first->pieces);
			reloads++;
			(void)rpcrdma_engine_poll(peer.engine);
		} while (!w.done || !r.done);
		assert_int_equal(w.err, 0);
		assert_int_equal(r.err, 0);
		assert_int_equal(w.res.write.status, NFS3_OK);
		assert_int_equal(w.res.write.WRITE3res_u.resok.count, LEN);
		assert_int_equal(r.res.read.status, NFS3_OK);
		assert_int_equal(r.res.read.READ3res_u.resok.count, LEN);
		assert_memory_equal(in, old, LEN);
		is_in_file(out);
		/* both as it was when they came, whatever came after them */
		assert_int_equal(server_counters(peer.srv, "sim_requests") - before, 2 * first->pieces);
		if (first->pieces > 1)
			is_cut_as(first);
	}
	nfs_peer_destroy(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(while_requests_run),
	};

	(void)setenv("LEAT_TEST_VM", "never", 1); /* see tests/lib/variant.c */
	return cmocka_run_group_tests_name("server_retune", tests, NULL, NULL);
}
