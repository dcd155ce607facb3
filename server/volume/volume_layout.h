/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_layout.h - the layouts of the files of a volume, on disk
 *
 * They block, and do not run inside of creds_assume(). Objects are those of fh_open() and fh_lookup(), of an export with a
 * manager.
 *
 * What reads a layout, each with what the one above does:
 *
 *   volume_layout_      lock of the inode     side effects, durable                      callers
 *   read                the caller's, if any  none                                       CHECK, LINK
 *   complete            the caller's          a size that a cut has left undone          REPORT, RESERVE, names, cuts, pending work
 *   ensure              the caller's          a layout, if a crash has withheld it       cuts
 *   for_manager         takes it              as ensure                                  the manager's READs and WRITEs
 *   for_client          takes it              as ensure; a lease, which is not durable   LAYOUT, CREATE
 *
 * From ensure on, a file that was removed is -ESTALE.
 */
#ifndef LEAT_SERVER_VOLUME_LAYOUT_H
#define LEAT_SERVER_VOLUME_LAYOUT_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "creds.h"
#include "fh.h"
#include "file_layout.h"
#include "volume_file.h"
#include "volume_leases.h"
#include "volume_manager.h"

/** volume_layout_for_client - the layout of a regular file, for a client
 * A file without contents gets the layout that a crash has withheld, durably, with the defaults of the volume.
 * @by: gets a lease; one of instance 0 wants none
 * @ret_bytes: its size
 *
 * Return: 0; -ENODATA: it has none; -EBADMSG, -EKEYREJECTED as file_layout_decode(); -ESTALE: it was removed; -ENOSPC; as
 * volume_lease_take(); -errno.
 */
int must_check volume_layout_for_client(const struct fh_obj *o, const struct volume_lessee *by, struct file_layout *ret,
					  uint64_t *ret_bytes);

/** volume_layout_for_manager - as volume_layout_for_client(), for the manager's own reads and writes
 * @heals: files may get a layout */
int must_check volume_layout_for_manager(const struct volume_file *f, bool heals, struct file_layout *ret);

/* ---- for the folders of volumes ---- */

/** volume_layout_add - gives a file a layout, if it has none; Return: as volume_attribute_add() */
int must_check volume_layout_add(const struct volume_file *f, const struct dir_defaults *d);

/** volume_lease_begin - under the lock: begins or renews a lease, if the caller wants one; Return: as volume_lease_take() */
static inline int must_check volume_lease_begin(const struct volume_file *f, const struct file_layout *l,
						const struct volume_lessee *by)
{
	return by->instance ? volume_lease_take(f->m->dir->leases, l->object, by) : 0;
}

/** volume_layout_is_invalid - of an error of reading a layout: the file has none, or none that is valid for it. So nothing is
 * known of its objects */
static inline bool volume_layout_is_invalid(int err)
{
	return err == -ENODATA || err == -EBADMSG || err == -EKEYREJECTED;
}

/** volume_layout_complete - under the lock: reads the layout, and completes a size that a cut has left undone
 * Return: as file_layout_decode(); -ENODATA; -errno */
int must_check volume_layout_complete(const struct volume_file *f, struct file_layout *ret);

/** volume_layout_ensure - under the lock: volume_layout_complete() for a file that was not removed
 * @heals: adds a layout that a crash has withheld
 * @ret_bytes: its size
 *
 * Return: as volume_layout_for_client(), without a lease */
int must_check volume_layout_ensure(const struct volume_file *f, bool heals, struct file_layout *ret, uint64_t *ret_bytes);

/** volume_layout_read - reads the layout, and changes nothing; Return: as volume_layout_complete() */
int must_check volume_layout_read(const struct volume_file *f, struct file_layout *ret);

/** volume_layout_put - under the lock: replaces the layout, durably */
int must_check volume_layout_put(const struct volume_file *f, const struct file_layout *l);

/** volume_layout_removed - under the lock: has it no name but that in pending/? Return: 1, 0, -errno */
int must_check volume_layout_removed(const struct volume_file *f, const struct file_layout *l);

#endif
