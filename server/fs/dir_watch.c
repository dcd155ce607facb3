/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dir_watch.c - proves the attributes of a directory before and after a change of its names
 *
 * Operation: a change takes the directory's turn, calls statx(), makes the change, calls statx(), takes
 *            and releases the kernel's lock of the directory (pass_lock), and reads inotify's queue. It is
 *            proved if the queue has exactly the events of the change itself. The kernel changes names,
 *            mode, owner and lists, and queues the event, in one section under that lock. So the events of
 *            everything that the second statx() has seen are in the queue by then. Any other event counts
 *            as a foreign change, even if this server made it without a turn.
 *
 *            Clients compare ctimes, and before Linux 6.13 all changes of one clock tick have the same
 *            one. struct dir_run (dir_ctime.h) says whether the present ctime stands for one state, or for
 *            states made by a single client. If a directory was not watched when it got its ctime, this is
 *            known only under three conditions. The tick was over when the watch began. No client received
 *            the ctime during the tick (dir_watch_statx). No earlier run of the server can have sent it,
 *            or the file system never gives two changes one ctime after it was read.
 * Memory:    an entry per watched directory, at most @max for each file system; the least recently used
 *            one is evicted. A file system without exports is dropped when exports are next opened.
 * Threads:   workers. Locks, in this order: the turns of at most two directories, by address; w->lock. The
 *            file system's calls run under turns, those of inotify under w->lock. inotify_add_watch() may
 *            read from the disk, so each file system has its own struct dir_watch, with its own lock,
 *            queue and entries: a hanging file system delays only changes of its own names. One change
 *            reads a limited number of events; if more are queued, no entry of the file system proves
 *            anything.
 * Errors:    none: a directory that cannot be watched is not proved.
 */
#include "dir_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/list.h"
#include "dir_ctime.h"
#include "fh.h"
#include "vfs_int.h"

#define CHAINS 1024u
#define EVENTS_BYTES 4096u
#define EVENT_BYTES_MAX (sizeof(struct inotify_event) + 256)
#define DRAIN_READS_MAX 16u /* about 2,000 events each time the queue is read */
#define WATCH_MASK                                                                                 \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_MOVE_SELF |          \
	 IN_DELETE_SELF | IN_ONLYDIR)
/* events that end a watch; the kernel has removed it, or is about to */
#define WATCH_ENDED (IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF)

struct expected {
	uint32_t event;
	const char *name;
	bool seen;
};

struct watched_dir {
	struct hash_node by_ino;     /* w->by_ino: hash of dev, ino */
	struct hash_node by_wd;	     /* w->by_wd: wd */
	struct list unused;	     /* w->unused, if users is 0 */
	uint64_t dev, ino;
	int wd;
	unsigned users;
	bool ended;	/* the kernel has removed the watch */
	bool disturbed; /* there was an event not caused by a change of this server */
	struct expected expected[DIR_WATCH_STEPS];
	unsigned nexpected;

	pthread_mutex_t turn;
	/* used by the holder of turn */
	bool looked; /* run is valid */
	struct dir_run run;
};

/* One file system. */
struct dir_watch {
	struct list link; /* all->list */
	struct dir_watches *all;
	uint64_t dev;
	unsigned refs; /* protected by all->lock */
	int fd;
	pthread_mutex_t lock; /* protects the members below, and those of struct watched_dir above turn */
	struct list unused;   /* least recently used first */
	struct hash by_ino, by_wd;
};

struct dir_watches {
	bool no_past;
	uint64_t since_ns; /* start time of this server, by the clock of ctimes */
	unsigned max;
	pthread_mutex_t lock; /* protects list, and refs of its entries; never held during a system call */
	struct list list;     /* of struct dir_watch */
};

/* Reads attributes that are not sent to clients, except as the `after` of a change. */
static int look_at(int fd, struct statx *ret)
{
	return statx(fd, "", AT_EMPTY_PATH, FH_STATX_MASK, ret) ? -errno : 0;
}

int dir_watch_statx(int dir, const char *name, int flags, struct statx *ret)
{
	uint64_t tick = dir_ctime_tick(), ctime; /* read before statx(): a delay would make the ctime look old */

	if (statx(dir, name, flags, FH_STATX_MASK, ret))
		return -errno;
	if (!S_ISDIR(ret->stx_mode))
		return 0;
	ctime = dir_ctime_ns(ret);
	if (ctime >= tick - TICK_NS_MAX)
		dir_ctime_note(stx_dev(ret), ret->stx_ino, ctime);
	return 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

static void free_dir(struct watched_dir *d)
{
	pthread_mutex_destroy(&d->turn);
	free(d);
}

static struct watched_dir *find_ino(const struct dir_watch *w, uint64_t dev, uint64_t ino)
{
	hash_for_each_equal(n, &w->by_ino, dir_ctime_hash(dev, ino)) {
		struct watched_dir *d = container_of(n, struct watched_dir, by_ino);

		if (d->ino == ino && d->dev == dev)
			return d;
	}
	return NULL;
}

static struct watched_dir *find_wd(const struct dir_watch *w, int wd)
{
	struct hash_node *n = hash_first(&w->by_wd, (unsigned)wd);

	return n ? container_of(n, struct watched_dir, by_wd) : NULL;
}

static void note_event(struct dir_watch *w, struct watched_dir *d, const struct inotify_event *ev)
{
	uint32_t event = ev->mask;

	if (event & WATCH_ENDED) {
		d->ended = true;
		if (list_is_linked(&d->unused)) { /* next to be evicted */
			list_del(&d->unused);
			list_add_head(&w->unused, &d->unused);
		}
	}
	if (event & IN_ATTRIB && ev->len) /* of a file in the directory */
		return;
	for (unsigned i = 0; i < d->nexpected; i++) {
		struct expected *x = &d->expected[i];

		if (!x->seen && x->event == event && ev->len && !strcmp(x->name, ev->name)) {
			x->seen = true;
			return;
		}
	}
	d->disturbed = true;
}

static void disturb_all(struct dir_watch *w)
{
	for (struct hash_node *n = NULL; (n = hash_step(&w->by_ino, n)) != NULL;)
		container_of(n, struct watched_dir, by_ino)->disturbed = true;
}

static void note_events(struct dir_watch *w, const char *buf, size_t bytes)
{
	const struct inotify_event *ev;

	for (size_t at = 0; at < bytes; at += sizeof(*ev) + ev->len) {
		struct watched_dir *d;

		ev = (const void *)(buf + at);
		d = ev->wd < 0 ? NULL : find_wd(w, ev->wd);
		if (ev->mask & IN_Q_OVERFLOW) /* some events were lost */
			disturb_all(w);
		else if (d) /* otherwise: of a directory that is no longer watched */
			note_event(w, d, ev);
	}
}

/* Processes all queued events. Call with the lock held. The number of reads is limited, because local programs may
 * add events faster than they are read. Events left over count as a disturbance of every directory, now and when they
 * are read. */
static void drain(struct dir_watch *w)
{
	_Alignas(struct inotify_event) char buf[EVENTS_BYTES];
	unsigned reads = 0;
	ssize_t n;

	do {
		if (reads++ >= DRAIN_READS_MAX) {
			disturb_all(w);
			return;
		}
		n = read(w->fd, buf, sizeof(buf));
		if (n > 0)
			note_events(w, buf, (size_t)n);
		else if (n < 0 && errno != EAGAIN && errno != EINTR)
			disturb_all(w);
	} while ((n < 0 && errno == EINTR) || n > (ssize_t)(sizeof(buf) - EVENT_BYTES_MAX));
}

/* The state of a directory is about to be dropped. The queue is empty, or the directory is disturbed. */
static void note_forgotten(const struct watched_dir *d)
{
	const struct dir_run *r = &d->run;
	uint64_t now = dir_ctime_tick();

	/* a client may have received a ctime that stands for more than one state, or may still do so */
	if (!r->known || d->disturbed || r->client || r->ctime_ns >= now - TICK_NS_MAX)
		dir_ctime_note(d->dev, d->ino, r->known && !d->disturbed ? r->ctime_ns : now);
}

/* no users; call with the lock held */
static void forget(struct dir_watch *w, struct watched_dir *d)
{
	drain(w);
	note_forgotten(d);
	hash_del(&w->by_ino, &d->by_ino);
	hash_del(&w->by_wd, &d->by_wd);
	list_del(&d->unused);
	if (!d->ended)
		(void)inotify_rm_watch(w->fd, d->wd);
	free_dir(d);
}

static bool forget_one(struct dir_watch *w)
{
	if (list_is_empty(&w->unused))
		return false;
	forget(w, list_first_entry(&w->unused, struct watched_dir, unused));
	return true;
}

static int add_watch(struct dir_watch *w, const struct fh_obj *dir)
{
	char path[VFS_PROC_PATH];
	int wd;

	do {
		wd = inotify_add_watch(w->fd, vfs_proc_path(dir->fd, path), WATCH_MASK);
	} while (wd < 0 && errno == ENOSPC && forget_one(w));
	return wd;
}

/* Call with the lock held. Return: the entry, or NULL */
static struct watched_dir *watch(struct dir_watch *w, const struct fh_obj *dir)
{
	struct watched_dir *d;
	int wd;

	if (w->by_ino.n >= w->all->max && !forget_one(w))
		return NULL;
	wd = add_watch(w, dir);
	/* one inode has one watch: this is an entry of a removed directory with a reused inode number */
	if (wd < 0 || find_wd(w, wd))
		return NULL;
	d = calloc(1, sizeof(*d));
	if (!d) {
		(void)inotify_rm_watch(w->fd, wd);
		return NULL;
	}
	d->dev = stx_dev(&dir->stx);
	d->ino = dir->stx.stx_ino;
	d->wd = wd;
	pthread_mutex_init(&d->turn, NULL);
	list_init(&d->unused);
	hash_add(&w->by_ino, &d->by_ino, dir_ctime_hash(d->dev, d->ino));
	hash_add(&w->by_wd, &d->by_wd, (unsigned)wd);
	return d;
}

static struct watched_dir *get(struct dir_watch *w, const struct fh_obj *dir)
{
	struct watched_dir *d;

	pthread_mutex_lock(&w->lock);
	d = find_ino(w, stx_dev(&dir->stx), dir->stx.stx_ino);
	if (!d)
		d = watch(w, dir);
	if (d) {
		d->users++;
		list_del(&d->unused);
	}
	pthread_mutex_unlock(&w->lock);
	return d;
}

static void put(struct dir_watch *w, struct watched_dir *d)
{
	pthread_mutex_lock(&w->lock);
	if (!--d->users) {
		list_add_tail(&w->unused, &d->unused);
		if (d->ended)
			forget(w, d);
	}
	pthread_mutex_unlock(&w->lock);
}

/* ---- file systems --------------------------------------------------------------------------- */

int dir_watches_create(bool no_past, unsigned max, struct dir_watches **ret)
{
	struct dir_watches *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->no_past = no_past;
	all->since_ns = dir_ctime_tick();
	all->max = max;
	list_init(&all->list);
	pthread_mutex_init(&all->lock, NULL);
	*ret = all;
	return 0;
}

static int create_watch(struct dir_watches *all, uint64_t dev, struct dir_watch **ret)
{
	struct dir_watch *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	err = hash_init(&w->by_ino, CHAINS);
	if (!err)
		err = hash_init(&w->by_wd, CHAINS);
	if (!err) {
		w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
		err = w->fd < 0 ? -errno : 0;
	}
	if (err) {
		hash_fini(&w->by_ino);
		hash_fini(&w->by_wd);
		free(w);
		return err;
	}
	w->all = all;
	w->dev = dev;
	w->refs = 1;
	list_init(&w->unused);
	pthread_mutex_init(&w->lock, NULL);
	*ret = w;
	return 0;
}

static void free_watch(struct dir_watch *w)
{
	struct list *l;

	drain(w);
	while ((l = list_pop(&w->unused)) != NULL) {
		struct watched_dir *d = list_entry(l, struct watched_dir, unused);

		note_forgotten(d);
		free_dir(d);
	}
	close(w->fd); /* also removes its watches */
	hash_fini(&w->by_ino);
	hash_fini(&w->by_wd);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static void free_watches(struct list *watches)
{
	struct list *l;

	while ((l = list_pop(watches)) != NULL)
		free_watch(list_entry(l, struct dir_watch, link));
}

void dir_watches_destroy(struct dir_watches *all)
{
	if (!all)
		return;
	free_watches(&all->list);
	pthread_mutex_destroy(&all->lock);
	free(all);
}

int dir_watch_get(struct dir_watches *all, uint64_t dev, struct dir_watch **ret)
{
	struct list unused = LIST_INIT(unused);
	struct dir_watch *found = NULL;
	int err;

	pthread_mutex_lock(&all->lock);
	list_for_each_safe(l, &all->list) {
		struct dir_watch *w = list_entry(l, struct dir_watch, link);

		if (w->dev == dev) {
			w->refs++;
			found = w;
		} else if (!w->refs) {
			list_del(l);
			list_add_tail(&unused, l);
		}
	}
	pthread_mutex_unlock(&all->lock);
	free_watches(&unused);
	if (!found) {
		err = create_watch(all, dev, &found);
		if (err)
			return err;
		pthread_mutex_lock(&all->lock);
		list_add_tail(&all->list, &found->link);
		pthread_mutex_unlock(&all->lock);
	}
	*ret = found;
	return 0;
}

void dir_watch_put(struct dir_watch *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->all->lock);
	w->refs--;
	pthread_mutex_unlock(&w->all->lock);
}

/* ---- a change ------------------------------------------------------------------------------- */

/* Takes and releases the kernel's lock of the directory, by looking up a name. The name is too long to be valid, so
 * it is in no cache. The kernel asks the file system under the lock, which refuses it without disk access.
 *
 * Return: whether it was asked. */
static bool pass_lock(const struct fh_obj *dir)
{
	char name[VFS_NAME_MAX + 2];
	struct stat st;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	return fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) && errno == ENAMETOOLONG;
}

static bool is_watchable(const struct fh_obj *dir)
{
	return dir->wcc && dir->exp->dirs && dir->exp->backing.limits.tells_changes &&
	       stx_dev(&dir->stx) == dir->exp->backing.dev;
}

/* The first change since the watch began: is its ctime known to stand for one state? */
static void look_first(const struct dir_watch *w, const struct dir_part *p)
{
	struct watched_dir *d = p->dir;
	uint64_t tick = dir_ctime_tick(), ctime;
	struct statx stx;

	/* after pass_lock(), operations that began before the tick have stored their ctime */
	if (!pass_lock(p->obj) || look_at(p->obj->fd, &stx))
		return;
	ctime = dir_ctime_ns(&stx);
	d->looked = true;
	d->run = (struct dir_run){
		.known = ctime < tick && !dir_ctime_was_told(d->dev, d->ino, ctime) &&
			 (ctime > w->all->since_ns || w->all->no_past ||
			  p->obj->exp->backing.limits.ctimes_differ),
		.ctime_ns = ctime,
	};
}

static void take_turns(struct dir_turn *t)
{
	struct watched_dir *a = t->parts[0].dir, *b = t->parts[1].dir;

	if (b && b < a) {
		a = b;
		b = t->parts[0].dir;
	}
	if (a)
		pthread_mutex_lock(&a->turn);
	if (b)
		pthread_mutex_lock(&b->turn);
}

/* Return: the part for @dir's directory, or NULL */
static struct dir_part *find_part(struct dir_turn *t, const struct fh_obj *dir)
{
	struct watched_dir *d = get(t->watch, dir);
	struct dir_part *p;

	if (!d)
		return NULL;
	for (p = t->parts; p < t->parts + t->nparts; p++) {
		if (p->dir == d) {
			put(t->watch, d);
			return p;
		}
	}
	t->nparts++;
	p->dir = d;
	p->obj = dir;
	return p;
}

/* events queued so far belong to earlier changes */
static void expect(struct dir_turn *t)
{
	pthread_mutex_lock(&t->watch->lock);
	for (unsigned i = 0; i < t->nparts; i++) {
		struct watched_dir *d = t->parts[i].dir;

		d->run.known &= !d->disturbed;
		d->disturbed = false;
	}
	for (unsigned i = 0; i < t->nsteps; i++) {
		const struct dir_step *s = &t->steps[i];
		struct watched_dir *d = t->part_of[i] ? t->part_of[i]->dir : NULL;

		if (d)
			d->expected[d->nexpected++] =
				(struct expected){ .event = s->event, .name = s->name };
	}
	pthread_mutex_unlock(&t->watch->lock);
}

void dir_watch_begin(struct dir_turn *t, const struct dir_step *steps, unsigned nsteps)
{
	*t = (struct dir_turn){ .nsteps = nsteps };
	for (unsigned i = 0; i < nsteps; i++) {
		t->steps[i] = steps[i];
		/* a change of names in two file systems fails */
		if (is_watchable(steps[i].dir) && (!t->watch || t->watch == steps[i].dir->exp->dirs)) {
			t->watch = steps[i].dir->exp->dirs;
			t->part_of[i] = find_part(t, steps[i].dir);
		}
	}
	if (!t->nparts)
		return;
	take_turns(t);
	for (unsigned i = 0; i < t->nparts; i++) {
		if (!t->parts[i].dir->looked)
			look_first(t->watch, &t->parts[i]);
	}
	expect(t);
	for (unsigned i = 0; i < t->nparts; i++) {
		struct dir_part *p = &t->parts[i];

		p->good = p->dir->looked && !look_at(p->obj->fd, &p->before);
	}
}

/* Two successive moves to one name from elsewhere make one event: does our file have the name? */
static bool is_in_place(const struct dir_step *s)
{
	return !s->moved || fh_has_name(s->moved, s->dir, s->name);
}

/* Call with the lock held and the queue empty. Return: there was no event except the change */
static bool is_explained(struct watched_dir *d, bool changed)
{
	bool as_expected = true;

	for (unsigned i = 0; i < d->nexpected; i++)
		as_expected &= d->expected[i].seen == changed;
	d->nexpected = 0;
	return as_expected && !d->disturbed && !d->ended;
}

static void look_last(struct dir_turn *t, bool changed)
{
	for (unsigned i = 0; i < t->nparts; i++) {
		struct dir_part *p = &t->parts[i];

		p->good = p->good && !look_at(p->obj->fd, &p->after);
	}
	for (unsigned i = 0; i < t->nsteps && changed; i++) {
		if (t->part_of[i])
			t->part_of[i]->good &= is_in_place(&t->steps[i]);
	}
	for (unsigned i = 0; i < t->nparts; i++)
		t->parts[i].good &= pass_lock(t->parts[i].obj);
	pthread_mutex_lock(&t->watch->lock);
	drain(t->watch);
	for (unsigned i = 0; i < t->nparts; i++)
		t->parts[i].good &= is_explained(t->parts[i].dir, changed);
	pthread_mutex_unlock(&t->watch->lock);
}

void dir_watch_end(struct dir_turn *t, bool changed)
{
	if (!t->nparts)
		return;
	look_last(t, changed);
	for (unsigned i = 0; i < t->nsteps; i++) {
		struct dir_wcc *wcc = t->steps[i].dir->wcc;
		struct dir_part *p = t->part_of[i];

		if (!p || !p->good)
			continue;
		wcc->changed = changed;
		wcc->proved = dir_run_allows(&p->dir->run, wcc->client, dir_ctime_ns(&p->before));
		wcc->before = p->before;
		wcc->after = p->after;
	}
	for (unsigned i = 0; i < t->nparts; i++) {
		struct dir_part *p = &t->parts[i];

		if (p->good)
			dir_run_go_on(&p->dir->run, p->obj->wcc->client, changed,
				  dir_ctime_ns(&p->before), dir_ctime_ns(&p->after));
		else
			p->dir->run.known = false;
		pthread_mutex_unlock(&p->dir->turn);
		put(t->watch, p->dir);
	}
}
