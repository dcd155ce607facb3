/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * url.c - parses SCHEME://HOST[:PORT]/EXPORT/PATH?OPTION=VALUE&...
 *
 * Operation:  mount.c calls lt_url_parse() first, then, for local URLs, lt_url_split_socket(), the only
 *             function here that accesses files. The user name of socket_user= is resolved at once. Paths
 *             and option values are percent-decoded. A '?' in a path is written %3F.
 * Memory:     Caller's structures only; nothing is allocated.
 * Threads:    Any.
 * Errors:     -EINVAL with a line that names the wrong part; the tools print this line for the user.
 */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/opt.h"
#include "url.h"

static const char *const scheme_names[] = {
	[LT_SCHEME_LEAT] = "leat",
	[LT_SCHEME_RDMA] = "rdma",
	[LT_SCHEME_TCP] = "tcp",
	[LT_SCHEME_LOCAL] = "local",
};

/* Destination of error messages. */
struct complaint {
	char *why;
	size_t cap;
};

static printf_like(2, 3) int refuse(struct complaint *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->why, c->cap, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

const char *lt_url_scheme_name(enum lt_scheme s)
{
	return (size_t)s < ARRAY_SIZE(scheme_names) ? scheme_names[s] : "unknown";
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Decodes percent escapes. @what names the part in messages. %00 is refused because it would end a C string. */
static int decode_percent(struct complaint *c, const char *what, const char *from, size_t len,
			  char *to, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char ch = from[i];

		if (ch == '%') {
			int hi = i + 1 < len ? hex_digit(from[i + 1]) : -1;
			int lo = i + 2 < len ? hex_digit(from[i + 2]) : -1;

			if (hi < 0 || lo < 0)
				return refuse(c, "%s: '%%' must be followed by two hexadecimal digits",
					      what);
			ch = (char)(hi << 4 | lo);
			if (!ch)
				return refuse(c, "%s: %%00 cannot be part of it", what);
			i += 2;
		}
		if (n + 1 >= cap) {
			refuse(c, "%s is longer than %zu bytes", what, cap - 1);
			return -ENAMETOOLONG;
		}
		to[n++] = ch;
	}
	to[n] = '\0';
	return 0;
}

static int set_registration(const struct opt *o, void *to, const char *text, char *why, size_t cap)
{
	struct lt_url *u = to;
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
	struct lt_url *u = to;

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
	struct lt_url *u = to;
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

#define AT(member) OPT_AT(struct lt_url, member)

enum { DESIGN_READ_WRITE, DESIGN_READ_READ, DESIGN_HYBRID };

/* A value that no option has: the option was not given. */
#define NOT_GIVEN UINT32_MAX

static const struct opt opts[] = {
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

const struct opt *lt_url_opts(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(opts);
	return opts;
}

static int parse_option(struct complaint *c, const char *name, const char *value, struct lt_url *u)
{
	const struct opt *o = opt_find(opts, ARRAY_SIZE(opts), name);

	return o ? opt_set(o, u, value, c->why, c->cap) : refuse(c, "unknown option \"%s\"", name);
}

static int parse_options(struct complaint *c, const char *text, struct lt_url *u)
{
	char name[32], value[128];
	int rc;

	while (*text) {
		size_t len = strcspn(text, "&");
		const char *eq = memchr(text, '=', len);
		size_t name_len = eq ? (size_t)(eq - text) : len;

		if (len) {
			if (!eq)
				return refuse(c, "option \"%.*s\" needs a value", (int)MIN(len, 64u),
					      text);
			rc = decode_percent(c, "option name", text, name_len, name, sizeof(name));
			if (!rc)
				rc = decode_percent(c, "option value", eq + 1, len - name_len - 1,
						    value, sizeof(value));
			if (!rc)
				rc = parse_option(c, name, value, u);
			if (rc)
				return rc;
		}
		text += len;
		if (*text == '&')
			text++;
	}
	return 0;
}

#define MEMBER(name_, member) { .name = name_, .type = OPT_NUMBER, OPT_AT(struct leat_opts, member) }
#define STRING(name_) { .name = #name_, .type = OPT_TEXT, OPT_AT(struct leat_opts, name_) }

/* The members of struct leat_opts that are options of a URL; 0 and NULL: not given */
static const struct opt members[] = {
	MEMBER("conns", conns), MEMBER("credits", credits), MEMBER("inline", inline_bytes),
	MEMBER("readahead", readahead_bytes), MEMBER("timeo", timeo_ms), MEMBER("mountport", mountport),
	MEMBER("spin", spin_us), MEMBER("rsize", rsize), MEMBER("wsize", wsize), MEMBER("acmax", acmax_s),
	MEMBER("fast_write", fast_write), MEMBER("bounce", bounce_bytes), MEMBER("reg_entries", reg_entries),
	MEMBER("reg_bytes", reg_bytes), MEMBER("dirty_watermark", dirty_watermark), STRING(monitor), STRING(design),
	STRING(cache), STRING(registration), STRING(socket_user), STRING(poll),
};

static int take_opts(struct complaint *c, const struct leat_opts *from, struct lt_url *u)
{
	int rc = 0;

	for (const struct opt *m = members; !rc && m < members + ARRAY_SIZE(members); m++) {
		const struct opt *o = opt_find(opts, ARRAY_SIZE(opts), m->name);
		const char *text = m->type == OPT_TEXT ? opt_text(m, from) : NULL;
		uint64_t v = m->type == OPT_TEXT ? 0 : opt_number(m, from);

		if (v)
			rc = opt_set_number(o, u, v, c->why, c->cap);
		else if (text)
			rc = opt_set(o, u, text, c->why, c->cap);
	}
	if (rc)
		return rc;
	if (from->no_readahead)
		u->readahead_bytes = 0;
	if (from->no_bounce)
		u->bounce_bytes = 0;
	u->soft = from->soft;
	u->unsafe_inv = from->unsafe_inv;
	if (from->has_ids) {
		u->has_uid = u->has_gid = true;
		u->uid = from->uid;
		u->gid = from->gid;
	}
	return 0;
}

/* Computes the members that depend on options of which 0 is a value. */
static void finish_options(struct lt_url *u)
{
	u->has_uid |= u->uid != NOT_GIVEN;
	u->has_gid |= u->gid != NOT_GIVEN;
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

static int parse_scheme(struct complaint *c, const char *url, enum lt_scheme *ret,
			const char **ret_rest)
{
	const char *sep = strstr(url, "://");
	size_t len = sep ? (size_t)(sep - url) : 0;

	if (!sep)
		return refuse(c, "\"%.200s\" is no URL: SCHEME://HOST[:PORT]/PATH is needed, SCHEME "
			      "being leat, rdma, tcp or local", url);
	for (size_t i = 0; i < ARRAY_SIZE(scheme_names); i++) {
		if (strlen(scheme_names[i]) == len && !strncmp(url, scheme_names[i], len)) {
			*ret = (enum lt_scheme)i;
			*ret_rest = sep + 3;
			return 0;
		}
	}
	return refuse(c, "unknown scheme \"%.*s\": leat, rdma, tcp and local are known",
		      (int)MIN(len, 64u), url);
}

/* HOST, HOST:PORT, [V6] or [V6]:PORT in @text[0..len) */
static int parse_authority(struct complaint *c, const char *text, size_t len, struct lt_url *u)
{
	const char *host = text, *port = NULL, *end = text + len;
	static const struct opt number = { "port", .type = OPT_NUMBER, .min = 1, .max = 65535, AT(port) };
	char digits[32];
	size_t host_len;
	int rc;

	if (memchr(text, '@', len))
		return refuse(c, "\"%.*s\": a user is given by uid= and gid=, not before '@'",
			      (int)MIN(len, 200u), text);
	if (len && text[0] == '[') {
		const char *close = memchr(text, ']', len);

		if (!close)
			return refuse(c, "\"%.*s\": ']' is missing", (int)MIN(len, 200u), text);
		host = text + 1;
		host_len = (size_t)(close - host);
		if (close + 1 < end) {
			if (close[1] != ':')
				return refuse(c, "\"%.*s\": only :PORT may follow ']'",
					      (int)MIN(len, 200u), text);
			port = close + 2;
		}
	} else {
		const char *colon = memchr(text, ':', len);

		if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
			return refuse(c, "\"%.*s\": an IPv6 address must stand in brackets",
				      (int)MIN(len, 200u), text);
		host_len = colon ? (size_t)(colon - text) : len;
		port = colon ? colon + 1 : NULL;
	}
	if (!host_len)
		return refuse(c, "no host between \"//\" and the path");
	rc = decode_percent(c, "host", host, host_len, u->host, sizeof(u->host));
	if (rc || !port)
		return rc;
	(void)snprintf(digits, sizeof(digits), "%.*s", (int)(end - port), port);
	if ((size_t)(end - port) >= sizeof(digits) || strspn(port, "0123456789") < (size_t)(end - port))
		return opt_refuse(&number, digits, c->why, c->cap);
	return opt_set(&number, u, digits, c->why, c->cap);
}

int lt_url_parse(const char *url, const struct leat_opts *given, struct lt_url *ret, char *why,
		 size_t cap)
{
	struct lt_url u = { .uid = NOT_GIVEN, .gid = NOT_GIVEN, .bounce_bytes = NOT_GIVEN };
	struct complaint c = { .why = why, .cap = cap };
	const char *rest = url, *path;
	size_t len;
	int rc;

	opt_init(opts, ARRAY_SIZE(opts), &u);
	if (given) {
		rc = take_opts(&c, given, &u);
		if (rc)
			return rc;
	}
	rc = parse_scheme(&c, url, &u.scheme, &rest);
	if (rc)
		return rc;
	len = strcspn(rest, "/?");
	if (u.scheme == LT_SCHEME_LOCAL) {
		if (len)
			return refuse(&c, "local: no host is named: local:///PATH/OF/SOCKET/EXPORT");
	} else {
		rc = parse_authority(&c, rest, len, &u);
		if (rc)
			return rc;
	}
	path = rest + len;
	len = strcspn(path, "?");
	rc = decode_percent(&c, "path", path, len, u.path, sizeof(u.path));
	if (rc)
		return rc;
	if (!u.path[0])
		strcpy(u.path, "/");
	if (path[len] == '?') {
		rc = parse_options(&c, path + len + 1, &u);
		if (rc)
			return rc;
	}
	finish_options(&u);
	if (u.modes && u.scheme == LT_SCHEME_TCP)
		return refuse(&c, "design= and fast_write= are for RDMA and local, not for TCP");
	if (u.modes && !strcmp(u.registration, "window"))
		return refuse(&c, "design= and fast_write= expose nothing that registration=window guards");
	*ret = u;
	return 0;
}

int lt_url_split_socket(const char *path, char *socket, size_t cap, char rest[LT_PATH_MAX])
{
	char prefix[LT_PATH_MAX];
	size_t len = strlen(path);
	struct stat st;

	if (len >= sizeof(prefix))
		return -ENAMETOOLONG;
	memcpy(prefix, path, len + 1);
	for (;;) {
		while (len > 1 && prefix[len - 1] == '/')
			len--;
		prefix[len] = '\0';
		if (len < 2)
			return -ENOENT;
		if (!stat(prefix, &st) && S_ISSOCK(st.st_mode))
			break;
		while (len && prefix[len - 1] != '/')
			len--;
	}
	if (len >= cap)
		return -ENAMETOOLONG;
	memcpy(socket, prefix, len + 1);
	strcpy(rest, path[len] ? path + len : "/");
	return 0;
}
