/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * back_posix.c - files by way of the kernel: a mount, or a directory of this machine
 *
 * Operation:  System calls, one after the other. Where O_DIRECT is wanted there is a second
 *             descriptor with it, so that operations past the page cache meet those through it. A
 *             mapping lives for one operation; what is stored into it is msync'ed at once.
 * Memory:     struct posix, gone with destroy().
 * Threads:    One.
 * Errors:     -errno of the call.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "tumble.h"

struct posix {
	struct back back;
	char *path;
	int fd, direct_fd;         /* -1: not open */
	bool direct;
};

static struct posix *posix(struct back *b)
{
	return container_of(b, struct posix, back);
}

static int posix_close(struct back *b)
{
	struct posix *p = posix(b);
	int rc = 0;

	if (p->direct_fd >= 0 && close(p->direct_fd))
		rc = -errno;
	if (p->fd >= 0 && close(p->fd) && !rc)
		rc = -errno;
	p->fd = p->direct_fd = -1;
	return rc;
}

static int posix_open(struct back *b, int flags)
{
	struct posix *p = posix(b);

	p->fd = open(p->path, O_RDWR | O_CLOEXEC | flags, 0644);
	if (p->fd < 0)
		return -errno;
	if (!p->direct)
		return 0;
	p->direct_fd = open(p->path, O_RDWR | O_CLOEXEC | O_DIRECT |
					     (flags & ~(O_CREAT | O_TRUNC | O_EXCL)));
	if (p->direct_fd < 0) {
		int err = -errno;

		(void)posix_close(b); /* the first error counts */
		return err;
	}
	return 0;
}

static int64_t map_move(int fd, const struct back_io *io)
{
	const struct op *op = io->op;
	uint64_t skip = op->off % (uint64_t)sysconf(_SC_PAGESIZE);
	size_t len = (size_t)(op->len + skip);
	bool write = op->kind == OP_WRITE;
	int64_t rc = (int64_t)op->len;
	uint8_t *map;

	map = mmap(NULL, len, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd,
		   (off_t)(op->off - skip));
	if (map == MAP_FAILED)
		return -errno;
	if (write)
		memcpy(map + skip, io->iov[0].iov_base, op->len);
	else
		memcpy(io->iov[0].iov_base, map + skip, op->len);
	if (write && msync(map, len, MS_SYNC))
		rc = -errno;
	munmap(map, len);
	return rc;
}

static int64_t move(struct posix *p, const struct back_io *io)
{
	const struct op *op = io->op;
	int fd = op->how & HOW_DIRECT ? p->direct_fd : p->fd;
	bool write = op->kind == OP_WRITE;
	ssize_t n;

	if (op->how & HOW_MAP)
		return map_move(p->fd, io);
	if (op->how & HOW_VECTOR) {
		n = write ? pwritev(fd, io->iov, io->iovcnt, (off_t)op->off)
			  : preadv(fd, io->iov, io->iovcnt, (off_t)op->off);
	} else if (op->how & HOW_SEQ) {
		if (lseek(fd, (off_t)op->off, SEEK_SET) < 0)
			return -errno;
		n = read(fd, io->iov[0].iov_base, op->len);
	} else {
		n = write ? pwrite(fd, io->iov[0].iov_base, op->len, (off_t)op->off)
			  : pread(fd, io->iov[0].iov_base, op->len, (off_t)op->off);
	}
	return n < 0 ? -errno : n;
}

static int posix_start(struct back *b, struct back_io *io)
{
	struct posix *p = posix(b);
	const struct op *op = io->op;
	bool path = op->how & HOW_PATH;
	int rc = 0;

	switch (op->kind) {
	case OP_READ:
	case OP_WRITE:
		io->result = move(p, io);
		io->done = true;
		return 0;
	case OP_TRUNCATE:
		rc = path ? truncate(p->path, (off_t)op->len) : ftruncate(p->fd, (off_t)op->len);
		break;
	case OP_STAT:
		rc = path ? stat(p->path, &io->st) : fstat(p->fd, &io->st);
		break;
	case OP_FSYNC:
		rc = fsync(p->fd);
		break;
	default:
		return -EINVAL;
	}
	io->result = rc ? -errno : 0;
	io->done = true;
	return 0;
}

static int posix_wait(struct back *b)
{
	(void)b;
	return 0; /* all was done when it was started */
}

static int posix_unlink(struct back *b)
{
	return unlink(posix(b)->path) ? -errno : 0;
}

static int posix_alloc(struct back *b, size_t bytes, void **ret)
{
	(void)b;
	return -posix_memalign(ret, (size_t)sysconf(_SC_PAGESIZE), bytes);
}

static void posix_free(struct back *b, void *mem)
{
	(void)b;
	free(mem);
}

static const char *posix_why(struct back *b)
{
	return posix(b)->path;
}

static bool posix_is_loss(struct back *b, int err)
{
	(void)b;
	(void)err;
	return false; /* a kernel keeps the data, and writes it again by itself */
}

static uint64_t posix_reconnects(struct back *b)
{
	(void)b;
	return 0;
}

static void posix_destroy(struct back *b)
{
	(void)posix_close(b); /* of a run that has failed already */
	free(posix(b)->path);
	free(posix(b));
}

static const struct back_ops back_posix_ops = {
	.name = "posix",
	.async = false,
	.open = posix_open,
	.close = posix_close,
	.start = posix_start,
	.wait = posix_wait,
	.unlink = posix_unlink,
	.alloc = posix_alloc,
	.free = posix_free,
	.why = posix_why,
	.is_loss = posix_is_loss,
	.reconnects = posix_reconnects,
	.destroy = posix_destroy,
};

/** back_posix_create - the file at @path, by system calls
 * @o: whether O_DIRECT and mmap are to be used
 * @why: of @room bytes: what is wrong
 *
 * Return: 0, -ENOMEM.
 */
int back_posix_create(const char *path, const struct tumble_opts *o, struct back **ret, char *why,
		      size_t room)
{
	struct posix *p = calloc(1, sizeof(*p));

	if (p)
		p->path = strdup(path);
	if (!p || !p->path) {
		free(p);
		snprintf(why, room, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	p->back.ops = &back_posix_ops;
	p->back.can = HOW_PATH | HOW_VECTOR | HOW_SEQ | HOW_SYNC | HOW_DSYNC;
	if (o->direct)
		p->back.can |= HOW_DIRECT;
	if (o->map)
		p->back.can |= HOW_MAP;
	p->direct = o->direct;
	p->fd = p->direct_fd = -1;
	*ret = &p->back;
	return 0;
}
