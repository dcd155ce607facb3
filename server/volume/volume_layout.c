/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_layout.c - the layouts of the files of a volume, and the defaults of its directories, on disk
 *
 * Operation: Both are extended attributes (file_layout.h). A new one is set with XATTR_CREATE: of two callers one sets it, and
 *            the other one finds it. A layout is signed for the inode: its number, and a hash of the kernel's handle of the
 *            file, which no later file of that number has.
 *            What changes a layout, a size or the links of a file has the lock of the inode. The steps of a cut are durable
 *            one by one: the link in pending/, the layout with the next epoch (FILE_CUT_SIZE), the size, the layout again
 *            (FILE_CUT_FENCE). A caller that finds FILE_CUT_SIZE completes the size first, so a half of a cut is not seen.
 * Memory:    The stack.
 * Threads:   Workers, and the thread of pending work.
 * Errors:    -errno. Damaged attributes are logged, not more often than log_limit allows.
 */
#include "volume_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/siphash.h"
#include "export.h"
#include "inode_id.h"
#include "vfs_int.h"
#include "volume_pending.h"

pthread_mutex_t *volume_file_lock(const struct volume_file *f)
{
	return &f->m->dir->locks[f->ino % VOLUME_LOCKS];
}

static void lock(const struct volume_file *f)
{
	pthread_mutex_lock(volume_file_lock(f));
}

static void unlock(const struct volume_file *f)
{
	pthread_mutex_unlock(volume_file_lock(f));
}

int volume_file_sync(const struct volume_file *f)
{
	int fd, err;

	if (f->m->async)
		return 0;
	fd = vfs_reopen(f->fd, O_RDONLY);
	if (fd < 0) /* not permitted, or no descriptor */
		return vfs_after(syncfs(f->m->dir->fd) ? -errno : 0);
	err = fsync(fd) ? -errno : 0;
	close(fd);
	return vfs_after(err);
}

/* ---- the attribute -------------------------------------------------------------------------- */

typedef ssize_t (*attribute_fn)(const struct volume_file *f, void *bytes, size_t n);

struct attribute_call {
	attribute_fn fn;
	const struct volume_file *f;
	void *bytes;
	size_t n;
};

static ssize_t run_call(int fd, void *arg)
{
	const struct attribute_call *c = arg;

	(void)fd; /* that of the file */
	return c->fn(c->f, c->bytes, c->n);
}

static ssize_t as_owner(const struct volume_file *f, attribute_fn fn, void *bytes, size_t n)
{
	struct attribute_call c = { fn, f, bytes, n };

	return vfs_as_owner(f->fd, run_call, &c);
}

static ssize_t get_bytes(const struct volume_file *f, void *bytes, size_t n)
{
	char buf[VFS_PROC_PATH];
	ssize_t got = getxattr(vfs_proc_path(f->fd, buf), f->m->dir->attribute, bytes, n);

	if (got < 0)
		return errno == ERANGE ? -EBADMSG : -errno;
	return got;
}

static ssize_t set_bytes(const struct volume_file *f, void *bytes, size_t n)
{
	char buf[VFS_PROC_PATH];

	return setxattr(vfs_proc_path(f->fd, buf), f->m->dir->attribute, bytes, n, XATTR_CREATE) ? -errno : 0;
}

static ssize_t replace_bytes(const struct volume_file *f, void *bytes, size_t n)
{
	char buf[VFS_PROC_PATH];

	return setxattr(vfs_proc_path(f->fd, buf), f->m->dir->attribute, bytes, n, XATTR_REPLACE) ? -errno : 0;
}

static ssize_t set_length(const struct volume_file *f, void *bytes, size_t n)
{
	char buf[VFS_PROC_PATH];

	(void)n;
	return truncate(vfs_proc_path(f->fd, buf), (off_t) * (const uint64_t *)bytes) ? -errno : 0;
}

int volume_file_resize(const struct volume_file *f, uint64_t bytes)
{
	return (int)as_owner(f, set_length, &bytes, 0);
}

ssize_t volume_attribute_get(const struct volume_file *f, void *bytes, size_t n)
{
	return as_owner(f, get_bytes, bytes, n);
}

int volume_attribute_set(const struct volume_file *f, void *bytes, size_t n)
{
	ssize_t err = as_owner(f, replace_bytes, bytes, n);

	if (err == -ENODATA)
		err = as_owner(f, set_bytes, bytes, n);
	return err ? (int)err : volume_file_sync(f);
}

int volume_attribute_add(const struct volume_file *f, void *bytes, size_t n)
{
	ssize_t err = as_owner(f, set_bytes, bytes, n);

	return err == -EEXIST ? 0 : err ? (int)err : 1;
}

/* ---- layouts -------------------------------------------------------------------------------- */

/* Where bytes are free, each of the @n servers begins as many of the files as its share is. @turn: counts files */
static unsigned find_room(struct volume_manager *m, const unsigned *full, unsigned n, unsigned turn)
{
	double total = 0, at = (double)(turn * 2654435769u) / 4294967296.0; /* spread evenly over 0 to 1 */

	for (unsigned i = 0; i < n; i++)
		total += (double)atomic_load(&m->room[full[i]]);
	for (unsigned i = 0; i < n && total > 0; i++) {
		double share = (double)atomic_load(&m->room[full[i]]) / total;

		if (at < share)
			return i;
		at -= share;
	}
	return turn % n; /* nothing is known, or room has changed meanwhile */
}

/* Fills in unit, width and servers, beginning at the next server. Return: 0; -ENOSPC: no server takes new files */
static int choose_servers(struct volume_manager *m, const struct dir_defaults *d, struct file_layout *l)
{
	unsigned full[VOLUME_SERVERS_MAX], n = volume_manager_full(m, full);
	unsigned turn = atomic_fetch_add_explicit(&m->dir->turn, 1, memory_order_relaxed), first;

	if (!n)
		return -ENOSPC;
	first = m->start_free ? find_room(m, full, n, turn) : turn % n;
	l->at.unit = d->unit ? d->unit : m->unit;
	l->at.width = MIN(d->width ? d->width : m->width, n);
	for (uint32_t i = 0; i < l->at.width; i++)
		l->servers[i] = m->map.servers[full[(first + i) % n]].id;
	return 0;
}

int volume_layout_add(const struct volume_file *f, const struct dir_defaults *d)
{
	struct file_layout l = { .volume = f->m->dir->volume, .epoch = 1 };
	uint8_t bytes[FILE_LAYOUT_MAX];
	struct inode_id inode;
	int err = inode_id_find(f->fd, f->ino, &inode);

	if (!err)
		err = choose_servers(f->m, d, &l);
	if (err)
		return err;
	if (getrandom(l.object, sizeof(l.object), 0) != (ssize_t)sizeof(l.object))
		return -EIO;
	return volume_attribute_add(f, bytes, file_layout_encode(&f->m->keys, &inode, &l, bytes));
}

static void tell_damage(const struct volume_file *f, int err)
{
	struct volume_dir *d = f->m->dir;
	bool tell;

	pthread_mutex_lock(&d->log_lock);
	tell = log_limit_ok(&d->damages);
	pthread_mutex_unlock(&d->log_lock);
	if (tell)
		log_err("volume %s: the layout of inode %llu is %s", f->m->name + 1, (unsigned long long)f->ino,
			err == -EKEYREJECTED ? "not signed for this file: it was copied, or signed with another key" : "damaged");
}

static int read_layout(const struct volume_file *f, struct file_layout *ret)
{
	const struct volume_manager *m = f->m;
	uint8_t bytes[FILE_LAYOUT_MAX];
	ssize_t n = as_owner(f, get_bytes, bytes, sizeof(bytes));
	struct inode_id inode;
	int err = n < 0 ? (int)n : inode_id_find(f->fd, f->ino, &inode);

	if (!err)
		err = file_layout_decode(&m->keys, m->dir->volume, &inode, bytes, (size_t)n, ret);
	if (err == -EBADMSG || err == -EKEYREJECTED)
		tell_damage(f, err);
	return err;
}

int volume_layout_look(const struct volume_file *f, struct file_layout *ret)
{
	return read_layout(f, ret);
}

int volume_layout_put(const struct volume_file *f, const struct file_layout *l)
{
	uint8_t bytes[FILE_LAYOUT_MAX];
	struct inode_id inode;
	int err = inode_id_find(f->fd, f->ino, &inode);

	if (!err)
		err = (int)as_owner(f, replace_bytes, bytes, file_layout_encode(&f->m->keys, &inode, l, bytes));
	return err ? err : volume_file_sync(f);
}

int volume_layout_get(const struct volume_file *f, struct file_layout *ret)
{
	int err = read_layout(f, ret);

	if (err || ret->cut != FILE_CUT_SIZE)
		return err;
	err = volume_file_resize(f, ret->cut_bytes);
	if (!err)
		err = volume_file_sync(f);
	ret->cut = FILE_CUT_FENCE;
	return err ? err : volume_layout_put(f, ret);
}

void volume_object_text(const char object[STRIPE_OBJECT_BYTES], char ret[VOLUME_OBJECT_TEXT])
{
	for (unsigned i = 0; i < STRIPE_OBJECT_BYTES; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", (unsigned char)object[i]);
}

static bool is_pending(const struct volume_file *f, const struct file_layout *l)
{
	char name[VOLUME_OBJECT_TEXT];
	struct stat st;

	volume_object_text(l->object, name);
	return !fstatat(f->m->dir->pending_fd, name, &st, AT_SYMLINK_NOFOLLOW);
}

int volume_layout_removed(const struct volume_file *f, const struct file_layout *l)
{
	struct statx stx;
	int err = vfs_stat(f->fd, &stx);

	return err ? err : !stx.stx_nlink || (stx.stx_nlink == 1 && is_pending(f, l));
}

/* The same as volume_layout_find(), under the lock. @heals: adds a layout that a crash has withheld */
static int find_layout(const struct volume_file *f, bool heals, struct file_layout *ret, uint64_t *ret_bytes)
{
	struct statx stx;
	int err = volume_layout_get(f, ret), rc;

	if (!err)
		err = vfs_stat(f->fd, &stx);
	else if (err == -ENODATA && !vfs_stat(f->fd, &stx) && !stx.stx_size && heals) {
		rc = volume_layout_add(f, &(struct dir_defaults){ 0, 0 });
		err = rc == 1 ? volume_file_sync(f) : rc;
		if (!err)
			err = volume_layout_get(f, ret);
	}
	if (!err) {
		*ret_bytes = stx.stx_size;
		rc = volume_layout_removed(f, ret);
		err = rc == 1 ? -ESTALE : rc;
	}
	return err;
}

/* Under the lock. Return: as volume_lease_take() */
static int take_lease(const struct volume_file *f, const struct file_layout *l, const struct volume_lessee *by)
{
	return by->instance ? volume_lease_take(f->m->dir->leases, l->object, by) : 0;
}

int volume_layout_find(const struct fh_obj *o, const struct volume_lessee *by, struct file_layout *ret, uint64_t *ret_bytes)
{
	struct volume_file f = volume_file_of(o);
	int rc;

	lock(&f);
	rc = find_layout(&f, !o->exp->conf.ro, ret, ret_bytes);
	if (!rc)
		rc = take_lease(&f, ret, by);
	unlock(&f);
	if (rc == 1)
		volume_pending_wake(f.m->dir->pending);
	return rc == 1 ? 0 : rc;
}

int volume_layout_of(const struct volume_file *f, bool heals, struct file_layout *ret)
{
	uint64_t bytes;
	int err;

	lock(f);
	err = find_layout(f, heals, ret, &bytes);
	unlock(f);
	return err;
}

/* ---- sizes ---------------------------------------------------------------------------------- */

/* Under the lock, by a descriptor that is open for writing. */
static int raise_open(int fd, uint64_t bytes, const struct creds *cr, uint64_t *ret_bytes)
{
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	*ret_bytes = MAX((uint64_t)st.st_size, bytes);
	err = creds_assume(cr);
	if (err)
		return err;
	/* also of an unchanged size it sets mtime, and takes set-id bits and capabilities, as a write does */
	err = ftruncate(fd, (off_t)*ret_bytes) ? -errno : 0;
	creds_resume();
	return err;
}

int volume_raise_size(const struct fh_obj *o, uint64_t bytes, const struct creds *cr, int *ret_fd, uint64_t *ret_bytes)
{
	*ret_fd = vfs_open_io(o, true);
	return *ret_fd < 0 ? *ret_fd : raise_open(*ret_fd, bytes, cr, ret_bytes);
}

int volume_handle_check(const struct stripe_handle *h, const struct file_layout *l)
{
	if (h->volume != l->volume || !(h->rights & STRIPE_MAY_WRITE))
		return -EACCES;
	if (stripe_expired(h->expiry, (uint64_t)time(NULL)))
		return -ETIME;
	if (memcmp(h->name.object, l->object, sizeof(l->object)) || h->name.stripe >= l->at.width ||
	    h->server != l->servers[h->name.stripe])
		return -EACCES;
	return h->epoch == l->epoch ? 0 : -ETIME;
}

/* Under the lock. Return: as volume_lease_take(); the report counts in any case */
static int report_lease(const struct volume_file *f, const struct file_layout *l, const struct volume_report *r)
{
	if (!r->last)
		return take_lease(f, l, &r->by);
	volume_lease_end(f->m->dir->leases, l->object, &r->by);
	return 0;
}

/* Under the lock. Return: 0; -errno */
static int take_report(const struct fh_obj *o, const struct volume_file *f, const struct volume_report *r, int *ret_fd,
		       uint64_t *ret_bytes, int *ret_lease)
{
	struct file_layout l;
	struct statx stx;
	int err = volume_layout_get(f, &l);

	if (!err)
		err = volume_handle_check(&r->handle, &l);
	if (!err && r->wrote)
		err = volume_raise_size(o, r->bytes, r->creds, ret_fd, ret_bytes);
	else if (!err)
		err = vfs_stat(f->fd, &stx);
	if (err)
		return err;
	if (!r->wrote)
		*ret_bytes = stx.stx_size;
	*ret_lease = report_lease(f, &l, r);
	return 0;
}

int volume_report(const struct fh_obj *o, const struct volume_report *r, uint64_t *ret_bytes, bool *ret_leased)
{
	struct volume_file f = volume_file_of(o);
	int fd = -1, lease = 0, err;

	*ret_leased = false;
	if (r->bytes > INT64_MAX)
		return -EFBIG;
	lock(&f); /* of a report and a cut, or of two reports, one comes first */
	err = take_report(o, &f, r, &fd, ret_bytes, &lease);
	unlock(&f);
	if (lease == 1)
		volume_pending_wake(f.m->dir->pending);
	*ret_leased = lease >= 0 && !r->last && r->by.instance;
	if (!err && r->wrote)
		err = vfs_sync_fd(o, fd);
	if (fd >= 0)
		close(fd);
	return err;
}

int volume_wrote(const struct volume_file *f, uint64_t epoch, uint64_t end, const struct creds *cr)
{
	struct file_layout l;
	uint64_t bytes;
	int err;

	lock(f); /* as of a report */
	err = volume_layout_get(f, &l);
	if (!err && l.epoch == epoch)
		err = raise_open(f->fd, end, cr, &bytes);
	unlock(f);
	return err;
}

int volume_take_ids(const struct fh_obj *o, const struct creds *cr)
{
	struct volume_file f = volume_file_of(o);
	uint64_t bytes;
	int fd = -1, err;

	lock(&f);
	err = volume_raise_size(o, 0, cr, &fd, &bytes);
	unlock(&f);
	if (fd >= 0)
		close(fd);
	return err;
}

/* Makes the link, durably. The caller has the lock. */
static int link_pending(const struct volume_file *f, const struct file_layout *l)
{
	char path[VFS_PROC_PATH], name[VOLUME_OBJECT_TEXT];
	int dir = f->m->dir->pending_fd;

	volume_object_text(l->object, name);
	if (linkat(AT_FDCWD, vfs_proc_path(f->fd, path), dir, name, AT_SYMLINK_FOLLOW) && errno != EEXIST)
		return -errno;
	return fsync(dir) ? vfs_after(-errno) : 0;
}

/* Under the lock. @may_wait: else nothing is begun that servers have to be told. Return: 1: they are to be told; 0; -errno */
static int set_size(const struct fh_obj *o, const struct volume_file *f, uint64_t bytes, bool may_wait, const struct creds *cr,
		    struct file_layout *l)
{
	uint64_t now, raised;
	int fd = -1, err = find_layout(f, !o->exp->conf.ro, l, &now);

	if (err)
		return err;
	if (!may_wait && (bytes < now || (l->cut == FILE_CUT_FENCE && l->cut_bytes == bytes)))
		return -EAGAIN;
	if (bytes >= now) {
		err = volume_raise_size(o, bytes, cr, &fd, &raised);
		if (fd >= 0)
			close(fd);
		if (!err)
			err = volume_file_sync(f);
		/* a cut once more, by a client that got no reply: servers in reach may not have it yet */
		return err ? err : l->cut == FILE_CUT_FENCE && l->cut_bytes == bytes;
	}
	if (l->cut == FILE_CUT_FENCE) /* which servers lack which cut is not recorded, so there is one at a time */
		return -EAGAIN;
	err = link_pending(f, l);
	if (err)
		return err;
	l->epoch++;
	l->cut = FILE_CUT_SIZE;
	l->cut_bytes = bytes;
	err = volume_layout_put(f, l);
	if (!err)
		err = volume_layout_get(f, l);
	return err ? vfs_after(err) : 1;
}

bool volume_has_writers(const struct fh_obj *o)
{
	struct volume_file f = volume_file_of(o);
	struct file_layout l;
	int err;

	lock(&f);
	err = volume_layout_get(&f, &l);
	unlock(&f);
	return !err && volume_lease_others(f.m->dir->leases, l.object, 0);
}

int volume_set_size(const struct fh_obj *o, uint64_t bytes, bool may_wait, const struct creds *cr)
{
	struct volume_file f = volume_file_of(o);
	struct file_layout l;
	int rc = vfs_may_io(o, cr, true);

	if (!rc)
		rc = bytes > INT64_MAX ? -EFBIG : volume_pending_may(f.m->dir->pending);
	if (!rc && volume_has_writers(o)) {
		if (!may_wait)
			return -EAGAIN;
		rc = volume_pending_ask(f.m->dir->pending, &f);
	}
	if (rc && rc != -EAGAIN && rc != -EHOSTDOWN) /* another cut is not complete, a server is away: the rest counts */
		return rc;
	lock(&f);
	rc = set_size(o, &f, bytes, may_wait, cr, &l);
	unlock(&f);
	if (rc != 1)
		return rc;
	volume_pending_run(f.m->dir->pending, l.object);
	return volume_pending_may(f.m->dir->pending);
}

/* ---- names ---------------------------------------------------------------------------------- */

static int begin_unlink(const struct volume_file *f)
{
	struct file_layout l;
	struct statx stx;
	int err = vfs_stat(f->fd, &stx);

	if (err || stx.stx_nlink > 2) /* one of the links may be that in pending/ */
		return err;
	err = volume_layout_get(f, &l);
	if (err == -ENODATA || err == -EBADMSG || err == -EKEYREJECTED)
		return 0; /* nothing is known of its objects */
	return err ? err : link_pending(f, &l);
}

int volume_unlink_begin(const struct fh_obj *o)
{
	struct volume_file f = volume_file_of(o);
	int err = volume_pending_may(f.m->dir->pending);

	return err ? err : begin_unlink(&f);
}

/* The locks of both, in the order of their addresses. They are recursive: both may be one. */
static void find_locks(const struct fh_obj *a, const struct fh_obj *b, pthread_mutex_t *ret[2])
{
	struct volume_file f = volume_file_of(a), g = volume_file_of(b->fd < 0 ? a : b);
	pthread_mutex_t *first = volume_file_lock(&f), *second = volume_file_lock(&g);

	ret[0] = MIN(first, second);
	ret[1] = MAX(first, second);
}

void volume_lock_names(const struct fh_obj *a, const struct fh_obj *b)
{
	pthread_mutex_t *locks[2];

	find_locks(a, b, locks);
	pthread_mutex_lock(locks[0]);
	pthread_mutex_lock(locks[1]);
}

void volume_unlock_names(const struct fh_obj *a, const struct fh_obj *b)
{
	pthread_mutex_t *locks[2];

	find_locks(a, b, locks);
	pthread_mutex_unlock(locks[1]);
	pthread_mutex_unlock(locks[0]);
}

int volume_link_begin(const struct fh_obj *o)
{
	struct volume_file f = volume_file_of(o);
	struct file_layout l;
	int err;

	lock(&f);
	err = read_layout(&f, &l);
	if (!err)
		err = volume_layout_removed(&f, &l);
	else if (err == -ENODATA || err == -EBADMSG || err == -EKEYREJECTED)
		err = 0;
	if (err)
		unlock(&f);
	return err == 1 ? -ESTALE : err;
}

void volume_link_end(const struct fh_obj *o)
{
	struct volume_file f = volume_file_of(o);

	unlock(&f);
}
