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
#include "base/wire.h"
#include "block_rig.h"
#include "tests/lib/dump_session.h"

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

static void load(struct image *ret)
{
	FILE *f = fopen(path, "re");
	long len;

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	len = ftell(f);
	rewind(f);
	*ret = (struct image){ malloc((size_t)len), (size_t)len };
	assert_non_null(ret->bytes);
	assert_int_equal(fread(ret->bytes, 1, ret->len, f), ret->len);
	fclose(f);
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
	load(&captured);
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
	static const struct dump_options all = { .lines = true, .check = true };
	struct dump d;
	char *text;
	int rc;

	(void)state;
	text = image_dump(&captured, &all, &rc, &d);
	assert_int_equal(rc, 0);
	if (d.broken)
		print_error("%s", text);
	assert_int_equal(d.broken, 0);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		if (!strstr(text, lines[i]))
			fail_msg("no '%s' in:\n%s", lines[i], text);
	}
	free(text);
}

/* ---- broken ones ---- */

/* Offset of the arguments of the @nth call of @proc, and its XID */
static size_t find_call(uint32_t proc, unsigned nth, uint32_t *ret_xid)
{
	uint8_t head[12];

	put_be32(head, LEAT_BLOCK);
	put_be32(head + 4, LEAT_BLOCK_V1);
	put_be32(head + 8, proc);
	for (size_t at = 12; at + 64 < captured.len; at++) {
		const uint8_t *p = captured.bytes + at;
		size_t cred;

		if (memcmp(p, head, sizeof(head)) || nth--)
			continue;
		*ret_xid = get_be32(p - 12);
		cred = 8 + round_up4(get_be32(p + 16));
		return at + 12 + cred + 8; /* an empty verifier */
	}
	fail_msg("no call of %u", proc);
	return 0;
}

/* Offset of the status */
static size_t find_reply(uint32_t proc, unsigned nth)
{
	uint8_t head[24] = { 0 };
	uint32_t xid;
	size_t at = find_call(proc, nth, &xid);

	put_be32(head, xid);
	put_be32(head + 4, 1);
	for (; at + sizeof(head) < captured.len; at++) {
		if (!memcmp(captured.bytes + at, head, sizeof(head)))
			return at + sizeof(head);
	}
	fail_msg("no reply of %u", proc);
	return 0;
}

/* Bytes of handle and lane in arguments */
#define AT 48

/* One word that is changed: at an offset from the arguments or the status */
static const struct {
	const char *rule, *also;
	uint32_t proc;
	unsigned nth;
	bool reply;
	int at;
	uint32_t value;
} sick[] = {
	{ "block-field: a lane beyond", NULL, BLOCKPROC_READ, 0, false, AT - 8, BLOCK_LANES_MAX },
	{ "block-field: incarnation 0", NULL, BLOCKPROC_FLUSH, 0, false, AT - 4, 0 },
	{ "block-field: a bool", NULL, BLOCKPROC_WRITE, 0, false, AT + 8, 2 },
	{ "block-field: more data", "read-chunk-length", BLOCKPROC_WRITE, 1, false, AT + 12, (1 << 20) + 1 },
	{ "block-field: the volume's name", NULL, BLOCKPROC_ATTACH, 0, false, 0, 64 },
	{ "block-field: the volume's name", NULL, BLOCKPROC_INFO, 0, false, 0, 0 },
	{ "block-field: unknown flags", NULL, BLOCKPROC_ATTACH, 0, false, 8 + 12 + 4 + 8, 4 },
	{ "block-field: incarnation 0", NULL, BLOCKPROC_ATTACH, 1, false, 8 + 12 + 4 + 8 + 4 + 12, 0 },
	{ "block-length", NULL, BLOCKPROC_LIST, 0, false, 0, 4 },
	/* a call of another procedure: arguments of another length, and data where none may move */
	{ "block-length", NULL, BLOCKPROC_ZERO, 0, false, -1, BLOCKPROC_DISCARD },
	{ "eligible", "", BLOCKPROC_WRITE, 1, false, -1, BLOCKPROC_ZERO },
	{ "write-chunk-length", "", BLOCKPROC_READ, 1, false, -1, BLOCKPROC_FLUSH },
	/* data and its lengths */
	{ "read-chunk-length", NULL, BLOCKPROC_WRITE, 1, false, AT + 12, 4096 },
	{ "call-length", NULL, BLOCKPROC_WRITE, 0, false, AT + 12, 4096 },
	{ "room", NULL, BLOCKPROC_READ, 1, false, AT + 8, 2 << 20 },
	{ "block-count", NULL, BLOCKPROC_READ, 1, false, AT + 8, 4096 },
	{ "write-chunk-length", NULL, BLOCKPROC_READ, 1, true, 4, 4096 },
	{ "block-count", "write-chunk-length", BLOCKPROC_READ, 1, true, 4, 0 },
	{ "reply-length", "", BLOCKPROC_READ, 0, true, 4, 516 },
	/* replies */
	{ "block-field: an unknown status", "block-length", BLOCKPROC_FLUSH, 0, true, 0, BLOCK_ERR_NOHOLDER + 1 },
	{ "block-length", NULL, BLOCKPROC_FLUSH, 0, true, 0, BLOCK_ERR_IO },
	{ "block-length", NULL, BLOCKPROC_ATTACH, 1, true, 0, BLOCK_ERR_ACCES },
	{ "block-field: the volume's name", NULL, BLOCKPROC_ATTACH, 0, true, 4 + 32, 64 },
	{ "block-field: a block size", NULL, BLOCKPROC_ATTACH, 0, true, 4 + 32 + 8 + 8, 513 },
	{ "block-field: a size of part", NULL, BLOCKPROC_ATTACH, 0, true, 4 + 32 + 8 + 4, 1 },
	{ "block-field: unknown flags", NULL, BLOCKPROC_ATTACH, 0, true, 4 + 32 + 8 + 16, 64 },
	{ "block-field: a list", NULL, BLOCKPROC_LIST, 0, true, 4, 65 },
	{ "block-field: a holder's name", NULL, BLOCKPROC_ATTACH, 1, true, 4, 0 },
	{ "block-field: a list", NULL, BLOCKPROC_EXTENTS, 0, true, 4, 0 },
	{ "block-field: a list", NULL, BLOCKPROC_EXTENTS, 0, true, 4, 257 },
	{ "block-field: an extent of this length", NULL, BLOCKPROC_EXTENTS, 0, true, 12, 0 },
	{ "block-field: an extent of an unknown kind", NULL, BLOCKPROC_EXTENTS, 0, true, 16, 3 },
	{ "block-range", NULL, BLOCKPROC_EXTENTS, 0, false, AT + 12, 512 },
	{ "block-range", NULL, BLOCKPROC_ZERO, 0, false, AT + 8, 1 },
	{ "block-range", NULL, BLOCKPROC_ZERO, 0, false, AT + 12, 0 },
};

/* Expects that every BROKEN line begins with @rule or @also ("": any), and at least one with @rule. */
static bool found(const char *text, const char *rule, const char *also)
{
	static const char word[] = "BROKEN ";
	bool is_there = false, others = false;

	for (const char *p = strstr(text, word); p; p = strstr(p, word)) {
		p += strlen(word);
		if (!strncmp(p, rule, strlen(rule)))
			is_there = true;
		else if (!also || strncmp(p, also, strlen(also)))
			others = true;
	}
	if (!is_there || others)
		print_error("%s, %s:\n%s", rule, is_there ? "and more" : "not found", text);
	return is_there && !others;
}

static void spoil(struct image *i, size_t n)
{
	uint32_t xid;
	size_t at = sick[n].reply ? find_reply(sick[n].proc, sick[n].nth)
				  : find_call(sick[n].proc, sick[n].nth, &xid);

	*i = (struct image){ malloc(captured.len), captured.len };
	assert_non_null(i->bytes);
	memcpy(i->bytes, captured.bytes, captured.len);
	if (sick[n].at >= 0) {
		put_be32(i->bytes + at + sick[n].at, sick[n].value);
		return;
	}
	/* the number of the procedure, in front of the credential */
	for (at -= 4; get_be32(i->bytes + at) != sick[n].proc || get_be32(i->bytes + at - 8) != LEAT_BLOCK;)
		at -= 4;
	put_be32(i->bytes + at, sick[n].value);
}

static void each_rule(void **state)
{
	static const struct dump_options check = { .check = true };
	unsigned wrong = 0;

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(sick); n++) {
		struct image i;
		char *text;
		int rc;

		spoil(&i, n);
		text = image_dump(&i, &check, &rc, NULL);
		assert_int_equal(rc, 0);
		if (!found(text, sick[n].rule, sick[n].also)) {
			print_error("that was change %zu\n", n);
			wrong++;
		}
		free(text);
		image_fini(&i);
	}
	assert_int_equal(wrong, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_rules), cmocka_unit_test(each_rule),
	};

	return cmocka_run_group_tests_name("block capture", tests, capture, discard);
}
