/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_cm.c - the local fabric: rendezvous, refusals, many connections, other processes
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "test_local_pair.h"

static void test_nobody_there(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct rr_qp *qp = NULL;
	char path[300];
	struct end c;

	(void)state;
	end_open(&c, f);
	assert_int_equal(rr_qp_dial(c.cm, pair_path(), NULL, &qp), -ECONNREFUSED);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	assert_int_equal(rr_qp_dial(c.cm, path, NULL, &qp), -ENAMETOOLONG);
	assert_int_equal(rr_listen(c.cm, path, NULL, &c.l), -ENAMETOOLONG);
	assert_null(qp);
	end_close(&c);
	rr_fabric_close(f);
}

static void test_stale_and_live_paths(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct end s, t;
	struct stat st;
	int fd;

	(void)state;
	end_open(&s, f);
	end_open(&t, f);
	/* what a killed server leaves behind */
	fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	memcpy(sun.sun_path, pair_path(), strlen(pair_path()));
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	close(fd);
	assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
	assert_int_equal(stat(pair_path(), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
	assert_int_equal(rr_listen(t.cm, pair_path(), NULL, &t.l), -EADDRINUSE);
	rr_unlisten(s.l);
	s.l = NULL;
	assert_int_equal(stat(pair_path(), &st), -1);
	end_close(&s);
	end_close(&t);
	rr_fabric_close(f);
}

static void test_reject(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct end c, s;

	(void)state;
	end_open(&c, f);
	end_open(&s, f);
	assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
	assert_int_equal(rr_qp_dial(c.cm, pair_path(), NULL, &c.qp), 0);
	end_wait_event(&c, &s, 1);
	end_setup(&c);
	assert_int_equal(rr_qp_connect(c.qp, &c.param), 0);
	end_wait_event(&s, NULL, 1);
	assert_int_equal(rr_qp_reject(s.qp), 0);
	assert_int_equal(rr_qp_reject(s.qp), -ENOTCONN);
	end_wait_event(&c, NULL, 2);
	assert_int_equal(c.events[1], RR_CM_FAILED);
	assert_int_equal(c.status, -ECONNREFUSED);
	end_close(&c);
	end_close(&s);
	rr_fabric_close(f);
}

/* Either side goes away at every step; the other gets an event, or finds out. */
static void test_leaving_early(void **state)
{
	(void)state;
	for (int step = 0; step < 5; step++) {
		struct rr_fabric *f = open_fabric(NULL);
		struct end c, s;

		end_open(&c, f);
		end_open(&s, f);
		assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
		assert_int_equal(rr_qp_dial(c.cm, pair_path(), NULL, &c.qp), 0);
		if (step == 0) { /* the client, at once */
			rr_qp_destroy(c.qp);
			c.qp = NULL;
			rr_cm_process(s.cm);
			rr_cm_process(s.cm);
		} else if (step == 1) { /* the server, before it looked */
			rr_unlisten(s.l);
			s.l = NULL;
			end_wait_event(&c, NULL, 1);
			assert_int_equal(c.events[0], RR_CM_FAILED);
			assert_int_equal(c.status, -ECONNREFUSED);
		} else {
			end_wait_event(&c, &s, 1);
			end_setup(&c);
			assert_int_equal(rr_qp_connect(c.qp, &c.param), 0);
			end_wait_event(&s, NULL, 1);
			if (step == 2) { /* the server, instead of an answer */
				rr_qp_destroy(s.qp);
				s.qp = NULL;
				end_wait_event(&c, NULL, 2);
				assert_int_equal(c.events[1], RR_CM_FAILED);
				assert_int_equal(c.status, -ECONNRESET);
			} else { /* the client, before the answer */
				end_setup(&s);
				if (step == 3)
					rr_qp_disconnect(c.qp);
				rr_qp_destroy(c.qp);
				c.qp = NULL;
				assert_true(rr_qp_accept(s.qp, &s.param) < 0);
			}
		}
		end_close(&c);
		end_close(&s);
		rr_fabric_close(f);
	}
}

static void test_conns_max(void **state)
{
	struct rr_local_attr attr = { .limits.conns_max = 2 };
	struct rr_fabric *few = open_fabric(&attr), *f = open_fabric(NULL);
	struct rr_qp *qp[3];
	struct end c, s;

	(void)state;
	end_open(&c, f);
	end_open(&s, few);
	assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rr_qp_dial(c.cm, pair_path(), NULL, &qp[i]), 0);
	end_wait_event(&c, &s, 3);
	assert_int_equal(c.events[0] + c.events[1] + c.events[2], 2 * RR_CM_ROUTED + RR_CM_FAILED);
	for (int i = 0; i < 3; i++)
		rr_qp_destroy(qp[i]);
	end_close(&c);
	end_close(&s);
	rr_fabric_close(f);
	rr_fabric_close(few);
}

/* Things a stranger may say on the socket. */
static void test_garbage(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	char junk[200];
	struct end s;

	(void)state;
	end_open(&s, f);
	assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
	memcpy(sun.sun_path, pair_path(), strlen(pair_path()));
	memset(junk, 0x41, sizeof(junk));
	for (size_t len = 1; len <= sizeof(junk); len += 33) {
		struct pollfd p = { .fd = socket(AF_UNIX, SOCK_SEQPACKET, 0) };

		assert_int_equal(connect(p.fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
		assert_int_equal(send(p.fd, junk, len, 0), (ssize_t)len);
		while (!(p.revents & POLLHUP)) {
			rr_cm_process(s.cm);
			poll(&p, 1, 0);
		}
		close(p.fd);
	}
	assert_int_equal(s.nevents, 0);
	end_close(&s);
	rr_fabric_close(f);
}

#define MANY 1000

/* All on two completion queues; most are dormant most of the time. */
static void test_many(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct rlimit rl;
	struct rr_qp **cq, **sq;
	struct end c, s;
	int n = MANY;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
	rl.rlim_cur = rl.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
	if (rl.rlim_cur < 2 * MANY + 64)
		n = (int)(rl.rlim_cur - 64) / 2;
	cq = calloc((size_t)n, sizeof(*cq));
	sq = calloc((size_t)n, sizeof(*sq));
	end_open(&c, f);
	end_open(&s, f);
	c.nrecv = s.nrecv = 1;
	c.attr.sq_depth = c.attr.rq_depth = s.attr.sq_depth = s.attr.rq_depth = 2;
	assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
	for (int i = 0; i < n; i++) {
		c.nevents = s.nevents = 0;
		pair_connect(&c, &s);
		cq[i] = c.qp;
		sq[i] = s.qp;
	}
	/* enough idle polls for everyone to doze off */
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(end_poll(&c), 0);
		assert_int_equal(end_poll(&s), 0);
	}
	for (int i = 0; i < n; i += 7) {
		s.nwc = c.nwc = 0;
		c.qp = cq[i];
		assert_int_equal(end_send(&c, 0, 10, RR_WR_SIGNALED), 0);
		pair_wait(&s, &c, 1);
		assert_int_equal(s.wc[0].status, RR_WC_OK);
	}
	/* and asleep */
	while (rr_cq_arm(s.cq))
		end_poll(&s);
	s.nwc = 0;
	c.qp = cq[1];
	assert_int_equal(end_send(&c, 0, 10, RR_WR_SIGNALED), 0);
	pair_wait(&s, &c, 1);
	for (int i = 0; i < n; i++) {
		rr_qp_destroy(cq[i]);
		rr_qp_destroy(sq[i]);
	}
	c.qp = s.qp = NULL;
	free(cq);
	free(sq);
	end_close(&c);
	end_close(&s);
	rr_fabric_close(f);
}

/* ---- another process ---- */

static uint64_t vm_bytes; /* moved by process_vm_* in the latest two_processes() */

struct note {
	uint64_t addr;
	uint32_t rkey;
};

static void other_process(int from, uid_t uid, enum rr_local_vm vm, bool hang)
{
	struct rr_local_attr attr = { .vm = uid ? RR_LOCAL_VM_AUTO : vm };
	struct rr_fabric *f;
	struct note note;
	struct end c;
	uint8_t *mem;
	char go;

	if (uid && setresuid(uid, uid, uid))
		_exit(2);
	f = open_fabric(&attr);
	end_open(&c, f);
	/* the parent listens before it writes */
	if (read(from, &go, 1) != 1)
		_exit(3);
	{
		char path[64];

		snprintf(path, sizeof(path), "/tmp/leat-test-%d.sock", (int)getppid());
		if (rr_qp_dial(c.cm, path, NULL, &c.qp))
			_exit(4);
	}
	end_wait_event(&c, NULL, 1);
	end_setup(&c);
	if (rr_qp_connect(c.qp, &c.param))
		_exit(5);
	end_wait_event(&c, NULL, 2);
	mem = end_pages(1 << 20);
	memset(mem, 0x11, 1 << 20);
	struct rr_mr *mr = end_reg(&c, mem, 1 << 20, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, -1);

	note = (struct note){ .addr = (uintptr_t)mem, .rkey = mr->rkey };
	memcpy(end_msg(&c, 0), &note, sizeof(note));
	if (end_send(&c, 0, sizeof(note), RR_WR_SIGNALED))
		_exit(6);
	while (hang)
		end_poll(&c); /* until killed */
	/* the parent reads, writes, and says so; then it sees us off */
	while (c.nwc < 2) {
		struct pollfd p = { .fd = c.cq->fd, .events = POLLIN };

		if (!end_poll(&c) && !rr_cq_arm(c.cq))
			poll(&p, 1, -1);
	}
	for (int i = 0; i < 1 << 20; i++)
		if (mem[i] != (uint8_t)(i * 3))
			_exit(7);
	_exit(0);
}

static void two_processes(uid_t uid, enum rr_local_vm vm, bool kill_it)
{
	struct rr_local_attr attr = { .vm = vm };
	struct rr_fabric *f;
	struct note note;
	int pipefd[2], status;
	struct rr_mr *dm;
	struct end s;
	uint8_t *data;
	pid_t pid;

	assert_int_equal(pipe(pipefd), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		other_process(pipefd[0], uid, vm, kill_it);
	f = open_fabric(&attr);
	end_open(&s, f);
	data = end_pages(1 << 20);
	dm = end_reg(&s, data, 1 << 20, RR_ACCESS_LOCAL_WRITE, -1);
	assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
	assert_int_equal(write(pipefd[1], "x", 1), 1);
	end_wait_event(&s, NULL, 1);
	assert_int_equal(s.peer.pid, pid);
	assert_int_equal(s.peer.uid, uid ? uid : geteuid());
	end_setup(&s);
	assert_int_equal(rr_qp_accept(s.qp, &s.param), 0);
	while (s.nwc < 1)
		end_poll(&s);
	memcpy(&note, s.recv[0].sge.addr, sizeof(note));
	if (kill_it) {
		assert_int_equal(kill(pid, SIGKILL), 0);
		while (s.nwc < 16)
			end_poll(&s);
		assert_int_equal(s.wc[15].status, RR_WC_FLUSHED);
	} else {
		assert_int_equal(end_rdma(&s, RR_WR_READ, data, 1 << 20, dm,
					  (void *)(uintptr_t)note.addr, note.rkey), 0);
		while (s.nwc < 2)
			end_poll(&s);
		assert_int_equal(s.wc[1].status, RR_WC_OK);
		for (int i = 0; i < 1 << 20; i++) {
			assert_int_equal(data[i], 0x11);
			data[i] = (uint8_t)(i * 3);
		}
		assert_int_equal(end_rdma(&s, RR_WR_WRITE, data, 1 << 20, dm,
					  (void *)(uintptr_t)note.addr, note.rkey), 0);
		assert_int_equal(end_send(&s, 0, 1, RR_WR_SIGNALED), 0);
		while (s.nwc < 4)
			end_poll(&s);
		assert_int_equal(s.wc[2].status, RR_WC_OK);
	}
	vm_bytes = rr_local_counters(f).vm_bytes;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, kill_it ? SIGKILL : 0);
	assert_int_equal(rr_mr_dereg(dm), 0);
	end_close(&s);
	munmap(data, 1 << 20);
	close(pipefd[0]);
	close(pipefd[1]);
	rr_fabric_close(f);
}

static void test_process_agent(void **state)
{
	(void)state;
	two_processes(0, RR_LOCAL_VM_NEVER, false);
}

static void test_process_auto(void **state)
{
	(void)state;
	two_processes(0, RR_LOCAL_VM_AUTO, false);
	if (!geteuid()) /* root could enter any process, so it enters none */
		assert_int_equal(vm_bytes, 0);
}

/* Two processes of one ordinary user: this is what process_vm_* is for. */
static void test_process_same_uid(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	pid = fork();
	if (!pid) {
		/* a change of uid hides a process from its equals; an ordinary start does not */
		if (setresuid(65534, 65534, 65534) || prctl(PR_SET_DUMPABLE, 1))
			_exit(1);
		two_processes(0, RR_LOCAL_VM_AUTO, false);
		_exit(vm_bytes == 2 << 20 ? 0 : 77);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_process_vm(void **state)
{
	(void)state;
	two_processes(0, RR_LOCAL_VM_ALWAYS, false);
}

static void test_process_other_uid(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	two_processes(65534, RR_LOCAL_VM_AUTO, false);
}

/* A peer of another user that says that it has access is not believed: it moves data through the bounce area. */
static void test_process_other_uid_claims_access(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	two_processes(65534, RR_LOCAL_VM_ALWAYS, false);
	assert_int_equal(vm_bytes, 0);
}

static void test_process_killed(void **state)
{
	(void)state;
	two_processes(0, RR_LOCAL_VM_AUTO, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_there),
		cmocka_unit_test(test_stale_and_live_paths),
		cmocka_unit_test(test_reject),
		cmocka_unit_test(test_leaving_early),
		cmocka_unit_test(test_conns_max),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_process_agent),
		cmocka_unit_test(test_process_auto),
		cmocka_unit_test(test_process_same_uid),
		cmocka_unit_test(test_process_vm),
		cmocka_unit_test(test_process_other_uid),
		cmocka_unit_test(test_process_other_uid_claims_access),
		cmocka_unit_test(test_process_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
