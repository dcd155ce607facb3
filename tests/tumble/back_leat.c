/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * back_leat.c - files by way of libleat: any URL that it takes
 *
 * Operation:  The URL's last component is the file, what is before it is mounted. Reads, writes,
 *             fsync, stat and truncate are asynchronous; callbacks run in wait(), or while something
 *             synchronous waits.
 * Memory:     struct remote, gone with destroy(). alloc() is leat_buf_alloc(leat_session()).
 * Threads:    One.
 * Errors:     Those of libleat; why() is its own text.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "leat.h"
#include "tumble.h"

struct remote {
	struct back back;
	struct leat *m;
	struct leat_file *f;       /* NULL: not open */
	char *name;
};

static struct remote *remote(struct back *b)
{
	return container_of(b, struct remote, back);
}

static int remote_open(struct back *b, int flags)
{
	struct remote *r = remote(b);

	return leat_open(r->m, r->name, O_RDWR | flags, 0644, &r->f);
}

static int remote_close(struct back *b)
{
	struct remote *r = remote(b);
	struct leat_file *f = r->f;

	r->f = NULL;
	return f ? leat_close(f) : 0;
}

static void io_done(void *user_data, int64_t result)
{
	struct back_io *io = user_data;

	io->result = result;
	io->done = true;
}

/* At the file's own position: synchronous. */
static int read_on(struct remote *r, struct back_io *io)
{
	int64_t rc = leat_lseek(r->f, (int64_t)io->op->off, SEEK_SET);

	if (rc >= 0)
		rc = leat_read(r->f, io->iov[0].iov_base, io->op->len);
	io_done(io, rc);
	return 0;
}

static int start_data(struct remote *r, struct back_io *io, struct leat_cb cb)
{
	const struct op *op = io->op;
	bool write = op->kind == OP_WRITE;

	if (op->how & HOW_SEQ)
		return read_on(r, io);
	if (op->how & HOW_VECTOR)
		return write ? leat_aio_pwritev(r->f, io->iov, io->iovcnt, op->off, cb)
			     : leat_aio_preadv(r->f, io->iov, io->iovcnt, op->off, cb);
	return write ? leat_aio_pwrite(r->f, io->iov[0].iov_base, op->len, op->off, cb)
		     : leat_aio_pread(r->f, io->iov[0].iov_base, op->len, op->off, cb);
}

static int remote_start(struct back *b, struct back_io *io)
{
	struct leat_cb cb = { .fn = io_done, .user_data = io };
	struct remote *r = remote(b);
	const struct op *op = io->op;
	bool path = op->how & HOW_PATH;

	io->done = false;
	switch (op->kind) {
	case OP_READ:
	case OP_WRITE:
		return start_data(r, io, cb);
	case OP_TRUNCATE:
		return path ? leat_aio_truncate(r->m, r->name, op->len, cb)
			    : leat_aio_ftruncate(r->f, op->len, cb);
	case OP_STAT:
		return path ? leat_aio_stat(r->m, r->name, &io->st, cb)
			    : leat_aio_fstat(r->f, &io->st, cb);
	case OP_FSYNC:
		return leat_aio_fsync(r->f, cb);
	default:
		return -EINVAL;
	}
}

static int remote_wait(struct back *b)
{
	int rc = leat_poll(leat_session(remote(b)->m), -1);

	return rc < 0 && rc != -EINTR ? rc : 0;
}

static int remote_unlink(struct back *b)
{
	return leat_unlink(remote(b)->m, remote(b)->name);
}

static int remote_alloc(struct back *b, size_t bytes, void **ret)
{
	return leat_buf_alloc(leat_session(remote(b)->m), bytes, ret);
}

static void remote_free(struct back *b, void *mem)
{
	leat_buf_free(leat_session(remote(b)->m), mem);
}

static const char *remote_why(struct back *b)
{
	return leat_error(remote(b)->m);
}

static bool remote_is_loss(struct back *b, int err)
{
	return err == -EIO && strstr(leat_error(remote(b)->m), "the server lost data");
}

static uint64_t remote_reconnects(struct back *b)
{
	uint64_t n = 0;

	(void)leat_stat_value(remote(b)->m, "reconnects", &n);
	return n;
}

static void remote_destroy(struct back *b)
{
	struct remote *r = remote(b);

	(void)remote_close(b); /* of a run that has failed already */
	leat_umount(r->m);
	free(r->name);
	free(r);
}

static const struct back_ops back_leat_ops = {
	.name = "leat",
	.async = true,
	.open = remote_open,
	.close = remote_close,
	.start = remote_start,
	.wait = remote_wait,
	.unlink = remote_unlink,
	.alloc = remote_alloc,
	.free = remote_free,
	.why = remote_why,
	.is_loss = remote_is_loss,
	.reconnects = remote_reconnects,
	.destroy = remote_destroy,
};

/** back_is_url - a URL of libleat, not a path? */
bool back_is_url(const char *target)
{
	return strstr(target, "://") != NULL;
}

/** back_leat_split - SCHEME://.../DIR/NAME?OPTIONS into SCHEME://.../DIR?OPTIONS and NAME, both the
 * caller's to free. Return: 0, -EINVAL, -ENOMEM. */
int back_leat_split(const char *url, char **ret_dir, char **ret_name)
{
	const char *scheme = strstr(url, "://");
	size_t path = strcspn(url, "?"), slash = path;
	char *dir = NULL, *name;

	while (slash > 0 && url[slash - 1] != '/')
		slash--;
	if (!scheme || slash < (size_t)(scheme - url) + 4 || slash == path)
		return -EINVAL;
	name = strndup(url + slash, path - slash);
	if (!name || asprintf(&dir, "%.*s%s", (int)(slash - 1), url, url + path) < 0) {
		free(name);
		return -ENOMEM;
	}
	*ret_dir = dir;
	*ret_name = name;
	return 0;
}

/** back_leat_create - the file at @url, by libleat
 * @why: of @room bytes: what is wrong
 *
 * Return: 0, -EINVAL, -ENOMEM, what leat_mount() returns.
 */
int back_leat_create(const char *url, struct back **ret, char *why, size_t room)
{
	struct remote *r = calloc(1, sizeof(*r));
	char *dir = NULL;
	int rc = r ? back_leat_split(url, &dir, &r->name) : -ENOMEM;

	if (rc) {
		snprintf(why, room, "%s",
			 rc == -EINVAL ? "a URL has to end in the name of a file" : strerror(-rc));
		free(r);
		return rc;
	}
	rc = leat_mount(dir, NULL, &r->m);
	free(dir);
	if (rc) {
		snprintf(why, room, "%s", leat_error(NULL));
		free(r->name);
		free(r);
		return rc;
	}
	r->back.ops = &back_leat_ops;
	r->back.can = HOW_PATH | HOW_VECTOR | HOW_SEQ | HOW_POOL | HOW_SYNC | HOW_DSYNC | HOW_BUSY;
	*ret = &r->back;
	return 0;
}
