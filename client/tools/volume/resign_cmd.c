/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * resign_cmd.c - leat volume fsck --resign: signs layouts again in the directory of a manager
 *
 * Operation:  The library visits all files. Nothing is changed without --repair.
 * Memory:     As volume_resign.c says.
 * Threads:    One.
 * Errors:     A line for each file. The exit status is that of a check.
 */
#include <stdio.h>
#include <string.h>

#include "fsck.h"
#include "volume_cmd.h"

struct resigning {
	bool repair;
	uint64_t found, signed_again;
	bool incomplete;
};

static const char *text_of(enum leat_volume_layout_state state)
{
	switch (state) {
	case LEAT_VOLUME_LAYOUT_OLD_KEY:
		return "its layout is signed with an old key";
	case LEAT_VOLUME_LAYOUT_COPIED:
		return "its layout is signed for another file";
	case LEAT_VOLUME_LAYOUT_SHARED:
		return "its layout is signed for another file, and another file has the same object; not signed";
	case LEAT_VOLUME_LAYOUT_DAMAGED:
		return "its layout is damaged, or of another volume; not signed";
	case LEAT_VOLUME_LAYOUT_MISSING:
		return "it has no layout, and is not empty; not signed";
	case LEAT_VOLUME_LAYOUT_UNSURE:
		return "its layout is signed for another file, perhaps for one that could not be read; not signed";
	case LEAT_VOLUME_LAYOUT_UNREAD:
		break;
	}
	return NULL;
}

static int tell_file(void *ctx, const char *path, enum leat_volume_layout_state state, int err)
{
	struct resigning *r = ctx;
	const char *text = text_of(state);

	tool_put_name(path);
	if (text) {
		r->found++;
		r->signed_again += r->repair && !err;
		printf(": %s%s\n", text, r->repair && !err ? "; signed again" : "");
	} else {
		r->incomplete = true;
		printf(": %s\n", strerror(-err));
	}
	return tool_interrupted() ? -EINTR : 0;
}

int fsck_resign(const char *dir, const struct leat_volume_key *key, bool repair)
{
	struct resigning r = { .repair = repair };
	char why[VOLUME_WHY_BYTES] = "";

	if (leat_volume_resign(dir, key, repair, tell_file, &r, why, sizeof(why))) {
		log_err("%s", why);
		return TOOL_FAILED;
	}
	printf("%" PRIu64 " layouts are not valid with the first key", r.found);
	if (repair)
		printf(", %" PRIu64 " signed again", r.signed_again);
	printf("%s\n", r.incomplete ? "; the check is incomplete" : "");
	if (r.found > r.signed_again)
		return FSCK_FAULTS;
	return r.incomplete ? TOOL_FAILED : r.found ? FSCK_REPAIRED : TOOL_OK;
}
