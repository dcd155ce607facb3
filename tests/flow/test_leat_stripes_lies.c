/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_stripes_lies.c - managers and stripe servers of a volume whose replies are wrong, or come in another order
 *
 * Replies are changed when the client decodes them.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "leat_flow.h"
#include "leat_volume.h"
#include "stripes.h"
#include "volume_rig.h"
#include "volumes.h"

LOG_DEFINE("test");

#define UNIT 65536u
#define BYTES (8u * UNIT)

static uint8_t data[BYTES], to[2 * BYTES];
static struct leat *m;

/* ---- what replies are made of; NULL: what the servers say ---- */

static void (*_Atomic lie_layout)(VOLLAYOUTresok *ok);
static void (*_Atomic lie_map)(VOLMAPresok *ok);
static void (*_Atomic lie_report)(VOLREPORTresok *ok);
static void (*_Atomic lie_reserve)(VOLRESERVEresok *ok);
static void (*_Atomic lie_read)(STRIPEREADres *res);
static void (*_Atomic lie_change)(STRIPECHANGEres *res);
static atomic_uint layouts;

#define WRAP(type, lie, is_ok, arg)                                                                             \
	bool_t __real_xdr_##type(XDR *xdrs, type *res);                                                         \
	bool_t __wrap_xdr_##type(XDR *xdrs, type *res);                                                         \
	bool_t __wrap_xdr_##type(XDR *xdrs, type *res)                                                          \
	{                                                                                                       \
		if (!__real_xdr_##type(xdrs, res))                                                              \
			return FALSE;                                                                           \
		if (xdrs->x_op == XDR_DECODE && (is_ok) && lie)                                                 \
			lie(arg);                                                                               \
		return TRUE;                                                                                    \
	}

WRAP(VOLLAYOUTres, lie_layout, !res->status, &res->VOLLAYOUTres_u.resok)
WRAP(VOLMAPres, lie_map, !res->status, &res->VOLMAPres_u.resok)
WRAP(VOLREPORTres, lie_report, !res->status, &res->VOLREPORTres_u.resok)
WRAP(VOLRESERVEres, lie_reserve, !res->status, &res->VOLRESERVEres_u.resok)
WRAP(STRIPEREADres, lie_read, true, res)
WRAP(STRIPECHANGEres, lie_change, true, res)

/* ---- files ---- */

static struct leat_file *make_file(const char *name)
{
	struct leat_file *f;

	if (leat_open(m, name, O_RDWR | O_CREAT, 0644, &f))
		fail_msg("%s", leat_error(m));
	return f;
}

static void write_file(struct leat_file *f)
{
	if (leat_pwrite(f, data, BYTES, 0) != BYTES)
		fail_msg("%s", leat_error(m));
}

static void expect_error(const char *text)
{
	if (!strstr(leat_error(m), text))
		fail_msg("not '%s', but: %s", text, leat_error(m));
}

/* ---- layouts ---- */

static void is_late(VOLLAYOUTresok *ok)
{
	ok->epoch += atomic_fetch_add(&layouts, 1) == 1 ? 1 : 2;
}

static void is_always_late(VOLLAYOUTresok *ok)
{
	unsigned n = atomic_fetch_add(&layouts, 1);

	ok->epoch += n && n < 10 ? 1 : 2; /* the test ends also for a client that asks again without end */
}

/* The second layout is older than the first one, and has the only handles to write. It is asked for once more. */
static void layout_came_late(void **state)
{
	struct leat_file *f = make_file("late");

	(void)state;
	atomic_store(&layouts, 0);
	lie_layout = is_late;
	assert_int_equal(leat_pread(f, to, 1, 0), 0);
	write_file(f);
	assert_int_equal(atomic_load(&layouts), 3);
	lie_layout = NULL;
	assert_int_equal(leat_close(f), 0);
	f = make_file("later");
	atomic_store(&layouts, 0);
	lie_layout = is_always_late;
	assert_int_equal(leat_pread(f, to, 1, 0), 0);
	assert_int_equal(leat_pwrite(f, data, 1, 0), -ESTALE);
	expect_error("older layout");
	assert_int_equal(atomic_load(&layouts), 3);
	lie_layout = NULL;
	assert_int_equal(leat_close(f), 0);
}

/* The same of an append. */
static void layout_of_append(void **state)
{
	struct leat_file *f;

	(void)state;
	assert_int_equal(leat_open(m, "append", O_RDWR | O_CREAT | O_APPEND, 0644, &f), 0);
	atomic_store(&layouts, 0);
	lie_layout = is_late;
	assert_int_equal(leat_pread(f, to, 1, 0), 0);
	if (leat_write(f, data, 1) != 1)
		fail_msg("%s", leat_error(m));
	assert_int_equal(atomic_load(&layouts), 3);
	lie_layout = NULL;
	assert_int_equal(leat_close(f), 0);
}

static void is_cut(VOLLAYOUTresok *ok)
{
	ok->epoch++;
	ok->bytes = 0;
}

/* What was written before a cut does not make the file longer afterwards. */
static void cut_after_write(void **state)
{
	struct leat_file *f = make_file("cut");
	struct stat st;

	(void)state;
	write_file(f);
	assert_int_equal(leat_fstat(f, &st), 0);
	assert_int_equal(st.st_size, BYTES);
	lie_layout = is_cut;
	assert_int_equal(leat_pread(f, to, BYTES, 0), 0);
	lie_layout = NULL;
	assert_int_equal(leat_close(f), 0);
}

/* ---- sizes ---- */

static void is_endless(VOLREPORTresok *ok)
{
	ok->bytes = UINT64_MAX;
}

static void report_says_anything(void **state)
{
	struct leat_file *f = make_file("endless");

	(void)state;
	lie_report = is_endless;
	write_file(f);
	assert_int_equal(leat_fsync(f), 0);
	assert_int_equal(leat_pread(f, to, sizeof(to), 0), BYTES);
	assert_memory_equal(to, data, BYTES);
	assert_int_equal(leat_close(f), 0);
	lie_report = NULL;
}

static void is_inside(VOLRESERVEresok *ok)
{
	ok->offset--;
}

static void is_beyond(VOLRESERVEresok *ok)
{
	ok->offset = INT64_MAX;
}

/* A range that lies in what is written, or beyond any file, gets no data. */
static void impossible_ranges(void **state)
{
	struct leat_file *f;

	(void)state;
	assert_int_equal(leat_open(m, "log", O_RDWR | O_CREAT | O_APPEND, 0644, &f), 0);
	assert_int_equal(leat_write(f, "abc", 3), 3);
	lie_reserve = is_inside;
	assert_int_equal(leat_write(f, "d", 1), -EREMOTEIO);
	lie_reserve = is_beyond;
	assert_int_equal(leat_write(f, "d", 1), -EREMOTEIO);
	lie_reserve = NULL;
	assert_int_equal(leat_pread(f, to, 3, 0), 3);
	assert_memory_equal(to, "abc", 3);
	assert_int_equal(leat_close(f), 0);
}

/* ---- stripe servers ---- */

static void is_short(STRIPEREADres *res)
{
	if (res->status)
		return;
	res->STRIPEREADres_u.resok.data.length = 0;
	res->STRIPEREADres_u.resok.eof = FALSE;
}

static void is_unknown(STRIPEREADres *res)
{
	res->status = 999;
}

static void has_new_verifier(STRIPECHANGEres *res)
{
	static uint64_t verf;

	if (!res->status)
		res->STRIPECHANGEres_u.verf = ++verf;
}

static void stripe_servers(void **state)
{
	struct leat_file *f = make_file("servers");

	(void)state;
	write_file(f);
	assert_int_equal(leat_fsync(f), 0);
	lie_read = is_short;
	assert_int_equal(leat_pread(f, to, BYTES, 0), -EIO);
	expect_error("0 bytes in reply");
	lie_read = is_unknown;
	assert_int_equal(leat_pread(f, to, BYTES, 0), -EREMOTEIO);
	lie_read = NULL;
	lie_change = has_new_verifier;
	write_file(f);
	assert_int_equal(leat_fsync(f), -EIO);
	expect_error("lost data");
	lie_change = NULL;
	assert_int_equal(leat_close(f), -EIO);
}

/* ---- maps ---- */

static const char *lied_url;

static void names_url(VOLMAPresok *ok)
{
	free(ok->servers.servers_val[0].url);
	ok->servers.servers_val[0].url = strdup(lied_url);
	assert_non_null(ok->servers.servers_val[0].url);
}

static void has_no_id(VOLMAPresok *ok)
{
	ok->servers.servers_val[1].id = 0;
}

static void refuse_map(void (*lie)(VOLMAPresok *ok))
{
	struct leat_volume_map *map;
	struct leat *other;

	lie_map = lie;
	assert_int_equal(leat_mount(volume_rig.url, NULL, &other), -EREMOTEIO);
	if (!strstr(leat_error(NULL), "the map of the volume"))
		fail_msg("%s", leat_error(NULL));
	if (lie == names_url)
		assert_int_equal(leat_volume_map(m, &map), -EREMOTEIO);
	lie_map = NULL;
}

/* Programs connect to what a map names, and print it. */
static void maps(void **state)
{
	static const char *const urls[] = { "", "tcp://", "tcp://host:1?timeo=1", "tcp://host:1/x", "local://sock",
					    "local:///sock?x", "tcp://\033[2Jhost", "ftp://host" };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(urls); i++) {
		lied_url = urls[i];
		refuse_map(names_url);
	}
	refuse_map(has_no_id);
}

static int setup(void **state)
{
	(void)state;
	leat_flow_fill(data, sizeof(data), 1);
	volume_rig_start(false, "stripe=64K");
	m = volume_rig_mount(NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_umount(m);
	volume_rig_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout_came_late), cmocka_unit_test(layout_of_append),
		cmocka_unit_test(cut_after_write), cmocka_unit_test(report_says_anything),
		cmocka_unit_test(impossible_ranges),
		cmocka_unit_test(stripe_servers),   cmocka_unit_test(maps),
	};

	(void)alarm(90); /* a client that a lie has broken may leave calls that never end */
	return cmocka_run_group_tests(tests, setup, teardown);
}
