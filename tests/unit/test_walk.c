/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_walk.c - paths over a small tree: links, dots, slashes; opening what they lead to; and paths that begin at nodes
 *
 * The tree answers LOOKUP, GETATTR, READLINK, ACCESS, CREATE and SETATTR; `mute` servers leave out
 * whatever RFC 1813 lets them leave out, and everything must come to the same.
 */
#include "fake_rpc.h"

struct node {
	unsigned parent;
	const char *name;
	ftype3 type;
	const char *target;
	mode_t mode; /* of what was created */
};

enum { ROOT, A, B, FILE1, LINK_FILE, LINK_DIR, LINK_ABS, LINK_UP, LOOP1, LOOP2, DANGLING, EMPTY,
       FIFO, SECRET, BASE_NODES };

static const struct node base[] = {
	[ROOT] = { ROOT, "", NF3DIR, NULL, 0 },
	[A] = { ROOT, "a", NF3DIR, NULL, 0 },
	[B] = { A, "b", NF3DIR, NULL, 0 },
	[FILE1] = { B, "file", NF3REG, NULL, 0 },
	[LINK_FILE] = { ROOT, "lf", NF3LNK, "a/b/file", 0 },
	[LINK_DIR] = { A, "ld", NF3LNK, "b", 0 },
	[LINK_ABS] = { B, "labs", NF3LNK, "/a", 0 },
	[LINK_UP] = { B, "lup", NF3LNK, "../../a/./b", 0 },
	[LOOP1] = { ROOT, "l1", NF3LNK, "l2", 0 },
	[LOOP2] = { ROOT, "l2", NF3LNK, "l1", 0 },
	[DANGLING] = { ROOT, "dang", NF3LNK, "a/new", 0 },
	[EMPTY] = { ROOT, "empty", NF3LNK, "", 0 },
	[FIFO] = { ROOT, "fifo", NF3FIFO, NULL, 0 },
	[SECRET] = { ROOT, "secret", NF3REG, NULL, 0 },
};

static struct node nodes[BASE_NODES + 16];
static unsigned count;
static bool mute;       /* no optional attributes, no handle from CREATE */
static unsigned races;  /* the number of CREATEs that find a file of another client */
static struct leat *m;

static unsigned node_of(const nfs_fh3 *fh)
{
	unsigned n;

	if (fh->data.data_len == 4 && !memcmp(fh->data.data_val, "root", 4))
		return ROOT;
	assert_int_equal(fh->data.data_len, sizeof(n));
	memcpy(&n, fh->data.data_val, sizeof(n));
	assert_true(n < count);
	return n;
}

static void put_fh(nfs_fh3 *fh, unsigned n)
{
	if (n == ROOT) {
		fh->data.data_len = 4;
		memcpy(fh->data.data_val, "root", 4);
		return;
	}
	fh->data.data_len = sizeof(n);
	memcpy(fh->data.data_val, &n, sizeof(n));
}

static void put_attr(post_op_attr *a, unsigned n)
{
	a->attributes_follow = !mute;
	a->post_op_attr_u.attributes.type = nodes[n].type;
	a->post_op_attr_u.attributes.fileid = n;
}

static unsigned find(unsigned dir, const char *name)
{
	if (!strcmp(name, ".."))
		return nodes[dir].parent;
	for (unsigned n = 1; n < count; n++) {
		if (nodes[n].parent == dir && !strcmp(nodes[n].name, name))
			return n;
	}
	return UINT32_MAX;
}

static void answer_lookup(const LOOKUP3args *a, LOOKUP3res *r)
{
	unsigned dir = node_of(&a->what.dir), n;

	assert_string_not_equal(a->what.name, ".");
	if (nodes[dir].type != NF3DIR) {
		r->status = NFS3ERR_NOTDIR;
		return;
	}
	n = find(dir, a->what.name);
	r->status = n == UINT32_MAX ? NFS3ERR_NOENT : NFS3_OK;
	if (r->status)
		return;
	put_fh(&r->LOOKUP3res_u.resok.object, n);
	put_attr(&r->LOOKUP3res_u.resok.obj_attributes, n);
}

static void answer_create(const CREATE3args *a, CREATE3res *r)
{
	unsigned dir = node_of(&a->where.dir);
	bool exclusive = a->how.mode == EXCLUSIVE;

	assert_true(exclusive || a->how.mode == GUARDED);
	assert_true(count < ARRAY_SIZE(nodes));
	if (races) {
		races--;
		r->status = NFS3ERR_EXIST;
		return;
	}
	if (find(dir, a->where.name) != UINT32_MAX) {
		r->status = NFS3ERR_EXIST;
		return;
	}
	nodes[count] = (struct node){ dir, strdup(a->where.name), NF3REG, NULL, 0 };
	if (!exclusive)
		nodes[count].mode = a->how.createhow3_u.obj_attributes.mode.set_mode3_u.mode;
	r->status = NFS3_OK;
	r->CREATE3res_u.resok.obj.handle_follows = !mute;
	put_fh(&r->CREATE3res_u.resok.obj.post_op_fh3_u.handle, count);
	count++;
}

static void answer_readlink(struct rpcrdma_call *call)
{
	const READLINK3args *a = call->args;
	READLINK3res *r = call->res;
	const char *target = nodes[node_of(&a->symlink)].target;

	assert_non_null(target);
	r->status = NFS3_OK;
	r->READLINK3res_u.resok.data.length = (uint32_t)strlen(target);
	memcpy(call->sink[0].iov_base, target, strlen(target));
}

static int answer(struct rpcrdma_call *call)
{
	switch (call->proc) {
	case NFSPROC3_LOOKUP:
		answer_lookup(call->args, call->res);
		break;
	case NFSPROC3_CREATE:
		answer_create(call->args, call->res);
		break;
	case NFSPROC3_READLINK:
		answer_readlink(call);
		break;
	case NFSPROC3_GETATTR: {
		const GETATTR3args *a = call->args;
		GETATTR3res *r = call->res;
		unsigned n = node_of(&a->object);

		r->GETATTR3res_u.resok.obj_attributes.type = nodes[n].type;
		r->GETATTR3res_u.resok.obj_attributes.fileid = n;
		break;
	}
	case NFSPROC3_ACCESS: {
		const ACCESS3args *a = call->args;
		ACCESS3res *r = call->res;

		r->ACCESS3res_u.resok.access = node_of(&a->object) == SECRET ?
			a->access & ACCESS3_READ : a->access;
		break;
	}
	case NFSPROC3_SETATTR: {
		const SETATTR3args *a = call->args;

		if (a->new_attributes.mode.set_it)
			nodes[node_of(&a->object)].mode =
				a->new_attributes.mode.set_mode3_u.mode;
		break;
	}
	default:
		fail_msg("procedure %u was not expected", call->proc);
	}
	return 0;
}

static int setup(void **state)
{
	(void)state;
	m = fake_mount(1);
	fake.answer = answer;
	memcpy(nodes, base, sizeof(base));
	count = BASE_NODES;
	mute = false;
	races = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_umount(m);
	for (unsigned n = BASE_NODES; n < count; n++)
		free((void *)(uintptr_t)nodes[n].name);
	return 0;
}

/* Return: the node that stat (or lstat) finds, or -errno. */
static int found(const char *path, bool follow)
{
	struct stat st;
	int rc = follow ? leat_stat(m, path, &st) : leat_lstat(m, path, &st);

	return rc ? rc : (int)st.st_ino;
}

static void check_paths(void)
{
	static const struct {
		const char *path;
		int stat, lstat;
	} rows[] = {
		{ "/", ROOT, ROOT },
		{ "", ROOT, ROOT },
		{ "//a//b", B, B },
		{ "a/b/file", FILE1, FILE1 },
		{ "/a/./b/../b/file", FILE1, FILE1 },
		{ "/..", ROOT, ROOT },
		{ "/../../a", A, A },
		{ "/a/..", ROOT, ROOT },
		{ ".", ROOT, ROOT },
		{ "a/", A, A },
		{ "a/.", A, A },
		{ "lf", FILE1, LINK_FILE },
		{ "a/ld", B, LINK_DIR },
		{ "a/ld/", B, B },
		{ "a/ld/file", FILE1, FILE1 },
		{ "a/ld/..", A, A },
		{ "a/b/labs", A, LINK_ABS },
		{ "a/b/labs/b", B, B },
		{ "a/b/lup/file", FILE1, FILE1 },
		{ "a/b/lup/lup/lup/file", FILE1, FILE1 },
		{ "l1", -ELOOP, LOOP1 },
		{ "l1/x", -ELOOP, -ELOOP },
		{ "dang", -ENOENT, DANGLING },
		{ "dang/", -ENOENT, -ENOENT },
		{ "empty", -EREMOTEIO, EMPTY },
		{ "none", -ENOENT, -ENOENT },
		{ "none/x", -ENOENT, -ENOENT },
		{ "a/b/file/", -ENOTDIR, -ENOTDIR },
		{ "a/b/file/.", -ENOTDIR, -ENOTDIR },
		{ "a/b/file/..", -ENOTDIR, -ENOTDIR },
		{ "a/b/file/x", -ENOTDIR, -ENOTDIR },
		{ "lf/", -ENOTDIR, -ENOTDIR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int got = found(rows[i].path, true), lgot = found(rows[i].path, false);

		if (got != rows[i].stat || lgot != rows[i].lstat)
			fail_msg("\"%s\": stat %d, lstat %d", rows[i].path, got, lgot);
	}
}

static void paths(void **state)
{
	(void)state;
	check_paths();
	mute = true;
	check_paths();
}

static void one_lookup_each(void **state)
{
	(void)state;
	assert_int_equal(found("/a/b/file", true), FILE1);
	assert_int_equal(fake.calls, 3);
}

static void relative(void **state)
{
	unsigned b = B;

	(void)state;
	strcpy(m->path, "a/b");
	assert_int_equal(found("file", true), FILE1);
	assert_int_equal(found("", true), B);
	assert_int_equal(found("..", true), A);
	assert_int_equal(found("/a", true), A);
	/* once the directory is known it is kept, whatever it is called by now */
	m->base.len = sizeof(b);
	memcpy(m->base.data, &b, sizeof(b));
	m->has_base = true;
	nodes[B].name = "renamed";
	assert_int_equal(found("file", true), FILE1);
	assert_int_equal(found("", true), B);
}

static void too_long(void **state)
{
	static char path[LT_PATH_MAX + 10];

	(void)state;
	memset(path, '/', sizeof(path) - 1);
	assert_int_equal(found(path, true), -ENAMETOOLONG);
	path[LT_PATH_MAX - 1] = '\0';
	assert_int_equal(found(path, true), ROOT);
	memset(path, 'n', 256);
	path[256] = '\0';
	assert_int_equal(found(path, true), -ENAMETOOLONG);
	assert_int_equal(fake.by_proc[NFSPROC3_LOOKUP], 0);
}

/* Return: what opening came to; the file is closed again. */
static int try_open(const char *path, int flags, mode_t mode)
{
	struct leat_file *f;
	int rc = leat_open(m, path, flags, mode, &f);

	return rc ? rc : leat_close(f);
}

static void check_opens(void)
{
	static const struct {
		const char *path;
		int flags, want;
	} rows[] = {
		{ "a/b/file", O_RDONLY, 0 },
		{ "a/b/file", O_RDWR | O_TRUNC, 0 },
		{ "lf", O_RDWR, 0 },
		{ "lf", O_RDONLY | O_NOFOLLOW, -ELOOP },
		{ "a", O_RDONLY, 0 },
		{ "a", O_RDONLY | O_DIRECTORY, 0 },
		{ "a/b/file", O_RDONLY | O_DIRECTORY, -ENOTDIR },
		{ "a", O_WRONLY, -EISDIR },
		{ "a", O_RDONLY | O_CREAT, -EISDIR },
		{ "/", O_RDWR | O_CREAT, -EISDIR },
		{ "none", O_RDONLY, -ENOENT },
		{ "none/", O_RDWR | O_CREAT, -EISDIR },
		{ "none/x", O_RDWR | O_CREAT, -ENOENT },
		{ "fifo", O_RDONLY, -ENXIO },
		{ "secret", O_RDONLY, 0 },
		{ "secret", O_RDWR, -EACCES },
		{ "secret", O_RDONLY | O_TRUNC, -EACCES },
		{ "a/b/file", O_RDWR | O_CREAT, 0 },
		{ "a/b/file", O_RDWR | O_CREAT | O_EXCL, -EEXIST },
		{ "lf", O_RDWR | O_CREAT | O_EXCL, -EEXIST },
		{ "dang", O_RDWR | O_CREAT | O_EXCL, -EEXIST },
		{ "/", O_RDWR | O_CREAT | O_EXCL, -EEXIST },
		{ "a/..", O_RDWR | O_CREAT | O_EXCL, -EEXIST },
		{ "x/", O_RDWR | O_CREAT | O_EXCL, -EISDIR },
		{ "a", O_ACCMODE, -EINVAL },
		{ "a", O_TMPFILE | O_RDWR, -EOPNOTSUPP },
		{ "a", O_RDONLY | O_CREAT | O_DIRECTORY, -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int got = try_open(rows[i].path, rows[i].flags, 0640);

		if (got != rows[i].want)
			fail_msg("open \"%s\" 0%o: %d", rows[i].path, (unsigned)rows[i].flags, got);
	}
	assert_int_equal(count, BASE_NODES);
}

static void opens(void **state)
{
	(void)state;
	check_opens();
	mute = true;
	check_opens();
}

static void check_created(unsigned n, unsigned dir, const char *name, mode_t mode)
{
	assert_int_equal(count, n + 1);
	assert_int_equal(nodes[n].parent, dir);
	assert_string_equal(nodes[n].name, name);
	assert_int_equal(nodes[n].mode, mode);
}

static void creates(void **state)
{
	unsigned n = BASE_NODES;

	(void)state;
	for (int round = 0; round < 2; round++) {
		mute = round;
		assert_int_equal(try_open(round ? "p" : "o", O_WRONLY | O_CREAT, 0444), 0);
		check_created(n++, ROOT, round ? "p" : "o", 0444);
		assert_int_equal(try_open(round ? "a/q" : "a/r", O_RDWR | O_CREAT | O_EXCL, 04755),
				 0);
		check_created(n++, A, round ? "q" : "r", 04755);
	}
	/* through a link to what is not there yet */
	assert_int_equal(try_open("dang", O_RDWR | O_CREAT, 0600), 0);
	check_created(n++, A, "new", 0600);
	/* no ACCESS call for a file that was just created */
	assert_int_equal(fake.by_proc[NFSPROC3_ACCESS], 0);
}

static void races_lost(void **state)
{
	(void)state;
	races = 3;
	assert_int_equal(try_open("n", O_RDWR | O_CREAT, 0600), 0);
	assert_int_equal(fake.by_proc[NFSPROC3_CREATE], 4);
	races = 100;
	assert_int_equal(try_open("o", O_RDWR | O_CREAT, 0600), -EEXIST);
	races = 1;
	assert_int_equal(try_open("o", O_RDWR | O_CREAT | O_EXCL, 0600), -EEXIST);
}

/* ---- nodes ---- */

static struct leat_node *node_at(const char *path)
{
	struct leat_node *n = NULL;

	if (leat_node_get(m, path, &n))
		fail_msg("%s: %s", path, leat_error(m));
	return n;
}

/* Drops the reference. */
static void assert_node(struct leat_node *n, unsigned want)
{
	struct stat st;

	assert_int_equal(leat_node_getattr(n, NULL, &st), 0);
	assert_int_equal(st.st_ino, want);
	leat_node_put(n);
}

static void node_paths(void **state)
{
	struct leat_node *a = node_at("a"), *l = node_at("a/b/labs"), *n;
	unsigned calls = fake.calls;
	struct stat st;

	(void)state;
	assert_int_equal(leat_node_lookup(a, "b", &n, &st), 0); /* with attributes, by one call */
	assert_int_equal(fake.calls, calls + 1);
	assert_int_equal(st.st_ino, B);
	assert_node(n, B);
	assert_int_equal(leat_node_lookup(a, "b/lup", &n, &st), 0);
	assert_node(n, LINK_UP);
	assert_int_equal(leat_node_lookup(a, "b/lup/file", &n, &st), 0);
	assert_node(n, FILE1);
	assert_int_equal(leat_node_lookup(a, "../../lf", &n, &st), 0);
	assert_node(n, LINK_FILE);
	assert_int_equal(leat_node_lookup(a, "b/labs", &n, NULL), 0);
	assert_node(n, LINK_ABS);
	assert_node(l, A); /* leat_node_get() follows links */
	/* the URL's path makes no difference */
	strcpy(m->path, "a/b");
	assert_int_equal(leat_node_lookup(a, "ld", &n, NULL), 0);
	assert_node(n, LINK_DIR);
	leat_node_put(a);
}

/* The node of a new object is that of the object, whether or not the reply has its handle. */
static void node_created(void **state)
{
	unsigned want = BASE_NODES;

	(void)state;
	for (int round = 0; round < 2; round++) {
		struct leat_node *a = node_at("a"), *n = NULL;
		struct leat_file *f = NULL;
		struct stat st = { 0 };

		mute = round;
		assert_int_equal(leat_node_mknod(a, round ? "m1" : "m0", S_IFREG | 0600, 0, &n, &st), 0);
		assert_int_equal(st.st_ino, want);
		assert_node(n, want);
		check_created(want++, A, round ? "m1" : "m0", 0600);
		assert_int_equal(leat_node_create(a, round ? "c1" : "c0", O_RDWR, 0640, &n, &st, &f), 0);
		assert_int_equal(st.st_ino, want);
		assert_int_equal(leat_close(f), 0);
		assert_node(n, want);
		check_created(want++, A, round ? "c1" : "c0", 0640);
		assert_int_equal(leat_node_create(a, round ? "x1" : "x0", O_RDWR | O_EXCL, 0604, &n, &st, &f), 0);
		assert_int_equal(st.st_ino, want);
		assert_int_equal(leat_close(f), 0);
		assert_node(n, want);
		check_created(want++, A, round ? "x1" : "x0", 0604);
		leat_node_put(a);
	}
}

static uint32_t stale_proc;

static int answer_stale(struct rpcrdma_call *call)
{
	if (call->proc != stale_proc)
		return answer(call);
	*(nfsstat3 *)call->res = NFS3ERR_STALE;
	return 0;
}

/* A node has no path by which the object could be found again. A name below it has. */
static void node_stale(void **state)
{
	struct leat_node *a = node_at("a"), *n = NULL;
	struct stat st;

	(void)state;
	fake.answer = answer_stale;
	stale_proc = NFSPROC3_FSSTAT;
	assert_int_equal(leat_node_statvfs(a, NULL, &(struct statvfs){ 0 }), -ESTALE);
	assert_int_equal(fake.by_proc[NFSPROC3_FSSTAT], 1);
	assert_int_equal(leat_node_statvfs(a, "b", &(struct statvfs){ 0 }), -ESTALE);
	assert_int_equal(fake.by_proc[NFSPROC3_FSSTAT], 3);
	/* what was created is not created again */
	stale_proc = NFSPROC3_LOOKUP;
	mute = true;
	assert_int_equal(leat_node_mknod(a, "m", S_IFREG | 0600, 0, &n, &st), -ESTALE);
	assert_int_equal(fake.by_proc[NFSPROC3_CREATE], 1);
	assert_null(n);
	/* without a node to return, no LOOKUP is needed */
	assert_int_equal(leat_node_mknod(a, "o", S_IFREG | 0600, 0, NULL, NULL), 0);
	stale_proc = UINT32_MAX;
	leat_node_put(a);
}

static unsigned fail_at; /* the number of the call that fails */

static int answer_or_fail(struct rpcrdma_call *call)
{
	return fail_at && !--fail_at ? -EIO : answer(call);
}

/* Each call of the longest chain fails once: nothing is returned then, and nothing is kept. */
static void node_faults(void **state)
{
	struct leat_node *a = node_at("a");
	int rc = -EIO;

	(void)state;
	mute = true;
	fake.answer = answer_or_fail;
	for (unsigned i = 1; rc; i++) {
		struct leat_node *n = NULL;
		struct leat_file *f = NULL;
		struct stat st = { 0 };
		char name[8];

		assert_in_range(i, 1, 8);
		snprintf(name, sizeof(name), "b/n%u", i);
		fail_at = i;
		rc = leat_node_create(a, name, O_RDWR | O_EXCL, 0600, &n, &st, &f);
		if (rc) {
			assert_int_equal(rc, -EIO);
			assert_true(!n && !f && !st.st_ino);
			continue;
		}
		assert_in_range(i, 6, 8); /* LOOKUP, its GETATTR, CREATE, LOOKUP, SETATTR, GETATTR */
		leat_node_put(n);
		assert_int_equal(leat_close(f), 0);
	}
	leat_node_put(a);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(paths),
		TEST(one_lookup_each),
		TEST(relative),
		TEST(too_long),
		TEST(opens),
		TEST(creates),
		TEST(node_paths),
		TEST(node_created),
		TEST(node_stale),
		TEST(node_faults),
		TEST(races_lost),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
