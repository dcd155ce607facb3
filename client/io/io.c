/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * io.c - pread and pwrite: split into several calls in flight, results combined
 *
 * Operation:  submit_io() -> start_io() -> issue(): a subrequest is one call. It has at most rsize (wsize)
 *             bytes and covers at most LT_IO_PIECE_IOV parts of the caller's memory. If the I/O needs
 *             several subrequests, each ends at a multiple of that size. The payload of the call is the
 *             caller's memory itself: the transport moves it, this file copies nothing. Up to `window`
 *             subrequests are in flight; when one is done, the next is sent. A short read or write continues
 *             with the rest of its subrequest. `end` is the lowest offset at which a subrequest met the end of file
 *             or an error; results at or above it are ignored.
 * Memory:     The first subrequest is part of struct lt_io, others come from a free list of the session. Both
 *             are recycled: in steady state, I/O allocates nothing.
 * Threads:    submit_io() any; the rest the owner's. The pool of struct lt_io is locked.
 * Errors:     Read: an error below the end of file is the result, because a short count means end of file.
 *             Write: the bytes written before the error are the result, if any. A cancelled write of which any part
 *             may have been written ends with -EINPROGRESS.
 * See:        doc/tour.md, the life of a READ and of a WRITE.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "handle.h"
#include "io.h"
#include "readahead.h"
#include "task.h"

#define POOLED_IOS_MAX 256u

struct lt_subreq {
	struct lt_call call;
	struct lt_io *io;
	struct list link;           /* in io->sent or io->stopped, while it is in flight */
	struct lt_subreq *next;     /* in session->free_subreqs */
	uint64_t off;
	uint32_t len;              /* bytes not yet transferred */
	struct iovec iov[LT_IO_PIECE_IOV]; /* used: [iov_first, iov_first + iov_cnt) */
	int iov_first, iov_cnt;
	union {
		READ3args read;
		WRITE3args write;
	} args;
	union {
		READ3res read;
		WRITE3res write;
	} res;
};

struct lt_io {
	struct lt_task task;
	struct leat_file *f;
	struct lt_io *next_free;
	bool write;
	stable_how stable;
	uint64_t off, size;        /* as requested */
	uint64_t next;             /* first byte not yet covered by a subrequest */
	uint64_t end;              /* see the head of the file */
	int end_err;               /* errno at `end`; 0: end of file */
	struct list sent, stopped; /* subrequests in flight; those of them that are cancelled */
	unsigned flying, window;
	bool has_first;            /* `first` is not in use */
	bool changed;              /* a WRITE has been or may have been executed */
	struct lt_subreq first;
	/* cursor in the caller's memory: position of `next` */
	const struct iovec *iov;
	int iov_at, iov_cnt;
	size_t iov_off;
	struct iovec one, *many;   /* own copy of the iovecs: `one`, or allocated */
};

static void issue(struct lt_io *io);

static struct lt_io *get_io(struct leat_session *s)
{
	struct lt_io *io;

	pthread_mutex_lock(&s->lock);
	io = s->free_ios;
	if (io) {
		s->free_ios = io->next_free;
		s->free_ios_count--;
	}
	pthread_mutex_unlock(&s->lock);
	return io ? io : malloc(sizeof(*io));
}

static void put_io(struct leat_session *s, struct lt_io *io)
{
	if (io->many)
		free(io->many);
	pthread_mutex_lock(&s->lock);
	if (s->free_ios_count < POOLED_IOS_MAX) {
		io->next_free = s->free_ios;
		s->free_ios = io;
		s->free_ios_count++;
		io = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	free(io);
}

void lt_io_free_pools(struct leat_session *s)
{
	while (s->free_ios) {
		struct lt_io *io = s->free_ios;

		s->free_ios = io->next_free;
		free(io);
	}
	s->free_ios_count = 0;
	while (s->free_subreqs) {
		struct lt_subreq *p = s->free_subreqs;

		s->free_subreqs = p->next;
		free(p);
	}
}

static struct lt_subreq *get_subreq(struct lt_io *io)
{
	struct leat_session *s = io->task.m->session;
	struct lt_subreq *p;

	if (io->has_first) {
		io->has_first = false;
		p = &io->first;
	} else if (s->free_subreqs) {
		p = s->free_subreqs;
		s->free_subreqs = p->next;
	} else {
		p = malloc(sizeof(*p));
		if (!p)
			return NULL;
	}
	p->io = io;
	lt_call_init(&p->call, io->task.m, NULL);
	return p;
}

static void put_subreq(struct lt_subreq *p)
{
	struct lt_io *io = p->io;

	if (p == &io->first) {
		io->has_first = true;
		return;
	}
	p->next = io->task.m->session->free_subreqs;
	io->task.m->session->free_subreqs = p;
}

static void release_io(struct lt_task *t)
{
	struct lt_io *io = container_of(t, struct lt_io, task);
	struct leat_file *f = io->f;

	put_io(t->m->session, io);
	lt_file_release(f);
}

static void finish_io(struct lt_io *io)
{
	uint64_t good = io->end - io->off;

	if (io->end_err == -ECANCELED && io->changed)
		io->end_err = -EINPROGRESS;
	if (io->write)
		lt_readahead_drop(io->f); /* data read in the meantime may predate the write */
	lt_task_finish(&io->task, io->end_err && (!io->write || !good) ? io->end_err : (int64_t)good, release_io);
}

static void stop_at(struct lt_io *io, uint64_t off, int err)
{
	if (off < io->end) {
		io->end = off;
		io->end_err = err;
	}
}

/* Assigns the next part of the caller's memory, at most @max bytes, to @p. */
static uint32_t take_memory(struct lt_io *io, struct lt_subreq *p, uint64_t max)
{
	uint32_t len = 0;

	p->iov_first = 0;
	p->iov_cnt = 0;
	while (len < max && p->iov_cnt < LT_IO_PIECE_IOV) {
		const struct iovec *v = &io->iov[io->iov_at];
		size_t n = MIN(v->iov_len - io->iov_off, (size_t)(max - len));

		if (n) {
			p->iov[p->iov_cnt].iov_base = (char *)v->iov_base + io->iov_off;
			p->iov[p->iov_cnt].iov_len = n;
			p->iov_cnt++;
			len += (uint32_t)n;
			io->iov_off += n;
		}
		if (io->iov_off == v->iov_len) {
			io->iov_at++;
			io->iov_off = 0;
		}
	}
	return len;
}

/* Advances @p by @n transferred bytes. */
static void drop_memory(struct lt_subreq *p, uint32_t n)
{
	p->off += n;
	p->len -= n;
	while (n) {
		struct iovec *v = &p->iov[p->iov_first];
		size_t step = MIN(v->iov_len, (size_t)n);

		v->iov_base = (char *)v->iov_base + step;
		v->iov_len -= step;
		n -= (uint32_t)step;
		if (!v->iov_len) {
			p->iov_first++;
			p->iov_cnt--;
		}
	}
}

static void subreq_done(struct rpcrdma_call *rpc, int err);

static void send_subreq(struct lt_subreq *p)
{
	struct lt_io *io = p->io;
	struct leat_file *f = io->f;
	const struct iovec *iov = p->iov + p->iov_first;

	if (io->write) {
		p->args.write.file = lt_fh_wire(&f->fh);
		p->args.write.offset = p->off;
		p->args.write.count = p->len;
		p->args.write.stable = io->stable;
		p->args.write.data.length = p->len;
		p->args.write.data.iov = iov;
		p->args.write.data.iovcnt = p->iov_cnt;
		lt_call_start(&p->call, NFSPROC3_WRITE, &p->args, &p->res, 0, NULL, 0, subreq_done);
	} else {
		p->args.read.file = lt_fh_wire(&f->fh);
		p->args.read.offset = p->off;
		p->args.read.count = p->len;
		lt_call_start(&p->call, NFSPROC3_READ, &p->args, &p->res, 0, iov, p->iov_cnt,
			      subreq_done);
	}
}

/* Return: true: the subrequest is finished; false: a call for its rest was sent. */
static bool subreq_read(struct lt_subreq *p)
{
	const READ3resok *ok = &p->res.read.READ3res_u.resok;
	uint32_t n = ok->data.length; /* <= p->len, the size of the sink */

	if (n > p->len) {
		lt_task_explain(&p->io->task, -EREMOTEIO, "READ", "%u bytes in reply to %u", n,
				p->len);
		stop_at(p->io, p->off, -EREMOTEIO);
		return true;
	}
	drop_memory(p, n);
	if (!p->len)
		return true;
	if (ok->eof || !n) {
		stop_at(p->io, p->off, 0);
		return true;
	}
	if (p->off >= p->io->end)
		return true; /* above `end`: ignored */
	if (p->io->task.cancelled) {
		stop_at(p->io, p->off, -ECANCELED);
		return true;
	}
	send_subreq(p);
	return false;
}

static bool subreq_written(struct lt_subreq *p)
{
	const WRITE3resok *ok = &p->res.write.WRITE3res_u.resok;
	int err = lt_file_wrote(p->io->f, p->io->stable, ok);

	p->io->changed = true;
	if (err) {
		lt_task_explain(&p->io->task, err, "WRITE", "the server did not make it stable");
		stop_at(p->io, p->off, err);
		return true;
	}
	if (!ok->count || ok->count > p->len) {
		lt_task_explain(&p->io->task, -EREMOTEIO, "WRITE", "%u of %u bytes written",
				ok->count, p->len);
		stop_at(p->io, p->off, -EREMOTEIO);
		return true;
	}
	drop_memory(p, ok->count);
	if (!p->len || p->off >= p->io->end)
		return true;
	if (p->io->task.cancelled) {
		stop_at(p->io, p->off, -ECANCELED);
		return true;
	}
	send_subreq(p);
	return false;
}

static void subreq_done(struct rpcrdma_call *rpc, int err)
{
	struct lt_call *call = lt_call_ended(rpc, &err);
	struct lt_subreq *p;
	struct lt_io *io;

	if (!call)
		return;
	p = container_of(call, struct lt_subreq, call);
	io = p->io;
	if (err) {
		char what[48];

		snprintf(what, sizeof(what), "%s at offset %llu", lt_call_name(call),
			 (unsigned long long)p->off);
		if (p->off < io->end)
			lt_task_explain(&io->task, err, what, "%s", lt_call_cause(call));
		stop_at(io, p->off, err);
		io->changed |= err == -EINPROGRESS || (err == -ETIMEDOUT && rpc->sent);
	} else if (!(io->write ? subreq_written(p) : subreq_read(p))) {
		return;
	}
	list_del(&p->link);
	put_subreq(p);
	io->flying--;
	issue(io);
}

/* Sends subrequests as long as the window allows; finishes after the last subrequest has completed. */
static void issue(struct lt_io *io)
{
	struct leat *m = io->task.m;
	uint32_t unit = io->write ? m->wsize : m->rsize;

	while (io->next < io->end && io->flying < io->window && !io->task.cancelled) {
		struct lt_subreq *p = get_subreq(io);
		uint64_t max = io->end - io->next;

		if (!p) {
			if (!io->flying)
				stop_at(io, io->next, -ENOMEM);
			break;
		}
		/* one call if it fits; otherwise split at a multiple of the unit */
		if (max > unit)
			max = unit - io->next % unit;
		else if (io->next > io->off && io->next % unit + max > unit)
			max = unit - io->next % unit;
		p->off = io->next;
		p->len = take_memory(io, p, max);
		io->next += p->len;
		io->flying++;
		list_add_tail(&io->sent, &p->link);
		send_subreq(p);
	}
	if (io->task.cancelled)
		stop_at(io, io->next, -ECANCELED);
	if (!io->flying)
		finish_io(io);
}

/* What has arrived stays valid below the lowest offset whose subrequest is cancelled. */
static void stop_io(struct lt_task *t)
{
	struct lt_io *io = container_of(t, struct lt_io, task);
	struct lt_subreq *p;

	/* the end of one call may end others, of this operation too */
	while ((p = list_first_entry(&io->sent, struct lt_subreq, link))) {
		list_del(&p->link);
		list_add_tail(&io->stopped, &p->link);
		lt_call_cancel(&p->call);
	}
}

static void start_io(struct lt_task *t)
{
	struct lt_io *io = container_of(t, struct lt_io, task);

	lt_file_hold(io->f);
	if (io->write)
		lt_readahead_drop(io->f);
	issue(io);
}

static int copy_iov(struct lt_io *io, const struct iovec *iov, int cnt)
{
	io->many = NULL;
	io->iov_at = 0;
	io->iov_off = 0;
	io->iov_cnt = cnt;
	if (cnt <= 1) {
		io->one = cnt ? iov[0] : (struct iovec){ 0 };
		io->iov = &io->one;
		return 0;
	}
	io->many = malloc((size_t)cnt * sizeof(*iov));
	if (!io->many)
		return -ENOMEM;
	memcpy(io->many, iov, (size_t)cnt * sizeof(*iov));
	io->iov = io->many;
	return 0;
}

/* Return: 0 with the sum of the parts, or the error of an invalid I/O. */
static int check_io(const struct leat_file *f, bool write, const struct iovec *iov, int cnt,
		    uint64_t off, uint64_t *ret_size)
{
	uint64_t size = 0;

	if (f->is_dir)
		return -EISDIR;
	if (write ? !lt_file_can_write(f) : !lt_file_can_read(f))
		return -EBADF;
	if (cnt < 0 || cnt > IOV_MAX)
		return -EINVAL;
	for (int i = 0; i < cnt; i++) {
		if (!add_u64(size, iov[i].iov_len, &size))
			return -EINVAL;
	}
	if (off > INT64_MAX)
		return -EINVAL;
	if (size > INT64_MAX - off)
		return write ? -EFBIG : -EINVAL;
	*ret_size = size;
	return 0;
}

/* @iov: copied; the memory that it points to is not
 * @internal: as lt_task.internal
 *
 * Return: 0; -EBADF, -EISDIR, -EINVAL, -EFBIG, -ENOMEM; @cb is consumed in every outcome.
 */
static int submit_io(struct leat_file *f, bool write, bool internal, const struct iovec *iov, int cnt, uint64_t off,
		     struct leat_cb cb)
{
	struct leat *m;
	struct lt_io *io;
	uint64_t size;
	int rc;

	if (!f)
		return lt_task_refuse(cb, -EBADF);
	m = f->m;
	rc = lt_handle_check(m);
	if (rc)
		return lt_task_refuse(cb, rc);
	rc = check_io(f, write, iov, cnt, off, &size);
	if (rc) {
		lt_handle_tell(m, f->path, NULL, write ? "write" : "read", rc, "");
		return lt_task_refuse(cb, rc);
	}
	io = get_io(m->session);
	if (!io)
		return lt_task_refuse(cb, -ENOMEM);
	rc = copy_iov(io, iov, cnt);
	if (rc) {
		put_io(m->session, io);
		return lt_task_refuse(cb, rc);
	}
	io->task.m = m;
	io->task.cb = cb;
	io->task.verb = write ? "write" : "read";
	io->task.background = false;
	io->task.internal = internal;
	io->task.path = f->path;
	io->task.path2 = NULL;
	io->task.file = f;
	io->f = f;
	io->write = write;
	io->stable = UNSTABLE;
	if ((f->flags & O_SYNC) == O_SYNC)
		io->stable = FILE_SYNC;
	else if (f->flags & O_DSYNC)
		io->stable = DATA_SYNC;
	io->off = io->next = off;
	io->size = size;
	io->end = off + size;
	io->end_err = 0;
	io->flying = 0;
	io->window = m->url.credits * m->server->clnts;
	io->has_first = true;
	io->changed = false;
	list_init(&io->sent);
	list_init(&io->stopped);
	io->task.stop = stop_io;
	lt_task_submit(&io->task, start_io);
	return 0;
}

int leat_aio_pread(struct leat_file *f, void *buf, size_t len, uint64_t off, struct leat_cb cb)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };

	return submit_io(f, false, false, &iov, 1, off, cb);
}

int lt_io_read_internal(struct leat_file *f, void *buf, size_t len, uint64_t off, struct leat_cb cb)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };

	return submit_io(f, false, true, &iov, 1, off, cb);
}

int leat_aio_pwrite(struct leat_file *f, const void *buf, size_t len, uint64_t off,
		    struct leat_cb cb)
{
	/* iovec has no const, but a write does not store through it */
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return submit_io(f, true, false, &iov, 1, off, cb);
}

int leat_aio_preadv(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off,
		    struct leat_cb cb)
{
	return submit_io(f, false, false, iov, cnt, off, cb);
}

int leat_aio_pwritev(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off,
		     struct leat_cb cb)
{
	return submit_io(f, true, false, iov, cnt, off, cb);
}
