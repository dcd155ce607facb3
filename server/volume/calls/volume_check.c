/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_check.c - what the manager of a volume tells a check: names that have moved, and what is pending
 *
 * Operation: pending/ is read once for each part of the list, of which the smallest names are kept in order. What is to be
 *            done for an entry follows from the state of its file (volume_pending.h), which is only looked at.
 * Memory:    That of the caller.
 * Threads:   Workers.
 * Errors:    -errno. An entry that has gone meanwhile is left out.
 */
#include "volume_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "volume_layout.h"
#include "volume_manager.h"
#include "volume_pending.h"
#include "volume_todo.h"

struct names {
	char v[VOLUME_CHECK_MAX][VOLUME_OBJECT_TEXT];
	unsigned n;
};

/* Keeps the smallest names, in their order, which is that of their objects. */
static void keep_name(struct names *names, const char *name)
{
	unsigned at = names->n;

	while (at && strcmp(name, names->v[at - 1]) < 0)
		at--;
	if (at == VOLUME_CHECK_MAX)
		return;
	if (names->n < VOLUME_CHECK_MAX)
		names->n++;
	memmove(names->v[at + 1], names->v[at], (names->n - at - 1) * sizeof(names->v[0]));
	memcpy(names->v[at], name, sizeof(names->v[at]));
}

/* @after: NULL: all. */
static int find_names(const struct volume_dir *d, const char *after, struct names *ret)
{
	DIR *dir = dir_list(d->pending_fd, ".");
	char object[STRIPE_OBJECT_BYTES];
	const struct dirent *e;
	int err = 0;

	ret->n = 0;
	if (!dir)
		return -errno;
	for (errno = 0; (e = readdir(dir)) != NULL; errno = 0) {
		if (!volume_object_parse(e->d_name, object) && (!after || strcmp(e->d_name, after) > 0))
			keep_name(ret, e->d_name);
	}
	if (errno)
		err = -errno;
	closedir(dir);
	return err;
}

/* Return: 1: described; 0: it has gone, or is not ours */
static int describe(struct volume_manager *m, const char *name, volume_pending_entry *ret)
{
	int fd = openat(m->dir->pending_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct volume_file f = { .m = m, .fd = fd };
	struct file_layout l;
	struct stat st;
	bool ours;
	int todo;

	if (fd < 0)
		return 0;
	ours = !volume_object_parse(name, ret->object) && !fstat(fd, &st) && S_ISREG(st.st_mode);
	if (ours) {
		f.ino = st.st_ino;
		todo = volume_todo_find(&f, volume_layout_read, &l);
		ret->todo = todo < 0 ? VOLUME_TODO_CUT : (volume_todo)todo; /* it is not known: there is something */
	}
	close(fd);
	return ours;
}

int volume_check(struct volume_manager *m, const char *after, volume_pending_entry room[VOLUME_CHECK_MAX], VOLCHECKresok *ret)
{
	char text[VOLUME_OBJECT_TEXT];
	struct names names;
	unsigned n = 0;
	int err;

	/* what has begun and not ended when the caller read them is seen as begun */
	ret->moves_ended = atomic_load(&m->dir->moves_ended);
	ret->moves_begun = atomic_load(&m->dir->moves_begun);
	ret->deposed = volume_pending_may(m->dir->pending) != 0;
	ret->lifetime = STRIPE_LIFETIME_S;
	if (after)
		volume_object_text(after, text);
	do {
		err = find_names(m->dir, after ? text : NULL, &names);
		for (unsigned i = 0; i < names.n && !err; i++)
			n += (unsigned)describe(m, names.v[i], &room[n]);
		if (names.n)
			memcpy(text, names.v[names.n - 1], sizeof(text));
		after = text;
	} while (!err && !n && names.n == VOLUME_CHECK_MAX);
	ret->pending.pending_val = room;
	ret->pending.pending_len = n;
	ret->eof = names.n < VOLUME_CHECK_MAX;
	return err;
}
