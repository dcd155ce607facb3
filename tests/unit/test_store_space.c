/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_space.c - DISCARD, ZERO and EXTENTS of files: what they cover, what they leave, and what a file system
 * that does not support them makes of it
 */
#include "test_store_space.h"

#include <sys/ioctl.h>
#include <sys/stat.h>

#include <linux/fs.h>

#define SIZE (5 * PAGE + 777)
#define RANGE (1u << 30)
#define MIB (1u << 20)

static unsigned syncs, data_syncs;
static int sync_err;

int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);

int __wrap_fsync(int fd)
{
	(void)fd;
	syncs++;
	errno = sync_err;
	return sync_err ? -1 : 0;
}

int __wrap_fdatasync(int fd)
{
	(void)fd;
	data_syncs++;
	errno = sync_err;
	return sync_err ? -1 : 0;
}

/* ---- lseek() ---- */

static int seek_err;
static bool data_vanishes;

off_t __real_lseek(int fd, off_t off, int whence);
off_t __wrap_lseek(int fd, off_t off, int whence);

off_t __wrap_lseek(int fd, off_t off, int whence)
{
	bool holes = whence == SEEK_DATA || whence == SEEK_HOLE;

	if (seek_err && holes) {
		errno = seek_err;
		return -1;
	}
	if (data_vanishes && holes)
		return off;
	return __real_lseek(fd, off, whence);
}

static bool tells_holes;

/* Finds out what the file system below $TMPDIR can do: vfat, for example, nothing. */
static void probe(void)
{
	struct fs_space space;
	int fd = open(tmp_dir_path(&g.dir, "probe"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(ftruncate(fd, MIB), 0);
	can_really = __real_fallocate(fd, PUNCH_MODE, 0, PAGE) ? 0 : CAN_PUNCH;
	can_really |= __real_fallocate(fd, ZERO_MODE, 0, PAGE) ? 0 : CAN_ZERO;
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(ftruncate(fd, MIB), 0);
	fs_space_find(fd, &space);
	tells_holes = space.tells_holes && __real_lseek(fd, 0, SEEK_HOLE) == 0;
	close(fd);
}

static void begin(const char *options)
{
	store_rig_create(&g, options);
	reactor = pthread_self();
	probe();
	can = CAN_BOTH;
	refusal = EOPNOTSUPP;
	pretends = false;
	busy = 0;
	sync_err = seek_err = 0;
	data_vanishes = false;
	syncs = data_syncs = 0;
	forget_calls();
}

static void end(void)
{
	store_rig_destroy(&g);
}

static void fill(uint32_t size)
{
	uint8_t *mem = malloc(size);

	memset(mem, 'x', size);
	move_bytes(STORE_WRITE, 0, mem, size);
	free(mem);
}

static uint64_t size_of(void)
{
	uint64_t size;

	assert_int_equal(store_file_size(g.file.fd, &size), 0);
	return size;
}

/* The bytes [@from, @to) are zero, and all others are 'x'. */
static void check_zeroes(uint32_t size, uint32_t from, uint32_t to)
{
	uint8_t *mem = malloc(size);

	assert_int_equal(size_of(), size);
	move_bytes(STORE_READ, 0, mem, size);
	for (uint32_t i = 0; i < size; i++) {
		if (mem[i] != (i >= from && i < to ? 0 : 'x'))
			fail_msg("byte %u is %02x", i, mem[i]);
	}
	free(mem);
}

static const char *const ways[] = { "", "read=direct,write=direct", "read=auto,write=cached", "write=direct" };

#ifdef HAVE_AIO
#define WAYS ARRAY_SIZE(ways)
#else
#define WAYS 1
#endif

static void at_random(void **state)
{
	(void)state;
	for (size_t i = 0; i < WAYS; i++) {
		for (unsigned what = 0; what <= CAN_BOTH; what++) {
			begin(ways[i]);
			can = what;
			model_run(SIZE, 1, 100);
			end();
		}
	}
}

/* Some file systems say that data is a hole as long as it is not on disk. */
static void without_extents(void **state)
{
	struct store_caps caps;
	int flags;

	(void)state;
	begin("");
	if (ioctl(g.file.fd, FS_IOC_GETFLAGS, &flags) || !(flags & FS_EXTENT_FL)) {
		end();
		print_message("no ext4 below TMPDIR\n");
		skip();
	}
	flags &= ~FS_EXTENT_FL;
	assert_int_equal(ioctl(g.file.fd, FS_IOC_SETFLAGS, &flags), 0);
	store_caps_find(&g.file, &caps);
	assert_false(caps.extents || caps.fast_keep);
	model_run(SIZE, 1, 100);
	end();
}

/* The rig makes its directory below $TMPDIR. */
static void in_memory(void **state)
{
	const char *tmp = getenv("TMPDIR");
	char *was = tmp ? strdup(tmp) : NULL;

	(void)state;
	setenv("TMPDIR", "/dev/shm", 1);
	begin("");
	if (was)
		setenv("TMPDIR", was, 1);
	else
		unsetenv("TMPDIR");
	free(was);
	if (!g.file.in_memory) {
		end();
		print_message("/dev/shm is not in memory\n");
		skip();
	}
	model_run(SIZE, 1, 2000);
	end();
}

static void fallbacks(void **state)
{
	(void)state;
	begin("");
	for (unsigned i = 0; i < 16; i++) {
		bool keep = i & 4;

		can = i % 4;
		refusal = i & 8 ? EOPNOTSUPP : ENOSYS;
		fill(70 * PAGE);
		assert_int_equal(zero(PAGE - 1, 66 * PAGE + 3, keep), 66 * PAGE + 3);
		assert_int_equal(punches, !keep);
		assert_int_equal(zeroings, keep || !can_punch_now());
		assert_int_equal(on_reactor, 0);
		check_zeroes(70 * PAGE, PAGE - 1, 67 * PAGE + 2);
	}
	end();
}

/* Ranges that begin and end at, before and behind the edges of sectors and pages */
static void neighbours(void **state)
{
	static const uint32_t edges[] = { 0, 512, PAGE, 2 * PAGE, 3 * PAGE };
	uint8_t is[4 * PAGE];

	(void)state;
	begin("");
	for (unsigned i = 0; i < ARRAY_SIZE(edges) * 3 * ARRAY_SIZE(edges) * 3 * 8; i++) {
		unsigned a = i / 8 % 15, b = i / 8 / 15;
		uint32_t from = edges[a / 3] + a % 3, to = edges[b / 3] + b % 3;
		bool is_discard = i % 8 == 7 && can_really & CAN_PUNCH, keep = i & 4;

		if (!from || from >= to)
			continue;
		from--; /* -1, 0, 1 */
		to--;
		can = is_discard ? CAN_BOTH : i & 3;
		fill(sizeof(is));
		assert_int_equal(is_discard ? discard(from, to - from) : zero(from, to - from, keep), to - from);
		move_bytes(STORE_READ, 0, is, sizeof(is));
		for (uint32_t k = 0; k < sizeof(is); k++) {
			if (k < from || k >= to ? is[k] != 'x' : is[k] && !is_discard)
				fail_msg("%s [%u, %u): byte %u is %02x", is_discard ? "DISCARD" : "ZERO", from, to, k, is[k]);
		}
	}
	end();
}

static void other_errors(void **state)
{
	(void)state;
	begin("");
	fill(SIZE);
	can = 0;
	refusal = ENOSPC;
	assert_int_equal(zero(10, 10, true), -ENOSPC);
	assert_int_equal(zero(10, 10, false), -ENOSPC);
	assert_int_equal(discard(10, 10), -ENOSPC);
	refusal = ENOSYS;
	assert_int_equal(discard(10, 2 * PAGE), -EOPNOTSUPP);
	refusal = EOPNOTSUPP;
	assert_int_equal(discard(10, 2 * PAGE), -EOPNOTSUPP);
	assert_int_equal(zeroings, 0);
	check_zeroes(SIZE, 0, 0);
	end();
}

/* As the kernel does where pages are dirty, and another descriptor has the device exclusively */
static void busy_pages(void **state)
{
	(void)state;
	begin("");
	if (!can_punch_now()) {
		end();
		skip();
	}
	fill(SIZE);
	busy = 2;
	assert_int_equal(zero(PAGE - 1, PAGE, false), PAGE);
	assert_int_equal(punches, 3);
	assert_int_equal(zeroings, 0);
	check_zeroes(SIZE, PAGE - 1, 2 * PAGE - 1);
	fill(SIZE);
	busy = 2;
	assert_int_equal(zero(PAGE - 1, PAGE, true), PAGE);
	assert_int_equal(zeroings, 3);
	check_zeroes(SIZE, PAGE - 1, 2 * PAGE - 1);
	busy = 2;
	assert_int_equal(discard(PAGE - 1, PAGE), PAGE);
	assert_int_equal(punches, 3);
	/* for ever: zeroes are written, a discard fails */
	fill(SIZE);
	busy = UINT32_MAX;
	assert_int_equal(discard(PAGE - 1, PAGE), -EBUSY);
	check_zeroes(SIZE, 0, 0);
	assert_int_equal(zero(PAGE - 1, PAGE, false), PAGE);
	check_zeroes(SIZE, PAGE - 1, 2 * PAGE - 1);
	busy = 0;
	end();
}

/* A file that was truncated does not grow again. */
static void beyond_the_end(void **state)
{
	static const struct {
		uint64_t off;
		uint32_t bytes;
	} t[] = { { SIZE, 1 }, { SIZE - 1, 2 }, { 0, SIZE + 1 }, { UINT64_MAX, 1 }, { UINT64_MAX - 10, 20 },
		  { INT64_MAX, 1 }, { 0, RANGE } };
	static struct store_extents x;

	(void)state;
	begin("");
	fill(SIZE);
	for (unsigned what = 0; what <= CAN_BOTH; what++) {
		can = what;
		for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
			assert_int_equal(zero(t[i].off, t[i].bytes, i % 2), -EINVAL);
			assert_int_equal(discard(t[i].off, t[i].bytes), -EINVAL);
			assert_int_equal(extents(t[i].off, t[i].bytes, &x), -EINVAL);
		}
		check_zeroes(SIZE, 0, 0);
		assert_int_equal(zero(SIZE, 0, false), 0);
		assert_int_equal(discard(0, 0), 0);
		assert_int_equal(extents(SIZE, 0, &x), 0);
		assert_int_equal(x.n, 0);
	}
	end();
}

/* A long range is changed in strides, each a job of its own. */
static void strides(void **state)
{
	struct worker_stats before, after;

	(void)state;
	begin("");
	pretends = true;
	if (ftruncate(g.file.fd, 3ll * RANGE)) { /* without holes it has no room for it */
		end();
		skip();
	}
	worker_pool_stats(g.reactor.loop.workers, &before);
	assert_int_equal(change_as(STORE_ZERO, STORE_STRIDE / 2 + 17, RANGE, true, STORE_FILE_SYNC), RANGE);
	worker_pool_stats(g.reactor.loop.workers, &after);
	assert_int_equal(after.jobs - before.jobs, RANGE / STORE_STRIDE + 1);
	assert_int_equal(zeroings, RANGE / STORE_STRIDE + 1);
	assert_true(in_order);
	assert_int_equal(covered, STORE_STRIDE / 2 + 17 + (uint64_t)RANGE);
	assert_int_equal(longest, STORE_STRIDE);
	assert_int_equal(syncs, 1); /* at the end */
	assert_int_equal(discard(2ull * RANGE, RANGE), RANGE);
	assert_int_equal(punches, RANGE / STORE_STRIDE);
	assert_true(in_order);
	assert_int_equal(store_rig_counter(&g, store_worker), 2); /* operations, not jobs */
	end();
}

static void durable(void **state)
{
	(void)state;
	begin("");
	fill(SIZE);
	assert_int_equal(zero(1, 100, false), 100);
	assert_int_equal(discard(1, 100), can_punch_now() ? 100 : -EOPNOTSUPP);
	assert_int_equal(syncs + data_syncs, 0);
	for (int op = STORE_DISCARD; op <= STORE_ZERO; op++) {
		for (unsigned what = 0; what <= CAN_BOTH; what++) {
			struct store_io io = { .op = (enum store_op)op, .bytes = 100, .stable = STORE_FILE_SYNC };

			can = what;
			if (op == STORE_DISCARD && !can_punch_now())
				continue;
			syncs = data_syncs = g.lost = 0;
			assert_int_equal(run_op(&io), 100);
			assert_int_equal(syncs, 1);
			assert_int_equal(change_as((enum store_op)op, 0, 100, false, STORE_DATA_SYNC), 100);
			assert_int_equal(data_syncs, 1);
			sync_err = EIO;
			assert_int_equal(run_op(&io), -EIO);
			assert_true(io.sync_failed);
			assert_int_equal(g.lost, 1);
			sync_err = 0;
		}
	}
	/* what was not done is not synced */
	can = 0;
	refusal = ENOSPC;
	syncs = 0;
	assert_int_equal(change_as(STORE_ZERO, 0, 100, false, STORE_FILE_SYNC), -ENOSPC);
	assert_int_equal(syncs, 0);
	end();
}

static void check_cover(const struct store_extents *x, int32_t res)
{
	uint64_t sum = 0;

	assert_true(x->n && x->n <= STORE_EXTENTS_MAX);
	for (unsigned i = 0; i < x->n; i++) {
		assert_true(x->v[i].length);
		sum += x->v[i].length;
	}
	assert_int_equal(res, sum);
}

static void find_extents(void **state)
{
	uint32_t big = 16 * PAGE, page;
	static struct store_extents x;
	int32_t res;

	(void)state;
	begin("");
	if (!tells_holes || !can_punch_now()) {
		end();
		skip();
	}
	/* hole, data of up to a page, hole, and data up to the end */
	assert_int_equal(ftruncate(g.file.fd, 4 * big), 0);
	assert_int_equal(pwrite(g.file.fd, "x", 1, big), 1);
	assert_int_equal(pwrite(g.file.fd, "x", 1, 4 * big - 1), 1);
	res = extents(0, 4 * big, &x);
	assert_int_equal(res, 4 * big);
	check_cover(&x, res);
	assert_int_equal(x.n, 4);
	assert_int_equal(x.v[0].kind, STORE_HOLE_EXTENT);
	assert_int_equal(x.v[0].length, big);
	assert_int_equal(x.v[1].kind, STORE_DATA_EXTENT);
	page = (uint32_t)x.v[1].length;
	assert_true(page >= 512 && page <= PAGE);
	assert_int_equal(x.v[2].kind, STORE_HOLE_EXTENT);
	assert_int_equal(x.v[3].kind, STORE_DATA_EXTENT);
	/* a range that begins and ends anywhere: only what is in it */
	assert_int_equal(extents(big + 7, big, &x), big);
	assert_int_equal(x.n, 2);
	assert_int_equal(x.v[0].kind, STORE_DATA_EXTENT);
	assert_int_equal(x.v[0].length, page - 7);
	assert_int_equal(x.v[1].kind, STORE_HOLE_EXTENT);
	assert_int_equal(x.v[1].length, big - page + 7);
	/* what is punched is a hole, what is written is none */
	assert_int_equal(discard(0, 4 * big), 4 * big);
	assert_int_equal(extents(0, 4 * big, &x), 4 * big);
	assert_int_equal(x.n, 1);
	assert_int_equal(x.v[0].kind, STORE_HOLE_EXTENT);
	move_bytes(STORE_WRITE, 3, (uint8_t[]){ 1 }, 1);
	assert_int_equal(extents(3, 1, &x), 1);
	assert_int_equal(x.n, 1);
	assert_int_equal(x.v[0].kind, STORE_DATA_EXTENT);
	end();
}

static void unknown_extents(void **state)
{
	static struct store_extents x;

	(void)state;
	begin("");
	assert_int_equal(ftruncate(g.file.fd, SIZE), 0);
	seek_err = EINVAL;
	assert_int_equal(extents(1, SIZE - 1, &x), SIZE - 1);
	assert_int_equal(x.n, 1);
	assert_int_equal(x.v[0].kind, STORE_DATA_EXTENT);
	seek_err = 0;
	data_vanishes = true; /* data begins here; then it is a hole that begins here */
	assert_int_equal(extents(1, SIZE - 1, &x), SIZE - 1);
	assert_int_equal(x.n, 1);
	assert_int_equal(x.v[0].kind, STORE_DATA_EXTENT);
	end();
}

static void many_extents(void **state)
{
	uint32_t big = 16 * PAGE, n = STORE_EXTENTS_MAX;
	static struct store_extents x;
	int32_t res;

	(void)state;
	begin("");
	if (!tells_holes) {
		end();
		skip();
	}
	assert_int_equal(ftruncate(g.file.fd, 2 * n * big), 0);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(pwrite(g.file.fd, "x", 1, 2 * i * big), 1);
	res = extents(0, 2 * n * big, &x);
	check_cover(&x, res);
	assert_int_equal(x.n, STORE_EXTENTS_MAX);
	assert_int_equal(res, n * big); /* the rest takes another call */
	assert_int_equal(extents((uint64_t)res, (uint32_t)(2 * n * big) - (uint32_t)res, &x), n * big);
	end();
}

static void capabilities(void **state)
{
	struct stat before, after;
	struct store_caps caps;
	struct store_file other = { .fd = -1 };

	(void)state;
	begin("");
	fill(SIZE);
	for (unsigned what = 0; what <= CAN_BOTH; what++) {
		can = what;
		assert_int_equal(fstat(g.file.fd, &before), 0);
		forget_calls();
		store_caps_find(&g.file, &caps);
		assert_int_equal(fstat(g.file.fd, &after), 0);
		assert_int_equal(after.st_size, before.st_size);
		assert_int_equal(after.st_blocks, before.st_blocks);
		assert_int_equal(zeroings, 0); /* it would allocate space */
		assert_int_equal(caps.discard, can_punch_now());
		assert_int_equal(caps.fast_zero, caps.discard);
		assert_true(caps.discard || !caps.fast_keep);
		assert_true(can_really & CAN_ZERO || !caps.fast_keep);
		assert_true(tells_holes || !caps.extents);
	}
	check_zeroes(SIZE, 0, 0);
	g.file.writable = false; /* as it was opened */
	store_caps_find(&g.file, &caps);
	assert_false(caps.discard || caps.fast_zero || caps.fast_keep);
	assert_int_equal(ftruncate(g.file.fd, 0), 0);
	assert_int_equal(ftruncate(g.file.fd, SIZE), 0);
	store_caps_find(&g.file, &caps);
	assert_true(tells_holes || !caps.extents);
	store_caps_find(&other, &caps);
	assert_false(caps.discard || caps.fast_zero || caps.fast_keep || caps.extents);
	end();
}

static void sizes(void **state)
{
	uint64_t size = 4711, dev, ino;
	struct stat st;

	(void)state;
	begin("");
	assert_int_equal(size_of(), 0);
	fill(SIZE);
	assert_int_equal(size_of(), SIZE);
	assert_true(store_file_block(g.file.fd) >= 512 && store_file_block(g.file.fd) <= PAGE);
	assert_int_equal(store_file_block(-1), 512);
	assert_int_equal(store_file_identify(g.file.fd, &dev, &ino), 0);
	assert_int_equal(fstat(g.file.fd, &st), 0);
	assert_true(dev == st.st_dev && ino == st.st_ino);
	assert_int_equal(store_file_identify(-1, &dev, &ino), -EBADF);
	assert_int_equal(store_file_size(STDIN_FILENO + 1000, &size), -EBADF);
	size = (uint64_t)open(g.dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(store_file_size((int)size, &(uint64_t){ 0 }), -EINVAL);
	close((int)size);
	end();
}

/* A store that stores nothing answers at once. */
static void null_store(void **state)
{
	struct store_io io = { .op = STORE_ZERO, .bytes = SIZE };
	static struct store_extents x;

	(void)state;
	begin("store=null");
	for (int op = STORE_DISCARD; op <= STORE_EXTENTS; op++) {
		io.op = (enum store_op)op;
		io.extents = &x;
		store_rig_begin(&g, &io);
		assert_true(store_rig_is_done(&io));
		assert_int_equal(io.res, SIZE);
	}
	assert_int_equal(x.n, 1);
	assert_int_equal(x.v[0].length, SIZE);
	assert_int_equal(x.v[0].kind, STORE_DATA_EXTENT);
	assert_int_equal(punches + zeroings, 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_random),
		cmocka_unit_test(without_extents),
		cmocka_unit_test(in_memory),
		cmocka_unit_test(fallbacks),
		cmocka_unit_test(neighbours),
		cmocka_unit_test(other_errors),
		cmocka_unit_test(busy_pages),
		cmocka_unit_test(beyond_the_end),
		cmocka_unit_test(strides),
		cmocka_unit_test(durable),
		cmocka_unit_test(find_extents),
		cmocka_unit_test(unknown_extents),
		cmocka_unit_test(many_extents),
		cmocka_unit_test(capabilities),
		cmocka_unit_test(sizes),
		cmocka_unit_test(null_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
