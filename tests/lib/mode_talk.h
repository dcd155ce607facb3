/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_talk.h - srv_talk.h with a responder that offers all modes, and a peer that asks for some
 */
#ifndef TESTS_MODE_TALK_H
#define TESTS_MODE_TALK_H

#include "base/clock.h"
#include "mode.h"
#include "srv_talk.h"

static struct rr_suffix given;

static const struct rpcrdma_svc_attr all_modes = { .modes = RPCRDMA_MODES_ALL };

static inline struct rpcrdma_stats stats(void)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(svc.domain, &s);
	return s;
}

static inline int set_up_modes(void **state)
{
	if (set_up(state))
		return -1;
	serve_with(NULL, &all_modes);
	return 0;
}

/* A peer that says @priv, asks for @modes, and has them. */
static inline void connect_as(const struct rr_priv *priv, unsigned modes)
{
	const struct rr_suffix want = { .modes = modes, .slot_bytes = 8192, .slots = 3 };
	uint8_t suffix[RR_SUFFIX_BYTES];
	const struct raw_opts o = { .priv = priv, .suffix = suffix, .suffix_len = sizeof(suffix) };

	rr_suffix_encode(&want, suffix);
	close_peer();
	connect_peer(&o);
	assert_true(rr_suffix_decode(peer.server_raw, peer.server_raw_len, &given));
	assert_int_equal(given.modes, modes);
	assert_int_equal(given.status, RR_SUFFIX_OK);
}

static inline void connect_with(unsigned modes)
{
	connect_as(&priv4k, modes);
}

/* It is gone; the counters say why. */
static inline void is_cut(void)
{
	assert_false(raw_alive(&peer));
	assert_int_equal(stats().mode_cuts, 1);
	assert_int_equal(stats().mode_timeouts, 0);
}

static inline void send_words(const uint32_t *words, unsigned n)
{
	uint8_t bytes[64];

	for (unsigned i = 0; i < n; i++)
		put_be32(bytes + 4 * i, words[i]);
	(void)raw_send(&peer, bytes, 4 * n);
}

static inline void done(uint32_t xid)
{
	const uint32_t words[] = { xid, 1, 1, RR_DONE };

	send_words(words, 4);
}

static inline void want(uint32_t xid, uint32_t bytes)
{
	const uint32_t words[] = { xid, 1, 1, RR_WANT, bytes };

	send_words(words, 5);
}

/* Until the responder has let the peer go; or the test fails. */
static inline bool is_let_go_by(uint64_t end_ns)
{
	if (peer.flushed)
		return true;
	if (clock_now_ns() > end_ns)
		fail_msg("a peer that is to be let go is still there");
	return false;
}

#define modes_test(f) cmocka_unit_test_setup_teardown(f, set_up_modes, tear_down)

#endif
