/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tcpraw.c - what TCP over loopback can do on this machine, with nothing on top
 *
 *     tcpraw BLOCK_BYTES SECONDS {stream|ping}
 *
 * stream: a child writes blocks, the parent reads them. ping: the parent sends 128 bytes and waits
 * for a block, as a READ of queue depth 1 would. Prints one line of JSON, CPU of both together.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"

#define REQUEST_BYTES 128u

static bool move_all(int fd, char *buf, size_t len, bool out)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = out ? write(fd, buf + done, len - done) : read(fd, buf + done, len - done);

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static void serve(int fd, char *buf, size_t block, bool ping)
{
	for (;;) {
		if (ping && !move_all(fd, buf, REQUEST_BYTES, false))
			return;
		if (!move_all(fd, buf, block, true))
			return;
	}
}

static double cpu_of(int who)
{
	struct rusage ru;

	getrusage(who, &ru);
	return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
	       (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t addr_len = sizeof(addr);
	uint64_t ops = 0, start, end, deadline;
	int listener, fd, one = 1;
	double seconds, cpu;
	size_t block;
	bool ping;
	char *buf;
	pid_t child;

	if (argc != 4) {
		fprintf(stderr, "usage: tcpraw BLOCK_BYTES SECONDS {stream|ping}\n");
		return 2;
	}
	block = strtoul(argv[1], NULL, 10);
	ping = !strcmp(argv[3], "ping");
	buf = calloc(1, MAX(block, (size_t)REQUEST_BYTES));
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!buf || listener < 0 || bind(listener, (void *)&addr, sizeof(addr)) < 0 ||
	    listen(listener, 1) < 0 || getsockname(listener, (void *)&addr, &addr_len) < 0) {
		perror("tcpraw");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	child = fork();
	if (!child) {
		fd = accept(listener, NULL, NULL);
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		serve(fd, buf, block, ping);
		_exit(0);
	}
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (child < 0 || fd < 0 || connect(fd, (void *)&addr, sizeof(addr)) < 0) {
		perror("tcpraw");
		return 1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	start = clock_now_ns();
	deadline = start + strtoul(argv[2], NULL, 10) * NS_PER_S;
	do {
		if ((ping && !move_all(fd, buf, REQUEST_BYTES, true)) ||
		    !move_all(fd, buf, block, false)) {
			perror("tcpraw");
			return 1;
		}
		ops++;
		end = clock_now_ns();
	} while (end < deadline);
	close(fd);
	waitpid(child, NULL, 0);
	seconds = (double)(end - start) / 1e9;
	cpu = cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN);
	printf("{\"kind\":\"tcpraw\",\"mb_s\":%.1f,\"ops_s\":%.0f,\"client_cpu_s_gib\":%.4f}\n",
	       (double)(ops * block) / 1e6 / seconds, (double)ops / seconds,
	       cpu / ((double)(ops * block) / (double)(1u << 30)));
	return 0;
}
