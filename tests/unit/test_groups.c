/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_groups.c - users' groups: which calls wait, how long an answer is valid, what is evicted, what one
 * client can do to others, what the database of this host says
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
#define CLIENTS 3

struct ctx {
	struct groups *g;
	struct clients clients;
	struct client *client[CLIENTS];
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
	assert_non_null(e->client);
	c->asked[c->nasked++] = e;
}

static int setup(void **state)
{
	struct ctx *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	log_state.level = LOG_LEVEL_ERR;
	clients_init(&c->clients);
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct rpcrdma_peer peer = { .transport = RPCRDMA_LOCAL, .has_cred = true, .uid = i };

		assert_int_equal(client_get(&c->clients, &peer, &c->client[i]), 0);
	}
	assert_int_equal(groups_create(on_ask, c, &c->g), 0);
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
	for (unsigned i = 0; i < CLIENTS; i++) {
		assert_int_equal(c->client[i]->refs, 1);
		client_put(c->client[i]);
	}
	clients_fini(&c->clients);
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

/* what a call of @uid from client @from that says it has the group 77 gets; -1: it has to wait */
static int ask_from(struct ctx *c, unsigned from, uint64_t now, uint32_t uid, struct waiter *w,
		    struct creds *ret)
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
	if (!groups_of(c->g, now, c->client[from], ret, &w->wait))
		return -1;
	assert_int_equal(ret->uid, uid);
	assert_int_equal(ret->gid, 9);
	return (int)ret->ngroups;
}

static int ask(struct ctx *c, uint64_t now, uint32_t uid, struct waiter *w, struct creds *ret)
{
	return ask_from(c, 0, now, uid, w, ret);
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
	assert_int_equal(ask(c, 3, 1000, &a, &cr), 3); /* the groups of the call are ignored */
	assert_int_equal(cr.groups[0], 500);
	assert_int_equal(cr.groups[2], 502);
	assert_int_equal(c->nasked, 2);
	answer(c, 1, 3, -ENOENT, 0, 0); /* no such user in the database */
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
	assert_int_equal(w.told, 1); /* no call waited for that answer */
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
	assert_int_equal(ask(c, 1, 5, &w, &cr), 0); /* not the groups of the call */
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
	/* a user that was removed from the database has no groups */
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

/* ---- several clients ---------------------------------------------------------------------- */

#define FLOOD 3000u
#define CLAIMED 100000u /* the first uid of a flood */
#define ATTACKER 0u
#define HONEST 1u
#define THIRD 2u

/* @from claims to be @n users; Return: its calls, which wait */
static struct waiter *flood(struct ctx *c, unsigned from, uint64_t now, uint32_t first, unsigned n)
{
	struct waiter *w = calloc(n, sizeof(*w));
	struct creds cr;

	assert_non_null(w);
	for (unsigned i = 0; i < n; i++) {
		w[i] = waiter();
		assert_int_equal(ask_from(c, from, now, first + i, &w[i], &cr), -1);
	}
	return w;
}

/* of all questions that are not answered yet, also those that come of it; Return: how many */
static unsigned answer_all(struct ctx *c, uint64_t now)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->nasked; i++) {
		if (c->asked[i]) {
			answer(c, i, now, 0, 1, c->asked[i]->uid);
			n++;
		}
	}
	return n;
}

static void learn_users(struct ctx *c, unsigned from, uint64_t now, uint32_t first, unsigned n)
{
	struct waiter *w = flood(c, from, now, first, n);

	assert_int_equal(answer_all(c, now), n);
	c->nasked = 0;
	free(w);
}

/* Answers the lookups in their order until @w is called. Return: the number of answers */
static unsigned answer_until_told(struct ctx *c, const struct waiter *w, uint64_t now)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->nasked && !w->told; i++) {
		if (c->asked[i]) {
			answer(c, i, now, 0, 1, c->asked[i]->uid);
			n++;
		}
	}
	return n;
}

static void claims_do_not_delay(void **state)
{
	struct ctx *c = *state;
	struct waiter fresh = waiter(), claimed = waiter(), *w;
	struct creds cr;

	w = flood(c, ATTACKER, 0, CLAIMED, FLOOD);
	/* a user of another client, and a user near the end of the flood */
	assert_int_equal(ask_from(c, HONEST, 0, 8, &fresh, &cr), -1);
	assert_int_equal(ask_from(c, HONEST, 0, CLAIMED + FLOOD - 10, &claimed, &cr), -1);
	assert_true(answer_until_told(c, &fresh, 1) < 16);
	assert_true(answer_until_told(c, &claimed, 1) < 16);
	assert_int_equal(w[FLOOD - 10].told, 1); /* it waited for the same lookup */
	assert_true(answer_all(c, 1) > FLOOD - 64);
	for (unsigned i = 0; i < FLOOD; i++)
		assert_int_equal(w[i].told, 1);
	free(w);
}

/* The queue that a lookup moves to must be shorter: another client cannot make a user wait. */
static void claims_do_not_hold_up(void **state)
{
	struct ctx *c = *state;
	struct waiter *theirs = flood(c, HONEST, 0, 1, 20), *w = flood(c, ATTACKER, 0, CLAIMED, FLOOD);
	struct creds cr;
	struct waiter again[20];

	for (uint32_t i = 0; i < 20; i++) {
		again[i] = waiter();
		assert_int_equal(ask_from(c, ATTACKER, 0, 1 + i, &again[i], &cr), -1);
	}
	assert_true(answer_until_told(c, &theirs[19], 1) < 64);
	(void)answer_all(c, 1);
	free(theirs);
	free(w);
}

static void claims_do_not_evict(void **state)
{
	struct ctx *c = *state;
	struct waiter a = waiter(), b = waiter();
	struct creds cr;

	/* the honest client's own user, and a user that the attacker looked up before */
	assert_int_equal(ask_from(c, HONEST, 0, 7, &a, &cr), -1);
	assert_int_equal(ask_from(c, ATTACKER, 0, 8, &b, &cr), -1);
	assert_int_equal(answer_all(c, 0), 2);
	assert_int_equal(ask_from(c, HONEST, 1, 8, &b, &cr), 1);
	assert_int_equal(ask_from(c, ATTACKER, 1, 7, &a, &cr), 1);
	c->nasked = 0;
	for (uint32_t i = 0; i < 2; i++) {
		learn_users(c, ATTACKER, 2, CLAIMED + i * FLOOD, FLOOD);
		assert_int_equal(groups_count(c->g), 1024);
	}
	assert_int_equal(ask_from(c, HONEST, 4, 7, &a, &cr), 1);
	assert_int_equal(cr.groups[0], 7);
	assert_int_equal(ask_from(c, HONEST, 4, 8, &b, &cr), 1);
	assert_int_equal(cr.groups[0], 8);
	learn_users(c, ATTACKER, 4, CLAIMED, 1); /* the attacker has lost its own */
}

/* A lookup that another client causes because the answer has grown old does not take the entry away. */
static void refreshed_by_another(void **state)
{
	struct ctx *c = *state;
	struct waiter a = waiter();
	struct creds cr;

	learn_users(c, HONEST, 0, 7, 1);
	assert_int_equal(ask_from(c, ATTACKER, 61 * NS_PER_S, 7, &a, &cr), 1);
	assert_int_equal(answer_all(c, 61 * NS_PER_S), 1);
	c->nasked = 0;
	learn_users(c, ATTACKER, 62 * NS_PER_S, CLAIMED, FLOOD);
	assert_int_equal(ask_from(c, HONEST, 63 * NS_PER_S, 7, &a, &cr), 1);
}

/* Return: how many of the @n users from @first on are cached; starts no lookup */
static unsigned count_known(struct ctx *c, unsigned from, uint64_t now, uint32_t first, unsigned n)
{
	unsigned known = 0;
	struct creds cr;

	for (unsigned i = 0; i < n; i++) {
		struct waiter w = waiter();

		if (ask_from(c, from, now, first + i, &w, &cr) >= 0)
			known++;
		else
			groups_leave(&w.wait);
	}
	return known;
}

static void equal_parts(void **state)
{
	struct ctx *c = *state;

	for (unsigned i = 0; i < CLIENTS; i++)
		learn_users(c, i, 0, (i + 1) * CLAIMED, i == THIRD ? 300 : 1000);
	/* the first one had all, and gave up no more than it had beyond its part */
	assert_int_equal(count_known(c, THIRD, 1, (THIRD + 1) * CLAIMED, 300), 300);
	assert_int_equal(count_known(c, HONEST, 1, (HONEST + 1) * CLAIMED, 1000), 362);
	assert_int_equal(count_known(c, ATTACKER, 1, (ATTACKER + 1) * CLAIMED, 1000), 362);
}

/* The user that was not used for the longest time is evicted first, whichever client it belongs to. */
static void too_old_goes_first(void **state)
{
	struct ctx *c = *state;

	learn_users(c, HONEST, 0, CLAIMED, 500);
	learn_users(c, THIRD, 601 * NS_PER_S, 2 * CLAIMED, 1024);
	assert_int_equal(groups_count(c->g), 1024);
	assert_int_equal(count_known(c, THIRD, 602 * NS_PER_S, 2 * CLAIMED, 1024), 1024);
}

/* Calls that are gone are not looked up for, and what was begun keeps its client. */
static void leaves(void **state)
{
	struct ctx *c = *state;
	struct waiter other = waiter(), *w = flood(c, ATTACKER, 0, CLAIMED, FLOOD);
	unsigned asking = groups_asking(c->g);
	struct creds cr;

	assert_in_range(asking, 1, 7);
	assert_int_equal(c->client[ATTACKER]->refs, 1 + FLOOD);
	assert_int_equal(ask_from(c, THIRD, 0, CLAIMED + 100, &other, &cr), -1);
	assert_int_equal(c->client[ATTACKER]->refs, FLOOD);
	for (unsigned i = 0; i < FLOOD; i++)
		groups_leave(&w[i].wait);
	assert_int_equal(c->client[ATTACKER]->refs, 1 + asking);
	assert_int_equal(groups_count(c->g), asking + 1);
	assert_int_equal(answer_all(c, 1), asking + 1);
	assert_int_equal(other.told, 1);
	assert_int_equal(w[0].told, 0);
	/* one that was known before is still known: nothing better is there if the database fails */
	free(w);
	w = flood(c, ATTACKER, 2, 2 * CLAIMED, 100);
	assert_int_equal(ask_from(c, ATTACKER, 700 * NS_PER_S, CLAIMED, &other, &cr), -1);
	groups_leave(&other.wait);
	assert_int_equal(groups_count(c->g), asking + 1 + 100);
	assert_int_equal(answer_all(c, 700 * NS_PER_S), 100);
	free(w);
}

/* ---- the database ------------------------------------------------------------------------- */

static bool is_in(gid_t gid, const struct groups_answer *a)
{
	for (uint32_t i = 0; i < a->n; i++) {
		if (a->groups[i] == gid)
			return true;
	}
	return false;
}

/* Checks that @a has every group of the database that lists @name. Return: the number of these groups */
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
		cmocka_unit_test_setup_teardown(claims_do_not_delay, setup, teardown),
		cmocka_unit_test_setup_teardown(claims_do_not_hold_up, setup, teardown),
		cmocka_unit_test_setup_teardown(claims_do_not_evict, setup, teardown),
		cmocka_unit_test_setup_teardown(refreshed_by_another, setup, teardown),
		cmocka_unit_test_setup_teardown(equal_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(too_old_goes_first, setup, teardown),
		cmocka_unit_test_setup_teardown(leaves, setup, teardown),
		cmocka_unit_test(of_this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
