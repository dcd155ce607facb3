/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_bounds.c - the local fabric: what strangers may take of us is bounded
 *
 * Time in handshakes, descriptors, address space, the attention of a thread; and files that are in
 * the way of a listener.
 */
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "local_int.h"
#include "test_local_pair.h"

#define SLAB (512u << 10)

/* ---- listening ---- */

static void test_file_in_the_way(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct stat st;
	struct end s;
	int fd;

	(void)state;
	end_open(&s, f);
	fd = open(pair_path(), O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(fd, "mine", 4), 4);
	close(fd);
	assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), -EEXIST);
	assert_int_equal(stat(pair_path(), &st), 0);
	assert_int_equal(st.st_size, 4);
	assert_int_equal(unlink(pair_path()), 0);
	assert_int_equal(symlink("/nonexistent/leat", pair_path()), 0);
	assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), -EEXIST);
	assert_int_equal(unlink(pair_path()), 0);
	end_close(&s);
	rr_fabric_close(f);
}

struct starter {
	pthread_t thread;
	pthread_barrier_t *together;
	const char *path;
	struct end e;
	int rc;
};

static void *start(void *arg)
{
	struct starter *st = arg;

	pthread_barrier_wait(st->together);
	st->rc = rr_listen(st->e.cm, st->path, NULL, &st->e.l);
	return NULL;
}

/* Two servers start at once where a dead one has left its socket: one gets in, and stays in. */
static void test_started_at_once(void **state)
{
	static struct starter two[2];
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct rr_fabric *f = open_fabric(NULL);
	pthread_barrier_t together;
	char lock[80];
	struct stat st;

	(void)state;
	assert_int_equal(pthread_barrier_init(&together, NULL, 2), 0);
	memcpy(sun.sun_path, pair_path(), strlen(pair_path()));
	for (int i = 0; i < 2; i++) {
		two[i].together = &together;
		two[i].path = sun.sun_path;
		end_open(&two[i].e, f);
	}
	for (int round = 0; round < 300; round++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), winner;

		assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
		close(fd);
		for (int i = 0; i < 2; i++)
			assert_int_equal(pthread_create(&two[i].thread, NULL, start, &two[i]), 0);
		for (int i = 0; i < 2; i++)
			assert_int_equal(pthread_join(two[i].thread, NULL), 0);
		winner = two[0].rc ? 1 : 0;
		assert_int_equal(two[winner].rc, 0);
		assert_int_equal(two[!winner].rc, -EADDRINUSE);
		close(stranger());
		rr_unlisten(two[winner].e.l);
		two[winner].e.l = NULL;
	}
	snprintf(lock, sizeof(lock), "%s.lock", pair_path());
	assert_int_equal(stat(lock, &st), -1);
	for (int i = 0; i < 2; i++)
		end_close(&two[i].e);
	pthread_barrier_destroy(&together);
	rr_fabric_close(f);
}

/* ---- memory ---- */

static uint8_t *slab_map(int *ret_fd, size_t len)
{
	uint8_t *mem;

	*ret_fd = memfd_create("slab", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(*ret_fd, (off_t)len), 0);
	assert_int_equal(fcntl(*ret_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *ret_fd, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	return mem;
}

/* Whether a Write of the server to @mem goes into a slab; it gets there in any case. */
static bool goes_by_slab(struct end *c, struct end *s, uint8_t *mem, const struct rr_mr *mr)
{
	uint64_t before = rr_local_counters(s->f).slab_bytes;

	s->nwc = 0;
	memset(end_msg(s, 0), 0x77, 64);
	memset(mem, 0, 64);
	assert_int_equal(end_rdma(s, RR_WR_WRITE, end_msg(s, 0), 64, s->mr, mem, mr->rkey), 0);
	pair_wait(s, c, 1);
	assert_int_equal(s->wc[0].status, RR_WC_OK);
	assert_int_equal(mem[63], 0x77);
	return rr_local_counters(s->f).slab_bytes != before;
}

/* The peer learns how much memory we map. Memory beyond that is accessed in another way. */
static void test_pool_limit(void **state)
{
	const struct rr_local_attr attr = { .limits.region_bytes_max = 2 * SLAB };
	const unsigned access = RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE;
	struct hs_msg hs = { .magic = HS_MAGIC, .version = HS_VERSION, .type = HS_REGION,
			     .region = 12345, .size = 3 * SLAB };
	struct rr_fabric *f = open_fabric(NULL);
	struct rr_mr *mr[3], *big;
	uint8_t *mem[3], *bigmem;
	int fd[3], bigfd;
	struct end c, s;
	uint32_t token;
	void *p;

	(void)state;
	server_open(&s, &attr);
	end_open(&c, f);
	pair_connect(&c, &s);
	bigmem = slab_map(&bigfd, 3 * SLAB);
	big = end_reg(&c, bigmem, 3 * SLAB, access, bigfd);
	assert_false(goes_by_slab(&c, &s, bigmem, big));
	assert_int_equal(rr_qp_direct(s.qp, big->rkey, (uintptr_t)bigmem, 1, RR_ACCESS_REMOTE_WRITE, &p, &token),
			 -EOPNOTSUPP);
	for (int i = 0; i < 3; i++) {
		mem[i] = slab_map(&fd[i], SLAB);
		mr[i] = end_reg(&c, mem[i], SLAB, access, fd[i]);
		assert_int_equal(goes_by_slab(&c, &s, mem[i], mr[i]), i < 2);
	}
	/* what is taken back makes room */
	assert_int_equal(rr_mr_dereg(mr[0]), 0);
	assert_int_equal(rr_mr_dereg(mr[2]), 0);
	mr[2] = end_reg(&c, mem[2], SLAB, access, fd[2]);
	assert_true(goes_by_slab(&c, &s, mem[2], mr[2]));
	assert_int_equal(rr_local_counters(s.f).hostile, 0);
	/* a peer that ignores the limit is disconnected */
	assert_int_equal(rr_local_sock_send(to_qp(c.qp)->sock, &hs, &bigfd, 1), 0);
	while (to_qp(s.qp)->phase == PHASE_UP) {
		end_poll(&s);
		end_poll(&c);
	}
	assert_int_equal(rr_local_counters(s.f).hostile, 1);
	rr_qp_destroy(c.qp);
	c.qp = NULL;
	assert_int_equal(rr_mr_dereg(big), 0);
	munmap(bigmem, 3 * SLAB);
	close(bigfd);
	for (int i = 0; i < 3; i++) {
		if (i)
			assert_int_equal(rr_mr_dereg(mr[i]), 0);
		munmap(mem[i], SLAB);
		close(fd[i]);
	}
	end_close(&c);
	server_close(&s);
	rr_fabric_close(f);
}

/* Mapping a slab fills none of its holes, and a user has a share of what may be mapped. */
static void test_sparse(void **state)
{
	const size_t len = 512u << 20;
	const struct rr_local_attr attr = { .limits.mapped_bytes_max = 2 * len };
	struct rr_fabric *f = open_fabric(NULL);
	struct stat before, after;
	uint8_t *mem, *mem2;
	struct rr_mr *mr, *mr2;
	uint32_t token;
	struct end c, s;
	int fd, fd2;
	void *p;

	(void)state;
	server_open(&s, &attr);
	end_open(&c, f);
	pair_connect(&c, &s);
	mem = slab_map(&fd, len);
	mr = end_reg(&c, mem, len, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, fd);
	mem2 = slab_map(&fd2, SLAB);
	mr2 = end_reg(&c, mem2, SLAB, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, fd2);
	assert_int_equal(fstat(fd, &before), 0);
	assert_int_equal(rr_qp_direct(s.qp, mr->rkey, (uintptr_t)mem, 4096, RR_ACCESS_REMOTE_WRITE, &p, &token), 0);
	assert_int_equal(fstat(fd, &after), 0);
	assert_int_equal(after.st_blocks, before.st_blocks);
	rr_qp_direct_end(s.qp, token);
	assert_int_equal(rr_qp_direct(s.qp, mr2->rkey, (uintptr_t)mem2, 4096, RR_ACCESS_REMOTE_WRITE, &p, &token),
			 -EOPNOTSUPP);
	assert_false(goes_by_slab(&c, &s, mem2, mr2));
	assert_int_equal(rr_local_counters(s.f).hostile, 0);
	rr_qp_disconnect(c.qp);
	rr_qp_destroy(c.qp);
	c.qp = NULL;
	assert_int_equal(rr_mr_dereg(mr), 0);
	assert_int_equal(rr_mr_dereg(mr2), 0);
	end_close(&c);
	server_close(&s);
	rr_fabric_close(f);
	munmap(mem, len);
	munmap(mem2, SLAB);
	close(fd);
	close(fd2);
}

static const struct local_listener *listener_of(const struct end *s)
{
	return container_of(s->l, struct local_listener, base);
}

static bool greeted(int fd)
{
	struct hs_msg hs;

	return recv(fd, &hs, sizeof(hs), MSG_DONTWAIT) > 0;
}

static void process_until_greeted(struct end *s, int fd)
{
	struct pollfd p = { .fd = s->cm->fd, .events = POLLIN };

	while (!greeted(fd)) {
		assert_int_equal(poll(&p, 1, -1), 1);
		rr_cm_process(s->cm);
	}
}

/* ---- handshakes ---- */

static void test_no_descriptors(void **state)
{
	struct rlimit rl, few;
	struct end s;
	int fd, next;

	(void)state;
	server_open(&s, NULL);
	fd = stranger();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
	few = rl;
	next = dup(fd); /* the lowest free one */
	close(next);
	few.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	rr_cm_process(s.cm);
	assert_true(listener_of(&s)->resting);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
	process_until_greeted(&s, fd);
	close(fd);
	server_close(&s);
}

static void test_deadline(void **state)
{
	const struct rr_local_attr attr = { .limits.handshake_ms = 1 };
	struct pollfd p = { .events = POLLIN };
	struct end s;
	int fd;

	(void)state;
	server_open(&s, &attr);
	fd = stranger();
	p.fd = s.cm->fd;
	while (!rr_local_sock_gone(fd)) {
		assert_int_equal(poll(&p, 1, -1), 1);
		rr_cm_process(s.cm);
	}
	assert_int_equal(s.nevents, 0);
	close(fd);
	server_close(&s);
}

static void count_in(const struct rr_local_attr *attr, int want)
{
	struct end s;
	int fd[5], in = 0;

	server_open(&s, attr);
	for (int i = 0; i < 5; i++)
		fd[i] = stranger();
	rr_cm_process(s.cm);
	for (int i = 0; i < 5; i++)
		in += !rr_local_sock_gone(fd[i]);
	assert_int_equal(in, want);
	close(fd[0]);
	rr_cm_process(s.cm);
	fd[0] = stranger();
	rr_cm_process(s.cm);
	assert_false(rr_local_sock_gone(fd[0]));
	for (int i = 0; i < 5; i++)
		close(fd[i]);
	server_close(&s);
}

static void test_handshakes_at_once(void **state)
{
	const struct rr_local_attr of_uid = { .limits.handshakes_uid_max = 3 };
	const struct rr_local_attr of_all = { .limits.handshakes_max = 3 };

	(void)state;
	count_in(&of_uid, 3);
	count_in(&of_all, 2); /* one user never gets all of them */
}

/* A connection that ends before it is accepted costs no queue pair, and those behind it get in at once. When there
 * are many, the owner hears of the latest. */
static void left_unused(unsigned n, int told)
{
	struct rr_peer peer;
	uint32_t next;
	struct end s;
	int fd;

	server_open(&s, NULL);
	next = atomic_load(&to_fabric(s.f)->next_qpn);
	for (unsigned i = 0; i < n; i++)
		close(stranger());
	fd = stranger();
	rr_cm_process(s.cm);
	assert_true(greeted(fd));
	assert_int_equal(atomic_load(&to_fabric(s.f)->next_qpn) - next, 1);
	assert_int_equal(s.nevents, told);
	if (told) {
		rr_local_sock_peer(fd, &peer);
		assert_int_equal(s.events[0], RR_CM_REFUSED);
		assert_int_equal(s.status, -ESHUTDOWN);
		assert_string_equal(s.peer.text, peer.text);
	}
	close(fd);
	server_close(&s);
}

static void test_left_unused(void **state)
{
	(void)state;
	left_unused(5, 0);
	left_unused(127, 1); /* 64 are many; if this spans two periods, one of them has 64 */
}

/* Nor does one that waits for the greeting, and then ends. */
static void test_left_after_greeting(void **state)
{
	struct end s;

	(void)state;
	server_open(&s, NULL);
	for (int i = 0; i < 127; i++) {
		int fd = stranger();

		process_until_greeted(&s, fd);
		close(fd);
		container_of(s.cm, struct local_cm, base)->left_since_ns = clock_now_ns(); /* all within a second */
		rr_cm_process(s.cm);
	}
	assert_int_equal(s.nevents, 1);
	assert_int_equal(s.status, -ESHUTDOWN);
	server_close(&s);
}

/* ---- attention ---- */

#define FLOODERS 66
#define RINGS 200

/* However many ring, a poll is one round. */
static void test_flood(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct rr_qp *cq[FLOODERS], *sq[FLOODERS];
	int left = 0;
	struct end c, s;

	(void)state;
	end_open(&c, f);
	end_open(&s, f);
	c.nrecv = s.nrecv = 1;
	c.attr.sq_depth = c.attr.rq_depth = s.attr.sq_depth = s.attr.rq_depth = 2;
	assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
	for (int i = 0; i < FLOODERS; i++) {
		c.nevents = s.nevents = 0;
		pair_connect(&c, &s);
		cq[i] = c.qp;
		sq[i] = s.qp;
	}
	while (rr_cq_arm(s.cq))
		end_poll(&s);
	for (int i = 0; i < FLOODERS; i++)
		for (int k = 0; k < RINGS; k++)
			assert_int_equal(rr_local_sock_send(to_qp(cq[i])->sock, NULL, NULL, 0), 0);
	end_poll(&s);
	for (int i = 0; i < FLOODERS; i++) {
		int here = 0;

		assert_int_equal(ioctl(to_qp(sq[i])->sock, SIOCINQ, &here), 0);
		left += here;
	}
	assert_true(left > 0);
	/* and the next ones see to the rest */
	while (to_cq(s.cq)->fds_left)
		end_poll(&s);
	for (int i = 0; i < FLOODERS; i++) {
		rr_qp_destroy(cq[i]);
		rr_qp_destroy(sq[i]);
	}
	c.qp = s.qp = NULL;
	end_close(&c);
	end_close(&s);
	rr_fabric_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_in_the_way),
		cmocka_unit_test(test_started_at_once),
		cmocka_unit_test(test_pool_limit),
		cmocka_unit_test(test_sparse),
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_handshakes_at_once),
		cmocka_unit_test(test_left_unused),
		cmocka_unit_test(test_left_after_greeting),
		cmocka_unit_test(test_flood),
	};

	(void)unlink(pair_path()); /* of a killed run with our pid */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
