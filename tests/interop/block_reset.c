/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_reset.c - holders of volumes whose server machine loses its power, for block_reset.sh
 *
 *   block_reset URL
 *
 * URL is a server with the volumes "direct", shared, and "cached", exclusive. Each line of standard input is an event that
 * the script has caused, in this order: "down" (the machine has no power), "up" (leatd serves again). The program prints
 * "unflushed" when it waits for the first, "waiting" when it has started calls that the second must complete. Each
 * check prints a line if it fails, and the last line has the sum.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat_block.h"

#define BLOCK 4096u

static const char *server;
static atomic_uint passed, failed;

__attribute__((format(printf, 3, 4))) static void check(long long got, long long wanted, const char *fmt, ...)
{
	char what[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (got == wanted) {
		passed++;
		return;
	}
	failed++;
	printf("%s: %lld, not %lld\n", what, got, wanted);
}

static void attach(const char *volume, const char *holder, struct leat_block **ret)
{
	char url[512];

	snprintf(url, sizeof(url), "%s/block/%s?holder=%s", server, volume, holder);
	if (leat_block_attach(url, NULL, 0, ret)) {
		printf("%s: %s\n", url, leat_error(NULL));
		exit(1);
	}
}

static int attach_other(const char *volume)
{
	struct leat_block *b;
	char url[512];
	int err;

	snprintf(url, sizeof(url), "%s/block/%s?holder=other", server, volume);
	err = leat_block_attach(url, NULL, 0, &b);
	if (!err)
		(void)leat_block_detach(b);
	return err;
}

static long long put(struct leat_block *b, char byte, unsigned block, unsigned flags)
{
	char data[BLOCK];

	memset(data, byte, sizeof(data));
	return leat_block_pwrite(b, data, sizeof(data), (uint64_t)block * BLOCK, flags);
}

/* The byte that fills the block; -errno; -1000 if it is filled by several. */
static long long get(struct leat_block *b, unsigned block)
{
	char data[BLOCK];
	ssize_t n = leat_block_pread(b, data, sizeof(data), (uint64_t)block * BLOCK);

	if (n != (ssize_t)sizeof(data))
		return n;
	return memcmp(data, data + 1, sizeof(data) - 1) ? -1000 : data[0];
}

static void expect(const char *event)
{
	char line[32];

	if (!fgets(line, sizeof(line), stdin) || strncmp(line, event, strlen(event))) {
		printf("no %s\n", event);
		exit(1);
	}
}

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

/* One holder. Block 0 is 'k' and flushed; block 1 was flushed as 'o', and is 'u' without a flush where @unflushed. */
struct holder {
	const char *volume, *name;
	bool unflushed;
	bool fua;                       /* the first to report the loss is a write with FUA, not a flush */
	bool early;                     /* that one begins while the machine is down */
	unsigned at;                    /* its first block */
	struct leat_block *b;
};

static struct holder holders[] = {
	{ .volume = "direct", .name = "flush", .unflushed = true },
	{ .volume = "direct", .name = "fua", .unflushed = true, .fua = true, .at = 8 },
	{ .volume = "direct", .name = "flush-early", .unflushed = true, .early = true, .at = 16 },
	{ .volume = "direct", .name = "fua-early", .unflushed = true, .fua = true, .early = true, .at = 24 },
	{ .volume = "direct", .name = "clean", .at = 32 },
	{ .volume = "direct", .name = "clean-early", .early = true, .at = 40 },
	{ .volume = "cached", .name = "cached", .unflushed = true },
};
#define COUNT (sizeof(holders) / sizeof(holders[0]))

static void prepare(struct holder *h)
{
	attach(h->volume, h->name, &h->b);
	check(put(h->b, 'k', h->at, 0), BLOCK, "%s: a write", h->name);
	check(put(h->b, 'o', h->at + 1, 0), BLOCK, "%s: a write", h->name);
	check(leat_block_flush(h->b), 0, "%s: its flush", h->name);
}

/* The two ways to ask that data is durable */
static long long secure(struct holder *h, bool fua)
{
	return fua ? put(h->b, 'f', h->at + 2, LEAT_BLOCK_FUA) : leat_block_flush(h->b);
}

static void look(struct holder *h)
{
	long long good[2] = { 0, BLOCK };
	unsigned i;

	for (i = 0; i < 4; i++) {
		bool fua = h->fua ? !(i & 1) : i & 1;

		check(secure(h, fua), h->unflushed ? -EIO : good[fua], "%s: %s %u after the loss", h->name,
		      fua ? "write with FUA" : "flush", i);
	}
	check(get(h->b, h->at), 'k', "%s: what was flushed", h->name);
	if (!strcmp(h->volume, "cached")) /* only the machine's memory had it: the test loses what it means to lose */
		check(get(h->b, h->at + 1), 'o', "%s: what was not flushed", h->name);
	check(put(h->b, 'w', h->at + 3, 0), BLOCK, "%s: a write after the loss", h->name);

	check(leat_block_detach(h->b), 0, "%s: detached", h->name);
	attach(h->volume, h->name, &h->b);
	for (i = 0; i < 2; i++)
		check(secure(h, i), good[i], "%s: attached again, %s", h->name, i ? "write with FUA" : "flush");
	check(get(h->b, h->at + 3), 'w', "%s: attached again, its data", h->name);
}

static void *look_early(void *h)
{
	look(h);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[COUNT];
	unsigned i;

	if (argc != 2)
		return 2;
	server = argv[1];
	for (i = 0; i < COUNT; i++)
		prepare(&holders[i]);
	/* Only now: a flush by one holder covers the writes of all. */
	for (i = 0; i < COUNT; i++)
		if (holders[i].unflushed)
			check(put(holders[i].b, 'u', holders[i].at + 1, 0), BLOCK, "%s: a write", holders[i].name);
	say("unflushed");
	expect("down");
	for (i = 0; i < COUNT; i++)
		if (holders[i].early && pthread_create(&threads[i], NULL, look_early, &holders[i]))
			abort();
	say("waiting");
	expect("up");
	check(attach_other("cached"), -EBUSY, "another holder, which the machine has not forgotten");
	for (i = 0; i < COUNT; i++)
		if (!holders[i].early)
			look(&holders[i]);
	for (i = 0; i < COUNT; i++)
		if (holders[i].early)
			pthread_join(threads[i], NULL);
	for (i = 0; i < COUNT; i++)
		check(leat_block_detach(holders[i].b), 0, "%s: detached at the end", holders[i].name);
	printf("block_reset: %u passed, %u failed\n", passed, failed);
	return failed > 0;
}
