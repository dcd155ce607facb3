/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_server.c - a read-only NFSv3 service whose skeleton rpcgen made; rpcrdma_svc_create() is all it knows of RDMA
 *
 *   nfs_server DIR EXPORT MOUNT-URL NFS-URL...     exports DIR as EXPORT, to everyone; prints the URLs when it is ready
 *
 * Operation: a file handle is the number of a path; paths that were looked up are kept in a table. A directory's cookie is
 * the position of a name in alphabetical order, so the tree must not change. Permissions are not checked.
 *
 * Memory: the data of a READ lie in one buffer of rpcrdma_mem_alloc(), since svc_sendreply() returns when they have been
 * sent. Everything else in results comes from malloc() and is freed by xdr_free().
 *
 * Threads: one, in svc_run().
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "nfs.h"
#include "rpcrdma_mem.h"
#include "rpcrdma_tirpc.h"

#define DATA_MAX (1u << 20) /* bytes of a READ */
#define DIR_BYTES 65536u    /* bytes of a page of a directory */
#define ATTR_BYTES 88u      /* post_op_attr with attributes */

/* of nfs_svc.c */
void nfs_program_3(struct svc_req *req, SVCXPRT *xprt);
void mount_program_3(struct svc_req *req, SVCXPRT *xprt);

struct handle {
	uint32_t boot; /* time of the start: handles of another process are stale */
	uint32_t node;
};

static const struct rpcrdma_bulk table[] = {
	{ .prog = NFS_PROGRAM, .vers = NFS_V3, .proc = NFSPROC3_READ, .results = 1 },
};

static const char *export_name;
static char **nodes; /* paths; the export's directory is node 0 */
static uint32_t node_count, boot;
static void *data; /* of a READ, DATA_MAX bytes */

static void die(const char *what, const char *why)
{
	fprintf(stderr, "nfs_server: %s: %s\n", what, why);
	exit(1);
}

/* ---- nodes --------------------------------------------------------------------------------------- */

static uint32_t find_node(const char *path)
{
	for (uint32_t i = 0; i < node_count; i++)
		if (!strcmp(nodes[i], path))
			return i;
	nodes = reallocarray(nodes, node_count + 1, sizeof(*nodes));
	if (!nodes || !(nodes[node_count] = strdup(path)))
		die(path, "no memory");
	return node_count++;
}

static nfs_fh3 make_handle(const char *path)
{
	const struct handle h = { .boot = boot, .node = find_node(path) };
	nfs_fh3 fh = { .data = { .data_len = sizeof(h), .data_val = malloc(sizeof(h)) } };

	if (!fh.data.data_val)
		die(path, "no memory");
	memcpy(fh.data.data_val, &h, sizeof(h));
	return fh;
}

/* The path of @fh in *ret. */
static nfsstat3 find_path(const nfs_fh3 *fh, const char **ret)
{
	struct handle h;

	if (fh->data.data_len != sizeof(h))
		return NFS3ERR_BADHANDLE;
	memcpy(&h, fh->data.data_val, sizeof(h));
	if (h.boot != boot || h.node >= node_count)
		return NFS3ERR_STALE;
	*ret = nodes[h.node];
	return NFS3_OK;
}

/* ---- attributes ------------------------------------------------------------------------------------ */

/* Most of the numbers in RFC 1813 are those of Linux. */
static nfsstat3 status_of(int err)
{
	switch (err) {
	case EPERM:
	case ENOENT:
	case EACCES:
	case ENOTDIR:
	case EISDIR:
	case EINVAL:
		return (nfsstat3)err;
	default:
		return err == ENAMETOOLONG ? NFS3ERR_NAMETOOLONG : NFS3ERR_IO;
	}
}

static nfstime3 time_of(struct timespec t)
{
	return (nfstime3){ .seconds = (uint32)t.tv_sec, .nseconds = (uint32)t.tv_nsec };
}

static ftype3 type_of(mode_t mode)
{
	return S_ISDIR(mode)  ? NF3DIR :
	       S_ISLNK(mode)  ? NF3LNK :
	       S_ISBLK(mode)  ? NF3BLK :
	       S_ISCHR(mode)  ? NF3CHR :
	       S_ISSOCK(mode) ? NF3SOCK :
	       S_ISFIFO(mode) ? NF3FIFO :
				NF3REG;
}

static nfsstat3 read_attributes(const char *path, fattr3 *ret)
{
	struct stat st;

	if (lstat(path, &st))
		return status_of(errno);
	*ret = (fattr3){ .type = type_of(st.st_mode), .mode = st.st_mode & 07777, .nlink = (uint32)st.st_nlink,
			 .uid = st.st_uid, .gid = st.st_gid, .size = (uint64)st.st_size, .used = (uint64)st.st_blocks * 512,
			 .rdev = { major(st.st_rdev), minor(st.st_rdev) }, .fsid = st.st_dev, .fileid = st.st_ino,
			 .atime = time_of(st.st_atim), .mtime = time_of(st.st_mtim), .ctime = time_of(st.st_ctim) };
	return NFS3_OK;
}

static post_op_attr attributes_of(const char *path)
{
	post_op_attr attr = { .follows = FALSE };

	attr.follows = read_attributes(path, &attr.post_op_attr_u.attributes) == NFS3_OK;
	return attr;
}

/* ---- procedures --------------------------------------------------------------------------------------- */

bool_t nfsproc3_null_3_svc(void *res, struct svc_req *req)
{
	(void)res;
	(void)req;
	return TRUE;
}

/* PROCEDURE(lower, ARGS, RES, HANDLE): begins a procedure on the file of a handle. @path is NULL if there is none. */
#define PROCEDURE(lower, ARGS, RES, HANDLE)                                      \
	static void lower##_of(const ARGS *args, const char *path, RES *res);    \
	bool_t nfsproc3_##lower##_3_svc(ARGS args, RES *res, struct svc_req *req) \
	{                                                                        \
		const char *path = NULL;                                         \
                                                                                 \
		(void)req;                                                       \
		memset(res, 0, sizeof(*res));                                    \
		res->status = find_path(&args.HANDLE, &path);                    \
		if (res->status == NFS3_OK)                                      \
			lower##_of(&args, path, res);                            \
		return TRUE;                                                     \
	}                                                                        \
	static void lower##_of(const ARGS *args, const char *path, RES *res)

PROCEDURE(getattr, GETATTR3args, GETATTR3res, object)
{
	(void)args;
	res->status = read_attributes(path, &res->GETATTR3res_u.attributes);
}

PROCEDURE(lookup, LOOKUP3args, LOOKUP3res, what.dir)
{
	LOOKUP3resok *ok = &res->LOOKUP3res_u.resok;
	const char *name = args->what.name;
	char file[PATH_MAX];
	fattr3 attr;

	if (!strcmp(name, ".")) {
		snprintf(file, sizeof(file), "%s", path);
	} else if (!strcmp(name, "..")) {
		snprintf(file, sizeof(file), "%s", path);
		if (strcmp(path, nodes[0]))
			*strrchr(file, '/') = '\0';
	} else if (!*name || strchr(name, '/')) {
		res->status = NFS3ERR_ACCES;
	} else if (snprintf(file, sizeof(file), "%s/%s", path, name) >= (int)sizeof(file)) {
		res->status = NFS3ERR_NAMETOOLONG;
	}
	if (res->status == NFS3_OK)
		res->status = read_attributes(file, &attr);
	if (res->status != NFS3_OK) {
		res->LOOKUP3res_u.resfail = attributes_of(path);
		return;
	}
	ok->object = make_handle(file);
	ok->obj_attributes = attributes_of(file);
	ok->dir_attributes = attributes_of(path);
}

PROCEDURE(access, ACCESS3args, ACCESS3res, object)
{
	ACCESS3resok *ok = &res->ACCESS3res_u.resok;

	ok->obj_attributes = attributes_of(path);
	ok->access = args->access & (ACCESS3_READ | ACCESS3_LOOKUP | ACCESS3_EXECUTE);
}

PROCEDURE(readlink, READLINK3args, READLINK3res, symlink)
{
	READLINK3resok *ok = &res->READLINK3res_u.resok;
	char target[PATH_MAX];
	ssize_t len = readlink(path, target, sizeof(target) - 1);

	(void)args;
	if (len < 0) {
		res->status = status_of(errno);
		res->READLINK3res_u.resfail = attributes_of(path);
		return;
	}
	ok->symlink_attributes = attributes_of(path);
	ok->data = strndup(target, (size_t)len);
}

PROCEDURE(read, READ3args, READ3res, file)
{
	READ3resok *ok = &res->READ3res_u.resok;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st = { 0 };
	ssize_t n = -1;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
		n = pread(fd, data, args->count < DATA_MAX ? args->count : DATA_MAX, (off_t)args->offset);
	else if (fd >= 0)
		errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	if (n < 0) {
		res->status = status_of(errno);
		res->READ3res_u.resfail = attributes_of(path);
	} else {
		ok->file_attributes = attributes_of(path);
		ok->count = (uint32)n;
		ok->eof = args->offset + (uint64)n >= (uint64)st.st_size;
		ok->data.data_len = (u_int)n;
		ok->data.data_val = data;
	}
	if (fd >= 0)
		close(fd);
}

/* A page of a directory: names [first, last) of those in @names, which the caller frees. */
struct page {
	struct dirent **names;
	uint32_t first, last, count;
};

/* @entry_bytes: of the results for each name beside the name itself; @dir_max: of fileid, name and cookie alone */
static nfsstat3 read_page(const char *path, uint64 cookie, uint32 max, uint32 dir_max, uint32 entry_bytes, struct page *ret)
{
	uint32_t used = ATTR_BYTES + sizeof(verf3) + 8, dir_used = 0;
	int n = scandir(path, &ret->names, NULL, alphasort);

	if (n < 0)
		return status_of(errno);
	ret->count = (uint32_t)n;
	if (cookie > ret->count)
		return NFS3ERR_BAD_COOKIE;
	max = max < DIR_BYTES ? max : DIR_BYTES;
	ret->first = (uint32_t)cookie;
	for (ret->last = ret->first; ret->last < ret->count; ret->last++) {
		const uint32_t name = RNDUP((uint32_t)strlen(ret->names[ret->last]->d_name));

		used += entry_bytes + name;
		dir_used += 20 + name;
		if (used > max || (dir_used > dir_max && ret->last > ret->first))
			break;
	}
	return ret->last == ret->first && ret->count > ret->first ? NFS3ERR_TOOSMALL : NFS3_OK;
}

static void free_page(struct page *page)
{
	for (uint32_t i = 0; i < page->count; i++)
		free(page->names[i]);
	free(page->names);
}

PROCEDURE(readdir, READDIR3args, READDIR3res, dir)
{
	READDIR3resok *ok = &res->READDIR3res_u.resok;
	entry3 **end = &ok->entries;
	struct page page = { 0 };

	res->status = read_page(path, args->cookie, args->count, UINT32_MAX, 24, &page);
	if (res->status == NFS3_OK) {
		ok->dir_attributes = attributes_of(path);
		ok->eof = page.last == page.count;
		for (uint32_t i = page.first; i < page.last; i++) {
			*end = calloc(1, sizeof(**end));
			if (!*end)
				die(path, "no memory");
			(*end)->fileid = page.names[i]->d_ino;
			(*end)->name = strdup(page.names[i]->d_name);
			(*end)->cookie = i + 1;
			end = &(*end)->nextentry;
		}
	}
	free_page(&page);
}

static void fill_plus(entryplus3 *e, const char *path, const char *name)
{
	char file[PATH_MAX];

	if (!strcmp(name, ".."))
		return;
	if (!strcmp(name, "."))
		snprintf(file, sizeof(file), "%s", path);
	else if (snprintf(file, sizeof(file), "%s/%s", path, name) >= (int)sizeof(file))
		return;
	e->name_attributes = attributes_of(file);
	e->name_handle.follows = TRUE;
	e->name_handle.post_op_fh3_u.handle = make_handle(file);
}

PROCEDURE(readdirplus, READDIRPLUS3args, READDIRPLUS3res, dir)
{
	READDIRPLUS3resok *ok = &res->READDIRPLUS3res_u.resok;
	entryplus3 **end = &ok->entries;
	struct page page = { 0 };

	res->status = read_page(path, args->cookie, args->maxcount, args->dircount,
				24 + ATTR_BYTES + 8 + sizeof(struct handle), &page);
	if (res->status == NFS3_OK) {
		ok->dir_attributes = attributes_of(path);
		ok->eof = page.last == page.count;
		for (uint32_t i = page.first; i < page.last; i++) {
			*end = calloc(1, sizeof(**end));
			if (!*end)
				die(path, "no memory");
			(*end)->fileid = page.names[i]->d_ino;
			(*end)->name = strdup(page.names[i]->d_name);
			(*end)->cookie = i + 1;
			fill_plus(*end, path, page.names[i]->d_name);
			end = &(*end)->nextentry;
		}
	}
	free_page(&page);
}

PROCEDURE(fsstat, GETATTR3args, FSSTAT3res, object)
{
	FSSTAT3resok *ok = &res->FSSTAT3res_u.resok;
	struct statvfs fs;

	(void)args;
	if (statvfs(path, &fs)) {
		res->status = status_of(errno);
		return;
	}
	*ok = (FSSTAT3resok){ .obj_attributes = attributes_of(path), .tbytes = (uint64)fs.f_blocks * fs.f_frsize,
			      .fbytes = (uint64)fs.f_bfree * fs.f_frsize, .abytes = (uint64)fs.f_bavail * fs.f_frsize,
			      .tfiles = fs.f_files, .ffiles = fs.f_ffree, .afiles = fs.f_favail };
}

PROCEDURE(fsinfo, GETATTR3args, FSINFO3res, object)
{
	(void)args;
	res->FSINFO3res_u.resok = (FSINFO3resok){ .obj_attributes = attributes_of(path), .rtmax = DATA_MAX, .rtpref = DATA_MAX,
						  .rtmult = 4096, .wtmax = DATA_MAX, .wtpref = DATA_MAX, .wtmult = 4096,
						  .dtpref = DIR_BYTES, .maxfilesize = INT64_MAX, .time_delta = { 0, 1 },
						  .properties = FSF3_SYMLINK | FSF3_HOMOGENEOUS };
}

PROCEDURE(pathconf, GETATTR3args, PATHCONF3res, object)
{
	(void)args;
	res->PATHCONF3res_u.resok = (PATHCONF3resok){ .obj_attributes = attributes_of(path), .linkmax = 32000, .name_max = NAME_MAX,
						      .no_trunc = TRUE, .chown_restricted = TRUE, .case_preserving = TRUE };
}

/* Procedures that would change the file system */
#define REFUSE(lower, ARGS, RES)                                                  \
	bool_t nfsproc3_##lower##_3_svc(ARGS args, RES *res, struct svc_req *req) \
	{                                                                         \
		(void)args;                                                       \
		(void)req;                                                        \
		memset(res, 0, sizeof(*res));                                     \
		res->status = NFS3ERR_ROFS;                                       \
		return TRUE;                                                      \
	}

REFUSE(setattr, SETATTR3args, wcc3res)
REFUSE(write, WRITE3args, WRITE3res)
REFUSE(create, CREATE3args, CREATE3res)
REFUSE(mkdir, MKDIR3args, CREATE3res)
REFUSE(symlink, SYMLINK3args, CREATE3res)
REFUSE(mknod, MKNOD3args, CREATE3res)
REFUSE(remove, REMOVE3args, wcc3res)
REFUSE(rmdir, REMOVE3args, wcc3res)
REFUSE(rename, RENAME3args, RENAME3res)
REFUSE(link, LINK3args, LINK3res)
REFUSE(commit, COMMIT3args, COMMIT3res)

int nfs_program_3_freeresult(SVCXPRT *xprt, xdrproc_t xdr, caddr_t res)
{
	(void)xprt;
	if (xdr != (xdrproc_t)xdr_READ3res)
		xdr_free(xdr, res);
	return 1;
}

/* ---- MOUNT --------------------------------------------------------------------------------------------- */

bool_t mountproc3_null_3_svc(void *res, struct svc_req *req)
{
	return nfsproc3_null_3_svc(res, req);
}

bool_t mountproc3_mnt_3_svc(dirpath path, mountres3 *res, struct svc_req *req)
{
	mountres3_ok *ok = &res->mountres3_u.mountinfo;
	nfs_fh3 fh;

	(void)req;
	memset(res, 0, sizeof(*res));
	if (strcmp(path, export_name)) {
		res->fhs_status = MNT3ERR_NOENT;
		return TRUE;
	}
	fh = make_handle(nodes[0]);
	ok->fhandle.fhandle_len = fh.data.data_len;
	ok->fhandle.fhandle_val = fh.data.data_val;
	ok->auth_flavors.auth_flavors_val = malloc(sizeof(int));
	if (!ok->auth_flavors.auth_flavors_val)
		die("MNT", "no memory");
	ok->auth_flavors.auth_flavors_val[0] = AUTH_SYS;
	ok->auth_flavors.auth_flavors_len = 1;
	return TRUE;
}

bool_t mountproc3_dump_3_svc(mountlist *res, struct svc_req *req)
{
	(void)req;
	*res = NULL;
	return TRUE;
}

bool_t mountproc3_umnt_3_svc(dirpath path, void *res, struct svc_req *req)
{
	(void)path;
	return nfsproc3_null_3_svc(res, req);
}

bool_t mountproc3_umntall_3_svc(void *res, struct svc_req *req)
{
	return nfsproc3_null_3_svc(res, req);
}

bool_t mountproc3_export_3_svc(exportlist *res, struct svc_req *req)
{
	(void)req;
	*res = calloc(1, sizeof(**res));
	if (*res)
		(*res)->ex_dir = strdup(export_name);
	return *res != NULL;
}

int mount_program_3_freeresult(SVCXPRT *xprt, xdrproc_t xdr, caddr_t res)
{
	(void)xprt;
	xdr_free(xdr, res);
	return 1;
}

/* ---- the program ------------------------------------------------------------------------------------------ */

static void end(int sig)
{
	(void)sig;
	svc_exit();
}

static void report(void)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(rpcrdma_tirpc_domain(), &s);
	fprintf(stderr, "nfs_server: calls=%llu bytes_placed=%llu bytes_copied=%llu chunks_write=%llu chunks_reply=%llu\n",
		(unsigned long long)s.calls, (unsigned long long)s.bytes_placed, (unsigned long long)s.bytes_copied,
		(unsigned long long)s.chunks_write, (unsigned long long)s.chunks_reply);
}

int main(int argc, char **argv)
{
	const struct rpcrdma_tirpc_attr attr = { .size = sizeof(attr), .bulk = table, .nbulk = sizeof(table) / sizeof(table[0]) };
	int rc;

	if (argc < 5)
		die("usage", "nfs_server DIR EXPORT MOUNT-URL NFS-URL...");
	boot = (uint32_t)time(NULL);
	find_node(argv[1]);
	export_name = argv[2];
	rc = rpcrdma_mem_alloc(rpcrdma_tirpc_domain(), DATA_MAX, &data);
	if (rc)
		die("rpcrdma_mem_alloc", strerror(-rc));
	for (int i = 3; i < argc; i++) {
		rc = rpcrdma_svc_create(i == 3 ? mount_program_3 : nfs_program_3, i == 3 ? MOUNT_PROGRAM : NFS_PROGRAM, 3,
					argv[i], &attr);
		if (rc)
			die(argv[i], strerror(-rc));
	}
	signal(SIGTERM, end);
	for (int i = 3; i < argc; i++) {
		char url[256];

		if (rpcrdma_svc_url(argv[i], url, sizeof(url)) < 0)
			die(argv[i], "no URL");
		printf("%s%c", url, i + 1 < argc ? ' ' : '\n');
	}
	fflush(stdout);
	svc_run();
	report();
	return 0;
}
