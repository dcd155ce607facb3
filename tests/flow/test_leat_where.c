/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_where.c - where the time goes: what a leatd says of it, over both transports
 *
 * The export has overlap: what goes by chunks goes in pieces of 4 KiB.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "leat_admin.h"
#include "leat_flow.h"

LOG_DEFINE("test_leat_where");

#define BYTES (1u << 20)
#define GRAIN 4096u
#define TRIES 100000u /* until what has been asked for has happened */

static struct leat_flow flow;
static char buf[BYTES], buf2[BYTES];

static void write_all(struct leat *m)
{
	struct leat_file *f;

	assert_int_equal(leat_open(m, "where", O_RDWR | O_CREAT, 0600, &f), 0);
	assert_int_equal(leat_pwrite(f, buf, sizeof(buf), 0), sizeof(buf));
	assert_int_equal(leat_close(f), 0);
}

static void read_all(struct leat *m)
{
	struct leat_file *f;

	assert_int_equal(leat_open(m, "where", O_RDONLY, 0, &f), 0);
	assert_int_equal(leat_pread(f, buf2, sizeof(buf2), 0), sizeof(buf2));
	assert_int_equal(leat_close(f), 0);
	assert_memory_equal(buf, buf2, sizeof(buf));
}

static struct leat_where *ask(struct leat *m)
{
	struct leat_where *w;

	assert_int_equal(leat_server_where(m, &w), 0);
	return w;
}

/* A request is over when its answer is out, which is when we have it, or a little later. */
static struct leat_where *ask_after(struct leat *m, const struct leat_where *before, unsigned reads,
				    unsigned writes)
{
	for (unsigned i = 0; i < TRIES; i++) {
		struct leat_where *w = ask(m);

		if (w->read->requests - before->read->requests >= reads &&
		    w->write->requests - before->write->requests >= writes)
			return w;
		leat_where_free(w);
	}
	fail_msg("not %u reads and %u writes were looked at", reads, writes);
	return NULL;
}

static uint64_t sum(const struct leat_where_state *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->nbuckets; i++) {
		assert_true(s->buckets[i].count > 0);
		assert_true(!i || s->buckets[i].ns > s->buckets[i - 1].ns);
		n += s->buckets[i].count;
	}
	return n;
}

static uint64_t disk_ns(const struct leat_where_kind *k)
{
	return k->ns[LEAT_WHERE_DISK] + k->ns[LEAT_WHERE_BOTH];
}

static uint64_t net_ns(const struct leat_where_kind *k)
{
	return k->ns[LEAT_WHERE_NET] + k->ns[LEAT_WHERE_BOTH];
}

static void sums(void **state)
{
	static const char *const names[] = { "NEW",	     "IDENTIFYING", "ADMITTING", "PULLING",
					     "DUPCHECK", "RUNNING",	"MOVING",	 "REPLYING" };
	struct leat *m = leat_flow_mount(flow.local_url, NULL);
	struct leat_where *a = ask(m), *b;

	(void)state;
	write_all(m);
	read_all(m);
	b = ask_after(m, a, 1, 1);
	assert_true(a->instance[0] || a->instance[1]);
	assert_memory_equal(a->instance, b->instance, sizeof(a->instance));
	assert_true(b->read->bytes - a->read->bytes >= BYTES);
	assert_true(b->write->bytes - a->write->bytes >= BYTES);
	assert_true(disk_ns(b->read) > disk_ns(a->read));
	assert_true(net_ns(b->read) > net_ns(a->read));
	assert_true(disk_ns(b->write) > disk_ns(a->write));
	assert_true(net_ns(b->write) > net_ns(a->write));
	assert_int_equal(b->other->bytes, 0);
	assert_int_equal(b->nstates, ARRAY_SIZE(names));
	for (unsigned i = 0; i < b->nstates; i++)
		assert_string_equal(b->states[i]->name, names[i]);
	assert_true(sum(b->states[6]) >= sum(a->states[6]) + 2);
	leat_where_free(a);
	leat_where_free(b);
	leat_umount(m);
}

/* Only data of files counts as bytes, not the path of a symbolic link. */
static void a_path_is_no_data(void **state)
{
	struct leat *m = leat_flow_mount(flow.tcp_url, NULL);
	struct leat_where *a = ask(m), *b;
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 256; i++) {
		(void)snprintf(name, sizeof(name), "link%u", i);
		assert_int_equal(leat_symlink(m, "to/somewhere/else", name), 0);
	}
	b = ask_after(m, a, 0, 0);
	assert_true(b->other->requests > a->other->requests);
	assert_int_equal(b->other->bytes, 0);
	leat_where_free(a);
	leat_where_free(b);
	leat_umount(m);
}

static void no_transfer_apart_on_a_stream(void **state)
{
	struct leat_where *a, *b;
	struct leat_trace *t;
	struct leat *m;

	(void)state;
	leat_flow_skip_rdma("it is about a stream");
	m = leat_flow_mount(flow.tcp_url, NULL);
	write_all(m);
	a = ask(m);
	for (unsigned i = 0; i < 256; i++)
		read_all(m);
	b = ask_after(m, a, 1, 0);
	assert_true(b->read->bytes > a->read->bytes);
	assert_int_equal(net_ns(b->read), net_ns(a->read));
	assert_true(b->read->ns[LEAT_WHERE_FINISH] > a->read->ns[LEAT_WHERE_FINISH]);
	leat_where_free(a);
	leat_where_free(b);

	if (!leat_server_pieces(m, &t)) /* of a test before */
		leat_trace_free(t);
	read_all(m);
	write_all(m);
	assert_int_equal(leat_server_pieces(m, &t), -EAGAIN);
	leat_umount(m);
}

/* One request in several is sampled; with alternating kinds the samples must not all be of one kind. */
static void turns(void **state)
{
	struct leat *m = leat_flow_mount(flow.tcp_url, NULL);
	struct leat_where *a = ask(m), *b;
	struct leat_file *f;

	(void)state;
	assert_int_equal(leat_open(m, "turns", O_RDWR | O_CREAT, 0600, &f), 0);
	for (unsigned i = 0; i < 256; i++) {
		assert_int_equal(leat_pwrite(f, buf, 100, 0), 100);
		assert_int_equal(leat_pread(f, buf2, 100, 0), 100);
	}
	assert_int_equal(leat_close(f), 0);
	b = ask_after(m, a, 4, 4);
	leat_where_free(a);
	leat_where_free(b);
	leat_umount(m);
}

static struct leat_trace *trace(struct leat *m)
{
	struct leat_trace *t = NULL;
	int rc = -EAGAIN;

	for (unsigned i = 0; i < TRIES && rc == -EAGAIN; i++)
		rc = leat_server_pieces(m, &t);
	assert_int_equal(rc, 0);
	return t;
}

static void check(const struct leat_trace *t, bool is_write)
{
	static bool seen[BYTES / GRAIN];
	size_t n = 0;

	memset(seen, 0, sizeof(seen));
	assert_int_equal(t->is_write, is_write);
	assert_int_equal(t->bytes, BYTES);
	assert_int_equal(t->npieces, ARRAY_SIZE(seen));
	for (size_t i = 0; i < t->npieces; i++) {
		const struct leat_trace_piece *p = t->pieces[i];

		assert_int_equal(p->len, GRAIN);
		assert_int_equal(p->off % GRAIN, 0);
		assert_true(p->off < BYTES && !seen[p->off / GRAIN]);
		seen[p->off / GRAIN] = true;
		n++;
		assert_true(p->disk_begin_ns > 0 && p->disk_begin_ns <= p->disk_end_ns);
		assert_true(p->net_begin_ns > 0 && p->net_begin_ns <= p->net_end_ns);
		assert_true(p->disk_end_ns <= t->total_ns && p->net_end_ns <= t->total_ns);
		if (is_write)
			assert_true(p->net_end_ns <= p->disk_begin_ns);
		else
			assert_true(p->disk_end_ns <= p->net_begin_ns);
	}
	assert_int_equal(n, ARRAY_SIZE(seen));
}

static void pieces(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL);
	struct leat_trace *t;

	(void)state;
	write_all(m);
	if (!leat_server_pieces(m, &t)) /* of whatever was before; and now one is wanted */
		leat_trace_free(t);
	read_all(m);
	t = trace(m);
	check(t, false);
	leat_trace_free(t);
	assert_int_equal(leat_server_pieces(m, &t), -EAGAIN);
	write_all(m);
	t = trace(m);
	check(t, true);
	leat_trace_free(t);
	leat_umount(m);
}

static int setup(void **state)
{
	(void)state;
	setenv("LEAT_TEST_OVERLAP", "streams", 0); /* tests/lib/variant.c */
	leat_flow_create(&flow);
	leat_flow_fill(buf, sizeof(buf), 5);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_flow_destroy(&flow);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums),
		cmocka_unit_test(a_path_is_no_data),
		cmocka_unit_test(no_transfer_apart_on_a_stream),
		cmocka_unit_test(turns),
		cmocka_unit_test(pieces),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
