/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_fh.c - file handles of both kinds: they find their file or nothing, never another one
 *
 * Each test runs with kernel handles, where the system allows them, and with handles by name.
 */
#include "test_fh.h"

static uint64_t ino_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_ino;
}

static void finds(void **state)
{
	struct ctx *c = need(state);
	struct fh_obj d;
	struct fh fh;
	uint64_t ino;

	tmp_dir_mkdir(&c->dir, "exp/d");
	tmp_dir_write(&c->dir, "exp/d/f", "x");
	assert_int_equal(symlink("/etc", in_exp(c, "d/l")), 0);
	assert_int_equal(mkfifo(in_exp(c, "d/p"), 0600), 0);
	assert_int_equal(fh_lookup(c->s, &c->root, "d", &d), 0);
	fh = handle(c, &c->root, "d");
	assert_int_equal(try_open(c, &fh, &ino), 0);
	assert_true(ino == ino_of(in_exp(c, "d")));
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = { "f", "l", "p" };
		char path[8];

		snprintf(path, sizeof(path), "d/%s", names[i]);
		fh = handle(c, &d, names[i]);
		assert_int_equal(try_open(c, &fh, &ino), 0);
		assert_true(ino == ino_of(in_exp(c, path)));
	}
	fh_close(&d);
}

static void forged(void **state)
{
	struct ctx *c = need(state);
	struct export *exp;
	struct fh fh, bad;
	uint64_t ino;

	tmp_dir_write(&c->dir, "exp/f", "x");
	fh = handle(c, &c->root, "f");
	for (uint32_t i = 0; i < fh.len; i++) {
		bad = fh;
		bad.data[i] ^= 1;
		assert_int_equal(try_open(c, &bad, &ino), i == 3 ? -ESTALE : -EBADF);
		assert_int_not_equal(fh_export(c->s, bad.data, bad.len, &exp), 0);
	}
	for (uint32_t len = 0; len < fh.len; len++) {
		uint8_t *exact = malloc(len ? len : 1);

		memcpy(exact, fh.data, len);
		assert_int_equal(fh_export(c->s, exact, len, &exp), -EBADF);
		free(exact);
	}
	bad = fh;
	bad.len++;
	assert_int_equal(try_open(c, &bad, &ino), -EBADF);
	assert_int_equal(fh_export(c->s, fh.data, fh.len, &exp), 0);
	assert_ptr_equal(exp, &c->t.v[0]);
}

static void stale(void **state)
{
	struct ctx *c = need(state);
	struct fh old, new;
	uint64_t ino;

	/* the number of the inode is often the next file's */
	for (int i = 0; i < 20; i++) {
		tmp_dir_write(&c->dir, "exp/f", "x");
		old = handle(c, &c->root, "f");
		assert_int_equal(unlink(in_exp(c, "f")), 0);
		assert_int_equal(try_open(c, &old, &ino), -ESTALE);
		tmp_dir_write(&c->dir, "exp/f", "y");
		assert_int_equal(try_open(c, &old, &ino), -ESTALE);
		new = handle(c, &c->root, "f");
		assert_true(new.len != old.len || memcmp(new.data, old.data, old.len));
		assert_int_equal(try_open(c, &new, &ino), 0);
		assert_int_equal(unlink(in_exp(c, "f")), 0);
	}
}

static void renamed(void **state)
{
	struct ctx *c = need(state);
	struct fh_obj o, d;
	struct fh fh, again;
	uint64_t ino;

	tmp_dir_mkdir(&c->dir, "exp/d");
	tmp_dir_write(&c->dir, "exp/f", "x");
	fh = handle(c, &c->root, "f");
	assert_int_equal(fh_lookup(c->s, &c->root, "d", &d), 0);
	/* by the server */
	assert_int_equal(fh_lookup(c->s, &c->root, "f", &o), 0);
	assert_int_equal(rename(in_exp(c, "f"), in_exp(c, "d/g")), 0);
	fh_note_moved(c->s, &o, &c->root, "f", &d, "g");
	fh_close(&o);
	assert_int_equal(try_open(c, &fh, &ino), 0);
	/* renamed by another process: a lookup finds it at the latest, with the same handle */
	assert_int_equal(rename(in_exp(c, "d/g"), in_exp(c, "h")), 0);
	assert_int_equal(try_open(c, &fh, &ino), c->kind == FH_KERNEL ? 0 : -ESTALE);
	again = handle(c, &c->root, "h");
	assert_int_equal(again.len, fh.len);
	assert_memory_equal(again.data, fh.data, fh.len);
	assert_int_equal(try_open(c, &fh, &ino), 0);
	/* and the directory above it */
	tmp_dir_write(&c->dir, "exp/d/i", "x");
	fh = handle(c, &d, "i");
	assert_int_equal(rename(in_exp(c, "d"), in_exp(c, "e")), 0);
	(void)handle(c, &c->root, "e");
	assert_int_equal(try_open(c, &fh, &ino), 0);
	fh_close(&d);
}

static void linked(void **state)
{
	struct ctx *c = need(state);
	struct fh a, b;
	uint64_t ino;

	tmp_dir_write(&c->dir, "exp/a", "x");
	assert_int_equal(link(in_exp(c, "a"), in_exp(c, "b")), 0);
	a = handle(c, &c->root, "a");
	b = handle(c, &c->root, "b");
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
	assert_int_equal(unlink(in_exp(c, "b")), 0);
	assert_int_equal(try_open(c, &a, &ino), 0);
	assert_true(ino == ino_of(in_exp(c, "a")));
}

static void stays_inside(void **state)
{
	struct ctx *c = need(state);
	struct fh_obj o, d;
	struct fh fh;
	uint64_t ino;

	assert_int_equal(symlink("../out", in_exp(c, "l")), 0);
	assert_int_equal(fh_lookup(c->s, &c->root, "..", &o), 0);
	assert_true(o.stx.stx_ino == c->root.stx.stx_ino);
	fh_close(&o);
	assert_int_equal(fh_lookup(c->s, &c->root, "l", &o), 0);
	assert_true(S_ISLNK(o.stx.stx_mode));
	assert_int_equal(fh_lookup(c->s, &o, "x", &d), -ENOTDIR);
	fh_close(&o);
	assert_int_equal(fh_lookup(c->s, &c->root, "nothing", &o), -ENOENT);

	tmp_dir_mkdir(&c->dir, "exp/d");
	assert_int_equal(fh_lookup(c->s, &c->root, "d", &d), 0);
	assert_int_equal(fh_lookup(c->s, &d, "..", &o), 0);
	assert_true(o.stx.stx_ino == c->root.stx.stx_ino);
	fh_close(&o);
	/* moved out of the export by another process: nothing in it or above it may be shown */
	tmp_dir_write(&c->dir, "exp/d/f", "x");
	fh = handle(c, &c->root, "d");
	assert_int_equal(rename(in_exp(c, "d"), tmp_dir_path(&c->dir, "out/d")), 0);
	assert_int_equal(fh_lookup(c->s, &d, "f", &o), -ESTALE);
	assert_int_equal(fh_lookup(c->s, &d, ".", &o), -ESTALE);
	assert_int_equal(fh_check_dir(c->s, &d), -ESTALE);
	assert_int_equal(try_open(c, &fh, &ino), -ESTALE);
	if (c->kind == FH_KERNEL)
		assert_int_equal(fh_lookup(c->s, &d, "..", &o), -ESTALE);
	else if (!fh_lookup(c->s, &d, "..", &o)) {
		assert_true(o.stx.stx_ino ==
			    c->root.stx.stx_ino); /* where it was, not where it is */
		fh_close(&o);
	}
	/* and back */
	assert_int_equal(rename(tmp_dir_path(&c->dir, "out/d"), in_exp(c, "d")), 0);
	assert_int_equal(try_open(c, &fh, &ino), 0);
	assert_int_equal(fh_check_dir(c->s, &d), 0);
	fh_close(&d);
	/* a name that begins as the export's does not make it inside */
	tmp_dir_mkdir(&c->dir, "exp2");
	assert_int_equal(rename(in_exp(c, "d"), tmp_dir_path(&c->dir, "exp2/d")), 0);
	assert_int_equal(try_open(c, &fh, &ino), -ESTALE);
}

static void mounts_not_crossed(void **state)
{
	struct export_conf conf;
	struct export_table t;
	struct siphash_key key;
	struct fh_set *s;
	struct fh_obj root, o;
	char why[256];

	(void)state;
	if (access("/proc/self", F_OK))
		skip();
	export_conf_init(&conf);
	conf.name = (char[]){ "/r" };
	conf.path = (char[]){ "/" };
	assert_int_equal(siphash_key_random(&key), 0);
	assert_int_equal(export_table_open(&conf, 1, &t, why, sizeof(why)), 0);
	assert_int_equal(fh_set_create(&t, &(struct fh_keys){ .v = { key }, .n = 1 }, FH_MAP, NULL, NULL, &s),
			 0);
	assert_int_equal(fh_open_root(s, &t.v[0], &root), 0);
	assert_int_equal(fh_lookup(s, &root, "proc", &o), -EACCES);
	fh_close(&root);
	fh_set_destroy(s);
	export_table_close(&t);
}

static void long_paths(void **state)
{
	enum { DEPTH = 30 }; /* 6000 bytes: more than the system takes at once */
	struct ctx *c = need(state);
	struct fh_obj at[DEPTH + 1];
	char name[201];
	struct fh fh;
	uint64_t ino;

	at[0] = c->root;
	memset(name, 'n', 200);
	name[200] = '\0';
	for (int i = 0; i < DEPTH; i++) {
		assert_int_equal(mkdirat(at[i].fd, name, 0755), 0);
		assert_int_equal(fh_lookup(c->s, &at[i], name, &at[i + 1]), 0);
	}
	assert_int_equal(fh_make(c->s, &at[DEPTH], &fh), 0);
	assert_int_equal(try_open(c, &fh, &ino), 0);
	assert_true(ino == at[DEPTH].stx.stx_ino);
	assert_int_equal(fh_check_dir(c->s, &at[DEPTH]), 0);
	assert_int_equal(fh_check_dir_now(c->s, &at[DEPTH]), -EAGAIN); /* a worker takes the time */
	assert_int_equal(fh_check_dir_now(c->s, &at[1]), 0);
	/* outside it is found out as well */
	assert_int_equal(renameat(c->root.fd, name, AT_FDCWD, tmp_dir_path(&c->dir, "out/moved")), 0);
	assert_int_equal(fh_check_dir(c->s, &at[DEPTH]), -ESTALE);
	assert_int_equal(fh_check_dir(c->s, &at[1]), -ESTALE);
	assert_int_equal(renameat(AT_FDCWD, tmp_dir_path(&c->dir, "out/moved"), c->root.fd, name), 0);
	for (int i = DEPTH; i > 0; i--) {
		fh_close(&at[i]);
		assert_int_equal(unlinkat(at[i - 1].fd, name, AT_REMOVEDIR), 0);
	}
}

/* A very long chain of directories keeps no worker busy for long: its end is stale. */
static void endless_paths(void **state)
{
	enum { BELOW = 4000, BEYOND = 8000 };
	struct ctx *c = need(state);
	struct fh_obj deep = { .exp = c->root.exp }, last = { .exp = c->root.exp };
	int fd = dup(c->root.fd);

	for (unsigned i = 0; i < BEYOND; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		next = openat(fd, "d", O_PATH | O_DIRECTORY);
		assert_true(next >= 0);
		close(fd);
		fd = next;
		if (i == BELOW)
			deep.fd = dup(fd);
	}
	last.fd = fd;
	assert_int_equal(fh_check_dir(c->s, &deep), 0);
	assert_int_equal(fh_check_dir(c->s, &last), -ESTALE);
	assert_int_equal(fh_check_dir_now(c->s, &last), -EAGAIN);
	for (unsigned i = 0; i < BEYOND; i++) {
		int up = openat(fd, "..", O_PATH | O_DIRECTORY);

		close(fd);
		fd = up;
		assert_int_equal(unlinkat(fd, "d", AT_REMOVEDIR), 0);
	}
	close(fd);
	fh_close(&deep);
}

/* the kernel adds this to the path of what has lost its name: it may as well be a name */
static void called_deleted(void **state)
{
	static const char *const names[] = { "x (deleted)", " (deleted)" };
	struct ctx *c = need(state);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct fh_obj d, o, gone;
		struct fh fh, in;
		uint64_t ino;

		assert_int_equal(mkdir(in_exp(c, names[i]), 0755), 0);
		fh = handle(c, &c->root, names[i]);
		assert_int_equal(try_open(c, &fh, &ino), 0);
		assert_int_equal(fh_open(c->s, fh.data, fh.len, &d), 0);
		assert_int_equal(fh_check_dir(c->s, &d), 0);
		assert_int_equal(mkdirat(d.fd, "in", 0755), 0);
		in = handle(c, &d, "in");
		assert_int_equal(fh_lookup(c->s, &d, ".", &o), 0);
		fh_close(&o);
		assert_int_equal(fh_open(c->s, in.data, in.len, &gone), 0);
		assert_int_equal(fh_lookup(c->s, &gone, "..", &o), 0);
		assert_int_equal(o.stx.stx_ino, d.stx.stx_ino);
		fh_close(&o);
		assert_int_equal(unlinkat(d.fd, "in", AT_REMOVEDIR), 0);
		assert_int_equal(fh_check_dir(c->s, &gone), -ESTALE);
		fh_close(&gone);
		assert_int_equal(rmdir(in_exp(c, names[i])), 0);
		assert_int_equal(fh_check_dir(c->s, &d), -ESTALE);
		assert_int_equal(try_open(c, &fh, &ino), -ESTALE);
		fh_close(&d);
	}
}

/* Files that others remove are forgotten while clients look others up; those that live, or only moved, are not lost */
static void forgets_removed(void **state)
{
	struct ctx *c = need(state);
	struct fh d, f, moved, linked, inside, t;
	struct fh_obj dir;
	unsigned names;
	uint64_t ino;

	c->s->map->keep = 64;
	tmp_dir_mkdir(&c->dir, "exp/d");
	tmp_dir_write(&c->dir, "exp/d/f", "x");
	tmp_dir_write(&c->dir, "exp/m", "x");
	tmp_dir_write(&c->dir, "exp/l", "x");
	tmp_dir_mkdir(&c->dir, "exp/gone");
	d = handle(c, &c->root, "d");
	assert_int_equal(fh_open(c->s, d.data, d.len, &dir), 0);
	f = handle(c, &dir, "f");
	fh_close(&dir);
	moved = handle(c, &c->root, "m");
	linked = handle(c, &c->root, "l");
	/* names that others took from a file that lives */
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(link(in_exp(c, "l"), in_exp(c, "another")), 0);
		assert_int_equal(rename(in_exp(c, "l"), in_exp(c, "old")), 0);
		assert_int_equal(unlink(in_exp(c, "old")), 0);
		(void)handle(c, &c->root, "another");
		assert_int_equal(rename(in_exp(c, "another"), in_exp(c, "l")), 0);
		(void)handle(c, &c->root, "l");
	}
	/* a whole directory */
	t = handle(c, &c->root, "gone");
	assert_int_equal(fh_open(c->s, t.data, t.len, &dir), 0);
	for (unsigned i = 0; i < 200; i++) {
		char name[64];

		snprintf(name, sizeof(name), "exp/gone/%u", i);
		tmp_dir_write(&c->dir, name, "x");
		inside = handle(c, &dir, strrchr(name, '/') + 1);
		assert_int_equal(unlink(tmp_dir_path(&c->dir, name)), 0);
	}
	fh_close(&dir);
	assert_int_equal(rmdir(in_exp(c, "gone")), 0);
	assert_int_equal(rename(in_exp(c, "m"), in_exp(c, "n")), 0);
	assert_int_equal(rename(in_exp(c, "d"), in_exp(c, "e")), 0);
	(void)handle(c, &c->root, "e");
	for (unsigned i = 0; i < 2000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "t%u", i);
		tmp_dir_write(&c->dir, "exp/t", "x");
		assert_int_equal(rename(in_exp(c, "t"), in_exp(c, name)), 0);
		t = handle(c, &c->root, name);
		assert_int_equal(try_open(c, &t, &ino), 0);
		assert_int_equal(unlink(in_exp(c, name)), 0);
		assert_int_equal(try_open(c, &t, &ino), -ESTALE);
	}
	assert_true(c->s->map->by_id.n < 100);
	assert_int_equal(try_open(c, &inside, &ino), -ESTALE);
	assert_int_equal(try_open(c, &d, &ino), 0);
	assert_int_equal(try_open(c, &f, &ino), 0);
	assert_int_equal(try_open(c, &linked, &ino), 0);
	t = handle(c, &c->root, "n");
	assert_memory_equal(t.data, moved.data, moved.len);
	assert_int_equal(try_open(c, &moved, &ino), 0);
	/* of the names of one that lives only those are left that lead to it */
	assert_int_equal(fh_open(c->s, linked.data, linked.len, &dir), 0);
	for (names = 0;; names++) {
		struct fh_map_path path;

		if (fh_map_path(c->s->map, dir.node, names, &path))
			break;
		free(path.text);
	}
	fh_close(&dir);
	assert_int_equal(names, 1);
}

/* What is left without export and signature finds the file by other keys, too. */
static void stripped(void **state)
{
	struct ctx *c = need(state);
	struct siphash_key key;
	struct fh fh, id, bad;
	struct fh_obj o;
	struct fh_set *s;

	tmp_dir_write(&c->dir, "exp/f", "x");
	fh = handle(c, &c->root, "f");
	fh_strip(&fh, &id);
	assert_int_equal(fh_open_stripped(c->s, c->t.v[0].id, &id, &o), 0);
	assert_true(o.stx.stx_ino == ino_of(in_exp(c, "f")) && o.exp == &c->t.v[0]);
	fh_close(&o);
	assert_int_equal(fh_open_stripped(c->s, c->t.v[0].id + 1, &id, &o), -ESTALE);
	bad = id;
	bad.data[0] ^= FH_KERNEL ^ FH_MAP;
	assert_int_equal(fh_open_stripped(c->s, c->t.v[0].id, &bad, &o), -EBADMSG);
	bad = id;
	bad.len = FH_MAX + 1;
	assert_int_equal(fh_open_stripped(c->s, c->t.v[0].id, &bad, &o), -EBADMSG);
	assert_int_equal(fh_open_stripped(c->s, c->t.v[0].id, &fh, &o), -EBADMSG); /* as markers were once */
	for (bad.len = 0; bad.len < id.len; bad.len++)
		assert_int_not_equal(fh_open_stripped(c->s, c->t.v[0].id, &bad, &o), 0);
	assert_int_equal(siphash_key_random(&key), 0);
	assert_int_equal(fh_set_create(&c->t, &(struct fh_keys){ .v = { key }, .n = 1 }, c->kind, NULL, NULL, &s), 0);
	assert_int_equal(fh_open(s, fh.data, fh.len, &o), -ESTALE);
	if (c->kind == FH_KERNEL) {
		assert_int_equal(fh_open_stripped(s, c->t.v[0].id, &id, &o), 0);
		fh_close(&o);
	} else {
		assert_int_equal(fh_open_stripped(s, c->t.v[0].id, &id, &o), -ESTALE); /* it is in the map of the other set */
	}
	fh_set_destroy(s);
	assert_int_equal(unlink(in_exp(c, "f")), 0);
	assert_int_equal(fh_open_stripped(c->s, c->t.v[0].id, &id, &o), -ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(finds),
		BOTH(stripped),
		BOTH(forged),
		BOTH(stale),
		BOTH(renamed),
		BOTH(linked),
		BOTH(stays_inside),
		BOTH(long_paths),
		BOTH(called_deleted),
		BOTH(endless_paths),
		cmocka_unit_test_setup_teardown(forgets_removed, setup_map, teardown),
		cmocka_unit_test(mounts_not_crossed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
