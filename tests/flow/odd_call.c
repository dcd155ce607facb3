/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * odd_call.c - NFS calls of every procedure with whatever arguments, and a tree that must not change
 *
 * Operation:  A leatd and a peer (nfs_peer.h). The tree is described as text, a line for each file,
 *             so that a change can be shown.
 * Memory:     The caller's struct odd.
 * Threads:    The server has its own; the test's is one.
 * Errors:     Asserted with cmocka.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs3_names.h"
#include "odd_call.h"

#define TEXT_MAX 65536u
#define ARGS_BYTES 8192u

static const char *const options[] = { "rw,no_root_squash", "rw,no_root_squash", NULL };

void odd_create(struct odd *o, enum rpcrdma_transport t)
{
	memset(o, 0, sizeof(*o));
	o->payload = malloc(ODD_PAYLOAD_MAX);
	assert_non_null(o->payload);
	nfs_peer_create(&o->p, t, options);
	odd_tree_make(o);
}

void odd_destroy(struct odd *o)
{
	nfs_peer_destroy(&o->p);
	free(o->before);
	free(o->payload);
}

/* ---- the tree ---- */

static char *tree_text;
static size_t tree_bytes, tree_root;

static uint32_t sum_of(const char *path)
{
	uint32_t sum = 2166136261u;
	FILE *f = fopen(path, "r");
	int c;

	assert_non_null(f);
	while ((c = getc(f)) != EOF)
		sum = (sum ^ (uint8_t)c) * 16777619u;
	fclose(f);
	return sum;
}

static int describe(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	char target[256] = "";
	int n;

	(void)type;
	(void)ftw;
	if (S_ISLNK(st->st_mode))
		assert_true(readlink(path, target, sizeof(target) - 1) > 0);
	n = snprintf(tree_text + tree_bytes, TEXT_MAX - tree_bytes,
		     "%s mode %o owner %u:%u size %lld links %lu device %lx mtime %lld.%09ld ctime "
		     "%lld.%09ld sum %x%s%s\n",
		     path + tree_root, st->st_mode, st->st_uid, st->st_gid, (long long)st->st_size,
		     (unsigned long)st->st_nlink, (unsigned long)st->st_rdev,
		     (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
		     (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec,
		     S_ISREG(st->st_mode) ? sum_of(path) : 0, *target ? " to " : "", target);
	assert_true(n > 0 && (size_t)n < TEXT_MAX - tree_bytes);
	tree_bytes += (size_t)n;
	return 0;
}

static char *describe_tree(struct odd *o)
{
	tree_text = malloc(TEXT_MAX);
	assert_non_null(tree_text);
	tree_bytes = 0;
	tree_root = strlen(o->p.dir.path) + 1;
	for (int i = 0; i < 2; i++)
		assert_int_equal(nftw(tmp_dir_path(&o->p.dir, i ? "e1" : "e0"), describe, 16,
				      FTW_PHYS),
				 0);
	return tree_text;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	if (!ftw->level)
		return 0;
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

static void make_socket(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0 && strlen(path) < sizeof(un.sun_path));
	strcpy(un.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	close(fd);
}

static void find(struct odd *o, enum odd_file f, const char *name)
{
	assert_int_equal(nfs_peer_lookup(&o->p, &o->fhs[ODD_ROOT], name, &o->fhs[f]), NFS3_OK);
	o->has[f] = true;
}

static void spoil_handles(struct odd *o)
{
	struct nfs_fh *v = o->fhs;
	const struct nfs_fh *reg = &v[ODD_REG];

	v[ODD_FORGED] = v[ODD_OTHER] = v[ODD_CUT] = v[ODD_LONGER] = v[ODD_SHORT] = *reg;
	v[ODD_FORGED].data[reg->len - 1] ^= 1;
	v[ODD_OTHER].data[reg->len / 2] ^= 1;
	v[ODD_CUT].len--;
	assert_true(reg->len < NFS3_FHSIZE);
	v[ODD_LONGER].data[v[ODD_LONGER].len++] = 0;
	v[ODD_SHORT].len = 1;
	v[ODD_EMPTY].len = 0;
	v[ODD_NOISE].len = v[ODD_ZERO].len = NFS3_FHSIZE;
	for (unsigned i = 0; i < NFS3_FHSIZE; i++)
		v[ODD_NOISE].data[i] = (char)(i * 73 + 41);
	memset(v[ODD_ZERO].data, 0, NFS3_FHSIZE);
	for (int f = ODD_GONE; f < ODD_FILES; f++)
		o->has[f] = true;
}

void odd_tree_make(struct odd *o)
{
	struct tmp_dir *d = &o->p.dir;
	struct nfs_peer *p = &o->p;

	assert_int_equal(nftw(tmp_dir_path(d, "e0"), remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	memset(o->has, 0, sizeof(o->has));
	tmp_dir_write(d, "e0/file", "hello");
	tmp_dir_mkdir(d, "e0/dir");
	tmp_dir_write(d, "e0/dir/in", "x");
	assert_int_equal(symlink("file", tmp_dir_path(d, "e0/link")), 0);
	assert_int_equal(mkfifo(tmp_dir_path(d, "e0/fifo"), 0644), 0);
	make_socket(tmp_dir_path(d, "e0/sock"));
	tmp_dir_write(d, "e0/gone", "");
	tmp_dir_mkdir(d, "e0/gonedir");
	assert_int_equal(nfs_peer_mount(p, "/e0", &o->fhs[ODD_ROOT]), MNT3_OK);
	assert_int_equal(nfs_peer_mount(p, "/e1", &o->fhs[ODD_TREE2]), MNT3_OK);
	o->has[ODD_ROOT] = true;
	find(o, ODD_REG, "file");
	find(o, ODD_DIR, "dir");
	find(o, ODD_LNK, "link");
	find(o, ODD_FIFO, "fifo");
	find(o, ODD_SOCK, "sock");
	if (!mknod(tmp_dir_path(d, "e0/chr"), S_IFCHR | 0644, makedev(1, 3)))
		find(o, ODD_CHR, "chr");
	if (!mknod(tmp_dir_path(d, "e0/blk"), S_IFBLK | 0644, makedev(7, 250)))
		find(o, ODD_BLK, "blk");
	find(o, ODD_GONE, "gone");
	find(o, ODD_GONE_DIR, "gonedir");
	assert_int_equal(unlink(tmp_dir_path(d, "e0/gone")), 0);
	assert_int_equal(rmdir(tmp_dir_path(d, "e0/gonedir")), 0);
	spoil_handles(o);
	free(o->before);
	o->before = describe_tree(o);
}

const char *odd_tree_changed(struct odd *o)
{
	static char line[400];
	char *now = describe_tree(o);
	size_t at = 0;

	while (now[at] && now[at] == o->before[at])
		at++;
	line[0] = '\0';
	if (now[at] || o->before[at]) {
		while (at && now[at - 1] != '\n')
			at--;
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(now + at, "\n"), now + at);
		if (!*line)
			snprintf(line, sizeof(line), "lost: %.*s",
				 (int)strcspn(o->before + at, "\n"), o->before + at);
	}
	free(now);
	return *line ? line : NULL;
}

/* ---- calls ---- */

union args {
	GETATTR3args getattr;
	SETATTR3args setattr;
	LOOKUP3args lookup;
	ACCESS3args access;
	READLINK3args readlink;
	READ3args read;
	WRITE3args write;
	CREATE3args create;
	MKDIR3args mkdir;
	SYMLINK3args symlink;
	MKNOD3args mknod;
	REMOVE3args remove;
	RMDIR3args rmdir;
	RENAME3args rename;
	LINK3args link;
	READDIR3args readdir;
	READDIRPLUS3args readdirplus;
	FSSTAT3args fsstat;
	FSINFO3args fsinfo;
	PATHCONF3args pathconf;
	COMMIT3args commit;
};

union res {
	nfsstat3 status; /* they all begin with it */
	GETATTR3res getattr;
	SETATTR3res setattr;
	LOOKUP3res lookup;
	ACCESS3res access;
	READLINK3res readlink;
	READ3res read;
	WRITE3res write;
	CREATE3res create;
	MKDIR3res mkdir;
	SYMLINK3res symlink;
	MKNOD3res mknod;
	REMOVE3res remove;
	RMDIR3res rmdir;
	RENAME3res rename;
	LINK3res link;
	READDIR3res readdir;
	READDIRPLUS3res readdirplus;
	FSSTAT3res fsstat;
	FSINFO3res fsinfo;
	PATHCONF3res pathconf;
	COMMIT3res commit;
};

#define CODEC(proc)                                                                                \
	[NFSPROC3_##proc] = { (xdrproc_t)xdr_##proc##3args, (xdrproc_t)xdr_##proc##3res }

static const struct {
	xdrproc_t args, res;
} codecs[] = {
	CODEC(GETATTR), CODEC(SETATTR), CODEC(LOOKUP),	CODEC(ACCESS),	CODEC(READLINK),
	CODEC(READ),	CODEC(WRITE),	CODEC(CREATE),	CODEC(MKDIR),	CODEC(SYMLINK),
	CODEC(MKNOD),	CODEC(REMOVE),	CODEC(RMDIR),	CODEC(RENAME),	CODEC(LINK),
	CODEC(READDIR), CODEC(READDIRPLUS), CODEC(FSSTAT), CODEC(FSINFO), CODEC(PATHCONF),
	CODEC(COMMIT),
};

static void fill_data(struct odd *o, const struct odd_call *c, struct rpcrdma_payload *ret,
		      struct iovec *iov)
{
	assert_true(c->bytes <= ODD_PAYLOAD_MAX);
	memset(o->payload, 'p', c->bytes);
	if (c->payload)
		memcpy(o->payload, c->payload, c->bytes);
	*iov = (struct iovec){ .iov_base = o->payload, .iov_len = c->bytes };
	*ret = (struct rpcrdma_payload){ .length = c->bytes, .iov = iov, .iovcnt = 1 };
}

static void fill_what(const struct odd_call *c, mknoddata3 *what)
{
	what->type = c->type;
	if (c->type == NF3CHR || c->type == NF3BLK) {
		what->mknoddata3_u.device.dev_attributes = c->sa;
		what->mknoddata3_u.device.spec = (specdata3){ c->count, c->count2 };
	} else {
		what->mknoddata3_u.pipe_attributes = c->sa;
	}
}

/* All begin with a handle, and those with names go on with one. */
static void fill(struct odd *o, const struct odd_call *c, union args *a, struct iovec *iov)
{
	const nfs_fh3 to = nfs_peer_fh(&o->fhs[c->fh2]);

	memset(a, 0, sizeof(*a));
	a->getattr.object = nfs_peer_fh(&o->fhs[c->fh]);
	switch (c->proc) {
	case NFSPROC3_SETATTR:
		a->setattr.new_attributes = c->sa;
		a->setattr.guard = c->guard;
		return;
	case NFSPROC3_ACCESS:
		a->access.access = c->count;
		return;
	case NFSPROC3_READ:
		a->read.offset = c->offset;
		a->read.count = c->count;
		return;
	case NFSPROC3_WRITE:
		a->write.offset = c->offset;
		a->write.count = c->count;
		a->write.stable = c->stable;
		fill_data(o, c, &a->write.data, iov);
		return;
	case NFSPROC3_READDIR:
		a->readdir.cookie = c->cookie;
		a->readdir.count = c->count;
		return;
	case NFSPROC3_READDIRPLUS:
		a->readdirplus.cookie = c->cookie;
		a->readdirplus.maxcount = c->count;
		a->readdirplus.dircount = c->count2;
		return;
	case NFSPROC3_COMMIT:
		a->commit.offset = c->offset;
		a->commit.count = c->count;
		return;
	case NFSPROC3_LINK:
		a->link.link.dir = to;
		a->link.link.name = (char *)(uintptr_t)c->name;
		return;
	case NFSPROC3_LOOKUP:
	case NFSPROC3_REMOVE:
	case NFSPROC3_RMDIR:
		break;
	case NFSPROC3_RENAME:
		a->rename.to.dir = to;
		a->rename.to.name = (char *)(uintptr_t)c->name2;
		break;
	case NFSPROC3_CREATE:
		a->create.how.mode = c->how;
		if (c->how == EXCLUSIVE)
			memcpy(a->create.how.createhow3_u.verf, "verifier", 8);
		else
			a->create.how.createhow3_u.obj_attributes = c->sa;
		break;
	case NFSPROC3_MKDIR:
		a->mkdir.attributes = c->sa;
		break;
	case NFSPROC3_SYMLINK:
		a->symlink.symlink.symlink_attributes = c->sa;
		fill_data(o, c, &a->symlink.symlink.symlink_data, iov);
		break;
	case NFSPROC3_MKNOD:
		fill_what(c, &a->mknod.what);
		break;
	default:
		return;
	}
	a->lookup.what.name = (char *)(uintptr_t)c->name;
}

struct bytes {
	char *data;
	u_int len;
};

static bool_t xdr_bytes_as_they_are(XDR *xdrs, struct bytes *b)
{
	return xdr_opaque(xdrs, b->data, b->len);
}

static int call(struct odd *o, uint32_t proc, xdrproc_t encode, const void *args)
{
	bool sinks = proc == NFSPROC3_READ || proc == NFSPROC3_READLINK;
	union res res;
	int err, status;

	memset(&res, 0, sizeof(res));
	err = nfs_peer_rpc(&o->p, NFS_PROGRAM, NFS_V3, proc, encode, args, codecs[proc].res, &res,
			   sinks ? o->payload : NULL, sinks ? ODD_PAYLOAD_MAX : 0);
	if (err == -EINVAL)
		return ODD_GARBAGE;
	if (err)
		return ODD_HUNG_UP;
	status = (int)res.status;
	o->value = UINT64_MAX;
	if (!status && proc == NFSPROC3_READ)
		o->value = res.read.READ3res_u.resok.count;
	if (!status && proc == NFSPROC3_WRITE)
		o->value = res.write.WRITE3res_u.resok.count;
	if (!status && proc == NFSPROC3_ACCESS)
		o->value = res.access.ACCESS3res_u.resok.access;
	xdr_free(codecs[proc].res, (char *)&res);
	return status;
}

int odd_raw(struct odd *o, uint32_t proc, const void *bytes, uint32_t len)
{
	struct bytes b = { (char *)(uintptr_t)bytes, len };

	return call(o, proc, (xdrproc_t)xdr_bytes_as_they_are, &b);
}

int odd_answer(struct odd *o, const struct odd_call *c)
{
	static char buf[ARGS_BYTES];
	struct iovec iov;
	union args a;
	u_int len;
	XDR x;

	fill(o, c, &a, &iov);
	if (!c->nul)
		return call(o, c->proc, codecs[c->proc].args, &a);
	assert_true(c->proc != NFSPROC3_SYMLINK && c->proc != NFSPROC3_WRITE);
	xdrmem_create(&x, buf, sizeof(buf), XDR_ENCODE);
	assert_true(((bool_t(*)(XDR *, void *))codecs[c->proc].args)(&x, &a));
	len = xdr_getpos(&x);
	for (u_int i = 0; i + 3 <= len; i++) {
		if (!memcmp(buf + i, ODD_NUL_INSIDE, 3))
			buf[i + 1] = '\0';
	}
	return odd_raw(o, c->proc, buf, len);
}

/* ---- words ---- */

const char *odd_word(int answer)
{
	if (answer == ODD_GARBAGE)
		return "GARBAGE_ARGS";
	return answer == ODD_HUNG_UP ? "no answer" : nfs3_stat_name((uint32_t)answer);
}

const char *odd_file_word(enum odd_file f)
{
	static const char *const words[] = {
		[ODD_ROOT] = "root",	     [ODD_REG] = "file",
		[ODD_DIR] = "dir",	     [ODD_LNK] = "link",
		[ODD_FIFO] = "fifo",	     [ODD_SOCK] = "sock",
		[ODD_CHR] = "chr",	     [ODD_BLK] = "blk",
		[ODD_GONE] = "gone",	     [ODD_GONE_DIR] = "gone dir",
		[ODD_FORGED] = "forged",     [ODD_OTHER] = "another's",
		[ODD_CUT] = "cut",	     [ODD_LONGER] = "longer",
		[ODD_SHORT] = "one byte",    [ODD_EMPTY] = "empty",
		[ODD_NOISE] = "noise",	     [ODD_ZERO] = "zeros",
		[ODD_TREE2] = "root of /e1",
	};

	return words[f];
}
