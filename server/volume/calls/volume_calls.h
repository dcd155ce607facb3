/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_calls.h - what clients do with the files of a volume: reports, ranges, cuts, and names that go
 *
 * They block, and do not run inside of creds_assume(). Objects are those of fh_open() and fh_lookup(), of an export with a
 * manager.
 */
#ifndef LEAT_SERVER_VOLUME_CALLS_H
#define LEAT_SERVER_VOLUME_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "creds.h"
#include "fh.h"
#include "volume_layout.h"

/** volume_wrote - the manager itself has written up to @end by a layout of @epoch: raises the size, and sets the time of the
 * last change, not durably. If the file was cut since, the write came before that, and changes neither
 * @f: open for writing
 * @cr: the caller, for what the kernel does to set-id bits
 *
 * Return: 0; -errno; as volume_layout_for_client().
 */
int must_check volume_wrote(const struct volume_file *f, uint64_t epoch, uint64_t end, const struct creds *cr);

/** volume_take_ids - takes the set-id bits of a file as the kernel does when @cr writes to it
 * Its writes go to stripe servers, and it may never report them.
 *
 * Return: 0, -errno.
 */
int must_check volume_take_ids(const struct fh_obj *o, const struct creds *cr);

struct volume_report {
	struct stripe_handle handle; /* the client's, whose signature was checked */
	bool wrote;		     /* up to @bytes */
	bool last;		     /* the lease of @by ends; else it is renewed, if there is room for it */
	uint64_t bytes;
	struct volume_lessee by;
	const struct creds *creds; /* the caller's, for what the kernel does to set-id bits */
};

/** volume_report - a client has written: raises the size of the file, sets its mtime, and makes both durable; never lowers it
 * @ret_bytes: the size now
 * @ret_leased: the client has a lease
 *
 * Return: 0; -EACCES: the handle is of another file, or may not write; -ETIME: it is of another epoch; -EFBIG; as
 * volume_layout_for_client().
 */
int must_check volume_report(const struct fh_obj *o, const struct volume_report *r, uint64_t *ret_bytes, bool *ret_leased);

struct volume_range {
	struct stripe_handle handle; /* the client's, whose signature was checked */
	uint64_t instance;	     /* of its leases */
	uint64_t after, bytes;	     /* the range does not begin before @after; its length, not 0 */
	const struct creds *creds;   /* the caller's */
};

/** volume_reserve_asks - must the stripe servers be asked for the size of the file before a range is reserved?
 * @ret: its object
 *
 * Return: 1: another client may have written what it did not report: volume_pending_queue() follows; 0; as volume_report() */
int must_check volume_reserve_asks(const struct fh_obj *o, const struct volume_range *r, char ret[STRIPE_OBJECT_BYTES]);

/** volume_reserve - raises the size of a file by a range, durably; Return: 0 with where it begins; as volume_report() */
int must_check volume_reserve(const struct fh_obj *o, const struct volume_range *r, uint64_t *ret_off);

/** volume_has_writers - may clients have written what they did not report? Then volume_set_size() asks stripe servers */
bool volume_has_writers(const struct fh_obj *o);

/** volume_set_size - cuts a file, or lets it grow, if the caller may write it
 *
 * What was written and not reported counts, so that it is cut; that of a server which is away does not. A cut is complete on
 * every server in reach when it returns 0, and durably intended for the others.
 * @may_wait: the caller is counted (client_begin_long()), and may wait for stripe servers
 *
 * Return: 0; -EACCES; -EAGAIN: it would have to wait; -EIO: also if another manager is at work, or if the file was cut
 * too often while a server is away; as volume_layout_for_client().
 */
int must_check volume_set_size(const struct fh_obj *o, uint64_t bytes, bool may_wait, const struct creds *cr);

/** volume_lock_names - between this and volume_unlock_names() no other change of the names or layouts of these objects begins
 * @b: its fd may be -1, or that of the same object
 */
void volume_lock_names(const struct fh_obj *a, const struct fh_obj *b);
void volume_unlock_names(const struct fh_obj *a, const struct fh_obj *b);

/** volume_unlink_begin - call under volume_lock_names() before a name of a regular file goes; volume_pending_wake() follows
 * Return: 0; -EIO: another manager is at work; -errno */
int must_check volume_unlink_begin(const struct fh_obj *o);

/** volume_link_begin - the same before a regular file gets another name; Return: 0; -ESTALE: it was removed; -errno */
int must_check volume_link_begin(const struct fh_obj *o);
void volume_link_end(const struct fh_obj *o);

/* ---- for the other files of this folder ---- */

/** volume_handle_check - may this handle write to the file of @l? Return: 0; -EACCES, -ETIME as volume_report() */
int must_check volume_handle_check(const struct stripe_handle *h, const struct file_layout *l);

/** volume_raise_size - under the lock: raises the size as the caller, and sets mtime; not durably
 * @ret_fd: open for writing, or -1: to be closed also after an error
 *
 * Return: 0; -errno */
int must_check volume_raise_size(const struct fh_obj *o, uint64_t bytes, const struct creds *cr, int *ret_fd,
				 uint64_t *ret_bytes);

#endif
