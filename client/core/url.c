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

#include "rpcrdma.h"
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

/* Parses a decimal number, with k, m or g for powers of 1024 if @units. */
static int parse_number(struct complaint *c, const char *name, const char *text, uint64_t min,
			uint64_t max, bool units, uint64_t *ret)
{
	uint64_t v;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return refuse(c, "%s=%s: a number is needed", name, text);
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno)
		return refuse(c, "%s=%s: number too large", name, text);
	if (units && *end) {
		static const char letters[] = "kmg";
		const char *unit = strchr(letters, *end | 0x20);
		unsigned shift = unit ? 10 * (unsigned)(unit - letters + 1) : 0;

		if (!shift || end[1])
			return refuse(c, "%s=%s: not a number of bytes", name, text);
		if (v > UINT64_MAX >> shift)
			return refuse(c, "%s=%s: number too large", name, text);
		v <<= shift;
		end++;
	}
	if (*end)
		return refuse(c, "%s=%s: not a number", name, text);
	if (v < min || v > max)
		return refuse(c, "%s=%s: must be %llu..%llu", name, text, (unsigned long long)min,
			      (unsigned long long)max);
	*ret = v;
	return 0;
}

static int parse_poll(struct complaint *c, const char *text, enum lt_url_poll *ret)
{
	if (!strcmp(text, "adaptive"))
		*ret = LT_URL_POLL_ADAPTIVE;
	else if (!strcmp(text, "busy"))
		*ret = LT_URL_POLL_BUSY;
	else if (!strcmp(text, "event"))
		*ret = LT_URL_POLL_EVENT;
	else
		return refuse(c, "poll=%s: must be adaptive, busy or event", text);
	return 0;
}

static int parse_cache(struct complaint *c, const char *text, bool *ret_none)
{
	if (strcmp(text, "auto") != 0 && strcmp(text, "none") != 0)
		return refuse(c, "cache=%s: must be auto or none", text);
	*ret_none = text[0] == 'n';
	return 0;
}

static int parse_unsafe_inv(struct complaint *c, const char *text, bool *ret)
{
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return refuse(c, "unsafe_inv=%s: must be yes or no", text);
	*ret = text[0] == 'y';
	return 0;
}

/* Sets a user by name or number. Root's sockets are always trusted, so 0 means that no user is added. */
static int set_socket_user(struct complaint *c, const char *text, struct lt_url *u)
{
	struct passwd pw, *found = NULL;
	char buf[4096];
	uint64_t v;
	int rc;

	if (text[0] >= '0' && text[0] <= '9') {
		rc = parse_number(c, "socket_user", text, 0, UINT32_MAX - 1, false, &v);
		if (!rc)
			u->socket_uid = (uint32_t)v;
		return rc;
	}
	if (getpwnam_r(text, &pw, buf, sizeof(buf), &found) || !found)
		return refuse(c, "socket_user=%s: this host knows no such user", text);
	u->socket_uid = found->pw_uid;
	return 0;
}

/* Copies @text to @to if it is one of @names; @to has room for each of them. */
static bool is_one_of(const char *const names[], size_t n, const char *text, char *to)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(text, names[i])) {
			strcpy(to, names[i]);
			return true;
		}
	}
	return false;
}

static int set_registration(struct complaint *c, const char *text, struct lt_url *u)
{
	char all[128] = "";
	const char *name;

	for (size_t i = 0; (name = rpcrdma_registration(i)); i++) {
		size_t len = strlen(all);

		if (!strcmp(text, name)) {
			strcpy(u->registration, name);
			return 0;
		}
		snprintf(all + len, sizeof(all) - len, "%s%s",
			 !i ? "" : rpcrdma_registration(i + 1) ? ", " : " or ", name);
	}
	return refuse(c, "registration=%s: must be %s", text, all);
}

static int set_monitor(struct complaint *c, const char *text, struct lt_url *u)
{
	static const char *const names[] = { "uffd", "explicit", "none" };

	if (is_one_of(names, ARRAY_SIZE(names), text, u->monitor))
		return 0;
	return refuse(c, "monitor=%s: must be uffd, explicit or none", text);
}

static int set_design(struct complaint *c, const char *text, struct lt_url *u)
{
	unsigned fast = u->modes & RPCRDMA_FAST_WRITE;

	if (!strcmp(text, "read-write"))
		u->modes = fast;
	else if (!strcmp(text, "read-read"))
		u->modes = fast | RPCRDMA_READ_READ;
	else if (!strcmp(text, "hybrid"))
		u->modes = fast | RPCRDMA_HYBRID;
	else
		return refuse(c, "design=%s: must be read-write, read-read or hybrid", text);
	return 0;
}

/* Valid ranges, used for the URL and for struct leat_opts. */
enum number {
	NUM_CONNS,
	NUM_CREDITS,
	NUM_INLINE,
	NUM_READAHEAD,
	NUM_TIMEO,
	NUM_MOUNTPORT,
	NUM_SPIN,
	NUM_UID,
	NUM_GID,
	NUM_RSIZE,
	NUM_WSIZE,
	NUM_ACMAX,
	NUM_FAST_WRITE,
	NUM_BOUNCE,
	NUM_REG_ENTRIES,
	NUM_REG_BYTES,
	NUM_DIRTY,
};

static const struct {
	const char *name;
	uint64_t min, max;
	bool units;
	uint64_t step; /* the value must be a multiple of this; 0: any value */
} numbers[] = {
	[NUM_CONNS] = { "conns", 1, LT_CONNS_MAX, false, 0 },
	[NUM_CREDITS] = { "credits", 1, 4096, false, 0 },
	[NUM_INLINE] = { "inline", 1024, 65536, true, 1024 },
	[NUM_READAHEAD] = { "readahead", 0, 1u << 30, true, 0 },
	[NUM_TIMEO] = { "timeo", 1, INT32_MAX, false, 0 },
	[NUM_MOUNTPORT] = { "mountport", 1, 65535, false, 0 },
	[NUM_SPIN] = { "spin", 1, 1000000, false, 0 },
	[NUM_UID] = { "uid", 0, UINT32_MAX - 1, false, 0 },
	[NUM_GID] = { "gid", 0, UINT32_MAX - 1, false, 0 },
	[NUM_RSIZE] = { "rsize", 512, 4u << 20, true, 0 },
	[NUM_WSIZE] = { "wsize", 512, 4u << 20, true, 0 },
	[NUM_ACMAX] = { "acmax", 1, 86400, false, 0 },
	[NUM_FAST_WRITE] = { "fast_write", 4096, RPCRDMA_FAST_WRITE_MAX, true, 4096 },
	[NUM_BOUNCE] = { "bounce", 0, 16u << 20, true, 0 },
	[NUM_REG_ENTRIES] = { "reg_entries", 1, 65536, false, 0 },
	[NUM_REG_BYTES] = { "reg_bytes", 4096, UINT64_C(1) << 40, true, 0 },
	[NUM_DIRTY] = { "dirty_watermark", 1, 4096, false, 0 },
};

static void set_number(struct lt_url *u, enum number which, uint64_t v)
{
	switch (which) {
	case NUM_CONNS:
		u->conns = (unsigned)v;
		break;
	case NUM_CREDITS:
		u->credits = (unsigned)v;
		break;
	case NUM_INLINE:
		u->inline_bytes = (uint32_t)v;
		break;
	case NUM_READAHEAD:
		u->readahead_bytes = (uint32_t)v;
		break;
	case NUM_TIMEO:
		u->timeo_ms = (uint32_t)v;
		break;
	case NUM_MOUNTPORT:
		u->mountport = (uint16_t)v;
		break;
	case NUM_SPIN:
		u->spin_us = (unsigned)v;
		break;
	case NUM_UID:
		u->uid = (uint32_t)v;
		u->has_uid = true;
		break;
	case NUM_GID:
		u->gid = (uint32_t)v;
		u->has_gid = true;
		break;
	case NUM_RSIZE:
		u->rsize = (uint32_t)v;
		break;
	case NUM_WSIZE:
		u->wsize = (uint32_t)v;
		break;
	case NUM_ACMAX:
		u->acmax_s = (uint32_t)v;
		break;
	case NUM_FAST_WRITE:
		u->fast_write_bytes = (uint32_t)v;
		u->modes |= RPCRDMA_FAST_WRITE;
		break;
	case NUM_BOUNCE:
		u->bounce_bytes = (uint32_t)v;
		u->no_bounce = !v;
		break;
	case NUM_REG_ENTRIES:
		u->reg_entries = (unsigned)v;
		break;
	case NUM_REG_BYTES:
		u->reg_bytes = v;
		break;
	case NUM_DIRTY:
		u->dirty_watermark = (unsigned)v;
		break;
	}
}

/* Checks the step of a value that is in its range. @text: the value as written */
static int check_step(struct complaint *c, enum number which, const char *text, uint64_t v)
{
	uint64_t step = numbers[which].step;

	if (step && v % step)
		return refuse(c, "%s=%s: must be a multiple of %llu, %llu..%llu", numbers[which].name,
			      text, (unsigned long long)step,
			      (unsigned long long)numbers[which].min,
			      (unsigned long long)numbers[which].max);
	return 0;
}

static int parse_option(struct complaint *c, const char *name, const char *value, struct lt_url *u)
{
	uint64_t v;
	int rc;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (strcmp(name, numbers[i].name) != 0)
			continue;
		rc = parse_number(c, name, value, numbers[i].min, numbers[i].max, numbers[i].units,
				  &v);
		if (!rc)
			rc = check_step(c, (enum number)i, value, v);
		if (rc)
			return rc;
		set_number(u, (enum number)i, v);
		return 0;
	}
	if (!strcmp(name, "retry")) {
		if (strcmp(value, "hard") != 0 && strcmp(value, "soft") != 0)
			return refuse(c, "retry=%s: must be hard or soft", value);
		u->soft = value[0] == 's';
		return 0;
	}
	if (!strcmp(name, "registration"))
		return set_registration(c, value, u);
	if (!strcmp(name, "design"))
		return set_design(c, value, u);
	if (!strcmp(name, "monitor"))
		return set_monitor(c, value, u);
	if (!strcmp(name, "poll"))
		return parse_poll(c, value, &u->poll);
	if (!strcmp(name, "cache"))
		return parse_cache(c, value, &u->no_cache);
	if (!strcmp(name, "socket_user"))
		return set_socket_user(c, value, u);
	if (!strcmp(name, "unsafe_inv"))
		return parse_unsafe_inv(c, value, &u->unsafe_inv);
	return refuse(c, "unknown option \"%s\"", name);
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

static int take_opt(struct complaint *c, struct lt_url *u, enum number which, uint64_t v)
{
	char text[48];
	int rc;

	if (!v)
		return 0;
	if (v < numbers[which].min || v > numbers[which].max)
		return refuse(c, "%s=%llu in struct leat_opts: must be %llu..%llu",
			      numbers[which].name, (unsigned long long)v,
			      (unsigned long long)numbers[which].min,
			      (unsigned long long)numbers[which].max);
	snprintf(text, sizeof(text), "%llu in struct leat_opts", (unsigned long long)v);
	rc = check_step(c, which, text, v);
	if (rc)
		return rc;
	set_number(u, which, v);
	return 0;
}

static int take_opts(struct complaint *c, const struct leat_opts *o, struct lt_url *u)
{
	int rc = take_opt(c, u, NUM_CONNS, o->conns);

	if (!rc)
		rc = take_opt(c, u, NUM_CREDITS, o->credits);
	if (!rc)
		rc = take_opt(c, u, NUM_INLINE, o->inline_bytes);
	if (!rc)
		rc = take_opt(c, u, NUM_READAHEAD, o->readahead_bytes);
	if (!rc)
		rc = take_opt(c, u, NUM_TIMEO, o->timeo_ms);
	if (!rc)
		rc = take_opt(c, u, NUM_MOUNTPORT, o->mountport);
	if (!rc)
		rc = take_opt(c, u, NUM_SPIN, o->spin_us);
	if (!rc)
		rc = take_opt(c, u, NUM_RSIZE, o->rsize);
	if (!rc)
		rc = take_opt(c, u, NUM_WSIZE, o->wsize);
	if (!rc)
		rc = take_opt(c, u, NUM_ACMAX, o->acmax_s);
	if (!rc)
		rc = take_opt(c, u, NUM_FAST_WRITE, o->fast_write);
	if (!rc)
		rc = take_opt(c, u, NUM_BOUNCE, o->bounce_bytes);
	if (!rc)
		rc = take_opt(c, u, NUM_REG_ENTRIES, o->reg_entries);
	if (!rc)
		rc = take_opt(c, u, NUM_REG_BYTES, o->reg_bytes);
	if (!rc)
		rc = take_opt(c, u, NUM_DIRTY, o->dirty_watermark);
	if (!rc && o->monitor)
		rc = set_monitor(c, o->monitor, u);
	if (!rc && o->design)
		rc = set_design(c, o->design, u);
	if (!rc && o->cache)
		rc = parse_cache(c, o->cache, &u->no_cache);
	if (!rc && o->registration)
		rc = set_registration(c, o->registration, u);
	if (!rc && o->socket_user)
		rc = set_socket_user(c, o->socket_user, u);
	if (!rc && o->poll)
		rc = parse_poll(c, o->poll, &u->poll);
	if (rc)
		return rc;
	if (o->no_readahead)
		u->readahead_bytes = 0;
	if (o->no_bounce)
		set_number(u, NUM_BOUNCE, 0);
	u->soft = o->soft;
	u->unsafe_inv = o->unsafe_inv;
	if (o->has_ids) {
		u->has_uid = u->has_gid = true;
		u->uid = o->uid;
		u->gid = o->gid;
	}
	return 0;
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
	char digits[8];
	size_t host_len;
	uint64_t v;
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
	if ((size_t)(end - port) >= sizeof(digits))
		return refuse(c, "port \"%.*s\": must be 1..65535", (int)MIN(end - port, 64), port);
	memcpy(digits, port, (size_t)(end - port));
	digits[end - port] = '\0';
	rc = parse_number(c, "port", digits, 1, 65535, false, &v);
	if (!rc)
		u->port = (uint16_t)v;
	return rc;
}

int lt_url_parse(const char *url, const struct leat_opts *opts, struct lt_url *ret, char *why,
		 size_t cap)
{
	struct lt_url u = { .conns = 1, .readahead_bytes = 1u << 20 };
	struct complaint c = { .why = why, .cap = cap };
	const char *rest = url, *path;
	size_t len;
	int rc;

	if (opts) {
		rc = take_opts(&c, opts, &u);
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
	if (u.modes && u.scheme == LT_SCHEME_TCP)
		return refuse(&c, "design= and fast_write= are for RDMA and local, not for TCP");
	if (u.modes && !strcmp(u.registration, "window"))
		return refuse(&c, "design= and fast_write= expose nothing that registration=window guards");
	if (u.no_cache)
		u.readahead_bytes = 0;
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
