/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_capture.c - leat dump of a captured conversation about a block volume: its lines, and what it reports of a
 *                        broken one
 *
 * Every procedure is called over the local fabric while the server captures it: nothing in it is broken. Then single
 * words of its calls and replies are changed, and the check must report the rule that this breaks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "block_rig.h"
#include "tests/lib/sick_words.h"

static char path[] = "/tmp/block-capture.XXXXXX";
static struct image captured;

/* ---- the conversation ---- */

static uint8_t mem[1 << 20];

static void call(struct block_client *c, uint32_t proc, struct block_rig_call *call, block_status want)
{
	block_begin(c, call, proc, NULL, 0);
	assert_int_equal(block_end(call), want);
}

static void change(struct block_client *c, uint32_t proc, uint64_t off, uint64_t bytes, block_status want)
{
	struct block_rig_call a = { .args.zero = { .offset = off, .length = bytes } };

	call(c, proc, &a, want);
}

static void list(struct block_client *c)
{
	struct block_rig_call l = { .args.list.after = (char *)(uintptr_t)"" };
	struct block_rig_call i = { .args.info = { .volume = (char *)(uintptr_t)"vol", .after = (char *)(uintptr_t)"" } };

	call(c, BLOCKPROC_LIST, &l, BLOCK_OK);
	xdr_free((xdrproc_t)xdr_BLOCKLISTres, (char *)&l.res.list);
	call(c, BLOCKPROC_INFO, &i, BLOCK_OK);
	xdr_free((xdrproc_t)xdr_BLOCKINFOres, (char *)&i.res.info);
}

static void tell_extents(struct block_client *c)
{
	struct block_rig_call a = { .args.range = { .offset = 0, .length = 1 << 20 } };

	call(c, BLOCKPROC_EXTENTS, &a, BLOCK_OK);
	xdr_free((xdrproc_t)xdr_BLOCKEXTENTSres, (char *)&a.res.extents);
}

static void talk(void)
{
	struct block_client a, b;

	block_connect(&a, 1, 3);
	block_connect(&b, 2, 0);
	list(&a);
	assert_int_equal(block_attach(&a, "vol", "first", 0, NULL), BLOCK_OK);
	assert_int_equal(block_attach(&b, "vol", "second", 0, NULL), BLOCK_ERR_BUSY);
	assert_int_equal(block_write(&a, 0, mem, 512, false), BLOCK_OK);
	assert_int_equal(block_write(&a, 8192, mem, 1 << 20, true), BLOCK_OK);
	assert_int_equal(block_read(&a, 0, mem, 512), BLOCK_OK);
	assert_int_equal(block_read(&a, 4096, mem, 1 << 20), BLOCK_OK);
	assert_int_equal(block_read(&a, 1, mem, 512), BLOCK_ERR_INVAL);
	assert_int_equal(block_flush(&a), BLOCK_OK);
	change(&a, BLOCKPROC_ZERO, 65536, 4096, BLOCK_OK);
	change(&a, BLOCKPROC_DISCARD, BLOCK_RIG_BYTES, 512, BLOCK_ERR_NOSPC);
	tell_extents(&a);
	list(&b);
	assert_int_equal(block_detach(&a), BLOCK_OK);
	block_close(&a);
	block_close(&b);
}

static int capture(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	block_rig_capture = path;
	assert_int_equal(block_rig_start((const char *const[]){ "vol=a", "other=b,ro", NULL }), 0);
	talk();
	block_rig_stop();
	block_rig_capture = NULL;
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
		" BLOCK LIST\n", " BLOCK LIST BLOCK_OK entries=2 eof=1\n", " BLOCK INFO BLOCK_OK entries=0 eof=1\n",
		" BLOCK ATTACH lane=3/1\n", " BLOCK ATTACH BLOCK_OK\n", " BLOCK ATTACH BLOCK_ERR_BUSY\n",
		" BLOCK WRITE offset=0 length=512 lane=3/1\n", " BLOCK WRITE offset=8192 length=1048576 lane=3/1 fua\n",
		" BLOCK WRITE BLOCK_OK read=1048576/", " BLOCK READ offset=4096 count=1048576 lane=3/1\n",
		" BLOCK READ BLOCK_OK length=1048576 written=1048576/", " BLOCK READ BLOCK_ERR_INVAL\n",
		" BLOCK FLUSH lane=3/1\n", " BLOCK FLUSH BLOCK_OK\n", " BLOCK ZERO offset=65536 length=4096 lane=3/1\n",
		" BLOCK DISCARD BLOCK_ERR_NOSPC\n", " BLOCK EXTENTS offset=0 length=1048576 lane=3/1\n",
		" BLOCK EXTENTS BLOCK_OK length=", " BLOCK INFO BLOCK_OK entries=1 eof=1\n", " BLOCK DETACH BLOCK_OK\n",
	};

	(void)state;
	sick_words_lines(&captured, lines, ARRAY_SIZE(lines));
}

/* ---- broken ones ---- */

/* Bytes of handle and lane in arguments */
#define AT 48

static const struct sick_word sick[] = {
	{ "block-field: a lane beyond", NULL, BLOCKPROC_READ, 0, SICK_ARGS, AT - 8, BLOCK_LANES_MAX },
	{ "block-field: incarnation 0", NULL, BLOCKPROC_FLUSH, 0, SICK_ARGS, AT - 4, 0 },
	{ "block-field: a bool", NULL, BLOCKPROC_WRITE, 0, SICK_ARGS, AT + 8, 2 },
	{ "block-field: more data", "read-chunk-length", BLOCKPROC_WRITE, 1, SICK_ARGS, AT + 12, (1 << 20) + 1 },
	{ "block-field: the volume's name", NULL, BLOCKPROC_ATTACH, 0, SICK_ARGS, 0, 64 },
	{ "block-field: the volume's name", NULL, BLOCKPROC_INFO, 0, SICK_ARGS, 0, 0 },
	{ "block-field: unknown flags", NULL, BLOCKPROC_ATTACH, 0, SICK_ARGS, 8 + 12 + 4 + 8, 4 },
	{ "block-field: incarnation 0", NULL, BLOCKPROC_ATTACH, 1, SICK_ARGS, 8 + 12 + 4 + 8 + 4 + 12, 0 },
	{ "block-length", NULL, BLOCKPROC_LIST, 0, SICK_ARGS, 0, 4 },
	/* a call of another procedure: arguments of another length, and data where none may move */
	{ "block-length", NULL, BLOCKPROC_ZERO, 0, SICK_PROC, 0, BLOCKPROC_DISCARD },
	{ "eligible", "", BLOCKPROC_WRITE, 1, SICK_PROC, 0, BLOCKPROC_ZERO },
	{ "write-chunk-length", "", BLOCKPROC_READ, 1, SICK_PROC, 0, BLOCKPROC_FLUSH },
	/* data and its lengths */
	{ "read-chunk-length", NULL, BLOCKPROC_WRITE, 1, SICK_ARGS, AT + 12, 4096 },
	{ "call-length", NULL, BLOCKPROC_WRITE, 0, SICK_ARGS, AT + 12, 4096 },
	{ "room", NULL, BLOCKPROC_READ, 1, SICK_ARGS, AT + 8, 2 << 20 },
	{ "block-count", NULL, BLOCKPROC_READ, 1, SICK_ARGS, AT + 8, 4096 },
	{ "write-chunk-length", NULL, BLOCKPROC_READ, 1, SICK_RESULTS, 4, 4096 },
	{ "block-count", "write-chunk-length", BLOCKPROC_READ, 1, SICK_RESULTS, 4, 0 },
	{ "reply-length", "", BLOCKPROC_READ, 0, SICK_RESULTS, 4, 516 },
	/* replies */
	{ "block-field: an unknown status", "block-length", BLOCKPROC_FLUSH, 0, SICK_RESULTS, 0, BLOCK_ERR_NOHOLDER + 1 },
	{ "block-length", NULL, BLOCKPROC_FLUSH, 0, SICK_RESULTS, 0, BLOCK_ERR_IO },
	{ "block-length", NULL, BLOCKPROC_ATTACH, 1, SICK_RESULTS, 0, BLOCK_ERR_ACCES },
	{ "block-field: the volume's name", NULL, BLOCKPROC_ATTACH, 0, SICK_RESULTS, 4 + 32, 64 },
	{ "block-field: a block size", NULL, BLOCKPROC_ATTACH, 0, SICK_RESULTS, 4 + 32 + 8 + 8, 513 },
	{ "block-field: a size of part", NULL, BLOCKPROC_ATTACH, 0, SICK_RESULTS, 4 + 32 + 8 + 4, 1 },
	{ "block-field: unknown flags", NULL, BLOCKPROC_ATTACH, 0, SICK_RESULTS, 4 + 32 + 8 + 16, 64 },
	{ "block-field: a list", NULL, BLOCKPROC_LIST, 0, SICK_RESULTS, 4, 65 },
	{ "block-field: a holder's name", NULL, BLOCKPROC_ATTACH, 1, SICK_RESULTS, 4, 0 },
	{ "block-field: a list", NULL, BLOCKPROC_EXTENTS, 0, SICK_RESULTS, 4, 0 },
	{ "block-field: a list", NULL, BLOCKPROC_EXTENTS, 0, SICK_RESULTS, 4, 257 },
	{ "block-field: an extent of this length", NULL, BLOCKPROC_EXTENTS, 0, SICK_RESULTS, 12, 0 },
	{ "block-field: an extent of an unknown kind", NULL, BLOCKPROC_EXTENTS, 0, SICK_RESULTS, 16, 3 },
	{ "block-range", NULL, BLOCKPROC_EXTENTS, 0, SICK_ARGS, AT + 12, 512 },
	{ "block-range", NULL, BLOCKPROC_ZERO, 0, SICK_ARGS, AT + 8, 1 },
	{ "block-range", NULL, BLOCKPROC_ZERO, 0, SICK_ARGS, AT + 12, 0 },
};

static void each_rule(void **state)
{
	(void)state;
	sick_words_found(&captured, LEAT_BLOCK, sick, ARRAY_SIZE(sick));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_rules), cmocka_unit_test(each_rule),
	};

	return cmocka_run_group_tests_name("block capture", tests, capture, discard);
}
