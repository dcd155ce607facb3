/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_fh.c - file handles of both kinds: they find their file or nothing, never another one
 *
 * Each test runs with kernel handles, where the system allows them, and with handles by name.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fh.h"
#include "fh_int.h"
#include "fh_map_int.h"
#include "tmp_dir.h"

struct ctx {
	enum fh_kind kind;
	struct tmp_dir dir;
	struct export_table t;
	struct siphash_key key;
	struct fh_set *s;
	struct fh_obj root;
};

static int setup_kind(void **state, enum fh_kind kind)
{
	struct ctx *c = calloc(1, sizeof(*c));
	struct export_conf conf;
	char why[256];

	c->kind = kind;
	c->root.fd = -1;
	tmp_dir_create(&c->dir);
	tmp_dir_mkdir(&c->dir, "exp");
	tmp_dir_mkdir(&c->dir, "out");
	export_conf_init(&conf);
	conf.name = (char[]){ "/e" };
	conf.path = (char *)(uintptr_t)tmp_dir_path(&c->dir, "exp");
	assert_int_equal(siphash_key_random(&c->key), 0);
	assert_int_equal(export_table_open(&conf, 1, &c->t, why, sizeof(why)), 0);
	*state = c;
	if (fh_set_create(&c->t, &(struct fh_keys){ .v = { c->key }, .n = 1 }, kind, NULL, NULL, &c->s)) {
		assert_int_equal(kind, FH_KERNEL);
		return 0; /* not allowed here: the tests skip */
	}
	assert_int_equal(c->t.v[0].fh_kind, kind);
	assert_int_equal(fh_open_root(c->s, &c->t.v[0], &c->root), 0);
	return 0;
}

static int setup_kernel(void **state)
{
	return setup_kind(state, FH_KERNEL);
}

static int setup_map(void **state)
{
	return setup_kind(state, FH_MAP);
}

static int teardown(void **state)
{
	struct ctx *c = *state;

	fh_close(&c->root);
	fh_set_destroy(c->s);
	export_table_close(&c->t);
	tmp_dir_destroy(&c->dir);
	free(c);
	return 0;
}

static struct ctx *need(void **state)
{
	struct ctx *c = *state;

	if (!c->s)
		skip();
	return c;
}

static const char *in_exp(struct ctx *c, const char *name)
{
	char buf[512];

	snprintf(buf, sizeof(buf), "exp/%s", name);
	return tmp_dir_path(&c->dir, buf);
}

static struct fh handle(struct ctx *c, const struct fh_obj *dir, const char *name)
{
	struct fh_obj o;
	struct fh fh, again;

	assert_int_equal(fh_lookup(c->s, dir, name, &o), 0);
	assert_int_equal(fh_make(c->s, &o, &fh), 0);
	assert_true(fh.len <= FH_MAX);
	/* listings make the same one without opening */
	assert_int_equal(fh_make_at(c->s, dir, name, &o.stx, &again), 0);
	assert_int_equal(again.len, fh.len);
	assert_memory_equal(again.data, fh.data, fh.len);
	fh_close(&o);
	return fh;
}

static int try_open(struct ctx *c, const struct fh *fh, uint64_t *ret_ino)
{
	struct fh_obj o;
	int err = fh_open(c->s, fh->data, fh->len, &o);

	if (!err) {
		*ret_ino = o.stx.stx_ino;
		fh_close(&o);
	}
	return err;
}

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

static struct fh_set *set_with(struct ctx *c, const struct siphash_key *now,
			       const struct siphash_key *old, const char *dir)
{
	struct fh_keys keys = { .n = old ? 2 : 1 };
	struct fh_set *s;
	int map_err = 0;

	keys.v[0] = *now;
	if (old)
		keys.v[1] = *old;
	assert_int_equal(fh_set_create(&c->t, &keys, c->kind, dir, &map_err, &s), 0);
	assert_int_equal(map_err, 0);
	return s;
}

static int opens(struct fh_set *s, const struct fh *fh)
{
	struct fh_obj o;
	int err = fh_open(s, fh->data, fh->len, &o);

	if (!err)
		fh_close(&o);
	return err;
}

static void other_key(void **state)
{
	struct ctx *c = need(state);
	const char *map = tmp_dir_path(&c->dir, "map");
	struct siphash_key key = c->key;
	struct fh_set *other;
	struct fh_obj root, o;
	struct fh fh;
	int err;

	tmp_dir_write(&c->dir, "exp/f", "x");
	other = set_with(c, &c->key, NULL, map);
	assert_int_equal(fh_open_root(other, &c->t.v[0], &root), 0);
	assert_int_equal(fh_lookup(other, &root, "f", &o), 0);
	assert_int_equal(fh_make(other, &o, &fh), 0);
	fh_close(&o);
	fh_close(&root);
	fh_set_destroy(other);

	/* the same key, as after a restart */
	other = set_with(c, &c->key, NULL, map);
	assert_int_equal(opens(other, &fh), 0);
	fh_set_destroy(other);
	/* without the map a name is not known until it is seen */
	other = set_with(c, &c->key, NULL, NULL);
	assert_int_equal(opens(other, &fh), c->kind == FH_KERNEL ? 0 : -ESTALE);
	assert_int_equal(fh_open_root(other, &c->t.v[0], &root), 0);
	assert_int_equal(fh_lookup(other, &root, "f", &o), 0);
	fh_close(&o);
	fh_close(&root);
	assert_int_equal(opens(other, &fh), 0);
	fh_set_destroy(other);
	/* another one, and the first still accepted */
	key.k0++;
	other = set_with(c, &key, &c->key, map);
	assert_int_equal(opens(other, &fh), 0);
	fh.data[fh.len - 1] ^= 1;
	assert_int_equal(opens(other, &fh), -EBADF);
	fh.data[fh.len - 1] ^= 1;
	fh_set_destroy(other);
	/* and not any more */
	other = set_with(c, &key, NULL, map);
	err = opens(other, &fh);
	assert_true(err == -ESTALE || err == -EBADF);
	fh_set_destroy(other);
}

/* exports in this order, with these directories below that of the test */
static void open_table(struct ctx *c, const char *const (*spec)[2], size_t n,
		       struct export_table *ret)
{
	struct export_conf confs[4];
	char paths[4][512], why[256];

	for (size_t i = 0; i < n; i++) {
		export_conf_init(&confs[i]);
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", c->dir.path, spec[i][1]);
		confs[i].name = (char *)(uintptr_t)spec[i][0];
		confs[i].path = paths[i];
	}
	assert_int_equal(export_table_open(confs, n, ret, why, sizeof(why)), 0);
}

static void other_exports(void **state)
{
	static const char *const made_by[][2] = { { "/e", "exp" }, { "/o", "out" } };
	static const struct {
		const char *exports[3][2];
		size_t n;
		const char *moved; /* where exp is meanwhile */
		int want;
	} table[] = {
		{ { { "/e", "exp" }, { "/o", "out" } }, 2, NULL, 0 },
		{ { { "/o", "out" }, { "/e", "exp" } }, 2, NULL, 0 },
		{ { { "/new", "out" }, { "/o", "out" }, { "/e", "exp" } }, 3, NULL, 0 },
		{ { { "/e", "elsewhere" } }, 1, "elsewhere", 0 },
		/* no such export, two that have changed places, and a part of one */
		{ { { "/o", "out" } }, 1, NULL, -ESTALE },
		{ { { "/e", "out" }, { "/o", "exp" } }, 2, NULL, -ESTALE },
		{ { { "/e", "exp/d" } }, 1, NULL, -ESTALE },
	};
	struct ctx *c = need(state);
	const char *map = tmp_dir_path(&c->dir, "map");
	struct export_table was = c->t, t;
	struct fh_obj root, o;
	struct fh_set *s;
	struct fh fh;

	tmp_dir_mkdir(&c->dir, "exp/d");
	tmp_dir_write(&c->dir, "exp/f", "x");
	tmp_dir_write(&c->dir, "out/f", "another");
	open_table(c, made_by, 2, &t);
	c->t = t;
	s = set_with(c, &c->key, NULL, map);
	assert_int_equal(fh_open_root(s, &t.v[0], &root), 0);
	assert_int_equal(fh_lookup(s, &root, "f", &o), 0);
	assert_int_equal(fh_make(s, &o, &fh), 0);
	fh_close(&o);
	fh_close(&root);
	fh_set_destroy(s);
	export_table_close(&t);
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		if (table[i].moved)
			assert_int_equal(rename(tmp_dir_path(&c->dir, "exp"),
						tmp_dir_path(&c->dir, table[i].moved)),
					 0);
		open_table(c, table[i].exports, table[i].n, &t);
		c->t = t;
		s = set_with(c, &c->key, NULL, map);
		assert_int_equal(fh_open(s, fh.data, fh.len, &o), table[i].want);
		if (!table[i].want) {
			assert_string_equal(o.exp->conf.name, "/e");
			fh_close(&o);
		}
		fh_set_destroy(s);
		export_table_close(&t);
		if (table[i].moved)
			assert_int_equal(rename(tmp_dir_path(&c->dir, table[i].moved),
						tmp_dir_path(&c->dir, "exp")),
					 0);
	}
	c->t = was;
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
	/* by somebody else: found again by a lookup at the latest, with the handle it had */
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
	/* moved out by somebody: nothing in it, and nothing above it, is ours to show */
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

static void key_file(void **state)
{
	struct fh_keys a, b, c;
	struct tmp_dir t;
	struct stat st;

	(void)state;
	tmp_dir_create(&t);
	assert_int_equal(fh_key_load(tmp_dir_path(&t, "state"), &a), 0);
	assert_int_equal(fh_key_load(tmp_dir_path(&t, "state"), &b), 0);
	assert_int_equal(a.n, 1);
	assert_memory_equal(&a.v[0], &b.v[0], sizeof(a.v[0]));
	assert_int_equal(stat(tmp_dir_path(&t, "state/handle.key"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* nobody else's to read, or to replace */
	for (mode_t bit = 1; bit < 0100; bit <<= 1) {
		assert_int_equal(chmod(tmp_dir_path(&t, "state/handle.key"), 0600 | bit), 0);
		assert_int_equal(fh_key_load(tmp_dir_path(&t, "state"), &b), -EKEYREJECTED);
	}
	assert_int_equal(chmod(tmp_dir_path(&t, "state/handle.key"), 0600), 0);
	if (!geteuid()) {
		assert_int_equal(chown(tmp_dir_path(&t, "state/handle.key"), 65534, 0), 0);
		assert_int_equal(fh_key_load(tmp_dir_path(&t, "state"), &b), -EKEYREJECTED);
		assert_int_equal(chown(tmp_dir_path(&t, "state/handle.key"), 0, 0), 0);
	}
	/* another key takes over, and the first is remembered */
	assert_int_equal(rename(tmp_dir_path(&t, "state/handle.key"),
				tmp_dir_path(&t, "state/handle.key.old")),
			 0);
	assert_int_equal(fh_key_load(tmp_dir_path(&t, "state"), &b), 0);
	assert_int_equal(fh_key_load(tmp_dir_path(&t, "state"), &c), 0);
	assert_int_equal(b.n, 2);
	assert_memory_equal(&b.v[1], &a.v[0], sizeof(a.v[0]));
	assert_memory_not_equal(&b.v[0], &a.v[0], sizeof(a.v[0]));
	assert_memory_equal(&b, &c, sizeof(b));
	assert_int_equal(chmod(tmp_dir_path(&t, "state/handle.key.old"), 0640), 0);
	assert_int_equal(fh_key_load(tmp_dir_path(&t, "state"), &c), -EKEYREJECTED);
	assert_int_equal(unlink(tmp_dir_path(&t, "state/handle.key.old")), 0);
	assert_int_equal(fh_key_load(tmp_dir_path(&t, "state"), &c), 0);
	assert_int_equal(c.n, 1);
	assert_int_equal(unlink(tmp_dir_path(&t, "state/handle.key")), 0);
	assert_int_equal(symlink("/etc/hostname", tmp_dir_path(&t, "state/handle.key")), 0);
	assert_int_equal(fh_key_load(tmp_dir_path(&t, "state"), &c), -EINVAL);
	assert_int_equal(unlink(tmp_dir_path(&t, "state/handle.key")), 0);
	tmp_dir_write(&t, "state/handle.key", "short");
	assert_int_equal(fh_key_load(tmp_dir_path(&t, "state"), &a), -EINVAL);
	assert_int_equal(fh_key_load(tmp_dir_path(&t, "no/such"), &a), -ENOENT);
	tmp_dir_destroy(&t);
}

/* an export's handle in one view, to be opened in another */
static struct fh handle_in(struct fh_set *s, struct export *exp, const char *name)
{
	struct fh_obj root, o;
	struct fh fh;

	assert_int_equal(fh_open_root(s, exp, &root), 0);
	assert_int_equal(fh_lookup(s, &root, name, &o), 0);
	assert_int_equal(fh_make(s, &o, &fh), 0);
	fh_close(&o);
	fh_close(&root);
	return fh;
}

/* a map that is there only if somebody needs it, and then for all who come later */
static void views(void **state)
{
	static const char *const one[][2] = { { "/a", "exp" } };
	static const char *const two[][2] = { { "/b", "out" }, { "/a", "exp" } };
	struct ctx *c = need(state);
	char *file = strdup(tmp_dir_path(&c->dir, "map/handles.map"));
	char *dir = strdup(tmp_dir_path(&c->dir, "map"));
	struct fh_keys keys = { .v = { c->key }, .n = 1 };
	struct export_table none = { 0 }, t1, t2;
	struct fh_set *base, *rival, *empty, *v1, *v2;
	int map_err = 0;
	struct fh fh;

	assert_non_null(file);
	assert_non_null(dir);
	assert_int_equal(mkdir(dir, 0700), 0);
	tmp_dir_write(&c->dir, "exp/f", "x");
	open_table(c, one, 1, &t1);
	open_table(c, two, 2, &t2);
	assert_int_equal(fh_set_create(&none, &keys, c->kind, dir, &map_err, &base), 0);
	assert_int_equal(fh_set_view(base, &none, c->kind, true, &map_err, &empty), 0);
	fh_keep(empty);
	assert_int_equal(access(file, F_OK), -1);

	assert_int_equal(fh_set_view(base, &t1, c->kind, true, &map_err, &v1), 0);
	assert_int_equal(access(file, F_OK), c->kind == FH_MAP ? 0 : -1);
	fh = handle_in(v1, &t1.v[0], "f");
	fh_keep(v1);
	fh_keep(empty);
	assert_int_equal(opens(empty, &fh), -ESTALE);
	assert_int_equal(fh_set_view(base, &t2, c->kind, true, &map_err, &v2), 0);
	assert_int_equal(opens(v2, &fh), 0);
	fh_set_destroy(v1);
	assert_int_equal(opens(v2, &fh), 0);

	/* who must have the map does not go on without, and may try again */
	assert_int_equal(fh_set_create(&none, &keys, c->kind, dir, &map_err, &rival), 0);
	assert_int_equal(map_err, 0);
	if (c->kind == FH_MAP) {
		assert_int_equal(fh_set_view(rival, &t1, c->kind, true, &map_err, &v1), -EBUSY);
		assert_int_equal(map_err, -EBUSY);
	}
	fh_set_destroy(v2);
	fh_set_destroy(empty);
	fh_set_destroy(base);
	map_err = 0;
	assert_int_equal(fh_set_view(rival, &t1, c->kind, true, &map_err, &v1), 0);
	assert_int_equal(map_err, 0);
	assert_int_equal(opens(v1, &fh), 0);

	/* who need not has one for this run */
	assert_int_equal(fh_set_create(&none, &keys, c->kind, dir, &map_err, &base), 0);
	assert_int_equal(fh_set_view(base, &t2, c->kind, false, &map_err, &v2), 0);
	assert_int_equal(map_err, c->kind == FH_MAP ? -EBUSY : 0);
	fh = handle_in(v2, &t2.v[1], "f");
	assert_int_equal(opens(v2, &fh), 0);
	fh_set_destroy(v2);
	fh_set_destroy(base);
	fh_set_destroy(v1);
	fh_set_destroy(rival);
	export_table_close(&t1);
	export_table_close(&t2);
	free(file);
	free(dir);
}

#define BOTH(f)                                                                                    \
	{ #f " (kernel)", f, setup_kernel, teardown, NULL },                                       \
	{                                                                                          \
#f " (by name)", f, setup_map, teardown, NULL                                      \
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

/* where the directory of the export was, a symbolic link leads to where it is now */
static void export_moved(void **state)
{
	struct ctx *c = need(state);
	char from[512], to[512];
	struct fh fh, dir;
	struct fh_obj d;
	uint64_t ino;

	assert_int_equal(mkdir(in_exp(c, "d"), 0755), 0);
	tmp_dir_write(&c->dir, "exp/d/f", "x");
	dir = handle(c, &c->root, "d");
	assert_int_equal(fh_open(c->s, dir.data, dir.len, &d), 0);
	snprintf(from, sizeof(from), "%s", tmp_dir_path(&c->dir, "exp"));
	snprintf(to, sizeof(to), "%s", tmp_dir_path(&c->dir, "out/moved"));
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(symlink("out/moved", from), 0);
	assert_int_equal(try_open(c, &dir, &ino), 0);
	fh = handle(c, &d, "f");
	assert_int_equal(try_open(c, &fh, &ino), 0);
	/* what is outside still is */
	assert_int_equal(rename(tmp_dir_path(&c->dir, "out/moved/d"), tmp_dir_path(&c->dir, "out/d")), 0);
	assert_int_equal(try_open(c, &dir, &ino), -ESTALE);
	assert_int_equal(fh_check_dir(c->s, &d), -ESTALE);
	fh_close(&d);
	assert_int_equal(unlink(from), 0);
	assert_int_equal(rename(to, from), 0);
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
	assert_true(fh_map_count(c->s->map) < 100);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(finds),
		BOTH(forged),
		BOTH(stale),
		BOTH(other_key),
		BOTH(other_exports),
		BOTH(renamed),
		BOTH(linked),
		BOTH(stays_inside),
		BOTH(long_paths),
		BOTH(views),
		BOTH(called_deleted),
		BOTH(endless_paths),
		BOTH(export_moved),
		cmocka_unit_test_setup_teardown(forgets_removed, setup_map, teardown),
		cmocka_unit_test(mounts_not_crossed),
		cmocka_unit_test(key_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
