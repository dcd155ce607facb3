/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_once.h - calls that change something, executed once although their connection breaks
 */
#ifndef TEST_SERVER_ONCE_H
#define TEST_SERVER_ONCE_H

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
#include <linux/posix_acl.h>

#include <cmocka.h>

#include "conf.h"
#include "inside.h"
#include "nfs_peer.h"
#include "server_int.h"
#include "tcp_proxy.h"

#define LARGE_BYTES 100000u

/* the proxy and the raw peers call from any port */
static const char *const options[] = { "rw,no_root_squash,insecure", NULL };
static int dir = -1;	   /* of the export */
static struct nfs_fh file; /* the file that the calls change */
static char x[] = "x", y[] = "y", large[LARGE_BYTES];

static inline void make(const char *name, mode_t mode)
{
	int fd = openat(dir, name, O_CREAT | O_WRONLY | O_TRUNC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "a", 1), 1);
	close(fd);
}

static inline bool is_there(const char *name)
{
	struct stat st;

	return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);
}

static inline void clean(void)
{
	(void)unlinkat(dir, "x", 0);
	(void)unlinkat(dir, "x", AT_REMOVEDIR);
	(void)unlinkat(dir, "y", 0);
	assert_false(is_there("x"));
	assert_false(is_there("y"));
}

static inline void nothing(struct nfs_peer *p)
{
	(void)p;
}

static inline void make_x(struct nfs_peer *p)
{
	make(x, 0644);
	assert_int_equal(nfs_peer_lookup(p, &p->root, x, &file), NFS3_OK);
}

static inline void make_y(struct nfs_peer *p)
{
	make(y, 0644);
	assert_int_equal(nfs_peer_lookup(p, &p->root, y, &file), NFS3_OK);
}

static inline void make_x_dir(struct nfs_peer *p)
{
	(void)p;
	assert_int_equal(mkdirat(dir, x, 0755), 0);
}

static inline bool x_is_there(void)
{
	return is_there(x);
}

static inline bool x_is_gone(void)
{
	return !is_there(x);
}

static inline void put_x(void)
{
	make(x, 0644);
}

static inline void put_x_dir(void)
{
	make_x_dir(NULL);
}

static inline void remove_x(void)
{
	assert_int_equal(unlinkat(dir, x, 0), 0);
}

static inline void remove_x_dir(void)
{
	assert_int_equal(unlinkat(dir, x, AT_REMOVEDIR), 0);
}

static inline bool mode_is_set(void)
{
	struct stat st;

	assert_int_equal(fstatat(dir, x, &st, 0), 0);
	return (st.st_mode & 07777) == 0600;
}

static inline void reset_mode(void)
{
	assert_int_equal(fchmodat(dir, x, 0644, 0), 0);
}

static inline bool is_written(void)
{
	int fd = openat(dir, x, O_RDONLY);
	char byte = 0;

	assert_int_equal(read(fd, &byte, 1), 1);
	close(fd);
	return byte == 'b';
}

/* With overlap a large WRITE is done in pieces. If its connection ends between them, it is not finished, and its client
 * sends it again. */
static inline bool is_all_written(void)
{
	static char there[LARGE_BYTES];
	int fd = openat(dir, x, O_RDONLY);
	ssize_t n = read(fd, there, sizeof(there));

	assert_true(n >= 1);
	close(fd);
	return n == sizeof(there) && !memcmp(there, large, sizeof(there));
}

static inline void overwrite(void)
{
	int fd = openat(dir, x, O_WRONLY);

	assert_int_equal(pwrite(fd, "c", 1, 0), 1);
	close(fd);
}

static inline diropargs3 in_root(const struct nfs_peer *p, char *name)
{
	return (diropargs3){ nfs_peer_fh(&p->root), name };
}

static inline nfsstat3 call_guarded(struct nfs_peer *p)
{
	CREATE3args a = { .where = in_root(p, x), .how.mode = GUARDED };

	NFS_PEER_RETURN_CALL(p, CREATE, &a);
}

static inline nfsstat3 call_exclusive(struct nfs_peer *p)
{
	CREATE3args a = { .where = in_root(p, x), .how.mode = EXCLUSIVE };

	memcpy(a.how.createhow3_u.verf, "once..!!", 8);
	NFS_PEER_RETURN_CALL(p, CREATE, &a);
}

static inline nfsstat3 call_mkdir(struct nfs_peer *p)
{
	MKDIR3args a = { .where = in_root(p, x) };

	NFS_PEER_RETURN_CALL(p, MKDIR, &a);
}

static inline nfsstat3 call_symlink(struct nfs_peer *p)
{
	struct iovec iov = { .iov_base = large, .iov_len = 1000 };
	SYMLINK3args a = { .where = in_root(p, x) };

	a.symlink.symlink_data = (nfspath_payload){ .length = 1000, .iov = &iov, .iovcnt = 1 };
	NFS_PEER_RETURN_CALL(p, SYMLINK, &a);
}

static inline nfsstat3 call_mknod(struct nfs_peer *p)
{
	MKNOD3args a = { .where = in_root(p, x), .what.type = NF3FIFO };

	NFS_PEER_RETURN_CALL(p, MKNOD, &a);
}

static inline nfsstat3 call_remove(struct nfs_peer *p)
{
	REMOVE3args a = { .object = in_root(p, x) };

	NFS_PEER_RETURN_CALL(p, REMOVE, &a);
}

static inline nfsstat3 call_rmdir(struct nfs_peer *p)
{
	RMDIR3args a = { .object = in_root(p, x) };

	NFS_PEER_RETURN_CALL(p, RMDIR, &a);
}

static inline nfsstat3 call_rename(struct nfs_peer *p)
{
	RENAME3args a = { .from = in_root(p, x), .to = in_root(p, y) };

	NFS_PEER_RETURN_CALL(p, RENAME, &a);
}

static inline nfsstat3 call_link(struct nfs_peer *p)
{
	LINK3args a = { .file = nfs_peer_fh(&file), .link = in_root(p, x) };

	NFS_PEER_RETURN_CALL(p, LINK, &a);
}

/* guarded by the time of its last change, which is not the same after the first time */
static inline nfsstat3 call_setattr(struct nfs_peer *p)
{
	SETATTR3args a = { .object = nfs_peer_fh(&file), .guard.check = TRUE };
	struct stat st;

	assert_int_equal(fstatat(dir, x, &st, 0), 0);
	a.guard.sattrguard3_u.obj_ctime = (nfstime3){ .seconds = (uint32_t)st.st_ctim.tv_sec,
						      .nseconds = (uint32_t)st.st_ctim.tv_nsec };
	a.new_attributes.mode.set_it = TRUE;
	a.new_attributes.mode.set_mode3_u.mode = 0600;
	NFS_PEER_RETURN_CALL(p, SETATTR, &a);
}

/* a list too long for an inline message */
static inline nfsstat3 call_setacl(struct nfs_peer *p)
{
	aclent v[400] = { { ACL_USER_OBJ, 0, 6 }, { ACL_GROUP_OBJ, 0, 4 }, { ACL_OTHER, 0, 4 },
			  { ACL_MASK, 0, 6 } };
	secattr acl = { .mask = NFS_ACL, .aclcnt = 400, .acl = { 400, v } };

	for (uint32_t i = 4; i < 400; i++)
		v[i] = (aclent){ ACL_USER, 1000 + i, 6 };
	return nfs_peer_setacl(p, &file, &acl);
}

static inline bool acl_is_set(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, x);
	return getxattr(path, "system.posix_acl_access", NULL, 0) == 4 + 8 * 400;
}

static inline void reset_acl(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, x);
	assert_int_equal(removexattr(path, "system.posix_acl_access"), 0);
}

static inline nfsstat3 call_write(struct nfs_peer *p)
{
	return nfs_peer_write(p, &file, 0, large, 1, FILE_SYNC, NULL);
}

static inline nfsstat3 call_large_write(struct nfs_peer *p)
{
	return nfs_peer_write(p, &file, 0, large, LARGE_BYTES, UNSTABLE, NULL);
}

static const struct deed {
	const char *name;
	void (*prepare)(struct nfs_peer *p);
	nfsstat3 (*call)(struct nfs_peer *p);
	bool (*is_done)(void);
	void (*undo)(void); /* restores what the call has changed; not called by the client */
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

struct ctx {
	struct nfs_peer peer;
	struct tcp_proxy proxy;
	struct hooks *hooks; /* local fabric: of the client's side */
};
static const struct deed *now;
static unsigned downs, undone;

/* its effect is there and no call is in execution: it has ended */
static inline bool has_ended(const struct nfs_peer *p)
{
	struct drc_stats s = { 0 };

	if (!now || !p->srv->drc || !now->is_done())
		return false;
	drc_stats(p->srv->drc, &s);
	drc_stats(p->srv->drc_writes, &s);
	return !s.executing;
}

static inline void on_down(struct nfs_peer *p)
{
	downs++;
	if (has_ended(p)) {
		now->undo();
		undone++;
	}
}

static inline void prepare(struct nfs_peer *p, const struct deed *d)
{
	clean();
	d->prepare(p);
	downs = 0;
}

static inline int setup(void **state, enum rpcrdma_transport transport, void (*tune)(struct conf *conf))
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
		c->hooks = faults_of(local_fabric(p->domain));
	}
	p->down = on_down;
	*state = c;
	return 0;
}

static inline int setup_local(void **state)
{
	return setup(state, RPCRDMA_LOCAL, NULL);
}

static inline int setup_tcp(void **state)
{
	return setup(state, RPCRDMA_TCP, NULL);
}

static inline int teardown(void **state)
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

#endif
