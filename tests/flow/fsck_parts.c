/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fsck_parts.c - leat volume fsck in this process, on the volume of the rig: what its tests share
 *
 * Operation: The command's calls of libleat are replaced (-Wl,--wrap), so that a test can step in between two of them.
 * Memory:    Static.
 * Threads:   That of the test; getxattr() of any.
 * Errors:    Are asserted.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/siphash.h"
#include "base/util.h"
#include "fsck_parts.h"
#include "volume_fsck.h"
#include "volume_pending.h"
#include "volume_rig.h"
#include "volume_watch.h"

struct fsck_parts fsck;

/* ---- between the steps of the command ---- */

ssize_t __real_getxattr(const char *path, const char *name, void *value, size_t bytes);
ssize_t __wrap_getxattr(const char *path, const char *name, void *value, size_t bytes);

ssize_t __wrap_getxattr(const char *path, const char *name, void *value, size_t bytes)
{
	struct stat st;

	if (atomic_load(&fsck.unread_ino) && !stat(path, &st) && st.st_ino == atomic_load(&fsck.unread_ino)) {
		errno = EIO;
		return -1;
	}
	return __real_getxattr(path, name, value, bytes);
}

static void run_once(void (**fn)(void))
{
	void (*once)(void) = *fn;

	*fn = NULL;
	if (once)
		once();
}

static void on_stat_sent(void)
{
	run_once(&fsck.before_stat);
}

static void on_stat_replied(void)
{
	run_once(&fsck.after_stat);
}

int __real_leat_volume_layout(struct leat *of, const char *path, struct leat_volume_layout **ret);
int __wrap_leat_volume_layout(struct leat *of, const char *path, struct leat_volume_layout **ret);
int __wrap_leat_volume_layout(struct leat *of, const char *path, struct leat_volume_layout **ret)
{
	void (*before)(const char *) = fsck.before_layout;

	fsck.before_layout = NULL;
	if (before)
		before(path);
	if (fsck.unreadable && !strcmp(path, fsck.unreadable))
		return fsck.unreadable_err;
	return __real_leat_volume_layout(of, path, ret);
}

/* ---- the volume ---- */

int fsck_setup(void **state)
{
	char why[256];

	(void)state;
	atomic_store(&volume_watch.sent, on_stat_sent);
	atomic_store(&volume_watch.replied, on_stat_replied);
	volume_rig_start(false, "stripe=64K");
	fsck.m = volume_rig_mount(NULL);
	if (leat_volume_key_read(tmp_dir_path(&volume_rig.dir, "key"), &fsck.key, why, sizeof(why)))
		fail_msg("%s", why);
	return 0;
}

int fsck_setup_away(void **state)
{
	volume_times = (struct volume_times){ .server = "300ms", .probe_ns = 600 * NS_PER_S, .retry_ns = 600 * NS_PER_S };
	return fsck_setup(state);
}

int fsck_teardown(void **state)
{
	(void)state;
	leat_volume_key_free(fsck.key);
	leat_umount(fsck.m);
	volume_rig_stop();
	volume_times = (struct volume_times){ 0 };
	return 0;
}

/* ---- the command ---- */

int fsck_try(const char *options)
{
	return volume_fsck(options, *fsck.dir ? fsck.dir : NULL, fsck.out, sizeof(fsck.out));
}

void fsck_run(int status, const char *options)
{
	int rc = fsck_try(options);

	if (rc != status)
		fail_msg("fsck %s: status %d, not %d: %s", options, rc, status, fsck.out);
}

void fsck_says(const char *text)
{
	if (!strstr(fsck.out, text))
		fail_msg("no '%s' in: %s", text, fsck.out);
}

void fsck_says_not(const char *text)
{
	if (strstr(fsck.out, text))
		fail_msg("'%s' in: %s", text, fsck.out);
}

/* ---- files and objects ---- */

struct leat_file *fsck_open(const char *name, int flags)
{
	struct leat_file *f;

	if (leat_open(fsck.m, name, flags, 0644, &f))
		fail_msg("%s: %s", name, leat_error(fsck.m));
	return f;
}

void fsck_write_file(const char *name)
{
	struct leat_file *f = fsck_open(name, O_RDWR | O_CREAT);

	assert_int_equal(leat_pwrite(f, fsck.data, FSCK_BYTES, 0), FSCK_BYTES);
	assert_int_equal(leat_close(f), 0);
}

const char *fsck_file_path(const char *name)
{
	static char path[300];

	(void)snprintf(path, sizeof(path), "%.100s/m/files/%.100s", volume_rig.dir.path, name);
	return path;
}

const char *fsck_object_path(const char *name, uint32_t stripe, unsigned *ret_server)
{
	static char path[300];
	struct leat_volume_layout *l;
	int n;

	if (leat_volume_layout(fsck.m, name, &l))
		fail_msg("%s: %s", name, leat_error(fsck.m));
	*ret_server = l->stripes[stripe]->server - 1;
	n = snprintf(path, sizeof(path), "%.100s/s%u/objects/%02x/", volume_rig.dir.path, *ret_server + 1, l->object[0]);
	for (unsigned i = 0; i < 16; i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", l->object[i]);
	(void)snprintf(path + n, sizeof(path) - (size_t)n, ".%u", stripe);
	leat_volume_layout_free(l);
	return path;
}

void fsck_make_old(const char *path)
{
	const struct timespec t[2] = { { .tv_sec = time(NULL) - 3600 }, { .tv_sec = time(NULL) - 3600 } };

	assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
}

void fsck_make_orphan(const char *digits, const char *text)
{
	char name[100], path[300];

	(void)snprintf(name, sizeof(name), "objects/%.2s/%s", digits, digits);
	(void)snprintf(path, sizeof(path), "s1/objects/%.2s", digits);
	(void)mkdir(tmp_dir_path(&volume_rig.dir, path), 0700);
	(void)snprintf(path, sizeof(path), "s1/%s", name);
	tmp_dir_write(&volume_rig.dir, path, text);
}

const char *fsck_attribute_of(const char *path)
{
	return getxattr(path, "trusted.leat", NULL, 0) >= 0 ? "trusted.leat" : "user.leat";
}

/* ---- what is on disk ---- */

static uint64_t digest;

/* Adds what a file is, but not its times of access and of the last change of its inode. */
static int add_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	static const struct siphash_key no_secret;
	uint64_t parts[5] = { (uint64_t)st->st_ino, (uint64_t)st->st_size, (uint64_t)st->st_mode,
			      S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec };
	uint8_t bytes[2000];
	ssize_t n = lgetxattr(path, fsck_attribute_of(path), bytes, sizeof(bytes));

	(void)type;
	(void)ftw;
	parts[4] = n < 0 ? 0 : siphash(&no_secret, bytes, (size_t)n);
	digest += siphash(&no_secret, (const void *)parts, sizeof(parts)) ^ siphash(&no_secret, (const void *)path, strlen(path));
	return 0;
}

uint64_t fsck_digest(void)
{
	static const char *const dirs[] = { "m", "s1", "s2", "s3", "s4" };

	digest = 0;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		assert_int_equal(nftw(tmp_dir_path(&volume_rig.dir, dirs[i]), add_entry, 20, FTW_PHYS), 0);
	return digest;
}

static int count_todo(void *ctx, const unsigned char object[16], enum leat_volume_todo todo)
{
	(void)object;
	(void)todo;
	(*(unsigned *)ctx)++;
	return 0;
}

void fsck_wait_for_pending(void)
{
	uint64_t until = clock_now_ns() + 20 * NS_PER_S;
	unsigned n;

	do {
		n = 0;
		assert_int_equal(leat_volume_pending(fsck.m, fsck.key, count_todo, &n, NULL), 0);
		if (n)
			(void)poll(NULL, 0, 1);
	} while (n && clock_now_ns() < until);
	assert_int_equal(n, 0);
}

void fsck_make_files(void)
{
	struct leat_file *f;

	assert_int_equal(leat_mkdir(fsck.m, "/d", 0755), 0);
	assert_int_equal(leat_mkdir(fsck.m, "/d/e", 0755), 0);
	fsck_write_file("/d/a");
	fsck_write_file("/d/e/b");
	fsck_write_file("/c");
	f = fsck_open("/c", O_RDWR);
	assert_int_equal(leat_ftruncate(f, 70000), 0);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_link(fsck.m, "/c", "/d/c"), 0);
	assert_int_equal(leat_symlink(fsck.m, "c", "/l"), 0);
	assert_int_equal(leat_close(fsck_open("/empty", O_RDWR | O_CREAT)), 0);
	f = fsck_open("/sparse", O_RDWR | O_CREAT);
	assert_int_equal(leat_pwrite(f, fsck.data, 10, 1000000), 10);
	assert_int_equal(leat_close(f), 0);
	fsck_write_file("/gone");
	assert_int_equal(leat_unlink(fsck.m, "/gone"), 0);
	fsck_write_file("/moved");
	assert_int_equal(leat_rename(fsck.m, "/moved", "/d/e/b"), 0);
	fsck_wait_for_pending();
}

void fsck_end_manager(void)
{
	leat_umount(fsck.m);
	volume_rig_end_manager();
}

void fsck_start_manager(void)
{
	volume_rig_start_manager();
	fsck.m = volume_rig_mount(NULL);
}

void fsck_restart_server(unsigned server)
{
	volume_rig_end_server(server);
	volume_rig_start_server(server);
}

static struct leat *mount_server(unsigned server)
{
	struct leat_opts *o = leat_opts_create();
	struct leat *ret;

	assert_int_equal(leat_set(o, "connect_only", "yes"), 0);
	if (leat_mount(volume_rig.server_url[server], o, &ret))
		fail_msg("%s", leat_error(NULL));
	leat_opts_destroy(o);
	return ret;
}

void fsck_remove_object(unsigned server, const unsigned char object[16], uint32_t stripe, uint64_t term)
{
	struct leat_volume_command c = { .size = sizeof(c), .key = fsck.key, .term = term, .server = server + 1, .stripe = stripe };
	struct leat *to = mount_server(server);

	memcpy(c.object, object, 16);
	assert_int_equal(leat_volume_object_remove(to, &c, (uint64_t)time(NULL) + 1000, NULL, NULL), 0);
	leat_umount(to);
}
