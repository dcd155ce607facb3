/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_window.c - memory windows of the requester over a real device: verbs_window HOST PORT
 *
 * Operation:  The client is the library's, the responder says and does what a test wants; both in this
 *             process, at an address of this host. R is said whatever the device: on soft RoCE one
 *             invalidation too many, by the client or by a test, and the kernel is gone.
 * Memory:     That of clnt_talk.h.
 * Threads:    One, and those of the fabrics.
 * Errors:     cmocka's; exit status 77 where there is no device, or none with windows.
 */
#include "verbs.h"
#include "window_talk.h"

#define OUT 8u
#define MANY (OUT * 280u) /* a window has 256 keys, and then they come again */

/* All ends of windows by turns, several calls out at a time, data both ways. */
static void many_of_every_kind(void **state)
{
	static struct talk_call c[OUT];
	struct rpcrdma_stats was, is;
	unsigned by_answer = 0, n = 0;

	(void)state;
	begin_way(NULL, BY_ANSWER);
	was = stats();
	for (unsigned round = 0; round < MANY / OUT; round++) {
		for (unsigned i = 0; i < OUT; i++) {
			if ((round + i) % 3)
				start_get(&c[i], 9001 + i);
			else
				start_put(&c[i], 9001 + i);
		}
		for (unsigned i = 0; i < OUT; i++, n++) {
			enum way way = n * 7 % 5 % 2 ? BY_ANSWER : BY_CLIENT;

			hear();
			taken_back(way);
			by_answer += way == BY_ANSWER;
			if (heard.nwrites)
				answer_get(heard.writes[0].segs[0].length);
			else
				answer_put(heard.reads[0].seg.length);
		}
		for (unsigned i = 0; i < OUT; i++) {
			ended(&c[i], 0);
			assert_pattern(c[i].mem, 9001 + i);
			talk_fini(&c[i]);
		}
	}
	is = stats();
	assert_int_equal(is.binds - was.binds, n);
	assert_int_equal(is.invalidations - was.invalidations, by_answer);
	assert_int_equal(is.local_invs - was.local_invs, n - by_answer);
	assert_int_equal(srv.conns, 1);
	close_both();
}

static void wrong_invalidations(void **state)
{
	(void)state;
	for (enum wrong wrong = 0; wrong < FATAL; wrong++)
		wrong_invalidation(wrong);
}

int main(int argc, char **argv)
{
	const struct rr_verbs_attr attr = { .unsafe_inv = true };
	const struct CMUnitTest tests[] = {
		clnt_test_bare(one_bind_and_one_end),
		clnt_test_bare(late_after_the_reply),
		clnt_test_bare(given_up_and_used_again),
		clnt_test_bare(wrong_invalidations),
		clnt_test_bare(many_of_every_kind),
	};
	int rc;

	if (argc != 3) {
		fprintf(stderr, "usage: verbs_window HOST PORT\n");
		return 2;
	}
	talk_addr.transport = RPCRDMA_RDMA;
	snprintf(talk_addr.host, sizeof(talk_addr.host), "%s", argv[1]);
	talk_addr.port = (uint16_t)atoi(argv[2]);
	rc = rr_verbs_open(&attr, &so4k.fabric);
	if (rc || !so4k.fabric->attr.windows) {
		printf("SKIP: %s\n", rc ? strerror(-rc) : "the device has no memory windows");
		return 77;
	}
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	rr_fabric_close(so4k.fabric);
	return rc;
}
