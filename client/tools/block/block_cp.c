/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_cp.c - leat block cp: copies between volumes and files of this machine
 *
 * Operation:  The source is walked in ranges of data and of holes. Data is read in units of 1 MiB into slots, several
 *             at once, and written from there; a volume's part of that is asynchronous. A hole of the source becomes a
 *             hole of the target: a new file is not written there, of a volume the range is zeroed. Nothing of a
 *             volume behind the end of the source is changed: its last block is read first, if the source ends inside.
 *             A target volume that holds data is refused without --overwrite.
 *
 *                 FREE --start_slot--> READING --got--> WRITING --put--> FREE
 * Memory:     The slots' buffers, of one session.
 * Threads:    One. Callbacks run in leat_poll() and in synchronous calls.
 * Errors:     The first one is reported. A temporary file is removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "block_cmd.h"
#include "block_copy.h"
#include "signals.h"

#define LOOK_MS 100 /* interval of checks for an interrupt */

static void fail(struct copy *c, const struct side *side, int err)
{
	if (c->err)
		return;
	c->err = err;
	c->failed = side;
}

/* ---- units of data ---- */

static void put(struct slot *s, int64_t result)
{
	struct copy *c = s->copy;

	s->busy = false;
	c->busy--;
	if (result < 0)
		fail(c, &c->to, (int)result);
	else
		progress_add(&c->progress, s->len);
}

static void on_put(void *user_data, int64_t result)
{
	put(user_data, result);
}

/* Return: 0 or -errno, as those below */
static int write_file(const struct side *to, const char *buf, size_t len, uint64_t off)
{
	while (len) {
		ssize_t n = pwrite(to->fd, buf, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? tool_errno("write") : -EIO;
		buf += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int read_file(const struct side *from, char *buf, size_t len, uint64_t off)
{
	while (len) {
		ssize_t n = pread(from->fd, buf, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? tool_errno("read") : -ENODATA; /* it has become shorter */
		buf += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/* Writes what was read. If the source ends inside of a block of a target volume, copy_end() writes the rest. */
static void got(struct slot *s, int64_t result)
{
	struct copy *c = s->copy;
	struct leat_cb cb = { .fn = on_put, .user_data = s };
	int rc;

	if (result < 0 || c->err) {
		s->busy = false;
		c->busy--;
		if (result < 0)
			fail(c, &c->from, (int)result);
		return;
	}
	signals_file_begun(c->file_slot);
	if (!c->to.volume) {
		put(s, write_file(&c->to, s->buf, s->len, s->off));
		return;
	}
	rc = leat_aio_block_pwrite(c->to.volume, s->buf, s->len - s->len % c->to.block, s->off, 0, cb);
	if (rc)
		put(s, rc);
}

static void on_got(void *user_data, int64_t result)
{
	got(user_data, result);
}

static void start_slot(struct copy *c, struct slot *s, uint64_t off, size_t len)
{
	int rc;

	s->off = off;
	s->len = len;
	s->busy = true;
	c->busy++;
	if (!c->from.volume) {
		got(s, read_file(&c->from, s->buf, len, off));
		return;
	}
	rc = leat_aio_block_pread(c->from.volume, s->buf, len, off, (struct leat_cb){ .fn = on_got, .user_data = s });
	if (rc)
		got(s, rc);
}

static struct slot *free_slot(struct copy *c)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (!c->slots[i].busy)
			return &c->slots[i];
	return NULL;
}

/* Waits for a slot; @all: for all of them. */
static void wait_for_slots(struct copy *c, bool all)
{
	while (c->busy && (all || !free_slot(c))) {
		int rc = leat_poll(c->session, LOOK_MS);

		if (rc < 0)
			fail(c, &c->from, rc);
		if (tool_interrupted() && !c->err) {
			fail(c, &c->to, -EINTR);
			(void)leat_cancel_all(leat_block_handle(c->from.volume));
			(void)leat_cancel_all(leat_block_handle(c->to.volume));
		}
	}
	if (tool_interrupted())
		fail(c, &c->to, -EINTR);
}

/* ---- ranges of the source ---- */

static uint64_t down(uint64_t n, uint64_t to)
{
	return n / to * to;
}

/* Finds the end of the hole at @off of a file. Return: 0: there is data */
static uint64_t file_hole(struct copy *c, uint64_t off)
{
	off_t data = lseek(c->from.fd, (off_t)off, SEEK_DATA);

	if (data < 0 && errno == ENXIO)
		return c->from.size;
	if (data < 0)
		c->sparse = false;
	return data > (off_t)off ? (uint64_t)data : 0;
}

static uint64_t file_data(const struct copy *c, uint64_t off)
{
	off_t hole = lseek(c->from.fd, (off_t)off, SEEK_HOLE);

	return hole > (off_t)off ? (uint64_t)hole : c->from.size;
}

/* The extent of a volume that contains @off. Return: 0 or -errno */
static int find_extent(struct copy *c, uint64_t off, const struct leat_block_extent **ret)
{
	ssize_t n;

	for (; c->extent < c->nextents; c->extent++) {
		const struct leat_block_extent *e = &c->extents[c->extent];

		if (off >= e->off && off - e->off < e->len) {
			*ret = e;
			return 0;
		}
	}
	n = leat_block_extents(c->from.volume, off, c->from.size - off, c->extents, EXTENTS);
	if (n < 0)
		return (int)n;
	c->nextents = (size_t)n;
	c->extent = 0;
	*ret = &c->extents[0];
	return 0;
}

/* Finds the next range. A hole consists of whole blocks of both sides; what is left of it counts as data.
 * Return: 0 or -errno
 */
static int next_range(struct copy *c, bool *ret_hole, uint64_t *ret_end)
{
	uint64_t off = c->off, end = c->from.size, hole = 0;

	*ret_hole = false;
	*ret_end = end;
	if (!c->sparse)
		return 0;
	if (c->from.volume) {
		const struct leat_block_extent *e = NULL;
		int rc = find_extent(c, off, &e);

		if (rc)
			return rc;
		*ret_end = e->off + e->len;
		hole = e->kind == LEAT_BLOCK_DATA ? 0 : *ret_end;
	} else {
		hole = file_hole(c, off);
		*ret_end = hole ? hole : MIN(file_data(c, off), end);
	}
	if (hole && hole < end)
		hole = down(hole, c->grain);
	if (hole > off && (hole == end || hole - off >= c->grain)) {
		*ret_hole = true;
		*ret_end = hole;
		return 0;
	}
	/* data ends at whole blocks, too */
	*ret_end = *ret_end < end ? MIN(down(*ret_end + c->grain - 1, c->grain), end) : end;
	return 0;
}

static int skip_hole(struct copy *c, uint64_t end)
{
	uint64_t len = end - c->off;
	int rc;

	if (c->to.volume) {
		rc = leat_block_zero(c->to.volume, c->off, len - len % c->to.block, 0);
		if (rc)
			return rc;
	} else if (c->in_place) {
		if (fallocate(c->to.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)c->off, (off_t)len)) {
			memset(c->mem, 0, UNIT);
			for (uint64_t off = c->off; off < end; off += UNIT) {
				rc = write_file(&c->to, c->mem, (size_t)MIN((uint64_t)UNIT, end - off), off);
				if (rc)
					return rc;
			}
		}
	}
	progress_add(&c->progress, len);
	return 0;
}

/* Copies the bytes of the source that are less than a block of the target volume. */
static int copy_end(struct copy *c)
{
	size_t len = (size_t)(c->from.size % c->to.block);
	uint64_t off = c->from.size - len;
	char *buf = c->mem, *old = buf + UNIT / 2;
	ssize_t n;
	int rc;

	if (!len)
		return 0;
	n = leat_block_pread(c->to.volume, old, c->to.block, off);
	if (n < 0)
		return (int)n;
	rc = c->from.volume ? (int)MIN(leat_block_pread(c->from.volume, buf, len, off), (ssize_t)0) :
			      read_file(&c->from, buf, len, off);
	if (rc) {
		fail(c, &c->from, rc);
		return rc;
	}
	memcpy(old, buf, len);
	n = leat_block_pwrite(c->to.volume, old, c->to.block, off, 0);
	return n < 0 ? (int)n : 0;
}

static void copy_data(struct copy *c, uint64_t end)
{
	while (c->off < end && !c->err) {
		uint64_t len = MIN(end - c->off, UNIT - c->off % UNIT);

		wait_for_slots(c, false);
		if (!c->err)
			start_slot(c, free_slot(c), c->off, (size_t)len);
		c->off += len;
	}
}

static void copy_ranges(struct copy *c)
{
	while (c->off < c->from.size && !c->err) {
		uint64_t end = 0;
		bool hole = false;
		int rc = next_range(c, &hole, &end);

		if (rc) {
			fail(c, &c->from, rc);
		} else if (hole) {
			wait_for_slots(c, true); /* c->mem may be used */
			rc = c->err ? 0 : skip_hole(c, end);
			if (rc)
				fail(c, &c->to, rc);
			c->off = end;
		} else {
			copy_data(c, end);
		}
	}
	wait_for_slots(c, true);
}

/* Makes it complete and stable. */
static int finish_data(struct copy *c)
{
	int rc;

	if (c->to.volume) {
		rc = copy_end(c);
		return rc ? rc : leat_block_flush(c->to.volume);
	}
	if (!c->in_place && ftruncate(c->to.fd, (off_t)c->from.size))
		return tool_errno("truncate");
	return fsync(c->to.fd) && errno != EINVAL ? tool_errno("fsync") : 0;
}

/* ---- the command ---- */

static int alloc_slots(struct copy *c)
{
	int rc = leat_buf_alloc(c->session, SLOTS * UNIT, &c->mem);

	for (unsigned i = 0; i < SLOTS; i++)
		c->slots[i] = (struct slot){ .copy = c, .buf = (char *)c->mem + i * UNIT };
	return rc;
}

static int copy_opened(struct copy *c)
{
	int rc = alloc_slots(c);

	if (rc)
		return block_report(c, &c->to, rc);
	rc = block_check_target(c);
	if (rc)
		return rc;
	c->grain = MAX(MAX(c->from.block, c->to.block), (uint64_t)512);
	progress_file(&c->progress, c->from.arg, c->from.size);
	copy_ranges(c);
	rc = c->err;
	if (rc)
		return block_report(c, c->failed, rc);
	rc = finish_data(c);
	if (!rc)
		rc = block_finish_file(c);
	return rc ? block_report(c, c->err ? c->failed : &c->to, rc) : TOOL_OK;
}

static int copy_all(struct copy *c)
{
	int rc = block_open_source(c), closed;

	(void)signals_hold(); /* from here on there is a volume to detach from */
	if (!rc)
		rc = block_open_target(c);
	if (!rc)
		rc = copy_opened(c);
	leat_buf_free(c->session, c->mem);
	closed = block_close(c);
	signals_release();
	return MAX(rc, closed);
}

static bool parse(const struct tool_cmd *self, struct copy *c, int argc, char **argv)
{
	if (tool_options(self, argc, argv, c) < 0 || argc - optind != 2)
		return false;
	c->from = (struct side){ .arg = argv[optind], .fd = -1 };
	c->to = (struct side){ .arg = argv[optind + 1], .fd = -1 };
	c->file_slot = -1;
	if (tool_is_url(c->from.arg) || tool_is_url(c->to.arg))
		return true;
	log_err("neither %s nor %s is the URL of a volume", c->from.arg, c->to.arg);
	return false;
}

static int cp_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct copy *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return tool_fail(NULL, "block cp", -ENOMEM);
	if (parse(self, c, argc, argv)) {
		progress_init(&c->progress);
		rc = leat_session_create(NULL, &c->session);
		rc = rc ? tool_fail(NULL, c->from.arg, rc) : copy_all(c);
		progress_end(&c->progress);
		(void)leat_session_free(c->session);
	} else {
		rc = tool_usage(self);
	}
	free(c);
	return rc;
}

static const struct opt opts[] = {
	TOOL_FLAG(0, "overwrite", struct copy, overwrite, "replace data that TO holds, if it is a volume or a device"),
};

const struct tool_cmd cmd_block_cp = {
	"block cp", "[--overwrite] FROM TO", "copies a volume or file to a volume or file; holes stay holes",
	cp_run, opts, ARRAY_SIZE(opts), .mixed = true,
};
