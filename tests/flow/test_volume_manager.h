/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_manager.h - the manager of a volume without stripe servers, and calls to it
 *
 * For programs that are linked with $(MANAGER_WRAPS) of tests/build.mk.
 */
#ifndef TEST_VOLUME_MANAGER_H
#define TEST_VOLUME_MANAGER_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "conf.h"
#include "file_layout.h"
#include "nfs_peer.h"
#include "server.h"
#include "space.h"
#include "stripe_handle.h"
#include "volume_pending.h"
#include "volumes.h"

#define VOLUME UINT64_C(0x1122334455667788)
#define VOLUME_LINE "volume = 1122334455667788\n"
#define KEY "key = 00112233445566778899aabbccddeeff\n"
#define OTHER_KEY "key = 0123456789abcdef0123456789abcdef\n"
#define SERVERS "[server 1]\nurl = local:///s1\n[server 20]\nurl = local:///s2\n[server 3]\nurl = tcp://127.0.0.3:1\nstate = out\n"
#define MAP VOLUME_LINE "version = 5\n" SERVERS "[server 4]\nurl = local:///s4\n"
#define UNIT (1u << 20)
#define OTHER 4711u

static const struct stripe_keys keys = { .v = { { UINT64_C(0x0011223344556677), UINT64_C(0x8899aabbccddeeff) } }, .n = 1 };
static const char *const exports[] = { "rw,no_root_squash", "rw,no_root_squash", NULL };

static struct nfs_peer *peer;
static const char *options; /* of the volume */
static bool has_stripes;    /* the server keeps those of server 1, too */

/* ---- what is not durable yet ---- */

static atomic_bool unsynced; /* a layout or a size was set, and the file was not synced since */

int __real_setxattr(const char *path, const char *name, const void *value, size_t n, int flags);
int __wrap_setxattr(const char *path, const char *name, const void *value, size_t n, int flags);
int __real_ftruncate(int fd, off_t len);
int __wrap_ftruncate(int fd, off_t len);
int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_setxattr(const char *path, const char *name, const void *value, size_t n, int flags)
{
	atomic_store(&unsynced, true);
	return __real_setxattr(path, name, value, n, flags);
}

int __wrap_ftruncate(int fd, off_t len)
{
	atomic_store(&unsynced, true);
	return __real_ftruncate(fd, len);
}

int __wrap_fsync(int fd)
{
	struct stat st;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		atomic_store(&unsynced, false);
	return __real_fsync(fd);
}

/* The file system orders names and inodes, so that a new file is synced for its layout only. */
void __real_fs_limits_find(int fd, bool may_write, struct fs_limits *ret);
void __wrap_fs_limits_find(int fd, bool may_write, struct fs_limits *ret);

void __wrap_fs_limits_find(int fd, bool may_write, struct fs_limits *ret)
{
	__real_fs_limits_find(fd, may_write, ret);
	ret->orders_names = true;
}

/* ---- a kernel without memory ---- */

static atomic_bool no_handles; /* of regular files */

int __real_name_to_handle_at(int dir, const char *name, struct file_handle *handle, int *mount_id, int flags);
int __wrap_name_to_handle_at(int dir, const char *name, struct file_handle *handle, int *mount_id, int flags);

int __wrap_name_to_handle_at(int dir, const char *name, struct file_handle *handle, int *mount_id, int flags)
{
	struct stat st;

	if (atomic_load(&no_handles) && !fstatat(dir, name, &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode)) {
		errno = ENOMEM;
		return -1;
	}
	return __real_name_to_handle_at(dir, name, handle, mount_id, flags);
}

/* ---- the server ---- */

static inline void write_key(const char *text, unsigned mode)
{
	tmp_dir_write(&peer->dir, "key", text);
	assert_int_equal(chmod(tmp_dir_path(&peer->dir, "key"), mode), 0);
}

static inline void write_map(const char *text)
{
	tmp_dir_write(&peer->dir, "map", text);
}

/* /e0 becomes the directory of a volume. */
static inline void tune(struct conf *conf)
{
	const char *dir = peer->dir.path;
	char arg[1024], why[256];

	export_conf_fini(&conf->exports[0]);
	(void)snprintf(arg, sizeof(arg), "e0=%s/e0,key=%s/key,map=%s/map,no_root_squash,stripe_timeo=20ms,%s", dir, dir, dir, options);
	if (volume_conf_parse(arg, &conf->exports[0], why, sizeof(why)))
		fail_msg("%s: %s", arg, why);
	if (!has_stripes)
		return;
	(void)snprintf(arg, sizeof(arg), "s=%s/s,key=%s/key,id=1", dir, dir);
	if (stripes_conf_parse(arg, &conf->stripes[conf->nstripes++], why, sizeof(why)))
		fail_msg("%s: %s", arg, why);
}

static inline void tune_first(struct conf *conf)
{
	write_key(VOLUME_LINE KEY, 0600);
	write_map(MAP);
	peer->tune = tune;
	tune(conf);
}

static inline int setup_on(void **state, enum rpcrdma_transport transport)
{
	options = "stripe=1M";
	has_stripes = false;
	atomic_store(&no_handles, false);
	peer = malloc(sizeof(*peer));
	assert_non_null(peer);
	nfs_peer_create_tuned(peer, transport, exports, tune_first);
	*state = peer;
	return 0;
}

static inline int setup_tcp(void **state)
{
	return setup_on(state, RPCRDMA_TCP);
}

static inline int setup_local(void **state)
{
	return setup_on(state, RPCRDMA_LOCAL);
}

static inline int reload(char why[512])
{
	why[0] = '\0';
	return nfs_peer_reload(peer, why, 512);
}

/* ---- calls ---- */

static inline volume_fh vol_fh(const struct nfs_fh *fh)
{
	return (volume_fh){ .volume_fh_len = fh->len, .volume_fh_val = (char *)(uintptr_t)fh->data };
}

static inline volume_status call(uint32_t proc, xdrproc_t encode, const void *args, xdrproc_t decode, void *res)
{
	assert_int_equal(nfs_peer_rpc(peer, LEAT_VOLUME, LEAT_VOLUME_V1, proc, encode, args, decode, res, NULL, 0), 0);
	return *(volume_status *)res;
}

/* @ret: for xdr_free() */
static inline volume_status get_map(const struct nfs_fh *fh, VOLMAPres *ret)
{
	VOLMAPargs a = { .fh = vol_fh(fh) };

	memset(ret, 0, sizeof(*ret));
	return call(VOLUMEPROC_MAP, (xdrproc_t)xdr_VOLMAPargs, &a, (xdrproc_t)xdr_VOLMAPres, ret);
}

struct got {
	VOLLAYOUTresok ok;
	volume_stripe stripes[VOLUME_SERVERS_MAX];
};

static inline volume_status get_lease(const struct nfs_fh *fh, uint32_t rights, volume_lease lease, struct got *ret)
{
	VOLLAYOUTargs a = { .fh = vol_fh(fh), .rights = rights, .lease = lease };
	VOLLAYOUTres res = { 0 };
	volume_status status = call(VOLUMEPROC_LAYOUT, (xdrproc_t)xdr_VOLLAYOUTargs, &a, (xdrproc_t)xdr_VOLLAYOUTres, &res);

	if (status == VOLUME_OK) {
		ret->ok = res.VOLLAYOUTres_u.resok;
		memcpy(ret->stripes, ret->ok.stripes.stripes_val, ret->ok.stripes.stripes_len * sizeof(volume_stripe));
	}
	xdr_free((xdrproc_t)xdr_VOLLAYOUTres, (char *)&res);
	return status;
}

static inline volume_status get_layout(const struct nfs_fh *fh, uint32_t rights, struct got *ret)
{
	return get_lease(fh, rights, (volume_lease){ 0, 0 }, ret);
}

static inline volume_status report_how(const struct nfs_fh *fh, const char *handle, volume_lease lease, uint32_t flags, uint64_t bytes,
				VOLREPORTresok *ret)
{
	VOLREPORTargs a = { .fh = vol_fh(fh), .lease = lease, .flags = flags, .bytes = bytes };
	VOLREPORTres res = { 0 };
	volume_status status;

	memcpy(a.handle, handle, sizeof(a.handle));
	status = call(VOLUMEPROC_REPORT, (xdrproc_t)xdr_VOLREPORTargs, &a, (xdrproc_t)xdr_VOLREPORTres, &res);
	if (status == VOLUME_OK)
		*ret = res.VOLREPORTres_u.resok;
	return status;
}

static inline volume_status report(const struct nfs_fh *fh, const char *handle, uint64_t bytes, uint64_t *ret_bytes)
{
	VOLREPORTresok ok;
	volume_status status = report_how(fh, handle, (volume_lease){ 0, 0 }, VOLUME_REPORT_WROTE, bytes, &ok);

	if (status == VOLUME_OK)
		*ret_bytes = ok.bytes;
	return status;
}

#define BOTH (STRIPE_MAY_READ | STRIPE_MAY_WRITE)

static inline void create_file(const char *name, struct nfs_fh *ret)
{
	assert_int_equal(nfs_peer_create_file(peer, &peer->root, name, ret), NFS3_OK);
}

/* A file whose size is 1000 */
static inline void create_filled(const char *name, struct nfs_fh *ret)
{
	uint64_t bytes;
	struct got l;

	create_file(name, ret);
	assert_int_equal(get_layout(ret, BOTH, &l), VOLUME_OK);
	assert_int_equal(report(ret, l.stripes[0].handle, 1000, &bytes), VOLUME_OK);
}

static inline nfsstat3 create_how(const char *name, createmode3 mode, bool sized, uint64_t size, struct nfs_fh *ret)
{
	CREATE3args a = { .where = { nfs_peer_fh(&peer->root), (char *)(uintptr_t)name }, .how.mode = mode };
	CREATE3res res = { 0 };
	nfsstat3 status;

	if (mode == EXCLUSIVE) {
		memcpy(a.how.createhow3_u.verf, "12345678", 8);
	} else {
		a.how.createhow3_u.obj_attributes.size.set_it = sized;
		a.how.createhow3_u.obj_attributes.size.set_size3_u.size = size;
	}
	NFS_PEER_CALL(peer, CREATE, &a, &res, NULL, 0);
	status = res.status;
	if (status == NFS3_OK) {
		const nfs_fh3 *fh = &res.CREATE3res_u.resok.obj.post_op_fh3_u.handle;

		ret->len = fh->data.data_len;
		memcpy(ret->data, fh->data.data_val, ret->len);
	}
	xdr_free((xdrproc_t)xdr_CREATE3res, (char *)&res);
	return status;
}

static inline nfsstat3 set_size(const struct nfs_fh *fh, uint64_t size)
{
	SETATTR3args a = { .object = nfs_peer_fh(fh) };

	a.new_attributes.size.set_it = TRUE;
	a.new_attributes.size.set_size3_u.size = size;
	NFS_PEER_RETURN_CALL(peer, SETATTR, &a);
}

static inline nfsstat3 set_mode(const struct nfs_fh *fh, uint32_t mode)
{
	SETATTR3args a = { .object = nfs_peer_fh(fh) };

	a.new_attributes.mode.set_it = TRUE;
	a.new_attributes.mode.set_mode3_u.mode = mode;
	NFS_PEER_RETURN_CALL(peer, SETATTR, &a);
}

static inline nfsstat3 remove_file(const char *name)
{
	REMOVE3args a = { .object = { nfs_peer_fh(&peer->root), (char *)(uintptr_t)name } };

	NFS_PEER_RETURN_CALL(peer, REMOVE, &a);
}

static inline nfsstat3 rename_file(const char *from, const char *to)
{
	RENAME3args a = { .from = { nfs_peer_fh(&peer->root), (char *)(uintptr_t)from },
			  .to = { nfs_peer_fh(&peer->root), (char *)(uintptr_t)to } };

	NFS_PEER_RETURN_CALL(peer, RENAME, &a);
}

static inline nfsstat3 link_file(const struct nfs_fh *fh, const char *name)
{
	LINK3args a = { .file = nfs_peer_fh(fh), .link = { nfs_peer_fh(&peer->root), (char *)(uintptr_t)name } };

	NFS_PEER_RETURN_CALL(peer, LINK, &a);
}

static inline nfsstat3 make_dir(const struct nfs_fh *dir, const char *name)
{
	MKDIR3args a = { .where = { nfs_peer_fh(dir), (char *)(uintptr_t)name } };

	NFS_PEER_RETURN_CALL(peer, MKDIR, &a);
}

/* ---- the disk ---- */

static inline const char *path_of(const char *name)
{
	static char path[4096];

	(void)snprintf(path, sizeof(path), "%s/e0/files/%s", peer->dir.path, name);
	return path;
}

/* The attribute's name is chosen once for the volume. */
static inline const char *attribute(void)
{
	return getxattr(path_of(""), "trusted.leat", NULL, 0) >= 0 ? "trusted.leat" : "user.leat";
}

static inline size_t get_attribute(const char *name, uint8_t ret[FILE_LAYOUT_MAX])
{
	ssize_t n = getxattr(path_of(name), attribute(), ret, FILE_LAYOUT_MAX);

	return n < 0 ? 0 : (size_t)n;
}

static inline void set_attribute(const char *name, const uint8_t *bytes, size_t n)
{
	assert_int_equal(setxattr(path_of(name), attribute(), bytes, n, 0), 0);
}

static inline void create_locally(const char *name, const char *text)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

#define MANAGER_TEST(name) cmocka_unit_test_setup_teardown(name, setup_local, nfs_peer_teardown)

/* no stripe server is there */
static const struct volume_times manager_times = { .server = "20ms", .probe_ns = 60 * NS_PER_S, .retry_ns = 60 * NS_PER_S };

#endif
