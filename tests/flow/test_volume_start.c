/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_start.c - new files of a volume begin at the stripe servers that have free bytes
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "leat.h"
#include "leat_volume.h"
#include "volume_rig.h"

LOG_DEFINE("test_volume_start");

#define FILES 100u

/* Free blocks of the four servers, which have one file system */
static atomic_uint blocks[VOLUME_RIG_SERVERS];

int __real_fstatvfs(int fd, struct statvfs *ret);
int __wrap_fstatvfs(int fd, struct statvfs *ret);

int __wrap_fstatvfs(int fd, struct statvfs *ret)
{
	char link[64], path[300];
	int rc = __real_fstatvfs(fd, ret);
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n < 0 ? 0 : n] = '\0';
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++) {
		char dir[8];

		(void)snprintf(dir, sizeof(dir), "/s%u/", i + 1);
		if (strstr(path, dir))
			ret->f_bavail = atomic_load(&blocks[i]);
	}
	return rc;
}

static struct leat *m;
static unsigned begun[VOLUME_RIG_SERVERS]; /* files, by server */

static unsigned start_of_new_file(void)
{
	static unsigned count;
	struct leat_volume_layout *l;
	struct leat_file *f;
	char name[32];
	unsigned server;

	(void)snprintf(name, sizeof(name), "/f%u", count++);
	assert_int_equal(leat_open(m, name, O_RDWR | O_CREAT, 0644, &f), 0);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_volume_layout(m, name, &l), 0);
	server = l->stripes[0]->server - 1;
	leat_volume_layout_free(l);
	return server;
}

/* @never: bit by server: where no file begins once the manager has asked, which it does when it has started */
static void run(const char *options, unsigned never)
{
	uint64_t until = clock_now_ns() + 20 * NS_PER_S;

	volume_rig_start(false, options);
	m = volume_rig_mount(NULL);
	memset(begun, 0, sizeof(begun));
	for (unsigned row = 0; never && row < 2 * VOLUME_RIG_SERVERS && clock_now_ns() < until;) /* until then, in turn */
		row = never & 1u << start_of_new_file() ? 0 : row + 1;
	for (unsigned i = 0; i < FILES; i++)
		begun[start_of_new_file()]++;
	leat_umount(m);
	volume_rig_stop();
}

static void set_blocks(unsigned a, unsigned b, unsigned c, unsigned d)
{
	atomic_store(&blocks[0], a);
	atomic_store(&blocks[1], b);
	atomic_store(&blocks[2], c);
	atomic_store(&blocks[3], d);
}

static void in_turn(void **state)
{
	(void)state;
	set_blocks(0, 0, 1000, 0);
	run("stripe=64K", 0);
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		assert_int_equal(begun[i], FILES / VOLUME_RIG_SERVERS);
}

static void by_room(void **state)
{
	(void)state;
	set_blocks(0, 0, 1000, 0);
	run("stripe=64K,start=free", 0xb);
	assert_int_equal(begun[2], FILES);
}

/* A half, a quarter, a quarter. */
static void by_shares(void **state)
{
	(void)state;
	set_blocks(2000, 1000, 0, 1000);
	run("stripe=64K,width=1,start=free", 0x4);
	assert_int_equal(begun[2], 0);
	assert_in_range(begun[0], FILES / 2 - 5, FILES / 2 + 5);
	assert_in_range(begun[1], FILES / 4 - 5, FILES / 4 + 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_turn),
		cmocka_unit_test(by_room),
		cmocka_unit_test(by_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
