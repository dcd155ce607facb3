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
#include "signals.h"
#include "tool_volume.h"

int volume_attach(struct leat_session *s, const char *url, unsigned flags, struct leat_block **ret)
{
	struct leat_opts *o;
	int rc;

	if (!tool_is_url(url)) {
		log_err("%s: not a URL: leat://, rdma://, tcp:// or local:// is wanted here", url);
		return -EINVAL;
	}
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

int volume_fail(const struct leat_block *b, const char *url, int err)
{
	return tool_fail(leat_block_handle(b), url, err);
}
