/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * opts.h - the options of a mount
 */
#ifndef LT_OPTS_H
#define LT_OPTS_H

#include "base/opt.h"
#include "leat.h"
#include "rpcrdma_lab.h"
#include "url.h"

struct leat_opts {
	struct lt_url url;      /* the settings; server and path are not used */
	bool connect_only;
	bool of_volume;         /* internal, with connect_only: messages name the path of the URL */
	char *capture;          /* allocated; NULL: no capture */
	struct rpcrdma_reg_cost reg_cost;
	void (*away)(void *ctx, bool away, const char *why);
	void *away_ctx;
};

#define LT_ERROR_BYTES 1024

/** lt_thread_error - returns the text of leat_error(NULL), in LT_ERROR_BYTES bytes */
char *lt_thread_error(void);

/** lt_url_opts - returns the options of a URL; @ret_n: their number */
const struct opt *lt_url_opts(size_t *ret_n);

/** lt_named_opts - returns the options that only leat_set() takes; @ret_n: their number */
const struct opt *lt_named_opts(size_t *ret_n);

/** lt_opts_init - sets @o to the defaults, or to a shallow copy of @given; lt_opts_finish() follows the last option */
void lt_opts_init(struct leat_opts *o, const struct leat_opts *given);

/** lt_opts_set - sets an option
 * @in_url: refuses what only leat_set() takes
 * @why: receives a line for the user on failure
 *
 * Return: 0, -EINVAL, -ENOMEM.
 */
must_check int lt_opts_set(struct leat_opts *o, const char *name, const char *value, bool in_url, char *why,
			   size_t cap);

/** lt_opts_finish - computes the settings that follow from others */
void lt_opts_finish(struct lt_url *u);

#endif
