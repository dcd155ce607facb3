/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * url.c - parses SCHEME://HOST[:PORT]/EXPORT/PATH?OPTION=VALUE&...
 *
 * Operation:  mount.c calls lt_url_parse() first, then, for local URLs, lt_url_split_socket(), the only
 *             function here that accesses files. opts.c has the options. Paths and option values are
 *             percent-decoded. A '?' in a path is written %3F.
 * Memory:     Caller's structures only; nothing is allocated.
 * Threads:    Any.
 * Errors:     -EINVAL with a line that names the wrong part; the tools print this line for the user.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/opt.h"
#include "opts.h"
#include "url.h"
#include "rpcrdma_lab.h"

static const char *const scheme_names[] = {
	[LT_SCHEME_LEAT] = "leat",
	[LT_SCHEME_RDMA] = "rdma",
	[LT_SCHEME_TCP] = "tcp",
	[LT_SCHEME_LOCAL] = "local",
};

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
static int decode_percent(const char *what, const char *from, size_t len, char *to, size_t to_cap, char *why, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char ch = from[i];

		if (ch == '%') {
			int hi = i + 1 < len ? hex_digit(from[i + 1]) : -1;
			int lo = i + 2 < len ? hex_digit(from[i + 2]) : -1;

			if (hi < 0 || lo < 0)
				return opt_fail(-EINVAL, why, cap, "%s: '%%' must be followed by two hexadecimal digits",
						what);
			ch = (char)(hi << 4 | lo);
			if (!ch)
				return opt_fail(-EINVAL, why, cap, "%s: %%00 cannot be part of it", what);
			i += 2;
		}
		if (n + 1 >= to_cap)
			return opt_fail(-ENAMETOOLONG, why, cap, "%s is longer than %zu bytes", what, to_cap - 1);
		to[n++] = ch;
	}
	to[n] = '\0';
	return 0;
}

static int parse_options(const char *text, struct leat_opts *o, char *why, size_t cap)
{
	char name[32], value[128];
	int rc;

	while (*text) {
		size_t len = strcspn(text, "&");
		const char *eq = memchr(text, '=', len);
		size_t name_len = eq ? (size_t)(eq - text) : len;

		if (len) {
			if (!eq)
				return opt_fail(-EINVAL, why, cap, "option \"%.*s\" needs a value", (int)MIN(len, 64u),
						text);
			rc = decode_percent("option name", text, name_len, name, sizeof(name), why, cap);
			if (!rc)
				rc = decode_percent("option value", eq + 1, len - name_len - 1, value, sizeof(value), why,
						    cap);
			if (!rc)
				rc = lt_opts_set(o, name, value, true, why, cap);
			if (rc)
				return rc;
		}
		text += len;
		if (*text == '&')
			text++;
	}
	return 0;
}

static int parse_scheme(const char *url, enum lt_scheme *ret, const char **ret_rest, char *why, size_t cap)
{
	const char *sep = strstr(url, "://");
	size_t len = sep ? (size_t)(sep - url) : 0;

	if (!sep)
		return opt_fail(-EINVAL, why, cap, "\"%.200s\" is no URL: SCHEME://HOST[:PORT]/PATH is needed, SCHEME "
				"being leat, rdma, tcp or local", url);
	for (size_t i = 0; i < ARRAY_SIZE(scheme_names); i++) {
		if (strlen(scheme_names[i]) == len && !strncmp(url, scheme_names[i], len)) {
			*ret = (enum lt_scheme)i;
			*ret_rest = sep + 3;
			return 0;
		}
	}
	return opt_fail(-EINVAL, why, cap, "unknown scheme \"%.*s\": leat, rdma, tcp and local are known",
			(int)MIN(len, 64u), url);
}

/* HOST, HOST:PORT, [V6] or [V6]:PORT in @text[0..len) */
static int parse_authority(const char *text, size_t len, struct lt_url *u, char *why, size_t cap)
{
	const char *host = text, *port = NULL, *end = text + len;
	static const struct opt number = { "port", .type = OPT_NUMBER, .min = 1, .max = 65535,
					   OPT_AT(struct lt_url, port) };
	char digits[32];
	size_t host_len;
	int rc;

	if (memchr(text, '@', len))
		return opt_fail(-EINVAL, why, cap, "\"%.*s\": a user is given by uid= and gid=, not before '@'",
				(int)MIN(len, 200u), text);
	if (len && text[0] == '[') {
		const char *close = memchr(text, ']', len);

		if (!close)
			return opt_fail(-EINVAL, why, cap, "\"%.*s\": ']' is missing", (int)MIN(len, 200u), text);
		host = text + 1;
		host_len = (size_t)(close - host);
		if (close + 1 < end) {
			if (close[1] != ':')
				return opt_fail(-EINVAL, why, cap, "\"%.*s\": only :PORT may follow ']'",
						(int)MIN(len, 200u), text);
			port = close + 2;
		}
	} else {
		const char *colon = memchr(text, ':', len);

		if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
			return opt_fail(-EINVAL, why, cap, "\"%.*s\": an IPv6 address must stand in brackets",
					(int)MIN(len, 200u), text);
		host_len = colon ? (size_t)(colon - text) : len;
		port = colon ? colon + 1 : NULL;
	}
	if (!host_len)
		return opt_fail(-EINVAL, why, cap, "no host between \"//\" and the path");
	rc = decode_percent("host", host, host_len, u->host, sizeof(u->host), why, cap);
	if (rc || !port)
		return rc;
	(void)snprintf(digits, sizeof(digits), "%.*s", (int)(end - port), port);
	if ((size_t)(end - port) >= sizeof(digits) || strspn(port, "0123456789") < (size_t)(end - port))
		return opt_refuse(&number, digits, why, cap);
	return opt_set(&number, u, digits, why, cap);
}

int lt_url_parse(const char *url, const struct leat_opts *given, struct lt_url *ret, char *why,
		 size_t cap)
{
	const char *rest = url, *path;
	struct leat_opts o;
	struct lt_url *u = &o.url;
	size_t len;
	int rc;

	if (!url)
		return opt_fail(-EINVAL, why, cap, "no URL");
	lt_opts_init(&o, given);
	rc = parse_scheme(url, &u->scheme, &rest, why, cap);
	if (rc)
		return rc;
	len = strcspn(rest, "/?");
	if (u->scheme == LT_SCHEME_LOCAL) {
		if (len)
			return opt_fail(-EINVAL, why, cap, "local: no host is named: local:///PATH/OF/SOCKET/EXPORT");
	} else {
		rc = parse_authority(rest, len, u, why, cap);
		if (rc)
			return rc;
	}
	path = rest + len;
	len = strcspn(path, "?");
	rc = decode_percent("path", path, len, u->path, sizeof(u->path), why, cap);
	if (rc)
		return rc;
	if (!u->path[0])
		strcpy(u->path, "/");
	if (path[len] == '?') {
		rc = parse_options(path + len + 1, &o, why, cap);
		if (rc)
			return rc;
	}
	lt_opts_finish(u);
	if (u->modes && u->scheme == LT_SCHEME_TCP)
		return opt_fail(-EINVAL, why, cap, "design= and fast_write= are for RDMA and local, not for TCP");
	if (u->modes && !strcmp(u->registration, "window"))
		return opt_fail(-EINVAL, why, cap, "design= and fast_write= expose nothing that registration=window guards");
	*ret = *u;
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
