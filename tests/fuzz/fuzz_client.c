/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_client.c - libFuzzer harness: the whole client against a server that says what the input says
 *
 * Operation:  Byte 0 chooses the transport (1), whether operations on nodes follow the mount (2), or those on a
 *             block volume come instead (4), and whether the export is a striped volume (8); bytes 1 and 2 which other operations do, one for each bit; the rest is the server's script (hostile.h). Whatever it says, every operation
 *             must return, with no more bytes than there is room for.
 * Memory:     libleat's; the leak checker watches.
 * Threads:    The server's own (hostile.c).
 * Errors:     abort() on a broken promise.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "hostile.h"
#include "leat.h"
#include "leat_admin.h"
#include "leat_block.h"
#include "leat_volume.h"
#include "rpcrdma.h"

LOG_DEFINE("fuzz");

#define BUF_BYTES 9000u
#define OPTIONS "conns=1&retry=soft&timeo=3s&stripe_timeo=1s&poll=event"
#define DIR_ENTRIES_MAX 10000u /* a server can send entries without end */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int __real_rpcrdma_clnt_open(struct rpcrdma_engine *e, const struct rpcrdma_clnt_attr *attr,
			     struct rpcrdma_clnt **ret);
int __wrap_rpcrdma_clnt_open(struct rpcrdma_engine *e, const struct rpcrdma_clnt_attr *attr,
			     struct rpcrdma_clnt **ret);

static char sock[96];
static struct leat_volume_key *key;
static char buf[BUF_BYTES + 1], text[BUF_BYTES + 1];

static void must(bool promise)
{
	if (!promise)
		abort();
}

/* A connection that broke is tried again at once: time is what a fuzzer has too little of. */
int __wrap_rpcrdma_clnt_open(struct rpcrdma_engine *e, const struct rpcrdma_clnt_attr *attr,
			     struct rpcrdma_clnt **ret)
{
	struct rpcrdma_clnt_attr a = *attr;

	a.backoff_ms = 1;
	return __real_rpcrdma_clnt_open(e, &a, ret);
}

static void op_stat(struct leat *m)
{
	struct stat st;

	(void)leat_stat(m, "/d/file", &st);
	(void)leat_lstat(m, "/link", &st);
}

static void op_read(struct leat *m)
{
	struct leat_file *f;
	ssize_t n;

	if (leat_open(m, "/file", O_RDONLY, 0, &f))
		return;
	n = leat_pread(f, buf, 10, 0);
	must(n <= 10);
	n = leat_read(f, buf, BUF_BYTES); /* more than comes inline */
	must(n <= (ssize_t)BUF_BYTES && buf[BUF_BYTES] == '~');
	(void)leat_close(f);
}

static void op_write(struct leat *m)
{
	struct leat_file *f;
	ssize_t n;

	if (leat_open(m, "/file", O_RDWR | O_CREAT | O_TRUNC, 0644, &f))
		return;
	n = leat_pwrite(f, text, 100, 0);
	must(n <= 100);
	n = leat_pwrite(f, text, BUF_BYTES, 100);
	must(n <= (ssize_t)BUF_BYTES);
	(void)leat_fsync(f);
	(void)leat_close(f);
}

static void op_readdir(struct leat *m)
{
	const struct leat_dirent *e;
	struct leat_dir *d;

	if (leat_opendir(m, "/", &d))
		return;
	for (unsigned n = 0; n < DIR_ENTRIES_MAX && leat_readdir(d, &e) == 1; n++)
		must(strlen(e->name) <= 255 && !strchr(e->name, '/'));
	leat_closedir(d);
}

static void op_readlink(struct leat *m)
{
	ssize_t n = leat_readlink(m, "/link", buf, 64);

	must(n <= 64);
}

static void op_follow(struct leat *m)
{
	struct stat st;

	(void)leat_stat(m, "/d/link/file", &st);
}

static void op_make(struct leat *m)
{
	(void)leat_mkdir(m, "/d/new", 0755);
	(void)leat_rmdir(m, "/d/new");
	(void)leat_unlink(m, "/file");
}

static void op_rename(struct leat *m)
{
	(void)leat_rename(m, "/file", "/d/file");
	(void)leat_link(m, "/file", "/d/other");
}

static void op_symlink(struct leat *m)
{
	char target[3001];

	(void)leat_symlink(m, "short", "/d/s");
	memset(target, 'x', sizeof(target) - 1);
	target[sizeof(target) - 1] = '\0';
	(void)leat_symlink(m, target, "/d/s");
}

static void op_mknod(struct leat *m)
{
	struct leat_file *f;

	(void)leat_mknod(m, "/fifo", S_IFIFO | 0600, 0);
	if (!leat_open(m, "/new", O_WRONLY | O_CREAT | O_EXCL, 0600, &f))
		(void)leat_close(f);
}

static void op_setattr(struct leat *m)
{
	(void)leat_chmod(m, "/file", 0600);
	(void)leat_chown(m, "/link", 1, 1);
	(void)leat_utimens(m, "/file", NULL);
	(void)leat_truncate(m, "/file", 5);
}

static void op_access(struct leat *m)
{
	static const struct leat_acl_entry plain[] = { { LEAT_ACL_USER_OBJ, 6, 0 },
						       { LEAT_ACL_GROUP_OBJ, 4, 0 },
						       { LEAT_ACL_OTHER, 0, 0 } };
	struct leat_acl_entry v[8];

	(void)leat_access(m, "/file", R_OK | W_OK);
	must(leat_acl_get(m, "/file", v, 8) <= 8);
	(void)leat_acl_set(m, "/d", plain, 3);
}

static void op_statvfs(struct leat *m)
{
	struct statvfs v;

	(void)leat_statvfs(m, "/", &v);
}

static void op_stats(struct leat *m)
{
	struct leat_server_stats st = { .size = sizeof(st) };
	struct leat_where *where;
	struct leat_trace *trace;
	struct leat_info info = { .size = sizeof(info) };

	(void)leat_server_stats(m, &st);
	if (!leat_server_where(m, &where))
		leat_where_free(where);
	if (!leat_server_pieces(m, &trace))
		leat_trace_free(trace);
	leat_info(m, &info);
}

static void op_null(struct leat *m)
{
	(void)leat_null(m);
}

static void op_append(struct leat *m)
{
	struct leat_file *f;
	struct stat st;
	ssize_t n;

	if (leat_open(m, "/file", O_RDWR | O_APPEND, 0, &f))
		return;
	n = leat_write(f, text, 10);
	must(n <= 10);
	(void)leat_lseek(f, -5, SEEK_END);
	(void)leat_ftruncate(f, 3);
	(void)leat_fchmod(f, 0600);
	(void)leat_futimens(f, NULL);
	(void)leat_fstat(f, &st);
	(void)leat_close(f);
}

static void use_node(struct leat *m, struct leat_node *n)
{
	static const struct leat_setattr set = { .size = sizeof(set), .mask = LEAT_SET_GUARD | LEAT_SET_MODE };
	uint8_t bytes[LEAT_NODE_EXPORT_MAX];
	struct leat_node *same;
	struct stat st;
	ssize_t len;

	(void)leat_node_getattr(n, NULL, &st);
	(void)leat_node_setattr(n, NULL, &set, &st);
	len = leat_node_export(n, bytes, sizeof(bytes));
	must(len > 0);
	if (!leat_node_import(m, bytes, (size_t)len, &same)) /* fails for an empty handle */
		leat_node_put(same);
	leat_node_put(n);
}

static void op_nodes(struct leat *m)
{
	struct leat_node *d, *n;
	struct leat_file *f;
	struct stat st;

	if (leat_node_get(m, "/d", &d))
		return;
	if (!leat_node_mkdir(d, "new", 0755, &n, &st))
		use_node(m, n);
	if (!leat_node_symlink(d, "x", "s", &n, &st))
		use_node(m, n);
	if (!leat_node_mknod(d, "p", S_IFIFO | 0600, 0, &n, &st))
		use_node(m, n);
	if (!leat_node_create(d, "e", O_RDWR | O_EXCL, 0600, &n, &st, &f)) {
		(void)leat_close(f);
		use_node(m, n);
	}
	if (!leat_node_create(d, "c", O_RDWR | O_TRUNC, 0600, &n, &st, &f)) {
		(void)leat_close(f);
		use_node(m, n);
	}
	if (!leat_node_lookup(d, "../d/link", &n, &st))
		use_node(m, n);
	(void)leat_node_rename(d, "a", d, "b");
	leat_node_put(d);
}

static void see_volume(void *ctx, const struct leat_block_info *info)
{
	++*(unsigned *)ctx;
	must(strlen(info->name) <= LEAT_BLOCK_NAME_MAX && info->block && !(info->bytes % info->block));
}

static void see_holder(void *ctx, const struct leat_block_holder *h)
{
	++*(unsigned *)ctx;
	must(strlen(h->name) <= LEAT_BLOCK_NAME_MAX && strlen(h->peer) <= LEAT_BLOCK_TEXT_MAX && h->app);
}

/* Lists of a server that does not end them: names ascend, and have 63 bytes at most. A script is not that long. */
static void use_lists(struct leat_block *b)
{
	unsigned n = 0;

	(void)leat_block_list(b, see_volume, &n);
	(void)leat_block_holders(b, see_holder, &n);
}

static void use_volume(struct leat_block *b)
{
	struct leat_block_info info = { .size = sizeof(info) };
	struct iovec iov[2] = { { text, 100 }, { text + 200, 412 } };
	struct leat_block_extent v[4];
	ssize_t n;

	must(!leat_block_info(b, &info) || leat_error(leat_block_handle(b))[0]);
	n = leat_block_pread(b, buf, 512, 0);
	must(n < 0 || n == 512);
	n = leat_block_pread(b, buf, BUF_BYTES / 512 * 512, 512); /* more than comes inline */
	must(n < (ssize_t)BUF_BYTES && buf[BUF_BYTES] == '~');
	n = leat_block_pwritev(b, iov, 2, 0, LEAT_BLOCK_FUA);
	must(n < 0 || n == 512);
	n = leat_block_pwrite(b, text, 8192, 4096, 0);
	must(n < 0 || n == 8192);
	(void)leat_block_flush(b);
	(void)leat_block_zero(b, 0, 512, 0);
	(void)leat_block_discard(b, 512, 512);
	n = leat_block_extents(b, 0, 8192, v, 4);
	must(n <= 4);
	for (ssize_t i = 0; i < n; i++)
		must(v[i].len && v[i].off + v[i].len <= 8192 && v[i].off == (i ? v[i - 1].off + v[i - 1].len : 0));
	(void)leat_block_pread(b, buf, 512, 1u << 30); /* beyond the end, unless the server says otherwise */
	use_lists(b);
	(void)leat_block_take_over(b, "h");
}

static void try_volume(const char *server)
{
	struct leat_block *b;
	char url[280];

	snprintf(url, sizeof(url), "%s/block/v?" OPTIONS, server);
	if (!leat_block_attach(url, NULL, 0, &b)) {
		use_volume(b);
		(void)leat_block_detach(b);
	} else {
		must(leat_error(NULL)[0]);
	}
}

static int see_object(void *ctx, const unsigned char object[16], uint32_t stripe, const struct leat_volume_object *o)
{
	(void)object;
	(void)stripe;
	(void)o;
	return ++*(unsigned *)ctx < 1000 ? 0 : 1;
}

static int see_work(void *ctx, const unsigned char object[16], enum leat_volume_todo todo)
{
	(void)object;
	(void)todo;
	return ++*(unsigned *)ctx < 1000 ? 0 : 1;
}

static void use_layout(struct leat *m)
{
	struct leat_volume_place place = { .size = sizeof(place) };
	struct leat_volume_layout *l;

	if (leat_volume_layout(m, "/file", &l))
		return;
	must(l->nstripes && l->nstripes <= 256 && l->stripe);
	(void)leat_volume_find(l, 1000000, &place);
	(void)leat_volume_raise(m, "/file", l, 7000);
	leat_volume_layout_free(l);
}

/* The commands of a manager, too: the server of the mount is every server. */
static void use_striped(struct leat *m)
{
	struct leat_volume_command c = { .size = sizeof(c), .key = key, .term = 1, .server = 1 };
	struct leat_volume_defaults d = { .size = sizeof(d) };
	struct leat_volume_object o = { .size = sizeof(o) };
	struct leat_volume_info info = { .size = sizeof(info) };
	struct leat_volume_work work = { .size = sizeof(work) };
	struct leat_volume_map *map;
	uint64_t newest, cut = 10;
	unsigned n = 0;

	if (!leat_volume_map(m, &map)) {
		must(map->nservers && map->nservers <= 256);
		leat_volume_map_free(map);
	}
	use_layout(m);
	(void)leat_volume_defaults(m, "/d", &d);
	d.stripe = 65536;
	(void)leat_volume_set_defaults(m, "/d", &d);
	(void)leat_volume_create_file(m, "/d/new", 0600, &d);
	(void)leat_volume_ask(m, key, 1, &info);
	(void)leat_volume_object_stat(m, &c, &o, &newest);
	(void)leat_volume_object_fence(m, &c, 2, &cut, &o, &newest);
	(void)leat_volume_object_remove(m, &c, 1000, &o, &newest);
	(void)leat_volume_object_set_aside(m, &c, 1000, 1, &o, &newest);
	(void)leat_volume_object_list(m, &c, see_object, &n, &newest);
	(void)leat_volume_pending(m, key, see_work, &n, &work);
}

static void (*const ops[])(struct leat *m) = {
	op_stat,    op_read,    op_write,   op_readdir, op_readlink, op_follow, op_make, op_rename,
	op_symlink, op_mknod,   op_setattr, op_access,  op_statvfs,  op_stats,  op_null, op_append,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char url[200];
	struct leat *m;

	if (size < 3)
		return 0;
	if (data[0] & 1) {
		snprintf(url, sizeof(url), "local://%s/e/d?" OPTIONS, sock);
	} else {
		snprintf(url, sizeof(url), "tcp://127.0.0.1:%u/e/d?" OPTIONS "&mountport=%u", hostile_port(),
			 hostile_port());
	}
	memset(buf, '~', sizeof(buf));
	hostile_is_volume = data[0] & 8;
	hostile_start(data + 3, size - 3);
	if (data[0] & 4) {
		*strstr(url, "/e/d?") = '\0';
		try_volume(url);
		hostile_stop();
		return 0;
	}
	if (!leat_mount(url, NULL, &m)) {
		for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
			if (data[1 + i / 8] & 1u << i % 8)
				ops[i](m);
		if (data[0] & 2)
			op_nodes(m);
		if (data[0] & 8)
			use_striped(m);
		(void)leat_error(m);
		leat_umount(m);
	} else {
		must(leat_error(NULL)[0]);
	}
	hostile_stop();
	return 0;
}

static void read_key(void)
{
	static const char said[] = "volume = 0000000000000001\nkey = 00112233445566778899aabbccddeeff\n";
	char path[120], why[256];
	int fd;

	snprintf(path, sizeof(path), "%s.key", sock);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(fd >= 0 && write(fd, said, sizeof(said) - 1) == (ssize_t)sizeof(said) - 1);
	close(fd);
	must(!leat_volume_key_read(path, &key, why, sizeof(why)));
	unlink(path);
}

static void clean_up(void)
{
	hostile_fini();
	leat_volume_key_free(key);
	unlink(sock);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	log_state.level = LOG_LEVEL_ERR;
	memset(text, 'w', sizeof(text));
	snprintf(sock, sizeof(sock), "/tmp/leat-fuzz-client-%d", (int)getpid());
	read_key();
	hostile_init(sock);
	atexit(clean_up);
	return 0;
}
