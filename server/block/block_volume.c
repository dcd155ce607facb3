/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_volume.c - a block volume: its file or device, and what is known of it
 *
 * Operation: A device is opened with O_EXCL, so that it is neither mounted nor another volume; a file is locked against
 *            other leatds. Stores have descriptors of their own.
 * Memory:    Counted. Attachments are freed with it.
 * Threads:   As block_volume.h says for each function.
 * Errors:    A text for the user.
 */
#include "block_volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "block_holders.h"
#include "block_conf.h"
#include "block_state.h"
#include "fsync_batch.h"
#include "store_device.h"

#define LOOK_NS (10 * NS_PER_MS) /* a look costs more than a quarter of the rest of a WRITE of 4 KiB; files shrink rarely */

/* FNV-1a: not secret, but it gives the same number at every start */
static uint64_t mix(uint64_t h, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n--)
		h = (h ^ *p++) * UINT64_C(1099511628211);
	return h;
}

/* A device may get another number at the next boot, a file system too: the path and a file's inode stay. */
static uint64_t identity(const struct block_conf *c, const struct stat *st)
{
	uint64_t ino = S_ISREG(st->st_mode) ? st->st_ino : 0, h = UINT64_C(14695981039346656037);

	h = mix(h, c->name, strlen(c->name) + 1);
	h = mix(h, c->path, strlen(c->path) + 1);
	h = mix(h, &ino, sizeof(ino));
	return h ? h : 1;
}

uint64_t block_volume_id(const struct block_conf *c)
{
	struct stat st;

	return stat(c->path, &st) ? 0 : identity(c, &st);
}

int block_volume_look(struct block_volume *v)
{
	uint64_t bytes;
	int err = store_file_size(v->lock_fd, &bytes);

	if (!err)
		atomic_store(&v->bytes, bytes);
	return err;
}

void block_volume_look_again(struct block_volume *v)
{
	uint64_t now = clock_now_ns();

	if (now - atomic_load_explicit(&v->looked_ns, memory_order_relaxed) < LOOK_NS)
		return;
	atomic_store_explicit(&v->looked_ns, now, memory_order_relaxed);
	(void)block_volume_look(v);
}

/* A device is opened with O_EXCL; what is locked is a file. Return: 0; -EBUSY: in use */
static int open_file(struct block_volume *v, const char *path)
{
	struct stat st;
	bool is_device;
	int err;

	if (stat(path, &st))
		return -errno;
	is_device = S_ISBLK(st.st_mode);
	v->lock_fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (is_device ? O_EXCL : 0));
	if (v->lock_fd < 0 || fstat(v->lock_fd, &st))
		return -errno;
	if (S_ISBLK(st.st_mode) != is_device || !(is_device || S_ISREG(st.st_mode))) /* replaced meanwhile */
		return -EAGAIN;
	if (!is_device && flock(v->lock_fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	v->sector = is_device ? store_file_block(v->lock_fd) : 512;
	err = store_file_identify(v->lock_fd, &v->dev, &v->ino);
	return err ? err : block_volume_look(v);
}

static void on_lost(void *ctx, uint64_t dev)
{
	(void)dev;
	block_volume_lost(ctx);
}

void block_volume_lost(struct block_volume *v)
{
	uint64_t verf = block_verf_random();
	bool tell;

	if (!verf) /* any other value than before */
		verf = atomic_load(&v->verf) + 1;
	pthread_mutex_lock(&v->lock); /* both places have the same one, whatever other threads lose */
	atomic_store(&v->verf, verf);
	block_state_verf(v->state, verf);
	tell = log_limit_ok(&v->losses);
	pthread_mutex_unlock(&v->lock);
	if (tell)
		log_err("block %s: a sync failed: data written before it may be lost; FLUSH reports it to the holders that wrote",
			v->name);
}

static int open_state(struct block_volume *v, const char *dir, char *why, size_t why_bytes)
{
	uint64_t verf = 0;
	int err;

	if (!dir) {
		verf = block_verf_random();
		atomic_store(&v->verf, verf);
		return verf ? 0 : opt_fail(-EIO, why, why_bytes, "no random numbers");
	}
	err = block_state_open(dir, v->name, v->id, &v->state, &verf, why, why_bytes);
	if (err)
		return err;
	atomic_store(&v->verf, verf);
	err = block_state_load(v->state, v);
	if (err)
		return opt_fail(err, why, why_bytes, "state-dir %s: block-%s.holders: %s", dir, v->name,
				err == -EINVAL ? "it is damaged, so the holders of the volume are unknown; remove it if there are none"
					       : strerror(-err));
	return 0;
}

static int open_all(struct block_volume *v, const struct block_conf *c, const char *state_dir, char *why,
		    size_t why_bytes)
{
	struct stat st;
	int err;

	v->name = strdup(c->name);
	if (!v->name)
		return opt_fail(-ENOMEM, why, why_bytes, "out of memory");
	err = open_file(v, c->path);
	if (err == -EBUSY)
		return opt_fail(err, why, why_bytes, "%s: in use by another process, or mounted", c->path);
	if (err)
		return opt_fail(err, why, why_bytes, "%s: %s", c->path, strerror(-err));
	if (fstat(v->lock_fd, &st))
		return opt_fail(-errno, why, why_bytes, "%s: %s", c->path, strerror(errno));
	v->id = identity(c, &st);
	err = fsync_batch_create(on_lost, v, &v->fsyncs);
	if (err)
		return opt_fail(err, why, why_bytes, "%s", strerror(-err));
	return open_state(v, state_dir, why, why_bytes);
}

int block_volume_open(const struct block_conf *c, const char *state_dir, struct block_volume **ret, char *why,
		      size_t why_bytes)
{
	struct block_volume *v = calloc(1, sizeof(*v));
	int err;

	if (!v)
		return opt_fail(-ENOMEM, why, why_bytes, "out of memory");
	atomic_init(&v->refs, 1);
	v->lock_fd = -1;
	/* handles that were given before the files of the state directory were removed do not become valid again */
	v->generations = v->numbers = clock_real_ns();
	v->losses = v->turns = (struct log_limit)LOG_LIMIT_INIT;
	pthread_mutex_init(&v->lock, NULL);
	list_init(&v->holders);
	list_init(&v->ending);
	list_init(&v->waiters);
	err = open_all(v, c, state_dir, why, why_bytes);
	if (err)
		block_volume_put(v);
	else
		*ret = v;
	return err;
}

struct block_volume *block_volume_hold(struct block_volume *v)
{
	atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
	return v;
}

void block_volume_enter(struct block_volume *v)
{
	atomic_fetch_add(&v->sets, 1);
}

void block_volume_leave(struct block_volume *v)
{
	if (atomic_fetch_sub(&v->sets, 1) != 1)
		return;
	block_state_close(v->state);
	v->state = NULL;
	close(v->lock_fd);
	v->lock_fd = -1;
}

void block_volume_put(struct block_volume *v)
{
	struct list *n;

	if (!v || atomic_fetch_sub(&v->refs, 1) != 1)
		return;
	while ((n = list_pop(&v->holders)) != NULL)
		free(list_entry(n, struct block_attachment, link));
	block_state_close(v->state);
	fsync_batch_destroy(v->fsyncs);
	if (v->lock_fd >= 0)
		close(v->lock_fd);
	pthread_mutex_destroy(&v->lock);
	free(v->name);
	free(v);
}
