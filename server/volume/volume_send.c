/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_send.c - sends the commands of a manager to the stripe servers of its volume
 *
 * Operation: A server is connected when a command first needs it, by libleat. One that is away (volume_reach.h) gets no
 *            commands, so that it holds up the others once at most. The term is taken before the first command: the
 *            largest of the one in the directory and those that the servers in reach have obeyed, plus 1. It is durable
 *            before it is used.
 * Memory:    One mount per server.
 * Threads:   That of pending work.
 * Errors:    -EAGAIN for a server that is away, or could not execute a command.
 */
#include "volume_send.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "leat.h"
#include "leat_volume.h"
#include "small_file.h"
#include "volume_manager.h"
#include "volume_pending.h"
#include "volume_reach.h"
#include "volume_todo.h"

struct peer {
	uint32_t id;
	char *url; /* that @m is of */
	struct leat *m;
};

struct volume_send {
	struct volume_dir *dir;
	atomic_bool stop;
	struct log_limit failures;
	struct peer peers[VOLUME_SERVERS_MAX]; /* in use: those with an id */
};

/* ---- servers -------------------------------------------------------------------------------- */

static void hang_up(struct peer *p)
{
	if (p->m)
		leat_umount(p->m);
	p->m = NULL;
	free(p->url);
	p->url = NULL;
}

/* Finds the server, or a free place. Return: NULL: all places are taken by servers that the map had before */
static struct peer *find_peer(struct volume_send *s, uint32_t id)
{
	for (unsigned i = 0; i < VOLUME_SERVERS_MAX; i++) {
		if (s->peers[i].id == id)
			return &s->peers[i];
	}
	for (unsigned i = 0; i < VOLUME_SERVERS_MAX; i++) {
		if (!s->peers[i].id) {
			s->peers[i].id = id;
			return &s->peers[i];
		}
	}
	return NULL;
}

static int connect_peer(struct peer *p, const struct volume_manager *m, const char *url)
{
	struct leat_opts *o = leat_opts_create();
	int err = o ? 0 : -ENOMEM;
	char timeo[16];

	if (!err)
		err = leat_set(o, "connect_only", "yes");
	if (!err)
		err = leat_set(o, "retry", "soft");
	(void)snprintf(timeo, sizeof(timeo), "%" PRIu32 "ms", m->stripe_timeo_ms);
	if (!err)
		err = leat_set(o, "timeo", volume_times.server ? volume_times.server : timeo);
	if (!err)
		err = leat_mount(url, o, &p->m);
	leat_opts_destroy(o);
	if (!err) {
		p->url = strdup(url);
		if (!p->url)
			err = -ENOMEM;
	}
	if (err)
		hang_up(p);
	return err;
}

/* The server has no use of commands: it did not reply, or not as one of the volume. */
static void lose_peer(struct volume_send *s, struct peer *p, const char *url, int err)
{
	const char *why = text_without_url(leat_error(p->m), url);

	volume_reach_failed(s->dir->reach, p->id, *why ? why : strerror(-err));
	hang_up(p);
}

/* Return: 0: it is connected; -EAGAIN: it is away */
static int get_peer(struct volume_send *s, const struct volume_manager *m, uint32_t id, struct peer **ret)
{
	const volume_server *server = volume_map_find(&m->map, id);
	struct peer *p = server ? find_peer(s, id) : NULL;
	int err;

	if (!p || volume_reach_is_away(s->dir->reach, id) || atomic_load(&s->stop))
		return -EAGAIN;
	if (p->m && strcmp(p->url, server->url)) /* the map has changed */
		hang_up(p);
	*ret = p;
	err = p->m ? 0 : connect_peer(p, m, server->url);
	if (!err)
		return 0;
	lose_peer(s, p, server->url, err);
	return -EAGAIN;
}

/* ---- the term ------------------------------------------------------------------------------- */

static int take_term(struct volume_send *s, const struct volume_manager *m)
{
	uint64_t newest, obeyed = 0;
	int err = term_load(s->dir->fd, &newest);

	if (!err)
		err = volume_reach_term(s->dir->reach, &obeyed);
	if (err == -ESHUTDOWN)
		return err;
	newest = MAX(newest, obeyed);
	if (!err && newest == UINT64_MAX)
		err = -EOVERFLOW;
	if (!err)
		err = term_save(s->dir->fd, newest + 1);
	if (err) {
		log_err("volume %s: the term of this manager: %s", m->name + 1, strerror(-err));
		return err;
	}
	atomic_store(&s->dir->term, newest + 1);
	return 0;
}

/* ---- commands ------------------------------------------------------------------------------- */

/* @ret: of send_stat() */
typedef int (*command_fn)(struct leat *m, const struct leat_volume_command *c, const struct file_layout *l,
			  struct volume_lengths *ret, uint64_t *newest);

static int fence_one(struct leat *m, const struct leat_volume_command *c, const struct file_layout *l, const struct file_cut_at *at,
		     uint64_t *newest)
{
	uint64_t cut = layout_object_bytes(&l->at, c->stripe, at->bytes);
	int err = leat_volume_object_fence(m, c, at->epoch, &cut, NULL, newest);

	return err == -ESTALE ? 0 : err; /* it has a newer epoch, or was removed */
}

/* All cuts that the server may lack, one after another: a server that has some of them keeps what was written since. */
static int send_fence(struct leat *m, const struct leat_volume_command *c, const struct file_layout *l,
		      struct volume_lengths *ret, uint64_t *newest)
{
	int err = 0;

	(void)ret;
	for (uint32_t i = 0; i < l->nearlier && !err; i++)
		err = fence_one(m, c, l, &l->earlier[i], newest);
	return err ? err : fence_one(m, c, l, &(struct file_cut_at){ l->epoch, l->cut_bytes }, newest);
}

static int send_stat(struct leat *m, const struct leat_volume_command *c, const struct file_layout *l,
		     struct volume_lengths *ret, uint64_t *newest)
{
	struct leat_volume_object o = { .size = sizeof(o) };
	int err = leat_volume_object_stat(m, c, &o, newest);
	uint64_t bytes;

	if (err || !o.exists || o.removed || o.epoch != l->epoch || layout_file_bytes(&l->at, c->stripe, o.bytes, &bytes))
		return err; /* what is longer than any file belongs to none */
	ret->bytes = MAX(ret->bytes, bytes);
	ret->mtime_ns = MAX(ret->mtime_ns, o.mtime_ns);
	return 0;
}

static int send_remove(struct leat *m, const struct leat_volume_command *c, const struct file_layout *l,
		       struct volume_lengths *ret, uint64_t *newest)
{
	(void)l;
	(void)ret;
	return leat_volume_object_remove(m, c, (uint64_t)time(NULL) + STRIPE_LIFETIME_S + STRIPE_SKEW_S, NULL, newest);
}

/* The server is in reach, and could not execute the command: it is tried again with all that is pending. */
static bool has_replied(int err)
{
	return err == -EBUSY || err == -ENOSPC || err == -EIO || err == -EFBIG || err == -EINVAL;
}

/* Commands are repeated again and again. */
static void log_failure(struct volume_send *s, const struct volume_manager *m, const struct leat_volume_command *c, int err)
{
	char object[VOLUME_OBJECT_TEXT];

	if (!log_limit_ok(&s->failures))
		return;
	volume_object_text((const char *)c->object, object);
	log_warn("volume %s: server %" PRIu32 " cannot execute a command for stripe %" PRIu32 " of object %s: %s. What is "
		 "pending for this file is tried again; the log of the server may say more",
		 m->name + 1, c->server, c->stripe, object, strerror(-err));
}

static int send_one(struct volume_send *s, const struct volume_manager *m, const struct file_layout *l, uint32_t stripe,
		    command_fn fn, struct volume_lengths *ret)
{
	struct leat_volume_command c = { .size = sizeof(c), .key = m->key, .term = atomic_load(&s->dir->term),
					 .server = l->servers[stripe], .stripe = stripe };
	uint64_t newest = 0;
	struct peer *p;
	int err = get_peer(s, m, c.server, &p);

	if (err)
		return err;
	memcpy(c.object, l->object, sizeof(c.object));
	err = fn(p->m, &c, l, ret, &newest);
	if (!err)
		return 0;
	if (err == -EPERM) {
		log_err("volume %s: server %" PRIu32 " has obeyed term %" PRIu64 ", and this manager has %" PRIu64
			": another manager is at work. No file is cut or removed until leatd is started again",
			m->name + 1, p->id, newest, c.term);
		return err;
	}
	if (has_replied(err))
		log_failure(s, m, &c, err);
	else
		lose_peer(s, p, p->url, err);
	return -EAGAIN;
}

int volume_send_term(struct volume_send *s, const struct volume_manager *m)
{
	return atomic_load(&s->dir->term) ? 0 : take_term(s, m);
}

static int send_all(struct volume_send *s, const struct volume_manager *m, const struct file_layout *l, command_fn fn,
		    struct volume_lengths *ret)
{
	int err = volume_send_term(s, m), some = 0;

	if (err)
		return err;
	for (uint32_t i = 0; i < l->at.width && err != -EPERM; i++) {
		err = send_one(s, m, l, i, fn, ret);
		some = err ? err : some;
	}
	return some;
}

int volume_send_cut(struct volume_send *s, struct volume_manager *m, const struct file_layout *l)
{
	return send_all(s, m, l, send_fence, NULL);
}

int volume_send_remove(struct volume_send *s, struct volume_manager *m, const struct file_layout *l)
{
	return send_all(s, m, l, send_remove, NULL);
}

int volume_send_stat(struct volume_send *s, struct volume_manager *m, const struct file_layout *l, struct volume_lengths *ret)
{
	*ret = (struct volume_lengths){ 0 };
	return send_all(s, m, l, send_stat, ret);
}

int volume_send_create(struct volume_dir *d, struct volume_send **ret)
{
	struct volume_send *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->dir = d;
	s->failures = (struct log_limit){ .interval_ns = 60 * NS_PER_S, .burst = 5, .left = 5 };
	*ret = s;
	return 0;
}

void volume_send_stop(struct volume_send *s)
{
	atomic_store(&s->stop, true);
}

void volume_send_destroy(struct volume_send *s)
{
	for (unsigned i = 0; s && i < VOLUME_SERVERS_MAX; i++)
		hang_up(&s->peers[i]);
	free(s);
}
