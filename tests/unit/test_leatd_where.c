/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leatd_where.c - what a server says of where its time goes, be it a leatd or not
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/admin/leatd_where.c"

static char word_other[] = "other", word_read[] = "READ", word_trim[] = "TRIM", word_disk[] = "disk",
	    word_tape[] = "tape", word_net[] = "network", longest[] = "1234567890123456789012345678901";

static void by_name(void **state)
{
	ctl_part parts[] = { { word_tape, 5 }, { word_net, 7 }, { word_disk, UINT64_MAX } };
	ctl_kind kinds[] = { { word_trim, 1, 2, { 3, parts } },
			     { word_read, 3, UINT64_MAX, { 3, parts } },
			     { word_other, 9, 0, { 0, NULL } } };
	ctl_where where = { .instance = { 1, [8] = 2 }, .kinds = { 3, kinds } };
	struct leat_where *w;

	(void)state;
	assert_int_equal(take_where(&where, &w), 0);
	assert_true(w->instance[0] == UINT64_C(1) << 56 && w->instance[1] == UINT64_C(2) << 56);
	assert_int_equal(w->read->requests, 3);
	assert_true(w->read->bytes == UINT64_MAX);
	assert_int_equal(w->read->ns[LEAT_WHERE_NET], 7);
	assert_true(w->read->ns[LEAT_WHERE_DISK] == UINT64_MAX);
	assert_int_equal(w->read->ns[LEAT_WHERE_BOTH], 0);
	assert_int_equal(w->other->requests, 9);
	assert_int_equal(w->write->requests, 0);
	assert_int_equal(w->nstates, 0);
	leat_where_free(w);
}

static void histograms(void **state)
{
	ctl_bucket some[] = { { 0, 1 }, { 40, 2 }, { 65, 3 }, { HIST_BUCKETS - 1, UINT64_MAX } };
	ctl_state states[CTL_STATES_MAX] = { 0 };
	ctl_where where = { .states = { CTL_STATES_MAX, states } };
	struct leat_where *w;

	(void)state;
	for (size_t i = 0; i < CTL_STATES_MAX; i++)
		states[i] = (ctl_state){ longest, { i ? 4 : 0, some } };
	assert_int_equal(take_where(&where, &w), 0);
	assert_int_equal(w->nstates, CTL_STATES_MAX);
	assert_int_equal(w->states[0]->nbuckets, 0);
	for (size_t i = 1; i < CTL_STATES_MAX; i++) {
		assert_string_equal(w->states[i]->name, longest);
		assert_int_equal(w->states[i]->nbuckets, 4);
		assert_int_equal(w->states[i]->buckets[1].ns, 40);
		assert_int_equal(w->states[i]->buckets[2].ns, 66);
		assert_true(w->states[i]->buckets[3].count == UINT64_MAX);
	}
	for (size_t i = 0; i < HIST_BUCKETS; i++) /* the lower bound of a bucket is in this bucket */
		assert_int_equal(hist_index(hist_floor(i)), i);
	leat_where_free(w);
}

static void nonsense(void **state)
{
	ctl_bucket bad[][2] = { { { 7, 1 }, { HIST_BUCKETS, 1 } }, { { 7, 1 }, { UINT32_MAX, 1 } },
				{ { 7, 1 }, { 7, 1 } },		   { { 7, 1 }, { 6, 1 } },
				{ { 7, 0 }, { 8, 1 } } };
	ctl_state s = { longest, { 2, NULL } };
	ctl_where where = { .states = { 1, &s } };
	struct leat_where *w = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		s.buckets.buckets_val = bad[i];
		assert_int_equal(take_where(&where, &w), -EPROTO);
	}
	assert_null(w);
}

static void traces(void **state)
{
	ctl_piece pieces[] = { { 4096, 100, 1, 2, 3, UINT32_MAX }, { 0, 4096, 5, 6, 0, 0 } };
	ctl_trace from = { 7, TRUE, 4196, 99, { 2, pieces } };
	struct leat_trace *t = NULL;

	(void)state;
	assert_int_equal(take_trace(&from, &t), 0);
	assert_true(t->xid == 7 && t->is_write && t->bytes == 4196 && t->total_ns == 99);
	assert_int_equal(t->npieces, 2);
	assert_int_equal(t->pieces[0]->off, 4096);
	assert_int_equal(t->pieces[0]->net_end_ns, UINT32_MAX);
	assert_int_equal(t->pieces[1]->disk_end_ns, 6);
	leat_trace_free(t);
	from.pieces.pieces_len = 0;
	assert_int_equal(take_trace(&from, &t), 0);
	assert_int_equal(t->npieces, 0);
	leat_trace_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_name),
		cmocka_unit_test(histograms),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(traces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
