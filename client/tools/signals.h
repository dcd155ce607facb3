/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * signals.h - how a command ends when SIGINT, SIGTERM, SIGHUP or SIGQUIT comes
 *
 * Operation:  A command that has nothing to clean up ends at once, whatever it waits for. One that has
 *             says so while that is the case: by signals_hold() if it must run on for a while (a file on
 *             a server that would be left over, a summary that is to be printed), or by
 *             signals_file_add() for a file that a copy writes, which the handler itself can remove or
 *             report. A command
 *             that is held sees tool_interrupted() and ends soon; if it cannot, because a server is away,
 *             it is ended after SIGNALS_PATIENCE_S seconds. The second signal ends it at once.
 *
 *             Either way the program ends by that signal, so a shell sees the status 128 + signal.
 *             A signal that was ignored when the program started stays ignored (nohup).
 *             SIGPIPE and SIGXFSZ are ignored: they are errors of write().
 * Memory:     Static: a handler may not allocate.
 * Threads:    Any. One of them ends the program: it removes and reports what is to be, and another one that
 *             makes a file waits for that, or is waited for, END_MS at most.
 * Errors:     None.
 */
#ifndef LEAT_SIGNALS_H
#define LEAT_SIGNALS_H

#include <stdbool.h>

#define SIGNALS_PATIENCE_S 5u
#define SIGNALS_PART_TEXT "it was written in place and now holds part of the new content"

/** signals_init - installs the handlers; once, before any thread is made */
void signals_init(void);

/** signals_hold, signals_release - between them a signal does not end the program, but has it clean up; they nest
 *
 * Return: false: one has come already, so nothing may be made that would have to be cleaned up. It is to be
 * released all the same.
 */
bool signals_hold(void);
void signals_release(void);

/* What becomes of a file that a copy writes, when a signal ends the program. */
enum signals_kind {
	SIGNALS_REMOVE,   /* a temporary file of this machine: it is removed */
	SIGNALS_STAYS,    /* a temporary file on a server: it stays if the server does not answer */
	SIGNALS_IN_PLACE, /* it holds part of the new content, after signals_file_begun() */
};

/* All texts are copied. */
struct signals_file {
	enum signals_kind kind;
	int dir;           /* SIGNALS_REMOVE: where @path begins, or AT_FDCWD; open until signals_file_del() */
	const char *path;  /* SIGNALS_REMOVE: for unlinkat(); SIGNALS_STAYS: as tool_place() prints it */
	const char *place; /* what messages call the target of the copy */
};

#define SIGNALS_CAME (-2)

/** signals_file_add - a file that is being written: a signal that ends the program removes or reports it
 *
 * Before a SIGNALS_REMOVE file is made, with signals_file_made() to come from the same thread.
 * Return: for signals_file_del(); -1: there is no room; the file will be left over, or not be reported;
 * SIGNALS_CAME: a SIGNALS_REMOVE file must not be made any more.
 */
int signals_file_add(const struct signals_file *f);

/** signals_file_made - a SIGNALS_REMOVE file is there now; -1 is fine */
void signals_file_made(int slot);

/** signals_file_begun - the content of a SIGNALS_IN_PLACE file begins to change; -1 is fine */
void signals_file_begun(int slot);

/** signals_file_end - a signal came, and so the file will not be complete: remove or report it, once
 *
 * Return: false: that is up to the caller, because the file is SIGNALS_STAYS or not begun, or @slot is negative.
 */
bool signals_file_end(int slot);

/** signals_file_del - the file is complete, or gone, or reported; -1 is fine */
void signals_file_del(int slot);

/** signals_end - ends the program by the signal that came, if one did */
void signals_end(void);

#endif
