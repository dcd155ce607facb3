/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_conf.c - leatd's command line and file: what is taken, and what is refused with which words
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conf.h"
#include "tmp_dir.h"
#include "rpcrdma_lab.h"

#define ARGS_MAX 32
#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

struct ctx {
	struct tmp_dir dir;
	struct conf conf;
	char why[CONF_WHY_BYTES];
};

static int setup(void **state)
{
	struct ctx *c = calloc(1, sizeof(*c));

	tmp_dir_create(&c->dir);
	conf_init(&c->conf);
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	struct ctx *c = *state;

	conf_fini(&c->conf);
	tmp_dir_destroy(&c->dir);
	free(c);
	return 0;
}

/* words with blanks between them; %s is the directory */
static printf_like(2, 3) enum conf_todo args(struct ctx *c, const char *fmt, ...)
{
	char line[1024], *argv[ARGS_MAX + 1] = { (char[]){ "leatd" } }, *save = NULL;
	va_list ap;
	int argc = 1;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	for (char *t = strtok_r(line, " ", &save); t; t = strtok_r(NULL, " ", &save)) {
		assert_true(argc < ARGS_MAX);
		argv[argc++] = t;
	}
	conf_fini(&c->conf);
	conf_init(&c->conf);
	c->why[0] = '\0';
	return conf_args(&c->conf, argc, argv, c->why);
}

static void command_line(void **state)
{
	struct ctx *c = *state;

	assert_int_equal(
		args(c,
		     "--export /x=%s,ro --listen tcp://127.0.0.1:0 --reactors 3 --workers auto "
		     "--poll busy --inline 8192 --credits 7 -v "
		     "--drc-entries 0 --drc-bytes 64k --pinned-max 700K "
		     "--messages-max 1048576 --shared-max 67108864 --max-connections 2000 --srq yes "
		     "--registration arena",
		     c->dir.path),
		CONF_RUN);
	assert_int_equal(c->conf.nexports, 1);
	assert_string_equal(c->conf.exports[0].name, "/x");
	assert_true(c->conf.exports[0].ro);
	assert_int_equal(c->conf.nlisten, 1);
	assert_int_equal(c->conf.listen[0].transport, RPCRDMA_TCP);
	assert_int_equal(c->conf.reactors, 3);
	assert_int_equal(c->conf.workers, 0);
	assert_int_equal(c->conf.poll, RPCRDMA_POLL_BUSY);
	assert_int_equal(c->conf.inline_bytes, 8192);
	assert_int_equal(c->conf.credits, 7);
	assert_int_equal(c->conf.drc_entries, 0);
	assert_int_equal(c->conf.drc_bytes, 65536);
	assert_int_equal(c->conf.pinned_max, 716800);
	assert_int_equal(c->conf.messages_max, 1048576);
	assert_int_equal(c->conf.shared_max, 67108864);
	assert_true(c->conf.arena);
	assert_int_equal(c->conf.max_connections, 2000);
	assert_true(c->conf.srq);
	assert_int_equal(c->conf.log_level, LOG_LEVEL_DEBUG);
	assert_false(c->conf.everyone);
	assert_false(c->conf.no_private_data);
	assert_int_equal(args(c, "--export %s --everyone --no-private-data", c->dir.path), CONF_RUN);
	assert_true(c->conf.everyone);
	assert_true(c->conf.no_private_data);
	assert_int_equal(c->conf.modes, 0);
	assert_int_equal(args(c, "--export %s --modes hybrid,read-read", c->dir.path), CONF_RUN);
	assert_int_equal(c->conf.modes, RPCRDMA_HYBRID | RPCRDMA_READ_READ);
	assert_false(c->conf.rpcbind);
	assert_int_equal(args(c, "--export %s --rpcbind", c->dir.path), CONF_RUN);
	assert_true(c->conf.rpcbind);
	assert_false(c->conf.unsafe_inv);
	assert_int_equal(args(c, "--export %s --unsafe-inv", c->dir.path), CONF_RUN);
	assert_true(c->conf.unsafe_inv);
	assert_false(c->conf.manage_gids);
	assert_int_equal(args(c, "--export %s --manage-gids", c->dir.path), CONF_RUN);
	assert_true(c->conf.manage_gids);
	assert_int_equal(args(c, "--help"), CONF_HELP);
	assert_int_equal(args(c, "--version"), CONF_VERSION);
}

static void command_line_refused(void **state)
{
	static const struct {
		const char *line, *word;
		enum conf_todo todo;
	} rows[] = {
		{ "", "nothing to export", CONF_USAGE },
		{ "--nonsense", "--nonsense", CONF_USAGE },
		{ "--export", "needs a value", CONF_USAGE },
		{ "--export /tmp stray", "stray", CONF_USAGE },
		{ "--export /tmp --reactors 0", "reactors", CONF_USAGE },
		{ "--export /tmp --reactors many", "many", CONF_USAGE },
		{ "--export /tmp --inline 1000", "inline", CONF_USAGE },
		{ "--export /tmp --inline 131072", "inline", CONF_USAGE },
		{ "--export /tmp --credits 0", "credits", CONF_USAGE },
		{ "--export /tmp --drc-entries 16777217", "drc-entries", CONF_USAGE },
		{ "--export /tmp --drc-entries many", "drc-entries", CONF_USAGE },
		{ "--export /tmp --drc-bytes 65535", "drc-bytes", CONF_USAGE },
		{ "--export /tmp --drc-bytes 0", "drc-bytes", CONF_USAGE },
		{ "--export /tmp --pinned-max 524287", "from 512K", CONF_USAGE },
		{ "--export /tmp --pinned-max 700X", "pinned-max", CONF_USAGE },
		{ "--export /tmp --messages-max 1048575", "from 1M", CONF_USAGE },
		{ "--export /tmp --shared-max 67108863", "from 64M", CONF_USAGE },
		{ "--export /tmp --srq maybe", "srq=maybe: must be yes or no", CONF_USAGE },
		{ "--export /tmp --registration cache", "must be slab or arena", CONF_USAGE },
		{ "--export /tmp --max-connections 0", "max-connections", CONF_USAGE },
		{ "--export /tmp --max-connections 65537", "from 1 to 65536", CONF_USAGE },
		{ "--export /tmp --poll often", "often", CONF_USAGE },
		{ "--export /tmp --modes fast", "modes=fast: must be none or names", CONF_USAGE },
		{ "--export /tmp --modes hybrid --no-private-data", "private data", CONF_BAD },
		{ "--export /tmp --private-data", "--private-data", CONF_USAGE },
		{ "--export /tmp --no-private-data=yes", "--no-private-data", CONF_USAGE },
		{ "--export /tmp --listen ftp://x", "ftp://x", CONF_BAD },
		{ "--export /tmp,shiny", "shiny", CONF_BAD },
		{ "--export /tmp,ro=maybe", "maybe", CONF_BAD },
		{ "--export /nonexistent-directory", "/nonexistent-directory", CONF_BAD },
		{ "--export /tmp -c /nonexistent-file", "/nonexistent-file", CONF_BAD },
		{ "--export /a=/tmp --export /a=/", "one already", CONF_BAD },
	};
	struct ctx *c = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		enum conf_todo todo = args(c, "%s", rows[i].line);

		if (todo != rows[i].todo || !strstr(c->why, rows[i].word))
			fail_msg("'%s': %d, '%s'", rows[i].line, (int)todo, c->why);
	}
}

static void others_need_clients(void **state)
{
	struct ctx *c = *state;

	assert_int_equal(args(c, "--export /tmp --listen tcp://0.0.0.0:2049"), CONF_BAD);
	assert_non_null(strstr(c->why, "clients="));
	assert_int_equal(args(c, "--export /tmp --listen rdma://10.0.0.1"), CONF_BAD);
	assert_int_equal(args(c, "--export /tmp --listen tcp://[::]:2049"), CONF_BAD);
	assert_int_equal(args(c, "--export /tmp --listen tcp://[::1]:2049"), CONF_RUN);
	assert_int_equal(args(c, "--export /tmp --listen local:///x/y"), CONF_RUN);
	assert_int_equal(args(c, "--export /tmp,clients=10.0.0.0/8 --listen tcp://0.0.0.0:2049"),
			 CONF_RUN);
	/* one export that is for this host is enough to refuse */
	assert_int_equal(args(c, "--export /a=/tmp,clients=10.0.0.0/8 --export /b=/tmp "
				 "--listen tcp://0.0.0.0:2049"),
			 CONF_BAD);
	assert_non_null(strstr(c->why, "/b"));
}

static void file(void **state)
{
	struct ctx *c = *state;
	char text[1024];

	tmp_dir_mkdir(&c->dir, "d");
	snprintf(text, sizeof(text),
		 "; a comment\n[server]\nlisten = tcp://127.0.0.1:1\nlisten = local:///x\nreactors "
		 "= 2\n"
		 "quiet = yes\n\n[export /data]\npath = %s/d\nro = yes\nroot_squash = no\n"
		 "clients = 10.0.0.0/8, fd00::/8\nanonuid = 5\n",
		 c->dir.path);
	tmp_dir_write(&c->dir, "conf", text);
	assert_int_equal(args(c, "-c %s/conf", c->dir.path), CONF_RUN);
	assert_int_equal(c->conf.nlisten, 2);
	assert_int_equal(c->conf.reactors, 2);
	assert_int_equal(c->conf.log_level, LOG_LEVEL_WARN);
	assert_int_equal(c->conf.nexports, 1);
	assert_string_equal(c->conf.exports[0].name, "/data");
	assert_true(c->conf.exports[0].ro);
	assert_int_equal(c->conf.exports[0].squash, EXPORT_SQUASH_NONE);
	assert_int_equal(c->conf.exports[0].peers.n, 2);
	assert_int_equal(c->conf.exports[0].anonuid, 5);
	assert_false(c->conf.everyone);
	/* an indented line is a line, not more of the one before it */
	snprintf(text, sizeof(text),
		 "  [server]  # one\n\teveryone = yes\n [export /data] ; two\n  path : %s/d ;\n"
		 "\tro=yes\t; ro = no\n\n",
		 c->dir.path);
	tmp_dir_write(&c->dir, "indented", text);
	assert_int_equal(args(c, "-c %s/indented", c->dir.path), CONF_RUN);
	assert_true(c->conf.everyone);
	assert_true(c->conf.exports[0].ro);
	/* --no-NAME is NAME = no there */
	for (int no = 0; no < 2; no++) {
		snprintf(text, sizeof(text), "[server]\nprivate-data = %s\n[export /data]\npath = %s/d\n",
			 no ? "no" : "yes", c->dir.path);
		tmp_dir_write(&c->dir, "private", text);
		assert_int_equal(args(c, "-c %s/private", c->dir.path), CONF_RUN);
		assert_int_equal(c->conf.no_private_data, no);
		assert_int_equal(args(c, "-c %s/private --no-private-data", c->dir.path), CONF_RUN);
		assert_true(c->conf.no_private_data);
	}
	/* the command line wins, and its listeners stand instead of the file's */
	assert_int_equal(args(c, "-c %s/conf --reactors 4 --listen tcp://127.0.0.1:2", c->dir.path),
			 CONF_RUN);
	assert_int_equal(c->conf.reactors, 4);
	assert_int_equal(c->conf.nlisten, 1);
	assert_int_equal(c->conf.listen[0].port, 2);
}

static void make_volume(struct ctx *c, const char *name, off_t bytes)
{
	char path[256];

	tmp_dir_write(&c->dir, name, "x");
	snprintf(path, sizeof(path), "%s/%s", c->dir.path, name);
	assert_int_equal(truncate(path, bytes), 0);
}

/* One file has one volume, by whatever name. */
static void volumes_of_one_file(void **state)
{
	struct ctx *c = *state;
	char file[256], other[256], text[1024];

	make_volume(c, "vol", 512);
	make_volume(c, "small", 511);
	snprintf(file, sizeof(file), "%s/vol", c->dir.path);
	snprintf(other, sizeof(other), "%s/link", c->dir.path);
	for (int hard = 0; hard <= 1; hard++) {
		assert_int_equal(hard ? link(file, other) : symlink(file, other), 0);
		snprintf(text, sizeof(text), "[block one]\npath = %s\n\n[block two]\npath = %s\n", file, other);
		tmp_dir_write(&c->dir, "conf", text);
		assert_int_equal(args(c, "-c %s/conf", c->dir.path), CONF_BAD);
		assert_non_null(strstr(c->why, "block one and block two (line 4) are the same, "));
		assert_int_equal(unlink(other), 0);
	}
	assert_int_equal(args(c, "--block x=%s/small", c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "small: smaller than a block; truncate(1)"));
	assert_int_equal(args(c, "--block x=%s/vol,block=4K", c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "smaller than a block"));
}

static void volumes(void **state)
{
	struct ctx *c = *state;
	const struct block_conf *b = c->conf.blocks;
	char text[1024];

	make_volume(c, "vol", 4096);
	make_volume(c, "other", 512);
	snprintf(text, sizeof(text),
		 "[block one]\npath = %s/vol\nro = yes\nshare = shared\nblock = 4K\nusers = me root:77\n"
		 "take_over = 10.1.0.0/16, 10.2.0.0/16\nclients = 10.0.0.0/8\ninsecure = yes\noverlap = streams\n",
		 c->dir.path);
	tmp_dir_write(&c->dir, "conf", text);
	assert_int_equal(args(c, "-c %s/conf --block two=%s/other", c->dir.path, c->dir.path), CONF_RUN);
	assert_int_equal(c->conf.nexports, 0);
	assert_int_equal(c->conf.nblocks, 2);
	assert_string_equal(b[0].name, "one");
	assert_true(b[0].ro);
	assert_int_equal(b[0].share, BLOCK_CONF_SHARED);
	assert_int_equal(b[0].block, 4096);
	assert_int_equal(b[0].nusers, 3);
	assert_int_equal(b[0].users[0], geteuid());
	assert_int_equal(b[0].users[1], 0);
	assert_int_equal(b[0].users[2], 77);
	assert_int_equal(b[0].take_over, BLOCK_CONF_TAKE_OVER_SOME);
	assert_int_equal(b[0].take_over_peers.n, 2);
	assert_int_equal(b[0].peers.n, 1);
	assert_false(b[0].peers.secure);
	assert_int_equal(b[0].data.overlap, DATA_OVERLAP_STREAMS);
	assert_int_equal(b[0].line, 1);
	assert_string_equal(b[1].name, "two");
	assert_int_equal(b[1].share, BLOCK_CONF_EXCLUSIVE);
	assert_int_equal(b[1].block, 512);
	assert_int_equal(b[1].nusers, 0);
	assert_int_equal(b[1].take_over, BLOCK_CONF_TAKE_OVER_ALL);
	assert_false(b[1].ro);
	assert_true(b[1].data.trust_clients);
#ifdef HAVE_AIO
	assert_int_equal(b[1].data.read, DATA_READ_DIRECT);
	assert_int_equal(b[1].data.write, DATA_WRITE_DIRECT);
#endif
	/* lists of networks have commas, too */
	assert_int_equal(args(c, "--block x=%s/vol,clients=10.0.0.0/8,fd00::/8,take_over=10.0.0.1,10.0.0.2,ro",
			      c->dir.path), CONF_RUN);
	assert_int_equal(b[0].peers.n, 2);
	assert_int_equal(b[0].take_over_peers.n, 2);
	assert_true(b[0].ro);
	assert_int_equal(args(c, "--block x=%s/vol --block y=%s/vol", c->dir.path, c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "are the same"));
	assert_int_equal(args(c, "--block x=%s/vol --block x=%s/other", c->dir.path, c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "block x: there is one already"));
	assert_int_equal(args(c, "--block x=%s/vol --export /block=%s", c->dir.path, c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "export /block: there are block volumes"));
	assert_int_equal(args(c, "--block x=%s/vol --listen tcp://0.0.0.0:1", c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "block x has no clients="));
	assert_int_equal(args(c, "--block %s/vol", c->dir.path), CONF_BAD);
	assert_int_equal(args(c, "--block x=%s/vol,path=/", c->dir.path), CONF_BAD);
}

static void stripes(void **state)
{
	struct ctx *c = *state;
	const struct stripes_conf *s = c->conf.stripes;
	char text[1024];

	tmp_dir_mkdir(&c->dir, "one");
	tmp_dir_mkdir(&c->dir, "two");
	tmp_dir_write(&c->dir, "key", "x"); /* read when the server opens the directory */
	snprintf(text, sizeof(text), "[stripes a]\npath = %s/one\nkey = %s/key\nid = 4294967295\nclients = 10.0.0.0/8\n"
		 "read = direct\n", c->dir.path, c->dir.path);
	tmp_dir_write(&c->dir, "conf", text);
	assert_int_equal(args(c, "-c %s/conf --stripes b=%s/two,key=%s/key,id=1", c->dir.path, c->dir.path, c->dir.path),
			 CONF_RUN);
	assert_int_equal(c->conf.nstripes, 2);
	assert_string_equal(s[0].name, "a");
	assert_int_equal(s[0].id, UINT32_MAX);
	assert_int_equal(s[0].peers.n, 1);
	assert_int_equal(s[0].data.read, DATA_READ_DIRECT);
	assert_int_equal(s[0].line, 1);
	assert_int_equal(s[0].key[0], '/');
	assert_int_equal(s[1].id, 1);
	assert_int_equal(args(c, "--stripes b=%s/two,id=1", c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "no key given"));
	assert_int_equal(args(c, "--stripes b=%s/two,key=%s/key", c->dir.path, c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "no id given"));
	assert_int_equal(args(c, "--stripes b=%s/two,key=%s/key,id=0", c->dir.path, c->dir.path), CONF_BAD);
	assert_int_equal(args(c, "--stripes b=%s/two,key=%s/none,id=1", c->dir.path, c->dir.path), CONF_BAD);
	assert_int_equal(args(c, "--stripes b=%s/key,key=%s/key,id=1", c->dir.path, c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "not a directory"));
	assert_int_equal(args(c, "--stripes %s/two,key=%s/key,id=1", c->dir.path, c->dir.path), CONF_BAD);
	assert_int_equal(args(c, "-c %s/conf --stripes a=%s/two,key=%s/key,id=1", c->dir.path, c->dir.path, c->dir.path),
			 CONF_BAD);
	assert_non_null(strstr(c->why, "stripes a: there is one already"));
	assert_int_equal(args(c, "-c %s/conf --stripes b=%s/one,key=%s/key,id=1", c->dir.path, c->dir.path, c->dir.path),
			 CONF_BAD);
	assert_non_null(strstr(c->why, "are the same"));
	assert_int_equal(args(c, "--stripes b=%s/two,key=%s/key,id=1 --listen tcp://0.0.0.0:1", c->dir.path, c->dir.path),
			 CONF_BAD);
	assert_non_null(strstr(c->why, "stripes b has no clients="));
}

static void managed_volumes(void **state)
{
	static const struct {
		bool key, map;
		const char *options, *why;
	} bad[] = {
		{ true, false, "", "volume b: no map given" },
		{ false, true, "", "volume b: no key given" },
		{ false, true, ",key=/nonexistent", "volume b: key /nonexistent: No such file" },
		{ true, true, ",stripe=96K", "volume b: stripe=98304: must be a power of two" },
		{ true, true, ",read=direct", "volume b: store, read, write and trust_clients mean nothing here" },
		{ true, true, ",trust_clients", "volume b: store, read, write and trust_clients mean nothing here" },
		{ true, true, ",stripe=32K", "stripe=32K: must be" },
		{ true, true, ",stripe=32M", "stripe=32M: must be" },
		{ true, true, ",stripe=0", "stripe=0: must be" },
		{ true, true, ",width=257", "width=257: must be" },
		{ true, true, ",start=random", "start=random: must be" },
		{ true, true, ",stripe_timeo=9ms", "stripe_timeo=9ms: must be" },
	};
	struct ctx *c = *state;
	const struct export_conf *v = c->conf.exports;
	char text[1024], file[256];

	tmp_dir_mkdir(&c->dir, "one");
	tmp_dir_mkdir(&c->dir, "two");
	tmp_dir_write(&c->dir, "key", "x"); /* read when the server opens the directory */
	snprintf(text, sizeof(text), "[volume a]\npath = %s/one\nkey = %s/key\nmap = %s/key\nclients = 10.0.0.0/8\nro = yes\n"
		 "stripe = 16M\nwidth = 256\nstripe_timeo = 250ms\n", c->dir.path, c->dir.path, c->dir.path);
	tmp_dir_write(&c->dir, "conf", text);
	assert_int_equal(args(c, "-c %s/conf --volume b=%s/two,key=%s/key,map=%s/key", c->dir.path, c->dir.path, c->dir.path,
			      c->dir.path), CONF_RUN);
	assert_int_equal(c->conf.nexports, 2);
	assert_string_equal(v[0].name, "/a");
	assert_true(v[0].stripe == 16 << 20 && v[0].width == 256 && v[0].stripe_timeo_ms == 250 && v[0].ro && v[0].peers.n == 1);
	assert_string_equal(v[1].name, "/b");
	assert_true(v[1].stripe == 1 << 20 && v[1].width == 0 && v[1].stripe_timeo_ms == 10000 && !v[1].ro);
	assert_true(v[1].key[0] == '/' && v[1].map[0] == '/');
	snprintf(file, sizeof(file), "%s/key", c->dir.path);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(args(c, "--volume b=%s/two%s%s%s%s%s", c->dir.path, bad[i].key ? ",key=" : "", bad[i].key ? file : "",
				      bad[i].map ? ",map=" : "", bad[i].map ? file : "", bad[i].options), CONF_BAD);
		if (!strstr(c->why, bad[i].why))
			fail_msg("%s: %s", bad[i].options, c->why);
	}
	assert_int_equal(args(c, "--volume b/c=%s/two,key=%s/key,map=%s/key", c->dir.path, c->dir.path, c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "a name has no slash"));
	assert_int_equal(args(c, "-c %s/conf --export /b=%s/one", c->dir.path, c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "/a and /b: one is inside of the other"));
	tmp_dir_mkdir(&c->dir, "one/below");
	tmp_dir_mkdir(&c->dir, "one2");
	assert_int_equal(args(c, "-c %s/conf --export /b=%s/one/below", c->dir.path, c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "one is inside of the other"));
	assert_int_equal(args(c, "-c %s/conf --export /b=%s", c->dir.path, c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "one is inside of the other"));
	assert_int_equal(args(c, "-c %s/conf --export /b=/", c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "one is inside of the other"));
	assert_int_equal(args(c, "-c %s/conf --export /b=%s/one2", c->dir.path, c->dir.path), CONF_RUN);
	assert_int_equal(args(c, "-c %s/conf --export /a=%s/two", c->dir.path, c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "there is one already"));
	assert_int_equal(args(c, "--export /b=%s/two,key=%s/key", c->dir.path, c->dir.path), CONF_BAD);
	assert_non_null(strstr(c->why, "no such export option"));
}

static void file_refused(void **state)
{
	static const struct {
		const char *text;
		unsigned line;
		const char *word;
	} rows[] = {
		{ "[server]\nreactors = x\n", 2, "reactors" },
		{ "[server]\n\nbogus = 1\n", 3, "bogus" },
		{ "[nonsense]\n", 1, "nonsense" },
		{ "[server]\n[export]\npath = /tmp\n", 2, "export" },
		{ "[export /x]\n", 1, "no directory" },
		{ "[server]\n[export /x]\npath = /nonexistent-directory\n", 2,
		  "/nonexistent-directory" },
		{ "[export /x]\npath = /tmp\nshiny = yes\n", 3, "shiny" },
		{ "[export /x]\npath = /tmp\nro = perhaps\n", 3, "perhaps" },
		{ "[export /x]\npath = /tmp\nclients = here\n", 3, "here" },
		{ "[export /x]\npath = /tmp\n[export /x]\npath = /\n", 3, "one already" },
		{ "[export x]\npath = /tmp\n", 1, "absolute" },
		{ "reactors = 2\n", 1, "reactors" },
		{ "[server]\njust words\n", 2, "key = value" },
		{ "[server]\njust words ; = 1\n", 2, "key = value" },
		{ "[server]\nreactors = ;2\n", 2, "reactors=: must be" },
		{ "[server]\nreactors =;2\n", 2, "reactors=;2: must be" },
		{ "[server]\npoll = never\n", 2, "never" },
		{ "[server]\neveryone = perhaps\n", 2, "perhaps" },
		{ "[server]\nmanage-gids = 2\n", 2, "manage-gids=2: must be yes or no" },
		{ "[server]\nmodes = read-read, push\n", 2, "modes=read-read, push: must be none" },
		{ "[server]\nprivate-data = some\n", 2, "private-data=some: must be" },
		{ "[server]\nno-private-data = yes\n", 2, "no-private-data" },
		{ "[server]\nconfig = /tmp/x\n", 2, "no such key" },
		{ "[server]\nworker = 2\n", 2, "no such key in [server]: 'worker' (did you mean \"workers\"?)" },
		{ "[server]\nexport = /tmp\n", 2, "no such key" },
		{ "[server]\nhelp = yes\n", 2, "no such key" },
		{ "[server]\nverbose = perhaps\n", 2, "verbose=perhaps: must be yes or no" },
		{ "[server]\nrpcbind = perhaps\n", 2, "perhaps" },
		/* the first of several, in its own words */
		{ "[server]\n\nreactors 2\nbogus = 1\n", 3, "'reactors 2'" },
		{ "[export /x\npath = /tmp\n", 1, "lacks its ']'" },
		{ "[server]\n[export /x\nbogus = 1\n", 2, "lacks its ']'" },
		{ "[server] x\n", 1, "'x' stands behind" },
		{ "[export /x]\npath = /tmp\npath = /\n", 3, "one already" },
		{ "[export /x]\npath = /tmp\nro = yes\nrw = yes\n", 4, "contradicts" },
		{ "[server]\ncapture = " HUNDRED HUNDRED "\n", 2, "longer than 198 bytes" },
		{ "[server]\n# " HUNDRED HUNDRED "\n", 2, "longer than 198 bytes" },
		{ "[block]\npath = /tmp\n", 1, "no such section: [block]" },
		{ "[block x]\n", 1, "block x: no path given" },
		{ "[block x]\npath = /tmp\n", 1, "neither a file nor a block device" },
		{ "[block x]\npath = /dev/null\n", 1, "neither a file nor a block device" },
		{ "[server]\n[block x]\npath = /nonexistent\n", 2, "/nonexistent" },
		{ "[block x/y]\npath = /etc/passwd\n", 1, "no slash" },
		{ "[block " HUNDRED "]\npath = /etc/passwd\n", 1, "1 to 63 printable bytes" },
		{ "[block x]\npath = /etc/passwd\nshiny = yes\n", 3, "no such block volume option: 'shiny'" },
		{ "[block x]\npath = /etc/passwd\nblok = 512\n", 3, "(did you mean \"block\"?)" },
		{ "[block x]\npath = /etc/passwd\nblock = 1024\n", 3, "block=1024: must be 512 or 4096" },
		{ "[block x]\npath = /etc/passwd\nblock = 512\nblock = 4096\n", 4, "block: contradicts" },
		{ "[block x]\npath = /etc/passwd\n\n[block x]\npath = /etc/group\n", 4, "block x: there is one already" },
		{ "[block ..]\npath = /etc/passwd\n", 1, "block '..': no name" },
		{ "[block x]\npath = /etc/passwd\nshare = some\n", 3, "share=some: must be exclusive or shared" },
		{ "[block x]\npath = /etc/passwd\ntake_over = some\n", 3, "take_over=some: must be yes, no, or networks" },
		{ "[block x]\npath = /etc/passwd\ntake_over = no\ntake_over = 10.0.0.1\n", 4,
		  "take_over: contradicts an option before it" },
		{ "[block x]\npath = /etc/passwd\ntake_over = 10.0.0.1\ntake_over = yes\n", 4,
		  "take_over: contradicts an option before it" },
		{ "[block x]\npath = /etc/passwd\nusers = nobody-of-this-name\n", 3, "no user 'nobody-of-this-name'" },
		{ "[block x]\npath = /etc/passwd\nro = yes\nrw = yes\n", 4, "contradicts" },
		{ "[block x]\npath = /etc/passwd\nroot_squash = yes\n", 3, "root_squash" },
	};
	struct ctx *c = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char where[256];
		enum conf_todo todo;

		tmp_dir_write(&c->dir, "conf", rows[i].text);
		todo = args(c, "-c %s/conf", c->dir.path);
		snprintf(where, sizeof(where), "%s/conf:%u: ", c->dir.path, rows[i].line);
		if (todo != CONF_BAD || strncmp(c->why, where, strlen(where)) ||
		    !strstr(c->why, rows[i].word))
			fail_msg("row %zu: %d '%s'", i, (int)todo, c->why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(command_line, setup, teardown),
		cmocka_unit_test_setup_teardown(command_line_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(others_need_clients, setup, teardown),
		cmocka_unit_test_setup_teardown(file, setup, teardown),
		cmocka_unit_test_setup_teardown(volumes, setup, teardown),
		cmocka_unit_test_setup_teardown(volumes_of_one_file, setup, teardown),
		cmocka_unit_test_setup_teardown(stripes, setup, teardown),
		cmocka_unit_test_setup_teardown(managed_volumes, setup, teardown),
		cmocka_unit_test_setup_teardown(file_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
