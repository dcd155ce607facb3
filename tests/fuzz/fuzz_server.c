/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_server.c - libFuzzer harness: a whole leatd, and peers that say whatever the input says
 *
 * Operation:  A leatd runs in this process, on a directory of its own, and listens on the local fabric
 *             and on TCP. The input is a script for up to four connections:
 *
 *               0 c         (re)connect c, local               2 c len bytes   one message
 *               1 c         disconnect c                       3 c             wait for its answers
 *               4 c at n len bytes           one message, with the key and address of region n put
 *                                            at word `at`
 *               5 c         (re)connect c, TCP                 6 c len bytes   these bytes, no record
 *                                                              7 c n           n KiB more of them
 *
 *             so that chunk lists may point at memory that exists. In a message the word FILE_WORD + n
 *             stands for the handle of file n, so that calls may, too; BLOCK_WORD for that of an
 *             attachment of a block volume, of instance 0; OBJECT_WORD + n for the name of an object of stripes,
 *             HANDLE_WORD + n for a handle of it (+ 4: with the term of a manager), COMMAND_WORD + p for the command of procedure p, signed with the arguments
 *             behind it; MARK_WORD + n in front of
 *             bytes without a record, for the mark of one that has them and n KiB more. A message is
 *             a Send, or a record with its mark. At the end of each script a well-behaved
 *             peer of each kind makes a NULL call and must get a reply: a hostile connection does
 *             not disturb the others.
 * Memory:     Each local connection offers two regions, one to be read and one to be written. What a
 *             script did to the exported directory is undone after it.
 * Threads:    leatd has its own; waiting here is polling until an answer or the end of the
 *             connection.
 * Errors:     abort() if the last peers are not served, or if a connection outlives its peer.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/wire.h"
#include "reactor.h"
#include "script_peer.h"
#include "server_int.h"
#include "stripe_words.h"
#include "volumes.h"

#define CONNS 4
#define FILES 6
#define FILE_WORD 0xf17e0000u
#define MARK_WORD 0xf17f0000u
#define BLOCK_WORD 0xf17d0000u
#define BLOCK_BYTES 32u

LOG_DEFINE("fuzz");

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* A file handle as it travels: length, bytes, pad. */
struct handle {
	uint8_t xdr[68];
	size_t bytes;
};

static struct server *server;
static char dir[64], export_path[96], names_path[96], files_path[104];
static struct script_peer peers[CONNS + 2];
static struct handle handles[FILES]; /* the root, a file, a directory, a link; root and file of a volume */
static bool has_handles, dirty;
static uint8_t block_handle[BLOCK_BYTES];
static bool has_block;

/* In front of a message over RDMA: what says that all of it is here. */
static const uint32_t rdma_words[] = { 1, 1, 4, 0, 0, 0, 0 };

static void say_words(struct script_peer *p, const uint32_t *words, size_t n, const struct handle *fh,
		      const char *name)
{
	uint8_t msg[512];
	struct wire_put w;

	wire_put_init(&w, msg, sizeof(msg));
	for (size_t i = 0; !p->tcp && i < ARRAY_SIZE(rdma_words); i++)
		wire_put_u32(&w, rdma_words[i]);
	for (size_t i = 0; i < n; i++)
		wire_put_u32(&w, words[i]);
	if (fh)
		wire_put_bytes(&w, fh->xdr, fh->bytes);
	if (name) {
		wire_put_u32(&w, (uint32_t)strlen(name));
		wire_put_bytes(&w, name, strlen(name));
		wire_put_bytes(&w, "\0\0\0", round_up4(strlen(name)) - strlen(name));
	}
	script_must(wire_put_ok(&w));
	script_say(p, msg, wire_put_len(&w));
}

/* A NULL call of NFS; the answer tells that everything in front of it has been looked at. */
static bool null_call(struct script_peer *p)
{
	static const uint32_t words[] = { 1, 0, 2, 100003, 3, 0, 0, 0, 0, 0 };
	unsigned before = p->answers;

	say_words(p, words, ARRAY_SIZE(words), NULL, NULL);
	return script_wait_for_answer(p, before);
}

/* ---- files ---- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	if (ftw->level)
		(void)remove(path);
	return 0;
}

static void empty_dir(const char *path)
{
	(void)chmod(path, 0777);
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_files(void)
{
	char path[128];
	int fd;

	empty_dir(export_path);
	empty_dir(files_path);
	snprintf(path, sizeof(path), "%s/f", files_path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	script_must(fd >= 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/f", export_path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	script_must(fd >= 0 && write(fd, "sixteen bytes...", 16) == 16);
	close(fd);
	snprintf(path, sizeof(path), "%s/d", export_path);
	script_must(!mkdir(path, 0777));
	snprintf(path, sizeof(path), "%s/l", export_path);
	script_must(!symlink("f", path));
	dirty = has_handles = false;
}

/* From the results of MNT and of LOOKUP alike: status, handle. */
static void take_handle(struct script_peer *p, unsigned before, struct handle *ret)
{
	const size_t head = 4 * ARRAY_SIZE(rdma_words) + 24;
	uint32_t len;

	script_must(script_wait_for_answer(p, before) && p->answer_bytes > head + 8);
	script_must(!get_be32(p->answer + head));
	len = get_be32(p->answer + head + 4);
	ret->bytes = 4 + round_up4(len);
	script_must(ret->bytes <= sizeof(ret->xdr) && head + 4 + ret->bytes <= p->answer_bytes);
	memcpy(ret->xdr, p->answer + head + 4, ret->bytes);
}

static void get_handles(void)
{
	static const char *const names[FILES] = { "/fuzz", "f", "d", "l", "/fv", "f" };
	static const uint32_t mnt[] = { 1, 0, 2, 100005, 3, 1, 1, 20, 0, 0, 0, 0, 0, 0, 0 };
	static const uint32_t lookup[] = { 1, 0, 2, 100003, 3, 3, 1, 20, 0, 0, 0, 0, 0, 0, 0 };
	struct script_peer *p = &peers[CONNS];
	struct handle *root = NULL;

	if (has_handles)
		return;
	script_dial(p);
	for (int i = 0; i < FILES; i++) {
		bool is_root = names[i][0] == '/';
		unsigned before = p->answers;

		say_words(p, is_root ? mnt : lookup, ARRAY_SIZE(mnt), is_root ? NULL : root, names[i]);
		take_handle(p, before, &handles[i]);
		if (is_root)
			root = &handles[i];
	}
	script_hang_up(p);
	has_handles = true;
}

/* Attaches the volume with take-over, and keeps its handle. */
static void get_block(void)
{
	static uint32_t holder;
	const size_t head = 4 * ARRAY_SIZE(rdma_words) + 24;
	const uint32_t words[] = { 1, 0, 2, 0x20c5f003, 1, 3, 1, 20, 0, 0, 0, 0, 0, 0, 0, /* ATTACH */
				   3, 0x766f6c00, 4, 0x61616161 + (++holder & 0x0f0f0f0f), 0, 0, /* "vol", a holder */
				   2, 0, 0, 31, 1 }; /* to take over; the lane */
	struct script_peer *p = &peers[CONNS];
	unsigned before;

	if (has_block)
		return;
	script_dial(p);
	before = p->answers;
	say_words(p, words, ARRAY_SIZE(words), NULL, NULL);
	script_must(script_wait_for_answer(p, before) && p->answer_bytes >= head + 4 + BLOCK_BYTES && !get_be32(p->answer + head));
	memcpy(block_handle, p->answer + head + 4, BLOCK_BYTES);
	script_hang_up(p);
	has_block = true;
}

/* ---- scripts ---- */

static void put_region(struct script_peer *p, uint8_t *msg, size_t len, size_t at, unsigned n)
{
	const struct rr_mr *mr = p->region[n & 1];

	at = at * 4;
	if (!mr || len < 16 || at > len - 16)
		return;
	put_be32(msg + at, mr->rkey);
	put_be64(msg + at + 8, (uint64_t)(uintptr_t)mr->addr);
}

/* @src with its words for files replaced; Return: length */
static size_t put_handles(uint8_t *msg, const uint8_t *src, size_t len)
{
	size_t at = 0, command = 0, stripe;
	uint32_t proc = 0;

	for (size_t i = 0; i < len; i += 4) {
		size_t n = MIN(len - i, (size_t)4);
		uint32_t file = n == 4 ? get_be32(src + i) - FILE_WORD : FILES;

		if (n == 4 && get_be32(src + i) == BLOCK_WORD && at + BLOCK_BYTES + (len - i) <= SCRIPT_MSG_BYTES) {
			get_block();
			memcpy(msg + at, block_handle, BLOCK_BYTES);
			at += BLOCK_BYTES;
			continue;
		}
		stripe = n == 4 ? stripe_words_put(msg + at, SCRIPT_MSG_BYTES - at - (len - i), get_be32(src + i)) : 0;
		if (stripe == STRIPE_COMMAND_BYTES) {
			command = at + stripe;
			proc = get_be32(src + i) - STRIPE_WORDS_COMMAND;
		}
		if (stripe) {
			at += stripe;
			continue;
		}
		if (file >= FILES) {
			memcpy(msg + at, src + i, n);
			at += n;
			continue;
		}
		get_handles();
		dirty = true;
		if (at + handles[file].bytes + (len - i) > SCRIPT_MSG_BYTES)
			continue;
		memcpy(msg + at, handles[file].xdr, handles[file].bytes);
		at += handles[file].bytes;
	}
	if (command)
		stripe_words_sign(msg + command - STRIPE_COMMAND_BYTES, proc, msg + command, at - command);
	return at;
}

static void put_mark(uint8_t *msg, size_t len)
{
	uint32_t kib = len < 4 ? UINT32_MAX : get_be32(msg) - MARK_WORD;

	if (kib <= 255)
		put_be32(msg, SCRIPT_MARK_LAST | ((uint32_t)len - 4 + kib * 1024));
}

static uint8_t next_byte(struct wire_get *g)
{
	const uint8_t *b = wire_get_bytes(g, 1);

	return b ? *b : 0;
}

static void run_step(struct wire_get *g)
{
	uint8_t op = next_byte(g) % 8;
	struct script_peer *p = &peers[next_byte(g) % CONNS];
	uint8_t msg[SCRIPT_MSG_BYTES];
	const uint8_t *bytes;
	uint8_t at = 0, n = 0;
	size_t len;

	switch (op) {
	case 0:
		script_dial(p);
		return;
	case 1:
		script_hang_up(p);
		return;
	case 3:
		(void)null_call(p);
		return;
	case 4:
		at = next_byte(g);
		n = next_byte(g);
		break;
	case 5:
		script_dial_tcp(p);
		return;
	case 7:
		memset(msg, 'f', 1024);
		for (n = next_byte(g); n && p->tcp; n--)
			script_say_tcp(p, msg, 1024, false);
		return;
	}
	len = (size_t)next_byte(g) * 4;
	len = MIN(len, wire_get_left(g));
	bytes = wire_get_bytes(g, len);
	if (!len || !bytes)
		return;
	len = put_handles(msg, bytes, len);
	if (op == 4)
		put_region(p, msg, len, at, n);
	if (op == 6 && p->tcp) {
		put_mark(msg, len);
		script_say_tcp(p, msg, len, false);
	} else {
		script_say(p, msg, len);
	}
}

static unsigned conns_left(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < server->nreactors; i++)
		n += atomic_load(&server->reactors[i]->nconns);
	return n;
}

static void must_serve(struct script_peer *p)
{
	if (!null_call(p)) {
		fprintf(stderr, "%s peer not served: routed %d, up %d, over %d (%s), %u answers; %u "
			"connections\n",
			p->tcp ? "TCP" : "local", p->routed, p->up, p->over, strerror(-p->status),
			p->answers, conns_left());
		abort();
	}
	script_hang_up(p);
}

static void wait_for_the_end(void)
{
	uint64_t until = clock_now_ns() + SCRIPT_PATIENCE_NS;

	while (conns_left() && clock_now_ns() < until)
		sched_yield();
	script_must(!conns_left());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script_peer *good = &peers[CONNS], *good_tcp = &peers[CONNS + 1];
	struct wire_get g;

	stripe_words_next_script();
	wire_get_init(&g, data, size);
	while (wire_get_left(&g) >= 2)
		run_step(&g);
	for (int i = 0; i < CONNS; i++)
		script_hang_up(&peers[i]);
	script_dial(good);
	must_serve(good);
	script_dial_tcp(good_tcp);
	must_serve(good_tcp);
	wait_for_the_end();
	if (dirty)
		make_files();
	has_block = false;
	return 0;
}

static void clean_up(void)
{
	char cmd[96];

	rr_fabric_close(script_net.fabric);
	if (server_stop(server, 5000))
		_exit(1);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	if (system(cmd))
		_exit(1);
}

/* Chooses a port that is free now; another program is unlikely to bind it before leatd does. */
static void choose_port(void)
{
	socklen_t len = sizeof(script_net.tcp);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	script_net.tcp = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	script_must(fd >= 0 && !bind(fd, (struct sockaddr *)&script_net.tcp, sizeof(script_net.tcp)) &&
		    !getsockname(fd, (struct sockaddr *)&script_net.tcp, &len));
	close(fd);
}

/* Writes the file @name below dir. */
static void write_text(const char *name, const char *text)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	script_must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static struct conf conf;
	char why[CONF_WHY_BYTES], spec[160], url[160], tcp[64], volume[96], vol[224], names[400], path[112];
	char argv0[] = "leatd", exp[] = "--export", listen[] = "--listen", reactors[] = "--reactors=1",
	     workers[] = "--workers=2", event[] = "--poll=event", state[96], block[] = "--block", managed[] = "--volume",
	     kept[] = "--stripes", stripes[400];
	char *args[] = { argv0, exp,	 spec,	  listen, url,	 listen,
			 tcp,	reactors, workers, event,	state, block, vol, managed, names, kept, stripes, NULL };
	int fd;

	(void)argc;
	(void)argv;
	log_state.level = LOG_LEVEL_ERR;
	snprintf(dir, sizeof(dir), "/tmp/leat-fuzz-XXXXXX");
	script_must(mkdtemp(dir));
	snprintf(export_path, sizeof(export_path), "%s/export", dir);
	script_must(!mkdir(export_path, 0777));
	snprintf(names_path, sizeof(names_path), "%s/names", dir);
	script_must(!mkdir(names_path, 0777));
	snprintf(files_path, sizeof(files_path), "%s/files", names_path);
	script_must(!mkdir(files_path, 0777));
	snprintf(path, sizeof(path), "%s/pending", names_path);
	script_must(!mkdir(path, 0700));
	write_text("key", STRIPE_WORDS_KEY);
	script_must(!stripe_words_start());
	write_text("map", "volume = 0000000000000001\nversion = 1\n[server 1]\nurl = tcp://127.0.0.1:1\n[server 2]\nurl = tcp://127.0.0.1:2\n");
	snprintf(names, sizeof(names), "fv=%s,key=%s/key,map=%s/map,no_root_squash,insecure,clients=127.0.0.0/8", names_path, dir,
		 dir);
	snprintf(path, sizeof(path), "%s/stripes", dir);
	script_must(!mkdir(path, 0700));
	snprintf(stripes, sizeof(stripes), "fs=%s,key=%s/key,id=1,insecure,clients=127.0.0.0/8", path, dir);
	make_files();
	snprintf(volume, sizeof(volume), "%s/volume", dir);
	fd = open(volume, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	script_must(fd >= 0 && !ftruncate(fd, 1 << 20));
	close(fd);
	snprintf(vol, sizeof(vol), "vol=%s,write=cached,read=cached,insecure,clients=127.0.0.0/8", volume);
	choose_port();
	snprintf(script_net.sock, sizeof(script_net.sock), "%s/sock", dir);
	snprintf(spec, sizeof(spec), "/fuzz=%s,no_root_squash,insecure,clients=127.0.0.0/8", export_path);
	snprintf(state, sizeof(state), "--state-dir=%s/state", dir);
	snprintf(url, sizeof(url), "local://%s", script_net.sock);
	snprintf(tcp, sizeof(tcp), "tcp://127.0.0.1:%u", (unsigned)ntohs(script_net.tcp.sin_port));
	conf_init(&conf);
	script_must(conf_args(&conf, (int)ARRAY_SIZE(args) - 1, args, why) == CONF_RUN);
	conf.drc_entries = 4; /* not what another input was answered, unless it has just been */
	script_must(!server_start(&conf, &server));
	conf_fini(&conf);
	script_must(!rr_local_open(NULL, &script_net.fabric));
	atexit(clean_up);
	return 0;
}
