/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_io.c - reads and writes are cut, answered in any order, and joined
 *
 * A file in memory answers READ and WRITE, short whenever `shorten` says so, and fails at an
 * offset if told to. Results are compared with what pread and pwrite would have given.
 */
#include "base/clock.h"
#include "fake_rpc.h"
#include "io.h"
#include "leat_count.h"

#define FILE_MAX 200000

static uint8_t content[FILE_MAX];
static size_t size;
static unsigned shorten;    /* 0: never; else every so manieth answer is short */
static unsigned jukebox;    /* the number of replies that are JUKEBOX */
static uint64_t bad_from;   /* offsets from here on fail with NFS3ERR_IO */
static unsigned answers;
static uint32_t seed = 1;

static uint32_t dice(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed >> 8;
}

static unsigned pick_any(unsigned count)
{
	return dice() % count;
}

/* Bytes between a flat buffer and a list of parts. */
static void scatter(const struct iovec *iov, int cnt, void *flat, size_t len, bool in)
{
	uint8_t *p = flat;

	for (int i = 0; i < cnt && len; i++) {
		size_t n = MIN(len, iov[i].iov_len);

		if (in)
			memcpy(p, iov[i].iov_base, n);
		else
			memcpy(iov[i].iov_base, p, n);
		p += n;
		len -= n;
	}
	assert_int_equal(len, 0);
}

static uint32_t maybe_short(uint32_t n)
{
	if (shorten && n > 1 && ++answers % shorten == 0)
		return 1 + dice() % (n - 1);
	return n;
}

static void answer_read(struct rpcrdma_call *call)
{
	const READ3args *a = call->args;
	READ3res *r = call->res;
	uint32_t n = a->offset < size ? (uint32_t)MIN((uint64_t)a->count, size - a->offset) : 0;
	size_t room = 0;

	for (int i = 0; i < call->sinkcnt; i++)
		room += call->sink[i].iov_len;
	assert_int_equal(room, a->count);
	assert_true(a->count <= 4096 && call->sinkcnt <= 16);
	if (a->offset + a->count > bad_from) {
		r->status = NFS3ERR_IO;
		return;
	}
	n = maybe_short(n);
	scatter(call->sink, call->sinkcnt, content + (n ? a->offset : 0), n, false);
	r->status = NFS3_OK;
	r->READ3res_u.resok.count = r->READ3res_u.resok.data.length = n;
	r->READ3res_u.resok.eof = a->offset + n >= size;
	call->payload_bytes = n;
}

static void answer_write(struct rpcrdma_call *call)
{
	const WRITE3args *a = call->args;
	WRITE3res *r = call->res;
	uint32_t n = a->count;

	assert_int_equal(a->data.length, a->count);
	assert_true(a->count && a->count <= 4096 && a->offset + a->count <= FILE_MAX);
	if (a->offset + a->count > bad_from) {
		r->status = NFS3ERR_NOSPC;
		return;
	}
	n = maybe_short(n);
	scatter(a->data.iov, a->data.iovcnt, content + a->offset, n, true);
	size = MAX(size, a->offset + n);
	r->status = NFS3_OK;
	r->WRITE3res_u.resok.count = n;
	r->WRITE3res_u.resok.committed = a->stable;
}

static int answer(struct rpcrdma_call *call)
{
	if (jukebox) {
		jukebox--;
		*(nfsstat3 *)call->res = NFS3ERR_JUKEBOX;
		return 0;
	}
	if (call->proc == NFSPROC3_READ) {
		answer_read(call);
	} else if (call->proc == NFSPROC3_WRITE) {
		answer_write(call);
	} else {
		assert_int_equal(call->proc, NFSPROC3_COMMIT);
		((COMMIT3res *)call->res)->status = NFS3_OK;
	}
	return 0;
}

static struct leat *m;
static struct leat_file *f;

static int setup(void **state)
{
	(void)state;
	m = fake_mount(1);
	f = fake_open(m, O_RDWR);
	fake.answer = answer;
	size = 0;
	shorten = jukebox = answers = 0;
	bad_from = UINT64_MAX;
	for (size_t i = 0; i < FILE_MAX; i++)
		content[i] = (uint8_t)dice();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_umount(m);
	return 0;
}

/* Every length and offset around the piece size, read from a file of @bytes. */
static void compare_reads(size_t bytes)
{
	static const size_t lens[] = { 0, 1, 4095, 4096, 4097, 8191, 8192, 12289, 50000 };
	static const size_t offs[] = { 0, 1, 4095, 4096, 4097, 10000, 19999, 20000, 20001 };
	static uint8_t buf[50000 + 1];

	size = bytes;
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(offs); j++) {
			size_t want = offs[j] < size ? MIN(lens[i], size - offs[j]) : 0;

			memset(buf, 0xee, sizeof(buf));
			assert_int_equal(leat_pread(f, buf, lens[i], offs[j]), want);
			assert_memory_equal(buf, content + offs[j], want);
			assert_int_equal(buf[lens[i]], 0xee);
		}
	}
}

static void reads(void **state)
{
	(void)state;
	compare_reads(20000);
	assert_true(fake.most_waiting > 4);
	fake.pick = pick_any;
	compare_reads(20000);
	compare_reads(4096);
	compare_reads(0);
}

static void short_reads(void **state)
{
	(void)state;
	fake.pick = pick_any;
	for (shorten = 1; shorten < 5; shorten++)
		compare_reads(20000);
}

static void writes(void **state)
{
	static uint8_t copy[FILE_MAX], buf[60000];

	(void)state;
	fake.pick = pick_any;
	memcpy(copy, content, sizeof(copy));
	for (unsigned round = 0; round < 200; round++) {
		size_t len = dice() % sizeof(buf), off = dice() % (FILE_MAX - sizeof(buf));

		shorten = round % 4;
		for (size_t i = 0; i < len; i++)
			buf[i] = (uint8_t)dice();
		memcpy(copy + off, buf, len);
		assert_int_equal(leat_pwrite(f, buf, len, off), len);
		assert_memory_equal(copy, content, FILE_MAX);
	}
}

/* Vectors with empty parts, and with more parts than one call may have. */
static void vectors(void **state)
{
	static uint8_t mem[40000];
	struct iovec iov[64];

	(void)state;
	fake.pick = pick_any;
	size = 30000;
	for (unsigned round = 0; round < 200; round++) {
		int cnt = 1 + (int)(dice() % ARRAY_SIZE(iov));
		size_t total = 0, off = dice() % 31000, want;

		shorten = round % 5;
		for (int i = 0; i < cnt; i++) {
			iov[i].iov_base = mem + total;
			iov[i].iov_len = dice() % 3 ? dice() % 600 : 0;
			total += iov[i].iov_len;
		}
		want = off < size ? MIN(total, size - off) : 0;
		memset(mem, 0, sizeof(mem));
		assert_int_equal(leat_preadv(f, iov, cnt, off), want);
		if (want)
			assert_memory_equal(mem, content + off, want);
		if (off + total < size) {
			for (size_t i = 0; i < total; i++)
				mem[i] = (uint8_t)dice();
			assert_int_equal(leat_pwritev(f, iov, cnt, off), total);
			assert_memory_equal(mem, content + off, total);
		}
	}
}

/* A read fails if anything below the end of file fails; a write counts what is before it. */
static void errors(void **state)
{
	static uint8_t buf[40000];

	(void)state;
	fake.pick = pick_any;
	size = 100000;
	bad_from = 20000;
	for (unsigned round = 0; round < 50; round++) {
		assert_int_equal(leat_pread(f, buf, sizeof(buf), 0), -EIO);
		assert_int_equal(leat_pread(f, buf, 4096, 8192), 4096);
		assert_int_equal(leat_pwrite(f, buf, sizeof(buf), 0), 16384);
		assert_int_equal(leat_pwrite(f, buf, 100, 20000), -ENOSPC);
	}
	assert_non_null(strstr(leat_error(m), "/file"));
	assert_non_null(strstr(leat_error(m), "NOSPC"));
	assert_non_null(strstr(leat_error(m), "tcp://fake"));
	/* beyond the end of file nothing is of interest, not even a failure */
	size = 6000;
	bad_from = 12288;
	assert_int_equal(leat_pread(f, buf, sizeof(buf), 0), 6000);
}

static void refused(void **state)
{
	struct leat_file *reader = fake_open(m, O_RDONLY), *writer = fake_open(m, O_WRONLY);
	struct iovec iov[2] = { { NULL, SIZE_MAX }, { NULL, 1 } };
	char c = 0;

	(void)state;
	assert_int_equal(leat_pwrite(reader, &c, 1, 0), -EBADF);
	assert_int_equal(leat_pread(writer, &c, 1, 0), -EBADF);
	assert_int_equal(leat_pread(NULL, &c, 1, 0), -EINVAL);
	assert_int_equal(leat_pread(f, &c, 1, (uint64_t)INT64_MAX + 1), -EINVAL);
	assert_int_equal(leat_pread(f, &c, 2, INT64_MAX - 1), -EINVAL);
	assert_int_equal(leat_pwrite(f, &c, 2, INT64_MAX - 1), -EFBIG);
	assert_int_equal(leat_preadv(f, iov, 2, 0), -EINVAL);
	assert_int_equal(leat_preadv(f, iov, -1, 0), -EINVAL);
	assert_int_equal(leat_preadv(f, NULL, 0, 0), 0);
	assert_int_equal(fake.calls, 0);
	fake.refuse_calls = -ENOMEM;
	assert_int_equal(leat_pread(f, &c, 1, 0), -ENOMEM);
	assert_int_equal(leat_pwrite(f, &c, 1, 0), -ENOMEM);
	fake.refuse_calls = 0;
}

static void not_now(void **state)
{
	uint8_t buf[100];

	(void)state;
	size = 100;
	jukebox = 3;
	assert_int_equal(leat_pread(f, buf, 100, 0), 100);
	assert_memory_equal(buf, content, 100);
	assert_int_equal(fake.timers_fired, 3);
	assert_int_equal(fake.last_delay_ns, 400000000);
}

static uint64_t fake_now, waits[64]; /* milliseconds */
static unsigned waited;

static uint64_t fake_clock(void)
{
	return fake_now;
}

/* An answer to a call that was sent when a wait was over. */
static int answer_late(struct rpcrdma_call *call)
{
	if (fake.timers_fired > waited) {
		assert_true(waited < ARRAY_SIZE(waits));
		waits[waited++] = fake.last_delay_ns / NS_PER_MS;
		fake_now += fake.last_delay_ns;
	}
	return answer(call);
}

static void start_late(bool soft, unsigned answers_not_now)
{
	m->clock = fake_clock;
	m->url.soft = soft;
	m->timeo_ms = 3000;
	fake.answer = answer_late;
	fake.timers_fired = waited = 0;
	size = 100;
	jukebox = answers_not_now;
}

/* For ever, but not too often. */
static void not_now_for_long(void **state)
{
	static const uint64_t first[] = { 100, 200, 400, 800, 1600, 3200, 5000, 5000 };
	uint64_t retries;
	uint8_t buf[100];

	(void)state;
	start_late(false, 60);
	assert_int_equal(leat_pread(f, buf, 100, 0), 100);
	assert_int_equal(waited, 60);
	for (unsigned i = 0; i < waited; i++)
		assert_int_equal(waits[i], i < ARRAY_SIZE(first) ? first[i] : 5000);
	assert_int_equal(leat_stat_value(m, "jukebox_retries", &retries), 0);
	assert_int_equal(retries, 60);
}

/* For timeo, and to its end. */
static void not_now_and_soft(void **state)
{
	static const uint64_t all[] = { 100, 200, 400, 800, 1500 };
	uint8_t buf[100];

	(void)state;
	for (unsigned more = 0; more < 2; more++) {
		start_late(true, 5 + more);
		assert_int_equal(leat_pread(f, buf, 100, 0), more ? -EAGAIN : 100);
		assert_int_equal(waited, ARRAY_SIZE(all));
		for (unsigned i = 0; i < waited; i++)
			assert_int_equal(waits[i], all[i]);
		assert_int_equal(jukebox, 0);
	}
	assert_string_equal(leat_error(m), "tcp://fake:2049/export/file: READ at offset 0: "
			    "Resource temporarily unavailable (NFS3ERR_JUKEBOX)");
}

static void window_and_spread(void **state)
{
	static uint8_t buf[FILE_MAX];

	(void)state;
	leat_umount(m);
	m = fake_mount(4);
	f = fake_open(m, O_RDWR);
	fake.answer = answer;
	m->url.credits = 2;
	size = FILE_MAX;
	assert_int_equal(leat_pread(f, buf, FILE_MAX, 0), FILE_MAX);
	assert_memory_equal(buf, content, FILE_MAX);
	assert_int_equal(fake.most_waiting, 8);
	for (unsigned i = 0; i < 4; i++)
		assert_true(fake.by_clnt[i] >= fake.calls / 4);
}

/* ---- callbacks ---- */

static void callbacks(void **state)
{
	struct count c = { 0 };
	struct leat_cb cb = { count_fn, &c, count_free };
	char byte;

	(void)state;
	size = 1;
	assert_int_equal(leat_aio_pread(f, &byte, 1, 0, cb), 0);
	assert_int_equal(c.fn, 0);
	assert_true(leat_poll(leat_session(m), -1) > 0);
	assert_true(c.fn == 1 && c.free == 1 && c.result == 1);

	/* nothing to send: still not from inside the call */
	c = (struct count){ 0 };
	assert_int_equal(leat_aio_pread(f, &byte, 0, 0, cb), 0);
	assert_int_equal(c.fn, 0);
	assert_true(leat_poll(leat_session(m), 0) > 0);
	assert_true(c.fn == 1 && c.free == 1 && c.result == 0);

	/* refused at once: free only */
	c = (struct count){ 0 };
	assert_int_equal(leat_aio_pread(f, &byte, 1, UINT64_MAX, cb), -EINVAL);
	assert_true(c.fn == 0 && c.free == 1);
	assert_int_equal(leat_poll(leat_session(m), 0), 0);
}

static void wait_inside(void *arg, int64_t result)
{
	char byte;

	assert_int_equal(result, 1);
	assert_int_equal(leat_pread(f, &byte, 1, 0), -EDEADLK);
	assert_int_equal(leat_read(f, &byte, 1), -EDEADLK);
	assert_int_equal(leat_write(f, &byte, 1), -EDEADLK);
	assert_int_equal(leat_lseek(f, 0, SEEK_SET), -EDEADLK);
	assert_int_equal(leat_lseek(f, 0, SEEK_END), -EDEADLK);
	assert_int_equal(leat_poll(leat_session(m), 0), -EDEADLK);
	(*(unsigned *)arg)++;
}

static void no_waiting_inside(void **state)
{
	unsigned ran = 0;
	char byte;

	(void)state;
	size = 1;
	(void)alarm(20); /* a deadlock is the end of this test */
	assert_int_equal(leat_aio_pread(f, &byte, 1, 0,
					(struct leat_cb){ wait_inside, &ran, NULL }), 0);
	while (!ran)
		assert_true(leat_poll(leat_session(m), -1) > 0);
	assert_int_equal(leat_pread(f, &byte, 1, 0), 1);

	/* the callback runs while this thread waits inside leat_read(), which owns the position */
	ran = 0;
	assert_int_equal(leat_lseek(f, 0, SEEK_SET), 0);
	assert_int_equal(leat_aio_pread(f, &byte, 1, 0,
					(struct leat_cb){ wait_inside, &ran, NULL }), 0);
	assert_int_equal(leat_read(f, &byte, 1), 1);
	while (!ran)
		assert_true(leat_poll(leat_session(m), -1) > 0);
	(void)alarm(0);
	assert_int_equal(leat_lseek(f, 0, SEEK_CUR), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reads, setup, teardown),
		cmocka_unit_test_setup_teardown(short_reads, setup, teardown),
		cmocka_unit_test_setup_teardown(writes, setup, teardown),
		cmocka_unit_test_setup_teardown(vectors, setup, teardown),
		cmocka_unit_test_setup_teardown(errors, setup, teardown),
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
		cmocka_unit_test_setup_teardown(not_now, setup, teardown),
		cmocka_unit_test_setup_teardown(not_now_for_long, setup, teardown),
		cmocka_unit_test_setup_teardown(not_now_and_soft, setup, teardown),
		cmocka_unit_test_setup_teardown(window_and_spread, setup, teardown),
		cmocka_unit_test_setup_teardown(callbacks, setup, teardown),
		cmocka_unit_test_setup_teardown(no_waiting_inside, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
