/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cluster.c - clients of a striped volume by libleat, each with a session of its own, and the leatds of the volume
 *
 * Operation:  All sessions belong to this thread. wait() polls them in turn.
 * Memory:     struct cluster, gone with cluster_destroy().
 * Threads:    One, and that of the relay.
 * Errors:     Those of libleat; why() is its own text, or that of leatds.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/util.h"
#include "base/wire.h"
#include "xdr/file_layout.h"
#include "leat.h"
#include "leatds.h"

#define TIMEO_MS 1000u /* of names: a manager that does not reply for as long is connected again */
#define PENDING_MAX (FLEET_DEPTH_MAX)

struct member {
	struct leat *m;
	struct leat_file *files[FLEET_FILES_MAX];
	struct leat_file *opening[FLEET_FILES_MAX];
};

/* What a callback needs; io->done comes last. */
struct flight {
	struct cluster *c;         /* NULL: free */
	struct fleet_io *io;
	struct stat st;
};

struct cluster {
	struct fleet_back back;
	struct leatds leatds;
	unsigned clients;
	char url[512];
	struct member members[SHARED_CLIENTS_MAX];
	struct flight flights[PENDING_MAX];
};

static struct cluster *cluster(struct fleet_back *b)
{
	return container_of(b, struct cluster, back);
}

/* ---- operations -------------------------------------------------------------------------- */

/* The stripes of a file, from the directory of the manager. Return: 0: it has no name any more */
static unsigned find_width(const struct cluster *c, ino_t ino)
{
	static const char *const attributes[] = { FILE_LAYOUT_ROOT, FILE_LAYOUT_USER };
	uint8_t bytes[FILE_LAYOUT_MAX];
	struct stat st;

	for (unsigned i = 0; i < FLEET_FILES_MAX; i++) {
		char path[400];

		(void)snprintf(path, sizeof(path), "%s/m/files/file%u", c->leatds.dir, i);
		if (lstat(path, &st) || st.st_ino != ino)
			continue;
		for (unsigned k = 0; k < ARRAY_SIZE(attributes); k++) {
			ssize_t n = getxattr(path, attributes[k], bytes, sizeof(bytes));

			if (n >= (ssize_t)FILE_LAYOUT_HEAD)
				return get_be32(bytes + 48);
		}
	}
	return 0;
}

static void end_op(struct flight *f)
{
	f->io->size = (uint64_t)f->st.st_size;
	f->io->done = true;
	f->c = NULL;
}

static void on_seen(void *user_data, int64_t err)
{
	struct flight *f = user_data;

	f->io->width = err ? 0 : find_width(f->c, f->st.st_ino);
	f->st = (struct stat){ 0 };
	end_op(f);
}

static void on_done(void *user_data, int64_t result)
{
	struct flight *f = user_data;
	const struct fleet_op *op = &f->io->op;
	struct member *mb = &f->c->members[op->client];

	f->io->result = result;
	if (op->kind == SHARED_OPEN)
		mb->files[op->file] = result ? NULL : mb->opening[op->file];
	if (op->kind == SHARED_OPEN && !result &&
	    !leat_aio_fstat(mb->files[op->file], &f->st, (struct leat_cb){ .fn = on_seen, .user_data = f }))
		return;
	end_op(f);
}

static int submit(struct member *mb, struct flight *f, struct leat_cb cb)
{
	const struct fleet_op *op = &f->io->op;
	struct leat_file *file = mb->files[op->file];
	char name[16], to[16];

	(void)snprintf(name, sizeof(name), "file%u", op->file);
	(void)snprintf(to, sizeof(to), "file%u", op->to);
	switch (op->kind) {
	case SHARED_READ:
		return leat_aio_pread(file, f->io->mem, op->len, op->off, cb);
	case SHARED_WRITE:
		return leat_aio_pwrite(file, f->io->mem, op->len, op->off, cb);
	case SHARED_TRUNCATE:
		return leat_aio_ftruncate(file, op->len, cb);
	case SHARED_STAT:
		return leat_aio_fstat(file, &f->st, cb);
	case SHARED_FSYNC:
		return leat_aio_fsync(file, cb);
	case SHARED_CLOSE:
		mb->files[op->file] = NULL;
		return leat_aio_close(file, cb);
	case SHARED_OPEN:
		return leat_aio_open(mb->m, name, O_RDWR | O_CREAT | (op->sync ? O_DSYNC : 0), 0644, &mb->opening[op->file], cb);
	case SHARED_UNLINK:
		return leat_aio_unlink(mb->m, name, cb);
	case SHARED_RENAME:
		return leat_aio_rename(mb->m, name, to, cb);
	default:
		return -EINVAL;
	}
}

static int start_op(struct fleet_back *b, struct fleet_io *io)
{
	struct cluster *c = cluster(b);
	struct flight *f = c->flights;
	int rc;

	while (f->c)
		f++;
	*f = (struct flight){ .c = c, .io = io };
	rc = submit(&c->members[io->op.client], f, (struct leat_cb){ .fn = on_done, .user_data = f });
	if (rc)
		f->c = NULL;
	return rc;
}

/* Return: events */
static int poll_all(struct cluster *c)
{
	int n = 0, rc;

	for (unsigned i = 0; i < c->clients; i++) {
		while (c->members[i].m && (rc = leat_poll(leat_session(c->members[i].m), 0)) > 0)
			n += rc;
	}
	return n;
}

static void wait_for(struct fleet_back *b, int ms)
{
	struct pollfd v[SHARED_CLIENTS_MAX];
	struct cluster *c = cluster(b);

	if (poll_all(c))
		return;
	for (unsigned i = 0; i < c->clients; i++)
		v[i] = (struct pollfd){ .fd = c->members[i].m ? leat_fd(leat_session(c->members[i].m)) : -1, .events = POLLIN };
	(void)poll(v, c->clients, ms);
	(void)poll_all(c);
}

/* ---- clients ----------------------------------------------------------------------------- */

static int join_client(struct cluster *c, unsigned client)
{
	return leat_mount(c->url, NULL, &c->members[client].m);
}

static int die(struct fleet_back *b, unsigned client)
{
	struct cluster *c = cluster(b);
	struct member *mb = &c->members[client];

	if (mb->m) {
		(void)leat_cancel_all(mb->m); /* all that fails is known by the callbacks */
		(void)leat_umount_within(mb->m, 0);
	}
	*mb = (struct member){ 0 };
	return join_client(c, client);
}

static int fail_server(struct fleet_back *b, unsigned server, enum fleet_fault fault)
{
	return leatds_fail(&cluster(b)->leatds, server, fault);
}

static int heal_server(struct fleet_back *b, unsigned server, enum fleet_fault fault)
{
	return leatds_heal(&cluster(b)->leatds, server, fault);
}

static bool is_settled(struct fleet_back *b)
{
	return leatds_is_settled(&cluster(b)->leatds);
}

static const char *why(struct fleet_back *b, int client)
{
	struct cluster *c = cluster(b);

	if (leatds_check(&c->leatds) || client < 0 || !c->members[client].m)
		return c->leatds.why;
	return leat_error(c->members[client].m);
}

static const struct fleet_back_ops cluster_ops = {
	.start = start_op,
	.wait = wait_for,
	.fail = fail_server,
	.heal = heal_server,
	.die = die,
	.is_settled = is_settled,
	.why = why,
};

int cluster_create(const char *dir, const char *leatd, const char *scheme, const struct fleet_opts *o, struct fleet_back **ret,
		   char *text, size_t room)
{
	struct cluster *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	c->back.ops = &cluster_ops;
	c->clients = o->clients;
	rc = leatds_start(&c->leatds, dir, leatd, scheme, o);
	(void)snprintf(text, room, "%s", c->leatds.why);
	(void)snprintf(c->url, sizeof(c->url), "%s?cache=none&timeo=%ums&stripe_timeo=%" PRIu64 "ms", c->leatds.url, TIMEO_MS,
		       o->patience_ms);
	for (unsigned i = 0; i < o->clients && !rc; i++) {
		rc = join_client(c, i);
		if (rc)
			(void)snprintf(text, room, "%s", leat_error(NULL));
	}
	if (!rc) {
		*ret = &c->back;
		return 0;
	}
	(void)cluster_destroy(&c->back); /* the first error counts */
	return rc;
}

int cluster_fsck(struct fleet_back *b, const char *leat)
{
	const struct leatds *l = &cluster(b)->leatds;
	char key[300], *const argv[] = { (char *)(uintptr_t)leat, (char *)"volume", (char *)"fsck", (char *)"--key", key,
					 (char *)(uintptr_t)l->url, NULL };
	int status;
	pid_t pid;

	(void)snprintf(key, sizeof(key), "%s/key", l->dir);
	pid = fork();
	if (!pid) {
		(void)dup2(STDERR_FILENO, STDOUT_FILENO);
		execv(leat, argv);
		_exit(3);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status ? 0 : -EIO;
}

int cluster_destroy(struct fleet_back *b)
{
	struct cluster *c = cluster(b);
	int rc;

	for (unsigned i = 0; i < c->clients; i++)
		if (c->members[i].m)
			leat_umount(c->members[i].m);
	rc = leatds_end(&c->leatds);
	if (rc)
		fprintf(stderr, "tumble: %s\n", c->leatds.why);
	free(c);
	return rc;
}
