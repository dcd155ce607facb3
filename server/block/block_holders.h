/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_holders.h - the holders of a volume
 */
#ifndef LEAT_SERVER_BLOCK_HOLDERS_H
#define LEAT_SERVER_BLOCK_HOLDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "block_volume.h"

/* Memory for the texts of a block_holder */
struct block_holder_text {
	char name[BLOCK_NAME_MAX + 1], app[BLOCK_NAME_MAX + 1], peer[BLOCK_TEXT_MAX + 1];
};

/** block_describe_holder - fills in the description of a holder for clients; under the lock
 * @text: gets copies of its texts, since @a may end before the reply is sent
 */
void block_describe_holder(const struct block_attachment *a, struct block_holder_text *text, block_holder *ret);

/** block_attachment_new - allocates one without lanes; NULL: no memory */
struct block_attachment *block_attachment_new(void);

/** block_find - the attachment of @name; block_find_number - by its number. NULL: none. Under the lock. */
struct block_attachment *block_find(const struct block_volume *v, const char *name);
struct block_attachment *block_find_number(const struct block_volume *v, uint64_t number);

/** block_find_ended - the attachment of @generation, which has ended, while it has operations. NULL: none. Under the lock. */
struct block_attachment *block_find_ended(const struct block_volume *v, uint64_t generation);

/** block_add - inserts an attachment in the order of names; under the lock. It has name, number and generation. */
void block_add(struct block_volume *v, struct block_attachment *a);

/** block_is_silent - may another holder take its place? Under the lock. */
bool block_is_silent(const struct block_attachment *a, uint64_t now_ns);

/** block_fence - nothing of @a begins any more; frees it when its last operation has ended. Under the lock. */
void block_fence(struct block_volume *v, struct block_attachment *a);

/** block_free_fenced - @a has no operation: frees it if it is fenced. Under the lock. */
void block_free_fenced(struct block_volume *v, struct block_attachment *a);

/** block_drained - have the operations of ended attachments of @name, or of all, ended? Under the lock.
 * @name: NULL: all
 */
bool block_drained(const struct block_volume *v, const char *name);

#endif
