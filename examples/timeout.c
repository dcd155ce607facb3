/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * timeout.c - reads the beginning of a file, and cancels the read if it takes too long
 *
 *     cc timeout.c $(pkg-config --cflags --libs leat) -o timeout
 *     ./timeout leat://server/data/file 500     (milliseconds)
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <leat.h>

struct read {
	int64_t result;
	int done;
};

/* Runs once, also for a read that is cancelled. No server can write to the buffer afterwards. */
static void read_done(void *user_data, int64_t result)
{
	struct read *r = user_data;

	r->result = result;
	r->done = 1;
}

int main(int argc, char **argv)
{
	static char buf[1 << 20];
	struct itimerspec limit = { { 0, 0 }, { 0, 0 } };
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	struct read r = { 0, 0 };
	struct leat_session *s;
	struct leat_file *f;
	struct leat *m;
	uint64_t ticks;
	int rc, ms;

	ms = argc == 3 ? atoi(argv[2]) : 0;
	if (ms <= 0)
		errx(2, "usage: timeout URL MILLISECONDS");
	if (leat_mount(argv[1], NULL, &m) < 0)
		errx(1, "%s", leat_error(NULL));
	if (leat_open(m, "", O_RDONLY, 0, &f) < 0)
		errx(1, "%s", leat_error(m));
	s = leat_session(m);
	fds[0].fd = leat_fd(s);
	fds[1].fd = timerfd_create(CLOCK_MONOTONIC, 0);
	limit.it_value = (struct timespec){ ms / 1000, ms % 1000 * 1000000L };
	if (fds[1].fd < 0 || timerfd_settime(fds[1].fd, 0, &limit, NULL) < 0)
		err(1, "timerfd");
	if (leat_aio_pread(f, buf, sizeof(buf), 0, (struct leat_cb){ read_done, &r, NULL }) < 0)
		errx(1, "cannot start the read");
	while (!r.done) {
		rc = leat_poll(s, 0);
		if (rc < 0)
			errx(1, "leat_poll: error %d", -rc);
		/* leat_fd() wakes the loop only if leat_poll() has returned 0. */
		if (rc == 0 && poll(fds, 2, -1) > 0 && fds[1].revents && read(fds[1].fd, &ticks, 8) == 8)
			leat_cancel(m, &r); /* the user_data of the callback names the operation */
	}
	if (r.result == -ECANCELED)
		warnx("the read took more than %d ms", ms);
	else if (r.result < 0)
		warnx("%s", leat_error(m));
	else
		printf("%lld bytes\n", (long long)r.result);
	/* leat_umount() waits for operations in flight without a limit. */
	if (leat_umount_within(m, 1000) == -ETIMEDOUT)
		warnx("the server does not reply");
	return r.result < 0;
}
