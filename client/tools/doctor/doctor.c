/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * doctor.c - leat doctor: shows the machine's capabilities, the transport of a URL, and obstacles
 *
 * Operation:  First the machine (doctor_host.c, doctor_rdma.c). Then each URL is connected as any other
 *             command would do it. The handle reports which transport was selected, which were refused,
 *             and why; this file decides nothing of that. A URL without an export is only connected, and that of a block
 *             volume, whose holders it does not disturb. Of a striped volume each stripe server is
 *             connected, too. For a local directory or file, the O_DIRECT alignment is shown.
 * Memory:     One handle at a time.
 * Threads:    One.
 * Errors:     Status 1 if a URL cannot be used at all, or a path cannot be read. A missing capability of
 *             the machine is not a failure.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "doctor.h"
#include "leat_volume.h"
#include "tool.h"
#include "tool_volume.h"

void doctor_say(const char *subject, const struct doctor_finding *f)
{
	static const char *const verdicts[] = {
		[DOCTOR_OK] = "ok", [DOCTOR_SLOWER] = "slower", [DOCTOR_MISSING] = "missing",
	};
	struct doctor_finding clean = *f;

	text_clean(clean.text);
	printf("%-10s %-7s %s\n", subject, verdicts[f->verdict], clean.text);
}

void doctor_report(const char *subject, enum doctor_verdict verdict, const char *fmt, ...)
{
	struct doctor_finding f = { .verdict = verdict };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f.text, sizeof(f.text), fmt, ap);
	va_end(ap);
	doctor_say(subject, &f);
}

/* leatd's default address, as server/spine/cm.c selects it. Return: is there a socket? */
static bool default_url(char *url, size_t cap)
{
	const char *run = geteuid() == 0 ? NULL : getenv("XDG_RUNTIME_DIR");
	const char *const dirs[] = { run, "/run" };
	char path[200];
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		if (!dirs[i])
			continue;
		snprintf(path, sizeof(path), "%.150s/leat/leatd.sock", dirs[i]);
		if (!stat(path, &st) && S_ISSOCK(st.st_mode)) {
			snprintf(url, cap, "local://%s", path);
			return true;
		}
	}
	return false;
}

/* the host of a URL; "" for a local one */
static const char *host_of(const char *url, char *host, size_t cap)
{
	const char *at = strstr(url, "://");

	host[0] = '\0';
	if (!at)
		return host;
	at += 3;
	if (*at == '[')
		snprintf(host, cap, "%.*s", (int)strcspn(at + 1, "]"), at + 1);
	else
		snprintf(host, cap, "%.*s", (int)strcspn(at, ":/?"), at);
	return host;
}

/* Return: the part after the longest prefix of a path that is a socket; NULL without a socket. */
static const char *after_socket(const char *path)
{
	size_t len = strcspn(path, "?");
	char copy[TOOL_PATH_MAX];
	struct stat st;

	if (len >= sizeof(copy))
		return NULL;
	memcpy(copy, path, len);
	for (; len; len--) {
		if (path[len] != '/' && len != strcspn(path, "?"))
			continue;
		copy[len] = '\0';
		if (!stat(copy, &st) && S_ISSOCK(st.st_mode))
			return path + len;
	}
	return NULL;
}

/* Does a URL name an export? A local one begins with its socket and may end there. */
static bool names_export(const char *url)
{
	const char *at = strstr(url, "://") + 3, *path = at + strcspn(at, "/?"), *rest = path;

	if (!strncmp(url, "local:", 6)) {
		rest = after_socket(path);
		if (!rest)
			return true; /* the mount will report that there is no socket */
	}
	return strcspn(rest, "?") > 1;
}

static void say_memory(struct leat *m, const struct leat_info *info)
{
	bool copies = info->reach == LEAT_REACH_BOUNCE || info->reach == LEAT_REACH_SOCKET;
	char reach[96], strategy[32];
	bool registers = leat_describe(m, LEAT_TEXT_REGISTRATION, 0, strategy, sizeof(strategy)) > 0 &&
			 strcmp(strategy, "none") != 0;

	(void)leat_describe(m, LEAT_TEXT_REACH, 0, reach, sizeof(reach));
	doctor_report("memory", copies ? DOCTOR_SLOWER : DOCTOR_OK, "%s%s%s", reach, registers ? "; registration " : "",
		      registers ? strategy : "");
}

static void say_transport(struct leat *m, const struct leat_info *info)
{
	char name[16], device[64], chosen[256], refused[512], *why;

	for (unsigned i = 0; i < info->nrefused; i++) {
		(void)leat_describe(m, LEAT_TEXT_REFUSED, i, refused, sizeof(refused));
		doctor_report("way", DOCTOR_MISSING, "not %s", refused);
	}
	(void)leat_describe(m, LEAT_TEXT_TRANSPORT, 0, name, sizeof(name));
	(void)leat_describe(m, LEAT_TEXT_DEVICE, 0, device, sizeof(device));
	(void)leat_describe(m, LEAT_TEXT_CHOSEN, 0, chosen, sizeof(chosen));
	why = strchr(chosen, ':');
	if (!strcmp(device, name))
		device[0] = '\0';
	doctor_report("way", info->transport == LEAT_TRANSPORT_TCP ? DOCTOR_SLOWER : DOCTOR_OK, "%s%s%s%s: %s", name,
		      device[0] ? " (" : "", device, device[0] ? ")" : "", why ? why + 2 : chosen);
}

static void say_connection(struct leat *m, const struct leat_info *info)
{
	char server[64], url[512], identity[160];

	(void)leat_describe(m, LEAT_TEXT_SERVER, 0, server, sizeof(server));
	(void)leat_describe(m, LEAT_TEXT_URL, 0, url, sizeof(url));
	doctor_report("server", DOCTOR_OK, "%s, at %s", server, url);
	say_transport(m, info);
	if (info->send_inline)
		doctor_report("messages", DOCTOR_OK, "calls of %u and replies of %u bytes go without chunks; "
			      "%u credits on %u connection%s so far", info->send_inline, info->recv_inline,
			      info->credits, info->conns, tool_plural(info->conns));
	else
		doctor_report("messages", DOCTOR_OK, "a stream; %u calls at once on %u connection%s",
			      info->credits, info->conns, tool_plural(info->conns));
	say_memory(m, info);
	if (leat_describe(m, LEAT_TEXT_IDENTITY, 0, identity, sizeof(identity)) > 0)
		doctor_report("identity", DOCTOR_OK, "%s", identity);
}

/* An export of a server on this host usually has the name of its directory. */
static void try_export(struct leat *m)
{
	char url[512];
	const char *path;
	struct stat st;

	(void)leat_describe(m, LEAT_TEXT_URL, 0, url, sizeof(url));
	path = after_socket(url + strlen("local://"));

	if (path && path[0] && path[1] && !stat(path, &st) && S_ISDIR(st.st_mode))
		(void)doctor_direct(path); /* it reports its errors itself */
}

/* Checks what the URL names inside the export. Return: 0, or -errno, reported */
static int doctor_path(struct leat *m, const char *path)
{
	struct tool_path full;
	struct stat st;
	int rc = tool_path_init(&full, "/");

	if (!rc)
		rc = tool_path_push(&full, path);
	if (!rc)
		rc = leat_lstat(m, full.text, &st);
	if (!rc)
		return 0;
	doctor_report("path", DOCTOR_MISSING, "%s", rc == -ENAMETOOLONG ? strerror(-rc) : leat_error(m));
	return rc;
}

/* Describes the volume that the URL names. Return: 0, or -errno, reported */
static int doctor_volume(struct leat_block *b)
{
	char text[VOLUME_TEXT_BYTES];
	int rc = volume_describe(b, text);

	doctor_report("volume", rc ? DOCTOR_MISSING : DOCTOR_OK, "%s", rc ? leat_error(leat_block_handle(b)) : text);
	return rc;
}

/* Is the stripe server there? Return: 0, or -errno, reported */
static int doctor_stripe_server(const struct leat_volume_server *s)
{
	struct leat *m = NULL;
	int rc = tool_mount(s->url, "connect_only=yes&" TOOL_IMPATIENT, &m);

	if (!rc)
		rc = leat_null(m);
	doctor_report("stripes", rc ? DOCTOR_MISSING : DOCTOR_OK, "server %" PRIu32 "%s%s%s%s%s", s->id, rc ? "" : ", at ",
		      rc ? "" : s->url, s->out ? ", which new files avoid" : "", rc ? ": " : "", rc ? leat_error(m) : "");
	tool_umount(m);
	return rc;
}

/* The stripe servers of the volume, if it is one. Return: 0, or -errno, reported */
static int doctor_stripes(struct leat *m)
{
	struct leat_volume_map *map;
	int err = 0;

	if (leat_volume_map(m, &map))
		return 0;
	for (size_t i = 0; i < map->nservers && !tool_interrupted(); i++) {
		int rc = doctor_stripe_server(map->servers[i]);

		err = err ? err : rc;
	}
	leat_volume_map_free(map);
	return err;
}

static int doctor_url(const char *url)
{
	struct leat_info info = { .size = sizeof(info) };
	char host[256], path[TOOL_PATH_MAX], text[MAX(VOLUME_WHY_BYTES, VOLUME_TEXT_BYTES)];
	struct leat_block *b;
	struct leat *m;
	int rc, answer, stripes = 0;

	host_of(url, host, sizeof(host));
	if (volume_or_mount(url, names_export(url) ? TOOL_IMPATIENT : TOOL_IMPATIENT "&connect_only=yes", &b, &m, text)) {
		if (host[0])
			doctor_route(host, !strncmp(url, "rdma:", 5));
		doctor_report("server", DOCTOR_MISSING, "%s", text);
		return TOOL_FAILED;
	}
	rc = answer = leat_null(m);
	leat_info(m, &info);
	if (host[0])
		doctor_route(host, info.transport == LEAT_TRANSPORT_RDMA);
	say_connection(m, &info);
	(void)leat_describe(m, LEAT_TEXT_PATH, 0, path, sizeof(path));
	if (!rc && b)
		rc = doctor_volume(b);
	else if (!rc && path[0])
		rc = doctor_path(m, path);
	else if (info.transport == LEAT_TRANSPORT_LOCAL)
		try_export(m);
	if (answer)
		doctor_report("server", DOCTOR_MISSING, "it does not reply: %s", leat_error(m));
	else if (!b)
		stripes = doctor_stripes(m);
	volume_or_umount(b, m);
	return rc || stripes ? TOOL_FAILED : TOOL_OK;
}

static int doctor_run(const struct tool_cmd *self, int argc, char **argv)
{
	int worst = TOOL_OK;
	char url[256];

	if (tool_options(self, argc, argv, NULL) < 0)
		return tool_usage(self);
	(void)doctor_host();
	for (int i = optind; i < argc && !tool_interrupted(); i++) {
		int rc = tool_is_url(argv[i]) ? doctor_url(argv[i]) :
			 doctor_direct(argv[i]) ? TOOL_FAILED : TOOL_OK;

		worst = MAX(worst, rc);
	}
	if (optind < argc)
		return worst;
	if (default_url(url, sizeof(url)))
		return doctor_url(url);
	doctor_report("server", DOCTOR_OK, "none of this host was found where leatd listens by default: say a "
		      "URL to try one");
	return worst;
}

const struct tool_cmd cmd_doctor = { "doctor", "[URL | PATH]...",
				     "what this machine offers, which way a URL goes and why", .run = doctor_run };
