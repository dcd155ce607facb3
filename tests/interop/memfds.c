/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * memfds.c - one end of the local fabric that passes something else than a memfd of its memory
 *
 *   memfds read URL            hostile reader: each kind of tests/lib/memfd_menu.h instead of its memory
 *   memfds serve DIR SOCKET rings|bounce KIND
 *                              hostile server, until its standard input ends: KIND (a name) with each
 *                              connection instead of the rings or of the bounce area
 *   memfds kinds               the names
 *
 * Operation:  As a user of its own beside a leatd or a leat of root (tests/interop/memfds.sh). What the other
 *             end makes of it is the script's to see; here only what a hostile end needs.
 * Memory:     Little.
 * Threads:    The library's.
 * Errors:     Told; exit status 1. That a read fails is none.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "conf.h"
#include "leat.h"
#include "local_int.h"
#include "memfd_menu.h"
#include "server.h"

LOG_DEFINE("memfds");

#define BYTES (1u << 20)
#define MEM_BYTES ((2u << 20) + 4096) /* no multiple of a huge page */
#define STOP_MS 20000

static int read_all(const char *url)
{
	for (enum memfd_kind kind = 0; kind < MEMFD_KINDS; kind++) {
		struct leat_file *file = NULL;
		struct leat *m;
		void *buf;
		ssize_t n = -1;

		memfd_menu_swap(HS_REGION, kind, MEM_BYTES); /* what mounting needs is honest */
		if (leat_mount(url, NULL, &m)) {
			fprintf(stderr, "memfds: %s: %s\n", url, leat_error(NULL));
			return 1;
		}
		if (!leat_buf_alloc(leat_session(m), MEM_BYTES, &buf) && !leat_open(m, "/small", O_RDONLY, 0, &file))
			n = leat_pread(file, buf, BYTES, 0);
		printf("%s: %zd %s\n", memfd_menu_name(kind), n, n < 0 ? leat_error(m) : "");
		fflush(stdout);
		if (file)
			leat_close(file);
		leat_umount(m);
	}
	return 0;
}

static int serve(const char *dir, const char *path, enum hs_type type, const char *name)
{
	char why[CONF_WHY_BYTES] = "", arg[512], c;
	static struct conf conf;
	enum memfd_kind kind = 0;
	struct server *s;

	while (kind < MEMFD_KINDS && strcmp(memfd_menu_name(kind), name))
		kind++;
	if (kind == MEMFD_KINDS)
		return 2;
	conf_init(&conf);
	snprintf(arg, sizeof(arg), "/demo=%s,insecure", dir);
	if (export_conf_parse(arg, &conf.exports[0], why, sizeof(why))) {
		fprintf(stderr, "memfds: %s: %s\n", arg, why);
		return 1;
	}
	conf.nexports = 1;
	snprintf(arg, sizeof(arg), "local://%s", path);
	if (rpcrdma_addr_parse(arg, &conf.listen[0]))
		return 1;
	conf.nlisten = 1;
	conf.reactors = 1;
	conf.everyone = true;
	snprintf(arg, sizeof(arg), "%s.state", path);
	conf.state_dir = strdup(arg);
	memfd_menu_swap(type, kind, 0);
	if (server_start(&conf, &s))
		return 1;
	printf("ready\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	(void)server_stop(s, STOP_MS);
	conf_fini(&conf);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "kinds")) {
		for (enum memfd_kind kind = 0; kind < MEMFD_KINDS; kind++)
			printf("%s\n", memfd_menu_name(kind));
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "read"))
		return read_all(argv[2]);
	if (argc == 6 && !strcmp(argv[1], "serve"))
		return serve(argv[2], argv[3], strcmp(argv[4], "rings") ? HS_BOUNCE : HS_ACCEPT, argv[5]);
	fprintf(stderr, "usage: memfds read URL | serve DIR SOCKET rings|bounce KIND | kinds\n");
	return 2;
}
