/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * disks.c - files on disks that end
 *
 *     disks fill URL NAME unstable|data|file ERROR   writes until there is an error, which has to be
 *         that one; by then all that was said to be written can be read, and is made stable
 *     disks work URL NAME read|write|sync  many operations at once until there is an error; says "at work"
 *         when it is, and in the end the number of it and of the operations before it, all of which were right
 *     disks quota DEVICE UID KIB       the most that a user may have on it
 *
 * ERROR is a name (ENOSPC, EDQUOT). Exit status 0: all was right.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/quota.h>
#include <sys/stat.h>

#include "leat.h"

#define STEP ((size_t)1 << 20)
#define FILL_MAX 256u /* steps: no disk of these tests is as large */
#define BLOCK ((size_t)64 << 10)
#define AT_ONCE 16u
#define AT_WORK 64u /* operations that went well before it says so */

static int fail(const char *what, long err)
{
	fprintf(stderr, "disks: %s: %s\n", what, err < 0 ? strerror((int)-err) : "wrong data");
	return 1;
}

static void fill_block(uint8_t *p, size_t len, uint64_t off)
{
	for (size_t i = 0; i < len; i++) {
		uint64_t at = off + i;

		p[i] = (uint8_t)(at ^ at >> 8 ^ at >> 16); /* emulated processors like it simple */
	}
}

/* ---- fill --------------------------------------------------------------------------------------- */

static int error_named(const char *name)
{
	return !strcmp(name, "ENOSPC") ? ENOSPC : !strcmp(name, "EDQUOT") ? EDQUOT : 0;
}

static int flags_for(const char *how)
{
	return !strcmp(how, "file") ? O_SYNC : !strcmp(how, "data") ? O_DSYNC : 0;
}

/* Return: bytes that were taken, and what the next one got in @ret_err */
static uint64_t write_until(struct leat_file *f, uint8_t *buf, int *ret_err)
{
	uint64_t at = 0;

	*ret_err = 0;
	while (at < FILL_MAX * STEP) {
		ssize_t n;

		fill_block(buf, STEP, at);
		n = leat_pwrite(f, buf, STEP, at);
		if (n < 0) {
			*ret_err = (int)-n;
			break;
		}
		at += (uint64_t)n;
	}
	return at;
}

static int check(struct leat_file *f, uint64_t bytes, uint8_t *got, uint8_t *want)
{
	for (uint64_t at = 0; at < bytes; at += STEP) {
		size_t len = bytes - at < STEP ? (size_t)(bytes - at) : STEP;
		ssize_t n = leat_pread(f, got, len, at);

		fill_block(want, len, at);
		if (n != (ssize_t)len || memcmp(got, want, len))
			return fail("what was written", n);
	}
	return 0;
}

static int fill(const char *url, const char *name, const char *how, const char *error)
{
	uint8_t *got = malloc(STEP), *want = malloc(STEP);
	struct leat_file *f = NULL;
	struct leat *m = NULL;
	uint64_t bytes = 0;
	int err, bad = 0;

	err = got && want ? leat_mount(url, NULL, &m) : -ENOMEM;
	if (!err)
		err = leat_open(m, name, O_RDWR | O_CREAT | O_TRUNC | flags_for(how), 0644, &f);
	if (err)
		return fail(name, err);
	bytes = write_until(f, want, &err);
	if (err != error_named(error))
		bad = fail("the error that came", err ? -err : -ENOENT);
	if (!bytes)
		bad = fail("nothing was written", -ENODATA);
	err = leat_fsync(f);
	if (err)
		bad |= fail("fsync of what was written", err);
	bad |= check(f, bytes, got, want);
	err = leat_close(f);
	if (err)
		bad |= fail("close", err);
	leat_umount(m);
	printf("disks: %llu bytes, then %s\n", (unsigned long long)bytes, error);
	free(got);
	free(want);
	return bad;
}

/* ---- work --------------------------------------------------------------------------------------- */

static struct work {
	struct leat_file *f;
	bool writes;
	uint64_t blocks, serial;
	unsigned out, wrong;
	unsigned long good;
	int err; /* the first */
} work;

struct slot {
	uint8_t *mem, *want;
	uint64_t off;
};

static void begin(struct slot *s);

static void on_done(void *slot, int64_t result)
{
	struct slot *s = slot;

	work.out--;
	if (result < 0) {
		work.err = work.err ? work.err : (int)result;
		return;
	}
	fill_block(s->want, BLOCK, s->off);
	/* short is what a read or write is whose rest failed: the next one tells why */
	if ((size_t)result > BLOCK || memcmp(s->mem, s->want, (size_t)result))
		work.wrong++;
	if (++work.good == AT_WORK) {
		puts("at work");
		fflush(stdout);
	}
	begin(s);
}

static void begin(struct slot *s)
{
	struct leat_cb cb = { .fn = on_done, .user_data = s };
	int err;

	if (work.err)
		return;
	s->off = work.serial++ * 7919 % work.blocks * BLOCK;
	if (work.writes)
		fill_block(s->mem, BLOCK, s->off);
	else
		memset(s->mem, 0xee, BLOCK);
	work.out++;
	err = work.writes ? leat_aio_pwrite(work.f, s->mem, BLOCK, s->off, cb) :
			    leat_aio_pread(work.f, s->mem, BLOCK, s->off, cb);
	if (err) { /* on_done() does not run */
		work.out--;
		work.err = err;
	}
}

/* a file of 2 MiB, whose contents fill_block() says */
static int make_file(struct leat_file *f, uint8_t *buf)
{
	for (uint64_t at = 0; at < 2 * STEP; at += STEP) {
		fill_block(buf, STEP, at);
		if (leat_pwrite(f, buf, STEP, at) != (ssize_t)STEP)
			return -EIO;
	}
	return leat_fsync(f);
}

static int until_it_ends(const char *url, const char *name, const char *what)
{
	static struct slot slots[AT_ONCE];
	uint8_t *buf = malloc(STEP);
	struct leat *m = NULL;
	int err;

	work.writes = strcmp(what, "read") != 0;
	work.blocks = 2 * STEP / BLOCK;
	err = buf ? leat_mount(url, NULL, &m) : -ENOMEM;
	if (!err)
		err = leat_open(m, name, O_RDWR | O_CREAT | O_TRUNC | (strcmp(what, "sync") ? 0 : O_DSYNC),
				0644, &work.f);
	if (!err)
		err = make_file(work.f, buf);
	if (err)
		return fail(name, err);
	for (unsigned i = 0; i < AT_ONCE; i++) {
		slots[i].mem = malloc(BLOCK);
		slots[i].want = malloc(BLOCK);
		if (!slots[i].mem || !slots[i].want)
			return fail(name, -ENOMEM);
		begin(&slots[i]);
	}
	while (work.out)
		(void)leat_poll(leat_session(m), -1);
	printf("disks: %lu good, then error %d (%s)\n", work.good, -work.err, strerror(-work.err));
	(void)leat_close(work.f); /* what was not stable has nowhere to go */
	leat_umount(m);
	for (unsigned i = 0; i < AT_ONCE; i++) {
		free(slots[i].mem);
		free(slots[i].want);
	}
	free(buf);
	return work.wrong ? fail("data", 0) : 0;
}

/* ---- quota -------------------------------------------------------------------------------------- */

static int quota(const char *device, const char *uid, const char *kib)
{
	struct dqblk q = { .dqb_valid = QIF_BLIMITS };

	q.dqb_bhardlimit = q.dqb_bsoftlimit = strtoull(kib, NULL, 10);
	if (quotactl(QCMD(Q_SETQUOTA, USRQUOTA), device, atoi(uid), (caddr_t)&q))
		return fail(device, -errno);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "fill") && error_named(argv[5]))
		return fill(argv[2], argv[3], argv[4], argv[5]);
	if (argc == 5 && !strcmp(argv[1], "work"))
		return until_it_ends(argv[2], argv[3], argv[4]);
	if (argc == 5 && !strcmp(argv[1], "quota"))
		return quota(argv[2], argv[3], argv[4]);
	fprintf(stderr, "usage: disks fill URL NAME HOW ERROR | work URL NAME WHAT | quota DEVICE UID KIB\n");
	return 2;
}
