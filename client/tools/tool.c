/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tool.c - shared functions of the `leat` commands
 *
 * Operation:  See tool.h.
 * Memory:     A target owns its mount.
 * Threads:    One, except for tool_errno() and tool_fail(), which any thread may call.
 * Errors:     As each function says: reported here, or returned to the caller.
 */
#include <errno.h>
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "signals.h"
#include "tool.h"

#define PLACE_PATH_MAX 600u /* of a path in a message; of a longer one the end is shown */
#define SLICE_MS 50u

int tool_usage(const struct tool_cmd *c)
{
	fprintf(stderr, "usage: leat %s %s\n", c->name, c->args);
	return TOOL_USAGE;
}

const struct tool_cmd *tool_verb(const struct tool_cmd *c, const char *verb)
{
	size_t len = strlen(c->name);

	for (const struct tool_cmd *also = c->also; also; also = also->also)
		if (!strncmp(also->name, c->name, len) && also->name[len] == ' ' && !strcmp(also->name + len + 1, verb))
			return also;
	return NULL;
}

int tool_options(const struct tool_cmd *c, int argc, char **argv, void *to)
{
	char why[OPT_LIMITS_BYTES + 256];
	const struct opt *o;
	const char *value;
	int rc, n = 0;

	opt_init(c->opts, c->nopts, to);
	optind = 0;
	while ((rc = opt_next(c->opts, c->nopts, argc, argv, c->mixed, &o, &value, why, sizeof(why))) > 0) {
		rc = opt_set(o, to, value, why, sizeof(why));
		if (rc)
			break;
		n++;
	}
	if (rc)
		log_err("%s", why);
	return rc ? -EINVAL : n;
}

bool tool_is_url(const char *arg)
{
	static const char *const schemes[] = { "leat://", "rdma://", "tcp://", "local://" };

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		if (!strncmp(arg, schemes[i], strlen(schemes[i])))
			return true;
	}
	return false;
}

int tool_check_url(const char *arg)
{
	if (tool_is_url(arg))
		return 0;
	log_err("%s: not a URL: leat://, rdma://, tcp:// or local:// is wanted here", arg);
	return -EINVAL;
}

bool tool_ends_in_slash(const char *arg)
{
	size_t len = tool_is_url(arg) ? strcspn(arg, "?") : strlen(arg);

	return len && arg[len - 1] == '/';
}

/* Several mounts of one server report once: the first one counts. */
static void on_away(void *ctx, bool away, const char *why)
{
	static atomic_bool told;
	const char *url = ctx;
	int len = (int)strcspn(url, "?");

	if (atomic_exchange(&told, away) == away)
		return;
	fputs("\r\033[K", stderr); /* erases a progress bar; it will be redrawn */
	if (away)
		log_warn("%.*s: no reply for 5 s (%s); still waiting", len, url, why);
	else
		log_info("%.*s: the server replies again", len, url);
}

/* Sets what "NAME=VALUE&NAME=VALUE" says. */
static int set_options(struct leat_opts *o, const char *text)
{
	char copy[256], *save = NULL;
	int rc = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *name = strtok_r(copy, "&", &save); name && !rc; name = strtok_r(NULL, "&", &save)) {
		char *value = strchr(name, '=');

		if (value)
			*value++ = '\0';
		rc = leat_set(o, name, value);
	}
	return rc;
}

int tool_opts_create(const char *url, const char *opts, struct leat_opts **ret)
{
	struct leat_opts *o = leat_opts_create();
	int rc = set_options(o, opts ? opts : "");

	if (!o)
		rc = -ENOMEM;
	if (isatty(STDERR_FILENO))
		leat_set_away(o, on_away, (void *)(uintptr_t)url); /* an argument of the command: valid until exit */
	*ret = o;
	return rc;
}

int tool_mount(const char *url, const char *opts, struct leat **ret)
{
	struct leat_opts *o;
	int rc = tool_opts_create(url, opts, &o);

	if (!rc)
		rc = leat_mount(url, o, ret);
	if (!rc)
		signals_mount_add(*ret);
	leat_opts_destroy(o);
	return rc;
}

void tool_umount(struct leat *m)
{
	signals_mount_del(m);
	(void)leat_umount_within(m, tool_interrupted() ? TOOL_UMOUNT_MS : -1);
}

bool tool_is_interruption(int64_t err)
{
	return (err == -EINTR || err == -EINPROGRESS) && tool_interrupted();
}

int tool_attach(const char *url, struct tool_target *ret)
{
	return tool_attach_with(url, NULL, ret);
}

int tool_attach_with(const char *url, const char *opts, struct tool_target *ret)
{
	struct leat *m;
	size_t len;
	int rc;

	rc = tool_check_url(url);
	if (rc)
		return rc;
	rc = tool_mount(url, opts, &m);
	if (rc < 0) {
		log_err("%s", leat_error(NULL));
		return rc;
	}
	ret->arg = url;
	ret->m = m;
	(void)leat_describe(m, LEAT_TEXT_URL, 0, ret->at, sizeof(ret->at));
	ret->path[0] = '/';
	(void)leat_describe(m, LEAT_TEXT_PATH, 0, ret->path + 1, sizeof(ret->path) - 1);
	len = strlen(ret->path);
	/* a mount drops a trailing slash, which requires the name to be a directory */
	if (len > 1 && len < sizeof(ret->path) - 1 && tool_ends_in_slash(url))
		strcpy(ret->path + len, "/");
	return 0;
}

void tool_detach(struct tool_target *t)
{
	tool_umount(t->m);
	t->m = NULL;
}

bool tool_same_export(const struct tool_target *a, const struct tool_target *b)
{
	if (!strcmp(a->at, b->at))
		return true;
	log_err("%s and %s are not on the same export", a->arg, b->arg);
	return false;
}

bool tool_same_server(const struct tool_target *a, const struct tool_target *b)
{
	struct leat_info of_a = { .size = sizeof(of_a) }, of_b = { .size = sizeof(of_b) };

	if (!a->m || !b->m)
		return !a->m && !b->m;
	if (!strcmp(a->at, b->at))
		return true;
	leat_info(a->m, &of_a);
	leat_info(b->m, &of_b);
	return of_a.is_leatd && of_b.is_leatd && !memcmp(of_a.instance, of_b.instance, sizeof(of_a.instance));
}

int tool_temp_name(char ret[TOOL_TEMP_NAME_BYTES])
{
	uint64_t r;

	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return -EIO;
	snprintf(ret, TOOL_TEMP_NAME_BYTES, TOOL_TEMP_NAME_FMT, r);
	return 0;
}

bool tool_is_temp_name(const char *name)
{
	return text_is_hex_name(name, TOOL_TEMP_PREFIX);
}

char *tool_place(struct leat *m, const char *path, char buf[TOOL_PLACE_BYTES])
{
	char given[512] = "";
	/* the options of the URL do not matter for the message */
	size_t len = tool_is_url(path) ? strcspn(path, "?") : strlen(path), url_len = 0;
	bool is_cut = len > PLACE_PATH_MAX;

	if (m && path[0] == '/') {
		(void)leat_describe(m, LEAT_TEXT_GIVEN_URL, 0, given, sizeof(given));
		url_len = strlen(given);
		if (url_len && given[url_len - 1] == '/')
			url_len--; /* of the export "/" */
		if (len == 1)
			len = 0; /* the root of the export */
	}
	snprintf(buf, TOOL_PLACE_BYTES, "%.*s%s%.*s", (int)url_len, given,
		 is_cut ? "/..." : "", (int)MIN(len, (size_t)PLACE_PATH_MAX),
		 is_cut ? path + len - PLACE_PATH_MAX : path);
	return buf;
}

const char *tool_explain(const char *text, const char *place, const char *reason)
{
	size_t len = strlen(place);
	const char *at;

	if (!strncmp(text, place, len))
		text += len;
	for (at = strstr(text, reason); at; at = strstr(at + 1, reason)) {
		if (at - text < 2 || memcmp(at - 2, ": ", 2) != 0)
			continue;
		for (at -= 2; at > text && memcmp(at - 1, ": ", 2) != 0;)
			at--;
		return at > text ? at + 1 : at;
	}
	return reason;
}

/* The last failed operation on a local file in this thread, and its errno. */
static _Thread_local struct {
	const char *operation;
	int err;
} failed;

int tool_errno(const char *operation)
{
	failed.operation = operation;
	failed.err = -errno;
	return failed.err;
}

static const char *reason_of(int err, char buf[64])
{
	if (err != TOOL_TOO_MANY)
		return strerror(-err);
	snprintf(buf, 64, "too many directory entries (limit %u)", TOOL_ENTRIES_MAX);
	return buf;
}

int tool_fail(struct leat *m, const char *name, int err)
{
	char many[64];
	const char *text = m ? leat_error(m) : "", *reason = reason_of(err, many), *what = "";
	char place[TOOL_PLACE_BYTES];
	size_t len = strlen(tool_place(m, name, place));

	if (!m && failed.err == err)
		what = failed.operation;
	if (tool_is_interruption(err))
		log_err("%s: interrupted", place);
	else if (!strncmp(text, place, len) && !strncmp(text + len, " to ", 4) && strstr(text + len, reason))
		log_err("%s", text); /* the operation has two names, and the second one matters too */
	else if (*what)
		log_err("%s: %s: %s", place, what, reason);
	else
		log_err("%s: %s", place, tool_explain(text, place, reason));
	return TOOL_FAILED;
}

int tool_each(int argc, char **argv, int (*fn)(struct tool_target *t, void *ctx), void *ctx)
{
	int worst = TOOL_OK;

	for (int i = 0; i < argc && !tool_interrupted(); i++) {
		struct tool_target t = { 0 };
		int rc = TOOL_FAILED;

		if (!tool_attach(argv[i], &t))
			rc = fn(&t, ctx);
		tool_detach(&t);
		worst = MAX(worst, rc);
	}
	return worst;
}

int tool_ask(const char *url, int (*fn)(struct leat *m, void *ctx), void *ctx)
{
	struct leat *m;
	int rc;

	if (tool_mount(url, "connect_only=yes", &m)) {
		log_err("%s", leat_error(NULL));
		return TOOL_FAILED;
	}
	rc = fn(m, ctx);
	if (rc == -EOPNOTSUPP && !*leat_error(m)) {
		log_err("%s: only a leatd can be asked for that", url);
		rc = TOOL_FAILED;
	} else if (rc) {
		rc = tool_fail(m, url, rc);
	}
	tool_umount(m);
	return rc;
}

void tool_sleep(uint64_t ms)
{
	uint64_t until = clock_now_ns() + ms * NS_PER_MS;

	for (uint64_t now; now = clock_now_ns(), now < until && !tool_interrupted();) {
		uint64_t ns = MIN(until - now, SLICE_MS * NS_PER_MS);
		struct timespec ts = { .tv_nsec = (long)ns };

		nanosleep(&ts, NULL);
	}
}

int tool_path_init(struct tool_path *p, const char *text)
{
	p->len = strlen(text);
	if (p->len >= sizeof(p->text))
		return -ENAMETOOLONG;
	memcpy(p->text, text, p->len + 1);
	while (p->len > 1 && p->text[p->len - 1] == '/')
		p->text[--p->len] = '\0';
	return 0;
}

int tool_path_push(struct tool_path *p, const char *name)
{
	size_t len = strlen(name);
	bool slash = p->len && p->text[p->len - 1] != '/';

	if (p->len + slash + len >= sizeof(p->text))
		return -ENAMETOOLONG;
	if (slash)
		p->text[p->len++] = '/';
	memcpy(p->text + p->len, name, len + 1);
	p->len += len;
	return 0;
}

void tool_path_cut(struct tool_path *p, size_t len)
{
	p->len = len;
	p->text[len] = '\0';
}

const char *tool_base_name(const char *path, char *buf, size_t cap)
{
	size_t end = strlen(path), start;

	while (end && path[end - 1] == '/')
		end--;
	for (start = end; start && path[start - 1] != '/';)
		start--;
	snprintf(buf, cap, "%.*s", (int)MIN(end - start, cap - 1), path + start);
	return buf;
}

void tool_put_name(const char *name)
{
	struct text_state s = { 0 };

	if (!isatty(STDOUT_FILENO)) {
		fputs(name, stdout);
		return;
	}
	for (; *name; name++)
		putchar(text_is_control((unsigned char)*name, &s) ? '?' : *name);
}

char *tool_print_size(uint64_t bytes, char buf[16])
{
	static const char units[] = "KMGTPE";
	double n = (double)bytes;
	int unit = -1;

	while (n >= 1024 && unit < 5) {
		n /= 1024;
		unit++;
	}
	if (unit < 0)
		snprintf(buf, 16, "%u", (unsigned)bytes);
	else
		snprintf(buf, 16, n < 10 ? "%.1f%c" : "%.0f%c", n, units[unit]);
	return buf;
}

unsigned tool_use_percent(uint64_t used, uint64_t avail)
{
	double of = (double)used + (double)avail, percent = of > 0 ? (double)used * 100 / of : 0;

	return (unsigned)percent + (percent > (unsigned)percent);
}
