/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_sync.c - what a block volume promises about data that is on disk, and about data that may be lost
 */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "block_rig.h"
#include "inside.h"

#define PLAIN "read=cached,write=cached"

static uint8_t data[65536];

/* ---- syncs ---- */

static atomic_int syncs, fail_next; /* seen, and those that fail */

/* The kernel's reports of failed write-back: it reports each loss once to each open file. */
#define FDS_MAX 1024
static atomic_int losses, reported[FDS_MAX];

/* Shared with a child that is the server */
static struct shared {
	_Atomic int stop; /* syncs that stop there: before they begin (1), or when they have ended (2) */
	_Atomic int there; /* number of those that have come there */
} *shared;

static void stop_at(int place)
{
	if (atomic_load(&shared->stop) != place)
		return;
	atomic_fetch_add(&shared->there, 1);
	for (;;)
		pause();
}

static int counted(int (*sync)(int fd), int fd)
{
	int rc;

	atomic_fetch_add(&syncs, 1);
	stop_at(1);
	if (atomic_load(&fail_next) && atomic_fetch_sub(&fail_next, 1) > 0) {
		errno = EIO;
		return -1;
	}
	if (fd < FDS_MAX && atomic_exchange(&reported[fd], atomic_load(&losses)) != atomic_load(&losses)) {
		errno = EIO;
		return -1;
	}
	rc = sync(fd);
	stop_at(2);
	return rc;
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

int __wrap_fsync(int fd)
{
	return counted(__real_fsync, fd);
}

int __wrap_fdatasync(int fd)
{
	return counted(__real_fdatasync, fd);
}

static void start(struct block_client *c, const char *spec)
{
	assert_int_equal(block_rig_start((const char *const[]){ spec, NULL }), 0);
	block_connect(c, 1, 0);
	assert_int_equal(block_attach(c, "vol", "me", 0, NULL), BLOCK_OK);
	atomic_store(&syncs, 0);
}

/* ---- tests ---- */

/* A FLUSH and a FUA WRITE are not acknowledged without a sync, and a WRITE needs none. In memory nothing needs it. */
static void syncs_are_done(void **state)
{
	struct block_client c;

	(void)state;
	start(&c, "vol=a");
	assert_int_equal(block_write(&c, 0, data, 4096, false), BLOCK_OK);
	assert_int_equal(atomic_load(&syncs), 0);
	assert_int_equal(block_flush(&c), BLOCK_OK);
	assert_int_equal(atomic_load(&syncs), 1);
	assert_int_equal(block_write(&c, 0, data, 4096, true), BLOCK_OK);
	assert_int_equal(atomic_load(&syncs), 2);
	assert_int_equal(server_counters(block_rig.srv, "block_syncs"), 2);
	block_close(&c);
	block_rig_stop();
}

/* The call whose sync fails gets an error. Others that have written see that the verifier has changed. */
static void failed_flush(void **state)
{
	struct block_client c;
	uint64_t before;

	(void)state;
	start(&c, "vol=a," PLAIN);
	assert_int_equal(block_write(&c, 0, data, 4096, false), BLOCK_OK);
	before = c.verf;
	atomic_store(&fail_next, 1);
	assert_int_equal(block_flush(&c), BLOCK_ERR_IO);
	assert_int_equal(block_flush(&c), BLOCK_OK);
	assert_int_not_equal(c.verf, before);
	before = c.verf;
	assert_int_equal(block_write(&c, 0, data, 4096, false), BLOCK_OK);
	assert_int_equal(c.verf, before);
	atomic_store(&fail_next, 1);
	assert_int_equal(block_write(&c, 0, data, 4096, true), BLOCK_ERR_IO);
	assert_int_equal(block_write(&c, 0, data, 4096, false), BLOCK_OK);
	assert_int_not_equal(c.verf, before);
	block_close(&c);
	block_rig_stop();
}

/* A loss fails a holder once, although the server has an open file on each of its reactors: a holder that has attached again
 * knows of it. */
static void one_loss(void **state)
{
	struct block_client c[6];

	(void)state;
	start(&c[0], "vol=a,share=shared");
	for (unsigned i = 1; i < ARRAY_SIZE(c); i++) { /* the reactors take turns */
		block_connect(&c[i], i + 1, 0);
		assert_int_equal(block_attach(&c[i], "vol", (char[]){ (char)('0' + i), 0 }, 0, NULL), BLOCK_OK);
		assert_int_equal(block_flush(&c[i]), BLOCK_OK);
	}
	assert_int_equal(block_write(&c[0], 0, data, 4096, false), BLOCK_OK);
	atomic_fetch_add(&losses, 1);
	assert_int_equal(block_flush(&c[0]), BLOCK_ERR_IO);
	for (unsigned i = 0; i < ARRAY_SIZE(c); i++) {
		uint64_t verf;

		assert_int_equal(block_write(&c[i], 0, data, 4096, false), BLOCK_OK);
		verf = c[i].verf;
		assert_int_equal(block_flush(&c[i]), BLOCK_OK);
		assert_int_equal(c[i].verf, verf);
		assert_int_equal(block_write(&c[i], 0, data, 4096, true), BLOCK_OK);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(c); i++)
		block_close(&c[i]);
	block_rig_stop();
	atomic_store(&losses, 0);
	for (unsigned i = 0; i < FDS_MAX; i++)
		atomic_store(&reported[i], 0);
}

/* Changes the page that survives the process, while no server runs: @at is the offset of a 64-bit number. */
static void change_page(size_t at, uint64_t by)
{
	int fd = open(tmp_dir_path(&block_rig.dir, "state/block-vol.sync"), O_RDWR);
	uint64_t n;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &n, sizeof(n), (off_t)at), sizeof(n));
	n += by;
	assert_int_equal(pwrite(fd, &n, sizeof(n), (off_t)at), sizeof(n));
	close(fd);
}

#define AT_BOOT 16u
#define AT_BEGUN 64u

/* Return: the verifier of a restarted server */
static uint64_t verf_after(struct block_client *c, void (*change)(void))
{
	uint64_t verf;

	assert_int_equal(block_write(c, 0, data, 4096, false), BLOCK_OK);
	verf = c->verf;
	if (change)
		change();
	block_rig_restart(NULL);
	block_reconnect(c, NULL);
	assert_int_equal(block_write(c, 0, data, 4096, false), BLOCK_OK);
	return c->verf - verf;
}

static void sync_has_begun(void)
{
	change_page(AT_BEGUN, 1);
}

static void machine_was_down(void)
{
	change_page(AT_BOOT, 1);
}

/* A leatd that was killed has lost nothing, unless a sync was in progress. */
static void restarts(void **state)
{
	struct block_client c;

	(void)state;
	start(&c, "vol=a");
	assert_int_equal(verf_after(&c, NULL), 0);
	assert_int_equal(block_flush(&c), BLOCK_OK);
	assert_int_equal(verf_after(&c, NULL), 0);
	assert_int_not_equal(verf_after(&c, sync_has_begun), 0);
	assert_int_equal(verf_after(&c, NULL), 0);
	assert_int_not_equal(verf_after(&c, machine_was_down), 0);
	assert_int_equal(verf_after(&c, NULL), 0);
	/* a failed sync is not forgotten either */
	atomic_store(&fail_next, 1);
	assert_int_equal(block_flush(&c), BLOCK_ERR_IO);
	assert_int_equal(verf_after(&c, NULL), 0);
	block_close(&c);
	block_rig_stop();
}

static bool is_there(void *arg)
{
	(void)arg;
	return atomic_load(&shared->there) > 0;
}

/* @stop: where a FLUSH is when the server is killed; 0: none is in progress. Return: has the verifier changed? */
static bool changes_when_killed(int stop)
{
	pid_t pid = block_rig_start_child((const char *const[]){ "vol=a", NULL });
	struct block_rig_call flush = { .args.at.at = { .handle = "" } };
	struct block_client c;
	uint64_t verf;

	block_connect(&c, 1, 0);
	assert_int_equal(block_attach(&c, "vol", "me", 0, NULL), BLOCK_OK);
	assert_int_equal(block_write(&c, 0, data, 4096, false), BLOCK_OK);
	verf = c.verf;
	atomic_store(&shared->there, 0);
	atomic_store(&shared->stop, stop);
	if (stop) {
		block_begin(&c, &flush, BLOCKPROC_FLUSH, NULL, 0);
		block_run_until(is_there, NULL);
	} else {
		assert_int_equal(block_flush(&c), BLOCK_OK);
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	atomic_store(&shared->stop, 0);
	rpcrdma_clnt_destroy(c.clnt);
	c.lane.incarnation++;
	block_rig_restart(NULL);
	block_connect_lane(&c);
	assert_int_equal(block_write(&c, 0, data, 4096, false), BLOCK_OK);
	block_close(&c);
	block_rig_stop();
	return c.verf != verf;
}

/* The kernel reports a failed sync once: to a process that may not live to hear it. */
static void killed(void **state)
{
	(void)state;
	if (!block_rig_is_local())
		skip();
	assert_false(changes_when_killed(0));
	assert_true(changes_when_killed(1));
	assert_true(changes_when_killed(2));
}

/* Data in the page cache needs the kernel, which survives; but the promise is made for direct writes only. */
static void restarts_cached(void **state)
{
	struct block_client c;

	(void)state;
	start(&c, "vol=a," PLAIN);
	assert_int_not_equal(verf_after(&c, NULL), 0);
	block_close(&c);
	block_rig_stop();
}

static void restarts_stateless(void **state)
{
	struct block_client c;

	(void)state;
	block_rig_stateless = true;
	start(&c, "vol=a");
	assert_false(c.info.flags & BLOCK_DURABLE);
	block_rig_restart(NULL);
	block_reconnect(&c, NULL);
	assert_int_equal(block_read(&c, 0, data, 512), BLOCK_ERR_BADHANDLE);
	block_close(&c);
	block_rig_stop();
	block_rig_stateless = false;
}

/* Files of the state directory that are damaged: the server does not start, since others could get in. */
static void damaged_state(void **state)
{
	struct block_client c;
	char path[300], text[1024];
	ssize_t n;
	int fd;

	(void)state;
	start(&c, "vol=a");
	block_close(&c);
	(void)snprintf(path, sizeof(path), "%s", tmp_dir_path(&block_rig.dir, "state/block-vol.holders"));
	fd = open(path, O_RDWR);
	n = read(fd, text, sizeof(text));
	assert_true(n > 60 && n < (ssize_t)sizeof(text));
	for (ssize_t cut = 0; cut < n; cut += cut < n - 12 ? 11 : 1) { /* "end" and its newline are the last bytes */
		assert_int_equal(ftruncate(fd, cut), 0);
		assert_int_not_equal(block_rig_try_restart(), 0);
		assert_int_equal(pwrite(fd, text, (size_t)n, 0), n);
	}
	close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(block_rig_try_restart(), 0);
	block_rig_stop();
}

/* Without the file of the holders the server begins to number again; handles from before are not valid. */
static void removed_state(void **state)
{
	struct block_client a, b;

	(void)state;
	start(&a, "vol=a");
	block_close(&a);
	assert_int_equal(unlink(tmp_dir_path(&block_rig.dir, "state/block-vol.holders")), 0);
	block_rig_restart(NULL);
	block_connect(&b, a.lane.instance, 0);
	assert_int_equal(block_attach(&b, "vol", "me", 0, NULL), BLOCK_OK);
	a.lane.slot++;
	block_connect_lane(&a);
	assert_int_equal(block_read(&a, 0, data, 512), BLOCK_ERR_FENCED);
	assert_int_equal(block_read(&b, 0, data, 512), BLOCK_OK);
	block_close(&a);
	block_close(&b);
	block_rig_stop();
}

/* A volume that is left out of the configuration keeps its files, and its generations: what was fenced stays so. */
static void left_out(void **state)
{
	struct block_client a, b;

	(void)state;
	start(&a, "vol=a");
	block_connect(&b, 2, 0);
	assert_int_equal(block_attach(&b, "vol", "other", BLOCK_TAKE_OVER, NULL), BLOCK_OK);
	block_rig_restart((const char *const[]){ "more=b", NULL });
	block_rig_restart((const char *const[]){ "vol=a", NULL });
	block_reconnect(&a, NULL);
	block_reconnect(&b, NULL);
	assert_int_equal(block_read(&a, 0, data, 512), BLOCK_ERR_FENCED);
	assert_int_equal(block_read(&b, 0, data, 512), BLOCK_OK);
	block_close(&a);
	block_close(&b);
	block_rig_stop();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(syncs_are_done), cmocka_unit_test(failed_flush), cmocka_unit_test(one_loss),
		cmocka_unit_test(restarts),
		cmocka_unit_test(killed),	  cmocka_unit_test(restarts_cached), cmocka_unit_test(restarts_stateless), cmocka_unit_test(damaged_state),
		cmocka_unit_test(removed_state), cmocka_unit_test(left_out),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return cmocka_run_group_tests_name("block sync", tests, NULL, NULL);
}
