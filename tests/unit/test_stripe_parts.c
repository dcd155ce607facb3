/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_stripe_parts.c - handles, commands, key files, records, and the directory of stripes
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "server/fs/small_file.h"
#include "server/stripes/stripe_dir.h"
#include "tests/lib/tmp_dir.h"
#include "xdr/stripe_handle.h"
#include "xdr/stripe_key.h"
#include "xdr/stripe_record.h"

#define VOLUME UINT64_C(0xa1b2c3d4e5f60718)

static const struct stripe_keys one = { .v = { { 1, 2 } }, .n = 1 }, other = { .v = { { 3, 4 } }, .n = 1 },
				both = { .v = { { 3, 4 }, { 1, 2 } }, .n = 2 };
static struct tmp_dir dir;
static char why[512];

/* ---- handles and commands ---- */

static struct stripe_handle handle(void)
{
	struct stripe_handle h = { .volume = VOLUME, .server = 0x0a0b0c0d, .name.stripe = 0x01020304, .rights = STRIPE_MAY_WRITE,
				   .epoch = UINT64_C(0x1122334455667788), .expiry = 1800000000, .term = UINT64_C(0x99aabbccddeeff00) };

	for (unsigned i = 0; i < STRIPE_OBJECT_BYTES; i++)
		h.name.object[i] = (char)(0xf0 + i);
	return h;
}

static void handles(void **state)
{
	struct stripe_handle h = handle(), got = { .volume = 0 };
	char bytes[STRIPE_HANDLE_BYTES];

	(void)state;
	stripe_handle_make(&one, &h, bytes);
	assert_int_equal(stripe_volume_of(bytes), VOLUME);
	assert_int_equal(stripe_handle_read(&one, bytes, &got), 0);
	assert_int_equal(got.volume, h.volume);
	assert_int_equal(got.server, h.server);
	assert_memory_equal(&got.name, &h.name, sizeof(got.name));
	assert_int_equal(got.rights, h.rights);
	assert_int_equal(got.epoch, h.epoch);
	assert_int_equal(got.expiry, h.expiry);
	assert_int_equal(got.term, h.term);
	assert_int_equal(stripe_handle_read(&both, bytes, &got), 0); /* the old key */
	assert_int_equal(stripe_handle_read(&other, bytes, &got), -EBADF);
	for (unsigned i = 0; i < 8 * STRIPE_HANDLE_BYTES; i++) {
		bytes[i / 8] ^= (char)(1 << i % 8);
		assert_int_equal(stripe_handle_read(&both, bytes, &got), -EBADF);
		bytes[i / 8] ^= (char)(1 << i % 8);
	}
	assert_int_equal(stripe_handle_read(&both, bytes, &got), 0);
}

static void refuse_order(const char bytes[STRIPE_COMMAND_BYTES], const struct stripe_order *o)
{
	struct stripe_command got;

	assert_int_equal(stripe_command_read(&both, bytes, o, &got), -EBADF);
}

static void commands(void **state)
{
	const struct stripe_command c = { .volume = VOLUME, .server = 0x0a0b0c0d, .term = 9, .expiry = 1800000000, .number = 77 };
	const struct stripe_order o = { .proc = STRIPEPROC_FENCE, .name = handle().name, .value = 3, .flag = true, .bytes = 99 };
	struct stripe_order changed = o;
	struct stripe_command got = { .volume = 0 };
	char bytes[STRIPE_COMMAND_BYTES];

	(void)state;
	stripe_command_make(&one, &c, &o, bytes);
	assert_int_equal(stripe_command_read(&both, bytes, &o, &got), 0);
	assert_true(got.volume == c.volume && got.server == c.server && got.term == c.term && got.expiry == c.expiry && got.number == c.number);
	for (unsigned i = 0; i < 8 * STRIPE_COMMAND_BYTES; i++) {
		bytes[i / 8] ^= (char)(1 << i % 8);
		refuse_order(bytes, &o);
		bytes[i / 8] ^= (char)(1 << i % 8);
	}
	/* it is good for nothing else */
	changed.proc = STRIPEPROC_REMOVE;
	refuse_order(bytes, &changed);
	changed = o;
	changed.name.object[15] ^= 1;
	refuse_order(bytes, &changed);
	changed = o;
	changed.name.stripe++;
	refuse_order(bytes, &changed);
	changed = o;
	changed.value++;
	refuse_order(bytes, &changed);
	changed = o;
	changed.flag = false;
	refuse_order(bytes, &changed);
	changed = o;
	changed.bytes++;
	refuse_order(bytes, &changed);
}

/* A handle is no command, whatever its bytes are: what is signed begins differently. */
static void kinds(void **state)
{
	struct stripe_handle h = handle(), got;
	const struct stripe_order none = { .proc = 0 };
	struct stripe_command command;
	char bytes[STRIPE_HANDLE_BYTES], shorter[STRIPE_COMMAND_BYTES];

	(void)state;
	stripe_handle_make(&one, &h, bytes);
	memcpy(shorter, bytes, sizeof(shorter));
	memcpy(shorter + 36, bytes + 52, 8);
	assert_int_equal(stripe_command_read(&one, shorter, &none, &command), -EBADF);
	stripe_command_make(&one, &(struct stripe_command){ .volume = VOLUME }, &none, shorter);
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, shorter, 36);
	memcpy(bytes + 52, shorter + 36, 8);
	assert_int_equal(stripe_handle_read(&one, bytes, &got), -EBADF);
}

static void expiry(void **state)
{
	(void)state;
	assert_false(stripe_expired(1000, 1000));
	assert_false(stripe_expired(1000, 1030));
	assert_true(stripe_expired(1000, 1031));
	assert_false(stripe_expired(0, 0));
	assert_false(stripe_expired(0, 29));
	assert_true(stripe_expired(0, 31));
	assert_false(stripe_expired(UINT64_MAX, UINT64_MAX));
}

/* ---- records ---- */

static void records(void **state)
{
	struct stripe_record r = { .epoch = 5, .cut = 1234, .until = 1800000000, .removed = true }, got;
	uint8_t bytes[STRIPE_RECORD_BYTES + 1] = { 0 };

	(void)state;
	stripe_record_encode(&r, bytes);
	assert_int_equal(stripe_record_decode(bytes, STRIPE_RECORD_BYTES, &got), 0);
	assert_true(got.epoch == 5 && got.cut == 1234 && got.until == r.until && got.removed);
	for (unsigned n = 0; n <= STRIPE_RECORD_BYTES + 1; n++) {
		if (n != STRIPE_RECORD_BYTES)
			assert_int_equal(stripe_record_decode(bytes, n, &got), -EBADMSG);
	}
	bytes[7] ^= 1;
	assert_int_equal(stripe_record_decode(bytes, STRIPE_RECORD_BYTES, &got), -EBADMSG);
	bytes[7] ^= 1;
	bytes[35] = 2;
	assert_int_equal(stripe_record_decode(bytes, STRIPE_RECORD_BYTES, &got), -EBADMSG);
	bytes[35] = 0;
	bytes[16] = 0x80;
	assert_int_equal(stripe_record_decode(bytes, STRIPE_RECORD_BYTES, &got), -EBADMSG);
	memset(bytes + 16, 0xff, 8);
	assert_int_equal(stripe_record_decode(bytes, STRIPE_RECORD_BYTES, &got), 0);
	assert_true(got.cut == STRIPE_NO_CUT && !got.removed);
	memset(bytes + 8, 0, 8);
	assert_int_equal(stripe_record_decode(bytes, STRIPE_RECORD_BYTES, &got), -EBADMSG);
}

/* ---- key files ---- */

static int load(const char *text, unsigned mode, uint64_t *volume, struct stripe_keys *keys)
{
	(void)unlink(tmp_dir_path(&dir, "key"));
	tmp_dir_write(&dir, "key", text);
	assert_int_equal(chmod(tmp_dir_path(&dir, "key"), mode), 0);
	why[0] = '\0';
	return stripe_key_load(tmp_dir_path(&dir, "key"), volume, keys, why, sizeof(why));
}

#define KEY_1 "key = 000102030405060708090a0b0c0d0e0f\n"
#define KEY_2 "key=ffeeddccbbaa99887766554433221100\n"
#define ID "volume = a1b2c3d4e5f60718\n"

static void key_files(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "", "volume" },
		{ ID, "key" },
		{ KEY_1, "volume" },
		{ ID ID KEY_1, "line 2" },
		{ ID KEY_1 KEY_2 KEY_1, "more than two" },
		{ "volume = 0000000000000000\n" KEY_1, "not all 0" },
		{ "volume = a1b2c3d4e5f6071\n" KEY_1, "16" },
		{ ID "key = 000102030405060708090a0b0c0d0e0\n", "32" },
		{ ID "key = 000102030405060708090a0b0c0d0e0g\n", "32" },
		{ ID KEY_1 "keys = 1\n", "line 3" },
		{ ID KEY_1 "x\n", "line 3" },
	};
	struct stripe_keys keys = { .n = 9 };
	uint64_t volume = 1;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(load(wrong[i].text, 0600, &volume, &keys), -EINVAL);
		assert_non_null(strstr(why, wrong[i].why));
	}
	assert_int_equal(volume, 1);
	assert_int_equal(keys.n, 9);
	assert_int_equal(load(ID KEY_1, 0640, &volume, &keys), -EKEYREJECTED);
	assert_non_null(strstr(why, "mode 0600"));
	assert_int_equal(load(ID KEY_1, 0604, &volume, &keys), -EKEYREJECTED);
	assert_int_equal(load("# mine\n\n " ID KEY_1, 0600, &volume, &keys), 0);
	assert_int_equal(volume, VOLUME);
	assert_int_equal(keys.n, 1);
	assert_true(keys.v[0].k0 == UINT64_C(0x0001020304050607) && keys.v[0].k1 == UINT64_C(0x08090a0b0c0d0e0f));
	assert_int_equal(load(KEY_2 KEY_1 "volume=a1b2c3d4e5f60718", 0400, &volume, &keys), 0);
	assert_int_equal(keys.n, 2);
	assert_int_equal(keys.v[0].k0, UINT64_C(0xffeeddccbbaa9988));
	/* neither a link nor anything but a file */
	assert_int_equal(symlink("key", tmp_dir_path(&dir, "link")), 0);
	assert_int_equal(stripe_key_load(tmp_dir_path(&dir, "link"), &volume, &keys, why, sizeof(why)), -ELOOP);
	assert_int_equal(stripe_key_load(dir.path, &volume, &keys, why, sizeof(why)), -EINVAL);
	assert_int_equal(stripe_key_load(tmp_dir_path(&dir, "none"), &volume, &keys, why, sizeof(why)), -ENOENT);
}

/* ---- the directory ---- */

static void names(void **state)
{
	static const char *const wrong[] = {
		"f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff.", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff.01",
		"f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff.4294967296", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff.1x",
		"f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff.-1", "F0f1f2f3f4f5f6f7f8f9fafbfcfdfeff.1", "f0.1", "", ".",
		"f0f1f2f3f4f5f6f7f8f9fafbfcfdfef.1", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff.99999999999999999999999",
	};
	stripe_name name = handle().name, got;
	char path[STRIPE_PATH_BYTES];

	(void)state;
	name.stripe = 17;
	stripe_dir_path(&name, path);
	assert_string_equal(path, "f0/f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff.17");
	assert_int_equal(stripe_dir_name(0xf0, path + 3, &got), 0);
	assert_memory_equal(&got, &name, sizeof(got));
	assert_int_equal(stripe_dir_name(0xf1, path + 3, &got), -EINVAL);
	name.stripe = UINT32_MAX;
	stripe_dir_path(&name, path);
	assert_int_equal(stripe_dir_name(0xf0, path + 3, &got), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(stripe_dir_name(0xf0, wrong[i], &got), -EINVAL);
}

static int open_dir(uint64_t volume, uint32_t server, struct stripe_dir *ret)
{
	why[0] = '\0';
	return stripe_dir_open(tmp_dir_path(&dir, "s"), volume, server, ret, why, sizeof(why));
}

static void directory(void **state)
{
	struct stripe_dir d, again;
	uint64_t term = 9;

	(void)state;
	tmp_dir_mkdir(&dir, "s");
	tmp_dir_write(&dir, "s/mine", "1");
	assert_int_equal(open_dir(VOLUME, 7, &d), -EINVAL);
	assert_non_null(strstr(why, "not empty: mine"));
	assert_int_equal(unlink(tmp_dir_path(&dir, "s/mine")), 0);
	assert_int_equal(open_dir(VOLUME, 7, &d), 0);
	assert_int_equal(open_dir(VOLUME, 7, &again), -EBUSY);
	assert_non_null(strstr(why, "another leatd"));
	assert_int_equal(term_load(d.fd, &term), 0);
	assert_int_equal(term, 0);
	assert_int_equal(term_save(d.fd, UINT64_MAX), 0);
	assert_int_equal(term_load(d.fd, &term), 0);
	assert_int_equal(term, UINT64_MAX);
	tmp_dir_write(&dir, "s/term", "12x\n");
	assert_int_equal(term_load(d.fd, &term), -EBADMSG);
	stripe_dir_close(&d);
	assert_int_equal(open_dir(VOLUME, 8, &d), -EINVAL);
	assert_non_null(strstr(why, "server 7"));
	assert_int_equal(open_dir(VOLUME + 1, 7, &d), -EINVAL);
	assert_non_null(strstr(why, "a1b2c3d4e5f60718"));
	assert_int_equal(open_dir(VOLUME, 7, &d), 0);
	stripe_dir_close(&d);
	tmp_dir_write(&dir, "s/leat-stripes", "leat-stripes 2\n");
	assert_int_equal(open_dir(VOLUME, 7, &d), -EINVAL);
	assert_non_null(strstr(why, "version"));
}

/* In a process of another user, which may not set trusted attributes. Return: what stripe_dir_open() did */
static int open_as_other(const char *path, const char **ret_record)
{
	struct stripe_dir d;
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		int err = setresuid(65534, 65534, 65534) ? -ENOSYS
							 : stripe_dir_open(path, VOLUME, 7, &d, why, sizeof(why));

		_exit(err ? -err : strcmp(d.record, "user.leat") ? 200 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	*ret_record = WEXITSTATUS(status) ? NULL : "user.leat";
	return -WEXITSTATUS(status);
}

/* The kind of record stays as the directory has it. */
static void kinds_of_records(void **state)
{
	const char *record, *of_root = tmp_dir_path(&dir, "root"), *of_other = tmp_dir_path(&dir, "other");
	struct stripe_dir d;
	int err;

	(void)state;
	if (geteuid()) {
		print_message("not run by root\n");
		skip();
	}
	tmp_dir_mkdir(&dir, "root");
	tmp_dir_mkdir(&dir, "other");
	assert_int_equal(chown(of_other, 65534, 65534), 0);
	assert_int_equal(stripe_dir_open(of_root, VOLUME, 7, &d, why, sizeof(why)), 0);
	record = d.record;
	stripe_dir_close(&d);
	if (strcmp(record, "trusted.leat")) {
		print_message("root may not set trusted attributes here\n");
		skip();
	}
	err = open_as_other(of_other, &record);
	if (err == -EOPNOTSUPP) {
		print_message("no user attributes below $TMPDIR\n");
		skip();
	}
	assert_int_equal(err, 0);
	assert_int_equal(stripe_dir_open(of_other, VOLUME, 7, &d, why, sizeof(why)), 0);
	assert_string_equal(d.record, "user.leat");
	stripe_dir_close(&d);
	/* records of root would be invisible to another user */
	assert_int_equal(chown(of_root, 65534, 65534), 0);
	assert_int_equal(chown(tmp_dir_path(&dir, "root/objects"), 65534, 65534), 0);
	assert_int_equal(chown(tmp_dir_path(&dir, "root/leat-stripes"), 65534, 65534), 0);
	assert_int_equal(open_as_other(of_root, &record), -EPERM);
}

static int make(void **state)
{
	(void)state;
	tmp_dir_create(&dir);
	return 0;
}

static int clean(void **state)
{
	(void)state;
	tmp_dir_destroy(&dir);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(handles),
		cmocka_unit_test(commands),
		cmocka_unit_test(kinds),
		cmocka_unit_test(expiry),
		cmocka_unit_test(records),
		cmocka_unit_test(key_files),
		cmocka_unit_test(names),
		cmocka_unit_test(directory),
		cmocka_unit_test(kinds_of_records),
	};

	return cmocka_run_group_tests(tests, make, clean);
}
