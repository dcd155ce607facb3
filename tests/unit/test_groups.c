/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_groups.c - users' groups: who waits, how long an answer is good, what is forgotten, what the
 * database of this host says
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "groups.h"

LOG_DEFINE("test_groups");

#define ASKED_MAX 4096

struct ctx {
	struct groups *g;
	struct groups_entry *asked[ASKED_MAX]; /* in their order; NULL: answered */
	unsigned nasked;
};

struct waiter {
	struct groups_wait wait;
	bool ready;
	unsigned told;
};

static void on_ask(void *ctx, struct groups_entry *e)
{
	struct ctx *c = ctx;

	assert_true(c->nasked < ASKED_MAX);
	c->asked[c->nasked++] = e;
}

static const struct groups_ops ops = { .ask = on_ask };

static int setup(void **state)
{
	struct ctx *c = calloc(1, sizeof(*c));

	log_state.level = LOG_LEVEL_ERR;
	assert_int_equal(groups_create(&ops, c, &c->g), 0);
	*state = c;
	return 0;
}

/* of the question number @i: these groups, or that error */
static void answer(struct ctx *c, unsigned i, uint64_t now, int err, uint32_t n, uint32_t first)
{
	struct groups_entry *e = c->asked[i];

	assert_true(i < c->nasked && e);
	c->asked[i] = NULL;
	e->answer.err = err;
	if (!err) {
		e->answer.n = n;
		e->answer.groups = malloc((n ? n : 1) * sizeof(uint32_t));
		assert_non_null(e->answer.groups);
		for (uint32_t k = 0; k < n; k++)
			e->answer.groups[k] = first + k;
	}
	groups_answered(e, now);
}

static int teardown(void **state)
{
	struct ctx *c = *state;

	for (unsigned i = 0; i < c->nasked; i++) {
		if (c->asked[i])
			answer(c, i, 0, -ENOENT, 0, 0);
	}
	assert_int_equal(groups_asking(c->g), 0);
	groups_destroy(c->g);
	free(c);
	return 0;
}

static void on_told(struct groups_wait *w)
{
	container_of(w, struct waiter, wait)->told++;
}

static struct waiter waiter(void)
{
	return (struct waiter){ .wait.fn = on_told };
}

/* what a call of @uid that says it has the group 77 gets; -1: it has to wait */
static int ask(struct ctx *c, uint64_t now, uint32_t uid, struct waiter *w, struct creds *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->claimed = true;
	ret->uid = uid;
	ret->gid = 9;
	ret->ngroups = 1;
	ret->groups[0] = 77;
	if (!w->ready)
		list_init(&w->wait.link);
	w->ready = true;
	if (!groups_of(c->g, now, ret, &w->wait))
		return -1;
	assert_int_equal(ret->uid, uid);
	assert_int_equal(ret->gid, 9);
	return (int)ret->ngroups;
}

static void waits_once(void **state)
{
	struct ctx *c = *state;
	struct waiter a = waiter(), b = waiter(), other = waiter();
	struct creds cr;

	assert_int_equal(ask(c, 1, 1000, &a, &cr), -1);
	assert_int_equal(ask(c, 1, 1000, &b, &cr), -1);
	assert_int_equal(ask(c, 1, 1000, &b, &cr), -1); /* again: it still waits, once */
	assert_int_equal(ask(c, 1, 1001, &other, &cr), -1);
	assert_int_equal(c->nasked, 2); /* of each user once */
	assert_int_equal(a.told + b.told, 0);
	answer(c, 0, 2, 0, 3, 500);
	assert_int_equal(a.told, 1);
	assert_int_equal(b.told, 1);
	assert_int_equal(other.told, 0);
	assert_int_equal(ask(c, 3, 1000, &a, &cr), 3); /* and nothing of what he says */
	assert_int_equal(cr.groups[0], 500);
	assert_int_equal(cr.groups[2], 502);
	assert_int_equal(c->nasked, 2);
	answer(c, 1, 3, -ENOENT, 0, 0); /* nobody here knows him */
	assert_int_equal(other.told, 1);
	assert_int_equal(ask(c, 4, 1001, &other, &cr), 0);
}

static void grows_old(void **state)
{
	struct ctx *c = *state;
	struct waiter w = waiter();
	struct creds cr;

	assert_int_equal(ask(c, 0, 5, &w, &cr), -1);
	answer(c, 0, 0, 0, 1, 500);
	assert_int_equal(ask(c, 60 * NS_PER_S - 1, 5, &w, &cr), 1);
	assert_int_equal(c->nasked, 1);
	/* a little old: used, and asked for, once */
	assert_int_equal(ask(c, 60 * NS_PER_S, 5, &w, &cr), 1);
	assert_int_equal(ask(c, 61 * NS_PER_S, 5, &w, &cr), 1);
	assert_int_equal(c->nasked, 2);
	answer(c, 1, 62 * NS_PER_S, 0, 2, 600);
	assert_int_equal(w.told, 1); /* nobody waited for that one */
	assert_int_equal(ask(c, 63 * NS_PER_S, 5, &w, &cr), 2);
	assert_int_equal(cr.groups[0], 600);
	/* too old: waited for */
	assert_int_equal(ask(c, 662 * NS_PER_S, 5, &w, &cr), -1);
	answer(c, 2, 663 * NS_PER_S, 0, 0, 0);
	assert_int_equal(w.told, 2);
	assert_int_equal(ask(c, 664 * NS_PER_S, 5, &w, &cr), 0); /* taken out of all of them */
}

static void database_fails(void **state)
{
	struct ctx *c = *state;
	struct waiter w = waiter();
	struct creds cr;

	assert_int_equal(ask(c, 0, 5, &w, &cr), -1);
	answer(c, 0, 0, -EIO, 0, 0);
	assert_int_equal(ask(c, 1, 5, &w, &cr), 0); /* not what he says */
	assert_int_equal(c->nasked, 1);
	assert_int_equal(ask(c, 5 * NS_PER_S, 5, &w, &cr), 0);
	answer(c, 1, 6 * NS_PER_S, 0, 2, 500); /* it is back */
	assert_int_equal(ask(c, 7 * NS_PER_S, 5, &w, &cr), 2);
	/* what it said once is good while it says nothing, however long */
	for (unsigned i = 0; i < 3; i++) {
		uint64_t now = (100 + i * 1000) * NS_PER_S;

		(void)ask(c, now, 5, &w, &cr);
		answer(c, 2 + i, now, i == 1 ? -E2BIG : -EIO, 0, 0);
		assert_int_equal(ask(c, now + 1, 5, &w, &cr), 2);
	}
	/* but who is not known any more has none any more */
	(void)ask(c, 5000 * NS_PER_S, 5, &w, &cr);
	answer(c, 5, 5000 * NS_PER_S, -ENOENT, 0, 0);
	assert_int_equal(ask(c, 5000 * NS_PER_S, 5, &w, &cr), 0);
}

/* many users at once: few are asked for at a time, the first first, and few are kept */
static void many(void **state)
{
	enum { N = 3000 };
	struct waiter *w = calloc(N, sizeof(*w));
	struct ctx *c = *state;
	struct creds cr;

	for (uint32_t i = 0; i < N; i++) {
		w[i] = waiter();
		assert_int_equal(ask(c, 0, i, &w[i], &cr), -1);
	}
	assert_true(c->nasked < 16);
	assert_int_equal(groups_asking(c->g), c->nasked);
	assert_int_equal(groups_count(c->g), N); /* none of them may go */
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(c->asked[i]->uid, i);
		answer(c, i, 0, 0, 1, i);
		assert_int_equal(w[i].told, 1);
		assert_int_equal(ask(c, 1, i, &w[i], &cr), 1);
		assert_int_equal(cr.groups[0], i);
		assert_int_equal(ask(c, 1, 0, &w[0], &cr), 1); /* in use: it stays */
	}
	assert_int_equal(groups_count(c->g), 1024);
	assert_int_equal(ask(c, 1, N - 1, &w[0], &cr), 1);
	assert_int_equal(ask(c, 1, 0, &w[0], &cr), 1);
	assert_int_equal(ask(c, 1, 1, &w[1], &cr), -1); /* not seen for longest */
	answer(c, N, 1, 0, 0, 0); /* w[1] has waited for it */
	free(w);
}

static bool is_in(gid_t gid, const struct groups_answer *a)
{
	for (uint32_t i = 0; i < a->n; i++) {
		if (a->groups[i] == gid)
			return true;
	}
	return false;
}

/* Every group that says of itself that he is in it, found the other way round. Return: how many */
static unsigned check_user(const char *name, gid_t gid, const struct groups_answer *a)
{
	unsigned n = 0;
	struct group *gr;

	assert_true(is_in(gid, a));
	setgrent();
	while ((gr = getgrent())) {
		bool member = false;

		for (char **m = gr->gr_mem; *m; m++)
			member |= !strcmp(*m, name);
		if (member && !is_in(gr->gr_gid, a))
			fail_msg("%s is in %s, which was not found", name, gr->gr_name);
		n += member;
	}
	endgrent();
	return n;
}

static void of_this_host(void **state)
{
	unsigned users = 0, memberships = 0;
	struct groups_answer a;
	struct passwd *pw;
	uint32_t unknown = 4000000000u;

	(void)state;
	setpwent();
	while ((pw = getpwent()) && users++ < 100) {
		char name[64];

		if (strlen(pw->pw_name) >= sizeof(name))
			continue;
		strcpy(name, pw->pw_name);
		a = groups_ask(pw->pw_uid);
		assert_int_equal(a.err, 0);
		if (getpwuid(pw->pw_uid) && !strcmp(getpwuid(pw->pw_uid)->pw_name, name))
			memberships += check_user(name, getpwnam(name)->pw_gid, &a);
		free(a.groups);
	}
	endpwent();
	while (getpwuid(unknown))
		unknown++;
	a = groups_ask(unknown);
	assert_int_equal(a.err, -ENOENT);
	assert_null(a.groups);
	print_message("%u users, %u of them in further groups\n", users, memberships);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(waits_once, setup, teardown),
		cmocka_unit_test_setup_teardown(grows_old, setup, teardown),
		cmocka_unit_test_setup_teardown(database_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(many, setup, teardown),
		cmocka_unit_test(of_this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
