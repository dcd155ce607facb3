/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_aio.h - a file, a store with direct I/O on it, and a kernel that says what a script wants
 *
 * Linked with --wrap of io_submit() and io_getevents(), which say what the script wants, and of rpcrdma_engine_watch().
 */
#ifndef TEST_STORE_AIO_H
#define TEST_STORE_AIO_H

#include <stdio.h>

#ifndef HAVE_AIO

int main(void)
{
	printf("SKIP: built without libaio\n");
	return 77;
}

#else

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "store_direct.h"
#include "store_rig.h"

#define BLOCK 4096u
#define SIZE (6 * BLOCK + 777) /* of the file: its last block is not full */
#define ROOM (16 * BLOCK)

static struct store_rig g;
static uint8_t *mem;		 /* ROOM, of pages */
static uint8_t shadow[ROOM];	 /* what the file should hold */
static uint64_t shadow_size;
static int submit_err;		/* of the next io_submit() */
static bool submit_err_stays;	/* and of all */
static long result;		/* of the next part, unless 0 */
static unsigned results;	/* the number of parts that get it */
static unsigned submits, most_at_once;
static int flags_seen;
static long part_ends[3];	/* of the next io_submit(): what its first parts end with, unless 0 */
static const void *part_is[3];
static void (*before_submit)(void);
int __real_io_submit(io_context_t ctx, long nr, struct iocb *ios[]);
int __wrap_io_submit(io_context_t ctx, long nr, struct iocb *ios[]);

int __real_io_getevents(io_context_t ctx, long min, long nr, struct io_event *ev,
			struct timespec *timeout);

int __wrap_io_getevents(io_context_t ctx, long min, long nr, struct io_event *ev,
			struct timespec *timeout);
static unsigned sets_atime; /* reads by the reactor that may wait for a journal */

static inline void note_atime(int fd)
{
	sets_atime += !g.file.in_memory && !(fcntl(fd, F_GETFL) & O_NOATIME);
}

int __wrap_io_submit(io_context_t ctx, long nr, struct iocb *ios[])
{
	int err = submit_err;

	if (!submit_err_stays)
		submit_err = 0;
	if (err)
		return err;
	submits++;
	most_at_once = MAX(most_at_once, (unsigned)nr);
	for (long i = 0; i < nr; i++) {
		flags_seen |= (int)ios[i]->aio_rw_flags;
		note_atime(ios[i]->aio_fildes);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(part_ends) && i < nr; i++) {
		if (part_ends[i] && !part_is[i])
			part_is[i] = ios[i]->data;
	}
	if (before_submit)
		before_submit();
	return __real_io_submit(ctx, nr, ios);
}

int __wrap_io_getevents(io_context_t ctx, long min, long nr, struct io_event *ev,
			struct timespec *timeout)
{
	int n = __real_io_getevents(ctx, min, nr, ev, timeout);

	for (int i = 0; i < n && results; i++) {
		results--;
		ev[i].res = (unsigned long)result;
	}
	for (int i = 0; i < n; i++) {
		for (unsigned k = 0; k < ARRAY_SIZE(part_is); k++) {
			if (!part_is[k] || ev[i].data != part_is[k])
				continue;
			ev[i].res = (unsigned long)part_ends[k];
			part_is[k] = NULL;
			part_ends[k] = 0;
		}
	}
	return n;
}

/* O_DIRECT is taken by open(), and by nothing else */
static bool no_direct;
ssize_t __real_preadv2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __real_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
static pthread_t reactor; /* the thread of the tests, too */
static unsigned reads_here, writes_here; /* on it */
static int write_err; /* of the next */

static inline bool is_refused(int fd)
{
	errno = EINVAL;
	return no_direct && fcntl(fd, F_GETFL) & O_DIRECT;
}

ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	if (pthread_equal(pthread_self(), reactor)) {
		reads_here++;
		note_atime(fd);
	}
	return is_refused(fd) ? -1 : __real_preadv2(fd, iov, n, off, flags);
}

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	int err = write_err;

	if (pthread_equal(pthread_self(), reactor))
		writes_here++;
	if (err)
		write_err = 0;
	errno = err;
	return err || is_refused(fd) ? -1 : __real_pwritev2(fd, iov, n, off, flags);
}

static unsigned syncs, data_syncs; /* by the descriptor that hears of what the page cache has lost */
static int sync_err; /* of the next */
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

static inline int end_sync(int res)
{
	if (!sync_err)
		return res;
	errno = sync_err;
	sync_err = 0;
	return -1;
}

int __wrap_fsync(int fd)
{
	syncs += fd == g.file.fd;
	return end_sync(__real_fsync(fd));
}

int __wrap_fdatasync(int fd)
{
	data_syncs += fd == g.file.fd;
	return end_sync(__real_fdatasync(fd));
}

static unsigned watches;
static bool no_watch;
int __real_rpcrdma_engine_watch(struct rpcrdma_engine *e, struct rpcrdma_watch *w, uint32_t events);
int __wrap_rpcrdma_engine_watch(struct rpcrdma_engine *e, struct rpcrdma_watch *w, uint32_t events);

int __wrap_rpcrdma_engine_watch(struct rpcrdma_engine *e, struct rpcrdma_watch *w, uint32_t events)
{
	watches++;
	return no_watch ? -ENOMEM : __real_rpcrdma_engine_watch(e, w, events);
}

static inline void script(long res, unsigned times)
{
	result = res;
	results = times;
}

static inline void fill(void *p, size_t n, unsigned seed)
{
	uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)(i * 31 + i / 251 + seed * 7 + 1);
}

/* Pages in the cache would make a worker do what the tests want asynchronous. */
static inline void forget(void)
{
	assert_int_equal(fsync(g.file.fd), 0);
	assert_int_equal(posix_fadvise(g.file.fd, 0, 0, POSIX_FADV_DONTNEED), 0);
}

static inline void write_file(uint64_t size)
{
	shadow_size = size;
	fill(shadow, sizeof(shadow), 3);
	assert_int_equal(ftruncate(g.file.fd, 0), 0);
	assert_int_equal(pwrite(g.file.fd, shadow, size, 0), (ssize_t)size);
	memset(shadow + size, 0, sizeof(shadow) - size);
	forget();
}

static inline void create(const char *options)
{
	store_rig_create(&g, options);
	assert_int_equal(posix_memalign((void **)&mem, BLOCK, ROOM), 0);
	submit_err = flags_seen = 0;
	submit_err_stays = false;
	results = submits = most_at_once = reads_here = writes_here = 0;
	write_err = 0;
	reactor = pthread_self();
	memset(part_ends, 0, sizeof(part_ends));
	memset(part_is, 0, sizeof(part_is));
	before_submit = NULL;
	write_file(SIZE);
}

static inline int destroy(void **state)
{
	(void)state;
	store_rig_destroy(&g);
	free(mem);
	assert_int_equal(sets_atime, 0);
	return 0;
}

static inline int create_direct(void **state)
{
	(void)state;
	create("read=direct,write=direct");
	return 0;
}

/* A file is opened by its first operation, on a worker; most tests are about the others. */
static inline void open_file(void)
{
	struct iovec iov = { mem, 1 };
	struct store_io io = { .op = STORE_READ, .iov = &iov, .iovcnt = 1, .bytes = 1,
			       .size_hint = shadow_size };

	store_rig_begin(&g, &io);
	store_rig_wait(&g, &io);
	assert_int_equal(io.res, 1);
	assert_int_equal(g.file.direct.state, STORE_DIRECT_OPEN);
	forget();
}

static inline int32_t move(struct store_io *io, void *at)
{
	struct iovec iov = { at, io->bytes };

	io->iov = &iov;
	io->iovcnt = 1;
	io->size_hint = shadow_size;
	store_rig_begin(&g, io);
	store_rig_wait(&g, io);
	return io->res;
}

static inline int32_t read_at(uint64_t off, uint32_t len, void *at)
{
	struct store_io io = { .op = STORE_READ, .off = off, .bytes = len };

	return move(&io, at);
}

static inline int32_t write_at(uint64_t off, uint32_t len, void *at, enum store_stable stable)
{
	struct store_io io = { .op = STORE_WRITE, .off = off, .bytes = len, .stable = stable };

	return move(&io, at);
}

static inline void wrote(uint64_t off, uint32_t len, const void *data)
{
	memcpy(shadow + off, data, len);
	shadow_size = MAX(shadow_size, off + len);
}

/* as another process sees it */
static inline void check_file(void)
{
	static uint8_t back[ROOM];
	int fd = open(g.path, O_RDONLY | O_CLOEXEC);
	ssize_t n = pread(fd, back, sizeof(back), 0);

	close(fd);
	assert_int_equal(n, shadow_size);
	assert_memory_equal(back, shadow, shadow_size);
}

/* @pad: read over so much on both sides, if need be; what is beyond that stays as it was */
static inline void read_one(uint32_t off, uint32_t len, uint32_t skew, uint32_t pad)
{
	uint32_t want = off + len > SIZE ? SIZE - off : len;
	uint8_t *at = mem + BLOCK + (off + skew) % BLOCK;
	struct store_io io = { .op = STORE_READ, .off = off, .bytes = len, .pad_head = pad,
			       .pad_tail = pad };

	memset(mem, 0xee, ROOM);
	assert_int_equal(move(&io, at), want);
	assert_memory_equal(at, shadow + off, want);
	for (uint8_t *p = mem; p < mem + ROOM; p++) {
		if (p + pad < at || p >= at + len + pad)
			assert_int_equal(*p, 0xee);
	}
}

#define MANY 400u /* more than the kernel is given at once */

static inline void begin_many(struct store_io *ios, struct iovec *iovs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		/* the last of each four lies at an end, rounded into the space around it */
		uint32_t over = i % 4 == 3 ? 100 : 0;

		iovs[i] = (struct iovec){ mem + i % 4 * BLOCK + over, BLOCK - over };
		ios[i] = (struct store_io){ .op = STORE_READ, .off = i % 4 * BLOCK + over,
					    .bytes = BLOCK - over, .iov = &iovs[i], .iovcnt = 1,
					    .pad_head = over, .size_hint = SIZE };
		store_rig_begin(&g, &ios[i]);
	}
}

static inline void end_many(struct store_io *ios, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		store_rig_wait(&g, &ios[i]);
		assert_int_equal(ios[i].res, ios[i].bytes);
		assert_memory_equal(ios[i].iov->iov_base, shadow + ios[i].off, ios[i].bytes);
	}
}

#define direct_test(f) cmocka_unit_test_setup_teardown(f, create_direct, destroy)

#endif
#endif
