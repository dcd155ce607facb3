/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_fsck.c - leat volume fsck finds faults that were made by hand, changes nothing, and finds none in a volume in use
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/siphash.h"
#include "leat.h"
#include "leat_volume.h"
#include "stripe_handle.h"
#include "stripe_record.h"
#include "volume_fsck.h"
#include "volume_pending.h"
#include "volume_rig.h"

LOG_DEFINE("test_volume_fsck");

#define BYTES 300000u /* of a file: two of its four stripes have two units */
#define HOUR_S 3600
#define KEY_ID UINT64_C(0x1122334455667788)

enum { CLEAN = 0, INCOMPLETE = 1, USAGE = 2, FAULTS = 3, REPAIRED = 4 };

static struct leat *m;
static struct leat_volume_key *key;
static uint8_t data[BYTES];
static char out[65536];

static int setup(void **state)
{
	char why[256];

	(void)state;
	volume_rig_start(false, "stripe=64K");
	m = volume_rig_mount(NULL);
	if (leat_volume_key_read(tmp_dir_path(&volume_rig.dir, "key"), &key, why, sizeof(why)))
		fail_msg("%s", why);
	return 0;
}

/* What is pending for a server that is away stays so when it is back. */
static int setup_away(void **state)
{
	volume_times = (struct volume_times){ .server = "300ms", .probe_ns = 600 * NS_PER_S, .retry_ns = 600 * NS_PER_S };
	return setup(state);
}

static int teardown(void **state)
{
	(void)state;
	leat_volume_key_free(key);
	leat_umount(m);
	volume_rig_stop();
	volume_times = (struct volume_times){ 0 };
	return 0;
}

/* ---- between the steps of the command -------------------------------------------------------- */

static _Atomic ino_t unread_ino; /* a file whose attributes cannot be read; 0: none */

ssize_t __real_getxattr(const char *path, const char *name, void *value, size_t bytes);
ssize_t __wrap_getxattr(const char *path, const char *name, void *value, size_t bytes);

ssize_t __wrap_getxattr(const char *path, const char *name, void *value, size_t bytes)
{
	struct stat st;

	if (atomic_load(&unread_ino) && !stat(path, &st) && st.st_ino == atomic_load(&unread_ino)) {
		errno = EIO;
		return -1;
	}
	return __real_getxattr(path, name, value, bytes);
}

static void (*before_stat)(void), (*after_stat)(void), (*before_layout)(const char *path); /* called once */
static const char *unreadable; /* LAYOUT of this path fails: */
static int unreadable_err;

int __real_leat_volume_object_stat(struct leat *server, const struct leat_volume_command *c, struct leat_volume_object *ret,
				   uint64_t *newest);
int __wrap_leat_volume_object_stat(struct leat *server, const struct leat_volume_command *c, struct leat_volume_object *ret,
				   uint64_t *newest);
int __wrap_leat_volume_object_stat(struct leat *server, const struct leat_volume_command *c, struct leat_volume_object *ret,
				   uint64_t *newest)
{
	void (*before)(void) = before_stat, (*after)(void) = after_stat;
	int rc;

	before_stat = after_stat = NULL;
	if (before)
		before();
	rc = __real_leat_volume_object_stat(server, c, ret, newest);
	if (after)
		after();
	return rc;
}

int __real_leat_volume_layout(struct leat *of, const char *path, struct leat_volume_layout **ret);
int __wrap_leat_volume_layout(struct leat *of, const char *path, struct leat_volume_layout **ret);
int __wrap_leat_volume_layout(struct leat *of, const char *path, struct leat_volume_layout **ret)
{
	void (*before)(const char *) = before_layout;

	before_layout = NULL;
	if (before)
		before(path);
	if (unreadable && !strcmp(path, unreadable))
		return unreadable_err;
	return __real_leat_volume_layout(of, path, ret);
}

/* ---- the command ----------------------------------------------------------------------------- */

static char what[300]; /* the directory that is checked; "": the volume */

/* In this process, so that a test can step in. Return: exit status */
static int try(const char *options)
{
	return volume_fsck(options, *what ? what : NULL, out, sizeof(out));
}

static void run(int status, const char *options)
{
	int rc = try(options);

	if (rc != status)
		fail_msg("fsck %s: status %d, not %d: %s", options, rc, status, out);
}

static void says(const char *text)
{
	if (!strstr(out, text))
		fail_msg("no '%s' in: %s", text, out);
}

static void says_not(const char *text)
{
	if (strstr(out, text))
		fail_msg("'%s' in: %s", text, out);
}

/* ---- files and objects ----------------------------------------------------------------------- */

static struct leat_file *open_file(const char *name, int flags)
{
	struct leat_file *f;

	if (leat_open(m, name, flags, 0644, &f))
		fail_msg("%s: %s", name, leat_error(m));
	return f;
}

static void write_file(const char *name)
{
	struct leat_file *f = open_file(name, O_RDWR | O_CREAT);

	assert_int_equal(leat_pwrite(f, data, BYTES, 0), BYTES);
	assert_int_equal(leat_close(f), 0);
}

static const char *file_path(const char *name)
{
	static char path[300];

	(void)snprintf(path, sizeof(path), "%.100s/m/files/%.100s", volume_rig.dir.path, name);
	return path;
}

/* The object of a stripe, on disk; @ret_server: from 0 */
static const char *object_path(const char *name, uint32_t stripe, unsigned *ret_server)
{
	static char path[300];
	struct leat_volume_layout *l;
	int n;

	if (leat_volume_layout(m, name, &l))
		fail_msg("%s: %s", name, leat_error(m));
	*ret_server = l->stripes[stripe]->server - 1;
	n = snprintf(path, sizeof(path), "%.100s/s%u/objects/%02x/", volume_rig.dir.path, *ret_server + 1, l->object[0]);
	for (unsigned i = 0; i < 16; i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", l->object[i]);
	(void)snprintf(path + n, sizeof(path) - (size_t)n, ".%u", stripe);
	leat_volume_layout_free(l);
	return path;
}

static void make_old(const char *path)
{
	const struct timespec t[2] = { { .tv_sec = time(NULL) - HOUR_S }, { .tv_sec = time(NULL) - HOUR_S } };

	assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
}

/* An object that no file has, on server 1 */
static const char *make_orphan(const char *digits, const char *text)
{
	static char name[100];
	char path[300];

	(void)snprintf(name, sizeof(name), "objects/%.2s/%s", digits, digits);
	(void)snprintf(path, sizeof(path), "s1/objects/%.2s", digits);
	(void)mkdir(tmp_dir_path(&volume_rig.dir, path), 0700);
	(void)snprintf(path, sizeof(path), "s1/%s", name);
	tmp_dir_write(&volume_rig.dir, path, text);
	return name;
}

static const char *attribute_of(const char *path)
{
	return getxattr(path, "trusted.leat", NULL, 0) >= 0 ? "trusted.leat" : "user.leat";
}

/* ---- what is on disk ------------------------------------------------------------------------- */

static uint64_t digest;

/* Adds what a file is, but not its times of access and of the last change of its inode. */
static int add_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	static const struct siphash_key no_secret;
	uint64_t parts[5] = { (uint64_t)st->st_ino, (uint64_t)st->st_size, (uint64_t)st->st_mode,
			      S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec };
	uint8_t bytes[2000];
	ssize_t n = lgetxattr(path, attribute_of(path), bytes, sizeof(bytes));

	(void)type;
	(void)ftw;
	parts[4] = n < 0 ? 0 : siphash(&no_secret, bytes, (size_t)n);
	digest += siphash(&no_secret, (const void *)parts, sizeof(parts)) ^ siphash(&no_secret, (const void *)path, strlen(path));
	return 0;
}

static uint64_t digest_of_all(void)
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

/* What is asynchronous ends some time. */
static void wait_for_pending(void)
{
	uint64_t until = clock_now_ns() + 20 * NS_PER_S;
	unsigned n;

	do {
		n = 0;
		assert_int_equal(leat_volume_pending(m, key, count_todo, &n, NULL), 0);
		if (n)
			(void)poll(NULL, 0, 1);
	} while (n && clock_now_ns() < until);
	assert_int_equal(n, 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Files of each kind: cut, linked, empty, sparse, replaced, removed; in directories. */
static void make_files(void)
{
	struct leat_file *f;

	assert_int_equal(leat_mkdir(m, "/d", 0755), 0);
	assert_int_equal(leat_mkdir(m, "/d/e", 0755), 0);
	write_file("/d/a");
	write_file("/d/e/b");
	write_file("/c");
	f = open_file("/c", O_RDWR);
	assert_int_equal(leat_ftruncate(f, 70000), 0);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_link(m, "/c", "/d/c"), 0);
	assert_int_equal(leat_symlink(m, "c", "/l"), 0);
	assert_int_equal(leat_close(open_file("/empty", O_RDWR | O_CREAT)), 0);
	f = open_file("/sparse", O_RDWR | O_CREAT);
	assert_int_equal(leat_pwrite(f, data, 10, 1000000), 10);
	assert_int_equal(leat_close(f), 0);
	write_file("/gone");
	assert_int_equal(leat_unlink(m, "/gone"), 0);
	write_file("/moved");
	assert_int_equal(leat_rename(m, "/moved", "/d/e/b"), 0);
	wait_for_pending();
}

static void clean(void **state)
{
	uint64_t before;

	(void)state;
	run(CLEAN, "");
	says("0 files in 1 directory, 0 objects: 0 faults\n");
	make_files();
	before = digest_of_all();
	run(CLEAN, "");
	says("6 files in 3 directories");
	says("3 stripes have no object (normal: nothing was written there)");
	says(" 0 faults\n");
	assert_true(digest_of_all() == before);
}

static void layouts(void **state)
{
	char from[300];
	uint8_t bytes[2000];
	uint64_t before;
	ssize_t n;

	(void)state;
	make_files();
	strcpy(from, file_path("d/a"));
	n = getxattr(from, attribute_of(from), bytes, sizeof(bytes));
	assert_true(n > 0);
	assert_int_equal(setxattr(file_path("sparse"), attribute_of(from), bytes, (size_t)n, 0), 0);
	assert_int_equal(removexattr(file_path("d/e/b"), attribute_of(from)), 0);
	make_orphan("ab0102030405060708090a0b0c0d0e0f.3", "old");
	make_old(tmp_dir_path(&volume_rig.dir, "s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3"));
	before = digest_of_all();
	run(FAULTS, "--repair");
	says("/sparse: its layout is missing, damaged, or not signed for this file; not repaired\n");
	says("/d/e/b: its layout is missing");
	says_not("/d/a:");
	says("1 object without a file that is known: they may be those of files without a valid layout\n");
	says(": 2 faults; the check is incomplete\n");
	assert_true(digest_of_all() == before);
}

static void orphans(void **state)
{
	const char *path = tmp_dir_path(&volume_rig.dir, "s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3");
	char old[300];
	uint64_t before;

	(void)state;
	strcpy(old, path);
	make_files();
	make_orphan("cd0102030405060708090a0b0c0d0e0f.0", "young");
	make_orphan("ab0102030405060708090a0b0c0d0e0f.3", "old");
	run(CLEAN, "");
	make_old(old);
	before = digest_of_all();
	run(FAULTS, "");
	says("server 1: objects/ab/ab0102030405060708090a0b0c0d0e0f.3: no file has this object of 3 bytes\n");
	says_not("objects/cd/");
	says(": 1 fault\n");
	assert_true(digest_of_all() == before);
}

static void check_text(const char *name, const char *want)
{
	char got[100] = "";
	int fd = open(tmp_dir_path(&volume_rig.dir, name), O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	close(fd);
	assert_string_equal(got, want);
}

static void set_aside(void **state)
{
	char old[300];

	(void)state;
	strcpy(old, tmp_dir_path(&volume_rig.dir, "s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3"));
	make_files();
	make_orphan("cd0102030405060708090a0b0c0d0e0f.0", "young");
	make_orphan("ab0102030405060708090a0b0c0d0e0f.3", "old");
	make_old(old);
	/* another file has its place */
	tmp_dir_mkdir(&volume_rig.dir, "s1/lost+found");
	tmp_dir_write(&volume_rig.dir, "s1/lost+found/ab0102030405060708090a0b0c0d0e0f.3", "other");
	log_state.level = LOG_LEVEL_ERR + 1; /* the server says it */
	run(FAULTS, "--repair");
	says("no file has this object of 3 bytes; not repaired: ");
	check_text("s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3", "old");
	check_text("s1/lost+found/ab0102030405060708090a0b0c0d0e0f.3", "other");
	assert_int_equal(unlink(tmp_dir_path(&volume_rig.dir, "s1/lost+found/ab0102030405060708090a0b0c0d0e0f.3")), 0);
	run(REPAIRED, "--repair");
	says("no file has this object of 3 bytes; repaired\n");
	says(": 1 fault, 1 repaired\n");
	check_text("s1/lost+found/ab0102030405060708090a0b0c0d0e0f.3", "old");
	check_text("s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3", "");
	check_text("s1/objects/cd/cd0102030405060708090a0b0c0d0e0f.0", "young");
	run(CLEAN, "--repair");
}

/* Between the check and the repair something is written to it. */
static void write_orphan(void)
{
	tmp_dir_write(&volume_rig.dir, "s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3", "changed");
}

static void used_orphans(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		make_orphan("ab0102030405060708090a0b0c0d0e0f.3", "old");
		make_old(tmp_dir_path(&volume_rig.dir, "s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3"));
		if (i)
			after_stat = write_orphan;
		else
			before_stat = write_orphan;
		run(i ? FAULTS : CLEAN, "--repair");
		if (i)
			says("; not repaired: ");
		check_text("s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3", "changed");
	}
}

static void end_manager(void)
{
	leat_umount(m);
	volume_rig_end_manager();
}

static void start_manager(void)
{
	volume_rig_start_manager();
	m = volume_rig_mount(NULL);
}

/* Of a file that cannot be looked at it is not known which objects it has. */
static void unreadable_files(void **state)
{
	unsigned server;

	(void)state;
	write_file("/a");
	for (uint32_t i = 0; i < 4; i++)
		make_old(object_path("/a", i, &server));
	for (unsigned i = 0; i < 2; i++) {
		unreadable = "/a";
		unreadable_err = i ? -ESTALE : -EACCES;
		run(INCOMPLETE, "--repair");
		says("/a: not checked: ");
		says("4 objects without a file that is known: not all files could be looked at\n");
	}
	unreadable = NULL;
	run(CLEAN, "");
}

/* A server that the map gets while the volume is checked is no fault; one that it lost is. */
static void new_map(const char *path)
{
	(void)path;
	volume_rig_new_map();
}

static void other_maps(void **state)
{
	char text[1000];
	int fd = open(tmp_dir_path(&volume_rig.dir, "map"), O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	(void)state;
	close(fd);
	assert_true(n > 0);
	text[n] = '\0';
	write_file("/a");
	end_manager();
	*strstr(text, "[server 4]") = '\0';
	tmp_dir_write(&volume_rig.dir, "map", text);
	start_manager();
	run(FAULTS, "");
	says("/a: stripe ");
	says(" is on server 4, which the map does not have\n");
	before_layout = new_map;
	run(CLEAN, "");
	assert_null(before_layout);
	says(": 0 faults\n");
}

/* The removal of a file is pending: its objects are no orphans. */
static void pending_removal(void **state)
{
	char path[300];
	unsigned server;

	(void)state;
	write_file("/a");
	strcpy(path, object_path("/a", 0, &server));
	volume_rig_end_server(server);
	assert_int_equal(leat_unlink(m, "/a"), 0);
	make_old(path);
	run(INCOMPLETE, "");
	says(": not checked: ");
	volume_rig_start_server(server);
	run(CLEAN, "");
	says("pending: 0 truncations, 1 removal;");
}

static void too_long(void **state)
{
	struct leat_volume_layout *l;
	struct stat st;
	unsigned server;
	char path[300];

	(void)state;
	write_file("/a");
	strcpy(path, object_path("/a", 1, &server));
	assert_int_equal(truncate(path, 200000), 0);
	run(CLEAN, ""); /* a client may be writing */
	make_old(path);
	run(FAULTS, "");
	says("/a: the object of stripe 1 on server ");
	says(" is as long as that of a file of 855360 bytes, and the file has 300000: ");
	says(": 1 fault\n");
	run(REPAIRED, "--repair");
	says("has not reported its end; repaired\n");
	assert_int_equal(stat(file_path("a"), &st), 0);
	assert_int_equal(st.st_size, 855360);
	run(CLEAN, "--repair");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 200000);
	assert_int_equal(leat_volume_layout(m, "/a", &l), 0);
	assert_int_equal(leat_volume_raise(m, "/a", l, 1000), 0); /* never lower */
	assert_int_equal(stat(file_path("a"), &st), 0);
	assert_int_equal(st.st_size, 855360);
	assert_int_equal(leat_volume_raise(m, "/b", l, 1000), -ENOENT);
	write_file("/b");
	assert_int_equal(leat_volume_raise(m, "/b", l, 1000000), -ESTALE); /* another file */
	assert_int_equal(leat_truncate(m, "/a", 1000), 0);
	assert_int_equal(leat_volume_raise(m, "/a", l, 855360), -ESTALE); /* a cut stays */
	assert_int_equal(stat(file_path("a"), &st), 0);
	assert_int_equal(st.st_size, 1000);
	leat_volume_layout_free(l);
}

static void set_epoch(const char *path, uint64_t epoch)
{
	struct stripe_record r = stripe_record_none();
	uint8_t bytes[STRIPE_RECORD_BYTES];

	r.epoch = epoch;
	stripe_record_encode(&r, bytes);
	assert_int_equal(setxattr(path, attribute_of(file_path("")), bytes, sizeof(bytes), 0), 0);
}

/* The server forgets what it has in memory. */
static void restart(unsigned server)
{
	volume_rig_end_server(server);
	volume_rig_start_server(server);
}

static void epochs(void **state)
{
	char path[300], text[200];
	unsigned server;

	(void)state;
	make_files();
	strcpy(path, object_path("/c", 0, &server)); /* it has epoch 2 */
	set_epoch(path, 1);
	restart(server);
	run(FAULTS, "");
	(void)snprintf(text, sizeof(text), "/c: the object of stripe 0 on server %u has epoch 1, and the file 2: one of both is from a backup\n",
		       server + 1);
	says(text);
	says("/d/c: the object of stripe 0");
	set_epoch(path, 3);
	restart(server);
	run(FAULTS, "");
	says(" has epoch 3, and the file 2");
	assert_int_equal(unlink(path), 0);
	restart(server);
	run(FAULTS, "");
	(void)snprintf(text, sizeof(text), "/c: server %u has lost the object of stripe 0\n", server + 1);
	says(text);
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

static void remove_object(unsigned server, const unsigned char object[16], uint32_t stripe, uint64_t term)
{
	struct leat_volume_command c = { .size = sizeof(c), .key = key, .term = term, .server = server + 1, .stripe = stripe };
	struct leat *to = mount_server(server);

	memcpy(c.object, object, 16);
	assert_int_equal(leat_volume_object_remove(to, &c, (uint64_t)time(NULL) + 1000, NULL, NULL), 0);
	leat_umount(to);
}

/* fsck reports no fault for a cut that is pending on a server, or that is made while fsck checks the file. */
static void cut_a(void)
{
	struct leat_file *f = open_file("/a", O_RDWR);

	assert_int_equal(leat_ftruncate(f, 70000), 0);
	assert_int_equal(leat_close(f), 0);
}

static void cuts(void **state)
{
	char path[300];
	unsigned server;

	(void)state;
	write_file("/a");
	strcpy(path, object_path("/a", 1, &server));
	assert_int_equal(truncate(path, 200000), 0);
	make_old(path);
	after_stat = cut_a;
	run(CLEAN, "");
	assert_null(after_stat);
	assert_int_equal(leat_unlink(m, "/a"), 0);
	write_file("/a");
	(void)object_path("/a", 1, &server);
	volume_rig_end_server(server);
	cut_a();
	volume_rig_start_server(server);
	run(CLEAN, "");
	says("pending: 1 truncation, 0 removals;");
}

static unsigned char orphan_name[16] = { 0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

static void remove_orphan(void)
{
	remove_object(0, orphan_name, 3, 1);
}

static void removed_meanwhile(void **state)
{
	(void)state;
	make_orphan("ab0102030405060708090a0b0c0d0e0f.3", "old");
	make_old(tmp_dir_path(&volume_rig.dir, "s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3"));
	before_stat = remove_orphan;
	run(CLEAN, "");
	assert_null(before_stat);
	says("0 files in 1 directory, 1 object: 0 faults");
}

/* A file moves from a directory that was not read yet to one that was. */
static void move_file(const char *path)
{
	const char *from = path[1] == 'x' ? "/y/f" : "/x/f", *to = path[1] == 'x' ? "/x/g" : "/y/g";

	assert_int_equal(leat_rename(m, from, to), 0);
}

static void moved_meanwhile(void **state)
{
	static const char *const names[] = { "/x/f", "/y/f" };
	unsigned server;

	(void)state;
	assert_int_equal(leat_mkdir(m, "/x", 0755), 0);
	assert_int_equal(leat_mkdir(m, "/y", 0755), 0);
	for (unsigned i = 0; i < 2; i++) {
		write_file(names[i]);
		for (uint32_t k = 0; k < 4; k++)
			make_old(object_path(names[i], k, &server));
	}
	before_layout = move_file;
	run(CLEAN, "");
	assert_null(before_layout);
	says("1 file in 3 directories, 8 objects: 0 faults");
}

static void damaged_records(void **state)
{
	char path[300];
	unsigned server;

	(void)state;
	write_file("/a");
	strcpy(path, object_path("/a", 2, &server));
	assert_int_equal(setxattr(path, attribute_of(file_path("")), "damage", 6, 0), 0);
	restart(server);
	run(FAULTS, "");
	says("/a: the record of the object of stripe 2 on server ");
	says(": 1 fault\n");
}

static void removed_objects(void **state)
{
	struct leat_volume_layout *l;

	(void)state;
	write_file("/a");
	assert_int_equal(leat_volume_layout(m, "/a", &l), 0);
	remove_object(l->stripes[3]->server - 1, l->object, 3, 1);
	leat_volume_layout_free(l);
	run(FAULTS, "");
	says("/a: the object of stripe 3 on server ");
	says(" was removed\n");
}

/* The manager sees that there is a newer term when it has to cut something. */
static void deposed(void **state)
{
	struct leat_volume_work w = { .size = sizeof(w) };
	struct leat_file *f;

	(void)state;
	write_file("/a");
	f = open_file("/a", O_RDWR);
	assert_int_equal(leat_ftruncate(f, 1000), 0); /* now it has a term */
	remove_object(0, orphan_name, 200, 1000);
	assert_int_equal(leat_volume_pending(m, key, NULL, NULL, &w), 0);
	assert_false(w.deposed);
	run(CLEAN, "");
	log_state.level = LOG_LEVEL_ERR + 1; /* the manager says it */
	assert_int_equal(leat_ftruncate(f, 500), -EIO);
	(void)leat_close(f);
	run(FAULTS, "");
	says("the manager: another manager is at work");
}

static int take_todo(void *ctx, const unsigned char object[16], enum leat_volume_todo todo)
{
	unsigned *n = ctx;

	(void)object;
	n[todo]++;
	return 0;
}

static void damaged_intents(void **state)
{
	unsigned n[4] = { 0 };
	char path[300];

	(void)state;
	write_file("/a");
	write_file("/b");
	assert_int_equal(removexattr(file_path("a"), attribute_of(file_path("a"))), 0);
	strcpy(path, tmp_dir_path(&volume_rig.dir, "m/pending/00112233445566778899aabbccddeeff"));
	assert_int_equal(link(file_path("a"), path), 0);
	assert_int_equal(link(file_path("b"), tmp_dir_path(&volume_rig.dir, "m/pending/ff112233445566778899aabbccddeeff")), 0);
	tmp_dir_write(&volume_rig.dir, "m/pending/another", "");
	assert_int_equal(leat_volume_pending(m, key, take_todo, n, NULL), 0);
	assert_true(n[LEAT_VOLUME_TODO_DAMAGED] == 1 && n[LEAT_VOLUME_TODO_NOTHING] == 1);
	run(FAULTS, "");
	says("pending/00112233445566778899aabbccddeeff: the layout of this file of the manager is not valid");
	says_not("pending/ff");
}

/* More than one part of the list. */
static void many_intents(void **state)
{
	unsigned n[4] = { 0 };

	(void)state;
	write_file("/a");
	for (unsigned i = 0; i < 150; i++) {
		char name[100], path[300];

		(void)snprintf(name, sizeof(name), "m/pending/%02x112233445566778899aabbccddeeff", i * 37 % 256);
		strcpy(path, tmp_dir_path(&volume_rig.dir, name));
		assert_int_equal(link(file_path("a"), path), 0);
	}
	assert_int_equal(leat_volume_pending(m, key, take_todo, n, NULL), 0);
	assert_int_equal(n[LEAT_VOLUME_TODO_NOTHING], 150);
}

static uint64_t moves(void)
{
	struct leat_volume_work w = { .size = sizeof(w) };

	if (leat_volume_pending(m, key, NULL, NULL, &w))
		fail_msg("%s", leat_error(m));
	assert_true(!w.moving && !w.deposed && w.lifetime_s == STRIPE_LIFETIME_S);
	return w.moves;
}

/* What makes a file be missed by one that reads directories. */
static void counts_moves(void **state)
{
	uint64_t before, now;

	(void)state;
	before = moves();
	write_file("/a");
	write_file("/b");
	assert_int_equal(leat_unlink(m, "/b"), 0);
	assert_true(moves() == before);
	assert_int_equal(leat_rename(m, "/a", "/b"), 0);
	now = moves();
	assert_true(now != before);
	assert_int_equal(leat_link(m, "/b", "/c"), 0);
	before = moves();
	assert_true(now != before);
	volume_rig_end_manager();
	volume_rig_start_manager();
	assert_true(moves() != before);
}

static void refused(void **state)
{
	char text[200];

	(void)state;
	(void)snprintf(text, sizeof(text), "volume = %016llx\nkey = ff112233445566778899aabbccddeeff\n", (unsigned long long)KEY_ID);
	tmp_dir_write(&volume_rig.dir, "other", text);
	assert_int_equal(chmod(tmp_dir_path(&volume_rig.dir, "other"), 0600), 0);
	(void)snprintf(text, sizeof(text), "--key %.150s/other", volume_rig.dir.path);
	run(INCOMPLETE, text);
	says("VOLUME_ERR_ACCES");
	run(USAGE, "local:///another");
	says("usage");
	write_file("/a");
	strcat(volume_rig.url, "/a");
	run(INCOMPLETE, "");
	says("name the volume");
}

/* ---- layouts that are signed again ----------------------------------------------------------- */

static void run_resign(int status, const char *options)
{
	char text[100];

	(void)snprintf(text, sizeof(text), "--resign %s", options);
	(void)snprintf(what, sizeof(what), "%s/m", volume_rig.dir.path);
	run(status, text);
	*what = '\0';
}

/* As a restore from a backup: another inode, with the same attribute. */
static void copy_file_to(const char *from, const char *to)
{
	char path[300];
	uint8_t bytes[2000];
	struct stat st;
	ssize_t n;
	int fd;

	strcpy(path, file_path(from));
	assert_int_equal(stat(path, &st), 0);
	n = getxattr(path, attribute_of(path), bytes, sizeof(bytes));
	assert_true(n > 0);
	fd = open(file_path(to), O_WRONLY | O_CREAT | O_EXCL, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fsetxattr(fd, attribute_of(path), bytes, (size_t)n, 0), 0);
	assert_int_equal(ftruncate(fd, st.st_size), 0);
	close(fd);
}

static void restore_file(const char *name)
{
	char temp[300];

	copy_file_to(name, "restored");
	strcpy(temp, file_path("restored"));
	assert_int_equal(rename(temp, file_path(name)), 0);
}

static void check_data(const char *name)
{
	static uint8_t mem[BYTES];
	struct leat_file *f = open_file(name, O_RDONLY);

	assert_int_equal(leat_pread(f, mem, BYTES, 0), BYTES);
	assert_memory_equal(mem, data, BYTES);
	assert_int_equal(leat_close(f), 0);
}

static void resigns(void **state)
{
	uint64_t before;

	(void)state;
	make_files();
	run_resign(INCOMPLETE, ""); /* the manager runs */
	says("a leatd manages it");
	end_manager();
	run_resign(CLEAN, "--repair");
	says("0 layouts are not valid with the first key, 0 signed again\n");
	restore_file("d/a");
	copy_file_to("c", "copy"); /* c has two names, and its layout is valid */
	copy_file_to("d/e/b", "twin");
	restore_file("d/e/b"); /* now neither is valid */
	assert_int_equal(setxattr(file_path("sparse"), attribute_of(file_path("")), "damage", 6, 0), 0);
	assert_int_equal(removexattr(file_path("empty"), attribute_of(file_path(""))), 0);
	before = digest_of_all();
	run_resign(FAULTS, "");
	says("files/d/a: its layout is signed for another file\n");
	says("files/copy: its layout is signed for another file, and another file has the same object; not signed\n");
	says("files/twin: its layout is signed for another file, and another");
	says("files/d/e/b: its layout is signed for another file, and another");
	says("files/sparse: its layout is damaged, or of another volume; not signed\n");
	says_not("files/c:");
	says_not("files/empty");
	says("\n5 layouts are not valid");
	assert_true(digest_of_all() == before);
	run_resign(FAULTS, "--repair");
	says("files/d/a: its layout is signed for another file; signed again\n");
	says(", 1 signed again\n");
	assert_int_equal(unlink(file_path("twin")), 0);
	assert_int_equal(unlink(file_path("copy")), 0);
	assert_int_equal(unlink(file_path("sparse")), 0);
	run_resign(REPAIRED, "--repair");
	says("files/d/e/b: its layout is signed for another file; signed again\n");
	run_resign(CLEAN, "");
	start_manager();
	check_data("/d/a");
	check_data("/d/e/b");
	run(CLEAN, "");
}

/* A file that cannot be read may have the object of any copy. */
static void resigns_no_copies(void **state)
{
	struct stat st;

	(void)state;
	make_files();
	end_manager();
	copy_file_to("c", "copy");
	assert_int_equal(stat(file_path("c"), &st), 0);
	atomic_store(&unread_ino, st.st_ino);
	run_resign(FAULTS, "--repair");
	says("files/copy: its layout is signed for another file, perhaps for one that could not be read; not signed\n");
	says("files/c: Input/output error\n");
	says(", 0 signed again");
	atomic_store(&unread_ino, 0);
	run_resign(FAULTS, "--repair");
	says("files/copy: its layout is signed for another file, and another file has the same object; not signed\n");
	start_manager();
}

/* With the layouts signed again, the old key can be removed everywhere. */
static void removes_old_keys(void **state)
{
	char new_key[200];

	(void)state;
	write_file("/a");
	end_manager();
	(void)snprintf(new_key, sizeof(new_key), "volume = %016llx\nkey = ff112233445566778899aabbccddeeff\n", (unsigned long long)KEY_ID);
	strcat(new_key, "key = 00112233445566778899aabbccddeeff\n");
	tmp_dir_write(&volume_rig.dir, "key", new_key);
	run_resign(FAULTS, "");
	says("files/a: its layout is signed with an old key\n");
	run_resign(REPAIRED, "--repair");
	*strstr(new_key, "key = 00") = '\0';
	tmp_dir_write(&volume_rig.dir, "key", new_key);
	for (unsigned i = 0; i < 4; i++)
		restart(i);
	start_manager();
	check_data("/a");
	tmp_dir_mkdir(&volume_rig.dir, "other");
	(void)snprintf(what, sizeof(what), "%s/other", volume_rig.dir.path);
	run(INCOMPLETE, "--resign");
	says("it is not the directory of a manager");
	*what = '\0';
}

/* ---- in use ---------------------------------------------------------------------------------- */

static struct {
	atomic_bool stop;
	pthread_t worker, ager;
	unsigned rounds;
} use;

/* Sizes are set before data is written, since objects look old here. */
static void *work(void *arg)
{
	struct leat *mine = volume_rig_mount(NULL);
	struct leat_file *f;
	char name[40], to[40];

	(void)arg;
	for (unsigned i = 0; !atomic_load(&use.stop); i++) {
		(void)snprintf(name, sizeof(name), "/d%u/f%u", i % 3, i % 20);
		(void)snprintf(to, sizeof(to), "/d%u/f%u", (i / 20) % 3, i % 7);
		assert_int_equal(leat_open(mine, name, O_RDWR | O_CREAT, 0644, &f), 0);
		assert_int_equal(leat_ftruncate(f, BYTES), 0);
		assert_int_equal(leat_pwrite(f, data, BYTES, 0), BYTES);
		if (i % 3 == 0)
			assert_int_equal(leat_ftruncate(f, 1000 + i), 0);
		assert_int_equal(leat_close(f), 0);
		if (i % 2)
			assert_int_equal(leat_unlink(mine, name), 0);
		else if (i % 64 == 0)
			assert_int_equal(leat_rename(mine, name, to), 0);
		use.rounds = i;
	}
	leat_umount(mine);
	return NULL;
}

static int age_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const struct timespec t[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };

	(void)ftw;
	(void)type;
	if (S_ISREG(st->st_mode) && strstr(path, "/objects/"))
		(void)utimensat(AT_FDCWD, path, t, 0); /* it may have gone */
	return 0;
}

/* All objects look old at once, so that their age excuses nothing. */
static void *age(void *arg)
{
	char dirs[4][300];

	(void)arg;
	for (unsigned i = 0; i < 4; i++)
		(void)snprintf(dirs[i], sizeof(dirs[i]), "%.200s/s%u", volume_rig.dir.path, i + 1);
	while (!atomic_load(&use.stop))
		for (unsigned i = 0; i < 4; i++)
			(void)nftw(dirs[i], age_entry, 20, FTW_PHYS);
	return NULL;
}

static void in_use(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(leat_mkdir(m, (const char *[]){ "/d0", "/d1", "/d2" }[i], 0755), 0);
	atomic_store(&use.stop, false);
	assert_int_equal(pthread_create(&use.worker, NULL, work, NULL), 0);
	assert_int_equal(pthread_create(&use.ager, NULL, age, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		int rc = try("");

		if (rc != CLEAN && rc != INCOMPLETE) /* names moved */
			fail_msg("%d: %s", rc, out);
		says(" 0 faults");
	}
	atomic_store(&use.stop, true);
	pthread_join(use.worker, NULL);
	pthread_join(use.ager, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(clean, setup, teardown),
		cmocka_unit_test_setup_teardown(layouts, setup, teardown),
		cmocka_unit_test_setup_teardown(orphans, setup, teardown),
		cmocka_unit_test_setup_teardown(set_aside, setup, teardown),
		cmocka_unit_test_setup_teardown(used_orphans, setup, teardown),
		cmocka_unit_test_setup_teardown(unreadable_files, setup, teardown),
		cmocka_unit_test_setup_teardown(other_maps, setup, teardown),
		cmocka_unit_test_setup_teardown(pending_removal, setup_away, teardown),
		cmocka_unit_test_setup_teardown(too_long, setup, teardown),
		cmocka_unit_test_setup_teardown(epochs, setup, teardown),
		cmocka_unit_test_setup_teardown(cuts, setup_away, teardown),
		cmocka_unit_test_setup_teardown(removed_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(moved_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_records, setup, teardown),
		cmocka_unit_test_setup_teardown(removed_objects, setup, teardown),
		cmocka_unit_test_setup_teardown(deposed, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_intents, setup, teardown),
		cmocka_unit_test_setup_teardown(many_intents, setup, teardown),
		cmocka_unit_test_setup_teardown(counts_moves, setup, teardown),
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
		cmocka_unit_test_setup_teardown(resigns, setup, teardown),
		cmocka_unit_test_setup_teardown(resigns_no_copies, setup, teardown),
		cmocka_unit_test_setup_teardown(removes_old_keys, setup, teardown),
		cmocka_unit_test_setup_teardown(in_use, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
