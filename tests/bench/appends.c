/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * appends.c - how many records clients append to one file
 *
 *     appends URL CLIENTS SECONDS [WRITERS]
 *
 * Operation:  CLIENTS sessions append records of 4 KiB to the file for SECONDS. WRITERS (0) more have written to it without
 *             O_APPEND, have reported that, and have the file open. Prints the records per second of all, and those of the
 *             slowest and of the fastest client.
 * Threads:    One for each client that appends, beside those of the sessions.
 * Errors:     A call that fails ends the program with status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "leat.h"

#define CLIENTS_MAX 64u
#define RECORD 4096u

static const char *url, *path;
static uint64_t until_ns;

struct client {
	struct leat *m;
	struct leat_file *f;
	pthread_t thread;
	unsigned n;
};

static void check(const char *what, int64_t rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "appends: %s: %s\n", what, strerror((int)-rc));
	exit(1);
}

static void begin(struct client *c, int flags)
{
	check("mount", leat_mount(url, NULL, &c->m));
	check("open", leat_open(c->m, path, O_RDWR | O_CREAT | flags, 0644, &c->f));
}

static void end(struct client *c)
{
	check("close", leat_close(c->f));
	leat_umount(c->m);
}

static void *append(void *arg)
{
	static const char record[RECORD];
	struct client *c = arg;

	while (clock_now_ns() < until_ns) {
		check("write", leat_write(c->f, record, sizeof(record)));
		c->n++;
	}
	return NULL;
}

static void run(struct client *clients, unsigned n, unsigned seconds)
{
	unsigned sum = 0, least = UINT32_MAX, most = 0;

	until_ns = clock_now_ns() + seconds * NS_PER_S;
	for (unsigned i = 0; i < n; i++)
		check("thread", -pthread_create(&clients[i].thread, NULL, append, &clients[i]));
	for (unsigned i = 0; i < n; i++) {
		(void)pthread_join(clients[i].thread, NULL);
		sum += clients[i].n;
		least = MIN(least, clients[i].n);
		most = MAX(most, clients[i].n);
	}
	printf("%u %u %u\n", sum / seconds, least / seconds, most / seconds);
}

int main(int argc, char **argv)
{
	static struct client clients[CLIENTS_MAX], writers[CLIENTS_MAX];
	unsigned n = argc > 3 ? (unsigned)atoi(argv[2]) : 0, seconds = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
	unsigned others = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
	char *slash = argc > 1 ? strrchr(argv[1], '/') : NULL;

	if (!slash || !n || n > CLIENTS_MAX || !seconds || others > CLIENTS_MAX) {
		fprintf(stderr, "usage: appends URL CLIENTS SECONDS [WRITERS]\n");
		return 2;
	}
	*slash = '\0';
	url = argv[1];
	path = slash + 1;
	for (unsigned i = 0; i < others; i++) {
		begin(&writers[i], 0);
		check("write", leat_pwrite(writers[i].f, "x", 1, 0));
		check("fsync", leat_fsync(writers[i].f));
	}
	for (unsigned i = 0; i < n; i++)
		begin(&clients[i], O_APPEND);
	run(clients, n, seconds);
	for (unsigned i = 0; i < n; i++)
		end(&clients[i]);
	for (unsigned i = 0; i < others; i++)
		end(&writers[i]);
	return 0;
}
