/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * disk.c - writes a pattern to the beginning of a block volume, several writes at once, and reads it into parts of memory
 *
 *     cc disk.c $(pkg-config --cflags --libs leat) -o disk
 *     ./disk local:///run/leat/leatd.sock/block/scratch       # its first 512 KiB are lost
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include <leat_block.h>

enum { UNIT = 64 << 10, WRITES = 8 };

struct state {
	int left;
	int64_t error; /* the first one */
};

static void written(void *user_data, int64_t result)
{
	struct state *s = user_data;

	s->left--;
	if (result < 0 && !s->error)
		s->error = result;
}

/* Return: 0 or -errno; leat_error() has the reason */
static int write_units(struct leat_block *b, const char *mem)
{
	struct leat *h = leat_block_handle(b);
	struct state s = { 0, 0 };

	for (int i = 0; i < WRITES; i++) {
		struct leat_cb cb = { .fn = written, .user_data = &s };

		s.error = leat_aio_block_pwrite(b, mem + i * UNIT, UNIT, (uint64_t)i * UNIT, 0, cb);
		if (s.error)
			break; /* its callback does not run */
		s.left++;
	}
	while (s.left > 0)
		if (leat_poll(leat_session(h), -1) < 0)
			errx(1, "leat_poll");
	return s.error ? (int)s.error : leat_block_flush(b);
}

int main(int argc, char **argv)
{
	static char first[UNIT], rest[(WRITES - 1) * UNIT];
	struct iovec iov[2] = { { first, sizeof(first) }, { rest, sizeof(rest) } };
	struct leat_block *b;
	void *mem;
	int rc;

	if (argc != 2)
		errx(2, "usage: disk URL");
	if (leat_block_attach(argv[1], NULL, 0, &b) < 0)
		errx(1, "%s", leat_error(NULL));
	if (leat_buf_alloc(leat_session(leat_block_handle(b)), WRITES * UNIT, &mem) < 0)
		errx(1, "out of memory");
	for (int i = 0; i < WRITES; i++)
		memset((char *)mem + i * UNIT, 'a' + i, UNIT);
	rc = write_units(b, mem);
	if (!rc)
		rc = (int)leat_block_preadv(b, iov, 2, 0);
	if (rc < 0)
		warnx("%s", leat_error(leat_block_handle(b)));
	else
		printf("%c to %c\n", first[0], rest[sizeof(rest) - 1]);
	leat_buf_free(leat_session(leat_block_handle(b)), mem);
	/* without it the server would keep the volume for this process for 60 seconds */
	return leat_block_detach(b) < 0 || rc < 0;
}
