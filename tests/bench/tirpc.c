/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tirpc.c - handles of librpcrdma_tirpc beside libtirpc's own, with the same filters and dispatch function
 *
 *     tirpc null [--one-cpu]    NULL calls, one caller: UNIX socket, TCP, local (svc_run() and rpcrdma_svc_run())
 *     tirpc threads             64 threads: on one CLIENT over local, and on a CLIENT each over TCP
 *     tirpc bulk                results of 1 MiB and 16 MiB: TCP, and local by the table of bulk data
 *     tirpc idle                memory of a service for each of 256 idle clients, after 1 call and after 100
 *
 * ROUNDS (9) and MS (300) of the environment: rounds, in which the kinds take turns, and time of a turn. RDMA: address of an
 * RDMA device of this host, for a kind more of null and bulk.
 *
 * Operation:  A server process for each kind, a client for each server here. Rates are medians of the rounds, and the
 *             ratio is between medians. A latency is of all calls of a kind.
 * Threads:    The caller's, or 64 of them.
 * Errors:     A call that fails ends the program with status 1.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "rpcrdma_mem.h"
#include "rpcrdma_tirpc.h"

#define PROG 0x20000777u
#define VERS 1u
#define GET 1u                 /* unsigned n -> opaque of n bytes */
#define BYTES_MAX (16u << 20)
#define THREADS 64
#define IDLE 256
#define SAMPLES 200000u

static const struct rpcrdma_bulk table[] = {
	{ .prog = PROG, .vers = VERS, .proc = 0, .reply_max = 4 },
	{ .prog = PROG, .vers = VERS, .proc = GET, .results = 1, .data_max = BYTES_MAX, .reply_max = 4 },
};

struct data {
	u_int len;
	char *val;
};

static bool_t xdr_data(XDR *xdrs, struct data *d)
{
	return xdr_bytes(xdrs, &d->val, &d->len, BYTES_MAX);
}

/* xdr_void() has a type without arguments */
static bool_t xdr_nothing(XDR *xdrs, void *none)
{
	(void)xdrs;
	(void)none;
	return TRUE;
}

static void die(const char *what)
{
	fprintf(stderr, "tirpc: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- servers ---- */

enum kind { UNIX, TCP, LOCAL, SPIN, EVENT, OUR_TCP, RDMA };

static const char *const kinds[] = {
	[UNIX] = "UNIX socket", [TCP] = "TCP", [LOCAL] = "local, svc_run()", [SPIN] = "local, rpcrdma_svc_run()",
	[EVENT] = "local, poll=event", [OUR_TCP] = "TCP of librpcrdma_tirpc",
	[RDMA] = "RDMA, rpcrdma_svc_run()",
};

struct server {
	enum kind kind;
	pid_t pid;
	char path[64];
	uint16_t port;
};

static char *source; /* of results */

static void dispatch(struct svc_req *rq, SVCXPRT *xprt)
{
	struct data d = { .val = source };

	switch (rq->rq_proc) {
	case 0:
		svc_sendreply(xprt, (xdrproc_t)xdr_nothing, NULL);
		break;
	case GET:
		if (!svc_getargs(xprt, (xdrproc_t)xdr_u_int, &d.len) || d.len > BYTES_MAX)
			svcerr_decode(xprt);
		else
			svc_sendreply(xprt, (xdrproc_t)xdr_data, &d);
		break;
	default:
		svcerr_noproc(xprt);
	}
}

static int listening(const struct server *s, uint16_t *ret_port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(in);
	int fd = socket(s->kind == UNIX ? AF_UNIX : AF_INET, SOCK_STREAM, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", s->path);
	if (fd < 0 || (s->kind == UNIX ? bind(fd, (struct sockaddr *)&un, sizeof(un)) : bind(fd, (struct sockaddr *)&in, sizeof(in))) ||
	    listen(fd, 512))
		die("listen");
	if (s->kind != UNIX && getsockname(fd, (struct sockaddr *)&in, &len))
		die("getsockname");
	*ret_port = ntohs(in.sin_port);
	return fd;
}

static void tell(int fd, uint16_t port)
{
	if (write(fd, &port, sizeof(port)) != (ssize_t)sizeof(port))
		die("write");
	close(fd);
}

static void serve_sockets(struct server *s, int ready)
{
	uint16_t port;
	SVCXPRT *xprt = svc_vc_create(listening(s, &port), 0, 0);

	source = calloc(1, BYTES_MAX);
	if (!xprt || !source || !svc_reg(xprt, PROG, VERS, dispatch, NULL))
		die("svc_reg");
	tell(ready, port);
	svc_run();
}

static void url_of(const struct server *s, char *url, size_t bytes)
{
	if (s->kind == OUR_TCP)
		snprintf(url, bytes, "tcp://127.0.0.1:%u", s->port);
	else if (s->kind == RDMA)
		snprintf(url, bytes, "rdma://%s:%u", getenv("RDMA"), s->port);
	else
		snprintf(url, bytes, "local://%s", s->path);
}

static void serve_ours(struct server *s, int ready)
{
	const struct rpcrdma_tirpc_attr attr = {
		.size = sizeof(attr), .bulk = table, .nbulk = ARRAY_SIZE(table),
		.poll = s->kind == SPIN || s->kind == RDMA ? RPCRDMA_POLL_ADAPTIVE : RPCRDMA_POLL_EVENT,
	};
	char url[80];
	int rc;

	if (s->kind == OUR_TCP || s->kind == RDMA)
		close(listening(s, &s->port)); /* a free one */
	url_of(s, url, sizeof(url));
	rc = rpcrdma_svc_create(dispatch, PROG, VERS, url, &attr);
	errno = -rc;
	if (rc || rpcrdma_mem_alloc(rpcrdma_tirpc_domain(), BYTES_MAX, (void **)&source))
		die("rpcrdma_svc_create");
	tell(ready, s->port);
	if (s->kind == LOCAL || s->kind == OUR_TCP)
		svc_run();
	else
		rpcrdma_svc_run();
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static char dir[] = "/tmp/tirpc-bench.XXXXXX";

static void start(struct server *s, enum kind kind, int cpu)
{
	int ready[2];

	s->kind = kind;
	snprintf(s->path, sizeof(s->path), "%s/%d", dir, (int)kind);
	if (pipe(ready))
		die("pipe");
	s->pid = fork();
	if (!s->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		if (cpu >= 0)
			pin(cpu);
		if (kind <= TCP)
			serve_sockets(s, ready[1]);
		else
			serve_ours(s, ready[1]);
		_exit(1);
	}
	close(ready[1]);
	if (s->pid < 0 || read(ready[0], &s->port, sizeof(s->port)) != (ssize_t)sizeof(s->port))
		die("server");
	close(ready[0]);
}

static void stop(struct server *s)
{
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	unlink(s->path);
}

/* ---- clients ---- */

static CLIENT *open_client(const struct server *s, uint32_t credits)
{
	const struct rpcrdma_tirpc_attr attr = {
		.size = sizeof(attr), .bulk = table, .nbulk = ARRAY_SIZE(table), .credits = credits,
		.poll = s->kind == EVENT ? RPCRDMA_POLL_EVENT : RPCRDMA_POLL_ADAPTIVE,
	};
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(s->port),
	};
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = RPC_ANYSOCK;
	char url[80];
	CLIENT *c;

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", s->path);
	url_of(s, url, sizeof(url));
	c = s->kind == UNIX ? clntunix_create(&un, PROG, VERS, &fd, 0, 0) :
	    s->kind == TCP  ? clnttcp_create(&in, PROG, VERS, &fd, 0, 0) : rpcrdma_clnt_create(url, PROG, VERS, &attr);
	if (!c) {
		clnt_pcreateerror("tirpc");
		exit(1);
	}
	return c;
}

static const struct timeval limit = { .tv_sec = 60 };

static void call_null(CLIENT *c)
{
	if (clnt_call(c, NULLPROC, (xdrproc_t)xdr_nothing, NULL, (xdrproc_t)xdr_nothing, NULL, limit)) {
		clnt_perror(c, "tirpc");
		exit(1);
	}
}

static void call_get(CLIENT *c, u_int bytes, char *to)
{
	struct data d = { .len = bytes, .val = to };

	if (clnt_call(c, GET, (xdrproc_t)xdr_u_int, &bytes, (xdrproc_t)xdr_data, &d, limit) || d.len != bytes) {
		clnt_perror(c, "tirpc");
		exit(1);
	}
}

/* ---- measuring ---- */

static unsigned setting(const char *name, unsigned otherwise)
{
	const char *s = getenv(name);

	return s ? (unsigned)strtoul(s, NULL, 10) : otherwise;
}

static int compare_rates(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

#define ROUNDS_MAX 99u

struct run {
	struct server server;
	CLIENT *clnt;
	double rate[ROUNDS_MAX]; /* of each round */
	uint64_t *ns;            /* of calls */
	size_t n;
	uint64_t cpu_ns;         /* of both ends */
	uint64_t bytes;
};

static double median(struct run *r, unsigned rounds)
{
	qsort(r->rate, rounds, sizeof(r->rate[0]), compare_rates);
	return r->rate[rounds / 2];
}

static uint64_t cpu_of(pid_t pid)
{
	clockid_t clock;
	struct timespec t;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		die("clock of a process");
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void take_turns(struct run *runs, unsigned n, void (*turn)(struct run *r, uint64_t end, unsigned round))
{
	unsigned rounds = MIN(setting("ROUNDS", 9), ROUNDS_MAX), ms = setting("MS", 300);

	for (unsigned i = 0; i < rounds; i++)
		for (unsigned k = 0; k < n; k++)
			turn(&runs[k], clock_now_ns() + ms * NS_PER_MS, i);
	for (unsigned k = 0; k < n; k++)
		runs[k].rate[0] = median(&runs[k], rounds);
}

static void turn_null(struct run *r, uint64_t end, unsigned round)
{
	uint64_t begin = clock_now_ns(), now = begin;
	unsigned n = 0;

	for (; now < end; n++) {
		uint64_t before = now;

		call_null(r->clnt);
		now = clock_now_ns();
		if (r->n < SAMPLES)
			r->ns[r->n++] = now - before;
	}
	r->rate[round] = n / ((double)(now - begin) / NS_PER_S);
}

static void run_null(bool one_cpu)
{
	static const enum kind which[] = { UNIX, TCP, LOCAL, SPIN, RDMA };
	unsigned n = ARRAY_SIZE(which) - !getenv("RDMA");
	struct run runs[ARRAY_SIZE(which)] = { 0 };

	pin(0);
	for (unsigned k = 0; k < n; k++) {
		start(&runs[k].server, which[k], one_cpu ? 0 : 1);
		runs[k].clnt = open_client(&runs[k].server, 0);
		runs[k].ns = calloc(SAMPLES, sizeof(uint64_t));
		if (!runs[k].ns)
			die("calloc");
	}
	take_turns(runs, n, turn_null);
	printf("NULL, one caller, %s\n", one_cpu ? "both ends on one CPU" : "a CPU for each end");
	for (unsigned k = 0; k < n; k++) {
		struct run *r = &runs[k];

		qsort(r->ns, r->n, sizeof(r->ns[0]), compare_times);
		printf("  %-26s %9.0f calls/s   median %7.1f us   p99 %7.1f us   %5.2f x UNIX  %5.2f x TCP\n", kinds[which[k]],
		       r->rate[0], (double)r->ns[r->n / 2] / 1000, (double)r->ns[r->n * 99 / 100] / 1000,
		       r->rate[0] / runs[0].rate[0], r->rate[0] / runs[1].rate[0]);
	}
	for (unsigned k = 0; k < n; k++) {
		clnt_destroy(runs[k].clnt);
		stop(&runs[k].server);
	}
}

/* ---- threads ---- */

struct caller {
	pthread_t thread;
	CLIENT *clnt;
	_Atomic uint64_t *end;
	uint64_t calls;
};

static void *call_on(void *arg)
{
	struct caller *c = arg;

	for (; clock_now_ns() < atomic_load(c->end); c->calls++)
		call_null(c->clnt);
	return NULL;
}

static double rate_of(CLIENT **clients, bool shared, unsigned threads, unsigned ms)
{
	struct caller callers[THREADS] = { 0 };
	uint64_t begin = clock_now_ns(), sum = 0;
	_Atomic uint64_t end = begin + ms * NS_PER_MS;

	for (unsigned i = 0; i < threads; i++) {
		callers[i].clnt = clients[shared ? 0 : i];
		callers[i].end = &end;
		errno = pthread_create(&callers[i].thread, NULL, call_on, &callers[i]);
		if (errno)
			die("pthread_create");
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(callers[i].thread, NULL);
		sum += callers[i].calls;
	}
	return (double)sum / ((double)(clock_now_ns() - begin) / NS_PER_S);
}

static void run_threads(void)
{
	static const struct {
		enum kind kind;
		unsigned threads;
	} which[] = { { TCP, THREADS }, { SPIN, THREADS }, { SPIN, 1 }, { EVENT, THREADS }, { EVENT, 1 } };
	unsigned rounds = MIN(setting("ROUNDS", 9), ROUNDS_MAX), ms = setting("MS", 300);
	struct run runs[ARRAY_SIZE(which)] = { 0 };
	CLIENT *clients[ARRAY_SIZE(which)][THREADS];

	for (unsigned k = 0; k < ARRAY_SIZE(which); k++) {
		if (k == 0 || which[k].kind != which[k - 1].kind)
			start(&runs[k].server, which[k].kind, -1);
		else
			runs[k].server = runs[k - 1].server;
		for (unsigned i = 0; i < (which[k].kind == TCP ? THREADS : 1u); i++)
			clients[k][i] = open_client(&runs[k].server, THREADS);
	}
	for (unsigned r = 0; r < rounds; r++)
		for (unsigned k = 0; k < ARRAY_SIZE(which); k++)
			runs[k].rate[r] = rate_of(clients[k], which[k].kind != TCP, which[k].threads, ms);
	printf("NULL, threads (TCP: a CLIENT each; local: one CLIENT)\n");
	for (unsigned k = 0; k < ARRAY_SIZE(which); k++)
		runs[k].rate[0] = median(&runs[k], rounds);
	for (unsigned k = 0; k < ARRAY_SIZE(which); k++)
		printf("  %-26s %3u threads %9.0f calls/s   %5.2f x TCP\n", kinds[which[k].kind], which[k].threads, runs[k].rate[0],
		       runs[k].rate[0] / runs[0].rate[0]);
	printf("  poll=event, both ends: %d threads are %.2f x one\n", THREADS, runs[3].rate[0] / runs[4].rate[0]);
	for (unsigned k = 0; k < ARRAY_SIZE(which); k++) {
		for (unsigned i = 0; i < (which[k].kind == TCP ? THREADS : 1u); i++)
			clnt_destroy(clients[k][i]);
		if (k == 0 || which[k].kind != which[k - 1].kind)
			stop(&runs[k].server);
	}
}

/* ---- bulk ---- */

static u_int bulk_bytes;
static char *target;

static void turn_get(struct run *r, uint64_t end, unsigned round)
{
	uint64_t begin = clock_now_ns(), before = cpu_of(r->server.pid) + cpu_of(getpid()), bytes = 0;

	do {
		call_get(r->clnt, bulk_bytes, target);
		bytes += bulk_bytes;
	} while (clock_now_ns() < end);
	r->rate[round] = (double)bytes / ((double)(clock_now_ns() - begin) / NS_PER_S);
	r->cpu_ns += cpu_of(r->server.pid) + cpu_of(getpid()) - before;
	r->bytes += bytes;
}

static void run_bulk(u_int bytes)
{
	static const enum kind which[] = { TCP, SPIN, LOCAL, RDMA };
	unsigned n = ARRAY_SIZE(which) - !getenv("RDMA");
	struct run runs[ARRAY_SIZE(which)] = { 0 };
	struct rpcrdma_stats before, after;

	bulk_bytes = bytes;
	for (unsigned k = 0; k < n; k++)
		start(&runs[k].server, which[k], -1);
	if (rpcrdma_mem_alloc(rpcrdma_tirpc_domain(), BYTES_MAX, (void **)&target))
		die("rpcrdma_mem_alloc");
	for (unsigned k = 0; k < n; k++) {
		runs[k].clnt = open_client(&runs[k].server, 0);
		call_get(runs[k].clnt, bytes, target);
	}
	rpcrdma_domain_stats(rpcrdma_tirpc_domain(), &before);
	take_turns(runs, n, turn_get);
	rpcrdma_domain_stats(rpcrdma_tirpc_domain(), &after);
	printf("results of %u KiB, into memory of rpcrdma_mem_alloc()\n", bytes >> 10);
	for (unsigned k = 0; k < n; k++)
		printf("  %-26s %8.0f MiB/s  %5.2f x TCP   CPU %6.3f s/GiB  %5.2f x TCP\n", kinds[which[k]], runs[k].rate[0] / (1 << 20),
		       runs[k].rate[0] / runs[0].rate[0],
		       (double)runs[k].cpu_ns / NS_PER_S / ((double)runs[k].bytes / (1 << 30)),
		       ((double)runs[k].cpu_ns / (double)runs[k].bytes) / ((double)runs[0].cpu_ns / (double)runs[0].bytes));
	printf("  copied by the client: %.2f of each byte\n",
	       (double)(after.bytes_copied - before.bytes_copied) / (double)(runs[1].bytes + runs[2].bytes + runs[3].bytes));
	for (unsigned k = 0; k < n; k++) {
		clnt_destroy(runs[k].clnt);
		stop(&runs[k].server);
	}
	rpcrdma_mem_free(rpcrdma_tirpc_domain(), target);
}

/* ---- idle clients ---- */

static long memory_of(pid_t pid)
{
	char path[64], line[256];
	long sum = 0, kib;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	if (!f)
		die(path);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld kB", &kib) == 1 || sscanf(line, "VmLck: %ld kB", &kib) == 1 ||
		    sscanf(line, "VmPin: %ld kB", &kib) == 1)
			sum += kib;
	fclose(f);
	return sum;
}

static CLIENT *call_often(const struct server *s, unsigned calls)
{
	CLIENT *c = open_client(s, 0);

	for (unsigned i = 0; i < calls; i++)
		call_null(c);
	return c;
}

static void run_idle(void)
{
	static const enum kind which[] = { TCP, LOCAL, OUR_TCP };
	static const unsigned calls[] = { 1, 100 };
	static CLIENT *clients[IDLE];

	printf("memory of a service for an idle client (resident, shared, locked), of %d\n", IDLE);
	for (unsigned k = 0; k < ARRAY_SIZE(which); k++) {
		for (unsigned j = 0; j < ARRAY_SIZE(calls); j++) {
			struct server s;
			long before;

			start(&s, which[k], -1);
			clients[0] = call_often(&s, calls[j]);
			before = memory_of(s.pid);
			for (unsigned i = 1; i < IDLE; i++)
				clients[i] = call_often(&s, calls[j]);
			printf("  %-26s %3u calls %6.1f KiB\n", kinds[which[k]], calls[j],
			       (double)(memory_of(s.pid) - before) / (IDLE - 1));
			for (unsigned i = 0; i < IDLE; i++)
				clnt_destroy(clients[i]);
			stop(&s);
		}
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!mkdtemp(dir))
		die(dir);
	if (!strcmp(what, "null")) {
		run_null(argc > 2 && !strcmp(argv[2], "--one-cpu"));
	} else if (!strcmp(what, "threads")) {
		run_threads();
	} else if (!strcmp(what, "bulk")) {
		run_bulk(1u << 20);
		run_bulk(BYTES_MAX);
	} else if (!strcmp(what, "idle")) {
		run_idle();
	} else {
		fprintf(stderr, "usage: tirpc null [--one-cpu] | threads | bulk | idle\n");
		rmdir(dir);
		return 2;
	}
	rmdir(dir);
	return 0;
}
