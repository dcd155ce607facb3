/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * signals.h - ends a command on SIGINT, SIGTERM, SIGHUP or SIGQUIT
 *
 * Operation:  A command without cleanup ends at once, whatever it waits for. A command with cleanup
 *             registers it. signals_hold() keeps it running for a while (to remove a file on a server, to
 *             print a summary). signals_file_add() registers a file that a copy writes; the handler itself
 *             can remove or report it.
 *             A held command polls tool_interrupted() and ends soon. The signal ends a synchronous call of
 *             a registered mount with -EINTR or -EINPROGRESS (leat_interrupt()). A server that does not
 *             reply to the cleanup either is given up after SIGNALS_CLEANUP_MS: all later calls are
 *             interrupted, too. A command that is still not at its end is ended after SIGNALS_PATIENCE_S
 *             seconds. The second signal ends it at once.
 *
 *             In all cases the program ends by that signal, so a shell sees the status 128 + signal.
 *             A signal that was ignored when the program started stays ignored (nohup). SIGPIPE and
 *             SIGXFSZ are ignored: they are errors of write().
 * Memory:     Static: a handler must not allocate.
 * Threads:    Any. One thread ends the program: it removes and reports files. It and any thread that is
 *             creating a file wait for each other for at most END_MS.
 * Errors:     None.
 */
#ifndef LEAT_SIGNALS_H
#define LEAT_SIGNALS_H

#include <stdbool.h>

struct leat;

#define SIGNALS_CLEANUP_MS 2000u
#define SIGNALS_PATIENCE_S 5u
#define SIGNALS_PART_TEXT "it was written in place and now holds part of the new content"

/** signals_init - installs the handlers; call once, before any thread is created */
void signals_init(void);

/** signals_hold, signals_release - a signal between them starts cleanup instead of ending the program; they nest
 *
 * Return: false: a signal has come already, so nothing that needs cleanup may be created. Call signals_release() in
 * this case too.
 */
bool signals_hold(void);
void signals_release(void);

/** signals_mount_add - registers a mount: a signal interrupts its synchronous calls in a held command
 * If there is no room, only the end of the patience ends such a call.
 */
void signals_mount_add(struct leat *m);

/** signals_mount_del - unregisters a mount; afterwards no handler uses it. NULL is fine. */
void signals_mount_del(struct leat *m);

/** signals_mount_defer - calls of @m between true and false are not interrupted before SIGNALS_CLEANUP_MS have passed
 * For the creation and the renaming of a temporary file. A server may execute the removal that follows an interrupted
 * creation first, and the file would stay. NULL is fine.
 */
void signals_mount_defer(struct leat *m, bool on);

/* What happens to a file that a copy writes when a signal ends the program. */
enum signals_kind {
	SIGNALS_REMOVE,   /* a local temporary file: it is removed */
	SIGNALS_STAYS,    /* a temporary file on a server: it stays if the server does not respond */
	SIGNALS_IN_PLACE, /* partly overwritten after signals_file_begun() */
};

/* All texts are copied. */
struct signals_file {
	enum signals_kind kind;
	int dir;           /* SIGNALS_REMOVE: start of @path, or AT_FDCWD; open until signals_file_del() */
	const char *path;  /* SIGNALS_REMOVE: for unlinkat(); SIGNALS_STAYS: as tool_place() prints it */
	const char *place; /* the target of the copy, as messages print it */
};

#define SIGNALS_CAME (-2)

/** signals_file_add - registers a file that is being written: a signal that ends the program removes or reports it
 *
 * Call before a SIGNALS_REMOVE file is created; call signals_file_made() from the same thread.
 * Return: a slot for signals_file_del(); -1: no room, so the file may be left over or not reported; SIGNALS_CAME: do
 * not create the SIGNALS_REMOVE file.
 */
int signals_file_add(const struct signals_file *f);

/** signals_file_made - the SIGNALS_REMOVE file now exists; @slot may be -1 */
void signals_file_made(int slot);

/** signals_file_begun - the content of a SIGNALS_IN_PLACE file begins to change; @slot may be -1 */
void signals_file_begun(int slot);

/** signals_file_end - after a signal: removes or reports the incomplete file, once
 *
 * Return: false: the caller must do it, because the file is SIGNALS_STAYS or not begun, or @slot is negative.
 */
bool signals_file_end(int slot);

/** signals_file_leave - reports that a SIGNALS_STAYS file may stay, because the server did not reply to its removal
 *
 * Return: false: @slot is negative.
 */
bool signals_file_leave(int slot);

/** signals_file_del - unregisters a file that is complete, removed or reported; @slot may be -1 */
void signals_file_del(int slot);

/** signals_end - ends the program by the signal that came, if any */
void signals_end(void);

#endif
