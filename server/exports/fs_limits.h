/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fs_limits.h - what the file system of an export can hold, for FSINFO and PATHCONF
 */
#ifndef LEAT_SERVER_FS_LIMITS_H
#define LEAT_SERVER_FS_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* When does the file system set the access time of a file that is read? */
enum fs_atime {
	FS_ATIME_NEVER,
	FS_ATIME_RELATIVE, /* if it is not newer than the last change, or a day old: mount(8), relatime */
	FS_ATIME_ALWAYS,
};

struct fs_limits {
	uint64_t file_max_bytes; /* of one file: of this system, and of this process */
	uint32_t time_s, time_ns; /* steps in which times are kept */
	uint32_t links_max;
	bool has_links, has_symlinks;
	bool ignores_case; /* names that differ in it are one */
	/* Does fsync() of a directory also put on disk the inodes of the names that were made there before? True
	 * only where that is known. */
	bool orders_names;
	/* inotify reports every change of a directory that NFS can show: dir_watch.c */
	bool tells_changes;
	/* Attributes and cached names are in this kernel's memory, and no other host and no process is asked for
	 * them. Reactors look at files of no other file system. */
	bool answers_at_once;
	bool in_memory; /* the data, too: no device is waited for, and nothing can be frozen */
	/* To set the access time may take a journal, which waits for its disk. So a file that reactors read is open
	 * without it (O_NOATIME), and workers see to it: nfs3_atime.c. */
	enum fs_atime atime;
	/* no two changes have one ctime if somebody has looked at the file between them */
	bool ctimes_differ;
};

/** fs_limits_find - look, in a directory of it
 * @dir_fd: not O_PATH
 * @may_write: a file without a name may be made there, for as long as this takes
 *
 * What cannot be found out is assumed to be like most.
 */
void fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret);

#endif
