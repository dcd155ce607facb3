/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_dir.h - a directory of stripes: its marker, its lock, and what it keeps of its volume
 *
 *	leat-stripes			the marker: lines of text that name volume, server and kind of record
 *	term				the newest term of a manager that was obeyed: term_load()
 *	objects/XX/OBJECT.STRIPE	an object: 32 hexadecimal digits, XX are the first two, and the number of its stripe;
 *					XX is made with its first object
 *	lost+found/OBJECT.STRIPE	an object that was set aside (stripe_aside.c)
 *
 * The file of an object has its bytes as they are, and its record as an extended attribute (stripe_record.h).
 *
 * Functions that return an error set a text for the user, and block.
 */
#ifndef LEAT_SERVER_STRIPE_DIR_H
#define LEAT_SERVER_STRIPE_DIR_H

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "stripes.h"

#define STRIPE_DIR_FANOUT 256u
#define STRIPE_PATH_BYTES 64u

struct stripe_dir {
	int fd;	     /* the directory: locked */
	int objects; /* its objects/ */
	uint64_t volume;
	uint32_t server;
	uint64_t dev, ino;
	const char *record; /* name of the extended attribute */
};

/** stripe_dir_open - opens a directory of stripes, and makes one of an empty directory
 *
 * Return: 0; -EBUSY: another leatd uses it; -EINVAL: it is of another volume or server, or has other files;
 * -EOPNOTSUPP: its file system has no extended attributes; -errno.
 */
int must_check stripe_dir_open(const char *path, uint64_t volume, uint32_t server, struct stripe_dir *ret, char *why,
			       size_t why_bytes);

/** stripe_dir_close - unlocks it; a zeroed @d is fine */
void stripe_dir_close(struct stripe_dir *d);

/** stripe_dir_path - the path of an object below objects/ */
void stripe_dir_path(const stripe_name *name, char ret[STRIPE_PATH_BYTES]);

/** stripe_dir_name - the name of an object whose file has this name in directory @fan of objects/
 *
 * Return: 0; -EINVAL: no object has this file name.
 */
int must_check stripe_dir_name(unsigned fan, const char *file, stripe_name *ret);

#endif
