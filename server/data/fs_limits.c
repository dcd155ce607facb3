/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fs_limits.c - limits of the file system of an export, for FSINFO and PATHCONF
 *
 * Operation: no system call returns the maximum file size or the time granularity. But lseek() refuses
 *            offsets beyond the maximum, and a time that was set can be read back. Both are tried on a
 *            file without a name (O_TMPFILE), which leaves nothing behind and changes no directory. If
 *            O_TMPFILE is not supported (vfat, exfat, overlayfs before Linux 6.3, read-only mounts),
 *            lseek() on the directory is tried, which may allow more than a file can hold. Otherwise only
 *            the type of the file system is known.
 *            An overlay allows any offset, whatever file system is below it, but it returns the block size
 *            of that. If files can be written, the size of 2^32 - 1 blocks is reported: this is the limit
 *            of ext4, and other file systems allow more.
 *            File systems with a journal or a log write metadata changes in order. So a name that is on
 *            disk leads to an inode that is on disk, too. This depends on the type, and for ext on whether
 *            this one has a journal: ext2, ext3 and ext4 share one magic number.
 *            The contents of a block device are in the page cache of the kernel, and reads of it wait for no one
 *            unless they have to. Its name is in another file system, which has its access time.
 *            Whether lseek() can be trusted about holes depends on the type as well. A file of ext4 in the format
 *            of ext3, with a list of blocks instead of extents, gets blocks at the write-back. Until then Linux 6.18
 *            says that there is a hole (6.1 does not). An overlay may be on top of such files.
 *            An export is on one mount, so the results for its directory apply to all its files. glibc's
 *            pathconf() knows the maximum number of links for most types; types that it takes for a minix
 *            of 1991 are listed here.
 * Memory:    the caller's.
 * Threads:   any thread that opens exports, before they are in service.
 * Errors:    none: unknown limits get the usual values.
 */
#include "fs_limits.h"

#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <linux/fs.h>
#include <linux/magic.h>

#include "base/util.h"

/* missing in some versions of <linux/magic.h> */
#define MAGIC_EXT 0xef53
#define MAGIC_VFAT 0x4d44
#define MAGIC_EXFAT 0x2011bab0
#define MAGIC_BTRFS 0x9123683e
#define MAGIC_RAMFS 0x858458f6
#define MAGIC_F2FS 0xf2f52010

/* struct fs_type.flags */
enum {
	/* its directories are changed only by this kernel's VFS, which notifies inotify: not so on a network, in user
	 * space, layered on others, or with what can be rolled back */
	FS_LOCAL = 1u << 0,
	FS_AT_ONCE = 1u << 1, /* answers_at_once */
	FS_ORDERS = 1u << 2,  /* orders_names */
	FS_MEMORY = 1u << 3,  /* in_memory */
	FS_FAT = 1u << 4,
	FS_SECONDS = 1u << 5, /* times have no fractions */
	FS_HOLES = 1u << 6,   /* tells_holes */
	FS_EXTENTS = 1u << 7, /* converts */
};

/* Unknown types do not answer at once: a FUSE process may be stopped, another host may be down, and an overlay may be
 * on top of either. */
static const struct fs_type {
	long magic;
	unsigned flags;
	uint32_t links_max; /* 0: pathconf() */
} types[] = {
	{ MAGIC_EXT, FS_LOCAL | FS_AT_ONCE, 0 }, /* FS_ORDERS with a journal; FS_HOLES and FS_EXTENTS: of a file */
	{ MAGIC_BTRFS, FS_LOCAL | FS_AT_ONCE | FS_ORDERS | FS_HOLES | FS_EXTENTS, 65535 },
	{ XFS_SUPER_MAGIC, FS_LOCAL | FS_AT_ONCE | FS_ORDERS | FS_HOLES | FS_EXTENTS, 0 },
	/* no data survives a reboot, and a sync does nothing; links are limited by memory only */
	{ TMPFS_MAGIC, FS_LOCAL | FS_AT_ONCE | FS_ORDERS | FS_MEMORY | FS_HOLES, INT32_MAX },
	{ MAGIC_RAMFS, FS_AT_ONCE | FS_ORDERS | FS_MEMORY, 0 },
	{ MAGIC_F2FS, FS_AT_ONCE | FS_ORDERS, 0 },
	{ MAGIC_VFAT, FS_FAT, 1 },
	{ MAGIC_EXFAT, FS_FAT, 1 },
	{ ISOFS_SUPER_MAGIC, FS_SECONDS, 0 },
	{ 0, 0, 0 }, /* all others */
};

static const struct fs_type *find_type(long magic)
{
	const struct fs_type *t = types;

	while (t->magic && t->magic != magic)
		t++;
	return t;
}

/* The largest offset that lseek() accepts; it checks only the number. */
static uint64_t seek_max(int fd)
{
	uint64_t good = 0, bad = (uint64_t)INT64_MAX + 1;

	while (bad - good > 1) {
		uint64_t mid = good + (bad - good) / 2;

		if (lseek(fd, (off_t)mid, SEEK_SET) == (off_t)mid)
			good = mid;
		else
			bad = mid;
	}
	return good ? good : INT64_MAX;
}

/* A safe limit for a file system that is layered on an unknown other one. */
static uint64_t size_of_layer(const struct statfs *fs)
{
	if (fs->f_type != OVERLAYFS_SUPER_MAGIC || fs->f_bsize <= 0)
		return INT64_MAX;
	return MIN((uint64_t)UINT32_MAX * (uint64_t)fs->f_bsize, (uint64_t)INT64_MAX);
}

/* Times are truncated to a power of ten, or to two seconds. Return: could they be set at all? */
static bool time_steps(int fd, struct fs_limits *ret)
{
	/* odd, and without a 0 digit */
	const struct timespec want = { .tv_sec = 1000000001, .tv_nsec = 123456789 };
	const struct timespec both[2] = { want, want };
	uint32_t step = 1;
	struct stat st;

	if (futimens(fd, both) || fstat(fd, &st))
		return false;
	ret->time_s = ret->time_ns = 0;
	if (st.st_mtim.tv_sec != want.tv_sec) {
		ret->time_s = 2;
		return true;
	}
	while (step < 1000000000 && st.st_mtim.tv_nsec % (10 * (long)step) == 0)
		step *= 10;
	if (step == 1000000000)
		ret->time_s = 1;
	else
		ret->time_ns = step;
	return true;
}

/* ext inodes without room for fractions have no room for the birth time either */
static bool has_birth(int fd)
{
	struct statx stx;

	return !statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &stx) && stx.stx_mask & STATX_BTIME;
}

static void steps_of_type(int fd, const struct fs_type *type, struct fs_limits *ret)
{
	bool whole = type->flags & FS_SECONDS || (type->magic == MAGIC_EXT && !has_birth(fd));

	ret->time_s = type->flags & FS_FAT ? 2 : whole ? 1 : 0;
	ret->time_ns = ret->time_s ? 0 : 1;
}

static uint32_t links_of_type(int fd, const struct fs_type *type)
{
	long n = type->links_max ? (long)type->links_max : fpathconf(fd, _PC_LINK_MAX);

	return n > 0 && n < INT32_MAX ? (uint32_t)n : INT32_MAX;
}

/* ext4's driver shows the thread of the journal, "<none>" without one. A kernel or driver that does not show it
 * (ext2's own; Linux before 4.20) counts as without. */
static bool ext_has_journal(int fd)
{
	char link[64], target[PATH_MAX], path[64 + NAME_MAX];
	const char *name;
	struct stat st;
	unsigned pid;
	ssize_t n;
	FILE *f;
	bool has;

	if (fstat(fd, &st))
		return false;
	(void)snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(st.st_dev),
		       minor(st.st_dev));
	n = readlink(link, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	name = strrchr(target, '/');
	if (!name || strlen(name) > NAME_MAX)
		return false;
	(void)snprintf(path, sizeof(path), "/sys/fs/ext4%s/journal_task", name);
	f = fopen(path, "re");
	if (!f)
		return false;
	has = fscanf(f, "%10u", &pid) == 1;
	fclose(f);
	return has;
}

/* The process may have a lower limit of the file size. */
static uint64_t allowed(uint64_t bytes)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_FSIZE, &rl) || rl.rlim_cur == RLIM_INFINITY)
		return bytes;
	return MIN(bytes, (uint64_t)rl.rlim_cur);
}

/* Determined by the mount options. */
static enum fs_atime find_atime(int fd)
{
	struct statvfs fs;

	if (fstatvfs(fd, &fs) || fs.f_flag & (ST_RDONLY | ST_NOATIME))
		return FS_ATIME_NEVER;
	return fs.f_flag & ST_RELATIME ? FS_ATIME_RELATIVE : FS_ATIME_ALWAYS;
}

/* Makes two changes within one tick of the clock, with a stat between them. Linux 6.13 and newer give the second one
 * a finer time, on file systems that support it. */
static bool ctimes_differ(int fd)
{
	struct statx first, second;
	struct timespec from, to;

	for (unsigned tries = 0; tries < 16; tries++) {
		if (clock_gettime(CLOCK_MONOTONIC_COARSE, &from) || fchmod(fd, S_IRUSR) ||
		    statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &first) ||
		    fchmod(fd, S_IRUSR | S_IWUSR) ||
		    statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &second) ||
		    clock_gettime(CLOCK_MONOTONIC_COARSE, &to))
			return false;
		if (from.tv_sec == to.tv_sec && from.tv_nsec == to.tv_nsec)
			return first.stx_ctime.tv_sec != second.stx_ctime.tv_sec ||
			       first.stx_ctime.tv_nsec != second.stx_ctime.tv_nsec;
	}
	return false;
}

void fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret)
{
	struct statfs fs = { 0 };
	const struct fs_type *type = find_type(fstatfs(dir_fd, &fs) ? 0 : (long)fs.f_type);
	bool fat = type->flags & FS_FAT;
	int fd = may_write ? openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR)
			   : -1;
	bool made = fd >= 0;

	/* a separate open file description, so that no other user's offset changes */
	if (!made)
		fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*ret = (struct fs_limits){
		.file_max_bytes = allowed(fd >= 0 ? seek_max(fd) : INT64_MAX),
		.links_max = links_of_type(dir_fd, type),
		.has_links = !fat,
		.has_symlinks = !fat,
		.ignores_case = fat,
		.orders_names = type->flags & FS_ORDERS || (type->magic == MAGIC_EXT && ext_has_journal(dir_fd)),
		.answers_at_once = type->flags & FS_AT_ONCE,
		.in_memory = type->flags & FS_MEMORY,
		.atime = find_atime(dir_fd),
	};
	if (!made && may_write)
		ret->file_max_bytes = MIN(ret->file_max_bytes, size_of_layer(&fs));
	if (!made || !time_steps(fd, ret))
		steps_of_type(dir_fd, type, ret);
	ret->tells_changes = type->flags & FS_LOCAL && !ret->time_s && ret->time_ns == 1;
	ret->ctimes_differ = made && ctimes_differ(fd);
	if (fd >= 0)
		close(fd);
}

/* A name in memory (devtmpfs) has no journal: setting the access time does not wait. */
static void find_device(int fd, struct fs_limits *ret)
{
	struct statfs fs = { 0 };
	const struct fs_type *type = find_type(fstatfs(fd, &fs) ? 0 : (long)fs.f_type);

	*ret = (struct fs_limits){
		.file_max_bytes = INT64_MAX,
		.time_ns = 1,
		.links_max = 1,
		.answers_at_once = true,
		.atime = type->flags & FS_MEMORY ? FS_ATIME_NEVER : find_atime(fd),
	};
}

void fs_limits_find_file(int fd, struct fs_limits *ret)
{
	struct stat st;

	if (!fstat(fd, &st) && S_ISBLK(st.st_mode))
		find_device(fd, ret);
	else
		fs_limits_find(fd, false, ret);
}

static bool has_extents(int fd)
{
	int flags;

	return !ioctl(fd, FS_IOC_GETFLAGS, &flags) && flags & FS_EXTENT_FL;
}

void fs_space_find(int fd, struct fs_space *ret)
{
	struct statfs fs = { 0 };
	const struct fs_type *type = find_type(0);
	struct stat st;
	bool ext;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && !fstatfs(fd, &fs))
		type = find_type((long)fs.f_type);
	ext = type->magic == MAGIC_EXT && has_extents(fd);
	ret->tells_holes = ext || type->flags & FS_HOLES;
	ret->converts = ext || type->flags & FS_EXTENTS;
}
