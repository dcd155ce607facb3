/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tool_volume.c - attachments to block volumes, for the commands that use them
 *
 * Operation:  As tool_attach() for exports.
 * Memory:     An attachment belongs to its command.
 * Threads:    Any, each with its own attachments.
 * Errors:     As each function says.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "signals.h"
#include "tool_volume.h"

int volume_attach(struct leat_session *s, const char *url, unsigned flags, struct leat_block **ret)
{
	struct leat_opts *o;
	int rc = tool_check_url(url);

	if (rc)
		return rc;
	rc = tool_opts_create(url, NULL, &o);
	if (!rc)
		rc = s ? leat_session_attach(s, url, o, flags, ret) : leat_block_attach(url, o, flags, ret);
	leat_opts_destroy(o);
	if (rc)
		log_err("%s", leat_error(NULL));
	else
		signals_mount_add(leat_block_handle(*ret));
	return rc;
}

int volume_detach(struct leat_block *b)
{
	signals_mount_del(leat_block_handle(b));
	return leat_block_detach_within(b, tool_interrupted() ? TOOL_UMOUNT_MS : -1);
}

/* Return: 0: @url is that of a volume; -errno: it is not, and @why says it if the server has the block program */
static int look(const char *url, const char *opts, struct leat_block **ret, char why[VOLUME_WHY_BYTES])
{
	struct leat_block_info info = { .size = sizeof(info) };
	struct leat_opts *o;
	int rc = tool_opts_create(url, opts, &o);

	if (!rc)
		rc = leat_block_attach(url, o, LEAT_BLOCK_LOOK, ret);
	leat_opts_destroy(o);
	if (rc)
		return rc;
	rc = leat_block_info(*ret, &info);
	if (rc) {
		if (rc == -ENOENT)
			(void)snprintf(why, VOLUME_WHY_BYTES, "%.400s: the server has no such volume, and exports no such path", url);
		else if (rc == -EACCES)
			(void)snprintf(why, VOLUME_WHY_BYTES, "%s", leat_error(leat_block_handle(*ret)));
		(void)leat_block_detach(*ret);
	}
	return rc;
}

int volume_or_mount(const char *url, const char *opts, struct leat_block **ret_b, struct leat **ret_m,
		    char why[VOLUME_WHY_BYTES])
{
	int rc = tool_mount(url, opts, ret_m);

	*ret_b = NULL;
	if (!rc)
		return 0;
	(void)snprintf(why, VOLUME_WHY_BYTES, "%s", leat_error(NULL));
	if (rc != -ENOENT || !strstr(url, "/block/") || look(url, opts, ret_b, why))
		return rc;
	*ret_m = leat_block_handle(*ret_b);
	signals_mount_add(*ret_m);
	return 0;
}

void volume_or_umount(struct leat_block *b, struct leat *m)
{
	if (b)
		(void)volume_detach(b);
	else
		tool_umount(m);
}

int volume_describe(struct leat_block *b, char ret[VOLUME_TEXT_BYTES])
{
	struct leat_block_info info = { .size = sizeof(info) };
	int rc = leat_block_info(b, &info);
	char size[16];

	if (rc)
		return rc;
	(void)snprintf(ret, VOLUME_TEXT_BYTES, "%s, %s in blocks of %" PRIu32 " bytes, %s, %s, %" PRIu32 " holder%s",
		       info.name, tool_print_size(info.bytes, size), info.block,
		       info.rdonly ? "read-only" : "read and write", info.shared ? "shared" : "exclusive", info.holders,
		       tool_plural(info.holders));
	text_clean(ret);
	return 0;
}

int volume_fail(const struct leat_block *b, const char *url, int err)
{
	return tool_fail(leat_block_handle(b), url, err);
}
