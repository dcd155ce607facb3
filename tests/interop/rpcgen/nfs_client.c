/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_client.c - compares an NFSv3 export with a directory, by stubs that rpcgen made and handles of librpcrdma_tirpc
 *
 *   nfs_client [-w] MOUNT-URL NFS-URL EXPORT DIR
 *
 * DIR is the directory that the service exports as EXPORT. -w also writes files; without it the service must refuse them.
 * The counters of the library tell that data went by chunk where there are chunks: everywhere but over TCP.
 *
 * Operation: the results of a READ go to memory that the caller sets beforehand, which is registered, or ordinary, or
 * none: then the filter allocates.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nfs.h"
#include "rpcrdma_mem.h"
#include "rpcrdma_tirpc.h"

#define DATA_MAX (1u << 20)
#define THRESHOLD 2048u /* of the table: shorter data stay in the message */
#define LONG 4096u      /* data that cannot be in a Send: by chunk */
#define PAGE_MAX 32768u /* bytes of a page of a directory */

static const struct rpcrdma_bulk table[] = {
	{ .prog = NFS_PROGRAM, .vers = 3, .proc = NFSPROC3_READ, .results = 1, .threshold = THRESHOLD, .data_max = DATA_MAX,
	  .reply_max = 512 },
	{ .prog = NFS_PROGRAM, .vers = 3, .proc = NFSPROC3_WRITE, .args = 2, .threshold = THRESHOLD, .reply_max = 512 },
	{ .prog = NFS_PROGRAM, .vers = 3, .proc = NFSPROC3_GETATTR, .reply_max = 512 },
	{ .prog = NFS_PROGRAM, .vers = 3, .proc = NFSPROC3_READDIR, .reply_max = PAGE_MAX + 512 },
	{ .prog = NFS_PROGRAM, .vers = 3, .proc = NFSPROC3_READDIRPLUS, .reply_max = PAGE_MAX + 512 },
};

static CLIENT *nfs;
static bool is_tcp, is_rdma;
static unsigned passed, failed;
static unsigned long long_reads, long_writes, long_pages, long_bytes;
static char *registered, *ordinary;

static bool check(bool good, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool check(bool good, const char *fmt, ...)
{
	va_list ap;

	passed += good;
	failed += !good;
	if (!good) {
		va_start(ap, fmt);
		fputs("FAIL  ", stdout);
		vprintf(fmt, ap);
		putchar('\n');
		va_end(ap);
	}
	return good;
}

/* A call has to succeed, else nothing can go on. */
static void called(enum clnt_stat stat, CLIENT *clnt, const char *what)
{
	if (stat == RPC_SUCCESS)
		return;
	check(false, "%s: %s", clnt_sperror(clnt, what), rpcrdma_clnt_why(clnt));
	printf("nfs_client: %u passed, %u failed\n", passed, failed);
	exit(1);
}

static CLIENT *create(const char *url, rpcprog_t prog)
{
	const struct rpcrdma_tirpc_attr attr = { .size = sizeof(attr), .bulk = table, .nbulk = sizeof(table) / sizeof(table[0]) };
	CLIENT *clnt = rpcrdma_clnt_create(url, prog, 3, &attr);

	if (!clnt) {
		clnt_pcreateerror(url);
		exit(1);
	}
	auth_destroy(clnt->cl_auth);
	clnt->cl_auth = authunix_create_default();
	return clnt;
}

/* ---- handles that outlive the results they came in ---- */

static nfs_fh3 copy_handle(const char *val, u_int len)
{
	nfs_fh3 fh = { .data = { .data_len = len, .data_val = malloc(len + 1) } };

	memcpy(fh.data.data_val, val, len);
	return fh;
}

static nfs_fh3 mount_export(const char *url, const char *name)
{
	CLIENT *clnt = create(url, MOUNT_PROGRAM);
	mountres3 res = { 0 };
	exportlist exports = NULL;
	nfs_fh3 fh = { 0 };
	bool found = false;

	called(mountproc3_null_3(NULL, clnt), clnt, "MOUNT NULL");
	called(mountproc3_mnt_3((char *)name, &res, clnt), clnt, "MNT");
	if (check(res.fhs_status == MNT3_OK, "MNT %s: %d", name, res.fhs_status))
		fh = copy_handle(res.mountres3_u.mountinfo.fhandle.fhandle_val, res.mountres3_u.mountinfo.fhandle.fhandle_len);
	clnt_freeres(clnt, (xdrproc_t)xdr_mountres3, &res);
	called(mountproc3_export_3(&exports, clnt), clnt, "EXPORT");
	for (exportnode *e = exports; e; e = e->ex_next)
		found = found || !strcmp(e->ex_dir, name);
	check(found, "EXPORT lists %s", name);
	clnt_freeres(clnt, (xdrproc_t)xdr_exportlist, &exports);
	auth_destroy(clnt->cl_auth);
	clnt_destroy(clnt);
	return fh;
}

/* ---- files ---- */

/* READs @count bytes at @offset to @mem, or where the filter allocates (NULL), and compares them with @want. */
static void read_at(const nfs_fh3 *fh, uint64 offset, char *mem, const char *want, size_t len, bool eof, const char *path)
{
	const READ3args args = { .file = *fh, .offset = offset, .count = DATA_MAX };
	READ3res res = { 0 };
	READ3resok *ok = &res.READ3res_u.resok;

	if (mem) {
		memset(mem, 0xee, DATA_MAX);
		ok->data.data_val = mem;
		ok->data.data_len = DATA_MAX;
	}
	called(nfsproc3_read_3(args, &res, nfs), nfs, path);
	long_reads += len >= LONG;
	long_bytes += len >= LONG ? len : 0;
	if (check(res.status == NFS3_OK, "READ %s: %d", path, res.status)) {
		check(ok->count == len && ok->data.data_len == len, "READ %s at %llu: %u bytes instead of %zu", path,
		      (unsigned long long)offset, ok->data.data_len, len);
		check(ok->eof == eof, "READ %s at %llu: end of file %d", path, (unsigned long long)offset, ok->eof);
		check(!mem || ok->data.data_val == mem, "READ %s: results in other memory", path);
		check(ok->data.data_len == len && (!len || !memcmp(ok->data.data_val, want, len)), "READ %s at %llu: other bytes",
		      path, (unsigned long long)offset);
	}
	if (!mem)
		clnt_freeres(nfs, (xdrproc_t)xdr_READ3res, &res);
}

static void compare_file(const nfs_fh3 *fh, const char *path, size_t size)
{
	char *const memory[] = { registered, ordinary, NULL };
	char *want = malloc(size + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (!check(fd >= 0 && read(fd, want, size) == (ssize_t)size, "%s: %s", path, strerror(errno)))
		size = 0;
	for (unsigned i = 0; fd >= 0 && i < sizeof(memory) / sizeof(memory[0]); i++) {
		size_t at = 0;

		do {
			const size_t n = size - at < DATA_MAX ? size - at : DATA_MAX;

			read_at(fh, at, memory[i], want + at, n, at + n == size, path);
			at += n;
		} while (at < size);
	}
	if (fd >= 0)
		close(fd);
	free(want);
}

static void compare_link(const nfs_fh3 *fh, const char *path)
{
	const READLINK3args args = { .symlink = *fh };
	READLINK3res res = { 0 };
	char want[4097] = "";

	check(readlink(path, want, sizeof(want) - 1) > 0, "%s: %s", path, strerror(errno));
	called(nfsproc3_readlink_3(args, &res, nfs), nfs, path);
	if (check(res.status == NFS3_OK, "READLINK %s: %d", path, res.status))
		check(!strcmp(res.READLINK3res_u.resok.data, want), "READLINK %s", path);
	clnt_freeres(nfs, (xdrproc_t)xdr_READLINK3res, &res);
}

/* ---- directories ---- */

static void compare_object(const nfs_fh3 *fh, const char *path);

/* READDIR returns the names of @path, in any order. */
static unsigned count_names(const nfs_fh3 *dir, const char *path)
{
	READDIR3args args = { .dir = *dir, .count = PAGE_MAX };
	unsigned count = 0;
	bool eof = false;

	while (!eof) {
		READDIR3res res = { 0 };
		READDIR3resok *ok = &res.READDIR3res_u.resok;
		unsigned page = 0;

		called(nfsproc3_readdir_3(args, &res, nfs), nfs, path);
		if (!check(res.status == NFS3_OK, "READDIR %s: %d", path, res.status))
			break;
		for (const entry3 *e = ok->entries; e; e = e->nextentry) {
			char file[8192];
			struct stat st;

			snprintf(file, sizeof(file), "%s/%s", path, e->name);
			check(!lstat(file, &st), "READDIR %s: there is no %s", path, e->name);
			args.cookie = e->cookie;
			page++;
		}
		memcpy(args.cookieverf, ok->cookieverf, sizeof(verf3));
		eof = ok->eof || !page;
		long_pages += page > 150; /* longer than a Send */
		count += page;
		clnt_freeres(nfs, (xdrproc_t)xdr_READDIR3res, &res);
	}
	return count;
}

static void compare_entry(const nfs_fh3 *dir, const entryplus3 *e, const char *path)
{
	LOOKUP3args args = { .what = { .dir = *dir, .name = e->name } };
	LOOKUP3res res = { 0 };

	if (e->name_handle.follows) {
		compare_object(&e->name_handle.post_op_fh3_u.handle, path);
		return;
	}
	called(nfsproc3_lookup_3(args, &res, nfs), nfs, path);
	if (check(res.status == NFS3_OK, "LOOKUP %s: %d", path, res.status))
		compare_object(&res.LOOKUP3res_u.resok.object, path);
	clnt_freeres(nfs, (xdrproc_t)xdr_LOOKUP3res, &res);
}

static void compare_dir(const nfs_fh3 *dir, const char *path)
{
	READDIRPLUS3args args = { .dir = *dir, .dircount = PAGE_MAX, .maxcount = PAGE_MAX };
	struct dirent **names = NULL;
	int want = scandir(path, &names, NULL, NULL);
	unsigned count = 0;
	bool eof = false;

	while (!eof) {
		READDIRPLUS3res res = { 0 };
		READDIRPLUS3resok *ok = &res.READDIRPLUS3res_u.resok;
		unsigned page = 0;

		called(nfsproc3_readdirplus_3(args, &res, nfs), nfs, path);
		if (!check(res.status == NFS3_OK, "READDIRPLUS %s: %d", path, res.status))
			break;
		for (const entryplus3 *e = ok->entries; e; e = e->nextentry) {
			char file[8192];

			snprintf(file, sizeof(file), "%s/%s", path, e->name);
			if (strcmp(e->name, ".") && strcmp(e->name, ".."))
				compare_entry(dir, e, file);
			args.cookie = e->cookie;
			page++;
		}
		memcpy(args.cookieverf, ok->cookieverf, sizeof(verf3));
		eof = ok->eof || !page;
		long_pages += page > 40; /* longer than a Send */
		count += page;
		clnt_freeres(nfs, (xdrproc_t)xdr_READDIRPLUS3res, &res);
	}
	check((int)count == want, "READDIRPLUS %s: %u names instead of %d", path, count, want);
	count = count_names(dir, path);
	check((int)count == want, "READDIR %s: %u names instead of %d", path, count, want);
	for (int i = 0; i < want; i++)
		free(names[i]);
	free(names);
}

static void compare_object(const nfs_fh3 *fh, const char *path)
{
	const GETATTR3args args = { .object = *fh };
	GETATTR3res res = { 0 };
	const fattr3 *attr = &res.GETATTR3res_u.attributes;
	struct stat st;

	called(nfsproc3_getattr_3(args, &res, nfs), nfs, path);
	if (!check(res.status == NFS3_OK, "GETATTR %s: %d", path, res.status) ||
	    !check(!lstat(path, &st), "%s: %s", path, strerror(errno)))
		return;
	check(attr->size == (uint64)st.st_size && attr->fileid == st.st_ino && attr->mode == (st.st_mode & 07777) &&
	      attr->uid == st.st_uid && attr->mtime.seconds == (uint32)st.st_mtime, "GETATTR %s: other attributes", path);
	if (check(S_ISDIR(st.st_mode) == (attr->type == NF3DIR), "%s: type %d", path, attr->type) && S_ISDIR(st.st_mode))
		compare_dir(fh, path);
	else if (S_ISREG(st.st_mode))
		compare_file(fh, path, (size_t)st.st_size);
	else if (S_ISLNK(st.st_mode))
		compare_link(fh, path);
}

/* ---- writing ---- */

static void write_file(const nfs_fh3 *root, const char *dir, size_t size, char *mem)
{
	CREATE3args create = { .where = { .dir = *root, .name = (char *)"written" }, .how = { .mode = UNCHECKED } };
	REMOVE3args remove = { .object = create.where };
	CREATE3res made = { 0 };
	WRITE3args args = { 0 };
	WRITE3res res = { 0 };
	COMMIT3res done = { 0 };
	wcc3res gone = { 0 };
	char path[4096], *back = malloc(size + 1);
	int fd;

	snprintf(path, sizeof(path), "%s/written", dir);
	called(nfsproc3_create_3(create, &made, nfs), nfs, "CREATE");
	if (!check(made.status == NFS3_OK && made.CREATE3res_u.resok.obj.follows, "CREATE: %d", made.status))
		return;
	for (size_t i = 0; i < size; i++)
		mem[i] = (char)(i * 7 + i / 251 + size);
	args = (WRITE3args){ .file = made.CREATE3res_u.resok.obj.post_op_fh3_u.handle, .count = (uint32)size,
			     .stable = UNSTABLE, .data = { .data_len = (u_int)size, .data_val = mem } };
	called(nfsproc3_write_3(args, &res, nfs), nfs, "WRITE");
	long_writes += size >= LONG;
	check(res.status == NFS3_OK && res.WRITE3res_u.resok.count == size, "WRITE of %zu: status %d", size, res.status);
	called(nfsproc3_commit_3((COMMIT3args){ .file = args.file }, &done, nfs), nfs, "COMMIT");
	check(done.status == NFS3_OK, "COMMIT: %d", done.status);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	check(fd >= 0 && read(fd, back, size + 1) == (ssize_t)size && !memcmp(back, mem, size), "WRITE of %zu: other bytes", size);
	if (fd >= 0)
		close(fd);
	free(back);
	clnt_freeres(nfs, (xdrproc_t)xdr_CREATE3res, &made);
	called(nfsproc3_remove_3(remove, &gone, nfs), nfs, "REMOVE");
	check(gone.status == NFS3_OK && access(path, F_OK), "REMOVE: %d", gone.status);
}

static void write_files(const nfs_fh3 *root, const char *dir)
{
	static const size_t sizes[] = { 0, 1, 2, 3, 1000, THRESHOLD - 1, THRESHOLD, THRESHOLD + 1, LONG, LONG + 1,
					65536, 100003, DATA_MAX - 1, DATA_MAX };

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		write_file(root, dir, sizes[i], registered);
		write_file(root, dir, sizes[i], ordinary);
	}
}

/* The data of a WRITE reach a service that refuses it, too. */
static void be_refused(const nfs_fh3 *root)
{
	WRITE3args args = { .file = *root, .count = DATA_MAX, .data = { .data_len = DATA_MAX, .data_val = registered } };
	WRITE3res res = { 0 };

	called(nfsproc3_write_3(args, &res, nfs), nfs, "WRITE");
	check(res.status == NFS3ERR_ROFS, "WRITE: %d", res.status);
	long_writes++;
}

/* ---- the program ---- */

static void check_counters(void)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(rpcrdma_tirpc_domain(), &s);
	printf("%lu READs and %lu WRITEs of %u bytes or more, %lu long pages\n", long_reads, long_writes, LONG, long_pages);
	printf("chunks_read=%llu chunks_write=%llu chunks_reply=%llu long_calls=%llu bytes_in=%llu bytes_out=%llu "
	       "bytes_copied=%llu\n",
	       (unsigned long long)s.chunks_read, (unsigned long long)s.chunks_write, (unsigned long long)s.chunks_reply,
	       (unsigned long long)s.long_calls, (unsigned long long)s.bytes_in, (unsigned long long)s.bytes_out,
	       (unsigned long long)s.bytes_copied);
	check(long_reads && long_writes && long_pages, "too little was tested");
	if (is_tcp)
		return;
	check(s.chunks_write >= long_reads && s.bytes_in >= long_bytes, "READs without a Write chunk");
	check(s.chunks_read == long_writes, "WRITEs without a Read chunk");
	check(s.chunks_reply >= long_pages, "pages without a Reply chunk");
	check(!s.long_calls, "long calls");
	/* One copy of data that the filter allocates memory for, none of others: a third of them, and what is not long */
	check(!is_rdma || s.bytes_copied < long_bytes / 3 + DATA_MAX, "data were copied");
}

int main(int argc, char **argv)
{
	bool may_write = argc > 1 && !strcmp(argv[1], "-w");
	void *mem;
	nfs_fh3 root;

	argc -= may_write;
	argv += may_write;
	if (argc != 5) {
		fputs("usage: nfs_client [-w] MOUNT-URL NFS-URL EXPORT DIR\n", stderr);
		return 2;
	}
	is_tcp = !strncmp(argv[2], "tcp:", 4);
	is_rdma = !strncmp(argv[2], "rdma:", 5);
	ordinary = malloc(DATA_MAX);
	if (rpcrdma_mem_alloc(rpcrdma_tirpc_domain(), DATA_MAX, &mem) || !ordinary)
		return 1;
	registered = mem;
	root = mount_export(argv[1], argv[3]);
	nfs = create(argv[2], NFS_PROGRAM);
	called(nfsproc3_null_3(NULL, nfs), nfs, "NULL");
	compare_object(&root, argv[4]);
	if (may_write)
		write_files(&root, argv[4]);
	else
		be_refused(&root);
	check_counters();
	free(root.data.data_val);
	auth_destroy(nfs->cl_auth);
	clnt_destroy(nfs);
	rpcrdma_mem_free(rpcrdma_tirpc_domain(), registered);
	free(ordinary);
	printf("nfs_client: %u passed, %u failed\n", passed, failed);
	return failed > 0;
}
