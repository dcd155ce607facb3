/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_null.c - a store that stores nothing, to measure the cost of everything else
 *
 * Operation: A read finishes at once and returns zeroes up to the end of the file: clients use the same buffers one
 *            after the other, and must not see each other's bytes. The zeroes are read from /dev/zero, since the
 *            memory may be a client's, which only a system call may access safely. Written data is dropped, and
 *            DISCARD and ZERO do nothing. All of a file is data.
 *            Opening, names, attributes and syncs are those of the files.
 * Memory:    Only its own.
 * Threads:   The reactor's.
 * Errors:    Of opening and syncing, as store_cached.c returns them; EFAULT if the memory is no longer mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "store.h"
#include "store_space.h"

struct null_store {
	struct store store;
	struct store *below; /* syncs */
	int zero_fd;
};

static void null_destroy(struct store *store)
{
	struct null_store *s = container_of(store, struct null_store, store);

	if (s->zero_fd >= 0)
		close(s->zero_fd);
	store_destroy(s->below);
	free(s);
}

static int null_create(const struct store_env *env, struct backing *b, struct store **ret)
{
	struct null_store *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->store = (struct store){ .ops = &store_null_ops, .loop = env->loop, .counters = env->counters, .backing = b };
	s->zero_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	err = s->zero_fd < 0 ? -errno : store_create(&store_cached_ops, env, b, &s->below);
	if (err) {
		null_destroy(&s->store);
		return err;
	}
	*ret = &s->store;
	return 0;
}

static uint32_t to_the_end(const struct store_io *io)
{
	uint64_t left = io->size_hint > io->off ? io->size_hint - io->off : 0;

	return (uint32_t)MIN(left, io->bytes);
}

static int32_t read_zeroes(int zero_fd, const struct store_io *io)
{
	uint32_t want = to_the_end(io), got = 0;

	for (int i = 0; i < io->iovcnt && got < want; i++) {
		ssize_t n = read(zero_fd, io->iov[i].iov_base, MIN(want - got, io->iov[i].iov_len));

		if (n < 0)
			return got ? (int32_t)got : -errno;
		got += (uint32_t)n;
	}
	return (int32_t)got;
}

static int null_submit(struct store *store, struct store_io *io)
{
	struct null_store *s = container_of(store, struct null_store, store);

	switch (io->op) {
	case STORE_READ:
		io->res = read_zeroes(s->zero_fd, io);
		break;
	case STORE_EXTENTS:
		store_space_all_data(io);
		break;
	case STORE_WRITE:
	case STORE_DISCARD:
	case STORE_ZERO:
		io->res = (int32_t)io->bytes;
		break;
	case STORE_SYNC:
		return store_submit_below(s->below, io);
	}
	store_count(store, store_now);
	return 1;
}

const struct store_ops store_null_ops = {
	.name = "null",
	.create = null_create,
	.destroy = null_destroy,
	.open = store_adopt,
	.submit = null_submit,
};
