/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * hostile.c - attacks on a leatd, side by side and in random order
 *
 *   hostile attack [-s SEED] [-t SECONDS | -r ROUNDS] [-b MS] [-j JOBS] [-n COUNT] [-m MIB] [-u UID]
 *                  SOCKET PORT EXPORT [ATTACK...]
 *   hostile victim ...                  victim.c
 *   hostile watch ...                   watch.c
 *   hostile menu                        the names of the attacks
 *
 * Operation:  All attacks (or those named) in a random order, JOBS (4) at once, each for at most MS (2000) and
 *             with at most COUNT (256) connections or MIB (64) of memory; again in another order,
 *             ROUNDS (1) times or for SECONDS. -u: as JOBS users from that one on, one for each that runs, so that
 *             they take nothing from each other. The seed is printed first; the order and what each attack does follow from it, but not
 *             what they do to each other.
 *             An attack that is not through MS/2 after its deadline is killed: a peer that dies is hostile, too.
 * Memory:     Of each attack, in a process of its own.
 * Threads:    See the attacks.
 * Errors:     Attacks do not fail. Exit status 2: there is no leatd.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "hostile.h"

LOG_DEFINE("hostile");

#define ATTACKS_MAX 64u
#define JOBS_MAX 32u

bool run_over(const struct attack_run *r)
{
	return clock_now_ns() >= r->deadline_ns;
}

uint32_t run_rand(struct attack_run *r, uint32_t below)
{
	uint64_t x = r->rng ? r->rng : 1;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	r->rng = x;
	return below ? (uint32_t)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 32) % below : 0;
}

uint32_t run_word(struct attack_run *r)
{
	switch (run_rand(r, 4)) {
	case 0:
		return run_rand(r, 300);
	case 1:
		return (1u << run_rand(r, 32)) + run_rand(r, 3) - 1;
	case 2:
		return 0u - run_rand(r, 300);
	default:
		return run_rand(r, UINT32_MAX);
	}
}

void run_nap(const struct attack_run *r, unsigned ms)
{
	uint64_t now = clock_now_ns(), left = r->deadline_ns > now ? r->deadline_ns - now : 0;

	(void)poll(NULL, 0, (int)MIN((uint64_t)ms, left / NS_PER_MS + 1));
}

void die(const char *fmt, ...)
{
	va_list ap;

	fputs("hostile: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("\n", stderr);
	_exit(2);
}

/* ---- one attack ---- */

static struct job {
	pid_t pid; /* 0: free */
	const struct attack *attack;
	uint64_t kill_ns;
} jobs[JOBS_MAX];

static unsigned njobs = 4, running;
static uint64_t bound_ms = 2000;
static uid_t first_uid; /* 0: keep our own uid */

static void become_user(uid_t uid)
{
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		die("cannot become uid %u: %s", (unsigned)uid, strerror(errno));
}

static _Noreturn void run_attack(const struct attack *a, struct attack_run *r, unsigned job)
{
	unsigned long long seed = r->rng;

	if (first_uid)
		become_user(first_uid + job);
	r->name = a->name;
	r->deadline_ns = clock_now_ns() + bound_ms * NS_PER_MS;
	a->run(r);
	printf("  %-14s seed %llu: %s\n", a->name, seed, r->said);
	fflush(stdout);
	_exit(0); /* connections end as they do when a process dies */
}

static void start_attack(const struct attack *a, struct attack_run *r)
{
	struct job *j = jobs;

	while (j->pid)
		j++;
	(void)run_rand(r, 2); /* each has a seed of its own */
	j->attack = a;
	j->kill_ns = clock_now_ns() + (bound_ms + bound_ms / 2) * NS_PER_MS;
	j->pid = fork();
	if (j->pid < 0)
		die("fork: %s", strerror(errno));
	if (!j->pid)
		run_attack(a, r, (unsigned)(j - jobs));
	running++;
}

/* Waits until fewer than @most run. */
static void wait_jobs(unsigned most)
{
	while (running > most) {
		bool ended = false;

		for (struct job *j = jobs; j < jobs + njobs; j++) {
			int status;

			if (!j->pid)
				continue;
			if (waitpid(j->pid, &status, WNOHANG) != j->pid) {
				if (clock_now_ns() >= j->kill_ns) {
					(void)kill(j->pid, SIGKILL);
					j->kill_ns = UINT64_MAX;
				}
				continue;
			}
			if (WIFEXITED(status) && WEXITSTATUS(status))
				die("%s ended with status %d", j->attack->name, WEXITSTATUS(status));
			if (WIFSIGNALED(status))
				printf("  %-14s ended by signal %d\n", j->attack->name, WTERMSIG(status));
			fflush(stdout);
			j->pid = 0;
			running--;
			ended = true;
		}
		if (!ended)
			poll(NULL, 0, 10);
	}
}

/* ---- all of them ---- */

static const struct attack *menu[ATTACKS_MAX];
static unsigned nmenu;

static void add_attacks(const struct attack *list, char **names, int n)
{
	for (; list->name; list++) {
		bool wanted = n == 0;

		for (int i = 0; i < n; i++)
			wanted |= !strcmp(names[i], list->name);
		if (wanted && nmenu < ATTACKS_MAX)
			menu[nmenu++] = list;
	}
}

static void make_menu(char **names, int n)
{
	add_attacks(attacks_local, names, n);
	add_attacks(attacks_sock, names, n);
	add_attacks(attacks_tcp, names, n);
}

static void shuffle_menu(struct attack_run *r)
{
	for (unsigned i = nmenu; i > 1; i--) {
		unsigned other = run_rand(r, i);
		const struct attack *a = menu[i - 1];

		menu[i - 1] = menu[other];
		menu[other] = a;
	}
}

static void raise_files(void)
{
	struct rlimit rl;

	if (!getrlimit(RLIMIT_NOFILE, &rl)) {
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl);
	}
}

static int attack_main(int argc, char **argv)
{
	struct attack_run r = { .count = 256, .bytes = UINT64_C(64) << 20 };
	unsigned long long seconds = 0, rounds = 1, made = 0;
	uint64_t start = clock_now_ns();
	int c;

	r.rng = start ^ (uint64_t)getpid() << 32;
	while ((c = getopt(argc, argv, "s:t:r:b:j:n:m:u:")) >= 0) {
		unsigned long long v = optarg ? strtoull(optarg, NULL, 10) : 0;

		switch (c) {
		case 's': r.rng = v; break;
		case 't': seconds = v; break;
		case 'r': rounds = v; break;
		case 'b': bound_ms = v; break;
		case 'j': njobs = (unsigned)MIN(MAX(v, 1ull), (unsigned long long)JOBS_MAX); break;
		case 'n': r.count = (unsigned)v; break;
		case 'm': r.bytes = v << 20; break;
		case 'u': first_uid = (uid_t)v; break;
		default: return 2;
		}
	}
	if (argc - optind < 3)
		return 2;
	r.sock = argv[optind];
	r.tcp = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) },
				      .sin_port = htons((uint16_t)atoi(argv[optind + 1])) };
	r.export = argv[optind + 2];
	make_menu(argv + optind + 3, argc - optind - 3);
	if (!nmenu)
		die("no such attack");
	printf("hostile: seed %llu\n", (unsigned long long)r.rng);
	fflush(stdout);
	signal(SIGPIPE, SIG_IGN);
	raise_files();
	rpc_mount(&r);
	do {
		shuffle_menu(&r);
		for (unsigned i = 0; i < nmenu; i++) {
			if (seconds && clock_now_ns() - start >= seconds * NS_PER_S)
				break;
			wait_jobs(njobs - 1);
			start_attack(menu[i], &r);
		}
		made++;
	} while (seconds ? clock_now_ns() - start < seconds * NS_PER_S : made < rounds);
	wait_jobs(0);
	printf("hostile: %llu rounds of %u attacks\n", made, nmenu);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "victim"))
		return victim_main(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "watch"))
		return watch_main(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "attack"))
		return attack_main(argc - 1, argv + 1);
	if (argc == 2 && !strcmp(argv[1], "menu")) {
		make_menu(NULL, 0);
		for (unsigned i = 0; i < nmenu; i++)
			printf("%s\n", menu[i]->name);
		return 0;
	}
	fprintf(stderr, "usage: hostile attack|victim|watch|menu ...\n");
	return 2;
}
