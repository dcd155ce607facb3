/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_state.c - what a volume keeps in the state directory: its holders, its verifier, and whether a sync was in progress
 *
 * Operation: "block-NAME.sync" is one page, mapped shared, so that its contents survive the process. A process that is
 *            killed loses nothing: the page cache is the kernel's. But a sync that was in progress may have failed
 *            unheard, and a machine that went down has lost what was not synced. So the next process keeps the
 *            verifier only if it runs under the same boot of the kernel, and all syncs that had begun have ended.
 *            "block-NAME.holders" is text that ends with a sum of it: a new file is written, synced and renamed. A
 *            damaged one is an error, since a changed digit could admit an attachment that has ended. The page is
 *            locked: two leatds never use the files of one volume.
 *            Files of volumes that are not served any more stay: a volume that comes back goes on with its generations.
 * Memory:    The page, and the text while it is written or read.
 * Threads:   The page: any. Saving: one at a time, as ATTACH and DETACH of a volume are.
 * Errors:    Returned.
 */
#include "block_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/opt.h"
#include "base/siphash.h"
#include "block_conf.h"
#include "block_holders.h"
#include "small_file.h"

#define PAGE_BYTES 4096u
#define MAGIC UINT64_C(0x6c656174626c6b31) /* "leatblk1" */
#define HOLDERS_MAGIC "leat block holders 2"
#define HOLDERS_MAGIC_1 "leat block holders 1" /* lines without the client */
#define BOOT_BYTES 40u
#define TEXT_MAX ((size_t)1 << 20) /* BLOCK_HOLDERS_MAX lines of less than 512 bytes fit */
#define LINE_FIELDS 12
#define LINE_FIELDS_1 9
#define VOLUME_FIELDS 4
#define END_BYTES 21u

/* The numbers are this machine's: a page of another one has another boot id. */
struct page {
	uint64_t magic, id;
	char boot[BOOT_BYTES];
	_Atomic uint64_t verf;
	_Atomic uint64_t begun, ended; /* syncs */
	_Atomic uint64_t cached; /* not 0: the volume was served with write = cached */
};

struct block_state {
	int dir_fd, fd;
	uint64_t id;
	char name[BLOCK_NAME_MAX + 1];
	struct page *page;
};

uint64_t block_verf_random(void)
{
	uint64_t verf = 0;

	while (!verf) {
		if (getrandom(&verf, sizeof(verf), 0) != (ssize_t)sizeof(verf))
			return 0;
	}
	return verf;
}

static int read_boot_id(char ret[BOOT_BYTES])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, BOOT_BYTES - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return -EIO;
	ret[n] = '\0';
	return 0;
}

/* Return: the name of the volume, in @ret; false: not the name of such a page */
static bool name_of(const char *file, char ret[BLOCK_NAME_MAX + 1])
{
	size_t head = strlen("block-"), tail = strlen(".sync"), len = strlen(file);

	if (len <= head + tail || len - head - tail > BLOCK_NAME_MAX || memcmp(file, "block-", head) ||
	    strcmp(file + len - tail, ".sync"))
		return false;
	memcpy(ret, file + head, len - head - tail);
	ret[len - head - tail] = '\0';
	return true;
}

int block_state_each(const char *dir, void (*fn)(void *ctx, const char *name), void *ctx)
{
	char name[BLOCK_NAME_MAX + 1];
	const struct dirent *e;
	DIR *d = opendir(dir);
	int err;

	if (!d)
		return -errno;
	for (errno = 0; (e = readdir(d)) != NULL; errno = 0) {
		if (name_of(e->d_name, name))
			fn(ctx, name);
	}
	err = -errno;
	closedir(d);
	return err;
}

static bool is_intact(const struct page *p, uint64_t id, const char *boot)
{
	return p->magic == MAGIC && p->id == id && !strncmp(p->boot, boot, BOOT_BYTES) && p->verf && p->begun == p->ended &&
	       !p->cached;
}

/* The whole page is written before it is mapped: a full disk is an error here, and no signal later. */
static int map_page(struct block_state *s, uint64_t *ret_verf)
{
	union {
		struct page p;
		uint8_t bytes[PAGE_BYTES];
	} now = { .bytes = { 0 } };
	char boot[BOOT_BYTES] = "";
	struct stat st;
	ssize_t n;
	int err = read_boot_id(boot);

	if (err)
		return err;
	if (fstat(s->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || (st.st_size && st.st_size != PAGE_BYTES))
		return -EINVAL;
	if (st.st_size && pread(s->fd, &now, sizeof(now), 0) != (ssize_t)sizeof(now))
		return -EIO;
	if (!is_intact(&now.p, s->id, boot)) {
		memset(&now, 0, sizeof(now));
		now.p.magic = MAGIC;
		now.p.id = s->id;
		memcpy(now.p.boot, boot, BOOT_BYTES);
		now.p.verf = block_verf_random();
		if (!now.p.verf)
			return -EIO;
	}
	n = pwrite(s->fd, &now, sizeof(now), 0);
	if (n != (ssize_t)sizeof(now))
		return n < 0 ? -errno : -ENOSPC;
	s->page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (s->page == MAP_FAILED) {
		s->page = NULL;
		return -errno;
	}
	*ret_verf = now.p.verf;
	return 0;
}

static int open_page(struct block_state *s, const char *dir)
{
	char file[BLOCK_NAME_MAX + 16];

	s->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0)
		return -errno;
	(void)snprintf(file, sizeof(file), "block-%s.sync", s->name);
	s->fd = openat(s->dir_fd, file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (s->fd < 0)
		return -errno;
	return flock(s->fd, LOCK_EX | LOCK_NB) ? (errno == EWOULDBLOCK ? -EBUSY : -errno) : 0;
}

int block_state_open(const char *dir, const char *name, uint64_t id, struct block_state **ret, uint64_t *ret_verf,
		     char *why, size_t why_bytes)
{
	struct block_state *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return opt_fail(-ENOMEM, why, why_bytes, "out of memory");
	s->dir_fd = s->fd = -1;
	s->id = id;
	(void)snprintf(s->name, sizeof(s->name), "%s", name);
	err = open_page(s, dir);
	if (!err)
		err = map_page(s, ret_verf);
	if (err) {
		(void)opt_fail(err, why, why_bytes, "state-dir %s: block-%s.sync: %s", dir, name,
			       err == -EBUSY	? "another leatd has a volume of this name; give this one another state-dir"
			       : err == -EINVAL ? "it is not such a file"
						: strerror(-err));
		block_state_close(s);
		return err;
	}
	*ret = s;
	return 0;
}

void block_state_close(struct block_state *s)
{
	if (!s)
		return;
	if (s->page)
		(void)munmap(s->page, PAGE_BYTES);
	if (s->fd >= 0)
		close(s->fd);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	free(s);
}

void block_state_verf(struct block_state *s, uint64_t verf)
{
	if (s)
		atomic_store(&s->page->verf, verf);
}

void block_state_cached(struct block_state *s)
{
	if (s)
		atomic_store(&s->page->cached, 1);
}

void block_state_sync_begun(struct block_state *s)
{
	if (s)
		atomic_fetch_add(&s->page->begun, 1);
}

void block_state_sync_ended(struct block_state *s)
{
	if (s)
		atomic_fetch_add(&s->page->ended, 1);
}

/* ---- holders ------------------------------------------------------------------------------ */

/* The last line: a sum of all before it. */
static void print_end(const char *text, size_t n, char ret[END_BYTES + 1])
{
	static const struct siphash_key no_secret;

	(void)snprintf(ret, END_BYTES + 1, "end\t%016" PRIx64 "\n", siphash(&no_secret, text, n));
}

static void print_holders(const struct block_state *s, struct block_volume *v, FILE *f)
{
	pthread_mutex_lock(&v->lock);
	fprintf(f, HOLDERS_MAGIC "\nvolume\t%" PRIx64 "\t%" PRIu64 "\t%" PRIu64 "\n", s->id, v->generations, v->numbers);
	list_for_each(node, &v->holders) {
		const struct block_attachment *a = list_entry(node, struct block_attachment, link);

		fprintf(f, "holder\t%" PRIu64 "\t%" PRIu64 "\t%" PRIx64 "\t%" PRIu64 "\t%d\t%s\t%s\t%s\t%" PRIu32 "\t%" PRIu32
			   "\t%" PRIx64 "\n",
			a->number, a->generation, a->instance, a->since, a->rdonly, a->name, a->app, a->peer,
			a->client.kind, a->client.scope, a->client.key);
	}
	pthread_mutex_unlock(&v->lock);
}

/* In memory, since reactors wait for the lock of the volume. Return: 0, and the caller frees @ret_text; -ENOMEM */
static int make_text(const struct block_state *s, struct block_volume *v, char **ret_text, size_t *ret_bytes)
{
	char end[END_BYTES + 1];
	FILE *f = open_memstream(ret_text, ret_bytes);
	bool failed;

	if (!f)
		return -ENOMEM;
	print_holders(s, v, f);
	failed = fflush(f);
	if (!failed) {
		print_end(*ret_text, *ret_bytes, end);
		fputs(end, f);
	}
	failed |= ferror(f) != 0;
	if (fclose(f) || failed) {
		free(*ret_text);
		return -ENOMEM;
	}
	return 0;
}

int block_state_save(struct block_state *s, struct block_volume *v)
{
	char file[BLOCK_NAME_MAX + 24], *text;
	size_t bytes;
	int err = make_text(s, v, &text, &bytes);

	if (err)
		return err;
	(void)snprintf(file, sizeof(file), "block-%s.holders", s->name);
	err = small_file_replace(s->dir_fd, file, text, bytes);
	free(text);
	return err;
}

/* Splits a line at tabs. Return: false: it has not @n fields */
static bool split_line(char *line, char *fields[], int n)
{
	for (int i = 0; i < n; i++) {
		fields[i] = line;
		line = strchr(line, '\t');
		if (!line != (i == n - 1))
			return false;
		if (line)
			*line++ = '\0';
	}
	return true;
}

static bool parse_number(const char *text, int base, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, base);
	return *text && strchr("0123456789abcdef", *text) && !*end && !errno;
}

static bool copy_text(char *to, size_t bytes, const char *from)
{
	return (size_t)snprintf(to, bytes, "%s", from) < bytes;
}

static bool parse_client(char *const f[], struct rpcrdma_client_id *ret)
{
	uint64_t kind, scope;

	if (!parse_number(f[0], 10, &kind) || !parse_number(f[1], 10, &scope) || !parse_number(f[2], 16, &ret->key) ||
	    kind > RPCRDMA_CLIENT_IPV6 || scope > UINT32_MAX)
		return false;
	ret->kind = (uint32_t)kind;
	ret->scope = (uint32_t)scope;
	return true;
}

/* @fields: LINE_FIELDS, or LINE_FIELDS_1: its client is not known, and no client's share has it */
static int parse_holder(char *line, int fields, struct block_volume *v)
{
	struct block_attachment *a = block_attachment_new();
	char *f[LINE_FIELDS];
	uint64_t rdonly = 0;

	if (!a)
		return -ENOMEM;
	a->silent_ns = clock_now_ns();
	if (v->nholders == BLOCK_HOLDERS_MAX || !split_line(line, f, fields) || strcmp(f[0], "holder") ||
	    !parse_number(f[1], 10, &a->number) || !parse_number(f[2], 10, &a->generation) ||
	    !parse_number(f[3], 16, &a->instance) || !parse_number(f[4], 10, &a->since) ||
	    !parse_number(f[5], 10, &rdonly) || rdonly > 1 || !copy_text(a->name, sizeof(a->name), f[6]) ||
	    !copy_text(a->app, sizeof(a->app), f[7]) || !copy_text(a->peer, sizeof(a->peer), f[8]) ||
	    (fields == LINE_FIELDS && !parse_client(f + LINE_FIELDS_1, &a->client)) ||
	    !block_conf_name_ok(a->name) || block_find(v, a->name) || block_find_number(v, a->number) ||
	    a->generation > v->generations || !a->number || a->number > v->numbers) {
		free(a);
		return -EINVAL;
	}
	a->rdonly = rdonly;
	block_add(v, a);
	return 0;
}

/* Return: 0; -ENOENT: of another volume; -EINVAL */
static int parse_volume(const struct block_state *s, char *line, struct block_volume *v)
{
	uint64_t id, generations, numbers;
	char *f[VOLUME_FIELDS];

	if (!line || !split_line(line, f, VOLUME_FIELDS) || strcmp(f[0], "volume") || !parse_number(f[1], 16, &id) ||
	    !parse_number(f[2], 10, &generations) || !parse_number(f[3], 10, &numbers))
		return -EINVAL;
	if (id != s->id)
		return -ENOENT;
	v->generations = generations;
	v->numbers = numbers;
	return 0;
}

/* Return: 0; -ENOENT: of another volume; -EINVAL; -ENOMEM */
static int parse_holders(const struct block_state *s, char *text, size_t bytes, struct block_volume *v)
{
	char *line, *save = NULL, end[END_BYTES + 1];
	int err, fields;

	if (bytes < END_BYTES)
		return -EINVAL;
	bytes -= END_BYTES;
	print_end(text, bytes, end);
	if (memcmp(text + bytes, end, END_BYTES))
		return -EINVAL;
	text[bytes] = '\0';
	line = strtok_r(text, "\n", &save);
	fields = !line ? 0 : !strcmp(line, HOLDERS_MAGIC) ? LINE_FIELDS : !strcmp(line, HOLDERS_MAGIC_1) ? LINE_FIELDS_1 : 0;
	if (!fields)
		return -EINVAL;
	err = parse_volume(s, strtok_r(NULL, "\n", &save), v);
	while (!err && (line = strtok_r(NULL, "\n", &save)))
		err = parse_holder(line, fields, v);
	return err;
}

int block_state_load(struct block_state *s, struct block_volume *v)
{
	char file[BLOCK_NAME_MAX + 24], *text = malloc(TEXT_MAX);
	int err;

	if (!text)
		return -ENOMEM;
	(void)snprintf(file, sizeof(file), "block-%s.holders", s->name);
	err = small_file_read(s->dir_fd, file, text, TEXT_MAX);
	if (!err)
		err = parse_holders(s, text, strlen(text), v);
	free(text);
	return err == -ENOENT ? 0 : err;
}
