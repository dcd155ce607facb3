/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_srv_tcp_limits.c - what one peer takes over TCP has limits: time, connections, memory
 */
#include "test_srv_tcp.h"

static void silent_peers_are_let_go(void **state)
{
	static const struct rpcrdma_svc_attr attr = { .first_call_ms = 1, .conns_max = 1 };

	(void)state;
	wire_svc_close(&svc);
	close(fd);
	assert_int_equal(wire_svc_open(&svc, "tcp://127.0.0.1:0", NULL, &attr), 0);
	for (unsigned i = 1; i <= 2; i++) { /* the second one can connect after the first one is closed */
		dial();
		while (svc.closed < i)
			rpcrdma_engine_wait(svc.engine, 1000);
		assert_true(closed());
		close(fd);
	}
	fd = -1;
	/* a busy machine may take that millisecond from tear_down() */
	wire_svc_close(&svc);
	assert_int_equal(wire_svc_open(&svc, "tcp://127.0.0.1:0", NULL, NULL), 0);
}

static void no_more_than_so_many(void **state)
{
	static const struct rpcrdma_svc_attr attr = { .conns_max = 2 };
	int first, second;

	(void)state;
	wire_svc_close(&svc);
	close(fd);
	assert_int_equal(wire_svc_open(&svc, "tcp://127.0.0.1:0", NULL, &attr), 0);
	dial();
	first = fd;
	dial();
	second = fd;
	dial();
	assert_true(closed());
	assert_int_equal(svc.conns, 2);
	close(first);
	close(second);
	pump();
}

/* Return: the server's socket of the connection of fd */
static int servers_socket(void)
{
	struct sockaddr_in mine, peer;
	socklen_t bytes = sizeof(mine);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&mine, &bytes), 0);
	for (int i = 0; i < 1024; i++) {
		bytes = sizeof(peer);
		if (!getpeername(i, (struct sockaddr *)&peer, &bytes) && bytes == sizeof(peer) &&
		    peer.sin_port == mine.sin_port)
			return i;
	}
	return -1;
}

static int socket_option(int s, int level, int name)
{
	socklen_t bytes = sizeof(int);
	int value = 0;

	assert_int_equal(getsockopt(s, level, name, &value, &bytes), 0);
	return value;
}

/* The kernel ends a connection whose peer's host is gone within a minute, idle or not. */
static void vanished_peers(void **state)
{
	int s = servers_socket();

	(void)state;
	assert_true(s >= 0);
	assert_int_equal(socket_option(s, SOL_SOCKET, SO_KEEPALIVE), 1);
	assert_in_range(socket_option(s, IPPROTO_TCP, TCP_KEEPIDLE) +
			socket_option(s, IPPROTO_TCP, TCP_KEEPINTVL) * socket_option(s, IPPROTO_TCP, TCP_KEEPCNT), 30, 60);
	assert_in_range(socket_option(s, IPPROTO_TCP, TCP_USER_TIMEOUT), 30000, 60000);
}

static const struct rpcrdma_domain_attr small_pool = { .pool_bytes_max = 32 << 20 };

/* Sends @calls GETs of a megabyte each and reads no reply. */
static void ask_and_not_read(uint32_t calls)
{
	out_len = 0;
	for (uint32_t i = 0; i < calls; i++) {
		size_t at = out_len;

		call_at(at + 4, i, WIRE_GET);
		word_out(1 << 20);
		word_out(WIRE_PLACE);
		mark(at);
	}
	put_bytes(out, out_len);
}

/* Memory of malloc(), which the pool is not part of, minus @before. The malloc() of a sanitizer counts nothing. */
static size_t allocated_since(size_t before)
{
	struct mallinfo2 m = mallinfo2();
	size_t now = m.uordblks + m.hblkhd;

	return now - MIN(before, now);
}

/* The server has allocated something since @before, but not more than @most. */
static void assert_allocated(size_t before, size_t most)
{
	if (before)
		assert_in_range(allocated_since(before), 1, most);
}

/* Calls that cannot be served yet stay in the socket, whatever the number of their fragments. */
static void fragments_stay_in_the_socket(void **state)
{
	size_t before, first, sent = 0;
	ssize_t n = 0;
	uint8_t m[4];

	(void)state;
	wire_svc_close(&svc);
	close(fd);
	assert_int_equal(wire_svc_open(&svc, "tcp://127.0.0.1:0", &small_pool, NULL), 0);
	dial();
	svc.hold = true;
	put_call(0, 7, 1 << 20);
	first = out_len / 2;
	before = allocated_since(0);
	for (unsigned i = 0; i < 60 && n >= 0; i++) {
		put_be32(m, (uint32_t)first - 4);
		if (send(fd, m, 4, MSG_DONTWAIT | MSG_NOSIGNAL) != 4)
			break;
		for (size_t at = 4; at < out_len && n >= 0;) {
			if (at == first) {
				put_be32(m, LAST | (uint32_t)(out_len - first));
				if (send(fd, m, 4, MSG_DONTWAIT | MSG_NOSIGNAL) != 4)
					break;
			}
			for (int idle = 0; idle < IDLE_ROUNDS; idle++) {
				n = send(fd, out + at, (at < first ? first : out_len) - at,
					 MSG_DONTWAIT | MSG_NOSIGNAL);
				if (n > 0)
					break;
				pump();
			}
			at += n > 0 ? (size_t)n : 0;
			sent += n > 0 ? (size_t)n : 0;
		}
		pump();
	}
	print_message("%zu KiB were sent, %zu KiB allocated\n", sent >> 10, (allocated_since(before)) >> 10);
	assert_allocated(before, 256 << 10);
	assert_in_range(svc.nheld, 1, 24);
	wire_svc_release(&svc);
	close(fd);
	dial();
}

/* Replies that the peer does not read are in memory of the pool, and other connections still get some of it. */
static void long_results_are_not_taken(void **state)
{
	struct rr_budget *answers;
	size_t before;
	int greedy;

	(void)state;
	wire_svc_close(&svc);
	close(fd);
	assert_int_equal(wire_svc_open(&svc, "tcp://127.0.0.1:0", &small_pool, NULL), 0);
	answers = &svc.domain->clients.budgets[RR_SHARE_REPLIES];
	dial();
	before = allocated_since(0);
	out_len = 0;
	for (uint32_t i = 0; i < 60; i++) {
		size_t at = out_len;

		call_at(at + 4, i, WIRE_BIG);
		word_out(300 << 10);
		mark(at);
	}
	put_bytes(out, out_len);
	assert_allocated(before, 4 << 20);
	assert_in_range(answers->used, 1 << 20, answers->max);
	greedy = fd;
	dial();
	call_at(4, 3, WIRE_BIG);
	word_out(100 << 10);
	mark(0);
	put_bytes(out, out_len);
	assert_int_equal(reply(), 28 + (100 << 10));
	close(fd);
	fd = greedy;
	for (uint32_t i = 0; i < 60; i++)
		assert_int_equal(reply(), 28 + (300 << 10));
}

/* Sends 60 calls at once over a new connection. Return: its socket */
static int put_many(void)
{
	dial();
	out_len = 0;
	for (uint32_t k = 0; k < 60; k++) {
		size_t at = out_len;

		call_at(at + 4, k, WIRE_GET);
		word_out(16);
		word_out(WIRE_PLACE);
		mark(at);
	}
	put_bytes(out, out_len);
	return fd;
}

/* Lets the calls of @fds return, and reads their replies. */
static void take_many(const int *fds, unsigned n)
{
	for (int i = 0; i < 100; i++) {
		wire_svc_release(&svc);
		pump();
	}
	for (unsigned i = 0; i < n; i++) {
		fd = fds[i];
		for (uint32_t k = 0; k < 60; k++)
			assert_int_equal(reply(), 48);
		close(fd);
	}
	pump();
}

static const struct rpcrdma_domain_attr small_msgs = { .msg_bytes_max = RPCRDMA_MSG_BYTES_MIN };
static const struct rpcrdma_svc_attr large_calls = { .req_bytes = 14 << 10 };

/* Memory limits the number of requests in progress, but each connection always gets some. */
static void requests_are_charged(void **state)
{
	struct rr_budget *msgs;
	unsigned extra; /* requests that the first 8 of each connection leave to charge */
	int fds[4];

	(void)state;
	wire_svc_close(&svc);
	close(fd);
	assert_int_equal(wire_svc_open(&svc, "tcp://127.0.0.1:0", &small_msgs, &large_calls), 0);
	msgs = &svc.domain->clients.budgets[RR_SHARE_MSGS];
	svc.hold = true;
	for (unsigned i = 0; i < 4; i++) {
		fds[i] = put_many();
		assert_in_range(svc.calls, 8 * (i + 1), 100);
		extra = svc.calls - 8 * (i + 1);
		assert_true(extra > 0);
		assert_in_range(msgs->used, extra * large_calls.req_bytes, msgs->max);
	}
	take_many(fds, 4);
	assert_int_equal(msgs->used, 0);
	dial();
}

/* Receives and requests share one limit: if one client has its share of receives, and another one all requests that it
 * gets, a third one can still connect. */
static void requests_leave_receives(void **state)
{
	static const struct rpcrdma_domain_attr some = { .msg_bytes_max = 4 << 20 };
	static const struct rpcrdma_client_id ids[] = { { .kind = RPCRDMA_CLIENT_USER, .key = 7 },
							{ .kind = RPCRDMA_CLIENT_USER, .key = 8 } };
	const size_t first = (8 + 4) * 4096; /* of a new connection */
	struct rr_client *local[2];
	struct rr_budget *recvs;
	size_t charged = 0;
	int fds[4];

	(void)state;
	wire_svc_close(&svc);
	close(fd);
	assert_int_equal(wire_svc_open(&svc, "tcp://127.0.0.1:0", &some, &large_calls), 0);
	recvs = &svc.domain->clients.budgets[RR_SHARE_RECVS];
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(rr_client_get(&svc.domain->clients, &ids[i], &local[i]), 0);
	while (!rr_client_charge(local[0], RR_SHARE_RECVS, 4096))
		charged += 4096;
	svc.hold = true;
	for (unsigned i = 0; i < 4; i++)
		fds[i] = put_many();
	assert_in_range(recvs->used, charged + 1, recvs->max);
	assert_int_equal(rr_client_charge(local[1], RR_SHARE_RECVS, first), 0);
	rr_client_uncharge(local[1], RR_SHARE_RECVS, first);
	rr_client_uncharge(local[0], RR_SHARE_RECVS, charged);
	take_many(fds, 4);
	assert_int_equal(recvs->used, 0);
	for (unsigned i = 0; i < 2; i++)
		rr_client_put(local[i]);
	dial();
}

/* Peers that do not read their replies hold at most their share of the pool: others are served. */
static void a_share_of_the_pool(void **state)
{
	static const struct rpcrdma_svc_attr patient = { .stall_ms = 3600000 }; /* on the slowest machine */
	int greedy[3]; /* one more, of the same client, finds room; how many after it depends on the kernel's buffers */

	(void)state;
	wire_svc_close(&svc);
	close(fd);
	assert_int_equal(wire_svc_open(&svc, "tcp://127.0.0.1:0", &small_pool, &patient), 0);
	for (int i = 0; i < 3; i++) {
		dial();
		ask_and_not_read(60);
		greedy[i] = fd;
	}
	dial();
	out_len = 0;
	put_call(0, 7, 1 << 20);
	put_bytes(out, out_len);
	assert_put(7, 1 << 20);
	close(fd);
	for (int i = 0; i < 3; i++) { /* these get all replies when they read */
		fd = greedy[i];
		for (uint32_t k = 0; k < 60; k++) {
			assert_int_equal(reply(), 32 + (1 << 20));
			assert_int_equal(get_be32(in), k); /* in the order of the calls */
		}
		close(fd);
	}
	dial();
}

/* A peer that neither reads nor sends is disconnected. */
static void stalled_peers_are_let_go(void **state)
{
	static const struct rpcrdma_svc_attr attr = { .stall_ms = 20 };

	(void)state;
	wire_svc_close(&svc);
	close(fd);
	assert_int_equal(wire_svc_open(&svc, "tcp://127.0.0.1:0", &small_pool, &attr), 0);
	dial();
	ask_and_not_read(60); /* reads nothing */
	while (!svc.closed)
		rpcrdma_engine_wait(svc.engine, 1000);
	close(fd);
	dial();
	put_call(0, 7, 1 << 20);
	put_bytes(out, 100000); /* an incomplete call */
	while (svc.closed < 2)
		rpcrdma_engine_wait(svc.engine, 1000);
	close(fd);
	dial();
	call_at(4, 99, WIRE_NULL); /* a peer without a call in progress may be idle */
	mark(0);
	put_bytes(out, out_len);
	assert_int_equal(reply(), 24);
	for (int i = 0; i < 3; i++)
		rpcrdma_engine_wait(svc.engine, 60);
	assert_int_equal(svc.closed, 2);
}

/* A connection whose call waits for memory is not disconnected. */
static void who_waits_for_memory_is_kept(void **state)
{
	static const struct rpcrdma_svc_attr attr = { .stall_ms = 20 };
	struct rpcrdma_buf *taken[128];
	unsigned n = 0;

	(void)state;
	wire_svc_close(&svc);
	close(fd);
	assert_int_equal(wire_svc_open(&svc, "tcp://127.0.0.1:0", &small_pool, &attr), 0);
	while (n < ARRAY_SIZE(taken) && !rr_buf_get(svc.engine, RR_ZONE_CALLS, RPCRDMA_BUF_LEAST, &taken[n]))
		n++;
	assert_in_range(n, 1, ARRAY_SIZE(taken) - 1);
	dial();
	call_at(4, 3, WIRE_LONG);
	word_out(5000);
	out_len += 20000;
	mark(0);
	put_bytes(out, out_len);
	for (int i = 0; i < 5; i++)
		rpcrdma_engine_wait(svc.engine, 60);
	assert_in_range(svc.engine->stats.buf_waits, 1, 10);
	assert_int_equal(svc.closed, 0);
	while (n)
		rpcrdma_buf_put(svc.engine, taken[--n]);
	assert_int_equal(reply(), 24);
}

#define WAITING 300

/* The listen queue is as long as the kernel permits. */
static void many_wait_to_be_accepted(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(rpcrdma_listener_addr(svc.listener)->port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	FILE *f = fopen("/proc/sys/net/core/somaxconn", "re");
	unsigned most = 0;
	int fds[WAITING];

	(void)state;
	if (!f || fscanf(f, "%u", &most) != 1 || most < WAITING) {
		if (f)
			fclose(f);
		print_message("net.core.somaxconn is %u: not tried\n", most);
		skip();
	}
	fclose(f);
	for (int i = 0; i < WAITING; i++) {
		struct pollfd p = { .events = POLLOUT };

		p.fd = fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		assert_true(p.fd >= 0);
		assert_true(!connect(p.fd, (struct sockaddr *)&a, sizeof(a)) || errno == EINPROGRESS);
		assert_int_equal(poll(&p, 1, 5000), 1); /* at once, unless the queue is full */
		assert_false(p.revents & (POLLERR | POLLHUP));
	}
	pump();
	for (int i = 0; i < WAITING; i++)
		close(fds[i]);
	pump();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tcp_test(silent_peers_are_let_go),
		tcp_test(no_more_than_so_many),
		tcp_test(vanished_peers),
		tcp_test(many_wait_to_be_accepted),
		tcp_test(fragments_stay_in_the_socket),
		tcp_test(long_results_are_not_taken),
		tcp_test(requests_are_charged),
		tcp_test(requests_leave_receives),
		tcp_test(a_share_of_the_pool),
		tcp_test(stalled_peers_are_let_go),
		tcp_test(who_waits_for_memory_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
