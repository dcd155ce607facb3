/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_device.c - stores on block devices
 *
 * On loop devices with two sizes of blocks, which takes root; or on $DEVICE_TO_OVERWRITE. tests/interop/block_devices.sh
 * runs this in the virtual machine, on devices of other kinds as well.
 */
#include "test_store_space.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <linux/fs.h>

#include "fs_limits.h"
#include "loop_dev.h"
#include "store_sim.h"

#define BYTES (8u << 20)

static const char *path; /* of the device */
static unsigned block;
static struct loop_dev loop;
static int holder = -1; /* a descriptor that has the device exclusively, while the store has another one */

/* ---- a device that refuses to discard ---- */

static int discard_err;

int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	if (request == BLKDISCARD && discard_err) {
		errno = discard_err;
		return -1;
	}
	return __real_ioctl(fd, request, arg);
}

static int open_device(int flags)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | flags);

	assert_true(fd >= 0);
	return fd;
}

static bool limit_of(const char *name)
{
	uint64_t n = 0;

	return store_device_limit((dev_t)g.file.dev, name, &n) && n;
}

static void begin_held(const char *options, bool by_another)
{
	uint64_t dev, ino;

	store_rig_create(&g, options);
	reactor = pthread_self();
	can = CAN_BOTH;
	pretends = false;
	busy = 0;
	store_close(&g.file);
	holder = by_another ? open_device(O_EXCL) : -1;
	fs_limits_find_file(holder >= 0 ? holder : loop.fd, &g.exp.backing.limits);
	store_adopt(&g.exp.backing, open_device(by_another ? 0 : O_EXCL), true, &g.file);
	assert_int_equal(store_file_identify(g.file.fd, &dev, &ino), 0);
	g.file.dev = g.exp.backing.dev = dev;
	g.file.ino = g.exp.backing.ino = ino;
	can_really = limit_of("discard_max_bytes") ? CAN_BOTH : CAN_ZERO;
	forget_calls();
}

static void begin(const char *options)
{
	begin_held(options, false);
}

static void end(void)
{
	store_rig_destroy(&g);
	if (holder >= 0)
		close(holder);
	holder = -1;
}

static uint64_t size_of(void)
{
	uint64_t size;

	assert_int_equal(store_file_size(g.file.fd, &size), 0);
	return size;
}

static void facts(void **state)
{
	uint64_t dev, ino, dev2, ino2, size;
	struct stat st;
	char node[192];
	int fd;

	(void)state;
	begin("");
	assert_int_equal(fstat(g.file.fd, &st), 0);
	assert_true(size_of() >= BYTES);
	assert_int_equal(ioctl(g.file.fd, BLKGETSIZE64, &size), 0);
	assert_int_equal(size, size_of());
	assert_int_equal(store_file_block(g.file.fd), block);
	/* not those of the file system with its name, and the same by another name */
	assert_int_equal(store_file_identify(g.file.fd, &dev, &ino), 0);
	assert_int_equal(dev, st.st_rdev);
	snprintf(node, sizeof(node), "%s/node", g.dir.path);
	assert_int_equal(mknod(node, S_IFBLK | 0600, st.st_rdev), 0);
	fd = open(node, O_PATH | O_CLOEXEC);
	assert_int_equal(store_file_identify(fd, &dev2, &ino2), 0);
	assert_true(dev2 == dev && ino2 == ino);
	close(fd);
	/* devtmpfs, which has the name, is in memory; the device is not */
	assert_true(g.exp.backing.limits.answers_at_once);
	assert_false(g.exp.backing.limits.in_memory);
	assert_int_equal(g.exp.backing.limits.file_max_bytes, INT64_MAX);
	assert_true(g.file.at_once && !g.file.in_memory);
	assert_false(g.file.sets_atime || g.file.no_nowait_read);
	assert_true(fcntl(g.file.fd, F_GETFL) & O_NOATIME);
	end();
}

static void capabilities(void **state)
{
	static uint8_t mem[2 * PAGE];
	static struct store_extents x;
	struct store_caps caps;

	(void)state;
	begin("");
	memset(mem, 'x', sizeof(mem));
	move_bytes(STORE_WRITE, 0, mem, sizeof(mem));
	store_caps_find(&g.file, &caps);
	assert_int_equal(punches + zeroings, 0);
	assert_int_equal(caps.discard, limit_of("discard_max_bytes"));
	assert_int_equal(caps.fast_zero, limit_of("write_zeroes_max_bytes"));
	assert_int_equal(caps.fast_keep, caps.fast_zero);
	assert_false(caps.extents);
	assert_int_equal(extents(block, 100 * block, &x), 100 * block);
	assert_int_equal(x.n, 1);
	assert_int_equal(x.v[0].kind, STORE_DATA_EXTENT);
	assert_int_equal(discard(0, PAGE), caps.discard ? (int)PAGE : -EOPNOTSUPP);
	g.file.writable = false;
	store_caps_find(&g.file, &caps);
	assert_false(caps.discard || caps.fast_zero || caps.fast_keep);
	g.file.writable = true;
	end();
}

static void beyond_the_end(void **state)
{
	uint64_t size;
	static struct store_extents x;

	(void)state;
	begin("");
	size = size_of();
	assert_int_equal(zero(size - PAGE, 2 * PAGE, false), -EINVAL);
	assert_int_equal(zero(size, PAGE, true), -EINVAL);
	assert_int_equal(discard(size - PAGE, 2 * PAGE), -EINVAL);
	assert_int_equal(extents(size - PAGE, 2 * PAGE, &x), -EINVAL);
	assert_int_equal(zero(size - PAGE, PAGE, false), PAGE);
	assert_int_equal(size_of(), size);
	end();
}

static const char *const ways[] = { "", "read=direct,write=direct", "read=auto,write=cached", "write=direct" };

#ifdef HAVE_AIO
#define WAYS ARRAY_SIZE(ways)
#else
#define WAYS 1
#endif

/* Ranges of bytes, and of blocks, as clients have them */
static void at_random(void **state)
{
	(void)state;
	for (unsigned i = 0; i < WAYS * 8; i++) {
		begin_held(ways[i / 8], i & 1);
		can = i & 2 ? CAN_BOTH : 0;
		model_run(5 * PAGE + (block == 512 ? 512 : 0), i & 4 ? block : 1, 60);
		end();
	}
}

/* A device takes I/O that is aligned to its blocks, and no longer than its queue does. */
static void direct(void **state)
{
	uint8_t *mem = NULL;
	uint64_t kib;

	(void)state;
#ifndef HAVE_AIO
	print_message("built without libaio\n");
	skip();
#endif
	begin("read=direct,write=direct");
	assert_int_equal(posix_memalign((void **)&mem, PAGE, 2 * PAGE), 0);
	memset(mem, 'x', 2 * PAGE);
	move_bytes(STORE_WRITE, 0, mem, 2 * PAGE);
	assert_int_equal(g.file.direct.state, STORE_DIRECT_OPEN);
	assert_true(fcntl(g.file.direct.fd, F_GETFL) & O_DIRECT);
	assert_int_equal(g.file.direct.read_align, block);
	assert_true(g.file.direct.mem_align <= block);
	assert_int_equal(g.file.direct.write_align, PAGE);
	assert_true(store_device_limit((dev_t)g.file.dev, "max_sectors_kb", &kib));
	assert_int_equal(g.file.direct.part_bytes, MAX(kib * 1024 / 65536 * 65536, 65536));
	memset(mem, 0, 2 * PAGE);
	move_bytes(STORE_READ, block, mem, 2 * PAGE - block);
	assert_int_equal(mem[0], 'x');
	assert_int_equal(mem[2 * PAGE - block - 1], 'x');
	assert_int_equal(mem[2 * PAGE - block], 0);
	/* submitted without a worker, unless this kind of device cannot tell whether it would block */
	assert_int_equal(store_rig_counter(&g, store_aio) + store_rig_counter(&g, aio_again), 1);
	free(mem);
	end();
}

static void syncs(void **state)
{
	struct store_io io = { .op = STORE_SYNC };
	uint8_t x = 'x';

	(void)state;
	begin("");
	move_bytes(STORE_WRITE, 0, &x, 1);
	assert_int_equal(run_op(&io), 0);
	io.bytes = PAGE;
	move_bytes(STORE_WRITE, 0, &x, 1);
	assert_int_equal(run_op(&io), 0);
	assert_int_equal(change_as(STORE_ZERO, 0, PAGE, false, STORE_DATA_SYNC), PAGE);
	assert_int_equal(g.lost, 0);
	end();
}

/* A simulated disk on a device forgets as one on a file does, and leaves its size. */
static void power_cut(void **state)
{
	static uint8_t mem[2 * PAGE], seen[2 * PAGE];
	uint64_t size;
	size_t bytes;

	(void)state;
	begin("");
	memset(mem, 'x', sizeof(mem));
	move_bytes(STORE_WRITE, 0, mem, sizeof(mem));
	size = size_of();
	store_destroy(g.store);
	assert_int_equal(data_conf_option(&g.exp.conf.data, "store", "sim:rate=1G:volatile", (char[64]){ 0 }, 64), 0);
	assert_int_equal(store_create(&store_sim_ops, &g.env, &g.exp.backing, &g.store), 0);
	memset(seen, 'y', sizeof(seen));
	move_bytes(STORE_WRITE, 0, seen, PAGE);
	assert_int_equal(zero(PAGE, PAGE, false), PAGE);
	move_bytes(STORE_READ, 0, seen, sizeof(seen));
	assert_int_equal(seen[0], 'y');
	assert_int_equal(seen[PAGE], 0);
	assert_int_equal(store_sim_cut(path, &bytes), 0);
	assert_int_equal(bytes, 2 * PAGE);
	move_bytes(STORE_READ, 0, seen, sizeof(seen));
	assert_memory_equal(seen, mem, sizeof(mem));
	assert_int_equal(size_of(), size);
	end();
}

/* The kernel does not drop dirty pages by a descriptor that does not have the device exclusively, if another has. */
static void held_by_another(void **state)
{
	static uint8_t mem[3 * PAGE];
	uint8_t *seen = model_mem(), want;
	unsigned refused = 0;
	int fd;

	(void)state;
	begin_held("", true);
	fd = open_device(O_DIRECT);
	for (unsigned i = 0; i < 3; i++) {
		memset(mem, 'x', sizeof(mem));
		move_bytes(STORE_WRITE, 0, mem, sizeof(mem));
		if (i < 2)
			assert_int_equal(zero(block, PAGE, i), PAGE);
		else
			assert_int_equal(discard(block, PAGE), limit_of("discard_max_bytes") ? (int)PAGE : -EOPNOTSUPP);
		refused += busy_seen;
		assert_int_equal(pread(fd, seen, 3 * PAGE, 0), 3 * PAGE);
		move_bytes(STORE_READ, 0, mem, sizeof(mem));
		for (uint32_t k = 0; k < sizeof(mem); k++) {
			want = k >= block && k < block + PAGE ? 0 : 'x';
			if ((mem[k] != want || seen[k] != want) && (i < 2 || want))
				fail_msg("%u: byte %u is %02x, directly %02x", i, k, mem[k], seen[k]);
		}
	}
	if (!refused)
		print_message("this kernel drops dirty pages of others\n");
	close(fd);
	free(seen);
	end();
}

static void no_discard(void **state)
{
	static uint8_t mem[2 * PAGE], seen[2 * PAGE];

	(void)state;
	begin("");
	memset(mem, 'x', sizeof(mem));
	move_bytes(STORE_WRITE, 0, mem, sizeof(mem));
	discard_err = EOPNOTSUPP;
	assert_int_equal(discard(0, PAGE), -EOPNOTSUPP);
	discard_err = ENOTTY;
	assert_int_equal(discard(0, PAGE), -EOPNOTSUPP);
	discard_err = EIO;
	assert_int_equal(discard(0, PAGE), -EIO);
	move_bytes(STORE_READ, 0, seen, sizeof(seen));
	assert_memory_equal(seen, mem, sizeof(mem));
	assert_int_equal(zero(0, PAGE, false), PAGE); /* is another command */
	assert_int_equal(discard(1, block - 1), block - 1); /* nothing to do */
	discard_err = 0;
	end();
}

static int test_device(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts),	  cmocka_unit_test(capabilities),
		cmocka_unit_test(beyond_the_end), cmocka_unit_test(at_random),
		cmocka_unit_test(direct),	  cmocka_unit_test(syncs),
		cmocka_unit_test(power_cut),	  cmocka_unit_test(no_discard),
		cmocka_unit_test(held_by_another),
	};

	print_message("%s, blocks of %u\n", path, block);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Return: 0; 1: a test failed; 77: no such device here */
static int run_on_loop(unsigned bytes)
{
	struct tmp_dir dir;
	int err, rc = 77;

	tmp_dir_create(&dir);
	tmp_dir_write(&dir, "image", "");
	err = truncate(tmp_dir_path(&dir, "image"), BYTES) ? -errno : loop_dev_create(&loop, tmp_dir_path(&dir, "image"), bytes);
	block = bytes;
	path = loop.path;
	if (!err) {
		rc = test_device();
		loop_dev_destroy(&loop);
	} else {
		printf("SKIP: no loop device with blocks of %u: %s\n", bytes, strerror(-err));
	}
	tmp_dir_destroy(&dir);
	return rc;
}

int main(void)
{
	int a, b, n;

	path = getenv("DEVICE_TO_OVERWRITE");
	if (path) {
		loop.fd = open(path, O_RDWR | O_CLOEXEC);
		if (loop.fd < 0 || ioctl(loop.fd, BLKSSZGET, &n)) {
			printf("SKIP: %s: %s\n", path, strerror(errno));
			return 77;
		}
		block = (unsigned)n;
		return test_device();
	}
	a = run_on_loop(512);
	b = run_on_loop(4096);
	return a == 77 ? b : b == 77 ? a : a || b;
}
