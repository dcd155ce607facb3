/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tool.h - shared functions of the `leat` commands: table, URLs, messages, numbers
 *
 * Threads:    One, except where bench.c and cp.c say otherwise.
 * Errors:     A command's function returns its exit status. By then each failure was reported once, as one
 *             line on stderr that names object and reason.
 */
#ifndef LEAT_TOOL_H
#define LEAT_TOOL_H

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/util.h"
#include "leat.h"

#define TOOL_PATH_MAX 4096

enum tool_exit { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

struct tool_cmd {
	const char *name;
	const char *args;   /* as in the man page: "[-lR] URL..." */
	const char *what;   /* one line of help */
	int (*run)(const struct tool_cmd *self, int argc, char **argv); /* argv[0] is NAME */
	const struct opt *opts; /* of @run's structure for tool_options() */
	size_t nopts;
	bool mixed;             /* options may follow operands */
	const struct tool_cmd *also; /* described with it: "NAME VERB", which tool_verb() finds */
};

/* A row of a table of options: a flag without a value */
#define TOOL_FLAG(letter_, name_, type_, member_, help_)                                                     \
	{                                                                                                    \
		.name = name_, .help = help_, .type = OPT_FLAG, .letter = letter_, OPT_AT(type_, member_),   \
		.max = true,                                                                                 \
	}

/* leat_main.c's table, in the order of `leat help` */
extern const struct tool_cmd cmd_ping, cmd_ls, cmd_stat, cmd_cat, cmd_cp, cmd_put, cmd_get, cmd_mkdir,
	cmd_rm, cmd_mv, cmd_ln, cmd_df, cmd_bench, cmd_dump, cmd_doctor,
	cmd_ctl, cmd_trace, cmd_block, cmd_volume;

/** tool_usage - prints the usage of @c; Return: TOOL_USAGE */
int tool_usage(const struct tool_cmd *c);

/** tool_verb - finds the command "NAME @verb" that belongs to @c; Return: NULL: there is no such verb */
const struct tool_cmd *tool_verb(const struct tool_cmd *c, const char *verb);

/** tool_options - sets the defaults in @to and parses the options of the command line
 * Then optind is the index of the first operand.
 *
 * Return: number of options; -EINVAL after a message.
 */
must_check int tool_options(const struct tool_cmd *c, int argc, char **argv, void *to);

/** tool_is_url - is @arg a URL rather than a local file? */
bool tool_is_url(const char *arg);

/** tool_check_url - logs an @arg that is not a URL; Return: 0 or -EINVAL */
must_check int tool_check_url(const char *arg);

/** tool_ends_in_slash - does the name end in a slash? Then it must be a directory */
bool tool_ends_in_slash(const char *arg);

/* A mounted URL and the object it names. */
struct tool_target {
	const char *arg;           /* as the user typed it */
	struct leat *m;
	char at[512];              /* server and export */
	char path[TOOL_PATH_MAX + 2]; /* from the root of the export, starts with '/'; ends with one if @arg does */
};

/** tool_mount - leat_mount() that reports on a terminal when the server is away and when it is back; a signal
 * interrupts the synchronous calls of a held command on the mount (signals.h). tool_umount() undoes it.
 * @opts: "NAME=VALUE&NAME=VALUE" for leat_set(); the URL takes precedence. NULL: none
 */
must_check int tool_mount(const char *url, const char *opts, struct leat **ret);

/** tool_opts_create - the options of tool_mount(); Return: 0 or -errno; the caller destroys them in both cases
 * @url: an argument of the command, for messages about the server
 */
must_check int tool_opts_create(const char *url, const char *opts, struct leat_opts **ret);

#define TOOL_UMOUNT_MS 500 /* of an interrupted command */

/** tool_umount - leat_umount(); does not wait for the server in an interrupted command. NULL is fine. */
void tool_umount(struct leat *m);

/* Options of a mount that gives up early without a reply, unless the URL says otherwise: for commands that test
 * whether a server responds */
#define TOOL_IMPATIENT "timeo=10s&retry=soft"

/** tool_attach_with - tool_attach(), with options as tool_mount() */
must_check int tool_attach_with(const char *url, const char *opts, struct tool_target *ret);

/** tool_attach - mounts @url; Return: 0, or -errno after a message */
must_check int tool_attach(const char *url, struct tool_target *ret);

/** tool_detach - undoes tool_attach(); a zeroed target is fine */
void tool_detach(struct tool_target *t);

/** tool_same_export - can one operation name both? If not, a message was printed. */
bool tool_same_export(const struct tool_target *a, const struct tool_target *b);

/** tool_same_server - are @a and @b on one server (or both local), so that equal device and inode numbers mean one
 * file? Also false if unknown.
 */
bool tool_same_server(const struct tool_target *a, const struct tool_target *b);

#define TOOL_TEMP_NAME_BYTES 23 /* ".leat-", 16 hexadecimal digits, NUL */
#define TOOL_TEMP_PREFIX ".leat-"
#define TOOL_TEMP_NAME_FMT TOOL_TEMP_PREFIX "%016" PRIx64

/** tool_temp_name - creates a name for a temporary file; Return: 0, or -EIO: no random numbers */
must_check int tool_temp_name(char ret[TOOL_TEMP_NAME_BYTES]);

/** tool_is_temp_name - does @name have the form of tool_temp_name()? */
bool tool_is_temp_name(const char *name);

#define TOOL_PLACE_BYTES 1200

/** tool_place - formats a file for messages: server and export as the user typed them, and its path
 * @m: its mount, or NULL for a local file
 * @path: from the root of the export of @m, with a slash; otherwise it is printed as it is: a local file, or a URL
 * without its options
 *
 * Return: @buf. Of a long path it has the end.
 */
char *tool_place(struct leat *m, const char *path, char buf[TOOL_PLACE_BYTES]);

/** tool_explain - extracts the explanation after the place from an error @text of the library
 * @place: expected start of @text; "" if not known
 *
 * The place in @text may be another name of the command's object, such as a temporary one.
 * Return: "OPERATION: @reason (CAUSE)"; or @reason, if @text is about another failure.
 */
const char *tool_explain(const char *text, const char *place, const char *reason);

/** tool_errno - records for tool_fail() that @operation on a local file failed with errno
 *
 * Return: -errno.
 */
int tool_errno(const char *operation);

/** tool_fail - logs a failure on a file: its place, the operation, the reason
 * @m, @name: as tool_place()
 * @err: -errno
 *
 * Return: TOOL_FAILED
 */
int tool_fail(struct leat *m, const char *name, int err);

/** tool_each - runs @fn on each URL of @argv, attached; Return: the worst exit status */
int tool_each(int argc, char **argv, int (*fn)(struct tool_target *t, void *ctx), void *ctx);

/* Copied directory entries, without "." and "..". */
struct tool_entry {
	const char *name;
	int err;        /* why `st` is not known, -errno; 0: it is */
	struct stat st; /* of the entry itself, links not followed */
};

struct tool_entries {
	struct tool_entry *v;
	size_t count, room;
};

#define TOOL_ENTRIES_MAX (4u << 20) /* some 900 MB with short names */
#define TOOL_TOO_MANY (-E2BIG) /* error of tool_entries_add() and of listings: tool_fail() explains it */

/** tool_entries_add - appends a copy of @entry
 * All lists of the process together have up to TOOL_ENTRIES_MAX entries: a listing by a hostile server need not end.
 *
 * Return: 0; -ENOMEM, TOOL_TOO_MANY: with errno.
 */
must_check int tool_entries_add(struct tool_entries *e, const struct tool_entry *entry);

/* A directory that is read entry by entry, in the server's order; without "." and "..". */
struct tool_dir;

/** tool_dir_open - Return: 0 or -errno, no message, as the functions below */
must_check int tool_dir_open(struct leat *m, const char *path, struct tool_dir **ret);
/** tool_dir_next - returns the next entry
 * @ret: valid until the next call; links are not followed. A failure that concerns this entry only is in ret->err
 *
 * Return: 1: an entry; 0: end; -errno.
 */
must_check int tool_dir_next(struct tool_dir *d, const struct tool_entry **ret);
void tool_dir_close(struct tool_dir *d);

/** tool_dir_list - reads a directory of up to @max entries, sorted by name
 * If the server rejects a position, because the directory has changed, the listing begins again.
 *
 * Return: 0; 1: it has more entries. @ret has the first @max + 1 of them, in the server's order, and tool_dir_next()
 * returns the others; -errno. In all cases the caller calls tool_entries_fini().
 */
must_check int tool_dir_list(struct tool_dir *d, size_t max, struct tool_entries *ret);

/** tool_list - reads a whole directory, sorted by name; Return: 0, and the caller calls tool_entries_fini(); or -errno,
 * no message */
must_check int tool_list(struct leat *m, const char *path, struct tool_entries *ret);
void tool_entries_fini(struct tool_entries *e);

/* A path that grows and shrinks at its end, so that one buffer serves for a deep tree. */
struct tool_path {
	char text[TOOL_PATH_MAX];
	size_t len;
};

/** tool_path_init - Return: 0 or -ENAMETOOLONG, as all functions below that append */
must_check int tool_path_init(struct tool_path *p, const char *text);
must_check int tool_path_push(struct tool_path *p, const char *name);
/** tool_path_cut - shortens the path to an earlier length */
void tool_path_cut(struct tool_path *p, size_t len);

/** tool_base_name - the last component of @path, without trailing slashes, in @buf; "" for a root */
const char *tool_base_name(const char *path, char *buf, size_t cap);

/** tool_put_name - writes a name to stdout, on a terminal without control characters */
void tool_put_name(const char *name);

/** tool_print_size - 1536 as "1.5K"; Return: @buf */
char *tool_print_size(uint64_t bytes, char buf[16]);

/** tool_plural - the "s" behind a word, or "" */
static inline const char *tool_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/** tool_use_percent - of what users of a file system have or can have, rounded up, as df(1) does */
unsigned tool_use_percent(uint64_t used, uint64_t avail);

/** tool_us - nanoseconds as microseconds */
static inline double tool_us(uint64_t ns)
{
	return (double)ns / (double)NS_PER_US;
}

/** tool_ratio - @a per @b; 0 if @b is 0 */
static inline double tool_ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/** tool_interrupted - has a signal come that ends the command? Only a held command sees it: signals.h */
bool tool_interrupted(void);

/** tool_is_interruption - is @err that of a call on a server that a signal has ended? */
bool tool_is_interruption(int64_t err);

/** TOOL_AGAIN - evaluates @call, which accesses a server, once more if a signal has ended it with -EINTR
 * For the cleanup and the last results of a held command. An interruption without a call in progress ends the next
 * call, which then has changed nothing.
 */
#define TOOL_AGAIN(call)                                                                                     \
	__extension__({                                                                                      \
		__typeof__(call) first = (call);                                                             \
		first == -EINTR ? (call) : first;                                                            \
	})

/** tool_sleep - sleeps for @ms, or until ^C */
void tool_sleep(uint64_t ms);

/** tool_ask - queries a leatd without an export: connects without a mount, runs @fn
 * @fn: returns 0, or -errno, no message
 *
 * Return: exit status.
 */
int tool_ask(const char *url, int (*fn)(struct leat *m, void *ctx), void *ctx);

#endif
