/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_capture.c - leat dump of a captured conversation with the manager of a volume: its lines, and what it reports of
 * a broken one
 *
 * Every procedure is called over the local fabric while the manager captures it: nothing in it is broken. Then single
 * words of its calls and replies are changed, and the check must report the rule that this breaks.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "conf.h"
#include "leat.h"
#include "leat_volume.h"
#include "volume_rig.h"
#include "volumes.h"
#include "tests/lib/sick_words.h"

LOG_DEFINE("test_volume_capture");

static char path[] = "/tmp/volume-capture.XXXXXX";
static struct image captured;

/* ---- the conversation ---- */

static void capture_in(struct conf *conf)
{
	conf->capture = strdup(path);
}

static int see_work(void *ctx, const unsigned char object[16], enum leat_volume_todo todo)
{
	(void)ctx;
	(void)object;
	(void)todo;
	return 0;
}

static void talk(void)
{
	struct leat_volume_defaults d = { .size = sizeof(d), .stripe = 131072, .width = 2 };
	struct leat *m = volume_rig_mount(NULL);
	struct leat_volume_layout *l;
	struct leat_volume_key *key;
	struct leat_file *f;
	char why[256];

	assert_int_equal(leat_mkdir(m, "d", 0755), 0);
	assert_int_equal(leat_volume_set_defaults(m, "d", &d), 0);
	assert_int_equal(leat_volume_create_file(m, "d/f", 0644, &d), 0);
	assert_int_equal(leat_volume_create_file(m, "d/f", 0644, &d), -EEXIST);
	f = volume_rig_open(m, "d/f", O_RDWR);
	assert_int_equal(leat_pwrite(f, "abcde", 5, 0), 5);
	assert_int_equal(leat_close(f), 0);
	f = volume_rig_open(m, "d/f", O_WRONLY | O_APPEND);
	assert_int_equal(leat_write(f, "fgh", 3), 3);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_volume_layout(m, "d/f", &l), 0);
	assert_int_equal(l->bytes, 8);
	leat_volume_layout_free(l);
	if (leat_volume_key_read(tmp_dir_path(&volume_rig.dir, "key"), &key, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(leat_volume_pending(m, key, see_work, NULL, NULL), 0);
	leat_volume_key_free(key);
	leat_umount(m);
}

static int capture(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	volume_rig_tune = capture_in;
	volume_rig_start(false, "stripe=64K");
	talk();
	volume_rig_stop();
	sick_words_load(path, &captured);
	unlink(path);
	return 0;
}

static int discard(void **state)
{
	(void)state;
	image_fini(&captured);
	return 0;
}

/* ---- its lines ---- */

static void keeps_the_rules(void **state)
{
	static const char *const lines[] = {
		" VOLUME MAP\n", " VOLUME MAP VOLUME_OK entries=4 unit=65536 width=4",
		" VOLUME SET unit=131072 width=2\n", " VOLUME SET VOLUME_OK unit=131072 width=2\n",
		" VOLUME CREATE unit=131072 width=2\n", " VOLUME CREATE VOLUME_OK unit=131072 width=2\n",
		" VOLUME CREATE VOLUME_ERR_EXIST\n", " VOLUME LAYOUT rights=w lease\n",
		" VOLUME LAYOUT VOLUME_OK length=0 epoch=1 unit=131072 width=2 lease", " VOLUME LAYOUT rights=r\n",
		" VOLUME REPORT length=5 lease wrote last\n", " VOLUME REPORT VOLUME_OK length=5\n",
		" VOLUME RESERVE offset=5 length=3\n", " VOLUME RESERVE VOLUME_OK offset=5\n",
		" VOLUME LAYOUT VOLUME_OK length=8 epoch=1 unit=131072 width=2", " VOLUME CHECK\n",
		" VOLUME CHECK VOLUME_OK entries=0 eof=1",
	};

	(void)state;
	sick_words_lines(&captured, lines, ARRAY_SIZE(lines));
}

/* ---- broken ones ---- */

#define HANDLE STRIPE_HANDLE_BYTES

static const struct sick_word sick[] = {
	{ "volume-field: a file handle", "volume-length", VOLUMEPROC_MAP, 0, SICK_ARGS, 0, 65 },
	{ "volume-field: rights", NULL, VOLUMEPROC_LAYOUT, 0, SICK_BEHIND_FH, 0, 4 },
	{ "volume-field: flags", NULL, VOLUMEPROC_REPORT, 0, SICK_BEHIND_FH, HANDLE + 16, 4 },
	{ "volume-field: an empty range", NULL, VOLUMEPROC_RESERVE, 0, SICK_BEHIND_FH, HANDLE + 20, 0 },
	{ "volume-field: a name", "volume-length", VOLUMEPROC_CREATE, 0, SICK_BEHIND_FH, 0, 256 },
	{ "volume-field: a bool", NULL, VOLUMEPROC_CHECK, 0, SICK_BEHIND_FH, STRIPE_COMMAND_BYTES + STRIPE_OBJECT_BYTES, 2 },
	{ "volume-length", NULL, VOLUMEPROC_CREATE, 0, SICK_BEHIND_FH, 0, 5 },
	{ "volume-field: an unknown status", "volume-length", VOLUMEPROC_REPORT, 0, SICK_RESULTS, 0, VOLUME_ERR_EXIST + 1 },
	{ "volume-length", NULL, VOLUMEPROC_REPORT, 0, SICK_RESULTS, 0, VOLUME_ERR_IO },
	{ "volume-field: a file of this length", NULL, VOLUMEPROC_REPORT, 0, SICK_RESULTS, 4, 0x80000000 },
	{ "volume-field: a stripe unit", NULL, VOLUMEPROC_SET, 0, SICK_RESULTS, 4, 65537 },
	{ "volume-field: a stripe unit", NULL, VOLUMEPROC_CREATE, 0, SICK_RESULTS, 4, 0 },
	{ "volume-field: a width", NULL, VOLUMEPROC_CREATE, 0, SICK_RESULTS, 8, 0 },
	{ "volume-field: a width", NULL, VOLUMEPROC_SET, 0, SICK_RESULTS, 8, 257 },
	{ "volume-field: epoch 0", NULL, VOLUMEPROC_LAYOUT, 0, SICK_RESULTS, 4 + 8 + 16 + 4, 0 },
	{ "volume-field: a stripe unit", NULL, VOLUMEPROC_LAYOUT, 0, SICK_RESULTS, 4 + 8 + 16 + 8, 32768 },
	{ "volume-field: server 0", NULL, VOLUMEPROC_LAYOUT, 0, SICK_RESULTS, 4 + 8 + 16 + 8 + 12 + 8 + 4, 0 },
	{ "volume-field: a list", "volume-length", VOLUMEPROC_CHECK, 0, SICK_RESULTS, 4 + 4 + 4 + 16, 65 },
	{ "volume-field: a bool", NULL, VOLUMEPROC_CHECK, 0, SICK_RESULTS, 4, 2 },
};

static void each_rule(void **state)
{
	(void)state;
	sick_words_found(&captured, LEAT_VOLUME, sick, ARRAY_SIZE(sick));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_rules), cmocka_unit_test(each_rule),
	};

	return cmocka_run_group_tests_name("volume capture", tests, capture, discard);
}
