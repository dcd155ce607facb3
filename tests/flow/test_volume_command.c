/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_command.c - the commands of leat_volume.h against a stripe server
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "leat.h"
#include "leat_volume.h"
#include "server.h"
#include "stripe_rig.h"

static struct leat *m;
static struct leat_volume_key *key;
static struct leat_volume_command command;
static struct stripe_client client; /* of the object */
static uint8_t data[10000];
static char why[256];

static struct leat_volume_key *read_key(const char *name)
{
	struct leat_volume_key *k = NULL;

	if (leat_volume_key_read(tmp_dir_path(&stripe_rig.dir, name), &k, why, sizeof(why)))
		fail_msg("%s", why);
	return k;
}

static int start(void **state)
{
	stripe_name name = stripe_rig_name(0x3b, 4);
	struct leat_opts *opts;
	char url[300];

	(void)state;
	assert_int_equal(stripe_rig_start("read=cached,write=cached"), 0);
	opts = leat_opts_create();
	assert_non_null(opts);
	assert_int_equal(leat_set(opts, "connect_only", "yes"), 0);
	if (leat_mount(stripe_rig_server(url, sizeof(url)), opts, &m))
		fail_msg("%s", leat_error(NULL));
	leat_opts_destroy(opts);
	key = read_key("key");
	command = (struct leat_volume_command){ .size = sizeof(command), .key = key, .term = 3, .server = STRIPE_RIG_ID };
	memcpy(command.object, name.object, sizeof(command.object));
	stripe_connect(&client, 1, 0, &name);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	stripe_close(&client);
	leat_volume_key_free(key);
	leat_umount(m);
	stripe_rig_stop();
	return 0;
}

static void asks(void **state)
{
	struct leat_volume_info info = { .size = sizeof(info) };

	(void)state;
	assert_int_equal(leat_volume_ask(m, key, STRIPE_RIG_ID, &info), 0);
	assert_true(info.size == sizeof(info) && info.server == STRIPE_RIG_ID && !info.term && info.verf);
	assert_true(info.bytes && info.bytes_used && info.bytes_free + info.bytes_used <= info.bytes);
	assert_int_equal(leat_volume_ask(m, key, STRIPE_RIG_ID + 1, &info), -EKEYREJECTED);
	assert_non_null(strstr(leat_error(m), "another id, or another key"));
	info.size = 0;
	assert_int_equal(leat_volume_ask(m, key, STRIPE_RIG_ID, &info), -EINVAL);
	info.size = sizeof(info);
	assert_int_equal(leat_volume_ask(m, NULL, STRIPE_RIG_ID, &info), -EINVAL);
	assert_int_equal(leat_volume_ask(NULL, key, STRIPE_RIG_ID, &info), -EINVAL);
}

static void other_keys(void **state)
{
	struct leat_volume_info info = { .size = sizeof(info) };
	struct leat_volume_key *other;

	(void)state;
	stripe_rig_write_key("volume = 1122334455667788\nkey = " STRIPE_RIG_OLD_KEY "\n", 0600);
	other = read_key("key");
	assert_int_equal(leat_volume_ask(m, other, STRIPE_RIG_ID, &info), -EKEYREJECTED);
	leat_volume_key_free(other);
	stripe_rig_write_key("volume = 1122334455667789\nkey = " STRIPE_RIG_KEY "\n", 0600);
	other = read_key("key");
	assert_int_equal(leat_volume_ask(m, other, STRIPE_RIG_ID, &info), -ENXIO);
	leat_volume_key_free(other);
	stripe_rig_write_key(NULL, 0640);
	assert_int_equal(leat_volume_key_read(tmp_dir_path(&stripe_rig.dir, "key"), &other, why, sizeof(why)), -EKEYREJECTED);
	assert_non_null(strstr(why, "mode 0600"));
	leat_volume_key_free(NULL);
}

static void commands(void **state)
{
	struct leat_volume_object o = { .size = sizeof(o) };

	(void)state;
	assert_int_equal(leat_volume_object_stat(m, &command, &o, NULL), 0);
	assert_true(!o.exists && !o.removed && o.epoch == 1 && !o.bytes);
	assert_int_equal(stripe_write(&client, 0, data, sizeof(data), true), STRIPE_OK);
	assert_int_equal(leat_volume_object_stat(m, &command, &o, NULL), 0);
	assert_true(o.exists && o.bytes == sizeof(data) && o.used && o.epoch == 1);
	assert_in_range(o.mtime_ns / 1000000000, (uint64_t)time(NULL) - 1000, (uint64_t)time(NULL) + 1000);
	assert_int_equal(leat_volume_object_fence(m, &command, 2, &(uint64_t){ 5000 }, &o, NULL), 0);
	assert_true(o.bytes == 5000 && o.epoch == 2);
	assert_int_equal(stripe_write(&client, 0, data, 10, true), STRIPE_ERR_FENCED);
	assert_int_equal(leat_volume_object_fence(m, &command, 3, NULL, &o, NULL), 0);
	assert_true(o.bytes == 5000 && o.epoch == 3);
	assert_int_equal(leat_volume_object_fence(m, &command, 2, NULL, &o, NULL), -ESTALE);
	assert_int_equal(leat_volume_object_fence(m, &command, 1, NULL, &o, NULL), -EINVAL);
	/* another stripe is another object */
	command.stripe = 7;
	assert_int_equal(leat_volume_object_remove(m, &command, (uint64_t)time(NULL) + 1000, &o, NULL), 0);
	assert_true(o.removed);
	command.stripe = 0;
	assert_int_equal(leat_volume_object_stat(m, &command, &o, NULL), 0);
	assert_true(o.exists && !o.removed);
	assert_int_equal(leat_volume_object_remove(m, &command, (uint64_t)time(NULL) + 1000, NULL, NULL), 0);
	assert_int_equal(leat_volume_object_fence(m, &command, 9, NULL, NULL, NULL), -ESTALE);
	command.size = 0;
	assert_int_equal(leat_volume_object_stat(m, &command, &o, NULL), -EINVAL);
	command.size = sizeof(command);
}

struct list {
	unsigned n, stop_at;
	unsigned char last[16];
	uint64_t bytes;
	unsigned removed;
};

static int take_listed(void *ctx, const unsigned char object[16], uint32_t stripe, const struct leat_volume_object *o)
{
	struct list *l = ctx;

	assert_true(!l->n || memcmp(l->last, object, 16) < 0);
	assert_true(o->size == sizeof(*o) && o->exists && !stripe);
	memcpy(l->last, object, 16);
	l->bytes += o->bytes;
	l->removed += o->removed;
	return ++l->n == l->stop_at ? 77 : 0;
}

/* More objects than a page has. Only reading does not need a term, and does not raise it. */
static void lists(void **state)
{
	struct leat_volume_command c = command;
	struct leat_volume_info info = { .size = sizeof(info) };
	struct leat_volume_object o = { .size = sizeof(o) };
	struct list l = { 0 };
	uint64_t newest = 0;

	(void)state;
	c.term = 0;
	assert_int_equal(leat_volume_object_list(m, &c, take_listed, &l, &newest), 0);
	assert_int_equal(l.n, 0);
	for (unsigned i = 0; i < 150; i++) {
		client.handle.name = stripe_rig_name((uint8_t)(i * 37), (uint8_t)i);
		assert_int_equal(stripe_write(&client, 0, data, i + 1, false), STRIPE_OK);
	}
	assert_int_equal(leat_volume_object_list(m, &c, take_listed, &l, &newest), 0);
	assert_int_equal(l.n, 150);
	assert_int_equal(l.bytes, 150 * 151 / 2);
	assert_int_equal(leat_volume_ask(m, key, STRIPE_RIG_ID, &info), 0);
	assert_int_equal(info.term, 0);
	assert_int_equal(leat_volume_object_remove(m, &command, (uint64_t)time(NULL) + 1000, NULL, NULL), 0);
	l = (struct list){ 0 };
	assert_int_equal(leat_volume_object_list(m, &c, take_listed, &l, &newest), 0);
	assert_true(l.n == 151 && l.removed == 1);
	assert_int_equal(leat_volume_object_stat(m, &c, &o, &newest), 0);
	assert_true(o.removed);
	assert_int_equal(newest, 0);
	assert_int_equal(leat_volume_ask(m, key, STRIPE_RIG_ID, &info), 0);
	assert_int_equal(info.term, command.term);
	l = (struct list){ .stop_at = 70 };
	assert_int_equal(leat_volume_object_list(m, &c, take_listed, &l, NULL), 77);
	assert_int_equal(l.n, 70);
	l = (struct list){ 0 };
	c.term = command.term - 1;
	assert_int_equal(leat_volume_object_list(m, &c, take_listed, &l, &newest), -EPERM);
	assert_true(!l.n && newest == command.term);
	c.size = 0;
	assert_int_equal(leat_volume_object_list(m, &c, take_listed, &l, NULL), -EINVAL);
}

static void terms(void **state)
{
	struct leat_volume_info info = { .size = sizeof(info) };
	uint64_t newest = 0;

	(void)state;
	assert_int_equal(leat_volume_object_stat(m, &command, NULL, &newest), 0);
	assert_int_equal(newest, 0);
	command.term = 2;
	assert_int_equal(leat_volume_object_stat(m, &command, NULL, &newest), -EPERM);
	assert_int_equal(newest, 3);
	assert_int_equal(leat_volume_object_remove(m, &command, 1, NULL, NULL), -EPERM);
	assert_int_equal(leat_volume_ask(m, key, STRIPE_RIG_ID, &info), 0);
	assert_int_equal(info.term, 3);
	command.term = 3;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(asks, start, stop),
		cmocka_unit_test_setup_teardown(other_keys, start, stop),
		cmocka_unit_test_setup_teardown(commands, start, stop),
		cmocka_unit_test_setup_teardown(lists, start, stop),
		cmocka_unit_test_setup_teardown(terms, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
