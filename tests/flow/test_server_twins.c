/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_twins.c - calls that come again while the first is being executed
 *
 * The worker that makes a directory, or writes, is held until the test lets it go (the program is
 * linked with --wrap), so what joins what is certain. Then the same cache under many threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf.h"
#include "inside.h"
#include "nfs_peer.h"
#include "nfs3_conv.h"
#include "server_int.h"

static const char *const options[] = { "rw,no_root_squash", NULL };

/* ---- the worker, held ---- */

static atomic_bool hold;
static atomic_uint executed;
static atomic_uint jukebox; /* number of the next calls that get JUKEBOX */
static sem_t let_go;

static void held(void)
{
	atomic_fetch_add(&executed, 1);
	if (!atomic_load(&hold))
		return;
	while (sem_wait(&let_go))
		;
}

void __real_nfs3_mkdir(struct req *r);
void __wrap_nfs3_mkdir(struct req *r);
ssize_t __real_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);

void __wrap_nfs3_mkdir(struct req *r)
{
	held();
	if (atomic_load(&jukebox)) {
		atomic_fetch_sub(&jukebox, 1);
		nfs3_fail(r, -EAGAIN);
		return;
	}
	__real_nfs3_mkdir(r);
}

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	if (!(flags & RWF_NOWAIT)) /* on a worker */
		held();
	return __real_pwritev2(fd, iov, n, off, flags);
}

static void hold_all(void)
{
	atomic_store(&executed, 0);
	atomic_store(&hold, true);
}

static void let_one_go(void)
{
	sem_post(&let_go);
}

/* ---- several connections of one caller ---- */

#define CLNTS 4

struct twins {
	struct nfs_peer peer;
	enum rpcrdma_transport transport;
	struct rpcrdma_clnt *clnt[CLNTS];
	struct twin {
		struct rpcrdma_call call;
		MKDIR3args mkdir;
		MKDIR3res made;
		WRITE3args write;
		WRITE3res written;
		struct iovec iov;
		char name[8], fh[NFS3_FHSIZE];
		bool done;
		int err;
	} t[CLNTS];
};

static void on_done(struct rpcrdma_call *call, int err)
{
	struct twin *t = container_of(call, struct twin, call);

	t->done = true;
	t->err = err;
}

static struct drc_stats stats(const struct twins *w)
{
	struct drc_stats s = { 0 };

	drc_stats(w->peer.srv->drc, &s);
	drc_stats(w->peer.srv->drc_writes, &s);
	return s;
}

/* run the clients until @cond; the server runs by itself */
#define run_until(w, cond)                                                                         \
	for (; !(cond); (void)rpcrdma_engine_poll((w)->peer.engine), sched_yield())

/* @n calls are being executed, @joins wait for one of them, and none of the twins is done; what never
 * comes to that fails, and does not hang */
static void until_held(struct twins *w, unsigned n, unsigned joins)
{
	bool done = false;

	run_until(w, done || (atomic_load(&executed) >= n && stats(w).joins >= joins)) {
		for (unsigned i = 0; i < CLNTS; i++)
			done |= w->t[i].done;
		done |= atomic_load(&executed) > n;
	}
	assert_int_equal(atomic_load(&executed), n);
	assert_int_equal(stats(w).joins, joins);
	assert_false(done);
}

static void connect_one(struct twins *w, unsigned i, uint32_t stamp)
{
	struct rpcrdma_clnt_attr a = {
		.addr = w->transport == RPCRDMA_TCP ? w->peer.tcp : w->peer.local,
		.cred = w->peer.cred,
		.backoff_ms = 1,
	};

	a.cred.stamp = stamp;
	assert_int_equal(rpcrdma_clnt_open(w->peer.engine, &a, &w->clnt[i]), 0);
}

static void start(struct twins *w, unsigned i, uint32_t xid, uint32_t proc)
{
	struct twin *t = &w->t[i];

	t->done = false;
	t->err = 0;
	t->call = (struct rpcrdma_call){
		.prog = NFS_PROGRAM, .vers = NFS_V3, .proc = proc, .reply_max = 400,
		.done = on_done,
	};
	if (proc == NFSPROC3_MKDIR) {
		t->call.encode = (xdrproc_t)xdr_MKDIR3args;
		t->call.args = &t->mkdir;
		t->call.decode = (xdrproc_t)xdr_MKDIR3res;
		t->call.res = &t->made;
	} else {
		t->call.encode = (xdrproc_t)xdr_WRITE3args;
		t->call.args = &t->write;
		t->call.decode = (xdrproc_t)xdr_WRITE3res;
		t->call.res = &t->written;
	}
	clnt_next_xid(w->clnt[i], xid);
	assert_int_equal(rpcrdma_clnt_call(w->clnt[i], &t->call), 0);
}

static void start_mkdir(struct twins *w, unsigned i, uint32_t xid, const char *name)
{
	struct twin *t = &w->t[i];

	snprintf(t->name, sizeof(t->name), "%s", name);
	memset(&t->mkdir, 0, sizeof(t->mkdir));
	t->mkdir.where = (diropargs3){ nfs_peer_fh(&w->peer.root), t->name };
	memset(&t->made, 0, sizeof(t->made));
	/* no memory is allocated for it: a call that is given up leaves nothing behind */
	t->made.MKDIR3res_u.resok.obj.post_op_fh3_u.handle.data.data_val = t->fh;
	start(w, i, xid, NFSPROC3_MKDIR);
}

static void assert_made(struct twins *w, unsigned i, nfsstat3 want)
{
	run_until(w, w->t[i].done)
		;
	assert_int_equal(w->t[i].err, 0);
	assert_int_equal(w->t[i].made.status, want);
}

static bool is_there(struct twins *w, const char *name)
{
	char path[16];
	struct stat st;

	snprintf(path, sizeof(path), "e0/%s", name);
	return !stat(tmp_dir_path(&w->peer.dir, path), &st);
}

static int setup(void **state, enum rpcrdma_transport transport)
{
	struct twins *w = calloc(1, sizeof(*w));

	sem_init(&let_go, 0, 0);
	atomic_store(&hold, false);
	atomic_store(&executed, 0);
	atomic_store(&jukebox, 0);
	nfs_peer_create(&w->peer, transport, options);
	w->transport = transport;
	for (unsigned i = 0; i < CLNTS; i++)
		connect_one(w, i, 7);
	*state = w;
	return 0;
}

static int setup_local(void **state)
{
	return setup(state, RPCRDMA_LOCAL);
}

static int setup_tcp(void **state)
{
	return setup(state, RPCRDMA_TCP);
}

static int teardown(void **state)
{
	struct twins *w = *state;

	atomic_store(&hold, false);
	for (unsigned i = 0; i < CLNTS; i++)
		let_one_go(); /* a test that failed may have left some */
	for (unsigned i = 0; i < CLNTS; i++)
		rpcrdma_clnt_destroy(w->clnt[i]);
	nfs_peer_destroy(&w->peer);
	sem_destroy(&let_go);
	free(w);
	return 0;
}

/* ---- the tests ---- */

/* On four connections, which lie on two reactors: one directory, four times the same answer. */
static void join(void **state)
{
	struct twins *w = *state;

	hold_all();
	start_mkdir(w, 0, 100, "d");
	until_held(w, 1, 0);
	for (unsigned i = 1; i < CLNTS; i++)
		start_mkdir(w, i, 100, "d");
	until_held(w, 1, CLNTS - 1);
	assert_int_equal(stats(w).entries, 1);
	let_one_go();
	for (unsigned i = 0; i < CLNTS; i++)
		assert_made(w, i, NFS3_OK);
	assert_int_equal(atomic_load(&executed), 1);
	for (unsigned i = 1; i < CLNTS; i++)
		assert_memory_equal(w->t[i].fh, w->t[0].fh, 16);
}

/* The connection breaks while the call is being executed: the answer comes on the next one. */
static void newest_connection(void **state)
{
	struct twins *w = *state;

	hold_all();
	start_mkdir(w, 0, 100, "d");
	for (unsigned i = 0; i < 3; i++) {
		until_held(w, 1, i);
		clnt_disconnect(w->clnt[0]);
	}
	until_held(w, 1, 3);
	let_one_go();
	assert_made(w, 0, NFS3_OK);
	assert_int_equal(atomic_load(&executed), 1);
	assert_int_equal(w->t[0].call.xid, 100);
}

/* A client that waits may disconnect; the others get their reply. */
static void one_goes(void **state)
{
	struct twins *w = *state;

	hold_all();
	start_mkdir(w, 0, 100, "d");
	until_held(w, 1, 0);
	start_mkdir(w, 1, 100, "d");
	until_held(w, 1, 1);
	start_mkdir(w, 2, 100, "d");
	until_held(w, 1, 2);
	rpcrdma_clnt_destroy(w->clnt[1]);
	rpcrdma_clnt_destroy(w->clnt[0]);
	w->clnt[0] = w->clnt[1] = NULL;
	let_one_go();
	assert_made(w, 2, NFS3_OK);
	assert_int_equal(atomic_load(&executed), 1);
}

/* JUKEBOX promises that nothing happened: one call that joined is executed, and only one; the third gets its reply. */
static void not_executed(void **state)
{
	struct twins *w = *state;

	hold_all();
	atomic_store(&jukebox, 1);
	start_mkdir(w, 0, 100, "d");
	until_held(w, 1, 0);
	start_mkdir(w, 1, 100, "d");
	until_held(w, 1, 1);
	start_mkdir(w, 2, 100, "d");
	until_held(w, 1, 2);
	let_one_go();
	assert_made(w, 0, NFS3ERR_JUKEBOX);
	w->t[0].done = false;
	until_held(w, 2, 2);
	let_one_go();
	assert_made(w, 1, NFS3_OK);
	assert_made(w, 2, NFS3_OK);
	assert_int_equal(atomic_load(&executed), 2);
	assert_int_equal(stats(w).entries, 1);
	/* alone it leaves nothing behind */
	atomic_store(&hold, false);
	atomic_store(&jukebox, 1);
	start_mkdir(w, 0, 101, "e");
	assert_made(w, 0, NFS3ERR_JUKEBOX);
	assert_int_equal(stats(w).entries, 1);
	start_mkdir(w, 0, 101, "e");
	assert_made(w, 0, NFS3_OK);
}

/* Two callers of one host, with the XIDs of each other: each is executed. */
static void equal_xids(void **state)
{
	struct twins *w = *state;

	rpcrdma_clnt_destroy(w->clnt[1]);
	connect_one(w, 1, 8); /* another stamp */
	hold_all();
	start_mkdir(w, 0, 100, "d");
	until_held(w, 1, 0);
	start_mkdir(w, 1, 100, "d");
	start_mkdir(w, 2, 100, "e"); /* other arguments */
	run_until(w, atomic_load(&executed) + stats(w).joins == 3)
		;
	assert_int_equal(stats(w).joins, 0);
	for (unsigned i = 0; i < 3; i++)
		let_one_go();
	for (unsigned i = 0; i < 3; i++)
		run_until(w, w->t[i].done)
			;
	assert_int_equal(w->t[2].made.status, NFS3_OK);
	assert_true((w->t[0].made.status == NFS3_OK && w->t[1].made.status == NFS3ERR_EXIST) ||
		    (w->t[1].made.status == NFS3_OK && w->t[0].made.status == NFS3ERR_EXIST));
	assert_true(is_there(w, "d") && is_there(w, "e"));
	assert_int_equal(stats(w).hits, 0);
}

static void start_write(struct twins *w, unsigned i, const struct nfs_fh *fh, void *data,
			uint32_t bytes)
{
	struct twin *t = &w->t[i];

	t->iov = (struct iovec){ .iov_base = data, .iov_len = bytes };
	t->write = (WRITE3args){ .file = nfs_peer_fh(fh), .count = bytes, .stable = FILE_SYNC,
				 .data = { .length = bytes, .iov = &t->iov, .iovcnt = 1 } };
	memset(&t->written, 0, sizeof(t->written));
	start(w, i, 200, NFSPROC3_WRITE);
}

/* Data is pulled before it is known to be wanted; it is written once. */
static void join_write(void **state)
{
	struct twins *w = *state;
	uint32_t bytes = 200000;
	char *data = malloc(bytes);
	struct nfs_fh f;

	memset(data, 'w', bytes);
	assert_int_equal(nfs_peer_create_file(&w->peer, &w->peer.root, "f", &f), NFS3_OK);
	hold_all();
	start_write(w, 0, &f, data, bytes);
	until_held(w, 1, 0);
	for (unsigned i = 1; i < CLNTS; i++)
		start_write(w, i, &f, data, bytes);
	until_held(w, 1, CLNTS - 1);
	let_one_go();
	for (unsigned i = 0; i < CLNTS; i++) {
		run_until(w, w->t[i].done)
			;
		assert_int_equal(w->t[i].err, 0);
		assert_int_equal(w->t[i].written.status, NFS3_OK);
		assert_int_equal(w->t[i].written.WRITE3res_u.resok.count, bytes);
	}
	assert_int_equal(atomic_load(&executed), 1);
	free(data);
}

/* A server that ends replies to the calls that wait, as to those in execution. */
static void *stop(void *arg)
{
	nfs_peer_stop(arg);
	return NULL;
}

static void server_ends(void **state)
{
	struct twins *w = *state;
	pthread_t thread;

	hold_all();
	start_mkdir(w, 0, 100, "d");
	until_held(w, 1, 0);
	for (unsigned i = 1; i < CLNTS; i++)
		start_mkdir(w, i, 100, "d");
	until_held(w, 1, CLNTS - 1);
	assert_int_equal(pthread_create(&thread, NULL, stop, &w->peer), 0);
	let_one_go();
	for (unsigned i = 0; i < CLNTS; i++)
		assert_made(w, i, NFS3_OK);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&executed), 1);
}

/* ---- the cache alone, under many threads ---- */

#define THREADS 4
#define KEYS 64
#define CLIENTS 5
#define ROUNDS 3000

struct hammer {
	struct drc *drc;
	atomic_uint executions[KEYS], given_up;
	atomic_bool busy[KEYS]; /* never executed by two at once, however small the cache */
};

struct knock {
	struct drc_call call;
	sem_t woken;
};

static void on_woken(struct drc_call *c)
{
	sem_post(&container_of(c, struct knock, call)->woken);
}

static void *hammer_main(void *arg)
{
	struct hammer *h = arg;
	uint64_t random = (uintptr_t)&random;
	struct knock k;

	sem_init(&k.woken, 0, 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		enum drc_verdict v;
		uint32_t key;

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
		key = (uint32_t)(random >> 33) % KEYS;
		k.call = (struct drc_call){ .key.xid = key, .client.key = key % CLIENTS,
					    .cred = (const uint8_t *)"", .wake = on_woken };
		v = drc_enter(h->drc, &k.call);
		if (v == DRC_JOINED) {
			while (sem_wait(&k.woken))
				;
			v = k.call.verdict;
		}
		if (v == DRC_EXECUTE) {
			assert_false(atomic_exchange(&h->busy[key], true));
			sched_yield();
			atomic_store(&h->busy[key], false);
			if (random >> 62 == 0) {
				atomic_fetch_add(&h->given_up, 1);
				drc_abandon(h->drc, &k.call);
				continue;
			}
			atomic_fetch_add(&h->executions[key], 1);
			k.call.res_bytes = 4 + key;
			memset(k.call.res, (int)key, k.call.res_bytes);
			drc_done(h->drc, &k.call);
			continue;
		}
		assert_int_equal(v, DRC_REPLAY);
		assert_int_equal(k.call.res_bytes, 4 + key);
		assert_int_equal(k.call.res[3 + key], key);
	}
	sem_destroy(&k.woken);
	return NULL;
}

static void hammer(size_t entries, bool evicts)
{
	struct hammer *h = calloc(1, sizeof(*h));
	pthread_t threads[THREADS];
	const struct drc_attr attr = { .entries = entries, .bytes = 1u << 20, .keep_ns = DRC_KEEP_NS };
	struct drc_stats s = { 0 };

	assert_int_equal(drc_create(&attr, &h->drc), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer_main, h), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	drc_stats(h->drc, &s);
	assert_true(s.entries <= entries);
	assert_true(atomic_load(&h->given_up) > 0);
	assert_int_equal(s.evictions > 0, evicts);
	for (unsigned i = 0; i < KEYS && !evicts; i++)
		assert_int_equal(atomic_load(&h->executions[i]), 1);
	drc_destroy(h->drc);
	free(h);
}

static void many_threads(void **state)
{
	(void)state;
	hammer(KEYS, false);
}

static void many_threads_small_cache(void **state)
{
	(void)state;
	hammer(KEYS / 4, true);
}

static void one_at_a_time(struct conf *conf)
{
	conf->workers = 2; /* of which a file system has one */
}

static int setup_narrow(void **state, enum rpcrdma_transport transport)
{
	struct twins *w = calloc(1, sizeof(*w));

	sem_init(&let_go, 0, 0);
	atomic_store(&hold, false);
	nfs_peer_create_tuned(&w->peer, transport, options, one_at_a_time);
	w->transport = transport;
	for (unsigned i = 0; i < CLNTS; i++)
		connect_one(w, i, 7);
	*state = w;
	return 0;
}

static int setup_narrow_local(void **state)
{
	return setup_narrow(state, RPCRDMA_LOCAL);
}

static int setup_narrow_tcp(void **state)
{
	return setup_narrow(state, RPCRDMA_TCP);
}

static unsigned connections(const struct twins *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->peer.srv->nreactors; i++)
		n += atomic_load(&w->peer.srv->reactors[i]->nconns);
	return n;
}

/* A call hangs in a file system. Others wait for a worker, or for it because they are the same; their connections
 * are lost. These connections end meanwhile, and their calls are not executed: not until one is sent again. */
static void lost_while_waiting(void **state)
{
	struct twins *w = *state;
	unsigned before;

	(void)alarm(30); /* connections that stay would be waited for */
	run_until(w, connections(w) == CLNTS + 1) /* the server may accept the last one after the first calls */
		;
	hold_all();
	start_mkdir(w, 0, 100, "a");
	until_held(w, 1, 0);
	start_mkdir(w, 1, 200, "b");
	run_until(w, stats(w).executing == 2)
		;
	start_mkdir(w, 2, 100, "a");
	until_held(w, 1, 1);
	before = connections(w);
	rpcrdma_clnt_destroy(w->clnt[1]);
	rpcrdma_clnt_destroy(w->clnt[2]);
	w->clnt[1] = w->clnt[2] = NULL;
	run_until(w, connections(w) == before - 2)
		;
	assert_int_equal(stats(w).executing, 1);
	assert_false(w->t[0].done);

	start_mkdir(w, 3, 200, "b");
	run_until(w, stats(w).executing == 2)
		;
	assert_int_equal(stats(w).joins, 1);
	assert_int_equal(atomic_load(&executed), 1);
	atomic_store(&hold, false);
	let_one_go();
	assert_made(w, 0, NFS3_OK);
	assert_made(w, 3, NFS3_OK);
	assert_int_equal(atomic_load(&executed), 2);
	assert_true(is_there(w, "a") && is_there(w, "b"));
	(void)alarm(0);
}

struct mount_call {
	struct rpcrdma_call call;
	dirpath path;
	mountres3 mounted;
	mountexports exports;
	bool done;
	int err;
};

static void on_mount_done(struct rpcrdma_call *call, int err)
{
	struct mount_call *m = container_of(call, struct mount_call, call);

	m->done = true;
	m->err = err;
}

static void start_mount_call(struct twins *w, struct mount_call *m, bool mnt)
{
	*m = (struct mount_call){ .path = (char *)(uintptr_t)"/e0" };
	m->call = (struct rpcrdma_call){
		.prog = MOUNT_PROGRAM, .vers = MOUNT_V3,
		.proc = mnt ? MOUNTPROC3_MNT : MOUNTPROC3_EXPORT, .reply_max = 4096,
		.encode = mnt ? (xdrproc_t)xdr_dirpath : NULL, .args = &m->path,
		.decode = mnt ? (xdrproc_t)xdr_mountres3 : (xdrproc_t)xdr_mountexports,
		.res = mnt ? (void *)&m->mounted : (void *)&m->exports,
		.done = on_mount_done,
	};
	assert_int_equal(rpcrdma_clnt_call(w->peer.clnt, &m->call), 0);
}

/* A path may be looked for in a file system that hangs: MNT waits for a worker as other calls to it do, and takes
 * none from those that are for none. */
static void mounts_of_what_hangs(void **state)
{
	struct twins *w = *state;
	struct mount_call mnt, list; /* over one connection: in this order */

	if (getenv("LEAT_TEST_CREDITS")) {
		print_message("SKIP: there must be credits for two calls at once\n");
		skip();
	}
	hold_all();
	start_mkdir(w, 0, 100, "a");
	until_held(w, 1, 0);
	start_mount_call(w, &mnt, true);
	start_mount_call(w, &list, false);
	run_until(w, list.done)
		;
	assert_int_equal(list.err, 0);
	assert_false(mnt.done);
	let_one_go();
	run_until(w, mnt.done)
		;
	assert_int_equal(mnt.err, 0);
	assert_int_equal(mnt.mounted.fhs_status, MNT3_OK);
	assert_made(w, 0, NFS3_OK);
	xdr_free((xdrproc_t)xdr_mountres3, (char *)&mnt.mounted);
	xdr_free((xdrproc_t)xdr_mountexports, (char *)&list.exports);
}

#define BOTH(f) { #f " (tcp)", f, setup_tcp, teardown, NULL }, { #f " (local)", f, setup_local, teardown, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(join),
		BOTH(newest_connection),
		BOTH(one_goes),
		BOTH(not_executed),
		BOTH(equal_xids),
		BOTH(join_write),
		BOTH(server_ends),
		{ "mounts_of_what_hangs", mounts_of_what_hangs, setup_narrow_local, teardown, NULL },
		{ "lost_while_waiting (tcp)", lost_while_waiting, setup_narrow_tcp, teardown, NULL },
		{ "lost_while_waiting (local)", lost_while_waiting, setup_narrow_local, teardown, NULL },
		cmocka_unit_test(many_threads),
		cmocka_unit_test(many_threads_small_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
