/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_stripe_server.c - data, objects, handles and keys of a stripe server
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "inside.h"
#include "stripe_lanes.h"
#include "stripe_object.h"
#include "stripe_vol.h"

static void moves_data(const char *options)
{
	static const uint32_t lengths[] = { 1, 511, 4096, 65536, 100001, 1 << 20 };
	struct stripe_client c;
	uint64_t end = 0;
	struct stat st;

	object = stripe_rig_name(0xa7, 1);
	assert_int_equal(stripe_rig_start(options), 0);
	stripe_connect(&c, 1, 0, &object);
	object_see(&c, 0, data, 0, 4096); /* it does not exist */
	assert_int_equal(stripe_commit(&c), STRIPE_OK);
	assert_int_equal(stat(stripe_rig_path(&object), &st), -1);
	for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint64_t off = 4096 * i + i;

		assert_int_equal(stripe_write(&c, off, data + i % 4, lengths[i], i & 1), STRIPE_OK);
		object_see(&c, off, data + i % 4, lengths[i], lengths[i]);
		end = MAX(end, off + lengths[i]);
	}
	assert_int_equal(stripe_commit(&c), STRIPE_OK);
	assert_int_equal(stat(stripe_rig_path(&object), &st), 0);
	assert_int_equal(st.st_size, end);
	assert_int_equal(object_stat(&c).bytes, end);
	object_see(&c, end, data, 0, 100);
	object_see(&c, end - 10, data + 1 + (1 << 20) - 10, 10, 100);
	stripe_close(&c);
	stripe_rig_stop();
}

static void moves(void **state)
{
	(void)state;
	moves_data("");
}

static void moves_cached(void **state)
{
	(void)state;
	moves_data(STRIPE_CACHED);
}

static void moves_in_pieces(void **state)
{
	(void)state;
	moves_data("read=direct,write=direct,overlap=streams,streams=4,chunk=64K,grain=16K");
}

static void moves_tcp(void **state)
{
	(void)state;
	stripe_rig_url = "tcp://127.0.0.1:0";
	moves_data("");
	stripe_rig_url = NULL;
}

/* Return: the syncs of the server's end */
static unsigned syncs_at_the_end(bool commits, bool writes_again)
{
	struct stripe_client c;
	unsigned before;

	object_start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	if (commits)
		assert_int_equal(stripe_commit(&c), STRIPE_OK);
	if (writes_again)
		assert_int_equal(stripe_write(&c, 50, data, 100, false), STRIPE_OK);
	stripe_close(&c);
	before = atomic_load(&syncs);
	stripe_rig_stop();
	return atomic_load(&syncs) - before;
}

/* An object that is closed is synced, unless a COMMIT has covered all of it. */
static void closes_without_sync(void **state)
{
	(void)state;
	assert_int_equal(syncs_at_the_end(true, false), 0);
	assert_int_equal(syncs_at_the_end(false, true), 1);
	assert_int_equal(syncs_at_the_end(true, true), 1);
}

static void bad_ranges(void **state)
{
	struct stripe_client c;
	uint32_t n;
	bool eof;

	(void)state;
	object_start(&c);
	assert_int_equal(stripe_read(&c, 0, mem, 0, &n, &eof), STRIPE_ERR_INVAL);
	assert_int_equal(stripe_read(&c, UINT64_MAX, mem, 10, &n, &eof), STRIPE_ERR_INVAL);
	assert_int_equal(stripe_write(&c, UINT64_MAX - 10, data, 20, false), STRIPE_ERR_FBIG);
	assert_int_equal(stripe_write(&c, INT64_MAX - 10, data, 20, false), STRIPE_ERR_FBIG);
	assert_int_equal(stripe_write(&c, 0, data, 0, false), STRIPE_ERR_INVAL);
	c.lane.incarnation = 0;
	assert_int_equal(stripe_write(&c, 0, data, 1, false), STRIPE_ERR_INVAL);
	c.lane.incarnation = 1;
	c.lane.slot = STRIPE_LANES_SLOTS;
	assert_int_equal(stripe_write(&c, 0, data, 1, false), STRIPE_ERR_INVAL);
	c.lane.slot = 0;
	assert_int_equal(stripe_fence(&c, &object, 1, NULL, NULL), STRIPE_ERR_INVAL);
	assert_int_equal(stripe_fence(&c, &object, 2, &(uint64_t){ UINT64_MAX }, NULL), STRIPE_ERR_INVAL);
	object_stop(&c);
}

static void full(void **state)
{
	struct stripe_client c;

	(void)state;
	object_start(&c);
	held_writes_fail(ENOSPC);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_ERR_NOSPC);
	held_writes_fail(EDQUOT);
	assert_int_equal(stripe_write(&c, 0, data, 100, true), STRIPE_ERR_NOSPC);
	held_writes_fail(EIO);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_ERR_IO);
	held_writes_fail(0);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	object_stop(&c);
}

/* What was acknowledged may be lost: the verifier tells. */
static void sync_fails(void **state)
{
	struct stripe_client c;
	uint64_t before;

	(void)state;
	object_start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	assert_int_equal(stripe_commit(&c), STRIPE_OK);
	before = c.verf;
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	assert_int_equal(c.verf, before);
	atomic_store(&syncs_fail, true);
	assert_int_equal(stripe_commit(&c), STRIPE_ERR_IO);
	atomic_store(&syncs_fail, false);
	assert_int_equal(stripe_commit(&c), STRIPE_OK);
	assert_int_not_equal(c.verf, before);
	/* a record that could not be made durable is not acknowledged, and the object is served on */
	(void)object_stat(&c); /* the term is durable */
	atomic_store(&syncs_fail, true);
	assert_int_equal(stripe_fence(&c, &object, 2, NULL, NULL), STRIPE_ERR_IO);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_ERR_IO); /* which epoch has it? */
	atomic_store(&syncs_fail, false);
	assert_int_equal(stripe_fence(&c, &object, 2, NULL, NULL), STRIPE_OK);
	c.handle.epoch = 2;
	object_see(&c, 0, data, 100, 100);
	object_stop(&c);
}

/* A limited number of objects stays open without a call. One that is closed is synced first. */
static void files_are_closed(void **state)
{
	enum { MANY = STRIPE_FILES_IDLE / 3 + 100 };
	struct stripe_client c;
	char path[200];

	(void)state;
	object_start(&c);
	for (unsigned i = 0; i < MANY; i++) {
		c.handle.name.stripe = i;
		assert_int_equal(stripe_write(&c, 0, data + i % 100, 10, false), STRIPE_OK);
	}
	(void)snprintf(path, sizeof(path), "%s/s/objects/a7", stripe_rig.dir.path);
	assert_in_range(tmp_dir_open_below(path), MANY, 2 * (STRIPE_FILES_IDLE / 3 + 10));
	for (unsigned i = 0; i < MANY; i += 50) {
		c.handle.name.stripe = i;
		object_see(&c, 0, data + i % 100, 10, 10);
	}
	object_stop(&c);
}

/* A READ by one connection and the first WRITE by another one, on another reactor. */
static void reads_while_created(void **state)
{
	struct stripe_client reader, writer;
	struct stripe_rig_call read, write;

	(void)state;
	object_start(&reader);
	stripe_connect(&writer, 2, 0, &object);
	for (unsigned i = 0; i < 300; i++) {
		uint32_t n;

		reader.handle.name.stripe = writer.handle.name.stripe = i;
		read = (struct stripe_rig_call){ .args.read = { .count = 100 } };
		stripe_write_begin_at(&writer, &write, 0, data, 100, false);
		stripe_begin(&reader, &read, STRIPEPROC_READ, mem, 100);
		assert_int_equal(stripe_end(&read), STRIPE_OK);
		assert_int_equal(stripe_end(&write), STRIPE_OK);
		n = read.res.read.STRIPEREADres_u.resok.data.length;
		assert_true(n == 0 || n == 100);
		assert_memory_equal(mem, data, n);
		object_see(&reader, 0, data, 100, 100);
	}
	stripe_close(&writer);
	object_stop(&reader);
}

/* ---- what does not start ---- */

static void refuses_to_start(void)
{
	stripe_rig_end_server();
	assert_int_not_equal(stripe_rig_start(STRIPE_CACHED), 0);
}

static void refused(void **state)
{
	struct stripe_client c;
	char why[300] = "", text[200];

	(void)state;
	object_start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, true), STRIPE_OK);
	assert_int_equal(stripe_rig_reload("id=8", why, sizeof(why)), -EBUSY);
	assert_non_null(strstr(why, "until now it is of server 7"));
	object_see(&c, 0, data, 100, 100);
	stripe_close(&c);
	stripe_rig_write_key(NULL, 0640);
	refuses_to_start();
	(void)snprintf(text, sizeof(text), "volume = %016llx\nkey = " STRIPE_RIG_KEY "\n",
		       (unsigned long long)STRIPE_RIG_VOLUME + 1);
	stripe_rig_write_key(text, 0600);
	refuses_to_start();
	stripe_rig_write_key(NULL, 0600);
	assert_int_not_equal(stripe_rig_start("id=8"), 0);
	assert_int_equal(stripe_rig_start(STRIPE_CACHED), 0); /* and nothing has changed */
	stripe_connect(&c, 2, 0, &object);
	object_see(&c, 0, data, 100, 100);
	object_stop(&c);
}

/* ---- handles ---- */

/* A reload that takes the right away takes effect at once. */
static void other_clients(void **state)
{
	struct stripe_client c;
	char why[256] = "";

	(void)state;
	stripe_rig_url = "tcp://127.0.0.1:0";
	object_start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	assert_int_equal(stripe_rig_reload(STRIPE_CACHED ",clients=10.0.0.0/8", why, sizeof(why)), 0);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_ERR_ACCES);
	assert_int_equal(stripe_info(&c, NULL), STRIPE_ERR_ACCES);
	assert_int_equal(stripe_rig_reload(STRIPE_CACHED, why, sizeof(why)), 0);
	object_see(&c, 0, data, 100, 100);
	stripe_rig_url = NULL;
	object_stop(&c);
}

static void handles(void **state)
{
	struct stripe_client c;
	struct stripe_rig_call call = { .args.read = { .count = 10 } };
	uint32_t n;
	bool eof;

	(void)state;
	object_start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_OK);
	/* of another volume, and signed with another key */
	c.handle.volume++;
	assert_int_equal(stripe_read(&c, 0, mem, 10, &n, &eof), STRIPE_ERR_NOVOLUME);
	c.handle.volume--;
	stripe_sign(&c, &call, STRIPEPROC_READ);
	stripe_handle_make(&stripe_rig.old_keys, &c.handle, call.args.at.handle);
	stripe_send(&c, &call, STRIPEPROC_READ, mem, 10);
	assert_int_equal(stripe_end(&call), STRIPE_ERR_BADHANDLE);
	assert_int_equal(server_counters(stripe_rig.srv, "stripe_bad_handles"), 1);
	/* of another server of the volume */
	c.handle.server++;
	assert_int_equal(stripe_read(&c, 0, mem, 10, &n, &eof), STRIPE_ERR_BADHANDLE);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_BADHANDLE);
	assert_int_equal(server_counters(stripe_rig.srv, "stripe_bad_handles"), 3);
	c.handle.server--;
	/* rights */
	c.handle.rights = STRIPE_MAY_READ;
	object_see(&c, 0, data, 10, 10);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_ACCES);
	assert_int_equal(stripe_commit(&c), STRIPE_ERR_ACCES);
	c.handle.rights = STRIPE_MAY_WRITE;
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_OK);
	assert_int_equal(stripe_read(&c, 0, mem, 10, &n, &eof), STRIPE_ERR_ACCES);
	/* time: clocks may differ by 30 seconds */
	c.handle.expiry = (uint64_t)time(NULL) - 20;
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_OK);
	c.handle.expiry = (uint64_t)time(NULL) - 40;
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_EXPIRED);
	assert_int_equal(server_counters(stripe_rig.srv, "stripe_expired"), 1);
	object_stop(&c);
}

/* The key is replaced while the server runs: for a while both are good. */
static void two_keys(void **state)
{
	struct stripe_client c;
	struct stripe_keys first;
	char text[300], why[256] = "";

	(void)state;
	object_start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_OK);
	first = stripe_rig.keys;
	(void)snprintf(text, sizeof(text), "volume = %016llx\nkey = " STRIPE_RIG_OLD_KEY "\nkey = " STRIPE_RIG_KEY "\n",
		       (unsigned long long)STRIPE_RIG_VOLUME);
	stripe_rig_write_key(text, 0600);
	assert_int_equal(stripe_rig_reload(STRIPE_CACHED, why, sizeof(why)), 0);
	object_see(&c, 0, data, 10, 10);
	stripe_rig.keys = stripe_rig.old_keys;
	object_see(&c, 0, data, 10, 10);
	assert_int_equal(stripe_info(&c, NULL), STRIPE_OK);
	/* a key that others may read changes nothing */
	stripe_rig_write_key(text, 0644);
	assert_int_not_equal(stripe_rig_reload(STRIPE_CACHED, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "mode 0600"));
	stripe_rig.keys = first;
	object_see(&c, 0, data, 10, 10);
	object_stop(&c);
}

/* ---- listing ---- */

static void lists(void **state)
{
	struct stripe_client c;
	stripe_entry list[STRIPE_LIST_MAX];
	unsigned n = 0, all = 0;
	stripe_name last;
	bool eof = false;
	int fd;

	(void)state;
	object_start(&c);
	for (unsigned i = 0; i < STRIPE_LIST_MAX + 10; i++) {
		c.handle.name = stripe_rig_name((uint8_t)(i % 3 * 100), (uint8_t)i);
		c.handle.name.stripe = i % 2;
		assert_int_equal(stripe_write(&c, 0, data, i + 1, false), STRIPE_OK);
	}
	fd = open(tmp_dir_path(&stripe_rig.dir, "s/objects/00/other"), O_CREAT | O_WRONLY, 0600); /* not ours */
	assert_true(fd >= 0);
	close(fd);
	for (;;) {
		assert_int_equal(stripe_list(&c, all ? &last : NULL, list, &n, &eof), STRIPE_OK);
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(list[i].stat.bytes, (unsigned char)list[i].name.object[STRIPE_OBJECT_BYTES - 1] + 1u);
			assert_true(list[i].stat.exists && list[i].stat.epoch == 1);
			if (all + i)
				assert_true(memcmp(last.object, list[i].name.object, STRIPE_OBJECT_BYTES) < 0);
			last = list[i].name;
		}
		all += n;
		if (eof)
			break;
		assert_int_equal(n, STRIPE_LIST_MAX);
	}
	assert_int_equal(all, STRIPE_LIST_MAX + 10);
	object_stop(&c);
}

/* A record that is not ours: the object is not served, and LIST tells. */
static void damaged(void **state)
{
	struct stripe_client c;
	stripe_entry list[STRIPE_LIST_MAX];
	const char *const names[] = { "trusted.leat", "user.leat" };
	unsigned n = 0, set = 0;
	bool eof;

	(void)state;
	object_start(&c);
	assert_int_equal(stripe_fence(&c, &object, 2, NULL, NULL), STRIPE_OK);
	stripe_close(&c);
	stripe_rig_end_server();
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		set += !setxattr(stripe_rig_path(&object), names[i], "nonsense", 8, XATTR_REPLACE);
	assert_int_equal(set, 1);
	assert_int_equal(stripe_rig_start(STRIPE_CACHED), 0);
	stripe_connect(&c, 9, 0, &object);
	assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_ERR_IO);
	assert_int_equal(stripe_fence(&c, &object, 3, NULL, NULL), STRIPE_ERR_IO);
	assert_int_equal(stripe_list(&c, NULL, list, &n, &eof), STRIPE_OK);
	assert_int_equal(n, 1);
	assert_int_equal(list[0].stat.epoch, 0);
	object_stop(&c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves),
		cmocka_unit_test(moves_cached),
		cmocka_unit_test(moves_in_pieces),
		cmocka_unit_test(moves_tcp),
		cmocka_unit_test(closes_without_sync),
		cmocka_unit_test(bad_ranges),
		cmocka_unit_test(full),
		cmocka_unit_test(sync_fails),
		cmocka_unit_test(files_are_closed),
		cmocka_unit_test(reads_while_created),
		cmocka_unit_test(refused),
		cmocka_unit_test(other_clients),
		cmocka_unit_test(handles),
		cmocka_unit_test(two_keys),
		cmocka_unit_test(lists),
		cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests(tests, object_group, NULL);
}
