/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_pending.c - the thread that does what is pending on the stripe servers of a volume
 *
 * Operation: It looks through pending/, and does what the state of each file asks for (volume_pending.h). Callers of
 *            volume_pending_run(), _ask() and _queue() are served first. What cannot be completed, since a server is away,
 *            stays in pending/ and is tried again. So does an object whose leases have lapsed: volume_size.c asks for its
 *            size. volume_send.c sends the commands.
 * Memory:    Callers that wait are on their stacks, and stay until the thread has served them.
 * Threads:   One per directory. It never takes another identity: RDMA devices refuse threads that do.
 * Errors:    Logged; what failed stays pending.
 */
#include "volume_pending.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/dir.h"
#include "base/list.h"
#include "fh.h"
#include "vfs_int.h"
#include "volume_layout.h"
#include "volume_leases.h"
#include "volume_manager.h"
#include "volume_send.h"
#include "volume_size.h"
#include "volume_todo.h"

struct volume_times volume_times;

/* A caller that waits for what is pending for an object */
struct waiter {
	struct list link;
	char name[VOLUME_OBJECT_TEXT];
	bool done;
};

/* A thread that waits for the size of a file */
struct blocked {
	struct volume_asker asker;
	struct volume_pending *p;
	bool done; /* under its lock */
};

struct volume_pending {
	struct volume_dir *dir; /* outlives this */
	struct volume_send *send; /* the thread's */
	pthread_t thread;
	pthread_mutex_t open_lock; /* before the next: over the use of the next two, and a change of @manager */
	struct fh_set *fhs;	   /* NULL: no manager */
	uint32_t export_id;
	pthread_mutex_t lock;
	pthread_cond_t woken, served; /* of the thread; of callers */
	/* under the lock: */
	struct list waiters, askers; /* struct volume_asker */
	struct volume_manager *manager; /* in force; held. NULL: none */
	bool look, stop, deposed;
	bool told_odd; /* the thread's: log_odd() has */
	int term_err; /* of the attempt to take the term, told once; -EINPROGRESS: the thread is to take it */
};

/* ---- one file ------------------------------------------------------------------------------- */

/* Return: 0; -ENOENT; -errno; the caller closes @ret->fd */
static int open_pending(const struct volume_pending *p, struct volume_manager *m, const char *name, struct volume_file *ret)
{
	struct stat st;
	int fd = openat(p->dir->pending_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	*ret = (struct volume_file){ .m = m, .fd = fd, .ino = st.st_ino };
	return 0;
}

static int drop_link(const struct volume_pending *p, const char *name)
{
	return unlinkat(p->dir->pending_fd, name, 0) ? -errno : 0;
}

/* Under the lock of the inode. Drops the link if nothing is to be done. Return: enum volume_todo, or -errno */
static int find_todo(const struct volume_pending *p, const struct volume_file *f, const char *name, struct file_layout *ret)
{
	int err, todo = volume_todo_find(f, volume_layout_complete, ret);

	if (todo == VOLUME_TODO_DAMAGED)
		return -EBADMSG;
	if (todo != VOLUME_TODO_NOTHING)
		return todo;
	err = drop_link(p, name);
	return err ? err : todo;
}

/* Under the lock of the inode: all servers have the cut. */
static int end_cut(const struct volume_file *f, uint64_t epoch)
{
	struct file_layout l;
	int err = volume_layout_complete(f, &l);

	if (err || l.cut != FILE_CUT_FENCE || l.epoch != epoch)
		return err;
	file_layout_cut_done(&l);
	return volume_layout_put(f, &l);
}

/* Return: 0: done; 1: look again; -EAGAIN: a server is away; -errno */
static int do_step(struct volume_pending *p, const struct volume_file *f, const char *name)
{
	struct file_layout l;
	int todo, err;

	volume_file_lock(f);
	todo = find_todo(p, f, name, &l);
	volume_file_unlock(f);
	if (todo <= 0)
		return todo;
	if (todo == VOLUME_TODO_REMOVE) {
		err = volume_send_remove(p->send, f->m, &l);
		return err ? err : drop_link(p, name);
	}
	err = volume_send_cut(p->send, f->m, &l);
	if (err)
		return err;
	volume_file_lock(f);
	err = end_cut(f, l.epoch);
	volume_file_unlock(f);
	return err ? err : 1;
}

/* Under the lock: no more commands are sent. */
static bool is_over(const struct volume_pending *p)
{
	return p->stop || p->deposed;
}

static void depose(struct volume_pending *p)
{
	pthread_mutex_lock(&p->lock);
	p->deposed = true;
	pthread_mutex_unlock(&p->lock);
}

/* Return: true: complete */
static bool do_file(struct volume_pending *p, struct volume_manager *m, const char *name)
{
	struct volume_file f;
	int rc = open_pending(p, m, name, &f);

	if (rc)
		return true; /* it is gone, or not ours */
	do
		rc = do_step(p, &f, name);
	while (rc == 1);
	close(f.fd);
	if (rc == -EPERM)
		depose(p);
	else if (rc && rc != -EAGAIN)
		log_debug("volume %s: pending/%s: %s", m->name + 1, name, strerror(-rc));
	return !rc;
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static int ask_size(struct volume_pending *p, const struct volume_file *f)
{
	int err = volume_size_ask(p->send, f);

	if (err == -EPERM)
		depose(p);
	return err;
}

/* The handle has no signature, but what is done then depends on a layout that is signed for the file.
 * Return: 0; the caller closes @ret->fd; -ESTALE, -EBADF: the file is gone; -errno */
static int open_due(struct volume_pending *p, struct volume_manager *m, const struct volume_due *due, struct volume_file *ret)
{
	struct fh_obj o = { .fd = -1 };
	int err;

	pthread_mutex_lock(&p->open_lock);
	err = p->fhs ? fh_open_stripped(p->fhs, p->export_id, &due->fh, &o) : -EAGAIN;
	if (!err && (!o.exp->manager || o.exp->manager->dir != p->dir || !S_ISREG(o.stx.stx_mode))) {
		fh_close(&o);
		err = -ESTALE;
	}
	pthread_mutex_unlock(&p->open_lock);
	if (!err)
		*ret = (struct volume_file){ .m = m, .fd = o.fd, .ino = o.stx.stx_ino };
	return err;
}

/* The lease stays: another leatd may know the file. */
static void log_odd(struct volume_pending *p, const struct volume_manager *m, const struct volume_due *due)
{
	char name[VOLUME_OBJECT_TEXT];

	if (p->told_odd)
		return;
	p->told_odd = true;
	volume_object_text(due->object, name);
	log_warn("volume %s: writers/%s has a file handle of another kind, as of another user or an older leatd: the size of the "
		 "file may be too small until it is written again, or leatd runs as before, or leat volume fsck --repair. "
		 "Others like this are not logged", m->name + 1, name);
}

/* Return: true: the size is known */
static bool do_due(struct volume_pending *p, struct volume_manager *m, const struct volume_due *due)
{
	struct volume_file f;
	int err = open_due(p, m, due, &f);

	if (err == -ESTALE || err == -EBADF) {
		volume_leases_settle(p->dir->leases, due); /* no one else can have opened it */
		return true;
	}
	if (err == -EBADMSG)
		log_odd(p, m, due);
	if (err)
		return false;
	err = ask_size(p, &f);
	if (!err) {
		volume_file_lock(&f);
		volume_leases_settle(p->dir->leases, due);
		volume_file_unlock(&f);
	}
	close(f.fd);
	return !err;
}

static bool is_for(const struct volume_asker *a, const struct volume_due *of)
{
	return !memcmp(a->of.object, of->object, sizeof(of->object));
}

/* Moves the callers that wait for the size of the same file. */
static void take_askers(struct list *to, struct list *from, const struct volume_due *of)
{
	list_for_each_safe(n, from) {
		if (!is_for(list_entry(n, struct volume_asker, link), of))
			continue;
		list_del(n);
		list_add_tail(to, n);
	}
}

static const struct volume_file *open_file_of(const struct list *askers)
{
	list_for_each(n, askers) {
		const struct volume_asker *a = list_entry(n, struct volume_asker, link);

		if (a->file)
			return a->file;
	}
	return NULL;
}

/* @askers: all wait for the file @of. Return: as volume_asker.err */
static int ask_for(struct volume_pending *p, struct volume_manager *m, const struct volume_due *of, const struct list *askers)
{
	const struct volume_file *open = open_file_of(askers);
	struct volume_file f;
	int err;

	if (open)
		return ask_size(p, open);
	err = open_due(p, m, of, &f);
	if (err)
		return err == -EBADF ? -ESTALE : err;
	err = ask_size(p, &f);
	close(f.fd);
	return err;
}

/* Asks once for the first one of @now, and for all others that wait for the same file, also those that have come since. */
static void serve_askers(struct volume_pending *p, struct volume_manager *m, struct list *now)
{
	const struct volume_due of = list_first_entry(now, struct volume_asker, link)->of;
	struct list same = LIST_INIT(same), *n;
	bool may;
	int err;

	pthread_mutex_lock(&p->lock);
	take_askers(&same, now, &of);
	take_askers(&same, &p->askers, &of);
	may = m && !is_over(p);
	pthread_mutex_unlock(&p->lock);
	err = may ? ask_for(p, m, &of, &same) : -EIO;
	while ((n = list_pop(&same)) != NULL) {
		struct volume_asker *a = list_entry(n, struct volume_asker, link);

		a->err = err;
		a->done(a);
	}
}

/* ---- the thread ----------------------------------------------------------------------------- */

static bool must_end(struct volume_pending *p)
{
	bool end;

	pthread_mutex_lock(&p->lock);
	end = is_over(p);
	pthread_mutex_unlock(&p->lock);
	return end;
}

static void serve_threads(struct volume_pending *p, struct volume_manager *m)
{
	struct list now, *n;

	list_init(&now);
	pthread_mutex_lock(&p->lock);
	list_splice_tail(&now, &p->waiters);
	while ((n = list_pop(&now)) != NULL) {
		struct waiter *w = list_entry(n, struct waiter, link);
		bool may = m && !is_over(p);

		pthread_mutex_unlock(&p->lock);
		if (may)
			(void)do_file(p, m, w->name); /* an incomplete one is tried again with all the others */
		pthread_mutex_lock(&p->lock);
		w->done = true;
		pthread_cond_broadcast(&p->served);
	}
	pthread_mutex_unlock(&p->lock);
}

/* Takes the term, if a caller waits for it. */
static void serve_term(struct volume_pending *p, struct volume_manager *m)
{
	bool wanted;
	int err;

	pthread_mutex_lock(&p->lock);
	wanted = p->term_err == -EINPROGRESS;
	pthread_mutex_unlock(&p->lock);
	if (!wanted)
		return;
	err = m ? volume_send_term(p->send, m) : -EIO;
	pthread_mutex_lock(&p->lock);
	p->term_err = err;
	pthread_mutex_unlock(&p->lock);
}

/* Callers do not wait for the whole directory, nor other work for those that come meanwhile. */
static void serve_waiters(struct volume_pending *p, struct volume_manager *m)
{
	struct list now = LIST_INIT(now);

	serve_term(p, m);
	serve_threads(p, m);
	pthread_mutex_lock(&p->lock);
	list_splice_tail(&now, &p->askers);
	pthread_mutex_unlock(&p->lock);
	while (!list_is_empty(&now)) {
		serve_askers(p, m, &now);
		serve_threads(p, m);
	}
}

/* Return: true: everything is complete */
static bool look_through(struct volume_pending *p, struct volume_manager *m)
{
	DIR *dir = dir_list(p->dir->pending_fd, ".");
	const struct dirent *e;
	bool all = true;

	if (!dir)
		return false;
	while (!must_end(p) && (e = readdir(dir)) != NULL) {
		if (strlen(e->d_name) != VOLUME_OBJECT_TEXT - 1)
			continue;
		serve_waiters(p, m);
		all &= do_file(p, m, e->d_name);
	}
	closedir(dir);
	return all;
}

/* Asks once for each object that is due. Return: true: all sizes are known */
static bool look_at_leases(struct volume_pending *p, struct volume_manager *m)
{
	unsigned n = volume_leases_due(p->dir->leases);
	struct volume_due due;
	bool all = true;

	for (unsigned i = 0; i < n && !must_end(p) && volume_leases_next(p->dir->leases, &due); i++) {
		serve_waiters(p, m);
		all &= do_due(p, m, &due);
	}
	return all;
}

/* Waits until there may be work. @until: UINT64_MAX: until it is woken
 * Return: the manager in force, held; NULL: the thread is to end */
static struct volume_manager *wait_for_work(struct volume_pending *p, uint64_t until)
{
	struct volume_manager *m = NULL;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		bool waits = !list_is_empty(&p->waiters) || !list_is_empty(&p->askers);

		if (waits || (p->look && p->manager))
			break;
		if (until == UINT64_MAX || p->deposed || !p->manager)
			pthread_cond_wait(&p->woken, &p->lock);
		else if (!cond_wait_until(&p->woken, &p->lock, until))
			break;
	}
	p->look = false;
	m = p->manager;
	if (m)
		atomic_fetch_add(&m->refs, 1);
	pthread_mutex_unlock(&p->lock);
	return m;
}

static uint64_t retry_time(const struct volume_manager *m)
{
	return volume_times.retry_ns ? volume_times.retry_ns : m->stripe_timeo_ms * NS_PER_MS / 2;
}

static void *run(void *arg)
{
	struct volume_pending *p = arg;
	uint64_t until = volume_leases_lapse(p->dir->leases);

	creds_stay();
	for (;;) {
		struct volume_manager *m = wait_for_work(p, until);
		bool all;

		serve_waiters(p, m);
		until = volume_leases_lapse(p->dir->leases);
		all = !m || must_end(p) || look_through(p, m);
		if (m && !look_at_leases(p, m))
			all = false;
		if (!all)
			until = MIN(until, clock_now_ns() + retry_time(m));
		volume_manager_put(m);
		pthread_mutex_lock(&p->lock);
		if (p->stop && list_is_empty(&p->waiters) && list_is_empty(&p->askers)) {
			pthread_mutex_unlock(&p->lock);
			return NULL;
		}
		pthread_mutex_unlock(&p->lock);
	}
}

int volume_pending_create(struct volume_dir *d, struct volume_pending **ret)
{
	struct volume_pending *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->dir = d;
	list_init(&p->waiters);
	list_init(&p->askers);
	pthread_mutex_init(&p->open_lock, NULL);
	pthread_mutex_init(&p->lock, NULL);
	cond_init(&p->woken);
	cond_init(&p->served);
	err = volume_send_create(d, &p->send);
	if (!err)
		err = -pthread_create(&p->thread, NULL, run, p);
	if (!err) {
		*ret = p;
		return 0;
	}
	volume_send_destroy(p->send);
	pthread_cond_destroy(&p->woken);
	pthread_cond_destroy(&p->served);
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->open_lock);
	free(p);
	return err;
}

void volume_pending_destroy(struct volume_pending *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	volume_send_stop(p->send);
	pthread_cond_signal(&p->woken);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	volume_send_destroy(p->send);
	volume_manager_put(p->manager);
	pthread_cond_destroy(&p->woken);
	pthread_cond_destroy(&p->served);
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->open_lock);
	free(p);
}

/* Under open_lock. */
static void set_manager(struct volume_pending *p, struct volume_manager *m, struct fh_set *fhs)
{
	struct volume_manager *old;

	p->fhs = fhs;
	pthread_mutex_lock(&p->lock);
	old = p->manager;
	p->manager = m;
	p->look = m != NULL;
	pthread_cond_signal(&p->woken);
	pthread_mutex_unlock(&p->lock);
	volume_manager_put(old);
}

void volume_pending_use(struct volume_pending *p, struct volume_manager *m, struct fh_set *fhs, uint32_t id)
{
	atomic_fetch_add(&m->refs, 1);
	pthread_mutex_lock(&p->open_lock);
	p->export_id = id;
	set_manager(p, m, fhs);
	pthread_mutex_unlock(&p->open_lock);
}

void volume_pending_leave(struct volume_pending *p, const struct volume_manager *m)
{
	bool is_last;

	pthread_mutex_lock(&p->open_lock);
	pthread_mutex_lock(&p->lock);
	is_last = p->manager == m;
	pthread_mutex_unlock(&p->lock);
	if (is_last)
		set_manager(p, NULL, NULL);
	pthread_mutex_unlock(&p->open_lock);
}

void volume_pending_wake(struct volume_pending *p)
{
	pthread_mutex_lock(&p->lock);
	p->look = true;
	pthread_cond_signal(&p->woken);
	pthread_mutex_unlock(&p->lock);
}

/* Under the lock. */
static void wait_until(struct volume_pending *p, const bool *done)
{
	while (!*done)
		pthread_cond_wait(&p->served, &p->lock);
}

void volume_pending_run(struct volume_pending *p, const char object[STRIPE_OBJECT_BYTES])
{
	struct waiter w = { .done = false };

	volume_object_text(object, w.name);
	pthread_mutex_lock(&p->lock);
	list_add_tail(&p->waiters, &w.link);
	pthread_cond_signal(&p->woken);
	wait_until(p, &w.done);
	pthread_mutex_unlock(&p->lock);
}

void volume_pending_queue(struct volume_pending *p, struct volume_asker *a)
{
	pthread_mutex_lock(&p->lock);
	list_add_tail(&p->askers, &a->link);
	pthread_cond_signal(&p->woken);
	pthread_mutex_unlock(&p->lock);
}

static void end_blocked(struct volume_asker *a)
{
	struct blocked *b = container_of(a, struct blocked, asker);
	struct volume_pending *p = b->p;

	pthread_mutex_lock(&p->lock);
	b->done = true;
	pthread_cond_broadcast(&p->served);
	pthread_mutex_unlock(&p->lock);
}

int volume_pending_ask(struct volume_pending *p, const struct volume_file *f, const char object[STRIPE_OBJECT_BYTES])
{
	struct blocked b = { .asker = { .file = f, .done = end_blocked }, .p = p };

	memcpy(b.asker.of.object, object, sizeof(b.asker.of.object));
	volume_pending_queue(p, &b.asker);
	pthread_mutex_lock(&p->lock);
	wait_until(p, &b.done);
	pthread_mutex_unlock(&p->lock);
	return b.asker.err;
}

int volume_pending_term(struct volume_pending *p, uint64_t *ret)
{
	int err;

	*ret = atomic_load(&p->dir->term);
	if (*ret)
		return 0;
	pthread_mutex_lock(&p->lock);
	if (!p->term_err) {
		p->term_err = -EINPROGRESS;
		p->look = true;
		pthread_cond_signal(&p->woken);
	}
	err = p->term_err;
	if (err != -EINPROGRESS)
		p->term_err = 0;
	pthread_mutex_unlock(&p->lock);
	return err;
}

int volume_pending_may(struct volume_pending *p)
{
	bool deposed;

	pthread_mutex_lock(&p->lock);
	deposed = p->deposed;
	pthread_mutex_unlock(&p->lock);
	return deposed ? -EIO : 0;
}
