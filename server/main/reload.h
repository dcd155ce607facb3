/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reload.h - reads the configuration again, while a server runs
 */
#ifndef LEAT_SERVER_RELOAD_H
#define LEAT_SERVER_RELOAD_H

#include <stddef.h>

#include "base/util.h"
#include "conf.h"
#include "server.h"

struct reload;

/** reload_create - records the command line and the current directory: call it before chdir()
 * @conf: configuration from @argv at start; afterwards the reload updates it to what is in force
 *
 * Return: 0, -ENOMEM, -errno (the directory has no path).
 */
int must_check reload_create(struct conf *conf, int argc, char **argv, struct server *s,
			     struct reload **ret);

/** reload_run - reads command line and file again, and applies them to the server; any thread
 * @said: receives what is in force now and what is not, or the error
 *
 * Return: 0, -errno: nothing has changed.
 */
int must_check reload_run(struct reload *r, char *said, size_t said_bytes);

/** reload_destroy - call after the server has ended. NULL is fine. */
void reload_destroy(struct reload *r);

#endif
