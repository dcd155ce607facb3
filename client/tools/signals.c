/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * signals.c - ends a command on SIGINT, SIGTERM, SIGHUP or SIGQUIT
 *
 * Operation, memory, threads, errors: signals.h. Code that runs in a handler is async-signal-safe
 * (signal-safety(7)): atomics, unlinkat(), write(), nanosleep(), sigaction(), raise(),
 * pthread_self(), pthread_sigmask(), leat_interrupt(); and setitimer(), which is a bare system call.
 *
 * A file: FREE -> FILLING -> [MAKING] -> ARMED -> FREE, or TAKEN -> DONE by the thread that removes and reports it.
 */
#include "signals.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

#define FILES_MAX 64
#define MOUNTS_MAX 512
#define ALARM_MS 50
#define END_MS 1000 /* how long the end waits for other threads */

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static atomic_int came, holds;
static bool on_terminal; /* standard error is a terminal and may show a progress bar */

enum file_state { FILE_FREE, FILE_FILLING, FILE_MAKING, FILE_ARMED, FILE_TAKEN, FILE_DONE };

static struct {
	atomic_int state; /* enum file_state; ARMED: a handler may remove it */
	enum signals_kind kind;
	_Atomic pthread_t maker; /* thread that creates the file, while it is MAKING */
	int dir;
	char path[PATH_MAX];
	char text[2 * TOOL_PLACE_BYTES]; /* message that the handler prints */
} files[FILES_MAX];

static struct {
	_Atomic(struct leat *) m; /* NULL: free */
	atomic_bool deferred;
} mounts[MOUNTS_MAX];
static atomic_int interrupting; /* threads inside interrupt_mounts() */

static void say(const char *text)
{
	ssize_t n = on_terminal ? write(STDERR_FILENO, "\r\033[K", 4) : 0;

	if (n >= 0)
		n = write(STDERR_FILENO, text, strlen(text));
	(void)n; /* an error here cannot be reported */
}

/* Only one thread takes a file. */
static bool take_file(unsigned i)
{
	int armed = FILE_ARMED;

	return atomic_compare_exchange_strong(&files[i].state, &armed, FILE_TAKEN);
}

/* Removes or reports a file that was taken. */
static void end_file(unsigned i)
{
	/* a missing file was renamed already, or never created */
	if (files[i].kind == SIGNALS_IN_PLACE || !unlinkat(files[i].dir, files[i].path, 0))
		say(files[i].text);
	atomic_store(&files[i].state, FILE_DONE);
}

static void nap(unsigned *left_ms)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	(void)nanosleep(&ms, NULL);
	--*left_ms;
}

/* Is another thread about to create or remove the file? */
static bool is_busy(unsigned i)
{
	int state = atomic_load(&files[i].state);

	return state == FILE_MAKING || state == FILE_TAKEN;
}

static void end_files(void)
{
	unsigned left_ms = END_MS;

	for (unsigned i = 0; i < FILES_MAX; i++) {
		while (is_busy(i) && left_ms)
			nap(&left_ms);
		if (atomic_load(&files[i].state) == FILE_ARMED && files[i].kind != SIGNALS_STAYS && take_file(i))
			end_file(i);
	}
}

/* The signal interrupted this thread while it created these files; it will not create them any more. */
static void arm_own_files(void)
{
	for (unsigned i = 0; i < FILES_MAX; i++) {
		int making = FILE_MAKING;

		if (atomic_load(&files[i].state) == FILE_MAKING && pthread_equal(atomic_load(&files[i].maker), pthread_self()))
			(void)atomic_compare_exchange_strong(&files[i].state, &making, FILE_ARMED);
	}
}

static void say_what_stays(void)
{
	for (unsigned i = 0; i < FILES_MAX; i++) {
		if (atomic_load(&files[i].state) == FILE_ARMED && files[i].kind == SIGNALS_STAYS && take_file(i)) {
			say(files[i].text);
			atomic_store(&files[i].state, FILE_DONE);
		}
	}
	say("leat: the cleanup took too long and was given up\n");
}

/* Return: the previous mask */
static sigset_t block_signals(void)
{
	sigset_t set, was;

	sigemptyset(&set);
	for (unsigned i = 0; i < ARRAY_SIZE(ending); i++)
		sigaddset(&set, ending[i]);
	sigaddset(&set, SIGALRM);
	(void)pthread_sigmask(SIG_BLOCK, &set, &was);
	return was;
}

static void die_by(int sig)
{
	static atomic_bool begun, ended;
	unsigned left_ms = END_MS;
	sigset_t set;

	(void)block_signals(); /* no handler runs in this thread any more */
	arm_own_files();
	if (!atomic_exchange(&begun, true)) {
		end_files();
		atomic_store(&ended, true);
	}
	while (!atomic_load(&ended) && left_ms)
		nap(&left_ms);
	(void)signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	(void)raise(sig);
	_exit(128 + sig); /* not reached */
}

static void interrupt_mounts(bool also_deferred)
{
	atomic_fetch_add(&interrupting, 1);
	for (unsigned i = 0; i < MOUNTS_MAX; i++) {
		struct leat *m = atomic_load(&mounts[i].m);

		if (m && (also_deferred || !atomic_load(&mounts[i].deferred)))
			leat_interrupt(m);
	}
	atomic_fetch_sub(&interrupting, 1);
}

/* The alarm repeats: a system call that began just after the signal did not see the signal, and the next alarm
 * interrupts it. It also ends calls of the cleanup, and then the program, if cleaning up takes too long. */
static void on_alarm(int sig)
{
	static atomic_uint alarms;
	unsigned ms = atomic_fetch_add(&alarms, 1) * ALARM_MS;

	(void)sig;
	if (ms >= SIGNALS_PATIENCE_S * 1000) {
		say_what_stays();
		die_by(atomic_load(&came));
	}
	if (ms >= SIGNALS_CLEANUP_MS)
		interrupt_mounts(true);
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
	interrupt_mounts(false);
}

void signals_init(void)
{
	struct sigaction handle = { .sa_handler = on_signal }, was;

	for (unsigned i = 0; i < ARRAY_SIZE(ending); i++)
		sigaddset(&handle.sa_mask, ending[i]);
	for (unsigned i = 0; i < ARRAY_SIZE(ending); i++) {
		if (!sigaction(ending[i], NULL, &was) && was.sa_handler != SIG_IGN)
			(void)sigaction(ending[i], &handle, NULL);
	}
	(void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write(), */
	(void)signal(SIGXFSZ, SIG_IGN); /* and so is a file that is too large */
	on_terminal = isatty(STDERR_FILENO);
}

bool tool_interrupted(void)
{
	return atomic_load_explicit(&came, memory_order_relaxed) != 0;
}

bool signals_hold(void)
{
	atomic_fetch_add(&holds, 1);
	return !tool_interrupted();
}

void signals_release(void)
{
	if (atomic_fetch_sub(&holds, 1) != 1 || !tool_interrupted())
		return;
	/* a signal came and the cleanup is done; output that cannot be written is dropped */
	(void)fflush(stdout);
	signals_end();
}

void signals_mount_add(struct leat *m)
{
	for (unsigned i = 0; i < MOUNTS_MAX; i++) {
		struct leat *none = NULL;

		if (atomic_compare_exchange_strong(&mounts[i].m, &none, m))
			break;
	}
	/* the handler sets `came` before it scans the mounts: either it finds this one, or `came` is seen here */
	if (atomic_load(&came))
		leat_interrupt(m);
}

static int find_mount(const struct leat *m)
{
	for (int i = 0; m && i < MOUNTS_MAX; i++) {
		if (atomic_load(&mounts[i].m) == m)
			return i;
	}
	return -1;
}

void signals_mount_del(struct leat *m)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	int i = find_mount(m);

	if (i < 0)
		return;
	atomic_store(&mounts[i].deferred, false);
	atomic_store(&mounts[i].m, NULL);
	/* a handler in another thread may have read the entry before; its scan waits for nothing */
	while (atomic_load(&interrupting))
		(void)nanosleep(&ms, NULL);
}

void signals_mount_defer(struct leat *m, bool on)
{
	int i = find_mount(m);

	if (i >= 0)
		atomic_store(&mounts[i].deferred, on);
}

/* Formats the message of the handler. Return: does it fit? */
static bool print_text(const struct signals_file *f, char *buf, size_t cap)
{
	const char *slash = strrchr(f->path ? f->path : "", '/');
	int n = 0, dir = slash ? (int)(slash - f->path) : 0;

	while (dir > 1 && f->path[dir - 1] == '/')
		dir--;
	switch (f->kind) {
	case SIGNALS_REMOVE:
		n = snprintf(buf, cap, "leat: %s: interrupted\n", f->place);
		break;
	case SIGNALS_STAYS:
		n = snprintf(buf, cap, "leat: %s: interrupted; the server does not reply, so %s may stay in %.*s "
			     "(leat rm --leftovers removes it after a day)\n", f->place,
			     slash ? slash + 1 : f->path, dir, f->path);
		break;
	case SIGNALS_IN_PLACE:
		n = snprintf(buf, cap, "leat: %s: interrupted; " SIGNALS_PART_TEXT "\n", f->place);
		break;
	}
	return n > 0 && (size_t)n < cap;
}

static int find_slot(void)
{
	for (int i = 0; i < FILES_MAX; i++) {
		int none = FILE_FREE;

		if (atomic_compare_exchange_strong(&files[i].state, &none, FILE_FILLING))
			return i;
	}
	return -1;
}

int signals_file_add(const struct signals_file *f)
{
	int slot;

	if (f->kind == SIGNALS_REMOVE && strlen(f->path) >= sizeof(files[0].path))
		return -1;
	slot = find_slot();
	if (slot < 0)
		return -1;
	files[slot].kind = f->kind;
	files[slot].dir = f->dir;
	if (f->kind == SIGNALS_REMOVE)
		strcpy(files[slot].path, f->path);
	if (!print_text(f, files[slot].text, sizeof(files[slot].text)))
		strcpy(files[slot].text, "leat: interrupted\n");
	atomic_store(&files[slot].maker, pthread_self());
	if (f->kind != SIGNALS_IN_PLACE)
		atomic_store(&files[slot].state, f->kind == SIGNALS_REMOVE ? FILE_MAKING : FILE_ARMED);
	/* the handler sets `came` before it scans the files: either it finds this file, or `came` is seen here */
	if (f->kind == SIGNALS_REMOVE && atomic_load(&came)) {
		signals_file_del(slot);
		return SIGNALS_CAME;
	}
	return slot;
}

void signals_file_made(int slot)
{
	int making = FILE_MAKING;

	if (slot >= 0)
		(void)atomic_compare_exchange_strong(&files[slot].state, &making, FILE_ARMED);
}

bool signals_file_end(int slot)
{
	unsigned left_ms = END_MS;
	sigset_t was;
	bool taken;

	if (slot < 0 || files[slot].kind == SIGNALS_STAYS)
		return false;
	was = block_signals(); /* a handler in this thread would wait for it */
	taken = take_file((unsigned)slot);
	if (taken)
		end_file((unsigned)slot);
	(void)pthread_sigmask(SIG_SETMASK, &was, NULL);
	/* its directory must stay open until the other thread is done */
	while (!taken && is_busy((unsigned)slot) && left_ms)
		nap(&left_ms);
	return atomic_load(&files[slot].state) == FILE_DONE;
}

bool signals_file_leave(int slot)
{
	if (slot < 0)
		return false;
	if (take_file((unsigned)slot)) {
		say(files[slot].text);
		atomic_store(&files[slot].state, FILE_DONE);
	}
	return true;
}

void signals_file_begun(int slot)
{
	int filling = FILE_FILLING;

	if (slot >= 0)
		(void)atomic_compare_exchange_strong(&files[slot].state, &filling, FILE_ARMED);
}

void signals_file_del(int slot)
{
	static const int from[] = { FILE_FILLING, FILE_MAKING, FILE_ARMED }; /* a handler only moves a file forward */

	/* a file that is TAKEN or DONE stays in the table: the thread that removes it may still read it */
	for (unsigned i = 0; slot >= 0 && i < ARRAY_SIZE(from); i++) {
		int state = from[i];

		if (atomic_compare_exchange_strong(&files[slot].state, &state, FILE_FREE))
			break;
	}
}

void signals_end(void)
{
	int sig = atomic_load(&came);

	if (sig)
		die_by(sig);
}
