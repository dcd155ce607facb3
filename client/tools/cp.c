/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cp.c - leat cp, put, get: copy files and trees, between servers and this machine
 *
 * Operation:  cp_run() finds out what the last argument is, then copy_any() walks each source.
 *             A file that is new, or replaces one, is written under a name of its own beside the
 *             place where it belongs and renamed when it is complete and closed, so nobody ever
 *             finds half a file. What has several names, or is no regular file, or lies where we
 *             may not make a name, is written in place. If the server was restarted and lost what
 *             was not yet stable, the file is copied again: here is who still has the data.
 *             The target that the user wrote may be a link, and is followed. What is found below
 *             is somebody else's: there no link is followed, neither in the source nor in
 *             the target. In the target a link in a file's place is replaced, one in a
 *             directory's place is an error. Of this machine's target directories each is held
 *             open while we are in it, so nobody can put a link in our way meanwhile.
 *             With -r links are copied as links, and so are pipes, sockets and devices, as far as
 *             whoever copies may make them.
 *             The files of a tree are copied by workers (cp_pool.c), several at once; a directory
 *             is left, and gets its times, when all that is below it is done.
 * Memory:     One copier for each source argument and for each worker; two paths that grow and
 *             shrink.
 * Threads:    One walks; workers run copy_file(), each with a struct cp and mounts of its own.
 * Errors:     Told, the rest is copied; status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "copy.h"
#include "cp_pool.h"

struct cp {
	bool recursive, preserve;
	mode_t mask;
	struct progress *progress;  /* everybody's */

	struct tool_target from_t, to_t; /* m is NULL for this machine */
	struct tool_path from, to;
	/* @base: where the last part of @to.text is a name, unless @to is what the user wrote */
	struct fs_base from_base, to_base;
	struct copier *copier;
	struct cp_pool *pool;       /* NULL: one file after the other */
	struct cp_batch *batch;     /* of the directory that we are in, or NULL */
};

/* A file for a worker: everything of struct cp that changes on the way. */
struct job {
	struct tool_path from, to;
	struct fs_base from_base, to_base; /* open for as long as the batch is waited for */
	struct stat st;
};

#define COPIES_MAX 4 /* of one file, when the server loses what it was told */

/* What cp->to is to cp->to_base. */
static const char *to_name(const struct cp *cp)
{
	const char *slash = strrchr(cp->to.text, '/');

	return cp->to_base.dir >= 0 && slash ? slash + 1 : cp->to.text;
}

static int complain(struct cp *cp, enum copy_side side, int err)
{
	progress_hide(cp->progress);
	if (err == -EINTR && tool_interrupted()) {
		log_err("%s: interrupted", cp->to.text);
		return TOOL_FAILED;
	}
	return side == COPY_FROM ? tool_fail(cp->from_t.m, cp->from.text, err) :
				   tool_fail(cp->to_t.m, cp->to.text, err);
}

/* A name beside that of cp->to that nobody uses. */
static int temp_path(const struct cp *cp, struct tool_path *ret)
{
	const char *to = to_name(cp), *slash = strrchr(to, '/');
	char name[32];
	uint64_t r;

	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return -EIO;
	snprintf(name, sizeof(name), ".leat-%016llx", (unsigned long long)r);
	if (!slash)
		return tool_path_init(ret, name);
	*ret = cp->to;
	tool_path_cut(ret, (size_t)(slash - to) + 1);
	return tool_path_push(ret, name);
}

static mode_t new_mode(const struct cp *cp, const struct stat *st)
{
	return cp->preserve ? st->st_mode & 07777 : st->st_mode & 0777 & ~cp->mask;
}

/* -p: owner (if we may), mode, times, in the order in which the one does not undo the other */
static int preserve(const struct cp *cp, const char *path, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	mode_t mode = st->st_mode & 07777;
	int rc;

	rc = fs_lchown(cp->to_base, path, st->st_uid, st->st_gid);
	if (rc == -EPERM || rc == -EACCES || rc == -EINVAL) {
		mode &= ~(mode_t)(S_ISUID | S_ISGID); /* not for another owner */
		rc = 0;
	}
	if (!rc)
		rc = fs_chmod(cp->to_base, path, mode);
	if (!rc)
		rc = fs_utimens(cp->to_base, path, times);
	return rc;
}

/* Into an open target, which is closed. */
static int copy_data(struct cp *cp, const struct stat *st, struct fs_file *out, enum copy_side *side)
{
	struct fs_file in;
	int rc, err;

	rc = fs_open(cp->from_base, cp->from.text, O_RDONLY, 0, &in);
	if (rc) {
		*side = COPY_FROM;
	} else {
		rc = copier_run(cp->copier, &in, out, (uint64_t)st->st_size, false, side);
		err = fs_close(&in);
		if (!rc && err) {
			rc = err;
			*side = COPY_FROM;
		}
	}
	err = fs_close(out);
	if (!rc && err) {
		rc = err;
		*side = COPY_TO;
	}
	return rc;
}

/* @temp takes the name of the target. A server that ended when it had done that, and before it could
 * say so, is asked again when it is back, and then finds nothing to rename: what has the name is ours,
 * though. */
static int rename_temp(const struct cp *cp, const char *temp)
{
	struct stat ours, there;
	int rc = cp->to_t.m ? fs_lstat(cp->to_base, temp, &ours) : 0;

	if (rc)
		return rc;
	rc = fs_rename(cp->to_base, temp, to_name(cp));
	if (rc == -ENOENT && cp->to_t.m && !fs_lstat(cp->to_base, to_name(cp), &there) &&
	    there.st_ino == ours.st_ino && there.st_dev == ours.st_dev)
		rc = 0;
	return rc;
}

/* Data that was written is gone, and we can read it once more. */
static bool is_lost(const struct cp *cp, const struct stat *st, enum copy_side side, int rc)
{
	return rc == -EIO && side == COPY_TO && cp->to_t.m && S_ISREG(st->st_mode) &&
	       strstr(leat_error(cp->to_t.m), "the server lost data");
}

static int copy_in_place(struct cp *cp, const struct stat *st)
{
	enum copy_side side;
	struct fs_file out;
	int rc, copies = 0;

	do {
		side = COPY_TO;
		rc = fs_open(cp->to_base, to_name(cp), O_WRONLY | O_CREAT | O_TRUNC,
			     new_mode(cp, st), &out);
		if (!rc)
			rc = copy_data(cp, st, &out, &side);
	} while (is_lost(cp, st, side, rc) && ++copies < COPIES_MAX);
	if (!rc && cp->preserve)
		rc = preserve(cp, to_name(cp), st);
	return rc ? complain(cp, side, rc) : TOOL_OK;
}

/* Into a new file, which takes the name of what is there when all is well.
 *
 * Return: an exit status; or -EAGAIN: the server lost it, it may be tried again unless @last;
 * -EACCES, -EPERM: no file can be made there.
 */
static int copy_beside(struct cp *cp, const struct stat *st, mode_t mode, bool last)
{
	enum copy_side side = COPY_TO;
	struct tool_path temp;
	struct fs_file out;
	int rc;

	rc = temp_path(cp, &temp);
	if (!rc)
		rc = fs_open(cp->to_base, temp.text, O_WRONLY | O_CREAT | O_EXCL, mode & 0777, &out);
	if (rc == -EACCES || rc == -EPERM)
		return rc;
	if (rc)
		return complain(cp, COPY_TO, rc);
	rc = copy_data(cp, st, &out, &side);
	if (!rc) {
		side = COPY_TO;
		rc = cp->preserve ? preserve(cp, temp.text, st) :
				    fs_chmod(cp->to_base, temp.text, mode);
		if (!rc)
			rc = rename_temp(cp, temp.text);
	}
	if (rc) {
		rc = !last && is_lost(cp, st, side, rc) ? -EAGAIN : complain(cp, side, rc);
		fs_unlink(cp->to_base, temp.text); /* the failure is told already, or to be mended */
	}
	return rc;
}

static int copy_file(struct cp *cp, const struct stat *st)
{
	mode_t mode = new_mode(cp, st);
	struct stat old;
	int rc, copies = 1;

	progress_file(cp->progress, cp->from.text, (uint64_t)st->st_size);
	rc = fs_lstat(cp->to_base, to_name(cp), &old);
	if (!rc) {
		bool is_link = S_ISLNK(old.st_mode) && cp->to_base.no_links;

		if (S_ISDIR(old.st_mode))
			return complain(cp, COPY_TO, -EISDIR);
		if (!is_link && (!S_ISREG(old.st_mode) || old.st_nlink > 1))
			return copy_in_place(cp, st);
		if (!cp->preserve && !is_link)
			mode = old.st_mode & 07777;
	} else if (rc != -ENOENT) {
		return complain(cp, COPY_TO, rc);
	}
	do
		rc = copy_beside(cp, st, mode, copies == COPIES_MAX);
	while (rc == -EAGAIN && copies++ < COPIES_MAX);
	return rc == -EACCES || rc == -EPERM ? copy_in_place(cp, st) : rc;
}

static int copy_link(struct cp *cp)
{
	char target[TOOL_PATH_MAX + 1];
	struct tool_path temp;
	int rc;

	rc = fs_readlink(cp->from_base, cp->from.text, target, sizeof(target));
	if (rc)
		return complain(cp, COPY_FROM, rc);
	rc = fs_symlink(cp->to_base, target, to_name(cp));
	if (rc == -EEXIST) {
		rc = temp_path(cp, &temp);
		if (!rc)
			rc = fs_symlink(cp->to_base, target, temp.text);
		if (!rc) {
			rc = rename_temp(cp, temp.text);
			if (rc)
				fs_unlink(cp->to_base, temp.text); /* rc tells */
		}
	}
	return rc ? complain(cp, COPY_TO, rc) : TOOL_OK;
}

static int copy_special(struct cp *cp, const struct stat *st)
{
	int rc = fs_mknod(cp->to_base, to_name(cp), (st->st_mode & S_IFMT) | new_mode(cp, st),
			  st->st_rdev);

	if (!rc && cp->preserve)
		rc = preserve(cp, to_name(cp), st);
	return rc ? complain(cp, COPY_TO, rc) : TOOL_OK;
}

/* ---- workers ---- */

static void stop_worker(void *worker)
{
	struct cp *w = worker;

	copier_destroy(w->copier);
	tool_detach(&w->from_t);
	tool_detach(&w->to_t);
	free(w);
}

/* With the settings of @ctx, and mounts that nobody else uses. */
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
		rc = leat_mount(cp->from_t.arg, NULL, &w->from_t.m);
	if (!rc && cp->to_t.m)
		rc = leat_mount(cp->to_t.arg, NULL, &w->to_t.m);
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
	rc = tool_interrupted() ? TOOL_FAILED : copy_file(w, &job->st);
	free(job);
	return rc;
}

static const struct cp_pool_ops pool_ops = { start_worker, run_job, stop_worker };

/* By a worker, if we are in a directory and there is one: its status comes with the batch. */
static int give_file(struct cp *cp, const struct stat *st)
{
	struct job *job = cp->pool && cp->batch ? malloc(sizeof(*job)) : NULL;

	if (!job)
		return copy_file(cp, st);
	*job = (struct job){ cp->from, cp->to, cp->from_base, cp->to_base, *st };
	if (cp_pool_give(cp->pool, cp->batch, job))
		return TOOL_OK;
	free(job);
	return copy_file(cp, st);
}

/* ---- trees ---- */

static int copy_any(struct cp *cp, const struct stat *st);

/* cp->to_base is inside the target directory by now. */
static int copy_children(struct cp *cp)
{
	size_t from_len = cp->from.len, to_len = cp->to.len;
	bool from_no_links = cp->from_base.no_links;
	struct cp_batch batch = { 0 }, *outer = cp->batch;
	struct tool_entries e;
	int rc, worst = TOOL_OK;

	rc = fs_list(cp->from_base, cp->from.text, &e);
	if (rc)
		return complain(cp, COPY_FROM, rc);
	cp->from_base.no_links = true;
	cp->batch = &batch;
	for (size_t i = 0; i < e.count && !tool_interrupted(); i++) {
		rc = tool_path_push(&cp->from, e.v[i].name);
		if (!rc)
			rc = tool_path_push(&cp->to, e.v[i].name);
		rc = rc ? complain(cp, COPY_FROM, rc) : copy_any(cp, &e.v[i].st);
		worst = MAX(worst, rc);
		tool_path_cut(&cp->from, from_len);
		tool_path_cut(&cp->to, to_len);
	}
	/* what is copied into a directory changes its times, and may need it open */
	if (cp->pool)
		worst = MAX(worst, cp_pool_wait(cp->pool, &batch));
	cp->batch = outer;
	cp->from_base.no_links = from_no_links;
	tool_entries_fini(&e);
	return tool_interrupted() ? TOOL_FAILED : worst;
}

/* Make the directory cp->to, or find it, and be inside. A link to one is none, unless the user wrote
 * it himself. */
static int make_dir(struct cp *cp, mode_t mode, bool *ret_made, struct fs_base *ret_inside)
{
	struct stat old;
	int rc;

	/* we must get into it, whatever its mode will be */
	rc = fs_mkdir(cp->to_base, to_name(cp), (mode & 0777) | 0700);
	*ret_made = !rc;
	if (rc && rc != -EEXIST)
		return complain(cp, COPY_TO, rc);
	rc = fs_enter(cp->to_base, to_name(cp), ret_inside);
	if (!rc)
		return TOOL_OK;
	if (cp->to_base.no_links && !fs_lstat(cp->to_base, to_name(cp), &old) &&
	    S_ISLNK(old.st_mode)) {
		progress_hide(cp->progress);
		log_err("%s: is a symbolic link where a directory is to be: not followed",
			cp->to.text);
		return TOOL_FAILED;
	}
	return complain(cp, COPY_TO, rc);
}

static int copy_dir(struct cp *cp, const struct stat *st)
{
	struct fs_base inside, outside = cp->to_base;
	mode_t mode = new_mode(cp, st);
	bool made;
	int rc, worst;

	if (!cp->recursive) {
		progress_hide(cp->progress);
		log_err("%s: is a directory: -r is wanted", cp->from.text);
		return TOOL_FAILED;
	}
	if (make_dir(cp, mode, &made, &inside))
		return TOOL_FAILED;
	cp->to_base = inside;
	worst = copy_children(cp);
	fs_leave(&inside);
	cp->to_base = outside;
	rc = 0;
	if (cp->preserve)
		rc = preserve(cp, to_name(cp), st);
	else if (made && (mode & 0700) != 0700)
		rc = fs_chmod(cp->to_base, to_name(cp), mode);
	return rc ? complain(cp, COPY_TO, rc) : worst;
}

static int copy_any(struct cp *cp, const struct stat *st)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFDIR:
		return copy_dir(cp, st);
	case S_IFREG:
		return give_file(cp, st);
	case S_IFLNK:
		return copy_link(cp);
	default:
		/* one named by hand is read, as /dev/stdin is; one found on the way is made again */
		return cp->recursive ? copy_special(cp, st) : copy_file(cp, st);
	}
}

/* The name that a source gets inside a directory; "" if its contents go there directly. */
static const char *source_name(const struct cp *cp, char *buf, size_t cap)
{
	const struct tool_target *t = &cp->from_t;

	if (t->m && !strcmp(t->path, "/")) {
		/* the root of an export is called as the export, if that has a name */
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

/* Would the copy meet itself on its way? By name; what lies behind links is the user's affair. */
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
		/* not there yet: its directory is */
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

/* Both paths stand, cp->to_base is where the target's name is. */
static int copy_found(struct cp *cp)
{
	struct stat st;
	int rc;

	rc = cp->recursive ? fs_lstat(cp->from_base, cp->from.text, &st) :
			     fs_stat(cp->from_base, cp->from.text, &st);
	if (rc)
		return complain(cp, COPY_FROM, rc);
	if (S_ISDIR(st.st_mode) && is_inside(cp)) {
		log_err("%s: cannot be copied into itself, %s", cp->from.text, cp->to.text);
		return TOOL_FAILED;
	}
	rc = copier_create(cp->from_t.m, cp->to_t.m, cp->progress, &cp->copier);
	if (!rc && S_ISDIR(st.st_mode) && (cp->from_t.m || cp->to_t.m))
		rc = cp_pool_create(&pool_ops, cp, &cp->pool);
	rc = rc ? complain(cp, COPY_FROM, rc) : copy_any(cp, &st);
	cp_pool_destroy(cp->pool);
	cp->pool = NULL;
	copier_destroy(cp->copier);
	cp->copier = NULL;
	return rc;
}

static int copy_source(struct cp *cp, bool into_dir)
{
	char name[256];
	int rc;

	cp->from_base = fs_base(cp->from_t.m);
	cp->to_base = fs_base(cp->to_t.m);
	rc = tool_path_init(&cp->from, cp->from_t.m ? cp->from_t.path : cp->from_t.arg);
	if (rc)
		return complain(cp, COPY_FROM, rc);
	rc = tool_path_init(&cp->to, cp->to_t.m ? cp->to_t.path : cp->to_t.arg);
	if (!rc && into_dir && source_name(cp, name, sizeof(name))[0]) {
		rc = fs_enter(cp->to_base, cp->to.text, &cp->to_base);
		if (!rc)
			rc = tool_path_push(&cp->to, name);
	}
	rc = rc ? complain(cp, COPY_TO, rc) : copy_found(cp);
	fs_leave(&cp->to_base);
	return rc;
}

/* "-" is standard input. */
static const char *local_name(const char *arg)
{
	return strcmp(arg, "-") ? arg : "/dev/stdin";
}

static int attach_or_local(const char *arg, struct tool_target *t)
{
	t->arg = local_name(arg);
	return tool_is_url(arg) ? tool_attach(arg, t) : 0;
}

static int copy_all(struct cp *cp, char **sources, int count, const char *to)
{
	struct progress progress;
	bool into_dir = false;
	int rc, worst = TOOL_OK;
	struct stat st;

	if (attach_or_local(to, &cp->to_t))
		return TOOL_FAILED;
	rc = fs_stat(fs_base(cp->to_t.m), cp->to_t.m ? cp->to_t.path : to, &st);
	if (!rc)
		into_dir = S_ISDIR(st.st_mode);
	if (count > 1 && !into_dir) {
		log_err("%s: not a directory, where several files could go", to);
		tool_detach(&cp->to_t);
		return TOOL_FAILED;
	}
	progress_init(&progress);
	cp->progress = &progress;
	for (int i = 0; i < count && !tool_interrupted(); i++) {
		rc = attach_or_local(sources[i], &cp->from_t) ? TOOL_FAILED :
								copy_source(cp, into_dir);
		worst = MAX(worst, rc);
		tool_detach(&cp->from_t);
	}
	progress_end(cp->progress);
	tool_detach(&cp->to_t);
	return worst;
}

static bool parse_options(struct cp *cp, int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "+rRp")) != -1) {
		switch (opt) {
		case 'r':
		case 'R':
			cp->recursive = true;
			break;
		case 'p':
			cp->preserve = true;
			break;
		default:
			return false;
		}
	}
	cp->mask = umask(0);
	umask(cp->mask);
	return true;
}

static int cp_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct cp cp = { 0 };

	if (!parse_options(&cp, argc, argv) || argc - optind < 2)
		return tool_usage(self);
	return copy_all(&cp, argv + optind, argc - optind - 1, argv[argc - 1]);
}

static int put_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct cp cp = { 0 };

	if (!parse_options(&cp, argc, argv) || argc - optind < 2)
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

	if (!parse_options(&cp, argc, argv) || optind == argc)
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

const struct tool_cmd cmd_cp = { "cp", "[-rp] FROM... TO",
				 "copy; each is a URL or a file of this machine", cp_run };
const struct tool_cmd cmd_put = { "put", "[-rp] FILE... URL", "copy to a server; - is standard input",
				  put_run };
const struct tool_cmd cmd_get = { "get", "[-rp] URL... [FILE]", "copy from a server, to . by default",
				  get_run };
