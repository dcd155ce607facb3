/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_orphans.c - leat volume fsck and objects that no file has: found, set aside by --repair, and not confused with others
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "fsck_parts.h"
#include "volume_rig.h"

static void check_text(const char *name, const char *want)
{
	char got[100] = "";
	int fd = open(tmp_dir_path(&volume_rig.dir, name), O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	close(fd);
	assert_string_equal(got, want);
}

static void orphans(void **state)
{
	const char *path = tmp_dir_path(&volume_rig.dir, "s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3");
	char old[300];
	uint64_t before;

	(void)state;
	strcpy(old, path);
	fsck_make_files();
	fsck_make_orphan("cd0102030405060708090a0b0c0d0e0f.0", "young");
	fsck_make_orphan("ab0102030405060708090a0b0c0d0e0f.3", "old");
	fsck_run(FSCK_CLEAN, "");
	fsck_make_old(old);
	before = fsck_digest();
	fsck_run(FSCK_FAULTS, "");
	fsck_says("server 1: objects/ab/ab0102030405060708090a0b0c0d0e0f.3: no file has this object of 3 bytes\n");
	fsck_says_not("objects/cd/");
	fsck_says(": 1 fault\n");
	assert_true(fsck_digest() == before);
}

static void set_aside(void **state)
{
	char old[300];

	(void)state;
	strcpy(old, tmp_dir_path(&volume_rig.dir, "s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3"));
	fsck_make_files();
	fsck_make_orphan("cd0102030405060708090a0b0c0d0e0f.0", "young");
	fsck_make_orphan("ab0102030405060708090a0b0c0d0e0f.3", "old");
	fsck_make_old(old);
	/* another file has its place */
	tmp_dir_mkdir(&volume_rig.dir, "s1/lost+found");
	tmp_dir_write(&volume_rig.dir, "s1/lost+found/ab0102030405060708090a0b0c0d0e0f.3", "other");
	log_state.level = LOG_LEVEL_ERR + 1; /* the server says it */
	fsck_run(FSCK_FAULTS, "--repair");
	fsck_says("no file has this object of 3 bytes; not repaired: ");
	check_text("s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3", "old");
	check_text("s1/lost+found/ab0102030405060708090a0b0c0d0e0f.3", "other");
	assert_int_equal(unlink(tmp_dir_path(&volume_rig.dir, "s1/lost+found/ab0102030405060708090a0b0c0d0e0f.3")), 0);
	fsck_run(FSCK_REPAIRED, "--repair");
	fsck_says("no file has this object of 3 bytes; repaired\n");
	fsck_says(": 1 fault, 1 repaired\n");
	check_text("s1/lost+found/ab0102030405060708090a0b0c0d0e0f.3", "old");
	check_text("s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3", "");
	check_text("s1/objects/cd/cd0102030405060708090a0b0c0d0e0f.0", "young");
	fsck_run(FSCK_CLEAN, "--repair");
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
		fsck_make_orphan("ab0102030405060708090a0b0c0d0e0f.3", "old");
		fsck_make_old(tmp_dir_path(&volume_rig.dir, "s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3"));
		if (i)
			fsck.after_stat = write_orphan;
		else
			fsck.before_stat = write_orphan;
		fsck_run(i ? FSCK_FAULTS : FSCK_CLEAN, "--repair");
		if (i)
			fsck_says("; not repaired: ");
		check_text("s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3", "changed");
	}
}

/* The removal of a file is pending: its objects are no orphans. */
static void pending_removal(void **state)
{
	char path[300];
	unsigned server;

	(void)state;
	fsck_write_file("/a");
	strcpy(path, fsck_object_path("/a", 0, &server));
	volume_rig_end_server(server);
	assert_int_equal(leat_unlink(fsck.m, "/a"), 0);
	fsck_make_old(path);
	fsck_run(FSCK_INCOMPLETE, "");
	fsck_says(": not checked: ");
	volume_rig_start_server(server);
	fsck_run(FSCK_CLEAN, "");
	fsck_says("pending: 0 truncations, 1 removal;");
}

static unsigned char orphan_name[16] = { 0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

static void remove_orphan(void)
{
	fsck_remove_object(0, orphan_name, 3, 1);
}

static void removed_meanwhile(void **state)
{
	(void)state;
	fsck_make_orphan("ab0102030405060708090a0b0c0d0e0f.3", "old");
	fsck_make_old(tmp_dir_path(&volume_rig.dir, "s1/objects/ab/ab0102030405060708090a0b0c0d0e0f.3"));
	fsck.before_stat = remove_orphan;
	fsck_run(FSCK_CLEAN, "");
	assert_null(fsck.before_stat);
	fsck_says("0 files in 1 directory, 1 object: 0 faults");
}

/* A file moves from a directory that was not read yet to one that was. */
static void move_file(const char *path)
{
	const char *from = path[1] == 'x' ? "/y/f" : "/x/f", *to = path[1] == 'x' ? "/x/g" : "/y/g";

	assert_int_equal(leat_rename(fsck.m, from, to), 0);
}

static void moved_meanwhile(void **state)
{
	static const char *const names[] = { "/x/f", "/y/f" };
	unsigned server;

	(void)state;
	assert_int_equal(leat_mkdir(fsck.m, "/x", 0755), 0);
	assert_int_equal(leat_mkdir(fsck.m, "/y", 0755), 0);
	for (unsigned i = 0; i < 2; i++) {
		fsck_write_file(names[i]);
		for (uint32_t k = 0; k < 4; k++)
			fsck_make_old(fsck_object_path(names[i], k, &server));
	}
	fsck.before_layout = move_file;
	fsck_run(FSCK_CLEAN, "");
	assert_null(fsck.before_layout);
	fsck_says("1 file in 3 directories, 8 objects: 0 faults");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(orphans, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(set_aside, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(used_orphans, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(pending_removal, fsck_setup_away, fsck_teardown),
		cmocka_unit_test_setup_teardown(removed_meanwhile, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(moved_meanwhile, fsck_setup, fsck_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
