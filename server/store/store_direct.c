/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_direct.c - direct I/O: a second descriptor that bypasses the page cache, and how to use it
 *
 * Operation: A file that is served directly has two descriptors. The one with O_DIRECT moves data that begins and ends
 *            at the device's alignment. The other moves everything else. So neighbouring bytes are never read,
 *            modified and written back, and no file grows by rounding. A read may be rounded instead, if its memory
 *            has room on both sides.
 *            Only whole pages are written directly, so no cached page is half covered by a direct write.
 *            The kernel keeps both descriptors coherent: a direct read first writes back dirty pages, and a direct
 *            write invalidates the pages it covers. This holds for read() and write(), but not for stores to a
 *            mapping at the same time.
 * Memory:    None of its own.
 * Threads:   Opening and moving on workers; the rest on any.
 * Errors:    If a file system returns EINVAL for I/O with the alignment that it asked for, its direct I/O is not
 *            usable: io->refused.
 */
#include "store_direct.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "data_conf.h"
#include "store_device.h"
#include "store_file.h"
#include "vfs_int.h"

#define ALIGN_MAX (64u << 10)
#define RESIDENT_PAGES 1024 /* more than the longest READ has */

/* ---- opening ------------------------------------------------------------------------------ */

static bool is_align(uint32_t n)
{
	return n && n <= ALIGN_MAX && !(n & (n - 1));
}

/* Linux since 6.1 reports the alignment for devices and some file systems. Page alignment suits the others. A device
 * takes what is aligned to its blocks. */
static int find_alignment(int fd, struct store_direct *d)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	struct stat st;

	d->mem_align = d->read_align = DATA_ALIGN;
	if (!fstat(fd, &st) && S_ISBLK(st.st_mode))
		d->mem_align = d->read_align = store_file_block(fd);
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) && stx.stx_mask & STATX_DIOALIGN) {
		d->mem_align = stx.stx_dio_mem_align;
		d->read_align = stx.stx_dio_offset_align;
	}
#endif
	d->write_align = MAX(d->read_align, page);
	return is_align(d->mem_align) && is_align(d->read_align) ? 0 : -EOPNOTSUPP;
}

/* The block layer would have to split I/O that exceeds the device's limit. It does not split RWF_NOWAIT I/O: that
 * fails with EAGAIN. */
static uint32_t find_part(int fd)
{
	uint64_t kib, limit = UINT32_MAX;
	struct stat st;

	if (!fstat(fd, &st) &&
	    store_device_limit(S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev, "max_sectors_kb", &kib) && kib)
		limit = MIN(limit, MAX(kib * 1024, STORE_PART_MIN));
	return (uint32_t)(limit - limit % ALIGN_MAX);
}

int store_direct_open(const struct store_file *f, bool reads, struct store_direct *ret)
{
	int flags = O_DIRECT | (fcntl(f->fd, F_GETFL) & O_NOATIME), fd, err;

	*ret = (struct store_direct){ .state = STORE_DIRECT_NONE };
	if (f->in_memory)
		return -EOPNOTSUPP;
	err = find_alignment(f->fd, ret);
	if (err)
		return err;
	fd = vfs_reopen(f->fd, (f->writable ? O_RDWR : O_RDONLY) | flags);
	if (fd < 0)
		return fd == -EINVAL ? -EOPNOTSUPP : fd;
	ret->fd = fd;
	ret->state = STORE_DIRECT_OPEN;
	ret->no_nowait = f->sets_atime;
	ret->part_bytes = find_part(fd);
	/* an unaligned end, read through the page cache, must not trigger read-ahead */
	if (reads)
		(void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_RANDOM);
	return 0;
}

/* ---- moving ------------------------------------------------------------------------------- */

static uint32_t align_of(const struct store_direct *d, const struct store_io *io)
{
	return io->op == STORE_READ ? d->read_align : d->write_align;
}

/* Return: true if the memory of @len bytes from @skip on is aligned as the device needs it */
static bool memory_fits(const struct store_direct *d, const struct store_io *io, uint32_t skip,
			uint32_t len)
{
	struct iovec iov[STORE_FILE_IOV];
	int n = store_file_iov(io, skip, len, iov, STORE_FILE_IOV);

	for (int i = 0; i < n; i++) {
		if ((uintptr_t)iov[i].iov_base % d->mem_align || iov[i].iov_len % d->read_align)
			return false;
	}
	return true;
}

bool store_direct_fits(const struct store_direct *d, struct store_io *io)
{
	uint64_t align = d->read_align, end = io->off + io->bytes;
	uint32_t head = (uint32_t)(io->off % align), tail = (uint32_t)(-end % align);

	if (head > io->pad_head || tail > io->pad_tail)
		return false;
	io->ext_head = head;
	io->ext_tail = tail;
	if (io->iovcnt <= STORE_FILE_IOV && memory_fits(d, io, 0, head + io->bytes + tail))
		return true;
	io->ext_head = io->ext_tail = 0;
	return false;
}

uint32_t store_direct_rest(struct store_io *io, uint32_t end)
{
	uint32_t head = io->ext_head;

	io->ext_head = io->ext_tail = 0;
	return end > head ? MIN(end - head, io->bytes) : 0;
}

/* Reads all of it, rounded; Return: bytes of @io, up to where the file or an error ended it */
static uint32_t read_rounded(struct store_io *io)
{
	uint32_t all = io->ext_head + io->bytes + io->ext_tail, at = 0;

	while (at < all) {
		ssize_t n = store_file_move(io->direct.fd, io, at, all - at, 0);

		if (n > 0)
			at += (uint32_t)n;
		if (n <= 0 || n % io->direct.read_align)
			break;
	}
	return store_direct_rest(io, at);
}

/* One system call from @at on; Return: bytes or -errno */
static ssize_t step(struct store_io *io, uint32_t at)
{
	const struct store_direct *d = &io->direct;
	uint32_t left = io->bytes - at, align, over;

	if (d->state != STORE_DIRECT_OPEN || io->refused)
		return store_file_through_cache(io, at, left);
	align = align_of(d, io);
	over = (uint32_t)((io->off + at) % align);
	if (over)
		return store_file_through_cache(io, at, MIN(left, align - over));
	if (left >= align && memory_fits(d, io, at, left - left % align)) {
		ssize_t n = store_file_move(d->fd, io, at, left - left % align, 0);

		if (n != -EINVAL)
			return n;
		io->refused = true;
	}
	return store_file_through_cache(io, at, left);
}

int32_t store_direct_move_all(struct store_io *io)
{
	uint32_t at = io->head;

	if (!at && io->op == STORE_READ && io->direct.state == STORE_DIRECT_OPEN &&
	    store_direct_fits(&io->direct, io))
		at = read_rounded(io);
	return store_file_by_steps(io, at, step);
}

/* ---- page cache residency ----------------------------------------------------------------- */

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

/* for Linux before 6.5 */
static bool resident_mincore(int fd, uint64_t off, uint64_t end)
{
	static const unsigned char in = 1;
	unsigned char seen[RESIDENT_PAGES];
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), len, n;
	bool all;
	void *map;

	off -= off % page;
	len = end - off;
	n = (len + page - 1) / page;
	if (n > RESIDENT_PAGES)
		return false;
	map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, (off_t)off);
	if (map == MAP_FAILED)
		return false;
	all = !mincore(map, len, seen);
	for (uint64_t i = 0; i < n && all; i++)
		all = seen[i] & in;
	munmap(map, len);
	return all;
}

bool store_direct_resident(int fd, uint64_t off, uint32_t bytes)
{
	struct {
		uint64_t off, len;
	} range = { off, bytes };
	struct {
		uint64_t cached, dirty, writeback, evicted, recently_evicted;
	} st;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (!syscall(SYS_cachestat, fd, &range, &st, 0))
		return st.cached >= (off + bytes - 1) / page - off / page + 1;
	return resident_mincore(fd, off, off + bytes);
}
