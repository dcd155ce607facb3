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

static const char usage[] =
	"usage: leatd [-c FILE] [--export DIR | --export /NAME=DIR][,option...]... [--listen "
	"URL]...\n"
	"\n"
	"  -c, --config FILE    read FILE first: sections [server] and [export /NAME]\n"
	"  -e, --export SPEC    serve a directory; options after it:\n"
	"                         ro, rw, sync, async, root_squash, no_root_squash, all_squash,\n"
	"                         secure, insecure, anonuid=N, anongid=N,\n"
	"                         clients=CIDR[,CIDR...]\n"
	"                       without clients= this host only; how data travels (leatd.conf(5)):\n"
	"                         overlap=HOW, grain=BYTES, streams=N, chunk=BYTES\n"
	"  -l, --listen URL     tcp://HOST:PORT, local:///PATH, rdma://HOST:PORT; without any:\n"
	"                       whatever this machine has, for this host\n"
	"      --reactors N     threads that serve connections; auto: one per core\n"
	"      --workers N      threads for calls that block; auto: twice the cores\n"
	"      --poll HOW       adaptive, busy or event\n"
	"      --inline BYTES   largest message without chunks, 1024 to 65536 (4096)\n"
	"      --credits N      calls of one connection at once (64)\n"
	"      --no-private-data  tell peers nothing of sizes, and believe nothing: 1024 bytes\n"
	"      --modes NAMES    other ways of moving data, for clients that ask for them: read-read,\n"
	"                       fast-write, hybrid (none)\n"
	"      --drc-entries N  answers kept for calls that come again (32768); 0: none\n"
	"      --drc-bytes N    memory for them (33554432)\n"
	"      --pinned-max N   buffer memory in bytes, 524288 at least (268435456)\n"
	"      --messages-max N  memory for the messages of connections, 1048576 at least\n"
	"                       (67108864)\n"
	"      --shared-max N   memory shared with clients on this host, 67108864 at least\n"
	"                       (8589934592)\n"
	"      --registration HOW  slab: memory is registered as it is needed; arena: all of\n"
	"                       pinned-max and messages-max at once, once (slab)\n"
	"      --max-connections N  of all clients together (1024)\n"
	"      --srq yes        connections share their receives (no)\n"
	"      --capture FILE   write what the local fabric carries, as RoCEv2, to a pcap file\n"
	"      --state-dir DIR  keeps what lets file handles outlive a restart (root:\n"
	"                       /var/lib/leat; others: ~/.local/state/leat)\n"
	"      --sign-handles no  handles by name only, without a signature (yes)\n"
	"      --everyone       not run by root: let other users of this host in, too; their\n"
	"                       requests run as the user that runs leatd\n"
	"      --manage-gids    over a network, groups are what this host knows of a user\n"
	"      --unsafe-inv     invalidate memory of peers on soft RoCE too (leatd(8))\n"
	"      --rpcbind        register NFS and MOUNT with this host's rpcbind\n"
	"  -v, --verbose        say more        -q, --quiet    say less\n"
	"  -h, --help           this text       -V, --version  which leatd this is\n";

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
		status = fputs(usage, stdout) < 0;
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
