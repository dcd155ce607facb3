/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_resign.c - leat volume fsck --resign: layouts of files that were restored, or signed with an old key
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "fsck_parts.h"
#include "volume_rig.h"

#define KEY_ID UINT64_C(0x1122334455667788)

static void run_resign(int status, const char *options)
{
	char text[100];

	(void)snprintf(text, sizeof(text), "--resign %s", options);
	(void)snprintf(fsck.dir, sizeof(fsck.dir), "%s/m", volume_rig.dir.path);
	fsck_run(status, text);
	*fsck.dir = '\0';
}

/* As a restore from a backup: another inode, with the same attribute. */
static void copy_file_to(const char *from, const char *to)
{
	char path[300];
	uint8_t bytes[2000];
	struct stat st;
	ssize_t n;
	int fd;

	strcpy(path, fsck_file_path(from));
	assert_int_equal(stat(path, &st), 0);
	n = getxattr(path, fsck_attribute_of(path), bytes, sizeof(bytes));
	assert_true(n > 0);
	fd = open(fsck_file_path(to), O_WRONLY | O_CREAT | O_EXCL, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fsetxattr(fd, fsck_attribute_of(path), bytes, (size_t)n, 0), 0);
	assert_int_equal(ftruncate(fd, st.st_size), 0);
	close(fd);
}

static void restore_file(const char *name)
{
	char temp[300];

	copy_file_to(name, "restored");
	strcpy(temp, fsck_file_path("restored"));
	assert_int_equal(rename(temp, fsck_file_path(name)), 0);
}

static void check_data(const char *name)
{
	static uint8_t mem[FSCK_BYTES];
	struct leat_file *f = fsck_open(name, O_RDONLY);

	assert_int_equal(leat_pread(f, mem, FSCK_BYTES, 0), FSCK_BYTES);
	assert_memory_equal(mem, fsck.data, FSCK_BYTES);
	assert_int_equal(leat_close(f), 0);
}

static void resigns(void **state)
{
	uint64_t before;

	(void)state;
	fsck_make_files();
	run_resign(FSCK_INCOMPLETE, ""); /* the manager runs */
	fsck_says("a leatd manages it");
	fsck_end_manager();
	run_resign(FSCK_CLEAN, "--repair");
	fsck_says("0 layouts are not valid with the first key, 0 signed again\n");
	restore_file("d/a");
	copy_file_to("c", "copy"); /* c has two names, and its layout is valid */
	copy_file_to("d/e/b", "twin");
	restore_file("d/e/b"); /* now neither is valid */
	assert_int_equal(setxattr(fsck_file_path("sparse"), fsck_attribute_of(fsck_file_path("")), "damage", 6, 0), 0);
	assert_int_equal(removexattr(fsck_file_path("empty"), fsck_attribute_of(fsck_file_path(""))), 0);
	before = fsck_digest();
	run_resign(FSCK_FAULTS, "");
	fsck_says("files/d/a: its layout is signed for another file\n");
	fsck_says("files/copy: its layout is signed for another file, and another file has the same object; not signed\n");
	fsck_says("files/twin: its layout is signed for another file, and another");
	fsck_says("files/d/e/b: its layout is signed for another file, and another");
	fsck_says("files/sparse: its layout is damaged, or of another volume; not signed\n");
	fsck_says_not("files/c:");
	fsck_says_not("files/empty");
	fsck_says("\n5 layouts are not valid");
	assert_true(fsck_digest() == before);
	run_resign(FSCK_FAULTS, "--repair");
	fsck_says("files/d/a: its layout is signed for another file; signed again\n");
	fsck_says(", 1 signed again\n");
	assert_int_equal(unlink(fsck_file_path("twin")), 0);
	assert_int_equal(unlink(fsck_file_path("copy")), 0);
	assert_int_equal(unlink(fsck_file_path("sparse")), 0);
	run_resign(FSCK_REPAIRED, "--repair");
	fsck_says("files/d/e/b: its layout is signed for another file; signed again\n");
	run_resign(FSCK_CLEAN, "");
	fsck_start_manager();
	check_data("/d/a");
	check_data("/d/e/b");
	fsck_run(FSCK_CLEAN, "");
}

/* A file that cannot be read may have the object of any copy. */
static void resigns_no_copies(void **state)
{
	struct stat st;

	(void)state;
	fsck_make_files();
	fsck_end_manager();
	copy_file_to("c", "copy");
	assert_int_equal(stat(fsck_file_path("c"), &st), 0);
	atomic_store(&fsck.unread_ino, st.st_ino);
	run_resign(FSCK_FAULTS, "--repair");
	fsck_says("files/copy: its layout is signed for another file, perhaps for one that could not be read; not signed\n");
	fsck_says("files/c: Input/output error\n");
	fsck_says(", 0 signed again");
	atomic_store(&fsck.unread_ino, 0);
	run_resign(FSCK_FAULTS, "--repair");
	fsck_says("files/copy: its layout is signed for another file, and another file has the same object; not signed\n");
	fsck_start_manager();
}

/* With the layouts signed again, the old key can be removed everywhere. */
static void removes_old_keys(void **state)
{
	char new_key[200];

	(void)state;
	fsck_write_file("/a");
	fsck_end_manager();
	(void)snprintf(new_key, sizeof(new_key), "volume = %016llx\nkey = ff112233445566778899aabbccddeeff\n", (unsigned long long)KEY_ID);
	strcat(new_key, "key = 00112233445566778899aabbccddeeff\n");
	tmp_dir_write(&volume_rig.dir, "key", new_key);
	run_resign(FSCK_FAULTS, "");
	fsck_says("files/a: its layout is signed with an old key\n");
	run_resign(FSCK_REPAIRED, "--repair");
	*strstr(new_key, "key = 00") = '\0';
	tmp_dir_write(&volume_rig.dir, "key", new_key);
	for (unsigned i = 0; i < 4; i++)
		fsck_restart_server(i);
	fsck_start_manager();
	check_data("/a");
	tmp_dir_mkdir(&volume_rig.dir, "other");
	(void)snprintf(fsck.dir, sizeof(fsck.dir), "%s/other", volume_rig.dir.path);
	fsck_run(FSCK_INCOMPLETE, "--resign");
	fsck_says("it is not the directory of a manager");
	*fsck.dir = '\0';
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(resigns, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(resigns_no_copies, fsck_setup, fsck_teardown),
		cmocka_unit_test_setup_teardown(removes_old_keys, fsck_setup, fsck_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
