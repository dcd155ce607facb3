/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_state.c - what a volume keeps in the state directory, and what becomes of damaged files
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/siphash.h"
#include "base/util.h"
#include "server/block/block_holders.h"
#include "server/block/block_state.h"
#include "tests/lib/tmp_dir.h"

#define ID UINT64_C(0x1234567890abcdef)

static struct tmp_dir dir;
static struct block_volume vol;
static struct block_state *state;
static uint64_t verf;

static void volume_init(struct block_volume *v)
{
	*v = (struct block_volume){ .id = ID, .name = (char *)(uintptr_t)"vol", .losses = LOG_LIMIT_INIT };
	pthread_mutex_init(&v->lock, NULL);
	list_init(&v->holders);
	list_init(&v->ending);
	list_init(&v->waiters);
}

static void volume_fini(struct block_volume *v)
{
	struct list *n;

	while ((n = list_pop(&v->holders)) != NULL)
		free(list_entry(n, struct block_attachment, link));
	pthread_mutex_destroy(&v->lock);
}

static void hold(const char *name, const char *app, bool rdonly)
{
	struct block_attachment *a = block_attachment_new();

	assert_non_null(a);
	(void)snprintf(a->name, sizeof(a->name), "%s", name);
	(void)snprintf(a->app, sizeof(a->app), "%s", app);
	(void)snprintf(a->peer, sizeof(a->peer), "10.0.0.%u", vol.nholders);
	a->number = ++vol.numbers;
	a->generation = ++vol.generations;
	a->instance = UINT64_MAX - a->number;
	a->since = 1700000000 + a->number;
	a->rdonly = rdonly;
	a->client = (struct rpcrdma_client_id){ RPCRDMA_CLIENT_IPV6, vol.nholders, UINT64_MAX - vol.nholders };
	block_add(&vol, a);
}

static int open_state(uint64_t id, char *why, size_t why_bytes)
{
	return block_state_open(dir.path, "vol", id, &state, &verf, why, why_bytes);
}

/* Return: as block_state_load(); then the volume has been emptied again */
static int load_count(unsigned *ret_n)
{
	struct block_volume v;
	int err;

	volume_init(&v);
	err = block_state_load(state, &v);
	*ret_n = v.nholders;
	volume_fini(&v);
	return err;
}

static int setup(void **arg)
{
	char why[256];

	(void)arg;
	tmp_dir_create(&dir);
	volume_init(&vol);
	assert_int_equal(open_state(ID, why, sizeof(why)), 0);
	assert_int_not_equal(verf, 0);
	return 0;
}

static int teardown(void **arg)
{
	(void)arg;
	block_state_close(state);
	state = NULL;
	volume_fini(&vol);
	tmp_dir_destroy(&dir);
	return 0;
}

/* ---- files ---- */

static uint8_t bytes[1 << 20];

static size_t read_file(const char *name)
{
	int fd = open(tmp_dir_path(&dir, name), O_RDONLY);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, bytes, sizeof(bytes));
	assert_in_range(n, 1, sizeof(bytes) - 1);
	close(fd);
	return (size_t)n;
}

static void write_file(const char *name, const void *data, size_t n)
{
	int fd = open(tmp_dir_path(&dir, name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, n), (ssize_t)n);
	close(fd);
}

/* ---- holders ---- */

static void saves_and_loads(void **arg)
{
	struct block_volume v;
	char name[32];

	(void)arg;
	hold("first", "", false);
	hold("second one", "a program", true);
	for (unsigned i = vol.nholders; i < BLOCK_HOLDERS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "holder %u", i);
		hold(name, "x", false);
	}
	assert_int_equal(block_state_save(state, &vol), 0);
	volume_init(&v);
	assert_int_equal(block_state_load(state, &v), 0);
	assert_int_equal(v.nholders, BLOCK_HOLDERS_MAX);
	assert_int_equal(v.generations, vol.generations);
	assert_int_equal(v.numbers, vol.numbers);
	for (struct list *p = vol.holders.next, *q = v.holders.next; p != &vol.holders; p = p->next, q = q->next) {
		const struct block_attachment *a = list_entry(p, struct block_attachment, link);
		const struct block_attachment *b = list_entry(q, struct block_attachment, link);

		assert_string_equal(a->name, b->name);
		assert_string_equal(a->app, b->app);
		assert_string_equal(a->peer, b->peer);
		assert_int_equal(a->number, b->number);
		assert_int_equal(a->generation, b->generation);
		assert_memory_equal(&a->client, &b->client, sizeof(a->client));
		assert_true(a->instance == b->instance && a->since == b->since && a->rdonly == b->rdonly);
	}
	volume_fini(&v);
}

/* One bit of the file is another one, or its end is missing: a changed digit could be the generation of an attachment that
 * has ended. */
/* Return: as block_state_load() of such a file */
static int load_text(const char *text, struct block_volume *v)
{
	static const struct siphash_key no_secret;
	char file[1024];
	int n = snprintf(file, sizeof(file), "%send\t%016" PRIx64 "\n", text, siphash(&no_secret, text, strlen(text)));

	write_file("block-vol.holders", file, (size_t)n);
	volume_init(v);
	return block_state_load(state, v);
}

#define ONE(client) "volume\t1234567890abcdef\t9\t4\nholder\t1\t5\tabc\t1700000000\t0\tfirst\tleat\t10.0.0.1" client "\n"

static void clients(void **arg)
{
	static const char *const bad[] = { "", "\t3\t0", "\t5\t0\t1", "\t3\t4294967296\t1", "\t3\t0\t1\t", "\t3\t0\tx", "\t-1\t0\t1" };
	const struct block_attachment *a;
	struct block_volume v;
	char text[512];

	(void)arg;
	assert_int_equal(load_text("leat block holders 2\n" ONE("\t4\t7\tfe80"), &v), 0);
	a = block_find(&v, "first");
	assert_non_null(a);
	assert_true(a->client.kind == RPCRDMA_CLIENT_IPV6 && a->client.scope == 7 && a->client.key == 0xfe80);
	volume_fini(&v);
	/* the first version did not say whose they are */
	assert_int_equal(load_text("leat block holders 1\n" ONE(""), &v), 0);
	a = block_find(&v, "first");
	assert_non_null(a);
	assert_int_equal(a->client.kind, RPCRDMA_CLIENT_UNKNOWN);
	volume_fini(&v);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		(void)snprintf(text, sizeof(text), "leat block holders 2\n" ONE("%s"), bad[i]);
		assert_int_equal(load_text(text, &v), -EINVAL);
		volume_fini(&v);
	}
	assert_int_equal(load_text("leat block holders 3\n" ONE("\t4\t7\tfe80"), &v), -EINVAL);
	volume_fini(&v);
}

static void damaged_holders(void **arg)
{
	size_t n;
	unsigned holders;

	(void)arg;
	hold("first", "app", false);
	hold("second", "app", true);
	assert_int_equal(block_state_save(state, &vol), 0);
	n = read_file("block-vol.holders");
	for (size_t at = 0; at < n; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			bytes[at] ^= (uint8_t)(1u << bit);
			write_file("block-vol.holders", bytes, n);
			assert_int_equal(load_count(&holders), -EINVAL);
			bytes[at] ^= (uint8_t)(1u << bit);
		}
		write_file("block-vol.holders", bytes, at);
		assert_int_equal(load_count(&holders), -EINVAL);
	}
	write_file("block-vol.holders", bytes, n);
	assert_int_equal(load_count(&holders), 0);
	assert_int_equal(holders, 2);
	bytes[n] = '\0'; /* behind the end */
	write_file("block-vol.holders", bytes, n + 1);
	assert_int_equal(load_count(&holders), -EINVAL);
	memmove(bytes + n, bytes, n); /* twice */
	write_file("block-vol.holders", bytes, 2 * n);
	assert_int_equal(load_count(&holders), -EINVAL);
	memset(bytes, '\n', sizeof(bytes));
	write_file("block-vol.holders", bytes, sizeof(bytes));
	assert_int_equal(load_count(&holders), -EINVAL);
}

static void holders_of_another_volume(void **arg)
{
	unsigned holders;
	char why[256];

	(void)arg;
	hold("first", "app", false);
	assert_int_equal(block_state_save(state, &vol), 0);
	block_state_close(state);
	state = NULL;
	assert_int_equal(open_state(ID + 1, why, sizeof(why)), 0);
	assert_int_equal(load_count(&holders), 0);
	assert_int_equal(holders, 0);
}

static void no_regular_file(void **arg)
{
	unsigned holders;

	(void)arg;
	assert_int_equal(symlink("block-vol.sync", tmp_dir_path(&dir, "block-vol.holders")), 0);
	assert_int_equal(load_count(&holders), -ELOOP);
	unlink(tmp_dir_path(&dir, "block-vol.holders"));
	tmp_dir_mkdir(&dir, "block-vol.holders");
	assert_true(load_count(&holders) < 0);
}

/* ---- the page ---- */

/* Opens the state again. Return: is the verifier the one of before? */
static bool keeps_verf(void)
{
	uint64_t before = verf;
	char why[256];

	block_state_close(state);
	state = NULL;
	assert_int_equal(open_state(ID, why, sizeof(why)), 0);
	assert_int_not_equal(verf, 0);
	return verf == before;
}

static void syncs(void **arg)
{
	(void)arg;
	assert_true(keeps_verf());
	block_state_sync_begun(state);
	block_state_sync_begun(state);
	block_state_sync_ended(state);
	assert_false(keeps_verf());
	block_state_sync_begun(state);
	block_state_sync_ended(state);
	assert_true(keeps_verf());
	block_state_verf(state, 77);
	verf = 77;
	assert_true(keeps_verf());
}

/* Whatever is wrong with the page, the verifier of before is not believed. */
static void damaged_page(void **arg)
{
	static const size_t sizes[] = { 1, 4095, 4097, 1 << 16 };
	static const size_t used = 8 + 8 + 40 + 8 + 8 + 8; /* magic, id, boot, verf, begun, ended */
	char why[256] = "";
	size_t n = read_file("block-vol.sync");
	uint8_t page[4096];

	(void)arg;
	assert_int_equal(n, sizeof(page));
	memcpy(page, bytes, n);
	for (size_t at = 0; at < used; at++) {
		page[at] ^= 1;
		write_file("block-vol.sync", page, n);
		if (at < 52 || at >= 56) /* the boot id has 36 bytes, a new line and a NUL */
			assert_false(keeps_verf());
		block_state_close(state);
		state = NULL;
		page[at] ^= 1;
		write_file("block-vol.sync", page, n);
		memcpy(&verf, page + 56, sizeof(verf));
		assert_int_equal(open_state(ID, why, sizeof(why)), 0);
	}
	block_state_close(state);
	state = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(bytes, 0, sizes[i]);
		write_file("block-vol.sync", bytes, sizes[i]);
		why[0] = '\0';
		assert_int_equal(open_state(ID, why, sizeof(why)), -EINVAL);
		assert_non_null(strstr(why, "block-vol.sync: it is not such a file"));
	}
}

static void one_leatd(void **arg)
{
	struct block_state *other;
	char why[256] = "";
	uint64_t v;

	(void)arg;
	assert_int_equal(block_state_open(dir.path, "vol", ID, &other, &v, why, sizeof(why)), -EBUSY);
	assert_non_null(strstr(why, "another leatd has a volume of this name"));
}

#define LOSSES 1000

/* A client with a broken disk can sync as often as it likes; the log stays small, and each loss changes the verifier. */
static void losses_do_not_fill_the_log(void **arg)
{
	unsigned lines = 0, same = 0;
	int log = open(tmp_dir_path(&dir, "log"), O_RDWR | O_CREAT | O_APPEND, 0600), err = dup(STDERR_FILENO);
	uint64_t last = 0;
	ssize_t n;

	(void)arg;
	assert_true(log >= 0 && err >= 0);
	assert_int_equal(dup2(log, STDERR_FILENO), STDERR_FILENO);
	for (int i = 0; i < LOSSES; i++) {
		block_volume_lost(&vol);
		same += vol.verf == last;
		last = vol.verf;
	}
	assert_int_equal(dup2(err, STDERR_FILENO), STDERR_FILENO);
	close(err);
	n = pread(log, bytes, sizeof(bytes), 0);
	close(log);
	assert_true(n > 0 && n < (ssize_t)sizeof(bytes));
	for (ssize_t i = 0; i < n; i++)
		lines += bytes[i] == '\n';
	assert_int_equal(same, 0);
	assert_in_range(lines, 1, LOSSES / 2);
}

static unsigned seen;

static void see_volume(void *ctx, const char *name)
{
	assert_string_equal(name, (const char *)ctx + strlen("block-"));
	seen++;
}

/* The volumes that have files, and no other files */
static void each_volume(void **unused)
{
	static const char *const others[] = { "handle.key", "block-.sync", "block-vol.holders", "block-vol.sync.new", "block-" };
	char name[BLOCK_NAME_MAX + 16], longest[BLOCK_NAME_MAX + 16];
	struct tmp_dir d;

	(void)unused;
	tmp_dir_create(&d);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		close(open(tmp_dir_path(&d, others[i]), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	(void)snprintf(name, sizeof(name), "block-%0*d.sync", BLOCK_NAME_MAX + 1, 1);
	close(open(tmp_dir_path(&d, name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(block_state_each(d.path, see_volume, longest), 0);
	assert_int_equal(seen, 0);
	(void)snprintf(longest, sizeof(longest), "block-%0*d.sync", BLOCK_NAME_MAX, 1);
	close(open(tmp_dir_path(&d, longest), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	longest[strlen("block-") + BLOCK_NAME_MAX] = '\0';
	assert_int_equal(block_state_each(d.path, see_volume, longest), 0);
	assert_int_equal(seen, 1);
	assert_int_equal(block_state_each("/nonexistent", see_volume, longest), -ENOENT);
	tmp_dir_destroy(&d);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(saves_and_loads), TEST(clients), TEST(damaged_holders), TEST(holders_of_another_volume), TEST(no_regular_file),
		TEST(syncs),	       TEST(damaged_page),    TEST(one_leatd),
		TEST(losses_do_not_fill_the_log), cmocka_unit_test(each_volume),
	};

	return cmocka_run_group_tests_name("block state", tests, NULL, NULL);
}
