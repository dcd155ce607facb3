/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leatds.c - the processes of a striped volume: stripe servers and a manager, which can be killed, stopped and cut off
 *
 * Operation:  Over TCP each server is behind a relay, whose ports are those of the map. The log of a leatd is DIR/log.N; it
 *             is read to see when it is ready.
 * Memory:     struct leatds is the caller's.
 * Threads:    That of the relay.
 * Errors:     -errno with a text.
 */
#include "leatds.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "relay.h"

#define KEY "volume = 1122334455667788\nkey = 00112233445566778899aabbccddeeff\n"
#define READY "leatd: ready"
#define READY_NS (60 * NS_PER_S)
#define ARG_BYTES 900u

static int printf_like(2, 3) fail(struct leatds *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(l->why, sizeof(l->why), fmt, ap);
	va_end(ap);
	return -EIO;
}

static int make_file(struct leatds *l, const char *name, const char *text)
{
	char path[300];
	int fd, rc = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", l->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(l, "%s: %s", path, strerror(errno));
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		rc = fail(l, "%s: %s", path, strerror(errno));
	close(fd);
	return rc;
}

static int make_dir(struct leatds *l, const char *name)
{
	char path[300];

	(void)snprintf(path, sizeof(path), "%s/%s", l->dir, name);
	return mkdir(path, 0700) ? fail(l, "%s: %s", path, strerror(errno)) : 0;
}

/* ---- one leatd --------------------------------------------------------------------------- */

static void log_path(const struct leatds *l, unsigned i, char *ret, size_t room)
{
	(void)snprintf(ret, room, "%s/log.%u", l->dir, i + 1);
}

static void listen_url(const struct leatds *l, unsigned i, char *ret, size_t room)
{
	if (l->tcp)
		(void)snprintf(ret, room, "tcp://127.0.0.1:%u", l->ports[i]);
	else
		(void)snprintf(ret, room, "local://%s/sock.%u", l->dir, i + 1);
}

static void exec_leatd(const struct leatds *l, unsigned i)
{
	const char *peers = l->tcp ? ",clients=127.0.0.1,insecure" : "";
	char spec[ARG_BYTES], url[300], state[300], path[300];
	int log;

	listen_url(l, i, url, sizeof(url));
	log_path(l, i, path, sizeof(path));
	(void)snprintf(state, sizeof(state), "%s/state", l->dir);
	if (i < l->n)
		(void)snprintf(spec, sizeof(spec), "v=%s/s%u,key=%s/key,id=%u%s", l->dir, i + 1, l->dir, i + 1, peers);
	else
		(void)snprintf(spec, sizeof(spec), "v=%s/m,key=%s/key,map=%s/map,no_root_squash,stripe=%" PRIu64 ",stripe_timeo=%" PRIu64
			       "ms%s", l->dir, l->dir, l->dir, l->unit, l->patience_ms, peers);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (log < 0 || dup2(log, STDERR_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0)
		_exit(3);
	execl(l->leatd, l->leatd, i < l->n ? "--stripes" : "--volume", spec, "--listen", url, "--state-dir", state, "--reactors",
	      i % 2 ? "2" : "1", (char *)NULL);
	_exit(3);
}

static bool is_ready(const struct leatds *l, unsigned i, off_t from)
{
	char path[300], text[16384];
	ssize_t n = 0;
	int fd;

	log_path(l, i, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = pread(fd, text, sizeof(text) - 1, from);
		close(fd);
	}
	text[MAX(n, (ssize_t)0)] = '\0';
	return strstr(text, READY) != NULL;
}

static int start_one(struct leatds *l, unsigned i)
{
	uint64_t until = clock_now_ns() + READY_NS;
	struct stat st = { 0 };
	char path[300];

	log_path(l, i, path, sizeof(path));
	(void)stat(path, &st);
	l->pids[i] = fork();
	if (!l->pids[i])
		exec_leatd(l, i);
	if (l->pids[i] < 0)
		return fail(l, "fork: %s", strerror(errno));
	while (!is_ready(l, i, st.st_size)) {
		if (waitpid(l->pids[i], NULL, WNOHANG)) {
			l->pids[i] = 0;
			return fail(l, "leatd %u ended: see %s", i + 1, path);
		}
		if (clock_now_ns() > until)
			return fail(l, "leatd %u does not get ready: see %s", i + 1, path);
		(void)poll(NULL, 0, 1);
	}
	return 0;
}

int leatds_check(struct leatds *l)
{
	int status;

	for (unsigned i = 0; i <= l->n; i++) {
		if (l->pids[i] <= 0 || waitpid(l->pids[i], &status, WNOHANG) != l->pids[i])
			continue;
		l->pids[i] = 0;
		return fail(l, "leatd %u ended by itself, status %x: see %s/log.%u", i + 1, (unsigned)status, l->dir, i + 1);
	}
	return 0;
}

/* ---- faults ------------------------------------------------------------------------------ */

/* One thread of leatd takes the signal, and the others go on until that thread runs. */
static int stop_one(struct leatds *l, unsigned i)
{
	int status;

	kill(l->pids[i], SIGSTOP);
	if (waitpid(l->pids[i], &status, WUNTRACED) == l->pids[i] && WIFSTOPPED(status))
		return 0;
	l->pids[i] = 0;
	return fail(l, "leatd %u ended by itself: see %s/log.%u", i + 1, l->dir, i + 1);
}

int leatds_fail(struct leatds *l, unsigned server, enum fleet_fault fault)
{
	int rc = leatds_check(l);

	if (rc)
		return rc;
	switch (fault) {
	case FLEET_KILL:
		kill(l->pids[server], SIGKILL);
		waitpid(l->pids[server], NULL, 0);
		l->pids[server] = 0;
		return 0;
	case FLEET_STOP:
		return stop_one(l, server);
	case FLEET_HOLD:
		relay_hold(l->relay, server);
		return 0;
	default:
		relay_break(l->relay, server);
		return 0;
	}
}

int leatds_heal(struct leatds *l, unsigned server, enum fleet_fault fault)
{
	switch (fault) {
	case FLEET_KILL:
		return l->pids[server] ? 0 : start_one(l, server);
	case FLEET_STOP:
		kill(l->pids[server], SIGCONT);
		return 0;
	case FLEET_HOLD:
		relay_release(l->relay, server);
		return 0;
	default:
		return 0;
	}
}

uint64_t leatds_queued(const struct leatds *l)
{
	return relay_queued(l->relay);
}

bool leatds_is_settled(const struct leatds *l)
{
	char path[300];
	const struct dirent *e;
	bool any = false;
	DIR *d;

	(void)snprintf(path, sizeof(path), "%s/m/pending", l->dir);
	d = opendir(path);
	if (!d)
		return false;
	while (!any && (e = readdir(d)) != NULL)
		any = e->d_name[0] != '.';
	closedir(d);
	return !any;
}

/* ---- all --------------------------------------------------------------------------------- */

/* A port that no one uses at the moment */
static int find_port(uint16_t *ret)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);
	int rc = 0;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) || getsockname(fd, (struct sockaddr *)&at, &len))
		rc = -errno;
	*ret = ntohs(at.sin_port);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int make_urls(struct leatds *l)
{
	uint16_t relayed[FLEET_SERVERS_MAX + 1];
	char map[2048], url[300];
	int rc = 0;

	for (unsigned i = 0; i <= l->n && l->tcp && !rc; i++)
		rc = find_port(&l->ports[i]);
	if (!rc && l->tcp)
		rc = relay_create(l->ports, l->n + 1, relayed, &l->relay);
	if (rc)
		return fail(l, "ports: %s", strerror(-rc));
	(void)snprintf(map, sizeof(map), "volume = 1122334455667788\nversion = 1\n");
	for (unsigned i = 0; i <= l->n; i++) {
		if (l->tcp)
			(void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%u", relayed[i]);
		else
			listen_url(l, i, url, sizeof(url));
		if (i < l->n)
			(void)snprintf(map + strlen(map), sizeof(map) - strlen(map), "[server %u]\nurl = %s\n", i + 1, url);
	}
	(void)snprintf(l->url, sizeof(l->url), "%.240s/v", url);
	return make_file(l, "map", map);
}

int leatds_start(struct leatds *l, const char *dir, const char *leatd, const char *scheme, const struct fleet_opts *o)
{
	char name[16];
	int rc;

	*l = (struct leatds){ .leatd = leatd, .tcp = !strcmp(scheme, "tcp"), .n = o->servers, .unit = o->unit,
			      .patience_ms = o->patience_ms };
	if (dir[0] != '/' || strlen(dir) >= 60)
		return fail(l, "%s: an absolute path of less than 60 bytes is needed", dir);
	(void)snprintf(l->dir, sizeof(l->dir), "%s", dir);
	if (mkdir(dir, 0700))
		return fail(l, "%s: %s", dir, strerror(errno));
	rc = make_file(l, "key", KEY);
	if (!rc)
		rc = make_dir(l, "m");
	if (!rc)
		rc = make_dir(l, "state");
	for (unsigned i = 0; i < l->n && !rc; i++) {
		(void)snprintf(name, sizeof(name), "s%u", i + 1);
		rc = make_dir(l, name);
	}
	if (!rc)
		rc = make_urls(l);
	for (unsigned i = 0; i <= l->n && !rc; i++)
		rc = start_one(l, i);
	return rc;
}

int leatds_end(struct leatds *l)
{
	int rc = leatds_check(l), status;

	for (unsigned i = l->n + 1; i-- > 0;) {
		if (l->pids[i] <= 0)
			continue;
		kill(l->pids[i], SIGCONT);
		kill(l->pids[i], SIGTERM);
		if (waitpid(l->pids[i], &status, 0) == l->pids[i] && status && !rc)
			rc = fail(l, "leatd %u ended with status %x: see %s/log.%u", i + 1, (unsigned)status, l->dir, i + 1);
		l->pids[i] = 0;
	}
	relay_destroy(l->relay);
	l->relay = NULL;
	return rc;
}
