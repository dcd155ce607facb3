/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_block_state.c - libFuzzer harness: the files that a block volume has in the state directory
 *
 * Operation:  Byte 0: bits of what the harness completes: 1: the page has the id of the boot, 2: it has magic number
 *             and the volume's id, 4: the text ends with its sum, 8: there is no page. Bytes 1 and 2: bytes of the
 *             page. The page, and the rest as the text of the holders, are opened as leatd does it. What is accepted has
 *             valid holders, each once; it is saved and loaded again, and is the same then. What is refused is refused
 *             with a reason.
 * Memory:     A directory in memory, of this process; it stays.
 * Errors:     abort() on a broken promise.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/siphash.h"
#include "block_conf.h"
#include "block_holders.h"
#include "block_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ID UINT64_C(0xabc)

enum { BOOT = 1, HEAD = 2, SUM = 4, NO_PAGE = 8 };

static char dir[64];

static void must(bool promise)
{
	if (!promise)
		abort();
}

static void remove_dir(void)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/block-v.sync", dir);
	unlink(path);
	(void)snprintf(path, sizeof(path), "%s/block-v.holders", dir);
	unlink(path);
	rmdir(dir);
}

static void make_dir(void)
{
	if (dir[0])
		return;
	(void)snprintf(dir, sizeof(dir), "/dev/shm/fuzz-block-state.XXXXXX");
	must(mkdtemp(dir));
	atexit(remove_dir);
}

static void put_file(const char *name, const void *data, size_t n)
{
	char path[96];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(fd >= 0 && write(fd, data, n) == (ssize_t)n);
	close(fd);
}

static void put_page(uint8_t how, const uint8_t *data, size_t n)
{
	static const uint64_t head[2] = { UINT64_C(0x6c656174626c6b31), ID };
	uint8_t page[8192] = { 0 };

	memcpy(page, data, MIN(n, sizeof(page)));
	if (how & HEAD)
		memcpy(page, head, sizeof(head));
	if (how & BOOT) {
		int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

		must(fd >= 0 && read(fd, page + 16, 37) == 37);
		close(fd);
	}
	put_file("block-v.sync", page, how & (HEAD | BOOT) ? 4096 : MIN(n, sizeof(page)));
}

static void put_holders(uint8_t how, const uint8_t *data, size_t n)
{
	static const struct siphash_key no_secret;
	char *text = malloc(n + 32);

	must(text);
	memcpy(text, data, n);
	if (how & SUM)
		n += (size_t)snprintf(text + n, 32, "end\t%016" PRIx64 "\n", siphash(&no_secret, text, n));
	put_file("block-v.holders", text, n);
	free(text);
}

static void volume_init(struct block_volume *v)
{
	*v = (struct block_volume){ .id = ID };
	pthread_mutex_init(&v->lock, NULL);
	list_init(&v->holders);
	list_init(&v->ending);
	list_init(&v->waiters);
}

static void volume_fini(struct block_volume *v)
{
	struct list *n;

	while ((n = list_pop(&v->holders)) != NULL)
		free(list_entry(n, struct block_attachment, link));
	pthread_mutex_destroy(&v->lock);
}

static void check_holders(const struct block_volume *v)
{
	unsigned n = 0;

	list_for_each(node, &v->holders) {
		struct block_attachment *a = list_entry(node, struct block_attachment, link);

		must(block_conf_name_ok(a->name) && block_find(v, a->name) == a);
		must(a->number && a->number <= v->numbers && block_find_number(v, a->number) == a);
		must(a->generation <= v->generations && !a->fenced && !a->conns && !a->live);
		n++;
	}
	must(n == v->nholders && n <= BLOCK_HOLDERS_MAX);
}

static void check_same(const struct block_volume *v, const struct block_volume *w)
{
	const struct list *q = w->holders.next;

	must(v->nholders == w->nholders && v->generations == w->generations && v->numbers == w->numbers);
	list_for_each(node, &v->holders) {
		const struct block_attachment *a = list_entry(node, struct block_attachment, link);
		const struct block_attachment *b = list_entry(q, struct block_attachment, link);

		must(!strcmp(a->name, b->name) && !strcmp(a->app, b->app) && !strcmp(a->peer, b->peer));
		must(a->number == b->number && a->generation == b->generation && a->instance == b->instance);
		must(a->since == b->since && a->rdonly == b->rdonly && a->client.kind <= RPCRDMA_CLIENT_IPV6);
		must(!memcmp(&a->client, &b->client, sizeof(a->client)));
		q = q->next;
	}
}

static void use_holders(struct block_state *s)
{
	struct block_volume v, again;

	volume_init(&v);
	volume_init(&again);
	if (!block_state_load(s, &v)) {
		check_holders(&v);
		must(!block_state_save(s, &v));
		must(!block_state_load(s, &again));
		check_same(&v, &again);
	}
	volume_fini(&v);
	volume_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct block_state *s;
	char why[256] = "", path[96];
	uint64_t verf = 0;
	size_t n;
	int err;

	if (size < 3)
		return 0;
	make_dir();
	n = MIN((size_t)data[1] << 8 | data[2], size - 3);
	put_page(data[0], data + 3, n);
	if (data[0] & NO_PAGE) {
		(void)snprintf(path, sizeof(path), "%s/block-v.sync", dir);
		unlink(path);
	}
	put_holders(data[0], data + 3 + n, size - 3 - n);
	err = block_state_open(dir, "v", ID, &s, &verf, why, sizeof(why));
	must(!err || (err == -EINVAL && why[0]));
	if (err)
		return 0;
	must(verf);
	use_holders(s);
	block_state_close(s);
	return 0;
}
