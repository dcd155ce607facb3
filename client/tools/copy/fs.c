/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fs.c - common functions for local files and files on a server
 *
 * Operation:  Each function calls libleat or the kernel, and returns -errno for both.
 * Memory:     As tool_list().
 * Threads:    Any: objects are shared only if the caller shares them.
 * Errors:     0 or -errno, never reported here.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fs.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* Linux 6.6, the same on all architectures except Alpha */
#endif

/* Return: -errno of a call that returned -1 */
static int sys(const char *operation, int rc)
{
	return rc < 0 ? tool_errno(operation) : 0;
}

struct fs_base fs_base(struct leat *m)
{
	return (struct fs_base){ .m = m, .dir = AT_FDCWD };
}

struct leat *fs_mount(struct fs_base b)
{
	int rc = b.remote ? leat_fchdir(b.m, b.remote) : 0;

	(void)rc; /* a mount and a directory: cannot fail */
	return b.m;
}

int fs_open(struct fs_base b, const char *path, int flags, mode_t mode, struct fs_file *ret)
{
	struct fs_file f = { .m = b.m, .fd = -1 };
	int rc;

	if (b.no_links)
		flags |= O_NOFOLLOW;
	if (b.m) {
		rc = leat_open(fs_mount(b), path, flags, mode, &f.remote);
		if (rc)
			return rc;
	} else {
		f.fd = openat(b.dir, path, flags | O_CLOEXEC, mode);
		if (f.fd < 0)
			return tool_errno("open");
	}
	*ret = f;
	return 0;
}

int fs_open_object(struct fs_base b, const char *path, struct fs_file *ret)
{
	int rc;

	b.no_links = true;
	rc = fs_open(b, path, O_PATH, 0, ret);
	if (!rc)
		ret->is_object = true;
	return rc;
}

int fs_open_inside(struct fs_base b, struct fs_file *ret)
{
	int rc = b.m ? -EACCES : fs_open(b, ".", O_RDONLY | O_DIRECTORY, 0, ret);

	return rc == -EACCES ? fs_open_object(b, ".", ret) : rc;
}

/* Reopens @object, found at @path of @b. Without /proc the name is opened again. */
static int reopen_regular(struct fs_base b, const char *path, const struct fs_file *object, struct fs_file *ret)
{
	struct fs_file f = { .fd = -1 };
	char proc[FS_PROC_BYTES];
	struct stat st;

	if (fstat(object->fd, &st))
		return tool_errno("stat");
	if (!S_ISREG(st.st_mode))
		return -ENXIO;
	f.fd = open(fs_proc_path(object, proc), O_RDONLY | O_CLOEXEC);
	if (f.fd < 0 && errno == ENOENT && access("/proc/self/fd", F_OK))
		return fs_open(b, path, O_RDONLY | O_NONBLOCK, 0, ret);
	if (f.fd < 0)
		return tool_errno("open");
	*ret = f;
	return 0;
}

int fs_open_regular(struct fs_base b, const char *path, struct fs_file *ret)
{
	struct fs_file object;
	int rc;

	if (b.m) /* libleat opens only these types */
		return fs_open(b, path, O_RDONLY, 0, ret);
	rc = fs_open(b, path, O_PATH, 0, &object);
	if (rc)
		return rc;
	rc = reopen_regular(b, path, &object, ret);
	close(object.fd);
	return rc;
}

int fs_std(int fd, struct fs_file *ret)
{
	struct fs_file f = { .is_stream = true };

	f.fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (f.fd < 0)
		return -errno;
	*ret = f;
	return 0;
}

int fs_close(struct fs_file *f)
{
	return f->m ? leat_close(f->remote) : sys("close", close(f->fd));
}

void fs_drop(struct fs_file *f)
{
	int rc = fs_close(f);

	(void)rc; /* reported, or nothing can be lost */
}

int fs_fsync(struct fs_file *f)
{
	return f->m ? leat_fsync(f->remote) : sys("fsync", fsync(f->fd));
}

int fs_fstat(struct fs_file *f, struct stat *ret)
{
	return f->m ? leat_fstat(f->remote, ret) : sys("stat", fstat(f->fd, ret));
}

int fs_ftruncate(struct fs_file *f, uint64_t size)
{
	return f->m ? leat_ftruncate(f->remote, size) : sys("ftruncate", ftruncate(f->fd, (off_t)size));
}

const char *fs_proc_path(const struct fs_file *f, char buf[FS_PROC_BYTES])
{
	snprintf(buf, FS_PROC_BYTES, "/proc/self/fd/%d", f->fd);
	return buf;
}

static int chmod_object(const struct fs_file *f, mode_t mode)
{
	char path[FS_PROC_BYTES];
	int rc = chmod(fs_proc_path(f, path), mode);

	/* without /proc; older kernels have no alternative */
	return rc && errno == ENOENT ? (int)syscall(SYS_fchmodat2, f->fd, "", mode, AT_EMPTY_PATH) : rc;
}

int fs_fchmod(struct fs_file *f, mode_t mode)
{
	if (f->m)
		return leat_fchmod(f->remote, mode);
	return sys("chmod", f->is_object ? chmod_object(f, mode) : fchmod(f->fd, mode));
}

int fs_fchown(struct fs_file *f, uid_t uid, gid_t gid)
{
	return f->m ? leat_fchown(f->remote, uid, gid) :
		      sys("chown", fchownat(f->fd, "", uid, gid, AT_EMPTY_PATH));
}

static int set_object_times(const struct fs_file *f, const struct timespec times[2])
{
	char path[FS_PROC_BYTES];
	int rc = utimensat(f->fd, "", times, AT_EMPTY_PATH);

	/* before Linux 5.8 */
	return rc && errno == EINVAL ? utimensat(AT_FDCWD, fs_proc_path(f, path), times, 0) : rc;
}

int fs_futimens(struct fs_file *f, const struct timespec times[2])
{
	if (f->m)
		return leat_futimens(f->remote, times);
	return sys("set times", f->is_object ? set_object_times(f, times) : futimens(f->fd, times));
}

int fs_stat(struct fs_base b, const char *path, struct stat *ret)
{
	if (b.no_links)
		return fs_lstat(b, path, ret);
	return b.m ? leat_stat(fs_mount(b), path, ret) : sys("stat", fstatat(b.dir, path, ret, 0));
}

int fs_lstat(struct fs_base b, const char *path, struct stat *ret)
{
	return b.m ? leat_lstat(fs_mount(b), path, ret) :
		     sys("stat", fstatat(b.dir, path, ret, AT_SYMLINK_NOFOLLOW));
}

int fs_mkdir(struct fs_base b, const char *path, mode_t mode)
{
	return b.m ? leat_mkdir(fs_mount(b), path, mode) : sys("mkdir", mkdirat(b.dir, path, mode));
}

int fs_unlink(struct fs_base b, const char *path)
{
	return b.m ? TOOL_AGAIN(leat_unlink(fs_mount(b), path)) : sys("unlink", unlinkat(b.dir, path, 0));
}

int fs_rmdir(struct fs_base b, const char *path)
{
	return b.m ? leat_rmdir(fs_mount(b), path) : sys("rmdir", unlinkat(b.dir, path, AT_REMOVEDIR));
}

int fs_rename(struct fs_base b, const char *from, const char *to)
{
	return b.m ? leat_rename(fs_mount(b), from, to) : sys("rename", renameat(b.dir, from, b.dir, to));
}

int fs_symlink(struct fs_base b, const char *target, const char *path)
{
	return b.m ? leat_symlink(fs_mount(b), target, path) : sys("symlink", symlinkat(target, b.dir, path));
}

int fs_readlink(struct fs_base b, const char *path, char *buf, size_t cap)
{
	ssize_t n;

	if (b.m) {
		n = leat_readlink(fs_mount(b), path, buf, cap);
		if (n < 0)
			return (int)n;
	} else {
		n = readlinkat(b.dir, path, buf, cap);
		if (n < 0)
			return tool_errno("readlink");
	}
	if ((size_t)n >= cap)
		return -ENAMETOOLONG;
	buf[n] = '\0';
	return 0;
}

int fs_mknod(struct fs_base b, const char *path, mode_t mode, dev_t dev)
{
	return b.m ? leat_mknod(fs_mount(b), path, mode, dev) : sys("mknod", mknodat(b.dir, path, mode, dev));
}

int fs_enter(struct fs_base b, const char *path, struct fs_base *ret)
{
	struct fs_base in = { .m = b.m, .dir = AT_FDCWD, .no_links = true };
	/* O_PATH: entering a directory needs no read permission */
	int flags = O_PATH | O_DIRECTORY | O_CLOEXEC | (b.no_links ? O_NOFOLLOW : 0);
	int rc;

	if (b.m) {
		rc = leat_open(fs_mount(b), path, flags, 0, &in.remote);
		if (rc)
			return rc;
	} else {
		in.dir = openat(b.dir, path, flags);
		if (in.dir < 0)
			return tool_errno("open");
	}
	*ret = in;
	return 0;
}

void fs_leave(struct fs_base *b)
{
	if (b->remote)
		(void)leat_close(b->remote); /* nothing was written */
	else if (b->dir >= 0)
		close(b->dir);
	*b = fs_base(b->m);
}

static int list_local(DIR *dir, struct tool_entries *ret)
{
	struct tool_entries e = { 0 };
	const struct dirent *ent;
	int err;

	while (errno = 0, (ent = readdir(dir)) != NULL) {
		struct tool_entry entry = { .name = ent->d_name };

		if (!strcmp(ent->d_name, ".") || !strcmp(ent->d_name, ".."))
			continue;
		if (fstatat(dirfd(dir), ent->d_name, &entry.st, AT_SYMLINK_NOFOLLOW) < 0)
			entry.err = tool_errno("stat");
		if (entry.err == -ENOENT) /* removed since the directory was read */
			continue;
		if (tool_entries_add(&e, &entry))
			break;
	}
	if (!errno) {
		*ret = e;
		return 0;
	}
	err = tool_errno("read directory");
	tool_entries_fini(&e);
	return err;
}

int fs_list(struct fs_base b, struct tool_entries *ret)
{
	struct fs_file f;
	DIR *dir;
	int rc;

	if (b.m)
		return tool_list(fs_mount(b), ".", ret);
	rc = fs_open(b, ".", O_RDONLY | O_DIRECTORY, 0, &f);
	if (rc)
		return rc;
	dir = fdopendir(f.fd);
	if (!dir) {
		rc = -errno;
		close(f.fd);
		return rc;
	}
	rc = list_local(dir, ret);
	closedir(dir);
	return rc;
}
