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
#include "worker.h"

struct fdcache_entry;
struct fs_limits;
struct req;
struct statx;
struct timespec;

struct server;

#define NFS3_IO_MAX (1u << 20) /* rtmax, wtmax: FSINFO says so */

enum nfs3_io_next {
	NFS3_IO_READY,	  /* file and permission are there; place_run() goes on */
	NFS3_IO_OPEN,	  /* a worker has to run nfs3_io_open() first */
	NFS3_IO_WAIT,	  /* until others are closed: reactor_may_open() */
	NFS3_IO_ANSWERED, /* r->res says why not */
};

/** nfs3_io_write_check - arguments of a WRITE that make no sense are refused before it is pulled
 * Return: NFS3_OK, or the status */
nfsstat3 must_check nfs3_io_write_check(const struct req *r);

/** nfs3_io_begin - find the file and begin to move; on the reactor */
enum nfs3_io_next must_check nfs3_io_begin(struct req *r);

/** nfs3_io_open - open the file and ask for permission; on a worker */
void nfs3_io_open(struct worker_job *job);

/* What READ, WRITE and COMMIT answer, from what place.c left. */
void nfs3_io_read_finish(struct req *r);
void nfs3_io_write_finish(struct req *r);
void nfs3_io_commit_finish(struct req *r);

/** nfs3_atime_is_due - would the kernel set the access time of a file that is read now?
 * @stx: as it is
 * @now: CLOCK_REALTIME_COARSE, by which the kernel sets times
 *
 * False where the kernel may set it in the call that reads, because nobody waits for a disk there.
 */
bool nfs3_atime_is_due(const struct fs_limits *fs, const struct statx *stx, const struct timespec *now);

/** nfs3_atime_touch - a READ of r->file, which had the attributes r->stx, went well */
void nfs3_atime_touch(struct req *r);

/** nfs3_io_flush - fdcache_ops.flush: sync a file whose entry is to be closed */
void nfs3_io_flush(void *reactor, struct fdcache_entry *e);

/** nfs3_io_answer_max - the most data that one answer carries in itself, and no chunk of its own
 * beside it: a READ over TCP, a READDIR. Where the limit of buffer memory is low, it is less than
 * NFS3_IO_MAX. A multiple of 4096. */
uint32_t nfs3_io_answer_max(const struct server *srv);

#endif
