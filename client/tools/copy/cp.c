/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cp.c - leat cp, put, get: copy files and trees, between servers and this machine
 *
 * Operation:  cp_run() determines what the last argument is, then copy_any() walks each source; cp_file.c
 *             copies everything except directories.
 *             A symbolic link that the user typed as the target is followed. Below it, and below a source,
 *             no link is followed, because another user may have created it. In the target, a link in
 *             place of a file is replaced, one in place of a directory is an error. Each directory of
 *             source and target is held open during its copy. Its content is accessed relative to it, so a
 *             link that replaces the directory cannot redirect the copy.
 *             With -r, links are copied as links, and pipes, sockets and devices as such, if the user is
 *             permitted to create them.
 *             Workers (cp_pool.c) copy several files of a tree at once. A directory gets its times after
 *             everything below it is done.
 *             A source directory that contains the root of the target tree is not copied: see is_top().
 * Memory:     One copier for each source argument and for each worker; two paths that grow and shrink.
 * Threads:    One walks; workers run cp_copy_file(), each with its own struct cp and mounts.
 * Errors:     Logged, the rest is copied; status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cp.h"
#include "cp_pool.h"

#define NAME_BYTES 256
#define OTHER_FILES 256 /* descriptors for anything except directories */

/* A file for a worker: the members of struct cp that change during the walk. */
struct job {
	struct tool_path from, to;
	struct fs_base from_base, to_base; /* open until the batch is finished */
	struct stat st;
};

/* ---- workers ---- */

static void stop_worker(void *worker)
{
	struct cp *w = worker;

	copier_destroy(w->copier);
	tool_detach(&w->from_t);
	tool_detach(&w->to_t);
	free(w);
}

/* With the settings of @ctx, and mounts of its own. */
static void *start_worker(void *ctx)
{
	const struct cp *cp = ctx;
	struct cp *w = malloc(sizeof(*w));
	int rc = 0;

	if (!w)
		return NULL;
	*w = *cp;
	w->from_t.m = w->to_t.m = NULL;
	w->copier = NULL;
	w->pool = NULL;
	w->batch = NULL;
	if (cp->from_t.m)
		rc = tool_mount(cp->from_t.arg, NULL, &w->from_t.m);
	if (!rc && cp->to_t.m)
		rc = tool_mount(cp->to_t.arg, NULL, &w->to_t.m);
	if (!rc)
		rc = copier_create(w->from_t.m, w->to_t.m, w->progress, &w->copier);
	if (rc) {
		stop_worker(w);
		return NULL;
	}
	return w;
}

static int run_job(void *worker, void *arg)
{
	struct cp *w = worker;
	struct job *job = arg;
	int rc;

	w->from = job->from;
	w->to = job->to;
	w->from_base = job->from_base;
	w->to_base = job->to_base;
	w->from_base.m = w->from_t.m;
	w->to_base.m = w->to_t.m;
	rc = tool_interrupted() ? TOOL_FAILED : cp_copy_file(w, &job->st);
	free(job);
	return rc;
}

static const struct cp_pool_ops pool_ops = { start_worker, run_job, stop_worker };

/* Passes the file to a worker if the walk is in a directory and a worker is available; the batch returns its status. */
static int give_file(struct cp *cp, const struct stat *st)
{
	struct job *job = cp->pool && cp->batch ? malloc(sizeof(*job)) : NULL;

	if (!job)
		return cp_copy_file(cp, st);
	*job = (struct job){ cp->from, cp->to, cp->from_base, cp->to_base, *st };
	if (cp_pool_give(cp->pool, cp->batch, job))
		return TOOL_OK;
	free(job);
	return cp_copy_file(cp, st);
}

/* ---- trees ---- */

static int copy_any(struct cp *cp, const struct stat *st);

static int refuse_inside(struct cp *cp)
{
	char from[TOOL_PLACE_BYTES], to[TOOL_PLACE_BYTES];

	progress_hide(cp->progress);
	log_err("%s: cannot be copied into itself, %s", cp_place(cp, COPY_FROM, from),
		cp_place(cp, COPY_TO, to));
	return TOOL_FAILED;
}

/* Requires cp->from_base and cp->to_base to be inside the two directories. */
static int copy_children(struct cp *cp)
{
	size_t from_len = cp->from.len, to_len = cp->to.len;
	struct cp_batch batch = { 0 }, *outer = cp->batch;
	struct tool_entries e;
	int rc, worst = TOOL_OK;

	rc = fs_list(cp->from_base, &e);
	if (rc)
		return cp_report(cp, COPY_FROM, rc);
	cp->batch = &batch;
	for (size_t i = 0; i < e.count && !tool_interrupted(); i++) {
		rc = tool_path_push(&cp->from, e.v[i].name);
		if (!rc)
			rc = tool_path_push(&cp->to, e.v[i].name);
		if (!rc)
			rc = e.v[i].err;
		if (rc)
			rc = cp_report(cp, COPY_FROM, rc);
		else if (!cp->all && tool_is_temp_name(e.v[i].name) && !S_ISDIR(e.v[i].st.st_mode))
			/* incomplete, or being written */
			rc = cp_say(cp, COPY_FROM, "skipped, the temporary file of a copy (--all copies it)");
		else
			rc = copy_any(cp, &e.v[i].st);
		worst = MAX(worst, rc);
		tool_path_cut(&cp->from, from_len);
		tool_path_cut(&cp->to, to_len);
	}
	/* copying into a directory changes its times, and may need it open */
	if (cp->pool)
		worst = MAX(worst, cp_pool_wait(cp->pool, &batch));
	cp->batch = outer;
	tool_entries_fini(&e);
	return tool_interrupted() ? TOOL_FAILED : worst;
}

/* Creates or finds the directory cp->to, and enters it. A link to a directory counts only if the user typed it. */
static int make_dir(struct cp *cp, mode_t mode, bool *ret_made, struct fs_base *ret_inside)
{
	struct stat old;
	int rc;

	/* this program must be able to enter it, whatever its final mode */
	rc = fs_mkdir(cp->to_base, cp_target_name(cp), (mode & 0777) | 0700);
	*ret_made = !rc;
	if (rc && rc != -EEXIST)
		return cp_report(cp, COPY_TO, rc);
	rc = fs_enter(cp->to_base, cp_target_name(cp), ret_inside);
	if (!rc)
		return TOOL_OK;
	if (cp->to_base.no_links && !fs_lstat(cp->to_base, cp_target_name(cp), &old) &&
	    S_ISLNK(old.st_mode))
		return cp_say(cp, COPY_TO, "is a symbolic link where a directory is to be: not followed");
	return cp_report(cp, COPY_TO, rc);
}

/* Is the source directory that cp->from_base is inside of, with attributes @st, the root of the target tree? If
 * device and inode numbers cannot tell, a link with a unique name is created in one and looked up in the other. */
static bool is_top(const struct cp *cp, const struct stat *st)
{
	struct fs_base to = fs_base(cp->to_t.m);
	struct tool_path theirs = cp->to;
	char name[TOOL_TEMP_NAME_BYTES];
	struct stat probe;
	bool seen;

	if (!cp->top_len || cp->one_server)
		return cp->top_len && cp_is_same(cp, st, &cp->top);
	if (st->st_ino != cp->top.st_ino)
		return false;
	tool_path_cut(&theirs, cp->top_len);
	if (tool_temp_name(name) || tool_path_push(&theirs, name) ||
	    fs_symlink(to, name, theirs.text))
		return false;
	seen = !fs_lstat(cp->from_base, name, &probe);
	fs_unlink(to, theirs.text); /* the probe link */
	return seen;
}

/* @inside is the directory cp->to. */
static int note_top(struct cp *cp, struct fs_base inside, const struct stat *st, bool made)
{
	int rc = fs_stat(inside, ".", &cp->top);

	if (rc)
		return cp_report(cp, COPY_TO, rc);
	cp->top_len = cp->to.len;
	return !made && is_top(cp, st) ? cp_refuse_same(cp) : TOOL_OK;
}

static int preserve_dir(struct cp *cp, struct fs_file *to, const struct stat *st, enum copy_side *side)
{
	struct fs_file from;
	int rc;

	rc = fs_open_inside(cp->from_base, &from);
	if (rc) {
		*side = COPY_FROM;
		return rc;
	}
	rc = cp_preserve(cp, &from, to, st, side);
	fs_drop(&from);
	return rc;
}

/* Sets the attributes of the directory that cp->to_base is inside of. */
static int finish_dir(struct cp *cp, const struct stat *st, bool has_other_mode, mode_t mode,
		      enum copy_side *side)
{
	struct fs_file to;
	int rc;

	*side = COPY_TO;
	if (!cp->preserve && !has_other_mode)
		return 0;
	rc = fs_open_inside(cp->to_base, &to);
	if (rc)
		return rc;
	rc = cp->preserve ? preserve_dir(cp, &to, st, side) : fs_fchmod(&to, mode);
	fs_drop(&to);
	return rc;
}

/* Requires cp->from_base to be inside the source directory, with attributes @st. */
static int copy_entered(struct cp *cp, const struct stat *st)
{
	struct fs_base inside, outside = cp->to_base;
	mode_t mode = cp_new_mode(cp, st);
	enum copy_side side;
	bool made;
	int rc, worst;

	if (is_top(cp, st))
		return refuse_inside(cp);
	if (make_dir(cp, mode, &made, &inside))
		return TOOL_FAILED;
	if (!cp->top_len && note_top(cp, inside, st, made)) {
		fs_leave(&inside);
		return TOOL_FAILED;
	}
	cp->to_base = inside;
	worst = copy_children(cp);
	rc = finish_dir(cp, st, made && (mode & 0700) != 0700, mode, &side);
	fs_leave(&inside);
	cp->to_base = outside;
	return rc ? cp_report(cp, side, rc) : worst;
}

static int copy_dir(struct cp *cp)
{
	struct fs_base inside, outside = cp->from_base, from = outside;
	struct stat st;
	int rc;

	/* the argument was not a link when it was checked, unless a trailing slash says to follow one */
	from.no_links |= !tool_ends_in_slash(cp->from_t.arg);
	rc = fs_enter(from, cp_source_name(cp), &inside);
	if (rc)
		return cp_report(cp, COPY_FROM, rc);
	rc = fs_stat(inside, ".", &st); /* of the entered directory, whatever was listed */
	cp->from_base = inside;
	rc = rc ? cp_report(cp, COPY_FROM, rc) : copy_entered(cp, &st);
	fs_leave(&inside);
	cp->from_base = outside;
	return rc;
}

static int copy_any(struct cp *cp, const struct stat *st)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFDIR:
		return copy_dir(cp);
	case S_IFREG:
		return give_file(cp, st);
	case S_IFLNK:
		return cp_copy_link(cp, st);
	default:
		/* a special file named as an argument is read, like /dev/stdin; one found in a tree is recreated */
		return cp->recursive ? cp_copy_special(cp, st) : cp_copy_file(cp, st);
	}
}

/* The name of a source inside a target directory; "" if its contents go there directly. */
static const char *source_name(const struct cp *cp, char *buf, size_t cap)
{
	const struct tool_target *t = &cp->from_t;

	if (t->m && !strcmp(t->path, "/")) {
		/* the root of an export has the name of the export, if there is one */
		tool_base_name(t->at, buf, cap);
		if (t->at[0] && t->at[strlen(t->at) - 1] == '/')
			buf[0] = '\0';
	} else {
		tool_base_name(t->m ? t->path : t->arg, buf, cap);
	}
	if (!strcmp(buf, ".") || !strcmp(buf, ".."))
		buf[0] = '\0';
	return buf;
}

/* Would the copy recurse into itself? Compares names only, not the targets of links. */
static bool is_inside(const struct cp *cp)
{
	char *from, *to;
	bool inside;

	if (!cp->from_t.m != !cp->to_t.m)
		return false;
	if (cp->from_t.m) {
		return !strcmp(cp->from_t.at, cp->to_t.at) && cp->to.len > cp->from.len &&
		       !strncmp(cp->from.text, cp->to.text, cp->from.len) &&
		       (cp->from.len == 1 || cp->to.text[cp->from.len] == '/');
	}
	from = realpath(cp->from.text, NULL);
	to = realpath(cp->to.text, NULL);
	if (from && !to) {
		/* the target does not exist yet, but its directory does */
		const char *slash = strrchr(cp->to.text, '/');
		struct tool_path dir = cp->to;

		tool_path_cut(&dir, slash ? (size_t)(slash - cp->to.text) : 0);
		to = realpath(dir.len ? dir.text : slash ? "/" : ".", NULL);
	}
	inside = from && to && !strncmp(from, to, strlen(from)) &&
		 (!to[strlen(from)] || to[strlen(from)] == '/');
	free(from);
	free(to);
	return inside;
}

static int find_source(struct cp *cp, struct stat *ret)
{
	bool is_dir = !cp->from_std && tool_ends_in_slash(cp->from_t.arg);
	int rc;

	if (cp->from_std)
		return fstat(STDIN_FILENO, ret) ? -errno : 0;
	rc = cp->recursive && !is_dir ? fs_lstat(cp->from_base, cp->from.text, ret) :
					fs_stat(cp->from_base, cp->from.text, ret);
	return !rc && is_dir && !S_ISDIR(ret->st_mode) ? -ENOTDIR : rc;
}

/* Checks whether the types allow source to replace target. Return: TOOL_OK; TOOL_FAILED after a message */
static int check_types(struct cp *cp, const struct stat *st)
{
	char from[TOOL_PLACE_BYTES], place[TOOL_PLACE_BYTES];
	struct stat to;

	if (S_ISDIR(st->st_mode)) {
		if (cp->from_std || cp->to_std)
			return cp_report(cp, COPY_FROM, -EISDIR);
		if (!cp->recursive)
			return cp_say(cp, COPY_FROM, "is a directory: use -r");
		if (!fs_stat(cp->to_base, cp_target_name(cp), &to) && cp_is_same(cp, st, &to))
			return cp_refuse_same(cp);
		return is_inside(cp) ? refuse_inside(cp) : TOOL_OK;
	}
	if (cp->to_must_be_dir)
		return cp_report(cp, COPY_TO,
				 fs_stat(cp->to_base, cp->to.text, &to) == -ENOENT ? -ENOENT : -ENOTDIR);
	if (cp->name_repeats) {
		progress_hide(cp->progress);
		log_err("%s: not copied over %s, which this command has just written",
			cp_place(cp, COPY_FROM, from), cp_place(cp, COPY_TO, place));
		return TOOL_FAILED;
	}
	return TOOL_OK;
}

/* Both paths are set, cp->to_base contains the target's name. */
static int copy_found(struct cp *cp)
{
	struct stat st;
	int rc;

	rc = find_source(cp, &st);
	if (rc)
		return cp_report(cp, COPY_FROM, rc);
	if (check_types(cp, &st))
		return TOOL_FAILED;
	cp->top_len = 0;
	rc = copier_create(cp->from_t.m, cp->to_t.m, cp->progress, &cp->copier);
	if (!rc && S_ISDIR(st.st_mode) && (cp->from_t.m || cp->to_t.m))
		rc = cp_pool_create(&pool_ops, cp, &cp->pool);
	if (rc)
		rc = cp_report(cp, COPY_FROM, rc);
	else
		rc = cp->from_std || cp->to_std ? cp_copy_file(cp, &st) : copy_any(cp, &st);
	cp_pool_destroy(cp->pool);
	cp->pool = NULL;
	copier_destroy(cp->copier);
	cp->copier = NULL;
	return rc;
}

/* @names: names in the target directory of the sources up to @at; the entry of @at is written */
static int copy_source(struct cp *cp, bool into_dir, char (*names)[NAME_BYTES], int at)
{
	char place[TOOL_PLACE_BYTES];
	const char *name = names[at];
	int rc;

	if (cp->from_std && into_dir) {
		log_err("%s: is a directory: name the file", tool_place(NULL, cp->to_t.arg, place));
		return TOOL_FAILED;
	}
	cp->one_server = tool_same_server(&cp->from_t, &cp->to_t);
	cp->from_base = fs_base(cp->from_t.m);
	cp->to_base = fs_base(cp->to_t.m);
	cp->name_repeats = false;
	source_name(cp, names[at], NAME_BYTES);
	rc = tool_path_init(&cp->from, cp->from_t.m ? cp->from_t.path : cp->from_t.arg);
	if (rc)
		return cp_report(cp, COPY_FROM, rc);
	rc = tool_path_init(&cp->to, cp->to_t.m ? cp->to_t.path : cp->to_t.arg);
	if (!rc && into_dir && name[0]) {
		rc = fs_enter(cp->to_base, cp->to.text, &cp->to_base);
		if (!rc)
			rc = tool_path_push(&cp->to, name);
		for (int i = 0; i < at; i++)
			cp->name_repeats |= !strcmp(names[i], name);
	}
	rc = rc ? cp_report(cp, COPY_TO, rc) : copy_found(cp);
	fs_leave(&cp->to_base);
	return rc;
}

static int attach_or_local(const char *arg, const char *std, struct tool_target *t)
{
	t->arg = strcmp(arg, "-") ? arg : std;
	return tool_is_url(arg) ? tool_attach(arg, t) : 0;
}

/* Is the target argument a directory, or must it be one? */
static bool find_target(struct cp *cp)
{
	const char *path = cp->to_t.m ? cp->to_t.path : cp->to_t.arg;
	struct stat st;

	if (cp->to_std)
		return false;
	if (!fs_stat(fs_base(cp->to_t.m), path, &st) && S_ISDIR(st.st_mode))
		return true;
	cp->to_must_be_dir = tool_ends_in_slash(cp->to_t.arg);
	return false;
}

static int copy_sources(struct cp *cp, char **sources, int count, const char *to)
{
	char (*names)[NAME_BYTES];
	bool into_dir = find_target(cp);
	int rc, worst = TOOL_OK;

	if (count > 1 && !into_dir) {
		log_err("%s: not a directory, where several files could go", to);
		return TOOL_FAILED;
	}
	names = calloc((size_t)count, sizeof(*names));
	if (!names)
		return tool_fail(NULL, to, -ENOMEM);
	for (int i = 0; i < count && !tool_interrupted(); i++) {
		cp->from_std = !strcmp(sources[i], "-");
		rc = attach_or_local(sources[i], "/dev/stdin", &cp->from_t) ?
			     TOOL_FAILED :
			     copy_source(cp, into_dir, names, i);
		worst = MAX(worst, rc);
		tool_detach(&cp->from_t);
	}
	free(names);
	return worst;
}

static int copy_all(struct cp *cp, char **sources, int count, const char *to)
{
	struct progress progress;
	int rc;

	cp->to_std = !strcmp(to, "-");
	if (attach_or_local(to, "standard output", &cp->to_t))
		return TOOL_FAILED;
	progress_init(&progress);
	cp->progress = &progress;
	rc = copy_sources(cp, sources, count, to);
	progress_end(cp->progress);
	tool_detach(&cp->to_t);
	return rc;
}

/* Each directory of a path is held open on both sides, so a deep local tree takes many descriptors. */
static void allow_depth(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl))
		return;
	rl.rlim_cur = MAX(rl.rlim_cur, MIN(rl.rlim_max, (rlim_t)TOOL_PATH_MAX + OTHER_FILES));
	(void)setrlimit(RLIMIT_NOFILE, &rl); /* on failure, a later open reports the limit */
}

static bool parse_options(const struct tool_cmd *self, struct cp *cp, int argc, char **argv)
{
	if (tool_options(self, argc, argv, cp) < 0)
		return false;
	if (cp->recursive)
		allow_depth();
	cp->mask = umask(0);
	umask(cp->mask);
	return true;
}

static int cp_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct cp cp = { 0 };

	if (!parse_options(self, &cp, argc, argv) || argc - optind < 2)
		return tool_usage(self);
	return copy_all(&cp, argv + optind, argc - optind - 1, argv[argc - 1]);
}

static int put_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct cp cp = { 0 };

	if (!parse_options(self, &cp, argc, argv) || argc - optind < 2)
		return tool_usage(self);
	for (int i = optind; i < argc; i++) {
		if (tool_is_url(argv[i]) != (i == argc - 1)) {
			log_err("%s: put copies files of this machine to a URL", argv[i]);
			return tool_usage(self);
		}
	}
	return copy_all(&cp, argv + optind, argc - optind - 1, argv[argc - 1]);
}

static int get_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct cp cp = { 0 };
	const char *to = ".";
	int last = argc;

	if (!parse_options(self, &cp, argc, argv) || optind == argc)
		return tool_usage(self);
	if (!tool_is_url(argv[argc - 1]))
		to = argv[--last];
	if (optind == last)
		return tool_usage(self);
	for (int i = optind; i < last; i++) {
		if (!tool_is_url(argv[i])) {
			log_err("%s: get copies URLs to this machine", argv[i]);
			return tool_usage(self);
		}
	}
	return copy_all(&cp, argv + optind, last - optind, to);
}

static const struct opt opts[] = {
	TOOL_FLAG('r', NULL, struct cp, recursive, "directories with everything below, several files at once"),
	TOOL_FLAG('R', NULL, struct cp, recursive, NULL),
	TOOL_FLAG('p', NULL, struct cp, preserve, "also modes, times, access control lists and owners"),
	TOOL_FLAG(0, "all", struct cp, all, "also temporary files of copies"),
};

const struct tool_cmd cmd_cp = { "cp", "[-rp] [--all] FROM... TO", "copy; each is a URL or a file of this machine",
				 cp_run, opts, ARRAY_SIZE(opts), .mixed = false };
const struct tool_cmd cmd_put = { "put", "[-rp] [--all] FILE... URL", "copy to a server; - is standard input",
				  put_run, opts, ARRAY_SIZE(opts), .mixed = false };
const struct tool_cmd cmd_get = { "get", "[-rp] [--all] URL... [FILE]",
				  "copy from a server, to . by default; - is standard output", get_run, opts,
				  ARRAY_SIZE(opts), .mixed = false };
