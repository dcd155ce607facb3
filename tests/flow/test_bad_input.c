/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_bad_input.c - what bad input gets: every procedure with wrong handles, names and numbers
 *
 * The tables say what is answered, and are meant to be read. Whatever was refused, nothing has changed
 * afterwards: neither a name nor a time but that of access. An answer is one that RFC 1813 lists for the
 * procedure, or stands in `beyond` with a reason. All of it over the local fabric and over TCP.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/wire.h"
#include "nfs3_names.h"
#include "odd_call.h"

enum {
	OK = NFS3_OK,
	PERM = NFS3ERR_PERM,
	NOENT = NFS3ERR_NOENT,
	IO = NFS3ERR_IO,
	NXIO = NFS3ERR_NXIO,
	ACCES = NFS3ERR_ACCES,
	EXIST = NFS3ERR_EXIST,
	XDEV = NFS3ERR_XDEV,
	NOTDIR = NFS3ERR_NOTDIR,
	ISDIR = NFS3ERR_ISDIR,
	INVAL = NFS3ERR_INVAL,
	FBIG = NFS3ERR_FBIG,
	NOSPC = NFS3ERR_NOSPC,
	ROFS = NFS3ERR_ROFS,
	MLINK = NFS3ERR_MLINK,
	LONG = NFS3ERR_NAMETOOLONG,
	NOTEMPTY = NFS3ERR_NOTEMPTY,
	DQUOT = NFS3ERR_DQUOT,
	STALE = NFS3ERR_STALE,
	BADH = NFS3ERR_BADHANDLE,
	NOSYNC = NFS3ERR_NOT_SYNC,
	COOKIE = NFS3ERR_BAD_COOKIE,
	NOTSUPP = NFS3ERR_NOTSUPP,
	TOOSMALL = NFS3ERR_TOOSMALL,
	FAULT = NFS3ERR_SERVERFAULT,
	BADTYPE = NFS3ERR_BADTYPE,
};

#define LISTED_MAX 20

/* RFC 1813 section 3.3: the ERRORS of each procedure */
static const int listed[][LISTED_MAX] = {
	[NFSPROC3_GETATTR] = { IO, STALE, BADH, FAULT },
	[NFSPROC3_SETATTR] = { PERM, IO, ACCES, INVAL, NOSPC, ROFS, DQUOT, NOSYNC, STALE, BADH,
			       FAULT },
	[NFSPROC3_LOOKUP] = { IO, NOENT, ACCES, NOTDIR, LONG, STALE, BADH, FAULT },
	[NFSPROC3_ACCESS] = { IO, STALE, BADH, FAULT },
	[NFSPROC3_READLINK] = { IO, INVAL, ACCES, STALE, BADH, NOTSUPP, FAULT },
	[NFSPROC3_READ] = { IO, NXIO, ACCES, INVAL, STALE, BADH, FAULT },
	[NFSPROC3_WRITE] = { IO, ACCES, FBIG, DQUOT, NOSPC, ROFS, INVAL, STALE, BADH, FAULT },
	[NFSPROC3_CREATE] = { IO, ACCES, EXIST, NOTDIR, NOSPC, ROFS, LONG, DQUOT, STALE, BADH,
			      NOTSUPP, FAULT },
	[NFSPROC3_MKDIR] = { IO, ACCES, EXIST, NOTDIR, NOSPC, ROFS, LONG, DQUOT, STALE, BADH,
			     NOTSUPP, FAULT },
	[NFSPROC3_SYMLINK] = { IO, ACCES, EXIST, NOTDIR, NOSPC, ROFS, LONG, DQUOT, STALE, BADH,
			       NOTSUPP, FAULT },
	[NFSPROC3_MKNOD] = { IO, ACCES, EXIST, NOTDIR, NOSPC, ROFS, LONG, DQUOT, STALE, BADH,
			     NOTSUPP, FAULT, BADTYPE },
	[NFSPROC3_REMOVE] = { NOENT, IO, ACCES, NOTDIR, LONG, ROFS, STALE, BADH, FAULT },
	[NFSPROC3_RMDIR] = { NOENT, IO, ACCES, INVAL, EXIST, NOTDIR, LONG, ROFS, NOTEMPTY, STALE,
			     BADH, NOTSUPP, FAULT },
	[NFSPROC3_RENAME] = { NOENT, IO, ACCES, EXIST, XDEV, NOTDIR, ISDIR, INVAL, NOSPC, ROFS,
			      MLINK, LONG, NOTEMPTY, DQUOT, STALE, BADH, NOTSUPP, FAULT },
	[NFSPROC3_LINK] = { IO, ACCES, EXIST, NOTDIR, INVAL, NOSPC, ROFS, STALE, LONG, DQUOT, MLINK,
			    XDEV, BADH, NOTSUPP, FAULT },
	[NFSPROC3_READDIR] = { IO, ACCES, NOTDIR, COOKIE, TOOSMALL, STALE, BADH, FAULT },
	[NFSPROC3_READDIRPLUS] = { IO, ACCES, NOTDIR, COOKIE, TOOSMALL, STALE, BADH, NOTSUPP,
				   FAULT },
	[NFSPROC3_FSSTAT] = { IO, STALE, BADH, FAULT },
	[NFSPROC3_FSINFO] = { STALE, BADH, FAULT },
	[NFSPROC3_PATHCONF] = { STALE, BADH, FAULT },
	[NFSPROC3_COMMIT] = { IO, STALE, BADH, FAULT },
};

/* Those lists are "a guide for the more common errors" (3.3). Where none of them would say what is
 * wrong, another says it: */
static const struct {
	uint32_t proc;
	int answer;
	const char *why;
} beyond[] = {
	{ NFSPROC3_SETATTR, ISDIR, "a directory has no size to set: as truncate(2) says it" },
	{ NFSPROC3_SETATTR, FBIG, "a size that no file can have" },
	{ NFSPROC3_CREATE, FBIG, "the same" },
	{ NFSPROC3_CREATE, INVAL, "attributes that are none: a billion nanoseconds, uid 4294967295" },
	{ NFSPROC3_MKDIR, FBIG, "a size that no file can have, although directories have none" },
	{ NFSPROC3_MKDIR, INVAL, "attributes that are none" },
	{ NFSPROC3_SYMLINK, INVAL, "the same, and a path of no bytes, or with a NUL inside" },
	{ NFSPROC3_MKNOD, INVAL, "the same, and devices that are none" },
	{ NFSPROC3_REMOVE, ISDIR, "a directory is RMDIR's: as unlink(2) says it" },
	{ NFSPROC3_LINK, ISDIR, "directories have one name" },
	{ NFSPROC3_COMMIT, INVAL, "what cannot be written has nothing to commit" },
};

static void check_listed(uint32_t proc, int answer)
{
	if (answer == OK || answer < 0)
		return;
	for (size_t i = 0; i < LISTED_MAX; i++) {
		if (listed[proc][i] == answer)
			return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(beyond); i++) {
		if (beyond[i].proc == proc && beyond[i].answer == answer)
			return;
	}
	fail_msg("%s answers %s, which is in neither list", nfs3_proc_name(NFS_PROGRAM, proc),
		 odd_word(answer));
}

static bool changes(uint32_t proc)
{
	return proc == NFSPROC3_SETATTR || proc == NFSPROC3_WRITE ||
	       (proc >= NFSPROC3_CREATE && proc <= NFSPROC3_LINK);
}

static unsigned failures;

/* What may be answered: @want, or @also */
static void check_either(struct odd *o, const struct odd_call *c, const char *what, int want, int also)
{
	int got = odd_answer(o, c);
	const char *changed;

	if (got != want && got != also) {
		print_error("%s, %s: %s instead of %s\n", nfs3_proc_name(NFS_PROGRAM, c->proc), what,
			    odd_word(got), odd_word(want));
		failures++;
	}
	check_listed(c->proc, want);
	if (got == OK && changes(c->proc)) {
		odd_tree_make(o);
		return;
	}
	changed = odd_tree_changed(o);
	if (changed) {
		print_error("%s, %s: %s, but: %s\n", nfs3_proc_name(NFS_PROGRAM, c->proc), what,
			    odd_word(got), changed);
		failures++;
		odd_tree_make(o);
	}
}

static void check(struct odd *o, const struct odd_call *c, const char *what, int want)
{
	check_either(o, c, what, want, want);
}

#define SIZE(n) { .size = { .set_it = TRUE, .set_size3_u.size = (n) } }
#define MODE(m) { .mode = { .set_it = TRUE, .set_mode3_u.mode = (m) } }
#define UID(n) { .uid = { .set_it = TRUE, .set_uid3_u.uid = (n) } }
#define GID(n) { .gid = { .set_it = TRUE, .set_gid3_u.gid = (n) } }
#define ATIME(s, ns) { .atime = { .set_it = SET_TO_CLIENT_TIME, .set_atime_u.atime = { s, ns } } }
#define MTIME(s, ns) { .mtime = { .set_it = SET_TO_CLIENT_TIME, .set_mtime_u.mtime = { s, ns } } }

/* ---- handles of the wrong type ------------------------------------------------------------ */

#define TYPES 7
#define P(p) .call.proc = NFSPROC3_##p
#define WRITES(n, has) .call.count = (n), .call.bytes = (has), .call.stable = FILE_SYNC

/* A call of each procedure that is in order if the handle is: of the column's file. */
static const struct {
	struct odd_call call;
	bool second; /* it is the other handle that is the column's; the first is of the root */
	int want[TYPES];
} types[] = {
	/*                                      file    dir     link    fifo    socket  char    block */
	{ P(GETATTR),			      .second = 0, .want = { OK,     OK,     OK,     OK,     OK,     OK,     OK } },
	{ P(SETATTR), .call.sa = MODE(0700),  .second = 0, .want = { OK,     OK,     OK,     OK,     OK,     OK,     OK } },
	{ P(SETATTR), .call.sa = MTIME(1, 0), .second = 0, .want = { OK,     OK,     OK,     OK,     OK,     OK,     OK } },
	{ P(SETATTR), .call.sa = SIZE(3),     .second = 0, .want = { OK,     ISDIR,  INVAL,  INVAL,  INVAL,  INVAL,  INVAL } },
	{ P(LOOKUP), .call.name = "in",       .second = 0, .want = { NOTDIR, OK,     NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR } },
	{ P(ACCESS), .call.count = 0x3f,      .second = 0, .want = { OK,     OK,     OK,     OK,     OK,     OK,     OK } },
	{ P(READLINK),			      .second = 0, .want = { INVAL,  INVAL,  OK,     INVAL,  INVAL,  INVAL,  INVAL } },
	{ P(READ), .call.count = 4,	      .second = 0, .want = { OK,     INVAL,  INVAL,  INVAL,  INVAL,  INVAL,  INVAL } },
	{ P(WRITE), WRITES(4, 4),	      .second = 0, .want = { OK,     INVAL,  INVAL,  INVAL,  INVAL,  INVAL,  INVAL } },
	{ P(CREATE), .call.name = "new",      .second = 0, .want = { NOTDIR, OK,     NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR } },
	{ P(CREATE), .call.how = GUARDED,
	  .call.name = "new",		      .second = 0, .want = { NOTDIR, OK,     NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR } },
	{ P(CREATE), .call.how = EXCLUSIVE,
	  .call.name = "new",		      .second = 0, .want = { NOTDIR, OK,     NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR } },
	{ P(MKDIR), .call.name = "new",       .second = 0, .want = { NOTDIR, OK,     NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR } },
	{ P(SYMLINK), .call.bytes = 4,
	  .call.name = "new",		      .second = 0, .want = { NOTDIR, OK,     NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR } },
	{ P(MKNOD), .call.type = NF3FIFO,
	  .call.name = "new",		      .second = 0, .want = { NOTDIR, OK,     NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR } },
	{ P(REMOVE), .call.name = "in",       .second = 0, .want = { NOTDIR, OK,     NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR } },
	{ P(RMDIR), .call.name = "in",        .second = 0, .want = { NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR } },
	{ P(RENAME), .call.name = "in",
	  .call.name2 = "new",		      .second = 0, .want = { NOTDIR, OK,     NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR } },
	{ P(RENAME), .call.name = "file",
	  .call.name2 = "new",		      .second = 1, .want = { NOTDIR, OK,     NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR } },
	{ P(LINK), .call.name = "new",	      .second = 0, .want = { OK,     ISDIR,  OK,     OK,     OK,     OK,     OK } },
	{ P(LINK), .call.name = "new",	      .second = 1, .want = { NOTDIR, OK,     NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR } },
	{ P(READDIR), .call.count = 4096,     .second = 0, .want = { NOTDIR, OK,     NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR } },
	{ P(READDIRPLUS), .call.count = 4096, .second = 0, .want = { NOTDIR, OK,     NOTDIR, NOTDIR, NOTDIR, NOTDIR, NOTDIR } },
	{ P(FSSTAT),			      .second = 0, .want = { OK,     OK,     OK,     OK,     OK,     OK,     OK } },
	{ P(FSINFO),			      .second = 0, .want = { OK,     OK,     OK,     OK,     OK,     OK,     OK } },
	{ P(PATHCONF),			      .second = 0, .want = { OK,     OK,     OK,     OK,     OK,     OK,     OK } },
	{ P(COMMIT),			      .second = 0, .want = { OK,     INVAL,  INVAL,  INVAL,  INVAL,  INVAL,  INVAL } },
};

/* @row of the table above, about that file */
static struct odd_call call_about(size_t row, enum odd_file f)
{
	struct odd_call c = types[row].call;

	c.fh = f;
	c.fh2 = ODD_ROOT;
	if (types[row].second) {
		c.fh = c.proc == NFSPROC3_LINK ? ODD_REG : ODD_ROOT;
		c.fh2 = f;
	}
	return c;
}

static void wrong_types(void **state)
{
	static const enum odd_file files[TYPES] = { ODD_REG,  ODD_DIR, ODD_LNK, ODD_FIFO,
						    ODD_SOCK, ODD_CHR, ODD_BLK };
	struct odd *o = *state;
	char what[64];

	for (size_t row = 0; row < ARRAY_SIZE(types); row++) {
		for (int i = 0; i < TYPES; i++) {
			struct odd_call c = call_about(row, files[i]);

			snprintf(what, sizeof(what), "%shandle of %s", types[row].second ? "second " : "",
				 odd_file_word(files[i]));
			if (o->has[files[i]])
				check(o, &c, what, types[row].want[i]);
		}
	}
	assert_int_equal(failures, 0);
}

/* ---- handles that are of nothing ---------------------------------------------------------- */

/* The same from every procedure, and for the second handle of RENAME and LINK */
static const struct {
	enum odd_file file;
	int want;
} broken[] = {
	{ ODD_GONE, STALE },  { ODD_GONE_DIR, STALE }, { ODD_FORGED, BADH }, { ODD_OTHER, BADH },
	{ ODD_CUT, BADH },    { ODD_LONGER, BADH },    { ODD_SHORT, BADH },  { ODD_EMPTY, BADH },
	{ ODD_NOISE, BADH },  { ODD_ZERO, BADH },
};

static void broken_handles(void **state)
{
	struct odd *o = *state;
	char what[64];

	for (size_t row = 0; row < ARRAY_SIZE(types); row++) {
		for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
			struct odd_call c = call_about(row, broken[i].file);

			snprintf(what, sizeof(what), "%shandle: %s", types[row].second ? "second " : "",
				 odd_file_word(broken[i].file));
			check(o, &c, what, broken[i].want);
		}
	}
	assert_int_equal(failures, 0);
}

#define NAMED 12

/* What uses names, in the root of /e0; the name in question is name, or name2 where there is one. */
static const struct odd_call named[NAMED] = {
	{ .proc = NFSPROC3_LOOKUP },
	{ .proc = NFSPROC3_CREATE, .how = UNCHECKED },
	{ .proc = NFSPROC3_CREATE, .how = GUARDED },
	{ .proc = NFSPROC3_CREATE, .how = EXCLUSIVE },
	{ .proc = NFSPROC3_MKDIR },
	{ .proc = NFSPROC3_SYMLINK, .bytes = 4 },
	{ .proc = NFSPROC3_MKNOD, .type = NF3SOCK },
	{ .proc = NFSPROC3_REMOVE },
	{ .proc = NFSPROC3_RMDIR },
	{ .proc = NFSPROC3_RENAME, .name2 = "new" },
	{ .proc = NFSPROC3_RENAME, .name = "fifo" },
	{ .proc = NFSPROC3_LINK, .fh = ODD_REG },
};

/* Arguments that are no arguments: all of these are GARBAGE_ARGS, and the connection goes on. */
static void no_arguments(void **state)
{
	static const struct {
		const char *what;
		uint32_t len, claimed; /* bytes of the handle that are sent, and the length that is sent */
	} rows[] = {
		{ "nothing", 0, 0 },
		{ "a handle of 65 bytes", 68, 65 },
		{ "a handle of 128 bytes", 128, 128 },
		{ "a handle of 4 GiB", 400, UINT32_MAX },
		{ "a handle that is longer than the call", 16, 64 },
	};
	struct odd *o = *state;
	const struct nfs_fh *root = &o->fhs[ODD_ROOT];
	uint8_t bytes[512] = { 0 }, name[5000] = { 0 };
	int got;

	for (uint32_t proc = NFSPROC3_GETATTR; proc <= NFSPROC3_COMMIT; proc++) {
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			put_be32(bytes, rows[i].claimed);
			got = odd_raw(o, proc, bytes, rows[i].len ? 4 + rows[i].len : 0);
			if (got != ODD_GARBAGE) {
				print_error("%s, %s: %s\n", nfs3_proc_name(NFS_PROGRAM, proc),
					    rows[i].what, odd_word(got));
				failures++;
			}
		}
	}
	/* nor is a name of 4097 bytes one, whose handle is in order */
	put_be32(name, root->len);
	memcpy(name + 4, root->data, root->len);
	put_be32(name + 4 + round_up4(root->len), 4097);
	for (int i = 0; i < NAMED; i++)
		assert_int_equal(odd_raw(o, named[i].proc, name, sizeof(name)), ODD_GARBAGE);
	assert_null(odd_tree_changed(o));
	assert_int_equal(failures, 0);
}

/* ---- names -------------------------------------------------------------------------------- */

static char n255[256], n256[257], n4096[4097];

static const struct {
	const char *name, *what;
	int want[NAMED];
} names[] = {
	/*   CREATE: LOOKUP  unchecked guarded exclusive MKDIR SYMLINK MKNOD REMOVE RMDIR    from     to     LINK */
	{ "", "no name",
		   { ACCES, ACCES,    ACCES,  ACCES,    ACCES, ACCES,  ACCES, ACCES, ACCES,   ACCES, ACCES, ACCES } },
	{ ".", "'.'",
		   { OK,    EXIST,    EXIST,  EXIST,    EXIST, EXIST,  EXIST, ISDIR, INVAL,   INVAL, INVAL, EXIST } },
	{ "..", "'..'",
		   { OK,    EXIST,    EXIST,  EXIST,    EXIST, EXIST,  EXIST, ISDIR, EXIST,   INVAL, INVAL, EXIST } },
	{ "/", "'/'",
		   { ACCES, ACCES,    ACCES,  ACCES,    ACCES, ACCES,  ACCES, ACCES, ACCES,   ACCES, ACCES, ACCES } },
	{ "dir/in", "'dir/in'",
		   { ACCES, ACCES,    ACCES,  ACCES,    ACCES, ACCES,  ACCES, ACCES, ACCES,   ACCES, ACCES, ACCES } },
	{ "../e1", "'../e1'",
		   { ACCES, ACCES,    ACCES,  ACCES,    ACCES, ACCES,  ACCES, ACCES, ACCES,   ACCES, ACCES, ACCES } },
	{ "dir/", "'dir/'",
		   { ACCES, ACCES,    ACCES,  ACCES,    ACCES, ACCES,  ACCES, ACCES, ACCES,   ACCES, ACCES, ACCES } },
	{ n256, "256 bytes",
		   { LONG,  LONG,     LONG,   LONG,     LONG,  LONG,   LONG,  LONG,  LONG,    LONG,  LONG,  LONG } },
	{ n4096, "4096 bytes",
		   { LONG,  LONG,     LONG,   LONG,     LONG,  LONG,   LONG,  LONG,  LONG,    LONG,  LONG,  LONG } },
	{ n255, "255 bytes",
		   { NOENT, OK,       OK,     OK,       OK,    OK,     OK,    NOENT, NOENT,   NOENT, OK,    OK } },
	{ "\001\n\t\033\177\377 ", "control bytes",
		   { NOENT, OK,       OK,     OK,       OK,    OK,     OK,    NOENT, NOENT,   NOENT, OK,    OK } },
	/* and those that are taken */
	{ "file", "a file's",
		   { OK,    OK,       EXIST,  EXIST,    EXIST, EXIST,  EXIST, OK,    NOTDIR,  OK,    OK,    EXIST } },
	{ "dir", "a directory's",
		   { OK,    EXIST,    EXIST,  EXIST,    EXIST, EXIST,  EXIST, ISDIR, NOTEMPTY, OK,   ISDIR, EXIST } },
	{ "link", "a link's",
		   { OK,    EXIST,    EXIST,  EXIST,    EXIST, EXIST,  EXIST, OK,    NOTDIR,  OK,    OK,    EXIST } },
	{ "sock", "a socket's",
		   { OK,    EXIST,    EXIST,  EXIST,    EXIST, EXIST,  EXIST, OK,    NOTDIR,  OK,    OK,    EXIST } },
};

static struct odd_call call_with(int i, const char *name)
{
	struct odd_call c = named[i];

	if (c.proc == NFSPROC3_RENAME && c.name)
		c.name2 = name;
	else
		c.name = name;
	return c;
}

static void odd_names(void **state)
{
	struct odd *o = *state;

	memset(n255, 'n', 255);
	memset(n256, 'n', 256);
	memset(n4096, 'n', 4096);
	for (size_t row = 0; row < ARRAY_SIZE(names); row++) {
		for (int i = 0; i < NAMED; i++) {
			struct odd_call c = call_with(i, names[row].name);

			check(o, &c, names[row].what, names[row].want[i]);
		}
	}
	/* a NUL inside ends no name: "a" is not meant */
	for (int i = 0; i < NAMED; i++) {
		struct odd_call c = call_with(i, ODD_NUL_INSIDE);

		c.nul = true;
		if (c.proc != NFSPROC3_SYMLINK)
			check(o, &c, "a NUL inside", ACCES);
	}
	assert_int_equal(failures, 0);
}

/* ---- numbers ------------------------------------------------------------------------------ */

#define GIVES(n) .want = OK, .counts = true, .value = (n)
#define E63 (UINT64_C(1) << 63)
#define IO_MAX (1u << 20) /* rtmax and wtmax */

static const struct {
	const char *what;
	struct odd_call call;
	int want;
	bool counts;	/* OK, and READ's or WRITE's count, or what ACCESS allows, is value */
	uint64_t value;
	bool or_ok;	/* where the file system can */
	int also;
	bool same;	/* OK, and still nothing changes */
	bool touches;	/* made, and taken back: the times of the directory tell */
} numbers[] = {
#define READS(off, n) { .proc = NFSPROC3_READ, .fh = ODD_REG, .offset = (off), .count = (n) }
	{ "0 bytes", READS(0, 0), GIVES(0) },
	{ "0 bytes at 2^64 - 1", READS(UINT64_MAX, 0), GIVES(0) },
	{ "4 GiB", READS(0, UINT32_MAX), GIVES(5) },
	{ "at the end", READS(5, 1), GIVES(0) },
	{ "at 2^63 - 1", READS(E63 - 1, 1), GIVES(0) },
	{ "at 2^63", READS(E63, 1), GIVES(0) },
	{ "at 2^64 - 1", READS(UINT64_MAX, 1), GIVES(0) },
	{ "over 2^64", READS(UINT64_MAX - 2, UINT32_MAX), GIVES(0) },
#define WRITE_AT(off, n, has, how)                                                                 \
	{ .proc = NFSPROC3_WRITE, .fh = ODD_REG, .offset = (off), .count = (n), .bytes = (has),    \
	  .stable = (how) }
	{ "0 bytes", WRITE_AT(0, 0, 0, FILE_SYNC), GIVES(0), .same = true },
	{ "0 bytes, unstable", WRITE_AT(100, 0, 0, UNSTABLE), GIVES(0), .same = true },
	{ "0 bytes at 2^63", WRITE_AT(E63, 0, 0, FILE_SYNC), .want = FBIG },
	{ "fewer than there are", WRITE_AT(0, 3, 5, FILE_SYNC), .want = INVAL },
	{ "more than there are", WRITE_AT(0, 5, 3, FILE_SYNC), .want = INVAL },
	{ "4 GiB that are not there", WRITE_AT(0, UINT32_MAX, 3, UNSTABLE), .want = INVAL },
	{ "more than wtmax", WRITE_AT(0, IO_MAX + 1, IO_MAX + 1, FILE_SYNC), .want = INVAL },
	{ "stable 3", WRITE_AT(0, 1, 1, 3), .want = INVAL },
	{ "to 2^63 - 1", WRITE_AT(E63 - 2, 1, 1, FILE_SYNC), .want = FBIG, .or_ok = true },
	{ "over 2^63 - 1", WRITE_AT(E63 - 2, 2, 2, FILE_SYNC), .want = FBIG },
	{ "at 2^63", WRITE_AT(E63, 1, 1, UNSTABLE), .want = FBIG },
	{ "at 2^64 - 1", WRITE_AT(UINT64_MAX, 1, 1, FILE_SYNC), .want = FBIG },
	{ "over 2^64", WRITE_AT(UINT64_MAX - 1, 8, 8, UNSTABLE), .want = FBIG },
#define COMMITS(off, n) { .proc = NFSPROC3_COMMIT, .fh = ODD_REG, .offset = (off), .count = (n) }
	{ "all", COMMITS(0, 0), .want = OK },
	{ "at 2^64 - 1", COMMITS(UINT64_MAX, 1), .want = OK },
	{ "over 2^64", COMMITS(UINT64_MAX, UINT32_MAX), .want = OK },
#define READDIRS(n, at) { .proc = NFSPROC3_READDIR, .count = (n), .cookie = (at) }
	{ "0 bytes", READDIRS(0, 0), .want = TOOSMALL },
	{ "1 byte", READDIRS(1, 0), .want = TOOSMALL },
	{ "room for no entry", READDIRS(112, 0), .want = TOOSMALL },
	{ "4 GiB", READDIRS(UINT32_MAX, 0), .want = OK },
	{ "cookie 2^63", READDIRS(4096, E63), .want = COOKIE },
	{ "cookie 2^64 - 1", READDIRS(4096, UINT64_MAX), .want = COOKIE },
#define PLUS(max, dir, at)                                                                         \
	{ .proc = NFSPROC3_READDIRPLUS, .count = (max), .count2 = (dir), .cookie = (at) }
	{ "0 bytes", PLUS(0, 0, 0), .want = TOOSMALL },
	{ "1 byte", PLUS(1, 4096, 0), .want = TOOSMALL },
	{ "room for no entry", PLUS(140, 4096, 0), .want = TOOSMALL },
	{ "dircount 0", PLUS(4096, 0, 0), .want = OK },
	{ "4 GiB", PLUS(UINT32_MAX, UINT32_MAX, 0), .want = OK },
	{ "cookie 2^63", PLUS(4096, 4096, E63), .want = COOKIE },
	{ "cookie 2^64 - 1", PLUS(4096, 4096, UINT64_MAX), .want = COOKIE },
#define ACCESSES(bits) { .proc = NFSPROC3_ACCESS, .count = (bits) }
	{ "nothing", ACCESSES(0), GIVES(0) },
	{ "bits that are none", ACCESSES(~0x3fu), GIVES(0) },
	{ "all bits", ACCESSES(UINT32_MAX), GIVES(0x1f) }, /* of a directory, which cannot be executed */
#define SETS(...) { .proc = NFSPROC3_SETATTR, .fh = ODD_REG, .sa = __VA_ARGS__ }
	{ "nothing", SETS({ .mode = { .set_it = FALSE } }), .want = OK, .same = true },
	{ "size 2^63 - 1", SETS(SIZE(E63 - 1)), .want = FBIG, .or_ok = true },
	{ "size 2^63", SETS(SIZE(E63)), .want = FBIG },
	{ "size 2^64 - 1", SETS(SIZE(UINT64_MAX)), .want = FBIG },
	{ "uid 2^32 - 1", SETS(UID(UINT32_MAX)), .want = INVAL },
	{ "gid 2^32 - 1", SETS(GID(UINT32_MAX)), .want = INVAL },
	{ "atime of a billion ns", SETS(ATIME(1, 1000000000)), .want = INVAL },
	{ "mtime of a billion ns", SETS(MTIME(1, 1000000000)), .want = INVAL },
	{ "mtime of 2^32 - 1 ns", SETS(MTIME(1, UINT32_MAX)), .want = INVAL },
	{ "mtime that means now to us", SETS(MTIME(1, UTIME_NOW)), .want = INVAL },
	{ "mtime that means nothing to us", SETS(MTIME(1, UTIME_OMIT)), .want = INVAL },
	{ "mtime 1970", SETS(MTIME(0, 0)), .want = OK },
	{ "mtime 2038", SETS(MTIME(INT32_MAX, 999999999)), .want = OK },
	{ "mtime 2106", SETS(MTIME(UINT32_MAX, 0)), .want = OK },
	{ "size and a time that is none",
	  SETS({ .size = { TRUE, { 0 } }, .mtime = { SET_TO_CLIENT_TIME, { { 0, 1u << 30 } } } }),
	  .want = INVAL },
	{ "size and a uid that is none",
	  SETS({ .size = { TRUE, { 0 } }, .uid = { TRUE, { UINT32_MAX } } }), .want = INVAL },
	{ "guard of 1970", { .proc = NFSPROC3_SETATTR, .fh = ODD_REG, .sa = MODE(0), .guard = { TRUE, { { 0, 0 } } } },
	  .want = NOSYNC },
	{ "guard of 2^32 - 1 ns", { .proc = NFSPROC3_SETATTR, .fh = ODD_REG, .sa = MODE(0),
				    .guard = { TRUE, { { 0, UINT32_MAX } } } },
	  .want = NOSYNC },
#define MAKES(p, ...) { .proc = NFSPROC3_##p, .name = "new", .bytes = 4, .type = NF3FIFO, .sa = __VA_ARGS__ }
	{ "size 2^63", MAKES(CREATE, SIZE(E63)), .want = FBIG },
	{ "size 2^63 - 1", MAKES(CREATE, SIZE(E63 - 1)), .touches = true }, /* FBIG, or OK where it can be */
	{ "uid 2^32 - 1", MAKES(CREATE, UID(UINT32_MAX)), .want = INVAL },
	{ "gid 2^32 - 1", MAKES(CREATE, GID(UINT32_MAX)), .want = INVAL },
	{ "mtime of a billion ns", MAKES(CREATE, MTIME(0, 1000000000)), .want = INVAL },
	{ "all mode bits", MAKES(CREATE, MODE(UINT32_MAX)), .want = OK },
	{ "uid 2^32 - 1", MAKES(MKDIR, UID(UINT32_MAX)), .want = INVAL },
	{ "mtime of a billion ns", MAKES(MKDIR, MTIME(0, 1000000000)), .want = INVAL },
	{ "size 2^64 - 1", MAKES(MKDIR, SIZE(UINT64_MAX)), .want = FBIG },
	{ "size 2^63 - 1", MAKES(MKDIR, SIZE(E63 - 1)), .want = OK }, /* it has none */
	{ "uid 2^32 - 1", MAKES(SYMLINK, UID(UINT32_MAX)), .want = INVAL },
	{ "mtime of a billion ns", MAKES(SYMLINK, MTIME(0, 1000000000)), .want = INVAL },
	{ "uid 2^32 - 1", MAKES(MKNOD, UID(UINT32_MAX)), .want = INVAL },
	{ "mtime of a billion ns", MAKES(MKNOD, MTIME(0, 1000000000)), .want = INVAL },
	{ "a file that is there, to size 2^63", { .proc = NFSPROC3_CREATE, .name = "file", .sa = SIZE(E63) }, .want = FBIG },
#define SYMLINKS(n, path) { .proc = NFSPROC3_SYMLINK, .name = "new", .bytes = (n), .payload = (path) }
	{ "a path of no bytes", SYMLINKS(0, NULL), .want = INVAL },
	{ "a path with a NUL inside", SYMLINKS(3, "a\0b"), .want = INVAL },
	{ "a path of 4095 bytes", SYMLINKS(4095, NULL), .want = OK, .also = LONG },
	{ "a path of 4096 bytes", SYMLINKS(4096, NULL), .want = LONG },
#define MKNODS(t, major, minor) { .proc = NFSPROC3_MKNOD, .name = "new", .type = (ftype3)(t), .count = (major), .count2 = (minor) }
	{ "type 0", MKNODS(0, 0, 0), .want = BADTYPE },
	{ "a file", MKNODS(NF3REG, 0, 0), .want = BADTYPE },
	{ "a directory", MKNODS(NF3DIR, 0, 0), .want = BADTYPE },
	{ "a link", MKNODS(NF3LNK, 0, 0), .want = BADTYPE },
	{ "type 8", MKNODS(8, 0, 0), .want = BADTYPE },
	{ "type 2^32 - 1", MKNODS(-1, 0, 0), .want = BADTYPE },
	{ "device 2^32 - 1", MKNODS(NF3CHR, UINT32_MAX, UINT32_MAX), .want = INVAL },
#define RENAMES(a, from, b, to) { .proc = NFSPROC3_RENAME, .fh = (a), .name = (from), .fh2 = (b), .name2 = (to) }
	{ "to another export", RENAMES(ODD_ROOT, "file", ODD_TREE2, "new"), .want = XDEV },
	{ "from another export", RENAMES(ODD_TREE2, "file", ODD_ROOT, "new"), .want = XDEV },
	{ "a directory into itself", RENAMES(ODD_ROOT, "dir", ODD_DIR, "new"), .want = INVAL },
	{ "a directory over a file", RENAMES(ODD_ROOT, "dir", ODD_ROOT, "file"), .want = NOTDIR },
	{ "to its own name", RENAMES(ODD_ROOT, "file", ODD_ROOT, "file"), .want = OK, .same = true },
	{ "into another export", { .proc = NFSPROC3_LINK, .fh = ODD_REG, .fh2 = ODD_TREE2, .name = "new" }, .want = XDEV },
};

/* Only the file system knows, when the file is there. */
static void check_taken_back(struct odd *o, const struct odd_call *c, const char *what)
{
	int got = odd_answer(o, c);
	struct stat st;
	bool there = !lstat(tmp_dir_path(&o->p.dir, "e0/new"), &st);

	if (got != OK && got != FBIG)
		fail_msg("%s: %s", what, odd_word(got));
	if (there != (got == OK))
		fail_msg("%s: %s, and the file is%s there", what, odd_word(got), there ? "" : " not");
	odd_tree_make(o);
}

static void odd_numbers(void **state)
{
	struct odd *o = *state;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		const struct odd_call *c = &numbers[i].call;
		int also = numbers[i].or_ok ? OK : numbers[i].also ? numbers[i].also : numbers[i].want;

		if (numbers[i].touches) {
			check_taken_back(o, c, numbers[i].what);
			continue;
		}
		if (numbers[i].same) {
			assert_int_equal(odd_answer(o, c), OK);
			if (odd_tree_changed(o)) {
				print_error("%s, %s: OK, but: %s\n", nfs3_proc_name(NFS_PROGRAM, c->proc),
					    numbers[i].what, odd_tree_changed(o));
				failures++;
			}
		}
		check_either(o, c, numbers[i].what, numbers[i].want, also);
		if (numbers[i].counts && o->value != numbers[i].value) {
			print_error("%s, %s: %llu instead of %llu\n", nfs3_proc_name(NFS_PROGRAM, c->proc),
				    numbers[i].what, (unsigned long long)o->value,
				    (unsigned long long)numbers[i].value);
			failures++;
		}
	}
	assert_int_equal(failures, 0);
}

/* NFSv3 has 32 bits of seconds, and they begin in 1970. */
static void odd_times(void **state)
{
	static const uint32_t seconds[] = { 0, 1, INT32_MAX, 1u << 31, UINT32_MAX };
	struct odd *o = *state;

	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
		struct odd_call c = { .proc = NFSPROC3_SETATTR,
				      .fh = ODD_REG,
				      .sa = MTIME(seconds[i], 999999999) };
		struct stat st;

		assert_int_equal(odd_answer(o, &c), OK);
		assert_int_equal(lstat(tmp_dir_path(&o->p.dir, "e0/file"), &st), 0);
		/* some file systems end in 2038 */
		if (st.st_mtime != seconds[i] && (seconds[i] <= INT32_MAX || st.st_mtime != INT32_MAX))
			fail_msg("%u s became %lld", seconds[i], (long long)st.st_mtime);
	}
}

/* ---- all of it ---------------------------------------------------------------------------- */

static int setup(void **state, enum rpcrdma_transport t)
{
	struct odd *o = malloc(sizeof(*o));

	failures = 0;
	odd_create(o, t);
	*state = o;
	return 0;
}

static int setup_tcp(void **state)
{
	return setup(state, RPCRDMA_TCP);
}

static int setup_local(void **state)
{
	return setup(state, RPCRDMA_LOCAL);
}

static int teardown(void **state)
{
	odd_destroy(*state);
	free(*state);
	return 0;
}

#define BOTH(f)                                                                                    \
	{ #f " (tcp)", f, setup_tcp, teardown, NULL },                                             \
	{                                                                                          \
#f " (local)", f, setup_local, teardown, NULL                                      \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(wrong_types), BOTH(broken_handles), BOTH(no_arguments),
		BOTH(odd_names),   BOTH(odd_numbers),    BOTH(odd_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
