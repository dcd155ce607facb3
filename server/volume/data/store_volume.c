/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_volume.c - the store of a volume's manager: contents are on stripe servers
 *
 * Operation: READ and WRITE become operations of libleat in the session of the reactor (volume_port.c), which divides them
 *            among the stripe servers, and asks for a new layout where a file was cut. The size is that of the inode here: a
 *            READ does not return more, and a worker raises it after each WRITE, before the reply. A WRITE of which
 *            everything was written before a cut leaves the size as it is.
 *            A SYNC makes stable what any reactor has written to the file, and then its inode. A stable WRITE syncs the inode
 *            too.
 * Memory:    An operation of its own for each, and libleat's. The data is in buffers of this process: a client could unmap
 *            its own memory while it is in use.
 * Threads:   The reactor's; sizes and syncs on workers.
 * Errors:    Those of libleat. A stripe server that does not reply in time is EIO: clients hang on a status that asks them to
 *            try again.
 */
#include "store_volume.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "export.h"
#include "leat_volume.h"
#include "store_file.h"
#include "volume_calls.h"
#include "volume_layout.h"
#include "volume_manager.h"
#include "volume_port.h"

struct volume_store {
	struct store store;
	struct store *below; /* syncs inodes */
	struct volume_manager *manager;
	struct volume_port *port; /* NULL: not used yet */
};

struct volume_op {
	struct store_io *io;
	struct store_io sync; /* of the inode */
	struct volume_store *s;
	struct volume_use *use;
	struct leat_volume_written written;
	struct worker_job job;
	int err;
};

static const struct export *export_of(struct backing *b)
{
	return container_of(b, struct export, backing);
}

static void volume_destroy(struct store *store)
{
	struct volume_store *s = container_of(store, struct volume_store, store);

	volume_port_put(s->port);
	store_destroy(s->below);
	free(s);
}

static int volume_create(const struct store_env *env, struct backing *b, struct store **ret)
{
	struct volume_store *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->store = (struct store){ .ops = &store_volume_ops, .loop = env->loop, .counters = env->counters, .backing = b,
				   .own_memory = true };
	s->manager = export_of(b)->manager;
	err = store_create(&store_cached_ops, env, b, &s->below);
	if (err) {
		volume_destroy(&s->store);
		return err;
	}
	*ret = &s->store;
	return 0;
}

/* Return: 0 or -errno */
static int get_use(struct volume_store *s, struct store_file *file, struct volume_use **ret)
{
	int err = 0;

	if (!s->port)
		err = volume_port_get(s->store.loop, s->manager, !export_of(s->store.backing)->conf.ro, &s->port);
	if (!err)
		err = volume_port_manager(s->port, s->manager);
	if (!err && !file->use)
		err = volume_port_open(s->port, file, s->store.backing->fsyncs);
	if (!err)
		*ret = container_of(file->use, struct volume_use, use);
	return err;
}

static void end_op(struct volume_op *op, int64_t res)
{
	struct store_io *io = op->io;

	io->res = (int32_t)res;
	atomic_fetch_sub(op->s->store.loop->asking, 1);
	free(op);
	io->done(io);
}

/* ---- syncs of the inode --------------------------------------------------------------------- */

static void inode_synced(struct store_io *sync)
{
	struct volume_op *op = container_of(sync, struct volume_op, sync);

	op->io->sync_failed |= sync->sync_failed;
	end_op(op, sync->res < 0 ? sync->res : op->io->res);
}

/* Ends the operation with io->res, or with the error of the sync. */
static void sync_inode(struct volume_op *op)
{
	op->sync = (struct store_io){ .op = STORE_SYNC, .file = op->io->file, .client = op->io->client, .done = inode_synced };
	if (store_submit_below(op->s->below, &op->sync))
		inode_synced(&op->sync);
}

/* ---- READ ----------------------------------------------------------------------------------- */

/* The file may have been cut since the caller has looked at its size: libleat reads zeroes behind the end. */
static int64_t limit_read(const struct store_io *io, int64_t n)
{
	struct stat st;

	if (n <= 0)
		return n;
	if (fstat(io->file->fd, &st))
		return -errno;
	return (uint64_t)st.st_size > io->off ? (int64_t)MIN((uint64_t)n, (uint64_t)st.st_size - io->off) : 0;
}

static void on_read(void *arg, int64_t n)
{
	struct volume_op *op = arg;

	end_op(op, limit_read(op->io, n));
}

/* ---- WRITE ---------------------------------------------------------------------------------- */

static void run_wrote(struct worker_job *job)
{
	struct volume_op *op = container_of(job, struct volume_op, job);
	const struct store_io *io = op->io;
	const struct volume_file f = { .m = op->s->manager, .fd = io->file->fd, .ino = io->file->ino };

	op->err = volume_wrote(&f, op->written.epoch, MIN(op->written.end, io->off + (uint64_t)io->res), io->creds);
}

static void done_wrote(struct worker_job *job)
{
	struct volume_op *op = container_of(job, struct volume_op, job);

	if (op->err)
		end_op(op, op->err);
	else if (op->io->stable != STORE_UNSTABLE)
		sync_inode(op);
	else
		end_op(op, op->io->res);
}

static void on_written(void *arg, int64_t n)
{
	struct volume_op *op = arg;

	if (n <= 0) {
		end_op(op, n);
		return;
	}
	op->io->res = (int32_t)n;
	op->job = (struct worker_job){ .run = run_wrote, .done = done_wrote, .client = op->io->client, .dev = op->io->file->dev };
	loop_submit(op->s->store.loop, &op->job);
}

/* ---- SYNC ----------------------------------------------------------------------------------- */

static void on_synced(void *arg, int64_t err)
{
	struct volume_op *op = arg;

	op->io->res = 0;
	if (err)
		end_op(op, err);
	else
		sync_inode(op);
}

/* ---- submit --------------------------------------------------------------------------------- */

static int start(struct volume_op *op)
{
	struct store_io *io = op->io;
	struct leat_file *f = op->use->f;

	switch (io->op) {
	case STORE_READ:
		return leat_aio_preadv(f, io->iov, io->iovcnt, io->off, (struct leat_cb){ .fn = on_read, .user_data = op });
	case STORE_WRITE:
		return leat_volume_aio_pwritev(f, io->iov, io->iovcnt, io->off, io->stable != STORE_UNSTABLE, &op->written,
					       (struct leat_cb){ .fn = on_written, .user_data = op });
	case STORE_SYNC:
		return leat_aio_fsync(f, (struct leat_cb){ .fn = on_synced, .user_data = op });
	default:
		return -EOPNOTSUPP;
	}
}

static int begin(struct volume_store *s, struct store_io *io)
{
	struct volume_op *op = calloc(1, sizeof(*op));
	int err;

	if (!op)
		return -ENOMEM;
	op->io = io;
	op->s = s;
	atomic_fetch_add(s->store.loop->asking, 1); /* before it asks: another reactor may stop any moment */
	err = get_use(s, io->file, &op->use);
	if (!err)
		err = start(op);
	if (err) {
		atomic_fetch_sub(s->store.loop->asking, 1);
		free(op);
		return err;
	}
	volume_port_kick(s->port);
	return 0;
}

static int volume_submit(struct store *store, struct store_io *io)
{
	io->res = begin(container_of(store, struct volume_store, store), io);
	if (!io->res) {
		io->res = -EINPROGRESS;
		return 0;
	}
	store_count(store, store_now);
	return 1;
}

const struct store_ops store_volume_ops = {
	.name = "volume",
	.create = volume_create,
	.destroy = volume_destroy,
	.open = store_adopt,
	.submit = volume_submit,
};
