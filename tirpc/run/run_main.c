/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * run_main.c - rpcrdma-run: runs a program of libtirpc with librpcrdma-preload.so
 *
 * Operation:  It checks the map, the tables and the URLs, so that a mistake is reported before the program starts, puts
 *             them and LD_PRELOAD into the environment, and becomes the program. Paths become absolute, as the program
 *             and its children may change their directory.
 * Memory:     Static.
 * Threads:    One.
 * Errors:     A message and status 125; 126: the program cannot be run; 127: it is not found.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/std_fds.h"
#include "map.h"
#include "rpcrdma_addr.h"

#ifndef PRELOAD_DIR
#define PRELOAD_DIR "../lib" /* the Makefile's default: of the library, seen from this program */
#endif
#define LIBRARY "librpcrdma-preload.so"
#define FAILED 125

struct settings {
	char map[PATH_MAX + RT_HOST_BYTES + RT_URL_BYTES + 64]; /* "": none; the same for the others */
	char urls[RT_URLS_MAX * RT_URL_BYTES];
	char max[32];
	char table[PATH_MAX];
};

static void usage(FILE *to)
{
	(void)fputs("usage: rpcrdma-run [-c MAP] [-s URL[,URL]] [-t TABLE] [-m SIZE] [--] PROGRAM [ARG]...\n"
		    "  -c MAP    where calls go: a file with lines HOST PROGRAM URL [max=SIZE] [table=FILE], or one such line\n"
		    "  -s URL    where the services of the program are also served: rdma://, tcp:// or local://\n"
		    "  -t TABLE  a file that says which items of the messages of the services are bulk data\n"
		    "  -m SIZE   longest arguments and results inside a message (4K to 64M; default 16M)\n"
		    "  -h, -V    this text; the version\n"
		    "RPCRDMA_RUN_REPORT=1 in the environment: says at exit which calls went which way. See rpcrdma-run(1).\n",
		    to);
}

static int fail(const char *what, const char *why)
{
	(void)fprintf(stderr, "rpcrdma-run: %s%s%s\n", what, *what ? ": " : "", why);
	return -1;
}

/* Symbolic links stay: a map names its tables from the directory that its user sees. */
static int absolute(const char *path, char ret[PATH_MAX])
{
	char cwd[PATH_MAX];

	if (*path == '/')
		return snprintf(ret, PATH_MAX, "%s", path) < PATH_MAX ? 0 : fail(path, strerror(ENAMETOOLONG));
	if (!getcwd(cwd, sizeof(cwd)))
		return fail("the working directory", strerror(errno));
	return snprintf(ret, PATH_MAX, "%s/%s", cwd, path) < PATH_MAX ? 0 : fail(path, strerror(ENAMETOOLONG));
}

/* A line names its table by an absolute path then. */
static int print_line(const struct rt_map *map, char *buf, size_t cap)
{
	const struct rt_route *r = &map->v[0];
	char path[PATH_MAX];
	int n = snprintf(buf, cap, "%s %u %s", r->host, r->prog, r->url);

	if (r->max_bytes)
		n += snprintf(buf + n, cap - (size_t)n, " max=%zu", r->max_bytes);
	if (!r->table)
		return 0;
	if (absolute(map->tables[r->table - 1].path, path))
		return -1;
	if (strpbrk(path, " \t"))
		return fail(path, "a table of the map has no blanks in its path");
	(void)snprintf(buf + n, cap - (size_t)n, " table=%s", path);
	return 0;
}

static int take_map(struct settings *s, const char *arg)
{
	struct rt_map map;
	char why[RT_WHY_BYTES];
	int rc;

	if (rt_map_load(arg, &map, why))
		return fail("", why);
	if (!map.n)
		rc = fail(arg, "the map is empty");
	else if (rt_map_is_line(arg))
		rc = map.n == 1 ? print_line(&map, s->map, sizeof(s->map)) : fail("-c", "more than one line: use a file");
	else
		rc = absolute(arg, s->map);
	if (!rc && !rt_map_is_line(arg) && rt_map_is_line(s->map))
		rc = fail(arg, "\"://\" in the path of a map");
	rt_map_fini(&map);
	return rc;
}

static int take_urls(struct settings *s, const char *arg)
{
	struct rt_urls urls;
	char why[RT_WHY_BYTES];

	if (rt_urls_parse(arg, &urls, why))
		return fail("-s", why);
	(void)snprintf(s->urls, sizeof(s->urls), "%s", arg);
	return 0;
}

static int take_max(struct settings *s, const char *arg)
{
	char why[RT_WHY_BYTES];
	size_t max;

	if (rt_max_parse(arg, &max, why))
		return fail("-m", why);
	(void)snprintf(s->max, sizeof(s->max), "%zu", max);
	return 0;
}

static int take_table(struct settings *s, const char *arg)
{
	struct rt_table table;
	char why[RT_WHY_BYTES];

	if (rt_table_load(arg, &table, why))
		return fail("", why);
	rt_table_fini(&table);
	return absolute(arg, s->table);
}

/* An installation has the library in a directory that is known relative to that of this program; the build tree has it
 * beside the program. */
static int find_library(char ret[PATH_MAX])
{
	static const char *const beside[] = { PRELOAD_DIR "/" LIBRARY, LIBRARY };
	char here[PATH_MAX], path[2 * PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", here, sizeof(here) - 1);

	if (n < 0)
		return fail("/proc/self/exe", strerror(errno));
	here[n] = '\0';
	*strrchr(here, '/') = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(beside); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", here, beside[i]);
		if (realpath(path, ret))
			return strpbrk(ret, " :") ? fail(ret, "LD_PRELOAD takes no path with a blank or a colon") : 0;
	}
	(void)fprintf(stderr, "rpcrdma-run: no " LIBRARY " in %s/" PRELOAD_DIR " or %s (make install)\n", here, here);
	return -1;
}

static bool has_word(const char *words, const char *word)
{
	size_t n;

	for (; *words; words += n + (words[n] != '\0')) {
		n = strcspn(words, " :");
		if (n == strlen(word) && !strncmp(words, word, n))
			return true;
	}
	return false;
}

static int preload(void)
{
	const char *old = getenv("LD_PRELOAD");
	char library[PATH_MAX];
	char *value;
	int rc;

	if (find_library(library))
		return -1;
	if (!old || !*old)
		return setenv("LD_PRELOAD", library, 1);
	if (has_word(old, library))
		return 0;
	if (asprintf(&value, "%s:%s", library, old) < 0)
		return -1;
	rc = setenv("LD_PRELOAD", value, 1);
	free(value);
	return rc;
}

/* Settings of an outer rpcrdma-run do not apply. */
static int set(const char *name, const char *value)
{
	return *value ? setenv(name, value, 1) : unsetenv(name);
}

/* The library runs inside of other programs: it says nothing about what it cannot use. */
static int check_report(void)
{
	const char *to = getenv(RT_ENV_REPORT);
	int fd;

	if (!to || !*to || !strcmp(to, "0") || !strcmp(to, "1"))
		return 0;
	if (*to != '/')
		return fail(RT_ENV_REPORT, "not 1 (standard error) and not the absolute path of a file");
	fd = open(to, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	if (fd < 0)
		return fail(to, strerror(errno));
	close(fd);
	return 0;
}

static int set_all(const struct settings *s)
{
	if (check_report())
		return -1;
	if (set(RT_ENV_MAP, s->map) || set(RT_ENV_URLS, s->urls) || set(RT_ENV_MAX, s->max) || set(RT_ENV_TABLE, s->table))
		return fail("the environment", strerror(errno));
	return preload();
}

/* The loader ignores LD_PRELOAD for a set-user-id program. */
static void warn_set_id(const char *program)
{
	const char *dirs = strchr(program, '/') ? "" : getenv("PATH");
	char path[2 * PATH_MAX];
	struct stat st;

	while (dirs) {
		size_t n = strcspn(dirs, ":");

		(void)snprintf(path, sizeof(path), "%.*s%s%.4000s", (int)MIN(n, PATH_MAX), dirs, n ? "/" : "", program);
		if (!stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK)) {
			if (st.st_mode & (S_ISUID | S_ISGID))
				(void)fprintf(stderr, "rpcrdma-run: %s is a set-user-id program: it runs as without rpcrdma-run\n",
					      path);
			return;
		}
		dirs = dirs[n] ? dirs + n + 1 : NULL;
	}
}

int main(int argc, char **argv)
{
	static struct settings s;
	int c, rc = 0;

	std_fds_fill();
	while (!rc && (c = getopt(argc, argv, "+c:s:t:m:hV")) != -1) {
		switch (c) {
		case 'c':
			rc = take_map(&s, optarg);
			break;
		case 's':
			rc = take_urls(&s, optarg);
			break;
		case 't':
			rc = take_table(&s, optarg);
			break;
		case 'm':
			rc = take_max(&s, optarg);
			break;
		case 'h':
			usage(stdout);
			return 0;
		case 'V':
			(void)printf("rpcrdma-run %s\n", rpcrdma_version());
			return 0;
		default:
			usage(stderr);
			return FAILED;
		}
	}
	if (rc)
		return FAILED;
	if (optind >= argc) {
		usage(stderr);
		return FAILED;
	}
	if (set_all(&s))
		return FAILED;
	warn_set_id(argv[optind]);
	(void)execvp(argv[optind], argv + optind);
	rc = errno;
	fail(argv[optind], strerror(rc));
	return rc == ENOENT ? 127 : 126;
}
