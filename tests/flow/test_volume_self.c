/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_self.c - a manager that is a stripe server, too: it serves clients by calling itself
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/util.h"
#include "conf.h"
#include "inside.h"
#include "leat_volume.h"
#include "nfs_peer.h"
#include "server.h"
#include "volume_calls.h"
#include "volume_rig.h"

#define UNIT 65536u
#define POOL_BYTES ((size_t)8 << 20)

static uint8_t data[UNIT];
static struct nfs_peer peer;

/* ---- a layout that comes late, and a stop ---- */

static atomic_bool hold_layout;
static sem_t held, let_go, stopping; /* zeroed: as by sem_init() with 0 */

int __real_volume_layout_for_manager(const struct volume_file *f, bool heals, struct file_layout *ret);
int __wrap_volume_layout_for_manager(const struct volume_file *f, bool heals, struct file_layout *ret);

int __wrap_volume_layout_for_manager(const struct volume_file *f, bool heals, struct file_layout *ret)
{
	if (atomic_exchange(&hold_layout, false)) {
		(void)sem_post(&held);
		while (sem_wait(&let_go))
			;
	}
	return __real_volume_layout_for_manager(f, heals, ret);
}

struct reactor;
void __real_reactor_stop(struct reactor *r, uint64_t until_ns);
void __wrap_reactor_stop(struct reactor *r, uint64_t until_ns);

void __wrap_reactor_stop(struct reactor *r, uint64_t until_ns)
{
	__real_reactor_stop(r, until_ns);
	(void)sem_post(&stopping);
}

/* ---- requests that would fill its memory ---- */

#define FLOODS 4u /* connections */
#define CALLS 24u /* of each, at once */
#define PIECE (512u << 10)

struct flood_call {
	struct rpcrdma_call call;
	unsigned *left;
	union {
		WRITE3args write;
		READ3args read;
	} args;
	union {
		WRITE3res write;
		READ3res read;
	} res;
	struct iovec iov;
};

static void flood_done(struct rpcrdma_call *rpc, int err)
{
	struct flood_call *c = container_of(rpc, struct flood_call, call);

	assert_int_equal(err, 0);
	assert_int_equal(c->res.write.status, NFS3_OK); /* results of READ begin with it, too */
	--*c->left;
}

static void flood_call(struct nfs_peer *p, struct flood_call *c, const struct nfs_fh *fh, uint64_t off, uint8_t *mem, bool write)
{
	c->iov = (struct iovec){ mem, PIECE };
	c->call = (struct rpcrdma_call){ .prog = NFS_PROGRAM, .vers = NFS_V3, .cred = &p->cred, .args = &c->args, .res = &c->res,
					 .reply_max = 4096, .deadline_ms = 60000, .done = flood_done };
	if (write) {
		c->args.write = (WRITE3args){ .file = nfs_peer_fh(fh), .offset = off, .count = PIECE, .stable = UNSTABLE,
					      .data = { .length = PIECE, .iov = &c->iov, .iovcnt = 1 } };
		c->call.proc = NFSPROC3_WRITE;
		c->call.encode = (xdrproc_t)xdr_WRITE3args;
		c->call.decode = (xdrproc_t)xdr_WRITE3res;
	} else {
		c->args.read = (READ3args){ .file = nfs_peer_fh(fh), .offset = off, .count = PIECE };
		c->call.proc = NFSPROC3_READ;
		c->call.encode = (xdrproc_t)xdr_READ3args;
		c->call.decode = (xdrproc_t)xdr_READ3res;
		c->call.sink = &c->iov;
		c->call.sinkcnt = 1;
	}
	memset(&c->res, 0, sizeof(c->res));
	assert_int_equal(rpcrdma_clnt_call(p->clnt, &c->call), 0);
}

/* Each connection writes its part of the file, or reads it, with all its calls at once. */
static void flood(struct nfs_peer *p, const struct nfs_fh *fh, uint8_t *mem, bool write)
{
	struct flood_call *c = calloc((size_t)FLOODS * CALLS, sizeof(*c));
	unsigned left[FLOODS];

	assert_non_null(c);
	for (unsigned k = 0; k < FLOODS; k++) {
		left[k] = CALLS;
		for (unsigned i = 0; i < CALLS; i++) {
			size_t n = (size_t)k * CALLS + i;

			c[n].left = &left[k];
			flood_call(&p[k], &c[n], fh, n * PIECE, mem + n * PIECE, write);
		}
	}
	for (unsigned k = 0; k < FLOODS; k++)
		while (left[k])
			for (unsigned i = 0; i < FLOODS; i++) /* replies of one make room for others */
				(void)rpcrdma_engine_wait(p[i].engine, 1);
	free(c);
}

/* So little memory that the requests of clients would fill it, and a stripe server in it. */
static void tune_self(struct conf *conf)
{
	char text[512], why[256];
	const char *dir = volume_rig.dir.path;

	conf->reactors = 2;
	conf->pinned_max = POOL_BYTES;
	(void)snprintf(text, sizeof(text), "v=%.100s/self,key=%.100s/key,id=1%s", dir, dir,
		       volume_rig.tcp ? ",clients=127.0.0.1,insecure" : "");
	(void)mkdir(tmp_dir_path(&volume_rig.dir, "self"), 0755); /* it is there when the manager reloads */
	if (stripes_conf_parse(text, &conf->stripes[conf->nstripes++], why, sizeof(why)))
		fail_msg("%s: %s", text, why);
}

static void start_self(bool tcp)
{
	volume_rig_tune = tune_self;
	volume_rig_start(tcp, "stripe=64K,width=1,stripe_timeo=5s");
	volume_rig_end_server(0);
	(void)rpcrdma_addr_print(server_listener(volume_rig.manager, 0), volume_rig.server_url[0], sizeof(volume_rig.server_url[0]));
	volume_rig_new_map();
}

/* Return: the handle of a file whose only stripe is in the manager; @first: letter of its name, or a later one */
static struct nfs_fh create_self(struct leat *at, struct nfs_peer *p, char first)
{
	struct nfs_fh fh;

	for (char name[] = { first, '\0' };; name[0]++) {
		struct leat_volume_layout *l;
		bool here;

		assert_int_equal(nfs_peer_create_file(p, &p->root, name, &fh), NFS3_OK);
		assert_int_equal(leat_volume_layout(at, name, &l), 0);
		here = l->nstripes == 1 && l->stripes[0]->server == 1;
		leat_volume_layout_free(l);
		if (here)
			return fh;
	}
}

static void connect_peer(struct nfs_peer *p)
{
	nfs_peer_join(p, server_listener(volume_rig.manager, 0), "/v");
}

/* COMMIT of the whole file */
static nfsstat3 commit(struct nfs_peer *p, const struct nfs_fh *fh)
{
	COMMIT3args a = { .file = nfs_peer_fh(fh) };

	NFS_PEER_RETURN_CALL(p, COMMIT, &a);
}

static void try_self(bool tcp)
{
	struct nfs_peer p[FLOODS] = { 0 };
	size_t bytes = (size_t)FLOODS * CALLS * PIECE;
	uint8_t *mem = malloc(bytes), *back = malloc(bytes);
	struct nfs_fh fh;
	struct leat *at;

	assert_true(mem && back);
	for (size_t i = 0; i < bytes; i++)
		mem[i] = (uint8_t)(i * 31 + i / 65521);
	start_self(tcp);
	for (unsigned k = 0; k < FLOODS; k++)
		connect_peer(&p[k]);
	at = volume_rig_mount(NULL);
	fh = create_self(at, &p[0], 'a');
	flood(p, &fh, mem, true);
	assert_int_equal(commit(&p[1], &fh), NFS3_OK);
	flood(p, &fh, back, false);
	assert_memory_equal(mem, back, bytes);
	assert_true(server_counters(volume_rig.manager, "volume_waits") > 0);
	leat_umount(at);
	for (unsigned k = 0; k < FLOODS; k++)
		nfs_peer_leave(&p[k]);
	volume_rig_stop();
	free(mem);
	free(back);
}

static void serves_itself(void **state)
{
	(void)state;
	try_self(false);
}

static void serves_itself_tcp(void **state)
{
	(void)state;
	try_self(true);
}

/* ---- its end ---- */

static void *write_self(void *arg)
{
	struct nfs_fh *fh = arg;

	return (void *)(intptr_t)nfs_peer_write(&peer, fh, 0, data, UNIT, FILE_SYNC, NULL);
}

static void *stop_self(void *arg)
{
	(void)arg;
	volume_rig_end_manager();
	return NULL;
}

/* What is in progress when it stops may still call the stripe server in it. */
static void stops_itself(void **state)
{
	pthread_t writes, stops;
	struct nfs_fh fh;
	struct leat *at;
	void *status;

	(void)state;
	start_self(false);
	connect_peer(&peer);
	at = volume_rig_mount(NULL);
	fh = create_self(at, &peer, 'a');
	assert_int_equal(nfs_peer_write(&peer, &fh, 0, data, UNIT, UNSTABLE, NULL), NFS3_OK); /* the manager is connected to itself now */
	fh = create_self(at, &peer, 'n');
	leat_umount(at);
	atomic_store(&hold_layout, true);
	assert_int_equal(pthread_create(&writes, NULL, write_self, &fh), 0);
	while (sem_wait(&held))
		;
	while (!sem_trywait(&stopping))
		;
	assert_int_equal(pthread_create(&stops, NULL, stop_self, NULL), 0);
	for (unsigned i = 0; i < 2; i++) /* both reactors know that they stop */
		while (sem_wait(&stopping))
			;
	(void)sem_post(&let_go);
	assert_int_equal(pthread_join(writes, &status), 0);
	assert_int_equal((intptr_t)status, NFS3_OK);
	assert_int_equal(pthread_join(stops, NULL), 0);
	nfs_peer_leave(&peer);
	volume_rig_start_manager();
	volume_rig_stop();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(serves_itself),
		cmocka_unit_test(serves_itself_tcp),
		cmocka_unit_test(stops_itself),
	};

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 65521);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
