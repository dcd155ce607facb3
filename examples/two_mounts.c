/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * two_mounts.c - compares a file on two servers: two mounts in one session, with one loop and one buffer
 *
 *     cc two_mounts.c $(pkg-config --cflags --libs leat) -o two_mounts
 *     ./two_mounts leat://server1/data/file leat://server2/data/file && echo equal
 */
#include <err.h>
#include <fcntl.h>
#include <string.h>

#include <leat.h>

#define BYTES ((size_t)1 << 20)

struct side {
	struct leat *m;
	struct leat_file *f;
	char *mem;
	int64_t got;
};

static int in_flight;

static void open_side(struct side *x, struct leat_session *s, const char *url, char *mem)
{
	x->mem = mem;
	if (leat_session_mount(s, url, NULL, &x->m) < 0)
		errx(2, "%s", leat_error(NULL));
	if (leat_open(x->m, "", O_RDONLY, 0, &x->f) < 0)
		errx(2, "%s", leat_error(x->m));
}

static void side_read(void *user_data, int64_t result)
{
	((struct side *)user_data)->got = result;
	in_flight--;
}

static void start_read(struct side *x, uint64_t off)
{
	if (leat_aio_pread(x->f, x->mem, BYTES, off, (struct leat_cb){ side_read, x, NULL }) < 0)
		errx(2, "cannot start a read");
	in_flight++;
}

int main(int argc, char **argv)
{
	struct leat_session *s;
	struct side x[2];
	uint64_t off = 0;
	void *buf;
	int equal;

	if (argc != 3)
		errx(2, "usage: two_mounts URL URL");
	if (leat_session_create(NULL, &s) < 0 || leat_buf_alloc(s, 2 * BYTES, &buf) < 0)
		errx(2, "cannot create a session with a buffer");
	open_side(&x[0], s, argv[1], buf);
	open_side(&x[1], s, argv[2], (char *)buf + BYTES);
	do {
		for (int i = 0; i < 2; i++)
			start_read(&x[i], off);
		while (in_flight > 0)
			if (leat_poll(s, -1) < 0) /* runs the callbacks of both mounts */
				errx(2, "leat_poll failed");
		for (int i = 0; i < 2; i++)
			if (x[i].got < 0)
				errx(2, "%s", leat_error(x[i].m));
		equal = x[0].got == x[1].got && memcmp(x[0].mem, x[1].mem, (size_t)x[0].got) == 0;
		off += (uint64_t)x[0].got;
	} while (equal && x[0].got > 0);
	for (int i = 0; i < 2; i++)
		leat_umount(x[i].m); /* closes the file, too */
	leat_buf_free(s, buf);
	leat_session_free(s); /* last: with mounts it returns -EBUSY */
	return !equal;
}
