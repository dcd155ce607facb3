/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_stripes_lost.h - a striped file of a volume whose servers refuse handles, or are made to wait
 *
 * Programs are linked with -Wl,$(LOST_STRIPES) (tests/build.mk).
 */
#ifndef TEST_LEAT_STRIPES_LOST_H
#define TEST_LEAT_STRIPES_LOST_H

#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "file_layout.h"
#include "fs_limits.h"
#include "leat_flow.h"
#include "leat_volume.h"
#include "volume_rig.h"

#define UNIT 65536u
#define UNITS 8u
#define BYTES (UNITS * UNIT)

static uint8_t data[BYTES], to[BYTES];
static struct leat *m, *hasty; /* hasty: for calls that get no reply in time; others may take their time */

/* ---- the manager: layouts of a later epoch ---- */

static atomic_uint raised;          /* is added to the epoch of each layout */
static atomic_bool climbs;          /* and grows each time, up to 2 */
static atomic_uint rises;           /* or once, when this number of layouts has been decoded; 0: never */
static struct file_layout made;     /* of the last make_file() */
static atomic_uint layouts;

int __real_file_layout_decode(const struct stripe_keys *keys, uint64_t volume, const struct inode_id *inode,
			      const uint8_t *bytes, size_t n, struct file_layout *ret);
int __wrap_file_layout_decode(const struct stripe_keys *keys, uint64_t volume, const struct inode_id *inode,
			      const uint8_t *bytes, size_t n, struct file_layout *ret);

int __wrap_file_layout_decode(const struct stripe_keys *keys, uint64_t volume, const struct inode_id *inode,
			      const uint8_t *bytes, size_t n, struct file_layout *ret)
{
	int err = __real_file_layout_decode(keys, volume, inode, bytes, n, ret);

	if (err)
		return err;
	if (atomic_load(&climbs) && atomic_load(&raised) < 2)
		atomic_fetch_add(&raised, 1);
	if (atomic_load(&rises) && atomic_fetch_sub(&rises, 1) == 1)
		atomic_fetch_add(&raised, 1);
	ret->epoch += atomic_load(&raised);
	atomic_fetch_add(&layouts, 1);
	return 0;
}

/* ---- the stripe servers: their clock, and writes that wait ---- */

static atomic_uint ahead; /* looks at the clock that find it an hour ahead */

uint64_t __real_stripe_now(void);
uint64_t __wrap_stripe_now(void);

uint64_t __wrap_stripe_now(void)
{
	unsigned n = atomic_load(&ahead);

	while (n && !atomic_compare_exchange_weak(&ahead, &n, n - 1))
		;
	return __real_stripe_now() + (n ? 3600 : 0);
}

static atomic_bool hold; /* the next write */
static sem_t held, let_go;

ssize_t __real_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	if (atomic_exchange(&hold, false)) {
		(void)sem_post(&held);
		while (sem_wait(&let_go))
			;
	}
	return __real_pwritev2(fd, iov, n, off, flags);
}

/* Reactors write to memory themselves: a write that waits would keep all connections of one waiting. */
void __real_fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret);
void __wrap_fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret);

void __wrap_fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret)
{
	__real_fs_limits_find(dir_fd, may_write, ret);
	ret->in_memory = false;
}

/* ---- files ---- */

static inline struct leat_file *open_file(struct leat *at, const char *name, int flags)
{
	struct leat_file *f;

	if (leat_open(at, name, flags, 0644, &f))
		fail_msg("%s", leat_error(at));
	return f;
}

/* The manager reads layouts of other files, too, when their leases lapse. */
static inline void note_layout(const char *name)
{
	struct leat_volume_layout *l;
	struct leat_volume_map *map;

	assert_int_equal(leat_volume_map(m, &map), 0);
	assert_int_equal(leat_volume_layout(m, name, &l), 0);
	assert_int_equal(l->nstripes, VOLUME_RIG_SERVERS);
	made.volume = map->volume;
	memcpy(made.object, l->object, sizeof(made.object));
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		made.servers[i] = l->stripes[i]->server;
	leat_volume_layout_free(l);
	leat_volume_map_free(map);
}

/* A file with data in all stripes, stable. */
static inline struct leat_file *make_file(const char *name)
{
	struct leat_file *f = open_file(m, name, O_RDWR | O_CREAT);

	assert_int_equal(leat_pwrite(f, data, BYTES, 0), BYTES);
	assert_int_equal(leat_fsync(f), 0);
	note_layout(name);
	return f;
}

/* The server of a unit, and a unit of a server. */
static inline unsigned server_of(unsigned unit)
{
	return made.servers[unit % VOLUME_RIG_SERVERS] - 1;
}

static inline int write_unit(struct leat_file *f, unsigned unit)
{
	return (int)leat_pwrite(f, data + unit * UNIT, UNIT, (uint64_t)unit * UNIT);
}

static inline int read_unit(struct leat_file *f, unsigned unit)
{
	int n = (int)leat_pread(f, to, UNIT, (uint64_t)unit * UNIT);

	if (n == UNIT)
		assert_memory_equal(to, data + unit * UNIT, UNIT);
	return n;
}

static inline void expect_error(struct leat *at, const char *part)
{
	if (!strstr(leat_error(at), part))
		fail_msg("%s: not in: %s", part, leat_error(at));
}

static inline void note_result(void *to_result, int64_t result)
{
	*(int64_t *)to_result = result;
}

static inline void wait_result(struct leat *at, const int64_t *result)
{
	while (*result == INT64_MIN)
		(void)leat_poll(leat_session(at), 10);
}

static inline int setup_on(bool tcp)
{
	assert_int_equal(sem_init(&held, 0, 0), 0);
	assert_int_equal(sem_init(&let_go, 0, 0), 0);
	leat_flow_fill(data, sizeof(data), 1);
	volume_rig_start(tcp, "stripe=64K");
	m = volume_rig_mount(NULL);
	hasty = volume_rig_mount("stripe_timeo=20ms");
	return 0;
}

static inline int setup_local(void **state)
{
	(void)state;
	return setup_on(false);
}

static inline int setup_tcp(void **state)
{
	(void)state;
	return setup_on(true);
}

static inline int teardown(void **state)
{
	(void)state;
	leat_umount(hasty);
	leat_umount(m);
	volume_rig_stop();
	return 0;
}

#endif
