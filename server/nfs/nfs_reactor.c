/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_reactor.c - the file service's part of a reactor and of a connection: the hooks of struct service
 *
 * Operation: A reactor has open files, and a cache of its users' groups. A connection has the verdicts of the exports'
 *            rules on its peer. They depend on the peer's address and port, which do not change. They are found at accept, and
 *            again when the exports change.
 * Memory:    Owned by the reactor and by the connection.
 * Threads:   As prog.h says for each hook; run_ask() on a worker.
 * Errors:    Refuses a peer if no export admits its address. A client with a wrong port is accepted, so that it gets an
 *            error reply and can call the control program, which reports better transports
 *            (client/mount/choose.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "nfs.h"

/* ---- groups ------------------------------------------------------------------------------- */

static void run_ask(struct worker_job *job)
{
	struct groups_entry *e = container_of(job, struct groups_entry, job);

	e->answer = groups_ask(e->uid);
}

static void done_ask(struct worker_job *job)
{
	groups_answered(container_of(job, struct groups_entry, job), clock_now_ns());
}

static void ask_groups(void *reactor, struct groups_entry *e)
{
	struct nfs_reactor *n = reactor;

	e->job.client = &e->client->workers;
	e->job.run = run_ask;
	e->job.done = done_ask;
	loop_submit(&n->reactor->loop, &e->job);
}

/* ---- syncing for the cache ---------------------------------------------------------------- */

struct flush {
	struct nfs_reactor *re;
	struct fdcache_entry *entry;
	struct served_use *exports;
	uint64_t seq;
	struct store_io io;
};

static void on_flushed(struct store_io *io)
{
	struct flush *f = container_of(io, struct flush, io);
	struct reactor *re = f->re->reactor;

	if (io->res < 0) /* the kernel reports it once, and the verifier passes it on: no reason to keep the file */
		nfs_count(re, sync_failed);
	fdcache_flushed(f->entry, f->seq);
	re->loop.flushing--;
	served_use_put(f->exports);
	free(f);
}

/* A store of any export can sync a file of a removed one: the descriptor identifies the file. */
static struct store *store_for(struct served_use *use, const struct fdcache_entry *e)
{
	struct export *exp;

	if (fh_export(exports_of(use)->fhs, e->fh.data, e->fh.len, &exp))
		return use->stores[0];
	return use->stores[exp->idx];
}

static void flush_file(void *reactor, struct fdcache_entry *e)
{
	struct nfs_reactor *n = reactor;
	struct flush *f = calloc(1, sizeof(*f));

	if (!f) { /* stays dirty, and is tried again */
		fdcache_flushed(e, e->dirty_seq - 1);
		return;
	}
	f->re = n;
	f->entry = e;
	f->exports = served_use_hold(n->reactor->uses[SERVICE_NFS]);
	f->seq = e->dirty_seq;
	f->io = (struct store_io){ .op = STORE_SYNC, .file = &e->file, .done = on_flushed };
	n->reactor->loop.flushing++;
	if (store_submit(store_for(f->exports, e), &f->io))
		on_flushed(&f->io);
}

/* ---- the reactor -------------------------------------------------------------------------- */

static int create_reactor(struct reactor *re)
{
	struct nfs_server *s = nfs_server(re->srv);
	struct nfs_reactor *n = calloc(1, sizeof(*n));
	int err;

	re->service[SERVICE_NFS] = n;
	if (!n)
		return -ENOMEM;
	n->reactor = re;
	n->inline_max = reactor_inline_max(re, NFS3_IO_MAX);
	nfs_room_init(&n->room, s->room_max);
	err = files_create(&n->files, &re->loop, re->idx, s->files_max, flush_file, n);
	if (!err && s->manage_gids)
		err = groups_create(ask_groups, n, &n->groups);
	return err;
}

static void start_reactor(struct reactor *re)
{
	files_start(&nfs_reactor(re)->files);
}

static void stop_reactor(struct reactor *re)
{
	files_stop(&nfs_reactor(re)->files);
}

static bool is_busy(const struct reactor *re)
{
	return groups_asking(nfs_reactor(re)->groups);
}

static void destroy_reactor(struct reactor *re)
{
	struct nfs_reactor *n = nfs_reactor(re);

	files_destroy(&n->files);
	groups_destroy(n->groups);
	free(n);
}

/* ---- the connection ----------------------------------------------------------------------- */

static int accept_peer(struct conn *c, const char **ret_why)
{
	struct served *now;
	unsigned best;

	c->service[SERVICE_NFS] = calloc(1, sizeof(struct nfs_conn));
	if (!nfs_conn(c))
		return -ENOMEM;
	now = service_current(c->srv, SERVICE_NFS);
	best = served_judge(&nfs_conn(c)->verdicts, now, &c->peer);
	served_put(now);
	if (best < PEER_NOT_ADDRESS) /* a wrong port is reported by a reply */
		return 0;
	*ret_why = "no export admits it";
	return -EACCES;
}

static void conn_closed(struct conn *c)
{
	free(nfs_conn(c));
}

/* NFS, NFSACL, SPACE and MOUNT use the same port. The ctl program identifies the server on every connection. */
static const struct prog *const progs[] = { &prog_nfs3, &prog_nfsacl, &prog_space, &prog_volumes, &prog_mount3, &prog_ctl,
					   NULL };

const struct service nfs_service = {
	.slot = SERVICE_NFS,
	.progs = progs,
	.create = nfs_server_create,
	.serve = exports_create,
	.change_over = exports_change_over,
	.changed = nfs_server_changed,
	.destroy = nfs_server_destroy,
	.create_reactor = create_reactor,
	.start_reactor = start_reactor,
	.stop_reactor = stop_reactor,
	.is_busy = is_busy,
	.destroy_reactor = destroy_reactor,
	.accept = accept_peer,
	.closed = conn_closed,
};
