/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fsck_cmd.c - leat volume fsck: checks a volume while it is in use
 *
 * Operation:  fsck.h has the order of things. Nothing is changed without --repair, which destroys nothing.
 * Memory:     As fsck_objects.c says.
 * Threads:    One.
 * Errors:     A line for each fault. The exit status tells whether there are some, and whether all could be looked at.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsck.h"
#include "volume_cmd.h"

void fsck_fault(struct fsck *f, const char *what, const char *format, ...)
{
	va_list ap;

	f->faults++;
	tool_put_name(what);
	fputs(": ", stdout);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
}

void fsck_outcome(struct fsck *f, int rc, struct leat *m)
{
	if (f->repair && !m)
		fputs("; not repaired", stdout);
	if (f->repair && m && rc) {
		fputs("; not repaired: ", stdout);
		tool_put_name(leat_error(m));
	} else if (f->repair && m) {
		fputs("; repaired", stdout);
		f->repaired++;
	}
	putchar('\n');
}

void fsck_incomplete(struct fsck *f, const char *what, const char *why)
{
	f->incomplete = true;
	tool_put_name(what);
	fputs(": not checked: ", stdout);
	tool_put_name(why);
	putchar('\n');
}

static int summarize(const struct fsck *f)
{
	uint64_t objects = 0, removed = 0;

	for (size_t i = 0; i < f->map->nservers; i++) {
		objects += f->servers[i].n;
		for (size_t k = 0; k < f->servers[i].n; k++)
			removed += !!(f->servers[i].v[k].flags & FSCK_REMOVED);
	}
	if (f->holes)
		printf("%" PRIu64 " stripe%s no object (normal: nothing was written there)\n", f->holes,
		       f->holes == 1 ? " has" : "s have");
	printf("%" PRIu64 " file%s in %" PRIu64 " director%s, %" PRIu64 " object%s", f->files, tool_plural(f->files),
	       f->directories, f->directories == 1 ? "y" : "ies", objects, tool_plural(objects));
	if (removed)
		printf(" (%" PRIu64 " removed)", removed);
	printf(": %" PRIu64 " fault%s", f->faults, tool_plural(f->faults));
	if (f->repaired)
		printf(", %" PRIu64 " repaired", f->repaired);
	printf("%s\n", f->incomplete ? "; the check is incomplete" : "");
	if (f->faults > f->repaired)
		return FSCK_FAULTS;
	return f->incomplete ? TOOL_FAILED : f->faults ? FSCK_REPAIRED : TOOL_OK;
}

static int check_volume(struct fsck *f)
{
	struct leat_volume_work before = { .size = sizeof(before) };
	int rc = leat_volume_map(f->t.m, &f->map);

	if (!rc)
		rc = leat_volume_pending(f->t.m, f->key, NULL, NULL, &before); /* it refuses another key before anything is read */
	if (rc)
		return tool_fail(f->t.m, f->t.path, rc);
	rc = fsck_objects_list(f);
	if (!rc) {
		rc = leat_volume_pending(f->t.m, f->key, NULL, NULL, &before);
		rc = rc ? tool_fail(f->t.m, f->t.path, rc) : fsck_walk(f);
	}
	if (!rc)
		rc = fsck_orphans(f, before);
	return rc ? rc : summarize(f);
}

static int check_url(struct fsck *f, const char *url)
{
	if (tool_attach_with(url, TOOL_IMPATIENT "&cache=none", &f->t))
		return TOOL_FAILED;
	if (!strcmp(f->t.path, "/"))
		return check_volume(f);
	log_err("%s: name the volume: all of it is checked", url);
	return TOOL_FAILED;
}

static int check_with_key(struct fsck *f, const char *what)
{
	char why[VOLUME_WHY_BYTES] = "";

	if (leat_volume_key_read(f->key_file, &f->key, why, sizeof(why))) {
		log_err("%s", why);
		return TOOL_FAILED;
	}
	return f->resign ? fsck_resign(what, f->key, f->repair) : check_url(f, what);
}

static int fsck_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct fsck f = { 0 };
	int rc = tool_options(self, argc, argv, &f);

	if (rc < 0 || argc - optind != 1 || !f.key_file)
		rc = tool_usage(self);
	else
		rc = check_with_key(&f, argv[optind]);
	fsck_objects_free(&f);
	leat_volume_map_free(f.map);
	tool_detach(&f.t);
	leat_volume_key_free(f.key);
	free(f.key_file);
	return rc;
}

static const struct opt fsck_opts[] = {
	TOOL_FLAG(0, "repair", struct fsck, repair, "repairs what can be repaired without destroying anything"),
	TOOL_FLAG(0, "resign", struct fsck, resign, "signs layouts again, in the directory DIR of a manager that does not run"),
	{ "key", "FILE", NULL, "the key of the volume", NULL, OPT_TEXT, 0, OPT_AT(struct fsck, key_file) },
};

const struct tool_cmd cmd_volume_fsck = {
	"volume fsck", "--key FILE [--repair] {URL | --resign DIR}", "checks a volume while it is in use", fsck_run, fsck_opts, ARRAY_SIZE(fsck_opts),
	.mixed = true, .also = &cmd_volume_assemble,
};
