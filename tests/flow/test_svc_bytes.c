/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_svc_bytes.c - a service that takes arguments as bytes and replies with bytes, of any size
 */
#include "test_svc_bytes.h"

/* ---- arguments ---- */

static const uint32_t lengths[] = { 1, 2, 3, 4, 7, 1000, 4096, 70001, MIB + 8192, 5 * MIB + 3, 16 * MIB };

/* A call in a position-zero chunk, and the same with its payload in a Read chunk. */
static void rdma_args(bool whole)
{
	uint8_t *want = malloc(LONGEST + 64);

	open_service(whole);
	connect_peer(&peer);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		size_t len = lengths[i], padded = round_up4(len), total;

		/* want: two words, the payload with its pad, one word */
		put_be32(want, 77);
		put_be32(want + 4, (uint32_t)len);
		memcpy(want + 8, heap, len);
		memset(want + 8 + len, 0, padded - len);
		put_be32(want + 8 + padded, 99);
		total = 8 + padded + 4;
		for (unsigned form = 0; form < 4; form++) {
			struct region a = { .mem = NULL }, b = { .mem = NULL };
			bool is_long = form % 2, chunk = form >= 2;
			uint32_t pos;

			if (!is_long && !chunk && total > 3000)
				continue;
			begin(is_long ? RR_NOMSG : RR_MSG);
			pos = (uint32_t)head_len + 8;
			if (is_long) {
				a = offer(&peer, head_len + total, READABLE);
				memcpy(a.mem, head, head_len);
				memcpy(a.mem + head_len, want, 8);
				memcpy(a.mem + head_len + 8, want + 8 + (chunk ? padded : 0), total - 8 - (chunk ? padded : 0));
				add_reads(0, &a, head_len + total - (chunk ? padded : 0));
			}
			if (chunk) {
				b = offer(&peer, padded, READABLE);
				memcpy(b.mem, want + 8, padded);
				add_reads(pos, &b, len % 2 ? padded : len); /* the chunk may include the pad */
			}
			if (chunk && !is_long) {
				uint8_t words[12];

				memcpy(words, want, 8);
				memcpy(words + 8, want + 8 + padded, 4);
				say(&peer, words, 12, failed);
			} else {
				say(&peer, want, total, failed);
			}
			assert_true(hear(&peer));
			assert_int_equal(args.payload_bytes, !chunk ? 0 : len % 2 ? padded : len);
			assert_int_equal(args.payload_pos, chunk ? 8 : 0);
			assert_int_equal(args.reduced, chunk && !whole);
			if (!args.reduced) {
				assert_args(want, total);
			} else {
				assert_int_equal(args.len, 12);
				assert_memory_equal(got, want, 8);
				assert_memory_equal(got + 8, want + 8 + padded, 4);
			}
			if (a.mem)
				withdraw(&a);
			if (b.mem)
				withdraw(&b);
		}
	}
	assert_int_equal(agains, 0);
	assert_true(pool_most() <= POOL_BYTES);
	raw_close(&peer);
	close_service();
	free(want);
}

static void args_of_chunks(void **state)
{
	(void)state;
	rdma_args(false);
}

static void args_joined(void **state)
{
	(void)state;
	rdma_args(true);
}

/* A payload that is left at the caller is pulled into memory of the service. */
static void args_pulled(void **state)
{
	struct region r;
	uint8_t word[4];

	(void)state;
	open_service(false);
	connect_peer(&peer);
	pull = true;
	begin(RR_MSG);
	r = offer(&peer, 5 * MIB, READABLE);
	memcpy(r.mem, heap + 5, r.len);
	add_reads((uint32_t)head_len + 4, &r, r.len);
	put_be32(word, (uint32_t)r.len);
	say(&peer, word, 4, failed);
	assert_true(hear(&peer));
	assert_memory_equal(own, r.mem, r.len);
	/* beyond the chunk, nothing is pulled */
	hold = true;
	say(&peer, word, 4, failed);
	raw_settle(&peer);
	assert_int_equal(nheld, 1);
	xfer = (struct rpcrdma_xfer){ .mem = own, .off = 1, .len = args.payload_bytes };
	assert_int_equal(rpcrdma_req_pull(held[0], &xfer), -EINVAL);
	release_held();
	assert_true(hear(&peer));
	withdraw(&r);
	raw_close(&peer);
	close_service();
}

static void tcp_args(bool whole)
{
	static const size_t fragments[] = { SIZE_MAX, 65536, 4001 };
	uint8_t *answer;
	unsigned many = 0;
	int fd;

	open_service(whole);
	fd = dial();
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		for (size_t f = 0; f < ARRAY_SIZE(fragments); f++) {
			size_t len = round_up4((size_t)lengths[i]);

			if (len / fragments[f] > 300)
				continue;
			assert_true(put_record(fd, heap, len, fragments[f]));
			assert_int_equal(get_record(fd, &answer), RR_RPC_REPLY_HDR_BYTES);
			free(answer);
			assert_args(heap, len);
			assert_false(args.reduced);
			many += len > 9000;
		}
	}
	/* the service sees a long record twice, unless it gets whole ones */
	assert_int_equal(agains, whole ? 0 : many);
	assert_true(pool_most() <= POOL_BYTES);
	close(fd);
	close_service();
}

static void args_of_records(void **state)
{
	(void)state;
	tcp_args(false);
}

static void args_of_whole_records(void **state)
{
	(void)state;
	tcp_args(true);
}

/* ---- results ---- */

static const struct {
	size_t before, payload, after;
} shapes[] = {
	{ 0, SIZE_MAX, 0 }, { 4, SIZE_MAX, 0 }, { 3000, SIZE_MAX, 8 }, { 100000, SIZE_MAX, 4 }, { 16 * MIB, SIZE_MAX, 0 },
	{ 4, 0, 0 }, { 8, 1, 4 }, { 8, 1003, 0 }, { 4, 4096, 4 }, { 100000, 99999, 4 }, { 4, 5 * MIB + 1, 0 },
	{ 6 * MIB, 6 * MIB, 4 * MIB }, { 0, 12, 12000 },
};

static void one_reply(enum from from, unsigned s, bool write, bool reply_chunk)
{
	size_t before = shapes[s].before, payload = shapes[s].payload, after = shapes[s].after;
	size_t bytes = payload == SIZE_MAX ? 0 : payload, padded = round_up4(bytes);
	bool placed = write && bytes;
	size_t rest = RR_RPC_REPLY_HDR_BYTES + before + after + (placed ? 0 : padded);
	struct region w = offer(&peer, bytes + 3, WRITABLE), r = offer(&peer, rest + 64, WRITABLE);
	uint64_t used, copied = stats().bytes_copied;
	bool fits;

	cut(from, before, payload, after);
	begin(RR_MSG);
	if (write)
		offer_write(&w, bytes + 3);
	if (reply_chunk)
		offer_reply(&r, rest + 64);
	say(&peer, NULL, 0, failed);
	assert_true(hear(&peer));
	fits = rr_hdr_bytes(&hdr) + rest <= 1024; /* also if it has no private data */
	if (reply.proc == RR_ERROR) {
		assert_false(reply_chunk || fits);
		goto out;
	}
	if (write) {
		assert_int_equal(rr_chunk_check_returned(&hdr.writes[0], &reply.writes[0], &used), 0);
		assert_int_equal(used, placed ? bytes : 0);
		if (placed)
			assert_memory_equal(w.mem, heap + before, bytes);
		assert_int_equal(w.mem[bytes], 0xee);
	}
	if (reply.proc == RR_NOMSG) {
		assert_true(reply_chunk && !fits);
		assert_int_equal(rr_chunk_check_returned(&hdr.reply, &reply.reply, &used), 0);
		assert_int_equal(used, rest);
		check_rpc(r.mem, rest);
		assert_results(r.mem + RR_RPC_REPLY_HDR_BYTES, before, payload, after, placed);
		assert_int_equal(r.mem[rest], 0xee);
	} else {
		assert_int_equal(body_len, rest);
		check_rpc(body, body_len);
		assert_results(body + RR_RPC_REPLY_HDR_BYTES, before, payload, after, placed);
	}
	/* own memory is written from where it is, except small pieces; the local fabric's own copies count here too */
	if (from == FROM_OWN && bytes + before + after > MIB) {
		uint64_t mine = stats().bytes_copied - copied;

		assert_true(mine < 100000 || mine <= bytes + before + after + 100000);
	}
out:
	withdraw(&w);
	withdraw(&r);
}

static void replies_by_chunk(void **state)
{
	(void)state;
	open_service(false);
	connect_peer(&peer);
	for (enum from from = 0; from < FROMS; from++)
		for (unsigned s = 0; s < ARRAY_SIZE(shapes); s++)
			for (unsigned form = 0; form < 4; form++)
				one_reply(from, s, form & 1, form & 2);
	pump();
	assert_int_equal(dones, calls);
	assert_true(pool_most() <= 4 * MIB); /* one buffer for copies, for any size */
	raw_close(&peer);
	close_service();
}

static void replies_over_tcp(void **state)
{
	uint8_t *answer;
	int fd;

	(void)state;
	open_service(false);
	fd = dial();
	for (enum from from = 0; from < FROMS; from++) {
		for (unsigned s = 0; s < ARRAY_SIZE(shapes); s++) {
			size_t bytes = shapes[s].payload == SIZE_MAX ? 0 : round_up4(shapes[s].payload);

			cut(from, shapes[s].before, shapes[s].payload, shapes[s].after);
			assert_true(put_record(fd, NULL, 0, SIZE_MAX));
			assert_int_equal(get_record(fd, &answer),
					 RR_RPC_REPLY_HDR_BYTES + shapes[s].before + bytes + shapes[s].after);
			assert_results(answer + RR_RPC_REPLY_HDR_BYTES, shapes[s].before, shapes[s].payload,
				       shapes[s].after, false);
			free(answer);
		}
	}
	assert_int_equal(pool_most(), 0);
	close(fd);
	close_service();
}

/* Own memory is not copied by the service: it can be unregistered only after done, and counts no copies. */
static void own_memory_is_not_copied(void **state)
{
	struct region r;
	uint64_t own_copies, heap_copies;

	(void)state;
	open_service(false);
	connect_peer(&peer);
	r = offer(&peer, 9 * MIB, WRITABLE);
	for (unsigned k = 0; k < 2; k++) {
		uint64_t before = stats().bytes_copied;

		iov[0] = (struct iovec){ .iov_base = k ? heap : own, .iov_len = 8 * MIB };
		results = (struct rpcrdma_results){ .iov = iov, .iovcnt = 1 };
		begin(RR_MSG);
		offer_reply(&r, r.len);
		say(&peer, NULL, 0, failed);
		assert_true(hear(&peer));
		assert_int_equal(reply.proc, RR_NOMSG);
		assert_memory_equal(r.mem + RR_RPC_REPLY_HDR_BYTES, heap, 8 * MIB);
		*(k ? &heap_copies : &own_copies) = stats().bytes_copied - before;
	}
	assert_int_equal(heap_copies - own_copies, 8 * MIB);
	withdraw(&r);
	raw_close(&peer);
	close_service();
}

/* Results that are none become SYSTEM_ERR; those that are too long for the caller ERR_CHUNK. */
static void bad_results(void **state)
{
	static const struct {
		size_t len[3];
		int cnt, payload, payload_cnt;
	} bad[] = {
		{ { 3 }, 1, 0, 0 },        { { 4, 4, 2 }, 3, 1, 1 },          { { 2, 4, 2 }, 3, 1, 1 },
		{ { 4 }, 1, 0, 2 },        { { 4 }, 1, 2, 0 },                { { 4 }, 1, -1, 1 },
		{ { 4 }, -1, 0, 0 },       { { 4 }, 1, 0, -1 },               { { RPCRDMA_CALL_BYTES_MAX, 4 }, 2, 0, 0 },
		{ { 4, SIZE_MAX - 3 }, 2, 0, 0 },
	};

	(void)state;
	open_service(false);
	connect_peer(&peer);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		for (unsigned k = 0; k < 3; k++)
			iov[k] = (struct iovec){ .iov_base = heap, .iov_len = bad[i].len[k] };
		results = (struct rpcrdma_results){ .iov = iov, .iovcnt = bad[i].cnt, .payload = bad[i].payload,
						    .payload_cnt = bad[i].payload_cnt };
		begin(RR_MSG);
		say(&peer, NULL, 0, failed);
		assert_true(hear(&peer));
		assert_int_equal(get_be32(body + 20), RR_SYSTEM_ERR);
	}
	raw_close(&peer);
	close_service();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bytes_test(args_of_chunks),
		bytes_test(args_joined),
		bytes_test(args_pulled),
		bytes_test(args_of_records),
		bytes_test(args_of_whole_records),
		bytes_test(replies_by_chunk),
		bytes_test(replies_over_tcp),
		bytes_test(own_memory_is_not_copied),
		bytes_test(bad_results),
	};

	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
