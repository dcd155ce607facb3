/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_create.c - what a new volume consists of, and that a failure leaves nothing behind; maps in files
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "leat_volume.h"
#include "tests/lib/tmp_dir.h"
#include "xdr/stripe_key.h"
#include "xdr/volume_map.h"

static struct tmp_dir dir;
static char why[512];
static const char *const urls[] = { "local:///run/s1", "tcp://10.0.0.2", "leat://host:99" };

/* ---- operations that fail ---- */

static unsigned countdown; /* the operation that fails; 0: none */

static bool fails(void)
{
	errno = EDQUOT;
	return countdown && !--countdown;
}

int __real_mkdirat(int fd, const char *name, mode_t mode);
int __wrap_mkdirat(int fd, const char *name, mode_t mode);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
ssize_t __real_write(int fd, const void *from, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n);
FILE *__real_open_memstream(char **ret, size_t *n);
FILE *__wrap_open_memstream(char **ret, size_t *n);

int __wrap_mkdirat(int fd, const char *name, mode_t mode)
{
	return fails() ? -1 : __real_mkdirat(fd, name, mode);
}

int __wrap_fsync(int fd)
{
	return fails() ? -1 : __real_fsync(fd);
}

ssize_t __wrap_write(int fd, const void *from, size_t n)
{
	return fails() ? -1 : __real_write(fd, from, n);
}

FILE *__wrap_open_memstream(char **ret, size_t *n)
{
	return fails() ? NULL : __real_open_memstream(ret, n);
}

/* What another user does to a directory that was just made; NULL: nothing */
static void (*after_mkdir)(const char *path);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);

int __wrap_mkdir(const char *path, mode_t mode)
{
	int rc = __real_mkdir(path, mode);

	if (!rc && after_mkdir)
		after_mkdir(path);
	return rc;
}

static unsigned memory_countdown; /* the allocation that fails; 0: none */

static bool has_memory(void)
{
	return !memory_countdown || --memory_countdown;
}

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__wrap_calloc(size_t n, size_t m);
char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);

void *__wrap_malloc(size_t n)
{
	return has_memory() ? __real_malloc(n) : NULL;
}

void *__wrap_calloc(size_t n, size_t m)
{
	return has_memory() ? __real_calloc(n, m) : NULL;
}

char *__wrap_strdup(const char *s)
{
	return has_memory() ? __real_strdup(s) : NULL;
}

/* ---- parts ---- */

static struct leat_volume_plan a_plan(void)
{
	return (struct leat_volume_plan){ .size = sizeof(struct leat_volume_plan), .name = "vol", .servers = urls,
					  .nservers = ARRAY_SIZE(urls), .clients = "10.0.0.0/8" };
}

static int create(const struct leat_volume_plan *p, uint64_t *ret)
{
	why[0] = '\0';
	return leat_volume_create(tmp_dir_path(&dir, "v"), p, ret, why, sizeof(why));
}

static bool is_there(const char *name, mode_t mode)
{
	struct stat st;

	return !lstat(tmp_dir_path(&dir, name), &st) && (st.st_mode & 07777) == mode;
}

static const char *read_file(const char *name)
{
	static char text[4096];
	FILE *f = fopen(tmp_dir_path(&dir, name), "re");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

static void has(const char *name, const char *line)
{
	if (!strstr(read_file(name), line))
		fail_msg("no '%s' in %s:\n%s", line, name, read_file(name));
}

static void clear(void)
{
	char command[300];

	(void)snprintf(command, sizeof(command), "rm -rf %s", tmp_dir_path(&dir, "v"));
	assert_int_equal(system(command), 0);
}

/* ---- tests ---- */

static void makes(void **state)
{
	struct leat_volume_plan p = a_plan();
	struct stripe_keys keys;
	struct volume_map map;
	uint64_t volume = 0, id = 0;
	mode_t mask = umask(027);

	(void)state;
	p.stripe = 65536;
	p.width = 2;
	if (create(&p, &volume))
		fail_msg("%s", why);
	umask(mask);
	assert_true(is_there("v/key", 0600) && is_there("v/map", 0644) && is_there("v/names", 0755) &&
		    is_there("v/stripes-1", 0700) && is_there("v/server-3.conf", 0644));
	assert_int_equal(access(tmp_dir_path(&dir, "v/stripes-2"), F_OK), -1);
	assert_int_equal(stripe_key_load(tmp_dir_path(&dir, "v/key"), &id, &keys, why, sizeof(why)), 0);
	assert_true(volume && id == volume && keys.n == 1 && keys.v[0].k0 != keys.v[0].k1);
	assert_int_equal(volume_map_parse(read_file("v/map"), strlen(read_file("v/map")), &map, why, sizeof(why)), 0);
	assert_true(map.volume == volume && map.version == 1 && map.n == 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(map.servers[i].id, i + 1);
		assert_string_equal(map.servers[i].url, urls[i]);
	}
	volume_map_fini(&map);
	has("v/manager.conf", "\n[volume vol]\n");
	has("v/manager.conf", "\nstripe = 65536\nwidth = 2\nclients = 10.0.0.0/8\n");
	has("v/server-1.conf", "\nlisten = local:///run/s1\n");
	has("v/server-3.conf", "\nlisten = tcp://host:99\n");
	has("v/server-3.conf", "\nid = 3\n");
	/* what exists is left as it is */
	assert_int_equal(create(&p, NULL), -EEXIST);
	assert_int_equal(stripe_key_load(tmp_dir_path(&dir, "v/key"), &id, &keys, why, sizeof(why)), 0);
	assert_true(id == volume);
	clear();
}

static void refuse(const struct leat_volume_plan *p, const char *reason)
{
	assert_int_equal(create(p, NULL), -EINVAL);
	if (!strstr(why, reason))
		fail_msg("'%s' instead of '%s'", why, reason);
	assert_int_equal(access(tmp_dir_path(&dir, "v"), F_OK), -1);
}

static void refuses(void **state)
{
	static const char *const twice[] = { "tcp://a", "tcp://a" }, *const lines[] = { "tcp://a\nstate = out" },
			  *const none[] = { "http://a" };
	struct leat_volume_plan p = a_plan();

	(void)state;
	p.name = "a/b";
	refuse(&p, "no slash");
	p.name = "a]";
	refuse(&p, "no slash");
	p = a_plan();
	p.nservers = 0;
	refuse(&p, "1 to 256 servers");
	p.nservers = 257;
	refuse(&p, "1 to 256 servers");
	p = a_plan();
	p.width = 4;
	refuse(&p, "width 4: there are 3 servers");
	p = a_plan();
	p.stripe = 3 << 16;
	refuse(&p, "power of two");
	p = a_plan();
	p.clients = NULL;
	refuse(&p, "which clients");
	p.clients = "a\n[export /]";
	refuse(&p, "not a list");
	p = a_plan();
	p.listen = "http://a";
	refuse(&p, "listen");
	p = a_plan();
	p.servers = twice;
	p.nservers = 2;
	refuse(&p, "two servers have the URL tcp://a");
	p.servers = lines;
	p.nservers = 1;
	refuse(&p, "not a URL");
	p.servers = none;
	refuse(&p, "servers: ");
	p = a_plan();
	p.servers = urls;
	p.nservers = 1; /* local */
	p.clients = NULL;
	assert_int_equal(create(&p, NULL), 0);
	clear();
}

static void leaves_nothing(void **state)
{
	struct leat_volume_plan p = a_plan();
	unsigned n = 0;
	int err;

	(void)state;
	do {
		countdown = ++n;
		err = create(&p, NULL);
		if (countdown)
			break;
		assert_true(err == -EDQUOT || err == -ENOMEM);
		assert_int_equal(access(tmp_dir_path(&dir, "v"), F_OK), -1);
	} while (n < 1000);
	assert_int_equal(err, 0);
	countdown = 0;
	assert_true(n > 15);
	clear();
}

static void becomes_link(const char *path)
{
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink(dir.path, path), 0);
}

static void becomes_writable(const char *path)
{
	assert_int_equal(chmod(path, 0775), 0);
}

static void becomes_of_another_user(const char *path)
{
	assert_int_equal(chown(path, 65534, 65534), 0);
}

static void becomes_filled(const char *path)
{
	(void)path;
	tmp_dir_write(&dir, "v/file", "text");
}

/* The parent is a directory that others may write to: what they put in place of the new directory is not used. */
static void replaced(void **state)
{
	static void (*const others[])(const char *path) = { becomes_link, becomes_writable, becomes_filled,
							     becomes_of_another_user };
	struct leat_volume_plan p = a_plan();

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(others) - (geteuid() != 0); i++) {
		after_mkdir = others[i];
		if (!create(&p, NULL))
			fail_msg("%u: it was created", i);
		after_mkdir = NULL;
		assert_int_equal(access(tmp_dir_path(&dir, "key"), F_OK), -1);
		assert_int_equal(access(tmp_dir_path(&dir, "v/key"), F_OK), -1);
		(void)unlink(tmp_dir_path(&dir, "v"));
		clear();
	}
}

static void reads_map(void **state)
{
	static const char text[] = "volume = 0000000000000009\nversion = 3\n[server 4]\nurl = tcp://a\n"
				   "[server 2]\nurl = tcp://b\nstate = out\n";
	struct leat_volume_map *m;

	(void)state;
	tmp_dir_write(&dir, "map", text);
	assert_int_equal(leat_volume_map_read(tmp_dir_path(&dir, "map"), &m, why, sizeof(why)), 0);
	assert_true(m->volume == 9 && m->version == 3 && m->nservers == 2);
	assert_true(m->servers[0]->id == 4 && !m->servers[0]->out && m->servers[1]->id == 2 && m->servers[1]->out);
	assert_string_equal(m->servers[0]->url, "tcp://a");
	assert_string_equal(m->servers[1]->url, "tcp://b");
	leat_volume_map_free(m);
	leat_volume_map_free(NULL);
	assert_int_equal(leat_volume_map_read(tmp_dir_path(&dir, "none"), &m, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "/none: No such file"));
	assert_int_equal(leat_volume_map_read(dir.path, &m, why, sizeof(why)), -EISDIR);
	assert_int_equal(leat_volume_map_read("/dev/zero", &m, why, sizeof(why)), -EFBIG);
	tmp_dir_write(&dir, "map", "volume = 9\n");
	assert_int_equal(leat_volume_map_read(tmp_dir_path(&dir, "map"), &m, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "line 1"));
}

static int change(uint32_t server, const char *url, enum leat_volume_state state, uint32_t *ret)
{
	const struct leat_volume_change c = { .size = sizeof(c), .server = server, .url = url, .state = state };

	why[0] = '\0';
	return leat_volume_map_change(tmp_dir_path(&dir, "map"), &c, ret, why, sizeof(why));
}

static void changes_map(void **state)
{
	static const char text[] = "volume = 0000000000000009\nversion = 3\n[server 4]\nurl = tcp://a\n"
				   "[server 2]\nurl = tcp://b\n";
	struct leat_volume_map *m;
	uint32_t id = 0;

	(void)state;
	tmp_dir_write(&dir, "map", text);
	assert_int_equal(chmod(tmp_dir_path(&dir, "map"), 0640), 0);
	assert_int_equal(change(0, "tcp://c", LEAT_VOLUME_KEEP, &id), 0);
	assert_int_equal(id, 5);
	assert_int_equal(change(2, NULL, LEAT_VOLUME_OUT, &id), 0);
	assert_int_equal(id, 2);
	assert_int_equal(change(4, "tcp://d", LEAT_VOLUME_KEEP, NULL), 0);
	assert_true(is_there("map", 0640));
	assert_int_equal(leat_volume_map_read(tmp_dir_path(&dir, "map"), &m, why, sizeof(why)), 0);
	assert_true(m->volume == 9 && m->version == 6 && m->nservers == 3);
	assert_true(m->servers[0]->id == 4 && !m->servers[0]->out && m->servers[1]->out && !m->servers[2]->out);
	assert_string_equal(m->servers[0]->url, "tcp://d");
	assert_string_equal(m->servers[2]->url, "tcp://c");
	leat_volume_map_free(m);
	/* what fails changes nothing */
	assert_int_equal(change(9, NULL, LEAT_VOLUME_OUT, NULL), -ENOENT);
	assert_int_equal(change(0, NULL, LEAT_VOLUME_FULL, NULL), -EINVAL);
	assert_int_equal(change(0, "tcp://c", LEAT_VOLUME_FULL, NULL), -EINVAL);
	assert_int_equal(change(0, "tcp://e\nstate = out", LEAT_VOLUME_FULL, NULL), -EINVAL);
	countdown = 1; /* the text */
	assert_int_equal(change(2, NULL, LEAT_VOLUME_FULL, NULL), -ENOMEM);
	assert_int_equal(access(tmp_dir_path(&dir, "map.new"), F_OK), -1);
	tmp_dir_write(&dir, "map.new", "of another change");
	assert_int_equal(change(2, NULL, LEAT_VOLUME_FULL, NULL), -EEXIST);
	assert_string_equal(read_file("map.new"), "of another change");
	has("map", "version = 6\n");
	assert_int_equal(unlink(tmp_dir_path(&dir, "map.new")), 0);
	for (countdown = 2; countdown < 4; countdown++) { /* write, fsync */
		unsigned which = countdown;

		assert_int_equal(change(2, NULL, LEAT_VOLUME_FULL, NULL), -EDQUOT);
		assert_int_equal(access(tmp_dir_path(&dir, "map.new"), F_OK), -1);
		countdown = which;
	}
	countdown = 0;
	has("map", "version = 6\n");
}

/* Of a file of another user: root keeps the owner, others cannot. */
static void map_keeps_owner(void **state)
{
	static const char text[] = "volume = 0000000000000009\nversion = 3\n[server 4]\nurl = tcp://a\n";
	struct stat st;

	(void)state;
	if (geteuid())
		skip();
	tmp_dir_write(&dir, "map", text);
	assert_int_equal(chown(tmp_dir_path(&dir, "map"), 65534, 65533), 0);
	assert_int_equal(change(4, "tcp://b", LEAT_VOLUME_KEEP, NULL), 0);
	assert_int_equal(stat(tmp_dir_path(&dir, "map"), &st), 0);
	assert_true(st.st_uid == 65534 && st.st_gid == 65533);
	assert_int_equal(chmod(dir.path, 0777), 0);
	assert_int_equal(seteuid(65532), 0);
	assert_int_equal(change(4, "tcp://c", LEAT_VOLUME_KEEP, NULL), -EPERM);
	assert_int_equal(seteuid(0), 0);
	assert_non_null(strstr(why, "cannot keep its owner 65534:65533"));
	assert_int_equal(access(tmp_dir_path(&dir, "map.new"), F_OK), -1);
	has("map", "url = tcp://b");
}

/* Return: 0, -ENOMEM; each of them leaves no memory behind */
static int use_files(unsigned step)
{
	const struct leat_volume_change c = { .size = sizeof(c), .url = step & 1 ? "tcp://y" : "tcp://z", .server = 2 };
	struct leat_volume_map *m = NULL;
	struct leat_volume_key *k = NULL;
	int err = leat_volume_map_read(tmp_dir_path(&dir, "v/map"), &m, why, sizeof(why));

	if (!err)
		err = leat_volume_key_read(tmp_dir_path(&dir, "v/key"), &k, why, sizeof(why));
	if (!err)
		err = leat_volume_map_change(tmp_dir_path(&dir, "v/map"), &c, NULL, why, sizeof(why));
	leat_volume_map_free(m);
	leat_volume_key_free(k);
	return err;
}

static void short_of_memory(void **state)
{
	struct leat_volume_plan p = a_plan();
	unsigned n = 0;
	int err;

	(void)state;
	do {
		memory_countdown = ++n;
		err = create(&p, NULL);
		if (memory_countdown)
			break;
		assert_int_equal(err, -ENOMEM);
		assert_int_equal(access(tmp_dir_path(&dir, "v"), F_OK), -1);
	} while (n < 1000);
	memory_countdown = 0;
	assert_int_equal(err, 0);
	assert_true(n > 3);
	n = 0;
	do {
		memory_countdown = ++n;
		err = use_files(n);
		if (memory_countdown)
			break;
		assert_int_equal(err, -ENOMEM);
		assert_int_equal(access(tmp_dir_path(&dir, "v/map.new"), F_OK), -1);
	} while (n < 1000);
	memory_countdown = 0;
	assert_int_equal(err, 0);
	assert_true(n > 8);
	clear();
}

static int set_up(void **state)
{
	(void)state;
	tmp_dir_create(&dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tmp_dir_destroy(&dir);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(makes), cmocka_unit_test(refuses), cmocka_unit_test(leaves_nothing),
					    cmocka_unit_test(replaced), cmocka_unit_test(map_keeps_owner),
					    cmocka_unit_test(reads_map), cmocka_unit_test(changes_map),
					    cmocka_unit_test(short_of_memory) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
