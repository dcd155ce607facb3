/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cp.c - leat cp, put, get: copy files and trees, between servers and this machine
 *
 * Operation:  cp_run() finds out what the last argument is, then copy_any() walks each source.
 *             A file that is new, or replaces one, is written under a name of its own beside the
 *             place where it belongs and renamed when it is complete and closed, so nobody ever
 *             finds half a file. What has several names, or is no regular file, or lies where we
 *             may not make a name, is written in place.
 *             With -r links are copied as links, and so are pipes, sockets and devices, as far as
 *             whoever copies may make them.
 * Memory:     One copier for each source argument; two paths that grow and shrink.
 * Threads:    One.
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

struct cp {
	bool recursive, preserve;
	mode_t mask;
	struct progress progress;

	struct tool_target from_t, to_t; /* m is NULL for this machine */
	struct tool_path from, to;
	struct copier *copier;
};

static int complain(struct cp *cp, enum copy_side side, int err)
{
	progress_hide(&cp->progress);
	if (err == -EINTR && tool_interrupted()) {
		log_err("%s: interrupted", cp->to.text);
		return TOOL_FAILED;
	}
	return side == COPY_FROM ? tool_fail(cp->from_t.m, cp->from.text, err) :
				   tool_fail(cp->to_t.m, cp->to.text, err);
}

/* A name in the directory of cp->to that nobody uses. */
static int temp_path(const struct cp *cp, struct tool_path *ret)
{
	const char *slash = strrchr(cp->to.text, '/');
	char name[32];
	uint64_t r;

	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return -EIO;
	snprintf(name, sizeof(name), ".leat-%016llx", (unsigned long long)r);
	if (!slash)
		return tool_path_init(ret, name);
	*ret = cp->to;
	tool_path_cut(ret, (size_t)(slash - cp->to.text) + 1);
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

	rc = fs_lchown(cp->to_t.m, path, st->st_uid, st->st_gid);
	if (rc == -EPERM || rc == -EACCES || rc == -EINVAL) {
		mode &= ~(mode_t)(S_ISUID | S_ISGID); /* not for another owner */
		rc = 0;
	}
	if (!rc)
		rc = fs_chmod(cp->to_t.m, path, mode);
	if (!rc)
		rc = fs_utimens(cp->to_t.m, path, times);
	return rc;
}

/* Into an open target, which is closed. */
static int copy_data(struct cp *cp, const struct stat *st, struct fs_file *out, enum copy_side *side)
{
	struct fs_file in;
	int rc, err;

	rc = fs_open(cp->from_t.m, cp->from.text, O_RDONLY, 0, &in);
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

static int copy_in_place(struct cp *cp, const struct stat *st)
{
	enum copy_side side = COPY_TO;
	struct fs_file out;
	int rc;

	rc = fs_open(cp->to_t.m, cp->to.text, O_WRONLY | O_CREAT | O_TRUNC, new_mode(cp, st), &out);
	if (!rc)
		rc = copy_data(cp, st, &out, &side);
	if (!rc && cp->preserve)
		rc = preserve(cp, cp->to.text, st);
	return rc ? complain(cp, side, rc) : TOOL_OK;
}

static int copy_file(struct cp *cp, const struct stat *st)
{
	enum copy_side side = COPY_TO;
	mode_t mode = new_mode(cp, st);
	struct tool_path temp;
	struct fs_file out;
	struct stat old;
	int rc;

	progress_file(&cp->progress, cp->from.text, (uint64_t)st->st_size);
	rc = fs_lstat(cp->to_t.m, cp->to.text, &old);
	if (!rc) {
		if (S_ISDIR(old.st_mode))
			return complain(cp, COPY_TO, -EISDIR);
		if (!S_ISREG(old.st_mode) || old.st_nlink > 1)
			return copy_in_place(cp, st);
		if (!cp->preserve)
			mode = old.st_mode & 07777;
	} else if (rc != -ENOENT) {
		return complain(cp, COPY_TO, rc);
	}
	rc = temp_path(cp, &temp);
	if (!rc)
		rc = fs_open(cp->to_t.m, temp.text, O_WRONLY | O_CREAT | O_EXCL, mode & 0777, &out);
	if (rc == -EACCES || rc == -EPERM)
		return copy_in_place(cp, st);
	if (rc)
		return complain(cp, COPY_TO, rc);
	rc = copy_data(cp, st, &out, &side);
	if (!rc) {
		side = COPY_TO;
		rc = cp->preserve ? preserve(cp, temp.text, st) :
				    fs_chmod(cp->to_t.m, temp.text, mode);
		if (!rc)
			rc = fs_rename(cp->to_t.m, temp.text, cp->to.text);
	}
	if (rc) {
		rc = complain(cp, side, rc);
		fs_unlink(cp->to_t.m, temp.text); /* the failure is told already */
	}
	return rc;
}

static int copy_link(struct cp *cp)
{
	char target[TOOL_PATH_MAX + 1];
	struct tool_path temp;
	int rc;

	rc = fs_readlink(cp->from_t.m, cp->from.text, target, sizeof(target));
	if (rc)
		return complain(cp, COPY_FROM, rc);
	rc = fs_symlink(cp->to_t.m, target, cp->to.text);
	if (rc == -EEXIST) {
		rc = temp_path(cp, &temp);
		if (!rc)
			rc = fs_symlink(cp->to_t.m, target, temp.text);
		if (!rc) {
			rc = fs_rename(cp->to_t.m, temp.text, cp->to.text);
			if (rc)
				fs_unlink(cp->to_t.m, temp.text); /* rc tells */
		}
	}
	return rc ? complain(cp, COPY_TO, rc) : TOOL_OK;
}

static int copy_special(struct cp *cp, const struct stat *st)
{
	int rc = fs_mknod(cp->to_t.m, cp->to.text, (st->st_mode & S_IFMT) | new_mode(cp, st),
			  st->st_rdev);

	if (!rc && cp->preserve)
		rc = preserve(cp, cp->to.text, st);
	return rc ? complain(cp, COPY_TO, rc) : TOOL_OK;
}

static int copy_any(struct cp *cp, const struct stat *st);

static int copy_children(struct cp *cp)
{
	size_t from_len = cp->from.len, to_len = cp->to.len;
	struct tool_entries e;
	int rc, worst = TOOL_OK;

	rc = fs_list(cp->from_t.m, cp->from.text, &e);
	if (rc)
		return complain(cp, COPY_FROM, rc);
	for (size_t i = 0; i < e.count && !tool_interrupted(); i++) {
		rc = tool_path_push(&cp->from, e.v[i].name);
		if (!rc)
			rc = tool_path_push(&cp->to, e.v[i].name);
		rc = rc ? complain(cp, COPY_FROM, rc) : copy_any(cp, &e.v[i].st);
		worst = MAX(worst, rc);
		tool_path_cut(&cp->from, from_len);
		tool_path_cut(&cp->to, to_len);
	}
	tool_entries_fini(&e);
	return tool_interrupted() ? TOOL_FAILED : worst;
}

static int copy_dir(struct cp *cp, const struct stat *st)
{
	mode_t mode = new_mode(cp, st);
	struct stat old;
	bool made;
	int rc, worst;

	if (!cp->recursive) {
		progress_hide(&cp->progress);
		log_err("%s: is a directory: -r is wanted", cp->from.text);
		return TOOL_FAILED;
	}
	/* we must get into it, whatever its mode will be */
	rc = fs_mkdir(cp->to_t.m, cp->to.text, (mode & 0777) | 0700);
	made = !rc;
	if (rc == -EEXIST) {
		rc = fs_stat(cp->to_t.m, cp->to.text, &old);
		if (!rc && !S_ISDIR(old.st_mode))
			rc = -ENOTDIR;
	}
	if (rc)
		return complain(cp, COPY_TO, rc);
	worst = copy_children(cp);
	if (cp->preserve)
		rc = preserve(cp, cp->to.text, st);
	else if (made && (mode & 0700) != 0700)
		rc = fs_chmod(cp->to_t.m, cp->to.text, mode);
	return rc ? complain(cp, COPY_TO, rc) : worst;
}

static int copy_any(struct cp *cp, const struct stat *st)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFDIR:
		return copy_dir(cp, st);
	case S_IFREG:
		return copy_file(cp, st);
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

static int copy_source(struct cp *cp, bool into_dir)
{
	char name[256];
	struct stat st;
	int rc;

	rc = tool_path_init(&cp->from, cp->from_t.m ? cp->from_t.path : cp->from_t.arg);
	if (!rc)
		rc = tool_path_init(&cp->to, cp->to_t.m ? cp->to_t.path : cp->to_t.arg);
	if (!rc && into_dir && source_name(cp, name, sizeof(name))[0])
		rc = tool_path_push(&cp->to, name);
	if (!rc)
		rc = cp->recursive ? fs_lstat(cp->from_t.m, cp->from.text, &st) :
				     fs_stat(cp->from_t.m, cp->from.text, &st);
	if (rc)
		return complain(cp, COPY_FROM, rc);
	if (S_ISDIR(st.st_mode) && is_inside(cp)) {
		log_err("%s: cannot be copied into itself, %s", cp->from.text, cp->to.text);
		return TOOL_FAILED;
	}
	rc = copier_create(cp->from_t.m, cp->to_t.m, &cp->progress, &cp->copier);
	if (rc)
		return complain(cp, COPY_FROM, rc);
	rc = copy_any(cp, &st);
	copier_destroy(cp->copier);
	cp->copier = NULL;
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
	bool into_dir = false;
	int rc, worst = TOOL_OK;
	struct stat st;

	if (attach_or_local(to, &cp->to_t))
		return TOOL_FAILED;
	rc = fs_stat(cp->to_t.m, cp->to_t.m ? cp->to_t.path : to, &st);
	if (!rc)
		into_dir = S_ISDIR(st.st_mode);
	if (count > 1 && !into_dir) {
		log_err("%s: not a directory, where several files could go", to);
		tool_detach(&cp->to_t);
		return TOOL_FAILED;
	}
	progress_init(&cp->progress);
	for (int i = 0; i < count && !tool_interrupted(); i++) {
		rc = attach_or_local(sources[i], &cp->from_t) ? TOOL_FAILED :
								copy_source(cp, into_dir);
		worst = MAX(worst, rc);
		tool_detach(&cp->from_t);
	}
	progress_end(&cp->progress);
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
