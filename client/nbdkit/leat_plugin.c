/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leat_plugin.c - serves a block volume of a leatd to NBD clients: a plugin of nbdkit
 *
 *     nbdkit build/nbdkit-leat-plugin.so URL [OPTION=VALUE...]
 *
 * Operation:  One attachment serves all NBD connections of the process, so a flush of one covers the writes of all
 *             (multi-conn). get_ready() attaches for a trial, so that errors are reported while nbdkit still has its
 *             terminal, and detaches. after_fork() attaches in the process that serves. From then on the service thread
 *             of libleat moves data and reconnects.
 * Memory:     The buffers of nbdkit are the payload of the calls, or those of stage.c, if the server is on this host.
 *             struct leat_block_info for each NBD connection.
 * Threads:    Those of nbdkit; each waits in a synchronous function of libleat. A thread of the plugin cancels these if
 *             nbdkit ends while the server is away: nbdkit waits for its requests, and they for the server.
 * Errors:     check() reports the text of libleat, and an errno that NBD has.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "leat.h"
#include "leat_block.h"
#include "stage.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#define DETACH_MS 5000
#define CANCEL_US 100000
#define EXTENTS 256u

/* limits of NBD and of nbdkit */
#define MINIMUM_MAX (64u << 10)
#define PREFERRED_MIN 512u
#define PREFERRED_MAX (32u << 20)
#define MAXIMUM (64u << 20)

static struct leat_opts *opts;
static char *url;
static unsigned flags;
static struct leat_block *volume; /* from after_fork() to cleanup() */

/* ---- options ---- */

static void load(void)
{
	opts = leat_opts_create();
	if (!opts) {
		nbdkit_error("out of memory");
		exit(EXIT_FAILURE);
	}
}

static void unload(void)
{
	leat_opts_destroy(opts);
	free(url);
}

static int set_url(const char *value)
{
	if (url) {
		nbdkit_error("a second URL: %s", value);
		return -1;
	}
	url = strdup(value);
	return url ? 0 : -1;
}

static int set_flag(unsigned flag, const char *value)
{
	int on = nbdkit_parse_bool(value);

	if (on < 0)
		return -1;
	flags = on ? flags | flag : flags & ~flag;
	return 0;
}

static int set_option(const char *key, const char *value)
{
	if (leat_set(opts, key, value)) {
		nbdkit_error("%s", leat_error(NULL));
		return -1;
	}
	return 0;
}

/* nbdkit changes its directory when it goes into the background. */
static int set_file(const char *key, const char *value)
{
	char *path = nbdkit_absolute_path(value);
	int rc = path ? set_option(key, path) : -1;

	free(path);
	return rc;
}

static int config(const char *key, const char *value)
{
	if (!strcmp(key, "url"))
		return set_url(value);
	if (!strcmp(key, "rdonly"))
		return set_flag(LEAT_BLOCK_RDONLY, value);
	if (!strcmp(key, "take_over"))
		return set_flag(LEAT_BLOCK_TAKE_OVER, value);
	if (!strcmp(key, "capture"))
		return set_file(key, value);
	return set_option(key, value);
}

static int config_complete(void)
{
	if (!url) {
		nbdkit_error("the URL of a volume is missing: local:///run/leat/leatd.sock/block/NAME, rdma://HOST/block/NAME");
		return -1;
	}
	return 0;
}

static void dump_plugin(void)
{
	printf("leat_version=%s\n", leat_version());
}

/* ---- errors ---- */

/* nbdkit turns every errno that NBD does not have into EINVAL. */
static int nbd_errno(int err)
{
	switch (err) {
	case EINVAL:
	case EIO:
	case ENOMEM:
	case ENOSPC:
	case EOPNOTSUPP:
	case EROFS:
		return err;
	case EACCES:
	case EPERM:
		return EPERM;
	case ESTALE: /* the attachment has ended */
	case ENXIO:
	case EBADF:
		return ESHUTDOWN;
	default:
		return EIO;
	}
}

/* Return: 0 if @rc is none, else -1 */
static int check(int64_t rc)
{
	if (rc >= 0)
		return 0;
	nbdkit_error("%s", leat_error(leat_block_handle(volume)));
	nbdkit_set_error(nbd_errno((int)-rc));
	return -1;
}

/* ---- a server that is away ---- */

static struct {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool away;    /* lock */
	bool ending;  /* lock: cleanup() waits for the thread */
} watch = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* Return: false: cleanup() waits */
static bool wait_for_change(bool *ret_away)
{
	bool going;

	pthread_mutex_lock(&watch.lock);
	while (!watch.away && !watch.ending)
		(void)pthread_cond_wait(&watch.changed, &watch.lock);
	*ret_away = watch.away;
	going = !watch.ending;
	pthread_mutex_unlock(&watch.lock);
	return going;
}

/* Return: false: nbdkit ends, also if it has said so itself: then requests of clients may be waiting */
static bool watch_once(void)
{
	bool away;

	if (!wait_for_change(&away))
		return false;
	return !away || nbdkit_nanosleep(1, 0) == 0;
}

static bool is_ending(void)
{
	bool ending;

	pthread_mutex_lock(&watch.lock);
	ending = watch.ending;
	pthread_mutex_unlock(&watch.lock);
	return ending;
}

static void *watch_main(void *arg)
{
	(void)arg;
	while (watch_once()) {
	}
	for (; !is_ending(); usleep(CANCEL_US)) /* threads of nbdkit may be about to start one more request each */
		(void)leat_cancel_all(leat_block_handle(volume));
	return NULL;
}

static void report_away(void *ctx, bool away, const char *why)
{
	(void)ctx;
	if (away)
		nbdkit_error("%s does not reply: %s; requests wait", url, why);
	else
		nbdkit_error("%s replies again", url);
	pthread_mutex_lock(&watch.lock);
	watch.away = away;
	pthread_cond_signal(&watch.changed);
	pthread_mutex_unlock(&watch.lock);
}

static void end_watch(void)
{
	pthread_mutex_lock(&watch.lock);
	watch.ending = true;
	pthread_cond_signal(&watch.changed);
	pthread_mutex_unlock(&watch.lock);
	pthread_join(watch.thread, NULL);
}

/* ---- the attachment ---- */

/* A volume that cannot be written is served read-only, as nbdkit's plugin for files does. */
static int attach(struct leat_block **ret)
{
	int rc = leat_block_attach(url, opts, flags, ret);

	if (rc == -EROFS && !(flags & LEAT_BLOCK_RDONLY)) {
		flags |= LEAT_BLOCK_RDONLY;
		rc = leat_block_attach(url, opts, flags, ret);
	}
	if (rc) {
		nbdkit_error("%s", leat_error(NULL));
		return -1;
	}
	return 0;
}

static int get_ready(void)
{
	struct leat_block *trial;

	leat_set_away(opts, report_away, NULL);
	if (attach(&trial))
		return -1;
	(void)leat_block_detach_within(trial, DETACH_MS);
	return 0;
}

static int after_fork(void)
{
	int rc;

	if (attach(&volume))
		return -1;
	stage_start(volume);
	rc = -leat_service_start(leat_session(leat_block_handle(volume)));
	if (!rc)
		rc = pthread_create(&watch.thread, NULL, watch_main, NULL);
	if (!rc)
		return 0;
	nbdkit_error("cannot start: %s", strerror(rc));
	stage_end();
	(void)leat_block_detach_within(volume, DETACH_MS);
	volume = NULL;
	return -1;
}

static void cleanup(void)
{
	if (!volume)
		return;
	end_watch();
	stage_end();
	(void)leat_block_detach_within(volume, DETACH_MS);
	volume = NULL;
}

/* ---- NBD connections ---- */

static void *open_volume(int readonly)
{
	struct leat_block_info *info = calloc(1, sizeof(*info));

	if (!info) {
		nbdkit_error("out of memory");
		return NULL;
	}
	info->size = sizeof(*info);
	if (check(leat_block_info(volume, info))) {
		free(info);
		return NULL;
	}
	info->rdonly = info->rdonly || readonly;
	return info;
}

static void close_volume(void *handle)
{
	free(handle);
}

static int64_t get_size(void *handle)
{
	const struct leat_block_info *info = handle;

	return (int64_t)info->bytes;
}

static const char *describe(void *handle)
{
	const struct leat_block_info *info = handle;

	return info->name;
}

static uint32_t power_of_two_up_to(uint32_t n)
{
	return n ? 1u << (31 - __builtin_clz(n)) : 0;
}

static int block_size(void *handle, uint32_t *minimum, uint32_t *preferred, uint32_t *maximum)
{
	const struct leat_block_info *info = handle;
	uint32_t best = power_of_two_up_to(info->preferred);

	if (info->block > MINIMUM_MAX) {
		nbdkit_error("%s: blocks of %u bytes are larger than NBD allows", info->name, info->block);
		return -1;
	}
	best = best < info->block ? info->block : best;
	best = best < PREFERRED_MIN ? PREFERRED_MIN : best;
	*minimum = info->block;
	*preferred = best > PREFERRED_MAX ? PREFERRED_MAX : best;
	*maximum = MAXIMUM;
	return 0;
}

static int can_write(void *handle)
{
	const struct leat_block_info *info = handle;

	return !info->rdonly;
}

static int can_trim(void *handle)
{
	const struct leat_block_info *info = handle;

	return info->can_discard;
}

static int can_fast_zero(void *handle)
{
	const struct leat_block_info *info = handle;

	return info->fast_zero;
}

static int can_extents(void *handle)
{
	const struct leat_block_info *info = handle;

	return info->can_extents;
}

static int can_flush(void *handle)
{
	(void)handle;
	return 1;
}

static int can_fua(void *handle)
{
	(void)handle;
	return NBDKIT_FUA_NATIVE;
}

static int can_multi_conn(void *handle)
{
	(void)handle;
	return 1;
}

/* nbdkit reads the range, which fills the server's page cache where the volume uses that. */
static int can_cache(void *handle)
{
	(void)handle;
	return NBDKIT_CACHE_EMULATE;
}

/* ---- data ---- */

static int read_volume(void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t how)
{
	void *stage = stage_take(count);
	int rc = check(leat_block_pread(volume, stage ? stage : buf, count, offset));

	(void)handle;
	(void)how;
	if (stage) {
		if (!rc)
			memcpy(buf, stage, count);
		stage_put(stage);
	}
	return rc;
}

static int write_volume(void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t how)
{
	unsigned fua = how & NBDKIT_FLAG_FUA ? LEAT_BLOCK_FUA : 0;
	void *stage = stage_take(count);
	int rc;

	(void)handle;
	if (!stage)
		return check(leat_block_pwrite(volume, buf, count, offset, fua));
	memcpy(stage, buf, count);
	rc = check(leat_block_pwrite(volume, stage, count, offset, fua));
	stage_put(stage);
	return rc;
}

static int flush_volume(void *handle, uint32_t how)
{
	(void)handle;
	(void)how;
	return check(leat_block_flush(volume));
}

/* The change has been acknowledged when the flush starts, so the flush covers it. */
static int end_change(int rc, uint32_t how)
{
	return rc || !(how & NBDKIT_FLAG_FUA) ? rc : flush_volume(NULL, 0);
}

static int trim_volume(void *handle, uint32_t count, uint64_t offset, uint32_t how)
{
	(void)handle;
	return end_change(check(leat_block_discard(volume, offset, count)), how);
}

static int zero_volume(void *handle, uint32_t count, uint64_t offset, uint32_t how)
{
	unsigned keep = how & NBDKIT_FLAG_MAY_TRIM ? 0 : LEAT_BLOCK_KEEP;

	(void)handle;
	return end_change(check(leat_block_zero(volume, offset, count, keep)), how);
}

/* ---- extents ---- */

static uint32_t nbd_type(enum leat_block_kind kind)
{
	switch (kind) {
	case LEAT_BLOCK_HOLE:
		return NBDKIT_EXTENT_HOLE | NBDKIT_EXTENT_ZERO;
	case LEAT_BLOCK_ZERO:
		return NBDKIT_EXTENT_ZERO;
	case LEAT_BLOCK_DATA:
		break;
	}
	return 0;
}

static int add_extents(const struct leat_block_extent *v, ssize_t n, struct nbdkit_extents *extents)
{
	for (ssize_t i = 0; i < n; i++) {
		if (nbdkit_add_extent(extents, v[i].off, v[i].len, nbd_type(v[i].kind)))
			return -1;
	}
	return 0;
}

/* A client may ask for a range that is not of whole blocks: the reply may begin before it and end behind it. */
static int list_extents(void *handle, uint32_t count, uint64_t offset, uint32_t how, struct nbdkit_extents *extents)
{
	const struct leat_block_info *info = handle;
	uint64_t mask = info->block - 1, end = (offset + count + mask) & ~mask;
	struct leat_block_extent v[EXTENTS];
	ssize_t n;

	for (offset &= ~mask; offset < end; offset = v[n - 1].off + v[n - 1].len) {
		n = leat_block_extents(volume, offset, end - offset, v, how & NBDKIT_FLAG_REQ_ONE ? 1 : EXTENTS);
		if (check(n) || add_extents(v, n, extents))
			return -1;
		if (how & NBDKIT_FLAG_REQ_ONE)
			break;
	}
	return 0;
}

static struct nbdkit_plugin plugin = {
	.name = "leat",
	.longname = "leat",
	.version = LEAT_VERSION,
	.description = "block volumes of leatd, over RDMA, the local fabric or TCP",
	.config_help = "[url=]URL      (required) local:///run/leat/leatd.sock/block/NAME, rdma://HOST/block/NAME\n"
		       "rdonly=BOOL    attach read-only\n"
		       "take_over=BOOL end the attachment of another holder\n"
		       "OPTION=VALUE   an option of leat(7): holder=, conns=, retry= ...",
	.magic_config_key = "url",
	.load = load,
	.unload = unload,
	.config = config,
	.config_complete = config_complete,
	.dump_plugin = dump_plugin,
	.get_ready = get_ready,
	.after_fork = after_fork,
	.cleanup = cleanup,
	.open = open_volume,
	.close = close_volume,
	.get_size = get_size,
	.export_description = describe,
	.block_size = block_size,
	.can_write = can_write,
	.can_trim = can_trim,
	.can_fast_zero = can_fast_zero,
	.can_extents = can_extents,
	.can_flush = can_flush,
	.can_fua = can_fua,
	.can_multi_conn = can_multi_conn,
	.can_cache = can_cache,
	.pread = read_volume,
	.pwrite = write_volume,
	.flush = flush_volume,
	.trim = trim_volume,
	.zero = zero_volume,
	.extents = list_extents,
};

NBDKIT_REGISTER_PLUGIN(plugin)
