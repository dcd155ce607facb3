/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * kernel_has.c - asks the kernel for what a test needs
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel_has.h"

#define USER_MODE_ONLY 1

/* Return: @rc is no error; errors other than those by which a kernel refuses are asserted */
static bool is_allowed(const char *what, long rc)
{
	if (rc >= 0)
		return true;
	if (errno != EPERM && errno != EACCES && errno != ENOSYS && errno != EOPNOTSUPP && errno != EINVAL)
		fail_msg("%s: %s", what, strerror(errno));
	print_message("%s: %s\n", what, strerror(errno));
	return false;
}

bool kernel_has_uffd(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE |
			    UFFD_FEATURE_EVENT_UNMAP,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);
	bool has;

	if (!is_allowed("userfaultfd", fd))
		return false;
	has = is_allowed("events of userfaultfd", ioctl(fd, UFFDIO_API, &api));
	close(fd);
	return has;
}

bool kernel_has_handles(const char *dir)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} fh = { .h.handle_bytes = MAX_HANDLE_SZ };
	int root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), mount_id, fd = -1;
	bool has;

	assert_true(root >= 0);
	has = is_allowed("name_to_handle_at", name_to_handle_at(root, "", &fh.h, &mount_id, AT_EMPTY_PATH));
	if (has) {
		fd = open_by_handle_at(root, &fh.h, O_PATH | O_CLOEXEC);
		has = is_allowed("open_by_handle_at", fd);
	}
	if (fd >= 0)
		close(fd);
	close(root);
	return has;
}

bool kernel_has_watches(const char *dir)
{
	static const long types[] = { EXT4_SUPER_MAGIC, BTRFS_SUPER_MAGIC, XFS_SUPER_MAGIC, TMPFS_MAGIC };
	const struct timespec odd[2] = { { .tv_sec = 1, .tv_nsec = 1 }, { .tv_sec = 1, .tv_nsec = 1 } };
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct statfs fs;
	struct stat st = { 0 };
	bool local = false;

	assert_int_equal(statfs(dir, &fs), 0);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		local |= fs.f_type == types[i];
	if (local) {
		assert_true(fd >= 0);
		assert_int_equal(futimens(fd, odd), 0);
		assert_int_equal(fstat(fd, &st), 0);
	}
	if (fd >= 0)
		close(fd);
	if (st.st_mtim.tv_nsec != 1)
		print_message("directories of the file system of %s are not watched\n", dir);
	return st.st_mtim.tv_nsec == 1;
}

bool kernel_has_acls(const char *path)
{
	return getxattr(path, "system.posix_acl_access", NULL, 0) >= 0 || errno == ENODATA ||
	       is_allowed("access control lists", -1);
}
