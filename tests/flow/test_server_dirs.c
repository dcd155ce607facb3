/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_dirs.c - directories that change while they are listed, and directories that are large
 *
 * A name that is there from the first call of a listing to its last is listed once, whatever comes and
 * goes around it, on the file system of $TMPDIR and on tmpfs. And a listing costs a number of steps that
 * grows as its entries do, however small the replies are: counted, not timed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs_peer.h"

#define KEPT 1500u
#define MANY 20000u
#define SHM "/dev/shm"

static const char *const options[] = { "rw,no_root_squash", NULL };

static atomic_ulong looks, bytes_seen, assumed;

ssize_t __real_getdents64(int fd, void *buf, size_t bytes);
ssize_t __wrap_getdents64(int fd, void *buf, size_t bytes);
int __real_creds_assume(const struct creds *c);
int __wrap_creds_assume(const struct creds *c);

ssize_t __wrap_getdents64(int fd, void *buf, size_t bytes)
{
	ssize_t n = __real_getdents64(fd, buf, bytes);

	atomic_fetch_add(&looks, 1);
	if (n > 0)
		atomic_fetch_add(&bytes_seen, (unsigned long)n);
	return n;
}

int __wrap_creds_assume(const struct creds *c)
{
	atomic_fetch_add(&assumed, 1);
	return __real_creds_assume(c);
}

/* ---- names ---- */

static int dir_fd = -1;

/* all names of one file: what is new is names, and ext4 is slow to use an inode again */
static void make(const char *kind, unsigned i)
{
	char name[64];

	snprintf(name, sizeof(name), "%s-%06u", kind, i);
	assert_int_equal(linkat(dir_fd, "../one", dir_fd, name, 0), 0);
}

static void take_away(const char *kind, unsigned i)
{
	char name[64];

	snprintf(name, sizeof(name), "%s-%06u", kind, i);
	assert_int_equal(unlinkat(dir_fd, name, 0), 0);
}

static void open_new_dir(struct nfs_peer *p, const char *name, struct nfs_fh *ret)
{
	char path[64];

	tmp_dir_write(&p->dir, "e0/one", "1");
	snprintf(path, sizeof(path), "e0/%s", name);
	tmp_dir_mkdir(&p->dir, path);
	dir_fd = open(tmp_dir_path(&p->dir, path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir_fd >= 0);
	assert_int_equal(nfs_peer_lookup(p, &p->root, name, ret), NFS3_OK);
}

/* ---- one call of a listing ---- */

struct walk {
	struct nfs_peer *p;
	struct nfs_fh dir;
	bool plus;
	uint32_t count; /* of bytes in a reply */
	uint64_t cookie;
	cookieverf3 verf;
	bool eof;
	unsigned calls, entries;
	unsigned seen[KEPT];
};

static void take(struct walk *w, const char *name, uint64_t cookie)
{
	unsigned i;

	w->entries++;
	w->cookie = cookie;
	if (sscanf(name, "kept-%u", &i) == 1) {
		assert_true(i < KEPT);
		w->seen[i]++;
	}
}

static void same_verifier(struct walk *w, const cookieverf3 verf)
{
	if (w->calls)
		assert_memory_equal(w->verf, verf, sizeof(w->verf));
	memcpy(w->verf, verf, sizeof(w->verf));
	w->calls++;
}

static void step_plus(struct walk *w)
{
	READDIRPLUS3args a = { .dir = nfs_peer_fh(&w->dir),
			       .cookie = w->cookie,
			       .dircount = w->count,
			       .maxcount = w->count };
	READDIRPLUS3res res = { 0 };
	READDIRPLUS3resok *ok = &res.READDIRPLUS3res_u.resok;

	memcpy(a.cookieverf, w->verf, sizeof(w->verf));
	NFS_PEER_CALL(w->p, READDIRPLUS, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	same_verifier(w, ok->cookieverf);
	for (entryplus3 *e = ok->reply.entries; e; e = e->nextentry)
		take(w, e->name, e->cookie);
	w->eof = ok->reply.eof;
	xdr_free((xdrproc_t)xdr_READDIRPLUS3res, (char *)&res);
}

static void step_plain(struct walk *w)
{
	READDIR3args a = { .dir = nfs_peer_fh(&w->dir), .cookie = w->cookie, .count = w->count };
	READDIR3res res = { 0 };
	READDIR3resok *ok = &res.READDIR3res_u.resok;

	memcpy(a.cookieverf, w->verf, sizeof(w->verf));
	NFS_PEER_CALL(w->p, READDIR, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	same_verifier(w, ok->cookieverf);
	for (entry3 *e = ok->reply.entries; e; e = e->nextentry)
		take(w, e->name, e->cookie);
	w->eof = ok->reply.eof;
	xdr_free((xdrproc_t)xdr_READDIR3res, (char *)&res);
}

static void step(struct walk *w)
{
	if (w->plus)
		step_plus(w);
	else
		step_plain(w);
}

/* ---- what changes meanwhile ---- */

/* The directory grows by more than it was, so that its blocks are split and moved about, and shrinks. */
static void turn_over(void)
{
	for (unsigned i = 0; i < KEPT; i++) {
		make("new", i);
		make("another-new-one", i);
		take_away("old", i);
	}
	for (unsigned i = 0; i < KEPT; i++)
		take_away("new", i);
}

static void list_while_it_changes(struct nfs_peer *p, const char *name, bool plus, uint32_t count)
{
	struct walk w = { .p = p, .plus = plus, .count = count };

	open_new_dir(p, name, &w.dir);
	for (unsigned i = 0; i < KEPT; i++) {
		make("kept", i);
		make("old", i);
	}
	while (!w.eof && w.entries < KEPT)
		step(&w);
	assert_false(w.eof);
	turn_over();
	/* and around the very place, before each further call */
	for (unsigned i = 0; !w.eof; i++) {
		step(&w);
		make("late", i);
		if (i % 2)
			take_away("late", i - 1);
		assert_true(w.calls < 3 * KEPT);
	}
	for (unsigned i = 0; i < KEPT; i++) {
		if (w.seen[i] != 1)
			fail_msg("kept-%u was listed %u times", i, w.seen[i]);
	}
	close(dir_fd);
}

static void changes(void **state)
{
	list_while_it_changes(*state, "a", false, 1024);
	list_while_it_changes(*state, "b", false, 8192);
	list_while_it_changes(*state, "c", true, 2048);
	list_while_it_changes(*state, "d", true, 32768);
}

/* ---- what it costs ---- */

static void count_listing(struct nfs_peer *p, const struct nfs_fh *dir, bool plus, uint32_t count,
			  unsigned long all_bytes)
{
	struct walk w = { .p = p, .dir = *dir, .plus = plus, .count = count };

	atomic_store(&looks, 0);
	atomic_store(&bytes_seen, 0);
	atomic_store(&assumed, 0);
	while (!w.eof)
		step(&w);
	assert_int_equal(w.entries, MANY + 2);
	/* what was read and did not fit is read again: less than half as much again, and a last look */
	if (atomic_load(&bytes_seen) > all_bytes * 3 / 2 + 1024ul * w.calls)
		fail_msg("%lu bytes read of a directory of %lu, in %u calls", atomic_load(&bytes_seen),
			 all_bytes, w.calls);
	assert_true(atomic_load(&looks) <= 3ul * w.calls + MANY / 100);
	/* rights are put on once to open it and once to read it */
	assert_true(atomic_load(&assumed) <= 2ul * w.calls);
}

static unsigned long bytes_of_dir(void)
{
	static _Alignas(8) char buf[32768];
	unsigned long sum = 0;
	ssize_t n;

	assert_int_equal(lseek(dir_fd, 0, SEEK_SET), 0);
	while ((n = __real_getdents64(dir_fd, buf, sizeof(buf))) > 0)
		sum += (unsigned long)n;
	assert_int_equal(n, 0);
	return sum;
}

static void costs(void **state)
{
	struct nfs_peer *p = *state;
	unsigned long all;
	struct nfs_fh d;

	open_new_dir(p, "many", &d);
	for (unsigned i = 0; i < MANY; i++)
		make("file", i);
	all = bytes_of_dir();
	count_listing(p, &d, false, 4096, all);
	count_listing(p, &d, false, 1 << 20, all);
	count_listing(p, &d, true, 8192, all);
	count_listing(p, &d, true, 1 << 20, all);
	close(dir_fd);
}

/* ---- where ---- */

static int start(void **state, const char *tmp)
{
	char *before = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
	struct nfs_peer *p = malloc(sizeof(*p));

	if (tmp)
		setenv("TMPDIR", tmp, 1);
	nfs_peer_create(p, RPCRDMA_LOCAL, options);
	if (before)
		setenv("TMPDIR", before, 1);
	else
		unsetenv("TMPDIR");
	free(before);
	*state = p;
	return 0;
}

static int setup(void **state)
{
	return start(state, NULL);
}

static int setup_shm(void **state)
{
	struct statfs fs;

	if (!statfs(SHM, &fs) && fs.f_type == TMPFS_MAGIC && !access(SHM, W_OK | X_OK))
		return start(state, SHM);
	print_message("SKIP: " SHM " is no tmpfs that we may write to\n");
	*state = NULL;
	return 0;
}

static int teardown(void **state)
{
	if (*state)
		nfs_peer_destroy(*state);
	free(*state);
	return 0;
}

static void changes_in_memory(void **state)
{
	if (!*state)
		skip();
	changes(state);
}

static void costs_in_memory(void **state)
{
	if (!*state)
		skip();
	costs(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(changes, setup, teardown),
		cmocka_unit_test_setup_teardown(costs, setup, teardown),
		cmocka_unit_test_setup_teardown(changes_in_memory, setup_shm, teardown),
		cmocka_unit_test_setup_teardown(costs_in_memory, setup_shm, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
