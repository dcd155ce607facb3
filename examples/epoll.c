/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * epoll.c - reads a file by 32 reads in parallel, in the program's own epoll loop
 *
 *     cc epoll.c $(pkg-config --cflags --libs leat) -o epoll
 *     ./epoll leat://server/data/file >copy
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>

#include <leat.h>

#define PARTS 32

static struct leat *m;
static int in_flight;

static void part_read(void *user_data, int64_t result) /* runs inside leat_poll() */
{
	if (result < 0)
		errx(1, "%s", leat_error(m));
	*(int64_t *)user_data = result;
	in_flight--;
}

static void start_read(struct leat_file *f, char *mem, size_t len, uint64_t off, int64_t *got)
{
	if (leat_aio_pread(f, mem, len, off, (struct leat_cb){ part_read, got, NULL }) < 0)
		errx(1, "cannot start a read");
	in_flight++;
}

int main(int argc, char **argv)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct leat_session *s;
	int ep, rc;
	int64_t got[PARTS];
	struct leat_file *f;
	struct stat st;
	size_t part;
	void *buf;

	if (argc != 2)
		errx(2, "usage: epoll URL");
	if (leat_mount(argv[1], NULL, &m) < 0)
		errx(1, "%s", leat_error(NULL));
	if (leat_open(m, "", O_RDONLY, 0, &f) < 0 || leat_fstat(f, &st) < 0)
		errx(1, "%s", leat_error(m));
	s = leat_session(m);
	part = (size_t)st.st_size / PARTS + 1;
	if (leat_buf_alloc(s, PARTS * part, &buf) < 0)
		errx(1, "out of memory");
	ep = epoll_create1(0);
	if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, leat_fd(s), &e) < 0)
		err(1, "epoll"); /* the program adds its other descriptors as well */
	for (size_t i = 0; i < PARTS; i++)
		start_read(f, (char *)buf + i * part, part, i * part, &got[i]);
	while (in_flight > 0) {
		rc = leat_poll(s, 0);
		if (rc < 0)
			errx(1, "leat_poll: error %d", -rc);
		/* leat_fd() wakes the loop only if leat_poll() has returned 0. */
		if (rc == 0 && epoll_wait(ep, &e, 1, 1000) == 0)
			fprintf(stderr, "%d reads in flight\n", in_flight);
	}
	for (size_t i = 0; i < PARTS; i++)
		fwrite((char *)buf + i * part, 1, (size_t)got[i], stdout);
	leat_buf_free(s, buf);
	leat_umount(m); /* closes the file, too */
	return fflush(stdout) != 0;
}
