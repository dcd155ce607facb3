/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_state.h - what a volume keeps in the state directory: its holders, its verifier, and whether a sync was in progress
 */
#ifndef LEAT_SERVER_BLOCK_STATE_H
#define LEAT_SERVER_BLOCK_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

struct block_state;
struct block_volume;

/** block_state_open - opens or creates the files of volume @name in @dir
 * @id: of the volume; the files of another one of that name are replaced
 * @ret_verf: the verifier that the last process had, if nothing that it acknowledged can be lost; else a new one
 * @why: gets the reason of a failure
 *
 * Return: 0; -EBUSY: another leatd has them; -EINVAL: not such files; -errno.
 */
int must_check block_state_open(const char *dir, const char *name, uint64_t id, struct block_state **ret,
				uint64_t *ret_verf, char *why, size_t why_bytes);

/** block_state_close - NULL is fine */
void block_state_close(struct block_state *s);

/** block_state_verf - notes a new verifier; any thread. NULL is fine. */
void block_state_verf(struct block_state *s, uint64_t verf);

/** block_state_cached - the volume is served with write = cached from now on: the next process has another verifier. NULL
 * is fine. */
void block_state_cached(struct block_state *s);

/** block_state_sync_begun, block_state_sync_ended - notes that a sync is in progress, so that a leatd that is killed meanwhile
 * changes the verifier when it starts again. The end comes after a failed sync has changed the verifier. NULL is fine. */
void block_state_sync_begun(struct block_state *s);
void block_state_sync_ended(struct block_state *s);

/** block_state_save - writes the holders of @v, durably; blocks. The volume's lock is not held.
 *
 * Return: 0 or -errno: the old ones are still there.
 */
int must_check block_state_save(struct block_state *s, struct block_volume *v);

/** block_state_load - adds the holders that were saved to @v, without connections; before @v is in service
 *
 * Return: 0, also if there are none; -EINVAL: the file is damaged; -ENOMEM; -errno.
 */
int must_check block_state_load(struct block_state *s, struct block_volume *v);

/** block_state_each - calls @fn for each volume that has files in @dir, whether it is served or not
 *
 * Return: 0; -errno: not all were seen.
 */
int must_check block_state_each(const char *dir, void (*fn)(void *ctx, const char *name), void *ctx);

/** block_verf_random - returns a new verifier; 0: the kernel gives no random numbers */
uint64_t block_verf_random(void);

#endif
