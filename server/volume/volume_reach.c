/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_reach.c - which stripe servers of a volume are in reach of its manager
 *
 * Operation: Questions go in rounds: a period begins one, and so does a caller that needs to know now. A server without a
 *            question in flight is asked once in a round, so a server that does not reply holds up only itself. A question
 *            ends when a half of stripe_timeo has passed, also if the server cannot be connected: it may be just starting, as
 *            this leatd may be. Then it is asked once more by another connection: perhaps only the first one is dead. libleat
 *            makes the calls, in a session of this thread, which is created when a manager is there.
 *            A server whose URL has changed is not known any more: the reply of the older one no longer counts.
 * Memory:    A place for each server of the map. A question in flight is the callback's.
 * Threads:   One per directory has the session; it never takes another identity: RDMA devices refuse threads that do. The
 *            lock is over the table.
 * Errors:    Logged when a server is away, and when it is back. Without a session servers stay as they were.
 */
#include "volume_reach.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/text.h"
#include "creds.h"
#include "leat.h"
#include "leat_volume.h"
#include "volume_manager.h"
#include "volume_pending.h"
#include "volume_view.h"

#define PERIOD_MAX_NS (5 * NS_PER_S)
#define PERIOD_MIN_NS (20 * NS_PER_MS)

/* A question in flight. */
struct question {
	struct volume_reach *of;
	uint32_t id;
	uint64_t round;
	struct leat_volume_info info;
};

struct server {
	uint32_t id;
	const char *url; /* in the map of @using */
	volume_seen_state state;
	uint64_t since_ns;	    /* of the state */
	uint64_t bytes, bytes_used, term; /* of the last reply */
	uint64_t bytes_free;	    /* of the last reply; 0: it is away, or not known */
	uint64_t round;		    /* the last one whose question has ended */
	bool has_failed;	    /* the last question, for the first time */
	struct question *question;  /* NULL: none is in flight */
};

struct volume_reach {
	struct volume_dir *dir; /* outlives this */
	pthread_t thread;
	int wake_fd;
	bool is_joined; /* the owner's */
	/* the thread's: */
	struct leat_session *session;
	struct leat *m; /* NULL: no session yet */
	uint64_t next_ns; /* when the next round begins */
	/* under the lock: */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop;
	int err;	/* 0; or the thread could not ask */
	uint64_t round; /* that servers are to be asked in */
	struct volume_manager *using, *next; /* held. NULL: none */
	unsigned n;
	struct server servers[VOLUME_SERVERS_MAX];
};

/* ---- what is known: under the lock ---------------------------------------------------------- */

/* @at: where it is likely to be */
static struct server *find_server(struct volume_reach *r, uint32_t id, unsigned at)
{
	if (at < r->n && r->servers[at].id == id)
		return &r->servers[at];
	for (unsigned i = 0; i < r->n; i++) {
		if (r->servers[i].id == id)
			return &r->servers[i];
	}
	return NULL;
}

static void set_state(struct server *s, volume_seen_state state)
{
	if (s->state == state)
		return;
	s->state = state;
	s->since_ns = clock_now_ns();
}

static void set_away(struct volume_reach *r, struct server *s, const char *why)
{
	if (s->state != VOLUME_SEEN_AWAY)
		log_warn("volume %s: server %" PRIu32 ", %s, is away: %s; new files avoid it, and what is pending for it is done "
			 "when it is back", r->using->name + 1, s->id, s->url, why);
	set_state(s, VOLUME_SEEN_AWAY);
	s->bytes_free = 0;
}

/* Return: was it away? */
static bool set_in_reach(struct volume_reach *r, struct server *s, const struct leat_volume_info *info)
{
	bool was_away = s->state == VOLUME_SEEN_AWAY;

	if (was_away)
		log_info("volume %s: server %" PRIu32 " is back", r->using->name + 1, s->id);
	set_state(s, VOLUME_SEEN_IN_REACH);
	s->bytes = info->bytes;
	s->bytes_used = info->bytes_used;
	s->bytes_free = info->bytes_free;
	s->term = info->term;
	return was_away;
}

/* What the newer manager has in its map; the rest is forgotten. */
static void take_servers(struct volume_reach *r, struct volume_manager *m)
{
	struct server now[VOLUME_SERVERS_MAX];

	memset(now, 0, sizeof(now));
	for (unsigned i = 0; i < m->map.n; i++) {
		const volume_server *from = &m->map.servers[i];
		const struct server *was = find_server(r, from->id, i);

		if (was && !strcmp(was->url, from->url))
			now[i] = *was;
		now[i].id = from->id;
		now[i].url = from->url;
		if (!now[i].since_ns)
			now[i].since_ns = clock_now_ns();
	}
	memcpy(r->servers, now, sizeof(r->servers));
	r->n = m->map.n;
}

/* ---- the thread: questions ------------------------------------------------------------------ */

/* Why the call that has just ended failed, without the name of the volume */
static const char *why_failed(const struct volume_reach *r)
{
	char place[32];

	(void)snprintf(place, sizeof(place), "volume %016" PRIx64, r->using->map.volume);
	return text_without_url(leat_error(r->m), place);
}

/* Under the lock. @why: of @err. Return: is it back? */
static bool take_reply(struct volume_reach *r, struct server *s, const struct question *q, int err, const char *why)
{
	bool once_more = err && !s->has_failed && s->state != VOLUME_SEEN_AWAY;

	s->question = NULL;
	s->has_failed = once_more;
	if (once_more)
		return false;
	s->round = q->round;
	if (!err)
		return set_in_reach(r, s, &q->info);
	if (err != -ECANCELED && err != -ENOMEM)
		set_away(r, s, why);
	return false;
}

static void on_reply(void *arg, int64_t err)
{
	struct question *q = arg;
	struct volume_reach *r = q->of;
	bool is_back = false;
	struct server *s;

	pthread_mutex_lock(&r->lock);
	s = find_server(r, q->id, 0);
	if (s && s->question == q) /* else the map has changed */
		is_back = take_reply(r, s, q, (int)err, why_failed(r));
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	if (is_back)
		volume_pending_wake(r->dir->pending);
	free(q);
}

/* Return: a server that is to be asked, as a question; NULL: none, or no memory */
static struct question *next_question(struct volume_reach *r)
{
	struct question *q = NULL;

	pthread_mutex_lock(&r->lock);
	for (unsigned i = 0; i < r->n && !q; i++) {
		struct server *s = &r->servers[i];

		if (s->question || s->round >= r->round)
			continue;
		q = calloc(1, sizeof(*q));
		if (!q) {
			r->err = -ENOMEM;
			pthread_cond_broadcast(&r->changed);
			break;
		}
		*q = (struct question){ .of = r, .id = s->id, .round = r->round, .info.size = sizeof(q->info) };
		s->question = q;
	}
	pthread_mutex_unlock(&r->lock);
	return q;
}

/* Asks the servers that were not asked in this round. */
static void ask_servers(struct volume_reach *r)
{
	for (struct question *q; r->m && (q = next_question(r)) != NULL;) {
		int err = leat_volume_aio_ask(r->m, q->id, &q->info, (struct leat_cb){ .fn = on_reply, .user_data = q });

		if (err)
			on_reply(q, err);
	}
}

/* ---- the thread: the session ---------------------------------------------------------------- */

/* No file is opened, so none has a layout. */
static int no_layout(void *file, struct leat_volume_question *q)
{
	(void)file;
	(void)q;
	return -EIO;
}

/* Return: 0, also if there was a session already; -errno */
static int mount_volume(struct volume_reach *r, struct volume_manager *m)
{
	const struct leat_volume_source source = { .size = sizeof(source), .layout = no_layout };
	struct volume_view view;
	struct leat_opts *o;
	char timeo[24];
	int err;

	if (r->m)
		return leat_volume_use(r->m, volume_view_map(m, &view), m->key);
	o = leat_opts_create();
	err = o ? 0 : -ENOMEM;
	(void)snprintf(timeo, sizeof(timeo), "%" PRIu32 "ms", MAX(m->stripe_timeo_ms / 2, 1u));
	if (!err)
		err = leat_set(o, "stripe_timeo", volume_times.server ? volume_times.server : timeo);
	if (!err && !r->session)
		err = leat_session_create(o, &r->session);
	if (!err)
		err = leat_volume_mount(r->session, &source, volume_view_map(m, &view), m->key, o, &r->m);
	leat_opts_destroy(o);
	return err;
}

/* Takes over a newer manager, if there is one, and begins a round. */
static void take_manager(struct volume_reach *r)
{
	struct volume_manager *m, *old;
	int err;

	pthread_mutex_lock(&r->lock);
	m = r->next;
	if (m)
		atomic_fetch_add(&m->refs, 1);
	pthread_mutex_unlock(&r->lock);
	if (!m)
		return;
	err = mount_volume(r, m);
	pthread_mutex_lock(&r->lock);
	r->err = err;
	old = m;
	if (!err) {
		take_servers(r, m);
		old = r->using;
		r->using = m;
	}
	if (!err && r->next == m) {
		volume_manager_put(r->next);
		r->next = NULL;
	}
	r->next_ns = 0;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	if (err)
		log_warn("volume %s: stripe servers cannot be asked: %s", m->name + 1, strerror(-err));
	volume_manager_put(old);
}

/* A server that is back is found in about as long as one that does not reply. */
static uint64_t period_ns(struct volume_reach *r)
{
	uint64_t ns = PERIOD_MAX_NS;

	if (volume_times.probe_ns)
		return volume_times.probe_ns;
	pthread_mutex_lock(&r->lock);
	if (r->using)
		ns = MIN(ns, r->using->stripe_timeo_ms * NS_PER_MS / 2);
	pthread_mutex_unlock(&r->lock);
	return MAX(ns, PERIOD_MIN_NS);
}

/* Return: the time until the next round, or until it is woken */
static int wait_ms(struct volume_reach *r)
{
	uint64_t now = clock_now_ns();

	if (now >= r->next_ns) {
		pthread_mutex_lock(&r->lock);
		r->round++;
		pthread_mutex_unlock(&r->lock);
		r->next_ns = now + period_ns(r);
	}
	return (int)MIN((r->next_ns - now + NS_PER_MS - 1) / NS_PER_MS, (uint64_t)INT32_MAX);
}

static bool must_end(struct volume_reach *r)
{
	bool end;

	pthread_mutex_lock(&r->lock);
	end = r->stop;
	pthread_mutex_unlock(&r->lock);
	return end;
}

static void sleep_until(struct volume_reach *r, int ms)
{
	struct pollfd fds[] = { { .fd = r->wake_fd, .events = POLLIN },
				{ .fd = r->session ? leat_fd(r->session) : -1, .events = POLLIN } };
	uint64_t count;

	(void)poll(fds, ARRAY_SIZE(fds), ms);
	if (read(r->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		log_debug("volume_reach: %s", strerror(errno));
}

static void *run(void *arg)
{
	struct volume_reach *r = arg;

	creds_stay();
	while (!must_end(r)) {
		int ms;

		take_manager(r);
		ms = wait_ms(r);
		do {
			ask_servers(r);
		} while (r->session && leat_poll(r->session, 0) > 0);
		sleep_until(r, ms);
	}
	(void)leat_umount_within(r->m, 0);
	(void)leat_session_free(r->session); /* it has no mounts left */
	return NULL;
}

/* ---- callers -------------------------------------------------------------------------------- */

static void wake(struct volume_reach *r)
{
	const uint64_t one = 1;

	if (write(r->wake_fd, &one, sizeof(one)) < 0)
		log_debug("volume_reach: %s", strerror(errno)); /* full: it is awake */
}

int volume_reach_create(struct volume_dir *d, struct volume_reach **ret)
{
	struct volume_reach *r = calloc(1, sizeof(*r));
	int err = 0;

	if (!r)
		return -ENOMEM;
	r->dir = d;
	pthread_mutex_init(&r->lock, NULL);
	cond_init(&r->changed);
	r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->wake_fd < 0)
		err = -errno;
	if (!err)
		err = -pthread_create(&r->thread, NULL, run, r);
	r->is_joined = err != 0;
	if (err)
		volume_reach_destroy(r);
	else
		*ret = r;
	return err;
}

void volume_reach_stop(struct volume_reach *r)
{
	if (!r || r->is_joined)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	wake(r);
	pthread_join(r->thread, NULL);
	r->is_joined = true;
}

void volume_reach_destroy(struct volume_reach *r)
{
	if (!r)
		return;
	volume_reach_stop(r);
	volume_manager_put(r->using);
	volume_manager_put(r->next);
	if (r->wake_fd >= 0)
		close(r->wake_fd);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

void volume_reach_use(struct volume_reach *r, struct volume_manager *m)
{
	struct volume_manager *old;

	atomic_fetch_add(&m->refs, 1);
	pthread_mutex_lock(&r->lock);
	old = r->next;
	r->next = m;
	pthread_mutex_unlock(&r->lock);
	volume_manager_put(old);
	wake(r);
}

bool volume_reach_is_away(struct volume_reach *r, uint32_t id)
{
	const struct server *s;
	bool away;

	pthread_mutex_lock(&r->lock);
	s = find_server(r, id, 0);
	away = s && s->state == VOLUME_SEEN_AWAY;
	pthread_mutex_unlock(&r->lock);
	return away;
}

void volume_reach_failed(struct volume_reach *r, uint32_t id, const char *why)
{
	struct server *s;

	pthread_mutex_lock(&r->lock);
	s = find_server(r, id, 0);
	if (s)
		set_away(r, s, why);
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

unsigned volume_reach_pick(struct volume_reach *r, const struct volume_map *map, unsigned *list, unsigned n, uint64_t *room)
{
	unsigned left = 0;

	memset(room, 0, n * sizeof(*room));
	pthread_mutex_lock(&r->lock);
	for (unsigned i = 0; i < n; i++) {
		const struct server *s = find_server(r, map->servers[list[i]].id, list[i]);

		if (s && s->state == VOLUME_SEEN_AWAY)
			continue;
		list[left] = list[i];
		room[left++] = s ? s->bytes_free : 0;
	}
	pthread_mutex_unlock(&r->lock);
	return left ? left : n;
}

/* Under the lock. */
static bool has_ended(const struct volume_reach *r, uint64_t round)
{
	if (r->next || !r->using)
		return false;
	for (unsigned i = 0; i < r->n; i++) {
		if (r->servers[i].state != VOLUME_SEEN_AWAY && r->servers[i].round < round)
			return false;
	}
	return true;
}

int volume_reach_term(struct volume_reach *r, uint64_t *ret)
{
	uint64_t newest = 0, round;
	int err;

	pthread_mutex_lock(&r->lock);
	round = ++r->round;
	r->err = 0;
	wake(r);
	while (!r->stop && !r->err && !has_ended(r, round))
		pthread_cond_wait(&r->changed, &r->lock);
	err = r->stop ? -ESHUTDOWN : r->err;
	for (unsigned i = 0; i < r->n; i++) {
		if (r->servers[i].state != VOLUME_SEEN_AWAY)
			newest = MAX(newest, r->servers[i].term);
	}
	pthread_mutex_unlock(&r->lock);
	if (!err)
		*ret = newest;
	return err;
}

unsigned volume_reach_list(struct volume_reach *r, const struct volume_map *map, volume_seen ret[VOLUME_SERVERS_MAX])
{
	uint64_t now = clock_now_ns();

	pthread_mutex_lock(&r->lock);
	for (unsigned i = 0; i < map->n; i++) {
		const struct server *s = find_server(r, map->servers[i].id, i);

		ret[i] = (volume_seen){ .server = map->servers[i].id };
		if (!s)
			continue;
		ret[i].state = s->state;
		ret[i].ms = (now - MIN(now, s->since_ns)) / NS_PER_MS;
	}
	pthread_mutex_unlock(&r->lock);
	return map->n;
}

static void add_bytes(uint64_t *sum, uint64_t bytes)
{
	if (__builtin_add_overflow(*sum, bytes, sum))
		*sum = UINT64_MAX;
}

bool volume_reach_space(struct volume_reach *r, struct volume_space *ret)
{
	struct volume_space sum = { 0 };

	pthread_mutex_lock(&r->lock);
	for (unsigned i = 0; i < r->n; i++) {
		add_bytes(&sum.bytes, r->servers[i].bytes);
		add_bytes(&sum.bytes_used, r->servers[i].bytes_used);
		add_bytes(&sum.bytes_free, r->servers[i].bytes_free);
	}
	pthread_mutex_unlock(&r->lock);
	*ret = sum;
	return sum.bytes;
}
