/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leftovers.c - leat rm --leftovers: removes temporary files of killed copies and hidden names of crashed programs
 *
 * Operation:  A leftover is a file or link with a name as made by tool_temp_name(), owned by this user,
 *             and not changed for a day: a running copy keeps writing to its file. Other files stay, and
 *             so do those that this user may not remove.
 *             A file with a hidden name of libleat (leat(7)) may be open somewhere; its mount touches it every few
 *             hours. On a server, the server's clock decides: the access time is set if the file has not changed
 *             since the listing, and the new ctime is the server's time.
 * Memory:     The entries of the directories on the current path; one path.
 * Threads:    One.
 * Errors:     Logged, and the rest is processed; status 1.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "fs.h"
#include "leftovers.h"

#define DAY_S (24 * 60 * 60)

struct sweep {
	struct tool_path path; /* path of the directory, as messages print it */
	bool recursive;
	uid_t uid;
	time_t now;
};

/* The ctime counts too: a copy with -p sets an old mtime, and may still run. */
static time_t last_change(const struct stat *st)
{
	return MAX(st->st_mtim.tv_sec, st->st_ctim.tv_sec);
}

static bool is_hidden_name(const char *name)
{
	return text_is_hex_name(name, ".leat-removed-");
}

static bool is_leftover(const struct tool_entry *e)
{
	return !S_ISDIR(e->st.st_mode) &&
	       (tool_is_temp_name(e->name) || ((e->err || S_ISREG(e->st.st_mode)) && is_hidden_name(e->name)));
}

/* Sets the access time of a file that is as it was listed. */
static int touch(struct fs_base in, const struct tool_entry *e, struct stat *ret)
{
	struct leat_setattr set = {
		.size = sizeof(set),
		.mask = LEAT_SET_ATIME | LEAT_SET_GUARD,
		.atime.tv_nsec = UTIME_NOW,
		.guard_ctime = e->st.st_ctim,
	};
	struct leat_node *dir;
	int rc = leat_node_get(fs_mount(in), ".", &dir);

	if (rc)
		return rc;
	rc = leat_node_setattr(dir, e->name, &set, ret);
	leat_node_put(dir);
	return rc;
}

/* Why may a program still have the file of a hidden name open? NULL: none does. */
static const char *why_in_use(struct fs_base in, const struct tool_entry *e)
{
	struct stat now;
	int rc = touch(in, e, &now);

	if (rc)
		return rc == -EBUSY ? "changed just now" : "its age by the clock of the server is unknown";
	return now.st_ctim.tv_sec - e->st.st_ctim.tv_sec <= DAY_S ? "changed less than a day ago" : NULL;
}

static int remove_leftover(const struct sweep *s, struct fs_base in, const struct tool_entry *e)
{
	const char *why = NULL;
	int rc;

	if (e->st.st_uid != s->uid)
		why = "of another user";
	else if (s->now - last_change(&e->st) < DAY_S)
		why = "changed less than a day ago";
	else if (in.m && is_hidden_name(e->name))
		why = why_in_use(in, e);
	if (!why) {
		rc = fs_unlink(in, e->name);
		if (rc && rc != -ENOENT)
			return tool_fail(in.m, s->path.text, rc);
	}
	fputs(why ? "kept    " : "removed ", stdout);
	tool_put_name(s->path.text);
	if (why)
		printf(" (%s)", why);
	putchar('\n');
	return TOOL_OK;
}

static int sweep_dir(struct sweep *s, struct fs_base in);

/* @e: an entry of the directory @in; its path is that of @s */
static int sweep_entry(struct sweep *s, struct fs_base in, const struct tool_entry *e)
{
	struct fs_base below;
	int rc;

	if (e->err)
		return tool_fail(in.m, s->path.text, e->err);
	if (!S_ISDIR(e->st.st_mode))
		return remove_leftover(s, in, e);
	rc = fs_enter(in, e->name, &below);
	if (rc)
		return tool_fail(in.m, s->path.text, rc);
	rc = sweep_dir(s, below);
	fs_leave(&below);
	return rc;
}

/* An entry whose type is not known may be a directory. */
static bool is_to_visit(const struct sweep *s, const struct tool_entry *e)
{
	return is_leftover(e) || (s->recursive && (e->err || S_ISDIR(e->st.st_mode)));
}

static int sweep_dir(struct sweep *s, struct fs_base in)
{
	size_t len = s->path.len;
	struct tool_entries e;
	int rc, worst = TOOL_OK;

	rc = fs_list(in, &e);
	if (rc)
		return tool_fail(in.m, s->path.text, rc);
	for (size_t i = 0; i < e.count && !tool_interrupted(); i++) {
		if (!is_to_visit(s, &e.v[i]))
			continue;
		rc = tool_path_push(&s->path, e.v[i].name);
		rc = rc ? tool_fail(in.m, s->path.text, rc) : sweep_entry(s, in, &e.v[i]);
		worst = MAX(worst, rc);
		tool_path_cut(&s->path, len);
	}
	tool_entries_fini(&e);
	return worst;
}

int leftovers_remove(const char *arg, bool recursive)
{
	struct sweep s = { .recursive = recursive, .uid = geteuid(), .now = time(NULL) };
	struct tool_target t = { .arg = arg };
	struct leat_info info = { .size = sizeof(info) };
	struct fs_base in;
	int rc;

	if (tool_is_url(arg)) {
		if (tool_attach(arg, &t))
			return TOOL_FAILED;
		leat_info(t.m, &info);
		s.uid = info.uid;
	}
	rc = tool_path_init(&s.path, t.m ? t.path : arg);
	if (!rc)
		rc = fs_enter(fs_base(t.m), s.path.text, &in);
	if (rc) {
		rc = tool_fail(t.m, t.m ? t.path : arg, rc);
	} else {
		rc = sweep_dir(&s, in);
		fs_leave(&in);
	}
	tool_detach(&t);
	return rc;
}
