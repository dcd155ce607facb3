/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * file_layout.c - encodes and checks the layout of a striped file, and the defaults of a directory
 *
 * Operation: file_layout_decode() checks the signature before anything of the layout is used, except its length, tag and volume.
 * Memory:    The caller's.
 * Threads:   Any.
 * Errors:    -EBADMSG, -EKEYREJECTED.
 */
#include "file_layout.h"

#include <errno.h>
#include <string.h>

#include "base/wire.h"

#define COPIES 1u
#define INODE_BYTES 16u
#define EARLIER_BYTES 16u

/* ---- cuts ----------------------------------------------------------------------------------- */

static void forget_cuts(struct file_layout *l, uint32_t from)
{
	memset(&l->earlier[from], 0, (FILE_CUTS_MAX - from) * sizeof(l->earlier[0]));
	l->nearlier = from;
}

int file_layout_cut(struct file_layout *l, uint64_t bytes)
{
	uint32_t n = l->nearlier;

	if (l->cut != FILE_CUT_NONE && l->cut_bytes < bytes) { /* so are all earlier ones */
		if (n == FILE_CUTS_MAX)
			return -ENOSPC;
		l->earlier[l->nearlier++] = (struct file_cut_at){ l->epoch, l->cut_bytes };
	} else {
		while (n && l->earlier[n - 1].bytes >= bytes)
			n--;
		forget_cuts(l, n);
	}
	l->epoch++;
	l->cut = FILE_CUT_SIZE;
	l->cut_bytes = bytes;
	return 0;
}

void file_layout_cut_done(struct file_layout *l)
{
	l->cut = FILE_CUT_NONE;
	l->cut_bytes = 0;
	forget_cuts(l, 0);
}

/* ---- the attribute -------------------------------------------------------------------------- */

/* Appends the inode to the @n bytes that are signed. */
static size_t add_inode(uint8_t *body, size_t n, const struct inode_id *inode)
{
	put_be64(body + n, inode->ino);
	put_be64(body + n + 8, inode->generation);
	return n + INODE_BYTES;
}

size_t file_layout_encode(const struct stripe_keys *keys, const struct inode_id *inode, const struct file_layout *l,
			  uint8_t ret[FILE_LAYOUT_MAX])
{
	uint8_t body[FILE_LAYOUT_MAX + INODE_BYTES];
	size_t n = FILE_LAYOUT_HEAD;

	memcpy(body, FILE_LAYOUT_TAG, 8);
	put_be64(body + 8, l->volume);
	memcpy(body + 16, l->object, STRIPE_OBJECT_BYTES);
	put_be64(body + 32, l->epoch);
	put_be32(body + 40, l->at.unit);
	put_be32(body + 44, COPIES);
	put_be32(body + 48, l->at.width);
	put_be32(body + 52, l->cut);
	put_be64(body + 56, l->cut_bytes);
	for (uint32_t i = 0; i < l->at.width; i++, n += 4)
		put_be32(body + n, l->servers[i]);
	for (uint32_t i = 0; i < l->nearlier; i++, n += EARLIER_BYTES) {
		put_be64(body + n, l->earlier[i].epoch);
		put_be64(body + n + 8, l->earlier[i].bytes);
	}
	memcpy(ret, body, n);
	put_be64(ret + n, siphash(&keys->v[0], body, add_inode(body, n, inode)));
	return n + 8;
}

/* Both epochs and bytes grow. */
static bool are_possible(const struct file_layout *l)
{
	struct file_cut_at before = { .epoch = 1 };

	if (l->nearlier && l->cut == FILE_CUT_NONE)
		return false;
	for (uint32_t i = 0; i < l->nearlier; i++) {
		const struct file_cut_at *at = &l->earlier[i];

		if (at->epoch <= before.epoch || (i && at->bytes <= before.bytes))
			return false;
		before = *at;
	}
	return !l->nearlier || (before.epoch < l->epoch && before.bytes < l->cut_bytes);
}

static bool is_possible(const struct file_layout *l, uint32_t copies)
{
	if (l->cut > FILE_CUT_FENCE || l->cut_bytes > INT64_MAX || (l->cut == FILE_CUT_NONE && l->cut_bytes))
		return false;
	if (!l->epoch || copies != COPIES || !layout_valid(&l->at) || !are_possible(l))
		return false;
	for (uint32_t i = 0; i < l->at.width; i++)
		if (!l->servers[i])
			return false;
	return true;
}

/* Return: the bytes before the signature; 0: it is not a layout of this version and this volume */
static size_t find_end(uint64_t volume, const uint8_t *bytes, size_t n)
{
	size_t servers_end;
	uint32_t width;

	if (n < FILE_LAYOUT_HEAD + 8 || n > FILE_LAYOUT_MAX || memcmp(bytes, FILE_LAYOUT_TAG, 8) ||
	    get_be64(bytes + 8) != volume)
		return 0;
	width = get_be32(bytes + 48);
	if (width > LAYOUT_WIDTH_MAX)
		return 0;
	servers_end = FILE_LAYOUT_HEAD + 4 * (size_t)width;
	if (n - 8 < servers_end || (n - 8 - servers_end) % EARLIER_BYTES || (n - 8 - servers_end) / EARLIER_BYTES > FILE_CUTS_MAX)
		return 0;
	return n - 8;
}

int file_layout_parse(uint64_t volume, const uint8_t *bytes, size_t n, struct file_layout *ret)
{
	size_t end = find_end(volume, bytes, n), at;
	struct file_layout l;

	if (!end)
		return -EBADMSG;
	memset(&l, 0, sizeof(l)); /* padding, too: callers compare */
	l.at = (struct layout){ get_be32(bytes + 40), get_be32(bytes + 48) };
	l.volume = volume;
	memcpy(l.object, bytes + 16, STRIPE_OBJECT_BYTES);
	l.epoch = get_be64(bytes + 32);
	l.cut = (enum file_cut)get_be32(bytes + 52);
	l.cut_bytes = get_be64(bytes + 56);
	for (uint32_t i = 0; i < LAYOUT_WIDTH_MAX; i++)
		l.servers[i] = i < l.at.width ? get_be32(bytes + FILE_LAYOUT_HEAD + 4 * i) : 0;
	for (at = FILE_LAYOUT_HEAD + 4 * (size_t)l.at.width; at < end; at += EARLIER_BYTES)
		l.earlier[l.nearlier++] = (struct file_cut_at){ get_be64(bytes + at), get_be64(bytes + at + 8) };
	if (!is_possible(&l, get_be32(bytes + 44)))
		return -EBADMSG;
	*ret = l;
	return 0;
}

int file_layout_decode(const struct stripe_keys *keys, uint64_t volume, const struct inode_id *inode, const uint8_t *bytes,
		       size_t n, struct file_layout *ret)
{
	uint8_t body[FILE_LAYOUT_MAX + INODE_BYTES];
	size_t end = find_end(volume, bytes, n);

	if (!end)
		return -EBADMSG;
	memcpy(body, bytes, end);
	if (!stripe_signed(keys, body, add_inode(body, end, inode), get_be64(bytes + end)))
		return -EKEYREJECTED;
	return file_layout_parse(volume, bytes, n, ret);
}

void dir_defaults_encode(const struct dir_defaults *d, uint8_t ret[DIR_DEFAULTS_BYTES])
{
	memcpy(ret, DIR_DEFAULTS_TAG, 8);
	put_be32(ret + 8, d->unit);
	put_be32(ret + 12, d->width);
}

int dir_defaults_decode(const uint8_t *bytes, size_t n, struct dir_defaults *ret)
{
	struct dir_defaults d;

	if (n != DIR_DEFAULTS_BYTES || memcmp(bytes, DIR_DEFAULTS_TAG, 8))
		return -EBADMSG;
	d = (struct dir_defaults){ get_be32(bytes + 8), get_be32(bytes + 12) };
	if (!layout_valid(&(struct layout){ d.unit ? d.unit : LAYOUT_UNIT_MIN, d.width ? d.width : 1 }))
		return -EBADMSG;
	*ret = d;
	return 0;
}
