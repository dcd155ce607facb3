/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tool_volume.h - attachments to block volumes, for the commands that use them
 */
#ifndef LEAT_TOOL_VOLUME_H
#define LEAT_TOOL_VOLUME_H

#include "leat_block.h"
#include "tool.h"

/** volume_attach - leat_block_attach(), or leat_session_attach() if @s is not NULL; reports on a terminal as tool_mount()
 * does, and a signal interrupts synchronous calls as there
 * @url: an argument of the command
 *
 * Return: 0, or -errno after a message; volume_detach() undoes it.
 */
must_check int volume_attach(struct leat_session *s, const char *url, unsigned flags, struct leat_block **ret);

/** volume_detach - leat_block_detach(); does not wait for the server in an interrupted command. NULL is fine.
 * Return: 0, or -errno without a message
 */
int volume_detach(struct leat_block *b);

#define VOLUME_WHY_BYTES 512

/** volume_or_mount - mounts @url as tool_mount() does; if it names a volume, connects without attaching to it
 * For commands that test whether a server responds, whatever the URL names.
 * @ret_b: gets NULL if it is no volume
 * @ret_m: belongs to @ret_b, if that is not NULL
 * @why: gets the reason of a failure
 *
 * Return: 0, or -errno; volume_or_umount() undoes it.
 */
must_check int volume_or_mount(const char *url, const char *opts, struct leat_block **ret_b, struct leat **ret_m,
			       char why[VOLUME_WHY_BYTES]);
void volume_or_umount(struct leat_block *b, struct leat *m);

#define VOLUME_TEXT_BYTES 256

/** volume_describe - describes a volume in one line; Return: 0 or -errno, as leat_block_info() */
must_check int volume_describe(struct leat_block *b, char ret[VOLUME_TEXT_BYTES]);

/** volume_fail - logs a failure on the volume of @url; Return: TOOL_FAILED */
int volume_fail(const struct leat_block *b, const char *url, int err);

#endif
