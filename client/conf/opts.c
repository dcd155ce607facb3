/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * opts.c - the options of a mount, each declared once: in the URL and by name with leat_set()
 *
 * Operation:  url_opts are the options of a URL. leat_set() takes these and named_opts. A value is checked when it
 *             is set, with the same message from both sources. The user name of socket_user= is resolved at once.
 *             Values in the URL replace values by name.
 * Memory:     struct leat_opts owns its texts. A URL has no option that allocates.
 * Threads:    Any. Several threads may mount with the same struct leat_opts while none changes it.
 * Errors:     -EINVAL with a line for the user.
 */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opts.h"

static int set_registration(const struct opt *o, void *to, const char *text, char *why, size_t cap)
{
	struct lt_url *u = &((struct leat_opts *)to)->url;
	const char *name;

	for (size_t i = 0; (name = rpcrdma_registration(i)); i++) {
		if (!strcmp(text, name)) {
			strcpy(u->registration, name);
			return 0;
		}
	}
	return opt_refuse(o, text, why, cap);
}

static int set_monitor(const struct opt *o, void *to, const char *text, char *why, size_t cap)
{
	struct lt_url *u = &((struct leat_opts *)to)->url;

	if (strcmp(text, "uffd") != 0 && strcmp(text, "explicit") != 0 && strcmp(text, "none") != 0)
		return opt_refuse(o, text, why, cap);
	strcpy(u->monitor, text);
	return 0;
}

/* Sets a user by name or number. Root's sockets are always trusted, so 0 means that no user is added. */
static int set_socket_user(const struct opt *o, void *to, const char *text, char *why, size_t cap)
{
	static const struct opt number = { "socket_user", .type = OPT_NUMBER, .max = UINT32_MAX - 1,
					   OPT_AT(struct lt_url, socket_uid) };
	struct lt_url *u = &((struct leat_opts *)to)->url;
	struct passwd pw, *found = NULL;
	char buf[4096];

	if (text[0] >= '0' && text[0] <= '9')
		return opt_set(&number, u, text, why, cap);
	if (getpwnam_r(text, &pw, buf, sizeof(buf), &found) || !found) {
		snprintf(why, cap, "%s=%s: this host knows no such user", o->name, text);
		return -EINVAL;
	}
	u->socket_uid = found->pw_uid;
	return 0;
}

static int set_holder(const struct opt *o, void *to, const char *text, char *why, size_t cap)
{
	struct lt_url *u = &((struct leat_opts *)to)->url;
	size_t len = strlen(text);

	if (!len || len >= sizeof(u->holder) || strchr(text, '/'))
		return opt_refuse(o, text, why, cap);
	memcpy(u->holder, text, len + 1);
	return 0;
}

#define AT(member) OPT_AT(struct leat_opts, url.member)

enum { DESIGN_READ_WRITE, DESIGN_READ_READ, DESIGN_HYBRID };

/* A value that no option has: the option was not given */
#define NOT_GIVEN UINT32_MAX

static const struct opt url_opts[] = {
	{ "threads", "N", "1", "threads of the session that move data of several connections", NULL, OPT_NUMBER, 0,
	  AT(threads), .min = 1, .max = LT_THREADS_MAX },
	{ "conns", "N", "1", "connections; calls take them in turn", NULL, OPT_NUMBER, 0, AT(conns), .min = 1,
	  .max = LT_CONNS_MAX },
	{ "credits", "N", "64", "calls at once on each connection", NULL, OPT_NUMBER, 0, AT(credits), .min = 1,
	  .max = RPCRDMA_CLNT_CREDITS_MAX },
	{ "inline", "BYTES", "4K", "size of message buffers on RDMA and local", NULL, OPT_SIZE, 0, AT(inline_bytes),
	  .min = 1024, .max = 65536, .step = 1024 },
	{ "readahead", "BYTES", "1M", "for sequential reads; 0: none", NULL, OPT_SIZE, 0, AT(readahead_bytes),
	  .max = 1u << 30 },
	{ "cache", "HOW", "auto", "cache attributes and names", "auto none", OPT_WORD, 0, AT(no_cache) },
	{ "acmax", "TIME", "60s", "maximum lifetime of cached attributes and names", NULL, OPT_TIME, 0, AT(acmax_s),
	  .min = 1, .max = 86400, .unit = NS_PER_S, .bare = NS_PER_S },
	{ "timeo", "TIME", "60s", "time without a reply after which to reconnect and resend", NULL, OPT_TIME, 0,
	  AT(timeo_ms), .min = 1, .max = INT32_MAX, .unit = NS_PER_MS, .bare = NS_PER_MS },
	{ "retry", "HOW", "hard", "soft: give up after timeo", "hard soft", OPT_WORD, 0, AT(soft) },
	{ "mountport", "N", NULL, "port of the MOUNT service", NULL, OPT_NUMBER, 0, AT(mountport), .min = 1,
	  .max = 65535 },
	{ "registration", "HOW", "auto", "how memory is made reachable for RDMA",
	  "auto, dynamic, cache, batch, slab, arena or window", OPT_OTHER, .set = set_registration },
	{ "monitor", "HOW", "uffd", "how a cache of registrations is kept correct", "uffd, explicit or none", OPT_OTHER,
	  .set = set_monitor },
	{ "bounce", "BYTES", NULL, "smaller amounts of data are copied; 0: never", NULL, OPT_SIZE, 0,
	  AT(bounce_bytes), .max = 16u << 20 },
	{ "reg_entries", "N", NULL, "maximum of cached registrations", NULL, OPT_NUMBER, 0, AT(reg_entries), .min = 1,
	  .max = 65536 },
	{ "reg_bytes", "BYTES", NULL, "maximum of their bytes; size of an arena", NULL, OPT_SIZE, 0, AT(reg_bytes),
	  .min = 4096, .max = UINT64_C(1) << 40 },
	{ "dirty_watermark", "N", NULL, "evicted registrations that are deregistered together", NULL, OPT_NUMBER, 0,
	  AT(dirty_watermark), .min = 1, .max = 4096 },
	{ "socket_user", "NAME|UID", NULL, "another user with sockets that leat URLs may use", NULL, OPT_OTHER,
	  .set = set_socket_user },
	{ "holder", "NAME", NULL, "name of the holder of block volumes", "1 to 63 bytes without a slash", OPT_OTHER,
	  .set = set_holder },
	{ "budget", "BYTES", "8M", "of a striped volume: data in flight at once", NULL, OPT_SIZE, 0, AT(budget_bytes),
	  .min = 1u << 20, .max = 1u << 30 },
	{ "stripe_timeo", "TIME", "10s", "of a striped volume: time without a reply after which a stripe server is away", NULL,
	  OPT_TIME, 0, AT(stripe_timeo_ms), .min = 1, .max = INT32_MAX, .unit = NS_PER_MS, .bare = NS_PER_MS },
	{ "unsafe_inv", "yes|no", "no", "let the server invalidate windows on soft RoCE, too", NULL, OPT_FLAG, 0,
	  AT(unsafe_inv), .max = true },
	{ "design", "HOW", "read-write", "which side moves the data", "read-write read-read hybrid", OPT_WORD, 0,
	  AT(design) },
	{ "fast_write", "BYTES", NULL, "writes of up to this size go together with their call", NULL, OPT_SIZE, 0,
	  AT(fast_write_bytes), .min = 4096, .max = RPCRDMA_FAST_WRITE_MAX, .step = 4096 },
	{ "poll", "HOW", "adaptive", "how to wait", "adaptive busy event", OPT_WORD, 0, AT(poll) },
	{ "spin", "TIME", "50us", "how long to spin before sleeping", NULL, OPT_TIME, 0, AT(spin_us), .min = 1,
	  .max = 1000000, .unit = NS_PER_US, .bare = NS_PER_US },
	{ "uid", "N", NULL, "user to send to the server", NULL, OPT_NUMBER, 0, AT(uid), .max = UINT32_MAX - 1 },
	{ "gid", "N", NULL, "group to send to the server", NULL, OPT_NUMBER, 0, AT(gid), .max = UINT32_MAX - 1 },
	{ "rsize", "BYTES", NULL, "maximum data of a READ", NULL, OPT_SIZE, 0, AT(rsize), .min = 512, .max = 4u << 20 },
	{ "wsize", "BYTES", NULL, "maximum data of a WRITE", NULL, OPT_SIZE, 0, AT(wsize), .min = 512,
	  .max = 4u << 20 },
};

#undef AT
#define AT(member) OPT_AT(struct leat_opts, member)
#define COST(name, help, member) \
	{ name, "TIME", NULL, help, NULL, OPT_TIME, 0, AT(member), .max = NS_PER_S, .unit = 1, .bare = 1 }

/* Not for URLs: a URL may come from a user without the right to write files of the process. */
static const struct opt named_opts[] = {
	{ "connect_only", "yes|no", "no", "connect, but mount nothing", NULL, OPT_FLAG, 0, AT(connect_only),
	  .max = true },
	{ "capture", "FILE", NULL, "write the traffic of the local fabric to this file", NULL, OPT_TEXT, 0,
	  AT(capture) },
	COST("reg_cost", "simulated time of a registration on the local fabric", reg_cost.reg_ns),
	COST("reg_page_cost", "the same for each page of it", reg_cost.reg_page_ns),
	COST("dereg_cost", "simulated time of a deregistration", reg_cost.dereg_ns),
	COST("dereg_page_cost", "the same for each page of it", reg_cost.dereg_page_ns),
};

const struct opt *lt_url_opts(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(url_opts);
	return url_opts;
}

const struct opt *lt_named_opts(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(named_opts);
	return named_opts;
}

void lt_opts_init(struct leat_opts *o, const struct leat_opts *given)
{
	if (given) {
		*o = *given;
		return;
	}
	*o = (struct leat_opts){ .url = { .uid = NOT_GIVEN, .gid = NOT_GIVEN, .bounce_bytes = NOT_GIVEN } };
	opt_init(url_opts, ARRAY_SIZE(url_opts), o);
}

int lt_opts_set(struct leat_opts *o, const char *name, const char *value, bool in_url, char *why, size_t cap)
{
	const struct opt *found = opt_find(url_opts, ARRAY_SIZE(url_opts), name);
	const struct opt *named = found ? NULL : opt_find(named_opts, ARRAY_SIZE(named_opts), name);
	char hint[OPT_HINT_BYTES] = "";

	if (named && in_url)
		return opt_fail(-EINVAL, why, cap, "option \"%s\" is not for URLs: only a program can set it", name);
	if (found || named)
		return opt_set(found ? found : named, o, value, why, cap);
	opt_hint(url_opts, ARRAY_SIZE(url_opts), name, hint);
	if (!in_url)
		opt_hint(named_opts, ARRAY_SIZE(named_opts), name, hint);
	return opt_fail(-EINVAL, why, cap, "unknown option \"%.64s\"%s", name, hint);
}

void lt_opts_finish(struct lt_url *u)
{
	u->has_uid = u->uid != NOT_GIVEN;
	u->has_gid = u->gid != NOT_GIVEN;
	u->no_bounce = !u->bounce_bytes;
	if (u->bounce_bytes == NOT_GIVEN)
		u->bounce_bytes = 0;
	if (u->design == DESIGN_READ_READ)
		u->modes |= RPCRDMA_READ_READ;
	if (u->design == DESIGN_HYBRID)
		u->modes |= RPCRDMA_HYBRID;
	if (u->fast_write_bytes)
		u->modes |= RPCRDMA_FAST_WRITE;
	if (u->no_cache)
		u->readahead_bytes = 0;
}

struct leat_opts *leat_opts_create(void)
{
	struct leat_opts *o = malloc(sizeof(*o));

	if (o)
		lt_opts_init(o, NULL);
	return o;
}

void leat_opts_destroy(struct leat_opts *o)
{
	if (!o)
		return;
	free(o->capture);
	free(o);
}

char *lt_thread_error(void)
{
	static _Thread_local char text[LT_ERROR_BYTES];

	return text;
}

int leat_set(struct leat_opts *o, const char *name, const char *value)
{
	char *why = lt_thread_error();

	if (!o)
		return opt_fail(-ENOMEM, why, LT_ERROR_BYTES, "out of memory");
	if (!name)
		return opt_fail(-EINVAL, why, LT_ERROR_BYTES, "an option needs a name");
	if (!value)
		return opt_fail(-EINVAL, why, LT_ERROR_BYTES, "option \"%.64s\" needs a value", name);
	return lt_opts_set(o, name, value, false, why, LT_ERROR_BYTES);
}

void leat_set_away(struct leat_opts *o, void (*fn)(void *ctx, bool away, const char *why), void *ctx)
{
	if (!o)
		return;
	o->away = fn;
	o->away_ctx = ctx;
}

const char *leat_option_name(size_t i)
{
	if (i < ARRAY_SIZE(url_opts))
		return url_opts[i].name;
	i -= ARRAY_SIZE(url_opts);
	return i < ARRAY_SIZE(named_opts) ? named_opts[i].name : NULL;
}
