/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * menu_local.c - attacks over the local fabric by way of libleat, which means well
 *
 * Operation:  What is hostile is around the library: descriptors that are swapped (memfd_menu.c), words that
 *             are written by a thread of ours (tamper.c), a loop that does not run.
 * Memory:     Of the process; r->bytes at most where pages are touched on purpose.
 * Threads:    The library's, and that of tamper.c.
 * Errors:     A call that fails is none; a mount that fails is tried again until the deadline.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile.h"
#include "local_int.h"
#include "memfd_menu.h"

#define BIG_BYTES (8u << 20) /* of the export's large file; at least */
#define IO_BYTES (1u << 20)
#define IN_FLIGHT 64u
#define MEMFD_BYTES ((2u << 20) + 4096) /* no multiple of a huge page */
#define MOUNTS_MAX 1024u

static unsigned done, failed;

/* Return: NULL if leatd does not let us in. */
static struct leat *mount_once(struct attack_run *r, const char *options)
{
	char url[600];
	struct leat *m = NULL;

	snprintf(url, sizeof(url), "local://%s%s?cache=none&readahead=0&retry=soft&timeo=1000%s", r->sock,
		 r->export, options);
	if (leat_mount(url, NULL, &m))
		return NULL;
	return m;
}

static struct leat *mount_patiently(struct attack_run *r, const char *options)
{
	struct leat *m = mount_once(r, options);

	while (!m && !run_over(r)) {
		run_nap(r, 20);
		m = mount_once(r, options);
	}
	return m;
}

static void count_call(int64_t result)
{
	*(result < 0 ? &failed : &done) += 1;
}

/* ---- calls that go out many at once ---- */

static void on_done(void *user_data, int64_t result)
{
	unsigned *out = user_data;

	--*out;
	count_call(result);
}

static unsigned read_many(struct attack_run *r, struct leat_file *f, uint8_t *buf, unsigned n, unsigned *out)
{
	unsigned sent = 0;

	for (unsigned i = 0; i < n; i++) {
		struct leat_cb cb = { .fn = on_done, .user_data = out };
		uint64_t off = (uint64_t)run_rand(r, BIG_BYTES / IO_BYTES) * IO_BYTES;

		++*out;
		if (leat_aio_pread(f, buf + (size_t)i * IO_BYTES, IO_BYTES, off, cb))
			--*out;
		else
			sent++;
	}
	return sent;
}

/* Only its owner process can copy to memory of malloc(), and that process is busy. */
static struct leat *read_into_own(struct attack_run *r, struct leat_file **ret, unsigned *out)
{
	struct leat *m = mount_patiently(r, "&conns=4");
	uint8_t *buf = m ? malloc((size_t)IN_FLIGHT * IO_BYTES) : NULL;

	if (!buf || leat_open(m, "/big", O_RDONLY, 0, ret))
		return NULL;
	(void)read_many(r, *ret, buf, IN_FLIGHT, out);
	return m;
}

/* The agent never moves anything, receives are never posted again, replies are never taken. */
static void attack_stuck(struct attack_run *r)
{
	unsigned rounds = 0;

	while (!run_over(r) && rounds < r->count / IN_FLIGHT + 1) {
		static unsigned out[MOUNTS_MAX];
		struct leat_file *f;

		if (!read_into_own(r, &f, &out[rounds % MOUNTS_MAX]))
			break;
		rounds++;
	}
	while (!run_over(r))
		run_nap(r, 100);
	snprintf(r->said, sizeof(r->said), "%u mounts that stand still", rounds);
}

/* The same, but one step is made now and then. */
static void attack_slow(struct attack_run *r)
{
	unsigned out = 0;
	struct leat_file *f;
	struct leat *m = read_into_own(r, &f, &out);

	while (m && !run_over(r)) {
		(void)leat_poll(leat_session(m), 0);
		run_nap(r, 1 + run_rand(r, 50));
	}
	snprintf(r->said, sizeof(r->said), "%u reads came, %u failed", done, failed);
}

/* As many connections as there can be, which do nothing. */
static void attack_many(struct attack_run *r)
{
	unsigned n = 0;

	while (n < r->count && !run_over(r) && mount_once(r, "&conns=1"))
		n++;
	while (!run_over(r))
		run_nap(r, 100);
	snprintf(r->said, sizeof(r->said), "%u mounts held%s", n, n < r->count ? ", no more were let in" : "");
}

/* Connections that come and go, some in the middle of a read. */
static void attack_churn(struct attack_run *r)
{
	unsigned n = 0;

	while (!run_over(r)) {
		struct leat *m = mount_once(r, run_rand(r, 2) ? "&conns=4" : "");
		struct leat_file *f;
		unsigned out = 0;
		void *buf;

		if (!m)
			continue;
		n++;
		if (run_rand(r, 2) && !leat_buf_alloc(leat_session(m), 4 * IO_BYTES, &buf) &&
		    !leat_open(m, "/big", O_RDONLY, 0, &f)) {
			(void)read_many(r, f, buf, 4, &out);
			shutdown(tamper_sock(), SHUT_RDWR);
			while (out && !run_over(r))
				(void)leat_poll(leat_session(m), 10);
			(void)leat_close(f);
		}
		leat_umount(m);
	}
	snprintf(r->said, sizeof(r->said), "%u mounts came and went", n);
}

/* ---- honest traffic, under which the ground moves ---- */

static void do_something(struct attack_run *r, struct leat *m, struct leat_file *f, uint8_t *buf)
{
	char path[64], to[64];
	struct leat_dir *d;

	snprintf(path, sizeof(path), "/area/f%d-%u", (int)getpid(), (unsigned)run_rand(r, 8));
	snprintf(to, sizeof(to), "/area/t%d-%u", (int)getpid(), (unsigned)run_rand(r, 8));
	switch (run_rand(r, 8)) {
	case 0:
	case 1:
		count_call(leat_pread(f, buf, 1 + run_rand(r, IO_BYTES), run_rand(r, BIG_BYTES)));
		break;
	case 2: {
		struct leat_file *w;
		int rc = leat_creat(m, path, 0600, &w);

		if (!rc) {
			count_call(leat_pwrite(w, buf, 1 + run_rand(r, IO_BYTES), run_rand(r, 65536)));
			rc = leat_close(w);
		}
		count_call(rc);
		break;
	}
	case 3:
		d = NULL;
		count_call(leat_opendir(m, "/list", &d));
		leat_closedir(d);
		break;
	case 4:
		count_call(leat_rename(m, path, to));
		break;
	case 5:
		count_call(leat_unlink(m, run_rand(r, 2) ? path : to));
		break;
	case 6:
		count_call(leat_mkdir(m, path, 0700));
		(void)leat_rmdir(m, path);
		break;
	default:
		count_call(leat_null(m));
	}
}

/* Rounds of calls on new mounts, since a mount that was cut waits for a while before it comes back. */
static void talk_on(struct attack_run *r, const char *options)
{
	unsigned mounts = 0;

	while (!run_over(r)) {
		struct leat *m = mount_patiently(r, options);
		struct leat_file *f = NULL;
		unsigned before = failed;
		void *buf = NULL;

		if (!m)
			break;
		mounts++;
		if ((run_rand(r, 2) ? leat_buf_alloc(leat_session(m), IO_BYTES, &buf) : -1) < 0)
			buf = NULL;
		if (!leat_open(m, "/big", O_RDONLY, 0, &f)) {
			uint8_t *own = buf ? NULL : malloc(IO_BYTES);

			while (!run_over(r) && failed < before + 3)
				do_something(r, m, f, buf ? buf : own);
			(void)leat_close(f);
			free(own);
		}
		leat_buf_free(leat_session(m), buf);
		leat_umount(m);
	}
	snprintf(r->said, sizeof(r->said), "%u mounts, %u calls succeeded, %u failed", mounts, done, failed);
}

static void attack_words(struct attack_run *r)
{
	tamper_start(r, TAMPER_WORDS);
	talk_on(r, run_rand(r, 2) ? "" : "&conns=4");
}

static void attack_calls(struct attack_run *r)
{
	static const char *const options[] = { "", "&conns=2", "&design=read-read", "&design=hybrid",
					       "&fast_write=64k", "&inline=1024" };

	tamper_start(r, TAMPER_CALLS);
	talk_on(r, options[run_rand(r, 6)]);
}

/* The server's own memory is within reach with these designs, and the words say that it is in use. */
static void attack_busy(struct attack_run *r)
{
	static const char *const options[] = { "&design=read-read&conns=4", "&design=hybrid&conns=4",
					       "&design=read-read&fast_write=64k&conns=4" };

	tamper_start(r, TAMPER_BUSY);
	talk_on(r, options[run_rand(r, 3)]);
}

static void attack_holes(struct attack_run *r)
{
	tamper_start(r, TAMPER_HOLES);
	talk_on(r, "&conns=2");
}

/* Reads into memory whose pages vanish meanwhile. */
static void attack_regions(struct attack_run *r)
{
	struct leat *m = mount_patiently(r, "&conns=2");
	uint64_t bytes = MIN(r->bytes, (uint64_t)IN_FLIGHT * IO_BYTES);
	unsigned n = (unsigned)(bytes / IO_BYTES), out = 0;
	struct leat_file *f;
	void *buf;

	if (!m || !n || leat_buf_alloc(leat_session(m), bytes, &buf) || leat_open(m, "/big", O_RDONLY, 0, &f))
		return;
	while (!run_over(r) && failed < 4 * n) {
		if (out < n / 2)
			(void)read_many(r, f, buf, n - out, &out);
		(void)leat_poll(leat_session(m), 1);
		(void)madvise((uint8_t *)buf + (size_t)run_rand(r, n) * IO_BYTES, IO_BYTES, MADV_REMOVE);
	}
	snprintf(r->said, sizeof(r->said), "%u reads came, %u failed", done, failed);
}

/* ---- calls that cost much ---- */

static void attack_flood(struct attack_run *r)
{
	static struct stat st; /* of calls that are out when this ends */
	struct leat *m = mount_patiently(r, "&conns=4&credits=64");
	unsigned out = 0, n = 0;
	struct leat_file *f;
	void *buf;

	if (!m || leat_buf_alloc(leat_session(m), IO_BYTES, &buf) || leat_open(m, "/big", O_RDONLY, 0, &f))
		return;
	while (!run_over(r)) {
		struct leat_cb cb = { .fn = on_done, .user_data = &out };
		char path[64], to[64];
		int rc;

		while (out >= 4 * IN_FLIGHT && !run_over(r))
			(void)leat_poll(leat_session(m), 10);
		snprintf(path, sizeof(path), "/area/x%d-%u", (int)getpid(), n % 64);
		snprintf(to, sizeof(to), "/area/y%d-%u", (int)getpid(), n % 64);
		out++;
		switch (n++ % 6) {
		case 0:
			rc = leat_aio_mkdir(m, path, 0700, cb);
			break;
		case 1:
			rc = leat_aio_rename(m, path, to, cb);
			break;
		case 2:
			rc = leat_aio_rmdir(m, to, cb);
			break;
		case 3:
			rc = leat_aio_pread(f, buf, IO_BYTES, 0, cb);
			break;
		case 4:
			rc = leat_aio_symlink(m, path, to, cb);
			break;
		default:
			rc = leat_aio_stat(m, "/list", &st, cb);
		}
		if (rc)
			out--;
	}
	snprintf(r->said, sizeof(r->said), "%u calls succeeded, %u failed", done, failed);
}

/* ---- descriptors ---- */

static void attack_memfds(struct attack_run *r)
{
	unsigned swapped = 0;

	while (!run_over(r)) {
		enum memfd_kind kind = (enum memfd_kind)run_rand(r, MEMFD_KINDS);
		struct leat_file *f = NULL;
		struct leat *m;
		void *buf;
		int fd;

		fd = memfd_menu_make(kind, MEMFD_BYTES, &(uint64_t){ 0 });
		if (fd < 0)
			continue; /* this host has none of these */
		close(fd);
		memfd_menu_swap(HS_REGION, kind, MEMFD_BYTES);
		m = mount_patiently(r, "");
		if (!m)
			break;
		if (!leat_buf_alloc(leat_session(m), MEMFD_BYTES, &buf) && !leat_open(m, "/big", O_RDONLY, 0, &f))
			count_call(leat_pread(f, buf, IO_BYTES, 0));
		swapped++;
		if (f)
			(void)leat_close(f);
		leat_umount(m);
	}
	snprintf(r->said, sizeof(r->said), "%u memfds, %u reads succeeded, %u failed", swapped, done, failed);
}

const struct attack attacks_local[] = {
	{ "memfds", attack_memfds }, { "words", attack_words },	    { "busy", attack_busy },
	{ "holes", attack_holes },   { "regions", attack_regions }, { "calls", attack_calls },
	{ "stuck", attack_stuck },   { "slow", attack_slow },	    { "many", attack_many },
	{ "churn", attack_churn },   { "flood", attack_flood },	    { 0 },
};
