/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * spec.c - options of an export or a volume on the command line
 *
 * Operation: Splits at commas. A list of networks contains commas, too.
 * Memory:    The caller's.
 * Threads:   Any.
 * Errors:    Those of the caller's function.
 */
#include "spec.h"

#include <string.h>

#include "peers.h"

int spec_options(char *options, int (*set)(void *to, const char *key, const char *value, char *why, size_t why_bytes),
		 void *to, char *why, size_t why_bytes)
{
	const char *list = NULL; /* the option whose networks may continue */
	char *save = NULL;

	for (char *t = options ? strtok_r(options, ",", &save) : NULL; t; t = strtok_r(NULL, ",", &save)) {
		char *value = strchr(t, '=');
		struct peer_net net;
		int err;

		if (list && !peer_net_parse(t, &net)) {
			err = set(to, list, t, why, why_bytes);
		} else {
			if (value)
				*value++ = '\0';
			list = value && !peer_net_parse(value, &net) ? t : NULL;
			err = set(to, t, value, why, why_bytes);
		}
		if (err)
			return err;
	}
	return 0;
}
