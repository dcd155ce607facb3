/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * withholder.c - clients that have made calls, and do not move the data of these calls
 *
 * Operation: The local fabric copies memory that the server cannot reach by a function here, which waits. A TCP connection
 *            has a small receive buffer.
 * Memory:    Static.
 * Threads:   The test's; that of the engine, after withholder_run().
 * Errors:    Asserted with cmocka.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "base/wire.h"
#include "lab.h"
#include "local.h"
#include "withholder.h"

#define HEAD_WORDS 11u
#define LAST_FRAGMENT 0x80000000u

static struct {
	const uint8_t *from, *to; /* withheld */
	struct rpcrdma_domain *domain;
	struct rpcrdma_engine *engine;
	pthread_t thread;
	bool runs;
	atomic_bool ends;
	sem_t go_on;
	int fd;
} w = { .fd = -1 };

/* One at a time. */
static bool copy(const struct rr_mr *mr, int fd, uint64_t addr, uint64_t off, uint32_t len, bool write)
{
	uint8_t *at = (uint8_t *)(uintptr_t)addr;

	(void)mr;
	if (at >= w.from && at < w.to) {
		while (sem_wait(&w.go_on))
			;
		return false;
	}
	return (write ? pread(fd, at, len, (off_t)off) : pwrite(fd, at, len, (off_t)off)) == (ssize_t)len;
}

struct rpcrdma_engine *withholder_local(const uint8_t *from, size_t bytes)
{
	static const struct rr_local_attr local = { .vm = RR_LOCAL_VM_NEVER, .limits.rd_atom_max = 1, .copy = copy };
	struct rpcrdma_domain_attr attr = { .lab = LAB(.local = &local) };

	w.from = from + WITHHOLDER_UNIT;
	w.to = from + bytes;
	atomic_store(&w.ends, false);
	assert_int_equal(sem_init(&w.go_on, 0, 0), 0);
	assert_int_equal(rpcrdma_domain_create(&attr, &w.domain), 0);
	assert_int_equal(rpcrdma_engine_create(w.domain, NULL, &w.engine), 0);
	return w.engine;
}

static void *run(void *arg)
{
	(void)arg;
	while (!atomic_load(&w.ends))
		(void)rpcrdma_engine_wait(w.engine, 1);
	return NULL;
}

void withholder_run(void)
{
	assert_int_equal(pthread_create(&w.thread, NULL, run, NULL), 0);
	w.runs = true;
}

void withholder_dial(uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int few = 4096;

	w.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setsockopt(w.fd, SOL_SOCKET, SO_RCVBUF, &few, sizeof(few)), 0);
	assert_int_equal(connect(w.fd, (struct sockaddr *)&to, sizeof(to)), 0);
}

void withholder_send(uint32_t prog, uint32_t vers, uint32_t proc, xdrproc_t encode, void *args)
{
	const uint32_t head[HEAD_WORDS] = { 0, 1234, 0, 2, prog, vers, proc };
	uint8_t msg[512];
	size_t bytes = sizeof(head);
	XDR x;

	xdrmem_create(&x, (char *)msg + bytes, sizeof(msg) - sizeof(head), XDR_ENCODE);
	assert_true(encode(&x, args));
	bytes += xdr_getpos(&x);
	xdr_destroy(&x);
	for (size_t i = 0; i < HEAD_WORDS; i++)
		put_be32(msg + 4 * i, head[i]);
	put_be32(msg, LAST_FRAGMENT | (uint32_t)(bytes - 4));
	assert_int_equal(send(w.fd, msg, bytes, 0), bytes);
}

void withholder_let_go(void)
{
	if (!w.runs)
		return;
	atomic_store(&w.ends, true);
	sem_post(&w.go_on);
	assert_int_equal(pthread_join(w.thread, NULL), 0);
	w.runs = false;
}

void withholder_end(void)
{
	if (w.fd >= 0)
		close(w.fd);
	w.fd = -1;
	rpcrdma_engine_destroy(w.engine);
	rpcrdma_domain_destroy(w.domain);
	w.engine = NULL;
	w.domain = NULL;
}
