/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_layout.c - the layouts of the files of a volume, on disk
 *
 * Operation: A layout is an extended attribute (file_layout.h). It is signed for the inode: its number, and a hash of the
 *            kernel's handle of the file, which no later file of that number has. What changes a layout, a size or the links
 *            of a file has the lock of the inode. A caller that finds FILE_CUT_SIZE completes the size first (volume_cut.c).
 * Memory:    The stack.
 * Threads:   Workers, and the thread of pending work.
 * Errors:    -errno. Damaged attributes are logged, not more often than log_limit allows.
 */
#include "volume_layout.h"

#include <errno.h>

#include "export.h"
#include "inode_id.h"
#include "vfs_int.h"
#include "volume_pending.h"
#include "volume_todo.h"

static void log_damage(const struct volume_file *f, int err)
{
	struct volume_dir *d = f->m->dir;

	if (log_limit_ok_under(&d->log_lock, &d->damages))
		log_err("volume %s: the layout of inode %llu is %s", f->m->name + 1, (unsigned long long)f->ino,
			err == -EKEYREJECTED ? "not signed for this file: it was copied, or signed with another key" : "damaged");
}

int volume_layout_read(const struct volume_file *f, struct file_layout *ret)
{
	const struct volume_manager *m = f->m;
	uint8_t bytes[FILE_LAYOUT_MAX];
	ssize_t n = volume_attribute_get(f, bytes, sizeof(bytes));
	struct inode_id inode;
	int err = n < 0 ? (int)n : inode_id_find(f->fd, f->ino, &inode);

	if (!err)
		err = file_layout_decode(&m->keys, m->dir->volume, &inode, bytes, (size_t)n, ret);
	if (err == -EBADMSG || err == -EKEYREJECTED)
		log_damage(f, err);
	return err;
}

int volume_layout_put(const struct volume_file *f, const struct file_layout *l)
{
	uint8_t bytes[FILE_LAYOUT_MAX];
	struct inode_id inode;
	int err = inode_id_find(f->fd, f->ino, &inode);

	if (err)
		return err;
	return volume_attribute_replace(f, bytes, file_layout_encode(&f->m->keys, &inode, l, bytes));
}

int volume_layout_complete(const struct volume_file *f, struct file_layout *ret)
{
	int err = volume_layout_read(f, ret);

	if (err || ret->cut != FILE_CUT_SIZE)
		return err;
	err = volume_file_resize(f, ret->cut_bytes);
	if (!err)
		err = volume_file_sync(f);
	ret->cut = FILE_CUT_FENCE;
	return err ? err : volume_layout_put(f, ret);
}

int volume_layout_removed(const struct volume_file *f, const struct file_layout *l)
{
	struct statx stx;
	int err = vfs_stat(f->fd, &stx);

	return err ? err : !stx.stx_nlink || (stx.stx_nlink == 1 && volume_todo_is_linked(f, l));
}

int volume_layout_ensure(const struct volume_file *f, bool heals, struct file_layout *ret, uint64_t *ret_bytes)
{
	struct statx stx;
	int err = volume_layout_complete(f, ret), rc;

	if (!err)
		err = vfs_stat(f->fd, &stx);
	else if (err == -ENODATA && !vfs_stat(f->fd, &stx) && !stx.stx_size && heals) {
		rc = volume_layout_add(f, &(struct dir_defaults){ 0, 0 });
		err = rc == 1 ? volume_file_sync(f) : rc;
		if (!err)
			err = volume_layout_complete(f, ret);
	}
	if (!err) {
		*ret_bytes = stx.stx_size;
		rc = volume_layout_removed(f, ret);
		err = rc == 1 ? -ESTALE : rc;
	}
	return err;
}

int volume_layout_for_client(const struct fh_obj *o, const struct volume_lessee *by, struct file_layout *ret, uint64_t *ret_bytes)
{
	struct volume_file f = volume_file_of(o);
	int rc;

	volume_file_lock(&f);
	rc = volume_layout_ensure(&f, !o->exp->conf.ro, ret, ret_bytes);
	if (!rc)
		rc = volume_lease_begin(&f, ret, by);
	volume_file_unlock(&f);
	if (rc == 1)
		volume_pending_wake(f.m->dir->pending);
	return rc == 1 ? 0 : rc;
}

int volume_layout_for_manager(const struct volume_file *f, bool heals, struct file_layout *ret)
{
	uint64_t bytes;
	int err;

	volume_file_lock(f);
	err = volume_layout_ensure(f, heals, ret, &bytes);
	volume_file_unlock(f);
	return err;
}
