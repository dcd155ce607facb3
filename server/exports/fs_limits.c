/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fs_limits.c - what the file system of an export can hold, for FSINFO and PATHCONF
 *
 * Operation: no system call tells the size of the largest file, or in which steps times are kept; but
 *            lseek() refuses what no file can have, and a time that was set can be read again. Both are
 *            tried with a file that never has a name (O_TMPFILE), and so leaves nothing behind and changes no
 *            directory. Where there is none (vfat, exfat, overlayfs before Linux 6.3, what is read-only) the
 *            directory is asked how far it can be sought in, which may be farther than a file is long, and the
 *            type of the file system is all that is known.
 *            An overlay lets one seek as far as numbers go, whatever lies below it, but tells the size of the
 *            blocks there: where files can be written, the room of 2^32 - 1 blocks is promised, which is what
 *            ext4 holds, and less than others do.
 *            File systems with a journal or a log write changes of metadata in the order in which they were
 *            made, so a name that is on disk leads to an inode that is there, too. That depends on the type, and
 *            on ext on whether this one has a journal: ext2, ext3 and ext4 have one magic number.
 *            An export is of one mount, so what is true of its directory is true of all its files.
 *            glibc's pathconf() knows how many links a file can have on most; those that it takes
 *            for a minix of 1991 are named here.
 * Memory:    the caller's.
 * Threads:   whoever opens exports, before they are in service.
 * Errors:    none: what cannot be found out is assumed to be like most.
 */
#include "fs_limits.h"

#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/util.h"

/* not in every <linux/magic.h> */
#define MAGIC_EXT 0xef53
#define MAGIC_VFAT 0x4d44
#define MAGIC_EXFAT 0x2011bab0
#define MAGIC_BTRFS 0x9123683e
#define MAGIC_RAMFS 0x858458f6
#define MAGIC_F2FS 0xf2f52010

/* What lseek() lets through; it looks at nothing but the number. */
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

/* What can be relied upon of a file system with another one below it, which it does not name. */
static uint64_t size_of_layer(const struct statfs *fs)
{
	if (fs->f_type != OVERLAYFS_SUPER_MAGIC || fs->f_bsize <= 0)
		return INT64_MAX;
	return MIN((uint64_t)UINT32_MAX * (uint64_t)fs->f_bsize, (uint64_t)INT64_MAX);
}

/* Times are cut to multiples of a power of ten, or to two seconds. Return: could they be set at all? */
static bool time_steps(int fd, struct fs_limits *ret)
{
	/* odd, and with a digit other than 0 in each place */
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

/* inodes of ext that are too small for fractions are too small for the time of birth, too */
static bool has_birth(int fd)
{
	struct statx stx;

	return !statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &stx) && stx.stx_mask & STATX_BTIME;
}

static void steps_of_type(int fd, long type, struct fs_limits *ret)
{
	bool fat = type == MAGIC_VFAT || type == MAGIC_EXFAT;
	bool whole = type == ISOFS_SUPER_MAGIC || (type == MAGIC_EXT && !has_birth(fd));

	ret->time_s = fat ? 2 : whole ? 1 : 0;
	ret->time_ns = ret->time_s ? 0 : 1;
}

static uint32_t links_of_type(int fd, long type)
{
	long n;

	switch (type) {
	case MAGIC_VFAT:
	case MAGIC_EXFAT:
		return 1;
	case MAGIC_BTRFS:
		return 65535;
	case TMPFS_MAGIC:
		return INT32_MAX; /* only memory ends it */
	default:
		n = fpathconf(fd, _PC_LINK_MAX);
		return n > 0 && n < INT32_MAX ? (uint32_t)n : INT32_MAX;
	}
}

/* ext4's driver names the thread of the journal, "<none>" without one. A kernel or a driver that does not
 * say (ext2's own; Linux before 4.20) counts as without. */
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

static bool orders_names(int fd, long type)
{
	switch (type) {
	case MAGIC_BTRFS:
	case MAGIC_F2FS:
	case XFS_SUPER_MAGIC:
	case TMPFS_MAGIC: /* nothing survives, and a sync is nothing */
	case MAGIC_RAMFS:
		return true;
	case MAGIC_EXT:
		return ext_has_journal(fd);
	default:
		return false;
	}
}

/* A process may have been told to make none that are larger. */
static uint64_t allowed(uint64_t bytes)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_FSIZE, &rl) || rl.rlim_cur == RLIM_INFINITY)
		return bytes;
	return MIN(bytes, (uint64_t)rl.rlim_cur);
}

/* Its directories are changed by this kernel only, by way of the VFS, which tells inotify. Not so
 * what is on a network, in user space or a layer above another file system; nor what can be rolled back. */
static bool is_local(long type)
{
	return type == MAGIC_EXT || type == MAGIC_BTRFS || type == TMPFS_MAGIC || type == XFS_SUPER_MAGIC;
}

/* A white list: a FUSE process may be stopped, another host be gone, and an overlay have either below it. */
static bool answers_at_once(long type)
{
	return is_local(type) || type == MAGIC_F2FS || type == MAGIC_RAMFS;
}

/* by the options of its mount */
static enum fs_atime find_atime(int fd)
{
	struct statvfs fs;

	if (fstatvfs(fd, &fs) || fs.f_flag & (ST_RDONLY | ST_NOATIME))
		return FS_ATIME_NEVER;
	return fs.f_flag & ST_RELATIME ? FS_ATIME_RELATIVE : FS_ATIME_ALWAYS;
}

/* Two changes within one tick of the clock, with a look between them: Linux 6.13 and newer give the
 * second a finer time, on the file systems that take part. */
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
	long type = fstatfs(dir_fd, &fs) ? 0 : (long)fs.f_type;
	bool fat = type == MAGIC_VFAT || type == MAGIC_EXFAT;
	int fd = may_write ? openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR)
			   : -1;
	bool made = fd >= 0;

	/* another description of the directory: its offset is nobody's */
	if (!made)
		fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*ret = (struct fs_limits){
		.file_max_bytes = allowed(fd >= 0 ? seek_max(fd) : INT64_MAX),
		.links_max = links_of_type(dir_fd, type),
		.has_links = !fat,
		.has_symlinks = !fat,
		.ignores_case = fat,
		.orders_names = orders_names(dir_fd, type),
		.answers_at_once = answers_at_once(type),
		.in_memory = type == TMPFS_MAGIC || type == MAGIC_RAMFS,
		.atime = find_atime(dir_fd),
	};
	if (!made && may_write)
		ret->file_max_bytes = MIN(ret->file_max_bytes, size_of_layer(&fs));
	if (!made || !time_steps(fd, ret))
		steps_of_type(dir_fd, type, ret);
	ret->tells_changes = is_local(type) && !ret->time_s && ret->time_ns == 1;
	ret->ctimes_differ = made && ctimes_differ(fd);
	if (fd >= 0)
		close(fd);
}
