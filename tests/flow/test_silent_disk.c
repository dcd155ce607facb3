/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_silent_disk.c - a call is over before the server's disk has answered, and its memory is the program's
 *
 * The disk is silent until the test lets it speak: a read or a write of the server's store waits in front of
 * the system call, and the client's memory that it was given is copied from or to when no caller expects it
 * any more. Nothing of that may be seen: a buffer does not change after its callback, and what a program puts
 * into it then does not get into the file. Meanwhile the mount goes on.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "handle.h"
#include "leat.h"
#include "nfs_peer.h"
#include "inside.h"

LOG_DEFINE("test_silent_disk");

#define PART (256u << 10)
#define PARTS 4u
#define BYTES (PARTS * PART)
#define AIO_MAX 64

static const char *const options[] = {
	"rw,no_root_squash,read=cached,write=cached",
	"rw,no_root_squash,read=direct,write=direct,trust_clients",
	"rw,no_root_squash,read=cached,write=cached,trust_clients",
	NULL,
};

enum { CACHED, DIRECT, TRUSTED };

/* ---- the disk ---- */

struct iocb; /* <libaio.h> is for server/store/store_aio.c only */
typedef struct io_context *io_context_t;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool on;          /* nothing is in the page cache; all below under the lock */
	bool silent;
	unsigned hold;    /* number of further operations that wait until it speaks */
	unsigned held, ended;
	io_context_t ctx; /* O_DIRECT, not submitted yet */
	struct iocb *cbs[AIO_MAX];
} disk = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false, 0, 0, 0, NULL, { NULL } };

ssize_t __real_preadv2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __real_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
int __real_io_submit(io_context_t ctx, long nr, struct iocb **cbs);
int __wrap_io_submit(io_context_t ctx, long nr, struct iocb **cbs);

/* Return: it was held; the lock is */
static bool disk_begin(void)
{
	bool is_held;

	pthread_mutex_lock(&disk.lock);
	is_held = disk.silent && disk.hold;
	if (is_held) {
		disk.hold--;
		disk.held++;
		pthread_cond_broadcast(&disk.change);
		while (disk.silent)
			pthread_cond_wait(&disk.change, &disk.lock);
	}
	pthread_mutex_unlock(&disk.lock);
	return is_held;
}

/* Is what is asked for without waiting not there? */
static bool disk_would_wait(int flags)
{
	bool would;

	pthread_mutex_lock(&disk.lock);
	would = disk.on && flags & RWF_NOWAIT;
	pthread_mutex_unlock(&disk.lock);
	return would;
}

static void disk_end(bool was_held)
{
	pthread_mutex_lock(&disk.lock);
	disk.ended += was_held;
	pthread_cond_broadcast(&disk.change);
	pthread_mutex_unlock(&disk.lock);
}

ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	ssize_t got;
	bool held;

	if (disk_would_wait(flags)) {
		errno = EAGAIN;
		return -1;
	}
	held = disk_begin();
	got = __real_preadv2(fd, iov, n, off, flags);
	disk_end(held);
	return got;
}

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	ssize_t got;
	bool held;

	if (disk_would_wait(flags)) {
		errno = EAGAIN;
		return -1;
	}
	held = disk_begin();
	got = __real_pwritev2(fd, iov, n, off, flags);
	disk_end(held);
	return got;
}

/* A reactor must not wait: the operations begin when the disk speaks. */
int __wrap_io_submit(io_context_t ctx, long nr, struct iocb **cbs)
{
	long i = 0;

	pthread_mutex_lock(&disk.lock);
	for (; i < nr && disk.silent && disk.hold; i++) {
		assert_in_range(disk.held, 0, AIO_MAX - 1);
		disk.ctx = ctx;
		disk.cbs[disk.held++] = cbs[i];
		disk.hold--;
		pthread_cond_broadcast(&disk.change);
	}
	pthread_mutex_unlock(&disk.lock);
	return i ? (int)i : __real_io_submit(ctx, nr, cbs);
}

static void disk_silence(unsigned hold)
{
	pthread_mutex_lock(&disk.lock);
	disk.on = disk.silent = true;
	disk.hold = hold;
	disk.held = disk.ended = 0;
	memset(disk.cbs, 0, sizeof(disk.cbs));
	pthread_mutex_unlock(&disk.lock);
}

/* Operations from now on are answered at once; those that were held stay so. */
static void disk_serve_others(void)
{
	pthread_mutex_lock(&disk.lock);
	disk.on = false;
	disk.hold = 0;
	pthread_mutex_unlock(&disk.lock);
}

/* Operations held, none of which has been answered. */
static unsigned disk_held(void)
{
	unsigned held;

	pthread_mutex_lock(&disk.lock);
	held = disk.held;
	assert_int_equal(disk.ended, 0);
	pthread_mutex_unlock(&disk.lock);
	return held;
}

/* Return: how many it had held */
static unsigned disk_speak(struct nfs_peer *p)
{
	pthread_mutex_lock(&disk.lock);
	disk.silent = false;
	pthread_cond_broadcast(&disk.change);
	for (unsigned i = 0; i < disk.held; i++)
		if (disk.cbs[i])
			assert_int_equal(__real_io_submit(disk.ctx, 1, &disk.cbs[i]), 1);
	while (!disk.cbs[0] && disk.ended < disk.held)
		pthread_cond_wait(&disk.change, &disk.lock);
	disk.on = false;
	pthread_mutex_unlock(&disk.lock);
	/* O_DIRECT is over when the server has said goodbye to what it was for */
	nfs_peer_stop(p);
	return disk.held;
}

/* ---- the program ---- */

struct part {
	uint8_t *mem;
	uint32_t len;
	bool done;
	int64_t result;
	uint8_t put; /* what the program puts into it when it has it back */
	unsigned *left;
};

static void on_part(void *arg, int64_t result)
{
	struct part *part = arg;

	part->done = true;
	part->result = result;
	memset(part->mem, part->put, part->len);
	--*part->left;
}

static struct leat *mount_at(struct nfs_peer *p, unsigned exp, const char *how)
{
	struct leat *m;
	char url[256];

	(void)snprintf(url, sizeof(url), "local://%s/sock/e%u?%s", p->dir.path, exp, how);
	if (leat_mount(url, NULL, &m))
		fail_msg("%s", leat_error(NULL));
	return m;
}

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(0x80 | (i * 7 + i / 251)); /* none that a program here writes */
}

static void make_file(struct nfs_peer *p, unsigned exp)
{
	uint8_t *data = malloc(BYTES);
	char name[16];
	int fd;

	assert_non_null(data);
	for (size_t i = 0; i < BYTES; i++)
		data[i] = byte_at(i);
	(void)snprintf(name, sizeof(name), "e%u/f", exp);
	fd = open(tmp_dir_path(&p->dir, name), O_CREAT | O_RDWR, 0666);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, BYTES), BYTES);
	assert_int_equal(fdatasync(fd), 0);
	close(fd);
	free(data);
}

static struct leat_file *open_file(struct leat *m)
{
	struct leat_file *f;

	if (leat_open(m, "/f", O_RDWR, 0, &f))
		fail_msg("%s", leat_error(m));
	return f;
}

static void is_filled(const uint8_t *mem, size_t len, uint8_t with)
{
	for (size_t i = 0; i < len; i++)
		if (mem[i] != with)
			fail_msg("byte %zu is 0x%02x, not 0x%02x: it was changed after the callback", i,
				 mem[i], with);
}

static unsigned descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* ---- reads ---- */

struct how {
	unsigned exp;
	const char *options;
	size_t off;   /* of the buffers, in their page */
	uint32_t len; /* of each */
};

/* Several reads time out; the mount is of use to others; a read later on is as good as ever. */
static void soft_reads(struct nfs_peer *p, const struct how *how)
{
	char url[96];
	struct rpcrdma_stats before, after;
	struct part parts[PARTS];
	struct leat_file *f;
	struct leat *m;
	struct stat st;
	unsigned left;
	uint8_t *mem;
	void *map;
	int rc;

	(void)snprintf(url, sizeof(url), "retry=soft&%s", how->options);
	make_file(p, how->exp);
	m = mount_at(p, how->exp, url);
	f = open_file(m);
	assert_int_equal(leat_buf_alloc(leat_session(m), 2 * BYTES, &map), 0);
	mem = (uint8_t *)map + how->off;
	memset(map, 0, 2 * BYTES);
	disk_silence(AIO_MAX);
	m->timeo_ms = 50;
	do { /* on a busy machine they may time out before the disk hears of one */
		m->timeo_ms *= 2;
		left = PARTS;
		for (unsigned i = 0; i < PARTS; i++) {
			parts[i] = (struct part){ .mem = mem + 2 * i * PART, .len = how->len,
						  .put = (uint8_t)(i + 1), .left = &left };
			assert_int_equal(leat_aio_pread(f, parts[i].mem, how->len, i * PART,
							(struct leat_cb){ .fn = on_part, .user_data = &parts[i] }), 0);
		}
		while (left)
			assert_true(leat_poll(leat_session(m), -1) >= 0);
		for (unsigned i = 0; i < PARTS; i++)
			assert_int_equal(parts[i].result, -ETIMEDOUT);
	} while (!disk_held() && m->timeo_ms < 20000);
	assert_int_not_equal(disk_held(), 0);
	m->timeo_ms = 60000;
	do
		rc = leat_stat(m, "/f", &st);
	while (rc == -ETIMEDOUT);
	assert_int_equal(rc, 0);
	/* as good as ever: all of it goes straight into the buffer again */
	disk_serve_others();
	rpcrdma_domain_stats(server_domain(p->srv), &before);
	assert_int_equal(leat_pread(f, map, BYTES, 0), BYTES);
	rpcrdma_domain_stats(server_domain(p->srv), &after);
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(((uint8_t *)map)[i], byte_at(i));
	if (!how->off && !strstr(how->options, "dynamic"))
		assert_int_equal(after.bytes_direct - before.bytes_direct, BYTES);
	for (unsigned i = 0; i < PARTS; i++)
		memset(parts[i].mem, parts[i].put, how->len);
	assert_int_not_equal(disk_speak(p), 0);
	for (unsigned i = 0; i < PARTS; i++)
		is_filled(parts[i].mem, how->len, parts[i].put);
	leat_buf_free(leat_session(m), map);
	(void)leat_close(f);
	leat_umount(m);
	nfs_peer_start(p);
}

static void soft(void **state)
{
	static const struct how hows[] = {
		{ CACHED, "registration=auto", 0, PART },
		{ CACHED, "registration=window", 0, PART },
		{ CACHED, "registration=dynamic", 0, PART },
		{ CACHED, "registration=slab", 0, PART },
		{ CACHED, "registration=arena", 0, PART },
		{ CACHED, "registration=auto", 100, PART - 777 },
		{ DIRECT, "registration=auto", 0, PART },
	};
	struct nfs_peer p;

	(void)state;
	nfs_peer_create(&p, RPCRDMA_TCP, options);
	for (size_t i = 0; i < sizeof(hows) / sizeof(*hows); i++)
		if (hows[i].exp != DIRECT || tmp_dir_has_direct())
			soft_reads(&p, &hows[i]);
	nfs_peer_destroy(&p);
}

/* A hard mount sends the call again; what was left behind on the first connection stays there. */
static void hard(void **state)
{
	struct leat_file *f;
	struct nfs_peer p;
	struct leat *m;
	void *map;

	(void)state;
	nfs_peer_create(&p, RPCRDMA_TCP, options);
	make_file(&p, CACHED);
	m = mount_at(&p, CACHED, "timeo=300");
	f = open_file(m);
	assert_int_equal(leat_buf_alloc(leat_session(m), BYTES, &map), 0);
	disk_silence(1);
	assert_int_equal(leat_pread(f, map, BYTES, 0), BYTES);
	assert_int_equal(disk_held(), 1);
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(((uint8_t *)map)[i], byte_at(i));
	memset(map, 1, BYTES);
	assert_int_equal(disk_speak(&p), 1);
	is_filled(map, BYTES, 1);
	leat_buf_free(leat_session(m), map);
	(void)leat_close(f);
	leat_umount(m);
	nfs_peer_start(&p);
	nfs_peer_destroy(&p);
}

/* ---- writes ---- */

static void is_in_file(struct nfs_peer *p, unsigned exp, uint8_t byte)
{
	uint8_t *data = malloc(BYTES);
	char name[16];
	int fd;

	assert_non_null(data);
	(void)snprintf(name, sizeof(name), "e%u/f", exp);
	fd = open(tmp_dir_path(&p->dir, name), O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, data, BYTES, 0), BYTES);
	for (size_t i = 0; i < BYTES; i++)
		if (data[i] != byte)
			fail_msg("byte %zu of the file is 0x%02x, not 0x%02x", i, data[i], byte);
	close(fd);
	free(data);
}

/* Data that the server takes from where it lies is what lay there during the call. */
static void soft_write(struct nfs_peer *p, unsigned exp)
{
	struct part part = { .len = BYTES, .put = 2 };
	struct leat_file *f;
	unsigned left = 1;
	struct leat *m;
	void *map;

	make_file(p, exp);
	m = mount_at(p, exp, "retry=soft");
	f = open_file(m);
	assert_int_equal(leat_buf_alloc(leat_session(m), BYTES, &map), 0);
	memset(map, 1, BYTES);
	part.mem = map;
	part.left = &left;
	disk_silence(AIO_MAX);
	m->timeo_ms = 100;
	assert_int_equal(leat_aio_pwrite(f, map, BYTES, 0, (struct leat_cb){ .fn = on_part, .user_data = &part }), 0);
	while (left)
		assert_true(leat_poll(leat_session(m), -1) >= 0);
	assert_int_equal(part.result, -ETIMEDOUT);
	assert_int_equal(disk_held(), 1);
	m->timeo_ms = 60000;
	assert_int_equal(disk_speak(p), 1);
	is_in_file(p, exp, 1);
	is_filled(map, BYTES, 2);
	leat_buf_free(leat_session(m), map);
	nfs_peer_start(p);
	(void)leat_close(f);
	leat_umount(m);
}

static void writes(void **state)
{
	struct nfs_peer p;

	(void)state;
	nfs_peer_create(&p, RPCRDMA_TCP, options);
	soft_write(&p, TRUSTED);
	if (tmp_dir_has_direct())
		soft_write(&p, DIRECT);
	nfs_peer_destroy(&p);
}

/* ---- what it leaves behind ---- */

/* One call after the other times out over the same buffer: what they took is back when the disk has answered,
 * and the program has as many mappings as after the first. */
static void nothing_grows(void **state)
{
	unsigned left, fds, more = 0;
	struct part part = { .len = PART, .put = 3, .left = &left };
	struct leat_file *f;
	struct nfs_peer p;
	struct leat *m;
	void *map;

	(void)state;
	nfs_peer_create(&p, RPCRDMA_TCP, options);
	make_file(&p, CACHED);
	m = mount_at(&p, CACHED, "retry=soft");
	f = open_file(m);
	assert_int_equal(leat_buf_alloc(leat_session(m), BYTES, &map), 0);
	part.mem = (uint8_t *)map + PART;
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 4; i++) {
			disk_silence(1);
			m->timeo_ms = 50;
			left = 1;
			part.done = false;
			assert_int_equal(leat_aio_pread(f, part.mem, PART, 0,
							(struct leat_cb){ .fn = on_part, .user_data = &part }), 0);
			while (left)
				assert_true(leat_poll(leat_session(m), -1) >= 0);
			m->timeo_ms = 60000;
			if (!part.result)
				fail_msg("it was to time out");
			pthread_mutex_lock(&disk.lock);
			disk.silent = false;
			pthread_cond_broadcast(&disk.change);
			while (disk.ended < disk.held)
				pthread_cond_wait(&disk.change, &disk.lock);
			disk.on = false;
			pthread_mutex_unlock(&disk.lock);
			is_filled(part.mem, PART, 3);
		}
		nfs_peer_stop(&p);
		nfs_peer_start(&p);
		assert_int_equal(leat_pread(f, map, BYTES, 0), BYTES);
		fds = descriptors();
		if (!round)
			more = fds;
		assert_int_equal(fds, more);
	}
	leat_buf_free(leat_session(m), map);
	(void)leat_close(f);
	leat_umount(m);
	nfs_peer_destroy(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(soft),
		cmocka_unit_test(hard),
		cmocka_unit_test(writes),
		cmocka_unit_test(nothing_grows),
	};

	return cmocka_run_group_tests_name("silent_disk", tests, NULL, NULL);
}
