/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cond.h - condition variables with a time limit by CLOCK_MONOTONIC
 */
#ifndef LEAT_BASE_COND_H
#define LEAT_BASE_COND_H

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"

/** cond_init - initializes a condition variable for cond_wait_until(); Return: 0 or -errno */
static inline int cond_init(pthread_cond_t *c)
{
	pthread_condattr_t attr;
	int rc;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	rc = pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
	return -rc;
}

/** cond_wait_until - waits, until @until_ns at most; Return: false: the time is over */
static inline bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t until_ns)
{
	const struct timespec until = { .tv_sec = (time_t)(until_ns / NS_PER_S), .tv_nsec = (long)(until_ns % NS_PER_S) };

	return pthread_cond_timedwait(c, lock, &until) == 0;
}

#endif
