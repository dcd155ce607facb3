/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ls.c - leat ls, stat, df: read-only commands
 *
 * Operation:  ls lists as ls(1) does: sorted by name, -l with attributes, -R recursive, -a with names that
 *             begin with a dot. A directory with too many entries is listed in the server's order. stat
 *             and df print one fact per line.
 * Memory:     At most SORTED_MAX entries of a directory and, with -R, its ancestors together: a directory that does
 *             not fit is not sorted. Names of users and groups are static.
 * Threads:    One.
 * Errors:     A failure is reported and the rest is listed; status 1.
 */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "tool.h"
#include "where.h"

#define SORTED_MAX 65536u /* entries of a directory that is sorted */

struct ls {
	bool is_long, recursive, all, headings, printed;
	size_t held; /* entries of the directories that contain the current one */
};

static char type_letter(mode_t mode)
{
	static const struct {
		mode_t type;
		char letter;
	} types[] = {
		{ S_IFDIR, 'd' }, { S_IFLNK, 'l' }, { S_IFBLK, 'b' }, { S_IFCHR, 'c' }, { S_IFIFO, 'p' }, { S_IFSOCK, 's' },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if ((mode & S_IFMT) == types[i].type)
			return types[i].letter;
	}
	return '-';
}

/* Formats one of the three groups of "rwx"; @special is 's' or 't' if that bit is set, else 0. */
static void put_rwx(char *to, mode_t bits, char special)
{
	to[0] = bits & 4 ? 'r' : '-';
	to[1] = bits & 2 ? 'w' : '-';
	to[2] = bits & 1 ? 'x' : '-';
	if (special)
		to[2] = bits & 1 ? special : (char)(special - 'a' + 'A');
}

static void print_mode(mode_t mode, char buf[11])
{
	buf[0] = type_letter(mode);
	put_rwx(buf + 1, mode >> 6 & 7, mode & S_ISUID ? 's' : 0);
	put_rwx(buf + 4, mode >> 3 & 7, mode & S_ISGID ? 's' : 0);
	put_rwx(buf + 7, mode & 7, mode & S_ISVTX ? 't' : 0);
	buf[10] = '\0';
}

/* Cache of user or group names: a directory has few, and each lookup reads files. */
#define IDS 64u

struct id_name {
	bool known;
	uint32_t id;
	char text[32];
};

/* @name: of @id; NULL: it has none. Return: valid until the next call with this cache */
static const char *keep_name(struct id_name *e, uint32_t id, const char *name)
{
	if (name)
		snprintf(e->text, sizeof(e->text), "%s", name);
	else
		snprintf(e->text, sizeof(e->text), "%u", id);
	e->id = id;
	e->known = true;
	return e->text;
}

static const char *user_name(uid_t uid)
{
	static struct id_name cache[IDS];
	struct id_name *e = &cache[uid % IDS];
	const struct passwd *pw;

	if (e->known && e->id == uid)
		return e->text;
	pw = getpwuid(uid);
	return keep_name(e, uid, pw ? pw->pw_name : NULL);
}

static const char *group_name(gid_t gid)
{
	static struct id_name cache[IDS];
	struct id_name *e = &cache[gid % IDS];
	const struct group *gr;

	if (e->known && e->id == gid)
		return e->text;
	gr = getgrgid(gid);
	return keep_name(e, gid, gr ? gr->gr_name : NULL);
}

static void print_time(const struct timespec *ts, char *buf, size_t cap)
{
	struct tm tm;

	if (!localtime_r(&ts->tv_sec, &tm) || !strftime(buf, cap, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(buf, cap, "%lld", (long long)ts->tv_sec);
}

static void put_target(struct leat *m, const char *path)
{
	char target[TOOL_PATH_MAX + 1];
	ssize_t n = leat_readlink(m, path, target, sizeof(target) - 1);

	fputs(" -> ", stdout);
	if (n < 0) {
		fputs("?", stdout);
		return;
	}
	target[n] = '\0';
	tool_put_name(target);
}

/* @path: of the entry itself, to read the target of a link */
static void print_entry(const struct ls *ls, struct leat *m, const char *path, const char *name,
			const struct stat *st)
{
	char mode[11], when[32], size[32];

	if (ls->is_long) {
		print_mode(st->st_mode, mode);
		print_time(&st->st_mtim, when, sizeof(when));
		if (S_ISBLK(st->st_mode) || S_ISCHR(st->st_mode))
			snprintf(size, sizeof(size), "%u, %u", major(st->st_rdev), minor(st->st_rdev));
		else
			snprintf(size, sizeof(size), "%lld", (long long)st->st_size);
		printf("%s %3ju %-8s %-8s %12s %.16s ", mode, (uintmax_t)st->st_nlink,
		       user_name(st->st_uid), group_name(st->st_gid), size, when);
	}
	tool_put_name(name);
	if (ls->is_long && S_ISLNK(st->st_mode))
		put_target(m, path);
	putchar('\n');
}

static int list_dir(struct ls *ls, struct leat *m, struct tool_path *p);

/* Prints an entry of the directory @p. */
static int print_child(struct ls *ls, struct leat *m, struct tool_path *p, const struct tool_entry *e)
{
	size_t len = p->len;
	int rc;

	if (e->name[0] == '.' && !ls->all)
		return TOOL_OK;
	rc = tool_path_push(p, e->name);
	if (rc)
		return tool_fail(m, p->text, rc);
	if (e->err)
		rc = tool_fail(m, p->text, e->err);
	if (!e->err || !ls->is_long)
		print_entry(ls, m, p->text, e->name, &e->st);
	tool_path_cut(p, len);
	return rc;
}

/* Lists the directory @e, an entry of the directory @p. */
static int list_child(struct ls *ls, struct leat *m, struct tool_path *p, const struct tool_entry *e)
{
	size_t len = p->len;
	int rc;

	if (!S_ISDIR(e->st.st_mode) || (e->name[0] == '.' && !ls->all))
		return TOOL_OK;
	rc = tool_path_push(p, e->name);
	if (rc)
		return tool_fail(m, p->text, rc);
	rc = list_dir(ls, m, p);
	tool_path_cut(p, len);
	return rc;
}

typedef int (*child_fn)(struct ls *ls, struct leat *m, struct tool_path *p, const struct tool_entry *e);

static int each_copied(struct ls *ls, struct leat *m, struct tool_path *p, const struct tool_entries *e, child_fn fn)
{
	int worst = TOOL_OK;

	for (size_t i = 0; i < e->count && !tool_interrupted(); i++) {
		int rc = fn(ls, m, p, &e->v[i]);

		worst = MAX(worst, rc);
	}
	return worst;
}

/* The entries that follow in the server's order. */
static int each_read(struct ls *ls, struct leat *m, struct tool_path *p, struct tool_dir *d, child_fn fn)
{
	const struct tool_entry *e;
	int rc, worst = TOOL_OK;

	while (!tool_interrupted()) {
		rc = tool_dir_next(d, &e);
		if (rc < 0)
			worst = MAX(worst, tool_fail(m, p->text, rc));
		if (rc <= 0)
			break;
		rc = fn(ls, m, p, e);
		worst = MAX(worst, rc);
	}
	return worst;
}

/* Lists the directories in a directory that is too large to copy: reads it again. */
static int list_below(struct ls *ls, struct leat *m, struct tool_path *p)
{
	struct tool_dir *d;
	int rc = tool_dir_open(m, p->text, &d);

	if (rc)
		return tool_fail(m, p->text, rc);
	rc = each_read(ls, m, p, d, list_child);
	tool_dir_close(d);
	return rc;
}

static void print_heading(struct ls *ls, const char *path)
{
	if (ls->headings) {
		if (ls->printed)
			putchar('\n');
		tool_put_name(path);
		fputs(":\n", stdout);
	}
	ls->printed = true;
}

/* @e: the first entries of @d; @more: others follow */
static int list_entries(struct ls *ls, struct leat *m, struct tool_path *p, struct tool_dir *d,
			const struct tool_entries *e, bool more)
{
	int worst, rc;

	print_heading(ls, p->text);
	worst = each_copied(ls, m, p, e, print_child);
	rc = more ? each_read(ls, m, p, d, print_child) : TOOL_OK;
	return MAX(worst, rc);
}

/* Lists the directories in the directory @p, whose entries are @e. */
static int list_copied(struct ls *ls, struct leat *m, struct tool_path *p, const struct tool_entries *e)
{
	int rc;

	ls->held += e->count;
	rc = each_copied(ls, m, p, e, list_child);
	ls->held -= e->count;
	return rc;
}

static int list_dir(struct ls *ls, struct leat *m, struct tool_path *p)
{
	struct tool_entries e;
	struct tool_dir *d;
	int rc, more, worst = TOOL_OK;

	rc = tool_dir_open(m, p->text, &d);
	if (rc)
		return tool_fail(m, p->text, rc);
	more = tool_dir_list(d, SORTED_MAX - MIN(ls->held, SORTED_MAX), &e);
	if (more < 0)
		worst = tool_fail(m, p->text, more);
	else
		worst = list_entries(ls, m, p, d, &e, more);
	tool_dir_close(d);
	if (more > 0)
		tool_entries_fini(&e);
	if (ls->recursive && more >= 0) {
		rc = more ? list_below(ls, m, p) : list_copied(ls, m, p, &e);
		worst = MAX(worst, rc);
	}
	tool_entries_fini(&e);
	return worst;
}

static int ls_one(struct tool_target *t, void *ctx)
{
	struct ls *ls = ctx;
	struct tool_path p;
	struct stat st;
	int rc;

	/* a link to a directory is listed as its target, but with -l as the link itself */
	rc = leat_lstat(t->m, t->path, &st);
	if (!rc && S_ISLNK(st.st_mode) && !ls->is_long) {
		struct stat target;

		if (!leat_stat(t->m, t->path, &target))
			st = target;
	}
	if (!rc)
		rc = tool_path_init(&p, t->path);
	if (rc)
		return tool_fail(t->m, t->path, rc);
	if (S_ISDIR(st.st_mode))
		return list_dir(ls, t->m, &p);
	print_entry(ls, t->m, t->path, t->path, &st);
	ls->printed = true;
	return TOOL_OK;
}

static int ls_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct ls ls = { 0 };

	if (tool_options(self, argc, argv, &ls) < 0 || optind == argc)
		return tool_usage(self);
	ls.headings = ls.recursive || argc - optind > 1;
	return tool_each(argc - optind, argv + optind, ls_one, &ls);
}

static void print_timestamp(const char *what, const struct timespec *ts)
{
	char when[32], zone[8] = "";
	struct tm tm;

	print_time(ts, when, sizeof(when));
	if (localtime_r(&ts->tv_sec, &tm))
		(void)strftime(zone, sizeof(zone), " %z", &tm);
	printf("%-9s %s.%09ld%s\n", what, when, ts->tv_nsec, zone);
}

static int stat_one(struct tool_target *t, void *ctx)
{
	char mode[11];
	struct stat st;
	int rc;

	(void)ctx;
	rc = leat_lstat(t->m, t->path, &st);
	if (rc)
		return tool_fail(t->m, t->path, rc);
	print_mode(st.st_mode, mode);
	printf("%-9s ", "path");
	tool_put_name(t->path);
	if (S_ISLNK(st.st_mode))
		put_target(t->m, t->path);
	printf("\n%-9s %s\n", "export", t->at);
	printf("%-9s %lld\n", "size", (long long)st.st_size);
	printf("%-9s %lld\n", "used", (long long)st.st_blocks * 512);
	printf("%-9s %s %04o\n", "mode", mode, st.st_mode & 07777u);
	printf("%-9s %u %s\n", "owner", st.st_uid, user_name(st.st_uid));
	printf("%-9s %u %s\n", "group", st.st_gid, group_name(st.st_gid));
	printf("%-9s %ju\n", "links", (uintmax_t)st.st_nlink);
	printf("%-9s %ju\n", "fileid", (uintmax_t)st.st_ino);
	if (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode))
		printf("%-9s %u,%u\n", "device", major(st.st_rdev), minor(st.st_rdev));
	print_timestamp("accessed", &st.st_atim);
	print_timestamp("modified", &st.st_mtim);
	print_timestamp("changed", &st.st_ctim);
	return TOOL_OK;
}

static int stat_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct where_options o = { 0 };
	int given = tool_options(self, argc, argv, &o);

	if (given < 0 || optind == argc || (given && !o.where) || (o.where && argc - optind != 1))
		return tool_usage(self);
	if (o.where)
		return where_run(argv[optind], &o);
	return tool_each(argc - optind, argv + optind, stat_one, NULL);
}

static int df_one(struct tool_target *t, void *ctx)
{
	char size[16], used[16], avail[16];
	struct statvfs v;
	uint64_t total, unused, left;
	int rc;

	(void)ctx;
	rc = leat_statvfs(t->m, t->path, &v);
	if (rc)
		return tool_fail(t->m, t->path, rc);
	total = (uint64_t)v.f_blocks * v.f_frsize;
	unused = (uint64_t)v.f_bfree * v.f_frsize;
	left = (uint64_t)v.f_bavail * v.f_frsize;
	unused = MIN(unused, total);
	printf("%8s %8s %8s %3u%%  %s\n", tool_print_size(total, size), tool_print_size(total - unused, used),
	       tool_print_size(left, avail), tool_use_percent(total - unused, left), t->at);
	return TOOL_OK;
}

static int df_run(const struct tool_cmd *self, int argc, char **argv)
{
	if (tool_options(self, argc, argv, NULL) < 0 || optind == argc)
		return tool_usage(self);
	printf("%8s %8s %8s %4s  %s\n", "size", "used", "avail", "use", "export");
	return tool_each(argc - optind, argv + optind, df_one, NULL);
}

static const struct opt ls_opts[] = {
	TOOL_FLAG('a', NULL, struct ls, all, "also names that begin with a dot"),
	TOOL_FLAG('l', NULL, struct ls, is_long, "one line of attributes each"),
	TOOL_FLAG('R', NULL, struct ls, recursive, "also all directories below"),
};

#define AT(member) OPT_AT(struct where_options, member)

static const struct opt stat_opts[] = {
	TOOL_FLAG(0, "latency", struct where_options, where, "where the time of a leatd's requests goes"),
	TOOL_FLAG(0, "where", struct where_options, where, NULL), /* its name before */
	{ "interval", "TIME", "1s", "covered by the output", NULL, OPT_TIME, 0, AT(interval_ms), .min = 1,
	  .max = 86400000, .unit = NS_PER_MS, .bare = NS_PER_S },
	{ "count", "N", "1", "number of intervals", NULL, OPT_NUMBER, 0, AT(count), .min = 1, .max = 1000000000 },
	TOOL_FLAG(0, "json", struct where_options, json, "one line for each interval"),
};

const struct tool_cmd cmd_ls = { "ls", "[-alR] URL...", "list directories", ls_run, ls_opts, ARRAY_SIZE(ls_opts),
				 .mixed = false };
const struct tool_cmd cmd_stat = {
	"stat",
	"URL... | --latency URL [--interval TIME] [--count N] [--json]",
	"attributes of a file or link; where the time of a leatd's requests goes",
	stat_run,
	stat_opts,
	ARRAY_SIZE(stat_opts),
	.mixed = true,
};
const struct tool_cmd cmd_df = { "df", "URL...", "space on an export", .run = df_run };
