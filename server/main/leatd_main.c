/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leatd_main.c - leatd: options, signals, and the lines that scripts wait for
 *
 * Operation: reads the configuration, starts a server (server.c), prints on standard output where it
 *            listens and that it is ready, and waits for signals: to reload the configuration, and to end.
 *            Clients may request both, too (ctl_prog.c).
 * Memory:    struct conf until the end.
 * Threads:   this one only waits for signals, which are blocked in all others; manager_reload() and
 *            manager_drain() run on workers.
 * Errors:    exit status 2: the command line is wrong; 1: the configuration is invalid or cannot be applied.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/std_fds.h"
#include "conf.h"
#include "reload.h"
#include "server.h"

#ifndef LEAT_VERSION
#define LEAT_VERSION "unknown"
#endif

#define DRAIN_MS 10000

struct manager {
	struct server_manager ops;
	struct reload *reload;
	pthread_t main;
};

static int manager_reload(const struct server_manager *m, char *said, size_t said_bytes)
{
	return reload_run(container_of(m, struct manager, ops)->reload, said, said_bytes);
}

static void manager_drain(const struct server_manager *m)
{
	pthread_kill(container_of(m, struct manager, ops)->main, SIGTERM);
}

/* Return: the signal that ends the program */
static int wait_for_end(const sigset_t *set, struct reload *reload)
{
	char said[CONF_WHY_BYTES];
	int sig;

	for (;;) {
		if (sigwait(set, &sig))
			continue;
		if (sig != SIGHUP)
			return sig;
		if (reload_run(reload, said, sizeof(said)))
			log_debug("SIGHUP: no change");
	}
}

static int run(struct conf *conf, int argc, char **argv)
{
	struct manager manager = { { manager_reload, manager_drain }, NULL, pthread_self() };
	struct server *s;
	char url[300];
	sigset_t set;
	int sig, err;

	/* threads inherit the mask; this thread receives signals when it waits for them */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file that is too large is an error of write() */

	err = server_start(conf, &s);
	if (err)
		return 1;
	err = reload_create(conf, argc, argv, s, &manager.reload);
	if (err) {
		log_err("cannot start: the working directory: %s", strerror(-err));
		if (server_stop(s, 0))
			log_err("cannot end cleanly");
		return 1;
	}
	server_set_manager(s, &manager.ops);
	for (size_t i = 0; i < server_listeners(s); i++)
		printf("leatd: listening on %s\n",
		       rpcrdma_addr_print(server_listener(s, i), url, sizeof(url)));
	printf("leatd: ready\n");
	fflush(stdout);
	if (chdir("/")) /* do not keep an unrelated file system busy */
		log_debug("chdir: %s", strerror(errno));

	sig = wait_for_end(&set, manager.reload);
	log_info("%s: ending", sig == SIGTERM ? "SIGTERM" : "SIGINT");
	if (!server_stop(s, DRAIN_MS)) {
		reload_destroy(manager.reload);
		return 0;
	}
	log_warn("calls are still being served after %d s: ending without them", DRAIN_MS / 1000);
	fflush(NULL);
	_exit(1); /* other threads are inside system calls: nothing may be freed */
}

int main(int argc, char **argv)
{
	char why[CONF_WHY_BYTES] = "";
	struct conf *conf = malloc(sizeof(*conf)); /* too large for the stack */
	int status = 2;

	std_fds_fill();
	if (!conf)
		return 1;
	conf_init(conf);
	switch (conf_args(conf, argc, argv, why)) {
	case CONF_RUN:
		log_set_level(conf->log_level);
		status = run(conf, argc, argv);
		break;
	case CONF_HELP:
		conf_help(stdout);
		status = ferror(stdout) != 0;
		break;
	case CONF_VERSION:
		status = printf("leatd %s\n", LEAT_VERSION) < 0;
		break;
	case CONF_USAGE:
		fprintf(stderr, "leatd: %s\n%s", why, "Try 'leatd --help'.\n");
		break;
	case CONF_BAD:
		log_err("%s", why);
		status = 1;
		break;
	}
	conf_fini(conf);
	free(conf);
	return status;
}
