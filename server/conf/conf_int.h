/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * conf_int.h - shared by the files that read the configuration
 */
#ifndef LEAT_SERVER_CONF_INT_H
#define LEAT_SERVER_CONF_INT_H

#include "base/opt.h"
#include "conf.h"

#define CONF_OPTS 32u

/* Options of the command line. Those of type OTHER without a function are not keys of the file. */
extern const struct opt conf_opts[CONF_OPTS];

/** conf_opt_find - finds an option by its key in the file; NULL: unknown */
const struct opt *conf_opt_find(const char *key);

/** conf_say - formats an error message for the administrator
 * @why: room for CONF_WHY_BYTES
 * Return: -EINVAL */
#define conf_say(why, ...) opt_fail(-EINVAL, why, CONF_WHY_BYTES, __VA_ARGS__)

#endif
