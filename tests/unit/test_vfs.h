/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_vfs.h - an export in a directory of its own, and what is synced in it
 */
#ifndef TEST_VFS_H
#define TEST_VFS_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/posix_acl.h>

#include <cmocka.h>

#include "kernel_has.h"
#include "tmp_dir.h"
#include "vfs.h"

struct ctx {
	struct tmp_dir dir;
	struct export_table t;
	struct fh_set *s;
	struct fh_obj root;
	struct creds me, other;
};

static inline int enter(void **state, enum fh_kind kind)
{
	struct ctx *c = calloc(1, sizeof(*c));
	struct siphash_key key;
	struct export_conf conf;
	char why[256];

	creds_init();
	umask(0);
	assert_int_equal(vfs_init(), 0);
	tmp_dir_create(&c->dir);
	export_conf_init(&conf);
	conf.name = (char[]){ "/e" };
	conf.path = c->dir.path;
	assert_int_equal(siphash_key_random(&key), 0);
	assert_int_equal(export_table_open(&conf, 1, &c->t, why, sizeof(why)), 0);
	assert_int_equal(fh_set_create(&c->t, &(struct fh_keys){ .v = { key }, .n = 1 }, kind, NULL, NULL, &c->s),
			 0);
	assert_int_equal(fh_open_root(c->s, &c->t.v[0], &c->root), 0);
	c->me = (struct creds){ .uid = geteuid(), .gid = getegid() };
	c->other = (struct creds){ .uid = 4711, .gid = 4712, .ngroups = 1, .groups = { 4713 } };
	*state = c;
	return 0;
}

static inline int setup(void **state)
{
	return enter(state, 0);
}

static inline int teardown(void **state)
{
	struct ctx *c = *state;

	fh_close(&c->root);
	fh_set_destroy(c->s);
	export_table_close(&c->t);
	tmp_dir_destroy(&c->dir);
	free(c);
	return 0;
}

static inline int create(struct ctx *c, const char *name, enum vfs_create how, const struct vfs_sattr *sa,
		  const uint8_t *verf, const struct creds *cr, struct stat *ret)
{
	struct vfs_sattr none = { 0 };
	struct vfs_made m;
	int err = vfs_create(c->s, &c->root, name, how, sa ? sa : &none, verf, cr, &m);

	if (err)
		return err;
	if (ret)
		assert_int_equal(stat(tmp_dir_path(&c->dir, name), ret), 0);
	assert_true(S_ISREG(m.obj.stx.stx_mode));
	vfs_made_close(&m);
	return 0;
}

static inline struct fh_obj find(struct ctx *c, const char *name)
{
	struct fh_obj o;

	assert_int_equal(vfs_lookup(c->s, &c->root, name, &c->me, &o), 0);
	return o;
}

#endif
