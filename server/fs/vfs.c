/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * vfs.c - reads and changes file attributes with NFS semantics
 *
 * Operation: a file is an O_PATH descriptor (fh.c). Steps that depend on the caller's rights run inside
 *            creds_assume(). Steps that the server needs for itself (opening a descriptor to read or sync)
 *            run outside. Contents are opened through /proc/self/fd, which finds the same file even after
 *            a rename.
 * Memory:    none; descriptors are the caller's.
 * Threads:   workers, since file systems block. Reactors call vfs_stat() and vfs_check_name(), only of file systems that
 *            answer from memory.
 *            One lock is over changes of modes, and only of a leatd that is not root.
 * Errors:    -errno of the system, converted to a status in one place (nfs3_conv.c). A shortage that
 *            occurs after a change is EIO: vfs_after().
 * See:       vfs_name.c for creating and removing names.
 */
#include "vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fsync_batch.h"
#include "dir_watch.h"
#include "nfs_errno.h"
#include "vfs_int.h"

const char *vfs_proc_path(int fd, char buf[VFS_PROC_PATH])
{
	(void)snprintf(buf, VFS_PROC_PATH, "/proc/self/fd/%d", fd);
	return buf;
}

int vfs_reopen(int path_fd, int flags)
{
	char buf[VFS_PROC_PATH];
	int fd = open(vfs_proc_path(path_fd, buf), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd >= 0 ? fd : -errno;
}

int vfs_init(void)
{
	int fd = open("/", O_PATH | O_CLOEXEC), again;

	if (fd < 0)
		return -errno;
	again = vfs_reopen(fd, O_RDONLY | O_DIRECTORY);
	close(fd);
	if (again < 0)
		return again;
	close(again);
	return 0;
}

int vfs_check_name(const char *name)
{
	if (!*name || strchr(name, '/'))
		return -EACCES;
	return strlen(name) > VFS_NAME_MAX ? -ENAMETOOLONG : 0;
}

/* with the rights of the thread: AT_EACCESS makes the kernel check fsuid, not the real uid */
static bool can(int fd, int mode)
{
	return syscall(SYS_faccessat2, fd, "", mode, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

int vfs_access(const struct fh_obj *o, const struct creds *cr, int mask, int *ret)
{
	static const int modes[] = { R_OK, W_OK, X_OK };
	int got = 0;
	int err = creds_assume(cr);

	if (err)
		return err;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (mask & modes[i] && can(o->fd, modes[i]))
			got |= modes[i];
	}
	creds_resume();
	*ret = got;
	return 0;
}

static bool is_owner(const struct fh_obj *o, const struct creds *cr)
{
	return o->stx.stx_uid == (creds_can_assume() ? cr->uid : geteuid());
}

int vfs_may_io(const struct fh_obj *o, const struct creds *cr, bool write)
{
	int got, err;

	if (!S_ISREG(o->stx.stx_mode))
		return -EINVAL;
	if (is_owner(o, cr))
		return 0;
	err = vfs_access(o, cr, write ? W_OK : R_OK | X_OK, &got);
	return err ? err : got ? 0 : -EACCES;
}

/* ---- the owner's files ---------------------------------------------------------------------- */

/* Over the mode bits of all files. Only a leatd that is not root needs it. */
static pthread_mutex_t modes = PTHREAD_MUTEX_INITIALIZER;

void vfs_lock_modes(void)
{
	if (!creds_can_assume())
		pthread_mutex_lock(&modes);
}

void vfs_unlock_modes(void)
{
	if (!creds_can_assume())
		pthread_mutex_unlock(&modes);
}

/* Sets the owner's bits while @fn runs. What @fn itself took away, set-id bits, does not come back. */
static ssize_t with_bits(int fd, ssize_t (*fn)(int fd, void *arg), void *arg)
{
	char buf[VFS_PROC_PATH];
	const char *path = vfs_proc_path(fd, buf);
	struct statx stx;
	unsigned added;
	ssize_t rc;

	if (vfs_stat(fd, &stx) || stx.stx_uid != geteuid())
		return -EACCES;
	added = (S_IRUSR | S_IWUSR) & ~(unsigned)stx.stx_mode;
	if (chmod(path, (stx.stx_mode & 07777u) | added))
		return -errno;
	rc = fn(fd, arg);
	if (!vfs_stat(fd, &stx))
		(void)chmod(path, stx.stx_mode & 07777u & ~added); /* chmod() succeeded above */
	return rc;
}

ssize_t vfs_as_owner(int fd, ssize_t (*fn)(int fd, void *arg), void *arg)
{
	ssize_t rc = fn(fd, arg);

	if (rc != -EACCES || creds_can_assume())
		return rc;
	vfs_lock_modes();
	rc = with_bits(fd, fn, arg);
	vfs_unlock_modes();
	return rc;
}

static ssize_t reopen(int fd, void *flags)
{
	return vfs_reopen(fd, *(const int *)flags);
}

int vfs_open_io(const struct fh_obj *o, bool write)
{
	int flags = write ? O_RDWR : O_RDONLY;

	return S_ISREG(o->stx.stx_mode) ? (int)vfs_as_owner(o->fd, reopen, &flags) : -EINVAL;
}

/* ---- directories, names and links ------------------------------------------------------------- */

int vfs_open_dir(const struct fh_obj *o, const struct creds *cr)
{
	int got, err;

	if (!S_ISDIR(o->stx.stx_mode))
		return -ENOTDIR;
	err = vfs_access(o, cr, R_OK, &got);
	if (err)
		return err;
	return got ? vfs_reopen(o->fd, O_RDONLY | O_DIRECTORY) : -EACCES;
}

int vfs_lookup(struct fh_set *s, const struct fh_obj *dir, const char *name, const struct creds *cr,
	       struct fh_obj *ret)
{
	int err = vfs_check_name(name);

	if (!err)
		err = creds_assume(cr);
	if (err)
		return err;
	err = fh_lookup(s, dir, name, ret);
	creds_resume();
	return err;
}

int vfs_readlink(const struct fh_obj *o, char *buf, size_t cap, uint32_t *ret_len)
{
	ssize_t n;

	if (!S_ISLNK(o->stx.stx_mode))
		return -EINVAL;
	n = readlinkat(o->fd, "", buf, cap);
	if (n < 0)
		return -errno;
	if ((size_t)n == cap)
		return -ENAMETOOLONG;
	*ret_len = (uint32_t)n;
	return 0;
}

/* ---- durability --------------------------------------------------------------------------- */

int vfs_after(int err)
{
	return nfs3_status(err) == NFS3ERR_JUKEBOX ? -EIO : err;
}

static int sync_fs_of(const struct fh_obj *o)
{
	int err = syncfs(o->exp->root_fd) ? -errno : 0;

	if (err)
		fsync_batch_lost(o->exp->backing.fsyncs, stx_dev(&o->stx));
	return err;
}

static int sync_fd(const struct fh_obj *o, int fd)
{
	int err = fsync(fd) ? -errno : 0;

	if (err && err != -EINVAL)
		fsync_batch_lost(o->exp->backing.fsyncs, stx_dev(&o->stx));
	return err;
}

int vfs_write_back(const struct fh_obj *o, int fd)
{
	return vfs_after(sync_fd(o, fd));
}

/* The kernel reports a loss of data once, to the first caller of fsync(). The clients that wrote the data learn of it
 * by the write verifier. */
int vfs_sync_fd(const struct fh_obj *o, int fd)
{
	return o->exp->conf.async ? 0 : vfs_after(sync_fd(o, fd));
}

/* Syncs the whole file system of a file that cannot be opened: a device or pipe (side effects), missing rights, or no
 * descriptor. */
static int sync_now(const void *arg)
{
	const struct fh_obj *o = arg;
	int fd, err;

	if (!S_ISREG(o->stx.stx_mode) && !S_ISDIR(o->stx.stx_mode))
		return sync_fs_of(o);
	fd = vfs_reopen(o->fd, O_RDONLY);
	if (fd < 0)
		return sync_fs_of(o);
	err = sync_fd(o, fd);
	close(fd);
	return err == -EINVAL ? sync_fs_of(o) : err;
}

int vfs_sync(const struct fh_obj *o)
{
	if (o->exp->conf.async)
		return 0;
	if (!S_ISDIR(o->stx.stx_mode))
		return vfs_after(sync_now(o));
	return vfs_after(fsync_batch_run(o->exp->backing.fsyncs, stx_dev(&o->stx), o->stx.stx_ino, sync_now, o));
}

/* ---- attributes --------------------------------------------------------------------------- */

static int set_owner(const struct fh_obj *o, const struct vfs_sattr *sa)
{
	uid_t uid = sa->set & VFS_SET_UID ? sa->uid : (uid_t)-1;
	gid_t gid = sa->set & VFS_SET_GID ? sa->gid : (gid_t)-1;

	return fchownat(o->fd, "", uid, gid, AT_EMPTY_PATH) ? -errno : 0;
}

static int set_mode(const struct fh_obj *o, uint32_t mode)
{
	char buf[VFS_PROC_PATH];
	int err;

	if (S_ISLNK(o->stx.stx_mode)) /* links have no useful ones */
		return 0;
	vfs_lock_modes();
	err = chmod(vfs_proc_path(o->fd, buf), mode & 07777u) ? -errno : 0;
	vfs_unlock_modes();
	return err;
}

static int set_times(const struct fh_obj *o, const struct vfs_sattr *sa)
{
	const struct timespec omit = { .tv_nsec = UTIME_OMIT };
	struct timespec ts[2] = {
		sa->set & VFS_SET_ATIME ? sa->atime : omit,
		sa->set & VFS_SET_MTIME ? sa->mtime : omit,
	};

	return utimensat(o->fd, "", ts, AT_EMPTY_PATH) ? -errno : 0;
}

#define SET_OWNER (VFS_SET_UID | VFS_SET_GID)
#define SET_TIMES (VFS_SET_ATIME | VFS_SET_MTIME)

/* Are all times to be set to "now" by the server's clock? A caller with write permission may do that, because a write
 * does it as well. Other times are for the owner. */
static bool is_touch(const struct vfs_sattr *sa)
{
	return sa->set & SET_TIMES &&
	       (!(sa->set & VFS_SET_ATIME) || sa->atime.tv_nsec == UTIME_NOW) &&
	       (!(sa->set & VFS_SET_MTIME) || sa->mtime.tv_nsec == UTIME_NOW);
}

/* A new size sets mtime to "now" by itself. To set atime, write permission suffices only if mtime is set to "now" in
 * the same system call. */
static void merge_times(struct vfs_sattr *sa)
{
	if (!(sa->set & VFS_SET_SIZE) || !is_touch(sa))
		return;
	if (sa->set & VFS_SET_ATIME) {
		sa->set |= VFS_SET_MTIME;
		sa->mtime = sa->atime;
	} else {
		sa->set &= ~(unsigned)VFS_SET_MTIME;
	}
}

static bool is_member(const struct creds *cr, gid_t gid)
{
	return creds_can_assume() ? creds_has_group(cr, gid) : group_member(gid);
}

/* The kernel's rules for the attributes of @sa (setattr_prepare() in fs/attr.c). Runs as the caller. */
static int check_rights(const struct fh_obj *o, const struct vfs_sattr *sa, const struct creds *cr)
{
	bool owns = is_owner(o, cr), acts_as_owner = owns || creds_has_cap(CAP_FOWNER);

	if (sa->set & SET_OWNER && !creds_has_cap(CAP_CHOWN)) {
		if (sa->set & VFS_SET_UID && !(owns && sa->uid == o->stx.stx_uid))
			return -EPERM;
		if (sa->set & VFS_SET_GID &&
		    !(owns && (sa->gid == o->stx.stx_gid || is_member(cr, sa->gid))))
			return -EPERM;
	}
	if (sa->set & VFS_SET_MODE && !S_ISLNK(o->stx.stx_mode) && !acts_as_owner)
		return -EPERM;
	return sa->set & SET_TIMES && !is_touch(sa) && !acts_as_owner ? -EPERM : 0;
}

/* The kernel sets a single time to "now" for the owner only; RFC 1813 and other servers do it for a writer. Runs as
 * the caller. Return: 0: the caller can do it; 1: the server must do it; -EACCES. */
static int check_touch(const struct fh_obj *o, const struct vfs_sattr *sa, const struct creds *cr)
{
	if (!is_touch(sa) || is_owner(o, cr) || creds_has_cap(CAP_FOWNER))
		return 0;
	if (!(sa->set & VFS_SET_SIZE) && !can(o->fd, W_OK)) /* a size was checked already */
		return -EACCES;
	return (sa->set & SET_TIMES) != SET_TIMES;
}

int vfs_may_own(const struct fh_obj *o, const struct creds *cr)
{
	int err = creds_assume(cr);

	if (err)
		return err;
	if (!is_owner(o, cr) && !creds_has_cap(CAP_FOWNER))
		err = -EPERM;
	creds_resume();
	return err;
}

static bool has_several(const struct vfs_sattr *sa)
{
	return !!(sa->set & SET_OWNER) + !!(sa->set & VFS_SET_SIZE) + !!(sa->set & VFS_SET_MODE) +
		       !!(sa->set & SET_TIMES) > 1;
}

/* Makes all checks that can refuse the change in advance. Return: 0; 1: set_times() with the server's rights; -errno.
 * With a size *@ret_fd is open for writing. */
static int check_all(const struct fh_obj *o, const struct vfs_sattr *sa, const struct creds *cr,
		     int *ret_fd)
{
	int err = 0;

	if ((sa->set & VFS_SET_UID && sa->uid == UINT32_MAX) ||
	    (sa->set & VFS_SET_GID && sa->gid == UINT32_MAX))
		return -EINVAL;
	if (sa->set & VFS_SET_SIZE && S_ISDIR(o->stx.stx_mode))
		return -EISDIR;
	if (sa->set & VFS_SET_SIZE && sa->size > INT64_MAX)
		return -EFBIG;
	if (sa->set & VFS_SET_SIZE)
		err = vfs_may_io(o, cr, true);
	if (!err)
		err = creds_assume(cr);
	if (err)
		return err;
	/* the kernel itself checks a single attribute, because a file system may have its own rules */
	if (has_several(sa))
		err = check_rights(o, sa, cr);
	if (!err)
		err = check_touch(o, sa, cr);
	creds_resume();
	if (err >= 0 && sa->set & VFS_SET_SIZE) {
		*ret_fd = vfs_open_io(o, true);
		if (*ret_fd < 0)
			err = *ret_fd;
	}
	return err;
}

/* The owner comes first, because a quota may refuse it, and a truncated file cannot be restored. A new owner and a new
 * size clear set-id bits, so the mode comes after them. All of these change times, so the times come last. */
int vfs_apply(const struct fh_obj *o, const struct vfs_sattr *sattr, const struct creds *cr)
{
	struct vfs_sattr sa = *sattr;
	int fd = -1, how, err;

	merge_times(&sa);
	how = check_all(o, &sa, cr, &fd);
	err = how < 0 ? how : creds_assume(cr);
	if (!err) {
		if (sa.set & SET_OWNER)
			err = set_owner(o, &sa);
		if (!err && sa.set & VFS_SET_SIZE)
			err = ftruncate(fd, (off_t)sa.size) ? -errno : 0;
		if (!err && sa.set & VFS_SET_MODE)
			err = set_mode(o, sa.mode);
		if (!err && sa.set & SET_TIMES && !how)
			err = set_times(o, &sa);
		creds_resume();
	}
	if (!err && how == 1)
		err = set_times(o, &sa);
	if (fd >= 0)
		close(fd);
	return err;
}

int vfs_setattr(const struct fh_obj *o, const struct vfs_sattr *sa, const struct creds *cr)
{
	int err;

	if (!sa->set)
		return 0;
	err = vfs_apply(o, sa, cr);
	return err ? err : vfs_sync(o);
}
