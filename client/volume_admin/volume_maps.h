/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_maps.h - maps of volumes for programs
 */
#ifndef LT_VOLUME_MAPS_H
#define LT_VOLUME_MAPS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/util.h"
#include "leat_volume.h"
#include "op.h"
#include "volume_map.h"

/** lt_volume_map_make - copies a map; leat_volume_map_free() frees it
 *
 * Return: 0, -ENOMEM.
 */
int must_check lt_volume_map_make(uint64_t volume, uint64_t version, const volume_server *servers, unsigned n,
				  struct leat_volume_map **ret);

/** lt_volume_map_load - reads the file of a map; volume_map_fini() follows
 * @ret_st: gets its owner and its permissions
 * @why: gets the reason of a failure, without the name of the file
 *
 * Return: 0, -errno.
 */
int must_check lt_volume_map_load(const char *file, struct volume_map *ret, struct stat *ret_st, char *why, size_t why_bytes);

/** lt_volume_map_text - prints a map, and checks the text as all readers do
 * @ret: the caller frees it with free()
 *
 * Return: 0; -EINVAL: it is not a valid map; -ENOMEM.
 */
int must_check lt_volume_map_text(const struct volume_map *m, char **ret, char *why, size_t why_bytes);

/** lt_volume_check - is @m a mount of a volume? Return: 0; -EINVAL: no mount; -EOPNOTSUPP with a text for @verb */
int must_check lt_volume_check(struct leat *m, const char *verb);

/** lt_volume_run - makes an operation on @m, and waits for it: first(op, 0), with @ret as op->ret_any
 * @verb: the function that the program has called, for messages
 *
 * Return: the result; as lt_op_create().
 */
int must_check lt_volume_run(struct leat *m, const char *verb, lt_op_step first, void *ret);

/** lt_volume_run_at - the same, behind a walk to @path: first(op, err) */
int must_check lt_volume_run_at(struct leat *m, const char *verb, const char *path, lt_op_step first, void *ret);

/** lt_volume_write - writes all of @text and makes it durable; Return: 0, -errno */
int must_check lt_volume_write(int fd, const char *text, size_t n);

#endif
