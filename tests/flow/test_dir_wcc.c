/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_dir_wcc.c - a client that believes what answers say of a directory from before never knows a wrong name
 *
 * The client here keeps names as Linux's does: as long as the directory's ctime is what it was, and when
 * `before` of its own change has that ctime it goes on with the ctime of `after`. Meanwhile a local thread
 * changes the same names, the directory's mode and its times. From time to time that thread pauses, the client
 * makes one more change, and what it still believes is compared with what is there.
 * DIR_WCC_ROUNDS: changes of the client (3000). DIR_WCC_SEED: of the random numbers.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "kernel_has.h"
#include "nfs_peer.h"

#define NAMES 8u   /* of both; the client has one more of its own */
#define OWN NAMES
#define CHECK_EVERY 16u

/* what the client believes of a name */
struct known_name {
	uint64_t fileid; /* 0: the name does not exist */
	uint64_t gen;	 /* true while the directory has this one */
};

struct race {
	struct nfs_peer peer;
	struct nfs_fh dir, aside;
	int dir_fd, aside_fd;
	unsigned seed;
	nfstime3 ctime;
	uint64_t gen;
	struct known_name names[NAMES + 1];
	unsigned long changes, proved, believed, stale;
	/* the local thread */
	pthread_t thread;
	unsigned local_seed;
	atomic_ulong round;
	atomic_bool pause, paused, end;
	unsigned long local_changes;
};

static char *name_of(unsigned i, char buf[8])
{
	(void)snprintf(buf, 8, "n%u", i);
	return buf;
}

/* ---- the client ---- */

static bool is_time(const nfstime3 *a, const nfstime3 *b)
{
	return a->seconds == b->seconds && a->nseconds == b->nseconds;
}

/* attributes came: if they have another ctime nothing that was known is known any more */
static void learn_dir(struct race *r, const post_op_attr *attr)
{
	const nfstime3 *t = &attr->post_op_attr_u.attributes.ctime;

	assert_true(attr->attributes_follow);
	if (is_time(t, &r->ctime))
		return;
	r->ctime = *t;
	r->gen++;
}

/* Return: what was known is still known, but for the change itself; @status: it may not have been made */
static bool learn_change(struct race *r, nfsstat3 status, const wcc_data *w)
{
	bool same = w->before.attributes_follow &&
		    is_time(&w->before.pre_op_attr_u.attributes.ctime, &r->ctime);

	assert_true(w->after.attributes_follow);
	r->changes++;
	r->proved += w->before.attributes_follow ? 1 : 0;
	if (status != NFS3_OK && !w->before.attributes_follow) {
		learn_dir(r, &w->after);
		return false;
	}
	r->ctime = w->after.post_op_attr_u.attributes.ctime;
	if (!same)
		r->gen++;
	return same;
}

static void know(struct race *r, unsigned i, uint64_t fileid)
{
	r->names[i] = (struct known_name){ .fileid = fileid, .gen = r->gen };
}

static void forget(struct race *r, unsigned i)
{
	r->names[i].gen = 0;
}

static void lookup(struct race *r, unsigned i)
{
	char name[8];
	LOOKUP3args a = { .what = { nfs_peer_fh(&r->dir), name_of(i, name) } };
	LOOKUP3res res = { 0 };

	NFS_PEER_CALL(&r->peer, LOOKUP, &a, &res, NULL, 0);
	if (res.status == NFS3_OK) {
		learn_dir(r, &res.LOOKUP3res_u.resok.dir_attributes);
		know(r, i, res.LOOKUP3res_u.resok.obj_attributes.post_op_attr_u.attributes.fileid);
	} else if (res.status == NFS3ERR_NOENT) {
		learn_dir(r, &res.LOOKUP3res_u.resfail.dir_attributes);
		know(r, i, 0);
	}
	xdr_free((xdrproc_t)xdr_LOOKUP3res, (char *)&res);
}

static void list(struct race *r)
{
	READDIR3args a = { .dir = nfs_peer_fh(&r->dir), .count = 8192 };
	READDIR3res res = { 0 };

	NFS_PEER_CALL(&r->peer, READDIR, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	assert_true(res.READDIR3res_u.resok.reply.eof);
	learn_dir(r, &res.READDIR3res_u.resok.dir_attributes);
	for (unsigned i = 0; i <= NAMES; i++)
		know(r, i, 0);
	for (const entry3 *e = res.READDIR3res_u.resok.reply.entries; e; e = e->nextentry) {
		if (*e->name == 'n' && e->name[1] - '0' <= (int)NAMES)
			know(r, (unsigned)(e->name[1] - '0'), e->fileid);
	}
	xdr_free((xdrproc_t)xdr_READDIR3res, (char *)&res);
}

static void create(struct race *r, unsigned i, createmode3 mode)
{
	char name[8];
	CREATE3args a = { .where = { nfs_peer_fh(&r->dir), name_of(i, name) }, .how.mode = mode };
	CREATE3res res = { 0 };
	const CREATE3resok *ok = &res.CREATE3res_u.resok;

	NFS_PEER_CALL(&r->peer, CREATE, &a, &res, NULL, 0);
	if (res.status == NFS3_OK) {
		(void)learn_change(r, res.status, &ok->dir_wcc);
		know(r, i, ok->obj_attributes.post_op_attr_u.attributes.fileid);
	} else {
		(void)learn_change(r, res.status, &res.CREATE3res_u.resfail.dir_wcc);
		forget(r, i);
	}
	/* Another client may have changed the name since it was made, before or after the attributes. */
	if (res.status == NFS3_OK && mode == UNCHECKED)
		forget(r, i);
	xdr_free((xdrproc_t)xdr_CREATE3res, (char *)&res);
}

static void remove_name(struct race *r, unsigned i)
{
	char name[8];
	REMOVE3args a = { .object = { nfs_peer_fh(&r->dir), name_of(i, name) } };
	REMOVE3res res = { 0 };

	NFS_PEER_CALL(&r->peer, REMOVE, &a, &res, NULL, 0);
	(void)learn_change(r, res.status, &res.REMOVE3res_u.resok.dir_wcc);
	if (res.status == NFS3_OK || res.status == NFS3ERR_NOENT)
		know(r, i, 0);
	else
		forget(r, i);
	xdr_free((xdrproc_t)xdr_REMOVE3res, (char *)&res);
}

static void rename_name(struct race *r, unsigned from, unsigned to)
{
	char a_name[8], b_name[8];
	RENAME3args a = { .from = { nfs_peer_fh(&r->dir), name_of(from, a_name) },
			  .to = { nfs_peer_fh(&r->dir), name_of(to, b_name) } };
	RENAME3res res = { 0 };
	struct known_name moved = r->names[from];
	bool was_known = moved.gen == r->gen && moved.fileid;

	NFS_PEER_CALL(&r->peer, RENAME, &a, &res, NULL, 0);
	forget(r, from);
	forget(r, to);
	if (learn_change(r, res.status, &res.RENAME3res_u.resok.todir_wcc) && res.status == NFS3_OK && was_known) {
		know(r, from, 0);
		know(r, to, moved.fileid);
	}
	xdr_free((xdrproc_t)xdr_RENAME3res, (char *)&res);
}

/* from the directory aside, where there is always one */
static void rename_in(struct race *r, unsigned to)
{
	char name[8];
	RENAME3args a = { .from = { nfs_peer_fh(&r->aside), (char[]){ "mine" } },
			  .to = { nfs_peer_fh(&r->dir), name_of(to, name) } };
	RENAME3res res = { 0 };
	struct nfs_fh fh;

	assert_int_equal(nfs_peer_create_file(&r->peer, &r->aside, "mine", &fh), NFS3_OK);
	NFS_PEER_CALL(&r->peer, RENAME, &a, &res, NULL, 0);
	forget(r, to);
	(void)learn_change(r, res.status, &res.RENAME3res_u.resok.todir_wcc);
	xdr_free((xdrproc_t)xdr_RENAME3res, (char *)&res);
}

static unsigned below(unsigned *seed, unsigned n)
{
	return (unsigned)rand_r(seed) / 7u % n;
}

static void change(struct race *r)
{
	unsigned i = below(&r->seed, NAMES);

	switch (below(&r->seed, 7)) {
	case 0:
	case 1:
		create(r, i, GUARDED);
		break;
	case 2:
		create(r, i, UNCHECKED);
		break;
	case 3:
	case 4:
		remove_name(r, i);
		break;
	case 5:
		rename_name(r, i, below(&r->seed, NAMES));
		break;
	default:
		rename_in(r, i);
		break;
	}
}

/* ---- the local thread ---- */

static void make_local(int fd, const char *name)
{
	int made = openat(fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	if (made >= 0)
		close(made);
}

static void change_locally(struct race *r)
{
	unsigned i = below(&r->local_seed, NAMES);
	char a[8], b[8];

	(void)name_of(i, a);
	(void)name_of(below(&r->local_seed, NAMES), b);
	switch (below(&r->local_seed, 9)) {
	case 0:
	case 1:
		make_local(r->dir_fd, a);
		break;
	case 2:
	case 3:
		(void)unlinkat(r->dir_fd, a, 0);
		break;
	case 4:
		(void)renameat(r->dir_fd, a, r->dir_fd, b);
		break;
	case 5: /* one event, if it comes twice in a row */
		make_local(r->aside_fd, "other");
		(void)renameat(r->aside_fd, "other", r->dir_fd, a);
		break;
	case 6:
		(void)renameat(r->dir_fd, a, r->aside_fd, "gone");
		break;
	case 7:
		(void)fchmod(r->dir_fd, below(&r->local_seed, 2) ? 0755 : 0711);
		break;
	default:
		(void)futimens(r->dir_fd, NULL);
		break;
	}
	r->local_changes++;
}

static void *run_local(void *arg)
{
	struct race *r = arg;

	while (!atomic_load(&r->end)) {
		unsigned long next = atomic_load(&r->round) + below(&r->local_seed, 4);

		while (atomic_load(&r->pause) && !atomic_load(&r->end)) {
			atomic_store(&r->paused, true);
			sched_yield();
		}
		atomic_store(&r->paused, false);
		change_locally(r);
		while (atomic_load(&r->round) < next && !atomic_load(&r->pause) &&
		       !atomic_load(&r->end))
			sched_yield();
	}
	return NULL;
}

static void pause_local(struct race *r)
{
	atomic_store(&r->pause, true);
	while (!atomic_load(&r->paused))
		sched_yield();
}

static void resume_local(struct race *r)
{
	atomic_store(&r->pause, false);
	while (atomic_load(&r->paused))
		sched_yield();
}

/* ---- the race ---- */

static void compare(struct race *r)
{
	for (unsigned i = 0; i <= NAMES; i++) {
		struct stat st = { 0 };
		char name[8];

		if (r->names[i].gen != r->gen)
			continue;
		(void)fstatat(r->dir_fd, name_of(i, name), &st, AT_SYMLINK_NOFOLLOW);
		r->believed++;
		if (st.st_ino == r->names[i].fileid)
			continue;
		r->stale++;
		print_error("round %lu: %s is %lu, and the client believes %lu\n", atomic_load(&r->round),
			    name, (unsigned long)st.st_ino, (unsigned long)r->names[i].fileid);
	}
}

static void check(struct race *r)
{
	pause_local(r);
	/* What came after the last change may have its ctime: this one must not hide that. */
	if (r->names[OWN].gen == r->gen && r->names[OWN].fileid)
		remove_name(r, OWN);
	else
		create(r, OWN, UNCHECKED);
	compare(r);
	if (below(&r->seed, 2))
		list(r);
	resume_local(r);
}

static nfsstat3 make_dir(struct nfs_peer *p, const char *name, struct nfs_fh *ret)
{
	MKDIR3args a = { .where = { nfs_peer_fh(&p->root), (char *)(uintptr_t)name } };
	MKDIR3res res = { 0 };
	nfsstat3 status;

	NFS_PEER_CALL(p, MKDIR, &a, &res, NULL, 0);
	status = res.status;
	xdr_free((xdrproc_t)xdr_MKDIR3res, (char *)&res);
	return status != NFS3_OK ? status : nfs_peer_lookup(p, &p->root, name, ret);
}

static int enter(void **state, const char *options)
{
	const char *all[] = { options, NULL };
	const char *seed = getenv("DIR_WCC_SEED");
	struct race *r = calloc(1, sizeof(*r));

	r->seed = seed ? (unsigned)strtoul(seed, NULL, 0) : (unsigned)getpid();
	r->local_seed = r->seed + 1;
	r->gen = 1;
	nfs_peer_create(&r->peer, RPCRDMA_TCP, all);
	assert_int_equal(make_dir(&r->peer, "d", &r->dir), NFS3_OK);
	assert_int_equal(make_dir(&r->peer, "aside", &r->aside), NFS3_OK);
	r->dir_fd = open(tmp_dir_path(&r->peer.dir, "e0/d"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r->aside_fd = open(tmp_dir_path(&r->peer.dir, "e0/aside"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(r->dir_fd >= 0 && r->aside_fd >= 0);
	*state = r;
	return 0;
}

static int setup(void **state)
{
	return enter(state, "rw,no_root_squash,async");
}

static int setup_durable(void **state)
{
	return enter(state, "rw,no_root_squash");
}

static int teardown(void **state)
{
	struct race *r = *state;

	close(r->dir_fd);
	close(r->aside_fd);
	nfs_peer_destroy(&r->peer);
	free(r);
	return 0;
}

static void races(void **state)
{
	const char *env = getenv("DIR_WCC_ROUNDS");
	unsigned long rounds = env ? strtoul(env, NULL, 0) : 3000;
	struct race *r = *state;

	print_message("seed %u\n", r->seed);
	assert_int_equal(pthread_create(&r->thread, NULL, run_local, r), 0);
	for (unsigned long i = 1; i <= rounds; i++) {
		lookup(r, below(&r->seed, NAMES));
		change(r);
		atomic_store(&r->round, i);
		if (i % CHECK_EVERY == 0)
			check(r);
	}
	atomic_store(&r->end, true);
	assert_int_equal(pthread_join(r->thread, NULL), 0);
	print_message("%lu changes and %lu local ones: %lu with `before`, %lu names believed, %lu of them wrong\n",
		      r->changes, r->local_changes, r->proved, r->believed, r->stale);
	assert_int_equal(r->stale, 0);
	if (kernel_has_watches(r->peer.dir.path)) {
		assert_true(r->proved > rounds / 100);
		assert_true(r->believed > 0);
	}
}

/* ---- answers about names ---- */

void __real_creds_resume(void);
void __wrap_creds_resume(void);

static int late_dir;
static atomic_int late_in; /* calls until the change */

/* The server has looked, and its answer has no attributes yet. */
void __wrap_creds_resume(void)
{
	__real_creds_resume();
	if (atomic_load(&late_in) > 0 && atomic_fetch_sub(&late_in, 1) == 1)
		make_local(late_dir, "n0");
}

static void until_next_tick(void)
{
	struct timespec from, now;

	clock_gettime(CLOCK_REALTIME_COARSE, &from);
	do {
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	} while (now.tv_sec == from.tv_sec && now.tv_nsec == from.tv_nsec);
}

/* A name that comes when LOOKUP or READDIR has looked: the ctime that they give is not yet the one of it. */
static void comes_late(void **state)
{
	struct race *r = *state;

	for (int i = 0; i < 2; i++) {
		GETATTR3args a = { .object = nfs_peer_fh(&r->dir) };
		GETATTR3res res = { 0 };

		(void)unlinkat(r->dir_fd, "n0", 0);
		until_next_tick();
		late_dir = r->dir_fd;
		atomic_store(&late_in, i ? 2 : 1); /* READDIR asks first whether it may */
		if (i)
			list(r);
		else
			lookup(r, 0);
		assert_int_equal(atomic_load(&late_in), 0);
		assert_true(r->names[0].gen == r->gen && !r->names[0].fileid);
		NFS_PEER_CALL(&r->peer, GETATTR, &a, &res, NULL, 0);
		assert_int_equal(res.status, NFS3_OK);
		assert_false(is_time(&res.GETATTR3res_u.resok.obj_attributes.ctime, &r->ctime));
	}
}

/* until the first is proved */
static void make_known(struct race *r)
{
	if (!kernel_has_watches(r->peer.dir.path))
		skip();
	do {
		assert_true(r->changes < 10000);
		remove_name(r, OWN);
		create(r, OWN, UNCHECKED);
	} while (!r->proved);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);

static atomic_bool fsync_fails;

int __wrap_fsync(int fd)
{
	if (!atomic_load(&fsync_fails))
		return __real_fsync(fd);
	errno = EIO;
	return -1;
}

/* A change that failed on its way to the disk, and was made: the client must look what became of it. */
static void not_on_disk(void **state)
{
	struct race *r = *state;
	unsigned long proved;

	make_known(r);
	proved = r->proved;
	atomic_store(&fsync_fails, true);
	remove_name(r, OWN);
	atomic_store(&fsync_fails, false);
	assert_true(r->proved == proved);
	assert_false(r->names[OWN].gen == r->gen && r->names[OWN].fileid);
	assert_true(faccessat(r->dir_fd, "n8", F_OK, 0) && errno == ENOENT);
}

/* There is no other client: what is known stays known, whatever this client does. */
static void alone(void **state)
{
	struct race *r = *state;
	uint64_t gen;

	make_known(r);
	list(r);
	gen = r->gen;
	for (unsigned i = 0; i < 200; i++)
		change(r);
	assert_true(r->gen == gen);
	compare(r);
	assert_true(r->believed > 0);
	assert_int_equal(r->stale, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(comes_late, setup, teardown),
		cmocka_unit_test_setup_teardown(not_on_disk, setup_durable, teardown),
		cmocka_unit_test_setup_teardown(alone, setup, teardown),
		cmocka_unit_test_setup_teardown(races, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
