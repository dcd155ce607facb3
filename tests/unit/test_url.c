/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_url.c - leat URLs: what is understood, and what is refused in which words
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "rpcrdma.h"
#include "opts.h"
#include "url.h"
#include "rpcrdma_lab.h"

static struct lt_url u;
static char why[512];

static int parse(const char *text)
{
	memset(&u, 0xa5, sizeof(u));
	why[0] = '\0';
	return lt_url_parse(text, NULL, &u, why, sizeof(why));
}

static void places(void **state)
{
	static const struct {
		const char *text;
		enum lt_scheme scheme;
		const char *host;
		uint16_t port;
		const char *path;
	} rows[] = {
		{ "leat://host/export", LT_SCHEME_LEAT, "host", 0, "/export" },
		{ "leat://host", LT_SCHEME_LEAT, "host", 0, "/" },
		{ "leat://host?conns=2", LT_SCHEME_LEAT, "host", 0, "/" },
		{ "tcp://10.1.2.3:2050/", LT_SCHEME_TCP, "10.1.2.3", 2050, "/" },
		{ "rdma://node-7.example:20049/a/b/", LT_SCHEME_RDMA, "node-7.example", 20049,
		  "/a/b/" },
		{ "tcp://[::1]:2049/x", LT_SCHEME_TCP, "::1", 2049, "/x" },
		{ "tcp://[fe80::1]/x", LT_SCHEME_TCP, "fe80::1", 0, "/x" },
		{ "tcp://[fe80::1%25eth0]/x", LT_SCHEME_TCP, "fe80::1%eth0", 0, "/x" },
		{ "local:///run/leat.sock/export/a", LT_SCHEME_LOCAL, "", 0,
		  "/run/leat.sock/export/a" },
		{ "tcp://h/a%20b%3fc%2F%ff", LT_SCHEME_TCP, "h", 0, "/a b?c/\xff" },
		{ "tcp://h/a#b&c=d", LT_SCHEME_TCP, "h", 0, "/a#b&c=d" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(parse(rows[i].text), 0);
		assert_int_equal(u.scheme, rows[i].scheme);
		assert_string_equal(u.host, rows[i].host);
		assert_int_equal(u.port, rows[i].port);
		assert_string_equal(u.path, rows[i].path);
		assert_int_equal(u.conns, u.conns == 2 ? 2 : 1);
	}
}

static void options(void **state)
{
	(void)state;
	assert_int_equal(parse("leat://h/e?conns=4&credits=128&inline=64k&readahead=2m&timeo=1500&"
			       "retry=soft&mountport=635&registration=dynamic&poll=busy&spin=7&"
			       "uid=0&gid=4294967294&rsize=65536&wsize=4m&monitor=explicit&"
			       "bounce=16k&reg_entries=100&reg_bytes=2g&dirty_watermark=7&unsafe_inv=yes&"
			       "socket_user=1001"), 0);
	assert_int_equal(u.conns, 4);
	assert_int_equal(u.credits, 128);
	assert_int_equal(u.inline_bytes, 65536);
	assert_int_equal(u.readahead_bytes, 2 << 20);
	assert_int_equal(u.timeo_ms, 1500);
	assert_true(u.soft);
	assert_int_equal(u.mountport, 635);
	assert_string_equal(u.registration, "dynamic");
	assert_string_equal(u.monitor, "explicit");
	assert_int_equal(u.bounce_bytes, 16384);
	assert_false(u.no_bounce);
	assert_int_equal(u.reg_entries, 100);
	assert_int_equal(u.reg_bytes, 2ull << 30);
	assert_int_equal(u.dirty_watermark, 7);
	assert_true(u.unsafe_inv);
	assert_int_equal(u.socket_uid, 1001);
	assert_int_equal(u.poll, RPCRDMA_POLL_BUSY);
	assert_int_equal(u.spin_us, 7);
	assert_true(u.has_uid && u.uid == 0 && u.has_gid && u.gid == 4294967294u);
	assert_int_equal(u.rsize, 65536);
	assert_int_equal(u.wsize, 4 << 20);
	assert_int_equal(parse("leat://h/e?readahead=0&retry=hard&&poll=event&bounce=0&"), 0);
	assert_true(u.no_bounce);
	assert_int_equal(u.readahead_bytes, 0);
	assert_false(u.soft);
	assert_int_equal(u.poll, RPCRDMA_POLL_EVENT);
	assert_int_equal(parse("leat://h/e"), 0);
	assert_int_equal(u.readahead_bytes, 1 << 20);
	assert_int_equal(u.conns, 1);
	assert_false(u.has_uid || u.has_gid || u.soft || u.unsafe_inv || u.socket_uid);
	assert_int_equal(parse("leat://h/e?socket_user=root"), 0);
	assert_int_equal(u.socket_uid, 0);
	assert_int_equal(parse("leat://h/e?timeo=2s&acmax=60s&spin=1ms&readahead=0K"), 0);
	assert_int_equal(u.timeo_ms, 2000);
	assert_int_equal(u.acmax_s, 60);
	assert_int_equal(u.spin_us, 1000);
	assert_int_equal(u.modes, 0);
	assert_int_equal(parse("tcp://h/e?design=read-write"), 0);
	assert_int_equal(u.modes, 0);
	assert_int_equal(parse("rdma://h/e?fast_write=8k&design=read-read"), 0);
	assert_int_equal(u.modes, RPCRDMA_READ_READ | RPCRDMA_FAST_WRITE);
	assert_int_equal(u.fast_write_bytes, 8192);
	assert_int_equal(parse("leat://h/e?design=read-read&design=hybrid"), 0);
	assert_int_equal(u.modes, RPCRDMA_HYBRID);
}

/* Each refusal must name the part that is wrong. */
static void refusals(void **state)
{
	static const struct {
		const char *text, *word;
	} rows[] = {
		{ "", "SCHEME://" },
		{ "/just/a/path", "/just/a/path" },
		{ "nfs://h/e", "\"nfs\"" },
		{ "LEAT://h/e", "\"LEAT\"" },
		{ "leat:///e", "no host" },
		{ "leat://:2049/e", "no host" },
		{ "local://host/run/x", "local" },
		{ "tcp://h:0/e", "port" },
		{ "tcp://h:65536/e", "port" },
		{ "tcp://h:/e", "port" },
		{ "tcp://h:20a/e", "port" },
		{ "tcp://h:123456789/e", "port" },
		{ "tcp://::1/e", "brackets" },
		{ "tcp://[::1/e", "']'" },
		{ "tcp://[::1]x/e", "may follow" },
		{ "tcp://me@h/e", "uid=" },
		{ "tcp://h/a%0", "hexadecimal" },
		{ "tcp://h/a%zz", "hexadecimal" },
		{ "tcp://h/a%00b", "%00" },
		{ "tcp://h/e?frob=1", "frob" },
		{ "tcp://h/e?conns", "conns" },
		{ "tcp://h/e?conns=0", "conns" },
		{ "tcp://h:00000000000000000000000000000000080/e", "port=" },
		{ "tcp://h:1K/e", "port=1K: must be a number from 1 to 65535" },
		{ "tcp://h/e?timeo=0", "timeo=0: must be a time from 1ms to 2147483647ms (default unit ms)" },
		{ "tcp://h/e?timeo=1.5", "timeo=1.5: must be" },
		{ "tcp://h/e?acmax=500ms", "acmax=500ms: must be a time from 1s to 86400s (default unit s)" },
		{ "tcp://h/e?spin=2s", "spin=2s: must be a time from 1us to 1s (default unit us)" },
		{ "tcp://h/e?conns=17", "conns=17: must be a number from 1 to 16" },
		{ "tcp://h/e?credits=1025", "credits=1025: must be a number from 1 to 1024" },
		{ "tcp://h/e?conns=-1", "conns" },
		{ "tcp://h/e?conns=2k", "conns" },
		{ "tcp://h/e?conns=99999999999999999999", "conns" },
		{ "tcp://h/e?inline=1023", "inline" },
		{ "tcp://h/e?inline=65537", "inline" },
		{ "tcp://h/e?rsize=9g", "rsize" },
		{ "tcp://h/e?rsize=1kk", "rsize" },
		{ "tcp://h/e?rsize=99999999999999999g", "rsize" },
		{ "tcp://h/e?retry=maybe", "retry" },
		{ "tcp://h/e?poll=never", "poll" },
		{ "tcp://h/e?registration=0123456789abcdef", "registration" },
		{ "local:///s?design=read", "design=read: must be read-write, read-read or hybrid" },
		{ "local:///s?design=", "design" },
		{ "local:///s?fast_write=0", "fast_write" },
		{ "local:///s?fast_write=68k", "fast_write=68k: must be a multiple of 4K from 4K to 64K" },
		{ "local:///s?fast_write=5000", "fast_write=5000: must be a multiple of 4K" },
		{ "tcp://h/e?design=hybrid", "not for TCP" },
		{ "tcp://h/e?fast_write=64k", "not for TCP" },
		{ "tcp://h/e?registration=foo", "registration=foo: must be auto, dynamic, cache, batch, "
						 "slab, arena or window" },
		{ "tcp://h/e?monitor=foo", "monitor=foo: must be uffd, explicit or none" },
		{ "tcp://h/e?bounce=1g", "bounce=1g: must be a size from 0 to 16M" },
		{ "tcp://h/e?reg_entries=0", "reg_entries=0: must be a number from 1 to 65536" },
		{ "tcp://h/e?reg_bytes=4095", "reg_bytes=4095: must be a size from 4K to 1T" },
		{ "leat://h/e?socket_user=no-such-user", "socket_user=no-such-user: this host knows no such" },
		{ "leat://h/e?socket_user=4294967295", "socket_user=4294967295: must be a number from 0 to 4294967294" },
		{ "leat://h/e?socket_user=", "socket_user=: this host knows" },
		{ "tcp://h/e?unsafe_inv=perhaps", "unsafe_inv=perhaps: must be yes or no" },
		{ "tcp://h/e?dirty_watermark=0", "dirty_watermark=0: must be a number from 1 to 4096" },
		{ "tcp://h/e?registration=", "auto, dynamic, cache, batch, slab, arena or window" },
		{ "tcp://h/e?inline=1500", "inline=1500: must be a multiple of 1K from 1K to 64K" },
		{ "tcp://h/e?inline=65000", "inline" },
		{ "tcp://h/e?inline=0", "inline" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (parse(rows[i].text) != -EINVAL || !strstr(why, rows[i].word))
			fail_msg("%s: \"%s\" does not name \"%s\"", rows[i].text, why, rows[i].word);
	}
}

static void too_long(void **state)
{
	char text[LT_PATH_MAX + 64] = "tcp://h/";

	(void)state;
	memset(text + 8, 'x', LT_PATH_MAX);
	text[8 + LT_PATH_MAX - 2] = '\0'; /* '/' and LT_PATH_MAX - 2 x: LT_PATH_MAX - 1 bytes */
	assert_int_equal(parse(text), 0);
	assert_int_equal(strlen(u.path), LT_PATH_MAX - 1);
	text[8 + LT_PATH_MAX - 2] = 'x';
	text[8 + LT_PATH_MAX - 1] = '\0';
	assert_int_equal(parse(text), -ENAMETOOLONG);
	assert_non_null(strstr(why, "path"));
	memset(text + 6, 'h', 300);
	text[306] = '\0';
	assert_int_equal(parse(text), -ENAMETOOLONG);
	assert_non_null(strstr(why, "host"));
}

static struct leat_opts *by_name;

static int set(const char *name, const char *value)
{
	return leat_set(by_name, name, value);
}

/* Mounts with @by_name would start from the settings of @url. */
static int parse_with(const char *url)
{
	return lt_url_parse(url, by_name, &u, why, sizeof(why));
}

static void values_by_name(void **state)
{
	(void)state;
	by_name = leat_opts_create();
	assert_int_equal(set("conns", "3"), 0);
	assert_int_equal(set("uid", "7"), 0);
	assert_int_equal(set("gid", "8"), 0);
	assert_int_equal(set("readahead", "64k"), 0);
	assert_int_equal(set("retry", "soft"), 0);
	assert_int_equal(set("poll", "event"), 0);
	assert_int_equal(set("registration", "slab"), 0);
	assert_int_equal(set("rsize", "4096"), 0);
	assert_int_equal(parse_with("tcp://h/e?conns=2&uid=9"), 0);
	assert_int_equal(u.conns, 2); /* the URL takes precedence */
	assert_int_equal(u.uid, 9);
	assert_int_equal(u.gid, 8);
	assert_int_equal(u.readahead_bytes, 65536);
	assert_true(u.soft);
	assert_int_equal(u.poll, RPCRDMA_POLL_EVENT);
	assert_string_equal(u.registration, "slab");
	assert_int_equal(u.rsize, 4096);
	assert_int_equal(parse_with("tcp://h/e?readahead=0"), 0);
	assert_int_equal(u.readahead_bytes, 0);
	assert_int_equal(parse_with("tcp://h/e"), 0); /* and does not change them */
	assert_int_equal(u.conns, 3);
	assert_int_equal(u.uid, 7);
	assert_int_equal(parse_with("tcp://h/e?design=hybrid"), -EINVAL);
	assert_int_equal(set("registration", "auto"), 0);
	assert_int_equal(set("design", "hybrid"), 0);
	assert_int_equal(set("fast_write", "12K"), 0);
	assert_int_equal(parse_with("tcp://h/e"), -EINVAL); /* known when the scheme is */
	assert_int_equal(parse_with("local:///s"), 0);
	assert_int_equal(u.modes, RPCRDMA_HYBRID | RPCRDMA_FAST_WRITE);
	assert_int_equal(u.fast_write_bytes, 12288);
	assert_int_equal(set("bounce", "0"), 0);
	assert_int_equal(set("monitor", "none"), 0);
	assert_int_equal(parse_with("local:///s"), 0);
	assert_true(u.no_bounce);
	assert_string_equal(u.monitor, "none");
	leat_opts_destroy(by_name);
	leat_opts_destroy(NULL);
	by_name = NULL;
	assert_int_equal(set("conns", "1"), -ENOMEM);
}

/* The same values are refused by name and in a URL, with the same text, and nothing changes. */
static void refused_by_name(void **state)
{
	static const char *const rows[][2] = {
		{ "conns", "99" }, { "inline", "1500" }, { "registration", "foo" }, { "design", "pull" },
		{ "monitor", "" }, { "poll", "x" }, { "socket_user", "no-such-user" }, { "conn", "1" }, { "zzzzzz", "1" },
		{ "timeo", "0" }, { "uid", "-1" }, { "rsize", "99999999999999999999" }, { "", "" },
	};
	char url[128];

	(void)state;
	by_name = leat_opts_create();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct leat_opts before = *by_name;

		snprintf(url, sizeof(url), "tcp://h/e?%s=%s", rows[i][0], rows[i][1]);
		assert_int_equal(parse(url), -EINVAL);
		assert_int_equal(set(rows[i][0], rows[i][1]), -EINVAL);
		assert_string_equal(leat_error(NULL), why);
		assert_memory_equal(&before, by_name, sizeof(before));
	}
	assert_int_equal(set("conns", NULL), -EINVAL);
	assert_string_equal(leat_error(NULL), "option \"conns\" needs a value");
	assert_int_equal(set(NULL, "1"), -EINVAL);
	assert_string_equal(leat_error(NULL), "an option needs a name");
	assert_int_equal(set("RSIZES", "1"), -EINVAL);
	assert_string_equal(leat_error(NULL), "unknown option \"RSIZES\" (did you mean \"rsize\"?)");
	assert_int_equal(set("conect-only", "yes"), -EINVAL);
	assert_string_equal(leat_error(NULL), "unknown option \"conect-only\" (did you mean \"connect_only\"?)");
	leat_opts_destroy(by_name);
}

/* What a program may set, a URL may not. */
static void named_only(void **state)
{
	static const char *const rows[][2] = {
		{ "capture", "/tmp/f" }, { "connect_only", "yes" }, { "reg_cost", "1us" }, { "reg_page_cost", "2" },
		{ "dereg_cost", "3ns" }, { "dereg_page_cost", "4ns" },
	};
	char url[128];

	(void)state;
	by_name = leat_opts_create();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		snprintf(url, sizeof(url), "local:///s?%s=%s", rows[i][0], rows[i][1]);
		assert_int_equal(parse(url), -EINVAL);
		assert_non_null(strstr(why, rows[i][0]));
		assert_non_null(strstr(why, "is not for URLs: only a program can set it"));
		assert_int_equal(set(rows[i][0], rows[i][1]), 0);
		assert_int_equal(parse_with("local:///s"), 0);
	}
	assert_string_equal(by_name->capture, "/tmp/f");
	assert_true(by_name->connect_only);
	assert_int_equal(by_name->reg_cost.reg_ns, 1000);
	assert_int_equal(by_name->reg_cost.reg_page_ns, 2);
	assert_int_equal(by_name->reg_cost.dereg_ns, 3);
	assert_int_equal(by_name->reg_cost.dereg_page_ns, 4);
	assert_int_equal(set("capture", "/tmp/g"), 0);
	assert_string_equal(by_name->capture, "/tmp/g");
	assert_int_equal(set("reg_cost", "2s"), -EINVAL);
	assert_int_equal(set("capture", ""), -EINVAL);
	assert_int_equal(parse("tcp://h/e?captur=x"), -EINVAL);
	assert_string_equal(why, "unknown option \"captur\""); /* no hint to what a URL must not contain */
	leat_opts_destroy(by_name);
}

/* Each name that the library lists is an option; there are no two of a name. */
static void names(void **state)
{
	const char *name, *other;
	size_t n = 0;

	(void)state;
	by_name = leat_opts_create();
	for (; (name = leat_option_name(n)); n++) {
		assert_int_equal(set(name, ""), -EINVAL);
		assert_null(strstr(leat_error(NULL), "unknown"));
		for (size_t i = 0; i < n; i++) {
			other = leat_option_name(i);
			assert_string_not_equal(name, other);
		}
	}
	assert_true(n > 25);
	assert_null(leat_option_name(n + 1));
	assert_null(leat_option_name(SIZE_MAX));
	leat_opts_destroy(by_name);
}

/* A directory with a socket in it, and a second one where its name goes on. */
static void sockets(void **state)
{
	char dir[64] = "/tmp/leat-url.XXXXXX", path[256], sock[256], rest[LT_PATH_MAX];
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/s", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);

	snprintf(path, sizeof(path), "%s/s/export/file", dir);
	assert_int_equal(lt_url_split_socket(path, sock, sizeof(sock), rest), 0);
	assert_string_equal(sock, sun.sun_path);
	assert_string_equal(rest, "/export/file");
	snprintf(path, sizeof(path), "%s/s", dir);
	assert_int_equal(lt_url_split_socket(path, sock, sizeof(sock), rest), 0);
	assert_string_equal(rest, "/");
	snprintf(path, sizeof(path), "%s/s//", dir);
	assert_int_equal(lt_url_split_socket(path, sock, sizeof(sock), rest), 0);
	assert_string_equal(sock, sun.sun_path);
	assert_string_equal(rest, "//");
	snprintf(path, sizeof(path), "%s/t/export", dir);
	assert_int_equal(lt_url_split_socket(path, sock, sizeof(sock), rest), -ENOENT);
	assert_int_equal(lt_url_split_socket("/", sock, sizeof(sock), rest), -ENOENT);
	snprintf(path, sizeof(path), "%s/s/x", dir);
	assert_int_equal(lt_url_split_socket(path, sock, 8, rest), -ENAMETOOLONG);
	close(fd);
	unlink(sun.sun_path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),
		cmocka_unit_test(options),
		cmocka_unit_test(refusals),
		cmocka_unit_test(too_long),
		cmocka_unit_test(values_by_name),
		cmocka_unit_test(refused_by_name),
		cmocka_unit_test(named_only),
		cmocka_unit_test(names),
		cmocka_unit_test(sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
