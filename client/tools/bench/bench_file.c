/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * bench_file.c - the file that `leat bench` works on
 *
 * Operation:  A benchmark writes only to a file that it created with O_EXCL, or to one that the user named
 *             with --overwrite. Such a file is overwritten within its size. A file that the benchmark
 *             created is removed, after a signal too. A benchmark that reads fails if the file does not
 *             exist.
 *             Other users may be able to rename the file and put a link or another file in its place. So
 *             each open and the removal compare file system and inode number with those of the original
 *             file.
 *             In a directory the file gets the name of a temporary file, so that `leat rm --leftovers`
 *             finds one left behind by SIGKILL.
 * Memory:     One buffer while a file is filled.
 * Threads:    One.
 * Errors:     Logged here; exit status.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "bench_file.h"
#include "signals.h"

#define FILL_BYTES ((size_t)1 << 20)

void bench_get_counters(struct leat *m, struct bench_counters *ret)
{
	*ret = (struct bench_counters){ 0 };
#define GET(name) (void)leat_stat_value(m, #name, &ret->name);
	BENCH_COUNTERS(GET)
#undef GET
}

void bench_add_counters(struct bench_counters *sum, const struct bench_counters *before,
			const struct bench_counters *after)
{
	uint64_t pinned = sum->reg_pinned + after->reg_pinned;

#define ADD(name) sum->name += after->name - before->name;
	BENCH_COUNTERS(ADD)
#undef ADD
	sum->reg_pinned = pinned;
}

/* All words differ, so that neither deduplication nor compression can skip the transfer. */
static int fill(struct leat *m, struct leat_file *f, uint64_t size)
{
	uint64_t word = UINT64_C(0x2545f4914f6cdd1d);
	uint64_t *buf;
	int rc;

	rc = leat_buf_alloc(leat_session(m), FILL_BYTES, (void **)&buf);
	if (rc)
		return rc;
	for (uint64_t off = 0; !rc && off < size; off += FILL_BYTES) {
		size_t len = (size_t)MIN((uint64_t)FILL_BYTES, size - off);
		ssize_t n;

		for (size_t i = 0; i < FILL_BYTES / sizeof(*buf); i++)
			buf[i] = random_next(&word);
		n = tool_interrupted() ? -EINTR : leat_pwrite(f, buf, len, off);
		if (n != (ssize_t)len) /* an interrupted write may be short */
			rc = n < 0 ? (int)n : tool_interrupted() ? -EINTR : -EIO;
	}
	leat_buf_free(leat_session(m), buf);
	return rc;
}

static void note_file(struct bench_file *file, const struct stat *st)
{
	file->dev = st->st_dev;
	file->ino = st->st_ino;
	file->known = true;
}

static bool is_that_file(const struct bench_file *file, const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_dev == file->dev && st->st_ino == file->ino;
}

int bench_file_open(struct leat *m, const struct bench_file *file, int flags, struct leat_file **ret)
{
	struct leat_file *f;
	struct stat st;
	int rc;

	rc = leat_open(m, file->path, flags | (file->made ? O_NOFOLLOW : 0), 0, &f);
	if (rc)
		return rc == -ELOOP && file->made ? BENCH_REPLACED : rc;
	rc = leat_fstat(f, &st);
	if (!rc && !is_that_file(file, &st))
		rc = BENCH_REPLACED;
	if (!rc) {
		*ret = f;
		return 0;
	}
	(void)leat_close(f); /* nothing was written */
	return rc;
}

const char *bench_file_explain(struct leat *m, int err)
{
	if (err == BENCH_REPLACED)
		return "the file was replaced by another one, which is left as it is";
	return tool_explain(m ? leat_error(m) : leat_error(NULL), "", strerror(-err));
}

/* Registers the message to print if the server does not respond to the removal. */
static int add_leftover(struct leat *m, const struct bench_need *need, const struct bench_file *file)
{
	char place[TOOL_PLACE_BYTES], path[TOOL_PLACE_BYTES], name[TOOL_TEMP_NAME_BYTES + 1];
	struct signals_file f = { .kind = SIGNALS_STAYS };

	if (!tool_is_temp_name(tool_base_name(file->path, name, sizeof(name))))
		return -1;
	f.place = tool_place(m, need->path, place);
	f.path = tool_place(m, file->path, path);
	return signals_file_add(&f);
}

static int make_file(struct leat *m, const struct bench_need *need, struct bench_file *file)
{
	struct leat_file *f;
	struct stat st;
	int rc, err;

	file->slot = add_leftover(m, need, file); /* before the file exists: the server may stop in between */
	signals_mount_defer(m, true);
	rc = leat_open(m, file->path, O_RDWR | O_CREAT | O_EXCL, 0644, &f);
	signals_mount_defer(m, false);
	file->made = !rc || rc == -EINPROGRESS; /* interrupted: it may exist */
	if (rc) {
		if (!file->made || !tool_is_interruption(rc))
			(void)tool_fail(m, need->path, rc);
		if (file->made)
			bench_file_remove(m, file, false);
		else
			signals_file_del(file->slot);
		return TOOL_FAILED;
	}
	file->size = need->size;
	rc = leat_fstat(f, &st);
	if (!rc) {
		note_file(file, &st);
		rc = need->fill ? fill(m, f, need->size) : leat_ftruncate(f, need->size);
	}
	err = leat_close(f);
	rc = rc ? rc : err;
	if (!rc)
		return TOOL_OK;
	/* the signal is reported at the end of the program */
	rc = tool_is_interruption(rc) ? TOOL_FAILED : tool_fail(m, need->path, rc);
	bench_file_remove(m, file, false);
	return rc;
}

static int use_existing(const struct bench_need *need, const struct stat *st,
			struct bench_file *file)
{
	if (!S_ISREG(st->st_mode)) {
		log_err("%s: neither a regular file nor a directory", need->url);
		return TOOL_FAILED;
	}
	if (need->writes && !need->overwrite) {
		log_err("%s: this file is there already; name a directory, or use --overwrite to lose its content",
			need->url);
		return TOOL_FAILED;
	}
	note_file(file, st);
	file->size = MIN(need->size, (uint64_t)st->st_size);
	if (file->size >= need->min)
		return TOOL_OK;
	log_err("%s: the file has %llu bytes, less than the %llu needed; name a directory, where one is made",
		need->url, (unsigned long long)st->st_size, (unsigned long long)need->min);
	return TOOL_FAILED;
}

int bench_file_prepare(struct leat *m, const struct bench_need *need, struct bench_file *ret)
{
	char name[TOOL_TEMP_NAME_BYTES];
	struct stat st;
	int rc, n;

	ret->made = false;
	ret->known = false;
	snprintf(ret->path, sizeof(ret->path), "%s", need->path);
	rc = leat_stat(m, ret->path, &st);
	if (!rc && !S_ISDIR(st.st_mode))
		return use_existing(need, &st, ret);
	if (rc == -ENOENT && need->writes)
		return make_file(m, need, ret);
	if (!rc)
		rc = tool_temp_name(name);
	if (rc)
		return tool_fail(m, need->path, rc);
	n = snprintf(ret->path, sizeof(ret->path), "%s/%s", need->path, name);
	if (n < 0 || (size_t)n >= sizeof(ret->path))
		return tool_fail(NULL, need->url, -ENAMETOOLONG);
	return make_file(m, need, ret);
}

/* A file that is not known was created by a call without a result. Its random name is not used twice. */
static int check_and_unlink(struct leat *m, const struct bench_file *f)
{
	struct leat_file *file;
	int rc = f->known ? bench_file_open(m, f, O_RDONLY, &file) : 0;

	if (rc)
		return rc;
	if (f->known)
		(void)leat_close(file); /* only read */
	return leat_unlink(m, f->path);
}

int bench_file_remove(struct leat *m, const struct bench_file *f, bool lost)
{
	char place[TOOL_PLACE_BYTES];
	int rc;

	if (!f->made)
		return TOOL_OK;
	if (lost) {
		log_err("%s: left behind, because the server does not reply", tool_place(m, f->path, place));
		return TOOL_FAILED;
	}
	rc = TOOL_AGAIN(check_and_unlink(m, f));
	if (tool_is_interruption(rc) && signals_file_leave(f->slot))
		return TOOL_FAILED;
	signals_file_del(f->slot);
	if (rc == BENCH_REPLACED) {
		log_err("%s: not removed: %s", tool_place(m, f->path, place), bench_file_explain(m, rc));
		return TOOL_FAILED;
	}
	return rc && rc != -ENOENT ? tool_fail(m, f->path, rc) : TOOL_OK;
}
