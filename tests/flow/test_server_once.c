/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_once.c - whatever is lost when a connection breaks, what a call changes is changed once
 *
 * Every procedure that changes something, over the local fabric and over TCP, with the connection cut
 * at every boundary between messages: before the call is there, behind it, and when the reply was
 * sent and is lost. The caller sends it again on his next connection and is told the truth. Where it
 * was executed before the cut, somebody else has undone it meanwhile, so that a second execution would
 * show in the file system even where it went well.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/posix_acl.h>

#include "conf.h"
#include "inside.h"
#include "nfs_peer.h"
#include "server_int.h"
#include "tcp_proxy.h"

#define LARGE_BYTES 100000u
#define FEW 6 /* entries of a small cache, and as many for WRITEs */
#define LOST_COMPLETIONS 4 /* one of the first few is that of the reply */
#define ROUNDS_MAX 30u

/* the proxy and the raw peers call from any port */
static const char *const options[] = { "rw,no_root_squash,insecure", NULL };

static int dir = -1;	   /* of the export */
static struct nfs_fh file; /* what the deed is about, if it is a file */
static char x[] = "x", y[] = "y", large[LARGE_BYTES];

/* ---- the deeds: what is prepared, called, seen, and undone ---- */

static void make(const char *name, mode_t mode)
{
	int fd = openat(dir, name, O_CREAT | O_WRONLY | O_TRUNC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "a", 1), 1);
	close(fd);
}

static bool is_there(const char *name)
{
	struct stat st;

	return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);
}

static void clean(void)
{
	(void)unlinkat(dir, "x", 0);
	(void)unlinkat(dir, "x", AT_REMOVEDIR);
	(void)unlinkat(dir, "y", 0);
	assert_false(is_there("x"));
	assert_false(is_there("y"));
}

static void nothing(struct nfs_peer *p)
{
	(void)p;
}

static void make_x(struct nfs_peer *p)
{
	make(x, 0644);
	assert_int_equal(nfs_peer_lookup(p, &p->root, x, &file), NFS3_OK);
}

static void make_y(struct nfs_peer *p)
{
	make(y, 0644);
	assert_int_equal(nfs_peer_lookup(p, &p->root, y, &file), NFS3_OK);
}

static void make_x_dir(struct nfs_peer *p)
{
	(void)p;
	assert_int_equal(mkdirat(dir, x, 0755), 0);
}

static bool x_is_there(void)
{
	return is_there(x);
}

static bool x_is_gone(void)
{
	return !is_there(x);
}

static void put_x(void)
{
	make(x, 0644);
}

static void put_x_dir(void)
{
	make_x_dir(NULL);
}

static void remove_x(void)
{
	assert_int_equal(unlinkat(dir, x, 0), 0);
}

static void remove_x_dir(void)
{
	assert_int_equal(unlinkat(dir, x, AT_REMOVEDIR), 0);
}

static bool mode_is_set(void)
{
	struct stat st;

	assert_int_equal(fstatat(dir, x, &st, 0), 0);
	return (st.st_mode & 07777) == 0600;
}

static void reset_mode(void)
{
	assert_int_equal(fchmodat(dir, x, 0644, 0), 0);
}

static bool is_written(void)
{
	int fd = openat(dir, x, O_RDONLY);
	char byte = 0;

	assert_int_equal(read(fd, &byte, 1), 1);
	close(fd);
	return byte == 'b';
}

/* With overlap a large WRITE is done in pieces. If its connection ends between them, it is not finished, and its client
 * sends it again. */
static bool is_all_written(void)
{
	static char there[LARGE_BYTES];
	int fd = openat(dir, x, O_RDONLY);
	ssize_t n = read(fd, there, sizeof(there));

	assert_true(n >= 1);
	close(fd);
	return n == sizeof(there) && !memcmp(there, large, sizeof(there));
}

static void overwrite(void)
{
	int fd = openat(dir, x, O_WRONLY);

	assert_int_equal(pwrite(fd, "c", 1, 0), 1);
	close(fd);
}

static diropargs3 in_root(const struct nfs_peer *p, char *name)
{
	return (diropargs3){ nfs_peer_fh(&p->root), name };
}

/* One call; what its results point at is freed. */
#define CALL(p, PROC, args)                                                                        \
	do {                                                                                       \
		PROC##3res res = { 0 };                                                            \
		nfsstat3 status;                                                                   \
                                                                                                   \
		NFS_PEER_CALL(p, PROC, args, &res, NULL, 0);                                       \
		status = res.status;                                                               \
		xdr_free((xdrproc_t)xdr_##PROC##3res, (char *)&res);                               \
		return status;                                                                     \
	} while (0)

static nfsstat3 call_guarded(struct nfs_peer *p)
{
	CREATE3args a = { .where = in_root(p, x), .how.mode = GUARDED };

	CALL(p, CREATE, &a);
}

static nfsstat3 call_exclusive(struct nfs_peer *p)
{
	CREATE3args a = { .where = in_root(p, x), .how.mode = EXCLUSIVE };

	memcpy(a.how.createhow3_u.verf, "once..!!", 8);
	CALL(p, CREATE, &a);
}

static nfsstat3 call_mkdir(struct nfs_peer *p)
{
	MKDIR3args a = { .where = in_root(p, x) };

	CALL(p, MKDIR, &a);
}

static nfsstat3 call_symlink(struct nfs_peer *p)
{
	struct iovec iov = { .iov_base = large, .iov_len = 1000 };
	SYMLINK3args a = { .where = in_root(p, x) };

	a.symlink.symlink_data = (nfspath_payload){ .length = 1000, .iov = &iov, .iovcnt = 1 };
	CALL(p, SYMLINK, &a);
}

static nfsstat3 call_mknod(struct nfs_peer *p)
{
	MKNOD3args a = { .where = in_root(p, x), .what.type = NF3FIFO };

	CALL(p, MKNOD, &a);
}

static nfsstat3 call_remove(struct nfs_peer *p)
{
	REMOVE3args a = { .object = in_root(p, x) };

	CALL(p, REMOVE, &a);
}

static nfsstat3 call_rmdir(struct nfs_peer *p)
{
	RMDIR3args a = { .object = in_root(p, x) };

	CALL(p, RMDIR, &a);
}

static nfsstat3 call_rename(struct nfs_peer *p)
{
	RENAME3args a = { .from = in_root(p, x), .to = in_root(p, y) };

	CALL(p, RENAME, &a);
}

static nfsstat3 call_link(struct nfs_peer *p)
{
	LINK3args a = { .file = nfs_peer_fh(&file), .link = in_root(p, x) };

	CALL(p, LINK, &a);
}

/* guarded by the time of its last change, which is not the same after the first time */
static nfsstat3 call_setattr(struct nfs_peer *p)
{
	SETATTR3args a = { .object = nfs_peer_fh(&file), .guard.check = TRUE };
	struct stat st;

	assert_int_equal(fstatat(dir, x, &st, 0), 0);
	a.guard.sattrguard3_u.obj_ctime = (nfstime3){ .seconds = (uint32_t)st.st_ctim.tv_sec,
						      .nseconds = (uint32_t)st.st_ctim.tv_nsec };
	a.new_attributes.mode.set_it = TRUE;
	a.new_attributes.mode.set_mode3_u.mode = 0600;
	CALL(p, SETATTR, &a);
}

/* of as many entries as fit no inline message */
static nfsstat3 call_setacl(struct nfs_peer *p)
{
	aclent v[400] = { { ACL_USER_OBJ, 0, 6 }, { ACL_GROUP_OBJ, 0, 4 }, { ACL_OTHER, 0, 4 },
			  { ACL_MASK, 0, 6 } };
	secattr acl = { .mask = NFS_ACL, .aclcnt = 400, .acl = { 400, v } };

	for (uint32_t i = 4; i < 400; i++)
		v[i] = (aclent){ ACL_USER, 1000 + i, 6 };
	return nfs_peer_setacl(p, &file, &acl);
}

static bool acl_is_set(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, x);
	return getxattr(path, "system.posix_acl_access", NULL, 0) == 4 + 8 * 400;
}

static void reset_acl(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, x);
	assert_int_equal(removexattr(path, "system.posix_acl_access"), 0);
}

static nfsstat3 call_write(struct nfs_peer *p)
{
	return nfs_peer_write(p, &file, 0, large, 1, FILE_SYNC, NULL);
}

static nfsstat3 call_large_write(struct nfs_peer *p)
{
	return nfs_peer_write(p, &file, 0, large, LARGE_BYTES, UNSTABLE, NULL);
}

static const struct deed {
	const char *name;
	void (*prepare)(struct nfs_peer *p);
	nfsstat3 (*call)(struct nfs_peer *p);
	bool (*is_done)(void);
	void (*undo)(void); /* somebody else */
} deeds[] = {
	{ "SETATTR", make_x, call_setattr, mode_is_set, reset_mode },
	{ "WRITE", make_x, call_write, is_written, overwrite },
	{ "large WRITE", make_x, call_large_write, is_all_written, overwrite },
	{ "CREATE guarded", nothing, call_guarded, x_is_there, remove_x },
	{ "CREATE exclusive", nothing, call_exclusive, x_is_there, remove_x },
	{ "MKDIR", nothing, call_mkdir, x_is_there, remove_x_dir },
	{ "SYMLINK", nothing, call_symlink, x_is_there, remove_x },
	{ "MKNOD", nothing, call_mknod, x_is_there, remove_x },
	{ "REMOVE", make_x, call_remove, x_is_gone, put_x },
	{ "RMDIR", make_x_dir, call_rmdir, x_is_gone, put_x_dir },
	{ "RENAME", make_x, call_rename, x_is_gone, put_x },
	{ "LINK", make_y, call_link, x_is_there, remove_x },
	{ "SETACL", make_x, call_setacl, acl_is_set, reset_acl },
};

/* ---- doing them ---- */

struct ctx {
	struct nfs_peer peer;
	struct tcp_proxy proxy;
	struct rr_hooks *hooks; /* local fabric: of the client's side */
};

static const struct deed *now;
static unsigned downs, undone;

/* seen to be done, and no call is being executed: so it has ended */
static bool has_ended(const struct nfs_peer *p)
{
	struct drc_stats s = { 0 };

	if (!now || !p->srv->drc || !now->is_done())
		return false;
	drc_stats(p->srv->drc, &s);
	drc_stats(p->srv->drc_writes, &s);
	return !s.executing;
}

static void on_down(struct nfs_peer *p)
{
	downs++;
	if (has_ended(p)) {
		now->undo();
		undone++;
	}
}

/* one deed, with a cut somewhere; the caller hears that it went well, and it was done once */
static void do_it(struct nfs_peer *p, const struct deed *d, nfsstat3 want)
{
	nfsstat3 status;

	undone = 0;
	now = d;
	status = d->call(p);
	now = NULL;
	if (status != want)
		fail_msg("%s: status %u", d->name, status);
	if (want == NFS3_OK && d->is_done() != !undone)
		fail_msg("%s: %s", d->name, undone ? "done twice" : "not done");
	assert_true(undone <= 1);
}

static uint64_t hits(const struct nfs_peer *p)
{
	struct drc_stats s = { 0 };

	drc_stats(p->srv->drc, &s);
	drc_stats(p->srv->drc_writes, &s);
	return s.hits + s.joins;
}

static void prepare(struct nfs_peer *p, const struct deed *d)
{
	clean();
	d->prepare(p);
	downs = 0;
}

/* ---- over the local fabric ---- */

static void local_send_lost(void **state)
{
	struct ctx *c = *state;

	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		prepare(&c->peer, &deeds[i]);
		c->hooks->cut_delivers = false;
		c->hooks->cut_after_sends = 1;
		do_it(&c->peer, &deeds[i], NFS3_OK);
		assert_int_equal(downs, 1);
		assert_int_equal(undone, 0);
	}
}

static void local_cut_behind_call(void **state)
{
	struct ctx *c = *state;

	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		prepare(&c->peer, &deeds[i]);
		c->hooks->cut_delivers = true;
		c->hooks->cut_after_sends = 1;
		do_it(&c->peer, &deeds[i], NFS3_OK);
		assert_int_equal(downs, 1);
	}
}

/* The client misses one of its completions; which of them is the reply depends on the procedure, and on
 * a slow machine the server may not have got so far: then again. Return: was it the reply, once? */
static bool lose_each(struct ctx *c, const struct deed *d)
{
	uint64_t before = hits(&c->peer);
	unsigned n = 0;

	for (uint64_t k = 1; k <= LOST_COMPLETIONS; k++) {
		prepare(&c->peer, d);
		c->hooks->fail_completion = k;
		do_it(&c->peer, d, NFS3_OK);
		c->hooks->fail_completion = 0;
		n += undone;
	}
	return n && hits(&c->peer) != before;
}

static void local_reply_lost(void **state)
{
	struct ctx *c = *state;

	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		unsigned round = 0;

		while (!lose_each(c, &deeds[i])) {
			if (++round == ROUNDS_MAX)
				fail_msg("%s: no reply was lost", deeds[i].name);
		}
	}
}

/* ---- over TCP ---- */

static void tcp_cut(struct ctx *c, enum tcp_proxy_cut where)
{
	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		uint64_t before = hits(&c->peer);
		unsigned cuts = atomic_load(&c->proxy.cuts);

		prepare(&c->peer, &deeds[i]);
		atomic_store(&c->proxy.cut, where);
		do_it(&c->peer, &deeds[i], NFS3_OK);
		assert_int_equal(downs, 1);
		assert_int_equal(atomic_load(&c->proxy.cuts), cuts + 1);
		if (where == TCP_PROXY_IN_CALL)
			assert_int_equal(undone, 0);
		if (where == TCP_PROXY_REPLY && (undone != 1 || hits(&c->peer) != before + 1))
			fail_msg("%s: no reply was lost", deeds[i].name);
	}
}

static void tcp_half_a_call(void **state)
{
	tcp_cut(*state, TCP_PROXY_IN_CALL);
}

static void tcp_cut_behind_call(void **state)
{
	tcp_cut(*state, TCP_PROXY_BEHIND_CALL);
}

static void tcp_reply_lost(void **state)
{
	tcp_cut(*state, TCP_PROXY_REPLY);
}

/* Without the cache callers are told what became of the second execution: the tests above can fail. */
static void tcp_without_cache(void **state)
{
	static const struct {
		size_t deed;
		nfsstat3 status;
	} rows[] = {
		{ 0, NFS3ERR_NOT_SYNC }, { 3, NFS3ERR_EXIST }, { 5, NFS3ERR_EXIST },
		{ 8, NFS3ERR_NOENT },	 { 9, NFS3ERR_NOENT }, { 10, NFS3ERR_NOENT },
	};
	struct ctx *c = *state;

	assert_null(c->peer.srv->drc);
	c->peer.down = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct deed *d = &deeds[rows[i].deed];

		prepare(&c->peer, d);
		atomic_store(&c->proxy.cut, TCP_PROXY_REPLY);
		do_it(&c->peer, d, rows[i].status);
	}
}

/* ---- the bytes of the reply ---- */

/* Results as they are on the wire, whatever they mean. */
struct raw {
	uint32_t bytes;
	uint8_t data[512];
};

static bool_t xdr_raw(XDR *xdrs, void *arg)
{
	struct raw *r = arg;

	r->bytes = 0;
	while (r->bytes < sizeof(r->data) && XDR_GETBYTES(xdrs, (char *)r->data + r->bytes, 4))
		r->bytes += 4;
	return TRUE;
}

/* Another connection, perhaps another transport, sends the call with the XID it had. */
static void repeat(struct nfs_peer *p, enum rpcrdma_transport transport, uint32_t xid,
		   const MKDIR3args *a, struct raw *ret)
{
	nfs_peer_disconnect(p);
	nfs_peer_connect(p, transport, 0);
	clnt_next_xid(p->clnt, xid);
	assert_int_equal(nfs_peer_rpc(p, NFS_PROGRAM, NFS_V3, NFSPROC3_MKDIR,
				      (xdrproc_t)xdr_MKDIR3args, a, (xdrproc_t)xdr_raw, ret, NULL,
				      0),
			 0);
}

static void same_bytes(void **state)
{
	struct ctx *c = *state;
	struct nfs_peer *p = &c->peer;
	enum rpcrdma_transport transport =
		c->hooks ? RPCRDMA_LOCAL : RPCRDMA_TCP;
	MKDIR3args a = { .where = in_root(p, x) };
	struct raw first, again;

	clean();
	repeat(p, transport, 0x4321, &a, &first);
	assert_true(first.bytes > 100);
	make(y, 0644); /* the directory's attributes are others now */
	for (int i = 0; i < 3; i++) {
		repeat(p, transport, 0x4321, &a, &again);
		assert_int_equal(again.bytes, first.bytes);
		assert_memory_equal(again.data, first.data, first.bytes);
	}
	/* errors that it came to are answers like others */
	repeat(p, transport, 0x4322, &a, &first);
	remove_x_dir();
	repeat(p, transport, 0x4322, &a, &again);
	assert_int_equal(first.data[3], NFS3ERR_EXIST);
	assert_int_equal(again.bytes, first.bytes);
	assert_memory_equal(again.data, first.data, first.bytes);
	assert_true(x_is_gone());
}

/* An XID that comes around with other arguments, or from somebody else, is another call. */
static void other_calls(void **state)
{
	struct ctx *c = *state;
	struct nfs_peer *p = &c->peer;
	enum rpcrdma_transport transport =
		c->hooks ? RPCRDMA_LOCAL : RPCRDMA_TCP;
	MKDIR3args a = { .where = in_root(p, x) }, b = { .where = in_root(p, y) };
	struct raw res;

	clean();
	repeat(p, transport, 77, &a, &res);
	assert_int_equal(res.data[3], NFS3_OK);
	repeat(p, transport, 77, &b, &res);
	assert_int_equal(res.data[3], NFS3_OK);
	assert_true(is_there(y));
	/* another process of this host */
	p->cred.stamp++;
	repeat(p, transport, 77, &a, &res);
	assert_int_equal(res.data[3], NFS3ERR_EXIST);
	p->cred.stamp--;
	repeat(p, transport, 77, &a, &res);
	assert_int_equal(res.data[3], NFS3_OK);
	/* and another user of it */
	p->cred.machine[0]++;
	repeat(p, transport, 77, &a, &res);
	assert_int_equal(res.data[3], NFS3ERR_EXIST);
	p->cred.machine[0]--;
	assert_int_equal(unlinkat(dir, y, AT_REMOVEDIR), 0);
	clean();
}

static void other_data(void **state)
{
	struct ctx *c = *state;
	struct nfs_peer *p = &c->peer;
	char bytes[2] = { 'b', 'd' };

	prepare(p, &deeds[1]);
	for (int i = 0; i < 2; i++) {
		clnt_next_xid(p->clnt, 0x10000);
		assert_int_equal(nfs_peer_write(p, &file, 0, &bytes[i], 1, FILE_SYNC, NULL),
				 NFS3_OK);
		assert_int_equal(is_written(), i == 0);
	}
	/* and the first of them again, with what it was */
	clnt_next_xid(p->clnt, 0x10000);
	assert_int_equal(nfs_peer_write(p, &file, 0, &bytes[0], 1, FILE_SYNC, NULL), NFS3_OK);
	assert_false(is_written());
	clean();
}

/* An answer outlives what it is about: neither handle nor permission is looked at again. */
static void file_is_gone(void **state)
{
	struct ctx *c = *state;
	struct nfs_peer *p = &c->peer;

	prepare(p, &deeds[1]);
	clnt_next_xid(p->clnt, 0x20000);
	assert_int_equal(call_write(p), NFS3_OK);
	remove_x();
	clnt_next_xid(p->clnt, 0x20000);
	assert_int_equal(call_write(p), NFS3_OK);
	assert_int_equal(call_write(p), NFS3ERR_STALE);
}

static bool_t xdr_nothing(XDR *xdrs, void *arg)
{
	(void)xdrs;
	(void)arg;
	return TRUE;
}

static uint64_t counter(struct nfs_peer *p, const char *name)
{
	uint64_t value = UINT64_MAX;
	ctl_stats res = { 0 };

	assert_int_equal(nfs_peer_rpc(p, LEAT_CTL, LEAT_CTL_V1, CTL_STATS, (xdrproc_t)xdr_nothing,
				      NULL, (xdrproc_t)xdr_ctl_stats, &res, NULL, 0),
			 0);
	for (u_int i = 0; i < res.stats.stats_len; i++) {
		if (!strcmp(res.stats.stats_val[i].name, name))
			value = res.stats.stats_val[i].value;
	}
	xdr_free((xdrproc_t)xdr_ctl_stats, (char *)&res);
	return value;
}

/* few answers are kept here, and whoever asks the server is told of it */
static void bounds_and_counters(void **state)
{
	struct ctx *c = *state;
	struct nfs_peer *p = &c->peer;

	for (uint32_t i = 0; i < 20; i++) {
		clean();
		clnt_next_xid(p->clnt, i);
		assert_int_equal(call_mkdir(p), NFS3_OK);
	}
	assert_int_equal(counter(p, "drc_entries"), FEW);
	assert_int_equal(counter(p, "drc_evictions"), 20 - FEW);
	assert_in_range(counter(p, "drc_bytes"), FEW * 300, FEW * 1000);
	assert_int_equal(counter(p, "drc_hits"), 0);
	assert_int_equal(counter(p, "drc_joins"), 0);
	clnt_next_xid(p->clnt, 19);
	assert_int_equal(call_mkdir(p), NFS3_OK);
	assert_int_equal(counter(p, "drc_hits"), 1);
	clnt_next_xid(p->clnt, 0); /* forgotten */
	assert_int_equal(call_mkdir(p), NFS3ERR_EXIST);
	/* what changes nothing is not kept */
	for (int i = 0; i < 5; i++)
		assert_int_equal(nfs_peer_lookup(p, &p->root, x, NULL), NFS3_OK);
	assert_int_equal(counter(p, "drc_evictions"), 21 - FEW);
	clean();
}

/* The answer to a change stays, however much its client writes and whatever other clients change: here one
 * over TCP, on a loopback address, beside a user of the local socket. */
static void others_leave_room(void **state)
{
	struct ctx *c = *state;
	struct nfs_peer *p = &c->peer;

	clean();
	make_y(p);
	clnt_next_xid(p->clnt, 5);
	assert_int_equal(call_mkdir(p), NFS3_OK);
	for (unsigned i = 0; i < 4 * FEW; i++)
		assert_int_equal(call_write(p), NFS3_OK);
	clnt_next_xid(p->clnt, 5);
	assert_int_equal(call_mkdir(p), NFS3_OK);
	nfs_peer_disconnect(p);
	nfs_peer_connect(p, RPCRDMA_TCP, 0);
	clnt_next_xid(p->clnt, 100);
	for (unsigned i = 0; i < 2 * FEW; i++) {
		remove_x_dir();
		assert_int_equal(call_mkdir(p), NFS3_OK);
	}
	nfs_peer_disconnect(p);
	nfs_peer_connect(p, RPCRDMA_LOCAL, 0);
	clnt_next_xid(p->clnt, 5);
	assert_int_equal(call_mkdir(p), NFS3_OK);
	assert_int_equal(call_mkdir(p), NFS3ERR_EXIST);
	assert_int_equal(counter(p, "drc_hits"), 2);
	clean();
}

/* ---- around each test ---- */

static int setup(void **state, enum rpcrdma_transport transport, void (*tune)(struct conf *conf))
{
	struct ctx *c = calloc(1, sizeof(*c));
	struct nfs_peer *p = &c->peer;

	memset(large, 'b', sizeof(large));
	nfs_peer_create_tuned(p, transport, options, tune);
	dir = open(tmp_dir_path(&p->dir, "e0"), O_PATH | O_DIRECTORY);
	assert_true(dir >= 0);
	if (transport == RPCRDMA_TCP) {
		nfs_peer_disconnect(p);
		tcp_proxy_start(&c->proxy, &p->tcp);
		p->tcp = c->proxy.addr;
		nfs_peer_connect(p, transport, 0);
	} else {
		c->hooks = rr_faults_hooks(local_fabric(p->domain));
	}
	p->down = on_down;
	*state = c;
	return 0;
}

static int setup_local(void **state)
{
	return setup(state, RPCRDMA_LOCAL, NULL);
}

static int setup_tcp(void **state)
{
	return setup(state, RPCRDMA_TCP, NULL);
}

static void without_cache(struct conf *conf)
{
	conf->drc_entries = 0;
}

static void few_entries(struct conf *conf)
{
	conf->drc_entries = 2 * FEW;
}

static int setup_few(void **state)
{
	return setup(state, RPCRDMA_LOCAL, few_entries);
}

static int setup_without(void **state)
{
	return setup(state, RPCRDMA_TCP, without_cache);
}

static int teardown(void **state)
{
	struct ctx *c = *state;

	c->peer.down = NULL;
	close(dir);
	if (!c->hooks)
		tcp_proxy_stop(&c->proxy);
	nfs_peer_destroy(&c->peer);
	free(c);
	return 0;
}

#define LOCAL(f) cmocka_unit_test_setup_teardown(f, setup_local, teardown)
#define TCP(f) cmocka_unit_test_setup_teardown(f, setup_tcp, teardown)
#define BOTH(f) { #f " (tcp)", f, setup_tcp, teardown, NULL }, { #f " (local)", f, setup_local, teardown, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOCAL(local_send_lost),
		LOCAL(local_cut_behind_call),
		LOCAL(local_reply_lost),
		TCP(tcp_half_a_call),
		TCP(tcp_cut_behind_call),
		TCP(tcp_reply_lost),
		cmocka_unit_test_setup_teardown(tcp_without_cache, setup_without, teardown),
		cmocka_unit_test_setup_teardown(bounds_and_counters, setup_few, teardown),
		cmocka_unit_test_setup_teardown(others_leave_room, setup_few, teardown),
		BOTH(same_bytes),
		BOTH(other_calls),
		BOTH(other_data),
		BOTH(file_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
