/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reload.h - reading the configuration again, while a server runs
 */
#ifndef LEAT_SERVER_RELOAD_H
#define LEAT_SERVER_RELOAD_H

#include <stddef.h>

#include "base/util.h"
#include "conf.h"
#include "server.h"

struct reload;

/** reload_create - remember what was asked for, and from where: call it before chdir()
 * @conf: what @argv said at start; from here on the reload's, which keeps in it what is in force
 *
 * Return: 0, -ENOMEM, -errno (the directory cannot be named).
 */
int must_check reload_create(struct conf *conf, int argc, char **argv, struct server *s,
			     struct reload **ret);

/** reload_run - read command line and file again, and have the server do what they say; any thread
 * @said: what is in force now and what is not, or what is wrong
 *
 * Return: 0, -errno: nothing has changed.
 */
int must_check reload_run(struct reload *r, char *said, size_t said_bytes);

/** reload_destroy - the server has ended. NULL is fine. */
void reload_destroy(struct reload *r);

#endif
