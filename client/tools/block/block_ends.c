/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_ends.c - source and target of `leat block cp`
 *
 * Operation:  A file is written as by `leat cp`: a new one, or one that replaces a regular file with one name, under a
 *             temporary name that is renamed at the end, with the mode of the old one and, if permitted, its owner.
 *             Others (devices, files with several names, where no file can be made) are written in place. A device
 *             must not be in use: O_EXCL.
 * Memory:     None.
 * Threads:    One.
 * Errors:     Reported here, except those of block_finish_file().
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "block_copy.h"
#include "signals.h"

int block_report(struct copy *c, const struct side *side, int err)
{
	progress_hide(&c->progress);
	return side->volume ? volume_fail(side->volume, side->arg, err) : tool_fail(NULL, side->arg, err);
}

static int open_volume(struct copy *c, struct side *side, unsigned flags)
{
	struct leat_block_info info = { .size = sizeof(info) };
	int rc = volume_attach(c->session, side->arg, flags, &side->volume);

	if (rc)
		return TOOL_FAILED;
	rc = leat_block_info(side->volume, &info);
	if (rc)
		return block_report(c, side, rc);
	side->size = info.bytes;
	side->block = info.block;
	if (side == &c->from)
		c->sparse = info.can_extents;
	return TOOL_OK;
}

static int open_source_file(struct copy *c)
{
	struct side *s = &c->from;
	struct stat st;
	off_t size;

	s->fd = open(s->arg, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0 || fstat(s->fd, &st))
		return block_report(c, s, tool_errno("open"));
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)) {
		log_err("%s: neither a regular file nor a block device", s->arg);
		return TOOL_FAILED;
	}
	size = lseek(s->fd, 0, SEEK_END);
	if (size < 0)
		return block_report(c, s, tool_errno("seek"));
	s->size = (uint64_t)size;
	s->block = 1;
	c->sparse = S_ISREG(st.st_mode);
	return TOOL_OK;
}

/* Is the target the volume that is the source? Attaching to it a second time would end the first attachment. */
static bool is_same_volume(struct copy *c)
{
	struct leat_block_info from = { .size = sizeof(from) }, to = { .size = sizeof(to) };
	struct leat_info from_server = { .size = sizeof(from_server) }, to_server = { .size = sizeof(to_server) };
	struct leat_block *look;
	bool same = false;

	if (volume_attach(c->session, c->to.arg, LEAT_BLOCK_LOOK, &look))
		return true; /* reported */
	if (!leat_block_info(look, &to) && !leat_block_info(c->from.volume, &from) &&
	    !leat_info(leat_block_handle(look), &to_server) &&
	    !leat_info(leat_block_handle(c->from.volume), &from_server))
		same = !strcmp(from.name, to.name) && to_server.is_leatd &&
		       !memcmp(from_server.instance, to_server.instance, sizeof(to_server.instance));
	(void)volume_detach(look);
	if (same)
		log_err("%s and %s are the same volume", c->from.arg, c->to.arg);
	return same;
}

static int open_target_volume(struct copy *c)
{
	int rc;

	if (c->from.volume && is_same_volume(c))
		return TOOL_FAILED;
	rc = open_volume(c, &c->to, 0);
	if (rc)
		return rc;
	if (c->to.size >= c->from.size)
		return TOOL_OK;
	log_err("%s: the volume has %" PRIu64 " bytes, less than the %" PRIu64 " of %s; nothing was written", c->to.arg,
		c->to.size, c->from.size, c->from.arg);
	return TOOL_FAILED;
}

/* The file that is written, if the argument is a directory or a link. */
static int find_path(struct copy *c, struct stat *st)
{
	char name[NAME_MAX + 1];
	char *real;
	int n;

	n = snprintf(c->path, sizeof(c->path), "%s", c->to.arg);
	if (!stat(c->path, st) && S_ISDIR(st->st_mode)) {
		char copy[TOOL_PATH_MAX];

		snprintf(copy, sizeof(copy), "%.*s", (int)strcspn(c->from.arg, "?"), c->from.arg);
		n = snprintf(c->path, sizeof(c->path), "%s/%s", c->to.arg, tool_base_name(copy, name, sizeof(name)));
	}
	if (n < 0 || (size_t)n >= sizeof(c->path))
		return -ENAMETOOLONG;
	if (stat(c->path, st))
		return errno == ENOENT ? -ENOENT : tool_errno("open");
	real = realpath(c->path, NULL);
	if (real && strlen(real) < sizeof(c->path))
		strcpy(c->path, real);
	free(real);
	return 0;
}

static bool is_source(const struct copy *c, const struct stat *st)
{
	struct stat from;

	return c->from.fd >= 0 && !fstat(c->from.fd, &from) && from.st_dev == st->st_dev && from.st_ino == st->st_ino;
}

/* Creates the temporary file. @old: of the file that it replaces, or NULL. Return: 0 or -errno */
static int make_temp(struct copy *c, const struct stat *old)
{
	const char *slash = strrchr(c->path, '/');
	char name[TOOL_TEMP_NAME_BYTES];
	struct signals_file f = { .kind = SIGNALS_REMOVE, .dir = AT_FDCWD, .path = c->temp, .place = c->path };
	int n, rc = tool_temp_name(name);

	if (rc)
		return rc;
	n = snprintf(c->temp, sizeof(c->temp), "%.*s%s", slash ? (int)(slash - c->path) + 1 : 0, c->path, name);
	if (n < 0 || (size_t)n >= sizeof(c->temp))
		return -ENAMETOOLONG;
	c->file_slot = signals_file_add(&f);
	if (c->file_slot == SIGNALS_CAME)
		return -EINTR;
	c->to.fd = open(c->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, old ? 0600 : 0666);
	rc = c->to.fd < 0 ? tool_errno("create") : 0;
	if (!rc)
		signals_file_made(c->file_slot);
	/* owner first: chown() clears bits of the mode */
	if (!rc && old && ((old->st_uid != geteuid() && fchown(c->to.fd, old->st_uid, old->st_gid)) ||
			   fchmod(c->to.fd, old->st_mode & 0777)))
		rc = -EPERM;
	if (!rc)
		return 0;
	if (c->to.fd >= 0) {
		close(c->to.fd);
		(void)unlink(c->temp);
	}
	c->to.fd = -1;
	signals_file_del(c->file_slot);
	c->file_slot = -1;
	c->temp[0] = '\0';
	return rc;
}

static int open_in_place(struct copy *c, const struct stat *st)
{
	struct signals_file f = { .kind = SIGNALS_IN_PLACE, .place = c->path };

	c->to.fd = open(c->path, O_RDWR | O_CLOEXEC | (S_ISBLK(st->st_mode) ? O_EXCL : 0));
	if (c->to.fd < 0)
		return tool_errno("open");
	c->in_place = true;
	c->to_device = S_ISBLK(st->st_mode);
	c->to.size = (uint64_t)MAX(lseek(c->to.fd, 0, SEEK_END), (off_t)0);
	if (c->to_device && c->to.size < c->from.size)
		return -ENOSPC;
	c->file_slot = signals_file_add(&f);
	return 0;
}

static int open_target_file(struct copy *c)
{
	struct stat st;
	int rc;

	c->to.block = 1;
	if (!strcmp(c->to.arg, "-")) {
		log_err("a volume is not copied to standard output; ./- names a file");
		return TOOL_FAILED;
	}
	rc = find_path(c, &st);
	if (!rc && is_source(c, &st)) {
		log_err("'%s' and '%s' are the same file", c->from.arg, c->to.arg);
		return TOOL_FAILED;
	}
	if (!rc && !S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)) {
		log_err("%s: neither a regular file nor a block device", c->path);
		return TOOL_FAILED;
	}
	if (rc == -ENOENT)
		rc = make_temp(c, NULL);
	else if (!rc && (!S_ISREG(st.st_mode) || st.st_nlink > 1 || make_temp(c, &st)))
		rc = open_in_place(c, &st);
	return rc ? block_report(c, &c->to, rc) : TOOL_OK;
}

/* ---- does the target hold data? ---- */

/* Looks for data in at most UNIT bytes at @off. Return: exit status */
static int check_unit(struct copy *c, uint64_t off, uint64_t len)
{
	size_t i = 0;
	char *buf = c->mem;
	ssize_t n;

	n = c->to.volume ? leat_block_pread(c->to.volume, buf, (size_t)len, off) :
			   pread(c->to.fd, buf, (size_t)len, (off_t)off);
	if (n < 0)
		return block_report(c, &c->to, c->to.volume ? (int)n : tool_errno("read"));
	len = MIN((uint64_t)n, c->from.size - off); /* what is behind the source's end is not overwritten */
	while (i < len && !buf[i])
		i++;
	if (i == len)
		return TOOL_OK;
	progress_hide(&c->progress);
	log_err("%s: holds data at offset %" PRIu64 "; nothing was written: use --overwrite to replace it", c->to.arg,
		off + i);
	return TOOL_FAILED;
}

/* The same in a range of any length: a target of zeroes only is read to its end. */
static int check_range(struct copy *c, uint64_t off, uint64_t len)
{
	for (uint64_t n; len && off < c->from.size; off += n, len -= n) {
		int rc;

		if (tool_interrupted())
			return block_report(c, &c->to, -EINTR);
		n = MIN(len, UNIT);
		rc = check_unit(c, off, n);
		if (rc)
			return rc;
	}
	return TOOL_OK;
}

static int check_volume(struct copy *c)
{
	struct leat_block_extent *e = c->extents;
	uint64_t off = 0;
	int rc = TOOL_OK;

	while (off < c->from.size && rc == TOOL_OK) {
		uint64_t end = MIN(c->to.size, (c->from.size + c->to.block - 1) / c->to.block * c->to.block);
		ssize_t n = leat_block_extents(c->to.volume, off, end - off, e, EXTENTS);

		if (n <= 0)
			return block_report(c, &c->to, n ? (int)n : -EREMOTEIO);
		for (ssize_t i = 0; i < n && rc == TOOL_OK; i++)
			if (e[i].kind == LEAT_BLOCK_DATA)
				rc = check_range(c, e[i].off, e[i].len);
		off = e[n - 1].off + e[n - 1].len;
	}
	return rc;
}

int block_check_target(struct copy *c)
{
	if (c->overwrite)
		return TOOL_OK;
	if (c->to.volume)
		return check_volume(c);
	return c->to_device ? check_range(c, 0, c->from.size) : TOOL_OK;
}

/* Gives the complete file its name. */
int block_finish_file(struct copy *c)
{
	if (c->to.volume)
		return 0;
	if (c->in_place)
		return !c->to_device && ftruncate(c->to.fd, (off_t)c->from.size) ? tool_errno("truncate") : 0;
	if (rename(c->temp, c->path))
		return tool_errno("rename");
	c->temp[0] = '\0';
	return 0;
}

int block_open_source(struct copy *c)
{
	return tool_is_url(c->from.arg) ? open_volume(c, &c->from, LEAT_BLOCK_RDONLY) : open_source_file(c);
}

int block_open_target(struct copy *c)
{
	return tool_is_url(c->to.arg) ? open_target_volume(c) : open_target_file(c);
}

/* A failed detach matters: the next user of the volume would wait. */
static int close_side(struct copy *c, struct side *side)
{
	const char *arg = side->arg;
	int rc = side->volume ? volume_detach(side->volume) : 0;

	side->volume = NULL;
	if (side->fd >= 0)
		close(side->fd);
	if (!rc || tool_interrupted())
		return TOOL_OK;
	progress_hide(&c->progress);
	log_err("%s: detach: %s", arg, strerror(-rc));
	return TOOL_FAILED;
}

int block_close(struct copy *c)
{
	int to, from;

	if (c->temp[0])
		(void)unlink(c->temp);
	signals_file_del(c->file_slot);
	to = close_side(c, &c->to);
	from = close_side(c, &c->from);
	return MAX(to, from);
}
