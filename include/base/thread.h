/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * thread.h - starts the threads of a library
 */
#ifndef LEAT_BASE_THREAD_H
#define LEAT_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

#include "base/util.h"

/** thread_start - starts a thread that handles no signals: they are for the program's own threads
 * @attr: NULL: the default
 *
 * Return: 0 or -errno.
 */
static inline must_check int thread_start(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(ret, attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

#endif
