/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_shares.c - clients that take their replies slowly delay only themselves
 *
 * The readers are one client (all loopback addresses together) over TCP, the victim is another one (a user
 * on the local fabric). What is asserted is an order: the victim is served before any reader has what it
 * asked for. Readers take some bytes after each call of the victim, and many while a call of the
 * victim is not answered, so that a server that lets the victim wait for the readers fails here, and does
 * not hang.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/wire.h"
#include "conf.h"
#include "nfs_peer.h"
#include "server_int.h"

#define MIB (1u << 20)
#define CALLS 64u           /* of each reader, at once: as many as the server takes */
#define FIRST (16u * MIB)   /* of a reader: until it has them, it has not been served */
#define READERS_MAX 400u
#define SIP 1024u           /* bytes that a reader takes at a time */
#define GULP (256u << 10)   /* ... while the victim waits */
#define PATIENCE_MS 100

static const char *const options[] = { "rw,async,no_root_squash,insecure", NULL };

static struct reader {
	int fd;
	uint64_t got;
} readers[READERS_MAX];
static unsigned nreaders;

static void tune(struct conf *conf)
{
	conf->reactors = 1;
}

static int setup(void **state)
{
	struct nfs_peer *p = malloc(sizeof(*p));

	assert_non_null(p);
	nfs_peer_create_tuned(p, RPCRDMA_LOCAL, options, tune);
	*state = p;
	return 0;
}

static void raise_limit(unsigned descriptors)
{
	struct rlimit rl;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
	if (rl.rlim_max < descriptors) {
		print_message("skipped: %u descriptors are needed\n", descriptors);
		skip();
	}
	rl.rlim_cur = rl.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
}

/* ---- readers ---- */

static void put_read(struct wire_put *w, const struct nfs_fh *fh, uint32_t xid)
{
	uint8_t *mark = w->at;
	size_t pad = -fh->len & 3;

	wire_put_u32(w, 0);
	wire_put_u32(w, xid);
	wire_put_u32(w, 0);
	wire_put_u32(w, 2);
	wire_put_u32(w, NFS_PROGRAM);
	wire_put_u32(w, NFS_V3);
	wire_put_u32(w, NFSPROC3_READ);
	wire_put_u32(w, 1); /* AUTH_SYS: stamp, no machine, root */
	wire_put_u32(w, 20);
	for (unsigned i = 0; i < 5; i++)
		wire_put_u32(w, 0);
	wire_put_u32(w, 0);
	wire_put_u32(w, 0);
	wire_put_u32(w, fh->len);
	wire_put_bytes(w, fh->data, fh->len);
	wire_put_bytes(w, "\0\0\0", pad);
	wire_put_u64(w, 0);
	wire_put_u32(w, MIB);
	put_be32(mark, 0x80000000u | (uint32_t)(w->at - mark - 4));
}

static void open_reader(const struct nfs_peer *p, const struct nfs_fh *fh)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(p->tcp.port),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct reader *r = &readers[nreaders];
	int rcvbuf = 64 << 10;
	uint8_t buf[CALLS * 256];
	struct wire_put w;

	wire_put_init(&w, buf, sizeof(buf));
	for (unsigned i = 0; i < CALLS; i++)
		put_read(&w, fh, nreaders << 8 | i);
	assert_true(wire_put_ok(&w));
	r->got = 0;
	r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(r->fd >= 0);
	nreaders++;
	assert_int_equal(setsockopt(r->fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof(rcvbuf)), 0);
	assert_int_equal(connect(r->fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(send(r->fd, buf, wire_put_len(&w), 0), wire_put_len(&w));
}

static void take(struct reader *r, size_t bytes)
{
	static uint8_t waste[64 << 10];

	while (bytes) {
		ssize_t n = recv(r->fd, waste, MIN(bytes, sizeof(waste)), MSG_DONTWAIT);

		if (n <= 0) {
			assert_int_equal(n, -1);
			assert_int_equal(errno, EAGAIN);
			return;
		}
		r->got += (uint64_t)n;
		bytes -= (size_t)n;
	}
}

static void take_all(size_t bytes)
{
	for (unsigned i = 0; i < nreaders; i++) {
		take(&readers[i], bytes);
		if (readers[i].got >= FIRST)
			fail_msg("reader %u was served before the victim", i);
	}
}

static uint64_t taken(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < nreaders; i++)
		sum += readers[i].got;
	return sum;
}

static void close_readers(void)
{
	while (nreaders)
		close(readers[--nreaders].fd);
}

/* ---- the victim ---- */

struct answer {
	struct rpcrdma_call call;
	bool done;
	int err;
};

static void on_answer(struct rpcrdma_call *call, int err)
{
	struct answer *a = container_of(call, struct answer, call);

	a->done = true;
	a->err = err;
}

static void run_call(struct nfs_peer *p, struct answer *a)
{
	a->done = false;
	a->call.prog = NFS_PROGRAM;
	a->call.vers = NFS_V3;
	a->call.cred = &p->cred;
	a->call.done = on_answer;
	assert_int_equal(rpcrdma_clnt_call(p->clnt, &a->call), 0);
	while (!a->done)
		if (!rpcrdma_engine_wait(p->engine, PATIENCE_MS))
			take_all(GULP);
	assert_int_equal(a->err, 0);
	take_all(SIP);
}

static void get_attributes(struct nfs_peer *p, const struct nfs_fh *fh)
{
	GETATTR3args args = { nfs_peer_fh(fh) };
	GETATTR3res res = { 0 };
	struct answer a = { .call = { .proc = NFSPROC3_GETATTR, .encode = (xdrproc_t)xdr_GETATTR3args,
				      .args = &args, .decode = (xdrproc_t)xdr_GETATTR3res,
				      .res = &res, .reply_max = 4096 } };

	run_call(p, &a);
	assert_int_equal(res.status, NFS3_OK);
}

static void read_some(struct nfs_peer *p, const struct nfs_fh *fh, void *mem, uint32_t bytes)
{
	READ3args args = { .file = nfs_peer_fh(fh), .count = bytes };
	struct iovec iov = { mem, bytes };
	READ3res res = { 0 };
	struct answer a = { .call = { .proc = NFSPROC3_READ, .encode = (xdrproc_t)xdr_READ3args,
				      .args = &args, .decode = (xdrproc_t)xdr_READ3res, .res = &res,
				      .sink = &iov, .sinkcnt = 1, .reply_max = 4096 } };

	run_call(p, &a);
	assert_int_equal(res.status, NFS3_OK);
	assert_int_equal(res.READ3res_u.resok.count, bytes);
}

/* ---- what is left of them ---- */

struct look {
	struct rpcrdma_msg msg;
	struct reactor *reactor;
	unsigned taken, all;
	sem_t done;
};

static void on_look(struct rpcrdma_msg *msg)
{
	struct look *l = container_of(msg, struct look, msg);

	reactor_trim(l->reactor);
	l->taken = l->reactor->taken;
	l->all = l->reactor->nreqs;
	sem_post(&l->done);
}

static void spare_requests_are_freed(const struct nfs_peer *p)
{
	struct look l = { .msg.fn = on_look, .reactor = p->srv->reactors[0] };
	unsigned quiet = 0;

	sem_init(&l.done, 0, 0);
	while (quiet < 3) { /* the last of them were taken before the first of these looks */
		rpcrdma_engine_post(l.reactor->loop.engine, &l.msg);
		while (sem_wait(&l.done))
			;
		quiet = l.taken ? 0 : quiet + 1;
	}
	assert_int_equal(l.all, 0);
	sem_destroy(&l.done);
}

static void beside(struct nfs_peer *p, unsigned n, unsigned reads)
{
	uint8_t *mem = malloc(MIB);
	struct nfs_fh fh;

	assert_non_null(mem);
	raise_limit(2 * n + 200);
	assert_int_equal(nfs_peer_create_file(p, &p->root, "big", &fh), NFS3_OK);
	assert_int_equal(truncate(tmp_dir_path(&p->dir, "e0/big"), MIB), 0);
	for (unsigned i = 0; i < n; i++)
		open_reader(p, &fh);
	while (taken() < 4 * MIB) /* until they are well under way */
		take_all(SIP);
	for (unsigned i = 0; i < 1000; i++)
		get_attributes(p, &fh);
	for (unsigned i = 0; i < reads; i++)
		read_some(p, &fh, mem, MIB);
	close_readers();
	spare_requests_are_freed(p);
	free(mem);
}

static void forty_readers(void **state)
{
	beside(*state, 40, 20); /* memory is left for it as well */
}

static void four_hundred_readers(void **state)
{
	beside(*state, 400, 20);
}

/* A call that needs no memory of the pool does not wait for the client's other connections either. */
static void readers_of_the_same_client(void **state)
{
	struct nfs_peer *p = *state;

	nfs_peer_disconnect(p);
	nfs_peer_connect(p, RPCRDMA_TCP, 0);
	beside(p, READERS_MAX, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(forty_readers, setup, nfs_peer_teardown),
		cmocka_unit_test_setup_teardown(four_hundred_readers, setup, nfs_peer_teardown),
		cmocka_unit_test_setup_teardown(readers_of_the_same_client, setup, nfs_peer_teardown),
	};

	return cmocka_run_group_tests_name("server_shares", tests, NULL, NULL);
}
