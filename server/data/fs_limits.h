/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fs_limits.h - limits of the file system of an export, for FSINFO and PATHCONF
 */
#ifndef LEAT_SERVER_FS_LIMITS_H
#define LEAT_SERVER_FS_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* When does the file system set the access time of a file that is read? */
enum fs_atime {
	FS_ATIME_NEVER,
	FS_ATIME_RELATIVE, /* if it is not newer than the last change, or is a day old: mount(8), relatime */
	FS_ATIME_ALWAYS,
};

struct fs_limits {
	uint64_t file_max_bytes; /* maximum file size, of the file system and of this process */
	uint32_t time_s, time_ns; /* granularity of times */
	uint32_t links_max;
	bool has_links, has_symlinks;
	bool ignores_case; /* names that differ only in case are the same */
	/* Does fsync() of a directory also write the inodes of names that were created there before? True only if
	 * that is known. */
	bool orders_names;
	/* inotify reports every change of a directory that is visible over NFS: dir_watch.c */
	bool tells_changes;
	/* Attributes and cached names are in this kernel's memory, without queries to another host or process.
	 * Reactors access files only on such file systems. */
	bool answers_at_once;
	bool in_memory; /* the data, too: no device I/O, and the file system cannot be frozen */
	/* Setting the access time may need a journal, which waits for its disk. So files that reactors read are open
	 * with O_NOATIME, and workers set the time: nfs3_atime.c. */
	enum fs_atime atime;
	/* two changes never share a ctime if the file was read with stat between them */
	bool ctimes_differ;
};

/** fs_limits_find - determines the limits, in a directory of the file system
 * @dir_fd: not O_PATH
 * @may_write: a file without a name may be created there temporarily
 *
 * Unknown limits get the usual values.
 */
void fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret);

/* What the file system of a file does with space. False if that is not known. */
struct fs_space {
	bool tells_holes; /* lseek() finds data that is not on disk yet, too */
	bool converts;	  /* FALLOC_FL_ZERO_RANGE converts extents, and writes no data */
};

/** fs_space_find - determines it for the file of @fd; all false if it is no regular file */
void fs_space_find(int fd, struct fs_space *ret);

/** fs_limits_find_file - determines what the limits say about the contents of one file
 * @fd: of a regular file, or of a block device, which is not in the file system that has its name
 */
void fs_limits_find_file(int fd, struct fs_limits *ret);

#endif
