/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpc.c - calls by hand over TCP, for peers that do not do as a library does
 *
 * Operation: a call is a buffer that words are appended to; of a reply only handles are decoded.
 * Memory:    the caller's.
 * Threads:   any.
 * Errors:    rpc_mount() ends the program; the rest says so.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "hostile.h"
#include "mount3.h"
#include "nfs3.h"

#define LAST_FRAGMENT 0x80000000u
#define REPLY_MS 20000

void call_word(struct rpc_call *c, uint32_t word)
{
	word = htonl(word);
	if (c->len + 4 > CALL_BYTES)
		die("a call is too long");
	memcpy(c->bytes + c->len, &word, 4);
	c->len += 4;
}

void call_opaque(struct rpc_call *c, const void *bytes, uint32_t len)
{
	uint32_t room = (len + 3) & ~3u;

	call_word(c, len);
	if (c->len + room > CALL_BYTES)
		die("a call is too long");
	memset(c->bytes + c->len, 0, room);
	memcpy(c->bytes + c->len, bytes, len);
	c->len += room;
}

void call_fh(struct rpc_call *c, const struct nfs_handle *fh)
{
	call_opaque(c, fh->bytes, fh->len);
}

void call_begin(struct rpc_call *c, uint32_t xid, uint32_t prog, uint32_t proc)
{
	c->len = 0;
	call_word(c, xid);
	call_word(c, 0); /* a call */
	call_word(c, 2);
	call_word(c, prog);
	call_word(c, 3);
	call_word(c, proc);
	call_word(c, 1); /* AUTH_SYS: stamp, machine, uid, gid, groups */
	call_word(c, 20);
	call_word(c, 0);
	call_word(c, 0);
	call_word(c, geteuid());
	call_word(c, getegid());
	call_word(c, 0);
	call_word(c, 0); /* verifier */
	call_word(c, 0);
}

void call_read(struct rpc_call *c, uint32_t xid, const struct nfs_handle *fh, uint64_t off, uint32_t len)
{
	call_begin(c, xid, NFS_PROGRAM, NFSPROC3_READ);
	call_fh(c, fh);
	call_word(c, (uint32_t)(off >> 32));
	call_word(c, (uint32_t)off);
	call_word(c, len);
}

void call_list(struct rpc_call *c, uint32_t xid, const struct nfs_handle *dir, uint32_t len)
{
	call_begin(c, xid, NFS_PROGRAM, NFSPROC3_READDIRPLUS);
	call_fh(c, dir);
	for (int i = 0; i < 4; i++)
		call_word(c, 0); /* cookie, verifier */
	call_word(c, len);
	call_word(c, len);
}

int tcp_dial(const struct attack_run *r, int rcvbuf)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (rcvbuf)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof(rcvbuf));
	if (connect(fd, (const struct sockaddr *)&r->tcp, sizeof(r->tcp)) ||
	    fcntl(fd, F_SETFL, O_NONBLOCK)) {
		close(fd);
		return -1;
	}
	return fd;
}

bool tcp_put(int fd, const struct rpc_call *c)
{
	uint8_t record[4 + CALL_BYTES];
	uint32_t mark = htonl(LAST_FRAGMENT | c->len);

	memcpy(record, &mark, 4);
	memcpy(record + 4, c->bytes, c->len);
	return send(fd, record, 4 + c->len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)(4 + c->len);
}

/* ---- honest calls ---- */

static void get_bytes(int fd, void *to, size_t len)
{
	for (size_t at = 0; at < len;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, REPLY_MS) != 1)
			die("no reply over TCP");
		n = recv(fd, (uint8_t *)to + at, len - at, 0);
		if (n <= 0)
			die("no reply over TCP: %s", n ? strerror(errno) : "the connection ended");
		at += (size_t)n;
	}
}

/* The handle in a reply: behind the RPC header (24 bytes) and a status. */
static void get_handle(int fd, const struct rpc_call *c, const char *what, struct nfs_handle *ret)
{
	uint8_t reply[4096];
	uint32_t mark, status, len;

	if (!tcp_put(fd, c))
		die("%s: cannot send", what);
	get_bytes(fd, &mark, 4);
	mark = ntohl(mark) & ~LAST_FRAGMENT;
	if (mark > sizeof(reply) || mark < 32)
		die("%s: a reply of %u bytes", what, (unsigned)mark);
	get_bytes(fd, reply, mark);
	memcpy(&status, reply + 24, 4);
	memcpy(&len, reply + 28, 4);
	len = ntohl(len);
	if (status || len > sizeof(ret->bytes) || 32 + len > mark)
		die("%s: status %u", what, (unsigned)ntohl(status));
	memcpy(ret->bytes, reply + 32, len);
	ret->len = len;
}

void rpc_mount(struct attack_run *r)
{
	struct {
		const char *name;
		struct nfs_handle *fh;
	} files[] = { { "big", &r->big }, { "list", &r->list }, { "area", &r->area } };
	struct nfs_handle root;
	struct rpc_call c;
	int fd = tcp_dial(r, 0);

	if (fd < 0)
		die("cannot connect to TCP port %u: %s", ntohs(r->tcp.sin_port), strerror(errno));
	call_begin(&c, 1, MOUNT_PROGRAM, MOUNTPROC3_MNT);
	call_opaque(&c, r->export, (uint32_t)strlen(r->export));
	get_handle(fd, &c, r->export, &root);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		call_begin(&c, 2 + (uint32_t)i, NFS_PROGRAM, NFSPROC3_LOOKUP);
		call_fh(&c, &root);
		call_opaque(&c, files[i].name, (uint32_t)strlen(files[i].name));
		get_handle(fd, &c, files[i].name, files[i].fh);
	}
	close(fd);
}
