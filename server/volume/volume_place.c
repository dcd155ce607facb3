/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_place.c - where the stripes of a new file lie
 *
 * Operation: The servers that take new files, and are in reach, get them in turn, or by free space. So a file may have fewer
 *            stripes while servers are away. The layout is set unless the file has one.
 * Memory:    The stack.
 * Threads:   Workers.
 * Errors:    -errno.
 */
#include <errno.h>
#include <sys/random.h>

#include "inode_id.h"
#include "volume_layout.h"
#include "volume_reach.h"

/* Where bytes are free, each of the @n servers begins as many of the files as its share is. @turn: counts files */
static unsigned find_room(const uint64_t *room, unsigned n, unsigned turn)
{
	double total = 0, at = (double)(turn * 2654435769u) / 4294967296.0; /* spread evenly over 0 to 1 */

	for (unsigned i = 0; i < n; i++)
		total += (double)room[i];
	for (unsigned i = 0; i < n && total > 0; i++) {
		double share = (double)room[i] / total;

		if (at < share)
			return i;
		at -= share;
	}
	return turn % n; /* nothing is known */
}

/* Fills in unit, width and servers, beginning at the next server. Return: 0; -ENOSPC: no server takes new files */
static int choose_servers(struct volume_manager *m, const struct dir_defaults *d, struct file_layout *l)
{
	unsigned turn = atomic_fetch_add_explicit(&m->dir->turn, 1, memory_order_relaxed), first;
	unsigned list[VOLUME_SERVERS_MAX], n = volume_manager_full(m, list);
	uint64_t room[VOLUME_SERVERS_MAX];

	if (!n)
		return -ENOSPC;
	n = volume_reach_pick(m->dir->reach, &m->map, list, n, room);
	first = m->start_free ? find_room(room, n, turn) : turn % n;
	l->at.unit = d->unit ? d->unit : m->unit;
	l->at.width = MIN(d->width ? d->width : m->width, n);
	for (uint32_t i = 0; i < l->at.width; i++)
		l->servers[i] = m->map.servers[list[(first + i) % n]].id;
	return 0;
}

int volume_layout_add(const struct volume_file *f, const struct dir_defaults *d)
{
	struct file_layout l = { .volume = f->m->dir->volume, .epoch = 1 };
	uint8_t bytes[FILE_LAYOUT_MAX];
	struct inode_id inode;
	int err = inode_id_find(f->fd, f->ino, &inode);

	if (!err)
		err = choose_servers(f->m, d, &l);
	if (err)
		return err;
	if (getrandom(l.object, sizeof(l.object), 0) != (ssize_t)sizeof(l.object))
		return -EIO;
	return volume_attribute_add(f, bytes, file_layout_encode(&f->m->keys, &inode, &l, bytes));
}
