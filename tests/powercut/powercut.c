/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * powercut.c - the power cut tester as a program: for a machine whose power is really cut
 *
 *     powercut run   URL EXPORT LOGDIR THREADS SEED     until the power goes
 *     powercut check URL EXPORT LOGDIR THREADS ROOT     on what is left of it below ROOT
 *
 * LOGDIR must be outside the machine, on something that keeps a record once write() has returned. The
 * last line of `check` says how many operations were answered and how many promises were broken.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "cut.h"

#define OPS_MAX 1000000u

struct client {
	struct cut_log log;
	pthread_t thread;
	struct cut_expect e;
	struct cut_conn *conn;
	uint64_t seed;
	int fd, err;
	char why[CUT_WHY_BYTES];
};

static struct client clients[CUT_THREADS_MAX];

static int usage(void)
{
	fprintf(stderr, "usage: powercut run URL EXPORT LOGDIR THREADS SEED\n"
			"       powercut check URL EXPORT LOGDIR THREADS ROOT\n");
	return 2;
}

static int open_log(const char *dir, unsigned thread, int flags)
{
	char path[4096];
	int fd;

	if (snprintf(path, sizeof(path), "%s/t%u", dir, thread) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, flags | O_CLOEXEC, 0644);
	if (fd < 0)
		fprintf(stderr, "powercut: %s: %s\n", path, strerror(errno));
	return fd;
}

static bool put(struct cut_log *log, const struct cut_op *op)
{
	const struct client *c = container_of(log, struct client, log);

	return write(c->fd, op, sizeof(*op)) == (ssize_t)sizeof(*op);
}

static void *client_main(void *arg)
{
	struct client *c = arg;

	c->err = cut_drive(c->conn, &c->e, &c->log, c->seed, OPS_MAX, false, c->why);
	return NULL;
}

static int run(const char *dir, unsigned n, uint64_t seed)
{
	int rc = 0;

	for (unsigned i = 0; i < n; i++) {
		struct client *c = &clients[i];

		c->log.put = put;
		c->seed = (seed * 31 + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
		c->fd = open_log(dir, i, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_SYNC);
		if (c->fd < 0 || pthread_create(&c->thread, NULL, client_main, c))
			return 1;
	}
	for (unsigned i = 0; i < n; i++) {
		pthread_join(clients[i].thread, NULL);
		if (!clients[i].err)
			continue;
		fprintf(stderr, "powercut: %s\n", clients[i].why);
		rc = 1;
	}
	return rc;
}

/* The last record may be cut off: what it was to begin was never asked for, what it was to end never
 * counted. */
static int read_log(struct client *c, int fd)
{
	struct cut_op op;
	int err = 0;

	while (!err && read(fd, &op, sizeof(op)) == (ssize_t)sizeof(op))
		err = cut_expect_take(&c->e, &op);
	return err;
}

static unsigned check_one(struct client *c, int fd, const char *root)
{
	int err = read_log(c, fd);
	unsigned broken;

	close(fd);
	if (err) {
		printf("powercut: the log of thread %u makes no sense\n", c->e.thread);
		return 1;
	}
	broken = cut_recheck(c->conn, &c->e, c->why);
	if (!broken)
		broken = cut_verify(&c->e, root, c->why);
	if (broken)
		printf("powercut: %s\n", c->why);
	return broken;
}

static int check(const char *dir, unsigned n, const char *root)
{
	unsigned long long acked = 0;
	unsigned broken = 0;

	for (unsigned i = 0; i < n; i++) {
		int fd = open_log(dir, i, O_RDONLY);

		if (fd < 0)
			return 1;
		broken += check_one(&clients[i], fd, root);
		acked += clients[i].e.acked;
	}
	printf("powercut: %llu operations answered, %u promises broken\n", acked, broken);
	return broken || !acked;
}

int main(int argc, char **argv)
{
	unsigned n;
	int rc, err;

	if (argc != 7 || (strcmp(argv[1], "run") && strcmp(argv[1], "check")))
		return usage();
	n = (unsigned)strtoul(argv[5], NULL, 10);
	if (!n || n > CUT_THREADS_MAX)
		return usage();
	for (unsigned i = 0; i < n; i++) {
		cut_expect_init(&clients[i].e, i);
		err = cut_connect(argv[2], argv[3], (unsigned)getpid() * CUT_THREADS_MAX + i,
				  &clients[i].conn);
		if (err) {
			fprintf(stderr, "powercut: %s: %s\n", argv[2], strerror(-err));
			return 1;
		}
	}
	rc = strcmp(argv[1], "run") ? check(argv[4], n, argv[6])
				    : run(argv[4], n, strtoull(argv[6], NULL, 10));
	for (unsigned i = 0; i < n; i++) {
		cut_disconnect(clients[i].conn);
		cut_expect_fini(&clients[i].e);
	}
	return rc;
}
