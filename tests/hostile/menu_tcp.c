/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * menu_tcp.c - attacks over TCP, by sockets of our own
 *
 * Operation:  Connections that do not read, read slowly, say nothing, say it in odd fragments, or nonsense.
 * Memory:     Little: what is not read waits in the kernel and in leatd.
 * Threads:    One.
 * Errors:     A connection that was cut is opened again where the attack needs it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "hostile.h"
#include "nfs3.h"

#define READ_BYTES (1u << 20)
#define BIG_READS 8u /* that the large file has room for */
#define LAST_FRAGMENT 0x80000000u
#define SMALL_BUFFER 16384
#define DRY_BYTES 4096u

/* Opens up to @n connections. Return: how many there are. */
static unsigned dial_many(struct attack_run *r, int *fds, unsigned n, int rcvbuf)
{
	unsigned got = 0;

	while (got < n && !run_over(r)) {
		int fd = tcp_dial(r, rcvbuf);

		if (fd < 0)
			break;
		fds[got++] = fd;
	}
	return got;
}

static bool is_cut(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static void ask_much(struct attack_run *r, int fd, unsigned calls, bool lists)
{
	struct rpc_call c;

	for (unsigned i = 0; i < calls; i++) {
		if (lists)
			call_list(&c, run_rand(r, UINT32_MAX), &r->list, READ_BYTES);
		else
			call_read(&c, run_rand(r, UINT32_MAX), &r->big,
				  (uint64_t)run_rand(r, BIG_READS) * READ_BYTES, READ_BYTES);
		if (!tcp_put(fd, &c))
			break;
	}
}

/* Many megabytes are asked for on each connection, and read a little at a time, or not at all. */
static void read_slowly(struct attack_run *r, bool at_all, bool lists)
{
	unsigned n = MIN(r->count, 40u), left = 0;
	int *fds = calloc(n, sizeof(*fds));
	uint64_t bytes = 0;

	n = dial_many(r, fds, n, SMALL_BUFFER);
	for (unsigned i = 0; i < n; i++)
		ask_much(r, fds[i], 16, lists);
	while (!run_over(r)) {
		for (unsigned i = 0; i < n && at_all; i++) {
			uint8_t some[DRY_BYTES];
			ssize_t got = recv(fds[i], some, sizeof(some), MSG_DONTWAIT);

			bytes += got > 0 ? (uint64_t)got : 0;
			if (!run_rand(r, 1000))
				ask_much(r, fds[i], 4, lists);
		}
		run_nap(r, 10);
	}
	for (unsigned i = 0; i < n; i++) {
		char byte;

		left += recv(fds[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
	}
	snprintf(r->said, sizeof(r->said), "%u connections, %llu KiB read, %u with more to read", n,
		 (unsigned long long)bytes / 1024, left);
	free(fds);
}

static void attack_slow(struct attack_run *r)
{
	read_slowly(r, true, false);
}

static void attack_deaf(struct attack_run *r)
{
	read_slowly(r, false, run_rand(r, 2));
}

static void attack_lists(struct attack_run *r)
{
	read_slowly(r, true, true);
}

/* As many connections as there can be; those that are cut come again. */
static void attack_idle(struct attack_run *r)
{
	int *fds = calloc(r->count, sizeof(*fds));
	unsigned n = dial_many(r, fds, r->count, 0), most = n, again = 0;

	while (!run_over(r)) {
		for (unsigned i = 0; i < n; i++) {
			if (!is_cut(fds[i]))
				continue;
			close(fds[i]);
			fds[i] = fds[--n];
			again++;
		}
		n += dial_many(r, fds + n, MIN(r->count - n, 16u), 0);
		most = MAX(most, n);
		run_nap(r, 20);
	}
	snprintf(r->said, sizeof(r->said), "%u connections at most, %u were cut", most, again);
	free(fds);
}

static bool send_all(struct attack_run *r, int fd, const void *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		ssize_t n;

		if (run_over(r) || poll(&p, 1, 100) < 0)
			return false;
		n = send(fd, (const uint8_t *)bytes + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
			return false;
		at += n > 0 ? (size_t)n : 0;
	}
	return true;
}

static bool send_mark(struct attack_run *r, int fd, uint32_t mark)
{
	mark = htonl(mark);
	return send_all(r, fd, &mark, 4);
}

/* A WRITE of @len bytes, which follow the header. */
static void write_begin(struct attack_run *r, struct rpc_call *c, uint32_t len)
{
	call_begin(c, run_rand(r, UINT32_MAX), NFS_PROGRAM, NFSPROC3_WRITE);
	call_fh(c, &r->big); /* which is not ours to write to */
	call_word(c, 0);
	call_word(c, 0);
	call_word(c, len);
	call_word(c, UNSTABLE);
	call_word(c, len);
}

/* ... as long as there can be */
static uint32_t begin_write(struct attack_run *r, struct rpc_call *c)
{
	write_begin(r, c, READ_BYTES);
	return READ_BYTES;
}

/* One record in fragments of a kind. Return: false if the connection is gone. */
static bool send_fragments(struct attack_run *r, int fd, const uint8_t *junk)
{
	struct rpc_call c;
	uint32_t len = begin_write(r, &c), part;

	switch (run_rand(r, 6)) {
	case 0: /* two, of which the second never ends */
		return send_mark(r, fd, c.len + len / 2) && send_all(r, fd, c.bytes, c.len) &&
		       send_all(r, fd, junk, len / 2) && send_mark(r, fd, LAST_FRAGMENT | (len / 2)) &&
		       send_all(r, fd, junk, len / 2 - 1);
	case 1: /* one that cannot be */
		return send_mark(r, fd, 0x7fffffff - run_rand(r, 2)) && send_all(r, fd, junk, READ_BYTES);
	case 2: /* tiny ones, and more and more of them */
		for (unsigned i = 0; i < 4096; i++)
			if (!send_mark(r, fd, 1) || !send_all(r, fd, junk, 1))
				return false;
		return true;
	case 3: /* nothing in them */
		for (unsigned i = 0; i < 4096; i++)
			if (!send_mark(r, fd, 0))
				return false;
		return true;
	case 4: /* a whole record, in fragments of any length */
		for (uint32_t at = 0; at < c.len + len; at += part) {
			uint32_t left = c.len + len - at;

			part = 1 + run_rand(r, 1u << run_rand(r, 20));
			part = MIN(left, part);
			if (at < c.len)
				part = MIN(part, c.len - at);
			if (!send_mark(r, fd, part | (part == left ? LAST_FRAGMENT : 0)) ||
			    !send_all(r, fd, at < c.len ? c.bytes + at : junk, part))
				return false;
		}
		return true;
	default: /* the limit of a call, as a header without an end */
		return send_mark(r, fd, READ_BYTES + 8192) && send_all(r, fd, c.bytes, 40) &&
		       send_all(r, fd, junk, READ_BYTES);
	}
}

static void attack_fragments(struct attack_run *r)
{
	unsigned n = MIN(r->count, 64u), records = 0;
	uint8_t *junk = calloc(1, READ_BYTES);
	int *fds = calloc(n, sizeof(*fds));

	n = dial_many(r, fds, n, 0);
	for (unsigned i = 0; !run_over(r) && n; i = (i + 1) % n) {
		if (!send_fragments(r, fds[i], junk)) {
			close(fds[i]);
			fds[i] = tcp_dial(r, 0);
			if (fds[i] < 0)
				fds[i] = fds[--n];
			i = 0;
			continue;
		}
		records++;
	}
	snprintf(r->said, sizeof(r->said), "%u records in odd fragments", records);
	free(junk);
	free(fds);
}

/* Half of a WRITE on each connection, and then nothing. */
static void attack_half(struct attack_run *r)
{
	unsigned n = MIN(r->count, 256u), sent = 0;
	uint8_t *junk = calloc(1, READ_BYTES);
	int *fds = calloc(n, sizeof(*fds));
	struct rpc_call c;

	n = dial_many(r, fds, n, 0);
	for (unsigned i = 0; i < n && !run_over(r); i++) {
		uint32_t len = begin_write(r, &c);

		sent += send_mark(r, fds[i], LAST_FRAGMENT | (c.len + len)) &&
			send_all(r, fds[i], c.bytes, c.len) && send_all(r, fds[i], junk, len - 1);
	}
	while (!run_over(r))
		run_nap(r, 100);
	snprintf(r->said, sizeof(r->said), "%u WRITEs that lack a byte, on %u connections", sent, n);
	free(junk);
	free(fds);
}

/* WRITEs of one size that take a buffer each, then fewer of a larger one. Most of them end, and the others go on
 * for as long as we do: what they hold lies all over the server's memory. */
static void attack_pins(struct attack_run *r)
{
	static const struct {
		uint32_t len, keep; /* one in @keep stays connected */
	} kinds[] = { { 9000, 16 }, { 60000, 16 }, { 250000, 4 }, { 1000000, 2 } };
	unsigned n = MIN(r->count, 256u), kept = 0;
	uint8_t *junk = calloc(1, 4096);
	int *fds = calloc(n * ARRAY_SIZE(kinds), sizeof(*fds));

	for (unsigned k = 0; k < ARRAY_SIZE(kinds) && !run_over(r); k++) {
		unsigned from = kept, now = dial_many(r, fds + from, n, 0);
		struct rpc_call c;

		for (unsigned i = from; i < from + now; i++) {
			write_begin(r, &c, kinds[k].len);
			(void)(send_mark(r, fds[i], LAST_FRAGMENT | (c.len + kinds[k].len)) &&
			       send_all(r, fds[i], c.bytes, c.len) && send_all(r, fds[i], junk, 2048));
		}
		run_nap(r, 200);
		for (unsigned i = from; i < from + now; i++) {
			if ((i - from) % kinds[k].keep)
				close(fds[i]);
			else
				fds[kept++] = fds[i];
		}
	}
	while (!run_over(r)) {
		run_nap(r, 1000);
		for (unsigned i = 0; i < kept; i++)
			(void)send(fds[i], junk, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	snprintf(r->said, sizeof(r->said), "%u WRITEs that go on for ever, a byte a second", kept);
	free(junk);
	free(fds);
}

static void make_noise(struct attack_run *r, struct rpc_call *c)
{
	static const struct {
		uint32_t prog, procs;
	} programs[] = { { 100003, 22 }, { 100005, 6 }, { 100227, 3 } };
	unsigned p = run_rand(r, 4) ? 0 : run_rand(r, 3);
	uint32_t value;

	call_begin(c, run_rand(r, UINT32_MAX), programs[p].prog, run_rand(r, programs[p].procs));
	call_fh(c, run_rand(r, 2) ? &r->area : run_rand(r, 2) ? &r->list : &r->big);
	for (unsigned i = run_rand(r, 40); i; i--)
		call_word(c, run_rand(r, 2) ? run_rand(r, 9) : run_word(r));
	if (!run_rand(r, 4)) {
		value = run_word(r);
		memcpy(c->bytes + run_rand(r, c->len / 4) * 4u, &value, 4);
	}
	if (!run_rand(r, 8))
		c->len = run_rand(r, c->len);
}

static void attack_noise(struct attack_run *r)
{
	unsigned calls = 0, cut = 0;

	while (!run_over(r)) {
		int fd = tcp_dial(r, 0);

		if (fd < 0) {
			run_nap(r, 10);
			continue;
		}
		for (unsigned i = run_rand(r, 200); i && !run_over(r); i--) {
			static uint8_t replies[1 << 16];
			struct rpc_call c;

			make_noise(r, &c);
			calls++;
			if (!tcp_put(fd, &c))
				break;
			if (run_rand(r, 2) && recv(fd, replies, sizeof(replies), MSG_DONTWAIT) == 0) {
				cut++;
				break;
			}
		}
		close(fd);
	}
	snprintf(r->said, sizeof(r->said), "%u calls that make no sense, cut %u times", calls, cut);
}

/* Connections that come and go, with and without a call, gently and by a reset. */
static void attack_churn(struct attack_run *r)
{
	const struct linger reset = { .l_onoff = 1 };
	unsigned n = 0;

	while (!run_over(r)) {
		int fd = tcp_dial(r, 0);

		if (fd < 0) {
			run_nap(r, 5);
			continue;
		}
		n++;
		if (run_rand(r, 2))
			ask_much(r, fd, 1 + run_rand(r, 4), run_rand(r, 2));
		if (run_rand(r, 2))
			(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(fd);
	}
	snprintf(r->said, sizeof(r->said), "%u connections came and went", n);
}

const struct attack attacks_tcp[] = {
	{ "tcp-slow", attack_slow },	       { "tcp-deaf", attack_deaf },   { "tcp-lists", attack_lists },
	{ "tcp-idle", attack_idle },	       { "tcp-half", attack_half },   { "tcp-noise", attack_noise },
	{ "tcp-fragments", attack_fragments }, { "tcp-churn", attack_churn }, { "tcp-pins", attack_pins },
	{ 0 },
};
