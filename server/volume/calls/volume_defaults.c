/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_defaults.c - stripe unit and width of the new files of a directory
 *
 * Operation: An attribute of the directory has them. They are not signed: they choose the layout of new files, and permit
 *            nothing. A new directory inherits them.
 * Memory:    The stack.
 * Threads:   Workers.
 * Errors:    -errno. Damaged defaults count as none.
 */
#include "volume_defaults.h"

#include <errno.h>
#include <sys/stat.h>

#include "export.h"
#include "vfs.h"
#include "volume_layout.h"
#include "volume_manager.h"
#include "volumes.h"

static struct dir_defaults read_defaults(const struct volume_file *dir)
{
	struct dir_defaults d = { 0, 0 };
	uint8_t bytes[DIR_DEFAULTS_BYTES];
	ssize_t n = volume_attribute_get(dir, bytes, sizeof(bytes));

	if (n >= 0 && dir_defaults_decode(bytes, (size_t)n, &d))
		d = (struct dir_defaults){ 0, 0 };
	return d;
}

int volume_layout_made(const struct fh_obj *dir, const struct fh_obj *o, const void *how)
{
	struct volume_file f = volume_file_of(o), parent = volume_file_of(dir);
	const struct dir_defaults *own = how;
	uint8_t bytes[DIR_DEFAULTS_BYTES];
	struct dir_defaults d;

	if (S_ISREG(o->stx.stx_mode) && !o->stx.stx_size) {
		d = read_defaults(&parent);
		if (own && own->unit)
			d.unit = own->unit;
		if (own && own->width)
			d.width = own->width;
		return volume_layout_add(&f, &d);
	}
	if (!S_ISDIR(o->stx.stx_mode))
		return 0;
	d = read_defaults(&parent);
	if (!d.unit && !d.width)
		return 0;
	dir_defaults_encode(&d, bytes);
	return volume_attribute_add(&f, bytes, sizeof(bytes));
}

struct dir_defaults volume_defaults_get(const struct fh_obj *dir)
{
	struct volume_file f = volume_file_of(dir);

	return read_defaults(&f);
}

int volume_defaults_check(const struct fh_obj *dir, const struct dir_defaults *d)
{
	const struct layout at = { d->unit ? d->unit : LAYOUT_UNIT_MIN, d->width ? d->width : 1 };

	return layout_valid(&at) && d->width <= dir->exp->manager->map.n ? 0 : -EINVAL;
}

int volume_defaults_set(const struct fh_obj *dir, unsigned set, const struct dir_defaults *to, const struct creds *cr,
			struct dir_defaults *ret)
{
	struct volume_file f = volume_file_of(dir);
	uint8_t bytes[DIR_DEFAULTS_BYTES];
	struct dir_defaults d;
	int err = vfs_may_own(dir, cr);

	if (err)
		return err;
	volume_file_lock(&f);
	d = read_defaults(&f);
	if (set & VOLUME_SET_UNIT)
		d.unit = to->unit;
	if (set & VOLUME_SET_WIDTH)
		d.width = to->width;
	err = volume_defaults_check(dir, &d);
	dir_defaults_encode(&d, bytes);
	if (!err)
		err = volume_attribute_set(&f, bytes, sizeof(bytes));
	volume_file_unlock(&f);
	if (!err)
		*ret = d;
	return err;
}
