/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_fh_set.c - sets of file handles: keys, exports and views of a server
 */
#include "test_fh.h"

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
	/* without the map a handle by name opens after a lookup only */
	other = set_with(c, &c->key, NULL, NULL);
	assert_int_equal(opens(other, &fh), c->kind == FH_KERNEL ? 0 : -ESTALE);
	assert_int_equal(fh_open_root(other, &c->t.v[0], &root), 0);
	assert_int_equal(fh_lookup(other, &root, "f", &o), 0);
	fh_close(&o);
	fh_close(&root);
	assert_int_equal(opens(other, &fh), 0);
	fh_set_destroy(other);
	/* a new key, and the old one is still accepted */
	key.k0++;
	other = set_with(c, &key, &c->key, map);
	assert_int_equal(opens(other, &fh), 0);
	fh.data[fh.len - 1] ^= 1;
	assert_int_equal(opens(other, &fh), -EBADF);
	fh.data[fh.len - 1] ^= 1;
	fh_set_destroy(other);
	/* the old key is not accepted any more */
	other = set_with(c, &key, NULL, map);
	err = opens(other, &fh);
	assert_true(err == -ESTALE || err == -EBADF);
	fh_set_destroy(other);
}

/* Opens a table of exports in this order; the directories are below that of the test. */
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
		const char *moved; /* the new name of exp, or NULL */
		int want;
	} table[] = {
		{ { { "/e", "exp" }, { "/o", "out" } }, 2, NULL, 0 },
		{ { { "/o", "out" }, { "/e", "exp" } }, 2, NULL, 0 },
		{ { { "/new", "out" }, { "/o", "out" }, { "/e", "exp" } }, 3, NULL, 0 },
		{ { { "/e", "elsewhere" } }, 1, "elsewhere", 0 },
		/* no such export; two that are exchanged; a directory inside an export */
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
	/* the key is refused if other users can read or replace it */
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
	/* a new key is generated, and the old one is kept */
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

/* Returns a handle of @exp that one view has made, for another view to open. */
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

/* The map is opened for the first view that needs it, and later views share it. */
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

	/* a view that must have the map fails without it, and a second attempt may succeed */
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

	/* a view that need not keep the map gets a temporary one */
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

/* The directory of the export was renamed, and a symbolic link leads from the old name to the new one. */
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
	/* a directory that was moved out of the export is still outside */
	assert_int_equal(rename(tmp_dir_path(&c->dir, "out/moved/d"), tmp_dir_path(&c->dir, "out/d")), 0);
	assert_int_equal(try_open(c, &dir, &ino), -ESTALE);
	assert_int_equal(fh_check_dir(c->s, &d), -ESTALE);
	fh_close(&d);
	assert_int_equal(unlink(from), 0);
	assert_int_equal(rename(to, from), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(other_key),
		BOTH(other_exports),
		BOTH(views),
		BOTH(export_moved),
		cmocka_unit_test(key_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
