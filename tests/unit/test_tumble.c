/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tumble.c - the random tester finds what it is for: a file in memory that lies in one way at a
 * time, and one that is honest
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "tests/tumble/tumble.h"

#define FILE_MAX 65536u
#define WAITING_MAX 16u

enum lie {
	HONEST,
	DROPS_A_BYTE,              /* of a write, the last */
	WRITES_BESIDE,             /* one byte further on */
	LOSES_A_WRITE,
	LOSES_A_TRUNCATE,
	LOSES_AN_APPEND,           /* all that is behind the old end */
	NO_HOLES,                  /* what was cut off comes back when the file grows */
	STALE_READ,                /* as it was before the last write */
	READS_BESIDE,
	SHORT_READ,
	SHORT_WRITE,
	SPILLS,                    /* a byte behind the caller's memory */
	UNREAD,                    /* says that it has read, and has not */
	WRONG_SIZE,
	FAILS_TO_SYNC,
	LOSS_UNTOLD,               /* falls back to what was synced, like a killed server */
	LOSS_TOLD,                 /* and says so, at the next fsync or close: not a lie */
	CLOSES_EARLY,
};

struct liar {
	struct back back;
	enum lie lie;
	unsigned period, countdown; /* one of @period operations of the right kind is a lie */
	uint8_t bytes[FILE_MAX + 1], before[FILE_MAX], stable[FILE_MAX];
	uint64_t size, stable_size;
	struct back_io *waiting[WAITING_MAX];
	unsigned waiting_count, turn;
	bool lost, left;           /* left: closed while something was waiting */
};

static struct liar *liar(struct back *b)
{
	return container_of(b, struct liar, back);
}

/* Is this the time? */
static bool lies(struct liar *l, enum lie lie)
{
	if (l->lie != lie || --l->countdown)
		return false;
	l->countdown = l->period;
	return true;
}

static void crash(struct liar *l)
{
	memcpy(l->bytes, l->stable, FILE_MAX);
	l->size = l->stable_size;
}

static void gather(const struct back_io *io, uint8_t *to)
{
	for (int i = 0; i < io->iovcnt; i++) {
		memcpy(to, io->iov[i].iov_base, io->iov[i].iov_len);
		to += io->iov[i].iov_len;
	}
}

static void scatter(const struct back_io *io, const uint8_t *from, uint64_t len)
{
	for (int i = 0; i < io->iovcnt && len; i++) {
		size_t n = MIN(len, io->iov[i].iov_len);

		memcpy(io->iov[i].iov_base, from, n);
		from += n;
		len -= n;
	}
}

static int64_t write_it(struct liar *l, const struct back_io *io)
{
	static uint8_t data[FILE_MAX];
	uint64_t off = io->op->off, len = io->op->len, end = off + len;

	gather(io, data);
	memcpy(l->before, l->bytes, FILE_MAX);
	if (lies(l, LOSES_A_WRITE))
		return (int64_t)len;
	if (lies(l, SHORT_WRITE))
		return (int64_t)len - 1;
	if (len > 1 && lies(l, DROPS_A_BYTE))
		len--;
	if (off + len < FILE_MAX && lies(l, WRITES_BESIDE))
		off++;
	if (end > l->size && off < l->size && lies(l, LOSES_AN_APPEND))
		len = l->size - off;
	memcpy(l->bytes + off, data, len);
	l->size = MAX(l->size, off + len);
	return (int64_t)io->op->len;
}

static int64_t read_it(struct liar *l, const struct back_io *io)
{
	uint64_t off = io->op->off, len = off < l->size ? MIN(io->op->len, l->size - off) : 0;
	const uint8_t *from = l->bytes;

	if (len && lies(l, SHORT_READ))
		return (int64_t)len - 1;
	if (len && lies(l, UNREAD))
		return (int64_t)len;
	if (len > 8 && off + len < l->size && lies(l, READS_BESIDE))
		off++;
	/* only where that makes a difference */
	if (memcmp(l->before + off, from + off, len) != 0 && lies(l, STALE_READ))
		from = l->before;
	scatter(io, from + off, len);
	if (len == io->op->len && io->iovcnt == 1 && lies(l, SPILLS))
		((uint8_t *)io->iov[0].iov_base)[len] = 0;
	return (int64_t)len;
}

static int64_t truncate_it(struct liar *l, uint64_t size)
{
	if (size != l->size && lies(l, LOSES_A_TRUNCATE))
		return 0;
	if (size < l->size && l->lie != NO_HOLES)
		memset(l->bytes + size, 0, l->size - size);
	l->size = size;
	return 0;
}

static int64_t sync_it(struct liar *l)
{
	if (lies(l, FAILS_TO_SYNC))
		return -ENOSPC;
	if (l->lost)
		return -EIO;
	memcpy(l->stable, l->bytes, FILE_MAX);
	l->stable_size = l->size;
	return 0;
}

static void do_it(struct liar *l, struct back_io *io)
{
	if (io->op->kind == OP_READ && lies(l, LOSS_UNTOLD))
		crash(l);
	switch (io->op->kind) {
	case OP_READ:
		io->result = read_it(l, io);
		break;
	case OP_WRITE:
		io->result = write_it(l, io);
		break;
	case OP_TRUNCATE:
		io->result = truncate_it(l, io->op->len);
		break;
	case OP_STAT:
		io->st.st_mode = S_IFREG | 0644;
		io->st.st_size = (off_t)(l->size + (lies(l, WRONG_SIZE) ? 1 : 0));
		io->result = 0;
		break;
	default:
		/* with its unstable data gone, until the file is opened again */
		if (lies(l, LOSS_TOLD)) {
			crash(l);
			l->lost = true;
		}
		io->result = sync_it(l);
		break;
	}
	io->done = true;
}

static int liar_start(struct back *b, struct back_io *io)
{
	struct liar *l = liar(b);

	assert_true(l->waiting_count < WAITING_MAX);
	l->waiting[l->waiting_count++] = io;
	return 0;
}

/* Any of those that wait, not the first. */
static int liar_wait(struct back *b)
{
	struct liar *l = liar(b);
	unsigned i = l->turn++ * 7 % l->waiting_count;
	struct back_io *io = l->waiting[i];

	l->waiting[i] = l->waiting[--l->waiting_count];
	do_it(l, io);
	return 0;
}

static int liar_open(struct back *b, int flags)
{
	struct liar *l = liar(b);

	l->lost = false;
	if (flags & O_TRUNC) {
		truncate_it(l, 0);
		l->stable_size = 0;
	}
	return 0;
}

static int liar_close(struct back *b)
{
	struct liar *l = liar(b);

	if (l->waiting_count && lies(l, CLOSES_EARLY))
		return 0;
	while (l->waiting_count)
		liar_wait(b);
	return (int)sync_it(l);
}

static int liar_unlink(struct back *b)
{
	(void)b;
	return 0;
}

static int liar_alloc(struct back *b, size_t bytes, void **ret)
{
	(void)b;
	*ret = malloc(bytes);
	return *ret ? 0 : -ENOMEM;
}

static void liar_free(struct back *b, void *mem)
{
	(void)b;
	free(mem);
}

static const char *liar_why(struct back *b)
{
	(void)b;
	return "a lie";
}

static bool liar_is_loss(struct back *b, int err)
{
	return err == -EIO && liar(b)->lost;
}

static uint64_t liar_reconnects(struct back *b)
{
	(void)b;
	return 0;
}

static void liar_destroy(struct back *b)
{
	free(liar(b));
}

static const struct back_ops liar_ops = {
	.name = "liar",
	.async = true,
	.open = liar_open,
	.close = liar_close,
	.start = liar_start,
	.wait = liar_wait,
	.unlink = liar_unlink,
	.alloc = liar_alloc,
	.free = liar_free,
	.why = liar_why,
	.is_loss = liar_is_loss,
	.reconnects = liar_reconnects,
	.destroy = liar_destroy,
};

static const struct tumble_opts usual = {
	.seed = 1,
	.count = 3000,
	.size_max = FILE_MAX,
	.len_max = 20000,
	.depth = 1,
	.check_every = 200,
	.direct_align = 1,
};

/* One run. What was told is in @ret_told, of @room bytes. */
static int run(enum lie lie, const struct tumble_opts *o, const struct oplog *replay, char *told,
	       size_t room, struct tumble_sum *ret_sum)
{
	struct liar *l = calloc(1, sizeof(*l));
	FILE *out = fmemopen(told, room, "w");
	int rc;

	assert_non_null(l);
	assert_non_null(out);
	l->back.ops = &liar_ops;
	l->back.can = HOW_PATH | HOW_VECTOR | HOW_SEQ | HOW_POOL | HOW_BUSY;
	l->lie = lie;
	l->period = 20;
	if (lie == LOSS_TOLD || lie == FAILS_TO_SYNC)
		l->period = 3;
	else if (lie == CLOSES_EARLY)
		l->period = 1;
	l->countdown = l->period;
	rc = tumble_file(&l->back, o, replay, out, ret_sum, NULL);
	fclose(out);
	liar_ops.destroy(&l->back);
	return rc;
}

static void honest(void **state)
{
	static char told[16384];
	struct tumble_opts o = usual;
	struct tumble_sum sum;

	(void)state;
	for (o.depth = 1; o.depth <= WAITING_MAX; o.depth *= 4) {
		for (o.seed = 1; o.seed <= 5; o.seed++) {
			int rc = run(HONEST, &o, NULL, told, sizeof(told), &sum);

			if (rc)
				print_error("%s", told);
			assert_int_equal(rc, 0);
			assert_true(sum.ops[OP_READ] > 500 && sum.ops[OP_WRITE] > 500);
			assert_true(sum.ops[OP_TRUNCATE] > 100 && sum.ops[OP_STAT] > 100);
			assert_true(sum.ops[OP_FSYNC] > 10 && sum.ops[OP_REOPEN] > 5);
			assert_int_equal(sum.ops[OP_CHECK], 3000 / 200 + 2);
		}
	}
}

static void lies_are_found(void **state)
{
	static const struct {
		enum lie lie;
		const char *word;  /* in the message */
	} cases[] = {
		{ DROPS_A_BYTE, "" },
		{ WRITES_BESIDE, "" },
		{ LOSES_A_WRITE, "" },
		{ LOSES_A_TRUNCATE, "" },
		{ LOSES_AN_APPEND, "" },
		{ NO_HOLES, "expected" },
		{ STALE_READ, "bytes differ" },
		{ READS_BESIDE, "bytes differ" },
		{ SHORT_READ, "bytes were read instead of" },
		{ SHORT_WRITE, "bytes were written" },
		{ SPILLS, "memory beside" },
		{ UNREAD, "got      5c" },
		{ WRONG_SIZE, "a size of" },
		{ FAILS_TO_SYNC, "No space left" },
		{ LOSS_UNTOLD, "" },
		{ LOSS_TOLD, "Input/output" },
		{ CLOSES_EARLY, "close came back" },
	};
	static char told[16384];
	struct tumble_opts o = usual;
	struct tumble_sum sum;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (o.depth = cases[i].lie == CLOSES_EARLY ? 4 : 1; o.depth <= WAITING_MAX;
		     o.depth *= 4) {
			for (o.seed = 1; o.seed <= 5; o.seed++) {
				int rc = run(cases[i].lie, &o, NULL, told, sizeof(told), &sum);

				if (rc != 1 || !strstr(told, cases[i].word))
					print_error("lie %d, depth %u, seed %d: %d\n%s\n",
						    (int)cases[i].lie, o.depth, (int)o.seed, rc,
						    told);
				assert_int_equal(rc, 1);
				assert_non_null(strstr(told, "WRONG in operation"));
				assert_non_null(strstr(told, cases[i].word));
			}
		}
	}
}

/* Whose bytes are there, and whose should be. */
static void origins_are_told(void **state)
{
	static const struct op ops[] = {
		{ 1, OP_WRITE, 0, 0, 1000 },
		{ 2, OP_WRITE, 0, 100, 500 },
		{ 7, OP_WRITE, 0, 2000, 10 },
	};
	struct oplog log = { .ops = (struct op *)(uintptr_t)ops, .count = 3 };
	uint8_t data[1000], got[2010];
	char told[2000] = "";
	struct model m;
	FILE *out;

	(void)state;
	assert_int_equal(model_init(&m, 4096), 0);
	for (size_t i = 0; i < 3; i++) {
		pattern_fill(data, ops[i].len, rnd_mix(5, ops[i].number), ops[i].off);
		model_write(&m, ops[i].off, data, ops[i].len);
	}
	memcpy(got, m.bytes, sizeof(got));
	pattern_fill(got + 300, 50, rnd_mix(5, 1), 300);
	out = fmemopen(told, sizeof(told), "w");
	model_explain(&m, &log, 5, 0, got, sizeof(got), out);
	fclose(out);
	assert_non_null(strstr(told, "from offset 300 (0x12c) to 349 of a file of 2010"));
	assert_non_null(strstr(told, "as written by: 2 write 100 500"));
	assert_non_null(strstr(told, "as written by: 1 write 0 1000"));
	memcpy(got, m.bytes, sizeof(got));
	memset(got + 2000, 0, 10);
	out = fmemopen(told, sizeof(told), "w");
	model_explain(&m, &log, 5, 0, got, sizeof(got), out);
	fclose(out);
	assert_non_null(strstr(told, "as written by: 7 write 2000 10"));
	assert_non_null(strstr(told, "00, as in a hole"));
	model_fini(&m);
}

static void told_losses_are_mended(void **state)
{
	static char told[16384];
	struct tumble_opts o = usual;
	struct tumble_sum sum;

	(void)state;
	o.restarts = true;
	/* one at a time: here the data is gone at once, and a read beside the fsync would see that */
	for (o.seed = 1; o.seed <= 5; o.seed++) {
		int rc = run(LOSS_TOLD, &o, NULL, told, sizeof(told), &sum);

		if (rc)
			print_error("%s", told);
		assert_int_equal(rc, 0);
		assert_true(sum.losses > 5);
		assert_int_equal(run(LOSS_UNTOLD, &o, NULL, told, sizeof(told), &sum), 1);
	}
}

/* The log of a failure fails again, also without lines that do not matter. */
static void logs_are_replayed(void **state)
{
	static char told[16384], again[16384];
	char path[] = "/tmp/tumble-log.XXXXXX", why[200], *first, *second;
	struct tumble_opts o = usual;
	struct tumble_sum sum;
	struct oplog log;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	o.log = path;
	o.seed = 77;
	assert_int_equal(run(NO_HOLES, &o, NULL, told, sizeof(told), &sum), 1);
	o = usual;
	assert_int_equal(oplog_load(path, &o, &log, why, sizeof(why)), 0);
	assert_int_equal(o.seed, 77);
	assert_int_equal(run(HONEST, &o, &log, again, sizeof(again), &sum), 0);
	assert_int_equal(run(NO_HOLES, &o, &log, again, sizeof(again), &sum), 1);
	first = strchr(told, '\n');
	second = strchr(again, '\n');
	assert_non_null(first);
	assert_memory_equal(told, again, (size_t)(first - told));
	assert_int_equal(first - told, second - again);
	/* stats and syncs have nothing to do with it */
	for (size_t i = 0; i < log.count;) {
		if (log.ops[i].kind == OP_STAT || log.ops[i].kind == OP_FSYNC)
			log.ops[i] = log.ops[--log.count];
		else
			i++;
	}
	assert_int_equal(run(HONEST, &o, &log, again, sizeof(again), &sum), 0);
	oplog_fini(&log);
	unlink(path);
}

static void bad_logs(void **state)
{
	static const char *const bad[] = {
		"",
		"no log\n",
		"seed 1 size 0 depth 1 align 1\n",
		"seed 1 size 9999999999 depth 1 align 1\n",
		"seed 1 size 100 depth 0 align 1\n",
		"seed 1 size 100 depth 65 align 1\n",
		"seed 1 size 100 depth 1 align 3\n",
		"seed 1 size 100 depth 1 align 1\n1 write 0\n",
		"seed 1 size 100 depth 1 align 1\n1 wrote 0 1\n",
		"seed 1 size 100 depth 1 align 1\n1 write 99 2\n",
		"seed 1 size 100 depth 1 align 1\n1 read 18446744073709551615 2\n",
		"seed 1 size 100 depth 1 align 1\n1 read 1 0\n",
		"seed 1 size 100 depth 1 align 1\n1 truncate 0 101\n",
		"seed 1 size 100 depth 1 align 1\n1 read 1 1 quickly\n",
	};
	char path[] = "/tmp/tumble-log.XXXXXX", why[200];
	int fd = mkstemp(path);
	struct oplog log;

	(void)state;
	assert_true(fd >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct tumble_opts o = usual;

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, bad[i], strlen(bad[i]), 0), strlen(bad[i]));
		assert_int_equal(oplog_load(path, &o, &log, why, sizeof(why)), -EINVAL);
	}
	close(fd);
	unlink(path);
	assert_int_equal(oplog_load(path, &(struct tumble_opts){ 0 }, &log, why, sizeof(why)),
			 -ENOENT);
}

static void urls_are_split(void **state)
{
	static const char *const bad[] = { "tcp://h",	 "tcp://h/",
					   "tcp://h/x/", "tcp://h/x/?conns=2",
					   "/x/y",	 "" };
	char *dir, *name;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(back_leat_split(bad[i], &dir, &name), -EINVAL);
	assert_int_equal(back_leat_split("tcp://h:1/demo/f?conns=2", &dir, &name), 0);
	assert_string_equal(dir, "tcp://h:1/demo?conns=2");
	assert_string_equal(name, "f");
	free(dir);
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(honest),
		cmocka_unit_test(lies_are_found),
		cmocka_unit_test(origins_are_told),
		cmocka_unit_test(told_losses_are_mended),
		cmocka_unit_test(logs_are_replayed),
		cmocka_unit_test(bad_logs),
		cmocka_unit_test(urls_are_split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
