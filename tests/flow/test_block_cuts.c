/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_cuts.c - connections to block volumes that end while their calls wait, a server that stops meanwhile, and
 *                     storms of clients that take a volume over from each other
 *
 * Writes, and the saving of holders, wait in a worker while `hold` is set.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/util.h"
#include "block_lanes.h"
#include "block_odd.h"
#include "inside.h"
#include "server.h"
/* ---- what waits in a worker ---- */

enum { HOLD_WRITES = 1, HOLD_SAVING = 2 };

static atomic_int hold, held;
static sem_t let_go;

static void wait_if(int what)
{
	if (!(atomic_load(&hold) & what))
		return;
	atomic_fetch_add(&held, 1);
	while (sem_wait(&let_go))
		;
}

ssize_t __real_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
int __real_fsync(int fd);
int __wrap_fsync(int fd);

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	wait_if(HOLD_WRITES);
	return __real_pwritev2(fd, iov, n, off, flags);
}

int __wrap_fsync(int fd)
{
	wait_if(HOLD_SAVING);
	return __real_fsync(fd);
}

static bool is_held(void *arg)
{
	return atomic_load(&held) >= *(int *)arg;
}

static void hold_all(int what)
{
	atomic_store(&held, 0);
	atomic_store(&hold, what);
}

static void wait_held(int n)
{
	block_run_until(is_held, &n);
}

/* Those that are held; later ones do not wait. */
static void let_all_go(void)
{
	atomic_store(&hold, 0);
	for (int n = atomic_exchange(&held, 0); n; n--)
		sem_post(&let_go);
}

/* ---- what the server sees of connections ---- */

struct req;

void __real_req_conn_lost(void *conn);
void __wrap_req_conn_lost(void *conn);

static atomic_int losses; /* connections that ended and had calls */

void __wrap_req_conn_lost(void *conn)
{
	__real_req_conn_lost(conn);
	atomic_fetch_add(&losses, 1);
}

static int losses_before;

static bool is_lost(void *arg)
{
	(void)arg;
	return atomic_load(&losses) > losses_before;
}

/* Ends a connection that has calls, until the server has seen it. */
static void cut(struct block_client *c)
{
	losses_before = atomic_load(&losses);
	block_close(c);
	block_run_until(is_lost, NULL);
}

/* ---- connections that end while their calls wait ---- */

static uint64_t counter_before;

static bool counter_rose(void *name)
{
	return server_counters(block_rig.srv, name) > counter_before;
}

/* Starts a call; the server has it. */
static void begin_received(struct block_client *c, struct block_rig_call *call, uint32_t proc)
{
	counter_before = server_counters(block_rig.srv, "reqs");
	block_begin(c, call, proc, NULL, 0);
	block_run_until(counter_rose, TEXT("reqs"));
}

/* @victim: NULL: it takes nothing over; "": any */
static void begin_attach(struct block_client *c, struct block_rig_call *call, const char *holder, const char *victim)
{
	*call = (struct block_rig_call){ .args.attach = { .volume = TEXT("vol"), .holder = TEXT(holder),
							  .victim = TEXT(victim ? victim : ""), .app = TEXT(""),
							  .flags = victim ? BLOCK_TAKE_OVER : 0 } };
	begin_received(c, call, BLOCKPROC_ATTACH);
}

/* Return: status */
static block_status end_attach(struct block_rig_call *call)
{
	block_status status = block_end(call);

	xdr_free((xdrproc_t)xdr_BLOCKATTACHres, (char *)&call->res.attach);
	return status;
}

static void begin_detach(struct block_client *c, struct block_rig_call *call)
{
	*call = (struct block_rig_call){ .args.at.at = { .handle = "" } };
	begin_received(c, call, BLOCKPROC_DETACH);
}

/* Another connection of the same attachment: it is fenced, so what fenced it waits for operations that have begun. */
static void wait_fenced(const struct block_client *a)
{
	struct block_client c;

	block_connect(&c, a->lane.instance, 1);
	memcpy(c.handle, a->handle, sizeof(c.handle));
	while (odd_one(&c, BLOCKPROC_READ, 0, 512) != BLOCK_ERR_FENCED)
		;
	block_close(&c);
}

/* What waits when its connection ends */
enum waiting {
	ATTACH_WAITS,  /* for operations of the holder whose place it takes */
	ATTACH_QUEUES, /* for that ATTACH */
	BOTH_WAIT,
	ATTACH_SAVES,
	DETACH_WAITS,
	DETACH_SAVES,
	WRITE_MOVES,
	LANE_WAITS, /* a WRITE for one of the older connection */
	WAITINGS,
};

static void close_one(struct block_client *c)
{
	if (c->clnt)
		block_close(c);
}

static void cut_attaching(enum waiting w, struct block_client *a, struct block_client *b, struct block_client *c)
{
	struct block_rig_call first, second;

	begin_attach(b, &first, "b", "");
	wait_fenced(a);
	begin_attach(c, &second, "c", "");
	if (w != ATTACH_QUEUES)
		cut(b);
	if (w != ATTACH_WAITS)
		cut(c);
	let_all_go();
	if (w == ATTACH_WAITS)
		assert_int_equal(end_attach(&second), BLOCK_OK);
	if (w == ATTACH_QUEUES)
		assert_int_equal(end_attach(&first), BLOCK_OK);
	close_one(b);
	close_one(c);
}

static void cut_lane(struct block_client *a)
{
	struct block_rig_call call;
	struct block_client newer = *a;

	block_reconnect(&newer, a);
	a->lane.incarnation = 1;
	counter_before = server_counters(block_rig.srv, "block_lane_waits");
	block_write_begin_at(&newer, &call, 4096, odd_data, 4096, false);
	block_run_until(counter_rose, TEXT("block_lane_waits"));
	cut(&newer);
}

/* Clients: a has the volume, and a WRITE in progress, unless saving is what waits; b and c want it. */
static void cut_one(enum waiting w)
{
	struct block_rig_call write, call;
	struct block_client a, b, c, other;
	bool saves = w == ATTACH_SAVES || w == DETACH_SAVES;

	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	block_connect(&c, 3, 0);
	odd_attach(&a, "a", BLOCK_TAKE_OVER);
	hold_all(saves ? HOLD_SAVING : HOLD_WRITES);
	if (!saves) {
		block_write_begin_at(&a, &write, 0, odd_data, 4096, false);
		wait_held(1);
	}
	switch (w) {
	case ATTACH_WAITS:
	case ATTACH_QUEUES:
	case BOTH_WAIT:
		cut_attaching(w, &a, &b, &c);
		break;
	case DETACH_WAITS:
		block_connect(&other, 1, 2); /* there may be one credit per connection */
		memcpy(other.handle, a.handle, sizeof(other.handle));
		begin_detach(&other, &call);
		wait_fenced(&a);
		cut(&other);
		break;
	case ATTACH_SAVES:
		begin_attach(&b, &call, "b", "");
		wait_held(1);
		cut(&b);
		break;
	case DETACH_SAVES:
		begin_detach(&a, &call);
		wait_held(1);
		cut(&a);
		break;
	case WRITE_MOVES:
		cut(&a);
		break;
	case LANE_WAITS:
		cut_lane(&a);
		break;
	case WAITINGS:
		break;
	}
	let_all_go();
	odd_served();
	close_one(&a);
	close_one(&b);
	close_one(&c);
}

static void cuts(void **state)
{
	(void)state;
	odd_start("vol=a," PLAIN, NULL);
	for (unsigned w = 0; w < WAITINGS; w++)
		cut_one((enum waiting)w);
	odd_end();
}

/* A DETACH, or a take-over, has fenced a holder and waits for its WRITE when the connection ends, and no call comes
 * again: a restart does not bring the holder back. */
static void cut_is_saved(void **state)
{
	(void)state;
	for (unsigned takes_over = 0; takes_over < 2; takes_over++) {
		struct block_rig_call write, call;
		struct block_client a, b, other;

		odd_start("vol=a," PLAIN, NULL);
		block_connect(&a, 1, 0);
		odd_attach(&a, "a", 0);
		hold_all(HOLD_WRITES);
		block_write_begin_at(&a, &write, 0, odd_data, 4096, false);
		wait_held(1);
		block_connect(&other, takes_over ? 2 : 1, 2);
		memcpy(other.handle, a.handle, sizeof(other.handle));
		if (takes_over)
			begin_attach(&other, &call, "other", "");
		else
			begin_detach(&other, &call);
		wait_fenced(&a);
		cut(&other);
		let_all_go();
		(void)block_end(&write);
		block_close(&a);
		block_rig_restart(NULL);
		block_connect(&b, 3, 0);
		assert_int_equal(block_attach(&b, "vol", "b", 0, NULL), BLOCK_OK);
		block_close(&b);
		odd_end();
	}
}

/* On a shared volume a DETACH waits for the ATTACH of another holder. */
static void cut_queued_detach(void **state)
{
	struct block_rig_call saves, queues;
	struct block_client a, b, c;

	(void)state;
	odd_start("vol=a," PLAIN ",share=shared", NULL);
	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	block_connect(&c, 3, 0);
	odd_attach(&a, "a", 0);
	hold_all(HOLD_SAVING);
	begin_attach(&b, &saves, "b", NULL);
	wait_held(1);
	begin_detach(&a, &queues);
	cut(&a);
	let_all_go();
	assert_int_equal(end_attach(&saves), BLOCK_OK);
	assert_int_equal(block_attach(&c, "vol", "c", 0, NULL), BLOCK_OK);
	assert_int_equal(c.info.nholders, 3); /* it is still there */
	block_close(&b);
	block_close(&c);
	odd_end();
}

/* Two of its clients take over a holder that still writes. The first one fences it, and is lost. The place that became
 * free is taken: there is none for the second one. */
static void places_of_fenced(void **state)
{
	struct block_rig_call write, first, second;
	struct block_client a, b, c, victim;
	char name[32];

	(void)state;
	odd_start("vol=a," PLAIN ",share=shared", NULL);
	block_connect(&a, 1, 0);
	block_connect(&b, 2, 0);
	block_connect(&c, 3, 0);
	block_connect(&victim, 4, 0);
	odd_attach(&victim, "victim", 0);
	for (unsigned n = 1; n < BLOCK_HOLDERS_MAX / 2; n++) { /* as many as one client may have */
		(void)snprintf(name, sizeof(name), "holder %u", n);
		odd_attach(&a, name, 0);
	}
	assert_int_equal(block_attach(&a, "vol", "one more", 0, NULL), BLOCK_ERR_BUSY);
	hold_all(HOLD_WRITES);
	block_write_begin_at(&victim, &write, 0, odd_data, 4096, false);
	wait_held(1);
	begin_attach(&b, &first, "b", "victim");
	wait_fenced(&victim);
	cut(&b);
	odd_attach(&a, "one more", 0);
	begin_attach(&c, &second, "c", "victim");
	let_all_go();
	assert_int_equal(end_attach(&second), BLOCK_ERR_BUSY);
	(void)block_end(&write);
	block_close(&a);
	block_close(&c);
	block_close(&victim);
	odd_end();
}

/* ---- a call that goes on is lost on the way ---- */

void __real_req_wake(struct list *waiters);
void __wrap_req_wake(struct list *waiters);

static atomic_bool defers;
static struct req_waiter *deferred;

/* While it defers, the messages to waiting calls are on the way. */
void __wrap_req_wake(struct list *waiters)
{
	struct list *n;

	if (!atomic_load(&defers)) {
		__real_req_wake(waiters);
		return;
	}
	while ((n = list_pop(waiters)) != NULL)
		deferred = list_entry(n, struct req_waiter, link);
}

static void lost_on_the_way(void **state)
{
	struct block_rig_call saves, queues;
	struct block_client b, c;
	struct list woken = LIST_INIT(woken);

	(void)state;
	odd_start("vol=a," PLAIN, NULL);
	block_connect(&b, 2, 0);
	block_connect(&c, 3, 0);
	deferred = NULL;
	for (;;) {
		hold_all(HOLD_SAVING);
		begin_attach(&b, &saves, "b", "");
		wait_held(1);
		begin_attach(&c, &queues, "c", "");
		atomic_store(&defers, true);
		let_all_go();
		assert_int_equal(end_attach(&saves), BLOCK_OK);
		if (deferred)
			break;
		/* its reactor had it, and did not yet run it */
		atomic_store(&defers, false);
		assert_int_equal(end_attach(&queues), BLOCK_OK);
	}
	cut(&c);
	atomic_store(&defers, false);
	list_add_tail(&woken, &deferred->link);
	__real_req_wake(&woken);
	odd_served();
	block_close(&b);
	odd_end();
}

/* ---- the server stops while calls wait ---- */

static void *let_go_meanwhile(void *arg)
{
	(void)arg;
	let_all_go();
	return NULL;
}

static void stops(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 8; round++) {
		struct block_rig_call write, late, first, second;
		struct block_client a, b, c, newer;
		pthread_t thread;

		odd_start("vol=a," PLAIN, NULL);
		block_connect(&a, 1, 0);
		block_connect(&b, 2, 0);
		block_connect(&c, 3, 0);
		odd_attach(&a, "a", 0);
		hold_all(HOLD_WRITES);
		block_write_begin_at(&a, &write, 0, odd_data, 4096, false);
		wait_held(1);
		newer = a;
		block_reconnect(&newer, &a);
		counter_before = server_counters(block_rig.srv, "block_lane_waits");
		block_write_begin_at(&newer, &late, 4096, odd_data, 4096, false);
		block_run_until(counter_rose, TEXT("block_lane_waits"));
		if (round % 2) { /* its lane's WRITE is refused, and waits no longer */
			begin_attach(&b, &first, "b", "");
			begin_attach(&c, &second, "c", "");
		}
		assert_int_equal(pthread_create(&thread, NULL, let_go_meanwhile, NULL), 0);
		assert_int_equal(server_stop(block_rig.srv, 20000), 0);
		block_rig.srv = NULL;
		pthread_join(thread, NULL);
		block_close(&newer);
		block_close(&a);
		block_close(&b);
		block_close(&c);
		odd_end();
	}
}

/* ---- storms ---- */

#define STORM_CLIENTS 4
#define STORM_STEPS 1500

struct storm_client {
	struct block_client c;
	struct block_rig_call call;
	bool busy;
	char name[2];
};

static void storm_end(struct storm_client *s)
{
	if (!s->busy)
		return;
	s->busy = false;
	(void)block_end(&s->call);
	if (s->call.call.proc == BLOCKPROC_ATTACH) {
		if (s->call.res.status == BLOCK_OK)
			memcpy(s->c.handle, s->call.res.attach.BLOCKATTACHres_u.resok.handle, sizeof(s->c.handle));
		xdr_free((xdrproc_t)xdr_BLOCKATTACHres, (char *)&s->call.res.attach);
	}
}

static void storm_begin(struct storm_client *s, uint64_t n)
{
	static const uint32_t procs[] = { BLOCKPROC_ATTACH, BLOCKPROC_ATTACH, BLOCKPROC_WRITE, BLOCKPROC_READ,
					  BLOCKPROC_FLUSH,  BLOCKPROC_ZERO,   BLOCKPROC_WRITE, BLOCKPROC_DETACH };
	uint32_t proc = procs[n % ARRAY_SIZE(procs)];

	s->call = (struct block_rig_call){ .args.at.at = { .handle = "" } };
	if (proc == BLOCKPROC_ATTACH) {
		s->call.args.attach = (BLOCKATTACHargs){ .volume = TEXT("vol"), .holder = s->name, .victim = TEXT(""),
							 .app = TEXT(""), .flags = BLOCK_TAKE_OVER };
	} else if (proc == BLOCKPROC_WRITE) {
		s->call.iov = (struct iovec){ odd_data, 8192 };
		s->call.args.write = (BLOCKWRITEargs){ .offset = 0, .fua = n & 8,
						       .data = { .length = 8192, .iov = &s->call.iov, .iovcnt = 1 } };
	} else if (proc == BLOCKPROC_READ) {
		s->call.args.read = (BLOCKREADargs){ .offset = 0, .count = 8192 };
	} else if (proc == BLOCKPROC_ZERO) {
		s->call.args.zero = (BLOCKZEROargs){ .offset = 0, .length = 8192 };
	}
	block_begin(&s->c, &s->call, proc, proc == BLOCKPROC_READ ? odd_mem + 65536 * (s->name[0] - 'a') : NULL, 8192);
	s->busy = true;
}

/* With a call in progress or not: a newer connection of the lane, another lane, or another process */
static void storm_cut(struct storm_client *s, uint64_t n)
{
	block_close(&s->c);
	if (s->busy && s->call.call.proc == BLOCKPROC_ATTACH && !s->call.err) /* its reply was there */
		xdr_free((xdrproc_t)xdr_BLOCKATTACHres, (char *)&s->call.res.attach);
	s->busy = false;
	if (n % 3) {
		block_reconnect(&s->c, &(struct block_client){ .clnt = NULL });
		s->c.lane.slot = n % 3 == 1 ? s->c.lane.slot : (uint32_t)(n >> 8) % BLOCK_LANES_MAX;
	} else {
		block_connect(&s->c, n, 0);
	}
}

/* Clients take the volume over from each other, use it, and break off. Nothing hangs, and another volume is served. */
static void storm(void **state)
{
	static struct storm_client clients[STORM_CLIENTS];
	struct block_client calm;
	uint64_t seed = 1;

	(void)state;
	odd_start("vol=a," PLAIN, "calm=b," PLAIN);
	block_connect(&calm, 0x600d, 0);
	assert_int_equal(block_attach(&calm, "calm", "me", 0, NULL), BLOCK_OK);
	for (unsigned i = 0; i < STORM_CLIENTS; i++) {
		clients[i] = (struct storm_client){ .name = { (char)('a' + i) } };
		block_connect(&clients[i].c, i + 1, 0);
	}
	for (unsigned i = 0; i < STORM_STEPS; i++) {
		uint64_t n = random_next(&seed);
		struct storm_client *s = &clients[n % STORM_CLIENTS];

		n >>= 8;
		if (n % 16 == 0)
			storm_cut(s, n >> 4);
		storm_end(s);
		storm_begin(s, n >> 16);
		if (i % 50)
			continue;
		assert_int_equal(block_write(&calm, i * 512, odd_data + i, 512, false), BLOCK_OK);
		assert_int_equal(block_read(&calm, i * 512, odd_mem + (2 << 20), 512), BLOCK_OK);
		assert_memory_equal(odd_mem + (2 << 20), odd_data + i, 512);
	}
	for (unsigned i = 0; i < STORM_CLIENTS; i++) {
		storm_end(&clients[i]);
		block_close(&clients[i].c);
	}
	odd_served();
	block_close(&calm);
	odd_end();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ODD_BOTH(cuts), ODD_BOTH(cut_is_saved), ODD_BOTH(cut_queued_detach), ODD_BOTH(places_of_fenced), ODD_BOTH(lost_on_the_way), ODD_BOTH(stops), ODD_BOTH(storm),
	};

	sem_init(&let_go, 0, 0);
	return cmocka_run_group_tests_name("block cuts", tests, NULL, NULL);
}
