/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_disk.c - the files of objects: created, fenced, cut, removed, listed
 *
 * Operation: Only the holder of an object's turn works on its file here; READ and WRITE go through the stores.
 *            A record is durable when it is written, and the file and its name are synced. When a record is read, both are
 *            synced as well: a leatd that crashed may have written a record without that.
 *            A cut has three durable steps: the record with the cut, the shorter file, the record without the cut.
 *            After a crash between them the file still has the record with the cut, and the next call does the rest.
 *            A directory of objects/ is made with its first object. It may be there and not be durable, made by another
 *            call or by a leatd that crashed. So the first name in it that is made durable also syncs objects/.
 *            The file of a tombstone is removed when no handle of the object is accepted any more.
 * Memory:    An object owns its descriptors.
 * Threads:   A worker's; no lock is held over a system call.
 * Errors:    -errno. A failed sync also changes the verifier: it may have lost data.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/dir.h"
#include "fsync_batch.h"
#include "stripe_handle.h"
#include "stripe_vol.h"

#define TRIM_MAX 4 /* objects that one call closes */

static int sync_file(struct stripe_vol *v, int fd)
{
	int err = fsync(fd) ? -errno : 0;

	if (err)
		fsync_batch_lost(v->fsyncs, v->dir.dev);
	return err;
}

static void print_fan(unsigned fan, char ret[4])
{
	(void)snprintf(ret, 4, "%02x", fan);
}

/* Makes the names in the directory of an object durable. Return: 0 or -errno */
static int sync_fan(struct stripe_vol *v, const stripe_name *name)
{
	unsigned fan = (unsigned char)name->object[0];
	char text[4];
	int fd, err = 0;

	print_fan(fan, text);
	fd = openat(v->dir.objects, text, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (fsync(fd))
		err = -errno;
	close(fd);
	if (!err && !atomic_load(&v->fans_durable[fan])) {
		err = fsync(v->dir.objects) ? -errno : 0;
		atomic_store(&v->fans_durable[fan], !err);
	}
	return err;
}

static int make_fan(const struct stripe_vol *v, const stripe_name *name)
{
	char fan[4];

	print_fan((unsigned char)name->object[0], fan);
	return mkdirat(v->dir.objects, fan, 0700) && errno != EEXIST ? -errno : 0;
}

static int open_object(const struct stripe_vol *v, const stripe_name *name, int flags)
{
	char path[STRIPE_PATH_BYTES];
	int fd;

	stripe_dir_path(name, path);
	fd = openat(v->dir.objects, path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	return fd < 0 ? -errno : fd;
}

static void set_record(struct stripe_vol *v, struct stripe_object *o, const struct stripe_record *rec)
{
	pthread_mutex_lock(&v->lock);
	stripe_object_set(o, rec);
	pthread_mutex_unlock(&v->lock);
}

static void close_control(struct stripe_object *o)
{
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
}

/* What is on disk is not known any more. */
static int unload(struct stripe_object *o, int err)
{
	o->loaded = false;
	o->doubtful = true;
	return err;
}

/* ---- records -------------------------------------------------------------------------------- */

/* Return: 0, also without a record; -EBADMSG; -errno */
static int read_record(const struct stripe_vol *v, int fd, struct stripe_record *ret, bool *ret_found)
{
	uint8_t bytes[STRIPE_RECORD_BYTES + 1];
	ssize_t n = fgetxattr(fd, v->dir.record, bytes, sizeof(bytes));

	*ret_found = n >= 0;
	*ret = stripe_record_none();
	if (n < 0)
		return errno == ENODATA ? 0 : errno == ERANGE ? -EBADMSG : -errno;
	return stripe_record_decode(bytes, (size_t)n, ret);
}

static int write_record(struct stripe_vol *v, struct stripe_object *o, const struct stripe_record *rec)
{
	uint8_t bytes[STRIPE_RECORD_BYTES];

	stripe_record_encode(rec, bytes);
	if (fsetxattr(o->fd, v->dir.record, bytes, sizeof(bytes), 0))
		return -errno;
	return sync_file(v, o->fd);
}

static void log_damaged(struct stripe_vol *v, const stripe_name *name)
{
	char path[STRIPE_PATH_BYTES];

	stripe_dir_path(name, path);
	if (log_limit_ok_under(&v->lock, &v->damages))
		log_err("stripes %s: objects/%s: its record is damaged; it is not served", v->name, path);
}

/* ---- one object ----------------------------------------------------------------------------- */

static bool is_over(const struct stripe_record *rec)
{
	return rec->removed && stripe_expired(rec->until, stripe_now());
}

static bool is_in_use(struct stripe_vol *v, const struct stripe_object *o)
{
	bool in_use;

	pthread_mutex_lock(&v->lock);
	in_use = stripe_ops_any(&o->ops);
	pthread_mutex_unlock(&v->lock);
	return in_use;
}

/* Removes the file of a tombstone. */
static int remove_file(struct stripe_vol *v, struct stripe_object *o)
{
	const struct stripe_record none = stripe_record_none();
	char path[STRIPE_PATH_BYTES];
	int err;

	if (is_in_use(v, o)) /* its time comes again */
		return 0;
	stripe_dir_path(&o->name, path);
	if (unlinkat(v->dir.objects, path, 0) && errno != ENOENT)
		return unload(o, -errno);
	err = sync_fan(v, &o->name);
	if (err)
		return unload(o, err);
	stripe_disk_close(v, o);
	o->exists = false;
	set_record(v, o, &none);
	return 0;
}

/* Reads what is known of an open file. Return: 0 or -errno */
static int look(struct stripe_vol *v, struct stripe_object *o, struct stripe_record *ret)
{
	struct stat st;
	bool found;
	int err;

	if (fstat(o->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	err = read_record(v, o->fd, ret, &found);
	if (err || !found)
		return err;
	/* behind a failed sync the next one may have nothing to write: there has to be something */
	err = o->doubtful ? write_record(v, o, ret) : sync_file(v, o->fd);
	return err ? err : stripe_disk_sync_name(v, o);
}

int stripe_disk_load(struct stripe_vol *v, struct stripe_object *o)
{
	struct stripe_record rec = stripe_record_none();
	int err = 0;

	close_control(o);
	o->fd = open_object(v, &o->name, O_RDWR);
	o->exists = o->fd >= 0;
	o->named = false;
	if (o->fd < 0) {
		err = o->fd == -ENOENT ? 0 : o->fd;
		o->fd = -1;
	} else {
		err = look(v, o, &rec);
	}
	if (err == -EBADMSG)
		log_damaged(v, &o->name);
	if (err)
		return err;
	o->doubtful = false;
	o->loaded = true;
	set_record(v, o, &rec);
	return is_over(&rec) ? remove_file(v, o) : 0;
}

int stripe_disk_create(struct stripe_vol *v, struct stripe_object *o)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL;
	int fd = open_object(v, &o->name, flags), err;

	if (fd == -ENOENT) {
		err = make_fan(v, &o->name);
		fd = err ? err : open_object(v, &o->name, flags);
	}
	if (fd < 0)
		return unload(o, fd);
	o->fd = fd;
	o->exists = true;
	o->named = false;
	return 0;
}

int stripe_disk_open(struct stripe_vol *v, struct stripe_object *o, struct backing *backing, unsigned reactor)
{
	struct store_file *f = malloc(sizeof(*f));
	struct stat st;
	int fd;

	if (!f)
		return -ENOMEM;
	fd = open_object(v, &o->name, O_RDWR);
	if (fd >= 0 && fstat(fd, &st)) {
		close(fd);
		fd = -EIO;
	}
	if (fd < 0) {
		free(f);
		return fd == -ENOENT ? -EIO : fd;
	}
	store_adopt(backing, fd, true, f);
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	o->files[reactor] = f;
	return 0;
}

int stripe_disk_sync_name(struct stripe_vol *v, struct stripe_object *o)
{
	int err = sync_fan(v, &o->name);

	o->named = !err;
	return err;
}

int stripe_disk_record(struct stripe_vol *v, struct stripe_object *o, const struct stripe_record *rec)
{
	int err = o->exists ? 0 : stripe_disk_create(v, o);

	if (!err)
		err = write_record(v, o, rec);
	if (!err && !o->named)
		err = stripe_disk_sync_name(v, o);
	if (err)
		return unload(o, err);
	set_record(v, o, rec);
	return 0;
}

int stripe_disk_cut(struct stripe_vol *v, struct stripe_object *o)
{
	struct stripe_record rec = o->rec;
	struct stat st;
	int err = 0;

	if (fstat(o->fd, &st))
		return unload(o, -errno);
	if ((uint64_t)st.st_size > rec.cut) {
		if (ftruncate(o->fd, (off_t)rec.cut))
			return unload(o, -errno);
		err = sync_file(v, o->fd);
	}
	rec.cut = STRIPE_NO_CUT;
	if (!err)
		err = write_record(v, o, &rec);
	if (err)
		return unload(o, err);
	set_record(v, o, &rec);
	return 0;
}

static void fill_stat(const struct stat *st, const struct stripe_record *rec, stripe_stat *ret)
{
	*ret = (stripe_stat){ .bytes = (uint64_t)st->st_size, .used = (uint64_t)st->st_blocks * 512, .epoch = rec->epoch,
			      .mtime = (uint64_t)st->st_mtim.tv_sec * NS_PER_S + (uint64_t)st->st_mtim.tv_nsec,
			      .exists = true, .removed = rec->removed };
	if (rec->cut < ret->bytes) /* what is beyond it is not there any more */
		ret->bytes = rec->cut;
}

int stripe_disk_stat(const struct stripe_object *o, stripe_stat *ret)
{
	struct stat st;

	*ret = (stripe_stat){ .epoch = o->rec.epoch };
	if (!o->exists)
		return 0;
	if (fstat(o->fd, &st))
		return -errno;
	fill_stat(&st, &o->rec, ret);
	return 0;
}

void stripe_disk_close(struct stripe_vol *v, struct stripe_object *o)
{
	if (o->fd >= 0 && o->written && !o->rec.removed)
		(void)sync_file(v, o->fd);
	for (unsigned i = 0; i < v->nreactors; i++) {
		if (o->files[i])
			store_close(o->files[i]);
		free(o->files[i]);
		o->files[i] = NULL;
	}
	close_control(o);
}

void stripe_disk_trim(struct stripe_vol *v)
{
	for (unsigned i = 0; i < TRIM_MAX; i++) {
		struct stripe_object *o;

		pthread_mutex_lock(&v->lock);
		o = stripe_object_pop_idle(v);
		pthread_mutex_unlock(&v->lock);
		if (!o)
			return;
		stripe_disk_close(v, o);
		free(o);
	}
}

/* ---- all objects ---------------------------------------------------------------------------- */

/* Return: NULL with errno; ENOENT: it never had an object */
static DIR *list_fan(const struct stripe_vol *v, unsigned fan)
{
	char name[4];

	print_fan(fan, name);
	return dir_list(v->dir.objects, name);
}

/* Keeps the @max smallest names, in their order. */
static void keep_name(stripe_name *v, unsigned *n, unsigned max, const stripe_name *name)
{
	unsigned at = *n;

	while (at && stripe_name_compare(name, &v[at - 1]) < 0)
		at--;
	if (at == max)
		return;
	if (*n < max)
		(*n)++;
	memmove(&v[at + 1], &v[at], (*n - at - 1) * sizeof(*v));
	v[at] = *name;
}

/* Finds the next names of one directory. Return: 0 or -errno */
static int find_names(const struct stripe_vol *v, unsigned fan, const stripe_name *after, stripe_name *ret, unsigned *n,
		      unsigned max)
{
	DIR *dir = list_fan(v, fan);
	const struct dirent *e;
	stripe_name name;
	unsigned found = 0;
	int err = 0;

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	for (errno = 0; (e = readdir(dir)) != NULL; errno = 0) {
		if (!stripe_dir_name(fan, e->d_name, &name) && (!after || stripe_name_compare(&name, after) > 0))
			keep_name(ret + *n, &found, max - *n, &name);
	}
	if (errno)
		err = -errno;
	closedir(dir);
	*n += found;
	return err;
}

/* Removes the tombstone of an object, if its time is still up. */
static void remove_tombstone(struct stripe_vol *v, const stripe_name *name)
{
	struct stripe_object *o = stripe_object_try(v, name);

	if (!o)
		return;
	if (!o->loaded)
		(void)!stripe_disk_load(v, o); /* it stays, and is seen again */
	else if (is_over(&o->rec))
		(void)remove_file(v, o);
	stripe_object_done(v, o);
}

/* Return: 1: described; 0: it has gone; -errno */
static int describe(struct stripe_vol *v, const stripe_name *name, stripe_stat *ret)
{
	int fd = open_object(v, name, O_RDONLY), err;
	struct stripe_record rec;
	struct stat st;
	bool found;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	err = fstat(fd, &st) ? -errno : read_record(v, fd, &rec, &found);
	close(fd);
	if (err && err != -EBADMSG)
		return err;
	if (!err && is_over(&rec)) {
		remove_tombstone(v, name);
		return 0;
	}
	if (err)
		rec = (struct stripe_record){ .epoch = 0, .cut = STRIPE_NO_CUT };
	fill_stat(&st, &rec, ret);
	return 1;
}

/* The next names in the order of all directories. */
static int next_names(const struct stripe_vol *v, const stripe_name *after, stripe_name *ret, unsigned *ret_n, unsigned max)
{
	unsigned n = 0;
	int err = 0;

	for (unsigned fan = after ? (unsigned char)after->object[0] : 0; fan < STRIPE_DIR_FANOUT && n < max && !err; fan++)
		err = find_names(v, fan, after, ret, &n, max);
	*ret_n = n;
	return err;
}

int stripe_disk_list(struct stripe_vol *v, const stripe_name *after, stripe_entry *ret, unsigned *n, bool *ret_eof)
{
	stripe_name names[STRIPE_LIST_MAX], last;
	unsigned max = MIN(*n, (unsigned)STRIPE_LIST_MAX), found, added = 0;
	int err;

	do {
		err = next_names(v, after, names, &found, max);
		for (unsigned i = 0; i < found && !err; i++) {
			int rc = describe(v, &names[i], &ret[added].stat);

			err = MIN(rc, 0);
			if (rc == 1)
				ret[added++].name = names[i];
		}
		if (found) {
			last = names[found - 1];
			after = &last;
		}
	} while (!err && found && !added);
	*n = added;
	*ret_eof = found < max;
	return err;
}

void stripe_disk_sweep(struct stripe_vol *v, unsigned fan)
{
	DIR *dir = list_fan(v, fan);
	const struct dirent *e;
	stripe_name name;
	stripe_stat stat;

	if (!dir)
		return;
	while ((e = readdir(dir)) != NULL) {
		if (!stripe_dir_name(fan, e->d_name, &name))
			(void)describe(v, &name, &stat);
	}
	closedir(dir);
}
