/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_layout.c - the layouts of the files of a volume, and the defaults of its directories, on disk
 *
 * Operation: Both are extended attributes (file_layout.h), set with XATTR_CREATE: of two callers one sets it, and the other
 *            one finds it. A layout is signed for the inode: its number, and a hash of the kernel's handle of the file,
 *            which no later file of that number has.
 * Memory:    The stack.
 * Threads:   Workers.
 * Errors:    -errno. Damaged attributes are logged, not more often than log_limit allows.
 */
#include "volume_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/siphash.h"
#include "export.h"
#include "vfs_int.h"
#include "volume_manager.h"

/* ---- the attribute -------------------------------------------------------------------------- */

static pthread_mutex_t *lock_of(const struct fh_obj *o)
{
	return &o->exp->manager->dir->locks[o->stx.stx_ino % VOLUME_LOCKS];
}

typedef ssize_t (*attribute_fn)(const struct fh_obj *o, void *bytes, size_t n);

/* The caller has the lock of the inode: else another one could take the mode of this moment for the file's own. */
static ssize_t with_bits(const struct fh_obj *o, attribute_fn fn, void *bytes, size_t n)
{
	char buf[VFS_PROC_PATH];
	const char *path = vfs_proc_path(o->fd, buf);
	struct statx stx;
	ssize_t rc;

	if (vfs_stat(o->fd, &stx) || stx.stx_uid != geteuid())
		return -EACCES;
	if (chmod(path, (stx.stx_mode & 07777u) | S_IRUSR | S_IWUSR))
		return -errno;
	rc = fn(o, bytes, n);
	(void)chmod(path, stx.stx_mode & 07777u); /* restores the mode; chmod() succeeded above */
	return rc;
}

/* A server that is not root needs the owner's mode bits for user.* of its own file. They are set only while @fn runs. */
static ssize_t as_owner(const struct fh_obj *o, attribute_fn fn, void *bytes, size_t n)
{
	ssize_t rc = fn(o, bytes, n);

	if (rc != -EACCES)
		return rc;
	pthread_mutex_lock(lock_of(o));
	rc = with_bits(o, fn, bytes, n);
	pthread_mutex_unlock(lock_of(o));
	return rc;
}

static ssize_t get_bytes(const struct fh_obj *o, void *bytes, size_t n)
{
	char buf[VFS_PROC_PATH];
	ssize_t got = getxattr(vfs_proc_path(o->fd, buf), o->exp->manager->dir->attribute, bytes, n);

	if (got < 0)
		return errno == ERANGE ? -EBADMSG : -errno;
	return got;
}

static ssize_t set_bytes(const struct fh_obj *o, void *bytes, size_t n)
{
	char buf[VFS_PROC_PATH];

	return setxattr(vfs_proc_path(o->fd, buf), o->exp->manager->dir->attribute, bytes, n, XATTR_CREATE) ? -errno : 0;
}

/* Return: 0; 1: it was set; -errno. One that is there stays */
static int add_bytes(const struct fh_obj *o, void *bytes, size_t n)
{
	ssize_t err = as_owner(o, set_bytes, bytes, n);

	return err == -EEXIST ? 0 : err ? (int)err : 1;
}

/* ---- layouts -------------------------------------------------------------------------------- */

/* File systems without handles have no generation: then a later file of the same number is taken for the first one. Another
 * failure must not look so, since a layout that was signed then would not be valid later. */
static int find_inode(const struct fh_obj *o, struct inode_id *ret)
{
	static const struct siphash_key no_secret;
	union {
		struct file_handle h;
		uint8_t room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} kh;
	int mount_id;

	memset(&kh, 0, sizeof(kh));
	kh.h.handle_bytes = MAX_HANDLE_SZ;
	*ret = (struct inode_id){ .ino = o->stx.stx_ino };
	if (!name_to_handle_at(o->fd, "", &kh.h, &mount_id, AT_EMPTY_PATH))
		ret->generation = siphash(&no_secret, kh.h.f_handle, MIN(kh.h.handle_bytes, (unsigned)MAX_HANDLE_SZ));
	else if (errno != EOPNOTSUPP)
		return -errno;
	return 0;
}

/* Fills in unit, width and servers, beginning at the next server. Return: 0; -ENOSPC: no server takes new files */
static int choose_servers(struct volume_manager *m, const struct dir_defaults *d, struct file_layout *l)
{
	unsigned full[VOLUME_SERVERS_MAX], n = volume_manager_full(m, full);
	unsigned first = atomic_fetch_add_explicit(&m->dir->turn, 1, memory_order_relaxed);

	if (!n)
		return -ENOSPC;
	l->at.unit = d->unit ? d->unit : m->unit;
	l->at.width = MIN(d->width ? d->width : m->width, n);
	for (uint32_t i = 0; i < l->at.width; i++)
		l->servers[i] = m->map.servers[full[(first % n + i) % n]].id;
	return 0;
}

/* Return: as add_bytes() */
static int add_layout(const struct fh_obj *o, const struct dir_defaults *d)
{
	struct volume_manager *m = o->exp->manager;
	struct file_layout l = { .volume = m->dir->volume, .epoch = 1 };
	uint8_t bytes[FILE_LAYOUT_MAX];
	struct inode_id inode;
	int err = find_inode(o, &inode);

	if (!err)
		err = choose_servers(m, d, &l);
	if (err)
		return err;
	if (getrandom(l.object, sizeof(l.object), 0) != (ssize_t)sizeof(l.object))
		return -EIO;
	return add_bytes(o, bytes, file_layout_encode(&m->keys, &inode, &l, bytes));
}

static void tell_damage(const struct fh_obj *o, int err)
{
	struct volume_dir *d = o->exp->manager->dir;
	bool tell;

	pthread_mutex_lock(&d->log_lock);
	tell = log_limit_ok(&d->damages);
	pthread_mutex_unlock(&d->log_lock);
	if (tell)
		log_err("volume %s: the layout of inode %llu is %s", o->exp->conf.name + 1, (unsigned long long)o->stx.stx_ino,
			err == -EKEYREJECTED ? "not signed for this file: it was copied, or signed with another key" : "damaged");
}

int volume_layout_read(const struct fh_obj *o, struct file_layout *ret)
{
	const struct volume_manager *m = o->exp->manager;
	uint8_t bytes[FILE_LAYOUT_MAX];
	ssize_t n = as_owner(o, get_bytes, bytes, sizeof(bytes));
	struct inode_id inode;
	int err = n < 0 ? (int)n : find_inode(o, &inode);

	if (!err)
		err = file_layout_decode(&m->keys, m->dir->volume, &inode, bytes, (size_t)n, ret);
	if (err == -EBADMSG || err == -EKEYREJECTED)
		tell_damage(o, err);
	return err;
}

int volume_layout_heal(const struct fh_obj *o)
{
	int rc = add_layout(o, &(struct dir_defaults){ 0, 0 });

	return rc == 1 ? vfs_sync(o) : rc;
}

/* ---- what is created ------------------------------------------------------------------------ */

/* Damaged defaults count as none: they choose the layout of new files, and permit nothing. */
static struct dir_defaults defaults_of(const struct fh_obj *dir)
{
	struct dir_defaults d = { 0, 0 };
	uint8_t bytes[DIR_DEFAULTS_BYTES];
	ssize_t n = as_owner(dir, get_bytes, bytes, sizeof(bytes));

	if (n >= 0 && dir_defaults_decode(bytes, (size_t)n, &d))
		d = (struct dir_defaults){ 0, 0 };
	return d;
}

int volume_layout_made(const struct fh_obj *dir, const struct fh_obj *o)
{
	struct dir_defaults d;
	uint8_t bytes[DIR_DEFAULTS_BYTES];

	if (S_ISREG(o->stx.stx_mode) && !o->stx.stx_size) {
		d = defaults_of(dir);
		return add_layout(o, &d);
	}
	if (!S_ISDIR(o->stx.stx_mode))
		return 0;
	d = defaults_of(dir);
	if (!d.unit && !d.width)
		return 0;
	dir_defaults_encode(&d, bytes);
	return add_bytes(o, bytes, sizeof(bytes));
}

/* ---- sizes ---------------------------------------------------------------------------------- */

/* Return: 0 or -errno */
static int raise_size(int fd, uint64_t bytes, const struct creds *cr, uint64_t *ret_bytes)
{
	const struct timespec now[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_NOW } };
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	*ret_bytes = MAX((uint64_t)st.st_size, bytes);
	if (*ret_bytes == (uint64_t)st.st_size)
		return futimens(fd, now) ? -errno : 0;
	err = creds_assume(cr);
	if (err)
		return err;
	err = ftruncate(fd, (off_t)bytes) ? -errno : 0;
	creds_resume();
	return err;
}

/* Of two reports of one file the smaller one must not come between the look and the change of the other one. Opening can
 * change the mode for a moment, as above. */
static int open_and_raise(const struct fh_obj *o, uint64_t bytes, const struct creds *cr, int *ret_fd, uint64_t *ret_bytes)
{
	int err = 0;

	pthread_mutex_lock(lock_of(o));
	*ret_fd = vfs_open_io(o, true);
	if (*ret_fd < 0)
		err = *ret_fd;
	if (!err)
		err = raise_size(*ret_fd, bytes, cr, ret_bytes);
	pthread_mutex_unlock(lock_of(o));
	return err;
}

int volume_raise(const struct fh_obj *o, uint64_t bytes, const struct creds *cr, uint64_t *ret_bytes)
{
	int fd = -1, err;

	if (bytes > INT64_MAX)
		return -EFBIG;
	err = open_and_raise(o, bytes, cr, &fd, ret_bytes);
	if (!err)
		err = vfs_sync_fd(o, fd);
	if (fd >= 0)
		close(fd);
	return err;
}
