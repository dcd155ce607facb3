/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_key.h - the key file of a volume
 *
 * A text of lines; blank ones and those that begin with # are comments:
 *
 *	volume = 0123456789abcdef			the id of the volume, 16 hexadecimal digits, not 0
 *	key = 00112233445566778899aabbccddeeff		32 of them
 *	key = ...					a second one, optional
 *
 * The first key signs, signatures of both are accepted. To change the key, the new one is put in front of the old one on
 * all servers, which are reloaded, and the old one is removed when the last handle that it signed has expired.
 */
#ifndef LEAT_STRIPE_KEY_H
#define LEAT_STRIPE_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "stripe_handle.h"

#define STRIPE_KEY_FILE_MAX 4096u

/** stripe_key_load - reads a key file, which no other user may read
 * @path: of a regular file of leatd's own user
 * @why: gets the reason of a failure
 *
 * Return: 0; -EKEYREJECTED: others may read it; -EINVAL: it is not a key file; -errno.
 */
int must_check stripe_key_load(const char *path, uint64_t *ret_volume, struct stripe_keys *ret_keys, char *why,
			       size_t why_bytes);

/** stripe_key_parse - the same for the text of one; @text is changed */
int must_check stripe_key_parse(char *text, uint64_t *ret_volume, struct stripe_keys *ret_keys, char *why,
				size_t why_bytes);

#endif
