/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh.c - file handles: they identify files for clients
 *
 * Operation: On the wire, at most 64 bytes:
 *
 *            version 1 | kind | body bytes | key id | export u32 | body ... | signature u64
 *
 *            FH_KERNEL  body = type u32 and bytes of the kernel's own handle, which finds the file
 *                       by number wherever it was moved to, and over restarts. It could find any
 *                       file of the file system, exported or not: hence the signature. Only handles
 *                       that a lookup below an export's root has returned are ever opened.
 *            FH_MAP     body = device, inode, generation and serial u64 each. It identifies the
 *                       file but has no path. The map has names that lead there. Each open walks
 *                       from the root without following links or crossing mounts, and accepts only
 *                       the very file that the handle was made for. After a rename by a local
 *                       process the handle is STALE until a client looks the file up under its new
 *                       name. The file then has its old handle again; so it has if the map is lost.
 * Memory:    handles are values; a struct fh_obj owns its O_PATH descriptor.
 * Threads:   any. Opening needs the server's own rights (creds.c is not in force); looking up uses those
 *            of the thread.
 * Errors:    -EBADF is NFS3ERR_BADHANDLE: the signature is wrong. A handle signed with a key that is no
 *            longer accepted is stale, because its client did nothing wrong.
 */
#include "fh.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/kernel_handle.h"
#include "base/wire.h"
#include "dir_watch.h"
#include "fh_inside.h"
#include "fh_int.h"
#include "fh_map.h"

#define FH_VERSION 1
#define FH_STRIPPED 0x10 /* and the kind: the first byte of what fh_strip() returns. It is no FH_VERSION */
#define MAP_BODY_BYTES 32u
#define RETRIES 16
#define LOOKED_MAX 256u /* limit of names tried for one file */

static int sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags, .resolve = resolve };
	long fd = -1;

	/* EAGAIN: a concurrent rename made the walk unreliable; retry */
	for (int i = 0; i < RETRIES; i++) {
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd >= 0 ? (int)fd : -errno;
}

#define WALK_RESOLVE                                                                               \
	(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

static int stat_fd(int fd, struct statx *ret)
{
	return dir_watch_statx(fd, "", AT_EMPTY_PATH, ret);
}

/* ---- wire form ---------------------------------------------------------------------------- */

static void seal(const struct fh_set *s, const struct export *exp, enum fh_kind kind,
		 const void *body, uint32_t body_len, struct fh *ret)
{
	uint8_t *p = ret->data;

	memset(ret, 0, sizeof(*ret));
	p[0] = FH_VERSION;
	p[1] = (uint8_t)kind;
	p[2] = (uint8_t)body_len;
	p[3] = s->key_ids[0];
	put_be32(p + 4, exp->id);
	memcpy(p + FH_HEAD_BYTES, body, body_len);
	put_be64(p + FH_HEAD_BYTES + body_len, siphash(&s->keys.v[0], p, FH_HEAD_BYTES + body_len));
	ret->len = FH_HEAD_BYTES + body_len + FH_MAC_BYTES;
}

/* -ESTALE: signed with an unknown key */
static int check_signature(const struct fh_set *s, const uint8_t *p, uint32_t signed_bytes)
{
	uint64_t mac = get_be64(p + signed_bytes);
	int err = -ESTALE;

	for (unsigned i = 0; i < s->keys.n; i++) {
		if (p[3] != s->key_ids[i])
			continue;
		if (mac == siphash(&s->keys.v[i], p, signed_bytes))
			return 0;
		err = -EBADF;
	}
	return err;
}

static int unseal(const struct fh_set *s, const void *data, uint32_t len, struct export **ret,
		  const uint8_t **ret_body, uint32_t *ret_len)
{
	const uint8_t *p = data;
	uint32_t body_len;
	struct export *exp;
	int err;

	if (len < FH_HEAD_BYTES + FH_MAC_BYTES || len > FH_MAX || p[0] != FH_VERSION)
		return -EBADF;
	body_len = p[2];
	if (len != FH_HEAD_BYTES + body_len + FH_MAC_BYTES)
		return -EBADF;
	err = check_signature(s, p, FH_HEAD_BYTES + body_len);
	if (err)
		return err;
	exp = export_find_id(s->exports, get_be32(p + 4));
	if (!exp || exp->fh_kind != p[1])
		return -ESTALE;
	*ret = exp;
	*ret_body = p + FH_HEAD_BYTES;
	*ret_len = body_len;
	return 0;
}

int fh_export(struct fh_set *s, const void *data, uint32_t len, struct export **ret)
{
	const uint8_t *body;
	uint32_t body_len;

	return unseal(s, data, len, ret, &body, &body_len);
}

/* ---- the two kinds ------------------------------------------------------------------------ */

/* Distinguishes a file from a later one with the same number. The kernel's handle contains the generation and can be
 * read without privilege; otherwise the birth time is used. Device numbers change at reboot, so the device is part of
 * the key only if the file is in another file system than the root. */
static struct fh_map_key map_key(const struct export *exp, int fd, const char *name,
				 const struct statx *stx)
{
	static const struct siphash_key plain = { 1, 2 };
	struct fh_map_key key = { .ino = stx->stx_ino, .exp = exp->id };
	union kernel_handle kh;
	int mount;

	if (!kernel_handle_get(fd, name, &kh, &mount)) {
		key.gen = siphash(&plain, kh.h.f_handle, MIN(kh.h.handle_bytes, MAX_HANDLE_SZ));
		return key;
	}
	if (stx_dev(stx) != exp->backing.dev)
		key.dev = stx_dev(stx);
	if (stx->stx_mask & STATX_BTIME)
		key.gen = (uint64_t)stx->stx_btime.tv_sec * 1000000000u + stx->stx_btime.tv_nsec;
	return key;
}

static int make_kernel(const struct fh_set *s, const struct export *exp, int fd, const char *name,
		       struct fh *ret)
{
	uint8_t body[FH_BODY_MAX];
	union kernel_handle kh;
	int mount, err = kernel_handle_get(fd, name, &kh, &mount);

	if (err)
		return err;
	if (mount != exp->mount_id) /* something was mounted there since it was looked at */
		return -EXDEV;
	if (kh.h.handle_bytes > FH_KERNEL_MAX)
		return -EOVERFLOW;
	put_be32(body, (uint32_t)kh.h.handle_type);
	memcpy(body + 4, kh.h.f_handle, kh.h.handle_bytes);
	seal(s, exp, FH_KERNEL, body, 4 + kh.h.handle_bytes, ret);
	return 0;
}

static int make_map(struct fh_set *s, const struct export *exp, uint64_t node, struct fh *ret)
{
	uint8_t body[MAP_BODY_BYTES];
	struct fh_map_key key;
	uint64_t serial;
	int err = fh_map_key_of(s->map, node, &key, &serial);

	if (err)
		return err;
	put_be64(body, key.dev);
	put_be64(body + 8, key.ino);
	put_be64(body + 16, key.gen);
	put_be64(body + 24, serial);
	seal(s, exp, FH_MAP, body, sizeof(body), ret);
	return 0;
}

/* Adds @name in @dir to the map; the file is @fd_name in @fd. */
static int add_name(struct fh_set *s, const struct fh_obj *dir, const char *name, int fd, const char *fd_name,
		    const struct statx *stx, uint64_t *ret_node)
{
	const struct fh_map_key key = map_key(dir->exp, fd, fd_name, stx);

	return fh_map_add(s->map, dir->node, name, S_ISDIR(stx->stx_mode), &key, ret_node);
}

static int open_kernel(struct export *exp, const uint8_t *body, uint32_t len, struct fh_obj *o)
{
	union kernel_handle kh;

	if (len < 4 || len > FH_BODY_MAX)
		return -EBADF;
	memset(&kh, 0, sizeof(kh));
	kh.h.handle_bytes = len - 4;
	kh.h.handle_type = (int)get_be32(body);
	memcpy(kh.h.f_handle, body + 4, len - 4);
	/* ext4 also returns ENOMEM while another file with the same number is being created */
	for (int i = 0; i < RETRIES; i++) {
		o->fd = open_by_handle_at(exp->root_fd, &kh.h, FH_WALK_FLAGS);
		if (o->fd >= 0 || errno != ENOMEM)
			break;
		(void)sched_yield();
	}
	if (o->fd < 0) /* EINVAL: the file system no longer accepts the handle format */
		return errno == EINVAL || errno == ENOENT ? -ESTALE : -errno;
	return 0;
}

/* one system call, except for paths longer than the system accepts at once */
static int walk(int root_fd, char *path)
{
	int fd = root_fd, next;

	for (;;) {
		char *cut = NULL;

		if (strlen(path) >= PATH_MAX) {
			cut = path + PATH_MAX - 1;
			while (*cut != '/') /* names are shorter: fh_log.c limits those of its file */
				cut--;
			*cut = '\0';
		}
		next = sys_openat2(fd, *path ? path : ".", FH_WALK_FLAGS, WALK_RESOLVE);
		if (fd != root_fd)
			close(fd);
		if (next < 0 || !cut)
			return next;
		*cut = '/';
		fd = next;
		path = cut + 1;
	}
}

/* the file may have moved, or the name means another file */
static bool says_moved(int err)
{
	return err == -ENOENT || err == -ENOTDIR || err == -ELOOP || err == -EXDEV;
}

static int open_one_way(struct export *exp, struct fh_map_path *path, struct fh_obj *o)
{
	struct fh_map_key key;
	int err;

	o->fd = walk(exp->root_fd, path->text);
	if (o->fd < 0)
		return o->fd;
	err = stat_fd(o->fd, &o->stx);
	if (!err) {
		key = map_key(exp, o->fd, "", &o->stx);
		if (!memcmp(&key, &path->key, sizeof(key)))
			return 0;
		err = -ENOENT;
	}
	close(o->fd);
	o->fd = -1;
	return err;
}

static int open_node(struct fh_set *s, struct export *exp, uint64_t node, struct fh_obj *o)
{
	for (unsigned nth = 0;; nth++) {
		struct fh_map_path path;
		int err = fh_map_path(s->map, node, nth, &path);

		if (err == -ENOTDIR)
			continue;
		if (err)
			return err == -ENOENT ? -ESTALE : err;
		err = open_one_way(exp, &path, o);
		free(path.text);
		if (!err) {
			o->node = node;
			return 0;
		}
		if (!says_moved(err))
			return err;
	}
}

/* ---- files removed by other processes ----------------------------------------------------- */

static bool leads_there(struct export *exp, struct fh_map_path *path, int *ret_err)
{
	struct fh_obj o = { .fd = -1 };

	*ret_err = open_one_way(exp, path, &o);
	fh_close(&o);
	return !*ret_err;
}

/* A name is wrong if it does not lead to the file although its directory is still in place. If the directory moved,
 * is below a mount or is not readable, the name is undecided. */
static bool is_wrong(struct fh_set *s, struct export *exp, const struct fh_map_path *path, int err)
{
	struct fh_map_path dir;
	bool there;

	if (!says_moved(err) || err == -EXDEV || fh_map_path(s->map, path->parent, 0, &dir))
		return false;
	there = leads_there(exp, &dir, &err);
	free(dir.text);
	return there;
}

/* Looks for the file of a node under all its names. Wrong names after a good one are dropped; if all are wrong, the
 * node may be. */
static void look_for(struct fh_set *s, struct export *exp, uint64_t node)
{
	bool found = false, unsure = false;
	unsigned nth = 0;
	int err = 0;

	for (unsigned i = 0; i < LOOKED_MAX; i++) {
		struct fh_map_path path;
		bool there, wrong;
		int why;

		err = fh_map_path(s->map, node, nth, &path);
		if (err && err != -ENOTDIR)
			break;
		if (!err) {
			there = leads_there(exp, &path, &why);
			wrong = !there && is_wrong(s, exp, &path, why);
			found |= there;
			unsure |= !there && !wrong;
			if (wrong && found) {
				fh_map_drop(s->map, node, path.parent, path.last);
				nth--; /* the next one has moved into this place */
			}
			free(path.text);
		}
		nth++;
	}
	if (found || (err == -ENOENT && !unsure))
		fh_map_looked(s->map, node, found);
}

/* As the map grows, checks older nodes and drops files that other processes removed. */
static void forget_removed(struct fh_set *s)
{
	for (size_t n = fh_map_due(s->map); n; n--) {
		uint64_t id, node = fh_map_next(s->map, &id);
		struct export *exp = node ? export_find_id(s->exports, (uint32_t)id) : NULL;

		if (exp && exp->fh_kind == FH_MAP)
			look_for(s, exp, node);
	}
}

static int open_map(struct fh_set *s, struct export *exp, const uint8_t *body, uint32_t len,
		    struct fh_obj *o)
{
	struct fh_map_key key = { .exp = exp->id };
	uint64_t node;

	if (len != MAP_BODY_BYTES)
		return -EBADF;
	key.dev = get_be64(body);
	key.ino = get_be64(body + 8);
	key.gen = get_be64(body + 16);
	node = fh_map_find(s->map, &key, get_be64(body + 24));
	return node ? open_node(s, exp, node, o) : -ESTALE;
}

/* Passes on a file that was found, or closes what @err has left of it. */
static int give(int err, struct fh_obj *o, struct fh_obj *ret)
{
	if (err)
		fh_close(o);
	else
		*ret = *o;
	return err;
}

/* Finds the file that @body identifies in o->exp. */
static int open_body(struct fh_set *s, const uint8_t *body, uint32_t len, struct fh_obj *o)
{
	int err;

	if (o->exp->fh_kind == FH_KERNEL) {
		err = open_kernel(o->exp, body, len, o);
		if (!err)
			err = stat_fd(o->fd, &o->stx);
		if (!err && !o->stx.stx_nlink)
			err = -ESTALE; /* removed, but still open in some process */
		return err;
	}
	forget_removed(s);
	return open_map(s, o->exp, body, len, o);
}

int fh_open(struct fh_set *s, const void *data, uint32_t len, struct fh_obj *ret)
{
	struct fh_obj o = { .fd = -1 };
	const uint8_t *body;
	uint32_t body_len;
	int err;

	err = unseal(s, data, len, &o.exp, &body, &body_len);
	if (err)
		return err;
	err = open_body(s, body, body_len, &o);
	if (!err && S_ISDIR(o.stx.stx_mode))
		err = fh_inside(s->proc_fd, o.exp, o.fd, o.fd, NULL);
	return give(err, &o, ret);
}

void fh_strip(const struct fh *h, struct fh *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->len = 1 + h->data[2];
	ret->data[0] = FH_STRIPPED | h->data[1];
	memcpy(ret->data + 1, h->data + FH_HEAD_BYTES, h->data[2]);
}

int fh_open_stripped(struct fh_set *s, uint32_t id, const struct fh *h, struct fh_obj *ret)
{
	struct fh_obj o = { .exp = export_find_id(s->exports, id), .fd = -1 };

	if (!o.exp)
		return -ESTALE;
	if (!h->len || h->len > FH_MAX || h->data[0] != (FH_STRIPPED | o.exp->fh_kind))
		return -EBADMSG;
	return give(open_body(s, h->data + 1, h->len - 1, &o), &o, ret);
}

int fh_open_root(struct fh_set *s, struct export *exp, struct fh_obj *ret)
{
	struct fh_obj o = { .exp = exp };
	struct fh_map_key key;
	int err;

	o.fd = sys_openat2(exp->root_fd, ".", FH_WALK_FLAGS, WALK_RESOLVE);
	if (o.fd < 0)
		return o.fd;
	err = stat_fd(o.fd, &o.stx);
	if (!err && exp->fh_kind == FH_MAP) {
		key = map_key(exp, o.fd, "", &o.stx);
		err = fh_map_root(s->map, &key, &o.node);
	}
	return give(err, &o, ret);
}

static bool is_root(const struct fh_obj *o)
{
	return o->stx.stx_ino == o->exp->backing.ino && stx_dev(&o->stx) == o->exp->backing.dev;
}

static int lookup_parent(struct fh_set *s, const struct fh_obj *dir, struct fh_obj *o)
{
	if (is_root(dir))
		return fh_open_root(s, dir->exp, o);
	if (dir->exp->fh_kind == FH_MAP) {
		uint64_t parent = fh_map_parent(s->map, dir->node);

		return parent ? open_node(s, dir->exp, parent, o) : -ESTALE;
	}
	o->fd = openat(dir->fd, "..", FH_WALK_FLAGS | O_DIRECTORY);
	if (o->fd < 0)
		return -errno;
	return stat_fd(o->fd, &o->stx);
}

static int lookup_child(struct fh_set *s, const struct fh_obj *dir, const char *name,
			struct fh_obj *o)
{
	int err;

	o->fd = sys_openat2(dir->fd, name, FH_WALK_FLAGS, WALK_RESOLVE);
	if (o->fd < 0)
		return o->fd == -EXDEV ? -EACCES : o->fd;
	err = stat_fd(o->fd, &o->stx);
	if (err || dir->exp->fh_kind != FH_MAP)
		return err;
	if (!strcmp(name, ".")) {
		o->node = dir->node;
		return 0;
	}
	err = add_name(s, dir, name, o->fd, "", &o->stx, &o->node);
	if (!err)
		fh_map_keep(s->map);
	return err;
}

int fh_lookup(struct fh_set *s, const struct fh_obj *dir, const char *name, struct fh_obj *ret)
{
	struct fh_obj o = { .exp = dir->exp, .fd = -1 };
	int err;

	if (!S_ISDIR(dir->stx.stx_mode))
		return -ENOTDIR;
	err = strcmp(name, "..") ? lookup_child(s, dir, name, &o) : lookup_parent(s, dir, &o);
	if (!err)
		err = fh_inside(s->proc_fd, dir->exp, strcmp(name, "..") ? dir->fd : o.fd, o.fd,
				name);
	return give(err, &o, ret);
}

int fh_lookup_cached(struct fh_set *s, const struct fh_obj *dir, const char *name,
		     struct fh_obj *ret)
{
	struct open_how how = { .flags = FH_WALK_FLAGS, .resolve = WALK_RESOLVE | RESOLVE_CACHED };
	int err;

	*ret = (struct fh_obj){ .exp = dir->exp, .fd = -1 };
	if (dir->exp->fh_kind != FH_KERNEL || !S_ISDIR(dir->stx.stx_mode))
		return -EAGAIN;
	ret->fd = (int)syscall(SYS_openat2, dir->fd, name, &how, sizeof(how));
	if (ret->fd < 0)
		return -errno;
	err = stat_fd(ret->fd, &ret->stx);
	return err ? err : fh_inside_now(s->proc_fd, dir->exp, ret->fd, name);
}

void fh_close(struct fh_obj *o)
{
	if (o && o->fd >= 0) {
		close(o->fd);
		o->fd = -1;
	}
}

int fh_make(struct fh_set *s, const struct fh_obj *o, struct fh *ret)
{
	if (o->exp->fh_kind == FH_KERNEL)
		return make_kernel(s, o->exp, o->fd, "", ret);
	return make_map(s, o->exp, o->node, ret);
}

int fh_make_at(struct fh_set *s, const struct fh_obj *dir, const char *name,
	       const struct statx *stx, struct fh *ret)
{
	uint64_t node;
	int err;

	if (dir->exp->fh_kind == FH_KERNEL)
		return make_kernel(s, dir->exp, dir->fd, name, ret);
	err = add_name(s, dir, name, dir->fd, name, stx, &node);
	return err ? err : make_map(s, dir->exp, node, ret);
}

int fh_check_dir(struct fh_set *s, const struct fh_obj *dir)
{
	return fh_inside(s->proc_fd, dir->exp, dir->fd, dir->fd, NULL);
}

int fh_check_dir_now(struct fh_set *s, const struct fh_obj *dir)
{
	return fh_inside_now(s->proc_fd, dir->exp, dir->fd, NULL);
}

void fh_keep(struct fh_set *s)
{
	if (s->map) /* no map if no export was of kind FH_MAP when these handles were created */
		fh_map_keep(s->map);
}

bool fh_has_name(const struct fh_obj *o, const struct fh_obj *dir, const char *name)
{
	struct stat st;

	return !fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_ino == o->stx.stx_ino &&
	       st.st_dev == stx_dev(&o->stx);
}

void fh_note_moved(struct fh_set *s, const struct fh_obj *o, const struct fh_obj *from,
		   const char *from_name, const struct fh_obj *to, const char *to_name)
{
	uint64_t node;
	int err;

	if (o->exp->fh_kind != FH_MAP || !o->node)
		return;
	err = add_name(s, to, to_name, o->fd, "", &o->stx, &node);
	/* Without memory for the name, the next lookup adds it. A rename between two names of one file removes neither. */
	if (!err && !fh_has_name(o, from, from_name))
		fh_map_drop(s->map, node, from->node, from_name);
	fh_map_keep(s->map);
}

void fh_note_unlinked(struct fh_set *s, const struct fh_obj *o, const struct fh_obj *dir,
		      const char *name, bool gone)
{
	if (o->exp->fh_kind != FH_MAP || !o->node)
		return;
	if (gone)
		fh_map_gone(s->map, o->node);
	else if (!fh_has_name(o, dir, name))
		fh_map_drop(s->map, o->node, dir->node, name);
	fh_map_keep(s->map);
}
