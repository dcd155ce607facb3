/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * log.h - log messages of programs, with rate limits
 *
 * Libraries do not log: they return errors and fill last-error texts. Programs (leatd, leat) log once,
 * where the decision is taken. The level is a variable of the program, defined with LOG_DEFINE(name) in
 * its main file. Lines go to stderr, one write each, prefixed by the name. Control characters are removed,
 * so that text from a peer can neither forge a line nor control the terminal.
 */
#ifndef LEAT_BASE_LOG_H
#define LEAT_BASE_LOG_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/util.h"

enum log_level { LOG_LEVEL_ERR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

struct log_state {
	const char *program;
	enum log_level level;
};

extern struct log_state log_state;

#define LOG_DEFINE(name) struct log_state log_state = { (name), LOG_LEVEL_INFO }

static inline printf_like(2, 3) void log_line(enum log_level level, const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n, m;

	/* another thread may change it with log_set_level() */
	if (level > __atomic_load_n(&log_state.level, __ATOMIC_RELAXED))
		return;
	n = snprintf(line, sizeof(line), "%s: ", log_state.program);
	if (n < 0 || (size_t)n >= sizeof(line))
		return;
	va_start(ap, fmt);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	if (m < 0)
		return;
	text_clean(line);
	fprintf(stderr, "%s\n", line);
}

/** log_set_level - sets the level, also while other threads log */
static inline void log_set_level(enum log_level level)
{
	__atomic_store_n(&log_state.level, level, __ATOMIC_RELAXED);
}

#define log_err(...) log_line(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* A token bucket: at most `burst` lines at once and one more every `interval_ns`, so that a peer cannot fill the log.
 * Suppressed lines are counted. */
struct log_limit {
	uint64_t interval_ns, next_ns;
	unsigned burst, left;
	unsigned long swallowed;
};

#define LOG_LIMIT_INIT { .interval_ns = NS_PER_S, .burst = 5, .left = 5 }

/** log_limit_ok - may one more line be logged? Owned by one thread. */
static inline bool log_limit_ok(struct log_limit *l)
{
	uint64_t now = clock_now_ns();

	if (now >= l->next_ns) {
		uint64_t earned = l->next_ns ? 1 + (now - l->next_ns) / l->interval_ns : 0;

		l->left = (unsigned)MIN(l->left + earned, (uint64_t)l->burst);
		l->next_ns = now + l->interval_ns;
	}
	if (!l->left) {
		l->swallowed++;
		return false;
	}
	l->left--;
	return true;
}

/** log_limit_ok_under - the same for any thread: @lock is over @l */
static inline bool log_limit_ok_under(pthread_mutex_t *lock, struct log_limit *l)
{
	bool ok;

	pthread_mutex_lock(lock);
	ok = log_limit_ok(l);
	pthread_mutex_unlock(lock);
	return ok;
}

#endif
