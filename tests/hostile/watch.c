/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * watch.c - is the memory of a leatd within what it said it may take?
 *
 *   hostile watch PID POOL MESSAGES REPLIES SHARED CONNECTIONS MOST
 *
 * Operation:  Until its standard input ends it reads every 20 ms how much memory of the process is resident, shared
 *             memory included, and compares it with
 *               POOL + MESSAGES + REPLIES (bytes: pinned-max, messages-max, drc-bytes)
 *               + all that it has mapped of memfds + 256 KiB for each socket + 64 MiB.
 *             What was mapped just before or just after counts, whichever is more; of sockets the most that there were, since
 *             the allocator keeps what connections gave back, up to CONNECTIONS (max-connections). No more than SHARED
 *             (shared-max) may be mapped. MOST is the sum that leatd printed, where that counts whole: the peak
 *             (VmHWM) is compared with it.
 * Memory:     Little.
 * Threads:    One.
 * Errors:     More than the bound, or the process is gone: status 1, at once.
 */
#include <ctype.h>
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "hostile.h"

#define EVERY_MS 20
#define PER_CONNECTION (UINT64_C(256) << 10)
#define SLACK (UINT64_C(64) << 20)
#define MIB 1048576.0

struct look {
	uint64_t rss, shared, peak; /* bytes */
	uint64_t mapped;            /* of memfds */
	unsigned sockets;
	bool sanitized;
};

static char proc[40];

static FILE *open_proc(const char *name)
{
	char path[80];

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	return fopen(path, "re");
}

static bool look_status(struct look *l)
{
	FILE *f = open_proc("status");
	bool found = false;
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long kib;

		if (sscanf(line, "VmRSS: %llu", &kib) == 1) {
			l->rss = kib << 10;
			found = true;
		} else if (sscanf(line, "RssShmem: %llu", &kib) == 1) {
			l->shared = kib << 10;
		} else if (sscanf(line, "VmHWM: %llu", &kib) == 1) {
			l->peak = kib << 10;
		}
	}
	if (f)
		fclose(f);
	return found;
}

static void look_mapped(struct look *l)
{
	FILE *f = open_proc("maps");
	char line[512];

	l->mapped = 0;
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long from, to;

		l->sanitized |= strstr(line, "libasan") || strstr(line, "libtsan") || strstr(line, "libubsan");
		if (strstr(line, "/memfd:") && sscanf(line, "%llx-%llx", &from, &to) == 2)
			l->mapped += to - from;
	}
	if (f)
		fclose(f);
}

static void look_sockets(struct look *l)
{
	char path[400], target[64];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/fd", proc);
	dir = opendir(path);
	l->sockets = 0;
	while (dir && (d = readdir(dir))) {
		ssize_t n;

		snprintf(path, sizeof(path), "%s/fd/%s", proc, d->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0 && !strncmp(target, "socket:", 7))
			l->sockets++;
	}
	if (dir)
		closedir(dir);
}

int watch_main(int argc, char **argv)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	uint64_t fixed = SLACK, shared, conns, most, rss_max = 0, bound_then = 0, shared_max = 0, mapped_max = 0;
	uint64_t tightest = UINT64_MAX;
	struct look l = { 0 };
	unsigned sockets_max = 0;

	if (argc != 8)
		return 2;
	snprintf(proc, sizeof(proc), "/proc/%s", argv[1]);
	for (int i = 2; i < 5; i++)
		fixed += strtoull(argv[i], NULL, 10);
	shared = strtoull(argv[5], NULL, 10);
	conns = strtoull(argv[6], NULL, 10);
	most = strtoull(argv[7], NULL, 10);
	printf("watch: ready\n");
	fflush(stdout);
	look_mapped(&l);
	do {
		uint64_t mapped = l.mapped, bound;

		if (!look_status(&l)) {
			printf("watch: FAILED: the process is gone\n");
			return 1;
		}
		look_mapped(&l);
		look_sockets(&l);
		sockets_max = MAX(sockets_max, l.sockets);
		bound = fixed + MAX(mapped, l.mapped) + MIN(sockets_max, conns) * PER_CONNECTION;
		if (l.rss > rss_max) {
			rss_max = l.rss;
			bound_then = bound;
		}
		shared_max = MAX(shared_max, l.shared);
		mapped_max = MAX(mapped_max, l.mapped);
		if (l.mapped > shared || (!l.sanitized && (l.rss > bound || l.peak > most))) {
			printf("watch: FAILED: %.1f MiB resident, at most %.1f (%.1f MiB mapped, %u sockets); peak %.1f, at "
			       "most %.1f MiB\n",
			       (double)l.rss / MIB, (double)bound / MIB, (double)l.mapped / MIB, l.sockets,
			       (double)l.peak / MIB, (double)most / MIB);
			return 1;
		}
		tightest = MIN(tightest, bound - MIN(l.rss, bound));
	} while (poll(&in, 1, EVERY_MS) == 0);
	printf("watch: resident %.1f MiB at most (bound then %.1f, never nearer than %.1f), shared %.1f, mapped %.1f, "
	       "%u sockets%s\n",
	       (double)rss_max / MIB, (double)bound_then / MIB, (double)tightest / MIB, (double)shared_max / MIB,
	       (double)mapped_max / MIB, sockets_max, l.sanitized ? "; not checked under a sanitizer" : "");
	return 0;
}
