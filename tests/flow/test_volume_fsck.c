/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_fsck.c - leat volume fsck finds faults that were made by hand, changes nothing, and finds none in a volume in use
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "fsck_parts.h"
#include "stripe_handle.h"
#include "stripe_record.h"
#include "volume_rig.h"

#define KEY_ID UINT64_C(0x1122334455667788)

/* ---- files ---- */

static void clean(void **state)
{
	uint64_t before;

	(void)state;
	fsck_run(FSCK_CLEAN, "");
	fsck_says("0 files in 1 directory, 0 objects: 0 faults\n");
	fsck_make_files();
	before = fsck_digest();
	fsck_run(FSCK_CLEAN, "");
	fsck_says("6 files in 3 directories");
	fsck_says("3 stripes have no object (normal: nothing was written there)");
	fsck_says(" 0 faults\n");
	assert_true(fsck_digest() == before);
}

static void layouts(void **state)
{
	char from[300];
	uint8_t bytes[2000];
	uint64_t before;
	ssize_t n;

	(void)state;
	fsck_make_files();
	strcpy(from, fsck_file_path("d/a"));
	n = getxattr(from, fsck_attribute_of(from), bytes, sizeof(bytes));
	assert_true(n > 0);
	assert_int_equal(setxattr(fsck_file_path("sparse"), fsck_attribute_of(from), bytes, (size_t)n, 0), 0);
	assert_int_equal(removexattr(fsck_file_path("d/e/b"), fsck_attribute_of(from)), 0);
	fsck_make_orphan("ab0102030405060708090a0b0c0d0e0f.3", "old");
	fsck_make_old(tmp_dir_path(&volume_rig.dir, "s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3"));
	before = fsck_digest();
	fsck_run(FSCK_FAULTS, "--repair");
	fsck_says("/sparse: its layout is missing, damaged, or not signed for this file; not repaired\n");
	fsck_says("/d/e/b: its layout is missing");
	fsck_says_not("/d/a:");
	fsck_says("1 object without a file that is known: they may be those of files without a valid layout\n");
	fsck_says(": 2 faults; the check is incomplete\n");
	assert_true(fsck_digest() == before);
}

/* Of a file that cannot be looked at it is not known which objects it has. */
static void unreadable_files(void **state)
{
	unsigned server;

	(void)state;
	fsck_write_file("/a");
	for (uint32_t i = 0; i < 4; i++)
		fsck_make_old(fsck_object_path("/a", i, &server));
	for (unsigned i = 0; i < 2; i++) {
		fsck.unreadable = "/a";
		fsck.unreadable_err = i ? -ESTALE : -EACCES;
		fsck_run(FSCK_INCOMPLETE, "--repair");
		fsck_says("/a: not checked: ");
		fsck_says("4 objects without a file that is known: not all files could be looked at\n");
	}
	fsck.unreadable = NULL;
	fsck_run(FSCK_CLEAN, "");
}

static void too_long(void **state)
{
	struct leat_volume_layout *l;
	struct stat st;
	unsigned server;
	char path[300];

	(void)state;
	fsck_write_file("/a");
	strcpy(path, fsck_object_path("/a", 1, &server));
	assert_int_equal(truncate(path, 200000), 0);
	fsck_run(FSCK_CLEAN, ""); /* a client may be writing */
	fsck_make_old(path);
	fsck_run(FSCK_FAULTS, "");
	fsck_says("/a: the object of stripe 1 on server ");
	fsck_says(" is as long as that of a file of 855360 bytes, and the file has 300000: ");
	fsck_says(": 1 fault\n");
	fsck_run(FSCK_REPAIRED, "--repair");
	fsck_says("has not reported its end; repaired\n");
	assert_int_equal(stat(fsck_file_path("a"), &st), 0);
	assert_int_equal(st.st_size, 855360);
	fsck_run(FSCK_CLEAN, "--repair");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 200000);
	assert_int_equal(leat_volume_layout(fsck.m, "/a", &l), 0);
	assert_int_equal(leat_volume_raise(fsck.m, "/a", l, 1000), 0); /* never lower */
	assert_int_equal(stat(fsck_file_path("a"), &st), 0);
	assert_int_equal(st.st_size, 855360);
	assert_int_equal(leat_volume_raise(fsck.m, "/b", l, 1000), -ENOENT);
	fsck_write_file("/b");
	assert_int_equal(leat_volume_raise(fsck.m, "/b", l, 1000000), -ESTALE); /* another file */
	assert_int_equal(leat_truncate(fsck.m, "/a", 1000), 0);
	assert_int_equal(leat_volume_raise(fsck.m, "/a", l, 855360), -ESTALE); /* a cut stays */
	assert_int_equal(stat(fsck_file_path("a"), &st), 0);
	assert_int_equal(st.st_size, 1000);
	leat_volume_layout_free(l);
}

/* fsck reports no fault for a cut that is pending on a server, or that is made while fsck checks the file. */
static void cut_a(void)
{
	struct leat_file *f = fsck_open("/a", O_RDWR);

	assert_int_equal(leat_ftruncate(f, 70000), 0);
	assert_int_equal(leat_close(f), 0);
}

static void cuts(void **state)
{
	char path[300];
	unsigned server;

	(void)state;
	fsck_write_file("/a");
	strcpy(path, fsck_object_path("/a", 1, &server));
	assert_int_equal(truncate(path, 200000), 0);
	fsck_make_old(path);
	fsck.after_stat = cut_a;
	fsck_run(FSCK_CLEAN, "");
	assert_null(fsck.after_stat);
	assert_int_equal(leat_unlink(fsck.m, "/a"), 0);
	fsck_write_file("/a");
	(void)fsck_object_path("/a", 1, &server);
	volume_rig_end_server(server);
	cut_a();
	volume_rig_start_server(server);
	fsck_run(FSCK_CLEAN, "");
	fsck_says("pending: 1 truncation, 0 removals;");
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
	fsck_write_file("/a");
	fsck_end_manager();
	*strstr(text, "[server 4]") = '\0';
	tmp_dir_write(&volume_rig.dir, "map", text);
	fsck_start_manager();
	fsck_run(FSCK_FAULTS, "");
	fsck_says("/a: stripe ");
	fsck_says(" is on server 4, which the map does not have\n");
	fsck.before_layout = new_map;
	fsck_run(FSCK_CLEAN, "");
	assert_null(fsck.before_layout);
	fsck_says(": 0 faults\n");
}

/* ---- objects ---- */

static void set_epoch(const char *path, uint64_t epoch)
{
	struct stripe_record r = stripe_record_none();
	uint8_t bytes[STRIPE_RECORD_BYTES];

	r.epoch = epoch;
	stripe_record_encode(&r, bytes);
	assert_int_equal(setxattr(path, fsck_attribute_of(fsck_file_path("")), bytes, sizeof(bytes), 0), 0);
}

static void epochs(void **state)
{
	char path[300], text[200];
	unsigned server;

	(void)state;
	fsck_make_files();
	strcpy(path, fsck_object_path("/c", 0, &server)); /* it has epoch 2 */
	set_epoch(path, 1);
	fsck_restart_server(server);
	fsck_run(FSCK_FAULTS, "");
	(void)snprintf(text, sizeof(text), "/c: the object of stripe 0 on server %u has epoch 1, and the file 2: one of both is from a backup\n",
		       server + 1);
	fsck_says(text);
	fsck_says("/d/c: the object of stripe 0");
	set_epoch(path, 3);
	fsck_restart_server(server);
	fsck_run(FSCK_FAULTS, "");
	fsck_says(" has epoch 3, and the file 2");
	assert_int_equal(unlink(path), 0);
	fsck_restart_server(server);
	fsck_run(FSCK_FAULTS, "");
	(void)snprintf(text, sizeof(text), "/c: server %u has lost the object of stripe 0\n", server + 1);
	fsck_says(text);
}

static void damaged_records(void **state)
{
	char path[300];
	unsigned server;

	(void)state;
	fsck_write_file("/a");
	strcpy(path, fsck_object_path("/a", 2, &server));
	assert_int_equal(setxattr(path, fsck_attribute_of(fsck_file_path("")), "damage", 6, 0), 0);
	fsck_restart_server(server);
	fsck_run(FSCK_FAULTS, "");
	fsck_says("/a: the record of the object of stripe 2 on server ");
	fsck_says(": 1 fault\n");
}

static void removed_objects(void **state)
{
	struct leat_volume_layout *l;

	(void)state;
	fsck_write_file("/a");
	assert_int_equal(leat_volume_layout(fsck.m, "/a", &l), 0);
	fsck_remove_object(l->stripes[3]->server - 1, l->object, 3, 1);
	leat_volume_layout_free(l);
	fsck_run(FSCK_FAULTS, "");
	fsck_says("/a: the object of stripe 3 on server ");
	fsck_says(" was removed\n");
}

/* ---- the work of the manager ---- */

/* The manager sees that there is a newer term when it has to cut something. */
static void deposed(void **state)
{
	struct leat_volume_work w = { .size = sizeof(w) };
	struct leat_file *f;

	(void)state;
	fsck_write_file("/a");
	f = fsck_open("/a", O_RDWR);
	assert_int_equal(leat_ftruncate(f, 1000), 0); /* now it has a term */
	fsck_remove_object(0, (const unsigned char[16]){ 0xab }, 200, 1000);
	assert_int_equal(leat_volume_pending(fsck.m, fsck.key, NULL, NULL, &w), 0);
	assert_false(w.deposed);
	fsck_run(FSCK_CLEAN, "");
	log_state.level = LOG_LEVEL_ERR + 1; /* the manager says it */
	assert_int_equal(leat_ftruncate(f, 500), -EIO);
	(void)leat_close(f);
	fsck_run(FSCK_FAULTS, "");
	fsck_says("the manager: another manager is at work");
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
	fsck_write_file("/a");
	fsck_write_file("/b");
	assert_int_equal(removexattr(fsck_file_path("a"), fsck_attribute_of(fsck_file_path("a"))), 0);
	strcpy(path, tmp_dir_path(&volume_rig.dir, "m/pending/00112233445566778899aabbccddeeff"));
	assert_int_equal(link(fsck_file_path("a"), path), 0);
	assert_int_equal(link(fsck_file_path("b"), tmp_dir_path(&volume_rig.dir, "m/pending/ff112233445566778899aabbccddeeff")), 0);
	tmp_dir_write(&volume_rig.dir, "m/pending/another", "");
	assert_int_equal(leat_volume_pending(fsck.m, fsck.key, take_todo, n, NULL), 0);
	assert_true(n[LEAT_VOLUME_TODO_DAMAGED] == 1 && n[LEAT_VOLUME_TODO_NOTHING] == 1);
	fsck_run(FSCK_FAULTS, "");
	fsck_says("pending/00112233445566778899aabbccddeeff: the layout of this file of the manager is not valid");
	fsck_says_not("pending/ff");
}

/* More than one part of the list. */
static void many_intents(void **state)
{
	unsigned n[4] = { 0 };

	(void)state;
	fsck_write_file("/a");
	for (unsigned i = 0; i < 150; i++) {
		char name[100], path[300];

		(void)snprintf(name, sizeof(name), "m/pending/%02x112233445566778899aabbccddeeff", i * 37 % 256);
		strcpy(path, tmp_dir_path(&volume_rig.dir, name));
		assert_int_equal(link(fsck_file_path("a"), path), 0);
	}
	assert_int_equal(leat_volume_pending(fsck.m, fsck.key, take_todo, n, NULL), 0);
	assert_int_equal(n[LEAT_VOLUME_TODO_NOTHING], 150);
}

static uint64_t moves(void)
{
	struct leat_volume_work w = { .size = sizeof(w) };

	if (leat_volume_pending(fsck.m, fsck.key, NULL, NULL, &w))
		fail_msg("%s", leat_error(fsck.m));
	assert_true(!w.moving && !w.deposed && w.lifetime_s == STRIPE_LIFETIME_S);
	return w.moves;
}

/* What makes a file be missed by one that reads directories. */
static void counts_moves(void **state)
{
	uint64_t before, now;

	(void)state;
	before = moves();
	fsck_write_file("/a");
	fsck_write_file("/b");
	assert_int_equal(leat_unlink(fsck.m, "/b"), 0);
	assert_true(moves() == before);
	assert_int_equal(leat_rename(fsck.m, "/a", "/b"), 0);
	now = moves();
	assert_true(now != before);
	assert_int_equal(leat_link(fsck.m, "/b", "/c"), 0);
	before = moves();
	assert_true(now != before);
	volume_rig_end_manager();
	volume_rig_start_manager();
	assert_true(moves() != before);
}

/* ---- the command ---- */

static void refused(void **state)
{
	char text[200];

	(void)state;
	(void)snprintf(text, sizeof(text), "volume = %016llx\nkey = ff112233445566778899aabbccddeeff\n", (unsigned long long)KEY_ID);
	tmp_dir_write(&volume_rig.dir, "other", text);
	assert_int_equal(chmod(tmp_dir_path(&volume_rig.dir, "other"), 0600), 0);
	(void)snprintf(text, sizeof(text), "--key %.150s/other", volume_rig.dir.path);
	fsck_run(FSCK_INCOMPLETE, text);
	fsck_says("VOLUME_ERR_ACCES");
	fsck_run(FSCK_USAGE, "local:///another");
	fsck_says("usage");
	fsck_write_file("/a");
	strcat(volume_rig.url, "/a");
	fsck_run(FSCK_INCOMPLETE, "");
	fsck_says("name the volume");
}

/* ---- in use ---- */

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
		assert_int_equal(leat_ftruncate(f, FSCK_BYTES), 0);
		assert_int_equal(leat_pwrite(f, fsck.data, FSCK_BYTES, 0), FSCK_BYTES);
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
		assert_int_equal(leat_mkdir(fsck.m, (const char *[]){ "/d0", "/d1", "/d2" }[i], 0755), 0);
	atomic_store(&use.stop, false);
	assert_int_equal(pthread_create(&use.worker, NULL, work, NULL), 0);
	assert_int_equal(pthread_create(&use.ager, NULL, age, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		int rc = fsck_try("");

		if (rc != FSCK_CLEAN && rc != FSCK_INCOMPLETE) /* names moved */
			fail_msg("%d: %s", rc, fsck.out);
		fsck_says(" 0 faults");
	}
	atomic_store(&use.stop, true);
	pthread_join(use.worker, NULL);
	pthread_join(use.ager, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(clean, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(layouts, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(unreadable_files, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(too_long, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(cuts, fsck_setup_away, fsck_teardown),
		cmocka_unit_test_setup_teardown(other_maps, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(epochs, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(damaged_records, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(removed_objects, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(deposed, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(damaged_intents, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(many_intents, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(counts_moves, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(refused, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(in_use, fsck_setup, fsck_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
