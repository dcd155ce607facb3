/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * copy.c - copies a file from one URL to another, with synchronous calls
 *
 *     cc copy.c $(pkg-config --cflags --libs leat) -o copy
 *     ./copy leat://server1/data/file leat://server2/backup/file
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>

#include <leat.h>

static struct leat *mount_url(const char *url)
{
	struct leat *m;

	if (leat_mount(url, NULL, &m) < 0)
		errx(1, "%s", leat_error(NULL));
	return m;
}

/* A short count is no error: the next call returns the reason. */
static int write_all(struct leat_file *f, const char *buf, size_t len)
{
	while (len > 0) {
		ssize_t n = leat_write(f, buf, len);

		if (n < 0)
			return (int)n;
		buf += n;
		len -= (size_t)n;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static char buf[1 << 20];
	struct leat_file *in, *out;
	struct leat *from, *to;
	ssize_t n;

	if (argc != 3) {
		fprintf(stderr, "usage: copy FROM-URL TO-URL\n");
		return 2;
	}
	from = mount_url(argv[1]);
	to = mount_url(argv[2]);
	/* "" is the path of the URL. */
	if (leat_open(from, "", O_RDONLY, 0, &in) < 0)
		errx(1, "%s", leat_error(from));
	if (leat_open(to, "", O_WRONLY | O_CREAT | O_TRUNC, 0644, &out) < 0)
		errx(1, "%s", leat_error(to));
	while ((n = leat_read(in, buf, sizeof(buf))) > 0)
		if (write_all(out, buf, (size_t)n) < 0)
			errx(1, "%s", leat_error(to));
	if (n < 0)
		errx(1, "%s", leat_error(from));
	/* The data is on stable storage when this returns 0. */
	if (leat_close(out) < 0)
		errx(1, "%s", leat_error(to));
	leat_close(in);
	leat_umount(to);
	leat_umount(from);
	return 0;
}
