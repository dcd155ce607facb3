/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * idle_volumes.c - memory of an idle volume beside that of an idle mount
 *
 *     idle_volumes KIND SERVER EXPORT LEATD_PID N
 *
 * KIND is mounts or volumes, or session-mounts or session-volumes, which are in one session. SERVER is a URL without a path, EXPORT one that has a file "vol0", and the server has N volumes "v0", "v1" and so on. The
 * program opens one, and then N - 1 more; each reads 4 KiB. Printed is the growth by those, for each of them: resident memory
 * (which includes shared memory) and locked and pinned memory, in KiB, of the client and of leatd. leatd should be new: it
 * uses memory again that others have left.
 *
 * Operation:  One thread.
 * Errors:     A call that fails ends the program with status 1.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "leat_block.h"

static const char *server, *export;
static pid_t leatd;
static unsigned items;

static void die(const char *what)
{
	fprintf(stderr, "idle_volumes: %s: %s\n", what, leat_error(NULL));
	exit(1);
}

struct memory {
	long resident, shared, locked; /* KiB */
};

static struct memory memory_of(pid_t pid)
{
	struct memory m = { 0 };
	char path[64], line[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	if (!f)
		die(path);
	while (fgets(line, sizeof(line), f)) {
		long kib;

		if (sscanf(line, "VmRSS: %ld kB", &kib) == 1)
			m.resident = kib;
		else if (sscanf(line, "RssShmem: %ld kB", &kib) == 1)
			m.shared = kib;
		else if (sscanf(line, "VmLck: %ld kB", &kib) == 1 || sscanf(line, "VmPin: %ld kB", &kib) == 1)
			m.locked += kib;
	}
	fclose(f);
	return m;
}

/* ---- kinds ---- */

static char page[4096];

static void open_mount(struct leat_session *s, unsigned i)
{
	struct leat_file *f;
	struct leat *m;

	(void)i;
	if (s ? leat_session_mount(s, export, NULL, &m) : leat_mount(export, NULL, &m))
		die(export);
	if (leat_open(m, "vol0", O_RDONLY, 0, &f) || leat_pread(f, page, sizeof(page), 0) != (ssize_t)sizeof(page) || leat_close(f))
		die("vol0");
}

static void open_volume(struct leat_session *s, unsigned i)
{
	struct leat_block *b;
	char url[512];

	(void)snprintf(url, sizeof(url), "%s/block/v%u", server, i);
	if (s ? leat_session_attach(s, url, NULL, 0, &b) : leat_block_attach(url, NULL, 0, &b))
		die(url);
	if (leat_block_pread(b, page, sizeof(page), 0) != (ssize_t)sizeof(page))
		die(url);
}

static const struct kind {
	const char *name;
	void (*open)(struct leat_session *s, unsigned i);
	bool one_session;
} kinds[] = {
	{ "mounts", open_mount, false },
	{ "volumes", open_volume, false },
	{ "session-mounts", open_mount, true },
	{ "session-volumes", open_volume, true },
};

static void print_growth(const char *who, struct memory from, struct memory to)
{
	double n = items - 1;

	printf("  %s %7.1f (shared %6.1f) + %5.1f", who, (double)(to.resident - from.resident) / n, (double)(to.shared - from.shared) / n,
	       (double)(to.locked - from.locked) / n);
}

static void measure(const struct kind *k)
{
	struct leat_session *s = NULL;
	struct memory client, at_server;

	if (k->one_session && leat_session_create(NULL, &s))
		die(k->name);
	k->open(s, 0);
	client = memory_of(getpid());
	at_server = memory_of(leatd);
	for (unsigned i = 1; i < items; i++)
		k->open(s, i);
	printf("    %-24s", k->name);
	print_growth("client", client, memory_of(getpid()));
	print_growth("leatd", at_server, memory_of(leatd));
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc != 6)
		return 2;
	server = argv[2];
	export = argv[3];
	leatd = (pid_t)atoi(argv[4]);
	items = (unsigned)atoi(argv[5]);
	if (items < 2)
		return 2;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		if (!strcmp(argv[1], kinds[k].name)) {
			measure(&kinds[k]);
			return 0; /* without ending them: the process does */
		}
	}
	return 2;
}
