/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * conf_int.h - shared by the files that read the configuration
 */
#ifndef LEAT_SERVER_CONF_INT_H
#define LEAT_SERVER_CONF_INT_H

#include <stdbool.h>

#include "conf.h"

#define CONF_OPTIONS 25u

struct conf_option {
	const char *name; /* --NAME VALUE, or NAME = VALUE in [server] */
	char letter;      /* -LETTER; 0: none */
	bool flag;        /* yes or no: --NAME means yes, --no-NAME means no */
	int (*set)(struct conf *c, const char *value, char *why);
};

extern const struct conf_option conf_options[CONF_OPTIONS];

/** conf_option_find - finds an option by its key in the file; NULL: unknown */
const struct conf_option *conf_option_find(const char *key);

/** conf_add_listen - adds an address to listen at; Return: 0, -EINVAL with @why */
int conf_add_listen(struct conf *c, const char *value, char *why);

/** conf_say - formats an error message for the administrator
 * @why: room for CONF_WHY_BYTES
 * Return: -EINVAL */
printf_like(2, 3) int conf_say(char *why, const char *fmt, ...);

#endif
