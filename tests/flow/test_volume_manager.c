/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_manager.c - the manager of a volume: map, layouts, reports, what it refuses, and its reloads
 */
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
#define SERVERS "[server 1]\nurl = local:///s1\n[server 20]\nurl = local:///s2\n[server 3]\nurl = tcp://10.0.0.3\nstate = out\n"
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

static void write_key(const char *text, unsigned mode)
{
	tmp_dir_write(&peer->dir, "key", text);
	assert_int_equal(chmod(tmp_dir_path(&peer->dir, "key"), mode), 0);
}

static void write_map(const char *text)
{
	tmp_dir_write(&peer->dir, "map", text);
}

/* /e0 becomes the directory of a volume. */
static void tune(struct conf *conf)
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

static void tune_first(struct conf *conf)
{
	write_key(VOLUME_LINE KEY, 0600);
	write_map(MAP);
	peer->tune = tune;
	tune(conf);
}

static int setup_on(void **state, enum rpcrdma_transport transport)
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

static int setup_tcp(void **state)
{
	return setup_on(state, RPCRDMA_TCP);
}

static int setup_local(void **state)
{
	return setup_on(state, RPCRDMA_LOCAL);
}

static int reload(char why[512])
{
	why[0] = '\0';
	return nfs_peer_reload(peer, why, 512);
}

/* ---- calls ---- */

static volume_fh vol_fh(const struct nfs_fh *fh)
{
	return (volume_fh){ .volume_fh_len = fh->len, .volume_fh_val = (char *)(uintptr_t)fh->data };
}

static volume_status call(uint32_t proc, xdrproc_t encode, const void *args, xdrproc_t decode, void *res)
{
	assert_int_equal(nfs_peer_rpc(peer, LEAT_VOLUME, LEAT_VOLUME_V1, proc, encode, args, decode, res, NULL, 0), 0);
	return *(volume_status *)res;
}

/* @ret: for xdr_free() */
static volume_status get_map(const struct nfs_fh *fh, VOLMAPres *ret)
{
	VOLMAPargs a = { .fh = vol_fh(fh) };

	memset(ret, 0, sizeof(*ret));
	return call(VOLUMEPROC_MAP, (xdrproc_t)xdr_VOLMAPargs, &a, (xdrproc_t)xdr_VOLMAPres, ret);
}

struct got {
	VOLLAYOUTresok ok;
	volume_stripe stripes[VOLUME_SERVERS_MAX];
};

static volume_status get_lease(const struct nfs_fh *fh, uint32_t rights, volume_lease lease, struct got *ret)
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

static volume_status get_layout(const struct nfs_fh *fh, uint32_t rights, struct got *ret)
{
	return get_lease(fh, rights, (volume_lease){ 0, 0 }, ret);
}

static volume_status report_how(const struct nfs_fh *fh, const char *handle, volume_lease lease, uint32_t flags, uint64_t bytes,
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

static volume_status report(const struct nfs_fh *fh, const char *handle, uint64_t bytes, uint64_t *ret_bytes)
{
	VOLREPORTresok ok;
	volume_status status = report_how(fh, handle, (volume_lease){ 0, 0 }, VOLUME_REPORT_WROTE, bytes, &ok);

	if (status == VOLUME_OK)
		*ret_bytes = ok.bytes;
	return status;
}

#define BOTH (STRIPE_MAY_READ | STRIPE_MAY_WRITE)

static void create_file(const char *name, struct nfs_fh *ret)
{
	assert_int_equal(nfs_peer_create_file(peer, &peer->root, name, ret), NFS3_OK);
}

/* A file whose size is 1000 */
static void create_filled(const char *name, struct nfs_fh *ret)
{
	uint64_t bytes;
	struct got l;

	create_file(name, ret);
	assert_int_equal(get_layout(ret, BOTH, &l), VOLUME_OK);
	assert_int_equal(report(ret, l.stripes[0].handle, 1000, &bytes), VOLUME_OK);
}

static nfsstat3 create_how(const char *name, createmode3 mode, bool sized, uint64_t size, struct nfs_fh *ret)
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

static nfsstat3 set_size(const struct nfs_fh *fh, uint64_t size)
{
	SETATTR3args a = { .object = nfs_peer_fh(fh) };

	a.new_attributes.size.set_it = TRUE;
	a.new_attributes.size.set_size3_u.size = size;
	NFS_PEER_RETURN_CALL(peer, SETATTR, &a);
}

static nfsstat3 set_mode(const struct nfs_fh *fh, uint32_t mode)
{
	SETATTR3args a = { .object = nfs_peer_fh(fh) };

	a.new_attributes.mode.set_it = TRUE;
	a.new_attributes.mode.set_mode3_u.mode = mode;
	NFS_PEER_RETURN_CALL(peer, SETATTR, &a);
}

static nfsstat3 remove_file(const char *name)
{
	REMOVE3args a = { .object = { nfs_peer_fh(&peer->root), (char *)(uintptr_t)name } };

	NFS_PEER_RETURN_CALL(peer, REMOVE, &a);
}

static nfsstat3 rename_file(const char *from, const char *to)
{
	RENAME3args a = { .from = { nfs_peer_fh(&peer->root), (char *)(uintptr_t)from },
			  .to = { nfs_peer_fh(&peer->root), (char *)(uintptr_t)to } };

	NFS_PEER_RETURN_CALL(peer, RENAME, &a);
}

static nfsstat3 link_file(const struct nfs_fh *fh, const char *name)
{
	LINK3args a = { .file = nfs_peer_fh(fh), .link = { nfs_peer_fh(&peer->root), (char *)(uintptr_t)name } };

	NFS_PEER_RETURN_CALL(peer, LINK, &a);
}

static nfsstat3 make_dir(const struct nfs_fh *dir, const char *name)
{
	MKDIR3args a = { .where = { nfs_peer_fh(dir), (char *)(uintptr_t)name } };

	NFS_PEER_RETURN_CALL(peer, MKDIR, &a);
}

/* ---- the disk ---- */

static const char *path_of(const char *name)
{
	static char path[4096];

	(void)snprintf(path, sizeof(path), "%s/e0/files/%s", peer->dir.path, name);
	return path;
}

/* The attribute's name is chosen once for the volume. */
static const char *attribute(void)
{
	return getxattr(path_of(""), "trusted.leat", NULL, 0) >= 0 ? "trusted.leat" : "user.leat";
}

static size_t get_attribute(const char *name, uint8_t ret[FILE_LAYOUT_MAX])
{
	ssize_t n = getxattr(path_of(name), attribute(), ret, FILE_LAYOUT_MAX);

	return n < 0 ? 0 : (size_t)n;
}

static void set_attribute(const char *name, const uint8_t *bytes, size_t n)
{
	assert_int_equal(setxattr(path_of(name), attribute(), bytes, n, 0), 0);
}

static void create_locally(const char *name, const char *text)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* ---- tests ---- */

static void map_of_a_volume(void **state)
{
	static const struct {
		uint32_t id;
		volume_server_state server_state;
		const char *url;
	} want[] = {
		{ 1, VOLUME_SERVER_FULL, "local:///s1" },
		{ 20, VOLUME_SERVER_FULL, "local:///s2" },
		{ 3, VOLUME_SERVER_OUT, "tcp://10.0.0.3" },
		{ 4, VOLUME_SERVER_FULL, "local:///s4" },
	};
	struct nfs_fh other, file, bad = { .len = 5, .data = "nodns" };
	VOLMAPres res;
	const VOLMAPresok *ok = &res.VOLMAPres_u.resok;
	struct got l;

	(void)state;
	create_file("f", &file);
	for (unsigned k = 0; k < 2; k++) { /* of the root, and of a file */
		assert_int_equal(get_map(k ? &file : &peer->root, &res), VOLUME_OK);
		assert_true(ok->volume == VOLUME && ok->map == 5 && ok->unit == UNIT && ok->width == 4);
		assert_int_equal(ok->servers.servers_len, ARRAY_SIZE(want));
		for (unsigned i = 0; i < ARRAY_SIZE(want); i++) {
			assert_int_equal(ok->servers.servers_val[i].id, want[i].id);
			assert_int_equal(ok->servers.servers_val[i].state, want[i].server_state);
			assert_string_equal(ok->servers.servers_val[i].url, want[i].url);
		}
		xdr_free((xdrproc_t)xdr_VOLMAPres, (char *)&res);
	}
	assert_int_equal(nfs_peer_mount(peer, "/e1", &other), MNT3_OK);
	assert_int_equal(get_map(&other, &res), VOLUME_ERR_NOTVOLUME);
	assert_int_equal(get_layout(&other, BOTH, &l), VOLUME_ERR_NOTVOLUME);
	assert_int_equal(get_map(&bad, &res), VOLUME_ERR_STALE);
	assert_int_equal(get_layout(&bad, BOTH, &l), VOLUME_ERR_STALE);
	assert_int_equal(get_layout(&peer->root, BOTH, &l), VOLUME_ERR_NOTVOLUME);
	assert_int_equal(get_layout(&file, 0, &l), VOLUME_ERR_INVAL);
	assert_int_equal(get_layout(&file, 4 | BOTH, &l), VOLUME_ERR_INVAL);
	assert_int_equal(nfs_peer_null(peer, LEAT_VOLUME, LEAT_VOLUME_V1, VOLUMEPROC_NULL), 0);
}

static void check_handles(const struct got *l, uint32_t rights)
{
	uint64_t now = (uint64_t)time(NULL);

	for (uint32_t i = 0; i < l->ok.stripes.stripes_len; i++) {
		struct stripe_handle h;

		assert_int_equal(stripe_handle_read(&keys, l->stripes[i].handle, &h), 0);
		assert_true(h.volume == VOLUME && h.epoch == 1 && h.rights == rights && h.name.stripe == i);
		assert_int_equal(h.server, l->stripes[i].server);
		assert_memory_equal(h.name.object, l->ok.object, STRIPE_OBJECT_BYTES);
		assert_true(h.expiry > now + 500 && h.expiry <= now + 600);
	}
}

static void each_mode_of_create(void **state)
{
	static const createmode3 modes[] = { UNCHECKED, GUARDED, EXCLUSIVE };
	static const char *const names[] = { "u", "g", "x" };
	struct got l[3], again;
	struct nfs_fh fh;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		uint8_t bytes[FILE_LAYOUT_MAX];

		assert_int_equal(create_how(names[i], modes[i], modes[i] == UNCHECKED, 0, &fh), NFS3_OK);
		assert_false(atomic_load(&unsynced));
		assert_int_equal(get_attribute(names[i], bytes), FILE_LAYOUT_HEAD + 3 * 4 + 8);
		assert_int_equal(get_layout(&fh, BOTH, &l[i]), VOLUME_OK);
		assert_true(l[i].ok.map == 5 && l[i].ok.epoch == 1 && l[i].ok.unit == UNIT && l[i].ok.lifetime == 600 && !l[i].ok.bytes);
		assert_int_equal(l[i].ok.stripes.stripes_len, 3); /* server 3 is out */
		check_handles(&l[i], BOTH);
		for (unsigned k = 0; k < i; k++)
			assert_memory_not_equal(l[i].ok.object, l[k].ok.object, STRIPE_OBJECT_BYTES);
	}
	/* servers in turn: the second one of a file is the first one of the next */
	for (unsigned i = 1; i < 3; i++)
		assert_int_equal(l[i].stripes[0].server, l[i - 1].stripes[1].server);
	for (unsigned i = 0; i < 3; i++)
		assert_true(l[0].stripes[i].server == 1 || l[0].stripes[i].server == 20 || l[0].stripes[i].server == 4);
	/* the same file again keeps its layout */
	assert_int_equal(create_how("u", UNCHECKED, true, 0, &fh), NFS3_OK);
	assert_int_equal(get_layout(&fh, STRIPE_MAY_READ, &again), VOLUME_OK);
	assert_memory_equal(again.ok.object, l[0].ok.object, STRIPE_OBJECT_BYTES);
	check_handles(&again, STRIPE_MAY_READ);
	assert_int_equal(create_how("x", EXCLUSIVE, false, 0, &fh), NFS3_OK);
	assert_int_equal(create_how("g", GUARDED, false, 0, &fh), NFS3ERR_EXIST);
}

/* The owner may, whatever the mode says, as with READ and WRITE; others as the kernel says. */
static void rights_of_the_caller(void **state)
{
	struct nfs_fh fh;
	struct got l;

	(void)state;
	create_file("f", &fh);
	assert_int_equal(set_mode(&fh, 0), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	if (!creds_can_assume())
		skip();
	peer->cred.uid = peer->cred.gid = OTHER;
	assert_int_equal(get_layout(&fh, STRIPE_MAY_READ, &l), VOLUME_ERR_ACCES);
	assert_int_equal(chmod(path_of("f"), 0644), 0);
	assert_int_equal(get_layout(&fh, STRIPE_MAY_READ, &l), VOLUME_OK);
	check_handles(&l, STRIPE_MAY_READ);
	assert_int_equal(get_layout(&fh, STRIPE_MAY_WRITE, &l), VOLUME_ERR_ACCES);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_ERR_ACCES);
	assert_int_equal(chmod(path_of("f"), 0222), 0);
	assert_int_equal(get_layout(&fh, STRIPE_MAY_WRITE, &l), VOLUME_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_ERR_ACCES);
}

/* A user that may write to a program of another user must not be able to run code as that user. A client need not report. */
static void set_id_bits(void **state)
{
	struct nfs_fh fh;
	struct stat st;
	uint64_t bytes;
	struct got l;

	(void)state;
	if (!creds_can_assume())
		skip();
	create_file("f", &fh);
	assert_int_equal(chmod(path_of("f"), 06777), 0);
	peer->cred.uid = peer->cred.gid = OTHER;
	assert_int_equal(get_layout(&fh, STRIPE_MAY_READ, &l), VOLUME_OK);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 06777);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0777);
	assert_int_equal(chmod(path_of("f"), 06777), 0);
	assert_int_equal(report(&fh, l.stripes[0].handle, 0, &bytes), VOLUME_OK);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0777);
}

static void read_only(void **state)
{
	char why[512];
	uint64_t bytes;
	struct nfs_fh fh, bare;
	struct got l;

	(void)state;
	create_file("f", &fh);
	create_locally("bare", "");
	assert_int_equal(nfs_peer_lookup(peer, &peer->root, "bare", &bare), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	options = "ro";
	assert_int_equal(reload(why), 0);
	assert_int_equal(report(&fh, l.stripes[0].handle, 10, &bytes), VOLUME_ERR_ROFS);
	assert_int_equal(get_layout(&fh, STRIPE_MAY_WRITE, &l), VOLUME_ERR_ROFS);
	assert_int_equal(get_layout(&fh, STRIPE_MAY_READ, &l), VOLUME_OK);
	assert_int_equal(get_layout(&bare, STRIPE_MAY_READ, &l), VOLUME_ERR_LAYOUT);
}

static void copied_and_damaged(void **state)
{
	uint8_t bytes[FILE_LAYOUT_MAX];
	struct nfs_fh from, to;
	struct got l;
	size_t n;

	(void)state;
	create_file("from", &from);
	create_file("to", &to);
	n = get_attribute("from", bytes);
	set_attribute("to", bytes, n);
	assert_int_equal(get_layout(&to, BOTH, &l), VOLUME_ERR_LAYOUT);
	assert_int_equal(get_layout(&from, BOTH, &l), VOLUME_OK);
	bytes[20] ^= 1;
	set_attribute("from", bytes, n);
	assert_int_equal(get_layout(&from, BOTH, &l), VOLUME_ERR_LAYOUT);
	set_attribute("from", bytes, 0);
	assert_int_equal(get_layout(&from, BOTH, &l), VOLUME_ERR_LAYOUT);
	assert_int_equal(nfs_peer_lookup(peer, &peer->root, "from", &from), NFS3_OK); /* it has attributes and a name */
	assert_int_equal(remove_file("from"), NFS3_OK);
}

/* The layout is signed for the file, not for the number of its inode. */
static void recycled_inode(void **state)
{
	uint8_t bytes[FILE_LAYOUT_MAX];
	struct stat st, again = { .st_ino = 0 };
	struct nfs_fh fh;
	struct got l;
	size_t n;

	(void)state;
	create_file("f", &fh);
	n = get_attribute("f", bytes);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(unlink(path_of("f")), 0);
	for (unsigned i = 0; i < 50 && again.st_ino != st.st_ino; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "n%u", i);
		create_locally(name, "");
		assert_int_equal(stat(path_of(name), &again), 0);
		if (again.st_ino == st.st_ino)
			assert_int_equal(rename(path_of(name), strdupa(path_of("f"))), 0);
	}
	if (again.st_ino != st.st_ino)
		skip(); /* this file system does not use numbers again at once */
	set_attribute("f", bytes, n);
	assert_int_equal(nfs_peer_lookup(peer, &peer->root, "f", &fh), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_ERR_LAYOUT);
}

/* What a crash between creation and attribute leaves. */
static void heals(void **state)
{
	struct nfs_fh fh;
	struct got l, again;

	(void)state;
	create_locally("bare", "");
	assert_int_equal(nfs_peer_lookup(peer, &peer->root, "bare", &fh), NFS3_OK);
	assert_int_equal(get_layout(&fh, STRIPE_MAY_READ, &l), VOLUME_OK);
	assert_false(atomic_load(&unsynced));
	assert_int_equal(get_layout(&fh, BOTH, &again), VOLUME_OK);
	assert_memory_equal(l.ok.object, again.ok.object, STRIPE_OBJECT_BYTES);
	create_locally("bare2", "");
	create_file("bare2", &fh);
	assert_false(atomic_load(&unsynced));
	assert_true(get_attribute("bare2", (uint8_t[FILE_LAYOUT_MAX]){ 0 }) > 0);
	create_locally("foreign", "contents");
	assert_int_equal(nfs_peer_lookup(peer, &peer->root, "foreign", &fh), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_ERR_LAYOUT);
}

static void no_generation(void **state)
{
	struct nfs_fh fh, other;
	struct stat st;
	struct got l;

	(void)state;
	if (!creds_can_assume()) /* it finds files by name, and needs the kernel's handle for that */
		skip();
	create_file("f", &fh);
	atomic_store(&no_handles, true);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_ERR_LATER);
	assert_int_not_equal(nfs_peer_create_file(peer, &peer->root, "g", &other), NFS3_OK);
	atomic_store(&no_handles, false);
	assert_int_not_equal(stat(path_of("g"), &st), 0);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
}

static void defaults_of_directories(void **state)
{
	uint8_t bytes[DIR_DEFAULTS_BYTES], got[FILE_LAYOUT_MAX];
	struct nfs_fh dir, below, fh;
	struct got l;

	(void)state;
	assert_int_equal(make_dir(&peer->root, "d"), NFS3_OK);
	assert_int_equal(get_attribute("d", got), 0); /* nothing to inherit */
	dir_defaults_encode(&(struct dir_defaults){ 64 << 10, 2 }, bytes);
	set_attribute("d", bytes, sizeof(bytes));
	assert_int_equal(nfs_peer_lookup(peer, &peer->root, "d", &dir), NFS3_OK);
	assert_int_equal(make_dir(&dir, "below"), NFS3_OK);
	assert_int_equal(get_attribute("d/below", got), sizeof(bytes));
	assert_memory_equal(got, bytes, sizeof(bytes));
	assert_int_equal(nfs_peer_lookup(peer, &dir, "below", &below), NFS3_OK);
	assert_int_equal(nfs_peer_create_file(peer, &below, "f", &fh), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.unit, 64 << 10);
	assert_int_equal(l.ok.stripes.stripes_len, 2);
	dir_defaults_encode(&(struct dir_defaults){ 0, 200 }, bytes); /* more than there are */
	set_attribute("d", bytes, sizeof(bytes));
	assert_int_equal(nfs_peer_create_file(peer, &dir, "g", &fh), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.unit, UNIT);
	assert_int_equal(l.ok.stripes.stripes_len, 3);
	set_attribute("d", bytes, 5); /* damaged: none */
	assert_int_equal(nfs_peer_create_file(peer, &dir, "h", &fh), NFS3_OK);
}

static volume_status set_defaults(const struct nfs_fh *dir, uint32_t set, uint32_t unit, uint32_t width, volume_defaults *ret)
{
	VOLSETargs a = { .fh = vol_fh(dir), .set = set, .to = { unit, width } };
	VOLSETres res = { 0 };
	volume_status status = call(VOLUMEPROC_SET, (xdrproc_t)xdr_VOLSETargs, &a, (xdrproc_t)xdr_VOLSETres, &res);

	if (status == VOLUME_OK)
		*ret = res.VOLSETres_u.now;
	return status;
}

static volume_status create_with(const struct nfs_fh *dir, const char *name, uint32_t unit, uint32_t width, volume_defaults *ret)
{
	VOLCREATEargs a = { .fh = vol_fh(dir), .name = (char *)(uintptr_t)name, .mode = 0640, .layout = { unit, width } };
	VOLCREATEres res = { 0 };
	volume_status status = call(VOLUMEPROC_CREATE, (xdrproc_t)xdr_VOLCREATEargs, &a, (xdrproc_t)xdr_VOLCREATEres, &res);

	if (status == VOLUME_OK)
		*ret = res.VOLCREATEres_u.made;
	return status;
}

#define SET_BOTH (VOLUME_SET_UNIT | VOLUME_SET_WIDTH)

static void sets_defaults(void **state)
{
	volume_defaults d;
	struct nfs_fh dir, file;
	struct stat st;
	struct got l;
	char why[512];

	(void)state;
	assert_int_equal(make_dir(&peer->root, "d"), NFS3_OK);
	assert_int_equal(nfs_peer_lookup(peer, &peer->root, "d", &dir), NFS3_OK);
	assert_int_equal(set_defaults(&dir, 0, 5, 5, &d), VOLUME_OK);
	assert_true(!d.unit && !d.width);
	assert_int_equal(set_defaults(&dir, VOLUME_SET_WIDTH, 5, 2, &d), VOLUME_OK);
	assert_int_equal(set_defaults(&dir, VOLUME_SET_UNIT, 64 << 10, 7, &d), VOLUME_OK);
	assert_true(d.unit == 64 << 10 && d.width == 2);
	assert_int_equal(nfs_peer_create_file(peer, &dir, "f", &file), NFS3_OK);
	assert_int_equal(get_layout(&file, BOTH, &l), VOLUME_OK);
	assert_true(l.ok.unit == 64 << 10 && l.ok.stripes.stripes_len == 2);
	/* not possible; nothing changes */
	assert_int_equal(set_defaults(&dir, SET_BOTH, 96 << 10, 2, &d), VOLUME_ERR_INVAL);
	assert_int_equal(set_defaults(&dir, VOLUME_SET_WIDTH, 0, 5, &d), VOLUME_ERR_INVAL); /* there are 4 */
	assert_int_equal(set_defaults(&dir, 4, 0, 0, &d), VOLUME_ERR_INVAL);
	assert_int_equal(set_defaults(&file, SET_BOTH, 0, 0, &d), VOLUME_ERR_NOTVOLUME);
	peer->cred.uid = peer->cred.gid = OTHER;
	assert_int_equal(set_defaults(&dir, SET_BOTH, 0, 0, &d), VOLUME_ERR_ACCES);
	assert_int_equal(set_defaults(&dir, 0, 0, 0, &d), VOLUME_OK);
	assert_true(d.unit == 64 << 10 && d.width == 2);
	peer->cred.uid = peer->cred.gid = 0;
	assert_int_equal(chown(tmp_dir_path(&peer->dir, "e0/files/d"), OTHER, OTHER), 0);
	peer->cred.uid = peer->cred.gid = OTHER;
	assert_int_equal(set_defaults(&dir, VOLUME_SET_WIDTH, 0, 1, &d), VOLUME_OK);
	assert_true(d.unit == 64 << 10 && d.width == 1);
	/* files with a layout of their own */
	assert_int_equal(create_with(&dir, "g", 128 << 10, 0, &d), VOLUME_OK);
	assert_true(d.unit == 128 << 10 && d.width == 1);
	assert_int_equal(stat(tmp_dir_path(&peer->dir, "e0/files/d/g"), &st), 0);
	assert_true(st.st_uid == OTHER && (st.st_mode & 07777) == 0640 && !st.st_size);
	assert_int_equal(create_with(&dir, "g", 0, 0, &d), VOLUME_ERR_EXIST);
	assert_int_equal(create_with(&dir, "h", 0, 3, &d), VOLUME_OK);
	assert_true(d.unit == 64 << 10 && d.width == 3);
	assert_false(atomic_load(&unsynced));
	assert_int_equal(create_with(&dir, "i", 96 << 10, 0, &d), VOLUME_ERR_INVAL);
	assert_int_equal(create_with(&dir, "i", 0, 5, &d), VOLUME_ERR_INVAL);
	assert_int_equal(create_with(&dir, "a/b", 0, 0, &d), VOLUME_ERR_ACCES);
	assert_int_equal(create_with(&file, "i", 0, 0, &d), VOLUME_ERR_NOTVOLUME);
	assert_int_equal(create_with(&peer->root, "i", 0, 0, &d), VOLUME_ERR_ACCES); /* it is root's */
	assert_int_equal(nfs_peer_lookup(peer, &dir, "i", &file), NFS3ERR_NOENT);
	options = "ro";
	assert_int_equal(reload(why), 0);
	assert_int_equal(set_defaults(&dir, SET_BOTH, 0, 0, &d), VOLUME_ERR_ROFS);
	assert_int_equal(set_defaults(&dir, 0, 0, 0, &d), VOLUME_OK);
	assert_int_equal(create_with(&dir, "i", 0, 0, &d), VOLUME_ERR_ROFS);
}

static void resign(const struct got *l, void (*change)(struct stripe_handle *h), const struct stripe_keys *k, char ret[STRIPE_HANDLE_BYTES])
{
	struct stripe_handle h;

	assert_int_equal(stripe_handle_read(&keys, l->stripes[0].handle, &h), 0);
	if (change)
		change(&h);
	stripe_handle_make(k, &h, ret);
}

static void make_expired(struct stripe_handle *h)
{
	h->expiry = (uint64_t)time(NULL) - 60;
}

static void make_readable(struct stripe_handle *h)
{
	h->rights = STRIPE_MAY_READ;
}

static void make_newer(struct stripe_handle *h)
{
	h->epoch++;
}

static void make_foreign(struct stripe_handle *h)
{
	h->volume++;
}

static void make_other_stripe(struct stripe_handle *h)
{
	h->name.stripe = 3;
}

static void make_other_server(struct stripe_handle *h)
{
	h->server ^= 2;
}

static void make_other_object(struct stripe_handle *h)
{
	h->name.object[15] ^= 1;
}

static void reports(void **state)
{
	static const struct {
		void (*change)(struct stripe_handle *h);
		volume_status status;
	} bad[] = {
		{ make_expired, VOLUME_ERR_OLDEPOCH },	  { make_readable, VOLUME_ERR_ACCES },
		{ make_newer, VOLUME_ERR_OLDEPOCH },	  { make_foreign, VOLUME_ERR_ACCES },
		{ make_other_stripe, VOLUME_ERR_ACCES }, { make_other_object, VOLUME_ERR_ACCES },
		{ make_other_server, VOLUME_ERR_ACCES },
	};
	static const struct stripe_keys forged = { .v = { { 1, 2 } }, .n = 1 };
	char handle[STRIPE_HANDLE_BYTES];
	struct nfs_fh fh;
	struct stat st;
	struct got l;
	uint64_t bytes = 0;

	(void)state;
	create_file("f", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(report(&fh, l.stripes[2].handle, 5000, &bytes), VOLUME_OK);
	assert_int_equal(bytes, 5000);
	assert_false(atomic_load(&unsynced));
	assert_int_equal(report(&fh, l.stripes[0].handle, 10, &bytes), VOLUME_OK);
	assert_int_equal(bytes, 5000);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_size, 5000);
	assert_true(st.st_blocks <= 8); /* of the attribute */
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.bytes, 5000);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		resign(&l, bad[i].change, &keys, handle);
		assert_int_equal(report(&fh, handle, 9000, &bytes), bad[i].status);
	}
	resign(&l, NULL, &forged, handle);
	assert_int_equal(report(&fh, handle, 9000, &bytes), VOLUME_ERR_ACCES);
	assert_int_equal(report(&fh, l.stripes[0].handle, UINT64_C(1) << 63, &bytes), VOLUME_ERR_FBIG);
	assert_int_equal(report(&peer->root, l.stripes[0].handle, 9000, &bytes), VOLUME_ERR_NOTVOLUME);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_size, 5000);
}

static unsigned count_markers(void)
{
	DIR *d = opendir(tmp_dir_path(&peer->dir, "e0/writers"));
	unsigned n = 0;

	assert_non_null(d);
	for (const struct dirent *e; (e = readdir(d)) != NULL;)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static volume_status reserve(const struct nfs_fh *fh, const char *handle, uint64_t after, uint64_t bytes, uint64_t *ret_off)
{
	VOLRESERVEargs a = { .fh = vol_fh(fh), .instance = 1, .after = after, .bytes = bytes };
	VOLRESERVEres res = { 0 };
	volume_status status;

	memcpy(a.handle, handle, sizeof(a.handle));
	status = call(VOLUMEPROC_RESERVE, (xdrproc_t)xdr_VOLRESERVEargs, &a, (xdrproc_t)xdr_VOLRESERVEres, &res);
	if (status == VOLUME_OK)
		*ret_off = res.VOLRESERVEres_u.resok.offset;
	return status;
}

/* A range begins at the end of the file, which it becomes a part of, and where its client wants it at the earliest. */
static void ranges(void **state)
{
	static const struct {
		void (*change)(struct stripe_handle *h);
		volume_status status;
	} bad[] = {
		{ make_expired, VOLUME_ERR_OLDEPOCH }, { make_readable, VOLUME_ERR_ACCES }, { make_newer, VOLUME_ERR_OLDEPOCH },
		{ make_other_object, VOLUME_ERR_ACCES },
	};
	static const struct stripe_keys forged = { .v = { { 1, 2 } }, .n = 1 };
	char handle[STRIPE_HANDLE_BYTES];
	uint64_t off = 0;
	struct nfs_fh fh;
	struct stat st;
	struct got l;

	(void)state;
	create_filled("f", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(reserve(&fh, l.stripes[1].handle, 0, 500, &off), VOLUME_OK);
	assert_int_equal(off, 1000);
	assert_false(atomic_load(&unsynced));
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_size, 1500);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, 1499, 1, &off), VOLUME_OK);
	assert_int_equal(off, 1500);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, 2000, 1, &off), VOLUME_OK);
	assert_int_equal(off, 2000);
	assert_int_equal(count_markers(), 0); /* it needs no lease */
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		resign(&l, bad[i].change, &keys, handle);
		assert_int_equal(reserve(&fh, handle, 0, 1, &off), bad[i].status);
	}
	resign(&l, NULL, &forged, handle);
	assert_int_equal(reserve(&fh, handle, 0, 1, &off), VOLUME_ERR_ACCES);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, 0, 0, &off), VOLUME_ERR_INVAL);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, 0, INT64_MAX, &off), VOLUME_ERR_FBIG);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, UINT64_MAX, 1, &off), VOLUME_ERR_FBIG);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, 0, UINT64_MAX, &off), VOLUME_ERR_FBIG);
	assert_int_equal(reserve(&peer->root, l.stripes[0].handle, 0, 1, &off), VOLUME_ERR_NOTVOLUME);
	/* no server replies that could say what another client has written */
	assert_int_equal(get_lease(&fh, BOTH, (volume_lease){ 1, 1 }, &l), VOLUME_OK);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, 0, 1, &off), VOLUME_OK);
	assert_int_equal(get_lease(&fh, BOTH, (volume_lease){ 2, 1 }, &l), VOLUME_OK);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, 0, 1, &off), VOLUME_ERR_IO);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_size, 2002);
}

/* LAYOUT and REPORT begin and renew the lease of their instance, and only the last report ends it. */
static void leases(void **state)
{
	const uint32_t wrote = VOLUME_REPORT_WROTE, last = VOLUME_REPORT_LAST;
	VOLREPORTresok ok;
	struct nfs_fh fh;
	struct got l;

	(void)state;
	create_file("f", &fh);
	assert_int_equal(get_lease(&fh, STRIPE_MAY_READ, (volume_lease){ 7, 1 }, &l), VOLUME_ERR_INVAL);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.lease, 0);
	assert_int_equal(report_how(&fh, l.stripes[0].handle, (volume_lease){ 0, 0 }, wrote, 10, &ok), VOLUME_OK);
	assert_int_equal(ok.lease, 0);
	assert_int_equal(count_markers(), 0);
	assert_int_equal(get_lease(&fh, BOTH, (volume_lease){ 7, 1 }, &l), VOLUME_OK);
	assert_int_equal(l.ok.lease, 30000);
	assert_int_equal(count_markers(), 1);
	assert_int_equal(report_how(&fh, l.stripes[0].handle, (volume_lease){ 7, 4 }, last | 4, 20, &ok), VOLUME_ERR_INVAL);
	assert_int_equal(report_how(&fh, l.stripes[0].handle, (volume_lease){ 7, 4 }, last, 20, &ok), VOLUME_OK);
	assert_true(ok.bytes == 10 && ok.lease == 0);
	assert_int_equal(count_markers(), 0);
	assert_int_equal(report_how(&fh, l.stripes[0].handle, (volume_lease){ 7, 5 }, wrote, 20, &ok), VOLUME_OK);
	assert_true(ok.bytes == 20 && ok.lease == 30000);
	assert_int_equal(count_markers(), 1);
	assert_int_equal(report_how(&fh, l.stripes[0].handle, (volume_lease){ 7, 4 }, last, 20, &ok), VOLUME_OK); /* late */
	assert_int_equal(count_markers(), 1);
	assert_int_equal(report_how(&fh, l.stripes[0].handle, (volume_lease){ 7, 6 }, wrote | last, 30, &ok), VOLUME_OK);
	assert_true(ok.bytes == 30 && ok.lease == 0);
	assert_int_equal(count_markers(), 0);
}

/* A report of a writer sets mtime, also if the file is as long already. */
static void reports_set_mtime(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct nfs_fh fh;
	struct stat st;
	struct got l;
	uint64_t bytes;

	(void)state;
	create_filled("f", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(utimensat(AT_FDCWD, path_of("f"), old, 0), 0);
	assert_int_equal(report(&fh, l.stripes[0].handle, 1, &bytes), VOLUME_OK);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_atim.tv_sec, 1000);
	assert_true(st.st_mtim.tv_sec > 1000);
}

static void contents_are_not_here(void **state)
{
	ALLOCATE3args alloc = { .length = 10 };
	ALLOCATE3res alloc_res = { 0 };
	SEEK3args seek = { .offset = 0 };
	SEEK3res seek_res = { 0 };
	char buf[16] = "";
	struct nfs_fh fh;
	WRITE3resok ok;
	uint32_t n;
	bool eof;

	(void)state;
	create_filled("f", &fh);
	assert_int_equal(nfs_peer_read(peer, &fh, 0, buf, 10, &n, &eof), NFS3ERR_IO); /* their servers are not there */
	assert_int_equal(nfs_peer_write(peer, &fh, 0, buf, 10, FILE_SYNC, &ok), NFS3ERR_IO);
	alloc.object = seek.object = nfs_peer_fh(&fh);
	assert_int_equal(nfs_peer_rpc(peer, LEAT_SPACE, LEAT_SPACE_V1, SPACEPROC_ALLOCATE, (xdrproc_t)xdr_ALLOCATE3args, &alloc,
				      (xdrproc_t)xdr_ALLOCATE3res, &alloc_res, NULL, 0), 0);
	assert_int_equal(alloc_res.status, NFS3ERR_NOTSUPP);
	assert_int_equal(nfs_peer_rpc(peer, LEAT_SPACE, LEAT_SPACE_V1, SPACEPROC_SEEK, (xdrproc_t)xdr_SEEK3args, &seek,
				      (xdrproc_t)xdr_SEEK3res, &seek_res, NULL, 0), 0);
	assert_int_equal(seek_res.status, NFS3ERR_NOTSUPP);
}

/* No stripe server is there: what is to be done on them stays pending, and everything else is done. */
static void sizes_and_names(void **state)
{
	struct nfs_fh fh, empty, again;
	struct stat st;
	struct got l;

	(void)state;
	create_filled("f", &fh);
	create_file("empty", &empty);
	assert_int_equal(set_size(&fh, 2000), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_true(l.ok.epoch == 1 && l.ok.bytes == 2000); /* growing needs no new epoch */
	assert_int_equal(set_size(&fh, 500), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_true(l.ok.epoch == 2 && l.ok.bytes == 500);
	assert_int_equal(set_size(&fh, 400), NFS3ERR_JUKEBOX); /* the first cut is not complete */
	assert_int_equal(set_size(&fh, 800), NFS3_OK);
	assert_int_equal(set_size(&empty, 0), NFS3_OK);
	assert_int_equal(create_how("f", UNCHECKED, false, 0, &again), NFS3_OK);
	assert_int_equal(create_how("empty", UNCHECKED, true, 0, &again), NFS3_OK);
	assert_int_equal(create_how("new", UNCHECKED, true, 77, &again), NFS3_OK);
	assert_int_equal(stat(path_of("new"), &st), 0);
	assert_int_equal(st.st_size, 77);
	assert_int_equal(create_how("new", UNCHECKED, true, 0, &again), NFS3_OK);
	assert_int_equal(get_layout(&again, BOTH, &l), VOLUME_OK);
	assert_true(l.ok.epoch == 2 && !l.ok.bytes);
	assert_int_equal(rename_file("empty", "f"), NFS3_OK);
	assert_int_equal(remove_file("new"), NFS3_OK);
	assert_int_equal(get_layout(&again, BOTH, &l), VOLUME_ERR_STALE);
	assert_int_equal(link_file(&again, "back"), NFS3ERR_STALE);
}

/* A report with a handle from before a cut does not raise the size again. */
static void reports_of_old_epochs(void **state)
{
	struct nfs_fh fh;
	struct got l;
	uint64_t bytes;

	(void)state;
	create_filled("f", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(set_size(&fh, 0), NFS3_OK);
	assert_int_equal(report(&fh, l.stripes[0].handle, 5000, &bytes), VOLUME_ERR_OLDEPOCH);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.bytes, 0);
	assert_int_equal(report(&fh, l.stripes[0].handle, 5000, &bytes), VOLUME_OK);
}

#define REFUSED(text)                                                                              \
	do {                                                                                       \
		assert_int_not_equal(reload(why), 0);                                              \
		if (!strstr(why, text))                                                            \
			fail_msg("%s, not %s", why, text);                                         \
	} while (0)

static void reload_is_checked(void **state)
{
	char why[512];
	struct nfs_fh fh;
	struct got l;

	(void)state;
	create_file("f", &fh);
	write_map("nonsense\n");
	REFUSED("line 1: neither a section nor key = value");
	write_map("volume = 1122334455667789\nversion = 6\n" SERVERS);
	REFUSED("it is of volume 1122334455667789, and the key of 1122334455667788");
	write_map(VOLUME_LINE "version = 4\n" SERVERS);
	REFUSED("its version, 4, is older than the one in force, 5");
	write_map(VOLUME_LINE "version = 5\n" SERVERS);
	REFUSED("its servers have changed, and its version, 5, has not");
	write_map(MAP);
	options = "width=5";
	REFUSED("width=5: there are 4 servers");
	options = "stripe=1M";
	write_key(VOLUME_LINE KEY, 0640);
	REFUSED("mode 0600");
	write_key("volume = 1122334455667789\n" KEY, 0600);
	write_map("volume = 1122334455667789\nversion = 6\n" SERVERS);
	REFUSED("until now it is of volume 1122334455667788");
	assert_int_equal(unlink(tmp_dir_path(&peer->dir, "map")), 0);
	assert_int_equal(mkdir(tmp_dir_path(&peer->dir, "map"), 0700), 0);
	REFUSED("not a regular file");
	assert_int_equal(rmdir(tmp_dir_path(&peer->dir, "map")), 0);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.map, 5);
	check_handles(&l, BOTH);
	write_key(VOLUME_LINE KEY, 0600);
	write_map(VOLUME_LINE "version = 6\n[server 4]\nurl = tcp://10.0.0.9\n");
	options = "stripe=128K,width=1";
	assert_int_equal(reload(why), 0);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.map, 6);
	assert_int_equal(l.ok.stripes.stripes_len, 3);
	create_file("g", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.unit, 128 << 10);
	assert_int_equal(l.ok.stripes.stripes_len, 1);
	assert_int_equal(l.stripes[0].server, 4);
}

/* A new key signs, and what the old one has signed stays valid until it goes. */
static void key_changes(void **state)
{
	char why[512];
	struct nfs_fh fh, newer;
	struct got old, l;
	struct stripe_handle h;
	uint64_t bytes;

	(void)state;
	create_file("f", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &old), VOLUME_OK);
	write_key(VOLUME_LINE OTHER_KEY KEY, 0600);
	assert_int_equal(reload(why), 0);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(stripe_handle_read(&keys, l.stripes[0].handle, &h), -EBADF);
	assert_int_equal(report(&fh, old.stripes[0].handle, 1, &bytes), VOLUME_OK);
	create_file("g", &newer);
	write_key(VOLUME_LINE OTHER_KEY, 0600);
	assert_int_equal(reload(why), 0);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_ERR_LAYOUT);
	assert_int_equal(report(&fh, old.stripes[0].handle, 2, &bytes), VOLUME_ERR_ACCES);
	assert_int_equal(get_layout(&newer, BOTH, &l), VOLUME_OK);
}

static void no_server_is_left(void **state)
{
	char why[512];
	struct nfs_fh fh;
	struct stat st;

	(void)state;
	write_map(VOLUME_LINE "version = 6\n[server 1]\nurl = tcp://10.0.0.1\nstate = out\n");
	assert_int_equal(reload(why), 0);
	assert_int_equal(nfs_peer_create_file(peer, &peer->root, "f", &fh), NFS3ERR_NOSPC);
	assert_int_not_equal(stat(path_of("f"), &st), 0);
}

/* Of one directory there is one manager, also while a reload has two of them for a moment; and a restart finds it all. */
static void one_manager(void **state)
{
	struct conf *conf = malloc(sizeof(*conf));
	struct server *second = NULL;
	struct nfs_fh fh;
	char why[512];
	struct got before, l;

	(void)state;
	assert_non_null(conf);
	create_file("f", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &before), VOLUME_OK);
	conf_init(conf);
	conf->nexports = 1;
	tune(conf);
	assert_int_equal(server_start(conf, &second), -EBUSY);
	conf_fini(conf);
	free(conf);
	assert_int_equal(reload(why), 0);
	nfs_peer_stop(peer);
	nfs_peer_start(peer);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_memory_equal(l.ok.object, before.ok.object, STRIPE_OBJECT_BYTES);
}

/* The largest map is a reply of more than 256 KiB. */
static void largest_map(void **state)
{
	size_t room = 512 << 10, n;
	char *text = malloc(room), why[512], path[VOLUME_URL_MAX];
	VOLMAPres res;
	const VOLMAPresok *ok = &res.VOLMAPres_u.resok;

	(void)state;
	assert_non_null(text);
	memset(path, 'p', sizeof(path));
	n = (size_t)snprintf(text, room, VOLUME_LINE "version = 6\n");
	for (unsigned i = 1; i <= VOLUME_SERVERS_MAX; i++)
		n += (size_t)snprintf(text + n, room - n, "[server %u]\nurl = local:///%.*s%03u\n", i, VOLUME_URL_MAX - 12, path, i);
	write_map(text);
	assert_int_equal(reload(why), 0);
	assert_int_equal(get_map(&peer->root, &res), VOLUME_OK);
	assert_int_equal(ok->servers.servers_len, VOLUME_SERVERS_MAX);
	assert_int_equal(ok->width, VOLUME_SERVERS_MAX);
	assert_int_equal(strlen(ok->servers.servers_val[255].url), VOLUME_URL_MAX);
	assert_non_null(strstr(ok->servers.servers_val[255].url, "p256"));
	xdr_free((xdrproc_t)xdr_VOLMAPres, (char *)&res);
	free(text);
}

/* One leatd may be manager and stripe server. */
static void both_in_one(void **state)
{
	char why[512], data[] = "contents of a stripe", map[512];
	struct iovec iov = { data, sizeof(data) };
	STRIPEWRITEargs a = { .at.lane = { .instance = 1, .incarnation = 1 }, .sync = TRUE,
			      .data = { .length = sizeof(data), .iov = &iov, .iovcnt = 1 } };
	STRIPECHANGEres res = { 0 };
	struct nfs_fh fh;
	struct got l;
	uint64_t bytes;

	(void)state;
	tmp_dir_mkdir(&peer->dir, "s");
	has_stripes = true;
	options = "width=1";
	(void)snprintf(map, sizeof(map), VOLUME_LINE "version = 6\n[server 1]\nurl = local://%s/sock\n", peer->dir.path);
	write_map(map);
	assert_int_equal(reload(why), 0);
	create_file("f", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	memcpy(a.at.handle, l.stripes[0].handle, sizeof(a.at.handle));
	assert_int_equal(nfs_peer_rpc(peer, LEAT_STRIPES, LEAT_STRIPES_V1, STRIPEPROC_WRITE, (xdrproc_t)xdr_STRIPEWRITEargs, &a,
				      (xdrproc_t)xdr_STRIPECHANGEres, &res, NULL, 0), 0);
	assert_int_equal(res.status, STRIPE_OK);
	assert_int_equal(report(&fh, l.stripes[0].handle, sizeof(data), &bytes), VOLUME_OK);
	assert_int_equal(bytes, sizeof(data));
	/* it commands itself */
	volume_times.server = "10s";
	assert_int_equal(set_size(&fh, 5), NFS3_OK);
	volume_times.server = "20ms";
	assert_int_equal(rmdir(tmp_dir_path(&peer->dir, "e0/pending")), 0); /* it is complete */
	assert_int_equal(mkdir(tmp_dir_path(&peer->dir, "e0/pending"), 0700), 0);
	assert_int_equal(nfs_peer_rpc(peer, LEAT_STRIPES, LEAT_STRIPES_V1, STRIPEPROC_WRITE, (xdrproc_t)xdr_STRIPEWRITEargs, &a,
				      (xdrproc_t)xdr_STRIPECHANGEres, &res, NULL, 0), 0);
	assert_int_equal(res.status, STRIPE_ERR_FENCED);
	a.at.handle[30] ^= 1;
	assert_int_equal(nfs_peer_rpc(peer, LEAT_STRIPES, LEAT_STRIPES_V1, STRIPEPROC_WRITE, (xdrproc_t)xdr_STRIPEWRITEargs, &a,
				      (xdrproc_t)xdr_STRIPECHANGEres, &res, NULL, 0), 0);
	assert_int_equal(res.status, STRIPE_ERR_BADHANDLE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_local, nfs_peer_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(map_of_a_volume, setup_tcp, nfs_peer_teardown),
		TEST(map_of_a_volume),	     TEST(each_mode_of_create), TEST(rights_of_the_caller), TEST(set_id_bits), TEST(read_only),
		TEST(copied_and_damaged),    TEST(recycled_inode),	TEST(heals),		    TEST(no_generation), TEST(defaults_of_directories),
		TEST(sets_defaults),
		TEST(reports),		     TEST(leases),		TEST(ranges),
		TEST(reports_set_mtime),	TEST(contents_are_not_here), TEST(sizes_and_names), TEST(reports_of_old_epochs),
		TEST(reload_is_checked),     TEST(key_changes),		TEST(no_server_is_left),    TEST(one_manager),
		TEST(largest_map),	     TEST(both_in_one),
		cmocka_unit_test_setup_teardown(largest_map, setup_tcp, nfs_peer_teardown),
	};

	/* no stripe server is there */
	volume_times = (struct volume_times){ .server = "20ms", .away_ns = 60 * NS_PER_S, .retry_ns = 60 * NS_PER_S };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
