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

#define NFS3_IO_MAX (1u << 20) /* rtmax, wtmax in FSINFO */

enum nfs3_io_next {
	NFS3_IO_READY,	  /* file and permission are known; place_run() continues */
	NFS3_IO_OPEN,	  /* a worker has to run nfs3_io_open() first */
	NFS3_IO_WAIT,	  /* until other files are closed: files_may_open() */
	NFS3_IO_ANSWERED, /* r->res has the error */
};

/** nfs3_io_write_check - checks the arguments of a WRITE before its payload is pulled
 * Return: NFS3_OK, or the status */
nfsstat3 must_check nfs3_io_write_check(const struct req *r);

/** nfs3_io_begin - finds the file and begins the transfer; on the reactor */
enum nfs3_io_next must_check nfs3_io_begin(struct req *r);

/** nfs3_io_open - opens the file and checks the permission; on a worker */
void nfs3_io_open(struct worker_job *job);

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

/** nfs3_atime_touch - updates the access time, if due, after a READ of r->file, which had the attributes r->stx */
void nfs3_atime_touch(struct req *r);

/** nfs3_io_flush - fdcache_ops.flush: syncs a file before its entry is closed */
void nfs3_io_flush(void *reactor, struct fdcache_entry *e);

/** nfs3_io_answer_max - returns the longest data of a reply that is sent inside the reply instead of a separate
 * chunk: a READ over TCP, a READDIR. With a low limit of buffer memory it is less than NFS3_IO_MAX. A multiple
 * of 4096. */
uint32_t nfs3_io_answer_max(const struct server *srv);

#endif
