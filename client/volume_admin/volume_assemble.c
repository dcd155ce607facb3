/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_assemble.c - puts a striped file together from directories of stripes, without stripe servers
 *
 * Operation: Each stripe is copied from its object, which need not exist, to its places in a new file; holes stay holes.
 *            What the record of an object says is obeyed: a cut that is still to be done, a tombstone. An object of another
 *            epoch than the layout is refused: something is still to be done there, or the layout is an old one.
 * Memory:    One buffer.
 * Threads:   Any.
 * Errors:    -errno with a text for the administrator; then there is no new file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/opt.h"
#include "base/text.h"
#include "base/util.h"
#include "layout.h"
#include "leat_volume.h"
#include "stripe_record.h"

#define MARKER "leat-stripes"
#define MARKER_FORMAT "leat-stripes 1\nvolume = %" SCNx64 "\nserver = %" SCNu32 "\nrecord = %63s"
#define COPY_BYTES (1u << 20)

struct assembly {
	const struct leat_volume_layout *l;
	struct layout at;
	uint64_t volume;
	const char *const *dirs;
	size_t ndirs;
	const char *dir; /* of the present stripe */
	int out;
	char *buf;
	char *why;
	size_t why_bytes;
};

static int fail(const struct assembly *a, int err, const char *what)
{
	return opt_fail(err, a->why, a->why_bytes, "%s: %s", what, strerror(-err));
}

/* ---- the object of a stripe --------------------------------------------------------------------- */

/* Return: 0, with what the marker of the directory says; -errno */
static int read_marker(const struct assembly *a, int dir, const char *name, uint64_t *volume, uint32_t *server, char record[64])
{
	int fd = openat(dir, MARKER, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char text[256];
	ssize_t n;

	if (fd < 0)
		return fail(a, -errno, name);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[MAX(n, 0)] = '\0';
	if (sscanf(text, MARKER_FORMAT, volume, server, record) != 3)
		return opt_fail(-EINVAL, a->why, a->why_bytes, "%s: not a directory of stripes", name);
	return 0;
}

/* Opens the directory that has the stripes of a server. Return: a descriptor; -errno */
static int open_dir(struct assembly *a, uint32_t server, char record[64])
{
	for (size_t i = 0; i < a->ndirs; i++) {
		int dir = open(a->dirs[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
		uint64_t volume = 0;
		uint32_t id = 0;

		if (dir < 0)
			return fail(a, -errno, a->dirs[i]);
		err = read_marker(a, dir, a->dirs[i], &volume, &id, record);
		if (!err && volume != a->volume)
			err = opt_fail(-EINVAL, a->why, a->why_bytes, "%s: it is of volume %016" PRIx64, a->dirs[i], volume);
		a->dir = a->dirs[i];
		if (!err && id == server)
			return dir;
		close(dir);
		if (err)
			return err;
	}
	return opt_fail(-ENOENT, a->why, a->why_bytes, "no directory is that of server %" PRIu32, server);
}

/* Return: 0; -errno: a tombstone, another epoch, or a damaged record */
static int check_record(const struct assembly *a, int fd, const char *attribute, const char *path, uint64_t *ret_end)
{
	struct stripe_record r = stripe_record_none();
	uint8_t bytes[STRIPE_RECORD_BYTES];
	ssize_t n = fgetxattr(fd, attribute, bytes, sizeof(bytes));
	int err = n >= 0 ? stripe_record_decode(bytes, (size_t)n, &r) : errno == ENODATA ? 0 : -errno;

	if (err)
		return opt_fail(err, a->why, a->why_bytes, "%s/%s: its record: %s", a->dir, path, strerror(-err));
	if (r.removed)
		return opt_fail(-ESTALE, a->why, a->why_bytes, "%s/%s: it was removed", a->dir, path);
	if (r.epoch != a->l->epoch)
		return opt_fail(-ESTALE, a->why, a->why_bytes, "%s/%s: it has epoch %" PRIu64 ", and the file %" PRIu64, a->dir, path,
				r.epoch, a->l->epoch);
	*ret_end = MIN(*ret_end, r.cut);
	return 0;
}

/* The object does not exist. Return: -ENOENT: nothing was written there; another -errno with a text */
static int check_missing(const struct assembly *a, int dir, const char *path)
{
	if (faccessat(dir, "objects", F_OK, 0))
		return opt_fail(-EINVAL, a->why, a->why_bytes, "%s: it lacks its directory objects", a->dir);
	if (a->l->epoch != 1) /* a fence leaves a record where nothing was written, too */
		return opt_fail(-ESTALE, a->why, a->why_bytes, "%s/%s: it does not exist, and the file has epoch %" PRIu64, a->dir,
				path, a->l->epoch);
	return -ENOENT;
}

/* Return: a descriptor, with the end of what counts; -ENOENT: nothing was written; -errno with a text */
static int open_object(struct assembly *a, uint32_t stripe, uint64_t *ret_end)
{
	char path[80], record[64], object[2 * sizeof(a->l->object) + 1];
	int dir = open_dir(a, a->l->stripes[stripe]->server, record), fd, err;
	struct stat st;

	if (dir < 0)
		return dir == -ENOENT ? -ESRCH : dir;
	text_put_hex(a->l->object, sizeof(a->l->object), object);
	(void)snprintf(path, sizeof(path), "objects/%.2s/%s.%" PRIu32, object, object, stripe);
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	err = fd < 0 ? -errno : fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (err == -ENOENT)
		err = check_missing(a, dir, path);
	else if (err)
		(void)opt_fail(err, a->why, a->why_bytes, "%s/%s: %s", a->dir, path, strerror(-err));
	close(dir);
	if (!err) {
		*ret_end = (uint64_t)st.st_size;
		err = check_record(a, fd, record, path, ret_end);
	}
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

/* ---- copying ------------------------------------------------------------------------------------- */

static int copy_bytes(const struct assembly *a, int fd, uint64_t from, uint64_t to, size_t n)
{
	while (n) {
		ssize_t got = pread(fd, a->buf, n, (off_t)from), put = 0;

		if (got <= 0)
			return got ? fail(a, -errno, a->dir) : fail(a, -EIO, a->dir); /* it got shorter */
		for (ssize_t done = 0; done < got; done += put) {
			put = pwrite(a->out, a->buf + done, (size_t)(got - done), (off_t)to + done);
			if (put < 0)
				return fail(a, -errno, "the new file");
		}
		from += (uint64_t)got;
		to += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

/* Copies what the object has below @end. */
static int copy_object(const struct assembly *a, int fd, uint32_t stripe, uint64_t end)
{
	uint64_t off = 0;
	int err = 0;

	while (!err && off < end) {
		off_t data = lseek(fd, (off_t)off, SEEK_DATA);
		uint64_t to, n;

		if (data < 0)
			return errno == ENXIO ? 0 : fail(a, -errno, a->dir);
		off = (uint64_t)data;
		if (off >= end || layout_file_off(&a->at, stripe, off, &to) || to >= a->l->bytes)
			return 0;
		n = MIN(MIN(a->at.unit - off % a->at.unit, end - off), MIN((uint64_t)COPY_BYTES, a->l->bytes - to));
		err = copy_bytes(a, fd, off, to, (size_t)n);
		off += n;
	}
	return err;
}

static int copy_stripes(struct assembly *a)
{
	int err = ftruncate(a->out, (off_t)a->l->bytes) ? fail(a, -errno, "the new file") : 0;

	for (uint32_t i = 0; i < a->at.width && !err; i++) {
		uint64_t end = 0;
		int fd = open_object(a, i, &end);

		if (fd >= 0) {
			err = copy_object(a, fd, i, end);
			close(fd);
		} else if (fd != -ENOENT) { /* nothing was written there */
			err = fd == -ESRCH ? -ENOENT : fd;
		}
	}
	if (!err && fsync(a->out))
		err = fail(a, -errno, "the new file");
	return err;
}

int leat_volume_assemble(const struct leat_volume_layout *l, uint64_t volume, const char *const *dirs, size_t ndirs,
			 const char *file, char *why, size_t why_bytes)
{
	struct assembly a = { .l = l, .at = { l->stripe, (uint32_t)l->nstripes }, .volume = volume, .dirs = dirs, .ndirs = ndirs,
			      .why = why, .why_bytes = why_bytes };
	int err;

	a.buf = malloc(COPY_BYTES);
	if (!a.buf)
		return opt_fail(-ENOMEM, why, why_bytes, "out of memory");
	a.out = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (a.out < 0) {
		err = opt_fail(-errno, why, why_bytes, "cannot create %s: %s", file, strerror(errno));
	} else {
		err = copy_stripes(&a);
		close(a.out);
		if (err)
			(void)unlink(file);
	}
	free(a.buf);
	return err;
}
