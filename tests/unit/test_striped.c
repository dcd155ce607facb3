/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_striped.c - which layouts a client believes, for how long, and what size a file has then
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "striped.h"

#define S NS_PER_S

static struct leat mount;
static struct lt_volume volume;
static struct lt_striped *file;
static volume_stripe stripes[LAYOUT_WIDTH_MAX + 1];

static VOLLAYOUTresok layout(uint64_t epoch, uint64_t bytes)
{
	for (uint32_t i = 0; i < 3; i++) {
		stripes[i].server = 10 + i;
		memset(stripes[i].handle, (int)(epoch + i), sizeof(stripes[i].handle));
	}
	return (VOLLAYOUTresok){ .map = 1, .object = "object", .epoch = epoch, .unit = 65536, .lifetime = 600, .bytes = bytes,
				 .stripes = { 3, stripes } };
}

static int take(bool write, const VOLLAYOUTresok *ok, uint64_t sent_ns)
{
	const char *why;

	return lt_striped_take(file, write, ok, sent_ns, &why);
}

static int setup(void **state)
{
	static const struct lt_fh fh = { 4, "abc" };

	(void)state;
	list_init(&mount.grown);
	volume = (struct lt_volume){ .m = &mount };
	list_init(&volume.nodes);
	list_init(&volume.servers);
	file = lt_striped_get(&volume, &fh);
	assert_non_null(file);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	lt_striped_put(file);
	assert_true(list_is_empty(&volume.nodes));
	return 0;
}

/* Files of one handle share what is known of them. */
static void shared(void **state)
{
	const struct lt_fh same = { 4, "abc" }, other = { 4, "abd" };
	struct lt_striped *a = lt_striped_get(&volume, &same), *b = lt_striped_get(&volume, &other);

	(void)state;
	assert_ptr_equal(a, file);
	assert_ptr_not_equal(b, file);
	lt_striped_put(a);
	lt_striped_put(b);
}

/* The handles of each right are good for their time, less a margin, from the moment at which they were asked for. */
static void lifetimes(void **state)
{
	VOLLAYOUTresok ok = layout(1, 5);

	(void)state;
	assert_null(lt_striped_handles(file, false, 0));
	assert_int_equal(take(false, &ok, 100 * S), 0);
	assert_non_null(lt_striped_handles(file, false, (100 + 570) * S - 1));
	assert_null(lt_striped_handles(file, false, (100 + 570) * S));
	assert_null(lt_striped_handles(file, true, 100 * S));
	assert_int_equal(file->servers[2], 12);
	assert_memory_equal(file->reads.v[1], stripes[1].handle, STRIPE_HANDLE_BYTES);
	ok.lifetime = 8;
	assert_int_equal(take(true, &ok, 100 * S), 0);
	assert_non_null(lt_striped_handles(file, true, 106 * S - 1));
	assert_null(lt_striped_handles(file, true, 106 * S));
}

/* Within an epoch a size only grows; a later epoch has a size of its own, and ends all handles of the earlier one. */
static void epochs(void **state)
{
	VOLLAYOUTresok ok = layout(4, 500), later = layout(5, 20);

	(void)state;
	assert_int_equal(take(true, &ok, S), 0);
	lt_striped_grew(file, 4, 300);
	assert_int_equal(lt_striped_size(file), 500);
	ok.bytes = 100;
	assert_int_equal(take(false, &ok, S), 0);
	assert_int_equal(lt_striped_size(file), 500);
	assert_int_equal(take(false, &later, S), 0);
	assert_int_equal(lt_striped_size(file), 20);
	assert_null(lt_striped_handles(file, true, S));
	assert_int_equal(take(true, &ok, 2 * S), 0); /* its reply came late */
	assert_int_equal(file->epoch, 5);
	lt_striped_grew(file, 4, 900); /* so did this one */
	assert_int_equal(lt_striped_size(file), 20);
	lt_striped_grew(file, 5, UINT64_MAX);
	assert_int_equal(lt_striped_size(file), INT64_MAX);
	assert_null(lt_striped_handles(file, true, 2 * S));
}

static void refuse(VOLLAYOUTresok ok)
{
	assert_int_equal(take(false, &ok, S), -EREMOTEIO);
	assert_int_equal(file->layout.width, 0);
}

static void impossible(void **state)
{
	VOLLAYOUTresok ok = layout(1, 5);

	(void)state;
#define REFUSE(member, value)                                                                                  \
	do {                                                                                                 \
		VOLLAYOUTresok bad = ok;                                                                     \
		bad.member = value;                                                                          \
		refuse(bad);                                                                                 \
	} while (0)
	REFUSE(unit, 0);
	REFUSE(unit, 65537);
	REFUSE(unit, 32768);
	REFUSE(unit, 32u << 20);
	REFUSE(stripes.stripes_len, 0);
	REFUSE(stripes.stripes_len, LAYOUT_WIDTH_MAX + 1);
	REFUSE(epoch, 0);
	REFUSE(lifetime, 0);
	REFUSE(bytes, UINT64_C(1) << 63);
#undef REFUSE
	assert_int_equal(take(false, &ok, S), 0);
}

/* A file keeps its layout. */
static void changed(void **state)
{
	VOLLAYOUTresok ok = layout(1, 5), other = ok;

	(void)state;
	assert_int_equal(take(false, &ok, S), 0);
	other.unit = 1 << 20;
	assert_int_equal(take(false, &other, S), -EREMOTEIO);
	other = ok;
	other.stripes.stripes_len = 2;
	assert_int_equal(take(false, &other, S), -EREMOTEIO);
	other = ok;
	other.object[0] = 'x';
	assert_int_equal(take(false, &other, S), -EREMOTEIO);
	assert_int_equal(file->layout.width, 3);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = { TEST(shared), TEST(lifetimes), TEST(epochs), TEST(impossible), TEST(changed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
