/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_xdr_name.c - names and lists on the wire, from a peer that is not trusted
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "base/wire.h"
#include "mount3.h"
#include "nfs3.h"

static char wire[1 << 20];

static XDR stream(enum xdr_op op, unsigned len)
{
	XDR x;

	xdrmem_create(&x, wire, len, op);
	return x;
}

/* A name of @len bytes as a peer would send it, all of them @byte. */
static unsigned put_name(uint32_t len, char byte)
{
	put_be32(wire, len);
	memset(wire + 4, byte, len);
	memset(wire + 4 + len, 0, round_up4(len) - len);
	return (unsigned)(4 + round_up4(len));
}

static void names_of_every_length(void **state)
{
	char room[FILENAME3_ROOM + 1];

	(void)state;
	for (uint32_t len = 0; len <= 4097; len++) {
		unsigned bytes = put_name(len, 'n');
		char *name = room;
		XDR x = stream(XDR_DECODE, bytes);

		memset(room, 0x55, sizeof(room));
		if (len > 4096) {
			assert_false(xdr_filename3(&x, &name));
			continue;
		}
		assert_true(xdr_filename3(&x, &name));
		assert_ptr_equal(name, room);
		assert_int_equal(xdr_getpos(&x), bytes);
		/* what is too long stays too long, and inside its memory */
		assert_int_equal(strlen(name), MIN(len, NFS3_MAXNAMLEN + 1));
		assert_int_equal(room[FILENAME3_ROOM], 0x55);
	}
}

static void truncated_names_fail(void **state)
{
	char room[FILENAME3_ROOM];

	(void)state;
	for (uint32_t len = 0; len < 400; len += 7) {
		unsigned bytes = put_name(len, 'n');

		for (unsigned cut = 0; cut < bytes; cut++) {
			char *name = room;
			XDR x = stream(XDR_DECODE, cut);

			assert_false(xdr_filename3(&x, &name));
		}
	}
}

static void a_nul_inside_names_nothing(void **state)
{
	char room[FILENAME3_ROOM], *name;

	(void)state;
	for (uint32_t len = 1; len < 300; len++) {
		for (uint32_t at = 0; at < len; at += 13) {
			unsigned bytes = put_name(len, 'n');
			XDR x = stream(XDR_DECODE, bytes);

			wire[4 + at] = '\0';
			name = room;
			assert_true(xdr_filename3(&x, &name));
			if (at < NFS3_MAXNAMLEN + 1)
				assert_string_equal(name, "/");
			else
				assert_int_equal(strlen(name), NFS3_MAXNAMLEN + 1);
			assert_int_equal(xdr_getpos(&x), bytes);
		}
	}
}

static void allocated_when_not_preset(void **state)
{
	unsigned bytes = put_name(255, '\xff');
	char *name = NULL;
	XDR x = stream(XDR_DECODE, bytes);

	(void)state;
	assert_true(xdr_filename3(&x, &name));
	assert_int_equal(strlen(name), 255);
	xdr_free((xdrproc_t)xdr_filename3, &name);
	assert_null(name);
}

static void paths_keep_their_limit(void **state)
{
	char room[MNTPATHLEN + 1], *path = room;
	unsigned bytes = put_name(MNTPATHLEN, '/');
	XDR x = stream(XDR_DECODE, bytes);

	(void)state;
	assert_true(xdr_dirpath(&x, &path));
	assert_int_equal(strlen(path), MNTPATHLEN);
	bytes = put_name(MNTPATHLEN + 1, '/');
	x = stream(XDR_DECODE, bytes);
	assert_false(xdr_dirpath(&x, &path));
	path = NULL;
	x = stream(XDR_ENCODE, sizeof(wire));
	assert_false(xdr_dirpath(&x, &path));
}

static void handles_go_into_preset_memory(void **state)
{
	char fh[NFS3_FHSIZE], room[FILENAME3_ROOM];
	char ten[] = "0123456789", text[] = "name";
	LOOKUP3args in = { .what.name = text }, out = { 0 };
	XDR x = stream(XDR_ENCODE, sizeof(wire));
	unsigned len;

	(void)state;
	in.what.dir.data.data_val = ten;
	in.what.dir.data.data_len = 10;
	assert_true(xdr_LOOKUP3args(&x, &in));
	len = xdr_getpos(&x);
	assert_int_equal(len, 4 + 12 + 4 + 4);

	out.what.dir.data.data_val = fh;
	out.what.name = room;
	x = stream(XDR_DECODE, len);
	assert_true(xdr_LOOKUP3args(&x, &out));
	assert_ptr_equal(out.what.dir.data.data_val, fh);
	assert_memory_equal(fh, "0123456789", 10);
	assert_string_equal(room, "name");

	/* a handle that is too long is refused before a byte of it is stored */
	put_be32(wire, NFS3_FHSIZE + 1);
	x = stream(XDR_DECODE, 200);
	memset(fh, 0x55, sizeof(fh));
	assert_false(xdr_LOOKUP3args(&x, &out));
	assert_int_equal(fh[0], 0x55);
}

static unsigned encode_dir(unsigned count)
{
	entryplus3 *v = calloc(count, sizeof(*v));
	static char text[] = "entry", handle[] = "handle";
	READDIRPLUS3res res = { .status = NFS3_OK };
	XDR x = stream(XDR_ENCODE, sizeof(wire));

	assert_non_null(v);
	for (unsigned i = 0; i < count; i++) {
		v[i].fileid = i;
		v[i].name = text;
		v[i].cookie = i + 1;
		v[i].name_handle.handle_follows = TRUE;
		v[i].name_handle.post_op_fh3_u.handle.data.data_val = handle;
		v[i].name_handle.post_op_fh3_u.handle.data.data_len = 6;
		v[i].nextentry = i + 1 < count ? &v[i + 1] : NULL;
	}
	res.READDIRPLUS3res_u.resok.reply.entries = v;
	res.READDIRPLUS3res_u.resok.reply.eof = TRUE;
	assert_true(xdr_READDIRPLUS3res(&x, &res));
	free(v);
	return xdr_getpos(&x);
}

static void directories_come_back(void **state)
{
	unsigned len = encode_dir(1000), n = 0;
	READDIRPLUS3res res = { 0 };
	XDR x = stream(XDR_DECODE, len);

	(void)state;
	assert_true(xdr_READDIRPLUS3res(&x, &res));
	for (entryplus3 *e = res.READDIRPLUS3res_u.resok.reply.entries; e; e = e->nextentry) {
		assert_int_equal(e->fileid, n++);
		assert_int_equal(e->cookie, n);
		assert_string_equal(e->name, "entry");
		assert_memory_equal(e->name_handle.post_op_fh3_u.handle.data.data_val, "handle", 6);
	}
	assert_int_equal(n, 1000);
	assert_true(res.READDIRPLUS3res_u.resok.reply.eof);
	xdr_free((xdrproc_t)xdr_READDIRPLUS3res, &res);
	assert_null(res.READDIRPLUS3res_u.resok.reply.entries);
}

static void cut_directories_leak_nothing(void **state)
{
	unsigned len = encode_dir(5);

	(void)state;
	for (unsigned cut = 0; cut < len; cut++) {
		READDIRPLUS3res res = { 0 };
		XDR x = stream(XDR_DECODE, cut);

		assert_false(xdr_READDIRPLUS3res(&x, &res));
		xdr_free((xdrproc_t)xdr_READDIRPLUS3res, &res);
	}
}

/* A megabyte of the smallest nodes: with a stack frame for each this would end in a crash. */
static void long_lists_need_no_stack(void **state)
{
	unsigned words = sizeof(wire) / 4;
	mountgroups groups = NULL;
	XDR x = stream(XDR_DECODE, sizeof(wire));

	(void)state;
	for (unsigned i = 0; i + 1 < words; i += 2) {
		put_be32(wire + 4 * i, 1);     /* one more follows */
		put_be32(wire + 4 * i + 4, 0); /* with an empty name */
	}
	put_be32(wire + 4 * (words - 2), 0);
	assert_true(xdr_mountgroups(&x, &groups));
	xdr_free((xdrproc_t)xdr_mountgroups, &groups);
	assert_null(groups);
}

static void exports_come_back(void **state)
{
	char net[] = "10.0.0.0/8", host[] = "host", a[] = "/a", b[] = "/b";
	struct groupnode g2 = { net, NULL }, g1 = { host, &g2 };
	struct exportnode e2 = { b, NULL, NULL }, e1 = { a, &g1, &e2 };
	mountexports in = &e1, out = NULL;
	XDR x = stream(XDR_ENCODE, sizeof(wire));
	unsigned len;

	(void)state;
	assert_true(xdr_mountexports(&x, &in));
	len = xdr_getpos(&x);
	x = stream(XDR_DECODE, len);
	assert_true(xdr_mountexports(&x, &out));
	assert_string_equal(out->ex_dir, "/a");
	assert_string_equal(out->ex_groups->gr_next->gr_name, "10.0.0.0/8");
	assert_string_equal(out->ex_next->ex_dir, "/b");
	assert_null(out->ex_next->ex_groups);
	assert_null(out->ex_next->ex_next);
	xdr_free((xdrproc_t)xdr_mountexports, &out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_every_length),
		cmocka_unit_test(truncated_names_fail),
		cmocka_unit_test(a_nul_inside_names_nothing),
		cmocka_unit_test(allocated_when_not_preset),
		cmocka_unit_test(paths_keep_their_limit),
		cmocka_unit_test(handles_go_into_preset_memory),
		cmocka_unit_test(directories_come_back),
		cmocka_unit_test(cut_directories_leak_nothing),
		cmocka_unit_test(long_lists_need_no_stack),
		cmocka_unit_test(exports_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
