/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * walk.c - lists a directory tree with sizes, by nodes instead of paths
 *
 *     cc walk.c $(pkg-config --cflags --libs leat) -o walk
 *     ./walk leat://server/data
 *
 * A node refers to the directory itself, so the walk stays in it even if another program renames it.
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include <leat.h>

static struct leat *m;
static char path[4096]; /* of the current entry, for the output only */
static int failed;

static void walk(struct leat_node *dir, size_t len);

static void fail(void)
{
	warnx("%s", leat_error(m));
	failed = 1;
}

/* Prints the entry @name of @dir, whose path has @len bytes, and what is below it. */
static void visit(struct leat_node *dir, size_t len, const char *name)
{
	struct leat_node *n;
	struct stat st;

	if (leat_node_lookup(dir, name, &n, &st) < 0) {
		fail();
		return;
	}
	len += (size_t)snprintf(path + len, sizeof(path) - len, "%s%s", len ? "/" : "", name);
	printf("%12lld %s\n", (long long)st.st_size, path);
	failed |= len >= sizeof(path); /* too long for the output */
	if (S_ISDIR(st.st_mode) && len < sizeof(path))
		walk(n, len);
	leat_node_put(n);
}

static void walk(struct leat_node *dir, size_t len)
{
	const struct leat_dirent *e;
	struct leat_dir *d;
	int rc;

	if (leat_node_opendir(dir, NULL, &d) < 0) {
		fail();
		return;
	}
	while ((rc = leat_readdir(d, &e)) == 1)
		if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
			visit(dir, len, e->name);
	if (rc < 0)
		fail();
	leat_closedir(d);
}

int main(int argc, char **argv)
{
	struct leat_node *top;

	if (argc != 2)
		errx(2, "usage: walk URL");
	if (leat_mount(argv[1], NULL, &m) < 0)
		errx(1, "%s", leat_error(NULL));
	if (leat_node_get(m, "", &top) < 0) /* "" is the path of the URL */
		errx(1, "%s", leat_error(m));
	walk(top, 0);
	leat_node_put(top);
	leat_umount(m);
	return failed;
}
