/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tool.h - what the commands of `leat` share: their table, URLs, messages, numbers
 *
 * Threads:  One, but for bench.c and cp.c, which say their own.
 * Errors:   A command's function returns its exit status. What failed has been told by then, once,
 *           as one line on stderr that names what and why.
 */
#ifndef LEAT_TOOL_H
#define LEAT_TOOL_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/util.h"
#include "leat.h"

#define TOOL_PATH_MAX 4096

enum tool_exit { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

struct tool_cmd {
	const char *name;
	const char *args;   /* as in the page: "[-lR] URL..." */
	const char *what;   /* one line of help */
	int (*run)(const struct tool_cmd *self, int argc, char **argv); /* argv[0] is "leat NAME" */
};

/* leat_main.c's table, in the order of `leat help` */
extern const struct tool_cmd cmd_ping, cmd_ls, cmd_stat, cmd_cat, cmd_cp, cmd_put, cmd_get, cmd_mkdir,
	cmd_rm, cmd_mv, cmd_ln, cmd_df, cmd_bench, cmd_dump, cmd_doctor,
	cmd_ctl, cmd_trace;

/** tool_usage - tell how @c is used; Return: TOOL_USAGE */
int tool_usage(const struct tool_cmd *c);

/** tool_is_url - does @arg name a server, rather than a file of this machine? */
bool tool_is_url(const char *arg);

/** tool_ends_in_slash - has the user written a slash behind the name? Then it must be a directory's */
bool tool_ends_in_slash(const char *arg);

/* A mounted URL and what it names there. */
struct tool_target {
	const char *arg;           /* as the user wrote it */
	struct leat *m;
	char at[512];              /* server and export */
	char path[TOOL_PATH_MAX + 2]; /* from the root of the export, starts with '/'; ends in one as @arg does */
};

/** tool_mount - leat_mount(), which says on a terminal when the server is away, and when it is back
 * @opts: may be NULL; away and away_ctx are filled in
 */
must_check int tool_mount(const char *url, const struct leat_opts *opts, struct leat **ret);

#define TOOL_PATIENCE_MS 10000u

/** tool_impatient - options of a mount that gives up after TOOL_PATIENCE_MS without an answer, unless the
 * URL says otherwise: for commands that ask whether a server answers
 */
extern const struct leat_opts tool_impatient;

/** tool_attach_with - tool_attach(), with options; @opts may be NULL */
must_check int tool_attach_with(const char *url, const struct leat_opts *opts, struct tool_target *ret);

/** tool_attach - mount @url; Return: 0, or -errno, told */
must_check int tool_attach(const char *url, struct tool_target *ret);

/** tool_detach - undo tool_attach(); harmless on a zeroed target */
void tool_detach(struct tool_target *t);

/** tool_same_export - may one operation name both? If not, it has been told. */
bool tool_same_export(const struct tool_target *a, const struct tool_target *b);

/** tool_same_server - do @a and @b name files of one server (or both of this machine), so that equal
 * device and inode numbers mean one file? false also when that is not known.
 */
bool tool_same_server(const struct tool_target *a, const struct tool_target *b);

#define TOOL_TEMP_NAME_BYTES 23 /* ".leat-", 16 hexadecimal digits, NUL */
#define TOOL_TEMP_NAME_FMT ".leat-%016" PRIx64

/** tool_temp_name - write a name for a temporary file; Return: 0, or -EIO: no random numbers */
must_check int tool_temp_name(char ret[TOOL_TEMP_NAME_BYTES]);

/** tool_is_temp_name - could tool_temp_name() have made it? */
bool tool_is_temp_name(const char *name);

#define TOOL_PLACE_BYTES 1200

/** tool_place - print what messages call a file: server and export as the user wrote them, and its path
 * @m: where it is, or NULL for this machine
 * @path: from the root of the export of @m, with a slash; else it is printed as it is: a file of this
 * machine, or a URL, but for its options
 *
 * Return: @buf. Of a long path it has the end.
 */
char *tool_place(struct leat *m, const char *path, char buf[TOOL_PLACE_BYTES]);

/** tool_explain - find what an error @text of the library says behind its place
 * @place: what it may begin with; "" if not known
 *
 * The place in @text may be another name of what the command is about, such as a temporary one.
 * Return: "OPERATION: @reason (CAUSE)"; or @reason, if @text is about another failure.
 */
const char *tool_explain(const char *text, const char *place, const char *reason);

/** tool_errno - note that @operation on a file of this machine failed with errno, for tool_fail()
 *
 * Return: -errno.
 */
int tool_errno(const char *operation);

/** tool_fail - log that something about a file went wrong: its place, the operation, the reason
 * @m, @name: as tool_place()
 * @err: -errno
 *
 * Return: TOOL_FAILED
 */
int tool_fail(struct leat *m, const char *name, int err);

/** tool_each - run @fn on each URL of @argv, attached; Return: the worst exit status */
int tool_each(int argc, char **argv, int (*fn)(struct tool_target *t, void *ctx), void *ctx);
/** tool_each_with - the same, mounted with @opts, or NULL */
int tool_each_with(const struct leat_opts *opts, int argc, char **argv,
		   int (*fn)(struct tool_target *t, void *ctx), void *ctx);

/* Directory entries, copied: name first, sorted by it; without "." and "..". */
struct tool_entry {
	char *name;
	struct stat st; /* of the entry itself, links not followed */
};

struct tool_entries {
	struct tool_entry *v;
	size_t count;
};

/** tool_list - all of a directory; Return: 0, with tool_entries_fini() to come; or -errno, not told */
must_check int tool_list(struct leat *m, const char *path, struct tool_entries *ret);
void tool_entries_fini(struct tool_entries *e);

/* A path that grows and shrinks at its end, so that walking a deep tree needs one buffer. */
struct tool_path {
	char text[TOOL_PATH_MAX];
	size_t len;
};

/** tool_path_init - Return: 0 or -ENAMETOOLONG, as all below that add */
must_check int tool_path_init(struct tool_path *p, const char *text);
must_check int tool_path_push(struct tool_path *p, const char *name);
/** tool_path_cut - back to a length it had */
void tool_path_cut(struct tool_path *p, size_t len);

/** tool_base_name - the last component of @path, without slashes behind it, in @buf; "" for a root */
const char *tool_base_name(const char *path, char *buf, size_t cap);

/** tool_put_name - write a name to stdout: as it is, but on a terminal without control characters */
void tool_put_name(const char *name);

/** tool_parse_size - "4096", "64K", "1M", "2G", "1T" (powers of 1024) */
must_check bool tool_parse_size(const char *text, uint64_t *ret);

/** tool_parse_count - a number from @min to @max */
must_check bool tool_parse_count(const char *text, unsigned min, unsigned max, unsigned *ret);

/** tool_parse_seconds - "2", "0.25": from 0.001 to 86400 of them, as milliseconds */
must_check bool tool_parse_seconds(const char *text, uint64_t *ret_ms);

/** tool_print_size - 1536 as "1.5K"; Return: @buf */
char *tool_print_size(uint64_t bytes, char buf[16]);

/** tool_interrupted - has a signal come that ends the command? Only one that is held sees it: signals.h */
bool tool_interrupted(void);

/** tool_sleep - for so long, or until ^C */
void tool_sleep(uint64_t ms);

/** tool_ask - ask a leatd for something, which needs no export: connect, mount nothing, run @fn
 * @fn: returns 0, or -errno, not told
 *
 * Return: exit status.
 */
int tool_ask(const char *url, int (*fn)(struct leat *m, void *ctx), void *ctx);

#endif
