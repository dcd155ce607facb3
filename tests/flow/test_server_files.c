/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_files.c - descriptors have a bound, and each client a share of those that wait for a disk
 *
 * The process may have few descriptors, so that few files do. A disk that hangs is played by --wrap of fsync() and
 * close().
 */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs3_io.h"
#include "nfs_peer.h"
#include "inside.h"

#define DESCRIPTORS 600
#define FILES 200u

static const char *const options[] = { "rw,no_root_squash", "rw,no_root_squash",
				       "rw,no_root_squash,async", NULL };

static atomic_bool syncs_hang, closes_hang; /* the closes of removed files, that is */
static sem_t go_on;

static void wait_for(const atomic_bool *hangs)
{
	while (*hangs && sem_wait(&go_on))
		;
}

/* A close that is not the last one of its file waits for nothing: a worker's, of what a batch has still open. */
static _Thread_local bool in_call;
struct req;
void __real_nfs3_getattr(struct req *r);
void __wrap_nfs3_getattr(struct req *r);

void __wrap_nfs3_getattr(struct req *r)
{
	in_call = true;
	__real_nfs3_getattr(r);
	in_call = false;
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_close(int fd);
int __wrap_close(int fd);

int __wrap_fsync(int fd)
{
	wait_for(&syncs_hang);
	return __real_fsync(fd);
}

static atomic_uint data_syncs;
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

int __wrap_fdatasync(int fd)
{
	atomic_fetch_add(&data_syncs, 1);
	return __real_fdatasync(fd);
}

int __wrap_close(int fd)
{
	struct stat st;

	if (closes_hang && !in_call && !fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_nlink)
		wait_for(&closes_hang);
	return __real_close(fd);
}

/* Does the last READ wait until others are closed? */
static atomic_bool waits;
enum prog_begin __real_nfs3_io_read_begin(struct req *r);
enum prog_begin __wrap_nfs3_io_read_begin(struct req *r);

enum prog_begin __wrap_nfs3_io_read_begin(struct req *r)
{
	enum prog_begin next = __real_nfs3_io_read_begin(r);

	waits = next == PROG_WAIT;
	return next;
}

static void let_go(atomic_bool *hangs)
{
	*hangs = false;
	for (unsigned i = 0; i < 10 * FILES; i++)
		sem_post(&go_on);
}

static void begin(struct nfs_peer *p)
{
	(void)alarm(20); /* a test that failed leaves things that others would wait for */
	sem_init(&go_on, 0, 0);
	nfs_peer_create(p, RPCRDMA_TCP, options);
}

static void end(struct nfs_peer *p)
{
	nfs_peer_destroy(p);
	sem_destroy(&go_on);
	(void)alarm(0);
}

static void find(struct nfs_peer *p, unsigned export, unsigned i, struct nfs_fh *ret)
{
	char mount[8], name[16], path[32];
	struct nfs_fh dir;

	(void)snprintf(name, sizeof(name), "file%u", i);
	(void)snprintf(path, sizeof(path), "e%u/%s", export, name);
	(void)snprintf(mount, sizeof(mount), "/e%u", export);
	tmp_dir_write(&p->dir, path, "some text");
	assert_int_equal(nfs_peer_mount(p, mount, &dir), MNT3_OK);
	assert_int_equal(nfs_peer_lookup(p, &dir, name, ret), NFS3_OK);
}

static stable_how write_to(struct nfs_peer *p, const struct nfs_fh *fh)
{
	WRITE3resok ok;

	assert_int_equal(nfs_peer_write(p, fh, 0, "x", 1, UNSTABLE, &ok), NFS3_OK);
	return ok.committed;
}

static void commit(struct nfs_peer *p, const struct nfs_fh *fh)
{
	COMMIT3args a = { .file = nfs_peer_fh(fh) };
	COMMIT3res res = { 0 };

	NFS_PEER_CALL(p, COMMIT, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
}

static void another_client(struct nfs_peer *p, enum rpcrdma_transport transport)
{
	nfs_peer_disconnect(p);
	nfs_peer_connect(p, transport, 0);
}

/* Each file that was written to keeps its descriptor until it is synced. A client that has its share of those has what
 * it writes synced at once; another client has a share, too. */
static void dirty_files(void **state)
{
	enum { WRITTEN = 30 }; /* with more the cache would want to have some synced, and wait for it */
	static struct nfs_fh f[WRITTEN];
	unsigned unstable = 0, others = 0, open_then, again = 0;
	struct nfs_peer p;
	size_t most;

	(void)state;
	begin(&p);
	most = server_files_max(p.srv);
	assert_in_range(most, WRITTEN, 2 * WRITTEN);
	for (unsigned i = 0; i < WRITTEN; i++)
		find(&p, 0, i, &f[i]);
	syncs_hang = true;
	for (unsigned i = 0; i < WRITTEN; i++)
		unstable += write_to(&p, &f[i]) == UNSTABLE;
	open_then = tmp_dir_open_below(p.dir.path);
	for (unsigned i = 0; i < unstable; i++) /* of its files it may write more */
		again += write_to(&p, &f[i]) == UNSTABLE;
	another_client(&p, RPCRDMA_LOCAL);
	for (unsigned i = unstable; i < WRITTEN; i++)
		others += write_to(&p, &f[i]) == UNSTABLE;
	let_go(&syncs_hang);
	assert_in_range(unstable, 1, most / 3);
	assert_int_equal(again, unstable);
	assert_in_range(open_then, unstable, most * server_reactors(p.srv));
	assert_in_range(others, 1, unstable);
	for (unsigned i = 0; i < WRITTEN; i++)
		commit(&p, &f[i]);
	for (unsigned i = 0; i < WRITTEN; i++) { /* what is clean counts no longer */
		assert_int_equal(write_to(&p, &f[i]), UNSTABLE);
		commit(&p, &f[i]);
	}
	end(&p);
}

/* An async export does not forget a file because there are many. */
static void dirty_files_async(void **state)
{
	enum { WRITTEN = 16 }; /* so few descriptors can wait for a worker to close them */
	unsigned unstable = 0;
	struct nfs_peer p;
	struct nfs_fh f;

	(void)state;
	begin(&p);
	data_syncs = 0;
	syncs_hang = true; /* those of the cache */
	for (unsigned i = 0; i < WRITTEN; i++) {
		find(&p, 2, i, &f);
		unstable += write_to(&p, &f) == UNSTABLE;
	}
	let_go(&syncs_hang);
	assert_in_range(unstable, 1, WRITTEN - 1);
	assert_in_range(data_syncs, WRITTEN - unstable, WRITTEN); /* and once in a while the map of handles */
	end(&p);
}

/* Data that is not committed is synced when there is much of it, and does not use up the writer's share. */
static void shares_come_back(void **state)
{
	enum { WRITTEN = 30 };
	struct nfs_peer p;
	struct nfs_fh f;

	(void)state;
	begin(&p);
	for (unsigned i = 0; i < WRITTEN; i++) {
		find(&p, 2, i, &f);
		(void)write_to(&p, &f);
		commit(&p, &f); /* means nothing in an async export */
	}
	find(&p, 0, 0, &f);
	while (write_to(&p, &f) != UNSTABLE)
		;
	commit(&p, &f);
	end(&p);
}

static nfsstat3 read_from(struct nfs_peer *p, const struct nfs_fh *fh)
{
	uint8_t text[16];
	uint32_t n;
	bool eof;

	return nfs_peer_read(p, fh, 0, text, sizeof(text), &n, &eof);
}

static void use(struct nfs_peer *p, const struct nfs_fh *fh)
{
	GETATTR3args a = { .object = nfs_peer_fh(fh) };
	GETATTR3res res = { 0 };

	NFS_PEER_CALL(p, GETATTR, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	assert_true(nfs_peer_access(p, fh) & ACCESS3_READ);
}

/* a READ that need not end */
static struct reading {
	struct rpcrdma_call call;
	struct nfs_fh fh;
	READ3args args;
	READ3res res;
	struct iovec sink;
	uint8_t text[16];
	bool done;
	int err;
} reading;

static void on_read(struct rpcrdma_call *call, int err)
{
	(void)call;
	reading.done = true;
	reading.err = err;
}

static void start_read(struct nfs_peer *p, const struct nfs_fh *fh)
{
	reading = (struct reading){ .fh = *fh };
	reading.args.file = nfs_peer_fh(&reading.fh);
	reading.args.count = sizeof(reading.text);
	reading.sink = (struct iovec){ reading.text, sizeof(reading.text) };
	reading.call = (struct rpcrdma_call){
		.prog = NFS_PROGRAM, .vers = NFS_V3, .proc = NFSPROC3_READ, .cred = &p->cred,
		.encode = (xdrproc_t)xdr_READ3args, .args = &reading.args,
		.decode = (xdrproc_t)xdr_READ3res, .res = &reading.res,
		.sink = &reading.sink, .sinkcnt = 1, .reply_max = 4096, .deadline_ms = 40000, .done = on_read,
	};
	assert_int_equal(rpcrdma_clnt_call(p->clnt, &reading.call), 0);
}

/* ext4 has no memory, it says, while another process makes a file with the same number. */
static void until_stale(struct nfs_peer *p, const struct nfs_fh *fh)
{
	nfsstat3 status;

	do
		status = read_from(p, fh);
	while (status == NFS3ERR_JUKEBOX);
	assert_int_equal(status, NFS3ERR_STALE);
}

/* Reads from one file after the other of /e0, and removes each, until a READ waits. Meanwhile @other is served.
 * Return: how many files that took */
static unsigned open_until_one_waits(struct nfs_peer *p, const struct nfs_fh *other)
{
	unsigned opened = 0;

	for (reading.done = true; reading.done && opened < FILES; opened++) {
		struct nfs_fh fh;
		char path[32];

		find(p, 0, opened, &fh);
		start_read(p, &fh);
		for (unsigned i = 0; i < 200 && !reading.done; i += waits)
			use(p, other);
		if (!reading.done)
			continue;
		assert_int_equal(reading.res.status, NFS3_OK);
		(void)snprintf(path, sizeof(path), "e0/file%u", opened);
		assert_int_equal(unlink(tmp_dir_path(&p->dir, path)), 0);
		until_stale(p, &fh);
	}
	return opened;
}

/* Files that were removed cannot be closed. Of their file system no more than a bound are opened then: the next READ
 * waits until some were closed. */
static void files_that_stay_open(void **state)
{
	unsigned opened, open_then;
	struct nfs_fh other;
	struct nfs_peer p;
	size_t most;

	(void)state;
	begin(&p);
	most = server_files_max(p.srv);
	find(&p, 1, 0, &other);
	closes_hang = true;
	opened = open_until_one_waits(&p, &other);
	open_then = tmp_dir_open_below(p.dir.path);
	let_go(&closes_hang);
	while (!reading.done)
		(void)rpcrdma_engine_wait(p.engine, -1);
	assert_int_equal(reading.err, 0);
	assert_int_equal(reading.res.status, NFS3_OK);
	assert_in_range(opened, most / 4, 2 * most);
	assert_in_range(open_then, most / 4, 2 * most);
	end(&p);
}

/* A READ that waits to open a file ends with its connection, and others go on. */
static void waiting_and_lost(void **state)
{
	struct nfs_fh other;
	struct nfs_peer p;
	bool read_waits;

	(void)state;
	begin(&p);
	find(&p, 1, 0, &other);
	closes_hang = true;
	(void)open_until_one_waits(&p, &other);
	read_waits = !reading.done;
	nfs_peer_disconnect(&p);
	nfs_peer_connect(&p, RPCRDMA_TCP, 0);
	use(&p, &other);
	let_go(&closes_hang);
	assert_true(read_waits);
	end(&p);
}

/* the same of what GETATTR and ACCESS have found */
static void files_looked_at(void **state)
{
	struct nfs_peer p;
	unsigned open_then;
	struct nfs_fh fh;
	size_t most;

	(void)state;
	begin(&p);
	most = server_files_max(p.srv);
	closes_hang = true;
	for (unsigned i = 0; i < FILES; i++) {
		GETATTR3args a = { .object = nfs_peer_fh(&fh) };
		GETATTR3res res = { 0 };
		char path[32];

		find(&p, 0, i, &fh);
		use(&p, &fh);
		(void)snprintf(path, sizeof(path), "e0/file%u", i);
		assert_int_equal(unlink(tmp_dir_path(&p.dir, path)), 0);
		a.object = nfs_peer_fh(&fh);
		do /* as in until_stale() */
			NFS_PEER_CALL(&p, GETATTR, &a, &res, NULL, 0);
		while (res.status == NFS3ERR_JUKEBOX);
		assert_int_equal(res.status, NFS3ERR_STALE);
	}
	open_then = tmp_dir_open_below(p.dir.path);
	let_go(&closes_hang);
	assert_in_range(open_then, most / 4, 2 * most);
	end(&p);
}

int main(void)
{
	const struct rlimit few = { DESCRIPTORS, DESCRIPTORS };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dirty_files),
		cmocka_unit_test(dirty_files_async),
		cmocka_unit_test(shares_come_back),
		cmocka_unit_test(files_that_stay_open),
		cmocka_unit_test(waiting_and_lost),
		cmocka_unit_test(files_looked_at),
	};

	if (setrlimit(RLIMIT_NOFILE, &few))
		return 1;
	return cmocka_run_group_tests_name("server_files", tests, NULL, NULL);
}
