/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_clnt_nomem.c - the Nth allocation, or the Nth operation of the fabric, fails, for N from 1 until none is left to
 * fail: a CLIENT
 *
 * Each N has a process of its own, so it begins without a domain. There a program creates a CLIENT, makes all kinds of
 * calls, and destroys it. Whatever fails, calls end with their results or with a status that fits; then each kind of call
 * works. What is left after another such program is what is left if nothing fails.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "hooks.h"
#include "local.h"
#include "rpcrdma_tirpc.h"
#include "tirpc_rig.h"

enum { GET = RIG_OWN, PUT };

/* All results need a segment of one size (cl_mem.c), so that one serves all calls, whichever comes first. Long arguments need
 * one of another size. */
#define ITEM_BYTES 20000u
#define LONG_BYTES 100000u
#define TRIES 3

/* ---- what fails ---- */

enum what { ALLOCATION, POST, COMPLETION, REGISTRATION, CUT, CUT_DELIVERED };

static unsigned long countdown; /* to an allocation; 0: none fails */
static bool failed;
static atomic_long live;        /* allocations: other threads close descriptors */
static struct rr_fabric *fabric;

static bool fails(void)
{
	if (!countdown || --countdown)
		return false;
	failed = true;
	return true;
}

static void *count(void *p)
{
	live += p != NULL;
	return p;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t m);
char *__real_strdup(const char *s);
void __real_free(void *p);
void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int __real_memfd_create(const char *name, unsigned flags);
int __real_rr_local_open(const struct rr_local_attr *attr, struct rr_fabric **ret);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t m);
char *__wrap_strdup(const char *s);
void __wrap_free(void *p);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_rr_local_open(const struct rr_local_attr *attr, struct rr_fabric **ret);

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : count(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t m)
{
	return fails() ? NULL : count(__real_calloc(n, m));
}

void *__wrap_realloc(void *p, size_t n)
{
	void *got = fails() ? NULL : __real_realloc(p, n);

	return p ? got : count(got);
}

void *__wrap_reallocarray(void *p, size_t n, size_t m)
{
	void *got = fails() ? NULL : __real_reallocarray(p, n, m);

	return p ? got : count(got);
}

char *__wrap_strdup(const char *s)
{
	return fails() ? NULL : count(__real_strdup(s));
}

void __wrap_free(void *p)
{
	live -= p != NULL;
	__real_free(p);
}

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (!fails())
		return __real_mmap(addr, len, prot, flags, fd, off);
	errno = ENOMEM;
	return MAP_FAILED;
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
	if (!fails())
		return __real_memfd_create(name, flags);
	errno = EMFILE;
	return -1;
}

static enum what what;
static unsigned long nth; /* 0: nothing fails */

/* The counter of the fabric that goes down to 0 when it is due. */
static uint64_t *fabric_count(void)
{
	struct hooks *h = faults_of(fabric);

	switch (what) {
	case POST:
		return &h->fail_post;
	case COMPLETION:
		return &h->fail_completion;
	case REGISTRATION:
		return &h->fail_reg;
	case CUT_DELIVERED:
		h->cut_delivers = true;
		return &h->cut_after_sends;
	default:
		return &h->cut_after_sends;
	}
}

int __wrap_rr_local_open(const struct rr_local_attr *attr, struct rr_fabric **ret)
{
	int rc = __real_rr_local_open(attr, ret);

	if (rc || what == ALLOCATION)
		return rc;
	fabric = *ret;
	*fabric_count() = nth;
	return 0;
}

static void arm(void)
{
	failed = false;
	if (what == ALLOCATION)
		countdown = nth;
}

static bool has_failed(void)
{
	return failed || (fabric && nth && !*fabric_count());
}

static void disarm(void)
{
	failed = has_failed();
	countdown = 0;
	nth = 0;
	if (fabric)
		*fabric_count() = 0;
}

/* ---- the service, which does not fail ---- */

static char item[LONG_BYTES];

static bool_t xdr_item(XDR *x, struct rig_bytes *b)
{
	return xdr_bytes(x, &b->val, &b->len, ITEM_BYTES);
}

static void dispatch(struct svc_req *q, SVCXPRT *x)
{
	struct rig_bytes b = { .len = ITEM_BYTES, .val = item };
	u_int same;

	switch (q->rq_proc) {
	case GET:
		svc_sendreply(x, (xdrproc_t)xdr_item, &b);
		return;
	case PUT:
		b = (struct rig_bytes){ 0 };
		if (!svc_getargs(x, (xdrproc_t)xdr_item, (caddr_t)&b)) {
			svcerr_decode(x);
			return;
		}
		same = b.len == ITEM_BYTES && !memcmp(b.val, item, ITEM_BYTES);
		svc_freeargs(x, (xdrproc_t)xdr_item, (caddr_t)&b);
		svc_sendreply(x, (xdrproc_t)xdr_u_int, &same);
		return;
	default:
		rig_dispatch(q, x);
	}
}

static const struct rpcrdma_bulk rows[] = {
	{ RIG_PROG, RIG_VERS, GET, .results = 1, .data_max = ITEM_BYTES },
	{ RIG_PROG, RIG_VERS, PUT, .args = 1 },
};
static const struct rpcrdma_tirpc_attr attr = { .max_bytes = 1u << 20, .bulk = rows, .nbulk = ARRAY_SIZE(rows) };
static char url[300];

static int create_service(void)
{
	return rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, url, &attr);
}

static void fill_item(void)
{
	for (u_int i = 0; i < sizeof(item); i++)
		item[i] = (char)(i * 7 + i / 251);
}

/* ---- a program in a process of its own: assertions of cmocka are the test's ---- */

#define CHECK(cond)                                                                                                     \
	do {                                                                                                            \
		if (!(cond)) {                                                                                          \
			fprintf(stderr, "%s:%d: %lu: " #cond "\n", __FILE__, __LINE__, number);                         \
			_exit(2);                                                                                       \
		}                                                                                                       \
	} while (0)

static unsigned long number; /* for messages */
static const struct timeval plenty = { 60, 0 }, zero = { 0, 0 };

/* Return: true: it succeeded; false: it says why not */
static bool ended(CLIENT *c, enum clnt_stat stat, bool must)
{
	struct rpc_err err;

	clnt_geterr(c, &err);
	CHECK(err.re_status == stat);
	if (stat == RPC_SUCCESS)
		return true;
	if (must || !has_failed())
		fprintf(stderr, "%s: %s\n", clnt_sperror(c, "call"), rpcrdma_clnt_why(c));
	CHECK(!must && has_failed());
	CHECK(*rpcrdma_clnt_why(c));
	CHECK(stat == RPC_SYSTEMERROR || stat == RPC_CANTENCODEARGS || stat == RPC_CANTSEND || stat == RPC_CANTRECV);
	return false;
}

static void echo(CLIENT *c, u_int len, bool must)
{
	struct rig_bytes b = { .len = len, .val = item }, res = { 0 };
	enum clnt_stat stat = clnt_call(c, RIG_ECHO, (xdrproc_t)xdr_rig_bytes, &b, (xdrproc_t)xdr_rig_bytes, &res, plenty);

	if (ended(c, stat, must))
		CHECK(res.len == len && !memcmp(res.val, item, len));
	clnt_freeres(c, (xdrproc_t)xdr_rig_bytes, &res);
}

static void get(CLIENT *c, char *preset, bool must)
{
	struct rig_bytes res = { .len = preset ? ITEM_BYTES : 0, .val = preset };
	enum clnt_stat stat = clnt_call(c, GET, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_item, &res, plenty);

	if (ended(c, stat, must)) {
		CHECK(!preset || res.val == preset);
		CHECK(res.len == ITEM_BYTES && !memcmp(res.val, item, ITEM_BYTES));
	}
	if (!preset)
		clnt_freeres(c, (xdrproc_t)xdr_item, &res);
}

static void put(CLIENT *c, bool must)
{
	struct rig_bytes b = { .len = ITEM_BYTES, .val = item };
	u_int same = 0;

	if (ended(c, clnt_call(c, PUT, (xdrproc_t)xdr_item, &b, (xdrproc_t)xdr_u_int, &same, plenty), must))
		CHECK(same);
}

static void batch(CLIENT *c, bool must)
{
	ended(c, clnt_call(c, RIG_NEVER, (xdrproc_t)xdr_rig_void, NULL, NULL, NULL, zero), must);
}

static void all_calls(CLIENT *c, bool must)
{
	static char memory[ITEM_BYTES];

	echo(c, 100, must);
	echo(c, LONG_BYTES, must);
	get(c, NULL, must);
	memset(memory, 0, sizeof(memory));
	get(c, memory, must);
	put(c, must);
	batch(c, must);
	echo(c, 200, must);
}

static void run_program(void)
{
	CLIENT *c = rpcrdma_clnt_create(url, RIG_PROG, RIG_VERS, &attr);

	if (!c) {
		CHECK(has_failed());
		CHECK(rpc_createerr.cf_stat == RPC_SYSTEMERROR);
		CHECK(rpc_createerr.cf_error.re_errno > 0);
		return;
	}
	all_calls(c, false);
	disarm();
	all_calls(c, true);
	clnt_destroy(c);
}

static unsigned entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Threads of the local fabric close descriptors that peers have passed (local_close.c), and end. */
static void await_threads(void)
{
	while (entries("/proc/self/task") > 3) /* ".", "..", and this one */
		sched_yield();
}

struct left {
	bool failed;
	long live;
	unsigned files;
};

static void child(struct left *ret)
{
	struct rpcrdma_tirpc_stats stats;

	arm();
	run_program();
	disarm();
	ret->failed = failed;
	run_program();
	rpcrdma_tirpc_stats(&stats);
	CHECK(stats.mem_used == 0);
	await_threads();
	ret->live = live;
	ret->files = entries("/proc/self/fd");
}

/* Return: what is left of a process in which the Nth fails; 0: none does */
static struct left run(struct left *shared, unsigned long n)
{
	int status;
	pid_t pid;

	number = nth = n;
	pid = fork();
	if (!pid) {
		child(shared);
		exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return *shared;
}

static void each(const char *at, enum what kind, unsigned long least)
{
	const struct rig_service s = { .create = create_service, .run = svc_run, .url = { url } };
	struct left *shared = __real_mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct left none, now = { .failed = true };
	struct rig r;
	unsigned long n;

	assert_ptr_not_equal(shared, MAP_FAILED);
	snprintf(url, sizeof(url), "%s", at);
	fill_item();
	rig_start(&r, &s);
	snprintf(url, sizeof(url), "%s", r.url[0]); /* with its port */
	what = kind;
	none = run(shared, 0);
	assert_false(none.failed);
	for (n = 1; now.failed; n++) {
		/* what ends with a little delay, on a machine that is busy, does not do so each time: a leak does */
		for (int i = 0; i < TRIES; i++) {
			now = run(shared, n);
			if (now.live == none.live && now.files == none.files)
				break;
		}
		if (now.live != none.live || now.files != none.files)
			fail_msg("after the failure of %lu: %ld allocations and %u files are left, not %ld and %u", n, now.live,
				 now.files, none.live, none.files);
	}
	print_message("%lu failures\n", n - 2);
	assert_true(n - 2 >= least); /* that the calls were reached */
	what = ALLOCATION;
	nth = 0;
	assert_int_equal(rig_stop(&r), 0);
	munmap(shared, sizeof(*shared));
}

static void allocations(void **state)
{
	(void)state;
	each(rig_local("nomem"), ALLOCATION, 50);
}

static void allocations_over_tcp(void **state)
{
	(void)state;
	each("tcp://127.0.0.1:0", ALLOCATION, 20);
}

static void posts(void **state)
{
	(void)state;
	each(rig_local("nomem"), POST, 15);
}

static void completions(void **state)
{
	(void)state;
	each(rig_local("nomem"), COMPLETION, 10);
}

static void registrations(void **state)
{
	(void)state;
	each(rig_local("nomem"), REGISTRATION, 3);
}

static void cuts(void **state)
{
	(void)state;
	each(rig_local("nomem"), CUT, 7);
	each(rig_local("nomem"), CUT_DELIVERED, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocations), cmocka_unit_test(allocations_over_tcp), cmocka_unit_test(posts),
		cmocka_unit_test(completions), cmocka_unit_test(registrations),        cmocka_unit_test(cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
