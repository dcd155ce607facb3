/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_talk.h - srv_talk.h with a responder that offers all modes, and a peer that asks for some
 */
#ifndef TESTS_MODE_TALK_H
#define TESTS_MODE_TALK_H

#include "base/clock.h"
#include "hooks.h"
#include "mode.h"
#include "srv_talk.h"
#include "lab.h"

static struct rr_suffix given;

static const struct rpcrdma_svc_attr all_modes = { .lab = LAB(.modes = RPCRDMA_MODES_ALL) };
static const struct rr_local_attr local_plain = { .filters = HOOKS(.no_windows = true) };
static const struct rpcrdma_domain_attr domain_plain = { .lab = LAB(.local = &local_plain) };
static bool no_windows; /* on the responder's device */

static inline struct rpcrdma_stats stats(void)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(svc.domain, &s);
	return s;
}

static inline void serve_modes(const struct rpcrdma_svc_attr *attr)
{
	serve_with(no_windows ? &domain_plain : NULL, attr);
}

static inline int set_up_modes(void **state)
{
	no_windows = false;
	if (set_up(state))
		return -1;
	serve_modes(&all_modes);
	return 0;
}

static inline int set_up_without(void **state)
{
	if (set_up_modes(state))
		return -1;
	no_windows = true;
	serve_modes(&all_modes);
	return 0;
}

/* A peer that says @priv, asks for @modes, and has them; nothing was said yet. */
static inline void connect_silent_as(const struct rr_priv *priv, unsigned modes)
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

static inline void connect_silent(unsigned modes)
{
	connect_silent_as(&priv4k, modes);
}

/* ... and it has had a first answer: from then on slots may be used. Calls are counted from there. */
static inline void connect_as(const struct rr_priv *priv, unsigned modes)
{
	connect_silent_as(priv, modes);
	still_serves();
	svc.calls = 0;
}

static inline void connect_with(unsigned modes)
{
	connect_as(&priv4k, modes);
}

/* Room was asked for, and this is the answer. */
static inline struct rr_segment granted(uint32_t xid)
{
	const uint8_t *got = raw_recv(&peer, &send_len);

	assert_non_null(got);
	assert_int_equal(send_len, RR_GRANT_BYTES);
	assert_int_equal(get_be32(got), xid);
	assert_int_not_equal(get_be32(got + 8), 0);
	assert_int_equal(get_be32(got + 12), RR_GRANT);
	return (struct rr_segment){ .handle = get_be32(got + 16), .length = get_be32(got + 20),
				    .offset = get_be64(got + 24) };
}

#define PUT_AT 48u /* position of the bytes in a PUT */

/* A PUT for slot @slot; the message is in m, ready for fast(). */
static inline struct rr_segment fast_put(unsigned slot, uint32_t bytes)
{
	struct rr_segment s = { .handle = given.handle, .length = bytes,
				.offset = given.offset +
					  slot * (uint64_t)(RR_SLOT_HEAD + given.slot_bytes) +
					  RR_SLOT_HEAD };

	put_args(RR_MSG, bytes);
	assert_int_equal(m.rpc_len, PUT_AT);
	add_read(PUT_AT, s);
	return s;
}

static inline enum rr_wc_status fast(const struct rr_segment *s, unsigned slot, uint32_t bytes,
				     uint32_t imm)
{
	static uint8_t data[65536];

	finish_msg();
	put_be32(m.raw + 12, RR_HERE);
	memcpy(data, m.raw, m.raw_len);
	pattern(data + m.raw_len, bytes);
	return raw_rdma(&peer, RR_WR_WRITE_IMM, data, m.raw_len + bytes, s->offset - m.raw_len, s->handle,
			imm ? imm : slot << 16 | (uint32_t)m.raw_len);
}

/* A PUT whose payload is in room that was given for @xid. */
static inline void here_for(uint32_t xid, const struct rr_segment *s, uint32_t declared)
{
	put_args(RR_MSG, declared);
	m.hdr.xid = xid;
	put_be32(m.rpc, xid);
	add_read(PUT_AT, *s);
	finish_msg();
	put_be32(m.raw + 12, RR_HERE);
	(void)raw_send(&peer, m.raw, m.raw_len);
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
#define plain_test(f) { #f "_without_windows", f, set_up_without, tear_down, NULL }

#endif
