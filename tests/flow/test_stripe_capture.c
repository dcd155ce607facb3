/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_stripe_capture.c - leat dump of a captured conversation about stripes: its lines, and what it reports of a broken one
 *
 * Every procedure is called over the local fabric while the server captures it: nothing in it is broken. Then single
 * words of its calls and replies are changed, and the check must report the rule that this breaks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "stripe_rig.h"
#include "tests/lib/sick_words.h"

static char path[] = "/tmp/stripe-capture.XXXXXX";
static struct image captured;

/* ---- the conversation ---- */

static uint8_t mem[1 << 20];

static void talk(void)
{
	const stripe_name name = stripe_rig_name(1, 2), other = stripe_rig_name(1, 3);
	stripe_entry list[STRIPE_LIST_MAX];
	struct stripe_client c;
	unsigned many;
	uint32_t n;
	bool eof;

	stripe_connect(&c, 1, 3, &name);
	assert_int_equal(stripe_info(&c, NULL), STRIPE_OK);
	assert_int_equal(stripe_stat_of(&c, &name, NULL), STRIPE_OK);
	assert_int_equal(stripe_write(&c, 0, mem, 512, false), STRIPE_OK);
	assert_int_equal(stripe_write(&c, 8192, mem, sizeof(mem), true), STRIPE_OK);
	assert_int_equal(stripe_read(&c, 0, mem, 512, &n, &eof), STRIPE_OK);
	assert_int_equal(stripe_read(&c, 4096, mem, sizeof(mem), &n, &eof), STRIPE_OK);
	assert_int_equal(stripe_read(&c, 1 << 30, mem, sizeof(mem), &n, &eof), STRIPE_OK);
	assert_int_equal(stripe_commit(&c), STRIPE_OK);
	assert_int_equal(stripe_fence(&c, &name, 2, &(uint64_t){ 4096 }, NULL), STRIPE_OK);
	assert_int_equal(stripe_write(&c, 0, mem, 512, false), STRIPE_ERR_FENCED);
	assert_int_equal(stripe_remove(&c, &other, (uint64_t)time(NULL) + 1000, NULL), STRIPE_OK);
	assert_int_equal(stripe_list(&c, NULL, list, &many, &eof), STRIPE_OK);
	assert_int_equal(many, 2);
	stripe_rig.term = 0;
	assert_int_equal(stripe_stat_of(&c, &name, NULL), STRIPE_ERR_OLDTERM);
	assert_int_equal(stripe_list(&c, NULL, list, &many, &eof), STRIPE_ERR_OLDTERM);
	stripe_close(&c);
}

static int capture(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	stripe_rig_capture = path;
	assert_int_equal(stripe_rig_start(""), 0);
	talk();
	stripe_rig_stop();
	stripe_rig_capture = NULL;
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
		" STRIPES INFO\n", " STRIPES INFO STRIPE_OK\n", " STRIPES STAT STRIPE_OK epoch=1\n",
		" STRIPES WRITE offset=0 length=512 lane=3/1\n", " STRIPES WRITE offset=8192 length=1048576 lane=3/1 sync\n",
		" STRIPES WRITE STRIPE_OK read=1048576/", " STRIPES READ offset=4096 count=1048576 lane=3/1\n",
		" STRIPES READ STRIPE_OK length=1048576 eof=0 written=1048576/", " STRIPES READ STRIPE_OK length=0 eof=1",
		" STRIPES COMMIT lane=3/1\n", " STRIPES COMMIT STRIPE_OK\n", " STRIPES FENCE length=4096 epoch=2\n",
		" STRIPES FENCE STRIPE_OK epoch=2\n", " STRIPES WRITE STRIPE_ERR_FENCED", " STRIPES REMOVE STRIPE_OK epoch=1\n",
		" STRIPES LIST STRIPE_OK entries=2 eof=1\n", " STRIPES STAT STRIPE_ERR_OLDTERM\n", " STRIPES LIST STRIPE_ERR_OLDTERM\n",
	};

	(void)state;
	sick_words_lines(&captured, lines, ARRAY_SIZE(lines));
}

/* ---- broken ones ---- */

#define AT 84	   /* bytes of handle and lane */
#define COMMAND 64 /* of command and name */

static const struct sick_word sick[] = {
	{ "stripe-field: a lane beyond", NULL, STRIPEPROC_READ, 0, SICK_ARGS, AT - 8, 1024 },
	{ "stripe-field: incarnation 0", NULL, STRIPEPROC_COMMIT, 0, SICK_ARGS, AT - 4, 0 },
	{ "stripe-field: a bool", NULL, STRIPEPROC_WRITE, 0, SICK_ARGS, AT + 8, 2 },
	{ "stripe-field: more data", "read-chunk-length", STRIPEPROC_WRITE, 1, SICK_ARGS, AT + 12, (1 << 20) + 1 },
	{ "stripe-field: an epoch below 2", "stripe-epoch", STRIPEPROC_FENCE, 0, SICK_ARGS, COMMAND + 4, 1 },
	{ "stripe-field: a bool", NULL, STRIPEPROC_FENCE, 0, SICK_ARGS, COMMAND + 8, 2 },
	{ "stripe-field: a bool", NULL, STRIPEPROC_LIST, 0, SICK_ARGS, COMMAND, 7 },
	{ "read-chunk-length", NULL, STRIPEPROC_WRITE, 1, SICK_ARGS, AT + 12, 4096 },
	{ "call-length", NULL, STRIPEPROC_WRITE, 0, SICK_ARGS, AT + 12, 4096 },
	{ "stripe-count", NULL, STRIPEPROC_READ, 1, SICK_ARGS, AT + 8, 4096 },
	{ "stripe-count", "write-chunk-length", STRIPEPROC_READ, 1, SICK_RESULTS, 8, 0 },
	{ "stripe-field: a bool", NULL, STRIPEPROC_READ, 1, SICK_RESULTS, 4, 3 },
	{ "stripe-field: an unknown status", "stripe-length", STRIPEPROC_COMMIT, 0, SICK_RESULTS, 0, STRIPE_ERR_LATER + 1 },
	{ "stripe-length", NULL, STRIPEPROC_COMMIT, 0, SICK_RESULTS, 0, STRIPE_ERR_IO },
	{ "stripe-epoch", NULL, STRIPEPROC_FENCE, 0, SICK_RESULTS, 4 + 20, 3 },
	{ "stripe-field: server 0", NULL, STRIPEPROC_INFO, 0, SICK_RESULTS, 4, 0 },
	{ "stripe-field: more free bytes", NULL, STRIPEPROC_INFO, 0, SICK_RESULTS, 4 + 4 + 16 + 8, 0x7fffffff },
	{ "stripe-field: more used bytes", NULL, STRIPEPROC_INFO, 0, SICK_RESULTS, 4 + 4 + 16 + 16, 0x7fffffff },
	{ "stripe-field: bytes of an object", NULL, STRIPEPROC_STAT, 0, SICK_RESULTS, 4 + 4, 1 },
	{ "stripe-field: an epoch of an object", NULL, STRIPEPROC_STAT, 0, SICK_RESULTS, 4 + 20, 2 },
	{ "stripe-field: a tombstone", NULL, STRIPEPROC_STAT, 0, SICK_RESULTS, 4 + 36, 1 },
	{ "stripe-field: an object of this length", NULL, STRIPEPROC_FENCE, 0, SICK_RESULTS, 4, 0x80000000 },
	{ "stripe-field: a list", NULL, STRIPEPROC_LIST, 0, SICK_RESULTS, 4, 65 },
};

static void each_rule(void **state)
{
	(void)state;
	sick_words_found(&captured, LEAT_STRIPES, sick, ARRAY_SIZE(sick));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_rules), cmocka_unit_test(each_rule),
	};

	return cmocka_run_group_tests_name("stripe capture", tests, capture, discard);
}
