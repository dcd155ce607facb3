/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_close.c - the local fabric: descriptors whose close() sleeps hold up nothing of others
 *
 * One is a TCP socket that lingers over data its receiver does not take: a thread that closes it in
 * place stands still until the test does. Another one stands for a file of a FUSE file system
 * that a user serves: close() is wrapped, and sleeps over one inode while the test wants it to.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

#include "local_int.h"
#include "shm_map.h"
#include "test_local_pair.h"

/* ---- sockets that linger ---- */

/* A socket whose close() sleeps for an hour, or until *ret_sink is closed. */
static int lingering(int *ret_sink)
{
	const struct linger hour = { .l_onoff = 1, .l_linger = 3600 };
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);
	int l = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	static const char fill[65536];

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(l, (struct sockaddr *)&sin, len), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&sin, &len), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sin, len), 0);
	*ret_sink = accept(l, NULL, NULL);
	assert_true(*ret_sink >= 0);
	close(l);
	while (send(fd, fill, sizeof(fill), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)), 0);
	return fd;
}

/* The far ends of lingering sockets that were passed on. */
struct sinks {
	int fd[8], n;
};

static void sinks_close(struct sinks *s)
{
	while (s->n)
		close(s->fd[--s->n]);
}

/* Sends two messages on @sock, each with @n lingering sockets. */
static void pass_lingering(int sock, int n, struct sinks *sinks)
{
	struct hs_msg hs = { .magic = HS_MAGIC, .version = HS_VERSION, .type = HS_REGION,
			     .size = 4096 };

	sinks->n = 0;
	for (int i = 0; i < 2; i++) {
		int fds[4];

		for (int k = 0; k < n; k++)
			fds[k] = lingering(&sinks->fd[sinks->n++]);
		assert_int_equal(rr_local_sock_send(sock, &hs, fds, n), 0);
		for (int k = 0; k < n; k++)
			close(fds[k]); /* not the last one any more */
	}
}

static void test_lingering_handshake(void **state)
{
	(void)state;
	for (int n = 1; n <= 4; n++) {
		struct sinks sinks;
		struct end s;
		int fd;

		server_open(&s, NULL);
		fd = stranger();
		pass_lingering(fd, n, &sinks);
		while (!rr_local_sock_gone(fd))
			rr_cm_process(s.cm);
		close(fd);
		sinks_close(&sinks);
		server_close(&s);
	}
}

/* The listener ends before it has accepted the connection. */
static void test_lingering_backlog(void **state)
{
	struct sinks sinks;
	struct end s;
	int fd;

	(void)state;
	server_open(&s, NULL);
	fd = stranger();
	pass_lingering(fd, 1, &sinks);
	close(fd);
	rr_unlisten(s.l);
	s.l = NULL;
	sinks_close(&sinks);
	server_close(&s);
}

/* On a connection that is up: one is read, the other one is in the queue when it is destroyed. */
static void test_lingering_connected(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct sinks sinks;
	struct end c, s;

	(void)state;
	server_open(&s, NULL);
	end_open(&c, f);
	pair_connect(&c, &s);
	pass_lingering(to_qp(c.qp)->sock, 1, &sinks);
	while (s.nwc < 16)
		end_poll(&s);
	assert_int_equal(rr_local_counters(s.f).hostile, 1);
	rr_qp_destroy(s.qp);
	s.qp = NULL;
	sinks_close(&sinks);
	end_close(&c);
	server_close(&s);
	rr_fabric_close(f);
}

/* ---- a file of a user's own ---- */

int __real_close(int fd);
int __wrap_close(int fd);

static struct {
	pthread_mutex_t lock;
	pthread_cond_t over;
	ino_t ino; /* 0: nothing sleeps */
	_Atomic unsigned asleep;
} stuck = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0 };

int __wrap_close(int fd)
{
	struct stat st;

	pthread_mutex_lock(&stuck.lock);
	if (stuck.ino && !fstat(fd, &st) && st.st_ino == stuck.ino) {
		stuck.asleep++;
		pthread_cond_broadcast(&stuck.over);
		while (stuck.ino == st.st_ino)
			pthread_cond_wait(&stuck.over, &stuck.lock);
	}
	pthread_mutex_unlock(&stuck.lock);
	return __real_close(fd);
}

static void sleep_over(ino_t ino)
{
	pthread_mutex_lock(&stuck.lock);
	stuck.ino = ino;
	stuck.asleep = 0;
	pthread_cond_broadcast(&stuck.over);
	pthread_mutex_unlock(&stuck.lock);
}

static void wait_asleep(void)
{
	pthread_mutex_lock(&stuck.lock);
	while (!stuck.asleep)
		pthread_cond_wait(&stuck.over, &stuck.lock);
	pthread_mutex_unlock(&stuck.lock);
}

static int connect_as(uid_t uid)
{
	int fd;

	assert_int_equal(seteuid(uid), 0);
	fd = stranger();
	assert_int_equal(seteuid(0), 0);
	return fd;
}

static bool greeted(int fd)
{
	struct hs_msg hs;

	return recv(fd, &hs, sizeof(hs), MSG_DONTWAIT) > 0;
}

/* @n descriptors of a file that sleeps, with one message. */
static void pass_stuck(int sock, int file, int n)
{
	struct hs_msg hs = { .magic = HS_MAGIC, .version = HS_VERSION, .type = HS_REQ };
	int fds[4] = { file, file, file, file };

	assert_int_equal(rr_local_sock_send(sock, &hs, fds, n), 0);
}

/* How many descriptors of ours are of that file. */
static int held(ino_t ino)
{
	char path[40];
	struct stat st;
	int n = 0;

	for (int fd = 0; fd < 4096; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n += !stat(path, &st) && st.st_ino == ino;
	}
	return n;
}

/* User 65534 passes @file until nothing more is read from that user: one after the other connects, and is hung up on. */
static void pass_until_full(struct end *s, int file)
{
	struct local_closer *closer = to_fabric(s->f)->closer;

	for (int round = 0; !rr_local_closer_full(closer, 65534); round++) {
		int fd;

		assert_true(round < 1000);
		assert_false(rr_local_closer_full(closer, LOCAL_OURS)); /* no connection would be accepted */
		fd = connect_as(65534);
		pass_stuck(fd, file, 4);
		while (!rr_local_sock_gone(fd))
			rr_cm_process(s->cm);
		__real_close(fd);
	}
	wait_asleep();
}

/* Of one user, 64 wait or sleep: nothing more of it is read. All others come in, and their descriptors go. */
static void test_one_user_stuck(void **state)
{
	int fds[2], fd, sink, before;
	struct local_closer *closer;
	struct stat st;
	struct end s;

	(void)state;
	if (geteuid()) {
		print_message("SKIP: two users take root\n");
		skip();
	}
	server_open(&s, NULL);
	closer = to_fabric(s.f)->closer;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(fstat(fds[1], &st), 0);
	sleep_over(st.st_ino);
	pass_until_full(&s, fds[1]);
	/* 64 and what the last one had: more is not even taken into our table */
	before = held(st.st_ino);
	assert_true(before >= 64);
	fd = connect_as(65534);
	pass_stuck(fd, fds[1], 4);
	while (!rr_local_sock_gone(fd))
		rr_cm_process(s.cm);
	__real_close(fd);
	assert_int_equal(held(st.st_ino), before);
	assert_false(rr_local_closer_full(closer, LOCAL_OURS));
	assert_false(rr_local_closer_full(closer, 0));
	/* another one comes in, and a socket that lingers is let go of meanwhile */
	fd = stranger();
	while (!greeted(fd))
		rr_cm_process(s.cm);
	pass_stuck(fd, lingering(&sink), 1);
	while (!rr_local_sock_gone(fd))
		rr_cm_process(s.cm);
	__real_close(fd);
	for (int i = 0; i < 100; i++) {
		fd = stranger();
		while (!greeted(fd))
			rr_cm_process(s.cm);
		__real_close(fd);
	}
	sleep_over(0);
	__real_close(sink);
	__real_close(fds[0]);
	__real_close(fds[1]);
	server_close(&s);
}

/* A user's sockets wait in a line of that user's, and are counted there: others still come in. */
static void test_many_sockets(void **state)
{
	int fds[2], fd;
	struct local_closer *closer;
	struct stat st;
	struct end s;

	(void)state;
	if (geteuid()) {
		print_message("SKIP: two users take root\n");
		skip();
	}
	server_open(&s, NULL);
	closer = to_fabric(s.f)->closer;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(fstat(fds[1], &st), 0);
	sleep_over(st.st_ino);
	pass_until_full(&s, fds[1]);
	assert_in_range(held(st.st_ino), 512, 520);
	assert_false(rr_local_closer_full(closer, LOCAL_OURS));
	assert_false(rr_local_closer_full(closer, 0));
	fd = stranger();
	while (!greeted(fd))
		rr_cm_process(s.cm);
	__real_close(fd);
	sleep_over(0);
	__real_close(fds[0]);
	__real_close(fds[1]);
	server_close(&s);
}

/* While too many connections of all users wait to be closed new ones wait as well, and the listener gets an event with
 * the reason. */
static void test_connections_wait(void **state)
{
	struct local_closer *closer;
	struct stat st;
	struct end s;
	int fds[2], fd;

	(void)state;
	server_open(&s, NULL);
	closer = to_fabric(s.f)->closer;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(fstat(fds[1], &st), 0);
	sleep_over(st.st_ino);
	while (!rr_local_closer_full(closer, LOCAL_OURS))
		rr_local_close_later(closer, LOCAL_OURS, dup(fds[1]));
	fd = stranger();
	rr_cm_process(s.cm);
	assert_int_equal(s.nevents, 1);
	assert_int_equal(s.events[0], RR_CM_REFUSED);
	assert_int_equal(s.status, -EXFULL);
	rr_cm_process(s.cm); /* not again before the listener has rested */
	assert_in_range(s.nevents, 1, 2);
	assert_false(greeted(fd));
	sleep_over(0);
	while (!greeted(fd)) {
		s.nevents = 0;
		rr_cm_process(s.cm);
	}
	__real_close(fd);
	__real_close(fds[0]);
	__real_close(fds[1]);
	server_close(&s);
}

/* ---- memory that takes long to free ---- */

#define BIG ((size_t)65 << 20)

struct big {
	uint8_t *mem;
	int fd;
	ino_t ino;
	struct rr_mr *mr;
};

static void big_open(struct big *b, struct end *c)
{
	struct stat st;

	b->fd = rr_shm_create("big", BIG);
	assert_int_equal(fstat(b->fd, &st), 0);
	b->ino = st.st_ino;
	b->mem = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	assert_ptr_not_equal(b->mem, MAP_FAILED);
	b->mr = end_reg(c, b->mem, BIG, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, b->fd);
}

/* The server needs it, and so takes it from its socket. Return: was it mapped? */
static bool big_use(struct big *b, struct end *c, struct end *s)
{
	uint64_t before = rr_local_counters(s->f).slab_bytes;

	s->nwc = 0;
	assert_int_equal(end_rdma(s, RR_WR_WRITE, end_msg(s, 0), 64, s->mr, b->mem, b->mr->rkey), 0);
	pair_wait(s, c, 1);
	assert_int_equal(s->wc[0].status, RR_WC_OK);
	return rr_local_counters(s->f).slab_bytes != before;
}

static void big_close(struct big *b)
{
	if (b->mr)
		assert_int_equal(rr_mr_dereg(b->mr), 0);
	munmap(b->mem, BIG);
	__real_close(b->fd);
}

/* While the closer frees memory: a socket that a user passed is let go of. */
static void sockets_go_meanwhile(struct end *s)
{
	struct stat st;
	int sink, l = lingering(&sink), fd = stranger();

	wait_asleep();
	assert_int_equal(fstat(l, &st), 0);
	pass_stuck(fd, l, 1);
	__real_close(l); /* not the last one any more */
	while (!rr_local_sock_gone(fd))
		rr_cm_process(s->cm);
	while (held(st.st_ino))
		sched_yield();
	assert_false(rr_local_closer_full(to_fabric(s->f)->closer, geteuid()));
	__real_close(fd);
	__real_close(sink);
	sleep_over(0);
}

/* Polling threads continue while large memory is freed, and so does the closing of sockets. */
static void test_big_memory(void **state)
{
	const struct rr_local_attr attr = { .limits.mapped_bytes_max = BIG + BIG / 2 };
	struct rr_fabric *f = open_fabric(NULL);
	struct big taken, refused;
	struct end c, s;

	(void)state;
	alarm(45); /* where one of them waits for another, this never ends */
	server_open(&s, &attr);
	end_open(&c, f);
	pair_connect(&c, &s);
	big_open(&taken, &c);
	assert_true(big_use(&taken, &c, &s));
	big_open(&refused, &c);
	sleep_over(refused.ino);
	assert_false(big_use(&refused, &c, &s));
	sockets_go_meanwhile(&s);

	assert_int_equal(rr_mr_dereg(taken.mr), 0);
	taken.mr = NULL;
	sleep_over(taken.ino);
	while (!stuck.asleep)
		(void)rr_local_move_drain(to_qp(s.qp));
	sockets_go_meanwhile(&s);
	big_close(&taken);
	big_close(&refused);
	end_close(&c);
	server_close(&s);
	rr_fabric_close(f);
	alarm(0);
}

/* ---- messages of no bytes ---- */

/* Nothing can be read of it, but what it brings is there. */
static void pass_empty(int sock, int fd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} ctl = { .buf = { 0 } };
	struct iovec iov = { .iov_base = &ctl, .iov_len = 0 };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl.buf,
			     .msg_controllen = sizeof(ctl.buf) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&mh);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	assert_int_equal(sendmsg(sock, &mh, 0), 0);
}

static void test_lingering_behind_nothing(void **state)
{
	struct sinks sinks = { .n = 0 };
	struct end s;
	int fd;

	(void)state;
	server_open(&s, NULL);
	fd = stranger();
	for (int i = 0; i < 3; i++) {
		int l = lingering(&sinks.fd[sinks.n++]);

		pass_empty(fd, l);
		close(l);
	}
	while (!rr_local_sock_gone(fd))
		rr_cm_process(s.cm);
	close(fd);
	/* the lingering data is never read, and yet everything ends */
	server_close(&s);
	sinks_close(&sinks);
}

/* ---- the socket's file ---- */

int __real_bind(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len);

static const char *swap_for; /* what the name of a socket leads to as soon as there is one */

int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	int rc = __real_bind(fd, addr, len);

	if (!rc && swap_for) {
		assert_int_equal(unlink(pair_path()), 0);
		assert_int_equal(symlink(swap_for, pair_path()), 0);
	}
	return rc;
}

/* A user that may write to the directory of a socket cannot make us change another file's mode. */
static void test_name_swapped(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	char victim[96];
	struct stat st;
	struct end s;
	int fd;

	(void)state;
	end_open(&s, f);
	snprintf(victim, sizeof(victim), "%s.victim", pair_path());
	fd = open(victim, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	close(fd);
	swap_for = victim;
	assert_true(rr_listen(s.cm, pair_path(), NULL, &s.l) < 0);
	swap_for = NULL;
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(unlink(victim), 0);
	(void)unlink(pair_path());
	end_close(&s);
	rr_fabric_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lingering_handshake),
		cmocka_unit_test(test_lingering_backlog),
		cmocka_unit_test(test_lingering_connected),
		cmocka_unit_test(test_lingering_behind_nothing),
		cmocka_unit_test(test_one_user_stuck),
		cmocka_unit_test(test_many_sockets),
		cmocka_unit_test(test_connections_wait),
		cmocka_unit_test(test_big_memory),
		cmocka_unit_test(test_name_swapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
