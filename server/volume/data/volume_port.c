/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_port.c - how a reactor of the manager reaches the stripes of a volume: a session of libleat
 *
 * Operation: The session's descriptor is watched by the reactor's loop; its callbacks run on the reactor. A start of
 *            an operation outside of leat_poll() kicks the session, so that one pass sends what one pass of the reactor
 *            has started. libleat asks for layouts (leat_volume_source): a worker reads them, as those for other clients. They
 *            have the term of this manager: nothing that an earlier one has sent is executed behind what this one sends.
 * Memory:    Counted by the stores and the open files that use it. The last one may go inside a callback of the session,
 *            so a message ends it.
 * Threads:   The reactor's. A lock protects the list of all ports: stores of several reactors come and go.
 * Errors:    -errno.
 */
#include "volume_port.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "leat_volume.h"
#include "volume_layout.h"
#include "volume_manager.h"
#include "volume_pending.h"
#include "volume_view.h"

#define AGAIN_NS (5 * NS_PER_MS)

struct volume_port {
	struct list link; /* in ports */
	struct loop *loop;
	uint64_t volume;
	unsigned refs;
	bool heals;
	struct volume_manager *manager; /* held */
	struct leat_session *session;
	struct leat *m;
	struct rpcrdma_watch watch;
	struct rpcrdma_msg msg;
	bool polls;  /* inside leat_poll() */
	bool kicked; /* the message is on its way */
};

static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list ports = LIST_INIT(ports);

/* ---- layouts -------------------------------------------------------------------------------- */

struct layout_job {
	struct worker_job job;
	struct volume_port *port;
	struct volume_manager *manager; /* held */
	struct volume_file file;
	struct leat_volume_question *question;
	struct file_layout layout;
	uint64_t term;
	struct rpcrdma_timer timer;
	int err;
};

static void run_layout(struct worker_job *job)
{
	struct layout_job *l = container_of(job, struct layout_job, job);

	l->err = volume_pending_term(l->file.m->dir->pending, &l->term);
	if (!l->err)
		l->err = volume_layout_for_manager(&l->file, l->port->heals, &l->layout);
}

static void reply(const struct layout_job *l)
{
	struct leat_volume_answer a = { .size = sizeof(a) };

	if (!l->err) {
		memcpy(a.object, l->layout.object, sizeof(a.object));
		a.epoch = l->layout.epoch;
		a.stripe = l->layout.at.unit;
		a.nstripes = l->layout.at.width;
		a.servers = l->layout.servers;
		a.term = l->term;
	}
	leat_volume_reply(l->question, l->err, &a);
	volume_port_kick(l->port);
}

/* The manager has no term yet: for a moment after its start. */
static void on_again(struct rpcrdma_timer *t)
{
	struct layout_job *l = container_of(t, struct layout_job, timer);

	loop_submit(l->port->loop, &l->job);
}

static void done_layout(struct worker_job *job)
{
	struct layout_job *l = container_of(job, struct layout_job, job);
	struct volume_port *p = l->port;

	if (l->err == -EINPROGRESS) {
		l->timer.fn = on_again;
		rpcrdma_timer_set(p->loop->engine, &l->timer, AGAIN_NS);
		return;
	}
	reply(l);
	volume_manager_put(l->manager);
	free(l);
	volume_port_put(p);
}

static int ask_layout(void *file, struct leat_volume_question *q)
{
	const struct volume_use *u = file;
	struct volume_port *p = u->port;
	struct layout_job *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->port = p;
	p->refs++;
	l->manager = p->manager;
	atomic_fetch_add(&l->manager->refs, 1);
	l->file = (struct volume_file){ .m = p->manager, .fd = u->file->fd, .ino = u->file->ino };
	l->question = q;
	l->job = (struct worker_job){ .run = run_layout, .done = done_layout, .prompt = true, .dev = u->file->dev };
	loop_submit(p->loop, &l->job);
	return 0;
}

/* ---- the session ---------------------------------------------------------------------------- */

static void poll_session(struct volume_port *p)
{
	p->polls = true;
	while (leat_poll(p->session, 0) > 0)
		;
	p->polls = false;
}

static void on_ready(struct rpcrdma_watch *w, uint32_t events)
{
	(void)events;
	poll_session(container_of(w, struct volume_port, watch));
}

static void destroy(struct volume_port *p)
{
	if (p->watch.fd >= 0)
		rpcrdma_engine_unwatch(p->loop->engine, &p->watch);
	leat_umount(p->m);
	(void)leat_session_free(p->session); /* it has no mounts and buffers left */
	volume_manager_put(p->manager);
	free(p);
}

static void on_kick(struct rpcrdma_msg *msg)
{
	struct volume_port *p = container_of(msg, struct volume_port, msg);

	p->kicked = false;
	if (p->refs) {
		poll_session(p);
		return;
	}
	p->loop->flushing--;
	destroy(p);
}

static void post(struct volume_port *p)
{
	if (p->kicked)
		return;
	p->kicked = true;
	p->msg.fn = on_kick;
	rpcrdma_engine_post(p->loop->engine, &p->msg);
}

void volume_port_kick(struct volume_port *p)
{
	if (!p->polls && !p->loop->stop)
		post(p);
}

void volume_port_put(struct volume_port *p)
{
	if (!p || --p->refs)
		return;
	pthread_mutex_lock(&ports_lock);
	list_del(&p->link);
	pthread_mutex_unlock(&ports_lock);
	if (p->loop->stop) {
		destroy(p);
		return;
	}
	p->loop->flushing++;
	post(p);
}

/* ---- creation ------------------------------------------------------------------------------- */

static int mount_volume(struct volume_port *p, struct volume_manager *m)
{
	const struct leat_volume_source source = { .size = sizeof(source), .layout = ask_layout };
	struct leat_opts *o = leat_opts_create();
	char timeo[24];
	struct volume_view view;
	int err = o ? 0 : -ENOMEM;

	(void)snprintf(timeo, sizeof(timeo), "%" PRIu32 "ms", m->stripe_timeo_ms);
	if (!err)
		err = leat_set(o, "stripe_timeo", timeo);
	if (!err)
		err = leat_session_create(o, &p->session);
	if (!err)
		err = leat_volume_mount(p->session, &source, volume_view_map(m, &view), m->key, o, &p->m);
	leat_opts_destroy(o);
	return err;
}

static int watch_session(struct volume_port *p)
{
	struct rpcrdma_watch w = { .fd = leat_fd(p->session), .fn = on_ready };
	int err;

	p->watch = w;
	err = rpcrdma_engine_watch(p->loop->engine, &p->watch, EPOLLIN);
	if (err)
		p->watch.fd = -1;
	return err;
}

static int create_port(struct loop *loop, struct volume_manager *m, bool heals, struct volume_port **ret)
{
	struct volume_port *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->loop = loop;
	p->volume = m->dir->volume;
	p->heals = heals;
	p->refs = 1;
	p->watch.fd = -1;
	list_init(&p->link);
	p->manager = m;
	atomic_fetch_add(&m->refs, 1);
	err = mount_volume(p, m);
	if (!err)
		err = watch_session(p);
	if (err) {
		destroy(p);
		return err;
	}
	pthread_mutex_lock(&ports_lock);
	list_add_tail(&ports, &p->link);
	pthread_mutex_unlock(&ports_lock);
	*ret = p;
	return 0;
}

static struct volume_port *find_port(const struct loop *loop, uint64_t volume)
{
	struct volume_port *found = NULL;

	pthread_mutex_lock(&ports_lock);
	list_for_each(n, &ports) {
		struct volume_port *p = list_entry(n, struct volume_port, link);

		if (p->loop == loop && p->volume == volume)
			found = p;
	}
	pthread_mutex_unlock(&ports_lock);
	return found;
}

int volume_port_get(struct loop *loop, struct volume_manager *m, bool heals, struct volume_port **ret)
{
	*ret = find_port(loop, m->dir->volume);
	if (!*ret)
		return create_port(loop, m, heals, ret);
	(*ret)->refs++;
	(*ret)->heals = heals; /* of the newest configuration */
	return 0;
}

int volume_port_manager(struct volume_port *p, struct volume_manager *m)
{
	struct volume_manager *old = p->manager;
	struct volume_view view;
	int err;

	if (old == m)
		return 0;
	err = leat_volume_use(p->m, volume_view_map(m, &view), m->key);
	if (err)
		return err; /* the next operation tries again */
	atomic_fetch_add(&m->refs, 1);
	p->manager = m;
	volume_manager_put(old);
	return 0;
}

/* ---- files ---------------------------------------------------------------------------------- */

static void end_use(struct store_use *use)
{
	struct volume_use *u = container_of(use, struct volume_use, use);
	struct volume_port *p = u->port;

	(void)leat_aio_close(u->f, (struct leat_cb){ 0 }); /* nothing is in flight: it is closed now */
	volume_port_kick(p);
	volume_unstable_put(u->unstable);
	free(u);
	volume_port_put(p);
}

int volume_port_open(struct volume_port *p, struct store_file *file, const struct fsync_batch *fsyncs)
{
	struct volume_use *u = calloc(1, sizeof(*u));
	struct leat_volume_unstable *unstable;
	int err;

	if (!u)
		return -ENOMEM;
	u->unstable = volume_unstable_get(file->dev, file->ino, fsyncs, &unstable);
	err = u->unstable ? leat_volume_open(p->m, u, unstable, &u->f) : -ENOMEM;
	if (err) {
		if (u->unstable)
			volume_unstable_put(u->unstable);
		free(u);
		return err;
	}
	u->use.end = end_use;
	u->port = p;
	u->file = file;
	p->refs++;
	file->use = &u->use;
	return 0;
}
