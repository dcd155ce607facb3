/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * thread_state.h - what the kernel says of a thread of this process: does it sleep, and how often has it
 *
 * Threads:    Any thread may ask about any other one. The thread must exist.
 */
#ifndef THREAD_STATE_H
#define THREAD_STATE_H

#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/** thread_switches - voluntary context switches of @tid so far: each is a sleep, and a wake-up to end it */
static inline uint64_t thread_switches(pid_t tid)
{
	char path[64], line[128];
	uint64_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &n) != 1)
		;
	if (f)
		fclose(f);
	return n;
}

static inline bool thread_sleeps(pid_t tid)
{
	char path[64], line[256] = "";
	const char *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	f = fopen(path, "re");
	if (f && !fgets(line, sizeof(line), f))
		line[0] = '\0';
	if (f)
		fclose(f);
	state = strrchr(line, ')'); /* the end of the name */
	return state && state[1] && state[2] == 'S';
}

/** thread_await_sleep - returns when @tid sleeps */
static inline void thread_await_sleep(pid_t tid)
{
	while (!thread_sleeps(tid))
		sched_yield();
}

#endif
