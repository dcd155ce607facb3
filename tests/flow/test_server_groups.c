/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_groups.c - leatd --manage-gids: users have the groups that the server knows them to have
 *
 * Everything runs over TCP and over the local fabric, where root speaks for users as well. The user
 * database is the two functions of libc that leatd asks, wrapped.
 */
#include <grp.h>
#include <pwd.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf.h"
#include "nfs_peer.h"
#include "server_int.h"

#define KNOWN 4000u   /* in the groups 4100 to 4199 */
#define UNKNOWN 4001u
#define SLOW 4002u    /* as KNOWN, but the database takes its time */
#define WHEEL 4003u   /* in group 0 */
#define IN_MANY 4004u /* in more groups than there is room for */
#define FIRST 4100u
#define CLAIMED 5555u /* a group that has no member on the server */

static atomic_uint asked;
static sem_t slow;

int __wrap_getpwuid_r(uid_t uid, struct passwd *pw, char *buf, size_t bytes, struct passwd **ret);
int __wrap_getgrouplist(const char *name, gid_t gid, gid_t *groups, int *n);

int __wrap_getpwuid_r(uid_t uid, struct passwd *pw, char *buf, size_t bytes, struct passwd **ret)
{
	*ret = NULL;
	if (uid < KNOWN || uid > IN_MANY || uid == UNKNOWN)
		return 0;
	if (snprintf(buf, bytes, "u%u", uid) >= (int)bytes)
		return -1;
	*pw = (struct passwd){ .pw_name = buf, .pw_uid = uid, .pw_gid = uid };
	*ret = pw;
	return 0;
}

int __wrap_getgrouplist(const char *name, gid_t gid, gid_t *groups, int *n)
{
	unsigned want = gid == IN_MANY ? 5000 : gid == WHEEL ? 2 : 101;
	int room = *n;

	atomic_fetch_add(&asked, 1);
	if (gid == SLOW) {
		while (sem_wait(&slow))
			;
	}
	if (name[0] != 'u') /* a worker's thread: nothing of cmocka's here */
		abort();
	*n = (int)want;
	for (unsigned i = 0; i < want && (int)i < room; i++)
		groups[i] = !i ? gid : gid == WHEEL ? 0 : FIRST + i - 1;
	return room < (int)want ? -1 : (int)want;
}

static void tune(struct conf *conf)
{
	conf->manage_gids = true;
	conf->reactors = 1; /* a call that blocks the reactor would delay the others */
}

static int setup(void **state, enum rpcrdma_transport t)
{
	static const char *const options[] = { "rw,no_root_squash", "rw,root_squash",
					       "rw,all_squash,anonuid=4000,anongid=4100", NULL };
	struct nfs_peer *p = malloc(sizeof(*p));

	atomic_store(&asked, 0);
	sem_init(&slow, 0, 0);
	nfs_peer_create_tuned(p, t, options, tune);
	*state = p;
	return 0;
}

static int setup_tcp(void **state)
{
	return setup(state, RPCRDMA_TCP);
}

static int setup_local(void **state)
{
	return setup(state, RPCRDMA_LOCAL);
}

static int teardown(void **state)
{
	nfs_peer_destroy(*state);
	free(*state);
	sem_destroy(&slow);
	return 0;
}

static void i_am(struct nfs_peer *p, uint32_t uid, uint32_t gid, uint32_t ngids, uint32_t other)
{
	p->cred.uid = uid;
	p->cred.gid = gid;
	p->cred.ngids = ngids;
	for (uint32_t i = 0; i < ngids; i++)
		p->cred.gids[i] = other;
}

/* a file that only its group may read; Return: its handle, as root finds it */
static struct nfs_fh file_of(struct nfs_peer *p, const char *path, gid_t gid)
{
	const char *name = strchr(path, '/') + 1;
	char export[8];
	struct nfs_fh root, fh;

	tmp_dir_write(&p->dir, path, "x");
	assert_int_equal(chown(tmp_dir_path(&p->dir, path), 0, gid), 0);
	assert_int_equal(chmod(tmp_dir_path(&p->dir, path), 0640), 0);
	i_am(p, 0, 0, 0, 0);
	snprintf(export, sizeof(export), "/%.2s", path);
	assert_int_equal(nfs_peer_mount(p, export, &root), MNT3_OK);
	assert_int_equal(nfs_peer_lookup(p, &root, name, &fh), NFS3_OK);
	return fh;
}

static nfsstat3 read_one(struct nfs_peer *p, const struct nfs_fh *fh)
{
	uint8_t byte;
	uint32_t got;
	bool eof;

	return nfs_peer_read(p, fh, 0, &byte, 1, &got, &eof);
}

static void more_than_sixteen(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh first = file_of(p, "e0/first", FIRST);
	struct nfs_fh last = file_of(p, "e0/last", FIRST + 99);
	struct nfs_fh beyond = file_of(p, "e0/beyond", FIRST + 100);
	unsigned before = atomic_load(&asked);

	i_am(p, KNOWN, KNOWN, 0, 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(read_one(p, &first), NFS3_OK);
		assert_int_equal(read_one(p, &last), NFS3_OK);
		assert_int_equal(read_one(p, &beyond), NFS3ERR_ACCES);
	}
	assert_int_equal(atomic_load(&asked), before + 2); /* a list that was too short, and one that was not */
	/* and MNT, which has no export before it resolves its path */
	tmp_dir_mkdir(&p->dir, "e0/d");
	tmp_dir_mkdir(&p->dir, "e0/d/e");
	assert_int_equal(chown(tmp_dir_path(&p->dir, "e0/d"), 0, FIRST + 50), 0);
	assert_int_equal(chmod(tmp_dir_path(&p->dir, "e0/d"), 0710), 0);
	assert_int_equal(nfs_peer_mount(p, "/e0/d/e", &last), MNT3_OK);
	i_am(p, UNKNOWN, UNKNOWN, 1, FIRST + 50);
	assert_int_equal(nfs_peer_mount(p, "/e0/d/e", &last), MNT3ERR_ACCES);
}

static void what_he_says(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh fh = file_of(p, "e0/f", CLAIMED);
	static const uint32_t users[] = { KNOWN, UNKNOWN, IN_MANY };

	for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
		i_am(p, users[i], users[i], 16, CLAIMED);
		assert_int_equal(read_one(p, &fh), NFS3ERR_ACCES);
		i_am(p, users[i], CLAIMED, 0, 0); /* as newgrp(1) would */
		assert_int_equal(read_one(p, &fh), NFS3_OK);
	}
}

/* the export's rules are about the groups that were found, too */
static void squashed(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh open = file_of(p, "e0/f", 0), closed;

	i_am(p, WHEEL, WHEEL, 0, 0);
	assert_int_equal(read_one(p, &open), NFS3_OK);
	assert_int_equal(chmod(tmp_dir_path(&p->dir, "e1"), 0755), 0);
	closed = file_of(p, "e1/f", 0);
	i_am(p, WHEEL, WHEEL, 0, 0);
	assert_int_equal(read_one(p, &closed), NFS3ERR_ACCES);
	assert_int_equal(chown(tmp_dir_path(&p->dir, "e1/f"), 0, EXPORT_ANON_ID), 0);
	assert_int_equal(read_one(p, &closed), NFS3_OK);
}

struct call {
	struct rpcrdma_call call;
	GETATTR3args args;
	GETATTR3res res;
	bool done;
	bool lost; /* its connection is closed before it is answered */
};

static void on_done(struct rpcrdma_call *call, int err)
{
	struct call *c = container_of(call, struct call, call);

	assert_int_equal(!!err, c->lost);
	c->done = true;
}

static void send_call(struct nfs_peer *p, const struct nfs_fh *fh, const struct rpcrdma_cred *cred,
		      struct call *c)
{
	c->args.object = nfs_peer_fh(fh);
	c->call = (struct rpcrdma_call){
		.prog = NFS_PROGRAM,
		.vers = NFS_V3,
		.proc = NFSPROC3_GETATTR,
		.cred = cred,
		.encode = (xdrproc_t)xdr_GETATTR3args,
		.args = &c->args,
		.decode = (xdrproc_t)xdr_GETATTR3res,
		.res = &c->res,
		.reply_max = 200,
		.done = on_done,
	};
	assert_int_equal(rpcrdma_clnt_call(p->clnt, &c->call), 0);
}

/* A slow database delays only the user that is looked up. */
static void slow_database(void **state)
{
	struct nfs_peer *p = *state;
	struct rpcrdma_cred cred = { .uid = SLOW, .gid = SLOW };
	struct nfs_fh all, fh = file_of(p, "e0/f", FIRST);
	struct call v[3] = { 0 };

	if (getenv("LEAT_TEST_CREDITS")) {
		print_message("SKIP: there must be credits for four calls at once\n");
		skip();
	}
	assert_int_equal(nfs_peer_mount(p, "/e2", &all), MNT3_OK);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		send_call(p, &fh, &cred, &v[i]);
	i_am(p, KNOWN, KNOWN, 0, 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(read_one(p, &fh), NFS3_OK);
	i_am(p, SLOW, SLOW, 0, 0); /* the caller's identity makes no difference there */
	p->cred = cred;
	assert_int_equal(nfs_peer_lookup(p, &all, ".", NULL), NFS3_OK);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		assert_false(v[i].done);
	sem_post(&slow);
	sem_post(&slow); /* for the list that was too short */
	while (!v[0].done || !v[1].done || !v[2].done)
		(void)rpcrdma_engine_wait(p->engine, -1);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		assert_int_equal(v[i].res.status, NFS3_OK);
	assert_int_equal(read_one(p, &fh), NFS3_OK);
}

/* Jobs of all clients that wait for a worker or have one, and how many clients there are. A look without the lock of
 * the pool, which is private to it: the caller polls until the numbers are right. */
__attribute__((no_sanitize("thread"))) static unsigned count_jobs(struct nfs_peer *p, unsigned *ret_clients)
{
	struct clients *all = &p->srv->clients;
	unsigned jobs = 0, n = 0;

	pthread_mutex_lock(&all->lock);
	list_for_each(l, &all->list) {
		jobs += list_entry(l, struct client, link)->workers.jobs;
		n++;
	}
	pthread_mutex_unlock(&all->lock);
	*ret_clients = n;
	return jobs;
}

/* A lookup counts as work for the client that caused it, which exists until it has ended. */
static void lost_while_asked(void **state)
{
	struct nfs_peer *p = *state;
	struct rpcrdma_cred cred = { .uid = SLOW, .gid = SLOW };
	struct nfs_fh fh = file_of(p, "e0/f", FIRST);
	unsigned before = atomic_load(&asked), clients;
	struct call c = { .lost = true };

	send_call(p, &fh, &cred, &c);
	while (atomic_load(&asked) == before)
		(void)rpcrdma_engine_wait(p->engine, 1);
	assert_int_equal(count_jobs(p, &clients), 1);
	assert_int_equal(clients, 1);
	nfs_peer_disconnect(p);
	while (atomic_load(&p->srv->reactors[0]->nconns))
		(void)rpcrdma_engine_wait(p->engine, 1);
	assert_true(c.done);
	assert_int_equal(count_jobs(p, &clients), 1);
	sem_post(&slow);
	sem_post(&slow); /* for the list that was too short */
	while (clients) {
		usleep(1000);
		(void)count_jobs(p, &clients);
	}
	nfs_peer_connect(p, RPCRDMA_TCP, 0);
	p->cred = cred;
	assert_int_equal(read_one(p, &fh), NFS3_OK);
}

#define BOTH(f)                                                                                    \
	{ #f " (tcp)", f, setup_tcp, teardown, NULL },                                             \
	{                                                                                          \
#f " (local)", f, setup_local, teardown, NULL                                      \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(more_than_sixteen),
		BOTH(what_he_says),
		BOTH(squashed),
		BOTH(slow_database),
		BOTH(lost_while_asked),
	};

	if (geteuid() != 0) {
		printf("SKIP: calls run as their callers only under root\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
