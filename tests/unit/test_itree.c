/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_itree.c - the interval tree against a list that is searched from end to end
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "itree.h"

#define NODES 300
#define SPACE 1000u

static struct rr_itree tree;
static struct rr_inode nodes[NODES];
static bool in[NODES];

/* ---- what has to be true of the tree -------------------------------------------------------- */

struct seen {
	unsigned n, depth;
	uintptr_t last;
};

static uintptr_t check(const struct treap_node *node, unsigned depth, struct seen *seen)
{
	const struct rr_inode *n = node ? container_of(node, const struct rr_inode, tree) : NULL;
	uintptr_t max, right;

	if (!n)
		return 0;
	max = check(node->left, depth + 1, seen);
	max = MAX(max, n->end);
	assert_true(n->start >= seen->last);
	seen->last = n->start;
	seen->n++;
	seen->depth = MAX(seen->depth, depth + 1);
	right = check(node->right, depth + 1, seen);
	max = MAX(max, right);
	assert_int_equal(n->max, max);
	return max;
}

static unsigned check_all(unsigned n)
{
	struct seen seen = { 0 };

	check(tree.nodes.root, 0, &seen);
	assert_int_equal(seen.n, n);
	return seen.depth;
}

/* ---- the same, the slow way ----------------------------------------------------------------- */

static bool covers(const struct rr_inode *n, const uintptr_t range[2])
{
	return n->start <= range[0] && n->end >= range[1];
}

static void compare(uintptr_t start, uintptr_t end)
{
	uintptr_t range[2] = { start, end }, first = UINTPTR_MAX, first_cover = UINTPTR_MAX;
	unsigned overlaps = 0, visited = 0;
	uintptr_t last = 0;

	for (int i = 0; i < NODES; i++) {
		if (!in[i] || nodes[i].start >= end || nodes[i].end <= start)
			continue;
		overlaps++;
		first = MIN(first, nodes[i].start);
		if (covers(&nodes[i], range))
			first_cover = MIN(first_cover, nodes[i].start);
	}
	rr_itree_for_each(n, &tree, start, end) {
		assert_true(n->start >= last);
		last = n->start;
		if (!visited++)
			assert_int_equal(n->start, first);
		if (covers(n, range) && first_cover != UINTPTR_MAX) {
			assert_int_equal(n->start, first_cover);
			first_cover = UINTPTR_MAX;
		}
	}
	assert_int_equal(first_cover, UINTPTR_MAX);
	assert_int_equal(visited, overlaps); /* each of them, and no other */
}

static void random_model(void **state)
{
	unsigned n = 0;

	(void)state;
	rr_itree_init(&tree);
	memset(in, 0, sizeof(in));
	srandom(7);
	for (int round = 0; round < 20000; round++) {
		unsigned i = (unsigned)random() % NODES;
		uintptr_t at = (uintptr_t)random() % SPACE;

		if (in[i]) {
			rr_itree_remove(&tree, &nodes[i]);
			n--;
		} else {
			nodes[i].start = at;
			nodes[i].end = at + 1 + (uintptr_t)random() % (round % 2 ? 8 : SPACE / 4);
			rr_itree_insert(&tree, &nodes[i]);
			n++;
		}
		in[i] = !in[i];
		at = (uintptr_t)random() % SPACE;
		compare(at, at + 1 + (uintptr_t)random() % 50);
		if (round % 16 == 0)
			check_all(n);
	}
	compare(0, UINTPTR_MAX);
}

/* Those that come in order are the rule, and are not to make a list of it. */
static void in_order(void **state)
{
	static struct rr_inode many[20000];

	(void)state;
	rr_itree_init(&tree);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
		many[i].start = i * 4096;
		many[i].end = many[i].start + 4096;
		rr_itree_insert(&tree, &many[i]);
	}
	assert_in_range(check_all(ARRAY_SIZE(many)), 14, 60);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
		assert_ptr_equal(rr_itree_next(&tree, NULL, 0, UINTPTR_MAX), &many[i]);
		rr_itree_remove(&tree, &many[i]);
	}
	assert_null(tree.nodes.root);
}

static void same_start(void **state)
{
	(void)state;
	rr_itree_init(&tree);
	for (uintptr_t i = 0; i < 10; i++) {
		nodes[i].start = 100;
		nodes[i].end = 110 + i;
		rr_itree_insert(&tree, &nodes[i]);
	}
	check_all(10);
	for (uintptr_t i = 0; i < 10; i++) {
		rr_itree_remove(&tree, &nodes[9 - i]);
		check_all((unsigned)(9 - i));
		assert_int_equal(!!rr_itree_next(&tree, NULL, 118 - i, 200), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_model),
		cmocka_unit_test(in_order),
		cmocka_unit_test(same_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
