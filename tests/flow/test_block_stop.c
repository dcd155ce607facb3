/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_stop.c - a server of volumes ends while its disk holds writes back
 *
 * The server runs in a child, whose writes wait while `disk->hold` is set. server_stop() gets less time than they need, and
 * returns. What has not been acknowledged then is sent again to the next server, and no copy of it is executed
 * late: until the old process has ended, no other can have its volume.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "block_rig.h"
#include "fs_limits.h"
#include "inside.h"
#include "server.h"

#define BYTES 4096u
#define WRITES 24u /* more than the server has workers */

/* ---- a disk that holds writes back, and the server in the child ------------------------------------------ */

static struct disk {
	atomic_bool hold;
	atomic_uint begun, ended; /* writes */
	sem_t let_go;
} *disk;

ssize_t __real_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	ssize_t rc;

	atomic_fetch_add(&disk->begun, 1);
	if (atomic_load(&disk->hold)) {
		while (sem_wait(&disk->let_go))
			;
		sem_post(&disk->let_go); /* the next */
	}
	rc = __real_pwritev2(fd, iov, n, off, flags);
	atomic_fetch_add(&disk->ended, 1);
	return rc;
}

/* Reactors write to memory themselves: a write that waits would keep all connections of one waiting. */
void __real_fs_limits_find_file(int fd, struct fs_limits *ret);
void __wrap_fs_limits_find_file(int fd, struct fs_limits *ret);

void __wrap_fs_limits_find_file(int fd, struct fs_limits *ret)
{
	__real_fs_limits_find_file(fd, ret);
	ret->in_memory = false;
}

/* A reactor that ends asks this, decides whether to close its connections, and only then runs what has completed. */
#define REACTORS 2 /* of the rig */
struct reactor;
static const struct reactor *ending[REACTORS];
static pthread_mutex_t ending_lock = PTHREAD_MUTEX_INITIALIZER;
bool __real_service_is_busy(const struct reactor *r);
bool __wrap_service_is_busy(const struct reactor *r);

bool __wrap_service_is_busy(const struct reactor *r)
{
	unsigned i = 0;

	pthread_mutex_lock(&ending_lock);
	while (i < REACTORS - 1 && ending[i] && ending[i] != r)
		i++;
	ending[i] = r;
	pthread_mutex_unlock(&ending_lock);
	return __real_service_is_busy(r);
}

static bool all_end(void *arg)
{
	bool all = true;

	(void)arg;
	pthread_mutex_lock(&ending_lock);
	for (unsigned i = 0; i < REACTORS; i++)
		all = all && ending[i];
	pthread_mutex_unlock(&ending_lock);
	return all;
}

/* Between the processes: "s" stops the server, its reply is the result; "e" ends the process, as leatd ends then. */
static int command[2], reply[2];

static const char *const specs[] = { "vol=a,read=cached,write=cached", NULL };

static void serve(void)
{
	char what;
	int rc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (block_rig_start(specs) || write(reply[1], &(int){ 0 }, sizeof(int)) != sizeof(int))
		_exit(2);
	while (read(command[0], &what, 1) == 1 && what == 's') {
		rc = server_stop(block_rig.srv, 100);
		if (write(reply[1], &rc, sizeof(rc)) != sizeof(rc))
			_exit(2);
	}
	_exit(1);
}

/* A stop without a limit fails here. */
static int result(void)
{
	struct pollfd p = { .fd = reply[0], .events = POLLIN };
	int rc;

	assert_int_equal(poll(&p, 1, 30000), 1);
	assert_int_equal(read(reply[0], &rc, sizeof(rc)), sizeof(rc));
	return rc;
}

static pid_t start_child(void)
{
	pid_t pid;

	block_rig_make_dir();
	assert_int_equal(pipe(command), 0);
	assert_int_equal(pipe(reply), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		serve();
	assert_int_equal(result(), 0);
	block_rig_dial();
	return pid;
}

static void end_child(pid_t pid)
{
	int status;

	assert_int_equal(write(command[1], "e", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	for (int i = 0; i < 2; i++) {
		close(command[i]);
		close(reply[i]);
	}
}

static void make_disk(void)
{
	disk = mmap(NULL, sizeof(*disk), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(disk != MAP_FAILED);
	assert_int_equal(sem_init(&disk->let_go, 1, 0), 0);
}

static bool is_held(void *arg)
{
	(void)arg;
	return atomic_load(&disk->begun) > 1;
}

/* ---- tests ------------------------------------------------------------------------------------- */

static unsigned char byte_at(unsigned block)
{
	unsigned char byte;
	int fd = block_rig_open("a");

	assert_int_equal(pread(fd, &byte, 1, (off_t)block * BYTES), 1);
	close(fd);
	return byte;
}

static unsigned open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static bool is_locked(void)
{
	int fd = block_rig_open("a");
	bool locked = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;

	close(fd);
	return locked;
}

static void run(bool let_go)
{
	static uint8_t old[BYTES], held[BYTES], newer[BYTES];
	static struct block_rig_call calls[WRITES], flush;
	struct block_client c, older;
	unsigned begun, fds = open_fds();
	pid_t pid;

	make_disk();
	memset(old, 'o', sizeof(old));
	memset(held, 'h', sizeof(held));
	memset(newer, 'n', sizeof(newer));
	pid = start_child();
	block_connect(&c, 1, 0);
	assert_int_equal(block_attach(&c, "vol", "holder", 0, NULL), BLOCK_OK);
	assert_int_equal(block_write(&c, 0, old, BYTES, true), BLOCK_OK);
	atomic_store(&disk->hold, true);
	for (unsigned i = 0; i < WRITES; i++)
		block_write_begin_at(&c, &calls[i], (uint64_t)i * BYTES, held, BYTES, false);
	flush.args.at.at = (block_at){ .handle = "" };
	block_begin(&c, &flush, BLOCKPROC_FLUSH, NULL, 0);
	block_run_until(is_held, NULL);

	assert_int_equal(write(command[1], "s", 1), 1);
	assert_int_equal(result(), -ETIMEDOUT);
	begun = atomic_load(&disk->begun);
	for (unsigned i = 0; i < WRITES; i++)
		assert_false(calls[i].done && !calls[i].err);
	/* The process has the volume as long as anything of it may be executed: no other server may serve it. */
	assert_true(is_locked());
	if (let_go) {
		for (unsigned i = 0; i < WRITES; i++)
			sem_post(&disk->let_go);
		while (atomic_load(&disk->ended) < begun)
			sched_yield();
	}
	end_child(pid);
	assert_int_equal(byte_at(0), let_go ? 'h' : 'o');

	atomic_store(&disk->hold, false);
	block_rig_restart(specs);
	older = c;
	block_reconnect(&c, NULL); /* ends all calls */
	for (unsigned i = 0; i < WRITES; i++)
		assert_true(calls[i].done && calls[i].err);
	assert_true(flush.done && flush.err);
	for (unsigned i = 1; i < WRITES; i++)
		assert_int_equal(block_write(&c, (uint64_t)i * BYTES, held, BYTES, false), BLOCK_OK);
	assert_int_equal(block_write(&c, 0, newer, BYTES, false), BLOCK_OK);
	/* a copy that comes late */
	block_connect_lane(&older);
	assert_int_equal(block_write(&older, 0, held, BYTES, false), BLOCK_ERR_OLD_LANE);
	assert_int_equal(block_flush(&c), BLOCK_OK);
	assert_int_equal(byte_at(0), 'n');
	for (unsigned i = 1; i < WRITES; i++)
		assert_int_equal(byte_at(i), 'h');
	block_close(&older);
	assert_int_equal(block_detach(&c), BLOCK_OK);
	assert_int_equal(block_attach(&c, "vol", "another", 0, NULL), BLOCK_OK);
	block_close(&c);
	block_rig_stop();
	munmap(disk, sizeof(*disk));
	assert_int_equal(open_fds(), fds);
}

static void time_runs_out(void **state)
{
	(void)state;
	run(false);
}

static void time_runs_out_then_the_disk_goes_on(void **state)
{
	(void)state;
	run(true);
}

static atomic_bool stopped;

static void *stop(void *arg)
{
	int rc = server_stop(block_rig.srv, 60000);

	(void)arg;
	atomic_store(&stopped, true);
	return (void *)(intptr_t)rc;
}

static bool has_stopped(void *arg)
{
	(void)arg;
	return atomic_load(&stopped);
}

/* The disk goes on while the server ends: what it has begun is waited for, and acknowledged. */
static void there_is_time(void **state)
{
	static struct block_rig_call calls[WRITES];
	static uint8_t held[BYTES];
	unsigned begun, good = 0, fds = open_fds();
	struct block_client c;
	pthread_t thread;
	void *rc;

	(void)state;
	make_disk();
	memset(held, 'h', sizeof(held));
	assert_int_equal(block_rig_start(specs), 0);
	block_connect(&c, 1, 0);
	assert_int_equal(block_attach(&c, "vol", "holder", 0, NULL), BLOCK_OK);
	atomic_store(&disk->hold, true);
	atomic_store(&disk->begun, 1); /* for is_held() */
	for (unsigned i = 0; i < WRITES; i++)
		block_write_begin_at(&c, &calls[i], (uint64_t)i * BYTES, held, BYTES, false);
	block_run_until(is_held, NULL);
	begun = atomic_load(&disk->begun) - 1;
	memset(ending, 0, sizeof(ending)); /* servers of other tests */
	assert_int_equal(pthread_create(&thread, NULL, stop, NULL), 0);
	block_run_until(all_end, NULL);
	assert_false(atomic_load(&stopped));
	assert_int_equal(atomic_load(&disk->ended), 0);
	sem_post(&disk->let_go);
	block_run_until(has_stopped, NULL); /* the server waits until its replies have arrived */
	assert_int_equal(pthread_join(thread, &rc), 0);
	assert_int_equal((int)(intptr_t)rc, 0);
	block_rig.srv = NULL;
	while (rpcrdma_engine_poll(block_rig.engine))
		;
	block_close(&c); /* ends the calls that the server did not begin */
	for (unsigned i = 0; i < WRITES; i++) {
		bool acknowledged = !calls[i].err && calls[i].res.status == BLOCK_OK;

		good += acknowledged;
		assert_true(!acknowledged || byte_at(i) == 'h');
	}
	assert_true(good >= begun);
	block_rig_stop();
	munmap(disk, sizeof(*disk));
	assert_int_equal(open_fds(), fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_runs_out),
		cmocka_unit_test(time_runs_out_then_the_disk_goes_on),
		cmocka_unit_test(there_is_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
