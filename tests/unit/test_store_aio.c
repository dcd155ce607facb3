/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_aio.c - direct reads and writes of every alignment, beside others who use the same file,
 * and what the kernel may say to them
 *
 * Linked with --wrap of io_submit() and io_getevents(), which say what a script wants, and of
 * rpcrdma_engine_watch().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#ifdef HAVE_AIO

#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "store_direct.h"
#include "store_rig.h"

#define BLOCK 4096u
#define SIZE (6 * BLOCK + 777) /* of the file: its last block is not full */
#define ROOM (16 * BLOCK)

static struct store_rig g;
static uint8_t *mem;		 /* ROOM, of pages */
static uint8_t shadow[ROOM];	 /* what the file should hold */
static uint64_t shadow_size;

/* ---- the kernel, as the script wants it ---- */

static int submit_err;		/* of the next io_submit() */
static bool submit_err_stays;	/* and of all */
static long result;		/* of the next part, unless 0 */
static unsigned results;	/* for so many */
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

static void note_atime(int fd)
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

static bool is_refused(int fd)
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

static int end_sync(int res)
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

static void script(long res, unsigned times)
{
	result = res;
	results = times;
}

/* ---- the rig ---- */

static void fill(void *p, size_t n, unsigned seed)
{
	uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)(i * 31 + i / 251 + seed * 7 + 1);
}

/* Pages in the cache would make a worker do what the tests want asynchronous. */
static void forget(void)
{
	assert_int_equal(fsync(g.file.fd), 0);
	assert_int_equal(posix_fadvise(g.file.fd, 0, 0, POSIX_FADV_DONTNEED), 0);
}

static void write_file(uint64_t size)
{
	shadow_size = size;
	fill(shadow, sizeof(shadow), 3);
	assert_int_equal(ftruncate(g.file.fd, 0), 0);
	assert_int_equal(pwrite(g.file.fd, shadow, size, 0), (ssize_t)size);
	memset(shadow + size, 0, sizeof(shadow) - size);
	forget();
}

static void create(const char *options)
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

static int destroy(void **state)
{
	(void)state;
	store_rig_destroy(&g);
	free(mem);
	assert_int_equal(sets_atime, 0);
	return 0;
}

static int create_direct(void **state)
{
	(void)state;
	create("read=direct,write=direct");
	return 0;
}

/* A file is opened by its first operation, on a worker; most tests are about the others. */
static void open_file(void)
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

static int32_t move(struct store_io *io, void *at)
{
	struct iovec iov = { at, io->bytes };

	io->iov = &iov;
	io->iovcnt = 1;
	io->size_hint = shadow_size;
	store_rig_begin(&g, io);
	store_rig_wait(&g, io);
	return io->res;
}

static int32_t read_at(uint64_t off, uint32_t len, void *at)
{
	struct store_io io = { .op = STORE_READ, .off = off, .bytes = len };

	return move(&io, at);
}

static int32_t write_at(uint64_t off, uint32_t len, void *at, enum store_stable stable)
{
	struct store_io io = { .op = STORE_WRITE, .off = off, .bytes = len, .stable = stable };

	return move(&io, at);
}

static void wrote(uint64_t off, uint32_t len, const void *data)
{
	memcpy(shadow + off, data, len);
	shadow_size = MAX(shadow_size, off + len);
}

/* as another process sees it */
static void check_file(void)
{
	static uint8_t back[ROOM];
	int fd = open(g.path, O_RDONLY | O_CLOEXEC);
	ssize_t n = pread(fd, back, sizeof(back), 0);

	close(fd);
	assert_int_equal(n, shadow_size);
	assert_memory_equal(back, shadow, shadow_size);
}

static const uint32_t offs[] = { 0, 1, 511, 512, 513, 4095, 4096, 4097, 5 * BLOCK, SIZE - 1 };
static const uint32_t lens[] = { 1,	  511,		 512,	      513, 4095, 4096, 4097, 2 * BLOCK,
				 3 * BLOCK, 3 * BLOCK + 1, 4 * BLOCK - 1 };

/* ---- alignment ---- */

/* @pad: read over so much on both sides, if need be; what is beyond that stays as it was */
static void read_one(uint32_t off, uint32_t len, uint32_t skew, uint32_t pad)
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

static void reads_of_every_alignment(void **state)
{
	static const struct {
		uint32_t skew, pad;
	} memory[] = { { 0, 0 }, { 0, BLOCK - 1 }, { 0, 100 }, { 1, BLOCK - 1 }, { 512, 0 } };

	(void)state;
	open_file();
	for (size_t o = 0; o < ARRAY_SIZE(offs); o++) {
		for (size_t l = 0; l < ARRAY_SIZE(lens); l++) {
			for (size_t m = 0; m < ARRAY_SIZE(memory); m++)
				read_one(offs[o], lens[l], memory[m].skew, memory[m].pad);
		}
	}
}

/* With room on both sides nothing is copied and no worker is asked. */
static void rounded_reads_are_one_operation(void **state)
{
	uint64_t workers, aio;

	(void)state;
	open_file();
	workers = store_rig_counter(&g, store_worker);
	aio = store_rig_counter(&g, store_aio);
	read_one(513, 3 * BLOCK + 1, 0, BLOCK - 1);
	read_one(5 * BLOCK + 1, BLOCK + 776, 0, BLOCK - 1); /* to the end of the file */
	assert_int_equal(store_rig_counter(&g, store_worker), workers);
	assert_int_equal(store_rig_counter(&g, store_aio), aio + 2);
}

static void writes_of_every_alignment(void **state)
{
	static const enum store_stable stables[] = { STORE_UNSTABLE, STORE_DATA_SYNC,
						     STORE_FILE_SYNC };
	unsigned n = 0;

	(void)state;
	open_file();
	for (size_t o = 0; o < ARRAY_SIZE(offs); o++) {
		for (size_t l = 0; l < ARRAY_SIZE(lens); l++) {
			for (uint32_t skew = 0; skew < 2; skew++) {
				uint8_t *at = mem + BLOCK + (offs[o] + skew) % BLOCK;

				fill(mem, ROOM, ++n);
				if (n % 2)
					forget();
				assert_int_equal(write_at(offs[o], lens[l], at, stables[n % 3]),
						 lens[l]);
				wrote(offs[o], lens[l], at);
				check_file();
			}
		}
		write_file(SIZE); /* the last ones may have made it longer */
	}
}

/* pieces of a caller's memory, each of which the device can reach, and more than one part takes */
static void memory_in_pieces(void **state)
{
	enum { PIECES = 40, EACH = 512 };
	struct iovec iov[PIECES];
	struct store_io io = { .op = STORE_READ, .off = 512, .iov = iov, .iovcnt = PIECES,
			       .bytes = PIECES * EACH, .size_hint = SIZE };
	uint64_t workers;

	(void)state;
	open_file();
	if (g.file.direct.read_align > EACH || g.file.direct.mem_align > EACH)
		skip();
	workers = store_rig_counter(&g, store_worker);
	for (unsigned i = 0; i < PIECES; i++)
		iov[i] = (struct iovec){ mem + (PIECES - 1 - i) * 2 * EACH, EACH };
	memset(mem, 0xee, ROOM);
	store_rig_begin(&g, &io);
	store_rig_wait(&g, &io);
	assert_int_equal(io.res, PIECES * EACH);
	for (unsigned i = 0; i < PIECES; i++) {
		assert_memory_equal(iov[i].iov_base, shadow + 512 + i * EACH, EACH);
		assert_int_equal(((uint8_t *)iov[i].iov_base)[EACH], 0xee);
	}
	assert_int_equal(store_rig_counter(&g, store_worker), workers);
	/* the second of three parts fails: what is before it is good */
	part_ends[1] = -EIO;
	store_rig_begin(&g, &io);
	store_rig_wait(&g, &io);
	assert_int_equal(io.res, 16 * EACH);
	iov[7].iov_len--; /* and one that the device cannot reach */
	iov[6].iov_len++;
	store_rig_begin(&g, &io);
	store_rig_wait(&g, &io);
	assert_int_equal(io.res, PIECES * EACH);
	assert_memory_equal(iov[8].iov_base, shadow + 512 + 8 * EACH, EACH);
}

/* The block layer does not split for those who must not wait. */
static void longer_than_the_device_takes(void **state)
{
	(void)state;
	open_file();
	g.file.direct.part_bytes = BLOCK;
	most_at_once = 0;
	memset(mem, 0xee, ROOM);
	assert_int_equal(read_at(BLOCK, 3 * BLOCK, mem), 3 * BLOCK);
	assert_memory_equal(mem, shadow + BLOCK, 3 * BLOCK);
	assert_int_equal(mem[3 * BLOCK], 0xee);
	assert_int_equal(most_at_once, 3);
	part_ends[1] = -EIO;
	assert_int_equal(read_at(BLOCK, 3 * BLOCK, mem), BLOCK);
	part_ends[0] = -EIO;
	assert_int_equal(read_at(BLOCK, 3 * BLOCK, mem), -EIO);
	fill(mem, ROOM, 4);
	assert_int_equal(write_at(0, 4 * BLOCK, mem, STORE_DATA_SYNC), 4 * BLOCK);
	wrote(0, 4 * BLOCK, mem);
	check_file();
}

/* A part fails behind one that a worker has to do again: both are done again, and then synced. */
static void an_error_behind_the_end(void **state)
{
	struct store_io io = { .op = STORE_WRITE, .bytes = 3 * BLOCK, .stable = STORE_DATA_SYNC };

	(void)state;
	open_file();
	g.file.direct.part_bytes = BLOCK;
	fill(mem, ROOM, 6);
	part_ends[0] = -EAGAIN;
	part_ends[2] = -EIO;
	data_syncs = 0;
	assert_int_equal(move(&io, mem), 3 * BLOCK);
	assert_int_equal(data_syncs, 1);
	wrote(0, 3 * BLOCK, mem);
	check_file();
	assert_false(io.sync_failed);
	assert_int_equal(g.lost, 0);
}

/* ---- beside others ---- */

/* Two clients write halves of the same block, over and over; neither loses a byte. */
static void neighbours_in_one_block(void **state)
{
	(void)state;
	open_file();
	for (unsigned i = 0; i < 40; i++) {
		uint32_t cut = BLOCK + 100 * i + 17, from = BLOCK / 2 + i, to = 3 * BLOCK - i;
		struct iovec iov[2] = { { mem + from, cut - from }, { mem + cut, to - cut } };
		struct store_io io[2];

		fill(mem, ROOM, i);
		for (unsigned k = 0; k < 2; k++) {
			io[k] = (struct store_io){ .op = STORE_WRITE,
						   .iov = &iov[k],
						   .iovcnt = 1,
						   .off = k ? cut : from,
						   .bytes = (uint32_t)iov[k].iov_len };
			store_rig_begin(&g, &io[k]);
		}
		for (unsigned k = 0; k < 2; k++) {
			store_rig_wait(&g, &io[k]);
			assert_int_equal(io[k].res, iov[k].iov_len);
		}
		wrote(from, to - from, mem + from);
		check_file();
	}
}

static void one_reader_and_writer_beside(const char *options)
{
	create(options);
	for (unsigned i = 0; i < 30; i++) {
		uint32_t off = i % 5 * BLOCK + (i % 3 ? 0 : 40), len = i % 2 ? BLOCK : 2 * BLOCK + 9;
		uint8_t other[64];

		/* they write, we read */
		fill(other, sizeof(other), 100 + i);
		assert_int_equal(pwrite(g.file.fd, other, sizeof(other), off + 10), sizeof(other));
		wrote(off + 10, sizeof(other), other);
		len = (uint32_t)MIN(len, shadow_size - off);
		memset(mem, 0, ROOM);
		assert_int_equal(read_at(off, len, mem), len);
		assert_memory_equal(mem, shadow + off, len);
		/* we write, they read */
		fill(mem, ROOM, i);
		assert_int_equal(write_at(off, len, mem, i % 3), len);
		wrote(off, len, mem);
		check_file();
		/* we write, we read */
		memset(mem, 0, ROOM);
		assert_int_equal(read_at(0, SIZE, mem), SIZE);
		assert_memory_equal(mem, shadow, SIZE);
	}
	(void)destroy(NULL);
}

static void local_processes_see_the_same(void **state)
{
	static const char *const modes[] = { "read=direct,write=direct", "read=direct,write=cached",
					     "read=cached,write=direct", "read=auto,write=direct",
					     "read=auto,write=cached" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		one_reader_and_writer_beside(modes[i]);
}

/* ---- growing and shrinking ---- */

static void holes_and_ends(void **state)
{
	(void)state;
	open_file();
	write_file(BLOCK + 100);
	fill(mem, ROOM, 9);
	assert_int_equal(write_at(4 * BLOCK, 2 * BLOCK, mem, STORE_UNSTABLE), 2 * BLOCK);
	wrote(4 * BLOCK, 2 * BLOCK, mem);
	check_file();
	assert_int_equal(write_at(2 * BLOCK, BLOCK, mem, STORE_FILE_SYNC), BLOCK); /* in the hole */
	wrote(2 * BLOCK, BLOCK, mem);
	assert_int_equal(write_at(6 * BLOCK, 2 * BLOCK + 1, mem, STORE_UNSTABLE), 2 * BLOCK + 1);
	wrote(6 * BLOCK, 2 * BLOCK + 1, mem);
	check_file();
	memset(mem, 0xee, ROOM);
	assert_int_equal(read_at(0, 8 * BLOCK, mem), 8 * BLOCK);
	assert_memory_equal(mem, shadow, 8 * BLOCK);
}

static void cut_short(void)
{
	assert_int_equal(truncate(g.path, 2 * BLOCK + 5), 0);
}

/* It was longer when the request was looked at. */
static void truncated_meanwhile(void **state)
{
	(void)state;
	open_file();
	before_submit = cut_short;
	memset(mem, 0xee, ROOM);
	assert_int_equal(read_at(BLOCK, 4 * BLOCK, mem), BLOCK + 5);
	assert_memory_equal(mem, shadow + BLOCK, BLOCK + 5);
	before_submit = NULL;
	assert_int_equal(read_at(4 * BLOCK, BLOCK, mem), 0);
}

/* ---- what the kernel may say ---- */

static void errors_as_they_are(void **state)
{
	static const int errs[] = { EIO, ENOSPC, EDQUOT, ENXIO, EROFS };

	(void)state;
	open_file();
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		unsigned lost = g.lost;
		struct store_io io = { .op = STORE_WRITE, .bytes = BLOCK, .stable = STORE_DATA_SYNC };

		script(-errs[i], 1);
		assert_int_equal(read_at(0, BLOCK, mem), -errs[i]);
		write_err = errs[i];
		assert_int_equal(write_at(0, BLOCK, mem, STORE_UNSTABLE), -errs[i]);
		assert_int_equal(g.lost, lost);
		/* nor is anything lost if it was to be stable: it failed before the sync */
		write_err = errs[i];
		data_syncs = 0;
		assert_int_equal(move(&io, mem), -errs[i]);
		assert_false(io.sync_failed);
		assert_int_equal(g.lost, lost);
		assert_int_equal(data_syncs, 0);
	}
	submit_err = -EIO;
	assert_int_equal(read_at(0, BLOCK, mem), -EIO);
	submit_err = -EAGAIN;
	assert_int_equal(read_at(0, BLOCK, mem), BLOCK); /* by a worker */
	assert_int_equal(results, 0);
}

static void a_worker_goes_on(void **state)
{
	static const long answers[] = { -EAGAIN, 0, 512, BLOCK, BLOCK + 1 };

	(void)state;
	open_file();
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		uint64_t workers = store_rig_counter(&g, store_worker);
		uint64_t again = store_rig_counter(&g, aio_again);

		script(answers[i], 1);
		memset(mem, 0xee, ROOM);
		assert_int_equal(read_at(BLOCK, 3 * BLOCK, mem), 3 * BLOCK);
		assert_memory_equal(mem, shadow + BLOCK, 3 * BLOCK);
		forget();
		assert_int_equal(store_rig_counter(&g, store_worker), workers + 1);
		assert_int_equal(store_rig_counter(&g, aio_again), again + 1);
	}
}

/* A file system that refuses what was aligned as it asked is asked once. */
static void refused_after_all(void **state)
{
	(void)state;
	open_file();
	script(-EINVAL, 1);
	no_direct = true;
	assert_int_equal(read_at(0, 2 * BLOCK, mem), 2 * BLOCK);
	no_direct = false;
	assert_memory_equal(mem, shadow, 2 * BLOCK);
	assert_int_equal(g.file.direct.state, STORE_DIRECT_REFUSED);
	assert_true(atomic_load(&g.exp.volume.said_cached));
	submits = 0;
	fill(mem, ROOM, 5);
	assert_int_equal(write_at(0, BLOCK, mem, STORE_DATA_SYNC), BLOCK);
	wrote(0, BLOCK, mem);
	assert_int_equal(read_at(0, BLOCK, mem + BLOCK), BLOCK);
	assert_int_equal(submits, 0);
	check_file();
}

/* A file system without RWF_NOWAIT is asked once. */
static void nowait_unknown(void **state)
{
	(void)state;
	open_file();
	script(-EOPNOTSUPP, 1);
	assert_int_equal(read_at(0, BLOCK, mem), BLOCK);
	submits = 0;
	assert_int_equal(read_at(0, BLOCK, mem), BLOCK);
	assert_int_equal(submits, 0);
}

/* io_submit() and pwritev2() of a write wait for a frozen file system, whatever their flags. */
static void writes_are_by_workers(void **state)
{
	static const char *const modes[] = { "read=direct,write=direct", "read=direct,write=cached" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		create(modes[i]);
		open_file();
		submits = 0;
		for (unsigned how = STORE_UNSTABLE; how <= STORE_FILE_SYNC; how++) {
			uint64_t workers = store_rig_counter(&g, store_worker);

			assert_int_equal(write_at(0, BLOCK, mem, how), BLOCK);
			assert_int_equal(write_at(1, BLOCK, mem, how), BLOCK);
			assert_int_equal(store_rig_counter(&g, store_worker), workers + 2);
		}
		assert_int_equal(submits, 0);
		assert_int_equal(writes_here, 0);
		(void)destroy(NULL);
	}
}

/* Its attributes may be another host's, and a stopped process may have to say what it holds. */
static void a_slow_file_system_is_for_workers(void **state)
{
	static const char *const modes[] = { "read=direct", "read=auto" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		create(modes[i]);
		g.file.at_once = false;
		open_file();
		submits = reads_here = 0;
		assert_int_equal(pread(g.file.fd, mem, BLOCK, 0), BLOCK); /* cached by now */
		memset(mem, 0, BLOCK);
		assert_int_equal(read_at(0, BLOCK, mem), BLOCK);
		assert_memory_equal(mem, shadow, BLOCK);
		assert_int_equal(submits, 0);
		assert_int_equal(reads_here, 0);
		(void)destroy(NULL);
	}
}

static void syncs_of_writes(void **state)
{
	(void)state;
	open_file();
	for (unsigned i = STORE_UNSTABLE; i <= STORE_FILE_SYNC; i++) {
		flags_seen = 0;
		syncs = data_syncs = 0;
		assert_int_equal(write_at(0, BLOCK, mem, i), BLOCK);
		assert_int_equal(syncs, i == STORE_FILE_SYNC);
		assert_int_equal(data_syncs, i == STORE_DATA_SYNC);
	}
	flags_seen = 0;
	assert_int_equal(read_at(0, BLOCK, mem), BLOCK);
	assert_int_equal(flags_seen, RWF_NOWAIT);
}

/* Told to this write's sync: what was written before, through the page cache say, is lost. */
static void a_failed_sync_is_a_loss(void **state)
{
	static const int errs[] = { EIO, ENOSPC, EDQUOT };

	(void)state;
	open_file();
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		for (unsigned how = STORE_DATA_SYNC; how <= STORE_FILE_SYNC; how++) {
			struct store_io io = { .op = STORE_WRITE, .bytes = 2 * BLOCK, .stable = how };
			unsigned lost = g.lost;

			sync_err = errs[i];
			assert_int_equal(move(&io, mem), -errs[i]);
			assert_true(io.sync_failed);
			assert_int_equal(g.lost, lost + 1);
		}
	}
}

/* ---- many at once ---- */

#define MANY 400u /* more than the kernel is given at once */

static void begin_many(struct store_io *ios, struct iovec *iovs, unsigned n)
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

static void end_many(struct store_io *ios, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		store_rig_wait(&g, &ios[i]);
		assert_int_equal(ios[i].res, ios[i].bytes);
		assert_memory_equal(ios[i].iov->iov_base, shadow + ios[i].off, ios[i].bytes);
	}
}

static void more_than_the_ring_takes(void **state)
{
	static struct store_io ios[MANY];
	static struct iovec iovs[MANY];

	(void)state;
	open_file();
	begin_many(ios, iovs, MANY);
	end_many(ios, MANY);
	if (store_rig_counter(&g, store_aio))
		assert_true(most_at_once > 1); /* when the device has enough to do */
}

/* overlayfs, for instance, knows no RWF_NOWAIT and says so at once */
static void none_of_many_is_taken(void **state)
{
	static const int errs[] = { -EOPNOTSUPP, -EAGAIN };
	static struct store_io ios[MANY];
	static struct iovec iovs[MANY];

	(void)state;
	open_file();
	submit_err_stays = true;
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		submit_err = errs[i];
		g.file.direct.no_nowait = false;
		begin_many(ios, iovs, MANY);
		end_many(ios, MANY);
	}
}

static void many_wait_for_the_first(void **state)
{
	static struct store_io ios[MANY];
	static struct iovec iovs[MANY];

	(void)state;
	begin_many(ios, iovs, MANY);
	end_many(ios, MANY);
	assert_int_equal(store_rig_counter(&g, store_worker), 1);
	assert_int_equal(store_rig_counter(&g, store_aio), MANY - 1);
}

/* Where the pieces of a request are to end one by one, they are submitted so. */
static void streams_alone(void **state)
{
	static struct store_io ios[40];
	static struct iovec iovs[40];

	(void)state;
	create("read=direct,overlap=streams");
	open_file();
	submits = most_at_once = 0;
	begin_many(ios, iovs, 40);
	end_many(ios, 40);
	assert_int_equal(submits, 40);
	assert_int_equal(most_at_once, 1);
	(void)destroy(NULL);
}

/* after a reload: the store of before still has operations, and the file is open in both */
static void two_stores_one_file(void **state)
{
	static struct store_io ios[6];
	static struct iovec iovs[6];
	struct store *first = g.store, *second;

	(void)state;
	assert_int_equal(store_create(g.ops, &g.env, &g.exp.volume, &second), 0);
	begin_many(ios, iovs, 3);
	g.store = second;
	begin_many(ios + 3, iovs + 3, 3);
	end_many(ios, 3);
	end_many(ios + 3, 3);
	store_destroy(first);
}

/* A reload makes stores on a thread of its own, and unmakes them there if not all can be had: the
 * engine is another's. */
static void never_used(void **state)
{
	struct store *s;

	(void)state;
	watches = 0;
	assert_int_equal(store_create(g.ops, &g.env, &g.exp.volume, &s), 0);
	store_destroy(s);
	assert_int_equal(watches, 0);
}

static void cannot_be_woken(void **state)
{
	uint64_t aio;

	(void)state;
	open_file();
	aio = store_rig_counter(&g, store_aio);
	no_watch = true;
	assert_int_equal(read_at(0, 2 * BLOCK, mem), 2 * BLOCK);
	no_watch = false;
	assert_memory_equal(mem, shadow, 2 * BLOCK);
	assert_int_equal(store_rig_counter(&g, store_aio), aio);
	assert_int_equal(read_at(0, 2 * BLOCK, mem), 2 * BLOCK);
	assert_int_equal(store_rig_counter(&g, store_aio), aio + 1);
}

static struct store *dying;

static void on_last(struct store_io *io)
{
	io->done = NULL;
	store_destroy(dying);
}

/* The last request of a store that was replaced takes it along. */
static void destroyed_by_its_last(void **state)
{
	struct iovec iov = { mem, BLOCK };
	struct store_io io = { .op = STORE_READ, .iov = &iov, .iovcnt = 1, .bytes = BLOCK,
			       .file = &g.file, .size_hint = SIZE, .done = on_last };

	(void)state;
	open_file();
	assert_int_equal(store_create(g.ops, &g.env, &g.exp.volume, &dying), 0);
	assert_int_equal(store_submit(dying, &io), 0);
	store_rig_wait(&g, &io);
	assert_int_equal(io.res, BLOCK);
}

/* ---- what is in the page cache ---- */

static void auto_takes_what_is_cached(void **state)
{
	uint64_t now, aio;

	(void)state;
	create("read=auto");
	open_file();
	forget();
	now = store_rig_counter(&g, store_now);
	aio = store_rig_counter(&g, store_aio);
	for (unsigned i = 0; i < 3; i++) /* looking brings nothing there */
		assert_int_equal(read_at(0, BLOCK, mem), BLOCK);
	assert_int_equal(store_rig_counter(&g, store_aio), aio + 3);
	assert_int_equal(store_rig_counter(&g, store_now), now);
	assert_false(store_direct_resident(g.file.fd, 0, BLOCK));
	assert_int_equal(pread(g.file.fd, mem, BLOCK, 0), BLOCK);
	memset(mem, 0, BLOCK);
	assert_int_equal(read_at(0, BLOCK, mem), BLOCK);
	assert_memory_equal(mem, shadow, BLOCK);
	assert_int_equal(store_rig_counter(&g, store_now), now + 1);
	assert_int_equal(read_at(0, 2 * BLOCK, mem), 2 * BLOCK); /* half of it: directly */
	assert_memory_equal(mem, shadow, 2 * BLOCK);
	assert_int_equal(store_rig_counter(&g, store_aio), aio + 4);
	(void)destroy(NULL);
}

/* ---- where there is none ---- */

static void memory_has_no_direct(void **state)
{
	const char *tmp = getenv("TMPDIR");
	char *before = tmp ? strdup(tmp) : NULL;

	(void)state;
	if (access("/dev/shm", W_OK))
		skip();
	setenv("TMPDIR", "/dev/shm", 1);
	create("read=direct,write=direct");
	assert_int_equal(read_at(0, BLOCK, mem), BLOCK);
	assert_memory_equal(mem, shadow, BLOCK);
	assert_int_equal(g.file.direct.state, STORE_DIRECT_NONE);
	assert_true(atomic_load(&g.exp.volume.said_cached));
	assert_int_equal(write_at(5, BLOCK, mem, STORE_FILE_SYNC), BLOCK);
	wrote(5, BLOCK, mem);
	check_file();
	assert_int_equal(submits, 0);
	(void)destroy(NULL);
	if (before)
		setenv("TMPDIR", before, 1);
	else
		unsetenv("TMPDIR");
	free(before);
}

#define direct_test(f) cmocka_unit_test_setup_teardown(f, create_direct, destroy)

#define OF_ANY 13 /* tests, the first */

/* With the argument "any": only what must hold in any file system, however rarely it does things
 * without waiting. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		direct_test(reads_of_every_alignment),
		direct_test(writes_of_every_alignment),
		direct_test(neighbours_in_one_block),
		cmocka_unit_test(local_processes_see_the_same),
		direct_test(holes_and_ends),
		direct_test(refused_after_all),
		direct_test(more_than_the_ring_takes),
		direct_test(none_of_many_is_taken),
		direct_test(two_stores_one_file),
		direct_test(destroyed_by_its_last),
		direct_test(never_used),
		cmocka_unit_test(writes_are_by_workers),
		cmocka_unit_test(a_slow_file_system_is_for_workers),
		/* so far OF_ANY: what follows is of reads that the kernel takes from the reactor */
		direct_test(truncated_meanwhile),
		cmocka_unit_test(streams_alone),
		direct_test(rounded_reads_are_one_operation),
		direct_test(cannot_be_woken),
		direct_test(memory_in_pieces),
		direct_test(longer_than_the_device_takes),
		direct_test(an_error_behind_the_end),
		direct_test(errors_as_they_are),
		direct_test(a_worker_goes_on),
		direct_test(nowait_unknown),
		direct_test(syncs_of_writes),
		direct_test(a_failed_sync_is_a_loss),
		direct_test(many_wait_for_the_first),
		cmocka_unit_test(auto_takes_what_is_cached),
		cmocka_unit_test(memory_has_no_direct),
	};
	bool any = argc > 1 && !strcmp(argv[1], "any");

	if (!tmp_dir_has_direct()) {
		printf("SKIP: files below TMPDIR cannot be opened with O_DIRECT\n");
		return 77;
	}
	return _cmocka_run_group_tests("store_aio", tests, any ? OF_ANY : ARRAY_SIZE(tests), NULL,
				       NULL);
}

#else

int main(void)
{
	printf("SKIP: built without libaio\n");
	return 77;
}

#endif
