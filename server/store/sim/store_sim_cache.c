/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_sim_cache.c - the volatile cache of a modelled disk
 *
 * Operation: For each file with unstable bytes, the cache has extents in order of offset that do not overlap. They hold
 *            the stable contents of bytes that have other contents in the file. Of several writes to a byte only
 *            the first saves anything. The cache also has the stable size of the file, and the size after its
 *            last write. If the file has another size at the cut, a request has set it since. Then that size stays,
 *            since the cache does not cover setting the size.
 *            Beyond its limits the cache writes back the oldest data, as a disk would.
 * Memory:    An extent with its bytes, and a descriptor for each file.
 * Threads:   The one that holds the owner's lock. Reads and writes files, so it must not run on a reactor, unless
 *            they are in memory.
 * Errors:    A write must not be done if its old data cannot be saved. A cut ignores errors.
 */
#include "store_sim_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store.h"

struct extent {
	struct list link;
	uint64_t off;
	uint32_t len;
	char was[];
};

struct file {
	struct list link; /* sim_cache.files */
	struct list extents;
	uint64_t dev, ino;
	int fd;
	uint64_t size;	    /* the stable size */
	uint64_t left_size; /* after the cache's last write */
};

void sim_cache_init(struct sim_cache *c, size_t bytes_max)
{
	list_init(&c->files);
	c->nfiles = c->bytes = 0;
	c->bytes_max = bytes_max;
}

static void extent_free(struct sim_cache *c, struct extent *x)
{
	list_del(&x->link);
	c->bytes -= x->len;
	free(x);
}

static void file_free(struct sim_cache *c, struct file *f)
{
	list_for_each_safe(n, &f->extents)
		extent_free(c, list_entry(n, struct extent, link));
	list_del(&f->link);
	c->nfiles--;
	close(f->fd);
	free(f);
}

void sim_cache_fini(struct sim_cache *c)
{
	list_for_each_safe(n, &c->files)
		file_free(c, list_entry(n, struct file, link));
}

static struct file *find(const struct sim_cache *c, uint64_t dev, uint64_t ino)
{
	list_for_each(n, &c->files) {
		struct file *f = list_entry(n, struct file, link);

		if (f->dev == dev && f->ino == ino)
			return f;
	}
	return NULL;
}

/* Saves [@off, @end) of the file as stable contents, in the list before @next */
static int remember(struct sim_cache *c, struct file *f, struct list *next, uint64_t off,
		    uint64_t end)
{
	uint32_t len = (uint32_t)(end - off);
	struct extent *x = calloc(1, sizeof(*x) + len); /* beyond the file's end it is zeroes */
	ssize_t n;

	if (!x)
		return -ENOMEM;
	x->off = off;
	x->len = len;
	n = pread(f->fd, x->was, len, (off_t)off);
	if (n < 0) {
		free(x);
		return -errno;
	}
	list_insert_between(&x->link, next->prev, next);
	c->bytes += len;
	return 0;
}

/* Saves the gaps between the extents in [@off, @end) */
static int fill_gaps(struct sim_cache *c, struct file *f, uint64_t off, uint64_t end)
{
	int err = 0;

	list_for_each(n, &f->extents) {
		struct extent *x = list_entry(n, struct extent, link);

		if (x->off >= end)
			return remember(c, f, n, off, end);
		if (x->off + x->len <= off)
			continue;
		if (x->off > off)
			err = remember(c, f, n, off, x->off);
		off = x->off + x->len;
		if (err || off >= end)
			return err;
	}
	return remember(c, f, &f->extents, off, end);
}

/* Drops what overlaps with [@off, @end), and keeps the rest. Without memory for a rest, its bytes count as stable,
 * although they are not. */
static void forget(struct sim_cache *c, struct file *f, uint64_t off, uint64_t end)
{
	list_for_each_safe(n, &f->extents) {
		struct extent *x = list_entry(n, struct extent, link), *rest;
		uint64_t x_end = x->off + x->len;

		if (x_end <= off || x->off >= end)
			continue;
		rest = x_end > end ? calloc(1, sizeof(*rest) + (size_t)(x_end - end)) : NULL;
		if (rest) {
			rest->off = end;
			rest->len = (uint32_t)(x_end - end);
			memcpy(rest->was, x->was + (end - x->off), rest->len);
			list_insert_between(&rest->link, &x->link, x->link.next);
			c->bytes += rest->len;
		}
		if (x->off >= off) {
			extent_free(c, x);
		} else {
			c->bytes -= x_end - off;
			x->len = (uint32_t)(off - x->off);
		}
	}
}

static int file_add(struct sim_cache *c, int fd, uint64_t dev, uint64_t ino, uint64_t size,
		    struct file **ret)
{
	struct file *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (f->fd < 0) {
		int err = -errno;

		free(f);
		return err;
	}
	list_init(&f->extents);
	f->dev = dev;
	f->ino = ino;
	f->size = f->left_size = size;
	list_add_tail(&c->files, &f->link);
	c->nfiles++;
	*ret = f;
	return 0;
}

static void write_back(struct sim_cache *c)
{
	while (c->nfiles && (c->nfiles > SIM_CACHE_FILES || c->bytes > c->bytes_max))
		file_free(c, list_first_entry(&c->files, struct file, link));
}

int sim_cache_write(struct sim_cache *c, int fd, uint64_t dev, uint64_t ino, uint64_t off,
		    uint32_t len)
{
	struct file *f = find(c, dev, ino);
	uint64_t size, end = off + len;
	int err = store_file_size(fd, &size);

	if (err)
		return err;
	if (len > c->bytes_max) { /* written back at once, after the data before it */
		sim_cache_sync(c, dev, ino);
		return 0;
	}
	if (!f)
		err = file_add(c, fd, dev, ino, size, &f);
	if (err)
		return err;
	if (size < f->size) { /* the file was truncated */
		f->size = size;
		forget(c, f, size, UINT64_MAX);
	}
	err = fill_gaps(c, f, off, end);
	f->left_size = MAX(size, end);
	write_back(c);
	return err;
}

void sim_cache_stable(struct sim_cache *c, uint64_t dev, uint64_t ino, uint64_t off, uint32_t len)
{
	struct file *f = find(c, dev, ino);

	if (!f)
		return;
	forget(c, f, off, off + len);
	f->size = MAX(f->size, off + len);
	f->left_size = MAX(f->left_size, off + len);
}

void sim_cache_sync(struct sim_cache *c, uint64_t dev, uint64_t ino)
{
	struct file *f = find(c, dev, ino);

	if (f)
		file_free(c, f);
}

static void put_back(const struct extent *x, const struct file *f, uint64_t size)
{
	uint32_t len = x->len;
	ssize_t n = 1;

	if (x->off >= size)
		return;
	if (len > size - x->off)
		len = (uint32_t)(size - x->off);
	for (uint32_t at = 0; at < len && n > 0; at += (uint32_t)n)
		n = pwrite(f->fd, x->was + at, len - at, (off_t)(x->off + at));
}

static void cut_file(const struct file *f)
{
	uint64_t size;

	if (store_file_size(f->fd, &size))
		return;
	/* truncate to the stable size; if the size was changed since the last write, extend it again with zeroes */
	if (size > f->size && !ftruncate(f->fd, (off_t)f->size) && size != f->left_size)
		(void)!ftruncate(f->fd, (off_t)size);
	list_for_each(n, &f->extents)
		put_back(list_entry(n, struct extent, link), f, MIN(size, f->size));
}

size_t sim_cache_cut(struct sim_cache *c)
{
	size_t bytes = c->bytes;

	list_for_each(n, &c->files)
		cut_file(list_entry(n, struct file, link));
	sim_cache_fini(c);
	return bytes;
}
