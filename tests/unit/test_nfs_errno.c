/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_nfs_errno.c - errno <-> nfsstat3, and the words for both
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "block.h"
#include "block_status.h"
#include "ctl.h"
#include "nfs3_names.h"
#include "nfs_errno.h"
#include "nfs.h"

/* RFC 1813 section 2.6, every status, and what it means here */
static const struct {
	nfsstat3 status;
	int err;
	const char *name;
} table[] = {
	{ NFS3_OK, 0, "NFS3_OK" },
	{ NFS3ERR_PERM, -EPERM, "NFS3ERR_PERM" },
	{ NFS3ERR_NOENT, -ENOENT, "NFS3ERR_NOENT" },
	{ NFS3ERR_IO, -EIO, "NFS3ERR_IO" },
	{ NFS3ERR_NXIO, -ENXIO, "NFS3ERR_NXIO" },
	{ NFS3ERR_ACCES, -EACCES, "NFS3ERR_ACCES" },
	{ NFS3ERR_EXIST, -EEXIST, "NFS3ERR_EXIST" },
	{ NFS3ERR_XDEV, -EXDEV, "NFS3ERR_XDEV" },
	{ NFS3ERR_NODEV, -ENODEV, "NFS3ERR_NODEV" },
	{ NFS3ERR_NOTDIR, -ENOTDIR, "NFS3ERR_NOTDIR" },
	{ NFS3ERR_ISDIR, -EISDIR, "NFS3ERR_ISDIR" },
	{ NFS3ERR_INVAL, -EINVAL, "NFS3ERR_INVAL" },
	{ NFS3ERR_FBIG, -EFBIG, "NFS3ERR_FBIG" },
	{ NFS3ERR_NOSPC, -ENOSPC, "NFS3ERR_NOSPC" },
	{ NFS3ERR_ROFS, -EROFS, "NFS3ERR_ROFS" },
	{ NFS3ERR_MLINK, -EMLINK, "NFS3ERR_MLINK" },
	{ NFS3ERR_NAMETOOLONG, -ENAMETOOLONG, "NFS3ERR_NAMETOOLONG" },
	{ NFS3ERR_NOTEMPTY, -ENOTEMPTY, "NFS3ERR_NOTEMPTY" },
	{ NFS3ERR_DQUOT, -EDQUOT, "NFS3ERR_DQUOT" },
	{ NFS3ERR_STALE, -ESTALE, "NFS3ERR_STALE" },
	{ NFS3ERR_REMOTE, -EREMOTE, "NFS3ERR_REMOTE" },
	{ NFS3ERR_BADHANDLE, -ESTALE, "NFS3ERR_BADHANDLE" },
	{ NFS3ERR_NOT_SYNC, -EBUSY, "NFS3ERR_NOT_SYNC" },
	{ NFS3ERR_BAD_COOKIE, -ESTALE, "NFS3ERR_BAD_COOKIE" },
	{ NFS3ERR_NOTSUPP, -EOPNOTSUPP, "NFS3ERR_NOTSUPP" },
	{ NFS3ERR_TOOSMALL, -EOVERFLOW, "NFS3ERR_TOOSMALL" },
	{ NFS3ERR_SERVERFAULT, -EREMOTEIO, "NFS3ERR_SERVERFAULT" },
	{ NFS3ERR_BADTYPE, -EINVAL, "NFS3ERR_BADTYPE" },
	{ NFS3ERR_JUKEBOX, -EAGAIN, "NFS3ERR_JUKEBOX" },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void each_status_has_its_errno(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		assert_int_equal(nfs3_errno(table[i].status), table[i].err);
		assert_string_equal(nfs3_stat_name((uint32_t)table[i].status), table[i].name);
	}
}

static void unknown_statuses_are_told_apart(void **state)
{
	unsigned known = 0;

	(void)state;
	for (int s = -2; s < 11000; s++) {
		bool is_known = false;

		for (size_t i = 0; i < COUNT(table); i++)
			is_known |= (int)table[i].status == s;
		if (is_known) {
			known++;
			continue;
		}
		assert_int_equal(nfs3_errno((nfsstat3)s), -EREMOTEIO);
		assert_string_equal(nfs3_stat_name((uint32_t)s), "?");
	}
	assert_int_equal(known, COUNT(table));
}

static void every_errno_has_a_status(void **state)
{
	(void)state;
	assert_int_equal(nfs3_status(0), NFS3_OK);
	for (int e = -4096; e < 0; e++) {
		nfsstat3 s = nfs3_status(e);
		bool listed = false;

		assert_int_not_equal(s, NFS3_OK);
		for (size_t i = 0; i < COUNT(table); i++)
			listed |= table[i].status == s;
		assert_true(listed);
	}
	/* a positive number is a mistake of ours, and no success */
	assert_int_not_equal(nfs3_status(ENOENT), NFS3_OK);
	/* the usual ones go there and back */
	for (size_t i = 0; i < COUNT(table); i++) {
		switch (table[i].status) {
		case NFS3ERR_BADHANDLE:
		case NFS3ERR_NOT_SYNC:
		case NFS3ERR_BAD_COOKIE:
		case NFS3ERR_TOOSMALL:
		case NFS3ERR_BADTYPE:
			break;
		default:
			assert_int_equal(nfs3_status(table[i].err), table[i].status);
		}
	}
	assert_int_equal(nfs3_status(-ENOMEM), NFS3ERR_JUKEBOX);
	assert_int_equal(nfs3_status(-ENOSYS), NFS3ERR_NOTSUPP);
	assert_int_equal(nfs3_status(-EOVERFLOW), NFS3ERR_FBIG);
	assert_int_equal(nfs3_status(-EBUSY), NFS3ERR_IO);
	assert_int_equal(nfs3_status(-EMEDIUMTYPE), NFS3ERR_IO);
}

static void mount_has_ten_of_them(void **state)
{
	static const mountstat3 stats[] = {
		MNT3_OK, MNT3ERR_PERM, MNT3ERR_NOENT, MNT3ERR_IO, MNT3ERR_ACCES, MNT3ERR_NOTDIR,
		MNT3ERR_INVAL, MNT3ERR_NAMETOOLONG, MNT3ERR_NOTSUPP, MNT3ERR_SERVERFAULT,
	};

	(void)state;
	for (size_t i = 0; i < COUNT(stats); i++)
		assert_int_equal(mount3_status(mount3_errno(stats[i])), stats[i]);
	assert_int_equal(mount3_errno((mountstat3)NFS3ERR_STALE), -EREMOTEIO);
	for (int e = -4096; e < 0; e++) {
		bool listed = false;

		for (size_t i = 1; i < COUNT(stats); i++)
			listed |= mount3_status(e) == stats[i];
		assert_true(listed);
	}
}

static void procedures_have_names(void **state)
{
	(void)state;
	assert_string_equal(nfs3_proc_name(NFS_PROGRAM, 6), "READ");
	assert_string_equal(nfs3_proc_name(NFS_PROGRAM, 21), "COMMIT");
	assert_string_equal(nfs3_proc_name(NFS_PROGRAM, 22), "?");
	assert_string_equal(nfs3_proc_name(NFS_PROGRAM, UINT32_MAX), "?");
	assert_string_equal(nfs3_proc_name(MOUNT_PROGRAM, 5), "EXPORT");
	assert_string_equal(nfs3_proc_name(LEAT_CTL, CTL_STATS), "STATS");
	for (uint32_t i = 0; i < prog_ctl.nprocs; i++)
		assert_string_equal(nfs3_proc_name(LEAT_CTL, i), prog_ctl.procs[i].name);
	for (uint32_t i = 0; i < prog_nfs3.nprocs; i++)
		assert_string_equal(nfs3_proc_name(NFS_PROGRAM, i), prog_nfs3.procs[i].name);
	assert_string_equal(nfs3_proc_name(1, 0), "?");
	assert_string_equal(nfs3_prog_name(100003), "NFS");
	assert_string_equal(nfs3_prog_name(100005), "MOUNT");
	assert_string_equal(nfs3_prog_name(100227), "NFSACL");
	assert_string_equal(nfs3_proc_name(100227, 2), "SETACL");
	assert_string_equal(nfs3_prog_name(LEAT_SPACE), "SPACE");
	for (uint32_t i = 0; i < prog_space.nprocs; i++)
		assert_string_equal(nfs3_proc_name(LEAT_SPACE, i), prog_space.procs[i].name);
	assert_string_equal(nfs3_prog_name(LEAT_VOLUME), "VOLUME");
	for (uint32_t i = 0; i < prog_volumes.nprocs; i++)
		assert_string_equal(nfs3_proc_name(LEAT_VOLUME, i), prog_volumes.procs[i].name);
	assert_string_equal(nfs3_prog_name(LEAT_BLOCK), "BLOCK");
	assert_string_equal(nfs3_proc_name(LEAT_BLOCK, BLOCKPROC_FLUSH), "FLUSH");
	assert_string_equal(nfs3_proc_name(LEAT_BLOCK, BLOCKPROC_EXTENTS), "EXTENTS");
	assert_string_equal(nfs3_proc_name(LEAT_BLOCK, BLOCKPROC_EXTENTS + 1), "?");
	assert_string_equal(nfs3_prog_name(100000), "?");
	for (uint32_t p = 0; p <= 21; p++)
		assert_string_not_equal(nfs3_proc_name(NFS_PROGRAM, p), "?");
}

static void statuses_of_volumes(void **state)
{
	(void)state;
	assert_int_equal(block_errno(BLOCK_OK), 0);
	assert_int_equal(block_errno(BLOCK_ERR_FENCED), -ESTALE);
	assert_int_equal(block_errno(BLOCK_ERR_LATER), -EAGAIN);
	assert_int_equal(block_errno(BLOCK_ERR_NOHOLDER + 1), -EREMOTEIO);
	assert_int_equal(block_errno(UINT32_MAX), -EREMOTEIO);
	assert_string_equal(block_status_name(BLOCK_ERR_BUSY), "BLOCK_ERR_BUSY");
	assert_string_equal(block_status_name(BLOCK_ERR_NOHOLDER + 1), "?");
	assert_int_equal(block_errno(BLOCK_ERR_NOHOLDER), block_errno(BLOCK_ERR_NOENT));
	for (uint32_t a = 0; a <= BLOCK_ERR_LATER; a++)
		for (uint32_t b = 0; b < a; b++)
			assert_int_not_equal(block_errno(a), block_errno(b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_status_has_its_errno), cmocka_unit_test(statuses_of_volumes),
		cmocka_unit_test(unknown_statuses_are_told_apart),
		cmocka_unit_test(every_errno_has_a_status),
		cmocka_unit_test(mount_has_ten_of_them),
		cmocka_unit_test(procedures_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
