/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_set.c - the block volumes in service, with their options, and their descriptors on each reactor
 *
 * Operation: A volume is identified by its name, its path and its file. At a reload, one that stays keeps its struct
 *            block_volume, with its holders; only its options change. Each reactor has a descriptor of its own for
 *            data. Syncs use that of the volume: the kernel reports a loss once to each open file.
 * Memory:    struct block_set, by served.c.
 * Threads:   That of server_start(), or a reload; on reactors the set is read-only.
 * Errors:    A text for the user; nothing is changed then.
 */
#include "block_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/opt.h"
#include "block_holders.h"
#include "block_state.h"
#include "conf.h"

/* ---- peers -------------------------------------------------------------------------------- */

static bool is_user(const struct block_conf *c, const struct rpcrdma_peer *peer)
{
	if (!peer->has_cred)
		return false;
	for (size_t i = 0; i < c->nusers; i++) {
		if (c->users[i] == peer->uid)
			return true;
	}
	return !c->nusers && (peer->uid == geteuid() || peer->uid == 0);
}

bool block_entry_admits(const struct block_entry *e, const struct rpcrdma_peer *peer)
{
	return peer->transport == RPCRDMA_LOCAL ? is_user(&e->conf, peer)
						: peers_admit(&e->conf.peers, peer) == PEER_ADMITTED;
}

bool block_entry_may_take_over(const struct block_entry *e, const struct rpcrdma_peer *peer)
{
	switch (e->conf.take_over) {
	case BLOCK_CONF_TAKE_OVER_ALL:
		return true;
	case BLOCK_CONF_TAKE_OVER_SOME:
		return peer->transport == RPCRDMA_LOCAL || peers_admit(&e->conf.take_over_peers, peer) == PEER_ADMITTED;
	case BLOCK_CONF_TAKE_OVER_NONE:
		break;
	}
	return false;
}

/* ---- the set ------------------------------------------------------------------------------ */

static int compare_names(const void *a, const void *b)
{
	return strcmp((*(const struct block_conf *const *)a)->name, (*(const struct block_conf *const *)b)->name);
}

const struct block_entry *block_set_find(const struct block_set *s, const char *name)
{
	for (size_t i = 0; i < s->served.n; i++) {
		if (!strcmp(s->v[i].conf.name, name))
			return &s->v[i];
	}
	return NULL;
}

const struct block_entry *block_set_find_id(const struct block_set *s, uint64_t id)
{
	for (size_t i = 0; i < s->served.n; i++) {
		if (s->v[i].vol->id == id)
			return &s->v[i];
	}
	return NULL;
}

static struct backing *backing_of(struct served *s, size_t i)
{
	return &container_of(s, struct block_set, served)->v[i].backing;
}

static unsigned judge(struct served *s, size_t i, const struct rpcrdma_peer *peer)
{
	return block_entry_admits(&block_set_from(s)->v[i], peer) ? PEER_ADMITTED : PEER_NOT_ADDRESS;
}

static void close_set(struct served *served)
{
	struct block_set *s = container_of(served, struct block_set, served);

	for (size_t i = 0; i < s->served.n; i++) {
		if (s->v[i].vol)
			block_volume_leave(s->v[i].vol);
		block_volume_put(s->v[i].vol);
		block_conf_fini(&s->v[i].conf);
	}
}

static void close_files(struct served_use *u)
{
	struct store_file *files = u->state;

	for (size_t i = 0; i < u->served->n; i++) {
		if (files[i].fd >= 0)
			store_close(&files[i]);
	}
	free(files);
}

static int open_file(const struct block_entry *e, struct store_file *ret)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", e->vol->lock_fd);
	fd = open(path, (e->conf.ro ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	store_adopt((struct backing *)(uintptr_t)&e->backing, fd, !e->conf.ro, ret);
	ret->dev = e->vol->dev;
	ret->ino = e->vol->ino;
	return 0;
}

static int open_files(struct served_use *u)
{
	struct block_set *s = block_set_of(u);
	struct store_file *files = calloc(s->served.n ? s->served.n : 1, sizeof(*files));
	int err = 0;

	if (!files)
		return -ENOMEM;
	for (size_t i = 0; i < s->served.n; i++)
		files[i].fd = -1;
	u->state = files;
	for (size_t i = 0; i < s->served.n && !err; i++)
		err = open_file(&s->v[i], &files[i]);
	return err;
}

static int copy_conf(const struct block_conf *from, struct block_conf *to)
{
	*to = *from;
	to->name = strdup(from->name);
	to->path = strdup(from->path);
	return to->name && to->path ? 0 : -ENOMEM;
}

/* A volume that a reload leaves out is in use until then. */
static int check_twins(const struct block_conf *c, const struct block_set *old, char *why, size_t why_bytes)
{
	for (size_t i = 0; old && i < old->served.n; i++) {
		const struct block_conf *was = &old->v[i].conf;

		if (!strcmp(was->name, c->name))
			return opt_fail(-EBUSY, why, why_bytes, "it was another file until now: leave it out of one reload first");
		if (!strcmp(was->path, c->path))
			return opt_fail(-EBUSY, why, why_bytes, "its file is that of %s until now: leave that out of one reload first",
					was->name);
	}
	return 0;
}

static int open_volume(const struct block_conf *c, const struct block_set *old, const char *state_dir,
		       struct block_volume **ret, char *why, size_t why_bytes)
{
	const struct block_entry *same = old ? block_set_find(old, c->name) : NULL;
	int err;

	if (same && same->vol->id == block_volume_id(c)) {
		*ret = block_volume_hold(same->vol);
		return 0;
	}
	err = check_twins(c, old, why, why_bytes);
	return err ? err : block_volume_open(c, state_dir, ret, why, why_bytes);
}

static int find_caps(struct block_entry *e)
{
	struct store_file f;
	int err = open_file(e, &f);

	if (err)
		return err;
	store_caps_find(&f, &e->caps);
	store_close(&f);
	return 0;
}

static int open_entry(const struct block_conf *c, const struct block_set *old, const char *state_dir,
		      struct block_entry *e, char *why, size_t why_bytes)
{
	int err = copy_conf(c, &e->conf);

	if (!err)
		err = open_volume(c, old, state_dir, &e->vol, why, why_bytes);
	if (err)
		return err;
	block_volume_enter(e->vol);
	if (c->data.write == DATA_WRITE_CACHED)
		block_state_cached(e->vol->state);
	e->backing = (struct backing){ .name = e->conf.name, .path = e->conf.path, .data = &e->conf.data,
				      .dev = e->vol->dev, .ino = e->vol->ino, .fsyncs = e->vol->fsyncs,
				      .one_sync = true, .sync_fd = e->vol->lock_fd };
	fs_limits_find_file(e->vol->lock_fd, &e->backing.limits);
	e->block = MAX(e->conf.block, e->vol->sector);
	return find_caps(e);
}

static void explain(const struct block_conf *c, int err, const char *reason, char *why, size_t why_bytes)
{
	char line[24] = "";

	if (c->line)
		(void)snprintf(line, sizeof(line), " (line %u)", c->line);
	if (*reason)
		(void)opt_fail(err, why, why_bytes, "block %s%s: %s", c->name, line, reason);
	else
		(void)opt_fail(err, why, why_bytes, "block %s%s: %s: %s", c->name, line, c->path, strerror(-err));
}

/* Keeps holders out of a volume that has none. Return: false: it has one, which @buf describes */
static bool may_leave(struct block_volume *v, char *buf, size_t bytes)
{
	const struct block_attachment *a = NULL;
	bool leaves;

	pthread_mutex_lock(&v->lock);
	if (!list_is_empty(&v->holders))
		a = list_first_entry(&v->holders, struct block_attachment, link);
	else if (!list_is_empty(&v->ending))
		a = list_first_entry(&v->ending, struct block_attachment, link);
	if (a)
		(void)snprintf(buf, bytes, "%s (%s, %s)", a->name, a->peer, a->app);
	else if (v->attaching)
		(void)snprintf(buf, bytes, "a holder that is about to attach");
	leaves = v->leaving = !a && !v->attaching;
	pthread_mutex_unlock(&v->lock);
	return leaves;
}

void block_set_stay(struct block_set *s)
{
	for (size_t i = 0; i < s->served.n; i++) {
		pthread_mutex_lock(&s->v[i].vol->lock);
		s->v[i].vol->leaving = false;
		pthread_mutex_unlock(&s->v[i].vol->lock);
	}
}

static int check_removed(const struct conf *conf, const struct block_set *old, char *why, size_t why_bytes)
{
	char holder[2 * BLOCK_NAME_MAX + BLOCK_TEXT_MAX + 8];

	for (size_t i = 0; i < old->served.n; i++) {
		const struct block_entry *e = &old->v[i];
		bool kept = false;

		for (size_t k = 0; k < conf->nblocks && !kept; k++)
			kept = !strcmp(conf->blocks[k].name, e->conf.name) &&
			       block_volume_id(&conf->blocks[k]) == e->vol->id;
		if (!kept && !may_leave(e->vol, holder, sizeof(holder)))
			return opt_fail(-EBUSY, why, why_bytes, "block %s: in use by %s; detach it, or end it by leat block take-over", e->conf.name,
					holder);
	}
	return 0;
}

static int open_entries(const struct conf *conf, const struct block_set *old, const char *state_dir, struct block_set *s,
			char *why, size_t why_bytes)
{
	const struct block_conf *sorted[CONF_BLOCKS_MAX];
	char reason[CONF_WHY_BYTES] = "";
	int err = 0;

	for (size_t i = 0; i < conf->nblocks; i++)
		sorted[i] = &conf->blocks[i];
	qsort(sorted, conf->nblocks, sizeof(sorted[0]), compare_names);
	for (size_t i = 0; i < conf->nblocks && !err; i++) {
		s->v[i].idx = (unsigned)i;
		s->served.n = i + 1;
		err = open_entry(sorted[i], old, state_dir, &s->v[i], reason, sizeof(reason));
		if (err)
			explain(sorted[i], err, reason, why, why_bytes);
	}
	return err;
}

int block_set_create(const struct conf *conf, struct block_set *old, const char *state_dir, struct served **ret,
		     char *why, size_t why_bytes)
{
	struct block_set *s = NULL;
	int err = old ? check_removed(conf, old, why, why_bytes) : 0;

	if (!err) {
		s = calloc(1, sizeof(*s) + conf->nblocks * sizeof(s->v[0]));
		err = s ? 0 : opt_fail(-ENOMEM, why, why_bytes, "out of memory");
	}
	if (!err) {
		served_init(&s->served, 0, backing_of, close_set);
		s->served.judge = judge;
		s->served.open_use = open_files;
		s->served.close_use = close_files;
		err = open_entries(conf, old, state_dir, s, why, why_bytes);
	}
	if (!err) {
		*ret = &s->served;
		return 0;
	}
	if (s)
		served_put(&s->served);
	if (old)
		block_set_stay(old);
	return err;
}

/* ---- log ---------------------------------------------------------------------------------- */

static bool says_the_same(const struct block_conf *a, const struct block_conf *b)
{
	return a->ro == b->ro && a->share == b->share && a->block == b->block && peers_same(&a->peers, &b->peers) &&
	       a->nusers == b->nusers && !memcmp(a->users, b->users, a->nusers * sizeof(a->users[0])) &&
	       a->take_over == b->take_over && peers_same(&a->take_over_peers, &b->take_over_peers) &&
	       data_conf_same(&a->data, &b->data);
}

void block_set_announce(const struct block_set *old, const struct block_set *now)
{
	for (size_t i = 0; old && i < old->served.n; i++) {
		if (!block_set_find_id(now, old->v[i].vol->id))
			log_info("block %s: not served any more", old->v[i].conf.name);
	}
	for (size_t i = 0; i < now->served.n; i++) {
		const struct block_entry *e = &now->v[i];
		const struct block_entry *was = old ? block_set_find_id(old, e->vol->id) : NULL;
		const char *warning = store_spec_warning(&e->conf.data.store);
		char how[DATA_CONF_PRINT_BYTES];

		if (was && says_the_same(&was->conf, &e->conf))
			continue;
		log_info("block %s: %s, %llu bytes in blocks of %u, %s, %s%s%s", e->conf.name, e->conf.path,
			 (unsigned long long)block_entry_bytes(e), e->block, e->conf.ro ? "read-only" : "read and write",
			 e->conf.share == BLOCK_CONF_SHARED ? "shared" : "exclusive",
			 data_conf_print(&e->conf.data, how, sizeof(how)), e->conf.peers.secure ? "" : ", from any port");
		if (warning)
			log_warn("block %s: %s", e->conf.name, warning);
	}
}
