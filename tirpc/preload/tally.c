/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tally.c - which calls and requests went which way, for RPCRDMA_RUN_REPORT
 *
 * Operation:  A list of counters. At exit each becomes a line: on standard error, if that is still what it was when the
 *             program started (a daemon may have put a file or a socket there), or at the end of a file.
 * Memory:     Counters live as long as the process. A child of fork() begins with zeros.
 * Threads:    Any; the list has a lock, counters are atomic.
 * Errors:     Without memory something is not counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "tally.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rt_tally *list;
static char *file;            /* NULL: no report; "": standard error */
static struct stat error_was; /* standard error at the start */

static void lock_list(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_list(void)
{
	pthread_mutex_unlock(&lock);
}

/* What the parent did is in the parent's report. */
static void forget_all(void)
{
	for (struct rt_tally *t = list; t; t = t->next) {
		t->handles = t->calls = t->failed = t->refused = 0;
		t->why[0] = '\0';
	}
	unlock_list();
}

void rt_tally_init(void)
{
	const char *to = secure_getenv(RT_ENV_REPORT);

	if (!to || (strcmp(to, "1") && *to != '/'))
		return;
	if (*to != '/' && fstat(STDERR_FILENO, &error_was))
		return;
	file = strdup(*to == '/' ? to : "");
	if (file)
		pthread_atfork(lock_list, unlock_list, forget_all);
}

bool rt_tally_is_on(void)
{
	return file;
}

struct rt_tally *rt_tally_get(const char *host, uint32_t prog, uint32_t vers, const char *way)
{
	struct rt_tally *t;

	if (!file)
		return NULL;
	lock_list();
	for (t = list; t; t = t->next)
		if (t->prog == prog && t->vers == vers && !strcmp(t->way, way) && !strcmp(t->host, host))
			break;
	if (!t && (t = calloc(1, sizeof(*t)))) {
		(void)snprintf(t->host, sizeof(t->host), "%s", host);
		(void)snprintf(t->way, sizeof(t->way), "%s", way);
		t->prog = prog;
		t->vers = vers;
		t->next = list;
		list = t;
	}
	unlock_list();
	return t;
}

void rt_tally_refuse(struct rt_tally *t, const char *why)
{
	if (!t)
		return;
	rt_tally_add(&t->refused);
	lock_list();
	(void)snprintf(t->why, sizeof(t->why), "%s", why);
	text_clean(t->why);
	unlock_list();
}

static int open_report(void)
{
	struct stat now;

	if (*file)
		return open(file, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	if (fstat(STDERR_FILENO, &now) || now.st_dev != error_was.st_dev || now.st_ino != error_was.st_ino)
		return -1;
	return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
}

static void print_one(int fd, const struct rt_tally *t)
{
	const char *name = program_invocation_short_name;

	if (*t->host)
		(void)dprintf(fd, "rpcrdma-run: %s[%d]: client %s program=%u version=%u way=%s handles=%ju calls=%ju failed=%ju "
			      "refused=%ju%s%s\n", name, (int)getpid(), t->host, t->prog, t->vers, t->way, (uintmax_t)t->handles,
			      (uintmax_t)t->calls, (uintmax_t)t->failed, (uintmax_t)t->refused, *t->why ? ": " : "", t->why);
	else
		(void)dprintf(fd, "rpcrdma-run: %s[%d]: service program=%u version=%u way=%s requests=%ju\n", name, (int)getpid(),
			      t->prog, t->vers, t->way, (uintmax_t)t->calls);
}

void rt_tally_print(void)
{
	int fd;

	if (!file)
		return;
	lock_list();
	fd = list ? open_report() : -1;
	for (const struct rt_tally *t = fd < 0 ? NULL : list; t; t = t->next)
		if (t->handles || t->calls || t->refused)
			print_one(fd, t);
	if (fd >= 0)
		close(fd);
	unlock_list();
}
