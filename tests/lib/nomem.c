/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nomem.c - lets the Nth allocation fail
 */
#include "nomem.h"

_Thread_local unsigned long nomem_countdown;
_Thread_local bool nomem_failed;
_Thread_local size_t nomem_bytes;
bool (*nomem_decide)(void);

bool nomem_fails(size_t bytes)
{
	if (nomem_bytes && bytes == nomem_bytes)
		return true;
	if (nomem_decide)
		return nomem_decide();
	if (!nomem_countdown || --nomem_countdown)
		return false;
	nomem_failed = true;
	return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);

void *__wrap_malloc(size_t n)
{
	return nomem_fails(n) ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t m)
{
	return nomem_fails(n * m) ? NULL : __real_calloc(n, m);
}

void *__wrap_realloc(void *p, size_t n)
{
	return nomem_fails(n) ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s)
{
	return nomem_fails(0) ? NULL : __real_strdup(s);
}
