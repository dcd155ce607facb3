/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_io.h - READ, WRITE and COMMIT: the procedures that use an open file
 */
#ifndef LEAT_SERVER_NFS3_IO_H
#define LEAT_SERVER_NFS3_IO_H

#include <stdbool.h>

#include "base/util.h"
#include "nfs3.h"
#include "prog.h"

struct fs_limits;
struct req;
struct statx;
struct timespec;

/** nfs3_io_authorize - prog.authorize of NFS: nfs_authorize(), and a turn for READ and WRITE of a volume */
int must_check nfs3_io_authorize(struct req *r);

/** nfs3_io_write_payload - prog_proc.payload of WRITE
 *
 * Return: 0, -EINVAL, -EFBIG.
 */
int must_check nfs3_io_write_payload(struct req *r);

/* prog_proc.begin of READ, WRITE and COMMIT: find the file, and plan the transfer. */
enum prog_begin must_check nfs3_io_read_begin(struct req *r);
enum prog_begin must_check nfs3_io_write_begin(struct req *r);
enum prog_begin must_check nfs3_io_commit_begin(struct req *r);

/** nfs3_io_open - opens the file and checks the permission; on a worker */
void nfs3_io_open(struct req *r);

/* Make the results of READ, WRITE and COMMIT, from the outcome in r->place. */
void nfs3_io_read_finish(struct req *r);
void nfs3_io_write_finish(struct req *r);
void nfs3_io_commit_finish(struct req *r);

/** nfs3_atime_is_due - checks whether the kernel would set the access time of a file that is read now
 * @stx: its attributes
 * @now: CLOCK_REALTIME_COARSE, the clock that the kernel uses for file times
 *
 * False if the kernel may set it in the read() itself, because that does not block the reactor.
 */
bool nfs3_atime_is_due(const struct fs_limits *fs, const struct statx *stx, const struct timespec *now);

/** nfs3_atime_touch - updates the access time, if due, after a READ of call->file with attributes call->stx */
void nfs3_atime_touch(struct req *r);

#endif
