/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * copy.c - copies the content of one file to another, with many requests in flight
 *
 * Operation:  A ring of slots, each with a buffer. A slot is FREE, then READING, then (READ, while an
 *             ordered copy waits for its turn,) WRITING, then FREE again. I/O on a server is asynchronous,
 *             I/O on local files is synchronous, so a slot may go through all states inside fill(). Reads
 *             are issued up to the expected size of the file, then one at a time until a short read marks
 *             the end.
 * Memory:     Slots and buffers live as long as the copier. Buffers come from leat_buf_alloc(leat_session()), so that
 *             data moves between the server's disk and the local read() or write() without further copies.
 * Threads:    One for each copier; callbacks run inside leat_poll(leat_session()).
 * Errors:     The first one is kept, no new I/O starts, I/O in flight is waited for. A signal cancels it.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "copy.h"
#include "signals.h"

#define SLOTS 8u
#define BLOCK_MIN 65536u
#define BLOCK_MAX (1u << 20)
#define HOLE_UNIT ((size_t)65536) /* smaller holes are written as zeros */

enum slot_state { SLOT_FREE, SLOT_READING, SLOT_READ, SLOT_WRITING };

struct slot {
	struct copier *c;
	enum slot_state state;
	void *buf;
	uint64_t off;
	size_t len, written;
};

struct copier {
	struct leat *from_m, *to_m, *buf_m; /* buf_m: source of the buffers; NULL: malloc */
	struct progress *progress;
	size_t block;
	void *mem;                          /* memory of all slots in one block, for huge pages */
	struct slot slots[SLOTS];

	/* of the current copy */
	const struct fs_file *from, *to;
	uint64_t size, next_off, end;       /* end: of the data read so far */
	unsigned next_read, next_write;     /* ordered: slots are used in turn */
	unsigned busy;                      /* slots not free */
	bool ordered, sparse, at_end;
	bool has_written;
	int in_place;                       /* of signals_file_add(), or -1 */
	int err;
	enum copy_side side;
};

static size_t block_size(struct leat *from, struct leat *to)
{
	size_t block = BLOCK_MAX;
	struct leat_info info = { .size = sizeof(info) };

	if (from) {
		leat_info(from, &info);
		block = MIN(block, MAX((size_t)info.rsize, (size_t)BLOCK_MIN));
	}
	if (to) {
		leat_info(to, &info);
		block = MIN(block, MAX((size_t)info.wsize, (size_t)BLOCK_MIN));
	}
	return block;
}

int copier_create(struct leat *from, struct leat *to, struct progress *progress,
		  struct copier **ret)
{
	struct copier *c = calloc(1, sizeof(*c));
	size_t stride;
	int rc;

	if (!c)
		return -ENOMEM;
	c->from_m = from;
	c->to_m = to;
	c->buf_m = from ? from : to;
	c->progress = progress;
	c->block = block_size(from, to);
	c->in_place = -1;
	stride = (c->block + 4095) & ~(size_t)4095;
	if (c->buf_m)
		rc = leat_buf_alloc(leat_session(c->buf_m), SLOTS * stride, &c->mem);
	else
		rc = -posix_memalign(&c->mem, 4096, SLOTS * stride);
	if (rc) {
		free(c);
		return rc;
	}
	for (unsigned i = 0; i < SLOTS; i++) {
		c->slots[i].c = c;
		c->slots[i].buf = (char *)c->mem + i * stride;
	}
	*ret = c;
	return 0;
}

void copier_destroy(struct copier *c)
{
	/* busy after copier_run(): the mount is unusable, and the transport may still write to this memory */
	if (!c || c->busy)
		return;
	if (c->buf_m)
		leat_buf_free(leat_session(c->buf_m), c->mem);
	else
		free(c->mem);
	free(c);
}

static void fail(struct copier *c, enum copy_side side, int err)
{
	if (!c->err) {
		c->err = err;
		c->side = side;
	}
}

static void release(struct slot *s)
{
	s->state = SLOT_FREE;
	s->c->busy--;
}

static void written(struct slot *s)
{
	progress_add(s->c->progress, s->len);
	release(s);
}

static void start_write(struct slot *s);

static void on_written(void *user_data, int64_t result)
{
	struct slot *s = user_data;

	/* a write that lost its reply, was cancelled, or failed in the middle may have changed data */
	if (result > 0 || result == -ETIMEDOUT || result == -EINPROGRESS || result == -EIO)
		s->c->has_written = true;
	if (result <= 0) {
		fail(s->c, COPY_TO, result ? (int)result : -EIO);
		release(s);
		return;
	}
	s->written += (size_t)result;
	if (s->written < s->len)
		start_write(s); /* continue: either the error behind the short write appears, or the rest is written */
	else
		written(s);
}

static bool is_zero(const char *p, size_t len)
{
	return !p[0] && !memcmp(p, p + 1, len - 1);
}

/* Return: length of the next range of a slot to write; 0: none. Leading zeros are skipped. */
static size_t next_run(struct slot *s)
{
	const char *p = s->buf;
	size_t end;

	if (!s->c->sparse)
		return s->len - s->written;
	for (; s->written < s->len; s->written += MIN(HOLE_UNIT, s->len - s->written)) {
		if (!is_zero(p + s->written, MIN(HOLE_UNIT, s->len - s->written)))
			break;
	}
	for (end = s->written; end < s->len; end += MIN(HOLE_UNIT, s->len - end)) {
		if (is_zero(p + end, MIN(HOLE_UNIT, s->len - end)))
			break;
	}
	return end - s->written;
}

static int write_local(struct slot *s)
{
	const char *p = s->buf;

	for (size_t len; (len = next_run(s)) > 0;) {
		ssize_t n = s->c->ordered ?
			write(s->c->to->fd, p + s->written, len) :
			pwrite(s->c->to->fd, p + s->written, len, (off_t)(s->off + s->written));

		if (n < 0 && errno == EINTR && !tool_interrupted())
			continue;
		if (n <= 0)
			return n ? tool_errno("write") : -EIO;
		s->written += (size_t)n;
		s->c->has_written = true;
	}
	return 0;
}

static void start_write(struct slot *s)
{
	struct leat_cb cb = { .fn = on_written, .user_data = s };
	struct copier *c = s->c;
	size_t len;
	int rc;

	s->state = SLOT_WRITING;
	signals_file_begun(c->in_place);
	if (c->to_m) {
		len = next_run(s);
		if (!len) {
			written(s);
			return;
		}
		rc = leat_aio_pwrite(c->to->remote, (const char *)s->buf + s->written, len,
				     s->off + s->written, cb);
		if (!rc)
			return;
	} else {
		rc = write_local(s);
		if (!rc) {
			written(s);
			return;
		}
	}
	fail(c, COPY_TO, rc);
	release(s);
}

/* Ordered: writes slots that have been read, as long as they are next in turn. */
static void write_in_turn(struct copier *c)
{
	for (;;) {
		struct slot *s = &c->slots[c->next_write % SLOTS];

		if (s->state != SLOT_READ)
			return;
		c->next_write++;
		if (c->err)
			release(s);
		else
			start_write(s);
	}
}

static void on_read(void *user_data, int64_t result)
{
	struct slot *s = user_data;
	struct copier *c = s->c;

	if (result < 0)
		fail(c, COPY_FROM, (int)result);
	if (result < (int64_t)s->len)
		c->at_end = true;
	s->len = result > 0 ? (size_t)result : 0;
	if (s->len)
		c->end = MAX(c->end, s->off + s->len);
	s->written = 0;
	if (c->ordered) {
		s->state = SLOT_READ;
		write_in_turn(c);
	} else if (c->err || !s->len) {
		release(s);
	} else {
		start_write(s);
	}
}

/* Reads a full block, unless the file ends; a pipe returns what it has. */
static int64_t read_local(const struct slot *s)
{
	char *p = s->buf;
	size_t done = 0;

	while (done < s->len) {
		const struct fs_file *from = s->c->from;
		ssize_t n = -1;

		errno = ESPIPE;
		if (!from->is_stream)
			n = pread(from->fd, p + done, s->len - done, (off_t)(s->off + done));
		if (n < 0 && errno == ESPIPE)
			n = read(from->fd, p + done, s->len - done);
		if (n < 0 && errno == EINTR && !tool_interrupted())
			continue;
		if (n < 0)
			return tool_errno("read");
		if (!n)
			break;
		done += (size_t)n;
	}
	return (int64_t)done;
}

static void start_read(struct copier *c, struct slot *s)
{
	struct leat_cb cb = { .fn = on_read, .user_data = s };
	int rc;

	s->state = SLOT_READING;
	s->off = c->next_off;
	s->len = c->block;
	c->next_off += c->block;
	c->busy++;
	if (!c->from_m) {
		on_read(s, read_local(s));
		return;
	}
	rc = leat_aio_pread(c->from->remote, s->buf, s->len, s->off, cb);
	if (rc)
		on_read(s, rc);
}

static struct slot *find_slot(struct copier *c)
{
	struct slot *s;

	if (c->ordered) {
		s = &c->slots[c->next_read % SLOTS];
		if (s->state != SLOT_FREE)
			return NULL;
		c->next_read++;
		return s;
	}
	for (unsigned i = 0; i < SLOTS; i++) {
		if (c->slots[i].state == SLOT_FREE)
			return &c->slots[i];
	}
	return NULL;
}

static void fill(struct copier *c)
{
	struct slot *s;

	while (!c->err && !c->at_end && (c->next_off < c->size || !c->busy)) {
		s = find_slot(c);
		if (!s)
			return;
		start_read(c, s);
		if (tool_interrupted())
			fail(c, COPY_TO, -EINTR);
	}
}

/* Waits for a completion. */
static int wait_some(struct copier *c)
{
	struct leat *a = c->from_m ? c->from_m : c->to_m, *b = c->from_m ? c->to_m : NULL;
	struct pollfd fds[2];
	int ran, rc;

	if (!b || a == b)
		return leat_poll(leat_session(a), -1);
	ran = leat_poll(leat_session(a), 0);
	if (ran < 0)
		return ran;
	rc = leat_poll(leat_session(b), 0);
	if (rc < 0 || rc + ran > 0)
		return rc;
	fds[0] = (struct pollfd){ .fd = leat_fd(leat_session(a)), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = leat_fd(leat_session(b)), .events = POLLIN };
	if (poll(fds, 2, -1) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

/* A server that does not reply would never end the I/O in flight. The mounts have no other operations. */
static void interrupt(struct copier *c)
{
	fail(c, COPY_TO, -EINTR);
	if (c->from_m)
		(void)leat_cancel_all(c->from_m);
	if (c->to_m)
		(void)leat_cancel_all(c->to_m);
}

int copier_run(struct copier *c, const struct fs_file *from, const struct fs_file *to, uint64_t size,
	       unsigned how, enum copy_side *ret_side)
{
	int rc;

	c->from = from;
	c->to = to;
	c->size = size;
	c->ordered = how & COPY_ORDERED;
	c->sparse = how & COPY_SPARSE;
	c->next_off = c->end = 0;
	c->next_read = c->next_write = 0;
	c->at_end = c->has_written = false;
	c->err = 0;
	for (;;) {
		fill(c);
		if (tool_interrupted())
			interrupt(c);
		if (!c->busy)
			break;
		rc = wait_some(c);
		if (rc < 0) {
			fail(c, COPY_FROM, rc);
			break;
		}
	}
	if (c->err)
		*ret_side = c->side;
	return c->err;
}

void copier_in_place(struct copier *c, int slot)
{
	c->in_place = slot;
}

bool copier_has_written(const struct copier *c)
{
	return c->has_written;
}

uint64_t copier_end(const struct copier *c)
{
	return c->end;
}
