/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ping.c - leat ping: reachability, selected transport, reasons against faster ones, round-trip time
 *
 * Operation:  Mounts, makes NULL calls in sequence, prints the state of the handle. To a block volume it connects without
 *             attaching, so it disturbs no holder.
 * Memory:     The round-trip times.
 * Threads:    One.
 * Errors:     Status 1 if the mount or a call fails.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tool.h"
#include "tool_volume.h"

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int ping_calls(struct leat *m, uint64_t *ns, unsigned count)
{
	int rc;

	for (unsigned i = 0; i < count; i++) {
		uint64_t start = clock_now_ns();

		rc = leat_null(m);
		if (rc)
			return rc;
		ns[i] = clock_now_ns() - start;
		if (tool_interrupted())
			return -EINTR;
	}
	return 0;
}

/* Prints a line, unless the library has nothing to say about it. */
static void print_text(struct leat *m, const char *label, enum leat_text what)
{
	char text[512];

	if (leat_describe(m, what, 0, text, sizeof(text)) > 0)
		printf("%-12s %s\n", label, text);
}

static void print_transport(struct leat *m)
{
	char name[16], device[64];

	(void)leat_describe(m, LEAT_TEXT_TRANSPORT, 0, name, sizeof(name));
	if (leat_describe(m, LEAT_TEXT_DEVICE, 0, device, sizeof(device)) > 0 && strcmp(device, name) != 0)
		printf("%-12s %s (%s)\n", "transport", name, device);
	else
		printf("%-12s %s\n", "transport", name);
	print_text(m, "because", LEAT_TEXT_CHOSEN);
}

/* Transports that the server lacks are in the line "because". */
static void print_refused(struct leat *m)
{
	char text[512];

	for (size_t i = 0; leat_describe(m, LEAT_TEXT_REFUSED, i, text, sizeof(text)) >= 0; i++) {
		if (!strncmp(strchr(text, ':'), "://", 3))
			printf("%-12s %s\n", "not", text);
	}
}

/* What the URL names. Return: 0 or -errno */
static int print_object(struct leat_block *b, struct leat *m)
{
	char text[VOLUME_TEXT_BYTES];
	int rc;

	if (!b) {
		print_text(m, "export", LEAT_TEXT_URL);
		return 0;
	}
	rc = volume_describe(b, text);
	if (!rc)
		printf("%-12s %s\n", "volume", text);
	return rc;
}

static int ping_one(struct leat_block *b, struct leat *m, const char *url, unsigned count)
{
	struct leat_info info = { .size = sizeof(info) };
	char strategy[32];
	uint64_t *ns = calloc(count, sizeof(*ns));
	int err = ns ? ping_calls(m, ns, count) : -ENOMEM;

	if (!err)
		err = print_object(b, m);
	if (err) {
		free(ns);
		return tool_fail(m, url, err);
	}
	qsort(ns, count, sizeof(*ns), compare_times);
	leat_info(m, &info);
	print_text(m, "server", LEAT_TEXT_SERVER);
	print_transport(m);
	print_refused(m);
	printf("%-12s p50 %.1f us, best %.1f, worst %.1f, of %u calls\n", "round trip",
	       tool_us(ns[count / 2]), tool_us(ns[0]), tool_us(ns[count - 1]), count);
	printf("%-12s %" PRIu32 ", lowest %" PRIu32 ", on %u connection%s\n", "credits",
	       info.credits, info.credits_low, info.conns, tool_plural(info.conns));
	if (info.send_inline)
		printf("%-12s send %" PRIu32 ", receive %" PRIu32 " bytes\n", "inline",
		       info.send_inline, info.recv_inline);
	else
		printf("%-12s all of it: a stream\n", "inline");
	if (!b)
		printf("%-12s read %" PRIu32 ", write %" PRIu32 " bytes at once\n", "sizes", info.rsize,
		       info.wsize);
	if (leat_describe(m, LEAT_TEXT_REGISTRATION, 0, strategy, sizeof(strategy)) > 0)
		printf("%-12s %s, remote invalidation %s\n", "registration", strategy, info.remote_inv ? "yes" : "no");
	print_text(m, "kept", LEAT_TEXT_KEPT);
	print_text(m, "identity", LEAT_TEXT_IDENTITY);
	print_text(m, "modes", LEAT_TEXT_MODES);
	if (info.fast_write)
		printf("%-12s of up to %" PRIu32 " bytes\n", "fast writes", info.fast_write);
	free(ns);
	return TOOL_OK;
}

static int ping_url(const char *url, unsigned count)
{
	char why[VOLUME_WHY_BYTES];
	struct leat_block *b;
	struct leat *m;
	int rc;

	if (tool_check_url(url))
		return TOOL_FAILED;
	if (volume_or_mount(url, TOOL_IMPATIENT, &b, &m, why)) {
		log_err("%s", why);
		return TOOL_FAILED;
	}
	rc = ping_one(b, m, url, count);
	volume_or_umount(b, m);
	return rc;
}

struct ping {
	unsigned count;
};

static int ping_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct ping ping;
	int worst = TOOL_OK;

	if (tool_options(self, argc, argv, &ping) < 0 || optind == argc)
		return tool_usage(self);
	for (int i = optind; i < argc && !tool_interrupted(); i++) {
		int rc = ping_url(argv[i], ping.count);

		worst = MAX(worst, rc);
	}
	return worst;
}

static const struct opt opts[] = {
	{ NULL, "COUNT", "100", "calls", NULL, OPT_NUMBER, 'c', OPT_AT(struct ping, count), .min = 1, .max = 1000000 },
};

const struct tool_cmd cmd_ping = { "ping", "[-c COUNT] URL...", "which transport, why no better one, round-trip time",
				   ping_run, opts, ARRAY_SIZE(opts), .mixed = false };
