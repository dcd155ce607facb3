/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_pinned.c - a server whose buffer memory is less than a request: all that works still does
 *
 * Several clients at once, over the local fabric and TCP, read and write 1 MiB at a time of which the
 * server can hold two thirds; without overlap, in order, and in whatever order.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf.h"
#include "nfs_peer.h"
#include "inside.h"

#define MIB (1u << 20)
#define CLIENTS 6
#define FILES 3 /* of each client */

static const char *const options[] = {
	"rw,async,no_root_squash,overlap=off",
	"rw,async,no_root_squash,overlap=ordered,grain=16384,streams=3,chunk=65536",
	"rw,async,no_root_squash,overlap=streams,grain=16384,streams=3,chunk=65536",
	"rw,async,no_root_squash,overlap=streams,grain=262144"
#ifdef HAVE_AIO
	",read=direct,write=direct"
#endif
	,
	NULL,
};

static size_t pinned;

static void tune(struct conf *conf)
{
	conf->pinned_max = pinned;
}

static int setup(void **state)
{
	struct nfs_peer *p = malloc(sizeof(*p));

	assert_non_null(p);
	pinned = 700 << 10;
	nfs_peer_create_tuned(p, RPCRDMA_LOCAL, options, tune);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	nfs_peer_destroy(*state);
	free(*state);
	return 0;
}

/* ---- clients, each with calls of its own under way ---- */

struct one {
	struct rpcrdma_call call;
	union {
		WRITE3args write;
		READ3args read;
	} args;
	union {
		WRITE3res write;
		READ3res read;
	} res;
	struct iovec iov;
	struct nfs_fh fh;
	uint32_t at;
	unsigned seed;
	bool reading;
	uint8_t *mem;
};

struct caller {
	struct rpcrdma_clnt *clnt;
	struct one ones[FILES];
};

static struct caller clients[CLIENTS];
static struct nfs_peer *peer;
static unsigned open_calls;

static uint8_t byte_at(unsigned seed, uint32_t at)
{
	return (uint8_t)(at * 31 + at / 4096 * 7 + seed);
}

static void on_done(struct rpcrdma_call *call, int err);

static struct caller *client_of(struct one *o)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		if (o >= clients[i].ones && o < clients[i].ones + FILES)
			return &clients[i];
	fail();
	return NULL;
}

/* what is left of the megabyte */
static void ask(struct one *o)
{
	memset(&o->res, 0, sizeof(o->res));
	memset(&o->call, 0, sizeof(o->call));
	o->iov = (struct iovec){ o->mem + o->at, MIB - o->at };
	o->call = (struct rpcrdma_call){
		.prog = NFS_PROGRAM, .vers = NFS_V3, .cred = &peer->cred, .args = &o->args,
		.res = &o->res, .reply_max = 4096, .deadline_ms = 60000, .done = on_done,
	};
	if (o->reading) {
		o->args.read = (READ3args){ .file = nfs_peer_fh(&o->fh), .offset = o->at,
					    .count = MIB - o->at };
		o->call.proc = NFSPROC3_READ;
		o->call.encode = (xdrproc_t)xdr_READ3args;
		o->call.decode = (xdrproc_t)xdr_READ3res;
		o->call.sink = &o->iov;
		o->call.sinkcnt = 1;
	} else {
		o->args.write = (WRITE3args){ .file = nfs_peer_fh(&o->fh), .offset = o->at,
					      .count = MIB - o->at, .stable = UNSTABLE };
		o->args.write.data = (struct rpcrdma_payload){ .length = MIB - o->at, .iovcnt = 1,
							       .iov = &o->iov };
		o->call.proc = NFSPROC3_WRITE;
		o->call.encode = (xdrproc_t)xdr_WRITE3args;
		o->call.decode = (xdrproc_t)xdr_WRITE3res;
	}
	open_calls++;
	assert_int_equal(rpcrdma_clnt_call(client_of(o)->clnt, &o->call), 0);
}

static void on_done(struct rpcrdma_call *call, int err)
{
	struct one *o = container_of(call, struct one, call);

	open_calls--;
	if (err)
		fail_msg("%s at %u: %s", o->reading ? "READ" : "WRITE", o->at, strerror(-err));
	if (o->reading) {
		assert_int_equal(o->res.read.status, NFS3_OK);
		assert_int_equal(o->res.read.READ3res_u.resok.count, call->payload_bytes);
		assert_true(call->payload_bytes > 0);
		o->at += call->payload_bytes;
		assert_int_equal(o->res.read.READ3res_u.resok.eof, o->at == MIB);
	} else {
		assert_int_equal(o->res.write.status, NFS3_OK);
		assert_true(o->res.write.WRITE3res_u.resok.count > 0);
		o->at += o->res.write.WRITE3res_u.resok.count;
	}
	if (o->at < MIB)
		ask(o);
}

static void all(bool reading)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		for (unsigned k = 0; k < FILES; k++) {
			struct one *o = &clients[i].ones[k];

			o->reading = reading;
			o->at = 0;
			if (reading)
				memset(o->mem, 0, MIB);
			ask(o);
		}
	}
	while (open_calls)
		rpcrdma_engine_wait(peer->engine, -1);
}

static uint8_t *memory(bool mapped)
{
	void *mem = NULL;

	if (mapped)
		assert_int_equal(rpcrdma_mem_alloc(peer->domain, MIB, &mem), 0);
	else
		mem = malloc(MIB);
	assert_non_null(mem);
	return mem;
}

static void make_clients(struct nfs_peer *p, unsigned export, bool tcp, bool mapped)
{
	char name[32];
	struct nfs_fh root;

	peer = p;
	snprintf(name, sizeof(name), "/e%u", export);
	assert_int_equal(nfs_peer_mount(p, name, &root), MNT3_OK);
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct rpcrdma_clnt_attr attr = { .addr = tcp ? p->tcp : p->local, .cred = p->cred };

		assert_int_equal(rpcrdma_clnt_open(p->engine, &attr, &clients[i].clnt), 0);
		for (unsigned k = 0; k < FILES; k++) {
			struct one *o = &clients[i].ones[k];

			o->seed = i * FILES + k;
			o->mem = memory(mapped);
			for (uint32_t at = 0; at < MIB; at++)
				o->mem[at] = byte_at(o->seed, at);
			snprintf(name, sizeof(name), "f%u.%d", o->seed, tcp);
			assert_int_equal(nfs_peer_create_file(p, &root, name, &o->fh), NFS3_OK);
		}
	}
}

static void end_clients(bool mapped)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		rpcrdma_clnt_destroy(clients[i].clnt);
		for (unsigned k = 0; k < FILES; k++) {
			if (mapped)
				rpcrdma_mem_free(peer->domain, clients[i].ones[k].mem);
			else
				free(clients[i].ones[k].mem);
		}
	}
}

static void to_and_fro(struct nfs_peer *p, unsigned export, bool tcp, bool mapped)
{
	struct rpcrdma_pool_stats s;

	make_clients(p, export, tcp, mapped);
	all(false);
	all(true);
	for (unsigned i = 0; i < CLIENTS; i++) {
		for (unsigned k = 0; k < FILES; k++) {
			struct one *o = &clients[i].ones[k];

			for (uint32_t at = 0; at < MIB; at++)
				if (o->mem[at] != byte_at(o->seed, at))
					fail_msg("client %u file %u byte %u", i, k, at);
		}
	}
	end_clients(mapped);
	rpcrdma_domain_pool_stats(server_domain(p->srv), &s);
	assert_true(s.most > 0 || mapped);
	assert_true(s.most <= pinned);
}

static void over_local(void **state)
{
	for (unsigned i = 0; options[i]; i++)
		to_and_fro(*state, i, false, false);
}

static void over_local_mapped(void **state)
{
	for (unsigned i = 0; options[i]; i++)
		to_and_fro(*state, i, false, true);
}

static void over_tcp(void **state)
{
	for (unsigned i = 0; options[i]; i++)
		to_and_fro(*state, i, true, false);
}

static void with_the_least(void **state)
{
	struct nfs_peer *p = *state;

	nfs_peer_stop(p);
	pinned = RPCRDMA_POOL_BYTES_MIN;
	nfs_peer_start(p);
	to_and_fro(p, 0, false, false);
	to_and_fro(p, 1, false, false);
	to_and_fro(p, 2, true, false);
}

/* A READ whose data has to go with the answer, and a READDIR, are as long as one buffer is. */
static void long_answers(void **state)
{
	struct nfs_peer *p = *state;
	READDIR3args args = { .dir = nfs_peer_fh(&p->root), .count = MIB };
	READDIR3res res = { 0 };
	FSINFO3args fsargs = { nfs_peer_fh(&p->root) };
	FSINFO3res fsres = { 0 };
	unsigned n = 0;

	for (unsigned i = 0; i < 400; i++) {
		struct nfs_fh fh;
		char name[200];

		memset(name, 'x', sizeof(name));
		snprintf(name + 180, 10, "%u", i);
		assert_int_equal(nfs_peer_create_file(p, &p->root, name, &fh), NFS3_OK);
	}
	NFS_PEER_CALL(p, FSINFO, &fsargs, &fsres, NULL, 0);
	assert_int_equal(fsres.FSINFO3res_u.resok.rtmax, MIB); /* by chunk any length goes */
	assert_int_equal(fsres.FSINFO3res_u.resok.dtpref, 61440);
	NFS_PEER_CALL(p, READDIR, &args, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	for (entry3 *e = res.READDIR3res_u.resok.reply.entries; e; e = e->nextentry)
		n++;
	assert_true(n > 200 && n < 400);
	xdr_free((xdrproc_t)xdr_READDIR3res, (char *)&res);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(over_local, setup, teardown),
		cmocka_unit_test_setup_teardown(over_local_mapped, setup, teardown),
		cmocka_unit_test_setup_teardown(over_tcp, setup, teardown),
		cmocka_unit_test_setup_teardown(with_the_least, setup, teardown),
		cmocka_unit_test_setup_teardown(long_answers, setup, teardown),
	};

	return cmocka_run_group_tests_name("pinned", tests, NULL, NULL);
}
