/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * vectors.c - read the golden messages of tests/vectors
 *
 * Operation:  vector_load() by name, or vector_each() over the directory.
 * Memory:     A vector's bytes are one allocation of exactly their number.
 * Threads:    One.
 * Errors:     There is no test without its vector: a message on stderr and exit(1).
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vectors.h"

#ifndef LEAT_TESTS_DIR
#define LEAT_TESTS_DIR "tests"
#endif

#define SUFFIX ".hex"

static void die(const char *path, const char *what)
{
	fprintf(stderr, "vector %s: %s\n", path, what);
	exit(1);
}

static void directory(char *buf, size_t cap)
{
	const char *tests = getenv("LEAT_TESTS_DIR");

	snprintf(buf, cap, "%s/vectors", tests ? tests : LEAT_TESTS_DIR);
}

/* The next hex digit's value, -1 at the end of the file, -2 for anything else. */
static int next_digit(FILE *f)
{
	int c;

	while ((c = getc(f)) != EOF) {
		if (c == '#')
			while (c != '\n' && c != EOF)
				c = getc(f);
		if (isdigit(c))
			return c - '0';
		if (c >= 'a' && c <= 'f')
			return c - 'a' + 10;
		if (c != EOF && !isspace(c))
			return -2;
	}
	return -1;
}

static void read_bytes(FILE *f, const char *path, struct vector *v)
{
	size_t room = 256;
	int hi, lo;

	v->bytes = malloc(room);
	while (v->bytes && (hi = next_digit(f)) != -1) {
		lo = next_digit(f);
		if (hi < 0 || lo < 0)
			die(path, "not pairs of lower-case hex digits");
		if (v->len == room) {
			room *= 2;
			v->bytes = realloc(v->bytes, room);
			if (!v->bytes)
				break;
		}
		v->bytes[v->len++] = (uint8_t)(hi << 4 | lo);
	}
	if (!v->len)
		die(path, "empty");
	v->bytes = realloc(v->bytes, v->len);
	if (!v->bytes)
		die(path, "out of memory");
}

/** vector_load - read one vector
 * @name: without .hex
 * @ret: filled; vector_unload() gives it back
 */
void vector_load(const char *name, struct vector *ret)
{
	char dir[1024], path[1280];
	FILE *f;

	memset(ret, 0, sizeof(*ret));
	directory(dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/%s" SUFFIX, dir, name);
	if (strlen(name) >= sizeof(ret->name))
		die(path, "name too long");
	memcpy(ret->name, name, strlen(name));
	f = fopen(path, "r");
	if (!f)
		die(path, strerror(errno));
	read_bytes(f, path, ret);
	fclose(f);
}

/** vector_unload - give back the bytes of @v; a vector that is all zero is fine */
void vector_unload(struct vector *v)
{
	free(v->bytes);
	memset(v, 0, sizeof(*v));
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n > m && strcmp(s + n - m, end) == 0;
}

/** vector_is_rpc - does @v hold an RPC message without a transport header? */
bool vector_is_rpc(const struct vector *v)
{
	return ends_with(v->name, ".rpc");
}

static int is_vector(const struct dirent *d)
{
	return ends_with(d->d_name, SUFFIX);
}

/** vector_each - call @fn with every vector there is
 * @fn: gets a vector that lives until it returns
 * @arg: handed on
 *
 * Return: their number, never 0.
 */
unsigned vector_each(vector_fn fn, void *arg)
{
	struct dirent **list;
	char dir[1024];
	int n;

	directory(dir, sizeof(dir));
	n = scandir(dir, &list, is_vector, alphasort);
	if (n <= 0)
		die(dir, "no vectors there; set LEAT_TESTS_DIR");
	for (int i = 0; i < n; i++) {
		struct vector v;

		list[i]->d_name[strlen(list[i]->d_name) - strlen(SUFFIX)] = '\0';
		vector_load(list[i]->d_name, &v);
		fn(&v, arg);
		vector_unload(&v);
		free(list[i]);
	}
	free(list);
	return (unsigned)n;
}
