/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_dir.c - READDIR and READDIRPLUS (RFC 1813 sections 3.3.16, 3.3.17)
 *
 * Operation: The kernel's d_off is the cookie. It is a position in the directory that stays valid when other entries
 *            are created and removed, so the cookie verifier is a constant. Entries are encoded as they are found,
 *            directly into the bytes of the reply. Each is measured before it is taken, so the reply never exceeds
 *            its limit.
 *
 *            list of entries: { 1 | fileid U | name s | cookie U | [poa] [pofh] } ... | 0 | eof
 *            The amount that is read of the directory depends on the room that is left. So a small reply costs little,
 *            and the cost of the whole listing is proportional to its entries. The reply has the directory's
 *            attributes from before the listing, so that a change meanwhile makes the client read it again.
 *            The file system finds the position of a cookie at once: ext4 by the hash that the cookie is, tmpfs (Linux
 *            6.6 and later) by a number that is stored with the entry.
 * Memory:    The entries are in r->room until the request ends.
 * Threads:   Workers, with the user's rights while the directory is read: credentials change once per reply, not per
 *            entry.
 * Errors:    BAD_COOKIE if the directory has no such position; TOOSMALL if not one entry fits. An entry that
 *            vanishes meanwhile is listed without attributes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/wire.h"
#include "nfs.h"
#include "nfs3_conv.h"
#include "nfs3_io.h"
#include "nfs3_meta.h"

/* status, attributes, verifier, end of the list, eof */
#define HEAD_BYTES (4u + 4u + 84u + NFS3_COOKIEVERFSIZE + 4u + 4u)
/* Bytes per getdents64(): at least a few names, and at most what fits the CPU's first caches. */
#define DENTS_BYTES_MIN (1u << 10)
#define DENTS_BYTES_MAX (32u << 10)
/* An entry is as long in a READDIR reply as in getdents64(). With attributes and a handle it is at least four times as
 * long. */
#define PLUS_PER_DENT 4u

struct listing {
	struct req *r;
	const struct fh_obj *dir;
	bool plus;
	struct wire_put out;
	uint32_t dircount_left; /* READDIRPLUS: names and numbers; a hint of the client */
	unsigned n;
	bool full;
	bool eof;
	uint64_t parent_ino; /* 0: as the directory says */
};

struct kernel_dirent { /* getdents64(2) */
	uint64_t d_ino;
	int64_t d_off;
	uint16_t d_reclen;
	uint8_t d_type;
	char d_name[];
};

static void put_time(struct wire_put *p, const nfstime3 *t)
{
	wire_put_u32(p, t->seconds);
	wire_put_u32(p, t->nseconds);
}

static void put_attr(struct wire_put *p, const struct statx *stx)
{
	fattr3 a;

	nfs3_conv_attr(stx, &a);
	wire_put_u32(p, 1);
	wire_put_u32(p, (uint32_t)a.type);
	wire_put_u32(p, a.mode);
	wire_put_u32(p, a.nlink);
	wire_put_u32(p, a.uid);
	wire_put_u32(p, a.gid);
	wire_put_u64(p, a.size);
	wire_put_u64(p, a.used);
	wire_put_u32(p, a.rdev.specdata1);
	wire_put_u32(p, a.rdev.specdata2);
	wire_put_u64(p, a.fsid);
	wire_put_u64(p, a.fileid);
	put_time(p, &a.atime);
	put_time(p, &a.mtime);
	put_time(p, &a.ctime);
}

static void put_opaque(struct wire_put *p, const void *data, uint32_t len)
{
	static const uint8_t zero[4];

	wire_put_u32(p, len);
	wire_put_bytes(p, data, len);
	wire_put_bytes(p, zero, round_up4(len) - len);
}

/* Gets attributes and handle of an entry. The user's rights are in force. Return: false if they do not suffice, or if
 * the entry is a mount point */
static bool look(struct listing *l, const char *name, struct statx *stx, struct fh *fh)
{
	bool is_dot = !strcmp(name, ".");

	if (!strcmp(name, "..")) /* its handle costs a walk, and clients do not use it here */
		return false;
	if (dir_watch_statx(l->dir->fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, stx))
		return false;
	if (stx->stx_attributes & STATX_ATTR_MOUNT_ROOT && !is_dot)
		return false;
	if (is_dot)
		return !fh_make(nfs_handles(l->r), l->dir, fh);
	return !fh_make_at(nfs_handles(l->r), l->dir, name, stx, fh);
}

static void put_plus(struct listing *l, const char *name)
{
	struct statx stx;
	struct fh fh;

	if (!look(l, name, &stx, &fh)) {
		wire_put_u32(&l->out, 0);
		wire_put_u32(&l->out, 0);
		return;
	}
	put_attr(&l->out, &stx);
	wire_put_u32(&l->out, 1);
	put_opaque(&l->out, fh.data, fh.len);
}

/* Return: false: the entry did not fit, and nothing was written */
static bool put_entry(struct listing *l, const struct kernel_dirent *d)
{
	struct wire_put before = l->out;
	uint32_t len = (uint32_t)strlen(d->d_name);
	uint32_t info = (uint32_t)(8 + 4 + round_up4(len) + 8);
	uint64_t ino = d->d_ino;

	if (l->plus && l->n && info > l->dircount_left)
		return false;
	if (l->parent_ino && !strcmp(d->d_name, ".."))
		ino = l->parent_ino;
	wire_put_u32(&l->out, 1);
	wire_put_u64(&l->out, ino);
	put_opaque(&l->out, d->d_name, len);
	wire_put_u64(&l->out, (uint64_t)d->d_off);
	if (l->plus && wire_put_ok(&l->out))
		put_plus(l, d->d_name);
	if (!wire_put_ok(&l->out)) {
		l->out = before;
		return false;
	}
	l->dircount_left -= MIN(l->dircount_left, info);
	l->n++;
	return true;
}

static size_t dents_bytes(const struct listing *l)
{
	size_t left = (size_t)(l->out.end - l->out.at);

	if (l->plus)
		left = MIN(left / PLUS_PER_DENT, (size_t)l->dircount_left);
	return MIN(MAX(left, (size_t)DENTS_BYTES_MIN), (size_t)DENTS_BYTES_MAX);
}

static int list_some(struct listing *l, int fd, char *dents)
{
	ssize_t n = getdents64(fd, dents, dents_bytes(l));

	if (n <= 0) {
		l->eof = !n;
		return n ? -errno : 0;
	}
	for (ssize_t at = 0; at < n && !l->full;) {
		const struct kernel_dirent *d = (const void *)(dents + at);

		l->full = !put_entry(l, d);
		at += d->d_reclen;
	}
	return 0;
}

/* Cookie 0 is the beginning. An unknown position is an error of the client. */
static int list_from(struct listing *l, int fd, uint64_t cookie)
{
	char *dents;
	int err = 0;

	if (cookie > INT64_MAX || (cookie && lseek(fd, (off_t)cookie, SEEK_SET) < 0))
		return -EILSEQ;
	dents = malloc(DENTS_BYTES_MAX);
	if (!dents)
		return -ENOMEM;
	err = creds_assume(&l->r->creds);
	while (!err && !l->full && !l->eof)
		err = list_some(l, fd, dents);
	creds_resume();
	free(dents);
	if (l->n) /* the entries found make a valid reply; the next request gets the error again */
		return 0;
	if (err == -EINVAL || err == -ENOENT)
		return err == -EINVAL ? -EILSEQ : -ESTALE;
	return err ? err : l->full ? -EOVERFLOW : 0;
}

static nfsstat3 status_of(const struct req *r, int err)
{
	if (err == -EILSEQ)
		return NFS3ERR_BAD_COOKIE;
	return err == -EOVERFLOW ? NFS3ERR_TOOSMALL : nfs3_conv_status(r, err);
}

/* Bytes for the entries in a reply of @limit bytes. */
static size_t room_for(const struct req *r, uint32_t limit)
{
	limit = MIN(limit, nfs_call(r)->re->inline_max);
	return limit > HEAD_BYTES ? limit - HEAD_BYTES : 0;
}

static int list(struct listing *l, uint64_t cookie, uint32_t limit)
{
	struct req *r = l->r;
	size_t bytes = r->room ? MIN(room_for(r, limit), r->room->bytes) : 0;
	int fd, err;

	if (!bytes)
		return -EOVERFLOW;
	fd = vfs_open_dir(l->dir, &r->creds);
	if (fd < 0)
		return fd;
	wire_put_init(&l->out, r->room->addr, bytes);
	err = list_from(l, fd, cookie);
	close(fd);
	return err ? err : fh_check_dir(nfs_handles(r), l->dir);
}

static void read_dir(struct req *r, bool plus, uint64_t cookie, uint32_t limit, uint32_t dircount)
{
	struct nfs_call *call = nfs_call(r);
	struct nfs_dir_res *res = &call->res.dir;
	struct fh_obj dir;
	struct listing l = { .r = r, .dir = &dir, .plus = plus, .dircount_left = dircount };
	int err;

	if (!nfs3_open(r, &call->args.fh, &dir))
		return;
	if (dir.stx.stx_ino == call->exp->backing.ino) /* clients must not learn what is above the root */
		l.parent_ino = dir.stx.stx_ino;
	err = list(&l, cookie, limit);
	if (err) {
		res->status = status_of(r, err);
	} else {
		res->entries = r->room->addr;
		res->entries_len = (uint32_t)wire_put_len(&l.out);
		res->eof = l.eof ? TRUE : FALSE;
		if (plus)
			fh_keep(nfs_handles(r));
	}
	nfs3_conv_post_op(&dir.stx, &res->attr);
	fh_close(&dir);
}

size_t nfs3_readdir_room(const struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	return room_for(r, call->args.readdir.count);
}

size_t nfs3_readdirplus_room(const struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	return room_for(r, call->args.readdirplus.maxcount);
}

void nfs3_readdir(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const READDIR3args *a = &call->args.readdir;

	read_dir(r, false, a->cookie, a->count, UINT32_MAX);
}

void nfs3_readdirplus(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const READDIRPLUS3args *a = &call->args.readdirplus;

	read_dir(r, true, a->cookie, a->maxcount, a->dircount);
}

bool_t nfs3_encode_dir(XDR *xdrs, struct nfs_dir_res *res)
{
	static char verf[NFS3_COOKIEVERFSIZE];
	bool_t more = FALSE;

	if (!xdr_nfsstat3(xdrs, &res->status) || !xdr_post_op_attr(xdrs, &res->attr))
		return FALSE;
	if (res->status != NFS3_OK)
		return TRUE;
	return xdr_opaque(xdrs, verf, sizeof(verf)) &&
	       xdr_opaque(xdrs, (char *)(uintptr_t)res->entries, res->entries_len) &&
	       xdr_bool(xdrs, &more) && xdr_bool(xdrs, &res->eof);
}
