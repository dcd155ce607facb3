/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_aio.c - a store that bypasses the page cache: O_DIRECT and Linux asynchronous I/O
 *
 * Operation: An aligned read goes from the device directly into its memory, without a copy and without another thread.
 *            While the device has enough work, submissions are collected during a pass of the reactor. One system call
 *            submits them at its end, when completions are reaped as well (in memory: the kernel's ring). An eventfd
 *            wakes the sleeping reactor. If the backing overlaps disk and network, each operation is submitted
 *            separately: the block layer merges operations that are submitted together, and merged ones complete
 *            together.
 *            Reads are submitted with RWF_NOWAIT. A read that would block or has unaligned ends goes to a worker,
 *            which moves it synchronously: store_direct.c. So does every write, as io_submit() of a write waits for a
 *            frozen file system whatever its flags are. So do all operations on a file system that may ask another
 *            host or a process first (struct fs_limits).
 *            `read = auto`: a read that is completely in the page cache is served from there.
 *            The first operation on a file that this store has not opened itself makes a worker open the second
 *            descriptor; operations that arrive meanwhile wait for it.
 *            store_cached.c serves files without direct I/O, syncs, and what is configured as cached.
 * Memory:    As many parts as the kernel's ring takes. An operation that finds too few free parts waits in a FIFO.
 *            A store that is destroyed by its last completion is freed when the loop over completions ends.
 * Threads:   The reactor's, except run_direct() and run_open().
 * Errors:    Those of the disk, unchanged. Good bytes before an error are a short success. After EAGAIN, and after a
 *            short result without a visible reason, a worker continues from there.
 *            For the errors of stable writes see store_file.c.
 */
#include <errno.h>
#include <libaio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "store.h"
#include "store_direct.h"
#include "store_file.h"

#define DEPTH 256u   /* parts in the kernel at once */
#define PART_IOV 16  /* memory segments of a part */
#define REAP_BATCH 64
#define AT_ONCE 16u /* below this, submit at once: the device would idle until the end of the pass */
#define SUBMIT_SLOW_NS (500 * NS_PER_US)

struct part {
	struct iocb cb;
	struct store_io *io;
	struct part *next;
	uint32_t off, len; /* of the bytes that store_direct_fits() named */
	long res;
	struct iovec iov[PART_IOV];
};

struct store_aio {
	struct store store;
	io_context_t ctx;
	struct rpcrdma_watch wake;
	bool watched; /* from the first request on: a store without requests may be destroyed on any thread */
	struct rpcrdma_poller poller;
	unsigned nfree, npending, in_kernel;
	struct part *free;
	struct part *failed;		/* the kernel rejected them */
	struct iocb *pending[DEPTH];	/* to be submitted at the end of the pass */
	struct list waiting;		/* store_io.link: for free parts */
	bool reaping;
	bool dead; /* destroyed while reaping */
	struct part parts[DEPTH];
};

static struct store_aio *aio_of(struct store *s)
{
	return container_of(s, struct store_aio, store);
}

static bool reads_directly(const struct backing *b)
{
	return b->data->read != DATA_READ_CACHED;
}

/* Logged once per backing: its other files behave the same. */
static void say_cached(struct backing *b, int err)
{
	if (!atomic_exchange(&b->said_cached, true))
		log_warn("%s (%s): a file does not support direct I/O (%s): using the page cache", b->name, b->path,
			 strerror(-err));
}

/* ---- on a worker -------------------------------------------------------------------------- */

static void run_direct(struct worker_job *job)
{
	struct store_io *io = container_of(job, struct store_io, job);

	if (io->op == STORE_WRITE)
		store_file_write(io, store_direct_move_all);
	else
		io->res = store_direct_move_all(io);
}

static void on_direct(struct worker_job *job)
{
	struct store_io *io = container_of(job, struct store_io, job);

	if (io->refused) {
		io->file->direct.state = STORE_DIRECT_REFUSED;
		say_cached(io->store->backing, -EINVAL);
	}
	io->done(io);
}

static void by_worker(struct store_io *io)
{
	io->direct = io->file->direct;
	io->refused = false;
	io->ext_head = io->ext_tail = 0;
	store_count(io->store, store_worker);
	store_file_run(io, run_direct, on_direct);
}

/* ---- parts -------------------------------------------------------------------------------- */

static struct part *part_get(struct store_aio *a)
{
	struct part *p = a->free;

	a->free = p->next;
	a->nfree--;
	return p;
}

static void part_put(struct store_aio *a, struct part *p)
{
	p->next = a->free;
	a->free = p;
	a->nfree++;
}

/* Upper bound: STORE_FILE_IOV segments and RPCRDMA_BUF_MAX bytes never need more than DEPTH parts. */
static unsigned parts_needed(const struct store_io *io)
{
	uint32_t all = io->ext_head + io->bytes + io->ext_tail;
	uint32_t cuts = all / io->file->direct.part_bytes;

	return ((unsigned)io->iovcnt + cuts) / PART_IOV + cuts + 1;
}

_Static_assert((STORE_FILE_IOV + RPCRDMA_BUF_MAX / STORE_PART_MIN) / PART_IOV +
			       RPCRDMA_BUF_MAX / STORE_PART_MIN + 1 <
		       DEPTH,
	       "parts for the longest");

static void part_describe(struct part *p, struct store_io *io, uint32_t off, uint32_t len, int wake)
{
	const struct store_file *f = io->file;
	long long at = (long long)(io->off - io->ext_head + off);
	int n = store_file_iov(io, off, len, p->iov, PART_IOV);

	p->io = io;
	p->off = off;
	p->len = 0;
	for (int i = 0; i < n; i++)
		p->len += (uint32_t)p->iov[i].iov_len;
	io_prep_preadv(&p->cb, f->direct.fd, p->iov, n, at);
	io_set_eventfd(&p->cb, wake);
	p->cb.data = p;
	p->cb.aio_rw_flags = RWF_NOWAIT;
}

static void count_submit(struct store_aio *a, struct iocb **v, int n, uint64_t start)
{
	uint64_t bytes = 0;

	store_count(&a->store, aio_submits);
	for (int i = 0; i < n; i++)
		bytes += container_of(v[i], struct part, cb)->len;
	if (clock_now_ns() - start > SUBMIT_SLOW_NS + bytes)
		store_count(&a->store, submit_blocked);
}

/* Submits all that is pending; parts that the kernel rejects are added to `failed`. */
static void flush(struct store_aio *a)
{
	unsigned at = 0;

	while (at < a->npending) {
		uint64_t start = clock_now_ns();
		int n = io_submit(a->ctx, (long)(a->npending - at), a->pending + at);

		if (n > 0) {
			count_submit(a, a->pending + at, n, start);
			a->in_kernel += (unsigned)n;
			at += (unsigned)n;
		} else {
			struct part *p = container_of(a->pending[at++], struct part, cb);

			p->res = n ? n : -EAGAIN;
			p->next = a->failed;
			a->failed = p;
		}
	}
	a->npending = 0;
}

/* The caller has checked that there are enough parts. */
static void launch(struct store_aio *a, struct store_io *io)
{
	uint32_t all = io->ext_head + io->bytes + io->ext_tail, at = 0;

	io->end = all;
	io->end_err = 0;
	io->parts = 0;
	while (at < all) {
		struct part *p = part_get(a);

		part_describe(p, io, at, MIN(all - at, io->file->direct.part_bytes), a->wake.fd);
		a->pending[a->npending++] = &p->cb;
		at += p->len;
		io->parts++;
	}
	rpcrdma_engine_add_poller(a->store.loop->engine, &a->poller);
	if (a->in_kernel < AT_ONCE || a->store.backing->data->overlap != DATA_OVERLAP_OFF)
		flush(a);
}

static bool has_room(const struct store_aio *a, const struct store_io *io)
{
	return parts_needed(io) <= a->nfree;
}

/* Without the watch, the reactor would sleep while completions are pending. */
static bool is_watched(struct store_aio *a)
{
	if (!a->watched)
		a->watched = !rpcrdma_engine_watch(a->store.loop->engine, &a->wake,
						   EPOLLIN | EPOLLET);
	return a->watched;
}

/* The caller has checked for free parts. no_nowait may have been set while the operation waited. */
static void go(struct store_aio *a, struct store_io *io)
{
	if (io->file->direct.no_nowait || !is_watched(a))
		by_worker(io);
	else
		launch(a, io);
}

/* ---- the end of an operation -------------------------------------------------------------- */

/* Return: true if the error is about the kind of request, not about the data: a worker retries it differently */
static bool is_refusal(int err)
{
	return err == -EAGAIN || err == -EOPNOTSUPP || err == -EINVAL;
}

/* Return: true: the operation has ended; false: a worker continues it */
static bool conclude(struct store_io *io)
{
	bool all = io->end == io->ext_head + io->bytes + io->ext_tail;
	uint32_t got = store_direct_rest(io, io->end);
	int err = io->end_err;

	io->head = got;
	io->res = (int32_t)got;
	if (all || got == io->bytes)
		return true;
	if (!err && store_file_is_complete(io, got))
		return true;
	if (err == -EOPNOTSUPP)
		io->file->direct.no_nowait = true;
	if (!err || is_refusal(err)) {
		store_count(io->store, aio_again);
		by_worker(io);
		return false;
	}
	if (!got)
		io->res = err;
	return true;
}

static void part_done(struct store_aio *a, struct part *p)
{
	struct store_io *io = p->io;
	uint32_t good = p->res > 0 ? MIN((uint32_t)p->res, p->len) : 0;

	if (good < p->len && p->off + good < io->end) {
		io->end = p->off + good;
		io->end_err = p->res < 0 ? (int)p->res : 0;
	}
	part_put(a, p);
	if (--io->parts || !conclude(io))
		return;
	store_count(&a->store, store_aio);
	io->done(io);
}

/* ---- the kernel --------------------------------------------------------------------------- */

static int end_failed(struct store_aio *a)
{
	int ran = 0;

	while (a->failed) {
		struct part *p = a->failed;

		a->failed = p->next;
		part_done(a, p);
		ran++;
	}
	return ran;
}

static int reap(struct store_aio *a)
{
	struct io_event events[REAP_BATCH];
	struct timespec now = { 0 };
	int ran = 0, n;

	do {
		/* an empty ring is detected without a system call */
		n = a->in_kernel ? io_getevents(a->ctx, 0, REAP_BATCH, events, &now) : 0;
		for (int i = 0; i < n; i++) {
			struct part *p = events[i].data;

			a->in_kernel--;
			p->res = (long)events[i].res;
			part_done(a, p);
		}
		ran += MAX(n, 0);
	} while (n == REAP_BATCH);
	return ran;
}

static void aio_free(struct store_aio *a)
{
	rpcrdma_engine_del_poller(a->store.loop->engine, &a->poller);
	if (a->watched)
		rpcrdma_engine_unwatch(a->store.loop->engine, &a->wake);
	if (a->wake.fd >= 0)
		close(a->wake.fd);
	if (a->ctx)
		(void)io_destroy(a->ctx);
	free(a);
}

/* Handles completions, then starts operations that waited for free parts, then submits them.
 * Return: number of completed parts */
static int turn(struct store_aio *a)
{
	struct store_io *io;
	int ran = 0;

	if (a->reaping)
		return 0;
	a->reaping = true;
	ran += reap(a);
	do { /* parts that failed at once are free again */
		ran += end_failed(a);
		while ((io = list_first_entry(&a->waiting, struct store_io, link)) && has_room(a, io)) {
			list_del(&io->link);
			go(a, io);
		}
		flush(a);
	} while (a->failed);
	a->reaping = false;
	if (a->dead)
		aio_free(a);
	else if (!a->in_kernel && !a->npending && !a->failed)
		rpcrdma_engine_del_poller(a->store.loop->engine, &a->poller);
	return ran;
}

static int on_poll(struct rpcrdma_poller *p)
{
	return turn(container_of(p, struct store_aio, poller));
}

/* Edge-triggered: the eventfd need not be read. */
static void on_wake(struct rpcrdma_watch *w, uint32_t events)
{
	(void)events;
	(void)turn(container_of(w, struct store_aio, wake));
}

/* ---- submitting --------------------------------------------------------------------------- */

/* Return: true if all of it was in the page cache and could be read without blocking */
static bool taken_from_cache(struct store_io *io)
{
	ssize_t n;

	if (io->file->no_nowait_read || !store_direct_resident(io->file->fd, io->off, io->bytes))
		return false;
	n = store_file_move(io->file->fd, io, 0, io->bytes, RWF_NOWAIT);
	if (n < 0 || !store_file_is_complete(io, (uint32_t)n))
		return false;
	io->res = (int32_t)n;
	io->copied = (uint32_t)n;
	store_count(io->store, store_now);
	return true;
}

/* Starts an operation on an opened file; Return: as store_ops.submit */
static int start(struct store_aio *a, struct store_io *io)
{
	struct store_direct *d = &io->file->direct;
	const struct data_conf *conf = a->store.backing->data;

	if (d->state != STORE_DIRECT_OPEN)
		return store_cached_ops.submit(&a->store, io);
	if (io->op == STORE_WRITE || !io->file->at_once) {
		by_worker(io);
		return 0;
	}
	if (conf->read == DATA_READ_AUTO && taken_from_cache(io))
		return 1;
	if (!store_direct_fits(d, io))
		by_worker(io);
	else if (!list_is_empty(&a->waiting) || !has_room(a, io))
		list_add_tail(&a->waiting, &io->link);
	else
		go(a, io);
	return 0;
}

/* ---- opening ------------------------------------------------------------------------------ */

static void run_open(struct worker_job *job)
{
	struct store_io *io = container_of(job, struct store_io, job);
	struct backing *b = io->store->backing;
	int err = store_direct_open(io->file, reads_directly(b), &io->direct);

	if (err)
		say_cached(b, err);
	run_direct(job);
}

static void on_open(struct worker_job *job)
{
	struct store_io *io = container_of(job, struct store_io, job);
	struct store_io *newest = io->file->opening, *w = newest ? newest->next : NULL, *next;

	io->file->direct = io->direct;
	io->file->opening = NULL;
	for (; w; w = next) {
		next = w == newest ? NULL : w->next;
		if (start(aio_of(w->store), w))
			w->done(w);
	}
	on_direct(job); /* last: this operation may be what keeps the store alive */
}

static bool wants_direct(const struct data_conf *conf, const struct store_io *io)
{
	if (io->op == STORE_READ)
		return conf->read != DATA_READ_CACHED;
	return io->op == STORE_WRITE && conf->write == DATA_WRITE_DIRECT;
}

static int aio_submit(struct store *s, struct store_io *io)
{
	struct store_direct *d = &io->file->direct;
	struct store_io **newest = &io->file->opening;

	if (!wants_direct(s->backing->data, io))
		return store_cached_ops.submit(s, io);
	if (d->state == STORE_DIRECT_UNTRIED) {
		d->state = STORE_DIRECT_OPENING;
		io->refused = false;
		store_count(s, store_worker);
		store_file_run(io, run_open, on_open);
		return 0;
	}
	if (d->state == STORE_DIRECT_OPENING) {
		io->next = *newest ? (*newest)->next : io;
		if (*newest)
			(*newest)->next = io;
		*newest = io;
		return 0;
	}
	return start(aio_of(s), io);
}

/* Already on a worker: opens the direct descriptor too, which saves the first operation a worker visit. */
static void aio_open(struct backing *b, int fd, bool write, struct store_file *ret)
{
	int err;

	store_adopt(b, fd, write, ret);
	err = store_direct_open(ret, reads_directly(b), &ret->direct);
	if (err)
		say_cached(b, err);
}

/* ---- the store ---------------------------------------------------------------------------- */

static int aio_create(const struct store_env *env, struct backing *b, struct store **ret)
{
	struct store_aio *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return -ENOMEM;
	a->store = (struct store){ .ops = &store_aio_ops, .loop = env->loop, .counters = env->counters, .backing = b };
	a->poller.fn = on_poll;
	a->wake = (struct rpcrdma_watch){ .fd = -1, .fn = on_wake };
	list_init(&a->waiting);
	for (unsigned i = DEPTH; i-- > 0;)
		part_put(a, &a->parts[i]);
	err = io_setup((int)DEPTH, &a->ctx);
	if (err == -EAGAIN)
		log_err("%s: no asynchronous I/O: fs.aio-max-nr is used up", b->name);
	if (!err) {
		a->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		err = a->wake.fd < 0 ? -errno : 0;
	}
	if (err) {
		aio_free(a);
		return err;
	}
	*ret = &a->store;
	return 0;
}

static void aio_destroy(struct store *s)
{
	struct store_aio *a = aio_of(s);

	a->dead = true;
	if (!a->reaping)
		aio_free(a);
}

const struct store_ops store_aio_ops = {
	.name = "aio",
	.create = aio_create,
	.destroy = aio_destroy,
	.open = aio_open,
	.submit = aio_submit,
};
