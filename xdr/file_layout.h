/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * file_layout.h - the layout of a striped file, and the defaults of a directory: extended attributes
 *
 * The layout of a file, numbers with the highest byte first:
 *
 *	0	"leatlay1": the version of this format
 *	8	volume (8)
 *	16	object (16): random, never used again
 *	32	epoch (8): at least 1
 *	40	stripe unit in bytes (4)
 *	44	copies (4): 1
 *	48	width (4)
 *	52	cut (4): enum file_cut
 *	56	bytes (8): of the file behind the cut; 0 without one
 *	64	servers (4 each): stripe i is on server i of this list
 *	...	earlier cuts: epoch (8), bytes (8) of each; as many as there is room for
 *	...	signature (8): by a key of the volume, of the bytes above, the number of the inode (8) and its generation (8)
 *
 * The signature binds the layout to one inode: a copy of the attribute on another file is refused.
 *
 * A server that was away may lack several cuts. If its object has epoch e, it has to be cut to the least of the cuts that began
 * later epochs. So a cut is forgotten when a later one is as short, and both epochs and bytes of the list grow, up to the last
 * cut. A server gets all of them, in this order; those that it has change nothing.
 *
 * The defaults of a directory, for new files and directories in it:
 *
 *	0	"leatdir1"
 *	8	stripe unit (4); 0: as the volume says
 *	12	width (4); 0: as the volume says
 *
 * They are not signed: they choose the layout of new files, and permit nothing.
 *
 * Pure: no state, no clock, no system call.
 */
#ifndef LEAT_FILE_LAYOUT_H
#define LEAT_FILE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "layout.h"
#include "stripe_handle.h"

/* Names of the attribute: the first one where the leatd may set it */
#define FILE_LAYOUT_ROOT "trusted.leat"
#define FILE_LAYOUT_USER "user.leat"

#define FILE_LAYOUT_TAG "leatlay1"
#define FILE_LAYOUT_HEAD 64u
#define FILE_CUTS_MAX 16u /* earlier cuts */
#define FILE_LAYOUT_MAX (FILE_LAYOUT_HEAD + 4 * LAYOUT_WIDTH_MAX + 16 * FILE_CUTS_MAX + 8)

#define DIR_DEFAULTS_TAG "leatdir1"
#define DIR_DEFAULTS_BYTES 16u

/* An inode, as long as it exists. */
struct inode_id {
	uint64_t ino, generation; /* generation 0: the file system has none */
};

/* A cut of the file that is not complete on all of its servers. */
enum file_cut {
	FILE_CUT_NONE,
	FILE_CUT_SIZE,	/* the inode may still have the old size; so has no client been told yet */
	FILE_CUT_FENCE, /* servers may lack the epoch and the cut */
};

/* A cut before the last one. */
struct file_cut_at {
	uint64_t epoch, bytes;
};

struct file_layout {
	uint64_t volume;
	char object[STRIPE_OBJECT_BYTES];
	uint64_t epoch;
	enum file_cut cut;
	uint64_t cut_bytes; /* 0 without a cut */
	struct layout at; /* unit and width */
	uint32_t servers[LAYOUT_WIDTH_MAX];
	uint32_t nearlier; /* 0 without a cut */
	struct file_cut_at earlier[FILE_CUTS_MAX];
};

struct dir_defaults {
	uint32_t unit, width; /* 0: as the volume says */
};

/** file_layout_cut - begins a cut to @bytes, in the next epoch; an earlier one need not be complete
 * Return: 0; -ENOSPC: too many earlier ones have to be remembered */
int must_check file_layout_cut(struct file_layout *l, uint64_t bytes);

/** file_layout_cut_done - all servers have the cuts */
void file_layout_cut_done(struct file_layout *l);

/** file_layout_encode - signs a layout with the first key; Return: the number of bytes */
size_t file_layout_encode(const struct stripe_keys *keys, const struct inode_id *inode, const struct file_layout *l,
			  uint8_t ret[FILE_LAYOUT_MAX]);

/** file_layout_decode - checks a layout and its signature
 * @volume: the volume that it has to be of
 *
 * Return: 0; -EBADMSG: it is not a layout of this version and this volume; -EKEYREJECTED: not signed for this inode.
 */
int must_check file_layout_decode(const struct stripe_keys *keys, uint64_t volume, const struct inode_id *inode,
				  const uint8_t *bytes, size_t n, struct file_layout *ret);

/** file_layout_parse - the same without the signature, which says nothing behind a restore from a backup
 * Return: 0, -EBADMSG */
int must_check file_layout_parse(uint64_t volume, const uint8_t *bytes, size_t n, struct file_layout *ret);

/** dir_defaults_encode - encodes the defaults of a directory */
void dir_defaults_encode(const struct dir_defaults *d, uint8_t ret[DIR_DEFAULTS_BYTES]);

/** dir_defaults_decode - Return: 0; -EBADMSG: they are none, or not possible */
int must_check dir_defaults_decode(const uint8_t *bytes, size_t n, struct dir_defaults *ret);

#endif
