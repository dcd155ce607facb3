/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_sizes.c - a CLIENT with a table of bulk data, and messages of any size, on services with and without a table
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/util.h"
#include "echo_rig.h"
#include "rpcrdma.h"
#include "rpcrdma_tirpc.h"
#include "tirpc_rig.h"

#define MIB (1u << 20)
#define MAX_BYTES ((size_t)4 * MIB)
#define DATA_MAX (8u * MIB)
#define TAG 0x7a6
#define LATE_BYTES 100000u

enum proc { FILL = RIG_OWN, GET, PUT, NEVER, LATE, RELEASE };

/* Results: the data is item 2. */
struct got {
	int status;
	char *etag;
	u_int n;
	char *data;
	u_int tag;
};

/* Arguments: the data is item 2. */
struct put {
	char *name;
	u_int n;
	char *data;
	u_int tag;
};

static unsigned filters; /* runs of them */

static bool_t xdr_got(XDR *x, struct got *g)
{
	filters++;
	return xdr_int(x, &g->status) && xdr_string(x, &g->etag, 100) && xdr_bytes(x, &g->data, &g->n, 2 * DATA_MAX) &&
	       xdr_u_int(x, &g->tag);
}

static bool_t xdr_put(XDR *x, struct put *p)
{
	filters++;
	return xdr_string(x, &p->name, 100) && xdr_bytes(x, &p->data, &p->n, 2 * DATA_MAX) && xdr_u_int(x, &p->tag);
}

/* ---- the service --------------------------------------------------------------------------------- */

static char *mem; /* DATA_MAX bytes: er_byte() */

static u_int sum_of(const struct put *p)
{
	u_int sum = p->tag + (u_int)strlen(p->name);

	for (u_int i = 0; i < p->n; i++)
		sum = sum * 31 + (uint8_t)p->data[i];
	return sum;
}

/* Replies to the call that is held. Return: is there one? */
static u_int release(struct svc_req **held)
{
	char etag[] = "late";
	struct got g = { .status = 0, .etag = etag, .n = LATE_BYTES, .data = mem, .tag = TAG };

	if (!*held)
		return 0;
	svc_sendreply((*held)->rq_xprt, (xdrproc_t)xdr_got, (char *)&g);
	rpcrdma_svc_release(*held);
	*held = NULL;
	return 1;
}

static void dispatch(struct svc_req *q, SVCXPRT *x)
{
	static struct svc_req *held;
	char etag[] = "etag";
	struct put p = { 0 };
	u_int n = 0;

	switch (q->rq_proc) {
	case FILL:
	case GET:
		if (!svc_getargs(x, (xdrproc_t)xdr_u_int, (char *)&n) || n > DATA_MAX) {
			svcerr_decode(x);
		} else if (q->rq_proc == GET) {
			struct got g = { .status = 0, .etag = etag, .n = n, .data = mem, .tag = TAG };

			svc_sendreply(x, (xdrproc_t)xdr_got, (char *)&g);
		} else {
			struct er_bytes b = { .n = n, .data = mem };

			svc_sendreply(x, (xdrproc_t)xdr_er_bytes, (char *)&b);
		}
		break;
	case PUT:
		if (!svc_getargs(x, (xdrproc_t)xdr_put, (char *)&p)) {
			svcerr_decode(x);
			break;
		}
		n = sum_of(&p);
		svc_freeargs(x, (xdrproc_t)xdr_put, (char *)&p);
		svc_sendreply(x, (xdrproc_t)xdr_u_int, (char *)&n);
		break;
	case NEVER:
		break;
	case LATE:
		held = rpcrdma_svc_detach(q);
		break;
	case RELEASE:
		n = release(&held);
		svc_sendreply(x, (xdrproc_t)xdr_u_int, (char *)&n);
		break;
	default:
		rig_dispatch(q, x);
	}
}

static const struct rpcrdma_bulk rows[] = {
	{ RIG_PROG, RIG_VERS, GET, .results = 2, .data_max = DATA_MAX, .reply_max = 256 },
	{ RIG_PROG, RIG_VERS, LATE, .results = 2, .data_max = DATA_MAX, .reply_max = 256 },
	{ RIG_PROG, RIG_VERS, PUT, .args = 2 },
};

static char urls[3][200] = { "tcp://127.0.0.1:0" };

static int create(void)
{
	const struct rpcrdma_tirpc_attr with = { .max_bytes = 2 * MAX_BYTES, .bulk = rows, .nbulk = ARRAY_SIZE(rows) };
	const struct rpcrdma_tirpc_attr without = { .max_bytes = 3 * MAX_BYTES };
	void *p;
	int rc = rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, urls[0], &with);

	if (!rc)
		rc = rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, urls[1], &with);
	if (!rc)
		rc = rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, urls[2], &without);
	if (!rc)
		rc = rpcrdma_mem_alloc(rpcrdma_tirpc_domain(), DATA_MAX, &p);
	if (rc)
		return rc;
	mem = p;
	for (u_int i = 0; i < DATA_MAX; i++)
		mem[i] = (char)er_byte(i);
	return 0;
}

/* ---- its callers ---------------------------------------------------------------------------------- */

static const struct timeval plenty = { 60, 0 };
static struct rig rig;
static CLIENT *clnt;

static CLIENT *client_at(unsigned url, const struct rpcrdma_bulk *table, size_t ntable)
{
	const struct rpcrdma_tirpc_attr attr = { .size = sizeof(attr), .max_bytes = MAX_BYTES, .bulk = table, .nbulk = ntable };
	CLIENT *c = rpcrdma_clnt_create(rig.url[url], RIG_PROG, RIG_VERS, &attr);

	if (!c)
		clnt_pcreateerror(rig.url[url]);
	return c;
}

static int start_service(void **state)
{
	const struct rig_service s = { .create = create, .run = rpcrdma_svc_run, .url = { urls[0], urls[1], urls[2] } };

	(void)state;
	snprintf(urls[1], sizeof(urls[1]), "%s", rig_local("sizes"));
	snprintf(urls[2], sizeof(urls[2]), "%s", rig_local("sizes"));
	rig_start(&rig, &s);
	return 0;
}

static int stop_service(void **state)
{
	(void)state;
	return rig_stop(&rig);
}

static int setup(void **state)
{
	clnt = client_at(*(unsigned *)*state, rows, ARRAY_SIZE(rows));
	return clnt ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	clnt_destroy(clnt);
	return 0;
}

static void assert_filled(const char *data, u_int n)
{
	for (u_int i = 0; i < n; i++)
		if ((uint8_t)data[i] != er_byte(i))
			fail_msg("byte %u of %u is wrong", i, n);
}

static enum clnt_stat fill(u_int n, struct er_bytes *ret)
{
	*ret = (struct er_bytes){ 0 };
	return clnt_call(clnt, FILL, (xdrproc_t)xdr_u_int, &n, (xdrproc_t)xdr_er_bytes, ret, plenty);
}

static void fill_is(u_int n)
{
	struct er_bytes b;
	enum clnt_stat stat = fill(n, &b);

	if (stat)
		fail_msg("%u bytes: %s: %s", n, clnt_sperror(clnt, ""), rpcrdma_clnt_why(clnt));
	assert_int_equal(b.n, n);
	assert_filled(b.data, n);
	clnt_freeres(clnt, (xdrproc_t)xdr_er_bytes, &b);
}

/* Results in a message: around the size of a Send, and the longest; one byte more ends its call only. */
static void long_results(void **state)
{
	u_int most = (u_int)MAX_BYTES - 4;
	struct rpcrdma_tirpc_stats before, after;
	struct er_bytes b;

	(void)state;
	rpcrdma_tirpc_stats(&before);
	for (u_int n = 3800; n < 4200; n += 7)
		fill_is(n);
	for (u_int n = 65536 - 8; n < 65536 + 8; n += 3)
		fill_is(n);
	fill_is(MIB + 1);
	for (int i = 0; i < 3; i++) {
		fill_is(most);
		assert_int_equal(fill(most + 1, &b), RPC_CANTDECODERES);
		assert_non_null(strstr(rpcrdma_clnt_why(clnt), "4194304"));
		assert_int_equal(fill(DATA_MAX - 100, &b), RPC_CANTDECODERES);
	}
	fill_is(10);
	rpcrdma_tirpc_stats(&after);
	assert_int_equal(after.results_too_long - before.results_too_long, 6);
}

static enum clnt_stat put(u_int n, u_int *ret_sum, u_int *ret_want)
{
	char name[] = "name";
	struct put p = { .name = name, .n = n, .data = malloc(n + 1), .tag = n };
	enum clnt_stat stat;

	assert_non_null(p.data);
	for (u_int i = 0; i < n; i++)
		p.data[i] = (char)er_byte(i + n);
	*ret_want = sum_of(&p);
	filters = 0;
	stat = clnt_call(clnt, PUT, (xdrproc_t)xdr_put, &p, (xdrproc_t)xdr_u_int, ret_sum, plenty);
	assert_int_equal(filters, 1);
	free(p.data);
	return stat;
}

static void put_is(u_int n)
{
	u_int sum = 0, want;
	enum clnt_stat stat = put(n, &sum, &want);

	if (stat)
		fail_msg("%u bytes: %s: %s", n, clnt_sperror(clnt, ""), rpcrdma_clnt_why(clnt));
	assert_int_equal(sum, want);
}

/* Arguments in a message, up to the longest. */
static void long_args(void **state)
{
	CLIENT *with_table = clnt;
	u_int most = (u_int)MAX_BYTES - 16, sum, want; /* name, length, tag */

	clnt = client_at(*(unsigned *)*state, NULL, 0);
	assert_non_null(clnt);
	for (u_int n = 3900; n < 4200; n += 7)
		put_is(n);
	for (int i = 0; i < 3; i++) {
		put_is(most);
		assert_int_equal(put(most + 1, &sum, &want), RPC_CANTENCODEARGS);
		assert_non_null(strstr(rpcrdma_clnt_why(clnt), "max_bytes"));
	}
	put_is(10);
	clnt_destroy(clnt);
	clnt = with_table;
}

/* More than the server accepts: the text does not blame the results. */
static void args_longer_than_the_server_accepts(void **state)
{
	const struct rpcrdma_tirpc_attr attr = { .max_bytes = 4 * MAX_BYTES };
	CLIENT *with_table = clnt;
	u_int sum, want;

	clnt = rpcrdma_clnt_create(urls[2], RIG_PROG, RIG_VERS, &attr);
	assert_non_null(clnt);
	put_is((u_int)(3 * MAX_BYTES - 16));
	assert_int_equal(put((u_int)(3 * MAX_BYTES + MIB), &sum, &want), RPC_CANTDECODERES);
	assert_non_null(strstr(rpcrdma_clnt_why(clnt), "the arguments are longer than the server accepts"));
	put_is(10);
	clnt_destroy(clnt);
	clnt = client_at(*(unsigned *)*state, rows, ARRAY_SIZE(rows)); /* the same by Read chunk */
	assert_non_null(clnt);
	assert_int_equal(put((u_int)(3 * MAX_BYTES + MIB), &sum, &want), RPC_CANTDECODERES);
	assert_non_null(strstr(rpcrdma_clnt_why(clnt), "the arguments are longer than the server accepts"));
	clnt_destroy(clnt);
	clnt = with_table;
}

static struct rpcrdma_stats stats(void)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(rpcrdma_tirpc_domain(), &s);
	return s;
}

/* Arguments with a bulk item, below and above the threshold. */
static void bulk_args(void **state)
{
	bool chunks = *(unsigned *)*state != 0;
	struct rpcrdma_stats before = stats();

	for (u_int n = 4090; n < 4100; n++)
		put_is(n);
	put_is(MIB + 3);
	put_is(DATA_MAX / 2);
	/* what fits a Send needs no chunk */
	assert_int_equal(stats().chunks_read - before.chunks_read >= 2 + (getenv("LEAT_TEST_INLINE") ? 0 : 4), chunks);
}

static enum clnt_stat get(u_int n, struct got *g)
{
	enum clnt_stat stat;

	filters = 0;
	stat = clnt_call(clnt, GET, (xdrproc_t)xdr_u_int, &n, (xdrproc_t)xdr_got, g, plenty);
	if (stat)
		print_message("%u: %s: %s\n", n, clnt_sperror(clnt, ""), rpcrdma_clnt_why(clnt));
	else
		assert_true(g->n == n && g->tag == TAG && !strcmp(g->etag, "etag"));
	return stat;
}

/* The etag has memory of the caller: sanitizers' xdr_string() does not accept NULL while it encodes, as libtirpc's does. */
static void bulk_results(void **state)
{
	char etag[104] = "";

	(void)state;
	for (u_int n = 0; n < DATA_MAX; n = n < 4100 ? n + 41 : n * 3 + 1) {
		struct got g = { .etag = etag };

		assert_int_equal(get(n, &g), RPC_SUCCESS);
		assert_filled(g.data, n);
		g.etag = NULL;
		clnt_freeres(clnt, (xdrproc_t)xdr_got, &g);
	}
}

/* The memory that the caller presets gets the item; nothing is copied here, if it is of rpcrdma_mem_alloc(). */
static void preset_memory(void **state)
{
	unsigned url = *(unsigned *)*state;
	char etag[104] = "preset, because an empty item does not count";
	struct rpcrdma_domain *d = rpcrdma_tirpc_domain();
	char *heap = malloc(DATA_MAX);
	void *pinned;

	assert_non_null(heap);
	assert_int_equal(rpcrdma_mem_alloc(d, DATA_MAX, &pinned), 0);
	for (int i = 0; i < 4; i++) {
		struct got g = { .etag = etag, .n = DATA_MAX, .data = i % 2 ? heap : pinned };
		struct rpcrdma_stats before = stats();
		char *data = g.data;

		memset(data, 0, DATA_MAX);
		assert_int_equal(get(DATA_MAX - (u_int)i * 5000, &g), RPC_SUCCESS);
		assert_ptr_equal(g.data, data);
		assert_filled(data, g.n);
		if (url == 1 && i % 2 == 0)
			assert_true(stats().bytes_copied - before.bytes_copied < 4096);
		assert_int_equal(filters, 2); /* the dry run, and the reply */
	}
	rpcrdma_mem_free(d, pinned);
	free(heap);
}

/* An item that is longer than the caller's memory does not fit: it is not written past its end. */
static void preset_too_short(void **state)
{
	char etag[104] = "e";
	char *heap = malloc(100001);

	(void)state;
	assert_non_null(heap);
	heap[100000] = 'x';
	for (int i = 0; i < 3; i++) {
		struct got g = { .etag = etag, .n = 100000, .data = heap };

		assert_int_equal(get(100001, &g), RPC_CANTDECODERES);
		assert_int_equal(heap[100000], 'x');
		g = (struct got){ .etag = etag, .n = 100, .data = heap }; /* shorter than the threshold */
		assert_int_equal(get(101, &g), RPC_CANTDECODERES);
		assert_int_equal(heap[100000], 'x');
		g = (struct got){ .etag = etag, .n = 100000, .data = heap };
		assert_int_equal(get(100000, &g), RPC_SUCCESS);
		assert_filled(heap, 100000);
	}
	free(heap);
}

/* ---- memory --------------------------------------------------------------------------------------- */

static atomic_uint wrong;

static void *fills(void *arg)
{
	(void)arg;
	for (u_int i = 0; i < 6; i++) {
		struct er_bytes b;
		u_int n = MIB + i;

		wrong += fill(n, &b) != RPC_SUCCESS || b.n != n;
		clnt_freeres(clnt, (xdrproc_t)xdr_er_bytes, &b);
	}
	return NULL;
}

/* More callers than there is memory for. Whether they meet depends on the machine: unit/test_tirpc_mem has the waits. */
static void memory_is_bounded(void **state)
{
	struct rpcrdma_tirpc_stats after;
	pthread_t thread[24];

	(void)state;
	wrong = 0;
	for (size_t i = 0; i < ARRAY_SIZE(thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, fills, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(thread); i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(wrong, 0);
	rpcrdma_tirpc_stats(&after);
	assert_int_equal(after.mem_used, 0);
	assert_true(after.mem_pinned <= after.mem_limit + 16 * 65536);
}

#define LONG_CALLS 17

static pthread_barrier_t all_encoded;
static sem_t one_encoded;

static bool_t xdr_put_and_meet(XDR *x, struct put *p)
{
	bool_t ok = xdr_put(x, p);

	sem_post(&one_encoded);
	pthread_barrier_wait(&all_encoded);
	return ok;
}

/* Of results of any length, for the client. */
static bool_t xdr_sum(XDR *x, u_int *sum)
{
	return xdr_u_int(x, sum);
}

static void *puts_long(void *arg)
{
	char name[] = "name";
	struct put p = { .name = name, .n = *(u_int *)arg, .data = calloc(1, *(u_int *)arg) };
	u_int sum = 0;

	wrong += clnt_call(clnt, PUT, (xdrproc_t)xdr_put_and_meet, &p, (xdrproc_t)xdr_sum, &sum, plenty) != RPC_SUCCESS;
	wrong += sum != sum_of(&p);
	free(p.data);
	return NULL;
}

/* Arguments use all memory, and each call still needs room for its results: none keeps what it has while it waits. */
static void long_calls_do_not_lock_up(void **state)
{
	CLIENT *with_table = clnt;
	pthread_t thread[LONG_CALLS];
	u_int n[LONG_CALLS];

	clnt = client_at(*(unsigned *)*state, NULL, 0);
	assert_non_null(clnt);
	wrong = 0;
	assert_int_equal(pthread_barrier_init(&all_encoded, NULL, LONG_CALLS), 0);
	assert_int_equal(sem_init(&one_encoded, 0, 0), 0);
	for (size_t i = 0; i < LONG_CALLS; i++) {
		n[i] = i ? (u_int)MAX_BYTES - 16 : 100000; /* the first one leaves less than one room */
		assert_int_equal(pthread_create(&thread[i], NULL, puts_long, &n[i]), 0);
		assert_int_equal(sem_wait(&one_encoded), 0);
	}
	for (size_t i = 0; i < LONG_CALLS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(wrong, 0);
	pthread_barrier_destroy(&all_encoded);
	sem_destroy(&one_encoded);
	clnt_destroy(clnt);
	clnt = with_table;
}

/* Calls that timed out hold memory that their late replies may reach. When it is short, it comes back. */
static void memory_comes_back(void **state)
{
	const struct timeval soon = { 0, 2000 };
	struct er_bytes b = { 0 };

	(void)state;
	for (int i = 0; i < 40; i++) {
		enum clnt_stat stat = clnt_call(clnt, NEVER, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_er_bytes, &b, soon);

		assert_true(stat == RPC_TIMEDOUT || stat == RPC_CANTRECV || stat == RPC_CANTSEND);
	}
	fill_is(MIB);
}

static uint64_t mem_used(void)
{
	struct rpcrdma_tirpc_stats s;

	rpcrdma_tirpc_stats(&s);
	return s.mem_used;
}

static void release_late(CLIENT *c)
{
	u_int n = 0;

	while (!n) /* until the call has reached the service */
		assert_int_equal(clnt_call(c, RELEASE, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_u_int, &n, plenty), RPC_SUCCESS);
}

/* No other call gets the memory of one that timed out, before its late reply or the end of the connection. */
static void memory_stays_with_a_call(void **state)
{
	const struct timeval soon = { 0, 2000 };
	CLIENT *with_table = clnt;

	if (getenv("LEAT_TEST_CREDITS")) {
		print_message("skipped: the call has the only credit, so the connection is replaced\n");
		skip();
	}
	for (int i = 0; i < 2; i++) {
		CLIENT *other = client_at(*(unsigned *)*state, NULL, 0);
		struct got g = { 0 };

		clnt = client_at(*(unsigned *)*state, NULL, 0);
		assert_true(clnt && other);
		fill_is(10); /* before the first reply there is one credit */
		assert_int_equal(mem_used(), 0);
		assert_int_equal(clnt_call(clnt, LATE, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_got, &g, soon), RPC_TIMEDOUT);
		assert_int_equal(mem_used(), MAX_BYTES);
		if (i) {
			clnt_destroy(clnt);
			assert_int_equal(mem_used(), 0);
			release_late(other);
		} else {
			fill_is(MIB);
			assert_int_equal(mem_used(), MAX_BYTES);
			release_late(other);
			fill_is(MIB); /* comes after the late reply */
			assert_int_equal(mem_used(), 0);
			clnt_destroy(clnt);
		}
		clnt_destroy(other);
	}
	clnt = with_table;
}

/* The late reply does not reach the caller's memory. */
static void late_reply_writes_nothing(void **state)
{
	const struct timeval soon = { 0, 2000 };
	CLIENT *other = client_at(*(unsigned *)*state, rows, ARRAY_SIZE(rows));
	char etag[104] = "e";
	struct got g = { .etag = etag };
	void *pinned;

	assert_non_null(other);
	assert_int_equal(rpcrdma_mem_alloc(rpcrdma_tirpc_domain(), 2 * LATE_BYTES, &pinned), 0);
	for (int i = 0; i < 3; i++) {
		char *heap = malloc(LATE_BYTES);

		assert_non_null(heap);
		g.data = i % 2 ? heap : pinned;
		g.n = LATE_BYTES;
		memset(g.data, 'x', LATE_BYTES);
		assert_int_equal(clnt_call(clnt, LATE, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_got, &g, soon), RPC_TIMEDOUT);
		release_late(other);
		for (u_int k = 0; k < LATE_BYTES; k++)
			if (g.data[k] != 'x')
				fail_msg("byte %u was written", k);
		free(heap);
		clnt_destroy(clnt); /* the connection may be lost: the service could not write */
		clnt = client_at(*(unsigned *)*state, rows, ARRAY_SIZE(rows));
		assert_non_null(clnt);
		fill_is(10);
	}
	rpcrdma_mem_free(rpcrdma_tirpc_domain(), pinned);
	clnt_destroy(other);
}

static void other_handle_gets_memory_back(void **state)
{
	const struct timeval soon = { 0, 2000 };
	CLIENT *mine = clnt;
	struct er_bytes b = { 0 };

	for (int i = 0; i < 20; i++)
		(void)clnt_call(mine, NEVER, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_er_bytes, &b, soon);
	clnt = client_at(*(unsigned *)*state, NULL, 0);
	assert_non_null(clnt);
	fill_is(MIB);
	clnt_destroy(clnt);
	clnt = mine;
}

static unsigned tcp, local = 1, no_table = 2;

#define AT(test, where)                                                                                    \
	{ .name = #test " (" #where ")", .test_func = test, .setup_func = setup, .teardown_func = teardown, \
	  .initial_state = &(where) }
#define EACH(test) AT(test, local), AT(test, tcp), AT(test, no_table)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(long_results), EACH(long_args), AT(args_longer_than_the_server_accepts, no_table), EACH(bulk_args), EACH(bulk_results), EACH(preset_memory), EACH(preset_too_short),
		EACH(memory_is_bounded), AT(long_calls_do_not_lock_up, local), AT(memory_comes_back, local), AT(memory_comes_back, tcp),
		AT(other_handle_gets_memory_back, local), AT(other_handle_gets_memory_back, tcp),
		AT(memory_stays_with_a_call, local), AT(memory_stays_with_a_call, no_table), EACH(late_reply_writes_nothing),
	};

	return cmocka_run_group_tests(tests, start_service, stop_service);
}
