/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_svc_bytes_bad.c - a service of bytes whose peers lie, are many or leave, or that has no memory
 */
#include "test_svc_bytes.h"

/* ---- hostile peers ---- */

static void refused(void)
{
	unsigned before = calls;

	say(&peer, NULL, 0, failed);
	hear_error(&peer);
	assert_int_equal(calls, before);
}

/* Lengths that overflow or exceed the limit are refused before memory is allocated. */
static void impossible_chunks(void **state)
{
	struct region r;

	(void)state;
	open_service(true);
	connect_peer(&peer);
	r = offer(&peer, 4096, READABLE);
	begin(RR_NOMSG); /* longer than a call may be */
	add_read(0, seg(&r, 0, LONGEST - 4));
	add_read(0, seg(&r, 0, 8));
	refused();
	begin(RR_NOMSG); /* 64 segments of 4 GiB */
	for (unsigned i = 0; i < 64; i++)
		add_read(0, seg(&r, 0, UINT32_MAX));
	refused();
	begin(RR_MSG); /* message and payload together */
	add_read((uint32_t)head_len, seg(&r, 0, LONGEST - 8));
	refused();
	begin(RR_MSG); /* the address wraps */
	add_read((uint32_t)head_len, (struct rr_segment){ .handle = r.mr->rkey, .length = 16, .offset = UINT64_MAX - 7 });
	refused();
	begin(RR_MSG); /* behind the message */
	add_read((uint32_t)head_len + 4, seg(&r, 0, 16));
	refused();
	begin(RR_MSG); /* results: 129 MiB */
	offer_write(&r, 129 * MIB);
	refused();
	begin(RR_MSG);
	offer_reply(&r, 129 * MIB);
	refused();
	assert_int_equal(pool_most(), 0);
	/* in the RPC header: no argument is there */
	begin(RR_MSG);
	add_read(24, seg(&r, 0, 16));
	memset(r.mem, 0, 16);
	say(&peer, NULL, 0, failed);
	assert_true(hear(&peer) || !raw_alive(&peer));
	withdraw(&r);
	raw_close(&peer);
	close_service();
}

/* A long call that delivers less than it claims ends its connection; the memory is free again. */
static void claims_more_than_it_has(void **state)
{
	(void)state;
	open_service(true);
	for (unsigned form = 0; form < 2; form++) {
		struct region r;

		connect_peer(&peer);
		r = offer(&peer, 5 * MIB, READABLE);
		begin(form ? RR_NOMSG : RR_MSG);
		add_read(form ? 0 : (uint32_t)head_len, seg(&r, 0, 16 * MIB));
		if (form)
			memcpy(r.mem, head, head_len);
		say(&peer, NULL, 0, failed);
		raw_settle(&peer);
		assert_false(raw_alive(&peer));
		assert_int_equal(calls, 0);
		withdraw(&r);
		raw_close(&peer);
		pump();
	}
	assert_int_equal(conns, 0);
	/* both were given back: of two sizes, one each */
	assert_true(pool_most() <= 34 * MIB);
	close_service();
}

/* Many peers with long calls wait in order for what the pool has. All are served in the end. */
static void many_long_calls(void **state)
{
	enum { PEERS = 12 };
	static struct raw_peer peers[PEERS];
	struct region r[PEERS];
	uint64_t waits;

	(void)state;
	open_service(true);
	hold = true;
	waits = stats().buf_waits;
	for (unsigned i = 0; i < PEERS; i++) {
		connect_peer(&peers[i]);
		r[i] = offer(&peers[i], 16 * MIB, READABLE);
		begin(RR_NOMSG);
		memcpy(r[i].mem, head, head_len);
		add_reads(0, &r[i], r[i].len);
		say(&peers[i], NULL, 0, failed);
		raw_settle(&peers[i]);
	}
	/* all calls are of one user, and a user gets a share of the pool only; a small call needs none of it */
	assert_true(nheld >= 1 && nheld <= 2);
	assert_true(stats().buf_waits > waits);
	assert_true(pool_most() <= POOL_BYTES / 2);
	connect_peer(&peer);
	begin(RR_MSG);
	say(&peer, NULL, 0, failed);
	raw_settle(&peer);
	assert_true(nheld >= 2);
	for (unsigned round = 0; round < PEERS + 1 && calls < PEERS + 1; round++) {
		release_held();
		hold = true;
		for (unsigned i = 0; i < PEERS; i++)
			raw_settle(&peers[i]);
	}
	release_held();
	pump();
	assert_int_equal(calls, PEERS + 1);
	assert_true(pool_most() <= POOL_BYTES / 2);
	for (unsigned i = 0; i < PEERS; i++) {
		assert_true(hear(&peers[i]));
		withdraw(&r[i]);
		raw_close(&peers[i]);
	}
	raw_close(&peer);
	close_service();
}

/* The same over TCP, by peers that announce long records and send little. Others with small calls are served. */
static void many_long_records(void **state)
{
	enum { PEERS = 40 };
	int fds[PEERS], fd;
	uint8_t mark[4], *answer;

	(void)state;
	open_service(true);
	for (unsigned i = 0; i < PEERS; i++) {
		fds[i] = dial();
		put_be32(mark, (uint32_t)(16 * MIB) | (i % 2 ? LAST : 0));
		begin(RR_MSG);
		assert_true(put_bytes(fds[i], mark, 4));
		assert_true(put_bytes(fds[i], head, head_len));
		assert_true(put_bytes(fds[i], heap, 5000));
	}
	assert_true(pool_most() <= POOL_BYTES / 2);
	assert_int_equal(calls, 0);
	fd = dial();
	assert_true(put_record(fd, heap, 4000, SIZE_MAX));
	assert_int_equal(get_record(fd, &answer), RR_RPC_REPLY_HDR_BYTES);
	free(answer);
	/* they leave, and what waited for memory goes on */
	for (unsigned i = 0; i < PEERS; i++)
		close(fds[i]);
	assert_true(put_record(fd, heap, 16 * MIB, SIZE_MAX));
	assert_int_equal(get_record(fd, &answer), RR_RPC_REPLY_HDR_BYTES);
	free(answer);
	assert_args(heap, 16 * MIB);
	/* longer than the limit: the connection ends, in one fragment or many */
	for (unsigned i = 0; i < 2; i++) {
		int other = dial();
		unsigned before = calls;

		(void)put_record(other, heap, LONGEST + 4, i ? 65536 : SIZE_MAX);
		assert_int_equal(get_record(other, &answer), 0);
		free(answer);
		assert_int_equal(calls, before);
		close(other);
	}
	close(fd);
	close_service();
}

/* A peer that leaves in the middle of a long call or a long reply holds nothing. */
static void leaves_in_the_middle(void **state)
{
	struct region r;
	int fd;

	(void)state;
	for (unsigned whole = 0; whole < 2; whole++) {
		open_service(whole);
		fd = dial();
		begin(RR_MSG);
		put_be32(head + 40, 0);
		{
			uint8_t mark[4];

			put_be32(mark, (uint32_t)(10 * MIB) | LAST);
			assert_true(put_bytes(fd, mark, 4) && put_bytes(fd, head, head_len) && put_bytes(fd, heap, MIB));
		}
		close(fd);
		pump();
		assert_int_equal(conns, 0);
		/* the service saw the beginning of it, and must end the request; whole calls never reached it */
		assert_int_equal(calls, whole ? 0 : 1);
		connect_peer(&peer);
		r = offer(&peer, 9 * MIB, WRITABLE);
		iov[0] = (struct iovec){ .iov_base = heap, .iov_len = 8 * MIB };
		results = (struct rpcrdma_results){ .iov = iov, .iovcnt = 1 };
		begin(RR_MSG);
		offer_reply(&r, r.len);
		assert_int_equal(rr_mr_dereg(r.mr), 0); /* the first Write fails */
		r.mr = NULL;
		say(&peer, NULL, 0, failed);
		raw_settle(&peer);
		assert_false(raw_alive(&peer));
		raw_close(&peer);
		withdraw(&r);
		pump();
		close_service();
		assert_int_equal(dones, calls);
		dones = 0;
	}
}

/* ---- lack of memory ---- */

/* A long call with a chunk, and a reply in both chunks: the Nth allocation fails. */
static bool call_with(unsigned long nth)
{
	struct region a, b, w, r;
	uint8_t words[4];
	bool ok;

	connect_peer(&peer);
	cut(FROM_BOTH, 100000, 100001, 4);
	begin(RR_NOMSG);
	a = offer(&peer, head_len + 4, READABLE);
	b = offer(&peer, 100000, READABLE);
	w = offer(&peer, 200000, WRITABLE);
	r = offer(&peer, 200000, WRITABLE);
	put_be32(words, 100000);
	memcpy(a.mem, head, head_len);
	memcpy(a.mem + head_len, words, 4);
	memcpy(b.mem, heap, b.len);
	add_read(0, seg(&a, 0, a.len));
	add_reads((uint32_t)head_len + 4, &b, b.len);
	offer_write(&w, w.len);
	offer_reply(&r, r.len);
	failed = false;
	countdown = nth;
	say(&peer, NULL, 0, failed);
	ok = hear(&peer);
	countdown = 0;
	assert_true(ok || !raw_alive(&peer) || failed);
	if (ok && reply.proc == RR_NOMSG) {
		assert_memory_equal(w.mem, heap + 100000, 100001);
		assert_memory_equal(r.mem + RR_RPC_REPLY_HDR_BYTES, heap, 100000);
	}
	withdraw(&a);
	withdraw(&b);
	withdraw(&w);
	withdraw(&r);
	raw_close(&peer);
	pump();
	assert_int_equal(conns, 0);
	return !failed;
}

static bool tcp_call_with(unsigned long nth)
{
	uint8_t *answer = NULL;
	bool sent;
	int fd;

	cut(FROM_BOTH, 100000, 100001, 4);
	fd = dial();
	failed = false;
	countdown = nth;
	sent = put_record(fd, heap, 100000, 30000);
	countdown = failed ? 0 : countdown;
	if (sent) {
		uint8_t mark[4];

		sent = get_bytes(fd, mark, 4);
		countdown = 0;
		if (sent) {
			size_t len = get_be32(mark) & ~LAST;

			answer = malloc(len);
			assert_true(get_bytes(fd, answer, len));
			if (failed && get_be32(answer + 20) == RR_GARBAGE_ARGS) {
				; /* the service did not get all of the arguments */
			} else {
				check_rpc(answer, len);
				assert_results(answer + RR_RPC_REPLY_HDR_BYTES, 100000, 100001, 4, false);
			}
			free(answer);
		}
	}
	countdown = 0;
	assert_true(sent || failed);
	close(fd);
	pump();
	assert_int_equal(conns, 0);
	return !failed;
}

static void no_memory(void **state)
{
	(void)state;
	for (unsigned whole = 0; whole < 2; whole++) {
		unsigned long n;

		for (n = 1;; n++) {
			bool last;

			open_service(whole);
			last = call_with(n);
			close_service();
			if (last)
				break;
		}
		assert_true(n > 3);
		for (n = 1;; n++) {
			bool last;

			open_service(whole);
			last = tcp_call_with(n);
			close_service();
			if (last)
				break;
		}
		assert_true(n > 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bytes_test(impossible_chunks),
		bytes_test(claims_more_than_it_has),
		bytes_test(many_long_calls),
		bytes_test(many_long_records),
		bytes_test(leaves_in_the_middle),
		bytes_test(no_memory),
	};

	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
