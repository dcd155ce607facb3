/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * change.c - leat mkdir, rm, mv, ln: change names, move no data
 *
 * Operation:  As mkdir(1), rm(1), mv(1) and ln(1), inside one export.
 * Memory:     rm -r: the entries of the directories on the current path.
 * Threads:    One.
 * Errors:     A failure is reported and the other arguments are processed; status 1.
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "fs.h"
#include "leftovers.h"

/* Of all commands here */
struct options {
	bool parents, recursive, force, leftovers, symbolic;
};

static mode_t dir_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0777 & ~mask;
}

static int mkdir_parents(struct leat *m, const char *path)
{
	struct tool_path p;
	struct stat st;
	char *slash;
	int rc;

	rc = tool_path_init(&p, path);
	for (slash = p.text; !rc && slash; ) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = '\0';
		rc = leat_mkdir(m, p.text, dir_mode());
		/* mkdir may fail although the directory exists; a later step then reports errors */
		if (rc && !leat_stat(m, p.text, &st))
			rc = S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
		if (slash)
			*slash = '/';
	}
	return rc;
}

static int mkdir_one(struct tool_target *t, void *ctx)
{
	const struct options *o = ctx;
	int rc;

	rc = o->parents ? mkdir_parents(t->m, t->path) : leat_mkdir(t->m, t->path, dir_mode());
	return rc ? tool_fail(t->m, t->path, rc) : TOOL_OK;
}

static int mkdir_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct options o = { 0 };

	if (tool_options(self, argc, argv, &o) < 0 || optind == argc)
		return tool_usage(self);
	return tool_each(argc - optind, argv + optind, mkdir_one, &o);
}

/* Removes the content of @in with the path @p. Each directory on the path is held open, so that a link put in its
 * place by another user cannot redirect the removal. */
static int empty_dir(struct fs_base in, struct tool_path *p);

static int remove_entry(struct fs_base in, const struct tool_entry *e, struct tool_path *p)
{
	struct fs_base below;
	int rc;

	if (e->err)
		return tool_fail(in.m, p->text, e->err);
	if (!S_ISDIR(e->st.st_mode)) {
		rc = fs_unlink(in, e->name);
		return rc && rc != -ENOENT ? tool_fail(in.m, p->text, rc) : TOOL_OK;
	}
	rc = fs_enter(in, e->name, &below);
	if (rc)
		return tool_fail(in.m, p->text, rc);
	rc = empty_dir(below, p);
	fs_leave(&below);
	if (rc != TOOL_OK)
		return rc;
	rc = fs_rmdir(in, e->name);
	return rc && rc != -ENOENT ? tool_fail(in.m, p->text, rc) : TOOL_OK;
}

static int empty_dir(struct fs_base in, struct tool_path *p)
{
	struct tool_entries e;
	size_t len = p->len;
	int rc, worst = TOOL_OK;

	rc = fs_list(in, &e);
	if (rc)
		return tool_fail(in.m, p->text, rc);
	for (size_t i = 0; i < e.count && !tool_interrupted(); i++) {
		rc = tool_path_push(p, e.v[i].name);
		rc = rc ? tool_fail(in.m, p->text, rc) : remove_entry(in, &e.v[i], p);
		worst = MAX(worst, rc);
		tool_path_cut(p, len);
	}
	tool_entries_fini(&e);
	return tool_interrupted() ? TOOL_FAILED : worst;
}

static int remove_tree(struct tool_target *t)
{
	struct fs_base base = fs_base(t->m), in;
	struct tool_path p;
	int rc;

	base.no_links = true;
	rc = tool_path_init(&p, t->path);
	if (!rc)
		rc = fs_enter(base, p.text, &in);
	if (rc)
		return tool_fail(t->m, t->path, rc);
	rc = empty_dir(in, &p);
	fs_leave(&in);
	if (rc != TOOL_OK)
		return rc;
	rc = leat_rmdir(t->m, t->path);
	return rc && rc != -ENOENT ? tool_fail(t->m, t->path, rc) : TOOL_OK;
}

/* "." and ".." may name a larger directory than the user meant */
static bool ends_in_dots(const char *path)
{
	char name[256];

	tool_base_name(path, name, sizeof(name));
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* With a trailing slash, a link means the directory that it points to; rm must not remove that. */
static bool is_link_with_slash(const struct tool_target *t)
{
	struct tool_path p;
	struct stat st;

	return tool_ends_in_slash(t->path) && !tool_path_init(&p, t->path) && !leat_lstat(t->m, p.text, &st) &&
	       S_ISLNK(st.st_mode);
}

static int rm_one(struct tool_target *t, void *ctx)
{
	char place[TOOL_PLACE_BYTES];
	const struct options *rm = ctx;
	struct stat st;
	int rc;

	if (ends_in_dots(t->path)) {
		log_err("%s: '.' and '..' are not removed", t->arg);
		return TOOL_FAILED;
	}
	rc = leat_lstat(t->m, t->path, &st);
	if (rc == -ENOENT && rm->force)
		return TOOL_OK;
	if (!rc && !strcmp(t->path, "/")) {
		log_err("%s: this is the root of the export; it is not removed", tool_place(t->m, "/", place));
		return TOOL_FAILED;
	}
	if (!rc && is_link_with_slash(t))
		rc = -ENOTDIR;
	if (!rc && S_ISDIR(st.st_mode)) {
		if (!rm->recursive) {
			log_err("%s: is a directory: use -r", t->arg);
			return TOOL_FAILED;
		}
		return remove_tree(t);
	}
	if (!rc)
		rc = leat_unlink(t->m, t->path);
	return rc ? tool_fail(t->m, t->path, rc) : TOOL_OK;
}

static int rm_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct options rm = { 0 };
	int rc, worst = TOOL_OK;

	if (tool_options(self, argc, argv, &rm) < 0 || optind == argc)
		return tool_usage(self);
	if (!rm.leftovers)
		return tool_each(argc - optind, argv + optind, rm_one, &rm);
	for (; optind < argc && !tool_interrupted(); optind++) {
		rc = leftovers_remove(argv[optind], rm.recursive);
		worst = MAX(worst, rc);
	}
	return worst;
}

/* If @to is a directory, the target is the entry of that name inside it. */
static int into_dir(const struct tool_target *from, const struct tool_target *to, struct tool_path *ret)
{
	char name[256];
	struct stat st;
	int rc;

	rc = tool_path_init(ret, to->path);
	if (rc)
		return rc;
	if (!leat_stat(to->m, to->path, &st) && S_ISDIR(st.st_mode)) {
		tool_base_name(from->path, name, sizeof(name));
		return *name ? tool_path_push(ret, name) : 0;
	}
	return tool_ends_in_slash(to->path) ? tool_path_push(ret, "") : 0;
}

/* rename(2) does nothing with two names of one file, and the old name would stay */
static bool is_same(struct leat *m, const char *from, const char *to)
{
	struct stat a, b;

	return !leat_lstat(m, from, &a) && !leat_lstat(m, to, &b) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int mv_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct tool_target from = { 0 }, to = { 0 };
	char place[TOOL_PLACE_BYTES], place2[TOOL_PLACE_BYTES];
	struct tool_path p;
	int rc = TOOL_FAILED, err;

	if (tool_options(self, argc, argv, NULL) < 0 || argc - optind != 2)
		return tool_usage(self);
	if (tool_attach(argv[optind], &from) || tool_attach(argv[optind + 1], &to) ||
	    !tool_same_export(&from, &to))
		goto out;
	err = into_dir(&from, &to, &p);
	if (!err && is_same(from.m, from.path, p.text)) {
		log_err("'%s' and '%s' are the same file", tool_place(from.m, from.path, place),
			tool_place(to.m, p.text, place2));
		goto out;
	}
	if (!err)
		err = leat_rename(from.m, from.path, p.text);
	rc = err ? tool_fail(from.m, from.path, err) : TOOL_OK;
out:
	tool_detach(&to);
	tool_detach(&from);
	return rc;
}

static int ln_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct tool_target from = { 0 }, to = { 0 };
	struct options o = { 0 };
	struct tool_path p;
	int rc = TOOL_FAILED, err;

	if (tool_options(self, argc, argv, &o) < 0 || argc - optind != 2)
		return tool_usage(self);
	if (tool_attach(argv[optind + 1], &to))
		goto out;
	if (o.symbolic) {
		err = leat_symlink(to.m, argv[optind], to.path);
	} else {
		if (tool_attach(argv[optind], &from) || !tool_same_export(&from, &to))
			goto out;
		err = into_dir(&from, &to, &p);
		if (!err)
			err = leat_link(to.m, from.path, p.text);
	}
	rc = err ? tool_fail(to.m, o.symbolic ? to.path : from.path, err) : TOOL_OK;
out:
	tool_detach(&from);
	tool_detach(&to);
	return rc;
}

static const struct opt mkdir_opts[] = {
	TOOL_FLAG('p', NULL, struct options, parents, "also make missing parents, and ignore existing directories"),
};
static const struct opt rm_opts[] = {
	TOOL_FLAG('r', NULL, struct options, recursive, "directories with everything below"),
	TOOL_FLAG('R', NULL, struct options, recursive, NULL),
	TOOL_FLAG('f', NULL, struct options, force, "ignore missing files"),
	TOOL_FLAG(0, "leftovers", struct options, leftovers,
		  "remove temporary files of killed copies, hidden names of crashed programs"),
};
static const struct opt ln_opts[] = {
	TOOL_FLAG('s', NULL, struct options, symbolic, "a symbolic link with the text TARGET"),
};

const struct tool_cmd cmd_mkdir = { "mkdir", "[-p] URL...", "make directories", mkdir_run, mkdir_opts,
				    ARRAY_SIZE(mkdir_opts), .mixed = false };
const struct tool_cmd cmd_rm = { "rm", "[-rf] URL... | --leftovers [-r] DIRECTORY...", "remove files", rm_run, rm_opts,
				 ARRAY_SIZE(rm_opts), .mixed = false };
const struct tool_cmd cmd_mv = { "mv", "URL URL", "rename, or move inside an export", .run = mv_run };
const struct tool_cmd cmd_ln = { "ln", "[-s] URL|TARGET URL", "make another name for a file", ln_run, ln_opts,
				 ARRAY_SIZE(ln_opts), .mixed = false };
