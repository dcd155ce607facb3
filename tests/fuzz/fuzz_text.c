/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_text.c - libFuzzer harness: what people and files say: URLs, addresses, exports, volumes, stripes, keys, leatd.conf
 *
 * Operation:  Byte 0 chooses the parser; the rest is the text. What is accepted must be within its
 *             bounds, and what is refused must be refused with a reason.
 * Memory:     leatd.conf is read from a memfd, as conf_file() wants a path.
 * Errors:     abort() on a broken promise.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "block.h"
#include "conf.h"
#include "path.h"
#include "stripe_key.h"
#include "url.h"

LOG_DEFINE("fuzz");

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool promise)
{
	if (!promise)
		abort();
}

static void use_url(const char *text)
{
	char why[256] = "", socket[108], rest[LT_PATH_MAX];
	struct lt_url u;
	int rc = lt_url_parse(text, NULL, &u, why, sizeof(why));

	must(!rc || why[0]);
	if (rc)
		return;
	must(u.path[0] == '/' && strnlen(u.path, sizeof(u.path)) < sizeof(u.path));
	must(strnlen(u.host, sizeof(u.host)) < sizeof(u.host));
	must(u.conns <= LT_CONNS_MAX && u.inline_bytes <= 65536);
	must(lt_url_scheme_name(u.scheme)[0]);
	if (u.scheme == LT_SCHEME_LOCAL)
		(void)!lt_url_split_socket(u.path, socket, sizeof(socket), rest);
}

static void use_addr(const char *text)
{
	struct rpcrdma_addr a, b;
	char url[320];

	if (rpcrdma_addr_parse(text, &a))
		return;
	must(strnlen(a.host, sizeof(a.host)) < sizeof(a.host));
	if (strpbrk(a.host, "[]"))
		return; /* no host is called so */
	must(!rpcrdma_addr_parse(rpcrdma_addr_print(&a, url, sizeof(url)), &b));
	must(a.transport == b.transport && a.port == b.port && !strcmp(a.host, b.host));
}

static void use_export(const char *text)
{
	char why[CONF_WHY_BYTES] = "";
	struct export_conf c;

	if (export_conf_parse(text, &c, why, sizeof(why))) {
		must(why[0]);
		return;
	}
	must(c.name && c.name[0] == '/' && c.path && c.path[0] == '/');
	must(c.peers.n <= PEERS_MAX);
	export_conf_fini(&c);
}

static void use_block(const char *text)
{
	char why[CONF_WHY_BYTES] = "";
	struct block_conf c;

	if (block_conf_parse(text, &c, why, sizeof(why))) {
		must(why[0]);
		return;
	}
	must(block_conf_name_ok(c.name) && strlen(c.name) <= BLOCK_NAME_MAX);
	must(c.path && c.path[0] == '/');
	must(c.block == 512 || c.block == 4096);
	must(c.nusers <= BLOCK_CONF_USERS_MAX && c.peers.n <= PEERS_MAX && c.take_over_peers.n <= PEERS_MAX);
	must((c.take_over == BLOCK_CONF_TAKE_OVER_SOME) == (c.take_over_peers.n > 0));
	block_conf_fini(&c);
}

static void use_stripes(const char *text)
{
	char why[256] = "";
	struct stripes_conf c;
	int rc = stripes_conf_parse(text, &c, why, sizeof(why));

	must(!rc || why[0]);
	if (rc)
		return;
	must(block_conf_name_ok(c.name) && c.path[0] == '/' && c.key[0] == '/' && c.id);
	stripes_conf_fini(&c);
}

static void use_key(char *text)
{
	struct stripe_keys keys = { .n = 0 };
	char why[256] = "";
	uint64_t volume = 0;
	int rc = stripe_key_parse(text, &volume, &keys, why, sizeof(why));

	must(rc ? why[0] && !keys.n && !volume : volume && keys.n && keys.n <= STRIPE_KEYS_MAX);
}

static void use_conf(const char *text, size_t len)
{
	static struct conf c;
	char why[CONF_WHY_BYTES] = "", path[64];
	int fd = memfd_create("leatd.conf", MFD_CLOEXEC), rc;

	must(fd >= 0 && write(fd, text, len) == (ssize_t)len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	conf_init(&c);
	rc = conf_file(&c, path, why);
	must(!rc || why[0]);
	must(c.nexports <= CONF_EXPORTS_MAX && c.nlisten <= CONF_LISTEN_MAX);
	for (size_t i = 0; !rc && i < c.nexports; i++)
		must(c.exports[i].name && c.exports[i].path);
	must(c.nblocks <= CONF_BLOCKS_MAX);
	for (size_t i = 0; !rc && i < c.nblocks; i++)
		must(block_conf_name_ok(c.blocks[i].name) && c.blocks[i].path);
	must(c.nstripes <= CONF_STRIPES_MAX);
	conf_fini(&c);
	close(fd);
}

static void use_path(const char *text)
{
	struct lt_path_part part = { .next = 0 };
	char trimmed[LT_PATH_MAX], *joined;
	const char *rest;
	size_t before, len = strlen(text);

	do {
		before = part.next;
		if (lt_path_next(text, before, &part))
			return;
		must(part.next <= len && (part.kind == LT_PATH_END || part.next > before));
		must(part.kind == LT_PATH_END || strlen(part.name) <= LT_NAME_MAX);
	} while (part.kind != LT_PATH_END);
	if (lt_path_has_prefix(text, "/a/b", &rest))
		must(rest >= text && rest <= text + len && *rest != '/');
	if (lt_path_has_prefix("/a/b/c", text, &rest))
		must(*rest != '/');
	if (!lt_path_trim(text, trimmed, sizeof(trimmed)))
		must(trimmed[0] != '/' && (!trimmed[0] || trimmed[strlen(trimmed) - 1] != '/'));
	if (!lt_path_join(text, "x", &joined)) {
		must(strlen(joined) < LT_PATH_MAX);
		free(joined);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peer_net cidr;
	char *text;

	if (!size)
		return 0;
	text = malloc(size); /* of its exact size, so that an overrun is seen */
	must(text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 9) {
	case 0:
		use_url(text);
		break;
	case 1:
		use_addr(text);
		break;
	case 2:
		use_export(text);
		break;
	case 3:
		use_conf(text, size - 1);
		break;
	case 4:
		must(peer_net_parse(text, &cidr) || cidr.bits <= 128);
		break;
	case 6:
		use_block(text);
		break;
	case 7:
		use_stripes(text);
		break;
	case 8:
		use_key(text);
		break;
	default:
		use_path(text);
	}
	free(text);
	return 0;
}
