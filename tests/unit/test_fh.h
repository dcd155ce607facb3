/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_fh.h - exports below a directory of its own, and handles of what lies in them
 */
#ifndef TEST_FH_H
#define TEST_FH_H

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
#include "kernel_has.h"
#include "tmp_dir.h"

struct ctx {
	enum fh_kind kind;
	struct tmp_dir dir;
	struct export_table t;
	struct siphash_key key;
	struct fh_set *s;
	struct fh_obj root;
};

static inline int setup_kind(void **state, enum fh_kind kind)
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
	if (kind == FH_KERNEL && !kernel_has_handles(c->dir.path))
		return 0; /* need() skips the test */
	assert_int_equal(fh_set_create(&c->t, &(struct fh_keys){ .v = { c->key }, .n = 1 }, kind, NULL, NULL, &c->s),
			 0);
	assert_int_equal(c->t.v[0].fh_kind, kind);
	assert_int_equal(fh_open_root(c->s, &c->t.v[0], &c->root), 0);
	return 0;
}

static inline int setup_kernel(void **state)
{
	return setup_kind(state, FH_KERNEL);
}

static inline int setup_map(void **state)
{
	return setup_kind(state, FH_MAP);
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

static inline struct ctx *need(void **state)
{
	struct ctx *c = *state;

	if (!c->s)
		skip();
	return c;
}

static inline const char *in_exp(struct ctx *c, const char *name)
{
	char buf[512];

	snprintf(buf, sizeof(buf), "exp/%s", name);
	return tmp_dir_path(&c->dir, buf);
}

static inline struct fh handle(struct ctx *c, const struct fh_obj *dir, const char *name)
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

static inline int try_open(struct ctx *c, const struct fh *fh, uint64_t *ret_ino)
{
	struct fh_obj o;
	int err = fh_open(c->s, fh->data, fh->len, &o);

	if (!err) {
		*ret_ino = o.stx.stx_ino;
		fh_close(&o);
	}
	return err;
}

#define BOTH(f)                                                                                    \
	{ #f " (kernel)", f, setup_kernel, teardown, NULL },                                       \
	{                                                                                          \
#f " (by name)", f, setup_map, teardown, NULL                                      \
	}

#endif
