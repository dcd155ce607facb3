/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * wakeups.c - how often the threads of a client sleep for a synchronous call
 *
 *     wakeups URL [CALLS]
 *
 * Operation:  Makes CALLS calls (2000) of NULL and GETATTR: on the thread that owns the session ("own"); with the service
 *             thread, each call when that thread sleeps ("asleep"); and with the service thread, one call after the
 *             other ("service"), where the counts depend on how fast the threads are. Prints, per call, the voluntary
 *             context switches of the calling thread and of the service thread, as the kernel counts them, their sum,
 *             and the median time of a call.
 * Threads:    The calling thread and the service thread of the session.
 * Errors:     A call that fails ends the program with status 1.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "leat.h"
#include "thread_state.h"

static void check(const char *what, int64_t rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "wakeups: %s: %s\n", what, strerror((int)-rc));
	exit(1);
}

static int call_null(struct leat *m)
{
	return leat_null(m);
}

static int call_getattr(struct leat *m)
{
	struct stat st;

	return leat_stat(m, "", &st);
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

struct run {
	struct leat *m;
	const char *name;
	int (*call)(struct leat *m);
	pid_t service;        /* 0: none */
	bool asleep;
	unsigned calls;
	uint64_t *ns;         /* of each call */
};

static void make_calls(struct run *r)
{
	for (unsigned i = 0; i < r->calls; i++) {
		uint64_t start;

		if (r->asleep)
			thread_await_sleep(r->service);
		start = clock_now_ns();
		check(r->name, r->call(r->m));
		r->ns[i] = clock_now_ns() - start;
	}
	if (r->service)
		thread_await_sleep(r->service);
}

static void measure(struct run r, const char *name, int (*call)(struct leat *m))
{
	uint64_t own = thread_switches(gettid()), of_service = r.service ? thread_switches(r.service) : 0;

	r.name = name;
	r.call = call;
	make_calls(&r);
	own = thread_switches(gettid()) - own;
	of_service = r.service ? thread_switches(r.service) - of_service : 0;
	qsort(r.ns, r.calls, sizeof(*r.ns), compare);
	printf("%-8s %-8s %8.2f %8.2f %8.2f %10.1f\n", name, r.asleep ? "asleep" : r.service ? "service" : "own",
	       (double)own / r.calls, (double)of_service / r.calls, (double)(own + of_service) / r.calls,
	       (double)r.ns[r.calls / 2] / 1e3);
}

static void measure_all(struct run r)
{
	measure(r, "NULL", call_null);
	measure(r, "GETATTR", call_getattr);
}

static void note_thread(void *arg, int64_t result)
{
	(void)result;
	__atomic_store_n((pid_t *)arg, gettid(), __ATOMIC_RELEASE);
}

static pid_t start_service(struct leat *m)
{
	struct leat_cb cb = { .fn = note_thread };
	pid_t service = 0;

	cb.user_data = &service;
	check("leat_service_start", leat_service_start(leat_session(m)));
	check("leat_aio_null", leat_aio_null(m, cb));
	while (!__atomic_load_n(&service, __ATOMIC_ACQUIRE))
		usleep(100);
	return service;
}

int main(int argc, char **argv)
{
	struct leat_opts *opts = leat_opts_create();
	struct run r = { .calls = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 2000 };

	r.ns = calloc(r.calls, sizeof(*r.ns));
	if (argc < 2 || argc > 3 || !r.calls || !opts || !r.ns) {
		fprintf(stderr, "usage: wakeups URL [CALLS]\n");
		return 2;
	}
	check("cache=none", leat_set(opts, "cache", "none"));
	check(argv[1], leat_mount(argv[1], opts, &r.m));
	leat_opts_destroy(opts);
	puts("call     loop       caller  service      sum     p50 us");
	measure_all(r);
	r.service = start_service(r.m);
	r.asleep = true;
	measure_all(r);
	r.asleep = false;
	measure_all(r);
	leat_umount(r.m);
	free(r.ns);
	return 0;
}
