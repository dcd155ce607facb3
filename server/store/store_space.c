/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_space.c - space of a file or device: DISCARD, ZERO, EXTENTS
 *
 * Operation: A hole is punched for DISCARD and for ZERO, or for ZERO with `keep` the range is converted
 *            (FALLOC_FL_ZERO_RANGE). The kernel does this under the lock of the file's page cache. It drops cached
 *            pages of the range, waits for direct I/O, and writes zeroes into the pages and blocks that the range
 *            covers in part. So readers see zeroes by either descriptor, and neighbours stay. The size never changes.
 *            Where the file system supports neither, ZERO writes zeroes through the page cache.
 *            A device does the same by the same calls. It zeroes by command, or the kernel writes zeroes. But a hole
 *            in a device means zeroes, so DISCARD is a command of its own. Both take whole logical blocks: ZERO
 *            writes the rest through the page cache, DISCARD leaves it as it is.
 *            By a descriptor that does not have the device exclusively, while another one has, the kernel drops no
 *            dirty page. It returns EBUSY, and the pages are written back first. If that fails, the kernel tells this
 *            descriptor, and so not the next fsync() of it: backing.sync_fd is another one.
 *            DISCARD and ZERO are done in strides, each a job of its own, so that other clients get the worker in
 *            between. Strides end at multiples of STORE_STRIDE in the file. A stable one syncs after the last stride.
 *            EXTENTS asks lseek(), on file systems that are known to tell the truth (fs_limits.c); a device, and any
 *            other, is all data. lseek() moves the descriptor's offset, which nothing else uses.
 * Memory:    None, except zeroes.
 * Threads:   Submit and done on the reactor, run_*() on a worker, also for files in memory: a range takes long even
 *            there. Finding capabilities on a worker.
 * Errors:    Those of the file system, unchanged. See store.h.
 */
#include "store_space.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/fs.h>

#include "fs_limits.h"
#include "store_file.h"

#define ZEROES (64u << 10)
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define CONVERT (FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE)
#define WRITE_BACK (SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER)
#define BUSY_TRIES 8u /* pages may become dirty again meanwhile */

/* ---- changes ------------------------------------------------------------------------------ */

/* What BLKDISCARD takes: no mode of fallocate() */
#define DISCARD_BLOCKS -1

/* Changes the range by one system call, after others if it must; Return: 0; -EOPNOTSUPP: not possible here; -errno */
static int change(int fd, int mode, uint64_t off, uint32_t len)
{
	const uint64_t range[2] = { off, len };
	int err;

	for (unsigned tries = 0;;) {
		if (mode == DISCARD_BLOCKS)
			err = ioctl(fd, BLKDISCARD, range) ? -errno : 0;
		else
			err = fallocate(fd, mode, (off_t)off, (off_t)len) ? -errno : 0;
		if (err == -EBUSY && tries++ < BUSY_TRIES)
			(void)sync_file_range(fd, (off_t)off, (off_t)len, WRITE_BACK);
		else if (err != -EINTR)
			break;
	}
	return err == -ENOSYS || err == -ENOTTY ? -EOPNOTSUPP : err;
}

static int write_zeroes(int fd, uint64_t off, uint32_t len)
{
	static const char zeroes[ZEROES];

	while (len) {
		ssize_t n = pwrite(fd, zeroes, MIN(len, sizeof(zeroes)), (off_t)off);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n)
			return -EIO;
		if (n > 0) {
			off += (uint64_t)n;
			len -= (uint32_t)n;
		}
	}
	return 0;
}

static int zero_blocks(const struct store_io *io, uint64_t off, uint32_t len)
{
	int fd = io->file->fd, err = -EOPNOTSUPP;

	if (!io->keep)
		err = change(fd, PUNCH, off, len);
	if (err == -EOPNOTSUPP)
		err = change(fd, CONVERT, off, len);
	return err == -EOPNOTSUPP || err == -EBUSY ? write_zeroes(fd, off, len) : err;
}

/* The whole blocks in a range. */
struct blocks {
	uint32_t head, len, tail; /* bytes: before them, of them, behind them; len 0: head is all of the range */
	bool device;
};

static struct blocks find_blocks(int fd, uint64_t off, uint32_t len)
{
	struct blocks b = { .len = len };
	uint32_t block, head;
	struct stat st;

	b.device = !fstat(fd, &st) && S_ISBLK(st.st_mode);
	if (!b.device)
		return b;
	block = store_file_block(fd);
	head = (uint32_t)(-off % block);
	if (head >= len || len - head < block)
		return (struct blocks){ .head = len, .device = true };
	b.head = head;
	b.tail = (uint32_t)((off + len) % block);
	b.len -= b.head + b.tail;
	return b;
}

/* The blocks come first: what is written beside them makes their pages dirty. */
static int zero(const struct store_io *io, uint64_t off, uint32_t len)
{
	const struct blocks b = find_blocks(io->file->fd, off, len);
	int err = b.len ? zero_blocks(io, off + b.head, b.len) : 0;

	if (!err)
		err = write_zeroes(io->file->fd, off, b.head);
	return err ? err : write_zeroes(io->file->fd, off + len - b.tail, b.tail);
}

static int discard(const struct store_io *io, uint64_t off, uint32_t len)
{
	const struct blocks b = find_blocks(io->file->fd, off, len);

	return b.len ? change(io->file->fd, b.device ? DISCARD_BLOCKS : PUNCH, off + b.head, b.len) : 0;
}

/* The file may have been truncated meanwhile: a stride that wrote zeroes would make it grow again. */
static int check_range(const struct store_io *io)
{
	uint64_t size;
	int err = store_file_size(io->file->fd, &size);

	if (err)
		return err;
	return io->bytes > size || io->off > size - io->bytes ? -EINVAL : 0;
}

/* Return: bytes that are done so far, or -errno */
static int32_t change_stride(struct store_io *io)
{
	uint64_t off = io->off + io->head;
	uint32_t len = MIN(io->bytes - io->head, STORE_STRIDE - (uint32_t)(off % STORE_STRIDE));
	int err = check_range(io);

	if (!err)
		err = io->op == STORE_ZERO ? zero(io, off, len) : discard(io, off, len);
	if (err)
		return err;
	io->head += len;
	return (int32_t)io->head;
}

static void run_change(struct worker_job *job)
{
	store_file_write(container_of(job, struct store_io, job), change_stride);
}

static void on_changed(struct worker_job *job)
{
	struct store_io *io = container_of(job, struct store_io, job);

	if (io->res < 0 || io->head == io->bytes)
		io->done(io);
	else
		store_file_run(io, run_change, on_changed);
}

/* ---- extents ------------------------------------------------------------------------------ */

static void add_extent(struct store_io *io, uint64_t length, enum store_extent_kind kind)
{
	struct store_extents *x = io->extents;

	x->v[x->n].length = length;
	x->v[x->n++].kind = kind;
	io->head += (uint32_t)length;
}

void store_space_all_data(struct store_io *io)
{
	io->extents->n = 0;
	if (io->bytes)
		add_extent(io, io->bytes, STORE_DATA_EXTENT);
	io->res = (int32_t)io->bytes;
}

/* Return: where data or a hole begins at @at or behind it, at most @end; -errno */
static int64_t seek(int fd, uint64_t at, uint64_t end, int whence)
{
	off_t found = lseek(fd, (off_t)at, whence);

	if (found < 0)
		return errno == ENXIO ? (int64_t)end : -errno;
	return MIN((int64_t)found, (int64_t)end);
}

/* Others may write at the same time, so a hole may begin where there was data a moment ago. Then the rest counts as
 * data, which is never wrong. */
static void next_extent(struct store_io *io)
{
	uint64_t at = io->off + io->head, end = io->off + io->bytes;
	int64_t data = seek(io->file->fd, at, end, SEEK_DATA), hole = -1;

	if (data > (int64_t)at) {
		add_extent(io, (uint64_t)data - at, STORE_HOLE_EXTENT);
		return;
	}
	if (data >= 0)
		hole = seek(io->file->fd, at, end, SEEK_HOLE);
	add_extent(io, hole > (int64_t)at ? (uint64_t)hole - at : end - at, STORE_DATA_EXTENT);
}

static void run_extents(struct worker_job *job)
{
	struct store_io *io = container_of(job, struct store_io, job);
	struct fs_space space;

	io->extents->n = 0;
	io->res = check_range(io);
	if (io->res)
		return;
	fs_space_find(io->file->fd, &space);
	if (!space.tells_holes) {
		store_space_all_data(io);
		return;
	}
	while (io->head < io->bytes && io->extents->n < STORE_EXTENTS_MAX)
		next_extent(io);
	io->res = (int32_t)io->head;
}

/* ---- submitting --------------------------------------------------------------------------- */

int store_space_submit(struct store *s, struct store_io *io)
{
	if (!io->bytes) {
		if (io->op == STORE_EXTENTS)
			io->extents->n = 0;
		io->res = 0;
		return 1;
	}
	store_count(s, store_worker);
	if (io->op == STORE_EXTENTS)
		store_file_run(io, run_extents, NULL);
	else
		store_file_run(io, run_change, on_changed);
	return 0;
}

/* ---- capabilities ------------------------------------------------------------------------- */

/* Punches a hole behind the end of the file, where no contents are. At most that releases space which was allocated
 * there in advance, to no effect on any reader. A file system that cannot punch holes refuses it. */
static bool can_punch(int fd, uint64_t size)
{
	uint64_t off = size - size % STORE_STRIDE + STORE_STRIDE;

	return off <= INT64_MAX - DATA_ALIGN && !change(fd, PUNCH, off, DATA_ALIGN);
}

static bool has_limit(dev_t dev, const char *name)
{
	uint64_t bytes;

	return store_device_limit(dev, name, &bytes) && bytes;
}

/* The kernel knows it from the device; it tells of no holes. */
static void find_device_caps(const struct store_file *f, dev_t dev, struct store_caps *ret)
{
	ret->discard = f->writable && has_limit(dev, "discard_max_bytes");
	ret->fast_zero = ret->fast_keep = f->writable && has_limit(dev, "write_zeroes_max_bytes");
}

void store_caps_find(const struct store_file *f, struct store_caps *ret)
{
	struct fs_space space;
	struct stat st;
	uint64_t size;

	*ret = (struct store_caps){ 0 };
	if (fstat(f->fd, &st) || store_file_size(f->fd, &size))
		return;
	if (S_ISBLK(st.st_mode)) {
		find_device_caps(f, st.st_rdev, ret);
		return;
	}
	fs_space_find(f->fd, &space);
	ret->extents = space.tells_holes;
	ret->discard = ret->fast_zero = f->writable && can_punch(f->fd, size);
	/* not tried: a range that is converted gets space */
	ret->fast_keep = ret->fast_zero && space.converts;
}
