/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_send.h - sends the commands of a manager to the stripe servers of its volume
 *
 * One thread at a time, except for volume_send_stop(); functions block for as long as a server that does not reply may take.
 */
#ifndef LEAT_SERVER_VOLUME_SEND_H
#define LEAT_SERVER_VOLUME_SEND_H

#include "base/util.h"
#include "file_layout.h"

struct volume_dir;
struct volume_manager;
struct volume_send;

/** volume_send_create - connects to nothing yet; Return: 0, -ENOMEM */
int must_check volume_send_create(struct volume_dir *d, struct volume_send **ret);
void volume_send_destroy(struct volume_send *s); /* NULL is fine */

/** volume_send_stop - no more commands are sent, so that what is in progress ends soon; any thread */
void volume_send_stop(struct volume_send *s);

/** volume_send_term - takes the term of this manager, unless it is taken: dir->term; Return: 0 or -errno */
int must_check volume_send_term(struct volume_send *s, const struct volume_manager *m);

/** volume_send_cut - fences each object of @l: its epoch, cut to what the file has
 * Return: 0: all servers have it; -EAGAIN: some do not, the others do; -EPERM: another manager is at work; -errno */
int must_check volume_send_cut(struct volume_send *s, struct volume_manager *m, const struct file_layout *l);

/* What the objects of a file say of it. */
struct volume_lengths {
	uint64_t bytes;	   /* its size is at least that */
	uint64_t mtime_ns; /* the latest one of an object; 0: no object exists */
};

/** volume_send_stat - asks for the lengths of the objects of @l that have its epoch
 * @ret: what is known, also if some servers do not reply; Return: as volume_send_cut() */
int must_check volume_send_stat(struct volume_send *s, struct volume_manager *m, const struct file_layout *l,
				struct volume_lengths *ret);

/** volume_send_remove - removes each object of @l, with tombstones that outlive the handles; Return: as volume_send_cut() */
int must_check volume_send_remove(struct volume_send *s, struct volume_manager *m, const struct file_layout *l);

#endif
