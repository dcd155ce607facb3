/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * signals.h - how a command ends when SIGINT, SIGTERM or SIGHUP comes
 *
 * Operation:  A command that has nothing to clean up ends at once, whatever it waits for. One that has
 *             says so while that is the case: by signals_hold() if it must run on for a while (a file on
 *             a server that would be left over, a summary that is to be printed), or by
 *             signals_temp_add() for a file of this machine, which the handler itself can remove. A command
 *             that is held sees tool_interrupted() and ends soon; if it cannot, because a server is away,
 *             it is ended after SIGNALS_PATIENCE_S seconds. The second signal ends it at once.
 *
 *             Either way the program ends by that signal, so a shell sees the status 128 + signal.
 *             A signal that was ignored when the program started stays ignored (nohup).
 * Memory:     Static: a handler may not allocate.
 * Threads:    Any.
 * Errors:     None.
 */
#ifndef LEAT_SIGNALS_H
#define LEAT_SIGNALS_H

#include <stdbool.h>

#define SIGNALS_PATIENCE_S 5u

/** signals_init - installs the handlers; once, before any thread is made */
void signals_init(void);

/** signals_hold, signals_release - between them a signal does not end the program, but has it clean up; they nest
 *
 * Return: false: one has come already, so nothing may be made that would have to be cleaned up. It is to be
 * released all the same.
 */
bool signals_hold(void);
void signals_release(void);

/** signals_temp_add - a temporary file of this machine that a signal removes
 * @dir: descriptor of the directory that @path begins in, or AT_FDCWD; open until signals_temp_del()
 * @path: copied
 *
 * Return: for signals_temp_del(); -1: there is no room, and the file will be left over.
 */
int signals_temp_add(int dir, const char *path);

/** signals_temp_del - the file has its final name, or is gone; -1 is fine */
void signals_temp_del(int slot);

/** signals_end - ends the program by the signal that came, if one did */
void signals_end(void);

#endif
