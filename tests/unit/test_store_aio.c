/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_aio.c - direct reads and writes of every alignment, in any file system, beside others on the same file
 */
#include "test_store_aio.h"

#ifdef HAVE_AIO

/* ---- the rig ---- */

static const uint32_t offs[] = { 0, 1, 511, 512, 513, 4095, 4096, 4097, 5 * BLOCK, SIZE - 1 };

static const uint32_t lens[] = { 1,	  511,		 512,	      513, 4095, 4096, 4097, 2 * BLOCK,
				 3 * BLOCK, 3 * BLOCK + 1, 4 * BLOCK - 1 };

/* ---- alignment ---- */

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

/* ---- what the kernel may say ---- */

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
	assert_true(atomic_load(&g.exp.backing.said_cached));
	submits = 0;
	fill(mem, ROOM, 5);
	assert_int_equal(write_at(0, BLOCK, mem, STORE_DATA_SYNC), BLOCK);
	wrote(0, BLOCK, mem);
	assert_int_equal(read_at(0, BLOCK, mem + BLOCK), BLOCK);
	assert_int_equal(submits, 0);
	check_file();
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

/* ---- many at once ---- */

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

/* after a reload: the store of before still has operations, and the file is open in both */
static void two_stores_one_file(void **state)
{
	static struct store_io ios[6];
	static struct iovec iovs[6];
	struct store *first = g.store, *second;

	(void)state;
	assert_int_equal(store_create(g.ops, &g.env, &g.exp.backing, &second), 0);
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
	assert_int_equal(store_create(g.ops, &g.env, &g.exp.backing, &s), 0);
	store_destroy(s);
	assert_int_equal(watches, 0);
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
	assert_int_equal(store_create(g.ops, &g.env, &g.exp.backing, &dying), 0);
	assert_int_equal(store_submit(dying, &io), 0);
	store_rig_wait(&g, &io);
	assert_int_equal(io.res, BLOCK);
}

/* The first one opens the direct descriptor; the others wait until it is open. */
static void many_wait_for_the_open(void **state)
{
	enum { N = 5 };
	struct iovec iov[N];
	struct store_io io[N];

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		iov[i] = (struct iovec){ mem + i * BLOCK, BLOCK };
		io[i] = (struct store_io){ .op = STORE_READ, .iov = &iov[i], .iovcnt = 1, .off = i * BLOCK, .bytes = BLOCK,
					   .size_hint = SIZE };
		store_rig_begin(&g, &io[i]);
		assert_int_equal(g.file.direct.state, STORE_DIRECT_OPENING);
	}
	for (unsigned i = 0; i < N; i++) {
		store_rig_wait(&g, &io[i]);
		assert_int_equal(io[i].res, BLOCK);
	}
	assert_memory_equal(mem, shadow, N * BLOCK);
}

int main(void)
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
		direct_test(many_wait_for_the_open),
		cmocka_unit_test(writes_are_by_workers),
		cmocka_unit_test(a_slow_file_system_is_for_workers),
	};

	return tmp_dir_has_direct() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#endif
