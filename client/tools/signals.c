/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * signals.c - how a command ends when SIGINT, SIGTERM or SIGHUP comes
 *
 * Operation, memory, threads, errors: signals.h. What runs in a handler is async-signal-safe
 * (signal-safety(7)): atomics, unlinkat(), write(), sigaction(), raise(); and
 * setitimer(), which is a bare system call.
 */
#include "signals.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "tool.h"

#define TEMPS_MAX 64
#define ALARM_MS 50

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };

static atomic_int came, holds;

static struct {
	atomic_int state; /* 0: free, 1: being filled, 2: a handler may remove it */
	int dir;
	char path[PATH_MAX];
} temps[TEMPS_MAX];

static void die_by(int sig)
{
	sigset_t set;

	for (unsigned i = 0; i < TEMPS_MAX; i++) {
		if (atomic_load(&temps[i].state) == 2)
			(void)unlinkat(temps[i].dir, temps[i].path, 0);
	}
	(void)signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	(void)raise(sig);
	_exit(128 + sig); /* not reached */
}

/* The alarm comes again and again, since a system call that began just after the signal did not see it: the
 * next alarm interrupts it. In the end cleaning up has taken too long. */
static void on_alarm(int sig)
{
	static atomic_uint alarms;
	static const char why[] = "leat: interrupted; what the server would have to clean up stays there, as it does not "
				  "answer\n";

	(void)sig;
	if (atomic_fetch_add(&alarms, 1) * ALARM_MS < SIGNALS_PATIENCE_S * 1000)
		return;
	if (write(STDERR_FILENO, why, sizeof(why) - 1) < 0) {
		/* there is nobody to tell */
	}
	die_by(atomic_load(&came));
}

static void on_signal(int sig)
{
	const struct itimerval every = { { 0, ALARM_MS * 1000 }, { 0, ALARM_MS * 1000 } };
	struct sigaction alarm = { .sa_handler = on_alarm };
	int none = 0;

	if (!atomic_compare_exchange_strong(&came, &none, sig) || !atomic_load(&holds))
		die_by(sig);
	(void)sigaction(SIGALRM, &alarm, NULL);
	(void)setitimer(ITIMER_REAL, &every, NULL);
}

/** signals_init - see signals.h */
void signals_init(void)
{
	struct sigaction handle = { .sa_handler = on_signal }, was;

	for (unsigned i = 0; i < ARRAY_SIZE(ending); i++)
		sigaddset(&handle.sa_mask, ending[i]);
	for (unsigned i = 0; i < ARRAY_SIZE(ending); i++) {
		if (!sigaction(ending[i], NULL, &was) && was.sa_handler != SIG_IGN)
			(void)sigaction(ending[i], &handle, NULL);
	}
	(void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write() */
}

/** tool_interrupted - see tool.h */
bool tool_interrupted(void)
{
	return atomic_load_explicit(&came, memory_order_relaxed) != 0;
}

/** signals_hold - see signals.h */
bool signals_hold(void)
{
	atomic_fetch_add(&holds, 1);
	return !tool_interrupted();
}

/** signals_release - see signals.h */
void signals_release(void)
{
	if (atomic_fetch_sub(&holds, 1) != 1 || !tool_interrupted())
		return;
	/* one came meanwhile, and nothing is left to be done; output that cannot be written has no reader */
	(void)fflush(stdout);
	signals_end();
}

/** signals_temp_add - see signals.h */
int signals_temp_add(int dir, const char *path)
{
	if (strlen(path) >= sizeof(temps[0].path))
		return -1;
	for (int i = 0; i < TEMPS_MAX; i++) {
		int none = 0;

		if (atomic_compare_exchange_strong(&temps[i].state, &none, 1)) {
			temps[i].dir = dir;
			strcpy(temps[i].path, path);
			atomic_store(&temps[i].state, 2);
			return i;
		}
	}
	return -1;
}

/** signals_temp_del - see signals.h */
void signals_temp_del(int slot)
{
	if (slot >= 0)
		atomic_store(&temps[slot].state, 0);
}

/** signals_end - see signals.h */
void signals_end(void)
{
	int sig = atomic_load(&came);

	if (sig)
		die_by(sig);
}
