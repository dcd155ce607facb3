/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_aio_kernel.c - results of the kernel for direct I/O that the reactor submits
 */
#include "test_store_aio.h"

#ifdef HAVE_AIO

/* ---- alignment ---- */

/* With room on both sides of the memory a read is neither copied nor done by a worker. */
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

/* A vector of aligned pieces of memory, more than one submission takes. */
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
	/* the second of three parts fails: the first one is good */
	part_ends[1] = -EIO;
	store_rig_begin(&g, &io);
	store_rig_wait(&g, &io);
	assert_int_equal(io.res, 16 * EACH);
	iov[7].iov_len--; /* an unaligned piece */
	iov[6].iov_len++;
	store_rig_begin(&g, &io);
	store_rig_wait(&g, &io);
	assert_int_equal(io.res, PIECES * EACH);
	assert_memory_equal(iov[8].iov_base, shadow + 512 + 8 * EACH, EACH);
}

/* The block layer does not split requests with RWF_NOWAIT. */
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

/* A part fails behind a part that a worker has to repeat: the worker repeats both, and then syncs. */
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

/* ---- growing and shrinking ---- */

static void cut_short(void)
{
	assert_int_equal(truncate(g.path, 2 * BLOCK + 5), 0);
}

/* The file is truncated after the request was checked. */
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

/* ---- errors of the kernel ---- */

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
		/* a stable write that fails before its sync loses no other data */
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

/* The sync of this write reports the loss of earlier data, such as that of the page cache. */
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

/* Units of a request that must complete independently are submitted one by one. */
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
	for (unsigned i = 0; i < 3; i++) /* the check does not fill the page cache */
		assert_int_equal(read_at(0, BLOCK, mem), BLOCK);
	assert_int_equal(store_rig_counter(&g, store_aio), aio + 3);
	assert_int_equal(store_rig_counter(&g, store_now), now);
	assert_false(store_direct_resident(g.file.fd, 0, BLOCK));
	assert_int_equal(pread(g.file.fd, mem, BLOCK, 0), BLOCK);
	memset(mem, 0, BLOCK);
	assert_int_equal(read_at(0, BLOCK, mem), BLOCK);
	assert_memory_equal(mem, shadow, BLOCK);
	assert_int_equal(store_rig_counter(&g, store_now), now + 1);
	assert_int_equal(read_at(0, 2 * BLOCK, mem), 2 * BLOCK); /* half of it is cached: direct I/O */
	assert_memory_equal(mem, shadow, 2 * BLOCK);
	assert_int_equal(store_rig_counter(&g, store_aio), aio + 4);
	(void)destroy(NULL);
}

/* ---- a file system without direct I/O ---- */

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
	assert_true(atomic_load(&g.exp.backing.said_cached));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
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

	return tmp_dir_has_direct() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#endif
