/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * originals.c - finds the functions of libtirpc that librpcrdma-preload.so replaces
 *
 * Operation:  dlvsym() behind this library, with the version of libtirpc: glibc has old functions of the same names.
 * Memory:     A static table.
 * Threads:    Any.
 * Errors:     A libtirpc without one of them is another library: the process ends with a message.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "originals.h"

static struct rt_originals originals;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *find_one(const char *name)
{
	void *f = dlvsym(RTLD_NEXT, name, "TIRPC_0.3.0");

	if (!f)
		f = dlsym(RTLD_NEXT, name);
	if (!f) {
		(void)fprintf(stderr, "rpcrdma-run: libtirpc has no %s\n", name);
		_exit(127);
	}
	return f;
}

static void find_all(void)
{
#define RT_FIND(name)                                                      \
	do {                                                               \
		void *f = find_one(#name);                                 \
		memcpy(&originals.name, &f, sizeof(originals.name));       \
	} while (0);
	RT_ORIGINALS(RT_FIND)
#undef RT_FIND
}

const struct rt_originals *rt_originals(void)
{
	pthread_once(&once, find_all);
	return &originals;
}
